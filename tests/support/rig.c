#include "rig.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

static void make_phases(rig *r, const mimus_schema *schema, const mimus_config *config) {
    test_ok(mimus__network_new(&r->network, r->device, &r->shape, r->runs, r->rows, config->gemm,
                               true, false, config->dropout > 0 ? &r->hyper : NULL));
    const mimus__network *network = r->network;
    test_ok(mimus__gather_new(&r->gather, r->device, &r->store, NULL, &r->hyper, config->stack,
                              mimus__network_matrix(network, 0), r->runs, network->capacity,
                              network->layout.padded[0]));
    test_ok(mimus__loss_new(&r->loss, r->device, schema, &r->store.layout, &r->hyper, NULL, false,
                            r->runs, network->capacity, network->layout.padded[r->shape.layers]));
}

static void make_block(rig *r, const mimus_schema *schema, bool dropout, int tile) {
    test_ok(mimus__network_new_numbers(&r->network, r->device, &r->shape, r->runs, dropout,
                                       mimus__block_plan_slices(r->device, r->rows)));
    const mimus__block_source source = {.store = &r->store, .hyper = &r->hyper};
    test_ok(mimus__block_plan_new(&r->block, r->network, &source, schema, dropout, r->rows, tile));
}

void rig_new(rig *out, mimus__device *device, mimus__dataset *dataset, const mimus_config *config,
             const mimus__hyper *hyper, uint32_t runs, uint32_t rows, uint32_t steps, int tile) {
    *out = (rig){.device = device, .dataset = dataset, .runs = runs, .rows = rows};
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    test_ok(mimus__config_shape(&out->shape, config, schema));
    const mimus__store_recipe recipe = {
        .form = config->store != MIMUS__STORE_AUTO ? config->store : MIMUS__STORE_F32,
        .stack = config->stack,
        .shard_bytes = config->shard};
    test_ok(mimus__store_new(&out->store, device, dataset->recording, &dataset->audit,
                             &dataset->split, &recipe, NULL));
    test_ok(mimus__buffer_new(&out->hyper, device, runs * sizeof *hyper, "settings"));
    test_ok(mimus__buffer_write(&out->hyper, 0, hyper, runs * sizeof *hyper));
    if (config->plan == MIMUS__PLAN_BLOCK)
        make_block(out, schema, config->dropout > 0, tile);
    else
        make_phases(out, schema, config);
    test_ok(mimus__optimizer_new(&out->optimizer, out->network,
                                 out->block != NULL ? mimus__block_plan_panels(out->block) : NULL,
                                 config, &out->hyper, mimus__metric_columns(schema->heads), steps));
}

void rig_clear(rig *r) {
    test_ok(mimus__device_finish(r->device));
    mimus__optimizer_free(r->optimizer);
    mimus__loss_free(r->loss);
    mimus__block_plan_free(r->block);
    mimus__gather_free(r->gather);
    mimus__network_free(r->network);
    mimus__buffer_free(&r->hyper);
    mimus__store_free(&r->store);
}

void rig_set_parameters(rig *r, const float *parameters) {
    test_ok(mimus__network_set_parameters(r->network, parameters));
    test_ok(mimus__optimizer_write_panels(r->optimizer));
}

void rig_normalise(rig *r, uint32_t run, const float *mean, const float *scale) {
    test_ok(r->block != NULL ? mimus__block_plan_normalise(r->block, run, mean, scale)
                             : mimus__gather_normalise(r->gather, run, mean, scale));
}

void rig_weigh(rig *r, uint32_t run, const float *head_weights, const float *action_weights) {
    test_ok(r->block != NULL ? mimus__block_plan_weigh(r->block, run, head_weights, action_weights)
                             : mimus__loss_weigh(r->loss, run, head_weights, action_weights));
}

mimus__sums rig_sums(const rig *r, uint32_t rows) {
    return r->block != NULL
               ? mimus__block_plan_sums(r->block)
               : mimus__loss_sums(r->loss, mimus__network_padded_rows(r->network, rows));
}

void rig_gradient(rig *r, uint32_t first, uint32_t rows, uint32_t step) {
    if (r->block != NULL) {
        test_ok(mimus__block_plan_in_order(r->block, 0, first, rows, true, step));
        return;
    }
    uint32_t padded = mimus__network_padded_rows(r->network, rows);
    test_ok(mimus__gather_in_order(r->gather, 0, first, rows, padded));
    test_ok(mimus__network_forward(r->network, padded, true, step));
    test_ok(mimus__loss_run(r->loss, padded, rows,
                            mimus__network_matrix(r->network, r->shape.layers),
                            &mimus__gather_batch(r->gather)->labels));
    test_ok(mimus__network_backward(r->network, padded, step));
}

void rig_read_gradient(rig *r, uint32_t run, float *gradient) {
    const mimus__layout *layout = &r->network->layout;
    uint32_t splits = r->network->splits;
    float *image = calloc(layout->total * splits, sizeof *image);
    test_ok(mimus__buffer_read(&r->network->gradient, 0, image,
                               layout->total * splits * sizeof *image));
    for (uint32_t z = 1; z < splits; z++)
        for (size_t i = 0; i < layout->total; i++)
            image[i] += image[z * layout->total + i];
    mimus__layout_unpack(layout, run, image, gradient);
    free(image);
}

void rig_read_parameters(rig *r, uint32_t run, float *parameters) {
    const mimus__layout *layout = &r->network->layout;
    float *image = calloc(layout->total, sizeof *image);
    test_ok(mimus__buffer_read(&r->network->parameters, 0, image, layout->total * sizeof *image));
    mimus__layout_unpack(layout, run, image, parameters);
    free(image);
}

void rig_read_table(rig *r, uint32_t run, uint32_t step, float *row) {
    size_t bytes = mimus__optimizer_columns(r->optimizer) * sizeof *row;
    size_t at = (size_t)run * r->optimizer->table_rows + step + 1;
    test_ok(mimus__buffer_read(&r->optimizer->table, at * bytes, row, bytes));
}

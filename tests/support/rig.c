#include "rig.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

void rig_new(rig *out, mimus__device *device, mimus__dataset *dataset, const mimus_config *config,
             const mimus__hyper *hyper, uint32_t runs, uint32_t rows, uint32_t steps) {
    *out = (rig){.device = device, .dataset = dataset, .runs = runs, .rows = rows};
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    test_ok(mimus__config_shape(&out->shape, config, schema));
    test_ok(mimus__store_new(&out->store, device, dataset->recording, &dataset->audit,
                             &dataset->split, config->stack, 1.0, config->shard, NULL));
    test_ok(mimus__buffer_new(&out->hyper, device, runs * sizeof *hyper, "settings"));
    test_ok(mimus__buffer_write(&out->hyper, 0, hyper, runs * sizeof *hyper));
    test_ok(mimus__network_new(&out->network, device, &out->shape, runs, rows, config->gemm, true,
                               config->dropout > 0 ? &out->hyper : NULL));
    const mimus__network *network = out->network;
    test_ok(mimus__gather_new(&out->gather, device, &out->store, &out->hyper, config->stack,
                              mimus__network_matrix(network, 0), runs, network->capacity,
                              network->layout.padded[0]));
    test_ok(mimus__loss_new(&out->loss, device, schema, &out->store.layout, &out->hyper, runs,
                            network->capacity, network->layout.padded[out->shape.layers]));
    test_ok(mimus__optimizer_new(&out->optimizer, out->network, config, &out->hyper,
                                 mimus__loss_columns(out->loss), steps));
}

void rig_clear(rig *r) {
    test_ok(mimus__device_finish(r->device));
    mimus__optimizer_free(r->optimizer);
    mimus__loss_free(r->loss);
    mimus__gather_free(r->gather);
    mimus__network_free(r->network);
    mimus__buffer_free(&r->hyper);
    mimus__store_free(&r->store);
}

void rig_gradient(rig *r, uint32_t first, uint32_t rows, uint32_t step) {
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
    uint32_t splits = mimus__gemm_splits(r->network->gemm);
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

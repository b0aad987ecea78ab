#include "optimizer.h"

#include "alloc.h"

#include <stdlib.h>

/* A chunk is this many floats at least, and there are this many chunks a run at most, so that
 * adding their squares again in every group costs little. */
enum { CHUNK_FLOATS = 1024, MOST_CHUNKS = 512 };

/* 1.0f */
enum { ONE_BITS = 0x3F800000 };

static mimus_status make_chunks(mimus__optimizer *optimizer) {
    mimus_status status = MIMUS_OK;
    const mimus__network *network = optimizer->network;
    mimus__chunk *chunks = NULL;
    size_t floats = network->layout.total / network->layout.runs / MOST_CHUNKS;
    uint32_t size =
        mimus__round_up(floats < CHUNK_FLOATS ? CHUNK_FLOATS : (uint32_t)floats, CHUNK_FLOATS);
    MIMUS_TRY(mimus__layout_chunks(&network->layout, size, &chunks, &optimizer->chunk_count));
    size_t bytes = optimizer->chunk_count * sizeof *chunks;
    MIMUS_TRY(mimus__buffer_new(&optimizer->chunks, network->device, bytes, "the chunk table"));
    MIMUS_TRY(mimus__buffer_write(&optimizer->chunks, 0, chunks, bytes));
out:
    free(chunks);
    return status;
}

static mimus_status make_buffers(mimus__optimizer *optimizer) {
    mimus_status status = MIMUS_OK;
    mimus__network *network = optimizer->network;
    mimus__device *device = network->device;
    size_t runs = network->layout.runs, bytes = network->layout.total * sizeof(float);
    MIMUS_TRY(mimus__buffer_new(&optimizer->squares, device,
                                runs * optimizer->chunk_count * sizeof(float),
                                "the gradients' norms"));
    MIMUS_TRY(mimus__buffer_new(&optimizer->moment1, device, bytes, "the first moments"));
    if (optimizer->kind != MIMUS__SGD)
        MIMUS_TRY(mimus__buffer_new(&optimizer->moment2, device, bytes, "the second moments"));
    MIMUS_TRY(mimus__buffer_new(&optimizer->rates, device,
                                runs * (optimizer->table_rows - 1) * sizeof(float),
                                "the learning rates"));
    MIMUS_TRY(mimus__buffer_fill(&optimizer->rates, 0, ONE_BITS, optimizer->rates.bytes));
    MIMUS_TRY(mimus__buffer_new(&optimizer->table, device,
                                runs * optimizer->table_rows * mimus__optimizer_columns(optimizer) *
                                    sizeof(float),
                                "the steps' table"));
out:
    return status;
}

static mimus_status build(mimus__optimizer *optimizer) {
    mimus_status status = MIMUS_OK;
    mimus__defines defines = {0};
    mimus__layout_tables tables;
    const mimus__panels *panels = optimizer->panels;
    mimus__geometry_define(optimizer->geometry, &defines);
    mimus__define_number(&defines, "OPTIMIZER", (uint64_t)optimizer->kind);
    mimus__define_number(&defines, "METRIC_COLUMNS", optimizer->metric_columns);
    mimus__define_number(&defines, "PANELS", panels != NULL);
    if (panels != NULL) {
        mimus__layout_define(&optimizer->network->layout, &tables, &defines);
        mimus__panels_define(panels, &defines);
    }
    MIMUS_TRY(mimus__program_build(&optimizer->program, optimizer->network->device, "optimizer.cl",
                                   &defines));
    MIMUS_TRY(mimus__kernel_new(&optimizer->sum, &optimizer->program, "mimus_gradient_sum"));
    MIMUS_TRY(mimus__kernel_new(&optimizer->update, &optimizer->program, "mimus_update"));
    MIMUS_TRY(mimus__kernel_new(&optimizer->metrics, &optimizer->program, "mimus_metrics_sum"));
    MIMUS_TRY(mimus__kernel_new(&optimizer->carry, &optimizer->program, "mimus_carry"));
    if (panels != NULL)
        MIMUS_TRY(mimus__kernel_new(&optimizer->write_panels, &optimizer->program, "mimus_panels"));
out:
    return status;
}

mimus_status mimus__optimizer_new(mimus__optimizer **out, mimus__network *network,
                                  const mimus__panels *panels, const mimus_config *config,
                                  const mimus__buffer *hyper, uint32_t metric_columns,
                                  uint32_t steps) {
    mimus_status status = MIMUS_OK;
    mimus__optimizer *optimizer = NULL;
    MIMUS_TRY(mimus__alloc(&optimizer, 1, sizeof *optimizer));
    *optimizer = (mimus__optimizer){
        .geometry = mimus__geometry_of(network->device),
        .network = network,
        .panels = panels,
        .kind = config->optimizer,
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .epsilon = (float)config->epsilon,
        .hyper = hyper,
        .metric_columns = metric_columns,
        .table_rows = steps + 1,
    };
    MIMUS_TRY(make_chunks(optimizer));
    MIMUS_TRY(make_buffers(optimizer));
    MIMUS_TRY(build(optimizer));
    *out = optimizer;
    optimizer = NULL;
out:
    mimus__optimizer_free(optimizer);
    return status;
}

void mimus__optimizer_free(mimus__optimizer *optimizer) {
    if (optimizer == NULL)
        return;
    mimus__kernel_free(&optimizer->sum);
    mimus__kernel_free(&optimizer->update);
    mimus__kernel_free(&optimizer->metrics);
    mimus__kernel_free(&optimizer->carry);
    mimus__kernel_free(&optimizer->write_panels);
    mimus__program_free(&optimizer->program);
    mimus__buffer_free(&optimizer->chunks);
    mimus__buffer_free(&optimizer->squares);
    mimus__buffer_free(&optimizer->moment1);
    mimus__buffer_free(&optimizer->moment2);
    mimus__buffer_free(&optimizer->rates);
    mimus__buffer_free(&optimizer->table);
    free(optimizer);
}

uint32_t mimus__optimizer_columns(const mimus__optimizer *optimizer) {
    return optimizer->metric_columns + MIMUS__TABLE_EXTRA;
}

mimus_status mimus__optimizer_write_panels(mimus__optimizer *optimizer) {
    const mimus__panels *panels = optimizer->panels;
    if (panels == NULL)
        return MIMUS_OK;
    return mimus__launch(
        &optimizer->write_panels,
        mimus__geometry_grid(optimizer->geometry, optimizer->chunk_count, optimizer->network->live),
        MIMUS_ARG_BUFFER(&optimizer->chunks), MIMUS_ARG_BUFFER(&optimizer->network->parameters),
        MIMUS_ARG_BUFFER(&panels->plain), MIMUS_ARG_BUFFER(&panels->turned));
}

mimus_status mimus__optimizer_set_rates(mimus__optimizer *optimizer, const float *rates,
                                        uint32_t runs) {
    size_t steps = optimizer->table_rows - 1;
    return mimus__buffer_write(&optimizer->rates, 0, rates, runs * steps * sizeof *rates);
}

mimus_status mimus__optimizer_step(mimus__optimizer *optimizer, mimus__sums sums, uint32_t step) {
    mimus_status status = MIMUS_OK;
    const mimus__network *network = optimizer->network;
    const mimus__buffer *moment2 =
        optimizer->kind == MIMUS__SGD ? &optimizer->moment1 : &optimizer->moment2;
    const mimus__panels *panels = optimizer->panels;
    const mimus__buffer *plain = panels != NULL ? &panels->plain : &network->parameters;
    const mimus__buffer *turned = panels != NULL ? &panels->turned : &network->parameters;
    mimus__grid grid =
        mimus__geometry_grid(optimizer->geometry, optimizer->chunk_count, network->live);
    MIMUS_TRY(mimus__launch(
        &optimizer->sum, grid, MIMUS_ARG_U32(network->splits), MIMUS_ARG_U64(network->layout.total),
        MIMUS_ARG_BUFFER(&optimizer->chunks), MIMUS_ARG_BUFFER(&network->gradient),
        MIMUS_ARG_BUFFER(&optimizer->squares), MIMUS_ARG_BUFFER(sums.partial),
        MIMUS_ARG_U32(sums.groups), MIMUS_ARG_BUFFER(&optimizer->table),
        MIMUS_ARG_U32(optimizer->table_rows), MIMUS_ARG_U32(step)));
    MIMUS_TRY(mimus__launch(
        &optimizer->update, grid, MIMUS_ARG_BUFFER(&optimizer->rates),
        MIMUS_ARG_F32(optimizer->beta1), MIMUS_ARG_F32(optimizer->beta2),
        MIMUS_ARG_F32(optimizer->epsilon), MIMUS_ARG_BUFFER(optimizer->hyper),
        MIMUS_ARG_BUFFER(&optimizer->chunks), MIMUS_ARG_BUFFER(&network->gradient),
        MIMUS_ARG_BUFFER(&optimizer->squares), MIMUS_ARG_BUFFER(&network->parameters),
        MIMUS_ARG_BUFFER(&optimizer->moment1), MIMUS_ARG_BUFFER(moment2), MIMUS_ARG_BUFFER(plain),
        MIMUS_ARG_BUFFER(turned), MIMUS_ARG_BUFFER(&optimizer->table),
        MIMUS_ARG_U32(optimizer->table_rows), MIMUS_ARG_U32(step)));
out:
    return status;
}

mimus_status mimus__optimizer_metrics(mimus__optimizer *optimizer, mimus__sums sums,
                                      const mimus__buffer *table, uint32_t table_rows,
                                      uint32_t row) {
    return mimus__launch(&optimizer->metrics,
                         mimus__geometry_grid(optimizer->geometry, 1, optimizer->network->live),
                         MIMUS_ARG_BUFFER(sums.partial), MIMUS_ARG_U32(sums.groups),
                         MIMUS_ARG_BUFFER(table), MIMUS_ARG_U32(table_rows), MIMUS_ARG_U32(row));
}

/* Byte offset of a run's row of the table. */
static size_t row_offset(const mimus__optimizer *optimizer, uint32_t run, uint32_t row) {
    return ((size_t)run * optimizer->table_rows + row) * mimus__optimizer_columns(optimizer) *
           sizeof(float);
}

mimus_status mimus__optimizer_carry(mimus__optimizer *optimizer) {
    mimus__grid grid = {{optimizer->network->live, 1, 1}, {1, 1, 1}};
    return mimus__launch(&optimizer->carry, grid, MIMUS_ARG_BUFFER(&optimizer->table),
                         MIMUS_ARG_U32(optimizer->table_rows));
}

mimus_status mimus__optimizer_set_corrections(mimus__optimizer *optimizer, uint32_t run,
                                              float correction1, float correction2) {
    const float corrections[2] = {correction1, correction2};
    size_t column = optimizer->metric_columns + MIMUS__COLUMN_CORRECTION1;
    return mimus__buffer_write(&optimizer->table,
                               row_offset(optimizer, run, 0) + column * sizeof(float), corrections,
                               sizeof corrections);
}

#include "estimate.h"

#include "layout.h"
#include "loss.h"
#include "optimizer.h"
#include "trainer.h"

/* Of block_plan.c and gemm_tile.c: pads, the most rows of a block, when a slice is too small. */
enum {
    PAD = 16,
    MOST_BLOCK_ROWS = 192,
    BLOCK_GAP = 16,
    LEAST_SLICE = 32,
    MOST_SPLITS = 8,
    SPARE_ROWS = 128
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Widths of all layers, those of hidden ones `times` times, each with a gap. */
static uint64_t widths(const mimus__layout *layout, uint32_t times, uint32_t gap) {
    uint32_t layers = layout->shape.layers;
    uint64_t sum = layout->padded[0] + layout->padded[layers] + 2 * gap;
    for (uint32_t l = 1; l < layers; l++)
        sum += (uint64_t)times * (layout->padded[l] + gap);
    return sum;
}

/* While products are verified and timed: three matrices each of the widest input and output, and
 * partial gradients, of which those of biases lie as far apart as those of weights. */
static uint64_t trial_floats(const mimus__layout *layout, uint64_t rows, uint64_t splits) {
    uint64_t in = 0, out = 0, weights = 0;
    for (uint32_t l = 0; l < layout->shape.layers; l++) {
        in = most(in, layout->padded[l]);
        out = most(out, layout->padded[l + 1]);
        weights = most(weights, (uint64_t)layout->padded[l] * layout->padded[l + 1]);
    }
    return 3 * rows * (in + out) + 2 * (splits + 1) * weights;
}

uint64_t mimus__estimate_step(const mimus__estimate *estimate, const mimus_config *config,
                              const mimus__shape *shape) {
    const uint32_t runs = estimate->runs > 0 ? estimate->runs : 1;
    const mimus__layout layout = mimus__layout_of(shape, runs, PAD);
    uint64_t labels =
        mimus__row_layout_of(estimate->schema, config->stack, MIMUS__STORE_F32).label_words;
    uint64_t rows = most(1, least(config->batch, estimate->samples));
    uint64_t slices = least(2ull * estimate->compute_units,
                            most(1, estimate->blocks ? rows / LEAST_SLICE : MOST_SPLITS));
    bool keeps_pre = config->activation == MIMUS__GELU ||
                     (config->activation == MIMUS__TANH && config->dropout > 0);
    uint64_t moments = config->optimizer == MIMUS__SGD ? 1 : 2;
    uint64_t panels = estimate->blocks ? 2 : 0;
    uint64_t columns = mimus__metric_columns(estimate->schema->heads) + MIMUS__TABLE_EXTRA;
    /* the report holds parameters, moments and tables once more; a partial gradient a slice */
    uint64_t floats = (2 * (1 + moments) + panels + slices) * layout.total +
                      2ull * runs * columns * (estimate->samples / rows + 2);
    if (estimate->blocks && runs > 1) /* they may share a batch */
        floats += (rows + SPARE_ROWS) * (layout.padded[0] + BLOCK_GAP + labels);
    if (estimate->blocks) {
        floats += runs * slices * MOST_BLOCK_ROWS *
                  (widths(&layout, keeps_pre ? 2 : 1, BLOCK_GAP) + labels);
    } else {
        floats += runs * rows * (widths(&layout, keeps_pre ? 3 : 2, 0) + labels);
        floats = most(floats, runs * trial_floats(&layout, rows, slices));
    }
    return floats * sizeof(float);
}

mimus_status mimus__estimate_check(const mimus__device *device, const mimus_schema *schema,
                                   uint64_t samples, uint32_t runs, const mimus_config *config,
                                   const mimus__shape *shape) {
    const mimus__device_info *info = mimus__device_get_info(device);
    const mimus__estimate estimate = {.schema = schema,
                                      .samples = samples,
                                      .runs = runs,
                                      .blocks = mimus__trainer_takes_blocks(config, device),
                                      .compute_units = info->compute_units};
    const mimus__row_layout layout = mimus__row_layout_of(schema, config->stack, config->store);
    uint64_t recording = samples * layout.words * sizeof(uint32_t);
    uint64_t step = mimus__estimate_step(&estimate, config, shape);
    uint64_t room = mimus__device_room(device);
    const bool small = recording + step < 1 << 20;
    const double unit = small ? 1 << 10 : 1 << 20;
    if (recording + step <= room)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_MEMORY,
                       "training needs %.1f %s on %s, %.1f for the recording and %.1f for network "
                       "and batch, and may use %.1f: %s%s",
                       (double)(recording + step) / unit, small ? "KiB" : "MiB", info->name,
                       (double)recording / unit, (double)step / unit, (double)room / unit,
                       config->memory > 0 ? "allow more by memory, or " : "",
                       recording < step                    ? "take smaller hidden or batch"
                       : config->store == MIMUS__STORE_F32 ? "halve the senses by --store f16"
                                                           : "train on a part of the recording");
}

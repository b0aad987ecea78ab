#include "estimate.h"

#include "layout.h"
#include "loss.h"
#include "optimizer.h"

enum { PAD = 16, MOST_BLOCK_ROWS = 192, LEAST_SLICE = 32, MOST_SPLITS = 8 };

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Widths of all layers, those of hidden ones `times` times. */
static uint64_t widths(const mimus__layout *layout, uint32_t times) {
    uint32_t layers = layout->shape.layers;
    uint64_t sum = layout->padded[0] + layout->padded[layers];
    for (uint32_t l = 1; l < layers; l++)
        sum += (uint64_t)times * layout->padded[l];
    return sum;
}

/* Outputs, their gradients and the labels of a batch. While products are verified and timed there
 * are three matrices each of the widest input and output instead. */
static uint64_t batch_floats(const mimus__layout *layout, uint64_t labels, uint64_t rows,
                             bool keeps_pre) {
    uint64_t in = 0, out = 0;
    for (uint32_t l = 0; l < layout->shape.layers; l++) {
        in = most(in, layout->padded[l]);
        out = most(out, layout->padded[l + 1]);
    }
    uint64_t trains = widths(layout, keeps_pre ? 3 : 2) + labels;
    return rows * most(trains, 3 * (in + out));
}

/* Blocks of rows, one a slice. */
static uint64_t block_floats(const mimus__layout *layout, uint64_t labels, uint64_t slices,
                             bool keeps_pre) {
    uint64_t row = widths(layout, keeps_pre ? 2 : 1) + labels;
    return slices * MOST_BLOCK_ROWS * row;
}

uint64_t mimus__estimate_step(const mimus__estimate *estimate, const mimus_config *config,
                              const mimus__shape *shape) {
    const mimus__layout layout = mimus__layout_of(shape, 1, PAD);
    uint64_t labels =
        mimus__row_layout_of(estimate->schema, config->stack, MIMUS__STORE_F32).label_words;
    uint64_t rows = least(config->batch, most(estimate->samples, 1));
    uint64_t slices = least(2ull * estimate->compute_units,
                            most(1, estimate->blocks ? rows / LEAST_SLICE : MOST_SPLITS));
    bool keeps_pre = config->activation == MIMUS__GELU ||
                     (config->activation == MIMUS__TANH && config->dropout > 0);
    uint64_t moments = config->optimizer == MIMUS__SGD ? 1 : 2;
    uint64_t panels = estimate->blocks ? 2 : 0;
    /* parameters and moments twice: the report has copies; as many partial gradients as slices */
    uint64_t floats = (2 * (1 + moments) + panels + slices) * layout.total;
    floats += estimate->blocks ? block_floats(&layout, labels, slices, keeps_pre)
                               : batch_floats(&layout, labels, rows, keeps_pre);
    uint64_t columns = mimus__metric_columns(estimate->schema->heads) + MIMUS__TABLE_EXTRA;
    floats += 2 * columns * (estimate->samples / rows + 2);
    return floats * sizeof(float);
}

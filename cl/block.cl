/* block - the whole step of a slice of the batch in one work-item, block of rows by block of rows,
 * everything in its core's cache: gather, forward, loss, backward, and the slice's partial
 * gradient. For CPU devices. The pieces are those of the kernels that do a phase a launch.
 *
 * A block's matrices have rows `width + BLOCK_GAP` apart: rows whose distance is a power of two
 * share a cache set. The gradient of a layer's outputs takes their place once nobody reads them any
 * more.
 *
 * With SHARED the first matrix and the labels are those that mimus_gather left for all runs, X_LD
 * floats apart; every run's item then reads the same ones.
 *
 *   parameters, panels, turned  (R, P) as in cl/layout.clh: biases; weights in panels
 * (cl/panels.clh) gradient  (Z, R, P)    slice z's sum, weights in plain order; overwritten scratch
 * (R, Z, SCRATCH_FLOATS) partial   (R, Z, METRIC_COLUMNS)  sums over each slice's rows, overwritten
 */
#include "activation.clh"
#include "dense_tile.clh"
#include "dropout.clh"
#include "gather.clh"
#include "hyper.clh"
#include "layout.clh"
#include "masked_log_softmax.clh"
#include "parts.clh"
#include "sampler.clh"

#ifndef BLOCK_ROWS /* a multiple of TILE_ROWS and LANES */
#define BLOCK_ROWS 96
#endif
#ifndef BLOCK_GAP
#define BLOCK_GAP 16
#endif
#ifndef ACTIVATION
#define ACTIVATION ACTIVATION_RELU
#endif
#ifndef KEEPS_PRE /* 1: the activation's derivative needs X W + b */
#define KEEPS_PRE 0
#endif
#ifndef DROPOUT
#define DROPOUT 0
#endif
#ifndef TOTAL /* floats of all runs' parameters */
#define TOTAL 2048
#endif
#ifndef SCRATCH_FLOATS
#define SCRATCH_FLOATS 65536
#endif
#ifndef SHARED /* 1: the batch is gathered already, once for all runs */
#define SHARED 0
#endif

#ifndef LOOKAHEAD /* rows to fetch ahead at a time; 0: none, as not every compiler can */
#define LOOKAHEAD 0
#endif
/* clang's builtin: OpenCL's own prefetch() does nothing in PoCL. On a CPU all address spaces are one. */
#define BLOCK_PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p))

#define RELU (ACTIVATION == ACTIVATION_RELU)
#define SLOW_ACTIVATION (ACTIVATION != ACTIVATION_IDENTITY && !RELU)

#if SLOW_ACTIVATION
DEFINE_ACTIVATION(tile_vector, tile_activate, tile_slope)
#endif

/* The rows of the block after this one, fetched one at a time between the tiles of this one: a core
 * has a dozen or so lines on their way at once, and more of them would hold up the arithmetic. */
typedef struct lookahead {
    uint rows, done;
    uint row[BLOCK_ROWS];
    __global const uint *words[BLOCK_ROWS];
} lookahead;

static inline void look_ahead(lookahead *next) {
#if LOOKAHEAD
    uint end = min(next->done + LOOKAHEAD, next->rows);
    for (; next->done < end; next->done++) {
        for (uint w = 0; w < ROW_WORDS + 15; w += 16) /* a line is 16 words, a row begins anywhere */
            BLOCK_PREFETCH(next->words[next->done] + w);
    }
#else
    (void)next;
#endif
}

/* The next block's rows: from place `at` on, of which `left` are left; in the epoch's order, or as they
 * lie from `base` on. */
static inline void choose_rows(lookahead *next, const sampler_order *order, uint base, uint at,
                               uint left) {
    next->done = 0;
    next->rows = min((uint)BLOCK_ROWS, left);
#if SHARED
    (void)order, (void)base, (void)at;
#else
    for (uint i = 0; i < next->rows; i += LANES) {
        uintl place = at + i + lanes_index();
        lanes_store(order ? sampler_lanes(order, place) : base + place, 0, next->row + i);
    }
#endif
}

#if PARTS
/* From positions to rows. */
static inline void place_rows(lookahead *next, __global const uint2 *pieces, mimus__part part) {
    for (uint i = 0; i < next->rows; i++)
        next->row[i] = part_row(pieces, part, next->row[i]);
}
#endif

static inline uint row_distance(uint width) {
    return width + BLOCK_GAP;
}

#define VECTORS TILE_VECTORS
#define TILE_NAME(name) name
#include "block_panel.inc"
#undef VECTORS
#undef TILE_NAME
#define VECTORS 1
#define TILE_NAME(name) name##_narrow
#include "block_panel.inc"
#undef VECTORS
#undef TILE_NAME

/* y = f(x W + b) */
static inline void forward(uint rows, uint in, uint out, __global const float *x,
                           __global const float *panels, __global const float *bias, int relu,
                           __global float *y, lookahead *next) {
    uint x_ld = row_distance(in), y_ld = row_distance(out), n = 0;
    for (; n + TILE_COLUMNS <= out; n += TILE_COLUMNS)
        forward_panel(rows, in, x, x_ld, panels + n * in, bias + n, relu, y + n,
                      y_ld, next);
    for (; n < out; n += TILE_WIDTH)
        forward_panel_narrow(rows, in, x, x_ld, panels + n * in, bias + n, relu, y + n, y_ld, next);
}

/* d = (g W^T) o f'(saved); d may be where saved is. */
static inline void input_gradient(uint rows, uint in, uint out, __global const float *g,
                                  __global const float *turned, __global const float *saved,
                                  __global float *d, lookahead *next) {
    uint g_ld = row_distance(out), d_ld = row_distance(in), k = 0;
    for (; k + TILE_COLUMNS <= in; k += TILE_COLUMNS)
        input_gradient_panel(rows, out, g, g_ld, turned + k * out, saved + k, d + k,
                             d_ld, next);
    for (; k < in; k += TILE_WIDTH)
        input_gradient_panel_narrow(rows, out, g, g_ld, turned + k * out, saved + k, d + k, d_ld, next);
}

/* v (+)= x^T g and c (+)= sum g */
static inline void weight_gradient(uint rows, uint in, uint out, __global const float *x,
                                   __global const float *g, __global float *v, __global float *c,
                                   int first, lookahead *next) {
    uint x_ld = row_distance(in), g_ld = row_distance(out), n = 0;
    for (; n + TILE_COLUMNS <= out; n += TILE_COLUMNS)
        weight_gradient_panel(rows, in, out, x, x_ld, g + n, g_ld, v + n, c + n,
                              first, next);
    for (; n < out; n += TILE_WIDTH)
        weight_gradient_panel_narrow(rows, in, out, x, x_ld, g + n, g_ld, v + n, c + n, first, next);
}

/* An activation that is no part of the product: over a whole block. */
static inline void activate(uint rows, uint width, __global float *y, __global float *pre) {
#if SLOW_ACTIVATION
    uint ld = row_distance(width);
    for (uint i = 0; i < rows; i++) {
        for (uint n = 0; n < width; n += TILE_WIDTH) {
            tile_vector value = TILE_LOAD(0, y + i * ld + n);
            if (KEEPS_PRE)
                TILE_STORE(value, 0, pre + i * ld + n);
            TILE_STORE(tile_activate(ACTIVATION, value), 0, y + i * ld + n);
        }
    }
#else
    (void)rows, (void)width, (void)y, (void)pre;
#endif
}

static inline void drop_block(uint rows, uint width, __global float *y, uint2 key, uint row,
                              uint step, uint layer, float rate) {
    for (uint i = 0; i < rows; i++) {
        for (uint n = 0; n < width; n += 4)
            drop(y + i * row_distance(width) + n, key, n / 4, row + i, step, layer, rate);
    }
}

/* The hint keeps compilers that vectorise over work-items from it: Intel's crashed on the attempt.
 * Grid: slice, run. `shuffled`: rows first .. of the epoch's order, else of the store from `base`;
 * `trains`: with dropout and backward. */
__attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(tile_vector))) __kernel void
mimus_block(SHARD_PARAMETERS, uint shuffled, uint epoch, uint n, uint half_bits, uint base,
            uint first, uint rows, uint slice_rows, float share, uint trains, uint step,
            __global const mimus__hyper *restrict hyper, __global const float *restrict all_mean,
            __global const float *restrict all_scale, __global const float *restrict head_weights,
            __global const float *restrict action_weights,
            __global const float *restrict parameters, __global const float *restrict panels,
            __global const float *restrict turned, __global float *restrict gradient,
            __global float *restrict scratch, __global float *restrict partial,
            __global float *restrict shared_x, /* (rows, width + BLOCK_GAP), or unused; not written */
            __global uint *restrict shared_labels PART_PARAMETERS) {
    uint slice = get_global_id(0), run = get_global_id(1);
    size_t slot = (size_t)run * get_global_size(0) + slice;
#if PARTS
    const mimus__part part = parts[run];
    rows = part_count(part, shuffled, first, rows);
    slice_rows = (rows + (uint)get_global_size(0) - 1u) / (uint)get_global_size(0);
    share = rows > 0u ? 1.0f / (float)rows : 0.0f;
    n = part.training;
    half_bits = part.half_bits;
    base = part.base;
#endif
    uint begin = min(slice * slice_rows, rows), end = min(begin + slice_rows, rows);
    const mimus__hyper settings = hyper[run];
    const sampler_order order =
        sampler_start(philox_key(settings.order_low, settings.order_high, PURPOSE_SAMPLER), epoch,
                      n, half_bits);
    uint2 noise = philox_key(settings.seed_low, settings.seed_high, PURPOSE_DROPOUT);
    __global const float *mean = all_mean + (size_t)run * SENSES;
    __global const float *scale = all_scale + (size_t)run * SENSES;
    __global float *own = gradient + (size_t)slice * TOTAL;

    __global float *x[LAYERS + 1], *pre[LAYERS + 1], *free = scratch + slot * SCRATCH_FLOATS;
    for (uint l = 0; l <= LAYERS; l++) {
        x[l] = pre[l] = free;
        free += BLOCK_ROWS * row_distance(layer_width[l]);
        if (KEEPS_PRE && l > 0 && l < LAYERS) {
            pre[l] = free;
            free += BLOCK_ROWS * row_distance(layer_width[l]);
        }
    }
    __global float *e = free;
    __global uint *labels = (__global uint *)(e + head_offset[HEADS] * LANES);

    floatl columns[METRIC_COLUMNS];
    for (uint c = 0; c < METRIC_COLUMNS; c++)
        columns[c] = (floatl)(0.0f);
    int fresh = 1;
    lookahead next;
    choose_rows(&next, shuffled ? &order : 0, base, first + begin, end - begin);
#if PARTS && !SHARED
    if (shuffled)
        place_rows(&next, pieces, part);
#endif
    do { /* once even without rows: the gradient is always written */
        uint count = next.rows;
#if SHARED
        x[0] = shared_x + (size_t)begin * row_distance(layer_width[0]);
        labels = shared_labels + (size_t)begin * LABEL_WORDS;
        choose_rows(&next, 0, 0, 0, end - begin - count);
        (void)mean, (void)scale, (void)base;
#else
        (void)shared_x, (void)shared_labels;
        for (uint i = 0; i < count; i++)
            GATHER_ROW(next.row[i], x[0] + i * row_distance(layer_width[0]),
                       labels + i * LABEL_WORDS, mean, scale, 0);
        choose_rows(&next, shuffled ? &order : 0, base, first + begin + count,
                    end - begin - count);
#if PARTS
        if (shuffled)
            place_rows(&next, pieces, part);
#endif
        for (uint i = 0; LOOKAHEAD && i < next.rows; i++)
            next.words[i] = SHARD_ROW(next.row[i]);
#endif
        for (uint l = 0; l < LAYERS; l++) {
            uint in = layer_width[l], out = layer_width[l + 1];
            int hidden = l + 1 < LAYERS;
            forward(count, in, out, x[l], panels + weights_at[l] + (size_t)run * in * out,
                    parameters + biases_at[l] + run * out, hidden * RELU, x[l + 1], &next);
            if (hidden)
                activate(count, out, x[l + 1], pre[l + 1]);
            if (DROPOUT && hidden && trains)
                drop_block(count, out, x[l + 1], noise, begin, step, l, settings.dropout);
        }
        uint z_ld = row_distance(layer_width[LAYERS]);
        for (uint i = 0; i < count; i += LANES)
            masked_log_softmax_rows(x[LAYERS] + i * z_ld, z_ld, min(count - i, (uint)LANES),
                                    labels + i * LABEL_WORDS, head_weights + run * HEADS,
                                    action_weights + run * head_offset[HEADS],
                                    settings.label_smoothing, share, e, columns);
        for (uint l = LAYERS; trains && l-- > 0;) {
            uint in = layer_width[l], out = layer_width[l + 1];
            size_t weights = weights_at[l] + (size_t)run * in * out;
            weight_gradient(count, in, out, x[l], x[l + 1], own + weights,
                            own + biases_at[l] + run * out, fresh, &next);
            if (l == 0)
                break;
            input_gradient(count, in, out, x[l + 1], turned + weights, pre[l], x[l], &next);
            if (DROPOUT)
                drop_block(count, in, x[l], noise, begin, step, l - 1, settings.dropout);
        }
        while (LOOKAHEAD && next.done < next.rows) /* a small network has few tiles */
            look_ahead(&next);
        fresh = 0;
        begin += count;
    } while (begin < end);
    for (uint c = 0; c < METRIC_COLUMNS; c++)
        partial[slot * METRIC_COLUMNS + c] = lanes_sum(columns[c]);
}

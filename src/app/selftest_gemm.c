/* Self-test: the three products of a dense layer, through every back end and variant. */
#include "selftest.h"

#include "alloc.h"
#include "gemm_trial.h"

#include <stdlib.h>

/* Neither is a multiple of a tile; enough rows for a weight gradient in slices. */
enum { RUNS = 2, IN = 21, OUT = 65, ROWS = 130 };

typedef enum product { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PRODUCTS } product;

/* Operands and results of one back end, every run behind the other; padding is as good as any
 * number here. */
typedef struct bench {
    mimus__gemm_backend *backend;
    mimus__gemm_layer layer;              /* padded */
    uint32_t rows;                        /* padded */
    float *x, *weight, *bias, *g, *saved; /* operands on the host */
    mimus__buffer device_x, device_weight, device_bias, device_g, device_saved;
    mimus__buffer y, pre, d, dweight, dbias; /* results */
    float *got;                              /* the largest result */
    double *want, *want_pre;
} bench;

/* ------------------------------------------------------------------- set-up */

static mimus_status operand(float **host, mimus__buffer *buffer, mimus__device *device,
                            size_t floats, uint64_t stream) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.seed = 5, .stream = stream};
    MIMUS_TRY(mimus__alloc(host, floats, sizeof **host));
    for (size_t i = 0; i < floats; i++)
        (*host)[i] = mimus__selftest_random(&rng);
    MIMUS_TRY(mimus__selftest_upload(buffer, device, *host, floats * sizeof **host));
out:
    return status;
}

static mimus_status results(bench *b, mimus__device *device, size_t x, size_t y, size_t weight,
                            size_t bias) {
    mimus_status status = MIMUS_OK;
    static const char what[] = "the self-test";
    size_t splits = b->backend->splits, more = (splits - 1) * weight;
    MIMUS_TRY(mimus__buffer_new(&b->y, device, y * sizeof(float), what));
    MIMUS_TRY(mimus__buffer_new(&b->pre, device, y * sizeof(float), what));
    MIMUS_TRY(mimus__buffer_new(&b->d, device, x * sizeof(float), what));
    /* slices of the biases' gradient lie as far apart as those of the weights' */
    MIMUS_TRY(mimus__buffer_new(&b->dweight, device, (more + weight) * sizeof(float), what));
    MIMUS_TRY(mimus__buffer_new(&b->dbias, device, (more + bias) * sizeof(float), what));
    size_t largest = x > y ? x : y;
    largest = largest > more + weight ? largest : more + weight;
    MIMUS_TRY(mimus__alloc(&b->got, largest, sizeof *b->got));
    MIMUS_TRY(mimus__alloc(&b->want, largest, sizeof *b->want));
    MIMUS_TRY(mimus__alloc(&b->want_pre, y, sizeof *b->want_pre));
out:
    return status;
}

static const mimus__gemm_layer layers[] = {{.runs = RUNS, .in = IN, .out = OUT}};
static const mimus__gemm_problem problem = {layers, 1, ROWS};

static mimus_status make_bench(bench *b, mimus__device *device, const mimus__gemm_type *type,
                               uint32_t variant) {
    mimus_status status = MIMUS_OK;
    *b = (bench){0};
    MIMUS_TRY(type->open(&b->backend, device, &problem, variant));
    b->backend->type = type;
    b->layer = mimus__gemm_padded(b->backend, layers[0]);
    b->rows = mimus__round_up(ROWS, b->backend->row_pad);
    size_t x = (size_t)RUNS * b->rows * b->layer.in, y = (size_t)RUNS * b->rows * b->layer.out;
    size_t weight = (size_t)RUNS * b->layer.in * b->layer.out, bias = (size_t)RUNS * b->layer.out;
    MIMUS_TRY(operand(&b->x, &b->device_x, device, x, 0));
    MIMUS_TRY(operand(&b->weight, &b->device_weight, device, weight, 1));
    MIMUS_TRY(operand(&b->bias, &b->device_bias, device, bias, 2));
    MIMUS_TRY(operand(&b->g, &b->device_g, device, y, 3));
    MIMUS_TRY(operand(&b->saved, &b->device_saved, device, x, 4));
    MIMUS_TRY(results(b, device, x, y, weight, bias));
out:
    return status;
}

static void clear(bench *b) {
    mimus__buffer *buffers[] = {
        &b->device_x, &b->device_weight, &b->device_bias, &b->device_g, &b->device_saved,
        &b->y,        &b->pre,           &b->d,           &b->dweight,  &b->dbias};
    if (b->backend != NULL)
        b->backend->type->close(b->backend);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        mimus__buffer_free(buffers[i]);
    free(b->x);
    free(b->weight);
    free(b->bias);
    free(b->g);
    free(b->saved);
    free(b->got);
    free(b->want);
    free(b->want_pre);
}

static mimus__matrix matrix(const mimus__buffer *buffer, size_t stride) {
    return (mimus__matrix){.buffer = buffer, .stride = stride};
}

/* Compare a result, the sum of `splits` slices, with `want`: the others are taken away from `want`
 * first. */
static mimus_status compare(bench *b, const char *what, const mimus__buffer *result, size_t floats,
                            double *want, uint32_t splits, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    size_t stride = (size_t)RUNS * b->layer.in * b->layer.out;
    size_t bytes = floats * sizeof(float);
    for (uint32_t z = 1; z < splits; z++) {
        MIMUS_TRY(mimus__buffer_read(result, z * stride * sizeof(float), b->got, bytes));
        for (size_t i = 0; i < floats; i++)
            want[i] -= (double)b->got[i];
    }
    MIMUS_TRY(mimus__buffer_read(result, 0, b->got, bytes));
    mimus__verdict_array(verdict, what, b->got, want, floats);
out:
    return status;
}

/* ----------------------------------------------------------------- products */

/* x W + b into want_pre, and f of it into want. */
static void expect_forward(bench *b, mimus__activation activation) {
    uint32_t in = b->layer.in, out = b->layer.out;
    for (size_t row = 0; row < (size_t)RUNS * b->rows; row++) {
        const float *x = b->x + row * in;
        const float *weight = b->weight + row / b->rows * in * out;
        const float *bias = b->bias + row / b->rows * out;
        for (uint32_t n = 0; n < out; n++) {
            double sum = (double)bias[n];
            for (uint32_t k = 0; k < in; k++)
                sum += (double)x[k] * (double)weight[(size_t)k * out + n];
            b->want_pre[row * out + n] = sum;
            b->want[row * out + n] = mimus__reference_activate(activation, sum);
        }
    }
}

static mimus_status forward(bench *b, mimus__activation activation, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    size_t in = b->layer.in, out = b->layer.out, floats = (size_t)RUNS * b->rows * out;
    mimus__matrix pre = matrix(&b->pre, b->rows * out);
    mimus__gemm_forward_call call = {.layer = b->layer,
                                     .rows = b->rows,
                                     .x = matrix(&b->device_x, b->rows * in),
                                     .weight = matrix(&b->device_weight, in * out),
                                     .bias = matrix(&b->device_bias, out),
                                     .activation = activation,
                                     .y = matrix(&b->y, b->rows * out),
                                     .pre = activation == MIMUS__GELU ? &pre : NULL};
    MIMUS_TRY(b->backend->type->forward(b->backend, &call));
    expect_forward(b, activation);
    MIMUS_TRY(compare(b, "f(X W + b)", &b->y, floats, b->want, 1, verdict));
    if (call.pre != NULL)
        MIMUS_TRY(compare(b, "X W + b", &b->pre, floats, b->want_pre, 1, verdict));
out:
    return status;
}

/* f' of an output as training keeps it: relu's and tanh's outputs, gelu's sums. */
static double slope(mimus__activation activation, double saved) {
    if (activation == MIMUS__TANH)
        return 1 - saved * saved;
    return mimus__reference_slope(activation, saved);
}

static void expect_input_gradient(bench *b, mimus__activation activation) {
    uint32_t in = b->layer.in, out = b->layer.out;
    for (size_t row = 0; row < (size_t)RUNS * b->rows; row++) {
        const float *g = b->g + row * out;
        const float *weight = b->weight + row / b->rows * in * out;
        for (uint32_t k = 0; k < in; k++) {
            double sum = 0;
            for (uint32_t n = 0; n < out; n++)
                sum += (double)g[n] * (double)weight[(size_t)k * out + n];
            b->want[row * in + k] = sum * slope(activation, (double)b->saved[row * in + k]);
        }
    }
}

static mimus_status input_gradient(bench *b, mimus__activation activation,
                                   mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    size_t in = b->layer.in, out = b->layer.out;
    mimus__gemm_input_call call = {.layer = b->layer,
                                   .rows = b->rows,
                                   .g = matrix(&b->device_g, b->rows * out),
                                   .weight = matrix(&b->device_weight, in * out),
                                   .activation = activation,
                                   .saved = matrix(&b->device_saved, b->rows * in),
                                   .saved_is_pre = activation == MIMUS__GELU,
                                   .d = matrix(&b->d, b->rows * in)};
    MIMUS_TRY(b->backend->type->input_gradient(b->backend, &call));
    expect_input_gradient(b, activation);
    MIMUS_TRY(compare(b, "(G W') f'", &b->d, (size_t)RUNS * b->rows * in, b->want, 1, verdict));
out:
    return status;
}

static void expect_weight_gradient(bench *b) {
    uint32_t in = b->layer.in, out = b->layer.out;
    for (size_t at = 0; at < (size_t)RUNS * in * out; at++) {
        size_t run = at / in / out, k = at / out % in, n = at % out;
        double sum = 0;
        for (size_t m = run * b->rows; m < (run + 1) * b->rows; m++)
            sum += (double)b->x[m * in + k] * (double)b->g[m * out + n];
        b->want[at] = sum;
    }
}

static void expect_bias_gradient(bench *b) {
    uint32_t out = b->layer.out;
    for (size_t at = 0; at < (size_t)RUNS * out; at++) {
        double sum = 0;
        for (size_t m = at / out * b->rows; m < (at / out + 1) * b->rows; m++)
            sum += (double)b->g[m * out + at % out];
        b->want[at] = sum;
    }
}

static mimus_status weight_gradient(bench *b, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    size_t in = b->layer.in, out = b->layer.out, floats = RUNS * in * out;
    uint32_t splits = b->backend->splits;
    mimus__gemm_weight_call call = {.layer = b->layer,
                                    .rows = b->rows,
                                    .x = matrix(&b->device_x, b->rows * in),
                                    .g = matrix(&b->device_g, b->rows * out),
                                    .weight = matrix(&b->dweight, in * out),
                                    .bias = matrix(&b->dbias, out),
                                    .split_stride = floats};
    MIMUS_TRY(b->backend->type->weight_gradient(b->backend, &call));
    expect_weight_gradient(b);
    MIMUS_TRY(compare(b, "X' G", &b->dweight, floats, b->want, splits, verdict));
    expect_bias_gradient(b);
    MIMUS_TRY(compare(b, "sum of G", &b->dbias, RUNS * out, b->want, splits, verdict));
out:
    return status;
}

/* -------------------------------------------------------------------- checks */

static mimus_status multiply(bench *b, product which, mimus__verdict *verdict) {
    static const mimus__activation activations[] = {MIMUS__IDENTITY, MIMUS__RELU, MIMUS__TANH,
                                                    MIMUS__GELU};
    mimus_status status = MIMUS_OK;
    if (which == WEIGHT_GRADIENT)
        return weight_gradient(b, verdict);
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (which == FORWARD)
            MIMUS_TRY(forward(b, activations[i], verdict));
        else if (activations[i] != MIMUS__IDENTITY) /* hidden layers have one */
            MIMUS_TRY(input_gradient(b, activations[i], verdict));
    }
out:
    return status;
}

mimus_status mimus__selftest_product(mimus__device *device, const mimus__selftest_sample *sample,
                                     int variant, mimus__verdict *verdict) {
    static const mimus__gemm_type *const types[] = {&mimus__gemm_tile, &mimus__gemm_clblast};
    const mimus__gemm_type *type = types[variant / PRODUCTS];
    mimus_status status = MIMUS_OK;
    bench b = {0};
    (void)sample;
    const char *unsuited = type->unsuited(device); /* nor will training use it by itself */
    if (unsuited != NULL)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s", unsuited);
    uint32_t settings = type->variants(device, &problem);
    for (uint32_t setting = 0; setting < settings; setting++) {
        MIMUS_TRY(make_bench(&b, device, type, setting));
        MIMUS_TRY(multiply(&b, (product)(variant % PRODUCTS), verdict));
        clear(&b);
        b = (bench){0};
    }
out:
    clear(&b);
    return status;
}

mimus_status mimus__selftest_naive(mimus__device *device, const mimus__selftest_sample *sample,
                                   int variant, mimus__verdict *verdict) {
    mimus_status status = MIMUS_OK;
    mimus__gemm_backend *backend = NULL;
    double seconds;
    (void)sample, (void)variant, (void)verdict;
    MIMUS_TRY(mimus__gemm_tile.open(&backend, device, &problem, 0));
    backend->type = &mimus__gemm_tile;
    MIMUS_TRY(mimus__gemm_try(backend, &problem, &seconds));
out:
    mimus__gemm_tile.close(backend);
    return status;
}

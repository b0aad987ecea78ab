#include "gemm_trial.h"

#include "alloc.h"
#include "clock.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 3, MIN_ROWS = 1024, REPEATS = 5, WIDTH = 16 };

/* Multiply-adds of a step that two cores do several times over, naively too, in about a second. */
static const uint64_t step_limit = (uint64_t)1 << 30;

/* The matrices of the largest layer, each in a buffer of its own. */
typedef struct trial {
    mimus__gemm_backend *backend;
    mimus__device *device;
    uint32_t rows;
    mimus__buffer x, weight, bias, g;   /* small integers */
    mimus__buffer y, d, dweight, dbias; /* the back end's results */
    mimus__buffer y_want, d_want, dweight_want, dbias_want;
    mimus__program program;
    mimus__kernel forward, input_gradient, weight_gradient;
    float *got, *want; /* of the largest result */
} trial;

/* ------------------------------------------------------------------------- set-up */

static mimus__gemm_layer trial_layer(const mimus__gemm_backend *backend, mimus__gemm_layer layer) {
    layer.runs = layer.runs < MAX_RUNS ? layer.runs : MAX_RUNS;
    return mimus__gemm_padded(backend, layer);
}

static uint32_t trial_rows(const mimus__gemm_backend *backend, const mimus__gemm_problem *problem) {
    uint64_t each_row = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        mimus__gemm_layer layer = trial_layer(backend, problem->layers[i]);
        each_row += (uint64_t)3 * layer.runs * layer.in * layer.out;
    }
    uint64_t rows = step_limit / (each_row > 0 ? each_row : 1);
    rows = rows > MIN_ROWS ? rows : MIN_ROWS;
    rows = rows < problem->rows ? rows : problem->rows;
    return mimus__round_up((uint32_t)rows, backend->row_pad);
}

/* Uniform integers of [-bound, bound]. */
static mimus_status fill(mimus__buffer *buffer, size_t floats, int bound, uint64_t stream) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.stream = stream};
    float *numbers = NULL;
    MIMUS_TRY(mimus__alloc(&numbers, floats, sizeof *numbers));
    for (size_t i = 0; i < floats; i++)
        numbers[i] = (float)(mimus__rng_u32(&rng) % (uint32_t)(2 * bound + 1)) - (float)bound;
    MIMUS_TRY(mimus__buffer_write(buffer, 0, numbers, floats * sizeof *numbers));
out:
    free(numbers);
    return status;
}

static mimus_status input(mimus__buffer *buffer, mimus__device *device, size_t floats, int bound,
                          uint64_t stream) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__buffer_new(buffer, device, floats * sizeof(float), "a GEMM trial"));
    MIMUS_TRY(fill(buffer, floats, bound, stream));
out:
    return status;
}

static mimus_status outputs(mimus__buffer *got, mimus__buffer *want, mimus__device *device,
                            size_t floats, size_t more) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__buffer_new(got, device, (more + floats) * sizeof(float), "a GEMM trial"));
    MIMUS_TRY(mimus__buffer_new(want, device, floats * sizeof(float), "a GEMM trial"));
out:
    return status;
}

static mimus_status build(trial *t) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__program_build(&t->program, t->device, "gemm_naive.cl", NULL));
    MIMUS_TRY(mimus__kernel_new(&t->forward, &t->program, "naive_forward"));
    MIMUS_TRY(mimus__kernel_new(&t->input_gradient, &t->program, "naive_input_gradient"));
    MIMUS_TRY(mimus__kernel_new(&t->weight_gradient, &t->program, "naive_weight_gradient"));
out:
    return status;
}

static mimus_status trial_init(trial *t, mimus__gemm_backend *backend,
                               const mimus__gemm_problem *problem) {
    mimus_status status = MIMUS_OK;
    size_t in = 0, out = 0, runs = 1, weights = 0;
    *t = (trial){.backend = backend, .device = backend->device};
    t->rows = trial_rows(backend, problem);
    for (uint32_t i = 0; i < problem->count; i++) {
        mimus__gemm_layer layer = trial_layer(backend, problem->layers[i]);
        in = layer.in > in ? layer.in : in;
        out = layer.out > out ? layer.out : out;
        runs = layer.runs > runs ? layer.runs : runs;
        size_t here = (size_t)layer.in * layer.out;
        weights = here > weights ? here : weights;
    }
    size_t x = runs * t->rows * in, y = runs * t->rows * out, w = runs * weights;
    /* every partial sum of the longest dot product stays an exact float */
    size_t depth = t->rows > in ? t->rows : in;
    depth = depth > out ? depth : out;
    int bound = (int)sqrt((double)(1 << 24) / (double)(depth + 1));
    bound = bound > 31 ? 31 : bound < 1 ? 1 : bound;
    MIMUS_TRY(input(&t->x, t->device, x, bound, 0));
    MIMUS_TRY(input(&t->weight, t->device, w, bound, 1));
    MIMUS_TRY(input(&t->bias, t->device, runs * out, bound, 2));
    MIMUS_TRY(input(&t->g, t->device, y, bound, 3));
    /* partial sums lie as far apart for the biases as for the weights */
    size_t more = (backend->splits - 1) * w;
    MIMUS_TRY(outputs(&t->y, &t->y_want, t->device, y, 0));
    MIMUS_TRY(outputs(&t->d, &t->d_want, t->device, x, 0));
    MIMUS_TRY(outputs(&t->dweight, &t->dweight_want, t->device, w, more));
    MIMUS_TRY(outputs(&t->dbias, &t->dbias_want, t->device, runs * out, more));
    size_t largest = x > y ? x : y;
    largest = largest > w + more ? largest : w + more;
    MIMUS_TRY(mimus__alloc(&t->got, largest, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&t->want, largest, sizeof(float)));
    MIMUS_TRY(build(t));
out:
    return status;
}

static void trial_clear(trial *t) {
    mimus__buffer *buffers[] = {&t->x,      &t->weight, &t->bias,         &t->g,
                                &t->y,      &t->d,      &t->dweight,      &t->dbias,
                                &t->y_want, &t->d_want, &t->dweight_want, &t->dbias_want};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        mimus__buffer_free(buffers[i]);
    mimus__kernel_free(&t->forward);
    mimus__kernel_free(&t->input_gradient);
    mimus__kernel_free(&t->weight_gradient);
    mimus__program_free(&t->program);
    free(t->got);
    free(t->want);
}

/* ----------------------------------------------------------------------- products */

static mimus__matrix dense(const mimus__buffer *buffer, size_t stride) {
    return (mimus__matrix){buffer, 0, stride};
}

static mimus_status fast_forward(trial *t, mimus__gemm_layer layer) {
    size_t in = layer.in, out = layer.out;
    mimus__gemm_forward_call call = {.layer = layer,
                                     .rows = t->rows,
                                     .x = dense(&t->x, t->rows * in),
                                     .weight = dense(&t->weight, in * out),
                                     .bias = dense(&t->bias, out),
                                     .activation = MIMUS__RELU,
                                     .y = dense(&t->y, t->rows * out)};
    return t->backend->type->forward(t->backend, &call);
}

static mimus_status fast_input_gradient(trial *t, mimus__gemm_layer layer) {
    size_t in = layer.in, out = layer.out;
    mimus__gemm_input_call call = {.layer = layer,
                                   .rows = t->rows,
                                   .g = dense(&t->g, t->rows * out),
                                   .weight = dense(&t->weight, in * out),
                                   .activation = MIMUS__RELU,
                                   .saved = dense(&t->x, t->rows * in),
                                   .d = dense(&t->d, t->rows * in)};
    return t->backend->type->input_gradient(t->backend, &call);
}

static size_t split_stride(const mimus__gemm_layer *layer) {
    return (size_t)layer->runs * layer->in * layer->out;
}

static mimus_status fast_weight_gradient(trial *t, mimus__gemm_layer layer) {
    size_t in = layer.in, out = layer.out;
    mimus__gemm_weight_call call = {.layer = layer,
                                    .rows = t->rows,
                                    .x = dense(&t->x, t->rows * in),
                                    .g = dense(&t->g, t->rows * out),
                                    .weight = dense(&t->dweight, in * out),
                                    .bias = dense(&t->dbias, out),
                                    .split_stride = split_stride(&layer)};
    return t->backend->type->weight_gradient(t->backend, &call);
}

static mimus_status naive_forward(trial *t, mimus__gemm_layer layer) {
    mimus__grid grid = {{layer.out / WIDTH, t->rows, layer.runs}, {1, 1, 1}};
    return mimus__launch(&t->forward, grid, MIMUS_ARG_U32(layer.in), MIMUS_ARG_U32(layer.out),
                         MIMUS_ARG_BUFFER(&t->x), MIMUS_ARG_BUFFER(&t->weight),
                         MIMUS_ARG_BUFFER(&t->bias), MIMUS_ARG_BUFFER(&t->y_want));
}

static mimus_status naive_input_gradient(trial *t, mimus__gemm_layer layer) {
    mimus__grid grid = {{layer.in, t->rows, layer.runs}, {WIDTH, 1, 1}};
    return mimus__launch(&t->input_gradient, grid, MIMUS_ARG_U32(layer.in),
                         MIMUS_ARG_U32(layer.out), MIMUS_ARG_BUFFER(&t->g),
                         MIMUS_ARG_BUFFER(&t->weight), MIMUS_ARG_BUFFER(&t->x),
                         MIMUS_ARG_BUFFER(&t->d_want));
}

static mimus_status naive_weight_gradient(trial *t, mimus__gemm_layer layer) {
    mimus__grid grid = {{layer.out / WIDTH, layer.in, layer.runs}, {1, 1, 1}};
    return mimus__launch(&t->weight_gradient, grid, MIMUS_ARG_U32(t->rows),
                         MIMUS_ARG_U32(layer.out), MIMUS_ARG_BUFFER(&t->x), MIMUS_ARG_BUFFER(&t->g),
                         MIMUS_ARG_BUFFER(&t->dweight_want), MIMUS_ARG_BUFFER(&t->dbias_want));
}

/* ---------------------------------------------------------------------- comparison */

/* `got` has `splits` summands a `stride` apart. */
static mimus_status compare(trial *t, const char *what, const mimus__gemm_layer *layer,
                            const mimus__buffer *got, const mimus__buffer *want, size_t floats,
                            uint32_t splits, size_t stride) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__buffer_read(want, 0, t->want, floats * sizeof(float)));
    MIMUS_TRY(mimus__buffer_read(got, 0, t->got, ((splits - 1) * stride + floats) * sizeof(float)));
    for (size_t i = 0; i < floats; i++) {
        float sum = t->got[i];
        for (uint32_t z = 1; z < splits; z++)
            sum += t->got[z * stride + i];
        if (!(sum == t->want[i])) {
            status = mimus__fail(MIMUS_ERR_DEVICE,
                                 "wrong %s of a layer of %u x %u at %u rows, %u runs: element %zu "
                                 "is %g, not %g",
                                 what, (unsigned)layer->in, (unsigned)layer->out, (unsigned)t->rows,
                                 (unsigned)layer->runs, i, (double)sum, (double)t->want[i]);
            goto out;
        }
    }
out:
    return status;
}

static mimus_status verify(trial *t, mimus__gemm_layer layer) {
    mimus_status status = MIMUS_OK;
    size_t rows = (size_t)layer.runs * t->rows, weights = split_stride(&layer);
    uint32_t splits = t->backend->splits;
    MIMUS_TRY(mimus__device_check_stop(t->device));
    MIMUS_TRY(naive_forward(t, layer));
    MIMUS_TRY(fast_forward(t, layer));
    MIMUS_TRY(compare(t, "forward product", &layer, &t->y, &t->y_want, rows * layer.out, 1, 0));
    MIMUS_TRY(naive_input_gradient(t, layer));
    MIMUS_TRY(fast_input_gradient(t, layer));
    MIMUS_TRY(compare(t, "input gradient", &layer, &t->d, &t->d_want, rows * layer.in, 1, 0));
    MIMUS_TRY(naive_weight_gradient(t, layer));
    MIMUS_TRY(fast_weight_gradient(t, layer));
    MIMUS_TRY(compare(t, "weight gradient", &layer, &t->dweight, &t->dweight_want, weights, splits,
                      weights));
    MIMUS_TRY(compare(t, "bias gradient", &layer, &t->dbias, &t->dbias_want,
                      (size_t)layer.runs * layer.out, splits, weights));
out:
    return status;
}

static mimus_status run_step(trial *t, const mimus__gemm_problem *problem) {
    mimus_status status = MIMUS_OK;
    for (uint32_t i = 0; i < problem->count; i++) {
        mimus__gemm_layer layer = trial_layer(t->backend, problem->layers[i]);
        MIMUS_TRY(fast_forward(t, layer));
        if (i > 0) /* senses need no gradient */
            MIMUS_TRY(fast_input_gradient(t, layer));
        MIMUS_TRY(fast_weight_gradient(t, layer));
    }
    MIMUS_TRY(mimus__device_finish(t->device));
out:
    return status;
}

mimus_status mimus__gemm_try(mimus__gemm_backend *backend, const mimus__gemm_problem *problem,
                             double *seconds) {
    mimus_status status = MIMUS_OK;
    trial t;
    *seconds = INFINITY;
    MIMUS_TRY(trial_init(&t, backend, problem));
    for (uint32_t i = 0; i < problem->count; i++)
        MIMUS_TRY(verify(&t, trial_layer(backend, problem->layers[i])));
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        MIMUS_TRY(mimus__device_check_stop(t.device));
        double start = mimus__clock_seconds();
        MIMUS_TRY(run_step(&t, problem));
        double spent = mimus__clock_seconds() - start;
        *seconds = spent < *seconds ? spent : *seconds;
    }
out:
    trial_clear(&t);
    return status;
}

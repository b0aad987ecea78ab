/* The products of a dense layer: every back end against double precision, and the choice of one. */
#include "compare.h"
#include "support.h"

#include "alloc.h"
#include "file.h"
#include "gemm_backend.h"
#include "rng.h"
#include "text.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mimus__device *device;

static void setup(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
    /* after the device: PoCL keeps its compiled kernels under the first value */
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", test_folder(), 1), 0);
}

static void teardown(void) {
    mimus__device_close(device);
    test_folder_remove();
}

/* ------------------------------------------------------------------- back ends */

/* Every back end in every variant, each as a back end of its own. */
static mimus_status open_group(mimus__gemm_backend **out, mimus__device *on,
                               const mimus__gemm_problem *problem, uint32_t variant) {
    (void)variant;
    return mimus__gemm_tile_open(out, on, problem, (mimus__gemm_tile_shape){0, 0, 0});
}

static mimus_status open_second_tile(mimus__gemm_backend **out, mimus__device *on,
                                     const mimus__gemm_problem *problem, uint32_t variant) {
    (void)variant;
    return mimus__gemm_tile.open(out, on, problem, 1);
}

static mimus_status open_batched(mimus__gemm_backend **out, mimus__device *on,
                                 const mimus__gemm_problem *problem, uint32_t variant) {
    (void)variant;
    return mimus__gemm_clblast.open(out, on, problem, 1);
}

static uint32_t one_variant(const mimus__device *on, const mimus__gemm_problem *problem) {
    (void)on;
    (void)problem;
    return 1;
}

enum { TILE, SECOND_TILE, GROUP_TILE, CLBLAST, CLBLAST_BATCHED, BACKENDS };

static mimus__gemm *open_gemm(int which, const mimus__gemm_layer *layers, uint32_t count,
                              uint32_t rows) {
    static mimus__gemm_type type; /* outlives the gemm */
    const mimus__gemm_type *types[] = {&type};
    mimus__gemm_problem problem = {layers, count, rows};
    mimus__gemm *gemm;
    type = which < CLBLAST ? mimus__gemm_tile : mimus__gemm_clblast;
    type.variants = one_variant;
    if (which == SECOND_TILE)
        type.open = open_second_tile;
    if (which == GROUP_TILE)
        type.open = open_group;
    if (which == CLBLAST_BATCHED)
        type.open = open_batched;
    test_ok(mimus__gemm_new_from(&gemm, device, MIMUS__GEMM_AUTO, &problem, types, 1));
    return gemm;
}

/* -------------------------------------------------------------------- matrices */

/* A matrix of R runs among guards: GUARD floats before and behind, and `slack` behind every run,
 * all of a pattern. Inputs are known on the host; outputs are checked against doubles. */
enum { GUARD = 2 * MIMUS__MATRIX_ALIGN };

typedef struct array {
    mimus__buffer buffer;
    mimus__matrix matrix;
    float *host;    /* (total) */
    float *pattern; /* (total) as it was before */
    size_t runs, each, total;
} array;

/* `extra` floats follow the runs, for further splits. */
static void array_new(array *a, uint32_t runs, size_t each, size_t slack, size_t extra) {
    *a = (array){.runs = runs, .each = each};
    a->total = runs * (each + slack) + extra + 2 * GUARD;
    test_ok(mimus__alloc(&a->host, a->total, sizeof(float)));
    test_ok(mimus__alloc(&a->pattern, a->total, sizeof(float)));
    canary_fill(a->pattern, 0, a->total * sizeof(float));
    memcpy(a->host, a->pattern, a->total * sizeof(float));
    test_ok(mimus__buffer_new(&a->buffer, device, a->total * sizeof(float), "test"));
    test_ok(mimus__buffer_write(&a->buffer, 0, a->host, a->total * sizeof(float)));
    a->matrix = (mimus__matrix){&a->buffer, GUARD, each + slack};
}

static void array_free(array *a) {
    mimus__buffer_free(&a->buffer);
    free(a->host);
    free(a->pattern);
}

/* Run `run` on the host. */
static float *numbers(const array *a, size_t run) {
    return a->host + GUARD + run * a->matrix.stride;
}

/* (R, rows, width), uniform in [-1, 1) where there is a real row and column, else `outside`. */
typedef struct extent {
    uint32_t rows, padded_rows, width, padded_width;
} extent;

static void random_input(array *a, uint32_t runs, extent e, size_t slack, float outside,
                         uint64_t stream) {
    mimus__rng rng = {.seed = 7, .stream = stream};
    array_new(a, runs, (size_t)e.padded_rows * e.padded_width, slack, 0);
    for (size_t r = 0; r < runs; r++) {
        for (size_t i = 0; i < a->each; i++) {
            size_t column = i % e.padded_width, row = i / e.padded_width;
            bool real = column < e.width && row < e.rows;
            float value = (float)mimus__rng_u32(&rng) * 0x1p-31f - 1;
            numbers(a, r)[i] = real ? value : column < e.width ? outside : 0;
        }
    }
    test_ok(mimus__buffer_write(&a->buffer, 0, a->host, a->total * sizeof(float)));
}

/* What lies from float `begin` to `end` is as it was. */
static void check_untouched(const char *what, const array *a, size_t begin, size_t end) {
    compare_check_bytes(what, a->host + begin, a->pattern + begin, (end - begin) * sizeof(float));
}

/* Read an output of one split back; what lies around the runs is untouched. */
static void fetch(const char *what, array *a) {
    size_t end = GUARD;
    test_ok(mimus__buffer_read(&a->buffer, 0, a->host, a->total * sizeof(float)));
    check_untouched(what, a, 0, GUARD);
    for (size_t r = 0; r < a->runs; r++) {
        end = GUARD + r * a->matrix.stride + a->each;
        if (r + 1 < a->runs)
            check_untouched(what, a, end, GUARD + (r + 1) * a->matrix.stride);
    }
    check_untouched(what, a, end, a->total);
}

static double *doubles(size_t count) {
    double *out;
    test_ok(mimus__alloc(&out, count, sizeof *out));
    return out;
}

/* float32 sums of `depth` products of numbers in [-1, 1). */
static compare_tolerance tolerance(size_t depth) {
    return (compare_tolerance){1e-5, 1e-6 + 1e-7 * (double)depth};
}

/* ------------------------------------------------------------------- reference */

static double activate(mimus__activation kind, double x) {
    switch (kind) {
    case MIMUS__RELU:
        return x > 0 ? x : 0;
    case MIMUS__TANH:
        return tanh(x);
    case MIMUS__GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    default:
        return x;
    }
}

static double slope(mimus__activation kind, double saved, bool saved_is_pre) {
    const double pi = 3.14159265358979323846;
    double y = kind == MIMUS__TANH && saved_is_pre ? tanh(saved) : saved;
    switch (kind) {
    case MIMUS__RELU:
        return saved > 0;
    case MIMUS__TANH:
        return 1 - y * y;
    case MIMUS__GELU:
        return 0.5 * (1 + erf(saved / sqrt(2))) + saved * exp(-saved * saved / 2) / sqrt(2 * pi);
    default:
        return 1;
    }
}

/* ----------------------------------------------------------------------- cases */

typedef struct product_case {
    mimus__gemm *gemm;
    uint32_t runs, in, out, rows; /* unpadded */
    mimus__activation activation;
    bool pre;     /* forward keeps it; backward saves it */
    bool shared;  /* one X for all runs */
    size_t slack; /* floats between the runs of what has rows */
} product_case;

static const char *label(const char *what, const product_case *c) {
    static char text[128];
    snprintf(text, sizeof text, "%s of %u x %u, %u rows, %u runs, activation %d%s%s", what, c->in,
             c->out, c->rows, c->runs, (int)c->activation, c->pre ? ", pre" : "",
             c->shared ? ", shared X" : "");
    return text;
}

/* The layer and its padded extents. */
typedef struct padded_case {
    mimus__gemm_layer layer;
    uint32_t rows;
    extent x, w, b, y;
} padded_case;

static padded_case pad(const product_case *c) {
    uint32_t width_pad = mimus__gemm_width_pad(c->gemm);
    padded_case p;
    p.rows = mimus__round_up(c->rows, mimus__gemm_row_pad(c->gemm));
    p.layer = (mimus__gemm_layer){c->runs, mimus__round_up(c->in, width_pad),
                                  mimus__round_up(c->out, width_pad)};
    p.x = (extent){c->rows, p.rows, c->in, p.layer.in};
    p.w = (extent){c->in, p.layer.in, c->out, p.layer.out};
    p.b = (extent){1, 1, c->out, p.layer.out};
    p.y = (extent){c->rows, p.rows, c->out, p.layer.out};
    return p;
}

/* Twice, into fresh guards: both must give the same bits. */
static void same_bits(const char *what, const array *a, const array *b) {
    compare_check_bytes(what, a->host, b->host, a->total * sizeof(float));
}

static void check_forward(const product_case *c) {
    padded_case p = pad(c);
    uint32_t rows = p.rows, in = p.layer.in, width = p.layer.out;
    size_t each = (size_t)rows * width;
    array x, w, b, y[2], pre[2];
    random_input(&x, c->shared ? 1 : c->runs, p.x, c->slack, 0.5f, 1);
    random_input(&w, c->runs, p.w, 0, 0, 2);
    random_input(&b, c->runs, p.b, 0, 0, 3);
    if (c->shared)
        x.matrix.stride = 0;
    for (int i = 0; i < 2; i++) {
        array_new(&y[i], c->runs, each, c->slack, 0);
        array_new(&pre[i], c->runs, each, c->slack, 0);
        test_ok(mimus__gemm_forward(c->gemm, &p.layer, rows, x.matrix, w.matrix, b.matrix,
                                    c->activation, y[i].matrix, c->pre ? &pre[i].matrix : NULL));
        fetch(label("Y", c), &y[i]);
        if (c->pre)
            fetch(label("X W + b", c), &pre[i]);
    }
    same_bits(label("Y", c), &y[0], &y[1]);
    same_bits(label("X W + b", c), &pre[0], &pre[1]);
    double *want = doubles(each);
    for (size_t r = 0; r < c->runs; r++) {
        const float *xr = numbers(&x, r), *wr = numbers(&w, r);
        for (size_t i = 0; i < each; i++)
            want[i] = (double)numbers(&b, r)[i % width];
        for (size_t m = 0; m < rows; m++)
            for (size_t k = 0; k < in; k++)
                for (size_t n = 0; n < width; n++)
                    want[m * width + n] += (double)xr[m * in + k] * (double)wr[k * width + n];
        if (c->pre)
            compare_check_floats(label("X W + b", c), numbers(pre, r), want, rows, width,
                                 tolerance(in));
        for (size_t i = 0; i < each; i++)
            want[i] = activate(c->activation, want[i]);
        compare_check_floats(label("Y", c), numbers(y, r), want, rows, width, tolerance(in));
    }
    free(want);
    for (int i = 0; i < 2; i++) {
        array_free(&y[i]);
        array_free(&pre[i]);
    }
    array_free(&x);
    array_free(&w);
    array_free(&b);
}

static void check_input_gradient(const product_case *c) {
    padded_case p = pad(c);
    uint32_t rows = p.rows, in = p.layer.in, width = p.layer.out;
    size_t each = (size_t)rows * in;
    array g, w, saved, d[2];
    random_input(&g, c->runs, p.y, c->slack, 0, 4);
    random_input(&w, c->runs, p.w, 0, 0, 5);
    random_input(&saved, c->runs, p.x, c->slack, 0.5f, 6);
    for (int i = 0; i < 2; i++) {
        array_new(&d[i], c->runs, each, c->slack, 0);
        test_ok(mimus__gemm_input_gradient(c->gemm, &p.layer, rows, g.matrix, w.matrix,
                                           c->activation, saved.matrix, c->pre, d[i].matrix));
        fetch(label("D", c), &d[i]);
    }
    same_bits(label("D", c), &d[0], &d[1]);
    double *want = doubles(each);
    for (size_t r = 0; r < c->runs; r++) {
        const float *gr = numbers(&g, r), *wr = numbers(&w, r), *sr = numbers(&saved, r);
        for (size_t i = 0; i < each; i++) {
            double sum = 0;
            for (size_t n = 0; n < width; n++)
                sum += (double)gr[i / in * width + n] * (double)wr[i % in * width + n];
            want[i] = sum * slope(c->activation, (double)sr[i], c->pre);
        }
        compare_check_floats(label("D", c), numbers(d, r), want, rows, in, tolerance(width));
    }
    free(want);
    array_free(&d[0]);
    array_free(&d[1]);
    array_free(&g);
    array_free(&w);
    array_free(&saved);
}

/* The sum of a result's splits; what lies between two of them is untouched. */
static double *sum_splits(const char *what, array *a, uint32_t splits, size_t stride) {
    size_t floats = a->runs * a->each, end = GUARD;
    double *sum = doubles(floats);
    test_ok(mimus__buffer_read(&a->buffer, 0, a->host, a->total * sizeof(float)));
    check_untouched(what, a, 0, GUARD);
    for (size_t z = 0; z < splits; z++) {
        for (size_t i = 0; i < floats; i++)
            sum[i] += (double)a->host[GUARD + z * stride + i];
        end = GUARD + z * stride + floats;
        if (z + 1 < splits)
            check_untouched(what, a, end, GUARD + (z + 1) * stride);
    }
    check_untouched(what, a, end, a->total);
    return sum;
}

static void check_weight_gradient(const product_case *c) {
    padded_case p = pad(c);
    uint32_t rows = p.rows, in = p.layer.in, width = p.layer.out;
    uint32_t splits = mimus__gemm_splits(c->gemm);
    size_t weights = (size_t)in * width;
    size_t stride = c->runs * weights + 3 * MIMUS__MATRIX_ALIGN, extra = (splits - 1) * stride;
    array x, g, v[2], b[2];
    double *got[2], *got_bias[2];
    random_input(&x, c->shared ? 1 : c->runs, p.x, c->slack, 0.5f, 8);
    random_input(&g, c->runs, p.y, c->slack, 0, 9);
    if (c->shared)
        x.matrix.stride = 0;
    for (int i = 0; i < 2; i++) {
        array_new(&v[i], c->runs, weights, 0, extra);
        array_new(&b[i], c->runs, width, 0, extra);
        test_ok(mimus__gemm_weight_gradient(c->gemm, &p.layer, rows, x.matrix, g.matrix,
                                            v[i].matrix, b[i].matrix, stride));
        got[i] = sum_splits(label("V", c), &v[i], splits, stride);
        got_bias[i] = sum_splits(label("c", c), &b[i], splits, stride);
    }
    same_bits(label("V", c), &v[0], &v[1]);
    same_bits(label("c", c), &b[0], &b[1]);
    for (size_t r = 0; r < c->runs; r++) {
        const float *xr = numbers(&x, r), *gr = numbers(&g, r);
        double *want = doubles(weights), *want_bias = doubles(width);
        for (size_t m = 0; m < c->rows; m++) {
            for (size_t k = 0; k < in; k++)
                for (size_t n = 0; n < width; n++)
                    want[k * width + n] += (double)xr[m * in + k] * (double)gr[m * width + n];
            for (size_t n = 0; n < width; n++)
                want_bias[n] += (double)gr[m * width + n];
        }
        compare_check_doubles(label("V", c), got[0] + r * weights, want, in, width,
                              tolerance(rows));
        compare_check_doubles(label("c", c), got_bias[0] + r * width, want_bias, 1, width,
                              tolerance(rows));
        free(want);
        free(want_bias);
    }
    for (int i = 0; i < 2; i++) {
        array_free(&v[i]);
        array_free(&b[i]);
        free(got[i]);
        free(got_bias[i]);
    }
    array_free(&x);
    array_free(&g);
}

static void check_products(const product_case *c) {
    check_forward(c);
    check_input_gradient(c);
    check_weight_gradient(c);
}

/* ----------------------------------------------------------------------- tests */

/* The reference takes its time: not every size with every other. */
static bool is_worth_it(const product_case *c) {
    padded_case p = pad(c);
    bool edge = c->rows == 63 || c->rows == 64;
    uint64_t work = (uint64_t)c->runs * p.rows * p.layer.in * p.layer.out;
    return work < 16000000 && (!edge || (c->in == 63 && c->runs != 3));
}

static const mimus__gemm_layer layers[] = {
    {8, 1, 63}, {8, 63, 65}, {8, 65, 1}, {8, 143, 64}, {8, 1000, 1}};
enum { LAYERS = 5, ROWS = 1000 };

static void check_awkward_sizes(mimus__gemm *gemm) {
    static const uint32_t rows[] = {1, 63, 64, 65, ROWS}, runs[] = {1, 3, 8};
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t i = 0; i < 15; i++) {
            product_case c = {.gemm = gemm,
                              .runs = runs[i / 5],
                              .in = layers[l].in,
                              .out = layers[l].out,
                              .rows = rows[i % 5],
                              .activation = MIMUS__RELU};
            if (is_worth_it(&c))
                check_products(&c);
        }
    }
}

static void check_activations(mimus__gemm *gemm) {
    for (int i = 0; i < 8; i++) {
        product_case c = {.gemm = gemm,
                          .runs = 2,
                          .in = 63,
                          .out = 65,
                          .rows = 70,
                          .activation = (mimus__activation)(i / 2),
                          .pre = i % 2 == 1};
        check_forward(&c);
        if (c.activation != MIMUS__GELU || c.pre)
            check_input_gradient(&c);
    }
}

static void check_shared_input(mimus__gemm *gemm) {
    product_case c = {.gemm = gemm, .runs = 3, .in = 143, .out = 64, .rows = 100, .shared = true};
    check_forward(&c);
    check_weight_gradient(&c);
}

static void check_short_batch(mimus__gemm *gemm) {
    product_case c = {.gemm = gemm,
                      .runs = 3,
                      .in = 63,
                      .out = 65,
                      .rows = 100,
                      .activation = MIMUS__RELU,
                      .slack = 6400};
    check_products(&c);
}

/* relu must not turn a NaN into a harmless 0. */
static void check_nan(mimus__gemm *gemm) {
    product_case c = {.gemm = gemm, .runs = 1, .in = 65, .out = 1, .rows = 64};
    padded_case p = pad(&c);
    array x, w, b, y;
    random_input(&x, 1, p.x, 0, 0, 1);
    random_input(&w, 1, p.w, 0, 0, 2);
    random_input(&b, 1, p.b, 0, 0, 3);
    array_new(&y, 1, (size_t)p.rows * p.layer.out, 0, 0);
    float nan = NAN;
    size_t at = GUARD + 5 * p.layer.in + 7;
    test_ok(mimus__buffer_write(&x.buffer, at * sizeof nan, &nan, sizeof nan));
    test_ok(mimus__gemm_forward(gemm, &p.layer, p.rows, x.matrix, w.matrix, b.matrix, MIMUS__RELU,
                                y.matrix, NULL));
    fetch("Y", &y);
    for (size_t i = 0; i < y.each; i++)
        ck_assert_int_eq(isnan(numbers(&y, 0)[i]) != 0, i / p.layer.out == 5);
    array_free(&x);
    array_free(&w);
    array_free(&b);
    array_free(&y);
}

static void check_arguments(mimus__gemm *gemm) {
    product_case c = {.gemm = gemm, .runs = 2, .in = 63, .out = 65, .rows = 100};
    padded_case p = pad(&c);
    array x, w, b, y;
    random_input(&x, 2, p.x, 0, 0, 1);
    random_input(&w, 2, p.w, 0, 0, 2);
    random_input(&b, 2, p.b, 0, 0, 3);
    array_new(&y, 2, (size_t)p.rows * p.layer.out, 0, 0);
#define FORWARD(layer, rows, x, y)                                                                 \
    mimus__gemm_forward(gemm, (layer), (rows), (x), w.matrix, b.matrix, MIMUS__RELU, (y), NULL)
    test_ok(FORWARD(&p.layer, p.rows, x.matrix, y.matrix));
    if (mimus__gemm_row_pad(gemm) == 64)
        test_fails(FORWARD(&p.layer, 100, x.matrix, y.matrix), MIMUS_ERR_ARGUMENT,
                   "a multiple of 64");
    test_fails(FORWARD(&p.layer, 20 * p.rows, x.matrix, y.matrix), MIMUS_ERR_ARGUMENT, "at most");
    test_fails(FORWARD(&p.layer, 0, x.matrix, y.matrix), MIMUS_ERR_ARGUMENT, "0 rows");
    mimus__gemm_layer wider = p.layer, more = p.layer;
    wider.in += 64;
    more.runs = 9;
    test_fails(FORWARD(&wider, p.rows, x.matrix, y.matrix), MIMUS_ERR_ARGUMENT, "no such");
    test_fails(FORWARD(&more, p.rows, x.matrix, y.matrix), MIMUS_ERR_ARGUMENT, "no such");
    mimus__matrix late = y.matrix, crooked = x.matrix, apart = x.matrix;
    late.offset += GUARD + MIMUS__MATRIX_ALIGN;
    crooked.offset += 8;
    apart.stride -= 64;
    test_fails(FORWARD(&p.layer, p.rows, x.matrix, late), MIMUS_ERR_ARGUMENT, "Y ends at float");
    test_fails(FORWARD(&p.layer, p.rows, crooked, y.matrix), MIMUS_ERR_ARGUMENT, "X at offset");
    test_fails(FORWARD(&p.layer, p.rows, apart, y.matrix), MIMUS_ERR_ARGUMENT, "stride");
#undef FORWARD
    test_fails(mimus__gemm_input_gradient(gemm, &p.layer, p.rows, y.matrix, w.matrix, MIMUS__GELU,
                                          x.matrix, false, x.matrix),
               MIMUS_ERR_ARGUMENT, "gelu");
    array_free(&x);
    array_free(&w);
    array_free(&b);
    array_free(&y);
}

/* One opening for all: where nothing keeps compiled kernels, CLBlast's take half a minute. */
START_TEST(products) {
    mimus__gemm *gemm = open_gemm(_i, layers, LAYERS, ROWS);
    check_awkward_sizes(gemm);
    check_activations(gemm);
    check_shared_input(gemm);
    check_short_batch(gemm);
    check_nan(gemm);
    check_arguments(gemm);
    mimus__gemm_free(gemm);
}
END_TEST

START_TEST(sizes_past_clblast_are_refused) {
    const mimus__gemm_layer layer = {8, 64, 64};
    mimus__gemm_problem problem = {&layer, 1, 1u << 22};
    mimus__gemm_backend *backend;
    test_fails(mimus__gemm_clblast.open(&backend, device, &problem, 0), MIMUS_ERR_UNSUPPORTED,
               "2^31");
    ck_assert_ptr_null(backend);
}
END_TEST

/* ------------------------------------------------------------ the choice of one */

static const mimus__gemm_layer small_layers[] = {{2, 20, 33}, {2, 33, 7}};
static const mimus__gemm_problem small_problem = {small_layers, 2, 100};

static bool cached(const mimus__gemm *gemm) {
    json_t *report = mimus__gemm_report(gemm);
    bool is = json_is_true(json_object_get(report, "cached"));
    json_decref(report);
    return is;
}

static mimus__gemm *open_small(mimus__gemm_kind kind) {
    mimus__gemm *gemm;
    test_ok(mimus__gemm_new(&gemm, device, kind, small_layers, 2, 100));
    return gemm;
}

/* The one cache file there is. */
static char *cache_file(void) {
    char *folder, *path = NULL;
    test_ok(mimus__file_cache_folder(&folder));
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strncmp(entry->d_name, "gemm-", 5) != 0)
            continue;
        ck_assert_ptr_null(path);
        mimus_status formatted = mimus__text_format(&path, "%s/%s", folder, entry->d_name);
        test_ok(formatted);
    }
    closedir(listing);
    free(folder);
    ck_assert_ptr_nonnull(path);
    return path;
}

/* Kernels as for a GPU, which is where both are tried. */
static void as_a_gpu(void) {
    ck_assert_int_eq(setenv("MIMUS_GEOMETRY", "gpu", 1), 0);
}

START_TEST(the_choice_is_remembered) {
    as_a_gpu();
    mimus__gemm *first = open_small(MIMUS__GEMM_AUTO);
    ck_assert(!cached(first));
    ck_assert_int_ne(mimus__gemm_chosen(first), MIMUS__GEMM_AUTO);
    json_t *report = mimus__gemm_report(first);
    const char *chosen = json_string_value(json_object_get(report, "chosen"));
    ck_assert_ptr_nonnull(chosen);
    ck_assert(json_is_real(json_object_get(json_object_get(report, "tile"), "seconds")));
    ck_assert(json_is_string(json_object_get(json_object_get(report, "clblast"), "parameters")));
    mimus__gemm *second = open_small(MIMUS__GEMM_AUTO);
    ck_assert(cached(second));
    ck_assert_int_eq(mimus__gemm_chosen(second), mimus__gemm_chosen(first));
    ck_assert_uint_eq(mimus__gemm_width_pad(second), mimus__gemm_width_pad(first));
    ck_assert_uint_eq(mimus__gemm_splits(second), mimus__gemm_splits(first));
    mimus__gemm *forced = open_small(MIMUS__GEMM_TILE); /* another question, another answer */
    ck_assert(!cached(forced));
    ck_assert_int_eq(mimus__gemm_chosen(forced), MIMUS__GEMM_TILE);
    json_decref(report);
    mimus__gemm_free(first);
    mimus__gemm_free(second);
    mimus__gemm_free(forced);
}
END_TEST

/* Put `content` where the cache was; the next start must not take it, and must mend it. */
static void refuses_cache(const char *path, const char *content, const json_t *key) {
    json_t *mended;
    test_ok(mimus__file_replace(path, content, strlen(content)));
    mimus__gemm *gemm = open_small(MIMUS__GEMM_TILE);
    ck_assert_msg(!cached(gemm), "took %s", content);
    mimus__gemm_free(gemm);
    test_ok(mimus__json_read(&mended, path));
    ck_assert(json_equal(json_object_get(mended, "key"), key));
    json_decref(mended);
}

/* The cache file with one member of an object in it replaced. */
static char *forged(const char *path, const char *object, const char *key, json_t *value) {
    json_t *content;
    char *text;
    test_ok(mimus__json_read(&content, path));
    json_t *parent = json_object_get(content, object);
    if (parent == NULL)
        parent = json_object_get(json_object_get(content, "report"), object);
    test_ok(mimus__json_set(parent, key, value));
    test_ok(mimus__json_text(&text, content, 0));
    json_decref(content);
    return text;
}

START_TEST(a_damaged_cache_is_ignored_and_mended) {
    mimus__gemm_free(open_small(MIMUS__GEMM_TILE));
    char *path = cache_file();
    json_t *whole;
    test_ok(mimus__json_read(&whole, path));
    const json_t *key = json_object_get(whole, "key");
    char *forgeries[] = {
        forged(path, "key", "driver", json_string("another")),
        forged(path, "report", "chosen", json_string("clblast")),
        forged(path, "tile", "variant", json_integer(77)),
        forged(path, "tile", "parameters", json_string("5 x 5 float5")),
    };
    refuses_cache(path, "{\"key\": {", key);
    refuses_cache(path, "[3]", key);
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        refuses_cache(path, forgeries[i], key);
        free(forgeries[i]);
    }
    mimus__gemm *gemm = open_small(MIMUS__GEMM_TILE);
    ck_assert(cached(gemm));
    mimus__gemm_free(gemm);
    ck_assert_int_eq(unlink(path), 0); /* a pipe that nobody writes into */
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    gemm = open_small(MIMUS__GEMM_TILE);
    ck_assert(!cached(gemm));
    mimus__gemm_free(gemm);
    json_decref(whole);
    free(path);
}
END_TEST

START_TEST(without_a_cache_folder_every_start_is_a_first) {
    const char *in_the_way = test_folder_path("file");
    test_ok(mimus__file_replace(in_the_way, "", 0));
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", in_the_way, 1), 0);
    for (int i = 0; i < 2; i++) {
        mimus__gemm *gemm = open_small(MIMUS__GEMM_TILE);
        ck_assert(!cached(gemm));
        mimus__gemm_free(gemm);
    }
}
END_TEST

START_TEST(a_missing_library_is_a_missing_back_end) {
    mimus__gemm *gemm;
    ck_assert_int_eq(setenv("MIMUS_CLBLAST", "libnone.so.7", 1), 0);
    test_fails(mimus__gemm_new(&gemm, device, MIMUS__GEMM_CLBLAST, small_layers, 2, 100),
               MIMUS_ERR_UNSUPPORTED, "cannot open MIMUS_CLBLAST: libnone.so.7");
    ck_assert_ptr_null(gemm);
    as_a_gpu();
    gemm = open_small(MIMUS__GEMM_AUTO);
    ck_assert_int_eq(mimus__gemm_chosen(gemm), MIMUS__GEMM_TILE);
    json_t *report = mimus__gemm_report(gemm);
    const char *reason =
        json_string_value(json_object_get(json_object_get(report, "clblast"), "skipped"));
    ck_assert_ptr_nonnull(strstr(reason, "cannot open MIMUS_CLBLAST: libnone.so.7"));
    json_decref(report);
    mimus__gemm_free(gemm);
    /* once it is there, it is tried */
    ck_assert_int_eq(unsetenv("MIMUS_CLBLAST"), 0);
    gemm = open_small(MIMUS__GEMM_AUTO);
    ck_assert(!cached(gemm));
    mimus__gemm_free(gemm);
}
END_TEST

START_TEST(another_library_is_no_back_end) {
    mimus__gemm *gemm;
    ck_assert_int_eq(setenv("MIMUS_CLBLAST", "libm.so.6", 1), 0);
    test_fails(mimus__gemm_new(&gemm, device, MIMUS__GEMM_CLBLAST, small_layers, 2, 100),
               MIMUS_ERR_UNSUPPORTED, "libm.so.6 lacks CLBlast");
}
END_TEST

/* Back ends that are fast and wrong: each leaves out one product, or one element of it. */
static mimus_status nothing_forward(mimus__gemm_backend *backend,
                                    const mimus__gemm_forward_call *call) {
    (void)backend;
    (void)call;
    return MIMUS_OK;
}

static mimus_status nothing_input(mimus__gemm_backend *backend,
                                  const mimus__gemm_input_call *call) {
    (void)backend;
    (void)call;
    return MIMUS_OK;
}

/* Right but for the last element of the last run, which is NaN. */
static mimus_status nan_weight(mimus__gemm_backend *backend, const mimus__gemm_weight_call *call) {
    mimus_status status = mimus__gemm_tile.weight_gradient(backend, call);
    size_t last = call->weight.offset + call->layer.runs * call->weight.stride - 1;
    if (status == MIMUS_OK)
        status = mimus__buffer_fill(call->weight.buffer, last * sizeof(float), 0x7fc00000, 4);
    return status;
}

/* Right but for the second run's first bias. */
static mimus_status off_bias(mimus__gemm_backend *backend, const mimus__gemm_weight_call *call) {
    mimus_status status = mimus__gemm_tile.weight_gradient(backend, call);
    size_t at = call->bias.offset + call->bias.stride;
    if (status == MIMUS_OK)
        status = mimus__buffer_fill(call->bias.buffer, at * sizeof(float), 0x3f000000, 4);
    return status;
}

static mimus_status fails_to_open(mimus__gemm_backend **out, mimus__device *on,
                                  const mimus__gemm_problem *problem, uint32_t variant) {
    (void)on;
    (void)problem;
    (void)variant;
    *out = NULL;
    return mimus__fail(MIMUS_ERR_DEVICE, "does not build");
}

START_TEST(a_wrong_back_end_is_never_chosen) {
    static const char *const complaints[] = {"wrong forward product", "wrong input gradient",
                                             "wrong weight gradient", "wrong bias gradient",
                                             "does not build"};
    mimus__gemm_type wrong = mimus__gemm_tile;
    wrong.name = "wrong";
    wrong.kind = MIMUS__GEMM_CLBLAST;
    wrong.variants = one_variant;
    switch (_i) {
    case 0:
        wrong.forward = nothing_forward;
        break;
    case 1:
        wrong.input_gradient = nothing_input;
        break;
    case 2:
        wrong.weight_gradient = nan_weight;
        break;
    case 3:
        wrong.weight_gradient = off_bias;
        break;
    default:
        wrong.open = fails_to_open;
    }
    const mimus__gemm_type *types[] = {&wrong, &mimus__gemm_tile};
    mimus__gemm *gemm;
    test_ok(mimus__gemm_new_from(&gemm, device, MIMUS__GEMM_AUTO, &small_problem, types, 2));
    ck_assert_int_eq(mimus__gemm_chosen(gemm), MIMUS__GEMM_TILE);
    json_t *report = mimus__gemm_report(gemm);
    const char *error =
        json_string_value(json_object_get(json_object_get(report, "wrong"), "error"));
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error, complaints[_i]) != NULL, "%s", error);
    json_decref(report);
    mimus__gemm_free(gemm);
    /* forced, it is an error; and so when all are wrong, naming each */
    test_fails(mimus__gemm_new_from(&gemm, device, MIMUS__GEMM_CLBLAST, &small_problem, types, 2),
               MIMUS_ERR_DEVICE, complaints[_i]);
    mimus__gemm_type other = wrong;
    other.name = "other";
    types[1] = &other;
    test_fails(mimus__gemm_new_from(&gemm, device, MIMUS__GEMM_AUTO, &small_problem, types, 2),
               MIMUS_ERR_DEVICE, "no GEMM back end is right");
    ck_assert(strstr(mimus_last_error(), "; wrong: ") != NULL);
    ck_assert(strstr(mimus_last_error(), "; other: ") != NULL);
    ck_assert_ptr_null(gemm);
}
END_TEST

START_TEST(a_cpu_is_spared_clblast) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    mimus__gemm *gemm = open_small(MIMUS__GEMM_AUTO);
    ck_assert_int_eq(mimus__gemm_chosen(gemm), MIMUS__GEMM_TILE);
    json_t *report = mimus__gemm_report(gemm), *clblast = json_object_get(report, "clblast");
    ck_assert(json_is_string(json_object_get(clblast, "skipped")));
    ck_assert_uint_eq(json_object_size(clblast), 1);
    json_decref(report);
    mimus__gemm_free(gemm);
}
END_TEST

START_TEST(trials_leave_no_memory_behind) {
    uint64_t before = mimus__device_bytes(device);
    mimus__gemm_free(open_small(MIMUS__GEMM_TILE));
    ck_assert_uint_eq(mimus__device_bytes(device), before);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gemm");
    TCase *right = tcase_create("products"), *choice = tcase_create("choice");
    tcase_add_checked_fixture(right, setup, teardown);
    tcase_add_loop_test(right, products, 0, BACKENDS);
    tcase_add_test(right, sizes_past_clblast_are_refused);
    suite_add_tcase(suite, right);
    tcase_add_checked_fixture(choice, setup, teardown);
    tcase_add_test(choice, the_choice_is_remembered);
    tcase_add_test(choice, a_damaged_cache_is_ignored_and_mended);
    tcase_add_test(choice, without_a_cache_folder_every_start_is_a_first);
    tcase_add_test(choice, a_missing_library_is_a_missing_back_end);
    tcase_add_test(choice, another_library_is_no_back_end);
    tcase_add_loop_test(choice, a_wrong_back_end_is_never_chosen, 0, 5);
    tcase_add_test(choice, a_cpu_is_spared_clblast);
    tcase_add_test(choice, trials_leave_no_memory_behind);
    suite_add_tcase(suite, choice);
    return test_run(suite);
}

/* The fused masked log-softmax against the double-precision reference: loss, gradient, metrics. */
#include "compare.h"
#include "reference.h"
#include "support.h"

#include "hyper.clh"
#include "loss.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mimus__device *device;

static void open_device(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
}

static void close_device(void) {
    mimus__device_close(device);
}

/* A batch of random logits, labels and masks in every form that the tests need. */
typedef struct loss_case {
    mimus_schema schema;
    mimus_head heads[16];
    uint32_t actions[16];
    uint32_t total, width, rows, capacity, runs;
    mimus__row_layout layout;
    float *logits;    /* (runs, capacity, width) */
    uint32_t *labels; /* (runs, capacity, label words) */
    uint16_t *plain;  /* (runs, capacity, H) */
    uint32_t *masks;  /* (runs, capacity, W), or NULL */
    float *weights;   /* (runs, capacity) */
    float *head_weights, *action_weights;
} loss_case;

static void make_case(loss_case *c, uint32_t heads, const uint32_t *actions, bool masks,
                      bool weights, uint32_t rows, uint32_t runs) {
    *c = (loss_case){.rows = rows, .runs = runs};
    mimus__rng rng = {.seed = heads * 1000 + rows, .stream = runs};
    for (uint32_t h = 0; h < heads; h++) {
        c->heads[h] = (mimus_head){.name = "h", .actions = actions[h]};
        c->actions[h] = actions[h];
        c->total += actions[h];
    }
    c->schema = (mimus_schema){
        .senses = 1, .heads = heads, .head = c->heads, .masks = masks, .weights = weights};
    c->layout = mimus__row_layout_of(&c->schema, 1, MIMUS__STORE_F32);
    c->width = mimus__round_up(c->total, 16);
    c->capacity = rows + 5;
    size_t all = (size_t)runs * c->capacity, words = c->layout.mask_words;
    c->logits = calloc(all * c->width, sizeof *c->logits);
    c->labels = calloc(all * c->layout.label_words, sizeof *c->labels);
    c->plain = calloc(all * heads, sizeof *c->plain);
    c->masks = masks ? calloc(all * words, sizeof *c->masks) : NULL;
    c->weights = calloc(all, sizeof *c->weights);
    c->head_weights = calloc((size_t)runs * heads, sizeof *c->head_weights);
    c->action_weights = calloc((size_t)runs * c->total, sizeof *c->action_weights);
    for (size_t i = 0; i < (size_t)runs * heads; i++)
        c->head_weights[i] = 0.5f + (float)mimus__rng_uniform(&rng);
    for (size_t i = 0; i < (size_t)runs * c->total; i++)
        c->action_weights[i] = 0.5f + (float)mimus__rng_uniform(&rng);
    for (size_t i = 0; i < all; i++) {
        uint32_t *label_words = c->labels + i * c->layout.label_words;
        float *z = c->logits + i * c->width;
        uint32_t first = 0;
        c->weights[i] = weights ? 0.25f + (float)mimus__rng_uniform(&rng) : 1.0f;
        for (uint32_t h = 0; h < heads; first += actions[h], h++) {
            uint32_t label = (uint32_t)mimus__rng_below(&rng, actions[h]);
            bool illegal_head = masks && mimus__rng_below(&rng, 20) == 0;
            for (uint32_t a = 0; a < actions[h]; a++) {
                /* now and then far apart, so that exponentials vanish */
                float spread = mimus__rng_below(&rng, 8) == 0 ? 300.0f : 6.0f;
                z[first + a] = ((float)mimus__rng_uniform(&rng) - 0.5f) * spread;
                bool legal = !illegal_head && (a == label || mimus__rng_below(&rng, 3) > 0);
                if (masks && legal)
                    c->masks[i * words + (first + a) / 32] |= 1u << (first + a) % 32;
            }
            if (mimus__rng_below(&rng, 10) == 0)
                label = MIMUS_NO_LABEL;
            c->plain[i * heads + h] = (uint16_t)label;
            label_words[h / 2] |= label << (h % 2 * 16);
        }
        if (masks)
            memcpy(label_words + c->layout.action_words, c->masks + i * words, words * 4);
        if (weights)
            memcpy(label_words + c->layout.weight_word, &c->weights[i], 4);
    }
}

static void clear_case(loss_case *c) {
    free(c->logits);
    free(c->labels);
    free(c->plain);
    free(c->masks);
    free(c->weights);
    free(c->head_weights);
    free(c->action_weights);
}

/* The reference's answer for one run: gradient (rows, total) and a metrics row. */
static void expect(const loss_case *c, uint32_t run, double smoothing, double *dlogits,
                   double *metrics) {
    mimus__reference_network network;
    const uint32_t hidden[1] = {0};
    mimus__shape shape =
        mimus__reference_shape(1, 1, 0, hidden, MIMUS__RELU, c->schema.heads, c->actions);
    test_ok(mimus__reference_init(&network, &shape, c->schema.heads, c->actions, c->rows));
    double *head_weights = calloc(c->schema.heads, sizeof(double));
    double *class_weights = calloc(c->total, sizeof(double));
    for (uint32_t h = 0; h < c->schema.heads; h++)
        head_weights[h] = (double)c->head_weights[run * c->schema.heads + h];
    for (uint32_t a = 0; a < c->total; a++)
        class_weights[a] = (double)c->action_weights[run * c->total + a];
    network.rules.label_smoothing = smoothing;
    network.rules.head_weights = head_weights;
    network.rules.class_weights = class_weights;
    double *logits = calloc((size_t)c->rows * c->total, sizeof(double));
    size_t base = (size_t)run * c->capacity;
    for (uint32_t i = 0; i < c->rows; i++) {
        for (uint32_t a = 0; a < c->total; a++)
            logits[(size_t)i * c->total + a] = (double)c->logits[(base + i) * c->width + a];
    }
    float nothing = 0;
    mimus__reference_batch batch = {
        .rows = c->rows,
        .senses = &nothing,
        .actions = c->plain + base * c->schema.heads,
        .masks = c->masks != NULL ? c->masks + base * c->layout.mask_words : NULL,
        .weights = c->weights + base,
    };
    mimus__reference_result result;
    mimus__reference_loss(&network, &batch, logits, &result, dlogits);
    metrics[0] = result.loss;
    for (uint32_t h = 0; h < c->schema.heads; h++) {
        metrics[1 + 3 * h] = result.nll[h];
        metrics[2 + 3 * h] = result.hits[h];
        metrics[3 + 3 * h] = result.labelled[h];
    }
    free(logits);
    free(head_weights);
    free(class_weights);
    mimus__reference_clear(&network);
}

/* Run the kernel; `gradient` (runs, capacity, width), `metrics` (runs, columns) summed in double.
 */
static void compute(const loss_case *c, float smoothing, float *gradient, double *metrics) {
    mimus__buffer hyper, logits, labels;
    mimus__hyper settings[3] = {{.label_smoothing = smoothing},
                                {.label_smoothing = smoothing},
                                {.label_smoothing = smoothing}};
    size_t all = (size_t)c->runs * c->capacity;
    size_t logit_bytes = all * c->width * 4, label_bytes = all * c->layout.label_words * 4;
    mimus__loss *loss;
    test_ok(mimus__buffer_new(&hyper, device, sizeof settings, "settings"));
    test_ok(mimus__buffer_write(&hyper, 0, settings, sizeof settings));
    test_ok(mimus__buffer_new(&logits, device, logit_bytes, "logits"));
    test_ok(mimus__buffer_write(&logits, 0, c->logits, logit_bytes));
    test_ok(mimus__buffer_new(&labels, device, label_bytes, "labels"));
    test_ok(mimus__buffer_write(&labels, 0, c->labels, label_bytes));
    test_ok(mimus__loss_new(&loss, device, &c->schema, &c->layout, &hyper, NULL, false, c->runs,
                            c->capacity, c->width));
    for (uint32_t r = 0; r < c->runs; r++)
        test_ok(mimus__loss_weigh(loss, r, c->head_weights + r * c->schema.heads,
                                  c->action_weights + r * c->total));
    mimus__matrix matrix = {.buffer = &logits, .stride = (size_t)c->capacity * c->width};
    test_ok(mimus__loss_run(loss, c->rows, c->rows, matrix, &labels));
    test_ok(mimus__buffer_read(&logits, 0, gradient, logit_bytes));
    uint32_t columns = mimus__loss_columns(loss), groups = mimus__loss_groups(loss, c->rows);
    size_t partial_floats = (size_t)c->runs * groups * columns;
    float *partial = calloc(partial_floats, sizeof *partial);
    test_ok(mimus__buffer_read(mimus__loss_partial(loss), 0, partial, partial_floats * 4));
    memset(metrics, 0, c->runs * columns * sizeof *metrics);
    for (size_t i = 0; i < partial_floats; i++)
        metrics[i / columns / groups * columns + i % columns] += (double)partial[i];
    free(partial);
    mimus__loss_free(loss);
    mimus__buffer_free(&hyper);
    mimus__buffer_free(&logits);
    mimus__buffer_free(&labels);
}

static void check_case(loss_case *c, float smoothing) {
    size_t all = (size_t)c->runs * c->capacity;
    uint32_t columns = 1 + 3 * c->schema.heads;
    float *gradient = calloc(all * c->width, sizeof *gradient);
    double *metrics = calloc(c->runs * columns, sizeof *metrics);
    double *want = calloc((size_t)c->rows * c->total, sizeof *want);
    double *want_metrics = calloc(columns, sizeof *want_metrics);
    float *dense = calloc((size_t)c->rows * c->total, sizeof *dense);
    compute(c, smoothing, gradient, metrics);
    for (uint32_t r = 0; r < c->runs; r++) {
        expect(c, r, (double)smoothing, want, want_metrics);
        for (uint32_t i = 0; i < c->rows; i++) {
            const float *row = gradient + ((size_t)r * c->capacity + i) * c->width;
            memcpy(dense + (size_t)i * c->total, row, c->total * sizeof(float));
            for (uint32_t j = c->total; j < c->width; j++)
                if (row[j] != 0)
                    ck_abort_msg("padding column %u of row %u is %g", j, i, (double)row[j]);
        }
        compare_check_floats("gradient", dense, want, c->rows, c->total,
                             (compare_tolerance){2e-5, 2e-7 / c->rows});
        compare_check_doubles("metrics", metrics + r * columns, want_metrics, 1, columns,
                              (compare_tolerance){1e-5, 1e-5});
        /* rows past the batch are not touched */
        size_t past = ((size_t)r * c->capacity + c->rows) * c->width;
        compare_check_bytes("rows past the batch", gradient + past, c->logits + past,
                            (size_t)(c->capacity - c->rows) * c->width * sizeof(float));
    }
    free(gradient);
    free(metrics);
    free(want);
    free(want_metrics);
    free(dense);
}

static const uint32_t two_heads[] = {3, 4};
static const uint32_t arena_heads[] = {9, 10, 3, 5, 10, 3, 7};
static const uint32_t wide_head[] = {300};
static const uint32_t odd_heads[] = {2, 31, 33, 64, 65};

static void check_all(void) {
    const struct {
        uint32_t heads;
        const uint32_t *actions;
    } schemas[] = {{2, two_heads}, {7, arena_heads}, {1, wide_head}, {5, odd_heads}};
    const uint32_t rows[] = {1, 63, 64, 65, 1000};
    for (size_t s = 0; s < sizeof schemas / sizeof *schemas; s++) {
        for (int masks = 0; masks < 2; masks++) {
            uint32_t count = rows[(s * 2 + (size_t)masks) % 5];
            loss_case c;
            make_case(&c, schemas[s].heads, schemas[s].actions, masks, s % 2 == 0, count,
                      s == 1 ? 3 : 1);
            check_case(&c, s % 2 == 0 ? 0.0f : 0.1f);
            clear_case(&c);
        }
    }
}

START_TEST(agrees_with_the_reference_as_cpus_run_it) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    check_all();
}
END_TEST

START_TEST(agrees_with_the_reference_as_gpus_run_it) {
    setenv("MIMUS_GEOMETRY", "gpu", 1);
    check_all();
}
END_TEST

START_TEST(repeats_bit_for_bit) {
    loss_case c;
    make_case(&c, 7, arena_heads, true, true, 1000, 1);
    size_t floats = (size_t)c.capacity * c.width;
    float *first = calloc(floats, sizeof *first), *second = calloc(floats, sizeof *second);
    double metrics1[22], metrics2[22];
    compute(&c, 0.1f, first, metrics1);
    compute(&c, 0.1f, second, metrics2);
    compare_check_bytes("gradients", first, second, floats * sizeof *first);
    compare_check_bytes("metrics", metrics1, metrics2, sizeof metrics1);
    free(first);
    free(second);
    clear_case(&c);
}
END_TEST

/* A logit that is not a number must come out as one that is not: the optimizer skips on it. */
START_TEST(nan_stays_nan) {
    loss_case c;
    make_case(&c, 2, two_heads, false, false, 63, 1);
    c.plain[10 * 2] = 1;
    c.labels[10] = 1 | (uint32_t)c.plain[10 * 2 + 1] << 16;
    c.logits[(size_t)10 * c.width + 2] = NAN;
    float *gradient = calloc((size_t)c.capacity * c.width, sizeof *gradient);
    double metrics[7];
    compute(&c, 0.0f, gradient, metrics);
    ck_assert(isnan(metrics[0]));
    ck_assert(isnan(gradient[(size_t)10 * c.width + 2]));
    ck_assert(isfinite(gradient[(size_t)11 * c.width]));
    free(gradient);
    clear_case(&c);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("loss");
    TCase *all = tcase_create("loss");
    tcase_add_checked_fixture(all, open_device, close_device);
    tcase_add_test(all, agrees_with_the_reference_as_cpus_run_it);
    tcase_add_test(all, agrees_with_the_reference_as_gpus_run_it);
    tcase_add_test(all, repeats_bit_for_bit);
    tcase_add_test(all, nan_stays_nan);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

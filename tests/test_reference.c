/* The reference itself: its gradients against differences, its training against PyTorch, its order
 * of rows against plain Python; and the comparisons that use it. */
#include "support.h"

#include "compare.h"
#include "golden.h"
#include "reference.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN MIMUS_TEST_DATA "/golden_pytorch.json"

/* ---------------------------------------------------------------- gradients */

enum { ROWS = 9, HEADS = 3 };
static const uint32_t head_actions[HEADS] = {2, 5, 30}; /* the mask's second word is used */
enum { ACTIONS = 37, WORDS = 2 };

/* A batch of random rows. Row 0 has no label at all, row 1's second head has no legal action, row
 * 2's third no label. */
typedef struct rows {
    float *senses;
    uint16_t actions[ROWS * HEADS];
    uint32_t masks[ROWS * WORDS];
    float weights[ROWS];
} rows;

static float uniform(mimus__rng *rng, double bound) {
    return (float)((2 * mimus__rng_uniform(rng) - 1) * bound);
}

static void allow(rows *r, uint32_t row, uint32_t action, bool legal) {
    uint32_t bit = 1u << action % 32, *word = &r->masks[row * WORDS + action / 32];
    *word = legal ? *word | bit : *word & ~bit;
}

static void rows_fill_head(rows *r, mimus__rng *rng, uint32_t row, uint32_t head, uint32_t begin) {
    uint32_t count = head_actions[head];
    uint32_t label = (uint32_t)mimus__rng_below(rng, count);
    bool barred = row == 1 && head == 1;
    bool unlabelled = row == 0 || barred || (row == 2 && head == 2);
    for (uint32_t a = 0; a < count; a++)
        allow(r, row, begin + a, !barred && (a == label || mimus__rng_below(rng, 3) > 0));
    r->actions[row * HEADS + head] = unlabelled ? MIMUS_NO_LABEL : (uint16_t)label;
}

static void rows_init(rows *r, mimus__rng *rng, uint32_t width) {
    memset(r, 0, sizeof *r);
    r->senses = calloc((size_t)ROWS * width, sizeof *r->senses);
    ck_assert_ptr_nonnull(r->senses);
    for (size_t i = 0; i < (size_t)ROWS * width; i++)
        r->senses[i] = uniform(rng, 2);
    for (uint32_t row = 0; row < ROWS; row++) {
        r->weights[row] = row == 3 ? 0 : 1 + uniform(rng, 0.9);
        uint32_t begin = 0;
        for (uint32_t h = 0; h < HEADS; h++) {
            rows_fill_head(r, rng, row, h, begin);
            begin += head_actions[h];
        }
    }
}

static mimus__reference_batch rows_batch(const rows *r) {
    return (mimus__reference_batch){ROWS, r->senses, r->actions, r->masks, r->weights};
}

static void network_init(mimus__reference_network *network, mimus__rng *rng, uint32_t stack,
                         uint32_t layers, mimus__activation activation) {
    const uint32_t hidden[2] = {7, 6};
    mimus__shape shape =
        mimus__reference_shape(4, stack, layers - 1, hidden, activation, HEADS, head_actions);
    test_ok(mimus__reference_init(network, &shape, HEADS, head_actions, ROWS));
    for (size_t i = 0; i < network->parameters; i++)
        network->parameter[i] = uniform(rng, 0.8);
    for (uint32_t s = 0; s < 4; s++) {
        network->mean[s] = uniform(rng, 0.5);
        network->scale[s] = 1 + uniform(rng, 0.5);
    }
}

/* Every fifth parameter: 5 divides no width, so every row and column of the weights is met. */
static void check_gradient(mimus__reference_network *network, const mimus__reference_batch *batch) {
    size_t n = 0;
    size_t *index = calloc(network->parameters, sizeof *index);
    double *all = calloc(network->parameters, sizeof *all);
    double *got = calloc(network->parameters, sizeof *got);
    double *want = calloc(network->parameters, sizeof *want);
    ck_assert(index != NULL && all != NULL && got != NULL && want != NULL);
    mimus__reference_result result;
    mimus__reference_gradient(network, batch, &result, all);
    ck_assert_double_gt(mimus__reference_norm(network, all), 1e-3);
    for (size_t i = 0; i < network->parameters; i += 5) {
        index[n] = i;
        got[n++] = all[i];
    }
    mimus__reference_gradient_by_differences(network, batch, index, n, want);
    compare_check_doubles("gradient", got, want, 1, n, (compare_tolerance){1e-6, 1e-9});
    free(index);
    free(all);
    free(got);
    free(want);
}

/* Everything that the loss can be asked for, on top of masks, absent labels and sample weights. */
static void check_gradient_rules(uint32_t stack, uint32_t layers, mimus__activation activation) {
    static const double head_weights[HEADS] = {1, 0.25, 2};
    static double class_weights[ACTIONS];
    mimus__rng rng = {.seed = 11, .stream = stack * 16 + layers};
    mimus__reference_network network;
    rows r;
    network_init(&network, &rng, stack, layers, activation);
    rows_init(&r, &rng, 4 * stack);
    for (size_t a = 0; a < ACTIONS; a++)
        class_weights[a] = 1 + uniform(&rng, 0.9);
    mimus__reference_batch batch = rows_batch(&r);
    check_gradient(&network, &batch);
    network.rules.head_weights = head_weights;
    network.rules.class_weights = class_weights;
    network.rules.label_smoothing = 0.2;
    check_gradient(&network, &batch);
    network.rules.dropout = 0.3;
    network.run = 2;
    network.step = 5;
    check_gradient(&network, &batch);
    batch.masks = NULL;
    batch.weights = NULL;
    check_gradient(&network, &batch);
    free(r.senses);
    mimus__reference_clear(&network);
}

START_TEST(gradients_are_the_slopes_of_the_loss) {
    const mimus__activation activations[] = {MIMUS__RELU, MIMUS__TANH, MIMUS__GELU};
    for (uint32_t layers = 1; layers <= 3; layers++)
        for (uint32_t stack = 1; stack <= 3; stack += 2)
            check_gradient_rules(stack, layers, activations[_i]);
}
END_TEST

/* --------------------------------------------------------------------- loss */

/* One head of three actions, no hidden layer: the logits are what the test says. */
static void loss_of(const double *logits, uint16_t label, uint32_t mask, double smoothing,
                    mimus__reference_result *result, double *dlogits) {
    const uint32_t actions = 3;
    const float senses = 0;
    mimus__shape shape = mimus__reference_shape(1, 1, 0, NULL, MIMUS__RELU, 1, &actions);
    mimus__reference_network network;
    test_ok(mimus__reference_init(&network, &shape, 1, &actions, 1));
    network.rules.label_smoothing = smoothing;
    mimus__reference_batch batch = {1, &senses, &label, &mask, NULL};
    mimus__reference_loss(&network, &batch, logits, result, dlogits);
    mimus__reference_clear(&network);
}

START_TEST(loss_is_what_the_formula_says) {
    const double logits[3] = {log(2), log(2), log(4)};
    mimus__reference_result result;
    double dlogits[3];
    loss_of(logits, 1, 7, 0, &result, dlogits); /* p = 1/4 1/4 1/2 */
    ck_assert_double_eq_tol(result.loss, log(4), 1e-15);
    compare_check_doubles("dlogits", dlogits, (double[]){0.25, -0.75, 0.5}, 1, 3,
                          (compare_tolerance){1e-14, 0});
    loss_of(logits, 1, 7, 0.5, &result, dlogits);
    ck_assert_double_eq_tol(result.loss, (log(4) + (log(4) + log(4) + log(2)) / 3) / 2, 1e-15);
    ck_assert_double_eq_tol(result.nll[0], log(4), 1e-15);
    loss_of(logits, 1, 3, 0, &result, dlogits); /* p = 1/2 1/2 0 */
    ck_assert_double_eq_tol(result.loss, log(2), 1e-15);
    ck_assert_double_eq(dlogits[2], 0);
    ck_assert_uint_eq(result.labelled[0], 1);
}
END_TEST

START_TEST(hits_take_the_lowest_of_equals_among_the_legal) {
    const double tied[3] = {9, 1, 1}, huge[3] = {1e4, -1e4, 1e4};
    mimus__reference_result result;
    loss_of(tied, 1, 6, 0, &result, NULL);
    ck_assert_uint_eq(result.hits[0], 1);
    loss_of(tied, 2, 6, 0, &result, NULL);
    ck_assert_uint_eq(result.hits[0], 0);
    ck_assert_uint_eq(result.labelled[0], 1);
    loss_of(huge, 1, 7, 0, &result, NULL);
    ck_assert_double_eq_tol(result.loss, 2e4 + log(2), 1e-9);
}
END_TEST

START_TEST(head_without_label_or_legal_action_counts_for_nothing) {
    const double logits[3] = {1, 2, 3};
    const uint16_t labels[2] = {MIMUS_NO_LABEL, 1};
    const uint32_t masks[2] = {7, 0};
    double dlogits[3] = {5, 5, 5};
    mimus__reference_result result;
    loss_of(logits, labels[_i], masks[_i], 0.1, &result, dlogits);
    ck_assert_double_eq(result.loss, 0);
    ck_assert_double_eq(result.nll[0], 0);
    ck_assert_uint_eq(result.hits[0] + result.labelled[0], 0);
    for (size_t a = 0; a < 3; a++)
        ck_assert_double_eq(dlogits[a], 0);
}
END_TEST

/* ------------------------------------------------------------------- inputs */

START_TEST(stack_repeats_the_first_sample_of_the_episode) {
    const float senses[10] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41}; /* rows 2.. are an episode */
    float got[6];
    mimus__reference_stack(got, senses, 2, 3, 2, 2);
    ck_assert_mem_eq(got, ((float[]){20, 21, 20, 21, 20, 21}), sizeof got);
    mimus__reference_stack(got, senses, 2, 3, 2, 3);
    ck_assert_mem_eq(got, ((float[]){20, 21, 20, 21, 30, 31}), sizeof got);
    mimus__reference_stack(got, senses, 2, 3, 2, 4);
    ck_assert_mem_eq(got, ((float[]){20, 21, 30, 31, 40, 41}), sizeof got);
}
END_TEST

START_TEST(dropout_drops_its_rate_and_only_in_training) {
    unsigned kept = 0;
    for (uint32_t row = 0; row < 100; row++)
        for (uint32_t column = 0; column < 100; column++)
            kept += mimus__reference_dropout_keeps(7, 1, 2, 0, row, column, 0.3);
    ck_assert_uint_gt(kept, 6800); /* 7000 +- 4 deviations of 46 */
    ck_assert_uint_lt(kept, 7200);

    mimus__rng rng = {.seed = 3};
    mimus__reference_network network;
    rows r;
    network_init(&network, &rng, 1, 2, MIMUS__TANH);
    rows_init(&r, &rng, 4);
    mimus__reference_batch batch = rows_batch(&r);
    double plain[ROWS * ACTIONS], used[ROWS * ACTIONS], trained[ROWS * ACTIONS];
    mimus__reference_forward(&network, &batch, true, plain);
    network.rules.dropout = 0.5;
    mimus__reference_forward(&network, &batch, false, used);
    mimus__reference_forward(&network, &batch, true, trained);
    compare_check_bytes("logits in use", used, plain, sizeof plain);
    ck_assert_mem_ne(trained, plain, sizeof plain);
    free(r.senses);
    mimus__reference_clear(&network);
}
END_TEST

/* ---------------------------------------------------------------- optimizer */

static mimus__reference_network small_network(void) {
    const uint32_t actions = 2;
    mimus__shape shape = mimus__reference_shape(1, 1, 0, NULL, MIMUS__RELU, 1, &actions);
    mimus__reference_network network;
    test_ok(mimus__reference_init(&network, &shape, 1, &actions, 1));
    return network;
}

START_TEST(update_that_is_not_finite_changes_nothing) {
    mimus__reference_network network = small_network();
    ck_assert_uint_eq(network.parameters, 4);
    double gradient[4] = {1, -2, 3, 4};
    ck_assert(mimus__reference_update(&network, 1, gradient));
    ck_assert_uint_eq(network.updates, 1);
    /* The first step of Adam is lr whatever the gradient's size. */
    compare_check_doubles("parameters", network.parameter, (double[]){-1e-3, 1e-3, -1e-3, -1e-3}, 1,
                          4, (compare_tolerance){1e-7, 0});
    double before[12];
    memcpy(before, network.parameter, sizeof(double[4]));
    memcpy(before + 4, network.moment1, sizeof(double[4]));
    memcpy(before + 8, network.moment2, sizeof(double[4]));
    ck_assert(!mimus__reference_update(&network, NAN, gradient));
    gradient[2] = INFINITY;
    ck_assert(!mimus__reference_update(&network, 1, gradient));
    gradient[2] = NAN;
    ck_assert(!mimus__reference_update(&network, 1, gradient));
    ck_assert_uint_eq(network.updates, 1);
    ck_assert_mem_eq(before, network.parameter, sizeof(double[4]));
    ck_assert_mem_eq(before + 4, network.moment1, sizeof(double[4]));
    ck_assert_mem_eq(before + 8, network.moment2, sizeof(double[4]));
    mimus__reference_clear(&network);
}
END_TEST

START_TEST(clip_bounds_the_norm_and_leaves_small_gradients) {
    const double gradient[4] = {3, 0, 4, 0};
    for (int tight = 0; tight < 2; tight++) {
        mimus__reference_network network = small_network();
        network.rules.optimizer = MIMUS__SGD;
        network.rules.lr = 1;
        network.rules.clip = tight ? 1 : 6;
        ck_assert_double_eq(mimus__reference_norm(&network, gradient), 5);
        ck_assert(mimus__reference_update(&network, 1, gradient));
        double scale = tight ? 5 : 1;
        compare_check_doubles("step", network.parameter, (double[]){-3 / scale, 0, -4 / scale, 0},
                              1, 4, (compare_tolerance){1e-6, 0});
        mimus__reference_clear(&network);
    }
}
END_TEST

START_TEST(step_counts_also_when_it_is_skipped) {
    mimus__reference_network network = small_network();
    const float senses[2] = {1, NAN};
    const uint16_t action = 1;
    mimus__reference_result result;
    for (size_t i = 0; i < 2; i++) {
        mimus__reference_batch batch = {1, &senses[i], &action, NULL, NULL};
        ck_assert(mimus__reference_step(&network, &batch, &result) == (i == 0));
    }
    ck_assert_uint_eq(network.step, 2);
    ck_assert_uint_eq(network.updates, 1);
    mimus__reference_clear(&network);
}
END_TEST

/* ------------------------------------------------------------------- golden */

static void check_case(golden_case *c) {
    const compare_tolerance close = {1e-9, 1e-12};
    uint32_t heads = c->network.heads;
    mimus__reference_batch batch = golden_batch(c);
    for (uint32_t step = 0; step < c->steps; step++) {
        mimus__reference_result result;
        double hits[MIMUS__REFERENCE_MAX_HEADS], labelled[MIMUS__REFERENCE_MAX_HEADS];
        ck_assert(mimus__reference_step(&c->network, &batch, &result));
        for (uint32_t h = 0; h < heads; h++) {
            hits[h] = result.hits[h];
            labelled[h] = result.labelled[h];
        }
        size_t at = (size_t)step * heads;
        compare_check_doubles(c->name, &result.loss, &c->losses[step], 1, 1, close);
        compare_check_doubles(c->name, result.nll, c->nll + at, 1, heads, close);
        compare_check_doubles(c->name, hits, c->hits + at, 1, heads, (compare_tolerance){0});
        compare_check_doubles(c->name, labelled, c->labelled, 1, heads, (compare_tolerance){0});
    }
    compare_check_doubles(c->name, c->network.parameter, c->final, 1, c->network.parameters, close);
}

START_TEST(training_is_what_pytorch_does) {
    golden g;
    golden_load(&g, GOLDEN);
    for (size_t i = 0; i < g.case_count; i++)
        check_case(&g.cases[i]);
    golden_clear(&g);
}
END_TEST

START_TEST(golden_numbers_notice_a_wrong_rule) {
    golden g;
    golden_load(&g, GOLDEN);
    golden_case *c = &g.cases[0];
    c->network.rules.beta2 = 0.99;
    mimus__reference_batch batch = golden_batch(c);
    mimus__reference_result result;
    for (uint32_t step = 0; step < c->steps; step++)
        mimus__reference_step(&c->network, &batch, &result);
    compare_report report = compare_doubles(c->network.parameter, c->final, c->network.parameters,
                                            (compare_tolerance){1e-9, 1e-12});
    ck_assert_uint_gt(report.count, c->network.parameters / 2);
    golden_clear(&g);
}
END_TEST

/* ------------------------------------------------------------------ sampler */

START_TEST(order_is_what_plain_python_finds) {
    golden g;
    golden_load(&g, GOLDEN);
    for (size_t i = 0; i < g.order_count; i++) {
        const golden_order *order = &g.orders[i];
        for (uint32_t p = 0; p < order->n; p++)
            ck_assert_uint_eq(
                mimus__reference_sampler_row(order->seed, order->run, order->epoch, order->n, p),
                (uint64_t)order->rows[p]);
    }
    golden_clear(&g);
}
END_TEST

START_TEST(order_visits_every_row_once) {
    const uint64_t sizes[] = {1, 2, 3, 63, 64, 65, 1000};
    uint64_t n = sizes[_i];
    unsigned char seen[1000] = {0};
    for (uint64_t p = 0; p < n; p++) {
        uint64_t row = mimus__reference_sampler_row(5, 0, 3, n, p);
        ck_assert_uint_lt(row, n);
        ck_assert_uint_eq(seen[row]++, 0);
    }
}
END_TEST

START_TEST(order_differs_by_seed_run_and_epoch) {
    unsigned same[5] = {0};
    for (uint64_t p = 0; p < 1000; p++) {
        uint64_t row = mimus__reference_sampler_row(5, 1, 3, 1000, p);
        same[0] += row == mimus__reference_sampler_row(6, 1, 3, 1000, p);
        same[1] += row == mimus__reference_sampler_row(5 | UINT64_C(1) << 40, 1, 3, 1000, p);
        same[2] += row == mimus__reference_sampler_row(5, 2, 3, 1000, p);
        same[3] += row == mimus__reference_sampler_row(5, 1, 4, 1000, p);
        same[4] += row == p;
    }
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_lt(same[i], 10); /* 1 is to be expected */
}
END_TEST

/* ------------------------------------------------------------------ compare */

START_TEST(compare_finds_the_first_and_the_worst) {
    const double want[6] = {1, 100, 0, INFINITY, NAN, -1};
    const double good[6] = {1.0009, 100.09, 1e-3, INFINITY, NAN, -1};
    const float bad[6] = {1, 100.5f, 0, INFINITY, NAN, -3};
    const float worse[6] = {1.1f, 200, 0, -INFINITY, 0, -1};
    const compare_tolerance tolerance = {1e-3, 1e-3};
    ck_assert_uint_eq(compare_doubles(good, want, 6, tolerance).count, 0);
    ck_assert_uint_eq(compare_doubles(good, want, 6, (compare_tolerance){0}).count, 3);
    compare_report report = compare_floats(bad, want, 6, tolerance);
    ck_assert_uint_eq(report.count, 2);
    ck_assert_uint_eq(report.first.index, 1);
    ck_assert_uint_eq(report.worst.index, 5);
    ck_assert_double_eq(report.worst.got, -3);
    report = compare_floats(worse, want, 6, tolerance);
    ck_assert_uint_eq(report.count, 4);
    ck_assert_uint_eq(report.first.index, 0);
    ck_assert_uint_eq(report.worst.index, 3);
}
END_TEST

/* The checks that must fail are tests of a suite within the test. */
START_TEST(floats_that_differ) {
    const double want[6] = {1, 2, 3, 4, 5, 6};
    const float got[6] = {1, 2, 3, 4, 5.5f, 8};
    compare_check_floats("sums", got, want, 2, 3, (compare_tolerance){1e-3, 0});
}
END_TEST

START_TEST(doubles_that_differ) {
    compare_check_doubles("slope", (double[]){NAN}, (double[]){1}, 1, 1, (compare_tolerance){0});
}
END_TEST

START_TEST(bytes_that_differ) {
    compare_check_bytes("same", "abcdef", "abcdef", 6);
    compare_check_bytes("bits", "abcdef", "abCdEf", 6);
}
END_TEST

START_TEST(buffer_overrun) {
    unsigned char buffer[8];
    canary_fill(buffer, 4, 8);
    buffer[6] ^= 1;
    canary_check("rows", buffer, 4, 8);
}
END_TEST

static void check_message(const TTest *test, const char *expected) {
    Suite *suite = suite_create("failing");
    TCase *failing = tcase_create("failing");
    tcase_add_test(failing, test);
    suite_add_tcase(suite, failing);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_SILENT);
    ck_assert_int_eq(srunner_ntests_failed(runner), 1);
    TestResult **failures = srunner_failures(runner);
    ck_assert_str_eq(tr_msg(failures[0]), expected);
    free(failures);
    srunner_free(runner);
}

START_TEST(what_differs_fails_the_test_and_says_where) {
    check_message(floats_that_differ,
                  "sums: 2 of 2 x 3 differ by more than 0 + 0.001 |want|; first [1, 1] 5.5 instead "
                  "of 5 (off by 0.5); worst [1, 2] 8 instead of 6 (off by 2)");
    check_message(doubles_that_differ,
                  "slope: 1 of 1 x 1 differ by more than 0 + 0 |want|; first [0, 0] nan instead of "
                  "1 (off by inf); worst [0, 0] nan instead of 1 (off by inf)");
    check_message(bytes_that_differ,
                  "bits: bytes differ from offset 2 (0x63 instead of 0x43) to 4 of 6");
    check_message(buffer_overrun, "rows: written past its 4 bytes, at offset 6");
}
END_TEST

START_TEST(canaries_are_nan_and_tell_where_they_were_hit) {
    float buffer[8] = {0};
    unsigned char bytes[sizeof buffer];
    canary_fill(buffer, 5, sizeof buffer); /* bytes: not a whole number of floats */
    ck_assert_float_eq(buffer[0], 0);
    for (size_t i = 2; i < 8; i++)
        ck_assert(isnan(buffer[i]));
    canary_check("buffer", buffer, 5, sizeof buffer);
    for (size_t hit = 5; hit < sizeof buffer; hit++) {
        memcpy(bytes, buffer, sizeof buffer);
        bytes[hit] = 0;
        ck_assert_uint_eq(canary_find(bytes, 5, sizeof bytes), hit);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("reference");
    TCase *all = tcase_create("reference");
    tcase_add_loop_test(all, gradients_are_the_slopes_of_the_loss, 0, 3);
    tcase_add_test(all, loss_is_what_the_formula_says);
    tcase_add_test(all, hits_take_the_lowest_of_equals_among_the_legal);
    tcase_add_loop_test(all, head_without_label_or_legal_action_counts_for_nothing, 0, 2);
    tcase_add_test(all, stack_repeats_the_first_sample_of_the_episode);
    tcase_add_test(all, dropout_drops_its_rate_and_only_in_training);
    tcase_add_test(all, update_that_is_not_finite_changes_nothing);
    tcase_add_test(all, clip_bounds_the_norm_and_leaves_small_gradients);
    tcase_add_test(all, step_counts_also_when_it_is_skipped);
    tcase_add_test(all, training_is_what_pytorch_does);
    tcase_add_test(all, golden_numbers_notice_a_wrong_rule);
    tcase_add_test(all, order_is_what_plain_python_finds);
    tcase_add_loop_test(all, order_visits_every_row_once, 0, 7);
    tcase_add_test(all, order_differs_by_seed_run_and_epoch);
    tcase_add_test(all, compare_finds_the_first_and_the_worst);
    tcase_add_test(all, what_differs_fails_the_test_and_says_where);
    tcase_add_test(all, canaries_are_nan_and_tell_where_they_were_hit);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

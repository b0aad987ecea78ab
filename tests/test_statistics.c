/* Statistics, against two passes in long double. */
#include "rows.h"
#include "support.h"

#include "rng.h"
#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SENSES = 5, HEADS = 3, ACTIONS = 3 + 40 + 2 };
static const mimus_head heads[HEADS] = {{.actions = 3}, {.actions = 40}, {.actions = 2}};

/* Rows with labels now and then absent, out of range or forbidden. */
typedef struct made {
    size_t count;
    float *senses;     /* (count, SENSES) */
    uint16_t *actions; /* (count, HEADS) */
    uint8_t *legal;    /* (count, ACTIONS) */
    float *weights;
    test_row *rows;
    mimus_schema schema;
    mimus__recording *recording;
} made;

/* Sense 0 is a large offset, 1 a constant, 2 wide, 3 begins with an outlier, 4 ordinary. */
static float make_sense(mimus__rng *rng, size_t row, size_t sense) {
    float noise = (float)(mimus__rng_uniform(rng) - 0.5);
    switch (sense) {
    case 0:
        return 1e6F + noise;
    case 1:
        return 0.1F;
    case 2:
        return noise * 1e20F;
    case 3:
        return row == 0 ? 1e12F : noise;
    default:
        return noise;
    }
}

static made make(size_t count, bool full) {
    made m = {.count = count};
    mimus__rng rng = {.seed = count};
    m.senses = calloc(count * SENSES, sizeof *m.senses);
    m.actions = calloc(count * HEADS, sizeof *m.actions);
    m.legal = calloc(count * ACTIONS, 1);
    m.weights = calloc(count, sizeof *m.weights);
    m.rows = calloc(count, sizeof *m.rows);
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < SENSES; s++)
            m.senses[i * SENSES + s] = make_sense(&rng, i, s);
        for (size_t h = 0; h < HEADS; h++)
            m.actions[i * HEADS + h] = (uint16_t)mimus__rng_below(&rng, heads[h].actions + 1);
        if (mimus__rng_below(&rng, 5) == 0)
            m.actions[i * HEADS] = MIMUS_NO_LABEL;
        for (size_t a = 0; a < ACTIONS; a++)
            m.legal[i * ACTIONS + a] = mimus__rng_below(&rng, 4) != 0;
        m.weights[i] = (float)mimus__rng_uniform(&rng);
        m.rows[i] = (test_row){m.senses + i * SENSES, m.actions + i * HEADS,
                               full ? m.legal + i * ACTIONS : NULL, m.weights[i], i % 97 == 96};
    }
    m.schema = (mimus_schema){
        .senses = SENSES, .heads = HEADS, .head = heads, .masks = full, .weights = full};
    m.recording = test_rows_record(&m.schema, m.rows, count);
    return m;
}

static void unmake(made *m) {
    mimus__recording_free(m->recording);
    free(m->senses);
    free(m->actions);
    free(m->legal);
    free(m->weights);
    free(m->rows);
}

static void check_sense(const made *m, const uint8_t *chosen, const mimus__statistics *got,
                        size_t s) {
    long double sum = 0, squares = 0;
    float minimum = INFINITY, maximum = -INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        float x = m->senses[i * SENSES + s];
        if (!chosen[i])
            continue;
        sum += (long double)x;
        minimum = fminf(minimum, x);
        maximum = fmaxf(maximum, x);
        n++;
    }
    long double mean = sum / (long double)n;
    for (size_t i = 0; i < m->count; i++) {
        long double deviation = (long double)m->senses[i * SENSES + s] - mean;
        squares += chosen[i] ? deviation * deviation : 0;
    }
    double std = (double)sqrtl(squares / (long double)n);
    double scale = fmax(fabs((double)minimum), fabs((double)maximum));
    ck_assert_double_le(fabs(got->mean[s] - (double)mean), 1e-14 * scale);
    ck_assert_msg(fabs(got->std[s] - std) <= 1e-9 * std, "sense %zu of %zu rows: %.17g, not %.17g",
                  s, n, got->std[s], std);
    ck_assert_float_eq(got->minimum[s], minimum);
    ck_assert_float_eq(got->maximum[s], maximum);
}

static void check_labels(const made *m, const uint8_t *chosen, const mimus__statistics *got) {
    for (size_t h = 0, first = 0; h < HEADS; first += heads[h].actions, h++) {
        uint64_t counts[40] = {0}, labels = 0, legal = 0, n = 0;
        for (size_t i = 0; i < m->count; i++) {
            const uint8_t *row = m->schema.masks ? m->legal + i * ACTIONS + first : NULL;
            uint16_t label = m->actions[i * HEADS + h];
            if (!chosen[i])
                continue;
            n++;
            for (size_t a = 0; a < heads[h].actions; a++)
                legal += row == NULL || row[a] != 0;
            if (label >= heads[h].actions || (row != NULL && row[label] == 0))
                continue;
            counts[label]++;
            labels++;
        }
        ck_assert_uint_eq(got->labels[h], labels);
        for (size_t a = 0; a < heads[h].actions; a++)
            ck_assert_uint_eq(got->counts[first + a], counts[a]);
        ck_assert_double_eq_tol(got->legal[h], (double)legal / (double)n, 1e-12);
    }
}

static void check(const made *m, const mimus__rows *rows) {
    mimus__statistics got;
    uint8_t *chosen = calloc(m->count, 1);
    double weight = 0;
    for (size_t i = 0; i < rows->spans; i++)
        memset(chosen + rows->span[i].first, 1, rows->span[i].count);
    for (size_t i = 0; i < m->count; i++)
        weight += chosen[i] ? m->schema.weights ? (double)m->weights[i] : 1 : 0;
    test_ok(mimus__statistics_new(&got, m->recording, rows));
    for (size_t s = 0; s < SENSES; s++)
        check_sense(m, chosen, &got, s);
    check_labels(m, chosen, &got);
    ck_assert_double_eq_tol(got.weight, weight / (double)rows->samples, 1e-12);
    mimus__statistics_clear(&got);
    free(chosen);
}

START_TEST(all_rows_of_awkward_counts) {
    static const size_t counts[] = {1, 2, 63, 64, 65, 1000, 4096, 4097, 30011};
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        made m = make(counts[n], n % 2 == 0);
        mimus__rows rows;
        test_ok(mimus__rows_all(&rows, m.recording, NULL));
        check(&m, &rows);
        mimus__rows_clear(&rows);
        unmake(&m);
    }
}
END_TEST

/* Spans begin and end within blocks, and pass over some. */
START_TEST(parts_of_the_rows) {
    made m = make(40000, true);
    mimus__split split;
    ck_assert_uint_ge(mimus__recording_blocks(m.recording), 2);
    test_ok(mimus__split_new(&split, m.recording, NULL, 0.3, 1));
    check(&m, &split.training);
    check(&m, &split.heldout);
    mimus__split_clear(&split);
    mimus__span last = {.first = 39990, .count = 10};
    check(&m, &(mimus__rows){.span = &last, .spans = 1, .samples = 10, .episodes = 1});
    mimus__span across = {.first = 100, .count = 39000};
    check(&m, &(mimus__rows){.span = &across, .spans = 1, .samples = 39000, .episodes = 1});
    unmake(&m);
}
END_TEST

START_TEST(no_rows_have_no_mean) {
    made m = make(3, true);
    mimus__statistics got;
    test_ok(mimus__statistics_new(&got, m.recording, &(mimus__rows){0}));
    ck_assert(isnan(got.mean[0]) && isnan(got.std[0]) && isnan(got.minimum[4]));
    ck_assert(isnan(got.legal[0]) && isnan(got.weight));
    ck_assert_uint_eq(got.labels[0], 0);
    mimus__statistics_clear(&got);
    unmake(&m);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("statistics");
    TCase *tests = tcase_create("statistics");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, all_rows_of_awkward_counts);
    tcase_add_test(tests, parts_of_the_rows);
    tcase_add_test(tests, no_rows_have_no_mean);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

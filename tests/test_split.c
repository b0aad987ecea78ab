/* The split: whole episodes, the fraction, determinism, and what dropped rows leave behind. */
#include "rows.h"
#include "support.h"

#include "rng.h"
#include "split.h"

#include <stdlib.h>
#include <string.h>

static const mimus_head one_head = {.actions = 2};
static const mimus_schema schema = {.senses = 1, .heads = 1, .head = &one_head};

/* A recording of episodes of these lengths, rows marked bad being out of range. */
typedef struct plan {
    const uint32_t *lengths;
    size_t episodes;
    uint32_t bad; /* one row in so many, by chance; 0: none */
} plan;

typedef struct made {
    mimus__recording *recording;
    mimus__audit audit;
    size_t rows, kept;
    bool *bad;         /* (rows) */
    uint64_t *episode; /* (rows) */
} made;

static made make(const plan *of) {
    static const float sense = 0;
    static const uint16_t good_label = 1, bad_label = 7;
    made m = {0};
    mimus__rng rng = {.seed = 3};
    for (size_t e = 0; e < of->episodes; e++)
        m.rows += of->lengths[e];
    test_row *rows = calloc(m.rows + 1, sizeof *rows);
    m.bad = calloc(m.rows + 1, sizeof *m.bad);
    m.episode = calloc(m.rows + 1, sizeof *m.episode);
    for (size_t e = 0, row = 0; e < of->episodes; e++) {
        for (uint32_t i = 0; i < of->lengths[e]; i++, row++) {
            m.bad[row] = of->bad > 0 && mimus__rng_below(&rng, of->bad) == 0;
            m.episode[row] = e;
            m.kept += !m.bad[row];
            rows[row] = (test_row){&sense, m.bad[row] ? &bad_label : &good_label, NULL, 1,
                                   i + 1 == of->lengths[e]};
        }
    }
    m.recording = test_rows_record(&schema, rows, m.rows);
    test_ok(mimus__audit_run(&m.audit, m.recording, MIMUS_ILLEGAL_DROP, NULL));
    free(rows);
    return m;
}

static void unmake(made *m) {
    mimus__audit_clear(&m->audit);
    mimus__recording_free(m->recording);
    free(m->bad);
    free(m->episode);
}

enum { NOWHERE, TRAINING, HELDOUT };

/* Where each row went, into `part` (rows); asserts that spans are sound. */
static void place(const made *m, const mimus__rows *rows, uint8_t *part, uint8_t which) {
    uint64_t samples = 0, episodes = 0, end = 0;
    bool sound = true;
    for (size_t i = 0; i < rows->spans; i++) {
        const mimus__span *span = &rows->span[i];
        ck_assert(span->count > 0 && span->first >= end);
        ck_assert(i == 0 || span->episode >= rows->span[i - 1].episode);
        episodes += i == 0 || span->episode != rows->span[i - 1].episode;
        samples += span->count;
        end = span->first + span->count;
        for (uint64_t row = span->first; row < end; row++) {
            sound = sound && part[row] == NOWHERE && !m->bad[row] &&
                    m->episode[row] == m->episode[span->first];
            part[row] = which;
        }
    }
    ck_assert(sound); /* an assertion for every row would take seconds */
    ck_assert_uint_eq(samples, rows->samples);
    ck_assert_uint_eq(episodes, rows->episodes);
}

/* A stretch begins exactly where the row before is of another episode or not in the part. */
static void check_starts(const made *m, const mimus__rows *rows, const uint8_t *part) {
    for (size_t i = 0; i < rows->spans; i++) {
        uint64_t first = rows->span[i].first;
        bool follows = first > 0 && part[first - 1] == part[first] &&
                       m->episode[first - 1] == m->episode[first];
        ck_assert_msg(rows->span[i].start == !follows, "span at row %llu",
                      (unsigned long long)first);
    }
}

static uint8_t *check_split(const made *m, const mimus__split *split) {
    uint8_t *part = calloc(m->rows, 1);
    place(m, &split->training, part, TRAINING);
    place(m, &split->heldout, part, HELDOUT);
    ck_assert_uint_eq(split->training.samples + split->heldout.samples, m->kept);
    bool sound = true;
    for (size_t i = 0; i < m->rows; i++)
        sound = sound && (part[i] == NOWHERE) == m->bad[i];
    ck_assert(sound);
    check_starts(m, &split->training, part);
    check_starts(m, &split->heldout, part);
    return part;
}

static uint32_t *some_lengths(size_t episodes, uint32_t longest) {
    mimus__rng rng = {.seed = 8};
    uint32_t *lengths = calloc(episodes, sizeof *lengths);
    for (size_t e = 0; e < episodes; e++)
        lengths[e] = 1 + (uint32_t)mimus__rng_below(&rng, longest);
    return lengths;
}

START_TEST(episodes_are_never_cut) {
    static const double fractions[] = {0.001, 0.1, 0.25, 0.5, 0.9};
    for (uint32_t bad = 0; bad <= 3; bad += 3) {
        uint32_t *lengths = some_lengths(60, 40);
        made m = make(&(plan){lengths, 60, bad});
        for (size_t f = 0; f < sizeof fractions / sizeof *fractions; f++) {
            mimus__split split;
            test_ok(mimus__split_new(&split, m.recording, &m.audit, fractions[f], f));
            uint8_t *part = check_split(&m, &split);
            uint8_t of[60] = {0};
            bool whole = true;
            for (size_t i = 0; i < m.rows; i++) {
                if (part[i] == NOWHERE)
                    continue;
                whole = whole && (of[m.episode[i]] == 0 || of[m.episode[i]] == part[i]);
                of[m.episode[i]] = part[i];
            }
            ck_assert(whole);
            double wanted = fractions[f] * (double)m.kept;
            ck_assert(split.heldout.episodes >= 1);
            ck_assert((double)split.heldout.samples >= wanted);
            ck_assert((double)split.heldout.samples < wanted + 40); /* one episode more at most */
            free(part);
            mimus__split_clear(&split);
        }
        unmake(&m);
        free(lengths);
    }
}
END_TEST

static bool same_rows(const mimus__rows *a, const mimus__rows *b) {
    if (a->spans != b->spans)
        return false;
    for (size_t i = 0; i < a->spans; i++) {
        if (a->span[i].first != b->span[i].first || a->span[i].count != b->span[i].count)
            return false;
    }
    return true;
}

START_TEST(the_seed_decides) {
    uint32_t *lengths = some_lengths(100, 9);
    made m = make(&(plan){lengths, 100, 0});
    mimus__split first, again, other;
    test_ok(mimus__split_new(&first, m.recording, &m.audit, 0.2, 5));
    test_ok(mimus__split_new(&again, m.recording, NULL, 0.2, 5)); /* nothing is dropped anyway */
    test_ok(mimus__split_new(&other, m.recording, &m.audit, 0.2, 6));
    ck_assert(same_rows(&first.heldout, &again.heldout));
    ck_assert(same_rows(&first.training, &again.training));
    ck_assert(!same_rows(&first.heldout, &other.heldout));
    mimus__split_clear(&first);
    mimus__split_clear(&again);
    mimus__split_clear(&other);
    unmake(&m);
    free(lengths);
}
END_TEST

/* Every episode is drawn about as often as any other. */
START_TEST(draws_are_even) {
    static const uint32_t lengths[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    made m = make(&(plan){lengths, 10, 0});
    unsigned drawn[10] = {0};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        mimus__split split;
        test_ok(mimus__split_new(&split, m.recording, &m.audit, 0.3, seed));
        ck_assert_uint_eq(split.heldout.samples, 3);
        for (size_t i = 0; i < split.heldout.spans; i++)
            drawn[split.heldout.span[i].first]++;
        mimus__split_clear(&split);
    }
    for (int e = 0; e < 10; e++) /* expectation 300, standard deviation 14 */
        ck_assert(drawn[e] > 230 && drawn[e] < 370);
    unmake(&m);
}
END_TEST

START_TEST(a_single_episode_is_cut_into_blocks) {
    static const uint32_t sizes[] = {2, 3, 19, 20, 63, 64, 65, 1000, 20011};
    static const double fractions[] = {0.001, 0.1, 0.5, 0.9};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        for (uint32_t bad = 0; bad <= 5; bad += 5) {
            made m = make(&(plan){&sizes[n], 1, bad});
            for (size_t f = 0; f < 4 && m.kept > 1; f++) {
                mimus__split split;
                test_ok(mimus__split_new(&split, m.recording, &m.audit, fractions[f], 1));
                free(check_split(&m, &split));
                double block = (double)m.kept * (fractions[f] < 0.05 ? fractions[f] : 0.05);
                double held = (double)split.heldout.samples, wanted = fractions[f] * (double)m.kept;
                ck_assert(split.training.samples > 0 && held >= 1);
                ck_assert(held >= wanted || split.training.episodes == 1);
                ck_assert(held <= wanted + block + 2);
                mimus__split_clear(&split);
            }
            unmake(&m);
        }
    }
}
END_TEST

/* Adjacent blocks of one part are one stretch; block numbers stand for episodes. */
START_TEST(blocks_are_contiguous) {
    static const uint32_t length = 1000;
    made m = make(&(plan){&length, 1, 0});
    mimus__split split;
    test_ok(mimus__split_new(&split, m.recording, &m.audit, 0.1, 2));
    ck_assert_uint_eq(split.heldout.samples, 100);
    ck_assert_uint_eq(split.heldout.episodes, 2);
    ck_assert_uint_eq(split.training.episodes, 18);
    for (size_t i = 0; i < split.training.spans; i++) {
        ck_assert_uint_eq(split.training.span[i].count, 50);
        ck_assert_uint_eq(split.training.span[i].first, 50 * split.training.span[i].episode);
    }
    mimus__split_clear(&split);
    unmake(&m);
}
END_TEST

START_TEST(few_episodes_leave_one_to_train_on) {
    static const uint32_t two[] = {10, 1000}, three[] = {5, 5, 5};
    made m = make(&(plan){two, 2, 0});
    for (uint64_t seed = 0; seed < 8; seed++) {
        mimus__split split;
        test_ok(mimus__split_new(&split, m.recording, &m.audit, 0.9, seed));
        free(check_split(&m, &split));
        ck_assert(split.training.episodes == 1 && split.heldout.episodes == 1);
        mimus__split_clear(&split);
    }
    unmake(&m);
    m = make(&(plan){three, 3, 0});
    mimus__split split;
    test_ok(mimus__split_new(&split, m.recording, &m.audit, 0.5, 1));
    ck_assert(split.training.episodes == 1 && split.heldout.episodes == 2);
    mimus__split_clear(&split);
    unmake(&m);
}
END_TEST

START_TEST(nothing_is_held_out_at_0) {
    static const uint32_t lengths[] = {5, 7}, single = 1;
    made m = make(&(plan){lengths, 2, 0});
    mimus__split split;
    test_ok(mimus__split_new(&split, m.recording, &m.audit, 0, 1));
    ck_assert(split.training.samples == 12 && split.training.spans == 2);
    ck_assert(split.heldout.samples == 0 && split.heldout.spans == 0);
    mimus__split_clear(&split);
    unmake(&m);
    m = make(&(plan){&single, 1, 0});
    test_ok(mimus__split_new(&split, m.recording, &m.audit, 0, 1));
    ck_assert_uint_eq(split.training.samples, 1);
    mimus__split_clear(&split);
    unmake(&m);
}
END_TEST

START_TEST(what_cannot_be_split_is_refused) {
    static const uint32_t single = 1, pair[] = {1, 1};
    made m = make(&(plan){&single, 1, 0});
    mimus__split split;
    test_fails(mimus__split_new(&split, m.recording, &m.audit, 0.1, 1), MIMUS_ERR_DATA,
               "1 usable sample: too few to train on and hold some out; --held-out 0");
    mimus__split_clear(&split);
    static const double wrong[] = {-0.1, 1, 2};
    for (int i = 0; i < 3; i++) {
        test_fails(mimus__split_new(&split, m.recording, &m.audit, wrong[i], 1), MIMUS_ERR_ARGUMENT,
                   "expected 0 or more, and below 1");
        mimus__split_clear(&split);
    }
    unmake(&m);
    m = make(&(plan){pair, 2, 1}); /* every row is bad */
    test_fails(mimus__split_new(&split, m.recording, &m.audit, 0, 1), MIMUS_ERR_DATA,
               "0 usable samples");
    mimus__split_clear(&split);
    unmake(&m);
}
END_TEST

START_TEST(all_rows_are_stretches) {
    uint32_t *lengths = some_lengths(30, 70);
    made m = make(&(plan){lengths, 30, 4});
    mimus__rows rows;
    uint8_t *part = calloc(m.rows, 1);
    test_ok(mimus__rows_all(&rows, m.recording, &m.audit));
    place(&m, &rows, part, TRAINING);
    check_starts(&m, &rows, part);
    ck_assert_uint_eq(rows.samples, m.kept);
    for (size_t i = 0; i < rows.spans; i++)
        ck_assert(rows.span[i].start && rows.span[i].episode == m.episode[rows.span[i].first]);
    mimus__rows_clear(&rows);
    test_ok(mimus__rows_all(&rows, m.recording, NULL));
    ck_assert(rows.spans == 30 && rows.samples == m.rows && rows.episodes == 30);
    mimus__rows_clear(&rows);
    free(part);
    unmake(&m);
    free(lengths);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("split");
    TCase *tests = tcase_create("split");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, episodes_are_never_cut);
    tcase_add_test(tests, the_seed_decides);
    tcase_add_test(tests, draws_are_even);
    tcase_add_test(tests, a_single_episode_is_cut_into_blocks);
    tcase_add_test(tests, blocks_are_contiguous);
    tcase_add_test(tests, few_episodes_leave_one_to_train_on);
    tcase_add_test(tests, nothing_is_held_out_at_0);
    tcase_add_test(tests, what_cannot_be_split_is_refused);
    tcase_add_test(tests, all_rows_are_stretches);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

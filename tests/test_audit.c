/* The audit: what it finds, counts, drops and says. */
#include "rows.h"
#include "support.h"

#include "audit.h"
#include "rng.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two senses and two heads, the second with a mask that varies. */
enum { MOVE, GUN };
static const char *const sense_names[] = {"x", "speed"};
static const mimus_head heads[] = {{.name = "move", .actions = 3}, {.name = "gun", .actions = 2}};
static const mimus_schema small = {.senses = 2,
                                   .sense_names = sense_names,
                                   .heads = 2,
                                   .head = heads,
                                   .masks = true,
                                   .weights = true};

static const uint8_t all_legal[] = {1, 1, 1, 1, 1};
static const uint8_t no_shot[] = {1, 1, 1, 1, 0};
static const uint8_t no_gun[] = {1, 1, 1, 0, 0};

/* One row of each fault, among sound ones. */
static const test_row faulty[] = {
    {(const float[]){0, 1}, (const uint16_t[]){0, 0}, all_legal, 1, false},
    {(const float[]){1, NAN}, (const uint16_t[]){0, 0}, all_legal, 1, false},
    {(const float[]){-INFINITY, 0}, (const uint16_t[]){0, 2}, all_legal, 1, false},
    {(const float[]){2, 1}, (const uint16_t[]){2, MIMUS_NO_LABEL}, no_gun, 0, false},
    {(const float[]){0, 1}, (const uint16_t[]){0, 0}, all_legal, -1, true},
    {(const float[]){0, 1}, (const uint16_t[]){0, 0}, all_legal, NAN, false},
    {(const float[]){0, 1}, (const uint16_t[]){3, 1}, all_legal, 1, false},
    {(const float[]){0, 1}, (const uint16_t[]){1, 1}, no_shot, 1, false},
    {(const float[]){0, 1}, (const uint16_t[]){65534, 1}, no_gun, 1, false},
    {(const float[]){0, 1}, (const uint16_t[]){1, 0}, no_shot, 1, true},
};
enum { FAULTY = sizeof faulty / sizeof *faulty };

static void check_faults(const mimus__audit *audit) {
    static const uint64_t count[MIMUS__FAULTS] = {2, 2, 3, 1, 1};
    static const uint64_t row[MIMUS__FAULTS] = {1, 4, 2, 7, 8};
    static const uint32_t index[MIMUS__FAULTS] = {1, 0, GUN, GUN, GUN};
    for (int f = 0; f < MIMUS__FAULTS; f++) {
        ck_assert_msg(audit->count[f] == count[f], "fault %d", f);
        ck_assert_msg(audit->first_row[f] == row[f], "fault %d", f);
        ck_assert_msg(audit->first_index[f] == index[f], "fault %d", f);
    }
    ck_assert_uint_eq(audit->samples, FAULTY);
    ck_assert_uint_eq(audit->faulty, 7);
    ck_assert_uint_eq(audit->no_legal, 2);
}

static void check_drops(const mimus__audit *audit, const char *dropped) {
    uint64_t count = 0;
    for (size_t i = 0; i < FAULTY; i++) {
        ck_assert_msg(mimus__audit_drops(audit, i) == (dropped[i] == 'x'), "row %zu", i);
        count += dropped[i] == 'x';
    }
    ck_assert_uint_eq(audit->dropped, count);
}

START_TEST(every_fault_is_found) {
    mimus__recording *recording = test_rows_record(&small, faulty, FAULTY);
    mimus__audit audit;
    test_fails(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_ERROR, NULL), MIMUS_ERR_DATA,
               "7 of 10 samples cannot be trained on: 2 with a sense that is not finite (first: "
               "row 1, sense 1 \"speed\"), 2 with a weight that is negative or not finite (first: "
               "row 4), 3 with a label out of its head's range (first: row 2, head 1 \"gun\"), ");
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "--illegal drop"));
    ck_assert_ptr_nonnull(strstr(mimus_last_error(), "--illegal ignore"));
    check_faults(&audit);
    ck_assert_ptr_null(audit.drop);
    mimus__audit_clear(&audit);

    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, NULL));
    check_faults(&audit);
    check_drops(&audit, ".xx.xxxxx.");
    mimus__audit_clear(&audit);

    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_IGNORE, NULL));
    check_faults(&audit);
    check_drops(&audit, ".xx.xx....");
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(offending_labels_are_none) {
    mimus__recording *recording = test_rows_record(&small, faulty, FAULTY);
    mimus__block block;
    test_ok(mimus__recording_block(recording, 0, &block));
    for (uint32_t i = 0; i < FAULTY; i++) {
        const uint16_t *labels = faulty[i].actions;
        bool move = labels[MOVE] < 3;
        bool gun = labels[GUN] < 2 && faulty[i].legal[3 + labels[GUN]] != 0;
        ck_assert_uint_eq(mimus__audit_label(&block, &small, i, MOVE, 0),
                          move ? labels[MOVE] : MIMUS_NO_LABEL);
        ck_assert_uint_eq(mimus__audit_label(&block, &small, i, GUN, 3),
                          gun ? labels[GUN] : MIMUS_NO_LABEL);
    }
    mimus__recording_free(recording);
}
END_TEST

START_TEST(faults_are_told_in_json) {
    mimus__recording *recording = test_rows_record(&small, faulty, FAULTY);
    mimus__audit audit;
    json_t *json = NULL;
    char *text = NULL;
    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_IGNORE, NULL));
    test_ok(mimus__audit_to_json(&json, &audit, &small));
    test_ok(mimus__json_text(&text, json, JSON_COMPACT));
    ck_assert_str_eq(text, "{\"samples\":7,\"dropped\":4,"
                           "\"sense\":{\"samples\":2,\"first_row\":1,\"sense\":\"speed\"},"
                           "\"weight\":{\"samples\":2,\"first_row\":4},"
                           "\"range\":{\"samples\":3,\"first_row\":2,\"head\":\"gun\"},"
                           "\"forbidden\":{\"samples\":1,\"first_row\":7,\"head\":\"gun\"},"
                           "\"no_legal\":{\"samples\":1,\"first_row\":8,\"head\":\"gun\"}}");
    free(text);
    json_decref(json);
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

static const mimus_head one_head = {.actions = 2};

/* A value in every place of rows of many lengths; the rest are the extremes of what is finite. */
START_TEST(every_place_is_looked_at) {
    static const uint32_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 31, 63, 64, 65, 143};
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const float good[] = {FLT_MAX, -FLT_MAX, 0, -0.0F, FLT_MIN / 4, 1};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        const mimus_schema schema = {.senses = lengths[n], .heads = 1, .head = &one_head};
        float senses[143];
        const uint16_t label = 0;
        const uint32_t starts = 1;
        const mimus__block block = {
            .samples = 1, .senses = senses, .actions = &label, .starts = &starts};
        for (uint32_t place = 0; place <= lengths[n]; place++) {
            mimus__auditor *auditor = NULL;
            uint32_t drop;
            for (uint32_t s = 0; s < lengths[n]; s++)
                senses[s] = s == place ? bad[place % 4] : good[s % 6];
            test_ok(mimus__auditor_new(&auditor, &schema, MIMUS_ILLEGAL_DROP));
            mimus__auditor_add(auditor, &block, &drop);
            const mimus__audit *audit = mimus__auditor_result(auditor);
            bool any = place < lengths[n]; /* the last round is all sound */
            ck_assert(audit->faulty == any && drop == any);
            ck_assert_uint_eq(audit->first_index[MIMUS__FAULT_SENSE], any ? place : 0);
            mimus__auditor_free(auditor);
        }
    }
}
END_TEST

/* Heads that lie across words, whole words and single bits, against counting bit by bit. */
START_TEST(masks_are_read_across_words) {
    static const mimus_head many[] = {{.actions = 3},  {.actions = 40}, {.actions = 30},
                                      {.actions = 64}, {.actions = 2},  {.actions = 128},
                                      {.actions = 5}};
    enum { HEADS = 7, ACTIONS = 272, ROWS = 300 };
    const mimus_schema schema = {.senses = 1, .heads = HEADS, .head = many, .masks = true};
    static uint8_t legal[ROWS][ACTIONS];
    static uint16_t labels[ROWS][HEADS];
    static test_row rows[ROWS];
    static const float sense = 0;
    mimus__rng rng = {.seed = 9};
    uint64_t no_legal = 0, with_forbidden = 0, with_no_legal = 0;
    for (size_t i = 0; i < ROWS; i++) {
        bool forbidden = false, none = false;
        for (size_t h = 0, first = 0; h < HEADS; first += many[h].actions, h++) {
            uint32_t any = 0;
            uint64_t rarity = 1 + mimus__rng_below(&rng, 200);
            for (size_t a = 0; a < many[h].actions; a++) {
                legal[i][first + a] = mimus__rng_below(&rng, rarity) == 0;
                any |= legal[i][first + a];
            }
            labels[i][h] = (uint16_t)mimus__rng_below(&rng, many[h].actions + 1);
            if (labels[i][h] == many[h].actions)
                labels[i][h] = MIMUS_NO_LABEL;
            else if (any == 0)
                none = true;
            else if (legal[i][first + labels[i][h]] == 0)
                forbidden = true;
            no_legal += any == 0;
        }
        with_forbidden += forbidden;
        with_no_legal += none;
        rows[i] = (test_row){&sense, labels[i], legal[i], 1, false};
    }
    ck_assert(no_legal > 100 && with_forbidden > 100 && with_no_legal > 100);
    mimus__recording *recording = test_rows_record(&schema, rows, ROWS);
    mimus__audit audit;
    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, NULL));
    ck_assert_uint_eq(audit.no_legal, no_legal);
    ck_assert_uint_eq(audit.count[MIMUS__FAULT_FORBIDDEN], with_forbidden);
    ck_assert_uint_eq(audit.count[MIMUS__FAULT_NO_LEGAL], with_no_legal);
    ck_assert_uint_eq(audit.count[MIMUS__FAULT_RANGE], 0);
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

START_TEST(constant_senses_are_found) {
    const mimus_schema schema = {.senses = 5, .heads = 1, .head = &one_head};
    static const uint16_t label = 0;
    static const float senses[4][5] = {
        {NAN, 9, 9, 9, 9}, {5, 0.0F, 1, 2, 7}, {5, -0.0F, 1, 3, 7}, {5, 0, INFINITY, 2, 8}};
    test_row rows[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = (test_row){senses[i], &label, NULL, 1, false};
    static const uint8_t constant[5] = {1, 1, 1, 0, 1};
    mimus__recording *recording = test_rows_record(&schema, rows, 4);
    mimus__audit audit;
    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, NULL));
    ck_assert_int_eq(memcmp(audit.constant, constant, sizeof constant), 0);
    ck_assert_uint_eq(audit.constant_senses, 4);
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

/* Bits fall on the right rows when blocks do not begin at multiples of 32. */
START_TEST(drops_survive_many_blocks) {
    enum { ROWS = 5003, SENSES = 143 };
    const mimus_schema schema = {.senses = SENSES, .heads = 1, .head = &one_head};
    static const float senses[SENSES] = {1};
    static const uint16_t good = 1, bad = 2;
    static test_row rows[ROWS];
    mimus__rng rng = {.seed = 4};
    for (size_t i = 0; i < ROWS; i++)
        rows[i] = (test_row){senses, mimus__rng_below(&rng, 9) == 0 ? &bad : &good, NULL, 1, false};
    mimus__recording *recording = test_rows_record(&schema, rows, ROWS);
    mimus__audit audit;
    ck_assert_uint_ge(mimus__recording_blocks(recording), 3);
    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, NULL));
    uint64_t dropped = 0;
    for (size_t i = 0; i < ROWS; i++) {
        bool drop = rows[i].actions == &bad;
        if (mimus__audit_drops(&audit, i) != drop)
            ck_abort_msg("row %zu", i);
        dropped += drop;
    }
    ck_assert_uint_eq(audit.dropped, dropped);
    mimus__audit_clear(&audit);
    test_ok(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_IGNORE, NULL));
    ck_assert_uint_eq(audit.count[MIMUS__FAULT_RANGE], dropped);
    ck_assert_ptr_null(audit.drop);
    ck_assert(!mimus__audit_drops(&audit, ROWS - 1) && !mimus__audit_drops(NULL, 0));
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

static bool at_once(void *user) {
    (void)user;
    return true;
}

START_TEST(the_audit_can_be_stopped) {
    mimus__recording *recording = test_rows_record(&small, faulty, FAULTY);
    const mimus_watch watch = {.should_stop = at_once};
    mimus__audit audit;
    test_fails(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, &watch), MIMUS_ERR_STOPPED,
               "stopped on request");
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("audit");
    TCase *tests = tcase_create("audit");
    tcase_add_checked_fixture(tests, NULL, test_folder_remove);
    tcase_add_test(tests, every_fault_is_found);
    tcase_add_test(tests, offending_labels_are_none);
    tcase_add_test(tests, faults_are_told_in_json);
    tcase_add_test(tests, every_place_is_looked_at);
    tcase_add_test(tests, masks_are_read_across_words);
    tcase_add_test(tests, constant_senses_are_found);
    tcase_add_test(tests, drops_survive_many_blocks);
    tcase_add_test(tests, the_audit_can_be_stopped);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

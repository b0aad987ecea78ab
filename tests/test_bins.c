/* Bins: the option, where they are cut, what they give back, and the way through a reader. */
#include "npz_file.h"
#include "support.h"

#include "audit.h"
#include "bins.h"
#include "file.h"
#include "recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char message[512]; /* the last that the watch was given */

static void keep_message(void *user, const char *text) {
    (void)user;
    snprintf(message, sizeof message, "%s", text);
}

static const mimus_watch watch = {.on_message = keep_message};

static void begin(void) {
    message[0] = '\0';
}

/* Bins of one column "x" in which are these numbers; aborts when they cannot be made. */
static mimus__bins *fit(const char *option, const float *numbers, size_t count) {
    static const char *const names[] = {"x"};
    const mimus__action_columns columns = {.where = "play: acts", .count = 1, .names = names};
    mimus__bins *bins = NULL;
    test_ok(mimus__bins_new(&bins, option));
    test_ok(mimus__bins_open(bins, &columns));
    for (size_t i = 0; i < count; i++)
        test_ok(mimus__bins_observe(bins, &numbers[i]));
    test_ok(mimus__bins_fit(bins, &watch));
    return bins;
}

static void check_head(const mimus__bins *bins, const float *edges, const float *values,
                       uint32_t actions) {
    mimus_head head = {.name = "kept"};
    mimus__bins_head(bins, 0, &head);
    ck_assert_str_eq(head.name, "kept");
    ck_assert_uint_eq(head.actions, actions);
    for (uint32_t a = 0; a < actions; a++)
        ck_assert_msg(head.bin_values[a] == values[a], "value %u: %.9g, not %.9g", a,
                      (double)head.bin_values[a], (double)values[a]);
    for (uint32_t a = 0; a + 1 < actions; a++)
        ck_assert_msg(head.bin_edges[a] == edges[a], "edge %u: %.9g, not %.9g", a,
                      (double)head.bin_edges[a], (double)edges[a]);
}

START_TEST(uniform_bins_have_one_width) {
    const float numbers[] = {-2, 5, 0, 8, 8, NAN, INFINITY, -INFINITY};
    const float edges[] = {0, 2, 4, 6}, values[] = {-1, 1, 3, 5, 7};
    mimus__bins *bins = fit("x:uniform:5", numbers, 8);
    check_head(bins, edges, values, 5);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, -2), 0);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, 0), 1);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, 5.99F), 3);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, 8), 4);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, 1000), 4);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, -1000), 0);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, NAN), MIMUS__MAX_ACTIONS);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, -INFINITY), MIMUS__MAX_ACTIONS);
    ck_assert_str_eq(message, "");
    mimus__bins_free(bins);
}
END_TEST

START_TEST(quantiles_hold_as_many_samples_each) {
    /* sorted: 1 2 3 | 4 7 9 | 20 30 50 70 cut at floor(10/3) and floor(20/3) */
    const float numbers[] = {50, 1, 30, 2, 9, 3, 70, 20, 4, 7};
    const float edges[] = {3.5F, 14.5F}, values[] = {2, 7, 30};
    mimus__bins *bins = fit("0:quantile:3", numbers, 10);
    check_head(bins, edges, values, 3);
    ck_assert_str_eq(message, "");
    mimus__bins_free(bins);
}
END_TEST

START_TEST(equal_numbers_share_a_bin) {
    /* sorted: 0 0 0 0 0 0 | 1 2 | 3 4: the cuts at 2 and 5 fall among the zeros, at 7 between */
    const float numbers[] = {0, 0, 4, 0, 3, 0, 2, 0, 1, 0};
    const float edges[] = {0.5F, 1.5F}, values[] = {0, 1, 3};
    mimus__bins *bins = fit("x:quantile:4", numbers, 10);
    check_head(bins, edges, values, 3);
    ck_assert_str_eq(message,
                     "play: acts: column \"x\": 3 bins, not 4: many of its numbers are the same");
    mimus__bins_free(bins);
    /* as many before as behind: the run of 5s is passed on its near side */
    const float middle[] = {1, 2, 5, 5, 5, 5, 8, 9};
    const float middle_edges[] = {3.5F}, middle_values[] = {1, 5};
    bins = fit("x:quantile:2", middle, 8);
    check_head(bins, middle_edges, middle_values, 2);
    mimus__bins_free(bins);
}
END_TEST

START_TEST(few_kinds_get_a_bin_each) {
    const float numbers[] = {1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    const float edges[] = {-0.5F, 0.5F}, values[] = {-1, 0, 1};
    mimus__bins *bins = fit("x:quantile:11", numbers, 12);
    check_head(bins, edges, values, 3);
    ck_assert_ptr_nonnull(strstr(message, "3 bins, not 11"));
    mimus__bins_free(bins);
    bins = fit("x:quantile:3", numbers, 12);
    check_head(bins, edges, values, 3);
    mimus__bins_free(bins);
}
END_TEST

/* Neighbouring floats have nothing between them: the upper one begins its bin. */
START_TEST(neighbouring_numbers_are_told_apart) {
    const float low = 1, high = nextafterf(1, 2);
    const float numbers[] = {low, high, low, high};
    mimus__bins *bins = fit("x:quantile:2", numbers, 4);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, low), 0);
    ck_assert_uint_eq(mimus__bins_label(bins, 0, high), 1);
    mimus__bins_free(bins);
}
END_TEST

/* Above the limit a sample stands for all: the same one every time, and near enough. */
START_TEST(many_numbers_are_sampled_alike) {
    enum { COUNT = 3 * MIMUS__BINS_KEPT, BINS = 11 };
    float *numbers = malloc(COUNT * sizeof *numbers);
    mimus_head first = {0}, second = {0};
    for (uint32_t i = 0; i < COUNT; i++) /* every number below 1 of that many, in a jumble */
        numbers[i] = (float)((uint64_t)i * 700001 % COUNT) / COUNT;
    mimus__bins *a = fit("x:quantile:11", numbers, COUNT),
                *b = fit("x:quantile:11", numbers, COUNT);
    mimus__bins_head(a, 0, &first);
    mimus__bins_head(b, 0, &second);
    ck_assert_uint_eq(first.actions, BINS);
    ck_assert_mem_eq(first.bin_edges, second.bin_edges, (BINS - 1) * sizeof(float));
    ck_assert_mem_eq(first.bin_values, second.bin_values, BINS * sizeof(float));
    for (int i = 1; i < BINS; i++) /* five standard errors of a quantile of that many */
        ck_assert_float_eq_tol(first.bin_edges[i - 1], (float)i / BINS, 0.005F);
    mimus__bins_free(a);
    mimus__bins_free(b);
    free(numbers);
}
END_TEST

START_TEST(the_option_is_parsed_or_explained) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "\"\" should be COLUMN:uniform:11"},
        {"x", "\"x\" should be COLUMN:uniform:11 or COLUMN:quantile:11"},
        {"uniform:11", "\"uniform:11\" should be"},
        {":uniform:11", "\":uniform:11\" should be"},
        {"x:even:11", "\"x:even:11\": bins are uniform or quantile"},
        {"x:uniform:1", "2 to 65534 bins, not \"1\""},
        {"x:uniform:65535", "2 to 65534 bins, not \"65535\""},
        {"x:uniform:", "2 to 65534 bins, not \"\""},
        {"x:uniform:7,", "\"\" should be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mimus__bins *bins = NULL;
        test_fails(mimus__bins_new(&bins, cases[i].text), MIMUS_ERR_ARGUMENT, cases[i].part);
        ck_assert_ptr_null(bins);
    }
}
END_TEST

START_TEST(columns_are_found_by_name_and_number) {
    static const char *const names[] = {"steer", "1", NULL, "a:b"};
    static const bool continuous[] = {true, true, true, false};
    mimus__action_columns columns = {.where = "play", .count = 4, .names = names};
    mimus__bins *bins = NULL;
    test_ok(mimus__bins_new(&bins, "steer:uniform:3,1:uniform:4,a:b:quantile:5"));
    test_ok(
        mimus__bins_open(bins, &columns)); /* "1" is the name of one, as it happens its number */
    ck_assert(mimus__bins_has(bins, 0) && mimus__bins_has(bins, 1) && mimus__bins_has(bins, 3));
    ck_assert(!mimus__bins_has(bins, 2) && !mimus__bins_has(bins, 4));
    ck_assert(!mimus__bins_has(NULL, 0));
    columns.continuous = continuous;
    test_fails(mimus__bins_open(bins, &columns), MIMUS_ERR_SCHEMA, "column 3 holds labels");
    columns.count = 3;
    test_fails(mimus__bins_open(bins, &columns), MIMUS_ERR_SCHEMA,
               "play: 3 columns of actions, where the first file has 4");
    mimus__bins_free(bins);

    columns.count = 4;
    test_ok(mimus__bins_new(&bins, "all:uniform:3"));
    test_ok(mimus__bins_open(bins, &columns));
    ck_assert(mimus__bins_has(bins, 2) && !mimus__bins_has(bins, 3));
    mimus__bins_free(bins);
    test_ok(mimus__bins_new(&bins, "a:b:uniform:3"));
    test_fails(mimus__bins_open(bins, &columns), MIMUS_ERR_ARGUMENT,
               "column \"a:b\" holds labels already");
    mimus__bins_free(bins);
    test_ok(mimus__bins_new(&bins, "4:uniform:3"));
    test_fails(mimus__bins_open(bins, &columns), MIMUS_ERR_ARGUMENT,
               "no column \"4\"; there are 0 to 3");
    mimus__bins_free(bins);
    columns.continuous = (const bool[]){false, false, false, false};
    test_ok(mimus__bins_new(&bins, "all:uniform:3"));
    test_fails(mimus__bins_open(bins, &columns), MIMUS_ERR_ARGUMENT, "nothing to bin");
    mimus__bins_free(bins);
}
END_TEST

static void fit_fails(const char *option, const float *numbers, size_t count, const char *part) {
    const mimus__action_columns columns = {.where = "play", .count = 1};
    mimus__bins *bins = NULL;
    test_ok(mimus__bins_new(&bins, option));
    test_ok(mimus__bins_open(bins, &columns));
    for (size_t i = 0; i < count; i++)
        test_ok(mimus__bins_observe(bins, &numbers[i]));
    test_fails(mimus__bins_fit(bins, NULL), MIMUS_ERR_DATA, part);
    mimus__bins_free(bins);
}

START_TEST(what_cannot_be_cut_is_refused) {
    const float same[] = {3, 3, 3}, nothing[] = {NAN, INFINITY};
    const float near[] = {1, nextafterf(1, 2)};
    fit_fails("0:uniform:3", same, 3, "play: column 0 is always 3: nothing to choose");
    fit_fails("0:quantile:3", same, 3, "play: column 0 is always 3: nothing to choose");
    fit_fails("0:uniform:3", nothing, 2, "play: column 0 has no number to make bins of");
    fit_fails("0:quantile:3", NULL, 0, "play: column 0 has no number to make bins of");
    fit_fails("0:uniform:11", near, 2, "too near for 11 bins");
}
END_TEST

/* -------------------------------------------------------- through a reader */

/* Six samples: one sense, a steering angle and a gear. */
static void write_drive(const char *path, float scale) {
    const float obs[6] = {0, 1, 2, 3, 4, 5};
    const float acts[6][2] = {{-1, 0}, {-0.5F, 1}, {0, 2}, {0.25F, 1}, {0.5F, 0}, {1, 2}};
    float scaled[6][2];
    for (int i = 0; i < 6; i++) {
        scaled[i][0] = acts[i][0] * scale;
        scaled[i][1] = acts[i][1];
    }
    test_npz *npz = test_npz_create(path, false);
    test_npz_add(npz, "obs", "<f4", "(6, 1)", obs, sizeof obs);
    test_npz_add(npz, "actions", "<f4", "(6, 2)", scaled, sizeof scaled);
    test_npz_close(npz);
}

static void check_drive(const mimus__recording *recording, uint64_t samples, float lowest,
                        const uint16_t *steer) {
    static const uint16_t gears[] = {0, 1, 2, 1, 0, 2};
    const mimus_schema *schema = mimus__recording_schema(recording);
    mimus__block block;
    ck_assert_uint_eq(mimus__recording_samples(recording), samples);
    ck_assert_uint_eq(schema->heads, 2);
    ck_assert_uint_eq(schema->head[0].actions, 4);
    ck_assert_float_eq(schema->head[0].bin_values[0], lowest);
    ck_assert_uint_eq(schema->head[1].actions, 3);
    ck_assert_ptr_null(schema->head[1].bin_edges);
    test_ok(mimus__recording_block(recording, 0, &block));
    for (uint32_t i = 0; i < samples; i++) {
        ck_assert_uint_eq(block.actions[i * 2], steer[i]);
        ck_assert_uint_eq(block.actions[i * 2 + 1], gears[i % 6]);
    }
}

START_TEST(files_share_their_bins) {
    static const uint16_t one[] = {0, 1, 2, 2, 3, 3};
    static const uint16_t both[] = {1, 1, 2, 2, 2, 3, 0, 1, 2, 2, 3, 3};
    const char *paths[] = {strdup(test_folder_path("a.npz")), strdup(test_folder_path("b.npz"))};
    const char *options[] = {"bin=steer:uniform:4", "heads=steer:9,gear:3", NULL};
    mimus_source source = {.paths = paths, .count = 1, .options = options};
    mimus__recording *recording = NULL;
    write_drive(paths[0], 1);
    write_drive(paths[1], 2);
    test_ok(mimus__recording_open(&recording, &source, NULL));
    check_drive(recording, 6, -0.75F, one);
    ck_assert_str_eq(mimus__recording_schema(recording)->head[0].name, "steer");
    mimus__recording_free(recording);
    source.count = 2; /* -2 to 2 */
    test_ok(mimus__recording_open(&recording, &source, NULL));
    check_drive(recording, 12, -1.5F, both);

    /* a policy's bins are taken as they are, without any option */
    mimus__recording *like = NULL;
    source.count = 1;
    source.options = NULL;
    static const uint16_t by_both[] = {1, 1, 2, 2, 2, 3};
    test_ok(mimus__recording_open_like(&like, &source, mimus__recording_schema(recording), NULL));
    check_drive(like, 6, -1.5F, by_both);
    mimus__recording_free(like);
    mimus__recording_free(recording);
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_UNSUPPORTED,
               "a.npz: actions: float32 -0.5 in row 1, column 0 is not an integer; the option bin "
               "cuts continuous actions into bins: --bin all:uniform:11");
    options[0] = "bin=1:uniform:4";
    options[1] = NULL;
    source.options = options;
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_UNSUPPORTED,
               "a.npz: actions: -0.5 in row 1, column 0 is not an integer; the option bin");
    options[0] = "bin=2:uniform:4";
    test_fails(mimus__recording_open(&recording, &source, NULL), MIMUS_ERR_ARGUMENT,
               "a.npz: actions: option bin: no column \"2\"; there are 0 to 1");
    free((char *)paths[0]);
    free((char *)paths[1]);
}
END_TEST

/* Labels that do not occur are known to who judges; the largest there is 2, of 5 actions. */
START_TEST(who_judges_knows_the_heads) {
    const char *path = test_folder_path("judged.npz");
    const float obs[3] = {0, 1, 2};
    const int64_t acts[3] = {0, 2, 1};
    static const mimus_head head = {.name = "move", .actions = 5};
    const mimus_schema like = {.senses = 1, .heads = 1, .head = &head};
    mimus__recording *recording = NULL;
    test_npz *npz = test_npz_create(path, false);
    test_npz_add(npz, "obs", "<f4", "(3, 1)", obs, sizeof obs);
    test_npz_add(npz, "actions", "<i8", "(3,)", acts, sizeof acts);
    test_npz_close(npz);
    test_ok(mimus__recording_open_like(&recording, &(mimus_source){.paths = &path, .count = 1},
                                       &like, NULL));
    test_ok(mimus__schema_match(&like, "policy", mimus__recording_schema(recording), "file", true));
    mimus__recording_free(recording);
}
END_TEST

START_TEST(numbers_that_are_none_are_faults) {
    const char *path = test_folder_path("nan.npz");
    const float obs[4] = {0, 1, 2, 3}, acts[4] = {0.5F, NAN, -0.5F, -INFINITY};
    const char *options[] = {"bin=all:quantile:2", NULL};
    const mimus_source source = {.paths = &path, .count = 1, .options = options};
    mimus__recording *recording = NULL;
    mimus__audit audit;
    test_npz *npz = test_npz_create(path, false);
    test_npz_add(npz, "obs", "<f4", "(4, 1)", obs, sizeof obs);
    test_npz_add(npz, "actions", "<f4", "(4,)", acts, sizeof acts);
    test_npz_close(npz);
    test_ok(mimus__recording_open(&recording, &source, NULL));
    test_fails(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_ERROR, NULL), MIMUS_ERR_DATA,
               "2 with a label out of its head's range (first: row 1");
    ck_assert_uint_eq(audit.count[MIMUS__FAULT_RANGE], 2);
    ck_assert_uint_eq(audit.first_row[MIMUS__FAULT_RANGE], 1);
    mimus__audit_clear(&audit);
    mimus__recording_free(recording);
}
END_TEST

/* imitation's pendulum: 11,200 torques from -2 to 2, counted by numpy.histogram. */
START_TEST(pendulum_imports) {
    const char *file = MIMUS_SHARED_DATA "/imitation/pendulum_0-final.npz";
    const char *options[] = {"bin=0:uniform:11", NULL};
    const mimus_source source = {.paths = &file, .count = 1, .options = options};
    mimus__recording *recording = NULL;
    if (!mimus__file_exists(file)) {
        printf("%s is not here: not tested\n", file);
        return;
    }
    test_ok(mimus__recording_open(&recording, &source, NULL));
    const mimus_head *head = mimus__recording_schema(recording)->head;
    static const uint32_t counts[] = {640, 297, 833, 1563, 2199, 2161, 1557, 888, 361, 201, 500};
    uint32_t found[11] = {0};
    ck_assert_uint_eq(head->actions, 11);
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        for (uint32_t i = 0; i < block.samples; i++)
            found[block.actions[i]]++;
    }
    ck_assert_mem_eq(found, counts, sizeof found);
    ck_assert_float_eq_tol(head->bin_values[0], -2 + 2.0F / 11, 1e-6F);
    ck_assert_float_eq_tol(head->bin_values[10], 2 - 2.0F / 11, 1e-6F);
    mimus__recording_free(recording);
}
END_TEST

static void clean(void) {
    test_folder_remove();
}

int main(void) {
    Suite *suite = suite_create("bins");
    TCase *tests = tcase_create("bins");
    tcase_add_checked_fixture(tests, begin, clean);
    tcase_add_test(tests, uniform_bins_have_one_width);
    tcase_add_test(tests, quantiles_hold_as_many_samples_each);
    tcase_add_test(tests, equal_numbers_share_a_bin);
    tcase_add_test(tests, few_kinds_get_a_bin_each);
    tcase_add_test(tests, neighbouring_numbers_are_told_apart);
    tcase_add_test(tests, many_numbers_are_sampled_alike);
    tcase_add_test(tests, the_option_is_parsed_or_explained);
    tcase_add_test(tests, columns_are_found_by_name_and_number);
    tcase_add_test(tests, what_cannot_be_cut_is_refused);
    tcase_add_test(tests, files_share_their_bins);
    tcase_add_test(tests, who_judges_knows_the_heads);
    tcase_add_test(tests, numbers_that_are_none_are_faults);
    tcase_add_test(tests, pendulum_imports);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

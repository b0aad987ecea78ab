/* Reports and comparisons of runs that are written here, so that what must come out is known.
 * tests/oracles/test_report.py looks at the page in a browser. */
#include "support.h"

#include "file.h"
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EPISODES = 24 };

static char base[512], other[512];

static void write_json(const char *folder, const char *name, json_t *json) {
    char path[600];
    ck_assert_ptr_nonnull(json);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_ok(mimus__json_write(path, json));
    json_decref(json);
}

/* Episode `e` has 20 samples, of which the policy agrees in 10 + e % 3, and in `more` others. */
static json_t *groups(int more, double nll) {
    json_t *samples = json_array(), *hits = json_array(), *sums = json_array();
    for (int e = 0; e < EPISODES; e++) {
        json_array_append_new(samples, json_integer(20));
        json_array_append_new(hits, json_integer(10 + e % 3 + more));
        json_array_append_new(sums, json_real(20 * nll));
    }
    return json_pack("{s:o, s:o, s:o}", "samples", samples, "hits", hits, "nll", sums);
}

static json_t *evaluation(int more, double nll, int first_episode) {
    json_t *episodes = json_array();
    for (int e = 0; e < EPISODES; e++)
        json_array_append_new(episodes, json_integer(first_episode + e));
    return json_pack("{s:i, s:i, s:[{s:s, s:f}], s:{s:f}, s:{s:i, s:o, s:[o], s:o}}", "samples",
                     20 * EPISODES, "episodes", EPISODES, "heads", "name", "<b>move</b>",
                     "agreement", 0.5, "joint", "agreement", 0.5, "by_episode", "together", 1,
                     "episodes", episodes, "heads", groups(more, nll), "joint", groups(more, nll));
}

/* A run's folder; two steps an epoch, one of them not finite. */
static void make_run(const char *folder, int epochs, double lr, json_t *judged) {
    char path[600], rows[4096] = "";
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    write_json(folder, "config.json",
               json_pack("{s:f, s:[i,i], s:i}", "lr", lr, "hidden", 8, 8, "seed", 0));
    write_json(folder, "run.json",
               json_pack("{s:s, s:{s:[s], s:s, s:i}}", "mimus", "0.1.0", "recording", "files",
                         "/secret/place/play.rec", "fingerprint", "abc", "samples", 900));
    write_json(folder, "summary.json",
               json_pack("{s:s, s:s, s:i, s:i}", "run", folder, "ended", "finished", "epochs",
                         epochs, "best_epoch", epochs));
    for (int e = 1; e <= epochs; e++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows),
                 "{\"epoch\": %d, \"loss\": %d, \"heads\": [], \"step_loss\": [%d, null]}\n", e,
                 10 - e, 20 - e);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    test_file_write(path, rows, strlen(rows));
    if (judged != NULL)
        write_json(folder, "evaluation.json", judged);
}

static void setup(void) {
    snprintf(base, sizeof base, "%s", test_folder_path("base"));
    snprintf(other, sizeof other, "%s", test_folder_path("other"));
}

static json_t *compare(const char *first, const char *second) {
    const char *const runs[] = {first, second};
    char *text;
    json_t *json;
    test_ok(mimus_compare(runs, 2, &text));
    test_ok(mimus__json_parse(&json, text, strlen(text), "the comparison"));
    mimus_free(text);
    return json;
}

/* Of metric `row` (agreement, nll), what the second run is against the first. */
static const json_t *against(const json_t *json, size_t row) {
    const json_t *metric = json_array_get(json_object_get(json, "metrics"), row);
    return json_array_get(json_object_get(metric, "against_first"), 0);
}

static double number(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_number(value), "%s is not a number", key);
    return json_number_value(value);
}

static const char *text(const json_t *json, const char *key) {
    const char *value = json_string_value(json_object_get(json, key));
    ck_assert_msg(value != NULL, "%s is not a text", key);
    return value;
}

static const json_t *second_run(const json_t *json) {
    return json_array_get(json_object_get(json, "runs"), 1);
}

START_TEST(a_difference_in_every_episode_is_beyond_noise) {
    make_run(base, 2, 1e-3, evaluation(0, 0.75, 0));
    make_run(other, 2, 2e-3, evaluation(1, 0.8125, 0));
    json_t *json = compare(base, other);
    ck_assert_str_eq(text(second_run(json), "test"), "paired");
    ck_assert_uint_eq(json_array_size(json_object_get(json, "metrics")), 2); /* one head */
    const json_t *agreement = against(json, 0), *nll = against(json, 1);
    ck_assert(fabs(number(agreement, "difference") - 1.0 / 20) < 1e-9);
    ck_assert(number(agreement, "se") == 0);
    ck_assert(fabs(number(agreement, "p") - 1e-4) < 1e-9); /* the least that 9,999 draws can say */
    ck_assert(fabs(number(agreement, "p_corrected") - 2e-4) < 1e-9);
    ck_assert_str_eq(text(agreement, "verdict"), "better");
    ck_assert(number(nll, "difference") == 0.0625);
    ck_assert_str_eq(text(nll, "verdict"), "worse");
    const json_t *settings = json_object_get(json, "settings");
    ck_assert_uint_eq(json_array_size(settings), 1);
    ck_assert_str_eq(text(json_array_get(settings, 0), "name"), "lr");
    json_decref(json);
}
END_TEST

START_TEST(equal_results_are_within_noise) {
    make_run(base, 2, 1e-3, evaluation(0, 0.75, 0));
    make_run(other, 2, 1e-3, evaluation(0, 0.75, 0));
    json_t *json = compare(base, other);
    for (size_t row = 0; row < 2; row++) {
        ck_assert(number(against(json, row), "difference") == 0);
        ck_assert(number(against(json, row), "p_corrected") == 1);
        ck_assert_str_eq(text(against(json, row), "verdict"), "within noise");
    }
    ck_assert_uint_eq(json_array_size(json_object_get(json, "settings")), 0);
    json_decref(json);
}
END_TEST

/* Standard errors by hand: hits 10, 11, 12 in turn of 20 spread by sqrt(2/3) / 20, over 24. */
START_TEST(other_episodes_are_not_paired) {
    make_run(base, 2, 1e-3, evaluation(0, 0.75, 0));
    make_run(other, 2, 1e-3, evaluation(1, 0.75, 100));
    json_t *json = compare(base, other);
    ck_assert_str_eq(text(second_run(json), "test"), "unpaired");
    ck_assert_ptr_nonnull(strstr(text(second_run(json), "why"), "held out"));
    double se = sqrt(24.0 / 23 * 24 * (2.0 / 3)) / 480;
    ck_assert(fabs(number(against(json, 0), "se") - sqrt(2) * se) < 1e-8);
    double p = erfc(0.05 / (sqrt(2) * se) / sqrt(2));
    ck_assert(fabs(number(against(json, 0), "p") - p) < 1e-7);
    json_decref(json);
}
END_TEST

START_TEST(other_recordings_are_not_compared) {
    make_run(base, 2, 1e-3, evaluation(0, 0.75, 0));
    make_run(other, 2, 1e-3, evaluation(1, 0.75, 0));
    write_json(other, "run.json",
               json_pack("{s:s, s:{s:[s], s:s, s:i}}", "mimus", "0.1.0", "recording", "files",
                         "x.rec", "fingerprint", "abd", "samples", 900));
    json_t *json = compare(base, other);
    ck_assert(json_is_null(json_object_get(second_run(json), "test")));
    ck_assert_ptr_nonnull(strstr(text(second_run(json), "why"), "another recording"));
    ck_assert(json_is_null(against(json, 0)));
    json_decref(json);
}
END_TEST

START_TEST(what_is_no_run_is_refused) {
    char path[600], *unused;
    make_run(base, 2, 1e-3, evaluation(0, 0.75, 0));
    make_run(other, 2, 1e-3, NULL);
    const char *const none[] = {base, test_folder_path("none")}, *const empty[] = {test_folder()};
    const char *const unjudged[] = {base, other};
    test_fails(mimus_compare(none, 2, &unused), MIMUS_ERR_IO, "none: no such folder");
    ck_assert_ptr_null(unused);
    test_fails(mimus_compare(none, 1, &unused), MIMUS_ERR_ARGUMENT, "two runs or more");
    test_fails(mimus_compare(unjudged, 2, &unused), MIMUS_ERR_DATA, "mimus train --resume");
    test_fails(mimus_report(empty, 1, test_folder_path("x.html")), MIMUS_ERR_IO, "has no run.json");
    ck_assert(!mimus__file_exists(test_folder_path("x.html")));
    test_fails(mimus_report(none, 0, test_folder_path("x.html")), MIMUS_ERR_ARGUMENT, "1 to 24");
    snprintf(path, sizeof path, "%s/metrics.jsonl", other);
    test_file_write(path, "{}\n[]\n", 6);
    test_fails(mimus_report(unjudged, 2, test_folder_path("x.html")), MIMUS_ERR_FORMAT,
               "metrics.jsonl: line 2");
    test_file_write(path, "{}\n", 3);
    json_t *damaged = evaluation(0, 0.75, 0);
    json_array_append_new(
        json_object_get(json_object_get(json_object_get(damaged, "by_episode"), "joint"), "hits"),
        json_integer(1));
    json_array_append_new(
        json_object_get(
            json_array_get(json_object_get(json_object_get(damaged, "by_episode"), "heads"), 0),
            "hits"),
        json_integer(1));
    write_json(other, "evaluation.json", damaged);
    test_fails(mimus_compare(unjudged, 2, &unused), MIMUS_ERR_FORMAT, "25 \"hits\" for 24");
}
END_TEST

/* The document of a page. */
static json_t *document_of(const char *path) {
    char *page;
    size_t bytes;
    json_t *json;
    test_ok(mimus__file_read(path, SIZE_MAX, &page, &bytes));
    const char *mark = "id=\"document\">";
    char *begin = strstr(page, mark);
    ck_assert_ptr_nonnull(begin);
    begin += strlen(mark);
    char *end = strchr(begin, '<'); /* none in the document itself */
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(strncmp(end, "</script>", 9), 0);
    test_ok(mimus__json_parse(&json, begin, (size_t)(end - begin), "the page"));
    free(page);
    return json;
}

START_TEST(a_page_holds_the_run) {
    const char *page = test_folder_path("x.html");
    const char *const runs[] = {base};
    make_run(base, 3, 1e-3, evaluation(0, 0.75, 0));
    test_ok(mimus_report(runs, 1, page));
    char *whole;
    size_t bytes;
    test_ok(mimus__file_read(page, SIZE_MAX, &whole, &bytes));
    const char *const absent[] = {"http-equiv=\"refresh\"", " src=", " href=", "/secret/",
                                  "<b>move"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        ck_assert_msg(strstr(whole, absent[i]) == NULL, "the page has %s", absent[i]);
    ck_assert_ptr_nonnull(strstr(whole, "Content-Security-Policy"));
    ck_assert_ptr_nonnull(strstr(whole, "Chart.js v"));
    free(whole);
    json_t *json = document_of(page), *run = json_array_get(json_object_get(json, "runs"), 0);
    ck_assert_str_eq(text(run, "name"), "base");
    ck_assert_uint_eq(json_array_size(json_object_get(run, "epochs")), 3);
    const json_t *steps = json_object_get(run, "steps");
    ck_assert(number(steps, "together") == 1);
    const json_t *loss = json_object_get(steps, "loss");
    ck_assert_uint_eq(json_array_size(loss), 6);
    ck_assert(json_number_value(json_array_get(loss, 2)) == 18);
    ck_assert(json_is_null(json_array_get(loss, 3)));
    ck_assert_ptr_null(json_object_get(json, "comparison"));
    ck_assert_ptr_null(json_object_get(json_object_get(run, "evaluation"), "by_episode"));
    json_decref(json);
}
END_TEST

START_TEST(many_steps_are_put_together) {
    char path[600];
    const char *const runs[] = {base};
    make_run(base, 1, 1e-3, NULL);
    json_t *losses = json_array();
    for (int t = 1; t <= 3001; t++)
        json_array_append_new(losses, json_integer(t));
    char *row;
    test_ok(mimus__json_text(&row, losses, JSON_COMPACT));
    json_decref(losses);
    char *line = malloc(strlen(row) + 64);
    ck_assert_ptr_nonnull(line);
    int length = sprintf(line, "{\"epoch\": 1, \"step_loss\": %s}\n", row);
    snprintf(path, sizeof path, "%s/metrics.jsonl", base);
    test_file_write(path, line, (size_t)length);
    free(line);
    free(row);
    test_ok(mimus_report(runs, 1, test_folder_path("x.html")));
    json_t *json = document_of(test_folder_path("x.html"));
    const json_t *steps =
        json_object_get(json_array_get(json_object_get(json, "runs"), 0), "steps");
    ck_assert(number(steps, "together") == 3);
    ck_assert_uint_eq(json_array_size(json_object_get(steps, "step")), 1001);
    const char *const keys[] = {"step", "loss", "low", "high"};
    const double second[] = {5, 5, 4, 6}, last[] = {3001, 3001, 3001, 3001};
    for (size_t i = 0; i < 4; i++) {
        const json_t *array = json_object_get(steps, keys[i]);
        ck_assert(json_number_value(json_array_get(array, 1)) == second[i]);
        ck_assert(json_number_value(json_array_get(array, 1000)) == last[i]);
    }
    json_decref(json);
}
END_TEST

/* As it is while it trains, or after a kill: no end, a row half written. */
START_TEST(an_unfinished_run_has_a_page) {
    char path[600];
    const char *const runs[] = {base, other}, *const one[] = {base};
    make_run(base, 2, 1e-3, NULL);
    make_run(other, 2, 1e-3, evaluation(0, 0.75, 0));
    snprintf(path, sizeof path, "%s/summary.json", base);
    ck_assert_int_eq(remove(path), 0);
    snprintf(path, sizeof path, "%s/metrics.jsonl", base);
    test_file_write(path, "{\"epoch\": 1}\n{\"epo", 18);
    test_ok(mimus_report(one, 1, test_folder_path("x.html")));
    json_t *json = document_of(test_folder_path("x.html"));
    const json_t *run = json_array_get(json_object_get(json, "runs"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(run, "epochs")), 1);
    ck_assert(json_is_null(json_object_get(run, "summary")));
    ck_assert(json_is_null(json_object_get(run, "evaluation")));
    json_decref(json);
    test_ok(mimus_report(runs, 2, test_folder_path("x.html")));
    json = document_of(test_folder_path("x.html"));
    ck_assert_ptr_nonnull(
        strstr(text(second_run(json_object_get(json, "comparison")), "why"), "not judged"));
    json_decref(json);
}
END_TEST

START_TEST(runs_of_one_name_are_told_apart) {
    char deep[600], twin[700];
    const char *const runs[] = {base, twin};
    make_run(base, 1, 1e-3, NULL);
    snprintf(deep, sizeof deep, "%s", test_folder_path("deep"));
    ck_assert_int_eq(mkdir(deep, 0777), 0);
    snprintf(twin, sizeof twin, "%s/base", deep);
    make_run(twin, 1, 1e-3, NULL);
    test_ok(mimus_report(runs, 2, test_folder_path("x.html")));
    json_t *json = document_of(test_folder_path("x.html"));
    for (size_t i = 0; i < 2; i++)
        ck_assert_str_eq(text(json_array_get(json_object_get(json, "runs"), i), "name"), runs[i]);
    json_decref(json);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("report");
    TCase *all = tcase_create("report");
    tcase_add_checked_fixture(all, setup, test_folder_remove);
    tcase_add_test(all, a_difference_in_every_episode_is_beyond_noise);
    tcase_add_test(all, equal_results_are_within_noise);
    tcase_add_test(all, other_episodes_are_not_paired);
    tcase_add_test(all, other_recordings_are_not_compared);
    tcase_add_test(all, what_is_no_run_is_refused);
    tcase_add_test(all, a_page_holds_the_run);
    tcase_add_test(all, many_steps_are_put_together);
    tcase_add_test(all, an_unfinished_run_has_a_page);
    tcase_add_test(all, runs_of_one_name_are_told_apart);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

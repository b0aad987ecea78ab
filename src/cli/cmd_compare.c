/* mimus compare - whether runs differ, and in what. */
#include "cli.h"
#include "human.h"
#include "options.h"
#include "table.h"
#include "verbs.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_page page = {
    .verb = "compare",
    .usage = "RUN RUN... [--check]\n",
    .about = "Hold runs against the first one: which settings differ, agreement and\n"
             "likelihood on the held-out episodes with standard errors, and whether the\n"
             "difference is beyond noise. Needs no recording and no device.\n",
    .notes = "The test\n"
             "  Runs on one recording that hold out the same episodes (seed and held-out part\n"
             "  are the same) are compared episode by episode: if two policies were alike,\n"
             "  either sign of an episode's difference would be as likely, and p is how often\n"
             "  random signs give a difference as large. Other held-out episodes are told\n"
             "  apart by the normal distribution, from 20 episodes on. p is corrected for the\n"
             "  number of rows (Holm); below 0.05 it is called better or worse. That two\n"
             "  policies differ does not say that settings made them: training again with\n"
             "  other seeds does. docs/report.md has the formulas.\n"
             "\n"
             "Examples\n"
             "  mimus compare base wider\n"
             "  mimus compare base runs/* --json\n"
             "  mimus compare released candidate --check || echo do not release\n"
             "\n"
             "Exit codes: 0 compared; 1 failed; 2 wrong usage; 5 with --check, when a run is\n"
             "worse than the first one beyond noise.\n",
};

static const json_t *runs_of(const json_t *document) {
    return json_object_get(document, "runs");
}

static size_t run_count(const json_t *document) {
    return json_array_size(runs_of(document));
}

static const char *run_name(const json_t *document, size_t index) {
    return cli_text(json_array_get(runs_of(document), index), "name");
}

/* A table of a column of names, and one a run of each of `letters`. */
static cli_table *begin_table(size_t runs, const char *letters, char **columns) {
    size_t each = strlen(letters);
    *columns = cli_allocate(1 + runs * each + 1, 1);
    (*columns)[0] = 'l';
    for (size_t i = 0; i < runs * each; i++)
        (*columns)[1 + i] = letters[i % each];
    return table_new(*columns);
}

static void text_cell(cli_table *rows, const json_t *value) {
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    table_cell(rows, "%s",
               json_is_string(value) ? json_string_value(value)
               : text != NULL        ? text
                                     : "-");
    free(text);
}

static void show_settings(const json_t *document) {
    const json_t *settings = json_object_get(document, "settings"), *setting;
    size_t runs = run_count(document), i;
    char *columns;
    if (json_array_size(settings) == 0) {
        puts("All settings are the same.");
        return;
    }
    cli_table *rows = begin_table(runs, "r", &columns);
    table_cell(rows, "setting");
    for (i = 0; i < runs; i++)
        table_cell(rows, "%s", run_name(document, i));
    json_array_foreach(settings, i, setting) {
        table_cell(rows, "%s", cli_text(setting, "name"));
        for (size_t r = 0; r < runs; r++)
            text_cell(rows, json_array_get(json_object_get(setting, "values"), r));
    }
    table_print(rows, stdout, "");
    free(columns);
}

/* 71.2% or 0.6023, and the same of an error or a signed difference. */
static human figure(const json_t *metric, double value) {
    bool share = strcmp(cli_text(metric, "metric"), "agreement") == 0;
    human out;
    if (isnan(value))
        return (human){"-"};
    snprintf(out.text, sizeof out.text, share ? "%.2f%%" : "%.4f", share ? 100 * value : value);
    return out;
}

static void value_cells(cli_table *rows, const json_t *metric, size_t run) {
    const json_t *value = json_array_get(json_object_get(metric, "values"), run);
    table_cell(rows, "%s", figure(metric, cli_number(value, "value")).text);
    table_cell(rows, "+/- %s", figure(metric, cli_number(value, "se")).text);
}

/* One run beside the first: a row a metric. */
static void show_against(const json_t *document, size_t run) {
    static const char *const titles[] = {"head", "metric",     "", "",  "",
                                         "",     "difference", "", "p", ""};
    const json_t *metric, *about = json_array_get(runs_of(document), run);
    const char *test = cli_text(about, "test"), *why = cli_text(about, "why");
    char *first = human_text(run_name(document, 0), SIZE_MAX);
    char *other = human_text(run_name(document, run), SIZE_MAX);
    size_t i;
    if (test == NULL) {
        printf("\n%s and %s: %s\n", first, other, why != NULL ? why : "not comparable");
        free(first);
        free(other);
        return;
    }
    printf("\n%s, from the left, and %s, %s over %s\n", first, other, test,
           human_things(cli_number(about, "held_out_episodes"), "episode").text);
    if (why != NULL)
        printf("(%s)\n", why);
    free(first);
    free(other);
    cli_table *rows = table_new("llrrrrrrrl");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(rows, "%s",
                   i == 2   ? run_name(document, 0)
                   : i == 4 ? run_name(document, run)
                            : titles[i]);
    json_array_foreach(json_object_get(document, "metrics"), i, metric) {
        const json_t *difference =
            json_array_get(json_object_get(metric, "against_first"), run - 1);
        const char *head = cli_text(metric, "head"), *verdict = cli_text(difference, "verdict");
        double value = cli_number(difference, "difference");
        table_cell(rows, "%s", head != NULL ? head : "all at once");
        table_cell(rows, "%s", cli_text(metric, "metric"));
        value_cells(rows, metric, 0);
        value_cells(rows, metric, run);
        table_cell(rows, "%s%s", value > 0 ? "+" : "", figure(metric, value).text);
        table_cell(rows, "+/- %s", figure(metric, cli_number(difference, "se")).text);
        table_cell(rows, "%s", human_figure(cli_number(difference, "p_corrected")).text);
        table_cell(rows, "%s", verdict != NULL ? verdict : "too few episodes to say");
    }
    table_print(rows, stdout, "");
}

static void show_result(const json_t *document) {
    show_settings(document);
    for (size_t run = 1; run < run_count(document); run++)
        show_against(document, run);
    puts("\n+/- is one standard error, over episodes. mimus help compare explains the test.");
}

/* ----------------------------------------------------------------- running */

typedef struct compare_request {
    bool check, raw;
} compare_request;

static bool is_worse(const json_t *document) {
    const json_t *metric, *difference;
    size_t i, r;
    json_array_foreach(json_object_get(document, "metrics"), i, metric) {
        json_array_foreach(json_object_get(metric, "against_first"), r, difference) {
            const char *verdict = cli_text(difference, "verdict");
            if (verdict != NULL && strcmp(verdict, "worse") == 0)
                return true;
        }
    }
    return false;
}

static int run(const compare_request *request, char **operands, int count) {
    char *text = NULL;
    json_error_t error;
    if (count < 2)
        return cli_usage("compare", "name two runs or more: the first is what the others are held "
                                    "against");
    mimus_status status = mimus_compare((const char *const *)operands, (size_t)count, &text);
    if (status != MIMUS_OK)
        return cli_fail("compare", status);
    json_t *document = json_loads(text, 0, &error);
    bool worse = request->check && is_worse(document);
    json_decref(document);
    int code = cli_show("compare", text, request->raw, show_result);
    return code == CLI_DONE && worse ? CLI_WORSE : code;
}

int cmd_compare(int argc, char **argv) {
    compare_request request = {.check = false};
    const cli_option own[] = {
        {.name = "check",
         .help = "end with exit code 5 when a run is worse than the first beyond noise",
         .flag = &request.check},
        {.name = "json", .help = "print the JSON document", .flag = &request.raw},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    return code;
}

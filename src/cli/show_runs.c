#include "show_runs.h"

#include "cli.h"
#include "human.h"
#include "table.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool show_runs_is(const json_t *summary) {
    return json_is_array(json_object_get(summary, "runs"));
}

/* A setting's value in few cells; free with free(). */
static char *value_text(const json_t *value) {
    if (json_is_string(value))
        return cli_format("%s", json_string_value(value));
    if (json_is_real(value))
        return cli_format("%g", json_real_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    return text != NULL ? text : cli_format("?");
}

static void add_heading(cli_table *rows, const json_t *differ, bool held_out) {
    size_t i;
    const json_t *key;
    table_cell(rows, "run");
    json_array_foreach(differ, i, key) table_cell(rows, "%s", json_string_value(key));
    table_cell(rows, "epochs");
    table_cell(rows, "best");
    table_cell(rows, held_out ? "held-out" : "loss");
    table_cell(rows, "agreement");
    table_cell(rows, "ended");
}

static void add_run(cli_table *rows, const json_t *differ, const json_t *run) {
    size_t i;
    const json_t *key;
    table_cell(rows, "%s", cli_text(run, "name"));
    json_array_foreach(differ, i, key) {
        char *text =
            value_text(json_object_get(json_object_get(run, "settings"), json_string_value(key)));
        table_cell(rows, "%s", text);
        free(text);
    }
    table_cell(rows, "%.0f", cli_number(run, "epochs"));
    table_cell(rows, "%.0f", cli_number(run, "best_epoch"));
    table_cell(rows, "%s", human_real(cli_number(run, "best_loss")).text);
    table_cell(rows, "%s", human_share(cli_number(run, "agreement")).text);
    table_cell(rows, "%s", cli_text(run, "ended"));
}

static void show_table(const json_t *summary, bool held_out) {
    const json_t *differ = json_object_get(summary, "differ");
    const json_t *runs = json_object_get(summary, "runs"), *run;
    size_t i, settings = json_array_size(differ);
    char *columns = cli_allocate(settings + 7, 1);
    memset(columns, 'r', settings + 5);
    columns[0] = 'l';
    columns[settings + 5] = 'l';
    cli_table *rows = table_new(columns);
    add_heading(rows, differ, held_out);
    json_array_foreach(runs, i, run) add_run(rows, differ, run);
    table_print(rows, stdout, "  ");
    free(columns);
}

/* "0.7312 +- 0.0021", the error left out where one run has none. */
static char *with_error(const json_t *summary, const char *key, bool share) {
    double mean = cli_number(json_object_get(summary, "mean"), key);
    double error = cli_number(json_object_get(summary, "standard_error"), key);
    human shown = share ? human_share(mean) : human_real(mean);
    if (!isfinite(error))
        return cli_format("%s", shown.text);
    return share ? cli_format("%s +- %.2f", shown.text, 100 * error)
                 : cli_format("%s +- %.2g", shown.text, error);
}

/* How to go on, or to use them. */
static void show_next(const json_t *summary, const char *folder) {
    const char *best = cli_text(summary, "best");
    if (strcmp(cli_text(summary, "ended"), "stopped on request") == 0)
        printf("To go on: mimus train --resume %s\n", folder);
    else if (best != NULL)
        printf("To judge the best, and all as one: mimus eval %s/%s RECORDING...\n%s%s "
               "RECORDING...\n",
               folder, best, "                                   mimus eval ", folder);
}

void show_runs(const json_t *summary) {
    char *folder = human_text(cli_text(summary, "run"), SIZE_MAX);
    bool held_out = json_is_true(json_object_get(summary, "held_out"));
    const char *best = cli_text(summary, "best");
    char *loss = with_error(summary, "best_loss", false);
    char *agreement = with_error(summary, "agreement", true);
    printf("%s: %s %s; %s in %s, %s from the device%s\n", folder,
           human_things((double)json_array_size(json_object_get(summary, "runs")), "run").text,
           cli_text(summary, "ended"),
           human_things(cli_number(summary, "epochs_run"), "epoch").text,
           human_seconds(cli_number(summary, "seconds")).text,
           human_things(cli_number(summary, "reads"), "read").text,
           json_is_true(json_object_get(summary, "shared_batches")) ? ", batches shared" : "");
    show_table(summary, held_out);
    printf("mean of the runs, +- its standard error: %s loss %s, agreement %s\n",
           held_out ? "held-out" : "training", loss, agreement);
    if (best != NULL)
        printf("best: %s\n", best);
    show_next(summary, folder);
    free(folder);
    free(loss);
    free(agreement);
}

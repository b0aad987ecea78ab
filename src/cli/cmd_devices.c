/* mimus devices - the list, and the self-test. */
#include "cli.h"
#include "human.h"
#include "options.h"
#include "progress.h"
#include "table.h"
#include "terminal.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_page page = {
    .verb = "devices",
    .usage = "[--device SELECTOR] [--json]\n"
             "--selftest [--device SELECTOR] [--json]\n",
    .about = "List the OpenCL platforms and devices; a star marks the one that is used. With\n"
             "--selftest, run its kernels on small cases against a reference in double\n"
             "precision: what a driver computes wrongly shows there.\n",
    .notes = "A selector is gpu, cpu, PLATFORM:DEVICE as listed, or a part of a name. Without\n"
             "one the variable MIMUS_DEVICE counts, then the first GPU, then the first CPU.\n"
             "\n"
             "Columns\n"
             "  id       what --device and MIMUS_DEVICE take\n"
             "  units    cores of a CPU, multiprocessors of a GPU\n"
             "  memory   of the device, as its driver reports it\n"
             "  buffer   the most that one buffer may hold; a larger recording lies in several\n"
             "\n"
             "Examples\n"
             "  mimus devices\n"
             "  mimus devices --selftest --device gpu\n"
             "  MIMUS_DEVICE=0:1 mimus train play.rec -o run\n"
             "\n"
             "Exit code 3: no device matches, or it failed the test.\n",
};

static void show_platform(const json_t *platform) {
    const char *error = cli_text(platform, "error");
    char *line = error != NULL
                     ? cli_format("platform %.0f: %s", cli_number(platform, "index"), error)
                     : cli_format("platform %.0f: %s, %s", cli_number(platform, "index"),
                                  cli_text(platform, "name"), cli_text(platform, "version"));
    char *fit = human_text(line, terminal_room(STDOUT_FILENO, 0));
    puts(fit);
    free(fit);
    free(line);
}

/* What stands behind a device's row. */
static const char *remark(const json_t *device) {
    const char *unusable = cli_text(device, "unusable");
    return unusable != NULL ? unusable : "";
}

static void show_devices(const json_t *document) {
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(document, "platforms"), i, row) show_platform(row);
    static const char *const titles[] = {"",       "id",     "type",   "units", "memory",
                                         "buffer", "device", "driver", ""};
    cli_table *table = table_new("lllrrrlll");
    for (size_t t = 0; t < sizeof titles / sizeof *titles; t++)
        table_cell(table, "%s", titles[t]);
    json_array_foreach(json_object_get(document, "devices"), i, row) {
        table_cell(table, "%s", json_is_true(json_object_get(row, "chosen")) ? "*" : "");
        table_cell(table, "%s", cli_text(row, "id"));
        table_cell(table, "%s", cli_text(row, "type"));
        table_cell(table, "%.0f", cli_number(row, "compute_units"));
        table_cell(table, "%s", human_bytes(cli_number(row, "memory")).text);
        table_cell(table, "%s", human_bytes(cli_number(row, "largest_buffer")).text);
        table_cell(table, "%s", cli_text(row, "name"));
        table_cell(table, "%s", cli_text(row, "driver"));
        table_cell(table, "%s", remark(row));
    }
    table_print(table, stdout, "");
}

/* The library lists what there is even where nothing matches. */
static bool nothing_chosen(const char *text) {
    json_t *document = json_loads(text, 0, NULL);
    bool nothing = json_is_null(json_object_get(document, "chosen"));
    json_decref(document);
    return nothing;
}

static int list_devices(const char *selector, bool raw) {
    char *text = NULL;
    mimus_status status = mimus_devices(selector, &text);
    if (status != MIMUS_OK)
        return cli_fail("devices", status);
    bool nothing = nothing_chosen(text);
    if (nothing) /* said first: showing the list may put another failure in its place */
        cli_fail("devices", MIMUS_ERR_NO_DEVICE);
    int code = cli_show("devices", text, raw, show_devices);
    return code == CLI_DONE && nothing ? CLI_DEVICE : code;
}

static void show_checks(const json_t *document) {
    static const char *const titles[] = {"check", "", "worst", "tolerance", ""};
    size_t i;
    const json_t *row;
    cli_table *rows = table_new("llrrl");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(rows, "%s", titles[i]);
    json_array_foreach(json_object_get(document, "checks"), i, row) {
        const char *error = cli_text(row, "error");
        table_cell(rows, "%s", cli_text(row, "name"));
        table_cell(rows, json_is_true(json_object_get(row, "passed")) ? "passed" : "FAILED");
        table_cell(rows, "%s", human_real(cli_number(row, "worst")).text);
        table_cell(rows, "%s", human_real(cli_number(row, "tolerance")).text);
        table_cell(rows, "%s", error != NULL ? error : "");
    }
    json_array_foreach(json_object_get(document, "skipped"), i, row) {
        table_cell(rows, "%s", cli_text(row, "name"));
        table_cell(rows, "left out");
        table_cell(rows, "%s", "");
        table_cell(rows, "%s", "");
        table_cell(rows, "%s", cli_text(row, "reason"));
    }
    printf("%s\n", cli_text(json_object_get(document, "device"), "name"));
    table_print(rows, stdout, "  ");
}

/* The document tells which check failed, so it is shown either way. */
static int test_device(const char *selector, bool raw) {
    char *text = NULL;
    mimus_status status = mimus_selftest(selector, &text);
    int failed = status != MIMUS_OK ? cli_fail("devices", status) : CLI_DONE;
    int shown = text != NULL ? cli_show("devices", text, raw, show_checks) : CLI_DONE;
    return failed != CLI_DONE ? failed : shown;
}

int cmd_devices(int argc, char **argv) {
    bool raw = false, selftest = false;
    const char *selector = NULL;
    const cli_option own[] = {
        {.name = "selftest", .help = "test the device that is used", .flag = &selftest},
        {.name = "device", .value = "SELECTOR", .help = "the device to use", .text = &selector},
        {.name = "json", .help = "print the JSON document", .flag = &raw},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = first < argc ? cli_usage("devices",
                                        "\"%s\" is one argument too many; a device is "
                                        "chosen with --device",
                                        argv[first])
               : selftest   ? test_device(selector, raw)
                            : list_devices(selector, raw);
    options_clear(&groups);
    return code;
}

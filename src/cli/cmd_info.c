/* mimus info - what a recording holds. */
#include "cli.h"
#include "faults.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "table.h"
#include "terminal.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of long lists the beginning is shown; --json has them all. */
enum { MOST_ACTIONS = 16, MOST_SENSES = 24, MOST_ROWS = 48, BAR_CELLS = 30 };

static const option_page page = {
    .verb = "info",
    .usage = "FILE... [--json]\n",
    .about = "Describe files that together are one recording: its senses, heads and actions,\n"
             "how often each was taken, and the samples that nothing can be learned from.\n",
    .notes = "Examples\n"
             "  mimus info play.rec\n"
             "  mimus info day1.npz day2.npz --heads move:5,shoot:2\n"
             "  mimus info play.rec --json | jq .heads[0].shares\n",
};

/* ------------------------------------------------------------------- heads */

typedef struct action {
    size_t index;
    double count;
} action;

static int more_frequent(const void *a, const void *b) {
    const action *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return left->index < right->index ? -1 : 1;
}

/* The actions of a head in their own order, or the most frequent first when they are too many to
 * show; free with free(). */
static action *order_actions(const json_t *counts) {
    size_t count = json_array_size(counts);
    action *actions = cli_allocate(count, sizeof *actions);
    for (size_t i = 0; i < count; i++)
        actions[i] = (action){i, json_number_value(json_array_get(counts, i))};
    if (count > MOST_ACTIONS)
        qsort(actions, count, sizeof *actions, more_frequent);
    return actions;
}

/* What a row of a head's table begins with: the action's name, its bin's value and reach, or its
 * number. */
static void action_cell(cli_table *rows, const json_t *named, size_t index) {
    const json_t *values = json_object_get(named, "values");
    const json_t *edges = json_object_get(named, "edges");
    const char *name = json_string_value(json_array_get(json_object_get(named, "actions"), index));
    const size_t count = json_array_size(values);
    if (count == 0 && name == NULL) {
        table_cell(rows, "%zu", index);
    } else if (count == 0) {
        table_cell(rows, "%s", name);
    } else {
        const human value = human_figure(json_number_value(json_array_get(values, index)));
        const human from = human_figure(json_number_value(json_array_get(edges, index - 1)));
        const human to = human_figure(json_number_value(json_array_get(edges, index)));
        table_cell(rows, "%s (%s%s%s)", value.text, index > 0 ? from.text : "below ",
                   index == 0          ? to.text
                   : index + 1 < count ? " to "
                                       : " and above",
                   index > 0 && index + 1 < count ? to.text : "");
    }
}

/* Bars are relative to the most frequent action. */
static void show_actions(const json_t *head, const json_t *named) {
    const json_t *counts = json_object_get(head, "counts");
    size_t count = json_array_size(counts), shown = count < MOST_ACTIONS ? count : MOST_ACTIONS;
    double labels = cli_number(head, "labels"), most = 0;
    action *actions = order_actions(counts);
    cli_table *rows = table_new("lrrl");
    for (size_t i = 0; i < shown; i++)
        most = actions[i].count > most ? actions[i].count : most;
    for (size_t i = 0; i < shown; i++) {
        char bar[4 * BAR_CELLS + 8];
        human_bar(bar, sizeof bar, most > 0 ? actions[i].count / most : 0, BAR_CELLS);
        action_cell(rows, named, actions[i].index);
        table_cell(rows, "%s", human_count(actions[i].count).text);
        table_cell(rows, "%s", human_share(actions[i].count / labels).text);
        table_cell(rows, "%s", bar);
    }
    table_print(rows, stdout, "    ");
    if (shown < count)
        printf("    (the most frequent %zu of %zu)\n", shown, count);
    free(actions);
}

static void show_head(const json_t *head, const json_t *named, bool masks) {
    char *name = human_text(cli_text(head, "name"), terminal_room(STDOUT_FILENO, 40));
    double absent = cli_number(head, "absent"), legal = cli_number(head, "mean_legal");
    printf("  %s: %s %s", name, human_count(cli_number(head, "actions")).text,
           json_object_get(named, "values") != NULL ? "bins" : "actions");
    free(name);
    if (masks && isfinite(legal)) /* without samples there is no average */
        printf(", %.1f of them legal on average", legal);
    if (absent > 0)
        printf("; %s without a label", human_things(absent, "sample").text);
    putchar('\n');
    show_actions(head, named);
}

static void show_heads(const json_t *info) {
    const json_t *schema = json_object_get(info, "schema");
    const json_t *named = json_object_get(schema, "heads"), *head;
    bool masks = json_is_true(json_object_get(schema, "masks"));
    size_t i;
    printf("\nHeads\n");
    json_array_foreach(json_object_get(info, "heads"), i, head)
        show_head(head, json_array_get(named, i), masks);
}

/* ------------------------------------------------------------------ senses */

static void sense_row(cli_table *rows, size_t index, const json_t *sense) {
    static const char *const numbers[] = {"mean", "std", "minimum", "maximum"};
    const char *name = cli_text(sense, "name");
    if (name != NULL)
        table_cell(rows, "%s", name);
    else
        table_cell(rows, "%zu", index);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        table_cell(rows, "%s", human_figure(cli_number(sense, numbers[i])).text);
    table_cell(rows, "%s", json_is_true(json_object_get(sense, "constant")) ? "constant" : "");
}

/* The first senses, and of the rest those that never change: they say nothing. */
static void show_senses(const json_t *info) {
    const json_t *senses = json_object_get(info, "senses"), *sense;
    size_t count = json_array_size(senses), shown = 0, i;
    double constant = cli_number(info, "constant_senses");
    printf("\nSenses\n");
    if (count == 0) {
        printf("  none\n");
        return;
    }
    cli_table *rows = table_new("lrrrrl");
    const char *const titles[] = {"", "mean", "std", "minimum", "maximum", ""};
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(rows, "%s", titles[i]);
    json_array_foreach(senses, i, sense) {
        bool still = json_is_true(json_object_get(sense, "constant"));
        if (i >= MOST_SENSES && (!still || shown >= MOST_ROWS))
            continue;
        sense_row(rows, i, sense);
        shown++;
    }
    table_print(rows, stdout, "  ");
    if (shown < count)
        printf("  (%zu of %zu senses; --json has them all)\n", shown, count);
    if (constant > 0)
        printf("  %s of %zu never change%s: the network does not see %s\n",
               human_count(constant).text, count, constant == 1 ? "s" : "",
               constant == 1 ? "it" : "them");
}

/* ------------------------------------------------------------------- whole */

static void show_files(const json_t *info) {
    const json_t *files = json_object_get(info, "files"), *file;
    size_t i;
    json_array_foreach(files, i, file) {
        if (i >= MOST_SENSES) {
            printf("(and %s more)\n",
                   human_things((double)(json_array_size(files) - i), "file").text);
            break;
        }
        char *path = human_text(cli_text(file, "path"), terminal_room(STDOUT_FILENO, 12));
        printf("%s: %s\n", path, human_bytes(cli_number(file, "bytes")).text);
        free(path);
    }
}

static void show_metadata(const json_t *info) {
    size_t i;
    const json_t *metadata;
    json_array_foreach(json_object_get(info, "metadata"), i, metadata) {
        /* six digits: to be read; --json has all of them */
        const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(6);
        char *text = json_object_size(metadata) > 0 ? json_dumps(metadata, flags) : NULL;
        if (text == NULL)
            continue;
        char *fit = human_text(text, terminal_room(STDOUT_FILENO, 10));
        printf("metadata: %s\n", fit);
        free(fit);
        free(text);
    }
}

static void show_length(const json_t *info) {
    const json_t *episodes = json_object_get(info, "episodes");
    double shortest = cli_number(episodes, "shortest"), longest = cli_number(episodes, "longest");
    printf("%s in %s of %s", human_things(cli_number(info, "samples"), "sample").text,
           human_things(cli_number(episodes, "count"), "episode").text, human_count(shortest).text);
    if (longest > shortest)
        printf(" to %s, %.1f on average", human_count(longest).text, cli_number(episodes, "mean"));
    printf("; fingerprint %s\n", cli_text(info, "fingerprint"));
}

/* No fault: such a head has nothing to choose, and trains nothing. */
static void show_masked_out(const json_t *info) {
    double pairs = cli_number(info, "without_legal");
    if (pairs > 0)
        printf("\n%s no action of a head was legal\n", human_things(pairs, "time").text);
}

/* What each form of the senses takes on the device; nothing for what no network fits. */
static void show_bytes(const json_t *bytes) {
    const json_t *needs = json_object_get(bytes, "training"), *need;
    const char *const titles[] = {"on the device", "a sample", "recording", "training, GPU",
                                  "training, CPU"};
    const char *const keys[] = {"sample", "recording", "phased", "block"};
    size_t i;
    if (json_array_size(needs) == 0)
        return;
    cli_table *rows = table_new("lrrrr");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(rows, "%s", titles[i]);
    json_array_foreach(needs, i, need) {
        table_cell(rows, "  --store %s", cli_text(need, "store"));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            table_cell(rows, "%s", human_bytes(cli_number(need, keys[k])).text);
    }
    table_print(rows, stdout, "");
}

static void show_info(const json_t *info) {
    const json_t *bytes = json_object_get(info, "bytes");
    show_files(info);
    show_length(info);
    show_bytes(bytes);
    if (json_is_true(json_object_get(json_object_get(info, "schema"), "weights")))
        printf("samples are weighted, %s on average\n",
               human_figure(cli_number(info, "mean_weight")).text);
    show_metadata(info);
    show_heads(info);
    show_senses(info);
    show_masked_out(info);
    printf("\nFaults\n");
    if (faults_print(info, "  ") == 0)
        printf("  none\n");
}

/* ----------------------------------------------------------------- running */

typedef struct info_request {
    cli_input input;
    bool raw, quiet;
} info_request;

static int run(const info_request *request, char **operands, int count) {
    mimus_source source;
    char *text = NULL;
    if (count == 0)
        return cli_usage("info", "no file is named");
    if (!input_source(&request->input, "info", operands, count, &source))
        return CLI_USAGE;
    cli_progress *progress = progress_begin("info", "", request->quiet);
    mimus_status status = mimus_info(&source, progress_watch(progress), &text);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("info", status);
    return cli_show("info", text, request->raw, show_info);
}

int cmd_info(int argc, char **argv) {
    info_request request = {.raw = false};
    const cli_option own[] = {
        {.name = "json", .help = "print the JSON document", .flag = &request.raw},
        {.letter = 'q', .name = "quiet", .help = "show no progress", .flag = &request.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    input_init(&request.input, &groups, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    input_clear(&request.input);
    return code;
}

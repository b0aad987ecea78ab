/* mimus eval - what a trained policy is worth on a recording. */
#include "cli.h"
#include "confusion.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "table.h"
#include "terminal.h"
#include "verbs.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_page page = {
    .verb = "eval",
    .usage = "RUN|MODEL RECORDING... [--part PART] [--confusion]\n",
    .about = "Judge a run (its best checkpoint) or a .safetensors checkpoint on recordings:\n"
             "how often its most probable legal action is the player's, and how probable it\n"
             "finds what the player did. A folder of many runs is judged run by run, and all\n"
             "as one, by the mean of their probabilities.\n",
    .notes = "Columns\n"
             "  agreement   the most probable legal action is the player's; standard error\n"
             "  nll         mean of -log p(player's action), in nats\n"
             "  entropy     of the policy's probabilities, in nats\n"
             "  p(true)     mean probability of the player's action\n"
             "  illegal     how often the most probable action of all is a forbidden one\n"
             "  majority    agreement of always taking the most frequent action\n"
             "  uniform     agreement of a legal action at random\n"
             "The last row is of all heads at once: agreement in every one, the sum of nll.\n"
             "\n"
             "Examples\n"
             "  mimus eval run other.rec\n"
             "  mimus eval run play.rec --part held-out --confusion\n"
             "  mimus eval run/last.safetensors play.npz --heads 5,2 --json\n",
};

static const char *const part_names[] = {
    [MIMUS_PART_ALL] = "all",
    [MIMUS_PART_HELDOUT] = "held-out",
    [MIMUS_PART_TRAINING] = "training",
};
enum { PARTS = sizeof part_names / sizeof *part_names, NAME_CELLS = 40 };

/* ------------------------------------------------------------------ result */

static void agreement_cells(cli_table *rows, const json_t *part) {
    table_cell(rows, "%s", human_share(cli_number(part, "agreement")).text);
    table_cell(rows, "+/- %s", human_share(cli_number(part, "agreement_se")).text);
}

static void head_row(cli_table *rows, const json_t *head) {
    static const char *const shares[] = {"p_true", "illegal", "majority", "uniform_legal"};
    table_cell(rows, "%s", cli_text(head, "name"));
    table_cell(rows, "%s", human_count(cli_number(head, "samples")).text);
    agreement_cells(rows, head);
    table_cell(rows, "%s", human_real(cli_number(head, "nll")).text);
    table_cell(rows, "%s", human_real(cli_number(head, "entropy")).text);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        table_cell(rows, "%s", human_share(cli_number(head, shares[i])).text);
}

static void show_heads(const json_t *result) {
    static const char *const titles[] = {"head",    "samples", "agreement", "",         "nll",
                                         "entropy", "p(true)", "illegal",   "majority", "uniform"};
    size_t i;
    const json_t *head, *joint = json_object_get(result, "joint");
    cli_table *rows = table_new("lrrlrrrrrr");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(rows, "%s", titles[i]);
    json_array_foreach(json_object_get(result, "heads"), i, head) head_row(rows, head);
    if (json_is_object(joint)) {
        table_cell(rows, "all at once");
        table_cell(rows, "%s", human_count(cli_number(joint, "samples")).text);
        agreement_cells(rows, joint);
        table_cell(rows, "%s", human_real(cli_number(joint, "nll")).text);
        for (i = 5; i < sizeof titles / sizeof *titles; i++)
            table_cell(rows, "%s", "");
    }
    table_print(rows, stdout, "");
}

static void show_confusion(const json_t *result) {
    size_t i;
    const json_t *head;
    if (json_object_get(json_array_get(json_object_get(result, "heads"), 0), "confusion") != NULL)
        puts("\nA row below is an action of the player: of 100 times that it was chosen, how\n"
             "often the policy chooses each column (.: never). The diagonal is agreement.");
    json_array_foreach(json_object_get(result, "heads"), i, head) {
        const json_t *matrix = json_object_get(head, "confusion");
        if (matrix == NULL)
            continue;
        char name[4 * NAME_CELLS + 8];
        human_fit(name, sizeof name, cli_text(head, "name"), NAME_CELLS);
        printf("\n%s: the player's action from top to bottom, the policy's from left to right, "
               "in %% of the row\n",
               name);
        confusion_print(matrix, json_object_get(head, "actions"), terminal_columns(STDOUT_FILENO));
    }
}

/* "over episodes" when every error is; a head with labels in few episodes has its own way. */
static const char *errors_are_over(const json_t *result) {
    const char *over = cli_text(json_object_get(result, "joint"), "se_over");
    size_t i;
    const json_t *head;
    json_array_foreach(json_object_get(result, "heads"), i, head) {
        const char *own = cli_text(head, "se_over");
        if (over == NULL || own == NULL || strcmp(own, over) != 0)
            return "episodes or, where there are few, samples";
    }
    return over != NULL ? over : "samples";
}

/* The mean of a model's heads. */
static double mean_of(const json_t *judged, const char *key) {
    double sum = 0, count = 0;
    size_t i;
    const json_t *head;
    json_array_foreach(json_object_get(judged, "heads"), i, head) {
        double value = cli_number(head, key);
        sum += isfinite(value) ? value : 0;
        count += isfinite(value);
    }
    return count > 0 ? sum / count : NAN;
}

static void member_row(cli_table *rows, const char *name, const json_t *judged) {
    const json_t *joint = json_object_get(judged, "joint");
    table_cell(rows, "%s", name);
    table_cell(rows, "%s", human_share(mean_of(judged, "agreement")).text);
    table_cell(rows, "%s", human_share(cli_number(joint, "agreement")).text);
    table_cell(rows, "%s", human_real(cli_number(joint, "nll")).text);
}

/* The members of many, and what they are together. */
static void show_members(const json_t *result) {
    size_t i;
    const json_t *members = json_object_get(result, "members"), *member;
    cli_table *rows = table_new("lrrr");
    if (members == NULL) {
        table_free(rows);
        return;
    }
    table_cell(rows, "run");
    table_cell(rows, "agreement");
    table_cell(rows, "all at once");
    table_cell(rows, "nll");
    json_array_foreach(members, i, member) member_row(rows, cli_text(member, "name"), member);
    member_row(rows, "as one", result);
    table_print(rows, stdout, "");
    puts("As one: the mean of their probabilities; below, in full.\n");
}

static void show_result(const json_t *result) {
    char *model = human_text(cli_text(result, "model"), SIZE_MAX);
    size_t members = json_array_size(json_object_get(result, "members"));
    human epoch = human_count(cli_number(result, "epoch"));
    if (members > 0)
        printf(
            "%s, %s as one, on %s in %s (%s)\n", model, human_things((double)members, "run").text,
            human_things(cli_number(result, "samples"), "sample").text,
            human_things(cli_number(result, "episodes"), "episode").text, cli_text(result, "part"));
    else
        printf("%s, epoch %s, on %s in %s (%s)\n", model, epoch.text,
               human_things(cli_number(result, "samples"), "sample").text,
               human_things(cli_number(result, "episodes"), "episode").text,
               cli_text(result, "part"));
    free(model);
    show_members(result);
    if (strcmp(cli_text(result, "part"), part_names[MIMUS_PART_ALL]) == 0 &&
        json_is_true(json_object_get(result, "trained_on")))
        puts("The policy was trained on this recording; --part held-out is what it has not seen.");
    show_heads(result);
    printf("+/- is one standard error, over %s.\n"
           "illegal is how often the most probable action of all is a forbidden one: what play\n"
           "without masks would do. The other columns are of legal actions: mimus eval --help.\n",
           errors_are_over(result));
    show_confusion(result);
}

/* ----------------------------------------------------------------- running */

typedef struct eval_request {
    cli_input input;
    const char *part;
    const char *device;
    bool confusion, raw, quiet;
} eval_request;

static const char *part_at(const void *user, size_t index) {
    (void)user;
    return index < PARTS ? part_names[index] : NULL;
}

static int run(const eval_request *request, char **operands, int count) {
    mimus_source source;
    size_t part = 0;
    char *text = NULL;
    if (count < 2)
        return cli_usage("eval", count == 0 ? "no run or checkpoint is named"
                                            : "no recording is named to judge it on");
    if (!input_source(&request->input, "eval", operands + 1, count - 1, &source))
        return CLI_USAGE;
    if (request->part != NULL && !options_choice("eval", "part", request->part, part_at, &part))
        return CLI_USAGE;
    cli_progress *progress = progress_begin("eval", "", request->quiet);
    mimus_status status = mimus_eval(operands[0], &source, (mimus_part)part, request->device,
                                     request->confusion, progress_watch(progress), &text);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("eval", status);
    return cli_show("eval", text, request->raw, show_result);
}

int cmd_eval(int argc, char **argv) {
    eval_request request = {.part = NULL};
    const cli_option own[] = {
        {.name = "part",
         .value = "PART",
         .help = "all; held-out or training: as the run split the recording that it was trained on",
         .fallback = "all",
         .text = &request.part},
        {.name = "confusion",
         .help = "show, for every head, which action is taken for which",
         .flag = &request.confusion},
        {.name = "device",
         .value = "SELECTOR",
         .help = "gpu, cpu, P:D or a part of a name, as mimus devices lists them",
         .text = &request.device},
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

/* mimus train - a recording becomes a run, or a run goes on. */
#include "cli.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "settings.h"
#include "show_runs.h"
#include "table.h"
#include "verbs.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_page page = {
    .verb = "train",
    .usage = "RECORDING... -o RUN [SETTING...]\n"
             "--resume RUN [RECORDING...] [--epochs N]\n",
    .about = "Train a policy on recordings into the new folder RUN, which then holds the\n"
             "settings, the metrics of every epoch, the best and the last checkpoint. A run\n"
             "goes on with --resume as if it had never stopped, on the recordings that it\n"
             "began with (name them where they have moved). What it learns stays as it was:\n"
             "only epochs, patience, device, plan, gemm, memory, shard and\n"
             "tensorboard may change.\n"
             "\n"
             "Settings marked [,...] take several values: as many runs then train at once, and\n"
             "RUN gets a run folder each and a summary of all.\n",
    .notes = "Before the first epoch the samples are looked through (audit), packed onto the\n"
             "device (upload), and kernels are built (prepare), which takes longer the first\n"
             "time on a device, because the matrix products are timed. Agreement is how often\n"
             "the most probable legal action is the player's, on the held-out episodes.\n"
             "\n"
             "SIGINT (Ctrl-C) and SIGTERM stop after the running epoch, with everything saved;\n"
             "a second one stops at once, and the run goes on from its last whole epoch.\n"
             "\n"
             "A training whose losses are not finite, or which ends worse than choosing at\n"
             "random, has diverged: it says so and ends with exit code 4.\n"
             "\n"
             "Examples\n"
             "  mimus train play.rec -o run\n"
             "  mimus train *.rec -o run --batch 32768 --lr 1e-2 --schedule cosine\n"
             "  mimus train play.npz -o run --heads 5,2 --hidden 256,256 --patience 3\n"
             "  mimus train play.rec -o again --config run/config.json --seed 1\n"
             "  mimus train play.rec -o many --runs 16 --share-batches --keep best:3\n"
             "  mimus train play.rec -o many --lr 1e-3,3e-3,1e-2 --seed 1,2 --grid\n"
             "  mimus train play.rec -o folds --folds 5\n"
             "  mimus train --resume run --epochs 40\n",
};

/* What the command line asks for. */
typedef struct train_request {
    cli_input input;
    cli_settings settings;
    const char *run;
    const char *resume;
    bool raw, quiet;
} train_request;

/* ----------------------------------------------------------------- summary */

static void show_heads(const json_t *epoch, bool held_out) {
    size_t i;
    const json_t *heads = json_object_get(epoch, "heads"), *head;
    cli_table *rows = table_new("lrr");
    table_cell(rows, "head");
    table_cell(rows, "agreement");
    table_cell(rows, "nll");
    json_array_foreach(heads, i, head) {
        table_cell(rows, "%s", cli_text(head, "name"));
        table_cell(
            rows, "%s",
            human_share(cli_number(head, held_out ? "held_out_agreement" : "agreement")).text);
        table_cell(rows, "%s",
                   human_real(cli_number(head, held_out ? "held_out_nll" : "nll")).text);
    }
    table_print(rows, stdout, "  ");
}

static bool ended(const json_t *summary, const char *how) {
    return strcmp(cli_text(summary, "ended"), how) == 0;
}

/* "go on: COMMAND" with `gap` blanks more, or how to begin again where going on has no use. */
static void show_next(const json_t *summary, const char *run, int gap) {
    double epochs = cli_number(summary, "epochs");
    if (ended(summary, "diverged")) {
        printf("start again: mimus train RECORDING... -o NEW --config %s/config.json --lr LESS\n",
               run);
        return;
    }
    printf("go on: %*smimus train --resume %s", gap, "", run);
    if (ended(summary, "finished"))
        printf(" --epochs %.0f", 2 * epochs);
    else if (ended(summary, "stopped early"))
        fputs(" --patience 0", stdout);
    putchar('\n');
}

static void show_summary(const json_t *summary) {
    if (show_runs_is(summary)) {
        show_runs(summary);
        return;
    }
    char *run = human_text(cli_text(summary, "run"), SIZE_MAX);
    bool held_out = cli_number(summary, "held_out_samples") > 0;
    if (cli_number(summary, "epochs_run") == 0 && !ended(summary, "stopped on request")) {
        printf("%s: %s after epoch %.0f, nothing is left to do; to ", run,
               cli_text(summary, "ended"), cli_number(summary, "epochs"));
        show_next(summary, run, 0);
        free(run);
        return;
    }
    printf("%s: %s after epoch %.0f; %s in %s, %s from the device\n", run,
           cli_text(summary, "ended"), cli_number(summary, "epochs"),
           human_things(cli_number(summary, "epochs_run"), "epoch").text,
           human_seconds(cli_number(summary, "seconds")).text,
           human_things(cli_number(summary, "reads"), "read").text);
    if (json_is_object(json_object_get(summary, "best"))) { /* not before the first epoch */
        printf("best epoch: %.0f, %s loss %s\n", cli_number(summary, "best_epoch"),
               held_out ? "held-out" : "training",
               human_real(cli_number(summary, "best_loss")).text);
        show_heads(json_object_get(summary, "best"), held_out);
        printf("To judge it: mimus eval %s RECORDING...\n", run);
    }
    fputs("To ", stdout);
    show_next(summary, run, 3); /* below "To judge it" */
    free(run);
}

/* ----------------------------------------------------------------- running */

static int finish(const train_request *request, mimus_status status, char *summary) {
    int shown = CLI_DONE;
    if (status != MIMUS_OK)
        shown = cli_fail("train", status);
    if (summary == NULL)
        return shown;
    int code = cli_show("train", summary, request->raw, show_summary);
    return shown != CLI_DONE ? shown : code;
}

static int start(const train_request *request, const mimus_source *source) {
    mimus_config *config = NULL;
    char *summary = NULL;
    mimus_status status = settings_make(&request->settings, NULL, &config);
    if (status != MIMUS_OK)
        return cli_fail("train", status);
    cli_progress *progress = progress_begin("train", "after this epoch", request->quiet);
    status = mimus_train(source, config, request->run, progress_watch(progress), &summary);
    progress_end(progress);
    mimus_config_free(config);
    return finish(request, status, summary);
}

static int go_on(const train_request *request, const mimus_source *source) {
    mimus_config *config = NULL;
    char *summary = NULL;
    char *own = cli_format("%s/config.json", request->resume);
    char *mark = cli_format("%s/run.json", request->resume);
    char *many = cli_format("%s/runs.json", request->resume);
    mimus_status status = MIMUS_OK;
    /* what is no run is told so by mimus_resume */
    if (settings_given(&request->settings) && (access(mark, F_OK) == 0 || access(many, F_OK) == 0))
        status = settings_make(&request->settings, own, &config);
    free(own);
    free(mark);
    free(many);
    if (status != MIMUS_OK)
        return cli_fail("train", status);
    cli_progress *progress = progress_begin("train", "after this epoch", request->quiet);
    status = mimus_resume(request->resume, source->count > 0 ? source : NULL, config,
                          progress_watch(progress), &summary);
    progress_end(progress);
    mimus_config_free(config);
    return finish(request, status, summary);
}

static int run(const train_request *request, char **operands, int count) {
    mimus_source source;
    if (!input_source(&request->input, "train", operands, count, &source))
        return CLI_USAGE;
    if (request->resume != NULL && request->run != NULL)
        return cli_usage("train", "--resume goes on in its own folder: leave --output out");
    if (request->resume != NULL)
        return go_on(request, &source);
    if (count == 0)
        return cli_usage("train", "no recording is named");
    if (request->run == NULL)
        return cli_usage("train", "-o RUN is missing: the new folder to train into");
    return start(request, &source);
}

int cmd_train(int argc, char **argv) {
    train_request request = {.run = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = "RUN",
         .help = "the new folder",
         .text = &request.run},
        {.name = "resume", .value = "RUN", .help = "go on with this run", .text = &request.resume},
        {.name = "json", .help = "print the run's summary.json", .flag = &request.raw},
        {.letter = 'q', .name = "quiet", .help = "show no progress", .flag = &request.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    settings_init(&request.settings, &groups);
    input_init(&request.input, &groups, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    settings_clear(&request.settings);
    input_clear(&request.input);
    return code;
}

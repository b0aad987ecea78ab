/* mimus import - recordings of other formats become one .rec file. */
#include "cli.h"
#include "faults.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

static const option_page page = {
    .verb = "import",
    .usage = "FILE... -o OUT.rec [--format NAME] [--KEY VALUE...]\n",
    .about = "Write the files, which together are one recording, as one .rec file. It appears\n"
             "under its name, or replaces an old one, only when it is complete; it cannot be\n"
             "one of the files that are read. Every verb that takes recordings reads\n"
             "the same formats with the same options; a .rec is checked once and read fast.\n",
    .notes = "Examples\n"
             "  mimus import expert.npz -o expert.rec\n"
             "  mimus import expert.npz -o expert.rec --heads move:5,shoot:2 --masks legal\n"
             "  mimus import day1.npz day2.npz -o week.rec --illegal drop\n"
             "  mimus import log.csv.gz -o log.rec --actions move --episode match\n"
             "  mimus import drive.npz -o drive.rec --bin all:uniform:11\n"
             "  mimus import old.rec new.rec -o all.rec --episodes 0:100\n",
};

static void show_report(const json_t *report) {
    double dropped = cli_number(report, "dropped");
    printf("%s in %s", human_things(cli_number(report, "samples"), "sample").text,
           human_things(cli_number(report, "episodes"), "episode").text);
    if (dropped > 0)
        printf("; %s %s left out", human_count(dropped).text, dropped == 1 ? "was" : "were");
    putchar('\n');
    faults_print(report, "  ");
}

typedef struct import_request {
    cli_input input;
    const char *out;
    bool raw, quiet;
} import_request;

static int run(const import_request *request, char **operands, int count) {
    mimus_source source;
    char *report = NULL;
    if (!input_source(&request->input, "import", operands, count, &source))
        return CLI_USAGE;
    if (count == 0)
        return cli_usage("import", "no file is named");
    if (request->out == NULL)
        return cli_usage("import", "-o OUT.rec is missing: the file to write");
    cli_progress *progress = progress_begin("import", "", request->quiet);
    mimus_status status = mimus_import(&source, request->out, progress_watch(progress), &report);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("import", status);
    return cli_show("import", report, request->raw, show_report);
}

int cmd_import(int argc, char **argv) {
    import_request request = {.out = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = "OUT.rec",
         .help = "the file to write",
         .text = &request.out},
        {.name = "json", .help = "print the report as JSON", .flag = &request.raw},
        {.letter = 'q', .name = "quiet", .help = "show no progress", .flag = &request.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    input_init(&request.input, &groups, true);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    input_clear(&request.input);
    return code;
}

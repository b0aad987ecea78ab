/* mimus convert - recordings in formats for other programs. */
#include "cli.h"
#include "faults.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "verbs.h"

#include <stdio.h>

static const option_page page = {
    .verb = "convert",
    .usage = "FILE... -o OUT.npz|OUT.h5 [--format NAME] [--KEY VALUE...]\n",
    .about = "Write the files, which together are one recording, for other programs: as a\n"
             "NumPy archive or, when the name ends in .h5 or .hdf5, as HDF5 in Minari's\n"
             "layout. The file appears under its name, or replaces an old one, only when it\n"
             "is complete.\n"
             "Reading it back gives the same samples, episodes and names. Files that are not\n"
             ".rec are read into memory, as when training: import large ones first.\n",
    .notes = "Examples\n"
             "  mimus convert play.rec -o play.npz\n"
             "  mimus convert day1.rec day2.rec -o week.h5\n"
             "  mimus convert play.rec -o play-v0/data/main_data.hdf5  # as a Minari dataset\n",
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

typedef struct convert_request {
    cli_input input;
    const char *out;
    bool raw, quiet;
} convert_request;

static int run(const convert_request *request, char **operands, int count) {
    mimus_source source;
    char *report = NULL;
    if (!input_source(&request->input, "convert", operands, count, &source))
        return CLI_USAGE;
    if (count == 0)
        return cli_usage("convert", "no file is named");
    if (request->out == NULL)
        return cli_usage("convert", "-o OUT.npz or -o OUT.h5 is missing: the file to write");
    cli_progress *progress = progress_begin("convert", "", request->quiet);
    mimus_status status = mimus_convert(&source, request->out, progress_watch(progress), &report);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("convert", status);
    return cli_show("convert", report, request->raw, show_report);
}

int cmd_convert(int argc, char **argv) {
    convert_request request = {.out = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = "OUT",
         .help = "the file to write: .npz, .h5 or .hdf5",
         .text = &request.out},
        {.name = "json", .help = "print the report as JSON", .flag = &request.raw},
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

#include "rewrite.h"

#include "cli.h"
#include "faults.h"
#include "human.h"
#include "input.h"
#include "progress.h"

#include <stdio.h>

static void show_report(const json_t *report) {
    double dropped = cli_number(report, "dropped");
    printf("%s in %s", human_things(cli_number(report, "samples"), "sample").text,
           human_things(cli_number(report, "episodes"), "episode").text);
    if (dropped > 0)
        printf("; %s %s left out", human_count(dropped).text, dropped == 1 ? "was" : "were");
    putchar('\n');
    faults_print(report, "  ");
}

typedef struct request {
    cli_input input;
    const char *out;
    bool raw, quiet;
} request;

static int run(const rewrite_verb *verb, const request *wanted, char **operands, int count) {
    const char *name = verb->page.verb;
    mimus_source source;
    char *report = NULL;
    if (!input_source(&wanted->input, name, operands, count, &source))
        return CLI_USAGE;
    if (count == 0)
        return cli_usage(name, "no file is named");
    if (wanted->out == NULL)
        return cli_usage(name, "%s", verb->missing);
    cli_progress *progress = progress_begin(name, "", wanted->quiet);
    mimus_status status = verb->call(&source, wanted->out, progress_watch(progress), &report);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail(name, status);
    return cli_show(name, report, wanted->raw, show_report);
}

int rewrite_run(const rewrite_verb *verb, int argc, char **argv) {
    request wanted = {.out = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = verb->value,
         .help = verb->help,
         .text = &wanted.out},
        {.name = "json", .help = "print the report as JSON", .flag = &wanted.raw},
        {.letter = 'q', .name = "quiet", .help = "show no progress", .flag = &wanted.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    input_init(&wanted.input, &groups, verb->explain);
    if (options_parse(&verb->page, &groups, argc, argv, &first, &code))
        code = run(verb, &wanted, argv + first, argc - first);
    options_clear(&groups);
    input_clear(&wanted.input);
    return code;
}

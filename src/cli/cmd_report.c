/* mimus report - a page about runs. */
#include "cli.h"
#include "human.h"
#include "options.h"
#include "verbs.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const option_page page = {
    .verb = "report",
    .usage = "RUN... [-o FILE]\n",
    .about = "Write an HTML page about a run, or several side by side: loss by epoch and\n"
             "step, agreement per head beside baselines, which action is taken for which,\n"
             "how far probabilities can be trusted, settings, device, and where the time\n"
             "went. The page is one file that loads nothing from elsewhere. Needs no\n"
             "recording and no device; a run that is still training has less on it.\n",
    .notes = "Examples\n"
             "  mimus report run\n"
             "  mimus report runs/* -o all.html\n"
             "\n"
             "mimus compare holds runs against one another in the terminal.\n",
};

typedef struct report_request {
    const char *output;
    bool quiet;
} report_request;

static int run(const report_request *request, char **operands, int count) {
    const char *output = request->output != NULL ? request->output : "report.html";
    if (count == 0)
        return cli_usage("report", "no run is named");
    mimus_status status = mimus_report((const char *const *)operands, (size_t)count, output);
    if (status != MIMUS_OK)
        return cli_fail("report", status);
    if (!request->quiet) {
        char *shown = human_text(output, SIZE_MAX);
        printf("%s: %s; open it in a browser\n", shown, human_things(count, "run").text);
        free(shown);
    }
    return CLI_DONE;
}

int cmd_report(int argc, char **argv) {
    report_request request = {.output = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = "FILE",
         .help = "the page, replaced where there is one",
         .fallback = "report.html",
         .text = &request.output},
        {.letter = 'q', .name = "quiet", .help = "print nothing", .flag = &request.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    return code;
}

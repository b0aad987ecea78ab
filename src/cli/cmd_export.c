/* mimus export - a trained policy leaves in a form that others run. */
#include "cli.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "verbs.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_page page = {
    .verb = "export",
    .usage = "RUN|MODEL -o FILE --for TARGET [--check RECORDING]\n",
    .about = "Write a run (its best checkpoint) or a .safetensors checkpoint in a form that an\n"
             "engine takes. Normalisation, stacking and masks are part of it. Before the file\n"
             "gets its name it is read back and tried: it must choose what the policy chooses.\n",
    .notes = "Targets\n"
             "  onnxruntime   ONNX: senses and masks in; logits, probabilities and actions out\n"
             "  unity         ONNX for ML-Agents: drop it on Behaviour Parameters' Model\n"
             "  godot         ONNX for Godot RL Agents' Sync node\n"
             "  c             a .c and a .h beside it that need nothing but C99\n"
             "  safetensors   weights and normalisation, for Python; mimus reads it too\n"
             "  npz           the same for NumPy\n"
             "docs/export.md has inputs, outputs and how to use each.\n"
             "\n"
             "Examples\n"
             "  mimus export run -o policy.onnx --for onnxruntime\n"
             "  mimus export run -o Assets/policy.onnx --for unity --observations 49,4 --force\n"
             "  mimus export run/last.safetensors -o policy.onnx --for godot --check play.rec\n",
};

typedef struct export_request {
    cli_input input;
    const char *out, *target, *observations;
    cli_texts check;
    bool force, raw, quiet;
} export_request;

static void show_check(const json_t *check) {
    double ties = cli_number(check, "ties");
    if (cli_number(check, "samples") == 0) {
        puts("read back, its numbers are the policy's");
        return;
    }
    printf("tried on %s (%s): it chooses what the policy chooses",
           human_things(cli_number(check, "samples"), "sample").text, cli_text(check, "which"));
    if (ties > 0)
        printf(", but for %s", human_things(ties, "tie").text);
    printf("; logits differ by %s at most\n",
           human_figure(cli_number(check, "logit_difference")).text);
}

static void show_report(const json_t *report) {
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(report, "files"), i, file) {
        char *name = human_text(json_string_value(file), SIZE_MAX);
        printf("%s%s", i > 0 ? ", " : "", name);
        free(name);
    }
    printf(": %s, for %s; ", human_bytes(cli_number(report, "bytes")).text,
           cli_text(report, "target"));
    show_check(json_object_get(report, "check"));
}

static const char *target_at(const void *user, size_t index) {
    mimus_target target;
    (void)user;
    return mimus_export_describe(index, &target) ? target.name : NULL;
}

/* "49,4" as numbers; false after a complaint. `*out` is to be freed. */
static bool read_observations(const char *text, uint32_t **out, size_t *count) {
    *out = cli_allocate(text != NULL ? strlen(text) + 1 : 1, sizeof **out);
    *count = 0;
    for (const char *c = text; c != NULL && *c != '\0';) {
        char *end;
        unsigned long size = *c >= '0' && *c <= '9' ? strtoul(c, &end, 10) : 0;
        if (size == 0 || size > UINT32_MAX || (*end != ',' && *end != '\0') ||
            (*end == ',' && end[1] == '\0')) {
            cli_usage("export",
                      "observations: expected the senses of each sensor, such as 49,4; not \"%s\"",
                      text);
            return false;
        }
        (*out)[(*count)++] = (uint32_t)size;
        c = *end == ',' ? end + 1 : end;
    }
    return true;
}

static int write_policy(const export_request *request, const char *model, uint32_t *observations,
                        size_t observation_count) {
    mimus_source check;
    char *report = NULL;
    mimus_export_options options = {.target = request->target,
                                    .observations = observations,
                                    .observation_count = observation_count,
                                    .replace = request->force};
    if (request->check.count > 0) {
        if (!input_source(&request->input, "export", request->check.item, (int)request->check.count,
                          &check))
            return CLI_USAGE;
        options.check = &check;
    }
    cli_progress *progress = progress_begin("export", "", request->quiet);
    mimus_status status =
        mimus_export(model, request->out, &options, progress_watch(progress), &report);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("export", status);
    return cli_show("export", report, request->raw, show_report);
}

static int run(const export_request *request, char **operands, int count) {
    uint32_t *observations = NULL;
    size_t observation_count, unused;
    if (count != 1)
        return cli_usage("export", count == 0 ? "no run or checkpoint is named"
                                              : "one run or checkpoint at a time");
    if (request->out == NULL)
        return cli_usage("export", "-o FILE is missing: the file to write");
    if (request->target == NULL)
        return cli_usage("export", "--for TARGET is missing: who takes the file");
    if (!options_choice("export", "for", request->target, target_at, &unused))
        return CLI_USAGE;
    int code = CLI_USAGE;
    if (read_observations(request->observations, &observations, &observation_count))
        code = write_policy(request, operands[0], observations, observation_count);
    free(observations);
    return code;
}

int cmd_export(int argc, char **argv) {
    export_request request = {.out = NULL};
    const cli_option own[] = {
        {.letter = 'o',
         .name = "output",
         .value = "FILE",
         .help = "the file to write",
         .text = &request.out},
        {.name = "for",
         .value = "TARGET",
         .help = "who takes it, see below",
         .text = &request.target},
        {.name = "check",
         .value = "RECORDING",
         .help = "try the file on this recording; again for several files. Without, on the run's "
                 "own held-out samples where its .rec files are still there, else on made-up ones",
         .list = &request.check},
        {.name = "observations",
         .value = "N,N",
         .help = "for unity: the senses of each sensor in order, when there are several",
         .text = &request.observations},
        {.name = "force", .help = "replace a file that is there", .flag = &request.force},
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
    texts_clear(&request.check);
    return code;
}

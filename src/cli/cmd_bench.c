/* mimus bench - what training takes on a device, over what it would take at the device's best. */
#include "cli.h"
#include "human.h"
#include "input.h"
#include "options.h"
#include "progress.h"
#include "table.h"
#include "verbs.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_page page = {
    .verb = "bench",
    .usage = "[WORKLOAD...] [--samples N] [--device SELECTOR]\n"
             "[WORKLOAD...] --recording FILE [--all-devices]\n"
             "[WORKLOAD...] --ablate\n"
             "[WORKLOAD...] --runs N,N,...\n",
    .about = "Measure training: what the device can do at its best, what each phase of a step\n"
             "takes, and how many times its floor an epoch takes. The floor is the larger of\n"
             "the products' operations at the device's best rate and the gather's bytes at its\n"
             "bandwidth.\n"
             "\n"
             "With --ablate: what an epoch takes when the host uploads each batch, every\n"
             "head has a loss of its own, and the loss is read every step; then without one\n"
             "after the other. All must reach the same held-out agreement within half a\n"
             "point; the exit code is 1 when they do not.\n",
    .notes = "Their recording is made up, unless one is given with --recording;\n"
             "--samples 2490000 is the reference workload in full.\n"
             "\n"
             "Examples\n"
             "  mimus bench\n"
             "  mimus bench reference --samples 2490000 --epochs 6\n"
             "  mimus bench wide --gemm clblast --json\n"
             "  mimus bench reference wide --samples 2490000 -o report.html\n"
             "  mimus bench small --all-devices\n"
             "  mimus bench --ablate --epochs 6\n"
             "  mimus bench small --runs 1,4,16,64\n"
             "  mimus bench --recording play.rec --batch 1024\n",
};

/* ------------------------------------------------------------------------- result */

/* Thousands, as rates are read: "148 G". */
static human rate(double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    human out = {"-"};
    size_t prefix = 0;
    if (!(value >= 0))
        return out;
    for (; value >= 999.5 && prefix + 1 < sizeof prefixes / sizeof *prefixes; prefix++)
        value /= 1000;
    snprintf(out.text, sizeof out.text, "%.*f %s%s",
             value < 9.995   ? 2
             : value < 99.95 ? 1
                             : 0,
             value, prefixes[prefix], unit);
    return out;
}

/* "1.23 ms" */
static human duration(double seconds) {
    human out = {"-"};
    if (!(seconds >= 0))
        return out;
    if (seconds >= 0.9995)
        return human_seconds(seconds);
    bool micro = seconds < 0.9995e-3;
    snprintf(out.text, sizeof out.text, "%.*f %s", seconds * (micro ? 1e6 : 1e3) < 9.995 ? 2 : 1,
             seconds * (micro ? 1e6 : 1e3), micro ? "us" : "ms");
    return out;
}

static double bandwidth(const json_t *limits) {
    double copy = cli_number(limits, "copy"), triad = cli_number(limits, "triad");
    return copy > triad ? copy : triad;
}

static void show_work(const json_t *work) {
    const json_t *config = json_object_get(work, "config"), *width;
    size_t i;
    printf("%s: %s (%s held out), %s, %s in %s; hidden", cli_text(work, "title"),
           human_things(cli_number(work, "samples"), "sample").text,
           human_count(cli_number(work, "held_out_samples")).text,
           human_things(cli_number(work, "senses"), "sense").text,
           human_things(cli_number(work, "actions"), "action").text,
           human_things(cli_number(work, "heads"), "head").text);
    json_array_foreach(json_object_get(config, "hidden"), i, width)
        printf("%s%lld", i > 0 ? "," : " ", (long long)json_integer_value(width));
    printf("%s, batch %s, senses in %s\n", i == 0 ? " none" : "",
           human_count(cli_number(config, "batch")).text, cli_text(config, "store"));
}

static void show_limits(const json_t *device) {
    const json_t *limits = json_object_get(device, "limits");
    const json_t *before = json_object_get(device, "before");
    printf("%s (%s)\n", cli_text(device, "name"), cli_text(device, "id"));
    printf("  multiply-adds %s (vectors of %.0f, groups of %.0f), copy %s, triad %s\n",
           rate(cli_number(limits, "flops"), "flop/s").text, cli_number(limits, "flops_width"),
           cli_number(limits, "flops_local"), rate(cli_number(limits, "copy"), "B/s").text,
           rate(cli_number(limits, "triad"), "B/s").text);
    printf("  upload %s; the recording, packed on the way, %s\n",
           rate(cli_number(limits, "upload"), "B/s").text,
           rate(cli_number(before, "upload_bytes") / cli_number(before, "upload"), "B/s").text);
}

static void phase_row(cli_table *table, const char *name, const json_t *phase, const json_t *limits,
                      double whole) {
    double seconds = cli_number(phase, "seconds");
    double operations = cli_number(phase, "operations") / seconds;
    double bytes = cli_number(phase, "bytes") / seconds;
    bool computes = operations > 0;
    table_cell(table, "%s", name);
    table_cell(table, "%s", duration(seconds).text);
    table_cell(table, "%s", human_share(seconds / whole).text);
    table_cell(table, "%s", computes ? rate(operations, "flop/s").text : "");
    table_cell(table, "%s",
               computes ? human_share(operations / cli_number(limits, "flops")).text : "");
    table_cell(table, "%s", rate(bytes, "B/s").text);
    table_cell(table, "%s", human_share(bytes / bandwidth(limits)).text);
    table_cell(table, "%.0f", cli_number(phase, "launches"));
}

/* The tile or the back end of the products. */
static const char *plan_detail(const json_t *plan) {
    const json_t *block = json_object_get(plan, "block");
    return block != NULL ? cli_text(block, "tile")
                         : cli_text(json_object_get(plan, "gemm"), "chosen");
}

/* Of all rows the largest share: of the peak, and of the best rate of bytes. */
static double largest_share(const json_t *step, const char *what, double limit) {
    const json_t *phases = json_object_get(step, "phases"), *phase;
    double largest = cli_number(step, what) / cli_number(step, "seconds") / limit;
    size_t i;
    json_array_foreach(phases, i, phase) largest =
        fmax(largest, cli_number(phase, what) / cli_number(phase, "seconds") / limit);
    return largest;
}

static double longest_phase(const json_t *step) {
    const json_t *phase;
    double longest = 0;
    size_t i;
    json_array_foreach(json_object_get(step, "phases"), i, phase) longest =
        fmax(longest, cli_number(phase, "seconds"));
    return longest;
}

/* A reader who sees more than 100% wonders whether anything here can be trusted. */
static void explain_shares(const json_t *device) {
    const json_t *step = json_object_get(device, "step");
    const json_t *limits = json_object_get(device, "limits");
    const double over = 1.0005; /* what is shown as 100.0% is none */
    bool busy = largest_share(step, "operations", cli_number(limits, "flops")) > over ||
                longest_phase(step) > over * cli_number(step, "seconds") ||
                cli_number(json_object_get(device, "epoch"), "over_floor") < 1;
    bool cached = largest_share(step, "bytes", bandwidth(limits)) > over;
    if (busy)
        printf(
            "  More than 100%% of the peak or of the step: something else took the device's time "
            "while\n  the peak, or the step, was measured. Measure again when the machine is "
            "left to it.\n");
    if (cached)
        printf("  More than 100%% of the best rate: those bytes came from a cache%s.\n",
               busy ? ", or the same is to blame" : "");
}

static void show_phases(const json_t *device) {
    static const char *const titles[] = {"phase",   "time",  "of step", "products",
                                         "of peak", "moves", "of best", "launches"};
    const json_t *step = json_object_get(device, "step"), *phase;
    const json_t *limits = json_object_get(device, "limits");
    double whole = cli_number(step, "seconds");
    size_t i;
    cli_table *table = table_new("lrrrrrrr");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(table, "%s", titles[i]);
    json_array_foreach(json_object_get(step, "phases"), i, phase)
        phase_row(table, cli_text(phase, "name"), phase, limits, whole);
    phase_row(table, "whole step", step, limits, whole);
    table_print(table, stdout, "  ");
    const json_t *plan = json_object_get(device, "plan");
    printf(
        "  A step is %s samples by the %s plan (%s). Enqueuing it takes the host %s, %s of it.\n",
        human_count(cli_number(step, "rows")).text, cli_text(plan, "plan"), plan_detail(plan),
        duration(cli_number(step, "enqueue_seconds")).text,
        human_share(cli_number(step, "enqueue_share")).text);
}

static void show_epoch(const json_t *device) {
    const json_t *epoch = json_object_get(device, "epoch");
    const json_t *settled = json_object_get(epoch, "settled");
    double median = cli_number(settled, "median");
    printf("  epoch      %s (mean %s, %s to %s, of %.0f), first %s, after preparing for %s\n",
           duration(median).text, duration(cli_number(settled, "mean")).text,
           duration(cli_number(settled, "minimum")).text,
           duration(cli_number(settled, "maximum")).text, cli_number(settled, "epochs"),
           duration(cli_number(epoch, "first")).text,
           duration(cli_number(json_object_get(device, "before"), "prepare")).text);
    printf("  floor      %s: products %s, gather %s\n", duration(cli_number(epoch, "floor")).text,
           duration(cli_number(epoch, "operations_seconds")).text,
           duration(cli_number(epoch, "bytes_seconds")).text);
    printf("  over floor %.2f\n", cli_number(epoch, "over_floor"));
    printf("  agreement  %s held out, after the last epoch; %s launches and %s an "
           "epoch\n",
           human_share(cli_number(device, "held_out_agreement")).text,
           human_count(cli_number(epoch, "launches")).text,
           human_things(cli_number(epoch, "reads"), "blocking read").text);
}

static void device_row(cli_table *table, const json_t *device) {
    const json_t *limits = json_object_get(device, "limits");
    const json_t *epoch = json_object_get(device, "epoch");
    double median = cli_number(json_object_get(epoch, "settled"), "median");
    table_cell(table, "%s", cli_text(device, "id"));
    table_cell(table, "%s", cli_text(device, "name"));
    table_cell(table, "%s", rate(cli_number(limits, "flops"), "flop/s").text);
    table_cell(table, "%s", rate(bandwidth(limits), "B/s").text);
    table_cell(table, "%s", duration(median).text);
    table_cell(table, "%s", human_share(cli_number(epoch, "operations_seconds") / median).text);
    table_cell(table, "%s", human_share(cli_number(epoch, "bytes_seconds") / median).text);
    table_cell(table, "%.2f", cli_number(epoch, "over_floor"));
    table_cell(table, "%s", human_share(cli_number(device, "held_out_agreement")).text);
    table_cell(table, "%s", human_real(cli_number(device, "loss_difference")).text);
}

static void show_all(const json_t *devices) {
    static const char *const titles[] = {"",          "device",   "peak",   "bandwidth",
                                         "epoch",     "products", "gather", "over floor",
                                         "agreement", "loss off"};
    size_t i;
    bool beaten = false;
    const json_t *device;
    cli_table *table = table_new("llrrrrrrrr");
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(table, "%s", titles[i]);
    json_array_foreach(devices, i, device) {
        if (json_object_get(device, "error") != NULL)
            continue;
        device_row(table, device);
        beaten |= cli_number(json_object_get(device, "epoch"), "over_floor") < 1;
    }
    table_print(table, stdout, "");
    json_array_foreach(devices, i, device) {
        if (json_object_get(device, "error") != NULL)
            printf("%s %s: %s\n", cli_text(device, "id"), cli_text(device, "name"),
                   cli_text(device, "error"));
    }
    printf("products and gather are the floors' shares of an epoch%s; loss off is the largest "
           "difference of\nthe first steps' losses to those in double precision.\n",
           beaten ? " (more than 100%: the device was busy\nwhile its limits were measured)" : "");
}

static void stage_row(cli_table *table, const json_t *stage, double slowest) {
    const json_t *epoch = json_object_get(stage, "epoch");
    const json_t *settled = json_object_get(epoch, "settled");
    double median = cli_number(settled, "median");
    table_cell(table, "%s", cli_text(stage, "name"));
    table_cell(table, "%s", human_count(cli_number(stage, "batch")).text);
    table_cell(table, "%s", duration(median).text);
    table_cell(table, "%s to %s", duration(cli_number(settled, "minimum")).text,
               duration(cli_number(settled, "maximum")).text);
    table_cell(table, "%.2f", slowest / median);
    table_cell(table, "%s", human_count(cli_number(epoch, "launches")).text);
    table_cell(table, "%s", human_count(cli_number(epoch, "reads")).text);
    table_cell(table, "%s", human_bytes(cli_number(stage, "uploaded_bytes")).text);
    table_cell(table, "%s", human_share(cli_number(stage, "held_out_agreement")).text);
    table_cell(table, "%+.2f", 100 * cli_number(stage, "difference"));
}

static bool agrees(const json_t *ablation) {
    return json_is_true(json_object_get(ablation, "agrees"));
}

static void show_ablation(const json_t *ablation) {
    static const char *const titles[] = {"stage",    "batch", "epoch",   "from, to",  "faster",
                                         "launches", "reads", "uploads", "agreement", "points"};
    const json_t *stages = json_object_get(ablation, "stages"), *stage;
    const json_t *first = json_object_get(json_array_get(stages, 0), "epoch");
    double slowest = cli_number(json_object_get(first, "settled"), "median");
    size_t i;
    cli_table *table = table_new("lrrrrrrrrr");
    printf("%s (%s)\n", cli_text(ablation, "name"), cli_text(ablation, "id"));
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(table, "%s", titles[i]);
    json_array_foreach(stages, i, stage) stage_row(table, stage, slowest);
    table_print(table, stdout, "  ");
    printf("  Launches, reads and uploads are an epoch's. uploaded: the host builds each batch, a "
           "loss a head,\n  read every step. Then the recording stays on the device; one loss; one "
           "read an epoch; the plan\n  that suits the device; 32,768 samples a step.\n");
    printf("The fast way %s the slow one: %.2f points apart, %g allowed, on the same batches.\n",
           agrees(ablation) ? "agrees with" : "DOES NOT AGREE with",
           100 * cli_number(ablation, "difference"), 100 * cli_number(ablation, "tolerance"));
}

static void pass_row(cli_table *table, const json_t *pass, double recording) {
    const json_t *settled = json_object_get(json_object_get(pass, "epoch"), "settled");
    const json_t *epoch = json_object_get(pass, "epoch");
    bool alone = cli_number(pass, "runs") < 1.5;
    table_cell(table, "%.0f", cli_number(pass, "runs"));
    table_cell(table, "%s",
               alone                                           ? "-"
               : json_is_true(json_object_get(pass, "shared")) ? "shared"
                                                               : "own");
    table_cell(table, "%s", duration(cli_number(settled, "median")).text);
    table_cell(table, "%s to %s", duration(cli_number(settled, "minimum")).text,
               duration(cli_number(settled, "maximum")).text);
    table_cell(table, "%s", duration(cli_number(pass, "a_run")).text);
    table_cell(table, "%.2f", cli_number(pass, "beside_solo"));
    table_cell(table, "%.0f", cli_number(pass, "launches"));
    table_cell(table, "%s", human_count(cli_number(epoch, "reads")).text);
    table_cell(table, "%s", human_bytes(cli_number(pass, "step_bytes")).text);
    table_cell(table, "%s", human_bytes(cli_number(pass, "bytes") - recording).text);
}

static void show_many(const json_t *many) {
    static const char *const titles[] = {"runs",       "batches",  "epoch", "from, to", "a run",
                                         "beside one", "launches", "reads", "a step",   "memory"};
    double recording = cli_number(many, "recording_bytes");
    size_t i;
    const json_t *pass;
    cli_table *table = table_new("rlrrrrrrrr");
    printf("%s (%s), the recording %s\n", cli_text(many, "name"), cli_text(many, "id"),
           human_bytes(recording).text);
    for (i = 0; i < sizeof titles / sizeof *titles; i++)
        table_cell(table, "%s", titles[i]);
    json_array_foreach(json_object_get(many, "passes"), i, pass) pass_row(table, pass, recording);
    table_print(table, stdout, "  ");
    puts("  An epoch of all runs at once, what it takes of each, and that over an epoch of a run "
         "alone.\n  Launches and bytes (on paper) are a step's, reads an epoch's; memory is beside "
         "the recording.");
}

static void show_result(const json_t *document) {
    const json_t *many = json_object_get(document, "many");
    const json_t *devices = json_object_get(document, "devices");
    const json_t *ablation = json_object_get(document, "ablation");
    show_work(json_object_get(document, "workload"));
    if (ablation != NULL) {
        show_ablation(ablation);
        return;
    }
    if (many != NULL) {
        show_many(many);
        return;
    }
    if (json_object_get(document, "reference_losses") != NULL) {
        show_all(devices);
        return;
    }
    const json_t *device = json_array_get(devices, 0);
    show_limits(device);
    show_phases(device);
    show_epoch(device);
    explain_shares(device);
}

/* ------------------------------------------------------------------------ running */

typedef struct bench_request {
    cli_input input;
    const char *device, *samples, *epochs, *batch, *hidden, *plan, *gemm, *store, *runs, *report;
    cli_texts recordings;
    bool all, ablate, raw, quiet;
} bench_request;

/* false after a complaint; NULL is 0. */
static bool number(const char *option, const char *text, uint64_t most, uint64_t *out) {
    char *end;
    *out = 0;
    if (text == NULL)
        return true;
    errno = 0;
    *out = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (*out > 0 && *end == '\0' && errno == 0 && *out <= most)
        return true;
    cli_usage("bench", "%s: expected an integer from 1 to %llu, found \"%s\"", option,
              (unsigned long long)most, text);
    return false;
}

static bool make_options(const bench_request *request, mimus_source *source,
                         mimus_bench_options *out) {
    uint64_t samples, epochs, batch;
    if (!number("samples", request->samples, UINT32_MAX, &samples) ||
        !number("epochs", request->epochs, 1000000, &epochs) ||
        !number("batch", request->batch, UINT32_MAX, &batch) ||
        !input_source(&request->input, "bench", request->recordings.item,
                      (int)request->recordings.count, source))
        return false;
    *out = (mimus_bench_options){.device = request->device,
                                 .all_devices = request->all,
                                 .ablate = request->ablate,
                                 .runs = request->runs,
                                 .recording = source->count > 0 ? source : NULL,
                                 .samples = samples,
                                 .epochs = (uint32_t)epochs,
                                 .batch = (uint32_t)batch,
                                 .hidden = request->hidden,
                                 .plan = request->plan,
                                 .gemm = request->gemm,
                                 .store = request->store};
    return true;
}

/* Names that are none are told before anything is measured. */
static bool check_workloads(char **names, int count) {
    for (int i = 0; i < count; i++) {
        mimus_workload workload;
        size_t w = 0;
        while (mimus_bench_describe(w, &workload) && strcmp(workload.name, names[i]) != 0)
            w++;
        if (mimus_bench_describe(w, &workload))
            continue;
        char *known = cli_format("%s", "");
        for (w = 0; mimus_bench_describe(w, &workload); w++) {
            char *longer = cli_format("%s%s%s", known, w > 0 ? ", " : "", workload.name);
            free(known);
            known = longer;
        }
        cli_usage("bench",
                  "no workload \"%.80s\"; there are: %s (a recording is given with "
                  "--recording)",
                  names[i], known);
        free(known);
        return false;
    }
    return true;
}

/* Measure one workload and show it, unless all are to be printed raw. `*document` gets the text,
 * free with mimus_free. */
static int run_workload(const bench_request *request, const mimus_bench_options *options,
                        char **document) {
    cli_progress *progress = progress_begin("bench", "", request->quiet);
    mimus_status status = mimus_bench(options, progress_watch(progress), document);
    progress_end(progress);
    if (status != MIMUS_OK)
        return cli_fail("bench", status);
    json_error_t error;
    json_t *parsed = json_loads(*document, 0, &error);
    const json_t *ablation = json_object_get(parsed, "ablation");
    int code = CLI_DONE;
    if (parsed == NULL) {
        cli_message("bench", "cannot read the library's own document: %s", error.text);
        code = CLI_FAILED;
    } else if (!request->raw) {
        show_result(parsed);
    }
    if (ablation != NULL && !agrees(ablation)) {
        cli_message("bench", "%s: the fast way of training does not agree with the slow one",
                    cli_text(json_object_get(parsed, "workload"), "name"));
        code = CLI_FAILED;
    }
    json_decref(parsed);
    return code;
}

/* One document stays as it is, several become {"workloads": [...]}. Takes over `documents`. */
static char *join(char *documents, int before, const char *document) {
    char *joined = before == 0   ? cli_format("%s", document)
                   : before == 1 ? cli_format("{\"workloads\": [\n%s,\n%s", documents, document)
                                 : cli_format("%s,\n%s", documents, document);
    free(documents);
    return joined;
}

static int run_workloads(const bench_request *request, mimus_bench_options *options, char **names,
                         int count, char **documents) {
    int code = CLI_DONE, done = 0;
    do {
        char *document = NULL;
        options->workload = count > 0 ? names[done] : NULL;
        if (done > 0 && !request->raw)
            puts("");
        int outcome = run_workload(request, options, &document);
        if (document == NULL) {
            free(*documents);
            *documents = NULL;
            return outcome;
        }
        code = outcome != CLI_DONE ? outcome : code;
        *documents = join(*documents, done, document);
        mimus_free(document);
    } while (++done < count);
    if (count > 1) {
        char *closed = cli_format("%s]}", *documents);
        free(*documents);
        *documents = closed;
    }
    return code;
}

static int run(const bench_request *request, char **names, int count) {
    mimus_source source;
    mimus_bench_options options;
    char *documents = NULL;
    if (!check_workloads(names, count) || !make_options(request, &source, &options))
        return CLI_USAGE;
    if (request->report != NULL) { /* minutes before it is written */
        mimus_status status = mimus_bench_report(NULL, request->report);
        if (status != MIMUS_OK)
            return cli_fail("bench", status);
    }
    int code = run_workloads(request, &options, names, count, &documents);
    if (documents != NULL && request->raw)
        puts(documents);
    if (documents != NULL && request->report != NULL) {
        mimus_status status = mimus_bench_report(documents, request->report);
        code = status != MIMUS_OK ? cli_fail("bench", status) : code;
    }
    free(documents);
    return code;
}

/* The library's list of workloads, and what else the page's notes say; free with free(). */
static char *make_notes(void) {
    char *notes = cli_format("Workloads\n");
    mimus_workload workload;
    for (size_t i = 0; mimus_bench_describe(i, &workload); i++) {
        char *longer = cli_format("%s  %-15s %s\n", notes, workload.name, workload.help);
        free(notes);
        notes = longer;
    }
    char *whole = cli_format("%s%s", notes, page.notes);
    free(notes);
    return whole;
}

int cmd_bench(int argc, char **argv) {
    bench_request request = {.device = NULL};
    option_page explained = page;
    char *notes = make_notes();
    explained.notes = notes;
    const cli_option own[] = {
        {.name = "samples",
         .value = "N",
         .help = "samples of the recording that is made up",
         .fallback = "262144",
         .text = &request.samples},
        {.name = "recording",
         .value = "FILE",
         .help = "measure on this recording; several together are one",
         .list = &request.recordings},
        {.name = "epochs",
         .value = "N",
         .help = "epochs to train; the first one is not settled",
         .fallback = "3",
         .text = &request.epochs},
        {.name = "batch",
         .value = "N",
         .help = "in place of the workload's",
         .text = &request.batch},
        {.name = "hidden",
         .value = "N,N,...",
         .help = "in place of the workload's",
         .text = &request.hidden},
        {.name = "plan",
         .value = "auto|phased|block",
         .help = "how a step is computed",
         .fallback = "auto",
         .text = &request.plan},
        {.name = "gemm",
         .value = "auto|clblast|tile",
         .help = "matrix products of the phased plan",
         .fallback = "auto",
         .text = &request.gemm},
        {.name = "store",
         .value = "f32|f16|bf16",
         .help = "how senses lie on the device",
         .fallback = "f32",
         .text = &request.store},
        {.name = "device",
         .value = "SELECTOR",
         .help = "gpu, cpu, P:D or a part of a name, as mimus devices lists them",
         .text = &request.device},
        {.name = "all-devices",
         .help = "every device there is, held against a reference in double precision",
         .flag = &request.all},
        {.name = "ablate",
         .help = "take our way of training apart, and hold it against slower ones",
         .flag = &request.ablate},
        {.name = "runs",
         .value = "N,N,...",
         .help = "train so many runs at once, with batches of their own and with shared ones",
         .text = &request.runs},
        {.letter = 'o',
         .name = "report",
         .value = "FILE",
         .help = "also write an HTML page with charts",
         .text = &request.report},
        {.name = "json", .help = "print the JSON document", .flag = &request.raw},
        {.letter = 'q', .name = "quiet", .help = "show no progress", .flag = &request.quiet},
    };
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", own, sizeof own / sizeof *own, false);
    input_init(&request.input, &groups, false);
    if (options_parse(&explained, &groups, argc, argv, &first, &code))
        code = run(&request, argv + first, argc - first);
    options_clear(&groups);
    input_clear(&request.input);
    texts_clear(&request.recordings);
    free(notes);
    return code;
}

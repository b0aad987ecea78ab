/* mimus_bench: a workload measured on one device or on all, and what it could be at best. */
#include "bench_ablate.h"
#include "bench_many.h"
#include "bench_run.h"
#include "bench_work.h"
#include "discovery.h"

#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ members */

typedef struct member {
    const char *key;
    double value; /* NaN: null */
} member;

static mimus_status set_numbers(json_t *object, const member *members, size_t count) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < count; i++)
        MIMUS_TRY(mimus__json_set(object, members[i].key, mimus__json_number(members[i].value)));
out:
    return status;
}
#define SET_NUMBERS(object, ...)                                                                   \
    set_numbers((object), (const member[]){__VA_ARGS__},                                           \
                sizeof((const member[]){__VA_ARGS__}) / sizeof(member))

typedef struct counter {
    const char *key;
    uint64_t value;
} counter;

static mimus_status set_counters(json_t *object, const counter *counters, size_t count) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < count; i++)
        MIMUS_TRY(
            mimus__json_set(object, counters[i].key, json_integer((json_int_t)counters[i].value)));
out:
    return status;
}
#define SET_COUNTERS(object, ...)                                                                  \
    set_counters((object), (const counter[]){__VA_ARGS__},                                         \
                 sizeof((const counter[]){__VA_ARGS__}) / sizeof(counter))

/* A new object under `key`, borrowed from its parent; NULL when there is no memory, which the
 * next call on it reports. */
static json_t *child(json_t *parent, const char *key) {
    json_t *object = json_object();
    return mimus__json_set(parent, key, object) == MIMUS_OK ? object : NULL;
}

/* ---------------------------------------------------------------- a device's object */

static mimus_status describe_device(json_t *row, const mimus__device_info *info) {
    mimus_status status = MIMUS_OK;
    char id[32];
    snprintf(id, sizeof id, "%u:%u", info->platform, info->index);
    MIMUS_TRY(mimus__json_set(row, "id", json_string(id)));
    MIMUS_TRY(mimus__json_set(row, "name", mimus__json_lossy_string(info->name)));
    MIMUS_TRY(mimus__json_set(row, "platform", mimus__json_lossy_string(info->platform_name)));
    MIMUS_TRY(mimus__json_set(row, "driver", mimus__json_lossy_string(info->driver)));
    MIMUS_TRY(mimus__json_set(row, "type", json_string(mimus__device_type_text(info))));
out:
    return status;
}

static mimus_status describe_limits(json_t *row, const mimus__bench_limits *limits) {
    mimus_status status = MIMUS_OK;
    json_t *object = child(row, "limits");
    MIMUS_TRY(SET_NUMBERS(object, {"flops", limits->flops}, {"copy", limits->copy},
                          {"triad", limits->triad}, {"upload", limits->upload}));
    MIMUS_TRY(SET_COUNTERS(object, {"flops_width", limits->width}, {"flops_local", limits->local},
                           {"stream_bytes", limits->stream}));
out:
    return status;
}

static const char *const phase_names[MIMUS__STEP_PHASES] = {
    [MIMUS__STEP_GATHER] = "gather", [MIMUS__STEP_FORWARD] = "forward",
    [MIMUS__STEP_LOSS] = "loss",     [MIMUS__STEP_BACKWARD] = "backward",
    [MIMUS__STEP_BLOCK] = "block",   [MIMUS__STEP_OPTIMIZER] = "optimizer",
};

static mimus_status describe_phase(json_t *list, const mimus__bench_run *run, int phase) {
    mimus_status status = MIMUS_OK;
    const mimus__bench_cost *cost = &run->cost.phase[phase];
    json_t *object = json_object();
    MIMUS_TRY(mimus__json_append(list, object));
    MIMUS_TRY(mimus__json_set(object, "name", json_string(phase_names[phase])));
    MIMUS_TRY(SET_NUMBERS(object, {"seconds", run->phase[phase]}, {"operations", cost->operations},
                          {"bytes", cost->bytes}));
    MIMUS_TRY(SET_COUNTERS(object, {"launches", run->launches[phase]},
                           {"expected_launches", cost->launches}));
out:
    return status;
}

static mimus_status describe_step(json_t *row, const mimus__bench_run *run) {
    mimus_status status = MIMUS_OK;
    json_t *object = child(row, "step"), *phases = json_array();
    uint64_t launches = 0;
    for (int p = 0; p < MIMUS__STEP_PHASES; p++)
        launches += run->launches[p];
    MIMUS_TRY(SET_COUNTERS(object, {"rows", run->rows}, {"launches", launches},
                           {"expected_launches", run->cost.total.launches}, {"reads", run->reads}));
    MIMUS_TRY(SET_NUMBERS(object, {"operations", run->cost.total.operations},
                          {"bytes", run->cost.total.bytes}, {"seconds", run->step},
                          {"enqueue_seconds", run->enqueue},
                          {"enqueue_share", run->enqueue / run->step}));
    MIMUS_TRY(mimus__json_set(object, "phases", json_incref(phases)));
    for (int p = 0; p < MIMUS__STEP_PHASES; p++) {
        if (run->cost.phase[p].launches > 0)
            MIMUS_TRY(describe_phase(phases, run, p));
    }
out:
    json_decref(phases);
    return status;
}

/* Into the object `epoch`. */
static mimus_status describe_epochs(json_t *epoch, const mimus__bench_epochs *epochs) {
    mimus_status status = MIMUS_OK;
    json_t *settled = child(epoch, "settled");
    MIMUS_TRY(SET_COUNTERS(epoch, {"steps", epochs->steps}, {"launches", epochs->launches},
                           {"reads", epochs->reads}, {"skipped", epochs->skipped}));
    MIMUS_TRY(SET_NUMBERS(epoch, {"first", epochs->first}));
    MIMUS_TRY(SET_COUNTERS(settled, {"epochs", epochs->epochs - 1}));
    MIMUS_TRY(SET_NUMBERS(settled, {"mean", mimus__bench_epochs_mean(epochs)},
                          {"minimum", epochs->settled[0]},
                          {"median", mimus__bench_epochs_median(epochs)},
                          {"maximum", epochs->settled[epochs->epochs - 2]}));
out:
    return status;
}

/* What the epochs reached. */
static mimus_status describe_reached(json_t *row, const mimus__bench_epochs *epochs) {
    return SET_NUMBERS(row, {"held_out_loss", epochs->heldout_loss},
                       {"held_out_agreement", epochs->heldout_agreement});
}

static mimus_status describe_floor(json_t *epoch, const mimus__bench_run *run) {
    double by_operations = run->operations / run->limits.flops;
    double by_bytes = run->gather_bytes / mimus__bench_bandwidth(&run->limits);
    double floor = fmax(by_operations, by_bytes);
    return SET_NUMBERS(epoch, {"operations", run->operations}, {"gather_bytes", run->gather_bytes},
                       {"operations_seconds", by_operations}, {"bytes_seconds", by_bytes},
                       {"floor", floor},
                       {"over_floor", mimus__bench_epochs_median(&run->epochs) / floor});
}

static mimus_status describe_run(json_t *row, const mimus__bench_run *run) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(describe_device(row, &run->device));
    MIMUS_TRY(SET_COUNTERS(row, {"bytes", run->bytes}));
    MIMUS_TRY(describe_limits(row, &run->limits));
    json_t *before = child(row, "before");
    MIMUS_TRY(SET_NUMBERS(before, {"upload", run->upload}, {"prepare", run->prepare}));
    MIMUS_TRY(SET_COUNTERS(before, {"upload_bytes", run->upload_bytes}));
    MIMUS_TRY(mimus__json_set(row, "plan", json_incref(run->plan)));
    json_t *epoch = child(row, "epoch");
    MIMUS_TRY(describe_epochs(epoch, &run->epochs));
    MIMUS_TRY(describe_floor(epoch, run));
    MIMUS_TRY(describe_step(row, run));
    MIMUS_TRY(describe_reached(row, &run->epochs));
out:
    return status;
}

/* -------------------------------------------------------------------- the document */

/* "reference", or "play.rec and 2 more, trained as reference is". */
static mimus_status make_title(char **out, const mimus__bench_work *work,
                               const mimus_source *recording) {
    if (recording == NULL)
        return mimus__text_copy(out, work->name);
    const char *path = recording->paths[0], *slash = strrchr(path, '/');
    if (slash != NULL && slash[1] != '\0')
        path = slash + 1;
    if (recording->count == 1)
        return mimus__text_format(out, "%s, trained as %s is", path, work->name);
    return mimus__text_format(out, "%s and %zu more, trained as %s is", path, recording->count - 1,
                              work->name);
}

static mimus_status describe_work(json_t *document, const mimus__bench_work *work,
                                  const mimus_source *recording) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(work->dataset.recording);
    json_t *object = child(document, "workload"), *config = NULL, *files = NULL;
    char *title = NULL;
    MIMUS_TRY(make_title(&title, work, recording));
    MIMUS_TRY(mimus__json_set(object, "name", json_string(work->name)));
    MIMUS_TRY(mimus__json_set(object, "title", mimus__json_lossy_string(title)));
    if (recording != NULL) {
        files = json_array();
        for (size_t i = 0; i < recording->count; i++)
            MIMUS_TRY(mimus__json_append(files, mimus__json_lossy_string(recording->paths[i])));
    }
    MIMUS_TRY(mimus__json_set(object, "files", files != NULL ? json_incref(files) : json_null()));
    MIMUS_TRY(SET_COUNTERS(object, {"samples", mimus__recording_samples(work->dataset.recording)},
                           {"training_samples", work->dataset.split.training.samples},
                           {"held_out_samples", work->dataset.split.heldout.samples},
                           {"senses", schema->senses}, {"heads", schema->heads},
                           {"actions", mimus__schema_actions(schema)}));
    MIMUS_TRY(mimus__json_set(object, "masks", json_boolean(schema->masks)));
    MIMUS_TRY(mimus__config_to_json(&config, work->config));
    MIMUS_TRY(mimus__json_set(object, "config", json_incref(config)));
out:
    free(title);
    json_decref(config);
    json_decref(files);
    return status;
}

/* What all devices are measured with. */
typedef struct bench {
    mimus__bench_work work;
    mimus__model *model; /* where each begins */
    mimus__bench_losses losses;
    bool has_losses;
    uint32_t runs[MIMUS__BENCH_PASSES / 2], run_counts; /* at once, where that is measured */
    json_t *document;
    json_t *rows; /* borrowed from the document */
} bench;

static mimus_status add_device(bench *b, const char *selector, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__bench_run run = {.rows = 0};
    json_t *row = json_object();
    MIMUS_TRY(mimus__bench_run_new(&run, selector, &b->work.dataset, b->work.config, b->model,
                                   &mimus__bench_full_effort, watch));
    MIMUS_TRY(describe_run(row, &run));
    if (b->has_losses)
        MIMUS_TRY(SET_NUMBERS(row, {"loss_difference",
                                    mimus__bench_losses_compare(&b->losses, run.epochs.first_losses,
                                                                run.epochs.steps)}));
    MIMUS_TRY(mimus__json_append(b->rows, json_incref(row)));
out:
    mimus__bench_run_clear(&run);
    json_decref(row);
    return status;
}

/* One that cannot be used, or that failed, says so in its row and is no failure of the others. */
static mimus_status add_found(bench *b, const mimus__device_info *info, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object();
    char selector[32];
    const char *error = info->unusable;
    snprintf(selector, sizeof selector, "%u:%u", info->platform, info->index);
    if (error == NULL) {
        mimus_status measured = add_device(b, selector, watch);
        if (measured == MIMUS_OK || measured == MIMUS_ERR_STOPPED) {
            status = measured;
            goto out;
        }
        error = mimus_last_error();
    }
    MIMUS_TRY(describe_device(row, info));
    MIMUS_TRY(mimus__json_set(row, "error", mimus__json_lossy_string(error)));
    MIMUS_TRY(mimus__json_append(b->rows, json_incref(row)));
out:
    json_decref(row);
    return status;
}

static mimus_status add_all(bench *b, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__discovery found = {0};
    json_t *losses = json_array();
    MIMUS_TRY(mimus__discovery_run(&found));
    if (found.device_count == 0) {
        status = mimus__fail(MIMUS_ERR_NO_DEVICE, "no OpenCL platform has a device");
        goto out;
    }
    MIMUS_TRY(
        mimus__bench_losses_of(&b->losses, &b->work.dataset, b->work.config, b->model, watch));
    b->has_losses = true;
    for (uint32_t t = 0; t < b->losses.steps; t++)
        MIMUS_TRY(mimus__json_append(losses, mimus__json_number(b->losses.loss[t])));
    MIMUS_TRY(mimus__json_set(b->document, "reference_losses", json_incref(losses)));
    for (size_t i = 0; i < found.device_count; i++)
        MIMUS_TRY(add_found(b, &found.devices[i].info, watch));
out:
    json_decref(losses);
    mimus__discovery_clear(&found);
    return status;
}

static mimus_status describe_stage(json_t *list, const mimus__bench_ablation *ablation,
                                   uint32_t number) {
    mimus_status status = MIMUS_OK;
    const mimus__bench_stage *stage = &ablation->stage[number];
    json_t *row = json_object();
    MIMUS_TRY(mimus__json_append(list, row));
    MIMUS_TRY(mimus__json_set(row, "name", json_string(stage->name)));
    MIMUS_TRY(SET_COUNTERS(row, {"batch", stage->batch}, {"losses", stage->losses}));
    MIMUS_TRY(SET_NUMBERS(row, {"lr", stage->lr}, {"uploaded_bytes", stage->uploaded}));
    MIMUS_TRY(mimus__json_set(row, "read_every_step", json_boolean(stage->read_every_step)));
    MIMUS_TRY(describe_epochs(child(row, "epoch"), &stage->epochs));
    MIMUS_TRY(describe_reached(row, &stage->epochs));
    MIMUS_TRY(SET_NUMBERS(row, {"difference", mimus__bench_ablation_difference(ablation, number)}));
out:
    return status;
}

static mimus_status describe_ablation(json_t *document, const mimus__bench_ablation *ablation) {
    mimus_status status = MIMUS_OK;
    double largest = mimus__bench_ablation_largest(ablation);
    json_t *object = child(document, "ablation"), *stages = json_array();
    MIMUS_TRY(describe_device(object, &ablation->device));
    MIMUS_TRY(mimus__json_set(object, "stages", json_incref(stages)));
    for (uint32_t i = 0; i < MIMUS__ABLATE_STAGES; i++)
        MIMUS_TRY(describe_stage(stages, ablation, i));
    MIMUS_TRY(SET_NUMBERS(object, {"difference", largest}, {"tolerance", MIMUS__ABLATE_TOLERANCE}));
    MIMUS_TRY(mimus__json_set(object, "agrees", json_boolean(largest <= MIMUS__ABLATE_TOLERANCE)));
out:
    json_decref(stages);
    return status;
}

static mimus_status ablate(bench *b, const char *selector, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__bench_ablation ablation = {.device = {.platform = 0}};
    mimus_config *large = NULL;
    MIMUS_TRY(mimus__bench_work_large(&large, b->work.config));
    MIMUS_TRY(mimus__bench_ablate(&ablation, selector, &b->work.dataset, b->work.config, large,
                                  b->model, watch));
    MIMUS_TRY(describe_ablation(b->document, &ablation));
out:
    mimus_config_free(large);
    mimus__bench_ablation_clear(&ablation);
    return status;
}

static mimus_status describe_pass(json_t *list, const mimus__bench_passes *passes,
                                  uint32_t number) {
    mimus_status status = MIMUS_OK;
    const mimus__bench_pass *pass = &passes->pass[number];
    json_t *row = json_object();
    MIMUS_TRY(mimus__json_append(list, row));
    MIMUS_TRY(SET_COUNTERS(row, {"runs", pass->runs}, {"bytes", pass->bytes},
                           {"launches", pass->launches},
                           {"expected_launches", pass->cost.total.launches}));
    MIMUS_TRY(mimus__json_set(row, "shared", json_boolean(pass->shared)));
    MIMUS_TRY(SET_NUMBERS(row, {"prepare", pass->prepare},
                          {"operations", pass->cost.total.operations},
                          {"step_bytes", pass->cost.total.bytes},
                          {"a_run", mimus__bench_epochs_median(&pass->epochs) / pass->runs},
                          {"beside_solo", mimus__bench_pass_beside_solo(passes, number)}));
    MIMUS_TRY(describe_epochs(child(row, "epoch"), &pass->epochs));
    MIMUS_TRY(describe_reached(row, &pass->epochs));
out:
    return status;
}

static mimus_status measure_many(bench *b, const mimus_bench_options *options,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__bench_passes passes = {.passes = 0};
    json_t *object = child(b->document, "many"), *rows = json_array();
    MIMUS_TRY(mimus__bench_many(&passes, options->device, &b->work.dataset, b->work.config, b->runs,
                                b->run_counts, watch));
    MIMUS_TRY(describe_device(object, &passes.device));
    MIMUS_TRY(SET_COUNTERS(object, {"recording_bytes", passes.recording}));
    MIMUS_TRY(mimus__json_set(object, "passes", json_incref(rows)));
    for (uint32_t i = 0; i < passes.passes; i++)
        MIMUS_TRY(describe_pass(rows, &passes, i));
out:
    json_decref(rows);
    mimus__bench_many_clear(&passes);
    return status;
}

/* The member that the options ask for. */
static mimus_status measure(bench *b, const mimus_bench_options *options,
                            const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    if (options->ablate)
        return ablate(b, options->device, watch);
    if (options->runs != NULL)
        return measure_many(b, options, watch);
    b->rows = json_array();
    MIMUS_TRY(mimus__json_set(b->document, "devices", b->rows));
    MIMUS_TRY(options->all_devices ? add_all(b, watch) : add_device(b, options->device, watch));
out:
    return status;
}

static void clear(bench *b) {
    json_decref(b->document);
    mimus__model_free(b->model);
    mimus__bench_work_clear(&b->work);
}

mimus_status mimus_bench(const mimus_bench_options *options, const mimus_watch *watch,
                         char **json) {
    mimus_status status = MIMUS_OK;
    bench b = {.has_losses = false};
    *json = NULL;
    if (options->runs != NULL) /* before anything is made up */
        MIMUS_TRY(mimus__bench_many_parse(b.runs, &b.run_counts, options->runs));
    if (options->all_devices && options->device != NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "device: all devices are asked for");
    if (options->runs != NULL && (options->all_devices || options->ablate))
        return mimus__fail(MIMUS_ERR_ARGUMENT, "runs: goes with one device, and without ablate");
    if (options->all_devices && options->ablate)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "ablate: goes with one device, not with all of them");
    MIMUS_TRY(mimus__bench_work_new(&b.work, options, watch));
    MIMUS_TRY(
        mimus__dataset_model(&b.model, &b.work.dataset, &b.work.dataset.statistics, b.work.config));
    b.document = json_object();
    MIMUS_TRY(mimus__json_set(b.document, "version", json_string(MIMUS_VERSION)));
    MIMUS_TRY(describe_work(b.document, &b.work, options->recording));
    MIMUS_TRY(measure(&b, options, watch));
    MIMUS_TRY(mimus__json_text(json, b.document, JSON_INDENT(2)));
out:
    clear(&b);
    return status;
}

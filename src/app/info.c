/* mimus_info: what a recording holds, and what is wrong with it. */
#include "estimate.h"
#include "statistics.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct info {
    const mimus_source *source;
    mimus__recording *recording;
    const mimus_schema *schema;
    mimus__audit audit;
    mimus__rows whole; /* every row: a span is an episode */
    mimus__rows usable;
    mimus__statistics statistics; /* of the usable rows */
} info;

static json_t *integer(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* ------------------------------------------------------------------- parts */

static mimus_status add_files(json_t *json, const info *of, uint64_t *total) {
    mimus_status status = MIMUS_OK;
    json_t *files = json_array(), *file = NULL;
    *total = 0;
    for (size_t i = 0; i < of->source->count; i++) {
        struct stat entry;
        uint64_t bytes = stat(of->source->paths[i], &entry) == 0 ? (uint64_t)entry.st_size : 0;
        file = json_object();
        MIMUS_TRY(mimus__json_set(file, "path", mimus__json_lossy_string(of->source->paths[i])));
        MIMUS_TRY(mimus__json_set(file, "bytes", integer(bytes)));
        MIMUS_TRY(mimus__json_append(files, json_incref(file)));
        json_decref(file);
        file = NULL;
        *total += bytes;
    }
    MIMUS_TRY(mimus__json_set(json, "files", json_incref(files)));
out:
    json_decref(file);
    json_decref(files);
    return status;
}

static mimus_status add_episodes(json_t *json, const mimus__rows *whole) {
    mimus_status status = MIMUS_OK;
    json_t *episodes = json_object();
    uint64_t shortest = UINT64_MAX, longest = 0;
    for (size_t i = 0; i < whole->spans; i++) {
        uint64_t count = whole->span[i].count;
        shortest = count < shortest ? count : shortest;
        longest = count > longest ? count : longest;
    }
    const bool any = whole->spans > 0;
    MIMUS_TRY(mimus__json_set(episodes, "count", integer(whole->episodes)));
    MIMUS_TRY(mimus__json_set(episodes, "shortest", any ? integer(shortest) : json_null()));
    MIMUS_TRY(mimus__json_set(
        episodes, "mean", mimus__json_number((double)whole->samples / (double)whole->episodes)));
    MIMUS_TRY(mimus__json_set(episodes, "longest", any ? integer(longest) : json_null()));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_incref(episodes)));
out:
    json_decref(episodes);
    return status;
}

static uint64_t sample_bytes(const mimus_schema *schema, uint32_t stack, mimus__store_form form) {
    return (uint64_t)mimus__row_layout_of(schema, stack, form).words * sizeof(uint32_t);
}

/* What training by the default settings takes on a device with senses in one form. What the block
 * plan adds, which is for CPU devices, goes by this machine's cores. */
static mimus_status make_need(json_t **out, const info *of, const mimus_config *config,
                              const mimus__shape *shape, mimus__store_form form, const char *name) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object();
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t sample = sample_bytes(of->schema, config->stack, form);
    const uint64_t recording = sample * of->usable.samples;
    mimus__estimate estimate = {.schema = of->schema,
                                .samples = of->usable.samples,
                                .compute_units = cores > 0 ? (uint32_t)cores : 1};
    MIMUS_TRY(mimus__json_set(json, "store", json_string(name)));
    MIMUS_TRY(mimus__json_set(json, "sample", integer(sample)));
    MIMUS_TRY(mimus__json_set(json, "recording", integer(recording)));
    MIMUS_TRY(mimus__json_set(json, "phased",
                              integer(recording + mimus__estimate_step(&estimate, config, shape))));
    estimate.blocks = true;
    MIMUS_TRY(mimus__json_set(json, "block",
                              integer(recording + mimus__estimate_step(&estimate, config, shape))));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

/* Empty for a recording that no network of the default settings fits. */
static mimus_status make_needs(json_t **out, const info *of) {
    mimus_status status = MIMUS_OK;
    const struct {
        mimus__store_form form;
        const char *name;
    } forms[] = {{MIMUS__STORE_F32, "f32"}, {MIMUS__STORE_F16, "f16"}, {MIMUS__STORE_BF16, "bf16"}};
    mimus_config *config = NULL;
    mimus__shape shape;
    json_t *needs = json_array();
    MIMUS_TRY(mimus_config_new(&config));
    bool trains = mimus__config_shape(&shape, config, of->schema) == MIMUS_OK;
    for (size_t i = 0; trains && i < sizeof forms / sizeof *forms; i++) {
        json_t *need = NULL;
        MIMUS_TRY(make_need(&need, of, config, &shape, forms[i].form, forms[i].name));
        MIMUS_TRY(mimus__json_append(needs, need));
    }
    *out = needs;
    needs = NULL;
out:
    json_decref(needs);
    mimus_config_free(config);
    return status;
}

static mimus_status add_bytes(json_t *json, const info *of, uint64_t files) {
    mimus_status status = MIMUS_OK;
    json_t *bytes = json_object(), *needs = NULL;
    const uint64_t sample = sample_bytes(of->schema, 1, MIMUS__STORE_F32);
    MIMUS_TRY(make_needs(&needs, of));
    MIMUS_TRY(mimus__json_set(bytes, "files", integer(files)));
    MIMUS_TRY(mimus__json_set(bytes, "device_sample", integer(sample)));
    MIMUS_TRY(mimus__json_set(bytes, "device", integer(sample * of->usable.samples)));
    MIMUS_TRY(mimus__json_set(bytes, "training", json_incref(needs)));
    MIMUS_TRY(mimus__json_set(json, "bytes", json_incref(bytes)));
out:
    json_decref(needs);
    json_decref(bytes);
    return status;
}

static mimus_status add_counts(json_t *head, const uint64_t *counts, uint32_t actions,
                               uint64_t labels) {
    mimus_status status = MIMUS_OK;
    json_t *numbers = json_array(), *shares = json_array();
    uint32_t most = 0;
    for (uint32_t a = 0; a < actions; a++) {
        most = counts[a] > counts[most] ? a : most;
        MIMUS_TRY(mimus__json_append(numbers, integer(counts[a])));
        MIMUS_TRY(
            mimus__json_append(shares, mimus__json_number((double)counts[a] / (double)labels)));
    }
    MIMUS_TRY(mimus__json_set(head, "majority", labels > 0 ? json_integer(most) : json_null()));
    MIMUS_TRY(mimus__json_set(head, "majority_share",
                              mimus__json_number((double)counts[most] / (double)labels)));
    MIMUS_TRY(mimus__json_set(head, "counts", json_incref(numbers)));
    MIMUS_TRY(mimus__json_set(head, "shares", json_incref(shares)));
out:
    json_decref(numbers);
    json_decref(shares);
    return status;
}

static mimus_status make_head(json_t **out, const info *of, uint32_t h, uint32_t first) {
    mimus_status status = MIMUS_OK;
    const mimus__statistics *statistics = &of->statistics;
    const mimus_head *head = &of->schema->head[h];
    const uint64_t labels = statistics->labels[h];
    json_t *json = json_object();
    MIMUS_TRY(mimus__json_set(json, "name", json_string(head->name)));
    MIMUS_TRY(mimus__json_set(json, "actions", json_integer(head->actions)));
    MIMUS_TRY(mimus__json_set(json, "labels", integer(labels)));
    MIMUS_TRY(mimus__json_set(json, "absent", integer(of->usable.samples - labels)));
    MIMUS_TRY(mimus__json_set(json, "mean_legal", mimus__json_number(statistics->legal[h])));
    MIMUS_TRY(add_counts(json, statistics->counts + first, head->actions, labels));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

static mimus_status add_heads(json_t *json, const info *of) {
    mimus_status status = MIMUS_OK;
    json_t *heads = json_array();
    for (uint32_t h = 0, first = 0; h < of->schema->heads; h++) {
        json_t *head = NULL;
        MIMUS_TRY(make_head(&head, of, h, first));
        MIMUS_TRY(mimus__json_append(heads, head));
        first += of->schema->head[h].actions;
    }
    MIMUS_TRY(mimus__json_set(json, "heads", json_incref(heads)));
out:
    json_decref(heads);
    return status;
}

static mimus_status make_sense(json_t **out, const info *of, uint32_t s) {
    mimus_status status = MIMUS_OK;
    const mimus__statistics *statistics = &of->statistics;
    json_t *json = json_object();
    if (of->schema->sense_names != NULL)
        MIMUS_TRY(mimus__json_set(json, "name", json_string(of->schema->sense_names[s])));
    MIMUS_TRY(mimus__json_set(json, "mean", mimus__json_number(statistics->mean[s])));
    MIMUS_TRY(mimus__json_set(json, "std", mimus__json_number(statistics->std[s])));
    MIMUS_TRY(mimus__json_set(json, "minimum", mimus__json_number((double)statistics->minimum[s])));
    MIMUS_TRY(mimus__json_set(json, "maximum", mimus__json_number((double)statistics->maximum[s])));
    MIMUS_TRY(mimus__json_set(json, "constant",
                              json_boolean(of->usable.samples > 0 && of->audit.constant[s])));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

static mimus_status add_senses(json_t *json, const info *of) {
    mimus_status status = MIMUS_OK;
    json_t *senses = json_array();
    for (uint32_t s = 0; s < of->schema->senses; s++) {
        json_t *sense = NULL;
        MIMUS_TRY(make_sense(&sense, of, s));
        MIMUS_TRY(mimus__json_append(senses, sense));
    }
    MIMUS_TRY(mimus__json_set(json, "senses", json_incref(senses)));
out:
    json_decref(senses);
    return status;
}

/* ------------------------------------------------------------------- whole */

static mimus_status gather(info *of, const mimus_source *source, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    /* what is wrong is told, not refused */
    mimus_illegal illegal =
        source->illegal == MIMUS_ILLEGAL_DROP ? MIMUS_ILLEGAL_DROP : MIMUS_ILLEGAL_IGNORE;
    of->source = source;
    MIMUS_TRY(mimus__recording_open(&of->recording, source, watch));
    of->schema = mimus__recording_schema(of->recording);
    MIMUS_TRY(mimus__audit_run(&of->audit, of->recording, illegal, watch));
    MIMUS_TRY(mimus__rows_all(&of->whole, of->recording, NULL));
    MIMUS_TRY(mimus__rows_all(&of->usable, of->recording, &of->audit));
    MIMUS_TRY(mimus__statistics_new(&of->statistics, of->recording, &of->usable));
out:
    return status;
}

static mimus_status tell(json_t *json, const info *of) {
    mimus_status status = MIMUS_OK;
    uint64_t bytes = 0;
    json_t *schema = NULL, *faults = NULL;
    MIMUS_TRY(mimus__schema_to_json(&schema, of->schema));
    MIMUS_TRY(mimus__audit_to_json(&faults, &of->audit, of->schema));
    MIMUS_TRY(add_files(json, of, &bytes));
    MIMUS_TRY(mimus__json_set(json, "fingerprint",
                              json_string(mimus__recording_fingerprint(of->recording))));
    MIMUS_TRY(mimus__json_set(json, "schema", json_incref(schema)));
    MIMUS_TRY(mimus__json_set(json, "samples", integer(of->whole.samples)));
    MIMUS_TRY(add_episodes(json, &of->whole));
    MIMUS_TRY(add_bytes(json, of, bytes));
    MIMUS_TRY(mimus__json_set(json, "mean_weight", mimus__json_number(of->statistics.weight)));
    MIMUS_TRY(add_heads(json, of));
    MIMUS_TRY(add_senses(json, of));
    MIMUS_TRY(
        mimus__json_set(json, "constant_senses",
                        json_integer(of->usable.samples > 0 ? of->audit.constant_senses : 0)));
    MIMUS_TRY(mimus__json_set(json, "without_legal", integer(of->audit.no_legal)));
    MIMUS_TRY(mimus__json_set(json, "faults", json_incref(faults)));
    MIMUS_TRY(
        mimus__json_set(json, "losses", json_deep_copy(mimus__recording_losses(of->recording))));
    MIMUS_TRY(mimus__json_set(json, "metadata",
                              json_deep_copy(mimus__recording_metadata(of->recording))));
out:
    json_decref(schema);
    json_decref(faults);
    return status;
}

mimus_status mimus_info(const mimus_source *source, const mimus_watch *watch, char **json) {
    mimus_status status = MIMUS_OK;
    info of = {0};
    json_t *object = json_object();
    *json = NULL;
    MIMUS_TRY(gather(&of, source, watch));
    MIMUS_TRY(tell(object, &of));
    MIMUS_TRY(mimus__json_text(json, object, JSON_INDENT(2)));
out:
    json_decref(object);
    mimus__statistics_clear(&of.statistics);
    mimus__rows_clear(&of.usable);
    mimus__rows_clear(&of.whole);
    mimus__audit_clear(&of.audit);
    mimus__recording_free(of.recording);
    return status;
}

#include "tensorboard.h"

#include "alloc.h"
#include "clock.h"
#include "crc32c.h"
#include "file.h"
#include "text.h"

#include "tensorboard.pb-c.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char beginning[] =
    "events.out.tfevents."; /* of every name that TensorBoard looks at */

/* ------------------------------------------------------------------ records */

enum { BEFORE = 12, AROUND = 16 }; /* bytes before a message, and before and behind it */

/* Records for one write. */
typedef struct records {
    uint8_t *bytes;
    size_t count, capacity;
} records;

static uint32_t masked_crc(const void *bytes, size_t count) {
    uint32_t crc = mimus__crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(uint8_t *to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_little(const uint8_t *from, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static mimus_status put_event(records *out, const Mimus__Tb__Event *event) {
    mimus_status status = MIMUS_OK;
    size_t length = mimus__tb__event__get_packed_size(event);
    MIMUS_TRY(mimus__grow(&out->bytes, &out->capacity, out->count + length + AROUND, 1));
    uint8_t *at = out->bytes + out->count;
    put_little(at, length, 8);
    put_little(at + 8, masked_crc(at, 8), 4);
    mimus__tb__event__pack(event, at + BEFORE);
    put_little(at + BEFORE + length, masked_crc(at + BEFORE, length), 4);
    out->count += length + AROUND;
out:
    return status;
}

/* An event of one value. */
static mimus_status put_value(records *out, double wall, uint64_t step,
                              Mimus__Tb__Summary__Value *value) {
    Mimus__Tb__Summary summary = MIMUS__TB__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = &value;
    Mimus__Tb__Event event = MIMUS__TB__EVENT__INIT;
    event.wall_time = wall;
    event.step = (int64_t)step;
    event.what_case = MIMUS__TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return put_event(out, &event);
}

/* The whole record at the beginning of `bytes`; NULL when there is none, or none that is right. */
static Mimus__Tb__Event *get_event(const uint8_t *bytes, size_t count, size_t *record) {
    if (count < AROUND || get_little(bytes + 8, 4) != masked_crc(bytes, 8))
        return NULL;
    uint64_t length = get_little(bytes, 8);
    if (length > count - AROUND ||
        get_little(bytes + BEFORE + length, 4) != masked_crc(bytes + BEFORE, length))
        return NULL;
    *record = (size_t)length + AROUND;
    return mimus__tb__event__unpack(NULL, (size_t)length, bytes + BEFORE);
}

static mimus_status write_records(const char *path, int flags, const records *out) {
    size_t done = 0;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    while (descriptor >= 0 && done < out->count) {
        ssize_t wrote = write(descriptor, out->bytes + done, out->count - done);
        if (wrote < 0 && errno != EINTR)
            break;
        if (wrote > 0)
            done += (size_t)wrote;
    }
    mimus_status status =
        done < out->count ? mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", path, strerror(errno))
                          : MIMUS_OK;
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

/* ------------------------------------------------------------- earlier files */

/* Cut a file off at the first record that is torn or of a step above `step`. */
static mimus_status trim(const char *path, uint64_t step) {
    mimus_status status = MIMUS_OK;
    char *content = NULL;
    size_t bytes = 0, kept = 0, record = 0;
    MIMUS_TRY(mimus__file_read(path, SIZE_MAX, &content, &bytes));
    while (kept < bytes) {
        Mimus__Tb__Event *event = get_event((const uint8_t *)content + kept, bytes - kept, &record);
        bool keep = event != NULL && (event->step <= 0 || (uint64_t)event->step <= step);
        mimus__tb__event__free_unpacked(event, NULL);
        if (!keep)
            break;
        kept += record;
    }
    /* in its place: a reader that has the file open sees no other */
    if (kept < bytes && truncate(path, (off_t)kept) != 0)
        status = mimus__fail(MIMUS_ERR_IO, "%s: cannot cut it off: %s", path, strerror(errno));
out:
    free(content);
    return status;
}

/* `*latest` is the greatest time in their names. */
static mimus_status trim_all(const char *folder, uint64_t step, double *latest) {
    mimus_status status = MIMUS_OK;
    char *path = NULL;
    *latest = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return mimus__fail(MIMUS_ERR_IO, "%s: cannot open: %s", folder, strerror(errno));
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (strncmp(entry->d_name, beginning, strlen(beginning)) != 0)
            continue;
        *latest = fmax(*latest, strtod(entry->d_name + strlen(beginning), NULL));
        MIMUS_TRY(mimus__text_format(&path, "%s/%s", folder, entry->d_name));
        MIMUS_TRY(trim(path, step));
        free(path);
        path = NULL;
    }
out:
    free(path);
    closedir(entries);
    return status;
}

/* ------------------------------------------------------------------ begin */

/* The settings as a table of Markdown, which the text plugin shows. */
static mimus_status table_of(char **out, const json_t *config) {
    mimus_status status = MIMUS_OK;
    char *table = NULL, *value = NULL, *longer = NULL;
    const char *key;
    json_t *each, *object = (json_t *)config; /* jansson iterates over what it could change */
    MIMUS_TRY(mimus__text_copy(&table, "| setting | value |\n|---|---|\n"));
    json_object_foreach(object, key, each) {
        MIMUS_TRY(mimus__json_text(&value, each, JSON_COMPACT | JSON_ENCODE_ANY));
        MIMUS_TRY(mimus__text_format(&longer, "%s| %s | %s |\n", table, key, value));
        free(table);
        free(value);
        table = longer;
        value = longer = NULL;
    }
    *out = table;
    table = NULL;
out:
    free(value);
    free(table);
    return status;
}

/* A tensor for a plugin, which gets `content` with it. */
static mimus_status put_tensor(records *out, double wall, uint64_t step, char *tag, char *plugin,
                               ProtobufCBinaryData content, Mimus__Tb__Tensor *tensor) {
    Mimus__Tb__Metadata__PluginData data = MIMUS__TB__METADATA__PLUGIN_DATA__INIT;
    data.plugin_name = plugin;
    data.content = content;
    Mimus__Tb__Metadata metadata = MIMUS__TB__METADATA__INIT;
    metadata.plugin_data = &data;
    Mimus__Tb__Summary__Value value = MIMUS__TB__SUMMARY__VALUE__INIT;
    value.tag = tag;
    value.metadata = &metadata;
    value.value_case = MIMUS__TB__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = tensor;
    return put_value(out, wall, step, &value);
}

static mimus_status put_config(records *out, double wall, uint64_t step, const json_t *config) {
    mimus_status status = MIMUS_OK;
    char *table = NULL, tag[] = "config", plugin[] = "text";
    MIMUS_TRY(table_of(&table, config));
    ProtobufCBinaryData text = {.len = strlen(table), .data = (uint8_t *)table};
    Mimus__Tb__Tensor__Shape shape = MIMUS__TB__TENSOR__SHAPE__INIT;
    Mimus__Tb__Tensor tensor = MIMUS__TB__TENSOR__INIT;
    tensor.dtype = MIMUS__TB__TENSOR__TYPE__STRING;
    tensor.tensor_shape = &shape;
    tensor.n_string_val = 1;
    tensor.string_val = &text;
    MIMUS_TRY(put_tensor(out, wall, step, tag, plugin, (ProtobufCBinaryData){0}, &tensor));
out:
    free(table);
    return status;
}

/* The settings once more, for the table in which hparams shows runs; its tensor says nothing. */
typedef struct hparams {
    Mimus__Tb__Hparams__Entry *entry;
    Mimus__Tb__Hparams__Entry **pointer;
    Mimus__Tb__Hparams__Value *value;
    char **text; /* of values that are neither numbers nor texts */
    size_t count;
} hparams;

static mimus_status hparams_fill(hparams *out, const json_t *config) {
    mimus_status status = MIMUS_OK;
    const char *key;
    json_t *each, *object = (json_t *)config; /* jansson iterates over what it could change */
    size_t count = json_object_size(config);
    MIMUS_TRY(mimus__alloc(&out->entry, count, sizeof *out->entry));
    MIMUS_TRY(mimus__alloc(&out->pointer, count, sizeof *out->pointer));
    MIMUS_TRY(mimus__alloc(&out->value, count, sizeof *out->value));
    MIMUS_TRY(mimus__alloc(&out->text, count, sizeof *out->text));
    json_object_foreach(object, key, each) {
        size_t i = out->count++;
        Mimus__Tb__Hparams__Value *value = &out->value[i];
        mimus__tb__hparams__value__init(value);
        mimus__tb__hparams__entry__init(&out->entry[i]);
        out->pointer[i] = &out->entry[i];
        out->entry[i].key = (char *)key; /* only read */
        out->entry[i].value = value;
        if (json_is_number(each)) {
            value->kind_case = MIMUS__TB__HPARAMS__VALUE__KIND_NUMBER_VALUE;
            value->number_value = json_number_value(each);
            continue;
        }
        if (!json_is_string(each))
            MIMUS_TRY(mimus__json_text(&out->text[i], each, JSON_COMPACT));
        value->kind_case = MIMUS__TB__HPARAMS__VALUE__KIND_STRING_VALUE;
        value->string_value = json_is_string(each) ? (char *)json_string_value(each) : out->text[i];
    }
out:
    return status;
}

static void hparams_clear(hparams *of) {
    for (size_t i = 0; i < of->count; i++)
        free(of->text[i]);
    free(of->text);
    free(of->entry);
    free(of->pointer);
    free(of->value);
}

static mimus_status put_hparams(records *out, double wall, uint64_t step, const json_t *config) {
    mimus_status status = MIMUS_OK;
    char tag[] = "_hparams_/session_start_info", plugin[] = "hparams";
    hparams settings = {0};
    uint8_t *bytes = NULL;
    MIMUS_TRY(hparams_fill(&settings, config));
    Mimus__Tb__Hparams__Start start = MIMUS__TB__HPARAMS__START__INIT;
    start.n_hparams = settings.count;
    start.hparams = settings.pointer;
    start.start_time_secs = wall;
    Mimus__Tb__Hparams content = MIMUS__TB__HPARAMS__INIT;
    content.session_start_info = &start;
    size_t length = mimus__tb__hparams__get_packed_size(&content);
    MIMUS_TRY(mimus__alloc(&bytes, length, 1));
    mimus__tb__hparams__pack(&content, bytes);
    Mimus__Tb__Tensor__Shape__Dim empty = MIMUS__TB__TENSOR__SHAPE__DIM__INIT, *dims[] = {&empty};
    Mimus__Tb__Tensor__Shape shape = MIMUS__TB__TENSOR__SHAPE__INIT;
    shape.n_dim = 1;
    shape.dim = dims;
    Mimus__Tb__Tensor tensor = MIMUS__TB__TENSOR__INIT;
    tensor.dtype = MIMUS__TB__TENSOR__TYPE__FLOAT;
    tensor.tensor_shape = &shape;
    MIMUS_TRY(put_tensor(out, wall, step, tag, plugin,
                         (ProtobufCBinaryData){.len = length, .data = bytes}, &tensor));
out:
    hparams_clear(&settings);
    free(bytes);
    return status;
}

static mimus_status put_version(records *out, double wall) {
    char version[] = "brain.Event:2";
    Mimus__Tb__Event event = MIMUS__TB__EVENT__INIT;
    event.wall_time = wall;
    event.what_case = MIMUS__TB__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    return put_event(out, &event);
}

static mimus_status put_start(records *out, double wall, uint64_t step) {
    Mimus__Tb__SessionLog session = MIMUS__TB__SESSION_LOG__INIT;
    session.status = MIMUS__TB__SESSION_LOG__STATUS__START;
    Mimus__Tb__Event event = MIMUS__TB__EVENT__INIT;
    event.wall_time = wall;
    event.step = (int64_t)step;
    event.what_case = MIMUS__TB__EVENT__WHAT_SESSION_LOG;
    event.session_log = &session;
    return put_event(out, &event);
}

/* As TensorFlow names them: the time that orders them, and who wrote. */
static mimus_status name_file(char **out, const char *folder, double seconds) {
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || *c == '-' || *c == '.';
        *c = plain ? *c : '-';
    }
    return mimus__text_format(out, "%s/%s%010.0f.%s.%ld", folder, beginning, seconds, host,
                              (long)getpid());
}

mimus_status mimus__tensorboard_begin(char **path, const char *folder, uint64_t step,
                                      const json_t *config) {
    mimus_status status = MIMUS_OK;
    records out = {0};
    char *name = NULL;
    double wall = mimus__clock_wall(), latest;
    *path = NULL;
    MIMUS_TRY(trim_all(folder, step, &latest));
    MIMUS_TRY(name_file(&name, folder, fmax(floor(wall), floor(latest) + 1)));
    MIMUS_TRY(put_version(&out, wall));
    if (step > 0)
        MIMUS_TRY(put_start(&out, wall, step + 1));
    MIMUS_TRY(put_config(&out, wall, step + 1, config)); /* goes when its steps go */
    MIMUS_TRY(put_hparams(&out, wall, step + 1, config));
    MIMUS_TRY(write_records(name, O_TRUNC, &out));
    *path = name;
    name = NULL;
out:
    free(name);
    free(out.bytes);
    return status;
}

/* ----------------------------------------------------------------- append */

static mimus_status put_scalar(records *out, double wall, uint64_t step, const char *tag,
                               double number) {
    Mimus__Tb__Summary__Value value = MIMUS__TB__SUMMARY__VALUE__INIT;
    value.tag = (char *)tag; /* only read */
    value.value_case = MIMUS__TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    value.simple_value = (float)number;
    return put_value(out, wall, step, &value);
}

/* What an epoch's events have in common. */
typedef struct epoch {
    records *out;
    double wall; /* of its end */
    uint64_t step;
} epoch;

/* The member `key` of `object`, where it is a number. */
static mimus_status put_member(const epoch *of, const char *tag, const json_t *object,
                               const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return MIMUS_OK;
    return put_scalar(of->out, of->wall, of->step, tag, json_number_value(value));
}

static mimus_status put_head(const epoch *of, const json_t *head) {
    static const struct {
        const char *tag, *part, *key;
    } members[] = {{"agreement", "train", "agreement"},
                   {"agreement", "heldout", "held_out_agreement"},
                   {"nll", "train", "nll"},
                   {"nll", "heldout", "held_out_nll"}};
    mimus_status status = MIMUS_OK;
    char *tag = NULL;
    const char *name = json_string_value(json_object_get(head, "name"));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        MIMUS_TRY(mimus__text_format(&tag, "%s/%s/%s", members[i].tag, name != NULL ? name : "?",
                                     members[i].part));
        MIMUS_TRY(put_member(of, tag, head, members[i].key));
        free(tag);
        tag = NULL;
    }
out:
    free(tag);
    return status;
}

/* Their times are not known one by one: they are spread over the epoch's. A loss that is not
 * finite is shown as such. */
static mimus_status put_steps(const epoch *of, const json_t *row) {
    mimus_status status = MIMUS_OK;
    const json_t *losses = json_object_get(row, "step_loss"), *loss;
    double seconds = json_number_value(json_object_get(row, "seconds"));
    size_t steps = json_array_size(losses), i;
    json_array_foreach(losses, i, loss) {
        uint64_t behind = steps - 1 - i;
        MIMUS_TRY(put_scalar(of->out, of->wall - seconds * (double)behind / (double)steps,
                             of->step - behind, "loss/step",
                             json_is_number(loss) ? json_number_value(loss) : NAN));
    }
out:
    return status;
}

mimus_status mimus__tensorboard_append(const char *path, uint64_t step, const json_t *row) {
    static const struct {
        const char *tag, *key;
    } members[] = {{"loss/train", "loss"},
                   {"loss/heldout", "held_out_loss"},
                   {"lr", "lr"},
                   {"gradient/norm", "norm"},
                   {"steps/skipped", "skipped"},
                   {"epoch", "epoch"},
                   {"throughput/samples_per_second", "samples_per_second"},
                   {"throughput/epoch_seconds", "seconds"}};
    mimus_status status = MIMUS_OK;
    records out = {0};
    const epoch of = {.out = &out, .wall = mimus__clock_wall(), .step = step};
    const json_t *heads = json_object_get(row, "heads"), *head;
    size_t i;
    MIMUS_TRY(put_steps(&of, row));
    for (i = 0; i < sizeof members / sizeof *members; i++)
        MIMUS_TRY(put_member(&of, members[i].tag, row, members[i].key));
    json_array_foreach(heads, i, head) MIMUS_TRY(put_head(&of, head));
    MIMUS_TRY(write_records(path, O_APPEND, &out));
out:
    free(out.bytes);
    return status;
}

/* model - the network on the host. A checkpoint keeps weights as PyTorch does, (out, in); in
 * memory they are (in, out), so each is turned once on its way in or out. */
#include "model.h"

#include "alloc.h"
#include "file.h"
#include "rng.h"
#include "safetensors.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "mimus-checkpoint"
#define FORMAT_VERSION "1"

enum {
    /* mean and scale, then weight and bias a layer of parameters and of two moments */
    MAX_TENSORS = 2 + 3 * 2 * MIMUS__MAX_LAYERS,
    MAX_FILE_BYTES_PER_PARAMETER = 3 * sizeof(float),
};

/* ------------------------------------------------------------------- shape */

static const char *const activation_names[] = {"identity", "relu", "tanh", "gelu"};
enum { ACTIVATIONS = sizeof activation_names / sizeof *activation_names };

const char *mimus__activation_name(mimus__activation activation) {
    return activation_names[activation];
}

bool mimus__activation_parse(const char *name, mimus__activation *out) {
    for (unsigned i = 0; i < ACTIVATIONS; i++) {
        if (strcmp(name, activation_names[i]) == 0) {
            *out = (mimus__activation)i;
            return true;
        }
    }
    return false;
}

static size_t layer_parameters(const mimus__shape *shape, uint32_t layer) {
    return ((size_t)shape->width[layer] + 1) * shape->width[layer + 1];
}

size_t mimus__shape_weight_offset(const mimus__shape *shape, uint32_t layer) {
    size_t offset = 0;
    for (uint32_t l = 0; l < layer; l++)
        offset += layer_parameters(shape, l);
    return offset;
}

size_t mimus__shape_bias_offset(const mimus__shape *shape, uint32_t layer) {
    return mimus__shape_weight_offset(shape, layer) +
           (size_t)shape->width[layer] * shape->width[layer + 1];
}

size_t mimus__shape_parameters(const mimus__shape *shape) {
    return mimus__shape_weight_offset(shape, shape->layers);
}

mimus_status mimus__shape_check(const mimus__shape *shape, const mimus_schema *schema) {
    if (shape->layers < 1 || shape->layers > MIMUS__MAX_LAYERS)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "a network of %" PRIu32 " layers; 1 to %d work",
                           shape->layers, MIMUS__MAX_LAYERS);
    uint64_t parameters = 0;
    for (uint32_t l = 0; l < shape->layers; l++) {
        uint64_t in = shape->width[l], out = shape->width[l + 1];
        if (in == 0 || out == 0)
            return mimus__fail(MIMUS_ERR_UNSUPPORTED, "layer %" PRIu32 " has a width of 0", l);
        /* both factors are at most 2^32, so the product does not wrap */
        if ((in + 1) * out > MIMUS__MAX_PARAMETERS - parameters)
            return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                               "layer %" PRIu32 " maps %" PRIu64 " to %" PRIu64
                               ": the network has more than %d parameters",
                               l, in, out, MIMUS__MAX_PARAMETERS);
        parameters += (in + 1) * out;
    }
    if (shape->senses != schema->senses ||
        (uint64_t)shape->senses * shape->stack != shape->width[0])
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "a network of %" PRIu32 " inputs for %" PRIu32 " stacked %" PRIu32
                           " times of the schema's %" PRIu32 " senses",
                           shape->width[0], shape->senses, shape->stack, schema->senses);
    if (shape->width[shape->layers] != mimus__schema_actions(schema))
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "a network of %" PRIu32 " outputs for the schema's %" PRIu32 " actions",
                           shape->width[shape->layers], mimus__schema_actions(schema));
    return MIMUS_OK;
}

/* ------------------------------------------------------------------- model */

static mimus_status new_state(mimus__training_state **out, size_t parameters) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, 1, sizeof **out));
    (*out)->best = INFINITY;
    MIMUS_TRY(mimus__alloc(&(*out)->moment1, parameters, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&(*out)->moment2, parameters, sizeof(float)));
out:
    return status;
}

mimus_status mimus__model_new(mimus__model **out, const mimus_schema *schema,
                              const mimus__shape *shape, bool with_state) {
    mimus_status status = MIMUS_OK;
    mimus__model *model = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__shape_check(shape, schema));
    size_t parameters = mimus__shape_parameters(shape);
    MIMUS_TRY(mimus__alloc(&model, 1, sizeof *model));
    model->shape = *shape;
    MIMUS_TRY(mimus__schema_copy(&model->schema, schema));
    MIMUS_TRY(mimus__alloc(&model->mean, shape->senses, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&model->scale, shape->senses, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&model->parameters, parameters, sizeof(float)));
    model->config = json_object();
    model->facts = json_object();
    if (model->config == NULL || model->facts == NULL) {
        status = mimus__fail(MIMUS_ERR_MEMORY, "cannot allocate a JSON object");
        goto out;
    }
    if (with_state)
        MIMUS_TRY(new_state(&model->state, parameters));
    *out = model;
    model = NULL;
out:
    mimus__model_free(model);
    return status;
}

void mimus__model_free(mimus__model *model) {
    if (model == NULL)
        return;
    if (model->state != NULL) {
        free(model->state->moment1);
        free(model->state->moment2);
        free(model->state);
    }
    json_decref(model->config);
    json_decref(model->facts);
    free(model->parameters);
    free(model->scale);
    free(model->mean);
    mimus__schema_free(model->schema);
    free(model);
}

static double bound_of(const mimus__shape *shape, uint32_t layer) {
    double in = shape->width[layer], out = shape->width[layer + 1];
    if (layer + 1 == shape->layers)
        return sqrt(6 / (in + out)) / 10;
    if (shape->activation == MIMUS__RELU || shape->activation == MIMUS__GELU)
        return sqrt(6 / in);
    return sqrt(6 / (in + out));
}

void mimus__model_initialise(const mimus__shape *shape, float *parameters, uint64_t seed,
                             uint64_t stream) {
    mimus__rng rng = {.seed = seed, .stream = stream};
    for (uint32_t l = 0; l < shape->layers; l++) {
        double bound = bound_of(shape, l);
        size_t weights = (size_t)shape->width[l] * shape->width[l + 1];
        for (size_t i = 0; i < weights; i++)
            *parameters++ = (float)(bound * (2 * mimus__rng_uniform(&rng) - 1));
        for (uint32_t i = 0; i < shape->width[l + 1]; i++)
            *parameters++ = 0;
    }
}

/* ----------------------------------------------------------------- tensors */

/* A tensor of the file and the array in memory that it belongs to. */
typedef struct slot {
    mimus__tensor tensor;
    float *values; /* a matrix is (in, out) here, (out, in) in the file */
} slot;

typedef struct slots {
    slot list[MAX_TENSORS];
    size_t count;
} slots;

static slot *add_slot(slots *all, float *values, uint32_t rank, uint64_t rows, uint64_t columns) {
    slot *added = &all->list[all->count++];
    *added = (slot){.tensor = {.rank = rank, .shape = {rows, columns}}, .values = values};
    return added;
}

static void add_layers(slots *all, const mimus__shape *shape, const char *prefix, float *values) {
    if (values == NULL)
        return;
    for (uint32_t l = 0; l < shape->layers; l++) {
        slot *weight = add_slot(all, values + mimus__shape_weight_offset(shape, l), 2,
                                shape->width[l + 1], shape->width[l]);
        snprintf(weight->tensor.name, sizeof weight->tensor.name, "%slayers.%" PRIu32 ".weight",
                 prefix, l);
        slot *bias =
            add_slot(all, values + mimus__shape_bias_offset(shape, l), 1, shape->width[l + 1], 0);
        snprintf(bias->tensor.name, sizeof bias->tensor.name, "%slayers.%" PRIu32 ".bias", prefix,
                 l);
    }
}

static void list_slots(slots *all, const mimus__model *model) {
    all->count = 0;
    slot *mean = add_slot(all, model->mean, 1, model->shape.senses, 0);
    snprintf(mean->tensor.name, sizeof mean->tensor.name, "mean");
    slot *scale = add_slot(all, model->scale, 1, model->shape.senses, 0);
    snprintf(scale->tensor.name, sizeof scale->tensor.name, "scale");
    add_layers(all, &model->shape, "", model->parameters);
    if (model->state != NULL) {
        add_layers(all, &model->shape, "moment1.", model->state->moment1);
        add_layers(all, &model->shape, "moment2.", model->state->moment2);
    }
}

/* (rows, columns) to (columns, rows). */
static void transpose(const float *source, float *target, uint64_t rows, uint64_t columns) {
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++)
            target[c * rows + r] = source[r * columns + c];
    }
}

/* Elements of the largest tensor. */
static size_t largest(const slots *all) {
    uint64_t most = 0;
    for (size_t i = 0; i < all->count; i++) {
        uint64_t count = mimus__tensor_count(&all->list[i].tensor);
        most = count > most ? count : most;
    }
    return (size_t)most;
}

/* ------------------------------------------------------------------- state */

static mimus_status state_to_json(json_t **out, const mimus__training_state *state) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object();
    MIMUS_TRY(mimus__json_set(json, "epoch", json_integer((json_int_t)state->epoch)));
    MIMUS_TRY(mimus__json_set(json, "step", json_integer((json_int_t)state->step)));
    MIMUS_TRY(mimus__json_set(json, "correction1", json_real((double)state->correction1)));
    MIMUS_TRY(mimus__json_set(json, "correction2", json_real((double)state->correction2)));
    MIMUS_TRY(mimus__json_set(json, "best", mimus__json_number(state->best))); /* +inf: null */
    MIMUS_TRY(mimus__json_set(json, "best_epoch", json_integer((json_int_t)state->best_epoch)));
    MIMUS_TRY(mimus__json_set(json, "stale", json_integer((json_int_t)state->stale)));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

static mimus_status state_from_json(mimus__training_state *state, const json_t *json,
                                    const char *where) {
    mimus_status status = MIMUS_OK;
    double correction1, correction2;
    MIMUS_TRY(mimus__json_get_u64(json, "epoch", where, &state->epoch));
    MIMUS_TRY(mimus__json_get_u64(json, "step", where, &state->step));
    MIMUS_TRY(mimus__json_get_double(json, "correction1", where, &correction1));
    MIMUS_TRY(mimus__json_get_double(json, "correction2", where, &correction2));
    MIMUS_TRY(mimus__json_get_u64(json, "best_epoch", where, &state->best_epoch));
    MIMUS_TRY(mimus__json_get_u64(json, "stale", where, &state->stale));
    state->best = INFINITY;
    if (!json_is_null(json_object_get(json, "best")))
        MIMUS_TRY(mimus__json_get_double(json, "best", where, &state->best));
    if (!(correction1 >= 0 && correction1 <= 1 && correction2 >= 0 && correction2 <= 1)) {
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s: corrections of %g and %g; expected 1 - beta^t, from 0 to 1",
                             where, correction1, correction2);
        goto out;
    }
    state->correction1 = (float)correction1;
    state->correction2 = (float)correction2;
out:
    return status;
}

/* -------------------------------------------------------------------- save */

static mimus_status set_text(json_t *metadata, const char *key, const json_t *value) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(mimus__json_text(&text, value, JSON_COMPACT));
    MIMUS_TRY(mimus__json_set(metadata, key, json_string(text)));
out:
    free(text);
    return status;
}

mimus_status mimus__shape_to_json(json_t **out, const mimus__shape *shape) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *width = json_array();
    for (uint32_t l = 0; l <= shape->layers; l++)
        MIMUS_TRY(mimus__json_append(width, json_integer(shape->width[l])));
    MIMUS_TRY(mimus__json_set(json, "senses", json_integer(shape->senses)));
    MIMUS_TRY(mimus__json_set(json, "stack", json_integer(shape->stack)));
    MIMUS_TRY(mimus__json_set(json, "width", json_incref(width)));
    MIMUS_TRY(mimus__json_set(json, "activation",
                              json_string(mimus__activation_name(shape->activation))));
    *out = json;
    json = NULL;
out:
    json_decref(width);
    json_decref(json);
    return status;
}

static mimus_status make_metadata(json_t **out, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    json_t *schema = NULL, *shape = NULL, *state = NULL, *metadata = json_object();
    MIMUS_TRY(mimus__json_set(metadata, "format", json_string(FORMAT)));
    MIMUS_TRY(mimus__json_set(metadata, "version", json_string(FORMAT_VERSION)));
    MIMUS_TRY(mimus__schema_to_json(&schema, model->schema));
    MIMUS_TRY(set_text(metadata, "schema", schema));
    MIMUS_TRY(mimus__shape_to_json(&shape, &model->shape));
    MIMUS_TRY(set_text(metadata, "shape", shape));
    MIMUS_TRY(set_text(metadata, "config", model->config));
    MIMUS_TRY(set_text(metadata, "facts", model->facts));
    if (model->state != NULL) {
        MIMUS_TRY(state_to_json(&state, model->state));
        MIMUS_TRY(set_text(metadata, "state", state));
    }
    *out = metadata;
    metadata = NULL;
out:
    json_decref(state);
    json_decref(shape);
    json_decref(schema);
    json_decref(metadata);
    return status;
}

/* A file that nobody could load must not replace one that everybody can. */
static mimus_status check_finite(const slots *all) {
    for (size_t i = 0; i < all->count; i++) {
        const slot *each = &all->list[i];
        uint64_t count = mimus__tensor_count(&each->tensor);
        for (uint64_t j = 0; j < count; j++) {
            if (!isfinite(each->values[j]))
                return mimus__fail(MIMUS_ERR_DATA,
                                   "tensor \"%s\" holds a number that is not finite",
                                   each->tensor.name);
        }
    }
    return MIMUS_OK;
}

static mimus_status write_slots(FILE *stream, const slots *all, const json_t *metadata,
                                float *scratch) {
    mimus_status status = MIMUS_OK;
    mimus__tensor tensors[MAX_TENSORS];
    for (size_t i = 0; i < all->count; i++)
        tensors[i] = all->list[i].tensor;
    MIMUS_TRY(mimus__safetensors_begin(stream, tensors, all->count, metadata));
    for (size_t i = 0; i < all->count; i++) {
        const slot *each = &all->list[i];
        const float *values = each->values;
        if (each->tensor.rank == 2) {
            transpose(values, scratch, each->tensor.shape[1], each->tensor.shape[0]);
            values = scratch;
        }
        mimus__safetensors_put(stream, values, mimus__tensor_count(&each->tensor));
    }
out:
    return status;
}

mimus_status mimus__model_write(FILE *stream, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    json_t *metadata = NULL;
    float *scratch = NULL;
    slots all;
    list_slots(&all, model);
    MIMUS_TRY(check_finite(&all));
    MIMUS_TRY(make_metadata(&metadata, model));
    MIMUS_TRY(mimus__alloc(&scratch, largest(&all), sizeof *scratch));
    MIMUS_TRY(write_slots(stream, &all, metadata, scratch));
out:
    free(scratch);
    json_decref(metadata);
    return status;
}

mimus_status mimus__model_save(const mimus__model *model, const char *path) {
    mimus_status status = MIMUS_OK;
    mimus__file_writer writer = {0};
    MIMUS_TRY(mimus__file_writer_open(&writer, path));
    MIMUS_TRY(mimus__model_write(writer.stream, model));
    MIMUS_TRY(mimus__file_writer_commit(&writer));
out:
    mimus__file_writer_abort(&writer);
    if (status != MIMUS_OK && status != MIMUS_ERR_IO) /* those name the path already */
        status = mimus__fail_prefix(status, "%s", path);
    return status;
}

/* -------------------------------------------------------------------- load */

/* Parse the metadata text `key`; `where` becomes "FILE: key". */
static mimus_status parse_text(json_t **out, const mimus__safetensors *file, const char *key,
                               char **where) {
    mimus_status status = MIMUS_OK;
    const char *text;
    *out = NULL;
    MIMUS_TRY(mimus__text_format(where, "%s: %s", file->where, key));
    MIMUS_TRY(mimus__json_get_string(file->metadata, key, file->where, &text));
    MIMUS_TRY(mimus__json_parse(out, text, strlen(text), *where));
    if (!json_is_object(*out))
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: expected an object", *where);
out:
    return status;
}

static mimus_status read_object(json_t **out, const mimus__safetensors *file, const char *key) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *where = NULL;
    MIMUS_TRY(parse_text(&json, file, key, &where));
    json_decref(*out);
    *out = json;
    json = NULL;
out:
    json_decref(json);
    free(where);
    return status;
}

static mimus_status read_schema(mimus_schema **out, const mimus__safetensors *file) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *where = NULL;
    MIMUS_TRY(parse_text(&json, file, "schema", &where));
    MIMUS_TRY(mimus__schema_from_json(out, json, where));
out:
    json_decref(json);
    free(where);
    return status;
}

static mimus_status get_u32(const json_t *object, const char *key, const char *where,
                            uint32_t *out) {
    uint64_t value;
    mimus_status status = mimus__json_get_u64(object, key, where, &value);
    if (status == MIMUS_OK && value > UINT32_MAX)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" is %" PRIu64 ", expected 32 bits", where,
                           key, value);
    *out = status == MIMUS_OK ? (uint32_t)value : 0;
    return status;
}

static mimus_status widths_from_json(mimus__shape *out, const json_t *width, const char *where) {
    size_t count = json_array_size(width);
    if (count < 2 || count > MIMUS__MAX_LAYERS + 1)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: expected \"width\" as an array of 2 to %d numbers", where,
                           MIMUS__MAX_LAYERS + 1);
    out->layers = (uint32_t)count - 1;
    for (size_t i = 0; i < count; i++) {
        json_int_t value = json_integer_value(json_array_get(width, i));
        if (value < 1 || value > UINT32_MAX)
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: width %zu is not a width", where, i);
        out->width[i] = (uint32_t)value;
    }
    return MIMUS_OK;
}

static mimus_status read_shape(mimus__shape *out, const mimus__safetensors *file) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *where = NULL;
    const char *activation;
    *out = (mimus__shape){0};
    MIMUS_TRY(parse_text(&json, file, "shape", &where));
    MIMUS_TRY(get_u32(json, "senses", where, &out->senses));
    MIMUS_TRY(get_u32(json, "stack", where, &out->stack));
    MIMUS_TRY(widths_from_json(out, json_object_get(json, "width"), where));
    MIMUS_TRY(mimus__json_get_string(json, "activation", where, &activation));
    if (!mimus__activation_parse(activation, &out->activation))
        status =
            mimus__fail(MIMUS_ERR_FORMAT, "%s: unknown activation \"%.32s\"", where, activation);
out:
    json_decref(json);
    free(where);
    return status;
}

static mimus_status read_state(mimus__model *model, const mimus__safetensors *file) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    char *where = NULL;
    MIMUS_TRY(parse_text(&json, file, "state", &where));
    MIMUS_TRY(state_from_json(model->state, json, where));
    if (json_object_get(file->header, "moment1.layers.0.bias") == NULL) {
        free(model->state->moment1);
        model->state->moment1 = NULL;
    }
    if (json_object_get(file->header, "moment2.layers.0.bias") == NULL) {
        free(model->state->moment2);
        model->state->moment2 = NULL;
    }
out:
    json_decref(json);
    free(where);
    return status;
}

static mimus_status check_format(const mimus__safetensors *file) {
    const char *format = json_string_value(json_object_get(file->metadata, "format"));
    const char *version = json_string_value(json_object_get(file->metadata, "version"));
    if (format == NULL || strcmp(format, FORMAT) != 0)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: a safetensors file, but not a mimus checkpoint: \"format\" is "
                           "\"%.32s\", expected \"" FORMAT "\"",
                           file->where, format != NULL ? format : "");
    if (version == NULL || strcmp(version, FORMAT_VERSION) != 0)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: checkpoint version \"%.32s\", expected \"" FORMAT_VERSION "\"",
                           file->where, version != NULL ? version : "");
    return MIMUS_OK;
}

/* What the file claims must fit into what it has, before memory is asked for. */
static mimus_status check_size(const mimus__safetensors *file, const mimus_schema *schema,
                               const mimus__shape *shape) {
    mimus_status status = mimus__shape_check(shape, schema);
    if (status != MIMUS_OK)
        return mimus__fail_prefix(MIMUS_ERR_FORMAT, "%s", file->where);
    size_t needed = mimus__shape_parameters(shape) * sizeof(float);
    if (needed > file->bytes)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: the shape takes %zu bytes of parameters, the tensors have %zu",
                           file->where, needed, file->bytes);
    return MIMUS_OK;
}

static mimus_status check_no_others(const mimus__safetensors *file, const slots *all) {
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry) {
        size_t i = 0;
        while (i < all->count && strcmp(all->list[i].tensor.name, name) != 0)
            i++;
        if (i == all->count)
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: unexpected tensor \"%s\"", file->where, name);
    }
    return MIMUS_OK;
}

static mimus_status read_slots(const mimus__safetensors *file, const slots *all) {
    mimus_status status = MIMUS_OK;
    float *scratch = NULL;
    MIMUS_TRY(check_no_others(file, all));
    MIMUS_TRY(mimus__alloc(&scratch, largest(all), sizeof *scratch));
    for (size_t i = 0; i < all->count; i++) {
        const slot *each = &all->list[i];
        bool matrix = each->tensor.rank == 2;
        MIMUS_TRY(mimus__safetensors_get(file, &each->tensor, matrix ? scratch : each->values));
        if (matrix)
            transpose(scratch, each->values, each->tensor.shape[0], each->tensor.shape[1]);
    }
out:
    free(scratch);
    return status;
}

static mimus_status read_model(mimus__model **out, const mimus__safetensors *file) {
    mimus_status status = MIMUS_OK;
    mimus_schema *schema = NULL;
    mimus__model *model = NULL;
    mimus__shape shape;
    slots all;
    bool with_state = json_object_get(file->metadata, "state") != NULL;
    MIMUS_TRY(check_format(file));
    MIMUS_TRY(read_schema(&schema, file));
    MIMUS_TRY(read_shape(&shape, file));
    MIMUS_TRY(check_size(file, schema, &shape));
    MIMUS_TRY(mimus__model_new(&model, schema, &shape, with_state));
    MIMUS_TRY(read_object(&model->config, file, "config"));
    MIMUS_TRY(read_object(&model->facts, file, "facts"));
    if (with_state)
        MIMUS_TRY(read_state(model, file));
    list_slots(&all, model);
    MIMUS_TRY(read_slots(file, &all));
    *out = model;
    model = NULL;
out:
    mimus__model_free(model);
    mimus__schema_free(schema);
    return status;
}

mimus_status mimus__model_decode(mimus__model **out, const void *bytes, size_t size,
                                 const char *where) {
    mimus_status status = MIMUS_OK;
    mimus__safetensors file = {0};
    *out = NULL;
    MIMUS_TRY(mimus__safetensors_parse(&file, bytes, size, where));
    MIMUS_TRY(read_model(out, &file));
out:
    mimus__safetensors_clear(&file);
    return status;
}

/* Refuse what is no checkpoint by its beginning, before gigabytes of a recording are read. */
static mimus_status check_beginning(const char *path) {
    mimus_status status = MIMUS_OK;
    unsigned char bytes[MIMUS__SAFETENSORS_BEGINNING];
    int descriptor = -1;
    MIMUS_TRY(mimus__file_open(&descriptor, path));
    ssize_t got = read(descriptor, bytes, sizeof bytes);
    if (got < 0)
        status = mimus__fail(MIMUS_ERR_IO, "%s: %s", path, strerror(errno));
    else
        status = mimus__safetensors_check_beginning(bytes, (size_t)got, path);
    close(descriptor);
out:
    return status;
}

mimus_status mimus__model_load(mimus__model **out, const char *path) {
    mimus_status status = MIMUS_OK;
    char *bytes = NULL;
    size_t size;
    /* the most that the largest network, its moments, senses and header can take */
    const size_t limit = (size_t)MIMUS__MAX_PARAMETERS * MAX_FILE_BYTES_PER_PARAMETER +
                         MIMUS__MAX_SENSES * (2 * sizeof(float)) + MIMUS__MAX_SAFETENSORS_HEADER +
                         8;
    *out = NULL;
    MIMUS_TRY(check_beginning(path));
    MIMUS_TRY(mimus__file_read(path, limit, &bytes, &size));
    MIMUS_TRY(mimus__model_decode(out, bytes, size, path));
out:
    free(bytes);
    return status;
}

/* -------------------------------------------------------------------- find */

mimus_status mimus__model_find(char **out, const char *path, const char *which) {
    mimus_status status = MIMUS_OK;
    *out = NULL;
    if (!mimus__file_exists(path))
        return mimus__fail(MIMUS_ERR_IO, "%s: no such run folder or checkpoint", path);
    if (!mimus__file_is_folder(path))
        return mimus__text_copy(out, path);
    MIMUS_TRY(mimus__text_format(out, "%s/%s.safetensors", path, which));
    if (!mimus__file_exists(*out) && strcmp(which, "best") == 0) {
        free(*out);
        MIMUS_TRY(mimus__text_format(out, "%s/last.safetensors", path));
    }
    if (!mimus__file_exists(*out))
        status = mimus__fail(MIMUS_ERR_IO, "%s: not a run folder with a checkpoint: %s is missing",
                             path, *out);
out:
    if (status != MIMUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* safetensors - reading trusts nothing: every number of the header is checked before it is used. */
#include "safetensors.h"

#include "alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "__metadata__"
enum { LENGTH_BYTES = 8, ALIGNMENT = 8 };

/* The format's dtypes that are made of whole bytes. */
static const struct {
    const char *name;
    unsigned bytes;
} dtypes[] = {{"F64", 8},     {"I64", 8},     {"U64", 8},  {"F32", 4}, {"I32", 4},
              {"U32", 4},     {"BF16", 2},    {"F16", 2},  {"I16", 2}, {"U16", 2},
              {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}, {"I8", 1},  {"U8", 1}};

uint64_t mimus__tensor_count(const mimus__tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

static uint64_t get_u64(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static float get_f32(const unsigned char *bytes) {
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                    (uint32_t)bytes[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ----------------------------------------------------------------- reading */

static unsigned dtype_bytes(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(name, dtypes[i].name) == 0)
            return dtypes[i].bytes;
    }
    return 0;
}

/* A tensor's place in the buffer. */
typedef struct extent {
    uint64_t begin, end;
    const char *name; /* borrowed from the header */
} extent;

static bool get_size(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* The bytes that dtype and shape ask for; false when they are malformed or past 64 bits. */
static bool expected_bytes(const json_t *entry, uint64_t *out) {
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *shape = json_object_get(entry, "shape");
    uint64_t total = json_is_string(dtype) ? dtype_bytes(json_string_value(dtype)) : 0;
    if (total == 0 || !json_is_array(shape))
        return false;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        uint64_t extent_of_axis;
        if (!get_size(json_array_get(shape, i), &extent_of_axis))
            return false;
        if (extent_of_axis != 0 && total > UINT64_MAX / extent_of_axis)
            return false;
        total *= extent_of_axis;
    }
    *out = total;
    return true;
}

static mimus_status check_entry(const mimus__safetensors *file, const char *name,
                                const json_t *entry, extent *out) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t expected;
    *out = (extent){.name = name};
    if (!json_is_object(entry) || !json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !get_size(json_array_get(offsets, 0), &out->begin) ||
        !get_size(json_array_get(offsets, 1), &out->end) || !expected_bytes(entry, &expected))
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: tensor \"%s\": expected a known dtype, a shape and two offsets",
                           file->where, name);
    if (out->begin > out->end || out->end > file->bytes)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: tensor \"%s\" ends at byte %" PRIu64
                           " of a buffer of %zu bytes: the file is truncated or damaged",
                           file->where, name, out->end, file->bytes);
    if (out->end - out->begin != expected)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: tensor \"%s\": dtype and shape take %" PRIu64
                           " bytes, the offsets %" PRIu64,
                           file->where, name, expected, out->end - out->begin);
    return MIMUS_OK;
}

static int compare_extents(const void *a, const void *b) {
    const extent *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* In the buffer's order each tensor must begin where the one before it ended. */
static mimus_status check_coverage(const mimus__safetensors *file, const extent *sorted,
                                   size_t count) {
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i].begin != end)
            return mimus__fail(MIMUS_ERR_FORMAT,
                               "%s: tensor \"%s\" begins at byte %" PRIu64
                               ", %s where the one before it ends, %" PRIu64,
                               file->where, sorted[i].name, sorted[i].begin,
                               sorted[i].begin < end ? "before" : "behind", end);
        end = sorted[i].end;
    }
    if (end != file->bytes)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: the tensors end at byte %" PRIu64 " of a buffer of %zu bytes",
                           file->where, end, file->bytes);
    return MIMUS_OK;
}

static mimus_status check_tensors(const mimus__safetensors *file) {
    mimus_status status = MIMUS_OK;
    extent *extents = NULL;
    size_t count = 0;
    const char *name;
    json_t *entry;
    MIMUS_TRY(mimus__alloc(&extents, json_object_size(file->header), sizeof *extents));
    json_object_foreach(file->header, name, entry) {
        MIMUS_TRY(check_entry(file, name, entry, &extents[count]));
        count++;
    }
    qsort(extents, count, sizeof *extents, compare_extents);
    MIMUS_TRY(check_coverage(file, extents, count));
out:
    free(extents);
    return status;
}

static mimus_status take_metadata(mimus__safetensors *file) {
    const char *key;
    json_t *value;
    file->metadata = json_incref(json_object_get(file->header, METADATA));
    if (file->metadata == NULL)
        file->metadata = json_object();
    else
        json_object_del(file->header, METADATA);
    if (!json_is_object(file->metadata))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: " METADATA " is not an object", file->where);
    json_object_foreach(file->metadata, key, value) {
        if (!json_is_string(value))
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: " METADATA " \"%s\" is not a string",
                               file->where, key);
    }
    return MIMUS_OK;
}

mimus_status mimus__safetensors_check_beginning(const void *bytes, size_t size, const char *where) {
    const unsigned char *content = bytes;
    if (size < MIMUS__SAFETENSORS_BEGINNING)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file",
                           where, size);
    uint64_t length = get_u64(content);
    if (content[LENGTH_BYTES] != '{')
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: not a safetensors file; a run folder or a checkpoint belongs here",
                           where);
    if (length > MIMUS__MAX_SAFETENSORS_HEADER)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: a header of %" PRIu64 " bytes; at most %d are allowed", where,
                           length, MIMUS__MAX_SAFETENSORS_HEADER);
    return MIMUS_OK;
}

mimus_status mimus__safetensors_parse(mimus__safetensors *out, const void *bytes, size_t size,
                                      const char *where) {
    mimus_status status = MIMUS_OK;
    const unsigned char *content = bytes;
    *out = (mimus__safetensors){.where = where};
    MIMUS_TRY(mimus__safetensors_check_beginning(bytes, size, where));
    uint64_t length = get_u64(content);
    if (length > size - LENGTH_BYTES)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: truncated: a header of %" PRIu64 " bytes in a file of %zu", where,
                           length, size);
    out->buffer = content + LENGTH_BYTES + length;
    out->bytes = size - LENGTH_BYTES - (size_t)length;
    MIMUS_TRY(mimus__json_parse(&out->header, (const char *)content + LENGTH_BYTES, (size_t)length,
                                where));
    MIMUS_TRY(take_metadata(out));
    MIMUS_TRY(check_tensors(out));
out:
    if (status != MIMUS_OK)
        mimus__safetensors_clear(out);
    return status;
}

void mimus__safetensors_clear(mimus__safetensors *file) {
    json_decref(file->header);
    json_decref(file->metadata);
    *file = (mimus__safetensors){0};
}

static bool same_shape(const json_t *shape, const mimus__tensor *wanted) {
    if (json_array_size(shape) != wanted->rank)
        return false;
    for (uint32_t i = 0; i < wanted->rank; i++) {
        if ((uint64_t)json_integer_value(json_array_get(shape, i)) != wanted->shape[i])
            return false;
    }
    return true;
}

static mimus_status wrong_shape(const mimus__safetensors *file, const json_t *shape,
                                const mimus__tensor *wanted) {
    mimus_status status = MIMUS_OK;
    char *found = NULL;
    char expected[64];
    if (wanted->rank == 1)
        snprintf(expected, sizeof expected, "[%" PRIu64 "]", wanted->shape[0]);
    else
        snprintf(expected, sizeof expected, "[%" PRIu64 ",%" PRIu64 "]", wanted->shape[0],
                 wanted->shape[1]);
    MIMUS_TRY(mimus__json_text(&found, shape, JSON_COMPACT));
    status = mimus__fail(MIMUS_ERR_FORMAT, "%s: tensor \"%s\" has shape %.64s, expected %s",
                         file->where, wanted->name, found, expected);
out:
    free(found);
    return status;
}

mimus_status mimus__safetensors_get(const mimus__safetensors *file, const mimus__tensor *wanted,
                                    float *values) {
    const json_t *entry = json_object_get(file->header, wanted->name);
    if (entry == NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: tensor \"%s\" is missing", file->where,
                           wanted->name);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    if (strcmp(dtype, "F32") != 0)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: tensor \"%s\" is %s, expected F32", file->where,
                           wanted->name, dtype);
    if (!same_shape(shape, wanted))
        return wrong_shape(file, shape, wanted);
    uint64_t begin =
        (uint64_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    const unsigned char *source = file->buffer + begin;
    uint64_t count = mimus__tensor_count(wanted);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = get_f32(source + i * sizeof(float));
        if (!isfinite(values[i]))
            return mimus__fail(MIMUS_ERR_FORMAT,
                               "%s: tensor \"%s\": element %" PRIu64 " is not finite", file->where,
                               wanted->name, i);
    }
    return MIMUS_OK;
}

/* ----------------------------------------------------------------- writing */

static mimus_status add_entry(json_t *header, const mimus__tensor *tensor, uint64_t *offset) {
    json_int_t rows = (json_int_t)tensor->shape[0], columns = (json_int_t)tensor->shape[1];
    json_t *shape = tensor->rank == 1 ? json_pack("[I]", rows) : json_pack("[I, I]", rows, columns);
    uint64_t begin = *offset;
    *offset += mimus__tensor_count(tensor) * sizeof(float);
    return mimus__json_set(header, tensor->name,
                           json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                                     "data_offsets", (json_int_t)begin, (json_int_t)*offset));
}

static void put_u64(FILE *stream, uint64_t value) {
    for (int i = 0; i < LENGTH_BYTES; i++)
        putc((int)(value >> 8 * i & 0xff), stream);
}

mimus_status mimus__safetensors_begin(FILE *stream, const mimus__tensor *tensors, size_t count,
                                      const json_t *metadata) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    uint64_t offset = 0;
    json_t *header = json_object();
    MIMUS_TRY(mimus__json_set(header, METADATA, json_deep_copy(metadata)));
    for (size_t i = 0; i < count; i++)
        MIMUS_TRY(add_entry(header, &tensors[i], &offset));
    MIMUS_TRY(mimus__json_text(&text, header, JSON_COMPACT));
    size_t length = strlen(text);
    size_t padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* aligns the buffer */
    if (padded > MIMUS__MAX_SAFETENSORS_HEADER) {
        status =
            mimus__fail(MIMUS_ERR_UNSUPPORTED, "a header of %zu bytes; safetensors files allow %d",
                        padded, MIMUS__MAX_SAFETENSORS_HEADER);
        goto out;
    }
    put_u64(stream, padded);
    fprintf(stream, "%-*s", (int)padded, text);
out:
    json_decref(header);
    free(text);
    return status;
}

void mimus__safetensors_put(FILE *stream, const float *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                  (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        fwrite(bytes, 1, sizeof bytes, stream);
    }
}

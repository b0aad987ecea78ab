#include "npz_weights.h"

#include "alloc.h"
#include "npz_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One array, its numbers as they stand in the archive. */
typedef struct item {
    char name[32];
    size_t rows, columns; /* columns 0: (rows) */
    float *values;
} item;

enum { MAX_ITEMS = 2 + 2 * MIMUS__MAX_LAYERS };

typedef struct items {
    item list[MAX_ITEMS];
    size_t count;
} items;

static void items_clear(items *all) {
    for (size_t i = 0; i < all->count; i++)
        free(all->list[i].values);
}

/* Add (rows, columns) numbers; the source is (columns, rows) where it is to be turned. */
static mimus_status add(items *all, const float *source, size_t rows, size_t columns) {
    mimus_status status = MIMUS_OK;
    item *added = &all->list[all->count];
    size_t width = columns > 0 ? columns : 1;
    added->rows = rows;
    added->columns = columns;
    MIMUS_TRY(mimus__alloc(&added->values, rows * width, sizeof *added->values));
    all->count++;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < width; c++)
            added->values[r * width + c] = source[c * rows + r];
    }
out:
    return status;
}

static mimus_status list(items *out, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    out->count = 0;
    MIMUS_TRY(add(out, model->mean, shape->senses, 0));
    MIMUS_TRY(add(out, model->scale, shape->senses, 0));
    snprintf(out->list[0].name, sizeof out->list[0].name, "mean");
    snprintf(out->list[1].name, sizeof out->list[1].name, "scale");
    for (uint32_t l = 0; l < shape->layers; l++) {
        item *weight = &out->list[out->count], *bias = weight + 1;
        MIMUS_TRY(add(out, model->parameters + mimus__shape_weight_offset(shape, l),
                      shape->width[l + 1], shape->width[l]));
        MIMUS_TRY(add(out, model->parameters + mimus__shape_bias_offset(shape, l),
                      shape->width[l + 1], 0));
        snprintf(weight->name, sizeof weight->name, "layers.%" PRIu32 ".weight", l);
        snprintf(bias->name, sizeof bias->name, "layers.%" PRIu32 ".bias", l);
    }
out:
    return status;
}

static mimus_status add_json(mimus__npz_writer *writer, const char *name, const json_t *json) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(mimus__json_text(&text, json, JSON_COMPACT));
    MIMUS_TRY(mimus__npz_writer_text(writer, name, text));
out:
    free(text);
    return status;
}

mimus_status mimus__npz_weights_write(FILE *stream, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    mimus__npz_writer writer = {0};
    json_t *schema = NULL, *shape = NULL;
    items all = {.count = 0};
    MIMUS_TRY(list(&all, model));
    MIMUS_TRY(mimus__npz_writer_init(&writer));
    for (size_t i = 0; i < all.count; i++)
        MIMUS_TRY(mimus__npz_writer_floats(&writer, all.list[i].name, all.list[i].values,
                                           all.list[i].rows, all.list[i].columns));
    MIMUS_TRY(mimus__schema_to_json(&schema, model->schema));
    MIMUS_TRY(add_json(&writer, "schema", schema));
    MIMUS_TRY(mimus__shape_to_json(&shape, &model->shape));
    MIMUS_TRY(add_json(&writer, "shape", shape));
    MIMUS_TRY(mimus__npz_writer_finish(&writer, stream));
out:
    json_decref(schema);
    json_decref(shape);
    mimus__npz_writer_clear(&writer);
    items_clear(&all);
    return status;
}

/* ----------------------------------------------------------------- reading */

/* Whether the member is there, its checksum holds, and it ends in the numbers. */
static bool holds(zip_t *zip, const item *wanted) {
    char member[48];
    size_t bytes = wanted->rows * (wanted->columns > 0 ? wanted->columns : 1) * sizeof(float);
    zip_stat_t info;
    char *content = NULL;
    bool found = false;
    snprintf(member, sizeof member, "%s.npy", wanted->name);
    zip_file_t *file = zip_fopen(zip, member, 0);
    if (file == NULL || zip_stat(zip, member, 0, &info) != 0 || info.size < bytes ||
        mimus__alloc(&content, (size_t)info.size + 1, 1) != MIMUS_OK)
        goto out;
    /* one byte more, at the end of which the checksum is compared */
    found = zip_fread(file, content, info.size + 1) == (zip_int64_t)info.size &&
            memcmp(content + info.size - bytes, wanted->values, bytes) == 0;
out:
    free(content);
    if (file != NULL)
        zip_fclose(file);
    return found;
}

mimus_status mimus__npz_weights_check(const void *bytes, size_t size, const mimus__model *model,
                                      const char *where) {
    mimus_status status = MIMUS_OK;
    items all = {.count = 0};
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, NULL);
    zip_t *zip = source != NULL ? zip_open_from_source(source, ZIP_RDONLY, NULL) : NULL;
    MIMUS_TRY(list(&all, model));
    for (size_t i = 0; i < all.count; i++) {
        if (zip == NULL || !holds(zip, &all.list[i])) {
            status = mimus__fail(MIMUS_ERR_DATA,
                                 "%s: the array %s is not the policy's; the file is wrong and was "
                                 "not kept",
                                 where, all.list[i].name);
            goto out;
        }
    }
out:
    if (zip != NULL)
        zip_discard(zip);
    else
        zip_source_free(source);
    items_clear(&all);
    return status;
}

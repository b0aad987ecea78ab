/* Every episode is a part of the file (h5_layout.h), a flat file is a single part; the parts are
 * read one after another, each a bounded piece at a time.
 *
 * Minari keeps what was seen after an episode's last action as one observation more than there are
 * actions, and so its infos: that row is left out, for nothing was done on it. Its spaces, in the
 * metadata.json beside the file or in attributes, say how many actions there are and how their
 * numbers begin. Of other files the labels say it, in a pass of their own.
 *
 * libhdf5 is not proof against damaged files: all of this happens in a process apart (apart.h). */
#include "h5_reader.h"

#include "alloc.h"
#include "apart.h"
#include "file.h"
#include "gym_space.h"
#include "h5_layout.h"
#include "h5_rows.h"
#include "heads.h"
#include "kept.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mimus__reader_option h5_options[] = {
    {"senses",
     "datasets (N, ...) or groups of them, with commas between; default: observations, obs, "
     "senses or states"},
    {"actions", "dataset of labels (N,) or (N, H), -1 for none; default: actions or acts"},
    {"heads", "actions of each head: move:5,shoot:2 or 5,2; default: as the file says, else the "
              "largest label + 1"},
    {"masks",
     "dataset (N, A), not 0 where legal; default: action_masks or action_mask, also of infos "
     "and observations; empty: none"},
    MIMUS__BINS_OPTION,
    {"weights", "dataset (N,) of sample weights; default: weights, also of infos; empty: none"},
    {"starts", "dataset (N,), not 0 where an episode begins; default: episode_starts"},
    {"episode", "dataset (N,) of numbers that change where another episode begins"},
    {"dones",
     "datasets (N,), not 0 at an episode's end; default: all there are of dones, terminals, "
     "timeouts, terminations, truncations"},
    {"filter", "of robomimic files: the list of demos in /mask to read, as train"},
    {NULL, NULL},
};

/* Everything that the reading of one file holds. */
typedef struct reading {
    mimus__h5_file file;
    const char *const *options;
    const mimus_schema *like; /* that the samples are judged by, or NULL */
    const mimus_watch *watch;
    mimus__h5_layout layout;
    json_t *observation_space; /* NULL: not known */
    json_t *action_space;
    mimus_schema *kept;            /* what mimus wrote into it, or NULL */
    mimus__apart_numbers *numbers; /* borrowed, who makes bins of the numbers; else NULL */
    mimus__bins *bins; /* borrowed, or NULL: then actions are read as labels, else as numbers */
    mimus__h5_rows of[MIMUS__H5_ROLES]; /* of the part that is being read; DONES apart */
    uint64_t samples;                   /* of all parts */
    uint64_t part_samples;              /* of this one */
    size_t senses, columns, mask_width; /* elements of a row: they are those of the first part */
    int64_t *start;                     /* (columns) the number that label 0 has in the file */
    char **column_names;                /* (columns) as the file has them, or NULL each */
    mimus_head *heads;                  /* (head_count) */
    uint32_t head_count;
    bool inferred;      /* the heads, from the data */
    char **sense_names; /* (senses), or NULL */
    int64_t *row;       /* (columns) labels of a sample as the file has them */
    uint16_t *labels;   /* (head_count) as the recording has them */
} reading;

static void close_part(reading *r) {
    for (int role = 0; role < MIMUS__H5_ROLES; role++)
        mimus__h5_rows_close(&r->of[role]);
}

static void reading_close(reading *r) {
    close_part(r);
    for (size_t i = 0; r->sense_names != NULL && i < r->senses; i++)
        free(r->sense_names[i]);
    free(r->sense_names);
    for (size_t c = 0; r->column_names != NULL && c < r->columns; c++)
        free(r->column_names[c]);
    free(r->column_names);
    free(r->start);
    free(r->row);
    free(r->labels);
    mimus__heads_free(r->heads, r->head_count);
    mimus__schema_free(r->kept);
    json_decref(r->observation_space);
    json_decref(r->action_space);
    mimus__h5_layout_clear(&r->layout);
    mimus__h5_close(&r->file);
}

static bool has(const reading *r, mimus__h5_role role) {
    return r->layout.of[role].count > 0;
}

/* ------------------------------------------------------------------ spaces */

/* Take a space over, if the text is one. What is not understood is not needed: the data stands. */
static void take_space(json_t **space, const reading *r, const char *text, const char *name) {
    json_t *found = NULL;
    if (text == NULL || *space != NULL)
        return;
    if (mimus__gym_parse(&found, text, name) == MIMUS_OK)
        *space = found;
    else
        mimus__watch_message(r->watch, "%s: what it says of its spaces is left aside: %s",
                             r->file.path, mimus_last_error());
}

static void take_metadata(reading *r, const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    json_t *metadata = NULL;
    if (!mimus__file_exists(path) || mimus__file_is_folder(path) ||
        mimus__file_read(path, 64 << 20, &text, &bytes) != MIMUS_OK)
        return;
    take_space(&metadata, r, text, path);
    take_space(&r->observation_space, r,
               json_string_value(json_object_get(metadata, "observation_space")),
               "observation_space");
    take_space(&r->action_space, r, json_string_value(json_object_get(metadata, "action_space")),
               "action_space");
    json_decref(metadata);
    free(text);
}

/* The spaces are in metadata.json beside Minari's main_data.hdf5, in attributes before its 0.5. */
static mimus_status find_spaces(reading *r) {
    mimus_status status = MIMUS_OK;
    const char *slash = strrchr(r->file.path, '/');
    const char *name = slash != NULL ? slash + 1 : r->file.path;
    char *path = NULL, *observations = NULL, *actions = NULL;
    MIMUS_TRY(mimus__h5_attribute(&r->file, "", "observation_space", &observations));
    MIMUS_TRY(mimus__h5_attribute(&r->file, "", "action_space", &actions));
    take_space(&r->observation_space, r, observations, "observation_space");
    take_space(&r->action_space, r, actions, "action_space");
    MIMUS_TRY(
        mimus__text_format(&path, "%.*smetadata.json", (int)(name - r->file.path), r->file.path));
    if (strcmp(name, "main_data.hdf5") == 0)
        take_metadata(r, path);
out:
    free(path);
    free(observations);
    free(actions);
    return status;
}

/* What a recording was before mimus wrote it here. Its actions may be bins already: no bins are
 * made of these, unless that is asked for. */
static mimus_status find_schema(reading *r) {
    mimus_status status = MIMUS_OK;
    char *text = NULL, *where = NULL;
    MIMUS_TRY(mimus__h5_attribute(&r->file, "", "mimus_schema", &text));
    MIMUS_TRY(mimus__text_format(&where, "%s: attribute mimus_schema", r->file.path));
    if (text != NULL)
        MIMUS_TRY(mimus__kept_parse(&r->kept, text, where));
    if (mimus__kept_has_bins(r->kept) && mimus__reader_option_value(r->options, "bin") == NULL)
        r->bins = NULL;
out:
    free(text);
    free(where);
    return status;
}

/* The part of a space that a dataset holds: that of "/actions/arm" is the space's "/arm". */
static const json_t *space_of(const json_t *space, const reading *r, mimus__h5_role role,
                              size_t index) {
    const char *path = strchr(r->layout.of[role].name[index] + 1, '/');
    return mimus__gym_find(space, path != NULL ? path : "");
}

/* ------------------------------------------------------------------- parts */

static const struct {
    mimus__npy_form form;
    uint64_t limit; /* elements of a row */
} forms[MIMUS__H5_ROLES] = {
    [MIMUS__H5_SENSES] = {MIMUS__NPY_TO_FLOATS, MIMUS__MAX_SENSES},
    [MIMUS__H5_ACTIONS] = {MIMUS__NPY_TO_LABELS, MIMUS__MAX_HEADS},
    [MIMUS__H5_MASKS] = {MIMUS__NPY_TO_FLAGS, MIMUS__MAX_TOTAL_ACTIONS},
    [MIMUS__H5_WEIGHTS] = {MIMUS__NPY_TO_FLOATS, 1},
    [MIMUS__H5_STARTS] = {MIMUS__NPY_TO_FLAGS, 1},
    [MIMUS__H5_EPISODES] = {MIMUS__NPY_TO_LABELS, 1},
    [MIMUS__H5_DONES] = {MIMUS__NPY_TO_FLAGS, 16},
};

/* By its elements or, of a dataset that Minari has a space for, by that. */
static mimus_status is_image(reading *r, size_t index, bool *out) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__h5_column_is_image(&r->of[MIMUS__H5_SENSES].column[index], out));
    *out = *out || mimus__gym_is_image(space_of(r->observation_space, r, MIMUS__H5_SENSES, index));
out:
    return status;
}

/* "; --senses eef,object leaves it out", or what to do where nothing is left then. */
static const char *without_images(reading *r, char *text, size_t bytes) {
    size_t length = 0;
    for (size_t i = 0; i < r->of[MIMUS__H5_SENSES].columns && length < bytes; i++) {
        const char *name = mimus__h5_layout_name(&r->layout, MIMUS__H5_SENSES, i);
        bool image = false;
        if (name != NULL && is_image(r, i, &image) == MIMUS_OK && !image)
            length += (size_t)snprintf(text + length, bytes - length, "%s%s",
                                       length > 0 ? "," : "; --senses ", name);
    }
    if (length == 0)
        snprintf(text, bytes, "; record features of them, and name those with --senses");
    else if (length < bytes)
        snprintf(text + length, bytes - length, " leaves it out");
    return text;
}

static mimus_status check_images(reading *r) {
    mimus_status status = MIMUS_OK;
    char advice[512];
    const mimus__h5_rows *senses = &r->of[MIMUS__H5_SENSES];
    for (size_t i = 0; i < senses->columns && !r->layout.named[MIMUS__H5_SENSES]; i++) {
        bool image = false;
        MIMUS_TRY(is_image(r, i, &image));
        if (image)
            return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                               "%s: holds images, and mimus learns from vectors%s",
                               senses->column[i].where, without_images(r, advice, sizeof advice));
    }
out:
    return status;
}

static mimus_status open_role(reading *r, const char *part, mimus__h5_role role) {
    bool numbers = role == MIMUS__H5_ACTIONS && (r->bins != NULL || r->numbers != NULL);
    mimus_status status =
        mimus__h5_rows_open(&r->of[role], &r->file, part, &r->layout.of[role],
                            numbers ? MIMUS__NPY_TO_FLOATS : forms[role].form, forms[role].limit);
    if (status == MIMUS_ERR_UNSUPPORTED && role == MIMUS__H5_SENSES && !r->layout.named[role])
        mimus__fail(status, "%s; the option senses names what to learn from instead",
                    mimus_last_error());
    return status;
}

/* Every part has rows of the first one's width. */
static mimus_status check_width(const reading *r, mimus__h5_role role, const char *part,
                                size_t *width) {
    const mimus__h5_rows *rows = &r->of[role];
    if (*width == 0)
        *width = rows->width;
    if (rows->width == *width)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA, "%s: %s: its %s are %zu wide, and those of %s %zu",
                       r->file.path, part, mimus__h5_role_key(role), rows->width,
                       r->layout.parts.name[0], *width);
}

/* One row more than there are samples is what came after the last action. */
static mimus_status check_rows(const reading *r, mimus__h5_role role, bool one_more) {
    const mimus__h5_rows *rows = &r->of[role];
    if (!has(r, role) || rows->rows == r->part_samples ||
        (one_more && rows->rows == r->part_samples + 1))
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA, "%s: %llu rows for %llu actions", rows->column[0].where,
                       (unsigned long long)rows->rows, (unsigned long long)r->part_samples);
}

static bool knows_episodes(const reading *r) {
    return r->layout.grouped || has(r, MIMUS__H5_STARTS) || has(r, MIMUS__H5_EPISODES) ||
           has(r, MIMUS__H5_DONES);
}

static mimus_status check_part(reading *r, const char *part) {
    mimus_status status = MIMUS_OK;
    const bool one_more = r->layout.grouped || !knows_episodes(r);
    r->part_samples = r->of[MIMUS__H5_ACTIONS].rows;
    MIMUS_TRY(check_width(r, MIMUS__H5_SENSES, part, &r->senses));
    MIMUS_TRY(check_width(r, MIMUS__H5_ACTIONS, part, &r->columns));
    if (has(r, MIMUS__H5_MASKS))
        MIMUS_TRY(check_width(r, MIMUS__H5_MASKS, part, &r->mask_width));
    for (mimus__h5_role role = 0; role < MIMUS__H5_ROLES; role++)
        MIMUS_TRY(check_rows(r, role, one_more && role < MIMUS__H5_STARTS));
out:
    return status;
}

static mimus_status open_part(reading *r, const char *part) {
    mimus_status status = MIMUS_OK;
    mimus__h5_kind kind = MIMUS__H5_NOTHING;
    close_part(r);
    MIMUS_TRY(mimus__h5_look(&r->file, part, &kind));
    if (kind != MIMUS__H5_GROUP)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_FORMAT, "%s: %s: should be a group, as an episode is",
                              r->file.path, part));
    for (mimus__h5_role role = 0; role < MIMUS__H5_ROLES; role++) {
        if (has(r, role))
            MIMUS_TRY(open_role(r, part, role));
    }
    MIMUS_TRY(check_part(r, part));
    MIMUS_TRY(check_images(r));
out:
    return status;
}

/* ------------------------------------------------------------------ labels */

/* A number of column `c` that bins are not for, as a label; a NaN is none of them. */
static mimus_status label_of(const mimus__h5_rows *actions, float number, size_t c,
                             int64_t *label) {
    if (number == floorf(number) && fabsf(number) < 0x1p31F) {
        *label = (int64_t)number;
        return MIMUS_OK;
    }
    const mimus__h5_column *first = &actions->column[0];
    return mimus__bins_refuse("%s: %.9g in row %llu, column %zu is not an integer", first->where,
                              (double)number,
                              (unsigned long long)(first->read - first->held + first->used - 1), c);
}

/* The next row's labels into r->row: of numbers, their bins. Labels begin at 0. */
static mimus_status next_labels(const reading *r, mimus__h5_rows *actions) {
    mimus_status status = MIMUS_OK;
    const void *row = NULL;
    status = mimus__h5_rows_next(actions, &row);
    if (status == MIMUS_ERR_UNSUPPORTED)
        return mimus__bins_refuse("%s", mimus_last_error());
    MIMUS_TRY(status);
    for (uint32_t c = 0; c < r->columns; c++) {
        const int64_t start = r->start[c];
        if (mimus__bins_has(r->bins, c)) {
            r->row[c] = mimus__bins_label(r->bins, c, ((const float *)row)[c]);
            continue;
        }
        if (r->bins == NULL)
            r->row[c] = ((const int64_t *)row)[c];
        else
            MIMUS_TRY(label_of(actions, ((const float *)row)[c], c, &r->row[c]));
        if (start != 0) /* what is too small stays out of range, and no number overflows */
            r->row[c] = r->row[c] < start ? INT64_MIN : r->row[c] - start;
    }
out:
    return status;
}

static mimus_status open_actions(reading *r, const char *part) {
    mimus_status status = MIMUS_OK;
    mimus__h5_kind kind = MIMUS__H5_NOTHING;
    close_part(r);
    MIMUS_TRY(mimus__h5_look(&r->file, part, &kind)); /* refuses links out of the file */
    MIMUS_TRY(open_role(r, part, MIMUS__H5_ACTIONS));
    MIMUS_TRY(check_width(r, MIMUS__H5_ACTIONS, part, &r->columns));
out:
    return status;
}

/* Raise `largest` (columns) to a part's labels. */
static mimus_status find_largest(reading *r, int64_t *largest) {
    mimus_status status = MIMUS_OK;
    mimus__h5_rows *actions = &r->of[MIMUS__H5_ACTIONS];
    for (uint64_t row = 0; row < actions->rows; row++) {
        MIMUS_TRY(next_labels(r, actions));
        for (size_t c = 0; c < r->columns; c++)
            largest[c] = r->row[c] > largest[c] ? r->row[c] : largest[c];
    }
out:
    return status;
}

static mimus_status observe_part(reading *r) {
    mimus_status status = MIMUS_OK;
    mimus__h5_rows *actions = &r->of[MIMUS__H5_ACTIONS];
    for (uint64_t row = 0; row < actions->rows; row++) {
        const void *numbers = NULL;
        MIMUS_TRY(mimus__h5_rows_next(actions, &numbers));
        MIMUS_TRY(r->numbers->observe(r->numbers, numbers));
    }
out:
    return status;
}

/* A pass over the actions of all parts: count the samples; find the largest labels, unless that is
 * NULL; show the numbers to the bins, when asked to. */
static mimus_status survey(reading *r, int64_t *largest, bool observe) {
    mimus_status status = MIMUS_OK;
    mimus__phase phase = mimus__phase_begin(r->watch, observe ? "scan" : "load", 0);
    r->samples = 0;
    for (size_t i = 0; i < r->layout.parts.count; i++) {
        MIMUS_TRY(open_actions(r, r->layout.parts.name[i]));
        r->samples += r->of[MIMUS__H5_ACTIONS].rows;
        if (largest != NULL)
            MIMUS_TRY(find_largest(r, largest));
        if (observe)
            MIMUS_TRY(observe_part(r));
        MIMUS_TRY(mimus__phase_step(&phase, r->samples));
    }
    if (r->samples == 0)
        status = mimus__fail(MIMUS_ERR_DATA, "%s: no samples: %zu episode%s without an action",
                             r->file.path, r->layout.parts.count,
                             mimus__text_plural(r->layout.parts.count));
out:
    close_part(r);
    return status;
}

/* ------------------------------------------------------------------- heads */

/* "arm[2]" for the third of several elements of a dataset of that name; NULL for no name. */
static mimus_status element_name(char **out, const char *name, size_t width, size_t element) {
    *out = NULL;
    if (name == NULL)
        return MIMUS_OK;
    return width > 1 ? mimus__text_format(out, "%s[%zu]", name, element)
                     : mimus__text_copy(out, name);
}

static mimus_status name_elements(char ***out, const reading *r, mimus__h5_role role) {
    mimus_status status = MIMUS_OK;
    const mimus__h5_rows *rows = &r->of[role];
    MIMUS_TRY(mimus__alloc(out, rows->width, sizeof **out));
    for (size_t i = 0, e = 0; i < rows->columns; i++) {
        const char *name = mimus__h5_layout_name(&r->layout, role, i);
        for (size_t k = 0; k < rows->column[i].width; k++, e++)
            MIMUS_TRY(element_name(&(*out)[e], name, rows->column[i].width, k));
    }
out:
    return status;
}

/* The names of the columns of actions, as the option heads or the file has them, for their bins. */
static mimus_status open_bins(reading *r) {
    mimus_status status = MIMUS_OK;
    const char **names = NULL;
    if (r->bins == NULL && r->numbers == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&names, r->columns, sizeof *names));
    for (uint32_t c = 0; c < r->columns; c++)
        names[c] =
            c < r->head_count && r->heads[c].name != NULL ? r->heads[c].name : r->column_names[c];
    const mimus__action_columns columns = {.where = r->of[MIMUS__H5_ACTIONS].column[0].where,
                                           .count = (uint32_t)r->columns,
                                           .names = names};
    MIMUS_TRY(r->numbers != NULL ? r->numbers->open(r->numbers, &columns)
                                 : mimus__bins_open(r->bins, &columns));
out:
    free(names);
    return status;
}

/* What is known of the columns without their data: names, the option heads, which become bins. The
 * actions of the first part are open. */
static mimus_status state_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    const char *stated = mimus__reader_option_value(r->options, "heads");
    MIMUS_TRY(mimus__alloc(&r->start, r->columns, sizeof *r->start));
    MIMUS_TRY(mimus__alloc(&r->row, r->columns, sizeof *r->row));
    MIMUS_TRY(name_elements(&r->column_names, r, MIMUS__H5_ACTIONS));
    if (stated != NULL)
        status = mimus__heads_parse(&r->heads, &r->head_count, stated);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", r->file.path);
        goto out;
    }
    MIMUS_TRY(open_bins(r));
out:
    return status;
}

static bool schema_fits(const reading *r) {
    return mimus__kept_fits(r->kept, r->senses, r->columns, r->mask_width);
}

/* Actions (columns) by what the file says, with the numbers they begin at; 0 where it says nothing.
 * False when that is so anywhere. */
static bool sizes_of_file(reading *r, uint32_t *actions) {
    const mimus__h5_rows *rows = &r->of[MIMUS__H5_ACTIONS];
    bool all = true, kept = schema_fits(r);
    for (size_t i = 0, c = 0; i < rows->columns; i++) {
        const json_t *space = space_of(r->action_space, r, MIMUS__H5_ACTIONS, i);
        for (size_t k = 0; k < rows->column[i].width; k++, c++) {
            bool known = mimus__bins_has(r->bins, (uint32_t)c) ||
                         mimus__gym_choice(space, k, &actions[c], &r->start[c]);
            if (kept)
                actions[c] = r->kept->head[c].actions;
            all = all && (known || kept);
        }
    }
    return all;
}

/* Raise the sizes that are not known (0) to what the labels are. */
static mimus_status heads_of_data(reading *r, const uint32_t *actions) {
    mimus_status status = MIMUS_OK;
    int64_t *largest = NULL;
    MIMUS_TRY(mimus__alloc(&largest, r->columns, sizeof *largest));
    for (size_t c = 0; c < r->columns; c++)
        largest[c] = -1;
    MIMUS_TRY(survey(r, largest, false));
    for (size_t c = 0; c < r->columns; c++)
        largest[c] = actions[c] > 0 ? (int64_t)actions[c] - 1 : largest[c];
    status = mimus__heads_infer(&r->heads, largest, (uint32_t)r->columns, r->mask_width);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", r->file.path);
        goto out;
    }
    r->head_count = (uint32_t)r->columns;
    r->inferred = true;
    mimus__heads_tell(r->heads, r->head_count, r->file.path, r->watch);
    MIMUS_TRY(open_part(r, r->layout.parts.name[0])); /* where it was */
out:
    free(largest);
    return status;
}

static mimus_status heads_of_sizes(reading *r, const uint32_t *actions) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&r->heads, r->columns, sizeof *r->heads));
    r->head_count = (uint32_t)r->columns;
    for (size_t c = 0; c < r->columns; c++)
        r->heads[c].actions = actions[c];
out:
    return status;
}

static mimus_status finish_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    for (uint32_t h = 0; h < r->head_count && h < r->columns; h++) {
        if (r->heads[h].name == NULL)
            MIMUS_TRY(mimus__text_copy((char **)&r->heads[h].name, r->column_names[h]));
        mimus__bins_head(r->bins, h, &r->heads[h]);
    }
    status = mimus__heads_fit(r->heads, r->head_count, r->columns, r->mask_width);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", r->file.path);
out:
    return status;
}

/* Heads as the user says, as the file says, or as the labels have it. The first part is open. */
static mimus_status find_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    uint32_t *actions = NULL;
    MIMUS_TRY(mimus__alloc(&actions, r->columns, sizeof *actions));
    MIMUS_TRY(state_heads(r));
    bool known = sizes_of_file(r, actions);
    for (uint32_t c = 0; c < r->columns; c++) {
        mimus_head bins = {0};
        mimus__bins_head(r->bins, c, &bins);
        actions[c] = mimus__bins_has(r->bins, c) ? bins.actions : actions[c];
    }
    if (r->heads == NULL && !known) { /* then whoever judges does */
        MIMUS_TRY(mimus__heads_like(&r->heads, r->like, (uint32_t)r->columns));
        r->head_count = r->heads != NULL ? (uint32_t)r->columns : 0;
    }
    if (r->heads == NULL)
        MIMUS_TRY(known ? heads_of_sizes(r, actions) : heads_of_data(r, actions));
    MIMUS_TRY(finish_heads(r));
out:
    free(actions);
    return status;
}

/* ------------------------------------------------------------------- names */

static mimus_status name_senses(reading *r) {
    if (mimus__h5_layout_name(&r->layout, MIMUS__H5_SENSES, 0) == NULL)
        return MIMUS_OK; /* one dataset, whose elements have no names */
    return name_elements(&r->sense_names, r, MIMUS__H5_SENSES);
}

/* ----------------------------------------------------------------- reading */

static mimus_status begin(const reading *r, mimus__sink *sink) {
    mimus_schema schema = {
        .senses = (uint32_t)r->senses,
        .sense_names = (const char *const *)r->sense_names,
        .heads = r->head_count,
        .head = r->heads,
        .masks = has(r, MIMUS__H5_MASKS),
        .weights = has(r, MIMUS__H5_WEIGHTS),
    };
    if (schema_fits(r)) {
        schema.sense_names = r->kept->sense_names;
        if (mimus__reader_option_value(r->options, "heads") == NULL && r->bins == NULL)
            schema.head = r->kept->head;
    }
    return mimus__sink_begin_inferred(sink, &schema, r->inferred);
}

static mimus_status read_sample(reading *r, mimus__sink *sink) {
    mimus_status status = MIMUS_OK;
    const void *senses = NULL, *legal = NULL, *weight = NULL;
    MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_SENSES], &senses));
    MIMUS_TRY(next_labels(r, &r->of[MIMUS__H5_ACTIONS]));
    if (has(r, MIMUS__H5_MASKS))
        MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_MASKS], &legal));
    if (has(r, MIMUS__H5_WEIGHTS))
        MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_WEIGHTS], &weight));
    for (uint32_t h = 0; h < r->head_count; h++)
        r->labels[h] = mimus__heads_label(r->row[h]);
    MIMUS_TRY(mimus__sink_append(sink, senses, r->labels, legal,
                                 weight != NULL ? *(const float *)weight : 1.0F));
out:
    return status;
}

/* Before a sample of a flat file: whether an episode begins with it. `*episode` is the number of
 * the one before, and becomes this one's. */
static mimus_status begins_episode(reading *r, uint64_t row, int64_t *episode, bool *begins) {
    mimus_status status = MIMUS_OK;
    const void *value = NULL;
    *begins = false;
    if (has(r, MIMUS__H5_STARTS)) {
        MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_STARTS], &value));
        *begins = row > 0 && *(const uint8_t *)value != 0;
    } else if (has(r, MIMUS__H5_EPISODES)) {
        MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_EPISODES], &value));
        *begins = row > 0 && *(const int64_t *)value != *episode;
        *episode = *(const int64_t *)value;
    }
out:
    return status;
}

static mimus_status ends_episode(reading *r, bool *ends) {
    mimus_status status = MIMUS_OK;
    const mimus__h5_rows *dones = &r->of[MIMUS__H5_DONES];
    const void *value = NULL;
    *ends = false;
    if (!has(r, MIMUS__H5_DONES))
        return MIMUS_OK;
    MIMUS_TRY(mimus__h5_rows_next(&r->of[MIMUS__H5_DONES], &value));
    for (size_t i = 0; i < dones->width; i++)
        *ends = *ends || ((const uint8_t *)value)[i] != 0;
out:
    return status;
}

static mimus_status read_part(reading *r, mimus__sink *sink, mimus__phase *phase, uint64_t before) {
    enum { STEP = 1024 }; /* samples between two looks at the clock */
    mimus_status status = MIMUS_OK;
    int64_t episode = 0;
    for (uint64_t row = 0; row < r->part_samples; row++) {
        bool begins = false, ends = false;
        MIMUS_TRY(begins_episode(r, row, &episode, &begins));
        if (begins)
            MIMUS_TRY(mimus__sink_end_episode(sink));
        MIMUS_TRY(read_sample(r, sink));
        MIMUS_TRY(ends_episode(r, &ends));
        if (ends)
            MIMUS_TRY(mimus__sink_end_episode(sink));
        if ((before + row) % STEP == STEP - 1)
            MIMUS_TRY(mimus__phase_step(phase, before + row + 1));
    }
    if (r->part_samples > 0)
        MIMUS_TRY(mimus__sink_end_episode(sink));
out:
    return status;
}

static mimus_status read_parts(reading *r, mimus__sink *sink) {
    mimus_status status = MIMUS_OK;
    uint64_t done = 0;
    mimus__phase phase = mimus__phase_begin(r->watch, "load", r->samples);
    MIMUS_TRY(mimus__alloc(&r->labels, r->head_count, sizeof *r->labels));
    for (size_t i = 0; i < r->layout.parts.count; i++) {
        MIMUS_TRY(open_part(r, r->layout.parts.name[i]));
        MIMUS_TRY(read_part(r, sink, &phase, done));
        done += r->part_samples;
        MIMUS_TRY(mimus__phase_step(&phase, done));
    }
out:
    return status;
}

static mimus_status reading_open(reading *r, const char *path) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__h5_open(&r->file, path));
    MIMUS_TRY(mimus__h5_layout_find(&r->layout, &r->file, r->options));
    MIMUS_TRY(find_spaces(r));
    MIMUS_TRY(find_schema(r));
    MIMUS_TRY(open_part(r, r->layout.parts.name[0]));
    MIMUS_TRY(name_senses(r));
    MIMUS_TRY(find_heads(r));
    if (r->samples == 0)
        MIMUS_TRY(survey(r, NULL, false));
    if (!knows_episodes(r))
        mimus__watch_message(r->watch,
                             "%s: no dataset says where episodes begin: all samples are one", path);
out:
    return status;
}

mimus_status mimus__h5_read_here(const char *path, const char *const *options, mimus__sink *sink,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.options = options, .bins = sink->bins, .like = sink->like, .watch = watch};
    MIMUS_TRY(reading_open(&r, path));
    MIMUS_TRY(begin(&r, sink));
    MIMUS_TRY(read_parts(&r, sink));
out:
    reading_close(&r);
    return status;
}

static mimus_status observe_here(const char *path, const char *const *options,
                                 mimus__apart_numbers *to, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.options = options, .numbers = to, .watch = watch};
    MIMUS_TRY(mimus__h5_open(&r.file, path));
    MIMUS_TRY(mimus__h5_layout_find(&r.layout, &r.file, options));
    MIMUS_TRY(find_spaces(&r));
    MIMUS_TRY(open_actions(&r, r.layout.parts.name[0]));
    MIMUS_TRY(state_heads(&r));
    MIMUS_TRY(survey(&r, NULL, true));
out:
    reading_close(&r);
    return status;
}

static mimus_status h5_read(const char *path, const char *const *options, mimus__sink *sink,
                            const mimus_watch *watch) {
    return mimus__apart_read(mimus__h5_read_here, "libhdf5", path, options, sink, watch);
}

static mimus_status h5_observe(const char *path, const char *const *options, mimus__bins *bins,
                               const mimus_watch *watch) {
    return mimus__apart_observe(observe_here, "libhdf5", path, options, bins, watch);
}

/* The signature may stand behind a user block, but hardly ever does. */
static bool h5_probe(const char *path, const uint8_t *head, size_t bytes) {
    (void)path;
    return bytes >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

/* Minari's datasets are folders; the one of the data within is as good. */
static const char *const h5_inside[] = {"data/main_data.hdf5", "main_data.hdf5", NULL};

const mimus__reader mimus__h5_reader = {
    .name = "hdf5",
    .label = "HDF5: Minari, D4RL, robomimic",
    .options = h5_options,
    .inside = h5_inside,
    .probe = h5_probe,
    .read = h5_read,
    .observe = h5_observe,
};

/* A .npz is a zip of .npy members, one array each. All members that are needed are read in step,
 * a buffer of rows each, so that memory does not grow with the file.
 *
 * The layouts understood are those of Stable-Baselines (episode_starts), imitation (indices split
 * the actions; every trajectory has one observation more than actions) and D4RL (terminals,
 * timeouts); any other is a matter of naming the arrays. */
#include "npz.h"

#include "alloc.h"
#include "heads.h"
#include "kept.h"
#include "npz_archive.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- roles */

/* What an array is for. The dones are several columns; each other role is one. */
typedef enum role_id {
    SENSES,
    ACTIONS,
    MASKS,
    WEIGHTS,
    STARTS,
    INDICES,
    COLUMNS,
    DONES = COLUMNS,
    ROLES,
} role_id;

enum { DEFAULTS = 5 };

typedef struct role_info {
    const char *key;
    const char *defaults[DEFAULTS + 1]; /* array names, in the order of preference */
    mimus__npy_form kind;
    uint64_t limit; /* elements of a row */
} role_info;

static const role_info roles[ROLES] = {
    [SENSES] = {"senses",
                {"obs", "observations", "senses", "states"},
                MIMUS__NPY_TO_FLOATS,
                MIMUS__MAX_SENSES},
    [ACTIONS] = {"actions", {"actions", "acts"}, MIMUS__NPY_TO_LABELS, MIMUS__MAX_HEADS},
    [MASKS] = {"masks",
               {"action_masks", "action_mask"},
               MIMUS__NPY_TO_FLAGS,
               MIMUS__MAX_TOTAL_ACTIONS},
    [WEIGHTS] = {"weights", {"weights"}, MIMUS__NPY_TO_FLOATS, 1},
    [STARTS] = {"starts", {"episode_starts"}, MIMUS__NPY_TO_FLAGS, 1},
    [INDICES] = {"indices", {"indices"}, MIMUS__NPY_TO_LABELS, 1},
    [DONES] = {"dones",
               {"dones", "terminals", "timeouts", "terminations", "truncations"},
               MIMUS__NPY_TO_FLAGS,
               1},
};

static const mimus__reader_option npz_options[] = {
    {"senses", "array (N, ...), flattened; default: obs, observations, senses or states"},
    {"actions", "array of labels (N,) or (N, H), -1 for none; default: actions or acts"},
    {"heads", "actions of each head: move:5,shoot:2 or 5,2; default: the largest label + 1"},
    {"masks", "array (N, A), not 0 where legal; default: action_masks or action_mask; empty: none"},
    MIMUS__BINS_OPTION,
    {"weights", "array (N,) of sample weights; default: weights; empty: none"},
    {"starts", "array (N,), not 0 where an episode begins; default: episode_starts; empty: none"},
    {"indices", "array of the rows where episodes begin, without 0; default: indices; empty: none"},
    {"dones", "arrays (N,), not 0 at an episode's end; default: all there are of dones, terminals, "
              "timeouts, terminations, truncations; empty: none"},
    {NULL, NULL},
};

/* Everything that the reading of one file holds. */
typedef struct reading {
    mimus__archive archive;
    const char *const *options;
    mimus__bins *bins; /* borrowed, or NULL: then the actions are read as labels, else as numbers */
    const mimus_schema *like; /* that the samples are judged by, or NULL */
    const mimus_watch *watch;
    mimus__column column[COLUMNS]; /* one that is not there is not open */
    mimus__column dones[DEFAULTS];
    size_t done_count;
    uint64_t samples;
    uint64_t extra;      /* rows of senses behind the last sample of each episode, 0 or 1 */
    uint64_t next_start; /* with indices: where the next episode begins */
    mimus_head *heads;
    uint32_t head_count;
    bool inferred;      /* the heads */
    mimus_schema *kept; /* what mimus wrote into it, or NULL */
} reading;

static void reading_close(reading *r) {
    for (size_t i = 0; i < COLUMNS; i++)
        mimus__column_close(&r->column[i]);
    for (size_t i = 0; i < r->done_count; i++)
        mimus__column_close(&r->dones[i]);
    mimus__heads_free(r->heads, r->head_count);
    mimus__schema_free(r->kept);
    mimus__archive_close(&r->archive);
}

static mimus__npy_form kind_of(const reading *r, role_id role) {
    return role == ACTIONS && r->bins != NULL ? MIMUS__NPY_TO_FLOATS : roles[role].kind;
}

static bool has(const reading *r, role_id role) {
    return mimus__column_is_open(&r->column[role]);
}

static const char *option(const reading *r, role_id role) {
    return mimus__reader_option_value(r->options, roles[role].key);
}

/* Open the array of a role under the name that the user gave. */
static mimus_status open_named(const reading *r, role_id role, const char *array,
                               mimus__column *out) {
    char contents[600];
    if (mimus__archive_has(&r->archive, array))
        return mimus__column_open(out, &r->archive, array, kind_of(r, role), roles[role].limit);
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option %s: no array \"%s\"; there is %s",
                       r->archive.path, roles[role].key, array,
                       mimus__archive_contents(&r->archive, contents, sizeof contents));
}

/* Open the array of a role other than DONES, if there is one. */
static mimus_status open_role(reading *r, role_id role) {
    const char *named = option(r, role);
    if (named != NULL)
        return *named != '\0' ? open_named(r, role, named, &r->column[role]) : MIMUS_OK;
    for (const char *const *array = roles[role].defaults; *array != NULL; array++) {
        if (mimus__archive_has(&r->archive, *array))
            return open_named(r, role, *array, &r->column[role]);
    }
    return MIMUS_OK;
}

static mimus_status require_role(reading *r, role_id role) {
    mimus_status status = MIMUS_OK;
    char contents[600], wanted[160];
    size_t length = 0;
    MIMUS_TRY(open_role(r, role));
    if (has(r, role))
        goto out;
    for (const char *const *array = roles[role].defaults; *array != NULL; array++)
        length += (size_t)snprintf(wanted + length, sizeof wanted - length, "%s%s",
                                   length > 0 ? ", " : "", *array);
    status = mimus__fail(MIMUS_ERR_DATA,
                         "%s: which array holds the %s? The option %s names it; expected %s, "
                         "found %s",
                         r->archive.path, roles[role].key, roles[role].key, wanted,
                         mimus__archive_contents(&r->archive, contents, sizeof contents));
out:
    return status;
}

/* ------------------------------------------------------------------- heads */

/* The columns of actions, named as the option heads has it, open for their bins. */
static mimus_status open_bins(reading *r) {
    mimus_status status = MIMUS_OK;
    const mimus__column *actions = &r->column[ACTIONS];
    const char **names = NULL;
    if (r->bins == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&names, actions->width, sizeof *names));
    for (uint32_t h = 0; r->heads != NULL && h < r->head_count && h < actions->width; h++)
        names[h] = r->heads[h].name;
    const mimus__action_columns columns = {
        .where = actions->where, .count = (uint32_t)actions->width, .names = names};
    MIMUS_TRY(mimus__bins_open(r->bins, &columns));
out:
    free(names);
    return status;
}

/* A number of column `c` that bins are not for, as a label; a NaN is none of them. */
static mimus_status label_of(const mimus__column *actions, float number, uint32_t c,
                             int64_t *label) {
    if (number == floorf(number) && fabsf(number) < 0x1p31F) {
        *label = (int64_t)number;
        return MIMUS_OK;
    }
    return mimus__bins_refuse(
        "%s: %.9g in row %llu, column %u is not an integer", actions->where, (double)number,
        (unsigned long long)(actions->read - actions->held + actions->used - 1), c);
}

/* The next row's labels (H): of numbers, their bins. */
static mimus_status next_labels(const reading *r, mimus__column *actions, int64_t *labels) {
    mimus_status status = MIMUS_OK;
    const void *row = NULL;
    status = mimus__column_next(actions, &row);
    if (status == MIMUS_ERR_UNSUPPORTED)
        return mimus__bins_refuse("%s", mimus_last_error());
    MIMUS_TRY(status);
    if (r->bins == NULL) {
        memcpy(labels, row, actions->width * sizeof *labels);
        goto out;
    }
    for (uint32_t c = 0; c < actions->width; c++) {
        float number = ((const float *)row)[c];
        if (mimus__bins_has(r->bins, c))
            labels[c] = mimus__bins_label(r->bins, c, number);
        else
            MIMUS_TRY(label_of(actions, number, c, &labels[c]));
    }
out:
    return status;
}

/* The largest label of each column: a pass of its own over the actions. Bins know theirs. */
static mimus_status find_largest(const reading *r, int64_t *largest) {
    mimus_status status = MIMUS_OK;
    mimus__column actions = {0};
    int64_t *label = NULL;
    size_t width = r->column[ACTIONS].width;
    for (uint32_t h = 0; h < width; h++) {
        mimus_head bins = {0};
        mimus__bins_head(r->bins, h, &bins);
        largest[h] = (int64_t)bins.actions - 1;
    }
    MIMUS_TRY(mimus__alloc(&label, width, sizeof *label));
    MIMUS_TRY(mimus__column_open(&actions, &r->archive, r->column[ACTIONS].array,
                                 kind_of(r, ACTIONS), MIMUS__MAX_HEADS));
    for (uint64_t row = 0; row < actions.rows; row++) {
        MIMUS_TRY(next_labels(r, &actions, label));
        for (uint32_t h = 0; h < width; h++) {
            if (!mimus__bins_has(r->bins, h))
                largest[h] = label[h] > largest[h] ? label[h] : largest[h];
        }
    }
out:
    free(label);
    mimus__column_close(&actions);
    return status;
}

static void tell_sizes(const reading *r) {
    uint32_t binned = 0;
    for (uint32_t h = 0; h < r->head_count; h++)
        binned += mimus__bins_has(r->bins, h);
    if (binned < r->head_count)
        mimus__heads_tell(r->heads, r->head_count, r->archive.path, r->watch);
}

static mimus_status infer_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    const mimus__column *actions = &r->column[ACTIONS];
    int64_t *largest = NULL;
    MIMUS_TRY(mimus__alloc(&largest, actions->width, sizeof *largest));
    MIMUS_TRY(find_largest(r, largest));
    r->head_count = (uint32_t)actions->width;
    r->inferred = true;
    status = mimus__heads_infer(&r->heads, largest, r->head_count, r->column[MASKS].width);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", actions->where);
    else
        tell_sizes(r);
out:
    free(largest);
    return status;
}

/* What a recording was before mimus wrote it here. Its actions may be bins already: no bins are
 * made of these, unless that is asked for. */
static mimus_status find_schema(reading *r) {
    mimus_status status = MIMUS_OK;
    char *text = NULL, *where = NULL;
    MIMUS_TRY(mimus__archive_text(&r->archive, "schema.json", 32 << 20, &text));
    MIMUS_TRY(mimus__text_format(&where, "%s: schema.json", r->archive.path));
    if (text != NULL)
        MIMUS_TRY(mimus__kept_parse(&r->kept, text, where));
    if (mimus__kept_has_bins(r->kept) && mimus__reader_option_value(r->options, "bin") == NULL)
        r->bins = NULL;
out:
    free(text);
    free(where);
    return status;
}

static bool schema_fits(const reading *r) {
    return mimus__kept_fits(r->kept, r->column[SENSES].width, r->column[ACTIONS].width,
                            r->column[MASKS].width);
}

/* What the option heads says, or who judges, and the bins of the columns, which heads may name. */
static mimus_status state_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    const char *stated = mimus__reader_option_value(r->options, "heads");
    if (stated != NULL)
        status = mimus__heads_parse(&r->heads, &r->head_count, stated);
    if (status != MIMUS_OK)
        return mimus__fail_prefix(status, "%s", r->archive.path);
    if (stated == NULL) {
        r->head_count = (uint32_t)r->column[ACTIONS].width;
        MIMUS_TRY(mimus__heads_like(&r->heads, r->like, r->head_count));
    }
    MIMUS_TRY(open_bins(r));
out:
    return status;
}

/* With bins, a head has as many actions as there are, whatever was stated. */
static mimus_status find_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(state_heads(r));
    if (r->heads == NULL && schema_fits(r)) {
        MIMUS_TRY(mimus__kept_heads(&r->heads, r->kept));
        r->head_count = r->kept->heads;
    }
    if (r->heads == NULL)
        MIMUS_TRY(infer_heads(r));
    for (uint32_t h = 0; h < r->head_count; h++)
        mimus__bins_head(r->bins, h, &r->heads[h]);
    status = mimus__heads_fit(r->heads, r->head_count, r->column[ACTIONS].width,
                              r->column[MASKS].width); /* 0 when there are none */
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", r->archive.path);
out:
    return status;
}

/* ---------------------------------------------------------------- episodes */

static mimus_status open_done(reading *r, const char *array) {
    mimus_status status = open_named(r, DONES, array, &r->dones[r->done_count]);
    r->done_count += status == MIMUS_OK;
    return status;
}

static mimus_status open_dones(reading *r) {
    mimus_status status = MIMUS_OK;
    char *names = NULL;
    MIMUS_TRY(mimus__text_copy(&names, option(r, DONES)));
    for (char *name = names; name != NULL;) {
        char *comma = strchr(name, ',');
        if (comma != NULL)
            *comma++ = '\0';
        if (r->done_count == DEFAULTS)
            MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option dones: more than %d arrays",
                                  r->archive.path, DEFAULTS));
        MIMUS_TRY(open_done(r, name));
        name = comma;
    }
    for (size_t i = 0; names == NULL && i < DEFAULTS; i++) {
        if (mimus__archive_has(&r->archive, roles[DONES].defaults[i]))
            MIMUS_TRY(open_done(r, roles[DONES].defaults[i]));
    }
out:
    free(names);
    return status;
}

static bool is_given(const reading *r, role_id role) {
    return option(r, role) != NULL && *option(r, role) != '\0';
}

static bool is_switched_off(const reading *r, role_id role) {
    return option(r, role) != NULL && *option(r, role) == '\0';
}

/* Open what says where episodes begin: what the user names, else the first that is there. */
static mimus_status open_episodes(reading *r) {
    mimus_status status = MIMUS_OK;
    static const role_id kinds[] = {STARTS, INDICES, DONES};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    int given = 0;
    bool found = false;
    for (int k = 0; k < KINDS; k++)
        given += is_given(r, kinds[k]);
    if (given > 1)
        MIMUS_TRY(mimus__fail(
            MIMUS_ERR_ARGUMENT,
            "%s: the options starts, indices and dones all say where episodes begin; give one",
            r->archive.path));
    for (int k = 0; k < KINDS && !found; k++) {
        if (is_switched_off(r, kinds[k]) || (given > 0 && !is_given(r, kinds[k])))
            continue;
        MIMUS_TRY(kinds[k] == DONES ? open_dones(r) : open_role(r, kinds[k]));
        found = kinds[k] == DONES ? r->done_count > 0 : has(r, kinds[k]);
    }
    if (!found)
        mimus__watch_message(r->watch,
                             "%s: no array says where episodes begin: all samples are one",
                             r->archive.path);
out:
    return status;
}

/* With indices: where the next episode begins, the present one having begun at `row`. */
static mimus_status advance_start(reading *r, uint64_t row) {
    mimus_status status = MIMUS_OK;
    mimus__column *indices = &r->column[INDICES];
    const void *next = NULL;
    r->next_start = r->samples;
    if (!mimus__column_has_next(indices))
        goto out;
    MIMUS_TRY(mimus__column_next(indices, &next));
    int64_t start = *(const int64_t *)next;
    if (start <= (int64_t)row || start >= (int64_t)r->samples) {
        status = mimus__fail(MIMUS_ERR_DATA,
                             "%s: an episode begins at %lld; expected one above %llu and below the "
                             "%llu actions",
                             indices->where, (long long)start, (unsigned long long)row,
                             (unsigned long long)r->samples);
        goto out;
    }
    r->next_start = (uint64_t)start;
out:
    return status;
}

static mimus_status end_episode(reading *r, mimus__sink *sink) {
    mimus_status status = MIMUS_OK;
    const void *unused;
    if (r->extra > 0) /* what the player saw after the last action */
        MIMUS_TRY(mimus__column_next(&r->column[SENSES], &unused));
    MIMUS_TRY(mimus__sink_end_episode(sink));
out:
    return status;
}

/* Before the sample of `row`: whether another episode begins. */
static mimus_status begins_episode(reading *r, uint64_t row, bool *begins) {
    mimus_status status = MIMUS_OK;
    const void *flag = NULL;
    *begins = false;
    if (has(r, STARTS)) {
        MIMUS_TRY(mimus__column_next(&r->column[STARTS], &flag));
        *begins = row > 0 && *(const uint8_t *)flag != 0;
    } else if (has(r, INDICES) && row == r->next_start) {
        MIMUS_TRY(advance_start(r, row));
        *begins = true;
    }
out:
    return status;
}

/* After a sample: whether it was the last of its episode. */
static mimus_status ends_episode(reading *r, bool *ends) {
    mimus_status status = MIMUS_OK;
    *ends = false;
    for (size_t i = 0; i < r->done_count; i++) {
        const void *flag = NULL;
        MIMUS_TRY(mimus__column_next(&r->dones[i], &flag));
        *ends = *ends || *(const uint8_t *)flag != 0;
    }
out:
    return status;
}

/* -------------------------------------------------------------------- read */

static mimus_status check_rows(const mimus__column *column, uint64_t samples) {
    if (!mimus__column_is_open(column) || column->rows == samples)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA, "%s: %llu rows for %llu actions", column->where,
                       (unsigned long long)column->rows, (unsigned long long)samples);
}

/* Trajectories as imitation keeps them have one row of senses more than actions, each. */
static mimus_status check_senses(reading *r) {
    const mimus__column *senses = &r->column[SENSES];
    bool countable = !has(r, STARTS) && r->done_count == 0;
    r->extra = countable && senses->rows == r->samples + r->column[INDICES].rows + 1;
    return r->extra > 0 ? MIMUS_OK : check_rows(senses, r->samples);
}

static mimus_status reading_open(reading *r, const char *path) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__archive_open(&r->archive, path));
    MIMUS_TRY(find_schema(r));
    MIMUS_TRY(require_role(r, SENSES));
    MIMUS_TRY(require_role(r, ACTIONS));
    MIMUS_TRY(open_role(r, MASKS));
    MIMUS_TRY(open_role(r, WEIGHTS));
    MIMUS_TRY(open_episodes(r));
    r->samples = r->column[ACTIONS].rows;
    if (r->samples == 0)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA, "%s: no rows", r->column[ACTIONS].where));
    MIMUS_TRY(check_senses(r));
    MIMUS_TRY(check_rows(&r->column[MASKS], r->samples));
    MIMUS_TRY(check_rows(&r->column[WEIGHTS], r->samples));
    MIMUS_TRY(check_rows(&r->column[STARTS], r->samples));
    for (size_t i = 0; i < r->done_count; i++)
        MIMUS_TRY(check_rows(&r->dones[i], r->samples));
    MIMUS_TRY(find_heads(r));
out:
    return status;
}

static mimus_status begin(const reading *r, mimus__sink *sink) {
    mimus_schema schema = {
        .senses = (uint32_t)r->column[SENSES].width,
        .heads = r->head_count,
        .head = r->heads,
        .masks = has(r, MASKS),
        .weights = has(r, WEIGHTS),
    };
    if (schema_fits(r)) {
        schema.sense_names = r->kept->sense_names;
        if (mimus__reader_option_value(r->options, "heads") == NULL && r->bins == NULL)
            schema.head = r->kept->head;
    }
    return mimus__sink_begin_inferred(sink, &schema, r->inferred);
}

static mimus_status read_sample(reading *r, mimus__sink *sink, int64_t *labels, uint16_t *actions) {
    mimus_status status = MIMUS_OK;
    const void *senses = NULL, *legal = NULL, *weight = NULL;
    MIMUS_TRY(mimus__column_next(&r->column[SENSES], &senses));
    MIMUS_TRY(next_labels(r, &r->column[ACTIONS], labels));
    if (has(r, MASKS))
        MIMUS_TRY(mimus__column_next(&r->column[MASKS], &legal));
    if (has(r, WEIGHTS))
        MIMUS_TRY(mimus__column_next(&r->column[WEIGHTS], &weight));
    for (uint32_t h = 0; h < r->head_count; h++)
        actions[h] = mimus__heads_label(labels[h]);
    MIMUS_TRY(mimus__sink_append(sink, senses, actions, legal,
                                 weight != NULL ? *(const float *)weight : 1.0F));
out:
    return status;
}

static mimus_status read_samples(reading *r, mimus__sink *sink) {
    enum { STEP = 1024 }; /* samples between two looks at the clock */
    mimus_status status = MIMUS_OK;
    uint16_t *actions = NULL;
    int64_t *labels = NULL;
    bool begins = false, ends = false;
    mimus__phase phase = mimus__phase_begin(r->watch, "load", r->samples);
    MIMUS_TRY(mimus__alloc(&actions, r->head_count, sizeof *actions));
    MIMUS_TRY(mimus__alloc(&labels, r->head_count, sizeof *labels));
    if (has(r, INDICES))
        MIMUS_TRY(advance_start(r, 0));
    for (uint64_t row = 0; row < r->samples; row++) {
        MIMUS_TRY(begins_episode(r, row, &begins));
        if (begins)
            MIMUS_TRY(end_episode(r, sink));
        MIMUS_TRY(read_sample(r, sink, labels, actions));
        MIMUS_TRY(ends_episode(r, &ends));
        if (ends)
            MIMUS_TRY(end_episode(r, sink));
        if (row % STEP == STEP - 1)
            MIMUS_TRY(mimus__phase_step(&phase, row + 1));
    }
    if (!ends)
        MIMUS_TRY(end_episode(r, sink));
    MIMUS_TRY(mimus__phase_step(&phase, r->samples));
out:
    free(actions);
    free(labels);
    return status;
}

static mimus_status finish(reading *r) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (has(r, (role_id)i))
            MIMUS_TRY(mimus__column_finish(&r->column[i]));
    }
    for (size_t i = 0; i < r->done_count; i++)
        MIMUS_TRY(mimus__column_finish(&r->dones[i]));
out:
    return status;
}

static mimus_status npz_read(const char *path, const char *const *options, mimus__sink *sink,
                             const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.options = options, .bins = sink->bins, .like = sink->like, .watch = watch};
    MIMUS_TRY(reading_open(&r, path));
    MIMUS_TRY(begin(&r, sink));
    MIMUS_TRY(read_samples(&r, sink));
    MIMUS_TRY(finish(&r));
out:
    reading_close(&r);
    return status;
}

static mimus_status npz_observe(const char *path, const char *const *options, mimus__bins *bins,
                                const mimus_watch *watch) {
    enum { STEP = 1024 };
    mimus_status status = MIMUS_OK;
    reading r = {.options = options, .bins = bins, .watch = watch};
    mimus__column *actions = &r.column[ACTIONS];
    MIMUS_TRY(mimus__archive_open(&r.archive, path));
    MIMUS_TRY(require_role(&r, ACTIONS));
    MIMUS_TRY(state_heads(&r));
    mimus__phase phase = mimus__phase_begin(watch, "scan", actions->rows);
    for (uint64_t row = 0; row < actions->rows; row++) {
        const void *numbers = NULL;
        MIMUS_TRY(mimus__column_next(actions, &numbers));
        MIMUS_TRY(mimus__bins_observe(bins, numbers));
        if (row % STEP == STEP - 1)
            MIMUS_TRY(mimus__phase_step(&phase, row + 1));
    }
    MIMUS_TRY(mimus__phase_step(&phase, actions->rows));
out:
    reading_close(&r);
    return status;
}

/* A zip whose first member is an array, whatever the file is called; or any zip called .npz. */
static bool npz_probe(const char *path, const uint8_t *head, size_t bytes) {
    enum { NAME_LENGTH = 26, NAME = 30 }; /* of a zip's local file header */
    if (bytes < 4 || memcmp(head, "PK", 2) != 0)
        return false;
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".npz") == 0)
        return true;
    if (bytes < NAME)
        return false;
    size_t end = NAME + ((size_t)head[NAME_LENGTH] | (size_t)head[NAME_LENGTH + 1] << 8);
    return end <= bytes && end >= NAME + 4 && memcmp(head + end - 4, ".npy", 4) == 0;
}

const mimus__reader mimus__npz_reader = {
    .name = "npz",
    .label = "NumPy .npz",
    .options = npz_options,
    .probe = npz_probe,
    .read = npz_read,
    .observe = npz_observe,
};

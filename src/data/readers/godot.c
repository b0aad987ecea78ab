/* Godot RL Agents records trajectories: [[[obs, ...], [act, ...]], ...], a bare array or, as
 * "gnrl_v1", the member demo_trajectories of an object that says in action_space what the actions
 * are. A trajectory has one observation more than actions, which nothing was done on. An act is an
 * array of numbers: one for a discrete action, as many as its size for a continuous one.
 *
 * The file is read a trajectory at a time, two or three times over: sizes first, then the bins of
 * continuous actions, then the samples. */
#include "godot.h"

#include "alloc.h"
#include "heads.h"
#include "json_stream.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mimus__reader_option godot_options[] = {
    {"heads", "actions of each head: move:5,shoot:hold|fire; default: what action_space says, else "
              "the largest label + 1"},
    MIMUS__BINS_OPTION,
    {NULL, NULL},
};

/* A number of each act, which becomes a head. */
typedef struct column {
    int64_t largest;     /* label; -1: none */
    double fraction;     /* the first number that is no integer, */
    uint64_t trajectory; /* which is there, */
    bool has_fraction;   /* if there is one */
} column;

/* What action_space says of one. */
typedef struct space {
    char *name;
    uint32_t actions; /* 0: continuous */
} space;

typedef struct reading {
    const char *path;
    const char *const *options;
    mimus__bins *bins;        /* borrowed, or NULL */
    const mimus_schema *like; /* that the samples are judged by, or NULL */
    const mimus_watch *watch;
    mimus__json_stream stream;
    uint64_t trajectory; /* the present one */
    column *column;      /* (columns) */
    uint32_t columns;    /* numbers of an act; 0: not known yet */
    space *space;        /* (spaces), as many as columns, or none */
    uint32_t spaces;
    size_t space_capacity;
    uint32_t senses; /* 0: not known yet */
    uint64_t samples;
    mimus_head *heads;
    uint32_t head_count;
    bool inferred; /* the heads, from the labels */
    /* of the present pass */
    mimus_status (*on_trajectory)(struct reading *r, const json_t *obs, const json_t *acts);
    mimus__sink *sink;
    mimus__phase phase;
    uint64_t done;
    float *row;        /* (senses), or (columns) */
    uint16_t *actions; /* (columns) */
} reading;

static void reading_close(reading *r) {
    mimus__json_stream_close(&r->stream);
    for (uint32_t c = 0; c < r->spaces; c++)
        free(r->space[c].name);
    free(r->space);
    free(r->column);
    mimus__heads_free(r->heads, r->head_count);
    free(r->row);
    free(r->actions);
}

/* ------------------------------------------------------------ trajectories */

static mimus_status bad(const reading *r, const char *what) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: trajectory %llu: %s", r->path,
                       (unsigned long long)r->trajectory, what);
}

/* [obs, acts], one more obs than acts (or as many, from other recorders). */
static mimus_status take_trajectory(reading *r, const json_t *value) {
    const json_t *obs = json_array_get(value, 0), *acts = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_array(obs) || !json_is_array(acts))
        return bad(r, "should be [observations, actions], two arrays");
    const size_t seen = json_array_size(obs), done = json_array_size(acts);
    if (seen != done + 1 && seen != done)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: trajectory %llu: %zu observations and %zu actions; expected one "
                           "observation more than actions",
                           r->path, (unsigned long long)r->trajectory, seen, done);
    return r->on_trajectory(r, obs, acts);
}

static mimus_status read_trajectories(reading *r) {
    mimus_status status = MIMUS_OK;
    json_t *value = NULL;
    bool more = false, ended = false;
    r->trajectory = 0;
    MIMUS_TRY(mimus__json_stream_expect(&r->stream, '['));
    MIMUS_TRY(mimus__json_stream_take(&r->stream, ']', &ended));
    while (!ended) {
        MIMUS_TRY(mimus__json_stream_value(&r->stream, &value));
        MIMUS_TRY(take_trajectory(r, value));
        json_decref(value);
        value = NULL;
        r->trajectory++;
        MIMUS_TRY(mimus__phase_step(&r->phase, r->done));
        MIMUS_TRY(mimus__json_stream_take(&r->stream, ',', &more));
        if (!more) {
            MIMUS_TRY(mimus__json_stream_expect(&r->stream, ']'));
            ended = true;
        }
    }
out:
    json_decref(value);
    return status;
}

/* ------------------------------------------------------------ action space */

static mimus_status add_space(reading *r, const char *name, uint32_t actions) {
    mimus_status status = MIMUS_OK;
    if (r->spaces == MIMUS__MAX_HEADS)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: action_space: more than %d numbers an action", r->path,
                           MIMUS__MAX_HEADS);
    MIMUS_TRY(mimus__grow(&r->space, &r->space_capacity, (size_t)r->spaces + 1, sizeof *r->space));
    space *added = &r->space[r->spaces++];
    added->actions = actions;
    MIMUS_TRY(mimus__text_copy(&added->name, name));
out:
    return status;
}

/* {"size": 5, "action_type": "discrete"}: a discrete action is one number below its size, a
 * continuous one has a number a dimension. */
static mimus_status add_action(reading *r, const char *name, const json_t *action) {
    mimus_status status = MIMUS_OK;
    char where[400], numbered[160];
    uint64_t size = 0;
    const char *kind = NULL;
    snprintf(where, sizeof where, "%s: action_space: %.100s", r->path, name);
    MIMUS_TRY(mimus__json_get_u64(action, "size", where, &size));
    MIMUS_TRY(mimus__json_get_string(action, "action_type", where, &kind));
    if (strcmp(kind, "discrete") == 0) {
        if (size < 2 || size > MIMUS__MAX_ACTIONS)
            return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: size %llu; a head has 2 to %d actions",
                               where, (unsigned long long)size, MIMUS__MAX_ACTIONS);
        return add_space(r, name, (uint32_t)size);
    }
    if (strcmp(kind, "continuous") != 0)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: action_type \"%.40s\": expected discrete or continuous", where,
                           kind);
    if (size == 1)
        return add_space(r, name, 0);
    for (uint64_t i = 0; i < size; i++) {
        snprintf(numbered, sizeof numbered, "%.100s_%llu", name, (unsigned long long)i);
        MIMUS_TRY(add_space(r, numbered, 0));
    }
out:
    return status;
}

static mimus_status read_space(reading *r) {
    mimus_status status = MIMUS_OK;
    json_t *value = NULL, *action;
    const char *name;
    MIMUS_TRY(mimus__json_stream_value(&r->stream, &value));
    if (r->spaces > 0) /* known from the pass before */
        goto out;
    if (!json_is_object(value))
        MIMUS_TRY(
            mimus__fail(MIMUS_ERR_FORMAT, "%s: \"action_space\" should be an object", r->path));
    json_object_foreach(value, name, action) MIMUS_TRY(add_action(r, name, action));
out:
    json_decref(value);
    return status;
}

/* -------------------------------------------------------------------- file */

static mimus_status check_version(const reading *r, const json_t *version) {
    const char *text = json_string_value(version);
    if (text != NULL && strcmp(text, "gnrl_v1") == 0)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: \"format_version\" is \"%.40s\"; \"gnrl_v1\" can be read", r->path,
                       text != NULL ? text : "(no text)");
}

static mimus_status read_member(reading *r, bool *found) {
    mimus_status status = MIMUS_OK;
    json_t *key = NULL, *value = NULL;
    MIMUS_TRY(mimus__json_stream_value(&r->stream, &key));
    MIMUS_TRY(mimus__json_stream_expect(&r->stream, ':'));
    const char *name = json_string_value(key);
    if (name != NULL && strcmp(name, "demo_trajectories") == 0 && !*found) {
        *found = true;
        MIMUS_TRY(read_trajectories(r));
    } else if (name != NULL && strcmp(name, "action_space") == 0) {
        MIMUS_TRY(read_space(r));
    } else if (name != NULL && strcmp(name, "format_version") == 0) {
        MIMUS_TRY(mimus__json_stream_value(&r->stream, &value));
        MIMUS_TRY(check_version(r, value));
    } else {
        MIMUS_TRY(mimus__json_stream_skip(&r->stream));
    }
out:
    json_decref(key);
    json_decref(value);
    return status;
}

static mimus_status read_object(reading *r) {
    mimus_status status = MIMUS_OK;
    bool found = false, more = true, empty = false;
    MIMUS_TRY(mimus__json_stream_expect(&r->stream, '{'));
    MIMUS_TRY(mimus__json_stream_take(&r->stream, '}', &empty));
    while (!empty && more) {
        MIMUS_TRY(read_member(r, &found));
        MIMUS_TRY(mimus__json_stream_take(&r->stream, ',', &more));
        if (!more)
            MIMUS_TRY(mimus__json_stream_expect(&r->stream, '}'));
    }
    if (!found)
        status = mimus__fail(MIMUS_ERR_FORMAT,
                             "%s: a JSON object without \"demo_trajectories\": expected what Godot "
                             "RL Agents records",
                             r->path);
out:
    return status;
}

/* One pass over the file, `on_trajectory` for each of its trajectories. */
static mimus_status read_file(reading *r, const char *phase, uint64_t total,
                              mimus_status (*on_trajectory)(reading *r, const json_t *obs,
                                                            const json_t *acts)) {
    mimus_status status = MIMUS_OK;
    char next = '\0';
    r->on_trajectory = on_trajectory;
    r->done = 0;
    r->phase = mimus__phase_begin(r->watch, phase, total);
    mimus__json_stream_close(&r->stream);
    MIMUS_TRY(mimus__json_stream_open(&r->stream, r->path));
    MIMUS_TRY(mimus__json_stream_peek(&r->stream, &next));
    MIMUS_TRY(next == '{' ? read_object(r) : read_trajectories(r));
    MIMUS_TRY(mimus__json_stream_peek(&r->stream, &next));
    MIMUS_TRY(mimus__phase_end(&r->phase, r->done));
    if (next != '\0')
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: byte %llu: goes on behind its end", r->path,
                             (unsigned long long)r->stream.offset);
out:
    return status;
}

/* ------------------------------------------------------------------- sizes */

static mimus_status row_fails(const reading *r, const char *what, size_t row, const json_t *array,
                              uint32_t wanted) {
    if (!json_is_array(array))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: trajectory %llu: %s %zu should be an array",
                           r->path, (unsigned long long)r->trajectory, what, row);
    return mimus__fail(MIMUS_ERR_DATA, "%s: trajectory %llu: %s %zu has %zu numbers; expected %u",
                       r->path, (unsigned long long)r->trajectory, what, row,
                       json_array_size(array), wanted);
}

/* A row of `count` numbers into `out`, which may be NULL: only looked at. */
static mimus_status read_row(const reading *r, const char *what, size_t row, const json_t *array,
                             uint32_t count, float *out) {
    if (json_array_size(array) != count)
        return row_fails(r, what, row, array, count);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_number(number))
            return mimus__fail(MIMUS_ERR_FORMAT,
                               "%s: trajectory %llu: element %u of %s %zu is no number", r->path,
                               (unsigned long long)r->trajectory, i, what, row);
        if (out != NULL)
            out[i] = (float)json_number_value(number);
    }
    return MIMUS_OK;
}

/* The widths, from the first trajectory with an action. */
static mimus_status find_widths(reading *r, const json_t *obs, const json_t *acts) {
    mimus_status status = MIMUS_OK;
    const json_t *first = json_array_get(obs, 0), *act = json_array_get(acts, 0);
    if (json_array_size(first) == 0 || json_array_size(first) > MIMUS__MAX_SENSES)
        return mimus__fail(
            MIMUS_ERR_FORMAT,
            "%s: trajectory %llu: observation 0 should be an array of 1 to %d numbers", r->path,
            (unsigned long long)r->trajectory, MIMUS__MAX_SENSES);
    if (json_array_size(act) == 0)
        return bad(r, "action 0 should be an array of numbers");
    if (json_array_size(act) > MIMUS__MAX_HEADS)
        return bad(r, "action 0 has more numbers than there can be heads");
    MIMUS_TRY(mimus__alloc(&r->column, json_array_size(act), sizeof *r->column));
    r->columns = (uint32_t)json_array_size(act);
    r->senses = (uint32_t)json_array_size(first);
    for (uint32_t c = 0; c < r->columns; c++)
        r->column[c].largest = -1;
out:
    return status;
}

static void note_label(reading *r, uint32_t c, double number) {
    column *of = &r->column[c];
    if (number != floor(number) && !of->has_fraction) {
        of->has_fraction = true;
        of->fraction = number;
        of->trajectory = r->trajectory;
    } else if (number > (double)of->largest) {
        of->largest = number < 0x1p53 ? (int64_t)number : INT64_MAX;
    }
}

static mimus_status look_at(reading *r, const json_t *obs, const json_t *acts) {
    mimus_status status = MIMUS_OK;
    const json_t *act, *row;
    size_t i;
    if (json_array_size(acts) > 0 && r->senses == 0)
        MIMUS_TRY(find_widths(r, obs, acts));
    json_array_foreach(obs, i, row)
        MIMUS_TRY(r->senses > 0 ? read_row(r, "observation", i, row, r->senses, NULL) : MIMUS_OK);
    json_array_foreach(acts, i, act) {
        MIMUS_TRY(read_row(r, "action", i, act, r->columns, NULL));
        for (uint32_t c = 0; c < r->columns; c++)
            note_label(r, c, json_number_value(json_array_get(act, c)));
    }
    r->done += json_array_size(acts);
    r->samples += json_array_size(acts);
out:
    return status;
}

/* ------------------------------------------------------------------- heads */

static mimus_status open_bins(reading *r) {
    mimus_status status = MIMUS_OK;
    const char **names = NULL;
    bool *continuous = NULL;
    char *where = NULL;
    if (r->bins == NULL)
        return MIMUS_OK;
    MIMUS_TRY(mimus__text_format(&where, "%s: actions", r->path));
    MIMUS_TRY(mimus__alloc(&names, r->columns, sizeof *names));
    MIMUS_TRY(mimus__alloc(&continuous, r->columns, sizeof *continuous));
    for (uint32_t c = 0; c < r->columns; c++) {
        names[c] = r->spaces > 0 ? r->space[c].name : NULL;
        if (c < r->head_count && r->heads[c].name != NULL)
            names[c] = r->heads[c].name;
        continuous[c] = r->spaces == 0 || r->space[c].actions == 0;
    }
    const mimus__action_columns columns = {
        .where = where, .count = r->columns, .names = names, .continuous = continuous};
    MIMUS_TRY(mimus__bins_open(r->bins, &columns));
out:
    free(where);
    free(names);
    free(continuous);
    return status;
}

/* Sizes, the option heads, and the bins that it may name. */
static mimus_status survey(reading *r) {
    mimus_status status = MIMUS_OK;
    const char *stated = mimus__reader_option_value(r->options, "heads");
    MIMUS_TRY(read_file(r, "scan", 0, look_at));
    if (r->samples == 0)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA, "%s: %llu trajectories without an action", r->path,
                              (unsigned long long)r->trajectory));
    if (r->spaces > 0 && r->spaces != r->columns)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA,
                              "%s: action_space says %u numbers an action, and the actions have %u",
                              r->path, r->spaces, r->columns));
    if (stated != NULL)
        status = mimus__heads_parse(&r->heads, &r->head_count, stated);
    if (status == MIMUS_OK && stated != NULL && r->head_count != r->columns)
        status = mimus__heads_fit(r->heads, r->head_count, r->columns, 0);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", r->path);
        goto out;
    }
    MIMUS_TRY(open_bins(r));
out:
    return status;
}

/* A label of a column that has no bins must be an integer. */
static mimus_status check_labels(const reading *r) {
    for (uint32_t c = 0; c < r->columns; c++) {
        const column *of = &r->column[c];
        if (mimus__bins_has(r->bins, c))
            continue;
        if (r->spaces > 0 && r->space[c].actions == 0)
            return mimus__bins_refuse("%s: action \"%.80s\" is continuous", r->path,
                                      r->space[c].name);
        if (of->has_fraction)
            return mimus__bins_refuse("%s: trajectory %llu: action %u is %.9g, no integer", r->path,
                                      (unsigned long long)of->trajectory, c, of->fraction);
    }
    return MIMUS_OK;
}

static mimus_status infer_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    int64_t *largest = NULL;
    char sizes[200] = "";
    size_t length = 0;
    MIMUS_TRY(mimus__alloc(&largest, r->columns, sizeof *largest));
    for (uint32_t c = 0; c < r->columns; c++)
        largest[c] = mimus__bins_has(r->bins, c) ? 1 : r->column[c].largest;
    status = mimus__heads_infer(&r->heads, largest, r->columns, 0);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s", r->path);
        goto out;
    }
    r->head_count = r->columns;
    r->inferred = true;
    for (uint32_t c = 0; c < r->columns && length < sizeof sizes; c++) {
        if (!mimus__bins_has(r->bins, c))
            length += (size_t)snprintf(sizes + length, sizeof sizes - length,
                                       length > 0 ? ",%u" : "%u", r->heads[c].actions);
    }
    if (length > 0)
        mimus__watch_message(
            r->watch,
            "%s: actions of each head, by the largest labels: %s; the option heads "
            "states them",
            r->path, sizes);
out:
    free(largest);
    return status;
}

static mimus_status adopt_space(reading *r) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&r->heads, r->columns, sizeof *r->heads));
    r->head_count = r->columns;
    for (uint32_t c = 0; c < r->columns; c++) {
        r->heads[c].actions = r->space[c].actions;
        MIMUS_TRY(mimus__text_copy((char **)&r->heads[c].name, r->space[c].name));
    }
out:
    return status;
}

static mimus_status find_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(check_labels(r));
    if (r->heads == NULL && r->spaces == 0) {
        r->head_count = r->columns;
        MIMUS_TRY(mimus__heads_like(&r->heads, r->like, r->head_count));
    }
    if (r->heads == NULL)
        MIMUS_TRY(r->spaces > 0 ? adopt_space(r) : infer_heads(r));
    for (uint32_t h = 0; h < r->head_count; h++)
        mimus__bins_head(r->bins, h, &r->heads[h]);
    status = mimus__heads_fit(r->heads, r->head_count, r->columns, 0);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", r->path);
out:
    return status;
}

/* ----------------------------------------------------------------- samples */

static mimus_status put_trajectory(reading *r, const json_t *obs, const json_t *acts) {
    mimus_status status = MIMUS_OK;
    const json_t *act;
    size_t i;
    json_array_foreach(acts, i, act) {
        MIMUS_TRY(read_row(r, "action", i, act, r->columns, NULL));
        for (uint32_t c = 0; c < r->columns; c++) {
            const double number = json_number_value(json_array_get(act, c));
            r->actions[c] = mimus__bins_has(r->bins, c)
                                ? mimus__bins_label(r->bins, c, (float)number)
                            : fabs(number) < 0x1p53 ? mimus__heads_label((int64_t)number)
                                                    : MIMUS__MAX_ACTIONS;
        }
        MIMUS_TRY(read_row(r, "observation", i, json_array_get(obs, i), r->senses, r->row));
        MIMUS_TRY(mimus__sink_append(r->sink, r->row, r->actions, NULL, 1.0F));
    }
    r->done += json_array_size(acts);
    MIMUS_TRY(mimus__sink_end_episode(r->sink));
out:
    return status;
}

static mimus_status godot_read(const char *path, const char *const *options, mimus__sink *sink,
                               const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.path = path,
                 .options = options,
                 .bins = sink->bins,
                 .like = sink->like,
                 .watch = watch,
                 .stream = {.descriptor = -1},
                 .sink = sink};
    MIMUS_TRY(survey(&r));
    MIMUS_TRY(find_heads(&r));
    const mimus_schema schema = {.senses = r.senses, .heads = r.head_count, .head = r.heads};
    MIMUS_TRY(mimus__sink_begin_inferred(sink, &schema, r.inferred));
    MIMUS_TRY(mimus__alloc(&r.row, r.senses, sizeof *r.row));
    MIMUS_TRY(mimus__alloc(&r.actions, r.columns, sizeof *r.actions));
    MIMUS_TRY(read_file(&r, "load", r.samples, put_trajectory));
out:
    reading_close(&r);
    return status;
}

static mimus_status observe_trajectory(reading *r, const json_t *obs, const json_t *acts) {
    mimus_status status = MIMUS_OK;
    const json_t *act;
    size_t i;
    (void)obs;
    json_array_foreach(acts, i, act) {
        MIMUS_TRY(read_row(r, "action", i, act, r->columns, r->row));
        MIMUS_TRY(mimus__bins_observe(r->bins, r->row));
    }
    r->done += json_array_size(acts);
out:
    return status;
}

static mimus_status godot_observe(const char *path, const char *const *options, mimus__bins *bins,
                                  const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.path = path,
                 .options = options,
                 .bins = bins,
                 .watch = watch,
                 .stream = {.descriptor = -1}};
    MIMUS_TRY(survey(&r));
    MIMUS_TRY(mimus__alloc(&r.row, r.columns, sizeof *r.row));
    MIMUS_TRY(read_file(&r, "scan", r.samples, observe_trajectory));
out:
    reading_close(&r);
    return status;
}

/* JSON that begins with three brackets, or that names one of the members; or any called .json. */
static bool godot_probe(const char *path, const uint8_t *head, size_t bytes) {
    char start[512];
    size_t length = 0, name = strlen(path);
    for (size_t i = 0; i < bytes && length + 1 < sizeof start; i++) {
        if (strchr(" \t\r\n", head[i]) == NULL || head[i] == '\0')
            start[length++] = (char)head[i];
    }
    start[length] = '\0';
    if (start[0] != '{' && start[0] != '[')
        return false;
    return strncmp(start, "[[[", 3) == 0 || strstr(start, "\"gnrl_") != NULL ||
           strstr(start, "\"demo_trajectories\"") != NULL ||
           (name > 5 && strcmp(path + name - 5, ".json") == 0);
}

const mimus__reader mimus__godot_reader = {
    .name = "godot",
    .label = "Godot RL Agents .json",
    .options = godot_options,
    .probe = godot_probe,
    .read = godot_read,
    .observe = godot_observe,
};

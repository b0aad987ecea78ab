/* A table of text: a row a sample, a column a sense, a label or what else there is. The file is
 * read two or three times over (for the bins, the labels, the samples), never held. */
#include "csv_reader.h"

#include "alloc.h"
#include "csv_roles.h"
#include "heads.h"
#include "text.h"
#include "text_labels.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const mimus__reader_option csv_options[] = {
    {"senses", "columns; default: all that have no other role. Columns are chosen by name, by the "
               "beginning of names (ray_*), by position from 0 or from the end (-1), by a range of "
               "positions (0:64), with commas between"},
    {"actions", "columns of labels, one a head, numbers or words; default: action, label, ..., "
                "action_0 ..., else the last"},
    {"heads", "actions of each head: move:5,shoot:hold|fire; default: the largest label + 1, or "
              "the words that occur, sorted"},
    MIMUS__BINS_OPTION,
    {"masks", "columns, one an action, not 0 where legal; default: action_mask_0 ...; empty: none"},
    {"weights", "column of sample weights; default: weight; empty: none"},
    {"episode", "column that says which episode a row is of; default: episode, episode_id, "
                "episode_index; empty: none"},
    {"starts", "column, not 0 where an episode begins; default: episode_start; empty: none"},
    {"dones", "columns, not 0 at an episode's end; default: all there are of done, terminated, "
              "truncated, ...; empty: none"},
    {"header", "yes or no: whether the first row has names; default: found by looking"},
    {"separator", "a character, or tab; default: the most frequent of , ; tab | in the first row"},
    {NULL, NULL},
};

/* Everything that the reading of one file holds. */
typedef struct reading {
    const char *path;
    const char *const *options;
    mimus__bins *bins;        /* borrowed, or NULL */
    const mimus_schema *like; /* that the samples are judged by, or NULL */
    const mimus_watch *watch;
    mimus__csv_table table;
    char *where_actions;
    mimus__csv_roles roles;
    mimus__text_labels *labels; /* (heads) */
    mimus_head *heads;
    uint32_t head_count;
    bool inferred; /* the heads */
    uint64_t rows; /* 0: not known yet */
} reading;

static void reading_close(reading *r) {
    mimus__csv_table_close(&r->table);
    free(r->where_actions);
    mimus__csv_roles_clear(&r->roles);
    for (uint32_t h = 0; r->labels != NULL && h < r->head_count; h++)
        mimus__text_labels_clear(&r->labels[h]);
    free(r->labels);
    mimus__heads_free(r->heads, r->head_count);
}

static const char *option(const reading *r, const char *key) {
    return mimus__reader_option_value(r->options, key);
}

enum { STEP = 1024 }; /* rows between two looks at the clock */

/* ------------------------------------------------------------------- heads */

/* What the option heads says, or who judges; a head without a name has the column's. */
static mimus_status state_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    const char *stated = option(r, "heads");
    const mimus__selection *actions = &r->roles.of[MIMUS__CSV_ACTIONS];
    if (stated != NULL) {
        status = mimus__heads_parse(&r->heads, &r->head_count, stated);
        if (status == MIMUS_OK && r->head_count != actions->count)
            status = mimus__heads_fit(r->heads, r->head_count, actions->count, 0);
        if (status != MIMUS_OK)
            return mimus__fail_prefix(status, "%s", r->path);
    } else {
        r->head_count = actions->count;
        MIMUS_TRY(mimus__heads_like(&r->heads, r->like, r->head_count));
    }
    r->inferred = r->heads == NULL;
    if (r->inferred)
        MIMUS_TRY(mimus__alloc(&r->heads, r->head_count, sizeof *r->heads));
    for (uint32_t h = 0; h < r->head_count; h++) {
        const char *name = r->table.names != NULL ? r->table.names[actions->column[h]] : "";
        if (r->heads[h].name == NULL && *name != '\0')
            MIMUS_TRY(mimus__text_copy((char **)&r->heads[h].name, name));
    }
out:
    return status;
}

static mimus_status open_bins(reading *r) {
    mimus_status status = MIMUS_OK;
    const char **names = NULL;
    MIMUS_TRY(mimus__alloc(&names, r->head_count, sizeof *names));
    for (uint32_t h = 0; h < r->head_count; h++)
        names[h] = r->heads[h].name;
    const mimus__action_columns columns = {
        .where = r->where_actions, .count = r->head_count, .names = names};
    MIMUS_TRY(mimus__bins_open(r->bins, &columns));
out:
    free(names);
    return status;
}

/* Whether the last field of a row, where a file that was cut ends, is to be a number. */
static bool last_is_number(const reading *r) {
    static const mimus__csv_role numbers[] = {MIMUS__CSV_SENSES, MIMUS__CSV_MASKS,
                                              MIMUS__CSV_WEIGHTS};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const mimus__selection *chosen = &r->roles.of[numbers[k]];
        for (uint32_t i = 0; i < chosen->count; i++) {
            if (chosen->column[i] + 1 == r->table.columns)
                return true;
        }
    }
    return false;
}

static mimus_status open_reading(reading *r) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__csv_table_open(&r->table, r->path, option(r, "separator"), option(r, "header"),
                                    r->watch));
    MIMUS_TRY(mimus__csv_roles_choose(&r->roles, &r->table, r->options));
    MIMUS_TRY(mimus__text_format(&r->where_actions, "%s: actions", r->path));
    r->table.last_is_number = last_is_number(r);
    MIMUS_TRY(state_heads(r));
    MIMUS_TRY(open_bins(r));
out:
    return status;
}

static bool is_binned(const reading *r, uint32_t h) {
    return mimus__bins_has(r->bins, h);
}

/* Look at all labels, and count the rows. */
static mimus_status survey(reading *r) {
    mimus_status status = MIMUS_OK;
    bool more = false;
    mimus__phase phase = mimus__phase_begin(r->watch, "scan", 0);
    MIMUS_TRY(mimus__csv_table_rewind(&r->table));
    while (true) {
        MIMUS_TRY(mimus__csv_table_next(&r->table, &more));
        if (!more)
            break;
        for (uint32_t h = 0; h < r->head_count; h++) {
            const char *label =
                mimus__csv_table_field(&r->table, r->roles.of[MIMUS__CSV_ACTIONS].column[h]);
            if (!is_binned(r, h))
                MIMUS_TRY(mimus__text_labels_add(&r->labels[h], label, r->table.csv.line,
                                                 r->where_actions));
        }
        if (++r->rows % STEP == 0)
            MIMUS_TRY(mimus__phase_step(&phase, r->rows));
    }
    MIMUS_TRY(mimus__phase_end(&phase, r->rows));
out:
    return status;
}

static void tell_heads(const reading *r) {
    char text[300] = "";
    size_t length = 0;
    for (uint32_t h = 0; h < r->head_count && length < sizeof text; h++) {
        const char *kind = r->heads[h].action_names != NULL ? " words" : "";
        if (!is_binned(r, h))
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%u%s",
                                       length > 0 ? ", " : "", r->heads[h].actions, kind);
    }
    if (length > 0)
        mimus__watch_message(r->watch,
                             "%s: actions of each head, by the labels: %s; the option heads states "
                             "them",
                             r->path, text);
}

/* The heads' sizes from what the survey found; words become the actions' names. */
static mimus_status infer_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    const mimus__selection *masks = &r->roles.of[MIMUS__CSV_MASKS];
    int64_t *largest = NULL;
    mimus_head *sized = NULL;
    MIMUS_TRY(mimus__alloc(&largest, r->head_count, sizeof *largest));
    for (uint32_t h = 0; h < r->head_count; h++) {
        const mimus__text_labels *labels = &r->labels[h];
        mimus_head bins = {0};
        mimus__bins_head(r->bins, h, &bins);
        if (labels->fraction.label[0] != '\0')
            MIMUS_TRY(mimus__bins_refuse(
                "%s: line %llu, column %u: %s is not an integer", r->where_actions,
                (unsigned long long)labels->fraction.line,
                r->roles.of[MIMUS__CSV_ACTIONS].column[h], labels->fraction.label));
        largest[h] = is_binned(r, h) ? (int64_t)bins.actions - 1
                     : labels->text  ? (int64_t)labels->count - 1
                                     : labels->largest;
    }
    status = mimus__heads_infer(&sized, largest, r->head_count, masks->count);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", r->where_actions);
    MIMUS_TRY(status);
    for (uint32_t h = 0; h < r->head_count; h++) {
        r->heads[h].actions = sized[h].actions;
        if (r->labels[h].text && r->labels[h].count < 2)
            MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA,
                                  "%s: head %u: every label is \"%s\": nothing to "
                                  "choose; the option heads names the other actions",
                                  r->where_actions, h, r->labels[h].words[0]));
        if (r->labels[h].text)
            MIMUS_TRY(mimus__heads_name_actions(&r->heads[h], r->labels[h].words,
                                                (uint32_t)r->labels[h].count));
    }
    tell_heads(r);
out:
    free(largest);
    mimus__heads_free(sized, r->head_count);
    return status;
}

static mimus_status find_heads(reading *r) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&r->labels, r->head_count, sizeof *r->labels));
    for (uint32_t h = 0; h < r->head_count; h++)
        r->labels[h].largest = -1;
    if (r->inferred) {
        MIMUS_TRY(survey(r));
        MIMUS_TRY(infer_heads(r));
    }
    for (uint32_t h = 0; h < r->head_count; h++) {
        mimus__bins_head(r->bins, h, &r->heads[h]);
        if (!r->inferred)
            mimus__text_labels_state(&r->labels[h], &r->heads[h]);
    }
    status = mimus__heads_fit(r->heads, r->head_count, r->roles.of[MIMUS__CSV_ACTIONS].count,
                              r->roles.of[MIMUS__CSV_MASKS].count);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", r->path);
out:
    return status;
}

/* ----------------------------------------------------------------- samples */

/* One sample, and what is remembered between two. */
typedef struct sample {
    float *senses;     /* (S) */
    uint16_t *actions; /* (H) */
    uint8_t *legal;    /* (A) */
    float weight;
    char *episode; /* of the sample before */
    size_t episode_capacity;
} sample;

static mimus_status label_fails(const reading *r, uint32_t h, const char *label) {
    char column[96];
    const mimus_head *head = &r->heads[h];
    mimus__csv_table_column(&r->table, r->roles.of[MIMUS__CSV_ACTIONS].column[h], column,
                            sizeof column);
    float number;
    if (head->action_names == NULL && mimus__csv_number(label, &number))
        return mimus__bins_refuse("%s: line %llu, %s: %.40s is not an integer", r->where_actions,
                                  (unsigned long long)r->table.csv.line, column, label);
    return mimus__fail(MIMUS_ERR_DATA,
                       "%s: line %llu, %s: \"%.40s\" is %s; the option heads names actions as "
                       "move:left|right",
                       r->where_actions, (unsigned long long)r->table.csv.line, column, label,
                       head->action_names != NULL ? "none of the head's actions" : "no number");
}

static mimus_status read_label(const reading *r, uint32_t h, uint16_t *out) {
    mimus_status status = MIMUS_OK;
    const uint32_t c = r->roles.of[MIMUS__CSV_ACTIONS].column[h];
    const char *label = mimus__csv_table_field(&r->table, c);
    int64_t stored = -1;
    float number = 0;
    if (is_binned(r, h) && *label != '\0') {
        MIMUS_TRY(mimus__csv_table_number(&r->table, c, &number));
        *out = mimus__bins_label(r->bins, h, number);
    } else if (is_binned(r, h) || mimus__text_labels_find(&r->labels[h], label, &stored)) {
        *out = mimus__heads_label(stored);
    } else {
        status = label_fails(r, h, label);
    }
out:
    return status;
}

static mimus_status read_flag(const reading *r, uint32_t c, bool *out) {
    float number = 0;
    mimus_status status = mimus__csv_table_number(&r->table, c, &number);
    *out = number != 0 && !isnan(number); /* nothing there is no flag */
    return status;
}

/* Whether the row begins another episode than the sample before, which there is. */
static mimus_status begins_episode(const reading *r, sample *s, bool first, bool *begins) {
    mimus_status status = MIMUS_OK;
    *begins = false;
    if (r->roles.of[MIMUS__CSV_STARTS].count > 0) {
        MIMUS_TRY(read_flag(r, r->roles.of[MIMUS__CSV_STARTS].column[0], begins));
    } else if (r->roles.of[MIMUS__CSV_EPISODE].count > 0) {
        const char *episode =
            mimus__csv_table_field(&r->table, r->roles.of[MIMUS__CSV_EPISODE].column[0]);
        *begins = s->episode == NULL || strcmp(s->episode, episode) != 0;
        if (!*begins)
            goto out;
        MIMUS_TRY(mimus__grow(&s->episode, &s->episode_capacity, strlen(episode) + 1, 1));
        memcpy(s->episode, episode, strlen(episode) + 1);
    }
    *begins = *begins && !first;
out:
    return status;
}

static mimus_status ends_episode(const reading *r, bool *ends) {
    mimus_status status = MIMUS_OK;
    *ends = false;
    for (uint32_t i = 0; i < r->roles.of[MIMUS__CSV_DONES].count; i++) {
        bool flag = false;
        MIMUS_TRY(read_flag(r, r->roles.of[MIMUS__CSV_DONES].column[i], &flag));
        *ends = *ends || flag;
    }
out:
    return status;
}

static mimus_status read_fields(const reading *r, sample *s) {
    mimus_status status = MIMUS_OK;
    const mimus__selection *senses = &r->roles.of[MIMUS__CSV_SENSES],
                           *masks = &r->roles.of[MIMUS__CSV_MASKS];
    for (uint32_t i = 0; i < senses->count; i++)
        MIMUS_TRY(mimus__csv_table_number(&r->table, senses->column[i], &s->senses[i]));
    for (uint32_t h = 0; h < r->head_count; h++)
        MIMUS_TRY(read_label(r, h, &s->actions[h]));
    for (uint32_t i = 0; i < masks->count; i++) {
        bool legal = false;
        MIMUS_TRY(read_flag(r, masks->column[i], &legal));
        s->legal[i] = legal;
    }
    if (r->roles.of[MIMUS__CSV_WEIGHTS].count > 0)
        MIMUS_TRY(mimus__csv_table_number(&r->table, r->roles.of[MIMUS__CSV_WEIGHTS].column[0],
                                          &s->weight));
out:
    return status;
}

static mimus_status put_sample(const reading *r, sample *s, mimus__sink *sink, bool first) {
    mimus_status status = MIMUS_OK;
    bool begins = false, ends = false;
    MIMUS_TRY(begins_episode(r, s, first, &begins));
    if (begins)
        MIMUS_TRY(mimus__sink_end_episode(sink));
    MIMUS_TRY(read_fields(r, s));
    MIMUS_TRY(mimus__sink_append(sink, s->senses, s->actions,
                                 r->roles.of[MIMUS__CSV_MASKS].count > 0 ? s->legal : NULL,
                                 s->weight));
    MIMUS_TRY(ends_episode(r, &ends));
    if (ends)
        MIMUS_TRY(mimus__sink_end_episode(sink));
out:
    return status;
}

static mimus_status read_samples(reading *r, mimus__sink *sink) {
    mimus_status status = MIMUS_OK;
    sample s = {.weight = 1};
    uint64_t done = 0;
    bool more = false;
    mimus__phase phase = mimus__phase_begin(r->watch, "load", r->rows);
    MIMUS_TRY(mimus__alloc(&s.senses, r->roles.of[MIMUS__CSV_SENSES].count, sizeof *s.senses));
    MIMUS_TRY(mimus__alloc(&s.actions, r->head_count, sizeof *s.actions));
    MIMUS_TRY(mimus__alloc(&s.legal, r->roles.of[MIMUS__CSV_MASKS].count, sizeof *s.legal));
    MIMUS_TRY(mimus__csv_table_rewind(&r->table));
    while (true) {
        MIMUS_TRY(mimus__csv_table_next(&r->table, &more));
        if (!more)
            break;
        MIMUS_TRY(put_sample(r, &s, sink, done == 0));
        if (++done % STEP == 0)
            MIMUS_TRY(mimus__phase_step(&phase, done));
    }
    MIMUS_TRY(mimus__sink_end_episode(sink));
    MIMUS_TRY(mimus__phase_end(&phase, done));
out:
    free(s.senses);
    free(s.actions);
    free(s.legal);
    free(s.episode);
    return status;
}

/* ------------------------------------------------------------------- whole */

static mimus_status begin(const reading *r, mimus__sink *sink) {
    mimus_status status = MIMUS_OK;
    const mimus__selection *senses = &r->roles.of[MIMUS__CSV_SENSES];
    const char **names = NULL;
    mimus_schema schema = {.senses = senses->count,
                           .heads = r->head_count,
                           .head = r->heads,
                           .masks = r->roles.of[MIMUS__CSV_MASKS].count > 0,
                           .weights = r->roles.of[MIMUS__CSV_WEIGHTS].count > 0};
    if (r->table.names != NULL) {
        MIMUS_TRY(mimus__alloc(&names, senses->count, sizeof *names));
        for (uint32_t i = 0; i < senses->count; i++)
            names[i] = r->table.names[senses->column[i]];
        schema.sense_names = names;
    }
    status = mimus__sink_begin_inferred(sink, &schema, r->inferred);
out:
    free(names);
    return status;
}

static mimus_status csv_read(const char *path, const char *const *options, mimus__sink *sink,
                             const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {
        .path = path, .options = options, .bins = sink->bins, .like = sink->like, .watch = watch};
    MIMUS_TRY(open_reading(&r));
    MIMUS_TRY(find_heads(&r));
    MIMUS_TRY(begin(&r, sink));
    MIMUS_TRY(read_samples(&r, sink));
out:
    reading_close(&r);
    return status;
}

static mimus_status csv_observe(const char *path, const char *const *options, mimus__bins *bins,
                                const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.path = path, .options = options, .bins = bins};
    float *numbers = NULL;
    uint64_t done = 0;
    bool more = false;
    mimus__phase phase = mimus__phase_begin(watch, "scan", 0);
    MIMUS_TRY(open_reading(&r));
    MIMUS_TRY(mimus__alloc(&numbers, r.head_count, sizeof *numbers));
    MIMUS_TRY(mimus__csv_table_rewind(&r.table));
    while (true) {
        MIMUS_TRY(mimus__csv_table_next(&r.table, &more));
        if (!more)
            break;
        for (uint32_t h = 0; h < r.head_count; h++) {
            if (is_binned(&r, h))
                MIMUS_TRY(mimus__csv_table_number(
                    &r.table, r.roles.of[MIMUS__CSV_ACTIONS].column[h], &numbers[h]));
        }
        MIMUS_TRY(mimus__bins_observe(bins, numbers));
        if (++done % STEP == 0)
            MIMUS_TRY(mimus__phase_step(&phase, done));
    }
    MIMUS_TRY(mimus__phase_end(&phase, done));
out:
    free(numbers);
    reading_close(&r);
    return status;
}

/* By the name alone: any text may be a table. */
static bool csv_probe(const char *path, const uint8_t *head, size_t bytes) {
    static const char *const ends[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
    size_t length = strlen(path);
    bool binary = bytes > 0 && memchr(head, 0, bytes) != NULL && (bytes < 2 || head[0] != 0x1F);
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !binary; i++) {
        if (length > strlen(ends[i]) && strcasecmp(path + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    }
    return false;
}

const mimus__reader mimus__csv_reader = {
    .name = "csv",
    .label = "tables .csv, .tsv, .csv.gz",
    .options = csv_options,
    .probe = csv_probe,
    .read = csv_read,
    .observe = csv_observe,
};

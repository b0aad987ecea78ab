#include "bins.h"

#include "alloc.h"
#include "rng.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum bin_kind { UNIFORM, QUANTILE, KINDS } bin_kind;

static const char *const kind_names[KINDS] = {[UNIFORM] = "uniform", [QUANTILE] = "quantile"};

/* A part of the option. */
typedef struct request {
    char *column;
    bin_kind kind;
    uint32_t count;
} request;

typedef struct column {
    bool binned;
    bin_kind kind;
    uint32_t wanted; /* bins */
    char *name;      /* for messages */
    uint64_t seen;   /* finite numbers */
    float lowest, highest;
    float *kept; /* (held) all that were seen, or a sample of them */
    size_t held, capacity;
    uint32_t actions; /* bins that there are; 0 before the fit */
    float *edges;     /* (actions - 1) */
    float *values;    /* (actions) */
} column;

struct mimus__bins {
    request *request; /* (requests) */
    size_t requests;
    char *where; /* of the first file */
    column *column;
    uint32_t columns; /* 0 before the first file */
    size_t most;      /* numbers kept of a column */
};

/* ------------------------------------------------------------------ option */

/* "COLUMN:KIND:COUNT", which is overwritten; a column's name may have colons. */
static mimus_status parse_request(request *out, char *part) {
    uint64_t count = 0;
    char *last = strrchr(part, ':'), *middle = NULL;
    if (last != NULL) {
        *last = '\0';
        middle = strrchr(part, ':');
        *last = ':';
    }
    if (middle == NULL || middle == part)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "bin: \"%s\" should be COLUMN:uniform:11 or COLUMN:quantile:11", part);
    size_t letters = (size_t)(last - middle - 1);
    for (out->kind = UNIFORM; out->kind < KINDS; out->kind++) {
        const char *name = kind_names[out->kind];
        if (strlen(name) == letters && memcmp(name, middle + 1, letters) == 0)
            break;
    }
    if (out->kind == KINDS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "bin: \"%s\": bins are uniform or quantile", part);
    if (!mimus__text_to_u64(last + 1, &count) || count < 2 || count > MIMUS__MAX_ACTIONS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "bin: \"%s\": 2 to %d bins, not \"%s\"", part,
                           MIMUS__MAX_ACTIONS, last + 1);
    out->count = (uint32_t)count;
    *middle = '\0';
    return mimus__text_copy(&out->column, part);
}

mimus_status mimus__bins_new(mimus__bins **out, const char *text) {
    mimus_status status = MIMUS_OK;
    mimus__bins *bins = NULL;
    char *parts = NULL;
    size_t wanted = 1;
    *out = NULL;
    for (const char *c = text; *c != '\0'; c++)
        wanted += *c == ',';
    if (wanted > MIMUS__MAX_HEADS)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "bin: %zu columns; at most %d are possible", wanted,
                           MIMUS__MAX_HEADS);
    MIMUS_TRY(mimus__text_copy(&parts, text));
    MIMUS_TRY(mimus__alloc(&bins, 1, sizeof *bins));
    MIMUS_TRY(mimus__alloc(&bins->request, wanted, sizeof *bins->request));
    for (char *part = parts; part != NULL;) {
        char *comma = strchr(part, ',');
        if (comma != NULL)
            *comma++ = '\0';
        MIMUS_TRY(parse_request(&bins->request[bins->requests], part));
        bins->requests++;
        part = comma;
    }
    *out = bins;
    bins = NULL;
out:
    mimus__bins_free(bins);
    free(parts);
    return status;
}

void mimus__bins_free(mimus__bins *bins) {
    if (bins == NULL)
        return;
    for (size_t i = 0; i < bins->requests; i++)
        free(bins->request[i].column);
    for (uint32_t c = 0; c < bins->columns; c++) {
        free(bins->column[c].name);
        free(bins->column[c].kept);
        free(bins->column[c].edges);
        free(bins->column[c].values);
    }
    free(bins->request);
    free(bins->column);
    free(bins->where);
    free(bins);
}

/* ----------------------------------------------------------------- columns */

static mimus_status allocate_columns(mimus__bins *bins, uint32_t count) {
    mimus_status status = mimus__alloc(&bins->column, count, sizeof *bins->column);
    bins->columns = status == MIMUS_OK ? count : 0;
    return status;
}

mimus_status mimus__bins_from_schema(mimus__bins **out, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    mimus__bins *bins = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&bins, 1, sizeof *bins));
    MIMUS_TRY(allocate_columns(bins, schema->heads));
    for (uint32_t c = 0; c < bins->columns; c++) {
        const mimus_head *head = &schema->head[c];
        column *made = &bins->column[c];
        if (head->bin_edges == NULL)
            continue;
        made->binned = true;
        made->actions = head->actions;
        MIMUS_TRY(mimus__alloc(&made->edges, head->actions - 1, sizeof *made->edges));
        MIMUS_TRY(mimus__alloc(&made->values, head->actions, sizeof *made->values));
        memcpy(made->edges, head->bin_edges, (head->actions - 1) * sizeof *made->edges);
        memcpy(made->values, head->bin_values, head->actions * sizeof *made->values);
    }
    *out = bins;
    bins = NULL;
out:
    mimus__bins_free(bins);
    return status;
}

static bool is_named(const mimus__action_columns *columns, uint32_t c, const char *name) {
    return columns->names != NULL && columns->names[c] != NULL &&
           strcmp(columns->names[c], name) == 0;
}

/* Which column a request means: by its name, else by its number. */
static mimus_status find_column(const mimus__action_columns *columns, const char *name,
                                uint32_t *out) {
    uint64_t number = 0;
    for (uint32_t c = 0; c < columns->count; c++) {
        if (is_named(columns, c, name)) {
            *out = c;
            return MIMUS_OK;
        }
    }
    if (!mimus__text_to_u64(name, &number) || number >= columns->count)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: option bin: no column \"%s\"; there are 0 to %u%s", columns->where,
                           name, columns->count - 1,
                           columns->names == NULL ? ", without names" : "");
    *out = (uint32_t)number;
    return MIMUS_OK;
}

static void bin_column(column *c, const request *asked) {
    c->binned = true;
    c->kind = asked->kind;
    c->wanted = asked->count;
}

static bool is_continuous(const mimus__action_columns *columns, uint32_t c) {
    return columns->continuous == NULL || columns->continuous[c];
}

/* The later of two requests for one column is it: "all:uniform:11,2:quantile:5". */
static mimus_status apply(mimus__bins *bins, const mimus__action_columns *columns,
                          const request *asked) {
    mimus_status status = MIMUS_OK;
    uint32_t c = 0;
    if (strcmp(asked->column, "all") == 0) {
        for (c = 0; c < columns->count; c++) {
            if (is_continuous(columns, c))
                bin_column(&bins->column[c], asked);
        }
        goto out;
    }
    MIMUS_TRY(find_column(columns, asked->column, &c));
    if (!is_continuous(columns, c))
        MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT,
                              "%s: option bin: column \"%s\" holds labels already, no numbers",
                              columns->where, asked->column));
    bin_column(&bins->column[c], asked);
out:
    return status;
}

static mimus_status name_columns(mimus__bins *bins, const mimus__action_columns *columns) {
    mimus_status status = MIMUS_OK;
    for (uint32_t c = 0; c < columns->count; c++) {
        const char *name = columns->names != NULL ? columns->names[c] : NULL;
        MIMUS_TRY(name != NULL ? mimus__text_format(&bins->column[c].name, "\"%s\"", name)
                               : mimus__text_format(&bins->column[c].name, "%u", c));
    }
out:
    return status;
}

static mimus_status begin_columns(mimus__bins *bins, const mimus__action_columns *columns) {
    mimus_status status = MIMUS_OK;
    uint32_t binned = 0;
    MIMUS_TRY(mimus__text_copy(&bins->where, columns->where));
    MIMUS_TRY(allocate_columns(bins, columns->count));
    MIMUS_TRY(name_columns(bins, columns));
    for (size_t i = 0; i < bins->requests; i++)
        MIMUS_TRY(apply(bins, columns, &bins->request[i]));
    for (uint32_t c = 0; c < bins->columns; c++)
        binned += bins->column[c].binned;
    if (binned == 0) {
        status = mimus__fail(MIMUS_ERR_ARGUMENT,
                             "%s: option bin: no column holds numbers: there is nothing to bin",
                             columns->where);
        goto out;
    }
    bins->most = MIMUS__BINS_KEPT_IN_ALL / binned;
    bins->most = bins->most < MIMUS__BINS_KEPT ? bins->most : MIMUS__BINS_KEPT;
out:
    return status;
}

mimus_status mimus__bins_open(mimus__bins *bins, const mimus__action_columns *columns) {
    if (bins == NULL)
        return MIMUS_OK;
    if (bins->columns == 0)
        return begin_columns(bins, columns);
    if (bins->columns != columns->count)
        return mimus__fail(MIMUS_ERR_SCHEMA, "%s: %u columns of actions, where %s %u",
                           columns->where, columns->count,
                           bins->where != NULL ? "the first file has" : "the bins are for",
                           bins->columns);
    for (uint32_t c = 0; c < bins->columns; c++) {
        if (bins->column[c].binned && !is_continuous(columns, c))
            return mimus__fail(MIMUS_ERR_SCHEMA,
                               "%s: column %u holds labels, and bins are for numbers",
                               columns->where, c);
    }
    return MIMUS_OK;
}

bool mimus__bins_has(const mimus__bins *bins, uint32_t c) {
    return bins != NULL && c < bins->columns && bins->column[c].binned;
}

/* ----------------------------------------------------------------- observe */

/* Vitter's algorithm R: every number seen so far is kept with the same probability. */
static mimus_status keep(column *c, uint32_t index, size_t most, float number) {
    mimus_status status = MIMUS_OK;
    if (c->held < most) {
        MIMUS_TRY(mimus__grow(&c->kept, &c->capacity, c->held + 1, sizeof *c->kept));
        c->kept[c->held++] = number;
        goto out;
    }
    mimus__rng rng = {.seed = c->seen, .stream = index};
    uint64_t place = mimus__rng_below(&rng, c->seen);
    if (place < c->held)
        c->kept[place] = number;
out:
    return status;
}

static mimus_status observe(column *c, uint32_t index, size_t most, float number) {
    if (!isfinite(number))
        return MIMUS_OK;
    c->lowest = c->seen == 0 || number < c->lowest ? number : c->lowest;
    c->highest = c->seen == 0 || number > c->highest ? number : c->highest;
    c->seen++;
    return c->kind == QUANTILE ? keep(c, index, most, number) : MIMUS_OK;
}

mimus_status mimus__bins_observe(mimus__bins *bins, const float *numbers) {
    mimus_status status = MIMUS_OK;
    for (uint32_t c = 0; c < bins->columns; c++) {
        if (bins->column[c].binned)
            MIMUS_TRY(observe(&bins->column[c], c, bins->most, numbers[c]));
    }
out:
    return status;
}

/* --------------------------------------------------------------------- fit */

static mimus_status fit_uniform(column *c, const char *where) {
    const double low = (double)c->lowest, width = ((double)c->highest - low) / c->wanted;
    c->actions = c->wanted;
    for (uint32_t i = 0; i < c->actions; i++) {
        c->values[i] = (float)(low + width * (i + 0.5));
        if (i + 1 < c->actions)
            c->edges[i] = (float)(low + width * (i + 1));
        if (i > 0 && i + 1 < c->actions && !(c->edges[i] > c->edges[i - 1]))
            return mimus__fail(MIMUS_ERR_DATA,
                               "%s: column %s reaches from %.9g to %.9g: too near for %u bins",
                               where, c->name, (double)c->lowest, (double)c->highest, c->wanted);
    }
    return MIMUS_OK;
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Above `a` and at most `b`, where a < b. */
static float between(float a, float b) {
    float middle = (float)((double)a + ((double)b - (double)a) / 2);
    return middle > a ? middle : b;
}

/* Whether the sorted numbers are of no more kinds than there are to be bins. */
static bool is_few(const float *sorted, size_t count, uint32_t kinds) {
    size_t found = 1;
    for (size_t i = 1; i < count && found <= kinds; i++)
        found += sorted[i] > sorted[i - 1];
    return found <= kinds;
}

/* Where to cut near `at`: between two numbers that differ. Equal ones around it are passed on the
 * shorter way; 0 or `count` when they reach to the end. */
static size_t cut_near(const float *sorted, size_t count, size_t at) {
    size_t before = at, behind = at;
    while (before > 0 && sorted[before - 1] == sorted[at])
        before--;
    if (before == at)
        return at;
    while (behind < count && sorted[behind] == sorted[at])
        behind++;
    return before > 0 && (at - before <= behind - at || behind == count) ? before : behind;
}

/* End the bin that began at `from`, before `to`. */
static void end_bin(column *c, size_t from, size_t to) {
    c->values[c->actions] = c->kept[from + (to - from - 1) / 2];
    if (to < c->held)
        c->edges[c->actions] = between(c->kept[to - 1], c->kept[to]);
    c->actions++;
}

static void fit_quantile(column *c) {
    size_t from = 0;
    qsort(c->kept, c->held, sizeof *c->kept, compare_floats);
    if (is_few(c->kept, c->held, c->wanted)) {
        for (size_t i = 1; i < c->held; i++) {
            if (c->kept[i] > c->kept[i - 1]) {
                end_bin(c, from, i);
                from = i;
            }
        }
    } else {
        for (uint64_t k = 1; k < c->wanted; k++) {
            size_t cut = cut_near(c->kept, c->held, (size_t)(k * c->held / c->wanted));
            if (cut > from && cut < c->held) {
                end_bin(c, from, cut);
                from = cut;
            }
        }
    }
    end_bin(c, from, c->held);
}

static mimus_status fit(column *c, const char *where, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    if (c->seen == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: column %s has no number to make bins of", where,
                           c->name);
    if (!(c->lowest < c->highest))
        return mimus__fail(MIMUS_ERR_DATA, "%s: column %s is always %.9g: nothing to choose", where,
                           c->name, (double)c->lowest);
    MIMUS_TRY(mimus__alloc(&c->edges, c->wanted, sizeof *c->edges));
    MIMUS_TRY(mimus__alloc(&c->values, c->wanted, sizeof *c->values));
    if (c->kind == UNIFORM)
        MIMUS_TRY(fit_uniform(c, where));
    else
        fit_quantile(c);
    free(c->kept);
    c->kept = NULL;
    if (c->actions < 2) /* what differs is so rare that no sample has it */
        return mimus__fail(MIMUS_ERR_DATA, "%s: column %s is nearly always %.9g: use uniform bins",
                           where, c->name, (double)c->values[0]);
    if (c->actions < c->wanted)
        mimus__watch_message(watch,
                             "%s: column %s: %u bins, not %u: many of its numbers are the same",
                             where, c->name, c->actions, c->wanted);
out:
    return status;
}

mimus_status mimus__bins_fit(mimus__bins *bins, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    for (uint32_t c = 0; c < bins->columns; c++) {
        if (bins->column[c].binned)
            MIMUS_TRY(fit(&bins->column[c], bins->where, watch));
    }
out:
    return status;
}

/* --------------------------------------------------------------------- use */

void mimus__bins_head(const mimus__bins *bins, uint32_t c, mimus_head *head) {
    if (!mimus__bins_has(bins, c))
        return;
    head->actions = bins->column[c].actions;
    head->bin_edges = bins->column[c].edges;
    head->bin_values = bins->column[c].values;
}

uint16_t mimus__bins_label(const mimus__bins *bins, uint32_t c, float number) {
    mimus_head head = {0};
    if (!isfinite(number))
        return MIMUS__MAX_ACTIONS;
    mimus__bins_head(bins, c, &head);
    return mimus_head_action(&head, number);
}

mimus_status mimus__bins_refuse(const char *format, ...) {
    char found[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found, sizeof found, format, arguments);
    va_end(arguments);
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s; the option bin cuts continuous actions into bins: --bin all:uniform:11",
                       found);
}

#include "filter.h"

#include "alloc.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum operation { EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, OPERATIONS } operation;

/* Longer ones first: "<=" begins with "<". */
static const struct {
    const char *text;
    operation operation;
} operations[] = {{"==", EQUAL}, {"!=", UNEQUAL}, {"<=", AT_MOST}, {">=", AT_LEAST},
                  {"=", EQUAL},  {"<", LESS},     {">", MORE}};

/* One part of the condition; which sense or head it is about is known once there is a schema. */
typedef struct term {
    char *name, *value; /* as given */
    operation operation;
    bool is_head;
    uint32_t index;
    double number; /* that the sense, label or bin's value is compared with */
} term;

typedef struct range {
    uint64_t first, end;
} range;

struct mimus__filter {
    mimus__sink sink; /* at the front, for readers to find us */
    mimus__chunk_sink *into;
    term *term; /* (terms) */
    size_t terms, term_capacity;
    range *range; /* (ranges); none: every episode */
    size_t ranges, range_capacity;
    uint64_t last_episode; /* none is wanted from here on */
    uint64_t limit;        /* UINT64_MAX: none */
    uint64_t episode;      /* the present one */
    bool in_episode;       /* it has a sample */
    uint64_t seen, taken;
    bool bound; /* the terms are */
};

void mimus__filter_free(mimus__filter *filter) {
    if (filter == NULL)
        return;
    for (size_t i = 0; i < filter->terms; i++) {
        free(filter->term[i].name);
        free(filter->term[i].value);
    }
    free(filter->term);
    free(filter->range);
    free(filter);
}

/* ------------------------------------------------------------------- where */

static char *trim(char *text) {
    text += strspn(text, " \t");
    for (size_t length = strlen(text); length > 0 && strchr(" \t", text[length - 1]); length--)
        text[length - 1] = '\0';
    return text;
}

/* Behind `text`, as far as it has quotes around it; `text` itself without. */
static char *skip_quoted(char *text) {
    char *end = *text == '"' || *text == '\'' ? strchr(text + 1, *text) : NULL;
    return end != NULL ? end + 1 : text;
}

static char *unquote(char *text) {
    size_t length = strlen(text);
    if (length < 2 || (*text != '"' && *text != '\'') || skip_quoted(text) != text + length)
        return text;
    text[length - 1] = '\0';
    return text + 1;
}

/* Cut `text` behind its next " and ", outside of quotes; NULL where there is none. */
static char *next_term(char *text) {
    for (char *c = text; *c != '\0'; c++) {
        char *behind = skip_quoted(c);
        if (behind != c) {
            c = behind - 1;
        } else if (c > text && strchr(" \t", c[-1]) != NULL && strncasecmp(c, "and", 3) == 0 &&
                   c[3] != '\0' && strchr(" \t", c[3]) != NULL) {
            c[-1] = '\0';
            return c + 3;
        }
    }
    return NULL;
}

static mimus_status bad_term(const char *text) {
    return mimus__fail(
        MIMUS_ERR_ARGUMENT,
        "where: \"%.80s\" should be as health>0.5 or move=left, with \"and\" between "
        "several",
        text);
}

static mimus_status parse_term(term *out, char *text) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    text = trim(text);
    MIMUS_TRY(mimus__text_copy(&copy, text));
    char *from = skip_quoted(text);
    from += strcspn(from, "=!<>");
    size_t o = 0;
    while (o < sizeof operations / sizeof *operations &&
           strncmp(from, operations[o].text, strlen(operations[o].text)) != 0)
        o++;
    if (o == sizeof operations / sizeof *operations)
        MIMUS_TRY(bad_term(copy));
    char *value = trim(from + strlen(operations[o].text));
    *from = '\0';
    char *name = unquote(trim(text));
    value = unquote(value);
    if (*name == '\0' || *value == '\0')
        MIMUS_TRY(bad_term(copy));
    out->operation = operations[o].operation;
    MIMUS_TRY(mimus__text_copy(&out->name, name));
    MIMUS_TRY(mimus__text_copy(&out->value, value));
out:
    free(copy);
    return status;
}

static mimus_status parse_where(mimus__filter *filter, const char *text) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    MIMUS_TRY(mimus__text_copy(&copy, text));
    for (char *part = copy; part != NULL;) {
        char *next = next_term(part);
        MIMUS_TRY(mimus__grow(&filter->term, &filter->term_capacity, filter->terms + 1,
                              sizeof *filter->term));
        MIMUS_TRY(parse_term(&filter->term[filter->terms++], part));
        part = next;
    }
out:
    free(copy);
    return status;
}

/* --------------------------------------------------------------- episodes */

static mimus_status parse_range(range *out, char *part) {
    char *colon = strchr(part, ':'), *end = colon != NULL ? colon + 1 : NULL;
    *out = (range){0, UINT64_MAX};
    if (colon != NULL)
        *colon = '\0';
    bool first = (colon != NULL && *part == '\0') || mimus__text_to_u64(part, &out->first);
    bool last = colon == NULL || *end == '\0' || mimus__text_to_u64(end, &out->end);
    if (colon == NULL)
        out->end = out->first + 1;
    else
        *colon = ':';
    if (!first || !last || out->first >= out->end)
        return mimus__fail(
            MIMUS_ERR_ARGUMENT,
            "episodes: \"%.40s\" should be a number from 0, or a range: 0:100, 20:", part);
    return MIMUS_OK;
}

static mimus_status parse_episodes(mimus__filter *filter, const char *text) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    MIMUS_TRY(mimus__text_copy(&copy, text));
    for (char *part = copy; part != NULL;) {
        char *comma = strchr(part, ',');
        if (comma != NULL)
            *comma++ = '\0';
        MIMUS_TRY(mimus__grow(&filter->range, &filter->range_capacity, filter->ranges + 1,
                              sizeof *filter->range));
        range *added = &filter->range[filter->ranges++];
        MIMUS_TRY(parse_range(added, part));
        filter->last_episode =
            added->end > filter->last_episode ? added->end : filter->last_episode;
        part = comma;
    }
out:
    free(copy);
    return status;
}

/* ------------------------------------------------------------------ binding */

/* "sense12" is 12; false for other texts, and numbers from `count` on. */
static bool is_numbered(const char *name, const char *stem, uint32_t count, uint32_t *out) {
    uint64_t number = 0;
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0 || !mimus__text_to_u64(name + length, &number) ||
        number >= count)
        return false;
    *out = (uint32_t)number;
    return true;
}

/* How many senses and heads have the name; the last of them is set. */
static int find_named(term *t, const mimus_schema *schema) {
    int found = 0;
    for (uint32_t s = 0; schema->sense_names != NULL && s < schema->senses; s++) {
        if (strcmp(schema->sense_names[s], t->name) == 0) {
            t->is_head = false;
            t->index = s;
            found++;
        }
    }
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (schema->head[h].name != NULL && strcmp(schema->head[h].name, t->name) == 0) {
            t->is_head = true;
            t->index = h;
            found++;
        }
    }
    return found;
}

static mimus_status bind_name(term *t, const mimus_schema *schema) {
    int found = find_named(t, schema);
    if (found > 1)
        return mimus__fail(
            MIMUS_ERR_ARGUMENT,
            "where: %d senses and heads are called \"%.80s\"; say sense0, head0, ...", found,
            t->name);
    if (found == 1)
        return MIMUS_OK;
    t->is_head = is_numbered(t->name, "head", schema->heads, &t->index);
    if (t->is_head || is_numbered(t->name, "sense", schema->senses, &t->index))
        return MIMUS_OK;
    return mimus__fail(
        MIMUS_ERR_ARGUMENT,
        "where: no sense or head is called \"%.80s\"; there are sense0 to sense%u%s, "
        "head0 to head%u",
        t->name, schema->senses - 1, schema->sense_names != NULL ? " and their names" : "",
        schema->heads - 1);
}

static mimus_status bind_value(term *t, const mimus_schema *schema) {
    const mimus_head *head = t->is_head ? &schema->head[t->index] : NULL;
    for (uint32_t a = 0; head != NULL && head->action_names != NULL && a < head->actions; a++) {
        if (strcmp(head->action_names[a], t->value) != 0)
            continue;
        t->number = a;
        if (t->operation == EQUAL || t->operation == UNEQUAL)
            return MIMUS_OK;
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "where: \"%.80s\" is an action of %.80s: it is compared with = or !=",
                           t->value, t->name);
    }
    if (mimus__text_to_double(t->value, &t->number))
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_ARGUMENT, "where: \"%.80s\" is no number%s", t->value,
                       head != NULL ? ", and no action of the head" : "");
}

/* Every file's schema is the first one's, or the sink refuses it. */
static mimus_status bind(mimus__filter *filter, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < filter->terms && !filter->bound; i++) {
        MIMUS_TRY(bind_name(&filter->term[i], schema));
        MIMUS_TRY(bind_value(&filter->term[i], schema));
    }
    filter->bound = true;
out:
    return status;
}

/* ------------------------------------------------------------------- judge */

static bool holds(const term *t, double value) {
    switch (t->operation) {
    case EQUAL:
        return value == t->number;
    case UNEQUAL:
        return value != t->number;
    case LESS:
        return value < t->number;
    case AT_MOST:
        return value <= t->number;
    case MORE:
        return value > t->number;
    case AT_LEAST:
        return value >= t->number;
    case OPERATIONS:
        break;
    }
    return false;
}

static bool is_wanted_episode(const mimus__filter *filter) {
    bool wanted = filter->ranges == 0;
    for (size_t i = 0; i < filter->ranges && !wanted; i++)
        wanted =
            filter->episode >= filter->range[i].first && filter->episode < filter->range[i].end;
    return wanted;
}

/* A sense's number as people write it, not as float has it: 0.1, not 0.100000001. */
static double plain(float value) {
    char digits[32];
    double number = (double)value;
    if (value == floorf(value) || !isfinite(value))
        return number;
    snprintf(digits, sizeof digits, "%.7g", number);
    double shorter = strtod(digits, NULL);
    return (float)shorter == value ? shorter : number;
}

/* Whether the sample is to be taken; counts it. */
static bool judge(mimus__filter *filter, const float *senses, const uint16_t *actions) {
    const mimus_schema *schema = filter->into->schema;
    filter->in_episode = true;
    filter->seen++;
    if (!is_wanted_episode(filter))
        return false;
    for (size_t i = 0; i < filter->terms; i++) {
        const term *t = &filter->term[i];
        float value = t->is_head ? mimus_head_value(&schema->head[t->index], actions[t->index])
                                 : senses[t->index];
        if (!holds(t, plain(value)))
            return false;
    }
    filter->taken++;
    return true;
}

/* -------------------------------------------------------------------- sink */

static mimus_status end_episode(mimus__sink *sink) {
    mimus__filter *filter = (mimus__filter *)sink;
    filter->episode += filter->in_episode;
    filter->in_episode = false;
    return mimus__sink_end_episode(&filter->into->sink);
}

static mimus_status begin(mimus__sink *sink, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    mimus__filter *filter = (mimus__filter *)sink;
    MIMUS_TRY(mimus__sink_begin(&filter->into->sink, schema));
    MIMUS_TRY(bind(filter, filter->into->schema));
    MIMUS_TRY(end_episode(sink)); /* a file begins one */
out:
    return status;
}

bool mimus__filter_is_full(const mimus__filter *filter) {
    return filter != NULL && (filter->taken >= filter->limit ||
                              (filter->ranges > 0 && filter->episode >= filter->last_episode));
}

static mimus_status append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                           const uint8_t *legal, float weight) {
    mimus__filter *filter = (mimus__filter *)sink;
    if (mimus__filter_is_full(filter))
        return mimus__fail(MIMUS_ERR_STOPPED, "everything that was wanted is there");
    if (!judge(filter, senses, actions))
        return MIMUS_OK;
    return mimus__sink_append(&filter->into->sink, senses, actions, legal, weight);
}

mimus_status mimus__filter_block(mimus__filter *filter, const mimus__block *block) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = filter->into->schema;
    for (uint32_t i = 0; i < block->samples; i++) {
        const float *senses = block->senses + (size_t)i * schema->senses;
        const uint16_t *actions = block->actions + (size_t)i * schema->heads;
        const uint32_t *mask = block->masks;
        if (mask != NULL)
            mask += (size_t)i * block->mask_words;
        if ((block->starts[i / 32] >> (i % 32) & 1) != 0)
            MIMUS_TRY(end_episode(&filter->sink));
        if (mimus__filter_is_full(filter))
            break;
        if (judge(filter, senses, actions))
            MIMUS_TRY(
                mimus__chunk_sink_append_packed(filter->into, senses, actions, mask,
                                                block->weights != NULL ? block->weights[i] : 1.0F));
    }
out:
    return status;
}

mimus_status mimus__filter_settle(const mimus__filter *filter, mimus_status status) {
    return status == MIMUS_ERR_STOPPED && mimus__filter_is_full(filter) ? MIMUS_OK : status;
}

/* ------------------------------------------------------------------- whole */

mimus_status mimus__filter_new(mimus__filter **out, const mimus_source *source,
                               mimus__chunk_sink *into) {
    mimus_status status = MIMUS_OK;
    mimus__filter *filter = NULL;
    *out = NULL;
    if (source->where == NULL && source->episodes == NULL && source->limit == 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&filter, 1, sizeof *filter));
    filter->sink = (mimus__sink){.begin = begin,
                                 .append = append,
                                 .end_episode = end_episode,
                                 .bins = into->sink.bins,
                                 .like = into->sink.like};
    filter->into = into;
    filter->limit = source->limit > 0 ? source->limit : UINT64_MAX;
    if (source->where != NULL)
        MIMUS_TRY(parse_where(filter, source->where));
    if (source->episodes != NULL)
        MIMUS_TRY(parse_episodes(filter, source->episodes));
    *out = filter;
    filter = NULL;
out:
    mimus__filter_free(filter);
    return status;
}

mimus__sink *mimus__filter_sink(mimus__filter *filter, mimus__chunk_sink *into) {
    return filter != NULL ? &filter->sink : &into->sink;
}

mimus_status mimus__filter_finish(const mimus__filter *filter, const mimus_watch *watch) {
    if (filter == NULL)
        return MIMUS_OK;
    if (filter->taken == 0)
        return mimus__fail(
            MIMUS_ERR_DATA,
            "none of %llu samples in %llu episodes is among what where, episodes and "
            "limit take",
            (unsigned long long)filter->seen,
            (unsigned long long)(filter->episode + filter->in_episode));
    mimus__watch_message(watch, "%llu samples are taken, of %llu that were looked at",
                         (unsigned long long)filter->taken, (unsigned long long)filter->seen);
    return MIMUS_OK;
}

#include "schema.h"

#include "alloc.h"
#include "text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mimus_status check_name(const char *name, const char *what, uint32_t index) {
    if (name == NULL)
        return mimus__fail(MIMUS_ERR_SCHEMA, "%s %u has no name and others have", what, index);
    if (!mimus__text_is_utf8(name))
        return mimus__fail(MIMUS_ERR_SCHEMA, "the name of %s %u is not UTF-8", what, index);
    return MIMUS_OK;
}

static mimus_status check_names(const char *const *names, uint32_t count, const char *what) {
    mimus_status status = MIMUS_OK;
    for (uint32_t i = 0; names != NULL && i < count; i++)
        MIMUS_TRY(check_name(names[i], what, i));
out:
    return status;
}

static bool all_finite(const float *values, uint32_t count) {
    uint32_t i = 0;
    while (i < count && isfinite(values[i]))
        i++;
    return i == count;
}

static mimus_status check_bins(const mimus_head *head, uint32_t index) {
    const uint32_t edges = head->actions - 1;
    if (head->bin_edges == NULL && head->bin_values == NULL)
        return MIMUS_OK;
    if (head->bin_edges == NULL || head->bin_values == NULL)
        return mimus__fail(MIMUS_ERR_SCHEMA, "head %u: bins have edges and values, not one of them",
                           index);
    if (!all_finite(head->bin_edges, edges) || !all_finite(head->bin_values, head->actions))
        return mimus__fail(MIMUS_ERR_SCHEMA, "head %u: an edge or value of its bins is not finite",
                           index);
    for (uint32_t i = 1; i < edges; i++) {
        if (!(head->bin_edges[i - 1] < head->bin_edges[i]))
            return mimus__fail(MIMUS_ERR_SCHEMA, "head %u: edge %u of its bins is %.9g, after %.9g",
                               index, i, (double)head->bin_edges[i],
                               (double)head->bin_edges[i - 1]);
    }
    return MIMUS_OK;
}

static mimus_status check_head(const mimus_head *head, uint32_t index) {
    mimus_status status = MIMUS_OK;
    if (head->actions < 2 || head->actions > MIMUS__MAX_ACTIONS)
        return mimus__fail(MIMUS_ERR_SCHEMA, "head %u: 2 to %d actions, not %u", index,
                           MIMUS__MAX_ACTIONS, head->actions);
    if (head->name != NULL)
        MIMUS_TRY(check_name(head->name, "head", index));
    if (check_names(head->action_names, head->actions, "action") != MIMUS_OK)
        return mimus__fail_prefix(MIMUS_ERR_SCHEMA, "head %u", index);
    MIMUS_TRY(check_bins(head, index));
out:
    return status;
}

static mimus_status check(const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    uint64_t total = 0;
    if (schema->senses > MIMUS__MAX_SENSES)
        return mimus__fail(MIMUS_ERR_SCHEMA, "at most %d senses, not %u", MIMUS__MAX_SENSES,
                           schema->senses);
    if (schema->heads < 1 || schema->heads > MIMUS__MAX_HEADS || schema->head == NULL)
        return mimus__fail(MIMUS_ERR_SCHEMA, "1 to %d heads, not %u", MIMUS__MAX_HEADS,
                           schema->head != NULL ? schema->heads : 0);
    MIMUS_TRY(check_names(schema->sense_names, schema->senses, "sense"));
    for (uint32_t h = 0; h < schema->heads; h++) {
        MIMUS_TRY(check_head(&schema->head[h], h));
        total += schema->head[h].actions;
    }
    if (total > MIMUS__MAX_TOTAL_ACTIONS)
        status = mimus__fail(MIMUS_ERR_SCHEMA, "at most %d actions in all heads, not %llu",
                             MIMUS__MAX_TOTAL_ACTIONS, (unsigned long long)total);
out:
    return status;
}

/* A copy is one block: the schema, its heads, the tables of names, the bins, then the letters. So
 * it is measured first, and freed at once. */
enum { HEAD_NAME_BYTES = sizeof "head4095" };

static size_t table_bytes(const char *const *names, uint32_t count) {
    return names != NULL ? count * sizeof *names : 0;
}

static size_t letter_bytes(const char *const *names, uint32_t count) {
    size_t bytes = 0;
    for (uint32_t i = 0; names != NULL && i < count; i++)
        bytes += strlen(names[i]) + 1;
    return bytes;
}

static size_t bin_bytes(const mimus_head *head) {
    return head->bin_edges != NULL ? (2 * (size_t)head->actions - 1) * sizeof(float) : 0;
}

static const float *place_numbers(float **numbers, const float *from, uint32_t count) {
    float *placed = memcpy(*numbers, from, count * sizeof *from);
    *numbers += count;
    return placed;
}

static const char *place_text(char **letters, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *placed = memcpy(*letters, text, bytes);
    *letters += bytes;
    return placed;
}

static const char *const *place_names(const char ***table, char **letters, const char *const *names,
                                      uint32_t count) {
    if (names == NULL)
        return NULL;
    const char **placed = *table;
    for (uint32_t i = 0; i < count; i++)
        placed[i] = place_text(letters, names[i]);
    *table += count;
    return placed;
}

mimus_status mimus__schema_copy(mimus_schema **out, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    *out = NULL;
    MIMUS_TRY(check(schema));

    size_t fixed = sizeof *schema + schema->heads * sizeof *schema->head;
    size_t tables = table_bytes(schema->sense_names, schema->senses), bins = 0;
    size_t text = letter_bytes(schema->sense_names, schema->senses);
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus_head *head = &schema->head[h];
        tables += table_bytes(head->action_names, head->actions);
        bins += bin_bytes(head);
        text += letter_bytes(head->action_names, head->actions);
        text += head->name != NULL ? strlen(head->name) + 1 : HEAD_NAME_BYTES;
    }
    char *block = NULL;
    MIMUS_TRY(mimus__alloc(&block, fixed + tables + bins + text, 1));

    mimus_schema *copy = (mimus_schema *)(void *)block;
    mimus_head *heads = (mimus_head *)(void *)(block + sizeof *schema);
    const char **table = (const char **)(void *)(block + fixed);
    float *numbers = (float *)(void *)(block + fixed + tables);
    char *letters = block + fixed + tables + bins;
    *copy = *schema;
    copy->head = heads;
    copy->sense_names = place_names(&table, &letters, schema->sense_names, schema->senses);
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus_head *head = &schema->head[h];
        char numbered[HEAD_NAME_BYTES];
        snprintf(numbered, sizeof numbered, "head%u", h % MIMUS__MAX_HEADS);
        heads[h].name = place_text(&letters, head->name != NULL ? head->name : numbered);
        heads[h].actions = head->actions;
        heads[h].action_names = place_names(&table, &letters, head->action_names, head->actions);
        if (head->bin_edges != NULL) {
            heads[h].bin_edges = place_numbers(&numbers, head->bin_edges, head->actions - 1);
            heads[h].bin_values = place_numbers(&numbers, head->bin_values, head->actions);
        }
    }
    assert(letters <= block + fixed + tables + bins + text);
    *out = copy;
out:
    return status;
}

void mimus__schema_free(mimus_schema *schema) {
    free(schema);
}

/* (count) names as a JSON array, or their count. */
static mimus_status names_to_json(json_t **out, const char *const *names, uint32_t count) {
    mimus_status status = MIMUS_OK;
    *out = names != NULL ? json_array() : json_integer(count);
    if (*out == NULL)
        return mimus__fail(MIMUS_ERR_MEMORY, "cannot make a JSON value");
    for (uint32_t i = 0; names != NULL && i < count; i++)
        MIMUS_TRY(mimus__json_append(*out, json_string(names[i])));
out:
    if (status != MIMUS_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* As many digits as tell floats apart: 0.3, not 0.30000001192092896. */
static mimus_status numbers_to_json(json_t *object, const char *key, const float *numbers,
                                    uint32_t count) {
    mimus_status status = MIMUS_OK;
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        MIMUS_TRY(mimus__json_append(array, json_real((double)numbers[i])));
    mimus__json_round(array);
    MIMUS_TRY(mimus__json_set(object, key, json_incref(array)));
out:
    json_decref(array);
    return status;
}

static mimus_status head_to_json(json_t *array, const mimus_head *head, uint32_t index) {
    mimus_status status = MIMUS_OK;
    json_t *object = json_object();
    json_t *actions = NULL;
    char numbered[HEAD_NAME_BYTES];
    snprintf(numbered, sizeof numbered, "head%u", index % MIMUS__MAX_HEADS);
    const char *name = head->name != NULL ? head->name : numbered;
    MIMUS_TRY(mimus__json_set(object, "name", json_string(name)));
    MIMUS_TRY(names_to_json(&actions, head->action_names, head->actions));
    MIMUS_TRY(mimus__json_set(object, "actions", actions));
    if (head->bin_edges != NULL) {
        MIMUS_TRY(numbers_to_json(object, "edges", head->bin_edges, head->actions - 1));
        MIMUS_TRY(numbers_to_json(object, "values", head->bin_values, head->actions));
    }
    MIMUS_TRY(mimus__json_append(array, json_incref(object)));
out:
    json_decref(object);
    return status;
}

mimus_status mimus__schema_to_json(json_t **out, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    json_t *object = json_object();
    json_t *heads = json_array();
    json_t *senses = NULL;
    *out = NULL;
    MIMUS_TRY(names_to_json(&senses, schema->sense_names, schema->senses));
    MIMUS_TRY(mimus__json_set(object, "senses", senses));
    for (uint32_t h = 0; h < schema->heads; h++)
        MIMUS_TRY(head_to_json(heads, &schema->head[h], h));
    MIMUS_TRY(mimus__json_set(object, "heads", json_incref(heads)));
    MIMUS_TRY(mimus__json_set(object, "masks", json_boolean(schema->masks)));
    MIMUS_TRY(mimus__json_set(object, "weights", json_boolean(schema->weights)));
    *out = json_incref(object);
out:
    json_decref(heads);
    json_decref(object);
    return status;
}

/* What `value` gives: a count, or an array of that many names (`*names`, of borrowed strings, to
 * be freed). `limit` is checked here so that nothing large is allocated for a hostile file. */
static mimus_status names_from_json(const char ***names, uint32_t *count, const json_t *value,
                                    uint32_t limit, const char *where, const char *what) {
    mimus_status status = MIMUS_OK;
    *names = NULL;
    if (!json_is_integer(value) && !json_is_array(value))
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be a number or an array of names",
                           where, what);
    json_int_t wanted =
        json_is_array(value) ? (json_int_t)json_array_size(value) : json_integer_value(value);
    if (wanted < 0 || wanted > (json_int_t)limit)
        return mimus__fail(MIMUS_ERR_SCHEMA, "%s: at most %u %s, not %lld", where, limit, what,
                           (long long)wanted);
    *count = (uint32_t)wanted;
    if (json_is_integer(value))
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(names, *count, sizeof **names));
    for (uint32_t i = 0; i < *count; i++) {
        (*names)[i] = json_string_value(json_array_get(value, i));
        if ((*names)[i] == NULL) {
            status = mimus__fail(MIMUS_ERR_FORMAT, "%s: name %u of \"%s\" is not a string", where,
                                 i, what);
            goto out;
        }
    }
out:
    return status;
}

/* The array of that name, in new memory; NULL where there is none. */
static mimus_status numbers_from_json(const float **out, const json_t *object, const char *key,
                                      size_t count, const char *where) {
    mimus_status status = MIMUS_OK;
    const json_t *array = json_object_get(object, key);
    float *numbers = NULL;
    *out = NULL;
    if (array == NULL)
        return MIMUS_OK;
    if (json_array_size(array) != count)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: \"%s\" should be an array of %zu numbers", where,
                           key, count);
    MIMUS_TRY(mimus__alloc(&numbers, count, sizeof *numbers));
    *out = numbers;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_number(number)) {
            status = mimus__fail(MIMUS_ERR_FORMAT, "%s: element %zu of \"%s\" is not a number",
                                 where, i, key);
            goto out;
        }
        numbers[i] = (float)json_number_value(number);
    }
out:
    return status;
}

static mimus_status head_from_json(mimus_head *head, const json_t *value, const char *where,
                                   size_t index) {
    mimus_status status = MIMUS_OK;
    char *here = NULL;
    const char **names = NULL;
    MIMUS_TRY(mimus__text_format(&here, "%s: head %zu", where, index));
    MIMUS_TRY(mimus__json_get_string(value, "name", here, &head->name));
    status = names_from_json(&names, &head->actions, json_object_get(value, "actions"),
                             MIMUS__MAX_ACTIONS, here, "actions");
    head->action_names = names; /* freed by the caller, also after a failure, as the bins are */
    if (status != MIMUS_OK || head->actions < 2)
        goto out; /* mimus__schema_copy says what is wrong with the number of actions */
    MIMUS_TRY(numbers_from_json(&head->bin_edges, value, "edges", head->actions - 1, here));
    MIMUS_TRY(numbers_from_json(&head->bin_values, value, "values", head->actions, here));
out:
    free(here);
    return status;
}

mimus_status mimus__schema_from_json(mimus_schema **out, const json_t *json, const char *where) {
    mimus_status status = MIMUS_OK;
    const json_t *array = json_object_get(json, "heads");
    mimus_schema schema = {0};
    mimus_head *heads = NULL;
    const char **sense_names = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__json_get_bool(json, "masks", where, &schema.masks));
    MIMUS_TRY(mimus__json_get_bool(json, "weights", where, &schema.weights));
    MIMUS_TRY(names_from_json(&sense_names, &schema.senses, json_object_get(json, "senses"),
                              MIMUS__MAX_SENSES, where, "senses"));
    schema.sense_names = sense_names;
    if (!json_is_array(array) || json_array_size(array) > MIMUS__MAX_HEADS) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: \"heads\" should be an array of 1 to %d heads",
                             where, MIMUS__MAX_HEADS);
        goto out;
    }
    MIMUS_TRY(mimus__alloc(&heads, json_array_size(array), sizeof *heads));
    for (; schema.heads < json_array_size(array); schema.heads++)
        MIMUS_TRY(head_from_json(&heads[schema.heads], json_array_get(array, schema.heads), where,
                                 schema.heads));
    schema.head = heads;
    status = mimus__schema_copy(out, &schema);
    if (status != MIMUS_OK)
        mimus__fail_prefix(status, "%s", where);
out:
    for (size_t h = 0; heads != NULL && h < json_array_size(array); h++) {
        free((void *)heads[h].action_names);
        free((void *)heads[h].bin_edges);
        free((void *)heads[h].bin_values);
    }
    free(heads);
    free(sense_names);
    return status;
}

/* Two schemas and what to call them, for the messages. */
typedef struct pair {
    const mimus_schema *a, *b;
    const char *a_name, *b_name;
} pair;

static mimus_status differ(const pair *p, const char *what, uint32_t a, uint32_t b) {
    return mimus__fail(MIMUS_ERR_SCHEMA, "%s: %u in %s, %u in %s", what, a, p->a_name, b,
                       p->b_name);
}

static mimus_status match_name(const pair *p, const char *what, uint32_t index, const char *a,
                               const char *b) {
    if (a == NULL || b == NULL || strcmp(a, b) == 0)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_SCHEMA, "%s %u: \"%s\" in %s, \"%s\" in %s", what, index, a,
                       p->a_name, b, p->b_name);
}

static mimus_status match_names(const pair *p, const char *what, const char *const *a,
                                const char *const *b, uint32_t count) {
    mimus_status status = MIMUS_OK;
    for (uint32_t i = 0; a != NULL && b != NULL && i < count; i++)
        MIMUS_TRY(match_name(p, what, i, a[i], b[i]));
out:
    return status;
}

static mimus_status match_numbers(const pair *p, uint32_t h, const char *what, const float *a,
                                  const float *b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (a[i] != b[i])
            return mimus__fail(MIMUS_ERR_SCHEMA,
                               "head %u, %s %u of its bins: %.9g in %s, %.9g in %s", h, what, i,
                               (double)a[i], p->a_name, (double)b[i], p->b_name);
    }
    return MIMUS_OK;
}

static mimus_status match_bins(const pair *p, uint32_t h) {
    mimus_status status = MIMUS_OK;
    const mimus_head *a = &p->a->head[h], *b = &p->b->head[h];
    if (a->bin_edges == NULL || b->bin_edges == NULL)
        return MIMUS_OK;
    MIMUS_TRY(match_numbers(p, h, "edge", a->bin_edges, b->bin_edges, a->actions - 1));
    MIMUS_TRY(match_numbers(p, h, "value", a->bin_values, b->bin_values, a->actions));
out:
    return status;
}

static mimus_status match_head(const pair *p, uint32_t h) {
    mimus_status status = MIMUS_OK;
    const mimus_head *a = &p->a->head[h], *b = &p->b->head[h];
    char what[64];
    MIMUS_TRY(match_name(p, "head", h, a->name, b->name));
    snprintf(what, sizeof what, "actions of head %u", h);
    if (a->actions != b->actions)
        return differ(p, what, a->actions, b->actions);
    snprintf(what, sizeof what, "head %u, action", h);
    MIMUS_TRY(match_names(p, what, a->action_names, b->action_names, a->actions));
    MIMUS_TRY(match_bins(p, h));
out:
    return status;
}

static mimus_status match_column(const pair *p, const char *what, bool a, bool b) {
    if (a == b)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_SCHEMA, "%s has %s and %s has none", a ? p->a_name : p->b_name,
                       what, a ? p->b_name : p->a_name);
}

mimus_status mimus__schema_match(const mimus_schema *a, const char *a_name, const mimus_schema *b,
                                 const char *b_name, bool strict) {
    mimus_status status = MIMUS_OK;
    const pair p = {a, b, a_name, b_name};
    if (a->senses != b->senses)
        return differ(&p, "senses", a->senses, b->senses);
    if (a->heads != b->heads)
        return differ(&p, "heads", a->heads, b->heads);
    MIMUS_TRY(match_names(&p, "sense", a->sense_names, b->sense_names, a->senses));
    for (uint32_t h = 0; h < a->heads; h++)
        MIMUS_TRY(match_head(&p, h));
    if (strict) {
        MIMUS_TRY(match_column(&p, "masks", a->masks, b->masks));
        MIMUS_TRY(match_column(&p, "weights", a->weights, b->weights));
        for (uint32_t h = 0; h < a->heads; h++) {
            char what[32];
            snprintf(what, sizeof what, "bins for head %u", h);
            MIMUS_TRY(
                match_column(&p, what, a->head[h].bin_edges != NULL, b->head[h].bin_edges != NULL));
        }
    }
out:
    return status;
}

float mimus_head_value(const mimus_head *head, uint16_t action) {
    if (head == NULL || action >= head->actions)
        return NAN;
    return head->bin_values != NULL ? head->bin_values[action] : (float)action;
}

/* How many edges the number has reached. */
static uint32_t find_bin(const float *edges, uint32_t count, float value) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (value < edges[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint16_t mimus_head_action(const mimus_head *head, float value) {
    if (head == NULL || !isfinite(value))
        return MIMUS_NO_LABEL;
    if (head->bin_edges != NULL)
        return (uint16_t)find_bin(head->bin_edges, head->actions - 1, value);
    bool whole = value >= 0 && value < (float)head->actions && value == (float)(uint16_t)value;
    return whole ? (uint16_t)value : MIMUS_NO_LABEL;
}

uint32_t mimus__schema_actions(const mimus_schema *schema) {
    uint32_t total = 0;
    for (uint32_t h = 0; h < schema->heads; h++)
        total += schema->head[h].actions;
    return total;
}

uint32_t mimus__schema_mask_words(const mimus_schema *schema) {
    return schema->masks ? (mimus__schema_actions(schema) + 31) / 32 : 0;
}

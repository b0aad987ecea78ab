#include "schema.h"

#include "alloc.h"
#include "text.h"

#include <assert.h>
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

static mimus_status check_head(const mimus_head *head, uint32_t index) {
    mimus_status status = MIMUS_OK;
    if (head->actions < 2 || head->actions > MIMUS__MAX_ACTIONS)
        return mimus__fail(MIMUS_ERR_SCHEMA, "head %u: 2 to %d actions, not %u", index,
                           MIMUS__MAX_ACTIONS, head->actions);
    if (head->name != NULL)
        MIMUS_TRY(check_name(head->name, "head", index));
    if (check_names(head->action_names, head->actions, "action") != MIMUS_OK)
        status = mimus__fail_prefix(MIMUS_ERR_SCHEMA, "head %u", index);
out:
    return status;
}

static mimus_status check(const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    uint64_t total = 0;
    if (schema->senses < 1 || schema->senses > MIMUS__MAX_SENSES)
        return mimus__fail(MIMUS_ERR_SCHEMA, "1 to %d senses, not %u", MIMUS__MAX_SENSES,
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

/* A copy is one block: the schema, its heads, the tables of names, then the letters. So it is
 * measured first, and freed at once. */
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
    size_t tables = table_bytes(schema->sense_names, schema->senses);
    size_t text = letter_bytes(schema->sense_names, schema->senses);
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus_head *head = &schema->head[h];
        tables += table_bytes(head->action_names, head->actions);
        text += letter_bytes(head->action_names, head->actions);
        text += head->name != NULL ? strlen(head->name) + 1 : HEAD_NAME_BYTES;
    }
    char *block = NULL;
    MIMUS_TRY(mimus__alloc(&block, fixed + tables + text, 1));

    mimus_schema *copy = (mimus_schema *)(void *)block;
    mimus_head *heads = (mimus_head *)(void *)(block + sizeof *schema);
    const char **table = (const char **)(void *)(block + fixed);
    char *letters = block + fixed + tables;
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
    }
    assert(letters <= block + fixed + tables + text);
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

static mimus_status head_from_json(mimus_head *head, const json_t *value, const char *where,
                                   size_t index) {
    mimus_status status = MIMUS_OK;
    char *here = NULL;
    const char **names = NULL;
    MIMUS_TRY(mimus__text_format(&here, "%s: head %zu", where, index));
    MIMUS_TRY(mimus__json_get_string(value, "name", here, &head->name));
    status = names_from_json(&names, &head->actions, json_object_get(value, "actions"),
                             MIMUS__MAX_ACTIONS, here, "actions");
    head->action_names = names; /* freed by the caller, also after a failure */
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
    for (size_t h = 0; heads != NULL && h < json_array_size(array); h++)
        free((void *)heads[h].action_names);
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

static mimus_status match_head(const pair *p, uint32_t h) {
    mimus_status status = MIMUS_OK;
    const mimus_head *a = &p->a->head[h], *b = &p->b->head[h];
    char what[64];
    MIMUS_TRY(match_name(p, "head", h, a->name, b->name));
    snprintf(what, sizeof what, "actions of head %u", h);
    if (a->actions != b->actions)
        return differ(p, what, a->actions, b->actions);
    snprintf(what, sizeof what, "head %u, action", h);
    status = match_names(p, what, a->action_names, b->action_names, a->actions);
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
    }
out:
    return status;
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

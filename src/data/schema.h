/* schema - what a sample holds: owned copies, comparison, and the JSON form that recordings and
 * checkpoints keep.
 *
 * JSON: {"senses": ["x", ...] or 143, "heads": [{"name": "gun", "actions": ["hold", "fire"] or 2},
 * {"name": "steer", "actions": 3, "edges": [-0.3, 0.3], "values": [-0.6, 0, 0.6]}, ...], "masks":
 * true, "weights": false}. */
#ifndef MIMUS_DATA_SCHEMA_H
#define MIMUS_DATA_SCHEMA_H

#include "json.h"

/* Limits that every reader may rely on before it allocates. */
enum {
    MIMUS__MAX_SENSES = 1 << 20,
    MIMUS__MAX_HEADS = 4096,
    MIMUS__MAX_ACTIONS = 65534, /* of one head; 0xFFFF is MIMUS_NO_LABEL */
    MIMUS__MAX_TOTAL_ACTIONS = 1 << 20,
};

/* A deep copy, checked against the limits (MIMUS_ERR_SCHEMA says which); heads without a name get
 * "head0", .... Free with mimus__schema_free. */
mimus_status mimus__schema_copy(mimus_schema **out, const mimus_schema *schema);
void mimus__schema_free(mimus_schema *schema);

mimus_status mimus__schema_to_json(json_t **out, const mimus_schema *schema);
mimus_status mimus__schema_from_json(mimus_schema **out, const json_t *json, const char *where);

/* MIMUS_ERR_SCHEMA naming the first difference and both sides: senses, heads, actions, names and
 * bins where both have them. Masks and weights, and whether there are bins, must agree only when
 * `strict`. */
mimus_status mimus__schema_match(const mimus_schema *a, const char *a_name, const mimus_schema *b,
                                 const char *b_name, bool strict);

/* A: the actions of all heads together. */
uint32_t mimus__schema_actions(const mimus_schema *schema);
/* 32-bit words of one sample's packed mask, ceil(A/32); bit a of the flattened heads is word a/32,
 * bit a%32; 1 = legal. 0 when the schema has no masks. */
uint32_t mimus__schema_mask_words(const mimus_schema *schema);

#endif

/* samples - what an exported policy is tried on: senses as the network takes them, and masks. */
#ifndef MIMUS_APP_SAMPLES_H
#define MIMUS_APP_SAMPLES_H

#include "model.h"

typedef struct mimus__samples {
    uint32_t count;    /* n */
    const char *which; /* "held out", "recorded", "made up" */
    float *senses;     /* (n, K * S) raw, finite, the oldest of stacked samples first */
    uint8_t *legal;    /* (n, A) */
} mimus__samples;

/* How many are worth the time and the memory: 10,000 for all but very large networks. */
uint32_t mimus__samples_most(const mimus__shape *shape);

/* Senses around what the policy learned from, and masks that leave one or more actions of every
 * head (all of them where the schema has no masks). Always the same ones. */
mimus_status mimus__samples_make_up(mimus__samples *out, const mimus__model *model, uint32_t count);

/* The first `count`, at most, of a recording: of its held-out part where the model was trained on
 * it, else of the whole; made up where that part is empty. `where` names the model in messages. */
mimus_status mimus__samples_read(mimus__samples *out, const mimus__model *model, const char *where,
                                 const mimus_source *source, uint32_t count,
                                 const mimus_watch *watch);

void mimus__samples_clear(mimus__samples *samples);

#endif

/* made_model - networks of random numbers, for whatever takes a model. */
#ifndef MIMUS_TEST_MADE_MODEL_H
#define MIMUS_TEST_MADE_MODEL_H

#include "model.h"

typedef struct test_network {
    uint32_t senses, stack;
    mimus__activation activation;
    uint32_t hidden[3]; /* ends with a 0, or at 3 */
    uint32_t heads;
    const mimus_head *head; /* (heads) */
    bool masks;
} test_network;

/* Every weight, bias, mean and scale is random, one scale in five is 0; the same for the same
 * `seed`. */
mimus__model *test_model(const test_network *network, uint64_t seed);

/* Three heads, of 2, 5 and 63 actions; the second is bins. */
extern const mimus_head test_heads[3];

#endif

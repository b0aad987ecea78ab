/* store - the recording on the device: uploaded once, packed, in shards.
 *
 * A row is words of 32 bits:
 *
 *     senses   S or ceil(S/2)  float32, or two in 16 bits, the first in the low half
 *     actions  ceil(H/2)       u16 pairs, low half first; 0xFFFF = no label
 *     mask     ceil(A/32)      bit a of the flattened heads, 1 = legal; only when the recording has
 *                              masks
 *     weight   1               float32, mean 1 over the training rows; only when it has weights
 *     age      1               samples since the stretch began (0 = first); only when stack > 1
 *
 * In 16 bits (f16: binary16, bf16: bfloat16) senses are packed after normalisation, and gathered by
 * a mean of 0 and a scale of 1: a position of 3000 +- 1 would lose all that it says if it were
 * packed as it is, and 65504 is no bound for what a game measures in. Normalised, a training
 * sample's sense is below sqrt(N) (Samuelson 1968), which f16 holds; a held-out one that lies still
 * further out stays at the largest number. So all runs that train on such a store share its
 * normalisation. Arithmetic is float32 whatever the form.
 *
 * All but the senses are the row's label words, which gather copies into the batch. Rows 0 ..
 * training-1 are the training part in recording order, the held-out part follows: no index is
 * needed on the device, and a frame's predecessors in its episode are the rows before it. Shards
 * hold 2^shift rows each. */
#ifndef MIMUS_HOST_STORE_H
#define MIMUS_HOST_STORE_H

#include "config.h"
#include "launch.h"
#include "split.h"

enum { MIMUS__MAX_SHARDS = 16 };

typedef struct mimus__row_layout {
    mimus__store_form form;
    uint32_t senses;       /* S */
    uint32_t sense_words;  /* of the row's beginning */
    uint32_t action_words; /* at label word 0 */
    uint32_t mask_words;   /* at action_words; 0: none */
    uint32_t weight_word;  /* label word of the weight; 0: none */
    uint32_t age_word;     /* label word of the age; 0: none */
    uint32_t label_words;  /* all of them */
    uint32_t words;        /* sense_words + label_words */
} mimus__row_layout;

/* `form` is not AUTO. */
mimus__row_layout mimus__row_layout_of(const mimus_schema *schema, uint32_t stack,
                                       mimus__store_form form);

/* How to pack. */
typedef struct mimus__store_recipe {
    mimus__store_form form; /* not AUTO */
    uint32_t stack;
    double mean_weight;   /* of the training part's weights, which become 1; 0: left as they are */
    uint64_t shard_bytes; /* bounds a shard; 0: what the device's largest buffer allows */
    const float *mean;    /* (S) 16 bits: pack (sense - mean) * scale; NULL: the sense as it is */
    const float *scale;   /* (S) with mean */
} mimus__store_recipe;

typedef struct mimus__store {
    mimus__row_layout layout;
    bool normalised;   /* gather by a mean of 0 and a scale of 1 */
    uint32_t training; /* rows */
    uint32_t heldout;  /* rows */
    uint32_t shards;
    uint32_t shift;
    mimus__buffer shard[MIMUS__MAX_SHARDS];
} mimus__store;

/* The settings of cl/gather.clh: shards, the row's words, `stack`. */
void mimus__store_define(const mimus__store *store, uint32_t stack, mimus__defines *defines);

/* The arguments that SHARD_PARAMETERS (cl/shards.clh) stands for into `arguments`, at most
 * MIMUS__MAX_SHARDS; returns how many. */
size_t mimus__store_arguments(const mimus__store *store, mimus__arg *arguments);

/* Whether so many rows can lie on the device, with `besides` bytes of its room left for others. */
bool mimus__store_fits(const mimus__device *device, const mimus__row_layout *layout, uint64_t rows,
                       uint64_t shard_bytes, uint64_t besides);

/* Pack and upload the rows of `split`; blocks. MIMUS_ERR_MEMORY says how much the recording takes
 * and how much there is. */
mimus_status mimus__store_new(mimus__store *out, mimus__device *device,
                              const mimus__recording *recording, const mimus__audit *audit,
                              const mimus__split *split, const mimus__store_recipe *recipe,
                              const mimus_watch *watch);
void mimus__store_free(mimus__store *store);

#endif

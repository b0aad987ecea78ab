/* sample - a small made-up recording, in arrays and as the data layer sees it. */
#ifndef MIMUS_TEST_SAMPLE_H
#define MIMUS_TEST_SAMPLE_H

#include "dataset.h"

/* What to make up. */
typedef struct sample_recipe {
    uint32_t senses;
    uint32_t heads;
    uint32_t actions[16];
    bool masks, weights;
    uint64_t samples;
    uint64_t episode; /* samples an episode, about; 0: a single episode */
    uint64_t seed;
    bool learnable; /* labels follow the senses (with noise), else they are random */
} sample_recipe;

typedef struct sample {
    sample_recipe recipe;
    mimus_schema schema;
    mimus_head head[16];
    float *senses;     /* (N, S) */
    uint16_t *actions; /* (N, H) */
    uint8_t *legal;    /* (N, A), NULL without masks */
    uint32_t *masks;   /* (N, W), NULL without masks */
    float *weights;    /* (N) */
    uint64_t *first; /* (N) first row that is stacked with the row: of its episode, or its block */
    char path[512];  /* the .rec that was written */
} sample;

/* Make the arrays and write them as `name` in the test's folder. Labels are legal; now and then
 * absent. */
void sample_new(sample *out, const sample_recipe *recipe, const char *name);
void sample_clear(sample *s);

/* Open it, holding out `heldout` of it. Clear with mimus__dataset_clear. */
void sample_open(sample *s, double heldout, mimus__dataset *out);

#endif

/* walk - the samples of a recording one after another, as they may leave: without those that the
 * audit drops, and without labels that nothing can be learned from. */
#ifndef MIMUS_DATA_WALK_H
#define MIMUS_DATA_WALK_H

#include "split.h"

typedef struct mimus__walk {
    const mimus__recording *recording;
    const mimus_schema *schema;
    const mimus__rows *rows; /* mimus__rows_all */
    size_t span;             /* the next sample's */
    uint64_t offset;         /* and its place in that */
    size_t next_block;
    mimus__block block; /* of the present sample; no samples before the first */
    uint32_t i;         /* its place in that */
    bool starts;        /* it begins an episode */
    uint64_t done;      /* samples so far, with the present one */
} mimus__walk;

/* Both must outlive the walk, which stands before the first of rows->samples. */
void mimus__walk_begin(mimus__walk *out, const mimus__recording *recording,
                       const mimus__rows *rows);
/* Go to the next sample; there must be one. */
mimus_status mimus__walk_next(mimus__walk *walk);

const float *mimus__walk_senses(const mimus__walk *walk);          /* (S) */
void mimus__walk_labels(const mimus__walk *walk, int64_t *labels); /* (H), -1 for none */
void mimus__walk_legal(const mimus__walk *walk, uint8_t *legal);   /* (A), 1 where legal */
float mimus__walk_weight(const mimus__walk *walk);

#endif

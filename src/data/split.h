/* split - which rows train and which are held out. Never cuts an episode; a recording of a single
 * episode is cut into contiguous blocks. */
#ifndef MIMUS_DATA_SPLIT_H
#define MIMUS_DATA_SPLIT_H

#include "audit.h"

/* Rows that follow one another in one episode, none of them dropped. */
typedef struct mimus__span {
    uint64_t first;
    uint64_t count;
    bool start; /* begins a new stretch for frame stacking: an episode start, or behind a gap */
    uint64_t episode; /* number of the episode (or block) it belongs to, from 0 */
} mimus__span;

typedef struct mimus__rows {
    mimus__span *span; /* (spans) ascending, disjoint */
    size_t spans;
    uint64_t samples;
    uint64_t episodes;
} mimus__rows;

typedef struct mimus__split {
    mimus__rows training;
    mimus__rows heldout;
} mimus__split;

/* Hold out whole episodes, drawn without replacement with `seed`, until they are at least
 * `fraction` of the samples (0: none; at least one episode when > 0), leaving at least one to train on
 * (MIMUS_ERR_DATA when that cannot be). The same recording, audit and seed split the same way. */
mimus_status mimus__split_new(mimus__split *out, const mimus__recording *recording,
                              const mimus__audit *audit, double fraction, uint64_t seed);
void mimus__split_clear(mimus__split *split);

/* All rows that `audit` does not drop, as one part. Clear with mimus__rows_clear. */
mimus_status mimus__rows_all(mimus__rows *out, const mimus__recording *recording,
                             const mimus__audit *audit);
void mimus__rows_clear(mimus__rows *rows);

#endif

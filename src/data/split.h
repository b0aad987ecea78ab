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
    uint64_t episodes; /* of which there are rows here */
} mimus__rows;

typedef struct mimus__split {
    mimus__rows training;
    mimus__rows heldout;
} mimus__split;

/* Hold out whole episodes, drawn without replacement with `seed`, until they are at least
 * `fraction` of the samples or but one is left to train on. 0 holds out nothing; a single episode
 * is cut into 20 blocks of equal size (more when one were above `fraction`), which then stand for
 * episodes. MIMUS_ERR_ARGUMENT unless 0 <= fraction < 1; MIMUS_ERR_DATA when no sample is left to
 * train on. The same recording, audit, fraction and seed split the same way. `audit` may be NULL:
 * nothing is dropped. Clear `*out` either way. */
mimus_status mimus__split_new(mimus__split *out, const mimus__recording *recording,
                              const mimus__audit *audit, double fraction, uint64_t seed);
void mimus__split_clear(mimus__split *split);

/* Cut the recording into `folds` parts of about equal size, drawn with `seed`: whole episodes, the
 * next one always to the smallest part; a single episode as above. Each is a part of its own,
 * `out` (folds). MIMUS_ERR_DATA where there are fewer episodes than folds. Clear all of them with
 * mimus__rows_clear either way. */
mimus_status mimus__split_folds(mimus__rows *out, uint32_t folds, const mimus__recording *recording,
                                const mimus__audit *audit, uint64_t seed);

/* All rows that `audit` (may be NULL) does not drop, as one part; each stretch is one span. Clear
 * with mimus__rows_clear either way. */
mimus_status mimus__rows_all(mimus__rows *out, const mimus__recording *recording,
                             const mimus__audit *audit);
void mimus__rows_clear(mimus__rows *rows);

#endif

/* dataset - a recording that has been opened, audited, split and counted: what training and
 * evaluation begin with. */
#ifndef MIMUS_APP_DATASET_H
#define MIMUS_APP_DATASET_H

#include "config.h"
#include "parts.h"
#include "statistics.h"

typedef struct mimus__dataset {
    mimus__recording *recording;
    mimus__audit audit;
    mimus__split
        split; /* as the rows lie on the device: all folds, one behind the other, in training */
    mimus__statistics statistics; /* of the split's training part */
    mimus__rows *fold;            /* (folds), or NULL */
    uint32_t folds;
} mimus__dataset;

/* Open and judge the files; blocks. `like` as for mimus__recording_open_like. What was left out is
 * told through `watch`. Split and statistics are empty until mimus__dataset_split. Clear it
 * whatever the outcome. */
mimus_status mimus__dataset_open(mimus__dataset *out, const mimus_source *source,
                                 const mimus_schema *like, const mimus_watch *watch);

/* Split by the configuration's held-out fraction, or its folds, and the split's seed, and count the
 * training part. MIMUS_ERR_DATA when a part has no label, or no weight but 0: nothing could be
 * learned or judged; or when a sense is spread too far to be normalised in single precision. */
mimus_status mimus__dataset_split(mimus__dataset *dataset, const mimus_config *config);

/* What one run takes of it: training and held-out part of the recording, what its training part is
 * like, and where its rows lie on the device. */
typedef struct mimus__share {
    const mimus__split *split;
    const mimus__statistics *statistics; /* before a bootstrap */
    const mimus__run_rows *rows;         /* NULL: the split as it lies there */
    mimus__split own_split;              /* of a fold */
    mimus__statistics own_statistics;
    mimus__run_rows own_rows;
} mimus__share;

/* By the run's fold and bootstrap. `dataset` was split for it, or for others that agree with it; it
 * is borrowed, and `out` has to stay where it is. Clear it whatever the outcome. */
mimus_status mimus__dataset_share(mimus__share *out, const mimus__dataset *dataset,
                                  const mimus_config *config);
void mimus__share_clear(mimus__share *share);

/* The two parts of a run alone, for who judges it. Clear `*out` whatever the outcome. */
mimus_status mimus__dataset_parts(mimus__split *out, const mimus__dataset *dataset,
                                  const mimus_config *config);

/* A new model for a run: initialised from its configuration, which it keeps, with its training
 * part's normalisation and moments of zero. */
mimus_status mimus__dataset_model(mimus__model **out, const mimus__dataset *dataset,
                                  const mimus__statistics *statistics, const mimus_config *config);

void mimus__dataset_clear(mimus__dataset *dataset);

#endif

/* dataset - a recording that has been opened, audited, split and counted: what training and
 * evaluation begin with. */
#ifndef MIMUS_APP_DATASET_H
#define MIMUS_APP_DATASET_H

#include "config.h"
#include "statistics.h"

typedef struct mimus__dataset {
    mimus__recording *recording;
    mimus__audit audit;
    mimus__split split;
    mimus__statistics statistics; /* of the training part */
} mimus__dataset;

/* Open and judge the files; blocks. `like` as for mimus__recording_open_like. What was left out is
 * told through `watch`. Split and statistics are empty until mimus__dataset_split. Clear it
 * whatever the outcome. */
mimus_status mimus__dataset_open(mimus__dataset *out, const mimus_source *source,
                                 const mimus_schema *like, const mimus_watch *watch);

/* Split by the configuration's held-out fraction and seed, and count the training part.
 * MIMUS_ERR_DATA when a part has no label, or no weight but 0: nothing could be learned or judged;
 * or when a sense is spread too far to be normalised in single precision. */
mimus_status mimus__dataset_split(mimus__dataset *dataset, const mimus_config *config);

/* A new model for what was split: initialised from the configuration, which it keeps, with the
 * training part's normalisation and moments of zero. */
mimus_status mimus__dataset_model(mimus__model **out, const mimus__dataset *dataset,
                                  const mimus_config *config);

void mimus__dataset_clear(mimus__dataset *dataset);

#endif

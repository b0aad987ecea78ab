/* filter - takes parts of a source: stands between what reads samples and the sink that they go to,
 * so that neither knows of it.
 *
 *   where     "health>0.5 and move=left": samples for which every part holds. A part is the name of
 *             a sense or head, one of = != < <= > >=, and a number or, for a head, an action's
 * name. Senses and heads are also called sense0, sense1, ..., head0, .... A head of bins is
 *             compared by its bin's value. What is not there (NaN, no label) is only unequal.
 *             Quotes ("x=y") are put around what has operators in it.
 *   episodes  "0:100", "3,7,20:": by their numbers, from 0 through all files, up to below the
 * second limit     samples, of those that the others let through
 *
 * What is left out of an episode leaves the episode whole: the samples around follow one another.
 */
#ifndef MIMUS_DATA_FILTER_H
#define MIMUS_DATA_FILTER_H

#include "sink.h"

typedef struct mimus__filter mimus__filter;

/* What `source` wants to be taken, into `into` (borrowed, prepared already); `*out` is NULL where
 * it wants everything. MIMUS_ERR_ARGUMENT for what makes no sense. */
mimus_status mimus__filter_new(mimus__filter **out, const mimus_source *source,
                               mimus__chunk_sink *into);
void mimus__filter_free(mimus__filter *filter);

/* Where a reader's samples go; the chunk sink itself where `filter` is NULL. */
mimus__sink *mimus__filter_sink(mimus__filter *filter, mimus__chunk_sink *into);

/* Pass the samples of a block through; its schema was begun. Goes no further once it is full. */
mimus_status mimus__filter_block(mimus__filter *filter, const mimus__block *block);

/* Whether nothing more will be taken: the rest need not be read. A reader then fails in append with
 * MIMUS_ERR_STOPPED; settle makes a success of that, and of nothing else. false, and `status`,
 * where `filter` is NULL. */
bool mimus__filter_is_full(const mimus__filter *filter);
mimus_status mimus__filter_settle(const mimus__filter *filter, mimus_status status);

/* All was read: tell the watch how much was taken. MIMUS_ERR_DATA when it was nothing. */
mimus_status mimus__filter_finish(const mimus__filter *filter, const mimus_watch *watch);

#endif

/* minari_out - a recording as an HDF5 file in Minari's layout: a group an episode, with
 * observations (T + 1, S), actions (T,) or (T, H), rewards, terminations, truncations, and masks
 * and weights in infos. */
#ifndef MIMUS_DATA_MINARI_OUT_H
#define MIMUS_DATA_MINARI_OUT_H

#include "split.h"

/* Write the samples of `rows`, from mimus__rows_all. The file appears under `path` when it is
 * complete, or takes an old one's place; where it is called main_data.hdf5, as in Minari's
 * datasets, the metadata.json that Minari wants beside it is written too, and the folders above are
 * made. Memory does not grow with it; progress is the phase "write". */
mimus_status mimus__minari_out_write(const char *path, const mimus__recording *recording,
                                     const mimus__rows *rows, const mimus_watch *watch);

#endif

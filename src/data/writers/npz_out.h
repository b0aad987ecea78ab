/* npz_out - a recording as a NumPy archive: obs (N, S), actions (N, H), action_masks (N, A),
 * episode_starts (N,), weights (N,), and what no array can say as schema.json. */
#ifndef MIMUS_DATA_NPZ_OUT_H
#define MIMUS_DATA_NPZ_OUT_H

#include "split.h"

/* Write the samples of `rows`, from mimus__rows_all. The archive appears under `path` when it is
 * complete, or takes an old one's place. Memory does not grow with it; progress is the phase
 * "write". */
mimus_status mimus__npz_out_write(const char *path, const mimus__recording *recording,
                                  const mimus__rows *rows, const mimus_watch *watch);

#endif

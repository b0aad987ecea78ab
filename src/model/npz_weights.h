/* npz_weights - a model's numbers as a NumPy archive: mean, scale, layers.<l>.weight (out, in) and
 * layers.<l>.bias, as in a checkpoint, and the checkpoint's texts "schema" and "shape". */
#ifndef MIMUS_MODEL_NPZ_WEIGHTS_H
#define MIMUS_MODEL_NPZ_WEIGHTS_H

#include "model.h"

#include <stdio.h>

mimus_status mimus__npz_weights_write(FILE *stream, const mimus__model *model);

/* Whether an archive that was read back holds the model's numbers, every bit of them: else
 * MIMUS_ERR_DATA, with `where` naming the file. */
mimus_status mimus__npz_weights_check(const void *bytes, size_t size, const mimus__model *model,
                                      const char *where);

#endif

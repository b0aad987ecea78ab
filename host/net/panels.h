/* panels - a network's weights as register tiles read them: in panels of columns (cl/panels.clh),
 * as they are for X W, turned for G W^T. The optimizer keeps them (optimizer.h), the block plan
 * reads them (block_plan.h). */
#ifndef MIMUS_HOST_PANELS_H
#define MIMUS_HOST_PANELS_H

#include "gemm_backend.h"
#include "layout.h"

typedef struct mimus__panels {
    mimus__gemm_tile_shape tile;
    mimus__buffer plain;  /* where each weight's panel lies, as the parameters; biases unused */
    mimus__buffer turned; /* alike */
} mimus__panels;

mimus_status mimus__panels_new(mimus__panels *out, mimus__device *device,
                               const mimus__layout *layout);
void mimus__panels_free(mimus__panels *panels);

/* The tile's settings (cl/dense_tile.clh). */
void mimus__panels_define(const mimus__panels *panels, mimus__defines *defines);

#endif

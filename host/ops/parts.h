/* parts - runs that do not all train on the same rows of the store: folds and bootstrap
 * (cl/parts.clh). Without them no index is needed on the device: positions are rows. */
#ifndef MIMUS_HOST_PARTS_H
#define MIMUS_HOST_PARTS_H

#include "buffer.h"
#include "launch.h"
#include "program.h"

/* Positions from `position` on lie in the store from `row` on. The uint2 of cl/parts.clh. */
typedef struct mimus__piece {
    uint32_t position, row;
} mimus__piece;

/* The rows of one run. */
typedef struct mimus__run_rows {
    uint32_t training; /* positions of an epoch */
    uint32_t heldout;  /* rows, from row `base` on */
    uint32_t base;
    uint32_t pieces;     /* 1 or more */
    mimus__piece *piece; /* (pieces) ascending, the first at position 0 */
} mimus__run_rows;

typedef struct mimus__parts {
    uint32_t runs, room;  /* pieces of all runs that there is room for */
    mimus__buffer table;  /* (runs) mimus__part */
    mimus__buffer pieces; /* (room) mimus__piece */
} mimus__parts;

/* Room for `count` runs with as many pieces as these have. Blocks. */
mimus_status mimus__parts_new(mimus__parts *out, mimus__device *device,
                              const mimus__run_rows *const *rows, uint32_t count);
void mimus__parts_free(mimus__parts *parts);

/* Upload the rows of `count` runs. MIMUS_ERR_ARGUMENT where they are more than there is room for.
 * Blocks. */
mimus_status mimus__parts_set(mimus__parts *parts, const mimus__run_rows *const *rows,
                              uint32_t count);

/* PARTS of the kernels; `parts` NULL: all runs have the store's rows. */
void mimus__parts_define(const mimus__parts *parts, mimus__defines *defines);
/* The arguments that PART_PARAMETERS stands for; returns how many, at most 2. */
size_t mimus__parts_arguments(const mimus__parts *parts, mimus__arg *arguments);

#endif

/* gemm_backend - what stands behind gemm.h: a table of functions a back end, and what it needs to
 * know.
 *
 * A back end gets calls that gemm.c has checked: widths and rows are multiples of its pads, the
 * layer is one it was opened for, at most as many rows, and every matrix lies inside its buffer. */
#ifndef MIMUS_HOST_GEMM_BACKEND_H
#define MIMUS_HOST_GEMM_BACKEND_H

#include "gemm.h"
#include "geometry.h"

/* What a back end is opened for; widths as the network has them, unpadded. */
typedef struct mimus__gemm_problem {
    const mimus__gemm_layer *layers;
    uint32_t count;
    uint32_t rows;
} mimus__gemm_problem;

typedef struct mimus__gemm_forward_call {
    mimus__gemm_layer layer;
    uint32_t rows;
    mimus__matrix x, weight, bias;
    mimus__activation activation;
    mimus__matrix y;
    const mimus__matrix *pre; /* or NULL */
} mimus__gemm_forward_call;

typedef struct mimus__gemm_input_call {
    mimus__gemm_layer layer;
    uint32_t rows;
    mimus__matrix g, weight;
    mimus__activation activation;
    mimus__matrix saved; /* not there for the identity */
    bool saved_is_pre;
    mimus__matrix d;
} mimus__gemm_input_call;

typedef struct mimus__gemm_weight_call {
    mimus__gemm_layer layer;
    uint32_t rows;
    mimus__matrix x, g, weight, bias;
    size_t split_stride;
} mimus__gemm_weight_call;

enum { MIMUS__GEMM_PARAMETER_BYTES = 64, MIMUS__GEMM_MAX_TYPES = 8 };

typedef struct mimus__gemm_type mimus__gemm_type;

/* Every back end's state begins with this. */
typedef struct mimus__gemm_backend {
    const mimus__gemm_type *type; /* set by who opened it */
    mimus__device *device;
    uint32_t width_pad; /* a multiple of 16 */
    uint32_t row_pad;
    uint32_t splits;
    bool packs;                                   /* see mimus__gemm_packs */
    bool batches;                                 /* see mimus__gemm_batches */
    char parameters[MIMUS__GEMM_PARAMETER_BYTES]; /* "6 x 2 float8"; names the variant */
} mimus__gemm_backend;

struct mimus__gemm_type {
    mimus__gemm_kind kind;
    const char *name;
    /* Why AUTO need not try it on this device, valid until the next failure; NULL: it should. */
    const char *(*unsuited)(const mimus__device *device);
    /* How many settings are worth timing on this device; at least 1. */
    uint32_t (*variants)(const mimus__device *device, const mimus__gemm_problem *problem);
    /* MIMUS_ERR_UNSUPPORTED when the back end cannot be had here; the message says why. */
    mimus_status (*open)(mimus__gemm_backend **out, mimus__device *device,
                         const mimus__gemm_problem *problem, uint32_t variant);
    void (*close)(mimus__gemm_backend *backend); /* takes NULL */
    mimus_status (*forward)(mimus__gemm_backend *backend, const mimus__gemm_forward_call *call);
    mimus_status (*input_gradient)(mimus__gemm_backend *backend,
                                   const mimus__gemm_input_call *call);
    mimus_status (*weight_gradient)(mimus__gemm_backend *backend,
                                    const mimus__gemm_weight_call *call);
};

extern const mimus__gemm_type mimus__gemm_tile;
extern const mimus__gemm_type mimus__gemm_clblast;

/* mimus__gemm_new with back ends of the caller's: those of the kind asked for, AUTO for all. */
mimus_status mimus__gemm_new_from(mimus__gemm **out, mimus__device *device, mimus__gemm_kind kind,
                                  const mimus__gemm_problem *problem,
                                  const mimus__gemm_type *const *types, uint32_t type_count);

/* A register tile of `rows` x `vectors` vectors of `width` floats a work-item; width 0 is the
 * 64 x 64 tile a work-group. */
typedef struct mimus__gemm_tile_shape {
    uint32_t rows, vectors, width;
} mimus__gemm_tile_shape;

/* mimus__gemm_tile.open with a shape of the caller's. */
mimus_status mimus__gemm_tile_open(mimus__gemm_backend **out, mimus__device *device,
                                   const mimus__gemm_problem *problem,
                                   mimus__gemm_tile_shape shape);

/* The layer with its widths rounded up to the back end's. */
mimus__gemm_layer mimus__gemm_padded(const mimus__gemm_backend *backend, mimus__gemm_layer layer);

/* The `at` of a kernel's matrix: floats to run 0, floats from run to run. */
#define MIMUS_ARG_AT(matrix)                                                                       \
    ((mimus__arg){&(cl_ulong2){{(matrix)->offset, (matrix)->stride}}, sizeof(cl_ulong2)})
/* The two arguments of a matrix. */
#define MIMUS_ARGS_MATRIX(matrix) MIMUS_ARG_BUFFER((matrix)->buffer), MIMUS_ARG_AT(matrix)

#endif

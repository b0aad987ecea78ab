/* layout - where a network's numbers lie on the device.
 *
 * Layer by layer; of each layer the R runs' weights (in, out) behind one another, then their
 * biases. So a layer's weights are a batch of matrices with stride in * out, which is what
 * strided-batched GEMMs take (docs/opencl.md 11), and run r's share of the whole is a list of
 * chunks. Widths are padded with zeros; segments begin at multiples of 1,024 floats, which suits
 * the alignment of sub-buffers everywhere. */
#ifndef MIMUS_HOST_LAYOUT_H
#define MIMUS_HOST_LAYOUT_H

#include "model.h"
#include "program.h"

typedef struct mimus__layout {
    mimus__shape shape;
    uint32_t runs;
    uint32_t padded[MIMUS__MAX_LAYERS + 1]; /* widths, multiples of the pad */
    size_t weight[MIMUS__MAX_LAYERS];       /* offset of run 0, in floats */
    size_t bias[MIMUS__MAX_LAYERS];
    size_t total; /* floats of all runs */
} mimus__layout;

mimus__layout mimus__layout_of(const mimus__shape *shape, uint32_t runs, uint32_t pad);

/* A piece of one layer: run r's begins at float begin + r * stride and has count floats; weights is
 * 1
 * + the layer whose weights it is cut from, 0 for biases. The uint4 of cl/optimizer.cl. */
typedef struct mimus__chunk {
    uint32_t begin, stride, count, weights;
} mimus__chunk;

/* Cut a run's numbers into chunks of at most `floats` (a multiple of 16). Free with free(). */
mimus_status mimus__layout_chunks(const mimus__layout *layout, uint32_t floats,
                                  mimus__chunk **chunks, uint32_t *count);

/* The texts of cl/layout.clh's tables, and the settings that carry them; the texts must outlive the
 * defines. */
typedef struct mimus__layout_tables {
    char widths[12 * (MIMUS__MAX_LAYERS + 1)];
    char weights[12 * MIMUS__MAX_LAYERS];
    char biases[12 * MIMUS__MAX_LAYERS];
} mimus__layout_tables;

void mimus__layout_define(const mimus__layout *layout, mimus__layout_tables *tables,
                          mimus__defines *defines);

/* Between the P numbers of model.h and an image of the device's `total` floats; padding in the
 * image is left alone. */
void mimus__layout_pack(const mimus__layout *layout, uint32_t run, const float *parameters,
                        float *image);
void mimus__layout_unpack(const mimus__layout *layout, uint32_t run, const float *image,
                          float *parameters);

#endif

/* dense - one layer on the CPU: y = x W + b.
 *
 * Weights lie in panels of 16 outputs: a panel's biases, then its weights, input by input. A
 * panel's sums stay in registers, and the weights are read once from front to back. A sum begins
 * with the bias and runs over the inputs in their order, each product rounded and then added,
 * whatever the vectors' width and however many rows there are: a row's bits depend on neither, and
 * are the same on every machine. */
#ifndef MIMUS_MODEL_DENSE_H
#define MIMUS_MODEL_DENSE_H

#include <stddef.h>
#include <stdint.h>

enum {
    MIMUS__DENSE_PANEL = 16, /* outputs */
    MIMUS__DENSE_ROWS = 4,   /* at once, at most */
};

size_t mimus__dense_panels(uint32_t outputs);
/* Floats that the panels take. */
size_t mimus__dense_size(uint32_t inputs, uint32_t outputs);
/* Lay out weights (inputs, outputs) and bias (outputs) as panels; what fills them up is 0. */
void mimus__dense_pack(float *panels, const float *weight, const float *bias, uint32_t inputs,
                       uint32_t outputs);

/* `rows` (1 to MIMUS__DENSE_ROWS) rows, each of which may lie anywhere:
 *
 *   x  [rows] (inputs)
 *   y  [rows] (panels, 16) written; not x */
typedef void mimus__dense(uint32_t rows, const float *const *x, uint32_t inputs, const float *layer,
                          float *const *y, size_t panels);

/* The implementations that this processor can run, slowest first; NULL past the last. */
mimus__dense *mimus__dense_at(size_t index);
mimus__dense *mimus__dense_best(void);

#endif

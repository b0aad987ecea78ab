/* onnx_run - reads an ONNX file back and computes it: the operations that onnx.c writes, by their
 * own definitions (github.com/onnx/onnx, docs/Operators.md) in single precision, and no others.
 *
 * It shares nothing with what writes the file but the messages' declarations. Strict: an operation,
 * attribute, type or shape that it does not expect is MIMUS_ERR_UNSUPPORTED or MIMUS_ERR_FORMAT,
 * never skipped. A value has at most two dimensions; a sum runs over the inputs in their order,
 * from the bias on, as in the policy. */
#ifndef MIMUS_MODEL_ONNX_RUN_H
#define MIMUS_MODEL_ONNX_RUN_H

#include "status.h"

typedef struct mimus__onnx_run mimus__onnx_run;

/* Parse and check a file of `size` bytes; `where` (borrowed) names it in messages. */
mimus_status mimus__onnx_run_new(mimus__onnx_run **out, const void *bytes, size_t size,
                                 const char *where);
void mimus__onnx_run_free(mimus__onnx_run *run);

/* Give the inputs of the next computation; numbers are copied. `columns` 0: a value of one
 * dimension, (rows). MIMUS_ERR_FORMAT when the file declares no such input. */
mimus_status mimus__onnx_run_set_floats(mimus__onnx_run *run, const char *name, size_t rows,
                                        size_t columns, const float *values);
mimus_status mimus__onnx_run_set_bools(mimus__onnx_run *run, const char *name, size_t rows,
                                       size_t columns, const uint8_t *values);

/* Compute every value. What is drawn (Multinomial) comes from `seed`. Outputs must be of the type
 * and shape that the file declares. */
mimus_status mimus__onnx_run_compute(mimus__onnx_run *run, uint64_t seed);

/* A value (rows, columns) of the latest computation, output or not; borrowed until the next.
 * MIMUS_ERR_FORMAT when there is none of that name, type and shape. */
mimus_status mimus__onnx_run_floats(const mimus__onnx_run *run, const char *name, size_t rows,
                                    size_t columns, const float **out);
mimus_status mimus__onnx_run_integers(const mimus__onnx_run *run, const char *name, size_t rows,
                                      size_t columns, const int64_t **out);

#endif

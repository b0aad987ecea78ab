/* safetensors - the container that a checkpoint is kept in.
 *
 * Format (huggingface/safetensors, README): u64 little-endian n, n bytes of JSON that begin with
 * "{", then the buffer. The JSON maps a tensor's name to {"dtype", "shape", "data_offsets": [begin,
 * end)} within the buffer, and "__metadata__" to strings. Tensors are C-contiguous, little-endian,
 * and cover the buffer without overlaps or holes. */
#ifndef MIMUS_MODEL_SAFETENSORS_H
#define MIMUS_MODEL_SAFETENSORS_H

#include "json.h"

#include <stdio.h>

enum {
    MIMUS__SAFETENSORS_BEGINNING =
        10, /* bytes: the header's length, and no header is shorter than {} */
    MIMUS__MAX_SAFETENSORS_HEADER = 100000000, /* bytes, as the reference implementation */
    MIMUS__TENSOR_NAME_BYTES = 64,
    MIMUS__TENSOR_RANK = 2,
};

/* A float32 tensor as we write it and as we expect it. */
typedef struct mimus__tensor {
    char name[MIMUS__TENSOR_NAME_BYTES];
    uint32_t rank; /* 1 or 2 */
    uint64_t shape[MIMUS__TENSOR_RANK];
} mimus__tensor;

/* Elements. */
uint64_t mimus__tensor_count(const mimus__tensor *tensor);

/* A verified file in memory. */
typedef struct mimus__safetensors {
    const char *where;           /* borrowed: the file's name in messages */
    json_t *header;              /* the tensors' entries, "__metadata__" taken out */
    json_t *metadata;            /* an object of strings, empty when there is none */
    const unsigned char *buffer; /* borrowed */
    size_t bytes;                /* of the buffer */
} mimus__safetensors;

/* Whether a file that begins with these `size` bytes, MIMUS__SAFETENSORS_BEGINNING or more, can be
 * a container at all: a header of a possible length. MIMUS_ERR_FORMAT names `where`. */
mimus_status mimus__safetensors_check_beginning(const void *bytes, size_t size, const char *where);

/* Parse and verify the container: the header's size and form, every tensor's bounds against its
 * dtype and shape, no overlap, no hole. `bytes` is borrowed until clear. MIMUS_ERR_FORMAT names
 * `where` and the tensor. */
mimus_status mimus__safetensors_parse(mimus__safetensors *out, const void *bytes, size_t size,
                                      const char *where);
void mimus__safetensors_clear(mimus__safetensors *file);

/* Copy the tensor that `wanted` describes into `values` (its count). MIMUS_ERR_FORMAT when it is
 * missing, of another dtype or shape, or not finite. */
mimus_status mimus__safetensors_get(const mimus__safetensors *file, const mimus__tensor *wanted,
                                    float *values);

/* Write the header for `tensors` in this order; their values follow, mimus__safetensors_put each.
 * `metadata` is an object of strings. Errors of the stream are the caller's to find. */
mimus_status mimus__safetensors_begin(FILE *stream, const mimus__tensor *tensors, size_t count,
                                      const json_t *metadata);
void mimus__safetensors_put(FILE *stream, const float *values, uint64_t count);

#endif

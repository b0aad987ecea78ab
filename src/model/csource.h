/* csource - a model as a pair of C files that need nothing else: constants and inference in C99,
 * from the templates in src/model/csource. The generated code sums in the policy's order, so that
 * it gives the policy's bits wherever the compiler keeps to the standard's arithmetic. */
#ifndef MIMUS_MODEL_CSOURCE_H
#define MIMUS_MODEL_CSOURCE_H

#include "model.h"

#include <stdio.h>

enum {
    MIMUS__CSOURCE_MAX_PARAMETERS = 1 << 23, /* what compilers take without much ado */
    MIMUS__CSOURCE_MAX_WIDTH = 1 << 15,      /* of a layer: two such rows lie on the stack */
};

/* What the two files are called, and the identifiers in them. */
typedef struct mimus__csource_names {
    char *source; /* the path, which ends in .c */
    char *header; /* the path beside it */
    char *base;   /* of the header, for #include */
    char *lower;  /* policy_act */
    char *upper;  /* POLICY_SENSES */
} mimus__csource_names;

/* MIMUS_ERR_ARGUMENT when `path` does not end in .c or has no name before that. Clear it either
 * way. */
mimus_status mimus__csource_names_init(mimus__csource_names *out, const char *path);
void mimus__csource_names_clear(mimus__csource_names *names);

/* Write one of the files; the stream's error flag tells of a failed write. MIMUS_ERR_UNSUPPORTED
 * when the network is too large for this. */
mimus_status mimus__csource_write(FILE *stream, const mimus__model *model,
                                  const mimus__csource_names *names);
mimus_status mimus__csource_write_header(FILE *stream, const mimus__model *model,
                                         const mimus__csource_names *names);

/* Whether the numbers in a source that was read back are the model's, every bit of them: else
 * MIMUS_ERR_DATA, with `where` naming the file. */
mimus_status mimus__csource_check(const char *text, const mimus__model *model, const char *where);

#endif

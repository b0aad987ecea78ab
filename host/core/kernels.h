/* kernels - the files of cl/, embedded at build (cmake/embed.cmake). */
#ifndef MIMUS_HOST_KERNELS_H
#define MIMUS_HOST_KERNELS_H

#include <stddef.h>

typedef struct mimus__embedded_file {
    const char *name;           /* "loss.cl" */
    const unsigned char *bytes; /* ends in NUL */
} mimus__embedded_file;

/* Ends in a NULL name. */
extern const mimus__embedded_file mimus__embedded_files[];

#endif

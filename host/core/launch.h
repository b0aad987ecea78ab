/* launch - a kernel with its arguments checked. */
#ifndef MIMUS_HOST_LAUNCH_H
#define MIMUS_HOST_LAUNCH_H

#include "buffer.h"
#include "program.h"

typedef struct mimus__kernel {
    mimus__device *device;
    cl_kernel handle;
    const char *name; /* static */
    cl_uint arguments;
} mimus__kernel;

mimus_status mimus__kernel_new(mimus__kernel *out, const mimus__program *program, const char *name);
void mimus__kernel_free(mimus__kernel *kernel);

/* One argument by value, or a buffer. */
typedef struct mimus__arg {
    const void *value;
    size_t bytes;
} mimus__arg;

#define MIMUS_ARG_BUFFER(buffer) ((mimus__arg){&(buffer)->memory, sizeof(cl_mem)})
/* An lvalue or a compound literal of exactly the kernel's argument type. */
#define MIMUS_ARG_U32(x) ((mimus__arg){&(cl_uint){(x)}, sizeof(cl_uint)})
#define MIMUS_ARG_U64(x) ((mimus__arg){&(cl_ulong){(x)}, sizeof(cl_ulong)})
#define MIMUS_ARG_F32(x) ((mimus__arg){&(cl_float){(x)}, sizeof(cl_float)})

typedef struct mimus__grid {
    size_t global[3]; /* work-items; rounded up by the caller to a multiple of local */
    size_t local[3];  /* of a group; a dimension that both leave at 0 is not used */
} mimus__grid;

/* Enqueue. The number of arguments must be the kernel's; MIMUS_ERR_DEVICE names the kernel. */
mimus_status mimus__launch_list(const mimus__kernel *kernel, mimus__grid grid,
                                const mimus__arg *arguments, size_t count);
#define mimus__launch(kernel, grid, ...)                                                           \
    mimus__launch_list((kernel), (grid), (const mimus__arg[]){__VA_ARGS__},                        \
                       sizeof((const mimus__arg[]){__VA_ARGS__}) / sizeof(mimus__arg))

#endif

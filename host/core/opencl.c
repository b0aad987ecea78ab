/* Finding the OpenCL loader and its functions. */
#include "opencl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mimus__cl_table mimus__cl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static mimus_status load_status;
static char load_message[512]; /* the failure, for every thread that asks */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION_ROW(name) {#name, offsetof(struct mimus__cl_table, name)},
    MIMUS__CL_FUNCTIONS(FUNCTION_ROW)
#undef FUNCTION_ROW
};

static void *open_library(void) {
    const char *named = getenv("MIMUS_OPENCL_LIBRARY");
    if (named != NULL && named[0] != '\0') {
        void *library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            snprintf(load_message, sizeof load_message, "cannot open MIMUS_OPENCL_LIBRARY: %s",
                     dlerror());
        return library;
    }
    void *process = dlopen(NULL, RTLD_NOW);
    if (process != NULL && dlsym(process, "clGetPlatformIDs") != NULL)
        return process;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(load_message, sizeof load_message,
                 "no OpenCL loader (libOpenCL.so.1): install ocl-icd-libopencl1 (Debian, Ubuntu) "
                 "and a driver such as pocl-opencl-icd");
    return library;
}

/* The library stays open for the life of the process: drivers keep threads of their own. */
static void load(void) {
    load_status = MIMUS_ERR_NO_DEVICE;
    void *library = open_library();
    if (library == NULL)
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL) {
            snprintf(load_message, sizeof load_message,
                     "the OpenCL loader lacks %s: mimus needs OpenCL 1.2", functions[i].name);
            return;
        }
        memcpy((char *)&mimus__cl + functions[i].offset, &address, sizeof address);
    }
    load_status = MIMUS_OK;
}

mimus_status mimus__opencl_load(void) {
    pthread_once(&once, load);
    if (load_status != MIMUS_OK)
        return mimus__fail(load_status, "%s", load_message);
    return MIMUS_OK;
}

#define CL_ERRORS(X)                                                                               \
    X(CL_SUCCESS)                                                                                  \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                             \
    X(CL_MEM_COPY_OVERLAP)                                                                         \
    X(CL_IMAGE_FORMAT_MISMATCH)                                                                    \
    X(CL_IMAGE_FORMAT_NOT_SUPPORTED)                                                               \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_MAP_FAILURE)                                                                              \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                                             \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_COMPILE_PROGRAM_FAILURE)                                                                  \
    X(CL_LINKER_NOT_AVAILABLE)                                                                     \
    X(CL_LINK_PROGRAM_FAILURE)                                                                     \
    X(CL_DEVICE_PARTITION_FAILED)                                                                  \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)                                                            \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_DEVICE_TYPE)                                                                      \
    X(CL_INVALID_PLATFORM)                                                                         \
    X(CL_INVALID_DEVICE)                                                                           \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_QUEUE_PROPERTIES)                                                                 \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_HOST_PTR)                                                                         \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR)                                                          \
    X(CL_INVALID_IMAGE_SIZE)                                                                       \
    X(CL_INVALID_SAMPLER)                                                                          \
    X(CL_INVALID_BINARY)                                                                           \
    X(CL_INVALID_BUILD_OPTIONS)                                                                    \
    X(CL_INVALID_PROGRAM)                                                                          \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                               \
    X(CL_INVALID_KERNEL_NAME)                                                                      \
    X(CL_INVALID_KERNEL_DEFINITION)                                                                \
    X(CL_INVALID_KERNEL)                                                                           \
    X(CL_INVALID_ARG_INDEX)                                                                        \
    X(CL_INVALID_ARG_VALUE)                                                                        \
    X(CL_INVALID_ARG_SIZE)                                                                         \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_WORK_DIMENSION)                                                                   \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                  \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                   \
    X(CL_INVALID_GLOBAL_OFFSET)                                                                    \
    X(CL_INVALID_EVENT_WAIT_LIST)                                                                  \
    X(CL_INVALID_EVENT)                                                                            \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_GL_OBJECT)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)                                                                      \
    X(CL_INVALID_MIP_LEVEL)                                                                        \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                 \
    X(CL_INVALID_PROPERTY)                                                                         \
    X(CL_INVALID_IMAGE_DESCRIPTOR)                                                                 \
    X(CL_INVALID_COMPILER_OPTIONS)                                                                 \
    X(CL_INVALID_LINKER_OPTIONS)                                                                   \
    X(CL_INVALID_DEVICE_PARTITION_COUNT)

const char *mimus__cl_error_name(cl_int code) {
    switch (code) {
#define ERROR_CASE(name)                                                                           \
    case name:                                                                                     \
        return #name;
        CL_ERRORS(ERROR_CASE)
#undef ERROR_CASE
    case -1001: /* cl_khr_icd */
        return "CL_PLATFORM_NOT_FOUND_KHR";
    }
    return "unknown OpenCL error";
}

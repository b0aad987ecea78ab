/* An OpenCL library between mimus and the real loader, for what healthy machines do not show.
 * Tests load it through MIMUS_OPENCL_LIBRARY; MIMUS_SHIM says in words, separated by blanks, what
 * it does:
 *
 *   gpu              every device calls itself a GPU, by the name Shimmed
 *   name=TEXT        every device has this name
 *   width=N          every device's vectors have N floats
 *   version=1.1      every device speaks this OpenCL
 *   none             there is no platform
 *   broken           a first platform that cannot list its devices
 *   empty            a first platform without devices
 *   lazy             only every 50th look at an event may find it complete
 *   lost=-5          every event ends with this error
 *   CALL=-5          the function gives this error
 *   CALL=-5,once     at its first call alone
 *   record=FOLDER    what is launched is written there: a program's source as HASH.cl, and its
 * build options as HASH.KERNEL.XxYxZ, X x Y x Z being the group's size
 *
 * shim_count("clFlush") counts calls; create and release calls can so be held against each other.
 * What is not overridden here is found in the real loader, on which this library depends. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The value of `word` in MIMUS_SHIM ("" when it has none), or NULL. */
static const char *setting(const char *word) {
    const char *all = getenv("MIMUS_SHIM");
    size_t length = strlen(word);
    while (all != NULL && *all != '\0') {
        if (strncmp(all, word, length) == 0 && strchr("= ", all[length]) != NULL)
            return all + length + (all[length] == '=');
        all += strcspn(all, " ");
        all += strspn(all, " ");
    }
    return NULL;
}

static void copy_text(const char *text, size_t bytes, void *out, size_t *needed) {
    size_t length = strcspn(text, " ");
    if (needed != NULL)
        *needed = length + 1;
    if (out != NULL && bytes > length) {
        memcpy(out, text, length);
        ((char *)out)[length] = '\0';
    }
}

/* ------------------------------------------------------ failing and counting */

/* return type, function, parameters, arguments, how an error is given back */
#define BY_VALUE return (cl_int)failure
/* What would have been waited for must be over, or it outlives what it works on. */
#define BY_VALUE_AFTERWARDS                                                                        \
    do {                                                                                           \
        call(a);                                                                                   \
        return (cl_int)failure;                                                                    \
    } while (0)
#define BY_POINTER                                                                                 \
    do {                                                                                           \
        if (error != NULL)                                                                         \
            *error = (cl_int)failure;                                                              \
        return NULL;                                                                               \
    } while (0)

#define CALLS(X)                                                                                   \
    X(cl_context, clCreateContext,                                                                 \
      (const cl_context_properties *a, cl_uint b, const cl_device_id *c,                           \
       void(CL_CALLBACK * d)(const char *, const void *, size_t, void *), void *e, cl_int *error), \
      (a, b, c, d, e, error), BY_POINTER)                                                          \
    X(cl_int, clReleaseContext, (cl_context a), (a), BY_VALUE)                                     \
    X(cl_command_queue, clCreateCommandQueue,                                                      \
      (cl_context a, cl_device_id b, cl_command_queue_properties c, cl_int * error),               \
      (a, b, c, error), BY_POINTER)                                                                \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue a), (a), BY_VALUE)                          \
    X(cl_mem, clCreateBuffer, (cl_context a, cl_mem_flags b, size_t c, void *d, cl_int *error),    \
      (a, b, c, d, error), BY_POINTER)                                                             \
    X(cl_mem, clCreateSubBuffer,                                                                   \
      (cl_mem a, cl_mem_flags b, cl_buffer_create_type c, const void *d, cl_int *error),           \
      (a, b, c, d, error), BY_POINTER)                                                             \
    X(cl_int, clReleaseMemObject, (cl_mem a), (a), BY_VALUE)                                       \
    X(cl_program, clCreateProgramWithSource,                                                       \
      (cl_context a, cl_uint b, const char **c, const size_t *d, cl_int *error),                   \
      (a, b, c, d, error), BY_POINTER)                                                             \
    X(cl_int, clBuildProgram,                                                                      \
      (cl_program a, cl_uint b, const cl_device_id *c, const char *d,                              \
       void(CL_CALLBACK * e)(cl_program, void *), void *f),                                        \
      (a, b, c, d, e, f), BY_VALUE)                                                                \
    X(cl_int, clReleaseProgram, (cl_program a), (a), BY_VALUE)                                     \
    X(cl_kernel, clCreateKernel, (cl_program a, const char *b, cl_int *error), (a, b, error),      \
      BY_POINTER)                                                                                  \
    X(cl_int, clGetKernelInfo, (cl_kernel a, cl_kernel_info b, size_t c, void *d, size_t *e),      \
      (a, b, c, d, e), BY_VALUE)                                                                   \
    X(cl_int, clReleaseKernel, (cl_kernel a), (a), BY_VALUE)                                       \
    X(cl_int, clEnqueueReadBuffer,                                                                 \
      (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void *f, cl_uint g,            \
       const cl_event *h, cl_event *i),                                                            \
      (a, b, c, d, e, f, g, h, i), BY_VALUE)                                                       \
    X(cl_int, clEnqueueWriteBuffer,                                                                \
      (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, const void *f, cl_uint g,      \
       const cl_event *h, cl_event *i),                                                            \
      (a, b, c, d, e, f, g, h, i), BY_VALUE)                                                       \
    X(cl_int, clEnqueueCopyBuffer,                                                                 \
      (cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f, cl_uint g,            \
       const cl_event *h, cl_event *i),                                                            \
      (a, b, c, d, e, f, g, h, i), BY_VALUE)                                                       \
    X(cl_int, clEnqueueFillBuffer,                                                                 \
      (cl_command_queue a, cl_mem b, const void *c, size_t d, size_t e, size_t f, cl_uint g,       \
       const cl_event *h, cl_event *i),                                                            \
      (a, b, c, d, e, f, g, h, i), BY_VALUE)                                                       \
    X(void *, clEnqueueMapBuffer,                                                                  \
      (cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d, size_t e, size_t f, cl_uint g,     \
       const cl_event *h, cl_event *i, cl_int *error),                                             \
      (a, b, c, d, e, f, g, h, i, error), BY_POINTER)                                              \
    X(cl_int, clEnqueueUnmapMemObject,                                                             \
      (cl_command_queue a, cl_mem b, void *c, cl_uint d, const cl_event *e, cl_event *f),          \
      (a, b, c, d, e, f), BY_VALUE)                                                                \
    X(cl_int, clEnqueueMarkerWithWaitList,                                                         \
      (cl_command_queue a, cl_uint b, const cl_event *c, cl_event *d), (a, b, c, d), BY_VALUE)     \
    X(cl_int, clWaitForEvents, (cl_uint a, const cl_event *b), (a, b), BY_VALUE)                   \
    X(cl_int, clReleaseEvent, (cl_event a), (a), BY_VALUE)                                         \
    X(cl_int, clFlush, (cl_command_queue a), (a), BY_VALUE)                                        \
    X(cl_int, clFinish, (cl_command_queue a), (a), BY_VALUE_AFTERWARDS)

/* These are recorded, too. */
#define LAUNCHES(X)                                                                                \
    X(cl_int, clEnqueueNDRangeKernel,                                                              \
      (cl_command_queue a, cl_kernel b, cl_uint c, const size_t *d, const size_t *e,               \
       const size_t *f, cl_uint g, const cl_event *h, cl_event *i),                                \
      (a, b, c, d, e, f, g, h, i), BY_VALUE)

enum {
#define CALL_INDEX(type, name, parameters, arguments, fail) INDEX_##name,
    CALLS(CALL_INDEX) LAUNCHES(CALL_INDEX) CALL_COUNT
};

static const char *const names[CALL_COUNT] = {
#define CALL_NAME(type, name, parameters, arguments, fail) #name,
    CALLS(CALL_NAME) LAUNCHES(CALL_NAME)};

static atomic_uint_fast64_t counts[CALL_COUNT];

EXPORT unsigned long long shim_count(const char *name) {
    for (int i = 0; i < CALL_COUNT; i++) {
        if (strcmp(names[i], name) == 0)
            return atomic_load(&counts[i]);
    }
    abort();
}

/* The next function of this name, behind this library. */
static void *real(const char *name) {
    void *address = dlsym(RTLD_NEXT, name);
    if (address == NULL)
        abort();
    return address;
}

/* ------------------------------------------------------------------ recording */

/* The source of a kernel's program, to be freed. */
static char *source_of(cl_program program) {
    cl_int (*info)(cl_program, cl_program_info, size_t, void *, size_t *);
    size_t bytes = 0;
    *(void **)&info = real("clGetProgramInfo");
    if (info(program, CL_PROGRAM_SOURCE, 0, NULL, &bytes) != CL_SUCCESS)
        abort();
    char *source = calloc(bytes + 1, 1);
    if (source == NULL || info(program, CL_PROGRAM_SOURCE, bytes, source, NULL) != CL_SUCCESS)
        abort();
    return source;
}

static cl_device_id device_of(cl_command_queue queue) {
    cl_int (*info)(cl_command_queue, cl_command_queue_info, size_t, void *, size_t *);
    cl_device_id device = NULL;
    *(void **)&info = real("clGetCommandQueueInfo");
    if (info(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS)
        abort();
    return device;
}

/* FNV-1a */
static unsigned long long hash(const char *text) {
    unsigned long long value = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3u;
    return value;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0) {
        perror(path);
        abort();
    }
}

static void record(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                   const size_t *local) {
    cl_int (*kernel_info)(cl_kernel, cl_kernel_info, size_t, void *, size_t *);
    cl_int (*build_info)(cl_program, cl_device_id, cl_program_build_info, size_t, void *, size_t *);
    char folder[512], path[1024], name[128], options[512];
    cl_program program;
    const char *value = setting("record");
    if (value == NULL)
        return;
    *(void **)&kernel_info = real("clGetKernelInfo");
    *(void **)&build_info = real("clGetProgramBuildInfo");
    copy_text(value, sizeof folder, folder, NULL);
    if (kernel_info(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) != CL_SUCCESS ||
        kernel_info(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL) != CL_SUCCESS ||
        build_info(program, device_of(queue), CL_PROGRAM_BUILD_OPTIONS, sizeof options, options,
                   NULL) != CL_SUCCESS)
        abort();
    char *source = source_of(program);
    unsigned long long id = hash(source);
    snprintf(path, sizeof path, "%s/%016llx.%s.%zux%zux%zu", folder, id, name, local[0],
             dimensions > 1 ? local[1] : 1, dimensions > 2 ? local[2] : 1);
    if (access(path, F_OK) != 0) {
        write_text(path, options);
        snprintf(path, sizeof path, "%s/%016llx.cl", folder, id);
        write_text(path, source);
    }
    free(source);
}

/* -------------------------------------------------------------- what is called */

/* The error that the function shall give now, or 0. */
static long failure_of(const char *name, int index) {
    static atomic_bool failed[CALL_COUNT];
    const char *value = setting(name);
    char *end = NULL;
    long failure = value != NULL ? strtol(value, &end, 10) : 0;
    if (failure != 0 && strncmp(end, ",once", 5) == 0 && atomic_exchange(&failed[index], true))
        return 0;
    return failure;
}

#define FUNCTION(type, name, parameters, arguments, fail, look)                                    \
    EXPORT type CL_API_CALL name parameters {                                                      \
        type(*call) parameters;                                                                    \
        long failure = failure_of(#name, INDEX_##name);                                            \
        *(void **)&call = real(#name);                                                             \
        if (failure != 0)                                                                          \
            fail;                                                                                  \
        atomic_fetch_add(&counts[INDEX_##name], 1);                                                \
        look;                                                                                      \
        return call arguments;                                                                     \
    }
#define OVERRIDE(type, name, parameters, arguments, fail)                                          \
    FUNCTION(type, name, parameters, arguments, fail, (void)0)
#define OVERRIDE_LAUNCH(type, name, parameters, arguments, fail)                                   \
    FUNCTION(type, name, parameters, arguments, fail, record(a, b, c, f))
CALLS(OVERRIDE)
LAUNCHES(OVERRIDE_LAUNCH)

/* -------------------------------------------------------- platforms, devices */

static int invented; /* its address is a platform */

static bool invents(void) {
    return setting("broken") != NULL || setting("empty") != NULL;
}

EXPORT cl_int CL_API_CALL clGetPlatformIDs(cl_uint room, cl_platform_id *ids, cl_uint *count) {
    cl_int (*call)(cl_uint, cl_platform_id *, cl_uint *);
    if (setting("clGetPlatformIDs") != NULL)
        return (cl_int)strtol(setting("clGetPlatformIDs"), NULL, 10);
    if (setting("none") != NULL) {
        *count = 0;
        return CL_SUCCESS;
    }
    *(void **)&call = real("clGetPlatformIDs");
    cl_uint first = invents();
    if (ids != NULL && first > 0)
        ids[0] = (cl_platform_id)(void *)&invented;
    cl_int code = call(ids != NULL ? room - first : 0, ids != NULL ? ids + first : NULL, count);
    if (count != NULL)
        *count += first;
    return code;
}

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t bytes,
                                            void *out, size_t *needed) {
    cl_int (*call)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
    if ((void *)id == (void *)&invented) {
        copy_text("Invented", bytes, out, needed);
        return CL_SUCCESS;
    }
    *(void **)&call = real("clGetPlatformInfo");
    return call(id, what, bytes, out, needed);
}

EXPORT cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint room,
                                         cl_device_id *ids, cl_uint *count) {
    cl_int (*call)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
    if ((void *)id == (void *)&invented)
        return setting("broken") != NULL ? CL_OUT_OF_HOST_MEMORY : CL_DEVICE_NOT_FOUND;
    if (setting("clGetDeviceIDs") != NULL)
        return (cl_int)strtol(setting("clGetDeviceIDs"), NULL, 10);
    *(void **)&call = real("clGetDeviceIDs");
    return call(id, type, room, ids, count);
}

EXPORT cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t bytes,
                                          void *out, size_t *needed) {
    cl_int (*call)(cl_device_id, cl_device_info, size_t, void *, size_t *);
    if (setting("clGetDeviceInfo") != NULL)
        return (cl_int)strtol(setting("clGetDeviceInfo"), NULL, 10);
    if (what == CL_DEVICE_TYPE && setting("gpu") != NULL && out != NULL) {
        *(cl_device_type *)out = CL_DEVICE_TYPE_GPU;
        return CL_SUCCESS;
    }
    const char *name = setting("name");
    if (name == NULL && setting("gpu") != NULL)
        name = "Shimmed";
    if (what == CL_DEVICE_NAME && name != NULL) {
        copy_text(name, bytes, out, needed);
        return CL_SUCCESS;
    }
    if (what == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT && setting("width") != NULL && out != NULL) {
        *(cl_uint *)out = (cl_uint)strtoul(setting("width"), NULL, 10);
        return CL_SUCCESS;
    }
    if (what == CL_DEVICE_VERSION && setting("version") != NULL && out != NULL) {
        snprintf(out, bytes, "OpenCL %.3s shim", setting("version"));
        return CL_SUCCESS;
    }
    *(void **)&call = real("clGetDeviceInfo");
    return call(id, what, bytes, out, needed);
}

/* ------------------------------------------------------------------- events */

EXPORT cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t bytes,
                                         void *out, size_t *needed) {
    static atomic_uint looks;
    cl_int (*call)(cl_event, cl_event_info, size_t, void *, size_t *);
    const char *value = setting("clGetEventInfo");
    if (value != NULL)
        return (cl_int)strtol(value, NULL, 10);
    *(void **)&call = real("clGetEventInfo");
    cl_int code = call(event, what, bytes, out, needed);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && code == CL_SUCCESS) {
        if (setting("lost") != NULL)
            *(cl_int *)out = (cl_int)strtol(setting("lost"), NULL, 10);
        else if (setting("lazy") != NULL && atomic_fetch_add(&looks, 1) % 50 != 49)
            *(cl_int *)out = CL_RUNNING;
    }
    return code;
}

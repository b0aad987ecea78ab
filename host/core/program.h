/* program - OpenCL C from cl/, embedded at build, with its settings in front. */
#ifndef MIMUS_HOST_PROGRAM_H
#define MIMUS_HOST_PROGRAM_H

#include "device.h"

/* One setting of a kernel file: `#define name value` goes in front of the source, replacing the
 * default that the file gives it. Lists (head offsets) may hold commas. */
typedef struct mimus__define {
    const char *name;
    const char *value;
} mimus__define;

enum { MIMUS__MAX_DEFINES = 32, MIMUS__DEFINE_BYTES = 64 };

/* A list of them, built up; text holds the numbers. */
typedef struct mimus__defines {
    mimus__define list[MIMUS__MAX_DEFINES];
    char text[MIMUS__MAX_DEFINES][MIMUS__DEFINE_BYTES];
    size_t count;
} mimus__defines;

void mimus__define_number(mimus__defines *defines, const char *name, uint64_t value);
/* `value` is borrowed. */
void mimus__define_text(mimus__defines *defines, const char *name, const char *value);

typedef struct mimus__program {
    mimus__device *device;
    cl_program handle;
} mimus__program;

/* Build cl/<file> ("loss.cl") for the device; may take seconds where a driver's cache is cold.
 * `#include "x.clh"` lines are replaced by the embedded file, each once, whatever #if they stand
 * in; those of a template, "x.inc", every time. Options: -cl-std=CL1.2 -cl-mad-enable
 * -cl-no-signed-zeros; never fast-math (opencl.md 25). MIMUS_ERR_DEVICE names file and device and
 * carries the first error of the build log. MIMUS_ERR_STOPPED as mimus__device_set_watch says. */
mimus_status mimus__program_build(mimus__program *out, mimus__device *device, const char *file,
                                  const mimus__defines *defines);
/* The same for a source in memory; `file` names it in messages. For tests and self-tests. */
mimus_status mimus__program_build_text(mimus__program *out, mimus__device *device, const char *file,
                                       const char *source, const mimus__defines *defines);
void mimus__program_free(mimus__program *program);

/* The embedded file's text, or NULL. */
const char *mimus__program_source(const char *file);

/* For tests that a wrong kernel is noticed: from now on every program is built from `source` where
 * it would take the embedded file, or include it. One replacement at a time; both texts are
 * borrowed until the next call, and NULL, NULL ends it. No other thread may be building. */
void mimus__program_replace(const char *file, const char *source);

#endif

#include "program.h"

#include "alloc.h"
#include "kernels.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char options[] = "-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros -w";

/* ------------------------------------------------------------------- defines */

/* `count` goes past the end, so that the build can refuse. */
void mimus__define_number(mimus__defines *defines, const char *name, uint64_t value) {
    if (defines->count < MIMUS__MAX_DEFINES) {
        char *text = defines->text[defines->count];
        snprintf(text, MIMUS__DEFINE_BYTES, "%" PRIu64, value);
        defines->list[defines->count] = (mimus__define){name, text};
    }
    defines->count++;
}

void mimus__define_text(mimus__defines *defines, const char *name, const char *value) {
    if (defines->count < MIMUS__MAX_DEFINES)
        defines->list[defines->count] = (mimus__define){name, value};
    defines->count++;
}

/* ------------------------------------------------------------- source text */

typedef struct text {
    char *bytes; /* ends in NUL once something was added */
    size_t length, capacity;
} text;

static mimus_status add_bytes(text *out, const char *bytes, size_t count) {
    mimus_status status = mimus__grow(&out->bytes, &out->capacity, out->length + count + 1, 1);
    if (status == MIMUS_OK) {
        memcpy(out->bytes + out->length, bytes, count);
        out->length += count;
        out->bytes[out->length] = '\0';
    }
    return status;
}

static mimus_status add_line_mark(text *out, unsigned line, const char *file) {
    char mark[256];
    int length = snprintf(mark, sizeof mark, "#line %u \"%.200s\"\n", line, file);
    return add_bytes(out, mark, (size_t)length);
}

static mimus_status add_defines(text *out, const mimus__defines *defines) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; defines != NULL && i < defines->count; i++) {
        const mimus__define *define = &defines->list[i];
        MIMUS_TRY(add_bytes(out, "#define ", 8));
        MIMUS_TRY(add_bytes(out, define->name, strlen(define->name)));
        MIMUS_TRY(add_bytes(out, " ", 1));
        MIMUS_TRY(add_bytes(out, define->value, strlen(define->value)));
        MIMUS_TRY(add_bytes(out, "\n", 1));
    }
out:
    return status;
}

static size_t embedded_count(void) {
    size_t count = 0;
    while (mimus__embedded_files[count].name != NULL)
        count++;
    return count;
}

static const char *replaced_file, *replaced_source; /* or NULL */

void mimus__program_replace(const char *file, const char *source) {
    replaced_file = file;
    replaced_source = source;
}

static const char *embedded_source(size_t index) {
    const mimus__embedded_file *file = &mimus__embedded_files[index];
    if (file->name != NULL && replaced_file != NULL && strcmp(file->name, replaced_file) == 0)
        return replaced_source;
    return (const char *)file->bytes;
}

static size_t embedded_index(const char *name, size_t length) {
    size_t index = 0;
    for (; mimus__embedded_files[index].name != NULL; index++) {
        const char *candidate = mimus__embedded_files[index].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0)
            break;
    }
    return index;
}

/* The name between the quotes of an #include line, or NULL. */
static const char *included_name(const char *line, size_t length, size_t *name_length) {
    static const char word[] = "include";
    const char *end = line + length;
    while (line < end && isblank((unsigned char)*line))
        line++;
    if (line == end || *line++ != '#')
        return NULL;
    while (line < end && isblank((unsigned char)*line))
        line++;
    if ((size_t)(end - line) < sizeof word - 1 || memcmp(line, word, sizeof word - 1) != 0)
        return NULL;
    line += sizeof word - 1;
    while (line < end && isblank((unsigned char)*line))
        line++;
    if (line == end || *line++ != '"')
        return NULL;
    const char *close = memchr(line, '"', (size_t)(end - line));
    *name_length = close != NULL ? (size_t)(close - line) : 0;
    return close != NULL ? line : NULL;
}

static mimus_status add_source(text *out, const char *file, const char *source, bool *included);

/* A template may come many times, but not inside of itself. */
static bool is_template(const char *name, size_t length) {
    return length > 4 && memcmp(name + length - 4, ".inc", 4) == 0;
}

/* `included` (every embedded file) keeps a file from coming twice, and an include of itself from
 * never ending. */
static mimus_status add_include(text *out, const char *file, unsigned line, const char *name,
                                size_t length, bool *included) {
    mimus_status status = MIMUS_OK;
    size_t index = embedded_index(name, length);
    const mimus__embedded_file *found = &mimus__embedded_files[index];
    if (found->name == NULL)
        return mimus__fail(MIMUS_ERR_DEVICE, "%s:%u: there is no kernel file \"%.*s\" to include",
                           file, line, (int)(length < 100 ? length : 100), name);
    if (!included[index]) {
        included[index] = true;
        MIMUS_TRY(add_source(out, found->name, embedded_source(index), included));
        included[index] = !is_template(name, length);
    }
    MIMUS_TRY(add_line_mark(out, line + 1, file));
out:
    return status;
}

static mimus_status add_source(text *out, const char *file, const char *source, bool *included) {
    mimus_status status = MIMUS_OK;
    unsigned line = 1;
    MIMUS_TRY(add_line_mark(out, 1, file));
    for (; *source != '\0'; line++) {
        size_t length = strcspn(source, "\n");
        size_t name_length;
        const char *name = included_name(source, length, &name_length);
        if (name != NULL) {
            MIMUS_TRY(add_include(out, file, line, name, name_length, included));
        } else {
            MIMUS_TRY(add_bytes(out, source, length));
            MIMUS_TRY(add_bytes(out, "\n", 1));
        }
        source += length + (source[length] == '\n');
    }
out:
    return status;
}

/* ---------------------------------------------------------------------- build */

/* Where the first line with "error" begins, else the first line that is not blank. */
static const char *first_error(const char *log) {
    const char *first = log + strspn(log, " \t\r\n");
    for (const char *line = first; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        for (size_t i = 0; i + 5 <= length; i++) {
            if (memcmp(line + i, "error", 5) == 0 || memcmp(line + i, "Error", 5) == 0)
                return line;
        }
        line += length + (line[length] == '\n');
    }
    return first;
}

static mimus_status build_failed(const mimus__device *device, cl_program program, const char *file,
                                 cl_int code) {
    const char *name = mimus__device_get_info(device)->name;
    cl_device_id id = mimus__device_id(device);
    size_t bytes = 0;
    char *log = NULL;
    if (mimus__cl.clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) ==
        CL_SUCCESS)
        log = calloc(bytes + 1, 1);
    if (log != NULL)
        mimus__cl.clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    const char *line = log != NULL ? first_error(log) : "";
    size_t length = strcspn(line, "\r\n");
    mimus_status status = mimus__fail(MIMUS_ERR_DEVICE, "cannot build %s on %s: %s (%d): %.*s",
                                      file, name, mimus__cl_error_name(code), (int)code,
                                      (int)(length < 512 ? length : 512), line);
    free(log);
    return status;
}

static mimus_status build_once(mimus__program *out, mimus__device *device, const char *file,
                               const text *source) {
    const char *bytes = source->bytes;
    cl_int code;
    cl_program program = mimus__cl.clCreateProgramWithSource(mimus__device_context(device), 1,
                                                             &bytes, &source->length, &code);
    if (program == NULL)
        return mimus__device_check(device, code, "clCreateProgramWithSource");
    cl_device_id id = mimus__device_id(device);
    code = mimus__cl.clBuildProgram(program, 1, &id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        mimus_status status = build_failed(device, program, file, code);
        mimus__cl.clReleaseProgram(program);
        return status;
    }
    *out = (mimus__program){device, program};
    return MIMUS_OK;
}

/* When a signal comes (Ctrl-C), the clang inside a driver removes the files that it is writing and
 * hands the signal on: the build fails for no fault of the source, and works a second time. */
static mimus_status build(mimus__program *out, mimus__device *device, const char *file,
                          const text *source) {
    mimus_status status = mimus__device_check_stop(device);
    if (status == MIMUS_OK)
        status = build_once(out, device, file, source);
    if (status != MIMUS_ERR_DEVICE)
        return status;
    status = mimus__device_check_stop(device);
    return status == MIMUS_OK ? build_once(out, device, file, source) : status;
}

mimus_status mimus__program_build_text(mimus__program *out, mimus__device *device, const char *file,
                                       const char *source, const mimus__defines *defines) {
    mimus_status status = MIMUS_OK;
    text whole = {0};
    bool *included = NULL;
    *out = (mimus__program){0};
    if (defines != NULL && defines->count > MIMUS__MAX_DEFINES)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: %zu settings, at most %d", file, defines->count,
                           MIMUS__MAX_DEFINES);
    MIMUS_TRY(mimus__alloc(&included, embedded_count(), sizeof *included));
    MIMUS_TRY(add_defines(&whole, defines));
    MIMUS_TRY(add_source(&whole, file, source, included));
    MIMUS_TRY(build(out, device, file, &whole));
out:
    free(included);
    free(whole.bytes);
    return status;
}

mimus_status mimus__program_build(mimus__program *out, mimus__device *device, const char *file,
                                  const mimus__defines *defines) {
    const char *source = mimus__program_source(file);
    *out = (mimus__program){0};
    if (source == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "there is no kernel file \"%s\"", file);
    return mimus__program_build_text(out, device, file, source, defines);
}

void mimus__program_free(mimus__program *program) {
    if (program == NULL || program->handle == NULL)
        return;
    mimus__cl.clReleaseProgram(program->handle);
    *program = (mimus__program){0};
}

const char *mimus__program_source(const char *file) {
    return embedded_source(embedded_index(file, strlen(file)));
}

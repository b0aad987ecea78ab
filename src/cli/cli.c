#include "cli.h"

#include "human.h"
#include "progress.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_line(const char *verb, const char *format, va_list arguments) {
    char line[4096];
    vsnprintf(line, sizeof line, format, arguments);
    char *shown = human_text(line, SIZE_MAX);
    if (verb == NULL)
        fprintf(stderr, "mimus: %s\n", shown);
    else
        fprintf(stderr, "mimus %s: %s\n", verb, shown);
    free(shown);
}

void cli_message(const char *verb, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(verb, format, arguments);
    va_end(arguments);
}

int cli_usage(const char *verb, const char *format, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t length = strlen(line);
    const char *link = length > 0 && line[length - 1] == '?' ? " See" : "; see";
    cli_message(verb, "%s%s mimus %s%s--help", line, link, verb != NULL ? verb : "",
                verb != NULL ? " " : "");
    return CLI_USAGE;
}

int cli_fail(const char *verb, mimus_status status) {
    cli_message(verb, "%s", mimus_last_error());
    switch (status) {
    case MIMUS_ERR_ARGUMENT:
        return CLI_USAGE;
    case MIMUS_ERR_NO_DEVICE:
    case MIMUS_ERR_DEVICE:
        return CLI_DEVICE;
    case MIMUS_ERR_DIVERGED:
        return CLI_DIVERGED;
    case MIMUS_ERR_STOPPED:
        return 128 + progress_signal();
    default:
        return CLI_FAILED;
    }
}

int cli_show(const char *verb, char *text, bool raw, void (*show)(const json_t *document)) {
    int code = CLI_DONE;
    json_error_t error;
    json_t *document = raw ? NULL : json_loads(text, 0, &error);
    if (raw) {
        puts(text);
    } else if (document == NULL) {
        cli_message(verb, "cannot read the library's own document: %s", error.text);
        code = CLI_FAILED;
    } else {
        show(document);
    }
    json_decref(document);
    mimus_free(text);
    return code;
}

int cli_finish(const char *verb, int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    cli_message(verb, "standard output: %s", strerror(errno));
    return code == CLI_DONE ? CLI_FAILED : code;
}

static void *check(void *memory) {
    if (memory == NULL) {
        cli_message(NULL, "out of memory");
        exit(CLI_FAILED);
    }
    return memory;
}

void *cli_allocate(size_t count, size_t size) {
    return check(calloc(count > 0 ? count : 1, size));
}

void *cli_reallocate(void *memory, size_t count, size_t size) {
    return check(count <= SIZE_MAX / size ? realloc(memory, count * size) : NULL);
}

char *cli_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = cli_allocate((size_t)length + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

double cli_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *cli_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

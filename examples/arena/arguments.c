#include "arguments.h"

#include <errno.h>
#include <mimus.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- speaking */

static void speak(const char *verb, const char *format, va_list arguments, const char *end) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c != 0; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    fflush(stdout);
    fprintf(stderr, "mimus-arena%s%s: %s", verb != NULL ? " " : "", verb != NULL ? verb : "", text);
    fputs(end, stderr);
}

void complain(const char *verb, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    speak(verb, format, arguments, "\n");
    va_end(arguments);
}

int complain_usage(const char *verb, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    speak(verb, format, arguments, "; see mimus-arena");
    va_end(arguments);
    fprintf(stderr, "%s%s --help\n", verb != NULL ? " " : "", verb != NULL ? verb : "");
    return EXIT_USAGE;
}

int complain_mimus(const char *verb) {
    complain(verb, "%s", mimus_last_error());
    return EXIT_FAILED;
}

int finish(const char *verb, int code) {
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    complain(verb, "cannot write to standard output: %s", strerror(errno));
    return EXIT_FAILED;
}

/* ----------------------------------------------------------------- parsing */

static void explain(const argument_page *page) {
    printf("usage: mimus-arena %s [OPTION...]\n\n%s\nOptions\n", page->verb, page->about);
    for (size_t i = 0; i < page->options; i++) {
        const argument *option = &page->option[i];
        char left[40], letter[5] = "    ";
        if (option->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s %s", letter, option->name,
                 option->value != NULL ? option->value : "");
        printf("  %-24s %s\n", left, option->help);
    }
    printf("  %-24s %s\n", "-h, --help", "say this");
}

/* The option that `word` names, and the value behind its '='. */
static const argument *find(const argument_page *page, const char *word, const char **value) {
    for (size_t i = 0; i < page->options; i++) {
        const argument *option = &page->option[i];
        if (word[0] == '-' && word[1] == option->letter && option->letter != 0 && word[2] == 0)
            return option;
        size_t length = strlen(option->name);
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, option->name, length) != 0)
            continue;
        if (word[2 + length] == '=')
            *value = word + 2 + length + 1;
        if (word[2 + length] == 0 || word[2 + length] == '=')
            return option;
    }
    return NULL;
}

static bool to_number(const char *text, uint64_t *out) {
    char *end;
    if (text[0] < '0' || text[0] > '9') /* strtoull would take signs and spaces */
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == 0 && *out <= UINT64_C(1) << 53;
}

static int store(const argument_page *page, const argument *option, const char *value) {
    if (option->text != NULL)
        *option->text = value;
    else if (!to_number(value, option->number))
        return complain_usage(page->verb, "--%s takes a whole number, not \"%s\"", option->name,
                              value);
    return EXIT_DONE;
}

/* Take the option at argv[*at]. */
static int take(const argument_page *page, int argc, char **argv, int *at) {
    const char *word = argv[*at], *value = NULL;
    const argument *option = find(page, word, &value);
    if (option == NULL)
        return complain_usage(page->verb, word[0] == '-' ? "unknown option %s" : "what is \"%s\"?",
                              word);
    if (option->flag != NULL) {
        *option->flag = true;
        return value == NULL ? EXIT_DONE
                             : complain_usage(page->verb, "--%s takes no value", option->name);
    }
    if (value == NULL && *at + 1 < argc)
        value = argv[++*at];
    if (value == NULL)
        return complain_usage(page->verb, "--%s needs a value, %s", option->name, option->value);
    return store(page, option, value);
}

bool arguments_parse(const argument_page *page, int argc, char **argv, int *code) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            explain(page);
            *code = finish(page->verb, EXIT_DONE);
            return false;
        }
        *code = take(page, argc, argv, &i);
        if (*code != EXIT_DONE)
            return false;
    }
    return true;
}

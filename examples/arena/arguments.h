/* arguments - a command line, parsed and explained from one table; and how the program speaks. */
#ifndef ARENA_ARGUMENTS_H
#define ARENA_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One option. Exactly one of flag, text and number is set: where it goes. */
typedef struct argument {
    const char *name;  /* "seed" for --seed */
    char letter;       /* 'o' for -o, or 0 */
    const char *value; /* what a value looks like, "N"; NULL: it takes none */
    const char *help;
    bool *flag;
    const char **text;
    uint64_t *number; /* 0 to 2^53: what every JSON reader keeps exactly */
} argument;

typedef struct argument_page {
    const char *verb;
    const char *about; /* ends in a newline */
    const argument *option;
    size_t options;
} argument_page;

/* Parse a verb's arguments (argv[0] is the verb). Returns true when the verb is to run; otherwise
 * help or a complaint was printed and *code is the exit code. */
bool arguments_parse(const argument_page *page, int argc, char **argv, int *code);

/* "mimus-arena VERB: the formatted message" as one line on standard error. */
void complain(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Complain, and say where the help is. Gives EXIT_USAGE. */
int complain_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Complain about the latest failure of mimus. Gives EXIT_FAILED. */
int complain_mimus(const char *verb);

/* Results must have arrived: flush standard output. Gives `code`, or EXIT_FAILED. */
int finish(const char *verb, int code);

#endif

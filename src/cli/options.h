/* options - what a verb takes on its command line, parsed and explained from one table. */
#ifndef MIMUS_CLI_OPTIONS_H
#define MIMUS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Texts that were collected, NULL-terminated; NULL while there are none. */
typedef struct cli_texts {
    char **item;
    size_t count;
} cli_texts;

void texts_add(cli_texts *texts, char *text); /* takes over `text` */
void texts_clear(cli_texts *texts);

/* One option. Exactly one of flag, text and list is set: where it goes. */
typedef struct cli_option {
    char letter;       /* 'o' for -o, or 0 */
    const char *name;  /* "output" for --output; '_' is taken and shown as '-' */
    const char *value; /* what a value looks like, "FILE"; NULL: it takes none */
    const char *help;
    const char *fallback; /* the default as text, shown when not "" and not NULL */
    bool *flag;           /* becomes true */
    const char **text;    /* becomes the value; the last one counts */
    cli_texts *list;      /* gets "key=value", or the value alone */
    const char *key;
    const char *stands; /* what a list gets as the value of an option that takes none */
} cli_option;

/* Options under one title of the help; `hidden` ones are taken and not shown. */
typedef struct option_group {
    const char *title;
    const cli_option *option;
    size_t count;
    bool hidden;
} option_group;

typedef struct option_groups {
    option_group *item;
    size_t count;
} option_groups;

/* `title` (NULL: the group goes on) and `option` (count) are borrowed. Where two options have one
 * name, the first is it. */
void options_add(option_groups *groups, const char *title, const cli_option *option, size_t count,
                 bool hidden);
void options_clear(option_groups *groups);

/* The rest of what `mimus VERB --help` says; every text ends in a newline, NULL: nothing. */
typedef struct option_page {
    const char *verb;
    const char *usage; /* a line a form, without "mimus VERB" */
    const char *about;
    const char *notes; /* behind the options: examples, exit codes */
} option_page;

/* Parse a verb's arguments (argv[0] is the verb) as GNU programs do: options anywhere, values
 * behind '=' or as the next argument, unambiguous beginnings, "--" ends them. Returns true when
 * the verb is to run, with its operands at argv[*first] to the end. Otherwise help or a
 * complaint was printed and *code is the exit code. */
bool options_parse(const option_page *page, const option_groups *groups, int argc, char **argv,
                   int *first, int *code);

/* The candidate that `word` was most likely meant to be, or NULL. `at` gives the candidates one
 * by one, NULL past the last. */
const char *options_nearest(const char *word, const char *(*at)(const void *user, size_t index),
                            const void *user);

/* Which of the candidates `value` is; false after a complaint that lists them. */
bool options_choice(const char *verb, const char *option, const char *value,
                    const char *(*at)(const void *user, size_t index), size_t *out);

/* Print `text` wrapped to the width of the help, from column `column` on, where the cursor
 * stands; lines that follow begin there too. */
void options_wrap(const char *text, size_t column);

#endif

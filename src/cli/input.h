/* input - the options that say how recordings are read, the same for every verb that reads any. */
#ifndef MIMUS_CLI_INPUT_H
#define MIMUS_CLI_INPUT_H

#include "mimus.h"
#include "options.h"

typedef struct cli_input {
    const char *format;
    const char *illegal;
    cli_texts settings; /* "key=value" for the reader */
    cli_texts titles;   /* of the formats' groups */
    const char *where, *episodes, *limit;
    cli_option common[6]; /* --format, --set, --illegal, and which parts */
    cli_option **own;     /* per format, what its reader takes: --senses and such */
    size_t formats;
} cli_input;

/* Add the options to `groups`, which borrows them from `input`; those of the single formats are
 * shown in the help when `explain` is set, and taken always. */
void input_init(cli_input *input, option_groups *groups, bool explain);
void input_clear(cli_input *input);

/* The recording that these operands are; false after a complaint about an option. Borrows from
 * all of them. */
bool input_source(const cli_input *input, const char *verb, char **paths, int count,
                  mimus_source *out);

#endif

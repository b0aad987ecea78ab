/* cli - what the verbs share: exit codes, one-line errors, results on standard output. */
#ifndef MIMUS_CLI_H
#define MIMUS_CLI_H

#include "mimus.h"

#include <jansson.h>

/* CLI_DIVERGED has everything saved, like a stop. After SIGINT or SIGTERM, with everything saved,
 * it is 128 + the signal, as shells have it. */
enum exit_code {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_DEVICE = 3,
    CLI_DIVERGED = 4,
    CLI_WORSE = 5, /* mimus compare --check */
};

/* "mimus VERB: the formatted message" as one clean line on stderr. */
void cli_message(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Report the library's latest failure and give the exit code that stands for it. */
int cli_fail(const char *verb, mimus_status status);

/* Report wrong usage, and where the help is. Gives CLI_USAGE. */
int cli_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Show a document of the library on standard output: as it is when `raw`, else through `show`.
 * Frees `text`. Gives an exit code. */
int cli_show(const char *verb, char *text, bool raw, void (*show)(const json_t *document));

/* Results must have arrived: flush standard output, and turn a failed write into a failure. */
int cli_finish(const char *verb, int code);

/* Zeroed memory; a command has no better answer to its lack than to end. */
void *cli_allocate(size_t count, size_t size);
void *cli_reallocate(void *memory, size_t count, size_t size);
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Numbers and texts of a document; NaN and NULL where there is none. cli_text is as the document
 * has it, and has to be cleaned (human_fit, human_text, a table) before a terminal gets it. */
double cli_number(const json_t *object, const char *key);
const char *cli_text(const json_t *object, const char *key);

#endif

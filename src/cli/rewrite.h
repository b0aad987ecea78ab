/* rewrite - the verbs that read recordings and write one file: import and convert. */
#ifndef MIMUS_CLI_REWRITE_H
#define MIMUS_CLI_REWRITE_H

#include "options.h"

#include <mimus.h>

typedef struct rewrite_verb {
    option_page page;
    const char *value, *help; /* of the option -o */
    const char *missing;      /* what is said where -o is not given */
    bool explain;             /* the options of every format in the help */
    mimus_status (*call)(const mimus_source *source, const char *path, const mimus_watch *watch,
                         char **report);
} rewrite_verb;

/* All of the verb; returns the exit code. */
int rewrite_run(const rewrite_verb *verb, int argc, char **argv);

#endif

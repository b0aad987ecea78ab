/* settings - one option for every setting of a training run, made from the library's own table. */
#ifndef MIMUS_CLI_SETTINGS_H
#define MIMUS_CLI_SETTINGS_H

#include "mimus.h"
#include "options.h"

typedef struct cli_settings {
    const char *file;
    cli_option config[1]; /* --config */
    cli_option *fields;   /* --hidden, --epochs, ... */
    cli_option *negated;  /* --no-tensorboard ...: what is on or off */
    cli_texts names;      /* of these */
    cli_texts hints;      /* "X[,...]": what takes a value a run */
    cli_texts values;     /* "epochs=20" */
} cli_settings;

/* Add the options to `groups`, which borrows them from `settings`. */
void settings_init(cli_settings *settings, option_groups *groups);
void settings_clear(cli_settings *settings);

/* Whether any of them was given. */
bool settings_given(const cli_settings *settings);

/* The configuration that they are: the defaults, over them the file `base` (may be NULL), over
 * them that of --config, over them the single options. */
mimus_status settings_make(const cli_settings *settings, const char *base, mimus_config **out);

#endif

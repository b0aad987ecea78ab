/* progress - what a long call shows on standard error, and how a user stops it.
 *
 * On a terminal a bar stands at the bottom, redrawn at most ten times a second, and a table of the
 * epochs grows above it. Elsewhere there is one plain line a phase and an epoch. */
#ifndef MIMUS_CLI_PROGRESS_H
#define MIMUS_CLI_PROGRESS_H

#include "mimus.h"

typedef struct cli_progress cli_progress;

/* From here to progress_end, SIGINT, SIGTERM and SIGHUP ask the call to stop (a second one ends
 * the process), and a reader of the output that went away is no reason to die. `stopping` says
 * what happens on the first: "after this epoch". Quiet: only messages are shown. */
cli_progress *progress_begin(const char *verb, const char *stopping, bool quiet);

/* What to hand to the library; lives as long as `progress`. */
const mimus_watch *progress_watch(cli_progress *progress);

/* Erase the bar, restore the signals, free. */
void progress_end(cli_progress *progress);

/* The signal that asked to stop, or 0. */
int progress_signal(void);

#endif

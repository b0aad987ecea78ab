/* show_runs - what came of many runs: a table with a row a run, the mean, and the best. */
#ifndef MIMUS_CLI_SHOW_RUNS_H
#define MIMUS_CLI_SHOW_RUNS_H

#include <jansson.h>
#include <stdbool.h>

/* Whether it is the summary of many. */
bool show_runs_is(const json_t *summary);

void show_runs(const json_t *summary);

#endif

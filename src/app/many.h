/* many - the folder of runs that trained at once (docs/run.md).
 *
 *     runs.json      the runs' names, and which were kept; makes the folder one of many runs
 *     config.json    the settings, those in which the runs differ as lists: trains the same again
 *     metrics.jsonl  a row an epoch: means over the runs
 *     summary.json   a row a run, mean, standard error and best; written at the end
 *     lock           held while a process trains into the folder
 *     run-00 ...     a run's folder each (run.h) */
#ifndef MIMUS_APP_MANY_H
#define MIMUS_APP_MANY_H

#include "config_runs.h"
#include "pass.h"

/* Whether the folder is one of many runs. */
bool mimus__many_is(const char *folder);

/* Its runs' names: a JSON array; `kept_only`, those whose checkpoints are there. */
mimus_status mimus__many_names(json_t **out, const char *folder, bool kept_only);

/* Make and lock the folder, and in it the runs' folders, as mimus__run_create. */
mimus_status mimus__many_create(mimus__run *out, mimus__pass *pass, const char *folder);
/* Write config.json, then runs.json. */
mimus_status mimus__many_begin(const mimus__run *run, const mimus__pass *pass, uint32_t keep);

/* Lock an existing folder, and open its runs, those that were kept, in a pass that is new for them.
 * `*places` (members) says which of all runs each is; free with free(). */
mimus_status mimus__many_open(mimus__run *out, mimus__pass *pass, const mimus_watch *watch,
                              size_t **places, const char *folder);

/* config.json says how they go on; metrics.jsonl goes on behind the hindmost, and the summary is
 * that of an earlier part. */
mimus_status mimus__many_resume(const mimus__run *run, const mimus__pass *pass, uint32_t keep);

/* The settings of runs as one configuration with lists. */
mimus_status mimus__many_config(json_t **out, const mimus__pass *pass, uint32_t keep);

/* A mimus__pass's on_epoch, its user the folder's mimus__run: a row of metrics.jsonl. */
mimus_status mimus__many_epoch(void *user, mimus__pass *pass, const json_t *row);

/* What came of them, once the pass is concluded: summary.json. */
mimus_status mimus__many_summary(json_t **out, const mimus__run *run, const mimus__pass *pass);

/* Remove the checkpoints of all runs but the best `keep`. */
mimus_status mimus__many_keep(const mimus__run *run, const mimus__pass *pass, uint32_t keep);

#endif

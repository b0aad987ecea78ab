/* run - the folder that a training run leaves behind, and what is in it (docs/run.md).
 *
 *     config.json       the resolved settings
 *     run.json          the recording's files and fingerprint, mimus' version
 *     metrics.jsonl     a row an epoch
 *     events.out.*      the same for TensorBoard, a file for every process that trained
 *     last.safetensors  to go on from
 *     best.safetensors  the best held-out loss so far
 *     summary.json      what came of it; written at the end
 *     evaluation.json   the best checkpoint judged on the held-out part, likewise
 *     lock              held while a process trains into the folder */
#ifndef MIMUS_APP_RUN_H
#define MIMUS_APP_RUN_H

#include "dataset.h"
#include "model.h"

typedef struct mimus__run {
    char *folder;
    int lock;   /* descriptor, -1 without */
    bool fresh; /* made by this process and not yet trained into: removed when it fails */
} mimus__run;

/* Make a new folder (or take an empty one, or what a process left that was killed before it
 * trained) and lock it. MIMUS_ERR_IO says when there is a run already and how to resume it. */
mimus_status mimus__run_create(mimus__run *out, const char *folder);

/* The same for a folder of many runs: what such a process left is removed. */
mimus_status mimus__run_create_many(mimus__run *out, const char *folder);

/* Lock an existing run; MIMUS_ERR_BUSY when another process trains into it. */
mimus_status mimus__run_open(mimus__run *out, const char *folder);

/* The same by another file than run.json, which makes it what it is. */
mimus_status mimus__run_open_by(mimus__run *out, const char *folder, const char *mark);

/* Unlock. A fresh folder is removed again with what create and begin put there. */
void mimus__run_close(mimus__run *run);

/* Write config.json, then run.json, which makes the folder a run. */
mimus_status mimus__run_begin(mimus__run *run, const mimus_config *config,
                              const mimus_source *source, const mimus__dataset *dataset);

/* folder/name into `*out`; free with free(). */
mimus_status mimus__run_path(char **out, const mimus__run *run, const char *name);

/* Remove folder/name, if it is there. */
mimus_status mimus__run_remove(const mimus__run *run, const char *name);

/* The recording that the run was started on, as run.json keeps it. Free with
 * mimus__run_source_free. */
typedef struct mimus__run_source {
    mimus_source source;
    char fingerprint[32];
    json_t *json; /* owns the texts */
    const char **paths;
    const char **options;
} mimus__run_source;

/* MIMUS_ERR_FORMAT names file and member of what is not as run_begin wrote it. */
mimus_status mimus__run_read_source(mimus__run_source *out, const mimus__run *run);
void mimus__run_source_clear(mimus__run_source *source);

#endif

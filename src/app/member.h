/* member - one run of a pass: its folder, settings and model, what its epochs come to, and how it
 * ends. */
#ifndef MIMUS_APP_MEMBER_H
#define MIMUS_APP_MEMBER_H

#include "run.h"
#include "trainer.h"

struct mimus__pass;

typedef struct mimus__member {
    struct mimus__pass *pass; /* borrowed */
    mimus__run run;
    mimus_config *config;
    mimus__share share;  /* of the pass' dataset */
    mimus__model *model; /* parameters, moments, progress */
    uint64_t epochs_run; /* by this process */
    double seconds;      /* of these epochs */
    const char *ended;   /* "finished", "stopped early", "stopped on request", "diverged" */
    char *trouble;       /* why the latest epoch is none to end on, or NULL */
    bool stuck;          /* no further epoch can mend it */
    bool dropped;        /* whoever trains it wants no more of it */
    json_t *best;        /* what the best checkpoint knows of its epoch, or NULL */
    char *events;        /* this process's event file, from its first epoch on, or NULL */
    json_t *summary;     /* once it has ended */
} mimus__member;

void mimus__member_clear(mimus__member *member);

/* Its share of the dataset, and a fresh model; writes the folder, which then can be resumed. The
 * run is created, the settings are there. */
mimus_status mimus__member_begin(mimus__member *member, const mimus_source *source);

/* Model and settings of an existing run, which is open; `wanted` NULL: its own settings. Its rows
 * of metrics that the checkpoint does not know are dropped. */
mimus_status mimus__member_resume(mimus__member *member, const mimus_config *wanted);
/* Of a run with nothing left to do: its summary, with nothing done by this process. `*out` = NULL
 * where it has none that says the same, or was not judged, because it was killed after its last
 * epoch. */
mimus_status mimus__member_finished(json_t **out, const mimus__member *member);
/* The best checkpoint is only ever replaced: one that is gone or damaged is told, and the next
 * epoch takes its place. */
mimus_status mimus__member_resume_best(mimus__member *member);
/* Open the recording that it was trained on, wherever it now lies (`wanted`, or NULL), unless the
 * pass has one; either way it must be the same. */
mimus_status mimus__member_resume_recording(mimus__member *member, const mimus_source *wanted);
/* Its share, once the pass is open. */
mimus_status mimus__member_resume_share(mimus__member *member);
/* config.json says how it goes on from here. */
mimus_status mimus__member_keep_config(const mimus__member *member);

/* Nothing is left to do: all epochs are done, or those that patience waits for, or none can mend
 * it. */
bool mimus__member_is_done(const mimus__member *member);

/* Whether the epoch that a resumed run stands on was one to end on. */
mimus_status mimus__member_judge_again(mimus__member *member);

/* The summary of an earlier part is none of a run that goes on. */
mimus_status mimus__member_drop_outcome(const mimus__member *member);

/* What the trainer needs to know of it. */
mimus__trainee mimus__member_trainee(const mimus__member *member);

/* Leave everything about an epoch in the folder: `result` is that of seat `seat` of the trainer,
 * which took `seconds`. `*out` is the row of metrics.jsonl; free it. */
mimus_status mimus__member_epoch(mimus__member *m, uint32_t seat, const mimus__epoch_result *result,
                                 double seconds, json_t **out);

/* Say how it ended, and make its summary. `stopped`: before its time, on request. */
mimus_status mimus__member_end(mimus__member *member, bool stopped);
/* Judge its best epoch, and write the summary with the pass' phases. The trainer may be gone. */
mimus_status mimus__member_conclude(mimus__member *member);

/* MIMUS_ERR_DIVERGED or MIMUS_ERR_STOPPED, with what to do, if it ended so. */
mimus_status mimus__member_outcome(const mimus__member *member);

/* Its folder's file `name`; free with free(). */
mimus_status mimus__member_save(const mimus__member *member, const char *name);

#endif

/* pass - runs of one architecture that train at once: one recording on the device, one trainer, one
 * read an epoch for all of them. A run alone is a pass of one.
 *
 * Each run (member.h) has a folder and settings of its own and leaves in it what it would leave
 * alone, bit for bit. Members that have ended take no part any more: the others go on without
 * them. */
#ifndef MIMUS_APP_PASS_H
#define MIMUS_APP_PASS_H

#include "member.h"
#include "stopwatch.h"

typedef struct mimus__pass {
    mimus__dataset dataset;
    mimus__device *device;
    mimus__store store;
    bool borrows; /* dataset, device and store are another pass' */
    mimus__trainer *trainer;
    mimus__member *member; /* (members) */
    size_t members;
    uint32_t *seated; /* (seats) members that the trainer has, in its order */
    uint32_t seats;
    mimus__epoch_result *results; /* (members) of the seats */
    mimus__stopwatch stopwatch;
    const mimus_watch *watch;               /* the stopwatch's */
    bool shared;                            /* one gather is for all */
    bool stopped;                           /* on request */
    uint64_t epochs_run;                    /* by this process */
    uint64_t reads_before, launches_before; /* of the device, when training began */
    double seconds;                         /* of epochs */
    void *user;
    /* At an epoch's end, `row` being what on_epoch then gets; NULL: nobody. A member that is not to
     * go on has its `dropped` set here. */
    mimus_status (*on_epoch)(void *user, struct mimus__pass *pass, const json_t *row);
} mimus__pass;

/* An empty pass of `members` members, which the caller fills; it must stay where it is. */
mimus_status mimus__pass_new(mimus__pass *out, size_t members, const mimus_watch *watch);
void mimus__pass_clear(mimus__pass *pass);

/* Take over the dataset, device and store of a pass that is prepared and lives longer: the
 * recording is loaded once for all of them. The members agree in what decides them: how it is
 * split, `stack`, `store`. In place of mimus__pass_open. */
void mimus__pass_borrow(mimus__pass *pass, const mimus__pass *owner);

/* Open the device, and split the recording, for the members' settings. "auto" of their `store` is
 * decided; MIMUS_ERR_MEMORY where there is no room for them. */
mimus_status mimus__pass_open(mimus__pass *pass);

/* Upload the recording and build the trainer for the members that are not done. */
mimus_status mimus__pass_prepare(mimus__pass *pass);

/* Train from where they stand until epoch `until` (from 1) is done, each at most to its own end or
 * patience; those that stand behind first. Stops between two epochs when the watch wants to:
 * `stopped` then is set, which is no failure. */
mimus_status mimus__pass_train(mimus__pass *pass, uint64_t until);

/* How each member ended. Frees the trainer. */
mimus_status mimus__pass_end(mimus__pass *pass);
/* Once ended: each member's summary.json and evaluation.json. Frees the store, but for one that is
 * borrowed. */
mimus_status mimus__pass_conclude(mimus__pass *pass);

/* {"name", "vendor", "driver", "peak_bytes"}: a new reference. */
mimus_status mimus__pass_device_json(json_t **out, const mimus__device *device);

#endif

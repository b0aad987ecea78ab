/* watch - progress of a long call, reported at a bearable rate, and the wish to stop it. */
#ifndef MIMUS_BASE_WATCH_H
#define MIMUS_BASE_WATCH_H

#include "status.h"

/* One phase of a long call. */
typedef struct mimus__phase {
    const mimus_watch *watch; /* may be NULL: nothing is reported, nothing stops */
    mimus_progress progress;
    double begun;
    double reported;
} mimus__phase;

/* Begin a phase (a static text) of `total` samples, 0 when not known, and report it. */
mimus__phase mimus__phase_begin(const mimus_watch *watch, const char *name, uint64_t total);

/* `done` samples are through. Reports at most 10 times a second, and always at `total`; fails with
 * MIMUS_ERR_STOPPED when the watch wants to stop. Costs a reading of the clock. */
mimus_status mimus__phase_step(mimus__phase *phase, uint64_t done);

/* MIMUS_ERR_STOPPED, "stopped on request WHEN", when the watch (may be NULL) wants to stop. */
mimus_status mimus__watch_check(const mimus_watch *watch, const char *when);

/* The phase is over, after `done` samples: for one whose total was not known. */
mimus_status mimus__phase_end(mimus__phase *phase, uint64_t done);

/* Pass one line to the watch's on_message. */
void mimus__watch_message(const mimus_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

/* stopwatch - how long each phase of a long call took, noted as it reports its progress. */
#ifndef MIMUS_APP_STOPWATCH_H
#define MIMUS_APP_STOPWATCH_H

#include "json.h"

enum { MIMUS__STOPWATCH_PHASES = 16 };

typedef struct mimus__stopwatch {
    const mimus_watch *caller; /* may be NULL */
    mimus_watch watch;         /* to hand on in its place: tells the caller everything */
    struct {
        const char *name; /* as in mimus_progress: static */
        double seconds;
    } phase[MIMUS__STOPWATCH_PHASES];
    size_t phases;
    double since; /* when the present one, the latest, went on */
} mimus__stopwatch;

/* `out` must stay where it is while its watch is in use. */
void mimus__stopwatch_begin(mimus__stopwatch *out, const mimus_watch *caller);

/* A phase (a static text) begins, if it is not the present one: for those that report nothing. */
void mimus__stopwatch_enter(mimus__stopwatch *stopwatch, const char *name);

/* [{"name": "audit", "seconds": 0.25}, ...] in the order in which they began; a phase lasts until
 * the next one begins. */
mimus_status mimus__stopwatch_json(json_t **out, mimus__stopwatch *stopwatch);

#endif

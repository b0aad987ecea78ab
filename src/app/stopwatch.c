#include "stopwatch.h"

#include "clock.h"

#include <string.h>

/* The time since then was the present phase's. */
static void lap(mimus__stopwatch *stopwatch) {
    double now = mimus__clock_seconds();
    if (stopwatch->phases > 0)
        stopwatch->phase[stopwatch->phases - 1].seconds += now - stopwatch->since;
    stopwatch->since = now;
}

void mimus__stopwatch_enter(mimus__stopwatch *stopwatch, const char *name) {
    size_t last = stopwatch->phases;
    bool same = last > 0 && strcmp(stopwatch->phase[last - 1].name, name) == 0;
    if (same || last == MIMUS__STOPWATCH_PHASES)
        return;
    lap(stopwatch);
    stopwatch->phase[stopwatch->phases++].name = name;
}

static void on_progress(void *user, const mimus_progress *progress) {
    mimus__stopwatch *stopwatch = user;
    const mimus_watch *caller = stopwatch->caller;
    mimus__stopwatch_enter(stopwatch, progress->phase);
    if (caller != NULL && caller->on_progress != NULL)
        caller->on_progress(caller->user, progress);
}

static void on_epoch(void *user, const char *json) {
    const mimus_watch *caller = ((mimus__stopwatch *)user)->caller;
    caller->on_epoch(caller->user, json);
}

static void on_message(void *user, const char *text) {
    const mimus_watch *caller = ((mimus__stopwatch *)user)->caller;
    caller->on_message(caller->user, text);
}

static bool should_stop(void *user) {
    const mimus_watch *caller = ((mimus__stopwatch *)user)->caller;
    return caller->should_stop(caller->user);
}

/* What the caller has not, the watch has not either, so that nothing is made for it. */
void mimus__stopwatch_begin(mimus__stopwatch *out, const mimus_watch *caller) {
    *out = (mimus__stopwatch){.caller = caller, .watch = {.user = out, .on_progress = on_progress}};
    if (caller == NULL)
        return;
    out->watch.on_epoch = caller->on_epoch != NULL ? on_epoch : NULL;
    out->watch.on_message = caller->on_message != NULL ? on_message : NULL;
    out->watch.should_stop = caller->should_stop != NULL ? should_stop : NULL;
}

mimus_status mimus__stopwatch_json(json_t **out, mimus__stopwatch *stopwatch) {
    mimus_status status = MIMUS_OK;
    json_t *list = json_array();
    lap(stopwatch);
    for (size_t i = 0; i < stopwatch->phases; i++) {
        json_t *phase = json_object();
        MIMUS_TRY(mimus__json_append(list, phase));
        MIMUS_TRY(mimus__json_set(phase, "name", json_string(stopwatch->phase[i].name)));
        MIMUS_TRY(
            mimus__json_set(phase, "seconds", mimus__json_number(stopwatch->phase[i].seconds)));
    }
    *out = json_incref(list);
out:
    json_decref(list);
    return status;
}

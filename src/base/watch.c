#include "watch.h"

#include "clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const double INTERVAL = 0.1; /* seconds between two reports */

static void report(mimus__phase *phase, double now) {
    phase->progress.seconds = now - phase->begun;
    phase->reported = now;
    phase->watch->on_progress(phase->watch->user, &phase->progress);
}

mimus__phase mimus__phase_begin(const mimus_watch *watch, const char *name, uint64_t total) {
    double now = mimus__clock_seconds();
    mimus__phase phase = {
        .watch = watch, .progress = {.phase = name, .total = total, .loss = NAN}, .begun = now};
    if (watch != NULL && watch->on_progress != NULL)
        report(&phase, now);
    return phase;
}

mimus_status mimus__phase_step(mimus__phase *phase, uint64_t done) {
    const mimus_watch *watch = phase->watch;
    if (watch == NULL)
        return MIMUS_OK;
    if (watch->should_stop != NULL && watch->should_stop(watch->user))
        return mimus__fail(MIMUS_ERR_STOPPED, "stopped on request after %llu samples of %s",
                           (unsigned long long)done, phase->progress.phase);
    phase->progress.done = done;
    if (watch->on_progress != NULL) {
        double now = mimus__clock_seconds();
        if (now - phase->reported >= INTERVAL || done == phase->progress.total)
            report(phase, now);
    }
    return MIMUS_OK;
}

mimus_status mimus__watch_check(const mimus_watch *watch, const char *when) {
    if (watch == NULL || watch->should_stop == NULL || !watch->should_stop(watch->user))
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_STOPPED, "stopped on request %s", when);
}

mimus_status mimus__phase_end(mimus__phase *phase, uint64_t done) {
    phase->progress.total = done;
    return mimus__phase_step(phase, done);
}

void mimus__watch_message(const mimus_watch *watch, const char *format, ...) {
    if (watch == NULL || watch->on_message == NULL)
        return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    watch->on_message(watch->user, line);
}

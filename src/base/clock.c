#include "clock.h"

#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double mimus__clock_seconds(void) {
    return seconds_of(CLOCK_MONOTONIC);
}

double mimus__clock_wall(void) {
    return seconds_of(CLOCK_REALTIME);
}

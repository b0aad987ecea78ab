/* clock - seconds of a clock that never goes back, and of the one on the wall. */
#ifndef MIMUS_BASE_CLOCK_H
#define MIMUS_BASE_CLOCK_H

double mimus__clock_seconds(void);

/* Since the beginning of 1970, UTC; for files that keep when something was. */
double mimus__clock_wall(void);

#endif

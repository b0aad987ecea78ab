/* clock - seconds of a clock that never goes back. */
#ifndef MIMUS_BASE_CLOCK_H
#define MIMUS_BASE_CLOCK_H

double mimus__clock_seconds(void);

#endif

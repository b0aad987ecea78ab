/* apart - a reader at work in a process of its own, for the sake of libraries that a damaged or
 * hostile file can crash. What it finds comes back over a socket; when it dies, that is an error of
 * the file, in a line like any other.
 *
 * The process is a fork of this one and ends with the call. It does not see signals that ask the
 * program to stop, runs with no more than this thread, and opens nothing that the reader would not.
 */
#ifndef MIMUS_DATA_APART_H
#define MIMUS_DATA_APART_H

#include "reader.h"

/* Seconds of its own time after which a reader that reports no progress is given up; for tests to
 * change. */
extern unsigned mimus__apart_patience;

typedef mimus_status (*mimus__apart_reader)(const char *path, const char *const *options,
                                            mimus__sink *sink, const mimus_watch *watch);

/* As `read` would, with `library` to blame in the message when it crashes. */
mimus_status mimus__apart_read(mimus__apart_reader read, const char *library, const char *path,
                               const char *const *options, mimus__sink *sink,
                               const mimus_watch *watch);

/* Anything else that leaves nothing but files behind; `path` is what it is about. The process ends
 * where the task does: what it left open is not closed, and nothing it did to memory is seen here.
 */
typedef mimus_status (*mimus__apart_task)(void *user, const mimus_watch *watch);
mimus_status mimus__apart_do(mimus__apart_task task, void *user, const char *library,
                             const char *path, const mimus_watch *watch);

/* Where a reader shows the numbers that bins are made of: in the process apart these go to the bins
 * of the other one. */
typedef struct mimus__apart_numbers mimus__apart_numbers;
struct mimus__apart_numbers {
    mimus_status (*open)(mimus__apart_numbers *to, const mimus__action_columns *columns);
    mimus_status (*observe)(mimus__apart_numbers *to, const float *numbers); /* (columns) */
};

typedef mimus_status (*mimus__apart_observer)(const char *path, const char *const *options,
                                              mimus__apart_numbers *to, const mimus_watch *watch);

mimus_status mimus__apart_observe(mimus__apart_observer observe, const char *library,
                                  const char *path, const char *const *options, mimus__bins *bins,
                                  const mimus_watch *watch);

#endif

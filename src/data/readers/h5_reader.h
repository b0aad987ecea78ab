/* h5_reader - HDF5 files in the layouts of Minari, D4RL and robomimic, or with datasets named. */
#ifndef MIMUS_DATA_H5_READER_H
#define MIMUS_DATA_H5_READER_H

#include "reader.h"

extern const mimus__reader mimus__h5_reader;

/* Reads as it does, but in this process: for tests, which look into it. */
mimus_status mimus__h5_read_here(const char *path, const char *const *options, mimus__sink *sink,
                                 const mimus_watch *watch);

#endif

/* npz - NumPy archives of arrays with one row a sample. */
#ifndef MIMUS_DATA_NPZ_H
#define MIMUS_DATA_NPZ_H

#include "reader.h"

extern const mimus__reader mimus__npz_reader;

#endif

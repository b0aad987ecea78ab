/* h5_chunks - the chunks of a dataset, held against what libhdf5 takes them for.
 *
 * libhdf5 believes a file: it reads beyond the end of a chunk that unpacks to less than its shape
 * says, and unpacks one that never ends until there is no memory left. So every packed chunk is
 * unpacked once before libhdf5 does, for its size alone, and only packings are taken of which that
 * can be known: gzip, with or without shuffling and checksums. */
#ifndef MIMUS_DATA_H5_CHUNKS_H
#define MIMUS_DATA_H5_CHUNKS_H

#include "h5_file.h"
#include "npy.h"

enum { MIMUS__H5_FILTERS = 8 };

typedef struct mimus__h5_chunks {
    const char *where; /* borrowed */
    hid_t set;         /* borrowed */
    uint32_t dimensions;
    hsize_t extent[H5S_MAX_RANK]; /* of the dataset, */
    hsize_t chunk[H5S_MAX_RANK];  /* and of a chunk */
    uint64_t bytes;               /* of a chunk, unpacked */
    uint64_t band;                /* of all the chunks that one row lies in */
    int filters;
    H5Z_filter_t filter[MIMUS__H5_FILTERS];
    bool whole_only;  /* chunks across the dataset's edge are not packed */
    uint64_t checked; /* rows whose chunks have been looked at */
    uint8_t *packed;
    size_t capacity;
} mimus__h5_chunks;

/* Judge the chunks of an open dataset by what is declared; `npy` has its elements and shape.
 * MIMUS_ERR_UNSUPPORTED for a packing that is not known and for more than `limit` bytes in a band,
 * MIMUS_ERR_DATA when chunks were never written, whose elements would be made up. Clear also after
 * a failure. */
mimus_status mimus__h5_chunks_open(mimus__h5_chunks *out, hid_t set, hid_t space, hid_t creation,
                                   const mimus__npy *npy, uint64_t limit, const char *where);
void mimus__h5_chunks_clear(mimus__h5_chunks *chunks);

/* Before rows up to `end` are read: whether the chunks that they lie in are whole. */
mimus_status mimus__h5_chunks_check(mimus__h5_chunks *chunks, uint64_t end);

#endif

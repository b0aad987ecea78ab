#include "h5_chunks.h"

#include "alloc.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CHECKSUM_BYTES = 4 }; /* of the filter fletcher32, behind what it is the sum of */

/* ----------------------------------------------------------------- filters */

static bool is_known(H5Z_filter_t filter) {
    return filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE ||
           filter == H5Z_FILTER_FLETCHER32;
}

static mimus_status unknown_filter(const mimus__h5_chunks *chunks, H5Z_filter_t filter,
                                   const char *name) {
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: is packed by filter %d%s%s%s, and only gzip is unpacked, once, with or "
                       "without shuffle and fletcher32; h5repack -f GZIP=4 packs it so",
                       chunks->where, (int)filter, *name != '\0' ? " (" : "", name,
                       *name != '\0' ? ")" : "");
}

static mimus_status take_filters(mimus__h5_chunks *chunks, hid_t creation) {
    int deflates = 0;
    unsigned options = 0;
    chunks->filters = H5Pget_nfilters(creation);
    for (int i = 0; i < chunks->filters; i++) {
        unsigned flags = 0, config = 0;
        size_t values = 0;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(creation, (unsigned)i, &flags, &values, NULL,
                                             sizeof name - 1, name, &config);
        deflates += filter == H5Z_FILTER_DEFLATE;
        if (!is_known(filter) || deflates > 1 || i == MIMUS__H5_FILTERS)
            return unknown_filter(chunks, filter, name);
        chunks->filter[i] = filter;
    }
    if (chunks->filters < 0 || H5Pget_chunk_opts(creation, &options) < 0)
        return mimus__h5_fail("%s: its filters cannot be read", chunks->where);
    chunks->whole_only = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    return MIMUS_OK;
}

/* ------------------------------------------------------------------- shape */

static mimus_status odd_shape(const mimus__h5_chunks *chunks) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: its chunks cannot have the shape that is declared",
                       chunks->where);
}

/* Chunks are no larger than a dataset of fixed extent; bytes and band become what they are. */
static mimus_status measure(mimus__h5_chunks *chunks, hid_t space, uint64_t size) {
    hsize_t most[H5S_MAX_RANK];
    uint64_t bytes = size, band = size;
    if (H5Sget_simple_extent_dims(space, NULL, most) != (int)chunks->dimensions)
        return odd_shape(chunks);
    for (uint32_t d = 0; d < chunks->dimensions; d++) {
        uint64_t chunk = chunks->chunk[d], across = chunk;
        if (chunk == 0 || (most[d] != H5S_UNLIMITED && chunk > most[d]))
            return odd_shape(chunks);
        if (d > 0 && chunks->extent[d] > chunk)
            across = (chunks->extent[d] - 1) / chunk * chunk + chunk; /* widths are small */
        if (__builtin_mul_overflow(bytes, chunk, &bytes) ||
            __builtin_mul_overflow(band, across, &band))
            return odd_shape(chunks);
    }
    chunks->bytes = bytes;
    chunks->band = band;
    return MIMUS_OK;
}

static mimus_status check_count(const mimus__h5_chunks *chunks, hid_t space) {
    uint64_t wanted = 1;
    hsize_t there = 0;
    for (uint32_t d = 0; d < chunks->dimensions; d++)
        wanted *= (chunks->extent[d] - 1) / chunks->chunk[d] + 1; /* at most the elements */
    if (H5Dget_num_chunks(chunks->set, space, &there) < 0)
        return mimus__h5_fail("%s: its chunks cannot be counted", chunks->where);
    if (there < wanted)
        return mimus__fail(MIMUS_ERR_DATA, "%s: only %llu of its %llu chunks were ever written",
                           chunks->where, (unsigned long long)there, (unsigned long long)wanted);
    return MIMUS_OK;
}

mimus_status mimus__h5_chunks_open(mimus__h5_chunks *out, hid_t set, hid_t space, hid_t creation,
                                   const mimus__npy *npy, uint64_t limit, const char *where) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__h5_chunks){.where = where, .set = set, .dimensions = npy->dimensions};
    for (uint32_t d = 0; d < npy->dimensions; d++)
        out->extent[d] = npy->shape[d];
    MIMUS_TRY(take_filters(out, creation));
    if (H5Pget_chunk(creation, H5S_MAX_RANK, out->chunk) != (int)npy->dimensions)
        MIMUS_TRY(odd_shape(out));
    MIMUS_TRY(measure(out, space, npy->size));
    if (out->band > limit)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_UNSUPPORTED,
                              "%s: its chunks hold %llu rows, %llu MiB and more than the %llu that "
                              "are unpacked at once; h5repack -l CHUNK=... makes smaller ones",
                              where, (unsigned long long)out->chunk[0],
                              (unsigned long long)(out->band >> 20),
                              (unsigned long long)(limit >> 20)));
    MIMUS_TRY(check_count(out, space));
out:
    return status;
}

void mimus__h5_chunks_clear(mimus__h5_chunks *chunks) {
    free(chunks->packed);
    *chunks = (mimus__h5_chunks){0};
}

/* ---------------------------------------------------------------- checking */

/* How a chunk is packed, by the filters that were not left out when it was written. */
typedef struct packing {
    bool deflated;
    uint64_t inner; /* bytes that it inflates to; of one that is not deflated, that it has */
    uint64_t tail;  /* bytes of checksums behind the deflated ones */
} packing;

static packing packing_of(const mimus__h5_chunks *chunks, const hsize_t *at, unsigned left_out) {
    packing p = {.inner = chunks->bytes};
    bool partial = false;
    for (uint32_t d = 0; d < chunks->dimensions; d++)
        partial = partial || chunks->extent[d] - at[d] < chunks->chunk[d];
    for (int i = 0; i < chunks->filters && !(partial && chunks->whole_only); i++) {
        if ((left_out >> i & 1) != 0)
            continue;
        p.deflated = p.deflated || chunks->filter[i] == H5Z_FILTER_DEFLATE;
        if (chunks->filter[i] == H5Z_FILTER_FLETCHER32)
            *(p.deflated ? &p.tail : &p.inner) += CHECKSUM_BYTES;
    }
    return p;
}

/* The bytes that a deflated text has, or `most` + 1 when it has more, or 0 when it is none. */
static uint64_t inflated_bytes(uint8_t *packed, uint64_t bytes, uint64_t most) {
    uint8_t scratch[16 << 10];
    uint64_t total = 0;
    int code = Z_OK;
    z_stream stream = {.next_in = packed, .avail_in = (uInt)bytes};
    if (inflateInit(&stream) != Z_OK)
        return 0;
    while (code == Z_OK && total <= most) {
        stream.next_out = scratch;
        stream.avail_out = sizeof scratch;
        code = inflate(&stream, Z_NO_FLUSH);
        total += sizeof scratch - stream.avail_out;
    }
    inflateEnd(&stream);
    if (code != Z_STREAM_END && total <= most)
        return 0;
    return total <= most ? total : most + 1;
}

static mimus_status broken(const mimus__h5_chunks *chunks, const hsize_t *at, const char *how) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: the chunk of row %llu is damaged: %s", chunks->where,
                       (unsigned long long)at[0], how);
}

static mimus_status check_packed(mimus__h5_chunks *chunks, const hsize_t *at, const packing *p,
                                 uint64_t stored) {
    mimus_status status = MIMUS_OK;
    uint32_t left_out = 0;
    if (stored <= p->tail || stored > 2 * p->inner + 1024) /* deflate adds little at worst */
        return broken(chunks, at, "no data is packed to as many bytes");
    MIMUS_TRY(mimus__grow(&chunks->packed, &chunks->capacity, (size_t)stored, 1));
    if (H5Dread_chunk(chunks->set, H5P_DEFAULT, at, &left_out, chunks->packed) < 0)
        return mimus__h5_fail("%s: the chunk of row %llu cannot be read", chunks->where,
                              (unsigned long long)at[0]);
    if (inflated_bytes(chunks->packed, stored - p->tail, p->inner) != p->inner)
        return broken(chunks, at, "it does not unpack to what it should hold");
out:
    return status;
}

static mimus_status check_chunk(mimus__h5_chunks *chunks, const hsize_t *at) {
    unsigned left_out = 0;
    haddr_t place = HADDR_UNDEF;
    hsize_t stored = 0;
    if (H5Dget_chunk_info_by_coord(chunks->set, at, &left_out, &place, &stored) < 0)
        return mimus__h5_fail("%s: the chunk of row %llu cannot be found", chunks->where,
                              (unsigned long long)at[0]);
    if (place == HADDR_UNDEF || stored == 0)
        return broken(chunks, at, "it was never written");
    const packing p = packing_of(chunks, at, left_out);
    if (p.deflated)
        return check_packed(chunks, at, &p, stored);
    return stored == p.inner ? MIMUS_OK : broken(chunks, at, "it has not the size that it should");
}

/* The next chunk of the same rows; false past the last. */
static bool advance(const mimus__h5_chunks *chunks, hsize_t *at) {
    for (uint32_t d = chunks->dimensions - 1; d > 0; d--) {
        at[d] += chunks->chunk[d];
        if (at[d] < chunks->extent[d])
            return true;
        at[d] = 0;
    }
    return false;
}

mimus_status mimus__h5_chunks_check(mimus__h5_chunks *chunks, uint64_t end) {
    mimus_status status = MIMUS_OK;
    for (; chunks->checked < end; chunks->checked += chunks->chunk[0]) {
        hsize_t at[H5S_MAX_RANK] = {chunks->checked};
        do {
            MIMUS_TRY(check_chunk(chunks, at));
        } while (advance(chunks, at));
    }
out:
    return status;
}

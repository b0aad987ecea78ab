#include "parts.h"

#include "alloc.h"
#include "gather.h"
#include "parts.clh"

#include <stdlib.h>
#include <string.h>

static uint64_t count_pieces(const mimus__run_rows *const *rows, uint32_t count) {
    uint64_t pieces = 0;
    for (uint32_t r = 0; r < count; r++)
        pieces += rows[r]->pieces;
    return pieces;
}

mimus_status mimus__parts_new(mimus__parts *out, mimus__device *device,
                              const mimus__run_rows *const *rows, uint32_t count) {
    mimus_status status = MIMUS_OK;
    uint64_t pieces = count_pieces(rows, count);
    *out = (mimus__parts){.runs = count, .room = (uint32_t)pieces};
    if (pieces > UINT32_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "the runs' rows are %llu pieces; at most %u are possible",
                           (unsigned long long)pieces, UINT32_MAX);
    MIMUS_TRY(
        mimus__buffer_new(&out->table, device, count * sizeof(mimus__part), "the runs' parts"));
    MIMUS_TRY(mimus__buffer_new(&out->pieces, device, (size_t)pieces * sizeof(mimus__piece),
                                "the runs' rows"));
    MIMUS_TRY(mimus__parts_set(out, rows, count));
out:
    if (status != MIMUS_OK)
        mimus__parts_free(out);
    return status;
}

void mimus__parts_free(mimus__parts *parts) {
    mimus__buffer_free(&parts->table);
    mimus__buffer_free(&parts->pieces);
    *parts = (mimus__parts){0};
}

mimus_status mimus__parts_set(mimus__parts *parts, const mimus__run_rows *const *rows,
                              uint32_t count) {
    mimus_status status = MIMUS_OK;
    mimus__part *table = NULL;
    mimus__piece *pieces = NULL;
    uint32_t used = 0;
    if (count > parts->runs || count_pieces(rows, count) > parts->room)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%u runs of %llu pieces; there is room for %u of %u",
                           count, (unsigned long long)count_pieces(rows, count), parts->runs,
                           parts->room);
    MIMUS_TRY(mimus__alloc(&table, count, sizeof *table));
    MIMUS_TRY(mimus__alloc(&pieces, parts->room, sizeof *pieces));
    for (uint32_t r = 0; r < count; r++) {
        table[r] = (mimus__part){.training = rows[r]->training,
                                 .half_bits = mimus__sampler_half_bits(rows[r]->training),
                                 .heldout = rows[r]->heldout,
                                 .base = rows[r]->base,
                                 .first_piece = used,
                                 .pieces = rows[r]->pieces};
        memcpy(pieces + used, rows[r]->piece, rows[r]->pieces * sizeof *pieces);
        used += rows[r]->pieces;
    }
    MIMUS_TRY(mimus__buffer_write(&parts->table, 0, table, count * sizeof *table));
    MIMUS_TRY(mimus__buffer_write(&parts->pieces, 0, pieces, used * sizeof *pieces));
out:
    free(table);
    free(pieces);
    return status;
}

void mimus__parts_define(const mimus__parts *parts, mimus__defines *defines) {
    mimus__define_number(defines, "PARTS", parts != NULL);
}

size_t mimus__parts_arguments(const mimus__parts *parts, mimus__arg *arguments) {
    if (parts == NULL)
        return 0;
    arguments[0] = MIMUS_ARG_BUFFER(&parts->table);
    arguments[1] = MIMUS_ARG_BUFFER(&parts->pieces);
    return 2;
}

#include "store.h"

#include "alloc.h"
#include "geometry.h"
#include "narrow.h"
#include "watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Rows are packed on the host in pieces of about this size, each one upload. */
enum { PIECE_BYTES = 8 << 20 };

mimus__row_layout mimus__row_layout_of(const mimus_schema *schema, uint32_t stack,
                                       mimus__store_form form) {
    assert(form != MIMUS__STORE_AUTO);
    mimus__row_layout layout = {.form = form, .senses = schema->senses};
    layout.sense_words =
        form == MIMUS__STORE_F32 ? schema->senses : mimus__divide_up(schema->senses, 2);
    layout.action_words = (schema->heads + 1) / 2;
    layout.mask_words = mimus__schema_mask_words(schema);
    layout.label_words = layout.action_words + layout.mask_words;
    if (schema->weights)
        layout.weight_word = layout.label_words++;
    if (stack > 1)
        layout.age_word = layout.label_words++;
    layout.words = layout.sense_words + layout.label_words;
    return layout;
}

/* A walk over spans, packing row after row. */
typedef struct packer {
    const mimus__recording *recording;
    const mimus_schema *schema;
    const mimus__row_layout *layout;
    bool judge; /* some labels must be left out */
    float weight_factor;
    float *mean, *scale; /* (S) for 16 bits */
    mimus__block block;
    size_t block_index;
    bool has_block;
    /* the piece being filled */
    uint32_t *piece;
    uint32_t piece_rows, piece_filled;
    /* where it goes */
    mimus__store *store;
    uint32_t next_row; /* of the store, of the piece's first row */
    mimus__phase phase;
} packer;

static void pack_labels(const packer *p, uint32_t i, uint32_t *words) {
    const mimus_schema *schema = p->schema;
    const uint16_t *actions = p->block.actions + (size_t)i * schema->heads;
    uint32_t first_action = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t label =
            p->judge ? mimus__audit_label(&p->block, schema, i, h, first_action) : actions[h];
        first_action += schema->head[h].actions;
        words[h / 2] = h % 2 == 0 ? (uint32_t)MIMUS_NO_LABEL << 16 | label
                                  : (words[h / 2] & 0xFFFFu) | label << 16;
    }
}

/* An odd last half word stays zero, as the piece was allocated. */
static void pack_senses(const packer *p, uint32_t i, uint32_t *words) {
    size_t senses = p->layout->senses;
    const float *row = p->block.senses + (size_t)i * senses;
    if (p->layout->form == MIMUS__STORE_F32)
        memcpy(words, row, senses * sizeof *row);
    else if (p->layout->form == MIMUS__STORE_F16)
        mimus__narrow_f16((uint16_t *)words, row, p->mean, p->scale, senses);
    else
        mimus__narrow_bf16((uint16_t *)words, row, p->mean, p->scale, senses);
}

static void pack_row(const packer *p, uint32_t i, uint64_t age, uint32_t *words) {
    const mimus__row_layout *layout = p->layout;
    uint32_t *labels = words + layout->sense_words;
    pack_senses(p, i, words);
    pack_labels(p, i, labels);
    if (layout->mask_words > 0)
        memcpy(labels + layout->action_words, p->block.masks + (size_t)i * layout->mask_words,
               layout->mask_words * sizeof(uint32_t));
    if (layout->weight_word > 0) {
        float weight = p->block.weights[i] * p->weight_factor;
        memcpy(labels + layout->weight_word, &weight, sizeof weight);
    }
    if (layout->age_word > 0)
        labels[layout->age_word] = age < UINT16_MAX ? (uint32_t)age : UINT16_MAX;
}

/* Upload the filled piece; it may straddle shards. */
static mimus_status flush_piece(packer *p) {
    mimus_status status = MIMUS_OK;
    mimus__store *store = p->store;
    size_t row_bytes = (size_t)p->layout->words * sizeof(uint32_t);
    uint32_t done = 0;
    while (done < p->piece_filled) {
        uint32_t row = p->next_row + done;
        uint32_t in_shard = row & (uint32_t)((1ull << store->shift) - 1);
        uint64_t room = (1ull << store->shift) - in_shard;
        uint32_t count = p->piece_filled - done;
        if (count > room)
            count = (uint32_t)room;
        MIMUS_TRY(mimus__buffer_write(&store->shard[row >> store->shift], in_shard * row_bytes,
                                      p->piece + (size_t)done * p->layout->words,
                                      count * row_bytes));
        done += count;
    }
    p->next_row += p->piece_filled;
    p->piece_filled = 0;
    MIMUS_TRY(mimus__phase_step(&p->phase, p->next_row));
out:
    return status;
}

static void leave_block(const packer *p) {
    if (p->has_block)
        mimus__recording_leave(p->recording, p->block_index);
}

/* Make the block that holds `row` the current one; rows only go up within a part. */
static mimus_status find_block(packer *p, uint64_t row) {
    mimus_status status = MIMUS_OK;
    leave_block(p);
    if (p->has_block && row < p->block.first) {
        p->has_block = false; /* the held-out part starts over */
        p->block_index = 0;
    }
    while (!p->has_block || row >= p->block.first + p->block.samples) {
        if (p->has_block)
            p->block_index++;
        MIMUS_TRY(mimus__recording_block(p->recording, p->block_index, &p->block));
        p->has_block = true;
    }
out:
    return status;
}

static mimus_status pack_rows(packer *p, const mimus__rows *rows) {
    mimus_status status = MIMUS_OK;
    uint64_t age = 0;
    for (size_t s = 0; s < rows->spans; s++) {
        const mimus__span *span = &rows->span[s];
        if (span->start)
            age = 0;
        for (uint64_t row = span->first; row < span->first + span->count; row++, age++) {
            if (!p->has_block || row - p->block.first >= p->block.samples)
                MIMUS_TRY(find_block(p, row));
            pack_row(p, (uint32_t)(row - p->block.first), age,
                     p->piece + (size_t)p->piece_filled * p->layout->words);
            if (++p->piece_filled == p->piece_rows)
                MIMUS_TRY(flush_piece(p));
        }
    }
out:
    return status;
}

/* Shards that so many rows need, and the shift that they then have; 0 where not even a row fits in
 * one. `largest` bounds a shard. */
static uint64_t count_shards(uint64_t largest, uint64_t row_bytes, uint64_t rows, uint32_t *shift) {
    *shift = 0;
    if (largest < row_bytes)
        return 0;
    while (*shift < 31 && (2ull << *shift) * row_bytes <= largest)
        ++*shift;
    return (rows + (1ull << *shift) - 1) >> *shift;
}

static uint64_t largest_shard(const mimus__device_info *info, uint64_t shard_bytes) {
    return shard_bytes > 0 && shard_bytes < info->largest ? shard_bytes : info->largest;
}

bool mimus__store_fits(const mimus__device *device, const mimus__row_layout *layout, uint64_t rows,
                       uint64_t shard_bytes, uint64_t besides) {
    uint32_t shift;
    uint64_t row_bytes = (uint64_t)layout->words * sizeof(uint32_t);
    uint64_t largest = largest_shard(mimus__device_get_info(device), shard_bytes);
    uint64_t shards = count_shards(largest, row_bytes, rows, &shift);
    return shards > 0 && shards <= MIMUS__MAX_SHARDS &&
           rows * row_bytes + besides <= mimus__device_room(device);
}

/* Choose the shards' size and make them. */
static mimus_status make_shards(mimus__store *store, mimus__device *device, uint64_t shard_bytes) {
    mimus_status status = MIMUS_OK;
    const mimus__device_info *info = mimus__device_get_info(device);
    uint64_t rows = (uint64_t)store->training + store->heldout;
    uint64_t row_bytes = (uint64_t)store->layout.words * sizeof(uint32_t);
    uint64_t largest = largest_shard(info, shard_bytes);
    uint64_t shards = count_shards(largest, row_bytes, rows, &store->shift);
    if (shards == 0)
        return mimus__fail(MIMUS_ERR_MEMORY,
                           "a shard of %llu bytes cannot hold a row of %llu bytes",
                           (unsigned long long)largest, (unsigned long long)row_bytes);
    if (shards > MIMUS__MAX_SHARDS)
        return mimus__fail(MIMUS_ERR_MEMORY,
                           "%llu rows of %llu bytes need %llu shards of at most %llu bytes; at "
                           "most %d are possible on %s",
                           (unsigned long long)rows, (unsigned long long)row_bytes,
                           (unsigned long long)shards, (unsigned long long)largest,
                           MIMUS__MAX_SHARDS, info->name);
    for (; store->shards < shards; store->shards++) {
        uint64_t before = (uint64_t)store->shards << store->shift;
        uint64_t here = rows - before;
        if (here > 1ull << store->shift)
            here = 1ull << store->shift;
        MIMUS_TRY(mimus__buffer_new(&store->shard[store->shards], device,
                                    (size_t)(here * row_bytes), "the recording"));
    }
out:
    return status;
}

/* Copies of the recipe's, or 0 and 1. */
static mimus_status take_normalisation(packer *p, const mimus__store_recipe *recipe) {
    mimus_status status = MIMUS_OK;
    size_t senses = p->layout->senses;
    MIMUS_TRY(mimus__alloc(&p->mean, senses, sizeof *p->mean));
    MIMUS_TRY(mimus__alloc(&p->scale, senses, sizeof *p->scale));
    for (size_t s = 0; s < senses; s++) {
        p->mean[s] = recipe->mean != NULL ? recipe->mean[s] : 0.0f;
        p->scale[s] = recipe->mean != NULL ? recipe->scale[s] : 1.0f;
    }
out:
    return status;
}

mimus_status mimus__store_new(mimus__store *out, mimus__device *device,
                              const mimus__recording *recording, const mimus__audit *audit,
                              const mimus__split *split, const mimus__store_recipe *recipe,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(recording);
    packer p = {0};
    *out = (mimus__store){.layout = mimus__row_layout_of(schema, recipe->stack, recipe->form),
                          .normalised = recipe->form != MIMUS__STORE_F32 && recipe->mean != NULL};
    if (split->training.samples + split->heldout.samples > UINT32_MAX) {
        status = mimus__fail(MIMUS_ERR_UNSUPPORTED,
                             "the recording has more than the %u samples that fit", UINT32_MAX);
        goto out;
    }
    out->training = (uint32_t)split->training.samples;
    out->heldout = (uint32_t)split->heldout.samples;
    MIMUS_TRY(make_shards(out, device, recipe->shard_bytes));

    size_t row_bytes = (size_t)out->layout.words * sizeof(uint32_t);
    p = (packer){
        .recording = recording,
        .schema = schema,
        .layout = &out->layout,
        .judge = audit->count[MIMUS__FAULT_RANGE] > 0 || audit->count[MIMUS__FAULT_FORBIDDEN] > 0,
        .weight_factor = recipe->mean_weight > 0 ? (float)(1.0 / recipe->mean_weight) : 1.0f,
        .piece_rows = row_bytes < PIECE_BYTES ? (uint32_t)(PIECE_BYTES / row_bytes) : 1,
        .store = out,
        .phase = mimus__phase_begin(watch, "upload", (uint64_t)out->training + out->heldout)};
    MIMUS_TRY(take_normalisation(&p, recipe));
    MIMUS_TRY(mimus__alloc(&p.piece, p.piece_rows, row_bytes));
    MIMUS_TRY(pack_rows(&p, &split->training));
    MIMUS_TRY(pack_rows(&p, &split->heldout));
    MIMUS_TRY(flush_piece(&p));
    leave_block(&p);
out:
    free(p.mean);
    free(p.scale);
    free(p.piece);
    if (status != MIMUS_OK)
        mimus__store_free(out);
    return status;
}

void mimus__store_free(mimus__store *store) {
    for (uint32_t s = 0; s < MIMUS__MAX_SHARDS; s++)
        mimus__buffer_free(&store->shard[s]);
    *store = (mimus__store){0};
}

void mimus__store_define(const mimus__store *store, uint32_t stack, mimus__defines *defines) {
    mimus__define_number(defines, "SHARDS", store->shards);
    mimus__define_number(defines, "SHARD_SHIFT", store->shift);
    mimus__define_number(defines, "STORE", (uint64_t)store->layout.form);
    mimus__define_number(defines, "SENSES", store->layout.senses);
    mimus__define_number(defines, "LABEL_WORDS", store->layout.label_words);
    mimus__define_number(defines, "STACK", stack);
    mimus__define_number(defines, "AGE_WORD", store->layout.age_word);
}

/* Kernels take 1, 2, 3, 4, 8 or 16 shards: the first is repeated in the places that no row leads
 * to. */
size_t mimus__store_arguments(const mimus__store *store, mimus__arg *arguments) {
    uint32_t shards = store->shards;
    uint32_t places = shards <= 4 ? shards : shards <= 8 ? 8 : 16;
    for (uint32_t s = 0; s < places; s++)
        arguments[s] = MIMUS_ARG_BUFFER(&store->shard[s < shards ? s : 0]);
    return places;
}

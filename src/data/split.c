#include "split.h"

#include "alloc.h"
#include "rng.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The stream of the random numbers that draw episodes, "split" in ASCII. */
static const uint64_t STREAM = 0x73706c6974;

/* Blocks that a single episode is cut into: 5% of it each. */
enum { BLOCKS = 20 };

/* ------------------------------------------------------------------- spans */

static mimus_status add_span(mimus__rows *rows, size_t *capacity, const mimus__span *span) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__grow(&rows->span, capacity, rows->spans + 1, sizeof *rows->span));
    rows->episodes += rows->spans == 0 || rows->span[rows->spans - 1].episode != span->episode;
    rows->span[rows->spans++] = *span;
    rows->samples += span->count;
out:
    return status;
}

static bool begins_episode(const mimus__block *block, uint32_t i) {
    return (block->starts[i / 32] >> (i % 32) & 1) != 0;
}

/* The spans of a recording, found row by row. */
typedef struct finder {
    mimus__rows *rows;
    size_t capacity;
    const mimus__audit *audit;
    mimus__span open;  /* count 0: none */
    uint64_t episodes; /* begun so far */
} finder;

static mimus_status close_span(finder *f) {
    mimus_status status = MIMUS_OK;
    if (f->open.count > 0)
        MIMUS_TRY(add_span(f->rows, &f->capacity, &f->open));
    f->open.count = 0;
out:
    return status;
}

static mimus_status find_in_block(finder *f, const mimus__block *block) {
    mimus_status status = MIMUS_OK;
    for (uint32_t i = 0; i < block->samples; i++) {
        uint64_t row = block->first + i;
        bool begins = begins_episode(block, i) || row == 0;
        bool dropped = mimus__audit_drops(f->audit, row);
        if (begins || dropped)
            MIMUS_TRY(close_span(f));
        f->episodes += begins;
        if (dropped)
            continue;
        if (f->open.count == 0)
            f->open = (mimus__span){.first = row, .start = true, .episode = f->episodes - 1};
        f->open.count++;
    }
out:
    return status;
}

mimus_status mimus__rows_all(mimus__rows *out, const mimus__recording *recording,
                             const mimus__audit *audit) {
    mimus_status status = MIMUS_OK;
    finder f = {.rows = out, .audit = audit};
    *out = (mimus__rows){0};
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        MIMUS_TRY(mimus__recording_block(recording, b, &block));
        MIMUS_TRY(find_in_block(&f, &block));
        mimus__recording_leave(recording, b);
    }
    MIMUS_TRY(close_span(&f));
out:
    return status;
}

void mimus__rows_clear(mimus__rows *rows) {
    free(rows->span);
    *rows = (mimus__rows){0};
}

/* ------------------------------------------------------------------ blocks */

/* Cut all rows into `blocks` of equal size, give or take a row; spans get the number of their
 * block as episode. A cut begins no stretch by itself: the rows still follow one another. */
static mimus_status cut_into_blocks(mimus__rows *rows, uint64_t blocks) {
    mimus_status status = MIMUS_OK;
    mimus__rows cut = {0};
    size_t capacity = 0;
    uint64_t block = 0;
    const uint64_t size = rows->samples / blocks, larger = rows->samples % blocks;
    uint64_t room = size + (larger > 0);
    for (size_t i = 0; i < rows->spans; i++) {
        mimus__span rest = rows->span[i];
        while (rest.count > 0) {
            mimus__span piece = rest;
            piece.count = rest.count < room ? rest.count : room;
            piece.episode = block;
            MIMUS_TRY(add_span(&cut, &capacity, &piece));
            rest.first += piece.count;
            rest.count -= piece.count;
            rest.start = false;
            room -= piece.count;
            if (room == 0) {
                block++;
                room = size + (block < larger);
            }
        }
    }
    mimus__rows_clear(rows);
    *rows = cut;
    cut = (mimus__rows){0};
out:
    mimus__rows_clear(&cut);
    return status;
}

static uint64_t blocks_for(double fraction, uint64_t samples) {
    double blocks = fraction < 1.0 / BLOCKS ? ceil(1 / fraction) : BLOCKS;
    return blocks < (double)samples ? (uint64_t)blocks : samples;
}

/* -------------------------------------------------------------------- draw */

/* An episode (or block) that has rows. */
typedef struct episode {
    uint64_t number;
    uint64_t samples;
} episode;

static mimus_status list_episodes(episode **out, const mimus__rows *rows) {
    mimus_status status = MIMUS_OK;
    episode *list = NULL;
    size_t count = 0;
    MIMUS_TRY(mimus__alloc(&list, (size_t)rows->episodes, sizeof *list));
    for (size_t i = 0; i < rows->spans; i++) {
        if (count == 0 || list[count - 1].number != rows->span[i].episode)
            list[count++].number = rows->span[i].episode;
        list[count - 1].samples += rows->span[i].count;
    }
    *out = list;
out:
    return status;
}

/* How many samples are `fraction` of them, rounded up, but for a millionth: the product's error. */
static uint64_t wanted_samples(double fraction, uint64_t samples) {
    double wanted = ceil(fraction * (double)samples - 1e-6);
    if (fraction > 0 && wanted < 1)
        wanted = 1;
    return (uint64_t)wanted;
}

/* Set held[number] for episodes drawn as the header says; `list` is shuffled. */
static void draw(uint8_t *held, episode *list, size_t count, uint64_t wanted, uint64_t seed) {
    mimus__rng rng = {.seed = seed, .stream = STREAM};
    uint64_t samples = 0;
    for (size_t i = 0; i + 1 < count && samples < wanted; i++) {
        size_t chosen = i + (size_t)mimus__rng_below(&rng, count - i);
        episode swap = list[i];
        list[i] = list[chosen];
        list[chosen] = swap;
        held[list[i].number] = 1;
        samples += list[i].samples;
    }
}

/* Deal the rows out; what follows rows of the other part begins a stretch. */
static mimus_status deal(mimus__split *out, const mimus__rows *all, const uint8_t *held) {
    mimus_status status = MIMUS_OK;
    size_t capacity[2] = {0, 0};
    mimus__rows *part[2] = {&out->training, &out->heldout};
    for (size_t i = 0; i < all->spans; i++) {
        mimus__span span = all->span[i];
        int to = held[span.episode];
        span.start = span.start || held[all->span[i - 1].episode] != to;
        MIMUS_TRY(add_span(part[to], &capacity[to], &span));
    }
out:
    return status;
}

mimus_status mimus__split_new(mimus__split *out, const mimus__recording *recording,
                              const mimus__audit *audit, double fraction, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus__rows all = {0};
    episode *list = NULL;
    uint8_t *held = NULL;
    *out = (mimus__split){0};
    if (!(fraction >= 0 && fraction < 1))
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "the held-out fraction is %g; expected 0 or more, and below 1",
                           fraction);
    MIMUS_TRY(mimus__rows_all(&all, recording, audit));
    if (fraction > 0 && all.episodes == 1)
        MIMUS_TRY(cut_into_blocks(&all, blocks_for(fraction, all.samples)));
    if (all.samples == 0 || (fraction > 0 && all.episodes < 2)) {
        status = mimus__fail(
            MIMUS_ERR_DATA, "%llu usable sample%s: too few to train on%s",
            (unsigned long long)all.samples, mimus__text_plural(all.samples),
            all.samples == 0 ? "" : " and hold some out; --held-out 0 trains on all there is");
        goto out;
    }
    MIMUS_TRY(list_episodes(&list, &all));
    MIMUS_TRY(mimus__alloc(&held, (size_t)all.span[all.spans - 1].episode + 1, 1));
    draw(held, list, (size_t)all.episodes, wanted_samples(fraction, all.samples), seed);
    MIMUS_TRY(deal(out, &all, held));
out:
    mimus__rows_clear(&all);
    free(list);
    free(held);
    return status;
}

/* ------------------------------------------------------------------- folds */

/* Each episode of the shuffled list to the part with the fewest samples so far, the first of
 * several; fold[number] gets it. */
static mimus_status draw_folds(uint32_t *fold, uint32_t folds, const episode *list, size_t count,
                               uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus__rng rng = {.seed = seed, .stream = STREAM};
    uint64_t *samples = NULL;
    size_t *order = NULL;
    MIMUS_TRY(mimus__alloc(&samples, folds, sizeof *samples));
    MIMUS_TRY(mimus__alloc(&order, count, sizeof *order));
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = 0; i < count; i++) {
        size_t chosen = i + (size_t)mimus__rng_below(&rng, count - i), swap = order[i];
        order[i] = order[chosen];
        order[chosen] = swap;
        uint32_t least = 0;
        for (uint32_t f = 1; f < folds; f++)
            least = samples[f] < samples[least] ? f : least;
        fold[list[order[i]].number] = least;
        samples[least] += list[order[i]].samples;
    }
out:
    free(samples);
    free(order);
    return status;
}

/* As deal(), to many. */
static mimus_status deal_folds(mimus__rows *out, uint32_t folds, const mimus__rows *all,
                               const uint32_t *fold) {
    mimus_status status = MIMUS_OK;
    size_t *capacity = NULL;
    MIMUS_TRY(mimus__alloc(&capacity, folds, sizeof *capacity));
    for (size_t i = 0; i < all->spans; i++) {
        mimus__span span = all->span[i];
        uint32_t to = fold[span.episode];
        span.start = span.start || fold[all->span[i - 1].episode] != to;
        MIMUS_TRY(add_span(&out[to], &capacity[to], &span));
    }
out:
    free(capacity);
    return status;
}

mimus_status mimus__split_folds(mimus__rows *out, uint32_t folds, const mimus__recording *recording,
                                const mimus__audit *audit, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus__rows all = {0};
    episode *list = NULL;
    uint32_t *fold = NULL;
    memset(out, 0, folds * sizeof *out);
    MIMUS_TRY(mimus__rows_all(&all, recording, audit));
    if (all.episodes == 1) {
        uint64_t blocks = folds > BLOCKS ? folds : BLOCKS;
        MIMUS_TRY(cut_into_blocks(&all, blocks < all.samples ? blocks : all.samples));
    }
    if (all.episodes < folds) {
        status =
            mimus__fail(MIMUS_ERR_DATA,
                        "%u folds need as many episodes with usable samples, and there %s "
                        "%llu",
                        folds, all.episodes == 1 ? "is" : "are", (unsigned long long)all.episodes);
        goto out;
    }
    MIMUS_TRY(list_episodes(&list, &all));
    MIMUS_TRY(mimus__alloc(&fold, (size_t)all.span[all.spans - 1].episode + 1, sizeof *fold));
    MIMUS_TRY(draw_folds(fold, folds, list, (size_t)all.episodes, seed));
    MIMUS_TRY(deal_folds(out, folds, &all, fold));
out:
    mimus__rows_clear(&all);
    free(list);
    free(fold);
    return status;
}

void mimus__split_clear(mimus__split *split) {
    mimus__rows_clear(&split->training);
    mimus__rows_clear(&split->heldout);
}

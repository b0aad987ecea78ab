#include "statistics.h"

#include "alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples between two joinings: few enough that an outlier among the shifts harms no others. */
enum { JOIN = 4096 };

/* Sums over the samples since the last joining, shifted by the first of them. */
typedef struct sums {
    uint64_t count;
    double *shift;  /* (S) */
    double *sum;    /* (S) of x - shift */
    double *square; /* (S) of (x - shift)^2 */
} sums;

typedef struct collector {
    mimus__statistics *out; /* std holds the sum of squared deviations until the end */
    const mimus_schema *schema;
    uint64_t joined; /* samples in out->mean and out->std */
    sums fresh;
    uint64_t samples;
} collector;

static mimus_status allocate(collector *c) {
    mimus_status status = MIMUS_OK;
    mimus__statistics *out = c->out;
    size_t S = c->schema->senses, H = c->schema->heads;
    MIMUS_TRY(mimus__alloc(&out->mean, S, sizeof *out->mean));
    MIMUS_TRY(mimus__alloc(&out->std, S, sizeof *out->std));
    MIMUS_TRY(mimus__alloc(&out->minimum, S, sizeof *out->minimum));
    MIMUS_TRY(mimus__alloc(&out->maximum, S, sizeof *out->maximum));
    MIMUS_TRY(mimus__alloc(&out->counts, mimus__schema_actions(c->schema), sizeof *out->counts));
    MIMUS_TRY(mimus__alloc(&out->labels, H, sizeof *out->labels));
    MIMUS_TRY(mimus__alloc(&out->legal, H, sizeof *out->legal));
    MIMUS_TRY(mimus__alloc(&c->fresh.shift, S, sizeof *c->fresh.shift));
    MIMUS_TRY(mimus__alloc(&c->fresh.sum, S, sizeof *c->fresh.sum));
    MIMUS_TRY(mimus__alloc(&c->fresh.square, S, sizeof *c->fresh.square));
    for (size_t s = 0; s < S; s++) {
        out->minimum[s] = INFINITY;
        out->maximum[s] = -INFINITY;
    }
out:
    return status;
}

/* ------------------------------------------------------------------ senses */

/* Chan, Golub and LeVeque 1983, equation 2.1, for the deviations of two sets put together. */
static void join(collector *c) {
    sums *fresh = &c->fresh;
    double *mean = c->out->mean, *deviations = c->out->std;
    double a = (double)c->joined, b = (double)fresh->count;
    if (fresh->count == 0)
        return;
    for (size_t s = 0; s < c->schema->senses; s++) {
        double average = fresh->shift[s] + fresh->sum[s] / b;
        double delta = average - mean[s];
        deviations[s] += fresh->square[s] - fresh->sum[s] * fresh->sum[s] / b;
        deviations[s] += delta * delta * a * b / (a + b);
        mean[s] += delta * b / (a + b);
    }
    c->joined += fresh->count;
    fresh->count = 0;
}

static void begin_sums(sums *fresh, const float *row, size_t senses) {
    for (size_t s = 0; s < senses; s++)
        fresh->shift[s] = (double)row[s];
    memset(fresh->sum, 0, senses * sizeof *fresh->sum);
    memset(fresh->square, 0, senses * sizeof *fresh->square);
}

static void add_row(double *restrict sum, double *restrict square, const double *restrict shift,
                    const float *restrict row, size_t senses) {
    for (size_t s = 0; s < senses; s++) {
        double deviation = (double)row[s] - shift[s];
        sum[s] += deviation;
        square[s] += deviation * deviation;
    }
}

static void widen(float *restrict minimum, float *restrict maximum, const float *restrict row,
                  size_t senses) {
    for (size_t s = 0; s < senses; s++) {
        minimum[s] = row[s] < minimum[s] ? row[s] : minimum[s];
        maximum[s] = row[s] > maximum[s] ? row[s] : maximum[s];
    }
}

static void add_senses(collector *c, const float *row) {
    sums *fresh = &c->fresh;
    size_t senses = c->schema->senses;
    if (fresh->count == JOIN)
        join(c);
    if (fresh->count == 0)
        begin_sums(fresh, row, senses);
    add_row(fresh->sum, fresh->square, fresh->shift, row, senses);
    widen(c->out->minimum, c->out->maximum, row, senses);
    fresh->count++;
}

/* ------------------------------------------------------------------ labels */

static uint32_t count_bits(const uint32_t *words, uint32_t first, uint32_t count) {
    uint32_t bits = 0;
    while (count > 0) {
        uint32_t offset = first % 32;
        uint32_t width = count < 32 - offset ? count : 32 - offset;
        uint32_t word = words[first / 32] >> offset & UINT32_MAX >> (32 - width);
        bits += (uint32_t)__builtin_popcount(word);
        first += width;
        count -= width;
    }
    return bits;
}

static void add_labels(collector *c, const mimus__block *block, uint32_t i) {
    const mimus_schema *schema = c->schema;
    const uint32_t *mask = block->masks;
    uint32_t first = 0;
    if (mask != NULL)
        mask += (size_t)i * block->mask_words;
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t actions = schema->head[h].actions;
        uint16_t label = mimus__audit_label(block, schema, i, h, first);
        if (label != MIMUS_NO_LABEL) {
            c->out->counts[first + label]++;
            c->out->labels[h]++;
        }
        c->out->legal[h] += mask != NULL ? count_bits(mask, first, actions) : actions;
        first += actions;
    }
}

/* ------------------------------------------------------------------- whole */

static void add_sample(collector *c, const mimus__block *block, uint32_t i) {
    add_senses(c, block->senses + (size_t)i * c->schema->senses);
    add_labels(c, block, i);
    c->out->weight += block->weights != NULL ? (double)block->weights[i] : 1;
    c->samples++;
}

/* Add the rows of a block; spans before `*next` end before it. */
static void add_block(collector *c, const mimus__block *block, const mimus__rows *rows,
                      size_t *next) {
    const uint64_t end = block->first + block->samples;
    for (size_t i = *next; i < rows->spans && rows->span[i].first < end; i++) {
        const mimus__span *span = &rows->span[i];
        uint64_t from = span->first > block->first ? span->first : block->first;
        uint64_t to = span->first + span->count < end ? span->first + span->count : end;
        for (uint64_t row = from; row < to; row++)
            add_sample(c, block, (uint32_t)(row - block->first));
        if (span->first + span->count <= end)
            *next = i + 1;
    }
}

static void finish(collector *c) {
    mimus__statistics *out = c->out;
    const double samples = (double)c->samples;
    join(c);
    for (size_t s = 0; s < c->schema->senses; s++) {
        double variance = out->std[s] / samples;
        out->std[s] = variance > 0 ? sqrt(variance) : 0; /* rounding may leave a hair below 0 */
        if (c->samples == 0) {
            out->mean[s] = out->std[s] = NAN;
            out->minimum[s] = out->maximum[s] = NAN;
        }
    }
    for (size_t h = 0; h < c->schema->heads; h++)
        out->legal[h] /= samples;
    out->weight /= samples;
}

mimus_status mimus__statistics_new(mimus__statistics *out, const mimus__recording *recording,
                                   const mimus__rows *rows) {
    mimus_status status = MIMUS_OK;
    collector c = {.out = out, .schema = mimus__recording_schema(recording)};
    size_t next = 0;
    *out = (mimus__statistics){0};
    MIMUS_TRY(allocate(&c));
    for (size_t b = 0; b < mimus__recording_blocks(recording) && next < rows->spans; b++) {
        mimus__block block;
        MIMUS_TRY(mimus__recording_block(recording, b, &block));
        add_block(&c, &block, rows, &next);
        mimus__recording_leave(recording, b);
    }
    finish(&c);
out:
    free(c.fresh.shift);
    free(c.fresh.sum);
    free(c.fresh.square);
    return status;
}

void mimus__statistics_clear(mimus__statistics *statistics) {
    free(statistics->mean);
    free(statistics->std);
    free(statistics->minimum);
    free(statistics->maximum);
    free(statistics->counts);
    free(statistics->labels);
    free(statistics->legal);
    *statistics = (mimus__statistics){0};
}

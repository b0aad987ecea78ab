#include "dataset.h"

#include "alloc.h"
#include "rng.h"
#include "text.h"
#include "watch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The stream of the random numbers that draw a bootstrap, "boot" in ASCII. */
static const uint64_t STREAM = 0x626f6f74;

static void tell_audit(const mimus__audit *audit, const mimus_watch *watch) {
    if (audit->dropped > 0)
        mimus__watch_message(watch, "left out %llu sample%s that cannot be trained on",
                             (unsigned long long)audit->dropped,
                             mimus__text_plural(audit->dropped));
    if (audit->constant_senses > 0)
        mimus__watch_message(watch, "%u sense%s never change%s: the policy will ignore %s",
                             audit->constant_senses, mimus__text_plural(audit->constant_senses),
                             audit->constant_senses == 1 ? "s" : "",
                             audit->constant_senses == 1 ? "it" : "them");
}

mimus_status mimus__dataset_open(mimus__dataset *out, const mimus_source *source,
                                 const mimus_schema *like, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__dataset){0};
    MIMUS_TRY(mimus__recording_open_like(&out->recording, source, like, watch));
    MIMUS_TRY(mimus__audit_run(&out->audit, out->recording, source->illegal, watch));
    tell_audit(&out->audit, watch);
out:
    return status;
}

/* A part that says nothing has a loss of 0, which no other epoch would ever better. */
static mimus_status check_part(const mimus__statistics *statistics, const mimus__rows *rows,
                               const mimus_schema *schema, const mimus_config *config,
                               const char *part, const char *advice) {
    uint64_t labels = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (h >= config->head_weight_count || config->head_weights[h] > 0)
            labels += statistics->labels[h];
    }
    if (labels == 0)
        return mimus__fail(MIMUS_ERR_DATA, "none of the %llu %s samples has a label%s%s",
                           (unsigned long long)rows->samples, part,
                           config->head_weight_count > 0 ? " of a head with a weight" : "", advice);
    if (!(statistics->weight > 0))
        return mimus__fail(MIMUS_ERR_DATA, "all of the %llu %s samples have the weight 0%s",
                           (unsigned long long)rows->samples, part, advice);
    return MIMUS_OK;
}

/* 1 / std; 0 for a sense that says nothing, whose rounding noise would shout. */
static float scale_of(const mimus__statistics *statistics, uint32_t sense) {
    double std = statistics->std[sense];
    bool constant = statistics->minimum[sense] == statistics->maximum[sense];
    return constant || !(std > 0) || !isfinite((float)(1.0 / std)) ? 0.0f : (float)(1.0 / std);
}

/* Every sample of a part, whose extremes `of` has, must be normalised by those of the training part
 * without an overflow, nor by a factor that some devices take for 0 and others do not. */
static mimus_status check_reach(const mimus_schema *schema, const mimus__statistics *training,
                                const mimus__statistics *of, const char *part) {
    for (uint32_t i = 0; i < schema->senses; i++) {
        float mean = (float)training->mean[i], scale = scale_of(training, i);
        float low = (of->minimum[i] - mean) * scale, high = (of->maximum[i] - mean) * scale;
        if (!isfinite(low) || !isfinite(high) || (scale > 0 && scale < FLT_MIN))
            return mimus__fail(MIMUS_ERR_DATA,
                               "sense %u (%s) reaches from %g to %g in the %s samples: too far to "
                               "be normalised in single precision; record it in smaller numbers, "
                               "or clip it",
                               i, schema->sense_names != NULL ? schema->sense_names[i] : "unnamed",
                               (double)of->minimum[i], (double)of->maximum[i], part);
    }
    return MIMUS_OK;
}

static mimus_status check_heldout(const mimus__dataset *dataset, const mimus__split *split,
                                  const mimus__statistics *training, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    mimus__statistics statistics = {0};
    if (split->heldout.samples == 0)
        return MIMUS_OK;
    MIMUS_TRY(mimus__statistics_new(&statistics, dataset->recording, &split->heldout));
    MIMUS_TRY(check_part(&statistics, &split->heldout, schema, config, "held-out",
                         "; hold out more or nothing, or split by another seed"));
    MIMUS_TRY(check_reach(schema, training, &statistics, "held-out"));
out:
    mimus__statistics_clear(&statistics);
    return status;
}

/* Count the training part of a split, and look at both. */
static mimus_status count_parts(mimus__statistics *out, const mimus__dataset *dataset,
                                const mimus__split *split, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    MIMUS_TRY(mimus__statistics_new(out, dataset->recording, &split->training));
    MIMUS_TRY(check_part(out, &split->training, schema, config, "training", ""));
    MIMUS_TRY(check_reach(schema, out, out, "training"));
    MIMUS_TRY(check_heldout(dataset, split, out, config));
out:
    return status;
}

/* ------------------------------------------------------------------------- parts */

/* Behind what is there. */
static mimus_status append(mimus__rows *rows, const mimus__rows *more) {
    mimus_status status = MIMUS_OK;
    mimus__span *spans = NULL;
    MIMUS_TRY(mimus__alloc(&spans, rows->spans + more->spans, sizeof *spans));
    for (size_t i = 0; i < rows->spans; i++)
        spans[i] = rows->span[i];
    for (size_t i = 0; i < more->spans; i++)
        spans[rows->spans + i] = more->span[i];
    free(rows->span);
    rows->span = spans;
    rows->spans += more->spans;
    rows->samples += more->samples;
    rows->episodes += more->episodes;
out:
    return status;
}

/* All folds but one, the others behind one another; `held` = folds: all of them. */
static mimus_status join_folds(mimus__rows *out, const mimus__dataset *dataset, uint32_t held) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__rows){0};
    for (uint32_t f = 0; f < dataset->folds; f++) {
        if (f != held)
            MIMUS_TRY(append(out, &dataset->fold[f]));
    }
out:
    return status;
}

static mimus_status make_folds(mimus__rows **out, const mimus__dataset *dataset,
                               const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, config->folds, sizeof **out));
    MIMUS_TRY(mimus__split_folds(*out, config->folds, dataset->recording, &dataset->audit,
                                 mimus__config_split_seed(config)));
out:
    return status;
}

mimus_status mimus__dataset_split(mimus__dataset *dataset, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    if (config->folds > 0) {
        dataset->folds = config->folds;
        MIMUS_TRY(make_folds(&dataset->fold, dataset, config));
        MIMUS_TRY(join_folds(&dataset->split.training, dataset, config->folds));
    } else {
        MIMUS_TRY(mimus__split_new(&dataset->split, dataset->recording, &dataset->audit,
                                   config->heldout, mimus__config_split_seed(config)));
    }
    MIMUS_TRY(count_parts(&dataset->statistics, dataset, &dataset->split, config));
out:
    return status;
}

static mimus_status fold_split(mimus__split *out, const mimus__dataset *dataset, uint32_t fold) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(join_folds(&out->training, dataset, fold));
    MIMUS_TRY(append(&out->heldout, &dataset->fold[fold]));
out:
    return status;
}

static int by_row(const void *a, const void *b) {
    const mimus__span *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

mimus_status mimus__dataset_parts(mimus__split *out, const mimus__dataset *dataset,
                                  const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    mimus__dataset folded = *dataset;
    *out = (mimus__split){0};
    if (config->folds == 0 || config->fold == 0)
        return mimus__split_new(out, dataset->recording, &dataset->audit, config->heldout,
                                mimus__config_split_seed(config));
    folded.fold = NULL;
    folded.folds = config->folds;
    MIMUS_TRY(make_folds(&folded.fold, dataset, config));
    MIMUS_TRY(fold_split(out, &folded, config->fold - 1));
    qsort(out->training.span, out->training.spans, sizeof *out->training.span, by_row);
out:
    for (uint32_t f = 0; folded.fold != NULL && f < folded.folds; f++)
        mimus__rows_clear(&folded.fold[f]);
    free(folded.fold);
    return status;
}

/* ------------------------------------------------------------------------- shares */

/* The store has the folds behind one another: a run's positions skip the one it holds out. */
static mimus_status fold_rows(mimus__run_rows *out, const mimus__dataset *dataset, uint32_t fold) {
    mimus_status status = MIMUS_OK;
    uint64_t base = 0, all = dataset->split.training.samples;
    for (uint32_t f = 0; f < fold; f++)
        base += dataset->fold[f].samples;
    uint64_t held = dataset->fold[fold].samples;
    *out = (mimus__run_rows){
        .training = (uint32_t)(all - held), .heldout = (uint32_t)held, .base = (uint32_t)base};
    MIMUS_TRY(mimus__alloc(&out->piece, 2, sizeof *out->piece));
    if (base > 0)
        out->pieces++; /* from 0 on, as they lie */
    if (base + held < all)
        out->piece[out->pieces++] =
            (mimus__piece){.position = (uint32_t)base, .row = (uint32_t)(base + held)};
out:
    return status;
}

static mimus_status plain_rows(mimus__run_rows *out, const mimus__split *split) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__run_rows){.training = (uint32_t)split->training.samples,
                             .heldout = (uint32_t)split->heldout.samples,
                             .base = (uint32_t)split->training.samples,
                             .pieces = 1};
    MIMUS_TRY(mimus__alloc(&out->piece, 1, sizeof *out->piece));
out:
    return status;
}

/* The row at a position. */
static uint32_t row_at(const mimus__run_rows *rows, uint64_t position) {
    uint32_t piece = rows->pieces - 1;
    while (rows->piece[piece].position > position)
        piece--;
    return rows->piece[piece].row + (uint32_t)(position - rows->piece[piece].position);
}

/* How many samples each episode of the training part has, and where its first one lies. */
typedef struct drawn {
    uint32_t row, count, times;
} drawn;

static size_t list_episodes(drawn *list, const mimus__rows *training, const mimus__run_rows *rows) {
    size_t count = 0;
    uint64_t position = 0;
    for (size_t i = 0; i < training->spans; i++) {
        const mimus__span *span = &training->span[i];
        if (i == 0 || training->span[i - 1].episode != span->episode)
            list[count++] = (drawn){.row = row_at(rows, position)};
        list[count - 1].count += (uint32_t)span->count;
        position += span->count;
    }
    return count;
}

/* As many episodes as there are, with replacement; pieces in the order of their rows. */
static mimus_status bootstrap(mimus__run_rows *rows, const mimus__rows *training, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    drawn *list = NULL;
    mimus__piece *piece = NULL;
    uint64_t position = 0;
    uint32_t pieces = 0;
    MIMUS_TRY(mimus__alloc(&list, training->spans, sizeof *list));
    size_t count = list_episodes(list, training, rows);
    mimus__rng rng = {.seed = seed, .stream = STREAM};
    for (size_t i = 0; i < count; i++)
        list[mimus__rng_below(&rng, count)].times++;
    MIMUS_TRY(mimus__alloc(&piece, count, sizeof *piece));
    for (size_t i = 0; i < count; i++) {
        for (uint32_t t = 0; t < list[i].times; t++) {
            piece[pieces++] = (mimus__piece){.position = (uint32_t)position, .row = list[i].row};
            position += list[i].count;
        }
    }
    if (position > UINT32_MAX) {
        status = mimus__fail(MIMUS_ERR_UNSUPPORTED,
                             "a bootstrap drew more than the %u samples "
                             "that fit",
                             UINT32_MAX);
        goto out;
    }
    free(rows->piece);
    rows->piece = piece;
    piece = NULL;
    rows->pieces = pieces;
    rows->training = (uint32_t)position;
out:
    free(list);
    free(piece);
    return status;
}

mimus_status mimus__dataset_share(mimus__share *out, const mimus__dataset *dataset,
                                  const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__share){.split = &dataset->split, .statistics = &dataset->statistics};
    if (dataset->folds == 0 && config->bootstrap == 0)
        return MIMUS_OK;
    if (dataset->folds > 0) {
        MIMUS_TRY(fold_split(&out->own_split, dataset, config->fold - 1));
        MIMUS_TRY(count_parts(&out->own_statistics, dataset, &out->own_split, config));
        MIMUS_TRY(fold_rows(&out->own_rows, dataset, config->fold - 1));
        out->split = &out->own_split;
        out->statistics = &out->own_statistics;
    } else {
        MIMUS_TRY(plain_rows(&out->own_rows, &dataset->split));
    }
    out->rows = &out->own_rows;
    if (config->bootstrap > 0)
        MIMUS_TRY(bootstrap(&out->own_rows, &out->split->training, config->seed));
out:
    return status;
}

void mimus__share_clear(mimus__share *share) {
    mimus__split_clear(&share->own_split);
    mimus__statistics_clear(&share->own_statistics);
    free(share->own_rows.piece);
    *share = (mimus__share){0};
}

/* ------------------------------------------------------------------------- models */

static void normalise(mimus__model *model, const mimus__statistics *statistics) {
    for (uint32_t i = 0; i < model->schema->senses; i++) {
        model->mean[i] = (float)statistics->mean[i];
        model->scale[i] = scale_of(statistics, i);
    }
}

mimus_status mimus__dataset_model(mimus__model **out, const mimus__dataset *dataset,
                                  const mimus__statistics *statistics, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    mimus__model *model = NULL;
    mimus__shape shape;
    MIMUS_TRY(mimus__config_shape(&shape, config, schema));
    MIMUS_TRY(mimus__model_new(&model, schema, &shape, true));
    mimus__model_initialise(&shape, model->parameters, config->seed, 0);
    normalise(model, statistics);
    json_decref(model->config);
    model->config = NULL;
    MIMUS_TRY(mimus__config_to_json(&model->config, config));
    *out = model;
    model = NULL;
out:
    mimus__model_free(model);
    return status;
}

void mimus__dataset_clear(mimus__dataset *dataset) {
    for (uint32_t f = 0; dataset->fold != NULL && f < dataset->folds; f++)
        mimus__rows_clear(&dataset->fold[f]);
    free(dataset->fold);
    mimus__statistics_clear(&dataset->statistics);
    mimus__split_clear(&dataset->split);
    mimus__audit_clear(&dataset->audit);
    mimus__recording_free(dataset->recording);
    *dataset = (mimus__dataset){0};
}

/* metrics - sums over samples, and over episodes what their spread needs. */
#include "metrics.h"

#include "alloc.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES_ENOUGH = 20, MAX_CONFUSION = 1 << 24, BINS = 10 };

/* Hits among pairs, and the moments of both over episodes. */
typedef struct hit_counts {
    uint64_t pairs, hits;
    uint64_t episode_pairs, episode_hits; /* of the present episode */
    uint64_t episodes;                    /* finished ones that have pairs */
    double hh, hn, nn;                    /* sums over those of hits^2, hits pairs, pairs^2 */
} hit_counts;

/* Pairs whose chosen action has a probability in the same tenth. */
typedef struct bin {
    uint64_t pairs, hits;
    double confidence;
} bin;

typedef struct head_sums {
    hit_counts agreement;
    double nll, entropy, p_true, uniform;
    uint64_t illegal;
    bin bins[BINS];
    uint64_t *labels;    /* (actions) */
    uint64_t *confusion; /* (actions, actions), or NULL */
} head_sums;

/* Of one head, or all at once, in a group of episodes. */
typedef struct group_sums {
    uint64_t pairs, hits;
    double nll;
} group_sums;

typedef struct groups {
    size_t most; /* 0: none are kept */
    size_t count;
    uint64_t together; /* episodes of a group */
    uint64_t in_last;  /* episodes of the last one so far */
    uint64_t *first;   /* (most) number of its first episode */
    group_sums *sums;  /* (most, H + 1), the last of all heads at once */
} groups;

struct mimus__metrics {
    mimus_schema *schema;
    head_sums *head; /* (H) */
    hit_counts joint;
    double joint_nll;
    uint64_t samples, episodes;
    uint64_t episode; /* the present one, when there are samples */
    groups groups;
};

/* --------------------------------------------------------------------- life */

static mimus_status check_confusion(const mimus_schema *schema, uint32_t most) {
    uint64_t entries = 0;
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint64_t actions = schema->head[h].actions;
        entries += actions <= most ? actions * actions : 0;
    }
    if (entries > MAX_CONFUSION)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "confusion matrices of %" PRIu64 " entries; at most %d are kept",
                           entries, MAX_CONFUSION);
    return MIMUS_OK;
}

mimus_status mimus__metrics_new(mimus__metrics **out, const mimus_schema *schema,
                                uint32_t confusion) {
    mimus_status status = MIMUS_OK;
    mimus__metrics *metrics = NULL;
    *out = NULL;
    MIMUS_TRY(check_confusion(schema, confusion));
    MIMUS_TRY(mimus__alloc(&metrics, 1, sizeof *metrics));
    MIMUS_TRY(mimus__schema_copy(&metrics->schema, schema));
    MIMUS_TRY(mimus__alloc(&metrics->head, schema->heads, sizeof *metrics->head));
    for (uint32_t h = 0; h < schema->heads; h++) {
        size_t actions = schema->head[h].actions;
        head_sums *head = &metrics->head[h];
        MIMUS_TRY(mimus__alloc(&head->labels, actions, sizeof *head->labels));
        if (actions <= confusion)
            MIMUS_TRY(mimus__alloc(&head->confusion, actions * actions, sizeof *head->confusion));
    }
    *out = metrics;
    metrics = NULL;
out:
    mimus__metrics_free(metrics);
    return status;
}

void mimus__metrics_free(mimus__metrics *metrics) {
    if (metrics == NULL)
        return;
    for (uint32_t h = 0; metrics->head != NULL && h < metrics->schema->heads; h++) {
        free(metrics->head[h].labels);
        free(metrics->head[h].confusion);
    }
    free(metrics->head);
    free(metrics->groups.first);
    free(metrics->groups.sums);
    mimus__schema_free(metrics->schema);
    free(metrics);
}

mimus_status mimus__metrics_keep_episodes(mimus__metrics *metrics, size_t most) {
    mimus_status status = MIMUS_OK;
    groups *kept = &metrics->groups;
    assert(metrics->samples == 0 && most > 0 && most % 2 == 0);
    MIMUS_TRY(mimus__alloc(&kept->first, most, sizeof *kept->first));
    MIMUS_TRY(mimus__alloc(&kept->sums, most, (metrics->schema->heads + 1) * sizeof *kept->sums));
    kept->most = most;
    kept->together = 1;
out:
    return status;
}

/* ----------------------------------------------------------------- counting */

static void count_hit(hit_counts *counts, bool hit) {
    counts->pairs++;
    counts->episode_pairs++;
    counts->hits += hit;
    counts->episode_hits += hit;
}

static void end_episode(hit_counts *counts) {
    double pairs = (double)counts->episode_pairs, hits = (double)counts->episode_hits;
    if (counts->episode_pairs == 0)
        return;
    counts->episodes++;
    counts->hh += hits * hits;
    counts->hn += hits * pairs;
    counts->nn += pairs * pairs;
    counts->episode_pairs = counts->episode_hits = 0;
}

/* Put neighbours together. */
static void halve_groups(groups *kept, size_t width) {
    for (size_t g = 0; g < kept->most / 2; g++) {
        kept->first[g] = kept->first[2 * g];
        for (size_t i = 0; i < width; i++) {
            const group_sums *a = &kept->sums[2 * g * width + i], *b = a + width;
            kept->sums[g * width + i] =
                (group_sums){a->pairs + b->pairs, a->hits + b->hits, a->nll + b->nll};
        }
    }
    kept->count = kept->most / 2;
    memset(kept->sums + kept->count * width, 0, kept->count * width * sizeof *kept->sums);
    kept->together *= 2;
}

static void begin_group(groups *kept, size_t width, uint64_t episode) {
    if (kept->most == 0)
        return;
    if (kept->count > 0 && kept->in_last < kept->together) {
        kept->in_last++;
        return;
    }
    if (kept->count == kept->most)
        halve_groups(kept, width);
    kept->first[kept->count++] = episode;
    kept->in_last = 1;
}

/* `place` is a head's, or H for all at once. */
static void count_in_group(mimus__metrics *metrics, uint32_t place, bool hit, double nll) {
    groups *kept = &metrics->groups;
    if (kept->most == 0)
        return;
    size_t width = (size_t)metrics->schema->heads + 1;
    group_sums *sums = &kept->sums[(kept->count - 1) * width + place];
    sums->pairs++;
    sums->hits += hit;
    sums->nll += nll;
}

static void begin_episode(mimus__metrics *metrics, uint64_t episode) {
    if (metrics->samples > 0 && metrics->episode == episode)
        return;
    for (uint32_t h = 0; h < metrics->schema->heads; h++)
        end_episode(&metrics->head[h].agreement);
    end_episode(&metrics->joint);
    begin_group(&metrics->groups, (size_t)metrics->schema->heads + 1, episode);
    metrics->episode = episode;
    metrics->episodes++;
}

/* One head of one sample. */
typedef struct head_view {
    const float *logits;  /* (actions) */
    const uint32_t *mask; /* (W) of the sample, or NULL */
    uint32_t first;       /* the head's first bit in the mask */
    uint32_t actions;
} head_view;

static bool is_legal(const head_view *view, uint32_t action) {
    uint32_t bit = view->first + action;
    return view->mask == NULL || (view->mask[bit / 32] >> bit % 32 & 1) != 0;
}

/* The lowest of the greatest logits; `actions` when there is none. */
static uint32_t best_action(const head_view *view, bool only_legal) {
    uint32_t best = view->actions;
    for (uint32_t a = 0; a < view->actions; a++) {
        if ((!only_legal || is_legal(view, a)) &&
            (best == view->actions || view->logits[a] > view->logits[best]))
            best = a;
    }
    return best;
}

static void count_bin(bin *bins, double confidence, bool hit) {
    size_t place = (size_t)(confidence * BINS);
    bin *in = &bins[place < BINS ? place : BINS - 1];
    in->pairs++;
    in->hits += hit;
    in->confidence += confidence;
}

/* Count a pair; gives the label's nll. With e = logit - the greatest legal one and Z the sum of
 * exp(e): -log p = log Z - e, and the entropy is log Z - sum p e. */
static double count_pair(head_sums *head, const head_view *view, uint32_t label) {
    uint32_t chosen = best_action(view, true), legal = 0;
    double z = 0, weighted = 0, top = (double)view->logits[chosen];
    for (uint32_t a = 0; a < view->actions; a++) {
        if (!is_legal(view, a))
            continue;
        double e = (double)view->logits[a] - top;
        double weight = exp(e);
        z += weight;
        weighted += weight * e;
        legal++;
    }
    double nll = log(z) - ((double)view->logits[label] - top);
    head->nll += nll;
    head->p_true += exp(-nll);
    head->entropy += log(z) - weighted / z;
    head->uniform += 1 / (double)legal;
    head->illegal += !is_legal(view, best_action(view, false));
    head->labels[label]++;
    if (head->confusion != NULL)
        head->confusion[(size_t)label * view->actions + chosen]++;
    count_bin(head->bins, 1 / z, chosen == label);
    count_hit(&head->agreement, chosen == label);
    return nll;
}

static void count_sample(mimus__metrics *metrics, const float *logits, const uint16_t *actions,
                         const uint32_t *mask) {
    const mimus_schema *schema = metrics->schema;
    head_view view = {.logits = logits, .mask = mask};
    double sum = 0;
    bool any = false, all = true;
    for (uint32_t h = 0; h < schema->heads; h++) {
        head_sums *head = &metrics->head[h];
        view.actions = schema->head[h].actions;
        if (actions[h] < view.actions && is_legal(&view, actions[h])) {
            uint64_t hits = head->agreement.hits;
            double nll = count_pair(head, &view, actions[h]);
            bool hit = head->agreement.hits > hits;
            count_in_group(metrics, h, hit, nll);
            sum += nll;
            any = true;
            all = all && hit;
        }
        view.logits += view.actions;
        view.first += view.actions;
    }
    metrics->joint_nll += sum;
    if (any) {
        count_hit(&metrics->joint, all);
        count_in_group(metrics, schema->heads, all, sum);
    }
    metrics->samples++;
}

static mimus_status check_logits(const mimus__metrics *metrics, uint64_t episode, uint32_t n,
                                 const float *logits, size_t ld) {
    uint32_t actions = mimus__schema_actions(metrics->schema);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < actions; a++) {
            float logit = logits[i * ld + a];
            if (!isfinite(logit))
                return mimus__fail(MIMUS_ERR_DATA,
                                   "episode %" PRIu64 ", sample %" PRIu32
                                   " of a batch: the logit of action %" PRIu32
                                   " is %g, expected a finite number",
                                   episode, i, a, (double)logit);
        }
    }
    return MIMUS_OK;
}

mimus_status mimus__metrics_add(mimus__metrics *metrics, uint64_t episode, uint32_t n,
                                const float *logits, size_t ld, const uint16_t *actions,
                                const uint32_t *masks) {
    mimus_status status = MIMUS_OK;
    size_t words = ((size_t)mimus__schema_actions(metrics->schema) + 31) / 32;
    MIMUS_TRY(check_logits(metrics, episode, n, logits, ld));
    if (n > 0)
        begin_episode(metrics, episode);
    for (uint32_t i = 0; i < n; i++)
        count_sample(metrics, logits + i * ld, actions + (size_t)i * metrics->schema->heads,
                     masks != NULL ? masks + i * words : NULL);
out:
    return status;
}

/* ------------------------------------------------------------------ results */

static json_t *mean(double sum, uint64_t count) {
    return mimus__json_number(sum / (double)count); /* 0 / 0: null */
}

/* agreement, agreement_se, se_over and samples. */
static mimus_status set_agreement(json_t *json, const hit_counts *counts) {
    mimus_status status = MIMUS_OK;
    hit_counts all = *counts;
    end_episode(&all);
    double n = (double)all.pairs, m = (double)all.episodes, p = (double)all.hits / n;
    bool over_episodes = all.episodes >= EPISODES_ENOUGH;
    /* sum (h - p n)^2, multiplied out; rounding may leave it a little below 0 */
    double spread = fmax(all.hh - 2 * p * all.hn + p * p * all.nn, 0);
    double variance = over_episodes ? m / (m - 1) * spread / (n * n) : p * (1 - p) / (n - 1);
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)all.pairs)));
    MIMUS_TRY(mimus__json_set(json, "agreement", mimus__json_number(p)));
    MIMUS_TRY(mimus__json_set(json, "agreement_se", mimus__json_number(sqrt(variance))));
    MIMUS_TRY(
        mimus__json_set(json, "se_over", json_string(over_episodes ? "episodes" : "samples")));
out:
    return status;
}

static mimus_status set_confusion(json_t *json, const uint64_t *confusion, uint32_t actions) {
    mimus_status status = MIMUS_OK;
    json_t *matrix = json_array(), *row = NULL;
    for (uint32_t t = 0; t < actions; t++) {
        row = json_array();
        for (uint32_t c = 0; c < actions; c++)
            MIMUS_TRY(mimus__json_append(
                row, json_integer((json_int_t)confusion[(size_t)t * actions + c])));
        MIMUS_TRY(mimus__json_append(matrix, json_incref(row)));
        json_decref(row);
        row = NULL;
    }
    MIMUS_TRY(mimus__json_set(json, "confusion", json_incref(matrix)));
out:
    json_decref(row);
    json_decref(matrix);
    return status;
}

/* A matrix is read by names; bins are called by their values. */
static mimus_status set_action_names(json_t *json, const mimus_head *of) {
    mimus_status status = MIMUS_OK;
    json_t *names = json_array();
    for (uint32_t a = 0; a < of->actions; a++) {
        char value[32];
        snprintf(value, sizeof value, "%.4g", (double)mimus_head_value(of, (uint16_t)a));
        const char *name = of->action_names != NULL ? of->action_names[a] : value;
        MIMUS_TRY(mimus__json_append(names, json_string(name)));
    }
    MIMUS_TRY(mimus__json_set(json, "actions", json_incref(names)));
out:
    json_decref(names);
    return status;
}

static mimus_status set_reliability(json_t *json, const bin *bins, uint64_t pairs) {
    mimus_status status = MIMUS_OK;
    json_t *table = json_object(), *samples = json_array(), *confidence = json_array(),
           *agreement = json_array();
    double error = 0;
    for (size_t b = 0; b < BINS; b++) {
        double n = (double)bins[b].pairs, hits = (double)bins[b].hits;
        error += fabs(hits - bins[b].confidence) / (double)pairs;
        MIMUS_TRY(mimus__json_append(samples, json_integer((json_int_t)bins[b].pairs)));
        MIMUS_TRY(mimus__json_append(confidence, mimus__json_number(bins[b].confidence / n)));
        MIMUS_TRY(mimus__json_append(agreement, mimus__json_number(hits / n)));
    }
    MIMUS_TRY(mimus__json_set(table, "samples", json_incref(samples)));
    MIMUS_TRY(mimus__json_set(table, "confidence", json_incref(confidence)));
    MIMUS_TRY(mimus__json_set(table, "agreement", json_incref(agreement)));
    MIMUS_TRY(mimus__json_set(json, "reliability", json_incref(table)));
    MIMUS_TRY(mimus__json_set(json, "calibration_error", mimus__json_number(error)));
out:
    json_decref(table);
    json_decref(samples);
    json_decref(confidence);
    json_decref(agreement);
    return status;
}

static uint64_t most(const uint64_t *counts, uint32_t count) {
    uint64_t greatest = 0;
    for (uint32_t i = 0; i < count; i++)
        greatest = counts[i] > greatest ? counts[i] : greatest;
    return greatest;
}

static mimus_status head_json(json_t **out, const head_sums *head, const mimus_head *of) {
    mimus_status status = MIMUS_OK;
    uint64_t n = head->agreement.pairs;
    json_t *json = json_object();
    MIMUS_TRY(mimus__json_set(json, "name", json_string(of->name)));
    MIMUS_TRY(set_agreement(json, &head->agreement));
    MIMUS_TRY(mimus__json_set(json, "nll", mean(head->nll, n)));
    MIMUS_TRY(mimus__json_set(json, "entropy", mean(head->entropy, n)));
    MIMUS_TRY(mimus__json_set(json, "p_true", mean(head->p_true, n)));
    MIMUS_TRY(mimus__json_set(json, "illegal", mean((double)head->illegal, n)));
    MIMUS_TRY(mimus__json_set(json, "majority", mean((double)most(head->labels, of->actions), n)));
    MIMUS_TRY(mimus__json_set(json, "uniform_legal", mean(head->uniform, n)));
    MIMUS_TRY(set_reliability(json, head->bins, n));
    if (head->confusion != NULL && (of->action_names != NULL || of->bin_values != NULL))
        MIMUS_TRY(set_action_names(json, of));
    if (head->confusion != NULL)
        MIMUS_TRY(set_confusion(json, head->confusion, of->actions));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

mimus_status mimus__metrics_json(json_t **out, const mimus__metrics *metrics) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object(), *heads = json_array(), *joint = json_object(), *head = NULL;
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)metrics->samples)));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_integer((json_int_t)metrics->episodes)));
    for (uint32_t h = 0; h < metrics->schema->heads; h++) {
        MIMUS_TRY(head_json(&head, &metrics->head[h], &metrics->schema->head[h]));
        MIMUS_TRY(mimus__json_append(heads, head));
    }
    MIMUS_TRY(mimus__json_set(json, "heads", json_incref(heads)));
    MIMUS_TRY(set_agreement(joint, &metrics->joint));
    MIMUS_TRY(mimus__json_set(joint, "nll", mean(metrics->joint_nll, metrics->joint.pairs)));
    MIMUS_TRY(mimus__json_set(json, "joint", json_incref(joint)));
    *out = json;
    json = NULL;
out:
    json_decref(joint);
    json_decref(heads);
    json_decref(json);
    return status;
}

/* Arrays over the groups, of the head (or all at once) at `place`. */
static mimus_status group_json(json_t **out, const mimus__metrics *metrics, size_t place) {
    mimus_status status = MIMUS_OK;
    const groups *kept = &metrics->groups;
    size_t width = (size_t)metrics->schema->heads + 1;
    json_t *json = json_object(), *samples = json_array(), *hits = json_array(),
           *nll = json_array();
    for (size_t g = 0; g < kept->count; g++) {
        const group_sums *sums = &kept->sums[g * width + place];
        MIMUS_TRY(mimus__json_append(samples, json_integer((json_int_t)sums->pairs)));
        MIMUS_TRY(mimus__json_append(hits, json_integer((json_int_t)sums->hits)));
        MIMUS_TRY(mimus__json_append(nll, mimus__json_number(sums->nll)));
    }
    MIMUS_TRY(mimus__json_set(json, "samples", json_incref(samples)));
    MIMUS_TRY(mimus__json_set(json, "hits", json_incref(hits)));
    MIMUS_TRY(mimus__json_set(json, "nll", json_incref(nll)));
    *out = json_incref(json);
out:
    json_decref(json);
    json_decref(samples);
    json_decref(hits);
    json_decref(nll);
    return status;
}

mimus_status mimus__metrics_episodes_json(json_t **out, const mimus__metrics *metrics) {
    mimus_status status = MIMUS_OK;
    const groups *kept = &metrics->groups;
    json_t *json = json_object(), *first = json_array(), *heads = json_array(), *each = NULL;
    for (size_t g = 0; g < kept->count; g++)
        MIMUS_TRY(mimus__json_append(first, json_integer((json_int_t)kept->first[g])));
    for (uint32_t h = 0; h < metrics->schema->heads; h++) {
        MIMUS_TRY(group_json(&each, metrics, h));
        MIMUS_TRY(mimus__json_append(heads, each));
    }
    MIMUS_TRY(group_json(&each, metrics, metrics->schema->heads));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_incref(first)));
    MIMUS_TRY(mimus__json_set(json, "together", json_integer((json_int_t)kept->together)));
    MIMUS_TRY(mimus__json_set(json, "heads", json_incref(heads)));
    MIMUS_TRY(mimus__json_set(json, "joint", each));
    *out = json_incref(json);
out:
    json_decref(first);
    json_decref(heads);
    json_decref(json);
    return status;
}

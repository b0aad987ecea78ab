/* Metrics: cases worked out by hand, and a plain long-double count of everything. */
#include "support.h"

#include "alloc.h"
#include "metrics.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(const char *what, double got, double want) {
    ck_assert_msg(fabs(got - want) <= 1e-9 * (1 + fabs(want)), "%s: %.17g, expected %.17g", what,
                  got, want);
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "%s is not a number", key);
    return json_number_value(value);
}

static double at(const json_t *object, const char *key, size_t index) {
    return json_number_value(json_array_get(json_object_get(object, key), index));
}

static json_t *head_of(const json_t *json, size_t h) {
    return json_array_get(json_object_get(json, "heads"), h);
}

static const char *const gun_actions[] = {"hold", "fire"};
static const mimus_head two_heads[] = {{.name = "gun", .actions = 2, .action_names = gun_actions},
                                       {.name = "move", .actions = 3}};
static const mimus_schema two = {.senses = 1, .heads = 2, .head = two_heads, .masks = true};

/* --------------------------------------------------------------- by hand */

/* Probabilities of head gun are 3/4 and 1/4, of head move 1/6, 2/6 and 3/6. */
START_TEST(hand_computed_numbers_come_out) {
    const float l2 = 0.693147180559945f, l3 = 1.09861228866811f;
    const float logits[3][7] = {
        {l3, 0, /**/ 0, l2, l3, /* not read */ NAN, NAN},
        {l3, 0, /**/ 0, l2, l3, NAN, NAN},
        {l3, 0, /**/ 0, l2, l3, NAN, NAN},
    };
    const uint16_t actions[3][2] = {{0, 2}, {1, 1}, {0, MIMUS_NO_LABEL}};
    /* all legal; move's best forbidden; gun's first forbidden: its label counts for nothing */
    const uint32_t masks[3] = {0x1f, 0x0f, 0x1e};
    mimus__metrics *metrics;
    json_t *json;
    test_ok(mimus__metrics_new(&metrics, &two, UINT32_MAX));
    test_ok(mimus__metrics_add(metrics, 0, 3, logits[0], 7, actions[0], masks));
    test_ok(mimus__metrics_json(&json, metrics));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "episodes")), 1);
    json_t *gun = head_of(json, 0), *move = head_of(json, 1);
    json_t *joint = json_object_get(json, "joint");
    const double tolerance = 1e-7; /* the logits are float32 */
    ck_assert_str_eq(json_string_value(json_object_get(gun, "name")), "gun");
    ck_assert_int_eq(json_integer_value(json_object_get(gun, "samples")), 2);
    ck_assert(number(gun, "agreement") == 0.5);
    assert_near("gun se", number(gun, "agreement_se"), sqrt(0.25 / 1));
    ck_assert_str_eq(json_string_value(json_object_get(gun, "se_over")), "samples");
    ck_assert(fabs(number(gun, "nll") - (log(4.0 / 3) + log(4)) / 2) < tolerance);
    ck_assert(fabs(number(gun, "entropy") - (0.75 * log(4.0 / 3) + 0.25 * log(4))) < tolerance);
    ck_assert(fabs(number(gun, "p_true") - 0.5) < tolerance);
    ck_assert(number(gun, "illegal") == 0);
    ck_assert(number(gun, "majority") == 0.5);
    ck_assert(number(gun, "uniform_legal") == 0.5);
    ck_assert_int_eq(json_integer_value(json_object_get(move, "samples")), 2);
    ck_assert(number(move, "agreement") == 1);
    ck_assert(number(move, "agreement_se") == 0);
    /* p of the labels: 3/6, and 2/3 once the third action is forbidden */
    ck_assert(fabs(number(move, "nll") - (log(2) + log(1.5)) / 2) < tolerance);
    ck_assert(fabs(number(move, "p_true") - (0.5 + 2.0 / 3) / 2) < tolerance);
    ck_assert(number(move, "illegal") == 0.5);
    ck_assert(number(move, "majority") == 0.5);
    assert_near("uniform", number(move, "uniform_legal"), (1.0 / 3 + 1.0 / 2) / 2);
    ck_assert_int_eq(json_integer_value(json_object_get(joint, "samples")), 2);
    ck_assert(number(joint, "agreement") == 0.5);
    ck_assert(fabs(number(joint, "nll") - (log(4.0 / 3) + log(2) + log(4) + log(1.5)) / 2) <
              2 * tolerance);
    json_t *confusion = json_object_get(gun, "confusion");
    const int wanted[2][2] = {{1, 0}, {1, 0}};
    for (size_t t = 0; t < 2; t++) {
        for (size_t c = 0; c < 2; c++)
            ck_assert_int_eq(json_integer_value(json_array_get(json_array_get(confusion, t), c)),
                             wanted[t][c]);
    }
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(gun, "actions"), 1)), "fire");
    ck_assert_ptr_null(json_object_get(move, "actions")); /* without names */
    json_decref(json);
    mimus__metrics_free(metrics);
}
END_TEST

START_TEST(bins_are_called_by_their_values) {
    static const float edges[] = {-0.25F, 1e6F}, values[] = {-0.5F, 1.0F / 3, 2e6F};
    static const char *const names[] = {"-0.5", "0.3333", "2e+06"};
    const mimus_head head = {.actions = 3, .bin_edges = edges, .bin_values = values};
    const mimus_schema schema = {.senses = 1, .heads = 1, .head = &head};
    mimus__metrics *metrics;
    json_t *json;
    test_ok(mimus__metrics_new(&metrics, &schema, UINT32_MAX));
    test_ok(mimus__metrics_json(&json, metrics));
    const json_t *found = json_object_get(head_of(json, 0), "actions");
    for (size_t a = 0; a < 3; a++)
        ck_assert_str_eq(json_string_value(json_array_get(found, a)), names[a]);
    json_decref(json);
    mimus__metrics_free(metrics);
}
END_TEST

START_TEST(nothing_counted_is_null) {
    mimus__metrics *metrics;
    json_t *json;
    const float logits[5] = {0};
    const uint16_t none[2] = {MIMUS_NO_LABEL, 3}; /* 3 is out of range */
    const uint32_t nothing_legal = 0;
    test_ok(mimus__metrics_new(&metrics, &two, 0));
    for (int i = 0; i < 3; i++) {
        test_ok(mimus__metrics_json(&json, metrics));
        json_t *gun = head_of(json, 0);
        ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), i);
        ck_assert_int_eq(json_integer_value(json_object_get(gun, "samples")), 0);
        const char *const keys[] = {"agreement", "agreement_se", "nll",      "entropy",
                                    "p_true",    "illegal",      "majority", "uniform_legal"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            ck_assert_msg(json_is_null(json_object_get(gun, keys[k])), "%s", keys[k]);
        ck_assert(json_is_null(json_object_get(json_object_get(json, "joint"), "agreement")));
        ck_assert_ptr_null(json_object_get(gun, "confusion"));
        json_decref(json);
        if (i == 0)
            test_ok(mimus__metrics_add(metrics, 0, 1, logits, 5, none, NULL));
        else
            test_ok(mimus__metrics_add(metrics, 0, 1, logits, 5, (const uint16_t[]){0, 0},
                                       &nothing_legal));
    }
    mimus__metrics_free(metrics);
    mimus__metrics_free(NULL);
}
END_TEST

START_TEST(broken_logits_are_refused_whole) {
    mimus__metrics *metrics;
    json_t *json;
    const uint16_t actions[4] = {0};
    test_ok(mimus__metrics_new(&metrics, &two, 0));
    for (int i = 0; i < 3; i++) {
        float logits[10] = {0};
        logits[9] = i == 0 ? NAN : i == 1 ? INFINITY : -INFINITY;
        test_fails(mimus__metrics_add(metrics, 7, 2, logits, 5, actions, NULL), MIMUS_ERR_DATA,
                   "episode 7, sample 1 of a batch: the logit of action 4 is");
    }
    test_ok(mimus__metrics_json(&json, metrics));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "episodes")), 0);
    json_decref(json);
    mimus__metrics_free(metrics);
}
END_TEST

START_TEST(huge_confusion_matrices_are_refused) {
    const mimus_head wide[] = {{.actions = 4000}, {.actions = 4000}};
    const mimus_schema schema = {.senses = 1, .heads = 2, .head = wide};
    mimus__metrics *metrics;
    test_fails(mimus__metrics_new(&metrics, &schema, UINT32_MAX), MIMUS_ERR_UNSUPPORTED,
               "confusion matrices of 32000000 entries");
    ck_assert_ptr_null(metrics);
    test_ok(mimus__metrics_new(&metrics, &schema, 0));
    mimus__metrics_free(metrics);
}
END_TEST

/* Large logits must not overflow, nor small probabilities vanish. */
START_TEST(extreme_logits_are_exact) {
    mimus__metrics *metrics;
    json_t *json;
    const float logits[5] = {1e4f, -1e4f, 3e38f, -3e38f, 0};
    const uint16_t actions[2] = {1, 2};
    test_ok(mimus__metrics_new(&metrics, &two, 0));
    test_ok(mimus__metrics_add(metrics, 0, 1, logits, 5, actions, NULL));
    test_ok(mimus__metrics_json(&json, metrics));
    assert_near("gun", number(head_of(json, 0), "nll"), 2e4);
    assert_near("move", number(head_of(json, 1), "nll"), (double)3e38f);
    ck_assert(number(head_of(json, 1), "entropy") == 0);
    ck_assert(number(head_of(json, 1), "p_true") == 0);
    json_decref(json);
    mimus__metrics_free(metrics);
}
END_TEST

/* ------------------------------------------------------- standard errors */

/* 20 episodes: 15 of them have 2 samples, both right; the rest 1 sample, wrong. */
START_TEST(standard_errors_are_over_episodes) {
    mimus__metrics *metrics;
    json_t *json;
    const float logits[10] = {1, 0, 1, 0, 0, /**/ 1, 0, 1, 0, 0};
    const uint16_t right[4] = {0}, wrong[2] = {1, 1};
    test_ok(mimus__metrics_new(&metrics, &two, 0));
    for (uint64_t e = 0; e < 19; e++) {
        if (e < 15) {
            test_ok(mimus__metrics_add(metrics, e, 1, logits, 5, right, NULL));
            test_ok(mimus__metrics_add(metrics, e, 1, logits, 5, right, NULL));
        } else {
            test_ok(mimus__metrics_add(metrics, e, 1, logits, 5, wrong, NULL));
        }
    }
    test_ok(mimus__metrics_json(&json, metrics));
    ck_assert_str_eq(json_string_value(json_object_get(head_of(json, 0), "se_over")), "samples");
    assert_near("samples", number(head_of(json, 0), "agreement_se"), sqrt(30.0 / 34 * 4 / 34 / 33));
    json_decref(json);
    test_ok(mimus__metrics_add(metrics, 19, 0, logits, 5, wrong, NULL)); /* no sample, no episode */
    test_ok(mimus__metrics_add(metrics, 20, 1, logits, 5, wrong, NULL));
    for (int again = 0; again < 2; again++) { /* asking changes nothing */
        test_ok(mimus__metrics_json(&json, metrics));
        const json_t *judged[] = {head_of(json, 0), head_of(json, 1),
                                  json_object_get(json, "joint")};
        /* p = 30/35; the residuals are 2 - 2p = 2/7, 15 times, and -p = -6/7, 5 times */
        double se = sqrt(20.0 / 19 * (15 * 4.0 / 49 + 5 * 36.0 / 49)) / 35;
        ck_assert_int_eq(json_integer_value(json_object_get(json, "episodes")), 20);
        for (int i = 0; i < 3; i++) {
            ck_assert_str_eq(json_string_value(json_object_get(judged[i], "se_over")), "episodes");
            assert_near("p", number(judged[i], "agreement"), 30.0 / 35);
            assert_near("se", number(judged[i], "agreement_se"), se);
        }
        json_decref(json);
    }
    mimus__metrics_free(metrics);
}
END_TEST

/* What the standard error promises: over many recordings the spread of the agreement. Episodes
 * are wholly right or wrong, which an error over samples would miss by a factor of 3. */
START_TEST(standard_errors_hold_for_episodes_of_one_kind) {
    enum { RECORDINGS = 400, EPISODES = 60 };
    mimus__rng rng = {.seed = 3};
    const float logits[5] = {1, 0, 1, 0, 0};
    double sum = 0, squares = 0, se_squares = 0;
    for (int r = 0; r < RECORDINGS; r++) {
        mimus__metrics *metrics;
        json_t *json;
        test_ok(mimus__metrics_new(&metrics, &two, 0));
        for (uint64_t e = 0; e < EPISODES; e++) {
            uint64_t length = 5 + mimus__rng_below(&rng, 10);
            uint16_t label = mimus__rng_below(&rng, 10) < 7 ? 0 : 1;
            for (uint64_t i = 0; i < length; i++)
                test_ok(mimus__metrics_add(metrics, e, 1, logits, 5,
                                           (const uint16_t[]){label, label}, NULL));
        }
        test_ok(mimus__metrics_json(&json, metrics));
        double p = number(head_of(json, 0), "agreement");
        double se = number(head_of(json, 0), "agreement_se");
        sum += p;
        squares += p * p;
        se_squares += se * se;
        json_decref(json);
        mimus__metrics_free(metrics);
    }
    const double count = RECORDINGS;
    double spread = sqrt(squares / count - sum / count * sum / count);
    double promised = sqrt(se_squares / count);
    ck_assert_msg(fabs(promised / spread - 1) < 0.15, "promised %g, spread %g", promised, spread);
}
END_TEST

/* ------------------------------------------------------- plain reference */

typedef struct plain {
    long double pairs, hits, nll, entropy, p_true, illegal, uniform, labels[80];
    long double episode_pairs[40], episode_hits[40], episode_nll[40];
    long double bin_pairs[10], bin_hits[10], bin_confidence[10];
} plain;

static bool bit_of(const uint32_t *mask, size_t bit) {
    return mask == NULL || (mask[bit / 32] >> (bit % 32) & 1);
}

static bool count_plain(plain *head, size_t episode, const float *logits, size_t first,
                        size_t actions, const uint32_t *mask, uint16_t label, bool *hit) {
    long double sum = 0, entropy = 0, legal = 0;
    size_t best = SIZE_MAX, best_of_all = 0;
    if (label >= actions || !bit_of(mask, first + label))
        return false;
    for (size_t a = 0; a < actions; a++) {
        if (logits[first + a] > logits[first + best_of_all])
            best_of_all = a;
        if (!bit_of(mask, first + a))
            continue;
        if (best == SIZE_MAX || logits[first + a] > logits[first + best])
            best = a;
        sum += expl((long double)logits[first + a]);
        legal++;
    }
    for (size_t a = 0; a < actions; a++) {
        long double p = expl((long double)logits[first + a]) / sum;
        entropy -= bit_of(mask, first + a) ? p * logl(p) : 0;
    }
    long double p = expl((long double)logits[first + label]) / sum;
    *hit = best == label;
    long double best_p = 0;
    for (size_t a = 0; a < actions; a++)
        best_p += bit_of(mask, first + a)
                      ? expl((long double)(logits[first + a] - logits[first + best]))
                      : 0;
    best_p = 1 / best_p;
    size_t bin = (double)best_p < 1 ? (size_t)((double)best_p * 10) : 9;
    head->bin_pairs[bin]++;
    head->bin_hits[bin] += *hit;
    head->bin_confidence[bin] += best_p;
    head->pairs++;
    head->hits += *hit;
    head->nll -= logl(p);
    head->episode_nll[episode] -= logl(p);
    head->p_true += p;
    head->entropy += entropy;
    head->illegal += !bit_of(mask, first + best_of_all);
    head->uniform += 1 / legal;
    head->labels[label]++;
    head->episode_pairs[episode]++;
    head->episode_hits[episode] += *hit;
    return true;
}

static double plain_se(const plain *head, size_t episodes) {
    long double p = head->hits / head->pairs, sum = 0, m = 0;
    for (size_t e = 0; e < episodes; e++) {
        long double r = head->episode_hits[e] - p * head->episode_pairs[e];
        sum += r * r;
        m += head->episode_pairs[e] > 0;
    }
    if (m < 20)
        return (double)sqrtl(p * (1 - p) / (head->pairs - 1));
    return (double)(sqrtl(m / (m - 1) * sum) / head->pairs);
}

static void assert_as_plain(const json_t *json, const plain *head, size_t episodes) {
    long double majority = 0;
    for (size_t a = 0; a < 80; a++)
        majority = fmaxl(majority, head->labels[a]);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "samples")), (int)head->pairs);
    assert_near("agreement", number(json, "agreement"), (double)(head->hits / head->pairs));
    assert_near("se", number(json, "agreement_se"), plain_se(head, episodes));
    assert_near("nll", number(json, "nll"), (double)(head->nll / head->pairs));
    if (json_object_get(json, "entropy") == NULL)
        return; /* joint */
    assert_near("entropy", number(json, "entropy"), (double)(head->entropy / head->pairs));
    assert_near("p_true", number(json, "p_true"), (double)(head->p_true / head->pairs));
    assert_near("illegal", number(json, "illegal"), (double)(head->illegal / head->pairs));
    assert_near("majority", number(json, "majority"), (double)(majority / head->pairs));
    assert_near("uniform", number(json, "uniform_legal"), (double)(head->uniform / head->pairs));
    const json_t *bins = json_object_get(json, "reliability");
    long double error = 0;
    for (size_t b = 0; b < 10; b++) {
        long double n = head->bin_pairs[b];
        ck_assert(at(bins, "samples", b) == (double)n);
        if (n == 0)
            continue;
        assert_near("confidence", at(bins, "confidence", b), (double)(head->bin_confidence[b] / n));
        assert_near("agreement", at(bins, "agreement", b), (double)(head->bin_hits[b] / n));
        error += fabsl(head->bin_hits[b] / n - head->bin_confidence[b] / n) * n / head->pairs;
    }
    assert_near("calibration error", number(json, "calibration_error"), (double)error);
}

/* Groups of `together` episodes. */
static void assert_groups(const json_t *json, const plain *head, size_t episodes, size_t together) {
    for (size_t g = 0; g * together < episodes; g++) {
        long double pairs = 0, hits = 0, nll = 0;
        for (size_t e = g * together; e < episodes && e < (g + 1) * together; e++) {
            pairs += head->episode_pairs[e];
            hits += head->episode_hits[e];
            nll += head->episode_nll[e];
        }
        ck_assert(at(json, "samples", g) == (double)pairs);
        ck_assert(at(json, "hits", g) == (double)hits);
        assert_near("nll of a group", at(json, "nll", g), (double)nll);
    }
}

/* Heads of awkward sizes straddle the mask's words; every fifth label is missing, some forbidden.
 */
static void compare(bool masked, size_t episodes, uint64_t seed, size_t together) {
    enum { HEADS = 5, ACTIONS = 2 + 63 + 64 + 65 + 3, LD = ACTIONS + 3, MOST = 65 };
    const mimus_head heads[HEADS] = {
        {.actions = 2}, {.actions = 63}, {.actions = 64}, {.actions = 65}, {.actions = 3}};
    const mimus_schema schema = {.senses = 1, .heads = HEADS, .head = heads, .masks = masked};
    enum { WORDS = (ACTIONS + 31) / 32 };
    static float logits[MOST * LD];
    static uint16_t actions[MOST * HEADS];
    static uint32_t masks[MOST * WORDS];
    static plain wanted[HEADS], joint;
    const uint32_t lengths[] = {1, 63, 64, 65};
    mimus__rng rng = {.seed = seed};
    mimus__metrics *metrics;
    json_t *json;
    memset(wanted, 0, sizeof wanted);
    memset(&joint, 0, sizeof joint);
    test_ok(mimus__metrics_new(&metrics, &schema, 64)); /* the head of 65 has no matrix */
    test_ok(mimus__metrics_keep_episodes(metrics, 16));
    for (size_t e = 0; e < episodes; e++) {
        uint32_t n = lengths[e % 4];
        for (size_t i = 0; i < n * LD; i++)
            logits[i] = (float)(int)mimus__rng_below(&rng, 41) / 4 - 5; /* ties are common */
        for (size_t i = 0; i < n * WORDS; i++)
            masks[i] = mimus__rng_u32(&rng) | mimus__rng_u32(&rng);
        for (uint32_t i = 0; i < n; i++) {
            bool any = false, all = true;
            long double before = 0, after = 0;
            for (size_t h = 0, first = 0; h < HEADS; first += heads[h++].actions) {
                bool hit = false;
                uint16_t label = (uint16_t)mimus__rng_below(&rng, heads[h].actions);
                actions[i * HEADS + h] = mimus__rng_below(&rng, 5) == 0 ? MIMUS_NO_LABEL : label;
                before += wanted[h].nll;
                if (count_plain(&wanted[h], e, logits + (size_t)i * LD, first, heads[h].actions,
                                masked ? masks + (size_t)i * WORDS : NULL, actions[i * HEADS + h],
                                &hit)) {
                    any = true;
                    all = all && hit;
                }
                after += wanted[h].nll;
            }
            if (!any)
                continue;
            joint.pairs++;
            joint.hits += all;
            joint.nll += after - before;
            joint.episode_pairs[e]++;
            joint.episode_hits[e] += all;
            joint.episode_nll[e] += after - before;
        }
        uint32_t half = n / 2; /* an episode may come in pieces */
        test_ok(mimus__metrics_add(metrics, e, half, logits, LD, actions, masked ? masks : NULL));
        test_ok(mimus__metrics_add(metrics, e, n - half, logits + (size_t)half * LD, LD,
                                   actions + (size_t)half * HEADS,
                                   masked ? masks + (size_t)half * WORDS : NULL));
    }
    test_ok(mimus__metrics_json(&json, metrics));
    for (size_t h = 0; h < HEADS; h++) {
        json_t *head = head_of(json, h), *confusion = json_object_get(head, "confusion");
        assert_as_plain(head, &wanted[h], episodes);
        json_int_t diagonal = 0;
        ck_assert_int_eq(confusion != NULL, heads[h].actions <= 64);
        if (confusion == NULL)
            continue;
        for (size_t t = 0; t < heads[h].actions; t++) {
            json_int_t row = 0;
            for (size_t c = 0; c < heads[h].actions; c++)
                row += json_integer_value(json_array_get(json_array_get(confusion, t), c));
            ck_assert_int_eq(row, (json_int_t)wanted[h].labels[t]);
            diagonal += json_integer_value(json_array_get(json_array_get(confusion, t), t));
        }
        ck_assert_int_eq(diagonal, (json_int_t)wanted[h].hits);
    }
    assert_as_plain(json_object_get(json, "joint"), &joint, episodes);
    json_decref(json);
    test_ok(mimus__metrics_episodes_json(&json, metrics));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "together")), (int)together);
    const json_t *first = json_object_get(json, "episodes");
    ck_assert_uint_eq(json_array_size(first), (episodes + together - 1) / together);
    for (size_t g = 0; g < json_array_size(first); g++)
        ck_assert_uint_eq((size_t)json_integer_value(json_array_get(first, g)), g * together);
    for (size_t h = 0; h < HEADS; h++)
        assert_groups(head_of(json, h), &wanted[h], episodes, together);
    assert_groups(json_object_get(json, "joint"), &joint, episodes, together);
    json_decref(json);
    mimus__metrics_free(metrics);
}

START_TEST(everything_agrees_with_a_plain_count) {
    compare(true, 40, 1, 4);
    compare(false, 40, 2, 4);
    compare(true, 19, 3, 2);
    compare(true, 16, 4, 1);
    compare(true, 32, 4, 2);
    compare(true, 33, 4, 4);
    compare(true, 20, 4, 2);
    compare(false, 2, 5, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("metrics");
    TCase *all = tcase_create("metrics");
    tcase_add_test(all, hand_computed_numbers_come_out);
    tcase_add_test(all, nothing_counted_is_null);
    tcase_add_test(all, broken_logits_are_refused_whole);
    tcase_add_test(all, bins_are_called_by_their_values);
    tcase_add_test(all, huge_confusion_matrices_are_refused);
    tcase_add_test(all, extreme_logits_are_exact);
    tcase_add_test(all, standard_errors_are_over_episodes);
    tcase_add_test(all, standard_errors_hold_for_episodes_of_one_kind);
    tcase_add_test(all, everything_agrees_with_a_plain_count);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

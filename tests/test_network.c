/* The whole step against the double-precision reference: gradients of every parameter, updates, and
 * ten steps of PyTorch. */
#include "compare.h"
#include "golden.h"
#include "rig.h"
#include "rounded.h"
#include "sample.h"
#include "support.h"

#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mimus__device *device;

static void open_device(void) {
    test_ok(mimus__device_open(&device, NULL, 0));
}

static void close_device(void) {
    mimus__device_close(device);
    test_folder_remove();
}

/* What a gradient check varies. */
typedef struct gradient_case {
    sample_recipe recipe;
    uint32_t hidden_layers, hidden[3];
    mimus__activation activation;
    uint32_t stack, runs, rows;
    double dropout, smoothing;
    bool weigh; /* class and head weights */
    mimus__store_form store;
} gradient_case;

static const gradient_case gradient_cases[] = {
    {.recipe = {.senses = 5, .heads = 2, .actions = {3, 4}, .samples = 300, .episode = 20},
     .hidden_layers = 2,
     .hidden = {16, 16},
     .activation = MIMUS__RELU,
     .stack = 1,
     .runs = 1,
     .rows = 64},
    {.recipe = {.senses = 7,
                .heads = 3,
                .actions = {2, 33, 5},
                .masks = true,
                .weights = true,
                .samples = 400,
                .episode = 30},
     .hidden_layers = 2,
     .hidden = {17, 31},
     .activation = MIMUS__TANH,
     .stack = 3,
     .runs = 3,
     .rows = 65,
     .smoothing = 0.1,
     .weigh = true},
    {.recipe = {.senses = 143,
                .heads = 7,
                .actions = {9, 10, 3, 5, 10, 3, 7},
                .masks = true,
                .samples = 300,
                .episode = 50},
     .hidden_layers = 2,
     .hidden = {33, 63},
     .activation = MIMUS__GELU,
     .stack = 1,
     .runs = 1,
     .rows = 100},
    {.recipe = {.senses = 6, .heads = 1, .actions = {65}, .masks = true, .samples = 200},
     .hidden_layers = 0,
     .activation = MIMUS__RELU,
     .stack = 2,
     .runs = 3,
     .rows = 1},
    {.recipe = {.senses = 9, .heads = 2, .actions = {4, 4}, .samples = 300, .episode = 20},
     .hidden_layers = 3,
     .hidden = {24, 40, 9},
     .activation = MIMUS__RELU,
     .stack = 1,
     .runs = 3,
     .rows = 63,
     .dropout = 0.3},
    {.recipe = {.senses = 20, .heads = 2, .actions = {4, 13}, .masks = true, .samples = 4300},
     .hidden_layers = 2,
     .hidden = {48, 40},
     .activation = MIMUS__RELU,
     .stack = 1,
     .runs = 1,
     .rows = 3333}, /* several blocks a slice on any number of cores there is likely to be */
    {.recipe = {.senses = 9, .heads = 2, .actions = {4, 4}, .samples = 300, .episode = 20},
     .hidden_layers = 2,
     .hidden = {24, 40},
     .activation = MIMUS__TANH,
     .stack = 1,
     .runs = 1,
     .rows = 63,
     .dropout = 0.5},
    {.recipe = {.senses = 23,
                .heads = 2,
                .actions = {4, 13},
                .masks = true,
                .samples = 400,
                .episode = 30},
     .hidden_layers = 2,
     .hidden = {33, 17},
     .activation = MIMUS__RELU,
     .stack = 3,
     .runs = 2,
     .rows = 100,
     .store = MIMUS__STORE_F16},
    {.recipe = {.senses = 8, .heads = 1, .actions = {5}, .samples = 300, .episode = 30},
     .hidden_layers = 1,
     .hidden = {20},
     .activation = MIMUS__TANH,
     .stack = 1,
     .runs = 1,
     .rows = 100,
     .store = MIMUS__STORE_BF16},
};

static mimus_config *config_of(const gradient_case *c, mimus__plan plan, mimus__gemm_kind gemm) {
    mimus_config *config;
    test_ok(mimus_config_new(&config));
    config->hidden_layers = c->hidden_layers;
    memcpy(config->hidden, c->hidden, sizeof c->hidden);
    config->activation = c->activation;
    config->stack = c->stack;
    config->dropout = c->dropout;
    config->store = c->store;
    config->plan = plan;
    config->gemm = gemm;
    return config;
}

static float uniform(mimus__rng *rng) {
    return (float)mimus__rng_uniform(rng) - 0.5f;
}

/* The store's training rows `first` .. as the reference takes them; arrays are the caller's to
 * free. */
static mimus__reference_batch batch_of(const rig *r, const sample *s, uint32_t first,
                                       uint32_t rows) {
    uint32_t senses = s->recipe.senses, heads = s->recipe.heads, stack = r->shape.stack;
    uint32_t words = mimus__schema_mask_words(&s->schema);
    float *stacked = calloc((size_t)rows * senses * stack, sizeof *stacked);
    uint16_t *actions = calloc((size_t)rows * heads, sizeof *actions);
    uint32_t *masks = words > 0 ? calloc((size_t)rows * words, sizeof *masks) : NULL;
    float *weights = calloc(rows, sizeof *weights);
    uint32_t at = 0, row = 0;
    const mimus__rows *training = &r->dataset->split.training;
    for (size_t i = 0; i < training->spans; i++)
        for (uint64_t k = 0; k < training->span[i].count; k++, row++) {
            if (row < first || at >= rows)
                continue;
            uint64_t from = training->span[i].first + k;
            mimus__reference_stack(stacked + (size_t)at * senses * stack, s->senses, senses, stack,
                                   s->first[from], from);
            memcpy(actions + (size_t)at * heads, s->actions + from * heads, heads * 2);
            if (words > 0)
                memcpy(masks + (size_t)at * words, s->masks + from * words, words * 4);
            weights[at++] = s->weights[from];
        }
    ck_assert_uint_eq(at, rows);
    for (size_t i = 0; i < (size_t)rows * senses * stack; i++)
        stacked[i] = (float)rounded_to(r->store.layout.form, (double)stacked[i]);
    return (mimus__reference_batch){
        .rows = rows, .senses = stacked, .actions = actions, .masks = masks, .weights = weights};
}

static void free_batch(mimus__reference_batch batch) {
    free((void *)(uintptr_t)batch.senses);
    free((void *)(uintptr_t)batch.actions);
    free((void *)(uintptr_t)batch.masks);
    free((void *)(uintptr_t)batch.weights);
}

static void check_gradient(const gradient_case *c, mimus__plan plan, mimus__gemm_kind gemm) {
    enum { STEP = 5, FIRST = 10, SEED = 99 };
    sample s;
    mimus__dataset dataset;
    rig r;
    mimus_config *config = config_of(c, plan, gemm);
    sample_new(&s, &c->recipe, "sample.rec");
    sample_open(&s, 0.2, &dataset);
    mimus__hyper hyper[3];
    for (uint32_t run = 0; run < 3; run++)
        hyper[run] = (mimus__hyper){.seed_low = SEED + run,
                                    .label_smoothing = (float)c->smoothing,
                                    .dropout = (float)c->dropout};
    rig_new(&r, device, &dataset, config, hyper, c->runs, c->rows, 1, 0);

    size_t count = mimus__shape_parameters(&r.shape);
    uint32_t total = mimus__schema_actions(&s.schema), heads = s.recipe.heads;
    float *parameters = calloc(count * c->runs, sizeof *parameters);
    float *mean = calloc(s.recipe.senses, sizeof *mean);
    float *scale = calloc(s.recipe.senses, sizeof *scale);
    float *head_weights = calloc(heads, sizeof *head_weights);
    float *action_weights = calloc(total, sizeof *action_weights);
    double *head_doubles = calloc(heads, sizeof *head_doubles);
    double *action_doubles = calloc(total, sizeof *action_doubles);
    mimus__rng rng = {.seed = 4};
    for (size_t i = 0; i < count * c->runs; i++)
        parameters[i] = 0.6f * uniform(&rng);
    for (uint32_t i = 0; i < s.recipe.senses; i++) {
        mean[i] = uniform(&rng);
        scale[i] = 1.0f + uniform(&rng);
    }
    for (uint32_t i = 0; i < heads; i++)
        head_doubles[i] = (double)(head_weights[i] = c->weigh ? 1.0f + uniform(&rng) : 1.0f);
    for (uint32_t i = 0; i < total; i++)
        action_doubles[i] = (double)(action_weights[i] = c->weigh ? 1.0f + uniform(&rng) : 1.0f);
    rig_set_parameters(&r, parameters);
    for (uint32_t run = 0; run < c->runs; run++) {
        rig_normalise(&r, run, mean, scale);
        rig_weigh(&r, run, head_weights, action_weights);
    }
    rig_gradient(&r, FIRST, c->rows, STEP);

    mimus__reference_batch batch = batch_of(&r, &s, FIRST, c->rows);
    float *got = calloc(count, sizeof *got);
    double *want = calloc(count, sizeof *want);
    for (uint32_t run = 0; run < c->runs; run++) {
        mimus__reference_network network;
        mimus__reference_result result;
        test_ok(mimus__reference_init(&network, &r.shape, heads, s.recipe.actions, c->rows));
        mimus__reference_set_normalisation(&network, mean, scale);
        mimus__reference_set_parameters(&network, parameters + run * count);
        network.seed = SEED + run;
        network.step = STEP;
        network.rules.dropout = c->dropout;
        network.rules.label_smoothing = (double)(float)c->smoothing;
        network.rules.head_weights = head_doubles;
        network.rules.class_weights = action_doubles;
        mimus__reference_gradient(&network, &batch, &result, want);
        rig_read_gradient(&r, run, got);
        double norm = mimus__reference_norm(&network, want);
        compare_check_floats("gradient", got, want, 1, count,
                             (compare_tolerance){1e-4, 1e-6 * norm});
        mimus__reference_clear(&network);
    }
    free(got);
    free(want);
    free_batch(batch);
    free(parameters);
    free(mean);
    free(scale);
    free(head_weights);
    free(action_weights);
    free(head_doubles);
    free(action_doubles);
    mimus_config_free(config);
    rig_clear(&r);
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
}

START_TEST(gradients_agree_with_the_reference_through_tiles) {
    check_gradient(&gradient_cases[_i], MIMUS__PLAN_PHASED, MIMUS__GEMM_TILE);
}
END_TEST

START_TEST(gradients_agree_with_the_reference_through_clblast) {
    check_gradient(&gradient_cases[_i], MIMUS__PLAN_PHASED, MIMUS__GEMM_CLBLAST);
}
END_TEST

START_TEST(gradients_agree_with_the_reference_as_gpus_run_it) {
    setenv("MIMUS_GEOMETRY", "gpu", 1);
    check_gradient(&gradient_cases[_i], MIMUS__PLAN_PHASED, MIMUS__GEMM_TILE);
}
END_TEST

START_TEST(gradients_agree_with_the_reference_block_by_block) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    check_gradient(&gradient_cases[_i], MIMUS__PLAN_BLOCK, MIMUS__GEMM_AUTO);
}
END_TEST

/* Timing chooses among the tiles, so what is learned must not depend on them. */
START_TEST(every_tile_gives_the_same_bits) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    const gradient_case *c = &gradient_cases[2]; /* gelu, 143 senses, odd widths */
    sample s;
    mimus__dataset dataset;
    mimus_config *config = config_of(c, MIMUS__PLAN_BLOCK, MIMUS__GEMM_AUTO);
    const mimus__hyper hyper = {.seed_low = 3};
    float *first = NULL, *other = NULL;
    sample_new(&s, &c->recipe, "sample.rec");
    sample_open(&s, 0.2, &dataset);
    uint32_t tiles = mimus__block_plan_variants(device);
    ck_assert_uint_ge(tiles, 2);
    for (uint32_t tile = 0; tile < tiles; tile++) {
        rig r;
        rig_new(&r, device, &dataset, config, &hyper, 1, 200, 1, (int)tile);
        size_t count = mimus__shape_parameters(&r.shape);
        float *parameters = calloc(count, sizeof *parameters);
        other = calloc(count, sizeof *other);
        mimus__model_initialise(&r.shape, parameters, 1, 0);
        rig_set_parameters(&r, parameters);
        rig_gradient(&r, 0, 200, 0);
        rig_read_gradient(&r, 0, other);
        if (tile > 0)
            compare_check_bytes("gradient", other, first, count * sizeof *first);
        free(first);
        first = other;
        free(parameters);
        rig_clear(&r);
    }
    free(first);
    mimus_config_free(config);
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
}
END_TEST

/* ------------------------------------------------------------- PyTorch's steps */

/* Write the case's rows as a recording. */
static void record_case(const golden_case *c, const char *path) {
    const mimus__reference_network *n = &c->network;
    mimus_head head[MIMUS__REFERENCE_MAX_HEADS] = {{0}};
    uint32_t total = 0, words;
    for (uint32_t h = 0; h < n->heads; h++) {
        head[h].actions = n->actions[h];
        total += n->actions[h];
    }
    words = (total + 31) / 32;
    mimus_schema schema = {.senses = n->shape.senses,
                           .heads = n->heads,
                           .head = head,
                           .masks = c->masks != NULL,
                           .weights = c->weights != NULL};
    mimus_recorder *recorder;
    uint8_t *legal = calloc(total, 1);
    remove(path);
    test_ok(mimus_recorder_open(&recorder, path, &schema, MIMUS_RECORDER_CREATE));
    for (uint32_t i = 0; i < c->rows; i++) {
        if (i > 0 && c->first[i] == i)
            test_ok(mimus_recorder_end_episode(recorder));
        for (uint32_t a = 0; c->masks != NULL && a < total; a++)
            legal[a] = c->masks[(size_t)i * words + a / 32] >> (a % 32) & 1;
        test_ok(mimus_recorder_append(
            recorder, c->senses + (size_t)i * n->shape.senses, c->actions + (size_t)i * n->heads,
            c->masks != NULL ? legal : NULL, c->weights != NULL ? c->weights[i] : 1.0f));
    }
    test_ok(mimus_recorder_close(recorder));
    free(legal);
}

static mimus_config *golden_config(const golden_case *c, mimus__plan plan, mimus__gemm_kind gemm) {
    const mimus__reference_network *n = &c->network;
    mimus_config *config;
    test_ok(mimus_config_new(&config));
    config->hidden_layers = n->shape.layers - 1;
    for (uint32_t l = 0; l + 1 < n->shape.layers; l++)
        config->hidden[l] = n->shape.width[l + 1];
    config->activation = n->shape.activation;
    config->stack = n->shape.stack;
    config->dropout = n->rules.dropout;
    config->optimizer = n->rules.optimizer;
    config->beta1 = n->rules.beta1;
    config->beta2 = n->rules.beta2;
    config->epsilon = n->rules.epsilon;
    config->plan = plan;
    config->gemm = gemm;
    return config;
}

static void check_golden(const golden_case *c, mimus__plan plan, mimus__gemm_kind gemm) {
    const mimus__reference_network *n = &c->network;
    mimus__dataset dataset;
    rig r;
    char path[512];
    snprintf(path, sizeof path, "%s", test_folder_path("golden.rec"));
    record_case(c, path);
    const char *paths[] = {path};
    mimus_source source = {.paths = paths, .count = 1, .illegal = MIMUS_ILLEGAL_IGNORE};
    mimus_config *config = golden_config(c, plan, gemm);
    config->heldout = 0;
    test_ok(mimus__dataset_open(&dataset, &source, NULL, NULL));
    test_ok(mimus__dataset_split(&dataset, config));
    mimus__hyper hyper = {.seed_low = (uint32_t)n->seed,
                          .seed_high = (uint32_t)(n->seed >> 32),
                          .lr = (float)n->rules.lr,
                          .weight_decay = (float)n->rules.weight_decay,
                          .clip = (float)n->rules.clip,
                          .label_smoothing = (float)n->rules.label_smoothing,
                          .dropout = (float)n->rules.dropout};
    rig_new(&r, device, &dataset, config, &hyper, 1, c->rows, c->steps, 0);
    rig_set_parameters(&r, c->initial);
    rig_normalise(&r, 0, c->mean, c->scale);
    uint32_t total = 0;
    for (uint32_t h = 0; h < n->heads; h++)
        total += n->actions[h];
    float head_weights[MIMUS__REFERENCE_MAX_HEADS], *action_weights = calloc(total, sizeof(float));
    for (uint32_t h = 0; h < n->heads; h++)
        head_weights[h] = c->head_weights != NULL ? (float)c->head_weights[h] : 1.0f;
    for (uint32_t a = 0; a < total; a++)
        action_weights[a] = c->class_weights != NULL ? (float)c->class_weights[a] : 1.0f;
    rig_weigh(&r, 0, head_weights, action_weights);

    for (uint32_t t = 0; t < c->steps; t++) {
        rig_gradient(&r, 0, c->rows, t);
        test_ok(mimus__optimizer_step(r.optimizer, rig_sums(&r, c->rows), t));
    }
    float row[1 + 3 * MIMUS__REFERENCE_MAX_HEADS + MIMUS__TABLE_EXTRA];
    for (uint32_t t = 0; t < c->steps; t++) {
        rig_read_table(&r, 0, t, row);
        if (!(fabs((double)row[0] - c->losses[t]) <= 1e-5 * fabs(c->losses[t])))
            ck_abort_msg("%s: loss of step %u is %.9g, PyTorch's %.9g", c->name, t, (double)row[0],
                         c->losses[t]);
        for (uint32_t h = 0; h < n->heads; h++)
            if (!((double)row[2 + 3 * h] == c->hits[t * n->heads + h]) ||
                !((double)row[3 + 3 * h] == c->labelled[h]))
                ck_abort_msg("%s: step %u head %u: %g hits of %g, PyTorch's %g of %g", c->name, t,
                             h, (double)row[2 + 3 * h], (double)row[3 + 3 * h],
                             c->hits[t * n->heads + h], c->labelled[h]);
    }
    size_t count = mimus__shape_parameters(&r.shape);
    float *got = calloc(count, sizeof *got);
    rig_read_parameters(&r, 0, got);
    compare_check_floats(c->name, got, c->final, 1, count, (compare_tolerance){1e-4, 2e-5});
    free(got);
    free(action_weights);
    mimus_config_free(config);
    rig_clear(&r);
    mimus__dataset_clear(&dataset);
}

static void check_golden_file(mimus__plan plan, mimus__gemm_kind gemm) {
    golden g;
    golden_load(&g, MIMUS_TEST_DATA "/golden_pytorch.json");
    ck_assert_uint_ge(g.case_count, 5);
    for (size_t i = 0; i < g.case_count; i++)
        check_golden(&g.cases[i], plan, gemm);
    golden_clear(&g);
}

START_TEST(ten_steps_agree_with_pytorch_through_tiles) {
    check_golden_file(MIMUS__PLAN_PHASED, MIMUS__GEMM_TILE);
}
END_TEST

START_TEST(ten_steps_agree_with_pytorch_as_gpus_run_it) {
    setenv("MIMUS_GEOMETRY", "gpu", 1);
    check_golden_file(MIMUS__PLAN_PHASED, MIMUS__GEMM_TILE);
}
END_TEST

START_TEST(ten_steps_agree_with_pytorch_block_by_block) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    check_golden_file(MIMUS__PLAN_BLOCK, MIMUS__GEMM_AUTO);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("network");
    TCase *all = tcase_create("network");
    int cases = sizeof gradient_cases / sizeof *gradient_cases;
    tcase_add_checked_fixture(all, open_device, close_device);
    tcase_add_loop_test(all, gradients_agree_with_the_reference_through_tiles, 0, cases);
    tcase_add_loop_test(all, gradients_agree_with_the_reference_as_gpus_run_it, 0, cases);
    tcase_add_loop_test(all, gradients_agree_with_the_reference_through_clblast, 0, 2);
    tcase_add_loop_test(all, gradients_agree_with_the_reference_block_by_block, 0, cases);
    tcase_add_test(all, every_tile_gives_the_same_bits);
    tcase_add_test(all, ten_steps_agree_with_pytorch_block_by_block);
    tcase_add_test(all, ten_steps_agree_with_pytorch_through_tiles);
    tcase_add_test(all, ten_steps_agree_with_pytorch_as_gpus_run_it);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

/* The bench: its counts against the device's counters, its losses against the device's, and a
 * complete document. Nothing here depends on how long anything takes. */
#include "sample.h"
#include "support.h"

#include "bench_ablate.h"
#include "bench_run.h"
#include "bench_work.h"
#include "file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mimus__bench_effort little = {
    .seconds = 1e-4, .repeats = 1, .stream_bytes = (uint64_t)1 << 20};

static const sample_recipe recipe = {.senses = 12,
                                     .heads = 3,
                                     .actions = {4, 5, 33},
                                     .masks = true,
                                     .weights = true,
                                     .samples = 1500,
                                     .episode = 60,
                                     .seed = 3,
                                     .learnable = true};

/* ------------------------------------------------------------------------ on paper */

/* 3 -> 4 -> 2, by hand. */
START_TEST(operations_are_those_of_unpadded_products) {
    const mimus__shape shape = {.senses = 3, .stack = 1, .layers = 2, .width = {3, 4, 2}};
    ck_assert(mimus__bench_operations(&shape, false) == 2 * (3 * 4 + 4 * 2));
    ck_assert(mimus__bench_operations(&shape, true) == 2 * (2 * 3 * 4 + 3 * 4 * 2));
}
END_TEST

START_TEST(the_gather_moves_a_row_in_and_a_row_out) {
    const mimus__shape shape = {.senses = 143, .stack = 1};
    const mimus__row_layout layout = {.senses = 143, .sense_words = 143, .label_words = 6};
    const mimus__row_layout halves = {.senses = 143, .sense_words = 72, .label_words = 6};
    ck_assert(mimus__bench_gather_bytes(&shape, &layout) == 2 * 149 * 4);
    ck_assert(mimus__bench_gather_bytes(&shape, &halves) == (78 + 149) * 4);
}
END_TEST

/* A layer of 16 x 16 on 16 rows, whose bytes can be counted by hand. */
START_TEST(bytes_of_a_small_step) {
    const mimus__bench_facts facts = {
        .shape = {.senses = 16, .stack = 1, .layers = 1, .width = {16, 16}},
        .runs = 1,
        .rows = 16,
        .padded_rows = 16,
        .padded = {16, 16},
        .sense_words = 16,
        .label_words = 4,
        .gemm = MIMUS__GEMM_TILE,
        .packs = true,
        .splits = 2,
        .optimizer = MIMUS__ADAM,
    };
    const double matrix = 16 * 16 * 4, bias = 16 * 4, labels = 16 * 4 * 4;
    mimus__bench_step step = mimus__bench_step_of(&facts);
    ck_assert(step.phase[MIMUS__STEP_GATHER].bytes == 2 * (matrix + labels));
    ck_assert(step.phase[MIMUS__STEP_FORWARD].bytes == 5 * matrix + bias);
    ck_assert(step.phase[MIMUS__STEP_LOSS].bytes == 2 * matrix + labels);
    ck_assert(step.phase[MIMUS__STEP_BACKWARD].bytes == 4 * matrix + 2 * bias);
    ck_assert(step.phase[MIMUS__STEP_OPTIMIZER].bytes == 10 * (matrix + bias));
    ck_assert(step.total.operations == 2 * 2 * 16 * 16 * 16);
    ck_assert_uint_eq(step.total.launches, 1 + 2 + 1 + 1 + 2);
}
END_TEST

/* -------------------------------------------------------------------- on a device */

typedef struct paper_case {
    mimus__gemm_kind gemm;
    uint32_t layers;
    uint32_t hidden[3];
    mimus__activation activation;
    double dropout;
    mimus__optimizer_kind optimizer;
    uint32_t batch, stack;
    mimus__store_form store;
} paper_case;

static const paper_case paper_cases[] = {
    {MIMUS__GEMM_TILE, 2, {32, 24}, MIMUS__RELU, 0, MIMUS__ADAM, 100, 1, MIMUS__STORE_F32},
    {MIMUS__GEMM_TILE, 0, {0}, MIMUS__RELU, 0, MIMUS__SGD, 63, 2, MIMUS__STORE_F32},
    {MIMUS__GEMM_TILE, 3, {17, 64, 65}, MIMUS__GELU, 0.2, MIMUS__ADAMW, 1000, 1, MIMUS__STORE_F16},
    {MIMUS__GEMM_TILE, 1, {16}, MIMUS__TANH, 0.2, MIMUS__ADAM, 5000, 1, MIMUS__STORE_F32},
    {MIMUS__GEMM_CLBLAST, 2, {32, 24}, MIMUS__RELU, 0, MIMUS__ADAM, 100, 1, MIMUS__STORE_F32},
    /* the block plan, as CPUs run it, on whatever device */
    {MIMUS__GEMM_AUTO, 2, {32, 24}, MIMUS__RELU, 0, MIMUS__ADAM, 100, 1, MIMUS__STORE_F32},
    {MIMUS__GEMM_AUTO, 3, {17, 64, 65}, MIMUS__GELU, 0.2, MIMUS__SGD, 1000, 2, MIMUS__STORE_BF16},
};

static void measure(const paper_case *c, mimus__bench_run *run) {
    sample s;
    mimus__dataset dataset;
    mimus_config *config;
    mimus__model *model = NULL;
    sample_new(&s, &recipe, "sample.rec");
    sample_open(&s, 0.2, &dataset);
    test_ok(mimus_config_new(&config));
    config->hidden_layers = c->layers;
    memcpy(config->hidden, c->hidden, sizeof c->hidden);
    config->activation = c->activation;
    config->dropout = c->dropout;
    config->optimizer = c->optimizer;
    config->plan = MIMUS__PLAN_PHASED;
    if (c->gemm == MIMUS__GEMM_AUTO) {
        config->plan = MIMUS__PLAN_BLOCK;
        setenv("MIMUS_GEOMETRY", "cpu", 1);
    }
    config->gemm = c->gemm;
    config->batch = c->batch;
    config->stack = c->stack;
    config->store = c->store;
    config->epochs = 3;
    test_ok(mimus__dataset_model(&model, &dataset, &dataset.statistics, config));
    test_ok(mimus__bench_run_new(run, NULL, &dataset, config, model, &little, NULL));
    mimus__model_free(model);
    mimus_config_free(config);
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
}

START_TEST(launches_on_paper_are_those_counted) {
    const paper_case *c = &paper_cases[_i];
    mimus__bench_run run;
    uint64_t launches = 0;
    measure(c, &run);
    for (int p = 0; p < MIMUS__STEP_PHASES; p++) {
        ck_assert_msg(
            run.launches[p] == run.cost.phase[p].launches, "phase %d: %llu launches, on paper %llu",
            p, (unsigned long long)run.launches[p], (unsigned long long)run.cost.phase[p].launches);
        ck_assert((run.cost.phase[p].bytes > 0) == (run.launches[p] > 0));
        launches += run.launches[p];
    }
    ck_assert_uint_eq(run.reads, 0);
    /* an epoch: its steps; a held-out step has no backward pass and its metrics in one launch; at
     * the end the corrections are carried over */
    uint64_t heldout_steps = (run.heldout + run.rows - 1) / run.rows;
    uint64_t heldout_launches = run.launches[MIMUS__STEP_GATHER] +
                                run.launches[MIMUS__STEP_FORWARD] + run.launches[MIMUS__STEP_LOSS] +
                                run.launches[MIMUS__STEP_BLOCK] + 1;
    if (c->dropout > 0 && c->gemm != MIMUS__GEMM_AUTO)
        heldout_launches -= c->layers;
    ck_assert_uint_eq(run.epochs.launches,
                      run.epochs.steps * launches + heldout_steps * heldout_launches + 1);
    ck_assert_uint_eq(run.epochs.reads, 1);
    mimus__bench_run_clear(&run);
    test_folder_remove();
}
END_TEST

START_TEST(a_run_is_complete) {
    mimus__bench_run run;
    measure(&paper_cases[0], &run);
    ck_assert(run.limits.flops > 0 && isfinite(run.limits.flops));
    ck_assert(run.limits.copy > 0 && isfinite(run.limits.copy));
    ck_assert(run.limits.triad > 0 && isfinite(run.limits.triad));
    ck_assert(run.limits.upload > 0 && isfinite(run.limits.upload));
    ck_assert(run.limits.width > 0 && run.limits.local > 0);
    ck_assert_uint_eq(run.training + run.heldout, recipe.samples);
    ck_assert_uint_eq(run.epochs.steps, (run.training + 99) / 100);
    ck_assert_uint_eq(run.epochs.epochs, 3);
    ck_assert_uint_eq(run.epochs.skipped, 0);
    ck_assert(run.epochs.first > 0);
    ck_assert(run.epochs.settled[0] > 0 && run.epochs.settled[0] <= run.epochs.settled[1]);
    ck_assert(mimus__bench_epochs_median(&run.epochs) == mimus__bench_epochs_mean(&run.epochs));
    ck_assert(run.epochs.heldout_agreement > 0 && run.epochs.heldout_agreement <= 1);
    ck_assert(run.step > 0 && run.enqueue > 0);
    for (int p = 0; p < MIMUS__STEP_PHASES; p++)
        ck_assert((run.phase[p] > 0) == (run.launches[p] > 0));
    ck_assert(run.bytes > run.upload_bytes);
    ck_assert(run.operations > 0 && run.gather_bytes > 0);
    mimus__bench_run_clear(&run);
    test_folder_remove();
}
END_TEST

/* A made-up recording on the device and in double precision. */
START_TEST(first_losses_agree_with_the_reference) {
    const mimus_bench_options options = {
        .samples = 3000, .batch = 500, .hidden = "20,12", .gemm = "tile"};
    mimus__bench_work work;
    mimus__model *model = NULL;
    mimus__bench_losses losses;
    mimus__bench_run run;
    test_ok(mimus__bench_work_new(&work, &options, NULL));
    test_ok(mimus__dataset_model(&model, &work.dataset, &work.dataset.statistics, work.config));
    test_ok(mimus__bench_losses_of(&losses, &work.dataset, work.config, model, NULL));
    test_ok(mimus__bench_run_new(&run, NULL, &work.dataset, work.config, model, &little, NULL));
    ck_assert_uint_eq(losses.steps,
                      run.epochs.steps); /* 2,700 rows or fewer: 6 steps, the last short */
    ck_assert(losses.loss[losses.steps - 1] < losses.loss[0]);
    double off = mimus__bench_losses_compare(&losses, run.epochs.first_losses, run.epochs.steps);
    ck_assert_msg(off < 1e-4, "the first losses are off by %g", off);
    run.epochs.first_losses[2] = NAN;
    ck_assert(
        isnan(mimus__bench_losses_compare(&losses, run.epochs.first_losses, run.epochs.steps)));
    mimus__bench_run_clear(&run);
    mimus__model_free(model);
    mimus__bench_work_clear(&work);
}
END_TEST

/* ------------------------------------------------------------------------ ablation */

/* `work` is a small made-up one whose last batches are short; the sample has weights and labels
 * that are absent. */
static void ablate(const mimus__dataset *dataset, const mimus_config *config,
                   mimus__bench_ablation *out, mimus__bench_losses *losses) {
    mimus_config *large;
    mimus__model *model = NULL;
    test_ok(mimus__bench_work_large(&large, config));
    ck_assert_uint_eq(large->batch, 32768);
    ck_assert(large->lr == 1e-2);
    ck_assert_uint_eq(large->epochs, config->epochs);
    test_ok(mimus__dataset_model(&model, dataset, &dataset->statistics, config));
    test_ok(mimus__bench_losses_of(losses, dataset, config, model, NULL));
    test_ok(mimus__bench_ablate(out, NULL, dataset, config, large, model, NULL));
    mimus__model_free(model);
    mimus_config_free(large);
}

static const char *const geometries[] = {"cpu", "gpu"};

/* Every way of training gives the losses of the double-precision reference, and they end alike. */
START_TEST(all_ways_of_training_agree) {
    sample s;
    mimus__dataset dataset;
    mimus_config *config;
    mimus__bench_ablation ablation;
    mimus__bench_losses losses;
    setenv("MIMUS_GEOMETRY", geometries[_i], 1);
    sample_new(&s, &recipe, "sample.rec");
    sample_open(&s, 0.2, &dataset);
    test_ok(mimus_config_new(&config));
    test_ok(mimus_config_set(config, "hidden", "20,12"));
    test_ok(mimus_config_set(config, "batch", "170"));
    test_ok(mimus_config_set(config, "epochs", "3"));
    test_ok(mimus_config_set(config, "gemm", "tile"));
    test_ok(mimus_config_set(config, "store", "f32"));
    ablate(&dataset, config, &ablation, &losses);
    for (uint32_t i = 0; i + 1 < MIMUS__ABLATE_STAGES; i++) {
        const mimus__bench_epochs *epochs = &ablation.stage[i].epochs;
        double off = mimus__bench_losses_compare(&losses, epochs->first_losses, epochs->steps);
        ck_assert_msg(off < 1e-4, "%s: the first losses are off by %g", ablation.stage[i].name,
                      off);
        ck_assert_double_eq_tol(epochs->heldout_loss, ablation.stage[0].epochs.heldout_loss, 1e-4);
        ck_assert(epochs->heldout_agreement > 0.2 && epochs->heldout_agreement <= 1);
    }
    ck_assert(mimus__bench_ablation_largest(&ablation) <= MIMUS__ABLATE_TOLERANCE);
    mimus__bench_ablation_clear(&ablation);
    mimus_config_free(config);
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
    test_folder_remove();
}
END_TEST

/* That the slow stages upload, launch and read what they say. */
START_TEST(slow_stages_are_slow) {
    const mimus_bench_options options = {
        .samples = 3000, .batch = 500, .epochs = 2, .hidden = "20,12", .gemm = "tile"};
    mimus__bench_work work;
    mimus__bench_ablation ablation;
    mimus__bench_losses losses;
    test_ok(mimus__bench_work_new(&work, &options, NULL));
    ablate(&work.dataset, work.config, &ablation, &losses);
    const mimus__bench_stage *stage = ablation.stage;
    uint32_t heldout = (uint32_t)work.dataset.split.heldout.samples;
    uint32_t training = (uint32_t)work.dataset.split.training.samples;
    uint32_t steps = (training + 499) / 500, heldout_steps = (heldout + 499) / 500;
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(stage[i].epochs.steps, steps);
        ck_assert_uint_eq(stage[i].batch, 500);
        ck_assert_uint_eq(stage[i].losses, i < 2 ? 7 : 1);
        ck_assert_uint_eq(stage[i].epochs.reads, i < 3 ? steps + heldout_steps : 1);
        ck_assert(stage[i].read_every_step == (i < 3));
    }
    /* 143 senses and 6 label words of every row, and the padding of the senses */
    ck_assert(stage[0].uploaded >= 4.0 * (143 + 6) * (training + heldout));
    ck_assert(stage[0].uploaded < 4.0 * (160 + 6) * (steps + heldout_steps) * 512);
    ck_assert(stage[1].uploaded == 0 && stage[5].uploaded == 0);
    /* no gather; six losses more; the rest as the trainer */
    uint64_t batches = steps + heldout_steps;
    ck_assert_uint_eq(stage[1].epochs.launches, stage[0].epochs.launches + batches);
    ck_assert_uint_eq(stage[1].epochs.launches, stage[2].epochs.launches + 6 * batches);
    ck_assert_uint_eq(stage[5].batch, training);
    ck_assert(stage[5].lr == 1e-2 && stage[4].lr == 1e-3);
    ck_assert_uint_eq(stage[5].epochs.steps, 1);
    mimus__bench_ablation_clear(&ablation);
    mimus__bench_work_clear(&work);
}
END_TEST

/* All stages but the last count, with or without sign; NaN is no agreement. */
START_TEST(the_largest_difference_is_found) {
    mimus__bench_ablation ablation = {.stage = {{.epochs = {.heldout_agreement = 0.7}},
                                                {.epochs = {.heldout_agreement = 0.703}},
                                                {.epochs = {.heldout_agreement = 0.699}},
                                                {.epochs = {.heldout_agreement = 0.69}},
                                                {.epochs = {.heldout_agreement = 0.7}},
                                                {.epochs = {.heldout_agreement = 0.2}}}};
    ck_assert_double_eq_tol(mimus__bench_ablation_largest(&ablation), 0.01, 1e-12);
    ck_assert_double_eq_tol(mimus__bench_ablation_difference(&ablation, 3), -0.01, 1e-12);
    ablation.stage[2].epochs.heldout_agreement = NAN;
    ck_assert(isnan(mimus__bench_ablation_largest(&ablation)));
}
END_TEST

/* ------------------------------------------------------------------------ the page */

/* The page of a document; free with free(). */
static char *page_of(const char *json) {
    char *html = NULL;
    size_t bytes;
    test_ok(mimus_bench_report(json, test_folder_path("page.html")));
    test_ok(mimus__file_read(test_folder_path("page.html"), 1 << 20, &html, &bytes));
    ck_assert_uint_eq(strlen(html), bytes);
    return html;
}

static void has(const char *html, const char *part) {
    ck_assert_msg(strstr(html, part) != NULL, "the page lacks %s", part);
}

static void lacks(const char *html, const char *part) {
    ck_assert_msg(strstr(html, part) == NULL, "the page has %s", part);
}

/* Elements that have no end. */
static bool is_void(const char *name) {
    return strcmp(name, "meta") == 0;
}

/* Every element is closed in its order, every '<' and '&' belongs to a tag or a reference, every
 * attribute's value is quoted. */
static void check_well_formed(const char *html) {
    enum { DEEPEST = 16 };
    char open[DEEPEST][16] = {""}, name[16] = "";
    int depth = 0;
    const char *at = html;
    ck_assert(strncmp(at, "<!DOCTYPE html>", 15) == 0);
    for (at += 15; *at != '\0'; at++) {
        if (*at == '&')
            ck_assert_msg(strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&lt;", 4) == 0 ||
                              strncmp(at, "&gt;", 4) == 0 || strncmp(at, "&quot;", 6) == 0,
                          "a bare &: %.20s", at);
        ck_assert_msg(*at != '>', "a bare >: %.20s", at);
        if (*at != '<')
            continue;
        bool closes = at[1] == '/';
        ck_assert_int_eq(sscanf(at + 1 + closes, "%15[a-z0-9]", name), 1);
        size_t quotes = 0;
        for (; *at != '>' || quotes % 2 == 1; at++) {
            ck_assert_msg(*at != '\0', "an open tag %s", name);
            ck_assert_msg(*at != '=' || at[1] == '"' || quotes % 2 == 1, "not quoted: %.20s", at);
            quotes += *at == '"';
        }
        if (closes) {
            ck_assert_msg(depth > 0 && strcmp(open[depth - 1], name) == 0, "</%s> at depth %d",
                          name, depth);
            depth--;
        } else if (!is_void(name)) {
            ck_assert_int_lt(depth, DEEPEST);
            snprintf(open[depth++], sizeof open[0], "%s", name);
        }
        if (strcmp(name, "style") == 0 && !closes)
            at = strstr(at, "</style>") - 1; /* text of another kind */
    }
    ck_assert_int_eq(depth, 0);
}

#define WORK                                                                                       \
    "\"version\": \"9.8.7\", \"workload\": {\"title\": \"reference\", \"samples\": 2490000, "      \
    "\"held_out_samples\": 249000, \"senses\": 143, \"heads\": 7, \"actions\": 47, \"config\": "   \
    "{\"hidden\": [128, 64], \"batch\": 4096, \"lr\": 0.001, \"epochs\": 6}}"
#define EPOCH(over)                                                                                \
    "\"epoch\": {\"first\": 9.25, \"floor\": 2, \"over_floor\": " over                             \
    ", \"settled\": {\"minimum\": 2.75, "                                                          \
    "\"median\": 3, \"maximum\": 3.5}, \"launches\": 1234, \"reads\": 1}"
#define DEVICE(name, over)                                                                         \
    "{\"name\": \"" name                                                                           \
    "\", \"driver\": \"3.1\", \"limits\": {\"flops\": 2.34e11, \"copy\": 1e10, "                   \
    "\"triad\": 1.25e10}, " EPOCH(                                                                 \
        over) ", \"step\": {\"seconds\": 0.004, \"launches\": 17, "                                \
              "\"enqueue_share\": 0.0123, \"phases\": [{\"name\": \"gather\", \"seconds\": "       \
              "0.001}, {\"name\": "                                                                \
              "\"forward\", \"seconds\": 0.003}]}, \"held_out_agreement\": 0.7654, "               \
              "\"loss_difference\": 2.5e-7}"

START_TEST(a_page_compares_devices) {
    char *html =
        page_of("{" WORK ", \"devices\": [" DEVICE("<b>\\\"A&B\\\"</b>", "1.5") ", " DEVICE(
            "C\\u0007D", "1.25") ", {\"name\": \"E<\", \"error\": \"no <compiler>\"}]}");
    check_well_formed(html);
    has(html, "&lt;b&gt;&quot;A&amp;B&quot;&lt;/b&gt;");
    has(html, "C D");
    has(html, "E&lt;: no &lt;compiler&gt;");
    lacks(html, "<b>");
    has(html, "mimus 9.8.7");
    has(html, "2,490,000 samples (249,000 held out)");
    has(html, "hidden 128,64, batch 4,096, learning rate 0.001, 6 epochs");
    has(html, "3.00 s, 1.50 x floor");
    /* the floor is 2 of 3 seconds, gather 1 of 4 parts of a step */
    has(html, "<rect class=\"k0\" x=\"0.00%\" width=\"66.67%\" height=\"100%\"><title>floor");
    has(html,
        "<rect class=\"k1\" x=\"25.00%\" width=\"75.00%\" height=\"100%\"><title>forward: 3.0 ms");
    has(html, "width=\"76.54%\"");
    has(html,
        "<td>234</td><td>12.5</td><td>2.75 s</td><td>3.00 s</td><td>3.50 s</td><td>9.25 s</td>");
    has(html, "<td>1.2%</td><td>76.5%</td><td>2.5e-07</td>");
    has(html, "prefers-color-scheme: dark");
    has(html, "width=device-width");
    has(html, "@media (max-width:");
    lacks(html, "http:"); /* nothing is loaded, and nothing could be */
    lacks(html, "https:");
    has(html, "default-src 'none'");
    lacks(html, "src=");
    lacks(html, "url(");
    free(html);
    test_folder_remove();
}
END_TEST

/* Devices with other phases: a name has one colour, and the key has all of them. */
START_TEST(a_phase_keeps_its_colour) {
    char *html = page_of("{" WORK ", \"devices\": [" DEVICE(
        "A", "1.5") ", {\"name\": \"B\", \"step\": "
                    "{\"phases\": [{\"name\": \"block\", \"seconds\": 0.003}, {\"name\": "
                    "\"forward\", \"seconds\": 0.001}]}}]}");
    check_well_formed(html);
    has(html, "<rect class=\"k1\" x=\"25.00%\" width=\"75.00%\" height=\"100%\"><title>forward");
    has(html, "<rect class=\"k2\" x=\"0.00%\" width=\"75.00%\" height=\"100%\"><title>block");
    has(html, "<rect class=\"k1\" x=\"75.00%\" width=\"25.00%\" height=\"100%\"><title>forward");
    has(html, "<rect class=\"k2\" width=\"100%\" height=\"100%\"></rect></svg> block</span></div>");
    free(html);
    test_folder_remove();
}
END_TEST

START_TEST(a_page_compares_workloads) {
    char *html = page_of("{\"workloads\": [{" WORK ", \"devices\": [" DEVICE(
        "A", "1.5") "]}, {" WORK ", \"devices\": [" DEVICE("B", "3") "]}]}");
    check_well_formed(html);
    has(html, "reference, A");
    has(html, "<rect class=\"k0\" x=\"0.00%\" width=\"50.00%\" height=\"100%\"><title>over floor");
    has(html, "reference, B");
    free(html);
    test_folder_remove();
}
END_TEST

START_TEST(a_page_shows_the_ablation) {
    char *html = page_of(
        "{" WORK
        ", \"ablation\": {\"name\": \"A\", \"agrees\": true, \"difference\": 0.0012, \"stages\": "
        "[{\"name\": \"uploaded\", \"batch\": 4096, \"held_out_agreement\": 0.5, \"difference\": "
        "0, " EPOCH("1") "}, {\"name\": \"one <read\", \"batch\": 4096, \"difference\": -0.0012, "
                         "\"epoch\": {\"settled\": {\"median\": 1.5}}}]}}");
    check_well_formed(html);
    has(html, "width=\"50.00%\" height=\"100%\"><title>epoch"); /* 1.5 of 3 seconds */
    has(html,
        "<td>one &lt;read</td><td>4,096</td><td>-</td><td>1.50 s</td><td>-</td><td>2.00</td>");
    has(html, "<td>-0.12</td>");
    has(html, "agrees with the slow one: 0.12 points apart");
    free(html);
    test_folder_remove();
}
END_TEST

START_TEST(a_page_needs_a_document_and_a_place) {
    test_fails(mimus_bench_report("[1", test_folder_path("page.html")), MIMUS_ERR_FORMAT,
               "document of the bench");
    test_fails(mimus_bench_report("[]", test_folder_path("page.html")), MIMUS_ERR_FORMAT,
               "no object");
    ck_assert(!mimus__file_exists(test_folder_path("page.html")));
    test_fails(mimus_bench_report("{}", test_folder_path("no/such/folder.html")), MIMUS_ERR_IO,
               "no/such");
    char *html = page_of("{}"); /* nothing is known: dashes */
    check_well_formed(html);
    free(html);
    test_folder_remove();
}
END_TEST

/* ----------------------------------------------------------------------- workloads */

START_TEST(workloads_are_of_the_reference_shape) {
    mimus_workload about;
    size_t count = 0;
    for (; mimus_bench_describe(count, &about); count++) {
        const mimus_bench_options options = {.workload = about.name, .samples = 2000};
        mimus__bench_work work;
        test_ok(mimus__bench_work_new(&work, &options, NULL));
        const mimus_schema *schema = mimus__recording_schema(work.dataset.recording);
        ck_assert_uint_eq(schema->senses, 143);
        ck_assert_uint_eq(schema->heads, 7);
        ck_assert_uint_eq(mimus__schema_actions(schema), 47);
        ck_assert(schema->masks);
        ck_assert_uint_eq(mimus__recording_samples(work.dataset.recording), 2000);
        ck_assert_uint_eq(mimus__recording_episodes(work.dataset.recording), 4);
        ck_assert_uint_eq(work.config->epochs, 3);
        if (count == 0) {
            ck_assert_str_eq(about.name, "reference");
            ck_assert_uint_eq(work.config->batch, 4096);
            ck_assert_uint_eq(work.config->hidden[0], 128);
        }
        mimus__bench_work_clear(&work);
    }
    ck_assert_uint_eq(count, 4);
}
END_TEST

static void refuse(mimus_bench_options options, const char *part) {
    mimus__bench_work work;
    test_fails(mimus__bench_work_new(&work, &options, NULL), MIMUS_ERR_ARGUMENT, part);
    mimus__bench_work_clear(&work);
}

START_TEST(bad_options_are_refused) {
    const char *path = "none.rec";
    const mimus_source source = {.paths = &path, .count = 1};
    refuse((mimus_bench_options){.workload = "huge"}, "reference, reference-32k, wide, small");
    refuse((mimus_bench_options){.epochs = 1}, "2 or more");
    refuse((mimus_bench_options){.samples = 1}, "samples: expected 2 to ");
    refuse((mimus_bench_options){.samples = 5000000000}, "samples: expected 2 to ");
    refuse((mimus_bench_options){.hidden = "12,x"}, "hidden: expected");
    refuse((mimus_bench_options){.gemm = "cuda"}, "gemm: expected");
    refuse((mimus_bench_options){.samples = 9, .recording = &source}, "measured whole");
    char *json = NULL;
    const mimus_bench_options both = {.device = "cpu", .all_devices = true};
    test_fails(mimus_bench(&both, NULL, &json), MIMUS_ERR_ARGUMENT, "all devices");
    const mimus_bench_options ablate_all = {.all_devices = true, .ablate = true};
    test_fails(mimus_bench(&ablate_all, NULL, &json), MIMUS_ERR_ARGUMENT, "ablate: ");
    ck_assert_ptr_null(json);
}
END_TEST

static bool stop(void *user) {
    (void)user;
    return true;
}

START_TEST(stops_on_request) {
    const mimus_watch watch = {.should_stop = stop};
    const mimus_bench_options options = {.samples = 1000};
    char *json = NULL;
    test_fails(mimus_bench(&options, &watch, &json), MIMUS_ERR_STOPPED, "stopped on request");
    ck_assert_ptr_null(json);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bench");
    TCase *paper = tcase_create("paper");
    tcase_add_test(paper, operations_are_those_of_unpadded_products);
    tcase_add_test(paper, the_gather_moves_a_row_in_and_a_row_out);
    tcase_add_test(paper, bytes_of_a_small_step);
    tcase_add_test(paper, workloads_are_of_the_reference_shape);
    tcase_add_test(paper, bad_options_are_refused);
    tcase_add_test(paper, stops_on_request);
    tcase_add_test(paper, the_largest_difference_is_found);
    tcase_add_test(paper, a_page_compares_devices);
    tcase_add_test(paper, a_phase_keeps_its_colour);
    tcase_add_test(paper, a_page_compares_workloads);
    tcase_add_test(paper, a_page_shows_the_ablation);
    tcase_add_test(paper, a_page_needs_a_document_and_a_place);
    suite_add_tcase(suite, paper);
    TCase *device = tcase_create("device");
    tcase_add_loop_test(device, launches_on_paper_are_those_counted, 0,
                        sizeof paper_cases / sizeof *paper_cases);
    tcase_add_test(device, a_run_is_complete);
    tcase_add_test(device, first_losses_agree_with_the_reference);
    tcase_add_loop_test(device, all_ways_of_training_agree, 0,
                        sizeof geometries / sizeof *geometries);
    tcase_add_test(device, slow_stages_are_slow);
    suite_add_tcase(suite, device);
    return test_run(suite);
}

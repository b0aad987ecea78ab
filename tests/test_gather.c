/* The resident recording and the batches out of it: packing, shards, stacking, order. */
#include "compare.h"
#include "reference.h"
#include "resident.h"
#include "rounded.h"
#include "sample.h"
#include "support.h"

#include "gather.h"
#include "hyper.clh"

#include <float.h>
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

/* Everything between a sample and its batches. */
typedef struct bench {
    sample s;
    mimus__dataset dataset;
    mimus__store store;
    mimus__buffer hyper, x;
    mimus__gather *gather;
    uint32_t stack, runs, capacity, width;
    uint64_t *rows; /* recording row of each row of the store */
} bench;

enum { SEED = 1234567 };

/* How senses are kept; every test of a batch's rows is run for all of them. */
static const mimus__store_form forms[] = {MIMUS__STORE_F32, MIMUS__STORE_F16, MIMUS__STORE_BF16};
enum { FORMS = sizeof forms / sizeof *forms };
static mimus__store_form form = MIMUS__STORE_F32;

static void open_bench(bench *b, const sample_recipe *recipe, uint32_t stack, uint32_t runs,
                       uint32_t capacity, uint64_t shard_bytes) {
    *b = (bench){.stack = stack, .runs = runs, .capacity = capacity};
    sample_new(&b->s, recipe, "sample.rec");
    sample_open(&b->s, 0.25, &b->dataset);
    const mimus__store_recipe packing = {.form = form,
                                         .stack = stack,
                                         .mean_weight = b->dataset.statistics.weight,
                                         .shard_bytes = shard_bytes};
    test_ok(mimus__store_new(&b->store, device, b->dataset.recording, &b->dataset.audit,
                             &b->dataset.split, &packing, NULL));
    ck_assert(!b->store.normalised);
    mimus__hyper hyper[8];
    for (uint32_t r = 0; r < 8; r++)
        hyper[r] = (mimus__hyper){.order_low = SEED + r, .order_high = r};
    test_ok(mimus__buffer_new(&b->hyper, device, sizeof hyper, "settings"));
    test_ok(mimus__buffer_write(&b->hyper, 0, hyper, sizeof hyper));
    b->width = mimus__round_up(recipe->senses * stack, 16);
    test_ok(mimus__buffer_new(&b->x, device, (size_t)runs * capacity * b->width * 4, "x"));
    mimus__matrix x = {.buffer = &b->x, .stride = (size_t)capacity * b->width};
    test_ok(mimus__gather_new(&b->gather, device, &b->store, NULL, &b->hyper, stack, x, runs,
                              capacity, b->width));
    b->rows = calloc(recipe->samples, sizeof *b->rows);
    uint64_t at = 0;
    const mimus__rows *parts[] = {&b->dataset.split.training, &b->dataset.split.heldout};
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < parts[p]->spans; i++)
            for (uint64_t k = 0; k < parts[p]->span[i].count; k++)
                b->rows[at++] = parts[p]->span[i].first + k;
    ck_assert_uint_eq(at, recipe->samples);
}

static void close_bench(bench *b) {
    mimus__gather_free(b->gather);
    mimus__buffer_free(&b->x);
    mimus__buffer_free(&b->hyper);
    mimus__store_free(&b->store);
    mimus__dataset_clear(&b->dataset);
    sample_clear(&b->s);
    free(b->rows);
}

/* The batch as the device has it. */
typedef struct fetched {
    float *x;         /* (runs, capacity, width) */
    uint32_t *labels; /* (runs, capacity, label words) */
} fetched;

static fetched fetch(const bench *b) {
    const mimus__batch *batch = mimus__gather_batch(b->gather);
    fetched f = {calloc(b->x.bytes, 1), calloc(batch->labels.bytes, 1)};
    test_ok(mimus__buffer_read(&b->x, 0, f.x, b->x.bytes));
    test_ok(mimus__buffer_read(&batch->labels, 0, f.labels, batch->labels.bytes));
    return f;
}

static void release(fetched f) {
    free(f.x);
    free(f.labels);
}

/* Batch row i of run r must be the store's row `row`. */
static void check_row(const bench *b, fetched f, uint32_t r, uint32_t i, uint64_t row) {
    const sample *s = &b->s;
    const mimus__row_layout *layout = &b->store.layout;
    uint32_t senses = s->recipe.senses, heads = s->recipe.heads;
    uint64_t at = b->rows[row];
    size_t place = (size_t)r * b->capacity + i;
    const float *x = f.x + place * b->width;
    const uint32_t *labels = f.labels + place * layout->label_words;
    float *want = calloc((size_t)senses * b->stack, sizeof *want);
    mimus__reference_stack(want, s->senses, senses, b->stack, s->first[at], at);
    for (uint32_t j = 0; j < senses * b->stack; j++)
        want[j] = (float)rounded_to(form, (double)want[j]);
    if (memcmp(x, want, (size_t)senses * b->stack * sizeof *want) != 0)
        ck_abort_msg("senses of batch row %u are not those of sample %llu", i,
                     (unsigned long long)at);
    for (uint32_t j = senses * b->stack; j < b->width; j++)
        if (x[j] != 0)
            ck_abort_msg("padding column %u is %g", j, (double)x[j]);
    for (uint32_t h = 0; h < heads; h++)
        if ((labels[h / 2] >> (h % 2 * 16) & 0xFFFF) != s->actions[at * heads + h])
            ck_abort_msg("label %u of batch row %u", h, i);
    if (layout->mask_words > 0 &&
        memcmp(labels + layout->action_words, s->masks + at * layout->mask_words,
               layout->mask_words * sizeof(uint32_t)) != 0)
        ck_abort_msg("mask of batch row %u", i);
    if (layout->weight_word > 0) {
        float weight;
        memcpy(&weight, labels + layout->weight_word, sizeof weight);
        double wanted = (double)s->weights[at] / b->dataset.statistics.weight;
        if (!((double)weight > wanted - 1e-6 && (double)weight < wanted + 1e-6))
            ck_abort_msg("weight of batch row %u is %g, not %g", i, (double)weight, wanted);
    }
    free(want);
}

static const sample_recipe recipes[] = {
    {.senses = 1, .heads = 1, .actions = {2}, .samples = 65, .episode = 7},
    {.senses = 5, .heads = 3, .actions = {3, 33, 4}, .masks = true, .samples = 1000, .episode = 40},
    {.senses = 143,
     .heads = 7,
     .actions = {9, 10, 3, 5, 10, 3, 7},
     .masks = true,
     .weights = true,
     .samples = 500,
     .episode = 30},
    {.senses = 16, .heads = 2, .actions = {64, 65}, .masks = true, .samples = 640},
};

static void check_in_order(const sample_recipe *recipe, uint32_t stack) {
    bench b;
    open_bench(&b, recipe, stack, 1, 70, 0);
    ck_assert_uint_eq(b.store.training + b.store.heldout, recipe->samples);
    uint32_t n = b.store.heldout, base = b.store.training;
    for (uint32_t first = 0; first < n; first += 65) {
        uint32_t rows = n - first < 65 ? n - first : 65;
        test_ok(mimus__gather_in_order(b.gather, base, first, rows, 70));
        fetched f = fetch(&b);
        for (uint32_t i = 0; i < rows; i++)
            check_row(&b, f, 0, i, base + first + i);
        for (uint32_t i = rows; i < 70; i++) /* empty: zero, and without a label */
            for (uint32_t j = 0; j < b.width; j++)
                if (f.x[i * b.width + j] != 0 ||
                    f.labels[i * b.store.layout.label_words] != 0xFFFFFFFFu)
                    ck_abort_msg("row %u past the batch is not empty", i);
        release(f);
    }
    close_bench(&b);
}

static void check_shuffled(const sample_recipe *recipe, uint32_t stack, uint32_t runs) {
    bench b;
    open_bench(&b, recipe, stack, runs, 64, 0);
    uint32_t n = b.store.training;
    uint8_t *seen = calloc(n, 1);
    for (uint32_t first = 0; first < n; first += 64) {
        uint32_t rows = n - first < 64 ? n - first : 64;
        test_ok(mimus__gather_shuffled(b.gather, 3, first, rows, 64));
        fetched f = fetch(&b);
        for (uint32_t r = 0; r < runs; r++) {
            uint64_t seed = (uint64_t)r << 32 | (SEED + r);
            for (uint32_t i = 0; i < rows; i++) {
                uint64_t row = mimus__reference_sampler_row(seed, 0, 3, n, first + i);
                check_row(&b, f, r, i, row);
                if (r == 0 && seen[row]++ != 0)
                    ck_abort_msg("row %llu comes twice", (unsigned long long)row);
            }
        }
        release(f);
    }
    free(seen);
    close_bench(&b);
}

static void check_everything(void) {
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        check_in_order(&recipes[i], 4);
        if (form == MIMUS__STORE_F32) { /* building each kernel takes its time */
            check_in_order(&recipes[i], 1);
            check_shuffled(&recipes[i], 1, 1);
        }
        check_shuffled(&recipes[i], 3, 3);
    }
}

START_TEST(batches_hold_their_rows_as_cpus_run_it) {
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    form = forms[_i];
    check_everything();
}
END_TEST

START_TEST(batches_hold_their_rows_as_gpus_run_it) {
    setenv("MIMUS_GEOMETRY", "gpu", 1);
    form = forms[_i];
    check_everything();
}
END_TEST

/* 1, 2, 3, 4, 8 and 16 shards: every number of kernel arguments there is. */
START_TEST(shards_change_nothing) {
    form = forms[_i];
    const sample_recipe *recipe = &recipes[1];
    fetched whole = {0};
    size_t x_bytes = 0, label_bytes = 0;
    const uint32_t rows_a_shard[] = {1024, 512, 256, 128, 64};
    const uint32_t shards[] = {1, 2, 4, 8, 16};
    for (size_t i = 0; i < 5; i++) {
        bench b;
        uint64_t row_bytes =
            mimus__row_layout_of(
                &(mimus_schema){.senses = 5,
                                .heads = 3,
                                .head =
                                    (mimus_head[]){{.actions = 3}, {.actions = 33}, {.actions = 4}},
                                .masks = true},
                3, form)
                .words *
            4ull;
        open_bench(&b, recipe, 3, 1, 600, rows_a_shard[i] * row_bytes);
        ck_assert_uint_eq(b.store.shards, shards[i]);
        test_ok(mimus__gather_shuffled(b.gather, 0, 0, 600, 600));
        fetched f = fetch(&b);
        if (i == 0) {
            whole = f;
            x_bytes = b.x.bytes;
            label_bytes = mimus__gather_batch(b.gather)->labels.bytes;
        } else {
            compare_check_bytes("senses", f.x, whole.x, x_bytes);
            compare_check_bytes("labels", f.labels, whole.labels, label_bytes);
            release(f);
        }
        close_bench(&b);
    }
    release(whole);
}
END_TEST

START_TEST(senses_are_normalised) {
    bench b;
    open_bench(&b, &recipes[2], 2, 2, 64, 0);
    float mean[143], scale[143];
    for (uint32_t r = 0; r < 2; r++) {
        for (int s = 0; s < 143; s++) {
            mean[s] = 0.01f * (float)s + (float)r;
            scale[s] = 1.0f + 0.1f * (float)(s + 1);
        }
        test_ok(mimus__gather_normalise(b.gather, r, mean, scale));
    }
    test_ok(mimus__gather_in_order(b.gather, 0, 0, 64, 64));
    fetched f = fetch(&b);
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t i = 0; i < 64; i++)
            for (uint32_t s = 0; s < 143; s++) {
                double sense = (double)b.s.senses[b.rows[i] * 143 + s];
                double want = (sense - (0.01 * s + r)) * (1 + 0.1 * (s + 1));
                double got = (double)f.x[((size_t)r * 64 + i) * b.width + 143 + s];
                if (!(got - want < 1e-5 && want - got < 1e-5))
                    ck_abort_msg("run %u row %u sense %u: %g, not %g", r, i, s, got, want);
            }
    release(f);
    close_bench(&b);
}
END_TEST

/* All 65,536 bit patterns, as a device reads them: NaNs and infinities too, which only a fault can
 * put there. */
START_TEST(every_16_bits_are_read_as_what_they_are) {
    enum { SENSES = 16, ROWS = 4096 };
    const sample_recipe recipe = {
        .senses = SENSES, .heads = 1, .actions = {3}, .samples = 6000, .episode = 100};
    setenv("MIMUS_GEOMETRY", _i % 2 == 0 ? "cpu" : "gpu", 1);
    form = forms[1 + _i / 2];
    bench b;
    open_bench(&b, &recipe, 1, 1, ROWS, 0);
    ck_assert_uint_ge(b.store.training, ROWS);
    size_t words = b.store.layout.words;
    uint32_t *rows = calloc(ROWS, words * sizeof *rows);
    for (uint32_t pattern = 0; pattern < 0x10000; pattern++)
        rows[pattern / SENSES * words + pattern % SENSES / 2] |= pattern << (pattern % 2 * 16);
    test_ok(mimus__buffer_write(&b.store.shard[0], 0, rows, ROWS * words * sizeof *rows));
    test_ok(mimus__gather_in_order(b.gather, 0, 0, ROWS, ROWS));
    fetched f = fetch(&b);
    for (uint32_t pattern = 0; pattern < 0x10000; pattern++) {
        double want = rounded_read(form, (uint16_t)pattern);
        double got = (double)f.x[pattern / SENSES * b.width + pattern % SENSES];
        bool flushed = got == 0 && fabs(want) < (double)FLT_MIN; /* as some devices do */
        if (!(got == want) && !flushed && !(isnan(got) && isnan(want)))
            ck_abort_msg("0x%04x is read as %a, not %a", pattern, got, want);
    }
    free(rows);
    release(f);
    close_bench(&b);
}
END_TEST

/* Packed as (sense - mean) * scale, and gathered as that. */
START_TEST(sixteen_bits_are_packed_after_normalisation) {
    bench b;
    float mean[16], scale[16];
    mimus__store store;
    form = forms[1 + _i];
    open_bench(&b, &recipes[3], 1, 1, 64, 0);
    for (int s = 0; s < 16; s++) {
        mean[s] = 0.3f * (float)s;
        scale[s] = s == 3 ? 0.0f : 1.0f + (float)s;
    }
    const mimus__store_recipe packing = {.form = form, .stack = 1, .mean = mean, .scale = scale};
    test_ok(mimus__store_new(&store, device, b.dataset.recording, &b.dataset.audit,
                             &b.dataset.split, &packing, NULL));
    ck_assert(store.normalised);
    uint32_t *rows = calloc(64, store.layout.words * sizeof *rows);
    test_ok(mimus__buffer_read(&store.shard[0], 0, rows, 64 * store.layout.words * sizeof *rows));
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t s = 0; s < 16; s++) {
            uint32_t word = rows[i * store.layout.words + s / 2];
            float sense = b.s.senses[b.rows[i] * 16 + s];
            double want = rounded_to(form, (double)((sense - mean[s]) * scale[s]));
            ck_assert_double_eq(rounded_read(form, (uint16_t)(word >> (s % 2 * 16))), want);
        }
    free(rows);
    mimus__store_free(&store);
    close_bench(&b);
}
END_TEST

/* The file's pages count as this process's memory only while they are read: of 8 MB in chunks of 1
 * MB, next to nothing is left behind any pass over them. */
static void check_resident(const sample *s, const char *when) {
    size_t mapped, resident = resident_bytes(s->path, &mapped);
    ck_assert_uint_ge(mapped, 7 << 20);
    ck_assert_msg(resident < mapped / 8, "%zu of %zu bytes are resident %s", resident, mapped,
                  when);
}

START_TEST(a_mapped_file_is_left_behind) {
    const sample_recipe recipe = {
        .senses = 100, .heads = 2, .actions = {3, 5}, .masks = true, .samples = 20000};
    const mimus__store_recipe packing = {.form = MIMUS__STORE_F32, .stack = 1};
    sample s;
    mimus__dataset dataset;
    mimus__store store;
    sample_new(&s, &recipe, "sample.rec");
    sample_open(&s, 0.25, &dataset);
    check_resident(&s, "after audit, split and statistics");
    test_ok(mimus__store_new(&store, device, dataset.recording, &dataset.audit, &dataset.split,
                             &packing, NULL));
    check_resident(&s, "after the upload");
    mimus__store_free(&store);
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
}
END_TEST

START_TEST(too_many_shards_say_so) {
    sample s;
    mimus__dataset dataset;
    mimus__store store;
    const mimus__store_recipe narrow = {MIMUS__STORE_F32, 1, .shard_bytes = 1024};
    const mimus__store_recipe narrower = {MIMUS__STORE_F32, 1, .shard_bytes = 16};
    sample_new(&s, &recipes[1], "sample.rec");
    sample_open(&s, 0.25, &dataset);
    test_fails(mimus__store_new(&store, device, dataset.recording, &dataset.audit, &dataset.split,
                                &narrow, NULL),
               MIMUS_ERR_MEMORY, "at most 16 are possible");
    test_fails(mimus__store_new(&store, device, dataset.recording, &dataset.audit, &dataset.split,
                                &narrower, NULL),
               MIMUS_ERR_MEMORY, "cannot hold a row");
    mimus__dataset_clear(&dataset);
    sample_clear(&s);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gather");
    TCase *all = tcase_create("gather");
    tcase_add_checked_fixture(all, open_device, close_device);
    tcase_add_loop_test(all, batches_hold_their_rows_as_cpus_run_it, 0, FORMS);
    tcase_add_loop_test(all, batches_hold_their_rows_as_gpus_run_it, 0, FORMS);
    tcase_add_loop_test(all, shards_change_nothing, 0, FORMS);
    tcase_add_loop_test(all, every_16_bits_are_read_as_what_they_are, 0, 4);
    tcase_add_loop_test(all, sixteen_bits_are_packed_after_normalisation, 0, 2);
    tcase_add_test(all, senses_are_normalised);
    tcase_add_test(all, a_mapped_file_is_left_behind);
    tcase_add_test(all, too_many_shards_say_so);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

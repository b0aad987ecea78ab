/* Dense layers: every implementation gives the bits of the sum as it is written down. */
#include "support.h"

#include "alloc.h"
#include "compare.h"
#include "dense.h"
#include "rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *noise(size_t count, uint64_t seed) {
    float *values;
    mimus__rng rng = {.seed = seed};
    test_ok(mimus__alloc(&values, count, sizeof *values));
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(2 * mimus__rng_uniform(&rng) - 1);
    return values;
}

/* What dense.h says, one rounding after the other: a volatile sum cannot be contracted. */
static float sum_of(const float *x, const float *weight, float bias, uint32_t in, uint32_t out,
                    uint32_t column) {
    volatile float sum = bias;
    for (size_t i = 0; i < in; i++) {
        volatile float product = x[i] * weight[i * out + column];
        sum = sum + product;
    }
    return sum;
}

static void check_layer(mimus__dense *dense, uint32_t rows, uint32_t in, uint32_t out) {
    const size_t padded = mimus__dense_panels(out) * MIMUS__DENSE_PANEL,
                 used = padded * sizeof(float);
    float *weight = noise((size_t)in * out, 1), *bias = noise(out, 2), *x = noise(rows * in, 3);
    float *panels, *y[MIMUS__DENSE_ROWS];
    const float *row[MIMUS__DENSE_ROWS];
    test_ok(mimus__alloc(&panels, mimus__dense_size(in, out), sizeof *panels));
    mimus__dense_pack(panels, weight, bias, in, out);
    for (uint32_t r = 0; r < rows; r++) {
        row[r] = x + r * in;
        test_ok(mimus__alloc(&y[r], used + 64, 1));
        canary_fill(y[r], used, used + 64);
    }
    dense(rows, row, in, panels, y, mimus__dense_panels(out));
    for (uint32_t r = 0; r < rows; r++) {
        canary_check("outputs", y[r], used, used + 64);
        for (uint32_t o = 0; o < padded; o++) {
            float expected = o < out ? sum_of(row[r], weight, bias[o], in, out, o) : 0;
            ck_assert_msg(memcmp(&y[r][o], &expected, sizeof expected) == 0,
                          "%u of %u rows, (%u, %u), output %u: %a, not %a", r, rows, in, out, o,
                          (double)y[r][o], (double)expected);
        }
        free(y[r]);
    }
    free(panels);
    free(x);
    free(bias);
    free(weight);
}

START_TEST(sums_are_as_written_down) {
    const uint32_t sizes[] = {1, 15, 16, 17, 63, 64, 65, 143};
    for (size_t k = 0; mimus__dense_at(k) != NULL; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t o = 0; o < sizeof sizes / sizeof *sizes; o++) {
                for (uint32_t rows = 1; rows <= MIMUS__DENSE_ROWS; rows++)
                    check_layer(mimus__dense_at(k), rows, sizes[i], sizes[o]);
            }
        }
    }
}
END_TEST

START_TEST(the_best_is_the_last) {
    size_t count = 0;
    while (mimus__dense_at(count) != NULL)
        count++;
    ck_assert_uint_ge(count, 1);
    ck_assert(mimus__dense_best() == mimus__dense_at(count - 1));
    printf("%zu implementations here\n", count);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("dense");
    TCase *all = tcase_create("dense");
    tcase_add_test(all, sums_are_as_written_down);
    tcase_add_test(all, the_best_is_the_last);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

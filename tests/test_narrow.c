/* Senses in 16 bits, as the host rounds them. */
#include "rounded.h"
#include "support.h"

#include "narrow.h"

#include <float.h>
#include <math.h>

static const mimus__store_form forms[] = {MIMUS__STORE_F16, MIMUS__STORE_BF16};

static uint16_t narrow(mimus__store_form form, float value) {
    const float mean = 0, scale = 1;
    uint16_t out;
    (form == MIMUS__STORE_F16 ? mimus__narrow_f16 : mimus__narrow_bf16)(&out, &value, &mean, &scale,
                                                                        1);
    return out;
}

static void check(mimus__store_form form, float value) {
    double got = rounded_read(form, narrow(form, value)), want = rounded_to(form, (double)value);
    if (!(got == want) || signbit(got) != signbit(want))
        ck_abort_msg("%a becomes %a, not %a", (double)value, got, want);
}

/* Every number of the form, the middles between neighbours, and what lies right beside. */
START_TEST(rounds_to_the_nearest_even) {
    mimus__store_form form = forms[_i];
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        double value = rounded_read(form, (uint16_t)bits);
        double next = rounded_read(form, (uint16_t)(bits + 1));
        if (!isfinite(value))
            continue;
        ck_assert_uint_eq(narrow(form, (float)value), bits);
        if (!isfinite(next))
            continue;
        float middle = (float)((value + next) / 2);
        check(form, middle);
        check(form, nextafterf(middle, (float)value));
        check(form, nextafterf(middle, (float)next));
    }
}
END_TEST

START_TEST(what_is_finite_stays_finite_and_the_rest_what_it_is) {
    mimus__store_form form = forms[_i];
    const float large[] = {65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e6f, 3.38e38f, FLT_MAX};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        check(form, large[i]);
        check(form, -large[i]);
        ck_assert(isfinite(rounded_read(form, narrow(form, large[i]))));
    }
    const float small[] = {0.0f, FLT_MIN, FLT_TRUE_MIN, 2.9e-8f, 3e-8f, 6.1e-5f};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        check(form, small[i]);
        check(form, -small[i]);
    }
    check(form, INFINITY);
    check(form, -INFINITY);
    ck_assert(isnan(rounded_read(form, narrow(form, NAN))));
    ck_assert(isnan(rounded_read(form, narrow(form, -NAN))));
}
END_TEST

START_TEST(normalises_first) {
    enum { COUNT = 37 }; /* more than a vector, and not a multiple of one */
    float value[COUNT], mean[COUNT], scale[COUNT];
    uint16_t out[COUNT + 1];
    mimus__store_form form = forms[_i];
    for (int i = 0; i < COUNT; i++) {
        value[i] = 3000.0f + 0.37f * (float)i;
        mean[i] = 3000.0f + 0.01f * (float)i;
        scale[i] = i == 5 ? 0.0f : 1.0f / (1.0f + (float)i);
    }
    out[COUNT] = 0xABCD;
    (form == MIMUS__STORE_F16 ? mimus__narrow_f16 : mimus__narrow_bf16)(out, value, mean, scale,
                                                                        COUNT);
    for (int i = 0; i < COUNT; i++) {
        double want = rounded_to(form, (double)((value[i] - mean[i]) * scale[i]));
        ck_assert_double_eq(rounded_read(form, out[i]), want);
    }
    ck_assert_uint_eq(out[COUNT], 0xABCD);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("narrow");
    TCase *all = tcase_create("narrow");
    tcase_add_loop_test(all, rounds_to_the_nearest_even, 0, 2);
    tcase_add_loop_test(all, what_is_finite_stays_finite_and_the_rest_what_it_is, 0, 2);
    tcase_add_loop_test(all, normalises_first, 0, 2);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

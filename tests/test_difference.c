/* Differences: against exact numbers worked out in Python, by enumeration and by convolution. */
#include "support.h"

#include "difference.h"

#include <math.h>

enum { FEW = 9, MANY = 24 };

static const double few_n[FEW] = {49, 57, 55, 40, 57, 59, 58, 23, 38};
static const double few_a[FEW] = {31, 31, 36, 20, 34, 31, 35, 14, 20};
static const double few_b[FEW] = {28, 42, 33, 25, 44, 42, 40, 13, 26};

static const double many_n[MANY] = {44, 23, 25, 40, 39, 39, 39, 54, 40, 34, 58, 55,
                                    33, 28, 28, 26, 40, 43, 45, 55, 57, 41, 43, 23};
static const double many_a[MANY] = {22, 14, 14, 24, 26, 22, 21, 36, 24, 21, 38, 36,
                                    15, 14, 18, 14, 29, 21, 27, 30, 36, 26, 27, 9};
static const double many_b[MANY] = {29, 15, 12, 22, 26, 27, 23, 39, 27, 19, 32, 38,
                                    25, 16, 17, 19, 26, 32, 27, 35, 35, 31, 27, 16};

static mimus__ratio ratio(const double *sum, const double *count, size_t groups) {
    return (mimus__ratio){.groups = groups, .sum = sum, .count = count};
}

static void near(double got, double want, double within) {
    ck_assert_msg(fabs(got - want) <= within, "%.17g, expected %.17g", got, want);
}

START_TEST(few_groups_are_exact) {
    mimus__ratio a = ratio(few_a, few_n, FEW), b = ratio(few_b, few_n, FEW);
    mimus__difference d, back;
    test_ok(mimus__difference_paired(&d, &a, &b));
    near(d.value, 0.09403669724770643, 1e-15);
    near(d.se, 0.03651917414793579, 1e-15);
    near(d.p, 0.0546875, 0);
    test_ok(mimus__difference_paired(&back, &b, &a));
    near(back.value, -d.value, 0);
    near(back.p, d.p, 0);
}
END_TEST

/* p is exactly 0.02266; of 9,999 draws it has a standard error of 0.0015. */
START_TEST(many_groups_are_drawn) {
    mimus__ratio a = ratio(many_a, many_n, MANY), b = ratio(many_b, many_n, MANY);
    mimus__difference d, again;
    test_ok(mimus__difference_paired(&d, &a, &b));
    near(d.p, 0.022658348083496094, 3 * 0.0015);
    test_ok(mimus__difference_paired(&again, &a, &b));
    near(again.p, d.p, 0);
}
END_TEST

START_TEST(without_pairs_the_errors_add_up) {
    mimus__ratio a = ratio(many_a, many_n, MANY), b = ratio(many_b, many_n, MANY);
    mimus__difference d = mimus__difference_unpaired(&a, &b);
    near(d.value, 0.0535714285714286, 1e-15);
    near(d.se, 0.02056419401907462, 1e-15);
    near(d.p, 0.009185205405729223, 1e-15);
    a.groups = 19;
    d = mimus__difference_unpaired(&a, &b);
    ck_assert(isfinite(d.se) && isnan(d.p)); /* too few to say */
}
END_TEST

START_TEST(what_cannot_be_said_is_not) {
    const double none[3] = {0, 0, 0}, one[3] = {0, 7, 0}, hits[3] = {0, 5, 0};
    mimus__ratio a = ratio(none, none, 3), b = ratio(hits, one, 3);
    mimus__difference d;
    ck_assert(isnan(mimus__ratio_estimate(&a).value));
    ck_assert(isnan(mimus__ratio_estimate(&b).se));
    near(mimus__ratio_estimate(&b).value, 5.0 / 7, 1e-15);
    test_ok(mimus__difference_paired(&d, &b, &b));
    ck_assert(d.value == 0 && isnan(d.se) && isnan(d.p));
}
END_TEST

START_TEST(equal_results_are_no_difference) {
    mimus__ratio a = ratio(many_a, many_n, MANY);
    mimus__difference d;
    test_ok(mimus__difference_paired(&d, &a, &a));
    ck_assert(d.value == 0 && d.se == 0 && d.p == 1);
    d = mimus__difference_unpaired(&a, &a);
    ck_assert(d.value == 0 && d.p == 1);
}
END_TEST

/* By hand: the smallest times 4, the next times 3, ... never below one before. */
START_TEST(many_questions_are_corrected_for) {
    double p[] = {0.01, 0.04, 0.03, 0.005}, holes[] = {NAN, 0.5, 0.02, NAN, 0.9};
    const double want[] = {0.03, 0.06, 0.06, 0.02};
    test_ok(mimus__difference_correct(p, 4));
    for (size_t i = 0; i < 4; i++)
        near(p[i], want[i], 1e-15);
    test_ok(mimus__difference_correct(holes, 5));
    ck_assert(isnan(holes[0]) && isnan(holes[3]));
    near(holes[2], 0.06, 1e-15);
    near(holes[1], 1, 0);
    near(holes[4], 1, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("difference");
    TCase *all = tcase_create("difference");
    tcase_add_test(all, few_groups_are_exact);
    tcase_add_test(all, many_groups_are_drawn);
    tcase_add_test(all, without_pairs_the_errors_add_up);
    tcase_add_test(all, what_cannot_be_said_is_not);
    tcase_add_test(all, equal_results_are_no_difference);
    tcase_add_test(all, many_questions_are_corrected_for);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

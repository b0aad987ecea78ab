/* NumPy array headers and element conversion, without files. */
#include "npz_file.h"
#include "support.h"

#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static mimus_status parse(mimus__npy *npy, const char *literal) {
    uint8_t header[8192];
    return mimus__npy_parse(npy, header, test_npy_header(header, sizeof header, literal), "x.npy");
}

START_TEST(headers_are_understood) {
    mimus__npy npy;
    char text[64];
    test_ok(parse(&npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (27021, 4), }"));
    ck_assert_int_eq(npy.kind, MIMUS__NPY_FLOAT);
    ck_assert_uint_eq(npy.size, 4);
    ck_assert(!npy.fortran && !npy.swapped);
    ck_assert_uint_eq(mimus__npy_rows(&npy), 27021);
    ck_assert_uint_eq(mimus__npy_width(&npy), 4);
    ck_assert_uint_eq(npy.header % 64, 0);
    ck_assert_str_eq(npy.descr, "<f4");
    ck_assert_str_eq(mimus__npy_shape_text(&npy, text, sizeof text), "(27021, 4)");
    ck_assert_str_eq(mimus__npy_shape_text(&npy, text, 6), "(2702");

    /* any order, other quotes, Python 2's longs, no last comma, spaces and lines */
    test_ok(parse(&npy, "{ \"shape\":(3L,\n4L ,5L),'descr':'>i8' , 'fortran_order':True}"));
    ck_assert_int_eq(npy.kind, MIMUS__NPY_SIGNED);
    ck_assert(npy.fortran && npy.swapped && !mimus__npy_by_rows(&npy));
    ck_assert_uint_eq(mimus__npy_width(&npy), 20);

    test_ok(parse(&npy, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"));
    ck_assert_uint_eq(mimus__npy_rows(&npy) * mimus__npy_width(&npy), 1);
    ck_assert_str_eq(mimus__npy_shape_text(&npy, text, sizeof text), "()");
    test_ok(parse(&npy, "{'descr': '|u1', 'fortran_order': True, 'shape': (7,), }"));
    ck_assert(mimus__npy_by_rows(&npy));
    ck_assert_str_eq(mimus__npy_shape_text(&npy, text, sizeof text), "(7,)");
    test_ok(parse(&npy, "{'descr': '|u1', 'fortran_order': True, 'shape': (7, 1), }"));
    ck_assert(mimus__npy_by_rows(&npy));
}
END_TEST

START_TEST(other_types_are_named) {
    static const struct {
        const char *descr, *type;
    } cases[] = {
        {"'|O'", "objects (pickled)"},
        {"'<U12'", "text"},
        {"'|S3'", "text"},
        {"'<c8'", "complex numbers"},
        {"'<M8[ns]'", "dates or times"},
        {"'<f16'", "long doubles"},
        {"'|V2'", "raw bytes"},
        {"[('a', '<f4'), ('b', '<i4', (2,))]", "a structure"},
        {"('<f4', (2,))", "a structure"},
        {"''", "an unknown type"},
        {"'<i3'", "an unknown type"},
        {"'f4'", "an unknown type"},
        {"'|i4'", "an unknown type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mimus__npy npy;
        char literal[256];
        snprintf(literal, sizeof literal, "{'descr': %s, 'fortran_order': False, 'shape': (3,), }",
                 cases[i].descr);
        test_ok(parse(&npy, literal));
        ck_assert_int_eq(npy.kind, MIMUS__NPY_OTHER);
        ck_assert_str_eq(mimus__npy_type_text(&npy), cases[i].type);
    }
}
END_TEST

START_TEST(unsound_literals_are_refused) {
    static const struct {
        const char *literal, *message;
    } cases[] = {
        {"", "expected '{'"},
        {"[]", "expected '{'"},
        {"{", "expected a quoted string"},
        {"{}", "no key \"descr\""},
        {"{'descr': '<f4', 'shape': (3,), }", "no key \"fortran_order\""},
        {"{'descr': '<f4', 'fortran_order': False, }", "no key \"shape\""},
        {"{'descr': '<f4', 'descr': '<f4', }", "second key \"descr\""},
        {"{'order': 'C', }", "unknown key \"order\""},
        {"{'descr' '<f4'}", "expected ':'"},
        {"{'descr': '<f4' 'shape': (3,)}", "expected ',' or '}'"},
        {"{'descr': <f4}", "expected a quoted string"},
        {"{'descr': '<f4}", "a string that ends"},
        {"{'descr': '\\x41'}", "a string that ends and has no escapes"},
        {"{'descr': [('a', '<f4')", "the end of the structure"},
        {"{'fortran_order': Falsehood}", "expected True or False"},
        {"{'fortran_order': 0}", "expected True or False"},
        {"{'shape': 3}", "expected '('"},
        {"{'shape': (3)}", "a tuple"},
        {"{'shape': (3 4)}", "expected ',' or ')'"},
        {"{'shape': (-3,)}", "expected a length"},
        {"{'shape': (3.5,)}", "expected ',' or ')'"},
        {"{'shape': (,)}", "expected a length"},
        {"{'shape': (9223372036854775808,)}", "fits 63 bits"},
        {"{'shape': (99999999999999999999999,)}", "fits 63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         "does not fit 63 bits"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2305843009213693952)}",
         "does not fit 63 bits"},
        {"{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         "more than 32 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} import os",
         "expected the end of the header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mimus__npy npy;
        test_fails(parse(&npy, cases[i].literal), MIMUS_ERR_FORMAT, cases[i].message);
        test_fails(parse(&npy, cases[i].literal), MIMUS_ERR_FORMAT, "x.npy: header: ");
    }
}
END_TEST

START_TEST(unsound_preambles_are_refused) {
    static const char literal[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}";
    uint8_t header[512];
    mimus__npy npy;
    size_t bytes = test_npy_header(header, sizeof header, literal);
    size_t length = 0;
    test_ok(mimus__npy_header_bytes(&length, header, "x.npy"));
    ck_assert_uint_eq(length, bytes);
    test_fails(mimus__npy_parse(&npy, header, bytes - 1, "x.npy"), MIMUS_ERR_FORMAT,
               "of which 127 are there");
    test_fails(mimus__npy_parse(&npy, header, 11, "x.npy"), MIMUS_ERR_FORMAT, "of 11 bytes only");
    header[6] = 4;
    test_fails(mimus__npy_parse(&npy, header, bytes, "x.npy"), MIMUS_ERR_UNSUPPORTED,
               "version 4.0");
    header[6] = 2; /* the literal's first two bytes are now part of the length */
    test_fails(mimus__npy_parse(&npy, header, bytes, "x.npy"), MIMUS_ERR_FORMAT,
               "at most 10000 are allowed");
    header[6] = 1;
    header[60] = '\0';
    test_fails(mimus__npy_parse(&npy, header, bytes, "x.npy"), MIMUS_ERR_FORMAT, "expected");
    header[0] = 'N';
    test_fails(mimus__npy_parse(&npy, header, bytes, "x.npy"), MIMUS_ERR_FORMAT,
               "not a NumPy array");
}
END_TEST

/* Every half, against arithmetic on its fields. */
START_TEST(halves_convert_exactly) {
    mimus__npy npy = {.kind = MIMUS__NPY_FLOAT, .size = 2};
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        float got;
        mimus__npy_floats(&npy, &half, 1, &got);
        unsigned exponent = half >> 10 & 31, fraction = half & 1023;
        double want = exponent == 0 ? fraction / 16777216.0
                                    : (1 + fraction / 1024.0) * pow(2, (double)exponent - 15);
        bool good = fabs((double)got) == want && (signbit(got) != 0) == half >> 15;
        if (exponent == 31)
            good = fraction != 0 ? isnan(got) != 0 : isinf(got) != 0;
        if (!good) /* an assertion for each would take a second */
            ck_abort_msg("%04x gives %g", bits, (double)got);
    }
}
END_TEST

START_TEST(labels_saturate_and_stop_at_fractions) {
    int64_t got[4];
    mimus__npy u8 = {.kind = MIMUS__NPY_UNSIGNED, .size = 8};
    const uint64_t large[2] = {UINT64_MAX, 5};
    ck_assert_uint_eq(mimus__npy_labels(&u8, large, 2, got), 2);
    ck_assert(got[0] == INT64_MAX && got[1] == 5);

    mimus__npy i1 = {.kind = MIMUS__NPY_SIGNED, .size = 1};
    ck_assert_uint_eq(mimus__npy_labels(&i1, "\xff\x80\x7f", 3, got), 3);
    ck_assert(got[0] == -1 && got[1] == -128 && got[2] == 127);

    mimus__npy b1 = {.kind = MIMUS__NPY_BOOL, .size = 1};
    ck_assert_uint_eq(mimus__npy_labels(&b1, "\0\1\2", 3, got), 3);
    ck_assert(got[0] == 0 && got[1] == 1 && got[2] == 1);

    mimus__npy f8 = {.kind = MIMUS__NPY_FLOAT, .size = 8};
    const double reals[4] = {-1, 1e300, -1e300, 0.5};
    ck_assert_uint_eq(mimus__npy_labels(&f8, reals, 4, got), 3);
    ck_assert(got[0] == -1 && got[1] == INT64_MAX && got[2] == INT64_MIN);
    const double nan_first[2] = {NAN, 0};
    ck_assert_uint_eq(mimus__npy_labels(&f8, nan_first, 2, got), 0);
}
END_TEST

START_TEST(flags_and_floats_of_any_alignment) {
    uint8_t raw[1 + 8], flag;
    const double value = -3.25;
    float number;
    mimus__npy f8 = {.kind = MIMUS__NPY_FLOAT, .size = 8};
    memcpy(raw + 1, &value, sizeof value);
    mimus__npy_floats(&f8, raw + 1, 1, &number);
    ck_assert_float_eq(number, -3.25F);
    mimus__npy_flags(&f8, raw + 1, 1, &flag);
    ck_assert_uint_eq(flag, 1);
    f8.swapped = true;
    for (size_t i = 0; i < 8; i++)
        raw[1 + i] = ((const uint8_t *)&value)[7 - i];
    mimus__npy_floats(&f8, raw + 1, 1, &number);
    ck_assert_float_eq(number, -3.25F);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("npy");
    TCase *tests = tcase_create("npy");
    tcase_add_test(tests, headers_are_understood);
    tcase_add_test(tests, other_types_are_named);
    tcase_add_test(tests, unsound_literals_are_refused);
    tcase_add_test(tests, unsound_preambles_are_refused);
    tcase_add_test(tests, halves_convert_exactly);
    tcase_add_test(tests, labels_saturate_and_stop_at_fractions);
    tcase_add_test(tests, flags_and_floats_of_any_alignment);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}

/* The self-test: passes on the device, and notices a wrong kernel of every family. */
#include "support.h"

#include "json.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { CHECKS = 19, CPU_CHECKS = 1 /* of them */ };

/* ------------------------------------------------------------------ document */

static json_t *run(const char *selector, mimus_status expected) {
    char *text = NULL;
    mimus_status status = mimus_selftest(selector, &text);
    ck_assert_msg(status == expected, "%s: %s\n%s", mimus_status_text(status), mimus_last_error(),
                  text != NULL ? text : "no document");
    ck_assert_ptr_nonnull(text);
    json_t *document = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(document);
    mimus_free(text);
    return document;
}

static const json_t *find(const json_t *document, const char *name) {
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(document, "checks"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            return row;
    }
    ck_abort_msg("no check \"%s\"", name);
    return NULL;
}

/* Those that ran and those that could not. */
static size_t checks_of(const json_t *document) {
    return json_array_size(json_object_get(document, "checks")) +
           json_array_size(json_object_get(document, "skipped"));
}

static bool passed(const json_t *row) {
    return json_is_true(json_object_get(row, "passed"));
}

START_TEST(passes_on_the_device) {
    json_t *document = run(NULL, MIMUS_OK);
    size_t i;
    const json_t *row;
    ck_assert(passed(document));
    ck_assert_uint_eq(checks_of(document), CHECKS);
    json_array_foreach(json_object_get(document, "checks"), i, row) {
        ck_assert(passed(row));
        ck_assert_ptr_null(json_object_get(row, "error"));
        ck_assert(json_number_value(json_object_get(row, "worst")) <=
                  json_number_value(json_object_get(row, "tolerance")));
    }
    const json_t *device = json_object_get(document, "device");
    ck_assert(json_string_length(json_object_get(device, "name")) > 0);
    ck_assert(json_string_length(json_object_get(device, "id")) > 0);
    json_decref(document);
}
END_TEST

START_TEST(passes_as_gpus_run_it) {
    setenv("MIMUS_GEOMETRY", "gpu", 1);
    json_t *document = run(NULL, MIMUS_OK);
    ck_assert_uint_eq(json_array_size(json_object_get(document, "checks")), CHECKS - CPU_CHECKS);
    json_decref(document);
}
END_TEST

START_TEST(needs_a_device) {
    char *text = NULL;
    test_fails(mimus_selftest("no such device", &text), MIMUS_ERR_NO_DEVICE, "no such device");
    ck_assert_ptr_null(text);
}
END_TEST

/* -------------------------------------------------------------- wrong kernels */

/* A mistake in a kernel file, and the check that must notice it first. */
static const struct {
    const char *file, *right, *wrong;
    const char *noticed;
    const char *untouched; /* a check that must still pass */
} mistakes[] = {
    {"gather.cl", "base + first + i;", "base + first;", "gather, in order", "loss"},
    {"sampler.clh", "SAMPLER_ROUNDS 6", "SAMPLER_ROUNDS 5", "gather, shuffled", "gather, in order"},
    {"shards.clh", "STORE_F16 2", "STORE_F16 0", "gather, f16", "gather, bf16"},
    {"activation.clh", "(1.0f + erf(M_SQRT1_2_F * x))",
     "(1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)))", "forward product, tile", "loss"},
    {"masked_log_softmax.clh", "weight * smoothing / count",
     "weight * smoothing / (float)(end - begin)", "loss, masks and weights", "loss"},
    {"dropout.clh", "/ (1.0f - rate)", "", "dropout", "update, sgd"},
    {"optimizer.cl", "p - lr / correction1 * m", "p - lr * m", "update, adam", "update, sgd"},
    {"block.cl", "panels + weights_at[l]", "turned + weights_at[l]", "ten steps, block plan",
     "ten steps"},
    {"gather.cl", "get_global_id", "get_nothing", "gather, in order", "loss, masks and weights"},
};

/* `source` with the first `right` as `wrong`. */
static char *mistaken(const char *source, const char *right, const char *wrong) {
    const char *at = strstr(source, right);
    ck_assert_msg(at != NULL, "the kernel no longer has \"%s\"", right);
    size_t before = (size_t)(at - source);
    char *text = calloc(strlen(source) + strlen(wrong) + 1, 1);
    memcpy(text, source, before);
    strcpy(text + before, wrong);
    strcat(text, at + strlen(right));
    return text;
}

/* As CPUs run it, so that the block plan is there; without CLBlast, which takes longest, and is not
 * ours to make mistakes in. */
START_TEST(notices_a_wrong_kernel) {
    const char *file = mistakes[_i].file, *noticed = mistakes[_i].noticed;
    setenv("MIMUS_GEOMETRY", "cpu", 1);
    setenv("MIMUS_CLBLAST", "/no/such/library", 1);
    char *source = mistaken(mimus__program_source(file), mistakes[_i].right, mistakes[_i].wrong);
    mimus__program_replace(file, source);
    json_t *document = run(NULL, MIMUS_ERR_DEVICE);
    mimus__program_replace(NULL, NULL);
    ck_assert_msg(strstr(mimus_last_error(), noticed) != NULL, "\"%s\" lacks \"%s\"",
                  mimus_last_error(), noticed);
    ck_assert(!passed(document));
    ck_assert_uint_eq(checks_of(document), CHECKS); /* none was left out for the failure */
    ck_assert_uint_eq(json_array_size(json_object_get(document, "skipped")), 3);
    ck_assert(!passed(find(document, noticed)));
    ck_assert_uint_gt(json_string_length(json_object_get(find(document, noticed), "error")), 0);
    ck_assert(passed(find(document, mistakes[_i].untouched)));
    json_decref(document);
    free(source);
}
END_TEST
int main(void) {
    Suite *suite = suite_create("selftest");
    TCase *all = tcase_create("selftest");
    tcase_set_timeout(all, 300); /* CLBlast's kernels, compiled for the first time */
    tcase_add_test(all, passes_on_the_device);
    tcase_add_test(all, passes_as_gpus_run_it);
    tcase_add_test(all, needs_a_device);
    tcase_add_loop_test(all, notices_a_wrong_kernel, 0, sizeof mistakes / sizeof *mistakes);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

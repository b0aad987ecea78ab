/* mimus_selftest: the table of checks, and the document that says what came of them. */
#include "selftest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ verdict */

static void judge(mimus__verdict *verdict, const char *what, size_t index, double difference,
                  double got, double want) {
    if (isnan(difference))
        difference = INFINITY;
    if (difference <= verdict->worst)
        return;
    verdict->worst = difference;
    if (difference > verdict->tolerance)
        snprintf(verdict->text, sizeof verdict->text, "%s: number %zu is %.9g, expected %.9g", what,
                 index, got, want);
}

void mimus__verdict_array(mimus__verdict *verdict, const char *what, const float *got,
                          const double *want, size_t n) {
    double scale = 0;
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(want[i]));
    if (scale == 0)
        scale = 1;
    for (size_t i = 0; i < n; i++)
        judge(verdict, what, i, fabs((double)got[i] - want[i]) / scale, (double)got[i], want[i]);
}

void mimus__verdict_number(mimus__verdict *verdict, const char *what, double got, double want) {
    if (isnan(got) && isnan(want))
        return;
    judge(verdict, what, 0, fabs(got - want) / (want != 0 ? fabs(want) : 1), got, want);
}

void mimus__verdict_words(mimus__verdict *verdict, const char *what, const uint32_t *got,
                          const uint32_t *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        judge(verdict, what, i, got[i] != want[i], got[i], want[i]);
}

/* ------------------------------------------------------------------- checks */

/* Differences that rounding explains, with room for a device's exp, tanh and erf. */
static const struct {
    const char *name;
    mimus__selftest_check *run;
    int variant;
    double tolerance;
} checks[] = {
    {"gather, in order", mimus__selftest_gather, 0, 1e-6},
    {"gather, shuffled", mimus__selftest_gather, 1, 1e-6},
    {"gather, f16", mimus__selftest_gather, 2, 1e-3}, /* rounding to 11 and to 8 bits */
    {"gather, bf16", mimus__selftest_gather, 3, 8e-3},
    {"naive products", mimus__selftest_naive, 0, 0},
    {"forward product, tile", mimus__selftest_product, 0, 1e-5},
    {"input gradient, tile", mimus__selftest_product, 1, 1e-5},
    {"weight gradient, tile", mimus__selftest_product, 2, 1e-5},
    {"forward product, clblast", mimus__selftest_product, 3, 1e-5},
    {"input gradient, clblast", mimus__selftest_product, 4, 1e-5},
    {"weight gradient, clblast", mimus__selftest_product, 5, 1e-5},
    {"loss", mimus__selftest_loss, 0, 1e-5},
    {"loss, masks and weights", mimus__selftest_loss, 1, 1e-5},
    {"dropout", mimus__selftest_dropout, 0, 1e-5},
    {"update, adam", mimus__selftest_optimizer, MIMUS__ADAM, 1e-5},
    {"update, adamw", mimus__selftest_optimizer, MIMUS__ADAMW, 1e-5},
    {"update, sgd", mimus__selftest_optimizer, MIMUS__SGD, 1e-5},
    {"ten steps", mimus__selftest_steps, 0, 1e-4},
    {"ten steps, block plan", mimus__selftest_steps, 1, 1e-4},
};

typedef struct report {
    json_t *checks, *skipped; /* arrays */
    const char *failed;       /* the first check that failed; NULL: none */
    char error[512];          /* and why */
} report;

/* Three digits say how far off a number is. */
static double rounded(double worst) {
    if (!(worst > 0 && worst < 1))
        return worst;
    double shift = pow(10, 2 - floor(log10(worst)));
    return round(worst * shift) / shift;
}

static mimus_status add_check(report *r, const char *name, const mimus__verdict *verdict,
                              const char *error) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object();
    MIMUS_TRY(mimus__json_set(row, "name", json_string(name)));
    MIMUS_TRY(mimus__json_set(row, "passed", json_boolean(error[0] == '\0')));
    MIMUS_TRY(mimus__json_set(row, "worst", mimus__json_number(rounded(verdict->worst))));
    MIMUS_TRY(mimus__json_set(row, "tolerance", mimus__json_number(verdict->tolerance)));
    if (error[0] != '\0')
        MIMUS_TRY(mimus__json_set(row, "error", mimus__json_lossy_string(error)));
    MIMUS_TRY(mimus__json_append(r->checks, json_incref(row)));
    if (error[0] != '\0' && r->failed == NULL) {
        r->failed = name;
        snprintf(r->error, sizeof r->error, "%s", error);
    }
out:
    json_decref(row);
    return status;
}

static mimus_status add_skipped(report *r, const char *name, const char *reason) {
    mimus_status status = MIMUS_OK;
    json_t *row = json_object();
    MIMUS_TRY(mimus__json_set(row, "name", json_string(name)));
    MIMUS_TRY(mimus__json_set(row, "reason", mimus__json_lossy_string(reason)));
    MIMUS_TRY(mimus__json_append(r->skipped, json_incref(row)));
out:
    json_decref(row);
    return status;
}

static mimus_status run_checks(report *r, mimus__device *device,
                               const mimus__selftest_sample *sample) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        mimus__verdict verdict = {.tolerance = checks[i].tolerance};
        mimus_status run = checks[i].run(device, sample, checks[i].variant, &verdict);
        if (run == MIMUS_ERR_UNSUPPORTED) {
            MIMUS_TRY(add_skipped(r, checks[i].name, mimus_last_error()));
        } else if (run != MIMUS_OK) {
            verdict.worst = NAN;
            MIMUS_TRY(add_check(r, checks[i].name, &verdict, mimus_last_error()));
        } else {
            MIMUS_TRY(add_check(r, checks[i].name, &verdict, verdict.text));
        }
    }
out:
    return status;
}

static mimus_status write_document(char **out, const report *r, const mimus__device *device) {
    mimus_status status = MIMUS_OK;
    json_t *document = json_object(), *description = NULL;
    MIMUS_TRY(mimus__device_describe(&description, mimus__device_get_info(device)));
    MIMUS_TRY(mimus__json_set(document, "device", json_incref(description)));
    MIMUS_TRY(mimus__json_set(document, "checks", json_incref(r->checks)));
    MIMUS_TRY(mimus__json_set(document, "skipped", json_incref(r->skipped)));
    MIMUS_TRY(mimus__json_set(document, "passed", json_boolean(r->failed == NULL)));
    MIMUS_TRY(mimus__json_text(out, document, JSON_INDENT(2)));
out:
    json_decref(description);
    json_decref(document);
    return status;
}

mimus_status mimus_selftest(const char *selector, char **json) {
    mimus_status status = MIMUS_OK;
    mimus__device *device = NULL;
    mimus__selftest_sample sample = {0};
    report r = {.checks = json_array(), .skipped = json_array()};
    *json = NULL;
    MIMUS_TRY(mimus__device_open(&device, selector, 0));
    MIMUS_TRY(mimus__selftest_sample_new(&sample));
    MIMUS_TRY(run_checks(&r, device, &sample));
    MIMUS_TRY(write_document(json, &r, device));
    if (r.failed != NULL)
        status = mimus__fail(MIMUS_ERR_DEVICE, "self-test of %s: %s: %s",
                             mimus__device_get_info(device)->name, r.failed, r.error);
out:
    mimus__selftest_sample_clear(&sample);
    mimus__device_close(device);
    json_decref(r.checks);
    json_decref(r.skipped);
    return status;
}

#include "bench_epochs.h"

#include "alloc.h"
#include "clock.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>

static double mean_agreement(const mimus__part_result *part, uint32_t heads) {
    double sum = 0;
    uint32_t counted = 0;
    for (uint32_t h = 0; h < heads; h++) {
        if (part->heads[h].labels > 0) {
            sum += part->heads[h].agreement;
            counted++;
        }
    }
    return counted > 0 ? sum / counted : NAN;
}

static void note(mimus__bench_epochs *out, uint32_t epoch, uint32_t heads, double seconds,
                 const mimus__epoch_result *result) {
    out->skipped += result->skipped;
    out->heldout_loss = result->heldout.loss;
    out->heldout_agreement = mean_agreement(&result->heldout, heads);
    if (epoch > 0) {
        out->settled[epoch - 1] = seconds;
        return;
    }
    out->first = seconds;
    out->steps = result->steps;
    for (uint32_t t = 0; t < result->steps && t < MIMUS__BENCH_LOSSES; t++)
        out->first_losses[t] = result->step_loss[t];
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

mimus_status mimus__bench_epochs_run(mimus__bench_epochs *out, const mimus__device *device,
                                     uint32_t epochs, uint32_t heads, mimus__bench_epoch run,
                                     void *user, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__epoch_result result;
    *out = (mimus__bench_epochs){.epochs = epochs};
    MIMUS_TRY(mimus__alloc(&out->settled, epochs - 1, sizeof *out->settled));
    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        uint64_t launches = mimus__device_launches(device), reads = mimus__device_reads(device);
        MIMUS_TRY(mimus__watch_check(watch, "between two epochs"));
        double began = mimus__clock_seconds();
        MIMUS_TRY(run(user, epoch, &result, watch));
        note(out, epoch, heads, mimus__clock_seconds() - began, &result);
        out->launches = mimus__device_launches(device) - launches;
        out->reads = mimus__device_reads(device) - reads;
    }
    qsort(out->settled, epochs - 1, sizeof *out->settled, ascending);
out:
    return status;
}

void mimus__bench_epochs_clear(mimus__bench_epochs *epochs) {
    free(epochs->settled);
    *epochs = (mimus__bench_epochs){0};
}

double mimus__bench_epochs_median(const mimus__bench_epochs *epochs) {
    uint32_t settled = epochs->epochs - 1;
    return (epochs->settled[(settled - 1) / 2] + epochs->settled[settled / 2]) / 2;
}

double mimus__bench_epochs_mean(const mimus__bench_epochs *epochs) {
    double sum = 0;
    for (uint32_t i = 0; i + 1 < epochs->epochs; i++)
        sum += epochs->settled[i];
    return sum / (epochs->epochs - 1);
}

mimus_status mimus__bench_trainer_epoch(void *trainer, uint32_t epoch, mimus__epoch_result *result,
                                        const mimus_watch *watch) {
    return mimus__trainer_epoch(trainer, epoch, result, watch);
}

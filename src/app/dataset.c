#include "dataset.h"

#include "watch.h"

static void tell_audit(const mimus__audit *audit, const mimus_watch *watch) {
    if (audit->dropped > 0)
        mimus__watch_message(watch, "left out %llu samples that cannot be trained on",
                             (unsigned long long)audit->dropped);
    if (audit->constant_senses > 0)
        mimus__watch_message(watch, "%u senses never change: the policy will ignore them",
                             audit->constant_senses);
}

mimus_status mimus__dataset_open(mimus__dataset *out, const mimus_source *source,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__dataset){0};
    MIMUS_TRY(mimus__recording_open(&out->recording, source, watch));
    MIMUS_TRY(mimus__audit_run(&out->audit, out->recording, source->illegal, watch));
    tell_audit(&out->audit, watch);
out:
    return status;
}

mimus_status mimus__dataset_split(mimus__dataset *dataset, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__split_new(&dataset->split, dataset->recording, &dataset->audit,
                               config->heldout, config->seed));
    MIMUS_TRY(
        mimus__statistics_new(&dataset->statistics, dataset->recording, &dataset->split.training));
out:
    return status;
}

void mimus__dataset_clear(mimus__dataset *dataset) {
    mimus__statistics_clear(&dataset->statistics);
    mimus__split_clear(&dataset->split);
    mimus__audit_clear(&dataset->audit);
    mimus__recording_free(dataset->recording);
    *dataset = (mimus__dataset){0};
}

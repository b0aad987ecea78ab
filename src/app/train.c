/* mimus_train and mimus_resume: a recording becomes a run folder, or a folder of many. */
#include "many.h"

#include "alloc.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------- a run alone */

static mimus_status text_of(char **out, const json_t *summary) {
    return out != NULL ? mimus__json_text(out, summary, JSON_INDENT(2)) : MIMUS_OK;
}

/* From members that are ready to the end of training. */
static mimus_status train_all(mimus__pass *pass) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__pass_prepare(pass));
    MIMUS_TRY(mimus__pass_train(pass, UINT64_MAX));
    MIMUS_TRY(mimus__pass_end(pass));
    MIMUS_TRY(mimus__pass_conclude(pass));
out:
    return status;
}

static mimus_status train_one(mimus__pass *pass, char **summary) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(train_all(pass));
    MIMUS_TRY(text_of(summary, pass->member[0].summary));
    MIMUS_TRY(mimus__member_outcome(&pass->member[0]));
out:
    return status;
}

/* ------------------------------------------------------------------------ many runs */

/* Runs that diverged are told of; that all did is a failure. */
static mimus_status outcome_of(const mimus__run *run, const mimus__pass *pass) {
    size_t diverged = 0;
    for (size_t i = 0; i < pass->members; i++) {
        const mimus__member *member = &pass->member[i];
        if (strcmp(member->ended, "diverged") != 0)
            continue;
        (void)mimus__member_outcome(member);
        mimus__watch_message(pass->watch, "%s", mimus_last_error());
        diverged++;
    }
    if (pass->stopped)
        return mimus__fail(MIMUS_ERR_STOPPED, "stopped; go on with `mimus train --resume %s`",
                           run->folder);
    if (diverged == pass->members)
        return mimus__fail(MIMUS_ERR_DIVERGED, "%s: all %zu runs diverged", run->folder,
                           pass->members);
    return MIMUS_OK;
}

static mimus_status train_many(mimus__run *run, mimus__pass *pass, uint32_t keep, char **text) {
    mimus_status status = MIMUS_OK;
    json_t *summary = NULL;
    pass->user = run;
    pass->on_epoch = mimus__many_epoch;
    MIMUS_TRY(train_all(pass));
    MIMUS_TRY(mimus__many_summary(&summary, run, pass));
    if (!pass->stopped)
        MIMUS_TRY(mimus__many_keep(run, pass, keep));
    MIMUS_TRY(text_of(text, summary));
    MIMUS_TRY(outcome_of(run, pass));
out:
    json_decref(summary);
    return status;
}

/* ----------------------------------------------------------------------- beginning */

static mimus_status begin_members(mimus__pass *pass, const mimus_source *source) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__device_open(&pass->device, pass->member[0].config->device,
                                 pass->member[0].config->memory));
    MIMUS_TRY(mimus__dataset_open(&pass->dataset, source, NULL, pass->watch));
    MIMUS_TRY(mimus__pass_open(pass));
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_begin(&pass->member[i], source));
out:
    return status;
}

/* Takes the configurations. */
static mimus_status train(const mimus_source *source, mimus__config_runs *runs, uint32_t keep,
                          const char *folder, const mimus_watch *watch, char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__pass pass = {.members = 0};
    mimus__run many = {.lock = -1};
    MIMUS_TRY(mimus__config_check(runs->config[0]));
    MIMUS_TRY(mimus__pass_new(&pass, runs->count, watch));
    for (size_t i = 0; i < runs->count; i++) {
        pass.member[i].config = runs->config[i];
        runs->config[i] = NULL;
    }
    MIMUS_TRY(pass.members == 1 ? mimus__run_create(&pass.member[0].run, folder)
                                : mimus__many_create(&many, &pass, folder));
    MIMUS_TRY(begin_members(&pass, source));
    if (pass.members == 1) {
        MIMUS_TRY(train_one(&pass, summary));
        goto out;
    }
    MIMUS_TRY(mimus__many_begin(&many, &pass, keep));
    MIMUS_TRY(train_many(&many, &pass, keep, summary));
out:
    many.fresh = many.fresh && pass.members > 0 && pass.member[0].run.fresh;
    mimus__pass_clear(&pass);
    mimus__run_close(&many);
    return status;
}

mimus_status mimus_train(const mimus_source *source, const mimus_config *config, const char *run,
                         const mimus_watch *watch, char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__config_runs runs = {0};
    MIMUS_TRY(mimus__config_check(config));
    MIMUS_TRY(mimus__config_runs_expand(&runs, config));
    MIMUS_TRY(train(source, &runs, config->keep, run, watch, summary));
out:
    mimus__config_runs_clear(&runs);
    return status;
}

mimus_status mimus_train_runs(const mimus_source *source, const mimus_config *const *configs,
                              size_t count, const char *folder, const mimus_watch *watch,
                              char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__config_runs runs = {0};
    MIMUS_TRY(mimus__config_runs_copy(&runs, configs, count));
    MIMUS_TRY(train(source, &runs, 0, folder, watch, summary));
out:
    mimus__config_runs_clear(&runs);
    return status;
}

/* ------------------------------------------------------------------------ resuming */

static mimus_status tell_finished(const mimus__member *member, const json_t *finished,
                                  char **summary) {
    mimus_status status = MIMUS_OK;
    const char *ended = json_string_value(json_object_get(finished, "ended"));
    MIMUS_TRY(text_of(summary, finished));
    if (strcmp(ended, "diverged") == 0)
        status = mimus__fail(MIMUS_ERR_DIVERGED,
                             "%s: training diverged, and all its epochs are done; start again with "
                             "a smaller --lr than %g",
                             member->run.folder, member->config->lr);
out:
    return status;
}

/* From opened folders to the beginning of training. */
static mimus_status prepare_resumed(mimus__pass *pass, const mimus_source *source) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_resume_best(&pass->member[i]));
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_resume_recording(&pass->member[i], source));
    MIMUS_TRY(mimus__pass_open(pass));
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(mimus__member_resume_share(&pass->member[i]));
out:
    return status;
}

static mimus_status resume_one(mimus__pass *pass, const char *folder, const mimus_source *source,
                               const mimus_config *config, char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__member *member = &pass->member[0];
    json_t *finished = NULL;
    MIMUS_TRY(mimus__run_open(&member->run, folder));
    MIMUS_TRY(mimus__member_resume(member, config));
    if (mimus__member_is_done(member))
        MIMUS_TRY(mimus__member_finished(&finished, member));
    if (finished != NULL) {
        MIMUS_TRY(mimus__member_keep_config(member));
        MIMUS_TRY(tell_finished(member, finished, summary));
        goto out;
    }
    MIMUS_TRY(prepare_resumed(pass, source));
    MIMUS_TRY(train_one(pass, summary));
out:
    json_decref(finished);
    return status;
}

/* Settings of the whole, which stand for as many runs as there are, those that were not kept
 * included. */
static mimus_status resume_settings(mimus__pass *pass, const char *folder, const size_t *places,
                                    const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    mimus__config_runs runs = {0};
    json_t *names = NULL;
    if (config != NULL) {
        MIMUS_TRY(mimus__many_names(&names, folder, false));
        MIMUS_TRY(mimus__config_runs_expand(&runs, config));
        if (runs.count != json_array_size(names)) {
            status = mimus__fail(MIMUS_ERR_ARGUMENT,
                                 "%s: the settings stand for %zu runs, and there are %zu", folder,
                                 runs.count, json_array_size(names));
            goto out;
        }
    }
    for (size_t i = 0; i < pass->members; i++)
        MIMUS_TRY(
            mimus__member_resume(&pass->member[i], config != NULL ? runs.config[places[i]] : NULL));
out:
    json_decref(names);
    mimus__config_runs_clear(&runs);
    return status;
}

static bool all_done(const mimus__pass *pass) {
    for (size_t i = 0; i < pass->members; i++) {
        if (!mimus__member_is_done(&pass->member[i]))
            return false;
    }
    return true;
}

/* The summary of runs that are all done, with nothing done by this process; `*out` = NULL where a
 * kill kept it from being written. */
static mimus_status finished_many(json_t **out, const mimus__run *run) {
    static const char *const keys[] = {"epochs_run", "reads", "launches", "seconds"};
    mimus_status status = MIMUS_OK;
    json_t *summary = NULL;
    char *path = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__run_path(&path, run, "summary.json"));
    if (mimus__json_read(&summary, path) != MIMUS_OK ||
        strcmp(json_is_string(json_object_get(summary, "ended"))
                   ? json_string_value(json_object_get(summary, "ended"))
                   : "stopped on request",
               "stopped on request") == 0)
        goto out;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        MIMUS_TRY(mimus__json_set(summary, keys[i], json_integer(0)));
    *out = json_incref(summary);
out:
    free(path);
    json_decref(summary);
    return status;
}

/* What config.json says of keep; one that cannot be read says nothing, and all are kept. */
static uint32_t kept_before(const mimus__run *run) {
    mimus_config *config = NULL;
    char *path = NULL;
    uint32_t keep = 0;
    if (mimus_config_new(&config) == MIMUS_OK &&
        mimus__run_path(&path, run, "config.json") == MIMUS_OK &&
        mimus_config_load(config, path) == MIMUS_OK)
        keep = config->keep;
    free(path);
    mimus_config_free(config);
    return keep;
}

static mimus_status resume_many(mimus__pass *pass, const char *folder, const mimus_source *source,
                                const mimus_config *config, const mimus_watch *watch,
                                char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__run run = {.lock = -1};
    size_t *places = NULL;
    json_t *finished = NULL;
    MIMUS_TRY(mimus__many_open(&run, pass, watch, &places, folder));
    MIMUS_TRY(resume_settings(pass, folder, places, config));
    if (all_done(pass))
        MIMUS_TRY(finished_many(&finished, &run));
    if (finished != NULL) {
        MIMUS_TRY(text_of(summary, finished));
        goto out;
    }
    MIMUS_TRY(prepare_resumed(pass, source));
    uint32_t keep = config != NULL ? config->keep : kept_before(&run);
    MIMUS_TRY(mimus__many_resume(&run, pass, keep));
    MIMUS_TRY(train_many(&run, pass, keep, summary));
out:
    free(places);
    json_decref(finished);
    mimus__run_close(&run);
    return status;
}

mimus_status mimus_resume(const char *run, const mimus_source *source, const mimus_config *config,
                          const mimus_watch *watch, char **summary) {
    mimus_status status = MIMUS_OK;
    mimus__pass pass = {.members = 0};
    if (mimus__many_is(run)) {
        status = resume_many(&pass, run, source, config, watch, summary);
        goto out;
    }
    MIMUS_TRY(mimus__pass_new(&pass, 1, watch));
    MIMUS_TRY(resume_one(&pass, run, source, config, summary));
out:
    mimus__pass_clear(&pass);
    return status;
}

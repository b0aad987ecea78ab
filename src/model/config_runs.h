/* config_runs - the runs of one pass: what a configuration with lists stands for, and in what they
 * may differ.
 *
 * They agree in all that decides kernels, buffers and rows, and differ in what the table of
 * settings (config.c) marks: seed, learning rate and schedule, regularisation, weights, the fold
 * that is held out. Each is a whole configuration that trains the same alone. */
#ifndef MIMUS_MODEL_CONFIG_RUNS_H
#define MIMUS_MODEL_CONFIG_RUNS_H

#include "config.h"

typedef struct mimus__config_runs {
    mimus_config **config; /* (count) without lists */
    size_t count;
} mimus__config_runs;

/* The runs that the lists, `runs` and `folds` of a configuration stand for: value by value, or with
 * `grid` all combinations, the last setting of the table fastest. With share_batches they take the
 * first one's order. MIMUS_ERR_ARGUMENT when lists differ in length. Clear it either way. */
mimus_status mimus__config_runs_expand(mimus__config_runs *out, const mimus_config *config);

/* Copies of `count` configurations, none of which stands for several itself. */
mimus_status mimus__config_runs_copy(mimus__config_runs *out, const mimus_config *const *configs,
                                     size_t count);
/* Both leave runs that are split by one seed, the first one's, where they had none of their own;
 * MIMUS_ERR_ARGUMENT names the setting in which runs differ that may not. */

void mimus__config_runs_clear(mimus__config_runs *runs);

/* MIMUS_ERR_ARGUMENT names the first setting in which they differ and may not. */
mimus_status mimus__config_runs_agree(const mimus_config *const *configs, size_t count);

/* The names of the settings in which they differ, in the table's order: a JSON array. */
mimus_status mimus__config_runs_differences(json_t **out, const mimus_config *const *configs,
                                            size_t count);

#endif

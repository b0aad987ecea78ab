/* config - the settings of a training run, in one table that the command line, the JSON file, the
 * help text and the checks are made from. */
#ifndef MIMUS_MODEL_CONFIG_H
#define MIMUS_MODEL_CONFIG_H

#include "model.h"

typedef enum mimus__optimizer_kind { MIMUS__ADAM, MIMUS__ADAMW, MIMUS__SGD } mimus__optimizer_kind;
typedef enum mimus__schedule { MIMUS__CONSTANT, MIMUS__COSINE, MIMUS__LINEAR } mimus__schedule;
typedef enum mimus__class_weights {
    MIMUS__CLASS_NONE,
    MIMUS__CLASS_BALANCED, /* count(head) / (actions(head) * count(action)), as scikit-learn */
} mimus__class_weights;
typedef enum mimus__gemm_kind {
    MIMUS__GEMM_AUTO,
    MIMUS__GEMM_CLBLAST,
    MIMUS__GEMM_TILE
} mimus__gemm_kind;

typedef enum mimus__plan { MIMUS__PLAN_AUTO, MIMUS__PLAN_PHASED, MIMUS__PLAN_BLOCK } mimus__plan;

/* How senses lie on the device (host/ops/store.h). */
typedef enum mimus__store_form {
    MIMUS__STORE_AUTO, /* f32, or f16 where only that fits */
    MIMUS__STORE_F32,
    MIMUS__STORE_F16,
    MIMUS__STORE_BF16
} mimus__store_form;

/* Names in the JSON file and on the command line are these, with "-" for "_" on the latter;
 * config.c's table holds the defaults and ranges. */
struct mimus_config {
    uint32_t hidden[MIMUS__MAX_LAYERS - 1]; /* (hidden_layers); none: a linear policy */
    uint32_t hidden_layers;
    mimus__activation activation;
    uint32_t stack;
    uint32_t epochs;
    uint32_t batch;
    double lr;
    mimus__optimizer_kind optimizer;
    double beta1, beta2, epsilon; /* beta1 is sgd's momentum too (Nesterov off) */
    double weight_decay;          /* adam, sgd: into the gradient; adamw: decoupled
                                     (Loshchilov, Hutter 2019) */
    double clip;                  /* global norm; 0 = off */
    mimus__schedule schedule;
    double warmup;          /* epochs (a fraction counts) of linear warm-up */
    double label_smoothing; /* spread over the legal actions */
    double dropout;         /* after every hidden activation */
    mimus__class_weights class_weights;
    double *head_weights; /* (head_weight_count), or NULL: all 1 */
    uint32_t head_weight_count;
    double heldout;      /* "held_out": fraction */
    uint64_t seed;       /* below 2^63, as a JSON integer is */
    uint64_t split_seed; /* MIMUS__SEED_OWN: seed; draws what is held out, and the folds */
    uint64_t order_seed; /* MIMUS__SEED_OWN: seed; the order of every epoch */
    uint32_t folds;      /* that the recording is cut into, by episode; 0: held_out counts */
    uint32_t fold;       /* which of them is held out, from 1; 0: each, in a run of its own */
    uint32_t bootstrap;  /* 1: training episodes drawn with replacement, by seed */
    uint32_t patience;   /* epochs without a better held-out loss; 0 = no early stopping */
    char *device;        /* "" = the default choice */
    mimus__plan plan;
    mimus__gemm_kind gemm;
    mimus__store_form store;
    uint64_t memory;      /* bytes; 0 = 80% of the device's */
    uint64_t shard;       /* bytes; 0 = as large as the device allows */
    uint32_t tensorboard; /* 1: event files in the run folder */

    /* what makes many runs of one configuration (config_runs.h); a single run has defaults */
    uint32_t runs;          /* seeds seed, seed + 1, ... */
    uint32_t grid;          /* 1: every value of a list with every value of the others */
    uint32_t share_batches; /* 1: the first run's order for all */
    uint32_t keep;          /* "best:N": the runs whose checkpoints stay; 0: all */
    json_t *lists;          /* {setting: [values of the runs]}; the member has the first */
};

/* Each has a lock, which a process can have about a thousand of. */
enum { MIMUS__MAX_RUNS = 512 };

/* Of split_seed and order_seed: the run's own seed. */
#define MIMUS__SEED_OWN UINT64_MAX

uint64_t mimus__config_split_seed(const mimus_config *config);
uint64_t mimus__config_order_seed(const mimus_config *config);

/* The learning rate's factor at `step` (from 0) of `steps` in all, warm-up included; in (0, 1].
 * Cosine and linear end at 0 after the last step: Loshchilov and Hutter 2017, eq. 5. */
double mimus__config_rate(const mimus_config *config, uint64_t step, uint64_t steps,
                          uint64_t steps_per_epoch);

mimus_status mimus__config_to_json(json_t **out, const mimus_config *config);
/* Set what the object names; unknown names and bad values are MIMUS_ERR_ARGUMENT. */
mimus_status mimus__config_from_json(mimus_config *config, const json_t *json, const char *where);
/* A deep copy. */
mimus_status mimus__config_copy(mimus_config **out, const mimus_config *config);

/* MIMUS_ERR_ARGUMENT where one setting leaves another nothing to say. */
mimus_status mimus__config_check(const mimus_config *config);

/* The network's shape for a schema, checked (mimus__shape_check); MIMUS_ERR_ARGUMENT when
 * head_weights has another number of weights than the schema has heads. */
mimus_status mimus__config_shape(mimus__shape *out, const mimus_config *config,
                                 const mimus_schema *schema);

#endif

/* model - a network's shape and numbers on the host, and the safetensors checkpoint that keeps
 * them.
 *
 * Layer l maps width[l] inputs to width[l+1] outputs; width[0] = S * stack, width[L] = A. The
 * network sees x = (senses - mean) * scale, the newest of the stacked samples last. All parameters
 * of a run lie in one array of P floats: for each layer the weights, row-major (in, out), then the
 * biases (out). Moments use the same order. */
#ifndef MIMUS_MODEL_MODEL_H
#define MIMUS_MODEL_MODEL_H

#include "schema.h"

#include <stdio.h>

typedef enum mimus__activation {
    MIMUS__IDENTITY,
    MIMUS__RELU,
    MIMUS__TANH,
    MIMUS__GELU, /* x * Phi(x) with the error function: Hendrycks and Gimpel 2016, eq. 1 */
} mimus__activation;

const char *mimus__activation_name(mimus__activation activation);
bool mimus__activation_parse(const char *name, mimus__activation *out);

enum { MIMUS__MAX_LAYERS = 16 };

typedef struct mimus__shape {
    uint32_t senses; /* S of one sample */
    uint32_t stack;  /* K >= 1 samples seen at once */
    uint32_t layers; /* L */
    uint32_t width[MIMUS__MAX_LAYERS + 1];
    mimus__activation activation; /* of every layer but the last */
} mimus__shape;

/* What a checkpoint may hold; checked before anything is allocated. */
enum { MIMUS__MAX_PARAMETERS = 1 << 28 };

/* Refuse (MIMUS_ERR_UNSUPPORTED) a shape without layers, with a width of 0, whose ends are not
 * S * K and A of `schema`, or with more than MIMUS__MAX_PARAMETERS. */
mimus_status mimus__shape_check(const mimus__shape *shape, const mimus_schema *schema);

/* {"senses", "stack", "width", "activation"}, as checkpoints have it (docs/run.md). */
mimus_status mimus__shape_to_json(json_t **out, const mimus__shape *shape);

/* P. */
size_t mimus__shape_parameters(const mimus__shape *shape);
/* Where layer l's weights and biases begin in the P parameters. */
size_t mimus__shape_weight_offset(const mimus__shape *shape, uint32_t layer);
size_t mimus__shape_bias_offset(const mimus__shape *shape, uint32_t layer);

/* What training needs beyond the weights, to go on bit for bit. */
typedef struct mimus__training_state {
    uint64_t epoch;                 /* finished epochs */
    uint64_t step;                  /* steps taken, skipped ones included */
    float *moment1;                 /* (P), or NULL where the optimizer has none */
    float *moment2;                 /* (P), or NULL */
    float correction1, correction2; /* 1 - beta^t of the updates that were applied */
    double best;                    /* best held-out loss, +inf before */
    uint64_t best_epoch;            /* 0 before */
    uint64_t stale;                 /* epochs since, for early stopping */
} mimus__training_state;

typedef struct mimus__model {
    mimus_schema *schema;
    mimus__shape shape;
    float *mean;                  /* (S) */
    float *scale;                 /* (S) 1 / std; 0 for a sense that was constant in training */
    float *parameters;            /* (P) */
    json_t *config;               /* the resolved configuration of the run, an object */
    json_t *facts;                /* epoch, metrics and whatever else is worth keeping, an object */
    mimus__training_state *state; /* NULL in a checkpoint for use only */
} mimus__model;

/* Zeroed arrays for `shape`; `schema` is copied. config and facts are empty objects. The state has
 * best = +inf and both moments: free and NULL those that the optimizer lacks. */
mimus_status mimus__model_new(mimus__model **out, const mimus_schema *schema,
                              const mimus__shape *shape, bool with_state);
void mimus__model_free(mimus__model *model);

/* Initialise parameters: He (relu, gelu) or Glorot (tanh, last layer) uniform, zero biases, from
 * Philox (seed, stream): He et al. 2015 eq. 10, Glorot and Bengio 2010 eq. 16. The last layer's
 * bound is divided by 10, for a nearly uniform first policy. */
void mimus__model_initialise(const mimus__shape *shape, float *parameters, uint64_t seed,
                             uint64_t stream);

/* Write atomically; MIMUS_ERR_DATA when a number is not finite. Tensors: layers.<l>.weight (out,
 * in) and layers.<l>.bias (out) as PyTorch's nn.Linear keeps them; mean, scale (S);
 * moment1.layers.<l>.weight ... when there is state.
 * __metadata__: format "mimus-checkpoint", version, schema, shape, config, facts, state: JSON
 * texts. */
mimus_status mimus__model_save(const mimus__model *model, const char *path);
/* The same into a stream, whose error flag tells of a failed write. */
mimus_status mimus__model_write(FILE *stream, const mimus__model *model);

/* Read and verify everything: header size, tensor bounds, shapes against the schema, finite
 * numbers. MIMUS_ERR_FORMAT names file and tensor. */
mimus_status mimus__model_load(mimus__model **out, const char *path);
/* The same from memory; `where` names it in messages. */
mimus_status mimus__model_decode(mimus__model **out, const void *bytes, size_t size,
                                 const char *where);

/* The checkpoint a user means: a file itself, or a run folder's <which>.safetensors ("best",
 * "last"; best falls back to last). `*out` is a path, free with free(). */
mimus_status mimus__model_find(char **out, const char *path, const char *which);

#endif

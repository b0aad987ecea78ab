/* policy - the network in the game. Agents own all scratch, so that a decision allocates nothing
 * and a policy can be shared between threads. */
#include "policy.h"

#include "alloc.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of weights are padded to whole vectors: gcc vectorises a loop at -O2 only when it can see
 * that nothing is left over. */
enum { LANES = 16 };

struct mimus_policy {
    mimus_schema *schema;
    mimus__shape shape;
    float *mean, *scale;             /* (S) */
    float *layer[MIMUS__MAX_LAYERS]; /* (1 + in, padded out): the biases, then the weights */
    size_t widest;                   /* of all layers' inputs and padded outputs */
};

struct mimus_agent {
    const mimus_policy *policy;
    mimus__rng rng;
    bool begun;     /* the episode has a sample */
    float *stack;   /* (K, S) raw senses, the newest last */
    float *scratch; /* (2, widest) */
};

/* ----------------------------------------------------------------- network */

static size_t vectors_of(uint32_t width) {
    return ((size_t)width + LANES - 1) / LANES;
}

/* y = x W + b: an axpy an input, so that the inner loop runs along the outputs; four inputs at a
 * time, so that y is loaded and stored a quarter as often. */
static void dense(const float *restrict x, uint32_t in, const float *restrict layer,
                  float *restrict y, size_t vectors) {
    size_t out = vectors * LANES;
    const float *weight = layer + out;
    uint32_t i = 0;
    memcpy(y, layer, out * sizeof *y);
    for (; i + 4 <= in; i += 4, weight += 4 * out) {
        const float *w0 = weight, *w1 = w0 + out, *w2 = w1 + out, *w3 = w2 + out;
        float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        for (size_t o = 0; o < out; o++)
            y[o] = y[o] + x0 * w0[o] + x1 * w1[o] + x2 * w2[o] + x3 * w3[o];
    }
    for (; i < in; i++, weight += out) {
        for (size_t o = 0; o < out; o++)
            y[o] += x[i] * weight[o];
    }
}

static void activate(mimus__activation activation, float *y, uint32_t count) {
    const float root_half = 0.70710678f;
    switch (activation) {
    case MIMUS__IDENTITY:
        return;
    case MIMUS__RELU:
        for (uint32_t i = 0; i < count; i++)
            y[i] = y[i] < 0 ? 0 : y[i]; /* a NaN stays one */
        return;
    case MIMUS__TANH:
        for (uint32_t i = 0; i < count; i++)
            y[i] = tanhf(y[i]);
        return;
    case MIMUS__GELU:
        for (uint32_t i = 0; i < count; i++)
            y[i] = 0.5f * y[i] * (1 + erff(y[i] * root_half));
        return;
    }
}

/* The logits of stacked raw senses (K, S), in one half of `scratch` (2, widest). */
static const float *forward(const mimus_policy *policy, const float *stacked, float *scratch) {
    const mimus__shape *shape = &policy->shape;
    float *x = scratch, *y = scratch + policy->widest;
    for (uint32_t k = 0; k < shape->stack; k++) {
        const float *senses = stacked + (size_t)k * shape->senses;
        float *normalised = x + (size_t)k * shape->senses;
        for (uint32_t s = 0; s < shape->senses; s++)
            normalised[s] = (senses[s] - policy->mean[s]) * policy->scale[s];
    }
    for (uint32_t l = 0; l < shape->layers; l++) {
        dense(x, shape->width[l], policy->layer[l], y, vectors_of(shape->width[l + 1]));
        if (l + 1 < shape->layers)
            activate(shape->activation, y, shape->width[l + 1]);
        float *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

mimus_status mimus__policy_logits(const mimus_policy *policy, size_t n, const float *x,
                                  float *logits) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &policy->shape;
    size_t inputs = shape->width[0], outputs = shape->width[shape->layers];
    float *scratch = NULL;
    MIMUS_TRY(mimus__alloc(&scratch, 2 * policy->widest, sizeof *scratch));
    for (size_t i = 0; i < n; i++)
        memcpy(logits + i * outputs, forward(policy, x + i * inputs, scratch),
               outputs * sizeof *logits);
out:
    free(scratch);
    return status;
}

/* ------------------------------------------------------------------ policy */

static mimus_status pad_layer(float **out, const mimus__model *model, uint32_t layer) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    uint32_t rows = shape->width[layer], columns = shape->width[layer + 1];
    const float *weight = model->parameters + mimus__shape_weight_offset(shape, layer);
    const float *bias = model->parameters + mimus__shape_bias_offset(shape, layer);
    size_t padded = vectors_of(columns) * LANES;
    MIMUS_TRY(mimus__alloc(out, ((size_t)rows + 1) * padded, sizeof **out));
    memcpy(*out, bias, columns * sizeof **out);
    for (size_t row = 0; row < rows; row++)
        memcpy(*out + (row + 1) * padded, weight + row * columns, columns * sizeof **out);
out:
    return status;
}

static mimus_status copy_floats(float **out, const float *source, size_t count) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, count, sizeof **out));
    memcpy(*out, source, count * sizeof **out);
out:
    return status;
}

mimus_status mimus__policy_new(mimus_policy **out, const mimus__model *model) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    mimus_policy *policy = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&policy, 1, sizeof *policy));
    policy->shape = *shape;
    policy->widest = shape->width[0];
    MIMUS_TRY(mimus__schema_copy(&policy->schema, model->schema));
    MIMUS_TRY(copy_floats(&policy->mean, model->mean, shape->senses));
    MIMUS_TRY(copy_floats(&policy->scale, model->scale, shape->senses));
    for (uint32_t l = 0; l < shape->layers; l++) {
        size_t padded = vectors_of(shape->width[l + 1]) * LANES;
        policy->widest = padded > policy->widest ? padded : policy->widest;
        MIMUS_TRY(pad_layer(&policy->layer[l], model, l));
    }
    *out = policy;
    policy = NULL;
out:
    mimus_policy_free(policy);
    return status;
}

mimus_status mimus_policy_load(mimus_policy **out, const char *path) {
    mimus_status status = MIMUS_OK;
    mimus__model *model = NULL;
    char *file = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__model_find(&file, path, "best"));
    MIMUS_TRY(mimus__model_load(&model, file));
    MIMUS_TRY(mimus__policy_new(out, model));
out:
    mimus__model_free(model);
    free(file);
    return status;
}

void mimus_policy_free(mimus_policy *policy) {
    if (policy == NULL)
        return;
    for (uint32_t l = 0; l < MIMUS__MAX_LAYERS; l++)
        free(policy->layer[l]);
    free(policy->scale);
    free(policy->mean);
    mimus__schema_free(policy->schema);
    free(policy);
}

const mimus_schema *mimus_policy_schema(const mimus_policy *policy) {
    return policy->schema;
}

/* ------------------------------------------------------------------- agent */

mimus_status mimus_agent_new(mimus_agent **out, const mimus_policy *policy, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus_agent *agent = NULL;
    *out = NULL;
    if (policy == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "no policy: mimus_policy_load did not give one");
    MIMUS_TRY(mimus__alloc(&agent, 1, sizeof *agent));
    agent->policy = policy;
    agent->rng.seed = seed;
    MIMUS_TRY(mimus__alloc(&agent->stack, policy->shape.width[0], sizeof(float)));
    MIMUS_TRY(mimus__alloc(&agent->scratch, 2 * policy->widest, sizeof(float)));
    *out = agent;
    agent = NULL;
out:
    mimus_agent_free(agent);
    return status;
}

void mimus_agent_free(mimus_agent *agent) {
    if (agent == NULL)
        return;
    free(agent->stack);
    free(agent->scratch);
    free(agent);
}

void mimus_agent_reset(mimus_agent *agent) {
    if (agent != NULL)
        agent->begun = false;
}

/* A game that goes on after a failed load must not die of it. */
static mimus_status no_agent(void) {
    return mimus__fail(MIMUS_ERR_ARGUMENT, "no agent: mimus_agent_new did not give one");
}

static mimus_status check_senses(const mimus_schema *schema, const float *senses) {
    for (uint32_t s = 0; s < schema->senses; s++) {
        if (!isfinite(senses[s]))
            return mimus__fail(MIMUS_ERR_DATA, "sense %u (%s) is %g, expected a finite number", s,
                               schema->sense_names != NULL ? schema->sense_names[s] : "unnamed",
                               (double)senses[s]);
    }
    return MIMUS_OK;
}

/* The first sample of an episode fills the whole stack. */
static void push(mimus_agent *agent, const float *senses) {
    const mimus__shape *shape = &agent->policy->shape;
    size_t frame = shape->senses;
    if (agent->begun)
        memmove(agent->stack, agent->stack + frame, (shape->stack - 1) * frame * sizeof(float));
    for (uint32_t k = agent->begun ? shape->stack - 1 : 0; k < shape->stack; k++)
        memcpy(agent->stack + k * frame, senses, frame * sizeof(float));
    agent->begun = true;
}

/* Take in a sample and give its logits (A), in the agent's scratch. */
static mimus_status step(mimus_agent *agent, const float *senses, const float **logits) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &agent->policy->shape;
    MIMUS_TRY(check_senses(agent->policy->schema, senses));
    push(agent, senses);
    *logits = forward(agent->policy, agent->stack, agent->scratch);
    for (uint32_t a = 0; a < shape->width[shape->layers]; a++) {
        if (!isfinite((*logits)[a]))
            return mimus__fail(MIMUS_ERR_DATA,
                               "the logit of action %u is %g: the senses are far from what the "
                               "policy was trained on",
                               a, (double)(*logits)[a]);
    }
out:
    return status;
}

/* ----------------------------------------------------------------- actions */

static bool is_legal(const uint8_t *legal, uint32_t action) {
    return legal == NULL || legal[action] != 0;
}

/* The lowest of the most probable legal actions, or MIMUS_NO_LABEL. */
static uint16_t best_action(const float *logits, const uint8_t *legal, uint32_t actions) {
    uint32_t best = MIMUS_NO_LABEL;
    for (uint32_t a = 0; a < actions; a++) {
        if (is_legal(legal, a) && (best == MIMUS_NO_LABEL || logits[a] > logits[best]))
            best = a;
    }
    return (uint16_t)best;
}

/* exp(logit - the largest), up to the softmax's common factor; `best` is the largest's place. */
static double weight_of(const float *logits, uint32_t action, uint32_t best) {
    return exp((double)logits[action] - (double)logits[best]);
}

/* The sum of the legal actions' weights; 1 or more. */
static double total_weight(const float *logits, const uint8_t *legal, uint32_t actions,
                           uint32_t best) {
    double total = 0;
    for (uint32_t a = 0; a < actions; a++) {
        if (is_legal(legal, a))
            total += weight_of(logits, a, best);
    }
    return total;
}

static uint16_t drawn_action(const float *logits, const uint8_t *legal, uint32_t actions,
                             mimus__rng *rng) {
    uint16_t best = best_action(logits, legal, actions);
    if (best == MIMUS_NO_LABEL)
        return best;
    double left = mimus__rng_uniform(rng) * total_weight(logits, legal, actions, best);
    for (uint32_t a = 0; a < actions; a++) {
        if (!is_legal(legal, a))
            continue;
        left -= weight_of(logits, a, best);
        if (left < 0)
            return (uint16_t)a;
    }
    return best; /* rounding left nothing for the last one */
}

/* The best actions, or with `rng` drawn ones. */
static mimus_status decide(mimus_agent *agent, const float *senses, const uint8_t *legal,
                           mimus__rng *rng, uint16_t *actions) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = agent->policy->schema;
    const float *logits;
    MIMUS_TRY(step(agent, senses, &logits));
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t count = schema->head[h].actions;
        actions[h] = rng != NULL ? drawn_action(logits, legal, count, rng)
                                 : best_action(logits, legal, count);
        logits += count;
        legal = legal != NULL ? legal + count : NULL;
    }
out:
    return status;
}

mimus_status mimus_agent_act(mimus_agent *agent, const float *senses, const uint8_t *legal,
                             uint16_t *actions) {
    if (agent == NULL)
        return no_agent();
    return decide(agent, senses, legal, NULL, actions);
}

mimus_status mimus_agent_sample(mimus_agent *agent, const float *senses, const uint8_t *legal,
                                uint16_t *actions) {
    if (agent == NULL)
        return no_agent();
    return decide(agent, senses, legal, &agent->rng, actions);
}

static void fill_probabilities(const float *logits, const uint8_t *legal, uint32_t actions,
                               float *probabilities) {
    uint16_t best = best_action(logits, legal, actions);
    double total = best != MIMUS_NO_LABEL ? total_weight(logits, legal, actions, best) : 0;
    for (uint32_t a = 0; a < actions; a++)
        probabilities[a] = is_legal(legal, a) ? (float)(weight_of(logits, a, best) / total) : 0;
}

mimus_status mimus_agent_probabilities(mimus_agent *agent, const float *senses,
                                       const uint8_t *legal, float *probabilities) {
    mimus_status status = MIMUS_OK;
    const float *logits;
    if (agent == NULL)
        return no_agent();
    const mimus_schema *schema = agent->policy->schema;
    MIMUS_TRY(step(agent, senses, &logits));
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t count = schema->head[h].actions;
        fill_probabilities(logits, legal, count, probabilities);
        logits += count;
        probabilities += count;
        legal = legal != NULL ? legal + count : NULL;
    }
out:
    return status;
}

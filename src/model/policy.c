/* policy - the network in the game. Agents own all scratch, so that a decision allocates nothing
 * and a policy can be shared between threads. */
#include "policy.h"

#include "alloc.h"
#include "dense.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mimus_policy {
    mimus_schema *schema;
    mimus__shape shape;
    mimus__dense *dense;             /* the best for this processor */
    float *mean, *scale;             /* (S) */
    float *layer[MIMUS__MAX_LAYERS]; /* panels (dense.h) */
    size_t widest;                   /* of all layers' inputs and padded outputs */
};

struct mimus_agent {
    const mimus_policy *policy;
    mimus__rng rng;
    bool begun;     /* the episode has a sample */
    float *stack;   /* (K, S) raw senses, the newest last */
    float *scratch; /* (2, widest) */
};

/* As many rows as are computed at once. */
enum { ROWS = MIMUS__DENSE_ROWS };

/* Where rows are, each by itself: an agent's senses and scratch are its own. */
typedef struct rows {
    uint32_t count;            /* 1 to ROWS */
    const float *senses[ROWS]; /* (K, S) raw, stacked */
    float *scratch[ROWS];      /* (2, widest) */
    const float *logits[ROWS]; /* (A) what comes out, in the scratch */
} rows;

struct mimus_batch {
    const mimus_policy *policy;
    mimus__rng rng;
    float *scratch; /* (ROWS, 2, widest) */
};

/* ----------------------------------------------------------------- network */

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

static void normalise(const mimus_policy *policy, const float *stacked, float *x) {
    const mimus__shape *shape = &policy->shape;
    for (uint32_t k = 0; k < shape->stack; k++) {
        const float *senses = stacked + (size_t)k * shape->senses;
        float *normalised = x + (size_t)k * shape->senses;
        for (uint32_t s = 0; s < shape->senses; s++)
            normalised[s] = (senses[s] - policy->mean[s]) * policy->scale[s];
    }
}

/* The logits of some rows of stacked raw senses. */
static void forward(const mimus_policy *policy, rows *all) {
    const mimus__shape *shape = &policy->shape;
    const float *x[ROWS];
    float *y[ROWS];
    for (uint32_t r = 0; r < all->count; r++) {
        normalise(policy, all->senses[r], all->scratch[r]);
        x[r] = all->scratch[r];
        y[r] = all->scratch[r] + policy->widest;
    }
    for (uint32_t l = 0; l < shape->layers; l++) {
        policy->dense(all->count, x, shape->width[l], policy->layer[l], y,
                      mimus__dense_panels(shape->width[l + 1]));
        for (uint32_t r = 0; r < all->count; r++) {
            if (l + 1 < shape->layers)
                activate(shape->activation, y[r], shape->width[l + 1]);
            x[r] = y[r];
            y[r] = x[r] == all->scratch[r] ? all->scratch[r] + policy->widest : all->scratch[r];
        }
    }
    for (uint32_t r = 0; r < all->count; r++)
        all->logits[r] = x[r];
}

/* Rows of an array (n, K * S), from `first` on, with scratch (ROWS, 2, widest). */
static rows rows_of(const mimus_policy *policy, const float *senses, size_t first, size_t n,
                    float *scratch) {
    rows all = {.count = n - first < ROWS ? (uint32_t)(n - first) : ROWS};
    for (uint32_t r = 0; r < all.count; r++) {
        all.senses[r] = senses + (first + r) * policy->shape.width[0];
        all.scratch[r] = scratch + (size_t)r * 2 * policy->widest;
    }
    return all;
}

mimus_status mimus__policy_logits(const mimus_policy *policy, size_t n, const float *x,
                                  float *logits) {
    mimus_status status = MIMUS_OK;
    size_t outputs = policy->shape.width[policy->shape.layers];
    float *scratch = NULL;
    MIMUS_TRY(mimus__alloc(&scratch, (size_t)ROWS * 2 * policy->widest, sizeof *scratch));
    for (size_t first = 0; first < n; first += ROWS) {
        rows all = rows_of(policy, x, first, n, scratch);
        forward(policy, &all);
        for (uint32_t r = 0; r < all.count; r++)
            memcpy(logits + (first + r) * outputs, all.logits[r], outputs * sizeof *logits);
    }
out:
    free(scratch);
    return status;
}

/* ------------------------------------------------------------------ policy */

static mimus_status copy_floats(float **out, const float *source, size_t count) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, count, sizeof **out));
    memcpy(*out, source, count * sizeof **out);
out:
    return status;
}

static mimus_status pack_layer(mimus_policy *policy, const mimus__model *model, uint32_t layer) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &model->shape;
    uint32_t in = shape->width[layer], outputs = shape->width[layer + 1];
    size_t padded = mimus__dense_panels(outputs) * MIMUS__DENSE_PANEL;
    policy->widest = padded > policy->widest ? padded : policy->widest;
    MIMUS_TRY(mimus__alloc(&policy->layer[layer], mimus__dense_size(in, outputs), sizeof(float)));
    mimus__dense_pack(policy->layer[layer],
                      model->parameters + mimus__shape_weight_offset(shape, layer),
                      model->parameters + mimus__shape_bias_offset(shape, layer), in, outputs);
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
    policy->dense = mimus__dense_best();
    policy->widest = shape->width[0];
    MIMUS_TRY(mimus__schema_copy(&policy->schema, model->schema));
    MIMUS_TRY(copy_floats(&policy->mean, model->mean, shape->senses));
    MIMUS_TRY(copy_floats(&policy->scale, model->scale, shape->senses));
    for (uint32_t l = 0; l < shape->layers; l++)
        MIMUS_TRY(pack_layer(policy, model, l));
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

uint32_t mimus_policy_stack(const mimus_policy *policy) {
    return policy->shape.stack;
}

/* ------------------------------------------------------------------- agent */

static mimus_status no_policy(void) {
    return mimus__fail(MIMUS_ERR_ARGUMENT, "no policy: mimus_policy_load did not give one");
}

mimus_status mimus_agent_new(mimus_agent **out, const mimus_policy *policy, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus_agent *agent = NULL;
    *out = NULL;
    if (policy == NULL)
        return no_policy();
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

/* Senses of `samples` samples, stacked. */
static mimus_status check_senses(const mimus_schema *schema, const float *senses,
                                 uint32_t samples) {
    for (size_t i = 0; i < (size_t)samples * schema->senses; i++) {
        uint32_t sense = (uint32_t)(i % schema->senses);
        if (!isfinite(senses[i]))
            return mimus__fail(MIMUS_ERR_DATA, "sense %u (%s) is %g, expected a finite number",
                               sense,
                               schema->sense_names != NULL ? schema->sense_names[sense] : "unnamed",
                               (double)senses[i]);
    }
    return MIMUS_OK;
}

static mimus_status check_logits(const mimus_policy *policy, const float *logits) {
    for (uint32_t a = 0; a < policy->shape.width[policy->shape.layers]; a++) {
        if (!isfinite(logits[a]))
            return mimus__fail(MIMUS_ERR_DATA,
                               "the logit of action %u is %g: the senses are far from what the "
                               "policy was trained on",
                               a, (double)logits[a]);
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

/* The best actions of one row, or with `rng` drawn ones. */
static void choose(const mimus_schema *schema, const float *logits, const uint8_t *legal,
                   mimus__rng *rng, uint16_t *actions) {
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t count = schema->head[h].actions;
        actions[h] = rng != NULL ? drawn_action(logits, legal, count, rng)
                                 : best_action(logits, legal, count);
        logits += count;
        legal = legal != NULL ? legal + count : NULL;
    }
}

static void fill_probabilities(const mimus_schema *schema, const float *logits,
                               const uint8_t *legal, float *probabilities) {
    for (uint32_t h = 0; h < schema->heads; h++) {
        uint32_t count = schema->head[h].actions;
        uint16_t best = best_action(logits, legal, count);
        double total = best != MIMUS_NO_LABEL ? total_weight(logits, legal, count, best) : 0;
        for (uint32_t a = 0; a < count; a++)
            probabilities[a] = is_legal(legal, a) ? (float)(weight_of(logits, a, best) / total) : 0;
        logits += count;
        probabilities += count;
        legal = legal != NULL ? legal + count : NULL;
    }
}

/* What is asked for, the same for agents and batches: one of the two arrays is NULL. */
typedef struct request {
    const uint8_t *legal; /* (n, A), or NULL */
    bool draw;            /* else the most probable */
    uint16_t *actions;    /* (n, H) */
    float *probabilities; /* (n, A) */
} request;

/* Answer for row `row` of the request. An overflow gives no action. */
static mimus_status answer(const mimus_policy *policy, const request *asked, size_t row,
                           const float *logits, mimus__rng *rng) {
    const mimus_schema *schema = policy->schema;
    const size_t width = policy->shape.width[policy->shape.layers];
    const uint8_t *legal = asked->legal != NULL ? asked->legal + row * width : NULL;
    mimus_status status = check_logits(policy, logits);
    if (asked->probabilities != NULL && status == MIMUS_OK)
        fill_probabilities(schema, logits, legal, asked->probabilities + row * width);
    if (asked->actions != NULL && status == MIMUS_OK)
        choose(schema, logits, legal, asked->draw ? rng : NULL,
               asked->actions + row * schema->heads);
    for (uint32_t h = 0; asked->actions != NULL && status != MIMUS_OK && h < schema->heads; h++)
        asked->actions[row * schema->heads + h] = MIMUS_NO_LABEL;
    return status;
}

/* ------------------------------------------------------------------ agents */

/* Which of several is wrong. */
static mimus_status name_row(mimus_status status, const char *what, size_t row, size_t count) {
    return status == MIMUS_OK || count == 1 ? status
                                            : mimus__fail_prefix(status, "%s %zu", what, row);
}

static mimus_status check_agents(mimus_agent *const *agents, size_t count, const float *senses) {
    for (size_t i = 0; i < count; i++) {
        if (agents[i] == NULL)
            return name_row(no_agent(), "agent", i, count);
        if (agents[i]->policy != agents[0]->policy)
            return mimus__fail(MIMUS_ERR_ARGUMENT,
                               "agent %zu has another policy than agent 0; ask them apart", i);
        const mimus_schema *schema = agents[0]->policy->schema;
        mimus_status status = check_senses(schema, senses + i * schema->senses, 1);
        if (status != MIMUS_OK)
            return name_row(status, "agent", i, count);
    }
    return MIMUS_OK;
}

/* All agents stack what they sense; the first that overflows is told, when all others have their
 * answer. */
static mimus_status ask_agents(mimus_agent *const *agents, size_t count, const float *senses,
                               const request *asked) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(check_agents(agents, count, senses));
    for (size_t first = 0; first < count; first += ROWS) {
        const mimus_policy *policy = agents[0]->policy;
        rows all = {.count = count - first < ROWS ? (uint32_t)(count - first) : ROWS};
        for (uint32_t r = 0; r < all.count; r++) {
            mimus_agent *agent = agents[first + r];
            push(agent, senses + (first + r) * policy->shape.senses);
            all.senses[r] = agent->stack;
            all.scratch[r] = agent->scratch;
        }
        forward(policy, &all);
        for (uint32_t r = 0; r < all.count; r++) {
            mimus_status own =
                answer(policy, asked, first + r, all.logits[r], &agents[first + r]->rng);
            if (status == MIMUS_OK)
                status = name_row(own, "agent", first + r, count);
        }
    }
out:
    return status;
}

mimus_status mimus_agent_act(mimus_agent *agent, const float *senses, const uint8_t *legal,
                             uint16_t *actions) {
    return ask_agents(&agent, 1, senses, &(request){.legal = legal, .actions = actions});
}

mimus_status mimus_agent_sample(mimus_agent *agent, const float *senses, const uint8_t *legal,
                                uint16_t *actions) {
    return ask_agents(&agent, 1, senses,
                      &(request){.legal = legal, .draw = true, .actions = actions});
}

mimus_status mimus_agent_probabilities(mimus_agent *agent, const float *senses,
                                       const uint8_t *legal, float *probabilities) {
    return ask_agents(&agent, 1, senses,
                      &(request){.legal = legal, .probabilities = probabilities});
}

mimus_status mimus_agents_act(mimus_agent *const *agents, size_t count, const float *senses,
                              const uint8_t *legal, uint16_t *actions) {
    return ask_agents(agents, count, senses, &(request){.legal = legal, .actions = actions});
}

mimus_status mimus_agents_sample(mimus_agent *const *agents, size_t count, const float *senses,
                                 const uint8_t *legal, uint16_t *actions) {
    return ask_agents(agents, count, senses,
                      &(request){.legal = legal, .draw = true, .actions = actions});
}

/* ------------------------------------------------------------------- batch */

mimus_status mimus_batch_new(mimus_batch **out, const mimus_policy *policy, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    mimus_batch *batch = NULL;
    *out = NULL;
    if (policy == NULL)
        return no_policy();
    MIMUS_TRY(mimus__alloc(&batch, 1, sizeof *batch));
    batch->policy = policy;
    batch->rng.seed = seed;
    MIMUS_TRY(mimus__alloc(&batch->scratch, (size_t)ROWS * 2 * policy->widest, sizeof(float)));
    *out = batch;
    batch = NULL;
out:
    mimus_batch_free(batch);
    return status;
}

void mimus_batch_free(mimus_batch *batch) {
    if (batch == NULL)
        return;
    free(batch->scratch);
    free(batch);
}

static mimus_status ask_batch(mimus_batch *batch, size_t count, const float *senses,
                              const request *asked) {
    mimus_status status = MIMUS_OK;
    if (batch == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "no batch: mimus_batch_new did not give one");
    const mimus__shape *shape = &batch->policy->shape;
    for (size_t i = 0; i < count; i++)
        MIMUS_TRY(name_row(
            check_senses(batch->policy->schema, senses + i * shape->width[0], shape->stack), "row",
            i, count));
    for (size_t first = 0; first < count; first += ROWS) {
        rows all = rows_of(batch->policy, senses, first, count, batch->scratch);
        forward(batch->policy, &all);
        for (uint32_t r = 0; r < all.count; r++) {
            mimus_status own = answer(batch->policy, asked, first + r, all.logits[r], &batch->rng);
            if (status == MIMUS_OK)
                status = name_row(own, "row", first + r, count);
        }
    }
out:
    return status;
}

mimus_status mimus_batch_act(mimus_batch *batch, size_t count, const float *senses,
                             const uint8_t *legal, uint16_t *actions) {
    return ask_batch(batch, count, senses, &(request){.legal = legal, .actions = actions});
}

mimus_status mimus_batch_sample(mimus_batch *batch, size_t count, const float *senses,
                                const uint8_t *legal, uint16_t *actions) {
    return ask_batch(batch, count, senses,
                     &(request){.legal = legal, .draw = true, .actions = actions});
}

mimus_status mimus_batch_probabilities(mimus_batch *batch, size_t count, const float *senses,
                                       const uint8_t *legal, float *probabilities) {
    return ask_batch(batch, count, senses,
                     &(request){.legal = legal, .probabilities = probabilities});
}

/* The double-precision reference: inputs, forward, loss, backward, optimizer, sampler. */
#include "reference.h"

#include "alloc.h"
#include "rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t dropout_key = 0x44726F70; /* "Drop" */
static const uint32_t sampler_key = 0x53616D70; /* "Samp" */

/* ------------------------------------------------------------------- inputs */

void mimus__reference_stack(float *out, const float *senses, uint32_t sense_count, uint32_t stack,
                            uint64_t first, uint64_t row) {
    assert(first <= row);
    for (uint32_t k = 0; k < stack; k++) {
        uint64_t back = stack - 1 - k;
        uint64_t from = row - first >= back ? row - back : first;
        for (uint32_t s = 0; s < sense_count; s++)
            out[k * sense_count + s] = senses[from * sense_count + s];
    }
}

mimus__shape mimus__reference_shape(uint32_t senses, uint32_t stack, uint32_t hidden_layers,
                                    const uint32_t *hidden, mimus__activation activation,
                                    uint32_t heads, const uint32_t *actions) {
    assert(hidden_layers < MIMUS__MAX_LAYERS);
    mimus__shape shape = {
        .senses = senses, .stack = stack, .layers = hidden_layers + 1, .activation = activation};
    shape.width[0] = senses * stack;
    for (uint32_t l = 0; l < hidden_layers; l++)
        shape.width[l + 1] = hidden[l];
    for (uint32_t h = 0; h < heads; h++)
        shape.width[shape.layers] += actions[h];
    return shape;
}

/* ------------------------------------------------------------------ network */

size_t mimus__reference_weight_offset(const mimus__shape *shape, uint32_t layer) {
    size_t offset = 0;
    for (uint32_t l = 0; l < layer; l++)
        offset += (size_t)(shape->width[l] + 1) * shape->width[l + 1];
    return offset;
}

static size_t bias_offset(const mimus__shape *shape, uint32_t layer) {
    return mimus__reference_weight_offset(shape, layer) +
           (size_t)shape->width[layer] * shape->width[layer + 1];
}

static uint32_t action_count(const mimus__reference_network *network) {
    return network->shape.width[network->shape.layers];
}

static mimus_status pass_init(mimus__reference_pass *p, const mimus__shape *shape, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    for (uint32_t l = 0; l <= shape->layers; l++) {
        size_t count = (size_t)rows * shape->width[l];
        MIMUS_TRY(mimus__alloc(&p->input[l], count, sizeof(double)));
        MIMUS_TRY(mimus__alloc(&p->slope[l], count, sizeof(double)));
    }
    for (uint32_t l = 0; l < shape->layers; l++) {
        size_t count = (size_t)rows * shape->width[l + 1];
        MIMUS_TRY(mimus__alloc(&p->sum[l], count, sizeof(double)));
        MIMUS_TRY(mimus__alloc(&p->factor[l], count, sizeof(double)));
    }
out:
    return status;
}

static void pass_clear(mimus__reference_pass *p) {
    for (uint32_t l = 0; l <= MIMUS__MAX_LAYERS; l++) {
        free(p->input[l]);
        free(p->slope[l]);
    }
    for (uint32_t l = 0; l < MIMUS__MAX_LAYERS; l++) {
        free(p->sum[l]);
        free(p->factor[l]);
    }
}

mimus_status mimus__reference_init(mimus__reference_network *network, const mimus__shape *shape,
                                   uint32_t heads, const uint32_t *actions, uint32_t rows) {
    mimus_status status = MIMUS_OK;
    assert(heads <= MIMUS__REFERENCE_MAX_HEADS);
    size_t parameters = mimus__reference_weight_offset(shape, shape->layers);
    *network = (mimus__reference_network){
        .shape = *shape,
        .heads = heads,
        .rows = rows,
        .parameters = parameters,
        .rules =
            {.optimizer = MIMUS__ADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
    };
    MIMUS_TRY(mimus__alloc(&network->actions, heads, sizeof *network->actions));
    MIMUS_TRY(mimus__alloc(&network->mean, shape->senses, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&network->scale, shape->senses, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&network->parameter, parameters, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&network->moment1, parameters, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&network->moment2, parameters, sizeof(double)));
    MIMUS_TRY(mimus__alloc(&network->gradient, parameters, sizeof(double)));
    MIMUS_TRY(pass_init(&network->pass, shape, rows));
    uint32_t total = 0;
    for (uint32_t h = 0; h < heads; h++)
        total += network->actions[h] = actions[h];
    assert(total == action_count(network));
    assert(shape->width[0] == shape->senses * shape->stack);
    (void)total;
    for (uint32_t s = 0; s < shape->senses; s++)
        network->scale[s] = 1;
out:
    if (status != MIMUS_OK)
        mimus__reference_clear(network);
    return status;
}

void mimus__reference_clear(mimus__reference_network *network) {
    free(network->actions);
    free(network->mean);
    free(network->scale);
    free(network->parameter);
    free(network->moment1);
    free(network->moment2);
    free(network->gradient);
    pass_clear(&network->pass);
    *network = (mimus__reference_network){0};
}

void mimus__reference_set_normalisation(mimus__reference_network *network, const float *mean,
                                        const float *scale) {
    for (uint32_t s = 0; s < network->shape.senses; s++) {
        network->mean[s] = mean[s];
        network->scale[s] = scale[s];
    }
}

void mimus__reference_set_parameters(mimus__reference_network *network, const float *parameters) {
    for (size_t i = 0; i < network->parameters; i++)
        network->parameter[i] = parameters[i];
}

/* ------------------------------------------------------------------ forward */

double mimus__reference_activate(mimus__activation activation, double z) {
    switch (activation) {
    case MIMUS__IDENTITY:
        return z;
    case MIMUS__RELU:
        return z < 0 ? 0 : z; /* NaN stays */
    case MIMUS__TANH:
        return tanh(z);
    case MIMUS__GELU:
        return 0.5 * z * (1 + erf(z / sqrt(2)));
    }
    assert(false); /* there is no other activation */
    return NAN;
}

double mimus__reference_slope(mimus__activation activation, double z) {
    switch (activation) {
    case MIMUS__IDENTITY:
        return 1;
    case MIMUS__RELU:
        return z > 0 ? 1 : 0;
    case MIMUS__TANH:
        return 1 - tanh(z) * tanh(z);
    case MIMUS__GELU:
        return 0.5 * (1 + erf(z / sqrt(2))) + z * exp(-0.5 * z * z) / sqrt(2 * acos(-1));
    }
    assert(false); /* there is no other activation */
    return NAN;
}

bool mimus__reference_dropout_keeps(uint64_t seed, uint32_t run, uint32_t step, uint32_t layer,
                                    uint32_t row, uint32_t column, double rate) {
    mimus__philox counter = {{column >> 2, row, step, layer | run << 8}};
    mimus__philox random =
        mimus__philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32) ^ dropout_key);
    float uniform = (float)(random.word[column & 3] >> 8) * 0x1p-24f;
    return uniform >= (float)rate;
}

static void normalise(const mimus__reference_network *network, const mimus__reference_batch *batch,
                      double *x) {
    uint32_t senses = network->shape.senses;
    size_t count = (size_t)batch->rows * network->shape.width[0];
    for (size_t i = 0; i < count; i++)
        x[i] = (batch->senses[i] - network->mean[i % senses]) * network->scale[i % senses];
}

static void dense_row(const mimus__reference_network *network, uint32_t layer, const double *x,
                      double *sum) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    const double *weight =
        network->parameter + mimus__reference_weight_offset(&network->shape, layer);
    const double *bias = network->parameter + bias_offset(&network->shape, layer);
    for (uint32_t o = 0; o < out; o++) {
        sum[o] = bias[o];
        for (uint32_t i = 0; i < in; i++)
            sum[o] += x[i] * weight[(size_t)i * out + o];
    }
}

static double dropout_factor(const mimus__reference_network *network, uint32_t layer, uint32_t row,
                             uint32_t column) {
    double rate = network->rules.dropout;
    bool kept = mimus__reference_dropout_keeps(network->seed, network->run, network->step, layer,
                                               row, column, rate);
    return kept ? 1 / (1 - rate) : 0;
}

/* Layer l of one row: sum, factor, and the next layer's input. */
static void layer_row(const mimus__reference_network *network, uint32_t layer, uint32_t row,
                      bool training) {
    const mimus__reference_pass *p = &network->pass;
    const mimus__shape *shape = &network->shape;
    uint32_t in = shape->width[layer], out = shape->width[layer + 1];
    size_t at = (size_t)row * out;
    dense_row(network, layer, p->input[layer] + (size_t)row * in, p->sum[layer] + at);
    bool hidden = layer + 1 < shape->layers;
    bool drops = hidden && training && network->rules.dropout > 0;
    for (uint32_t o = 0; o < out; o++) {
        double z = p->sum[layer][at + o];
        double factor = drops ? dropout_factor(network, layer, row, o) : 1;
        p->factor[layer][at + o] = factor;
        p->input[layer + 1][at + o] =
            hidden ? mimus__reference_activate(shape->activation, z) * factor : z;
    }
}

/* Leaves everything about the pass in network->pass. */
static void pass_run(const mimus__reference_network *network, const mimus__reference_batch *batch,
                     bool training) {
    assert(batch->rows <= network->rows);
    normalise(network, batch, network->pass.input[0]);
    for (uint32_t l = 0; l < network->shape.layers; l++)
        for (uint32_t row = 0; row < batch->rows; row++)
            layer_row(network, l, row, training);
}

void mimus__reference_forward(const mimus__reference_network *network,
                              const mimus__reference_batch *batch, bool training, double *logits) {
    pass_run(network, batch, training);
    memcpy(logits, network->pass.input[network->shape.layers],
           (size_t)batch->rows * action_count(network) * sizeof *logits);
}

/* --------------------------------------------------------------------- loss */

static bool is_legal(const mimus__reference_network *network, const mimus__reference_batch *batch,
                     uint32_t row, uint32_t action) {
    if (batch->masks == NULL)
        return true;
    size_t words = (action_count(network) + 31) / 32;
    return batch->masks[row * words + action / 32] >> action % 32 & 1;
}

/* One head of one row: its actions are [begin, begin + count) of the A. */
typedef struct choice {
    uint32_t row, head, begin, count;
    uint32_t legal; /* how many */
    uint32_t best;  /* the legal action with the largest logit, from 0 within the head */
    double log_sum; /* log of the legal actions' summed exp(logit) */
} choice;

static void choice_judge(choice *c, const mimus__reference_network *network,
                         const mimus__reference_batch *batch, const double *logits) {
    for (uint32_t a = 0; a < c->count; a++) {
        if (!is_legal(network, batch, c->row, c->begin + a))
            continue;
        if (c->legal++ == 0 || logits[a] > logits[c->best])
            c->best = a;
    }
    double sum = 0;
    for (uint32_t a = 0; a < c->count; a++)
        if (is_legal(network, batch, c->row, c->begin + a))
            sum += exp(logits[a] - logits[c->best]);
    c->log_sum = c->legal > 0 ? logits[c->best] + log(sum) : 0;
}

/* What the head's loss is multiplied by in the batch's: w_i hw_h cw[h,a] / B. */
static double choice_weight(const choice *c, const mimus__reference_network *network,
                            const mimus__reference_batch *batch, uint32_t label) {
    const mimus__reference_rules *rules = &network->rules;
    double weight = batch->weights != NULL ? batch->weights[c->row] : 1;
    if (rules->head_weights != NULL)
        weight *= rules->head_weights[c->head];
    if (rules->class_weights != NULL)
        weight *= rules->class_weights[c->begin + label];
    return weight / batch->rows;
}

static void choice_loss(const choice *c, const mimus__reference_network *network,
                        const mimus__reference_batch *batch, const double *logits,
                        mimus__reference_result *result, double *dlogits) {
    uint32_t label = batch->actions[(size_t)c->row * network->heads + c->head];
    if (label == MIMUS_NO_LABEL || c->legal == 0)
        return;
    assert(label < c->count);
    assert(is_legal(network, batch, c->row, c->begin + label));
    double smoothing = network->rules.label_smoothing;
    double weight = choice_weight(c, network, batch, label);
    for (uint32_t a = 0; a < c->count; a++) {
        if (!is_legal(network, batch, c->row, c->begin + a))
            continue;
        double target = smoothing / c->legal + (a == label ? 1 - smoothing : 0);
        double log_p = logits[a] - c->log_sum;
        result->loss -= weight * target * log_p;
        if (dlogits != NULL)
            dlogits[a] = weight * (exp(log_p) - target);
    }
    result->nll[c->head] -= logits[label] - c->log_sum;
    result->hits[c->head] += c->best == label;
    result->labelled[c->head]++;
}

void mimus__reference_loss(const mimus__reference_network *network,
                           const mimus__reference_batch *batch, const double *logits,
                           mimus__reference_result *result, double *dlogits) {
    uint32_t actions = action_count(network);
    *result = (mimus__reference_result){0};
    if (dlogits != NULL)
        memset(dlogits, 0, (size_t)batch->rows * actions * sizeof *dlogits);
    for (uint32_t row = 0; row < batch->rows; row++) {
        uint32_t begin = 0;
        for (uint32_t h = 0; h < network->heads; h++) {
            choice c = {.row = row, .head = h, .begin = begin, .count = network->actions[h]};
            size_t at = (size_t)row * actions + begin;
            choice_judge(&c, network, batch, logits + at);
            choice_loss(&c, network, batch, logits + at, result,
                        dlogits != NULL ? dlogits + at : NULL);
            begin += c.count;
        }
    }
}

/* ----------------------------------------------------------------- backward */

/* Add one row's share of layer l's gradients; `dsum` (out) is the loss's slope by the row's sums.
 */
static void dense_row_gradient(const mimus__reference_network *network, uint32_t layer,
                               const double *x, const double *dsum, double *gradient) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    double *dweight = gradient + mimus__reference_weight_offset(&network->shape, layer);
    double *dbias = gradient + bias_offset(&network->shape, layer);
    for (uint32_t o = 0; o < out; o++) {
        dbias[o] += dsum[o];
        for (uint32_t i = 0; i < in; i++)
            dweight[(size_t)i * out + o] += x[i] * dsum[o];
    }
}

/* From a row's dsum (out) of layer l >= 1 to that of layer l - 1. */
static void dense_row_back(const mimus__reference_network *network, uint32_t layer, uint32_t row,
                           const mimus__reference_pass *p, const double *dsum, double *dsum_below) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    const double *weight =
        network->parameter + mimus__reference_weight_offset(&network->shape, layer);
    for (uint32_t i = 0; i < in; i++) {
        size_t at = (size_t)row * in + i;
        double dinput = 0;
        for (uint32_t o = 0; o < out; o++)
            dinput += dsum[o] * weight[(size_t)i * out + o];
        dsum_below[i] = dinput * p->factor[layer - 1][at] *
                        mimus__reference_slope(network->shape.activation, p->sum[layer - 1][at]);
    }
}

/* From the slope of the logits, pass.slope[L], to all gradients. */
static void backward(const mimus__reference_network *network, uint32_t rows, double *gradient) {
    const mimus__shape *shape = &network->shape;
    const mimus__reference_pass *p = &network->pass;
    for (uint32_t l = shape->layers; l-- > 0;) {
        uint32_t in = shape->width[l], out = shape->width[l + 1];
        for (uint32_t row = 0; row < rows; row++) {
            const double *drow = p->slope[l + 1] + (size_t)row * out;
            dense_row_gradient(network, l, p->input[l] + (size_t)row * in, drow, gradient);
            if (l > 0)
                dense_row_back(network, l, row, p, drow, p->slope[l] + (size_t)row * in);
        }
    }
}

void mimus__reference_gradient(const mimus__reference_network *network,
                               const mimus__reference_batch *batch, mimus__reference_result *result,
                               double *gradient) {
    uint32_t last = network->shape.layers;
    pass_run(network, batch, true);
    mimus__reference_loss(network, batch, network->pass.input[last], result,
                          network->pass.slope[last]);
    memset(gradient, 0, network->parameters * sizeof *gradient);
    backward(network, batch->rows, gradient);
}

static double loss_at(mimus__reference_network *network, const mimus__reference_batch *batch,
                      size_t index, double value) {
    double kept = network->parameter[index];
    network->parameter[index] = value;
    mimus__reference_result result;
    pass_run(network, batch, true);
    mimus__reference_loss(network, batch, network->pass.input[network->shape.layers], &result,
                          NULL);
    network->parameter[index] = kept;
    return result.loss;
}

void mimus__reference_gradient_by_differences(mimus__reference_network *network,
                                              const mimus__reference_batch *batch,
                                              const size_t *index, size_t n, double *gradient) {
    /* Rounding is about 1e-16 / h, truncation h^4; small, so that few of relu's kinks are met. */
    const double h = 1e-5;
    for (size_t i = 0; i < n; i++) {
        double at = network->parameter[index[i]];
        double near =
            loss_at(network, batch, index[i], at + h) - loss_at(network, batch, index[i], at - h);
        double far = loss_at(network, batch, index[i], at + 2 * h) -
                     loss_at(network, batch, index[i], at - 2 * h);
        gradient[i] = (8 * near - far) / (12 * h);
    }
}

/* ---------------------------------------------------------------- optimizer */

double mimus__reference_norm(const mimus__reference_network *network, const double *gradient) {
    double squares = 0;
    for (size_t i = 0; i < network->parameters; i++)
        squares += gradient[i] * gradient[i];
    return sqrt(squares);
}

static bool all_finite(const double *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static void sgd(mimus__reference_network *network, size_t i, double g) {
    const mimus__reference_rules *rules = &network->rules;
    network->moment1[i] = rules->beta1 * network->moment1[i] + g;
    network->parameter[i] -= rules->lr * network->moment1[i];
}

static void adam(mimus__reference_network *network, size_t i, double g) {
    const mimus__reference_rules *rules = &network->rules;
    double t = (double)network->updates;
    double *m = &network->moment1[i], *v = &network->moment2[i];
    *m = rules->beta1 * *m + (1 - rules->beta1) * g;
    *v = rules->beta2 * *v + (1 - rules->beta2) * g * g;
    double mean = *m / (1 - pow(rules->beta1, t));
    double deviation = sqrt(*v) / sqrt(1 - pow(rules->beta2, t));
    network->parameter[i] -= rules->lr * mean / (deviation + rules->epsilon);
}

bool mimus__reference_update(mimus__reference_network *network, double loss,
                             const double *gradient) {
    const mimus__reference_rules *rules = &network->rules;
    if (!isfinite(loss) || !all_finite(gradient, network->parameters))
        return false;
    double shrink = 1;
    if (rules->clip > 0)
        shrink = fmin(1, rules->clip / (mimus__reference_norm(network, gradient) + 1e-6));
    network->updates++;
    for (size_t i = 0; i < network->parameters; i++) {
        double g = gradient[i] * shrink;
        if (rules->optimizer == MIMUS__ADAMW)
            network->parameter[i] *= 1 - rules->lr * rules->weight_decay;
        else
            g += rules->weight_decay * network->parameter[i];
        if (rules->optimizer == MIMUS__SGD)
            sgd(network, i, g);
        else
            adam(network, i, g);
    }
    return true;
}

bool mimus__reference_step(mimus__reference_network *network, const mimus__reference_batch *batch,
                           mimus__reference_result *result) {
    mimus__reference_gradient(network, batch, result, network->gradient);
    bool applied = mimus__reference_update(network, result->loss, network->gradient);
    network->step++;
    return applied;
}

/* ----------------------------------------------------------------- sampling */

/* MurmurHash3's finish with a key. */
static uint32_t mix(uint32_t value, const mimus__philox *key) {
    value = (value + key->word[0]) * 0x85EBCA6B;
    value ^= value >> 13;
    value = (value + key->word[1]) * 0xC2B2AE35;
    return value ^ value >> 16;
}

static uint64_t feistel(uint64_t value, uint32_t bits, uint64_t seed, uint32_t run,
                        uint32_t epoch) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
    uint32_t left = (uint32_t)(value >> bits), right = (uint32_t)value & mask;
    for (uint32_t round = 0; round < 6; round++) {
        mimus__philox counter = {{round, 0, epoch, run}};
        mimus__philox key =
            mimus__philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32) ^ sampler_key);
        uint32_t next = left ^ (mix(right, &key) & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << bits | right;
}

uint64_t mimus__reference_sampler_row(uint64_t seed, uint32_t run, uint32_t epoch, uint64_t n,
                                      uint64_t position) {
    assert(position < n);
    assert(n <= UINT64_C(1) << 62);
    uint32_t bits = 1;
    while (UINT64_C(1) << 2 * bits < n)
        bits++;
    uint64_t row = position;
    do
        row = feistel(row, bits, seed, run, epoch);
    while (row >= n);
    return row;
}

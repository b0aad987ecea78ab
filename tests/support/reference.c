/* The double-precision reference: inputs, forward, loss, backward, optimizer, sampler. */
#include "reference.h"

#include "rng.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t dropout_key = 0x44726F70; /* "Drop" */
static const uint32_t sampler_key = 0x53616D70; /* "Samp" */

/* A precondition. ck_assert tells the test's parent of each success too, which is slow in a loop.
 */
#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("reference: %s", #condition);                                             \
    } while (0)

static void *zeroed(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    require(memory != NULL);
    return memory;
}

/* ------------------------------------------------------------------- inputs */

void reference_stack(float *out, const float *senses, uint32_t sense_count, uint32_t stack,
                     uint64_t first, uint64_t row) {
    require(first <= row);
    for (uint32_t k = 0; k < stack; k++) {
        uint64_t back = stack - 1 - k;
        uint64_t from = row - first >= back ? row - back : first;
        for (uint32_t s = 0; s < sense_count; s++)
            out[k * sense_count + s] = senses[from * sense_count + s];
    }
}

mimus__shape reference_shape(uint32_t senses, uint32_t stack, uint32_t hidden_layers,
                             const uint32_t *hidden, mimus__activation activation, uint32_t heads,
                             const uint32_t *actions) {
    require(hidden_layers < MIMUS__MAX_LAYERS);
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

size_t reference_weight_offset(const mimus__shape *shape, uint32_t layer) {
    size_t offset = 0;
    for (uint32_t l = 0; l < layer; l++)
        offset += (size_t)(shape->width[l] + 1) * shape->width[l + 1];
    return offset;
}

static size_t bias_offset(const mimus__shape *shape, uint32_t layer) {
    return reference_weight_offset(shape, layer) +
           (size_t)shape->width[layer] * shape->width[layer + 1];
}

static uint32_t action_count(const reference_network *network) {
    return network->shape.width[network->shape.layers];
}

void reference_init(reference_network *network, const mimus__shape *shape, uint32_t heads,
                    const uint32_t *actions) {
    require(heads <= REFERENCE_MAX_HEADS);
    size_t parameters = reference_weight_offset(shape, shape->layers);
    *network = (reference_network){
        .shape = *shape,
        .heads = heads,
        .actions = zeroed(heads, sizeof *network->actions),
        .mean = zeroed(shape->senses, sizeof(double)),
        .scale = zeroed(shape->senses, sizeof(double)),
        .parameters = parameters,
        .parameter = zeroed(parameters, sizeof(double)),
        .moment1 = zeroed(parameters, sizeof(double)),
        .moment2 = zeroed(parameters, sizeof(double)),
        .rules =
            {.optimizer = MIMUS__ADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
    };
    uint32_t total = 0;
    for (uint32_t h = 0; h < heads; h++)
        total += network->actions[h] = actions[h];
    require(total == action_count(network));
    require(shape->width[0] == shape->senses * shape->stack);
    for (uint32_t s = 0; s < shape->senses; s++)
        network->scale[s] = 1;
}

void reference_clear(reference_network *network) {
    free(network->actions);
    free(network->mean);
    free(network->scale);
    free(network->parameter);
    free(network->moment1);
    free(network->moment2);
    *network = (reference_network){0};
}

void reference_set_normalisation(reference_network *network, const float *mean,
                                 const float *scale) {
    for (uint32_t s = 0; s < network->shape.senses; s++) {
        network->mean[s] = mean[s];
        network->scale[s] = scale[s];
    }
}

void reference_set_parameters(reference_network *network, const float *parameters) {
    for (size_t i = 0; i < network->parameters; i++)
        network->parameter[i] = parameters[i];
}

/* ------------------------------------------------------------------ forward */

static double activate(mimus__activation activation, double z) {
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
    ck_abort_msg("activation %d", (int)activation);
}

static double activate_slope(mimus__activation activation, double z) {
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
    ck_abort_msg("activation %d", (int)activation);
}

bool reference_dropout_keeps(uint64_t seed, uint32_t run, uint32_t step, uint32_t layer,
                             uint32_t row, uint32_t column, double rate) {
    mimus__philox counter = {{column >> 2, row, step, layer | run << 8}};
    mimus__philox random =
        mimus__philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32) ^ dropout_key);
    float uniform = (float)(random.word[column & 3] >> 8) * 0x1p-24f;
    return uniform >= (float)rate;
}

/* What a pass through the network leaves behind for the way back. */
typedef struct pass {
    double *input[MIMUS__MAX_LAYERS + 1]; /* [l] (B, width[l]) of layer l; [L] the logits */
    double *sum[MIMUS__MAX_LAYERS];       /* [l] (B, width[l + 1]) x W + b */
    double *factor[MIMUS__MAX_LAYERS];    /* [l] the same: dropout, 0 or 1 / (1 - p) */
} pass;

static void pass_init(pass *p, const mimus__shape *shape, uint32_t rows) {
    *p = (pass){0};
    for (uint32_t l = 0; l <= shape->layers; l++)
        p->input[l] = zeroed((size_t)rows * shape->width[l], sizeof(double));
    for (uint32_t l = 0; l < shape->layers; l++) {
        p->sum[l] = zeroed((size_t)rows * shape->width[l + 1], sizeof(double));
        p->factor[l] = zeroed((size_t)rows * shape->width[l + 1], sizeof(double));
    }
}

static void pass_clear(pass *p) {
    for (uint32_t l = 0; l <= MIMUS__MAX_LAYERS; l++)
        free(p->input[l]);
    for (uint32_t l = 0; l < MIMUS__MAX_LAYERS; l++) {
        free(p->sum[l]);
        free(p->factor[l]);
    }
}

static void normalise(const reference_network *network, const reference_batch *batch, double *x) {
    uint32_t senses = network->shape.senses;
    size_t count = (size_t)batch->rows * network->shape.width[0];
    for (size_t i = 0; i < count; i++)
        x[i] = (batch->senses[i] - network->mean[i % senses]) * network->scale[i % senses];
}

static void dense_row(const reference_network *network, uint32_t layer, const double *x,
                      double *sum) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    const double *weight = network->parameter + reference_weight_offset(&network->shape, layer);
    const double *bias = network->parameter + bias_offset(&network->shape, layer);
    for (uint32_t o = 0; o < out; o++) {
        sum[o] = bias[o];
        for (uint32_t i = 0; i < in; i++)
            sum[o] += x[i] * weight[(size_t)i * out + o];
    }
}

static double dropout_factor(const reference_network *network, uint32_t layer, uint32_t row,
                             uint32_t column) {
    double rate = network->rules.dropout;
    bool kept = reference_dropout_keeps(network->seed, network->run, network->step, layer, row,
                                        column, rate);
    return kept ? 1 / (1 - rate) : 0;
}

/* Layer l of one row: sum, factor, and the next layer's input. */
static void layer_row(const reference_network *network, uint32_t layer, uint32_t row, bool training,
                      pass *p) {
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
        p->input[layer + 1][at + o] = hidden ? activate(shape->activation, z) * factor : z;
    }
}

static void pass_run(const reference_network *network, const reference_batch *batch, bool training,
                     pass *p) {
    normalise(network, batch, p->input[0]);
    for (uint32_t l = 0; l < network->shape.layers; l++)
        for (uint32_t row = 0; row < batch->rows; row++)
            layer_row(network, l, row, training, p);
}

void reference_forward(const reference_network *network, const reference_batch *batch,
                       bool training, double *logits) {
    pass p;
    pass_init(&p, &network->shape, batch->rows);
    pass_run(network, batch, training, &p);
    memcpy(logits, p.input[network->shape.layers],
           (size_t)batch->rows * action_count(network) * sizeof *logits);
    pass_clear(&p);
}

/* --------------------------------------------------------------------- loss */

static bool is_legal(const reference_network *network, const reference_batch *batch, uint32_t row,
                     uint32_t action) {
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

static void choice_judge(choice *c, const reference_network *network, const reference_batch *batch,
                         const double *logits) {
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
static double choice_weight(const choice *c, const reference_network *network,
                            const reference_batch *batch, uint32_t label) {
    const reference_rules *rules = &network->rules;
    double weight = batch->weights != NULL ? batch->weights[c->row] : 1;
    if (rules->head_weights != NULL)
        weight *= rules->head_weights[c->head];
    if (rules->class_weights != NULL)
        weight *= rules->class_weights[c->begin + label];
    return weight / batch->rows;
}

static void choice_loss(const choice *c, const reference_network *network,
                        const reference_batch *batch, const double *logits,
                        reference_result *result, double *dlogits) {
    uint32_t label = batch->actions[(size_t)c->row * network->heads + c->head];
    if (label == MIMUS_NO_LABEL || c->legal == 0)
        return;
    require(label < c->count);
    require(is_legal(network, batch, c->row, c->begin + label));
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

void reference_loss(const reference_network *network, const reference_batch *batch,
                    const double *logits, reference_result *result, double *dlogits) {
    uint32_t actions = action_count(network);
    *result = (reference_result){0};
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
static void dense_row_gradient(const reference_network *network, uint32_t layer, const double *x,
                               const double *dsum, double *gradient) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    double *dweight = gradient + reference_weight_offset(&network->shape, layer);
    double *dbias = gradient + bias_offset(&network->shape, layer);
    for (uint32_t o = 0; o < out; o++) {
        dbias[o] += dsum[o];
        for (uint32_t i = 0; i < in; i++)
            dweight[(size_t)i * out + o] += x[i] * dsum[o];
    }
}

/* From a row's dsum (out) of layer l >= 1 to that of layer l - 1. */
static void dense_row_back(const reference_network *network, uint32_t layer, uint32_t row,
                           const pass *p, const double *dsum, double *dsum_below) {
    uint32_t in = network->shape.width[layer], out = network->shape.width[layer + 1];
    const double *weight = network->parameter + reference_weight_offset(&network->shape, layer);
    for (uint32_t i = 0; i < in; i++) {
        size_t at = (size_t)row * in + i;
        double dinput = 0;
        for (uint32_t o = 0; o < out; o++)
            dinput += dsum[o] * weight[(size_t)i * out + o];
        dsum_below[i] = dinput * p->factor[layer - 1][at] *
                        activate_slope(network->shape.activation, p->sum[layer - 1][at]);
    }
}

static void backward(const reference_network *network, uint32_t rows, const pass *p,
                     double *dlogits, double *gradient) {
    const mimus__shape *shape = &network->shape;
    double *dsum = dlogits;
    for (uint32_t l = shape->layers; l-- > 0;) {
        uint32_t in = shape->width[l], out = shape->width[l + 1];
        double *below = zeroed((size_t)rows * in, sizeof *below);
        for (uint32_t row = 0; row < rows; row++) {
            const double *drow = dsum + (size_t)row * out;
            dense_row_gradient(network, l, p->input[l] + (size_t)row * in, drow, gradient);
            if (l > 0)
                dense_row_back(network, l, row, p, drow, below + (size_t)row * in);
        }
        free(dsum);
        dsum = below;
    }
    free(dsum);
}

void reference_gradient(const reference_network *network, const reference_batch *batch,
                        reference_result *result, double *gradient) {
    pass p;
    pass_init(&p, &network->shape, batch->rows);
    pass_run(network, batch, true, &p);
    double *dlogits = zeroed((size_t)batch->rows * action_count(network), sizeof *dlogits);
    reference_loss(network, batch, p.input[network->shape.layers], result, dlogits);
    memset(gradient, 0, network->parameters * sizeof *gradient);
    backward(network, batch->rows, &p, dlogits, gradient); /* frees dlogits */
    pass_clear(&p);
}

static double loss_at(reference_network *network, const reference_batch *batch, pass *p,
                      size_t index, double value) {
    double kept = network->parameter[index];
    network->parameter[index] = value;
    reference_result result;
    pass_run(network, batch, true, p);
    reference_loss(network, batch, p->input[network->shape.layers], &result, NULL);
    network->parameter[index] = kept;
    return result.loss;
}

void reference_gradient_by_differences(reference_network *network, const reference_batch *batch,
                                       const size_t *index, size_t n, double *gradient) {
    /* Rounding is about 1e-16 / h, truncation h^4; small, so that few of relu's kinks are met. */
    const double h = 1e-5;
    pass p;
    pass_init(&p, &network->shape, batch->rows);
    for (size_t i = 0; i < n; i++) {
        double at = network->parameter[index[i]];
        double near = loss_at(network, batch, &p, index[i], at + h) -
                      loss_at(network, batch, &p, index[i], at - h);
        double far = loss_at(network, batch, &p, index[i], at + 2 * h) -
                     loss_at(network, batch, &p, index[i], at - 2 * h);
        gradient[i] = (8 * near - far) / (12 * h);
    }
    pass_clear(&p);
}

/* ---------------------------------------------------------------- optimizer */

double reference_norm(const reference_network *network, const double *gradient) {
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

static void sgd(reference_network *network, size_t i, double g) {
    const reference_rules *rules = &network->rules;
    network->moment1[i] = rules->beta1 * network->moment1[i] + g;
    network->parameter[i] -= rules->lr * network->moment1[i];
}

static void adam(reference_network *network, size_t i, double g) {
    const reference_rules *rules = &network->rules;
    double t = (double)network->updates;
    double *m = &network->moment1[i], *v = &network->moment2[i];
    *m = rules->beta1 * *m + (1 - rules->beta1) * g;
    *v = rules->beta2 * *v + (1 - rules->beta2) * g * g;
    double mean = *m / (1 - pow(rules->beta1, t));
    double deviation = sqrt(*v) / sqrt(1 - pow(rules->beta2, t));
    network->parameter[i] -= rules->lr * mean / (deviation + rules->epsilon);
}

bool reference_update(reference_network *network, double loss, const double *gradient) {
    const reference_rules *rules = &network->rules;
    if (!isfinite(loss) || !all_finite(gradient, network->parameters))
        return false;
    double shrink = 1;
    if (rules->clip > 0)
        shrink = fmin(1, rules->clip / (reference_norm(network, gradient) + 1e-6));
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

bool reference_step(reference_network *network, const reference_batch *batch,
                    reference_result *result) {
    double *gradient = zeroed(network->parameters, sizeof *gradient);
    reference_gradient(network, batch, result, gradient);
    bool applied = reference_update(network, result->loss, gradient);
    network->step++;
    free(gradient);
    return applied;
}

/* ----------------------------------------------------------------- sampling */

static uint64_t feistel(uint64_t value, uint32_t bits, uint64_t seed, uint32_t run,
                        uint32_t epoch) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
    uint32_t left = (uint32_t)(value >> bits), right = (uint32_t)value & mask;
    for (uint32_t round = 0; round < 6; round++) {
        mimus__philox counter = {{right, round, epoch, run}};
        mimus__philox random =
            mimus__philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32) ^ sampler_key);
        uint32_t next = left ^ (random.word[0] & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << bits | right;
}

uint64_t reference_sampler_row(uint64_t seed, uint32_t run, uint32_t epoch, uint64_t n,
                               uint64_t position) {
    require(position < n);
    require(n <= UINT64_C(1) << 62);
    uint32_t bits = 1;
    while (UINT64_C(1) << 2 * bits < n)
        bits++;
    uint64_t row = position;
    do
        row = feistel(row, bits, seed, run, epoch);
    while (row >= n);
    return row;
}

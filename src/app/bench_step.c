#include "bench_step.h"

/* ------------------------------------------------------------------ a sample's share */

double mimus__bench_operations(const mimus__shape *shape, bool training) {
    double operations = 0;
    for (uint32_t l = 0; l < shape->layers; l++) {
        double product = 2.0 * shape->width[l] * shape->width[l + 1];
        operations += product;
        if (training) /* senses need no gradient */
            operations += l > 0 ? 2 * product : product;
    }
    return operations;
}

double mimus__bench_gather_bytes(const mimus__shape *shape, const mimus__row_layout *layout) {
    double in = (double)layout->sense_words * shape->stack;
    double out = (double)layout->senses * shape->stack;
    return 4 * (in + out + 2.0 * layout->label_words);
}

/* -------------------------------------------------------------------- a step's phases */

mimus__bench_facts mimus__bench_facts_of(const mimus__trainer *trainer, const mimus__store *store,
                                         const mimus_config *config, uint32_t rows) {
    const mimus__network *network = mimus__trainer_network(trainer);
    mimus__bench_facts facts = {.shape = network->layout.shape,
                                .runs = network->layout.runs,
                                .rows = rows,
                                .padded_rows = rows,
                                .sense_words = store->layout.sense_words,
                                .label_words = store->layout.label_words,
                                .blocks = mimus__trainer_has(trainer, MIMUS__STEP_BLOCK),
                                .shared = mimus__trainer_shares(trainer),
                                .splits = network->splits,
                                .keeps_pre = network->keeps_pre,
                                .dropout = network->dropout_hyper != NULL,
                                .optimizer = config->optimizer};
    if (!facts.blocks) {
        facts.padded_rows = mimus__network_padded_rows(network, rows);
        facts.gemm = mimus__gemm_chosen(network->gemm);
        facts.packs = mimus__gemm_packs(network->gemm);
        facts.batches = mimus__gemm_batches(network->gemm);
    }
    for (uint32_t l = 0; l <= facts.shape.layers; l++)
        facts.padded[l] = network->layout.padded[l];
    return facts;
}

/* Batches that are gathered, and labels that are read. */
static double batches(const mimus__bench_facts *facts) {
    return facts->shared ? 1 : facts->runs;
}

/* Floats of all runs: a layer's outputs, its weights, its biases. */
static double outputs(const mimus__bench_facts *facts, uint32_t width) {
    double runs = width == 0 ? batches(facts) : facts->runs;
    return runs * facts->padded_rows * facts->padded[width];
}

static double weights(const mimus__bench_facts *facts, uint32_t layer) {
    return (double)facts->runs * facts->padded[layer] * facts->padded[layer + 1];
}

static double biases(const mimus__bench_facts *facts, uint32_t layer) {
    return (double)facts->runs * facts->padded[layer + 1];
}

static double product(const mimus__bench_facts *facts, uint32_t layer) {
    return 2.0 * facts->runs * facts->rows * facts->shape.width[layer] *
           facts->shape.width[layer + 1];
}

static void add(mimus__bench_cost *cost, double floats, uint64_t launches) {
    cost->bytes += 4 * floats;
    cost->launches += launches;
}

/* Of a layer's product, on full batches. CLBlast takes the runs of a strided batch together, but
 * not where they share their input. */
static uint32_t product_launches(const mimus__bench_facts *facts, uint32_t layer) {
    if (facts->gemm != MIMUS__GEMM_CLBLAST || (facts->batches && !(facts->shared && layer == 0)))
        return 1;
    return facts->runs;
}

/* A product of weights and a batch: the launch itself, and what goes before it or comes after. */
static void add_product(mimus__bench_cost *cost, const mimus__bench_facts *facts, uint32_t layer) {
    double floats = outputs(facts, layer) + weights(facts, layer) + outputs(facts, layer + 1);
    cost->operations += product(facts, layer);
    add(cost, floats, product_launches(facts, layer));
    if (facts->packs)
        add(cost, 2 * weights(facts, layer), 1);
}

static void add_dropout(mimus__bench_cost *cost, const mimus__bench_facts *facts, uint32_t width) {
    if (facts->dropout)
        add(cost, 2 * outputs(facts, width), 1);
}

/* Of a sample as the store has it, in words. */
static double row_in(const mimus__bench_facts *facts) {
    return (double)facts->sense_words * facts->shape.stack + facts->label_words;
}

static mimus__bench_cost gather_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    double out = (double)facts->shape.senses * facts->shape.stack + facts->label_words;
    add(&cost, batches(facts) * (row_in(facts) * facts->rows + out * facts->padded_rows), 1);
    return cost;
}

static mimus__bench_cost forward_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    for (uint32_t l = 0; l < facts->shape.layers; l++) {
        bool hidden = l + 1 < facts->shape.layers;
        add_product(&cost, facts, l);
        add(&cost, biases(facts, l), 0);
        if (facts->gemm == MIMUS__GEMM_CLBLAST) /* bias and activation, in place */
            add(&cost, 2 * outputs(facts, l + 1), 1);
        if (hidden && facts->keeps_pre)
            add(&cost, outputs(facts, l + 1), 0);
        if (hidden)
            add_dropout(&cost, facts, l + 1);
    }
    return cost;
}

/* Logits in, gradient out, labels; the partial sums are a few hundred bytes a group. */
static mimus__bench_cost loss_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    double labels = batches(facts) * facts->padded_rows * facts->label_words;
    add(&cost, 2 * outputs(facts, facts->shape.layers) + labels, 1);
    return cost;
}

static void add_weight_gradient(mimus__bench_cost *cost, const mimus__bench_facts *facts,
                                uint32_t layer) {
    double in = outputs(facts, layer), out = outputs(facts, layer + 1);
    cost->operations += product(facts, layer);
    if (facts->gemm == MIMUS__GEMM_CLBLAST) { /* the biases' in two launches of their own */
        add(cost, in + out + weights(facts, layer), product_launches(facts, layer));
        add(cost, out + biases(facts, layer), 2);
    } else {
        add(cost, in + out + facts->splits * (weights(facts, layer) + biases(facts, layer)), 1);
    }
}

static void add_input_gradient(mimus__bench_cost *cost, const mimus__bench_facts *facts,
                               uint32_t layer) {
    add_product(cost, facts, layer);
    if (facts->shape.activation == MIMUS__IDENTITY)
        return;
    add(cost, outputs(facts, layer), 0); /* what the derivative is taken from */
    if (facts->gemm == MIMUS__GEMM_CLBLAST)
        add(cost, 2 * outputs(facts, layer), 1);
}

static mimus__bench_cost backward_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    for (uint32_t l = facts->shape.layers; l-- > 0;) {
        add_weight_gradient(&cost, facts, l);
        if (l == 0)
            break;
        add_input_gradient(&cost, facts, l);
        add_dropout(&cost, facts, l);
    }
    return cost;
}

/* What a block of rows keeps in its core's cache is not counted: rows in; weights of both orders
 * and biases in, a partial gradient out, once a slice. */
static mimus__bench_cost block_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    double gathered = (double)facts->padded[0] + facts->label_words; /* already */
    add(&cost, (facts->shared ? gathered : row_in(facts) * facts->runs) * facts->rows, 1);
    for (uint32_t l = 0; l < facts->shape.layers; l++) {
        cost.operations += (l > 0 ? 3 : 2) * product(facts, l);
        add(&cost, facts->splits * ((l > 0 ? 3 : 2) * weights(facts, l) + 2 * biases(facts, l)), 0);
    }
    return cost;
}

/* The sum: all partial gradients in, one out. The update: gradient, parameters and moments in,
 * parameters and moments out. */
static mimus__bench_cost optimizer_cost(const mimus__bench_facts *facts) {
    mimus__bench_cost cost = {.operations = 0};
    double parameters = 0;
    for (uint32_t l = 0; l < facts->shape.layers; l++)
        parameters += weights(facts, l) + biases(facts, l);
    add(&cost, (facts->splits + 1) * parameters, 1);
    add(&cost, (facts->optimizer == MIMUS__SGD ? 5 : 7) * parameters, 1);
    for (uint32_t l = 0; facts->blocks && l < facts->shape.layers; l++) /* the panels */
        add(&cost, (l > 0 ? 2 : 1) * weights(facts, l), 0);
    return cost;
}

mimus__bench_step mimus__bench_step_of(const mimus__bench_facts *facts) {
    mimus__bench_step step = {.phase = {[MIMUS__STEP_OPTIMIZER] = optimizer_cost(facts)}};
    if (!facts->blocks || facts->shared)
        step.phase[MIMUS__STEP_GATHER] = gather_cost(facts);
    if (facts->blocks) {
        step.phase[MIMUS__STEP_BLOCK] = block_cost(facts);
    } else {
        step.phase[MIMUS__STEP_FORWARD] = forward_cost(facts);
        step.phase[MIMUS__STEP_LOSS] = loss_cost(facts);
        step.phase[MIMUS__STEP_BACKWARD] = backward_cost(facts);
    }
    for (int p = 0; p < MIMUS__STEP_PHASES; p++) {
        step.total.operations += step.phase[p].operations;
        step.total.bytes += step.phase[p].bytes;
        step.total.launches += step.phase[p].launches;
    }
    return step;
}

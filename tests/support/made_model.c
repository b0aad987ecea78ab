#include "made_model.h"

#include "rng.h"
#include "support.h"

static const float edges[] = {-1, -0.25f, 0.5f, 2}, values[] = {-2, -0.5f, 0, 1, 3};
static const char *const gun[] = {"hold", "fire"};
const mimus_head test_heads[3] = {
    {.name = "gun", .actions = 2, .action_names = gun},
    {.name = "steer", .actions = 5, .bin_edges = edges, .bin_values = values},
    {.actions = 63},
};

static float noise(mimus__rng *rng, float size) {
    return size * (float)(2 * mimus__rng_uniform(rng) - 1);
}

mimus__model *test_model(const test_network *network, uint64_t seed) {
    const mimus_schema schema = {.senses = network->senses,
                                 .heads = network->heads,
                                 .head = network->head,
                                 .masks = network->masks};
    mimus__shape shape = {
        .senses = network->senses, .stack = network->stack, .activation = network->activation};
    mimus__rng rng = {.seed = seed};
    mimus__model *model;
    shape.width[0] = network->senses * network->stack;
    while (shape.layers < 3 && network->hidden[shape.layers] > 0) {
        shape.width[shape.layers + 1] = network->hidden[shape.layers];
        shape.layers++;
    }
    shape.width[++shape.layers] = mimus__schema_actions(&schema);
    test_ok(mimus__model_new(&model, &schema, &shape, false));
    mimus__model_initialise(&shape, model->parameters, seed, 0);
    for (uint32_t l = 0; l < shape.layers; l++) {
        for (size_t i = mimus__shape_bias_offset(&shape, l);
             i < mimus__shape_bias_offset(&shape, l) + shape.width[l + 1]; i++)
            model->parameters[i] = noise(&rng, 1);
    }
    /* as in trained networks, what comes out is not small */
    for (size_t i = mimus__shape_weight_offset(&shape, shape.layers - 1);
         i < mimus__shape_bias_offset(&shape, shape.layers - 1); i++)
        model->parameters[i] *= 20;
    for (uint32_t s = 0; s < shape.senses; s++) {
        model->mean[s] = noise(&rng, 3);
        model->scale[s] = s % 5 == 4 ? 0 : 1 + noise(&rng, 0.5f);
    }
    return model;
}

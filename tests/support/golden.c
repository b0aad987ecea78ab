/* Reads tests/data/golden_pytorch.json. */
#include "golden.h"

#include "json.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* A member that must be there, with where it was missed. */
static json_t *member(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "golden: \"%s\" is missing", key);
    return value;
}

static double number(const json_t *object, const char *key) {
    double value;
    test_ok(mimus__json_get_double(object, key, "golden", &value));
    return value;
}

static uint64_t whole(const json_t *object, const char *key) {
    uint64_t value;
    test_ok(mimus__json_get_u64(object, key, "golden", &value));
    return value;
}

/* An array of exactly n numbers; null is NULL. */
static double *doubles(const json_t *object, const char *key, size_t n) {
    json_t *array = member(object, key);
    if (json_is_null(array))
        return NULL;
    ck_assert_msg(json_array_size(array) == n, "golden: \"%s\" has %zu numbers, not %zu", key,
                  json_array_size(array), n);
    double *values = calloc(n, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(array, i)))
            ck_abort_msg("golden: \"%s\"[%zu] is no number", key, i);
        values[i] = json_number_value(json_array_get(array, i));
    }
    return values;
}

/* The same in another type, which must hold the numbers exactly. */
#define DEFINE_EXACT(type)                                                                         \
    static type *exact_##type(const json_t *object, const char *key, size_t n) {                   \
        double *values = doubles(object, key, n);                                                  \
        if (values == NULL)                                                                        \
            return NULL;                                                                           \
        type *out = calloc(n, sizeof *out);                                                        \
        ck_assert_ptr_nonnull(out);                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            out[i] = (type)values[i];                                                              \
            if ((double)out[i] != values[i])                                                       \
                ck_abort_msg("golden: \"%s\"[%zu] is no " #type, key, i);                          \
        }                                                                                          \
        free(values);                                                                              \
        return out;                                                                                \
    }
DEFINE_EXACT(float)
DEFINE_EXACT(uint16_t)
DEFINE_EXACT(uint32_t)
DEFINE_EXACT(uint64_t)
#undef DEFINE_EXACT

static const char *text(const json_t *object, const char *key) {
    const char *value;
    test_ok(mimus__json_get_string(object, key, "golden", &value));
    return value;
}

static mimus__activation activation_of(const char *name) {
    if (strcmp(name, "tanh") == 0)
        return MIMUS__TANH;
    if (strcmp(name, "gelu") == 0)
        return MIMUS__GELU;
    ck_assert_str_eq(name, "relu");
    return MIMUS__RELU;
}

static mimus__optimizer_kind optimizer_of(const char *name) {
    if (strcmp(name, "adamw") == 0)
        return MIMUS__ADAMW;
    if (strcmp(name, "sgd") == 0)
        return MIMUS__SGD;
    ck_assert_str_eq(name, "adam");
    return MIMUS__ADAM;
}

static void load_network(golden_case *c, const json_t *json) {
    uint32_t hidden_layers = (uint32_t)json_array_size(member(json, "hidden"));
    uint32_t heads = (uint32_t)json_array_size(member(json, "heads"));
    uint32_t *hidden = exact_uint32_t(json, "hidden", hidden_layers);
    uint32_t *actions = exact_uint32_t(json, "heads", heads);
    mimus__shape shape = mimus__reference_shape(
        (uint32_t)whole(json, "senses"), (uint32_t)whole(json, "stack"), hidden_layers, hidden,
        activation_of(text(json, "activation")), heads, actions);
    test_ok(
        mimus__reference_init(&c->network, &shape, heads, actions, (uint32_t)whole(json, "rows")));
    c->mean = exact_float(json, "mean", shape.senses);
    c->scale = exact_float(json, "scale", shape.senses);
    c->initial = exact_float(json, "initial", c->network.parameters);
    mimus__reference_set_normalisation(&c->network, c->mean, c->scale);
    mimus__reference_set_parameters(&c->network, c->initial);
    free(hidden);
    free(actions);
}

static void load_rules(golden_case *c, const json_t *json) {
    const mimus__shape *shape = &c->network.shape;
    c->head_weights = doubles(json, "head_weights", c->network.heads);
    c->class_weights = doubles(json, "class_weights", shape->width[shape->layers]);
    c->network.seed = whole(json, "seed");
    c->network.run = (uint32_t)whole(json, "run");
    c->network.rules = (mimus__reference_rules){
        .optimizer = optimizer_of(text(json, "optimizer")),
        .lr = number(json, "lr"),
        .beta1 = number(json, "beta1"),
        .beta2 = number(json, "beta2"),
        .epsilon = number(json, "epsilon"),
        .weight_decay = number(json, "weight_decay"),
        .clip = number(json, "clip"),
        .label_smoothing = number(json, "label_smoothing"),
        .dropout = number(json, "dropout"),
        .head_weights = c->head_weights,
        .class_weights = c->class_weights,
    };
}

static void load_rows(golden_case *c, const json_t *json) {
    const mimus__shape *shape = &c->network.shape;
    uint32_t mask_words = (shape->width[shape->layers] + 31) / 32;
    size_t n = c->rows = (uint32_t)whole(json, "rows");
    c->first = exact_uint64_t(json, "first", n);
    c->senses = exact_float(json, "samples", n * shape->senses);
    c->actions = exact_uint16_t(json, "actions", n * c->network.heads);
    c->masks = exact_uint32_t(json, "masks", n * mask_words);
    c->weights = exact_float(json, "weights", n);
    c->stacked = calloc(n * shape->width[0], sizeof *c->stacked);
    ck_assert_ptr_nonnull(c->stacked);
    for (size_t row = 0; row < n; row++)
        mimus__reference_stack(c->stacked + row * shape->width[0], c->senses, shape->senses,
                               shape->stack, c->first[row], row);
}

static void load_case(golden_case *c, const json_t *json) {
    c->name = strdup(text(json, "name"));
    ck_assert_ptr_nonnull(c->name);
    load_network(c, json);
    load_rules(c, json);
    load_rows(c, json);
    c->steps = (uint32_t)whole(json, "steps");
    c->losses = doubles(json, "losses", c->steps);
    c->nll = doubles(json, "nll", (size_t)c->steps * c->network.heads);
    c->hits = doubles(json, "hits", (size_t)c->steps * c->network.heads);
    c->labelled = doubles(json, "labelled", c->network.heads);
    c->final = doubles(json, "final", c->network.parameters);
    c->float32_loss = number(json, "float32_loss");
    c->float32_parameter = number(json, "float32_parameter");
}

static void load_order(golden_order *order, const json_t *json) {
    order->seed = whole(json, "seed");
    order->run = (uint32_t)whole(json, "run");
    order->epoch = (uint32_t)whole(json, "epoch");
    order->n = (uint32_t)json_array_size(member(json, "rows"));
    order->rows = doubles(json, "rows", order->n);
}

void golden_load(golden *out, const char *path) {
    json_t *root;
    test_ok(mimus__json_read(&root, path));
    const json_t *cases = member(root, "cases"), *orders = member(root, "orders");
    *out = (golden){.case_count = json_array_size(cases), .order_count = json_array_size(orders)};
    ck_assert_uint_gt(out->case_count, 0);
    ck_assert_uint_gt(out->order_count, 0);
    out->cases = calloc(out->case_count, sizeof *out->cases);
    out->orders = calloc(out->order_count, sizeof *out->orders);
    ck_assert_ptr_nonnull(out->cases);
    ck_assert_ptr_nonnull(out->orders);
    for (size_t i = 0; i < out->case_count; i++)
        load_case(&out->cases[i], json_array_get(cases, i));
    for (size_t i = 0; i < out->order_count; i++)
        load_order(&out->orders[i], json_array_get(orders, i));
    json_decref(root);
}

static void clear_case(golden_case *c) {
    free(c->name);
    mimus__reference_clear(&c->network);
    free(c->first);
    free(c->senses);
    free(c->stacked);
    free(c->actions);
    free(c->masks);
    free(c->weights);
    free(c->head_weights);
    free(c->class_weights);
    free(c->mean);
    free(c->scale);
    free(c->initial);
    free(c->losses);
    free(c->nll);
    free(c->hits);
    free(c->labelled);
    free(c->final);
}

void golden_clear(golden *g) {
    for (size_t i = 0; i < g->case_count; i++)
        clear_case(&g->cases[i]);
    for (size_t i = 0; i < g->order_count; i++)
        free(g->orders[i].rows);
    free(g->cases);
    free(g->orders);
    *g = (golden){0};
}

mimus__reference_batch golden_batch(const golden_case *c) {
    return (mimus__reference_batch){.rows = c->rows,
                                    .senses = c->stacked,
                                    .actions = c->actions,
                                    .masks = c->masks,
                                    .weights = c->weights};
}

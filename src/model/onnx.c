/* onnx - one network, three frames around it. What each target looks for by name is written as ONNX
 * models that work there have it: Unity's as ML-Agents' own trainer exports them, Godot's as
 * Godot RL Agents' exporter does. */
#include "onnx.h"

#include "alloc.h"
#include "onnx_graph.h"
#include "text.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first operator set with all that is used here, ArgMax, Where and Slice in today's form, and
 * what Godot RL Agents writes; ML-Agents says 9. The file's version goes with it. */
enum {
    OPSET = 17,
    IR_VERSION = 8,
    UNITY_OPSET = 9,
    UNITY_IR_VERSION = 4,
    FIRST_SLICE_BY_INPUTS = 10
};

typedef struct frame {
    mimus__onnx_graph *graph;
    const mimus__model *model;
    const mimus__onnx_inputs *inputs;
    const mimus_schema *schema;
    const mimus__shape *shape;
    uint32_t actions;  /* A */
    uint32_t branches; /* heads that are no bins */
    bool numbers;      /* some are */
} frame;

/* An input or output with a row a sample. */
static mimus__onnx_value rows_of(const char *name, mimus__onnx_type type, int64_t columns,
                                 const char *text) {
    return (mimus__onnx_value){name, type, 2, {0, columns}, text};
}

static void add_input(const frame *f, const char *name, mimus__onnx_type type, int64_t columns,
                      const char *text) {
    const mimus__onnx_value value = rows_of(name, type, columns, text);
    mimus__onnx_input(f->graph, &value);
}

static void add_output(const frame *f, const char *name, mimus__onnx_type type, int64_t columns,
                       const char *text) {
    const mimus__onnx_value value = rows_of(name, type, columns, text);
    mimus__onnx_output(f->graph, &value);
}

/* ----------------------------------------------------------------- senses */

static const char senses_text[] = "raw senses, the oldest of stacked samples first";

uint32_t mimus__onnx_column(const mimus__shape *shape, const mimus__onnx_inputs *inputs,
                            uint32_t column) {
    uint32_t before = 0; /* senses of the inputs before this one */
    for (uint32_t i = 0; i < inputs->count; i++) {
        uint32_t size = inputs->size[i], within = column - before * shape->stack;
        if (within < size * shape->stack)
            return within / size * shape->senses + before + within % size;
        before += size;
    }
    return column;
}

/* The number at the end of "Rays[12]", and how long the name before it is; -1 without one. */
static int64_t number_of(const char *name, size_t *length) {
    const char *bracket = strrchr(name, '[');
    uint64_t number;
    char digits[12];
    *length = strlen(name);
    if (bracket == NULL || name[*length - 1] != ']' || name + *length - bracket - 2 < 1 ||
        (size_t)(name + *length - bracket - 2) >= sizeof digits)
        return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)(name + *length - bracket - 2), bracket + 1);
    if (!mimus__text_to_u64(digits, &number) || number > UINT32_MAX)
        return -1;
    *length = (size_t)(bracket - name);
    return (int64_t)number;
}

mimus_status mimus__onnx_sensors(uint32_t **size, uint32_t *count, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    uint32_t *sizes = NULL, sensors = 0;
    bool numbered = false, in_order = schema->sense_names != NULL;
    size_t before = 0; /* length of the latest sensor's name */
    *size = NULL;
    *count = 0;
    MIMUS_TRY(mimus__alloc(&sizes, schema->senses, sizeof *sizes));
    for (uint32_t i = 0; in_order && i < schema->senses; i++) {
        size_t length;
        int64_t number = number_of(schema->sense_names[i], &length);
        bool goes_on = number > 0;
        numbered = numbered || number >= 0;
        in_order =
            !goes_on || (sensors > 0 && number == sizes[sensors - 1] && length == before &&
                         memcmp(schema->sense_names[i], schema->sense_names[i - 1], length) == 0);
        if (!goes_on)
            sizes[sensors++] = 0;
        if (in_order)
            sizes[sensors - 1]++;
        before = length;
    }
    if (in_order && numbered) {
        *size = sizes;
        *count = sensors;
        sizes = NULL;
    }
out:
    free(sizes);
    return status;
}

static mimus_status check_inputs(const mimus__model *model, mimus__onnx_target target,
                                 const mimus__onnx_inputs *inputs) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (inputs->size[i] == 0)
            return mimus__fail(MIMUS_ERR_ARGUMENT, "observation %u has no senses", i);
        sum += inputs->size[i];
    }
    if (inputs->count > 1 && target != MIMUS__ONNX_UNITY)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%u observations: only Unity takes more than one; this target takes all "
                           "senses as one input",
                           inputs->count);
    if (inputs->count > 0 && sum != model->schema->senses)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "the observations have %llu senses together, the policy has %u",
                           (unsigned long long)sum, model->schema->senses);
    return MIMUS_OK;
}

/* ---------------------------------------------------------------- network */

/* The constants in the order of the inputs' columns. */
static mimus_status add_normalisation(const frame *f, const char *senses) {
    mimus_status status = MIMUS_OK;
    uint32_t width = f->shape->width[0];
    float *mean = NULL, *scale = NULL;
    MIMUS_TRY(mimus__alloc(&mean, width, sizeof *mean));
    MIMUS_TRY(mimus__alloc(&scale, width, sizeof *scale));
    for (uint32_t i = 0; i < width; i++) {
        uint32_t sense = mimus__onnx_column(f->shape, f->inputs, i) % f->shape->senses;
        mean[i] = f->model->mean[sense];
        scale[i] = f->model->scale[sense];
    }
    mimus__onnx_floats(f->graph, "mean", mean, 1, width);
    mimus__onnx_floats(f->graph, "scale", scale, 1, width);
    mimus__onnx_node(f->graph, "Sub", "centred", senses, "mean");
    mimus__onnx_node(f->graph, "Mul", "normalised", "centred", "scale");
out:
    free(scale);
    free(mean);
    return status;
}

/* Weights as PyTorch keeps them, (out, in). */
static mimus_status add_layer_constants(const frame *f, uint32_t layer, const char *weight,
                                        const char *bias) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = f->shape;
    size_t in = shape->width[layer], out_width = shape->width[layer + 1];
    const float *source = f->model->parameters + mimus__shape_weight_offset(shape, layer);
    float *turned = NULL;
    MIMUS_TRY(mimus__alloc(&turned, in * out_width, sizeof *turned));
    for (uint32_t i = 0; i < in; i++) {
        size_t row = layer == 0 ? mimus__onnx_column(shape, f->inputs, i) : i;
        for (size_t o = 0; o < out_width; o++)
            turned[o * in + i] = source[row * out_width + o];
    }
    mimus__onnx_floats(f->graph, weight, turned, shape->width[layer + 1], shape->width[layer]);
    mimus__onnx_floats(f->graph, bias,
                       f->model->parameters + mimus__shape_bias_offset(shape, layer), 0,
                       shape->width[layer + 1]);
out:
    free(turned);
    return status;
}

/* x Phi(x) by the error function, in the order of operations that the policy has. */
static void add_gelu(const frame *f, const char *x, const char *y) {
    mimus__onnx_graph *graph = f->graph;
    const char *part = mimus__onnx_text(graph, "%s.scaled", y);
    const char *error = mimus__onnx_text(graph, "%s.erf", y);
    const char *twice = mimus__onnx_text(graph, "%s.twice_phi", y);
    const char *half = mimus__onnx_text(graph, "%s.half", y);
    mimus__onnx_node(graph, "Mul", part, x, "root_half");
    mimus__onnx_node(graph, "Erf", error, part);
    mimus__onnx_node(graph, "Add", twice, error, "one");
    mimus__onnx_node(graph, "Mul", half, x, "half");
    mimus__onnx_node(graph, "Mul", y, half, twice);
}

static void add_activation(const frame *f, const char *x, const char *y) {
    switch (f->shape->activation) {
    case MIMUS__IDENTITY:
        mimus__onnx_node(f->graph, "Identity", y, x);
        return;
    case MIMUS__RELU:
        mimus__onnx_node(f->graph, "Relu", y, x);
        return;
    case MIMUS__TANH:
        mimus__onnx_node(f->graph, "Tanh", y, x);
        return;
    case MIMUS__GELU:
        add_gelu(f, x, y);
        return;
    }
}

/* From the value `senses` (batch, K * S) to "logits" (batch, A). */
static mimus_status add_network(const frame *f, const char *senses) {
    mimus_status status = MIMUS_OK;
    mimus__onnx_graph *graph = f->graph;
    const char *x = "normalised";
    MIMUS_TRY(add_normalisation(f, senses));
    if (f->shape->activation == MIMUS__GELU && f->shape->layers > 1) {
        mimus__onnx_floats(graph, "one", &(const float){1}, 0, 1);
        mimus__onnx_floats(graph, "half", &(const float){0.5f}, 0, 1);
        mimus__onnx_floats(graph, "root_half", &(const float){0.70710678f}, 0, 1);
    }
    for (uint32_t l = 0; l < f->shape->layers; l++) {
        bool last = l + 1 == f->shape->layers;
        const char *weight = mimus__onnx_text(graph, "layers.%u.weight", l);
        const char *bias = mimus__onnx_text(graph, "layers.%u.bias", l);
        const char *sum = last ? "logits" : mimus__onnx_text(graph, "layers.%u.sum", l);
        const char *active = mimus__onnx_text(graph, "layers.%u", l);
        MIMUS_TRY(add_layer_constants(f, l, weight, bias));
        mimus__onnx_node(graph, "Gemm", sum, x, weight, bias);
        mimus__onnx_integer(graph, "transB", 1);
        if (!last)
            add_activation(f, sum, active);
        x = active;
    }
out:
    return status;
}

/* ------------------------------------------------------------------ heads */

/* The constants that heads are sliced by, where slices take them as inputs, and the numbers that
 * actions stand for. */
static mimus_status add_head_constants(const frame *f) {
    mimus_status status = MIMUS_OK;
    const bool bounds = mimus__onnx_graph_opset(f->graph) >= FIRST_SLICE_BY_INPUTS;
    float *values = NULL;
    int64_t first = 0;
    if (bounds)
        mimus__onnx_integers(f->graph, "columns", &(const int64_t){1}, 1);
    MIMUS_TRY(mimus__alloc(&values, f->actions, sizeof *values));
    for (uint32_t h = 0; h < f->schema->heads; h++) {
        const mimus_head *head = &f->schema->head[h];
        if (bounds)
            mimus__onnx_integers(f->graph, mimus__onnx_text(f->graph, "heads.%u.first", h), &first,
                                 1);
        for (uint32_t a = 0; f->numbers && a < head->actions; a++)
            values[a] = mimus_head_value(head, (uint16_t)a);
        if (f->numbers)
            mimus__onnx_floats(f->graph, mimus__onnx_text(f->graph, "heads.%u.values", h), values,
                               0, head->actions);
        first += head->actions;
    }
    if (bounds)
        mimus__onnx_integers(
            f->graph, mimus__onnx_text(f->graph, "heads.%u.first", f->schema->heads), &first, 1);
out:
    free(values);
    return status;
}

/* The columns of head `head`, whose first is `first`, of a value (batch, A), under the name
 * heads.<head>.<what>. */
static const char *add_slice(const frame *f, const char *value, uint32_t head, uint32_t first,
                             const char *what) {
    mimus__onnx_graph *graph = f->graph;
    const char *slice = mimus__onnx_text(graph, "heads.%u.%s", head, what);
    if (mimus__onnx_graph_opset(graph) < FIRST_SLICE_BY_INPUTS) {
        mimus__onnx_node(graph, "Slice", slice, value);
        mimus__onnx_list(graph, "axes", 1);
        mimus__onnx_list(graph, "starts", first);
        mimus__onnx_list(graph, "ends", (int64_t)first + f->schema->head[head].actions);
        return slice;
    }
    mimus__onnx_node(graph, "Slice", slice, value, mimus__onnx_text(graph, "heads.%u.first", head),
                     mimus__onnx_text(graph, "heads.%u.first", head + 1), "columns");
    return slice;
}

/* heads.<head>.<what> = an operation along the columns of one value. */
static const char *add_by_row(const frame *f, const char *op, const char *value, uint32_t head,
                              const char *what) {
    const char *made = mimus__onnx_text(f->graph, "heads.%u.%s", head, what);
    mimus__onnx_node(f->graph, op, made, value);
    if (strncmp(op, "Reduce", strlen("Reduce")) == 0)
        mimus__onnx_list(f->graph, "axes", 1);
    else
        mimus__onnx_integer(f->graph, "axis", 1);
    if (strcmp(op, "Softmax") != 0)
        mimus__onnx_integer(f->graph, "keepdims", 1);
    return made;
}

/* The numbers that a head's actions (batch, 1) stand for. */
static const char *add_values(const frame *f, const char *actions, uint32_t head,
                              const char *what) {
    const char *made = mimus__onnx_text(f->graph, "heads.%u.%s", head, what);
    mimus__onnx_node(f->graph, "Gather", made, mimus__onnx_text(f->graph, "heads.%u.values", head),
                     actions);
    mimus__onnx_integer(f->graph, "axis", 0);
    return made;
}

/* Names of the heads' parts of an output. */
typedef struct parts {
    const char **name; /* (count), and NULLs */
    uint32_t count;
} parts;

static mimus_status parts_new(parts *out, const frame *f) {
    return mimus__alloc(&out->name, (size_t)f->schema->heads + 1, sizeof *out->name);
}

static void parts_add(parts *to, const char *name) {
    to->name[to->count++] = name;
}

static void add_concat(const frame *f, const char *output, const char *const *inputs) {
    mimus__onnx_add_node(f->graph, "Concat", output, inputs);
    mimus__onnx_integer(f->graph, "axis", 1);
}

/* ------------------------------------------------------------ onnxruntime */

typedef struct choices {
    parts probabilities, actions, values;
} choices;

/* One head's probabilities, action and value: 0 where illegal, -1 and NaN where nothing is legal.
 */
static void add_choice(const frame *f, choices *all, uint32_t head, uint32_t first) {
    mimus__onnx_graph *graph = f->graph;
    const char *logits =
        add_slice(f, f->schema->masks ? "masked" : "logits", head, first, "logits");
    const char *softmax = add_by_row(f, "Softmax", logits, head, "softmax");
    const char *best = add_by_row(f, "ArgMax", logits, head, "best");
    const char *value = f->numbers ? add_values(f, best, head, "value") : NULL;
    if (f->schema->masks) {
        const char *legal = add_slice(f, "legal.float", head, first, "legal");
        const char *some = add_by_row(f, "ReduceMax", legal, head, "some");
        const char *any = mimus__onnx_text(graph, "heads.%u.any", head);
        const char *probabilities = mimus__onnx_text(graph, "heads.%u.probabilities", head);
        const char *action = mimus__onnx_text(graph, "heads.%u.action", head);
        const char *masked_value = mimus__onnx_text(graph, "heads.%u.masked_value", head);
        mimus__onnx_node(graph, "Cast", any, some);
        mimus__onnx_integer(graph, "to", MIMUS__ONNX_BOOL);
        mimus__onnx_node(graph, "Mul", probabilities, softmax, legal);
        mimus__onnx_node(graph, "Where", action, any, best, "none");
        if (f->numbers)
            mimus__onnx_node(graph, "Where", masked_value, any, value, "no_number");
        softmax = probabilities;
        best = action;
        value = f->numbers ? masked_value : NULL;
    }
    parts_add(&all->probabilities, softmax);
    parts_add(&all->actions, best);
    parts_add(&all->values, value);
}

static mimus_status add_choices(const frame *f) {
    mimus_status status = MIMUS_OK;
    choices all = {{0}, {0}, {0}};
    MIMUS_TRY(parts_new(&all.probabilities, f));
    MIMUS_TRY(parts_new(&all.actions, f));
    MIMUS_TRY(parts_new(&all.values, f));
    for (uint32_t h = 0, first = 0; h < f->schema->heads; first += f->schema->head[h++].actions)
        add_choice(f, &all, h, first);
    add_concat(f, "probabilities", all.probabilities.name);
    add_concat(f, "actions", all.actions.name);
    if (f->numbers)
        add_concat(f, "values", all.values.name);
out:
    free(all.probabilities.name);
    free(all.actions.name);
    free(all.values.name);
    return status;
}

static void add_mask(const frame *f) {
    mimus__onnx_graph *graph = f->graph;
    /* a number, not an infinity: a row without a legal action must not become NaN */
    mimus__onnx_floats(graph, "lowest", &(const float){-FLT_MAX}, 0, 1);
    if (f->numbers)
        mimus__onnx_floats(graph, "no_number", &(const float){NAN}, 0, 1);
    mimus__onnx_integers(graph, "none", &(const int64_t){-1}, 1);
    mimus__onnx_node(graph, "Where", "masked", "legal", "logits", "lowest");
    mimus__onnx_node(graph, "Cast", "legal.float", "legal");
    mimus__onnx_integer(graph, "to", MIMUS__ONNX_FLOAT);
}

static mimus_status frame_onnxruntime(const frame *f) {
    mimus_status status = MIMUS_OK;
    const int64_t heads = f->schema->heads;
    add_input(f, "senses", MIMUS__ONNX_FLOAT, f->shape->width[0], senses_text);
    if (f->schema->masks)
        add_input(f, "legal", MIMUS__ONNX_BOOL, f->actions, "true = legal, heads in order");
    MIMUS_TRY(add_network(f, "senses"));
    MIMUS_TRY(add_head_constants(f));
    if (f->schema->masks)
        add_mask(f);
    MIMUS_TRY(add_choices(f));
    add_output(f, "logits", MIMUS__ONNX_FLOAT, f->actions,
               "of all heads in order, before the mask");
    add_output(f, "probabilities", MIMUS__ONNX_FLOAT, f->actions,
               "of each head's legal actions, 0 for others");
    add_output(f, "actions", MIMUS__ONNX_INT64, heads,
               "the most probable legal one of each head, -1 where there is none");
    if (f->numbers)
        add_output(f, "values", MIMUS__ONNX_FLOAT, heads,
                   "the numbers that the actions stand for, NaN where there is none");
out:
    return status;
}

/* ------------------------------------------------------------------ Unity */

static mimus_status add_observations(const frame *f, const char **senses) {
    mimus_status status = MIMUS_OK;
    const char **names = NULL;
    uint32_t count = f->inputs->count > 0 ? f->inputs->count : 1;
    MIMUS_TRY(mimus__alloc(&names, (size_t)count + 1, sizeof *names));
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = f->inputs->count > 0 ? f->inputs->size[i] : f->shape->senses;
        names[i] = mimus__onnx_text(f->graph, "obs_%u", i);
        add_input(f, names[i], MIMUS__ONNX_FLOAT, size * f->shape->stack, senses_text);
    }
    *senses = names[0];
    if (count > 1) {
        *senses = "senses";
        add_concat(f, *senses, names);
    }
out:
    free(names);
    return status;
}

/* What ML-Agents looks up before it runs anything: constants that are outputs by themselves. */
static mimus_status add_unity_constants(const frame *f) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = f->schema;
    const float continuous = (float)(schema->heads - f->branches);
    float *sizes = NULL;
    uint32_t count = 0;
    MIMUS_TRY(mimus__alloc(&sizes, schema->heads, sizeof *sizes));
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (schema->head[h].bin_values == NULL)
            sizes[count++] = (float)schema->head[h].actions;
    }
    mimus__onnx_floats(f->graph, "version_number", &(const float){3}, 0, 1);
    mimus__onnx_floats(f->graph, "memory_size", &(const float){0}, 0, 1);
    if (f->branches < schema->heads)
        mimus__onnx_floats(f->graph, "continuous_action_output_shape", &continuous, 0, 1);
    if (f->branches > 0)
        mimus__onnx_floats(f->graph, "discrete_action_output_shape", sizes, 1, f->branches);
out:
    free(sizes);
    return status;
}

/* logits * m - 1e8 * (1 - m), as ML-Agents has it: exact where m is 1. */
static const char *add_unity_mask(const frame *f, const char *logits, uint32_t head,
                                  uint32_t first) {
    mimus__onnx_graph *graph = f->graph;
    const char *allowed = add_slice(f, "action_masks", head, first, "allowed");
    const char *forbidden = mimus__onnx_text(graph, "heads.%u.forbidden", head);
    const char *far = mimus__onnx_text(graph, "heads.%u.far", head);
    const char *kept = mimus__onnx_text(graph, "heads.%u.kept", head);
    const char *masked = mimus__onnx_text(graph, "heads.%u.masked", head);
    mimus__onnx_node(graph, "Sub", forbidden, "all", allowed);
    mimus__onnx_node(graph, "Mul", far, forbidden, "far");
    mimus__onnx_node(graph, "Mul", kept, logits, allowed);
    mimus__onnx_node(graph, "Sub", masked, kept, far);
    return masked;
}

/* An action of masked logits, drawn by probability. */
static const char *add_draw(const frame *f, const char *logits, uint32_t head) {
    const char *softmax = add_by_row(f, "Softmax", logits, head, "softmax");
    const char *log = mimus__onnx_text(f->graph, "heads.%u.log", head);
    const char *drawn = mimus__onnx_text(f->graph, "heads.%u.drawn", head);
    mimus__onnx_node(f->graph, "Log", log, softmax);
    mimus__onnx_node(f->graph, "Multinomial", drawn, log);
    mimus__onnx_integer(f->graph, "dtype", MIMUS__ONNX_INT64);
    mimus__onnx_integer(f->graph, "sample_size", 1);
    return drawn;
}

/* A head of bins is a continuous action, any other a discrete branch. */
typedef struct unity_actions {
    parts drawn, best;               /* of the branches */
    parts drawn_number, best_number; /* of the continuous actions */
} unity_actions;

static mimus_status add_unity_heads(const frame *f, unity_actions *all) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(parts_new(&all->drawn, f));
    MIMUS_TRY(parts_new(&all->best, f));
    MIMUS_TRY(parts_new(&all->drawn_number, f));
    MIMUS_TRY(parts_new(&all->best_number, f));
    for (uint32_t h = 0, first = 0, branch_first = 0; h < f->schema->heads;
         first += f->schema->head[h++].actions) {
        const char *logits = add_slice(f, "logits", h, first, "logits");
        bool branch = f->schema->head[h].bin_values == NULL;
        if (branch) {
            logits = add_unity_mask(f, logits, h, branch_first);
            branch_first += f->schema->head[h].actions;
        }
        const char *drawn = add_draw(f, logits, h);
        const char *best = add_by_row(f, "ArgMax", logits, h, "best");
        parts_add(branch ? &all->drawn : &all->drawn_number,
                  branch ? drawn : add_values(f, drawn, h, "drawn_value"));
        parts_add(branch ? &all->best : &all->best_number,
                  branch ? best : add_values(f, best, h, "best_value"));
    }
out:
    return status;
}

static void add_continuous_outputs(const frame *f, const unity_actions *all) {
    const mimus__onnx_value size = {
        "continuous_action_output_shape", MIMUS__ONNX_FLOAT, 1, {1}, "continuous actions"};
    add_concat(f, "continuous_actions", all->drawn_number.name);
    add_concat(f, "deterministic_continuous_actions", all->best_number.name);
    add_output(f, "continuous_actions", MIMUS__ONNX_FLOAT, all->drawn_number.count,
               "values of bins, drawn by probability");
    mimus__onnx_output(f->graph, &size);
    add_output(f, "deterministic_continuous_actions", MIMUS__ONNX_FLOAT, all->best_number.count,
               "values of the most probable bins");
}

static void add_discrete_outputs(const frame *f, const unity_actions *all) {
    const mimus__onnx_value sizes = {"discrete_action_output_shape",
                                     MIMUS__ONNX_FLOAT,
                                     2,
                                     {1, f->branches},
                                     "actions of each branch"};
    add_concat(f, "discrete_actions", all->drawn.name);
    add_concat(f, "deterministic_discrete_actions", all->best.name);
    add_output(f, "discrete_actions", MIMUS__ONNX_INT64, f->branches, "drawn by probability");
    mimus__onnx_output(f->graph, &sizes);
    add_output(f, "deterministic_discrete_actions", MIMUS__ONNX_INT64, f->branches,
               "the most probable");
}

static mimus_status add_unity_outputs(const frame *f) {
    mimus_status status = MIMUS_OK;
    unity_actions all = {{0}, {0}, {0}, {0}};
    const mimus__onnx_value version = {
        "version_number", MIMUS__ONNX_FLOAT, 1, {1}, "of ML-Agents' model format"};
    const mimus__onnx_value memory = {
        "memory_size", MIMUS__ONNX_FLOAT, 1, {1}, "nothing is recurrent"};
    MIMUS_TRY(add_unity_heads(f, &all));
    mimus__onnx_output(f->graph, &version);
    mimus__onnx_output(f->graph, &memory);
    if (all.best_number.count > 0)
        add_continuous_outputs(f, &all);
    if (all.best.count > 0)
        add_discrete_outputs(f, &all);
out:
    free(all.drawn.name);
    free(all.best.name);
    free(all.drawn_number.name);
    free(all.best_number.name);
    return status;
}

static mimus_status frame_unity(const frame *f) {
    mimus_status status = MIMUS_OK;
    const char *senses;
    uint32_t masked = 0;
    for (uint32_t h = 0; h < f->schema->heads; h++)
        masked += f->schema->head[h].bin_values == NULL ? f->schema->head[h].actions : 0;
    MIMUS_TRY(add_observations(f, &senses));
    if (masked > 0) {
        add_input(f, "action_masks", MIMUS__ONNX_FLOAT, masked,
                  "1 = allowed, 0 = forbidden; branches in order");
        mimus__onnx_floats(f->graph, "all", &(const float){1}, 0, 1);
        mimus__onnx_floats(f->graph, "far", &(const float){1e8f}, 0, 1);
    }
    MIMUS_TRY(add_unity_constants(f));
    MIMUS_TRY(add_network(f, senses));
    MIMUS_TRY(add_head_constants(f));
    MIMUS_TRY(add_unity_outputs(f));
out:
    return status;
}

/* ------------------------------------------------------------------ Godot */

/* The add-on looks for an action's largest logit from 0 upwards, and would take the first action
 * where all are below: each head's smallest logit becomes 0, which changes no probability. A head
 * of bins is a continuous action, for which the add-on takes the number itself. */
static mimus_status add_godot_output(const frame *f) {
    mimus_status status = MIMUS_OK;
    parts all = {0};
    int64_t columns = 0;
    MIMUS_TRY(parts_new(&all, f));
    for (uint32_t h = 0, first = 0; h < f->schema->heads; first += f->schema->head[h++].actions) {
        const char *logits = add_slice(f, "logits", h, first, "logits");
        if (f->schema->head[h].bin_values != NULL) {
            parts_add(&all, add_values(f, add_by_row(f, "ArgMax", logits, h, "best"), h, "value"));
            columns++;
            continue;
        }
        const char *least = add_by_row(f, "ReduceMin", logits, h, "least");
        const char *shifted = mimus__onnx_text(f->graph, "heads.%u.shifted", h);
        mimus__onnx_node(f->graph, "Sub", shifted, logits, least);
        parts_add(&all, shifted);
        columns += f->schema->head[h].actions;
    }
    add_concat(f, "output", all.name);
    add_output(f, "output", MIMUS__ONNX_FLOAT, columns,
               "of all heads in order: logits with the smallest at 0, or the number");
out:
    free(all.name);
    return status;
}

static mimus_status frame_godot(const frame *f) {
    mimus_status status = MIMUS_OK;
    const mimus__onnx_value state_ins = {"state_ins", MIMUS__ONNX_FLOAT, 1, {0}, "not used"};
    const mimus__onnx_value state_outs = {"state_outs", MIMUS__ONNX_FLOAT, 1, {0}, "state_ins"};
    add_input(f, "obs", MIMUS__ONNX_FLOAT, f->shape->width[0], senses_text);
    mimus__onnx_input(f->graph, &state_ins);
    MIMUS_TRY(add_network(f, "obs"));
    MIMUS_TRY(add_head_constants(f));
    MIMUS_TRY(add_godot_output(f));
    mimus__onnx_node(f->graph, "Identity", "state_outs", "state_ins");
    mimus__onnx_output(f->graph, &state_outs);
out:
    return status;
}

/* ------------------------------------------------------------------- whole */

/* What a reader of the file can know about the numbers. */
static mimus_status add_metadata(const frame *f) {
    mimus_status status = MIMUS_OK;
    json_t *schema = NULL;
    char *text = NULL;
    MIMUS_TRY(mimus__schema_to_json(&schema, f->schema));
    MIMUS_TRY(mimus__json_text(&text, schema, JSON_COMPACT));
    mimus__onnx_metadata(f->graph, "mimus.schema", text);
    mimus__onnx_metadata(f->graph, "mimus.stack",
                         mimus__onnx_text(f->graph, "%u", f->shape->stack));
    mimus__onnx_describe(
        f->graph,
        mimus__onnx_text(f->graph,
                         "a policy of %u senses (%u samples seen at once) and %u heads with %u "
                         "actions together; mimus.schema names them in their order",
                         f->shape->senses, f->shape->stack, f->schema->heads, f->actions));
out:
    json_decref(schema);
    free(text);
    return status;
}

mimus_status mimus__onnx_write(FILE *stream, const mimus__model *model, mimus__onnx_target target,
                               const mimus__onnx_inputs *inputs) {
    static mimus_status (*const frames[])(const frame *f) = {
        [MIMUS__ONNX_ONNXRUNTIME] = frame_onnxruntime,
        [MIMUS__ONNX_UNITY] = frame_unity,
        [MIMUS__ONNX_GODOT] = frame_godot,
    };
    mimus_status status = MIMUS_OK;
    bool unity = target == MIMUS__ONNX_UNITY;
    frame f = {.model = model,
               .inputs = inputs,
               .schema = model->schema,
               .shape = &model->shape,
               .actions = mimus__schema_actions(model->schema)};
    for (uint32_t h = 0; h < f.schema->heads; h++)
        f.branches += f.schema->head[h].bin_values == NULL;
    f.numbers = f.branches < f.schema->heads;
    MIMUS_TRY(check_inputs(model, target, inputs));
    MIMUS_TRY(mimus__onnx_graph_new(&f.graph, unity ? UNITY_IR_VERSION : IR_VERSION,
                                    unity ? UNITY_OPSET : OPSET));
    MIMUS_TRY(frames[target](&f));
    MIMUS_TRY(add_metadata(&f));
    MIMUS_TRY(mimus__onnx_graph_write(f.graph, stream));
out:
    mimus__onnx_graph_free(f.graph);
    return status;
}

/* ONNX models: what is written, read back by the interpreter and held against the policy and the
 * double-precision reference; and what the interpreter refuses. */
#include "support.h"

#include "alloc.h"
#include "compare.h"
#include "made_model.h"
#include "onnx.h"
#include "onnx.pb-c.h"
#include "onnx_run.h"
#include "policy.h"
#include "reference.h"
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mimus__onnx_inputs one_input = {NULL, 0};

/* A written model in memory. */
typedef struct written {
    char *bytes;
    size_t size;
} written;

static written write_model(const mimus__model *model, mimus__onnx_target target,
                           const mimus__onnx_inputs *inputs) {
    written out;
    FILE *stream = open_memstream(&out.bytes, &out.size);
    test_ok(mimus__onnx_write(stream, model, target, inputs));
    ck_assert(!ferror(stream));
    fclose(stream);
    return out;
}

typedef struct subject {
    mimus__model *model;
    mimus_policy *policy;
    mimus__samples samples;
    mimus__phase phase;
    mimus__trial trial;
} subject;

static subject subject_new(const test_network *network) {
    subject s = {.model = test_model(network, 7)};
    test_ok(mimus__policy_new(&s.policy, s.model));
    test_ok(mimus__samples_make_up(&s.samples, s.model, 300));
    s.phase = mimus__phase_begin(NULL, "check", 0);
    return s;
}

static mimus_status try_bytes(subject *s, const written *file, mimus__onnx_target target,
                              const mimus__onnx_inputs *inputs) {
    s->trial = (mimus__trial){.where = "policy.onnx",
                              .model = s->model,
                              .policy = s->policy,
                              .samples = &s->samples,
                              .phase = &s->phase};
    return mimus__trial_onnx(&s->trial, file->bytes, file->size, target, inputs);
}

static void subject_free(subject *s) {
    mimus__samples_clear(&s->samples);
    mimus_policy_free(s->policy);
    mimus__model_free(s->model);
}

/* ------------------------------------------------------------------- right */

static const test_network networks[] = {
    {5, 1, MIMUS__RELU, {64, 63}, 3, test_heads, true},
    {63, 3, MIMUS__GELU, {16}, 3, test_heads, true},
    {7, 2, MIMUS__TANH, {8, 8, 8}, 3, test_heads, false},
    {4, 1, MIMUS__IDENTITY, {3}, 1, test_heads, true},
    {4, 1, MIMUS__GELU, {0}, 1, test_heads, false},
    {6, 1, MIMUS__RELU, {9}, 1, test_heads + 1, false}, /* nothing but bins */
    {6, 2, MIMUS__RELU, {9}, 1, test_heads + 1, true},
    {1, 8, MIMUS__TANH, {1}, 2, test_heads + 1, true},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

START_TEST(every_target_computes_the_policy) {
    subject s = subject_new(&networks[_i]);
    for (int t = MIMUS__ONNX_ONNXRUNTIME; t <= MIMUS__ONNX_GODOT; t++) {
        written file = write_model(s.model, (mimus__onnx_target)t, &one_input);
        test_ok(try_bytes(&s, &file, (mimus__onnx_target)t, &one_input));
        ck_assert(s.trial.difference <= 1e-6); /* the sums have the same order */
        ck_assert_uint_eq(s.trial.ties, 0);
        free(file.bytes);
    }
    subject_free(&s);
}
END_TEST

START_TEST(several_observations_stack_by_themselves) {
    const uint32_t sizes[] = {40, 1, 22};
    const mimus__onnx_inputs inputs = {sizes, 3};
    subject s = subject_new(&networks[1]);
    written file = write_model(s.model, MIMUS__ONNX_UNITY, &inputs);
    test_ok(try_bytes(&s, &file, MIMUS__ONNX_UNITY, &inputs));
    ck_assert(s.trial.difference > 0 && s.trial.difference < 1e-4); /* another order */
    /* sensor 0: columns 0 to 119; sensor 2 begins behind 3 * 41 columns, its second sample 22 on */
    ck_assert_uint_eq(mimus__onnx_column(&s.model->shape, &inputs, 0), 0);
    ck_assert_uint_eq(mimus__onnx_column(&s.model->shape, &inputs, 40), 63);
    ck_assert_uint_eq(mimus__onnx_column(&s.model->shape, &inputs, 121), 63 + 40);
    ck_assert_uint_eq(mimus__onnx_column(&s.model->shape, &inputs, 123 + 22 + 5), 63 + 41 + 5);
    free(file.bytes);
    subject_free(&s);
}
END_TEST

START_TEST(the_interpreter_computes_the_reference) {
    enum { ROWS = 65 };
    const test_network *network = &networks[0];
    subject s = subject_new(network);
    const uint32_t actions[] = {2, 5, 63};
    mimus__reference_network reference;
    mimus__onnx_run *run;
    const float *logits;
    double *wanted;
    written file = write_model(s.model, MIMUS__ONNX_ONNXRUNTIME, &one_input);
    test_ok(mimus__reference_init(&reference, &s.model->shape, 3, actions, ROWS));
    mimus__reference_set_normalisation(&reference, s.model->mean, s.model->scale);
    mimus__reference_set_parameters(&reference, s.model->parameters);
    test_ok(mimus__alloc(&wanted, ROWS * 70, sizeof *wanted));
    mimus__reference_forward(&reference,
                             &(mimus__reference_batch){.rows = ROWS, .senses = s.samples.senses},
                             false, wanted);
    test_ok(mimus__onnx_run_new(&run, file.bytes, file.size, "policy.onnx"));
    test_ok(mimus__onnx_run_set_floats(run, "senses", ROWS, 5, s.samples.senses));
    test_ok(mimus__onnx_run_set_bools(run, "legal", ROWS, 70, s.samples.legal));
    test_ok(mimus__onnx_run_compute(run, 0));
    test_ok(mimus__onnx_run_floats(run, "logits", ROWS, 70, &logits));
    compare_check_floats("logits", logits, wanted, ROWS, 70, (compare_tolerance){1e-5, 1e-5});
    mimus__onnx_run_free(run);
    mimus__reference_clear(&reference);
    free(wanted);
    free(file.bytes);
    subject_free(&s);
}
END_TEST

START_TEST(a_head_without_a_legal_action_gives_none) {
    subject s = subject_new(&networks[0]);
    written file = write_model(s.model, MIMUS__ONNX_ONNXRUNTIME, &one_input);
    for (size_t row = 0; row < s.samples.count; row++)
        memset(s.samples.legal + row * 70 + 2, 0, 5); /* the head of bins */
    test_ok(try_bytes(&s, &file, MIMUS__ONNX_ONNXRUNTIME, &one_input));
    free(file.bytes);
    file = write_model(s.model, MIMUS__ONNX_UNITY, &one_input);
    memset(s.samples.legal, 0, (size_t)s.samples.count * 70);
    test_ok(try_bytes(&s, &file, MIMUS__ONNX_UNITY, &one_input));
    free(file.bytes);
    subject_free(&s);
}
END_TEST

START_TEST(observations_have_to_fit) {
    const uint32_t sizes[] = {3, 1}, nothing[] = {5, 0};
    subject s = subject_new(&networks[0]);
    FILE *stream = tmpfile();
    test_fails(
        mimus__onnx_write(stream, s.model, MIMUS__ONNX_UNITY, &(mimus__onnx_inputs){sizes, 2}),
        MIMUS_ERR_ARGUMENT, "have 4 senses together, the policy has 5");
    test_fails(
        mimus__onnx_write(stream, s.model, MIMUS__ONNX_UNITY, &(mimus__onnx_inputs){nothing, 2}),
        MIMUS_ERR_ARGUMENT, "observation 1 has no senses");
    test_fails(
        mimus__onnx_write(stream, s.model, MIMUS__ONNX_GODOT, &(mimus__onnx_inputs){sizes, 2}),
        MIMUS_ERR_ARGUMENT, "only Unity takes more than one");
    fclose(stream);
    subject_free(&s);
}
END_TEST

/* Sizes of the sensors as a text: "2 1", or "-" where the names say nothing. */
static const char *sensors_of(uint32_t senses, const char *const *names) {
    static char text[64];
    const mimus_schema schema = {
        .senses = senses, .sense_names = names, .heads = 1, .head = test_heads};
    uint32_t *size, count;
    test_ok(mimus__onnx_sensors(&size, &count, &schema));
    snprintf(text, sizeof text, "%s", size != NULL ? "" : "-");
    for (uint32_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", i > 0 ? " " : "",
                 size[i]);
    free(size);
    return text;
}
#define sensors(...)                                                                               \
    sensors_of(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                             \
               (const char *[]){__VA_ARGS__})

START_TEST(sensors_are_told_by_their_senses_names) {
    ck_assert_str_eq(sensors("Rays[0]", "Rays[1]", "Rays[2]", "Speed", "Walls[0]", "Walls[1]"),
                     "3 1 2");
    ck_assert_str_eq(sensors("a[0]"), "1");
    ck_assert_str_eq(sensors("a[0]", "a[0]", "a[1]"), "1 2");
    ck_assert_str_eq(sensors("a[b][0]", "a[b][1]"), "2");
    ck_assert_str_eq(sensors("x", "y", "speed"), "-");
    ck_assert_str_eq(sensors("a[0]", "a[2]"), "-");
    ck_assert_str_eq(sensors("a[1]", "a[2]"), "-");
    ck_assert_str_eq(sensors("a[0]", "b[1]"), "-");
    ck_assert_str_eq(sensors("a[0]", "ab[1]"), "-");
    ck_assert_str_eq(sensors("a[]", "a[x]", "[99999999999999999999]", ""), "-");
    ck_assert_str_eq(sensors_of(3, NULL), "-");
}
END_TEST

/* ------------------------------------------------------------------- wrong */

/* The model with one thing changed. */
static written change(const written *file, void (*edit)(Mimus__Onnx__Model *model)) {
    Mimus__Onnx__Model *model =
        mimus__onnx__model__unpack(NULL, file->size, (const uint8_t *)file->bytes);
    written out;
    ck_assert_ptr_nonnull(model);
    edit(model);
    out.size = mimus__onnx__model__get_packed_size(model);
    test_ok(mimus__alloc(&out.bytes, out.size, 1));
    mimus__onnx__model__pack(model, (uint8_t *)out.bytes);
    mimus__onnx__model__free_unpacked(model, NULL);
    return out;
}

static Mimus__Onnx__Node *node(Mimus__Onnx__Model *model, const char *output) {
    for (size_t i = 0; i < model->graph->n_node; i++) {
        if (strcmp(model->graph->node[i]->output[0], output) == 0)
            return model->graph->node[i];
    }
    ck_abort_msg("no node %s", output);
}

static float *constant(Mimus__Onnx__Model *model, const char *name) {
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        if (strcmp(model->graph->initializer[i]->name, name) == 0)
            return (float *)(void *)model->graph->initializer[i]->raw_data.data;
    }
    ck_abort_msg("no constant %s", name);
}

static void set_text(char **text, const char *to) {
    free(*text);
    *text = strdup(to);
}

static void other_weight(Mimus__Onnx__Model *model) {
    constant(model, "layers.1.weight")[5] += 0.001f;
}
static void other_mean(Mimus__Onnx__Model *model) {
    constant(model, "mean")[0] += 0.001f;
}
static void other_sign(Mimus__Onnx__Model *model) { /* the least probable */
    set_text(&node(model, "heads.0.best")->input[0], "heads.0.softmax");
    set_text(&node(model, "heads.0.softmax")->input[0], "heads.2.logits");
}
static void other_value(Mimus__Onnx__Model *model) {
    constant(model, "heads.1.values")[2] = 17;
}
static void no_mask(Mimus__Onnx__Model *model) {
    set_text(&node(model, "heads.2.logits")->input[0], "logits");
}
static void other_operation(Mimus__Onnx__Model *model) {
    set_text(&node(model, "centred")->op_type, "Div");
}
static void other_attribute(Mimus__Onnx__Model *model) {
    set_text(&node(model, "logits")->attribute[0]->name, "transA");
}
static void other_axis(Mimus__Onnx__Model *model) {
    node(model, "actions")->attribute[0]->i = 0;
}
static void unknown_input(Mimus__Onnx__Model *model) {
    set_text(&node(model, "normalised")->input[0], "nowhere");
}
static void from_behind(Mimus__Onnx__Model *model) {
    set_text(&node(model, "normalised")->input[0], "layers.0");
}
static void twice(Mimus__Onnx__Model *model) {
    set_text(&node(model, "normalised")->output[0], "centred");
}
static void other_shape(Mimus__Onnx__Model *model) {
    model->graph->output[0]->type->tensor_type->shape->dim[1]->dim_value = 69;
}
static void other_type(Mimus__Onnx__Model *model) {
    model->graph->output[0]->type->tensor_type->elem_type = 7;
}
static void short_constant(Mimus__Onnx__Model *model) {
    model->graph->initializer[0]->raw_data.len -= 4;
}
static void large_constant(Mimus__Onnx__Model *model) {
    model->graph->initializer[0]->dims[0] = INT64_MAX;
}
static void other_opset(Mimus__Onnx__Model *model) {
    model->opset_import[0]->version = 18;
}
static void no_outputs(Mimus__Onnx__Model *model) {
    free(model->graph->output[0]->name);
    model->graph->output[0]->name = NULL;
}
static void slice_too_far(Mimus__Onnx__Model *model) {
    int64_t far = 71;
    memcpy(constant(model, "heads.3.first"), &far, sizeof far);
}

static const struct {
    void (*edit)(Mimus__Onnx__Model *model);
    mimus_status status;
    const char *says;
} changes[] = {
    {other_weight, MIMUS_ERR_DATA, "policy.onnx: made up sample 16, head \"gun\": a logit is"},
    {other_mean, MIMUS_ERR_DATA, "a logit is"},
    {other_sign, MIMUS_ERR_FORMAT, "heads.0.softmax"},
    {other_value, MIMUS_ERR_DATA, "head \"steer\": the chosen number is 17"},
    {no_mask, MIMUS_ERR_DATA, "head \"head2\": the chosen action is"},
    {other_operation, MIMUS_ERR_UNSUPPORTED, "node \"centred\": the operation Div is not known"},
    {other_attribute, MIMUS_ERR_FORMAT, "node \"logits\" is not as mimus writes it"},
    {other_axis, MIMUS_ERR_FORMAT, "node \"actions\" (Concat)"},
    {unknown_input, MIMUS_ERR_FORMAT, "node \"normalised\""},
    {from_behind, MIMUS_ERR_FORMAT, "node \"normalised\" (Mul): an input of it is made behind it"},
    {twice, MIMUS_ERR_FORMAT, "the repeated name \"centred\""},
    {other_shape, MIMUS_ERR_FORMAT, "output \"logits\""},
    {other_type, MIMUS_ERR_FORMAT, "output \"logits\""},
    {short_constant, MIMUS_ERR_FORMAT, "constant \"mean\""},
    {large_constant, MIMUS_ERR_FORMAT, "constant \"mean\""},
    {other_opset, MIMUS_ERR_FORMAT, "one operator set from 9 to 17"},
    {no_outputs, MIMUS_ERR_FORMAT, "output \"\""},
    {slice_too_far, MIMUS_ERR_FORMAT, "slices floats along the columns"},
};
enum { CHANGES = sizeof changes / sizeof *changes };

START_TEST(what_is_not_the_policy_is_found) {
    subject s = subject_new(&networks[0]);
    written file = write_model(s.model, MIMUS__ONNX_ONNXRUNTIME, &one_input);
    written changed = change(&file, changes[_i].edit);
    test_fails(try_bytes(&s, &changed, MIMUS__ONNX_ONNXRUNTIME, &one_input), changes[_i].status,
               changes[_i].says);
    free(changed.bytes);
    free(file.bytes);
    subject_free(&s);
}
END_TEST

static void drawn_illegal(Mimus__Onnx__Model *model) {
    set_text(&node(model, "heads.2.softmax")->input[0], "heads.2.logits");
}

START_TEST(an_illegal_draw_is_found) {
    subject s = subject_new(&networks[0]);
    written file = write_model(s.model, MIMUS__ONNX_UNITY, &one_input);
    written changed = change(&file, drawn_illegal);
    test_fails(try_bytes(&s, &changed, MIMUS__ONNX_UNITY, &one_input), MIMUS_ERR_DATA,
               "head \"head2\": an action that is not legal was drawn");
    free(changed.bytes);
    free(file.bytes);
    subject_free(&s);
}
END_TEST

/* Every beginning of a file, and every file with one byte changed, is refused or computed, without
 * an access that a sanitizer minds. */
START_TEST(damage_does_no_harm) {
    const test_network small = {2, 1, MIMUS__RELU, {2}, 1, test_heads, true};
    subject s = subject_new(&small);
    written file = write_model(s.model, MIMUS__ONNX_ONNXRUNTIME, &one_input);
    mimus__samples_clear(&s.samples);
    test_ok(mimus__samples_make_up(&s.samples, s.model, 2));
    for (size_t i = 0; i < file.size; i++) {
        const written cut = {file.bytes, i};
        char kept = file.bytes[i];
        (void)try_bytes(&s, &cut, MIMUS__ONNX_ONNXRUNTIME, &one_input);
        for (int bit = 0; bit < 8; bit++) {
            file.bytes[i] = (char)(kept ^ (1 << bit));
            (void)try_bytes(&s, &file, MIMUS__ONNX_ONNXRUNTIME, &one_input);
        }
        file.bytes[i] = kept;
    }
    test_ok(try_bytes(&s, &file, MIMUS__ONNX_ONNXRUNTIME, &one_input));
    test_fails(
        try_bytes(&s, &(written){file.bytes, file.size - 1}, MIMUS__ONNX_ONNXRUNTIME, &one_input),
        MIMUS_ERR_FORMAT, "policy.onnx: not an ONNX model");
    free(file.bytes);
    subject_free(&s);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("onnx");
    TCase *all = tcase_create("onnx");
    tcase_add_loop_test(all, every_target_computes_the_policy, 0, NETWORKS);
    tcase_add_test(all, several_observations_stack_by_themselves);
    tcase_add_test(all, the_interpreter_computes_the_reference);
    tcase_add_test(all, a_head_without_a_legal_action_gives_none);
    tcase_add_test(all, observations_have_to_fit);
    tcase_add_test(all, sensors_are_told_by_their_senses_names);
    tcase_add_loop_test(all, what_is_not_the_policy_is_found, 0, CHANGES);
    tcase_add_test(all, an_illegal_draw_is_found);
    tcase_add_test(all, damage_does_no_harm);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

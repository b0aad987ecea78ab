/* Models and checkpoints: round trips to the bit, a file of the format's reference implementation,
 * and every way a file can lie. */
#include "support.h"

#include "alloc.h"
#include "file.h"
#include "model.h"
#include "safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const sense_names[] = {"x", "y", "z"};
static const char *const gun_actions[] = {"hold", "fire"};
static const mimus_head heads[] = {{.name = "gun", .actions = 2, .action_names = gun_actions},
                                   {.name = "move", .actions = 3}};
static const mimus_schema schema = {
    .senses = 3, .sense_names = sense_names, .heads = 2, .head = heads, .masks = true};
static const mimus__shape shape = {
    .senses = 3, .stack = 2, .layers = 2, .width = {6, 4, 5}, .activation = MIMUS__GELU};

/* Distinct values whose bits matter. */
static void fill(float *values, size_t count, float first) {
    for (size_t i = 0; i < count; i++)
        values[i] = first + (float)i / 3.0f;
}

static mimus__model *filled_model(const mimus_schema *of, const mimus__shape *with, bool state) {
    mimus__model *model;
    test_ok(mimus__model_new(&model, of, with, state));
    size_t parameters = mimus__shape_parameters(with);
    fill(model->mean, with->senses, -1);
    fill(model->scale, with->senses, 0.1f);
    fill(model->parameters, parameters, -7);
    ck_assert_int_eq(json_object_set_new(model->config, "lr", json_real(0.1)), 0);
    ck_assert_int_eq(json_object_set_new(model->facts, "note", json_string("a \"b\" \xc3\xa9")), 0);
    if (state) {
        fill(model->state->moment1, parameters, 1e-30f);
        fill(model->state->moment2, parameters, 5);
        model->state->epoch = 7;
        model->state->step = (uint64_t)1 << 53 | 1; /* past what a double can count */
        model->state->correction1 = 0.1f;
        model->state->correction2 = nextafterf(0.001f, 1);
        model->state->best = 1.0 / 3;
        model->state->best_epoch = 5;
        model->state->stale = 2;
    }
    return model;
}

static void assert_same_model(const mimus__model *a, const mimus__model *b) {
    size_t parameters = mimus__shape_parameters(&a->shape);
    test_ok(mimus__schema_match(a->schema, "a", b->schema, "b", true));
    ck_assert_uint_eq(a->shape.stack, b->shape.stack);
    ck_assert_uint_eq(a->shape.layers, b->shape.layers);
    ck_assert_mem_eq(a->shape.width, b->shape.width, (a->shape.layers + 1) * sizeof(uint32_t));
    ck_assert_int_eq(a->shape.activation, b->shape.activation);
    ck_assert_mem_eq(a->mean, b->mean, a->shape.senses * sizeof(float));
    ck_assert_mem_eq(a->scale, b->scale, a->shape.senses * sizeof(float));
    ck_assert_mem_eq(a->parameters, b->parameters, parameters * sizeof(float));
    ck_assert(json_equal(a->config, b->config));
    ck_assert(json_equal(a->facts, b->facts));
    ck_assert_int_eq(a->state != NULL, b->state != NULL);
    if (a->state == NULL)
        return;
    ck_assert_int_eq(a->state->moment1 != NULL, b->state->moment1 != NULL);
    ck_assert_int_eq(a->state->moment2 != NULL, b->state->moment2 != NULL);
    if (a->state->moment1 != NULL)
        ck_assert_mem_eq(a->state->moment1, b->state->moment1, parameters * sizeof(float));
    if (a->state->moment2 != NULL)
        ck_assert_mem_eq(a->state->moment2, b->state->moment2, parameters * sizeof(float));
    ck_assert_uint_eq(a->state->epoch, b->state->epoch);
    ck_assert_uint_eq(a->state->step, b->state->step);
    ck_assert_mem_eq(&a->state->correction1, &b->state->correction1, sizeof(float));
    ck_assert_mem_eq(&a->state->correction2, &b->state->correction2, sizeof(float));
    ck_assert_mem_eq(&a->state->best, &b->state->best, sizeof(double));
    ck_assert_uint_eq(a->state->best_epoch, b->state->best_epoch);
    ck_assert_uint_eq(a->state->stale, b->state->stale);
}

static void assert_round_trip(const mimus__model *model) {
    mimus__model *back;
    const char *path = test_folder_path("model.safetensors");
    test_ok(mimus__model_save(model, path));
    test_ok(mimus__model_load(&back, path));
    assert_same_model(model, back);
    mimus__model_free(back);
}

/* ------------------------------------------------------------------- shape */

START_TEST(a_shape_counts_its_parameters) {
    ck_assert_uint_eq(mimus__shape_parameters(&shape), 7 * 4 + 5 * 5);
    ck_assert_uint_eq(mimus__shape_weight_offset(&shape, 0), 0);
    ck_assert_uint_eq(mimus__shape_bias_offset(&shape, 0), 24);
    ck_assert_uint_eq(mimus__shape_weight_offset(&shape, 1), 28);
    ck_assert_uint_eq(mimus__shape_bias_offset(&shape, 1), 48);
}
END_TEST

START_TEST(impossible_shapes_are_refused) {
    mimus__model *model;
    mimus__shape bad = shape;
    bad.layers = 0;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED, "0 layers");
    bad.layers = 17;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED, "17 layers");
    bad = shape;
    bad.width[1] = 0;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED, "width of 0");
    bad = shape;
    bad.stack = 3;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED, "6 inputs");
    bad = shape;
    bad.width[2] = 6;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED,
               "6 outputs for the schema's 5 actions");
    bad = shape;
    bad.width[1] = UINT32_MAX;
    test_fails(mimus__model_new(&model, &schema, &bad, false), MIMUS_ERR_UNSUPPORTED,
               "more than 268435456 parameters");
    ck_assert_ptr_null(model);
}
END_TEST

START_TEST(activations_have_names) {
    mimus__activation activation;
    for (int i = MIMUS__IDENTITY; i <= MIMUS__GELU; i++) {
        ck_assert(
            mimus__activation_parse(mimus__activation_name((mimus__activation)i), &activation));
        ck_assert_int_eq(activation, i);
    }
    ck_assert(!mimus__activation_parse("swish", &activation));
}
END_TEST

/* Bounds are kept and nearly reached, the mean is near 0, and streams differ. */
START_TEST(initial_weights_have_their_bounds) {
    const mimus__activation kinds[] = {MIMUS__RELU, MIMUS__TANH, MIMUS__GELU};
    for (int k = 0; k < 3; k++) {
        mimus__shape net = {
            .senses = 63, .stack = 1, .layers = 2, .width = {63, 65, 5}, .activation = kinds[k]};
        enum { P = 64 * 65 + 66 * 5 };
        float parameters[P], other[P], again[P];
        ck_assert_uint_eq(mimus__shape_parameters(&net), P);
        /* relu, gelu: sqrt(6 / 63); tanh: sqrt(6 / 128); the last layer: sqrt(6 / 70) / 10 */
        double bounds[] = {k == 1 ? sqrt(6.0 / 128) : sqrt(6.0 / 63), sqrt(6.0 / 70) / 10};
        mimus__model_initialise(&net, parameters, 1, 0);
        mimus__model_initialise(&net, again, 1, 0);
        mimus__model_initialise(&net, other, 1, 1);
        ck_assert_mem_eq(parameters, again, sizeof parameters);
        for (uint32_t l = 0; l < 2; l++) {
            const float *weight = parameters + mimus__shape_weight_offset(&net, l);
            size_t count = (size_t)net.width[l] * net.width[l + 1];
            double most = 0, sum = 0;
            size_t same = 0;
            for (size_t i = 0; i < count; i++) {
                most = fmax(most, fabs((double)weight[i]));
                sum += (double)weight[i];
                same += weight[i] == other[mimus__shape_weight_offset(&net, l) + i];
            }
            ck_assert(most <= bounds[l] * (1 + 1e-6) && most > bounds[l] * 0.97);
            /* standard error of the mean: bound / sqrt(3 n) */
            ck_assert(fabs(sum / (double)count) < 4 * bounds[l] / sqrt(3 * (double)count));
            ck_assert_uint_lt(same, 3);
            for (uint32_t i = 0; i < net.width[l + 1]; i++)
                ck_assert(parameters[mimus__shape_bias_offset(&net, l) + i] == 0);
        }
    }
}
END_TEST

/* -------------------------------------------------------------- round trips */

START_TEST(a_checkpoint_comes_back_to_the_bit) {
    const uint32_t sizes[] = {1, 63, 64, 65};
    for (size_t i = 0; i < 4; i++) {
        const mimus_schema wide = {.senses = sizes[i], .heads = 2, .head = heads};
        for (size_t j = 0; j < 4; j++) {
            const mimus__shape net = {.senses = sizes[i],
                                      .stack = 3,
                                      .layers = 3,
                                      .width = {3 * sizes[i], sizes[j], sizes[3 - j], 5},
                                      .activation = MIMUS__TANH};
            mimus__model *model = filled_model(&wide, &net, j % 2 == 0);
            assert_round_trip(model);
            mimus__model_free(model);
        }
    }
    test_folder_remove();
}
END_TEST

START_TEST(optimizers_may_lack_moments) {
    mimus__model *model = filled_model(&schema, &shape, true);
    free(model->state->moment2);
    model->state->moment2 = NULL;
    assert_round_trip(model);
    free(model->state->moment1);
    model->state->moment1 = NULL;
    assert_round_trip(model);
    mimus__model_free(model);
    test_folder_remove();
}
END_TEST

START_TEST(a_new_model_has_no_best_loss_yet) {
    mimus__model *model;
    test_ok(mimus__model_new(&model, &schema, &shape, true));
    ck_assert(model->state->best == INFINITY);
    assert_round_trip(model);
    const double hard[] = {0.1, 1e-308, 4.9406564584124654e-324, 123456789.12345679, -0.0};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        model->state->best = hard[i];
        assert_round_trip(model);
    }
    mimus__model_free(model);
    mimus__model_free(NULL);
    test_folder_remove();
}
END_TEST

/* The weight of (out o, in i) is at o * in + i in the file, at i * out + o in memory. */
START_TEST(weights_are_kept_as_pytorch_does) {
    mimus__model *model = filled_model(&schema, &shape, false);
    const char *path = test_folder_path("model.safetensors");
    test_ok(mimus__model_save(model, path));
    char *bytes;
    size_t size;
    test_ok(mimus__file_read(path, 1 << 20, &bytes, &size));
    mimus__safetensors file;
    test_ok(mimus__safetensors_parse(&file, bytes, size, path));
    const mimus__tensor weight = {.name = "layers.0.weight", .rank = 2, .shape = {4, 6}};
    float values[24];
    test_ok(mimus__safetensors_get(&file, &weight, values));
    for (size_t o = 0; o < 4; o++) {
        for (size_t i = 0; i < 6; i++)
            ck_assert(values[o * 6 + i] == model->parameters[i * 4 + o]);
    }
    mimus__safetensors_clear(&file);
    free(bytes);
    mimus__model_free(model);
    test_folder_remove();
}
END_TEST

/* Readers map the file: the numbers must lie on their boundaries, however long the header is. */
START_TEST(the_buffer_is_aligned) {
    mimus__model *model = filled_model(&schema, &shape, false);
    const char *path = test_folder_path("model.safetensors");
    for (int length = 0; length < 8; length++) {
        char *bytes;
        size_t size;
        ck_assert_int_eq(
            json_object_set_new(model->facts, "note", json_stringn("12345678", (size_t)length)), 0);
        test_ok(mimus__model_save(model, path));
        test_ok(mimus__file_read(path, 1 << 20, &bytes, &size));
        ck_assert_int_eq(bytes[0] % 8, 0);
        free(bytes);
    }
    mimus__model_free(model);
    test_folder_remove();
}
END_TEST

/* tests/data/golden_checkpoint.py wrote it with the package safetensors. */
START_TEST(a_file_of_the_reference_implementation_is_read) {
    mimus__model *model;
    test_ok(mimus__model_load(&model, MIMUS_TEST_DATA "/golden_checkpoint.safetensors"));
    test_ok(mimus__schema_match(&schema, "here", model->schema, "file", true));
    ck_assert_mem_eq(model->shape.width, shape.width, sizeof shape.width);
    ck_assert_int_eq(model->shape.activation, MIMUS__GELU);
    ck_assert_uint_eq(model->shape.stack, 2);
    const float *arrays[] = {model->parameters, model->state->moment1, model->state->moment2};
    for (size_t i = 0; i < 3; i++) {
        ck_assert(model->mean[i] == (float)((int)(3 * i % 31) - 15) / 8);
        ck_assert(model->scale[i] == (float)((int)((7 + 3 * i) % 31) - 15) / 8);
    }
    size_t tensor = 2;
    for (size_t a = 0; a < 3; a++) {
        for (uint32_t l = 0; l < 2; l++, tensor += 2) {
            const float *weight = arrays[a] + mimus__shape_weight_offset(&shape, l);
            const float *bias = arrays[a] + mimus__shape_bias_offset(&shape, l);
            size_t in = shape.width[l], out = shape.width[l + 1];
            for (size_t i = 0; i < in * out; i++)
                ck_assert(weight[i % in * out + i / in] ==
                          (float)((int)((7 * tensor + 3 * i) % 31) - 15) / 8);
            for (size_t i = 0; i < out; i++)
                ck_assert(bias[i] == (float)((int)((7 * (tensor + 1) + 3 * i) % 31) - 15) / 8);
        }
    }
    ck_assert_uint_eq(model->state->epoch, 3);
    ck_assert_uint_eq(model->state->step, 1641);
    ck_assert(model->state->correction1 == 0.875f && model->state->correction2 == 0.0625f);
    ck_assert(model->state->best == 1.1);
    ck_assert_uint_eq(model->state->best_epoch, 2);
    ck_assert_uint_eq(model->state->stale, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(model->config, "epochs")), 12);
    ck_assert_int_eq(json_integer_value(json_object_get(model->facts, "epoch")), 3);
    mimus__model_free(model);
}
END_TEST

START_TEST(a_broken_network_does_not_replace_a_good_file) {
    mimus__model *model = filled_model(&schema, &shape, true), *back;
    const char *path = test_folder_path("model.safetensors");
    test_ok(mimus__model_save(model, path));
    model->parameters[30] = NAN;
    test_fails(mimus__model_save(model, path), MIMUS_ERR_DATA,
               "model.safetensors: tensor \"layers.1.weight\" holds a number that is not finite");
    model->parameters[30] = 0;
    model->state->moment2[24] = INFINITY;
    test_fails(mimus__model_save(model, path), MIMUS_ERR_DATA, "\"moment2.layers.0.bias\"");
    test_ok(mimus__model_load(&back, path));
    mimus__model_free(back);
    model->state->moment2[24] = 0;
    test_fails(mimus__model_save(model, test_folder_path("no/such/folder")), MIMUS_ERR_IO,
               "cannot write");
    mimus__model_free(model);
    test_folder_remove();
}
END_TEST

/* ------------------------------------------------------------ hostile files */

/* A checkpoint taken apart, to be put together wrongly. */
typedef struct parts {
    json_t *header;
    char *bytes;
    size_t buffer; /* where the buffer begins */
    size_t size;
} parts;

static parts take_apart(void) {
    parts p = {0};
    mimus__model *model = filled_model(&schema, &shape, true);
    const char *path = test_folder_path("model.safetensors");
    test_ok(mimus__model_save(model, path));
    mimus__model_free(model);
    test_ok(mimus__file_read(path, 1 << 20, &p.bytes, &p.size));
    ck_assert(p.bytes[2] == 0 && p.bytes[3] == 0);
    p.buffer = 8 + (size_t)(unsigned char)p.bytes[0] + 256 * (size_t)(unsigned char)p.bytes[1];
    test_ok(mimus__json_parse(&p.header, p.bytes + 8, p.buffer - 8, "header"));
    return p;
}

static void drop(parts *p) {
    json_decref(p->header);
    free(p->bytes);
    test_folder_remove();
}

static void put_length(char *bytes, uint64_t length) {
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i & 0xff);
}

/* Decode `header` before the buffer's first `kept` bytes; it must fail with `message`. */
static void assert_refused(const parts *p, const char *header, size_t kept, const char *message) {
    mimus__model *model;
    size_t length = strlen(header);
    char *file;
    test_ok(mimus__alloc(&file, 8 + length + kept, 1)); /* exact: sanitizers see one byte more */
    put_length(file, length);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, p->bytes + p->buffer, kept);
    test_fails(mimus__model_decode(&model, file, 8 + length + kept, "bad.safetensors"),
               MIMUS_ERR_FORMAT, message);
    ck_assert(strncmp(mimus_last_error(), "bad.safetensors: ", 17) == 0);
    ck_assert_ptr_null(model);
    free(file);
}

static void assert_header_refused(const parts *p, const char *message) {
    char *text;
    test_ok(mimus__json_text(&text, p->header, JSON_COMPACT));
    assert_refused(p, text, p->size - p->buffer, message);
    free(text);
}

START_TEST(every_truncation_is_refused) {
    parts p = take_apart();
    mimus__model *model;
    for (size_t size = 0; size < p.size; size++) {
        char *copy;
        test_ok(mimus__alloc(&copy, size, 1));
        memcpy(copy, p.bytes, size);
        test_fails(mimus__model_decode(&model, copy, size, "cut"), MIMUS_ERR_FORMAT, "cut: ");
        free(copy);
    }
    test_ok(mimus__model_decode(&model, p.bytes, p.size, "whole"));
    mimus__model_free(model);
    drop(&p);
}
END_TEST

START_TEST(lying_lengths_are_refused) {
    parts p = take_apart();
    mimus__model *model;
    const struct {
        uint64_t length;
        const char *message;
    } cases[] = {{UINT64_MAX, "a header of 18446744073709551615 bytes"},
                 {100000001, "at most 100000000 are allowed"},
                 {100000000, "truncated: a header of 100000000 bytes"},
                 {(uint64_t)p.size - 7, "truncated"},
                 {(uint64_t)p.size - 8, "not valid JSON"},
                 {0, "not valid JSON"},
                 {1, "not valid JSON"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_length(p.bytes, cases[i].length);
        test_fails(mimus__model_decode(&model, p.bytes, p.size, "x"), MIMUS_ERR_FORMAT,
                   cases[i].message);
    }
    p.bytes[8] = ' ';
    test_fails(mimus__model_decode(&model, p.bytes, p.size, "x"), MIMUS_ERR_FORMAT,
               "x: not a safetensors file");
    drop(&p);
}
END_TEST

START_TEST(malformed_headers_are_refused) {
    parts p = take_apart();
    assert_refused(&p, "{\"a\":1,\"a\":2}", 0, "duplicate");
    assert_refused(&p, "{}", 0, "not a mimus checkpoint: \"format\" is \"\"");
    assert_refused(&p, "{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
    assert_refused(&p, "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ \"a\" is not a string");
    assert_refused(&p, "{\"__metadata__\":{\"format\":\"pt\"}}", 0, "\"format\" is \"pt\"");
    assert_refused(&p, "{\"__metadata__\":{\"format\":\"mimus-checkpoint\",\"version\":\"2\"}}", 0,
                   "version \"2\", expected \"1\"");
    assert_refused(&p, "{\"a\":7}", 0, "tensor \"a\": expected a known dtype");
    const char *entries[][2] = {
        {"{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}", "known dtype"},
        {"{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}", "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}", "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}", "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}", "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}",
         "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":[9223372036854775807,2],\"data_offsets\":[0,4]}",
         "known dtype"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}", "two offsets"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}", "two offsets"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}", "two offsets"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}", "8 of a buffer of 4 bytes"},
        {"{\"dtype\":\"I8\",\"shape\":[5],\"data_offsets\":[0,5]}",
         "ends at byte 5 of a buffer of 4"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}", "truncated or damaged"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}",
         "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}", "take 8 bytes, the offsets 4"},
        {"{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,4]}", "take 8 bytes, the offsets 4"},
        {"{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[2,4]}", "begins at byte 2, behind"},
        {"{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}", "end at byte 2 of a buffer"},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char header[256];
        snprintf(header, sizeof header, "{\"a\":%s}", entries[i][0]);
        assert_refused(&p, header, 4, entries[i][1]);
    }
    assert_refused(&p,
                   "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                   8, "tensor \"b\" begins at byte 4, before where the one before it ends, 8");
    drop(&p);
}
END_TEST

/* Set a member of a tensor's entry, expect the message, and put it back. */
static void assert_entry_refused(parts *p, const char *tensor, const char *key, json_t *value,
                                 const char *message) {
    json_t *entry = json_object_get(p->header, tensor);
    json_t *old = json_incref(json_object_get(entry, key));
    json_object_set_new(entry, key, value);
    assert_header_refused(p, message);
    json_object_set_new(entry, key, old);
}

START_TEST(tensors_must_be_the_networks) {
    parts p = take_apart();
    assert_entry_refused(&p, "mean", "dtype", json_string("I32"), "\"mean\" is I32, expected F32");
    assert_entry_refused(&p, "layers.0.weight", "shape", json_pack("[i,i]", 6, 4),
                         "\"layers.0.weight\" has shape [6,4], expected [4,6]");
    assert_entry_refused(&p, "layers.0.weight", "shape", json_pack("[i]", 24),
                         "has shape [24], expected [4,6]");
    assert_entry_refused(&p, "layers.0.bias", "shape", json_pack("[i,i]", 1, 4),
                         "has shape [1,4], expected [4]");
    json_t *taken = json_incref(json_object_get(p.header, "moment1.layers.1.bias"));
    json_object_del(p.header, "moment1.layers.1.bias");
    assert_header_refused(&p, "begins at byte"); /* a hole */
    json_object_set_new(p.header, "other", taken);
    assert_header_refused(&p, "unexpected tensor \"other\"");
    drop(&p);
}
END_TEST

START_TEST(numbers_must_be_finite) {
    parts p = take_apart();
    mimus__model *model;
    const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
    const struct {
        const char *tensor;
        size_t element;
    } places[] = {{"mean", 0}, {"layers.0.weight", 23}, {"moment2.layers.1.bias", 4}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 3; j++) {
            char message[128], kept[4];
            json_t *offsets =
                json_object_get(json_object_get(p.header, places[j].tensor), "data_offsets");
            size_t at = p.buffer + (size_t)json_integer_value(json_array_get(offsets, 0)) +
                        4 * places[j].element;
            memcpy(kept, p.bytes + at, 4);
            memcpy(p.bytes + at, &bits[i], 4);
            snprintf(message, sizeof message, "tensor \"%s\": element %zu is not finite",
                     places[j].tensor, places[j].element);
            test_fails(mimus__model_decode(&model, p.bytes, p.size, "x"), MIMUS_ERR_FORMAT,
                       message);
            memcpy(p.bytes + at, kept, 4);
        }
    }
    drop(&p);
}
END_TEST

/* Replace a metadata text, expect the message, and put the old one back. */
static void assert_text_refused(parts *p, const char *key, const char *text, const char *message) {
    json_t *metadata = json_object_get(p->header, "__metadata__");
    json_t *old = json_incref(json_object_get(metadata, key));
    if (text != NULL)
        json_object_set_new(metadata, key, json_string(text));
    else
        json_object_del(metadata, key);
    assert_header_refused(p, message);
    json_object_set_new(metadata, key, old);
}

START_TEST(metadata_must_fit_the_tensors) {
    parts p = take_apart();
    static const char *const cases[][3] = {
        {"schema", NULL, "\"schema\" should be a string and is nothing"},
        {"schema", "{", "bad.safetensors: schema: not valid JSON"},
        {"schema", "[]", "schema: expected an object"},
        {"config", "7", "config: not valid JSON"},
        {"facts", NULL, "\"facts\" should be"},
        {"state", "{}", "state: \"epoch\" should be an integer"},
        {"state", NULL, "unexpected tensor \"moment1.layers.0.weight\""},
        {"state",
         "{\"epoch\":1,\"step\":1,\"correction1\":2,\"correction2\":0,\"best\":null,"
         "\"best_epoch\":0,\"stale\":0}",
         "state: corrections of 2 and 0"},
        {"state",
         "{\"epoch\":1,\"step\":1,\"correction1\":1,\"correction2\":0,\"best\":\"1\","
         "\"best_epoch\":0,\"stale\":0}",
         "state: \"best\" should be a number"},
        {"state",
         "{\"epoch\":-1,\"step\":1,\"correction1\":1,\"correction2\":0,\"best\":1,"
         "\"best_epoch\":0,\"stale\":0}",
         "state: \"epoch\" should be an integer of 0 or more"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,4,5],\"activation\":\"swish\"}",
         "shape: unknown activation \"swish\""},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6],\"activation\":\"relu\"}",
         "array of 2 to 17 numbers"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":7,\"activation\":\"relu\"}",
         "array of 2 to 17 numbers"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,0,5],\"activation\":\"relu\"}",
         "width 1 is not a width"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,4294967296,5],\"activation\":\"relu\"}",
         "width 1 is not a width"},
        {"shape", "{\"senses\":3,\"stack\":8589934592,\"width\":[6,4,5],\"activation\":\"relu\"}",
         "\"stack\" is 8589934592, expected 32 bits"},
        {"shape", "{\"senses\":3,\"stack\":3,\"width\":[6,4,5],\"activation\":\"relu\"}",
         "6 inputs for 3 stacked 3 times"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,4,7],\"activation\":\"relu\"}",
         "7 outputs for the schema's 5 actions"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,4000000000,5],\"activation\":\"relu\"}",
         "more than 268435456 parameters"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,10000000,5],\"activation\":\"relu\"}",
         "the shape takes 480000020 bytes of parameters"},
        {"shape", "{\"senses\":3,\"stack\":2,\"width\":[6,3,5],\"activation\":\"relu\"}",
         "\"layers.0.weight\" has shape [4,6], expected [3,6]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_text_refused(&p, cases[i][0], cases[i][1], cases[i][2]);
    drop(&p);
}
END_TEST

/* A flipped bit must be refused or give a model; the sanitizers watch. */
START_TEST(flipped_bits_never_crash) {
    parts p = take_apart();
    for (size_t i = 0; i < p.size; i++) {
        mimus__model *model;
        char kept = p.bytes[i];
        p.bytes[i] = (char)(kept ^ 1 << i * 5 % 8);
        mimus_status status = mimus__model_decode(&model, p.bytes, p.size, "flipped");
        ck_assert_int_eq(status == MIMUS_OK, model != NULL);
        mimus__model_free(model);
        p.bytes[i] = kept;
    }
    drop(&p);
}
END_TEST

/* -------------------------------------------------------------------- find */

START_TEST(a_run_folder_has_its_checkpoints) {
    char *path;
    const char *folder = test_folder();
    char wanted[512];
    test_fails(mimus__model_find(&path, folder, "best"), MIMUS_ERR_IO,
               "last.safetensors is missing");
    test_ok(mimus__file_replace(test_folder_path("last.safetensors"), "", 0));
    test_ok(mimus__model_find(&path, folder, "best"));
    snprintf(wanted, sizeof wanted, "%s/last.safetensors", folder);
    ck_assert_str_eq(path, wanted);
    free(path);
    test_ok(mimus__file_replace(test_folder_path("best.safetensors"), "", 0));
    test_ok(mimus__model_find(&path, folder, "best"));
    snprintf(wanted, sizeof wanted, "%s/best.safetensors", folder);
    ck_assert_str_eq(path, wanted);
    free(path);
    ck_assert_int_eq(remove(test_folder_path("last.safetensors")), 0);
    test_fails(mimus__model_find(&path, folder, "last"), MIMUS_ERR_IO,
               "last.safetensors is missing");
    test_ok(mimus__model_find(&path, wanted, "last"));
    ck_assert_str_eq(path, wanted);
    free(path);
    test_fails(mimus__model_find(&path, test_folder_path("none"), "best"), MIMUS_ERR_IO,
               "none: no such run folder or checkpoint");
    ck_assert_ptr_null(path);
    test_folder_remove();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("model");
    TCase *shapes = tcase_create("shape");
    tcase_add_test(shapes, a_shape_counts_its_parameters);
    tcase_add_test(shapes, impossible_shapes_are_refused);
    tcase_add_test(shapes, activations_have_names);
    tcase_add_test(shapes, initial_weights_have_their_bounds);
    suite_add_tcase(suite, shapes);
    TCase *files = tcase_create("files");
    tcase_add_test(files, a_checkpoint_comes_back_to_the_bit);
    tcase_add_test(files, optimizers_may_lack_moments);
    tcase_add_test(files, a_new_model_has_no_best_loss_yet);
    tcase_add_test(files, weights_are_kept_as_pytorch_does);
    tcase_add_test(files, the_buffer_is_aligned);
    tcase_add_test(files, a_file_of_the_reference_implementation_is_read);
    tcase_add_test(files, a_broken_network_does_not_replace_a_good_file);
    tcase_add_test(files, a_run_folder_has_its_checkpoints);
    suite_add_tcase(suite, files);
    TCase *hostile = tcase_create("hostile");
    tcase_add_test(hostile, every_truncation_is_refused);
    tcase_add_test(hostile, lying_lengths_are_refused);
    tcase_add_test(hostile, malformed_headers_are_refused);
    tcase_add_test(hostile, tensors_must_be_the_networks);
    tcase_add_test(hostile, numbers_must_be_finite);
    tcase_add_test(hostile, metadata_must_fit_the_tensors);
    tcase_add_test(hostile, flipped_bits_never_crash);
    suite_add_tcase(suite, hostile);
    return test_run(suite);
}

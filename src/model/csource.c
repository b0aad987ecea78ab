/* csource - fills in the templates. Numbers are hexadecimal, put together from their bits: exact,
 * and the same in every locale. */
#include "csource.h"

#include "alloc.h"
#include "csource_templates.h"
#include "text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- names */

/* An identifier out of a file's name. */
static mimus_status make_identifier(char **out, const char *name, size_t length, bool upper) {
    mimus_status status = MIMUS_OK;
    bool letter = isalpha((unsigned char)name[0]) != 0 && (unsigned char)name[0] < 128;
    MIMUS_TRY(mimus__text_format(out, "%s%.*s",
                                 letter  ? ""
                                 : upper ? "P_"
                                         : "p_",
                                 (int)length, name));
    for (char *c = *out; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte >= 128 || !(isalnum(byte) || byte == '_'))
            *c = '_';
        else if (upper)
            *c = (char)toupper(byte);
    }
out:
    return status;
}

mimus_status mimus__csource_names_init(mimus__csource_names *out, const char *path) {
    mimus_status status = MIMUS_OK;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);
    *out = (mimus__csource_names){0};
    if (length < 3 || strcmp(name + length - 2, ".c") != 0)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: the name should end in .c; a header of the same name is written "
                           "beside it",
                           path);
    MIMUS_TRY(mimus__text_copy(&out->source, path));
    MIMUS_TRY(mimus__text_copy(&out->header, path));
    out->header[strlen(path) - 1] = 'h';
    MIMUS_TRY(mimus__text_copy(&out->base, out->header + (name - path)));
    MIMUS_TRY(make_identifier(&out->lower, name, length - 2, false));
    MIMUS_TRY(make_identifier(&out->upper, name, length - 2, true));
out:
    return status;
}

void mimus__csource_names_clear(mimus__csource_names *names) {
    free(names->source);
    free(names->header);
    free(names->base);
    free(names->lower);
    free(names->upper);
    *names = (mimus__csource_names){0};
}

/* ----------------------------------------------------------------- numbers */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 0x1.8p+1f */
static void put_float(FILE *stream, float value) {
    uint32_t bits = bits_of(value), exponent = bits >> 23 & 255, fraction = (bits & 0x7fffff) << 1;
    const char *sign = bits >> 31 != 0 ? "-" : "";
    if (exponent == 0)
        fprintf(stream, "%s0x0.%06" PRIx32 "p-126f", sign, fraction);
    else
        fprintf(stream, "%s0x1.%06" PRIx32 "p%+df", sign, fraction, (int)exponent - 127);
}

static void put_array(FILE *stream, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : i % 8 == 0 ? ",\n    " : ", ", stream);
        put_float(stream, values[i]);
    }
}

/* The arrays of the source, in their order. */
typedef struct array {
    char name[24];
    const float *values[2]; /* the second follows the first */
    size_t count[2];
} array;
enum { MAX_ARRAYS = 2 + MIMUS__MAX_LAYERS };

static size_t list_arrays(array *out, const mimus__model *model) {
    const mimus__shape *shape = &model->shape;
    size_t count = 0;
    out[count++] = (array){"mean", {model->mean, NULL}, {shape->senses, 0}};
    out[count++] = (array){"scale", {model->scale, NULL}, {shape->senses, 0}};
    for (uint32_t l = 0; l < shape->layers; l++) {
        array *layer = &out[count++];
        *layer =
            (array){.values = {model->parameters + mimus__shape_bias_offset(shape, l),
                               model->parameters + mimus__shape_weight_offset(shape, l)},
                    .count = {shape->width[l + 1], (size_t)shape->width[l] * shape->width[l + 1]}};
        snprintf(layer->name, sizeof layer->name, "layer_%" PRIu32, l);
    }
    return count;
}

static void put_numbers(FILE *stream, const mimus__model *model) {
    array arrays[MAX_ARRAYS];
    size_t count = list_arrays(arrays, model);
    fputs("/* x = (senses - mean) * scale */\n", stream);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "static const float %s[%zu] = {\n    ", arrays[i].name,
                arrays[i].count[0] + arrays[i].count[1]);
        for (int part = 0; part < 2 && arrays[i].count[part] > 0; part++) {
            fputs(part > 0 ? ",\n    " : "", stream);
            put_array(stream, arrays[i].values[part], arrays[i].count[part]);
        }
        fputs("};\n\n", stream);
    }
    fprintf(stream,
            "/* What the actions stand for, head by head. */\n"
            "static const float values[%" PRIu32 "] = {\n    ",
            mimus__schema_actions(model->schema));
    for (uint32_t h = 0; h < model->schema->heads; h++) {
        const mimus_head *head = &model->schema->head[h];
        for (uint32_t a = 0; a < head->actions; a++) {
            fputs(h == 0 && a == 0 ? "" : a % 8 == 0 ? ",\n    " : ", ", stream);
            put_float(stream, mimus_head_value(head, (uint16_t)a));
        }
    }
    fputs("};\n", stream);
}

/* ----------------------------------------------------------------- reading */

/* A number as put_float writes them; `*text` goes on behind it. false: there is none. */
static bool get_float(const char **text, float *out) {
    char *end;
    const char *at = *text;
    bool negative = *at == '-';
    at += negative;
    if (at[0] != '0' || at[1] != 'x' || (at[2] != '0' && at[2] != '1') || at[3] != '.')
        return false;
    uint32_t whole = at[2] == '1' ? 1U << 24 : 0;
    unsigned long fraction = strtoul(at + 4, &end, 16);
    if (end != at + 10 || *end != 'p')
        return false;
    long exponent = strtol(end + 1, &end, 10);
    if (*end != 'f' || exponent < -126 || exponent > 127)
        return false;
    *out = ldexpf((float)(whole | fraction), (int)exponent - 24);
    *out = negative ? -*out : *out;
    *text = end + 1;
    return true;
}

static bool is_array(const char **text, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float found;
        *text += strspn(*text, " ,\n");
        if (!get_float(text, &found) || bits_of(found) != bits_of(values[i]))
            return false;
    }
    return true;
}

mimus_status mimus__csource_check(const char *text, const mimus__model *model, const char *where) {
    array arrays[MAX_ARRAYS];
    size_t count = list_arrays(arrays, model);
    for (size_t i = 0; i < count; i++) {
        char opening[96];
        snprintf(opening, sizeof opening, "static const float %.23s[%zu] = {", arrays[i].name,
                 arrays[i].count[0] + arrays[i].count[1]);
        text = strstr(text, opening);
        if (text != NULL)
            text += strlen(opening);
        if (text == NULL || !is_array(&text, arrays[i].values[0], arrays[i].count[0]) ||
            !is_array(&text, arrays[i].values[1], arrays[i].count[1]) ||
            strncmp(text, "};", 2) != 0)
            return mimus__fail(MIMUS_ERR_DATA,
                               "%s: the array %s is not the policy's; the file is wrong and was "
                               "not kept",
                               where, arrays[i].name);
    }
    return MIMUS_OK;
}

/* ------------------------------------------------------------------- texts */

/* A C string; three octal digits cannot run into what follows, and no trigraph comes of it. */
static void put_string(FILE *stream, const char *text) {
    if (text == NULL) {
        fputs("NULL", stream);
        return;
    }
    putc('"', stream);
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 32 || byte > 126 || byte == '"' || byte == '\\' || byte == '?')
            fprintf(stream, "\\%03o", byte);
        else
            putc(byte, stream);
    }
    putc('"', stream);
}

/* The same within a comment, which must not end. */
static void put_comment(FILE *stream, const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        putc(byte < 32 || byte > 126 || byte == '*' || byte == '\\' || byte == '?' ? '_' : byte,
             stream);
    }
}

static void put_names(FILE *stream, const mimus__model *model, const mimus__csource_names *names) {
    const mimus_schema *schema = model->schema;
    fprintf(stream, "const char *const %s_sense_names[%s_SENSES] = {\n", names->lower,
            names->upper);
    for (uint32_t i = 0; i < schema->senses; i++) {
        fputs("    ", stream);
        put_string(stream, schema->sense_names != NULL ? schema->sense_names[i] : NULL);
        fputs(",\n", stream);
    }
    fprintf(stream, "};\n\nconst char *const %s_head_names[%s_HEADS] = {\n", names->lower,
            names->upper);
    for (uint32_t h = 0; h < schema->heads; h++) {
        fputs("    ", stream);
        put_string(stream, schema->head[h].name);
        fputs(",\n", stream);
    }
    fprintf(stream, "};\n\nconst char *const %s_action_names[%s_ACTIONS] = {\n", names->lower,
            names->upper);
    for (uint32_t h = 0; h < schema->heads; h++) {
        for (uint32_t a = 0; a < schema->head[h].actions; a++) {
            fputs("    ", stream);
            put_string(stream, schema->head[h].action_names != NULL
                                   ? schema->head[h].action_names[a]
                                   : NULL);
            fputs(",\n", stream);
        }
    }
    fprintf(stream, "};\n\nconst unsigned short %s_head_actions[%s_HEADS] = {", names->lower,
            names->upper);
    for (uint32_t h = 0; h < schema->heads; h++)
        fprintf(stream, "%s%" PRIu32, h > 0 ? ", " : "", schema->head[h].actions);
    fputs("};\n", stream);
}

/* The heads, for who reads the header. */
static void put_contents(FILE *stream, const mimus__model *model) {
    const mimus_schema *schema = model->schema;
    fputs(" *\n * Heads, in their order:\n", stream);
    for (uint32_t h = 0; h < schema->heads; h++) {
        fprintf(stream, " *   %" PRIu32 "  ", h);
        put_comment(stream, schema->head[h].name);
        fprintf(stream, ": %" PRIu32 " %s\n", schema->head[h].actions,
                schema->head[h].bin_values != NULL ? "bins of a continuous action" : "actions");
    }
}

static void put_activation(FILE *stream, const mimus__model *model) {
    static const char *const formulas[] = {
        [MIMUS__IDENTITY] = NULL,
        [MIMUS__RELU] = "y[i] < 0 ? 0 : y[i]",
        [MIMUS__TANH] = "tanhf(y[i])",
        [MIMUS__GELU] = "0.5f * y[i] * (1 + erff(y[i] * 0.70710678f))",
    };
    const char *formula = formulas[model->shape.activation];
    if (formula == NULL || model->shape.layers == 1)
        return;
    fprintf(stream,
            "static void activate(float *y, int count)\n{\n    int i;\n"
            "    for (i = 0; i < count; i++)\n        y[i] = %s;\n}\n\n",
            formula);
}

static void put_layers(FILE *stream, const mimus__model *model) {
    const mimus__shape *shape = &model->shape;
    const char *x = "a", *y = "b";
    for (uint32_t l = 0; l < shape->layers; l++) {
        bool last = l + 1 == shape->layers;
        fprintf(stream, "    dense(%s, %" PRIu32 ", layer_%" PRIu32 ", %s, %" PRIu32 ");\n", x,
                shape->width[l], l, last ? "logits" : y, shape->width[l + 1]);
        if (!last && shape->activation != MIMUS__IDENTITY)
            fprintf(stream, "    activate(%s, %" PRIu32 ");\n", y, shape->width[l + 1]);
        const char *swap = x;
        x = y;
        y = swap;
    }
    if (shape->layers == 1)
        fputs("    (void)b;\n", stream);
}

static uint32_t widest(const mimus__shape *shape) {
    uint32_t most = 0;
    for (uint32_t l = 0; l < shape->layers; l++)
        most = shape->width[l] > most ? shape->width[l] : most;
    return most;
}

/* ---------------------------------------------------------------- template */

/* Write what stands for the `length` bytes of a word between two @. */
static void put_word(FILE *stream, const mimus__model *model, const mimus__csource_names *names,
                     const char *word, size_t length) {
    const struct {
        const char *word, *text;
    } texts[] = {{"p", names->lower},
                 {"P", names->upper},
                 {"header", names->base},
                 {"version", MIMUS_VERSION}};
    const struct {
        const char *word;
        uint32_t number;
    } numbers[] = {{"senses", model->shape.senses},
                   {"stack", model->shape.stack},
                   {"heads", model->schema->heads},
                   {"actions", mimus__schema_actions(model->schema)},
                   {"widest", widest(&model->shape)}};
    const struct {
        const char *word;
        void (*put)(FILE *stream, const mimus__model *model);
    } blocks[] = {{"numbers", put_numbers},
                  {"contents", put_contents},
                  {"activation", put_activation},
                  {"layers", put_layers}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strlen(texts[i].word) == length && memcmp(texts[i].word, word, length) == 0)
            fputs(texts[i].text, stream);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strlen(numbers[i].word) == length && memcmp(numbers[i].word, word, length) == 0)
            fprintf(stream, "%" PRIu32, numbers[i].number);
    }
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (strlen(blocks[i].word) == length && memcmp(blocks[i].word, word, length) == 0)
            blocks[i].put(stream, model);
    }
    if (length == strlen("names") && memcmp("names", word, length) == 0)
        put_names(stream, model, names);
}

static mimus_status check_size(const mimus__model *model) {
    size_t parameters = mimus__shape_parameters(&model->shape);
    uint32_t width = widest(&model->shape), actions = mimus__schema_actions(model->schema);
    if (parameters > MIMUS__CSOURCE_MAX_PARAMETERS || width > MIMUS__CSOURCE_MAX_WIDTH ||
        actions > MIMUS__CSOURCE_MAX_WIDTH)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "a network of %zu parameters, up to %" PRIu32 " wide and with %" PRIu32
                           " actions, is too large for C source (%d parameters, %d wide); use "
                           "libmimus-policy or ONNX",
                           parameters, width, actions, MIMUS__CSOURCE_MAX_PARAMETERS,
                           MIMUS__CSOURCE_MAX_WIDTH);
    return MIMUS_OK;
}

static const char *find_template(const char *name) {
    const mimus__csource_template *at = mimus__csource_templates;
    while (strcmp(at->name, name) != 0)
        at++;
    return (const char *)at->text;
}

static mimus_status fill_in(FILE *stream, const char *template, const mimus__model *model,
                            const mimus__csource_names *names) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(check_size(model));
    for (;;) {
        size_t plain = strcspn(template, "@");
        fwrite(template, 1, plain, stream);
        template += plain;
        if (*template == '\0')
            break;
        size_t length = strcspn(++template, "@");
        put_word(stream, model, names, template, length);
        template += length + 1;
    }
out:
    return status;
}

mimus_status mimus__csource_write(FILE *stream, const mimus__model *model,
                                  const mimus__csource_names *names) {
    return fill_in(stream, find_template("policy.c.in"), model, names);
}

mimus_status mimus__csource_write_header(FILE *stream, const mimus__model *model,
                                         const mimus__csource_names *names) {
    return fill_in(stream, find_template("policy.h.in"), model, names);
}

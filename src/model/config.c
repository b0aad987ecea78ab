/* config - one table of settings. Defaults, the command line, JSON files, checks, messages and the
 * help text are all made from it.
 *
 * Every value goes the same way: a text becomes JSON by the field's kind, JSON is checked against
 * the field's range and stored. A JSON file may therefore hold a text wherever the command line
 * takes one ("4G"). */
#include "config.h"

#include "alloc.h"
#include "text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- table */

typedef enum setting_kind {
    KIND_U32,
    KIND_U64,
    KIND_BYTES, /* uint64_t; "512M" */
    KIND_SEED,  /* uint64_t; "seed": MIMUS__SEED_OWN */
    KIND_BEST,  /* uint32_t; "best:N", "all": 0 */
    KIND_REAL,
    KIND_CHOICE, /* an enum: `low` + the place in the hint */
    KIND_TEXT,
    KIND_WIDTHS, /* uint32_t[], with a count */
    KIND_REALS,  /* double *, with a count */
} setting_kind;

/* Which end of a range is not in it. */
typedef enum range_ends { BOTH_IN, LOW_OUT, HIGH_OUT } range_ends;

typedef struct setting {
    mimus_config_field text; /* name, default, hint, help */
    setting_kind kind;
    size_t offset; /* of the member of mimus_config */
    double low, high;
    range_ends ends;
    size_t count_offset; /* of the uint32_t that counts a list */
    bool varies;         /* between the runs of a pass */
} setting;

#define AT(member) offsetof(mimus_config, member)
#define NUMBER(type, member, min, max, out)                                                        \
    .kind = KIND_##type, .offset = AT(member), .low = min, .high = max, .ends = out
#define U32(member, min, max) NUMBER(U32, member, min, max, BOTH_IN)
#define REAL(member, min, max, out) NUMBER(REAL, member, min, max, out)
#define LIST(type, member, counter, min, max)                                                      \
    NUMBER(type, member, min, max, BOTH_IN), .count_offset = AT(counter)
#define CHOICE(member, first) .kind = KIND_CHOICE, .offset = AT(member), .low = first
#define TEXT(member) .kind = KIND_TEXT, .offset = AT(member)
#define SEED(member) NUMBER(SEED, member, 0, MAX_INTEGER, BOTH_IN)

/* JSON integers are signed. As a double this is 2^63, one more. */
#define MAX_INTEGER 9223372036854775807.0

static const setting fields[] = {
    {{"hidden", "128,128", "N,N,...|none", "widths of the hidden layers; none: a linear policy"},
     LIST(WIDTHS, hidden, hidden_layers, 1, 1 << 20)},
    {{"activation", "relu", "relu|tanh|gelu", "after every hidden layer"},
     CHOICE(activation, MIMUS__RELU)},
    {{"stack", "1", "N", "samples seen at once, the newest last"}, U32(stack, 1, 1024)},
    {{"epochs", "12", "N", "passes over the training part"}, U32(epochs, 1, 1000000)},
    {{"batch", "4096", "N", "samples a step"}, U32(batch, 1, 1 << 24)},
    {{"lr", "1e-3", "X", "learning rate"}, REAL(lr, 0, 1e6, LOW_OUT), .varies = true},
    {{"optimizer", "adam", "adam|adamw|sgd", "sgd has momentum beta1, without Nesterov"},
     CHOICE(optimizer, MIMUS__ADAM)},
    {{"beta1", "0.9", "X", "decay of the first moment; momentum of sgd"},
     REAL(beta1, 0, 1, HIGH_OUT)},
    {{"beta2", "0.999", "X", "decay of the second moment"}, REAL(beta2, 0, 1, HIGH_OUT)},
    {{"epsilon", "1e-8", "X", "added to the root of the second moment"},
     REAL(epsilon, 0, 1, LOW_OUT)},
    {{"weight_decay", "0", "X", "adam, sgd: added to the gradient; adamw: decoupled"},
     REAL(weight_decay, 0, 1e6, BOTH_IN),
     .varies = true},
    {{"clip", "0", "X", "largest global norm of the gradient; 0: any"},
     REAL(clip, 0, 1e30, BOTH_IN),
     .varies = true},
    {{"schedule", "constant", "constant|cosine|linear", "of the learning rate, over all epochs"},
     CHOICE(schedule, MIMUS__CONSTANT),
     .varies = true},
    {{"warmup", "0", "X", "epochs, or a part of one, in which the learning rate rises linearly"},
     REAL(warmup, 0, 1e6, BOTH_IN),
     .varies = true},
    {{"label_smoothing", "0", "X", "part of a label that is spread over the legal actions"},
     REAL(label_smoothing, 0, 1, HIGH_OUT),
     .varies = true},
    {{"dropout", "0", "X", "part of the hidden activations that a training step leaves out"},
     REAL(dropout, 0, 1, HIGH_OUT),
     .varies = true},
    {{"class_weights", "none", "none|balanced", "balanced: rare actions weigh more"},
     CHOICE(class_weights, MIMUS__CLASS_NONE),
     .varies = true},
    {{"head_weights", "none", "X,X,...|none", "the heads' weights in the loss; none: all 1"},
     LIST(REALS, head_weights, head_weight_count, 0, 1e6),
     .varies = true},
    {{"held_out", "0.1", "X", "part of the samples, in whole episodes, that judges the policy"},
     REAL(heldout, 0, 1, HIGH_OUT)},
    {{"seed", "0", "N", "starts every random number"},
     NUMBER(U64, seed, 0, MAX_INTEGER, BOTH_IN),
     .varies = true},
    {{"split_seed", "seed", "N|seed", "draws what is held out; many runs: the first one's seed"},
     SEED(split_seed)},
    {{"order_seed", "seed", "N|seed", "draws the order of every epoch"},
     SEED(order_seed),
     .varies = true},
    {{"folds", "0", "N", "cross-validation: cut into N parts, by episode; 0: held_out counts"},
     U32(folds, 0, 1000)},
    {{"fold", "0", "N", "the part that is held out, from 1; 0: each in a run of its own"},
     U32(fold, 0, 1000),
     .varies = true},
    {{"bootstrap", "off", "off|on", "draw the training episodes with replacement, by seed"},
     CHOICE(bootstrap, 0)},
    {{"runs", "1", "N", "train N at once, with the seeds seed, seed + 1, ..."},
     U32(runs, 1, MIMUS__MAX_RUNS)},
    {{"grid", "off", "off|on", "train all combinations of the lists' values, not value by value"},
     CHOICE(grid, 0)},
    {{"share_batches", "off", "off|on", "all runs take the first one's order: one gather for all"},
     CHOICE(share_batches, 0)},
    {{"keep", "all", "all|best:N", "whose checkpoints stay when all runs have ended"},
     .kind = KIND_BEST,
     .offset = AT(keep)},
    {{"patience", "0", "N", "stop after so many epochs without a better held-out loss; 0: never"},
     U32(patience, 0, 1000000)},
    {{"device", "", "gpu|cpu|P:D|NAME", "OpenCL device; MIMUS_DEVICE, else the first GPU or CPU"},
     TEXT(device)},
    {{"plan", "auto", "auto|phased|block",
      "a launch a phase (GPUs), or a block of rows through the whole step (CPUs)"},
     CHOICE(plan, MIMUS__PLAN_AUTO)},
    {{"gemm", "auto", "auto|clblast|tile",
      "matrix products of the phased plan, which another than auto asks for; auto: verified and "
      "timed"},
     CHOICE(gemm, MIMUS__GEMM_AUTO)},
    {{"store", "auto", "auto|f32|f16|bf16",
      "senses on the device in 32 or 16 bits; auto: f32, or f16 where only that fits"},
     CHOICE(store, MIMUS__STORE_AUTO)},
    {{"memory", "0", "BYTES", "device memory to use, as 512M or 4G; 0: 80% of the device's"},
     NUMBER(BYTES, memory, 0, MAX_INTEGER, BOTH_IN)},
    {{"shard", "0", "BYTES", "largest device buffer of the recording; 0: the device's largest"},
     NUMBER(BYTES, shard, 0, MAX_INTEGER, BOTH_IN)},
    {{"tensorboard", "on", "off|on", "event files for TensorBoard in the run folder"},
     CHOICE(tensorboard, 0)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Enum members are written through one type. */
_Static_assert(sizeof(mimus__activation) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__optimizer_kind) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__schedule) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__class_weights) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__plan) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__gemm_kind) == sizeof(uint32_t), "enum size");
_Static_assert(sizeof(mimus__store_form) == sizeof(uint32_t), "enum size");

const mimus_config_field *mimus_config_describe(size_t index) {
    return index < FIELDS ? &fields[index].text : NULL;
}

bool mimus_config_varies(size_t index) {
    return index < FIELDS && fields[index].varies;
}

static void *member(mimus_config *config, size_t offset) {
    return (char *)config + offset;
}

static const void *const_member(const mimus_config *config, size_t offset) {
    return (const char *)config + offset;
}

/* ----------------------------------------------------------------- messages */

static void describe_range(const setting *field, char *text, size_t bytes) {
    const char *hint = field->text.hint;
    switch (field->kind) {
    case KIND_U32:
    case KIND_U64:
        snprintf(text, bytes, "an integer from %.0f to %" PRIu64, field->low,
                 field->high < MAX_INTEGER ? (uint64_t)field->high : (uint64_t)INT64_MAX);
        return;
    case KIND_BYTES:
        snprintf(text, bytes, "bytes, as 4096, 512M or 4G");
        return;
    case KIND_BEST:
        snprintf(text, bytes, "all or best:N, N at least 1");
        return;
    case KIND_SEED:
        snprintf(text, bytes, "an integer from 0 to %" PRIu64 ", or seed", (uint64_t)INT64_MAX);
        return;
    case KIND_REAL:
        snprintf(text, bytes, "a number %s %g %s %g", field->ends == LOW_OUT ? "above" : "from",
                 field->low, field->ends == HIGH_OUT ? "to below" : "to", field->high);
        return;
    case KIND_CHOICE:
        snprintf(text, bytes, "one of %s", hint);
        return;
    case KIND_TEXT:
        snprintf(text, bytes, "a text");
        return;
    case KIND_WIDTHS:
        snprintf(text, bytes, "%s: at most %d integers from %.0f to %.0f", hint,
                 MIMUS__MAX_LAYERS - 1, field->low, field->high);
        return;
    case KIND_REALS:
        snprintf(text, bytes, "%s: at most %d numbers from %g to %g", hint, MIMUS__MAX_HEADS,
                 field->low, field->high);
        return;
    }
}

/* `where` is "" or ends in ": ". */
static mimus_status refuse(const setting *field, const char *where, const char *found) {
    char range[160];
    describe_range(field, range, sizeof range);
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s%s: expected %s, found %.80s", where,
                       field->text.name, range, found);
}

static mimus_status refuse_json(const setting *field, const char *where, const json_t *found) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    MIMUS_TRY(mimus__json_text(&text, found, JSON_COMPACT));
    status = refuse(field, where, text);
out:
    free(text);
    return status;
}

/* Levenshtein 1966, on one row; names are short. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 32 };
    size_t row[LONGEST + 1], length = strlen(b);
    if (length > LONGEST || strlen(a) > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[length];
}

static mimus_status refuse_name(const char *name, const char *where) {
    const setting *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < FIELDS; i++) {
        size_t each = distance(name, fields[i].text.name);
        if (each < least) {
            least = each;
            nearest = &fields[i];
        }
    }
    if (nearest == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%sno setting \"%.80s\"", where, name);
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%sno setting \"%s\"; did you mean \"%s\"?", where, name,
                       nearest->text.name);
}

/* ------------------------------------------------------------ text to JSON */

/* "4G" in units of 1024. */
static bool bytes_from_text(const char *text, uint64_t *out) {
    static const char units[] = "KMGT";
    char digits[24];
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length + 1);
    char last = digits[length - 1];
    const char *unit = strchr(units, last >= 'a' && last <= 'z' ? last - 'a' + 'A' : last);
    unsigned shift = 0;
    if (unit != NULL) {
        shift = 10 * (unsigned)(unit - units + 1);
        digits[length - 1] = '\0';
    }
    if (!mimus__text_to_u64(digits, out) || *out > (uint64_t)INT64_MAX >> shift)
        return false;
    *out <<= shift;
    return true;
}

/* One number as JSON; NULL when it is none. */
static json_t *number_from_text(setting_kind kind, const char *text) {
    uint64_t integer;
    double real;
    if (kind == KIND_REAL || kind == KIND_REALS)
        return mimus__text_to_double(text, &real) ? json_real(real) : NULL;
    bool good = kind == KIND_BYTES ? bytes_from_text(text, &integer)
                                   : mimus__text_to_u64(text, &integer) && integer <= INT64_MAX;
    return good ? json_integer((json_int_t)integer) : NULL;
}

/* `text` is cut up. NULL when an item is no number. */
static json_t *list_from_text(setting_kind kind, char *text) {
    json_t *list = json_array();
    for (char *item = text; item != NULL;) {
        char *comma = strchr(item, ',');
        if (comma != NULL)
            *comma = '\0';
        json_t *value = number_from_text(kind, item);
        if (value == NULL || json_array_append_new(list, value) != 0) {
            json_decref(list);
            return NULL;
        }
        item = comma != NULL ? comma + 1 : NULL;
    }
    return list;
}

static mimus_status from_text(json_t **out, const setting *field, const char *text,
                              const char *where) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    *out = NULL;
    switch (field->kind) {
    case KIND_SEED:
        *out = strcmp(text, "seed") == 0 ? json_string(text) : number_from_text(KIND_U64, text);
        break;
    case KIND_CHOICE:
    case KIND_TEXT:
    case KIND_BEST:
        *out = json_string(text);
        break;
    case KIND_WIDTHS:
    case KIND_REALS:
        MIMUS_TRY(mimus__text_copy(&copy, text));
        *out = strcmp(text, "none") == 0 ? json_array() : list_from_text(field->kind, copy);
        break;
    case KIND_U32:
    case KIND_U64:
    case KIND_BYTES:
    case KIND_REAL:
        *out = number_from_text(field->kind, text);
        break;
    }
    if (*out == NULL)
        status = refuse(field, where, *text != '\0' ? text : "nothing");
out:
    free(copy);
    return status;
}

/* ----------------------------------------------------------- JSON to config */

static bool in_range(const setting *field, double value) {
    if (field->ends == LOW_OUT ? value <= field->low : value < field->low)
        return false;
    return field->ends == HIGH_OUT ? value < field->high : value <= field->high;
}

static bool good_number(const setting *field, const json_t *value) {
    bool real = field->kind == KIND_REAL || field->kind == KIND_REALS;
    return (real ? json_is_number(value) : json_is_integer(value)) &&
           in_range(field, json_number_value(value));
}

/* The place of `text` among the hint's names, or -1. */
static int find_choice(const char *hint, const char *text) {
    size_t length = strlen(text);
    int place = 0;
    for (const char *name = hint; name != NULL; place++) {
        size_t name_length = strcspn(name, "|");
        if (name_length == length && strncmp(name, text, length) == 0)
            return place;
        name = name[name_length] == '|' ? name + name_length + 1 : NULL;
    }
    return -1;
}

static mimus_status store_choice(mimus_config *config, const setting *field, const json_t *value,
                                 const char *where) {
    int place =
        json_is_string(value) ? find_choice(field->text.hint, json_string_value(value)) : -1;
    if (place < 0)
        return refuse_json(field, where, value);
    uint32_t chosen = (uint32_t)field->low + (uint32_t)place;
    memcpy(member(config, field->offset), &chosen, sizeof chosen);
    return MIMUS_OK;
}

static mimus_status store_text(mimus_config *config, const setting *field, const json_t *value,
                               const char *where) {
    mimus_status status = MIMUS_OK;
    char *copy = NULL;
    if (!json_is_string(value))
        return refuse_json(field, where, value);
    MIMUS_TRY(mimus__text_copy(&copy, json_string_value(value)));
    char **target = member(config, field->offset);
    free(*target);
    *target = copy;
out:
    return status;
}

static mimus_status store_seed(mimus_config *config, const setting *field, const json_t *value,
                               const char *where) {
    const char *text = json_string_value(value);
    bool own = text != NULL && strcmp(text, "seed") == 0;
    if (!own && !good_number(field, value))
        return refuse_json(field, where, value);
    *(uint64_t *)member(config, field->offset) =
        own ? MIMUS__SEED_OWN : (uint64_t)json_integer_value(value);
    return MIMUS_OK;
}

static mimus_status store_best(mimus_config *config, const setting *field, const json_t *value,
                               const char *where) {
    const char *text = json_string_value(value);
    uint64_t best = 0;
    bool good = text != NULL &&
                (strcmp(text, "all") == 0 || (strncmp(text, "best:", 5) == 0 &&
                                              mimus__text_to_u64(text + 5, &best) && best > 0));
    if (!good || best > MIMUS__MAX_RUNS)
        return refuse_json(field, where, value);
    *(uint32_t *)member(config, field->offset) = (uint32_t)best;
    return MIMUS_OK;
}

static mimus_status store_list(mimus_config *config, const setting *field, const json_t *value,
                               const char *where) {
    mimus_status status = MIMUS_OK;
    size_t count = json_array_size(value);
    size_t most = field->kind == KIND_WIDTHS ? MIMUS__MAX_LAYERS - 1 : MIMUS__MAX_HEADS;
    double *reals = NULL;
    bool good = json_is_array(value) && count <= most;
    for (size_t i = 0; good && i < count; i++)
        good = good_number(field, json_array_get(value, i));
    if (!good)
        return refuse_json(field, where, value);
    if (field->kind == KIND_WIDTHS) {
        uint32_t *widths = member(config, field->offset);
        for (size_t i = 0; i < count; i++)
            widths[i] = (uint32_t)json_integer_value(json_array_get(value, i));
    } else {
        double **target = member(config, field->offset);
        if (count > 0)
            MIMUS_TRY(mimus__alloc(&reals, count, sizeof *reals));
        for (size_t i = 0; i < count; i++)
            reals[i] = json_number_value(json_array_get(value, i));
        free(*target);
        *target = reals;
    }
    *(uint32_t *)member(config, field->count_offset) = (uint32_t)count;
out:
    return status;
}

static mimus_status store_number(mimus_config *config, const setting *field, const json_t *value,
                                 const char *where) {
    if (!good_number(field, value))
        return refuse_json(field, where, value);
    void *target = member(config, field->offset);
    if (field->kind == KIND_REAL)
        *(double *)target = json_number_value(value);
    else if (field->kind == KIND_U32)
        *(uint32_t *)target = (uint32_t)json_integer_value(value);
    else
        *(uint64_t *)target = (uint64_t)json_integer_value(value);
    return MIMUS_OK;
}

/* The value of one run. */
static mimus_status store_value(mimus_config *config, const setting *field, const json_t *value,
                                const char *where) {
    switch (field->kind) {
    case KIND_SEED:
        return store_seed(config, field, value, where);
    case KIND_BEST:
        return store_best(config, field, value, where);
    case KIND_CHOICE:
        return store_choice(config, field, value, where);
    case KIND_TEXT:
        return store_text(config, field, value, where);
    case KIND_WIDTHS:
    case KIND_REALS:
        return store_list(config, field, value, where);
    case KIND_U32:
    case KIND_U64:
    case KIND_BYTES:
    case KIND_REAL:
        break;
    }
    return store_number(config, field, value, where);
}

/* ----------------------------------------------------------- config to JSON */

static json_t *choice_name(const setting *field, uint32_t value) {
    const char *name = field->text.hint;
    for (uint32_t place = value - (uint32_t)field->low; place > 0; place--)
        name = strchr(name, '|') + 1;
    return json_stringn(name, strcspn(name, "|"));
}

static json_t *list_to_json(const mimus_config *config, const setting *field) {
    const void *items = const_member(config, field->offset);
    uint32_t count = *(const uint32_t *)const_member(config, field->count_offset);
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *item = field->kind == KIND_WIDTHS ? json_integer(((const uint32_t *)items)[i])
                                                  : json_real((*(double *const *)items)[i]);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* The member; NULL when memory is out. */
static json_t *to_json(const mimus_config *config, const setting *field) {
    const void *value = const_member(config, field->offset);
    char best[24];
    switch (field->kind) {
    case KIND_SEED:
        if (*(const uint64_t *)value == MIMUS__SEED_OWN)
            return json_string("seed");
        return json_integer((json_int_t) * (const uint64_t *)value);
    case KIND_BEST:
        snprintf(best, sizeof best, "best:%" PRIu32, *(const uint32_t *)value);
        return json_string(*(const uint32_t *)value > 0 ? best : "all");
    case KIND_CHOICE:
        return choice_name(field, *(const uint32_t *)value);
    case KIND_TEXT:
        return json_string(*(char *const *)value);
    case KIND_WIDTHS:
    case KIND_REALS:
        return list_to_json(config, field);
    case KIND_U32:
        return json_integer(*(const uint32_t *)value);
    case KIND_U64:
    case KIND_BYTES:
        return json_integer((json_int_t) * (const uint64_t *)value);
    case KIND_REAL:
        break;
    }
    return json_real(*(const double *)value);
}

/* ------------------------------------------------------------------- lists */

/* Whether a value stands for several runs: an array where a run has none. */
static bool is_of_runs(const setting *field, const json_t *value) {
    if (!field->varies || json_array_size(value) == 0)
        return false;
    return field->kind != KIND_REALS || json_is_array(json_array_get(value, 0));
}

/* Texts in a list are read as on the command line. */
static mimus_status store_item(mimus_config *config, const setting *field, const json_t *item,
                               const char *where) {
    mimus_status status = MIMUS_OK;
    json_t *value = NULL;
    if (!json_is_string(item))
        return store_value(config, field, item, where);
    MIMUS_TRY(from_text(&value, field, json_string_value(item), where));
    MIMUS_TRY(store_value(config, field, value, where));
out:
    json_decref(value);
    return status;
}

/* Every value is checked; the first one stays in the member. A list takes the place of an earlier
 * one, and so does a single value. */
static mimus_status store(mimus_config *config, const setting *field, const json_t *value,
                          const char *where) {
    mimus_status status = MIMUS_OK;
    json_t *list = NULL;
    if (!is_of_runs(field, value)) {
        MIMUS_TRY(store_item(config, field, value, where));
        json_object_del(config->lists, field->text.name);
        goto out;
    }
    list = json_array();
    for (size_t i = json_array_size(value); i-- > 0;) {
        MIMUS_TRY(store_item(config, field, json_array_get(value, i), where));
        if (json_array_insert_new(list, 0, to_json(config, field)) != 0) {
            status = mimus__fail(MIMUS_ERR_MEMORY, "cannot add to a JSON array");
            goto out;
        }
    }
    if (json_array_size(value) == 1)
        json_object_del(config->lists, field->text.name);
    else
        MIMUS_TRY(mimus__json_set(config->lists, field->text.name, json_incref(list)));
out:
    json_decref(list);
    return status;
}

/* Turn "1,2" into [1, 2], item by item. */
static mimus_status weights_from_texts(json_t *list, const setting *field, const char *where) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *weights = NULL;
        MIMUS_TRY(from_text(&weights, field, json_string_value(json_array_get(list, i)), where));
        json_array_set_new(list, i, weights);
    }
out:
    return status;
}

/* One item a run: parted by commas, or by slashes where a run's value has commas itself. NULL
 * where there is but one. */
static json_t *runs_from_text(const setting *field, const char *text) {
    const char *separator = field->kind == KIND_REALS ? "/" : ",";
    if (!field->varies || strpbrk(text, separator) == NULL)
        return NULL;
    json_t *list = json_array();
    for (;;) {
        size_t length = strcspn(text, separator);
        if (json_array_append_new(list, json_stringn(text, length)) != 0) {
            json_decref(list); /* the text as a whole is refused */
            return NULL;
        }
        if (text[length] == '\0')
            return list;
        text += length + 1;
    }
}

static mimus_status set_text(mimus_config *config, const setting *field, const char *text,
                             const char *where) {
    mimus_status status = MIMUS_OK;
    json_t *value = runs_from_text(field, text);
    /* a list of weights is an array as it is; of texts, it is one of runs */
    if (value != NULL && field->kind == KIND_REALS)
        MIMUS_TRY(weights_from_texts(value, field, where));
    if (value == NULL)
        MIMUS_TRY(from_text(&value, field, text, where));
    MIMUS_TRY(store(config, field, value, where));
out:
    json_decref(value);
    return status;
}

/* "-" and "_" are one letter, so that a command line's option is a setting's name. */
static const setting *find(const char *name) {
    for (size_t i = 0; i < FIELDS; i++) {
        const char *a = name, *b = fields[i].text.name;
        while (*a != '\0' && (*a == *b || (*a == '-' && *b == '_'))) {
            a++;
            b++;
        }
        if (*a == '\0' && *b == '\0')
            return &fields[i];
    }
    return NULL;
}

mimus_status mimus_config_set(mimus_config *config, const char *name, const char *value) {
    const setting *field = find(name);
    if (field == NULL)
        return refuse_name(name, "");
    return set_text(config, field, value, "");
}

mimus_status mimus__config_from_json(mimus_config *config, const json_t *json, const char *where) {
    mimus_status status = MIMUS_OK;
    char *prefix = NULL;
    const char *name;
    json_t *value;
    if (!json_is_object(json))
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: expected an object of settings", where);
    MIMUS_TRY(mimus__text_format(&prefix, "%s: ", where));
    json_t *object = (json_t *)json; /* jansson iterates over what it could change */
    json_object_foreach(object, name, value) {
        const setting *field = find(name);
        if (field == NULL) {
            status = refuse_name(name, prefix);
            goto out;
        }
        if (json_is_string(value))
            MIMUS_TRY(set_text(config, field, json_string_value(value), prefix));
        else
            MIMUS_TRY(store(config, field, value, prefix));
    }
out:
    free(prefix);
    return status;
}

mimus_status mimus_config_load(mimus_config *config, const char *path) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    MIMUS_TRY(mimus__json_read(&json, path));
    MIMUS_TRY(mimus__config_from_json(config, json, path));
out:
    json_decref(json);
    return status;
}

mimus_status mimus__config_to_json(json_t **out, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object();
    for (size_t i = 0; i < FIELDS; i++) {
        json_t *list = json_object_get(config->lists, fields[i].text.name);
        MIMUS_TRY(
            mimus__json_set(json, fields[i].text.name,
                            list != NULL ? json_deep_copy(list) : to_json(config, &fields[i])));
    }
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

mimus_status mimus_config_json(const mimus_config *config, char **json) {
    mimus_status status = MIMUS_OK;
    json_t *object = NULL;
    MIMUS_TRY(mimus__config_to_json(&object, config));
    MIMUS_TRY(mimus__json_text(json, object, JSON_INDENT(2)));
out:
    json_decref(object);
    return status;
}

/* --------------------------------------------------------------------- life */

mimus_status mimus_config_new(mimus_config **out) {
    mimus_status status = MIMUS_OK;
    mimus_config *config = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&config, 1, sizeof *config));
    config->lists = json_object();
    for (size_t i = 0; i < FIELDS; i++)
        MIMUS_TRY(set_text(config, &fields[i], fields[i].text.value, ""));
    *out = config;
    config = NULL;
out:
    mimus_config_free(config);
    return status;
}

void mimus_config_free(mimus_config *config) {
    if (config == NULL)
        return;
    free(config->head_weights);
    free(config->device);
    json_decref(config->lists);
    free(config);
}

mimus_status mimus__config_copy(mimus_config **out, const mimus_config *config) {
    mimus_status status = MIMUS_OK;
    json_t *json = NULL;
    mimus_config *copy = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__config_to_json(&json, config));
    MIMUS_TRY(mimus_config_new(&copy));
    MIMUS_TRY(mimus__config_from_json(copy, json, "configuration"));
    *out = copy;
    copy = NULL;
out:
    mimus_config_free(copy);
    json_decref(json);
    return status;
}

/* ---------------------------------------------------------------------- use */

uint64_t mimus__config_split_seed(const mimus_config *config) {
    return config->split_seed != MIMUS__SEED_OWN ? config->split_seed : config->seed;
}

uint64_t mimus__config_order_seed(const mimus_config *config) {
    return config->order_seed != MIMUS__SEED_OWN ? config->order_seed : config->seed;
}

double mimus__config_rate(const mimus_config *config, uint64_t step, uint64_t steps,
                          uint64_t steps_per_epoch) {
    const double pi = 3.14159265358979323846;
    assert(step < steps);
    uint64_t warm = (uint64_t)(config->warmup * (double)steps_per_epoch + 0.5);
    if (step < warm)
        return (double)(step + 1) / (double)warm;
    double done = (double)(step - warm) / (double)(steps - warm);
    switch (config->schedule) {
    case MIMUS__COSINE:
        return 0.5 * (1 + cos(pi * done));
    case MIMUS__LINEAR:
        return 1 - done;
    case MIMUS__CONSTANT:
        break;
    }
    return 1;
}

mimus_status mimus__config_check(const mimus_config *config) {
    if (config->folds == 1 || config->fold > config->folds)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "fold: %" PRIu32 " of %" PRIu32
                           " folds; there are 0, or 2 and more, and "
                           "a fold is one of them",
                           config->fold, config->folds);
    if (config->folds > 0 &&
        (config->store == MIMUS__STORE_F16 || config->store == MIMUS__STORE_BF16))
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "folds: each normalises its training part, and senses in 16 bits are "
                           "normalised before they are packed; leave out store");
    if (config->plan != MIMUS__PLAN_BLOCK || config->gemm == MIMUS__GEMM_AUTO)
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_ARGUMENT,
                       "gemm: the block plan has matrix products of its own; leave out gemm, or "
                       "set plan to phased");
}

mimus_status mimus__config_shape(mimus__shape *out, const mimus_config *config,
                                 const mimus_schema *schema) {
    uint64_t inputs = (uint64_t)schema->senses * config->stack;
    if (inputs > UINT32_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%" PRIu32 " senses stacked %" PRIu32 " times are too many",
                           schema->senses, config->stack);
    if (inputs == 0)
        return mimus__fail(MIMUS_ERR_DATA, "the recording has no senses: a policy would have "
                                           "nothing to choose by");
    if (config->head_weight_count != 0 && config->head_weight_count != schema->heads)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "head_weights: %" PRIu32 " weights for %" PRIu32 " heads",
                           config->head_weight_count, schema->heads);
    *out = (mimus__shape){.senses = schema->senses,
                          .stack = config->stack,
                          .layers = config->hidden_layers + 1,
                          .activation = config->activation};
    out->width[0] = (uint32_t)inputs;
    memcpy(out->width + 1, config->hidden, config->hidden_layers * sizeof *config->hidden);
    out->width[out->layers] = mimus__schema_actions(schema);
    return mimus__shape_check(out, schema);
}

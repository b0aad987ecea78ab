#include "npy.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ header */

static const uint8_t MAGIC[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* Bytes before the literal: magic, version, and a length of 2 bytes in version 1, else 4. */
static size_t preamble(uint8_t major) {
    return major == 1 ? 10 : 12;
}

mimus_status mimus__npy_header_bytes(size_t *out, const uint8_t *prefix, const char *where) {
    if (memcmp(prefix, MAGIC, sizeof MAGIC) != 0)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: not a NumPy array: it does not begin with \\x93NUMPY", where);
    uint8_t major = prefix[6];
    if (major < 1 || major > 3 || prefix[7] != 0)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: version %u.%u of the NumPy format; 1.0, 2.0 and 3.0 can be read",
                           where, major, prefix[7]);
    size_t length = (size_t)prefix[8] | (size_t)prefix[9] << 8;
    if (major > 1)
        length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    if (length > MIMUS__NPY_HEADER - MIMUS__NPY_PREFIX)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: a header of %zu bytes; at most %d are allowed",
                           where, length, MIMUS__NPY_HEADER - MIMUS__NPY_PREFIX);
    *out = preamble(major) + length;
    return MIMUS_OK;
}

/* The literal being parsed; the text ends in a NUL. */
typedef struct parser {
    const char *text;
    const char *at;
    const char *where;
} parser;

static mimus_status unexpected(const parser *p, const char *expected) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: header: expected %s at byte %zu, found \"%.16s\"",
                       p->where, expected, (size_t)(p->at - p->text), p->at);
}

static void skip_space(parser *p) {
    while (*p->at != '\0' && strchr(" \t\r\n", *p->at) != NULL)
        p->at++;
}

/* Take `symbol` if it comes next. */
static bool take(parser *p, char symbol) {
    skip_space(p);
    if (*p->at != symbol)
        return false;
    p->at++;
    return true;
}

static mimus_status need(parser *p, char symbol) {
    const char expected[] = {'\'', symbol, '\'', '\0'};
    return take(p, symbol) ? MIMUS_OK : unexpected(p, expected);
}

static bool take_word(parser *p, const char *word) {
    size_t length = strlen(word);
    skip_space(p);
    if (strncmp(p->at, word, length) != 0 || isalnum((unsigned char)p->at[length]))
        return false;
    p->at += length;
    return true;
}

/* A quoted string without escapes (NumPy writes none); `*out` points into the text. */
static mimus_status parse_string(parser *p, const char **out, size_t *length) {
    skip_space(p);
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return unexpected(p, "a quoted string");
    const char *end = p->at + 1;
    while (*end != quote && *end != '\0' && *end != '\\')
        end++;
    if (*end != quote)
        return unexpected(p, "a string that ends and has no escapes");
    *out = p->at + 1;
    *length = (size_t)(end - *out);
    p->at = end + 1;
    return MIMUS_OK;
}

static mimus_status parse_bool(parser *p, bool *out) {
    *out = take_word(p, "True");
    return *out || take_word(p, "False") ? MIMUS_OK : unexpected(p, "True or False");
}

static mimus_status parse_length(parser *p, uint64_t *out) {
    skip_space(p);
    if (!isdigit((unsigned char)*p->at))
        return unexpected(p, "a length");
    uint64_t value = 0;
    for (; isdigit((unsigned char)*p->at); p->at++) {
        unsigned digit = (unsigned)(*p->at - '0');
        if (value > ((uint64_t)INT64_MAX - digit) / 10)
            return unexpected(p, "a length that fits 63 bits");
        value = value * 10 + digit;
    }
    if (*p->at == 'L') /* Python 2 wrote long integers so */
        p->at++;
    *out = value;
    return MIMUS_OK;
}

/* "()", "(3,)", "(3, 4)"; "(3)" is no tuple in Python. */
static mimus_status parse_shape(parser *p, mimus__npy *npy) {
    mimus_status status = MIMUS_OK;
    bool comma = false;
    MIMUS_TRY(need(p, '('));
    while (!take(p, ')')) {
        if (npy->dimensions > 0 && !comma)
            return unexpected(p, "',' or ')'");
        if (npy->dimensions == MIMUS__NPY_DIMENSIONS)
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: header: more than %d dimensions", p->where,
                               MIMUS__NPY_DIMENSIONS);
        MIMUS_TRY(parse_length(p, &npy->shape[npy->dimensions]));
        npy->dimensions++;
        comma = take(p, ',');
    }
    if (npy->dimensions == 1 && !comma)
        status = unexpected(p, "a tuple, such as (3,), as the shape before this");
out:
    return status;
}

static bool little_endian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* "<f4": byte order, kind, bytes. What is not one of ours stays MIMUS__NPY_OTHER. */
static void parse_type(mimus__npy *npy, const char *type, size_t length) {
    static const struct {
        char code[3];
        mimus__npy_kind kind;
    } types[] = {
        {"b1", MIMUS__NPY_BOOL},     {"i1", MIMUS__NPY_SIGNED},   {"i2", MIMUS__NPY_SIGNED},
        {"i4", MIMUS__NPY_SIGNED},   {"i8", MIMUS__NPY_SIGNED},   {"u1", MIMUS__NPY_UNSIGNED},
        {"u2", MIMUS__NPY_UNSIGNED}, {"u4", MIMUS__NPY_UNSIGNED}, {"u8", MIMUS__NPY_UNSIGNED},
        {"f2", MIMUS__NPY_FLOAT},    {"f4", MIMUS__NPY_FLOAT},    {"f8", MIMUS__NPY_FLOAT},
    };
    if (length != 3 || (type[0] != '<' && type[0] != '>' && type[0] != '|'))
        return;
    uint32_t size = (uint32_t)(type[2] - '0');
    if (type[0] == '|' && size != 1) /* more than a byte has an order */
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (memcmp(type + 1, types[i].code, 2) == 0) {
            npy->kind = types[i].kind;
            npy->size = size;
            npy->swapped = size > 1 && (type[0] == '<') != little_endian();
        }
    }
}

static void keep_descr(mimus__npy *npy, const char *text, size_t length) {
    if (length >= sizeof npy->descr)
        length = sizeof npy->descr - 1;
    memcpy(npy->descr, text, length);
    npy->descr[length] = '\0';
}

/* A structure is a list of tuples. Skipped to its end: the header must be sound all the same. */
static mimus_status skip_structure(parser *p) {
    mimus_status status = MIMUS_OK;
    const char *string;
    size_t length;
    unsigned depth = 0;
    do {
        skip_space(p);
        if (*p->at == '\0')
            return unexpected(p, "the end of the structure");
        if (*p->at == '\'' || *p->at == '"') {
            MIMUS_TRY(parse_string(p, &string, &length));
            continue;
        }
        if (*p->at == '[' || *p->at == '(')
            depth++;
        if (*p->at == ']' || *p->at == ')')
            depth--;
        p->at++;
    } while (depth > 0);
out:
    return status;
}

static mimus_status parse_descr(parser *p, mimus__npy *npy) {
    mimus_status status = MIMUS_OK;
    npy->kind = MIMUS__NPY_OTHER;
    skip_space(p);
    const char *type = p->at;
    size_t length = 0;
    if (*type == '[' || *type == '(') {
        MIMUS_TRY(skip_structure(p));
        keep_descr(npy, type, (size_t)(p->at - type));
    } else {
        MIMUS_TRY(parse_string(p, &type, &length));
        keep_descr(npy, type, length);
        parse_type(npy, type, length);
    }
out:
    return status;
}

enum { KEY_DESCR, KEY_FORTRAN, KEY_SHAPE, KEYS };

static const char *const keys[KEYS] = {"descr", "fortran_order", "shape"};

/* One `key: value`; each key once. */
static mimus_status parse_entry(parser *p, mimus__npy *npy, bool seen[KEYS]) {
    mimus_status status = MIMUS_OK;
    const char *name = NULL;
    size_t length = 0;
    int key = 0;
    MIMUS_TRY(parse_string(p, &name, &length));
    while (key < KEYS && (strlen(keys[key]) != length || memcmp(keys[key], name, length) != 0))
        key++;
    if (key == KEYS || seen[key])
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: header: %s key \"%.*s\"", p->where,
                           key == KEYS ? "unknown" : "second", (int)length, name);
    seen[key] = true;
    MIMUS_TRY(need(p, ':'));
    switch (key) {
    case KEY_DESCR:
        status = parse_descr(p, npy);
        break;
    case KEY_FORTRAN:
        status = parse_bool(p, &npy->fortran);
        break;
    case KEY_SHAPE:
        status = parse_shape(p, npy);
        break;
    }
out:
    return status;
}

static mimus_status parse_dict(parser *p, mimus__npy *npy) {
    mimus_status status = MIMUS_OK;
    bool seen[KEYS] = {false};
    bool comma = true;
    MIMUS_TRY(need(p, '{'));
    while (!take(p, '}')) {
        if (!comma)
            return unexpected(p, "',' or '}'");
        MIMUS_TRY(parse_entry(p, npy, seen));
        comma = take(p, ',');
    }
    for (int key = 0; key < KEYS; key++) {
        if (!seen[key])
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: header: no key \"%s\"", p->where, keys[key]);
    }
out:
    return status;
}

static mimus_status check_size(const mimus__npy *npy, const char *where) {
    char shape[64];
    uint64_t bytes = npy->size > 0 ? npy->size : 1;
    for (uint32_t d = 0; d < npy->dimensions; d++) {
        /* an empty dimension must not hide what its neighbours multiply to */
        uint64_t length = npy->shape[d] > 0 ? npy->shape[d] : 1;
        if (bytes > INT64_MAX / length)
            return mimus__fail(MIMUS_ERR_FORMAT, "%s: header: shape %s does not fit 63 bits", where,
                               mimus__npy_shape_text(npy, shape, sizeof shape));
        bytes *= length;
    }
    return MIMUS_OK;
}

mimus_status mimus__npy_parse(mimus__npy *out, const uint8_t *header, size_t bytes,
                              const char *where) {
    mimus_status status = MIMUS_OK;
    char text[MIMUS__NPY_HEADER + 1];
    size_t expected = 0;
    *out = (mimus__npy){.header = bytes};
    if (bytes < MIMUS__NPY_PREFIX)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: a NumPy header of %zu bytes only", where, bytes);
    MIMUS_TRY(mimus__npy_header_bytes(&expected, header, where));
    if (bytes != expected)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: a NumPy header of %zu bytes, of which %zu are there", where,
                           expected, bytes);
    size_t length = bytes - preamble(header[6]);
    memcpy(text, header + bytes - length, length);
    text[length] = '\0';
    parser p = {.text = text, .at = text, .where = where};
    MIMUS_TRY(parse_dict(&p, out));
    skip_space(&p);
    if (p.at != text + length) /* a NUL inside stops the parser short, too */
        return unexpected(&p, "the end of the header");
    MIMUS_TRY(check_size(out, where));
out:
    return status;
}

/* ------------------------------------------------------------------- shape */

uint64_t mimus__npy_rows(const mimus__npy *npy) {
    return npy->dimensions > 0 ? npy->shape[0] : 1;
}

uint64_t mimus__npy_width(const mimus__npy *npy) {
    uint64_t width = 1;
    for (uint32_t d = 1; d < npy->dimensions; d++)
        width *= npy->shape[d];
    return width;
}

bool mimus__npy_by_rows(const mimus__npy *npy) {
    unsigned above_one = 0;
    for (uint32_t d = 0; d < npy->dimensions; d++)
        above_one += npy->shape[d] > 1;
    return !npy->fortran || above_one <= 1;
}

const char *mimus__npy_shape_text(const mimus__npy *npy, char *text, size_t bytes) {
    size_t length = (size_t)snprintf(text, bytes, "(");
    for (uint32_t d = 0; d < npy->dimensions && length < bytes; d++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%llu", d > 0 ? ", " : "",
                                   (unsigned long long)npy->shape[d]);
    if (length < bytes)
        snprintf(text + length, bytes - length, "%s", npy->dimensions == 1 ? ",)" : ")");
    return text;
}

const char *mimus__npy_type_text(const mimus__npy *npy) {
    static const char *const numbers[4][9] = {
        [MIMUS__NPY_BOOL] = {[1] = "bool"},
        [MIMUS__NPY_SIGNED] = {[1] = "int8", [2] = "int16", [4] = "int32", [8] = "int64"},
        [MIMUS__NPY_UNSIGNED] = {[1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64"},
        [MIMUS__NPY_FLOAT] = {[2] = "float16", [4] = "float32", [8] = "float64"},
    };
    if (npy->kind != MIMUS__NPY_OTHER)
        return numbers[npy->kind][npy->size];
    if (npy->descr[0] == '[' || npy->descr[0] == '(')
        return "a structure";
    switch (npy->descr[0] != '\0' ? npy->descr[1] : '\0') {
    case 'O':
        return "objects (pickled)";
    case 'U':
    case 'S':
    case 'a':
        return "text";
    case 'c':
        return "complex numbers";
    case 'M':
    case 'm':
        return "dates or times";
    case 'f':
        return "long doubles";
    case 'V':
        return "raw bytes";
    default:
        return "an unknown type";
    }
}

/* ---------------------------------------------------------------- elements */

/* The bits of one element, in this machine's order. */
static uint64_t load(const mimus__npy *npy, const uint8_t *raw) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (npy->size) {
    case 2:
        memcpy(&two, raw, sizeof two);
        return npy->swapped ? __builtin_bswap16(two) : two;
    case 4:
        memcpy(&four, raw, sizeof four);
        return npy->swapped ? __builtin_bswap32(four) : four;
    case 8:
        memcpy(&eight, raw, sizeof eight);
        return npy->swapped ? __builtin_bswap64(eight) : eight;
    default:
        return *raw;
    }
}

static int64_t load_signed(const mimus__npy *npy, const uint8_t *raw) {
    uint64_t sign = (uint64_t)1 << (8 * npy->size - 1);
    return (int64_t)((load(npy, raw) ^ sign) - sign);
}

/* IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. */
static double half_value(uint64_t bits) {
    int exponent = (int)(bits >> 10 & 31);
    int fraction = (int)(bits & 1023);
    double value;
    if (exponent == 31)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 != 0 ? -value : value;
}

static double load_real(const mimus__npy *npy, const uint8_t *raw) {
    uint64_t bits = load(npy, raw);
    if (npy->size == 8) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (npy->size == 4) {
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return (double)value;
    }
    return half_value(bits);
}

static double load_number(const mimus__npy *npy, const uint8_t *raw) {
    switch (npy->kind) {
    case MIMUS__NPY_SIGNED:
        return (double)load_signed(npy, raw);
    case MIMUS__NPY_UNSIGNED:
        return (double)load(npy, raw);
    case MIMUS__NPY_FLOAT:
        return load_real(npy, raw);
    case MIMUS__NPY_BOOL:
    case MIMUS__NPY_OTHER:
        break;
    }
    return *raw != 0 ? 1 : 0;
}

void mimus__npy_floats(const mimus__npy *npy, const void *raw, size_t count, float *out) {
    if (npy->kind == MIMUS__NPY_FLOAT && npy->size == sizeof *out && !npy->swapped) {
        memcpy(out, raw, count * sizeof *out);
        return;
    }
    const uint8_t *from = raw;
    for (size_t i = 0; i < count; i++)
        out[i] = (float)load_number(npy, from + i * npy->size);
}

/* Whether a real number is an integer; then `*out` is it, or the nearest int64. */
static bool real_to_label(double value, int64_t *out) {
    if (!isfinite(value) || value != floor(value))
        return false;
    if (value >= 0x1p63)
        *out = INT64_MAX;
    else
        *out = value < -0x1p63 ? INT64_MIN : (int64_t)value;
    return true;
}

size_t mimus__npy_labels(const mimus__npy *npy, const void *raw, size_t count, int64_t *out) {
    const uint8_t *from = raw;
    for (size_t i = 0; i < count; i++, from += npy->size) {
        if (npy->kind == MIMUS__NPY_FLOAT) {
            if (!real_to_label(load_real(npy, from), &out[i]))
                return i;
        } else if (npy->kind == MIMUS__NPY_SIGNED) {
            out[i] = load_signed(npy, from);
        } else {
            uint64_t value = npy->kind == MIMUS__NPY_BOOL ? *from != 0 : load(npy, from);
            out[i] = value > INT64_MAX ? INT64_MAX : (int64_t)value;
        }
    }
    return count;
}

void mimus__npy_flags(const mimus__npy *npy, const void *raw, size_t count, uint8_t *out) {
    const uint8_t *from = raw;
    for (size_t i = 0; i < count; i++) /* a NaN is not zero */
        out[i] = load_number(npy, from + i * npy->size) != 0;
}

size_t mimus__npy_value_bytes(mimus__npy_form form) {
    switch (form) {
    case MIMUS__NPY_TO_FLOATS:
        return sizeof(float);
    case MIMUS__NPY_TO_LABELS:
        return sizeof(int64_t);
    case MIMUS__NPY_TO_FLAGS:
        break;
    }
    return sizeof(uint8_t);
}

static mimus_status not_an_integer(const mimus__npy *npy, const void *element, const char *where,
                                   uint64_t row, size_t column) {
    float value;
    mimus__npy_floats(npy, element, 1, &value);
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: %s %.9g in row %llu, column %zu is not an integer", where,
                       mimus__npy_type_text(npy), (double)value, (unsigned long long)row, column);
}

mimus_status mimus__npy_values(const mimus__npy *npy, mimus__npy_form form, const void *raw,
                               size_t rows, size_t width, void *out, const char *where,
                               uint64_t first) {
    const size_t count = rows * width;
    switch (form) {
    case MIMUS__NPY_TO_FLOATS:
        mimus__npy_floats(npy, raw, count, out);
        return MIMUS_OK;
    case MIMUS__NPY_TO_FLAGS:
        mimus__npy_flags(npy, raw, count, out);
        return MIMUS_OK;
    case MIMUS__NPY_TO_LABELS:
        break;
    }
    const size_t good = mimus__npy_labels(npy, raw, count, out);
    return good == count ? MIMUS_OK
                         : not_an_integer(npy, (const uint8_t *)raw + good * npy->size, where,
                                          first + good / width, good % width);
}

/* ----------------------------------------------------------------- writing */

/* The magic, version 1.0, the length of the rest: a multiple of 64 bytes in all. */
void mimus__npy_write_header(uint8_t *out, const char *descr, const char *shape) {
    enum { LENGTH_AT = 8, DICT_AT = 10 };
    char dict[MIMUS__NPY_WRITTEN - DICT_AT];
    int length = snprintf(dict, sizeof dict,
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(out, ' ', MIMUS__NPY_WRITTEN);
    memcpy(out, "\x93NUMPY\1\0", LENGTH_AT);
    out[LENGTH_AT] = MIMUS__NPY_WRITTEN - DICT_AT;
    out[LENGTH_AT + 1] = 0;
    memcpy(out + DICT_AT, dict, (size_t)length);
    out[MIMUS__NPY_WRITTEN - 1] = '\n';
}

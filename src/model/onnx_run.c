/* onnx_run - a walk through the nodes; each makes one new value from values that are there. */
#include "onnx_run.h"

#include "alloc.h"
#include "onnx.pb-c.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

/* A value of up to two dimensions; (n) is kept as one row of n, a scalar as (1, 1). */
typedef struct tensor {
    const char *name; /* borrowed from the file */
    int type;
    uint32_t rank;
    size_t rows, columns;
    void *data; /* NULL: not there yet */
} tensor;

/* A node, its names resolved. */
typedef struct step {
    const Mimus__Onnx__Node *node; /* borrowed from the file */
    const struct operation *operation;
    tensor **in; /* (inputs) */
    size_t inputs;
    tensor *out;
} step;

struct mimus__onnx_run {
    const char *where;
    Mimus__Onnx__Model *model;
    int64_t opset;
    tensor *tensors; /* (count) sorted by name */
    size_t count;
    step *steps; /* (n_node) */
    tensor **in; /* all steps' inputs */
    mimus__rng rng;
};

/* ----------------------------------------------------------------- tensors */

static size_t element_bytes(int type) {
    return type == FLOAT ? sizeof(float) : type == INT64 ? sizeof(int64_t) : sizeof(uint8_t);
}

static float *floats(const tensor *t) {
    return t->data;
}

static int64_t *integers(const tensor *t) {
    return t->data;
}

static uint8_t *bools(const tensor *t) {
    return t->data;
}

static mimus_status shape_tensor(tensor *out, int type, uint32_t rank, size_t rows,
                                 size_t columns) {
    mimus_status status = MIMUS_OK;
    if (columns > 0 && rows > SIZE_MAX / columns)
        return mimus__fail(MIMUS_ERR_FORMAT, "value \"%s\" is too large", out->name);
    free(out->data);
    out->data = NULL;
    MIMUS_TRY(mimus__alloc(&out->data, rows * columns, element_bytes(type)));
    out->type = type;
    out->rank = rank;
    out->rows = rows;
    out->columns = columns;
out:
    return status;
}

static int compare_names(const void *a, const void *b) {
    const tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static tensor *find(const mimus__onnx_run *run, const char *name) {
    const tensor key = {.name = name};
    return bsearch(&key, run->tensors, run->count, sizeof *run->tensors, compare_names);
}

/* -------------------------------------------------------------- operations */

typedef mimus_status compute(mimus__onnx_run *run, const step *s);

typedef struct operation {
    const char *name;
    compute *compute;
    size_t least, most;         /* inputs */
    const char *const *allowed; /* attributes, ends in NULL */
} operation;

static mimus_status refuse(const mimus__onnx_run *run, const step *s, const char *what) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: node \"%s\" (%s): %s", run->where, s->out->name,
                       s->node->op_type, what);
}

static const Mimus__Onnx__Attribute *attribute(const step *s, const char *name) {
    for (size_t i = 0; i < s->node->n_attribute; i++) {
        if (strcmp(s->node->attribute[i]->name, name) == 0)
            return s->node->attribute[i];
    }
    return NULL;
}

static int64_t integer(const step *s, const char *name, int64_t fallback) {
    const Mimus__Onnx__Attribute *found = attribute(s, name);
    return found != NULL && found->has_i ? found->i : fallback;
}

/* The only number of a list, or `fallback`. */
static int64_t only(const step *s, const char *name, int64_t fallback) {
    const Mimus__Onnx__Attribute *found = attribute(s, name);
    return found != NULL && found->n_ints == 1 ? found->ints[0] : fallback;
}

static bool are_floats(const step *s) {
    for (size_t i = 0; i < s->inputs; i++) {
        if (s->in[i]->type != FLOAT)
            return false;
    }
    return true;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Whether every input can be repeated to the result's shape. */
static bool broadcasts(const step *s, size_t *rows, size_t *columns, uint32_t *rank) {
    *rows = *columns = 1;
    *rank = 0;
    for (size_t i = 0; i < s->inputs; i++) {
        *rows = larger(*rows, s->in[i]->rows);
        *columns = larger(*columns, s->in[i]->columns);
        *rank = s->in[i]->rank > *rank ? s->in[i]->rank : *rank;
    }
    for (size_t i = 0; i < s->inputs; i++) {
        if ((s->in[i]->rows != *rows && s->in[i]->rows != 1) ||
            (s->in[i]->columns != *columns && s->in[i]->columns != 1))
            return false;
    }
    return true;
}

static size_t at(const tensor *t, size_t row, size_t column) {
    return (t->rows == 1 ? 0 : row) * t->columns + (t->columns == 1 ? 0 : column);
}

static mimus_status compute_arithmetic(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const char kind = s->node->op_type[0]; /* Add, Mul, Sub */
    size_t rows, columns;
    uint32_t rank;
    if (!are_floats(s) || !broadcasts(s, &rows, &columns, &rank))
        return refuse(run, s, "takes floats whose shapes fit");
    MIMUS_TRY(shape_tensor(s->out, FLOAT, rank, rows, columns));
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++) {
            float a = floats(s->in[0])[at(s->in[0], r, c)];
            float b = floats(s->in[1])[at(s->in[1], r, c)];
            floats(s->out)[r * columns + c] = kind == 'A' ? a + b : kind == 'M' ? a * b : a - b;
        }
    }
out:
    return status;
}

/* condition ? a : b */
static mimus_status compute_where(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    size_t rows, columns;
    uint32_t rank;
    const tensor *condition = s->in[0], *a = s->in[1], *b = s->in[2];
    if (condition->type != BOOL || a->type != b->type || !broadcasts(s, &rows, &columns, &rank))
        return refuse(run, s, "takes a condition and two values of one type whose shapes fit");
    size_t bytes = element_bytes(a->type);
    MIMUS_TRY(shape_tensor(s->out, a->type, rank, rows, columns));
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++) {
            const tensor *from = bools(condition)[at(condition, r, c)] != 0 ? a : b;
            memcpy((char *)s->out->data + (r * columns + c) * bytes,
                   (const char *)from->data + at(from, r, c) * bytes, bytes);
        }
    }
out:
    return status;
}

/* x W^T + b: W is (out, in), as transB says. */
static mimus_status compute_gemm(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0], *w = s->in[1], *b = s->in[2];
    if (!are_floats(s) || integer(s, "transB", 0) != 1 || x->columns != w->columns ||
        b->rows != 1 || b->columns != w->rows || x->rank != 2 || w->rank != 2)
        return refuse(run, s, "takes (rows, in), (out, in) and (out) with transB = 1");
    MIMUS_TRY(shape_tensor(s->out, FLOAT, 2, x->rows, w->rows));
    for (size_t r = 0; r < x->rows; r++) {
        const float *row = floats(x) + r * x->columns;
        for (size_t o = 0; o < w->rows; o++) {
            const float *weights = floats(w) + o * w->columns;
            float sum = floats(b)[o];
            for (size_t i = 0; i < w->columns; i++)
                sum += row[i] * weights[i];
            floats(s->out)[r * w->rows + o] = sum;
        }
    }
out:
    return status;
}

static float rectify(float x) {
    return x < 0 ? 0 : x; /* a NaN stays one */
}

static mimus_status compute_elementwise(mimus__onnx_run *run, const step *s) {
    static const struct {
        const char *name;
        float (*function)(float x);
    } functions[] = {{"Relu", rectify}, {"Tanh", tanhf}, {"Erf", erff}, {"Log", logf}};
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    size_t which = 0;
    if (x->type != FLOAT)
        return refuse(run, s, "takes floats");
    while (strcmp(functions[which].name, s->node->op_type) != 0)
        which++;
    MIMUS_TRY(shape_tensor(s->out, FLOAT, x->rank, x->rows, x->columns));
    for (size_t i = 0; i < x->rows * x->columns; i++)
        floats(s->out)[i] = functions[which].function(floats(x)[i]);
out:
    return status;
}

static mimus_status compute_identity(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    (void)run;
    MIMUS_TRY(shape_tensor(s->out, x->type, x->rank, x->rows, x->columns));
    memcpy(s->out->data, x->data, x->rows * x->columns * element_bytes(x->type));
out:
    return status;
}

static mimus_status compute_cast(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    int64_t to = integer(s, "to", 0);
    bool to_float = x->type == BOOL && to == FLOAT;
    if (!to_float && !(x->type == FLOAT && to == BOOL))
        return refuse(run, s, "casts between floats and bools");
    MIMUS_TRY(shape_tensor(s->out, (int)to, x->rank, x->rows, x->columns));
    for (size_t i = 0; i < x->rows * x->columns; i++) {
        if (to_float)
            floats(s->out)[i] = bools(x)[i] != 0 ? 1 : 0;
        else
            bools(s->out)[i] = floats(x)[i] != 0;
    }
out:
    return status;
}

/* Where a slice along the columns begins and ends: attributes first, inputs since opset 10. */
static bool slice_bounds(const mimus__onnx_run *run, const step *s, int64_t *first, int64_t *end) {
    if (run->opset < 10) {
        *first = only(s, "starts", -1);
        *end = only(s, "ends", -1);
        return s->inputs == 1 && only(s, "axes", -1) == 1;
    }
    if (s->inputs != 4 || s->node->n_attribute > 0)
        return false;
    for (size_t i = 1; i < 4; i++) {
        if (s->in[i]->type != INT64 || s->in[i]->rows * s->in[i]->columns != 1)
            return false;
    }
    *first = integers(s->in[1])[0];
    *end = integers(s->in[2])[0];
    return integers(s->in[3])[0] == 1;
}

static mimus_status compute_slice(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    int64_t first, end;
    if (!slice_bounds(run, s, &first, &end) || x->type != FLOAT || x->rank != 2 || first < 0 ||
        end <= first || (uint64_t)end > x->columns)
        return refuse(run, s, "slices floats along the columns, within them");
    size_t columns = (size_t)(end - first);
    MIMUS_TRY(shape_tensor(s->out, FLOAT, 2, x->rows, columns));
    for (size_t r = 0; r < x->rows; r++)
        memcpy(floats(s->out) + r * columns, floats(x) + r * x->columns + first,
               columns * sizeof(float));
out:
    return status;
}

static mimus_status compute_concat(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *first = s->in[0];
    size_t columns = 0, done = 0, bytes = element_bytes(first->type);
    for (size_t i = 0; i < s->inputs; i++) {
        if (s->in[i]->type != first->type || s->in[i]->rank != 2 || s->in[i]->rows != first->rows ||
            integer(s, "axis", 0) != 1)
            return refuse(run, s, "joins values of one type and height along the columns");
        columns += s->in[i]->columns;
    }
    MIMUS_TRY(shape_tensor(s->out, first->type, 2, first->rows, columns));
    for (size_t i = 0; i < s->inputs; done += s->in[i++]->columns) {
        size_t width = s->in[i]->columns * bytes;
        for (size_t r = 0; r < first->rows; r++)
            memcpy((char *)s->out->data + (r * columns + done) * bytes,
                   (const char *)s->in[i]->data + r * width, width);
    }
out:
    return status;
}

/* The elements of a list of floats that indices name. */
static mimus_status compute_gather(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *list = s->in[0], *index = s->in[1];
    size_t count = index->rows * index->columns;
    if (list->type != FLOAT || list->rank != 1 || index->type != INT64 ||
        integer(s, "axis", 0) != 0)
        return refuse(run, s, "takes a list of floats and int64 indices");
    MIMUS_TRY(shape_tensor(s->out, FLOAT, index->rank, index->rows, index->columns));
    for (size_t i = 0; i < count; i++) {
        int64_t place = integers(index)[i];
        if (place < 0 || (uint64_t)place >= list->columns)
            return refuse(run, s, "an index is not in the list");
        floats(s->out)[i] = floats(list)[place];
    }
out:
    return status;
}

/* The place of a row's largest number: the lowest of several. */
static size_t place_of_largest(const float *row, size_t columns) {
    size_t best = 0;
    for (size_t c = 1; c < columns; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

static mimus_status compute_softmax(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    if (x->type != FLOAT || x->rank != 2 || integer(s, "axis", -2) != 1)
        return refuse(run, s, "takes (rows, columns) of floats along the columns");
    MIMUS_TRY(shape_tensor(s->out, FLOAT, 2, x->rows, x->columns));
    for (size_t r = 0; r < x->rows; r++) {
        const float *row = floats(x) + r * x->columns;
        float *y = floats(s->out) + r * x->columns, sum = 0;
        float largest = row[place_of_largest(row, x->columns)];
        for (size_t c = 0; c < x->columns; c++)
            sum += y[c] = expf(row[c] - largest);
        for (size_t c = 0; c < x->columns; c++)
            y[c] /= sum;
    }
out:
    return status;
}

static mimus_status compute_argmax(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    if (x->type != FLOAT || x->rank != 2 || integer(s, "axis", 0) != 1 ||
        integer(s, "keepdims", 1) != 1)
        return refuse(run, s, "takes (rows, columns) of floats along the columns");
    MIMUS_TRY(shape_tensor(s->out, INT64, 2, x->rows, 1));
    for (size_t r = 0; r < x->rows; r++)
        integers(s->out)[r] = (int64_t)place_of_largest(floats(x) + r * x->columns, x->columns);
out:
    return status;
}

static mimus_status compute_reduce(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    const bool most = strcmp(s->node->op_type, "ReduceMax") == 0;
    if (x->type != FLOAT || x->rank != 2 || only(s, "axes", 0) != 1 ||
        integer(s, "keepdims", 1) != 1)
        return refuse(run, s, "takes (rows, columns) of floats along the columns");
    MIMUS_TRY(shape_tensor(s->out, FLOAT, 2, x->rows, 1));
    for (size_t r = 0; r < x->rows; r++) {
        const float *row = floats(x) + r * x->columns;
        float found = row[0];
        for (size_t c = 1; c < x->columns; c++)
            found = (most ? row[c] > found : row[c] < found) ? row[c] : found;
        floats(s->out)[r] = found;
    }
out:
    return status;
}

/* One draw a row from log probabilities. */
static mimus_status compute_multinomial(mimus__onnx_run *run, const step *s) {
    mimus_status status = MIMUS_OK;
    const tensor *x = s->in[0];
    if (x->type != FLOAT || x->rank != 2 || integer(s, "dtype", 0) != INT64 ||
        integer(s, "sample_size", 0) != 1)
        return refuse(run, s, "draws one int64 a row");
    MIMUS_TRY(shape_tensor(s->out, INT64, 2, x->rows, 1));
    for (size_t r = 0; r < x->rows; r++) {
        const float *row = floats(x) + r * x->columns;
        double left = mimus__rng_uniform(&run->rng);
        size_t drawn = place_of_largest(row, x->columns); /* where rounding leaves nothing */
        for (size_t c = 0; c < x->columns; c++) {
            left -= exp((double)row[c]);
            if (left < 0) {
                drawn = c;
                break;
            }
        }
        integers(s->out)[r] = (int64_t)drawn;
    }
out:
    return status;
}

static const char *const none[] = {NULL};
static const char *const trans_b[] = {"transB", NULL};
static const char *const axis[] = {"axis", NULL};
static const char *const axis_keepdims[] = {"axis", "keepdims", NULL};
static const char *const axes_keepdims[] = {"axes", "keepdims", NULL};
static const char *const bounds[] = {"axes", "starts", "ends", NULL};
static const char *const to[] = {"to", NULL};
static const char *const draw[] = {"dtype", "sample_size", NULL};

static const operation operations[] = {
    {"Add", compute_arithmetic, 2, 2, none},
    {"ArgMax", compute_argmax, 1, 1, axis_keepdims},
    {"Cast", compute_cast, 1, 1, to},
    {"Concat", compute_concat, 1, SIZE_MAX, axis},
    {"Erf", compute_elementwise, 1, 1, none},
    {"Gather", compute_gather, 2, 2, axis},
    {"Gemm", compute_gemm, 3, 3, trans_b},
    {"Identity", compute_identity, 1, 1, none},
    {"Log", compute_elementwise, 1, 1, none},
    {"Mul", compute_arithmetic, 2, 2, none},
    {"Multinomial", compute_multinomial, 1, 1, draw},
    {"ReduceMax", compute_reduce, 1, 1, axes_keepdims},
    {"ReduceMin", compute_reduce, 1, 1, axes_keepdims},
    {"Relu", compute_elementwise, 1, 1, none},
    {"Slice", compute_slice, 1, 4, bounds},
    {"Softmax", compute_softmax, 1, 1, axis},
    {"Sub", compute_arithmetic, 2, 2, none},
    {"Tanh", compute_elementwise, 1, 1, none},
    {"Where", compute_where, 3, 3, none},
};

static const operation *find_operation(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    }
    return NULL;
}

/* ----------------------------------------------------------------- reading */

static mimus_status malformed(const mimus__onnx_run *run, const char *what, const char *name) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: %s \"%s\" is not as mimus writes it", run->where,
                       what, name != NULL ? name : "");
}

/* The shape of a constant must be what its bytes are. */
static mimus_status take_constant(const mimus__onnx_run *run, tensor *out,
                                  const Mimus__Onnx__Tensor *from) {
    mimus_status status = MIMUS_OK;
    size_t count = 1;
    if ((from->data_type != FLOAT && from->data_type != INT64) || from->n_dims > 2)
        return malformed(run, "constant", from->name);
    for (size_t i = 0; i < from->n_dims; i++) {
        if (from->dims[i] < 1 || (uint64_t)from->dims[i] > from->raw_data.len / count)
            return malformed(run, "constant", from->name);
        count *= (size_t)from->dims[i];
    }
    if (count * element_bytes(from->data_type) != from->raw_data.len)
        return malformed(run, "constant", from->name);
    size_t columns = from->n_dims > 0 ? (size_t)from->dims[from->n_dims - 1] : 1;
    MIMUS_TRY(shape_tensor(out, from->data_type, (uint32_t)from->n_dims, count / columns, columns));
    memcpy(out->data, from->raw_data.data, from->raw_data.len);
out:
    return status;
}

/* Every name that the graph makes, once. */
static mimus_status list_tensors(mimus__onnx_run *run) {
    mimus_status status = MIMUS_OK;
    const Mimus__Onnx__Graph *graph = run->model->graph;
    size_t most = graph->n_input + graph->n_initializer + graph->n_node;
    MIMUS_TRY(mimus__alloc(&run->tensors, most, sizeof *run->tensors));
    for (size_t i = 0; i < graph->n_input; i++)
        run->tensors[run->count++].name = graph->input[i]->name;
    for (size_t i = 0; i < graph->n_initializer; i++)
        run->tensors[run->count++].name = graph->initializer[i]->name;
    for (size_t i = 0; i < graph->n_node; i++) {
        if (graph->node[i]->n_output != 1)
            return malformed(run, "node", graph->node[i]->name);
        run->tensors[run->count++].name = graph->node[i]->output[0];
    }
    for (size_t i = 0; i < run->count; i++) {
        if (run->tensors[i].name == NULL || run->tensors[i].name[0] == '\0')
            return malformed(run, "a value without a name,", NULL);
    }
    qsort(run->tensors, run->count, sizeof *run->tensors, compare_names);
    for (size_t i = 1; i < run->count; i++) {
        if (strcmp(run->tensors[i - 1].name, run->tensors[i].name) == 0)
            return malformed(run, "the repeated name", run->tensors[i].name);
    }
    for (size_t i = 0; i < graph->n_initializer; i++)
        MIMUS_TRY(
            take_constant(run, find(run, graph->initializer[i]->name), graph->initializer[i]));
out:
    return status;
}

static bool is_allowed(const char *const *allowed, const char *name) {
    while (*allowed != NULL && (name == NULL || strcmp(*allowed, name) != 0))
        allowed++;
    return *allowed != NULL;
}

static mimus_status resolve_step(const mimus__onnx_run *run, step *s,
                                 const Mimus__Onnx__Node *node) {
    s->node = node;
    s->out = find(run, node->output[0]);
    s->operation = find_operation(node->op_type);
    if (s->operation == NULL)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: node \"%s\": the operation %s is not known",
                           run->where, s->out->name,
                           node->op_type != NULL ? node->op_type : "without a name");
    if (node->n_input < s->operation->least || node->n_input > s->operation->most)
        return malformed(run, "node", s->out->name);
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (!is_allowed(s->operation->allowed, node->attribute[i]->name))
            return malformed(run, "node", s->out->name);
    }
    for (size_t i = 0; i < node->n_input; i++) {
        s->in[s->inputs] = find(run, node->input[i]);
        if (s->in[s->inputs++] == NULL)
            return malformed(run, "node", s->out->name);
    }
    return MIMUS_OK;
}

static mimus_status list_steps(mimus__onnx_run *run) {
    mimus_status status = MIMUS_OK;
    const Mimus__Onnx__Graph *graph = run->model->graph;
    size_t inputs = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        inputs += graph->node[i]->n_input;
    MIMUS_TRY(mimus__alloc(&run->steps, graph->n_node, sizeof *run->steps));
    MIMUS_TRY(mimus__alloc(&run->in, inputs, sizeof(tensor *)));
    inputs = 0;
    for (size_t i = 0; i < graph->n_node; inputs += graph->node[i++]->n_input) {
        run->steps[i].in = run->in + inputs;
        MIMUS_TRY(resolve_step(run, &run->steps[i], graph->node[i]));
    }
out:
    return status;
}

static mimus_status check_opset(mimus__onnx_run *run) {
    if (run->model->graph == NULL || run->model->n_opset_import != 1 ||
        run->model->opset_import[0]->version < 9 || run->model->opset_import[0]->version > 17)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: expected a graph and one operator set from 9 to 17", run->where);
    run->opset = run->model->opset_import[0]->version;
    return MIMUS_OK;
}

mimus_status mimus__onnx_run_new(mimus__onnx_run **out, const void *bytes, size_t size,
                                 const char *where) {
    mimus_status status = MIMUS_OK;
    mimus__onnx_run *run = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&run, 1, sizeof *run));
    run->where = where;
    run->model = mimus__onnx__model__unpack(NULL, size, bytes);
    if (run->model == NULL) {
        status = mimus__fail(MIMUS_ERR_FORMAT, "%s: not an ONNX model", where);
        goto out;
    }
    MIMUS_TRY(check_opset(run));
    MIMUS_TRY(list_tensors(run));
    MIMUS_TRY(list_steps(run));
    *out = run;
    run = NULL;
out:
    mimus__onnx_run_free(run);
    return status;
}

void mimus__onnx_run_free(mimus__onnx_run *run) {
    if (run == NULL)
        return;
    for (size_t i = 0; i < run->count; i++)
        free(run->tensors[i].data);
    free(run->tensors);
    free(run->steps);
    free(run->in);
    if (run->model != NULL)
        mimus__onnx__model__free_unpacked(run->model, NULL);
    free(run);
}

/* --------------------------------------------------------------- computing */

/* Whether a value is of the type and shape that the file declares. */
static bool is_as_declared(const tensor *t, const Mimus__Onnx__Value *declared) {
    const Mimus__Onnx__TensorType *type =
        declared->type != NULL ? declared->type->tensor_type : NULL;
    if (type == NULL || type->shape == NULL || type->elem_type != t->type ||
        type->shape->n_dim != t->rank)
        return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        const Mimus__Onnx__Dimension *dimension = type->shape->dim[i];
        size_t size = i + 1 == t->rank ? t->columns : t->rows;
        if (dimension->size_case == MIMUS__ONNX__DIMENSION__SIZE_DIM_VALUE &&
            (uint64_t)dimension->dim_value != size)
            return false;
    }
    return true;
}

static mimus_status set_input(mimus__onnx_run *run, const char *name, int type, size_t rows,
                              size_t columns, const void *values) {
    mimus_status status = MIMUS_OK;
    const Mimus__Onnx__Graph *graph = run->model->graph;
    const Mimus__Onnx__Value *declared = NULL;
    for (size_t i = 0; i < graph->n_input && declared == NULL; i++)
        declared = strcmp(graph->input[i]->name, name) == 0 ? graph->input[i] : NULL;
    if (declared == NULL)
        return mimus__fail(MIMUS_ERR_FORMAT, "%s: there is no input \"%s\"", run->where, name);
    tensor *input = find(run, name);
    MIMUS_TRY(columns > 0 ? shape_tensor(input, type, 2, rows, columns)
                          : shape_tensor(input, type, 1, 1, rows));
    memcpy(input->data, values, input->rows * input->columns * element_bytes(type));
    if (!is_as_declared(input, declared))
        status = malformed(run, "input", name);
out:
    return status;
}

mimus_status mimus__onnx_run_set_floats(mimus__onnx_run *run, const char *name, size_t rows,
                                        size_t columns, const float *values) {
    return set_input(run, name, FLOAT, rows, columns, values);
}

mimus_status mimus__onnx_run_set_bools(mimus__onnx_run *run, const char *name, size_t rows,
                                       size_t columns, const uint8_t *values) {
    return set_input(run, name, BOOL, rows, columns, values);
}

mimus_status mimus__onnx_run_compute(mimus__onnx_run *run, uint64_t seed) {
    mimus_status status = MIMUS_OK;
    const Mimus__Onnx__Graph *graph = run->model->graph;
    run->rng = (mimus__rng){.seed = seed};
    for (size_t i = 0; i < graph->n_node; i++) { /* nothing of the computation before is taken */
        free(run->steps[i].out->data);
        run->steps[i].out->data = NULL;
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const step *s = &run->steps[i];
        for (size_t k = 0; k < s->inputs; k++) {
            if (s->in[k]->data == NULL)
                return refuse(run, s, "an input of it is made behind it, or was not given");
        }
        MIMUS_TRY(s->operation->compute(run, s));
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        const tensor *output =
            graph->output[i]->name != NULL ? find(run, graph->output[i]->name) : NULL;
        if (output == NULL || output->data == NULL || !is_as_declared(output, graph->output[i]))
            return malformed(run, "output", graph->output[i]->name);
    }
out:
    return status;
}

static mimus_status get(const mimus__onnx_run *run, const char *name, int type, size_t rows,
                        size_t columns, const tensor **out) {
    *out = find(run, name);
    if (*out == NULL || (*out)->data == NULL || (*out)->type != type || (*out)->rows != rows ||
        (*out)->columns != columns)
        return malformed(run, "value", name);
    return MIMUS_OK;
}

mimus_status mimus__onnx_run_floats(const mimus__onnx_run *run, const char *name, size_t rows,
                                    size_t columns, const float **out) {
    mimus_status status = MIMUS_OK;
    const tensor *found;
    MIMUS_TRY(get(run, name, FLOAT, rows, columns, &found));
    *out = floats(found);
out:
    return status;
}

mimus_status mimus__onnx_run_integers(const mimus__onnx_run *run, const char *name, size_t rows,
                                      size_t columns, const int64_t **out) {
    mimus_status status = MIMUS_OK;
    const tensor *found;
    MIMUS_TRY(get(run, name, INT64, rows, columns, &found));
    *out = integers(found);
out:
    return status;
}

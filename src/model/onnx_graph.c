/* onnx_graph - protobuf messages whose parts all live in one list of blocks, freed together. */
#include "onnx_graph.h"

#include "alloc.h"
#include "onnx.pb-c.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 }; /* AttributeProto.AttributeType */

typedef struct block {
    struct block *next;
    max_align_t content[];
} block;

/* A repeated field that grows: protobuf-c sees the count and the pointers, not the room. */
typedef struct room {
    size_t nodes, initializers, inputs, outputs, metadata;
} room;

struct mimus__onnx_graph {
    mimus_status status; /* the first failure */
    block *blocks;
    Mimus__Onnx__Model model;
    Mimus__Onnx__Graph graph;
    Mimus__Onnx__Opset opset;
    Mimus__Onnx__Opset *opsets[1];
    room room;
};

/* ------------------------------------------------------------------ memory */

/* Zeroed memory that lives as long as the graph; NULL once something went wrong. */
static void *take(mimus__onnx_graph *graph, size_t bytes) {
    block *taken = NULL;
    if (graph->status != MIMUS_OK)
        return NULL;
    graph->status = mimus__alloc(&taken, 1, sizeof *taken + bytes);
    if (taken == NULL)
        return NULL;
    taken->next = graph->blocks;
    graph->blocks = taken;
    return taken->content;
}

static char *copy_text(mimus__onnx_graph *graph, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = take(graph, bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

const char *mimus__onnx_text(mimus__onnx_graph *graph, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length >= 0 ? take(graph, (size_t)length + 1) : NULL;
    if (text != NULL)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text != NULL ? text : "";
}

/* Append `item` to a repeated field; false once something went wrong. */
#define append(graph, array, count, capacity, item)                                                \
    append_pointer((graph), (void ***)&(array), &(count), &(capacity), (item))
static bool append_pointer(mimus__onnx_graph *graph, void ***array, size_t *count, size_t *capacity,
                           void *item) {
    if (graph->status == MIMUS_OK)
        graph->status = mimus__grow(array, capacity, *count + 1, sizeof **array);
    if (graph->status != MIMUS_OK)
        return false;
    (*array)[(*count)++] = item;
    return true;
}

mimus_status mimus__onnx_graph_new(mimus__onnx_graph **out, int64_t ir_version, int64_t opset) {
    mimus_status status = MIMUS_OK;
    mimus__onnx_graph *graph = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&graph, 1, sizeof *graph));
    mimus__onnx__model__init(&graph->model);
    mimus__onnx__graph__init(&graph->graph);
    mimus__onnx__opset__init(&graph->opset);
    graph->opset.domain = copy_text(graph, ""); /* ONNX's own operators */
    graph->opset.has_version = true;
    graph->opset.version = opset;
    graph->opsets[0] = &graph->opset;
    graph->graph.name = copy_text(graph, "policy");
    graph->model.has_ir_version = true;
    graph->model.ir_version = ir_version;
    graph->model.producer_name = copy_text(graph, "mimus");
    graph->model.producer_version = copy_text(graph, MIMUS_VERSION);
    graph->model.graph = &graph->graph;
    graph->model.opset_import = graph->opsets;
    graph->model.n_opset_import = 1;
    *out = graph;
out:
    return status;
}

void mimus__onnx_graph_free(mimus__onnx_graph *graph) {
    if (graph == NULL)
        return;
    while (graph->blocks != NULL) {
        block *next = graph->blocks->next;
        free(graph->blocks);
        graph->blocks = next;
    }
    free(graph->graph.node);
    free(graph->graph.initializer);
    free(graph->graph.input);
    free(graph->graph.output);
    free(graph->model.metadata_props);
    free(graph);
}

int64_t mimus__onnx_graph_opset(const mimus__onnx_graph *graph) {
    return graph->opset.version;
}

/* ------------------------------------------------------------------- texts */

void mimus__onnx_describe(mimus__onnx_graph *graph, const char *text) {
    graph->model.doc_string = copy_text(graph, text);
}

void mimus__onnx_metadata(mimus__onnx_graph *graph, const char *key, const char *value) {
    Mimus__Onnx__Entry *entry = take(graph, sizeof *entry);
    if (entry == NULL)
        return;
    mimus__onnx__entry__init(entry);
    entry->key = copy_text(graph, key);
    entry->value = copy_text(graph, value);
    append(graph, graph->model.metadata_props, graph->model.n_metadata_props, graph->room.metadata,
           entry);
}

/* ------------------------------------------------------------------ values */

typedef struct value_parts {
    Mimus__Onnx__Value value;
    Mimus__Onnx__Type type;
    Mimus__Onnx__TensorType tensor;
    Mimus__Onnx__Shape shape;
    Mimus__Onnx__Dimension dimension[2];
    Mimus__Onnx__Dimension *dimensions[2];
} value_parts;

static Mimus__Onnx__Value *make_value(mimus__onnx_graph *graph, const mimus__onnx_value *from) {
    value_parts *parts = take(graph, sizeof *parts);
    if (parts == NULL)
        return NULL;
    mimus__onnx__value__init(&parts->value);
    mimus__onnx__type__init(&parts->type);
    mimus__onnx__tensor_type__init(&parts->tensor);
    mimus__onnx__shape__init(&parts->shape);
    parts->value.name = copy_text(graph, from->name);
    parts->value.doc_string = copy_text(graph, from->text);
    parts->value.type = &parts->type;
    parts->type.tensor_type = &parts->tensor;
    parts->tensor.has_elem_type = true;
    parts->tensor.elem_type = (int32_t)from->type;
    parts->tensor.shape = &parts->shape;
    parts->shape.dim = parts->dimensions;
    parts->shape.n_dim = from->rank;
    for (uint32_t i = 0; i < from->rank; i++) {
        Mimus__Onnx__Dimension *dimension = parts->dimensions[i] = &parts->dimension[i];
        mimus__onnx__dimension__init(dimension);
        if (from->size[i] == 0) {
            dimension->size_case = MIMUS__ONNX__DIMENSION__SIZE_DIM_PARAM;
            dimension->dim_param = copy_text(graph, "batch");
        } else {
            dimension->size_case = MIMUS__ONNX__DIMENSION__SIZE_DIM_VALUE;
            dimension->dim_value = from->size[i];
        }
    }
    return &parts->value;
}

void mimus__onnx_input(mimus__onnx_graph *graph, const mimus__onnx_value *value) {
    append(graph, graph->graph.input, graph->graph.n_input, graph->room.inputs,
           make_value(graph, value));
}

void mimus__onnx_output(mimus__onnx_graph *graph, const mimus__onnx_value *value) {
    append(graph, graph->graph.output, graph->graph.n_output, graph->room.outputs,
           make_value(graph, value));
}

/* --------------------------------------------------------------- constants */

typedef struct tensor_parts {
    Mimus__Onnx__Tensor tensor;
    int64_t size[2];
} tensor_parts;

static void add_constant(mimus__onnx_graph *graph, const char *name, mimus__onnx_type type,
                         const void *values, size_t bytes, uint32_t rows, uint32_t columns) {
    tensor_parts *parts = take(graph, sizeof *parts);
    void *copy = take(graph, bytes);
    if (parts == NULL || copy == NULL)
        return;
    memcpy(copy, values, bytes);
    mimus__onnx__tensor__init(&parts->tensor);
    parts->tensor.name = copy_text(graph, name);
    parts->tensor.has_data_type = true;
    parts->tensor.data_type = (int32_t)type;
    parts->tensor.dims = parts->size;
    if (rows > 0)
        parts->size[parts->tensor.n_dims++] = rows;
    parts->size[parts->tensor.n_dims++] = columns;
    parts->tensor.has_raw_data = true;
    parts->tensor.raw_data = (ProtobufCBinaryData){.len = bytes, .data = copy};
    append(graph, graph->graph.initializer, graph->graph.n_initializer, graph->room.initializers,
           &parts->tensor);
}

void mimus__onnx_floats(mimus__onnx_graph *graph, const char *name, const float *values,
                        uint32_t rows, uint32_t columns) {
    size_t count = (size_t)(rows > 0 ? rows : 1) * columns;
    add_constant(graph, name, MIMUS__ONNX_FLOAT, values, count * sizeof *values, rows, columns);
}

void mimus__onnx_integers(mimus__onnx_graph *graph, const char *name, const int64_t *values,
                          uint32_t count) {
    add_constant(graph, name, MIMUS__ONNX_INT64, values, count * sizeof *values, 0, count);
}

/* ------------------------------------------------------------------- nodes */

enum { MOST_ATTRIBUTES = 4 };

typedef struct node_parts {
    Mimus__Onnx__Node node; /* at the front: the graph's list leads to its parts */
    char *output[1];
    Mimus__Onnx__Attribute attribute[MOST_ATTRIBUTES];
    Mimus__Onnx__Attribute *attributes[MOST_ATTRIBUTES];
    int64_t list[MOST_ATTRIBUTES];
} node_parts;

void mimus__onnx_add_node(mimus__onnx_graph *graph, const char *op, const char *output,
                          const char *const *inputs) {
    size_t count = 0;
    while (inputs[count] != NULL)
        count++;
    node_parts *parts = take(graph, sizeof *parts);
    char **names = take(graph, (count + 1) * sizeof *names);
    if (parts == NULL || names == NULL)
        return;
    mimus__onnx__node__init(&parts->node);
    for (size_t i = 0; i < count; i++)
        names[i] = copy_text(graph, inputs[i]);
    parts->node.input = names;
    parts->node.n_input = count;
    parts->output[0] = copy_text(graph, output);
    parts->node.output = parts->output;
    parts->node.n_output = 1;
    parts->node.name = parts->output[0]; /* one output each: its name is the node's too */
    parts->node.op_type = copy_text(graph, op);
    parts->node.attribute = parts->attributes;
    append(graph, graph->graph.node, graph->graph.n_node, graph->room.nodes, &parts->node);
}

/* The next attribute of the latest node, or NULL once something went wrong. */
static Mimus__Onnx__Attribute *add_attribute(mimus__onnx_graph *graph, const char *name,
                                             int32_t type, int64_t **list) {
    if (graph->status != MIMUS_OK)
        return NULL;
    node_parts *parts = (node_parts *)graph->graph.node[graph->graph.n_node - 1];
    size_t index = parts->node.n_attribute++;
    Mimus__Onnx__Attribute *attribute = parts->attributes[index] = &parts->attribute[index];
    mimus__onnx__attribute__init(attribute);
    attribute->name = copy_text(graph, name);
    attribute->has_type = true;
    attribute->type = type;
    *list = &parts->list[index];
    return attribute;
}

void mimus__onnx_integer(mimus__onnx_graph *graph, const char *attribute, int64_t value) {
    int64_t *unused;
    Mimus__Onnx__Attribute *added = add_attribute(graph, attribute, ATTRIBUTE_INT, &unused);
    if (added == NULL)
        return;
    added->has_i = true;
    added->i = value;
}

void mimus__onnx_list(mimus__onnx_graph *graph, const char *attribute, int64_t value) {
    int64_t *list;
    Mimus__Onnx__Attribute *added = add_attribute(graph, attribute, ATTRIBUTE_INTS, &list);
    if (added == NULL)
        return;
    *list = value;
    added->ints = list;
    added->n_ints = 1;
}

/* ----------------------------------------------------------------- writing */

typedef struct stream_buffer {
    ProtobufCBuffer base;
    FILE *stream;
} stream_buffer;

static void append_to_stream(ProtobufCBuffer *base, size_t bytes, const uint8_t *data) {
    fwrite(data, 1, bytes, ((stream_buffer *)base)->stream);
}

mimus_status mimus__onnx_graph_write(mimus__onnx_graph *graph, FILE *stream) {
    stream_buffer buffer = {.base.append = append_to_stream, .stream = stream};
    if (graph->status != MIMUS_OK)
        return graph->status;
    size_t bytes = mimus__onnx__model__get_packed_size(&graph->model);
    if (bytes > INT32_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "an ONNX model of %zu bytes; readers take 2 GiB at most", bytes);
    mimus__onnx__model__pack_to_buffer(&graph->model, &buffer.base);
    return MIMUS_OK;
}

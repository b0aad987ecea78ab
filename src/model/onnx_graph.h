/* onnx_graph - an ONNX model under construction: values are known by their names, as in the file.
 *
 * Nothing here returns a status: what goes wrong (memory) is kept, and mimus__onnx_graph_write
 * gives it. All texts and numbers are copied. */
#ifndef MIMUS_MODEL_ONNX_GRAPH_H
#define MIMUS_MODEL_ONNX_GRAPH_H

#include "status.h"

#include <stdio.h>

/* The element types, with ONNX's own numbers. */
typedef enum mimus__onnx_type {
    MIMUS__ONNX_FLOAT = 1,
    MIMUS__ONNX_INT64 = 7,
    MIMUS__ONNX_BOOL = 9,
} mimus__onnx_type;

typedef struct mimus__onnx_graph mimus__onnx_graph;

mimus_status mimus__onnx_graph_new(mimus__onnx_graph **out, int64_t ir_version, int64_t opset);
void mimus__onnx_graph_free(mimus__onnx_graph *graph);
int64_t mimus__onnx_graph_opset(const mimus__onnx_graph *graph);

/* A text that lives as long as the graph; "" once something went wrong. */
const char *mimus__onnx_text(mimus__onnx_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void mimus__onnx_describe(mimus__onnx_graph *graph, const char *text);
void mimus__onnx_metadata(mimus__onnx_graph *graph, const char *key, const char *value);

/* What goes in and comes out. A size of `rank` (0 to 2) that is 0 is the batch's. */
typedef struct mimus__onnx_value {
    const char *name;
    mimus__onnx_type type;
    uint32_t rank;
    int64_t size[2];
    const char *text; /* for people */
} mimus__onnx_value;

void mimus__onnx_input(mimus__onnx_graph *graph, const mimus__onnx_value *value);
void mimus__onnx_output(mimus__onnx_graph *graph, const mimus__onnx_value *value);

/* Constants: floats (rows, columns) or, where rows is 0, (columns); integers (count). */
void mimus__onnx_floats(mimus__onnx_graph *graph, const char *name, const float *values,
                        uint32_t rows, uint32_t columns);
void mimus__onnx_integers(mimus__onnx_graph *graph, const char *name, const int64_t *values,
                          uint32_t count);

/* The operation `op` on named inputs makes the value `output`; nodes stand in the order in which
 * they are added. Attributes go to the latest node. */
#define mimus__onnx_node(graph, op, output, ...)                                                   \
    mimus__onnx_add_node((graph), (op), (output), (const char *const[]){__VA_ARGS__, NULL})
void mimus__onnx_add_node(mimus__onnx_graph *graph, const char *op, const char *output,
                          const char *const *inputs);
void mimus__onnx_integer(mimus__onnx_graph *graph, const char *attribute, int64_t value);
void mimus__onnx_list(mimus__onnx_graph *graph, const char *attribute, int64_t value);

/* Write the model; the stream's error flag tells of a failed write. MIMUS_ERR_MEMORY when building
 * it failed, MIMUS_ERR_UNSUPPORTED when it is larger than the 2 GiB that readers take. */
mimus_status mimus__onnx_graph_write(mimus__onnx_graph *graph, FILE *stream);

#endif

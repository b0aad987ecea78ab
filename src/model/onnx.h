/* onnx - a model as an ONNX file, in the form that a target expects (docs/export.md).
 *
 * In every form the graph takes raw senses, normalises them and computes the logits (batch, A) of
 * all heads, which have the name "logits" whether they are an output or not. */
#ifndef MIMUS_MODEL_ONNX_H
#define MIMUS_MODEL_ONNX_H

#include "model.h"

#include <stdio.h>

typedef enum mimus__onnx_target {
    MIMUS__ONNX_ONNXRUNTIME,
    MIMUS__ONNX_UNITY, /* ML-Agents 2 and later: Barracuda, Sentis, Inference Engine */
    MIMUS__ONNX_GODOT, /* Godot RL Agents */
} mimus__onnx_target;

/* How the senses of one sample are spread over inputs: `size` (count) of each, which add up to S.
 * Unity has an input a sensor; count 0: all are one input. */
typedef struct mimus__onnx_inputs {
    const uint32_t *size;
    uint32_t count;
} mimus__onnx_inputs;

/* Write the model; the stream's error flag tells of a failed write. MIMUS_ERR_ARGUMENT when the
 * inputs do not add up to the senses, or when there are several of them and the target is not
 * Unity. */
mimus_status mimus__onnx_write(FILE *stream, const mimus__model *model, mimus__onnx_target target,
                               const mimus__onnx_inputs *inputs);

/* The sensors that senses were recorded from, by their names, as the reader of .demo files gives
 * them: "Rays[0]", "Rays[1]", ..., "Speed" are 2 and 1. `*size` (to be freed) stays NULL where no
 * name has a number, or where the numbers do not count from 0. */
mimus_status mimus__onnx_sensors(uint32_t **size, uint32_t *count, const mimus_schema *schema);

/* Where column `column` of the inputs, laid side by side, stands among the network's inputs: with
 * several inputs each stacks by itself. */
uint32_t mimus__onnx_column(const mimus__shape *shape, const mimus__onnx_inputs *inputs,
                            uint32_t column);

#endif

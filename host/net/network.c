#include "network.h"

#include "alloc.h"

#include <stdlib.h>

static mimus_status make_gemm(mimus__network *network, const mimus__shape *shape, uint32_t runs,
                              uint32_t rows, mimus__gemm_kind kind) {
    mimus__gemm_layer layers[MIMUS__MAX_LAYERS];
    for (uint32_t l = 0; l < shape->layers; l++)
        layers[l] =
            (mimus__gemm_layer){.runs = runs, .in = shape->width[l], .out = shape->width[l + 1]};
    return mimus__gemm_new(&network->gemm, network->device, kind, layers, shape->layers, rows);
}

static size_t activation_bytes(const mimus__network *network, uint32_t layer) {
    size_t runs = layer == 0 && network->shares_input ? 1 : network->layout.runs;
    return runs * network->capacity * network->layout.padded[layer] * sizeof(float);
}

static mimus_status make_numbers(mimus__network *network) {
    mimus_status status = MIMUS_OK;
    size_t bytes = network->layout.total * sizeof(float);
    MIMUS_TRY(mimus__buffer_new(&network->parameters, network->device, bytes, "the parameters"));
    if (network->trains)
        MIMUS_TRY(mimus__buffer_new(&network->gradient, network->device, bytes * network->splits,
                                    "the gradients"));
out:
    return status;
}

static mimus_status make_buffers(mimus__network *network) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &network->layout;
    mimus__device *device = network->device;
    uint32_t layers = layout->shape.layers;
    for (uint32_t l = 0; l <= layers; l++)
        MIMUS_TRY(mimus__buffer_new(&network->activation[l], device, activation_bytes(network, l),
                                    "a layer's outputs"));
    if (!network->trains)
        return MIMUS_OK;
    for (uint32_t l = 1; l < layers; l++) {
        MIMUS_TRY(mimus__buffer_new(&network->delta[l], device, activation_bytes(network, l),
                                    "a layer's gradients"));
        if (network->keeps_pre)
            MIMUS_TRY(mimus__buffer_new(&network->pre[l], device, activation_bytes(network, l),
                                        "a layer's sums"));
    }
out:
    return status;
}

/* gelu's derivative is taken at X W + b; tanh's too, where dropout has changed the output. */
static bool needs_pre(const mimus__shape *shape, bool dropout) {
    return shape->activation == MIMUS__GELU || (shape->activation == MIMUS__TANH && dropout);
}

mimus_status mimus__network_new(mimus__network **out, mimus__device *device,
                                const mimus__shape *shape, uint32_t runs, uint32_t rows,
                                mimus__gemm_kind gemm, bool trains, bool shares_input,
                                const mimus__buffer *dropout_hyper) {
    mimus_status status = MIMUS_OK;
    mimus__network *network = NULL;
    MIMUS_TRY(mimus__alloc(&network, 1, sizeof *network));
    network->device = device;
    network->trains = trains;
    network->shares_input = shares_input;
    network->live = runs;
    network->dropout_hyper = dropout_hyper;
    network->keeps_pre = trains && needs_pre(shape, dropout_hyper != NULL);
    MIMUS_TRY(make_gemm(network, shape, runs, rows, gemm));
    network->layout = mimus__layout_of(shape, runs, mimus__gemm_width_pad(network->gemm));
    network->capacity = mimus__network_padded_rows(network, rows);
    network->splits = mimus__gemm_splits(network->gemm);
    MIMUS_TRY(make_numbers(network));
    MIMUS_TRY(make_buffers(network));
    if (dropout_hyper != NULL) {
        mimus__defines none = {0};
        MIMUS_TRY(mimus__program_build(&network->dropout_program, device, "dropout.cl", &none));
        MIMUS_TRY(mimus__kernel_new(&network->dropout, &network->dropout_program, "mimus_dropout"));
    }
    *out = network;
    network = NULL;
out:
    mimus__network_free(network);
    return status;
}

mimus_status mimus__network_new_numbers(mimus__network **out, mimus__device *device,
                                        const mimus__shape *shape, uint32_t runs, bool dropout,
                                        uint32_t splits) {
    enum { WIDTH_PAD = 16 };
    mimus_status status = MIMUS_OK;
    mimus__network *network = NULL;
    MIMUS_TRY(mimus__alloc(&network, 1, sizeof *network));
    network->device = device;
    network->trains = true;
    network->live = runs;
    network->splits = splits;
    network->keeps_pre = needs_pre(shape, dropout);
    network->layout = mimus__layout_of(shape, runs, WIDTH_PAD);
    MIMUS_TRY(make_numbers(network));
    *out = network;
    network = NULL;
out:
    mimus__network_free(network);
    return status;
}

void mimus__network_free(mimus__network *network) {
    if (network == NULL)
        return;
    mimus__gemm_free(network->gemm); /* may hold parts of the buffers */
    mimus__kernel_free(&network->dropout);
    mimus__program_free(&network->dropout_program);
    for (uint32_t l = 0; l < MIMUS__MAX_LAYERS; l++) {
        mimus__buffer_free(&network->pre[l]);
        mimus__buffer_free(&network->delta[l]);
    }
    for (uint32_t l = 0; l <= MIMUS__MAX_LAYERS; l++)
        mimus__buffer_free(&network->activation[l]);
    mimus__buffer_free(&network->parameters);
    mimus__buffer_free(&network->gradient);
    free(network);
}

static mimus__matrix matrix_of(const mimus__network *network, const mimus__buffer *buffer,
                               uint32_t layer) {
    return (mimus__matrix){.buffer = buffer,
                           .stride = (size_t)network->capacity * network->layout.padded[layer]};
}

mimus__matrix mimus__network_matrix(const mimus__network *network, uint32_t layer) {
    mimus__matrix matrix = matrix_of(network, &network->activation[layer], layer);
    if (layer == 0 && network->shares_input)
        matrix.stride = 0;
    return matrix;
}

mimus_status mimus__network_set_parameters(mimus__network *network, const float *parameters) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &network->layout;
    size_t count = mimus__shape_parameters(&layout->shape);
    float *image = NULL;
    MIMUS_TRY(mimus__alloc(&image, layout->total, sizeof *image));
    for (uint32_t run = 0; run < layout->runs; run++)
        mimus__layout_pack(layout, run, parameters + run * count, image);
    MIMUS_TRY(mimus__buffer_write(&network->parameters, 0, image, layout->total * sizeof *image));
out:
    free(image);
    return status;
}

uint32_t mimus__network_padded_rows(const mimus__network *network, uint32_t rows) {
    return mimus__round_up(rows, mimus__gemm_row_pad(network->gemm));
}

static mimus__gemm_layer layer_of(const mimus__network *network, uint32_t l) {
    return (mimus__gemm_layer){.runs = network->live,
                               .in = network->layout.padded[l],
                               .out = network->layout.padded[l + 1]};
}

/* A layer's weights and biases in a buffer of the layout: the parameters or the gradients. */
static mimus__matrix weights_in(const mimus__network *network, const mimus__buffer *buffer,
                                uint32_t l) {
    const mimus__layout *layout = &network->layout;
    return (mimus__matrix){.buffer = buffer,
                           .offset = layout->weight[l],
                           .stride = (size_t)layout->padded[l] * layout->padded[l + 1]};
}

static mimus__matrix biases_in(const mimus__network *network, const mimus__buffer *buffer,
                               uint32_t l) {
    const mimus__layout *layout = &network->layout;
    return (mimus__matrix){
        .buffer = buffer, .offset = layout->bias[l], .stride = layout->padded[l + 1]};
}

/* Items of a group, each with 4 of the width's columns. A GPU is filled by as many as divide it; on
 * CPUs, which compile a kernel anew for every size, there are two sizes. */
static size_t dropout_items(const mimus__network *network, uint32_t width) {
    const size_t most = mimus__geometry_of(network->device).local > 1 ? 64 : 4;
    size_t items = width % 16 == 0 ? 4 : 1;
    while (2 * items <= most && width / 4 % (2 * items) == 0)
        items *= 2;
    return items;
}

/* Drop in place; the same call drops a hidden layer's outputs and their gradients. */
static mimus_status drop(mimus__network *network, const mimus__buffer *buffer, uint32_t layer,
                         uint32_t rows, uint32_t step) {
    uint32_t width = network->layout.padded[layer];
    mimus__grid grid = {.global = {width / 4, rows, network->live}, .local = {1, 1, 1}};
    grid.local[0] = dropout_items(network, width);
    return mimus__launch(&network->dropout, grid, MIMUS_ARG_U32(layer - 1), MIMUS_ARG_U32(step),
                         MIMUS_ARG_U32(width), MIMUS_ARG_U32(network->capacity),
                         MIMUS_ARG_BUFFER(network->dropout_hyper), MIMUS_ARG_BUFFER(buffer));
}

mimus_status mimus__network_forward(mimus__network *network, uint32_t rows, bool training,
                                    uint32_t step) {
    mimus_status status = MIMUS_OK;
    uint32_t layers = network->layout.shape.layers;
    uint32_t padded = mimus__network_padded_rows(network, rows);
    for (uint32_t l = 0; l < layers; l++) {
        bool hidden = l + 1 < layers;
        mimus__gemm_layer layer = layer_of(network, l);
        mimus__matrix pre = matrix_of(network, &network->pre[l + 1 < layers ? l + 1 : 0], l + 1);
        MIMUS_TRY(mimus__gemm_forward(network->gemm, &layer, padded,
                                      mimus__network_matrix(network, l),
                                      weights_in(network, &network->parameters, l),
                                      biases_in(network, &network->parameters, l),
                                      hidden ? network->layout.shape.activation : MIMUS__IDENTITY,
                                      mimus__network_matrix(network, l + 1),
                                      hidden && network->keeps_pre && training ? &pre : NULL));
        if (hidden && training && network->dropout_hyper != NULL)
            MIMUS_TRY(drop(network, &network->activation[l + 1], l + 1, padded, step));
    }
out:
    return status;
}

mimus_status mimus__network_backward(mimus__network *network, uint32_t rows, uint32_t step) {
    mimus_status status = MIMUS_OK;
    const mimus__layout *layout = &network->layout;
    uint32_t padded = mimus__network_padded_rows(network, rows);
    mimus__matrix g = mimus__network_matrix(network, layout->shape.layers);
    for (uint32_t l = layout->shape.layers; l-- > 0;) {
        mimus__gemm_layer layer = layer_of(network, l);
        MIMUS_TRY(mimus__gemm_weight_gradient(
            network->gemm, &layer, padded, mimus__network_matrix(network, l), g,
            weights_in(network, &network->gradient, l), biases_in(network, &network->gradient, l),
            layout->total));
        if (l == 0)
            break;
        mimus__matrix d = matrix_of(network, &network->delta[l], l);
        mimus__matrix saved = network->keeps_pre ? matrix_of(network, &network->pre[l], l)
                                                 : mimus__network_matrix(network, l);
        MIMUS_TRY(mimus__gemm_input_gradient(
            network->gemm, &layer, padded, g, weights_in(network, &network->parameters, l),
            layout->shape.activation, saved, network->keeps_pre, d));
        if (network->dropout_hyper != NULL)
            MIMUS_TRY(drop(network, &network->delta[l], l, padded, step));
        g = d;
    }
out:
    return status;
}

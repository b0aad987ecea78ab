#include "layout.h"

#include "alloc.h"

#include <stdio.h>
#include <string.h>

enum { SEGMENT_ALIGN = 1024 };

static size_t aligned(size_t floats) {
    return (floats + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN;
}

mimus__layout mimus__layout_of(const mimus__shape *shape, uint32_t runs, uint32_t pad) {
    mimus__layout layout = {.shape = *shape, .runs = runs};
    for (uint32_t l = 0; l <= shape->layers; l++)
        layout.padded[l] = (shape->width[l] + pad - 1) / pad * pad;
    for (uint32_t l = 0; l < shape->layers; l++) {
        layout.weight[l] = layout.total;
        layout.total += aligned((size_t)runs * layout.padded[l] * layout.padded[l + 1]);
        layout.bias[l] = layout.total;
        layout.total += aligned((size_t)runs * layout.padded[l + 1]);
    }
    return layout;
}

static uint32_t cut(mimus__chunk *chunks, uint32_t count, size_t begin, size_t size,
                    uint32_t floats, uint32_t weights) {
    for (size_t done = 0; done < size; done += floats, count++) {
        size_t here = size - done < floats ? size - done : floats;
        if (chunks != NULL)
            chunks[count] = (mimus__chunk){.begin = (uint32_t)(begin + done),
                                           .stride = (uint32_t)size,
                                           .count = (uint32_t)here,
                                           .weights = weights};
    }
    return count;
}

static uint32_t cut_all(const mimus__layout *layout, uint32_t floats, mimus__chunk *chunks) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < layout->shape.layers; l++) {
        size_t in = layout->padded[l], out = layout->padded[l + 1];
        count = cut(chunks, count, layout->weight[l], in * out, floats, l + 1);
        count = cut(chunks, count, layout->bias[l], out, floats, 0);
    }
    return count;
}

mimus_status mimus__layout_chunks(const mimus__layout *layout, uint32_t floats,
                                  mimus__chunk **chunks, uint32_t *count) {
    mimus_status status = MIMUS_OK;
    if (layout->total > UINT32_MAX)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "the networks have %zu parameters in all; at most %u are possible",
                           layout->total, UINT32_MAX);
    *count = cut_all(layout, floats, NULL);
    MIMUS_TRY(mimus__alloc(chunks, *count, sizeof **chunks));
    cut_all(layout, floats, *chunks);
out:
    return status;
}

static void list_number(char *text, size_t room, size_t number) {
    size_t used = strlen(text);
    snprintf(text + used, room - used, used > 0 ? ",%zu" : "%zu", number);
}

void mimus__layout_define(const mimus__layout *layout, mimus__layout_tables *tables,
                          mimus__defines *defines) {
    uint32_t layers = layout->shape.layers;
    *tables = (mimus__layout_tables){.widths = ""};
    for (uint32_t l = 0; l <= layers; l++)
        list_number(tables->widths, sizeof tables->widths, layout->padded[l]);
    for (uint32_t l = 0; l < layers; l++) {
        list_number(tables->weights, sizeof tables->weights, layout->weight[l]);
        list_number(tables->biases, sizeof tables->biases, layout->bias[l]);
    }
    mimus__define_number(defines, "LAYERS", layers);
    mimus__define_text(defines, "WIDTHS", tables->widths);
    mimus__define_text(defines, "WEIGHTS_AT", tables->weights);
    mimus__define_text(defines, "BIASES_AT", tables->biases);
}

/* Copy between the P numbers of a run and the image, one way or the other. */
static void copy_run(const mimus__layout *layout, uint32_t run, float *parameters, float *image,
                     bool into_image) {
    const mimus__shape *shape = &layout->shape;
    for (uint32_t l = 0; l < shape->layers; l++) {
        size_t out = shape->width[l + 1], padded_out = layout->padded[l + 1];
        float *weight = image + layout->weight[l] + (size_t)run * layout->padded[l] * padded_out;
        float *bias = image + layout->bias[l] + run * padded_out;
        for (size_t i = 0; i <= shape->width[l]; i++, parameters += out) {
            float *row = i < shape->width[l] ? weight + i * padded_out : bias;
            memcpy(into_image ? row : parameters, into_image ? parameters : row,
                   out * sizeof(float));
        }
    }
}

void mimus__layout_pack(const mimus__layout *layout, uint32_t run, const float *parameters,
                        float *image) {
    copy_run(layout, run, (float *)(uintptr_t)parameters, image, true);
}

void mimus__layout_unpack(const mimus__layout *layout, uint32_t run, const float *image,
                          float *parameters) {
    copy_run(layout, run, parameters, (float *)(uintptr_t)image, false);
}

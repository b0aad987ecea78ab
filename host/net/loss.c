#include "loss.h"

#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that one CPU work-item takes; a GPU's group takes a row an item. */
enum { ROWS_CPU = 32 };

struct mimus__loss {
    mimus__geometry geometry;
    const mimus__buffer *hyper;
    const mimus__batch *batch; /* or NULL */
    bool parts;
    uint32_t live, capacity, heads, actions;
    uint32_t rows_a_group;
    mimus__loss_weights weights;
    mimus__buffer turned;  /* (runs, groups, A, lanes): a CPU's scratch */
    mimus__buffer partial; /* (runs, groups, columns) */
    mimus__program program;
    mimus__kernel kernel;
};

static mimus_status head_offsets(char **out, const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    size_t room = 12 * ((size_t)schema->heads + 1);
    MIMUS_TRY(mimus__alloc(out, room, 1));
    uint32_t offset = 0;
    size_t used = (size_t)snprintf(*out, room, "0");
    for (uint32_t h = 0; h < schema->heads; h++) {
        offset += schema->head[h].actions;
        used += (size_t)snprintf(*out + used, room - used, ",%u", offset);
    }
out:
    return status;
}

mimus_status mimus__loss_define(mimus__defines *defines, char **offsets, const mimus_schema *schema,
                                const mimus__row_layout *layout, mimus__geometry geometry) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(head_offsets(offsets, schema));
    mimus__define_number(defines, "HEADS", schema->heads);
    mimus__define_text(defines, "HEAD_OFFSETS", *offsets);
    mimus__define_number(defines, "LANES", mimus__geometry_lanes(geometry));
    mimus__define_number(defines, "ACTION_WORDS", layout->action_words);
    mimus__define_number(defines, "MASKS", layout->mask_words > 0);
    mimus__define_number(defines, "WEIGHT_WORD", layout->weight_word);
out:
    return status;
}

static mimus_status build(mimus__loss *loss, mimus__device *device, const mimus_schema *schema,
                          const mimus__row_layout *layout, uint32_t width) {
    mimus_status status = MIMUS_OK;
    char *offsets = NULL;
    mimus__defines defines = {0};
    mimus__geometry_define(loss->geometry, &defines);
    MIMUS_TRY(mimus__loss_define(&defines, &offsets, schema, layout, loss->geometry));
    mimus__define_number(&defines, "LABEL_WORDS", layout->label_words);
    mimus__define_number(&defines, "LOGIT_WIDTH", width);
    mimus__define_number(&defines, "ROWS", loss->rows_a_group);
    mimus__define_number(&defines, "PARTS", loss->parts);
    MIMUS_TRY(mimus__program_build(&loss->program, device, "masked_log_softmax.cl", &defines));
    MIMUS_TRY(mimus__kernel_new(&loss->kernel, &loss->program, "mimus_masked_log_softmax"));
out:
    free(offsets);
    return status;
}

static mimus_status ones(const mimus__buffer *buffer) {
    const float one = 1.0f;
    uint32_t word;
    memcpy(&word, &one, sizeof word);
    return mimus__buffer_fill(buffer, 0, word, buffer->bytes);
}

mimus_status mimus__loss_weights_new(mimus__loss_weights *out, mimus__device *device, uint32_t runs,
                                     const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__loss_weights){.head_count = schema->heads,
                                 .action_count = mimus__schema_actions(schema)};
    MIMUS_TRY(mimus__buffer_new(&out->heads, device, (size_t)runs * out->head_count * 4,
                                "the heads' weights"));
    MIMUS_TRY(mimus__buffer_new(&out->actions, device, (size_t)runs * out->action_count * 4,
                                "the actions' weights"));
    MIMUS_TRY(ones(&out->heads));
    MIMUS_TRY(ones(&out->actions));
out:
    return status;
}

void mimus__loss_weights_free(mimus__loss_weights *weights) {
    mimus__buffer_free(&weights->heads);
    mimus__buffer_free(&weights->actions);
}

mimus_status mimus__loss_weights_set(mimus__loss_weights *weights, uint32_t run, const float *heads,
                                     const float *actions) {
    mimus_status status = MIMUS_OK;
    size_t head_bytes = weights->head_count * sizeof(float);
    size_t action_bytes = weights->action_count * sizeof(float);
    MIMUS_TRY(mimus__buffer_write(&weights->heads, run * head_bytes, heads, head_bytes));
    MIMUS_TRY(mimus__buffer_write(&weights->actions, run * action_bytes, actions, action_bytes));
out:
    return status;
}

mimus_status mimus__loss_new(mimus__loss **out, mimus__device *device, const mimus_schema *schema,
                             const mimus__row_layout *layout, const mimus__buffer *hyper,
                             const mimus__batch *batch, bool parts, uint32_t runs,
                             uint32_t capacity, uint32_t width) {
    mimus_status status = MIMUS_OK;
    mimus__loss *loss = NULL;
    MIMUS_TRY(mimus__alloc(&loss, 1, sizeof *loss));
    loss->geometry = mimus__geometry_of(device);
    loss->hyper = hyper;
    loss->batch = batch;
    loss->parts = parts;
    loss->live = runs;
    loss->capacity = capacity;
    loss->heads = schema->heads;
    loss->actions = mimus__schema_actions(schema);
    loss->rows_a_group = loss->geometry.local == 1 ? ROWS_CPU : loss->geometry.local;
    MIMUS_TRY(mimus__loss_weights_new(&loss->weights, device, runs, schema));
    size_t groups = (size_t)runs * mimus__loss_groups(loss, capacity);
    uint32_t lanes = mimus__geometry_lanes(loss->geometry);
    MIMUS_TRY(mimus__buffer_new(&loss->turned, device,
                                (lanes > 1 ? groups * loss->actions : 1) * lanes * 4,
                                "the loss's scratch"));
    MIMUS_TRY(mimus__buffer_new(&loss->partial, device, groups * mimus__loss_columns(loss) * 4,
                                "the loss's partial sums"));
    MIMUS_TRY(build(loss, device, schema, layout, width));
    *out = loss;
    loss = NULL;
out:
    mimus__loss_free(loss);
    return status;
}

void mimus__loss_free(mimus__loss *loss) {
    if (loss == NULL)
        return;
    mimus__kernel_free(&loss->kernel);
    mimus__program_free(&loss->program);
    mimus__loss_weights_free(&loss->weights);
    mimus__buffer_free(&loss->turned);
    mimus__buffer_free(&loss->partial);
    free(loss);
}

void mimus__loss_set_live(mimus__loss *loss, uint32_t live) {
    loss->live = live;
}

mimus_status mimus__loss_weigh(mimus__loss *loss, uint32_t run, const float *head_weights,
                               const float *action_weights) {
    return mimus__loss_weights_set(&loss->weights, run, head_weights, action_weights);
}

uint32_t mimus__metric_columns(uint32_t heads) {
    return 1 + 3 * heads;
}

uint32_t mimus__loss_columns(const mimus__loss *loss) {
    return mimus__metric_columns(loss->heads);
}

mimus_status mimus__loss_run(mimus__loss *loss, uint32_t rows, uint32_t counted,
                             mimus__matrix logits, const mimus__buffer *labels) {
    bool shared = loss->batch != NULL && loss->batch->runs == 1;
    return mimus__launch(
        &loss->kernel,
        mimus__geometry_grid(loss->geometry, mimus__loss_groups(loss, rows), loss->live),
        MIMUS_ARG_U32(rows), MIMUS_ARG_U32(loss->capacity),
        MIMUS_ARG_U32(shared ? 0 : loss->capacity), MIMUS_ARG_F32(1.0f / (float)counted),
        MIMUS_ARG_BUFFER(loss->batch != NULL ? &loss->batch->shares : loss->hyper),
        MIMUS_ARG_BUFFER(loss->hyper), MIMUS_ARG_BUFFER(&loss->weights.heads),
        MIMUS_ARG_BUFFER(&loss->weights.actions), MIMUS_ARG_BUFFER(logits.buffer),
        MIMUS_ARG_BUFFER(labels), MIMUS_ARG_BUFFER(&loss->turned),
        MIMUS_ARG_BUFFER(&loss->partial));
}

const mimus__buffer *mimus__loss_partial(const mimus__loss *loss) {
    return &loss->partial;
}

uint32_t mimus__loss_groups(const mimus__loss *loss, uint32_t rows) {
    return mimus__divide_up(rows, loss->rows_a_group);
}

mimus__sums mimus__loss_sums(const mimus__loss *loss, uint32_t rows) {
    return (mimus__sums){&loss->partial, mimus__loss_groups(loss, rows)};
}

#include "walk.h"

#include <assert.h>

void mimus__walk_begin(mimus__walk *out, const mimus__recording *recording,
                       const mimus__rows *rows) {
    *out = (mimus__walk){
        .recording = recording, .schema = mimus__recording_schema(recording), .rows = rows};
}

mimus_status mimus__walk_next(mimus__walk *walk) {
    mimus_status status = MIMUS_OK;
    assert(walk->span < walk->rows->spans);
    const mimus__span *span = &walk->rows->span[walk->span];
    const uint64_t row = span->first + walk->offset;
    while (row >= walk->block.first + walk->block.samples) {
        if (walk->next_block > 0)
            mimus__recording_leave(walk->recording, walk->next_block - 1);
        MIMUS_TRY(mimus__recording_block(walk->recording, walk->next_block, &walk->block));
        walk->next_block++;
    }
    walk->i = (uint32_t)(row - walk->block.first);
    walk->starts = walk->offset == 0 && (walk->span == 0 || span[-1].episode != span->episode);
    walk->done++;
    if (++walk->offset == span->count) {
        walk->span++;
        walk->offset = 0;
    }
out:
    return status;
}

const float *mimus__walk_senses(const mimus__walk *walk) {
    return walk->block.senses + (size_t)walk->i * walk->schema->senses;
}

void mimus__walk_labels(const mimus__walk *walk, int64_t *labels) {
    for (uint32_t h = 0, first = 0; h < walk->schema->heads; h++) {
        uint16_t label = mimus__audit_label(&walk->block, walk->schema, walk->i, h, first);
        labels[h] = label == MIMUS_NO_LABEL ? -1 : label;
        first += walk->schema->head[h].actions;
    }
}

void mimus__walk_legal(const mimus__walk *walk, uint8_t *legal) {
    const uint32_t actions = mimus__schema_actions(walk->schema);
    const uint32_t *mask = walk->block.masks + (size_t)walk->i * walk->block.mask_words;
    for (uint32_t a = 0; a < actions; a++)
        legal[a] = mask[a / 32] >> (a % 32) & 1;
}

float mimus__walk_weight(const mimus__walk *walk) {
    return walk->block.weights != NULL ? walk->block.weights[walk->i] : 1.0F;
}

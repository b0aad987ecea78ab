#include "play.h"

#include "rng.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

test_sample test_play_sample(const test_play *play, uint64_t index) {
    const mimus_schema *schema = play->schema;
    mimus__rng rng = {.seed = play->seed, .stream = index};
    test_sample sample = {
        .senses = calloc(schema->senses, sizeof(float)),
        .actions = calloc(schema->heads, sizeof(uint16_t)),
        .legal = schema->masks ? calloc(mimus__schema_actions(schema), 1) : NULL,
        .weight = schema->weights ? (float)mimus__rng_uniform(&rng) * 4 : 1,
        .begins = play->episode != 0 ? index % play->episode == 0 : index == 0,
    };
    for (uint32_t s = 0; s < schema->senses; s++) /* a wide sample does not need random numbers */
        sample.senses[s] =
            s < 256 ? (float)mimus__rng_uniform(&rng) - 0.5f : (float)((s + index) % 1021);
    uint8_t *legal = sample.legal;
    for (uint32_t h = 0; h < schema->heads; h++) {
        const uint32_t actions = schema->head[h].actions;
        sample.actions[h] = (uint16_t)mimus__rng_below(&rng, actions);
        if (legal != NULL) {
            for (uint32_t a = 0; a < actions; a++)
                legal[a] = (uint8_t)(mimus__rng_u32(&rng) & 0x81);
            legal[sample.actions[h]] = 2; /* any number but 0 is legal */
            legal += actions;
        }
        if (mimus__rng_below(&rng, 7) == 0)
            sample.actions[h] = MIMUS_NO_LABEL;
    }
    return sample;
}

void test_sample_free(test_sample *sample) {
    free(sample->senses);
    free(sample->actions);
    free(sample->legal);
    *sample = (test_sample){0};
}

mimus_status test_play_append(mimus_recorder *recorder, const test_play *play, uint64_t first,
                              uint64_t count) {
    mimus_status status = MIMUS_OK;
    for (uint64_t i = first; i < first + count && status == MIMUS_OK; i++) {
        test_sample sample = test_play_sample(play, i);
        if (sample.begins)
            status = mimus_recorder_end_episode(recorder);
        if (status == MIMUS_OK)
            status = mimus_recorder_append(recorder, sample.senses, sample.actions, sample.legal,
                                           sample.weight);
        test_sample_free(&sample);
    }
    return status;
}

void test_play_record(const char *path, const test_play *play, uint64_t count) {
    mimus_recorder *recorder = NULL;
    test_ok(mimus_recorder_open(&recorder, path, play->schema, MIMUS_RECORDER_CREATE));
    test_ok(test_play_append(recorder, play, 0, count));
    test_ok(mimus_recorder_close(recorder));
}

static bool mask_is(const uint32_t *words, const uint8_t *legal, uint32_t actions) {
    for (uint32_t a = 0; a < (actions + 31) / 32 * 32; a++) {
        const bool bit = words[a / 32] >> a % 32 & 1;
        if (bit != (a < actions && legal[a] != 0))
            return false;
    }
    return true;
}

/* What differs in sample i, or NULL. An assertion for each would write a line for each. */
static const char *difference(const mimus__block *block, uint32_t i, const test_sample *sample,
                              const mimus_schema *schema) {
    const size_t words = mimus__schema_mask_words(schema), S = schema->senses, H = schema->heads;
    if (memcmp(block->senses + i * S, sample->senses, S * sizeof(float)) != 0)
        return "senses";
    if (memcmp(block->actions + i * H, sample->actions, H * sizeof(uint16_t)) != 0)
        return "actions";
    if (schema->masks &&
        !mask_is(block->masks + i * words, sample->legal, mimus__schema_actions(schema)))
        return "mask";
    if (schema->weights && block->weights[i] != sample->weight)
        return "weight";
    if ((block->starts[i / 32] >> i % 32 & 1) != sample->begins)
        return "episode start";
    return NULL;
}

static void check_alignment(const mimus__block *block) {
    ck_assert_uint_eq((uintptr_t)block->senses % 64, 0);
    ck_assert_uint_eq((uintptr_t)block->actions % 64, 0);
    ck_assert_uint_eq((uintptr_t)block->masks % 64, 0);
    ck_assert_uint_eq((uintptr_t)block->weights % 64, 0);
    ck_assert_uint_eq((uintptr_t)block->starts % 64, 0);
}

void test_play_check(const mimus__recording *recording, uint64_t row, const test_play *play,
                     uint64_t count) {
    uint64_t next = 0, checked = 0;
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        test_ok(mimus__recording_block(recording, b, &block));
        ck_assert_uint_eq(block.first, next);
        ck_assert_uint_gt(block.samples, 0);
        check_alignment(&block);
        ck_assert((block.masks != NULL) == play->schema->masks);
        ck_assert((block.weights != NULL) == play->schema->weights);
        for (uint32_t i = 0; i < block.samples; i++, next++) {
            if (next < row || next >= row + count)
                continue;
            test_sample sample = test_play_sample(play, next - row);
            const char *what = difference(&block, i, &sample, play->schema);
            if (what != NULL)
                ck_abort_msg("row %llu: another %s", (unsigned long long)next, what);
            test_sample_free(&sample);
            checked++;
        }
    }
    ck_assert_uint_eq(checked, count);
    ck_assert_uint_eq(next, mimus__recording_samples(recording));
}

mimus_status test_recording_open(mimus__recording **out, const char *path) {
    const mimus_source source = {.paths = &path, .count = 1};
    return mimus__recording_open(out, &source, NULL);
}

/* Any bytes as a .rec file: opening and touching it all must end well or fail clearly, and what
 * opens must take another session of recording. Once as they come, and once with the checksums put
 * right, for a fuzzer cannot guess those. */
#include "support.h"

#include "chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* ---------------------------------------------------------- the file to read */

static mimus_status open_file(mimus__recording **out) {
    const char *paths[] = {fuzz_path};
    const mimus_source source = {.paths = paths, .count = 1, .format = "rec"};
    return mimus__recording_open(out, &source, NULL);
}

/* -------------------------------------------------------------- what is done */

/* So that nothing that is read can be left out. */
static volatile uint64_t kept;

/* Read every byte of a block, for a sanitizer to see. */
static void touch(const mimus__block *block, const mimus_schema *schema) {
    const size_t n = block->samples, words = mimus__schema_mask_words(schema);
    uint64_t sum = XXH3_64bits(block->senses, n * schema->senses * sizeof(float));
    sum += XXH3_64bits(block->actions, n * schema->heads * sizeof(uint16_t));
    sum += XXH3_64bits(block->starts, (n + 31) / 32 * sizeof(uint32_t));
    if (block->masks != NULL)
        sum += XXH3_64bits(block->masks, n * words * sizeof(uint32_t));
    if (block->weights != NULL)
        sum += XXH3_64bits(block->weights, n * sizeof(float));
    kept = sum;
}

static void touch_all(const mimus__recording *recording) {
    const mimus_schema *schema = mimus__recording_schema(recording);
    uint64_t rows = 0;
    for (size_t i = 0; i < mimus__recording_blocks(recording); i++) {
        mimus__block block;
        if (mimus__recording_block(recording, i, &block) != MIMUS_OK) {
            fuzz_expect_message();
            return;
        }
        fuzz_expect(block.first == rows && block.samples > 0, "rows out of order");
        rows += block.samples;
        touch(&block, schema);
    }
    fuzz_expect(rows == mimus__recording_samples(recording), "rows are missing");
    fuzz_expect(json_array_size(mimus__recording_losses(recording)) <= 1, "more losses than files");
}

/* Record a sample behind what there is: afterwards the file is closed and one sample longer. */
static void go_on(const mimus_schema *schema, uint64_t samples) {
    mimus_recorder *recorder = NULL;
    mimus__recording *recording = NULL;
    float *senses = calloc(schema->senses, sizeof *senses);
    uint16_t *actions = malloc(schema->heads * sizeof *actions);
    fuzz_expect(senses != NULL && actions != NULL, "no memory");
    memset(actions, 0xFF, schema->heads * sizeof *actions);
    fuzz_expect(mimus_recorder_open(&recorder, fuzz_path, schema, MIMUS_RECORDER_APPEND) ==
                    MIMUS_OK,
                "cannot append");
    fuzz_expect(mimus_recorder_append(recorder, senses, actions, NULL, 1) == MIMUS_OK, "no sample");
    fuzz_expect(mimus_recorder_close(recorder) == MIMUS_OK, "cannot close");
    fuzz_expect(open_file(&recording) == MIMUS_OK, "cannot open again");
    fuzz_expect(mimus__recording_samples(recording) == samples + 1, "not one sample more");
    fuzz_expect(json_array_size(mimus__recording_losses(recording)) == 0,
                "a loss in a closed file");
    mimus__recording_free(recording);
    free(senses);
    free(actions);
}

static void exercise(const uint8_t *data, size_t size) {
    mimus__recording *recording = NULL;
    mimus_schema *schema = NULL;
    fuzz_put_file(data, size);
    if (open_file(&recording) != MIMUS_OK) {
        fuzz_expect_message();
        return;
    }
    touch_all(recording);
    const uint64_t samples = mimus__recording_samples(recording);
    fuzz_expect(mimus__schema_copy(&schema, mimus__recording_schema(recording)) == MIMUS_OK,
                "schema");
    mimus__recording_free(recording);
    go_on(schema, samples);
    mimus__schema_free(schema);
}

/* Put right the checksums of all records that follow one another from the beginning. */
static void sign(uint8_t *bytes, size_t size) {
    for (size_t at = 0; size - at >= sizeof(mimus__record);) {
        const size_t room = size - at - sizeof(mimus__record);
        mimus__record record;
        memcpy(&record, bytes + at, sizeof record);
        if (record.bytes <= room)
            record.checksum = XXH3_64bits(bytes + at + sizeof record, record.bytes);
        record.header_checksum = XXH3_64bits(&record, offsetof(mimus__record, header_checksum));
        memcpy(bytes + at, &record, sizeof record);
        if (record.bytes > room)
            break;
        at += sizeof record + record.bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    exercise(data, size);
    uint8_t *signed_data = malloc(size > 0 ? size : 1);
    fuzz_expect(signed_data != NULL, "no memory");
    memcpy(signed_data, data, size);
    sign(signed_data, size);
    if (memcmp(signed_data, data, size) != 0)
        exercise(signed_data, size);
    free(signed_data);
    return 0;
}

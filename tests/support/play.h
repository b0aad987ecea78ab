/* play - made-up play, the same for the same arguments: to record it, and to know it again. */
#ifndef MIMUS_TEST_PLAY_H
#define MIMUS_TEST_PLAY_H

#include "recording.h"

typedef struct test_play {
    const mimus_schema *schema;
    uint32_t seed;
    uint32_t episode; /* samples of an episode; 0: all are one */
} test_play;

/* One sample, owned. Every 7th sample or so lacks the label of a head. */
typedef struct test_sample {
    float *senses;     /* (S) */
    uint16_t *actions; /* (H) */
    uint8_t *legal;    /* (A), or NULL when the schema has no masks */
    float weight;
    bool begins; /* an episode */
} test_sample;

test_sample test_play_sample(const test_play *play, uint64_t index);
void test_sample_free(test_sample *sample);

/* Append samples `first` to `first + count - 1`, and end episodes. */
mimus_status test_play_append(mimus_recorder *recorder, const test_play *play, uint64_t first,
                              uint64_t count);

/* Record `count` samples into a new file, closed. */
void test_play_record(const char *path, const test_play *play, uint64_t count);

/* Assert that rows `row` to `row + count - 1` of the recording are the play's first samples, that
 * an episode begins at `row`, and that all blocks are sound. */
void test_play_check(const mimus__recording *recording, uint64_t row, const test_play *play,
                     uint64_t count);

/* Open one file as a recording. */
mimus_status test_recording_open(mimus__recording **out, const char *path);

#endif

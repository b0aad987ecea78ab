/* capture - a sink (reader.h) that keeps all it is given, as plain arrays. */
#ifndef MIMUS_TEST_CAPTURE_H
#define MIMUS_TEST_CAPTURE_H

#include "reader.h"

typedef struct test_capture {
    mimus__sink sink;
    mimus_schema *schema; /* of the first begin; a copy */
    size_t samples;
    float *senses;     /* (samples, S) */
    uint16_t *actions; /* (samples, H) */
    uint8_t *legal;    /* (samples, A), 1 where no mask was given */
    float *weights;    /* (samples) */
    bool *ends;        /* (samples) an episode ended behind it */
    size_t capacity[5];
} test_capture;

test_capture test_capture_new(void);
void test_capture_free(test_capture *capture);
size_t test_capture_episodes(const test_capture *capture);

#endif

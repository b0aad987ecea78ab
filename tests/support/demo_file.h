/* demo_file - .demo files for tests, put together in memory. */
#ifndef MIMUS_TEST_DEMO_FILE_H
#define MIMUS_TEST_DEMO_FILE_H

#include "demo.pb-c.h"

#include <stdbool.h>

typedef struct test_demo {
    uint8_t *bytes;
    size_t count;
    int32_t records;
} test_demo;

/* The space for the metadata, and the brain: with an action_spec of these branches. */
test_demo test_demo_new(int32_t *branches, size_t count);
/* The same with any brain. */
test_demo test_demo_with(const Mimus__Demo__Brain *brain);
/* One record: senses in one observation without a name, one action of each head. A NULL is none. */
typedef struct test_demo_record {
    float *senses;
    size_t sense_count;
    int32_t *actions;
    size_t action_count;
    protobuf_c_boolean *mask;
    size_t mask_count;
    bool done;
    int32_t id;
} test_demo_record;
void test_demo_add(test_demo *demo, const test_demo_record *record);
void test_demo_add_pair(test_demo *demo, const Mimus__Demo__Pair *pair);
/* Any bytes, behind their length, or bare. */
void test_demo_add_message(test_demo *demo, const void *bytes, size_t count);
void test_demo_add_bytes(test_demo *demo, const void *bytes, size_t count);

/* Put the metadata where they belong, with so many records, and append the copy. */
void test_demo_close(test_demo *demo, int32_t steps, bool copy);
void test_demo_write(const test_demo *demo, const char *path);
void test_demo_free(test_demo *demo);

#endif

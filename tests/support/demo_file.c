#include "demo_file.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 33 };

void test_demo_add_bytes(test_demo *demo, const void *bytes, size_t count) {
    demo->bytes = realloc(demo->bytes, demo->count + count + 1);
    ck_assert_ptr_nonnull(demo->bytes);
    memcpy(demo->bytes + demo->count, bytes, count);
    demo->count += count;
}

void test_demo_add_message(test_demo *demo, const void *bytes, size_t count) {
    size_t left = count;
    do {
        uint8_t byte = (uint8_t)((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
        test_demo_add_bytes(demo, &byte, 1);
        left >>= 7;
    } while (left > 0);
    test_demo_add_bytes(demo, bytes, count);
}

static void add_packed(test_demo *demo, const ProtobufCMessage *message) {
    size_t count = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(count > 0 ? count : 1);
    ck_assert_ptr_nonnull(bytes);
    protobuf_c_message_pack(message, bytes);
    test_demo_add_message(demo, bytes, count);
    free(bytes);
}

test_demo test_demo_with(const Mimus__Demo__Brain *brain) {
    static const uint8_t room[HEADER];
    test_demo demo = {0};
    test_demo_add_bytes(&demo, room, sizeof room);
    add_packed(&demo, &brain->base);
    return demo;
}

test_demo test_demo_new(int32_t *branches, size_t count) {
    Mimus__Demo__ActionSpec spec = MIMUS__DEMO__ACTION_SPEC__INIT;
    Mimus__Demo__Brain brain = MIMUS__DEMO__BRAIN__INIT;
    spec.branch_sizes = branches;
    spec.n_branch_sizes = count;
    brain.action_spec = &spec;
    return test_demo_with(&brain);
}

void test_demo_add_pair(test_demo *demo, const Mimus__Demo__Pair *pair) {
    add_packed(demo, &pair->base);
    demo->records++;
}

void test_demo_add(test_demo *demo, const test_demo_record *record) {
    Mimus__Demo__Observation__FloatData data = MIMUS__DEMO__OBSERVATION__FLOAT_DATA__INIT;
    Mimus__Demo__Observation observation = MIMUS__DEMO__OBSERVATION__INIT;
    Mimus__Demo__AgentInfo agent = MIMUS__DEMO__AGENT_INFO__INIT;
    Mimus__Demo__Action action = MIMUS__DEMO__ACTION__INIT;
    Mimus__Demo__Pair pair = MIMUS__DEMO__PAIR__INIT;
    Mimus__Demo__Observation *observations[] = {&observation};
    int32_t shape[] = {(int32_t)record->sense_count};
    data.data = record->senses;
    data.n_data = record->sense_count;
    observation.float_data = &data;
    observation.shape = shape;
    observation.n_shape = 1;
    agent.observations = observations;
    agent.n_observations = 1;
    agent.action_mask = record->mask;
    agent.n_action_mask = record->mask_count;
    agent.done = record->done;
    agent.id = record->id;
    action.discrete = record->actions;
    action.n_discrete = record->action_count;
    pair.agent = &agent;
    pair.action = &action;
    test_demo_add_pair(demo, &pair);
}

void test_demo_close(test_demo *demo, int32_t steps, bool copy) {
    Mimus__Demo__Meta meta = MIMUS__DEMO__META__INIT;
    uint8_t bytes[HEADER];
    meta.api_version = 1;
    meta.name = (char *)"test";
    meta.steps = steps;
    size_t count = mimus__demo__meta__get_packed_size(&meta);
    ck_assert_uint_lt(count, sizeof bytes);
    mimus__demo__meta__pack(&meta, bytes);
    demo->bytes[0] = (uint8_t)count;
    memcpy(demo->bytes + 1, bytes, count);
    if (copy)
        test_demo_add_bytes(demo, bytes, count);
}

void test_demo_write(const test_demo *demo, const char *path) {
    test_file_write(path, demo->bytes, demo->count);
}

void test_demo_free(test_demo *demo) {
    free(demo->bytes);
    *demo = (test_demo){0};
}

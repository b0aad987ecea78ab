#include "capture.h"

#include "alloc.h"

#include <stdlib.h>
#include <string.h>

static mimus_status begin(mimus__sink *sink, const mimus_schema *schema) {
    test_capture *c = (test_capture *)sink;
    if (c->schema != NULL)
        return mimus__schema_match(c->schema, "first", schema, "second", true);
    return mimus__schema_copy(&c->schema, schema);
}

static mimus_status append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                           const uint8_t *legal, float weight) {
    mimus_status status = MIMUS_OK;
    test_capture *c = (test_capture *)sink;
    size_t n = c->samples, S = c->schema->senses, H = c->schema->heads;
    size_t A = mimus__schema_actions(c->schema);
    MIMUS_TRY(mimus__grow(&c->senses, &c->capacity[0], (n + 1) * S, sizeof *c->senses));
    MIMUS_TRY(mimus__grow(&c->actions, &c->capacity[1], (n + 1) * H, sizeof *c->actions));
    MIMUS_TRY(mimus__grow(&c->legal, &c->capacity[2], (n + 1) * A, sizeof *c->legal));
    MIMUS_TRY(mimus__grow(&c->weights, &c->capacity[3], n + 1, sizeof *c->weights));
    MIMUS_TRY(mimus__grow(&c->ends, &c->capacity[4], n + 1, sizeof *c->ends));
    if (S > 0)
        memcpy(c->senses + n * S, senses, S * sizeof *senses);
    memcpy(c->actions + n * H, actions, H * sizeof *actions);
    for (size_t a = 0; a < A; a++)
        c->legal[n * A + a] = legal == NULL || legal[a] != 0;
    c->weights[n] = weight;
    c->samples++;
out:
    return status;
}

static mimus_status end_episode(mimus__sink *sink) {
    test_capture *c = (test_capture *)sink;
    if (c->samples > 0)
        c->ends[c->samples - 1] = true;
    return MIMUS_OK;
}

test_capture test_capture_new(void) {
    return (test_capture){.sink = {.begin = begin, .append = append, .end_episode = end_episode}};
}

void test_capture_free(test_capture *c) {
    mimus__schema_free(c->schema);
    free(c->senses);
    free(c->actions);
    free(c->legal);
    free(c->weights);
    free(c->ends);
}

size_t test_capture_episodes(const test_capture *c) {
    size_t episodes = 0;
    for (size_t i = 0; i < c->samples; i++)
        episodes += c->ends[i];
    return episodes;
}

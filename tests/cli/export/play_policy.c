/* play-policy RUN: what the policy itself does with the samples of play.h. */
#include "mimus.h"
#include "play.h"

static int play(const mimus_policy *policy) {
    const mimus_schema *schema = mimus_policy_schema(policy);
    mimus_agent *actor = NULL, *judge = NULL;
    int count = 0, code = 1;
    for (uint32_t h = 0; h < schema->heads; h++)
        count += (int)schema->head[h].actions;
    if (count > MOST || schema->senses > MOST || schema->heads > MOST)
        return 1;
    if (mimus_agent_new(&actor, policy, 0) != MIMUS_OK ||
        mimus_agent_new(&judge, policy, 0) != MIMUS_OK)
        goto out;
    for (unsigned long i = 0; i < SAMPLES; i++) {
        static float senses[MOST], probabilities[MOST], values[MOST];
        static unsigned char mask[MOST];
        static uint16_t actions[MOST];
        const unsigned char *legal =
            play_sample(i, senses, (int)schema->senses, mask, count) ? mask : NULL;
        if (i % EPISODE == 0) {
            mimus_agent_reset(actor);
            mimus_agent_reset(judge);
        }
        if (mimus_agent_act(actor, senses, legal, actions) != MIMUS_OK ||
            mimus_agent_probabilities(judge, senses, legal, probabilities) != MIMUS_OK)
            goto out;
        for (uint32_t h = 0; h < schema->heads; h++)
            values[h] = mimus_head_value(&schema->head[h], actions[h]);
        play_print(actions, values, (int)schema->heads, probabilities, count);
    }
    code = 0;
out:
    mimus_agent_free(actor);
    mimus_agent_free(judge);
    return code;
}

int main(int argc, char **argv) {
    mimus_policy *policy = NULL;
    int code = argc == 2 && mimus_policy_load(&policy, argv[1]) == MIMUS_OK ? play(policy) : 1;
    if (code != 0)
        fprintf(stderr, "play-policy: %s\n", mimus_last_error());
    mimus_policy_free(policy);
    return code;
}

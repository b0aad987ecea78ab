/* Checkpoints: any bytes are refused in one line, or give a model that a policy can play. */
#include "model.h"
#include "policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void play(const mimus__model *model) {
    mimus_policy *policy = NULL;
    mimus_agent *agent = NULL;
    const mimus_schema *schema = model->schema;
    float *senses = calloc(schema->senses, sizeof *senses);
    uint16_t *actions = calloc(schema->heads, sizeof *actions);
    if (senses == NULL || actions == NULL || mimus__policy_new(&policy, model) != MIMUS_OK ||
        mimus_agent_new(&agent, policy, 1) != MIMUS_OK)
        abort();
    for (int i = 0; i < 2; i++) {
        if (mimus_agent_sample(agent, senses, NULL, actions) != MIMUS_OK)
            break; /* finite weights may overflow */
        for (uint32_t h = 0; h < schema->heads; h++) {
            if (actions[h] >= schema->head[h].actions)
                abort();
        }
    }
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    free(actions);
    free(senses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mimus__model *model = NULL;
    if (mimus__model_decode(&model, data, size, "fuzz") == MIMUS_OK)
        play(model);
    else if (model != NULL || strncmp(mimus_last_error(), "fuzz", 4) != 0)
        abort(); /* the file must be named, and nothing handed out */
    mimus__model_free(model);
    return 0;
}

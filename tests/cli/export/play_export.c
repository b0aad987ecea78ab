/* What an exported policy.c does with the samples of play.h; compiled by test_export.sh as any game
 * would. */
#include "play.h"
#include "policy.h"

#include <math.h>
#include <stdlib.h>

/* The masked softmax of each head. */
static void fill_probabilities(const float *logits, const unsigned char *legal,
                               float *probabilities) {
    int h, a;
    for (h = 0; h < POLICY_HEADS; h++) {
        const int count = policy_head_actions[h];
        int best = -1;
        double total = 0;
        for (a = 0; a < count; a++) {
            if ((legal == NULL || legal[a]) && (best < 0 || logits[a] > logits[best]))
                best = a;
        }
        for (a = 0; a < count; a++)
            total += legal == NULL || legal[a] ? exp((double)logits[a] - (double)logits[best]) : 0;
        for (a = 0; a < count; a++)
            probabilities[a] = legal == NULL || legal[a]
                                   ? (float)(exp((double)logits[a] - (double)logits[best]) / total)
                                   : 0;
        logits += count;
        probabilities += count;
        legal = legal != NULL ? legal + count : NULL;
    }
}

/* A draw is the first action at which the probabilities add up to more than the chance. */
static void check_draws(const float *logits, const unsigned char *legal, const float *probabilities,
                        double chance) {
    double chances[POLICY_HEADS];
    unsigned short drawn[POLICY_HEADS];
    int h, first = 0;
    for (h = 0; h < POLICY_HEADS; h++)
        chances[h] = chance;
    policy_choose(logits, legal, chances, drawn);
    for (h = 0; h < POLICY_HEADS; first += policy_head_actions[h++]) {
        double below = 0;
        int a;
        if (drawn[h] == POLICY_NONE)
            continue;
        for (a = 0; a < drawn[h]; a++)
            below += (double)probabilities[first + a];
        if ((legal != NULL && !legal[first + drawn[h]]) || below > chance + 1e-6 ||
            below + (double)probabilities[first + drawn[h]] < chance - 1e-6) {
            fprintf(stderr, "head %d: %d was drawn at %g, which begins at %g\n", h, drawn[h],
                    chance, below);
            exit(1);
        }
    }
}

int main(void) {
    static policy_agent agent, drawing;
    unsigned long i;
    for (i = 0; i < SAMPLES; i++) {
        float senses[POLICY_SENSES], logits[POLICY_ACTIONS], probabilities[POLICY_ACTIONS],
            values[POLICY_HEADS];
        unsigned char mask[POLICY_ACTIONS];
        const unsigned char *legal =
            play_sample(i, senses, POLICY_SENSES, mask, POLICY_ACTIONS) ? mask : NULL;
        unsigned short actions[POLICY_HEADS], drawn[POLICY_HEADS];
        double chances[POLICY_HEADS] = {0};
        int h;
        if (i % EPISODE == 0) {
            policy_reset(&agent);
            policy_reset(&drawing);
        }
        policy_act(&agent, senses, legal, actions);
        policy_sample(&drawing, senses, legal, chances, drawn);
        policy_logits(agent.seen, logits);
        fill_probabilities(logits, legal, probabilities);
        check_draws(logits, legal, probabilities, (double)(i % 100) / 100);
        for (h = 0; h < POLICY_HEADS; h++)
            values[h] = policy_value(h, actions[h]);
        play_print(actions, values, POLICY_HEADS, probabilities, POLICY_ACTIONS);
    }
    return 0;
}

/* tally - what can be known of a recording of the expert, because its probabilities are known. */
#ifndef ARENA_TALLY_H
#define ARENA_TALLY_H

#include "expert.h"

typedef struct tally_sums {
    uint64_t samples;
    uint64_t likeliest[GAME_HEADS]; /* probability of the likeliest action, summed, times 2^32 */
    double entropy[GAME_HEADS];     /* nats, summed */
    uint64_t chosen[GAME_ACTIONS];  /* how often */
} tally_sums;

/* Add a sample: the expert's weights, and what it then chose. */
void tally_add(tally_sums *tally, const uint32_t weights[GAME_ACTIONS],
               const uint16_t actions[GAME_HEADS]);

/* Of the samples so far: the best agreement that a policy can expect, the mean of max p; the best
 * negative log-likelihood it can expect, the mean entropy in nats; and the agreement of a player
 * that always takes the most frequent action. */
double tally_ceiling(const tally_sums *tally, game_head head);
double tally_floor(const tally_sums *tally, game_head head);
double tally_majority(const tally_sums *tally, game_head head);

#endif

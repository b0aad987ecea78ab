/* expert - the scripted player whose play is recorded.
 *
 * It sees exactly what a policy sees, the senses and the legal-action mask, and chooses each head
 * by chance, with weights that are known. So the best agreement that any policy can reach on a
 * recording is known too: the mean, over its samples, of the largest probability of a head. */
#ifndef ARENA_EXPERT_H
#define ARENA_EXPERT_H

#include "senses.h"

/* The weights of all actions: an action's probability is its weight over the sum of its head's.
 * A legal action weighs 1 to EXPERT_WEIGHT, the likeliest of a head EXPERT_WEIGHT; an illegal one
 * nothing. */
enum { EXPERT_WEIGHT = 1 << 20 };
void expert_weigh(const float senses[SENSES_COUNT], const uint8_t legal[GAME_ACTIONS],
                  uint32_t weights[GAME_ACTIONS]);

/* The sum of a head's weights. */
uint64_t expert_total(const uint32_t weights[GAME_ACTIONS], game_head head);

/* The likeliest action of each head. */
void expert_best(const uint32_t weights[GAME_ACTIONS], uint16_t actions[GAME_HEADS]);

/* One action of each head by chance, in proportion to the weights. */
void expert_draw(const uint32_t weights[GAME_ACTIONS], fixed_random *random,
                 uint16_t actions[GAME_HEADS]);

#endif

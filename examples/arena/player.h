/* player - whoever sits in a tank: the scripted expert, chance, or a policy that mimus trained. */
#ifndef ARENA_PLAYER_H
#define ARENA_PLAYER_H

#include "expert.h"

typedef enum player_kind { PLAYER_EXPERT, PLAYER_RANDOM, PLAYER_POLICY } player_kind;

typedef struct player_state {
    player_kind kind;
    mimus_agent *agent; /* of a policy; borrowed */
    bool sample;        /* a policy draws its actions, instead of taking the most probable */
    fixed_random random;
} player_state;

/* One tick as a player had it. */
typedef struct player_turn {
    float senses[SENSES_COUNT];
    uint8_t legal[GAME_ACTIONS];
    uint32_t weights[GAME_ACTIONS]; /* the expert's, whoever plays */
    uint16_t actions[GAME_HEADS];
} player_turn;

/* Begin a duel that the seed decides, as far as it decides the players' chance too. */
void player_start(game_state *game, player_state players[2], uint64_t seed);

/* Both choose, then the game goes on by a tick. `turns` gets what they saw and chose. Fails as
 * mimus_agent_act does. */
mimus_status player_tick(game_state *game, player_state players[2], player_turn turns[2]);

/* Load a policy that can play the arena. Otherwise complains for `verb` and returns false, with
 * *out NULL. */
bool player_load(mimus_policy **out, const char *path, const char *verb);

#endif

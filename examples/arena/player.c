#include "player.h"

#include "arguments.h"

#include <string.h>

void player_start(game_state *game, player_state players[2], uint64_t seed) {
    game_start(game, seed);
    for (int seat = 0; seat < 2; seat++) {
        players[seat].random = fixed_random_start(seed, 1 + (uint64_t)seat);
        if (players[seat].kind == PLAYER_POLICY)
            mimus_agent_reset(players[seat].agent);
    }
}

/* Any legal action of each head, all equally likely. */
static void choose_randomly(const uint8_t legal[GAME_ACTIONS], fixed_random *random,
                            uint16_t actions[GAME_HEADS]) {
    uint32_t weights[GAME_ACTIONS];
    for (int a = 0; a < GAME_ACTIONS; a++)
        weights[a] = legal[a] != 0;
    expert_draw(weights, random, actions);
}

static mimus_status choose(player_state *player, player_turn *turn) {
    switch (player->kind) {
    case PLAYER_EXPERT:
        expert_draw(turn->weights, &player->random, turn->actions);
        return MIMUS_OK;
    case PLAYER_RANDOM:
        choose_randomly(turn->legal, &player->random, turn->actions);
        return MIMUS_OK;
    default:
        return (player->sample ? mimus_agent_sample : mimus_agent_act)(player->agent, turn->senses,
                                                                       turn->legal, turn->actions);
    }
}

mimus_status player_tick(game_state *game, player_state players[2], player_turn turns[2]) {
    for (int seat = 0; seat < 2; seat++) {
        player_turn *turn = &turns[seat];
        senses_read(game, seat, turn->senses);
        game_legal(game, seat, turn->legal);
        expert_weigh(turn->senses, turn->legal, turn->weights);
        mimus_status status = choose(&players[seat], turn);
        if (status != MIMUS_OK)
            return status;
    }
    game_step(game, turns[0].actions, turns[1].actions);
    return MIMUS_OK;
}

/* ----------------------------------------------------------------- loading */

/* Whether both have names, and these differ. */
static bool differ(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static const char *name_at(const char *const *names, uint32_t index) {
    return names != NULL ? names[index] : NULL;
}

static bool senses_fit(const mimus_schema *its, const mimus_schema *ours, const char *path,
                       const char *verb) {
    if (its->senses != ours->senses) {
        complain(verb, "%s was trained on %u senses, the arena has %u", path, its->senses,
                 ours->senses);
        return false;
    }
    for (uint32_t i = 0; i < ours->senses; i++) {
        const char *name = name_at(its->sense_names, i);
        if (!differ(name, ours->sense_names[i]))
            continue;
        complain(verb, "%s was trained with \"%s\" as sense %u, the arena has \"%s\" there", path,
                 name, i, ours->sense_names[i]);
        return false;
    }
    return true;
}

static bool head_fits(const mimus_head *its, const mimus_head *ours, uint32_t index,
                      const char *path, const char *verb) {
    if (its->actions != ours->actions || differ(its->name, ours->name)) {
        complain(verb, "%s has as head %u \"%s\" with %u actions, the arena \"%s\" with %u", path,
                 index, its->name, its->actions, ours->name, ours->actions);
        return false;
    }
    for (uint32_t a = 0; a < ours->actions; a++) {
        const char *name = name_at(its->action_names, a);
        if (!differ(name, ours->action_names[a]))
            continue;
        complain(verb, "%s has \"%s\" as action %u of head \"%s\", the arena \"%s\"", path, name, a,
                 ours->name, ours->action_names[a]);
        return false;
    }
    return true;
}

static bool fits(const mimus_schema *its, const char *path, const char *verb) {
    const mimus_schema *ours = senses_schema();
    if (!senses_fit(its, ours, path, verb))
        return false;
    if (its->heads != ours->heads) {
        complain(verb, "%s has %u heads, the arena %u", path, its->heads, ours->heads);
        return false;
    }
    for (uint32_t h = 0; h < ours->heads; h++)
        if (!head_fits(&its->head[h], &ours->head[h], h, path, verb))
            return false;
    return true;
}

bool player_load(mimus_policy **out, const char *path, const char *verb) {
    if (mimus_policy_load(out, path) != MIMUS_OK) {
        complain_mimus(verb);
        return false;
    }
    if (fits(mimus_policy_schema(*out), path, verb))
        return true;
    mimus_policy_free(*out);
    *out = NULL;
    return false;
}

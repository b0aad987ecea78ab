/* senses - what a player perceives, and the schema that tells mimus about it.
 *
 * A sense is a whole number of SENSE_ONE-ths in [-1, 1], so that a float holds it exactly. Vectors
 * are seen from the hull: `ahead` and `right`. Angles come as their cosine (`ahead`) and sine
 * (`right`), aims as a turn to the right still needed, at three magnifications. */
#ifndef ARENA_SENSES_H
#define ARENA_SENSES_H

#include "game.h"

#include <mimus.h>

/* The list reads by its groups, so the formatter leaves it alone. */
/* clang-format off */

#define SENSES_SHELL(X, n)                                                                         \
    X(shell##n##_urgency) X(shell##n##_ahead) X(shell##n##_right)                                  \
    X(shell##n##_bearing_ahead) X(shell##n##_bearing_right)                                        \
    X(shell##n##_pass_ahead) X(shell##n##_pass_right)

#define SENSES_MINE(X, n) X(mine##n##_nearness) X(mine##n##_ahead) X(mine##n##_right)

#define SENSES_DEPOT(X, n)                                                                         \
    X(depot##n##_ready) X(depot##n##_nearness)                                                     \
    X(depot##n##_bearing_ahead) X(depot##n##_bearing_right)

/* Every sense, in order; a name is the constant and the text at once. */
#define SENSES(X)                                                                                  \
    /* oneself */                                                                                  \
    X(time_left) X(x) X(y) X(heading_x) X(heading_y) X(turret_ahead) X(turret_right) X(speed)      \
    X(health) X(energy) X(heat) X(ammo) X(smokes) X(mines)                                         \
    X(reload) X(recoil) X(tracks) X(overload) X(calm) X(smoke) X(smoke_wait) X(mine_wait)          \
    X(gear_park) X(gear_low) X(gear_mid) X(gear_high) X(gear_boost)                                \
    X(shield_down) X(shield_half) X(shield_full)                                                   \
    X(guard0) X(guard1) X(guard2) X(guard3) X(guard4)                                              \
    X(guard5) X(guard6) X(guard7) X(guard8) X(guard9)                                              \
    /* the enemy, as it was when last in sight */                                                  \
    X(enemy_in_sight) X(enemy_age) X(enemy_ahead) X(enemy_right) X(enemy_distance)                 \
    X(enemy_bearing_ahead) X(enemy_bearing_right)                                                  \
    X(aim_wide) X(aim_near) X(aim_fine) X(lead_wide) X(lead_near) X(lead_fine)                     \
    X(enemy_heading_ahead) X(enemy_heading_right)                                                  \
    X(enemy_aim_wide) X(enemy_aim_near) X(enemy_threat)                                            \
    X(enemy_speed_ahead) X(enemy_speed_right) X(enemy_closing)                                     \
    X(enemy_health) X(enemy_energy) X(enemy_heat) X(enemy_reload)                                  \
    X(enemy_shield_down) X(enemy_shield_half) X(enemy_shield_full)                                 \
    X(enemy_tracks) X(enemy_on_guard) X(advantage)                                                 \
    /* what flies and what lies around */                                                          \
    SENSES_SHELL(X, 0) SENSES_SHELL(X, 1) SENSES_SHELL(X, 2)                                       \
    SENSES_MINE(X, 0) SENSES_MINE(X, 1)                                                            \
    SENSES_DEPOT(X, 0) SENSES_DEPOT(X, 1)                                                          \
    /* the free way, by degrees clockwise from ahead */                                            \
    X(clear0) X(clear15) X(clear30) X(clear45) X(clear60) X(clear75)                               \
    X(clear90) X(clear105) X(clear120) X(clear135) X(clear150) X(clear165)                         \
    X(clear180) X(clear195) X(clear210) X(clear225) X(clear240) X(clear255)                        \
    X(clear270) X(clear285) X(clear300) X(clear315) X(clear330) X(clear345)                        \
    /* what one did last */                                                                        \
    X(last_throttle) X(last_steering) X(last_turret) X(last_burst) X(last_shell)                   \
    X(last_charge) X(last_load) X(last_repair) X(last_vent)                                        \
    X(last_smoke) X(last_mine) X(last_tracks) X(shells_out)

/* clang-format on */

enum {
#define SENSE_ENUM(name) SENSE_##name,
    SENSES(SENSE_ENUM)
#undef SENSE_ENUM
        SENSES_COUNT,
};

enum { SENSE_ONE = 4096, SENSES_RAYS = 24 };

/* What the seat perceives now. */
void senses_read(const game_state *game, int seat, float senses[SENSES_COUNT]);

/* The schema of every recording of the arena, and of every policy that can play it; static. */
const mimus_schema *senses_schema(void);

#endif

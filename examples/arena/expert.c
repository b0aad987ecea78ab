#include "expert.h"

#include <assert.h>

/* Each head has preferences, a whole number for each of its actions: BIT more makes an action twice
 * as likely. They are smooth or piecewise linear functions of a few senses each, so that a small
 * network can learn them, with enough products and bends that a linear one cannot.
 *
 * Senses are whole numbers here, SENSE_ONE to the one; `s` always is the array of all of them. */
enum { BIT = 256 };

static int32_t product(int32_t a, int32_t b) {
    return (int32_t)((int64_t)a * b / SENSE_ONE);
}

static int32_t percent(int32_t value, int32_t part) {
    return (int32_t)((int64_t)value * part / 100);
}

/* How far `value` is on the way from `low` (0) to `high` (SENSE_ONE). */
static int32_t ramp(int32_t value, int32_t low, int32_t high) {
    return fixed_clamp((int64_t)(value - low) * SENSE_ONE / (high - low), 0, SENSE_ONE);
}

/* The same downwards: SENSE_ONE at `low`, 0 at `high`. */
static int32_t fall(int32_t value, int32_t low, int32_t high) {
    return SENSE_ONE - ramp(value, low, high);
}

/* `times` the value, within [-SENSE_ONE, SENSE_ONE]. */
static int32_t sharpen(int32_t value, int32_t times) {
    return fixed_clamp((int64_t)value * times, -SENSE_ONE, SENSE_ONE);
}

/* The preference of `hundredths` of a bit for each one of `value`. */
static int32_t bits(int32_t value, int32_t hundredths) {
    return (int32_t)((int64_t)value * hundredths * BIT / 100 / SENSE_ONE);
}

/* Prefer the actions near `position`, where SENSE_ONE is from one to the next: one that is a step
 * away costs `hundredths` of a bit, two steps cost four times that. */
static void prefer_near(int32_t *preference, int actions, int32_t position, int32_t hundredths) {
    for (int a = 0; a < actions; a++) {
        int32_t away = a * SENSE_ONE - position;
        preference[a] = -bits(product(away, away), hundredths);
    }
}

/* ------------------------------------------------------------------- drive */

/* Where to go is a vector from the hull, the sum of several wishes. */
static void wish_add(fixed_local *wish, int32_t ahead, int32_t right, int32_t strength) {
    wish->ahead += product(ahead, strength);
    wish->right += product(right, strength);
}

/* Keep the enemy at a distance, the farther the worse one stands, and circle it. */
static void wish_orbit(const int32_t *s, fixed_local *wish) {
    int32_t ahead = s[SENSE_enemy_bearing_ahead], right = s[SENSE_enemy_bearing_right];
    int32_t distance =
        600 - percent(s[SENSE_advantage], 15) + percent(SENSE_ONE - s[SENSE_health], 10);
    int32_t pull = sharpen(s[SENSE_enemy_distance] - distance, 4);
    int32_t side = sharpen(right, 2);
    wish_add(wish, ahead, right, pull);
    wish_add(wish, product(right, side), -product(ahead, side), SENSE_ONE - fixed_abs(pull) / 2);
}

/* Slow down or hurry, so that the most urgent shell goes by. */
static void wish_dodge(const int32_t *s, fixed_local *wish) {
    wish->ahead -= product(s[SENSE_shell0_urgency], sharpen(s[SENSE_shell0_pass_ahead], 3));
}

/* Stand still for a good shot. */
static void wish_steady(const int32_t *s, fixed_local *wish) {
    int32_t ready =
        product(fall(s[SENSE_reload], 0, SENSE_ONE / 2), SENSE_ONE - fixed_abs(s[SENSE_lead_fine]));
    int32_t calm = product(s[SENSE_enemy_in_sight], SENSE_ONE - s[SENSE_shell0_urgency]);
    wish->ahead -= percent(product(ready, calm), 220);
}

/* Fetch ammunition before it is all gone. */
static void wish_supplies(const int32_t *s, fixed_local *wish) {
    static const int depots[DEPOTS] = {SENSE_depot0_ready, SENSE_depot1_ready};
    int32_t need = fall(s[SENSE_ammo], 0, SENSE_ONE / 3);
    for (int i = 0; i < DEPOTS; i++) {
        const int32_t *depot = s + depots[i]; /* ready, nearness, bearing ahead and right */
        int32_t worth = product(ramp(depot[0], SENSE_ONE / 2, SENSE_ONE), depot[1]);
        wish_add(wish, depot[2], depot[3], percent(product(need, product(worth, worth)), 200));
    }
}

/* Keep away from walls and rocks: turn to where the way is longer, and once about to, go on. */
static void wish_room(const int32_t *s, fixed_local *wish) {
    int32_t blocked = fall(s[SENSE_clear0], 0, 2400);
    int32_t longer = s[SENSE_clear45] - s[SENSE_clear315];
    wish->ahead += percent(s[SENSE_clear0] - s[SENSE_clear180], 50) - blocked;
    wish->right += percent(longer, 40) + product(longer + s[SENSE_last_steering], blocked);
}

static void wish_no_mine(const int32_t *s, fixed_local *wish) {
    int32_t near = ramp(s[SENSE_mine0_nearness], SENSE_ONE / 2, SENSE_ONE);
    wish_add(wish, -s[SENSE_mine0_ahead], -s[SENSE_mine0_right], 4 * near);
}

static void prefer_drive(const int32_t *s, int32_t *preference) {
    fixed_local wish = {0};
    wish_orbit(s, &wish);
    wish_dodge(s, &wish);
    wish_steady(s, &wish);
    wish_supplies(s, &wish);
    wish_room(s, &wish);
    wish_no_mine(s, &wish);
    /* whatever one does, one tends to go on with it */
    int32_t throttle = sharpen(wish.ahead, 1) + SENSE_ONE / 4 + s[SENSE_last_throttle] / 2;
    int32_t steering = sharpen(wish.right, 1) + s[SENSE_last_steering] / 2;
    for (int a = 0; a < DRIVES; a++)
        preference[a] = game_throttle(a) * bits(throttle, 500) +
                        game_steering(a) * bits(steering, 700) +
                        (game_steering(a) == 0 ? BIT / 2 : 0);
}

/* ------------------------------------------------------- turret, gun, gear */

/* Turn at the rate that comes nearest to what the gun is off: from where the enemy is while
 * loading, from where a shell would meet it when loaded. */
static void prefer_turret(const int32_t *s, int32_t *preference) {
    static const int32_t faster_from[] = {0, 12, 38, 92, 190, 400}; /* angles */
    int32_t wide =
        s[SENSE_lead_wide] + product(s[SENSE_aim_wide] - s[SENSE_lead_wide], s[SENSE_reload]);
    int32_t off = wide / (2 * SENSE_ONE / FIXED_TURN);
    int32_t steps = 0;
    for (int i = 0; i < TURRETS / 2; i++)
        steps += ramp(fixed_abs(off), faster_from[i], faster_from[i + 1]);
    int32_t middle = (TURRETS - 1) * SENSE_ONE / 2;
    prefer_near(preference, TURRETS, off < 0 ? middle - steps : middle + steps, 220);
}

/* Shells when they will hit, bursts from near while the gun is cool. */
static void prefer_gun(const int32_t *s, int32_t *preference) {
    int32_t hidden = SENSE_ONE - s[SENSE_enemy_in_sight];
    preference[GUN_HOLD] = 0;
    preference[GUN_SHELL] = 6 * BIT - bits(fixed_abs(s[SENSE_lead_fine]), 950) -
                            bits(ramp(s[SENSE_enemy_distance], 1000, 3000), 300) -
                            bits(SENSE_ONE - s[SENSE_ammo], 100) - bits(hidden, 700);
    preference[GUN_BURST] = bits(fall(s[SENSE_enemy_distance], 500, 1250), 600) - 2 * BIT -
                            bits(fixed_abs(s[SENSE_aim_near]), 400) - bits(s[SENSE_heat], 300) -
                            bits(hidden, 500);
}

/* Whole: hurry when far, take time when near; hurt: the other way round. Hurry from shells. */
static void prefer_gear(const int32_t *s, int32_t *preference) {
    int32_t far = 2 * ramp(s[SENSE_enemy_distance], 500, 1700) - SENSE_ONE;
    int32_t whole = 2 * ramp(s[SENSE_health], 1000, 3600) - SENSE_ONE;
    int32_t position = 2 * SENSE_ONE + percent(product(far, whole), 200) +
                       percent(s[SENSE_shell0_urgency], 130) - percent(s[SENSE_heat], 150);
    prefer_near(preference, GEARS, fixed_clamp(position, 0, (GEARS - 1) * SENSE_ONE), 250);
}

/* --------------------------------------------------- guard, shield and crew */

/* Guard against the most urgent shell, without one against the enemy. */
static void prefer_guard(const int32_t *s, int32_t *preference) {
    int32_t urgency = s[SENSE_shell0_urgency];
    fixed_local from = {0};
    wish_add(&from, s[SENSE_enemy_bearing_ahead], s[SENSE_enemy_bearing_right],
             SENSE_ONE - urgency);
    wish_add(&from, s[SENSE_shell0_bearing_ahead], s[SENSE_shell0_bearing_right],
             percent(urgency, 150));
    for (int a = 0; a < GUARDS; a++) {
        int32_t angle = game_guard_angle(a);
        preference[a] = bits(
            product(from.ahead, fixed_cos(angle)) + product(from.right, fixed_sin(angle)), 1700);
    }
}

/* Up when a shell is about to hit or a near enemy aims, as far as the energy goes. */
static void prefer_shield(const int32_t *s, int32_t *preference) {
    int32_t shot = product(ramp(s[SENSE_shell0_urgency], 1600, 3600),
                           SENSE_ONE - fixed_abs(s[SENSE_shell0_pass_ahead]));
    int32_t near = fall(s[SENSE_enemy_distance], 500, 900);
    int32_t position = percent(shot, 200) + percent(product(s[SENSE_enemy_threat], near), 150) +
                       percent(SENSE_ONE - s[SENSE_health], 40) -
                       percent(fall(s[SENSE_energy], 400, 2400), 120);
    prefer_near(preference, SHIELDS, fixed_clamp(position, 0, (SHIELDS - 1) * SENSE_ONE), 300);
}

/* Whatever is needed most. */
static void prefer_crew(const int32_t *s, int32_t *preference) {
    int32_t hurt = SENSE_ONE - s[SENSE_health];
    int32_t off = fixed_abs(s[SENSE_lead_fine]);
    int32_t near = fall(s[SENSE_enemy_distance], 300, 1200);
    int32_t behind = fall(s[SENSE_enemy_bearing_ahead], -SENSE_ONE, SENSE_ONE / 2);
    preference[CREW_CHARGE] = bits(SENSE_ONE - s[SENSE_energy], 250) + bits(off, 120);
    preference[CREW_LOAD] = bits(product(s[SENSE_reload], SENSE_ONE - off), 600);
    preference[CREW_REPAIR] = bits(product(hurt, SENSE_ONE - s[SENSE_enemy_threat]), 700);
    preference[CREW_VENT] = bits(s[SENSE_heat], 700) - BIT;
    preference[CREW_SMOKE] = bits(s[SENSE_enemy_threat], 800) + bits(hurt, 200) - 2 * BIT;
    preference[CREW_MINE] = bits(product(near, behind), 900) - 2 * BIT;
    preference[CREW_TRACKS] = 4 * BIT + bits(s[SENSE_tracks], 300);
}

/* ----------------------------------------------------------------- weights */

/* EXPERT_WEIGHT * 2^(-below / BIT), at least 1. The polynomial is 2^-f to within 0.1%; that it is
 * the same everywhere matters more. */
static uint32_t power(int32_t below) {
    if (below >= 20 * BIT)
        return 1;
    int64_t f = (int64_t)(below % BIT) * (65536 / BIT);
    int64_t bend = 15116 - f * 2562 / 65536;
    int64_t part = 65536 - f * (45322 - f * bend / 65536) / 65536;
    return (uint32_t)((part * (EXPERT_WEIGHT / 65536)) >> (below / BIT));
}

static void weigh(const int32_t *preference, const uint8_t *legal, int actions, uint32_t *weights) {
    int best = -1;
    for (int a = 0; a < actions; a++)
        if (legal[a] && (best < 0 || preference[a] > preference[best]))
            best = a;
    assert(best >= 0);
    for (int a = 0; a < actions; a++)
        weights[a] = legal[a] ? power(preference[best] - preference[a]) : 0;
}

void expert_weigh(const float senses[SENSES_COUNT], const uint8_t legal[GAME_ACTIONS],
                  uint32_t weights[GAME_ACTIONS]) {
    static void (*const prefer[GAME_HEADS])(const int32_t *, int32_t *) = {
        [HEAD_DRIVE] = prefer_drive, [HEAD_TURRET] = prefer_turret, [HEAD_GUN] = prefer_gun,
        [HEAD_GEAR] = prefer_gear,   [HEAD_GUARD] = prefer_guard,   [HEAD_SHIELD] = prefer_shield,
        [HEAD_CREW] = prefer_crew,
    };
    int32_t s[SENSES_COUNT];
    for (int i = 0; i < SENSES_COUNT; i++)
        s[i] = (int32_t)(senses[i] * SENSE_ONE); /* exact: see senses.h */
    for (int head = 0; head < GAME_HEADS; head++) {
        int first = game_first((game_head)head), actions = game_actions((game_head)head);
        int32_t preference[TURRETS];
        prefer[head](s, preference);
        weigh(preference, legal + first, actions, weights + first);
    }
}

uint64_t expert_total(const uint32_t weights[GAME_ACTIONS], game_head head) {
    uint64_t total = 0;
    for (int a = 0; a < game_actions(head); a++)
        total += weights[game_first(head) + a];
    return total;
}

void expert_best(const uint32_t weights[GAME_ACTIONS], uint16_t actions[GAME_HEADS]) {
    for (int head = 0; head < GAME_HEADS; head++) {
        const uint32_t *weight = weights + game_first((game_head)head);
        actions[head] = 0;
        for (int a = 1; a < game_actions((game_head)head); a++)
            if (weight[a] > weight[actions[head]])
                actions[head] = (uint16_t)a;
    }
}

void expert_draw(const uint32_t weights[GAME_ACTIONS], fixed_random *random,
                 uint16_t actions[GAME_HEADS]) {
    for (int head = 0; head < GAME_HEADS; head++) {
        const uint32_t *weight = weights + game_first((game_head)head);
        uint64_t total = expert_total(weights, (game_head)head);
        uint64_t left = (uint64_t)fixed_random_next(random) * total >> 32;
        actions[head] = 0;
        while (left >= weight[actions[head]])
            left -= weight[actions[head]++];
    }
}

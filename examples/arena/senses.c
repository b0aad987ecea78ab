#include "senses.h"

#include <assert.h>

static_assert(SENSES_COUNT == 143, "recordings rely on the number of senses");

/* ------------------------------------------------------------------ schema */

static const char *const sense_names[] = {
#define SENSE_NAME(name) #name,
    SENSES(SENSE_NAME)
#undef SENSE_NAME
};

static const char *const drive_names[] = {"back-left",  "back",  "back-right",
                                          "left",       "coast", "right",
                                          "ahead-left", "ahead", "ahead-right"};
static const char *const turret_names[] = {"left256", "left128", "left56",  "left20",   "left5",
                                           "right5",  "right20", "right56", "right128", "right256"};
static const char *const gun_names[] = {"hold", "burst", "shell"};
static const char *const gear_names[] = {"park", "low", "mid", "high", "boost"};
static const char *const guard_names[] = {"0",   "36",  "72",  "108", "144",
                                          "180", "216", "252", "288", "324"};
static const char *const shield_names[] = {"down", "half", "full"};
static const char *const crew_names[] = {"charge", "load", "repair", "vent",
                                         "smoke",  "mine", "tracks"};

static const mimus_head heads[GAME_HEADS] = {
    [HEAD_DRIVE] = {.name = "drive", .actions = DRIVES, .action_names = drive_names},
    [HEAD_TURRET] = {.name = "turret", .actions = TURRETS, .action_names = turret_names},
    [HEAD_GUN] = {.name = "gun", .actions = GUNS, .action_names = gun_names},
    [HEAD_GEAR] = {.name = "gear", .actions = GEARS, .action_names = gear_names},
    [HEAD_GUARD] = {.name = "guard", .actions = GUARDS, .action_names = guard_names},
    [HEAD_SHIELD] = {.name = "shield", .actions = SHIELDS, .action_names = shield_names},
    [HEAD_CREW] = {.name = "crew", .actions = CREWS, .action_names = crew_names},
};

const mimus_schema *senses_schema(void) {
    static const mimus_schema schema = {
        .senses = SENSES_COUNT,
        .sense_names = sense_names,
        .heads = GAME_HEADS,
        .head = heads,
        .masks = true,
    };
    return &schema;
}

/* ----------------------------------------------------------------- writing */

/* `value` of `full`, kept in [-1, 1]. The one rounding is a division of whole numbers; the float
 * is exact. */
static void put(float *senses, int at, int64_t value, int32_t full) {
    int32_t whole = fixed_clamp(value * SENSE_ONE / full, -SENSE_ONE, SENSE_ONE);
    senses[at] = (float)whole / (float)SENSE_ONE;
}

static void put_direction(float *senses, int at, int32_t angle) {
    put(senses, at, fixed_cos(angle), FIXED_ONE);
    put(senses, at + 1, fixed_sin(angle), FIXED_ONE);
}

static void put_vector(float *senses, int at, fixed_local vector, int32_t full) {
    put(senses, at, vector.ahead, full);
    put(senses, at + 1, vector.right, full);
}

static void put_choice(float *senses, int first, int chosen) {
    senses[first + chosen] = 1;
}

static void put_aim(float *senses, int wide, int32_t turn) {
    put(senses, wide, turn, FIXED_TURN / 2);
    put(senses, wide + 1, turn, 320);
    put(senses, wide + 2, turn, 64);
}

/* --------------------------------------------------------------------- self */

static void sense_self(const game_state *game, const game_tank *tank, float *senses) {
    put(senses, SENSE_time_left, GAME_TICKS - game->tick, GAME_TICKS);
    put(senses, SENSE_x, 2 * tank->x - GAME_SIDE, GAME_SIDE);
    put(senses, SENSE_y, 2 * tank->y - GAME_SIDE, GAME_SIDE);
    put_direction(senses, SENSE_heading_x, tank->heading);
    put_direction(senses, SENSE_turret_ahead, tank->turret - tank->heading);
    put(senses, SENSE_speed, tank->speed, TANK_SPEED);
    put(senses, SENSE_health, tank->health, GAME_FULL);
    put(senses, SENSE_energy, tank->energy, GAME_FULL);
    put(senses, SENSE_heat, tank->heat, GAME_FULL);
    put(senses, SENSE_ammo, tank->ammo, AMMO);
    put(senses, SENSE_smokes, tank->smokes, SMOKES);
    put(senses, SENSE_mines, tank->mines, MINES);
    put(senses, SENSE_reload, tank->reload, RELOAD);
    put(senses, SENSE_recoil, tank->recoil, 3);
    put(senses, SENSE_tracks, tank->tracks, TRACKS_MAX);
    put(senses, SENSE_overload, tank->overload, OVERLOAD);
    put(senses, SENSE_calm, tank->calm, CALM);
    put(senses, SENSE_smoke, tank->smoke, SMOKE);
    put(senses, SENSE_smoke_wait, tank->smoke_wait, SMOKE_WAIT);
    put(senses, SENSE_mine_wait, tank->mine_wait, MINE_WAIT);
    put_choice(senses, SENSE_gear_park, tank->gear);
    put_choice(senses, SENSE_shield_down, tank->shield);
    put_choice(senses, SENSE_guard0, tank->guard);
}

static void sense_last(const game_tank *tank, float *senses) {
    put(senses, SENSE_last_throttle, game_throttle(tank->last[HEAD_DRIVE]), 1);
    put(senses, SENSE_last_steering, game_steering(tank->last[HEAD_DRIVE]), 1);
    put(senses, SENSE_last_turret, 2 * tank->last[HEAD_TURRET] - (TURRETS - 1), TURRETS - 1);
    put(senses, SENSE_last_burst, tank->last[HEAD_GUN] == GUN_BURST, 1);
    put(senses, SENSE_last_shell, tank->last[HEAD_GUN] == GUN_SHELL, 1);
    put_choice(senses, SENSE_last_charge, tank->last[HEAD_CREW]);
}

/* -------------------------------------------------------------------- enemy */

/* Where the enemy will be when a shell fired now arrives, if it goes on as it was last seen. */
static int32_t lead_angle(const game_tank *tank, const game_contact *enemy) {
    int32_t dx = enemy->x - tank->x, dy = enemy->y - tank->y;
    int32_t to_x = dx, to_y = dy;
    for (int round = 0; round < 2; round++) {
        int32_t way = fixed_length(to_x, to_y);
        to_x = dx + (int32_t)((int64_t)enemy->vx * way / SHELL_SPEED);
        to_y = dy + (int32_t)((int64_t)enemy->vy * way / SHELL_SPEED);
    }
    return fixed_angle(to_x, to_y);
}

static void sense_aims(const game_tank *tank, const game_contact *enemy, int32_t bearing,
                       float *senses) {
    put_aim(senses, SENSE_aim_wide, fixed_wrap_signed(bearing - tank->turret));
    put_aim(senses, SENSE_lead_wide, fixed_wrap_signed(lead_angle(tank, enemy) - tank->turret));
    int32_t theirs = fixed_wrap_signed(bearing + FIXED_TURN / 2 - enemy->turret);
    put(senses, SENSE_enemy_aim_wide, theirs, FIXED_TURN / 2);
    put(senses, SENSE_enemy_aim_near, theirs, 320);
    int32_t loaded = 2 * RELOAD - enemy->reload; /* half as threatening while it reloads */
    int32_t aimed = fixed_clamp(320 - fixed_abs(theirs), 0, 320);
    put(senses, SENSE_enemy_threat, enemy->age == 0 ? loaded * aimed : 0, 2 * RELOAD * 320);
}

static void sense_enemy_motion(const game_tank *tank, const game_contact *enemy, int32_t bearing,
                               float *senses) {
    int32_t vx, vy;
    game_velocity(tank, &vx, &vy);
    put_direction(senses, SENSE_enemy_heading_ahead, enemy->heading - tank->heading);
    put_vector(senses, SENSE_enemy_speed_ahead, fixed_to_local(enemy->vx, enemy->vy, tank->heading),
               TANK_SPEED);
    put(senses, SENSE_enemy_closing, -fixed_to_local(enemy->vx - vx, enemy->vy - vy, bearing).ahead,
        2 * TANK_SPEED);
}

static void sense_enemy_state(const game_tank *tank, const game_contact *enemy, float *senses) {
    put(senses, SENSE_enemy_in_sight, enemy->age == 0, 1);
    put(senses, SENSE_enemy_age, enemy->age, 32);
    put(senses, SENSE_enemy_health, enemy->health, GAME_FULL);
    put(senses, SENSE_enemy_energy, enemy->energy, GAME_FULL);
    put(senses, SENSE_enemy_heat, enemy->heat, GAME_FULL);
    put(senses, SENSE_enemy_reload, enemy->reload, RELOAD);
    put_choice(senses, SENSE_enemy_shield_down, enemy->shield);
    put(senses, SENSE_enemy_tracks, enemy->tracks, TRACKS_MAX);
    put(senses, SENSE_enemy_on_guard, enemy->on_guard, 1);
    put(senses, SENSE_advantage, tank->health - enemy->health, GAME_FULL);
}

static void sense_enemy(const game_tank *tank, float *senses) {
    const game_contact *enemy = &tank->contact;
    int32_t dx = enemy->x - tank->x, dy = enemy->y - tank->y;
    int32_t bearing = fixed_angle(dx, dy);
    put_vector(senses, SENSE_enemy_ahead, fixed_to_local(dx, dy, tank->heading), GAME_SIDE);
    put(senses, SENSE_enemy_distance, fixed_length(dx, dy), GAME_SIDE);
    put_direction(senses, SENSE_enemy_bearing_ahead, bearing - tank->heading);
    sense_aims(tank, enemy, bearing, senses);
    sense_enemy_motion(tank, enemy, bearing, senses);
    sense_enemy_state(tank, enemy, senses);
}

/* ----------------------------------------------------------- what is around */

enum { SHELLS_SEEN = 3, MINES_SEEN = 2, URGENT = 24, PASS = 3000, MINE_SIGHT = 16384 };

typedef struct incoming {
    int32_t ticks;          /* until it is nearest; the list is sorted by it */
    int32_t dx, dy;         /* where it is now */
    int32_t pass_x, pass_y; /* where it will be then; both from the tank */
} incoming;

/* Whether the shell is on its way to pass near the tank. */
static bool watch_shell(const game_tank *tank, const game_shell *shell, incoming *out) {
    int32_t vx, vy;
    game_velocity(tank, &vx, &vy);
    int64_t rx = shell->vx - vx, ry = shell->vy - vy, speed2 = rx * rx + ry * ry;
    int64_t dx = shell->x - tank->x, dy = shell->y - tank->y, along = -(dx * rx + dy * ry);
    if (shell->life == 0 || along <= 0 || speed2 == 0 || along / speed2 >= URGENT)
        return false;
    *out = (incoming){
        .ticks = (int32_t)(along / speed2),
        .dx = (int32_t)dx,
        .dy = (int32_t)dy,
        .pass_x = (int32_t)(dx + rx * along / speed2),
        .pass_y = (int32_t)(dy + ry * along / speed2),
    };
    return fixed_length(out->pass_x, out->pass_y) < 2 * PASS;
}

static void sense_shell(const game_tank *tank, const incoming *shell, int at, float *senses) {
    put(senses, at, URGENT - shell->ticks, URGENT);
    put_vector(senses, at + 1, fixed_to_local(shell->dx, shell->dy, tank->heading),
               URGENT * SHELL_SPEED);
    put_direction(senses, at + 3, fixed_angle(shell->dx, shell->dy) - tank->heading);
    put_vector(senses, at + 5, fixed_to_local(shell->pass_x, shell->pass_y, tank->heading), PASS);
}

static void sense_shells(const game_state *game, int seat, float *senses) {
    const game_tank *tank = &game->tank[seat];
    incoming seen[SHELLS];
    int count = 0, out = 0;
    for (int i = 0; i < SHELLS; i++) {
        out += game->shell[seat][i].life > 0;
        incoming shell;
        if (!watch_shell(tank, &game->shell[!seat][i], &shell))
            continue;
        int at = count++;
        for (; at > 0 && seen[at - 1].ticks > shell.ticks; at--)
            seen[at] = seen[at - 1];
        seen[at] = shell;
    }
    for (int i = 0; i < count && i < SHELLS_SEEN; i++)
        sense_shell(tank, &seen[i],
                    SENSE_shell0_urgency + i * (SENSE_shell1_urgency - SENSE_shell0_urgency),
                    senses);
    put(senses, SENSE_shells_out, out, SHELLS);
}

static void sense_mines(const game_state *game, int seat, float *senses) {
    const game_tank *tank = &game->tank[seat];
    int32_t nearest[MINES_SEEN] = {MINE_SIGHT, MINE_SIGHT};
    for (int i = 0; i < MINES; i++) {
        const game_mine *mine = &game->mine[!seat][i];
        int32_t dx = mine->x - tank->x, dy = mine->y - tank->y, way = fixed_length(dx, dy);
        if (!mine->armed || way >= nearest[1])
            continue;
        int slot = way >= nearest[0];
        if (slot == 0) { /* the nearest so far becomes the second */
            for (int k = 0; k < 3; k++)
                senses[SENSE_mine1_nearness + k] = senses[SENSE_mine0_nearness + k];
            nearest[1] = nearest[0];
        }
        nearest[slot] = way;
        int at = slot == 0 ? SENSE_mine0_nearness : SENSE_mine1_nearness;
        put(senses, at, MINE_SIGHT - way, MINE_SIGHT);
        put_vector(senses, at + 1, fixed_to_local(dx, dy, tank->heading), MINE_SIGHT);
    }
}

static void sense_depots(const game_state *game, int seat, float *senses) {
    const game_tank *tank = &game->tank[seat];
    for (int i = 0; i < DEPOTS; i++) {
        const game_depot *depot = &game->depot[i ^ seat];
        int at = i == 0 ? SENSE_depot0_ready : SENSE_depot1_ready;
        int32_t dx = depot->x - tank->x, dy = depot->y - tank->y;
        put(senses, at, DEPOT_WAIT - depot->wait, DEPOT_WAIT);
        put(senses, at + 1, GAME_SIDE - fixed_length(dx, dy), GAME_SIDE);
        put_direction(senses, at + 2, fixed_angle(dx, dy) - tank->heading);
    }
}

static void sense_clearances(const game_state *game, const game_tank *tank, float *senses) {
    for (int i = 0; i < SENSES_RAYS; i++) {
        int32_t angle = tank->heading + i * FIXED_TURN / SENSES_RAYS;
        put(senses, SENSE_clear0 + i, game_clearance(game, tank->x, tank->y, angle), GAME_SIDE / 2);
    }
}

void senses_read(const game_state *game, int seat, float senses[SENSES_COUNT]) {
    const game_tank *tank = &game->tank[seat];
    for (int i = 0; i < SENSES_COUNT; i++)
        senses[i] = 0;
    sense_self(game, tank, senses);
    sense_last(tank, senses);
    sense_enemy(tank, senses);
    sense_shells(game, seat, senses);
    sense_mines(game, seat, senses);
    sense_depots(game, seat, senses);
    sense_clearances(game, tank, senses);
}

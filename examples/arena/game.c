#include "game.h"

#include <assert.h>
#include <string.h>

/* ------------------------------------------------------------------- heads */

static const int actions_of[GAME_HEADS] = {DRIVES, TURRETS, GUNS, GEARS, GUARDS, SHIELDS, CREWS};

int game_actions(game_head head) {
    return actions_of[head];
}

int game_first(game_head head) {
    int first = 0;
    for (int h = 0; h < (int)head; h++)
        first += actions_of[h];
    return first;
}

int game_throttle(int drive) {
    return drive / 3 - 1;
}

int game_steering(int drive) {
    return drive % 3 - 1;
}

int32_t game_turret_rate(int turret) {
    static const int32_t rates[TURRETS] = {-256, -128, -56, -20, -5, 5, 20, 56, 128, 256};
    return rates[turret];
}

int32_t game_guard_angle(int guard) {
    return guard * FIXED_TURN / GUARDS;
}

/* Whether the tank guards the sector in which something comes from the direction `from`. */
static bool guards_against(const game_tank *tank, int32_t from) {
    int32_t middle = tank->heading + game_guard_angle(tank->guard);
    return fixed_abs(fixed_wrap_signed(from - middle)) <= FIXED_TURN / GUARDS / 2;
}

/* ---------------------------------------------------------------- geometry */

static bool within(int64_t dx, int64_t dy, int64_t distance) {
    return dx * dx + dy * dy < distance * distance;
}

/* Whether a disc stands clear of walls and rocks. */
static bool is_free(const game_state *game, int32_t x, int32_t y, int32_t radius) {
    if (x < radius || y < radius || x > GAME_SIDE - radius || y > GAME_SIDE - radius)
        return false;
    for (int i = 0; i < ROCKS; i++) {
        const game_rock *rock = &game->rock[i];
        if (within(x - rock->x, y - rock->y, radius + rock->radius))
            return false;
    }
    return true;
}

/* The way along the unit vector (ux, uy) to a wall. */
static int32_t way_to_wall(int32_t from, int32_t unit) {
    if (unit > 0)
        return (int32_t)((int64_t)(GAME_SIDE - from) * FIXED_ONE / unit);
    if (unit < 0)
        return (int32_t)((int64_t)from * FIXED_ONE / -unit);
    return 2 * GAME_SIDE;
}

int32_t game_clearance(const game_state *game, int32_t x, int32_t y, int32_t angle) {
    int32_t ux = fixed_cos(angle), uy = fixed_sin(angle);
    int32_t wall_x = way_to_wall(x, ux), wall_y = way_to_wall(y, uy);
    int32_t nearest = wall_x < wall_y ? wall_x : wall_y;
    for (int i = 0; i < ROCKS; i++) {
        const game_rock *rock = &game->rock[i];
        int64_t dx = rock->x - x, dy = rock->y - y;
        int64_t along = (dx * ux + dy * uy) / FIXED_ONE, aside = (dy * ux - dx * uy) / FIXED_ONE;
        int64_t depth = (int64_t)rock->radius * rock->radius - aside * aside;
        if (along <= 0 || depth <= 0)
            continue;
        int64_t way = along - fixed_sqrt(depth);
        if (way < nearest)
            nearest = way < 0 ? 0 : (int32_t)way;
    }
    return nearest;
}

/* Whether the segment from (x, y) by (dx, dy) touches the disc at (cx, cy). */
static bool touches(int32_t x, int32_t y, int64_t dx, int64_t dy, int32_t cx, int32_t cy,
                    int64_t radius) {
    int64_t to_x = cx - x, to_y = cy - y;
    int64_t length2 = dx * dx + dy * dy, along = to_x * dx + to_y * dy;
    if (length2 == 0 || along <= 0)
        return within(to_x, to_y, radius);
    if (along >= length2)
        return within(to_x - dx, to_y - dy, radius);
    return within(to_x - dx * along / length2, to_y - dy * along / length2, radius);
}

static bool rock_between(const game_state *game, int32_t x, int32_t y, int32_t to_x, int32_t to_y) {
    for (int i = 0; i < ROCKS; i++) {
        const game_rock *rock = &game->rock[i];
        if (touches(x, y, to_x - x, to_y - y, rock->x, rock->y, rock->radius))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------- start */

/* Rocks and depots come in pairs, mirrored in the centre: neither seat has the better half. */
static bool place_rock(game_state *game, int index, const game_rock *rock) {
    int64_t apart = rock->radius + 3 * TANK_RADIUS;
    if (within(2 * rock->x - GAME_SIDE, 2 * rock->y - GAME_SIDE, rock->radius + apart))
        return false; /* too near to its own mirror image */
    for (int i = 0; i < index; i++) {
        const game_rock *other = &game->rock[i];
        if (within(rock->x - other->x, rock->y - other->y, apart + other->radius))
            return false;
    }
    game->rock[index] = *rock;
    return true;
}

static void place_rocks(game_state *game) {
    for (int i = 0; i < ROCKS;) {
        game_rock rock = {.x = fixed_random_between(&game->random, 8000, GAME_SIDE - 8000),
                          .y = fixed_random_between(&game->random, 6000, GAME_SIDE - 6000),
                          .radius = fixed_random_between(&game->random, 1200, 3200)};
        if (!place_rock(game, i, &rock))
            continue;
        game->rock[i + 1] = (game_rock){GAME_SIDE - rock.x, GAME_SIDE - rock.y, rock.radius};
        i += 2;
    }
}

static void place_depots(game_state *game) {
    int32_t x, y;
    do {
        x = fixed_random_between(&game->random, 8000, GAME_SIDE / 2);
        y = fixed_random_between(&game->random, 8000, GAME_SIDE - 8000);
    } while (!is_free(game, x, y, 2 * TANK_RADIUS));
    game->depot[0] = (game_depot){.x = x, .y = y};
    game->depot[1] = (game_depot){.x = GAME_SIDE - x, .y = GAME_SIDE - y};
}

static void place_tank(game_tank *tank, int32_t x, int32_t y, int32_t heading) {
    *tank = (game_tank){
        .x = x,
        .y = y,
        .heading = fixed_wrap(heading),
        .turret = fixed_wrap(heading),
        .health = GAME_FULL,
        .energy = GAME_FULL,
        .ammo = AMMO,
        .smokes = SMOKES,
        .mines = MINES,
        .gear = GEAR_MID,
        .last = {[HEAD_DRIVE] = 4, [HEAD_TURRET] = TURRETS / 2, [HEAD_GEAR] = GEAR_MID},
    };
}

void game_velocity(const game_tank *tank, int32_t *vx, int32_t *vy) {
    *vx = tank->speed * fixed_cos(tank->heading) / FIXED_ONE;
    *vy = tank->speed * fixed_sin(tank->heading) / FIXED_ONE;
}

/* The seat learns all there is to know of the other. */
static void see(game_state *game, int seat) {
    const game_tank *self = &game->tank[seat], *other = &game->tank[!seat];
    game_contact *contact = &game->tank[seat].contact;
    *contact = (game_contact){
        .x = other->x,
        .y = other->y,
        .heading = other->heading,
        .turret = other->turret,
        .health = other->health,
        .energy = other->energy,
        .heat = other->heat,
        .reload = other->reload,
        .shield = other->shield,
        .tracks = other->tracks,
        .on_guard = guards_against(other, fixed_angle(self->x - other->x, self->y - other->y)),
    };
    game_velocity(other, &contact->vx, &contact->vy);
}

static void look(game_state *game, int seat) {
    const game_tank *self = &game->tank[seat], *other = &game->tank[!seat];
    game_contact *contact = &game->tank[seat].contact;
    bool hidden = other->smoke > 0 || rock_between(game, self->x, self->y, other->x, other->y);
    if (!hidden || within(self->x - other->x, self->y - other->y, PRESENCE)) {
        see(game, seat);
    } else if (++contact->age % HEARING == 0) { /* the noise gives the place away */
        contact->x = other->x;
        contact->y = other->y;
    }
}

void game_start(game_state *game, uint64_t seed) {
    memset(game, 0, sizeof *game);
    game->random = fixed_random_start(seed, 0);
    place_rocks(game);
    place_depots(game);
    int32_t x, y;
    do {
        x = fixed_random_between(&game->random, 10000, 20000);
        y = fixed_random_between(&game->random, 10000, GAME_SIDE - 10000);
    } while (!is_free(game, x, y, 2 * TANK_RADIUS));
    int32_t heading = fixed_random_between(&game->random, -FIXED_TURN / 4, FIXED_TURN / 4);
    place_tank(&game->tank[0], x, y, heading);
    place_tank(&game->tank[1], GAME_SIDE - x, GAME_SIDE - y, heading + FIXED_TURN / 2);
    for (int seat = 0; seat < 2; seat++) {
        game->first_hit[seat] = GAME_TICKS;
        see(game, seat); /* both know where the other begins */
        look(game, seat);
    }
}

/* ------------------------------------------------------------------- legal */

/* Whether the tank's own length ahead of it (behind it: `way` -1) is free. */
static bool way_is_free(const game_state *game, const game_tank *tank, int way) {
    int32_t ux = fixed_cos(tank->heading), uy = fixed_sin(tank->heading);
    return is_free(game, tank->x + way * TANK_RADIUS * ux / FIXED_ONE,
                   tank->y + way * TANK_RADIUS * uy / FIXED_ONE, TANK_RADIUS);
}

static void legal_drive(const game_state *game, const game_tank *tank, uint8_t *legal) {
    bool may[3] = {tank->gear != GEAR_PARK && way_is_free(game, tank, -1), true,
                   tank->gear != GEAR_PARK && way_is_free(game, tank, 1)};
    for (int drive = 0; drive < DRIVES; drive++) {
        bool stands_straight = game_throttle(drive) == 0 && game_steering(drive) == 0;
        legal[drive] = tank->tracks > 0 ? stands_straight : may[game_throttle(drive) + 1];
    }
}

static void legal_turret(const game_tank *tank, uint8_t *legal) {
    int32_t fastest = tank->recoil > 0 ? 20 : tank->energy < 60 ? 128 : 256;
    for (int turret = 0; turret < TURRETS; turret++)
        legal[turret] = fixed_abs(game_turret_rate(turret)) <= fastest;
}

static void legal_gear(const game_tank *tank, uint8_t *legal) {
    for (int gear = 0; gear < GEARS; gear++)
        legal[gear] = gear >= tank->gear - 1 && gear <= tank->gear + 1;
    if (tank->energy < 120 || tank->heat > 850)
        legal[GEAR_BOOST] = false;
}

static void legal_guard(const game_tank *tank, uint8_t *legal) {
    for (int guard = 0; guard < GUARDS; guard++) {
        int way = (guard - tank->guard + GUARDS) % GUARDS;
        legal[guard] = way <= 2 || way >= GUARDS - 2;
    }
}

static void legal_crew(const game_tank *tank, uint8_t *legal) {
    legal[CREW_CHARGE] = true;
    legal[CREW_LOAD] = tank->reload > 0;
    legal[CREW_REPAIR] = tank->health < GAME_FULL && tank->calm == 0;
    legal[CREW_VENT] = tank->heat >= 100;
    legal[CREW_SMOKE] = tank->smokes > 0 && tank->smoke_wait == 0;
    legal[CREW_MINE] = tank->mines > 0 && tank->mine_wait == 0;
    legal[CREW_TRACKS] = tank->tracks > 0;
}

void game_legal(const game_state *game, int seat, uint8_t legal[GAME_ACTIONS]) {
    const game_tank *tank = &game->tank[seat];
    legal_drive(game, tank, legal + game_first(HEAD_DRIVE));
    legal_turret(tank, legal + game_first(HEAD_TURRET));
    uint8_t *gun = legal + game_first(HEAD_GUN);
    gun[GUN_HOLD] = true;
    gun[GUN_BURST] = tank->heat < 800;
    gun[GUN_SHELL] = tank->reload == 0 && tank->ammo > 0;
    legal_gear(tank, legal + game_first(HEAD_GEAR));
    legal_guard(tank, legal + game_first(HEAD_GUARD));
    uint8_t *shield = legal + game_first(HEAD_SHIELD);
    shield[SHIELD_DOWN] = true;
    shield[SHIELD_HALF] = tank->overload == 0 && tank->energy >= 80;
    shield[SHIELD_FULL] = tank->overload == 0 && tank->energy >= 250;
    legal_crew(tank, legal + game_first(HEAD_CREW));
}

/* -------------------------------------------------------------------- step */

static void count_down(int32_t *value, int32_t by) {
    *value = *value > by ? *value - by : 0;
}

static void meter_add(int32_t *meter, int32_t by) {
    *meter = fixed_clamp(*meter + by, 0, GAME_FULL);
}

/* What flies in against the direction `from` (towards its origin, against the world) does harm. */
static void hit(game_state *game, int seat, int32_t harm, int32_t from) {
    static const int32_t passes[SHIELDS] = {4, 2, 1}; /* quarters */
    static const int32_t drain[SHIELDS] = {0, 1, 2};  /* energy, halves of the harm */
    game_tank *tank = &game->tank[seat];
    if (guards_against(tank, from))
        harm /= 2;
    game->damage[seat] += harm * passes[tank->shield] / 4;
    meter_add(&tank->energy, -harm * drain[tank->shield] / 2);
    if (game->first_hit[seat] == GAME_TICKS)
        game->first_hit[seat] = game->tick;
    tank->calm = CALM;
}

static void lay_mine(game_state *game, int seat) {
    game_tank *tank = &game->tank[seat];
    tank->mines--;
    tank->mine_wait = MINE_WAIT;
    game->mine[seat][tank->mines] = (game_mine){
        .x = tank->x - 2 * TANK_RADIUS * fixed_cos(tank->heading) / FIXED_ONE,
        .y = tank->y - 2 * TANK_RADIUS * fixed_sin(tank->heading) / FIXED_ONE,
        .armed = true,
    };
}

static void crew_work(game_state *game, int seat, int crew) {
    game_tank *tank = &game->tank[seat];
    switch (crew) {
    case CREW_CHARGE:
        meter_add(&tank->energy, 12);
        break;
    case CREW_LOAD:
        count_down(&tank->reload, 1);
        break;
    case CREW_REPAIR:
        meter_add(&tank->health, 3);
        break;
    case CREW_VENT:
        meter_add(&tank->heat, -50);
        break;
    case CREW_SMOKE:
        tank->smokes--;
        tank->smoke = SMOKE;
        tank->smoke_wait = SMOKE_WAIT;
        break;
    case CREW_MINE:
        lay_mine(game, seat);
        break;
    default: /* CREW_TRACKS */
        count_down(&tank->tracks, 3);
    }
}

static void push_out_of_rocks(const game_state *game, game_tank *tank) {
    for (int i = 0; i < ROCKS; i++) {
        const game_rock *rock = &game->rock[i];
        int32_t apart = rock->radius + TANK_RADIUS;
        int32_t dx = tank->x - rock->x, dy = tank->y - rock->y;
        if (!within(dx, dy, apart))
            continue;
        int32_t angle = fixed_angle(dx, dy);
        tank->x = rock->x + (int32_t)((int64_t)apart * fixed_cos(angle) / FIXED_ONE);
        tank->y = rock->y + (int32_t)((int64_t)apart * fixed_sin(angle) / FIXED_ONE);
        tank->speed /= 2;
    }
}

static void stay_inside(game_tank *tank) {
    int32_t x = fixed_clamp(tank->x, TANK_RADIUS, GAME_SIDE - TANK_RADIUS);
    int32_t y = fixed_clamp(tank->y, TANK_RADIUS, GAME_SIDE - TANK_RADIUS);
    if (x != tank->x || y != tank->y)
        tank->speed /= 2;
    tank->x = x;
    tank->y = y;
}

static void drive(const game_state *game, game_tank *tank, int action) {
    static const int32_t speeds[GEARS] = {0, 140, 260, 380, TANK_SPEED};
    static const int32_t turns[GEARS] = {120, 100, 84, 68, 52};
    int32_t throttle = game_throttle(action);
    int32_t wanted = speeds[tank->gear] * throttle;
    if (throttle < 0)
        wanted /= 2;
    tank->speed += fixed_clamp(wanted - tank->speed, -96, 96);
    tank->heading = fixed_wrap(tank->heading + game_steering(action) * turns[tank->gear]);
    int32_t vx, vy;
    game_velocity(tank, &vx, &vy);
    tank->x += vx;
    tank->y += vy;
    push_out_of_rocks(game, tank);
    stay_inside(tank);
}

static void push_apart(game_state *game) {
    game_tank *a = &game->tank[0], *b = &game->tank[1];
    int32_t dx = b->x - a->x, dy = b->y - a->y;
    int32_t overlap = 2 * TANK_RADIUS - fixed_length(dx, dy);
    if (overlap <= 0)
        return;
    int32_t angle = fixed_angle(dx, dy);
    int32_t push_x = overlap * fixed_cos(angle) / FIXED_ONE / 2;
    int32_t push_y = overlap * fixed_sin(angle) / FIXED_ONE / 2;
    a->x -= push_x, a->y -= push_y;
    b->x += push_x, b->y += push_y;
    a->speed /= 2, b->speed /= 2;
    stay_inside(a), stay_inside(b);
}

static void fire_burst(game_state *game, int seat) {
    game_tank *self = &game->tank[seat];
    const game_tank *other = &game->tank[!seat];
    meter_add(&self->heat, 80);
    fixed_local at = fixed_to_local(other->x - self->x, other->y - self->y, self->turret);
    if (at.ahead > 0 && at.ahead < BURST_RANGE && fixed_abs(at.right) < TANK_RADIUS &&
        !rock_between(game, self->x, self->y, other->x, other->y))
        hit(game, !seat, 45, self->turret + FIXED_TURN / 2);
}

static void fire_shell(game_state *game, int seat) {
    game_tank *tank = &game->tank[seat];
    tank->ammo--;
    tank->reload = RELOAD;
    tank->recoil = 3;
    meter_add(&tank->heat, 60);
    int32_t spread = 6 + fixed_abs(tank->speed) / 24; /* a moving gun is a shaking gun */
    int32_t angle = tank->turret + fixed_random_between(&game->random, -spread, spread);
    int32_t ux = fixed_cos(angle), uy = fixed_sin(angle);
    for (int i = 0; i < SHELLS; i++) {
        game_shell *shell = &game->shell[seat][i];
        if (shell->life > 0)
            continue;
        *shell = (game_shell){.x = tank->x,
                              .y = tank->y,
                              .vx = SHELL_SPEED * ux / FIXED_ONE,
                              .vy = SHELL_SPEED * uy / FIXED_ONE,
                              .life = SHELL_LIFE};
        return;
    }
}

static bool shell_stops(const game_state *game, const game_shell *shell) {
    int32_t x = shell->x + shell->vx, y = shell->y + shell->vy;
    return x < 0 || y < 0 || x > GAME_SIDE || y > GAME_SIDE ||
           rock_between(game, shell->x, shell->y, x, y);
}

static void fly(game_state *game, int seat, game_shell *shell) {
    game_tank *target = &game->tank[!seat];
    if (touches(shell->x, shell->y, shell->vx, shell->vy, target->x, target->y, TANK_RADIUS)) {
        hit(game, !seat, 240, fixed_angle(-shell->vx, -shell->vy));
        if (fixed_random_below(&game->random, 5) == 0)
            target->tracks = TRACKS_MAX / 2;
        shell->life = 0;
        return;
    }
    shell->life = shell_stops(game, shell) ? 0 : shell->life - 1;
    shell->x += shell->vx;
    shell->y += shell->vy;
}

static void fly_all(game_state *game) {
    for (int seat = 0; seat < 2; seat++)
        for (int i = 0; i < SHELLS; i++)
            if (game->shell[seat][i].life > 0)
                fly(game, seat, &game->shell[seat][i]);
}

static void trip_mines(game_state *game) {
    for (int seat = 0; seat < 2; seat++) {
        game_tank *victim = &game->tank[!seat];
        for (int i = 0; i < MINES; i++) {
            game_mine *mine = &game->mine[seat][i];
            if (!mine->armed || !within(mine->x - victim->x, mine->y - victim->y, MINE_RADIUS))
                continue;
            mine->armed = false;
            victim->tracks = TRACKS_MAX;
            hit(game, !seat, 90, fixed_angle(mine->x - victim->x, mine->y - victim->y));
        }
    }
}

static void supply(game_state *game) {
    for (int i = 0; i < DEPOTS; i++) {
        game_depot *depot = &game->depot[i];
        if (depot->wait > 0) {
            depot->wait--;
            continue;
        }
        for (int seat = 0; seat < 2; seat++) {
            game_tank *tank = &game->tank[seat];
            if (tank->ammo >= AMMO || !within(tank->x - depot->x, tank->y - depot->y, DEPOT_RADIUS))
                continue;
            tank->ammo = tank->ammo < AMMO - 8 ? tank->ammo + 8 : AMMO;
            meter_add(&tank->energy, 300);
            depot->wait = DEPOT_WAIT;
        }
    }
}

static void wear(game_tank *tank) {
    static const int32_t shield_drain[SHIELDS] = {0, 9, 22};
    int32_t spent = shield_drain[tank->shield] + (tank->gear == GEAR_BOOST ? 14 : 0) +
                    (fixed_abs(game_turret_rate(tank->last[HEAD_TURRET])) > 128 ? 6 : 0);
    meter_add(&tank->energy, 8 - spent);
    meter_add(&tank->heat, tank->gear == GEAR_BOOST ? 4 : -16);
    if (tank->energy == 0 && tank->shield != SHIELD_DOWN) {
        tank->shield = SHIELD_DOWN;
        tank->overload = OVERLOAD;
    }
    int32_t *timers[] = {&tank->reload, &tank->recoil,     &tank->tracks,    &tank->overload,
                         &tank->smoke,  &tank->smoke_wait, &tank->mine_wait, &tank->calm};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        count_down(timers[i], 1);
}

bool game_allows(const game_state *game, int seat, const uint16_t actions[GAME_HEADS]) {
    uint8_t legal[GAME_ACTIONS];
    game_legal(game, seat, legal);
    for (int head = 0; head < GAME_HEADS; head++)
        if (actions[head] >= actions_of[head] ||
            !legal[game_first((game_head)head) + actions[head]])
            return false;
    return true;
}

static void move(game_state *game, int seat, const uint16_t actions[GAME_HEADS]) {
    assert(game_allows(game, seat, actions));
    game_tank *tank = &game->tank[seat];
    memcpy(tank->last, actions, sizeof tank->last);
    tank->gear = actions[HEAD_GEAR];
    tank->guard = actions[HEAD_GUARD];
    tank->shield = actions[HEAD_SHIELD];
    crew_work(game, seat, actions[HEAD_CREW]);
    drive(game, tank, actions[HEAD_DRIVE]);
    tank->turret = fixed_wrap(tank->turret + game_turret_rate(actions[HEAD_TURRET]));
}

void game_step(game_state *game, const uint16_t *actions0, const uint16_t *actions1) {
    const uint16_t *actions[2] = {actions0, actions1};
    game->damage[0] = game->damage[1] = 0;
    for (int seat = 0; seat < 2; seat++)
        move(game, seat, actions[seat]);
    push_apart(game);
    for (int seat = 0; seat < 2; seat++) {
        if (actions[seat][HEAD_GUN] == GUN_BURST)
            fire_burst(game, seat);
        else if (actions[seat][HEAD_GUN] == GUN_SHELL)
            fire_shell(game, seat);
    }
    fly_all(game);
    trip_mines(game);
    supply(game);
    for (int seat = 0; seat < 2; seat++) {
        game->tank[seat].health -= game->damage[seat];
        wear(&game->tank[seat]);
    }
    for (int seat = 0; seat < 2; seat++)
        look(game, seat);
    game->tick++;
}

bool game_over(const game_state *game) {
    return game->tick >= GAME_TICKS || game->tank[0].health <= 0 || game->tank[1].health <= 0;
}

int game_winner(const game_state *game) {
    if (game->tank[0].health != game->tank[1].health)
        return game->tank[0].health < game->tank[1].health;
    if (game->first_hit[0] != game->first_hit[1])
        return game->first_hit[0] < game->first_hit[1];
    return -1;
}

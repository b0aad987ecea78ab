/* game - a duel of two tanks: state and rules. It knows nothing of mimus.
 *
 * Both players choose one action of every head at every tick, at once. A tank whose health is gone
 * has lost; when the time is over the healthier one wins, and between equals the one that was hit
 * later. Lengths: the arena is GAME_SIDE wide. Times: ticks. Meters (health, energy, heat):
 * GAME_FULL when full. */
#ifndef ARENA_GAME_H
#define ARENA_GAME_H

#include "fixed.h"

#include <stdbool.h>
#include <stdint.h>

/* The heads, in the order in which actions and legal-action masks list them. */
typedef enum game_head {
    HEAD_DRIVE,  /* 3 * throttle + steering, see game_throttle */
    HEAD_TURRET, /* a turning rate, game_turret_rate */
    HEAD_GUN,    /* hold, burst, shell */
    HEAD_GEAR,   /* park, low, mid, high, boost */
    HEAD_GUARD,  /* the sector that stops half of what comes in, clockwise from ahead */
    HEAD_SHIELD, /* down, half, full */
    HEAD_CREW,   /* what the spare hands do */
    GAME_HEADS,
} game_head;

enum {
    DRIVES = 9,
    TURRETS = 10,
    GUNS = 3,
    GEARS = 5,
    GUARDS = 10,
    SHIELDS = 3,
    CREWS = 7,
    GAME_ACTIONS = DRIVES + TURRETS + GUNS + GEARS + GUARDS + SHIELDS + CREWS,
};

enum { GUN_HOLD, GUN_BURST, GUN_SHELL };
enum { GEAR_PARK, GEAR_LOW, GEAR_MID, GEAR_HIGH, GEAR_BOOST };
enum { SHIELD_DOWN, SHIELD_HALF, SHIELD_FULL };
enum { CREW_CHARGE, CREW_LOAD, CREW_REPAIR, CREW_VENT, CREW_SMOKE, CREW_MINE, CREW_TRACKS };

/* How many actions a head has, and where its first one stands among the GAME_ACTIONS. */
int game_actions(game_head head);
int game_first(game_head head);

/* -1 back, 0 coast, 1 ahead; -1 left, 0 straight, 1 right. */
int game_throttle(int drive);
int game_steering(int drive);
/* Angle per tick; negative turns left. */
int32_t game_turret_rate(int turret);
/* The middle of a guarded sector, clockwise from the hull's heading. */
int32_t game_guard_angle(int guard);

enum {
    GAME_SIDE = 65536,
    GAME_TICKS = 256,
    GAME_FULL = 1000,
    TANK_RADIUS = 1024,
    TANK_SPEED = 560, /* the top speed of the highest gear, a tick */
    SHELL_SPEED = 2048,
    SHELL_LIFE = 32,
    SHELLS = 8, /* in flight, of one tank: a shell's life over the fastest reload */
    MINES = 3,
    ROCKS = 6,
    DEPOTS = 2,
    AMMO = 24,
    SMOKES = 3,
    BURST_RANGE = 18000,
    MINE_RADIUS = 2400,
    DEPOT_RADIUS = 3000,
    PRESENCE = 6 * TANK_RADIUS, /* nothing hides a tank that is nearer */
    HEARING = 8,                /* a hidden tank's noise gives its place away this often */
    RELOAD = 8,
    TRACKS_MAX = 24,
    OVERLOAD = 24,
    CALM = 16,
    SMOKE = 12,
    SMOKE_WAIT = 40,
    MINE_WAIT = 30,
    DEPOT_WAIT = 60,
};

/* What a player knows of the other tank: as it was when it was last in sight. */
typedef struct game_contact {
    int32_t x, y, vx, vy;
    int32_t heading, turret;
    int32_t health, energy, heat, reload, shield, tracks;
    bool on_guard; /* it guards the sector that this player is in */
    int32_t age;   /* ticks since then; 0: in sight now */
} game_contact;

typedef struct game_tank {
    int32_t x, y;
    int32_t heading, turret; /* both against the world */
    int32_t speed;           /* negative: backwards */
    int32_t health, energy, heat, ammo, smokes, mines;
    int32_t gear, guard, shield;
    int32_t reload;     /* until the gun may fire a shell */
    int32_t recoil;     /* until the turret turns fast again */
    int32_t tracks;     /* until broken tracks are mended */
    int32_t overload;   /* until the shield works again */
    int32_t calm;       /* until the crew dares to repair */
    int32_t smoke;      /* of being hidden */
    int32_t smoke_wait; /* until the next smoke, the next mine */
    int32_t mine_wait;
    uint16_t last[GAME_HEADS]; /* the actions of the last tick */
    game_contact contact;
} game_tank;

typedef struct game_shell {
    int32_t x, y, vx, vy;
    int32_t life; /* 0: none */
} game_shell;

typedef struct game_mine {
    int32_t x, y;
    bool armed;
} game_mine;

typedef struct game_rock {
    int32_t x, y, radius;
} game_rock;

typedef struct game_depot {
    int32_t x, y;
    int32_t wait; /* until it has supplies again */
} game_depot;

typedef struct game_state {
    game_tank tank[2];
    game_shell shell[2][SHELLS]; /* [who fired] */
    game_mine mine[2][MINES];    /* [who laid] */
    game_rock rock[ROCKS];
    game_depot depot[DEPOTS];
    int32_t tick;
    int32_t first_hit[2]; /* the tick in which the seat was first hit, GAME_TICKS: never */
    int32_t damage[2];    /* of the present tick, not applied yet */
    fixed_random random;
} game_state;

/* A new duel, all of it decided by the seed. */
void game_start(game_state *game, uint64_t seed);

/* Which actions the seat may take now: non-zero = legal, heads in order. No head is ever without.
 */
void game_legal(const game_state *game, int seat, uint8_t legal[GAME_ACTIONS]);

/* Whether all of a seat's actions are legal now. */
bool game_allows(const game_state *game, int seat, const uint16_t actions[GAME_HEADS]);

/* Play one tick: both seats' actions, GAME_HEADS each, which must be legal. */
void game_step(game_state *game, const uint16_t *actions0, const uint16_t *actions1);

bool game_over(const game_state *game);
/* 0 or 1, or -1 when nothing tells the players apart. */
int game_winner(const game_state *game);

/* Lengths a tick, rounded towards zero. */
void game_velocity(const game_tank *tank, int32_t *vx, int32_t *vy);

/* The free way from (x, y) along `angle` to a wall or rock. */
int32_t game_clearance(const game_state *game, int32_t x, int32_t y, int32_t angle);

#endif

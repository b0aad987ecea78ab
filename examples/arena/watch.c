/* watch - a duel drawn with characters: frame after frame in a terminal, else a few frames as plain
 * text. */
#include "arguments.h"
#include "commands.h"
#include "player.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 32, ROWS_LEAST = 12, ROWS_BELOW = 9, FRAME_MS = 70, PLAIN_EVERY = 16 };

/* What stands in a cell; the eight ways a hull can look come last. */
typedef enum watch_glyph {
    GLYPH_FLOOR,
    GLYPH_ROCK,
    GLYPH_DEPOT,
    GLYPH_MINE,
    GLYPH_SHELL,
    GLYPH_GUN,
    GLYPH_SMOKE,
    GLYPH_HULL,
    GLYPHS = GLYPH_HULL + 8,
} watch_glyph;

static const char *const ascii[GLYPHS] = {" ",  "#", "o", "x", "*",  ".", "%", ">",
                                          "\\", "v", "/", "<", "\\", "^", "/"};
static const char *const unicode[GLYPHS] = {" ", "▒", "◇", "×", "•", "·", "░", "→",
                                            "↘", "↓", "↙", "←", "↖", "↑", "↗"};
static const char *const seat_colour[2] = {"\033[1;36m", "\033[1;33m"};

typedef struct watch_cell {
    watch_glyph glyph;
    const char *colour; /* NULL: the terminal's own */
} watch_cell;

typedef struct watch_screen {
    bool animates, colours;
    const char *const *glyphs;
    const char *name[2]; /* of the players */
    int rows, columns;   /* of the map; a cell is twice as high as wide */
    watch_cell cell[ROWS][2 * ROWS];
} watch_screen;

/* ----------------------------------------------------------------- the map */

static void draw(watch_screen *screen, int64_t x, int64_t y, watch_glyph glyph,
                 const char *colour) {
    int64_t column = x * screen->columns / GAME_SIDE, row = y * screen->rows / GAME_SIDE;
    if (x >= 0 && y >= 0 && column < screen->columns && row < screen->rows)
        screen->cell[row][column] = (watch_cell){glyph, colour};
}

static void draw_rocks(watch_screen *screen, const game_state *game) {
    for (int row = 0; row < screen->rows; row++)
        for (int column = 0; column < screen->columns; column++) {
            int32_t x = (2 * column + 1) * GAME_SIDE / screen->columns / 2;
            int32_t y = (2 * row + 1) * GAME_SIDE / screen->rows / 2;
            for (int i = 0; i < ROCKS; i++)
                if (fixed_length(x - game->rock[i].x, y - game->rock[i].y) < game->rock[i].radius)
                    draw(screen, x, y, GLYPH_ROCK, NULL);
        }
}

static void draw_seat(watch_screen *screen, const game_state *game, int seat) {
    for (int i = 0; i < MINES; i++)
        if (game->mine[seat][i].armed)
            draw(screen, game->mine[seat][i].x, game->mine[seat][i].y, GLYPH_MINE,
                 seat_colour[seat]);
    for (int i = 0; i < SHELLS; i++)
        if (game->shell[seat][i].life > 0)
            draw(screen, game->shell[seat][i].x, game->shell[seat][i].y, GLYPH_SHELL,
                 seat_colour[seat]);
}

static void draw_tank(watch_screen *screen, const game_tank *tank, const char *colour) {
    for (int32_t way = 2 * TANK_RADIUS; way <= 3 * TANK_RADIUS; way += TANK_RADIUS)
        draw(screen, tank->x + (int64_t)way * fixed_cos(tank->turret) / FIXED_ONE,
             tank->y + (int64_t)way * fixed_sin(tank->turret) / FIXED_ONE, GLYPH_GUN, colour);
    int look = fixed_wrap(tank->heading + FIXED_TURN / 16) * 8 / FIXED_TURN;
    for (int32_t side = -TANK_RADIUS; tank->smoke > 0 && side <= TANK_RADIUS; side += TANK_RADIUS)
        draw(screen, tank->x + side, tank->y, GLYPH_SMOKE, colour);
    draw(screen, tank->x, tank->y, (watch_glyph)(GLYPH_HULL + look), colour);
}

static void draw_all(watch_screen *screen, const game_state *game) {
    memset(screen->cell, 0, sizeof screen->cell);
    draw_rocks(screen, game);
    for (int i = 0; i < DEPOTS; i++)
        if (game->depot[i].wait == 0)
            draw(screen, game->depot[i].x, game->depot[i].y, GLYPH_DEPOT, "\033[32m");
    for (int seat = 0; seat < 2; seat++)
        draw_seat(screen, game, seat);
    for (int seat = 0; seat < 2; seat++)
        draw_tank(screen, &game->tank[seat], seat_colour[seat]);
}

/* --------------------------------------------------------------- the frame */

static void show_border(const watch_screen *screen) {
    putchar('+');
    for (int column = 0; column < screen->columns; column++)
        putchar('-');
    puts("+");
}

static void show_map(const watch_screen *screen) {
    show_border(screen);
    for (int row = 0; row < screen->rows; row++) {
        putchar('|');
        for (int column = 0; column < screen->columns; column++) {
            const watch_cell *cell = &screen->cell[row][column];
            bool colours = screen->colours && cell->colour != NULL;
            printf("%s%s%s", colours ? cell->colour : "", screen->glyphs[cell->glyph],
                   colours ? "\033[0m" : "");
        }
        puts("|");
    }
    show_border(screen);
}

static int tenths(int32_t meter) {
    return fixed_clamp(meter + 99, 0, GAME_FULL) / (GAME_FULL / 10);
}

static const char *action_name(const game_tank *tank, game_head head) {
    return senses_schema()->head[head].action_names[tank->last[head]];
}

static void show_seat(const watch_screen *screen, const game_state *game, int seat) {
    static const char full[] = "==========", empty[] = "..........";
    const game_tank *tank = &game->tank[seat];
    int health = tenths(tank->health), energy = tenths(tank->energy);
    printf("%s%-8s%s health [%.*s%.*s] energy [%.*s%.*s] heat %3d%% ammo %2d\n",
           screen->colours ? seat_colour[seat] : "", screen->name[seat],
           screen->colours ? "\033[0m" : "", health, full, 10 - health, empty, energy, full,
           10 - energy, empty, tank->heat / 10, tank->ammo);
    printf("         %-11s %-8s %-5s gear %-5s guard %-3s shield %-4s %-6s\n",
           action_name(tank, HEAD_DRIVE), action_name(tank, HEAD_TURRET),
           action_name(tank, HEAD_GUN), action_name(tank, HEAD_GEAR), action_name(tank, HEAD_GUARD),
           action_name(tank, HEAD_SHIELD), action_name(tank, HEAD_CREW));
}

static void show(watch_screen *screen, const game_state *game) {
    draw_all(screen, game);
    if (screen->animates)
        fputs("\033[H", stdout);
    show_map(screen);
    for (int seat = 0; seat < 2; seat++)
        show_seat(screen, game, seat);
    printf("tick %d of %d\n", game->tick, GAME_TICKS);
    if (!screen->animates)
        return;
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_nsec = FRAME_MS * 1000000L}, NULL);
}

/* ------------------------------------------------------------- the command */

/* As high as the terminal has room for. */
static int map_rows(void) {
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return ROWS;
    return fixed_clamp(size.ws_row - ROWS_BELOW, ROWS_LEAST, ROWS);
}

static void prepare(watch_screen *screen) {
    screen->rows = map_rows();
    screen->columns = 2 * screen->rows;
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    screen->animates = isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    screen->colours = screen->animates && (no_colour == NULL || no_colour[0] == 0);
    screen->glyphs =
        screen->animates && strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? unicode : ascii;
    if (screen->animates)
        fputs("\033[2J", stdout);
}

static int show_duel(watch_screen *screen, player_state players[2], uint64_t seed) {
    game_state game;
    player_start(&game, players, seed);
    while (!game_over(&game)) {
        player_turn turns[2];
        if (screen->animates || game.tick % PLAIN_EVERY == 0)
            show(screen, &game);
        if (player_tick(&game, players, turns) != MIMUS_OK)
            return complain_mimus("watch");
    }
    show(screen, &game);
    int winner = game_winner(&game);
    if (winner < 0)
        puts("nobody won");
    else
        printf("%s won\n", screen->name[winner]);
    return finish("watch", EXIT_DONE);
}

static int run(const char *path, uint64_t seed, bool sample) {
    mimus_policy *policy = NULL;
    mimus_agent *agent = NULL;
    watch_screen screen = {.name = {"expert 1", "expert 2"}};
    player_state players[2] = {{.kind = PLAYER_EXPERT}, {.kind = PLAYER_EXPERT}};
    int code = EXIT_FAILED;
    if (path != NULL) {
        if (!player_load(&policy, path, "watch"))
            goto out;
        if (mimus_agent_new(&agent, policy, seed) != MIMUS_OK) {
            complain_mimus("watch");
            goto out;
        }
        players[0] = (player_state){.kind = PLAYER_POLICY, .agent = agent, .sample = sample};
        screen.name[0] = "policy";
        screen.name[1] = "expert";
    }
    prepare(&screen);
    code = show_duel(&screen, players, seed);
out:
    mimus_agent_free(agent);
    mimus_policy_free(policy);
    return code;
}

int command_watch(int argc, char **argv) {
    const char *policy = NULL;
    uint64_t seed = 1;
    bool sample = false;
    const argument options[] = {
        {.name = "policy",
         .letter = 'p',
         .value = "RUN",
         .help = "a run folder or a checkpoint",
         .text = &policy},
        {.name = "seed", .value = "N", .help = "what decides all chance (1)", .number = &seed},
        {.name = "sample", .help = "draw actions from the policy's probabilities", .flag = &sample},
    };
    const argument_page page = {
        .verb = "watch",
        .about =
            "Show a duel of a policy, or of the expert, with the expert. Animated in a terminal,\n"
            "else every 16th tick as plain text.\n",
        .option = options,
        .options = sizeof options / sizeof *options,
    };
    int code;
    if (!arguments_parse(&page, argc, argv, &code))
        return code;
    return run(policy, seed, sample);
}

/* make-rec OUT.rec SAMPLES [hostile]: a recording of simple play that can be learned, through the
 * public interface: 6 senses, the heads "move" (5 actions, one of them forbidden now and then) and
 * "shoot" (2), episodes of 50 samples. "hostile": with names that would reach for a terminal. */
#include "mimus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENSES = 6, MOVES = 5, SHOTS = 2, EPISODE = 50 };

static const char *const senses[SENSES] = {"x", "y", "speed", "angle", "enemy", "ammo"};
static const char *const moves[MOVES] = {"stay", "left", "right", "up", "down"};
static const char *const shots[SHOTS] = {"hold", "fire"};
static const mimus_head heads[] = {{.name = "move", .actions = MOVES, .action_names = moves},
                                   {.name = "shoot", .actions = SHOTS, .action_names = shots}};
static const mimus_schema schema = {
    .senses = SENSES, .sense_names = senses, .heads = 2, .head = heads, .masks = true};

/* Escape sequences with the one-byte and the two-byte introducer, a bell, a line of its own. */
static const char *const bad_senses[SENSES] = {"x\033[2J", "y\302\23331m", "a\rb",
                                               "a\nb",     "\a",           "\x7f"};
static const char *const bad_moves[MOVES] = {"\033]0;title\a", "left\n", "\302\2332J", "up\b",
                                             "\t"};
static const mimus_head bad_heads[] = {
    {.name = "move\033[31m", .actions = MOVES, .action_names = bad_moves},
    {.name = "sh\302\2331moot\n", .actions = SHOTS, .action_names = shots}};
static const mimus_schema bad_schema = {
    .senses = SENSES, .sense_names = bad_senses, .heads = 2, .head = bad_heads, .masks = true};

/* In [-1, 1), the same on every machine. */
static float noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static uint16_t best_move(const float *sensed, const uint8_t *legal) {
    uint16_t best = 0;
    float most = -INFINITY;
    for (uint16_t a = 0; a < MOVES; a++) {
        if (legal[a] != 0 && sensed[a] > most) {
            most = sensed[a];
            best = a;
        }
    }
    return best;
}

static mimus_status play(mimus_recorder *recorder, unsigned long samples) {
    mimus_status status = MIMUS_OK;
    uint32_t state = 1;
    for (unsigned long i = 0; i < samples && status == MIMUS_OK; i++) {
        float sensed[SENSES];
        uint8_t legal[MOVES + SHOTS] = {1, 1, 1, 1, 1, 1, 1};
        for (int s = 0; s < SENSES; s++)
            sensed[s] = noise(&state);
        legal[i % MOVES] = i % 3 != 0;
        uint16_t actions[] = {best_move(sensed, legal), sensed[5] > 0.25f};
        if (i % 17 == 0)
            actions[1] = MIMUS_NO_LABEL;
        status = mimus_recorder_append(recorder, sensed, actions, legal, 1);
        if (status == MIMUS_OK && i % EPISODE == EPISODE - 1)
            status = mimus_recorder_end_episode(recorder);
    }
    return status;
}

int main(int argc, char **argv) {
    mimus_recorder *recorder = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: make-rec OUT.rec SAMPLES [hostile]\n");
        return 2;
    }
    mimus_status status = mimus_recorder_open(&recorder, argv[1], argc > 3 ? &bad_schema : &schema,
                                              MIMUS_RECORDER_CREATE);
    if (status == MIMUS_OK) {
        status = play(recorder, strtoul(argv[2], NULL, 10));
        mimus_status closed = mimus_recorder_close(recorder);
        status = status != MIMUS_OK ? status : closed;
    }
    if (status != MIMUS_OK)
        fprintf(stderr, "make-rec: %s\n", mimus_last_error());
    return status != MIMUS_OK;
}

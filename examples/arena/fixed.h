/* fixed - the arena's arithmetic: whole numbers only, so that a seed plays the same game on every
 * machine, compiler and optimisation level.
 *
 * An angle is FIXED_TURN to the turn, 0 to the east, growing clockwise (y points down). A fraction
 * such as a sine is FIXED_ONE to the whole. */
#ifndef ARENA_FIXED_H
#define ARENA_FIXED_H

#include <stdint.h>

enum { FIXED_TURN = 4096, FIXED_ONE = 4096 };

int32_t fixed_clamp(int64_t value, int32_t low, int32_t high);
int32_t fixed_abs(int32_t value);

/* Bring any angle into [0, FIXED_TURN), or into [-FIXED_TURN/2, FIXED_TURN/2). */
int32_t fixed_wrap(int32_t angle);
int32_t fixed_wrap_signed(int32_t angle);

/* To within 3 of FIXED_ONE's 4096. */
int32_t fixed_sin(int32_t angle);
int32_t fixed_cos(int32_t angle);

/* The direction of (x, y), in [0, FIXED_TURN), to within 2; 0 for the zero vector. */
int32_t fixed_angle(int64_t x, int64_t y);

/* The square root, rounded down. */
int32_t fixed_sqrt(int64_t value);
int32_t fixed_length(int64_t x, int64_t y);

/* A vector of the world in the frame of something that looks along `heading`. */
typedef struct fixed_local {
    int32_t ahead, right;
} fixed_local;
fixed_local fixed_to_local(int32_t x, int32_t y, int32_t heading);

/* SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
 * figure 16. */
typedef struct fixed_random {
    uint64_t state;
} fixed_random;

/* An independent stream for each (seed, stream). */
fixed_random fixed_random_start(uint64_t seed, uint64_t stream);
uint32_t fixed_random_next(fixed_random *random);
/* Uniform in [0, bound), to within bound / 2^32; bound > 0. */
uint32_t fixed_random_below(fixed_random *random, uint32_t bound);
/* Uniform in [low, high]. */
int32_t fixed_random_between(fixed_random *random, int32_t low, int32_t high);

#endif

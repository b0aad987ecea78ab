#include "fixed.h"

#include <math.h>

int32_t fixed_clamp(int64_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : (int32_t)value;
}

int32_t fixed_abs(int32_t value) {
    return value < 0 ? -value : value;
}

int32_t fixed_wrap(int32_t angle) {
    int32_t rest = angle % FIXED_TURN;
    return rest < 0 ? rest + FIXED_TURN : rest;
}

int32_t fixed_wrap_signed(int32_t angle) {
    return fixed_wrap(angle + FIXED_TURN / 2) - FIXED_TURN / 2;
}

/* The quarter wave z/2 (pi - z^2 (2 pi - 5 - z^2 (pi - 3))), which meets the sine in value and
 * slope at both ends; z = quarter / 1024, the coefficients are times 2^14. */
static int32_t quarter_sine(int32_t quarter) {
    int64_t z = (int64_t)quarter * 16;
    int64_t square = z * z / 16384;
    int64_t inner = 21026 - square * 2320 / 16384;
    int64_t outer = 51472 - square * inner / 16384;
    return (int32_t)((z * outer / 16384 + 4) / 8);
}

int32_t fixed_sin(int32_t angle) {
    int32_t wrapped = fixed_wrap(angle);
    int32_t half = wrapped % (FIXED_TURN / 2);
    int32_t quarter = half <= FIXED_TURN / 4 ? half : FIXED_TURN / 2 - half;
    int32_t sine = quarter_sine(quarter);
    return wrapped < FIXED_TURN / 2 ? sine : -sine;
}

int32_t fixed_cos(int32_t angle) {
    return fixed_sin(angle + FIXED_TURN / 4);
}

/* atan(z) = pi/4 z + z (1 - z) (0.2447 + 0.0663 z) for z = low / high in [0, 1]: Rajan et al.,
 * "Efficient approximations for the arctangent function", IEEE SPM 23(3), 2006, eq. 9. Here z is
 * times 2^14, and the bracket is in hundredths of an angle unit. */
static int32_t octant_angle(int64_t low, int64_t high) {
    if (high == 0)
        return 0;
    int64_t z = low * 16384 / high;
    int64_t bend = z * (16384 - z) / 16384;
    int64_t bracket = 15952 + 4322 * z / 16384;
    return (int32_t)((z * (FIXED_TURN / 8) + bend * bracket / 100 + 8192) / 16384);
}

int32_t fixed_angle(int64_t x, int64_t y) {
    int64_t across = x < 0 ? -x : x, down = y < 0 ? -y : y;
    int32_t angle =
        across >= down ? octant_angle(down, across) : FIXED_TURN / 4 - octant_angle(across, down);
    if (x < 0)
        angle = FIXED_TURN / 2 - angle;
    return fixed_wrap(y < 0 ? -angle : angle);
}

int32_t fixed_sqrt(int64_t value) {
    if (value <= 0)
        return 0;
    int64_t root = (int64_t)sqrt((double)value); /* a first guess: the loops make it exact */
    while (root * root > value)
        root--;
    while ((root + 1) * (root + 1) <= value)
        root++;
    return (int32_t)root;
}

int32_t fixed_length(int64_t x, int64_t y) {
    return fixed_sqrt(x * x + y * y);
}

fixed_local fixed_to_local(int32_t x, int32_t y, int32_t heading) {
    int64_t cosine = fixed_cos(heading), sine = fixed_sin(heading);
    return (fixed_local){
        .ahead = (int32_t)((x * cosine + y * sine) / FIXED_ONE),
        .right = (int32_t)((y * cosine - x * sine) / FIXED_ONE),
    };
}

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

fixed_random fixed_random_start(uint64_t seed, uint64_t stream) {
    return (fixed_random){mix(mix(seed + 0x9E3779B97F4A7C15u) + stream)};
}

uint32_t fixed_random_next(fixed_random *random) {
    random->state += 0x9E3779B97F4A7C15u;
    return (uint32_t)(mix(random->state) >> 32);
}

uint32_t fixed_random_below(fixed_random *random, uint32_t bound) {
    return (uint32_t)((uint64_t)fixed_random_next(random) * bound >> 32);
}

int32_t fixed_random_between(fixed_random *random, int32_t low, int32_t high) {
    return low + (int32_t)fixed_random_below(random, (uint32_t)(high - low + 1));
}

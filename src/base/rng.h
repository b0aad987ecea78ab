/* rng - counter-based random numbers: the same (key, counter) gives the same bits everywhere.
 *
 * Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011, section 4. cl/philox.clh holds the same function for the device. */
#ifndef MIMUS_BASE_RNG_H
#define MIMUS_BASE_RNG_H

#include <stdint.h>

typedef struct mimus__philox {
    uint32_t word[4];
} mimus__philox;

mimus__philox mimus__philox4x32(mimus__philox counter, uint32_t key0, uint32_t key1);

/* A stream of numbers over Philox blocks: (seed, stream) name it, `index` counts words. */
typedef struct mimus__rng {
    uint64_t seed;
    uint64_t stream;
    uint64_t index;
} mimus__rng;

uint32_t mimus__rng_u32(mimus__rng *rng);
/* Uniform in [0, 1), 53 bits. */
double mimus__rng_uniform(mimus__rng *rng);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t mimus__rng_below(mimus__rng *rng, uint64_t bound);

#endif

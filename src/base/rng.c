#include "rng.h"

#include <assert.h>

mimus__philox mimus__philox4x32(mimus__philox c, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c.word[2];
        c = (mimus__philox){{(uint32_t)(p1 >> 32) ^ c.word[1] ^ key0, (uint32_t)p1,
                             (uint32_t)(p0 >> 32) ^ c.word[3] ^ key1, (uint32_t)p0}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

uint32_t mimus__rng_u32(mimus__rng *rng) {
    uint64_t block = rng->index / 4;
    mimus__philox counter = {{(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)rng->stream,
                              (uint32_t)(rng->stream >> 32)}};
    mimus__philox words =
        mimus__philox4x32(counter, (uint32_t)rng->seed, (uint32_t)(rng->seed >> 32));
    return words.word[rng->index++ % 4];
}

static uint64_t next_u64(mimus__rng *rng) {
    uint64_t high = mimus__rng_u32(rng);
    return high << 32 | mimus__rng_u32(rng);
}

double mimus__rng_uniform(mimus__rng *rng) {
    return (double)(next_u64(rng) >> 11) * 0x1p-53;
}

uint64_t mimus__rng_below(mimus__rng *rng, uint64_t bound) {
    assert(bound > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound; /* a multiple of bound: no bias below it */
    uint64_t value;
    do
        value = next_u64(rng);
    while (value >= limit);
    return value % bound;
}

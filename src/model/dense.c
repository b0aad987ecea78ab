/* dense - the same few lines for each width of vectors that a processor may have. CMake compiles
 * this file without the contraction of products and sums, which would round differently from one
 * machine to the next. */
#include "dense.h"

#include <stdbool.h>
#include <string.h>

#define DENSE_UNROLL _Pragma("GCC unroll 16")

#define DENSE(name) dense_narrow_##name
#define DENSE_BYTES 16
#define DENSE_TARGET
#define DENSE_ROWS 2
#include "dense.inc"

#if defined(__x86_64__)
#define DENSE(name) dense_avx2_##name
#define DENSE_BYTES 32
#define DENSE_TARGET __attribute__((target("avx2")))
#define DENSE_ROWS 4
#include "dense.inc"
#endif

mimus__dense *mimus__dense_at(size_t index) {
    mimus__dense *const all[] = {
        dense_narrow_layer,
#if defined(__x86_64__)
        __builtin_cpu_supports("avx2") ? dense_avx2_layer : NULL,
#endif
    };
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

mimus__dense *mimus__dense_best(void) {
    mimus__dense *best = mimus__dense_at(0);
    for (size_t i = 1; mimus__dense_at(i) != NULL; i++)
        best = mimus__dense_at(i);
    return best;
}

size_t mimus__dense_panels(uint32_t outputs) {
    return ((size_t)outputs + MIMUS__DENSE_PANEL - 1) / MIMUS__DENSE_PANEL;
}

size_t mimus__dense_size(uint32_t inputs, uint32_t outputs) {
    return ((size_t)inputs + 1) * mimus__dense_panels(outputs) * MIMUS__DENSE_PANEL;
}

void mimus__dense_pack(float *panels, const float *weight, const float *bias, uint32_t inputs,
                       uint32_t outputs) {
    memset(panels, 0, mimus__dense_size(inputs, outputs) * sizeof *panels);
    for (uint32_t first = 0; first < outputs; first += MIMUS__DENSE_PANEL) {
        uint32_t width =
            outputs - first < MIMUS__DENSE_PANEL ? outputs - first : MIMUS__DENSE_PANEL;
        memcpy(panels, bias + first, width * sizeof *panels);
        panels += MIMUS__DENSE_PANEL;
        for (size_t i = 0; i < inputs; i++, panels += MIMUS__DENSE_PANEL)
            memcpy(panels, weight + i * outputs + first, width * sizeof *panels);
    }
}

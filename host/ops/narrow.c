#include "narrow.h"

#include <string.h>

/* Conversions without a branch, so that compilers vectorise the loops. */

enum { SIGN_SHIFT = 16, MANTISSA_SHIFT = 13 /* 23 bits to 10 */ };

#define INFINITE 0x7F800000u
#define LARGEST_F16 0x477FE000u     /* 65504 as a float */
#define LEAST_NORMAL 0x38800000u    /* 2^-14, f16's smallest normal number */
#define LARGEST_BF16 0x7F7F0000u    /* as a float */
#define REBIAS ((127u - 15u) << 23) /* between the exponents */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The rounding of what becomes a subnormal number is left to an addition: beside 0.5, a float's
 * last bit is worth 2^-24, which is f16's smallest number. */
static uint16_t f16_of(float value) {
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFFu;
    uint32_t sign = bits >> SIGN_SHIFT & 0x8000u;
    uint32_t finite = least(magnitude, LARGEST_F16);
    uint32_t odd = finite >> MANTISSA_SHIFT & 1u;
    uint32_t normal = (finite - REBIAS + 0xFFFu + odd) >> MANTISSA_SHIFT;
    uint32_t tiny = bits_of(float_of(finite) + 0.5f) - bits_of(0.5f);
    uint32_t half = finite < LEAST_NORMAL ? tiny : normal;
    uint32_t special = magnitude > INFINITE ? 0x7E00u : 0x7C00u;
    return (uint16_t)(sign | (magnitude < INFINITE ? half : special));
}

static uint16_t bf16_of(float value) {
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFFu;
    uint32_t sign = bits >> SIGN_SHIFT & 0x8000u;
    uint32_t finite = least(magnitude, LARGEST_BF16);
    uint32_t rounded = (finite + 0x7FFFu + (finite >> 16 & 1u)) >> 16;
    uint32_t special = magnitude > INFINITE ? 0x7FC0u : 0x7F80u;
    return (uint16_t)(sign | (magnitude < INFINITE ? rounded : special));
}

void mimus__narrow_f16(uint16_t *restrict out, const float *restrict value,
                       const float *restrict mean, const float *restrict scale, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = f16_of((value[i] - mean[i]) * scale[i]);
}

void mimus__narrow_bf16(uint16_t *restrict out, const float *restrict value,
                        const float *restrict mean, const float *restrict scale, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = bf16_of((value[i] - mean[i]) * scale[i]);
}

/* narrow - normalised senses in 16 bits, for stores that keep them so. */
#ifndef MIMUS_HOST_NARROW_H
#define MIMUS_HOST_NARROW_H

#include <stddef.h>
#include <stdint.h>

/* out[i] = (value[i] - mean[i]) * scale[i] as IEEE 754 binary16 or as bfloat16 (the upper half of a
 * float), rounded to nearest even. What is finite stays finite: beyond the form's largest number
 * (65504 of f16) it becomes that. What is not finite stays that too. Arrays (count) do not overlap.
 */
void mimus__narrow_f16(uint16_t *restrict out, const float *restrict value,
                       const float *restrict mean, const float *restrict scale, size_t count);
void mimus__narrow_bf16(uint16_t *restrict out, const float *restrict value,
                        const float *restrict mean, const float *restrict scale, size_t count);

#endif

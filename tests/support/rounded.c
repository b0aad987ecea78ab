#include "rounded.h"

#include <math.h>

/* Digits, the exponents of the smallest number and of the first power of two that is too large. */
typedef struct number_form {
    int digits, least, beyond;
} number_form;

static number_form form_of(mimus__store_form form) {
    return form == MIMUS__STORE_F16 ? (number_form){11, -24, 16} : (number_form){8, -133, 128};
}

double rounded_to(mimus__store_form form, double value) {
    int exponent;
    if (form == MIMUS__STORE_F32 || !isfinite(value))
        return value;
    number_form f = form_of(form);
    frexp(value, &exponent);
    int unit = exponent - f.digits > f.least ? exponent - f.digits : f.least;
    double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
    double largest = ldexp(ldexp(1, f.digits) - 1, f.beyond - f.digits);
    return fabs(rounded) > largest ? copysign(largest, value) : rounded;
}

double rounded_read(mimus__store_form form, uint16_t bits) {
    number_form f = form_of(form);
    int stored = f.digits - 1, exponent = (bits & 0x7FFF) >> stored;
    int mantissa = bits & ((1 << stored) - 1), highest = (0x7FFF >> stored);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == highest)
        return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, f.least);
    return sign * ldexp(mantissa + (1 << stored), f.least + exponent - 1);
}

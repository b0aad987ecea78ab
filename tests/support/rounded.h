/* rounded - numbers as a store in 16 bits keeps them, in double precision. */
#ifndef MIMUS_TEST_ROUNDED_H
#define MIMUS_TEST_ROUNDED_H

#include "config.h"

/* `value` rounded to the nearest number of the form, to an even one from the middle between two;
 * finite numbers beyond the largest become that. f32 leaves floats as they are. */
double rounded_to(mimus__store_form form, double value);

/* The number whose bits in a 16-bit form these are. */
double rounded_read(mimus__store_form form, uint16_t bits);

#endif

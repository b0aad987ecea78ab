/* human - numbers and bars as people read them. */
#ifndef MIMUS_CLI_HUMAN_H
#define MIMUS_CLI_HUMAN_H

#include <stddef.h>
#include <stdint.h>

/* A short text by value, so that several stand in one printf. */
typedef struct human {
    char text[32];
} human;

human human_count(double value);   /* 2,490,000 */
human human_short(double value);   /* 2.49M */
human human_bytes(double value);   /* 1.5 GiB */
human human_share(double value);   /* 45.1% of 0.451 */
human human_seconds(double value); /* 0.82 s, 4:05, 1:02:03 */
human human_figure(double value);  /* four significant digits: 0.4512, 1.5e+08 */
human human_real(double value);    /* four significant digits and more: 1.2345, 1e-05 */
/* 2,490 samples, 1 sample; a noun of at most 14 letters, below 1e11 of them. */
human human_things(double value, const char *noun);

/* "-" stands for NaN in all of them. */

/* The cells that a text takes on a terminal. */
size_t human_width(const char *text);

/* Copy `text` in at most `cells` cells, the last one '~' (or an ellipsis) where it was cut;
 * control characters are escaped ("\n", "\x1b"), and what cannot be shown becomes '?'. `bytes` of
 * room for `out`, 4 a cell and 4 more are enough. */
void human_fit(char *out, size_t bytes, const char *text, size_t cells);

/* The same in memory of its own, to be freed with free(); SIZE_MAX cells: never cut. */
char *human_text(const char *text, size_t cells);

/* A bar of `share` (0 to 1) of `cells` cells, without what is empty: eighths of blocks where the
 * locale is UTF-8, '#' elsewhere. */
void human_bar(char *out, size_t bytes, double share, size_t cells);

/* Whether the locale's characters are UTF-8. */
int human_utf8(void);

#endif

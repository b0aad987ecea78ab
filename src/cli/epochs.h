/* epochs - the rows that training reports, as lines of a table or by themselves. */
#ifndef MIMUS_CLI_EPOCHS_H
#define MIMUS_CLI_EPOCHS_H

#include <jansson.h>
#include <stdint.h>

/* A line of its own: "epoch 3/12  loss 0.7312  held-out 0.7404  agreement 71.2% (...)". `epochs`
 * is the number in all, 0 when not known. Free with free(). */
char *epochs_line(const json_t *row, uint32_t epochs);

/* A row of the table, fit for `columns` cells; free with free(). */
char *epochs_row(const json_t *row, size_t columns);

/* The lines above the first row; free with free(). */
char *epochs_heading(const json_t *row, size_t columns);

#endif

/* confusion - a matrix of what the player did and what the policy would have done. */
#ifndef MIMUS_CLI_CONFUSION_H
#define MIMUS_CLI_CONFUSION_H

#include <jansson.h>

/* Print a head's matrix, counts (true, chosen), as percentages of its rows, fit for `columns`
 * cells: of a wide head the actions that are most frequent, and a note that says so. `names` is
 * an array of the actions' names, or anything else: they are numbered. */
void confusion_print(const json_t *matrix, const json_t *names, size_t columns);

#endif

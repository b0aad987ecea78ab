/* selection - which columns of a table a text means: "health,3,0:64,ray_*,-1". */
#ifndef MIMUS_DATA_SELECTION_H
#define MIMUS_DATA_SELECTION_H

#include "status.h"

/* The columns that there are. */
typedef struct mimus__table_columns {
    const char *where;        /* begins every message */
    const char *const *names; /* (count), or NULL */
    uint32_t count;
} mimus__table_columns;

/* What was chosen, in the order of the text; a column may be there twice. */
typedef struct mimus__selection {
    uint32_t *column; /* (count) */
    uint32_t count;
    size_t capacity;
} mimus__selection;

/* Parse parts with commas between them, and add what they mean:
 *
 *   health    the column of that name
 *   ray_*     every column whose name begins so
 *   3, -1     by position, from 0; negative from the end
 *   0:64      positions from the first up to below the second; either may be left out
 *
 * MIMUS_ERR_ARGUMENT for what there is not, which lists what there is. Clear it either way. */
mimus_status mimus__selection_parse(mimus__selection *out, const mimus__table_columns *columns,
                                    const char *option, const char *text);
mimus_status mimus__selection_add(mimus__selection *selection, uint32_t column);
void mimus__selection_clear(mimus__selection *selection);

/* What there is, cut to fit: "x, y, vx and 5 more", or "0 to 63". Returns `text`. */
const char *mimus__table_columns_text(const mimus__table_columns *columns, char *text,
                                      size_t bytes);

#endif

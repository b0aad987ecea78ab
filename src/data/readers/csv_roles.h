/* csv_roles - what the columns of a table are for, by options, by names, or because they are left.
 */
#ifndef MIMUS_DATA_CSV_ROLES_H
#define MIMUS_DATA_CSV_ROLES_H

#include "csv_table.h"
#include "selection.h"

typedef enum mimus__csv_role {
    MIMUS__CSV_SENSES,
    MIMUS__CSV_ACTIONS,
    MIMUS__CSV_MASKS,
    MIMUS__CSV_WEIGHTS,
    MIMUS__CSV_EPISODE, /* another episode where the field changes */
    MIMUS__CSV_STARTS,
    MIMUS__CSV_DONES,
    MIMUS__CSV_ROLES,
} mimus__csv_role;

/* The columns of each role; one of senses and one of actions at least. */
typedef struct mimus__csv_roles {
    mimus__selection of[MIMUS__CSV_ROLES];
} mimus__csv_roles;

/* By the reader's options, which are called as the roles ("senses", "actions", ...). What was
 * guessed goes to the table's watch. MIMUS_ERR_ARGUMENT names the option that is wrong or missing.
 * Clear it either way. */
mimus_status mimus__csv_roles_choose(mimus__csv_roles *out, const mimus__csv_table *table,
                                     const char *const *options);
void mimus__csv_roles_clear(mimus__csv_roles *roles);

#endif

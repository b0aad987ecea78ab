/* h5_layout - where an HDF5 file keeps what: the groups that are its episodes, and which datasets
 * of each are senses, actions, masks and the rest.
 *
 *   Minari     /episode_0, /episode_1, ...: observations, actions, infos
 *   robomimic  /data/demo_0, /data/demo_1, ...: obs, actions; /mask holds lists of demos
 *   flat       one dataset each of observations, actions, terminals, timeouts, as D4RL has it
 *
 * Names say what is what; options say it of any other file. */
#ifndef MIMUS_DATA_H5_LAYOUT_H
#define MIMUS_DATA_H5_LAYOUT_H

#include "h5_file.h"

/* What a dataset is for. STARTS, EPISODES and DONES are of flat files. */
typedef enum mimus__h5_role {
    MIMUS__H5_SENSES,
    MIMUS__H5_ACTIONS,
    MIMUS__H5_MASKS,
    MIMUS__H5_WEIGHTS,
    MIMUS__H5_STARTS,
    MIMUS__H5_EPISODES,
    MIMUS__H5_DONES,
    MIMUS__H5_ROLES,
} mimus__h5_role;

/* The reader's option that names its datasets. */
const char *mimus__h5_role_key(mimus__h5_role role);

typedef struct mimus__h5_layout {
    mimus__h5_names parts; /* groups of an episode each; of a flat file "" alone */
    bool grouped;
    mimus__h5_names of[MIMUS__H5_ROLES]; /* datasets, as paths in a part: "/obs/object" */
    bool named[MIMUS__H5_ROLES];         /* by an option */
} mimus__h5_layout;

/* Find everything, as the first episode has it; senses and actions are there. Clear also after a
 * failure. */
mimus_status mimus__h5_layout_find(mimus__h5_layout *out, const mimus__h5_file *file,
                                   const char *const *options);
/* What to call a dataset of a role among the others: "object" for "/obs/object"; NULL where it is
 * the only one. Borrowed. */
const char *mimus__h5_layout_name(const mimus__h5_layout *layout, mimus__h5_role role,
                                  size_t index);
void mimus__h5_layout_clear(mimus__h5_layout *layout);

#endif

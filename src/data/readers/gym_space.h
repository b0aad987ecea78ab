/* gym_space - Gymnasium's spaces in the JSON form that Minari writes: what an action can be. */
#ifndef MIMUS_DATA_GYM_SPACE_H
#define MIMUS_DATA_GYM_SPACE_H

#include "json.h"

/* Parse JSON as Python writes it, with numbers NaN and Infinity, which JSON does not have: they are
 * lost. */
mimus_status mimus__gym_parse(json_t **out, const char *text, const char *where);

/* The space under a path of Dict keys and Tuple members: "/arm/_index_1"; "" is the space itself.
 * NULL when there is none. Borrowed. */
const json_t *mimus__gym_find(const json_t *space, const char *path);

/* How many values element `index` of a Discrete, MultiDiscrete or MultiBinary space has, and the
 * lowest of them; false for any other space, or one that does not say it as it should. */
bool mimus__gym_choice(const json_t *space, size_t index, uint32_t *actions, int64_t *start);

/* Whether Minari takes its values for images. */
bool mimus__gym_is_image(const json_t *space);

#endif

/* heads - head sizes and labels for foreign formats, which store numbers and no schema. */
#ifndef MIMUS_DATA_HEADS_H
#define MIMUS_DATA_HEADS_H

#include "schema.h"
#include "watch.h"

/* Parse "move:5,shoot:hold|fire" or "5,2": every head's actions, with or without its name; their
 * number, or their names. Free with mimus__heads_free. MIMUS_ERR_ARGUMENT says which part is
 * wrong. */
mimus_status mimus__heads_parse(mimus_head **out, uint32_t *count, const char *text);

/* Infer the sizes from `largest` (count): the largest label seen of each head, below 0 for none. A
 * head has largest + 1 actions, at least 2; a single head with masks has as many as they are wide.
 * `mask_width` is 0 without masks. MIMUS_ERR_ARGUMENT asks for the option heads when the sizes do
 * not add up to the masks' width, MIMUS_ERR_DATA when a label is too large to be one. */
mimus_status mimus__heads_infer(mimus_head **out, const int64_t *largest, uint32_t count,
                                uint64_t mask_width);

/* Copies of the heads of `like`, when it has `count` of them; else, or without it (NULL), `*out` is
 * NULL. Without the bins. */
mimus_status mimus__heads_like(mimus_head **out, const mimus_schema *like, uint32_t count);

/* MIMUS_ERR_ARGUMENT unless stated heads are as many as the columns of labels, have as many actions
 * as the masks are wide (0: no masks), and no names for actions that are bins. */
mimus_status mimus__heads_fit(const mimus_head *heads, uint32_t count, uint64_t columns,
                              uint64_t mask_width);

/* Give the head copies of these names of actions, behind which a NULL follows, and as many
 * actions. */
mimus_status mimus__heads_name_actions(mimus_head *head, const char *const *names, uint32_t count);

/* Tell the watch that these sizes are inferred, and how to state them. */
void mimus__heads_tell(const mimus_head *heads, uint32_t count, const char *path,
                       const mimus_watch *watch);

void mimus__heads_free(mimus_head *heads, uint32_t count);

/* A stored label as a sample's: -1 is MIMUS_NO_LABEL; what fits no head (other negatives, above
 * 65,533) becomes 65,534, which is out of every head's range, for the audit to find. */
uint16_t mimus__heads_label(int64_t stored);

#endif

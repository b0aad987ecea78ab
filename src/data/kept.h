/* kept - the schema that mimus leaves in a file of another format when it writes a recording there:
 * names, sizes and bins, which the format itself has no place for. */
#ifndef MIMUS_DATA_KEPT_H
#define MIMUS_DATA_KEPT_H

#include "schema.h"

/* Parse its text, which is at `where` (begins every message). */
mimus_status mimus__kept_parse(mimus_schema **out, const char *text, const char *where);

/* Whether it is still the schema of what is read from the file: that many senses, columns of
 * actions and, where there are masks (else 0), actions. `kept` may be NULL. */
bool mimus__kept_fits(const mimus_schema *kept, uint64_t senses, uint64_t columns,
                      uint64_t mask_width);

/* Whether the actions are the bins of numbers already. */
bool mimus__kept_has_bins(const mimus_schema *kept);

/* Heads of its sizes, without names: free with mimus__heads_free. */
mimus_status mimus__kept_heads(mimus_head **out, const mimus_schema *kept);

#endif

/* jsonl - a file of one JSON object a line, appended to as things happen. */
#ifndef MIMUS_REPORT_JSONL_H
#define MIMUS_REPORT_JSONL_H

#include "json.h"

/* Append `row` as one line, with one write, so that a killed process leaves whole lines but for
 * the last. Makes the file when it is missing. */
mimus_status mimus__jsonl_append(const char *path, const json_t *row);

/* Keep the leading lines whose integer member `key` is at most `limit`, dropping the rest and a
 * torn last line: where a resumed run goes on. A missing file is an empty one. */
mimus_status mimus__jsonl_trim(const char *path, const char *key, uint64_t limit);

#endif

/* compare - the document of mimus_compare, also for the report of several runs. */
#ifndef MIMUS_APP_COMPARE_H
#define MIMUS_APP_COMPARE_H

#include "view.h"

/* Each of `count` views held against the first one (docs/report.md). Those that were not judged
 * have no metrics. */
mimus_status mimus__compare_json(json_t **out, const mimus__view *views, size_t count);

#endif

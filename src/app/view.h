/* view - what runs have left behind, read again for people: reports and comparisons. */
#ifndef MIMUS_APP_VIEW_H
#define MIMUS_APP_VIEW_H

#include "json.h"

/* One run; members that its folder lacks are NULL. */
typedef struct mimus__view {
    const char *folder; /* the caller's */
    char *name;         /* short, unlike those of the other runs */
    json_t *config;     /* always */
    json_t *about;      /* run.json; always */
    json_t *summary;
    json_t *evaluation;
    json_t *epochs; /* array of the rows of metrics.jsonl, as far as they are whole */
} mimus__view;

/* Read `count` runs, one or more. MIMUS_ERR_IO where a folder is no run, MIMUS_ERR_FORMAT where a
 * file of it is damaged. Free `*out` with mimus__views_free. */
mimus_status mimus__views_open(mimus__view **out, const char *const *folders, size_t count);
void mimus__views_free(mimus__view *views, size_t count);

/* Whether both were trained on one recording. */
bool mimus__views_share_recording(const mimus__view *a, const mimus__view *b);

#endif

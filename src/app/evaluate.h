/* evaluate - a model judged on rows of an opened recording: its logits computed on the device, the
 * judgement in double precision on the host. */
#ifndef MIMUS_APP_EVALUATE_H
#define MIMUS_APP_EVALUATE_H

#include "dataset.h"
#include "device.h"
#include "metrics.h"

typedef struct mimus__evaluation {
    const mimus__model *model;
    const char *file;                   /* the model's, for messages */
    const mimus__model *const *members; /* (count) of one shape, the first being the model, which
                                           are judged as one: by the mean of their probabilities of
                                           the legal actions; NULL: the model alone */
    uint32_t count;
    const mimus__dataset *dataset;
    const mimus__rows *rows; /* what is judged; some samples */
    mimus__device *device;
    uint32_t confusion; /* matrices of heads of at most so many actions; 0: none */
    size_t episodes;    /* at most so many groups of them are kept (even); 0: none */
} mimus__evaluation;

/* Judge it; the device has no watch afterwards. Free `*out` with mimus__metrics_free. */
mimus_status mimus__evaluate(mimus__metrics **out, const mimus__evaluation *what,
                             const mimus_watch *watch);

/* The same, and each of its members into `each` (count), without confusion matrices. */
mimus_status mimus__evaluate_members(mimus__metrics **out, mimus__metrics **each,
                                     const mimus__evaluation *what, const mimus_watch *watch);

/* Whether the model was trained on the recording. */
bool mimus__evaluation_trained_on(const mimus__evaluation *what);

/* The document of mimus_eval (docs/json.md); `model` and `part` are as the caller calls them. */
mimus_status mimus__evaluation_json(json_t **out, const mimus__evaluation *what,
                                    const mimus__metrics *metrics, const char *model,
                                    const char *part);

#endif

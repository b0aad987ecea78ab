/* demo_layout - what the records of a .demo hold, found in what stands before them and in the
 * first of them, and a record's content in the order of a sample. */
#ifndef MIMUS_DATA_DEMO_LAYOUT_H
#define MIMUS_DATA_DEMO_LAYOUT_H

#include "bins.h"
#include "demo_stream.h"

/* What is to be done about what no sample can hold. */
typedef struct mimus__demo_wishes {
    bool skip_visual;  /* images are left out, not refused */
    mimus__bins *bins; /* for continuous actions, or NULL */
    bool observing;    /* the bins are still to be made: heads of theirs have no actions yet */
} mimus__demo_wishes;

typedef struct mimus__demo_layout {
    mimus_head *head; /* (heads) the discrete branches, then the continuous actions */
    uint32_t heads;
    uint32_t branches;                           /* heads that are discrete */
    uint32_t mask_actions;                       /* of these together, as wide as a mask is */
    uint32_t actions;                            /* A */
    uint32_t senses;                             /* S, also 0 */
    const char **sense_names;                    /* (S), or NULL: no observation has a name */
    char *letters;                               /* of them */
    struct mimus__demo_observation *observation; /* (observations) as every record has them */
    size_t observations;
    mimus__demo_wishes wishes;
} mimus__demo_layout;

/* Find it; `first` is the stream's first record. Fails with MIMUS_ERR_UNSUPPORTED for images and
 * for continuous actions that no bins are wished for. Clear either way. */
mimus_status mimus__demo_layout_init(mimus__demo_layout *out, const mimus__demo_stream *stream,
                                     const Mimus__Demo__Pair *first,
                                     const mimus__demo_wishes *wishes);
void mimus__demo_layout_clear(mimus__demo_layout *layout);

/* One record. */
typedef struct mimus__demo_record {
    float *senses;    /* (S) observations in order */
    uint16_t *labels; /* (H) the action in it; MIMUS_NO_LABEL where it has none */
    float *numbers;   /* (H) the same before it fell into bins; 0 for discrete branches */
    uint8_t *legal;   /* (A) not 0: legal */
    bool acted;       /* it has an action */
    bool masked;      /* it has a mask; else everything is legal */
    bool done;
    int32_t id; /* of the agent, or of its episode */
} mimus__demo_record;

mimus_status mimus__demo_record_init(mimus__demo_record *out, const mimus__demo_layout *layout);
void mimus__demo_record_clear(mimus__demo_record *record);

/* Fill in the stream's present record. MIMUS_ERR_FORMAT where it is not as the first one. */
mimus_status mimus__demo_record_read(mimus__demo_record *out, const mimus__demo_layout *layout,
                                     const mimus__demo_stream *stream,
                                     const Mimus__Demo__Pair *pair);

#endif

/* bins - continuous actions as heads: a column of numbers becomes a head whose actions are bins. A
 * number's label is the bin that it falls into; what a policy gives back is the bin's value.
 *
 * The option bin says which columns: "COLUMN:uniform:11,COLUMN:quantile:5", a COLUMN being a name,
 * a number from 0 (heads and columns count alike) or "all".
 *
 *   uniform   bins of one width between the lowest and the highest number; the value is the centre
 *   quantile  bins of as many samples each; the value is the median of the bin's samples, a number
 *             that was really there. Where numbers repeat, bins that would hold the same number are
 *             one; numbers of no more kinds than there are bins get a bin each.
 *
 * A reader of columns of numbers lists MIMUS__BINS_OPTION and has `observe` (reader.h), which opens
 * the file as `read` does and gives its numbers to mimus__bins_observe, row by row; whoever reads
 * the files runs that over all of them and fits the bins (sink.h does it) before anything is read.
 * So several files share their bins. Memory is bounded: from MIMUS__BINS_KEPT numbers of a column
 * on, quantiles are those of a sample of that size, which is always the same. In `read`:
 *
 *   MIMUS_TRY(mimus__bins_open(sink->bins, &columns));         as in `observe`; bins may be NULL
 *   mimus__bins_head(sink->bins, h, &head[h]);                 for each head; others stay untouched
 *   label = mimus__bins_has(sink->bins, h) ? mimus__bins_label(sink->bins, h, number) : ...
 *
 * and for numbers that no bins are for: return mimus__bins_refuse("%s: %g ...", where, number). */
#ifndef MIMUS_DATA_BINS_H
#define MIMUS_DATA_BINS_H

#include "schema.h"

#define MIMUS__BINS_OPTION                                                                         \
    {                                                                                              \
        "bin", "continuous actions as bins: COLUMN:uniform:11 or COLUMN:quantile:11, with commas " \
               "between several; a COLUMN is a name, a number from 0, or all"                      \
    }

enum {
    MIMUS__BINS_KEPT = 1 << 18,       /* numbers of one column that are kept, at most, */
    MIMUS__BINS_KEPT_IN_ALL = 1 << 24 /* and of all columns */
};

typedef struct mimus__bins mimus__bins;

/* The columns of actions of a file: column h becomes head h. */
typedef struct mimus__action_columns {
    const char *where;        /* begins every message: "play.npz: actions" */
    uint32_t count;           /* 1 to MIMUS__MAX_HEADS */
    const char *const *names; /* (count), each may be NULL; or NULL */
    const bool *continuous;   /* (count) which hold numbers; NULL: all may */
} mimus__action_columns;

/* Parse the option's value. MIMUS_ERR_ARGUMENT says which part is wrong. */
mimus_status mimus__bins_new(mimus__bins **out, const char *text);
/* The bins that a schema has, as those of a policy that is to be judged: nothing is observed. */
mimus_status mimus__bins_from_schema(mimus__bins **out, const mimus_schema *schema);
void mimus__bins_free(mimus__bins *bins);

/* A file begins. MIMUS_ERR_ARGUMENT for a column that it does not have or that holds no numbers,
 * MIMUS_ERR_SCHEMA when it has other columns than the file before. */
mimus_status mimus__bins_open(mimus__bins *bins, const mimus__action_columns *columns);

/* Whether the column becomes bins; false where `bins` is NULL. From mimus__bins_open on. */
bool mimus__bins_has(const mimus__bins *bins, uint32_t column);

/* Look at one sample's `numbers` (count); those of columns without bins may be anything. */
mimus_status mimus__bins_observe(mimus__bins *bins, const float *numbers);

/* Everything was observed: make the bins. MIMUS_ERR_DATA for a column in which nothing differs. The
 * watch hears of columns that have fewer bins than they were to have. */
mimus_status mimus__bins_fit(mimus__bins *bins, const mimus_watch *watch);

/* Set actions, edges and values (borrowed) of a head whose column has bins; else do nothing. A head
 * with names of actions must not become a schema then: mimus__heads_fit sees to it. */
void mimus__bins_head(const mimus__bins *bins, uint32_t column, mimus_head *head);

/* The bin of a number, beyond the ends the first or last; MIMUS__MAX_ACTIONS, which is out of every
 * head's range, for one that is not finite: the audit finds it. The column has bins. */
uint16_t mimus__bins_label(const mimus__bins *bins, uint32_t column, float number);

/* MIMUS_ERR_UNSUPPORTED: the text, which says where what was found that is no label, and then the
 * option that would make one of it. */
mimus_status mimus__bins_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

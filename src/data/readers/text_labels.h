/* text_labels - a column of labels in a text file: numbers, or words that become an action's names.
 *
 * Words are sorted by their bytes, so that a column's actions do not depend on the order of its
 * rows. The reader looks at every label in a pass of its own (add), then asks for labels. */
#ifndef MIMUS_DATA_TEXT_LABELS_H
#define MIMUS_DATA_TEXT_LABELS_H

#include "schema.h"

enum { MIMUS__TEXT_LABEL_BYTES = 255 }; /* of a word */

typedef struct mimus__text_labels {
    const char **words; /* (count) sorted; owned unless stated */
    size_t count, capacity;
    int64_t largest; /* number; -1 before the first */
    bool text;       /* some label is no number: they are all words */
    bool stated;     /* the words are those of a head: nothing is added */
    /* The first word, and the first number that is no integer; "" before. */
    struct mimus__text_seen {
        char label[32];
        uint64_t line;
    } word, fraction;
} mimus__text_labels;

/* The words of a head whose actions have names, borrowed; numbers for one without. */
void mimus__text_labels_state(mimus__text_labels *out, const mimus_head *head);
void mimus__text_labels_clear(mimus__text_labels *labels);

/* Look at a label; "" is none. `where` begins the message. MIMUS_ERR_DATA for words that cannot be
 * names of actions. */
mimus_status mimus__text_labels_add(mimus__text_labels *labels, const char *label, uint64_t line,
                                    const char *where);

/* The label's number: its word's place, or its own. -1 for "" and for a number that is -1 or NaN;
 * false for what is neither: a fraction, a word that is not known. */
bool mimus__text_labels_find(const mimus__text_labels *labels, const char *label, int64_t *out);

#endif

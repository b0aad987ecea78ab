#include "text_labels.h"

#include "alloc.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void mimus__text_labels_state(mimus__text_labels *out, const mimus_head *head) {
    *out = (mimus__text_labels){.stated = true, .largest = -1};
    if (head->action_names != NULL) {
        out->text = true;
        out->words = (const char **)head->action_names;
        out->count = head->actions;
    }
}

void mimus__text_labels_clear(mimus__text_labels *labels) {
    for (size_t i = 0; !labels->stated && i < labels->count; i++)
        free((char *)labels->words[i]);
    if (!labels->stated)
        free(labels->words);
    *labels = (mimus__text_labels){0};
}

/* Where the word is, or where it would stand. */
static bool find_word(const mimus__text_labels *labels, const char *word, size_t *place) {
    size_t low = 0, high = labels->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(labels->words[middle], word);
        if (order == 0) {
            *place = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return false;
}

static mimus_status add_word(mimus__text_labels *labels, const char *word, uint64_t line,
                             const char *where) {
    mimus_status status = MIMUS_OK;
    size_t place = 0;
    char *copy = NULL;
    if (find_word(labels, word, &place))
        return MIMUS_OK;
    if (labels->count == MIMUS__MAX_ACTIONS || strlen(word) > MIMUS__TEXT_LABEL_BYTES)
        return mimus__fail(MIMUS_ERR_DATA,
                           "%s: line %llu: more than %d different labels, or one of more than %d "
                           "bytes: is this the column of actions?",
                           where, (unsigned long long)line, MIMUS__MAX_ACTIONS,
                           MIMUS__TEXT_LABEL_BYTES);
    if (!mimus__text_is_utf8(word))
        return mimus__fail(MIMUS_ERR_DATA, "%s: line %llu: a label that is not UTF-8", where,
                           (unsigned long long)line);
    MIMUS_TRY(
        mimus__grow(&labels->words, &labels->capacity, labels->count + 1, sizeof *labels->words));
    MIMUS_TRY(mimus__text_copy(&copy, word));
    memmove(labels->words + place + 1, labels->words + place,
            (labels->count - place) * sizeof *labels->words);
    labels->words[place] = copy;
    labels->count++;
out:
    return status;
}

static bool is_nan(const char *label) {
    return strcasecmp(label, "nan") == 0;
}

static void note(struct mimus__text_seen *seen, const char *label, uint64_t line) {
    if (seen->label[0] != '\0')
        return;
    snprintf(seen->label, sizeof seen->label, "%.31s", label);
    seen->line = line;
}

/* A column of words has no fractions, and the other way round, in whatever order they come. */
static mimus_status check_kinds(const mimus__text_labels *labels, const char *where) {
    const struct mimus__text_seen *word = &labels->word, *fraction = &labels->fraction;
    if (word->label[0] == '\0' || fraction->label[0] == '\0')
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA,
                       "%s: the label in line %llu is the word \"%s\", and that in line %llu the "
                       "number %s: expected words or integers",
                       where, (unsigned long long)word->line, word->label,
                       (unsigned long long)fraction->line, fraction->label);
}

mimus_status mimus__text_labels_add(mimus__text_labels *labels, const char *label, uint64_t line,
                                    const char *where) {
    mimus_status status = MIMUS_OK;
    double number = 0;
    if (*label == '\0' || labels->stated)
        return MIMUS_OK;
    if (mimus__text_to_double(label, &number)) {
        if (number != floor(number))
            note(&labels->fraction, label, line);
        else if (number > (double)labels->largest)
            labels->largest = number < 0x1p53 ? (int64_t)number : INT64_MAX;
    } else if (!is_nan(label)) {
        note(&labels->word, label, line);
        labels->text = true;
    }
    MIMUS_TRY(check_kinds(labels, where));
    if (labels->fraction.label[0] == '\0') /* a column of numbers may have any number of them */
        MIMUS_TRY(add_word(labels, label, line, where));
out:
    return status;
}

/* In the order in which they were stated. */
static bool find_stated(const mimus__text_labels *labels, const char *word, size_t *place) {
    *place = 0;
    while (*place < labels->count && strcmp(labels->words[*place], word) != 0)
        ++*place;
    return *place < labels->count;
}

bool mimus__text_labels_find(const mimus__text_labels *labels, const char *label, int64_t *out) {
    double number = 0;
    size_t place = 0;
    *out = -1;
    if (*label == '\0')
        return true;
    if (labels->text && (labels->stated ? find_stated : find_word)(labels, label, &place)) {
        *out = (int64_t)place;
        return true;
    }
    if (is_nan(label))
        return true;
    if (!mimus__text_to_double(label, &number) || number != floor(number))
        return false;
    *out = fabs(number) < 0x1p53 ? (int64_t)number : INT64_MAX;
    return true;
}

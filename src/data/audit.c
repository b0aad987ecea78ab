#include "audit.h"

#include "alloc.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mimus__auditor {
    const mimus_schema *schema;
    mimus_illegal illegal;
    uint32_t *first_action; /* (H) flattened */
    float *reference;       /* (S) the first sample whose senses are finite */
    uint32_t *changed;      /* (S) not 0: differs from the reference somewhere */
    bool has_reference;
    bool all_changed; /* nothing is left to compare */
    mimus__audit audit;
};

/* ----------------------------------------------------------------- a sample */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Written so that compilers vectorise it: as integers, the magnitudes of finite floats are below
 * that of infinity, and those of NaNs above. */
static bool all_finite(const float *row, size_t count) {
    enum { MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000 };
    int32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t magnitude = (int32_t)(bits_of(row[i]) & MAGNITUDE);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest < INFINITE;
}

static uint32_t first_not_finite(const float *row, uint32_t count) {
    uint32_t i = 0;
    while (i < count && isfinite(row[i]))
        i++;
    return i;
}

static void note_changes(uint32_t *restrict changed, const float *restrict row,
                         const float *restrict reference, size_t count) {
    for (size_t i = 0; i < count; i++)
        changed[i] |= row[i] != reference[i];
}

static bool bit_is_set(const uint32_t *words, uint64_t bit) {
    return (words[bit / 32] >> (bit % 32) & 1) != 0;
}

/* Whether any of `count` bits from `first` on is set. */
static bool any_bit(const uint32_t *words, uint32_t first, uint32_t count) {
    uint32_t last = first + count - 1;
    uint32_t head = UINT32_MAX << (first % 32);
    uint32_t tail = UINT32_MAX >> (31 - last % 32);
    if (first / 32 == last / 32)
        return (words[first / 32] & head & tail) != 0;
    uint32_t any = (words[first / 32] & head) | (words[last / 32] & tail);
    for (uint32_t w = first / 32 + 1; w < last / 32; w++)
        any |= words[w];
    return any != 0;
}

/* The faults of one sample: a bit for each, and where each is first. */
typedef struct faults {
    unsigned set;
    uint32_t index[MIMUS__FAULTS];
} faults;

static void add_fault(faults *found, mimus__fault fault, uint32_t index) {
    if ((found->set >> fault & 1) == 0)
        found->index[fault] = index;
    found->set |= 1u << fault;
}

static void look_at_senses(mimus__auditor *auditor, const float *row, faults *found) {
    uint32_t senses = auditor->schema->senses;
    if (!all_finite(row, senses)) {
        add_fault(found, MIMUS__FAULT_SENSE, first_not_finite(row, senses));
    } else if (!auditor->has_reference) {
        memcpy(auditor->reference, row, senses * sizeof *row);
        auditor->has_reference = true;
    } else if (!auditor->all_changed) {
        note_changes(auditor->changed, row, auditor->reference, senses);
    }
}

static void look_at_head(mimus__auditor *auditor, uint32_t head, uint16_t label,
                         const uint32_t *mask, faults *found) {
    uint32_t actions = auditor->schema->head[head].actions;
    uint32_t first = auditor->first_action[head];
    bool labelled = label != MIMUS_NO_LABEL;
    bool any_legal = mask == NULL || any_bit(mask, first, actions);
    auditor->audit.no_legal += !any_legal;
    if (labelled && label >= actions)
        add_fault(found, MIMUS__FAULT_RANGE, head);
    else if (labelled && !any_legal)
        add_fault(found, MIMUS__FAULT_NO_LEGAL, head);
    else if (labelled && mask != NULL && !bit_is_set(mask, first + label))
        add_fault(found, MIMUS__FAULT_FORBIDDEN, head);
}

static faults look_at(mimus__auditor *auditor, const mimus__block *block, uint32_t i) {
    faults found = {0};
    const mimus_schema *schema = auditor->schema;
    const uint16_t *labels = block->actions + (size_t)i * schema->heads;
    const uint32_t *mask = block->masks;
    if (mask != NULL)
        mask += (size_t)i * block->mask_words;
    look_at_senses(auditor, block->senses + (size_t)i * schema->senses, &found);
    if (block->weights != NULL && !(block->weights[i] >= 0 && isfinite(block->weights[i])))
        add_fault(&found, MIMUS__FAULT_WEIGHT, 0);
    for (uint32_t h = 0; h < schema->heads; h++)
        look_at_head(auditor, h, labels[h], mask, &found);
    return found;
}

uint16_t mimus__audit_label(const mimus__block *block, const mimus_schema *schema, uint32_t i,
                            uint32_t head, uint32_t first_action) {
    uint16_t label = block->actions[(size_t)i * schema->heads + head];
    if (label >= schema->head[head].actions)
        return MIMUS_NO_LABEL;
    if (block->masks == NULL)
        return label;
    const uint32_t *mask = block->masks + (size_t)i * block->mask_words;
    return bit_is_set(mask, first_action + label) ? label : MIMUS_NO_LABEL;
}

/* ----------------------------------------------------------------- auditor */

mimus_status mimus__auditor_new(mimus__auditor **out, const mimus_schema *schema,
                                mimus_illegal illegal) {
    mimus_status status = MIMUS_OK;
    mimus__auditor *auditor = NULL;
    *out = NULL;
    MIMUS_TRY(mimus__alloc(&auditor, 1, sizeof *auditor));
    auditor->schema = schema;
    auditor->illegal = illegal;
    MIMUS_TRY(mimus__alloc(&auditor->first_action, schema->heads, sizeof *auditor->first_action));
    MIMUS_TRY(mimus__alloc(&auditor->reference, schema->senses, sizeof *auditor->reference));
    MIMUS_TRY(mimus__alloc(&auditor->changed, schema->senses, sizeof *auditor->changed));
    MIMUS_TRY(mimus__alloc(&auditor->audit.constant, schema->senses, 1));
    for (uint32_t h = 1; h < schema->heads; h++)
        auditor->first_action[h] = auditor->first_action[h - 1] + schema->head[h - 1].actions;
    *out = auditor;
    auditor = NULL;
out:
    mimus__auditor_free(auditor);
    return status;
}

void mimus__auditor_free(mimus__auditor *auditor) {
    if (auditor == NULL)
        return;
    free(auditor->first_action);
    free(auditor->reference);
    free(auditor->changed);
    mimus__audit_clear(&auditor->audit);
    free(auditor);
}

static bool is_dropped(mimus_illegal illegal, unsigned set) {
    unsigned beyond_labels = 1u << MIMUS__FAULT_SENSE | 1u << MIMUS__FAULT_WEIGHT;
    switch (illegal) {
    case MIMUS_ILLEGAL_DROP:
        return set != 0;
    case MIMUS_ILLEGAL_IGNORE:
        return (set & beyond_labels) != 0;
    case MIMUS_ILLEGAL_ERROR:
        break;
    }
    return false;
}

static void count_faults(mimus__audit *audit, const faults *found, uint64_t row) {
    for (unsigned f = 0; f < MIMUS__FAULTS; f++) {
        if ((found->set >> f & 1) == 0)
            continue;
        if (audit->count[f]++ == 0) {
            audit->first_row[f] = row;
            audit->first_index[f] = found->index[f];
        }
    }
    audit->faulty++;
}

static bool every_sense_changed(const mimus__auditor *auditor) {
    uint32_t s = 0;
    while (s < auditor->schema->senses && auditor->changed[s] != 0)
        s++;
    return s == auditor->schema->senses;
}

void mimus__auditor_add(mimus__auditor *auditor, const mimus__block *block, uint32_t *drop) {
    mimus__audit *audit = &auditor->audit;
    memset(drop, 0, ((size_t)block->samples + 31) / 32 * sizeof *drop);
    for (uint32_t i = 0; i < block->samples; i++) {
        faults found = look_at(auditor, block, i);
        if (found.set == 0)
            continue;
        count_faults(audit, &found, block->first + i);
        if (is_dropped(auditor->illegal, found.set)) {
            drop[i / 32] |= 1u << (i % 32);
            audit->dropped++;
        }
    }
    audit->samples += block->samples;
    auditor->all_changed = auditor->all_changed || every_sense_changed(auditor);
}

const mimus__audit *mimus__auditor_result(mimus__auditor *auditor) {
    mimus__audit *audit = &auditor->audit;
    audit->constant_senses = 0;
    for (uint32_t s = 0; s < auditor->schema->senses; s++) {
        audit->constant[s] = auditor->changed[s] == 0;
        audit->constant_senses += audit->constant[s];
    }
    return audit;
}

/* --------------------------------------------------------------- recording */

bool mimus__audit_drops(const mimus__audit *audit, uint64_t row) {
    return audit != NULL && audit->drop != NULL && bit_is_set(audit->drop, row);
}

void mimus__audit_clear(mimus__audit *audit) {
    free(audit->constant);
    free(audit->drop);
    *audit = (mimus__audit){0};
}

/* Put a block's bits where they belong among all rows'. */
static void merge_drops(uint32_t *all, const mimus__block *block, const uint32_t *drop) {
    for (uint32_t i = 0; i < block->samples; i++) {
        uint64_t row = block->first + i;
        if (bit_is_set(drop, i))
            all[row / 32] |= 1u << (row % 32);
    }
}

mimus_status mimus__audit_run(mimus__audit *out, const mimus__recording *recording,
                              mimus_illegal illegal, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    mimus__auditor *auditor = NULL;
    uint32_t *drop = NULL, *all = NULL;
    size_t capacity = 0;
    uint64_t samples = mimus__recording_samples(recording);
    const mimus_schema *schema = mimus__recording_schema(recording);
    mimus__phase phase = mimus__phase_begin(watch, "audit", samples);
    *out = (mimus__audit){0};
    MIMUS_TRY(mimus__auditor_new(&auditor, schema, illegal));
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        MIMUS_TRY(mimus__recording_block(recording, b, &block));
        MIMUS_TRY(mimus__grow(&drop, &capacity, block.samples / 32 + 1, sizeof *drop));
        uint64_t before = auditor->audit.dropped;
        mimus__auditor_add(auditor, &block, drop);
        if (auditor->audit.dropped > 0 && all == NULL)
            MIMUS_TRY(mimus__alloc(&all, (size_t)(samples / 32 + 1), sizeof *all));
        if (auditor->audit.dropped > before)
            merge_drops(all, &block, drop);
        mimus__recording_leave(recording, b);
        MIMUS_TRY(mimus__phase_step(&phase, block.first + block.samples));
    }
    *out = *mimus__auditor_result(auditor);
    auditor->audit = (mimus__audit){0}; /* what it holds is `out`'s now */
    out->drop = all;
    all = NULL;
    if (illegal == MIMUS_ILLEGAL_ERROR)
        MIMUS_TRY(mimus__audit_refuse(out, schema));
out:
    mimus__auditor_free(auditor);
    free(drop);
    free(all);
    return status;
}

/* ------------------------------------------------------------------ report */

typedef struct fault_text {
    const char *key;
    const char *text;
} fault_text;

static const fault_text fault_texts[MIMUS__FAULTS] = {
    [MIMUS__FAULT_SENSE] = {"sense", "a sense that is not finite"},
    [MIMUS__FAULT_WEIGHT] = {"weight", "a weight that is negative or not finite"},
    [MIMUS__FAULT_RANGE] = {"range", "a label out of its head's range"},
    [MIMUS__FAULT_FORBIDDEN] = {"forbidden", "a label that its mask forbids"},
    [MIMUS__FAULT_NO_LEGAL] = {"no_legal", "a label where no action is legal"},
};

/* The name of the sense or head of a fault's first sample, or NULL. */
static const char *name_of(const mimus__audit *audit, const mimus_schema *schema, unsigned fault) {
    uint32_t index = audit->first_index[fault];
    if (fault == MIMUS__FAULT_WEIGHT)
        return NULL;
    if (fault != MIMUS__FAULT_SENSE)
        return schema->head[index].name;
    return schema->sense_names != NULL ? schema->sense_names[index] : NULL;
}

/* "3 with a sense that is not finite (first: row 17, sense 4 \"speed\")" */
static int describe(const mimus__audit *audit, const mimus_schema *schema, unsigned fault,
                    char *text, size_t bytes) {
    char place[128] = "";
    const char *name = name_of(audit, schema, fault);
    if (fault != MIMUS__FAULT_WEIGHT)
        snprintf(place, sizeof place, ", %s %u%s%.64s%s",
                 fault == MIMUS__FAULT_SENSE ? "sense" : "head", audit->first_index[fault],
                 name != NULL ? " \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "");
    return snprintf(text, bytes, "%llu with %s (first: row %llu%s)",
                    (unsigned long long)audit->count[fault], fault_texts[fault].text,
                    (unsigned long long)audit->first_row[fault], place);
}

mimus_status mimus__audit_refuse(const mimus__audit *audit, const mimus_schema *schema) {
    char text[800] = "";
    size_t length = 0;
    if (audit->faulty == 0)
        return MIMUS_OK;
    for (unsigned f = 0; f < MIMUS__FAULTS; f++) {
        if (audit->count[f] == 0)
            continue;
        if (length > 0 && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, ", ");
        if (length < sizeof text)
            length += (size_t)describe(audit, schema, f, text + length, sizeof text - length);
    }
    return mimus__fail(MIMUS_ERR_DATA,
                       "%llu of %llu samples cannot be trained on: %s; --illegal drop goes on "
                       "without them, --illegal ignore without their offending labels",
                       (unsigned long long)audit->faulty, (unsigned long long)audit->samples, text);
}

static mimus_status fault_to_json(json_t **out, const mimus__audit *audit,
                                  const mimus_schema *schema, unsigned fault) {
    mimus_status status = MIMUS_OK;
    const char *name = name_of(audit, schema, fault);
    json_t *json = json_object();
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)audit->count[fault])));
    MIMUS_TRY(
        mimus__json_set(json, "first_row", json_integer((json_int_t)audit->first_row[fault])));
    if (fault != MIMUS__FAULT_WEIGHT)
        MIMUS_TRY(mimus__json_set(json, fault == MIMUS__FAULT_SENSE ? "sense" : "head",
                                  name != NULL ? json_string(name)
                                               : json_integer(audit->first_index[fault])));
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

mimus_status mimus__audit_to_json(json_t **out, const mimus__audit *audit,
                                  const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object();
    *out = NULL;
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)audit->faulty)));
    MIMUS_TRY(mimus__json_set(json, "dropped", json_integer((json_int_t)audit->dropped)));
    for (unsigned f = 0; f < MIMUS__FAULTS; f++) {
        json_t *fault = NULL;
        if (audit->count[f] == 0)
            continue;
        MIMUS_TRY(fault_to_json(&fault, audit, schema, f));
        MIMUS_TRY(mimus__json_set(json, fault_texts[f].key, fault));
    }
    *out = json;
    json = NULL;
out:
    json_decref(json);
    return status;
}

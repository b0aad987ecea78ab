/* audit - one pass over a recording that finds what cannot be trained on. */
#ifndef MIMUS_DATA_AUDIT_H
#define MIMUS_DATA_AUDIT_H

#include "recording.h"

typedef enum mimus__fault {
    MIMUS__FAULT_SENSE,     /* a NaN or infinite sense */
    MIMUS__FAULT_WEIGHT,    /* a NaN, infinite or negative weight */
    MIMUS__FAULT_RANGE,     /* a label at or above its head's actions (not MIMUS_NO_LABEL) */
    MIMUS__FAULT_FORBIDDEN, /* a label that its mask forbids, while another action is legal */
    MIMUS__FAULT_NO_LEGAL,  /* a head with a label, and no legal action */
    MIMUS__FAULTS
} mimus__fault;

typedef struct mimus__audit {
    uint64_t samples;                    /* looked at */
    uint64_t faulty;                     /* samples with any fault */
    uint64_t count[MIMUS__FAULTS];       /* samples with the fault */
    uint64_t first_row[MIMUS__FAULTS];   /* valid when count > 0 */
    uint32_t first_index[MIMUS__FAULTS]; /* sense or head of it; 0 for a weight */
    uint64_t no_legal;        /* (sample, head) pairs without a legal action, labelled or not */
    uint32_t constant_senses; /* how many senses never change, but for samples with a bad sense */
    uint8_t *constant;        /* (S) 1 = constant */
    uint32_t *drop;           /* (ceil(N/32)) bit per row to leave out, or NULL: none */
    uint64_t dropped;         /* samples to leave out */
} mimus__audit;

/* Check every sample. Under MIMUS_ILLEGAL_ERROR a fault gives MIMUS_ERR_DATA with counts, the
 * first row and what --illegal would do; `*out` is filled either way and must be cleared. Under
 * DROP every faulty row is in `drop`; under IGNORE only those with a bad sense or weight
 * (offending labels count as MIMUS_NO_LABEL from then on: mimus__audit_label). */
mimus_status mimus__audit_run(mimus__audit *out, const mimus__recording *recording,
                              mimus_illegal illegal, const mimus_watch *watch);
void mimus__audit_clear(mimus__audit *audit);

/* Whether row `row` is to be left out; a NULL audit drops nothing. */
bool mimus__audit_drops(const mimus__audit *audit, uint64_t row);

/* Head `head`'s label of sample `i` of a block as training may use it: MIMUS_NO_LABEL in place of
 * one that is out of range or forbidden. `first_action` is the head's first flattened action. */
uint16_t mimus__audit_label(const mimus__block *block, const mimus_schema *schema, uint32_t i,
                            uint32_t head, uint32_t first_action);

/* MIMUS_ERR_DATA as above when the audit found a fault. */
mimus_status mimus__audit_refuse(const mimus__audit *audit, const mimus_schema *schema);

/* {"samples", "dropped"} and, for each fault found, its name with {"samples", "first_row", "sense"
 * or "head"} (docs/json.md). */
mimus_status mimus__audit_to_json(json_t **out, const mimus__audit *audit,
                                  const mimus_schema *schema);

/* The same pass for samples that are no recording yet, a block at a time. */
typedef struct mimus__auditor mimus__auditor;

/* `schema` must outlive the auditor. */
mimus_status mimus__auditor_new(mimus__auditor **out, const mimus_schema *schema,
                                mimus_illegal illegal);
void mimus__auditor_free(mimus__auditor *auditor);

/* Look at a block. `drop` (ceil(n/32)) is overwritten: bit i%32 of word i/32 is set where sample i
 * is to be left out (MIMUS_ILLEGAL_ERROR leaves out nothing). */
void mimus__auditor_add(mimus__auditor *auditor, const mimus__block *block, uint32_t *drop);

/* What was found so far, borrowed; without `drop` bits. */
const mimus__audit *mimus__auditor_result(mimus__auditor *auditor);

#endif

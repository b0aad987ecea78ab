/* estimate - the device memory that training takes, on paper: for who must know before there is a
 * device, or before it is full. */
#ifndef MIMUS_HOST_ESTIMATE_H
#define MIMUS_HOST_ESTIMATE_H

#include "store.h"

/* What it depends on besides the settings. */
typedef struct mimus__estimate {
    const mimus_schema *schema;
    uint64_t samples;       /* of both parts */
    uint32_t runs;          /* that train at once; 0 is one */
    bool blocks;            /* the block plan, else the phased one */
    uint32_t compute_units; /* of the device */
} mimus__estimate;

/* Bytes beside the store's, samples * words * 4, for the runs: batch, network, optimizer, tables,
 * or what timing the products takes where that is more. The largest block of rows that timing may
 * choose is counted; a back end of the products may pad more on GPUs. */
uint64_t mimus__estimate_step(const mimus__estimate *estimate, const mimus_config *config,
                              const mimus__shape *shape);

/* MIMUS_ERR_MEMORY, in place of one that comes when much is made already, where the device has no
 * room for training a network of this shape on `samples` samples. The store's form is not AUTO. */
mimus_status mimus__estimate_check(const mimus__device *device, const mimus_schema *schema,
                                   uint64_t samples, uint32_t runs, const mimus_config *config,
                                   const mimus__shape *shape);

#endif

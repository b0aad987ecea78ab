/* bench_step - what a training step must do, counted on paper: operations, bytes and launches of
 * every phase (docs/performance.md). A test holds the launches against the device's counter. */
#ifndef MIMUS_APP_BENCH_STEP_H
#define MIMUS_APP_BENCH_STEP_H

#include "store.h"
#include "trainer.h"

typedef struct mimus__bench_cost {
    double operations; /* of the products, unpadded; a multiply-add is two */
    double bytes;      /* that the kernels read and write, each operand once a launch */
    uint64_t launches; /* a product of CLBlast counts as one */
} mimus__bench_cost;

typedef struct mimus__bench_step {
    mimus__bench_cost phase[MIMUS__STEP_PHASES];
    mimus__bench_cost total;
} mimus__bench_step;

/* The facts that the counts follow from. */
typedef struct mimus__bench_facts {
    mimus__shape shape;
    uint32_t runs;
    uint32_t rows;                          /* of the batch */
    uint32_t padded_rows;                   /* that the kernels take */
    uint32_t padded[MIMUS__MAX_LAYERS + 1]; /* widths */
    uint32_t sense_words, label_words;      /* of a row of the store */
    mimus__gemm_kind gemm;
    bool packs;   /* mimus__gemm_packs */
    bool batches; /* mimus__gemm_batches */
    bool blocks;  /* the block plan: gemm, packs and batches mean nothing */
    bool shared;  /* one batch for all runs */
    uint32_t splits;
    bool keeps_pre, dropout;
    mimus__optimizer_kind optimizer;
} mimus__bench_facts;

mimus__bench_facts mimus__bench_facts_of(const mimus__trainer *trainer, const mimus__store *store,
                                         const mimus_config *config, uint32_t rows);

/* The step of those facts. */
mimus__bench_step mimus__bench_step_of(const mimus__bench_facts *facts);

/* Operations a sample: 2 sum in * out of the layers forward; in training as many for the weight
 * gradients, and for the input gradients but the first layer's. */
double mimus__bench_operations(const mimus__shape *shape, bool training);

/* Bytes that the gather must move for a sample: its row in; its senses and labels out. */
double mimus__bench_gather_bytes(const mimus__shape *shape, const mimus__row_layout *layout);

#endif

/* golden - the numbers that PyTorch and plain Python got (tests/data/golden_pytorch.py), for the
 * reference and for the device. */
#ifndef MIMUS_TEST_GOLDEN_H
#define MIMUS_TEST_GOLDEN_H

#include "reference.h"

/* One training run: `steps` steps on all N rows at once, in order. Everything in float is exact in
 * float32. */
typedef struct golden_case {
    char *name;
    mimus__reference_network network; /* as before the first step */
    uint32_t rows;                    /* N */
    uint64_t *first;                  /* (N) the first row of each row's episode */
    float *senses;                    /* (N, S) */
    float *stacked;                   /* (N, K * S) by mimus__reference_stack */
    uint16_t *actions;                /* (N, H) */
    uint32_t *masks;                  /* (N, W), or NULL */
    float *weights;                   /* (N), or NULL */
    double *head_weights;             /* (H), or NULL; network.rules points to it */
    double *class_weights;            /* (A), or NULL; network.rules points to it */
    float *mean, *scale;              /* (S) */
    float *initial;                   /* (P) */
    uint32_t steps;
    double *losses;   /* (steps) */
    double *nll;      /* (steps, H) */
    double *hits;     /* (steps, H) */
    double *labelled; /* (H) of every step */
    double *final;    /* (P) */
    /* How far PyTorch's own float32 was off, at the worst: what a float32 trainer may be held to.
     */
    double float32_loss, float32_parameter;
} golden_case;

/* One epoch's order of `n` rows. */
typedef struct golden_order {
    uint64_t seed;
    uint32_t run, epoch;
    uint32_t n;
    double *rows; /* (n) */
} golden_order;

typedef struct golden {
    golden_case *cases;
    size_t case_count;
    golden_order *orders;
    size_t order_count;
} golden;

/* Read the file; whatever is wrong with it fails the running test. */
void golden_load(golden *out, const char *path);
void golden_clear(golden *g);

/* The case's rows, borrowed. */
mimus__reference_batch golden_batch(const golden_case *c);

#endif

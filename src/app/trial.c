#include "trial.h"

#include "alloc.h"
#include "onnx_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256 };

/* Some of the samples, and what the policy says to them. */
typedef struct batch {
    uint32_t first, rows;
    const float *senses;  /* (rows, K * S) borrowed */
    const uint8_t *legal; /* (rows, A) borrowed */
    float *logits;        /* (BATCH, A) the policy's */
    float *scratch;       /* (BATCH, the wider of K * S and A) */
    uint32_t *column;     /* (H) where a head is in what the target puts out */
} batch;

/* One head in one row. */
typedef struct place {
    uint32_t sample, head, first; /* first: the head's first column of A */
    const float *logits;          /* (actions) the policy's */
    const uint8_t *legal;         /* (actions), or NULL: everything */
} place;

static uint32_t actions_of(const mimus__trial *trial) {
    return trial->model->shape.width[trial->model->shape.layers];
}

static mimus_status differs(const mimus__trial *trial, const place *at, const char *what,
                            double found, double expected) {
    return mimus__fail(MIMUS_ERR_DATA,
                       "%s: %s sample %" PRIu32 ", head \"%s\": %s is %.9g, the policy's %.9g; the "
                       "file is wrong and was not kept",
                       trial->where, trial->samples->which, at->sample,
                       trial->model->schema->head[at->head].name, what, found, expected);
}

static place place_of(const mimus__trial *trial, const batch *b, uint32_t row, uint32_t head,
                      uint32_t first) {
    size_t column = (size_t)row * actions_of(trial) + first;
    return (place){b->first + row, head, first, b->logits + column, b->legal + column};
}

/* What is done with every head of every row; `row` counts within the batch. */
typedef mimus_status judge(mimus__trial *trial, const place *at, uint32_t row, const void *what);

/* The policy refuses a sample that makes it overflow. */
static bool is_finite(const place *at, uint32_t actions) {
    for (uint32_t a = 0; a < actions; a++) {
        if (!isfinite(at->logits[a]))
            return false;
    }
    return true;
}

static mimus_status for_each_place(mimus__trial *trial, const batch *b, judge *judge_place,
                                   const void *what) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = trial->model->schema;
    for (uint32_t row = 0; row < b->rows; row++) {
        for (uint32_t h = 0, first = 0; h < schema->heads; first += schema->head[h++].actions) {
            place at = place_of(trial, b, row, h, first);
            if (is_finite(&at, schema->head[h].actions))
                MIMUS_TRY(judge_place(trial, &at, row, what));
        }
    }
out:
    return status;
}

/* ------------------------------------------------------------------ judges */

static double tolerance(float logit) {
    return MIMUS__TRIAL_TOLERANCE * fmax(1, fabs((double)logit));
}

/* `what` is the file's logits (rows, A). */
static mimus_status judge_logits(mimus__trial *trial, const place *at, uint32_t row,
                                 const void *what) {
    const float *found = (const float *)what + (size_t)row * actions_of(trial) + at->first;
    for (uint32_t a = 0; a < trial->model->schema->head[at->head].actions; a++) {
        double difference = fabs((double)found[a] - (double)at->logits[a]);
        if (!(difference <= tolerance(at->logits[a])))
            return differs(trial, at, "a logit", (double)found[a], (double)at->logits[a]);
        trial->difference = fmax(trial->difference, difference);
    }
    return MIMUS_OK;
}

static int64_t best_legal(const mimus__trial *trial, const place *at) {
    int64_t best = -1;
    for (uint32_t a = 0; a < trial->model->schema->head[at->head].actions; a++) {
        if ((at->legal == NULL || at->legal[a] != 0) &&
            (best < 0 || at->logits[a] > at->logits[best]))
            best = a;
    }
    return best;
}

static bool is_legal(const mimus__trial *trial, const place *at, int64_t action) {
    return action >= 0 && action < trial->model->schema->head[at->head].actions &&
           (at->legal == NULL || at->legal[action] != 0);
}

/* The file's choice must be the policy's, or as good within the tolerance. */
static mimus_status judge_choice(mimus__trial *trial, const place *at, int64_t chosen) {
    int64_t best = best_legal(trial, at);
    if (chosen == best)
        return MIMUS_OK;
    if (best >= 0 && is_legal(trial, at, chosen) &&
        (double)at->logits[best] - (double)at->logits[chosen] <=
            tolerance(at->logits[best]) + tolerance(at->logits[chosen])) {
        trial->ties++;
        return MIMUS_OK;
    }
    return differs(trial, at, "the chosen action", (double)chosen, (double)best);
}

/* A number in place of an action: the value of the best, or of a tie. */
static mimus_status judge_value(mimus__trial *trial, const place *at, float value) {
    const mimus_head *head = &trial->model->schema->head[at->head];
    float expected = mimus_head_value(head, (uint16_t)best_legal(trial, at));
    if (value == expected || (isnan(value) && isnan(expected)))
        return MIMUS_OK;
    for (uint32_t a = 0; a < head->actions; a++) {
        if (mimus_head_value(head, (uint16_t)a) == value)
            return judge_choice(trial, at, a);
    }
    return differs(trial, at, "the chosen number", (double)value, (double)expected);
}

static mimus_status judge_draw(const mimus__trial *trial, const place *at, int64_t drawn) {
    if (best_legal(trial, at) < 0 || is_legal(trial, at, drawn))
        return MIMUS_OK;
    return differs(trial, at, "an action that is not legal was drawn: it", (double)drawn,
                   (double)best_legal(trial, at));
}

/* Compute what the inputs give, and judge the logits, which are the same thing for every target. */
static mimus_status compute(mimus__trial *trial, mimus__onnx_run *run, const batch *b) {
    mimus_status status = MIMUS_OK;
    const float *logits;
    MIMUS_TRY(mimus__onnx_run_compute(run, b->first));
    MIMUS_TRY(mimus__onnx_run_floats(run, "logits", b->rows, actions_of(trial), &logits));
    MIMUS_TRY(for_each_place(trial, b, judge_logits, logits));
out:
    return status;
}

/* -------------------------------------------------------------- onnxruntime */

typedef struct runtime_outputs {
    const float *probabilities; /* (rows, A) */
    const int64_t *actions;     /* (rows, H) */
    const float *values;        /* (rows, H), or NULL */
} runtime_outputs;

static mimus_status judge_probabilities(const mimus__trial *trial, const place *at,
                                        const float *found) {
    int64_t best = best_legal(trial, at);
    uint32_t count = trial->model->schema->head[at->head].actions;
    double sum = 0;
    for (uint32_t a = 0; a < count; a++)
        sum += is_legal(trial, at, a) ? exp((double)at->logits[a] - (double)at->logits[best]) : 0;
    for (uint32_t a = 0; a < count; a++) {
        double expected = is_legal(trial, at, a)
                              ? exp((double)at->logits[a] - (double)at->logits[best]) / sum
                              : 0;
        if (!(fabs((double)found[a] - expected) <= MIMUS__TRIAL_TOLERANCE))
            return differs(trial, at, "a probability", (double)found[a], expected);
    }
    return MIMUS_OK;
}

static mimus_status judge_runtime(mimus__trial *trial, const place *at, uint32_t row,
                                  const void *what) {
    mimus_status status = MIMUS_OK;
    const runtime_outputs *found = what;
    size_t head = (size_t)row * trial->model->schema->heads + at->head;
    MIMUS_TRY(judge_choice(trial, at, found->actions[head]));
    MIMUS_TRY(judge_probabilities(
        trial, at, found->probabilities + (size_t)row * actions_of(trial) + at->first));
    if (found->values != NULL)
        MIMUS_TRY(judge_value(trial, at, found->values[head]));
out:
    return status;
}

static bool has_numbers(const mimus_schema *schema) {
    for (uint32_t h = 0; h < schema->heads; h++) {
        if (schema->head[h].bin_values != NULL)
            return true;
    }
    return false;
}

static mimus_status try_runtime(mimus__trial *trial, mimus__onnx_run *run, const batch *b) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = trial->model->schema;
    runtime_outputs found = {0};
    MIMUS_TRY(mimus__onnx_run_set_floats(run, "senses", b->rows, trial->model->shape.width[0],
                                         b->senses));
    if (schema->masks)
        MIMUS_TRY(mimus__onnx_run_set_bools(run, "legal", b->rows, actions_of(trial), b->legal));
    MIMUS_TRY(compute(trial, run, b));
    MIMUS_TRY(mimus__onnx_run_floats(run, "probabilities", b->rows, actions_of(trial),
                                     &found.probabilities));
    MIMUS_TRY(mimus__onnx_run_integers(run, "actions", b->rows, schema->heads, &found.actions));
    if (has_numbers(schema))
        MIMUS_TRY(mimus__onnx_run_floats(run, "values", b->rows, schema->heads, &found.values));
    MIMUS_TRY(for_each_place(trial, b, judge_runtime, &found));
out:
    return status;
}

/* -------------------------------------------------------------------- Unity */

typedef struct unity_outputs {
    const uint32_t *column;        /* (H) among the heads of its kind */
    uint32_t branches, numbers;    /* heads without and with bins */
    const int64_t *drawn, *best;   /* (rows, branches) */
    const float *number, *drawing; /* (rows, numbers) best and drawn */
} unity_outputs;

static bool is_value(const mimus_head *head, float number) {
    for (uint32_t a = 0; a < head->actions; a++) {
        if (mimus_head_value(head, (uint16_t)a) == number)
            return true;
    }
    return false;
}

static mimus_status judge_unity(mimus__trial *trial, const place *where, uint32_t row,
                                const void *what) {
    mimus_status status = MIMUS_OK;
    const unity_outputs *found = what;
    const mimus_head *head = &trial->model->schema->head[where->head];
    uint32_t column = found->column[where->head];
    place at = *where;
    if (head->bin_values != NULL) { /* Unity masks no continuous actions */
        size_t i = (size_t)row * found->numbers + column;
        at.legal = NULL;
        MIMUS_TRY(judge_value(trial, &at, found->number[i]));
        if (!is_value(head, found->drawing[i]))
            status = differs(trial, &at, "a number was drawn that is no bin's: it",
                             (double)found->drawing[i], (double)found->number[i]);
        goto out;
    }
    size_t i = (size_t)row * found->branches + column;
    if (best_legal(trial, &at) < 0) /* Unity forbids a branch without an action */
        goto out;
    MIMUS_TRY(judge_choice(trial, &at, found->best[i]));
    MIMUS_TRY(judge_draw(trial, &at, found->drawn[i]));
out:
    return status;
}

/* Each input has its own columns of the senses, in its own order. */
static mimus_status set_observations(mimus__trial *trial, mimus__onnx_run *run, const batch *b,
                                     const mimus__onnx_inputs *inputs) {
    mimus_status status = MIMUS_OK;
    const mimus__shape *shape = &trial->model->shape;
    uint32_t first = 0, count = inputs->count > 0 ? inputs->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        uint32_t columns = (inputs->count > 0 ? inputs->size[i] : shape->senses) * shape->stack;
        for (size_t row = 0; row < b->rows; row++) {
            for (uint32_t c = 0; c < columns; c++)
                b->scratch[row * columns + c] =
                    b->senses[row * shape->width[0] + mimus__onnx_column(shape, inputs, first + c)];
        }
        snprintf(name, sizeof name, "obs_%" PRIu32, i);
        MIMUS_TRY(mimus__onnx_run_set_floats(run, name, b->rows, columns, b->scratch));
        first += columns;
    }
out:
    return status;
}

static mimus_status set_unity_masks(mimus__trial *trial, mimus__onnx_run *run, const batch *b) {
    const mimus_schema *schema = trial->model->schema;
    size_t columns = 0, to = 0;
    for (uint32_t h = 0; h < schema->heads; h++)
        columns += schema->head[h].bin_values == NULL ? schema->head[h].actions : 0;
    if (columns == 0)
        return MIMUS_OK;
    for (uint32_t row = 0; row < b->rows; row++) {
        const uint8_t *legal = b->legal + (size_t)row * actions_of(trial);
        for (uint32_t h = 0; h < schema->heads; legal += schema->head[h++].actions) {
            for (uint32_t a = 0; schema->head[h].bin_values == NULL && a < schema->head[h].actions;
                 a++)
                b->scratch[to++] = legal[a] != 0 ? 1 : 0;
        }
    }
    return mimus__onnx_run_set_floats(run, "action_masks", b->rows, columns, b->scratch);
}

static mimus_status try_unity(mimus__trial *trial, mimus__onnx_run *run, const batch *b,
                              const mimus__onnx_inputs *inputs) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = trial->model->schema;
    unity_outputs found = {.column = b->column};
    for (uint32_t h = 0; h < schema->heads; h++)
        b->column[h] = schema->head[h].bin_values != NULL ? found.numbers++ : found.branches++;
    MIMUS_TRY(set_observations(trial, run, b, inputs));
    MIMUS_TRY(set_unity_masks(trial, run, b));
    MIMUS_TRY(compute(trial, run, b));
    if (found.branches > 0) {
        MIMUS_TRY(mimus__onnx_run_integers(run, "discrete_actions", b->rows, found.branches,
                                           &found.drawn));
        MIMUS_TRY(mimus__onnx_run_integers(run, "deterministic_discrete_actions", b->rows,
                                           found.branches, &found.best));
    }
    if (found.numbers > 0) {
        MIMUS_TRY(mimus__onnx_run_floats(run, "continuous_actions", b->rows, found.numbers,
                                         &found.drawing));
        MIMUS_TRY(mimus__onnx_run_floats(run, "deterministic_continuous_actions", b->rows,
                                         found.numbers, &found.number));
    }
    MIMUS_TRY(for_each_place(trial, b, judge_unity, &found));
out:
    return status;
}

/* -------------------------------------------------------------------- Godot */

typedef struct godot_output {
    const uint32_t *column; /* (H) a head's first */
    const float *output;    /* (rows, columns) */
    size_t columns;
} godot_output;

/* The add-on's own way to choose: the largest above 0, else the first. */
static int64_t godot_choice(const float *output, uint32_t actions) {
    int64_t best = 0;
    float largest = 0;
    for (uint32_t a = 0; a < actions; a++) {
        if (output[a] > largest) {
            largest = output[a];
            best = a;
        }
    }
    return best;
}

static mimus_status judge_godot(mimus__trial *trial, const place *where, uint32_t row,
                                const void *what) {
    const godot_output *found = what;
    const mimus_schema *schema = trial->model->schema;
    const float *output = found->output + (size_t)row * found->columns + found->column[where->head];
    place at = *where;
    at.legal = NULL; /* there are no masks */
    return schema->head[at.head].bin_values != NULL
               ? judge_value(trial, &at, output[0])
               : judge_choice(trial, &at, godot_choice(output, schema->head[at.head].actions));
}

static mimus_status try_godot(mimus__trial *trial, mimus__onnx_run *run, const batch *b) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = trial->model->schema;
    godot_output found = {.column = b->column};
    for (uint32_t h = 0; h < schema->heads; h++) {
        b->column[h] = (uint32_t)found.columns;
        found.columns += schema->head[h].bin_values != NULL ? 1 : schema->head[h].actions;
    }
    memset(b->scratch, 0, b->rows * sizeof *b->scratch);
    MIMUS_TRY(
        mimus__onnx_run_set_floats(run, "obs", b->rows, trial->model->shape.width[0], b->senses));
    MIMUS_TRY(mimus__onnx_run_set_floats(run, "state_ins", b->rows, 0, b->scratch));
    MIMUS_TRY(compute(trial, run, b));
    MIMUS_TRY(mimus__onnx_run_floats(run, "output", b->rows, found.columns, &found.output));
    MIMUS_TRY(for_each_place(trial, b, judge_godot, &found));
out:
    return status;
}

/* ------------------------------------------------------------------- whole */

static mimus_status batch_new(batch *out, const mimus__trial *trial) {
    mimus_status status = MIMUS_OK;
    size_t inputs = trial->model->shape.width[0], actions = actions_of(trial);
    size_t widest = inputs > actions ? inputs : actions;
    *out = (batch){0};
    MIMUS_TRY(mimus__alloc(&out->logits, BATCH * actions, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&out->scratch, BATCH * widest, sizeof(float)));
    MIMUS_TRY(mimus__alloc(&out->column, trial->model->schema->heads, sizeof *out->column));
out:
    return status;
}

static void batch_free(batch *b) {
    free(b->logits);
    free(b->scratch);
    free(b->column);
}

/* The next samples; `rows` is 0 behind the last. */
static mimus_status next_batch(batch *b, const mimus__trial *trial) {
    mimus_status status = MIMUS_OK;
    uint32_t left;
    b->first += b->rows;
    left = trial->samples->count - b->first;
    b->rows = left < BATCH ? left : BATCH;
    b->senses = trial->samples->senses + (size_t)b->first * trial->model->shape.width[0];
    b->legal = trial->samples->legal + (size_t)b->first * actions_of(trial);
    MIMUS_TRY(mimus__phase_step(trial->phase, b->first));
    MIMUS_TRY(mimus__policy_logits(trial->policy, b->rows, b->senses, b->logits));
out:
    return status;
}

static mimus_status try_target(mimus__trial *trial, mimus__onnx_run *run, const batch *b,
                               mimus__onnx_target target, const mimus__onnx_inputs *inputs) {
    switch (target) {
    case MIMUS__ONNX_ONNXRUNTIME:
        return try_runtime(trial, run, b);
    case MIMUS__ONNX_UNITY:
        return try_unity(trial, run, b, inputs);
    case MIMUS__ONNX_GODOT:
        return try_godot(trial, run, b);
    }
    return MIMUS_OK;
}

mimus_status mimus__trial_onnx(mimus__trial *trial, const char *bytes, size_t size,
                               mimus__onnx_target target, const mimus__onnx_inputs *inputs) {
    mimus_status status = MIMUS_OK;
    mimus__onnx_run *run = NULL;
    batch b = {0};
    MIMUS_TRY(mimus__onnx_run_new(&run, bytes, size, trial->where));
    MIMUS_TRY(batch_new(&b, trial));
    for (;;) {
        MIMUS_TRY(next_batch(&b, trial));
        if (b.rows == 0)
            break;
        MIMUS_TRY(try_target(trial, run, &b, target, inputs));
    }
out:
    batch_free(&b);
    mimus__onnx_run_free(run);
    return status;
}

mimus_status mimus__trial_policy(mimus__trial *trial, const mimus_policy *other) {
    mimus_status status = MIMUS_OK;
    float *logits = NULL;
    batch b = {0};
    MIMUS_TRY(batch_new(&b, trial));
    MIMUS_TRY(mimus__alloc(&logits, (size_t)BATCH * actions_of(trial), sizeof *logits));
    for (;;) {
        MIMUS_TRY(next_batch(&b, trial));
        if (b.rows == 0)
            break;
        size_t numbers = (size_t)b.rows * actions_of(trial);
        MIMUS_TRY(mimus__policy_logits(other, b.rows, b.senses, logits));
        if (memcmp(logits, b.logits, numbers * sizeof *logits) != 0) {
            status = mimus__fail(MIMUS_ERR_DATA,
                                 "%s: its numbers are not the policy's; the file is wrong and was "
                                 "not kept",
                                 trial->where);
            goto out;
        }
    }
out:
    free(logits);
    batch_free(&b);
    return status;
}

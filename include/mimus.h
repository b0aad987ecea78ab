/* mimus.h - record play, train a policy on any OpenCL device, run it in a game.
 *
 * This is the one public header, and the lowest layer of the house: its types are the ones that
 * every module speaks. Two libraries implement it:
 *
 *   libmimus-policy   what a game links: status, schema, recorder, policy. No OpenCL.
 *   libmimus          all of it. Link one or the other, never both.
 *
 * Dimensions, everywhere: N samples, B batch, S senses, H heads, A actions of all heads together,
 * L layers, P parameters of a run, R runs. Arrays are C-contiguous, the last dimension fastest.
 *
 * Every function that can fail returns a mimus_status; mimus_last_error() then says in one line
 * what was expected and what was found. Strings and objects passed in stay the caller's; what
 * comes back through an `out` argument is the caller's to free, and NULL after a failure; every
 * free function takes NULL, the others answer a NULL object with MIMUS_ERR_ARGUMENT. Functions
 * block until their work is done. The library never prints and never exits. */
#ifndef MIMUS_H
#define MIMUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MIMUS_API __attribute__((visibility("default")))
#else
#define MIMUS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MIMUS_VERSION "0.1.0"

/* ------------------------------------------------------------------ status */

#define MIMUS_STATUS_MAP(X)                                                                        \
    X(OK, "success")                                                                               \
    X(ERR_ARGUMENT, "invalid argument")                                                            \
    X(ERR_MEMORY, "out of memory")                                                                 \
    X(ERR_IO, "input or output failed")                                                            \
    X(ERR_FORMAT, "malformed file")                                                                \
    X(ERR_DATA, "unusable data")                                                                   \
    X(ERR_SCHEMA, "schemas differ")                                                                \
    X(ERR_UNSUPPORTED, "not supported")                                                            \
    X(ERR_BUSY, "in use by another process")                                                       \
    X(ERR_NO_DEVICE, "no OpenCL device")                                                           \
    X(ERR_DEVICE, "OpenCL device failed")                                                          \
    X(ERR_STOPPED, "stopped on request")                                                           \
    X(ERR_DIVERGED, "training diverged")

typedef enum mimus_status {
#define MIMUS_STATUS_ENUM(name, text) MIMUS_##name,
    MIMUS_STATUS_MAP(MIMUS_STATUS_ENUM)
#undef MIMUS_STATUS_ENUM
} mimus_status;

/* The text of a status, static. */
MIMUS_API const char *mimus_status_text(mimus_status status);

/* The message of this thread's latest failure, one line; "" before the first. Valid until this
 * thread's next failure. */
MIMUS_API const char *mimus_last_error(void);

/* Free a string that a function of this header returned. */
MIMUS_API void mimus_free(void *pointer);

/* ------------------------------------------------------------------ schema */

/* An action of a head that the player did not choose: it trains nothing. */
#define MIMUS_NO_LABEL 0xFFFFu

/* One categorical action. The actions of a head may stand for numbers, those of a continuous action
 * that was cut into bins: action a for the numbers from bin_edges[a - 1] up to below bin_edges[a],
 * the first and the last for what lies beyond as well. */
typedef struct mimus_head {
    const char *name;                /* NULL: "head0", "head1", ... */
    uint32_t actions;                /* 2 to 65,534 */
    const char *const *action_names; /* (actions), or NULL */
    const float *bin_edges;          /* (actions - 1) ascending, or NULL: no numbers */
    const float *bin_values;         /* (actions) what each gives back; NULL where the edges are */
} mimus_head;

/* What one sample of a recording holds. */
typedef struct mimus_schema {
    uint32_t senses;                /* S, also 0: but then nothing can be trained */
    const char *const *sense_names; /* (S), or NULL */
    uint32_t heads;                 /* H, 1 or more */
    const mimus_head *head;         /* (H) */
    bool masks;                     /* samples carry a legal-action mask */
    bool weights;                   /* samples carry a weight */
} mimus_schema;

/* The number that an action stands for: its bin's value; in a head without bins the action's own
 * number. NaN for MIMUS_NO_LABEL and whatever else is no action of the head. */
MIMUS_API float mimus_head_value(const mimus_head *head, uint16_t action);

/* The action that a number is: the bin it falls into, in a head without bins the number itself.
 * MIMUS_NO_LABEL for a number that is not finite, or, without bins, no action of the head. What a
 * recorder of continuous actions calls. */
MIMUS_API uint16_t mimus_head_action(const mimus_head *head, float value);

/* ---------------------------------------------------------------- recorder */

/* Writes a .rec file (docs/recording.md) chunk by chunk. After a crash or a kill, every chunk
 * that was finished is readable. One thread at a time may use a recorder. */
typedef struct mimus_recorder mimus_recorder;

typedef enum mimus_recorder_mode {
    MIMUS_RECORDER_CREATE, /* a new file; fails with MIMUS_ERR_IO when the path exists */
    MIMUS_RECORDER_APPEND, /* go on behind the last finished chunk, with a new episode; keeps the
                              metadata; creates a missing file */
} mimus_recorder_mode;

/* Open `path` for recording; `schema` is copied. Fails with MIMUS_ERR_BUSY when another process
 * records into the file, MIMUS_ERR_SCHEMA when an existing file holds another schema. */
MIMUS_API mimus_status mimus_recorder_open(mimus_recorder **out, const char *path,
                                           const mimus_schema *schema, mimus_recorder_mode mode);

/* Add one sample: what the player sensed and what the player then did.
 *
 *   senses   (S)  float32  finite
 *   actions  (H)  uint16   each < the head's actions and legal, or MIMUS_NO_LABEL
 *   legal    (A)  uint8    non-zero = legal, heads in order; NULL = everything; only when the
 *                          schema has masks
 *   weight        float32  >= 0; 1 when the schema has no weights
 *
 * The sample is checked (MIMUS_ERR_DATA names sense or head; nothing is added then) and buffered;
 * a full chunk (about 1 MiB) is written out. When that fails (MIMUS_ERR_IO, a full disk) nothing
 * is added either; what was buffered stays, and the next append, flush or close tries again. */
MIMUS_API mimus_status mimus_recorder_append(mimus_recorder *recorder, const float *senses,
                                             const uint16_t *actions, const uint8_t *legal,
                                             float weight);

/* The next sample begins another episode. */
MIMUS_API mimus_status mimus_recorder_end_episode(mimus_recorder *recorder);

/* Keep `json` (a JSON object) as the recording's metadata; written by close. */
MIMUS_API mimus_status mimus_recorder_set_metadata(mimus_recorder *recorder, const char *json);

/* Write what is buffered to the disk now (a chunk of its own). */
MIMUS_API mimus_status mimus_recorder_flush(mimus_recorder *recorder);

/* Write the rest and the closing record, sync, and free the recorder whatever the outcome. */
MIMUS_API mimus_status mimus_recorder_close(mimus_recorder *recorder);

/* ------------------------------------------------------------------ policy */

/* A trained policy on the CPU. Immutable after loading: any number of threads may share it. */
typedef struct mimus_policy mimus_policy;

/* One player of a policy: its stacked senses, its random numbers, its scratch. One thread at a
 * time. */
typedef struct mimus_agent mimus_agent;

/* Load a run folder (its best checkpoint) or a .safetensors checkpoint. */
MIMUS_API mimus_status mimus_policy_load(mimus_policy **out, const char *path);
MIMUS_API void mimus_policy_free(mimus_policy *policy);

/* What the policy was trained on; borrowed from the policy. */
MIMUS_API const mimus_schema *mimus_policy_schema(const mimus_policy *policy);

/* `seed` starts the random numbers of mimus_agent_sample. The policy must outlive the agent. */
MIMUS_API mimus_status mimus_agent_new(mimus_agent **out, const mimus_policy *policy,
                                       uint64_t seed);
MIMUS_API void mimus_agent_free(mimus_agent *agent);

/* A new episode: forget the stacked senses. */
MIMUS_API void mimus_agent_reset(mimus_agent *agent);

/* Choose the most probable legal action of every head.
 *
 *   senses   (S)  float32
 *   legal    (A)  uint8    non-zero = legal; NULL = everything
 *   actions  (H)  uint16   written; MIMUS_NO_LABEL for a head without a legal action
 *
 * One sample of the episode: a policy that sees several samples at once stacks it, whichever of
 * the three functions takes it. Allocates nothing. Fails with MIMUS_ERR_DATA when a sense is not
 * finite (nothing is stacked then), or so large that the network overflows. */
MIMUS_API mimus_status mimus_agent_act(mimus_agent *agent, const float *senses,
                                       const uint8_t *legal, uint16_t *actions);

/* The same, drawn from the policy's probabilities. */
MIMUS_API mimus_status mimus_agent_sample(mimus_agent *agent, const float *senses,
                                          const uint8_t *legal, uint16_t *actions);

/* The probabilities (A) over the legal actions, head by head; 0 where illegal. */
MIMUS_API mimus_status mimus_agent_probabilities(mimus_agent *agent, const float *senses,
                                                 const uint8_t *legal, float *probabilities);

/* Several agents at once: faster than one after the other, and the same to the bit. All have one
 * policy, and each is named once; seen as one thread's, as in the functions above.
 *
 *   agents   (count)
 *   senses   (count, S)
 *   legal    (count, A), or NULL: everything, for all of them
 *   actions  (count, H)  written
 *
 * The message names the agent. Where a sense is not finite, nothing is stacked for any; where the
 * network overflows, that agent's actions are MIMUS_NO_LABEL, and the others have theirs. */
MIMUS_API mimus_status mimus_agents_act(mimus_agent *const *agents, size_t count,
                                        const float *senses, const uint8_t *legal,
                                        uint16_t *actions);
MIMUS_API mimus_status mimus_agents_sample(mimus_agent *const *agents, size_t count,
                                           const float *senses, const uint8_t *legal,
                                           uint16_t *actions);

/* How many samples the policy sees at once; 1: only the present one. */
MIMUS_API uint32_t mimus_policy_stack(const mimus_policy *policy);

/* Decisions without agents, for who stacks himself or has nothing to stack. Holds random numbers
 * and scratch: one thread at a time, any number of rows. */
typedef struct mimus_batch mimus_batch;

/* `seed` starts the random numbers of mimus_batch_sample. The policy must outlive the batch. */
MIMUS_API mimus_status mimus_batch_new(mimus_batch **out, const mimus_policy *policy,
                                       uint64_t seed);
MIMUS_API void mimus_batch_free(mimus_batch *batch);

/* As the agents' functions, for rows that each have K = mimus_policy_stack samples in them, the
 * oldest first:
 *
 *   senses         (count, K, S)
 *   legal          (count, A), or NULL
 *   actions        (count, H)  written
 *   probabilities  (count, A)  written
 *
 * Allocate nothing. */
MIMUS_API mimus_status mimus_batch_act(mimus_batch *batch, size_t count, const float *senses,
                                       const uint8_t *legal, uint16_t *actions);
MIMUS_API mimus_status mimus_batch_sample(mimus_batch *batch, size_t count, const float *senses,
                                          const uint8_t *legal, uint16_t *actions);
MIMUS_API mimus_status mimus_batch_probabilities(mimus_batch *batch, size_t count,
                                                 const float *senses, const uint8_t *legal,
                                                 float *probabilities);

/* ------------------------------------------------- from here on: libmimus only */

/* What is reported while a long call works. Every member may be NULL; the calls come from the
 * thread that made the long call. */
typedef struct mimus_progress {
    const char *phase;      /* "scan", "import", "load", "audit", "upload", "prepare", "train",
                               "eval", "measure", "reference", "check", "write" */
    uint64_t done, total;   /* samples, of the whole phase (train: of all epochs) */
    double seconds;         /* since the phase began */
    uint32_t epoch, epochs; /* 0 outside training; the first epoch is 1 */
    double loss;            /* of the last finished epoch, NaN before */
} mimus_progress;

typedef struct mimus_watch {
    void *user;
    void (*on_progress)(void *user, const mimus_progress *progress); /* at most ~10 a second */
    void (*on_epoch)(void *user, const char *json);   /* the row that metrics.jsonl gets */
    void (*on_message)(void *user, const char *text); /* one line a user should see */
    bool (*should_stop)(void *user); /* true: end the epoch, save, return MIMUS_ERR_STOPPED */
} mimus_watch;

/* What to do with samples that cannot be trained on: senses that are not finite, labels out of
 * range or forbidden by their mask. */
typedef enum mimus_illegal {
    MIMUS_ILLEGAL_ERROR,  /* refuse the recording, counting what is wrong */
    MIMUS_ILLEGAL_DROP,   /* leave the samples out */
    MIMUS_ILLEGAL_IGNORE, /* keep the samples without the offending labels; non-finite senses
                             are dropped all the same */
} mimus_illegal;

/* Files that together are one recording. */
typedef struct mimus_source {
    const char *const *paths;
    size_t count;
    const char *format;         /* a reader's name, or NULL: found by looking at the files */
    const char *const *options; /* NULL, or "key=value" texts for the reader, NULL-terminated */
    mimus_illegal illegal;
    /* Parts to be taken (docs/formats.md), before anything is judged: */
    const char *where;    /* NULL, or "health>0.5 and move=left" */
    const char *episodes; /* NULL, or which of all files' episodes: "0:100", "3,7,20:" */
    uint64_t limit;       /* samples at most; 0: all */
} mimus_source;

typedef struct mimus_format_option {
    const char *key;  /* "senses" */
    const char *help; /* one line: "the array of senses; default obs, observations, ..." */
} mimus_format_option;

/* A kind of file that a source may hold, and the "key=value" options its reader takes. */
typedef struct mimus_format {
    const char *name;                   /* "npz" */
    const char *label;                  /* "NumPy .npz" */
    const mimus_format_option *options; /* ends in a NULL key */
} mimus_format;

/* The formats there are, "rec" first, then in the order in which files are tried; false past the
 * last. */
MIMUS_API bool mimus_format_describe(size_t index, mimus_format *out);

/* Write the files of `source` as one .rec; `*report` (may be NULL) gets a JSON object of counts.
 * The output appears, or takes an old one's place, only when it is complete; an output that is one
 * of the inputs is refused with MIMUS_ERR_ARGUMENT. */
MIMUS_API mimus_status mimus_import(const mimus_source *source, const char *out_path,
                                    const mimus_watch *watch, char **report);

/* Write the samples of `source` in the format that the name of `out_path` ends in, for other
 * programs: .npz, a NumPy archive, or .h5 or .hdf5, Minari's layout (docs/formats.md). Reading it
 * back gives the same senses, actions, masks, weights, episodes and names. `*report` (may be NULL)
 * gets a JSON object of counts; the output is replaced as mimus_import's is. */
MIMUS_API mimus_status mimus_convert(const mimus_source *source, const char *out_path,
                                     const mimus_watch *watch, char **report);

/* Describe a recording as a JSON object (docs/json.md). */
MIMUS_API mimus_status mimus_info(const mimus_source *source, const mimus_watch *watch,
                                  char **json);

/* List platforms and devices as a JSON object, marking the one that `selector` (NULL: the
 * MIMUS_DEVICE variable, else the default) chooses: "gpu", "cpu", "P:D" or part of a name. */
MIMUS_API mimus_status mimus_devices(const char *selector, char **json);

/* Run every kernel on small shapes against the double-precision reference. MIMUS_ERR_DEVICE when
 * one is wrong; `*json` says which either way. */
MIMUS_API mimus_status mimus_selftest(const char *selector, char **json);

/* The settings of a training run: names and values as in the JSON configuration file. */
typedef struct mimus_config mimus_config;

typedef struct mimus_config_field {
    const char *name;  /* "batch" */
    const char *value; /* the default, as text */
    const char *hint;  /* what a value looks like: "N", "relu|tanh|gelu" */
    const char *help;  /* one line */
} mimus_config_field;

MIMUS_API mimus_status mimus_config_new(mimus_config **out);
MIMUS_API void mimus_config_free(mimus_config *config);
/* The settings there are; NULL past the last. */
MIMUS_API const mimus_config_field *mimus_config_describe(size_t index);
/* Whether it may differ between runs that are trained at once: it then takes several values,
 * "1e-3,3e-3", and in a JSON file an array; head_weights parts its own with "/". */
MIMUS_API bool mimus_config_varies(size_t index);
/* Set one by its text; MIMUS_ERR_ARGUMENT says what would be accepted. */
MIMUS_API mimus_status mimus_config_set(mimus_config *config, const char *name, const char *value);
/* Set all that a JSON file names. */
MIMUS_API mimus_status mimus_config_load(mimus_config *config, const char *path);
/* Every setting, as a JSON object. */
MIMUS_API mimus_status mimus_config_json(const mimus_config *config, char **json);

/* Train a policy. `run` is a folder that does not exist yet, or an empty one; see docs/run.md for
 * what it then holds. `*summary` (may be NULL) gets the content of its summary.json. Returns
 * MIMUS_ERR_STOPPED after a stop on request, and MIMUS_ERR_DIVERGED when training left nothing
 * worth having (the message says why, and what to change); both with everything saved and a
 * summary. */
MIMUS_API mimus_status mimus_train(const mimus_source *source, const mimus_config *config,
                                   const char *run, const mimus_watch *watch, char **summary);

/* Train `runs` policies of one architecture at once: one recording on the device, one pass, for
 * each what it would come to alone. They may differ in what mimus_config_varies says; those that
 * leave split_seed to their seed are split by the first one's. `folder` then holds a run folder
 * each (docs/run.md), and `*summary` a row a run, mean, standard error and best. mimus_train does
 * the same for a configuration that has lists, or asks for runs or folds. Runs that diverged are
 * told; MIMUS_ERR_DIVERGED only when all did. */
MIMUS_API mimus_status mimus_train_runs(const mimus_source *source,
                                        const mimus_config *const *configs, size_t runs,
                                        const char *folder, const mimus_watch *watch,
                                        char **summary);

/* Go on with a run where its last checkpoint stands, as if it had never stopped. `source` may be
 * NULL: the files of the first start. `config` may be NULL: what the run's config.json says; else
 * it must agree in everything but epochs, patience, device, plan, gemm, memory, shard and
 * tensorboard. A folder of many runs goes on as a whole. Where
 * nothing is left to do, it opens neither recording nor device, and `*summary` has epochs_run 0. */
MIMUS_API mimus_status mimus_resume(const char *run, const mimus_source *source,
                                    const mimus_config *config, const mimus_watch *watch,
                                    char **summary);

typedef enum mimus_part { MIMUS_PART_ALL, MIMUS_PART_HELDOUT, MIMUS_PART_TRAINING } mimus_part;

/* Judge a run or checkpoint on a recording; `part` is as the run's own settings split it. */
MIMUS_API mimus_status mimus_eval(const char *model, const mimus_source *source, mimus_part part,
                                  const char *device, bool confusion, const mimus_watch *watch,
                                  char **json);

/* What a policy can be exported as. */
typedef struct mimus_target {
    const char *name; /* "onnxruntime" */
    const char *file; /* the name that such a file usually has: "policy.onnx" */
    const char *help; /* one line */
} mimus_target;

/* The targets there are; false past the last. */
MIMUS_API bool mimus_export_describe(size_t index, mimus_target *out);

/* Zeroes and NULLs leave the choice to the library. */
typedef struct mimus_export_options {
    const char *target;           /* a name of mimus_export_describe; there is no default */
    const mimus_source *check;    /* a recording to try the file on */
    const uint32_t *observations; /* (observation_count) Unity: senses of each sensor, in order */
    size_t observation_count;
    bool replace; /* an old file of that name; else it is refused with MIMUS_ERR_IO */
} mimus_export_options;

/* Write a run's best checkpoint, or a .safetensors checkpoint, as `path` in the form that the
 * target takes (docs/export.md). Before the file gets its name it is read back and tried on
 * samples, held out or recorded where there are some, else made up: MIMUS_ERR_DATA, and no file,
 * when it does not choose what the policy chooses. `*report` (may be NULL) gets a JSON object
 * (docs/json.md). */
MIMUS_API mimus_status mimus_export(const char *model, const char *path,
                                    const mimus_export_options *options, const mimus_watch *watch,
                                    char **report);

/* Hold the results of `count` runs, two or more, against those of the first: which settings differ,
 * agreement and likelihood with standard errors, and whether they differ beyond noise, paired over
 * the held-out episodes (docs/report.md). Reads what the runs left: needs no recording, no device.
 */
MIMUS_API mimus_status mimus_compare(const char *const *runs, size_t count, char **json);

/* Write a page about one run or several that loads nothing from elsewhere: curves, agreement beside
 * baselines, confusion, reliability, settings, timing, and the comparison of several; `path` is
 * replaced. Needs no recording, no device. A run that is training or was killed has less on it. */
MIMUS_API mimus_status mimus_report(const char *const *runs, size_t count, const char *path);

/* What to measure. Zeroes and NULLs leave the choice to the workload. */
typedef struct mimus_bench_options {
    const char *workload; /* a name of mimus_bench_describe; NULL: the first */
    const char *device;   /* selector, as for mimus_devices */
    bool all_devices;     /* every device there is, held against the double-precision reference */
    bool ablate; /* in place of all else: slow ways of training beside ours, which must agree */
    const char *runs; /* in place of all else: passes of so many runs at once, "1,4,16,64" */
    const mimus_source *recording; /* NULL: made up, in the workload's shape */
    uint64_t samples;              /* of a recording that is made up; 0: 262,144 */
    uint32_t epochs;               /* 2 or more; 0: 3 */
    uint32_t batch;
    const char *hidden; /* as the setting of that name: "128,128" */
    const char *plan;   /* "auto", "phased", "block" */
    const char *gemm;   /* "auto", "clblast", "tile" */
    const char *store;  /* "f32", "f16", "bf16"; NULL: "f32" */
} mimus_bench_options;

typedef struct mimus_workload {
    const char *name; /* "reference" */
    const char *help; /* one line */
} mimus_workload;

/* The workloads there are; false past the last. */
MIMUS_API bool mimus_bench_describe(size_t index, mimus_workload *out);

/* Measure training: what the device could do, what the phases of a step take, and what an epoch
 * takes over what it would take at the device's best (docs/performance.md). `*json` is as
 * docs/json.md describes it. With all_devices, one that fails says so in its row. */
MIMUS_API mimus_status mimus_bench(const mimus_bench_options *options, const mimus_watch *watch,
                                   char **json);

/* Write `json`, a document of mimus_bench or {"workloads": [documents]}, as an HTML page with
 * charts that loads nothing from elsewhere; the file is replaced. NULL: write nothing, and only
 * tell whether it could be, before minutes are spent on measuring. */
MIMUS_API mimus_status mimus_bench_report(const char *json, const char *path);

#ifdef __cplusplus
}
#endif
#endif

/* reader - the table of foreign formats. A format is one file in readers/ that defines one
 * `mimus__reader`, and one line in reader.c. */
#ifndef MIMUS_DATA_READER_H
#define MIMUS_DATA_READER_H

#include "bins.h"

/* Where a reader puts what it finds: first begin, then samples in order, episodes ended. Whoever
 * wants samples puts this at the front of his own struct: a file being written (import), memory
 * (train on a foreign file). A reader of several files begins once a file; a sink refuses a second
 * schema that differs from its first. */
typedef struct mimus__sink mimus__sink;
struct mimus__sink {
    mimus_status (*begin)(mimus__sink *sink, const mimus_schema *schema);
    mimus_status (*append)(mimus__sink *sink, const float *senses, const uint16_t *actions,
                           const uint8_t *legal, float weight);
    mimus_status (*end_episode)(mimus__sink *sink);
    mimus__bins *bins; /* what becomes of continuous actions (bins.h), the sink's; or NULL */
    /* What the samples are judged by, borrowed; or NULL: its heads stand for what a file does not
     * say of its own (mimus__heads_like). */
    const mimus_schema *like;
};

mimus_status mimus__sink_begin(mimus__sink *sink, const mimus_schema *schema);
/* The same; with `inferred` head sizes, which come from the data, a refusal says so. */
mimus_status mimus__sink_begin_inferred(mimus__sink *sink, const mimus_schema *schema,
                                        bool inferred);
/* Arguments as mimus_recorder_append, without judging the sample: audit.h does that later. */
mimus_status mimus__sink_append(mimus__sink *sink, const float *senses, const uint16_t *actions,
                                const uint8_t *legal, float weight);
mimus_status mimus__sink_end_episode(mimus__sink *sink); /* twice in a row is once */

typedef mimus_format_option mimus__reader_option;

typedef struct mimus__reader {
    const char *name;                    /* "npz" */
    const char *label;                   /* "NumPy .npz" */
    const mimus__reader_option *options; /* ends in a NULL key */
    /* Files that make a folder a recording, ends in NULL; or NULL: none do. */
    const char *const *inside;
    /* Whether the file of that name with these first bytes looks like this format. */
    bool (*probe)(const char *path, const uint8_t *head, size_t bytes);
    /* Read it all; `options` as in mimus_source, checked (mimus__reader_check) already. Progress is
     * reported as the phase "load", in samples of this file. */
    mimus_status (*read)(const char *path, const char *const *options, mimus__sink *sink,
                         const mimus_watch *watch);
    /* Give the file's numbers to mimus__bins_observe, as `read` would find them; the phase
     * "scan". NULL: the format has no option bin. */
    mimus_status (*observe)(const char *path, const char *const *options, mimus__bins *bins,
                            const mimus_watch *watch);
} mimus__reader;

/* The file that a path stands for: itself or, where it is a folder, the one in it that a reader
 * knows to be the recording. A folder that holds none stands for itself. Free with free(). */
mimus_status mimus__reader_file(char **out, const char *path);

/* By name (MIMUS_ERR_ARGUMENT lists the names), or by probing the file (MIMUS_ERR_FORMAT says
 * what the file looks like and which formats there are). */
mimus_status mimus__reader_find(const mimus__reader **out, const char *name, const char *path);
/* The table, in the order of probing; NULL past the last. */
const mimus__reader *mimus__reader_at(size_t index);
/* MIMUS_ERR_ARGUMENT for an option that the reader does not know (naming those it does), that is
 * not "key=value", or that is given twice. `options` may be NULL. */
mimus_status mimus__reader_check(const mimus__reader *reader, const char *const *options);
/* The value of `key` in NULL-terminated "key=value" texts (which may be NULL), or NULL. */
const char *mimus__reader_option_value(const char *const *options, const char *key);

#endif

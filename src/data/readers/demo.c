/* A .demo holds an agent's observations and actions, in two conventions that its format does not
 * tell apart. ML-Agents' recorders put into a record the action that led to it, and a record that
 * is done is the last of its episode. Recordings of 2019 and before were converted by a tool that
 * moved every action to the record in which it was taken; their records that are done already show
 * the first moment of the next episode. Only recorders end a file with a copy of its metadata.
 *
 * A record is a sample: one in which nothing was done, as the last of an episode, has no label.
 *
 * The file is read twice: what is known at its end only, as where its actions belong and whether
 * there are masks, is needed for the first sample. */
#include "demo.h"

#include "alloc.h"
#include "demo_layout.h"
#include "watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where the action in a record belongs. */
typedef enum alignment { ALIGN_SAME, ALIGN_NEXT, ALIGNMENTS, ALIGN_AUTO = ALIGNMENTS } alignment;

static const char *const align_names[] = {
    [ALIGN_SAME] = "same", [ALIGN_NEXT] = "next", [ALIGN_AUTO] = "auto"};

/* Whether samples have masks. */
typedef enum masking { MASKS_AUTO, MASKS_ALWAYS, MASKS_NEVER } masking;

static const char *const mask_names[] = {
    [MASKS_AUTO] = "auto", [MASKS_ALWAYS] = "always", [MASKS_NEVER] = "never"};

static const mimus__reader_option demo_options[] = {
    {"align", "where actions belong: same, to the observation in their record, or next: to the one "
              "before, a record's observation has its action in the next; default: auto, found by "
              "how the file ends"},
    MIMUS__BINS_OPTION,
    {"masks", "auto: where a record has one; always: also in a file without, to read it together "
              "with others that have masks; never: leave them out; default: auto"},
    {"visual", "what to do about observations that are images: refuse, or skip: read the others; "
               "default: refuse"},
    {NULL, NULL},
};

typedef struct reading {
    mimus__demo_stream stream;
    mimus__demo_layout layout;
    mimus__demo_record record[2]; /* the present one and the one before, by turns */
    uint16_t *no_labels;          /* (H) */
    alignment align;
    masking masking;
    mimus__demo_wishes wishes;
    const mimus_watch *watch;
    mimus__phase phase;
    /* found by the first pass: */
    uint64_t records;
    bool detected; /* the alignment */
    bool masks;
    uint64_t forbidden[ALIGNMENTS]; /* actions that a mask forbids, by where they would belong */
} reading;

static void reading_close(reading *r) {
    mimus__demo_record_clear(&r->record[0]);
    mimus__demo_record_clear(&r->record[1]);
    free(r->no_labels);
    mimus__demo_layout_clear(&r->layout);
    mimus__demo_stream_close(&r->stream);
}

/* ------------------------------------------------------------------ options */

static mimus_status choose(const char *path, const char *const *options, const char *key,
                           const char *const *names, size_t count, size_t fallback, size_t *out) {
    const char *given = mimus__reader_option_value(options, key);
    *out = fallback;
    if (given == NULL)
        return MIMUS_OK;
    char list[64] = "";
    for (size_t i = 0; i < count; i++) {
        *out = i;
        if (strcmp(given, names[i]) == 0)
            return MIMUS_OK;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "",
                 names[i]);
    }
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option %s: one of %s, not \"%s\"", path, key, list,
                       given);
}

static mimus_status read_options(reading *r, const char *path, const char *const *options) {
    mimus_status status = MIMUS_OK;
    static const char *const visual_names[] = {"refuse", "skip"};
    size_t choice = 0;
    MIMUS_TRY(choose(path, options, "align", align_names, ALIGN_AUTO + 1, ALIGN_AUTO, &choice));
    r->align = (alignment)choice;
    MIMUS_TRY(choose(path, options, "masks", mask_names, MASKS_NEVER + 1, MASKS_AUTO, &choice));
    r->masking = (masking)choice;
    MIMUS_TRY(choose(path, options, "visual", visual_names, 2, 0, &choice));
    r->wishes.skip_visual = choice == 1;
out:
    return status;
}

/* ------------------------------------------------------------------- passes */

/* What is done with a record once the one behind it is known: `next` is NULL behind the last. */
typedef mimus_status (*visitor)(reading *r, const mimus__demo_record *record,
                                const mimus__demo_record *next, void *user);

static mimus_status step(reading *r, uint64_t row, unsigned pass) {
    enum { STEP = 1024 }; /* records between two looks at the clock */
    const uint64_t total = r->phase.progress.total;
    if (row % STEP != 0)
        return MIMUS_OK;
    return mimus__phase_step(&r->phase, (pass * total + row) / 2); /* two passes are one load */
}

/* The first record says what all of them hold. */
static mimus_status prepare(reading *r, const Mimus__Demo__Pair *first) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(mimus__demo_layout_init(&r->layout, &r->stream, first, &r->wishes));
    MIMUS_TRY(mimus__demo_record_init(&r->record[0], &r->layout));
    MIMUS_TRY(mimus__demo_record_init(&r->record[1], &r->layout));
    MIMUS_TRY(mimus__alloc(&r->no_labels, r->layout.heads, sizeof *r->no_labels));
    for (uint32_t h = 0; h < r->layout.heads; h++)
        r->no_labels[h] = MIMUS_NO_LABEL;
out:
    return status;
}

static mimus_status pass_over(reading *r, unsigned pass, visitor visit, void *user) {
    mimus_status status = MIMUS_OK;
    const Mimus__Demo__Pair *pair = NULL;
    const mimus__demo_record *before = NULL;
    for (uint64_t row = 0;; row++) {
        mimus__demo_record *present = &r->record[row % 2];
        MIMUS_TRY(mimus__demo_stream_next(&r->stream, &pair));
        if (pair == NULL)
            break;
        if (row == 0 && pass == 0)
            MIMUS_TRY(prepare(r, pair));
        MIMUS_TRY(mimus__demo_record_read(present, &r->layout, &r->stream, pair));
        if (before != NULL)
            MIMUS_TRY(visit(r, before, present, user));
        before = present;
        MIMUS_TRY(step(r, row + 1, pass));
    }
    if (before != NULL)
        MIMUS_TRY(visit(r, before, NULL, user));
out:
    return status;
}

/* --------------------------------------------------------------- first pass */

/* Labels that a mask forbids. */
static uint64_t count_forbidden(const mimus__demo_layout *layout, const uint8_t *legal,
                                const uint16_t *labels) {
    uint64_t count = 0;
    for (uint32_t h = 0; h < layout->heads; h++) {
        const uint32_t actions = layout->head[h].actions;
        count += labels[h] < actions && !legal[labels[h]];
        legal += actions;
    }
    return count;
}

static mimus_status survey(reading *r, const mimus__demo_record *record,
                           const mimus__demo_record *next, void *user) {
    (void)user;
    r->records++;
    if (!record->masked)
        return MIMUS_OK;
    r->masks = true;
    r->forbidden[ALIGN_SAME] += count_forbidden(&r->layout, record->legal, record->labels);
    if (next != NULL && !record->done && !next->done) /* of one episode by either convention */
        r->forbidden[ALIGN_NEXT] += count_forbidden(&r->layout, record->legal, next->labels);
    return MIMUS_OK;
}

/* ---------------------------------------------------------------- alignment */

static void tell_ending(const reading *r) {
    const mimus__demo_stream *s = &r->stream;
    if (s->ending == MIMUS__DEMO_NOT_CLOSED)
        mimus__watch_message(r->watch,
                             "%s: its recorder did not close it: %" PRIu64 " byte%s lost, %" PRIu64
                             " records are there",
                             s->path, s->lost, s->lost == 1 ? " is" : "s are", r->records);
    else if (s->lost > 0)
        mimus__watch_message(r->watch,
                             "%s: %" PRIu64 " bytes at byte %" PRIu64 ", behind the %" PRIu64
                             " records, are not read",
                             s->path, s->lost, s->at, r->records);
}

/* What the file's end says, and for one that has none its masks, if they do. */
static alignment detect(const reading *r) {
    if (r->stream.ending != MIMUS__DEMO_NOT_CLOSED)
        return r->stream.ending == MIMUS__DEMO_COPY ? ALIGN_NEXT : ALIGN_SAME;
    return r->forbidden[ALIGN_SAME] == 0 && r->forbidden[ALIGN_NEXT] > 0 ? ALIGN_SAME : ALIGN_NEXT;
}

static const char *reason_of(const reading *r) {
    switch (r->stream.ending) {
    case MIMUS__DEMO_COPY:
        return "the file ends in a copy of its metadata, as recorded ones do";
    case MIMUS__DEMO_PLAIN:
        return "the file does not end in a copy of its metadata, as converted ones do not";
    case MIMUS__DEMO_NOT_CLOSED:
        break;
    }
    return r->align == ALIGN_SAME ? "its masks forbid the other" : "it was recorded";
}

static void tell_alignment(const reading *r) {
    static const char *const meanings[] = {
        [ALIGN_SAME] = "an action belongs to the observation in its own record",
        [ALIGN_NEXT] = "an action belongs to the observation in the record before",
    };
    mimus__watch_message(r->watch,
                         "%s: %" PRIu64
                         " records; align=%s (%s), for %s; the option align=%s overrides it",
                         r->stream.path, r->records, align_names[r->align], meanings[r->align],
                         reason_of(r), align_names[ALIGN_NEXT - r->align]);
}

static void tell_doubt(const reading *r) {
    const alignment other = (alignment)(ALIGN_NEXT - r->align);
    if (r->forbidden[r->align] > 0 && r->forbidden[other] == 0)
        mimus__watch_message(r->watch,
                             "%s: by align=%s the masks forbid %" PRIu64
                             " of the actions taken, by align=%s none: it is likely that one",
                             r->stream.path, align_names[r->align], r->forbidden[r->align],
                             align_names[other]);
}

static void tell(const reading *r) {
    tell_ending(r);
    if (r->detected)
        tell_alignment(r);
    tell_doubt(r);
}

/* -------------------------------------------------------------- second pass */

/* Whether an episode ends between two records. An agent has a new id, if it ever has. */
static bool ends_episode(const reading *r, const mimus__demo_record *record,
                         const mimus__demo_record *next) {
    const bool converted = r->stream.ending == MIMUS__DEMO_PLAIN;
    if (next == NULL)
        return true;
    return (converted ? next->done : record->done) || record->id != next->id;
}

/* The record that holds the action that was taken in `record`; NULL where there is none. */
static const mimus__demo_record *action_of(const reading *r, const mimus__demo_record *record,
                                           const mimus__demo_record *next) {
    if (r->align == ALIGN_NEXT)
        record = ends_episode(r, record, next) ? NULL : next;
    return record != NULL && record->acted ? record : NULL;
}

static mimus_status put_sample(reading *r, const mimus__demo_record *record,
                               const mimus__demo_record *next, void *user) {
    mimus_status status = MIMUS_OK;
    mimus__sink *sink = user;
    const mimus__demo_record *action = action_of(r, record, next);
    const bool masked = record->masked && r->masking != MASKS_NEVER;
    MIMUS_TRY(mimus__sink_append(sink, record->senses,
                                 action != NULL ? action->labels : r->no_labels,
                                 masked ? record->legal : NULL, 1.0F));
    if (ends_episode(r, record, next))
        MIMUS_TRY(mimus__sink_end_episode(sink));
out:
    return status;
}

static mimus_status observe_action(reading *r, const mimus__demo_record *record,
                                   const mimus__demo_record *next, void *user) {
    const mimus__demo_record *action = action_of(r, record, next);
    (void)user;
    return action != NULL ? mimus__bins_observe(r->wishes.bins, action->numbers) : MIMUS_OK;
}

static mimus_status begin(const reading *r, mimus__sink *sink) {
    const mimus_schema schema = {
        .senses = r->layout.senses,
        .sense_names = r->layout.sense_names,
        .heads = r->layout.heads,
        .head = r->layout.head,
        .masks = r->masking == MASKS_ALWAYS || (r->masking == MASKS_AUTO && r->masks),
    };
    return mimus__sink_begin(sink, &schema);
}

/* -------------------------------------------------------------------- whole */

/* Open the file and pass over it for the first time. */
static mimus_status reading_open(reading *r, const char *path, const char *const *options,
                                 const char *phase) {
    mimus_status status = MIMUS_OK;
    MIMUS_TRY(read_options(r, path, options));
    MIMUS_TRY(mimus__demo_stream_open(&r->stream, path));
    r->phase = mimus__phase_begin(r->watch, phase, (uint64_t)r->stream.meta->steps);
    MIMUS_TRY(pass_over(r, 0, survey, NULL));
    if (r->records == 0)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA,
                              "%s: holds no records: the file ends at byte %" PRIu64, path,
                              r->stream.size));
    if (r->align == ALIGN_AUTO) {
        r->align = detect(r);
        r->detected = true;
    }
    MIMUS_TRY(mimus__demo_stream_rewind(&r->stream));
out:
    return status;
}

static mimus_status demo_read(const char *path, const char *const *options, mimus__sink *sink,
                              const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.watch = watch, .wishes.bins = sink->bins};
    MIMUS_TRY(reading_open(&r, path, options, "load"));
    tell(&r);
    MIMUS_TRY(begin(&r, sink));
    MIMUS_TRY(pass_over(&r, 1, put_sample, sink));
    MIMUS_TRY(mimus__phase_step(&r.phase, r.records));
out:
    reading_close(&r);
    return status;
}

static mimus_status demo_observe(const char *path, const char *const *options, mimus__bins *bins,
                                 const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    reading r = {.watch = watch, .wishes = {.bins = bins, .observing = true}};
    MIMUS_TRY(reading_open(&r, path, options, "bin"));
    MIMUS_TRY(pass_over(&r, 1, observe_action, NULL));
    MIMUS_TRY(mimus__phase_step(&r.phase, r.records));
out:
    reading_close(&r);
    return status;
}

static bool demo_probe(const char *path, const uint8_t *head, size_t bytes) {
    static const char ending[] = ".demo";
    const size_t length = strlen(path), tail = sizeof ending - 1;
    return (length > tail && strcmp(path + length - tail, ending) == 0) ||
           mimus__demo_stream_probe(head, bytes);
}

const mimus__reader mimus__demo_reader = {
    .name = "demo",
    .label = "Unity ML-Agents .demo",
    .options = demo_options,
    .probe = demo_probe,
    .read = demo_read,
    .observe = demo_observe,
};

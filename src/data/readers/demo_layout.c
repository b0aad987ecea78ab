#include "demo_layout.h"

#include "alloc.h"
#include "heads.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPRESSION_NONE = 0,
    SPACE_CONTINUOUS = 1,
    NAME_BYTES = 128,       /* the longest name of an observation that is kept */
    LETTER_BYTES = 4 << 20, /* names that take more are left out: a .rec has 16 MiB for them */
    INDEX_BYTES = sizeof "[1048575]",
};

/* An observation as every record has it. */
typedef struct mimus__demo_observation {
    uint32_t floats;
    bool skipped; /* it is visual */
} observation;

/* -------------------------------------------------------------------- heads */

/* The brain's words, of before or since there was an action_spec. */
typedef struct action_space {
    const int32_t *branch; /* (branches) actions of each */
    size_t branches;
    int32_t continuous;
    char **description; /* (descriptions) names, in the order of heads */
    size_t descriptions;
} action_space;

static action_space find_actions(const Mimus__Demo__Brain *brain) {
    const Mimus__Demo__ActionSpec *spec = brain->action_spec;
    action_space space = {.description = brain->old_descriptions,
                          .descriptions = brain->n_old_descriptions};
    if (spec != NULL)
        return (action_space){spec->branch_sizes, spec->n_branch_sizes, spec->continuous,
                              spec->descriptions, spec->n_descriptions};
    if (brain->old_space_type != SPACE_CONTINUOUS) {
        space.branch = brain->old_action_size;
        space.branches = brain->n_old_action_size;
    } else if (brain->n_old_action_size > 0) {
        space.continuous = brain->old_action_size[0];
    }
    return space;
}

static mimus_status fail_actions(const mimus__demo_stream *stream, const char *message) {
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: description of the actions at byte %d: %s",
                       stream->path, MIMUS__DEMO_BRAIN_AT, message);
}

static mimus_status check_space(const mimus__demo_stream *stream, const action_space *space) {
    char message[192];
    if (space->continuous >= 0 && space->continuous <= MIMUS__MAX_HEADS &&
        space->branches <= MIMUS__MAX_HEADS - (size_t)space->continuous &&
        space->branches + (size_t)space->continuous > 0)
        return MIMUS_OK;
    snprintf(message, sizeof message,
             "%zu discrete and %" PRId32 " continuous actions; 1 to %d together are possible",
             space->branches, space->continuous, MIMUS__MAX_HEADS);
    return fail_actions(stream, message);
}

static mimus_status add_branch(mimus__demo_layout *layout, const mimus__demo_stream *stream,
                               int32_t actions) {
    char message[128];
    if (actions < 2 || actions > MIMUS__MAX_ACTIONS ||
        layout->mask_actions + (uint32_t)actions > MIMUS__MAX_TOTAL_ACTIONS) {
        snprintf(message, sizeof message,
                 "branch %" PRIu32 " has %" PRId32 " actions; 2 to %d are possible, %d of all",
                 layout->branches, actions, MIMUS__MAX_ACTIONS, MIMUS__MAX_TOTAL_ACTIONS);
        return fail_actions(stream, message);
    }
    layout->head[layout->branches++].actions = (uint32_t)actions;
    layout->mask_actions += (uint32_t)actions;
    return MIMUS_OK;
}

static mimus_status name_heads(mimus__demo_layout *layout, const action_space *space) {
    mimus_status status = MIMUS_OK;
    for (uint32_t h = 0; h < layout->heads; h++) {
        char **name = (char **)&layout->head[h].name;
        if (h < space->descriptions && space->description[h][0] != '\0')
            MIMUS_TRY(mimus__text_copy(name, space->description[h]));
        else if (h >= layout->branches) /* so that it can be called by a name */
            MIMUS_TRY(mimus__text_format(name, "continuous%" PRIu32, h - layout->branches));
    }
out:
    return status;
}

static mimus_status find_bins(mimus__demo_layout *layout, const mimus__demo_stream *stream) {
    mimus_status status = MIMUS_OK;
    mimus__bins *bins = layout->wishes.bins;
    const char **names = NULL;
    bool *continuous = NULL;
    char *where = NULL;
    MIMUS_TRY(mimus__text_format(&where, "%s: actions", stream->path));
    MIMUS_TRY(mimus__alloc(&names, layout->heads, sizeof *names));
    MIMUS_TRY(mimus__alloc(&continuous, layout->heads, sizeof *continuous));
    for (uint32_t h = 0; h < layout->heads; h++) {
        names[h] = layout->head[h].name;
        continuous[h] = h >= layout->branches;
    }
    const mimus__action_columns columns = {where, layout->heads, names, continuous};
    if (bins != NULL)
        MIMUS_TRY(mimus__bins_open(bins, &columns));
    for (uint32_t h = layout->branches; h < layout->heads; h++) {
        if (!mimus__bins_has(bins, h)) {
            status =
                mimus__bins_refuse("%s: column %" PRIu32 " (%s) is continuous", where, h, names[h]);
            goto out;
        }
        if (!layout->wishes.observing)
            mimus__bins_head(bins, h, &layout->head[h]);
    }
out:
    free(where);
    free(names);
    free(continuous);
    return status;
}

static mimus_status find_heads(mimus__demo_layout *layout, const mimus__demo_stream *stream) {
    mimus_status status = MIMUS_OK;
    const action_space space = find_actions(stream->brain);
    MIMUS_TRY(check_space(stream, &space));
    layout->heads = (uint32_t)space.branches + (uint32_t)space.continuous;
    MIMUS_TRY(mimus__alloc(&layout->head, layout->heads, sizeof *layout->head));
    for (size_t b = 0; b < space.branches; b++)
        MIMUS_TRY(add_branch(layout, stream, space.branch[b]));
    MIMUS_TRY(name_heads(layout, &space));
    MIMUS_TRY(find_bins(layout, stream));
    for (uint32_t h = 0; h < layout->heads; h++)
        layout->actions += layout->head[h].actions;
out:
    return status;
}

/* ------------------------------------------------------------- observations */

static size_t floats_of(const Mimus__Demo__Observation *seen) {
    return seen->float_data != NULL ? seen->float_data->n_data : 0;
}

/* "84x84x3", or the start of it. */
static const char *shape_text(const Mimus__Demo__Observation *seen, char *text, size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < seen->n_shape && length < bytes; i++)
        length += (size_t)snprintf(text + length, bytes - length, i > 0 ? "x%" PRId32 : "%" PRId32,
                                   seen->shape[i]);
    return text;
}

static mimus_status refuse_visual(const mimus__demo_stream *stream, size_t index,
                                  const Mimus__Demo__Observation *seen) {
    char shape[64], name[NAME_BYTES + 8] = "";
    if (seen->name[0] != '\0')
        snprintf(name, sizeof name, " \"%.*s\"", NAME_BYTES, seen->name);
    return mimus__demo_stream_fail(
        stream, MIMUS_ERR_UNSUPPORTED,
        "observation %zu%s is visual (%s, as an image), and a policy reads numbers; the option "
        "visual=skip goes on without it, or record with sensors of numbers",
        index, name, shape_text(seen, shape, sizeof shape));
}

/* What its shape says, unless that is far more than there may be. */
static uint64_t volume_of(const Mimus__Demo__Observation *seen) {
    uint64_t volume = 1;
    for (size_t i = 0; i < seen->n_shape; i++) {
        if (seen->shape[i] < 0 || volume > MIMUS__MAX_SENSES)
            return UINT64_MAX;
        volume *= (uint64_t)seen->shape[i];
    }
    return volume;
}

static mimus_status add_observation(mimus__demo_layout *layout, const mimus__demo_stream *stream,
                                    const Mimus__Demo__Observation *seen) {
    const size_t index = layout->observations++, floats = floats_of(seen);
    observation *added = &layout->observation[index];
    char shape[64];
    added->skipped = seen->compression != COMPRESSION_NONE;
    if (added->skipped)
        return layout->wishes.skip_visual ? MIMUS_OK : refuse_visual(stream, index, seen);
    if (floats > MIMUS__MAX_SENSES - layout->senses)
        return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT,
                                       "observations of more than %d numbers", MIMUS__MAX_SENSES);
    if (seen->n_shape > 0 && volume_of(seen) != floats)
        return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT,
                                       "observation %zu has %zu numbers, which its shape (%s) does "
                                       "not hold",
                                       index, floats, shape_text(seen, shape, sizeof shape));
    added->floats = (uint32_t)floats;
    layout->senses += added->floats;
    return MIMUS_OK;
}

/* -------------------------------------------------------------------- names */

/* "size", "rays[0]", "rays[1]", ...; a sensor without a name is "observation2". */
static void name_senses(mimus__demo_layout *layout, const Mimus__Demo__AgentInfo *agent) {
    char *letters = layout->letters;
    uint32_t sense = 0;
    for (size_t i = 0; i < layout->observations; i++) {
        const char *name = agent->observations[i]->name;
        char numbered[NAME_BYTES];
        snprintf(numbered, sizeof numbered, "observation%zu", i);
        for (uint32_t f = 0; f < layout->observation[i].floats; f++) {
            layout->sense_names[sense++] = letters;
            letters += sprintf(letters, "%s", name[0] != '\0' ? name : numbered);
            if (layout->observation[i].floats > 1)
                letters += sprintf(letters, "[%" PRIu32 "]", f);
            letters++;
        }
    }
}

/* Only where an observation has a name, and all names are worth keeping. */
static mimus_status find_names(mimus__demo_layout *layout, const Mimus__Demo__AgentInfo *agent) {
    mimus_status status = MIMUS_OK;
    bool any = false;
    uint64_t bytes = 0;
    for (size_t i = 0; i < layout->observations; i++) {
        const char *name = agent->observations[i]->name;
        const size_t length = name[0] != '\0' ? strlen(name) : sizeof "observation" + 20;
        any = any || (name[0] != '\0' && layout->observation[i].floats > 0);
        if (length >= NAME_BYTES || !mimus__text_is_utf8(name))
            return MIMUS_OK;
        bytes += layout->observation[i].floats * (length + INDEX_BYTES);
    }
    if (!any || bytes > LETTER_BYTES)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(&layout->letters, (size_t)bytes, 1));
    MIMUS_TRY(mimus__alloc(&layout->sense_names, layout->senses, sizeof *layout->sense_names));
    name_senses(layout, agent);
out:
    return status;
}

/* -------------------------------------------------------------------- whole */

static mimus_status no_agent(const mimus__demo_stream *stream) {
    return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT, "holds no observations of an agent");
}

mimus_status mimus__demo_layout_init(mimus__demo_layout *out, const mimus__demo_stream *stream,
                                     const Mimus__Demo__Pair *first,
                                     const mimus__demo_wishes *wishes) {
    mimus_status status = MIMUS_OK;
    const Mimus__Demo__AgentInfo *agent = first->agent;
    *out = (mimus__demo_layout){.wishes = *wishes};
    if (agent == NULL)
        return no_agent(stream);
    MIMUS_TRY(mimus__alloc(&out->observation, agent->n_observations, sizeof *out->observation));
    for (size_t i = 0; i < agent->n_observations; i++)
        MIMUS_TRY(add_observation(out, stream, agent->observations[i]));
    MIMUS_TRY(find_heads(out, stream));
    MIMUS_TRY(find_names(out, agent));
out:
    return status;
}

void mimus__demo_layout_clear(mimus__demo_layout *layout) {
    for (uint32_t h = 0; layout->head != NULL && h < layout->heads; h++)
        free((char *)layout->head[h].name);
    free(layout->head);
    free(layout->sense_names);
    free(layout->letters);
    free(layout->observation);
    *layout = (mimus__demo_layout){0};
}

/* ------------------------------------------------------------------- record */

mimus_status mimus__demo_record_init(mimus__demo_record *out, const mimus__demo_layout *layout) {
    mimus_status status = MIMUS_OK;
    *out = (mimus__demo_record){0};
    MIMUS_TRY(mimus__alloc(&out->senses, layout->senses, sizeof *out->senses));
    MIMUS_TRY(mimus__alloc(&out->labels, layout->heads, sizeof *out->labels));
    MIMUS_TRY(mimus__alloc(&out->numbers, layout->heads, sizeof *out->numbers));
    MIMUS_TRY(mimus__alloc(&out->legal, layout->actions, sizeof *out->legal));
out:
    return status;
}

void mimus__demo_record_clear(mimus__demo_record *record) {
    free(record->senses);
    free(record->labels);
    free(record->numbers);
    free(record->legal);
    *record = (mimus__demo_record){0};
}

static mimus_status read_senses(mimus__demo_record *out, const mimus__demo_layout *layout,
                                const mimus__demo_stream *stream,
                                const Mimus__Demo__AgentInfo *agent) {
    float *senses = out->senses;
    if (agent->n_observations != layout->observations)
        return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT,
                                       "%zu observations; the first record has %zu",
                                       agent->n_observations, layout->observations);
    for (size_t i = 0; i < layout->observations; i++) {
        const Mimus__Demo__Observation *seen = agent->observations[i];
        const observation *expected = &layout->observation[i];
        if (expected->skipped != (seen->compression != COMPRESSION_NONE))
            return mimus__demo_stream_fail(
                stream, MIMUS_ERR_FORMAT,
                "observation %zu is %s image; in the first record it is %s", i,
                expected->skipped ? "no" : "an", expected->skipped ? "one" : "none");
        if (expected->skipped)
            continue;
        if (floats_of(seen) != expected->floats)
            return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT,
                                           "observation %zu has %zu numbers; in the first record "
                                           "it has %" PRIu32,
                                           i, floats_of(seen), expected->floats);
        if (expected->floats > 0)
            memcpy(senses, seen->float_data->data, expected->floats * sizeof *senses);
        senses += expected->floats;
    }
    return MIMUS_OK;
}

static mimus_status read_mask(mimus__demo_record *out, const mimus__demo_layout *layout,
                              const mimus__demo_stream *stream,
                              const Mimus__Demo__AgentInfo *agent) {
    out->masked = agent->n_action_mask > 0;
    if (out->masked && agent->n_action_mask != layout->mask_actions)
        return mimus__demo_stream_fail(stream, MIMUS_ERR_FORMAT,
                                       "a mask of %zu actions; the branches have %" PRIu32,
                                       agent->n_action_mask, layout->mask_actions);
    memset(out->legal, 1, layout->actions); /* bins always are */
    for (size_t a = 0; a < agent->n_action_mask; a++)
        out->legal[a] = !agent->action_mask[a];
    return MIMUS_OK;
}

/* An action of before there was a field for whole numbers. Whatever is none becomes a label out of
 * every head's range, for the audit to find. */
static uint16_t label_of_float(float stored) {
    const bool whole =
        stored >= 0 && stored < MIMUS__MAX_ACTIONS && stored == (float)(uint16_t)stored;
    return whole ? (uint16_t)stored : MIMUS__MAX_ACTIONS;
}

static uint16_t label_of_int(int32_t stored) {
    return stored >= 0 ? mimus__heads_label(stored) : MIMUS__MAX_ACTIONS;
}

static mimus_status check_action(const mimus__demo_layout *layout, const mimus__demo_stream *stream,
                                 size_t discrete, size_t continuous) {
    const uint32_t expected = layout->heads - layout->branches;
    if (discrete == layout->branches && continuous == expected)
        return MIMUS_OK;
    return mimus__demo_stream_fail(
        stream, MIMUS_ERR_FORMAT,
        "an action of %zu discrete and %zu continuous parts; they should "
        "be %" PRIu32 " and %" PRIu32,
        discrete, continuous, layout->branches, expected);
}

static mimus_status read_action(mimus__demo_record *out, const mimus__demo_layout *layout,
                                const mimus__demo_stream *stream,
                                const Mimus__Demo__Action *action) {
    mimus_status status = MIMUS_OK;
    static const Mimus__Demo__Action none = MIMUS__DEMO__ACTION__INIT;
    action = action != NULL ? action : &none;
    size_t discrete = action->n_discrete, continuous = action->n_continuous;
    const float *numbers = action->continuous;
    const bool old = discrete + continuous == 0;
    if (old && layout->branches > 0) {
        discrete = action->n_old_actions;
    } else if (old) {
        continuous = action->n_old_actions;
        numbers = action->old_actions;
    }
    out->acted = discrete + continuous > 0;
    for (uint32_t h = 0; h < layout->heads; h++)
        out->labels[h] = MIMUS_NO_LABEL;
    if (!out->acted)
        goto out;
    MIMUS_TRY(check_action(layout, stream, discrete, continuous));
    for (uint32_t h = 0; h < layout->branches; h++)
        out->labels[h] =
            old ? label_of_float(action->old_actions[h]) : label_of_int(action->discrete[h]);
    for (uint32_t h = layout->branches; h < layout->heads; h++) {
        out->numbers[h] = numbers[h - layout->branches];
        if (!layout->wishes.observing)
            out->labels[h] = mimus__bins_label(layout->wishes.bins, h, out->numbers[h]);
    }
out:
    return status;
}

mimus_status mimus__demo_record_read(mimus__demo_record *out, const mimus__demo_layout *layout,
                                     const mimus__demo_stream *stream,
                                     const Mimus__Demo__Pair *pair) {
    mimus_status status = MIMUS_OK;
    const Mimus__Demo__AgentInfo *agent = pair->agent;
    if (agent == NULL)
        return no_agent(stream);
    MIMUS_TRY(read_senses(out, layout, stream, agent));
    MIMUS_TRY(read_mask(out, layout, stream, agent));
    MIMUS_TRY(read_action(out, layout, stream, pair->action));
    out->done = agent->done || agent->max_step_reached;
    out->id = agent->id;
out:
    return status;
}

#include "csv_roles.h"

#include "alloc.h"
#include "reader.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEFAULTS = 8 };

typedef struct role_info {
    const char *key;
    const char *names[DEFAULTS + 1]; /* of columns; the first that is there, but all dones */
    const char *numbered[4];         /* else these with a number behind: "action_0", "action1" */
    uint32_t limit;                  /* columns */
} role_info;

static const role_info infos[MIMUS__CSV_ROLES] = {
    [MIMUS__CSV_SENSES] = {"senses", {NULL}, {NULL}, MIMUS__MAX_SENSES},
    [MIMUS__CSV_ACTIONS] = {"actions",
                            {"action", "actions", "act", "acts", "label", "labels", "target",
                             "class"},
                            {"action", "act", "label"},
                            MIMUS__MAX_HEADS},
    [MIMUS__CSV_MASKS] = {"masks",
                          {NULL},
                          {"action_mask", "mask", "legal"},
                          MIMUS__MAX_TOTAL_ACTIONS},
    [MIMUS__CSV_WEIGHTS] = {"weights", {"weight", "weights", "sample_weight"}, {NULL}, 1},
    [MIMUS__CSV_EPISODE] = {"episode", {"episode", "episode_id", "episode_index"}, {NULL}, 1},
    [MIMUS__CSV_STARTS] = {"starts", {"episode_start", "episode_starts"}, {NULL}, 1},
    [MIMUS__CSV_DONES] = {"dones",
                          {"done", "dones", "terminal", "terminals", "terminated", "truncated",
                           "timeout", "timeouts"},
                          {NULL},
                          DEFAULTS},
};

/* What says where episodes are, in the order of preference. */
static const mimus__csv_role bounds[] = {MIMUS__CSV_EPISODE, MIMUS__CSV_STARTS, MIMUS__CSV_DONES};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

/* No sense by itself: what the player did not see, or what only counts. */
static const char *const no_senses[] = {"",       "index",   "step",   "timestep",
                                        "reward", "rewards", "return", "returns"};

typedef struct choice {
    mimus__selection *of;
    const mimus__csv_table *table;
    const char *const *options;
} choice;

static const char *option(const choice *c, mimus__csv_role role) {
    return mimus__reader_option_value(c->options, infos[role].key);
}

/* ---------------------------------------------------------------- defaults */

/* "action_0", "action1". */
static bool is_numbered(const char *name, const char *stem) {
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0)
        return false;
    name += length;
    name += *name == '_';
    return *name != '\0' && strspn(name, "0123456789") == strlen(name);
}

static mimus_status add_numbered(choice *c, mimus__csv_role role, const char *stem) {
    mimus_status status = MIMUS_OK;
    for (uint32_t i = 0; i < c->table->columns; i++) {
        if (is_numbered(c->table->names[i], stem))
            MIMUS_TRY(mimus__selection_add(&c->of[role], i));
    }
out:
    return status;
}

static mimus_status add_named(choice *c, mimus__csv_role role, const char *name) {
    mimus_status status = MIMUS_OK;
    const bool all = role == MIMUS__CSV_DONES;
    for (uint32_t i = 0; i < c->table->columns && (all || c->of[role].count == 0); i++) {
        if (strcmp(c->table->names[i], name) == 0)
            MIMUS_TRY(mimus__selection_add(&c->of[role], i));
    }
out:
    return status;
}

static mimus_status add_default(choice *c, mimus__csv_role role) {
    mimus_status status = MIMUS_OK;
    const role_info *info = &infos[role];
    if (c->table->names == NULL)
        return MIMUS_OK;
    for (const char *const *name = info->names; *name != NULL; name++)
        MIMUS_TRY(add_named(c, role, *name));
    for (const char *const *stem = info->numbered; *stem != NULL && c->of[role].count == 0; stem++)
        MIMUS_TRY(add_numbered(c, role, *stem));
out:
    return status;
}

/* ------------------------------------------------------------------- roles */

static mimus_status choose(choice *c, mimus__csv_role role) {
    mimus_status status = MIMUS_OK;
    const mimus__csv_table *table = c->table;
    const char *text = option(c, role);
    const mimus__table_columns columns = {
        .where = table->path, .names = (const char *const *)table->names, .count = table->columns};
    if (text == NULL)
        MIMUS_TRY(add_default(c, role));
    else if (*text != '\0')
        MIMUS_TRY(mimus__selection_parse(&c->of[role], &columns, infos[role].key, text));
    if (c->of[role].count > infos[role].limit)
        status =
            mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option %s: %u columns; at most %u are possible",
                        table->path, infos[role].key, c->of[role].count, infos[role].limit);
out:
    return status;
}

/* The bound that is given counts, else the first that is there. */
static mimus_status choose_episodes(choice *c) {
    mimus_status status = MIMUS_OK;
    int given = 0;
    bool found = false;
    for (int b = 0; b < BOUNDS; b++) {
        const char *text = option(c, bounds[b]);
        given += text != NULL && *text != '\0';
    }
    if (given > 1)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: the options episode, starts and dones all say where episodes "
                           "begin; give one",
                           c->table->path);
    for (int b = 0; b < BOUNDS && !found; b++) {
        if (given > 0 && option(c, bounds[b]) == NULL)
            continue;
        MIMUS_TRY(choose(c, bounds[b]));
        found = c->of[bounds[b]].count > 0;
    }
    if (!found)
        mimus__watch_message(c->table->watch,
                             "%s: no column says where episodes begin: all samples are one",
                             c->table->path);
out:
    return status;
}

static mimus_status choose_actions(choice *c) {
    mimus_status status = MIMUS_OK;
    const mimus__csv_table *table = c->table;
    mimus__selection *actions = &c->of[MIMUS__CSV_ACTIONS];
    const uint32_t last = table->columns - 1;
    char column[96];
    MIMUS_TRY(choose(c, MIMUS__CSV_ACTIONS));
    if (actions->count == 0 && option(c, MIMUS__CSV_ACTIONS) == NULL && last > 0) {
        MIMUS_TRY(mimus__selection_add(actions, last));
        mimus__watch_message(table->watch,
                             "%s: no column is called action: the last, %s, is taken for it; the "
                             "option actions says otherwise",
                             table->path,
                             mimus__csv_table_column(table, last, column, sizeof column));
    }
    if (actions->count == 0)
        status =
            mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option actions: of %u columns none is left for it",
                        table->path, table->columns);
out:
    return status;
}

/* ------------------------------------------------------------------ senses */

/* Which other role each column has; SENSES: none. */
static void note_roles(const choice *c, mimus__csv_role *of) {
    for (uint32_t i = 0; i < c->table->columns; i++)
        of[i] = MIMUS__CSV_SENSES;
    for (mimus__csv_role role = MIMUS__CSV_ROLES - 1; role > MIMUS__CSV_SENSES; role--) {
        for (uint32_t i = 0; i < c->of[role].count; i++)
            of[c->of[role].column[i]] = role;
    }
}

/* Names of episodes' bounds are no senses either, whether they were needed or not. */
static bool is_no_sense(const char *name) {
    for (size_t i = 0; i < sizeof no_senses / sizeof *no_senses; i++) {
        if (strcasecmp(name, no_senses[i]) == 0)
            return true;
    }
    for (int b = 0; b < BOUNDS; b++) {
        for (const char *const *bound = infos[bounds[b]].names; *bound != NULL; bound++) {
            if (strcmp(*bound, name) == 0)
                return true;
        }
    }
    return false;
}

/* Every column without a role, but for those whose names say that no player senses them. */
static mimus_status default_senses(choice *c, const mimus__csv_role *of) {
    mimus_status status = MIMUS_OK;
    char *const *names = c->table->names;
    char left_out[200] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < c->table->columns; i++) {
        if (of[i] != MIMUS__CSV_SENSES)
            continue;
        if (names == NULL || !is_no_sense(names[i]))
            MIMUS_TRY(mimus__selection_add(&c->of[MIMUS__CSV_SENSES], i));
        else if (*names[i] != '\0' && length + strlen(names[i]) + 3 < sizeof left_out)
            length += (size_t)snprintf(left_out + length, sizeof left_out - length, "%s%s",
                                       length > 0 ? ", " : "", names[i]);
    }
    if (length > 0)
        mimus__watch_message(c->table->watch,
                             "%s: not among the senses: %s; the option senses takes them",
                             c->table->path, left_out);
out:
    return status;
}

/* A label that is a sense at the same time would be all that is learned. */
static mimus_status check_senses(const choice *c, const mimus__csv_role *of) {
    const mimus__selection *senses = &c->of[MIMUS__CSV_SENSES];
    char column[96];
    if (senses->count == 0 || senses->count > MIMUS__MAX_SENSES)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: option senses: %u of %u columns are left for it; 1 to %d are "
                           "possible",
                           c->table->path, senses->count, c->table->columns, MIMUS__MAX_SENSES);
    for (uint32_t i = 0; i < senses->count; i++) {
        if (of[senses->column[i]] == MIMUS__CSV_ACTIONS)
            return mimus__fail(
                MIMUS_ERR_ARGUMENT,
                "%s: %s is a sense and an action; the options senses and actions choose",
                c->table->path,
                mimus__csv_table_column(c->table, senses->column[i], column, sizeof column));
    }
    return MIMUS_OK;
}

static mimus_status choose_senses(choice *c) {
    mimus_status status = MIMUS_OK;
    mimus__csv_role *of = NULL;
    MIMUS_TRY(mimus__alloc(&of, c->table->columns, sizeof *of));
    note_roles(c, of);
    MIMUS_TRY(choose(c, MIMUS__CSV_SENSES));
    if (option(c, MIMUS__CSV_SENSES) == NULL)
        MIMUS_TRY(default_senses(c, of));
    MIMUS_TRY(check_senses(c, of));
out:
    free(of);
    return status;
}

/* ------------------------------------------------------------------- whole */

mimus_status mimus__csv_roles_choose(mimus__csv_roles *out, const mimus__csv_table *table,
                                     const char *const *options) {
    mimus_status status = MIMUS_OK;
    choice c = {.of = out->of, .table = table, .options = options};
    *out = (mimus__csv_roles){0};
    MIMUS_TRY(choose(&c, MIMUS__CSV_MASKS));
    MIMUS_TRY(choose(&c, MIMUS__CSV_WEIGHTS));
    MIMUS_TRY(choose_episodes(&c));
    MIMUS_TRY(choose_actions(&c));
    MIMUS_TRY(choose_senses(&c));
out:
    return status;
}

void mimus__csv_roles_clear(mimus__csv_roles *roles) {
    for (int i = 0; i < MIMUS__CSV_ROLES; i++)
        mimus__selection_clear(&roles->of[i]);
}

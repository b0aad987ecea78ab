#include "h5_layout.h"

#include "alloc.h"
#include "h5_column.h"
#include "reader.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 8,       /* of groups within a part */
    DATASETS = 4096, /* of one role */
    VISITS = 65536,  /* of objects, to find them: groups may lead in circles */
    DEFAULTS = 6,
    CONTENTS = 500, /* letters of what is there, in messages */
};

typedef struct role_info {
    const char *key;
    const char *defaults[DEFAULTS + 1]; /* the first that is there; of DONES, all that are */
    bool flat;                          /* of flat files only */
} role_info;

static const role_info roles[MIMUS__H5_ROLES] = {
    [MIMUS__H5_SENSES] = {"senses", {"observations", "obs", "senses", "states"}, false},
    [MIMUS__H5_ACTIONS] = {"actions", {"actions", "acts"}, false},
    [MIMUS__H5_MASKS] = {"masks",
                         {"action_masks", "action_mask", "infos/action_masks", "infos/action_mask"},
                         false},
    [MIMUS__H5_WEIGHTS] = {"weights", {"weights", "infos/weights"}, false},
    [MIMUS__H5_STARTS] = {"starts", {"episode_starts"}, true},
    [MIMUS__H5_EPISODES] = {"episode", {NULL}, true},
    [MIMUS__H5_DONES] = {"dones",
                         {"dones", "terminals", "timeouts", "terminations", "truncations"},
                         true},
};

const char *mimus__h5_role_key(mimus__h5_role role) {
    return roles[role].key;
}

const char *mimus__h5_layout_name(const mimus__h5_layout *layout, mimus__h5_role role,
                                  size_t index) {
    const mimus__h5_names *names = &layout->of[role];
    const char *path = names->name[index];
    for (const char *const *group = roles[role].defaults; *group != NULL; group++) {
        size_t length = strlen(*group);
        if (strncmp(path + 1, *group, length) == 0 && path[1 + length] == '/')
            return path + length + 2;
    }
    return names->count > 1 ? path + 1 : NULL;
}

typedef struct finder {
    mimus__h5_layout *layout;
    const mimus__h5_file *file;
    const char *const *options;
    const char *part; /* the first: it speaks for all */
    size_t visits;
} finder;

/* ---------------------------------------------------------------- datasets */

static mimus_status add_path(mimus__h5_names *to, const char *path, const finder *f) {
    mimus_status status = MIMUS_OK;
    if (to->count == DATASETS)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED, "%s: %s%s: is one of more than %d datasets",
                           f->file->path, f->part, path, DATASETS);
    MIMUS_TRY(mimus__grow(&to->name, &to->capacity, to->count + 1, sizeof *to->name));
    MIMUS_TRY(mimus__text_copy(&to->name[to->count], path));
    to->count++;
out:
    return status;
}

static mimus_status look(finder *f, const char *path, mimus__h5_kind *out) {
    mimus_status status = MIMUS_OK;
    char *whole = NULL;
    if (f->visits++ == VISITS)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: %s%s: is one of more than %d objects; do its groups lead in "
                           "circles?",
                           f->file->path, f->part, path, VISITS);
    MIMUS_TRY(mimus__text_format(&whole, "%s%s", f->part, path));
    MIMUS_TRY(mimus__h5_look(f->file, whole, out));
out:
    free(whole);
    return status;
}

static mimus_status list(const finder *f, const char *path, mimus__h5_names *out) {
    mimus_status status = MIMUS_OK;
    char *whole = NULL;
    bool tuple = true;
    MIMUS_TRY(mimus__text_format(&whole, "%s%s", f->part, path));
    MIMUS_TRY(mimus__h5_list(f->file, whole, out));
    for (size_t i = 0; i < out->count; i++)
        tuple = tuple && strncmp(out->name[i], "_index_", 7) == 0;
    if (tuple)
        mimus__h5_names_by_number(out);
out:
    free(whole);
    return status;
}

/* Add the dataset of that path, or all datasets of the group. */
static mimus_status add_all(finder *f, mimus__h5_names *to, const char *path, mimus__h5_kind kind,
                            int depth) {
    mimus_status status = MIMUS_OK;
    mimus__h5_names names = {0};
    char *member = NULL;
    if (kind == MIMUS__H5_DATASET)
        return add_path(to, path, f);
    if (kind != MIMUS__H5_GROUP)
        return MIMUS_OK; /* a named type, or a link that leads nowhere */
    if (depth == DEPTH)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: %s%s: is nested in more than %d groups; do they lead in circles?",
                           f->file->path, f->part, path, DEPTH);
    MIMUS_TRY(list(f, path, &names));
    for (size_t i = 0; i < names.count; i++) {
        free(member);
        MIMUS_TRY(mimus__text_format(&member, "%s/%s", path, names.name[i]));
        MIMUS_TRY(look(f, member, &kind));
        MIMUS_TRY(add_all(f, to, member, kind, depth + 1));
    }
out:
    free(member);
    mimus__h5_names_free(&names);
    return status;
}

/* ------------------------------------------------------------------- roles */

static const char *option(const finder *f, mimus__h5_role role) {
    return mimus__reader_option_value(f->options, roles[role].key);
}

static mimus_status not_there(const finder *f, mimus__h5_role role, const char *name) {
    char contents[CONTENTS];
    return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option %s: no \"%s\"%s%s; there is %s",
                       f->file->path, roles[role].key, name, *f->part != '\0' ? " in " : "",
                       f->part, mimus__h5_contents(f->file, f->part, contents, sizeof contents));
}

/* Where the one named `name` lies in a part: as it says or, of senses, in their usual group. */
static mimus_status find_named(finder *f, mimus__h5_role role, const char *name, char **path,
                               mimus__h5_kind *kind) {
    mimus_status status = MIMUS_OK;
    const char *const *group = roles[role].defaults;
    MIMUS_TRY(mimus__text_format(path, *name == '/' ? "%s" : "/%s", name));
    MIMUS_TRY(look(f, *path, kind));
    for (; role == MIMUS__H5_SENSES && *kind == MIMUS__H5_NOTHING && *group != NULL; group++) {
        free(*path);
        MIMUS_TRY(mimus__text_format(path, *name == '/' ? "/%s%s" : "/%s/%s", *group, name));
        MIMUS_TRY(look(f, *path, kind));
    }
    if (*kind == MIMUS__H5_NOTHING)
        status = not_there(f, role, name);
out:
    return status;
}

/* The datasets that an option names, with commas between them. */
static mimus_status add_named(finder *f, mimus__h5_role role, const char *text) {
    mimus_status status = MIMUS_OK;
    char *names = NULL, *path = NULL;
    MIMUS_TRY(mimus__text_copy(&names, text));
    for (char *name = names; name != NULL;) {
        mimus__h5_kind kind = MIMUS__H5_NOTHING;
        char *comma = strchr(name, ',');
        if (comma != NULL)
            *comma++ = '\0';
        free(path);
        path = NULL;
        MIMUS_TRY(find_named(f, role, name, &path, &kind));
        MIMUS_TRY(add_all(f, &f->layout->of[role], path, kind, 0));
        name = comma;
    }
out:
    free(names);
    free(path);
    return status;
}

/* The default datasets of a role. Of a group, all are taken. */
static mimus_status add_default(finder *f, mimus__h5_role role) {
    mimus_status status = MIMUS_OK;
    mimus__h5_names *to = &f->layout->of[role];
    char *path = NULL;
    for (const char *const *name = roles[role].defaults; *name != NULL; name++) {
        mimus__h5_kind kind = MIMUS__H5_NOTHING;
        free(path);
        MIMUS_TRY(mimus__text_format(&path, "/%s", *name));
        MIMUS_TRY(look(f, path, &kind));
        if (kind != MIMUS__H5_DATASET && kind != MIMUS__H5_GROUP)
            continue;
        MIMUS_TRY(add_all(f, to, path, kind, 0));
        if (role != MIMUS__H5_DONES && to->count > 0)
            break;
    }
out:
    free(path);
    return status;
}

static mimus_status find_role(finder *f, mimus__h5_role role) {
    const char *named = option(f, role);
    f->layout->named[role] = named != NULL && *named != '\0';
    if (named == NULL)
        return add_default(f, role);
    return *named != '\0' ? add_named(f, role, named) : MIMUS_OK;
}

static mimus_status require_role(finder *f, mimus__h5_role role) {
    mimus_status status = MIMUS_OK;
    char contents[CONTENTS], wanted[160];
    size_t length = 0;
    MIMUS_TRY(find_role(f, role));
    if (f->layout->of[role].count > 0)
        goto out;
    for (const char *const *name = roles[role].defaults; *name != NULL; name++)
        length += (size_t)snprintf(wanted + length, sizeof wanted - length, "%s%s",
                                   length > 0 ? ", " : "", *name);
    status = mimus__fail(MIMUS_ERR_DATA,
                         "%s: which dataset holds the %s%s%s? The option %s names it; expected "
                         "%s, found %s",
                         f->file->path, roles[role].key, *f->part != '\0' ? " of " : "", f->part,
                         roles[role].key, wanted,
                         mimus__h5_contents(f->file, f->part, contents, sizeof contents));
out:
    return status;
}

/* ------------------------------------------------------------------- masks */

static bool ends_in(const char *path, const char *name) {
    size_t length = strlen(path), end = strlen(name);
    return length > end && path[length - end - 1] == '/' && strcmp(path + length - end, name) == 0;
}

/* Environments often put the mask among the observations: it is none of them. */
static mimus_status take_mask_from_senses(finder *f) {
    mimus_status status = MIMUS_OK;
    mimus__h5_names *senses = &f->layout->of[MIMUS__H5_SENSES];
    mimus__h5_names *masks = &f->layout->of[MIMUS__H5_MASKS];
    size_t kept = 0;
    if (f->layout->named[MIMUS__H5_SENSES])
        return MIMUS_OK;
    for (size_t i = 0; i < senses->count; i++) {
        char *path = senses->name[i];
        bool mask = ends_in(path, "action_mask") || ends_in(path, "action_masks");
        if (mask && option(f, MIMUS__H5_MASKS) == NULL && masks->count == 0)
            MIMUS_TRY(add_path(masks, path, f));
        bool taken = masks->count == 1 && strcmp(masks->name[0], path) == 0;
        if (taken)
            free(path);
        else
            senses->name[kept++] = path;
    }
    senses->count = kept;
out:
    return status;
}

/* ------------------------------------------------------------------- parts */

/* Whether a name is a word of a group's episodes and a number. */
static bool is_part(const char *name, const char *word) {
    size_t length = strlen(word), digits;
    if (strncmp(name, word, length) != 0)
        return false;
    digits = strspn(name + length, "0123456789");
    return digits > 0 && name[length + digits] == '\0';
}

static mimus_status take_parts(mimus__h5_names *parts, const char *group, mimus__h5_names *names,
                               const char *word) {
    mimus_status status = MIMUS_OK;
    for (size_t i = 0; i < names->count; i++) {
        if (!is_part(names->name[i], word))
            continue;
        MIMUS_TRY(
            mimus__grow(&parts->name, &parts->capacity, parts->count + 1, sizeof *parts->name));
        MIMUS_TRY(mimus__text_format(&parts->name[parts->count], "%s/%s", group, names->name[i]));
        parts->count++;
    }
    mimus__h5_names_by_number(parts);
out:
    return status;
}

static mimus_status find_parts(finder *f) {
    static const char *const groups[] = {"", "/data"};
    static const char *const words[] = {"episode_", "demo_", "traj_"};
    mimus_status status = MIMUS_OK;
    mimus__h5_names *parts = &f->layout->parts;
    mimus__h5_names names = {0};
    for (size_t g = 0; g < sizeof groups / sizeof *groups && parts->count == 0; g++) {
        mimus__h5_kind kind = MIMUS__H5_NOTHING;
        MIMUS_TRY(mimus__h5_look(f->file, groups[g], &kind));
        if (kind != MIMUS__H5_GROUP)
            continue;
        mimus__h5_names_free(&names);
        MIMUS_TRY(mimus__h5_list(f->file, groups[g], &names));
        for (size_t w = 0; w < sizeof words / sizeof *words && parts->count == 0; w++)
            MIMUS_TRY(take_parts(parts, groups[g], &names, words[w]));
    }
out:
    mimus__h5_names_free(&names);
    return status;
}

/* Datasets that are named from the root on are of a flat file, whatever else there is. */
static bool names_from_root(const finder *f) {
    for (int role = 0; role < MIMUS__H5_ROLES; role++) {
        const char *named = option(f, (mimus__h5_role)role);
        if (named != NULL && *named == '/')
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ filter */

/* The names of demos in the list /mask/NAME, which is text of fixed length as robomimic writes it.
 */
static mimus_status read_filter(const mimus__h5_file *file, const char *path,
                                mimus__h5_names *out) {
    mimus_status status = MIMUS_OK;
    hsize_t count = 0;
    size_t bytes = 0;
    char *text = NULL;
    hid_t set = H5Dopen2(file->id, path, H5P_DEFAULT);
    hid_t type = set >= 0 ? H5Dget_type(set) : H5I_INVALID_HID;
    hid_t space = set >= 0 ? H5Dget_space(set) : H5I_INVALID_HID;
    if (type < 0 || space < 0)
        MIMUS_TRY(mimus__h5_fail("%s: %s: cannot be opened", file->path, path));
    bytes = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || bytes == 0 ||
        bytes > 256 || H5Sget_simple_extent_ndims(space) != 1 ||
        H5Sget_simple_extent_dims(space, &count, NULL) != 1 || count > MIMUS__H5_NAMES ||
        count * bytes > file->bytes * 64)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_UNSUPPORTED,
                              "%s: %s: is no list of names, texts of fixed length as robomimic "
                              "writes them",
                              file->path, path));
    MIMUS_TRY(mimus__alloc(&text, (size_t)count, bytes));
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
        MIMUS_TRY(mimus__h5_fail("%s: %s: cannot be read", file->path, path));
    MIMUS_TRY(mimus__grow(&out->name, &out->capacity, (size_t)count, sizeof *out->name));
    for (; out->count < count; out->count++)
        MIMUS_TRY(mimus__text_format(&out->name[out->count], "/data/%.*s", (int)bytes,
                                     text + out->count * bytes));
out:
    free(text);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (set >= 0)
        H5Dclose(set);
    return status;
}

static mimus_status no_filter(const finder *f, const char *name) {
    char contents[CONTENTS];
    return mimus__fail(
        MIMUS_ERR_ARGUMENT, "%s: option filter: no list \"%s\"; /mask of a robomimic file holds %s",
        f->file->path, name, mimus__h5_contents(f->file, "/mask", contents, sizeof contents));
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keep the parts that are listed. All of them must be there, or something else was meant. */
static mimus_status keep_listed(finder *f, const char *path, mimus__h5_names *listed) {
    mimus__h5_names *parts = &f->layout->parts;
    size_t kept = 0;
    if (listed->count > 0)
        qsort(listed->name, listed->count, sizeof *listed->name, compare_names);
    for (size_t i = 0; i < parts->count; i++) {
        char *part = parts->name[i];
        if (listed->count > 0 && bsearch(&part, listed->name, listed->count, sizeof *listed->name,
                                         compare_names) != NULL)
            parts->name[kept++] = part;
        else
            free(part);
    }
    parts->count = kept;
    if (kept < listed->count || kept == 0)
        return mimus__fail(MIMUS_ERR_DATA, "%s: %s: lists %zu demos, and %zu of them are there",
                           f->file->path, path, listed->count, kept);
    return MIMUS_OK;
}

static mimus_status apply_filter(finder *f) {
    mimus_status status = MIMUS_OK;
    const char *name = mimus__reader_option_value(f->options, "filter");
    mimus__h5_names listed = {0};
    mimus__h5_kind kind = MIMUS__H5_NOTHING;
    char *path = NULL;
    if (name == NULL || *name == '\0')
        return MIMUS_OK;
    MIMUS_TRY(mimus__text_format(&path, "/mask/%s", name));
    MIMUS_TRY(mimus__h5_look(f->file, path, &kind));
    if (kind != MIMUS__H5_DATASET || !f->layout->grouped)
        MIMUS_TRY(no_filter(f, name));
    MIMUS_TRY(read_filter(f->file, path, &listed));
    MIMUS_TRY(keep_listed(f, path, &listed));
out:
    mimus__h5_names_free(&listed);
    free(path);
    return status;
}

/* ------------------------------------------------------------------- whole */

void mimus__h5_layout_clear(mimus__h5_layout *layout) {
    mimus__h5_names_free(&layout->parts);
    for (int role = 0; role < MIMUS__H5_ROLES; role++)
        mimus__h5_names_free(&layout->of[role]);
}

static mimus_status find_flat_roles(finder *f) {
    mimus_status status = MIMUS_OK;
    int named = 0;
    for (mimus__h5_role role = MIMUS__H5_STARTS; role < MIMUS__H5_ROLES; role++) {
        const char *given = option(f, role);
        named += given != NULL && *given != '\0';
        if (given != NULL && *given != '\0' && f->layout->grouped)
            MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT,
                                  "%s: option %s: each episode has a group of its own here, as %s",
                                  f->file->path, roles[role].key, f->part));
    }
    if (named > 1)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_ARGUMENT,
                              "%s: the options starts, episode and dones all say where episodes "
                              "begin; give one",
                              f->file->path));
    for (mimus__h5_role role = MIMUS__H5_STARTS; role < MIMUS__H5_ROLES && !f->layout->grouped;
         role++) {
        const char *given = option(f, role);
        bool wanted = named > 0 ? given != NULL && *given != '\0' : true;
        if (wanted)
            MIMUS_TRY(find_role(f, role));
        if (f->layout->of[role].count > 0)
            break;
    }
out:
    return status;
}

mimus_status mimus__h5_layout_find(mimus__h5_layout *out, const mimus__h5_file *file,
                                   const char *const *options) {
    mimus_status status = MIMUS_OK;
    finder f = {.layout = out, .file = file, .options = options, .part = ""};
    *out = (mimus__h5_layout){0};
    if (!names_from_root(&f))
        MIMUS_TRY(find_parts(&f));
    out->grouped = out->parts.count > 0;
    MIMUS_TRY(apply_filter(&f));
    if (!out->grouped)
        MIMUS_TRY(add_path(&out->parts, "", &f));
    f.part = out->parts.name[0];
    MIMUS_TRY(require_role(&f, MIMUS__H5_SENSES));
    MIMUS_TRY(require_role(&f, MIMUS__H5_ACTIONS));
    MIMUS_TRY(find_role(&f, MIMUS__H5_MASKS));
    MIMUS_TRY(find_role(&f, MIMUS__H5_WEIGHTS));
    MIMUS_TRY(take_mask_from_senses(&f));
    MIMUS_TRY(find_flat_roles(&f));
out:
    return status;
}

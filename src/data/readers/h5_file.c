#include "h5_file.h"

#include "alloc.h"
#include "file.h"
#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- messages */

/* The innermost entry of the library's error stack is the first: what really went wrong. */
static herr_t take_reason(unsigned depth, const H5E_error2_t *entry, void *user) {
    const char **reason = user;
    if (depth == 0)
        *reason = entry->desc;
    return 0;
}

mimus_status mimus__h5_fail(const char *format, ...) {
    char text[768];
    const char *reason = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, (void *)&reason);
    return mimus__fail(MIMUS_ERR_FORMAT, "%s: %s", text,
                       reason != NULL && *reason != '\0' ? reason : "libhdf5 does not say why");
}

mimus_status mimus__h5_quiet_begin(mimus__h5_quiet *out) {
    *out = (mimus__h5_quiet){.on = true};
    if (H5open() < 0 || H5Eget_auto2(H5E_DEFAULT, &out->reporter, &out->data) < 0 ||
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return mimus__fail(MIMUS_ERR_MEMORY, "libhdf5 does not start");
    return MIMUS_OK;
}

void mimus__h5_quiet_end(mimus__h5_quiet *quiet) {
    if (quiet->on)
        H5Eset_auto2(H5E_DEFAULT, quiet->reporter, quiet->data);
    quiet->on = false;
}

/* ----------------------------------------------------------------- opening */

enum { SOFT_LINKS = 16 }; /* in a row: more are a circle */

/* Called where the library is about to open another file for a link: it must not. */
static herr_t stay(const char *parent_file, const char *parent_group, const char *child_file,
                   const char *child_object, unsigned *flags, hid_t access, void *user) {
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object;
    (void)flags, (void)access, (void)user;
    return -1;
}

static mimus_status measure(mimus__h5_file *file) {
    mimus_status status = MIMUS_OK;
    int descriptor = -1;
    struct stat info;
    MIMUS_TRY(mimus__file_open(&descriptor, file->path)); /* refuses pipes and devices */
    if (fstat(descriptor, &info) == 0)
        file->bytes = (uint64_t)info.st_size;
    close(descriptor);
out:
    return status;
}

mimus_status mimus__h5_open(mimus__h5_file *out, const char *path) {
    mimus_status status = MIMUS_OK;
    hid_t access = H5I_INVALID_HID;
    *out = (mimus__h5_file){.path = path, .id = H5I_INVALID_HID, .access = H5I_INVALID_HID};
    MIMUS_TRY(measure(out));
    MIMUS_TRY(mimus__h5_quiet_begin(&out->quiet));
    access = H5Pcreate(H5P_FILE_ACCESS);
    out->access = H5Pcreate(H5P_LINK_ACCESS);
    /* Locks would keep recordings on shared file systems from being read; who reads needs none. */
    if (access < 0 || out->access < 0 || H5Pset_file_locking(access, false, true) < 0 ||
        H5Pset_elink_cb(out->access, stay, NULL) < 0 || H5Pset_nlinks(out->access, SOFT_LINKS) < 0)
        MIMUS_TRY(mimus__h5_fail("%s", path));
    out->id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (out->id < 0)
        status = mimus__h5_fail("%s: cannot be opened as HDF5", path);
out:
    if (access >= 0)
        H5Pclose(access);
    return status;
}

void mimus__h5_close(mimus__h5_file *file) {
    if (file->path == NULL)
        return;
    if (file->id > 0)
        H5Fclose(file->id);
    if (file->access > 0)
        H5Pclose(file->access);
    mimus__h5_quiet_end(&file->quiet);
    *file = (mimus__h5_file){0};
}

/* ----------------------------------------------------------------- objects */

static const char *root_or(const char *path) {
    return *path != '\0' ? path : "/";
}

static mimus_status refuse_link(const mimus__h5_file *file, const char *path, size_t bytes) {
    char value[4096];
    const char *other = NULL, *object = NULL;
    if (bytes <= sizeof value && H5Lget_val(file->id, path, value, bytes, file->access) >= 0 &&
        H5Lunpack_elink_val(value, bytes, NULL, &other, &object) >= 0)
        return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                           "%s: %s: is a link into another file, %s, and such are not followed; "
                           "h5copy -f ext makes one file of them",
                           file->path, path, other);
    return mimus__fail(MIMUS_ERR_UNSUPPORTED,
                       "%s: %s: is a link into another file, and such are not followed; h5copy -f "
                       "ext makes one file of them",
                       file->path, path);
}

/* Whether there is a link of that name in a group that is there. */
static mimus_status look_at_link(const mimus__h5_file *file, const char *path, bool *out) {
    H5L_info_t info;
    htri_t exists = H5Lexists(file->id, path, file->access);
    *out = exists > 0;
    if (exists < 0)
        return mimus__h5_fail("%s: %s: cannot be looked up", file->path, path);
    if (!*out)
        return MIMUS_OK;
    if (H5Lget_info(file->id, path, &info, file->access) < 0)
        return mimus__h5_fail("%s: %s: cannot be looked up", file->path, path);
    if (info.type == H5L_TYPE_HARD || info.type == H5L_TYPE_SOFT)
        return MIMUS_OK;
    return refuse_link(file, path, info.type == H5L_TYPE_EXTERNAL ? info.u.val_size : SIZE_MAX);
}

static mimus_status look_at_object(const mimus__h5_file *file, const char *path,
                                   mimus__h5_kind *out) {
    htri_t exists = H5Oexists_by_name(file->id, path, file->access);
    if (exists < 0)
        return mimus__h5_fail("%s: %s: cannot be opened", file->path, path);
    if (exists == 0)
        return MIMUS_OK;
    hid_t object = H5Oopen(file->id, path, file->access);
    if (object < 0)
        return mimus__h5_fail("%s: %s: cannot be opened", file->path, path);
    H5I_type_t type = H5Iget_type(object);
    *out = type == H5I_GROUP     ? MIMUS__H5_GROUP
           : type == H5I_DATASET ? MIMUS__H5_DATASET
                                 : MIMUS__H5_OTHER;
    H5Oclose(object);
    return MIMUS_OK;
}

mimus_status mimus__h5_look(const mimus__h5_file *file, const char *path, mimus__h5_kind *out) {
    mimus_status status = MIMUS_OK;
    char *part = NULL;
    bool there = true;
    *out = MIMUS__H5_NOTHING;
    if (*path == '\0') {
        *out = MIMUS__H5_GROUP;
        return MIMUS_OK;
    }
    /* Group by group, for a link of any of them may lead out of the file, and none may be asked for
     * what a dataset holds. */
    MIMUS_TRY(mimus__text_copy(&part, path));
    for (char *slash = part; slash != NULL && there;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL)
            *slash = '\0';
        *out = MIMUS__H5_NOTHING;
        MIMUS_TRY(look_at_link(file, part, &there));
        if (there)
            MIMUS_TRY(look_at_object(file, part, out));
        if (slash != NULL) {
            there = *out == MIMUS__H5_GROUP;
            *out = MIMUS__H5_NOTHING;
            *slash = '/';
        }
    }
out:
    free(part);
    return status;
}

/* ------------------------------------------------------------------- names */

void mimus__h5_names_free(mimus__h5_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (mimus__h5_names){0};
}

typedef struct listing {
    mimus__h5_names *names;
    mimus_status status;
} listing;

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info, void *user) {
    (void)group, (void)info;
    listing *l = user;
    mimus_status status = MIMUS_OK;
    if (l->names->count == MIMUS__H5_NAMES)
        MIMUS_TRY(
            mimus__fail(MIMUS_ERR_UNSUPPORTED, "a group of more than %d names", MIMUS__H5_NAMES));
    MIMUS_TRY(mimus__grow(&l->names->name, &l->names->capacity, l->names->count + 1,
                          sizeof *l->names->name));
    MIMUS_TRY(mimus__text_copy(&l->names->name[l->names->count], name));
    l->names->count++;
out:
    l->status = status;
    return status == MIMUS_OK ? 0 : -1;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

mimus_status mimus__h5_list(const mimus__h5_file *file, const char *group, mimus__h5_names *out) {
    mimus_status status = MIMUS_OK;
    listing l = {.names = out, .status = MIMUS_OK};
    *out = (mimus__h5_names){0};
    hid_t id = H5Oopen(file->id, root_or(group), file->access);
    if (id < 0)
        MIMUS_TRY(mimus__h5_fail("%s: %s: cannot be opened", file->path, root_or(group)));
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_name, &l) < 0) {
        status = l.status != MIMUS_OK
                     ? mimus__fail_prefix(l.status, "%s: %s", file->path, root_or(group))
                     : mimus__h5_fail("%s: %s: cannot be listed", file->path, root_or(group));
        goto out;
    }
    if (out->count > 0)
        qsort(out->name, out->count, sizeof *out->name, compare_names);
out:
    if (id >= 0)
        H5Oclose(id);
    if (status != MIMUS_OK)
        mimus__h5_names_free(out);
    return status;
}

/* The number at the end of a name, its digits without zeros before them. */
static const char *number_of(const char *name, size_t *digits) {
    const char *end = name + strlen(name), *begin = end;
    while (begin > name && isdigit((unsigned char)begin[-1]))
        begin--;
    while (*begin == '0' && begin + 1 < end)
        begin++;
    *digits = (size_t)(end - begin);
    return begin;
}

static int compare_numbers(const void *a, const void *b) {
    size_t digits_a, digits_b;
    const char *number_a = number_of(*(char *const *)a, &digits_a);
    const char *number_b = number_of(*(char *const *)b, &digits_b);
    if (digits_a != digits_b)
        return digits_a < digits_b ? -1 : 1;
    int order = strcmp(number_a, number_b);
    return order != 0 ? order : compare_names(a, b);
}

void mimus__h5_names_by_number(mimus__h5_names *names) {
    if (names->count > 0)
        qsort(names->name, names->count, sizeof *names->name, compare_numbers);
}

/* -------------------------------------------------------------- attributes */

static mimus_status read_variable(hid_t attribute, hid_t type, char **out) {
    mimus_status status = MIMUS_OK;
    char *text = NULL;
    hid_t memory = H5Tcopy(H5T_C_S1);
    if (memory >= 0 && H5Tset_size(memory, H5T_VARIABLE) >= 0 &&
        H5Tset_cset(memory, H5Tget_cset(type)) >= 0 && H5Aread(attribute, memory, &text) >= 0 &&
        text != NULL && strlen(text) <= MIMUS__H5_TEXT_LIMIT)
        status = mimus__text_copy(out, text);
    if (text != NULL)
        H5free_memory(text);
    if (memory >= 0)
        H5Tclose(memory);
    return status;
}

static mimus_status read_fixed(hid_t attribute, hid_t type, char **out) {
    mimus_status status = MIMUS_OK;
    size_t bytes = H5Tget_size(type);
    if (bytes == 0 || bytes > MIMUS__H5_TEXT_LIMIT)
        return MIMUS_OK;
    MIMUS_TRY(mimus__alloc(out, bytes + 1, 1));
    if (H5Aread(attribute, type, *out) < 0) {
        free(*out);
        *out = NULL;
    }
out:
    return status;
}

mimus_status mimus__h5_attribute(const mimus__h5_file *file, const char *path, const char *name,
                                 char **out) {
    mimus_status status = MIMUS_OK;
    hid_t attribute = H5I_INVALID_HID, type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    *out = NULL;
    if (H5Aexists_by_name(file->id, root_or(path), name, file->access) <= 0)
        return MIMUS_OK;
    attribute = H5Aopen_by_name(file->id, root_or(path), name, H5P_DEFAULT, file->access);
    if (attribute < 0)
        goto out;
    type = H5Aget_type(attribute);
    space = H5Aget_space(attribute);
    if (type < 0 || space < 0 || H5Tget_class(type) != H5T_STRING ||
        H5Sget_simple_extent_npoints(space) != 1)
        goto out;
    status = H5Tis_variable_str(type) > 0 ? read_variable(attribute, type, out)
                                          : read_fixed(attribute, type, out);
out:
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return status;
}

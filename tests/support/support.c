#include "support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int test_run(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    int ran = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static char folder[256];
static pid_t folder_owner;

const char *test_folder(void) {
    if (folder_owner != getpid()) { /* check forks: a folder for each process */
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/mimus-test-XXXXXX", base != NULL ? base : "/tmp");
        if (mkdtemp(folder) == NULL) {
            perror(folder);
            abort();
        }
        folder_owner = getpid();
    }
    return folder;
}

const char *test_folder_path(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

void test_folder_remove(void) {
    if (folder_owner == getpid()) {
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        folder_owner = 0;
    }
}

void test_file_write(const char *path, const void *bytes, size_t count) {
    remove(path); /* some file systems sync a file that was cut to nothing */
    FILE *stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, count, stream), count);
    ck_assert_int_eq(fclose(stream), 0);
}

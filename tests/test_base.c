/* The base layer: messages, memory, numbers, files. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): O_TMPFILE needs it */
#define _GNU_SOURCE
#include "support.h"

#include "alloc.h"
#include "file.h"
#include "json.h"
#include "rng.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(failure_keeps_one_line) {
    ck_assert_int_eq(mimus__fail(MIMUS_ERR_DATA, "row %d:\n%s", 7, "bad\tsense"), MIMUS_ERR_DATA);
    ck_assert_str_eq(mimus_last_error(), "row 7: bad sense");
    mimus__fail_prefix(MIMUS_ERR_DATA, "%s", "file.rec");
    ck_assert_str_eq(mimus_last_error(), "file.rec: row 7: bad sense");
    ck_assert_str_eq(mimus_status_text(MIMUS_ERR_NO_DEVICE), "no OpenCL device");
}
END_TEST

START_TEST(growing_keeps_content_and_zeroes_the_rest) {
    uint32_t *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        test_ok(mimus__grow(&array, &capacity, i + 1, sizeof *array));
        ck_assert_uint_eq(array[i], 0);
        array[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(array[i], i);
    test_fails(mimus__grow(&array, &capacity, SIZE_MAX / 2, sizeof *array), MIMUS_ERR_MEMORY,
               "cannot allocate");
    ck_assert_uint_eq(array[999], 999);
    free(array);
}
END_TEST

/* Known answers of Random123's kat_vectors for philox4x32-10. */
START_TEST(philox_gives_the_published_answers) {
    mimus__philox zero = {{0, 0, 0, 0}};
    mimus__philox got = mimus__philox4x32(zero, 0, 0);
    const uint32_t want0[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got.word[i], want0[i]);
    mimus__philox pi = {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
    got = mimus__philox4x32(pi, 0xa4093822, 0x299f31d0);
    const uint32_t want1[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got.word[i], want1[i]);
}
END_TEST

START_TEST(bounded_numbers_stay_below_and_cover) {
    mimus__rng rng = {.seed = 5, .stream = 1};
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint64_t value = mimus__rng_below(&rng, 7);
        ck_assert_uint_lt(value, 7);
        seen[value]++;
        double uniform = mimus__rng_uniform(&rng);
        ck_assert(uniform >= 0 && uniform < 1);
    }
    for (int i = 0; i < 7; i++) /* expectation 1000, standard deviation 29 */
        ck_assert(seen[i] > 850 && seen[i] < 1150);
}
END_TEST

START_TEST(numbers_are_whole_strings) {
    uint64_t u;
    double d;
    ck_assert(mimus__text_to_u64("18446744073709551615", &u) && u == UINT64_MAX);
    const char *not_u64[] = {"", "-1", " 1", "1 ", "1x", "18446744073709551616", "+1"};
    for (size_t i = 0; i < sizeof not_u64 / sizeof *not_u64; i++)
        ck_assert_msg(!mimus__text_to_u64(not_u64[i], &u), "\"%s\"", not_u64[i]);
    ck_assert(mimus__text_to_double("-1.5e-3", &d) && d == -1.5e-3);
    ck_assert(mimus__text_to_double("1e-400", &d)); /* underflow is a small number */
    const char *not_double[] = {"", "nan", "inf", "1e999", "1.5x", " 1", "--1"};
    for (size_t i = 0; i < sizeof not_double / sizeof *not_double; i++)
        ck_assert_msg(!mimus__text_to_double(not_double[i], &d), "\"%s\"", not_double[i]);
}
END_TEST

START_TEST(a_file_is_replaced_whole_or_not_at_all) {
    char path[512], deep[600];
    snprintf(path, sizeof path, "%s", test_folder_path("value.txt"));
    test_ok(mimus__file_replace(path, "old", 3));
    mimus__file_writer writer;
    test_ok(mimus__file_writer_open(&writer, path));
    fputs("half of the new", writer.stream);
    mimus__file_writer_abort(&writer);
    char *content;
    size_t bytes;
    test_ok(mimus__file_read(path, 100, &content, &bytes));
    ck_assert_str_eq(content, "old");
    free(content);
    test_ok(mimus__file_replace(path, "new content", 11));
    test_ok(mimus__file_read(path, 11, &content, &bytes));
    ck_assert_str_eq(content, "new content");
    ck_assert_uint_eq(bytes, 11);
    free(content);
    test_fails(mimus__file_read(path, 10, &content, &bytes), MIMUS_ERR_FORMAT, "more than 10");
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0400, 0400);
    snprintf(deep, sizeof deep, "%s/a/b/c", test_folder());
    test_fails(mimus__file_replace(deep, "", 0), MIMUS_ERR_IO, "cannot write");
    test_ok(mimus__file_make_folder(deep));
    test_ok(mimus__file_make_folder(deep));
    ck_assert(mimus__file_is_folder(deep));
    test_fails(mimus__file_make_folder(path), MIMUS_ERR_IO, "cannot make the folder: File exists");
    ck_assert_int_eq(symlink("nowhere", test_folder_path("dangling")), 0);
    test_fails(mimus__file_make_folder(test_folder_path("dangling")), MIMUS_ERR_IO,
               "cannot make the folder: File exists");
    test_folder_remove();
    ck_assert(!mimus__file_exists(path));
}
END_TEST

/* A rename onto a device, a pipe or a link would put a file in its place. */
START_TEST(only_regular_files_are_read_and_replaced) {
    char pipe[512], link[512], target[512], dangling[512];
    snprintf(pipe, sizeof pipe, "%s", test_folder_path("pipe"));
    snprintf(link, sizeof link, "%s", test_folder_path("link"));
    snprintf(target, sizeof target, "%s", test_folder_path("target"));
    snprintf(dangling, sizeof dangling, "%s", test_folder_path("dangling"));
    struct stat info;
    int descriptor;
    ck_assert_int_eq(mkfifo(pipe, 0666), 0);
    test_fails(mimus__file_replace(pipe, "x", 1), MIMUS_ERR_IO, "not a regular file");
    ck_assert_int_eq(lstat(pipe, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
    test_fails(mimus__file_open(&descriptor, pipe), MIMUS_ERR_IO, "not a regular file");
    test_fails(mimus__file_open(&descriptor, test_folder()), MIMUS_ERR_IO, "Is a directory");
    test_fails(mimus__file_open(&descriptor, target), MIMUS_ERR_IO, "No such file");
    test_fails(mimus__file_replace(test_folder(), "x", 1), MIMUS_ERR_IO, "Is a directory");
    test_ok(mimus__file_replace(target, "old", 3));
    ck_assert_int_eq(symlink("target", link), 0);
    test_ok(mimus__file_replace(link, "longer", 6));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(target, &info), 0);
    ck_assert_int_eq((int)info.st_size, 6);
    test_ok(mimus__file_open(&descriptor, link));
    close(descriptor);
    ck_assert_int_eq(symlink("nowhere", dangling), 0);
    test_fails(mimus__file_replace(dangling, "x", 1), MIMUS_ERR_IO, "leads nowhere");
    test_folder_remove();
}
END_TEST

/* "" + "/name" is a file in the root. */
START_TEST(an_empty_name_is_refused) {
    test_fails(mimus__file_replace("", "x", 1), MIMUS_ERR_IO, "empty");
    test_fails(mimus__file_make_folder(""), MIMUS_ERR_IO, "empty");
}
END_TEST

/* /dev/full gives ENOSPC at the first flush: the error must come out of commit. */
START_TEST(a_full_disk_is_an_error) {
    mimus__file_writer writer;
    const char *path = test_folder_path("full");
    test_ok(mimus__file_replace(path, "old", 3));
    test_ok(mimus__file_writer_open(&writer, path));
    ck_assert_ptr_nonnull(freopen("/dev/full", "wb", writer.stream));
    fputs("new", writer.stream);
    test_fails(mimus__file_writer_commit(&writer), MIMUS_ERR_IO, "No space left");
    char *content;
    size_t bytes;
    test_ok(mimus__file_read(path, 100, &content, &bytes));
    ck_assert_str_eq(content, "old");
    free(content);
    test_folder_remove();
}
END_TEST

/* From now on this process's file systems know no files without a name, as NFS does not. */
static void forbid_unnamed_files(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
    ck_assert_int_lt(open(test_folder(), O_TMPFILE | O_RDWR, 0666), 0);
}

static size_t entries(void) {
    size_t count = 0;
    DIR *folder = opendir(test_folder());
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count - 2;
}

static void holds(const char *path, const char *expected) {
    char *content;
    size_t bytes;
    test_ok(mimus__file_read(path, 100, &content, &bytes));
    ck_assert_str_eq(content, expected);
    free(content);
}

/* One writer is killed with an open file, others go on beside it. */
static void check_writers(size_t entries_of_one) {
    char path[512];
    snprintf(path, sizeof path, "%s", test_folder_path("value"));
    mimus__file_writer first, second;
    int outcome;
    for (int round = 0; round < 2; round++) { /* it is made, then replaced */
        pid_t child = fork();
        if (child == 0) {
            if (mimus__file_writer_open(&first, path) == MIMUS_OK)
                kill(getpid(), SIGKILL);
            _exit(1);
        }
        ck_assert_int_eq(waitpid(child, &outcome, 0), child);
        ck_assert(WIFSIGNALED(outcome));
        const size_t there = round > 0;
        ck_assert_uint_eq(entries(), there + entries_of_one);
        test_ok(mimus__file_writer_open(&first, path)); /* sweeps */
        ck_assert_uint_eq(entries(), there + entries_of_one);
        test_ok(mimus__file_writer_open(&second, path)); /* and spares the living */
        ck_assert_uint_eq(entries(), there + 2 * entries_of_one);
        fputs("second", second.stream);
        test_ok(mimus__file_writer_commit(&second));
        holds(path, "second");
        fputs("first", first.stream);
        test_ok(mimus__file_writer_commit(&first));
        holds(path, "first");
        ck_assert_uint_eq(entries(), 1);
    }
}

START_TEST(a_killed_writer_leaves_nothing) {
    check_writers(0);
}
END_TEST

START_TEST(a_killed_writer_leaves_nothing_for_long_without_unnamed_files) {
    forbid_unnamed_files();
    check_writers(1);
}
END_TEST

/* What a kill between a file's two names would leave goes, what looks a little like it stays. */
START_TEST(only_temporary_names_are_swept) {
    static const char *const swept[] = {"value.mimus-1f-2e", "value.mimus-0-0"};
    static const char *const kept[] = {"value.backup",     "value.mimus-",      "value.mimus-1",
                                       "value.mimus-1-",   "value.mimus-1-2.x", "value.mimus-a-g",
                                       "other.mimus-1f-2e"};
    for (size_t i = 0; i < sizeof swept / sizeof *swept; i++)
        test_file_write(test_folder_path(swept[i]), "x", 1);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        test_file_write(test_folder_path(kept[i]), "x", 1);
    test_ok(mimus__file_replace(test_folder_path("value"), "new", 3));
    for (size_t i = 0; i < sizeof swept / sizeof *swept; i++)
        ck_assert_msg(!mimus__file_exists(test_folder_path(swept[i])), "%s", swept[i]);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        ck_assert_msg(mimus__file_exists(test_folder_path(kept[i])), "%s", kept[i]);
}
END_TEST

START_TEST(json_numbers_come_back_and_read_well) {
    const double cases[] = {0.1,     1e-8,   0.30000000000000004,
                            1.0 / 3, 5e-324, 1.7976931348623157e308};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *value = json_pack("[f, i]", cases[i], 7), *back;
        char *text;
        test_ok(mimus__json_text(&text, value, JSON_COMPACT));
        if (i == 0)
            ck_assert_str_eq(text, "[0.1,7]");
        test_ok(mimus__json_parse(&back, text, strlen(text), "x"));
        ck_assert(json_real_value(json_array_get(back, 0)) == cases[i]);
        json_decref(back);
        json_decref(value);
        free(text);
    }
    char *text;
    json_t *deep =
        json_pack("{s: f, s: [{s: [f]}], s: f}", "a", 0.5, "b", "c", 0.1 + 0.2, "d", 0.25);
    json_t *again;
    test_ok(mimus__json_text(&text, deep, 0));
    test_ok(mimus__json_parse(&again, text, strlen(text), "x"));
    ck_assert(json_equal(again, deep));
    json_decref(again);
    json_decref(deep);
    free(text);
    test_fails(mimus__json_text(&text, NULL, 0), MIMUS_ERR_MEMORY, "cannot serialise");
}
END_TEST

START_TEST(json_numbers_are_rounded_for_people) {
    json_t *value = json_pack("{s:f, s:[f, f, i], s:{s:f}}", "sum", 0.1 + 0.2, "list", (double)0.1f,
                              1.0 / 3, 7, "in", "deep", 6.02214076e23);
    char *text;
    mimus__json_round(value);
    test_ok(mimus__json_text(&text, value, JSON_COMPACT));
    ck_assert_str_eq(text, "{\"sum\":0.3,\"list\":[0.100000001,0.333333333,7],"
                           "\"in\":{\"deep\":6.02214076e23}}");
    free(text);
    json_decref(value);
}
END_TEST

START_TEST(json_errors_say_where_and_what) {
    json_t *value;
    test_fails(mimus__json_parse(&value, "{\"a\": }", 7, "x.json"), MIMUS_ERR_FORMAT,
               "x.json: not valid JSON: line 1");
    test_fails(mimus__json_parse(&value, "{\"a\":1,\"a\":2}", 13, "x.json"), MIMUS_ERR_FORMAT,
               "duplicate");
    test_ok(mimus__json_parse(&value, "{\"a\":1,\"b\":\"t\",\"c\":-2}", 22, "x.json"));
    uint64_t u;
    const char *text;
    test_ok(mimus__json_get_u64(value, "a", "x", &u));
    ck_assert_uint_eq(u, 1);
    test_fails(mimus__json_get_u64(value, "c", "x", &u), MIMUS_ERR_FORMAT, "0 or more");
    test_fails(mimus__json_get_u64(value, "b", "x", &u), MIMUS_ERR_FORMAT, "is a string");
    test_ok(mimus__json_get_string(value, "b", "x", &text));
    ck_assert_str_eq(text, "t");
    test_fails(mimus__json_get_string(value, "z", "x", &text), MIMUS_ERR_FORMAT, "is nothing");
    ck_assert(json_is_null(mimus__json_number(0.0 / 0.0)));
    json_decref(value);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base");
    TCase *all = tcase_create("base");
    tcase_add_checked_fixture(all, NULL, test_folder_remove);
    tcase_add_test(all, failure_keeps_one_line);
    tcase_add_test(all, growing_keeps_content_and_zeroes_the_rest);
    tcase_add_test(all, philox_gives_the_published_answers);
    tcase_add_test(all, bounded_numbers_stay_below_and_cover);
    tcase_add_test(all, numbers_are_whole_strings);
    tcase_add_test(all, a_file_is_replaced_whole_or_not_at_all);
    tcase_add_test(all, only_regular_files_are_read_and_replaced);
    tcase_add_test(all, an_empty_name_is_refused);
    tcase_add_test(all, a_full_disk_is_an_error);
    tcase_add_test(all, a_killed_writer_leaves_nothing);
    tcase_add_test(all, a_killed_writer_leaves_nothing_for_long_without_unnamed_files);
    tcase_add_test(all, only_temporary_names_are_swept);
    tcase_add_test(all, json_numbers_come_back_and_read_well);
    tcase_add_test(all, json_numbers_are_rounded_for_people);
    tcase_add_test(all, json_errors_say_where_and_what);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

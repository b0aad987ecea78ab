/* Event files: held against bytes that TensorBoard's own writer wrote. tests/oracles has what its
 * own reader makes of ours. */
#include "support.h"

#include "crc32c.h"
#include "file.h"
#include "tensorboard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By tensorboard 2.21's RecordWriter: the version, loss/train 0.75 at step 5, 0.5 at step 9. */
static const char theirs[] =
    "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00\x00\x20\x40\xfc\x54"
    "\xd9\x41\x1a\x0d\x62\x72\x61\x69\x6e\x2e\x45\x76\x65\x6e\x74\x3a\x32\x2b\x35"
    "\x31\x10\x20\x00\x00\x00\x00\x00\x00\x00\x29\xed\xa9\x50\x09\x00\x00\x60\x40"
    "\xfc\x54\xd9\x41\x10\x05\x2a\x13\x0a\x11\x0a\x0a\x6c\x6f\x73\x73\x2f\x74\x72"
    "\x61\x69\x6e\x15\x00\x00\x40\x3f\x4c\xc5\xee\x27\x20\x00\x00\x00\x00\x00\x00"
    "\x00\x29\xed\xa9\x50\x09\x00\x00\xa0\x40\xfc\x54\xd9\x41\x10\x09\x2a\x13\x0a"
    "\x11\x0a\x0a\x6c\x6f\x73\x73\x2f\x74\x72\x61\x69\x6e\x15\x00\x00\x00\x3f\xb4"
    "\xd5\x8e\x91";
enum { VERSION = 40, FIRST = 88, SECOND = 136 }; /* where its records end */
static const char their_name[] = "events.out.tfevents.0000000001.host.1";

static char folder[512];
static json_t *config;

static void setup(void) {
    snprintf(folder, sizeof folder, "%s", test_folder());
    config = json_pack("{s:i, s:[i,i]}", "batch", 128, "hidden", 16, 8);
    ck_assert_ptr_nonnull(config);
}

static void teardown(void) {
    json_decref(config);
    test_folder_remove();
}

static size_t length_of(const char *path) {
    char *content;
    size_t bytes;
    test_ok(mimus__file_read(path, SIZE_MAX, &content, &bytes));
    free(content);
    return bytes;
}

static uint64_t little(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Whether the record's message holds these bytes. */
static bool holds(const unsigned char *message, uint64_t length, const void *part, size_t bytes) {
    for (uint64_t i = 0; i + bytes <= length; i++) {
        if (memcmp(message + i, part, bytes) == 0)
            return true;
    }
    return false;
}

/* The records of a file that hold `part`; all of them have to be framed right. */
static size_t count_records(const char *path, const void *part, size_t bytes) {
    char *content;
    size_t all, at = 0, found = 0;
    test_ok(mimus__file_read(path, SIZE_MAX, &content, &all));
    while (at < all) {
        const unsigned char *record = (const unsigned char *)content + at;
        ck_assert_uint_le(at + 16, all);
        uint64_t length = little(record, 8);
        ck_assert_uint_le(length, all - at - 16);
        found += holds(record + 12, length, part, bytes);
        at += (size_t)length + 16;
    }
    free(content);
    return found;
}

/* A summary with this tag and value, as it is encoded. */
static size_t count_scalars(const char *path, const char *tag, float value) {
    unsigned char part[128];
    size_t length = strlen(tag);
    part[0] = 0x0a;
    part[1] = (unsigned char)length;
    memcpy(part + 2, tag, length);
    part[2 + length] = 0x15;
    memcpy(part + 3 + length, &value, 4); /* little-endian here and there */
    return count_records(path, part, length + 7);
}

/* RFC 3720, section B.4; and the check value of the catalogue of CRC algorithms. */
START_TEST(the_crc_gives_the_published_answers) {
    unsigned char bytes[32] = {0};
    ck_assert_uint_eq(mimus__crc32c(bytes, 32), 0x8A9136AA);
    memset(bytes, 0xFF, 32);
    ck_assert_uint_eq(mimus__crc32c(bytes, 32), 0x62A8AB43);
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    ck_assert_uint_eq(mimus__crc32c(bytes, 32), 0x46DD794E);
    ck_assert_uint_eq(mimus__crc32c("123456789", 9), 0xE3069283);
    ck_assert_uint_eq(mimus__crc32c("", 0), 0);
}
END_TEST

/* Where TensorBoard's own writer put the records, ours cuts between them. */
START_TEST(later_steps_and_torn_records_are_cut_off) {
    const struct {
        size_t bytes;
        uint64_t step;
        size_t kept;
    } cases[] = {{SECOND, 9, SECOND},
                 {SECOND, 8, FIRST},
                 {SECOND, 4, VERSION},
                 {SECOND - 1, 9, FIRST},
                 {FIRST + 7, 9, FIRST},
                 {FIRST + 12, 9, FIRST},
                 {VERSION + 11, 9, VERSION},
                 {5, 9, 0},
                 {0, 9, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path;
        const char *old = test_folder_path(their_name);
        test_file_write(old, theirs, cases[i].bytes);
        test_ok(mimus__tensorboard_begin(&path, folder, cases[i].step, config));
        ck_assert_uint_eq(length_of(old), cases[i].kept);
        unlink(path);
        free(path);
    }
}
END_TEST

START_TEST(what_is_damaged_is_cut_off) {
    for (size_t at = VERSION; at < FIRST; at++) {
        char *path, bytes[SECOND];
        const char *old = test_folder_path(their_name);
        memcpy(bytes, theirs, SECOND);
        bytes[at] ^= 1;
        test_file_write(old, bytes, SECOND);
        test_ok(mimus__tensorboard_begin(&path, folder, 9, config));
        ck_assert_msg(length_of(old) == VERSION, "byte %zu", at);
        unlink(path);
        free(path);
    }
}
END_TEST

START_TEST(a_file_begins_with_version_start_and_settings) {
    char *path;
    test_ok(mimus__tensorboard_begin(&path, folder, 0, config));
    ck_assert_uint_eq(count_records(path,
                                    "\x1a\x0d"
                                    "brain.Event:2",
                                    15),
                      1);
    ck_assert_uint_eq(count_records(path, "\x3a\x02\x08\x01", 4), 0); /* session_log {START} */
    ck_assert_uint_eq(count_records(path, "| hidden | [16,8] |", 19), 1);
    ck_assert_uint_eq(count_records(path,
                                    "\x0a\x05"
                                    "batch\x12\x09\x11\x00\x00\x00\x00\x00\x00\x60\x40",
                                    18),
                      1);
    ck_assert_uint_eq(count_records(path, "", 0), 3);
    free(path);
    test_ok(mimus__tensorboard_begin(&path, folder, 9, config));
    ck_assert_uint_eq(count_records(path, "\x10\x0a\x3a\x02\x08\x01", 6), 1); /* at step 10 */
    ck_assert_uint_eq(count_records(path, "", 0), 4);
    free(path);
}
END_TEST

/* Two of one second still have to be read in their order. */
START_TEST(later_files_have_later_names) {
    char *first, *second;
    test_ok(mimus__tensorboard_begin(&first, folder, 0, config));
    test_ok(mimus__tensorboard_begin(&second, folder, 0, config));
    ck_assert_str_lt(first, second);
    free(first);
    free(second);
}
END_TEST

START_TEST(an_epoch_has_its_tags) {
    char *path;
    json_t *row = json_pack(
        "{s:i, s:f, s:n, s:[{s:s, s:f, s:f, s:n, s:n}], s:f, s:f, s:i, s:i, s:f, s:f, s:[f,n]}",
        "epoch", 3, "loss", 0.5, "held_out_loss", "heads", "name", "move", "agreement", 0.25, "nll",
        2.0, "held_out_agreement", "held_out_nll", "lr", 0.125, "norm", 4.0, "steps", 2, "skipped",
        1, "samples_per_second", 1024.0, "seconds", 8.0, "step_loss", 0.75);
    ck_assert_ptr_nonnull(row);
    test_ok(mimus__tensorboard_begin(&path, folder, 0, config));
    test_ok(mimus__tensorboard_append(path, 2, row));
    const struct {
        const char *tag;
        float value;
    } want[] = {{"loss/step", 0.75f},
                {"loss/train", 0.5f},
                {"agreement/move/train", 0.25f},
                {"nll/move/train", 2},
                {"lr", 0.125f},
                {"gradient/norm", 4},
                {"steps/skipped", 1},
                {"epoch", 3},
                {"throughput/samples_per_second", 1024},
                {"throughput/epoch_seconds", 8}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(count_scalars(path, want[i].tag, want[i].value) == 1, "%s", want[i].tag);
    ck_assert_uint_eq(count_records(path, "loss/step", 9), 2); /* one of them not a number */
    ck_assert_uint_eq(count_records(path, "heldout", 7), 0);
    ck_assert_uint_eq(count_records(path, "", 0), 3 + 2 + 9);
    free(path);
    json_decref(row);
}
END_TEST

START_TEST(what_cannot_be_written_is_named) {
    char *path;
    test_fails(mimus__tensorboard_begin(&path, test_folder_path("none"), 0, config), MIMUS_ERR_IO,
               "none: cannot open");
    ck_assert_ptr_null(path);
    json_t *row = json_pack("{s:f}", "loss", 0.5);
    test_fails(mimus__tensorboard_append(folder, 1, row), MIMUS_ERR_IO, "cannot write");
    json_decref(row);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tensorboard");
    TCase *all = tcase_create("tensorboard");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, the_crc_gives_the_published_answers);
    tcase_add_test(all, later_steps_and_torn_records_are_cut_off);
    tcase_add_test(all, what_is_damaged_is_cut_off);
    tcase_add_test(all, a_file_begins_with_version_start_and_settings);
    tcase_add_test(all, later_files_have_later_names);
    tcase_add_test(all, an_epoch_has_its_tags);
    tcase_add_test(all, what_cannot_be_written_is_named);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

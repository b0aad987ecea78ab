/* support - what the test programs share: a main around a suite, and close-enough comparisons. */
#ifndef MIMUS_TEST_SUPPORT_H
#define MIMUS_TEST_SUPPORT_H

#include "status.h"

#include <check.h>
#include <stdint.h>

/* Run the suite; the exit code for main. */
int test_run(Suite *suite);

/* Assert that a call gives MIMUS_OK, with mimus_last_error in the message when not. */
#define test_ok(call)                                                                              \
    do {                                                                                           \
        mimus_status test_status_ = (call);                                                        \
        ck_assert_msg(test_status_ == MIMUS_OK, #call ": %s: %s", mimus_status_text(test_status_), \
                      mimus_last_error());                                                         \
    } while (0)

/* Assert that a call gives `expected`, and that its message holds `part`. */
#define test_fails(call, expected, part)                                                           \
    do {                                                                                           \
        mimus_status test_status_ = (call);                                                        \
        ck_assert_msg(test_status_ == (expected), #call ": got %s, not %s (%s)",                   \
                      mimus_status_text(test_status_), mimus_status_text(expected),                \
                      mimus_last_error());                                                         \
        ck_assert_msg(strstr(mimus_last_error(), (part)) != NULL, #call ": \"%s\" lacks \"%s\"",   \
                      mimus_last_error(), (part));                                                 \
    } while (0)

/* A fresh folder under TMPDIR for this test process, removed with what is in it at exit of the
 * suite's fixtures: test_folder() makes it, test_folder_path("x.rec") names a file in it (a static
 * buffer, four in turn). */
const char *test_folder(void);
const char *test_folder_path(const char *name);
void test_folder_remove(void);

/* Make a file of those bytes, without the sync of mimus__file_replace: tests write thousands. */
void test_file_write(const char *path, const void *bytes, size_t count);

#endif

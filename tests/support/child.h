/* child - run an action in a new process with an environment of its own: OpenCL is loaded once a
 * process, so each story about loaders and drivers needs one. */
#ifndef MIMUS_TEST_CHILD_H
#define MIMUS_TEST_CHILD_H

#include "status.h"

typedef struct child_action {
    const char *name;
    mimus_status (*run)(void);
} child_action;

/* For main, when the program was started with an argument: run the action of that name and print
 * its outcome. The list ends in a NULL name. Returns the exit code. */
int child_main(const child_action *actions, const char *name);

typedef struct child_outcome {
    bool finished; /* the child came to its end, and cleanly */
    int status;    /* a mimus_status */
    char message[1024];
} child_outcome;

/* Start this program again with `name` and `environment` ("NAME=value", or "NAME" to unset; ends
 * in NULL). */
child_outcome child_run(const char *name, const char *const *environment);

/* Assert how the action ends; `part` must be in its message. */
#define child_expect(name, expected, part, ...)                                                    \
    do {                                                                                           \
        const char *const child_environment_[] = {__VA_ARGS__, NULL};                              \
        child_outcome child_ = child_run((name), child_environment_);                              \
        ck_assert_msg(child_.finished, "%s crashed", (name));                                      \
        ck_assert_msg(child_.status == (expected), "%s: got %s, not %s (%s)", (name),              \
                      mimus_status_text((mimus_status)child_.status), mimus_status_text(expected), \
                      child_.message);                                                             \
        ck_assert_msg(strstr(child_.message, (part)) != NULL, "%s: \"%s\" lacks \"%s\"", (name),   \
                      child_.message, (part));                                                     \
    } while (0)

#endif

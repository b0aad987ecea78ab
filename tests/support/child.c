#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int child_main(const child_action *actions, const char *name) {
    for (; actions->name != NULL; actions++) {
        if (strcmp(actions->name, name) == 0) {
            mimus_status status = actions->run();
            printf("\noutcome %d %s\n", (int)status, status != MIMUS_OK ? mimus_last_error() : "");
            return EXIT_SUCCESS;
        }
    }
    fprintf(stderr, "no action \"%s\"\n", name);
    return EXIT_FAILURE;
}

static _Noreturn void become_child(const char *name, const char *const *environment, int output) {
    dup2(output, STDOUT_FILENO);
    for (; *environment != NULL; environment++) {
        const char *value = strchr(*environment, '=');
        char variable[64];
        size_t length = strcspn(*environment, "=");
        snprintf(variable, sizeof variable, "%.*s", (int)length, *environment);
        if (value == NULL)
            unsetenv(variable);
        else
            setenv(variable, value + 1, 1);
    }
    char self[1024]; /* by its name: under valgrind the link itself leads to valgrind */
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    execl(self, self, name, (char *)NULL);
    perror(self);
    _exit(127);
}

child_outcome child_run(const char *name, const char *const *environment) {
    child_outcome outcome = {.status = -1};
    int ends[2], state = -1;
    if (pipe(ends) != 0)
        return outcome;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_child(name, environment, ends[1]);
    close(ends[1]);
    FILE *stream = fdopen(ends[0], "r");
    char line[1200];
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) { /* drivers print, too */
        line[strcspn(line, "\n")] = '\0';
        sscanf(line, "outcome %d %1023[^\n]", &outcome.status, outcome.message);
    }
    if (stream != NULL)
        fclose(stream);
    outcome.finished = pid > 0 && waitpid(pid, &state, 0) == pid && WIFEXITED(state) &&
                       WEXITSTATUS(state) == EXIT_SUCCESS && outcome.status >= 0;
    return outcome;
}

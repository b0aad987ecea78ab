#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char fuzz_path[256];
static int descriptor = -1;

void fuzz_expect(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, mimus_last_error());
    abort();
}

static void remove_file(void) {
    unlink(fuzz_path);
}

void fuzz_put_file(const uint8_t *data, size_t size) {
    if (descriptor < 0) {
        const char *base = getenv("TMPDIR");
        snprintf(fuzz_path, sizeof fuzz_path, "%s/mimus-fuzz-XXXXXX", base != NULL ? base : "/tmp");
        descriptor = mkstemp(fuzz_path);
        atexit(remove_file);
    }
    fuzz_expect(ftruncate(descriptor, 0) == 0 && pwrite(descriptor, data, size, 0) == (ssize_t)size,
                "cannot write the file");
}

void fuzz_expect_message(void) {
    const char *message = mimus_last_error();
    fuzz_expect(strncmp(message, fuzz_path, strlen(fuzz_path)) == 0 &&
                    strchr(message, '\n') == NULL,
                "an unclear message");
}

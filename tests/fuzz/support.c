#include "support.h"

#include "split.h"

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

/* ------------------------------------------------------- a reader with options */

/* A failure is one line, and names the file unless it is about an option alone. */
static void expect_any_message(void) {
    const char *message = mimus_last_error();
    fuzz_expect(*message != '\0' && strchr(message, '\n') == NULL, "an unclear message");
    fuzz_expect(strstr(message, fuzz_path) != NULL || strncmp(message, "where: ", 7) == 0 ||
                    strncmp(message, "none of ", 8) == 0,
                "a message without the file");
}

static void judge(const mimus__recording *recording) {
    mimus__audit audit;
    mimus__split split = {0};
    fuzz_expect(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_DROP, NULL) == MIMUS_OK,
                "no audit");
    fuzz_expect(audit.samples == mimus__recording_samples(recording), "samples out of thin air");
    if (mimus__split_new(&split, recording, &audit, 0.3, 1) == MIMUS_OK)
        fuzz_expect(split.training.samples + split.heldout.samples == audit.samples - audit.dropped,
                    "rows are missing");
    mimus__split_clear(&split);
    mimus__audit_clear(&audit);
}

/* Bins that were made hold what they were made of. */
static void check_bins(const mimus__recording *recording) {
    const mimus_schema *schema = mimus__recording_schema(recording);
    for (uint32_t h = 0; h < schema->heads; h++) {
        const mimus_head *head = &schema->head[h];
        for (uint16_t a = 0; head->bin_edges != NULL && a + 1u < head->actions; a++)
            fuzz_expect(mimus_head_action(head, head->bin_edges[a]) == a + 1, "an edge in no bin");
    }
}

void fuzz_read_with_options(const uint8_t *data, size_t size, const char *format,
                            const char *const options[FUZZ_OPTIONS][4]) {
    static const char *const conditions[] = {NULL, NULL, NULL, "sense0>0.5 and head0!=1"};
    const char *paths[] = {fuzz_path};
    mimus__recording *recording = NULL;
    if (size == 0)
        return;
    const mimus_source source = {.paths = paths,
                                 .count = 1,
                                 .format = format,
                                 .options = options[data[0] % FUZZ_OPTIONS],
                                 .where = conditions[data[0] / 8 % 4],
                                 .episodes = data[0] / 32 % 4 == 3 ? "1:" : NULL,
                                 .limit = data[0] / 128};
    fuzz_put_file(data + 1, size - 1);
    if (mimus__recording_open(&recording, &source, NULL) != MIMUS_OK) {
        expect_any_message();
        return;
    }
    judge(recording);
    check_bins(recording);
    mimus__recording_free(recording);
}

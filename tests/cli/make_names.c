/* make-names OUT.rec: a recording of two samples whose names are hard to show: control characters,
 * several scripts, and one of 200 letters. */
#include "mimus.h"

#include <stdio.h>
#include <string.h>

static char long_name[201];
static const char *const senses[] = {"tab\there", "new\nline", "\033[31mred", "H\u00f6he \u9ad8",
                                     long_name};
static const char *const actions[] = {"a\r", "del\177"};
static const mimus_head heads[] = {{.name = "bell\a head", .actions = 2, .action_names = actions}};
static const mimus_schema schema = {
    .senses = 5, .sense_names = senses, .heads = 1, .head = heads, .masks = true};

int main(int argc, char **argv) {
    mimus_recorder *recorder = NULL;
    const float sensed[5] = {0};
    const uint16_t action = 1;
    if (argc != 2) {
        fprintf(stderr, "usage: make-names OUT.rec\n");
        return 2;
    }
    memset(long_name, 'x', sizeof long_name - 1);
    if (mimus_recorder_open(&recorder, argv[1], &schema, MIMUS_RECORDER_CREATE) != MIMUS_OK ||
        mimus_recorder_append(recorder, sensed, &action, NULL, 1) != MIMUS_OK ||
        mimus_recorder_append(recorder, sensed, &action, NULL, 1) != MIMUS_OK ||
        mimus_recorder_close(recorder) != MIMUS_OK) {
        fprintf(stderr, "make-names: %s\n", mimus_last_error());
        return 1;
    }
    return 0;
}

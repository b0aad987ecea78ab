/* Opens a recorder where none can be, and prints what mimus says of it. */
#include <mimus.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    const mimus_head head = {.name = "move", .actions = 2};
    const mimus_schema schema = {.senses = 1, .heads = 1, .head = &head};
    mimus_recorder *recorder = NULL;
    mimus_status status =
        mimus_recorder_open(&recorder, "/no such folder/a.rec", &schema, MIMUS_RECORDER_CREATE);
    printf("%s: %s\n", mimus_status_text(status), mimus_last_error());
    return status == MIMUS_ERR_IO && strstr(mimus_last_error(), "a.rec") != NULL ? 0 : 1;
}

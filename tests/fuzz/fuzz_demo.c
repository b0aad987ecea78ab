/* Any bytes as a .demo file: reading and auditing it must end well or fail clearly. The first byte
 * says which options are given to the reader, the rest is the file. */
#include "support.h"

#include "audit.h"
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every sample is a record: none is missing between the blocks. */
static void judge(const mimus__recording *recording) {
    const mimus_schema *schema = mimus__recording_schema(recording);
    uint64_t rows = 0;
    mimus__audit audit;
    for (size_t b = 0; b < mimus__recording_blocks(recording); b++) {
        mimus__block block;
        fuzz_expect(mimus__recording_block(recording, b, &block) == MIMUS_OK, "a bad block");
        fuzz_expect(block.first == rows && (block.masks != NULL) == schema->masks, "a bad block");
        rows += block.samples;
    }
    fuzz_expect(rows > 0 && rows == mimus__recording_samples(recording), "rows are missing");
    fuzz_expect(mimus__audit_run(&audit, recording, MIMUS_ILLEGAL_IGNORE, NULL) == MIMUS_OK,
                "no audit");
    fuzz_expect(audit.samples == rows && audit.dropped <= audit.faulty, "samples out of thin air");
    mimus__audit_clear(&audit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[][4] = {
        {NULL},
        {"align=same", NULL},
        {"align=next", "visual=skip", NULL},
        {"visual=skip", "bin=all:uniform:3", NULL},
        {"bin=all:quantile:2", "align=same", NULL},
        {"bin=continuous0:quantile:5", "visual=skip", NULL},
    };
    const char *paths[] = {fuzz_path};
    mimus_source source = {.paths = paths, .count = 1, .format = "demo"};
    mimus__recording *recording = NULL;
    if (size == 0)
        return 0;
    source.options = options[data[0] % (sizeof options / sizeof *options)];
    fuzz_put_file(data + 1, size - 1);
    if (mimus__recording_open(&recording, &source, NULL) == MIMUS_OK)
        judge(recording);
    else
        fuzz_expect_message();
    mimus__recording_free(recording);
    return 0;
}

#include "rows.h"

#include "play.h"
#include "sink.h"
#include "support.h"

static mimus_status write_rows(mimus__file_sink *file, const mimus_schema *schema,
                               const test_row *rows, size_t count) {
    mimus_status status = MIMUS_OK;
    mimus__sink *sink = &file->base.sink;
    MIMUS_TRY(mimus__sink_begin(sink, schema));
    for (size_t i = 0; i < count; i++) {
        MIMUS_TRY(mimus__sink_append(sink, rows[i].senses, rows[i].actions, rows[i].legal,
                                     rows[i].weight));
        if (rows[i].ends)
            MIMUS_TRY(mimus__sink_end_episode(sink));
    }
    MIMUS_TRY(mimus__file_sink_commit(file, NULL));
out:
    return status;
}

void test_rows_write(const char *path, const mimus_schema *schema, const test_row *rows,
                     size_t count) {
    mimus__file_sink file;
    test_ok(mimus__file_sink_open(&file, path));
    test_ok(write_rows(&file, schema, rows, count));
    mimus__file_sink_clear(&file);
}

mimus__recording *test_rows_record(const mimus_schema *schema, const test_row *rows, size_t count) {
    mimus__recording *recording = NULL;
    const char *path = test_folder_path("rows.rec");
    test_rows_write(path, schema, rows, count);
    test_ok(test_recording_open(&recording, path));
    return recording;
}

#include "rows.h"

#include "play.h"
#include "sink.h"
#include "support.h"

void test_rows_write(const char *path, const mimus_schema *schema, const test_row *rows,
                     size_t count) {
    mimus__file_sink file;
    mimus__sink *sink = &file.base.sink;
    test_ok(mimus__file_sink_open(&file, path));
    test_ok(mimus__sink_begin(sink, schema));
    for (size_t i = 0; i < count; i++) {
        test_ok(mimus__sink_append(sink, rows[i].senses, rows[i].actions, rows[i].legal,
                                   rows[i].weight));
        if (rows[i].ends)
            test_ok(mimus__sink_end_episode(sink));
    }
    test_ok(mimus__file_sink_commit(&file, NULL));
    mimus__file_sink_clear(&file);
}

mimus__recording *test_rows_record(const mimus_schema *schema, const test_row *rows, size_t count) {
    mimus__recording *recording = NULL;
    const char *path = test_folder_path("rows.rec");
    test_rows_write(path, schema, rows, count);
    test_ok(test_recording_open(&recording, path));
    return recording;
}

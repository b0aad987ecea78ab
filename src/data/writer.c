#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mimus_status failed(const mimus__writer *writer) {
    return mimus__fail(MIMUS_ERR_IO, "%s: cannot write: %s", writer->path, strerror(errno));
}

static mimus_status cut_tail(mimus__writer *writer) {
    if (!writer->tail)
        return MIMUS_OK;
    if (ftruncate(writer->descriptor, (off_t)writer->end) != 0)
        return failed(writer);
    writer->tail = false;
    return MIMUS_OK;
}

static mimus_status write_record(mimus__writer *writer, const uint8_t *bytes, size_t count) {
    mimus_status status = MIMUS_OK;
    size_t done = 0;
    MIMUS_TRY(cut_tail(writer));
    while (done < count) {
        ssize_t wrote =
            pwrite(writer->descriptor, bytes + done, count - done, (off_t)(writer->end + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            status = failed(writer);
            writer->tail = true;
            if (ftruncate(writer->descriptor, (off_t)writer->end) == 0)
                writer->tail = false;
            goto out;
        }
        done += (size_t)wrote;
    }
    writer->end += count;
out:
    return status;
}

mimus_status mimus__writer_begin(mimus__writer *writer, int descriptor, const char *path,
                                 const mimus_schema *schema) {
    mimus_status status = MIMUS_OK;
    uint8_t *record = NULL;
    size_t bytes = 0;
    *writer = (mimus__writer){.descriptor = descriptor, .path = path, .tail = true};
    MIMUS_TRY(mimus__record_file_header(&record, &bytes, schema));
    MIMUS_TRY(write_record(writer, record, bytes));
out:
    free(record);
    return status;
}

mimus_status mimus__writer_put(mimus__writer *writer, mimus__chunk *chunk) {
    mimus_status status = MIMUS_OK;
    mimus__chunk_seal(chunk, writer->samples);
    MIMUS_TRY(write_record(writer, chunk->bytes, mimus__chunk_record_bytes(chunk)));
    writer->samples += chunk->samples;
    writer->episodes += chunk->episodes;
    mimus__chunk_reset(chunk);
out:
    return status;
}

mimus_status mimus__writer_finish(mimus__writer *writer, const json_t *metadata) {
    mimus_status status = MIMUS_OK;
    json_t *json = json_object();
    uint8_t *record = NULL;
    size_t bytes = 0;
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)writer->samples)));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_integer((json_int_t)writer->episodes)));
    MIMUS_TRY(mimus__json_set(json, "metadata",
                              metadata != NULL ? json_deep_copy(metadata) : json_object()));
    status = mimus__record_json(&record, &bytes, MIMUS__RECORD_CLOSING,
                                (mimus__record){.first = writer->samples}, json);
    if (status != MIMUS_OK) {
        mimus__fail_prefix(status, "%s: the metadata", writer->path);
        goto out;
    }
    MIMUS_TRY(write_record(writer, record, bytes));
out:
    free(record);
    json_decref(json);
    return status;
}

mimus_status mimus__writer_sync(const mimus__writer *writer) {
    return fsync(writer->descriptor) == 0 ? MIMUS_OK : failed(writer);
}

/* mimus_convert: a recording in a format for other programs. The formats that are written are the
 * table below; what is left out is what the audit drops, as in an import. */
#include "dataset.h"
#include "file.h"
#include "minari_out.h"
#include "npz_out.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>

typedef mimus_status (*write_function)(const char *path, const mimus__recording *recording,
                                       const mimus__rows *rows, const mimus_watch *watch);

static const struct {
    const char *ending;
    write_function write;
} writers[] = {
    {".npz", mimus__npz_out_write},
    {".h5", mimus__minari_out_write},
    {".hdf5", mimus__minari_out_write},
};

/* NULL, and the error set: by the name there is none. */
static write_function find_writer(const char *path) {
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        const size_t end = strlen(writers[i].ending);
        if (length > end && strcmp(path + length - end, writers[i].ending) == 0)
            return writers[i].write;
    }
    mimus__fail(MIMUS_ERR_ARGUMENT,
                "%s: the name says what is written: it should end in .npz, .h5 or .hdf5; "
                "import writes a .rec",
                path);
    return NULL;
}

/* It would be gone while it is read. */
static mimus_status keep_sources(const mimus_source *source, const char *out_path) {
    mimus_status status = MIMUS_OK;
    char *file = NULL;
    for (size_t i = 0; i < source->count; i++) {
        free(file);
        MIMUS_TRY(mimus__reader_file(&file, source->paths[i]));
        if (mimus__file_is_same(file, out_path))
            MIMUS_TRY(
                mimus__fail(MIMUS_ERR_ARGUMENT,
                            "%s: is read here, and would be replaced; give the output another "
                            "name",
                            out_path));
    }
out:
    free(file);
    return status;
}

static mimus_status make_report(char **report, const mimus__dataset *dataset,
                                const mimus__rows *rows) {
    mimus_status status = MIMUS_OK;
    const mimus_schema *schema = mimus__recording_schema(dataset->recording);
    json_t *json = json_object(), *described = NULL, *faults = NULL;
    MIMUS_TRY(mimus__schema_to_json(&described, schema));
    MIMUS_TRY(mimus__audit_to_json(&faults, &dataset->audit, schema));
    MIMUS_TRY(mimus__json_set(json, "samples", json_integer((json_int_t)rows->samples)));
    MIMUS_TRY(mimus__json_set(json, "episodes", json_integer((json_int_t)rows->episodes)));
    MIMUS_TRY(mimus__json_set(json, "dropped", json_integer((json_int_t)dataset->audit.dropped)));
    MIMUS_TRY(mimus__json_set(json, "schema", json_incref(described)));
    MIMUS_TRY(mimus__json_set(json, "faults", json_incref(faults)));
    MIMUS_TRY(mimus__json_set(json, "losses",
                              json_deep_copy(mimus__recording_losses(dataset->recording))));
    MIMUS_TRY(mimus__json_text(report, json, JSON_INDENT(2)));
out:
    json_decref(described);
    json_decref(faults);
    json_decref(json);
    return status;
}

mimus_status mimus_convert(const mimus_source *source, const char *out_path,
                           const mimus_watch *watch, char **report) {
    mimus_status status = MIMUS_OK;
    mimus__dataset dataset = {0};
    mimus__rows rows = {0};
    write_function write = NULL;
    if (report != NULL)
        *report = NULL;
    if (source == NULL || out_path == NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "what to convert, and the file to write, are needed");
    write = find_writer(out_path);
    if (write == NULL) {
        status = MIMUS_ERR_ARGUMENT;
        goto out;
    }
    MIMUS_TRY(keep_sources(source, out_path));
    MIMUS_TRY(mimus__dataset_open(&dataset, source, NULL, watch));
    if (mimus__recording_schema(dataset.recording)->senses == 0) {
        status = mimus__fail(MIMUS_ERR_UNSUPPORTED,
                             "%s: the recording has no senses, and these formats begin with them",
                             out_path);
        goto out;
    }
    MIMUS_TRY(mimus__rows_all(&rows, dataset.recording, &dataset.audit));
    if (rows.samples == 0) {
        status = mimus__fail(MIMUS_ERR_DATA, "%s: there is no sample to write", out_path);
        goto out;
    }
    MIMUS_TRY(write(out_path, dataset.recording, &rows, watch));
    if (report != NULL)
        MIMUS_TRY(make_report(report, &dataset, &rows));
out:
    mimus__rows_clear(&rows);
    mimus__dataset_clear(&dataset);
    return status;
}

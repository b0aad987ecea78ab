/* csv_file - the rows and fields of a text table, plain or gzipped, one row at a time: libcsv takes
 * quotes and line ends apart, zlib the compression. Memory is that of the longest row, which has a
 * limit; nothing is known here of what the fields mean. */
#ifndef MIMUS_DATA_CSV_FILE_H
#define MIMUS_DATA_CSV_FILE_H

#include "status.h"

#include <csv.h>
#include <zlib.h>

enum {
    MIMUS__CSV_FIELD_BYTES = 1 << 16,
    MIMUS__CSV_ROW_BYTES = 1 << 26,
    MIMUS__CSV_FIELDS = 1 << 21, /* of a row */
};

typedef struct mimus__csv {
    const char *path; /* borrowed */
    gzFile file;
    struct csv_parser parser;
    bool parsing;   /* the parser exists */
    char separator; /* between fields */
    char *buffer;   /* bytes of the file; `used` of `held` went to the parser */
    size_t used, held;
    bool drained;       /* the file has no more */
    bool after_return;  /* the last byte was a CR: a line end of its own unless an LF follows */
    uint64_t at;        /* the line that is being read, from 1 */
    bool in_row;        /* fields of the next row are known already */
    bool has_row;       /* the row below is whole */
    mimus_status fault; /* of what the parser called */
    /* the row, valid until the next one is read */
    uint64_t line; /* where it begins */
    bool ended;    /* by a line end, not by the end of the file */
    size_t fields;
    size_t *offset; /* (fields) in `text` */
    char *text;     /* the fields, each behind the other, ended by NULs */
    size_t bytes, capacity, offsets;
} mimus__csv;

/* `separator` is 0 to find it in the first line: the most frequent of comma, semicolon, tab and
 * bar. MIMUS_ERR_IO, or MIMUS_ERR_FORMAT for what is no text. Close it whatever the outcome. */
mimus_status mimus__csv_open(mimus__csv *out, const char *path, char separator);
void mimus__csv_close(mimus__csv *csv);

/* Go on to the next row that is not blank; `*more` is false behind the last one. */
mimus_status mimus__csv_next(mimus__csv *csv, bool *more);

/* A field of the row, without the quotes and without white space around it. */
const char *mimus__csv_field(const mimus__csv *csv, size_t index);

/* Bytes of the file, compressed or not, that were read; for progress. */
uint64_t mimus__csv_position(const mimus__csv *csv);

#endif

/* csv_table - a csv file as a table: its header, its columns, and rows that are as wide as they
 * should be. What tables in the wild have is dealt with here: rows of one field more than the
 * header has names, a last row that was cut, numbers that are missing. */
#ifndef MIMUS_DATA_CSV_TABLE_H
#define MIMUS_DATA_CSV_TABLE_H

#include "csv_file.h"

typedef struct mimus__csv_table {
    const char *path;         /* borrowed */
    const mimus_watch *watch; /* what is odd and goes on is told here */
    mimus__csv csv;
    bool header;
    bool trailing;       /* rows end with a separator: one field more, and nothing in it */
    char **names;        /* (columns) UTF-8, "" for one without; or NULL without a header */
    uint32_t columns;    /* 1 or more */
    bool last_is_number; /* for whoever knows: a row that ends otherwise with the file was cut */
    bool told_cut;
} mimus__csv_table;

/* Open the file and find its columns. `separator` is a character, "tab", or NULL to look; `header`
 * "yes", "no", or NULL to look. No sample is read yet: rewind first. Close it either way. */
mimus_status mimus__csv_table_open(mimus__csv_table *out, const char *path, const char *separator,
                                   const char *header, const mimus_watch *watch);
void mimus__csv_table_close(mimus__csv_table *table);

/* Begin at the first sample, again. */
mimus_status mimus__csv_table_rewind(mimus__csv_table *table);

/* The next row, of as many fields as there are columns; a last one that was cut is left out. */
mimus_status mimus__csv_table_next(mimus__csv_table *table, bool *more);

/* A field of the row as it is, and as a number: also a truth value as pandas writes it, and NaN for
 * what is missing. MIMUS_ERR_DATA names the place. */
const char *mimus__csv_table_field(const mimus__csv_table *table, uint32_t column);
mimus_status mimus__csv_table_number(const mimus__csv_table *table, uint32_t column, float *out);
bool mimus__csv_number(const char *text, float *out);

/* How messages call the place: "play.csv: line 3, column 2 "x"". Returns `text`. */
const char *mimus__csv_table_place(const mimus__csv_table *table, uint32_t column, char *text,
                                   size_t bytes);
/* "column 2 "x"". */
const char *mimus__csv_table_column(const mimus__csv_table *table, uint32_t column, char *text,
                                    size_t bytes);

#endif

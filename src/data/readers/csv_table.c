#include "csv_table.h"

#include "alloc.h"
#include "text.h"
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------ fields */

bool mimus__csv_number(const char *text, float *out) {
    static const struct {
        const char *word;
        float value;
    } words[] = {
        {"", NAN},
        {"nan", NAN},
        {"na", NAN},
        {"n/a", NAN},
        {"null", NAN},
        {"none", NAN},
        {"true", 1},
        {"false", 0},
        {"inf", INFINITY},
        {"+inf", INFINITY},
        {"-inf", -INFINITY},
        {"infinity", INFINITY},
        {"-infinity", -INFINITY},
    };
    double number = 0;
    if (mimus__text_to_double(text, &number)) {
        *out = (float)number;
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i].word) == 0) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

const char *mimus__csv_table_field(const mimus__csv_table *table, uint32_t column) {
    return mimus__csv_field(&table->csv, column);
}

const char *mimus__csv_table_column(const mimus__csv_table *table, uint32_t column, char *text,
                                    size_t bytes) {
    if (table->names != NULL)
        snprintf(text, bytes, "column %u \"%.60s\"", column, table->names[column]);
    else
        snprintf(text, bytes, "column %u", column);
    return text;
}

const char *mimus__csv_table_place(const mimus__csv_table *table, uint32_t column, char *text,
                                   size_t bytes) {
    char name[96];
    snprintf(text, bytes, "%s: line %llu, %s", table->path, (unsigned long long)table->csv.line,
             mimus__csv_table_column(table, column, name, sizeof name));
    return text;
}

mimus_status mimus__csv_table_number(const mimus__csv_table *table, uint32_t column, float *out) {
    char place[512];
    const char *field = mimus__csv_table_field(table, column);
    if (mimus__csv_number(field, out))
        return MIMUS_OK;
    return mimus__fail(MIMUS_ERR_DATA,
                       "%s: \"%.40s\" is no number; the option senses and its like choose columns",
                       mimus__csv_table_place(table, column, place, sizeof place), field);
}

/* ------------------------------------------------------------------ header */

static mimus_status parse_separator(const char *text, const char *path, char *out) {
    *out = '\0';
    if (text == NULL)
        return MIMUS_OK;
    if (strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0)
        text = "\t";
    if (strlen(text) != 1 || strchr("\"\r\n", *text) != NULL)
        return mimus__fail(MIMUS_ERR_ARGUMENT,
                           "%s: option separator: \"%s\" should be one character, or tab", path,
                           text);
    *out = *text;
    return MIMUS_OK;
}

static void free_row(char **row, uint32_t count) {
    for (uint32_t i = 0; row != NULL && i < count; i++)
        free(row[i]);
    free(row);
}

/* The row as copies of its fields, what is not UTF-8 made visible. */
static mimus_status keep_row(const mimus__csv *csv, char ***out, uint32_t *count) {
    mimus_status status = MIMUS_OK;
    *count = 0;
    MIMUS_TRY(mimus__alloc(out, csv->fields, sizeof **out));
    for (size_t i = 0; i < csv->fields; i++) {
        MIMUS_TRY(mimus__text_copy(&(*out)[i], mimus__csv_field(csv, i)));
        ++*count;
        bool sound = mimus__text_is_utf8((*out)[i]);
        for (char *c = (*out)[i]; !sound && *c != '\0'; c++)
            *c = (unsigned char)*c > 0x7F ? '?' : *c;
    }
out:
    return status;
}

/* The first row has names when none of it is a number, or when something in it is none where the
 * second row has one. (It may have a field less than that, whose first is the row's own name.) */
static bool looks_like_header(char *const *first, uint32_t count, const mimus__csv *second) {
    uint32_t numbers = 0, words = 0;
    size_t shift = second->fields > count ? second->fields - count : 0;
    for (uint32_t i = 0; i < count; i++) {
        float number;
        if (*first[i] == '\0')
            continue;
        if (mimus__csv_number(first[i], &number)) {
            numbers++;
            continue;
        }
        words++;
        if (i + shift < second->fields && *mimus__csv_field(second, i + shift) != '\0' &&
            mimus__csv_number(mimus__csv_field(second, i + shift), &number))
            return true;
    }
    return words > 0 && numbers == 0;
}

static mimus_status decide_header(mimus__csv_table *table, const char *stated, char *const *first,
                                  uint32_t count, bool second) {
    table->header = stated != NULL && strcmp(stated, "yes") == 0;
    if (stated != NULL && !table->header && strcmp(stated, "no") != 0)
        return mimus__fail(MIMUS_ERR_ARGUMENT, "%s: option header: \"%s\" should be yes or no",
                           table->path, stated);
    if (stated == NULL)
        table->header = second && looks_like_header(first, count, &table->csv);
    if (table->header && !second)
        return mimus__fail(MIMUS_ERR_DATA, "%s: no rows behind the header", table->path);
    return MIMUS_OK;
}

/* The header's `count` names, the second row being at hand. A row with one field more than that
 * ends with a separator, when the last field is empty; else its first field is the row's own name,
 * as R writes it and pandas reads it. */
static mimus_status adopt_header(mimus__csv_table *table, char **first, uint32_t count) {
    mimus_status status = MIMUS_OK;
    const mimus__csv *csv = &table->csv;
    const bool more = csv->fields == (size_t)count + 1;
    if (csv->fields != count && !more)
        return mimus__fail(MIMUS_ERR_FORMAT,
                           "%s: line %llu has %zu fields, and the header %u names", table->path,
                           (unsigned long long)csv->line, csv->fields, count);
    table->trailing = more && *mimus__csv_field(csv, count) == '\0';
    const uint32_t unnamed = more && !table->trailing;
    MIMUS_TRY(mimus__alloc(&table->names, (size_t)count + unnamed, sizeof *table->names));
    table->columns = count + unnamed;
    for (uint32_t c = 0; c < table->columns; c++)
        MIMUS_TRY(mimus__text_copy(&table->names[c], c < unnamed ? "" : first[c - unnamed]));
    if (unnamed > 0)
        mimus__watch_message(table->watch,
                             "%s: rows have one field more than the header: the first is taken for "
                             "the row's own name",
                             table->path);
out:
    return status;
}

mimus_status mimus__csv_table_open(mimus__csv_table *out, const char *path, const char *separator,
                                   const char *header, const mimus_watch *watch) {
    mimus_status status = MIMUS_OK;
    char **first = NULL, found = '\0';
    uint32_t count = 0;
    bool more = false;
    *out = (mimus__csv_table){.path = path, .watch = watch};
    MIMUS_TRY(parse_separator(separator, path, &found));
    MIMUS_TRY(mimus__csv_open(&out->csv, path, found));
    MIMUS_TRY(mimus__csv_next(&out->csv, &more));
    if (!more)
        MIMUS_TRY(mimus__fail(MIMUS_ERR_DATA, "%s: no rows", path));
    MIMUS_TRY(keep_row(&out->csv, &first, &count));
    MIMUS_TRY(mimus__csv_next(&out->csv, &more));
    MIMUS_TRY(decide_header(out, header, first, count, more));
    out->columns = count;
    if (out->header)
        MIMUS_TRY(adopt_header(out, first, count));
out:
    free_row(first, count);
    return status;
}

void mimus__csv_table_close(mimus__csv_table *table) {
    mimus__csv_close(&table->csv);
    free_row(table->names, table->columns);
    *table = (mimus__csv_table){0};
}

/* -------------------------------------------------------------------- rows */

mimus_status mimus__csv_table_rewind(mimus__csv_table *table) {
    mimus_status status = MIMUS_OK;
    const char separator = table->csv.separator;
    bool more = false;
    mimus__csv_close(&table->csv);
    MIMUS_TRY(mimus__csv_open(&table->csv, table->path, separator));
    if (table->header)
        MIMUS_TRY(mimus__csv_next(&table->csv, &more));
out:
    return status;
}

/* Whether the file ends in the middle of its last row: fields are missing, or what should be a
 * number is none. */
static bool is_cut(const mimus__csv_table *table) {
    float unused;
    if (table->csv.ended)
        return false;
    return table->csv.fields < table->columns ||
           (table->last_is_number &&
            !mimus__csv_number(mimus__csv_field(&table->csv, table->columns - 1), &unused));
}

mimus_status mimus__csv_table_next(mimus__csv_table *table, bool *more) {
    mimus_status status = MIMUS_OK;
    const mimus__csv *csv = &table->csv;
    MIMUS_TRY(mimus__csv_next(&table->csv, more));
    if (!*more)
        goto out;
    if (is_cut(table)) {
        if (!table->told_cut)
            mimus__watch_message(table->watch,
                                 "%s: line %llu: the last row is cut short, and left out",
                                 table->path, (unsigned long long)csv->line);
        table->told_cut = true;
        *more = false;
        goto out;
    }
    const bool one_more = csv->fields == (size_t)table->columns + 1;
    if (csv->fields != table->columns &&
        !(table->trailing && one_more && *mimus__csv_field(csv, table->columns) == '\0'))
        status =
            mimus__fail(MIMUS_ERR_FORMAT, "%s: line %llu has %zu fields; expected %u", table->path,
                        (unsigned long long)csv->line, csv->fields, table->columns);
out:
    return status;
}

#include "table.h"

#include "cli.h"
#include "human.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 80, CELL_BYTES = 4 * WIDEST + 8 };

struct cli_table {
    const char *columns;
    size_t column_count;
    char (*cells)[CELL_BYTES];
    size_t count, capacity;
};

cli_table *table_new(const char *columns) {
    assert(*columns != '\0');
    cli_table *made = cli_allocate(1, sizeof *made);
    made->columns = columns;
    made->column_count = strlen(columns);
    return made;
}

void table_free(cli_table *table) {
    if (table == NULL)
        return;
    free(table->cells);
    free(table);
}

void table_cell(cli_table *table, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (table->count == table->capacity) {
        table->capacity = table->capacity > 0 ? 2 * table->capacity : 64;
        table->cells = cli_reallocate(table->cells, table->capacity, sizeof *table->cells);
    }
    human_fit(table->cells[table->count++], CELL_BYTES, text, WIDEST);
}

static size_t column_width(const cli_table *table, size_t column) {
    size_t widest = 0;
    for (size_t i = column; i < table->count; i += table->column_count) {
        size_t width = human_width(table->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Blanks are owed until something follows them: no line ends in any. */
static void print_row(const cli_table *table, size_t row, const size_t *width, FILE *stream) {
    size_t owed = 0;
    for (size_t c = 0; c < table->column_count && row + c < table->count; c++) {
        const char *text = table->cells[row + c];
        size_t blank = width[c] - human_width(text);
        bool right = table->columns[c] == 'r';
        owed += right ? blank : 0;
        if (*text != '\0') {
            fprintf(stream, "%*s%s", (int)owed, "", text);
            owed = 0;
        }
        owed += (right ? 0 : blank) + 2;
    }
    fputc('\n', stream);
}

void table_print(cli_table *table, FILE *stream, const char *indent) {
    size_t *width = cli_allocate(table->column_count, sizeof *width);
    for (size_t c = 0; c < table->column_count; c++)
        width[c] = column_width(table, c);
    for (size_t row = 0; row < table->count; row += table->column_count) {
        fputs(indent, stream);
        print_row(table, row, width, stream);
    }
    free(width);
    table_free(table);
}

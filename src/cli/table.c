#include "table.h"

#include "cli.h"
#include "human.h"
#include "terminal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NARROWEST = 8 }; /* that a terminal makes a column */

struct cli_table {
    const char *columns;
    size_t column_count;
    char **cells;
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
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

void table_cell(cli_table *table, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = cli_allocate((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    if (table->count == table->capacity) {
        table->capacity = table->capacity > 0 ? 2 * table->capacity : 64;
        table->cells = cli_reallocate(table->cells, table->capacity, sizeof *table->cells);
    }
    table->cells[table->count++] = human_text(text, SIZE_MAX);
    free(text);
}

static size_t column_width(const cli_table *table, size_t column) {
    size_t widest = 0;
    for (size_t i = column; i < table->count; i += table->column_count) {
        size_t width = human_width(table->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Make the widest columns of texts narrower until a row fits, as far as that goes. */
static void narrow(const cli_table *table, size_t *width, size_t room) {
    size_t total = 2 * (table->column_count - 1);
    for (size_t c = 0; c < table->column_count; c++)
        total += width[c];
    for (; total > room; total--) {
        size_t widest = table->column_count;
        for (size_t c = 0; c < table->column_count; c++) {
            if (table->columns[c] == 'l' && width[c] > NARROWEST &&
                (widest == table->column_count || width[c] > width[widest]))
                widest = c;
        }
        if (widest == table->column_count)
            return;
        width[widest]--;
    }
}

/* Blanks are owed until something follows them: no line ends in any. */
static void print_row(const cli_table *table, size_t row, const size_t *width, FILE *stream) {
    size_t owed = 0;
    for (size_t c = 0; c < table->column_count && row + c < table->count; c++) {
        char *text = human_text(table->cells[row + c], width[c]);
        size_t blank = width[c] - human_width(text);
        bool right = table->columns[c] == 'r';
        owed += right ? blank : 0;
        if (*text != '\0') {
            fprintf(stream, "%*s%s", (int)owed, "", text);
            owed = 0;
        }
        owed += (right ? 0 : blank) + 2;
        free(text);
    }
    fputc('\n', stream);
}

void table_print(cli_table *table, FILE *stream, const char *indent) {
    size_t *width = cli_allocate(table->column_count, sizeof *width);
    for (size_t c = 0; c < table->column_count; c++)
        width[c] = column_width(table, c);
    narrow(table, width, terminal_room(fileno(stream), strlen(indent)));
    for (size_t row = 0; row < table->count; row += table->column_count) {
        fputs(indent, stream);
        print_row(table, row, width, stream);
    }
    free(width);
    table_free(table);
}

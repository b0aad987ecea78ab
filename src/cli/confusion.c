#include "confusion.h"

#include "cli.h"
#include "human.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_CELLS = 12, CELL_CELLS = 6 };

typedef struct action {
    size_t index;
    double labels;
} action;

static double count_at(const json_t *matrix, size_t row, size_t column) {
    return json_number_value(json_array_get(json_array_get(matrix, row), column));
}

static double row_sum(const json_t *matrix, size_t row) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(matrix); i++)
        sum += count_at(matrix, row, i);
    return sum;
}

static int more_frequent(const void *a, const void *b) {
    const action *left = a, *right = b;
    if (left->labels != right->labels)
        return left->labels < right->labels ? 1 : -1;
    return left->index < right->index ? -1 : 1;
}

static int earlier(const void *a, const void *b) {
    const action *left = a, *right = b;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* The `shown` most frequent of `count` actions, in their own order; free with free(). */
static action *choose(const json_t *matrix, size_t count, size_t shown) {
    action *actions = cli_allocate(count, sizeof *actions);
    for (size_t i = 0; i < count; i++)
        actions[i] = (action){i, row_sum(matrix, i)};
    if (shown < count)
        qsort(actions, count, sizeof *actions, more_frequent);
    qsort(actions, shown, sizeof *actions, earlier);
    return actions;
}

static void name_cell(cli_table *rows, const json_t *names, size_t index, size_t cells) {
    const char *name = json_string_value(json_array_get(names, index));
    char text[4 * NAME_CELLS + 8];
    if (name == NULL) {
        table_cell(rows, "%zu", index);
        return;
    }
    human_fit(text, sizeof text, name, cells);
    table_cell(rows, "%s", text);
}

static void share_cell(cli_table *rows, double count, double of) {
    if (count == 0)
        table_cell(rows, ".");
    else
        table_cell(rows, "%.0f", 100 * count / of);
}

void confusion_print(const json_t *matrix, const json_t *names, size_t columns) {
    size_t count = json_array_size(matrix);
    size_t margin = 2 + NAME_CELLS + 12; /* names on the left, samples on the right */
    size_t fit = columns > margin ? (columns - margin) / (CELL_CELLS + 2) : 1;
    size_t shown = count < fit ? count : fit > 0 ? fit : 1;
    action *actions = choose(matrix, count, shown);
    char *spec = cli_allocate(shown + 3, 1);
    memset(spec, 'r', shown + 2);
    spec[0] = 'l';
    cli_table *rows = table_new(spec);
    table_cell(rows, "%s", "");
    for (size_t i = 0; i < shown; i++)
        name_cell(rows, names, actions[i].index, CELL_CELLS);
    table_cell(rows, "samples");
    for (size_t i = 0; i < shown; i++) {
        name_cell(rows, names, actions[i].index, NAME_CELLS);
        for (size_t j = 0; j < shown; j++)
            share_cell(rows, count_at(matrix, actions[i].index, actions[j].index),
                       actions[i].labels);
        table_cell(rows, "%s", human_count(actions[i].labels).text);
    }
    table_print(rows, stdout, "  ");
    if (shown < count)
        printf("  (the %zu most frequent of %zu actions; --json has them all)\n", shown, count);
    free(spec);
    free(actions);
}

/* table - rows of text in aligned columns. */
#ifndef MIMUS_CLI_TABLE_H
#define MIMUS_CLI_TABLE_H

#include <stdio.h>

typedef struct cli_table cli_table;

/* `columns` has a letter a column: 'l' its cells stand left, 'r' right. */
cli_table *table_new(const char *columns);
void table_free(cli_table *table);

/* Fill the next cell; rows follow from the number of columns. Control characters are escaped. */
void table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print it, every line behind `indent`, and free it. On a terminal long texts are cut so that a row
 * fits into a line; a file or a pipe gets them whole. */
void table_print(cli_table *table, FILE *stream, const char *indent);

#endif

/* terminal - what standard output and standard error are connected to. */
#ifndef MIMUS_CLI_TERMINAL_H
#define MIMUS_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file is a terminal on which a line can be erased. */
bool terminal_can_erase(int file);

/* Its columns: what it says of itself, else COLUMNS, else 80. */
size_t terminal_columns(int file);

/* The cells for a text beside which `taken` others stand in its line: a terminal's lines end, and
 * those of a file or a pipe (SIZE_MAX) do not. At least 8. */
size_t terminal_room(int file, size_t taken);

/* Write it whole, to standard error; false once nobody reads there any more. */
bool terminal_write(const char *text, size_t bytes);

#endif

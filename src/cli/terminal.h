/* terminal - what standard error is connected to. */
#ifndef MIMUS_CLI_TERMINAL_H
#define MIMUS_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file is a terminal on which a line can be erased. */
bool terminal_can_erase(int file);

/* Its columns: what it says of itself, else COLUMNS, else 80. */
size_t terminal_columns(int file);

/* Write it whole, to standard error; false once nobody reads there any more. */
bool terminal_write(const char *text, size_t bytes);

#endif

#include "terminal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_can_erase(int file) {
    const char *kind = getenv("TERM");
    return isatty(file) && kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

size_t terminal_columns(int file) {
    struct winsize size = {0};
    if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long count = columns != NULL ? strtol(columns, NULL, 10) : 0;
    return count > 0 && count < 10000 ? (size_t)count : 80;
}

size_t terminal_room(int file, size_t taken) {
    enum { LEAST = 8 };
    if (!isatty(file))
        return SIZE_MAX;
    const size_t columns = terminal_columns(file);
    return columns > taken + LEAST ? columns - taken : LEAST;
}

bool terminal_write(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        bytes -= (size_t)written;
    }
    return true;
}

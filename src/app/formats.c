/* mimus_format_describe: the reader table as a user sees it. */
#include "reader.h"

bool mimus_format_describe(size_t index, mimus_format *out) {
    static const mimus_format_option none = {NULL, NULL};
    if (index == 0) { /* recording.c reads those itself */
        *out = (mimus_format){"rec", "mimus recording .rec", &none};
        return true;
    }
    const mimus__reader *reader = mimus__reader_at(index - 1);
    if (reader == NULL)
        return false;
    *out = (mimus_format){reader->name, reader->label, reader->options};
    return true;
}

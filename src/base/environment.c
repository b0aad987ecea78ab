#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mimus_status mimus__environment_word(const char **out, const char *name, const char *const *words) {
    const char *value = getenv(name);
    char list[256] = "";
    size_t length = 0;
    *out = NULL;
    if (value == NULL || value[0] == '\0')
        return MIMUS_OK;
    for (; *words != NULL; words++) {
        if (strcmp(value, *words) == 0) {
            *out = *words;
            return MIMUS_OK;
        }
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                   length > 0 ? " or " : "", *words);
    }
    return mimus__fail(MIMUS_ERR_ARGUMENT, "the variable %s is \"%s\": it must be %s, or unset",
                       name, value, list);
}

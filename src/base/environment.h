/* environment - variables of the environment that take one of a few words. */
#ifndef MIMUS_BASE_ENVIRONMENT_H
#define MIMUS_BASE_ENVIRONMENT_H

#include "status.h"

/* `*out` = which of `words` (ends in NULL) the variable holds; NULL when it is unset or empty. Any
 * other word gives MIMUS_ERR_ARGUMENT, and the message lists those allowed. */
mimus_status mimus__environment_word(const char **out, const char *name, const char *const *words);

#endif

/* csource_templates - the files of csource/, embedded at build (cmake/embed.cmake). */
#ifndef MIMUS_MODEL_CSOURCE_TEMPLATES_H
#define MIMUS_MODEL_CSOURCE_TEMPLATES_H

#include <stddef.h>

typedef struct mimus__csource_template {
    const char *name;          /* "policy.c.in" */
    const unsigned char *text; /* ends in NUL */
} mimus__csource_template;

/* Ends in a NULL name. */
extern const mimus__csource_template mimus__csource_templates[];

#endif

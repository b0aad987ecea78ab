/* faults - what is wrong with a recording, as mimus_info and mimus_import tell it. */
#ifndef MIMUS_CLI_FAULTS_H
#define MIMUS_CLI_FAULTS_H

#include <jansson.h>

/* A line for each kind of fault that there is and each file that lost something, each behind
 * `indent`; how many lines. */
int faults_print(const json_t *document, const char *indent);

#endif

/* json-get MEMBER...: the value of a member of the JSON object on standard input, itself an
 * object's member or an array's element by number; without arguments, only whether the input is one
 * JSON object. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    json_error_t error;
    json_t *document = json_loadf(stdin, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(document)) {
        fprintf(stderr, "json-get: %s\n", document == NULL ? error.text : "not an object");
        return 1;
    }
    const json_t *value = document;
    for (int i = 1; i < argc; i++) {
        value = json_is_array(value) ? json_array_get(value, strtoul(argv[i], NULL, 10))
                                     : json_object_get(value, argv[i]);
        if (value == NULL) {
            fprintf(stderr, "json-get: no %s\n", argv[i]);
            return 1;
        }
    }
    if (json_is_string(value))
        puts(json_string_value(value));
    else if (argc > 1 && (json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT) != 0 ||
                          putchar('\n') == EOF))
        return 1;
    json_decref(document);
    return 0;
}

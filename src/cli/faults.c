#include "faults.h"

#include "cli.h"
#include "human.h"

#include <stdio.h>
#include <string.h>

enum { NAME_CELLS = 40 };

static const struct {
    const char *key;
    const char *text;
} kinds[] = {
    {"sense", "with a sense that is not finite"},
    {"weight", "with a weight that is negative or not finite"},
    {"range", "with a label out of its head's range"},
    {"forbidden", "with a label that its mask forbids"},
    {"no_legal", "with a label where no action is legal"},
};

/* ", sense 5", ", head "move"", or nothing. */
static void describe_place(const json_t *fault, char *out, size_t bytes) {
    static const char *const members[] = {"sense", "head"};
    out[0] = '\0';
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *place = json_object_get(fault, members[i]);
        char name[4 * NAME_CELLS + 8];
        if (json_is_string(place)) {
            human_fit(name, sizeof name, json_string_value(place), NAME_CELLS);
            snprintf(out, bytes, ", %s \"%s\"", members[i], name);
        } else if (json_is_integer(place)) {
            snprintf(out, bytes, ", %s %.0f", members[i], json_number_value(place));
        }
    }
}

static int print_kinds(const json_t *faults, const char *indent) {
    int lines = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *fault = json_object_get(faults, kinds[i].key);
        char place[256];
        if (fault == NULL)
            continue;
        describe_place(fault, place, sizeof place);
        printf("%s%s samples %s (the first is row %s%s)\n", indent,
               human_count(cli_number(fault, "samples")).text, kinds[i].text,
               human_count(cli_number(fault, "first_row")).text, place);
        lines++;
    }
    return lines;
}

int faults_print(const json_t *document, const char *indent) {
    size_t i;
    const json_t *loss;
    int lines = print_kinds(json_object_get(document, "faults"), indent);
    json_array_foreach(json_object_get(document, "losses"), i, loss) {
        char file[4 * NAME_CELLS + 8], reason[4 * 80 + 8];
        human_fit(file, sizeof file, cli_text(loss, "file"), NAME_CELLS);
        human_fit(reason, sizeof reason, cli_text(loss, "reason"), 80);
        printf("%s%s: lost %s: %s\n", indent, file, human_bytes(cli_number(loss, "bytes")).text,
               reason);
        lines++;
    }
    return lines;
}

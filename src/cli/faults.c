#include "faults.h"

#include "cli.h"
#include "human.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_CELLS = 72 }; /* that stand beside a name */

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
static void print_place(const json_t *fault) {
    static const char *const members[] = {"sense", "head"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *place = json_object_get(fault, members[i]);
        if (json_is_string(place)) {
            char *name =
                human_text(json_string_value(place), terminal_room(STDOUT_FILENO, LINE_CELLS));
            printf(", %s \"%s\"", members[i], name);
            free(name);
        } else if (json_is_integer(place)) {
            printf(", %s %.0f", members[i], json_number_value(place));
        }
    }
}

static int print_kinds(const json_t *faults, const char *indent) {
    int lines = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *fault = json_object_get(faults, kinds[i].key);
        if (fault == NULL)
            continue;
        printf("%s%s %s (the first is row %s", indent,
               human_things(cli_number(fault, "samples"), "sample").text, kinds[i].text,
               human_count(cli_number(fault, "first_row")).text);
        print_place(fault);
        puts(")");
        lines++;
    }
    return lines;
}

int faults_print(const json_t *document, const char *indent) {
    size_t i;
    const json_t *loss;
    int lines = print_kinds(json_object_get(document, "faults"), indent);
    json_array_foreach(json_object_get(document, "losses"), i, loss) {
        char *line =
            cli_format("%s: lost %s: %s", cli_text(loss, "file"),
                       human_bytes(cli_number(loss, "bytes")).text, cli_text(loss, "reason"));
        char *fit = human_text(line, terminal_room(STDOUT_FILENO, strlen(indent)));
        printf("%s%s\n", indent, fit);
        free(fit);
        free(line);
        lines++;
    }
    return lines;
}

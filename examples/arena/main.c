/* mimus-arena - a small game that shows how a game records play for mimus, and how it runs the
 * policy that mimus made of it. Read record.c and play.c; the game itself knows nothing of mimus.
 */
#include "arguments.h"
#include "commands.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"record", "let two scripted experts duel, and record both", command_record},
    {"play", "let a policy duel with the expert and with chance", command_play},
    {"watch", "show a duel in the terminal", command_watch},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int overview(void) {
    puts("mimus-arena is a duel of two tanks: the example of a game that uses mimus.\n"
         "\n"
         "usage: mimus-arena VERB [OPTION...]\n"
         "       mimus-arena VERB --help\n"
         "\n"
         "Verbs");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].help);
    puts("\n"
         "Examples\n"
         "  mimus-arena record --samples 200000 --seed 1 -o play.rec\n"
         "  mimus train play.rec -o run\n"
         "  mimus-arena play --policy run\n"
         "\n"
         "Results go to standard output, progress and errors to standard error.\n"
         "Exit codes: 0 done; 1 failed; 2 wrong usage.");
    return finish(NULL, EXIT_DONE);
}

int main(int argc, char **argv) {
    setlocale(LC_CTYPE, ""); /* not LC_NUMERIC: numbers are written with a point */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return overview();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return complain_usage(NULL, "unknown verb \"%s\"", argv[1]);
}

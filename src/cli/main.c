/* main - the command: finds the verb, and explains the verbs. */
#include "cli.h"
#include "options.h"
#include "verbs.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int cmd_version(int argc, char **argv);
static int cmd_help(int argc, char **argv);

typedef struct cli_verb {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} cli_verb;

static const cli_verb verbs[] = {
    {"devices", "list the OpenCL devices, or test one", cmd_devices},
    {"import", "write recordings of other formats as one .rec file", cmd_import},
    {"convert", "write recordings as NumPy .npz or Minari's HDF5, for other programs", cmd_convert},
    {"info", "describe a recording: senses, heads, actions, what is wrong with it", cmd_info},
    {"train", "train a policy on recordings, or go on with a run", cmd_train},
    {"eval", "judge a trained policy on recordings", cmd_eval},
    {"export", "write a policy for onnxruntime, Unity, Godot, C or Python", cmd_export},
    {"report", "write a page about runs: curves, agreement, confusion, timing", cmd_report},
    {"compare", "hold runs against one another: do they differ beyond noise?", cmd_compare},
    {"bench", "measure training on a device", cmd_bench},
    {"version", "print the version", cmd_version},
    {"help", "explain a verb", cmd_help},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const cli_verb *find_verb(const char *name) {
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

static const char *verb_at(const void *user, size_t index) {
    (void)user;
    return index < VERBS ? verbs[index].name : NULL;
}

static int unknown_verb(const char *name) {
    if (name[0] == '-')
        return cli_usage(NULL, "unknown option %s; a verb comes first", name);
    const char *nearest = options_nearest(name, verb_at, NULL);
    return nearest != NULL ? cli_usage(NULL, "unknown verb \"%s\"; did you mean %s?", name, nearest)
                           : cli_usage(NULL, "unknown verb \"%s\"", name);
}

static void overview(void) {
    puts("mimus trains policies from recorded play, on any OpenCL device.\n"
         "\n"
         "usage: mimus VERB [ARGUMENT...]\n"
         "       mimus VERB --help\n"
         "\n"
         "Verbs");
    for (size_t i = 0; i < VERBS; i++) {
        printf("  %-9s", verbs[i].name);
        options_wrap(verbs[i].help, 11);
    }
    puts("\n"
         "Examples\n"
         "  mimus devices\n"
         "  mimus import play.npz -o play.rec\n"
         "  mimus info play.rec\n"
         "  mimus train play.rec -o run --hidden 128,128 --epochs 20\n"
         "  mimus eval run other.rec --confusion\n"
         "  mimus report run other-run -o report.html\n"
         "  mimus export run -o policy.onnx --for unity\n"
         "\n"
         "Results go to standard output, progress and errors to standard error.\n"
         "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 no device, or it failed;\n"
         "4 training diverged; 5 a comparison found worse; 130 and 143 after SIGINT and\n"
         "SIGTERM. After 4, 130 and 143 everything is saved.\n"
         "The variable MIMUS_DEVICE names a device; docs/environment.md has the others.");
}

static int cmd_version(int argc, char **argv) {
    static const option_page page = {
        .verb = "version", .usage = "\n", .about = "Print the version.\n"};
    option_groups groups = {0};
    int first, code;
    options_add(&groups, "Options", NULL, 0, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code)) {
        code = first < argc ? cli_usage("version", "\"%s\" is one argument too many", argv[first])
                            : CLI_DONE;
        if (code == CLI_DONE)
            puts("mimus " MIMUS_VERSION);
    }
    options_clear(&groups);
    return code;
}

/* A verb explains itself when it is asked to. */
static int explain(const char *name) {
    const cli_verb *verb = find_verb(name);
    if (verb == NULL)
        return unknown_verb(name);
    char help[] = "--help", word[16];
    snprintf(word, sizeof word, "%s", verb->name);
    char *argv[] = {word, help, NULL};
    return verb->run(2, argv);
}

static int cmd_help(int argc, char **argv) {
    static const option_page page = {
        .verb = "help", .usage = "[VERB]\n", .about = "Explain a verb; without one, list them.\n"};
    option_groups groups = {0};
    int first, code = CLI_DONE;
    options_add(&groups, "Options", NULL, 0, false);
    if (options_parse(&page, &groups, argc, argv, &first, &code)) {
        if (argc - first > 1)
            code = cli_usage("help", "one verb at a time");
        else if (argc - first == 1)
            code = explain(argv[first]);
        else
            overview();
    }
    options_clear(&groups);
    return code;
}

int main(int argc, char **argv) {
    setlocale(LC_CTYPE, "");  /* not LC_NUMERIC: numbers are read and written with a point */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is an error, said in a line */
    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        overview();
        return cli_finish(NULL, CLI_DONE);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const cli_verb *verb = find_verb(name);
    if (verb == NULL)
        return unknown_verb(name);
    return cli_finish(verb->name, verb->run(argc - 1, argv + 1));
}

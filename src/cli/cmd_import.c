/* mimus import - recordings of other formats become one .rec file. */
#include "rewrite.h"
#include "verbs.h"

static const rewrite_verb verb = {
    .page =
        {
            .verb = "import",
            .usage = "FILE... -o OUT.rec [--format NAME] [--KEY VALUE...]\n",
            .about =
                "Write the files, which together are one recording, as one .rec file. It appears\n"
                "under its name, or replaces an old one, only when it is complete; it cannot be\n"
                "one of the files that are read. Every verb that takes recordings reads\n"
                "the same formats with the same options; a .rec is checked once and read fast.\n",
            .notes =
                "Examples\n"
                "  mimus import expert.npz -o expert.rec\n"
                "  mimus import expert.npz -o expert.rec --heads move:5,shoot:2 --masks legal\n"
                "  mimus import day1.npz day2.npz -o week.rec --illegal drop\n"
                "  mimus import log.csv.gz -o log.rec --actions move --episode match\n"
                "  mimus import drive.npz -o drive.rec --bin all:uniform:11\n"
                "  mimus import old.rec new.rec -o all.rec --episodes 0:100\n",
        },
    .value = "OUT.rec",
    .help = "the file to write",
    .missing = "-o OUT.rec is missing: the file to write",
    .explain = true,
    .call = mimus_import,
};

int cmd_import(int argc, char **argv) {
    return rewrite_run(&verb, argc, argv);
}

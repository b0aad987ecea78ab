/* mimus convert - recordings in formats for other programs. */
#include "rewrite.h"
#include "verbs.h"

static const rewrite_verb verb = {
    .page =
        {
            .verb = "convert",
            .usage = "FILE... -o OUT.npz|OUT.h5 [--format NAME] [--KEY VALUE...]\n",
            .about =
                "Write the files, which together are one recording, for other programs: as a\n"
                "NumPy archive or, when the name ends in .h5 or .hdf5, as HDF5 in Minari's\n"
                "layout. The file appears under its name, or replaces an old one, only when it\n"
                "is complete.\n"
                "Reading it back gives the same samples, episodes and names. Files that are not\n"
                ".rec are read into memory, as when training: import large ones first.\n",
            .notes =
                "Examples\n"
                "  mimus convert play.rec -o play.npz\n"
                "  mimus convert day1.rec day2.rec -o week.h5\n"
                "  mimus convert play.rec -o play-v0/data/main_data.hdf5  # as a Minari dataset\n",
        },
    .value = "OUT",
    .help = "the file to write: .npz, .h5 or .hdf5",
    .missing = "-o OUT.npz or -o OUT.h5 is missing: the file to write",
    .explain = false,
    .call = mimus_convert,
};

int cmd_convert(int argc, char **argv) {
    return rewrite_run(&verb, argc, argv);
}

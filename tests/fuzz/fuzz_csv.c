/* Any bytes as a table of text, plain or gzipped, with one of several sets of options: reading,
 * auditing and splitting it must end well or fail clearly.
 *
 *   1 byte   which options are given; then the file */
#include "support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[FUZZ_OPTIONS][4] = {
        {NULL},
        {"header=yes", NULL},
        {"header=no", "actions=0", NULL},
        {"actions=-1", "bin=all:quantile:5", NULL},
        {"actions=0:2", "bin=0:uniform:3", NULL},
        {"heads=a:left|right|up", NULL},
        {"masks=0,1", "senses=2", NULL},
        {"episode=0", "separator=;", NULL},
    };
    fuzz_read_with_options(data, size, "csv", options);
    return 0;
}

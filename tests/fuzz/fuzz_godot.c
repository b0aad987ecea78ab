/* Any bytes as what Godot RL Agents records, with one of several sets of options: reading,
 * auditing and splitting it must end well or fail clearly.
 *
 *   1 byte   which options are given; then the file */
#include "support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[FUZZ_OPTIONS][4] = {
        {NULL},
        {"heads=5", NULL},
        {"heads=move:5,shoot:hold|fire", NULL},
        {"bin=all:quantile:5", NULL},
        {"bin=all:uniform:3", NULL},
        {"bin=steer_0:uniform:3", NULL},
        {"heads=a:3,b:4", "bin=a:quantile:2", NULL},
        {"bin=1:quantile:3", NULL},
    };
    fuzz_read_with_options(data, size, "godot", options);
    return 0;
}

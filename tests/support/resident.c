#include "resident.h"

#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t resident_bytes(const char *path, size_t *mapped) {
    char line[4096];
    size_t resident = 0, kilobytes;
    unsigned long begin, end;
    bool ours = false;
    char *real = realpath(path, NULL);
    FILE *file = fopen("/proc/self/smaps", "r");
    ck_assert(real != NULL && file != NULL);
    *mapped = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            const char *name = strchr(line, '/');
            ours = name != NULL && strcmp(name, real) == 0;
            *mapped += ours ? end - begin : 0;
        } else if (ours && sscanf(line, "Rss: %zu kB", &kilobytes) == 1) {
            resident += kilobytes * 1024;
        }
    }
    fclose(file);
    free(real);
    return resident;
}

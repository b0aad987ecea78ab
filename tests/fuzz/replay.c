/* Runs a fuzz target over the files of a corpus, as a plain test and without a fuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST = 1 << 20 };

static int replay(const char *path) {
    FILE *stream = fopen(path, "rb");
    uint8_t *bytes = stream != NULL ? malloc(LARGEST) : NULL;
    if (bytes == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    size_t size = fread(bytes, 1, LARGEST, stream);
    uint8_t *exact = malloc(size > 0 ? size : 1); /* so that a sanitizer sees the end of it */
    if (exact == NULL)
        exit(EXIT_FAILURE);
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    free(bytes);
    fclose(stream);
    return 1;
}

static int replay_folder(const char *folder) {
    int files = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        perror(folder);
        exit(EXIT_FAILURE);
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files += replay(path);
    }
    closedir(entries);
    return files;
}

int main(int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++)
        files += replay_folder(argv[i]);
    printf("%d files\n", files);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

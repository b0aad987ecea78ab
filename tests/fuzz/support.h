/* support - what fuzz targets share: a file of the bytes, and what must hold whatever they are. */
#ifndef MIMUS_FUZZ_SUPPORT_H
#define MIMUS_FUZZ_SUPPORT_H

#include "recording.h"

/* Where fuzz_put_file puts the bytes; gone when the program ends. */
extern char fuzz_path[256];
void fuzz_put_file(const uint8_t *data, size_t size);

/* Say what failed, and abort. */
void fuzz_expect(bool good, const char *what);

/* A failure names the file, in one line. */
void fuzz_expect_message(void);

#endif

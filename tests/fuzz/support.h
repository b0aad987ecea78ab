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

/* Read, audit and split a file: all must end well or fail clearly. Of the first byte, the low three
 * bits say which options are given, the others which part is taken; the rest is the file. */
enum { FUZZ_OPTIONS = 8 };
void fuzz_read_with_options(const uint8_t *data, size_t size, const char *format,
                            const char *const options[FUZZ_OPTIONS][4]);

#endif

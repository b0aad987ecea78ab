#include "crc32c.h"

/* Bit by bit: what is checked is small. */
uint32_t mimus__crc32c(const void *bytes, size_t count) {
    const uint32_t reflected = 0x82F63B78u;
    const unsigned char *byte = bytes;
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < count; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? reflected : 0);
    }
    return ~crc;
}

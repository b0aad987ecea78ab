/* crc32c - the Castagnoli CRC that event files of TensorBoard are checked by (RFC 3720, section
 * 12.1): polynomial 0x1EDC6F41, reflected. */
#ifndef MIMUS_BASE_CRC32C_H
#define MIMUS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t mimus__crc32c(const void *bytes, size_t count);

#endif

/* base/crc32c.h — the checksum of everything on disk: CRC-32C (Castagnoli). */
#ifndef SL_BASE_CRC32C_H
#define SL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to begin) over more bytes; sl_crc32c(sl_crc32c(0, a), b) is that of a and b together. Uses the
 * processor's instruction where there is one, a table elsewhere; the result is the same. */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes);

/* The table variant, for the test that holds both against each other. */
uint32_t sl_crc32c_by_table(uint32_t crc, const void *data, size_t bytes);

#endif

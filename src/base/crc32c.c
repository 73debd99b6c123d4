/* base/crc32c.c — CRC-32C, by the SSE4.2 instruction or by table.
 *
 * The instruction takes eight bytes in three cycles but can begin a new one every cycle, so long data goes in three
 * lanes at once. Joining lanes needs a multiplication by x^(8n) in the field; for a fixed n that is four table
 * look-ups, so there are two lane lengths, multiples of eight: one for long data, one for an event of some 300 bytes. */
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* Castagnoli, bits reversed */

enum {
    LONG_LANE_BYTES = 1024,
    SHORT_LANE_BYTES = 96,
};

static uint32_t bytes_table[256];
static uint32_t long_table[4][256],
    short_table[4][256]; /* what a lane of zero bytes makes of a crc, by its bytes */

static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        crc = bytes_table[(crc ^ at[i]) & 0xff] ^ crc >> 8;
    return crc;
}

static uint32_t after_zeros(uint32_t crc, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        crc = bytes_table[crc & 0xff] ^ crc >> 8;
    return crc;
}

/* Before main(): the tables are then constant for every thread. */
__attribute__((constructor)) static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        bytes_table[i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int byte = 0; byte < 4; byte++) {
            long_table[byte][i] = after_zeros(i << (8 * byte), LONG_LANE_BYTES);
            short_table[byte][i] = after_zeros(i << (8 * byte), SHORT_LANE_BYTES);
        }
}

uint32_t sl_crc32c_by_table(uint32_t crc, const void *data, size_t bytes)
{
    return ~by_table(~crc, data, bytes);
}

#if defined(__x86_64__)

static inline uint32_t shift_lane(uint32_t crc, uint32_t table[4][256])
{
    return table[0][crc & 0xff] ^ table[1][crc >> 8 & 0xff] ^ table[2][crc >> 16 & 0xff] ^
           table[3][crc >> 24];
}

static uint64_t load(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* Three lanes, one behind the other. */
__attribute__((target("sse4.2"))) static inline uint64_t
three_lanes(uint64_t a, const uint8_t *at, size_t lane_bytes, uint32_t table[4][256])
{
    uint64_t b = 0, c = 0;

    for (size_t i = 0; i < lane_bytes; i += 8) {
        a = __builtin_ia32_crc32di(a, load(at + i));
        b = __builtin_ia32_crc32di(b, load(at + lane_bytes + i));
        c = __builtin_ia32_crc32di(c, load(at + 2 * lane_bytes + i));
    }
    return shift_lane(shift_lane((uint32_t)a, table) ^ (uint32_t)b, table) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 size_t bytes)
{
    uint64_t a = crc;

    for (; bytes >= 3 * LONG_LANE_BYTES; bytes -= 3 * LONG_LANE_BYTES, at += 3 * LONG_LANE_BYTES)
        a = three_lanes(a, at, LONG_LANE_BYTES, long_table);
    for (; bytes >= 3 * SHORT_LANE_BYTES; bytes -= 3 * SHORT_LANE_BYTES, at += 3 * SHORT_LANE_BYTES)
        a = three_lanes(a, at, SHORT_LANE_BYTES, short_table);
    for (; bytes >= 8; bytes -= 8, at += 8)
        a = __builtin_ia32_crc32di(a, load(at));
    for (; bytes > 0; bytes--, at++)
        a = __builtin_ia32_crc32qi((uint32_t)a, *at);
    return (uint32_t)a;
}

uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    if (!__builtin_cpu_supports("sse4.2"))
        return sl_crc32c_by_table(crc, data, bytes);
    return ~by_instruction(~crc, data, bytes);
}

#else

uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return sl_crc32c_by_table(crc, data, bytes);
}

#endif

/* base/little.h — numbers in little-endian, at any address: how files of ours have them. Inline, because with each event some twenty
 * of them are written: the compiler makes one move of each. */
#ifndef SL_BASE_LITTLE_H
#define SL_BASE_LITTLE_H

#include <stdint.h>

static inline void sl_put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void sl_put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

static inline void sl_put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint16_t sl_get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t sl_get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t sl_get_u64(const uint8_t *at)
{
    return sl_get_u32(at) | (uint64_t)sl_get_u32(at + 4) << 32;
}

#endif

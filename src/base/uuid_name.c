/* base/uuid_name.c — identifiers made from names: version 5 of RFC 9562.
 *
 * They need SHA-1 (RFC 3174), which keeps no secret here: it only has to spread, and to be the same everywhere. */
#include "base/uuid.h"

#include <string.h>

enum {
    BLOCK_BYTES = 64,
    LENGTH_BYTES = 8, /* at the end of the last block */
    ROUNDS = 80
};

typedef struct sha1 {
    uint32_t state[5];
    uint64_t bytes; /* all that came */
    uint8_t block[BLOCK_BYTES];
} sha1;

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static void spread(const uint8_t block[BLOCK_BYTES], uint32_t words[ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < ROUNDS; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
}

/* The function and the constant of a round. */
static uint32_t mix(size_t round, const uint32_t s[5])
{
    if (round < 20)
        return ((s[1] & s[2]) | (~s[1] & s[3])) + UINT32_C(0x5a827999);
    if (round < 40)
        return (s[1] ^ s[2] ^ s[3]) + UINT32_C(0x6ed9eba1);
    if (round < 60)
        return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + UINT32_C(0x8f1bbcdc);
    return (s[1] ^ s[2] ^ s[3]) + UINT32_C(0xca62c1d6);
}

static void take_block(sha1 *hash)
{
    uint32_t words[ROUNDS], s[5];

    spread(hash->block, words);
    memcpy(s, hash->state, sizeof s);
    for (size_t i = 0; i < ROUNDS; i++) {
        const uint32_t next = rotate(s[0], 5) + mix(i, s) + s[4] + words[i];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (size_t i = 0; i < 5; i++)
        hash->state[i] += s[i];
}

static void take(sha1 *hash, const void *data, size_t bytes)
{
    const uint8_t *const from = data;

    for (size_t i = 0; i < bytes; i++) {
        hash->block[hash->bytes++ % BLOCK_BYTES] = from[i];
        if (hash->bytes % BLOCK_BYTES == 0)
            take_block(hash);
    }
}

static void finish(sha1 *hash)
{
    static const uint8_t one_bit = 0x80, zeros = 0;
    const uint64_t bits = hash->bytes * 8;
    uint8_t length[LENGTH_BYTES];

    for (size_t i = 0; i < LENGTH_BYTES; i++)
        length[i] = (uint8_t)(bits >> (8 * (LENGTH_BYTES - 1 - i)));
    take(hash, &one_bit, 1);
    while (hash->bytes % BLOCK_BYTES != BLOCK_BYTES - LENGTH_BYTES)
        take(hash, &zeros, 1);
    take(hash, length, LENGTH_BYTES);
}

sl_uuid sl_uuid_v5(sl_uuid space, const void *name, size_t name_bytes)
{
    sha1 hash = { .state = { UINT32_C(0x67452301), UINT32_C(0xefcdab89), UINT32_C(0x98badcfe),
                             UINT32_C(0x10325476), UINT32_C(0xc3d2e1f0) } };
    sl_uuid uuid;

    take(&hash, space.bytes, sizeof space.bytes);
    take(&hash, name, name_bytes);
    finish(&hash);
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        uuid.bytes[i] = (uint8_t)(hash.state[i / 4] >> (8 * (3 - i % 4)));
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x50);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

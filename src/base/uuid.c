/* base/uuid.c — reading and writing the identifiers of uuid.h.
 *
 * The bytes are kept in the order of the text, most significant first, so the halves are big-endian and
 * comparing bytes compares texts. */
#include "base/uuid.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/* A dash stands before the bytes 4, 6, 8 and 10. */
static bool dash_before(size_t byte_index)
{
    return byte_index == 4 || byte_index == 6 || byte_index == 8 || byte_index == 10;
}

/* One more than the value of a hexadecimal digit, or 0. A table, because digits of ids cannot be guessed: of comparisons every other one
 * would be guessed wrong. */
static unsigned digit_value_and_one(char c)
{
    static const uint8_t values[UINT8_MAX + 1] = {
        ['0'] = 1,  2,  3,  4,  5,  6,  7, 8, 9, 10, /* in a row up to '9' */
        ['A'] = 11, 12, 13, 14, 15, 16,              /* and to 'F' */
        ['a'] = 11, 12, 13, 14, 15, 16,
    };

    return values[(uint8_t)c];
}

sl_err sl_uuid_parse(const char *text, size_t text_bytes, sl_uuid *ret_uuid)
{
    sl_uuid uuid;

    if (text_bytes != SL_UUID_TEXT_BYTES)
        return SL_ERR_INVALID;
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        if (dash_before(i) && *text++ != '-')
            return SL_ERR_INVALID;
        const unsigned high = digit_value_and_one(*text++);
        const unsigned low = digit_value_and_one(*text++);
        if (high == 0 || low == 0)
            return SL_ERR_INVALID;
        uuid.bytes[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    *ret_uuid = uuid;
    return SL_OK;
}

void sl_uuid_format(sl_uuid uuid, char text[SL_UUID_TEXT_BYTES + 1])
{
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        if (dash_before(i))
            *text++ = '-';
        *text++ = hex_digits[uuid.bytes[i] >> 4];
        *text++ = hex_digits[uuid.bytes[i] & 15];
    }
    *text = '\0';
}

sl_uuid sl_uuid_v4(const uint8_t random[16])
{
    sl_uuid uuid;

    memcpy(uuid.bytes, random, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40); /* version 4: made of random bits */
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80); /* the variant that this text form belongs to */
    return uuid;
}

static void store_half(uint8_t bytes[8], uint64_t half)
{
    for (int i = 7; i >= 0; i--, half >>= 8)
        bytes[i] = (uint8_t)half;
}

static uint64_t load_half(const uint8_t bytes[8])
{
    uint64_t half = 0;

    for (int i = 0; i < 8; i++)
        half = half << 8 | bytes[i];
    return half;
}

sl_uuid sl_uuid_from_halves(int64_t most, int64_t least)
{
    sl_uuid uuid;

    store_half(uuid.bytes, (uint64_t)most);
    store_half(uuid.bytes + 8, (uint64_t)least);
    return uuid;
}

void sl_uuid_to_halves(sl_uuid uuid, int64_t *ret_most, int64_t *ret_least)
{
    *ret_most = (int64_t)load_half(uuid.bytes); /* gcc and clang define this as two's complement */
    *ret_least = (int64_t)load_half(uuid.bytes + 8);
}

bool sl_uuid_equal(sl_uuid a, sl_uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

bool sl_uuid_is_zero(sl_uuid uuid)
{
    return sl_uuid_equal(uuid, (sl_uuid){ { 0 } });
}

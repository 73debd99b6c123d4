/* server/groups/names.c — names.h: one hash, and a letter in front of each kind of text so that kinds never meet. */
#include "server/groups/names.h"

#include "base/map.h"

#include <stdbool.h>
#include <stdio.h>

static const sl_hash_seed name_seed = { UINT64_C(0x736c756963652d31), UINT64_C(0x6e616d65732d2d31) };

/* Each part is hashed with the result of the one before it as a seed, so that ("ab", "c") and ("a", "bc") differ. */
static uint64_t hash_part(uint64_t before, sl_str part)
{
    return sl_hash((sl_hash_seed){ name_seed.k0 ^ before, name_seed.k1 }, part.data, part.bytes);
}

static uint64_t hash_two(char kind, sl_str first, sl_str second)
{
    return hash_part(hash_part((uint64_t)(unsigned char)kind, first), second);
}

static bool is_inside_of_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* A character has at most three bytes behind its first one; what has more is no text, and is cut anywhere. */
sl_str sl_consumer_name_of(sl_str given)
{
    size_t bytes = SL_CONSUMER_NAME_BYTES_MAX;

    if (given.bytes <= bytes)
        return given;
    while (bytes > SL_CONSUMER_NAME_BYTES_MAX - 3 && is_inside_of_character(given.data[bytes]))
        bytes--;
    return (sl_str){ given.data,
                     is_inside_of_character(given.data[bytes]) ? SL_CONSUMER_NAME_BYTES_MAX : bytes };
}

void sl_parked_stream_of(const char *group_key, char *name, size_t name_bytes)
{
    (void)snprintf(name, name_bytes, SL_PARKED_PREFIX "%s" SL_PARKED_SUFFIX, group_key);
}

sl_uuid sl_session_of(sl_str user, sl_str consumer_name)
{
    const uint64_t halves[2] = { hash_two('s', user, consumer_name), hash_two('t', user, consumer_name) };
    uint8_t bytes[16];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(halves[i / 8] >> 8 * (i % 8));
    return sl_uuid_v4(bytes); /* the form of a UUID, for logs and pages that show it */
}

static uint64_t not_zero(uint64_t tag)
{
    return tag == 0 ? 1 : tag;
}

uint64_t sl_tag_of_name(sl_str consumer_name)
{
    return not_zero(hash_part('n', consumer_name));
}

uint64_t sl_tag_of_label(sl_str key, sl_str value)
{
    return not_zero(hash_two('l', key, value));
}

uint64_t sl_key_of(sl_str text)
{
    return hash_part('k', text);
}

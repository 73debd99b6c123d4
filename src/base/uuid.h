/* base/uuid.h — 128-bit identifiers: text, bytes, and the pair of signed 64-bit numbers that clients send. */
#ifndef SL_BASE_UUID_H
#define SL_BASE_UUID_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_uuid {
    uint8_t bytes[16]; /* in the order in which the text shows them */
} sl_uuid;

enum {
    SL_UUID_TEXT_BYTES = 36 /* without a closing zero */
};

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", upper or lower case. SL_OK or SL_ERR_INVALID. */
sl_err sl_uuid_parse(const char *text, size_t text_bytes, sl_uuid *ret_uuid);

/* Lower case; writes a closing zero as well. */
void sl_uuid_format(sl_uuid uuid, char text[SL_UUID_TEXT_BYTES + 1]);

/* Version 4 from 16 random bytes: six bits of them are overwritten with version and variant. */
sl_uuid sl_uuid_v4(const uint8_t random[16]);

/* Version 5 (RFC 9562): the same for the same two, in every language that has uuid5(). For ids that are made from other ids. */
sl_uuid sl_uuid_v5(sl_uuid space, const void *name, size_t name_bytes);

/* The structured form: most and least significant 64 bits, as two's complement. */
sl_uuid sl_uuid_from_halves(int64_t most, int64_t least);
void sl_uuid_to_halves(sl_uuid uuid, int64_t *ret_most, int64_t *ret_least);

bool sl_uuid_equal(sl_uuid a, sl_uuid b);
bool sl_uuid_is_zero(sl_uuid uuid);

#endif

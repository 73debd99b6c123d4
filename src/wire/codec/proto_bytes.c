/* wire/codec/proto_bytes.c — the seldom halves of proto_bytes.h, kept out of the callers' loops. */
#include "wire/proto_bytes.h"

#include "base/utf8.h"

#include <endian.h>

void sl_proto_fail(sl_proto_reader *reader, const char *reason)
{
    if (reader->reason == NULL)
        reader->reason = reason;
    reader->at = reader->end;
}

/* Puts the seven bits of each byte beside each other: pairs of bytes, then pairs of pairs, then the two halves. */
static uint64_t compact(uint64_t bytes)
{
    bytes &= UINT64_C(0x7f7f7f7f7f7f7f7f);
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bytes & UINT64_C(0x000000000fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Ten bytes are there, so eight can be taken at once. How many belong to the number; 0 when it has more than 64 bits. */
static size_t varint_of_ten(const uint8_t *at, uint64_t *ret_value)
{
    uint64_t eight, ends;

    memcpy(&eight, at, sizeof eight);
    eight = le64toh(eight);
    ends = ~eight & UINT64_C(0x8080808080808080); /* a byte without its top bit is the last */
    if (ends != 0) {
        *ret_value = compact(eight & (ends ^ (ends - 1)));
        return (size_t)__builtin_ctzll(ends) / 8 + 1;
    }
    *ret_value = compact(eight) | (uint64_t)(at[8] & 0x7f) << 56;
    if (at[8] < 0x80)
        return 9;
    *ret_value |= (uint64_t)at[9] << 63;
    return at[9] <= 1 ? 10 : 0; /* nine bytes hold 63 bits */
}

/* Near the end of a message there may be fewer. */
static size_t varint_of_few(const uint8_t *at, size_t left, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < left; i++) {
        value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80) {
            *ret_value = value;
            return i + 1;
        }
    }
    return 0;
}

bool sl_proto_varint_rest(sl_proto_reader *reader, uint64_t *ret_value)
{
    const size_t left = (size_t)(reader->end - reader->at);
    const bool ten = left >= SL_PROTO_VARINT_BYTES_MAX;
    const size_t bytes =
        ten ? varint_of_ten(reader->at, ret_value) : varint_of_few(reader->at, left, ret_value);

    if (bytes == 0)
        sl_proto_fail(reader, ten ? "a number has more than 64 bits" : "the message ends within a number");
    else
        reader->at += bytes;
    return bytes != 0;
}

static bool take_fixed(sl_proto_reader *reader, sl_proto_field *field, size_t bytes)
{
    if ((size_t)(reader->end - reader->at) < bytes) {
        sl_proto_fail(reader, "the message ends within a number");
        return false;
    }
    field->value = 0;
    for (size_t i = 0; i < bytes; i++)
        field->value |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += bytes;
    return true;
}

bool sl_proto_next_rare(sl_proto_reader *reader, sl_proto_field *field)
{
    if (field->type == SL_PROTO_FIXED64)
        return take_fixed(reader, field, 8);
    if (field->type == SL_PROTO_FIXED32)
        return take_fixed(reader, field, 4);
    if (field->type == SL_PROTO_GROUP_BEGIN || field->type == SL_PROTO_GROUP_END)
        sl_proto_fail(reader, "groups are not supported");
    else
        sl_proto_fail(reader, "a field has a wire type that does not exist");
    return false;
}

void sl_proto_put_varint_rest(sl_proto_writer *writer, uint64_t value)
{
    uint8_t *at = sl_proto_claim(writer, sl_proto_varint_size(value));

    if (at == NULL)
        return;
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at = (uint8_t)value;
}

void sl_proto_take_text_rare(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    if (!sl_proto_is(reader, field, SL_PROTO_BYTES))
        return;
    if (sl_utf8_valid(field->bytes))
        *into = field->bytes;
    else
        sl_proto_fail(reader, "a text is not UTF-8");
}

void sl_proto_take_empty(sl_proto_reader *reader, const sl_proto_field *field)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field unknown;

    while (sl_proto_next(&inner, &unknown))
        continue;
    sl_proto_leave(reader, &inner);
}

sl_err sl_proto_result(const sl_proto_reader *reader, const char **ret_reason)
{
    if (reader->reason == NULL)
        return SL_OK;
    if (ret_reason != NULL)
        *ret_reason = reader->reason;
    return SL_ERR_INVALID;
}

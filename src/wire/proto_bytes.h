/* wire/proto_bytes.h — the lowest layer of protobuf: numbers, tags, lengths. No message is known here.
 *
 * Reading: a reader gives one field after the other. Whatever a peer sends, nothing behind the end is touched, and
 * the first thing that is wrong sets `reason` and ends the walk, so that callers look once, behind their loop:
 *
 *      while (sl_proto_next(&reader, &field))
 *          switch (field.number) {
 *          case 1: sl_proto_take_u64(&reader, &field, &into->revision); break;
 *          }                                    (unknown fields need no line: they are stepped over)
 *      return sl_proto_result(&reader, ret_reason);
 *
 * Taking into the same place twice is what protobuf asks for: the last number or text wins, and an embedded message that
 * comes in two parts is merged, because the second part only overwrites what it names.
 *
 * Refused: numbers of more than 64 bits, anything that is broken off, lengths behind the end, field number 0, groups,
 * wire types that do not exist, a known field with another wire type, text that is not UTF-8. Allowed, because encoders
 * do it: numbers with needless zero bits at the end, fields in any order.
 *
 * Writing: a writer fills its memory from the back to the front, so the fields of a message are put in the reverse
 * order. The length of an embedded message stands before it; written this way it is known by then, and nothing has to be
 * measured twice or moved. A writer without memory only counts: the size and the bytes of a message come from the
 * same lines of code and cannot disagree. */
#ifndef SL_WIRE_PROTO_BYTES_H
#define SL_WIRE_PROTO_BYTES_H

#include "base/err.h"
#include "base/str.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum sl_proto_type {
    SL_PROTO_VARINT = 0,
    SL_PROTO_FIXED64 = 1,
    SL_PROTO_BYTES = 2, /* bytes, text, an embedded message */
    SL_PROTO_GROUP_BEGIN = 3,
    SL_PROTO_GROUP_END = 4,
    SL_PROTO_FIXED32 = 5,
} sl_proto_type;

enum {
    SL_PROTO_VARINT_BYTES_MAX = 10, /* 64 bits, seven in each byte */
    SL_PROTO_NUMBER_MAX = (1 << 29) - 1
};

/* --- reading --- */

typedef struct sl_proto_reader {
    const uint8_t *at, *end;
    const char *reason; /* a sentence without a full stop, in static memory; NULL while nothing is wrong */
} sl_proto_reader;

typedef struct sl_proto_field {
    uint32_t number;
    sl_proto_type type;
    uint64_t value; /* of VARINT, FIXED64 and FIXED32 */
    sl_str bytes;   /* of BYTES; a view, never with a NULL pointer */
} sl_proto_field;

static inline sl_proto_reader sl_proto_reader_from(sl_str message)
{
    const uint8_t *const at = (const uint8_t *)(message.data == NULL ? "" : message.data);

    return (sl_proto_reader){ .at = at, .end = at + message.bytes };
}

/* Keeps the first reason and leaves nothing to read. */
void sl_proto_fail(sl_proto_reader *reader, const char *reason);

/* The slow halves of what follows: numbers of several bytes, and wire types that are seldom or wrong. */
bool sl_proto_varint_rest(sl_proto_reader *reader, uint64_t *ret_value);
bool sl_proto_next_rare(sl_proto_reader *reader, sl_proto_field *field);

static inline bool sl_proto_varint(sl_proto_reader *reader, uint64_t *ret_value)
{
    if (reader->at < reader->end && *reader->at < 0x80) {
        *ret_value = *reader->at++;
        return true;
    }
    return sl_proto_varint_rest(reader, ret_value);
}

/* The next field with its content. False at the end, and when something is wrong. */
static inline bool sl_proto_next(sl_proto_reader *reader, sl_proto_field *field)
{
    uint64_t tag, length;

    if (reader->at == reader->end || !sl_proto_varint(reader, &tag))
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = (sl_proto_type)(tag & 7);
    if (tag < 8 || tag >> 3 > SL_PROTO_NUMBER_MAX) {
        sl_proto_fail(reader, "a field has no valid number");
        return false;
    }
    if (field->type == SL_PROTO_VARINT)
        return sl_proto_varint(reader, &field->value);
    if (field->type != SL_PROTO_BYTES)
        return sl_proto_next_rare(reader, field);
    if (!sl_proto_varint(reader, &length))
        return false;
    if (length > (size_t)(reader->end - reader->at)) {
        sl_proto_fail(reader, "a length points behind the end of the message");
        return false;
    }
    field->bytes = (sl_str){ (const char *)reader->at, (size_t)length };
    reader->at += length;
    return true;
}

/* False, and the reader has failed, when the field has another wire type than its number should have. */
static inline bool sl_proto_is(sl_proto_reader *reader, const sl_proto_field *field, sl_proto_type type)
{
    if (field->type == type)
        return true;
    sl_proto_fail(reader, "a known field has the wrong wire type");
    return false;
}

/* Each checks the wire type and writes *into only when it is right. */
static inline void sl_proto_take_u64(sl_proto_reader *reader, const sl_proto_field *field, uint64_t *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_VARINT))
        *into = field->value;
}

static inline void sl_proto_take_i64(sl_proto_reader *reader, const sl_proto_field *field, int64_t *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_VARINT))
        *into = (int64_t)field->value; /* gcc and clang define this as two's complement */
}

/* The upper half is dropped, as protobuf says. */
static inline void sl_proto_take_u32(sl_proto_reader *reader, const sl_proto_field *field, uint32_t *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_VARINT))
        *into = (uint32_t)field->value;
}

static inline void sl_proto_take_i32(sl_proto_reader *reader, const sl_proto_field *field, int32_t *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_VARINT))
        *into = (int32_t)(uint32_t)field->value;
}

static inline void sl_proto_take_bool(sl_proto_reader *reader, const sl_proto_field *field, bool *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_VARINT))
        *into = field->value != 0;
}

static inline void sl_proto_take_bytes(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    if (sl_proto_is(reader, field, SL_PROTO_BYTES))
        *into = field->bytes;
}

/* Only ASCII, which is nearly every text there is: in steps of eight bytes, the last two of which overlap. False only
 * means that somebody has to look closer. */
static inline bool sl_proto_is_ascii(sl_str text)
{
    const char *const last = text.data + text.bytes - 8;
    uint64_t seen = 0, eight;

    if (text.bytes < 8) {
        for (size_t i = 0; i < text.bytes; i++)
            seen |= (uint8_t)text.data[i];
        return seen < 0x80;
    }
    for (const char *at = text.data; at < last; at += 8) {
        memcpy(&eight, at, sizeof eight);
        seen |= eight;
    }
    memcpy(&eight, last, sizeof eight);
    return ((seen | eight) & UINT64_C(0x8080808080808080)) == 0;
}

/* As bytes, and refuses what is not UTF-8. */
void sl_proto_take_text_rare(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into);

static inline void sl_proto_take_text(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    if (field->type == SL_PROTO_BYTES && sl_proto_is_ascii(field->bytes))
        *into = field->bytes;
    else
        sl_proto_take_text_rare(reader, field, into);
}

/* A message without fields, whose presence is all it says; what is in it is looked at and dropped. */
void sl_proto_take_empty(sl_proto_reader *reader, const sl_proto_field *field);

/* A reader of the embedded message in `field`; an empty one when the field is none. sl_proto_leave() tells `reader`
 * when something in it was wrong. */
static inline sl_proto_reader sl_proto_enter(sl_proto_reader *reader, const sl_proto_field *field)
{
    return sl_proto_reader_from(sl_proto_is(reader, field, SL_PROTO_BYTES) ? field->bytes : (sl_str){ 0 });
}

static inline void sl_proto_leave(sl_proto_reader *reader, const sl_proto_reader *inner)
{
    if (inner->reason != NULL)
        sl_proto_fail(reader, inner->reason);
}

/* SL_OK, or SL_ERR_INVALID and *ret_reason, which may be NULL for callers that do not want to know. */
sl_err sl_proto_result(const sl_proto_reader *reader, const char **ret_reason);

/* --- writing --- */

/* Field numbers are constants: inside of the caller a tag becomes one byte that is stored. */
#define SL_PROTO_INLINE inline __attribute__((always_inline))

typedef struct sl_proto_writer {
    uint8_t *memory; /* NULL: only count */
    size_t capacity;
    size_t used; /* the last `used` bytes of the memory are written */
} sl_proto_writer;

static inline size_t sl_proto_varint_size(uint64_t value)
{
    const unsigned top_bit = 63 - (unsigned)__builtin_clzll(value | 1);

    return (top_bit * 9 + 73) / 64; /* one byte for every seven bits, without a division by seven */
}

/* Where the next `bytes` bytes go, NULL when they are only counted. Too little room is a bug of the caller. */
static SL_PROTO_INLINE uint8_t *sl_proto_claim(sl_proto_writer *writer, size_t bytes)
{
    writer->used += bytes;
    if (writer->memory == NULL)
        return NULL;
    assert(writer->used <= writer->capacity);
    return writer->memory + writer->capacity - writer->used;
}

void sl_proto_put_varint_rest(sl_proto_writer *writer, uint64_t value);

static SL_PROTO_INLINE void sl_proto_put_varint(sl_proto_writer *writer, uint64_t value)
{
    if (value >= 0x80) {
        sl_proto_put_varint_rest(writer, value);
        return;
    }
    uint8_t *const at = sl_proto_claim(writer, 1);
    if (at != NULL)
        *at = (uint8_t)value;
}

static SL_PROTO_INLINE void sl_proto_put_tag(sl_proto_writer *writer, uint32_t number, sl_proto_type type)
{
    sl_proto_put_varint(writer, (uint64_t)number << 3 | type);
}

/* Names and types are short: two copies of a fixed size that overlap cost less than a call for any size. */
static inline void sl_proto_copy(uint8_t *to, const char *from, size_t bytes)
{
    if (bytes >= 8 && bytes <= 16) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4 && bytes < 8) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}

/* Bytes as they are, without tag and length. */
static inline void sl_proto_put_raw(sl_proto_writer *writer, sl_str bytes)
{
    uint8_t *const at = sl_proto_claim(writer, bytes.bytes);

    if (at != NULL)
        sl_proto_copy(at, bytes.data, bytes.bytes);
}

/* A number whose presence says something: a member of a oneof. */
static SL_PROTO_INLINE void sl_proto_put_given(sl_proto_writer *writer, uint32_t number, uint64_t value)
{
    sl_proto_put_varint(writer, value);
    sl_proto_put_tag(writer, number, SL_PROTO_VARINT);
}

/* A number that is left out when it is 0. */
static inline void sl_proto_put_u64(sl_proto_writer *writer, uint32_t number, uint64_t value)
{
    if (value != 0)
        sl_proto_put_given(writer, number, value);
}

/* The same; a negative number always takes ten bytes, also one of 32 bits. */
static inline void sl_proto_put_i64(sl_proto_writer *writer, uint32_t number, int64_t value)
{
    sl_proto_put_u64(writer, number, (uint64_t)value);
}

/* An embedded message: the bytes that were put since `used` had the value `before`. */
static SL_PROTO_INLINE void sl_proto_wrap(sl_proto_writer *writer, uint32_t number, size_t before)
{
    sl_proto_put_varint(writer, writer->used - before);
    sl_proto_put_tag(writer, number, SL_PROTO_BYTES);
}

/* Also when there are none: a oneof, or an item of a list. */
static SL_PROTO_INLINE void sl_proto_put_bytes_given(sl_proto_writer *writer, uint32_t number, sl_str bytes)
{
    const size_t before = writer->used;

    sl_proto_put_raw(writer, bytes);
    sl_proto_wrap(writer, number, before);
}

static inline void sl_proto_put_bytes(sl_proto_writer *writer, uint32_t number, sl_str bytes)
{
    if (bytes.bytes > 0)
        sl_proto_put_bytes_given(writer, number, bytes);
}

/* A message without fields: two bytes that say that it is there. */
static SL_PROTO_INLINE void sl_proto_put_empty(sl_proto_writer *writer, uint32_t number)
{
    sl_proto_wrap(writer, number, writer->used);
}

#endif

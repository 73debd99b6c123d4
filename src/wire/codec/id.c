/* wire/codec/id.c — UUIDs in both forms.
 *
 * Clients choose the form for each id they send, whatever form they ask for in answers. The structured one is the 16
 * bytes in the order of the text, cut into two big-endian halves, which travel as numbers: a half with its top bit set
 * is a negative number of ten bytes. */
#include "wire/codec/common.h"

#include <endian.h>

enum {
    STRUCTURED = 1,
    TEXT = 2,
    BARE_TEXT_BYTES = 32 /* without dashes */
};

/* What sl_uuid_from_halves() and its kin do, in one instruction each: this is done for every event. */
static uint64_t load_half(const uint8_t bytes[8])
{
    uint64_t half;

    memcpy(&half, bytes, sizeof half);
    return be64toh(half);
}

static void store_half(uint8_t bytes[8], uint64_t half)
{
    half = htobe64(half);
    memcpy(bytes, &half, sizeof half);
}

/* --- reading --- */

static void take_structured(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_id *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field half;
    uint64_t most = 0, least = 0;

    if (into->form == SL_WIRE_ID_STRUCTURED) {
        most = load_half(into->uuid.bytes);
        least = load_half(into->uuid.bytes + 8);
    }
    while (sl_proto_next(&inner, &half)) {
        if (half.number == 1)
            sl_proto_take_u64(&inner, &half, &most);
        else if (half.number == 2)
            sl_proto_take_u64(&inner, &half, &least);
    }
    into->form = SL_WIRE_ID_STRUCTURED;
    store_half(into->uuid.bytes, most);
    store_half(into->uuid.bytes + 8, least);
    sl_proto_leave(reader, &inner);
}

/* Where the two digits of each byte stand in the text. */
static const uint8_t places[16] = { 0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34 };

/* Value of a hexadecimal digit, and something with higher bits for anything else. */
static unsigned digit_value(char c)
{
    const unsigned number = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';

    return number < 10 ? number : letter < 6 ? letter + 10 : 0x100;
}

/* As sl_uuid_parse(), with one decision at the end instead of two for each byte. */
static bool parse_dashed(const char *text, sl_uuid *ret_uuid)
{
    unsigned wrong = (unsigned)((text[8] ^ '-') | (text[13] ^ '-') | (text[18] ^ '-') | (text[23] ^ '-'));

    for (size_t i = 0; i < sizeof places; i++) {
        const unsigned high = digit_value(text[places[i]]), low = digit_value(text[places[i] + 1]);
        ret_uuid->bytes[i] = (uint8_t)(high << 4 | low);
        wrong |= (high | low) & 0x100;
    }
    return wrong == 0;
}

static sl_str without_brackets(sl_str text)
{
    const char first = text.bytes == 0 ? '\0' : text.data[0];
    const char last = text.bytes == 0 ? '\0' : text.data[text.bytes - 1];
    const bool inside = text.bytes == SL_UUID_TEXT_BYTES + 2 &&
                        ((first == '{' && last == '}') || (first == '(' && last == ')'));

    return inside ? (sl_str){ text.data + 1, text.bytes - 2 } : text;
}

/* 8-4-4-4-12, from 32 digits in a row. */
static void add_dashes(const char *digits, char text[SL_UUID_TEXT_BYTES])
{
    static const uint8_t lengths[] = { 8, 4, 4, 4, 12 };

    for (size_t i = 0; i < sizeof lengths; i++) {
        memcpy(text, digits, lengths[i]);
        digits += lengths[i];
        text += lengths[i];
        if (i + 1 < sizeof lengths)
            *text++ = '-';
    }
}

static bool parse(sl_str text, sl_uuid *ret_uuid)
{
    char dashed[SL_UUID_TEXT_BYTES];

    if (text.bytes == BARE_TEXT_BYTES) {
        add_dashes(text.data, dashed);
        text = (sl_str){ dashed, sizeof dashed };
    }
    text = without_brackets(text);
    return text.bytes == SL_UUID_TEXT_BYTES && parse_dashed(text.data, ret_uuid);
}

static void take_text(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_id *into)
{
    sl_str text = { 0 };

    sl_proto_take_text(reader, field, &text);
    *into = (sl_wire_id){ .form = SL_WIRE_ID_TEXT };
    if (!parse(text, &into->uuid))
        *into = (sl_wire_id){ .form = SL_WIRE_ID_MALFORMED };
}

static void take_form(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_id *into)
{
    if (field->number == STRUCTURED)
        take_structured(reader, field, into);
    else if (field->number == TEXT)
        take_text(reader, field, into);
}

void sl_wire_take_id(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_id *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field form;

    while (sl_proto_next(&inner, &form))
        take_form(&inner, &form, into);
    sl_proto_leave(reader, &inner);
}

sl_err sl_wire_id_decode(sl_str message, sl_wire_id *ret_id, const char **ret_reason)
{
    sl_proto_reader reader = sl_proto_reader_from(message);
    sl_proto_field form;
    sl_wire_id id = { 0 };

    while (sl_proto_next(&reader, &form))
        take_form(&reader, &form, &id);
    if (reader.reason == NULL)
        *ret_id = id;
    return sl_proto_result(&reader, ret_reason);
}

/* --- writing --- */

static void put_structured(sl_proto_writer *writer, const sl_uuid *uuid)
{
    const size_t before = writer->used;

    sl_proto_put_u64(writer, 2, load_half(uuid->bytes + 8));
    sl_proto_put_u64(writer, 1, load_half(uuid->bytes));
    sl_proto_wrap(writer, STRUCTURED, before);
}

static void put_text(sl_proto_writer *writer, const sl_uuid *uuid)
{
    static const char digits[] = "0123456789abcdef";
    const size_t before = writer->used;
    uint8_t *const text = sl_proto_claim(writer, SL_UUID_TEXT_BYTES);

    for (size_t i = 0; text != NULL && i < sizeof places; i++) {
        text[places[i]] = (uint8_t)digits[uuid->bytes[i] >> 4];
        text[places[i] + 1] = (uint8_t)digits[uuid->bytes[i] & 15];
    }
    if (text != NULL)
        text[8] = text[13] = text[18] = text[23] = '-';
    sl_proto_wrap(writer, TEXT, before);
}

static void put_form(sl_proto_writer *writer, const sl_wire_id *id)
{
    switch (id->form) {
    case SL_WIRE_ID_STRUCTURED: put_structured(writer, &id->uuid); break;
    case SL_WIRE_ID_TEXT: put_text(writer, &id->uuid); break;
    case SL_WIRE_ID_ABSENT:
    case SL_WIRE_ID_MALFORMED: break;
    }
}

void sl_wire_put_id(sl_proto_writer *writer, uint32_t number, sl_wire_id id)
{
    const size_t before = writer->used;

    if (id.form == SL_WIRE_ID_ABSENT || id.form == SL_WIRE_ID_MALFORMED)
        return; /* an empty message would say "there is an id", and not which */
    put_form(writer, &id);
    sl_proto_wrap(writer, number, before);
}

size_t sl_wire_id_encode(sl_wire_id id, uint8_t message[SL_WIRE_ID_BYTES_MAX])
{
    sl_proto_writer measure = { 0 };
    sl_proto_writer writer;

    put_form(&measure, &id);
    writer = (sl_proto_writer){ .memory = message, .capacity = measure.used };
    put_form(&writer, &id);
    return writer.used;
}

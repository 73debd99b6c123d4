/* wire/codec/event.c — events in both directions: the messages that nearly all bytes are made of.
 *
 * What KurrentDB calls metadata is a map of three keys: type, content-type, and, on the way out, created. Other keys are
 * dropped on the way in (the real server does so) and never come out. The user's own metadata is custom_metadata. */
#include "wire/codec/common.h"

/* --- the metadata map --- */

typedef struct key_values {
    sl_str type, content_type, created;
} key_values;

static bool is_key(sl_str key, sl_str wanted)
{
    return key.bytes == wanted.bytes && memcmp(key.data, wanted.data, wanted.bytes) == 0;
}

/* An entry as every client writes it: key, value, each shorter than 128 bytes, and nothing else. False when it is not like
 * that; then the general way has to be taken. */
static bool take_plain_entry(sl_str entry, sl_wire_label *into)
{
    const uint8_t *const at = (const uint8_t *)entry.data;
    size_t key_bytes, value_bytes;

    if (entry.bytes < 4 || at[0] != 0x0a || at[1] >= 0x80 || at[1] > entry.bytes - 4)
        return false;
    key_bytes = at[1];
    value_bytes = at[3 + key_bytes];
    if (at[2 + key_bytes] != 0x12 || value_bytes >= 0x80 || value_bytes != entry.bytes - 4 - key_bytes)
        return false;
    into->key = (sl_str){ entry.data + 2, key_bytes };
    into->value = (sl_str){ entry.data + 4 + key_bytes, value_bytes };
    return sl_proto_is_ascii(into->value) && sl_proto_is_ascii(into->key);
}

static void take_metadata(sl_proto_reader *reader, const sl_proto_field *field, key_values *into)
{
    sl_wire_label entry;

    if (field->type != SL_PROTO_BYTES || !take_plain_entry(field->bytes, &entry))
        sl_wire_take_entry(reader, field, &entry);
    if (is_key(entry.key, SL_STR("type")))
        into->type = entry.value;
    else if (is_key(entry.key, SL_STR("content-type")))
        into->content_type = entry.value;
    else if (is_key(entry.key, SL_STR("created")))
        into->created = entry.value;
}

/* As sl_wire_put_entry(), but inline, so that the copy of the key has a size that the compiler knows. */
static inline __attribute__((always_inline)) void put_key(sl_proto_writer *writer, uint32_t number,
                                                          sl_str key, sl_str value)
{
    const size_t before = writer->used;

    sl_proto_put_bytes_given(writer, 2, value);
    sl_proto_put_bytes_given(writer, 1, key);
    sl_proto_wrap(writer, number, before);
}

static unsigned digits_of(uint64_t number)
{
    unsigned digits = 1;

    for (; number >= 10000; number /= 10000)
        digits += 4;
    return digits + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* Two digits come out of each division. */
static void write_digits(uint64_t number, unsigned digits, uint8_t *text)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";

    for (; digits >= 2; digits -= 2, number /= 100)
        memcpy(text + digits - 2, pairs + 2 * (number % 100), 2);
    if (digits == 1)
        text[0] = (uint8_t)('0' + number);
}

/* Decimal text, and nothing but digits: clients of several languages give up on anything else. */
static void put_created(sl_proto_writer *writer, uint32_t number, uint64_t ticks)
{
    const size_t before = writer->used;
    const unsigned digits = digits_of(ticks);
    uint8_t *const text = sl_proto_claim(writer, digits);

    if (text != NULL)
        write_digits(ticks, digits, text);
    sl_proto_wrap(writer, 2, before);
    sl_proto_put_bytes_given(writer, 1, SL_STR("created"));
    sl_proto_wrap(writer, number, before);
}

/* --- in --- */

void sl_wire_take_proposed(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_proposed *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;
    key_values keys = { .type = into->type, .content_type = into->content_type };

    while (sl_proto_next(&inner, &part)) {
        switch (part.number) {
        case 1: sl_wire_take_id(&inner, &part, &into->id); break;
        case 2: take_metadata(&inner, &part, &keys); break;
        case 3: sl_proto_take_bytes(&inner, &part, &into->custom_metadata); break;
        case 4: sl_proto_take_bytes(&inner, &part, &into->data); break;
        default: break;
        }
    }
    into->type = keys.type;
    into->content_type = keys.content_type;
    sl_proto_leave(reader, &inner);
}

void sl_wire_put_proposed(sl_proto_writer *writer, uint32_t number, const sl_wire_proposed *event)
{
    const size_t before = writer->used;

    sl_proto_put_bytes(writer, 4, event->data);
    sl_proto_put_bytes(writer, 3, event->custom_metadata);
    if (event->content_type.data != NULL)
        put_key(writer, 2, SL_STR("content-type"), event->content_type);
    if (event->type.data != NULL)
        put_key(writer, 2, SL_STR("type"), event->type);
    sl_wire_put_id(writer, 1, event->id);
    sl_proto_wrap(writer, number, before);
}

/* --- out --- */

static void take_recorded_part(sl_proto_reader *reader, const sl_proto_field *part, sl_wire_recorded *into,
                               key_values *keys)
{
    switch (part->number) {
    case 1: sl_wire_take_id(reader, part, &into->id); break;
    case 2: sl_wire_take_stream(reader, part, &into->stream); break;
    case 3: sl_proto_take_u64(reader, part, &into->revision); break;
    case 4: sl_proto_take_u64(reader, part, &into->prepare_position); break;
    case 5: sl_proto_take_u64(reader, part, &into->commit_position); break;
    case 6: take_metadata(reader, part, keys); break;
    case 7: sl_proto_take_bytes(reader, part, &into->custom_metadata); break;
    case 8: sl_proto_take_bytes(reader, part, &into->data); break;
    default: break;
    }
}

/* 0 when it is no number. Real times have 17 digits, which cannot overflow. */
static uint64_t ticks_from(sl_str text)
{
    uint64_t ticks = 0;
    unsigned wrong = 0;

    if (text.bytes == 0 || text.bytes > 19)
        return sl_str_parse_u64(text, &ticks) == SL_OK ? ticks : 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned digit = (unsigned)(uint8_t)text.data[i] - '0';
        wrong |= digit > 9;
        ticks = ticks * 10 + digit;
    }
    return wrong ? 0 : ticks;
}

/* *has says whether an earlier part of the same event came before. */
static void take_recorded(sl_proto_reader *reader, const sl_proto_field *field, bool *has,
                          sl_wire_recorded *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;
    key_values keys;

    if (!*has)
        *into = (sl_wire_recorded){ 0 };
    *has = true;
    keys = (key_values){ .type = into->type, .content_type = into->content_type };
    while (sl_proto_next(&inner, &part))
        take_recorded_part(&inner, &part, into, &keys);
    into->type = keys.type;
    into->content_type = keys.content_type;
    if (keys.created.data != NULL)
        into->created_ticks = ticks_from(keys.created);
    sl_proto_leave(reader, &inner);
}

static void put_recorded(sl_proto_writer *writer, uint32_t number, const sl_wire_recorded *event)
{
    const size_t before = writer->used;

    sl_proto_put_bytes(writer, 8, event->data);
    sl_proto_put_bytes(writer, 7, event->custom_metadata);
    if (event->content_type.data != NULL)
        put_key(writer, 6, SL_STR("content-type"), event->content_type);
    put_created(writer, 6, event->created_ticks);
    if (event->type.data != NULL)
        put_key(writer, 6, SL_STR("type"), event->type);
    sl_proto_put_u64(writer, 5, event->commit_position);
    sl_proto_put_u64(writer, 4, event->prepare_position);
    sl_proto_put_u64(writer, 3, event->revision);
    sl_wire_put_stream(writer, 2, event->stream);
    sl_wire_put_id(writer, 1, event->id);
    sl_proto_wrap(writer, number, before);
}

static void take_commit(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_read_event *into)
{
    into->commit_position = 0;
    if (field->number == 3)
        sl_proto_take_u64(reader, field, &into->commit_position);
    else
        sl_proto_take_empty(reader, field);
    into->position_kind = field->number == 3 ? SL_WIRE_POSITION_GIVEN : SL_WIRE_POSITION_NONE;
}

static void take_persistent_part(sl_proto_reader *reader, const sl_proto_field *field,
                                 sl_wire_read_event *into)
{
    switch (field->number) {
    case 5:
        sl_proto_take_i32(reader, field, &into->retry_count);
        into->retry_kind = SL_WIRE_RETRY_COUNT;
        break;
    case 6:
        sl_proto_take_empty(reader, field);
        into->retry_count = 0;
        into->retry_kind = SL_WIRE_RETRY_NONE;
        break;
    case 100: sl_proto_take_u64(reader, field, &into->lease_token); break;
    case 101: sl_proto_take_i32(reader, field, &into->lease_ms); break;
    default: break;
    }
}

void sl_wire_take_read_event_parts(sl_proto_reader *reader, bool persistent, sl_wire_read_event *into)
{
    sl_proto_field part;

    while (sl_proto_next(reader, &part)) {
        switch (part.number) {
        case 1: take_recorded(reader, &part, &into->has_event, &into->event); break;
        case 2: take_recorded(reader, &part, &into->has_link, &into->link); break;
        case 3:
        case 4: take_commit(reader, &part, into); break;
        default:
            if (persistent)
                take_persistent_part(reader, &part, into);
            break;
        }
    }
}

void sl_wire_take_read_event(sl_proto_reader *reader, const sl_proto_field *field, bool persistent,
                             sl_wire_read_event *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);

    sl_wire_take_read_event_parts(&inner, persistent, into);
    sl_proto_leave(reader, &inner);
}

static void put_persistent_part(sl_proto_writer *writer, const sl_wire_read_event *event)
{
    sl_proto_put_i64(writer, 101, event->lease_ms);
    sl_proto_put_u64(writer, 100, event->lease_token);
    if (event->retry_kind == SL_WIRE_RETRY_NONE)
        sl_proto_put_empty(writer, 6);
    else if (event->retry_kind == SL_WIRE_RETRY_COUNT)
        sl_proto_put_given(writer, 5, (uint64_t)(int64_t)event->retry_count);
}

void sl_wire_put_read_event_parts(sl_proto_writer *writer, bool persistent, const sl_wire_read_event *event)
{
    if (persistent)
        put_persistent_part(writer, event);
    if (event->position_kind == SL_WIRE_POSITION_NONE)
        sl_proto_put_empty(writer, 4);
    else if (event->position_kind == SL_WIRE_POSITION_GIVEN)
        sl_proto_put_given(writer, 3, event->commit_position);
    if (event->has_link)
        put_recorded(writer, 2, &event->link);
    if (event->has_event)
        put_recorded(writer, 1, &event->event);
}

void sl_wire_put_read_event(sl_proto_writer *writer, uint32_t number, bool persistent,
                            const sl_wire_read_event *event)
{
    const size_t before = writer->used;

    sl_wire_put_read_event_parts(writer, persistent, event);
    sl_proto_wrap(writer, number, before);
}

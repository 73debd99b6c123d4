/* store/journal/records.c — payloads of records. Offsets stand in one table for each. */
#include "store/journal/records.h"

#include "core/record.h"

#include <assert.h>
#include <string.h>

enum { /* an event */
    EVENT_ID = 0,
    EVENT_REVISION = 16,
    EVENT_CREATED = 24,
    EVENT_DATA_BYTES = 32,
    EVENT_METADATA_BYTES = 36,
    EVENT_STREAM_BYTES = 40,
    EVENT_TYPE_BYTES = 42,
    EVENT_FLAGS = 44, /* one byte, three zeros; then stream, type, data, metadata */
};
static_assert(EVENT_FLAGS + 4 == SL_EVENT_HEAD_BYTES, "the texts follow");

enum { /* a part of a group's state */
    STATE_GROUP = 0,
    STATE_DEFINITION_BYTES = 8,
    STATE_FLAGS = 12, /* one byte, three zeros; then definition, records */
};
static_assert(STATE_FLAGS + 4 == SL_GROUP_STATE_HEAD_BYTES, "the definition follows");
static_assert(SL_GROUP_STATE_RECORD_BYTES_MAX == 1 + SL_RECORD_BYTES_MAX, "a length fits into a byte");

#define EVENT_IS_JSON  UINT32_C(1)
#define STATE_IS_FIRST UINT32_C(1)
#define STATE_IS_LAST  UINT32_C(2)

/* --- events --- */

static uint8_t *put_text(uint8_t *at, sl_str text)
{
    if (text.bytes > 0)
        memcpy(at, text.data, text.bytes);
    return at + text.bytes;
}

void sl_event_put(const sl_event *event, uint8_t *payload)
{
    uint8_t *at = payload + SL_EVENT_HEAD_BYTES;

    memcpy(payload + EVENT_ID, event->id.bytes, sizeof event->id.bytes);
    sl_put_u64(payload + EVENT_REVISION, event->revision);
    sl_put_u64(payload + EVENT_CREATED, event->created_ns);
    sl_put_u32(payload + EVENT_DATA_BYTES, (uint32_t)event->data.bytes);
    sl_put_u32(payload + EVENT_METADATA_BYTES, (uint32_t)event->metadata.bytes);
    sl_put_u16(payload + EVENT_STREAM_BYTES, (uint16_t)event->stream.bytes);
    sl_put_u16(payload + EVENT_TYPE_BYTES, (uint16_t)event->type.bytes);
    sl_put_u32(payload + EVENT_FLAGS, event->is_json ? EVENT_IS_JSON : 0);
    at = put_text(at, event->stream);
    at = put_text(at, event->type);
    at = put_text(at, event->data);
    put_text(at, event->metadata);
}

static sl_str take_text(const uint8_t **at, size_t bytes)
{
    const sl_str text = { (const char *)*at, bytes };

    *at += bytes;
    return text;
}

/* The sum can not wrap: four numbers of 32 bits in 64. */
static bool event_adds_up(const sl_record_view *record)
{
    const uint8_t *const head = record->payload;
    uint64_t sum = SL_EVENT_HEAD_BYTES;

    if (record->payload_bytes < SL_EVENT_HEAD_BYTES)
        return false;
    sum += sl_get_u32(head + EVENT_DATA_BYTES);
    sum += sl_get_u32(head + EVENT_METADATA_BYTES);
    sum += sl_get_u16(head + EVENT_STREAM_BYTES);
    sum += sl_get_u16(head + EVENT_TYPE_BYTES);
    return sum == record->payload_bytes && sl_get_u16(head + EVENT_STREAM_BYTES) > 0 &&
           sl_get_u16(head + EVENT_STREAM_BYTES) <= SL_STREAM_NAME_BYTES_MAX &&
           sl_get_u32(head + EVENT_FLAGS) <= EVENT_IS_JSON;
}

sl_err sl_event_get(const sl_record_view *record, sl_event *ret_event)
{
    const uint8_t *const head = record->payload;
    const uint8_t *at = head + SL_EVENT_HEAD_BYTES;

    if (!event_adds_up(record))
        return SL_ERR_CORRUPT;
    ret_event->position = record->position;
    ret_event->revision = sl_get_u64(head + EVENT_REVISION);
    memcpy(ret_event->id.bytes, head + EVENT_ID, sizeof ret_event->id.bytes);
    ret_event->stream = take_text(&at, sl_get_u16(head + EVENT_STREAM_BYTES));
    ret_event->type = take_text(&at, sl_get_u16(head + EVENT_TYPE_BYTES));
    ret_event->data = take_text(&at, sl_get_u32(head + EVENT_DATA_BYTES));
    ret_event->metadata = take_text(&at, sl_get_u32(head + EVENT_METADATA_BYTES));
    ret_event->is_json = sl_get_u32(head + EVENT_FLAGS) == EVENT_IS_JSON;
    ret_event->created_ns = sl_get_u64(head + EVENT_CREATED);
    return SL_OK;
}

uint64_t sl_stream_hash(sl_uuid store, sl_str name)
{
    const sl_hash_seed seed = { sl_get_u64(store.bytes), sl_get_u64(store.bytes + 8) };

    return sl_hash(seed, name.data, name.bytes);
}

/* --- groups --- */

sl_err sl_group_get(const sl_record_view *record, uint64_t *ret_group, sl_str *ret_rest)
{
    if (record->payload_bytes < SL_GROUP_HEAD_BYTES)
        return SL_ERR_CORRUPT;
    *ret_group = sl_get_u64(record->payload);
    *ret_rest = (sl_str){ (const char *)record->payload + SL_GROUP_HEAD_BYTES,
                          record->payload_bytes - SL_GROUP_HEAD_BYTES };
    return SL_OK;
}

sl_err sl_group_next(sl_str *rest, sl_effect *ret_effect)
{
    size_t used;
    const sl_err err = sl_record_decode((const uint8_t *)rest->data, rest->bytes, ret_effect, &used);

    if (err == SL_OK)
        *rest = sl_str_skip(*rest, used);
    return err;
}

void sl_group_put(uint64_t group, sl_str rest, uint8_t *payload)
{
    sl_put_u64(payload, group);
    put_text(payload + SL_GROUP_HEAD_BYTES, rest);
}

void sl_group_state_put(const sl_group_state *part, uint8_t *payload)
{
    uint8_t *at = payload + SL_GROUP_STATE_HEAD_BYTES;

    sl_put_u64(payload + STATE_GROUP, part->group);
    sl_put_u32(payload + STATE_DEFINITION_BYTES, (uint32_t)part->definition.bytes);
    sl_put_u32(payload + STATE_FLAGS,
               (part->is_first ? STATE_IS_FIRST : 0) | (part->is_last ? STATE_IS_LAST : 0));
    at = put_text(at, part->definition);
    put_text(at, sl_group_state_records(part));
}

sl_err sl_group_state_get(const sl_record_view *record, sl_group_state *ret_part)
{
    const uint8_t *at = record->payload + SL_GROUP_STATE_HEAD_BYTES;
    uint32_t flags, definition_bytes;

    if (record->payload_bytes < SL_GROUP_STATE_HEAD_BYTES)
        return SL_ERR_CORRUPT;
    flags = sl_get_u32(record->payload + STATE_FLAGS);
    definition_bytes = sl_get_u32(record->payload + STATE_DEFINITION_BYTES);
    if (flags > (STATE_IS_FIRST | STATE_IS_LAST) ||
        definition_bytes > record->payload_bytes - SL_GROUP_STATE_HEAD_BYTES)
        return SL_ERR_CORRUPT;
    *ret_part = (sl_group_state){ .group = sl_get_u64(record->payload + STATE_GROUP),
                                  .is_first = flags & STATE_IS_FIRST,
                                  .is_last = flags & STATE_IS_LAST,
                                  .definition = take_text(&at, definition_bytes),
                                  .bytes = record->payload + SL_GROUP_STATE_HEAD_BYTES + definition_bytes,
                                  .byte_count =
                                      record->payload_bytes - SL_GROUP_STATE_HEAD_BYTES - definition_bytes };
    return SL_OK;
}

sl_err sl_group_state_next(sl_str *rest, sl_effect *ret_effect)
{
    assert(rest->bytes > 0);
    const size_t bytes = (uint8_t)rest->data[0];
    sl_str record = { rest->data + 1, bytes };

    if (bytes > rest->bytes - 1 || sl_group_next(&record, ret_effect) != SL_OK || record.bytes > 0)
        return SL_ERR_CORRUPT;
    *rest = sl_str_skip(*rest, 1 + bytes);
    return SL_OK;
}

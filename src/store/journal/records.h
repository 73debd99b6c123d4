/* store/journal/records.h — what the payloads of records hold. docs/JOURNAL.md has the bytes.
 *
 * An event brings the name of its stream along, so every record can be read on its own: no table has to be found first,
 * and a view of an event points into its record. */
#ifndef SL_STORE_JOURNAL_RECORDS_H
#define SL_STORE_JOURNAL_RECORDS_H

#include "store/journal/format.h"
#include "store/store.h"

enum {
    SL_EVENT_HEAD_BYTES = 48,
    SL_GROUP_HEAD_BYTES = 8,
    SL_GROUP_STATE_HEAD_BYTES = 16,
    SL_GROUP_STATE_RECORD_BYTES_MAX = 1 + 128, /* a length and core/record.h */
};

static inline size_t sl_event_payload_bytes(const sl_event *event)
{
    return SL_EVENT_HEAD_BYTES + event->stream.bytes + event->type.bytes + event->data.bytes +
           event->metadata.bytes;
}

void sl_event_put(const sl_event *event, uint8_t *payload);

/* The record must be an EVENT. SL_OK or SL_ERR_CORRUPT: sizes that do not add up, a text that is too long or empty. */
sl_err sl_event_get(const sl_record_view *record, sl_event *ret_event);

/* Which group a record of one of the kinds of a group is about; SL_ERR_CORRUPT when it is too short. `rest` is what follows:
 * CREATE and UPDATE the definition, GROUP bytes of core/record.h, STATE see below. */
sl_err sl_group_get(const sl_record_view *record, uint64_t *ret_group, sl_str *ret_rest);
void sl_group_put(uint64_t group, sl_str rest, uint8_t *payload); /* SL_GROUP_HEAD_BYTES + rest.bytes */

/* Takes the next of the records of a group from the front of `rest`, of a GROUP. There is one at least. SL_OK, SL_ERR_CORRUPT. */
sl_err sl_group_next(sl_str *rest, sl_effect *ret_effect);

/* A snapshot is a sequence of parts with nothing of the same group between them. It counts when its last part is there. */
typedef struct sl_group_state {
    uint64_t group;
    bool is_first, is_last;
    sl_str definition;    /* of the first part */
    const uint8_t *bytes; /* records, each a byte of length and so many bytes of core/record.h */
    size_t byte_count;
} sl_group_state;

static inline size_t sl_group_state_payload_bytes(const sl_group_state *part)
{
    return SL_GROUP_STATE_HEAD_BYTES + part->definition.bytes + part->byte_count;
}

void sl_group_state_put(const sl_group_state *part, uint8_t *payload);
sl_err sl_group_state_get(const sl_record_view *record,
                          sl_group_state *ret_part); /* SL_OK or SL_ERR_CORRUPT */

/* The records of a part, which may have none. */
static inline sl_str sl_group_state_records(const sl_group_state *part)
{
    return (sl_str){ (const char *)part->bytes, part->byte_count };
}

/* Takes the next of them from the front of `rest`. There is one at least. SL_OK, SL_ERR_CORRUPT. */
sl_err sl_group_state_next(sl_str *rest, sl_effect *ret_effect);

/* The key by which indexes know a stream: SipHash-1-3 of its name, keyed with the two halves of the store's uuid. */
uint64_t sl_stream_hash(sl_uuid store, sl_str name);

#endif

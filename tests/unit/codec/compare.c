/* tests/unit/codec/compare.c — see the header. */
#include "codec/compare.h"

static int digit(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

sl_str from_hex(const char *hex, uint8_t *memory)
{
    size_t bytes = 0;

    for (; *hex != '\0'; hex += 2) {
        while (*hex == ' ')
            hex++;
        memory[bytes++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
    }
    return (sl_str){ (const char *)memory, bytes };
}

bool same_id(sl_wire_id ours, const EventStore__Client__UUID *theirs)
{
    char text[SL_UUID_TEXT_BYTES + 1];
    int64_t most, least;

    if (theirs == NULL)
        return ours.form == SL_WIRE_ID_ABSENT;
    sl_uuid_to_halves(ours.uuid, &most, &least);
    sl_uuid_format(ours.uuid, text);
    if (theirs->value_case == EVENT_STORE__CLIENT__UUID__VALUE_STRUCTURED)
        return ours.form == SL_WIRE_ID_STRUCTURED && most == theirs->structured->most_significant_bits &&
               least == theirs->structured->least_significant_bits;
    return ours.form == SL_WIRE_ID_TEXT && strcmp(text, theirs->string) == 0;
}

bool same_stream(sl_str ours, const EventStore__Client__StreamIdentifier *theirs)
{
    return theirs == NULL ? ours.bytes == 0 : same_bytes(ours, theirs->stream_name);
}

bool same_time(sl_wire_time ours, const Google__Protobuf__Timestamp *theirs)
{
    return ours.given == (theirs != NULL) &&
           (theirs == NULL || (ours.seconds == theirs->seconds && ours.nanos == theirs->nanos));
}

bool same_duration(sl_wire_time ours, const Google__Protobuf__Duration *theirs)
{
    return ours.given == (theirs != NULL) &&
           (theirs == NULL || (ours.seconds == theirs->seconds && ours.nanos == theirs->nanos));
}

bool same_ids(const sl_wire_ids *ours, EventStore__Client__UUID *const *theirs, size_t count)
{
    sl_wire_walk walk = sl_wire_items_walk(&ours->items);
    sl_wire_id id;
    size_t at = 0;

    for (; sl_wire_ids_next(&walk, &id); at++)
        if (at == count || !same_id(id, theirs[at]))
            return false;
    return at == count && ours->count == count;
}

static bool same_key(sl_str ours, const char *theirs)
{
    return theirs == NULL ? ours.data == NULL : ours.data != NULL && same_text(ours, theirs);
}

bool same_proposed(const sl_wire_proposed *ours,
                   const EventStore__Client__Streams__AppendReq__ProposedMessage *theirs)
{
    ProtobufCMessage *const *const entries = (ProtobufCMessage *const *)(void *)theirs->metadata;

    return same_id(ours->id, theirs->id) && same_bytes(ours->data, theirs->data) &&
           same_bytes(ours->custom_metadata, theirs->custom_metadata) &&
           same_key(ours->type, metadata_value(entries, theirs->n_metadata, "type")) &&
           same_key(ours->content_type, metadata_value(entries, theirs->n_metadata, "content-type"));
}

typedef EventStore__Client__Streams__ReadResp__ReadEvent__RecordedEvent recorded;

static bool same_recorded(bool has, const sl_wire_recorded *ours, const recorded *theirs)
{
    ProtobufCMessage *const *entries;
    const char *created;

    if (!has || theirs == NULL)
        return has == (theirs != NULL);
    entries = (ProtobufCMessage *const *)(void *)theirs->metadata;
    created = metadata_value(entries, theirs->n_metadata, "created");
    return same_id(ours->id, theirs->id) && same_stream(ours->stream, theirs->stream_identifier) &&
           ours->revision == theirs->stream_revision && ours->prepare_position == theirs->prepare_position &&
           ours->commit_position == theirs->commit_position && same_bytes(ours->data, theirs->data) &&
           same_bytes(ours->custom_metadata, theirs->custom_metadata) &&
           same_key(ours->type, metadata_value(entries, theirs->n_metadata, "type")) &&
           same_key(ours->content_type, metadata_value(entries, theirs->n_metadata, "content-type")) &&
           ours->created_ticks == strtoull(created, NULL, 10);
}

bool same_read_event(const sl_wire_read_event *ours,
                     const EventStore__Client__Streams__ReadResp__ReadEvent *theirs)
{
    const bool given = theirs->position_case ==
                       EVENT_STORE__CLIENT__STREAMS__READ_RESP__READ_EVENT__POSITION_COMMIT_POSITION;
    const bool none =
        theirs->position_case == EVENT_STORE__CLIENT__STREAMS__READ_RESP__READ_EVENT__POSITION_NO_POSITION;

    return same_recorded(ours->has_event, &ours->event, theirs->event) &&
           same_recorded(ours->has_link, &ours->link, theirs->link) &&
           given == (ours->position_kind == SL_WIRE_POSITION_GIVEN) &&
           none == (ours->position_kind == SL_WIRE_POSITION_NONE) &&
           ours->commit_position == (given ? theirs->commit_position : 0);
}

#define PERSISTENT(name) EVENT_STORE__CLIENT__PERSISTENT_SUBSCRIPTIONS__READ_RESP__READ_EVENT__##name

/* The packages declare the same event twice; the two C structs have the same members in the same order. */
static const recorded *
as_recorded(const EventStore__Client__PersistentSubscriptions__ReadResp__ReadEvent__RecordedEvent *event)
{
    return (const recorded *)(const void *)event;
}

bool same_persistent_event(const sl_wire_read_event *ours,
                           const EventStore__Client__PersistentSubscriptions__ReadResp__ReadEvent *theirs)
{
    const bool given = theirs->position_case == PERSISTENT(POSITION_COMMIT_POSITION);
    const bool none = theirs->position_case == PERSISTENT(POSITION_NO_POSITION);
    const bool counted = theirs->count_case == PERSISTENT(COUNT_RETRY_COUNT);
    const bool uncounted = theirs->count_case == PERSISTENT(COUNT_NO_RETRY_COUNT);

    return same_recorded(ours->has_event, &ours->event, as_recorded(theirs->event)) &&
           same_recorded(ours->has_link, &ours->link, as_recorded(theirs->link)) &&
           given == (ours->position_kind == SL_WIRE_POSITION_GIVEN) &&
           none == (ours->position_kind == SL_WIRE_POSITION_NONE) &&
           ours->commit_position == (given ? theirs->commit_position : 0) &&
           counted == (ours->retry_kind == SL_WIRE_RETRY_COUNT) &&
           uncounted == (ours->retry_kind == SL_WIRE_RETRY_NONE) &&
           ours->retry_count == (counted ? theirs->retry_count : 0) &&
           ours->lease_token == theirs->lease_token && ours->lease_ms == theirs->lease_ms;
}

void list_ids(sl_wire_ids *ids, sl_arena *arena)
{
    sl_uuid *const list = sl_arena_alloc(arena, ids->count * sizeof *list);
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;

    for (size_t i = 0; sl_wire_ids_next(&walk, &id); i++) {
        assert_true(i == 0 || id.form == ids->form);
        ids->form = id.form;
        list[i] = id.uuid;
    }
    ids->list = list;
}

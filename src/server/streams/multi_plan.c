/* server/streams/multi_plan.c — streams and records of a plan. multi_ops.c makes the batch. */
#include "server/streams/multi_plan.h"

#include "server/streams/multi_reply.h"
#include "server/streams/properties.h"
#include "server/streams/proposed.h"
#include "server/streams/write.h"

#include <assert.h>
#include <string.h>

enum {
    STREAMS_FIRST = 16, /* room in the beginning; a power of two */
    EVENTS_MAX = SL_BATCH_BYTES_MAX / SL_RECORD_HEAD_BYTES,
    SCRATCH_BYTES_MAX = 64 * 1024 * 1024, /* never more than the arena that the record itself came from */
};

static const sl_alloc *alloc_of(const sl_plan *plan)
{
    return plan->request->host->alloc;
}

void sl_plan_init(sl_plan *plan, sl_request *request)
{
    const sl_alloc *const alloc = request->host->alloc;

    *plan = (sl_plan){ .request = request, .claim.host = request->host };
    sl_arena_init(&plan->scratch, alloc, (sl_arena_sizes){ 4096, SCRATCH_BYTES_MAX });
    sl_buf_init(&plan->json, alloc, SL_EVENT_BYTES_MAX);
}

static void give(const sl_plan *plan, void *memory, size_t bytes)
{
    if (memory != NULL)
        sl_alloc_give(alloc_of(plan), memory, bytes);
}

static void drop_events(sl_plan *plan)
{
    give(plan, plan->events, plan->event_capacity * sizeof *plan->events);
    give(plan, plan->owners, plan->event_capacity * sizeof *plan->owners);
    give(plan, plan->ops, plan->op_capacity * sizeof *plan->ops);
    plan->events = NULL;
    plan->owners = NULL;
    plan->ops = NULL;
    plan->event_capacity = plan->event_count = 0;
}

void sl_plan_accepted(sl_plan *plan)
{
    drop_events(plan);
    sl_buf_done(&plan->json);
    sl_arena_done(&plan->scratch);
}

void sl_plan_done(sl_plan *plan)
{
    if (plan->request == NULL)
        return;
    sl_plan_accepted(plan);
    give(plan, plan->op_owners, plan->op_capacity * sizeof *plan->op_owners);
    plan->op_owners = NULL;
    plan->op_capacity = plan->op_count = 0;
    sl_gather_claim_end(&plan->claim);
}

static bool fail(sl_plan *plan, sl_err err)
{
    sl_multi_reply_error(plan->request, err);
    return false;
}

/* Decoded messages, copies of metadata, streams; rows; what one record needed. */
static uint64_t held_bytes(const sl_plan *plan)
{
    return plan->request->arena.given_bytes +
           plan->event_capacity * (sizeof *plan->events + sizeof *plan->owners) +
           plan->op_capacity * (sizeof *plan->ops + sizeof *plan->op_owners) + plan->json.capacity +
           plan->scratch.given_bytes;
}

/* Nothing is taken back before the end: a call that held much will do so again. */
bool sl_plan_claim(sl_plan *plan, uint64_t more_bytes)
{
    const uint64_t held = held_bytes(plan) + more_bytes;
    const sl_err err =
        held <= plan->claim.bytes ? SL_OK : sl_gather_claim_add(&plan->claim, held - plan->claim.bytes);

    return err == SL_OK || fail(plan, err);
}

/* --- streams --- */

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Names that differ in case only have the same hash. */
static uint64_t hash_of(const sl_plan *plan, sl_str name)
{
    char text[SL_STREAM_NAME_BYTES_MAX];

    assert(name.bytes <= sizeof text);
    for (size_t i = 0; i < name.bytes; i++)
        text[i] = folded(name.data[i]);
    return sl_hash(plan->request->host->seed, text, name.bytes);
}

static bool equal_folded(sl_str a, sl_str b)
{
    if (a.bytes != b.bytes)
        return false;
    for (size_t i = 0; i < a.bytes; i++)
        if (folded(a.data[i]) != folded(b.data[i]))
            return false;
    return true;
}

static sl_plan_stream *stream_of(sl_map_node *node)
{
    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_plan_stream, node);
}

static sl_map_node *first_of(const sl_plan *plan, sl_str name)
{
    return plan->stream_count == 0 ? NULL : sl_map_find(&plan->by_name, hash_of(plan, name));
}

sl_plan_stream *sl_plan_find(const sl_plan *plan, sl_str name)
{
    sl_map_node *node = first_of(plan, name);

    while (node != NULL && !sl_str_equal(stream_of(node)->name, name))
        node = sl_map_next(node);
    return stream_of(node);
}

sl_plan_stream *sl_plan_find_folded(const sl_plan *plan, sl_str name, bool with_check)
{
    sl_map_node *node = first_of(plan, name);

    while (node != NULL &&
           (stream_of(node)->has_check != with_check || !equal_folded(stream_of(node)->name, name)))
        node = sl_map_next(node);
    return stream_of(node);
}

/* Twice as many as before; what was there is left to the arena, which loses no more than it holds by that. */
static bool grow_streams(sl_plan *plan)
{
    const uint32_t capacity = plan->stream_capacity == 0 ? STREAMS_FIRST : 2 * plan->stream_capacity;
    sl_arena *const arena = &plan->request->arena;
    sl_plan_stream **const streams = sl_arena_alloc(arena, capacity * sizeof *streams);
    sl_map_node **const table = sl_arena_alloc(arena, capacity * sizeof *table);

    if (streams == NULL || table == NULL)
        return fail(plan, SL_ERR_NOMEM);
    if (plan->stream_capacity == 0)
        sl_map_init(&plan->by_name, table, capacity);
    else
        sl_map_resize(&plan->by_name, table, capacity);
    if (plan->stream_count > 0)
        memcpy(streams, plan->streams, plan->stream_count * sizeof *streams);
    plan->streams = streams;
    plan->stream_capacity = capacity;
    return true;
}

bool sl_plan_add_stream(sl_plan *plan, sl_str name, sl_plan_stream **ret_stream)
{
    sl_plan_stream *stream;

    if (plan->stream_count == SL_BATCH_OPS_MAX) {
        sl_multi_reply_invalid(plan->request, "stream", "One append can go to 4096 streams at most.");
        return false;
    }
    if (plan->stream_count == plan->stream_capacity && !grow_streams(plan))
        return false;
    stream = sl_arena_alloc_zero(&plan->request->arena, sizeof *stream);
    if (stream == NULL)
        return fail(plan, SL_ERR_NOMEM);
    stream->name = name;
    stream->index = plan->stream_count;
    stream->expected = SL_STATE_ANY;
    plan->streams[plan->stream_count++] = stream;
    sl_map_insert(&plan->by_name, &stream->node, hash_of(plan, name));
    *ret_stream = stream;
    return true;
}

static_assert(SL_BATCH_OPS_MAX == 4096, "the sentence names it");

/* --- records --- */

static bool refuse_size(sl_plan *plan, uint64_t size)
{
    sl_multi_reply_too_large(plan->request, size);
    return false;
}

bool sl_plan_reserve(sl_plan *plan, size_t record_count)
{
    const uint32_t capacity = (uint32_t)(plan->event_count + record_count);
    sl_event_in *events;
    uint32_t *owners;

    if (record_count > EVENTS_MAX - plan->event_count)
        return refuse_size(plan, plan->size + record_count * SL_RECORD_HEAD_BYTES);
    if (capacity <= plan->event_capacity)
        return true;
    if (!sl_plan_claim(plan, (capacity - plan->event_capacity) * (sizeof *events + sizeof *owners)))
        return false;
    events = sl_alloc_take(alloc_of(plan), capacity * sizeof *events);
    owners = sl_alloc_take(alloc_of(plan), capacity * sizeof *owners);
    if (events == NULL || owners == NULL) {
        give(plan, events, capacity * sizeof *events);
        give(plan, owners, capacity * sizeof *owners);
        return fail(plan, SL_ERR_NOMEM);
    }
    if (plan->event_count > 0) {
        memcpy(events, plan->events, plan->event_count * sizeof *events);
        memcpy(owners, plan->owners, plan->event_count * sizeof *owners);
    }
    give(plan, plan->events, plan->event_capacity * sizeof *events);
    give(plan, plan->owners, plan->event_capacity * sizeof *owners);
    plan->events = events;
    plan->owners = owners;
    plan->event_capacity = capacity;
    return true;
}

static const char *complaint_about(const sl_multi_record *record, sl_uuid id, const char **ret_field)
{
    *ret_field = "schema.name";
    if (record->schema_name.bytes == 0)
        return "A record has no schema name, which is the type of its event.";
    if (sl_type_complaint(record->schema_name) != NULL)
        return sl_type_complaint(record->schema_name);
    *ret_field = "schema.format";
    if (sl_schema_format_name(record->schema_format) == NULL)
        return "A record has no schema format, or none of JSON, Protobuf, Avro and bytes.";
    *ret_field = "record_id";
    return sl_uuid_is_zero(id) ? "A record id is no UUID, or all zeros." : NULL;
}

/* Zero when there is one that is none. */
static sl_uuid id_of(sl_plan *plan, const sl_multi_record *record)
{
    sl_uuid id = { { 0 } };

    if (record->id.bytes == 0)
        return sl_write_new_id(plan->request->host);
    return sl_uuid_parse(record->id.data, record->id.bytes, &id) == SL_OK ? id : (sl_uuid){ { 0 } };
}

static bool write_metadata(sl_plan *plan, const sl_multi_record *record, sl_str *ret_metadata)
{
    const char *copy = NULL;
    sl_err err;

    sl_buf_clear(&plan->json);
    sl_arena_reset(&plan->scratch);
    err = sl_properties_write(record, &plan->scratch, &plan->json);
    if (err == SL_OK)
        copy = sl_arena_copy(&plan->request->arena, sl_buf_data(&plan->json), plan->json.bytes);
    *ret_metadata = (sl_str){ copy, plan->json.bytes };
    if (copy != NULL)
        return true;
    if (err == SL_ERR_INVALID)
        sl_multi_reply_invalid(plan->request, "properties",
                               "A property has a number that is not finite, which JSON cannot say.");
    else
        fail(plan, err == SL_OK ? SL_ERR_NOMEM : err);
    return false;
}

static bool check_sizes(sl_plan *plan, const sl_plan_stream *stream, const sl_event_in *event)
{
    const sl_server_settings *const settings = plan->request->host->settings;
    const uint64_t size = sl_event_size(event);
    char id[SL_UUID_TEXT_BYTES + 1];

    if (size > settings->event_bytes_max) {
        sl_uuid_format(event->id, id);
        sl_multi_reply_record_too_large(plan->request, stream->name, (sl_str){ id, SL_UUID_TEXT_BYTES },
                                        size);
        return false;
    }
    plan->size += size;
    plan->stored_bytes +=
        SL_RECORD_HEAD_BYTES + event->type.bytes + event->data.bytes + event->metadata.bytes;
    if (plan->size > settings->append_bytes_max || plan->stored_bytes > SL_BATCH_BYTES_MAX)
        return refuse_size(plan, plan->size > settings->append_bytes_max ? plan->size : plan->stored_bytes);
    return true;
}

bool sl_plan_add_record(sl_plan *plan, sl_plan_stream *stream, const sl_multi_record *record)
{
    sl_event_in event = { .id = id_of(plan, record),
                          .type = record->schema_name,
                          .data = record->data,
                          .is_json = record->schema_format == SL_SCHEMA_JSON,
                          .created_ns = sl_clock_wall_ns(plan->request->host->clock) };
    const char *field;
    const char *const complaint = complaint_about(record, event.id, &field);

    assert(plan->event_count < plan->event_capacity);
    if (complaint != NULL) {
        sl_multi_reply_invalid(plan->request, field, complaint);
        return false;
    }
    if (!write_metadata(plan, record, &event.metadata) || !sl_plan_claim(plan, 0) ||
        !check_sizes(plan, stream, &event))
        return false;
    plan->events[plan->event_count] = event;
    plan->owners[plan->event_count++] = stream->index;
    stream->event_count++;
    return true;
}

/* wire/call.c — the life of a call: made, known to the application, ended, a husk, free.
 *
 *      new --announce/start--> known --end--> husk --stream closed--> free
 *       |                                       ^
 *       +---------refused before anybody knew---+
 *
 * Freed calls keep their small buffers and are used again: a call costs no allocation of ours in the long run. */
#include "wire/engine.h"

#include "base/cleanup.h"
#include "wire/coding.h"

#include <assert.h>

/* A slot for each call, so that setting a timer cannot fail. */
static bool grow_timers(sl_connection *connection)
{
    const uint32_t capacity = connection->timers.capacity == 0 ? 8 : 2 * connection->timers.capacity;
    const size_t bytes = capacity * sizeof *connection->timers.slots;
    sl_heap_slot *slots;

    if (connection->call_count < connection->timers.capacity)
        return true;
    slots = sl_alloc_resize(connection->alloc, connection->timers.slots, connection->timer_bytes, bytes);
    if (slots == NULL)
        return false;
    connection->timers.slots = slots;
    connection->timers.capacity = capacity;
    connection->timer_bytes = bytes;
    return true;
}

static sl_call *take_memory(sl_connection *connection)
{
    sl_list *node = sl_list_first(&connection->free_calls);
    sl_call *call =
        node == NULL ? sl_alloc_take(connection->alloc, sizeof *call) : SL_CONTAINER_OF(node, sl_call, node);

    if (node != NULL) {
        sl_list_remove(node);
        connection->free_call_count--;
        return call;
    }
    if (call == NULL)
        return NULL;
    sl_metadata_list_init(&call->metadata, connection->alloc);
    sl_metadata_list_init(&call->trailers, connection->alloc);
    sl_metadata_list_init(&call->sent, connection->alloc);
    sl_buf_init(&call->path, connection->alloc, UINT32_MAX);
    sl_buf_init(&call->message, connection->alloc, UINT32_MAX);
    sl_buf_init(&call->incoming, connection->alloc, UINT32_MAX);
    sl_buf_init(&call->outgoing, connection->alloc, UINT32_MAX);
    return call;
}

sl_call *sl_engine_call_new(sl_connection *connection)
{
    sl_call *call = grow_timers(connection) ? take_memory(connection) : NULL;

    if (call == NULL)
        return NULL;
    *call = (sl_call){
        .connection = connection,
        .metadata = call->metadata,
        .trailers = call->trailers,
        .sent = call->sent,
        .path = call->path,
        .message = call->message,
        .incoming = call->incoming,
        .outgoing = call->outgoing,
        .timeout_ns = UINT64_MAX,
        .deadline_ns = UINT64_MAX,
        .message_bytes_max = connection->limits.message_bytes_max,
    };
    sl_list_init(&call->room_node);
    sl_list_init(&call->half_open_node);
    sl_list_push_back(&connection->calls, &call->node);
    connection->call_count++;
    return call;
}

static void free_memory(sl_call *call)
{
    sl_metadata_list_done(&call->metadata);
    sl_metadata_list_done(&call->trailers);
    sl_metadata_list_done(&call->sent);
    sl_buf_done(&call->path);
    sl_buf_done(&call->message);
    sl_buf_done(&call->incoming);
    sl_buf_done(&call->outgoing);
    sl_alloc_give(call->connection->alloc, call, sizeof *call);
}

static void clear_memory(sl_call *call)
{
    sl_metadata_list_clear(&call->metadata);
    sl_metadata_list_clear(&call->trailers);
    sl_metadata_list_clear(&call->sent);
    sl_buf_done(&call->message);
    sl_buf_clear(&call->path);
}

/* Back to the free calls, or to the allocator when there are enough or the connection is over. */
static void put_away(sl_call *call)
{
    sl_connection *connection = call->connection;

    sl_list_remove(&call->node);
    if (connection->end != SL_END_NONE || connection->free_call_count >= SL_FREE_CALLS_MAX) {
        free_memory(call);
        return;
    }
    clear_memory(call);
    sl_list_push_back(&connection->free_calls, &call->node);
    connection->free_call_count++;
}

void sl_engine_call_free(sl_call *call)
{
    sl_connection *connection = call->connection;

    assert(call->ended);
    if (sl_heap_has(&call->timer))
        sl_heap_remove(&connection->timers, &call->timer);
    sl_list_remove(&call->room_node);
    sl_engine_half_open_end(call);
    sl_engine_drop_outgoing(call);
    if (--connection->call_count == 0)
        connection->idle_since_ns = connection->now_ns;
    put_away(call);
}

void sl_engine_free_calls_clear(sl_connection *connection)
{
    SL_LIST_EACH_SAFE (node, &connection->free_calls) {
        sl_list_remove(node);
        free_memory(SL_CONTAINER_OF(node, sl_call, node));
    }
    connection->free_call_count = 0;
}

void sl_engine_release(sl_call *call)
{
    if (call->ended && call->stream_id == 0 && !call->delivering)
        sl_engine_call_free(call);
}

static void count_end(sl_call *call, sl_call_end_kind kind)
{
    if (call->known || call->headers_done)
        call->connection->counters->calls_ended[kind]++;
}

void sl_engine_call_end_info(sl_call *call, const sl_call_end_info *info)
{
    sl_connection *connection = call->connection;

    if (call->ended)
        return;
    call->ended = true;
    if (sl_heap_has(&call->timer))
        sl_heap_remove(&connection->timers, &call->timer);
    sl_list_remove(&call->room_node);
    count_end(call, info->kind);
    if (call->known && connection->handler.on_end != NULL)
        connection->handler.on_end(connection->ctx, call, info);
    call->user = NULL;
    if (!call->delivering)
        sl_engine_drop_incoming(call);
}

void sl_engine_call_end(sl_call *call, sl_call_end_kind kind, sl_status status, sl_str message)
{
    const sl_call_end_info info = { .kind = kind, .status = status, .message = message };

    sl_engine_call_end_info(call, &info);
}

/* The peer has reset the stream, or nghttp2 has because the peer broke a rule. */
static void reset_came(sl_call *call, uint32_t http2_error)
{
    const bool is_server = call->connection->role == SL_ROLE_SERVER;
    const sl_call_end_info info = {
        .kind = SL_CALL_PEER_CANCELLED,
        .status = is_server ? SL_STATUS_CANCELLED : sl_status_from_reset(http2_error),
        .message = SL_STR("the peer reset the stream"),
        .unprocessed = !is_server && http2_error == NGHTTP2_REFUSED_STREAM,
    };

    sl_engine_call_end_info(call, &info);
}

void sl_engine_stream_closed(sl_call *call, uint32_t http2_error)
{
    const bool unread = call->remote_done && !call->ended && http2_error == NGHTTP2_NO_ERROR;

    sl_engine_drop_outgoing(call);
    call->stream_id = 0;
    if (call->connection->role == SL_ROLE_CLIENT && unread)
        return; /* paused with messages that the application still wants; the end follows them */
    reset_came(call, http2_error);
    sl_engine_release(call);
}

static uint64_t stall_due_ns(const sl_call *call)
{
    const uint64_t stall_ns = call->connection->limits.stall_timeout_ns;
    const bool sends = call->outgoing.bytes > 0 && stall_ns > 0;

    return sends ? sl_add_sat_u64(call->progress_ns, stall_ns) : UINT64_MAX;
}

/* The earliest moment at which something may be due. Progress does not move it; when it comes, it is looked at
 * again, so that sending costs no heap operation. */
static uint64_t next_due_ns(const sl_call *call)
{
    return sl_min_u64(call->deadline_ns, sl_min_u64(stall_due_ns(call), sl_engine_message_due_ns(call)));
}

void sl_engine_set_timer(sl_call *call)
{
    sl_heap *timers = &call->connection->timers;
    const uint64_t due_ns = next_due_ns(call);

    if (due_ns == UINT64_MAX || call->ended)
        return;
    if (!sl_heap_has(&call->timer))
        sl_heap_insert(timers, &call->timer, due_ns);
    else if (due_ns < sl_heap_key(timers, &call->timer))
        sl_heap_rekey(timers, &call->timer, due_ns);
}

static void stalled(sl_call *call)
{
    sl_engine_call_end(call, SL_CALL_STALLED, SL_STATUS_CANCELLED, SL_STR("the peer takes no bytes"));
    sl_engine_drop_outgoing(call);
    sl_engine_reset(call, NGHTTP2_CANCEL);
}

void sl_engine_timer_due(sl_call *call)
{
    sl_connection *connection = call->connection;

    sl_heap_remove(&connection->timers, &call->timer);
    if (call->is_half_open)
        sl_engine_half_open_due(call);
    else if (call->deadline_ns <= connection->now_ns)
        sl_engine_deadline(call);
    else if (stall_due_ns(call) <= connection->now_ns)
        stalled(call);
    else if (sl_engine_message_due_ns(call) <= connection->now_ns)
        sl_engine_message_due(call);
    else
        sl_engine_set_timer(call);
    sl_engine_release(call);
}

sl_str sl_call_path(const sl_call *call)
{
    return (sl_str){ (const char *)sl_buf_data(&call->path), call->path.bytes };
}

void *sl_call_user(const sl_call *call)
{
    return call->user;
}

void sl_call_set_user(sl_call *call, void *user)
{
    call->user = user;
}

uint64_t sl_call_deadline_ns(const sl_call *call)
{
    return call->deadline_ns;
}

const sl_metadata_list *sl_call_metadata(const sl_call *call)
{
    return &call->metadata;
}

const sl_metadata_list *sl_call_trailers(const sl_call *call)
{
    return &call->trailers;
}

void sl_call_set_message_bytes_max(sl_call *call, uint32_t message_bytes_max)
{
    assert(message_bytes_max < UINT32_MAX);
    call->message_bytes_max = message_bytes_max;
}

/* wire/connection.c — the life of a connection: made, fed, emptied, ticked, ended.
 *
 * Every entry point is enter() ... leave(). In between nghttp2 and the application call each other; what must not
 * happen there, freeing calls and ending the connection, waits for leave(). engine.h says why. */
#include "wire/engine.h"

#include "base/cleanup.h"

#include <assert.h>

static const sl_str preface = SL_STR_INIT(NGHTTP2_CLIENT_MAGIC);

#define HTTP1_SENTENCE                                                                                       \
    "This port speaks gRPC over HTTP/2 only. Use a KurrentDB or EventStoreDB client, or curl with "          \
    "--http2-prior-knowledge.\n"

/* The length stands in it as text, so it is checked below. */
static const sl_str http1_answer = SL_STR_INIT("HTTP/1.1 400 Bad Request\r\n"
                                               "content-type: text/plain; charset=utf-8\r\n"
                                               "content-length: 118\r\n"
                                               "connection: close\r\n"
                                               "\r\n" HTTP1_SENTENCE);
static_assert(sizeof HTTP1_SENTENCE - 1 == 118, "content-length of the answer to HTTP/1.1");

static const struct {
    const char *name, *text;
    uint32_t http2_error;
} ends[] = {
#define XX(name, error, text) [SL_END_##name] = { #name, text, NGHTTP2_##error },
    SL_END_MAP(XX)
#undef XX
};
static_assert(SL_COUNT_OF(ends) == SL_END_COUNT_, "one row for each end");

const char *sl_end_name(sl_end end)
{
    return (unsigned)end < SL_END_COUNT_ ? ends[end].name : "UNKNOWN";
}

const char *sl_end_text(sl_end end)
{
    return (unsigned)end < SL_END_COUNT_ ? ends[end].text : "ended for an unknown reason";
}

static void init(sl_connection *connection, const sl_connection_options *options, const sl_alloc *alloc)
{
    *connection = (sl_connection){
        .alloc = alloc,
        .limits = options->limits == NULL ? sl_wire_limits_default : *options->limits,
        .handler = *options->handler,
        .ctx = options->ctx,
        .role = options->role,
        .tls = options->tls,
        .input = options->input,
    };
    connection->counters = options->counters == NULL ? &connection->own_counters : options->counters;
    sl_list_init(&connection->calls);
    sl_list_init(&connection->free_calls);
    sl_list_init(&connection->room_wanted);
    sl_list_init(&connection->half_open);
    sl_heap_init(&connection->timers, NULL, 0);
    sl_spares_init(&connection->spares, alloc);
    sl_sized_init(&connection->sized, alloc);
    sl_buf_init(&connection->nva, alloc, UINT32_MAX);
    sl_buf_init(&connection->authority, alloc, UINT32_MAX);
}

sl_err sl_connection_new(const sl_connection_options *options, uint64_t now_ns,
                         sl_connection **ret_connection)
{
    const sl_alloc *alloc = options->alloc == NULL ? &sl_alloc_default : options->alloc;
    sl_connection *connection = sl_alloc_take(alloc, sizeof *connection);

    if (connection == NULL)
        return SL_ERR_NOMEM;
    init(connection, options, alloc);
    connection->now_ns = connection->started_ns = connection->received_ns = now_ns;
    connection->idle_since_ns = now_ns;
    if (sl_buf_append(&connection->authority, options->authority.data, options->authority.bytes) != SL_OK ||
        sl_engine_session_new(connection) != SL_OK) {
        connection->end = SL_END_NOMEM; /* nothing is to be counted: it never was there */
        sl_connection_free(connection);
        return SL_ERR_NOMEM;
    }
    connection->counters->connections++;
    *ret_connection = connection;
    return SL_OK;
}

void sl_connection_free(sl_connection *connection)
{
    if (connection == NULL)
        return;
    assert(connection->depth == 0);
    sl_connection_end(connection);
    if (connection->end != SL_END_NOMEM) /* memory.h says why */
        nghttp2_session_del(connection->session);
    sl_sized_clear(&connection->sized);
    sl_gunzip_free(connection->gunzip);
    sl_spares_clear(&connection->spares);
    sl_buf_done(&connection->nva);
    sl_buf_done(&connection->authority);
    sl_alloc_give(connection->alloc, connection->timers.slots, connection->timer_bytes);
    sl_alloc_give(connection->alloc, connection, sizeof *connection);
}

void sl_engine_doom(sl_connection *connection, sl_end reason)
{
    if (connection->doom == SL_END_NONE)
        connection->doom = reason;
}

bool sl_engine_is_over(const sl_connection *connection)
{
    return connection->doom != SL_END_NONE || connection->end != SL_END_NONE;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A GOAWAY frame with the reason as its debug text. */
static void say_goaway(sl_connection *connection, sl_end reason)
{
    const sl_str text = sl_str_from(ends[reason].text);
    uint8_t *frame = connection->farewell;

    assert(SL_FRAME_HEAD_BYTES + 8 + text.bytes <= SL_FAREWELL_BYTES_MAX);
    put_u32(frame, (uint32_t)(8 + text.bytes) << 8 | NGHTTP2_GOAWAY); /* three bytes of length, one of type */
    put_u32(frame + 4, 0);                                            /* no flags; the stream id is 0 */
    put_u32(frame + 5, 0);
    put_u32(frame + 9, (uint32_t)nghttp2_session_get_last_proc_stream_id(connection->session));
    put_u32(frame + 13, ends[reason].http2_error);
    memcpy(frame + 17, text.data, text.bytes);
    connection->farewell_bytes = 17 + text.bytes;
}

static void end_calls(sl_connection *connection, sl_str message)
{
    sl_list *node;

    /* From the front again each time: on_end may end other calls too. Those that ended before are husks. */
    while ((node = sl_list_first(&connection->calls)) != NULL) {
        sl_call *call = SL_CONTAINER_OF(node, sl_call, node);
        sl_engine_call_end(call, SL_CALL_CONNECTION_LOST, SL_STATUS_UNAVAILABLE, message);
        sl_engine_call_free(call);
    }
}

static void carry_out(sl_connection *connection, sl_end reason)
{
    const bool lingers = connection->role == SL_ROLE_SERVER && reason != SL_END_KEEPALIVE_TIMEOUT;

    connection->end = connection->doom = reason;
    connection->linger_until_ns =
        lingers ? sl_add_sat_u64(connection->now_ns, connection->limits.linger_timeout_ns) : 0;
    connection->counters->connections_ended[reason]++;
    connection->depth++;
    end_calls(connection, sl_str_from(ends[reason].text));
    connection->depth--;
    sl_engine_free_calls_clear(connection);
    sl_spares_clear(&connection->spares);
}

/* nghttp2 ends a session by itself when it finds an error, and when both sides have said that they are done. */
static sl_end reason_of_session(const sl_connection *connection)
{
    if (connection->protocol_error)
        return SL_END_PROTOCOL;
    return connection->shutting_down || connection->goaway_received ? SL_END_SHUTDOWN : SL_END_CLOSED;
}

/* Calls may be left that nghttp2 has forgotten, with messages that a paused client still wants. */
static bool session_is_done(const sl_connection *connection)
{
    const bool calls_matter = connection->call_count > 0 && !connection->protocol_error;

    return !calls_matter && connection->tail_bytes == 0 && !nghttp2_session_want_read(connection->session) &&
           !nghttp2_session_want_write(connection->session);
}

/* Before the preface a server says nothing: who speaks HTTP/1.1 must not get binary frames before his answer. */
static bool is_introduced(const sl_connection *connection)
{
    return connection->role == SL_ROLE_CLIENT || connection->preface_matched == preface.bytes;
}

static void enter(sl_connection *connection, uint64_t now_ns)
{
    assert(connection->depth == 0); /* else an entry point was called from within a callback */
    connection->depth++;
    connection->now_ns = sl_max_u64(now_ns, connection->now_ns);
}

static void leave(sl_connection *connection)
{
    connection->depth--;
    if (connection->end != SL_END_NONE)
        return;
    if (connection->doom != SL_END_NONE) {
        const sl_end reason = connection->doom;
        carry_out(connection, reason);
        if (is_introduced(connection))
            say_goaway(connection, reason);
    } else if (session_is_done(connection)) {
        carry_out(connection, reason_of_session(connection));
    }
}

void sl_connection_end(sl_connection *connection)
{
    assert(connection->depth == 0);
    if (connection->end == SL_END_NONE)
        carry_out(connection, connection->doom == SL_END_NONE ? SL_END_CLOSED : connection->doom);
    connection->tail_bytes = 0;
    connection->farewell_at = connection->farewell_bytes;
    connection->linger_until_ns = 0;
}

static void feed(sl_connection *connection, const uint8_t *data, size_t bytes)
{
    const ssize_t used = nghttp2_session_mem_recv(connection->session, data, bytes);

    if (used < 0)
        sl_engine_check(connection, (int)used);
    if (nghttp2_session_get_outbound_queue_size(connection->session) > connection->limits.queued_frames_max)
        sl_engine_doom(connection, SL_END_UNREAD_OUTPUT);
}

/* Somebody speaks HTTP/1.1, TLS or something else. Only who begins like an HTTP/1.1 request gets an answer. */
static void refuse_protocol(sl_connection *connection, char first)
{
    sl_engine_doom(connection, SL_END_NOT_HTTP2);
    if (first < 'A' || first > 'Z')
        return;
    /* nghttp2 has its SETTINGS ready to be sent, but a doomed connection sends nothing of nghttp2. */
    assert(http1_answer.bytes <= SL_FAREWELL_BYTES_MAX);
    memcpy(connection->farewell, http1_answer.data, http1_answer.bytes);
    connection->farewell_bytes = http1_answer.bytes;
}

/* Server: compares what comes with the preface. Returns how many bytes belong to it. */
static size_t match_preface(sl_connection *connection, const char *data, size_t bytes)
{
    const size_t missing = preface.bytes - connection->preface_matched;
    const size_t count = bytes < missing ? bytes : missing;

    if (memcmp(data, preface.data + connection->preface_matched, count) != 0) {
        refuse_protocol(connection, connection->preface_matched > 0 ? preface.data[0] : data[0]);
        return bytes;
    }
    connection->preface_matched += count;
    if (count == missing)
        feed(connection, (const uint8_t *)preface.data, preface.bytes);
    return count;
}

void sl_connection_receive(sl_connection *connection, uint64_t now_ns, const void *data, size_t bytes)
{
    size_t used = 0;

    enter(connection, now_ns);
    if (!sl_engine_is_over(connection) && bytes > 0) {
        connection->counters->bytes_received += bytes;
        connection->received_ns = connection->now_ns;
        connection->ping_out = false; /* whatever came, the peer lives */
        if (!is_introduced(connection))
            used = match_preface(connection, data, bytes);
        if (!sl_engine_is_over(connection) && used < bytes)
            feed(connection, (const uint8_t *)data + used, bytes - used);
    }
    leave(connection);
}

/* Copies as much of the tail as there is room. */
static void emit_tail(sl_connection *connection)
{
    const size_t room = connection->sink.capacity - connection->sink.used;
    const size_t count = connection->tail_bytes < room ? connection->tail_bytes : room;

    if (count == 0)
        return;
    memcpy(connection->sink.data + connection->sink.used, connection->tail, count);
    connection->sink.used += count;
    connection->tail += count;
    connection->tail_bytes -= count;
}

/* DATA frames go straight into the sink (outgoing.c); nghttp2 hands out all others, one at a time. */
static void emit_frames(sl_connection *connection)
{
    emit_tail(connection);
    while (connection->tail_bytes == 0 && !sl_engine_is_over(connection)) {
        const ssize_t bytes = nghttp2_session_mem_send(connection->session, &connection->tail);
        if (bytes <= 0) {
            sl_engine_check(connection, (int)bytes);
            return;
        }
        connection->tail_bytes = (size_t)bytes;
        emit_tail(connection);
    }
}

static void emit_farewell(sl_connection *connection)
{
    emit_tail(connection);
    if (connection->tail_bytes == 0 && connection->farewell_at < connection->farewell_bytes) {
        connection->tail = connection->farewell + connection->farewell_at;
        connection->tail_bytes = connection->farewell_bytes - connection->farewell_at;
        connection->farewell_at = connection->farewell_bytes;
        emit_tail(connection);
    }
}

size_t sl_connection_output(sl_connection *connection, uint64_t now_ns, void *into, size_t capacity)
{
    assert(capacity >= SL_OUTPUT_BYTES_MIN);
    enter(connection, now_ns);
    connection->sink.data = into;
    connection->sink.capacity = capacity;
    connection->sink.used = 0;
    do
        if (is_introduced(connection))
            emit_frames(connection);
    while (!sl_engine_is_over(connection) && sl_engine_offer_room(connection));
    leave(connection);
    if (connection->end != SL_END_NONE)
        emit_farewell(connection);
    connection->sink.data = NULL;
    connection->counters->bytes_sent += connection->sink.used;
    return connection->sink.used;
}

bool sl_connection_has_output(const sl_connection *connection)
{
    if (connection->tail_bytes > 0)
        return true;
    if (connection->end != SL_END_NONE)
        return connection->farewell_at < connection->farewell_bytes;
    if (connection->doom != SL_END_NONE)
        return true;
    return is_introduced(connection) && nghttp2_session_want_write(connection->session);
}

bool sl_connection_wants_input(const sl_connection *connection)
{
    if (connection->end != SL_END_NONE)
        return !sl_connection_finished(
            connection); /* to be thrown away, and to see that the peer has closed */
    return nghttp2_session_want_read(connection->session) || connection->doom != SL_END_NONE;
}

bool sl_connection_finished(const sl_connection *connection)
{
    return connection->end != SL_END_NONE && !sl_connection_has_output(connection) &&
           connection->linger_until_ns <= connection->now_ns;
}

void sl_engine_final_goaway(sl_connection *connection)
{
    const int32_t last_id = nghttp2_session_get_last_proc_stream_id(connection->session);

    if (connection->goaway_sent)
        return;
    connection->goaway_sent = true;
    sl_engine_check(connection, nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last_id,
                                                      NGHTTP2_NO_ERROR, NULL, 0));
}

/* A server says it twice: first with the highest possible number, so that calls already on their way are still
 * taken, then, when the peer's answer to a ping shows that it has heard, with the real one. */
void sl_connection_shutdown(sl_connection *connection)
{
    if (sl_engine_is_over(connection) || connection->shutting_down)
        return;
    connection->shutting_down = true;
    connection->shutdown_ns = connection->now_ns;
    if (connection->role == SL_ROLE_CLIENT) {
        sl_engine_final_goaway(connection);
        return;
    }
    sl_engine_check(connection, nghttp2_submit_shutdown_notice(connection->session));
    sl_engine_check(connection, nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL));
}

sl_end sl_connection_end_reason(const sl_connection *connection)
{
    return connection->end;
}

sl_str sl_connection_authority(const sl_connection *connection)
{
    return (sl_str){ (const char *)sl_buf_data(&connection->authority), connection->authority.bytes };
}

uint32_t sl_connection_call_count(const sl_connection *connection)
{
    return connection->call_count - connection->half_open_count;
}

size_t sl_connection_output_bytes(const sl_connection *connection)
{
    return connection->output_bytes;
}

/* A consumer that was sent thousands of messages works for long and hears nothing: the memory they went through is not kept for it. */
#define SPARES_NS UINT64_C(1000000000)

/* The times that belong to the connection itself; UINT64_MAX for what does not wait. */
typedef struct due_times {
    uint64_t handshake, headers, keepalive, idle, shutdown, spares;
} due_times;

static uint64_t due(bool waits, uint64_t since_ns, uint64_t timeout_ns)
{
    return waits && timeout_ns > 0 ? sl_add_sat_u64(since_ns, timeout_ns) : UINT64_MAX;
}

static due_times due_times_of(const sl_connection *connection)
{
    const sl_wire_limits *limits = &connection->limits;
    const bool notice_out = connection->shutting_down && !connection->goaway_sent;
    const bool keeps_spares = connection->spares_ns > 0 && connection->spares.bytes > SL_SPARE_BYTES_QUIET;
    due_times times = {
        .handshake = due(!connection->handshake_done, connection->started_ns, limits->handshake_timeout_ns),
        .headers = due(connection->headers_open, connection->headers_since_ns, limits->headers_timeout_ns),
        .keepalive = due(!connection->ping_out, connection->received_ns, limits->keepalive_interval_ns),
        .idle = due(connection->call_count == 0, connection->idle_since_ns, limits->idle_timeout_ns),
        .shutdown = due(notice_out, connection->shutdown_ns, limits->shutdown_notice_ns),
        .spares = due(keeps_spares, connection->spares_ns, SPARES_NS),
    };

    if (connection->ping_out)
        times.keepalive = due(true, connection->ping_sent_ns, limits->keepalive_timeout_ns);
    return times;
}

uint64_t sl_connection_due_ns(const sl_connection *connection)
{
    const due_times times = due_times_of(connection);
    const uint64_t calls_ns = sl_heap_min_key(&connection->timers);

    if (connection->end != SL_END_NONE)
        return connection->linger_until_ns > connection->now_ns ? connection->linger_until_ns : UINT64_MAX;
    if (connection->doom != SL_END_NONE)
        return connection->now_ns;
    return sl_min_u64(
        sl_min_u64(sl_min_u64(times.handshake, times.headers), sl_min_u64(times.keepalive, times.idle)),
        sl_min_u64(sl_min_u64(times.shutdown, times.spares), calls_ns));
}

static void keepalive_due(sl_connection *connection)
{
    if (connection->ping_out) {
        sl_engine_doom(connection, SL_END_KEEPALIVE_TIMEOUT);
        return;
    }
    connection->ping_out = true;
    connection->ping_sent_ns = connection->now_ns;
    sl_spares_clear(&connection->spares); /* a silent connection needs no memory in hand */
    sl_engine_check(connection, nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL));
}

static void tick_connection(sl_connection *connection)
{
    const uint64_t now_ns = connection->now_ns;
    const due_times times = due_times_of(connection);

    if (times.handshake <= now_ns)
        sl_engine_doom(connection, SL_END_HANDSHAKE_TIMEOUT);
    else if (times.headers <= now_ns)
        sl_engine_doom(connection, SL_END_HEADERS_TIMEOUT);
    else if (times.idle <= now_ns)
        sl_engine_doom(connection, SL_END_IDLE);
    else if (times.keepalive <= now_ns)
        keepalive_due(connection);
    if (times.spares <= now_ns) {
        sl_spares_clear(&connection->spares);
        connection->spares_ns = 0;
    }
    if (times.shutdown <= now_ns && !sl_engine_is_over(connection))
        sl_engine_final_goaway(connection);
}

void sl_connection_tick(sl_connection *connection, uint64_t now_ns)
{
    enter(connection, now_ns);
    if (!sl_engine_is_over(connection))
        tick_connection(connection);
    while (!sl_engine_is_over(connection) && sl_heap_min_key(&connection->timers) <= connection->now_ns)
        sl_engine_timer_due(SL_CONTAINER_OF(sl_heap_min(&connection->timers), sl_call, timer));
    leave(connection);
}

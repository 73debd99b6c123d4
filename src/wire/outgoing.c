/* wire/outgoing.c — messages become DATA.
 *
 * Messages wait in call->outgoing, one behind the other with their prefixes; the application writes them right
 * there. When the socket takes bytes, nghttp2 asks for as much as windows and frame size allow, and the bytes are
 * copied once, from there into the caller's output: many messages in one frame.
 *
 * A call without bytes is deferred: nghttp2 forgets it until sl_engine_wake(). */
#include "wire/engine.h"

#include "base/cleanup.h"

#include <assert.h>

enum {
    NOT_RESERVED = 0,
    FRAME_BYTES_WORTH_SPLITTING =
        1024 /* a frame is made smaller to fill the rest of the output, but not tiny */
};

static size_t left(size_t used, size_t max)
{
    return used < max ? max - used : 0;
}

static size_t room_of(const sl_call *call)
{
    const sl_wire_limits *limits = &call->connection->limits;
    const size_t own = left(call->outgoing.bytes, limits->call_output_bytes_max);
    const size_t all = left(call->connection->output_bytes, limits->output_bytes_max);

    return own < all ? own : all;
}

size_t sl_call_room(sl_call *call)
{
    const size_t room = room_of(call);

    if (room == 0 && sl_list_empty(&call->room_node))
        sl_list_push_back(&call->connection->room_wanted, &call->room_node);
    return room;
}

size_t sl_call_output_bytes(const sl_call *call)
{
    return call->outgoing.bytes;
}

static bool has_room_again(const sl_call *call)
{
    const sl_wire_limits *limits = &call->connection->limits;

    return call->outgoing.bytes <= limits->call_output_bytes_max / 2 &&
           call->connection->output_bytes <= limits->output_bytes_max / 2;
}

/* Tells those who wait and have room again, who waits longest first. Half of the limit must be free, so that
 * they are not told for each byte. True when somebody was told. */
bool sl_engine_offer_room(sl_connection *connection)
{
    sl_list waiting;
    sl_list *node;
    bool offered = false;

    sl_list_init(&waiting);
    if (connection->output_bytes > connection->limits.output_bytes_max / 2)
        return false;
    sl_list_splice(&waiting, &connection->room_wanted);
    while ((node = sl_list_first(&waiting)) != NULL) {
        sl_call *call = SL_CONTAINER_OF(node, sl_call, room_node);
        sl_list_remove(node);
        if (!has_room_again(call)) {
            sl_list_push_back(&connection->room_wanted, node);
        } else if (connection->handler.on_room != NULL) {
            offered = true;
            connection->handler.on_room(connection->ctx, call);
        }
    }
    return offered;
}

void sl_engine_wake(sl_call *call)
{
    sl_connection *connection = call->connection;

    if (!call->deferred || call->stream_id == 0 || sl_engine_is_over(connection))
        return;
    call->deferred = false;
    sl_engine_check(connection, nghttp2_session_resume_data(connection->session, call->stream_id));
}

void sl_engine_drop_outgoing(sl_call *call)
{
    call->connection->output_bytes -= call->outgoing.bytes;
    sl_spares_collect(&call->connection->spares, &call->outgoing);
}

sl_err sl_call_reserve(sl_call *call, size_t bytes, uint8_t **ret_data)
{
    const bool fits = bytes <= call->connection->limits.sent_message_bytes_max;
    sl_err err;

    assert(!call->ended && !call->output_ended && call->reserved == NOT_RESERVED);
    if (!fits)
        return SL_ERR_TOO_LARGE;
    if (sl_call_room(call) == 0)
        return SL_ERR_FULL;
    sl_spares_lend(&call->connection->spares, &call->outgoing);
    err = sl_buf_reserve(&call->outgoing, SL_PREFIX_BYTES + bytes);
    if (err != SL_OK)
        return err;
    call->reserved = SL_PREFIX_BYTES + bytes;
    *ret_data = sl_buf_tail(&call->outgoing) + SL_PREFIX_BYTES;
    return SL_OK;
}

static void put_prefix(uint8_t *prefix, size_t bytes)
{
    prefix[0] = 0; /* not compressed */
    for (unsigned i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
}

void sl_call_commit(sl_call *call, size_t bytes)
{
    const size_t whole = SL_PREFIX_BYTES + bytes;
    const bool was_empty = call->outgoing.bytes == 0;

    assert(call->reserved != NOT_RESERVED && whole <= call->reserved);
    call->reserved = NOT_RESERVED;
    put_prefix(sl_buf_tail(&call->outgoing), bytes);
    sl_buf_added(&call->outgoing, whole);
    call->connection->output_bytes += whole;
    call->connection->counters->messages_sent++;
    if (was_empty) {
        call->progress_ns = call->connection->now_ns;
        sl_engine_set_timer(call);
    }
    if (!call->headers_sent)
        sl_call_send_headers(call, NULL, 0); /* without memory the call is reset by it */
    sl_engine_wake(call);
}

sl_err sl_call_send(sl_call *call, const sl_str *pieces, size_t piece_count)
{
    uint8_t *at;
    size_t bytes = 0;
    sl_err err;

    for (size_t i = 0; i < piece_count; i++)
        bytes += pieces[i].bytes;
    err = sl_call_reserve(call, bytes, &at);
    if (err != SL_OK)
        return err;
    for (size_t i = 0; i < piece_count; i++) {
        if (pieces[i].bytes > 0)
            memcpy(at, pieces[i].data, pieces[i].bytes);
        at += pieces[i].bytes;
    }
    sl_call_commit(call, bytes);
    return SL_OK;
}

/* How much goes into the next frame: what there is, what nghttp2 allows, and what is left of the output if that is
 * a sensible amount. If not, the frame waits for the next output, which has room for SL_OUTPUT_BYTES_MIN. */
static size_t frame_bytes(const sl_call *call, size_t allowed)
{
    const sl_connection *connection = call->connection;
    const size_t room = connection->sink.capacity - connection->sink.used;
    const size_t fits = room > SL_FRAME_HEAD_BYTES + FRAME_BYTES_WORTH_SPLITTING
                            ? room - SL_FRAME_HEAD_BYTES
                            : SL_OUTPUT_BYTES_MIN - SL_FRAME_HEAD_BYTES;

    return sl_min_u64(sl_min_u64(call->outgoing.bytes, allowed), fits);
}

/* The end of what we send: a client says it on the last DATA frame, a server in trailers behind it. */
static ssize_t mark_end(sl_call *call, size_t bytes, uint32_t *flags)
{
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (call->connection->role == SL_ROLE_CLIENT)
        return (ssize_t)bytes;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    sl_engine_check(call->connection, sl_engine_submit_trailers(call));
    return sl_engine_is_over(call->connection) ? NGHTTP2_ERR_CALLBACK_FAILURE : (ssize_t)bytes;
}

ssize_t sl_engine_read(nghttp2_session *session, int32_t stream_id, uint8_t *into, size_t allowed,
                       uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    sl_call *call = source->ptr;
    const size_t bytes = frame_bytes(call, allowed);

    (void)session;
    (void)stream_id;
    (void)into;
    (void)ctx;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (call->output_ended && bytes == call->outgoing.bytes)
        return mark_end(call, bytes, flags);
    if (bytes > 0)
        return (ssize_t)bytes;
    call->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
}

int sl_engine_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t bytes,
                        nghttp2_data_source *source, void *ctx)
{
    sl_connection *connection = ctx;
    sl_call *call = source->ptr;
    uint8_t *at = connection->sink.data + connection->sink.used;

    (void)session;
    assert(frame->data.padlen == 0 && bytes <= call->outgoing.bytes);
    if (connection->sink.capacity - connection->sink.used < SL_FRAME_HEAD_BYTES + bytes)
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(at, head, SL_FRAME_HEAD_BYTES);
    if (bytes > 0)
        memcpy(at + SL_FRAME_HEAD_BYTES, sl_buf_data(&call->outgoing), bytes);
    connection->sink.used += SL_FRAME_HEAD_BYTES + bytes;
    connection->output_bytes -= bytes;
    call->progress_ns = connection->now_ns;
    sl_buf_consume(&call->outgoing, bytes);
    if (call->outgoing.bytes == 0) {
        sl_spares_collect(&connection->spares, &call->outgoing);
        connection->spares_ns = connection->now_ns;
    }
    return 0;
}

/* wire/frames.c — which frames are too many.
 *
 * A flood is many frames that cost us more than the peer: answers, allocations, work without a byte of payload.
 * They are counted by their heads, before anything is done with them and whether they are right or wrong. */
#include "wire/engine.h"

static void count(sl_connection *connection, sl_bucket *bucket, sl_rate rate, sl_end reason)
{
    if (!sl_bucket_take(bucket, rate, connection->now_ns))
        sl_engine_doom(connection, reason);
}

void sl_engine_count_reset(sl_connection *connection)
{
    count(connection, &connection->resets, connection->limits.resets, SL_END_RESET_FLOOD);
}

void sl_engine_count_empty(sl_connection *connection)
{
    count(connection, &connection->empty_frames, connection->limits.empty_frames, SL_END_EMPTY_FRAME_FLOOD);
}

/* A call that was answered may be reset by whoever has its answer: he is done sending, and has paid for it like everybody. */
static bool is_goodbye(const sl_connection *connection, int32_t stream_id)
{
    const sl_call *call =
        stream_id == 0 ? NULL : nghttp2_session_get_stream_user_data(connection->session, stream_id);

    return call != NULL && call->is_half_open;
}

/* A header block is open from the head of its first frame on, so that bytes which drip in are seen too. */
static void count_headers(sl_connection *connection, const nghttp2_frame_hd *head)
{
    if (head->type != NGHTTP2_CONTINUATION) {
        connection->continuation_count = 0;
        connection->headers_open = true;
        connection->headers_since_ns = connection->now_ns;
    } else if (++connection->continuation_count > connection->limits.continuations_max) {
        sl_engine_doom(connection, SL_END_CONTINUATION_FLOOD);
    }
}

void sl_engine_count_frame(sl_connection *connection, const nghttp2_frame_hd *head)
{
    const sl_wire_limits *limits = &connection->limits;
    const bool is_ack = (head->flags & NGHTTP2_FLAG_ACK) != 0;

    switch (head->type) {
    case NGHTTP2_DATA:
        if (head->length == 0 && (head->flags & NGHTTP2_FLAG_END_STREAM) == 0)
            sl_engine_count_empty(connection);
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION: count_headers(connection, head); break;
    case NGHTTP2_PRIORITY:
    case NGHTTP2_PRIORITY_UPDATE:
        count(connection, &connection->priorities, limits->priorities, SL_END_PRIORITY_FLOOD);
        break;
    case NGHTTP2_RST_STREAM:
        if (!is_goodbye(connection, head->stream_id))
            sl_engine_count_reset(connection);
        break;
    case NGHTTP2_SETTINGS:
        if (!is_ack)
            count(connection, &connection->settings, limits->settings, SL_END_SETTINGS_FLOOD);
        break;
    case NGHTTP2_PING:
        if (!is_ack)
            count(connection, &connection->pings, limits->pings, SL_END_PING_FLOOD);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        count(connection, &connection->window_updates, limits->window_updates, SL_END_WINDOW_UPDATE_FLOOD);
        break;
    default: break; /* nghttp2 skips unknown types; that costs no more than reading them */
    }
}

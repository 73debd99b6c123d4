/* wire/session.c — nghttp2: how the session is made, and what each of its callbacks means here.
 *
 * Windows open only by our own credit (no_auto_window_update), priorities of the peer are not followed: every
 * stream gets its share in turn, because a consumer must not starve another by a number it sends.
 *
 * A callback that returns NGHTTP2_ERR_CALLBACK_FAILURE stops nghttp2; that happens exactly when the connection
 * is doomed. */
#include "wire/engine.h"

#include "base/cleanup.h"

#include <assert.h>

static int verdict(const sl_connection *connection)
{
    return sl_engine_is_over(connection) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void sl_engine_check(sl_connection *connection, int nghttp2_result)
{
    if (!nghttp2_is_fatal(nghttp2_result) || sl_engine_is_over(connection))
        return; /* what is not fatal says that the stream is closed or closing; its end is told in another way */
    switch (nghttp2_result) {
    case NGHTTP2_ERR_NOMEM: sl_engine_doom(connection, SL_END_NOMEM); break;
    case NGHTTP2_ERR_FLOODED: sl_engine_doom(connection, SL_END_UNREAD_OUTPUT); break;
    default: sl_engine_doom(connection, SL_END_PROTOCOL); break;
    }
}

void sl_engine_reset(sl_call *call, uint32_t http2_error)
{
    sl_connection *connection = call->connection;

    if (call->stream_id == 0 || sl_engine_is_over(connection))
        return;
    sl_engine_check(connection, nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE,
                                                          call->stream_id, http2_error));
}

static sl_call *call_of(nghttp2_session *session, int32_t stream_id)
{
    return stream_id == 0 ? NULL : nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *ctx)
{
    sl_connection *connection = ctx;

    (void)session;
    connection->frame_bytes_left = head->length;
    sl_engine_count_frame(connection, head);
    return verdict(connection);
}

/* In turn with the others, whatever the peer wishes. */
static void level_priority(sl_connection *connection, int32_t stream_id)
{
    const nghttp2_extpri pri = { .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1 };

    sl_engine_check(connection,
                    nghttp2_session_change_extpri_stream_priority(connection->session, stream_id, &pri, 1));
}

static int begin_call(sl_connection *connection, int32_t stream_id)
{
    sl_call *call = sl_engine_call_new(connection);

    if (call == NULL) {
        connection->headers_open = false;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* nghttp2 resets the stream, the others go on */
    }
    call->stream_id = stream_id;
    nghttp2_session_set_stream_user_data(connection->session, stream_id, call);
    sl_engine_headers_begin(call, &call->metadata);
    level_priority(connection, stream_id);
    return verdict(connection);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    sl_connection *connection = ctx;
    sl_call *call;

    connection->header_bytes = connection->header_count = 0;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return verdict(connection);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        return begin_call(connection, frame->hd.stream_id);
    call = call_of(session, frame->hd.stream_id);
    if (call != NULL && connection->role == SL_ROLE_CLIENT)
        sl_engine_headers_begin(call, call->headers_done ? &call->trailers : &call->metadata);
    return verdict(connection);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags, void *ctx)
{
    const sl_str key = { (const char *)name, name_bytes };
    const sl_str text = { (const char *)value, value_bytes };
    sl_connection *connection = ctx;
    sl_call *call = call_of(session, frame->hd.stream_id);

    (void)flags;
    if (call != NULL && sl_engine_headers_fit(call, key, text)) {
        if (connection->role == SL_ROLE_CLIENT)
            sl_engine_response_header(call, key, text, call->headers_done);
        else if (!call->headers_done) /* gRPC gives trailers of a request no meaning */
            sl_engine_request_header(call, key, text);
    }
    return verdict(connection);
}

static void headers_came(sl_connection *connection, const nghttp2_frame *frame)
{
    const bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    sl_call *call = call_of(connection->session, frame->hd.stream_id);

    connection->headers_open = false;
    if (call == NULL || call->ended)
        return;
    if (connection->role == SL_ROLE_CLIENT) {
        sl_engine_response_done(call, is_last);
        return;
    }
    if (!call->headers_done)
        sl_engine_request_done(call);
    if (is_last)
        sl_engine_half_close(call);
}

static void data_came(sl_connection *connection, const nghttp2_frame *frame)
{
    sl_call *call = call_of(connection->session, frame->hd.stream_id);
    const bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (frame->hd.length > 0 && frame->hd.length == frame->data.padlen && !is_last)
        sl_engine_count_empty(connection); /* nothing but padding */
    if (call != NULL && is_last)
        sl_engine_half_close(call);
}

static void goaway_came(sl_connection *connection)
{
    const bool first = !connection->goaway_received;

    connection->goaway_received = true;
    if (first && connection->handler.on_goaway != NULL)
        connection->handler.on_goaway(connection->ctx, connection);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    sl_connection *connection = ctx;
    const bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS: headers_came(connection, frame); break;
    case NGHTTP2_DATA: data_came(connection, frame); break;
    case NGHTTP2_SETTINGS: connection->handshake_done |= !is_ack; break;
    case NGHTTP2_GOAWAY: goaway_came(connection); break;
    case NGHTTP2_PING:
        if (is_ack && connection->shutting_down)
            sl_engine_final_goaway(connection);
        break;
    default: break;
    }
    return verdict(connection);
}

static int on_invalid_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
    sl_connection *connection = ctx;

    (void)session;
    (void)frame;
    (void)error;
    connection->headers_open = false; /* it is complete, if not right */
    return verdict(connection);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                         size_t bytes, void *ctx)
{
    const bool has_end = (flags & NGHTTP2_FLAG_END_STREAM) != 0; /* the frame, of which this may be a part */
    sl_connection *connection = ctx;
    sl_call *call = call_of(session, stream_id);

    connection->frame_bytes_left -= bytes;
    if (call != NULL)
        sl_engine_data(call, data, bytes, has_end && connection->frame_bytes_left == 0);
    else
        sl_engine_check(connection, nghttp2_session_consume(session, stream_id, bytes));
    return verdict(connection);
}

/* The peer's fault is the peer's bill: who makes us reset streams pays as if he had done it himself. */
static void reset_went(sl_connection *connection, uint32_t http2_error)
{
    if (http2_error != NGHTTP2_NO_ERROR && http2_error != NGHTTP2_CANCEL &&
        http2_error != NGHTTP2_REFUSED_STREAM && http2_error != NGHTTP2_INTERNAL_ERROR)
        sl_engine_count_reset(connection);
}

/* The status is out. A client that is still sending will read it, and stop. */
static void status_went(sl_connection *connection, int32_t stream_id)
{
    sl_call *call = call_of(connection->session, stream_id);

    if (call == NULL)
        return;
    sl_engine_call_end(call, SL_CALL_FINISHED, call->sent_status, SL_STR(""));
    if (nghttp2_session_get_stream_remote_close(connection->session, stream_id) == 0)
        sl_engine_half_open_begin(call);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    sl_connection *connection = ctx;

    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (connection->role == SL_ROLE_SERVER && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
            status_went(connection, frame->hd.stream_id);
        break;
    case NGHTTP2_RST_STREAM: reset_went(connection, frame->rst_stream.error_code); break;
    case NGHTTP2_GOAWAY: connection->protocol_error |= frame->goaway.error_code != NGHTTP2_NO_ERROR; break;
    default: break;
    }
    return verdict(connection);
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t http2_error, void *ctx)
{
    sl_connection *connection = ctx;
    sl_call *call = call_of(session, stream_id);

    if (call != NULL)
        sl_engine_stream_closed(call, http2_error);
    return verdict(connection);
}

/* As large as the peer and both windows allow; nghttp2 alone would stop at 16 KB. */
static ssize_t on_read_length(nghttp2_session *session, uint8_t type, int32_t stream_id, int32_t window_bytes,
                              int32_t stream_window_bytes, uint32_t frame_bytes_max, void *ctx)
{
    const uint64_t window = sl_min_u64((uint64_t)window_bytes, (uint64_t)stream_window_bytes);

    (void)session;
    (void)type;
    (void)stream_id;
    (void)ctx;
    assert(window_bytes > 0 && stream_window_bytes > 0); /* else nghttp2 does not ask */
    return (ssize_t)sl_min_u64(window, frame_bytes_max);
}

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, sl_engine_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, on_read_length);
    return callbacks;
}

static nghttp2_option *option_new(const sl_wire_limits *limits)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, limits->queued_frames_max);
    /* frames.c counts these itself, by the time that is passed in; nghttp2 would read a clock. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    nghttp2_option_set_max_continuations(option, (size_t)limits->continuations_max + 1);
    return option;
}

static void *mem_take(size_t bytes, void *ctx)
{
    return sl_sized_take(ctx, bytes);
}

static void mem_give(void *memory, void *ctx)
{
    sl_sized_give(ctx, memory);
}

static void *mem_take_zero(size_t count, size_t bytes, void *ctx)
{
    return sl_sized_take_zero(ctx, count, bytes);
}

static void *mem_resize(void *memory, size_t bytes, void *ctx)
{
    return sl_sized_resize(ctx, memory, bytes);
}

/* nghttp2 keeps copies of all three. */
static int session_new(sl_connection *connection, const nghttp2_session_callbacks *callbacks,
                       const nghttp2_option *option)
{
    connection->mem = (nghttp2_mem){
        .mem_user_data = &connection->sized,
        .malloc = mem_take,
        .free = mem_give,
        .calloc = mem_take_zero,
        .realloc = mem_resize,
    };
    if (callbacks == NULL || option == NULL)
        return NGHTTP2_ERR_NOMEM;
    if (connection->role == SL_ROLE_SERVER)
        return nghttp2_session_server_new3(&connection->session, callbacks, connection, option,
                                           &connection->mem);
    return nghttp2_session_client_new3(&connection->session, callbacks, connection, option, &connection->mem);
}

/* What we tell the peer first: settings, and a larger window for the connection. */
static int introduce(sl_connection *connection)
{
    const sl_wire_limits *limits = &connection->limits;
    const bool server = connection->role == SL_ROLE_SERVER;
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits->stream_window_bytes },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->header_bytes_max },
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server ? limits->calls_max : 0 },
        { server ? NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES : NGHTTP2_SETTINGS_ENABLE_PUSH, server },
    };
    const int result =
        nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, SL_COUNT_OF(settings));

    return result != 0 ? result
                       : nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                               (int32_t)limits->window_bytes);
}

sl_err sl_engine_session_new(sl_connection *connection)
{
    nghttp2_session_callbacks *callbacks = callbacks_new();
    nghttp2_option *option = option_new(&connection->limits);
    int result = session_new(connection, callbacks, option);

    if (result == 0)
        result = introduce(connection);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return result == 0 ? SL_OK : SL_ERR_NOMEM;
}

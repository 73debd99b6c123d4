/* wire/finish.c — headers and trailers that we send, and the ways in which a call is given up.
 *
 * A server that has sent nothing yet puts everything into one block (Trailers-Only); otherwise the status goes
 * behind the last message. Whoever ends a call early for the peer's sake says why with a status as long as that
 * can still be understood, that is, as long as no message is half sent; else the stream is reset. */
#include "wire/engine.h"

#include "base/cleanup.h"
#include "wire/coding.h"

#include <assert.h>

void sl_engine_rows_begin(sl_connection *connection)
{
    sl_buf_clear(&connection->nva);
}

/* The text must stay where it is until the rows are submitted; then nghttp2 has copied it. */
sl_err sl_engine_row(sl_connection *connection, sl_str key, sl_str value)
{
    const nghttp2_nv row = {
        .name = (uint8_t *)(uintptr_t)key.data, /* nghttp2 only reads them */
        .value = (uint8_t *)(uintptr_t)value.data,
        .namelen = key.bytes,
        .valuelen = value.bytes,
    };

    return sl_buf_append(&connection->nva, &row, sizeof row);
}

sl_err sl_engine_rows_add(sl_connection *connection, const sl_metadata_list *list)
{
    const size_t count = sl_metadata_list_count(list);
    sl_err err = SL_OK;

    for (size_t i = 0; i < count && err == SL_OK; i++) {
        const sl_metadata metadata = sl_metadata_list_at(list, i);
        err = sl_engine_row(connection, metadata.key, metadata.value);
    }
    return err;
}

static sl_err response_rows(sl_call *call)
{
    sl_connection *connection = call->connection;
    sl_err err;

    sl_engine_rows_begin(connection);
    err = sl_engine_row(connection, SL_STR(":status"), SL_STR("200"));
    if (err == SL_OK)
        err = sl_engine_row(connection, SL_STR("content-type"), SL_STR("application/grpc"));
    return err == SL_OK ? sl_engine_rows_add(connection, &call->sent) : err;
}

/* with_data: messages follow; otherwise this block is the whole answer. */
static int submit_response(sl_call *call, bool with_data)
{
    const nghttp2_data_provider provider = { .source.ptr = call, .read_callback = sl_engine_read };
    sl_connection *connection = call->connection;

    call->headers_sent = true;
    return nghttp2_submit_response(connection->session, call->stream_id,
                                   (const nghttp2_nv *)(const void *)sl_buf_data(&connection->nva),
                                   connection->nva.bytes / sizeof(nghttp2_nv), with_data ? &provider : NULL);
}

int sl_engine_submit_trailers(sl_call *call)
{
    sl_connection *connection = call->connection;

    sl_engine_rows_begin(connection);
    if (sl_engine_rows_add(connection, &call->sent) != SL_OK)
        return NGHTTP2_ERR_NOMEM;
    return nghttp2_submit_trailer(connection->session, call->stream_id,
                                  (const nghttp2_nv *)(const void *)sl_buf_data(&connection->nva),
                                  connection->nva.bytes / sizeof(nghttp2_nv));
}

/* Adds the application's metadata to call->sent, in the form of the wire. */
static sl_err stage(sl_call *call, const sl_metadata *metadata, size_t count)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < count && err == SL_OK; i++) {
        assert(sl_metadata_key_allowed(metadata[i].key));
        err = sl_metadata_list_add_sent(&call->sent, metadata[i]);
    }
    return err;
}

sl_err sl_call_send_headers(sl_call *call, const sl_metadata *metadata, size_t count)
{
    sl_connection *connection = call->connection;
    sl_err err;

    assert(connection->role == SL_ROLE_SERVER && !call->headers_sent);
    sl_metadata_list_clear(&call->sent);
    err = stage(call, metadata, count);
    if (err == SL_OK)
        err = response_rows(call);
    if (err == SL_OK && !sl_engine_is_over(connection))
        sl_engine_check(connection, submit_response(call, true));
    if (err != SL_OK) {
        call->headers_sent = true; /* nothing more can be said on this stream */
        sl_engine_reset(call, NGHTTP2_INTERNAL_ERROR);
    }
    return err;
}

static sl_err stage_status(sl_call *call, sl_status status, sl_str message)
{
    char number[4];
    sl_text text;
    sl_err err;

    sl_text_init(&text, number, sizeof number);
    sl_text_add_u64(&text, (uint64_t)status);
    sl_metadata_list_clear(&call->sent);
    err = sl_metadata_list_add(&call->sent, SL_STR("grpc-status"), sl_text_str(&text));
    if (err == SL_OK && message.bytes > 0)
        err = sl_metadata_list_add_sent(&call->sent, (sl_metadata){ SL_STR("grpc-message"), message });
    return err;
}

/* What is staged goes out behind the messages, or at once when there were none. */
static void send_status(sl_call *call, sl_err err)
{
    sl_connection *connection = call->connection;

    call->output_ended = true;
    if (sl_engine_is_over(connection))
        return;
    if (err == SL_OK && !call->headers_sent) {
        err = response_rows(call);
        if (err == SL_OK)
            sl_engine_check(connection, submit_response(call, false));
    }
    if (err != SL_OK)
        sl_engine_reset(call, NGHTTP2_INTERNAL_ERROR);
    else
        sl_engine_wake(call);
}

void sl_call_finish(sl_call *call, sl_status status, sl_str message, const sl_metadata *trailers,
                    size_t count)
{
    sl_err err;

    assert(call->connection->role == SL_ROLE_SERVER && !call->ended && !call->output_ended);
    call->sent_status = status;
    err = stage_status(call, status, message);
    if (err == SL_OK)
        err = stage(call, trailers, count);
    send_status(call, err);
}

void sl_call_half_close(sl_call *call)
{
    assert(call->connection->role == SL_ROLE_CLIENT && !call->output_ended);
    call->output_ended = true;
    sl_engine_wake(call);
}

void sl_engine_answer_http(sl_call *call, sl_str http_status)
{
    sl_connection *connection = call->connection;
    sl_err err;

    sl_engine_call_end(call, SL_CALL_REFUSED, SL_STATUS_UNIMPLEMENTED, SL_STR("not a gRPC request"));
    call->output_ended = true;
    sl_engine_rows_begin(connection);
    err = sl_engine_row(connection, SL_STR(":status"), http_status);
    if (err == SL_OK && sl_str_equal(http_status, SL_STR("405")))
        err = sl_engine_row(connection, SL_STR("allow"), SL_STR("POST"));
    if (err == SL_OK)
        sl_engine_check(connection, submit_response(call, false));
    else
        sl_engine_reset(call, NGHTTP2_INTERNAL_ERROR);
}

static sl_err stage_refusal(sl_call *call, sl_status status, sl_str message)
{
    sl_err err = stage_status(call, status, message);

    if (err == SL_OK && call->encoding == SL_ENCODING_UNKNOWN)
        err = sl_metadata_list_add(&call->sent, SL_STR("grpc-accept-encoding"), SL_STR("identity,gzip"));
    return err;
}

static void give_up(sl_call *call, sl_call_end_kind kind, sl_status status, sl_str message)
{
    const bool is_server = call->connection->role == SL_ROLE_SERVER;
    const bool may_answer = is_server && !call->output_ended && call->outgoing.bytes == 0;
    const sl_err err = may_answer ? stage_refusal(call, status, message) : SL_OK;

    sl_engine_call_end(call, kind, status, message);
    if (may_answer) {
        call->sent_status = status;
        send_status(call, err);
    } else {
        sl_engine_drop_outgoing(call);
        sl_engine_reset(call, NGHTTP2_CANCEL);
    }
}

void sl_engine_refuse(sl_call *call, sl_status status, sl_str message)
{
    give_up(call, SL_CALL_REFUSED, status, message);
}

void sl_engine_deadline(sl_call *call)
{
    give_up(call, SL_CALL_DEADLINE, SL_STATUS_DEADLINE_EXCEEDED,
            SL_STR("the deadline passed before the call was finished"));
}

void sl_call_cancel(sl_call *call)
{
    assert(!call->ended);
    sl_engine_call_end(call, SL_CALL_CANCELLED, SL_STATUS_CANCELLED, SL_STR("the call was cancelled"));
    sl_engine_drop_outgoing(call);
    sl_engine_reset(call, NGHTTP2_CANCEL);
    sl_engine_release(call);
}

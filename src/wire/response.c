/* wire/response.c — a client reads the headers and trailers of an answer and finds out how its call ended.
 *
 * The status stands in the last header block. When that is also the first one (Trailers-Only) its metadata are the
 * trailers. A proxy or a server that speaks no gRPC leaves only an HTTP status; it is translated. */
#include "wire/engine.h"

#include "base/cleanup.h"
#include "wire/coding.h"

static void read_http_status(sl_call *call, sl_str value)
{
    uint64_t number;

    if (sl_str_parse_u64(value, &number) == SL_OK && number < 1000)
        call->http_status = (unsigned)number;
}

static void read_status(sl_call *call, sl_str value)
{
    if (!sl_status_parse(value, &call->status))
        call->status = SL_STATUS_UNKNOWN;
    call->has_status = true;
}

static void read_message(sl_call *call, sl_str value)
{
    sl_buf_clear(&call->message);
    /* Without memory there is no sentence; the status is what counts. */
    if (sl_percent_append_decoded(&call->message, value) != SL_OK)
        sl_buf_clear(&call->message);
}

static void read_content_type(sl_call *call, sl_str value)
{
    call->is_grpc = sl_engine_is_grpc(value);
}

static void read_encoding(sl_call *call, sl_str value)
{
    call->encoding = sl_engine_encoding(value);
}

static void ignore(sl_call *call, sl_str value)
{
    (void)call;
    (void)value;
}

static const struct {
    sl_str key;
    void (*read)(sl_call *call, sl_str value);
} readers[] = {
    { SL_STR_INIT(":status"), read_http_status },    { SL_STR_INIT("grpc-status"), read_status },
    { SL_STR_INIT("grpc-message"), read_message },   { SL_STR_INIT("content-type"), read_content_type },
    { SL_STR_INIT("grpc-encoding"), read_encoding }, { SL_STR_INIT("grpc-accept-encoding"), ignore },
    { SL_STR_INIT("content-length"), ignore },
};

void sl_engine_response_header(sl_call *call, sl_str key, sl_str value, bool trailers)
{
    sl_err err;

    for (size_t i = 0; i < SL_COUNT_OF(readers); i++)
        if (sl_str_equal(key, readers[i].key)) {
            readers[i].read(call, value);
            return;
        }
    err = sl_metadata_list_add_received(trailers ? &call->trailers : &call->metadata, key, value);
    if (err != SL_OK)
        sl_engine_note_fault(call, err == SL_ERR_INVALID ? SL_FAULT_BASE64 : SL_FAULT_NOMEM);
}

static void refuse_fault(sl_call *call)
{
    if (call->fault == SL_FAULT_BASE64)
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("a header that ends in -bin is not base64"));
    else
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED,
                         SL_STR("the metadata of the answer is too large"));
}

static void refuse_http(sl_call *call)
{
    char room[64];
    sl_text text;

    sl_text_init(&text, room, sizeof room);
    sl_text_add(&text, "the answer is not gRPC: HTTP status ");
    sl_text_add_u64(&text, call->http_status);
    sl_engine_refuse(call, sl_status_from_http(call->http_status), sl_text_str(&text));
}

/* The first block, and others follow. */
static void begin(sl_call *call)
{
    sl_connection *connection = call->connection;

    if (call->http_status != 200 || !call->is_grpc)
        refuse_http(call);
    else if (call->encoding == SL_ENCODING_UNKNOWN)
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("the answer is compressed in an unknown way"));
    else if (connection->handler.on_headers != NULL)
        connection->handler.on_headers(connection->ctx, call);
}

static void swap_lists(sl_call *call)
{
    const sl_metadata_list first = call->metadata;

    call->metadata = call->trailers;
    call->trailers = first;
}

static bool is_interim(const sl_call *call)
{
    return call->http_status >= 100 && call->http_status < 200;
}

void sl_engine_response_done(sl_call *call, bool end_of_stream)
{
    const bool first = !call->headers_done;

    if (first && is_interim(call) && !end_of_stream)
        return; /* 1xx: the real one is still to come */
    call->headers_done = true;
    if (call->fault != SL_FAULT_NONE) {
        refuse_fault(call);
        return;
    }
    if (first && end_of_stream)
        swap_lists(call);
    else if (first)
        begin(call);
    if (end_of_stream && !call->ended)
        sl_engine_half_close(call);
}

/* The server has said its last word and the application has got all messages before it. */
void sl_engine_response_finished(sl_call *call)
{
    const sl_str message = { (const char *)sl_buf_data(&call->message), call->message.bytes };

    if (call->has_status)
        sl_engine_call_end(call, SL_CALL_FINISHED, call->status, message);
    else if (call->http_status != 200)
        refuse_http(call);
    else
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("the answer ended without a status"));
    if (!call->output_ended)
        sl_engine_reset(call, NGHTTP2_NO_ERROR); /* we have nothing to say to a call that is over */
}

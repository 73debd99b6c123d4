/* wire/request.c — a server reads the headers of a call, row by row, and judges them when they are complete.
 *
 * A request that is no gRPC is answered in the language of HTTP (405, 415); everything else that is wrong with
 * gRPC's own status, so that a client shows its user the sentence. */
#include "wire/engine.h"

#include "base/cleanup.h"
#include "wire/coding.h"

static void read_timeout(sl_call *call, sl_str value)
{
    if (sl_timeout_parse(value, &call->timeout_ns) != SL_OK)
        sl_engine_note_fault(call, SL_FAULT_TIMEOUT);
}

static void read_path(sl_call *call, sl_str value)
{
    if (sl_buf_append(&call->path, value.data, value.bytes) != SL_OK)
        sl_engine_note_fault(call, SL_FAULT_NOMEM);
}

/* Kept once for a connection and not for each call: a client names the same server in all of them. A name that is too long for
 * DNS with a port is none, and one for which there is no memory is not missed. */
static void read_authority(sl_call *call, sl_str value)
{
    sl_buf *const authority = &call->connection->authority;

    if (authority->bytes == 0 && value.bytes <= SL_AUTHORITY_BYTES_MAX)
        (void)sl_buf_append(authority, value.data, value.bytes);
}

static void read_metadata(sl_call *call, sl_str key, sl_str value)
{
    const sl_err err = sl_metadata_list_add_received(&call->metadata, key, value);

    if (err != SL_OK)
        sl_engine_note_fault(call, err == SL_ERR_INVALID ? SL_FAULT_BASE64 : SL_FAULT_NOMEM);
}

static void ignore(sl_call *call, sl_str value)
{
    (void)call;
    (void)value;
}

static void read_method(sl_call *call, sl_str value)
{
    call->is_post = sl_str_equal(value, SL_STR("POST"));
}

static void read_content_type(sl_call *call, sl_str value)
{
    call->is_grpc = sl_engine_is_grpc(value);
}

static void read_encoding(sl_call *call, sl_str value)
{
    call->encoding = sl_engine_encoding(value);
}

/* The rows that belong to HTTP/2 and gRPC; all others are the application's metadata. */
static const struct {
    sl_str key;
    void (*read)(sl_call *call, sl_str value);
} readers[] = {
    { SL_STR_INIT(":method"), read_method },
    { SL_STR_INIT(":path"), read_path },
    { SL_STR_INIT(":scheme"), ignore },
    { SL_STR_INIT(":authority"), read_authority },
    { SL_STR_INIT("te"), ignore },
    { SL_STR_INIT("content-type"), read_content_type },
    { SL_STR_INIT("grpc-timeout"), read_timeout },
    { SL_STR_INIT("grpc-encoding"), read_encoding },
    { SL_STR_INIT("grpc-accept-encoding"), ignore },
    { SL_STR_INIT("content-length"), ignore },
    { SL_STR_INIT("priority"), ignore },
};

void sl_engine_request_header(sl_call *call, sl_str key, sl_str value)
{
    for (size_t i = 0; i < SL_COUNT_OF(readers); i++)
        if (sl_str_equal(key, readers[i].key)) {
            readers[i].read(call, value);
            return;
        }
    read_metadata(call, key, value);
}

static void refuse_fault(sl_call *call)
{
    switch (call->fault) {
    case SL_FAULT_METHOD: sl_engine_answer_http(call, SL_STR("405")); break;
    case SL_FAULT_CONTENT_TYPE: sl_engine_answer_http(call, SL_STR("415")); break;
    case SL_FAULT_TIMEOUT:
        sl_engine_refuse(call, SL_STATUS_INVALID_ARGUMENT,
                         SL_STR("grpc-timeout must be 1 to 8 digits and one of H, M, S, m, u, n"));
        break;
    case SL_FAULT_BASE64:
        sl_engine_refuse(call, SL_STATUS_INVALID_ARGUMENT,
                         SL_STR("a header that ends in -bin holds something that is not base64"));
        break;
    case SL_FAULT_HEADERS_TOO_LARGE:
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED,
                         SL_STR("the metadata is larger than the server allows"));
        break;
    case SL_FAULT_NOMEM:
    case SL_FAULT_NONE:
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED, SL_STR("the server is out of memory"));
        break;
    }
}

static void announce(sl_call *call)
{
    sl_connection *connection = call->connection;

    call->deadline_ns = sl_add_sat_u64(connection->now_ns, call->timeout_ns);
    sl_engine_set_timer(call);
    call->known = true;
    if (connection->handler.on_call != NULL)
        connection->handler.on_call(connection->ctx, call);
}

void sl_engine_request_done(sl_call *call)
{
    call->headers_done = true;
    call->connection->counters->calls++;
    if (!call->is_post)
        call->fault = SL_FAULT_METHOD;
    else if (!call->is_grpc)
        call->fault = SL_FAULT_CONTENT_TYPE;
    if (call->fault != SL_FAULT_NONE)
        refuse_fault(call);
    else if (call->encoding == SL_ENCODING_UNKNOWN)
        sl_engine_refuse(call, SL_STATUS_UNIMPLEMENTED,
                         SL_STR("messages may be compressed with gzip or not at all (identity)"));
    else
        announce(call);
}

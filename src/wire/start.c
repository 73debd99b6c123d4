/* wire/start.c — a client begins a call. */
#include "wire/engine.h"

#include "base/cleanup.h"
#include "wire/coding.h"

#include <assert.h>

static sl_err stage(sl_call *call, const sl_call_request *request)
{
    sl_err err = sl_buf_append(&call->path, request->path.data, request->path.bytes);

    sl_metadata_list_clear(&call->sent);
    for (size_t i = 0; i < request->metadata_count && err == SL_OK; i++) {
        assert(sl_metadata_key_allowed(request->metadata[i].key));
        err = sl_metadata_list_add_sent(&call->sent, request->metadata[i]);
    }
    return err;
}

/* What a gRPC request has to say, in the usual order. */
static sl_err fixed_rows(sl_call *call)
{
    sl_connection *connection = call->connection;
    const sl_str authority = { (const char *)sl_buf_data(&connection->authority),
                               connection->authority.bytes };
    const sl_metadata rows[] = {
        { SL_STR_INIT(":method"), SL_STR_INIT("POST") },
        { SL_STR_INIT(":scheme"), connection->tls ? SL_STR("https") : SL_STR("http") },
        { SL_STR_INIT(":path"), sl_call_path(call) },
        { SL_STR_INIT(":authority"), authority },
        { SL_STR_INIT("te"), SL_STR_INIT("trailers") },
        { SL_STR_INIT("content-type"), SL_STR_INIT("application/grpc") },
        { SL_STR_INIT("user-agent"), SL_STR_INIT("grpc-c-sluice") },
        { SL_STR_INIT("grpc-accept-encoding"), SL_STR_INIT("identity,gzip") },
    };
    sl_err err = SL_OK;

    sl_engine_rows_begin(connection);
    for (size_t i = 0; i < SL_COUNT_OF(rows) && err == SL_OK; i++)
        err = sl_engine_row(connection, rows[i].key, rows[i].value);
    return err;
}

static sl_err timeout_row(sl_call *call, char *room)
{
    const uint64_t now_ns = call->connection->now_ns;

    if (call->deadline_ns == UINT64_MAX)
        return SL_OK;
    sl_timeout_format(call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 1, room);
    return sl_engine_row(call->connection, SL_STR("grpc-timeout"), sl_str_from(room));
}

static sl_err submit(sl_call *call)
{
    const nghttp2_data_provider provider = { .source.ptr = call, .read_callback = sl_engine_read };
    sl_connection *connection = call->connection;
    char timeout[SL_TIMEOUT_CHARS_MAX];
    sl_err err = fixed_rows(call);
    int32_t id;

    if (err == SL_OK)
        err = timeout_row(call, timeout);
    if (err == SL_OK)
        err = sl_engine_rows_add(connection, &call->sent);
    if (err != SL_OK)
        return SL_ERR_NOMEM;
    id = nghttp2_submit_request(connection->session, NULL,
                                (const nghttp2_nv *)(const void *)sl_buf_data(&connection->nva),
                                connection->nva.bytes / sizeof(nghttp2_nv), &provider, call);
    if (id < 0)
        return id == NGHTTP2_ERR_NOMEM ? SL_ERR_NOMEM : SL_ERR_DRAINING; /* out of stream numbers */
    call->stream_id = id;
    call->headers_sent = true;
    return SL_OK;
}

sl_err sl_call_start(sl_connection *connection, const sl_call_request *request, sl_call **ret_call)
{
    sl_call *call;
    sl_err err;

    assert(connection->role == SL_ROLE_CLIENT);
    if (sl_engine_is_over(connection) || connection->shutting_down || connection->goaway_received)
        return SL_ERR_DRAINING;
    if (connection->call_count >= connection->limits.calls_max)
        return SL_ERR_FULL;
    call = sl_engine_call_new(connection);
    if (call == NULL)
        return SL_ERR_NOMEM;
    call->deadline_ns = request->deadline_ns;
    call->user = request->user;
    err = stage(call, request);
    if (err == SL_OK)
        err = submit(call);
    if (err != SL_OK) {
        call->ended = true; /* nobody knows it */
        sl_engine_call_free(call);
        return err;
    }
    call->known = true;
    connection->counters->calls++;
    sl_engine_set_timer(call);
    *ret_call = call;
    return SL_OK;
}

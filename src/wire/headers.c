/* wire/headers.c — what a server does with the headers of a request and a client with those of an answer alike. */
#include "wire/engine.h"

enum {
    ROW_OVERHEAD_BYTES = 32, /* HTTP/2 counts so much for each row of a header list */
    PATIENCE = 4             /* so many times the limit is no mistake any more but an attack */
};

void sl_engine_headers_begin(sl_call *call, sl_metadata_list *list)
{
    sl_metadata_list_clear(list);
    call->fault = SL_FAULT_NONE;
}

void sl_engine_note_fault(sl_call *call, sl_fault fault)
{
    if (call->fault == SL_FAULT_NONE)
        call->fault = fault;
}

/* Counts the row. False when it is beyond the limit: it is not kept, and the call will be refused. */
bool sl_engine_headers_fit(sl_call *call, sl_str key, sl_str value)
{
    sl_connection *connection = call->connection;
    const sl_wire_limits *limits = &connection->limits;

    connection->header_count++;
    connection->header_bytes += key.bytes + value.bytes + ROW_OVERHEAD_BYTES;
    if (connection->header_bytes <= limits->header_bytes_max &&
        connection->header_count <= limits->header_count_max)
        return true;
    sl_engine_note_fault(call, SL_FAULT_HEADERS_TOO_LARGE);
    if (connection->header_bytes / PATIENCE > limits->header_bytes_max ||
        connection->header_count / PATIENCE > limits->header_count_max)
        sl_engine_doom(connection, SL_END_HEADERS_TOO_LARGE);
    return false;
}

sl_encoding sl_engine_encoding(sl_str value)
{
    if (sl_str_equal(value, SL_STR("identity")))
        return SL_ENCODING_IDENTITY;
    return sl_str_equal(value, SL_STR("gzip")) ? SL_ENCODING_GZIP : SL_ENCODING_UNKNOWN;
}

/* "application/grpc", with "+proto" or parameters behind it. The forms for browsers (grpc-web) are framed in
 * another way and are not spoken here. */
bool sl_engine_is_grpc(sl_str content_type)
{
    const sl_str base = SL_STR("application/grpc");
    sl_str rest;

    if (!sl_str_starts_with(content_type, base))
        return false;
    rest = (sl_str){ content_type.data + base.bytes, content_type.bytes - base.bytes };
    if (sl_str_starts_with(rest, SL_STR("+proto")))
        rest = (sl_str){ rest.data + 6, rest.bytes - 6 };
    return rest.bytes == 0 || rest.data[0] == ';' || rest.data[0] == ' ';
}

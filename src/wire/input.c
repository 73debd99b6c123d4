/* wire/input.c — input that waits in our memory: how much of it there may be, and for how long.
 *
 * A message that is cut waits in call->incoming for its rest, and so does what comes for a call that is paused. Windows and
 * limits bound that for one connection, but a peer may have thousands of them. So all connections of an owner share a budget
 * (sl_wire_budget). The first SL_INPUT_FREE_BYTES of each do not count: whoever sends small messages, which sockets cut as they
 * like, is served whatever the others do.
 *
 * The budget alone would let one client hold all of it for ever. So a message that was begun must come on: when none of its
 * bytes comes for limits.message_timeout_ns although the peer could send, its call is ended. */
#include "wire/engine.h"

#include "base/cleanup.h"

static uint64_t counted(size_t bytes)
{
    return bytes > SL_INPUT_FREE_BYTES ? bytes - SL_INPUT_FREE_BYTES : 0;
}

bool sl_engine_input_fits(const sl_call *call, size_t bytes)
{
    const sl_connection *connection = call->connection;
    const sl_wire_budget *budget = connection->input;
    const uint64_t more = counted(connection->input_bytes + bytes) - counted(connection->input_bytes);

    return budget == NULL || more == 0 || budget->bytes + more <= budget->bytes_max;
}

void sl_engine_input_changed(sl_call *call)
{
    sl_connection *connection = call->connection;
    const uint64_t before = counted(connection->input_bytes);

    connection->input_bytes += call->incoming.bytes - call->input_bytes; /* also right when it has shrunk */
    call->input_bytes = call->incoming.bytes;
    if (connection->input != NULL)
        connection->input->bytes += counted(connection->input_bytes) - before;
}

/* --- messages that do not come on --- */

void sl_engine_message_came_on(sl_call *call)
{
    const bool waited = call->message_waits;

    call->message_waits = call->ledger.partial > 0 && !call->paused;
    call->message_ns = call->connection->now_ns;
    if (call->message_waits && !waited)
        sl_engine_set_timer(call);
}

uint64_t sl_engine_message_due_ns(const sl_call *call)
{
    const uint64_t timeout_ns = call->connection->limits.message_timeout_ns;
    const bool waits = call->message_waits && !call->paused && timeout_ns > 0;

    return waits ? sl_add_sat_u64(call->message_ns, timeout_ns) : UINT64_MAX;
}

/* Is it the peer who makes the message wait? Not when other messages, which the application has not consumed, fill a window,
 * nor when we read nothing because the peer does not. */
static bool peer_could_send(const sl_call *call)
{
    sl_connection *connection = call->connection;

    return sl_connection_wants_input(connection) &&
           nghttp2_session_get_local_window_size(connection->session) > 0 &&
           nghttp2_session_get_stream_local_window_size(connection->session, call->stream_id) > 0;
}

void sl_engine_message_due(sl_call *call)
{
    if (peer_could_send(call)) {
        sl_engine_refuse(call, SL_STATUS_DEADLINE_EXCEEDED,
                         SL_STR("a message was begun and its rest did not come"));
        return;
    }
    call->message_ns = call->connection->now_ns;
    sl_engine_set_timer(call);
}

/* wire/half_open.c — a server has said its last word on a call, and the client has not.
 *
 *      status went out --> half open --the client ends or resets its side--> free
 *                              |
 *                              +--too long, blocked, too many--> reset, NO_ERROR --> free
 *
 * HTTP/2 lets a server reset such a stream at once, which would spare both the rest of the request. But who is built on Rust's h2
 * (hyper, tonic, the bridge of an official client) loses what he has not read yet when a reset comes, the status too, whatever
 * the reset says. So the client is left alone until it has read the status and ends its side by itself.
 *
 * What still comes is dropped. The window of the connection is opened again, for the sake of the other calls. That of the stream
 * is not: whoever sends on without reading is stopped by it, and the reset that frees him comes sooner then, but not at once,
 * because a fast client fills its window in less time than the status takes to reach it.
 *
 * For the application the call is over: on_end came, it is not counted, a graceful end waits for it no longer than it may last. For
 * HTTP/2 the stream is open, so it takes one of the places of calls_max until it is closed or reset. */
#include "wire/engine.h"

#include "base/cleanup.h"

#include <assert.h>

/* Half of the places at most: a client that never ends its side must still find one for its next call. */
static uint32_t calls_max_of(const sl_wire_limits *limits)
{
    return (uint32_t)sl_min_u64(limits->half_open_calls_max, limits->calls_max / 2);
}

static void give_up(sl_call *call)
{
    if (sl_heap_has(&call->timer))
        sl_heap_remove(&call->connection->timers, &call->timer);
    sl_list_remove(&call->half_open_node);
    sl_engine_reset(call, NGHTTP2_NO_ERROR);
}

/* A used-up window shortens the time that is left, once: nothing more can come that would do it again. */
static void look_at_window(sl_call *call)
{
    sl_connection *connection = call->connection;
    const uint64_t due_ns =
        sl_add_sat_u64(connection->now_ns, connection->limits.half_open_blocked_timeout_ns);

    if (sl_engine_is_over(connection) || !sl_heap_has(&call->timer))
        return;
    if (due_ns < sl_heap_key(&connection->timers, &call->timer) &&
        nghttp2_session_get_stream_local_window_size(connection->session, call->stream_id) <= 0)
        sl_heap_rekey(&connection->timers, &call->timer, due_ns);
}

void sl_engine_half_open_begin(sl_call *call)
{
    sl_connection *connection = call->connection;

    assert(call->ended && !call->is_half_open && !sl_heap_has(&call->timer));
    call->is_half_open = true;
    connection->half_open_count++;
    sl_list_push_back(&connection->half_open, &call->half_open_node);
    sl_heap_insert(&connection->timers, &call->timer,
                   sl_add_sat_u64(connection->now_ns, connection->limits.half_open_timeout_ns));
    look_at_window(call);
    /* One came, so one goes. There is a first one: this one, if all others have been given up and not closed yet. */
    if (connection->half_open_count > calls_max_of(&connection->limits))
        give_up(SL_CONTAINER_OF(sl_list_first(&connection->half_open), sl_call, half_open_node));
}

void sl_engine_half_open_data(sl_call *call, size_t bytes)
{
    call->connection->credit += bytes;
    sl_engine_give_credit(call);
    look_at_window(call);
}

void sl_engine_half_open_due(sl_call *call)
{
    give_up(call);
}

void sl_engine_half_open_end(sl_call *call)
{
    sl_list_remove(&call->half_open_node);
    if (call->is_half_open)
        call->connection->half_open_count--;
    call->is_half_open = false;
}

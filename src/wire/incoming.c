/* wire/incoming.c — DATA becomes messages.
 *
 * A message is five bytes (compressed or not, length) and its content. DATA frames cut the stream of messages
 * anywhere. A message that lies in one piece in what the socket gave us is handed over right there; only one
 * that is cut is put together in call->incoming. That buffer also keeps what comes while the application has
 * paused the call.
 *
 * The ledgers (ledger.h) of the call and of the connection see every byte twice: when it comes and when the
 * application is done with it. What they allow is gathered in `credit` and given to nghttp2 in one go. */
#include "wire/engine.h"

#include "base/cleanup.h"

#include <assert.h>

static uint32_t message_length(const uint8_t *prefix)
{
    return (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 | prefix[4];
}

/* Prefix and content of the message that begins here; 0 while the prefix is not complete. */
static uint64_t whole_bytes(const uint8_t *data, size_t bytes)
{
    return bytes < SL_PREFIX_BYTES ? 0 : SL_PREFIX_BYTES + (uint64_t)message_length(data);
}

static void hold(sl_call *call, size_t bytes)
{
    sl_ledger_hold(&call->ledger, bytes);
    sl_ledger_hold(&call->connection->ledger, bytes);
}

static void grow_partial(sl_call *call, size_t bytes)
{
    call->credit += sl_ledger_partial(&call->ledger, bytes);
    call->connection->credit += sl_ledger_partial(&call->connection->ledger, bytes);
}

static void complete(sl_call *call, size_t bytes)
{
    sl_ledger_complete(&call->ledger, bytes);
    sl_ledger_complete(&call->connection->ledger, bytes);
}

static void consume(sl_call *call, size_t bytes)
{
    call->credit += sl_ledger_consume(&call->ledger, bytes);
    call->connection->credit += sl_ledger_consume(&call->connection->ledger, bytes);
}

void sl_engine_give_credit(sl_call *call)
{
    sl_connection *connection = call->connection;
    const size_t stream_credit = call->credit, credit = connection->credit;

    call->credit = connection->credit = 0;
    if (sl_engine_is_over(connection))
        return;
    if (stream_credit > 0 && call->stream_id > 0)
        sl_engine_check(connection,
                        nghttp2_session_consume_stream(connection->session, call->stream_id, stream_credit));
    if (credit > 0)
        sl_engine_check(connection, nghttp2_session_consume_connection(connection->session, credit));
}

/* The call has ended. The window of the connection is for the others; that of the stream stays as it is, so that a peer which does
 * not stop is stopped by it. */
void sl_engine_drop_incoming(sl_call *call)
{
    assert(call->ended);
    sl_spares_collect(&call->connection->spares, &call->incoming);
    sl_engine_input_changed(call);
    complete(call, call->ledger.partial);
    consume(call, call->ledger.held);
    call->credit = 0;
    sl_engine_give_credit(call);
}

static void refuse_large(sl_call *call, uint64_t bytes)
{
    char room[128];
    sl_text text;

    sl_text_init(&text, room, sizeof room);
    sl_text_add(&text, "a message of ");
    sl_text_add_u64(&text, bytes);
    sl_text_add(&text, " bytes is larger than the limit of ");
    sl_text_add_u64(&text, call->message_bytes_max);
    sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED, sl_text_str(&text));
}

/* Judges a prefix. When it is bad the call is over. */
static bool check_prefix(sl_call *call, const uint8_t *prefix)
{
    if (prefix[0] > 1)
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("the first byte of a message must be 0 or 1"));
    else if (prefix[0] == 1 && call->encoding == SL_ENCODING_IDENTITY)
        sl_engine_refuse(call, SL_STATUS_INTERNAL,
                         SL_STR("a message is compressed, but grpc-encoding does not say how"));
    else if (message_length(prefix) > call->message_bytes_max)
        refuse_large(call, message_length(prefix));
    return !call->ended;
}

static sl_err gunzip(sl_call *call, sl_str compressed, sl_str *ret_plain)
{
    sl_connection *connection = call->connection;

    if (connection->gunzip == NULL)
        connection->gunzip = sl_gunzip_new(connection->alloc);
    if (connection->gunzip == NULL)
        return SL_ERR_NOMEM;
    return sl_gunzip_message(connection->gunzip, compressed, call->message_bytes_max, ret_plain);
}

static void refuse_compressed(sl_call *call, sl_err err)
{
    if (err == SL_ERR_INVALID)
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("a compressed message is damaged"));
    else if (err == SL_ERR_TOO_LARGE)
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED,
                         SL_STR("a compressed message is larger than the limit when it is unpacked"));
    else
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED, SL_STR("out of memory"));
}

/* Gives a whole message to the application. Its bytes are held already. */
static void deliver(sl_call *call, const uint8_t *data, size_t whole, bool is_last)
{
    sl_connection *connection = call->connection;
    sl_str content = { (const char *)data + SL_PREFIX_BYTES, whole - SL_PREFIX_BYTES };
    const sl_err err = data[0] == 0 ? SL_OK : gunzip(call, content, &content);
    const sl_message message = { .data = content.bytes == 0 ? NULL : (const uint8_t *)content.data,
                                 .bytes = content.bytes,
                                 .window_bytes = whole,
                                 .is_last = is_last };

    if (err != SL_OK) {
        refuse_compressed(call, err);
        return;
    }
    connection->counters->messages_received++;
    call->delivering = true;
    if (connection->handler.on_message != NULL)
        connection->handler.on_message(connection->ctx, call, &message);
    else
        sl_call_consume(call, whole);
    call->delivering = false;
    if (call->ended)
        sl_engine_drop_incoming(call); /* the message was in it, so it had to wait until now */
}

/* The message at the front of the buffer is whole. */
static void deliver_front(sl_call *call, size_t whole, bool is_last)
{
    const size_t partial = call->ledger.partial;

    complete(call, partial < whole ? partial : whole);
    sl_engine_message_came_on(call);
    deliver(call, sl_buf_data(&call->incoming), whole, is_last);
    if (call->ended)
        return;
    sl_buf_consume(&call->incoming, whole);
    if (call->incoming.bytes == 0)
        sl_spares_collect(&call->connection->spares, &call->incoming);
    sl_engine_input_changed(call);
}

static bool append(sl_call *call, const uint8_t *data, size_t bytes)
{
    if (!sl_engine_input_fits(call, bytes)) {
        sl_engine_refuse(
            call, SL_STATUS_RESOURCE_EXHAUSTED,
            SL_STR("the server holds as much of unfinished messages as it can; try again later"));
        return false;
    }
    sl_spares_lend(&call->connection->spares, &call->incoming);
    if (sl_buf_append(&call->incoming, data, bytes) == SL_OK) {
        sl_engine_input_changed(call);
        return true;
    }
    sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED, SL_STR("out of memory"));
    return false;
}

static void check_unfinished(sl_call *call)
{
    if (!call->ended && call->connection->ledger.partial > call->connection->limits.unfinished_bytes_max)
        sl_engine_refuse(call, SL_STATUS_RESOURCE_EXHAUSTED,
                         SL_STR("too many bytes of unfinished messages on this connection"));
}

/* Adds what the message at the front of the buffer lacks, first of its prefix and then of its content. */
static size_t assemble(sl_call *call, const uint8_t *data, size_t bytes, bool is_end)
{
    const size_t before = call->incoming.bytes;
    const uint64_t wanted = sl_max_u64(whole_bytes(sl_buf_data(&call->incoming), before), SL_PREFIX_BYTES);
    const size_t count = (size_t)sl_min_u64(wanted - before, bytes);

    if (!append(call, data, count))
        return 0;
    grow_partial(call, count);
    sl_engine_message_came_on(call);
    check_unfinished(call);
    if (call->ended || call->incoming.bytes < SL_PREFIX_BYTES)
        return count;
    if (before < SL_PREFIX_BYTES && !check_prefix(call, sl_buf_data(&call->incoming)))
        return count;
    if (whole_bytes(sl_buf_data(&call->incoming), call->incoming.bytes) == call->incoming.bytes)
        deliver_front(call, call->incoming.bytes, is_end && count == bytes);
    return count;
}

/* Takes something of the data and returns how much; 0 only when the call is over. */
static size_t take_some(sl_call *call, const uint8_t *data, size_t bytes, bool is_end)
{
    const uint64_t whole = whole_bytes(data, bytes);

    if (call->paused) {
        if (!append(call, data, bytes))
            return 0;
        hold(call, bytes);
        return bytes;
    }
    if (call->incoming.bytes > 0 || whole == 0 || whole > bytes)
        return assemble(call, data, bytes, is_end);
    if (!check_prefix(call, data))
        return 0;
    hold(call, (size_t)whole);
    deliver(call, data, (size_t)whole, is_end && whole == bytes);
    return (size_t)whole;
}

/* Nobody listens: the call is over, or the server has given its status and wants to hear no more. */
static bool is_deaf(const sl_call *call)
{
    return call->ended || (call->connection->role == SL_ROLE_SERVER && call->output_ended);
}

void sl_engine_data(sl_call *call, const uint8_t *data, size_t bytes, bool is_end)
{
    if (call->is_half_open) {
        sl_engine_half_open_data(call, bytes);
        return;
    }
    while (bytes > 0 && !is_deaf(call) && !sl_engine_is_over(call->connection)) {
        const size_t taken = take_some(call, data, bytes, is_end);
        data += taken;
        bytes -= taken;
    }
    call->credit += call->ended ? 0 : bytes; /* nobody wants the rest */
    call->connection->credit += bytes;
    sl_engine_give_credit(call);
}

/* The last message is delivered and no more will come. */
static void tell_half_close(sl_call *call)
{
    sl_connection *connection = call->connection;

    if (!call->remote_done || call->paused || is_deaf(call) || call->half_close_told)
        return;
    call->half_close_told = true;
    if (call->incoming.bytes > 0)
        sl_engine_refuse(call, SL_STATUS_INTERNAL, SL_STR("the stream ended inside a message"));
    else if (connection->role == SL_ROLE_CLIENT)
        sl_engine_response_finished(call);
    else if (connection->handler.on_half_close != NULL)
        connection->handler.on_half_close(connection->ctx, call);
}

void sl_engine_half_close(sl_call *call)
{
    call->remote_done = true;
    tell_half_close(call);
}

/* What came while the call was paused: whole messages first, then perhaps the beginning of one. */
static void deliver_kept(sl_call *call)
{
    uint64_t whole;

    while (!is_deaf(call) && !call->paused &&
           (whole = whole_bytes(sl_buf_data(&call->incoming), call->incoming.bytes)) != 0) {
        if (!check_prefix(call, sl_buf_data(&call->incoming)) || whole > call->incoming.bytes)
            break;
        deliver_front(call, (size_t)whole, call->remote_done && whole == call->incoming.bytes);
    }
    if (is_deaf(call) || call->paused)
        return;
    whole = call->incoming.bytes - call->ledger.partial;
    call->credit += sl_ledger_reopen(&call->ledger, (size_t)whole);
    call->connection->credit += sl_ledger_reopen(&call->connection->ledger, (size_t)whole);
    sl_engine_message_came_on(call);
    check_unfinished(call);
}

void sl_call_pause(sl_call *call)
{
    call->paused = true;
}

void sl_call_resume(sl_call *call)
{
    if (!call->paused)
        return;
    call->paused = false;
    if (call->delivering)
        return; /* the loop that delivers goes on by itself */
    deliver_kept(call);
    tell_half_close(call);
    sl_engine_give_credit(call);
    sl_engine_release(call);
}

void sl_call_consume(sl_call *call, size_t window_bytes)
{
    assert(window_bytes <= call->ledger.held);
    consume(call, window_bytes);
    if (!call->delivering) /* else it is given with that of the messages that follow */
        sl_engine_give_credit(call);
}

/* client/call.c — calls: from the engine's handles to those of the user, with the metadata of the address.
 *
 * After a callback of the user his sl_client_call may be gone, so nothing here touches it after one. */
#include "client/inside.h"

#include <assert.h>

/* --- from the engine --- */

/* The window opens before the message is looked at: whoever cannot take more pauses, and then the engine keeps what comes. */
static void on_message(void *ctx, sl_call *engine_call, const sl_message *message)
{
    sl_client_call *call = sl_call_user(engine_call);

    (void)ctx;
    sl_call_consume(engine_call, message->window_bytes);
    if (call->handler->on_message != NULL)
        call->handler->on_message(call->ctx, (sl_str){ (const char *)message->data, message->bytes });
}

static void on_room(void *ctx, sl_call *engine_call)
{
    sl_client_call *call = sl_call_user(engine_call);

    (void)ctx;
    if (call->handler->on_room != NULL)
        call->handler->on_room(call->ctx);
}

static void on_end(void *ctx, sl_call *engine_call, const sl_call_end_info *info)
{
    sl_client *client = ctx;
    sl_client_call *call = sl_call_user(engine_call);
    const bool is_lost = info->kind == SL_CALL_CONNECTION_LOST;
    const sl_client_result result = { .kind = info->kind,
                                      .status = info->status,
                                      .message =
                                          is_lost ? sl_str_from(sl_client_problem(client)) : info->message,
                                      .trailers = sl_call_trailers(engine_call),
                                      .unprocessed = info->unprocessed || !client->is_open };

    call->call = NULL;
    call->handler->on_end(call->ctx, &result);
}

static void on_goaway(void *ctx, sl_connection *connection)
{
    sl_client *client = ctx;

    (void)connection;
    if (client->handler.on_goaway != NULL)
        client->handler.on_goaway(client->ctx);
}

const sl_connection_handler sl_client_engine_handler = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end, .on_goaway = on_goaway
};

/* --- from the user --- */

static size_t add_own_metadata(const sl_client *client, sl_metadata *rows)
{
    const sl_str authorization = { (const char *)sl_buf_data(&client->authorization),
                                   client->authorization.bytes };
    size_t count = 0;

    if (authorization.bytes > 0)
        rows[count++] = (sl_metadata){ SL_STR("authorization"), authorization };
    if (client->address.connection_name[0] != '\0')
        rows[count++] =
            (sl_metadata){ SL_STR("connection-name"), sl_str_from(client->address.connection_name) };
    return count;
}

static uint64_t deadline_ns(const sl_client *client, uint64_t timeout_ns)
{
    const uint64_t now_ns = sl_loop_now_ns(client->loop);

    return timeout_ns == 0 || timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
}

sl_err sl_client_call_start(sl_client *client, sl_client_call *call, const sl_client_request *request)
{
    sl_metadata rows[SL_CLIENT_METADATA_MAX + 2];
    sl_call_request engine_request = { .path = request->path, .metadata = rows, .user = call };
    sl_err err;

    assert(request->metadata_count <= SL_CLIENT_METADATA_MAX);
    assert(request->handler->on_end != NULL);
    if (client->connection == NULL)
        return SL_ERR_DRAINING;
    engine_request.metadata_count = add_own_metadata(client, rows);
    for (size_t i = 0; i < request->metadata_count; i++)
        rows[engine_request.metadata_count++] = request->metadata[i];
    engine_request.deadline_ns = deadline_ns(client, request->timeout_ns);
    *call = (sl_client_call){ .client = client, .handler = request->handler, .ctx = request->ctx };
    err = sl_call_start(client->connection, &engine_request, &call->call);
    if (err != SL_OK)
        return err;
    if (request->message_bytes_max != 0)
        sl_call_set_message_bytes_max(call->call, request->message_bytes_max);
    sl_client_touch(client);
    return SL_OK;
}

size_t sl_client_call_room(sl_client_call *call)
{
    return sl_call_room(call->call);
}

sl_err sl_client_call_send(sl_client_call *call, const sl_str *pieces, size_t piece_count)
{
    const sl_err err = sl_call_send(call->call, pieces, piece_count);

    sl_client_touch(call->client);
    return err;
}

sl_err sl_client_call_reserve(sl_client_call *call, size_t bytes, uint8_t **ret_data)
{
    return sl_call_reserve(call->call, bytes, ret_data);
}

void sl_client_call_commit(sl_client_call *call, size_t bytes)
{
    sl_call_commit(call->call, bytes);
    sl_client_touch(call->client);
}

void sl_client_call_half_close(sl_client_call *call)
{
    sl_call_half_close(call->call);
    sl_client_touch(call->client);
}

void sl_client_call_pause(sl_client_call *call)
{
    sl_call_pause(call->call);
}

/* What was kept is delivered before this returns, and the call may end with it. */
void sl_client_call_resume(sl_client_call *call)
{
    sl_client *const client = call->client;

    sl_call_resume(call->call);
    sl_client_touch(client);
}

void sl_client_call_cancel(sl_client_call *call)
{
    sl_client *const client = call->client;

    sl_call_cancel(call->call);
    sl_client_touch(client);
}

/* tests/unit/client/rig.c — see rig.h. */
#include "client/rig.h"

#include <stdio.h>
#include <string.h>

#define GUARD_NS  UINT64_C(30000000000)
#define SECOND_NS UINT64_C(1000000000)

/* --- the server: services --- */

static client_rig *rig_of(void *ctx)
{
    return ((client_rig_peer *)ctx)->rig;
}

static bool is_path(const sl_call *call, const char *path)
{
    return sl_str_equal(sl_call_path(call), sl_str_from(path));
}

static sl_str value_of(const sl_call *call, const char *key)
{
    sl_str value = { 0 };

    (void)sl_metadata_list_find(sl_call_metadata(call), sl_str_from(key), &value);
    return value;
}

static void answer_who(sl_call *call)
{
    const sl_str pieces[] = { value_of(call, "authorization"), SL_STR("|"), value_of(call, "connection-name"),
                              SL_STR("|"), value_of(call, "extra") };

    EXPECT_OK(sl_call_send(call, pieces, 5));
    sl_call_finish(call, SL_STATUS_OK, (sl_str){ 0 }, NULL, 0);
}

static void refuse(sl_call *call)
{
    const sl_metadata trailer = { SL_STR("exception"), SL_STR("access-denied") };

    sl_call_finish(call, SL_STATUS_PERMISSION_DENIED, SL_STR("Access Denied"), &trailer, 1);
}

static void flood(client_rig *r, sl_call *call)
{
    uint8_t *message;

    while (sl_call_room(call) > 0 && sl_call_reserve(call, CLIENT_RIG_FLOOD_BYTES, &message) == SL_OK) {
        memset(message, 0, CLIENT_RIG_FLOOD_BYTES);
        memcpy(message, &r->flood_sent, sizeof r->flood_sent);
        sl_call_commit(call, CLIENT_RIG_FLOOD_BYTES);
        r->flood_sent++;
    }
}

static void on_call(void *ctx, sl_call *call)
{
    client_rig *r = rig_of(ctx);

    r->server_calls++;
    if (is_path(call, "/t/Who"))
        answer_who(call);
    if (is_path(call, "/t/Refuse"))
        refuse(call);
    if (is_path(call, "/t/Flood"))
        flood(r, call);
}

static void on_server_message(void *ctx, sl_call *call, const sl_message *message)
{
    const sl_str text = { (const char *)message->data, message->bytes };

    const bool echoes = is_path(call, "/t/Echo");

    if (!echoes)
        rig_of(ctx)->swallowed_bytes += message->bytes;
    if (!echoes && !is_path(call, "/t/Tally"))
        return;
    sl_call_consume(call, message->window_bytes);
    EXPECT_OK(sl_call_send(call, echoes ? &text : &SL_STR("."), 1));
}

static void on_half_close(void *ctx, sl_call *call)
{
    (void)ctx;
    if (is_path(call, "/t/Echo") || is_path(call, "/t/Tally"))
        sl_call_finish(call, SL_STATUS_OK, (sl_str){ 0 }, NULL, 0);
}

static void on_server_room(void *ctx, sl_call *call)
{
    if (is_path(call, "/t/Flood"))
        flood(rig_of(ctx), call);
}

static void on_server_end(void *ctx, sl_call *call, const sl_call_end_info *info)
{
    (void)call;
    (void)info;
    rig_of(ctx)->server_ends++;
}

static const sl_connection_handler server_handler = { .on_call = on_call,
                                                      .on_message = on_server_message,
                                                      .on_half_close = on_half_close,
                                                      .on_room = on_server_room,
                                                      .on_end = on_server_end };

/* --- the server: sockets --- */

static void on_peer_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    client_rig_peer *peer = ctx;

    sl_connection_receive(peer->connection, sl_loop_now_ns(peer->rig->loop), data, bytes);
    sl_socket_wake(peer->socket);
}

static size_t peer_fill(void *ctx, uint8_t *into, size_t capacity)
{
    client_rig_peer *peer = ctx;

    return sl_connection_output(peer->connection, sl_loop_now_ns(peer->rig->loop), into, capacity);
}

static void on_peer_end(void *ctx, sl_net_end end, const char *problem)
{
    client_rig_peer *peer = ctx;

    (void)end;
    (void)problem;
    peer->socket = NULL;
    sl_connection_free(peer->connection);
    peer->connection = NULL;
}

static const sl_socket_handler peer_handler = { .on_receive = on_peer_receive,
                                                .fill = peer_fill,
                                                .on_end = on_peer_end };

static void on_accept(void *ctx, sl_socket *socket)
{
    client_rig *r = ctx;
    client_rig_peer *peer = &r->peers[r->peer_count++];
    const sl_connection_options options = { .role = SL_ROLE_SERVER, .handler = &server_handler, .ctx = peer };

    EXPECT(r->peer_count < CLIENT_RIG_PEERS_MAX);
    *peer = (client_rig_peer){ .socket = socket, .rig = r };
    EXPECT_OK(sl_connection_new(&options, sl_loop_now_ns(r->loop), &peer->connection));
    sl_socket_set_handler(socket, &peer_handler, peer);
}

void client_rig_server_goaway(client_rig *r, uint32_t peer_index)
{
    sl_connection_shutdown(r->peers[peer_index].connection);
    sl_socket_wake(r->peers[peer_index].socket);
}

void client_rig_server_cut(client_rig *r, uint32_t peer_index)
{
    client_rig_peer *peer = &r->peers[peer_index];

    sl_socket_reset(peer->socket);
    on_peer_end(peer, SL_NET_END_CLOSED, "");
}

/* --- the client --- */

static void on_open(void *ctx)
{
    ((client_rig *)ctx)->opens++;
}

static void on_goaway(void *ctx)
{
    ((client_rig *)ctx)->goaways++;
}

static void on_client_end(void *ctx, const sl_client_end *end)
{
    client_rig *r = ctx;

    r->ends++;
    r->end = *end;
    snprintf(r->problem, sizeof r->problem, "%s", end->problem);
}

static const sl_client_handler client_handler = { on_open, on_goaway, on_client_end };

sl_err client_rig_make(client_rig *r, const char *text, const sl_alloc *alloc, char *problem,
                       size_t problem_bytes)
{
    sl_client_address address;
    sl_text into;
    const sl_client_options options = { .alloc = alloc,
                                        .address = &address,
                                        .connect_timeout_ns = 5 * SECOND_NS,
                                        .handler = &client_handler,
                                        .ctx = r };

    sl_text_init(&into, problem, problem_bytes);
    EXPECT_OK(sl_client_address_parse(sl_str_from(text), &into, &address));
    return sl_client_new(r->loop, &options, &into, &r->client);
}

void client_rig_connect(client_rig *r, const char *address)
{
    char problem[512];

    EXPECT_OK(client_rig_make(r, address == NULL ? client_rig_address(r, "") : address, NULL, problem,
                              sizeof problem));
    EXPECT_OK(sl_client_connect(r->client));
}

const char *client_rig_address(client_rig *r, const char *more)
{
    static char text[512];

    snprintf(text, sizeof text, "sluice://127.0.0.1:%u%s", sl_listener_port(r->listener), more);
    return text;
}

static void copy(char *into, size_t capacity, sl_str text)
{
    sl_text builder;

    sl_text_init(&builder, into, capacity);
    sl_text_add_str(&builder, text);
}

static void check_flood(client_rig_call *c, sl_str message)
{
    uint64_t number;

    if (message.bytes != CLIENT_RIG_FLOOD_BYTES)
        return;
    memcpy(&number, message.data, sizeof number);
    c->order_broken |= number != c->messages;
}

static void on_message(void *ctx, sl_str message)
{
    client_rig_call *c = ctx;

    check_flood(c, message);
    c->messages++;
    copy(c->last, sizeof c->last, message);
    if (c->pause_at_first && c->messages == 1)
        sl_client_call_pause(&c->call);
    if (c->cancel_at_first && c->messages == 1)
        sl_client_call_cancel(&c->call);
}

static void on_room(void *ctx)
{
    ((client_rig_call *)ctx)->rooms++;
}

static void on_end(void *ctx, const sl_client_result *result)
{
    client_rig_call *c = ctx;
    sl_str exception = { 0 };

    c->ends++;
    c->kind = result->kind;
    c->status = result->status;
    c->unprocessed = result->unprocessed;
    copy(c->message, sizeof c->message, result->message);
    (void)sl_metadata_list_find(result->trailers, SL_STR("exception"), &exception);
    copy(c->exception, sizeof c->exception, exception);
    if (c->cancel_at_end != NULL && c->cancel_at_end->call.call != NULL)
        sl_client_call_cancel(&c->cancel_at_end->call);
}

static const sl_client_call_handler call_handler = { on_message, on_room, on_end };

sl_err client_rig_begin(client_rig *r, client_rig_call *call, const char *path, uint64_t timeout_ns)
{
    const sl_metadata extra = { SL_STR("extra"), SL_STR("e") };
    const sl_client_request request = { .path = sl_str_from(path),
                                        .metadata = &extra,
                                        .metadata_count = 1,
                                        .timeout_ns = timeout_ns,
                                        .handler = &call_handler,
                                        .ctx = call };

    call->rig = r;
    return sl_client_call_start(r->client, &call->call, &request);
}

void client_rig_start(client_rig *r, client_rig_call *call, const char *path, uint64_t timeout_ns)
{
    EXPECT_OK(client_rig_begin(r, call, path, timeout_ns));
}

void client_rig_send(client_rig_call *call, const char *text)
{
    const sl_str piece = sl_str_from(text);

    EXPECT_OK(sl_client_call_send(&call->call, &piece, 1));
}

/* --- both --- */

static void on_guard(void *ctx)
{
    ((client_rig *)ctx)->guard_rang = true;
}

void client_rig_init(client_rig *r, sl_tls *server_tls)
{
    const sl_listen_options options = {
        .host = SL_STR("127.0.0.1"), .tls = server_tls, .on_accept = on_accept, .ctx = r
    };

    memset(r, 0, sizeof *r);
    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &r->loop));
    sl_timer_init(&r->guard, r->loop, on_guard, r);
    sl_timer_set(&r->guard, sl_loop_now_ns(r->loop) + GUARD_NS);
    EXPECT_OK(sl_listener_new(r->loop, &options, NULL, &r->listener));
}

void client_rig_done(client_rig *r)
{
    sl_client_free(r->client);
    for (uint32_t i = 0; i < r->peer_count; i++) {
        if (r->peers[i].socket != NULL)
            client_rig_server_cut(r, i);
    }
    sl_listener_free(r->listener);
    sl_timer_stop(&r->guard);
    sl_loop_free(r->loop);
}

void client_rig_turn(client_rig *r)
{
    sl_loop_turn(r->loop, true);
}

/* client/client.c — the life of a connection: engine and socket, and the sentence about its end.
 *
 * The engine is made together with the socket, before there is a connection: what calls want to send waits in it, deadlines
 * run, and when the socket opens it is asked for bytes. Whoever ends first, the other one is ended as well:
 *
 *      socket ended   --> on_end of the socket --> engine ended (calls hear of it) --> on_end of the client
 *      engine is done --> noticed in look()    --> socket closed                   --> on_end of the client
 *
 * look() runs after each function of the engine, and only when that has returned: an engine must not be freed inside of
 * itself. */
#include "client/inside.h"

#include "base/cleanup.h"
#include "wire/coding.h"

#include <assert.h>

#define SECOND_NS UINT64_C(1000000000)

/* --- why it ended --- */

/* What a user can do about it is said by the command: here is only what happened. */
static const char *net_reason(sl_net_end end, const char *told)
{
    if (end == SL_NET_END_REFUSED)
        return "connection refused";
    if (end == SL_NET_END_CONNECT_TIMEOUT || end == SL_NET_END_UNREACHABLE || end == SL_NET_END_NAME_UNKNOWN)
        return sl_net_end_text(end); /* without the host, which stands before it already */
    return told;
}

static void write_problem(sl_client *client, const char *reason)
{
    sl_text text;

    sl_text_init(&text, client->problem, sizeof client->problem);
    sl_text_add(&text, client->is_open ? "lost the connection to " : "cannot reach ");
    sl_text_add(&text, client->authority);
    sl_text_add(&text, ": ");
    sl_text_add(&text, reason);
}

const char *sl_client_problem(sl_client *client)
{
    if (client->problem[0] == '\0')
        write_problem(client, sl_end_text(sl_connection_end_reason(client->connection)));
    return client->problem;
}

/* --- the end --- */

/* The socket is gone or closed; calls that are left end here. */
static void finish(sl_client *client)
{
    sl_connection *const connection = client->connection;

    client->end.was_open = client->is_open;
    client->end.problem = sl_client_problem(client);
    sl_connection_end(connection);
    client->end.wire = sl_connection_end_reason(connection);
    client->connection = NULL;
    client->is_open = false;
    sl_timer_stop(&client->timer);
    sl_connection_free(connection);
    if (client->handler.on_end != NULL)
        client->handler.on_end(client->ctx, &client->end);
}

static void look(sl_client *client)
{
    if (!sl_connection_finished(client->connection)) {
        sl_client_touch(client);
        return;
    }
    sl_socket_close(client->socket);
    client->socket = NULL;
    finish(client);
}

void sl_client_touch(sl_client *client)
{
    const bool is_done = sl_connection_finished(client->connection);

    if (client->socket != NULL && sl_connection_has_output(client->connection))
        sl_socket_wake(client->socket);
    sl_timer_set(&client->timer,
                 is_done ? sl_loop_now_ns(client->loop) : sl_connection_due_ns(client->connection));
}

static void on_timer(void *ctx)
{
    sl_client *client = ctx;

    sl_connection_tick(client->connection, sl_loop_now_ns(client->loop));
    look(client);
}

/* --- the socket --- */

static void on_open(void *ctx)
{
    sl_client *client = ctx;

    client->is_open = true;
    sl_client_touch(client);
    if (client->handler.on_open != NULL)
        client->handler.on_open(client->ctx);
}

static void on_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    sl_client *client = ctx;

    client->end.has_answered = true;
    sl_connection_receive(client->connection, sl_loop_now_ns(client->loop), data, bytes);
    look(client);
}

static size_t fill(void *ctx, uint8_t *into, size_t capacity)
{
    sl_client *client = ctx;
    const size_t bytes =
        sl_connection_output(client->connection, sl_loop_now_ns(client->loop), into, capacity);

    if (bytes == 0)
        look(client);
    return bytes;
}

static void on_socket_end(void *ctx, sl_net_end end, const char *problem)
{
    sl_client *client = ctx;

    client->socket = NULL;
    client->end.net = end;
    if (client->problem[0] == '\0')
        write_problem(client, net_reason(end, problem));
    finish(client);
}

static const sl_socket_handler socket_handler = {
    .on_open = on_open, .on_receive = on_receive, .fill = fill, .on_end = on_socket_end
};

/* --- connecting --- */

static sl_err make_engine(sl_client *client)
{
    const sl_connection_options options = { .role = SL_ROLE_CLIENT,
                                            .alloc = client->alloc,
                                            .limits = &client->limits,
                                            .handler = &sl_client_engine_handler,
                                            .ctx = client,
                                            .authority = sl_str_from(client->authority),
                                            .tls = client->tls != NULL };

    return sl_connection_new(&options, sl_loop_now_ns(client->loop), &client->connection);
}

static sl_err make_socket(sl_client *client)
{
    const sl_connect_options options = { .host = sl_str_from(client->address.host),
                                         .port = client->address.port,
                                         .timeout_ns = client->connect_timeout_ns,
                                         .tls = client->tls,
                                         .handler = &socket_handler,
                                         .ctx = client };

    return sl_socket_connect(client->loop, &options, &client->socket);
}

sl_err sl_client_connect(sl_client *client)
{
    sl_err err;

    assert(sl_client_is_idle(client));
    client->problem[0] = '\0';
    client->end = (sl_client_end){ .net = SL_NET_END_NONE };
    err = make_engine(client);
    if (err != SL_OK)
        return err;
    err = make_socket(client);
    if (err != SL_OK) {
        sl_connection_free(client->connection);
        client->connection = NULL;
        return err;
    }
    sl_client_touch(client);
    return SL_OK;
}

void sl_client_shutdown(sl_client *client)
{
    if (client->connection == NULL)
        return;
    sl_connection_shutdown(client->connection);
    sl_client_touch(client);
}

/* --- making --- */

/* RFC 7617. Servers in .NET want the padding that gRPC leaves away. */
static sl_err make_authorization(sl_client *client)
{
    SL_CLEANUP(sl_buf_done) sl_buf plain = { 0 };
    const sl_str user = sl_str_from(client->address.user), password = sl_str_from(client->address.password);
    sl_err err;

    if (user.bytes == 0)
        return SL_OK;
    sl_buf_init(&plain, client->alloc, user.bytes + 1 + password.bytes);
    err = sl_buf_reserve(&plain, user.bytes + 1 + password.bytes);
    if (err != SL_OK)
        return err;
    (void)sl_buf_append(&plain, user.data, user.bytes);
    (void)sl_buf_append_u8(&plain, ':');
    (void)sl_buf_append(&plain, password.data, password.bytes);
    err = sl_buf_append(&client->authorization, "Basic ", 6);
    if (err == SL_OK)
        err = sl_base64_append(&client->authorization, (sl_str){ (char *)sl_buf_data(&plain), plain.bytes });
    for (size_t i = plain.bytes; i % 3 != 0 && err == SL_OK; i++)
        err = sl_buf_append_u8(&client->authorization, '=');
    explicit_bzero(sl_buf_data(&plain), plain.bytes);
    return err;
}

static sl_err make_tls(sl_client *client, sl_text *problem)
{
    const sl_client_address *address = &client->address;
    const sl_tls_client_options options = { .ca_file = address->ca_file[0] == '\0' ? NULL : address->ca_file,
                                            .unverified = address->unverified };

    return address->tls ? sl_tls_client_new(client->alloc, &options, problem, &client->tls) : SL_OK;
}

static void set_limits(sl_client *client, const sl_client_options *options)
{
    client->limits = options->limits == NULL ? sl_wire_limits_default : *options->limits;
    if (options->limits == NULL)
        client->limits.idle_timeout_ns = 0;
    client->connect_timeout_ns = options->connect_timeout_ns;
    /* The engine is there before the connection; its time for the first words of the server begins after that. */
    if (options->connect_timeout_ns == 0)
        client->limits.handshake_timeout_ns = 0;
    else if (client->limits.handshake_timeout_ns != 0)
        client->limits.handshake_timeout_ns =
            sl_add_sat_u64(client->limits.handshake_timeout_ns, options->connect_timeout_ns);
}

static void set_up(sl_client *client, sl_loop *loop, const sl_client_options *options)
{
    sl_text authority;

    memset(client, 0, sizeof *client);
    client->alloc = options->alloc == NULL ? &sl_alloc_default : options->alloc;
    client->loop = loop;
    client->address = *options->address;
    client->handler = options->handler == NULL ? (sl_client_handler){ 0 } : *options->handler;
    client->ctx = options->ctx;
    set_limits(client, options);
    sl_buf_init(&client->authorization, client->alloc,
                2 * (SL_CLIENT_USER_BYTES_MAX + SL_CLIENT_PASSWORD_BYTES_MAX));
    sl_timer_init(&client->timer, loop, on_timer, client);
    sl_text_init(&authority, client->authority, sizeof client->authority);
    sl_client_address_show(&client->address, &authority);
}

sl_err sl_client_new(sl_loop *loop, const sl_client_options *options, sl_text *problem,
                     sl_client **ret_client)
{
    const sl_alloc *const alloc = options->alloc == NULL ? &sl_alloc_default : options->alloc;
    sl_client *client = sl_alloc_take(alloc, sizeof *client);
    sl_err err;

    if (client == NULL)
        return SL_ERR_NOMEM;
    set_up(client, loop, options);
    err = make_authorization(client);
    if (err == SL_OK)
        err = make_tls(client, problem);
    if (err != SL_OK) {
        sl_client_free(client);
        return err;
    }
    *ret_client = client;
    return SL_OK;
}

void sl_client_free(sl_client *client)
{
    if (client == NULL)
        return;
    client->handler = (sl_client_handler){ 0 };
    if (client->connection != NULL) {
        write_problem(client, sl_end_text(SL_END_CLOSED));
        sl_socket_close(client->socket);
        client->socket = NULL;
        finish(client);
    }
    sl_tls_free(client->tls);
    if (client->authorization.memory != NULL)
        explicit_bzero(client->authorization.memory, client->authorization.capacity);
    sl_buf_done(&client->authorization);
    explicit_bzero(&client->address, sizeof client->address);
    sl_alloc_give(client->alloc, client, sizeof *client);
}

/* --- questions --- */

bool sl_client_is_idle(const sl_client *client)
{
    return client->connection == NULL;
}

bool sl_client_is_open(const sl_client *client)
{
    return client->is_open;
}

bool sl_client_has_answered(const sl_client *client)
{
    return client->connection != NULL && client->end.has_answered;
}

sl_loop *sl_client_loop(const sl_client *client)
{
    return client->loop;
}

const sl_client_address *sl_client_get_address(const sl_client *client)
{
    return &client->address;
}

/* tests/unit/server/rig.c — see rig.h. */
#include "rig.h"

#include "server/door.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 64 * 1024,
    TURNS_MAX = 200 * 1000,
    WAIT_MS_MAX = 60 * 1000, /* only a test that fails waits so long */
};

static void *grown(void *memory, size_t bytes)
{
    void *const result = realloc(memory, bytes);

    assert_non_null(result);
    return result;
}

/* --- start and end --- */

static void log_sink(void *ctx, const char *line, size_t line_bytes)
{
    server_rig *const rig = ctx;

    rig->log_lines = grown(rig->log_lines, rig->log_bytes + line_bytes + 1);
    memcpy(rig->log_lines + rig->log_bytes, line, line_bytes + 1);
    rig->log_bytes += line_bytes;
}

static void wake(void *ctx)
{
    const server_rig *const rig = ctx;
    const uint64_t one = 1;

    if (write(rig->wake_fd, &one, sizeof one) < 0)
        abort(); /* not in the thread of the test, so nothing can be expected here */
}

static void make_store(server_rig *rig)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };

    rig->store_is_own = rig->store == NULL;
    if (rig->store_is_own)
        EXPECT_OK(sl_store_open_memory(&setup, &rig->store));
}

void server_rig_init(server_rig *rig)
{
    *rig = (server_rig){ .settings = sl_server_settings_default,
                         .alloc = &sl_alloc_default,
                         .authority = "localhost:2113",
                         .time = { 1000000000, 1700000000000000000 } };
    rig->log_lines = grown(NULL, 1);
    rig->log_lines[0] = 0;
    rig->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    EXPECT(rig->wake_fd >= 0);
    sl_list_init(&rig->connections);
    sl_list_init(&rig->calls);
}

void server_rig_open(server_rig *rig)
{
    make_store(rig);
    rig->clock = sl_clock_manual_clock(&rig->time);
    rig->log = (sl_logger){ SL_LOG_DEBUG, SL_LOG_FORMAT_TEXT, &rig->clock, log_sink, rig };
    EXPECT_OK(sl_host_new(&(sl_host_setup){ .alloc = rig->alloc,
                                            .clock = &rig->clock,
                                            .log = &rig->log,
                                            .settings = &rig->settings,
                                            .store = rig->store,
                                            .seed = { 1, 2 },
                                            .instance = { { 1 } },
                                            .wake = wake,
                                            .wake_ctx = rig },
                          &rig->host));
    rig->host->spare_requests_max = 0; /* so that the address sanitizer sees who uses a request too long */
}

void server_rig_start(server_rig *rig)
{
    server_rig_open(rig);
    server_rig_run(rig);
    while (!sl_host_ready(rig->host)) {
        server_rig_wait(rig);
        server_rig_run(rig);
    }
}

static void peer_close(server_peer *peer)
{
    sl_connection *const client = peer->client;
    sl_link *const link = peer->link;

    peer->client = NULL;
    peer->link = NULL;
    sl_connection_free(client);
    sl_link_free(link);
}

static void call_free(server_call *call)
{
    for (size_t i = 0; i < call->message_count; i++)
        free((void *)(uintptr_t)call->messages[i].data);
    free(call->messages);
    free(call);
}

void server_rig_done(server_rig *rig)
{
    SL_LIST_EACH_SAFE (node, &rig->connections) {
        server_peer *const peer = SL_CONTAINER_OF(node, server_peer, node);

        peer_close(peer);
        free(peer);
    }
    SL_LIST_EACH_SAFE (node, &rig->calls)
        call_free(SL_CONTAINER_OF(node, server_call, node));
    sl_host_free(rig->host);
    if (rig->store_is_own)
        sl_store_close(rig->store);
    free(rig->log_lines);
    close(rig->wake_fd);
}

/* --- what clients see --- */

/* Bytes of "-bin" values as hexadecimal digits: a text would end at the first zero among them. */
static void add_hex(server_call *call, sl_str value)
{
    size_t used = strlen(call->trailers);

    EXPECT(used + 2 * value.bytes + 2 < sizeof call->trailers);
    for (size_t i = 0; i < value.bytes; i++, used += 2)
        snprintf(call->trailers + used, 3, "%02x", (uint8_t)value.data[i]);
    strcpy(call->trailers + used, "\n");
}

static bool is_binary(sl_str key)
{
    return key.bytes > 4 && memcmp(key.data + key.bytes - 4, "-bin", 4) == 0;
}

static void add_rows(server_call *call, const sl_metadata_list *list)
{
    for (size_t i = 0; i < sl_metadata_list_count(list); i++) {
        const sl_metadata row = sl_metadata_list_at(list, i);
        const size_t used = strlen(call->trailers), room = sizeof call->trailers - used;
        const bool binary = is_binary(row.key);
        const int added =
            snprintf(call->trailers + used, room, "%.*s=%.*s%s", (int)row.key.bytes, row.key.data,
                     binary ? 0 : (int)row.value.bytes, row.value.data, binary ? "" : "\n");

        EXPECT(added > 0 && (size_t)added < room);
        if (binary)
            add_hex(call, row.value);
    }
}

static void on_headers(void *ctx, sl_call *wire_call)
{
    server_call *const call = sl_call_user(wire_call);

    (void)ctx;
    call->headers++;
    add_rows(call, sl_call_metadata(wire_call));
}

static void keep_message(server_call *call, const sl_message *message)
{
    char *const copy = grown(NULL, message->bytes + 1);

    if (message->bytes > 0)
        memcpy(copy, message->data, message->bytes);
    copy[message->bytes] = 0;
    if (call->message_count == call->message_capacity) {
        call->message_capacity = call->message_capacity == 0 ? 4 : 2 * call->message_capacity;
        call->messages = grown(call->messages, call->message_capacity * sizeof *call->messages);
    }
    call->messages[call->message_count++] = (sl_str){ copy, message->bytes };
}

static void on_message(void *ctx, sl_call *wire_call, const sl_message *message)
{
    server_call *const call = sl_call_user(wire_call);

    (void)ctx;
    keep_message(call, message);
    if (call->slow)
        call->unconsumed_bytes += message->window_bytes;
    else
        sl_call_consume(wire_call, message->window_bytes);
}

static void on_end(void *ctx, sl_call *wire_call, const sl_call_end_info *info)
{
    server_call *const call = sl_call_user(wire_call);
    sl_text text;

    (void)ctx;
    call->call = NULL;
    call->ended = true;
    call->kind = info->kind;
    call->status = info->status;
    call->unprocessed = info->unprocessed;
    sl_text_init(&text, call->message, sizeof call->message);
    sl_text_add_str(&text, info->message);
    add_rows(call, sl_call_trailers(wire_call));
}

static void on_goaway(void *ctx, sl_connection *connection)
{
    (void)connection;
    ((server_peer *)ctx)->goaways++;
}

static const sl_connection_handler client_handler = {
    .on_headers = on_headers, .on_message = on_message, .on_end = on_end, .on_goaway = on_goaway
};

/* --- connections --- */

static void touch(void *ctx)
{
    ((server_peer *)ctx)->touched = true;
}

server_peer *server_rig_connect(server_rig *rig, const char *peer_address)
{
    server_peer *const peer = grown(NULL, sizeof *peer);
    const sl_link_owner owner = { .touch = touch, .ctx = peer, .peer = sl_str_from(peer_address) };
    const sl_connection_options options = { .role = SL_ROLE_CLIENT,
                                            .handler = &client_handler,
                                            .ctx = peer,
                                            .authority = sl_str_from(rig->authority) };

    *peer = (server_peer){ .rig = rig };
    EXPECT_OK(sl_link_new(rig->host, &owner, &peer->link));
    EXPECT_OK(sl_connection_new(&options, rig->time.mono_ns, &peer->client));
    sl_list_push_back(&rig->connections, &peer->node);
    return peer;
}

void server_rig_break(server_peer *peer)
{
    peer_close(peer);
    if (peer->rig->first == peer)
        peer->rig->first = NULL;
}

static bool move(server_peer *peer, sl_connection *from, sl_connection *to)
{
    static uint8_t piece[PIECE_BYTES];
    const uint64_t now_ns = peer->rig->time.mono_ns;
    size_t bytes;
    bool moved = false;

    while ((bytes = sl_connection_output(from, now_ns, piece, sizeof piece)) > 0) {
        sl_connection_receive(to, now_ns, piece, bytes);
        peer->bytes_received += to == peer->client ? bytes : 0;
        moved = true;
    }
    return moved;
}

static bool client_speaks(server_peer *peer)
{
    const uint64_t now_ns = peer->rig->time.mono_ns;

    if (sl_connection_due_ns(peer->client) <= now_ns)
        sl_connection_tick(peer->client, now_ns);
    if (sl_connection_due_ns(peer->link->connection) <= now_ns) {
        sl_connection_tick(peer->link->connection, now_ns);
        peer->touched = true;
    }
    return move(peer, peer->client, peer->link->connection);
}

/* As server.c does: after receiving, and when it was touched. Not looking at the others is what finds a missing touch. */
static bool server_speaks(server_peer *peer)
{
    bool moved = false;

    if (peer->touched && !peer->stuck) {
        peer->touched = false;
        moved = move(peer, peer->link->connection, peer->client);
    }
    if (sl_connection_finished(peer->link->connection))
        peer_close(peer);
    return moved;
}

/* --- time --- */

static bool readable(int fd)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };

    return poll(&entry, 1, 0) == 1;
}

static bool was_woken(const server_rig *rig)
{
    uint64_t count;

    return read(rig->wake_fd, &count, sizeof count) > 0;
}

static bool look_at_store(server_rig *rig)
{
    if (!readable(sl_store_wait_fd(rig->store)))
        return false;
    sl_host_poll(rig->host);
    return true;
}

bool server_rig_turn(server_rig *rig)
{
    bool moved = was_woken(rig);

    SL_LIST_EACH (node, &rig->connections) {
        server_peer *const peer = SL_CONTAINER_OF(node, server_peer, node);

        if (peer->link != NULL && client_speaks(peer))
            moved = peer->touched = true;
    }
    moved |= look_at_store(rig);
    if (sl_host_due_ns(rig->host) <= rig->time.mono_ns)
        sl_host_tick(rig->host, rig->time.mono_ns);
    moved |= sl_host_turn(rig->host);
    SL_LIST_EACH (node, &rig->connections) {
        server_peer *const peer = SL_CONTAINER_OF(node, server_peer, node);

        if (peer->link != NULL)
            moved |= server_speaks(peer);
    }
    return moved;
}

void server_rig_wait(server_rig *rig)
{
    struct pollfd entries[] = { { .fd = rig->wake_fd, .events = POLLIN },
                                { .fd = sl_store_wait_fd(rig->store), .events = POLLIN } };

    if (poll(entries, 2, WAIT_MS_MAX) <= 0)
        fail_msg("nothing comes: neither the disk nor a helper thread has anything to say");
}

void server_rig_run(server_rig *rig)
{
    unsigned turns = 0;

    for (;;) {
        const bool moved = server_rig_turn(rig);

        if (++turns == TURNS_MAX)
            fail_msg("the server comes to no rest in %d turns", TURNS_MAX);
        if (!moved && sl_door_inside(rig->host->door) == 0)
            return;
        if (!moved)
            server_rig_wait(rig);
    }
}

void server_rig_run_until(server_rig *rig, const bool *flag)
{
    unsigned turns = 0;

    while (!*flag) {
        if (++turns == TURNS_MAX)
            fail_msg("it does not happen in %d turns", TURNS_MAX);
        if (!server_rig_turn(rig) && !*flag)
            server_rig_wait(rig);
    }
}

void server_rig_advance(server_rig *rig, uint64_t duration_ns)
{
    sl_clock_manual_advance(&rig->time, duration_ns);
    SL_LIST_EACH (node, &rig->connections)
        SL_CONTAINER_OF(node, server_peer, node)->touched = true; /* its time may have come */
    server_rig_run(rig);
}

/* --- calls --- */

/* As a client does it: when the connection is lost or told to go, take another. */
static server_peer *first_peer(server_rig *rig)
{
    if (rig->first == NULL || rig->first->client == NULL || rig->first->goaways > 0 ||
        sl_connection_end_reason(rig->first->client) != SL_END_NONE)
        rig->first = server_rig_connect(rig, "127.0.0.1:40000");
    return rig->first;
}

static bool has_authorization(const server_call_options *options)
{
    for (size_t i = 0; i < options->metadata_count; i++)
        if (sl_str_equal(options->metadata[i].key, SL_STR("authorization")))
            return true;
    return false;
}

server_call *server_rig_call_with(server_rig *rig, const server_call_options *options)
{
    server_call *const call = grown(NULL, sizeof *call);
    sl_metadata rows[16];
    size_t count = options->metadata_count;

    EXPECT(count < 16);
    if (count > 0)
        memcpy(rows, options->metadata, count * sizeof *rows);
    if (rig->authorization != NULL && !has_authorization(options))
        rows[count++] = (sl_metadata){ SL_STR("authorization"), sl_str_from(rig->authorization) };
    *call = (server_call){ .peer = options->peer == NULL ? first_peer(rig) : options->peer };
    EXPECT_OK(sl_call_start(call->peer->client,
                            &(sl_call_request){ .path = sl_str_from(options->path),
                                                .metadata = rows,
                                                .metadata_count = count,
                                                .deadline_ns = options->timeout_ns == 0
                                                                   ? UINT64_MAX
                                                                   : rig->time.mono_ns + options->timeout_ns,
                                                .user = call },
                            &call->call));
    sl_list_push_back(&rig->calls, &call->node);
    return call;
}

server_call *server_rig_call(server_rig *rig, const char *path)
{
    return server_rig_call_with(rig, &(server_call_options){ .path = path });
}

/* A client that is ahead of its window waits for the server, as a real one does. */
void server_call_send(server_call *call, sl_str message)
{
    EXPECT(call->call != NULL);
    while (call->call != NULL && sl_call_send(call->call, &message, 1) == SL_ERR_FULL)
        EXPECT(server_rig_turn(call->peer->rig));
}

void server_call_half_close(server_call *call)
{
    EXPECT(call->call != NULL);
    sl_call_half_close(call->call);
}

void server_call_cancel(server_call *call)
{
    EXPECT(call->call != NULL);
    sl_call_cancel(call->call);
}

void server_call_read_on(server_call *call)
{
    const size_t bytes = call->unconsumed_bytes;

    call->slow = false;
    call->unconsumed_bytes = 0;
    if (call->call != NULL)
        sl_call_consume(call->call, bytes);
}

void server_rig_run_until_ended(server_rig *rig, server_call *call)
{
    server_rig_run_until(rig, &call->ended);
}

void server_rig_run_until_messages(server_rig *rig, server_call *call, size_t message_count)
{
    while (call->message_count < message_count) {
        if (call->ended)
            fail_msg("ended with %s \"%s\" after %zu messages of %zu", sl_status_name(call->status),
                     call->message, call->message_count, message_count);
        if (!server_rig_turn(rig) && call->message_count < message_count)
            server_rig_wait(rig);
    }
}

server_call *server_rig_unary_with(server_rig *rig, const server_call_options *options, sl_str request)
{
    server_call *const call = server_rig_call_with(rig, options);

    server_call_send(call, request);
    if (call->call != NULL)
        server_call_half_close(call);
    server_rig_run_until_ended(rig, call);
    return call;
}

server_call *server_rig_unary(server_rig *rig, const char *path, sl_str request)
{
    return server_rig_unary_with(rig, &(server_call_options){ .path = path }, request);
}

const char *server_call_trailer(const server_call *call, const char *key)
{
    static char value[1024];
    const size_t key_bytes = strlen(key);

    for (const char *line = call->trailers; *line != 0; line = strchr(line, '\n') + 1)
        if (strncmp(line, key, key_bytes) == 0 && line[key_bytes] == '=') {
            snprintf(value, sizeof value, "%.*s", (int)strcspn(line + key_bytes + 1, "\n"),
                     line + key_bytes + 1);
            return value;
        }
    return NULL;
}

/* --- the store --- */

typedef struct appended {
    bool is_done;
    sl_err err;
    uint64_t revision;
} appended;

static void on_appended(void *ctx, const sl_commit *commit)
{
    appended *const result = ctx;

    result->is_done = true;
    result->err = commit->err;
    result->revision = commit->results[0].revision;
}

static sl_uuid next_id(const server_rig *rig)
{
    static uint64_t count;
    sl_uuid id = { { 0xaa } };

    (void)rig;
    count++;
    memcpy(id.bytes + 8, &count, sizeof count);
    return id;
}

uint64_t server_rig_append(server_rig *rig, const char *stream, const char *type, const char *data)
{
    const sl_event_in event = { .id = next_id(rig),
                                .type = sl_str_from(type),
                                .data = sl_str_from(data),
                                .is_json = true,
                                .created_ns = rig->time.wall_ns };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = sl_str_from(stream), .events = &event, .event_count = 1 } };
    appended result = { 0 };

    EXPECT_OK(
        sl_door_submit(rig->host->door, &(sl_batch){ .ops = &op, .op_count = 1 }, on_appended, &result));
    server_rig_run_until(rig, &result.is_done);
    EXPECT_OK(result.err);
    return result.revision;
}

bool server_rig_logged(const server_rig *rig, const char *text)
{
    return strstr(rig->log_lines, text) != NULL;
}

/* tests/fuzz/server_world.c — see server_world.h. */
#include "server_world.h"

#include "server_passwords.h"

#include "base/cleanup.h"
#include "server/auth.h"
#include "server/door.h"
#include "server/passwords.h"
#include "server/request.h"
#include "server/services.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 64 * 1024
};

/* --- log and wake --- */

/* Lines are made and dropped: what is in them comes from peers. */
static void log_sink(void *ctx, const char *line, size_t line_bytes)
{
    (void)ctx;
    assert(line_bytes > 0 && line[line_bytes - 1] == '\n');
    assert(memchr(line, '\n', line_bytes) == line + line_bytes - 1);
}

static void wake(void *ctx)
{
    ((world *)ctx)->woken = true;
}

/* --- shutdown, as server.c has it --- */

void world_shut_door(world *w)
{
    sl_door_shut(w->host->door, "the input shuts the door");
    if (!w->judge.door_is_shut) {
        w->judge.accepted_at_shut = w->host->counters.batches_accepted;
        w->judge.others_at_shut = w->store->others_count;
    }
    w->judge.door_is_shut = true;
}

static void refuse(void *ctx, const char *reason)
{
    world *const w = ctx;

    sl_host_stop(w->host, reason);
    world_shut_door(w);
}

static void cut(void *ctx)
{
    world *const w = ctx;

    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL && sl_connection_call_count(w->peers[i].link->connection) > 0)
            world_break(&w->peers[i]);
}

static void farewell(void *ctx)
{
    world *const w = ctx;

    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL) {
            sl_connection_shutdown(w->peers[i].link->connection);
            w->peers[i].touched = true;
        }
    sl_auth_stop(w->host->auth);
    w->is_leaving = true;
}

static sl_drain_held held(void *ctx)
{
    const world *const w = ctx;
    sl_drain_held now = { .started = sl_door_inside(w->host->door) };

    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL) {
            now.open++;
            now.unconfirmed += sl_connection_call_count(w->peers[i].link->connection);
        }
    now.open += w->is_leaving && sl_auth_is_busy(w->host->auth);
    return now;
}

void world_begin_shutdown(world *w)
{
    if (!sl_shutdown_begin(&w->shutdown, SL_DRAIN_REASON_SIGTERM, NULL, w->time.mono_ns))
        sl_shutdown_insist(&w->shutdown, w->time.mono_ns);
}

/* From inside of a call; the driver begins it in its next turn. */
static void on_shutdown_wanted(void *ctx, const char *reason)
{
    (void)reason;
    ((world *)ctx)->begin_shutdown = true;
}

/* --- beginning --- */

static void note_commit(void *ctx, const sl_commit *commit)
{
    *(sl_err *)ctx = commit->err;
}

static void write_event(world *w, const char *stream, const char *type, const char *data)
{
    const sl_event_in event = { .id = sl_uuid_from_halves(++w->ids_made, 77),
                                .type = sl_str_from(type),
                                .data = sl_str_from(data),
                                .is_json = true,
                                .created_ns = w->time.wall_ns };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = sl_str_from(stream), .events = &event, .event_count = 1 } };
    sl_err err = SL_ERR_AGAIN;

    (void)sl_store_submit(w->store->inner, &(sl_batch){ .ops = &op, .op_count = 1 }, note_commit, &err);
    sl_store_turn(w->store->inner);
    sl_store_poll(w->store->inner);
    assert(err == SL_OK);
}

static void write_user(world *w, const char *name, const char *password, const char *groups)
{
    char hash[SL_PASSWORD_HASH_BYTES], json[512], stream[64];

    (void)sl_password_hash_now(sl_str_from(password), hash);
    snprintf(json, sizeof json,
             "{\"loginName\":\"%s\",\"fullName\":\"\",\"groups\":[%s],\"hash\":\"%s\",\"disabled\":false}",
             name, groups, hash);
    snprintf(stream, sizeof stream, "$user-%s", name);
    memcpy(w->hash, hash, sizeof hash);
    write_event(w, stream, "$UserCreated", json);
    write_event(w, "$users", "$User", name);
}

static void choose_settings(world *w, const world_wishes *wishes)
{
    w->settings = sl_server_settings_default;
    w->settings.insecure = wishes->insecure;
    w->settings.anonymous = wishes->anonymous;
    if (wishes->small_limits) {
        w->settings.event_bytes_max = 4 * 1024;
        w->settings.append_bytes_max = 6 * 1024;
        w->settings.calls_per_connection_max = 4;
    }
}

static void open_host(world *w)
{
    static const sl_shutdown_steps steps = {
        .refuse = refuse, .farewell = farewell, .cut = cut, .held = held
    };
    const sl_err err = sl_host_new(&(sl_host_setup){ .alloc = &w->memory.alloc,
                                                     .clock = &w->clock,
                                                     .log = &w->log,
                                                     .settings = &w->settings,
                                                     .store = &w->store->base,
                                                     .seed = { 1, 2 },
                                                     .instance = { { 1 } },
                                                     .patience_ns = SL_HOST_PATIENCE_NS,
                                                     .wake = wake,
                                                     .wake_ctx = w },
                                   &w->host);

    assert(err == SL_OK);
    w->host->port = 2113;
    w->host->shutdown = on_shutdown_wanted;
    w->host->shutdown_ctx = w;
    sl_shutdown_init(&w->shutdown, w->settings.grace_ns, &steps, w, &w->log);
}

void world_open(world *w, const world_wishes *wishes)
{
    *w = (world){ .time = { 1000000000, 1700000000000000000 }, .shutdown_due_ns = UINT64_MAX };
    tight_memory_init(&w->memory);
    fuzz_passwords_held = false;
    fuzz_randomness_restart();
    w->clock = sl_clock_manual_clock(&w->time);
    w->log = (sl_logger){ SL_LOG_DEBUG, SL_LOG_FORMAT_TEXT, &w->clock, log_sink, w };
    choose_settings(w, wishes);
    w->store = slow_store_open(&w->memory.alloc);
    assert(w->store != NULL);
    if (wishes->has_users) {
        write_user(w, "bob", "bob-secret", "\"readers\"");
        write_user(w, "root", "root-secret", "\"$admins\"");
    }
    open_host(w);
    if (!wishes->keeps_spares)
        w->host->spare_requests_max = 0;
    w->judge.store = w->store->inner;
    w->judge.secret = wishes->has_users && !wishes->insecure ? sl_str_from(w->hash) : SL_STR("");
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        w->peers[i].world = w;
    w->memory.is_opening = false;
}

/* --- connections --- */

static void touch(void *ctx)
{
    ((world_peer *)ctx)->touched = true;
}

static void on_message(void *ctx, sl_call *wire_call, const sl_message *message)
{
    const world_peer *const peer = ctx;
    world_call *const call = sl_call_user(wire_call);

    assert(!call->ended);
    judge_received(&peer->world->judge, &call->judged, call->method,
                   (sl_str){ (const char *)message->data, message->bytes });
    if (call->slow)
        call->unconsumed_bytes += message->window_bytes;
    else
        sl_call_consume(wire_call, message->window_bytes);
}

static void on_end(void *ctx, sl_call *wire_call, const sl_call_end_info *info)
{
    world_call *const call = sl_call_user(wire_call);

    (void)ctx;
    assert(!call->ended);
    assert(info->kind == SL_CALL_FINISHED || info->status != SL_STATUS_OK);
    if (info->kind == SL_CALL_FINISHED)
        judge_ended(&call->judged, call->method, info->status);
    call->ended = true;
    call->call = NULL;
}

static sl_connection *new_client(world_peer *peer)
{
    static const sl_connection_handler handler = { .on_message = on_message, .on_end = on_end };
    const sl_connection_options options = {
        .role = SL_ROLE_CLIENT, .handler = &handler, .ctx = peer, .authority = SL_STR("localhost:2113")
    };
    sl_connection *client = NULL;
    const sl_err err = sl_connection_new(&options, peer->world->time.mono_ns, &client);

    assert(err == SL_OK);
    return client;
}

bool world_connect(world_peer *peer, bool has_engine)
{
    static const char *const addresses[WORLD_PEERS_MAX] = { "127.0.0.1:40000", "127.0.0.1:40001",
                                                            "[2001:db8::1]:40000", "x" };
    world *const w = peer->world;
    const sl_link_owner owner = { .touch = touch,
                                  .ctx = peer,
                                  .peer = sl_str_from(addresses[peer - w->peers]) };

    assert(peer->link == NULL);
    *peer = (world_peer){
        .world = w, .touched = true, .mangle_at = UINT32_MAX, .broke_rules = !has_engine, .stream_id = 1
    };
    if (sl_link_new(w->host, &owner, &peer->link) != SL_OK)
        return false;
    if (has_engine)
        peer->client = new_client(peer);
    return true;
}

void world_break(world_peer *peer)
{
    sl_connection *const client = peer->client;
    sl_link *const link = peer->link;

    peer->client = NULL;
    peer->link = NULL;
    sl_connection_free(client);
    sl_link_free(link);
}

void world_receive(world_peer *peer, const void *data, size_t bytes)
{
    uint8_t *const exact = malloc(bytes == 0 ? 1 : bytes); /* so that the sanitizer sees a byte too many */

    assert(exact != NULL);
    if (bytes > 0)
        memcpy(exact, data, bytes);
    peer->touched = true;
    if (bytes > 0 && sl_connection_wants_input(peer->link->connection))
        sl_connection_receive(peer->link->connection, peer->world->time.mono_ns, exact, bytes);
    free(exact);
}

static void mangle(world_peer *peer, uint8_t *data, size_t bytes)
{
    if (peer->mangle_at == UINT32_MAX)
        return;
    if (peer->mangle_at >= bytes) {
        peer->mangle_at -= (uint32_t)bytes;
        return;
    }
    data[peer->mangle_at] ^= peer->mangle_with;
    peer->mangle_at = UINT32_MAX;
}

static bool client_speaks(world_peer *peer)
{
    static uint8_t piece[PIECE_BYTES];
    const uint64_t now_ns = peer->world->time.mono_ns;
    sl_connection *const server = peer->link->connection;
    size_t bytes;
    bool moved = false;

    if (sl_connection_due_ns(server) <= now_ns) {
        sl_connection_tick(server, now_ns);
        peer->touched = true;
    }
    if (peer->client == NULL)
        return false;
    if (sl_connection_due_ns(peer->client) <= now_ns)
        sl_connection_tick(peer->client, now_ns);
    while (sl_connection_wants_input(server) &&
           (bytes = sl_connection_output(peer->client, now_ns, piece, sizeof piece)) > 0) {
        mangle(peer, piece, bytes);
        world_receive(peer, piece, bytes);
        moved = true;
    }
    return moved;
}

static bool is_over(const world_peer *peer)
{
    return sl_connection_finished(peer->link->connection) ||
           (peer->client != NULL && sl_connection_finished(peer->client));
}

/* Only when it was touched, as server.c does: so a touch that was forgotten shows as a call without an answer. */
static bool server_speaks(world_peer *peer)
{
    static uint8_t piece[PIECE_BYTES];
    const uint64_t now_ns = peer->world->time.mono_ns;
    size_t bytes;
    bool moved = false;

    if (peer->touched && !peer->stuck) {
        peer->touched = false;
        while ((bytes = sl_connection_output(peer->link->connection, now_ns, piece, sizeof piece)) > 0) {
            if (peer->client != NULL)
                sl_connection_receive(peer->client, now_ns, piece, bytes);
            moved = true;
        }
    }
    if (is_over(peer)) {
        world_break(peer);
        return true;
    }
    return moved;
}

/* --- turns --- */

static bool go_on_ending(world *w)
{
    const sl_drain_phase before = w->shutdown.drain.phase;

    if (w->begin_shutdown)
        world_begin_shutdown(w);
    w->begin_shutdown = false;
    if (sl_door_store_failed(w->host->door) && !sl_shutdown_is_on(&w->shutdown))
        (void)sl_shutdown_begin(&w->shutdown, SL_DRAIN_REASON_FAILED, "the store failed", w->time.mono_ns);
    w->shutdown_due_ns = sl_shutdown_turn(&w->shutdown, w->time.mono_ns);
    return w->shutdown.drain.phase != before;
}

bool world_turn(world *w)
{
    bool moved = w->woken;

    w->woken = false;
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL)
            moved |= client_speaks(&w->peers[i]);
    if (slow_store_readable(w->store)) {
        sl_host_poll(w->host);
        moved = true;
    }
    if (sl_host_due_ns(w->host) <= w->time.mono_ns) {
        sl_host_tick(w->host, w->time.mono_ns);
        moved = true;
    }
    moved |= sl_host_turn(w->host);
    moved |= go_on_ending(w);
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL)
            moved |= server_speaks(&w->peers[i]);
    judge_door(&w->judge, w->host->counters.batches_accepted, w->store->others_count,
               sl_door_inside(w->host->door));
    return moved;
}

void world_rest(world *w)
{
    unsigned turns = 0;

    while (world_turn(w))
        assert(++turns < WORLD_TURNS_MAX);
}

void world_advance(world *w, uint64_t duration_ns)
{
    sl_clock_manual_advance(&w->time, duration_ns);
    world_turn(w);
}

/* --- calls --- */

static const sl_method *method_of(sl_str path)
{
    const char *why;

    return sl_method_find(path, &why);
}

static bool has_row(const sl_metadata *rows, size_t count, sl_str value)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(rows[i].value, value))
            return true;
    return false;
}

world_call *world_call_start(world_peer *peer, sl_str path, const sl_metadata *metadata, size_t count,
                             uint64_t deadline_ns)
{
    world *const w = peer->world;
    world_call *const call = &w->calls[w->call_count];
    const sl_call_request request = { .path = path,
                                      .metadata = metadata,
                                      .metadata_count = count,
                                      .deadline_ns = sl_add_sat_u64(w->time.mono_ns, deadline_ns),
                                      .user = call };

    if (w->call_count == WORLD_CALLS_MAX)
        return NULL;
    *call = (world_call){ .peer = peer, .method = method_of(path) };
    call->judged.began_shut = w->judge.door_is_shut;
    call->judged.is_stranger = !has_row(metadata, count, WORLD_ROOT_CREDENTIALS);
    if (sl_call_start(peer->client, &request, &call->call) != SL_OK)
        return NULL;
    w->call_count++;
    return call;
}

/* What finds no room is dropped: the client was too fast. */
void world_call_send(world_call *call, sl_str message)
{
    if (sl_call_send(call->call, &message, 1) == SL_OK)
        judge_sent(&call->peer->world->judge, &call->judged, call->method, call->sent_count++, message);
}

void world_call_half_close(world_call *call)
{
    sl_call_half_close(call->call);
    call->half_closed = true;
}

void world_call_read_on(world_call *call)
{
    const size_t bytes = call->unconsumed_bytes;

    call->slow = false;
    call->unconsumed_bytes = 0;
    if (call->call != NULL)
        sl_call_consume(call->call, bytes);
}

/* --- the end --- */

/* A connection that the server has ended stays for a moment, so that its client can read why. */
static bool is_lingering(const world *w)
{
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL && sl_connection_end_reason(w->peers[i].link->connection) != SL_END_NONE)
            return true;
    return false;
}

/* Patient batches get no company any more, and groups that were refused for want of room try again after a second. */
#define CALM_NS UINT64_C(2000000000)

static void be_calm(world *w)
{
    tight_memory_calm(&w->memory);
    slow_store_calm(w->store);
    fuzz_passwords_held = false;
    w->woken = true;
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        w->peers[i].stuck = false;
    for (uint32_t i = 0; i < w->call_count; i++)
        world_call_read_on(&w->calls[i]);
}

void world_calm(world *w)
{
    be_calm(w);
    world_rest(w);
    world_advance(w, CALM_NS);
    world_rest(w);
    if (is_lingering(w)) {
        world_advance(w, sl_wire_limits_default.linger_timeout_ns);
        world_rest(w);
    }
}

/* A subscription goes on until one of both sides ends it, and so do statistics; who waits for consumers to drain may wait for long. */
static bool lasts(const world_call *call)
{
    return call->method == &sl_method_monitoring_stats || call->method == &sl_method_persistent_read ||
           call->method == &sl_method_operators_stop ||
           (call->method == &sl_method_streams_read && call->judged.read.count_max == UINT64_MAX);
}

/* What the client has not finished cannot be answered; a server that stops waits only for the only message of a call. */
static bool may_be_open(const world *w, const world_call *call)
{
    if (call->method == NULL)
        return false;
    if (w->host->stopping) /* consumers go on until they are drained */
        return (call->method->kind == SL_METHOD_UNARY && !call->half_closed) ||
               call->method == &sl_method_persistent_read || call->method == &sl_method_operators_stop;
    return !call->half_closed || lasts(call);
}

/* Whose bytes are not those of an engine is owed nothing, and calls beyond the limit wait inside of the client. */
static bool is_owed(const world *w, const world_peer *peer)
{
    return !peer->broke_rules &&
           sl_connection_call_count(peer->link->connection) < w->settings.calls_per_connection_max;
}

void world_check_owed(const world *w)
{
    for (uint32_t i = 0; i < w->call_count; i++) {
        const world_call *const call = &w->calls[i];

        assert(call->call == NULL || may_be_open(w, call) || !is_owed(w, call->peer));
    }
}

static void check_calls(const world *w)
{
    for (uint32_t i = 0; i < w->call_count; i++)
        assert(w->calls[i].ended);
    assert(w->host->counters.calls_now == 0);
    assert(sl_list_empty(&w->host->requests));
    assert(w->host->counters.subscriptions_now == 0);
    assert(w->host->counters.pages_held_now == 0);
}

void world_close(world *w)
{
    for (size_t i = 0; i < WORLD_PEERS_MAX; i++)
        if (w->peers[i].link != NULL)
            world_break(&w->peers[i]);
    check_calls(w);
    tight_memory_calm(&w->memory); /* the judge needs some */
    judge_acks(&w->judge, w->time.wall_ns);
    if (sl_auth_is_busy(w->host->auth))
        sl_auth_leave_helper(w->host->auth);
    sl_host_free(w->host);
    sl_store_close(&w->store->base);
    assert(w->memory.bytes == 0);
}

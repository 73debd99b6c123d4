/* tests/simserver/world.c — the turn of everything, and the life of the server. */
#include "world.h"

#include "base/cleanup.h"
#include "server/auth.h"
#include "server/door.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_BYTES = 64 * 1024,
    PEERS = WORLD_CLIENTS_MAX + 1 + 2,
};

/* One seed in three is without patience, one with more than a server has. */
#define PATIENCE_NS (UINT64_C(2) * WORLD_MS_NS)

/* After a batch was refused a desk waits so long at most before it tries again. */
#define REFUSED_NS (UINT64_C(2000) * WORLD_MS_NS)

static world_peer *peer_at(world *w, size_t index)
{
    if (index <= WORLD_CLIENTS_MAX)
        return &w->clients[index].peer;
    return index == WORLD_CLIENTS_MAX + 1 ? &w->writer.peer : &w->manager.peer;
}

/* --- connections --- */

static void touch(void *ctx)
{
    ((world_peer *)ctx)->touched = true;
}

static void on_message(void *ctx, sl_call *wire_call, const sl_message *message)
{
    world_call *const call = sl_call_user(wire_call);

    (void)ctx;
    sl_call_consume(wire_call, message->window_bytes);
    call->message(call, (sl_str){ (const char *)message->data, message->bytes });
}

static void on_end(void *ctx, sl_call *wire_call, const sl_call_end_info *info)
{
    world_call *const call = sl_call_user(wire_call);

    (void)ctx;
    call->call = NULL;
    call->end(call, info);
}

static const sl_connection_handler handler = { .on_message = on_message, .on_end = on_end };

static void link_end(world_peer *peer)
{
    sl_link *const link = SL_TAKE_PTR(peer->link);

    peer->link_until_turn = 0;
    peer->world->is_disturbed = true; /* what its calls held may go to others at once */
    sl_link_free(link);
}

bool world_connect(world_peer *peer)
{
    world *const w = peer->world;
    const sl_link_owner owner = { .touch = touch, .ctx = peer, .peer = SL_STR("127.0.0.1:40000") };
    const sl_connection_options options = {
        .role = SL_ROLE_CLIENT, .handler = &handler, .ctx = peer, .authority = SL_STR("localhost:2113")
    };
    sl_err err;

    assert(w->host != NULL && peer->client == NULL);
    if (peer->link != NULL)
        return false; /* the server still has the old one: one at a time is enough */
    network_pipe_clear(&peer->up);
    network_pipe_clear(&peer->down);
    network_pipe_init(&peer->up);
    network_pipe_init(&peer->down);
    peer->end = JUDGE_CUT_UNSEEN;
    err = sl_link_new(w->host, &owner, &peer->link);
    assert(err == SL_OK);
    err = sl_connection_new(&options, w->time.mono_ns, &peer->client);
    assert(err == SL_OK);
    (void)err;
    return true;
}

void world_peer_cut(world_peer *peer, judge_end end, uint64_t server_turns)
{
    sl_connection *const connection = SL_TAKE_PTR(peer->client);

    peer->end = end;
    sl_connection_free(connection); /* its calls end with CONNECTION_LOST */
    network_pipe_clear(&peer->up);
    network_pipe_clear(&peer->down);
    if (server_turns == 0)
        link_end(peer);
    else
        peer->link_until_turn = peer->world->turn + server_turns;
}

bool world_call_start(world_call *call, world_peer *peer, const char *path, const sl_metadata *metadata,
                      size_t metadata_count)
{
    call->peer = peer;
    return sl_call_start(peer->client,
                         &(sl_call_request){ .path = sl_str_from(path),
                                             .metadata = metadata,
                                             .metadata_count = metadata_count,
                                             .deadline_ns = UINT64_MAX,
                                             .user = call },
                         &call->call) == SL_OK;
}

bool world_call_send(world_call *call, const uint8_t *data, size_t bytes)
{
    const sl_str piece = { (const char *)data, bytes };

    return call->call != NULL && sl_call_send(call->call, &piece, 1) == SL_OK;
}

/* --- bytes --- */

static uint64_t due_ns(world *w)
{
    if (w->calm || w->delay_ms_max == 0)
        return w->time.mono_ns;
    return w->time.mono_ns + sim_between(&w->rng, 0, w->delay_ms_max) * WORLD_MS_NS;
}

static void fetch(world *w, sl_connection *from, network_pipe *pipe)
{
    static uint8_t piece[PIECE_BYTES];
    size_t bytes;

    while ((bytes = sl_connection_output(from, w->time.mono_ns, piece, sizeof piece)) > 0)
        if (pipe != NULL)
            network_pipe_put(pipe, piece, bytes, w->judge.now, due_ns(w));
}

/* How many bytes arrive together. */
static size_t piece_bytes(world *w)
{
    return !w->calm && sim_chance(&w->rng, w->split_percent) ? (size_t)sim_between(&w->rng, 1, 40)
                                                             : PIECE_BYTES;
}

static void client_speaks(world *w, world_peer *peer)
{
    const uint8_t *data;
    judge_moment said;
    size_t bytes;

    if (peer->client != NULL) {
        if (sl_connection_due_ns(peer->client) <= w->time.mono_ns)
            sl_connection_tick(peer->client, w->time.mono_ns);
        fetch(w, peer->client, &peer->up);
    }
    if (peer->link == NULL)
        return;
    if (sl_connection_due_ns(peer->link->connection) <= w->time.mono_ns) {
        sl_connection_tick(peer->link->connection, w->time.mono_ns);
        peer->touched = true;
    }
    while (peer->link != NULL &&
           (bytes = network_pipe_take(&peer->up, w->time.mono_ns, piece_bytes(w), &data, &said)) > 0) {
        sl_connection_receive(peer->link->connection, w->time.mono_ns, data, bytes);
        peer->touched = true;
    }
}

/* The judge is told when the server ends a connection, not when the client learns it. */
static void server_hangs_up(world *w, world_peer *peer)
{
    const bool ends = w->host->stopping;

    for (uint32_t i = 0; i <= WORLD_CLIENTS_MAX; i++)
        if (&w->clients[i].peer == peer && w->clients[i].judged != NULL)
            judge_call_over(w->clients[i].judged, ends ? JUDGE_SERVER_GONE : JUDGE_CUT_UNSEEN);
    link_end(peer);
}

static void server_speaks(world *w, world_peer *peer)
{
    if (peer->link == NULL)
        return;
    if (peer->touched) {
        peer->touched = false;
        fetch(w, peer->link->connection, peer->client == NULL ? NULL : &peer->down);
    }
    if (peer->link_until_turn != 0 && w->turn >= peer->link_until_turn)
        link_end(peer);
    else if (sl_connection_finished(peer->link->connection))
        server_hangs_up(w, peer);
}

static void client_listens(world *w, world_peer *peer)
{
    const uint8_t *data;
    size_t bytes;

    while (peer->client != NULL &&
           (bytes = network_pipe_take(&peer->down, w->time.mono_ns, piece_bytes(w), &data, &peer->said)) > 0)
        sl_connection_receive(peer->client, w->time.mono_ns, data, bytes);
    if (peer->client == NULL)
        return;
    if ((peer->link == NULL && network_pipe_empty(&peer->down)) || sl_connection_finished(peer->client))
        world_peer_cut(peer, w->host == NULL || w->host->stopping ? JUDGE_SERVER_GONE : JUDGE_CUT_UNSEEN, 0);
}

/* --- the server --- */

static void wake(void *ctx)
{
    (void)ctx; /* the helper thread has nothing to do: nobody needs a password */
}

static void no_log(void *ctx, const char *line, size_t line_bytes)
{
    world *const w = ctx;

    if (w->report.shows_all)
        printf("                    log: %.*s", (int)line_bytes, line);
}

/* --- its shutdown, as server.c has it --- */

static void refuse(void *ctx, const char *reason)
{
    world *const w = ctx;

    sl_host_stop(w->host, reason);
    sl_door_shut(w->host->door, reason);
}

static void cut(void *ctx)
{
    world *const w = ctx;

    sl_door_close(w->host->door, "shutdown");
    for (size_t i = 0; i < PEERS; i++)
        if (peer_at(w, i)->link != NULL && sl_connection_call_count(peer_at(w, i)->link->connection) > 0)
            server_hangs_up(w, peer_at(w, i));
}

static void farewell(void *ctx)
{
    world *const w = ctx;

    for (size_t i = 0; i < PEERS; i++)
        if (peer_at(w, i)->link != NULL) {
            sl_connection_shutdown(peer_at(w, i)->link->connection);
            peer_at(w, i)->touched = true;
        }
    sl_auth_stop(w->host->auth);
}

static sl_drain_held held(void *ctx)
{
    world *const w = ctx;
    sl_drain_held now = { .gates = !sl_door_is_shut(w->host->door),
                          .started =
                              sl_door_inside(w->host->door) + w->host->counters.consumers_draining_now };

    for (size_t i = 0; i < PEERS; i++)
        if (peer_at(w, i)->link != NULL) {
            now.open++;
            now.unconfirmed += sl_connection_call_count(peer_at(w, i)->link->connection);
        }
    return now;
}

static const sl_shutdown_steps steps = { .refuse = refuse, .cut = cut, .farewell = farewell, .held = held };

bool world_server_start(world *w)
{
    const sl_host_setup setup = { .alloc = &sl_alloc_default,
                                  .clock = &w->clock,
                                  .log = &w->log,
                                  .settings = &w->settings,
                                  .store = sim_store_door(&w->store),
                                  /* A process makes ids of its own: two must never make the same. */
                                  .seed = { ++w->lives, w->seed },
                                  .instance = { { (uint8_t)w->lives, (uint8_t)(w->lives >> 8) } },
                                  .patience_ns = w->store.is_journal ? 0 : w->seed % 3 * PATIENCE_NS,
                                  .wake = wake,
                                  .wake_ctx = w };
    const sl_err err = sl_host_new(&setup, &w->host);

    if (err != SL_OK) {
        w->host = NULL;
        report_fail(&w->report, REPORT_LIVENESS, "the server does not start: %s", sl_err_text(err));
        return false;
    }
    w->host->spare_requests_max = 0; /* so that the address sanitizer sees who uses a request too long */
    sl_shutdown_init(&w->shutdown, w->settings.grace_ns, &steps, w, &w->log);
    report_say(&w->report, "the server is up");
    return true;
}

static void everybody_loses(world *w)
{
    w->host->stopping = true; /* whoever dies says nothing: what links would make it write must not count */
    for (uint32_t i = 0; i <= WORLD_CLIENTS_MAX; i++)
        client_lost_server(&w->clients[i], JUDGE_SERVER_GONE);
    clerk_lost_server(&w->writer);
    clerk_lost_server(&w->manager);
}

void world_server_end(world *w, sim_store_end how)
{
    static const char *const words[] = { "is down, in order", "is killed", "loses power" };

    report_say(&w->report, "the server %s", words[how]);
    sim_store_dies(&w->store, how, sim_rng_next(&w->rng) | 1);
    everybody_loses(w);
    for (uint32_t i = 0; how == SIM_STORE_CUT && i < w->group_count; i++)
        judge_power_cut(&w->groups[i].judged);
    sl_host_free(w->host);
    w->host = NULL;
    w->up_at_turn = w->turn + 1 + sim_pick(&w->rng, 20);
    if (!sim_store_restart(&w->store, how))
        report_fail(&w->report, REPORT_LIVENESS, "the store does not open: %s", w->store.words);
}

void world_shutdown_begin(world *w)
{
    if (sl_shutdown_begin(&w->shutdown, SL_DRAIN_REASON_SIGTERM, NULL, w->time.mono_ns))
        report_say(&w->report, "the server shuts down");
    else
        sl_shutdown_insist(&w->shutdown, w->time.mono_ns);
}

bool world_shutdown_turn(world *w)
{
    if (sl_shutdown_is_on(&w->shutdown)) {
        w->is_disturbed = true;
        (void)sl_shutdown_turn(&w->shutdown, w->time.mono_ns);
    }
    return sl_shutdown_is_over(&w->shutdown);
}

/* --- a turn --- */

static bool server_turn(world *w)
{
    const bool was_readable = sim_store_readable(&w->store);
    bool again;

    if (was_readable)
        sl_host_poll(w->host);
    if (sl_host_due_ns(w->host) <= w->time.mono_ns)
        sl_host_tick(w->host, w->time.mono_ns);
    again = sl_host_turn(w->host);
    if (w->store.is_journal && !again && sl_door_inside(w->host->door) > 0)
        sim_store_wait(&w->store);
    if (w->store.full || w->store.no_space)
        w->refused_ns = w->time.mono_ns;
    if (w->refused_ns != 0 && w->time.mono_ns < w->refused_ns + REFUSED_NS)
        return false;
    return !again && sl_door_inside(w->host->door) == 0 && !sim_store_readable(&w->store) &&
           !sl_door_store_failed(w->host->door);
}

static void tell_flushed(world *w, bool idle)
{
    for (uint32_t i = 0; idle && i <= WORLD_CLIENTS_MAX; i++) {
        client *const c = &w->clients[i];

        if (c->judged != NULL && c->peer.client != NULL && c->peer.link != NULL &&
            network_pipe_empty(&c->peer.up) && !sl_connection_has_output(c->peer.client))
            judge_flushed(c->judged);
    }
}

static void let_disk_fail(world *w)
{
    if (!sl_door_store_failed(w->host->door))
        return;
    report_count(&w->report, SITUATION_DISK_FAILED);
    world_server_end(w, SIM_STORE_CUT);
}

static void pass_time(world *w)
{
    const uint64_t step_ns = sim_between(&w->rng, 0, w->calm ? 20 : 12) * WORLD_MS_NS;

    sl_clock_manual_advance(&w->time, step_ns + w->wait_ns);
    w->wait_ns = 0;
    w->turn++;
    w->store.now_ns = w->time.mono_ns;
    w->report.turn = w->turn;
    w->report.mono_ns = w->time.mono_ns;
    judge_turn_begins(&w->judge, w->turn, w->time.mono_ns);
}

void world_turn(world *w)
{
    bool idle = true;

    pass_time(w);
    if (w->turn > WORLD_TURNS_MAX)
        report_fail(&w->report, REPORT_HANG, "still not over after %d turns", (int)WORLD_TURNS_MAX);
    if (w->host == NULL && w->turn >= w->up_at_turn && !world_server_start(w))
        return;
    if (w->host != NULL && !w->calm)
        world_act(w);
    for (uint32_t i = 0; !w->calm && i < w->client_count; i++)
        client_act(&w->clients[i]);
    clerk_act(&w->writer);
    clerk_act(&w->manager);
    for (size_t i = 0; w->host != NULL && i < PEERS; i++)
        client_speaks(w, peer_at(w, i));
    if (w->host != NULL)
        idle = server_turn(w);
    for (size_t i = 0; w->host != NULL && i < PEERS; i++)
        server_speaks(w, peer_at(w, i));
    for (size_t i = 0; w->host != NULL && i < PEERS; i++)
        client_listens(w, peer_at(w, i));
    if (w->host != NULL)
        let_disk_fail(w);
    if (w->host != NULL && world_shutdown_turn(w))
        world_server_end(w, SIM_STORE_CLOSED);
    tell_flushed(w, idle);
    judge_turn_ends(&w->judge, idle && !w->is_disturbed);
    w->is_disturbed = false;
}

/* --- a run --- */

static const char *const strategies[] = { "RoundRobin", "DispatchToSingle", "Pinned", "PinnedByCorrelation" };

static void draw_group(world *w, uint32_t index)
{
    world_group *const g = &w->groups[index];
    static const char *const filters[] = { "s", "s1", "s2" }, *const regexes[] = { "^s[02]", "^(?!s1)s",
                                                                                   "." };
    const uint32_t filter = sim_pick(&w->rng, 3);

    g->of_all = sim_chance(&w->rng, 50);
    g->regex = g->of_all && sim_chance(&w->rng, 30);
    snprintf(g->stream, sizeof g->stream, "%s", g->of_all ? "" : "s0");
    snprintf(g->name, sizeof g->name, "g%u", index);
    snprintf(g->filter, sizeof g->filter, "%s", g->regex ? regexes[sim_pick(&w->rng, 2)] : filters[filter]);
    snprintf(g->strategy, sizeof g->strategy, "%s", strategies[sim_pick(&w->rng, 4)]);
    g->lease_ms = (uint32_t)sim_between(&w->rng, 200, 3000);
    g->retries_max = (uint32_t)sim_between(&w->rng, 0, 10);
    judge_group_init(&w->judge, &g->judged, g->name,
                     &(judge_rules){ .pinned = strncmp(g->strategy, "Pinned", 6) == 0,
                                     .by_correlation = strcmp(g->strategy, "PinnedByCorrelation") == 0,
                                     .lease_ns = g->lease_ms * WORLD_MS_NS,
                                     .retries_max = g->retries_max });
    report_say(&w->report, "group %s on %s%s%s: %s, lease %u ms, %u retries", g->name,
               g->of_all ? "$all" : g->stream, g->of_all ? " with " : "", g->of_all ? g->filter : "",
               g->strategy, g->lease_ms, g->retries_max);
}

static void draw(world *w)
{
    sim_rng *const rng = &w->rng;

    w->stream_count = (uint32_t)sim_between(rng, 1, WORLD_STREAMS_MAX);
    w->group_count = sim_chance(rng, 25) ? 2 : 1;
    w->client_count = (uint32_t)sim_between(rng, 1, WORLD_CLIENTS_MAX);
    w->event_count_max = (uint32_t)sim_between(rng, 10, 120);
    w->turns = (uint32_t)sim_between(rng, 150, 500);
    w->delay_ms_max = sim_chance(rng, 30) ? 0 : (uint32_t)sim_between(rng, 1, 60);
    w->split_percent = sim_chance(rng, 50) ? 0 : (uint32_t)sim_between(rng, 1, 60);
    w->cuts = sim_chance(rng, 60);
    w->operators = sim_chance(rng, 35);
    w->changes = sim_chance(rng, 25);
    w->crashes = sim_chance(rng, 45);
    w->power = sim_chance(rng, 40);
    w->slow_disk = sim_chance(rng, 50);
    w->jumps = sim_chance(rng, 12);
}

static void open_world(world *w, uint64_t seed, bool shows_all)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    sim_rng_init(&w->rng, seed);
    report_begin(&w->report, seed, shows_all);
    judge_init(&w->judge, &w->report);
    w->time = (sl_clock_manual){ 1000000000, 1700000000000000000 };
    w->clock = sl_clock_manual_clock(&w->time);
    w->log = (sl_logger){ SL_LOG_WARN, SL_LOG_FORMAT_TEXT, &w->clock, no_log, w };
    w->settings = sl_server_settings_default;
    w->settings.insecure = true;
    w->settings.grace_ns = 2000 * WORLD_MS_NS;
    draw(w);
    sim_store_open(&w->store, sim_chance(&w->rng, 30));
    w->judge.reads_again = w->store.is_journal;
    report_say(&w->report, "the store is %s", w->store.is_journal ? "the journal" : "in memory");
    for (uint32_t i = 0; i < w->group_count; i++)
        draw_group(w, i);
    for (uint32_t i = 0; i <= WORLD_CLIENTS_MAX; i++)
        client_init(&w->clients[i], w, i);
    clerk_init(&w->writer, w);
    clerk_init(&w->manager, w);
}

static void make_groups(world *w)
{
    w->calm = true;
    for (uint32_t i = 0; i < w->group_count; i++) {
        (void)clerk_ask(&w->manager, (errand){ .kind = ERRAND_CREATE, .group = i });
        while (w->manager.now.kind != ERRAND_NONE && !w->report.failed)
            world_turn(w);
    }
    w->calm = false;
}

static void close_world(world *w)
{
    if (w->host != NULL) {
        everybody_loses(w);
        sl_host_free(w->host);
    }
    for (size_t i = 0; i < PEERS; i++) {
        network_pipe_clear(&peer_at(w, i)->up);
        network_pipe_clear(&peer_at(w, i)->down);
    }
    sim_store_close(&w->store);
    for (uint32_t i = 0; i < w->group_count; i++)
        judge_group_done(&w->groups[i].judged);
}

bool world_run(world *w, uint64_t seed, bool shows_all)
{
    uint64_t end;

    open_world(w, seed, shows_all);
    make_groups(w);
    end = w->turn + w->turns;
    while (w->turn < end && !w->report.failed)
        world_turn(w);
    if (!w->report.failed)
        world_finish(w);
    close_world(w);
    return !w->report.failed;
}

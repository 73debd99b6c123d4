/* tests/unit/worker/source_contract_consumer.c — the sources sluice:// and kurrentdb:// against the real server, over a real socket, in one
 * thread. For the second one it hides its extensions (tests/tools/plain.h).
 *
 * The server's host runs on the time of the loop. Its services are driven in each turn of the loop, between what came in and what goes
 * out, as server.c does it. */
#include "source_contract_consumer.h"

#include "../../tools/plain.h"
#include "../server/operators_rig.h"

#include "worker/consumer_source.h"

#include <stdio.h>
#include <stdlib.h>

#define MS_NS UINT64_C(1000000)

static void on_accept(void *ctx, sl_socket *socket)
{
    consumer_world *const w = ctx;

    if (w->is_down)
        sl_socket_close(socket);
    else
        sl_peers_accept(&w->peers, socket);
}

static void keep_time(source_contract *c)
{
    consumer_world *const w = c->world;
    sl_clock_manual *const time = &w->m.g.rig.time;
    const uint64_t now_ns = sl_loop_now_ns(c->loop);

    if (now_ns > time->mono_ns)
        sl_clock_manual_advance(time, now_ns - time->mono_ns);
}

static void make_group(source_contract *c)
{
    consumer_world *const w = c->world;
    sl_group_definition definition = groups_definition("orders", "g");

    if (c->lease_ns != 0)
        definition.settings.message_timeout.value = (int32_t)(c->lease_ns / MS_NS);
    groups_create(&w->m.g, &definition);
}

static void make_world(source_contract *c, bool is_plain)
{
    consumer_world *const w = calloc(1, sizeof *w);
    const sl_listen_options options = { .host = SL_STR("127.0.0.1"), .on_accept = on_accept, .ctx = w };

    EXPECT(w != NULL);
    c->world = w;
    plain_is_on = is_plain;
    manage_start(&w->m);
    keep_time(c);
    make_group(c);
    sl_peers_init(&w->peers, w->m.g.rig.host, c->loop);
    EXPECT_OK(sl_listener_new(c->loop, &options, NULL, &w->listener));
}

static void consumer_make_world(source_contract *c)
{
    make_world(c, false);
}

static void kurrent_make_world(source_contract *c)
{
    make_world(c, true);
}

static sl_source *open_source(const source_contract *c, const char *address)
{
    consumer_world *const w = c->world;
    char problem[1024];
    const sl_consumer_source_options options = { .address = address,
                                                 .stream = w->stream == NULL ? "orders" : w->stream,
                                                 .group = w->group == NULL ? "g" : w->group,
                                                 .name = "worker-1",
                                                 .leave_ms = 50,
                                                 .give_up_ms = w->give_up_ms,
                                                 .reconnect_ms = 10 * 1000 };
    sl_source *source = NULL;
    sl_text text;

    sl_text_init(&text, problem, sizeof problem);
    EXPECT_OK(sl_consumer_source_new(c->loop, &options, &text, &source));
    return source;
}

static sl_source *consumer_open(source_contract *c)
{
    const consumer_world *const w = c->world;
    char address[64];

    snprintf(address, sizeof address, "sluice://127.0.0.1:%u", sl_listener_port(w->listener));
    return open_source(c, address);
}

static sl_source *kurrent_open(source_contract *c)
{
    const consumer_world *const w = c->world;
    char address[64];

    snprintf(address, sizeof address, "kurrentdb://127.0.0.1:%u?tls=false", sl_listener_port(w->listener));
    return open_source(c, address);
}

static void consumer_put(source_contract *c, uint32_t count)
{
    consumer_world *const w = c->world;

    for (uint32_t i = 0; i < count; i++)
        (void)server_rig_append(&w->m.g.rig, "orders", "t", "{}");
}

static void consumer_turn_of_server(source_contract *c)
{
    consumer_world *const w = c->world;

    keep_time(c);
    while (server_rig_turn(&w->m.g.rig))
        ;
    sl_peers_settle(&w->peers);
}

static void consumer_set_down(source_contract *c, bool is_down)
{
    consumer_world *const w = c->world;

    w->is_down = is_down;
    if (is_down)
        sl_peers_free(&w->peers);
}

/* Its connection breaks, and a call under its name does not list the message as held: so it is given out again, to that one. */
static void consumer_take_away(source_contract *c, const sl_job *job)
{
    consumer_world *const w = c->world;
    server_call *thief;

    (void)job;
    consumer_set_down(c, true);
    thief = groups_join(&w->m.g, (groups_consumer){ .name = "worker-1", .extensions = true });
    CONTRACT_UNTIL(c, thief->message_count >= 2);
    consumer_set_down(c, false);
}

static void consumer_let_another_come(source_contract *c)
{
    consumer_world *const w = c->world;

    w->other = groups_join(&w->m.g, (groups_consumer){ .name = "another", .extensions = true });
}

/* The first thing that it hears is that it has joined. */
static bool consumer_others_have(source_contract *c, sl_uuid id)
{
    const consumer_world *const w = c->world;

    for (size_t i = 1; w->other != NULL && i < w->other->message_count; i++)
        if (sl_uuid_equal(groups_id(w->other, i), id))
            return true;
    return false;
}

/* Its connection breaks, and another consumer is there. */
static void kurrent_take_away(source_contract *c, const sl_job *job)
{
    consumer_world *const w = c->world;
    server_call *thief;

    (void)job;
    consumer_set_down(c, true);
    thief = groups_join(&w->m.g, (groups_consumer){ .window = 10 });
    CONTRACT_UNTIL(c, thief->message_count >= 2);
    consumer_set_down(c, false);
}

static void consumer_fail(source_contract *c)
{
    consumer_world *const w = c->world;

    EXPECT_CALL_STATUS(manage_delete(&w->m, "orders", "g"), SL_STATUS_OK);
}

static void consumer_stop(source_contract *c)
{
    consumer_world *const w = c->world;

    (void)operators_stop(&w->m.g, STOP(.who = { .consumer_name = SL_STR_INIT("worker-1") },
                                       .reason = SL_STR_INIT("deploy"), .hand_back_unstarted = true));
}

static void consumer_free_world(source_contract *c)
{
    consumer_world *const w = c->world;

    sl_peers_free(&w->peers);
    sl_listener_free(w->listener);
    manage_done(&w->m);
    free(w);
    c->world = NULL;
    plain_is_on = false;
}

void consumer_world_kill_server(source_contract *c)
{
    consumer_world *const w = c->world;

    sl_peers_free(&w->peers);
    groups_kill(&w->m.g);
    sl_peers_init(&w->peers, w->m.g.rig.host, c->loop);
}

SOURCE_CONTRACT_ROW(consumer, .name = "sluice", .make_world = consumer_make_world, .open = consumer_open,
                    .put = consumer_put, .turn = consumer_turn_of_server, .set_down = consumer_set_down,
                    .take_away = consumer_take_away, .let_another_come = consumer_let_another_come,
                    .others_have = consumer_others_have, .break_for_good = consumer_fail,
                    .stop = consumer_stop, .free_world = consumer_free_world, .outlives_process = true)

SOURCE_CONTRACT_ROW(kurrent, .name = "kurrentdb", .make_world = kurrent_make_world, .open = kurrent_open,
                    .put = consumer_put, .turn = consumer_turn_of_server, .set_down = consumer_set_down,
                    .take_away = kurrent_take_away, .break_for_good = consumer_fail,
                    .free_world = consumer_free_world, .outlives_process = true)

const source_contract_row *consumer_world_row(void)
{
    return &consumer_row;
}

const source_contract_row *kurrent_world_row(void)
{
    return &kurrent_row;
}

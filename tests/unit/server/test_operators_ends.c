/* tests/unit/server/test_operators_ends.c — a stop by an operator at the moment when something else ends: a window to reconnect, a call, the
 * settings of a group, the start of a group, the server. */
#include "operators_rig.h"
#include "read_rig.h"

#include <stdlib.h>
#include <string.h>

static const sl_wire_label version_41[] = { { SL_STR_INIT("version"), SL_STR_INIT("41") } };

#define NAMED(text)   .consumer_name = SL_STR_INIT(text)
#define OF_GROUP      .stream = SL_STR_INIT("orders"), .group = SL_STR_INIT("g")
#define LABELLED(v)   .label_key = SL_STR_INIT("version"), .label_value = SL_STR_INIT(v)
#define WAIT_A_MINUTE .wait_ms = 60 * 1000

static void begin(groups *g, unsigned events)
{
    groups_start(g);
    reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static void begin_on(groups *g, sl_store *store, unsigned events)
{
    groups_start_on(g, store);
    reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static void turn_until_still(groups *g)
{
    while (server_rig_turn(&g->rig)) /* not server_rig_run(): it waits for what a test holds back */
        continue;
}

static void let_sync(groups *g, sl_store *store)
{
    groups_held_store_hold(store, false);
    sl_host_poll(g->rig.host);
    server_rig_run(&g->rig);
}

static void ignore_end(void *ctx, sl_err err)
{
    (void)ctx;
    (void)err;
}

/* Holds one message, with a second to come back, and does not. */
static void join_and_break(groups *g, const char *name)
{
    server_peer *const peer = server_rig_connect(&g->rig, "127.0.0.1:40001");
    server_call *const call = groups_join(g, (groups_consumer){ .name = name,
                                                                .window = 1,
                                                                .extensions = true,
                                                                .peer = peer,
                                                                .reconnect_ms = 1000,
                                                                .labels = version_41,
                                                                .label_count = 1 });

    groups_started(call, 1, 1);
    server_rig_break(peer);
    server_rig_run(&g->rig);
}

/* Whatever is due happens in the first call of the core, here that for "a": the next one in the list is gone then. */
TEST(a_stop_may_be_what_lets_another_consumer_be_gone)
{
    groups g;
    server_call *stop;

    begin(&g, 2);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    join_and_break(&g, "b");
    sl_clock_manual_advance(&g.rig.time, 2 * GROUPS_SECOND_NS); /* and no tick */
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }, .once = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "2/1:1-1/1");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=stopping:1^operator");
    groups_done(&g);
}

TEST(a_resume_may_be_what_lets_another_consumer_be_gone)
{
    groups g;
    server_call *resume;

    begin(&g, 2);
    (void)groups_join(
        &g, (groups_consumer){
                .name = "a", .window = 1, .extensions = true, .labels = version_41, .label_count = 1 });
    join_and_break(&g, "a");
    (void)operators_stop(&g, STOP(.who = { NAMED("a"), LABELLED("41") }));
    sl_clock_manual_advance(&g.rig.time, 2 * GROUPS_SECOND_NS);
    resume = operators_resume(&g, WHO(NAMED("a"), LABELLED("41")));
    EXPECT_STR(operators_resumed(resume), "1-0");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=active:1");
    groups_done(&g);
}

/* --- the call ends --- */

/* Its last ack is not durable yet when its call ends. */
static void ack_and_go(groups *g, sl_store *store, server_call **ret_stop)
{
    server_call *const call =
        groups_join(g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });

    *ret_stop = operators_stop(g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    groups_held_store_hold(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 1) }, 1);
    turn_until_still(g);
    server_call_cancel(call);
    turn_until_still(g);
}

/* B17: a power cut would bring the message back, and the process is gone. */
TEST(a_consumer_that_acks_and_goes_is_drained_when_that_is_durable)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *stop, *second;

    begin_on(&g, store, 1);
    ack_and_go(&g, store, &stop);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0");
    EXPECT_STR(operators_reports(&g, WHO(0)), "");
    second = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(second), "1/0:0");
    let_sync(&g, store);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 1/1:0! OK");
    EXPECT_STR(operators_heard(second), "1/0:0 1/1:0! OK");
    EXPECT_STR(operators_reports(&g, WHO(0)), "a=drained:1/0/0^operator");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true))), "0/0:0! OK");
    groups_done(&g);
}

TEST(a_drain_that_never_becomes_durable_is_not_told_as_one)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *stop;

    begin_on(&g, store, 1);
    ack_and_go(&g, store, &stop);
    EXPECT_OK(sl_registry_delete(g.rig.host->registry, SL_STR("orders"), SL_STR("g"), ignore_end, NULL));
    turn_until_still(&g);
    let_sync(&g, store);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 ABORTED");
    EXPECT_STR(operators_reports(&g, WHO(0)), "a=dropped:1/0/0^operator");
    groups_done(&g);
}

/* --- the group is changed --- */

static void update(groups *g)
{
    const sl_group_definition definition = groups_definition("orders", "g");

    EXPECT_OK(sl_registry_update(g->rig.host->registry, &definition, ignore_end, NULL));
    server_rig_run(&g->rig);
}

/* Others are given at once what it still works on: decision 15. */
TEST(a_plain_client_whose_group_is_changed_while_it_works_is_not_drained)
{
    groups g;
    server_call *stop;

    begin(&g, 2);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 2 });
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    update(&g);
    EXPECT_STR(operators_heard(stop), "1/0:2 1/0:0 1/1:0-1/2! OK");
    EXPECT_STR(operators_reports(&g, WHO(0)), "a=dropped:0/2/0^operator");
    groups_done(&g);
}

/* That its program is there again says nothing of the work that it had begun before. */
TEST(a_plain_client_that_connects_again_has_not_come_back_with_what_it_held)
{
    groups g;
    server_call *a, *b, *stop;
    sl_uuid id;

    begin(&g, 3);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 2 });
    b = groups_join(&g, (groups_consumer){ .name = "b", .window = 1, .extensions = true });
    id = groups_id(b, 1);
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }, .once = true, WAIT_A_MINUTE));
    update(&g);
    EXPECT_STR(operators_heard(stop), "2/0:3 2/0:1 2/1:1-1/2");
    a = groups_join(&g, (groups_consumer){ .name = "a", .window = 2 });
    EXPECT_HEARD(a, "confirmed:orders::g"); /* the stop is for it too */
    b = groups_join(&g, (groups_consumer){
                            .name = "b", .window = 1, .extensions = true, .resume = &id, .resume_count = 1 });
    groups_send_ids(b, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    EXPECT(stop->ended && stop->status == SL_STATUS_OK);
    EXPECT(strstr(operators_heard(stop), ":0-1/2! OK") != NULL);
    groups_done(&g);
}

/* --- the group is not open yet --- */

static void create_half(groups *g, sl_store *store)
{
    const sl_group_definition definition = groups_definition("orders", "h");

    groups_held_store_hold(store, true);
    EXPECT_OK(sl_registry_create(g->rig.host->registry, &definition, ignore_end, NULL));
    turn_until_still(g);
    groups_held_store_hold(store, false);
    sl_host_poll(g->rig.host); /* it exists, */
    groups_held_store_hold(store, true);
    turn_until_still(g);
    EXPECT(sl_desk_is_opening(groups_find(g, "orders", "h"))); /* and its first record is on its way */
}

/* Who waits for the group to open is not known, so "nobody is there" would be wrong. */
TEST(a_stop_for_once_of_a_group_that_is_being_opened_is_to_be_tried_again)
{
    static const sl_wire_who whom[] = { { NAMED("a") },
                                        { .stream = SL_STR_INIT("orders"), .group = SL_STR_INIT("h") },
                                        { LABELLED("41") } };
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call, *stop;

    begin_on(&g, store, 1);
    create_half(&g, store);
    call = groups_call(&g, (groups_consumer){ .group = "h", .name = "a", .window = 1, .extensions = true });
    for (size_t i = 0; i < sizeof whom / sizeof whom[0]; i++) {
        stop = operators_stop(&g, STOP(.who = whom[i], .once = true, WAIT_A_MINUTE));
        EXPECT_STR(operators_heard(stop), "UNAVAILABLE");
    }
    let_sync(&g, store);
    EXPECT_HEARD(call, "confirmed:orders::h orders:0");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "1/0:1");
    groups_done(&g);
}

/* --- names that are too long --- */

TEST(a_connection_name_that_is_too_long_is_the_same_everywhere)
{
    char given[400], cut[257];
    groups g;

    memset(given, 'n', sizeof given);
    given[sizeof given - 1] = '\0';
    memset(cut, 'n', 256);
    cut[256] = '\0';
    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = given, .window = 1 });
    EXPECT_EQ(strlen(operators_list(&g, WHO(.consumer_name = sl_str_from(cut)))), 256 + strlen("=active:1"));
    EXPECT_EQ(strlen(operators_list(&g, WHO(.consumer_name = sl_str_from(given)))),
              256 + strlen("=active:1"));
    groups_kill(&g);
    EXPECT_EQ(strlen(operators_list(&g, WHO(.consumer_name = sl_str_from(cut)))), 256 + strlen("=away:1"));
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { .consumer_name = sl_str_from(cut) }))),
               "1/0:1 OK");
    groups_done(&g);
}

/* --- the server ends --- */

static void free_wait(void *ctx)
{
    sl_stop_wait *const wait = ctx;

    EXPECT_EQ(wait->state, SL_WAIT_FAILED);
    sl_stop_wait_end(wait);
    free(wait);
}

TEST(who_is_told_that_the_server_ends_may_free_its_wait)
{
    const sl_operators_stop how = { .who = { NAMED("a") }, .wait_ms = 60 * 1000 };
    groups g;
    sl_stop_wait *wait;

    begin(&g, 1);
    (void)groups_join(&g, (groups_consumer){ .name = "a", .window = 1, .extensions = true });
    for (int i = 0; i < 2; i++) {
        wait = calloc(1, sizeof *wait);
        EXPECT(wait != NULL);
        wait->changed = free_wait;
        wait->ctx = wait;
        EXPECT_OK(sl_operators_stop_consumers(g.rig.host, &how, wait));
    }
    sl_operators_end_waits(g.rig.host->operators);
    groups_done(&g);
}

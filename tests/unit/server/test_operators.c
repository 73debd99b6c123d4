/* tests/unit/server/test_operators.c — operators stop consumers, wait for them, and take it back (B10, S1.35). */
#include "operators_rig.h"
#include "read_rig.h"

#include "base/cleanup.h"
#include "server/auth_inside.h"
#include "server/services.h"

#include <stdio.h>
#include <string.h>

static const sl_wire_label version_41[] = { { SL_STR_INIT("version"), SL_STR_INIT("41") } };
static const sl_wire_label version_42[] = { { SL_STR_INIT("zone"), SL_STR_INIT("a") },
                                            { SL_STR_INIT("version"), SL_STR_INIT("42") } };

#define NAMED(text)   .consumer_name = SL_STR_INIT(text)
#define OF_GROUP      .stream = SL_STR_INIT("orders"), .group = SL_STR_INIT("g")
#define LABELLED(v)   .label_key = SL_STR_INIT("version"), .label_value = SL_STR_INIT(v)
#define WAIT_A_MINUTE .wait_ms = 60 * 1000

static void begin(groups *g, unsigned events)
{
    groups_start(g);
    if (events > 0)
        reads_append(&g->rig, "orders", events);
    groups_plain(g);
}

static server_call *join_named(groups *g, const char *name)
{
    return groups_join(g, (groups_consumer){ .name = name, .window = 1, .extensions = true });
}

/* A Started without ids. */
static void says_what_it_starts(groups *g, server_call *call)
{
    groups_send_ids(call, SL_PERSISTENT_REQUEST_STARTED, NULL, 0);
    server_rig_run(&g->rig);
}

/* --- one consumer --- */

TEST(operators_stop_a_consumer_by_name_and_wait_until_it_is_drained)
{
    groups g;
    server_call *call, *other, *stop;

    begin(&g, 1);
    call = join_named(&g, "a");
    other = join_named(&g, "b");
    stop = operators_stop(
        &g, STOP(.who = { NAMED("a") }, .reason = SL_STR("deploy 43"), WAIT_A_MINUTE, .deadline_ms = 25000));
    EXPECT_HEARD(call, "confirmed:orders::g orders:0 stop-requested stopped:1^operator");
    EXPECT(sl_str_equal(groups_message(call, 2).stop_requested.reason, SL_STR("deploy 43")));
    EXPECT_EQ(groups_message(call, 2).stop_requested.deadline_ms, 25000);
    EXPECT_STR(operators_heard(stop), "1/0:1");
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 4, "settled:1 drained:1/0/0");
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 1/1:0! OK");
    reads_append(&g.rig, "orders", 2);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 6, "");
    EXPECT_HEARD_FROM(other, 1, "orders:1");
    groups_done(&g);
}

TEST(a_stop_that_waits_tells_whenever_something_changes)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 3);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 3, .extensions = true });
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    groups_ack(call, 1, 1);
    groups_ack(call, 2, 1);
    EXPECT_STR(operators_heard(stop), "1/0:3 1/0:2 1/0:1");
    groups_ack(call, 3, 1);
    EXPECT_STR(operators_heard(stop), "1/0:3 1/0:2 1/0:1 1/0:0 1/1:0! OK");
    groups_done(&g);
}

TEST(a_stop_without_wait_answers_once)
{
    groups g;

    begin(&g, 1);
    (void)join_named(&g, "a");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { NAMED("a") }))), "1/0:1 OK");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { NAMED("nobody") }))), "0/0:0! OK");
    groups_done(&g);
}

TEST(a_stop_tells_how_far_it_is_when_its_time_is_over)
{
    groups g;
    server_call *stop;

    begin(&g, 1);
    (void)join_named(&g, "a");
    (void)join_named(&g, "b");
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }, .wait_ms = 5000));
    EXPECT_STR(operators_heard(stop), "2/1:1");
    server_rig_advance(&g.rig, 4 * GROUPS_SECOND_NS);
    EXPECT(!stop->ended);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_heard(stop), "2/1:1 2/1:1 OK");
    groups_done(&g);
}

/* S1.36: a lease that runs out ends the drain as well. */
TEST(a_stop_ends_when_the_last_lease_runs_out)
{
    groups g;
    server_call *stop;

    begin(&g, 1);
    (void)join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/1:0-1/1! OK"); /* others do it again: that is no clean end */
    EXPECT_STR(operators_reports(&g, WHO(0)), "a=drained:0/0/1^operator");
    groups_done(&g);
}

/* The Started of the first is on its way when the operator asks: nobody else gets that message. What the consumer then
 * releases is reported as released. */
TEST(an_operators_hand_back_does_not_overtake_a_started)
{
    groups g;
    server_call *call, *other, *stop;

    begin(&g, 3);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 3, .extensions = true });
    groups_started(call, 1, 1);
    other = groups_join(&g, (groups_consumer){ .name = "b", .window = 5, .extensions = true });
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE, .hand_back_unstarted = true));
    EXPECT_HEARD_FROM(call, 4, "stop-requested+back stopped:3^operator");
    groups_started(call, 2, 1);
    EXPECT_HEARD_FROM(other, 1, "");
    groups_release(call, 3, 1);
    EXPECT_HEARD_FROM(other, 1, "orders:2");
    EXPECT_STR(operators_heard(stop), "1/0:3 1/0:2");
    groups_ack(call, 1, 2);
    EXPECT_HEARD_FROM(call, 6, "settled:1 settled:2 drained:2/1/0");
    EXPECT_STR(operators_heard(stop), "1/0:3 1/0:2 1/0:0 1/1:0! OK");
    EXPECT_STR(operators_reports(&g, WHO(0)), "a=drained:2/1/0^operator");
    groups_done(&g);
}

/* The wish is told, and the reason stays; Stopped answers only Stops that were sent. */
TEST(a_second_stop_may_ask_for_the_hand_back)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 1);
    call = join_named(&g, "a");
    says_what_it_starts(&g, call);
    (void)operators_stop(&g, STOP(.who = { NAMED("a") }, .reason = SL_STR("deploy 43")));
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE, .hand_back_unstarted = true));
    EXPECT_HEARD_FROM(call, 2, "stop-requested stopped:1^operator stop-requested+back");
    EXPECT(sl_str_equal(groups_message(call, 4).stop_requested.reason, SL_STR("deploy 43")));
    EXPECT_STR(operators_heard(stop), "1/0:1");
    groups_release(call, 1, 1);
    EXPECT_HEARD_FROM(call, 5, "settled:1 drained:0/1/0");
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 1/1:0! OK");
    groups_done(&g);
}

/* --- groups, labels, combinations --- */

TEST(operators_stop_everyone_of_a_group)
{
    groups g;
    server_call *a, *late, *elsewhere;
    const sl_group_definition second = groups_definition("orders", "h");

    begin(&g, 0);
    groups_create(&g, &second);
    a = join_named(&g, "a");
    elsewhere = groups_join(&g, (groups_consumer){ .group = "h", .name = "a", .extensions = true });
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { OF_GROUP }, WAIT_A_MINUTE))), "1/1:0! OK");
    late = join_named(&g, "late");
    reads_append(&g.rig, "orders", 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(a, 1, "stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_HEARD_FROM(late, 1, "stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_HEARD_FROM(elsewhere, 1, "orders:0");
    EXPECT_STR(operators_list(&g, WHO(OF_GROUP)), "a=drained:0+^operator late=drained:0+^operator");
    groups_done(&g);
}

TEST(operators_stop_a_label_in_all_groups)
{
    const sl_group_definition second = groups_definition("orders", "h");
    groups g;
    server_call *old, *new, *other;

    begin(&g, 0);
    groups_create(&g, &second);
    old = groups_join(
        &g, (groups_consumer){ .name = "a", .extensions = true, .labels = version_41, .label_count = 1 });
    new = groups_join(
        &g, (groups_consumer){ .name = "b", .extensions = true, .labels = version_42, .label_count = 2 });
    other = groups_join(
        &g, (groups_consumer){
                .group = "h", .name = "c", .extensions = true, .labels = version_42, .label_count = 2 });
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { LABELLED("42") }, WAIT_A_MINUTE))),
               "2/2:0! OK");
    EXPECT_HEARD_FROM(old, 1, "");
    EXPECT_HEARD_FROM(new, 1, "stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_HEARD_FROM(other, 1, "stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_STR(operators_list(&g, WHO(LABELLED("41"))), "a=active:0");
    groups_done(&g);
}

/* S1.35, S1.26: the rule is durable, so a restart is no way around it. */
TEST(a_stop_by_name_holds_for_who_joins_later_and_over_a_restart)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = join_named(&g, "a");
    (void)operators_stop(&g, STOP(.who = { NAMED("a") }));
    server_call_cancel(call);
    server_rig_run(&g.rig);
    call = join_named(&g, "a");
    EXPECT_HEARD(call, "confirmed:orders::g stop-requested stopped:0^operator drained:0/0/0");
    EXPECT(groups_message(call, 1).stop_requested.reason.bytes > 0);
    groups_cut_power(&g);
    call = join_named(&g, "a");
    EXPECT_HEARD(call, "confirmed:orders::g stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(NAMED("a")))), "0-1");
    EXPECT_HEARD_FROM(join_named(&g, "a"), 1, "orders:0#1");
    groups_done(&g);
}

TEST(a_stop_once_makes_no_rule)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 1);
    call = join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE, .once = true));
    groups_ack(call, 1, 1);
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 1/1:0! OK");
    reads_append(&g.rig, "orders", 1);
    EXPECT_HEARD_FROM(join_named(&g, "a"), 1, "orders:1");
    groups_done(&g);
}

TEST(a_name_with_a_label_stops_those_that_are_there)
{
    groups g;
    server_call *fits, *other;

    begin(&g, 0);
    fits = groups_join(
        &g, (groups_consumer){ .name = "a", .extensions = true, .labels = version_42, .label_count = 2 });
    other = groups_join(
        &g, (groups_consumer){ .name = "b", .extensions = true, .labels = version_42, .label_count = 2 });
    EXPECT_STR(
        operators_heard(operators_stop(&g, STOP(.who = { NAMED("a"), LABELLED("42") }, WAIT_A_MINUTE))),
        "1/0:0 1/1:0! OK");
    EXPECT_HEARD_FROM(fits, 1, "stop-requested stopped:0^operator drained:0/0/0");
    EXPECT_HEARD_FROM(other, 1, "");
    EXPECT_HEARD_FROM(
        groups_join(
            &g, (groups_consumer){ .name = "a", .extensions = true, .labels = version_42, .label_count = 2 }),
        1, "");
    groups_done(&g);
}

/* --- taking it back --- */

/* B10: until it is drained. */
TEST(operators_take_a_stop_back_before_it_is_drained)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 1);
    call = join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .wait_ms = 2000));
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(NAMED("a")))), "1-0");
    EXPECT_STR(operators_list(&g, WHO(0)), "a=active:1");
    groups_ack(call, 1, 1);
    reads_append(&g.rig, "orders", 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "settled:1 orders:1");
    server_rig_advance(&g.rig, 3 * GROUPS_SECOND_NS);
    EXPECT(stop->ended); /* it was never drained */
    EXPECT_STR(operators_reports(&g, WHO(0)), "");
    groups_done(&g);
}

TEST(a_consumer_that_is_drained_or_has_stopped_itself_is_too_late_to_be_resumed)
{
    groups g;

    begin(&g, 1);
    groups_stop(join_named(&g, "itself"), false);
    (void)join_named(&g, "idle");
    (void)operators_stop(&g, STOP(.who = { OF_GROUP }));
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(OF_GROUP))), "0-2");
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(NAMED("nobody")))), "0-0");
    groups_done(&g);
}

TEST(a_stop_once_is_taken_back_like_any_other)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = join_named(&g, "a");
    (void)operators_stop(&g, STOP(.who = { NAMED("a") }, .once = true));
    EXPECT_STR(operators_list(&g, WHO(0)), "a=stopping:1^operator");
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(NAMED("a")))), "1-0");
    groups_ack(call, 1, 1);
    reads_append(&g.rig, "orders", 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "settled:1 orders:1");
    groups_done(&g);
}

/* A resumed consumer is asked like any other when the server stops. */
TEST(a_consumer_that_was_resumed_is_stopped_by_the_server)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = join_named(&g, "a");
    (void)operators_stop(&g, STOP(.who = { NAMED("a") }));
    (void)operators_resume(&g, WHO(NAMED("a")));
    sl_host_stop(g.rig.host, "maintenance");
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "stop-requested stopped:1^server");
    groups_done(&g);
}

/* --- those that go away --- */

TEST(a_stop_waits_for_who_comes_back_with_its_leases)
{
    groups g;
    server_call *call, *stop;
    server_peer *peer;
    sl_uuid id;

    begin(&g, 1);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(
        &g, (groups_consumer){
                .name = "a", .window = 1, .extensions = true, .peer = peer, .reconnect_ms = 5000 });
    id = groups_id(call, 1);
    groups_started(call, 1, 1);
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=away:1^operator");
    EXPECT(!stop->ended);
    call = groups_join(
        &g,
        (groups_consumer){ .name = "a", .window = 1, .extensions = true, .resume = &id, .resume_count = 1 });
    EXPECT_HEARD_FROM(call, 1, "stop-requested stopped:1^operator");
    EXPECT(!stop->ended);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    EXPECT(stop->ended);
    EXPECT_STR(operators_heard(stop), "1/0:1 2/1:1 2/1:0 2/2:0! OK");
    groups_done(&g);
}

static void ignore(void *ctx, sl_err err)
{
    (void)ctx;
    (void)err;
}

TEST(a_stop_ends_when_who_was_meant_leaves_or_its_group_is_deleted)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 2);
    call = join_named(&g, "a");
    (void)join_named(&g, "b");
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }, WAIT_A_MINUTE));
    server_call_cancel(call);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_heard(stop), "2/0:2 2/1:1-1/1");
    EXPECT_OK(sl_registry_delete(g.rig.host->registry, SL_STR("orders"), SL_STR("g"), ignore, NULL));
    server_rig_run(&g.rig);
    EXPECT_STR(operators_heard(stop), "2/0:2 2/1:1-1/1 ABORTED");
    EXPECT_STR(operators_reports(&g, WHO(0)), "b=dropped:0/0/1^operator a=left:0/0/1^operator");
    groups_done(&g);
}

/* "Safe to terminate" would not be true: it may still work on what others are given now. */
TEST(a_stop_tells_of_who_went_away_with_messages)
{
    groups g;
    server_call *call, *stop;
    server_peer *peer;

    begin(&g, 2);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 2, .extensions = true, .peer = peer });
    groups_started(call, 1, 2);
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    server_rig_break(peer);
    server_rig_advance(&g.rig, 3 * GROUPS_SECOND_NS);
    EXPECT_STR(operators_heard(stop), "1/0:2 1/1:0-1/2! OK");
    groups_done(&g);
}

TEST(an_operator_hands_back_nothing_of_who_never_says_what_it_starts)
{
    groups g;
    server_call *stop;

    begin(&g, 1);
    (void)join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, .hand_back_unstarted = true, WAIT_A_MINUTE));
    EXPECT_STR(operators_heard(stop), "1/0:1");
    groups_done(&g);
}

/* A group that is stopped stands still, and whoever asked is the one who can know. */
TEST(a_stop_says_where_newcomers_are_stopped_and_a_resume_whether_there_was_a_rule)
{
    const sl_wire_who group = { OF_GROUP };
    groups g;

    begin(&g, 0);
    EXPECT_EQ(operators_rules_back(operators_resume(&g, group)), 0);
    EXPECT_EQ(operators_rules(operators_stop(&g, STOP(.who = group))), 1);
    EXPECT_EQ(operators_rules(operators_stop(&g, STOP(.who = group))), 1); /* it was there before */
    EXPECT_EQ(operators_rules_back(operators_resume(&g, group)), 1);
    EXPECT_EQ(operators_rules_back(operators_resume(&g, group)), 0);
    EXPECT_EQ(operators_rules(operators_stop(&g, STOP(.who = group, .once = true))), 0);
    EXPECT_EQ(operators_rules(operators_stop(&g, STOP(.who = { NAMED("nobody") }))), 0); /* in which group? */
    EXPECT_EQ(operators_rules(operators_stop(&g, STOP(.who = { NAMED("a"), LABELLED("42") }))), 0);
    groups_done(&g);
}

/* --- what is refused --- */

TEST(a_stop_of_everybody_or_of_nothing_that_exists_is_refused)
{
    char long_text[2000];
    groups g;

    begin(&g, 0);
    memset(long_text, 'x', sizeof long_text);
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(0))), "INVALID_ARGUMENT");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { .group = SL_STR("g") }))),
               "INVALID_ARGUMENT");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { .label_value = SL_STR("42") }))),
               "INVALID_ARGUMENT");
    EXPECT_STR(operators_heard(
                   operators_stop(&g, STOP(.who = { .consumer_name = { long_text, sizeof long_text } }))),
               "INVALID_ARGUMENT");
    EXPECT_STR(operators_heard(
                   operators_stop(&g, STOP(.who = { OF_GROUP }, .reason = { long_text, sizeof long_text }))),
               "INVALID_ARGUMENT");
    EXPECT_STR(operators_heard(
                   operators_stop(&g, STOP(.who = { .stream = SL_STR("orders"), .group = SL_STR("no") }))),
               "NOT_FOUND");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { .stream = SL_STR("no") }))), "NOT_FOUND");
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(.stream = SL_STR("no")))), "NOT_FOUND");
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(0))), "INVALID_ARGUMENT");
    EXPECT_STR(
        operators_resumed(operators_resume(&g, WHO(.stream = SL_STR("orders"), .group = SL_STR("no")))),
        "NOT_FOUND");
    groups_done(&g);
}

TEST(rules_of_a_group_are_bounded_and_taking_one_back_makes_room)
{
    groups g;

    begin(&g, 0);
    for (unsigned i = 0; i <= SL_RULES_MAX; i++) {
        char name[16];
        const char *const wanted = i < SL_RULES_MAX ? "0/0:0! OK" : "RESOURCE_EXHAUSTED";

        snprintf(name, sizeof name, "n%u", i);
        EXPECT_STR(operators_heard(
                       operators_stop(&g, STOP(.who = { OF_GROUP, .consumer_name = sl_str_from(name) }))),
                   wanted);
    }
    EXPECT_STR(operators_resumed(operators_resume(&g, WHO(OF_GROUP, NAMED("n7")))), "0-0");
    EXPECT_STR(operators_heard(operators_stop(&g, STOP(.who = { OF_GROUP, NAMED("n64") }))), "0/0:0! OK");
    groups_done(&g);
}

TEST(only_operators_may_call_the_service_of_operators)
{
    static const sl_method *const rows[] = { &sl_method_operators_consumers, &sl_method_operators_stop,
                                             &sl_method_operators_resume };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_EQ(rows[i]->who, SL_FOR_OPERATORS);
}

TEST(operators_are_refused_when_the_server_stops)
{
    groups g;
    sl_stop_wait wait = { 0 };
    const sl_operators_stop how = { .who = { OF_GROUP } };

    begin(&g, 0);
    sl_host_stop(g.rig.host, "maintenance");
    EXPECT_ERR(sl_operators_stop_consumers(g.rig.host, &how, &wait), SL_ERR_DRAINING);
    EXPECT_ERR(sl_operators_resume(g.rig.host, &how.who, &wait), SL_ERR_DRAINING);
    sl_stop_wait_end(&wait);
    groups_done(&g);
}

/* --- durability, and clients that do not read --- */

/* Who asks may act on the answer, so it comes after the rule is on the disk. */
TEST(a_stop_is_answered_when_its_rule_is_durable)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *stop, *resume;

    groups_start_on(&g, store);
    groups_plain(&g);
    groups_held_store_hold(store, true);
    stop = operators_stop(&g, STOP(.who = { OF_GROUP }));
    EXPECT_STR(operators_heard(stop), "");
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_heard(stop), "0/0:0! OK");
    groups_held_store_hold(store, true);
    resume = operators_resume(&g, WHO(OF_GROUP));
    EXPECT(!resume->ended);
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_resumed(resume), "0-0");
    groups_done(&g);
}

/* B17. */
TEST(a_consumer_is_safe_to_terminate_when_its_drain_is_durable)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call, *stop;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    groups_held_store_hold(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 1) }, 1);
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=drained:0^operator");
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0");
    EXPECT_STR(operators_reports(&g, WHO(0)), "");
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_list(&g, WHO(NAMED("a"))), "a=drained:0+^operator");
    EXPECT_STR(operators_heard(stop), "1/0:1 1/0:0 1/1:0! OK");
    groups_done(&g);
}

TEST(a_stop_that_its_client_cancels_leaves_nothing_behind)
{
    groups g;
    server_call *call, *stop;

    begin(&g, 1);
    call = join_named(&g, "a");
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    server_call_cancel(stop);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_list(&g, WHO(0)), "a=stopping:1^operator"); /* the stop stays */
    groups_ack(call, 1, 1);
    EXPECT_STR(operators_list(&g, WHO(0)), "a=drained:0+^operator");
    groups_done(&g);
}

/* The newest state replaces what a slow client has not got yet, and the last one always arrives. */
TEST(a_slow_operator_gets_the_last_message_of_a_stop)
{
    groups g;
    server_call *call, *stop;
    server_peer *peer;

    begin(&g, 3);
    call = groups_join(&g, (groups_consumer){ .name = "a", .window = 3, .extensions = true });
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE));
    peer = stop->peer;
    peer->stuck = true; /* it is the connection of the consumer too */
    for (size_t i = 1; i <= 3; i++)
        groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, i) }, 1);
    server_rig_run(&g.rig);
    peer->stuck = false;
    server_rig_run(&g.rig);
    EXPECT(stop->ended && stop->status == SL_STATUS_OK);
    EXPECT(strstr(operators_heard(stop), "1/1:0! OK") != NULL);
    groups_done(&g);
}

/* B17: drained is not yet safe. */
TEST(a_stop_of_who_is_drained_already_waits_until_that_is_durable)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call, *stop;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = join_named(&g, "a");
    groups_stop(call, false);
    groups_held_store_hold(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 1) }, 1);
    stop = operators_stop(&g, STOP(.who = { NAMED("a") }, WAIT_A_MINUTE, .once = true));
    EXPECT_STR(operators_heard(stop), "1/0:0");
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_STR(operators_heard(stop), "1/0:0 1/1:0! OK");
    groups_done(&g);
}

/* It was told once, and Stopped is not said again to who did not ask. */
TEST(a_consumer_that_an_operator_has_stopped_is_not_asked_again_by_the_server)
{
    groups g;
    server_call *call;

    begin(&g, 1);
    call = join_named(&g, "a");
    (void)operators_stop(&g, STOP(.who = { NAMED("a") }));
    sl_host_stop(g.rig.host, "maintenance");
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "");
    EXPECT_EQ(g.rig.host->counters.consumers_draining_now, 1);
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 4, "settled:1 drained:1/0/0 UNAVAILABLE");
    groups_done(&g);
}

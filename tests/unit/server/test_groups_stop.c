/* tests/unit/server/test_groups_stop.c — Stop, Stopped, Drained, and the other ways in which a consumer ends (S1, B1, B2). */
#include "operators_rig.h"
#include "read_rig.h"

#include "server/door.h"

#include <string.h>

/* S1.1 - S1.4, S1.16, S1.18: the whole way. */
TEST(stop_is_answered_and_drained_follows_the_last_ack)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 5);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 3, .extensions = true });
    groups_stop(call, false);
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1 orders:2 stopped:3");
    groups_ack(call, 1, 2);
    EXPECT_HEARD_FROM(call, 5, "settled:2"); /* S1.2, S1.11: a free slot gets nothing */
    groups_ack(call, 3, 1);
    EXPECT_HEARD_FROM(call, 6, "settled:1 drained:3/0/0");
    reads_append(&g.rig, "orders", 1);
    EXPECT_HEARD_FROM(call, 8, ""); /* S1.3: open, and quiet */
    EXPECT(!call->ended);
    groups_done(&g);
}

/* S1.5, S1.19, S1.26: nacks count, and what was not started can be handed back with the Stop. */
TEST(stop_hands_back_what_was_not_started_and_another_gets_it_uncounted)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_started(a, 2, 1);
    groups_stop(a, true);
    EXPECT_HEARD_FROM(a, 4, "stopped:1");
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD_FROM(b, 1, "orders:0 orders:2"); /* S1.24, S1.25: in order, retry count 0 */
    groups_nack(a, 2, 1, SL_WIRE_NACK_RETRY, "");
    EXPECT_HEARD_FROM(a, 5, "settled:1 drained:1/2/0");
    EXPECT_HEARD_FROM(b, 3, "orders:1#1");
    groups_done(&g);
}

/* S1.9, S1.15 */
TEST(a_second_stop_says_that_it_is_the_second)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_stop(call, false);
    groups_stop(call, false);
    EXPECT_HEARD_FROM(call, 2, "stopped:1 stopped:1!");
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 4, "settled:1 drained:1/0/0");
    groups_stop(call, false);
    EXPECT_HEARD_FROM(call, 6, "stopped:0!");
    groups_done(&g);
}

/* S1.28: without extensions the gate shuts, and nothing is sent that an old client does not know. */
TEST(stop_without_extensions_is_silent)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_stop(call, false);
    reads_append(&g.rig, "orders", 1);
    groups_ack(call, 1, 1);
    EXPECT_HEARD(call, "confirmed:orders::g orders:0");
    groups_done(&g);
}

TEST(half_closing_means_stop)
{
    groups g;
    server_call *old, *next;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    old = groups_join(&g, (groups_consumer){ 0 });
    server_call_half_close(old);
    server_rig_run(&g.rig);
    next = groups_join(&g, (groups_consumer){ 0 });
    reads_append(&g.rig, "orders", 1);
    EXPECT_HEARD(old, "confirmed:orders::g orders:0"); /* open: some clients cannot stand an end with OK */
    EXPECT_HEARD_FROM(next, 1, "orders:1");
    groups_done(&g);
}

/* S1.8, S1.23: cancelling gives everything back at once. Nobody said what it had started, so it counts. */
TEST(cancelling_gives_everything_to_others_at_once)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ 0 });
    b = groups_join(&g, (groups_consumer){ 0 });
    server_call_cancel(a);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "orders:0#1 orders:1#1");
    groups_done(&g);
}

/* B2: with Started the server knows, and charges only that. */
TEST(only_what_was_started_is_charged_when_its_consumer_leaves)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_started(a, 2, 1);
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    server_call_cancel(a);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "orders:0 orders:1#1 orders:2");
    groups_done(&g);
}

/* B4: the lease belongs to the name, not to the socket. */
TEST(a_consumer_that_lost_its_connection_comes_back_to_what_it_had_started)
{
    groups g;
    server_call *a, *b, *again;
    server_peer *peer;
    sl_uuid held;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    a = groups_join(&g, (groups_consumer){ .extensions = true, .name = "worker-1", .peer = peer });
    groups_started(a, 1, 1);
    held = groups_id(a, 1);
    b = groups_join(&g, (groups_consumer){ .extensions = true, .name = "worker-2" });
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "orders:1"); /* never started: at once, uncounted */
    again = groups_join(
        &g, (groups_consumer){ .extensions = true, .name = "worker-1", .resume = &held, .resume_count = 1 });
    EXPECT_HEARD_FROM(again, 1, ""); /* not sent again */
    groups_send_ids(again, SL_PERSISTENT_REQUEST_ACK, &held, 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(again, 1, "settled:1");
    EXPECT_HEARD_FROM(b, 2, "");
    groups_done(&g);
}

TEST(a_consumer_that_stays_away_loses_what_it_had_started)
{
    groups g;
    server_call *a, *b;
    server_peer *peer;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    a = groups_join(&g,
                    (groups_consumer){ .extensions = true, .name = "w", .peer = peer, .reconnect_ms = 500 });
    groups_started(a, 1, 1);
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "");
    server_rig_advance(&g.rig, GROUPS_SECOND_NS / 2 + 1);
    EXPECT_HEARD_FROM(b, 1, "orders:0#1");
    groups_done(&g);
}

/* S1.34: the name of another user's consumer is not enough to take what it holds; and what is listed in vain is lost. */
TEST(what_is_resumed_in_vain_is_lost)
{
    const sl_uuid unknown = { { 7 } };
    groups g;
    server_call *call;

    groups_start(&g);
    groups_plain(&g);
    call = groups_join(
        &g, (groups_consumer){ .extensions = true, .name = "w", .resume = &unknown, .resume_count = 1 });
    EXPECT_HEARD(call, "confirmed:orders::g settled:0/1");
    groups_done(&g);
}

TEST(a_released_event_goes_to_another_and_is_confirmed)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_release(a, 1, 1);
    EXPECT_HEARD_FROM(a, 2, "settled:1");
    EXPECT_HEARD_FROM(b, 1, "orders:0");
    groups_started(a, 1, 1); /* too late: only what is lost is answered */
    EXPECT_HEARD_FROM(a, 3, "settled:0/1");
    groups_done(&g);
}

TEST(an_extended_lease_lasts)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_extend(a, 1, 1, 60000);
    server_rig_advance(&g.rig, 59 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(b, 1, "");
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(b, 1, "orders:0#1");
    groups_done(&g);
}

/* S1.31: the lease of a stopping consumer still ends, and its Drained says so. */
TEST(a_lease_that_runs_out_while_stopping_is_counted_as_lost)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_stop(call, false);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 2, "stopped:1 drained:0/0/1");
    groups_done(&g);
}

/* S1.33: who is stopping does not count against the maximum. */
TEST(a_replacement_may_come_while_the_old_one_stops)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *old, *early, *next;

    groups_start(&g);
    definition.settings.max_subscriber_count = 1;
    reads_append(&g.rig, "orders", 1);
    groups_create(&g, &definition);
    old = groups_join(&g, (groups_consumer){ .extensions = true });
    early = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD(early, "FAILED_PRECONDITION");
    EXPECT_STR(server_call_trailer(early, "exception"), "maximum-subscribers-reached");
    EXPECT_STR(early->message, "Maximum subscriptions reached for subscription group g on stream orders.");
    groups_stop(old, false);
    next = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD(next, "confirmed:orders::g");
    groups_done(&g);
}

/* --- what is durable --- */

/* S1.18, B3: nobody hears that something is settled or drained before the disk has it; events do not wait for that. */
TEST(settled_and_drained_wait_for_the_disk_and_events_do_not)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 2, .extensions = true });
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    groups_held_store_hold(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 1) }, 1);
    while (server_rig_turn(&g.rig))
        continue;
    EXPECT_HEARD_FROM(call, 3, "orders:2"); /* its lease is written */
    groups_send(call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STOP });
    groups_send_ids(call, SL_PERSISTENT_REQUEST_RELEASE,
                    (sl_uuid[]){ groups_id(call, 2), groups_id(call, 3) }, 2);
    while (server_rig_turn(&g.rig))
        continue;
    EXPECT_HEARD_FROM(call, 4, "stopped:2"); /* a promise about the future, and not about the disk */
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 5, "settled:1 settled:2 drained:0/2/0");
    groups_done(&g);
}

/* A lease is written before its event leaves: a server that is killed knows of everything that it gave out. */
TEST(an_event_waits_until_its_lease_is_written)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    groups_held_store_hold_all(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_RELEASE, (sl_uuid[]){ groups_id(call, 1) }, 1);
    while (server_rig_turn(&g.rig))
        continue;
    EXPECT_HEARD_FROM(call, 2, "");
    groups_held_store_hold_all(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 2, "orders:0 settled:1");
    groups_done(&g);
}

/* Drained is durable also when there was nothing to be acked. */
TEST(drained_waits_for_what_was_handed_back_with_stop)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call, *other;

    groups_start_on(&g, store);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    other = groups_join(&g, (groups_consumer){ .extensions = true });
    reads_append(&g.rig, "orders", 2);
    groups_held_store_hold(store, true);
    groups_send(call,
                &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STOP, .hand_back_unstarted = true });
    while (server_rig_turn(&g.rig))
        continue;
    EXPECT_HEARD_FROM(call, 2, "stopped:0"); /* written, and so is the next lease of what came back */
    EXPECT_HEARD_FROM(other, 1, "orders:1 orders:0");
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 3, "drained:0/1/0");
    groups_done(&g);
}

/* Semantics 10.4: a full disk refuses the link; the message is neither lost nor given out again, and everything goes on later. */
TEST(parking_waits_for_room_on_the_disk)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_held_store_refuse(store, true);
    groups_held_store_hold(store, true);
    groups_send(call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_NACK,
                                                .action = SL_WIRE_NACK_PARK,
                                                .ids = { .count = 1,
                                                         .list = (sl_uuid[]){ groups_id(call, 1) },
                                                         .form = SL_WIRE_ID_STRUCTURED } });
    while (server_rig_turn(&g.rig))
        continue;
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, (sl_uuid[]){ groups_id(call, 2) }, 1);
    while (server_rig_turn(&g.rig))
        continue;
    groups_held_store_hold(store, false);
    sl_host_poll(g.rig.host);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 3, ""); /* the log goes on behind what was refused, and never without it */
    groups_held_store_refuse(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 3, "settled:1 settled:1");
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "0:0@orders");
    groups_done(&g);
}

/* --- the server stops --- */

/* B14: it asks, takes acks while the door is shut for appends, and ends the call when the consumer is drained. */
TEST(a_stopping_server_lets_its_consumers_finish)
{
    groups g;
    server_call *with, *without, *idle;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    with = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    without = groups_join(&g, (groups_consumer){ .window = 1 });
    idle = groups_join(&g, (groups_consumer){ .extensions = true });
    sl_host_stop(g.rig.host, "maintenance");
    sl_door_shut(g.rig.host->door, "maintenance");
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(with, 2, "stop-requested stopped:1^server");
    EXPECT(sl_str_equal(groups_message(with, 2).stop_requested.reason, SL_STR("maintenance")));
    EXPECT(groups_message(with, 2).stop_requested.deadline_ms > 0);
    EXPECT_HEARD_FROM(without, 2, "");
    EXPECT_HEARD_FROM(idle, 1, "stop-requested stopped:0^server drained:0/0/0 UNAVAILABLE");
    EXPECT_EQ(g.rig.host->counters.consumers_draining_now, 2);
    groups_nack(with, 1, 1, SL_WIRE_NACK_PARK, "");
    EXPECT_HEARD_FROM(with, 4, "settled:1 drained:1/0/0 UNAVAILABLE");
    groups_ack(without, 1, 1);
    EXPECT_HEARD_FROM(without, 2, "UNAVAILABLE");
    EXPECT_EQ(g.rig.host->counters.consumers_draining_now, 0);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "0:0@orders");
    groups_done(&g);
}

/* B4: a connection that breaks because the server ends is no reason to give anything to somebody else. */
TEST(leases_stay_when_the_server_cuts_its_connections)
{
    groups g;
    server_call *call, *other;
    server_peer *peer;
    sl_uuid id;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(&g, (groups_consumer){ .name = "w", .peer = peer });
    id = groups_id(call, 1);
    sl_host_stop(g.rig.host, "maintenance");
    server_rig_run(&g.rig);
    server_rig_break(peer);
    server_rig_run(&g.rig);
    EXPECT_EQ(g.rig.host->counters.consumers_draining_now, 0);
    groups_kill(&g);
    other = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(other, 1, "");
    call = groups_join(&g, (groups_consumer){ .name = "w" });
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(other, 1, "");
    groups_done(&g);
}

/* What it was to be sent goes back in its name when its connection breaks, so it holds nothing; but it was not drained. */
TEST(giving_back_what_never_left_is_no_drain)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;
    server_peer *peer;
    sl_uuid id;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    call = groups_join(&g, (groups_consumer){ .name = "w", .window = 1, .extensions = true, .peer = peer });
    id = groups_id(call, 1);
    groups_held_store_hold_all(store, true);
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id,
                    1); /* the next one is leased, and that is never written */
    groups_send(call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STOP });
    for (int i = 0; i < 10; i++)
        server_rig_turn(&g.rig);
    server_rig_break(peer);
    for (int i = 0; i < 10; i++)
        server_rig_turn(&g.rig);
    groups_held_store_hold_all(store, false);
    server_rig_advance(&g.rig, GROUPS_SECOND_NS);
    EXPECT_STR(operators_reports(&g, WHO(0)), "w=away:0/0/1^consumer");
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(call, 1, "orders:1");
    groups_done(&g);
}

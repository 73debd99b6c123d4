/* tests/unit/server/test_groups_restart.c — what a group knows after the server was killed, lost power, or its settings were changed
 * (B4, B5; invariant 8 of the core through the store). */
#include "groups_rig.h"
#include "read_rig.h"

#include <string.h>

/* B4: exactly what is not settled, above and below what is. */
TEST(after_a_restart_exactly_the_unsettled_events_come_again)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 6);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 5 });
    groups_ack(call, 2, 1);
    groups_ack(call, 4, 1);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(call, 1, ""); /* everything is leased to who was there */
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 1, "orders:0#1 orders:2#1 orders:4#1 orders:5#1");
    groups_done(&g);
}

/* The lease of an official client is kept too, and its name may ack it. */
TEST(a_consumer_without_extensions_acks_after_a_restart_what_it_was_given_before)
{
    groups g;
    server_call *call;
    sl_uuid id;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-1" });
    id = groups_id(call, 1);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-1" });
    EXPECT_HEARD_FROM(call, 1, "");
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_run(&g.rig);
    server_rig_advance(&g.rig, 40 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 1, "");
    groups_done(&g);
}

TEST(a_consumer_with_extensions_resumes_after_a_restart_with_the_same_lease)
{
    groups g;
    server_call *call, *other;
    sl_uuid ids[2];

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true, .name = "w" });
    ids[0] = groups_id(call, 1);
    ids[1] = groups_id(call, 2);
    groups_kill(&g);
    other = groups_join(&g, (groups_consumer){ .extensions = true, .name = "other" });
    EXPECT_HEARD_FROM(other, 1, "");
    call = groups_join(
        &g, (groups_consumer){ .extensions = true, .name = "w", .resume = ids, .resume_count = 1 });
    EXPECT_HEARD_FROM(call, 1, "");
    EXPECT_HEARD_FROM(other, 1, "orders:1#1"); /* not listed: it died with the old call */
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, ids, 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 1, "settled:1");
    groups_done(&g);
}

/* B5: who was given the message before, and is not its holder any more, cannot settle it. */
TEST(an_ack_of_an_earlier_holder_is_fenced_off)
{
    groups g;
    server_call *old, *next;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    old = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    next = groups_join(&g, (groups_consumer){ .extensions = true });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(next, 1, "orders:0#1");
    EXPECT(groups_message(next, 1).event.lease_token > groups_message(old, 1).event.lease_token);
    groups_ack(old, 1, 1);
    EXPECT_HEARD_FROM(old, 2, "settled:0/1");
    groups_ack(next, 1, 1);
    EXPECT_HEARD_FROM(next, 2, "settled:1");
    groups_done(&g);
}

/* A settle after the lease ran out counts while nobody else has taken the message. */
TEST(a_late_ack_counts_while_nobody_else_has_the_event)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_stop(call, false);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 2, "stopped:1 drained:0/0/1 settled:1");
    groups_done(&g);
}

TEST(what_was_settled_survives_a_power_cut)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_ack(call, 2, 1);
    EXPECT_HEARD_FROM(call, 4, "settled:1");
    groups_cut_power(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT(strstr(groups_heard(call), "orders:1") == NULL);
    EXPECT(strstr(groups_heard(call), "orders:0") != NULL);
    EXPECT(strstr(groups_heard(call), "orders:2") != NULL);
    groups_done(&g);
}

/* The lease ran out before the event was read again, and that was the last try: the link is made when it is met. */
TEST(an_event_that_is_parked_before_it_is_read_again_is_linked_all_the_same)
{
    sl_group_definition definition = groups_definition("$all", "g");
    groups g;
    server_call *call;

    groups_start(&g);
    definition.settings.max_retry_count = 0;
    reads_append(&g.rig, "orders", 2);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .stream = "$all", .window = 1 });
    EXPECT_HEARD_FROM(call, 1, "orders:0");
    sl_clock_manual_advance(&g.rig.time, 40 * GROUPS_SECOND_NS);
    groups_kill(&g);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-$all::g-parked"), "0:0@orders");
    call = groups_join(&g, (groups_consumer){ .stream = "$all" });
    EXPECT_HEARD_FROM(call, 1, "orders:1");
    groups_done(&g);
}

/* The same of one whose consumer has come back and gives its reason, which is to stand in the link. */
TEST(why_an_event_is_parked_is_kept_until_it_is_read_again)
{
    static const char parked[] = "$persistentsubscription-orders::g-parked";
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;
    sl_uuid ids[2];

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-1" });
    ids[0] = groups_id(call, 1);
    ids[1] = groups_id(call, 2);
    groups_held_store_stick(store, true);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ .name = "pod-1" });
    groups_send_nack(call, ids[0], SL_WIRE_NACK_PARK, "bad item");
    groups_send_nack(call, ids[1], SL_WIRE_NACK_PARK, "worse item");
    server_rig_run(&g.rig);
    groups_held_store_stick(store, false);
    EXPECT_STR(groups_stored(&g, parked), "");
    reads_append(&g.rig, "other", 1); /* the store has something to say, so readers ask it again */
    server_rig_run(&g.rig);
    EXPECT_STR(groups_stored(&g, parked), "0:0@orders 1:1@orders");
    EXPECT(strstr(groups_stored_metadata(&g, parked), "\\nbad item") != NULL);
    EXPECT(strstr(groups_stored_metadata(&g, parked), "\\nworse item") != NULL);
    groups_done(&g);
}

/* What was known and is gone is settled; nobody waits for it. */
TEST(events_that_are_gone_after_a_restart_are_passed_over)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 4);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 2 });
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    reads_set_metadata(&g.rig, "orders", "{\"$tb\":3}");
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 1, "orders:3 orders:3#1");
    groups_done(&g);
}

/* The same when nothing is behind them that could tell. */
TEST(events_that_are_gone_at_the_end_of_a_stream_are_settled_too)
{
    groups g;
    server_call *call;
    sl_wire_group_info info;
    sl_arena arena;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    reads_delete(&g.rig, "orders");
    groups_kill(&g);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_desk_info(groups_find(&g, "orders", "g"), &arena, &info));
    EXPECT_EQ(info.in_flight_count + info.read_buffer_count + info.retry_buffer_count, 0);
    sl_arena_done(&arena);
    groups_done(&g);
}

/* A replay that was under way goes on with what had been given out; what had not is still parked. */
TEST(a_replay_survives_a_restart)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 3, SL_WIRE_NACK_PARK, "");
    EXPECT_OK(sl_desk_replay_parked(groups_find(&g, "orders", "g"), UINT64_MAX));
    server_rig_run(&g.rig);
    EXPECT_EQ(call->message_count, 7);
    groups_ack(call, 5, 1);
    groups_kill(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 1,
                      "orders:0<$persistentsubscription-orders::g-parked:0#1 "
                      "orders:2<$persistentsubscription-orders::g-parked:2#1");
    groups_ack(call, 1, 2);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "");
    groups_done(&g);
}

/* Unlike KurrentDB nothing is delivered again; consumers are dropped, as clients expect it. */
TEST(an_update_drops_consumers_and_keeps_leases)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *old, *next, *same;
    sl_uuid id;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    old = groups_join(&g, (groups_consumer){ .window = 2, .name = "w", .extensions = true });
    id = groups_id(old, 2);
    groups_ack(old, 1, 1);
    definition.settings.strategy = SL_STR("Pinned");
    EXPECT_OK(sl_desk_update(groups_find(&g, "orders", "g"), &definition));
    next = groups_call(&g, (groups_consumer){ 0 }); /* while its new epoch is on its way */
    server_rig_run(&g.rig);
    EXPECT_STR(server_call_trailer(old, "exception"), "persistent-subscription-dropped");
    EXPECT_EQ(old->status, SL_STATUS_CANCELLED);
    EXPECT(strstr(groups_heard(next), "orders:0") == NULL);
    same = groups_join(
        &g, (groups_consumer){ .name = "w", .extensions = true, .resume = &id, .resume_count = 1 });
    groups_send_ids(same, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT(strstr(groups_heard(next), "orders:1") == NULL);
    EXPECT(strstr(groups_heard(next), "orders:2") != NULL || strstr(groups_heard(same), "orders:2") != NULL);
    groups_done(&g);
}

TEST(information_tells_who_is_there_and_what_is_where)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *call;
    sl_wire_group_info info;
    sl_arena arena;

    groups_start(&g);
    definition.settings.extra_statistics = true;
    definition.settings.max_checkpoint_count = 2;
    reads_append(&g.rig, "orders", 7);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .window = 3, .name = "pod-1" });
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "");
    groups_ack(call, 2, 1);
    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1 << 20 });
    EXPECT_OK(sl_desk_info(groups_find(&g, "orders", "g"), &arena, &info));
    EXPECT(sl_str_equal(info.status, SL_STR("Live")));
    EXPECT(sl_str_equal(info.last_known_position, SL_STR("6")));
    EXPECT(sl_str_equal(info.last_checkpointed_position, SL_STR("1")));
    EXPECT(sl_str_equal(info.start_from, SL_STR("0")));
    EXPECT_EQ(info.parked_count, 1);
    EXPECT_EQ(info.in_flight_count, 3);
    EXPECT_EQ(info.read_buffer_count, 2);
    EXPECT_EQ(info.total_items, 5);
    EXPECT_EQ(info.connection_count, 1);
    EXPECT(sl_str_equal(info.connections[0].connection_name, SL_STR("pod-1")));
    EXPECT(sl_str_equal(info.connections[0].username, SL_STR("anonymous")));
    EXPECT_EQ(info.connections[0].available_slots, 0);
    EXPECT_EQ(info.connections[0].in_flight_messages, 3);
    EXPECT_EQ(info.connections[0].measurement_count, 14);
    sl_arena_done(&arena);
    groups_done(&g);
}

/* A long life, many snapshots: what is acked stays acked. */
TEST(a_group_survives_many_snapshots)
{
    groups g;
    server_call *call;
    size_t acked = 1;

    groups_start(&g);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 60 });
    for (unsigned round = 0; round < 60; round++) {
        reads_append_burst(&g.rig, "orders", 60, 10);
        server_rig_run(&g.rig);
        groups_ack(call, acked, 60);
        acked += 60;
    }
    EXPECT_EQ(call->message_count, 1 + 60 * 60);
    groups_kill(&g);
    reads_append(&g.rig, "orders", 1);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "confirmed:orders::g orders:3600");
    groups_done(&g);
}

static sl_uuid last_id(const server_call *call)
{
    return groups_id(call, call->message_count - 1);
}

/* The parked stream is tombstoned, so every batch with a link is refused when it is done, and written again without it. A snapshot
 * between the two must not know of it: it stands in the log before the second one. In each round such a batch is everything there
 * is to write, and begins with a lease, which is not to come twice. */
TEST(a_batch_that_is_refused_is_in_no_snapshot)
{
    groups g;
    server_call *acks, *parks, *next;

    groups_start(&g);
    groups_plain(&g);
    reads_append(&g.rig, "orders", 1);
    reads_tombstone(&g.rig, "$persistentsubscription-orders::g-parked");
    acks = groups_join(&g, (groups_consumer){ .window = 1 });
    parks = groups_join(&g, (groups_consumer){ .window = 1 });
    for (unsigned round = 0; round < 1000; round++) {
        sl_uuid acked;

        reads_append(&g.rig, "orders", 2);
        server_rig_run(&g.rig);
        acked = last_id(acks);
        groups_send_ids(acks, SL_PERSISTENT_REQUEST_ACK, &acked, 1);       /* it gets the one that is left, */
        groups_send_nack(parks, last_id(parks), SL_WIRE_NACK_PARK, "bad"); /* and in the same turn */
        server_rig_run(&g.rig);
    }
    groups_kill(&g);
    next = groups_join(&g, (groups_consumer){ .window = 3 });
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(next, 1, "orders:2000#1");
    groups_done(&g);
}

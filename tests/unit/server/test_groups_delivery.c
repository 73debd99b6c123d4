/* tests/unit/server/test_groups_delivery.c — a persistent subscription from the wire to the store and back: what is delivered, to whom, in
 * which order, and what acks and nacks do. */
#include "groups_rig.h"
#include "read_rig.h"

#include <stdio.h>
#include <string.h>

TEST(a_consumer_is_confirmed_and_then_gets_events_in_order)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "confirmed:orders::g orders:0 orders:1 orders:2");
    reads_append(&g.rig, "orders", 1);
    EXPECT_HEARD_FROM(call, 4, "orders:3");
    groups_done(&g);
}

TEST(events_wait_for_a_consumer_and_come_at_once_when_there_is_one)
{
    groups g;
    server_call *call;

    groups_start(&g);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "confirmed:orders::g"); /* the stream does not exist yet */
    reads_append(&g.rig, "orders", 2);
    EXPECT_HEARD(call, "confirmed:orders::g orders:0 orders:1");
    groups_done(&g);
}

/* Invariant 6 of the core, through the wire. */
TEST(a_consumer_never_has_more_than_its_window)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 5);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 2 });
    EXPECT_HEARD(call, "confirmed:orders::g orders:0 orders:1");
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 3, "orders:2");
    groups_ack(call, 2, 2);
    EXPECT_HEARD_FROM(call, 4, "orders:3 orders:4");
    groups_done(&g);
}

TEST(two_consumers_share_the_events_in_turn)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ 0 });
    b = groups_join(&g, (groups_consumer){ 0 });
    reads_append(&g.rig, "orders", 4);
    EXPECT_HEARD_FROM(a, 1, "orders:0 orders:2");
    EXPECT_HEARD_FROM(b, 1, "orders:1 orders:3");
    groups_done(&g);
}

TEST(a_nack_for_retry_brings_the_event_back_and_counts)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "again");
    EXPECT_HEARD_FROM(call, 3, "orders:0#1");
    groups_nack(call, 3, 1, SL_WIRE_NACK_UNKNOWN, "again");
    EXPECT_HEARD_FROM(call, 4, "orders:0#2");
    groups_done(&g);
}

TEST(a_nack_with_skip_or_stop_settles_and_the_call_goes_on)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    groups_nack(call, 1, 1, SL_WIRE_NACK_SKIP, "");
    EXPECT_HEARD_FROM(call, 2, "orders:1 settled:1");
    groups_nack(call, 2, 1, SL_WIRE_NACK_STOP, ""); /* S1.1: not our Stop */
    EXPECT_HEARD_FROM(call, 4, "orders:2 settled:1");
    groups_done(&g);
}

/* B15: the link and the record that settles are one commit. */
TEST(a_parked_event_becomes_a_link_with_a_reason)
{
    groups g;
    server_call *call, *reader;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_nack(call, 2, 1, SL_WIRE_NACK_PARK, "it is \"bad\"");
    EXPECT_HEARD_FROM(call, 3, "settled:1");
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "0:1@orders");
    reader = reads_do(&g.rig, reads_of_stream("$persistentsubscription-orders::g-parked"));
    const sl_read_response link = reads_message(reader, 0);
    EXPECT(strstr(link.event.event.custom_metadata.data,
                  "\"reason\":\"Client explicitly NAK'ed message.\\nit is \\\"bad\\\"\"") != NULL);
    EXPECT(strstr(link.event.event.custom_metadata.data, "\"subscriptionEventNumber\":1") != NULL);
    EXPECT(strstr(link.event.event.custom_metadata.data, "\"added\":\"20") != NULL);
    EXPECT(sl_str_equal(link.event.event.type, SL_STR("$>")));
    groups_done(&g);
}

TEST(an_event_that_failed_too_often_is_parked)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *call;

    groups_start(&g);
    definition.settings.max_retry_count = 1;
    reads_append(&g.rig, "orders", 1);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "");
    groups_nack(call, 2, 1, SL_WIRE_NACK_RETRY, "");
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:0#1");
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "0:0@orders");
    groups_done(&g);
}

TEST(what_is_not_acked_in_time_is_given_to_another)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .window = 1 });
    EXPECT_HEARD_FROM(a, 1, "orders:0");
    b = groups_join(&g, (groups_consumer){ 0 });
    server_rig_advance(&g.rig, 29 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(b, 1, "");
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(b, 1, "orders:0#1");
    groups_done(&g);
}

/* B5, S4.11: an ack of one who does not hold the message changes nothing and says so. */
TEST(an_ack_of_somebody_else_or_of_nothing_is_lost_and_the_call_goes_on)
{
    const sl_uuid unknown = { { 9, 9 } };
    groups g;
    server_call *a, *b;
    sl_uuid id;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .extensions = true });
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    id = groups_id(a, 1);
    groups_send_ids(b, SL_PERSISTENT_REQUEST_ACK, &id, 1);
    groups_send_ids(a, SL_PERSISTENT_REQUEST_ACK, &unknown, 1);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "settled:0/1");
    EXPECT_HEARD_FROM(a, 2, "settled:0/1");
    groups_ack(a, 1, 1);
    EXPECT_HEARD_FROM(a, 3, "settled:1");
    groups_ack(a, 1, 1); /* twice: nothing is there any more */
    EXPECT_HEARD_FROM(a, 4, "settled:0/1");
    groups_done(&g);
}

TEST(one_request_is_answered_with_one_message)
{
    const sl_uuid unknown = { { 9, 9 } };
    groups g;
    server_call *call;
    sl_uuid ids[4];

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    for (size_t i = 0; i < 3; i++)
        ids[i] = groups_id(call, 1 + i);
    ids[3] = ids[1];
    ids[1] = unknown;
    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, ids, 4);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "settled:3/1");
    groups_done(&g);
}

TEST(ids_come_in_the_form_that_each_consumer_wants)
{
    groups g;
    server_call *text, *structured;

    groups_start(&g);
    groups_plain(&g);
    structured = groups_join(&g, (groups_consumer){ 0 });
    text = groups_join(&g, (groups_consumer){ .id_form = SL_WIRE_ID_TEXT });
    reads_append(&g.rig, "orders", 2);
    EXPECT_EQ(groups_message(structured, 1).event.event.id.form, SL_WIRE_ID_STRUCTURED);
    EXPECT_EQ(groups_message(text, 1).event.event.id.form, SL_WIRE_ID_TEXT);
    groups_ack(text, 1, 1);
    groups_ack(structured, 1, 1);
    groups_done(&g);
}

/* Tokens and lease times only for who understands them; tokens grow. */
TEST(tokens_grow_and_are_sent_with_extensions_only)
{
    groups g;
    server_call *with, *without;

    groups_start(&g);
    groups_plain(&g);
    with = groups_join(&g, (groups_consumer){ .extensions = true });
    without = groups_join(&g, (groups_consumer){ 0 });
    reads_append(&g.rig, "orders", 4);
    EXPECT(groups_message(with, 1).event.lease_token > 0);
    EXPECT(groups_message(with, 2).event.lease_token > groups_message(with, 1).event.lease_token);
    EXPECT_EQ(groups_message(with, 1).event.lease_ms, 30000);
    EXPECT_EQ(groups_message(without, 1).event.lease_token, 0);
    EXPECT_EQ(groups_message(without, 1).event.lease_ms, 0);
    groups_done(&g);
}

TEST(links_are_resolved_and_acked_by_the_id_of_the_link)
{
    sl_group_definition definition = groups_definition("links", "g");
    groups g;
    server_call *call;

    groups_start(&g);
    definition.settings.resolve_links = true;
    reads_append(&g.rig, "orders", 2);
    reads_append_typed(&g.rig, "links", "$>", "1@orders");
    reads_append_typed(&g.rig, "links", "$>", "7@orders");
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .stream = "links", .extensions = true });
    EXPECT_HEARD_FROM(call, 1, "orders:1<links:0 -<links:1");
    EXPECT_EQ(groups_message(call, 1).event.event.commit_position,
              groups_message(call, 1).event.link.commit_position);
    groups_nack(call, 1, 2, SL_WIRE_NACK_PARK, "");
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-links::g-parked"), "0:1@orders 1:7@orders");
    groups_done(&g);
}

TEST(a_group_of_all_gets_what_its_filter_wants_and_not_what_it_writes_itself)
{
    static const sl_str prefixes[] = { SL_STR_INIT("or"), SL_STR_INIT("$persistent") };
    sl_group_definition definition = groups_definition("$all", "g");
    groups g;
    server_call *call;

    groups_start(&g);
    definition.filter = (sl_wire_filter){
        .kind = SL_WIRE_FILTER_GIVEN, .on = SL_WIRE_FILTER_ON_STREAM, .prefixes = prefixes, .prefix_count = 1
    };
    reads_append(&g.rig, "carts", 3);
    reads_append(&g.rig, "orders", 2);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .stream = "$all", .extensions = true });
    EXPECT_HEARD(call, "confirmed:$all::g orders:0 orders:1");
    reads_append(&g.rig, "carts", 2);
    reads_append(&g.rig, "orders", 1);
    EXPECT_HEARD_FROM(call, 3, "orders:2");
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "");
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-$all::g-parked"), "0:0@orders");
    EXPECT_HEARD_FROM(call, 4, "settled:1");
    groups_done(&g);
}

/* B15: replayed in the order in which they were parked, acked by the link, and truncated behind what is settled. */
TEST(parked_events_are_replayed_and_the_stream_is_truncated_when_they_are_settled)
{
    groups g;
    sl_desk *desk;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    desk = groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_nack(call, 1, 3, SL_WIRE_NACK_PARK, "");
    EXPECT_HEARD_FROM(call, 4, "settled:3");
    EXPECT_OK(sl_desk_replay_parked(desk, 2));
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 5,
                      "orders:0<$persistentsubscription-orders::g-parked:0 "
                      "orders:1<$persistentsubscription-orders::g-parked:1");
    groups_ack(call, 6, 1);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"),
               "0:0@orders 1:1@orders 2:2@orders");
    groups_ack(call, 5, 1);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "2:2@orders");
    EXPECT_OK(sl_desk_replay_parked(desk, UINT64_MAX));
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 9, "orders:2<$persistentsubscription-orders::g-parked:2");
    groups_nack(call, 9, 1, SL_WIRE_NACK_PARK, ""); /* fails again: a new link to the event itself */
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "3:2@orders");
    groups_done(&g);
}

static void on_truncated(void *ctx, sl_err err)
{
    EXPECT_OK(err);
    *(bool *)ctx = true;
}

TEST(parked_events_can_be_dropped)
{
    groups g;
    sl_desk *desk;
    server_call *call;
    bool done = false;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    desk = groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 3, SL_WIRE_NACK_PARK, "");
    EXPECT_OK(sl_desk_truncate_parked(desk, 2, on_truncated, &done));
    EXPECT_ERR(sl_desk_replay_parked(desk, UINT64_MAX), SL_ERR_EXISTS);
    server_rig_run_until(&g.rig, &done);
    EXPECT_STR(groups_stored(&g, "$persistentsubscription-orders::g-parked"), "2:2@orders");
    EXPECT_OK(sl_desk_replay_parked(desk, UINT64_MAX));
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(call, 4, "orders:2<$persistentsubscription-orders::g-parked:2");
    groups_done(&g);
}

/* Invariant 9 through the wire: events of one stream stay with one consumer. */
TEST(a_pinned_group_keeps_the_events_of_a_stream_together)
{
    sl_group_definition definition = groups_definition("$all", "g");
    groups g;
    server_call *calls[2];

    groups_start(&g);
    definition.settings.strategy = SL_STR("Pinned");
    groups_create(&g, &definition);
    for (unsigned i = 0; i < 2; i++)
        calls[i] = groups_join(&g, (groups_consumer){ .stream = "$all", .window = 100 });
    for (unsigned i = 0; i < 20; i++) {
        reads_append(&g.rig, "a", 1);
        reads_append(&g.rig, "b", 1);
        reads_append(&g.rig, "c", 1);
    }
    for (unsigned s = 0; s < 3; s++) {
        const char name[] = { ' ', (char)('a' + s), ':', 0 };
        unsigned holders = 0;

        for (unsigned i = 0; i < 2; i++)
            holders += strstr(groups_heard(calls[i]), name) != NULL;
        EXPECT_EQ(holders, 1);
    }
    groups_done(&g);
}

/* What waits for a slow client is at most its window, however long it sleeps; and nobody else waits for it. */
TEST(a_slow_client_keeps_its_window_and_no_more)
{
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *slow, *quick;
    server_peer *peer;

    groups_start(&g);
    definition.settings.message_timeout.value = 100;
    definition.settings.max_retry_count = 1000;
    groups_create(&g, &definition);
    peer = server_rig_connect(&g.rig, "127.0.0.1:40001");
    slow = groups_join(&g, (groups_consumer){ .window = 4, .peer = peer });
    peer->stuck = true;
    for (unsigned i = 0; i < 4; i++)
        reads_append_bytes(&g.rig, "orders", 1000 * 1000);
    for (unsigned i = 0; i < 20; i++) /* given to it again and again, since there is nobody else */
        server_rig_advance(&g.rig, GROUPS_SECOND_NS / 8);
    EXPECT(slow->message_count < 3);
    quick = groups_join(&g, (groups_consumer){ .window = 4 });
    server_rig_advance(&g.rig, GROUPS_SECOND_NS / 8);
    server_rig_advance(&g.rig, GROUPS_SECOND_NS / 8);
    EXPECT(quick->message_count > 1);
    peer->stuck = false;
    peer->touched = true;
    server_rig_run(&g.rig);
    EXPECT(slow->message_count <= 1 + 2 + 4); /* what had left before, and its window */
    groups_done(&g);
}

/* Semantics 15: what is gone when it is read again is settled; what was buffered is still given out. */
TEST(a_truncated_stream_is_read_from_where_it_begins)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 5);
    reads_set_metadata(&g.rig, "orders", "{\"$tb\":3}");
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD_FROM(call, 1, "orders:3 orders:4");
    groups_done(&g);
}

/* Semantics 3.3: the group has failed; who comes is confirmed and dropped. */
TEST(a_group_of_a_tombstoned_stream_confirms_and_drops)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    reads_tombstone(&g.rig, "orders");
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    EXPECT_HEARD(call, "confirmed:orders::g CANCELLED");
    EXPECT_STR(server_call_trailer(call, "exception"), "persistent-subscription-dropped");
    EXPECT_STR(server_call_trailer(call, "stream-name"), "orders");
    EXPECT_STR(server_call_trailer(call, "group-name"), "g");
    groups_done(&g);
}

TEST(a_stream_that_is_tombstoned_meanwhile_is_told_by_its_last_event)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    reads_tombstone(&g.rig, "orders");
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:9223372036854775807");
    groups_done(&g);
}

/* What the disk took of it is gone when the consumer hears of it. */
TEST(the_lease_that_is_told_is_what_is_left_of_it)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    groups_held_store_hold_all(store, true);
    call = groups_call(&g, (groups_consumer){ .extensions = true });
    for (int i = 0; i < 10; i++)
        (void)server_rig_turn(&g.rig);
    sl_clock_manual_advance(&g.rig.time, 4 * GROUPS_SECOND_NS);
    groups_held_store_hold_all(store, false);
    server_rig_run(&g.rig);
    EXPECT_HEARD(call, "confirmed:orders::g orders:0");
    EXPECT_EQ(groups_message(call, 1).event.lease_ms, 26000);
    groups_done(&g);
}

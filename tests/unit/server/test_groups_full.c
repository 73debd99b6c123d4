/* tests/unit/server/test_groups_full.c — a persistent subscription while the disk is full: what was promised stays, nothing more is given
 * out, and everything goes on by itself when there is room. */
#include "groups_rig.h"
#include "read_rig.h"

#include <string.h>

static const char parked[] = "$persistentsubscription-orders::g-parked";

/* Window 2, 4 events, 2 of them delivered. */
static server_call *start(groups *g, sl_store *store)
{
    groups_start_on(g, store);
    reads_append(&g->rig, "orders", 4);
    groups_plain(g);
    return groups_join(g, (groups_consumer){ .window = 2, .extensions = true });
}

TEST(a_group_whose_records_find_no_room_waits_and_goes_on)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);

    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    groups_held_store_block(store, true);
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 3, ""); /* what is not written is not promised */
    server_rig_advance(&g.rig, 5 * GROUPS_SECOND_NS);
    EXPECT(!call->ended);
    EXPECT_HEARD_FROM(call, 3, "");
    groups_held_store_block(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 3, "orders:2 settled:1");
    groups_ack(call, 2, 1);
    EXPECT_HEARD_FROM(call, 5, "orders:3 settled:1");
    groups_done(&g);
}

/* Leases that end again and again would charge messages that nobody could see, and fill memory with records. */
TEST(nothing_is_given_out_while_records_find_no_room)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);

    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    groups_held_store_block(store, true);
    for (int i = 0; i < 20; i++)
        server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 3, "");
    groups_held_store_block(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 3,
                      "orders:0#2 orders:1#2"); /* for the lease from before, and the one that found out */
    EXPECT(!call->ended);
    groups_done(&g);
}

TEST(nothing_is_given_out_while_the_store_is_full_but_acks_settle)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);

    groups_held_store_fill(store, true);
    groups_ack(call, 1, 1);
    EXPECT_HEARD_FROM(call, 3, "settled:1");
    groups_ack(call, 2, 1);
    EXPECT_HEARD_FROM(call, 4, "settled:1");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 5, "orders:2 orders:3");
    groups_done(&g);
}

TEST(a_nack_that_parks_waits_for_room_and_keeps_nobody_from_settling)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);
    server_call *const other = groups_join(&g, (groups_consumer){ .extensions = true });

    EXPECT_HEARD_FROM(other, 1, "orders:2 orders:3");
    groups_held_store_fill(store, true);
    server_rig_advance(&g.rig, GROUPS_SECOND_NS);
    groups_ack(other, 1, 1);
    EXPECT_HEARD_FROM(other, 3, "settled:1");
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "bad");
    groups_ack(other, 2, 1);
    groups_ack(call, 2, 1);
    EXPECT_HEARD_FROM(call, 3, "settled:1"); /* of the ack */
    EXPECT_HEARD_FROM(other, 4, "settled:1");
    EXPECT_STR(groups_stored(&g, parked), "");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 4, "settled:1");
    EXPECT_STR(groups_stored(&g, parked), "0:0@orders");
    groups_done(&g);
}

TEST(a_nack_that_waits_for_room_ends_with_its_call)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);
    server_call *other;

    groups_held_store_fill(store, true);
    groups_ack(call, 2, 1);
    groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "bad");
    EXPECT_HEARD_FROM(call, 3, "settled:1");
    server_call_cancel(call);
    server_rig_run(&g.rig);
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_STR(groups_stored(&g, parked), "");
    other = groups_join(&g, (groups_consumer){ 0 });
    EXPECT(strstr(groups_heard(other), "orders:0") != NULL); /* it was not settled */
    groups_done(&g);
}

/* Whenever the disk fills up again, also between two of them. */
TEST(a_nack_that_has_to_wait_once_more_does_so)
{
    for (unsigned questions = 0; questions < 6; questions++) {
        sl_store *const store = groups_held_store();
        groups g;
        server_call *const call = start(&g, store);

        groups_held_store_fill(store, true);
        groups_nack(call, 1, 1, SL_WIRE_NACK_PARK, "bad");
        groups_nack(call, 2, 1, SL_WIRE_NACK_PARK, "worse");
        groups_held_store_fill_after(store, questions);
        server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
        groups_held_store_fill(store, false);
        server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
        EXPECT_STR(groups_stored(&g, parked), "0:0@orders 1:1@orders");
        EXPECT(!call->ended);
        groups_done(&g);
    }
}

/* B7: the one whose tries are used up has to be parked, and that is an event. */
TEST(a_lease_that_runs_out_for_the_last_time_keeps_nobody_from_settling_while_the_store_is_full)
{
    sl_store *const store = groups_held_store();
    sl_group_definition definition = groups_definition("orders", "g");
    groups g;
    server_call *call, *other;

    groups_start_on(&g, store);
    definition.settings.max_retry_count = 0;
    reads_append(&g.rig, "orders", 3);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .window = 1 });
    server_rig_advance(&g.rig, 20 * GROUPS_SECOND_NS);
    other = groups_join(&g, (groups_consumer){ .window = 1, .extensions = true });
    EXPECT_HEARD_FROM(other, 1, "orders:1");
    groups_held_store_fill(store, true);
    server_rig_advance(&g.rig, 11 * GROUPS_SECOND_NS);
    groups_ack(other, 1, 1);
    EXPECT_HEARD_FROM(other, 2, "settled:1");
    EXPECT_STR(groups_stored(&g, parked), "");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_STR(groups_stored(&g, parked), "0:0@orders");
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:2"); /* and not once more */
    groups_done(&g);
}

TEST(a_message_that_cannot_be_parked_is_named_in_the_log)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    reads_tombstone(&g.rig, parked);
    groups_nack(call, 1, 2, SL_WIRE_NACK_PARK, "bad");
    EXPECT_HEARD_FROM(call, 4, "settled:2");
    EXPECT(server_rig_logged(&g.rig, "0@orders"));
    EXPECT(server_rig_logged(&g.rig, "1@orders"));
    EXPECT(!server_rig_logged(&g.rig, "2@orders"));
    EXPECT_EQ(sl_desk_skipped(groups_find(&g, "orders", "g")), 2);
    groups_done(&g);
}

/* S1: who may write chooses the names of streams, and must not be able to end a group by one. */
TEST(an_expression_that_gives_up_on_a_name_does_not_end_the_group)
{
    sl_group_definition definition = groups_definition("$all", "g");
    char name[200];
    groups g;
    server_call *call;

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 2] = '!';
    name[sizeof name - 1] = 0;
    definition.filter = (sl_wire_filter){ .kind = SL_WIRE_FILTER_GIVEN,
                                          .on = SL_WIRE_FILTER_ON_STREAM,
                                          .regex = SL_STR("^((a+)+b|orders)$") };
    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    reads_append(&g.rig, name, 1);
    reads_append(&g.rig, "orders", 1);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .stream = "$all" });
    EXPECT(strstr(groups_heard(call), "orders:0 orders:1") != NULL);
    EXPECT(!call->ended);
    EXPECT(server_rig_logged(&g.rig, "too many steps"));
    groups_done(&g);
}

/* Architecture, section 6: a full disk goes on delivering and settling from a reserve. */
TEST(a_group_goes_on_giving_out_and_settling_from_the_reserve)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *const call = start(&g, store);

    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:1");
    groups_held_store_reserve(store);
    groups_ack(call, 1, 2);
    EXPECT_HEARD_FROM(call, 3, "orders:2 orders:3 settled:2");
    groups_nack(call, 3, 1, SL_WIRE_NACK_PARK, "bad"); /* needs an event: waits */
    groups_ack(call, 4, 1);
    EXPECT_HEARD_FROM(call, 6, "settled:1");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 7, "settled:1");
    EXPECT_STR(groups_stored(&g, parked), "0:2@orders");
    groups_done(&g);
}

/* It cannot be parked, so it is tried once more; when there is room it is parked as ever. */
TEST(a_lease_that_runs_out_for_the_last_time_is_tried_again_while_the_reserve_lasts)
{
    sl_group_definition definition = groups_definition("orders", "g");
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    definition.settings.max_retry_count = 0;
    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 1);
    groups_create(&g, &definition);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD(call, "confirmed:orders::g orders:0");
    groups_held_store_reserve(store);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 2, "orders:0#1");
    groups_held_store_fill(store, false);
    server_rig_advance(&g.rig, 31 * GROUPS_SECOND_NS);
    EXPECT_HEARD_FROM(call, 3, "");
    EXPECT_STR(groups_stored(&g, parked), "0:0@orders");
    groups_done(&g);
}

/* tests/unit/server/test_groups_fetch.c — events that were sent are not kept: what that saves, and that nobody notices when one has to be
 * sent again. */
#include "groups_rig.h"
#include "read_rig.h"

#include "server/groups/desk_private.h"

#include <string.h>

enum {
    LARGE_BYTES = 10 * 1000,
};

static size_t bytes_kept(groups *g)
{
    return groups_find(g, "orders", "g")->payload_bytes;
}

/* Fifty of ten thousand bytes are read ahead, sent, and held by their consumer. */
TEST(an_outstanding_message_is_kept_without_its_event)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append_burst(&g.rig, "orders", 50, LARGE_BYTES);
    groups_plain(&g);
    server_rig_run(&g.rig);
    EXPECT(bytes_kept(&g) > (size_t)50 * LARGE_BYTES);
    call = groups_join(&g, (groups_consumer){ .window = 50 });
    EXPECT_EQ(call->message_count, 51);
    EXPECT_EQ(bytes_kept(&g), 50 * sizeof(desk_entry));
    groups_ack(call, 1, 50);
    EXPECT_EQ(bytes_kept(&g), 0);
    groups_done(&g);
}

TEST(an_event_that_is_sent_again_is_the_same)
{
    const sl_event_in made = { .id = { { 7 } },
                               .type = SL_STR("placed"),
                               .data = SL_STR("{\"n\":1}"),
                               .metadata = SL_STR("{\"by\":\"x\"}"),
                               .is_json = true,
                               .created_ns = 1234567800 };
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append_event(&g.rig, "orders", &made);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "again");
    EXPECT_HEARD_FROM(call, 1, "orders:0 orders:0#1");
    const sl_persistent_response first = groups_message(call, 1), second = groups_message(call, 2);
    const sl_wire_recorded *const a = &first.event.event, *const b = &second.event.event;
    EXPECT(sl_uuid_equal(a->id.uuid, b->id.uuid) && a->id.form == b->id.form);
    EXPECT(sl_str_equal(a->type, b->type) && sl_str_equal(a->data, b->data));
    EXPECT(sl_str_equal(a->custom_metadata, b->custom_metadata));
    EXPECT(sl_str_equal(a->content_type, b->content_type));
    EXPECT_EQ(a->created_ticks, b->created_ticks);
    EXPECT_EQ(a->commit_position, b->commit_position);
    EXPECT_EQ(a->prepare_position, b->prepare_position);
    EXPECT_EQ(first.event.commit_position, second.event.commit_position);
    groups_done(&g);
}

TEST(an_event_that_is_sent_again_has_ids_as_its_next_consumer_wants_them)
{
    groups g;
    server_call *a, *b;

    groups_start(&g);
    reads_append(&g.rig, "orders", 1);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ 0 });
    b = groups_join(&g, (groups_consumer){ .id_form = SL_WIRE_ID_TEXT });
    EXPECT_HEARD_FROM(a, 1, "orders:0");
    server_call_cancel(a);
    server_rig_run(&g.rig);
    EXPECT_HEARD_FROM(b, 1, "orders:0#1");
    EXPECT_EQ(groups_message(b, 1).event.event.id.form, SL_WIRE_ID_TEXT);
    groups_done(&g);
}

/* Semantics 15: truncated or deleted after it was read makes no difference. */
TEST(an_event_that_its_stream_shows_no_more_is_sent_again)
{
    groups g;
    server_call *call;

    groups_start(&g);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    reads_set_metadata(&g.rig, "orders", "{\"$tb\":2}");
    groups_nack(call, 1, 1, SL_WIRE_NACK_RETRY, "again");
    EXPECT_HEARD_FROM(call, 4, "orders:0#1");
    reads_delete(&g.rig, "orders");
    groups_nack(call, 2, 2, SL_WIRE_NACK_RETRY, "again");
    EXPECT_HEARD_FROM(call, 5, "orders:1#1 orders:2#1");
    groups_done(&g);
}

TEST(a_stream_that_keeps_only_some_events_is_not_relied_upon)
{
    groups g;

    groups_start(&g);
    reads_append(&g.rig, "orders", 2);
    reads_set_metadata(&g.rig, "orders", "{\"$maxCount\":2}");
    groups_plain(&g);
    groups_join(&g, (groups_consumer){ 0 });
    EXPECT(bytes_kept(&g) > 2 * sizeof(desk_entry));
    groups_done(&g);
}

/* --- a store that has to look for it --- */

/* The disk has answered whatever it was asked. */
static void let_disk_answer(groups *g)
{
    for (int i = 0; i < 20; i++) {
        sl_host_poll(g->rig.host);
        server_rig_run(&g->rig);
    }
}

TEST(an_event_that_comes_from_the_disk_is_waited_for_and_the_order_stays)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *a, *b;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 4);
    groups_plain(&g);
    a = groups_join(&g, (groups_consumer){ .extensions = true });
    b = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD_FROM(a, 1, "orders:0 orders:1 orders:2 orders:3");
    groups_held_store_slow(store, true);
    groups_nack(a, 1, 4, SL_WIRE_NACK_RETRY, "again");
    groups_stop(b, false);
    EXPECT_EQ(b->message_count, 1); /* Stopped stands behind the events */
    let_disk_answer(&g);
    EXPECT_HEARD_FROM(b, 1, "orders:1#1 orders:3#1 stopped:2");
    EXPECT_HEARD_FROM(a, 5, "orders:0#1 orders:2#1 settled:4");
    reads_set_metadata(&g.rig, "orders", "{\"$tb\":4}");
    groups_nack(a, 5, 1, SL_WIRE_NACK_RETRY, "again"); /* from the log, also slowly */
    let_disk_answer(&g);
    EXPECT_HEARD_FROM(a, 8, "orders:0#2 settled:1");
    groups_done(&g);
}

TEST(an_event_that_is_gone_is_passed_over_and_the_group_goes_on)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 3);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    groups_held_store_lose(store, 0);
    groups_nack(call, 1, 2, SL_WIRE_NACK_RETRY, "again");
    EXPECT_HEARD_FROM(call, 4, "orders:1#1 settled:2"); /* nothing is said of what it did not ask for */
    groups_stop(call, false);
    EXPECT_HEARD_FROM(call, 6, "stopped:2");
    groups_done(&g);
}

TEST(a_group_may_end_while_an_event_comes_from_the_disk)
{
    sl_store *const store = groups_held_store();
    groups g;
    server_call *call;

    groups_start_on(&g, store);
    reads_append(&g.rig, "orders", 2);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ 0 });
    groups_held_store_stick(store, true);
    groups_nack(call, 1, 2, SL_WIRE_NACK_RETRY, "again");
    EXPECT_EQ(call->message_count, 3);
    EXPECT(groups_find(&g, "orders", "g")->fetch.is_waiting);
    groups_done(&g);
}

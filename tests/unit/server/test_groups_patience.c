/* tests/unit/server/test_groups_patience.c — what may wait for the sync of another (decision 19), and what may not. */
#include "groups_rig.h"
#include "read_rig.h"

enum {
    PATIENCE_NS = 1000 * 1000,
    TURNS = 10 /* enough for anything that needs no time */
};

static void start_patient(groups *g, uint32_t event_count)
{
    groups_start(g);
    reads_append(&g->rig, "orders", event_count);
    groups_plain(g);
}

/* groups_ack() would wait until nothing is inside. */
static void ack_without_time(server_call *call, size_t index)
{
    const sl_uuid id = groups_id(call, index);

    groups_send_ids(call, SL_PERSISTENT_REQUEST_ACK, &id, 1);
}

static void turn_some(groups *g)
{
    for (int i = 0; i < TURNS; i++)
        (void)server_rig_turn(&g->rig);
}

TEST(an_ack_is_settled_when_its_patience_ends_and_not_before)
{
    groups g;
    server_call *call;

    start_patient(&g, 1);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    EXPECT_HEARD(call, "confirmed:orders::g orders:0");
    g.rig.host->patience_ns = PATIENCE_NS;
    ack_without_time(call, 1);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 2, "");
    sl_clock_manual_advance(&g.rig.time, PATIENCE_NS);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 2, "settled:1");
    groups_done(&g);
}

TEST(an_ack_goes_along_with_an_append)
{
    groups g;
    server_call *call;

    start_patient(&g, 1);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    g.rig.host->patience_ns = PATIENCE_NS;
    ack_without_time(call, 1);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 2, "");
    reads_append(&g.rig, "orders", 1);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 2, "settled:1 orders:1");
    groups_done(&g);
}

/* One turn, and the lease stands between two acknowledgements in the log. */
TEST(an_event_between_two_acks_does_not_wait)
{
    groups g;
    server_call *a, *b;

    start_patient(&g, 3);
    a = groups_join(&g, (groups_consumer){ .extensions = true, .window = 1, .name = "a" });
    b = groups_join(&g, (groups_consumer){ .extensions = true, .window = 1, .name = "b" });
    g.rig.host->patience_ns = PATIENCE_NS;
    ack_without_time(a, 1);
    ack_without_time(b, 1);
    turn_some(&g);
    EXPECT_HEARD_FROM(a, 2, "orders:2 settled:1");
    EXPECT_HEARD_FROM(b, 2, "settled:1");
    groups_done(&g);
}

TEST(the_answer_to_a_stop_does_not_wait_but_drained_does)
{
    groups g;
    server_call *call;

    start_patient(&g, 1);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    g.rig.host->patience_ns = PATIENCE_NS;
    groups_send(call, &(sl_persistent_request){ .kind = SL_PERSISTENT_REQUEST_STOP });
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 2, "stopped:1");
    ack_without_time(call, 1);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 3, "");
    sl_clock_manual_advance(&g.rig.time, PATIENCE_NS);
    turn_some(&g);
    EXPECT_HEARD_FROM(call, 3, "settled:1 drained:1/0/0");
    groups_done(&g);
}

/* tests/unit/server/test_groups_delay.c — a nack that says when its message may come again. */
#include "groups_rig.h"
#include "read_rig.h"

#include "base/cleanup.h"

#define MS_NS UINT64_C(1000000)

static void nack_later(server_call *call, sl_uuid id, int32_t delay_ms)
{
    groups_send(call, &(sl_persistent_request){
                          .kind = SL_PERSISTENT_REQUEST_NACK,
                          .ids = { .count = 1, .list = &id, .form = SL_WIRE_ID_STRUCTURED },
                          .action = SL_WIRE_NACK_RETRY,
                          .delay_ms = delay_ms,
                      });
    server_rig_run(call->peer->rig);
}

static server_call *joined(groups *g, bool extensions)
{
    groups_start(g);
    reads_append(&g->rig, "orders", 1);
    groups_plain(g);
    return groups_join(g, (groups_consumer){ .extensions = extensions });
}

TEST(a_nack_with_a_delay_brings_its_message_back_when_that_is_over_and_not_before)
{
    groups g;
    server_call *const call = joined(&g, true);

    nack_later(call, groups_id(call, 1), 5000);
    EXPECT_HEARD_FROM(call, 2, "settled:1");
    server_rig_advance(&g.rig, 4990 * MS_NS);
    EXPECT_HEARD_FROM(call, 3, "");
    server_rig_advance(&g.rig, 20 * MS_NS);
    EXPECT_HEARD_FROM(call, 3, "orders:0#1");
    groups_done(&g);
}

static void expect_kept(void (*ends)(groups *g))
{
    groups g;
    server_call *call = joined(&g, true);

    nack_later(call, groups_id(call, 1), 5000);
    ends(&g);
    call = groups_join(&g, (groups_consumer){ .extensions = true });
    server_rig_advance(&g.rig, 4900 * MS_NS);
    EXPECT_HEARD_FROM(call, 1, "");
    server_rig_advance(&g.rig, 200 * MS_NS);
    EXPECT_HEARD_FROM(call, 1, "orders:0#1");
    groups_done(&g);
}

TEST(the_delay_of_a_nack_is_kept_over_a_restart_and_a_power_cut_B4)
{
    expect_kept(groups_kill);
    expect_kept(groups_cut_power);
}

TEST(a_delay_from_a_client_without_extensions_is_not_looked_at)
{
    static const int32_t delays_ms[] = { 5000, -1 };

    for (size_t i = 0; i < SL_COUNT_OF(delays_ms); i++) {
        groups g;
        server_call *const call = joined(&g, false);

        nack_later(call, groups_id(call, 1), delays_ms[i]);
        EXPECT_HEARD_FROM(call, 2, "orders:0#1");
        groups_done(&g);
    }
}

TEST(a_negative_delay_ends_the_call_before_it_has_an_effect)
{
    groups g;
    server_call *const call = joined(&g, true);

    nack_later(call, groups_id(call, 1), -1);
    EXPECT_HEARD_FROM(call, 2, "INVALID_ARGUMENT");
    groups_done(&g);
}

TEST(a_delay_that_is_too_long_is_cut)
{
    groups g;
    server_call *const call = joined(&g, true);

    nack_later(call, groups_id(call, 1), INT32_MAX);
    server_rig_advance(&g.rig, SL_PAUSE_NS_MAX - MS_NS);
    EXPECT_HEARD_FROM(call, 3, "");
    server_rig_advance(&g.rig, 2 * MS_NS);
    EXPECT_HEARD_FROM(call, 3, "orders:0#1");
    groups_done(&g);
}

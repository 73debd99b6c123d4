/* Rules of sl_group_wants(): is it worth keeping an event that was read? */
#include "rig.h"

static bool wants(const rig *r, uint64_t position)
{
    return sl_group_wants(r->group, (sl_place){ SL_LANE_MAIN, position });
}

TEST(a_group_wants_what_it_has_not_read)
{
    rig *const r = rig_new(NULL);

    EXPECT(wants(r, 0));
    rig_offer(r, 3);
    EXPECT(!wants(r, 0));
    EXPECT(!wants(r, 2));
    EXPECT(wants(r, 3));
    EXPECT(wants(r, 300));
    EXPECT(!wants(r, UINT64_MAX));
    rig_free(r);
}

TEST(after_a_restart_a_group_wants_exactly_what_is_not_settled)
{
    rig *const r = rig_new(NULL);
    const uint64_t c = rig_join(r, 10);

    rig_offer(r, 5);
    EXPECT_OK(rig_ack(r, c, 1));
    EXPECT_OK(rig_ack(r, c, 3));
    rig_restart(r);
    EXPECT(wants(r, 0));
    EXPECT(!wants(r, 1));
    EXPECT(wants(r, 2)); /* also behind what was not read yet */
    EXPECT(!wants(r, 3));
    EXPECT(wants(r, 4));
    EXPECT(wants(r, 5));
    rig_read_again(r);
    EXPECT(!wants(r, 2));
    rig_free(r);
}

/* Settled by whoever came back before the group had read it again: only its place is left. */
TEST(what_is_settled_before_it_is_read_again_is_not_wanted)
{
    rig *const r = rig_new(NULL);
    uint64_t c = rig_join_as(r, 1, 10, false);

    rig_offer(r, 2);
    rig_restart(r);
    c = rig_join_as(r, 1, 10, false);
    EXPECT_OK(rig_ack(r, c, 1));
    EXPECT(wants(r, 0));
    EXPECT(!wants(r, 1));
    rig_free(r);
}

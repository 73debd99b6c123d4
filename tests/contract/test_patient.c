/* tests/contract/test_patient.c — batches that wait for the sync of another one. */
#include "rig.h"

static const sl_effect epoch = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 4 } };

/* Turns without end would not help it; polling is done without waiting, since nothing may come. */
static void turn_some(rig *r)
{
    for (int i = 0; i < 3; i++) {
        sl_store_turn(r->store);
        sl_store_poll(r->store);
    }
}

TEST(a_patient_batch_goes_along_with_the_sync_of_another)
{
    rig r = rig_open();
    const sl_op create = create_op(1, "g"), record = record_op(1, &epoch);
    answer a, written;

    EXPECT_OK(commit(&r, &create, 1).err);
    EXPECT_OK(submit_patient(&r, &record, &a));
    turn_some(&r);
    EXPECT_EQ(a.calls, 0);
    EXPECT_OK(submit(&r, &record, 1, SL_DURABLE_WRITTEN, &written));
    turn_some(&r); /* nor does one help that wants no sync */
    EXPECT_EQ(written.calls, 1);
    EXPECT_EQ(a.calls, 0);
    append(&r, "s", ANY, 1, 1);
    EXPECT_EQ(a.calls, 1);
    EXPECT_OK(a.err);
    rig_close(&r);
}

TEST(a_patient_batch_that_is_hurried_gets_a_sync_of_its_own)
{
    rig r = rig_open();
    const sl_op create = create_op(1, "g"), record = record_op(1, &epoch);
    answer a, later;

    EXPECT_OK(commit(&r, &create, 1).err);
    EXPECT_OK(submit_patient(&r, &record, &a));
    sl_store_hurry(r.store);
    sl_store_turn(r.store);
    wait_for(&r, 2);
    EXPECT_EQ(a.calls, 1);
    EXPECT_OK(submit_patient(&r, &record, &later)); /* hurrying is not for those that come later */
    turn_some(&r);
    EXPECT_EQ(later.calls, 0);
    rig_close(&r); /* closing does not wait for company */
    EXPECT_EQ(later.calls, 1);
    EXPECT_OK(later.err);
}

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    (void)ctx, (void)group, (void)definition;
    return SL_OK;
}

static sl_err load_record(void *ctx, uint64_t group, const sl_effect *record)
{
    (void)group, (void)record;
    ++*(unsigned *)ctx;
    return SL_OK;
}

static unsigned records_loaded(rig *r)
{
    unsigned count = 0;
    const sl_loader loader = { &count, load_group, load_record };

    EXPECT_OK(sl_store_load(r->store, &loader));
    return count;
}

TEST(what_a_patient_batch_wrote_survives_the_death_of_the_process)
{
    rig r = rig_open();
    const sl_op create = create_op(1, "g"), record = record_op(1, &epoch);
    answer a;

    EXPECT_OK(commit(&r, &create, 1).err);
    EXPECT_OK(submit_patient(&r, &record, &a));
    turn_some(&r);
    EXPECT_EQ(a.calls, 0);
    EXPECT(rig_restart(&r, SL_RESTART_KILLED));
    EXPECT_EQ(records_loaded(&r), 1);
    rig_close(&r);
}

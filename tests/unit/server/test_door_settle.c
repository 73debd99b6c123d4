/* tests/unit/server/test_door_settle.c — the door that is shut for appends and still open for what settles (B14). */
#include "rig.h"

#include "server/door.h"
#include "store/backend.h"

typedef struct outcome {
    unsigned done_count;
    sl_err err;
} outcome;

static void on_done(void *ctx, const sl_commit *commit)
{
    outcome *const o = ctx;

    o->done_count++;
    o->err = commit->err;
}

static const sl_event_in event = {
    .id = { { 1 } }, .type = SL_STR_INIT("t"), .data = SL_STR_INIT("{}"), .created_ns = 1
};
static const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 7, SL_STR_INIT("{}") } };
static const sl_op append = { .kind = SL_OP_APPEND,
                              .append = { .stream = SL_STR_INIT("s"), .events = &event, .event_count = 1 } };
static const sl_effect epoch = { .kind = SL_EFFECT_EPOCH, .epoch = { 1, 10 } };
static const sl_op record = { .kind = SL_OP_GROUP_RECORD, .group_record = { 7, &epoch, 1 } };

static sl_err settle(server_rig *rig, const sl_op *ops, uint32_t count, outcome *o)
{
    return sl_door_submit_settle(rig->host->door, &(sl_batch){ .ops = ops, .op_count = count }, on_done, o);
}

enum {
    PATIENCE_NS = 5000
};

static void start_patient(server_rig *rig, outcome *o)
{
    server_rig_init(rig);
    server_rig_start(rig);
    EXPECT_OK(settle(rig, &create, 1, o));
    server_rig_run(rig);
    EXPECT_EQ(o->done_count, 1);
    rig->host->patience_ns = PATIENCE_NS;
    *o = (outcome){ 0 };
}

static void settle_patient(server_rig *rig, outcome *o)
{
    const sl_batch batch = { .ops = &record, .op_count = 1, .patient = true };

    EXPECT_OK(sl_door_submit_settle(rig->host->door, &batch, on_done, o));
}

/* server_rig_run() would wait for what is inside. */
static void turn_some(server_rig *rig)
{
    for (int i = 0; i < 5; i++)
        (void)server_rig_turn(rig);
}

TEST(what_can_wait_gets_a_sync_of_its_own_when_nobody_else_wants_one)
{
    server_rig rig;
    outcome o = { 0 };

    start_patient(&rig, &o);
    settle_patient(&rig, &o);
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 0);
    rig.time.mono_ns += PATIENCE_NS - 1;
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 0);
    rig.time.mono_ns++;
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 1);
    EXPECT_EQ(sl_host_due_ns(rig.host), UINT64_MAX); /* nothing is waited for any more */
    server_rig_done(&rig);
}

TEST(what_can_wait_goes_along_with_an_append_and_the_next_one_waits_anew)
{
    server_rig rig;
    outcome o = { 0 }, appended = { 0 };

    start_patient(&rig, &o);
    settle_patient(&rig, &o);
    turn_some(&rig);
    rig.time.mono_ns += PATIENCE_NS - 1;
    EXPECT_OK(
        sl_door_submit(rig.host->door, &(sl_batch){ .ops = &append, .op_count = 1 }, on_done, &appended));
    turn_some(&rig);
    EXPECT_EQ(appended.done_count, 1);
    EXPECT_EQ(o.done_count, 1);
    settle_patient(&rig, &o);
    rig.time.mono_ns += PATIENCE_NS - 1;
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 1);
    rig.time.mono_ns++;
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 2);
    server_rig_done(&rig);
}

static sl_err have_no_room(sl_store *store, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    (void)store, (void)batch, (void)done, (void)ctx;
    return SL_ERR_FULL;
}

static void note_turn(void *ctx)
{
    *(bool *)ctx = true;
}

TEST(who_has_to_wait_at_the_door_does_not_wait_for_the_patience_of_others)
{
    server_rig rig;
    outcome o = { 0 }, kept_out = { 0 };
    bool is_called = false;
    sl_door_waiter waiter;
    sl_store_ops ops;
    const sl_store_ops *its_own;

    start_patient(&rig, &o);
    settle_patient(&rig, &o);
    turn_some(&rig);
    ops = *(its_own = rig.store->ops);
    ops.submit = have_no_room;
    rig.store->ops = &ops;
    EXPECT_ERR(
        sl_door_submit(rig.host->door, &(sl_batch){ .ops = &append, .op_count = 1 }, on_done, &kept_out),
        SL_ERR_FULL);
    rig.store->ops = its_own;
    sl_door_waiter_init(&waiter, note_turn, &is_called);
    sl_door_wait(rig.host->door, &waiter);
    turn_some(&rig);
    EXPECT_EQ(o.done_count, 1);
    EXPECT(is_called);
    server_rig_done(&rig);
}

TEST(what_can_wait_and_is_still_inside_at_the_end_is_answered)
{
    server_rig rig;
    outcome o = { 0 };

    start_patient(&rig, &o);
    settle_patient(&rig, &o);
    turn_some(&rig);
    server_rig_done(&rig);
    EXPECT_EQ(o.done_count, 1);
    EXPECT_ERR(o.err, SL_ERR_STORE_FAILED);
}

TEST(a_shut_door_takes_records_of_groups_until_it_is_closed)
{
    const sl_op parking[] = { record, append };
    server_rig rig;
    outcome o = { 0 };

    server_rig_init(&rig);
    server_rig_start(&rig);
    EXPECT_OK(settle(&rig, &create, 1, &o));
    sl_door_shut(rig.host->door, "maintenance");
    EXPECT_OK(settle(&rig, &record, 1, &o));
    EXPECT_OK(settle(&rig, parking, 2, &o));                   /* an append of the group itself */
    EXPECT_ERR(settle(&rig, &append, 1, &o), SL_ERR_DRAINING); /* and not one without a record */
    EXPECT_ERR(settle(&rig, &create, 1, &o), SL_ERR_DRAINING);
    EXPECT_ERR(sl_door_submit(rig.host->door, &(sl_batch){ .ops = &record, .op_count = 1 }, on_done, &o),
               SL_ERR_DRAINING);
    sl_door_close(rig.host->door, "the end");
    EXPECT_ERR(settle(&rig, &record, 1, &o), SL_ERR_DRAINING);
    EXPECT_STR(sl_door_reason(rig.host->door), "maintenance");
    server_rig_run(&rig);
    EXPECT_EQ(o.done_count, 3);
    EXPECT_OK(o.err);
    server_rig_done(&rig);
}

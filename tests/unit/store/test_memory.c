/* The memory backend without memory: whatever allocation fails, nothing is half there and nothing is lost. Everything else
 * about it is asked by tests/contract. */
#include "../base/support.h"

#include "store/store.h"

static void note(void *ctx, const sl_commit *commit)
{
    sl_err *const err = ctx;

    *err = commit->err;
}

static sl_err submit(sl_store *store, const sl_op *ops, uint32_t op_count)
{
    static sl_err answered;
    const sl_batch batch = { .ops = ops, .op_count = op_count, .durability = SL_DURABLE_SYNC };
    const sl_err err = sl_store_submit(store, &batch, note, &answered);

    sl_store_turn(store);
    sl_store_poll(store);
    return err == SL_OK ? answered : err;
}

static sl_event_in event(uint64_t number)
{
    return (sl_event_in){ .id = sl_uuid_from_halves(1, (int64_t)number),
                          .type = SL_STR("t"),
                          .data = SL_STR("{}") };
}

static void emit_nothing(void *ctx, uint64_t group, sl_sink sink)
{
    const sl_effect effect = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = group } };

    (void)ctx;
    sink.emit(sink.ctx, &effect);
}

/* A batch that touches everything: streams, metadata, a revival, a group with records and two definitions. */
static uint32_t make_ops(sl_op ops[8], const sl_event_in *e, const sl_effect *record)
{
    const sl_expected any = { .kind = SL_EXPECT_ANY };
    const sl_uuid id = sl_uuid_from_halves(2, 1);

    ops[0] = (sl_op){ .kind = SL_OP_APPEND, .append = { SL_STR("s"), any, e, 2 } };
    ops[1] = (sl_op){ .kind = SL_OP_DELETE, .remove = { .stream = SL_STR("s"), .expected = any, .id = id } };
    ops[2] = (sl_op){ .kind = SL_OP_APPEND, .append = { SL_STR("s"), any, e + 2, 1 } };
    ops[3] = (sl_op){ .kind = SL_OP_APPEND, .append = { SL_STR("$$t"), any, e + 3, 1 } };
    ops[4] = (sl_op){ .kind = SL_OP_GROUP_CREATE, .group_create = { 1, SL_STR("definition") } };
    ops[5] = (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { 1, record, 1 } };
    ops[6] = (sl_op){ .kind = SL_OP_GROUP_UPDATE, .group_update = { 1, SL_STR("another one") } };
    ops[7] =
        (sl_op){ .kind = SL_OP_TOMBSTONE, .remove = { .stream = SL_STR("u"), .expected = any, .id = id } };
    return 8;
}

static void expect_missing(const sl_store *store, sl_str stream)
{
    sl_stream_info info;

    sl_store_stream(store, stream, &info);
    EXPECT_EQ(info.state, SL_STREAM_MISSING);
    EXPECT_EQ(info.revision, SL_REVISION_NONE);
}

TEST(a_batch_without_memory_is_refused_whole_and_works_later)
{
    const sl_event_in e[] = { event(1), event(2), event(3), event(4) };
    const sl_effect record = { .kind = SL_EFFECT_EPOCH };
    bool failed = true;

    for (size_t fail_at = 1; failed; fail_at++) {
        test_alloc t = { 0 };
        const sl_alloc alloc = test_alloc_use(&t);
        const sl_store_setup setup = { .alloc = &alloc };
        sl_store *store = NULL;
        sl_op ops[8];
        const uint32_t op_count = make_ops(ops, e, &record);

        EXPECT_OK(sl_store_open_memory(&setup, &store));
        t.call_count = 0;
        t.fail_at = fail_at;
        failed = submit(store, ops, op_count) == SL_ERR_NOMEM;
        t.fail_at = 0;
        if (failed) {
            expect_missing(store, SL_STR("s"));
            expect_missing(store, SL_STR("$$t"));
            expect_missing(store, SL_STR("u"));
            EXPECT_EQ(sl_store_end(store), SL_POSITION_FIRST);
            EXPECT_OK(submit(store, ops, op_count));
        }
        EXPECT_OK(sl_store_memory_restart(store, SL_RESTART_POWER_CUT));
        EXPECT_EQ(sl_store_end(store), SL_POSITION_FIRST + 10);
        sl_store_close(store);
        EXPECT_EQ(t.block_count, 0);
    }
}

static sl_err keep_definition(void *ctx, uint64_t group, sl_str definition)
{
    (void)group;
    *(sl_str *)ctx = definition; /* good until the store is changed */
    return SL_OK;
}

static sl_str definition_in(sl_store *store)
{
    sl_str definition = { 0 };

    EXPECT_OK(sl_store_load(store, &(sl_loader){ &definition, keep_definition, NULL }));
    return definition;
}

TEST(an_update_without_memory_leaves_the_definition)
{
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 1, SL_STR("old") } };
    const sl_op update = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 1, SL_STR("newer") } };
    bool failed = true;

    for (size_t fail_at = 1; failed; fail_at++) {
        test_alloc t = { 0 };
        const sl_alloc alloc = test_alloc_use(&t);
        const sl_store_setup setup = { .alloc = &alloc };
        sl_store *store = NULL;

        EXPECT_OK(sl_store_open_memory(&setup, &store));
        EXPECT_OK(submit(store, &create, 1));
        t.call_count = 0;
        t.fail_at = fail_at;
        failed = submit(store, &update, 1) == SL_ERR_NOMEM;
        t.fail_at = 0;
        EXPECT(sl_str_equal(definition_in(store), failed ? SL_STR("old") : SL_STR("newer")));
        EXPECT_OK(submit(store, &update, 1));
        EXPECT(sl_str_equal(definition_in(store), SL_STR("newer")));
        sl_store_close(store);
        EXPECT_EQ(t.block_count, 0);
    }
}

TEST(older_definitions_do_not_fill_the_memory)
{
    test_alloc t = { 0 };
    const sl_alloc alloc = test_alloc_use(&t);
    const sl_store_setup setup = { .alloc = &alloc };
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 1, SL_STR("old") } };
    const sl_op update = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 1, SL_STR("newer") } };
    sl_store *store = NULL;
    size_t blocks = 0;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    EXPECT_OK(submit(store, &create, 1));
    for (int i = 0; i < 100; i++) {
        EXPECT_OK(submit(store, &update, 1));
        if (i == 0)
            blocks = t.block_count;
        EXPECT_EQ(t.block_count, blocks);
    }
    sl_store_close(store);
}

static void mark_done(void *ctx, const sl_commit *commit)
{
    bool *const done = ctx;

    EXPECT_OK(commit->err);
    *done = true;
}

/* As with a disk: what is written while a sync runs waits for the next one. */
TEST(a_sync_covers_only_what_was_written_before_it_began)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default };
    const sl_event_in e[] = { event(1), event(2) };
    bool done[2] = { false, false };
    sl_store *store = NULL;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    for (int i = 0; i < 2; i++) {
        const sl_op op = { .kind = SL_OP_APPEND,
                           .append = { SL_STR("s"), { .kind = SL_EXPECT_ANY }, &e[i], 1 } };
        const sl_batch batch = { .ops = &op, .op_count = 1, .durability = SL_DURABLE_SYNC };

        EXPECT_OK(sl_store_submit(store, &batch, mark_done, &done[i]));
        sl_store_turn(store);
    }
    sl_store_poll(store);
    EXPECT(done[0] && !done[1]);
    EXPECT_EQ(sl_store_end(store), SL_POSITION_FIRST + 1);
    sl_store_poll(store);
    EXPECT(done[1]);
    sl_store_close(store);
}

/* The same for definitions: a power cut leaves the newest one that the sync covered. */
TEST(a_sync_makes_the_definitions_safe_that_were_written_before_it_began)
{
    static const sl_str definitions[] = { SL_STR_INIT("first"), SL_STR_INIT("second"), SL_STR_INIT("third") };
    const sl_store_setup setup = { .alloc = &sl_alloc_default };
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 1, SL_STR("old") } };
    bool done[3] = { false, false, false };
    sl_store *store = NULL;

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    EXPECT_OK(submit(store, &create, 1));
    for (int i = 0; i < 3; i++) {
        const sl_op op = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 1, definitions[i] } };
        const sl_batch batch = { .ops = &op,
                                 .op_count = 1,
                                 .durability = i < 2 ? SL_DURABLE_SYNC : SL_DURABLE_WRITTEN };

        EXPECT_OK(sl_store_submit(store, &batch, mark_done, &done[i]));
        if (i > 0) /* the first two are synced together */
            sl_store_turn(store);
    }
    sl_store_poll(store);
    EXPECT(done[0] && done[1] && done[2]);
    EXPECT(sl_str_equal(definition_in(store), definitions[2]));
    EXPECT_OK(sl_store_memory_restart(store, SL_RESTART_POWER_CUT));
    EXPECT(sl_str_equal(definition_in(store), definitions[1]));
    EXPECT_OK(sl_store_memory_restart(store, SL_RESTART_POWER_CUT));
    EXPECT(sl_str_equal(definition_in(store), definitions[1]));
    sl_store_close(store);
}

TEST(a_store_without_memory_is_not_opened_and_leaks_nothing)
{
    sl_err err = SL_ERR_NOMEM;

    for (size_t fail_at = 1; err != SL_OK; fail_at++) {
        test_alloc t = { .fail_at = fail_at };
        const sl_alloc alloc = test_alloc_use(&t);
        const sl_store_setup setup = { .alloc = &alloc };
        sl_store *store = NULL;

        err = sl_store_open_memory(&setup, &store);
        EXPECT(err == SL_OK || err == SL_ERR_NOMEM);
        sl_store_close(store);
        EXPECT_EQ(t.block_count, 0);
    }
}

static sl_err count_group(void *ctx, uint64_t group, sl_str definition)
{
    (void)ctx;
    (void)group;
    (void)definition;
    return SL_OK;
}

static sl_err count_record(void *ctx, uint64_t group, const sl_effect *record)
{
    uint32_t *const count = ctx;

    (void)group;
    (void)record;
    (*count)++;
    return SL_OK;
}

TEST(a_snapshot_without_memory_is_taken_later)
{
    test_alloc t = { 0 };
    const sl_alloc alloc = test_alloc_use(&t);
    const sl_store_setup setup = { .alloc = &alloc };
    const sl_effect record = { .kind = SL_EFFECT_EPOCH };
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 1, { 0 } } };
    const sl_op op = { .kind = SL_OP_GROUP_RECORD, .group_record = { 1, &record, 1 } };
    sl_store *store = NULL;
    uint32_t count = 0;
    const sl_loader loader = { &count, count_group, count_record };

    EXPECT_OK(sl_store_open_memory(&setup, &store));
    EXPECT_OK(submit(store, &create, 1));
    for (int i = 0; i < 2048; i++) /* fills the list exactly: the snapshot needs a larger one */
        EXPECT_OK(submit(store, &op, 1));
    sl_store_on_snapshot(store, emit_nothing, NULL);
    t.call_count = 0;
    t.fail_at = 1;
    t.stays_out = true;
    sl_store_turn(store);
    t.fail_at = 0;
    EXPECT_OK(sl_store_load(store, &loader));
    EXPECT_EQ(count, 2048); /* all still there */
    for (int i = 0; i < 5; i++)
        EXPECT_OK(submit(store, &op, 1));
    count = 0;
    EXPECT_OK(sl_store_load(store, &loader));
    EXPECT(count < 100);
    sl_store_close(store);
    EXPECT_EQ(t.block_count, 0);
}

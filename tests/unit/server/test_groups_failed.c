/* tests/unit/server/test_groups_failed.c — a persistent subscription that cannot go on: nothing is used after it was freed, and everybody
 * who waits for something of it is told. */
#include "groups_rig.h"
#include "read_rig.h"

#include "../base/support.h"

typedef struct told {
    unsigned times;
    sl_err err;
} told;

static void on_told(void *ctx, sl_err err)
{
    told *const t = ctx;

    t->times++;
    t->err = err;
}

/* Events are offered while a consumer waits for them: the core gives them out inside of the reader, and memory ends at any place of that. */
TEST(a_reader_survives_without_memory)
{
    bool ran_through = false;

    for (size_t fail_at = 1; !ran_through; fail_at += SWEEP_STEP) {
        test_alloc failing = { 0 };
        const sl_alloc alloc = test_alloc_use(&failing);
        groups g;

        groups_start_with(&g, groups_memory_store(), &alloc);
        groups_plain(&g);
        groups_join(&g, (groups_consumer){ .window = 200 });
        for (int i = 0; i < 100; i++)
            reads_submit(&g.rig, "orders");
        failing.fail_at = failing.call_count + fail_at;
        server_rig_run(&g.rig);
        ran_through = failing.call_count < failing.fail_at;
        failing.fail_at = 0;
        server_rig_run(&g.rig);
        groups_done(&g);
        EXPECT_EQ(failing.block_count, 0);
    }
}

/* --- without room for more records --- */

typedef struct small_blocks {
    bool is_on; /* nothing larger than this is given */
    size_t bytes_max;
} small_blocks;

static void *small_resize(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    const small_blocks *const small = ctx;

    if (small->is_on && new_bytes > small->bytes_max)
        return NULL;
    return sl_alloc_default.resize(sl_alloc_default.ctx, memory, old_bytes, new_bytes);
}

/* Records collect while the store takes none; for one of these counts the truncation is the one that finds no place. */
static bool truncate_behind(size_t acked)
{
    small_blocks small = { .bytes_max = 4096 };
    const sl_alloc alloc = { .ctx = &small, .resize = small_resize };
    sl_store *const store = groups_held_store();
    told t = { 0 };
    groups g;
    server_call *call;
    sl_err err;

    groups_start_with(&g, store, &alloc);
    groups_plain(&g);
    call = groups_join(&g, (groups_consumer){ .window = 64 });
    for (int half = 0; half < 2; half++) { /* all at once would make room for as many records */
        reads_append_burst(&g.rig, "orders", 32, 10);
        server_rig_run(&g.rig);
    }
    groups_held_store_block(store, true);
    groups_ack(call, 1, acked);
    small.is_on = true;
    err = sl_desk_truncate_parked(groups_find(&g, "orders", "g"), UINT64_MAX, on_told, &t);
    small.is_on = false;
    groups_held_store_block(store, false);
    server_rig_advance(&g.rig, 2 * GROUPS_SECOND_NS);
    EXPECT_EQ(t.times, err == SL_OK ? 1 : 0);
    groups_done(&g);
    return err == SL_OK;
}

TEST(a_truncation_that_finds_no_memory_is_refused_or_answered)
{
    unsigned refused = 0;

    for (size_t acked = 50; acked <= 64; acked++)
        refused += !truncate_behind(acked);
    EXPECT(refused > 0);
}

TEST(a_truncation_that_waits_for_room_is_answered_when_its_group_ends)
{
    sl_store *const store = groups_held_store();
    told t = { 0 };
    groups g;
    sl_desk *desk;

    groups_start_on(&g, store);
    desk = groups_plain(&g);
    groups_held_store_refuse(store, true);
    EXPECT_OK(sl_desk_truncate_parked(desk, UINT64_MAX, on_told, &t));
    server_rig_run(&g.rig);
    EXPECT_EQ(t.times, 0);
    sl_desk_close(desk);
    server_rig_run(&g.rig);
    EXPECT_EQ(t.times, 1);
    EXPECT_EQ(t.err, SL_ERR_STORE_FAILED);
    groups_held_store_refuse(store, false);
    groups_done(&g);
    EXPECT_EQ(t.times, 1);
}

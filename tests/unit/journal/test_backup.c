/* Copies of a journal: complete, or not there. */
#include "inspect_rig.h"
#include "store/journal/log.h"

static sl_err back_up(sl_faulty *source, sl_faulty *target, sl_backed_up *ret_done, bool *ret_target_failed)
{
    found f = { 0 };
    const sl_inspection how = { .ctx = &f, .finding = note_finding };
    sl_disk *const from = sl_faulty_door(source), *const to = sl_faulty_door(target);
    const sl_err err = sl_backup_disk(from, to, &how, ret_done, ret_target_failed);

    EXPECT_EQ(err == SL_ERR_CORRUPT, f.damages > 0);
    from->ops->free(from);
    to->ops->free(to);
    return err;
}

TEST(a_backup_is_a_journal_that_opens_with_everything_that_was_durable)
{
    world w = world_open(), copy = { .disk = sl_faulty_new() };
    sl_backed_up done;
    bool target_failed;
    uint64_t end;

    fill(&w);
    end = sl_store_end(w.store);
    EXPECT_OK(back_up(w.disk, copy.disk, &done, &target_failed)); /* while it is open */
    EXPECT_EQ(done.end, end);
    append(&w, "a", 5);
    EXPECT_OK(open_again(&copy));
    EXPECT_EQ(sl_store_end(copy.store), end + 1);
    append(&copy, "c", 50); /* it goes on, also to the next segment */
    world_free(&copy);
    world_free(&w);
}

/* Of a group whose older records are gone, and one that has changed since. */
TEST(a_backup_has_the_newest_definition_of_a_group)
{
    const sl_op update = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 7, SL_STR("after the state") } };
    world w = world_open();
    sl_backed_up done;
    bool target_failed;

    fill(&w);
    scavenge(&w);
    for (int i = 0; i < 2; i++) {
        world copy = { .disk = sl_faulty_new() };

        EXPECT_OK(back_up(w.disk, copy.disk, &done, &target_failed));
        EXPECT_OK(open_again(&copy));
        expect_definition(&copy, i == 0 ? FILLED_DEFINITION : "after the state");
        world_free(&copy);
        commit(&w, &update);
    }
    world_free(&w);
}

/* A server that writes between two reads of a copy, which takes a MiB at a time: the first part has the old end, the second
 * one has frames that call more durable than there is. */
typedef struct busy {
    world *w;
    unsigned rounds;
} busy;

static void write_meanwhile(void *ctx, uint64_t offset)
{
    busy *const b = ctx;

    if (offset == 1 << 20 && b->rounds++ == 0)
        append(b->w, "a", 200);
}

TEST(a_backup_takes_nothing_from_behind_the_end_that_it_has_read)
{
    world w = world_open_with(4 << 20), copy = { .disk = sl_faulty_new(), .segment_bytes = 4 << 20 };
    busy b = { .w = &w };
    const hook h = { .ctx = &b, .read = write_meanwhile };
    const sl_inspection how = { 0 };
    sl_disk *from, *to = sl_faulty_door(copy.disk);
    bool target_failed;
    sl_backed_up done;
    uint64_t end;

    append(&w, "a", 1500); /* somewhat less than a MiB */
    end = sl_store_end(w.store);
    from = hooked_door(w.disk, &h);
    EXPECT_OK(sl_backup_disk(from, to, &how, &done, &target_failed));
    EXPECT_EQ(done.end, end);
    from->ops->free(from);
    to->ops->free(to);
    EXPECT_OK(open_again(&copy));
    EXPECT_EQ(sl_store_end(copy.store), done.end + 1);
    world_free(&copy);
    world_free(&w);
}

TEST(a_backup_of_damage_is_refused)
{
    world w = world_open();
    sl_backed_up done;
    bool target_failed;

    fill(&w);
    world_close(&w);
    for (unsigned segment = 1; segment <= 3; segment++) {
        char name[SL_SEGMENT_NAME_BYTES];
        sl_faulty *const target = sl_faulty_new();

        sl_segment_name(segment, ".seg", name);
        EXPECT(sl_faulty_flip(w.disk, name, 5000, 1));
        EXPECT_ERR(back_up(w.disk, target, &done, &target_failed), SL_ERR_CORRUPT);
        EXPECT(sl_faulty_flip(w.disk, name, 5000, 1));
        sl_faulty_free(target);
    }
    world_free(&w);
}

TEST(a_backup_onto_a_full_disk_says_so)
{
    world w = world_open();
    sl_faulty *const target = sl_faulty_new();
    sl_backed_up done;
    bool target_failed = false;

    fill(&w);
    sl_faulty_set_full(target, true);
    EXPECT_ERR(back_up(w.disk, target, &done, &target_failed), SL_ERR_NO_SPACE);
    EXPECT(target_failed);
    sl_faulty_free(target);
    world_free(&w);
}

/* Whatever fails on either side: an error, or a copy that is complete. */
static void fail_each_call(world *w, bool on_target)
{
    bool failed = true;
    uint64_t calls = 0, errors = 0;

    for (; failed; calls++) {
        sl_faulty *const target = sl_faulty_new();
        sl_faulty *const failing = on_target ? target : w->disk;
        bool target_failed = false;
        sl_backed_up done;
        sl_verified verified;
        sl_err err;
        const sl_inspection how = { 0 };
        sl_disk *const from = sl_faulty_door(w->disk), *const to = sl_faulty_door(target);

        sl_faulty_fail_after(failing, calls, SL_ERR_IO);
        err = sl_backup_disk(from, to, &how, &done, &target_failed);
        failed = sl_faulty_failed(failing);
        sl_faulty_fail_after(failing, UINT64_MAX, SL_OK);
        from->ops->free(from);
        to->ops->free(to);
        errors += err != SL_OK;
        if (err == SL_OK) {
            EXPECT_EQ(verify(target, &verified).damages, 0);
            EXPECT_EQ(verified.end, sl_store_end(w->store));
        }
        sl_faulty_free(target);
    }
    EXPECT(calls > 30 && errors > 10);
}

TEST(a_backup_survives_every_error_of_its_source_and_its_target)
{
    world w = world_open();

    fill(&w);
    scavenge(&w); /* nothing is at work in the background any more */
    fail_each_call(&w, false);
    fail_each_call(&w, true);
    world_free(&w);
}

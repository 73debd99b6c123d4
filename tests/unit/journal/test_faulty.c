/* The simulated disk: it loses what it may lose, and nothing else. */
#include "../test.h"
#include "store/faulty/faulty.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

typedef struct rig {
    sl_faulty *disk;
    sl_disk *door;
} rig;

static rig open_rig(void)
{
    sl_faulty *const disk = sl_faulty_new();

    return (rig){ disk, sl_faulty_door(disk) };
}

static void close_rig(rig *r)
{
    r->door->ops->free(r->door);
    sl_faulty_free(r->disk);
}

static sl_file *make(rig *r, const char *name, uint64_t bytes)
{
    sl_file *file = NULL;

    EXPECT_OK(r->door->ops->create(r->door, name, bytes, NULL, &file));
    return file;
}

static void write_at(sl_file *file, uint64_t offset, char fill, size_t bytes)
{
    static char data[8192];

    memset(data, fill, bytes);
    EXPECT_OK(file->disk->ops->write(file, offset, data, bytes));
}

static sl_err read_at(sl_file *file, uint64_t offset, char *ret_byte)
{
    return file->disk->ops->read(file, offset, ret_byte, 1);
}

static void cut_power(rig *r, sl_file *file, uint64_t seed)
{
    sl_faulty_power_cut(r->disk, seed);
    r->door->ops->close(file);
    r->door->ops->free(r->door);
    sl_faulty_settle(r->disk);
    r->door = sl_faulty_door(r->disk);
}

/* Which of 4 sectors that were not synced have the new content, as bits, after a cut with this seed. */
static unsigned survivors(uint64_t seed, bool killed_before)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 8 * 512);
    unsigned found = 0;
    char byte;

    write_at(file, 0, 's', 2 * 512); /* synced: these must be there */
    EXPECT_OK(r.door->ops->sync(file));
    write_at(file, 2 * 512, 'n', 4 * 512);
    if (killed_before)
        sl_faulty_kill(r.disk);
    cut_power(&r, file, seed);
    EXPECT_OK(r.door->ops->open(r.door, "a", &file));
    EXPECT_EQ(r.door->ops->size(file), 8 * 512);
    for (uint64_t i = 0; i < 8; i++) {
        char last;
        EXPECT_OK(read_at(file, i * 512, &byte));
        EXPECT_OK(read_at(file, i * 512 + 511, &last));
        EXPECT_EQ(byte, last);
        EXPECT(i < 2 ? byte == 's' : i < 6 ? byte == 'n' || byte == 0 : byte == 0);
        found |= byte == 'n' ? 1u << (i - 2) : 0;
    }
    r.door->ops->close(file);
    close_rig(&r);
    return found;
}

TEST(a_power_cut_may_leave_any_subset_of_unsynced_sectors)
{
    for (int killed_before = 0; killed_before < 2; killed_before++) {
        unsigned seen = 0;
        for (uint64_t seed = 1; seed <= 600; seed++)
            seen |= 1u << survivors(seed, killed_before);
        EXPECT_EQ(seen, 0xffff);
    }
}

TEST(a_sector_written_twice_may_be_left_as_it_was_between)
{
    unsigned seen = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        rig r = open_rig();
        sl_file *file = make(&r, "a", 512 * (1 + seed % 16)); /* the size decides what is written back, too */
        char byte;

        for (int i = 0; i < 3; i++)
            write_at(file, 0, (char)('1' + i), 100);
        cut_power(&r, file, seed);
        EXPECT_OK(r.door->ops->open(r.door, "a", &file));
        EXPECT_OK(read_at(file, 50, &byte));
        EXPECT(byte == 0 || (byte >= '1' && byte <= '3'));
        seen |= 1u << (byte == 0 ? 0 : byte - '0');
        r.door->ops->close(file);
        close_rig(&r);
    }
    EXPECT_EQ(seen, 0xf);
}

TEST(a_file_that_grows_keeps_its_synced_length_and_any_part_of_the_rest)
{
    bool shortest = false, longest = false, between = false;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        rig r = open_rig();
        sl_file *file = make(&r, "a", 0);
        uint64_t bytes;
        char byte;

        write_at(file, 0, 's', 700);
        EXPECT_OK(r.door->ops->sync(file));
        write_at(file, 700, 'n', 3000);
        cut_power(&r, file, seed);
        EXPECT_OK(r.door->ops->open(r.door, "a", &file));
        bytes = r.door->ops->size(file);
        EXPECT(bytes >= 700 && bytes <= 3700);
        EXPECT_OK(read_at(file, 699, &byte));
        EXPECT_EQ(byte, 's');
        EXPECT_ERR(read_at(file, bytes, &byte), SL_ERR_IO);
        shortest = shortest || bytes == 700;
        longest = longest || bytes == 3700;
        between = between || (bytes > 700 && bytes < 3700);
        r.door->ops->close(file);
        close_rig(&r);
    }
    EXPECT(shortest && longest && between);
}

/* As systems do that tell an error once: whoever syncs again is told that all is well. */
TEST(what_a_failed_sync_was_to_write_is_lost_until_it_is_written_again)
{
    for (int again = 0; again < 2; again++) {
        rig r = open_rig();
        sl_file *file = make(&r, "a", 1024);
        char byte;

        write_at(file, 0, 'n', 512);
        sl_faulty_fail_sync(r.disk, "a");
        EXPECT_ERR(r.door->ops->sync(file), SL_ERR_IO);
        if (again)
            write_at(file, 0, 'n', 512);
        EXPECT_OK(r.door->ops->sync(file));
        EXPECT_EQ(sl_faulty_syncs(r.disk, "a"), 2);
        cut_power(&r, file, 3);
        EXPECT_OK(r.door->ops->open(r.door, "a", &file));
        EXPECT_OK(read_at(file, 0, &byte));
        EXPECT_EQ(byte, again ? 'n' : 0);
        r.door->ops->close(file);
        close_rig(&r);
    }
}

static void *sync_it(void *file)
{
    sl_file *const f = file;

    EXPECT_OK(f->disk->ops->sync(f));
    return NULL;
}

TEST(what_is_written_while_a_sync_runs_is_not_covered_by_it)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 1024);
    pthread_t other;
    char byte;

    write_at(file, 0, 'n', 512);
    sl_faulty_slow_syncs(r.disk, 200 * 1000);
    EXPECT_EQ(pthread_create(&other, NULL, sync_it, file), 0);
    while (sl_faulty_syncs(r.disk, "a") == 0)
        sched_yield();
    write_at(file, 512, 'n', 512);
    pthread_join(other, NULL);
    cut_power(&r, file, 0);
    EXPECT_OK(r.door->ops->open(r.door, "a", &file));
    EXPECT_OK(read_at(file, 0, &byte));
    EXPECT_EQ(byte, 'n');
    EXPECT_OK(read_at(file, 512, &byte));
    EXPECT_EQ(byte, 0);
    r.door->ops->close(file);
    close_rig(&r);
}

TEST(who_has_a_file_open_keeps_its_content_when_the_name_goes_to_another)
{
    rig r = open_rig();
    sl_file *old = make(&r, "a", 512), *fresh = make(&r, "b", 512), *found;
    char byte;

    write_at(old, 0, 'o', 512);
    write_at(fresh, 0, 'f', 512);
    EXPECT_OK(r.door->ops->rename(r.door, "b", "a"));
    EXPECT_ERR(r.door->ops->open(r.door, "b", &found), SL_ERR_NOT_FOUND);
    EXPECT_OK(r.door->ops->open(r.door, "a", &found));
    EXPECT_OK(read_at(found, 0, &byte));
    EXPECT_EQ(byte, 'f');
    EXPECT_OK(read_at(old, 0, &byte));
    EXPECT_EQ(byte, 'o');
    EXPECT_OK(r.door->ops->remove(r.door, "a"));
    EXPECT_OK(read_at(found, 0, &byte));
    EXPECT_ERR(r.door->ops->remove(r.door, "a"), SL_ERR_NOT_FOUND);
    r.door->ops->close(found);
    r.door->ops->close(fresh);
    r.door->ops->close(old);
    close_rig(&r);
}

TEST(the_dead_change_nothing_and_the_next_life_begins_as_new)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 512);
    sl_disk *const dead = r.door;
    uint64_t pid;
    char byte = 0;

    EXPECT_OK(dead->ops->lock(dead, &pid));
    r.door = sl_faulty_door(r.disk);
    EXPECT_ERR(r.door->ops->lock(r.door, &pid), SL_ERR_LOCKED);
    r.door->ops->free(r.door);
    write_at(file, 0, 'w', 512);
    sl_faulty_kill(r.disk);
    EXPECT_ERR(dead->ops->write(file, 0, "x", 1), SL_ERR_IO);
    EXPECT_ERR(read_at(file, 0, &byte), SL_ERR_IO);
    EXPECT_ERR(dead->ops->sync(file), SL_ERR_IO);
    EXPECT_ERR(dead->ops->remove(dead, "a"), SL_ERR_IO);
    r.door = sl_faulty_door(r.disk);
    EXPECT_OK(r.door->ops->lock(r.door, &pid));
    dead->ops->close(file);
    dead->ops->free(dead);
    EXPECT_OK(r.door->ops->open(r.door, "a", &file));
    EXPECT_OK(read_at(file, 0, &byte));
    EXPECT_EQ(byte, 'w');
    r.door->ops->close(file);
    close_rig(&r);
}

TEST(the_power_can_be_cut_in_the_middle_of_work)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 512);
    char byte;

    sl_faulty_cut_after(r.disk, 1, 0);
    write_at(file, 0, 'n', 512);
    EXPECT(!sl_faulty_is_dead(r.disk));
    EXPECT_ERR(r.door->ops->sync(file), SL_ERR_IO);
    EXPECT(sl_faulty_is_dead(r.disk));
    cut_power(&r, file, 0);
    EXPECT(!sl_faulty_is_dead(r.disk));
    EXPECT_OK(r.door->ops->open(r.door, "a", &file));
    EXPECT_OK(read_at(file, 0, &byte));
    EXPECT_EQ(byte, 0);
    r.door->ops->close(file);
    close_rig(&r);
}

TEST(exactly_the_chosen_call_fails_and_a_write_that_fails_has_written_a_part)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 1024);
    char data[1024], byte;

    memset(data, 'n', sizeof data);
    sl_faulty_fail_after(r.disk, 1, SL_ERR_NO_SPACE);
    EXPECT_OK(read_at(file, 0, &byte));
    EXPECT(!sl_faulty_failed(r.disk));
    EXPECT_ERR(r.door->ops->write(file, 0, data, sizeof data), SL_ERR_NO_SPACE);
    EXPECT(sl_faulty_failed(r.disk));
    EXPECT_OK(read_at(file, 511, &byte));
    EXPECT_EQ(byte, 'n');
    EXPECT_OK(read_at(file, 512, &byte));
    EXPECT_EQ(byte, 0);
    sl_faulty_fail_after(r.disk, 0, SL_ERR_NO_SPACE);
    EXPECT_ERR(read_at(file, 0, &byte), SL_ERR_IO); /* reading needs no room */
    sl_faulty_slow_reads(r.disk, 2);
    EXPECT_OK(r.door->ops->read_now(file, 0, &byte, 1));
    EXPECT_ERR(r.door->ops->read_now(file, 0, &byte, 1), SL_ERR_AGAIN);
    r.door->ops->close(file);
    close_rig(&r);
}

TEST(a_full_disk_has_no_room_for_new_files_nor_for_longer_ones)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 0), *other;

    write_at(file, 0, 'w', 100);
    sl_faulty_set_full(r.disk, true);
    write_at(file, 50, 'w', 50);
    EXPECT_ERR(r.door->ops->write(file, 95, "0123456789", 10), SL_ERR_NO_SPACE);
    EXPECT_EQ(r.door->ops->size(file), 100);
    EXPECT_ERR(r.door->ops->create(r.door, "b", 0, NULL, &other), SL_ERR_NO_SPACE);
    sl_faulty_set_full(r.disk, false);
    write_at(file, 50, 'w', 51);
    EXPECT_EQ(r.door->ops->size(file), 101);
    r.door->ops->close(file);
    close_rig(&r);
}

TEST(a_flipped_bit_is_seen_and_survives)
{
    rig r = open_rig();
    sl_file *file = make(&r, "a", 512);
    char byte;

    write_at(file, 0, 'n', 10);
    EXPECT(sl_faulty_flip(r.disk, "a", 400, 3));
    EXPECT(!sl_faulty_flip(r.disk, "a", 512, 3));
    EXPECT(!sl_faulty_flip(r.disk, "b", 0, 3));
    cut_power(&r, file, 1);
    EXPECT_OK(r.door->ops->open(r.door, "a", &file));
    EXPECT_OK(read_at(file, 400, &byte));
    EXPECT_EQ(byte, 8);
    r.door->ops->close(file);
    close_rig(&r);
}

/* The embedded store beyond the contract: what is written where, what a restart finds, and what it says. */
#include "lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- reading what is not in memory --- */

/* "Reads of old data never stop the loop": a disk that is slow makes AGAIN, never a wait, and nothing is missed. */
TEST(a_slow_disk_makes_readers_ask_again_and_miss_nothing)
{
    lab w = lab_open(0);
    const sl_read reads[] = { { .from = 0 },
                              { .from = UINT64_MAX, .backwards = true },
                              { .stream = SL_STR("s3") },
                              { .stream = SL_STR("s3"), .from = UINT64_MAX, .backwards = true } };

    lab_append_many(&w, 1000);
    lab_reopen(&w);
    for (uint64_t every = 1; every <= 3; every++) {
        sl_faulty_slow_reads(w.disk, every);
        for (size_t i = 0; i < 4; i++) {
            uint32_t again;
            sl_err ended;

            EXPECT_EQ(lab_count(&w, &reads[i], &ended, &again), i < 2 ? 1000 : 100);
            EXPECT_ERR(ended, SL_ERR_EMPTY);
            EXPECT(again > 0);
        }
    }
    lab_close(&w);
}

/* The reader thread holds what it reads into; nobody waits for it any more. */
TEST(a_cursor_may_be_closed_while_its_data_is_on_the_way)
{
    lab w = lab_open(0);
    const sl_read everything = { .from = 0 };

    lab_append_many(&w, 500);
    lab_reopen(&w);
    sl_faulty_slow_reads(w.disk, 1);
    for (int i = 0; i < 100; i++) {
        sl_cursor *cursor = NULL;
        sl_event event;
        uint32_t some;

        EXPECT_OK(sl_store_read(w.store, &everything, &cursor));
        EXPECT_ERR(sl_cursor_next(cursor, &event, 1, &some), SL_ERR_AGAIN);
        sl_cursor_close(cursor);
    }
    lab_close(&w);
}

TEST(an_event_may_be_larger_than_any_buffer)
{
    lab w = lab_open(0);
    uint32_t again;
    sl_err ended;

    sl_store_close(w.store);
    w.options.segment_bytes = 32 * 1024 * 1024;
    sl_faulty_free(w.disk);
    w.disk = sl_faulty_new();
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_OK(lab_append(&w, "small", 10));
    EXPECT_OK(lab_append(&w, "large", 8 * 1024 * 1024));
    EXPECT_OK(lab_append(&w, "small", 10));
    lab_reopen(&w);
    EXPECT_EQ(lab_count_all(&w), 3);
    EXPECT_EQ(lab_count(&w, &(sl_read){ .from = UINT64_MAX, .backwards = true }, &ended, &again), 3);
    EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("large") }, &ended, &again), 1);
    lab_close(&w);
}

/* --- what a restart finds --- */

typedef struct progress {
    uint64_t calls, done, total;
} progress;

static void show(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    progress *const p = ctx;

    EXPECT(strcmp(what, "index") == 0 || strcmp(what, "streams") == 0);
    EXPECT(done <= total);
    p->calls++;
    p->total = total;
}

static void remove_caches(lab *w)
{
    sl_disk *const door = sl_faulty_door(w->disk);

    for (uint64_t number = 1; number < 100; number++) {
        char name[64];
        snprintf(name, sizeof name, "%016" PRIx64 ".idx", number);
        (void)door->ops->remove(door, name);
        snprintf(name, sizeof name, "%016" PRIx64 ".roll", number);
        (void)door->ops->remove(door, name);
    }
    door->ops->free(door);
}

TEST(deleted_index_files_are_made_anew_and_that_is_shown)
{
    lab w = lab_open(0);
    progress p = { 0 };
    uint32_t again;
    sl_err ended;

    lab_append_many(&w, 1000);
    sl_store_close(w.store);
    remove_caches(&w);
    EXPECT_EQ(lab_files_of(&w).indexes, 0);
    w.options.progress = show;
    w.options.progress_ctx = &p;
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT(strstr(w.words, "index files anew") != NULL);
    EXPECT(p.calls > 5 && p.total > 5);
    EXPECT(lab_files_of(&w).indexes > 5);
    EXPECT_EQ(lab_count_all(&w), 1000);
    EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("s9") }, &ended, &again), 100);
    p.calls = 0;
    lab_reopen(&w);
    EXPECT_EQ(p.calls, 0);
    EXPECT_STR(w.words, "");
    lab_close(&w);
}

/* A full disk keeps nothing from starting, although files that should be made cannot be. */
TEST(a_full_disk_and_no_index_files_open_all_the_same)
{
    lab w = lab_open(0);
    uint32_t again;
    sl_err ended;

    lab_append_many(&w, 1000);
    sl_store_close(w.store);
    remove_caches(&w);
    sl_faulty_set_full(w.disk, true);
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(lab_count_all(&w), 1000);
    EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("s9") }, &ended, &again), 100);
    sl_faulty_set_full(w.disk, false);
    lab_reopen(&w);
    EXPECT_EQ(lab_count_all(&w), 1000);
    lab_close(&w);
}

/* B14: what is read at open does not grow with what is stored, but for what the caches of sealed segments say. The last
 * segment is read five times (its end, what is not sure, groups twice, events), the one before it once. */
TEST(opening_reads_the_last_two_segments_and_no_more)
{
    lab w = lab_open(256 * 1024);
    uint64_t bytes;

    lab_append_many(&w, 9000);
    lab_reopen(&w); /* what was not sealed when it was closed is sealed now */
    sl_store_close(w.store);
    bytes = sl_faulty_bytes_read(w.disk);
    lab_open_again(&w);
    EXPECT_OK(w.err);
    bytes = sl_faulty_bytes_read(w.disk) - bytes;
    EXPECT(lab_files_of(&w).segments > 18);
    EXPECT(bytes < 8 * 256 * 1024 + 20 * 16 * 1024);
    lab_close(&w);
}

TEST(a_damaged_segment_is_refused_with_its_name_and_place)
{
    lab w = lab_open(0);
    files f;

    lab_append_many(&w, 1000);
    sl_store_close(w.store);
    f = lab_files_of(&w);
    remove_caches(&w); /* or nobody would look */
    EXPECT(sl_faulty_flip(w.disk, f.segment, 20000, 3));
    lab_open_again(&w);
    EXPECT_ERR(w.err, SL_ERR_CORRUPT);
    EXPECT(strstr(w.words, f.segment) != NULL && strstr(w.words, "at byte") != NULL);
    EXPECT(strstr(w.words, "sluice journal verify") != NULL);
    sl_faulty_free(w.disk);
}

/* With its index there, damage is found by whoever comes to it, and never served. */
TEST(damage_that_is_met_while_reading_is_named)
{
    lab w = lab_open(0);
    const sl_read everything = { .from = 0 };
    uint32_t again, sum;
    sl_err ended;
    files f;

    lab_append_many(&w, 1000);
    lab_reopen(&w);
    f = lab_files_of(&w);
    EXPECT(sl_faulty_flip(w.disk, f.segment, 20000, 3));
    EXPECT_STR(sl_store_problem(w.store), "");
    sum = lab_count(&w, &everything, &ended, &again);
    EXPECT_ERR(ended, SL_ERR_CORRUPT);
    EXPECT(sum > 0 && sum < 100);
    EXPECT(strstr(sl_store_problem(w.store), f.segment) != NULL);
    EXPECT_OK(lab_append(&w, "s1", 10)); /* the rest goes on */
    lab_close(&w);
}

static void fill_disk(lab *w)
{
    sl_faulty_set_full(w->disk, true);
    while (lab_append(w, "s1", 500) == SL_OK) {
    }
}

/* Who starts asks for it at any time: room that is there again must not turn the sentence about it into another problem. */
TEST(a_store_says_that_it_is_full_as_long_as_its_problem_does)
{
    lab w = lab_open(0);

    EXPECT(!sl_store_is_full(w.store));
    fill_disk(&w);
    EXPECT(sl_store_is_full(w.store));
    sl_faulty_set_full(w.disk, false);
    while (sl_store_room(w.store) != SL_ROOM_ENOUGH) /* asked again and again, and nothing was written */
        lab_turn_once(&w);
    EXPECT(strstr(sl_store_problem(w.store), "the disk is full") != NULL);
    EXPECT(sl_store_is_full(w.store));
    EXPECT_OK(lab_append(&w, "s1", 10));
    EXPECT_STR(sl_store_problem(w.store), "");
    EXPECT(!sl_store_is_full(w.store));
    lab_close(&w);
}

static void expect_damage_is_told(const lab *w, const files *f)
{
    EXPECT(strstr(sl_store_problem(w->store), f->segment) != NULL);
    EXPECT(!sl_store_is_full(w->store));
}

TEST(damage_on_a_full_disk_is_told_as_damage_and_stays_told_when_there_is_room_again)
{
    lab w = lab_open(0);
    const sl_read everything = { .from = 0 };
    uint32_t again;
    sl_err ended;
    files f;

    lab_append_many(&w, 1000);
    lab_reopen(&w);
    f = lab_files_of(&w);
    EXPECT(sl_faulty_flip(w.disk, f.segment, 20000, 3));
    fill_disk(&w);
    (void)lab_count(&w, &everything, &ended, &again);
    EXPECT_ERR(ended, SL_ERR_CORRUPT);
    expect_damage_is_told(&w, &f);
    EXPECT(sl_store_room(w.store) != SL_ROOM_ENOUGH);
    expect_damage_is_told(&w, &f);
    sl_faulty_set_full(w.disk, false);
    while (lab_append(&w, "s1", 500) != SL_OK) {
    }
    expect_damage_is_told(&w, &f);
    fill_disk(&w); /* and in the other order */
    expect_damage_is_told(&w, &f);
    lab_close(&w);
}

/* In pages that end somewhere else than the steps of the cursor. */
static sl_err read_in_fives(lab *w, const sl_read *how)
{
    sl_cursor *cursor = NULL;
    sl_event events[5];
    uint32_t some;
    sl_err err;

    EXPECT_OK(sl_store_read(w->store, how, &cursor));
    while ((err = sl_cursor_next(cursor, events, 5, &some)) == SL_OK || err == SL_ERR_AGAIN)
        if (err == SL_ERR_AGAIN)
            lab_wait_once(w);
    sl_cursor_close(cursor);
    return err;
}

/* Also in the middle of a page: what is in front of it is given first, and then the damage, not what is behind it. */
TEST(a_reader_never_passes_over_damage_in_either_direction)
{
    const sl_read upwards = { .from = 0 }, downwards = { .backwards = true, .from = UINT64_MAX };
    lab w = lab_open(0);
    files f;

    lab_append_many(&w, 150);
    lab_reopen(&w);
    f = lab_files_of(&w);
    for (uint64_t bit = 8000 * 8; bit < 8700 * 8; bit += SWEEP_STEP) { /* a whole frame */
        EXPECT(sl_faulty_flip(w.disk, f.segment, bit / 8, (unsigned)(bit % 8)));
        EXPECT_ERR(read_in_fives(&w, &downwards), SL_ERR_CORRUPT);
        EXPECT_ERR(read_in_fives(&w, &upwards), SL_ERR_CORRUPT);
        EXPECT(sl_faulty_flip(w.disk, f.segment, bit / 8, (unsigned)(bit % 8)));
    }
    EXPECT_ERR(read_in_fives(&w, &downwards), SL_ERR_EMPTY);
    lab_close(&w);
}

TEST(a_damaged_index_is_made_anew_at_the_next_start)
{
    lab w = lab_open(0);
    uint32_t again;
    sl_err ended;
    files f;

    lab_append_many(&w, 1000);
    lab_reopen(&w); /* what was not sealed when it was closed is sealed now */
    sl_store_close(w.store);
    f = lab_files_of(&w);
    EXPECT(sl_faulty_flip(w.disk, f.index, 100, 3));
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("s0") }, &ended, &again), 100);
    EXPECT(strstr(w.words, "index files anew") != NULL);
    lab_close(&w);
}

/* --- groups --- */

static void tell_state(void *ctx, uint64_t group, sl_sink sink)
{
    const sl_effect state = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = *(uint64_t *)ctx } };

    (void)group;
    sink.emit(sink.ctx, &state);
}

typedef struct loaded {
    uint64_t groups, records, newest;
} loaded;

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    EXPECT_EQ(group, 8);
    EXPECT(sl_str_equal(definition, SL_STR("the definition")));
    ((loaded *)ctx)->groups++;
    return SL_OK;
}

static sl_err load_record(void *ctx, uint64_t group, const sl_effect *record)
{
    loaded *const l = ctx;

    EXPECT_EQ(group, 8);
    l->records++;
    l->newest = record->epoch.epoch;
    return SL_OK;
}

/* S1.6, B4: a group that has been idle for many segments comes back from the newest one. */
TEST(a_group_is_carried_from_segment_to_segment)
{
    lab w = lab_open(0);
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 8, SL_STR("the definition") } };
    const sl_effect seven = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 7 } };
    const sl_op record = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &seven, 1 } };
    uint64_t state = 7;
    loaded l = { 0 };

    EXPECT_OK(lab_commit(&w, &create));
    EXPECT_OK(lab_commit(&w, &record));
    sl_store_on_snapshot(w.store, tell_state, &state);
    lab_append_many(&w, 1000);
    lab_reopen(&w);
    EXPECT_OK(sl_store_load(w.store, &(sl_loader){ &l, load_group, load_record }));
    EXPECT_EQ(l.groups, 1);
    EXPECT_EQ(l.records, 1);
    EXPECT_EQ(l.newest, 7);
    lab_close(&w);
}

/* Without anybody who tells its state it is found where it was written. */
TEST(a_group_without_snapshots_is_found_in_old_segments)
{
    lab w = lab_open(0);
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 8, SL_STR("the definition") } };
    const sl_effect seven = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 7 } };
    const sl_op record = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &seven, 1 } };

    EXPECT_OK(lab_commit(&w, &create));
    for (int i = 0; i < 3; i++) {
        loaded l = { 0 };

        EXPECT_OK(lab_commit(&w, &record));
        lab_append_many(&w, 300);
        lab_reopen(&w);
        EXPECT_OK(sl_store_load(w.store, &(sl_loader){ &l, load_group, load_record }));
        EXPECT_EQ(l.records, (uint64_t)i + 1);
    }
    lab_close(&w);
}

/* --- failing --- */

TEST(a_failed_sync_ends_the_store_and_says_so)
{
    lab w = lab_open(0);
    files f;

    EXPECT_OK(lab_append(&w, "s", 10));
    f = lab_files_of(&w);
    sl_faulty_fail_sync(w.disk, f.segment);
    EXPECT_ERR(lab_append(&w, "s", 10), SL_ERR_STORE_FAILED);
    EXPECT_ERR(lab_append(&w, "s", 10), SL_ERR_STORE_FAILED);
    EXPECT(strstr(sl_store_problem(w.store), f.segment) != NULL);
    EXPECT(strstr(sl_store_problem(w.store), "accepts nothing more") != NULL);
    EXPECT_EQ(lab_count_all(&w), 1); /* and keeps what it has */
    lab_close(&w);
}

/* --- a real folder --- */

static char *new_folder(void)
{
    const char *const parent = getenv("TMPDIR");
    char *const path = malloc(256);

    snprintf(path, 256, "%s/sluice-journal-XXXXXX", parent == NULL ? P_tmpdir : parent);
    EXPECT(mkdtemp(path) != NULL);
    return path;
}

static void remove_folder(char *path)
{
    char command[512];

    snprintf(command, sizeof command, "rm -rf '%s'", path);
    EXPECT_EQ(system(command), 0);
    free(path);
}

TEST(a_second_process_is_refused_with_the_number_of_the_first)
{
    char *const path = new_folder();
    const sl_journal_options options = { .folder = path, .segment_bytes = 1 << 20 };
    sl_store *first = NULL, *second = NULL;
    char words[1024], number[32];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    EXPECT_OK(sl_store_open_journal(&lab_setup, &options, &report, &first));
    EXPECT_ERR(sl_store_open_journal(&lab_setup, &options, &report, &second), SL_ERR_LOCKED);
    snprintf(number, sizeof number, "number %ld", (long)getpid());
    EXPECT(strstr(words, number) != NULL);
    sl_store_close(first);
    sl_text_init(&report, words, sizeof words);
    EXPECT_OK(sl_store_open_journal(&lab_setup, &options, &report, &first));
    sl_store_close(first);
    remove_folder(path);
}

TEST(a_folder_that_cannot_be_is_named)
{
    const sl_journal_options options = { .folder = "/proc/nothing/here" };
    sl_store *store = NULL;
    char words[1024];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    EXPECT(sl_store_open_journal(&lab_setup, &options, &report, &store) != SL_OK);
    EXPECT(strstr(words, "/proc/nothing/here") != NULL && strstr(words, "No such file") != NULL);
}

/* commit durability = os: nobody waits for the disk, and what was written is there all the same after a restart. */
TEST(durability_os_answers_without_a_sync)
{
    lab w = lab_open(0);
    files f;
    uint64_t syncs;

    sl_store_close(w.store);
    w.options.sync_by_os = true;
    lab_open_again(&w);
    EXPECT_OK(w.err);
    f = lab_files_of(&w);
    syncs = sl_faulty_syncs(w.disk, f.segment);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(lab_append(&w, "s", 10));
    EXPECT_EQ(sl_faulty_syncs(w.disk, f.segment), syncs);
    sl_faulty_kill(w.disk);
    sl_store_close(w.store);
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(lab_count_all(&w), 10);
    lab_close(&w);
}

/* What the operating system had not written is lost, seconds of it; the store is not. */
TEST(durability_os_survives_a_power_cut_without_damage)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        lab w = lab_open(0);

        sl_store_close(w.store);
        w.options.sync_by_os = true;
        lab_open_again(&w);
        EXPECT_OK(w.err);
        lab_append_many(&w, 200); /* over several segments */
        sl_faulty_power_cut(w.disk, seed);
        sl_store_close(w.store);
        sl_faulty_settle(w.disk);
        lab_open_again(&w);
        EXPECT_OK(w.err);
        EXPECT(lab_count_all(&w) <= 200);
        EXPECT_OK(lab_append(&w, "s", 10));
        lab_close(&w);
    }
}

/* The embedded store beyond the contract: what is written where, what a restart finds, and what it says. */
#include "../base/support.h"
#include "../test.h"
#include "store/faulty/faulty.h"
#include "store/filter.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEGMENT = 64 * 1024
};

typedef struct world {
    sl_faulty *disk;
    sl_store *store;
    sl_journal_options options;
    char words[1024];
    sl_text report;
    sl_err err;
    uint64_t next_id;
} world;

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };

static void open_again(world *w)
{
    w->store = NULL;
    sl_text_init(&w->report, w->words, sizeof w->words);
    w->err = sl_store_open_faulty(&setup, &w->options, w->disk, &w->report, &w->store);
}

static world open_world(void)
{
    world w = { .disk = sl_faulty_new(), .options = { .segment_bytes = SEGMENT }, .next_id = 1 };

    open_again(&w);
    EXPECT_OK(w.err);
    return w;
}

static void close_world(world *w)
{
    sl_store_close(w->store);
    sl_faulty_free(w->disk);
}

static void reopen(world *w)
{
    sl_store_close(w->store);
    open_again(w);
    EXPECT_OK(w->err);
}

static void wait_once(world *w)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(w->store), .events = POLLIN };

    EXPECT_EQ(poll(&waiting, 1, 10 * 1000), 1);
    sl_store_poll(w->store);
}

typedef struct answer {
    bool is_there;
    sl_err err;
} answer;

static void note(void *ctx, const sl_commit *commit)
{
    answer *const a = ctx;

    a->is_there = true;
    a->err = commit->err;
}

static sl_err commit(world *w, const sl_op *op)
{
    const sl_batch batch = { op, 1, SL_DURABLE_SYNC };
    answer a = { 0 };
    const sl_err err = sl_store_submit(w->store, &batch, note, &a);

    if (err != SL_OK)
        return err;
    sl_store_turn(w->store);
    while (!a.is_there)
        wait_once(w);
    return a.err;
}

static sl_err append(world *w, const char *stream, size_t data_bytes)
{
    static char data[8 * 1024 * 1024];
    const sl_event_in event = { .id = sl_uuid_from_halves(5, (int64_t)w->next_id++),
                                .type = SL_STR("t"),
                                .data = { data, data_bytes } };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { sl_str_from(stream), { SL_EXPECT_ANY, 0 }, &event, 1 } };

    EXPECT(data_bytes <= sizeof data);
    return commit(w, &op);
}

static void append_many(world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i % 10);
        EXPECT_OK(append(w, name, 500));
    }
}

/* Reads to the end; AGAIN is waited for and counted. */
static uint32_t count(world *w, const sl_read *how, sl_err *ret_ended, uint32_t *ret_again)
{
    sl_cursor *cursor = NULL;
    sl_event events[16];
    uint32_t sum = 0, some = 0;

    *ret_again = 0;
    EXPECT_OK(sl_store_read(w->store, how, &cursor));
    while ((*ret_ended = sl_cursor_next(cursor, events, 16, &some)) == SL_OK || *ret_ended == SL_ERR_AGAIN) {
        if (*ret_ended == SL_ERR_AGAIN) {
            (*ret_again)++;
            wait_once(w);
        } else {
            sum += some;
        }
    }
    sl_cursor_close(cursor);
    return sum;
}

static uint32_t count_all(world *w)
{
    const sl_read everything = { .from = 0 };
    uint32_t again;
    sl_err ended;
    const uint32_t sum = count(w, &everything, &ended, &again);

    EXPECT_ERR(ended, SL_ERR_EMPTY);
    return sum;
}

typedef struct files {
    unsigned segments, indexes, rolls;
    char index[64], segment[64]; /* the first of each */
} files;

static void note_file(void *ctx, const char *name)
{
    files *const f = ctx;
    const char *const dot = strrchr(name, '.');

    if (dot == NULL)
        return;
    if (strcmp(dot, ".idx") == 0 && (f->indexes++ == 0 || strcmp(name, f->index) < 0))
        snprintf(f->index, sizeof f->index, "%s", name);
    if (strcmp(dot, ".seg") == 0 && (f->segments++ == 0 || strcmp(name, f->segment) < 0))
        snprintf(f->segment, sizeof f->segment, "%s", name);
    f->rolls += strcmp(dot, ".roll") == 0;
}

static files files_of(world *w)
{
    files f = { 0 };

    sl_faulty_each(w->disk, note_file, &f);
    return f;
}

/* --- reading what is not in memory --- */

/* "Reads of old data never stop the loop": a disk that is slow makes AGAIN, never a wait, and nothing is missed. */
TEST(a_slow_disk_makes_readers_ask_again_and_miss_nothing)
{
    world w = open_world();
    const sl_read reads[] = { { .from = 0 },
                              { .from = UINT64_MAX, .backwards = true },
                              { .stream = SL_STR("s3") },
                              { .stream = SL_STR("s3"), .from = UINT64_MAX, .backwards = true } };

    append_many(&w, 1000);
    reopen(&w);
    for (uint64_t every = 1; every <= 3; every++) {
        sl_faulty_slow_reads(w.disk, every);
        for (size_t i = 0; i < 4; i++) {
            uint32_t again;
            sl_err ended;

            EXPECT_EQ(count(&w, &reads[i], &ended, &again), i < 2 ? 1000 : 100);
            EXPECT_ERR(ended, SL_ERR_EMPTY);
            EXPECT(again > 0);
        }
    }
    close_world(&w);
}

/* The reader thread holds what it reads into; nobody waits for it any more. */
TEST(a_cursor_may_be_closed_while_its_data_is_on_the_way)
{
    world w = open_world();
    const sl_read everything = { .from = 0 };

    append_many(&w, 500);
    reopen(&w);
    sl_faulty_slow_reads(w.disk, 1);
    for (int i = 0; i < 100; i++) {
        sl_cursor *cursor = NULL;
        sl_event event;
        uint32_t some;

        EXPECT_OK(sl_store_read(w.store, &everything, &cursor));
        EXPECT_ERR(sl_cursor_next(cursor, &event, 1, &some), SL_ERR_AGAIN);
        sl_cursor_close(cursor);
    }
    close_world(&w);
}

TEST(an_event_may_be_larger_than_any_buffer)
{
    world w = open_world();
    uint32_t again;
    sl_err ended;

    sl_store_close(w.store);
    w.options.segment_bytes = 32 * 1024 * 1024;
    sl_faulty_free(w.disk);
    w.disk = sl_faulty_new();
    open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_OK(append(&w, "small", 10));
    EXPECT_OK(append(&w, "large", 8 * 1024 * 1024));
    EXPECT_OK(append(&w, "small", 10));
    reopen(&w);
    EXPECT_EQ(count_all(&w), 3);
    EXPECT_EQ(count(&w, &(sl_read){ .from = UINT64_MAX, .backwards = true }, &ended, &again), 3);
    EXPECT_EQ(count(&w, &(sl_read){ .stream = SL_STR("large") }, &ended, &again), 1);
    close_world(&w);
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

static void remove_caches(world *w)
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
    world w = open_world();
    progress p = { 0 };
    uint32_t again;
    sl_err ended;

    append_many(&w, 1000);
    sl_store_close(w.store);
    remove_caches(&w);
    EXPECT_EQ(files_of(&w).indexes, 0);
    w.options.progress = show;
    w.options.progress_ctx = &p;
    open_again(&w);
    EXPECT_OK(w.err);
    EXPECT(strstr(w.words, "index files anew") != NULL);
    EXPECT(p.calls > 5 && p.total > 5);
    EXPECT(files_of(&w).indexes > 5);
    EXPECT_EQ(count_all(&w), 1000);
    EXPECT_EQ(count(&w, &(sl_read){ .stream = SL_STR("s9") }, &ended, &again), 100);
    p.calls = 0;
    reopen(&w);
    EXPECT_EQ(p.calls, 0);
    EXPECT_STR(w.words, "");
    close_world(&w);
}

/* A full disk keeps nothing from starting, although files that should be made cannot be. */
TEST(a_full_disk_and_no_index_files_open_all_the_same)
{
    world w = open_world();
    uint32_t again;
    sl_err ended;

    append_many(&w, 1000);
    sl_store_close(w.store);
    remove_caches(&w);
    sl_faulty_set_full(w.disk, true);
    open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(count_all(&w), 1000);
    EXPECT_EQ(count(&w, &(sl_read){ .stream = SL_STR("s9") }, &ended, &again), 100);
    sl_faulty_set_full(w.disk, false);
    reopen(&w);
    EXPECT_EQ(count_all(&w), 1000);
    close_world(&w);
}

/* B14: what is read at open does not grow with what is stored. */
TEST(opening_reads_the_last_two_segments_and_no_more)
{
    world w = open_world();
    uint64_t calls[2];

    for (int i = 0; i < 2; i++) {
        append_many(&w, i == 0 ? 1000 : 9000);
        sl_store_close(w.store);
        calls[i] = sl_faulty_calls(w.disk);
        open_again(&w);
        EXPECT_OK(w.err);
        calls[i] = sl_faulty_calls(w.disk) - calls[i];
    }
    /* A header, an index and at most a roll for each segment: a few calls, whatever is in them. */
    EXPECT(calls[1] < calls[0] + 12 * files_of(&w).segments);
    close_world(&w);
}

TEST(a_damaged_segment_is_refused_with_its_name_and_place)
{
    world w = open_world();
    files f;

    append_many(&w, 1000);
    sl_store_close(w.store);
    f = files_of(&w);
    remove_caches(&w); /* or nobody would look */
    EXPECT(sl_faulty_flip(w.disk, f.segment, 20000, 3));
    open_again(&w);
    EXPECT_ERR(w.err, SL_ERR_CORRUPT);
    EXPECT(strstr(w.words, f.segment) != NULL && strstr(w.words, "at byte") != NULL);
    EXPECT(strstr(w.words, "sluice journal verify") != NULL);
    sl_faulty_free(w.disk);
}

/* With its index there, damage is found by whoever comes to it, and never served. */
TEST(damage_that_is_met_while_reading_is_named)
{
    world w = open_world();
    const sl_read everything = { .from = 0 };
    uint32_t again, sum;
    sl_err ended;
    files f;

    append_many(&w, 1000);
    reopen(&w);
    f = files_of(&w);
    EXPECT(sl_faulty_flip(w.disk, f.segment, 20000, 3));
    EXPECT_STR(sl_store_problem(w.store), "");
    sum = count(&w, &everything, &ended, &again);
    EXPECT_ERR(ended, SL_ERR_CORRUPT);
    EXPECT(sum > 0 && sum < 100);
    EXPECT(strstr(sl_store_problem(w.store), f.segment) != NULL);
    EXPECT_OK(append(&w, "s1", 10)); /* the rest goes on */
    close_world(&w);
}

TEST(a_damaged_index_is_made_anew_at_the_next_start)
{
    world w = open_world();
    uint32_t again;
    sl_err ended;
    files f;

    append_many(&w, 1000);
    sl_store_close(w.store);
    f = files_of(&w);
    EXPECT(sl_faulty_flip(w.disk, f.index, 100, 3));
    open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(count(&w, &(sl_read){ .stream = SL_STR("s0") }, &ended, &again), 100);
    EXPECT(strstr(w.words, "index files anew") != NULL);
    close_world(&w);
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
    world w = open_world();
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 8, SL_STR("the definition") } };
    const sl_effect seven = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 7 } };
    const sl_op record = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &seven } };
    uint64_t state = 7;
    loaded l = { 0 };

    EXPECT_OK(commit(&w, &create));
    EXPECT_OK(commit(&w, &record));
    sl_store_on_snapshot(w.store, tell_state, &state);
    append_many(&w, 1000);
    reopen(&w);
    EXPECT_OK(sl_store_load(w.store, &(sl_loader){ &l, load_group, load_record }));
    EXPECT_EQ(l.groups, 1);
    EXPECT_EQ(l.records, 1);
    EXPECT_EQ(l.newest, 7);
    close_world(&w);
}

/* Without anybody who tells its state it is found where it was written. */
TEST(a_group_without_snapshots_is_found_in_old_segments)
{
    world w = open_world();
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 8, SL_STR("the definition") } };
    const sl_effect seven = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 7 } };
    const sl_op record = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &seven } };

    EXPECT_OK(commit(&w, &create));
    for (int i = 0; i < 3; i++) {
        loaded l = { 0 };

        EXPECT_OK(commit(&w, &record));
        append_many(&w, 300);
        reopen(&w);
        EXPECT_OK(sl_store_load(w.store, &(sl_loader){ &l, load_group, load_record }));
        EXPECT_EQ(l.records, (uint64_t)i + 1);
    }
    close_world(&w);
}

/* --- failing --- */

TEST(a_failed_sync_ends_the_store_and_says_so)
{
    world w = open_world();
    files f;

    EXPECT_OK(append(&w, "s", 10));
    f = files_of(&w);
    sl_faulty_fail_sync(w.disk, f.segment);
    EXPECT_ERR(append(&w, "s", 10), SL_ERR_STORE_FAILED);
    EXPECT_ERR(append(&w, "s", 10), SL_ERR_STORE_FAILED);
    EXPECT(strstr(sl_store_problem(w.store), f.segment) != NULL);
    EXPECT(strstr(sl_store_problem(w.store), "accepts nothing more") != NULL);
    EXPECT_EQ(count_all(&w), 1); /* and keeps what it has */
    close_world(&w);
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
    EXPECT_OK(sl_store_open_journal(&setup, &options, &report, &first));
    EXPECT_ERR(sl_store_open_journal(&setup, &options, &report, &second), SL_ERR_LOCKED);
    snprintf(number, sizeof number, "number %ld", (long)getpid());
    EXPECT(strstr(words, number) != NULL);
    sl_store_close(first);
    sl_text_init(&report, words, sizeof words);
    EXPECT_OK(sl_store_open_journal(&setup, &options, &report, &first));
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
    EXPECT(sl_store_open_journal(&setup, &options, &report, &store) != SL_OK);
    EXPECT(strstr(words, "/proc/nothing/here") != NULL && strstr(words, "No such file") != NULL);
}

/* commit durability = os: nobody waits for the disk, and what was written is there all the same after a restart. */
TEST(durability_os_answers_without_a_sync)
{
    world w = open_world();
    files f;
    uint64_t syncs;

    sl_store_close(w.store);
    w.options.sync_by_os = true;
    open_again(&w);
    EXPECT_OK(w.err);
    f = files_of(&w);
    syncs = sl_faulty_syncs(w.disk, f.segment);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(append(&w, "s", 10));
    EXPECT_EQ(sl_faulty_syncs(w.disk, f.segment), syncs);
    sl_faulty_kill(w.disk);
    sl_store_close(w.store);
    open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_EQ(count_all(&w), 10);
    close_world(&w);
}

/* The log: order, durability, power cuts, damage, failing calls, full disks. */
#include "../base/support.h"
#include "../test.h"
#include "store/faulty/faulty.h"
#include "store/journal/log.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SEGMENT = 32768
};

typedef struct opened {
    sl_log *log;
    char text[512];
    sl_text report;
    sl_err err;
} opened;

static opened open_on(sl_disk *disk, uint32_t inline_max)
{
    opened o = { .log = NULL };

    sl_text_init(&o.report, o.text, sizeof o.text);
    o.err = sl_log_open(
        &(sl_log_setup){
            .disk = disk, .segment_bytes = SEGMENT, .store = { { 7 } }, .inline_max = inline_max },
        &o.report, &o.log);
    return o;
}

/* A frame of `count` records; each payload tells its own position, so that reading can check it. */
static sl_err put(sl_log *log, uint32_t count, uint32_t payload_bytes, bool urgent)
{
    const sl_err err = sl_log_begin(log, count * sl_record_size(payload_bytes), urgent);

    if (err != SL_OK)
        return err;
    for (uint32_t i = 0; i < count; i++) {
        sl_log_place place;
        uint8_t *const at = sl_log_record(log, SL_RECORD_EVENT, payload_bytes, &place);
        memset(at, (int)(place.position % 251), payload_bytes);
    }
    sl_log_end(log);
    return SL_OK;
}

/* Until what was written is durable, or the log has failed. */
static void wait_for_sync(sl_log *log)
{
    sl_log_turn(log);
    sl_log_sync(log, UINT64_MAX);
    while (sl_log_durable(log) < sl_log_written(log) && sl_log_err(log) == SL_OK) {
        struct pollfd fd = { .fd = sl_log_wait_fd(log), .events = POLLIN };
        poll(&fd, 1, -1);
        sl_log_poll(log);
    }
}

typedef struct reader {
    uint64_t next, events;
    bool wrong;
} reader;

static sl_err look(void *ctx, const sl_record_view *record, sl_record_place place)
{
    reader *const r = ctx;

    (void)place;
    r->wrong = r->wrong || record->position != r->next;
    r->next++;
    r->events += record->kind == SL_RECORD_EVENT;
    for (uint32_t i = 0; i < record->payload_bytes; i++)
        r->wrong = r->wrong || record->payload[i] != record->position % 251;
    return SL_OK;
}

/* Reads everything; *ret_err is the first damage. */
static reader read_all(const sl_log *log, sl_err *ret_err)
{
    reader r = { .next = 1 };

    *ret_err = SL_OK;
    for (uint32_t i = 0; i < sl_log_segment_count(log) && *ret_err == SL_OK; i++) {
        sl_segment_ref segment;
        uint64_t offset;
        sl_log_segment(log, i, &segment);
        *ret_err = sl_segment_each(&segment, look, &r, &offset);
    }
    return r;
}

static void expect_events(const sl_log *log, uint64_t events)
{
    sl_err err;
    const reader r = read_all(log, &err);

    EXPECT_OK(err);
    EXPECT(!r.wrong);
    EXPECT_EQ(r.events, events);
    EXPECT_EQ(r.next, sl_log_written(log));
}

TEST(what_is_written_is_read_in_order_over_segments_and_restarts)
{
    sl_faulty *disk = sl_faulty_new();

    for (uint32_t life = 1; life <= 5; life++) {
        opened o =
            open_on(sl_faulty_door(disk), life % 2 ? 0 : 100); /* by the other thread, and in this one */
        EXPECT_OK(o.err);
        EXPECT_STR(o.text, "");
        expect_events(o.log, 300 * (uint64_t)(life - 1));
        for (int i = 0; i < 100; i++) {
            EXPECT_OK(put(o.log, 3, 100, false));
            if (i % 7 == 0)
                wait_for_sync(o.log);
        }
        wait_for_sync(o.log);
        EXPECT_EQ(sl_log_durable(o.log), sl_log_next(o.log));
        expect_events(o.log, 300 * (uint64_t)life);
        EXPECT(sl_log_segment_count(o.log) > life);
        sl_log_close(o.log);
    }
    sl_faulty_free(disk);
}

/* The process dies, the machine does not: what was written is there, synced or not. */
TEST(what_was_written_survives_the_process)
{
    sl_faulty *disk = sl_faulty_new();
    opened o = open_on(sl_faulty_door(disk), 100), again;

    EXPECT_OK(put(o.log, 3, 100, false));
    sl_log_turn(o.log);
    EXPECT_OK(put(o.log, 3, 100, false)); /* gathered, never written */
    sl_faulty_kill(disk);
    sl_log_close(o.log); /* it can not write any more */
    again = open_on(sl_faulty_door(disk), 100);
    EXPECT_OK(again.err);
    expect_events(again.log, 3);
    sl_log_close(again.log);
    sl_faulty_free(disk);
}

/* What a killed process had written and not synced is seen by the next one, which calls it durable. So it must have been
 * synced by then. */
TEST(what_a_killed_process_left_is_durable_after_the_next_opening)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sl_faulty *disk = sl_faulty_new();
        opened o = open_on(sl_faulty_door(disk), 100);

        EXPECT_OK(put(o.log, 3, 700, false));
        sl_log_turn(o.log);
        sl_faulty_kill(disk);
        sl_log_close(o.log);
        o = open_on(sl_faulty_door(disk), 100);
        EXPECT_OK(o.err);
        sl_faulty_power_cut(disk, seed);
        sl_log_close(o.log);
        sl_faulty_settle(disk);
        o = open_on(sl_faulty_door(disk), 100);
        EXPECT_OK(o.err);
        expect_events(o.log, 3);
        sl_log_close(o.log);
        sl_faulty_free(disk);
    }
}

/* Until it has synced them, the next process may not call the frames of a killed one durable, not even in its own first
 * frame: that one may survive a power cut without them, and would make damage of what nobody was promised. */
TEST(a_power_cut_while_opening_what_a_killed_process_left_is_no_damage)
{
    for (uint64_t seed = 1; seed <= 400; seed += SWEEP_STEP) {
        sl_faulty *disk = sl_faulty_new();
        opened o = open_on(sl_faulty_door(disk), 100);

        for (int i = 0; i < 5; i++)
            EXPECT_OK(put(o.log, 3, 700, false));
        sl_log_turn(o.log);
        sl_faulty_kill(disk);
        sl_log_close(o.log);
        sl_faulty_cut_after(disk, seed % 16, seed);
        o = open_on(sl_faulty_door(disk), 100);
        if (o.err == SL_OK) {
            sl_faulty_power_cut(disk, seed);
            sl_log_close(o.log);
        }
        sl_faulty_settle(disk);
        o = open_on(sl_faulty_door(disk), 100);
        EXPECT_RUN(o.err == SL_OK, seed, (size_t)0);
        sl_log_close(o.log);
        sl_faulty_free(disk);
    }
}

/* After any power cut: every durable record is there, a frame is there whole or not at all, nothing wrong is read. */
TEST(a_power_cut_takes_nothing_that_was_durable_and_leaves_no_half_frame)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        sl_faulty *disk = sl_faulty_new();
        dice d = dice_from(seed);
        uint64_t durable = 0;

        for (int life = 0; life < 4; life++) {
            opened o = open_on(sl_faulty_door(disk), 2);
            sl_err err;
            reader r;

            EXPECT_RUN(o.err == SL_OK, seed, (size_t)life);
            r = read_all(o.log, &err);
            EXPECT_RUN(err == SL_OK && !r.wrong && r.next >= durable && r.events % 3 == 0, seed,
                       (size_t)life);
            for (uint64_t i = 0, n = dice_pick(&d, 60); i < n; i++) {
                EXPECT_OK(put(o.log, 3, (uint32_t)dice_pick(&d, 400), false));
                if (dice_pick(&d, 3) == 0)
                    sl_log_turn(o.log);
                if (dice_pick(&d, 5) == 0)
                    wait_for_sync(o.log);
            }
            durable = sl_log_durable(o.log);
            sl_faulty_power_cut(disk, seed * 10 + (uint64_t)life);
            sl_log_close(o.log);
            sl_faulty_settle(disk);
        }
        sl_faulty_free(disk);
    }
}

/* The process dies here; what it wrote stays. */
static void die(sl_faulty *disk, sl_log *log)
{
    sl_faulty_kill(disk);
    sl_log_close(log);
}

/* Behind the end stands a whole frame of the life before. The new life's first frame ends exactly where it begins and
 * gives it the right position: only the epoch tells that it was never part of this log. */
TEST(a_frame_that_an_earlier_life_left_behind_the_end_does_not_come_back)
{
    sl_faulty *disk = sl_faulty_new();
    opened o = open_on(sl_faulty_door(disk), 100);

    EXPECT_OK(put(o.log, 1, 0, false)); /* as large as what the next life writes when it opens */
    EXPECT_OK(put(o.log, 1, 16, false));
    sl_log_turn(o.log);
    die(disk, o.log);
    sl_faulty_flip(disk, "0000000000000001.seg", 4096 + 72 + 20, 0); /* the first of the two was torn */
    o = open_on(sl_faulty_door(disk), 100);
    EXPECT_OK(o.err);
    EXPECT(strstr(o.text, "Cut what a crash had left") != NULL);
    EXPECT_EQ(sl_log_next(o.log), 3);
    die(disk, o.log);
    o = open_on(sl_faulty_door(disk), 100);
    EXPECT_OK(o.err);
    EXPECT_EQ(sl_log_next(o.log), 4);
    expect_events(o.log, 0);
    sl_log_close(o.log);
    sl_faulty_free(disk);
}

static void fill(sl_faulty *disk, int frames)
{
    opened o = open_on(sl_faulty_door(disk), 100);

    EXPECT_OK(o.err);
    for (int i = 0; i < frames; i++)
        EXPECT_OK(put(o.log, 2, 30, false));
    sl_log_close(o.log);
}

/* One bit anywhere in the last segment: it is noticed, or nothing is missing. */
TEST(a_flipped_bit_is_never_read_as_truth)
{
    static const char name[] = "0000000000000001.seg";

    for (uint64_t offset = 0; offset < 4096 + 1200; offset += offset < 60 || offset >= 4096 ? 1 : 97) {
        sl_faulty *disk = sl_faulty_new();
        opened o;

        fill(disk, 6);
        sl_faulty_flip(disk, name, offset, (unsigned)(offset % 8));
        o = open_on(sl_faulty_door(disk), 100);
        if (o.err == SL_OK) {
            expect_events(o.log, 12);
            sl_log_close(o.log);
        } else {
            EXPECT_ERR(o.err, SL_ERR_CORRUPT);
            EXPECT(strstr(o.text, name) != NULL && strstr(o.text, "Restore") != NULL);
        }
        sl_faulty_free(disk);
    }
}

TEST(damage_in_a_full_segment_is_found_by_reading_it)
{
    sl_faulty *disk = sl_faulty_new();
    opened o;
    reader r;
    sl_err err;

    fill(disk, 400);
    sl_faulty_flip(disk, "0000000000000001.seg", 9000, 3);
    o = open_on(sl_faulty_door(disk), 100); /* opening reads only the last one */
    EXPECT_OK(o.err);
    r = read_all(o.log, &err);
    EXPECT_ERR(err, SL_ERR_CORRUPT);
    EXPECT(!r.wrong);
    sl_log_close(o.log);
    sl_faulty_free(disk);
}

static void expect_named_when_missing(const char *name)
{
    sl_faulty *disk = sl_faulty_new();
    sl_disk *door;
    opened o;

    fill(disk, 800);
    door = sl_faulty_door(disk);
    EXPECT_OK(door->ops->remove(door, name));
    door->ops->free(door);
    o = open_on(sl_faulty_door(disk), 100);
    EXPECT_ERR(o.err, SL_ERR_CORRUPT);
    EXPECT(strstr(o.text, "missing") != NULL);
    sl_faulty_free(disk);
}

TEST(a_missing_segment_is_named_and_so_is_the_first)
{
    expect_named_when_missing("0000000000000002.seg");
    expect_named_when_missing("0000000000000001.seg");
}

/* Opens, writes, syncs and closes. Returns what was durable before the first failure, 0 when it did not open. */
static uint64_t one_life(sl_faulty *disk)
{
    opened o = open_on(sl_faulty_door(disk), 2);
    uint64_t durable;

    if (o.err != SL_OK)
        return 0;
    for (int i = 0; i < 120 && sl_log_err(o.log) == SL_OK; i++) {
        const sl_err err = put(o.log, 3, 100, false);
        EXPECT(err == SL_OK || err == SL_ERR_STORE_FAILED || err == SL_ERR_NO_SPACE || err == SL_ERR_IO);
        if (err == SL_OK)
            wait_for_sync(o.log);
    }
    durable = sl_log_durable(o.log);
    sl_log_close(o.log);
    return durable;
}

/* Every call to the disk fails once: nothing that was called durable is lost, nothing crashes, the next life is fine. */
TEST(each_call_to_the_disk_may_fail_once)
{
    static const sl_err errors[] = { SL_ERR_IO, SL_ERR_NO_SPACE };
    sl_faulty *disk = sl_faulty_new();
    uint64_t calls;

    one_life(disk);
    calls = sl_faulty_calls(disk);
    sl_faulty_free(disk);
    EXPECT(calls > 100);
    for (uint64_t n = 0; n < 2 * calls; n += n < 40 ? 1 : 5) {
        opened o;
        uint64_t durable;

        disk = sl_faulty_new();
        sl_faulty_fail_after(disk, n / 2, errors[n % 2]);
        durable = one_life(disk);
        sl_faulty_fail_after(disk, UINT64_MAX, SL_OK);
        sl_faulty_power_cut(disk, n);
        sl_faulty_settle(disk);
        o = open_on(sl_faulty_door(disk), 2);
        EXPECT_RUN(o.err == SL_OK, n, (size_t)0);
        EXPECT_RUN(sl_log_next(o.log) >= durable, n, (size_t)1);
        sl_log_close(o.log);
        sl_faulty_free(disk);
    }
}

TEST(a_failed_sync_is_the_end_and_is_not_tried_again)
{
    static const char name[] = "0000000000000001.seg";

    for (uint32_t inline_max = 0; inline_max <= 100;
         inline_max += 100) { /* by the other thread, and in this one */
        sl_faulty *disk = sl_faulty_new();
        opened o = open_on(sl_faulty_door(disk), inline_max);
        uint64_t syncs;

        EXPECT_OK(put(o.log, 1, 10, false));
        sl_faulty_fail_sync(disk, name);
        wait_for_sync(o.log);
        EXPECT_ERR(sl_log_err(o.log), SL_ERR_STORE_FAILED);
        EXPECT(sl_log_durable(o.log) < sl_log_written(o.log));
        syncs = sl_faulty_syncs(disk, name);
        sl_log_sync(o.log, UINT64_MAX);
        EXPECT_ERR(put(o.log, 1, 10, false), SL_ERR_STORE_FAILED);
        sl_log_close(o.log);
        EXPECT_EQ(sl_faulty_syncs(disk, name), syncs);
        sl_faulty_free(disk);
    }
}

/* No room for the next segment: what is not urgent is refused while the reserve lasts, and goes on when there is room. */
TEST(a_full_disk_refuses_appends_keeps_a_reserve_and_recovers_by_itself)
{
    sl_faulty *disk = sl_faulty_new();
    opened o = open_on(sl_faulty_door(disk), 100);
    uint64_t urgent = 0;
    sl_err err;

    sl_faulty_set_full(disk, true);
    while ((err = put(o.log, 1, 1000, false)) == SL_OK)
        wait_for_sync(o.log);
    EXPECT_ERR(err, SL_ERR_NO_SPACE);
    for (; put(o.log, 1, 100, true) == SL_OK; urgent++)
        wait_for_sync(o.log);
    EXPECT(urgent >= SEGMENT / 8 / 200);
    EXPECT_OK(sl_log_err(o.log));
    sl_faulty_set_full(disk, false);
    while ((err = put(o.log, 1, 1000, false)) == SL_ERR_NO_SPACE) {
        struct pollfd fd = { .fd = sl_log_wait_fd(o.log), .events = POLLIN };
        poll(&fd, 1, -1); /* the next segment is ready, or could not be made again */
        sl_log_poll(o.log);
    }
    EXPECT_OK(err);
    sl_log_close(o.log);
    sl_faulty_free(disk);
}

TEST(a_frame_larger_than_a_segment_is_refused)
{
    sl_faulty *disk = sl_faulty_new();
    opened o = open_on(sl_faulty_door(disk), 100);

    EXPECT_ERR(put(o.log, 1, SEGMENT, false), SL_ERR_TOO_LARGE);
    EXPECT_OK(put(o.log, 1, SEGMENT - 4096 - 48 - 24, false));
    sl_log_close(o.log);
    sl_faulty_free(disk);
}

TEST(two_processes_do_not_share_a_folder)
{
    char path[] = P_tmpdir "/sluice-test-XXXXXX", command[64];
    sl_disk *first = NULL, *second = NULL;
    opened a, b;

    EXPECT(mkdtemp(path) != NULL);
    EXPECT_OK(sl_disk_open_folder(path, &first));
    EXPECT_OK(sl_disk_open_folder(path, &second));
    a = open_on(first, 100);
    EXPECT_OK(a.err);
    b = open_on(second, 100);
    EXPECT_ERR(b.err, SL_ERR_LOCKED);
    snprintf(command, sizeof command, "number %ld", (long)getpid());
    EXPECT(strstr(b.text, command) != NULL);
    EXPECT_OK(put(a.log, 5, 100, false));
    wait_for_sync(a.log);
    sl_log_close(a.log);
    EXPECT_OK(sl_disk_open_folder(path, &first));
    a = open_on(first, 100);
    EXPECT_OK(a.err);
    expect_events(a.log, 5);
    sl_log_close(a.log);
    snprintf(command, sizeof command, "rm -r '%s'", path);
    EXPECT_EQ(system(command), 0);
}

TEST(a_sync_begins_only_for_what_somebody_wants_durable)
{
    static const char name[] = "0000000000000001.seg";
    sl_faulty *disk = sl_faulty_new();
    opened o = open_on(sl_faulty_door(disk), 100);
    const uint64_t wanted = sl_log_next(o.log), syncs = sl_faulty_syncs(disk, name);

    EXPECT_OK(put(o.log, 1, 10, false));
    sl_log_turn(o.log);
    sl_log_sync(o.log, wanted); /* everything below is durable */
    EXPECT_EQ(sl_faulty_syncs(disk, name), syncs);
    EXPECT_EQ(sl_log_durable(o.log), wanted);
    sl_log_sync(o.log, wanted + 1);
    EXPECT_EQ(sl_faulty_syncs(disk, name), syncs + 1);
    EXPECT_EQ(sl_log_durable(o.log), wanted + 1);
    sl_log_close(o.log);
    sl_faulty_free(disk);
}

typedef struct rests {
    unsigned count;
    uint64_t done_bytes;
    bool went_back;
} rests;

static void note_rest(void *ctx, uint64_t done_bytes)
{
    rests *const r = ctx;

    r->count++;
    r->went_back = r->went_back || done_bytes <= r->done_bytes;
    r->done_bytes = done_bytes;
}

TEST(a_file_that_nobody_waits_for_is_made_in_pieces)
{
    enum {
        BYTES = 1000 * 1000 /* no multiple of anything */
    };
    static uint8_t found[BYTES];
    char path[] = P_tmpdir "/sluice-test-XXXXXX", command[64];
    rests r = { 0 };
    const sl_pace pace = { note_rest, &r };
    sl_disk *disk = NULL;
    sl_file *file = NULL;

    EXPECT(mkdtemp(path) != NULL);
    EXPECT_OK(sl_disk_open_folder(path, &disk));
    EXPECT_OK(disk->ops->create(disk, "file", BYTES, &pace, &file));
    EXPECT(r.count >= 4 && !r.went_back && r.done_bytes >= BYTES);
    EXPECT_EQ(disk->ops->size(file), BYTES);
    memset(found, 1, sizeof found);
    EXPECT_OK(disk->ops->read(file, 0, found, sizeof found));
    for (size_t i = 0; i < sizeof found; i++)
        EXPECT(found[i] == 0);
    disk->ops->close(file);
    disk->ops->free(disk);
    snprintf(command, sizeof command, "rm -r '%s'", path);
    EXPECT_EQ(system(command), 0);
}

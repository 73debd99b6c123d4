/* tests/unit/worker/test_ack_file.c — what is noted survives the process, and nothing else is believed. */
#include "worker/ack_file.h"

#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KILLS = 40,
    PLACE_BYTES = 192,
    UNSURE_AT = 48, /* within a place */
    PLACES_AT = 4096
};

static char ack_folder[64], ack_path[96], ack_problem[1000];

static void make_folder(void)
{
    (void)snprintf(ack_folder, sizeof ack_folder, "/tmp/sluice-ack-XXXXXX");
    assert_non_null(mkdtemp(ack_folder));
    (void)snprintf(ack_path, sizeof ack_path, "%s/acks", ack_folder);
}

static void remove_folder(void)
{
    char beside[128];

    (void)snprintf(beside, sizeof beside, "%s.new", ack_path);
    EXPECT_EQ(access(beside, F_OK), -1); /* nothing is left beside the file */
    (void)unlink(ack_path);
    EXPECT_EQ(rmdir(ack_folder), 0);
}

static sl_err try_open(const char *source, const char *name, sl_ack_file **ret_file)
{
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, ack_problem, sizeof ack_problem);
    err = sl_ack_file_open(ack_path, sl_str_from(source), sl_str_from(name), &problem, ret_file);
    EXPECT_EQ(err == SL_OK, problem.bytes == 0);
    if (err != SL_OK &&
        (problem.cut || strstr(ack_problem, ack_path) == NULL || ack_problem[problem.bytes - 1] != '.'))
        fail_msg("this is no sentence about the file: %s", ack_problem);
    return err;
}

static sl_ack_file *open_file(const char *name)
{
    sl_ack_file *file = NULL;

    EXPECT_OK(try_open("sluice://one/orders/billing", name, &file));
    return file;
}

/* A park has one, of another length each time. */
static sl_str reason_of(uint64_t number, char into[SL_ACK_FILE_REASON_BYTES_MAX + 1])
{
    if (number % 2 == 0)
        return SL_STR("");
    memset(into, (int)('a' + number % 26), SL_ACK_FILE_REASON_BYTES_MAX);
    return (sl_str){ into, 1 + number % SL_ACK_FILE_REASON_BYTES_MAX };
}

/* Every field follows from the number, so that a mixture of two entries is seen. The reason is good until the next call. */
static sl_ack_entry entry_of(uint64_t number)
{
    static char reason[SL_ACK_FILE_REASON_BYTES_MAX + 1];
    sl_ack_entry entry = { .token = number * 3 + 1, .revision = number * 7, .is_park = number % 2 == 1 };

    entry.reason = reason_of(number, reason);
    memcpy(entry.id.bytes, &number, sizeof number);
    memcpy(entry.id.bytes + 8, &number, sizeof number);
    return entry;
}

static bool is_entry(const sl_ack_entry *entry, uint64_t *ret_number)
{
    sl_ack_entry wanted;

    memcpy(ret_number, entry->id.bytes, sizeof *ret_number);
    wanted = entry_of(*ret_number);
    return sl_uuid_equal(wanted.id, entry->id) && wanted.token == entry->token &&
           wanted.revision == entry->revision && wanted.is_park == entry->is_park &&
           sl_str_equal(wanted.reason, entry->reason);
}

static uint32_t put(sl_ack_file *file, uint64_t number)
{
    const sl_ack_entry entry = entry_of(number);
    uint32_t place = UINT32_MAX;

    EXPECT_OK(sl_ack_file_put(file, &entry, &place));
    return place;
}

static size_t count_left(sl_ack_file *file, sl_ack_entry *entries, uint32_t *places)
{
    const size_t count = sl_ack_file_left(file, entries, places, SL_ACK_FILE_PLACES);
    uint64_t number;

    EXPECT_EQ(count, sl_ack_file_count(file));
    for (size_t i = 0; i < count; i++)
        EXPECT(is_entry(&entries[i], &number));
    return count;
}

static sl_ack_entry left[SL_ACK_FILE_PLACES];
static uint32_t left_places[SL_ACK_FILE_PLACES];

TEST(what_was_noted_and_not_dropped_is_there_after_a_reopen_B3)
{
    sl_ack_file *file;
    uint32_t dropped;
    uint64_t number;

    make_folder();
    file = open_file("");
    EXPECT_EQ(sl_ack_file_count(file), 0);
    (void)put(file, 1);
    dropped = put(file, 2);
    (void)put(file, 3);
    sl_ack_file_drop(file, dropped);
    sl_ack_file_drop(file, dropped); /* once more is harmless */
    EXPECT_EQ(sl_ack_file_count(file), 2);
    sl_ack_file_close(file);

    file = open_file("");
    EXPECT_EQ(count_left(file, left, left_places), 2);
    EXPECT(is_entry(&left[0], &number) && number == 1);
    EXPECT(is_entry(&left[1], &number) && number == 3);
    EXPECT_EQ(sl_ack_file_left(file, left, left_places, 1), 1);
    (void)put(file, 4); /* into a place of its own */
    EXPECT_EQ(count_left(file, left, left_places), 3);
    for (size_t i = 0; i < 3; i++)
        sl_ack_file_drop(file, left_places[i]);
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT_EQ(sl_ack_file_count(file), 0);
    sl_ack_file_close(file);
    remove_folder();
}

TEST(a_reason_that_is_too_long_for_an_ack_file_is_cut_at_a_whole_character_S3_38)
{
    char text[SL_ACK_FILE_REASON_BYTES_MAX + 2];
    sl_ack_entry entry = { .is_park = true, .reason = { text, sizeof text } };
    sl_ack_file *file;
    uint32_t place;

    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 3, "\303\244", 2); /* its second byte would be the first that has no room */
    make_folder();
    file = open_file("");
    EXPECT_OK(sl_ack_file_put(file, &entry, &place));
    entry.reason.bytes = SL_ACK_FILE_REASON_BYTES_MAX - 1;
    EXPECT_OK(sl_ack_file_put(file, &entry, &place));
    entry.reason.bytes = 0; /* and one without, into a place that had one */
    sl_ack_file_drop(file, place);
    EXPECT_OK(sl_ack_file_put(file, &entry, &place));
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT_EQ(sl_ack_file_left(file, left, left_places, 3), 2);
    EXPECT(sl_str_equal(left[0].reason, (sl_str){ text, SL_ACK_FILE_REASON_BYTES_MAX - 1 }));
    EXPECT_EQ(left[1].reason.bytes, 0);
    sl_ack_file_close(file);
    remove_folder();
}

TEST(an_ack_file_that_is_full_says_so_and_takes_more_after_a_drop)
{
    sl_ack_entry entry = entry_of(1);
    sl_ack_file *file;
    uint32_t place = 0;

    make_folder();
    file = open_file("");
    for (uint64_t i = 0; i < SL_ACK_FILE_PLACES; i++)
        (void)put(file, i);
    EXPECT_ERR(sl_ack_file_put(file, &entry, &place), SL_ERR_FULL);
    sl_ack_file_drop(file, 77);
    EXPECT_OK(sl_ack_file_put(file, &entry, &place));
    EXPECT_EQ(place, 77);
    EXPECT_ERR(sl_ack_file_put(file, &entry, &place), SL_ERR_FULL);
    sl_ack_file_close(file);
    remove_folder();
}

/* A process that notes and drops as fast as it can, holding a few. A shared page says which numbers it has surely noted and not yet
 * begun to drop: [from, to). */
typedef struct progress {
    volatile uint64_t from, to;
} progress;

enum {
    HELD = 50
};

static void scribble(progress *shared, uint64_t start)
{
    sl_ack_file *file = NULL;
    uint32_t places[HELD];
    sl_text problem;

    sl_text_init(&problem, ack_problem, sizeof ack_problem);
    if (sl_ack_file_open(ack_path, SL_STR("sluice://one/orders/billing"), SL_STR(""), &problem, &file) !=
        SL_OK)
        _exit(3);
    for (uint64_t i = start;; i++) {
        const sl_ack_entry entry = entry_of(i);

        if (i >= start + HELD) {
            shared->from = i - HELD + 1;
            sl_ack_file_drop(file, places[i % HELD]);
        }
        if (sl_ack_file_put(file, &entry, &places[i % HELD]) != SL_OK)
            _exit(4);
        shared->to = i + 1;
    }
}

static void kill_a_scribbler(progress *shared, uint64_t start, unsigned round)
{
    const time_t guard = time(NULL) + 60;
    int status = 0;
    pid_t child;

    shared->from = start;
    shared->to = start;
    child = fork();
    if (child == 0)
        scribble(shared, start);
    EXPECT(child > 0);
    while (shared->to < start + 100 + round * 37) { /* other moments each time */
        if (waitpid(child, &status, WNOHANG) == child)
            fail_msg("the child ended by itself with %d", status);
        EXPECT(time(NULL) < guard);
    }
    EXPECT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFSIGNALED(status));
}

TEST(kill_9_at_any_moment_loses_nothing_that_was_noted_and_leaves_no_half_entry_B3)
{
    progress *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    make_folder();
    for (unsigned round = 0; round < KILLS; round++) {
        const uint64_t start = round * UINT64_C(1000000000);
        uint64_t found = 0;
        sl_ack_file *file;
        size_t count;

        kill_a_scribbler(shared, start, round);
        file = open_file("");
        count = count_left(file, left, left_places);
        for (size_t i = 0; i < count; i++) {
            uint64_t number;

            EXPECT(is_entry(&left[i], &number));
            EXPECT(number >= start); /* earlier rounds have been dropped */
            found += number >= shared->from && number < shared->to ? 1 : 0;
            sl_ack_file_drop(file, left_places[i]);
        }
        EXPECT_EQ(found, shared->to - shared->from);
        EXPECT(count <= HELD);
        sl_ack_file_close(file);
    }
    (void)munmap(shared, sizeof *shared);
    remove_folder();
}

/* Changes one byte of the file. */
static void flip(off_t at)
{
    const int fd = open(ack_path, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    EXPECT_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    EXPECT_EQ(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

static void fill(sl_ack_file *file)
{
    while (sl_ack_file_count(file) < SL_ACK_FILE_PLACES)
        (void)put(file, 3);
}

TEST(what_is_unsure_for_too_long_is_forgotten_at_the_next_open_or_when_there_is_no_room_B3)
{
    const uint64_t now_s = sl_ack_file_clock_s();
    const sl_ack_entry entry = entry_of(5);
    uint32_t old, young, place;
    sl_ack_file *file;

    make_folder();
    file = open_file("");
    old = put(file, 1);
    young = put(file, 2);
    sl_ack_file_keep(file, old, now_s - SL_ACK_FILE_UNSURE_S - 10);
    sl_ack_file_keep(file, old, now_s); /* the first time counts */
    sl_ack_file_keep(file, young, now_s - SL_ACK_FILE_UNSURE_S + 100);
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT_EQ(count_left(file, left, left_places), 1);
    EXPECT_EQ(left_places[0], young);

    fill(file);
    sl_ack_file_keep(file, young, now_s);
    EXPECT_EQ(put(file, 5), young); /* what is certain goes before what is not */
    EXPECT_EQ(sl_ack_file_put(file, &entry, &place), SL_ERR_FULL); /* that entry is a new one */
    sl_ack_file_close(file);
    remove_folder();
}

/* It is said again by this process, whose word about it will come. */
TEST(what_is_unsure_and_said_again_makes_no_room_until_it_is_dropped_B3)
{
    const sl_ack_entry entry = entry_of(5);
    uint32_t unsure, place;
    sl_ack_file *file;

    make_folder();
    file = open_file("");
    unsure = put(file, 1);
    sl_ack_file_keep(file, unsure, sl_ack_file_clock_s());
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT_EQ(count_left(file, left, left_places), 1);

    fill(file);
    EXPECT_ERR(sl_ack_file_put(file, &entry, &place), SL_ERR_FULL);
    sl_ack_file_drop(file, unsure);
    EXPECT_EQ(put(file, 5), unsure);
    EXPECT_ERR(sl_ack_file_put(file, &entry, &place), SL_ERR_FULL); /* it became free once */
    EXPECT_EQ(count_left(file, left, left_places), SL_ACK_FILE_PLACES);
    sl_ack_file_close(file);
    remove_folder();
}

/* A machine without a battery begins in 1970 and learns the time later. */
TEST(a_clock_that_is_near_its_beginning_forgets_nothing_that_is_unsure_B3)
{
    sl_ack_file *file;

    make_folder();
    file = open_file("");
    sl_ack_file_keep(file, put(file, 1), 0);
    sl_ack_file_keep(file, put(file, 2), sl_ack_file_clock_s());
    sl_ack_file_forget(file, 0);
    sl_ack_file_forget(file, SL_ACK_FILE_UNSURE_S - 1);
    EXPECT_EQ(sl_ack_file_count(file), 2);
    sl_ack_file_forget(file, SL_ACK_FILE_UNSURE_S + 2); /* it was kept in the first second at the latest */
    EXPECT_EQ(sl_ack_file_count(file), 1);
    sl_ack_file_close(file);
    remove_folder();
}

TEST(a_place_with_a_flipped_bit_or_from_another_place_is_not_believed)
{
    uint8_t copied[PLACE_BYTES];
    sl_ack_file *file;
    int fd;

    make_folder();
    file = open_file("");
    for (uint64_t i = 0; i < PLACE_BYTES - 1; i++)
        (void)put(file, 2 * SL_ACK_FILE_REASON_BYTES_MAX - 1); /* a reason as long as there is room */
    sl_ack_file_close(file);
    for (off_t i = 0; i < PLACE_BYTES - 1; i++) /* every byte of a place but the zero behind the reason */
        flip(PLACES_AT + i * PLACE_BYTES + i);
    file = open_file("");
    EXPECT(count_left(file, left, left_places) <= sizeof(uint64_t)); /* since when it is unsure: not sealed */
    for (size_t i = 0; i < count_left(file, left, left_places); i++)
        EXPECT(left_places[i] >= UNSURE_AT && left_places[i] < UNSURE_AT + sizeof(uint64_t));
    for (size_t i = 0; i < SL_ACK_FILE_PLACES; i++)
        sl_ack_file_drop(file, (uint32_t)i);
    (void)put(file, 100);
    sl_ack_file_close(file);

    fd = open(ack_path, O_RDWR | O_CLOEXEC);
    EXPECT_EQ(pread(fd, copied, sizeof copied, PLACES_AT), PLACE_BYTES);
    EXPECT_EQ(pwrite(fd, copied, sizeof copied, PLACES_AT + PLACE_BYTES), PLACE_BYTES);
    (void)close(fd);
    file = open_file("");
    EXPECT_EQ(count_left(file, left, left_places), 1);
    sl_ack_file_close(file);
    remove_folder();
}

TEST(a_file_that_is_none_of_ours_or_damaged_is_refused_and_left_as_it_was)
{
    sl_ack_file *file = NULL;
    struct stat before, after;
    int fd;

    make_folder();
    fd = open(ack_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(write(fd, "my diary\n", 9), 9);
    (void)close(fd);
    EXPECT_ERR(try_open("s", "", &file), SL_ERR_INVALID);
    EXPECT_EQ(stat(ack_path, &before), 0);
    EXPECT_EQ(before.st_size, 9);
    (void)unlink(ack_path);

    sl_ack_file_close(open_file(""));
    EXPECT_EQ(stat(ack_path, &before), 0);
    flip(0);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_INVALID);
    flip(0);
    flip(8);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_VERSION);
    flip(8);
    flip(60);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_INVALID);
    flip(60);
    EXPECT_EQ(truncate(ack_path, before.st_size - 1), 0);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_INVALID);
    EXPECT_EQ(stat(ack_path, &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    (void)unlink(ack_path);
    (void)snprintf(ack_path, sizeof ack_path, "%s/nowhere/acks", ack_folder);
    EXPECT_ERR(try_open("s", "", &file), SL_ERR_IO);
    assert_null(file);
    EXPECT_EQ(rmdir(ack_folder), 0);
}

TEST(an_ack_file_of_another_source_is_refused_while_it_has_entries_and_taken_over_when_it_has_none)
{
    sl_ack_file *file;
    uint32_t place;

    make_folder();
    file = open_file("anna");
    place = put(file, 1);
    sl_ack_file_close(file);
    EXPECT_ERR(try_open("sluice://two/orders/billing", "", &file), SL_ERR_INVALID);
    EXPECT(strstr(ack_problem, "another source") != NULL);
    file = open_file("");
    EXPECT_EQ(count_left(file, left, left_places), 1);
    sl_ack_file_drop(file, place);
    sl_ack_file_close(file);
    EXPECT_OK(try_open("sluice://two/orders/billing", "", &file));
    EXPECT_EQ(sl_ack_file_count(file), 0);
    EXPECT(!sl_str_equal(sl_ack_file_name(file), SL_STR("anna"))); /* a name of the other source's consumer */
    (void)put(file, 2);
    sl_ack_file_close(file);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_INVALID);
    remove_folder();
}

TEST(an_ack_file_keeps_the_name_of_its_consumer_until_another_is_given)
{
    static char longest[SL_ACK_FILE_NAME_BYTES_MAX + 2];
    char invented[SL_ACK_FILE_NAME_BYTES_MAX];
    sl_ack_file *file;
    sl_str name;

    make_folder();
    file = open_file("");
    name = sl_ack_file_name(file);
    EXPECT(name.bytes > 20);
    memcpy(invented, name.data, name.bytes);
    (void)put(file, 1);
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT(sl_str_equal(sl_ack_file_name(file), (sl_str){ invented, name.bytes }));
    sl_ack_file_close(file);
    file = open_file("anna");
    EXPECT(sl_str_equal(sl_ack_file_name(file), SL_STR("anna")));
    EXPECT_EQ(count_left(file, left, left_places), 1); /* another name loses no entry */
    sl_ack_file_close(file);
    file = open_file("");
    EXPECT(sl_str_equal(sl_ack_file_name(file), SL_STR("anna")));
    sl_ack_file_close(file);
    memset(longest, 'n', sizeof longest - 1);
    EXPECT_ERR(try_open("sluice://one/orders/billing", longest, &file), SL_ERR_INVALID);
    remove_folder();
}

TEST(one_process_at_a_time_has_an_ack_file_and_its_death_frees_it)
{
    sl_ack_file *file = NULL;
    int ready[2], status = 0;
    char byte;
    pid_t child;

    make_folder();
    EXPECT_EQ(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        sl_text problem;

        sl_text_init(&problem, ack_problem, sizeof ack_problem);
        if (sl_ack_file_open(ack_path, SL_STR("sluice://one/orders/billing"), SL_STR("a"), &problem, &file) !=
                SL_OK ||
            write(ready[1], "x", 1) != 1)
            _exit(3);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_LOCKED);
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &file), SL_ERR_LOCKED);
    EXPECT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    file = open_file("");
    EXPECT_ERR(try_open("sluice://one/orders/billing", "", &(sl_ack_file *){ NULL }), SL_ERR_LOCKED);
    sl_ack_file_close(file);
    (void)close(ready[0]);
    remove_folder();
}

TEST(a_file_that_somebody_touched_becomes_an_ack_file)
{
    make_folder();
    (void)close(open(ack_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    sl_ack_file_close(open_file(""));
    sl_ack_file_close(open_file(""));
    remove_folder();
}

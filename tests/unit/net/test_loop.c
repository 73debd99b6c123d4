/* Tests of net/loop.h: the order of a turn, time, signals, wake-ups and foreign descriptors. */
#include "test.h"

#include "base/support.h"
#include "net/loop.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct diary {
    sl_loop *loop;
    char text[64]; /* a letter for each thing that happened */
    size_t bytes;
    int fd;
    uint32_t signal_nth;
    int signal_number;
    sl_timer timer;
    uint64_t fired_ns, turn_ns;
    uint32_t fire_count;
} diary;

static void note(diary *d, char what)
{
    if (d->bytes + 1 < sizeof d->text)
        d->text[d->bytes++] = what;
}

static void on_turn_end(void *ctx)
{
    diary *d = ctx;

    note(d, 'e');
    d->turn_ns = sl_loop_now_ns(d->loop);
}

static void on_wake(void *ctx)
{
    note(ctx, 'w');
}

static void on_signal(void *ctx, int signal_number, uint32_t nth)
{
    diary *d = ctx;

    note(d, 's');
    d->signal_number = signal_number;
    d->signal_nth = nth;
}

static const sl_loop_handler handler = { on_turn_end, on_wake, on_signal };

static void on_timer(void *ctx)
{
    diary *d = ctx;

    note(d, 't');
    d->fired_ns = sl_loop_now_ns(d->loop);
    d->fire_count++;
}

static void on_readable(void *ctx)
{
    diary *d = ctx;
    char byte;

    note(d, 'r');
    EXPECT_EQ(read(d->fd, &byte, 1), 1);
}

static void start(diary *d)
{
    *d = (diary){ .fd = -1 };
    EXPECT_OK(sl_loop_new(NULL, &handler, d, &d->loop));
    sl_timer_init(&d->timer, d->loop, on_timer, d);
}

TEST(a_turn_takes_descriptors_then_timers_then_its_end)
{
    diary d;
    int ends[2];
    sl_watch *watch = NULL;

    start(&d);
    EXPECT_EQ(pipe(ends), 0);
    d.fd = ends[0];
    EXPECT_OK(sl_watch_new(d.loop, d.fd, on_readable, &d, &watch));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    sl_timer_set(&d.timer, 1);
    sl_loop_turn(d.loop, true);
    EXPECT_STR(d.text, "rte");
    EXPECT_EQ(d.fired_ns, d.turn_ns); /* one time for the whole turn */
    sl_watch_free(watch);
    sl_loop_free(d.loop);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_watch_is_told_again_while_there_is_something_to_read_and_never_after_its_end)
{
    diary d;
    int ends[2];
    sl_watch *watch = NULL;

    start(&d);
    EXPECT_EQ(pipe(ends), 0);
    d.fd = ends[0];
    EXPECT_OK(sl_watch_new(d.loop, d.fd, on_readable, &d, &watch));
    EXPECT_EQ(write(ends[1], "xyz", 3), 3);
    sl_loop_turn(d.loop, true);
    sl_loop_turn(d.loop, true);
    EXPECT_STR(d.text, "rere");
    sl_watch_free(watch);
    sl_loop_turn(d.loop, false);
    EXPECT_STR(d.text, "reree");
    sl_loop_free(d.loop);
    close(ends[0]);
    close(ends[1]);
}

static void on_watch_events(void *ctx, unsigned events)
{
    diary *d = ctx;

    if ((events & SL_WATCH_READ) != 0)
        note(d, 'R');
    if ((events & SL_WATCH_WRITE) != 0)
        note(d, 'W');
}

TEST(a_watch_for_both_directions_tells_what_was_asked_for_and_nothing_else)
{
    diary d;
    int ends[2];
    sl_watch *watch = NULL;

    start(&d);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_OK(sl_watch_new_for(d.loop, ends[0], SL_WATCH_WRITE, on_watch_events, &d, &watch));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    sl_loop_turn(d.loop, false);
    sl_watch_change(watch, SL_WATCH_READ | SL_WATCH_WRITE);
    sl_loop_turn(d.loop, false);
    sl_watch_change(watch, SL_WATCH_READ);
    sl_watch_change(watch, SL_WATCH_READ);
    sl_loop_turn(d.loop, false);
    sl_watch_change(watch, 0);
    sl_loop_turn(d.loop, false);
    EXPECT_STR(d.text, "WeRWeRee");
    sl_watch_free(watch);
    sl_loop_free(d.loop);
    close(ends[0]);
    close(ends[1]);
}

/* As curl does it: the number of the descriptor may come back at once. */
TEST(a_descriptor_may_be_closed_as_soon_as_its_watch_is_freed_and_its_number_watched_again)
{
    diary d;
    int ends[2], others[2];
    sl_watch *watch = NULL, *second = NULL;

    start(&d);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, others), 0);
    EXPECT_OK(sl_watch_new_for(d.loop, ends[0], SL_WATCH_READ, on_watch_events, &d, &watch));
    sl_loop_turn(d.loop, false);
    sl_watch_free(watch);
    EXPECT_EQ(dup2(others[0], ends[0]), ends[0]); /* closes it */
    EXPECT_OK(sl_watch_new_for(d.loop, ends[0], SL_WATCH_READ, on_watch_events, &d, &second));
    EXPECT_EQ(write(others[1], "x", 1), 1);
    sl_loop_turn(d.loop, true);
    EXPECT_STR(d.text, "eRe");
    sl_watch_free(second);
    sl_loop_free(d.loop);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(others[i]);
    }
}

TEST(a_file_on_disk_cannot_be_watched)
{
    diary d;
    sl_watch *watch = NULL;
    FILE *file = tmpfile();

    start(&d);
    EXPECT(file != NULL);
    EXPECT_ERR(sl_watch_new(d.loop, fileno(file), on_readable, &d, &watch), SL_ERR_INVALID);
    EXPECT(watch == NULL);
    fclose(file);
    sl_loop_free(d.loop);
}

TEST(a_timer_fires_once_and_not_before_its_time)
{
    diary d;
    uint64_t at_ns;

    start(&d);
    at_ns = sl_loop_now_ns(d.loop) + 3500000;
    sl_timer_set(&d.timer, at_ns);
    while (d.fire_count == 0)
        sl_loop_turn(d.loop, true);
    EXPECT(d.fired_ns >= at_ns);
    sl_loop_turn(d.loop, false);
    EXPECT_EQ(d.fire_count, 1);
    sl_loop_free(d.loop);
}

TEST(a_stopped_timer_does_not_fire_and_a_new_time_replaces_the_old_one)
{
    diary d;
    sl_timer other;

    start(&d);
    sl_timer_set(&d.timer, 1);
    sl_timer_stop(&d.timer);
    sl_timer_stop(&d.timer);
    sl_loop_turn(d.loop, false);
    EXPECT_STR(d.text, "e");
    sl_timer_set(&d.timer, 1);
    sl_timer_set(&d.timer, sl_loop_now_ns(d.loop) + UINT64_C(3600000000000));
    sl_timer_init(&other, d.loop, on_timer, &d);
    sl_timer_set(&other, UINT64_MAX);
    sl_loop_turn(d.loop, false);
    EXPECT_EQ(d.fire_count, 0);
    sl_timer_stop(&d.timer);
    sl_loop_free(d.loop);
}

static void on_timer_again(void *ctx)
{
    diary *d = ctx;

    on_timer(d);
    if (d->fire_count < 3)
        sl_timer_set(&d->timer, 0);
}

TEST(a_timer_that_sets_itself_to_now_lets_the_turn_end)
{
    diary d;

    start(&d);
    sl_timer_init(&d.timer, d.loop, on_timer_again, &d);
    sl_timer_set(&d.timer, 0);
    while (d.fire_count < 3)
        sl_loop_turn(d.loop, true);
    EXPECT(strstr(d.text, "tt") == NULL);
    sl_loop_free(d.loop);
}

TEST(signals_come_as_events_and_are_counted)
{
    diary d;

    start(&d);
    EXPECT_OK(sl_loop_catch_signals(d.loop));
    raise(SIGTERM);
    while (d.signal_nth < 1)
        sl_loop_turn(d.loop, true);
    EXPECT_EQ(d.signal_number, SIGTERM);
    raise(SIGHUP);
    while (d.signal_nth < 2)
        sl_loop_turn(d.loop, true);
    EXPECT_EQ(d.signal_number, SIGHUP);
    raise(SIGINT);
    while (d.signal_nth < 3)
        sl_loop_turn(d.loop, true);
    EXPECT_EQ(d.signal_number, SIGINT);
    sl_loop_free(d.loop);
}

/* A mask and an ignored signal are inherited: from a supervisor, from nohup, from a shell that runs us in the background. */
TEST(a_signal_that_was_blocked_and_ignored_when_the_process_began_comes_all_the_same_S3_3)
{
    sigset_t set, before;
    diary d;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    EXPECT(signal(SIGINT, SIG_IGN) != SIG_ERR);
    raise(SIGTERM); /* pending: it came before anybody could catch it */
    start(&d);
    EXPECT_OK(sl_loop_catch_signals(d.loop));
    sl_loop_turn(d.loop,
                 false); /* it is there already: a test that waited could not even be ended by SIGTERM */
    EXPECT_EQ(d.signal_nth, 1);
    EXPECT_EQ(d.signal_number, SIGTERM);
    raise(SIGINT);
    sl_loop_turn(d.loop, false);
    EXPECT_EQ(d.signal_nth, 2);
    EXPECT_EQ(d.signal_number, SIGINT);
    sl_loop_free(d.loop);
    EXPECT(signal(SIGINT, SIG_DFL) != SIG_ERR);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void *wake_from_thread(void *loop)
{
    sl_loop_wake(loop);
    return NULL;
}

static void stop_on_wake(void *ctx)
{
    on_wake(ctx);
    sl_loop_stop(((diary *)ctx)->loop);
}

TEST(another_thread_wakes_a_loop_that_waits)
{
    static const sl_loop_handler stopping = { on_turn_end, stop_on_wake, NULL };
    diary d = { .fd = -1 };
    pthread_t thread;

    EXPECT_OK(sl_loop_new(NULL, &stopping, &d, &d.loop));
    for (int i = 0; i < 3; i++) { /* a loop that was stopped runs again */
        EXPECT_EQ(pthread_create(&thread, NULL, wake_from_thread, d.loop), 0);
        sl_loop_run(d.loop);
        pthread_join(thread, NULL);
    }
    EXPECT_STR(d.text, "wewewe");
    sl_loop_free(d.loop);
}

TEST(the_clock_of_a_loop_moves_on_and_knows_the_year)
{
    diary d;
    const sl_clock *clock;
    uint64_t before_ns;

    start(&d);
    clock = sl_loop_clock(d.loop);
    before_ns = sl_clock_mono_ns(clock);
    EXPECT(sl_clock_mono_ns(clock) >= before_ns);
    EXPECT(sl_clock_wall_ns(clock) > UINT64_C(1700000000) * 1000000000);
    sl_loop_free(d.loop);
}

TEST(a_loop_without_memory_is_refused_and_leaves_nothing)
{
    test_alloc counting = { .fail_at = 1 };
    const sl_alloc alloc = test_alloc_use(&counting);
    sl_loop *loop = NULL;
    sl_watch *watch = NULL;
    int ends[2];

    EXPECT_ERR(sl_loop_new(&alloc, NULL, NULL, &loop), SL_ERR_NOMEM);
    EXPECT(loop == NULL);
    counting = (test_alloc){ .fail_at = 2 };
    EXPECT_OK(sl_loop_new(&alloc, NULL, NULL, &loop));
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_ERR(sl_watch_new(loop, ends[0], on_wake, NULL, &watch), SL_ERR_NOMEM);
    sl_loop_free(loop);
    EXPECT_EQ(counting.block_count, 0);
    close(ends[0]);
    close(ends[1]);
}

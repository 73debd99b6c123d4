/* The queue inside of a program: what goes on while dropped() or dead() tells of an item, and what these may do. */
#include "queue_rig.h"

#include "worker/queue_inside.h"

static void pass_and_await_two(queue_rig *rig)
{
    let_pass(rig, -1);
    await(rig, &rig->sent.count, 2);
}

/* The sender has "a" when "b" is dropped. The time of "c" comes while dropped() runs, and no put wakes the sender for it. */
TEST(a_dropped_item_does_not_hold_up_the_others_of_its_key)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1, .interval_ms = 5 }, 0);
    rig.in_dropped = pass_and_await_two;
    sl_queue_start(rig.queue);
    put_key(&rig, "a", "key");
    await(&rig, &rig.entered, 1);
    put_key(&rig, "b", "key");
    put_key(&rig, "c", "key");
    expect_texts(&rig.dropped, "b");
    expect_texts(&rig.sent, "a c");
    rig_close(&rig);
}

TEST(the_key_of_a_dropped_item_is_forgotten_afterwards)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1 }, -1);
    put_key(&rig, "a", "key");
    put_key(&rig, "b", "other key");
    expect_texts(&rig.dropped, "a");
    EXPECT_EQ(rig.queue->lanes.count, 1); /* nothing public tells it */
    rig_close(&rig);
}

/* "b" has an hour to wait. Several rounds, because nobody knows whether the sender sleeps already. */
TEST(a_put_that_drops_another_wakes_the_sender_for_the_new_one)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1, .interval_ms = 3600000 }, -1);
    sl_queue_start(rig.queue);
    put_key(&rig, "a", "key");
    await(&rig, &rig.sent.count, 1);
    for (size_t i = 1; i <= 20; i++) {
        put_key(&rig, "b", "key");
        put(&rig, "x");
        await(&rig, &rig.sent.count, 1 + i);
        EXPECT_EQ(rig.dropped.count, i);
    }
    rig_close(&rig);
}

static void *put_b(void *ctx)
{
    put_key(ctx, "b", "key");
    return NULL;
}

/* The thread is inside of dropped(), for "a", and stays there until let_out(); "b" of the same key waits. */
static pthread_t open_inside_of_dropped(queue_rig *rig)
{
    pthread_t thread;

    rig_open(rig, (sl_queue_options){ .capacity = 1 }, -1);
    rig->stays_in_dropped = true;
    put_key(rig, "a", "key");
    EXPECT_EQ(pthread_create(&thread, NULL, put_b, rig), 0);
    await(rig, &rig->dropped.count, 1);
    return thread;
}

static void let_out(queue_rig *rig, pthread_t thread)
{
    pthread_mutex_lock(&rig->lock);
    rig->stays_in_dropped = false;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    pthread_join(thread, NULL);
}

TEST(a_drain_while_dropped_runs_gives_nothing_up_that_it_has_time_for_S3_16)
{
    queue_rig rig;
    const pthread_t thread = open_inside_of_dropped(&rig);

    sl_queue_start(rig.queue);
    (void)sl_queue_drain(rig.queue, PATIENCE_MS);
    let_out(&rig, thread);
    expect_texts(&rig.sent, "b");
    EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), 0);
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_NOT_DRAINED], 0);
    rig_close(&rig);
}

TEST(a_stop_while_dropped_runs_handles_what_was_accepted_S3_8)
{
    queue_rig rig;
    const pthread_t thread = open_inside_of_dropped(&rig);

    sl_queue_start(rig.queue);
    sl_queue_stop(rig.queue);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    let_out(&rig, thread);
    expect_texts(&rig.sent, "b");
    rig_close(&rig);
}

/* "b" is left, then sent after the next start, while "a" of its key is still being told of. */
TEST(what_is_left_while_dropped_runs_is_taken_back_by_the_next_start_S3_36_S4_20)
{
    queue_rig rig;
    const pthread_t thread = open_inside_of_dropped(&rig);

    EXPECT_EQ(sl_queue_drain(rig.queue, 0), 0);
    EXPECT_EQ(sl_queue_left(rig.queue, on_left, &rig), 1);
    expect_texts(&rig.left, "b");
    sl_queue_start(rig.queue);
    await(&rig, &rig.sent.count, 1);
    let_out(&rig, thread);
    expect_texts(&rig.sent, "b");
    rig_close(&rig);
}

/* "b" may be sent before the drain begins, which counts only what is sent in it. */
static void start_and_drain(queue_rig *rig)
{
    sl_queue_start(rig->queue);
    EXPECT(sl_queue_drain(rig->queue, PATIENCE_MS) <= 1);
    EXPECT_EQ(sl_queue_join(rig->queue, PATIENCE_MS), 0);
}

/* A drain that waited for dropped() would wait for itself. */
TEST(dropped_may_drain_and_the_others_of_its_key_are_sent_S3_16)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1 }, -1);
    rig.in_dropped = start_and_drain;
    put_key(&rig, "a", "key");
    EXPECT_EQ(put_key(&rig, "b", "key"), SL_QUEUE_OK);
    expect_texts(&rig.sent, "b");
    rig_close(&rig);
}

/* Of the same key, into the full queue: "b" goes for it, and dropped() runs inside of dropped(). */
static void put_once_more(queue_rig *rig)
{
    if (rig->dropped.count == 1)
        EXPECT_EQ(put_key(rig, "again", "key"), SL_QUEUE_OK);
}

TEST(dropped_may_put_also_to_its_own_key)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1 }, -1);
    rig.in_dropped = put_once_more;
    put_key(&rig, "a", "key");
    put_key(&rig, "b", "key");
    expect_texts(&rig.dropped, "a b");
    sl_queue_start(rig.queue);
    EXPECT(sl_queue_drain(rig.queue, PATIENCE_MS) <= 1);
    expect_texts(&rig.sent, "again");
    rig_close(&rig);
}

static void put_then_stop(queue_rig *rig)
{
    (void)put_key(rig, "again", "key");
    (void)put_key(rig, "last", "key"); /* "again" goes for it */
    sl_queue_stop(rig->queue);
    (void)sl_queue_drain(rig->queue, -1); /* fails at once: this is a sender */
    (void)sl_queue_get_counts(rig->queue);
}

TEST(dead_may_put_to_its_own_key_and_stop_S3_8)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1 }, -1);
    rig.in_dead = put_then_stop;
    sl_queue_start(rig.queue);
    put_key(&rig, "F", "key");
    await(&rig, &rig.sent.count, 1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    expect_texts(&rig.sent, "last");
    expect_texts(&rig.dropped, "again");
    rig_close(&rig);
}

/* The queue inside of a program: how it stops and drains. */
#include "queue_rig.h"

#include "base/cleanup.h"

TEST(stop_lets_the_sender_end_after_everything_accepted_was_handled_S3_8)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1); /* the sender is now in send() */
    put(&rig, "b");
    put(&rig, "F");
    put(&rig, "c");
    sl_queue_stop(rig.queue);
    EXPECT_EQ(sl_queue_join(rig.queue, 0), 1);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    expect_texts(&rig.sent, "a b c");
    expect_texts(&rig.dead, "F");
    rig_close(&rig);
}

TEST(stop_does_not_wait_also_when_the_queue_is_full_and_twice_is_once_S3_9_S3_10_S3_11)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 2 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    put(&rig, "b");
    put(&rig, "c");
    sl_queue_stop(rig.queue); /* full, and the sender is stuck: it returns all the same */
    sl_queue_stop(rig.queue);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).waiting, 2);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).is_stopping, 1);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    sl_queue_stop(rig.queue);
    expect_texts(&rig.sent, "a b c");
    rig_close(&rig);
}

TEST(the_end_is_never_evicted_and_never_sent_as_a_message_S3_12)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    put(&rig, "b");
    sl_queue_stop(rig.queue);
    for (int i = 0; i < 10; i++) /* with drop-oldest these would push an end marker out */
        EXPECT_EQ(put(&rig, "late"), SL_QUEUE_STOPPING);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    expect_texts(&rig.sent, "a b");
    EXPECT_EQ(rig.dropped.count, 0);
    rig_close(&rig);
}

TEST(after_a_stop_each_item_is_refused_counted_and_warned_of_S3_13)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .name = "chat" }, -1);
    sl_queue_start(rig.queue);
    sl_queue_stop(rig.queue);
    EXPECT_EQ(put(&rig, "a"), SL_QUEUE_STOPPING);
    EXPECT_EQ(put_key(&rig, "secret", "room"), SL_QUEUE_STOPPING);
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_REFUSED], 2);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).refused, 2);
    EXPECT_STR(rig.sentence, "queue chat: 1 item was refused: the queue is being stopped");
    rig_close(&rig);
}

enum {
    PUTTERS = 4,
    PUTS_EACH = 2000
};

typedef struct putter {
    queue_rig *rig;
    size_t accepted;
    pthread_t thread;
} putter;

static void *put_many(void *ctx)
{
    putter *const one = ctx;

    for (int i = 0; i < PUTS_EACH; i++)
        one->accepted += put_key(one->rig, "x", i % 2 == 0 ? "k" : NULL) == SL_QUEUE_OK ? 1 : 0;
    return NULL;
}

/* Whatever was accepted before the stop was decided under the lock is handled, and nothing else: the two numbers agree for each way the
 * threads can meet, on the path with and without a breaker. */
TEST(no_item_lands_behind_the_end_when_many_put_while_it_is_stopped_S3_14_S3_15)
{
    for (int has_no_breaker = 0; has_no_breaker < 2; has_no_breaker++) {
        putter putters[PUTTERS] = { { 0 } };
        size_t accepted = 0;
        queue_rig rig;

        rig_open(&rig,
                 (sl_queue_options){ .threads = 2, .capacity = 100000, .has_no_breaker = has_no_breaker },
                 -1);
        sl_queue_start(rig.queue);
        for (int i = 0; i < PUTTERS; i++) {
            putters[i].rig = &rig;
            EXPECT_EQ(pthread_create(&putters[i].thread, NULL, put_many, &putters[i]), 0);
        }
        await(&rig, &rig.entered, 50);
        sl_queue_stop(rig.queue);
        for (int i = 0; i < PUTTERS; i++) {
            pthread_join(putters[i].thread, NULL);
            accepted += putters[i].accepted;
        }
        EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
        EXPECT_EQ(sl_queue_get_counts(rig.queue).sent, accepted);
        EXPECT_EQ(sl_queue_get_counts(rig.queue).waiting, 0);
        rig_close(&rig);
    }
}

TEST(a_drain_returns_how_many_were_sent_in_it_S3_16)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, 1);
    sl_queue_start(rig.queue);
    put(&rig, "before");
    await(&rig, &rig.sent.count, 1);
    put(&rig, "a");
    await(&rig, &rig.entered, 2);
    put(&rig, "b");
    put(&rig, "F");
    let_pass(&rig, -1);
    EXPECT(sl_queue_drain(rig.queue, PATIENCE_MS) <= 2);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).sent, 3);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    EXPECT_EQ(sl_queue_drain(rig.queue, PATIENCE_MS), 0); /* nothing more was sent */
    rig_close(&rig);
}

static void *pass_when_stopping(void *ctx)
{
    queue_rig *const rig = ctx;

    while (!sl_queue_get_counts(rig->queue).is_stopping)
        sched_yield();
    let_pass(rig, -1);
    return NULL;
}

TEST(a_drain_counts_exactly_what_it_waited_for_S3_16)
{
    queue_rig rig;
    pthread_t thread;

    rig_open(&rig, (sl_queue_options){ 0 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    put(&rig, "b");
    put(&rig, "c");
    EXPECT_EQ(pthread_create(&thread, NULL, pass_when_stopping, &rig), 0);
    EXPECT_EQ(sl_queue_drain(rig.queue, PATIENCE_MS), 3);
    pthread_join(thread, NULL);
    rig_close(&rig);
}

TEST(join_tells_whether_a_sender_is_alive_S3_17)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .threads = 3 }, 0);
    EXPECT_EQ(sl_queue_join(rig.queue, 0), 0);
    sl_queue_start(rig.queue);
    EXPECT_EQ(sl_queue_join(rig.queue, 0), 1);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    sl_queue_stop(rig.queue);
    EXPECT_EQ(sl_queue_join(rig.queue, 1), 1);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    rig_close(&rig);
}

/* Two failures open it; what waits behind them is accepted, and goes out in the drain because the destination is back. */
TEST(accepted_items_are_sent_in_a_drain_though_the_breaker_is_open_S3_18)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .breaker_failures = 2, .waits_for_breaker = 1 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "F1");
    put(&rig, "F2");
    put(&rig, "a");
    put(&rig, "b");
    let_pass(&rig, -1);
    await(&rig, &rig.dead.count, 2);
    EXPECT_EQ(put(&rig, "c"), SL_QUEUE_BREAKER_OPEN);
    EXPECT_EQ(rig.sent.count, 0);
    EXPECT_EQ(sl_queue_drain(rig.queue, PATIENCE_MS), 2);
    expect_texts(&rig.sent, "a b");
    expect_texts(&rig.dead, "F1 F2");
    rig_close(&rig);
}

TEST(a_breaker_that_opens_in_the_drain_is_no_reason_to_bury_S3_18)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .breaker_failures = 1 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "F1");
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    sl_queue_stop(rig.queue);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    expect_texts(&rig.sent, "a");
    expect_texts(&rig.dead, "F1");
    rig_close(&rig);
}

TEST(outside_of_a_drain_an_open_breaker_refuses_and_buries_S3_19)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .breaker_failures = 2 }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "F1");
    put(&rig, "F2");
    put(&rig, "a");
    let_pass(&rig, -1);
    await(&rig, &rig.dead.count, 3);
    expect_texts(&rig.dead, "F1 F2 a");
    EXPECT_EQ(rig.death[1], SL_QUEUE_DEAD_FAILED);
    EXPECT_EQ(rig.death[2], SL_QUEUE_DEAD_BREAKER_OPEN);
    EXPECT_EQ(rig.attempts[2], 0);
    EXPECT_EQ(put(&rig, "b"), SL_QUEUE_BREAKER_OPEN);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).is_breaker_open, 1);
    rig_close(&rig);
}

TEST(after_its_rest_one_probe_closes_the_breaker_S3_19)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .breaker_failures = 1, .breaker_rest_ms = 1, .waits_for_breaker = 1 },
             0);
    sl_queue_start(rig.queue);
    put(&rig, "F1");
    put(&rig, "a");
    put(&rig, "b");
    let_pass(&rig, -1);
    await(&rig, &rig.sent.count, 2);
    sl_queue_drain(rig.queue, PATIENCE_MS); /* so that the last result is counted */
    EXPECT_EQ(sl_queue_get_counts(rig.queue).is_breaker_open, 0);
    rig_close(&rig);
}

static void await_both_dead(queue_rig *rig)
{
    await(rig, &rig->dead.count, 2);
}

/* Nobody looks for the next item before both have failed. Then one sender waits for the answer to the probe of the other, who calls it. */
TEST(after_a_probe_all_senders_send_again_S3_19)
{
    queue_rig rig;

    rig_open(&rig,
             (sl_queue_options){
                 .threads = 2, .breaker_failures = 2, .breaker_rest_ms = 1, .waits_for_breaker = 1 },
             0);
    rig.in_dead = await_both_dead;
    sl_queue_start(rig.queue);
    put(&rig, "F1");
    put(&rig, "F2");
    await(&rig, &rig.entered, 2);
    put(&rig, "probe");
    put(&rig, "a");
    put(&rig, "b");
    let_pass(&rig, 2);
    await(&rig, &rig.entered, 3);
    let_pass(&rig, 1);
    await(&rig, &rig.entered, 5); /* "a" and "b", at the same time */
    let_pass(&rig, -1);
    rig_close(&rig);
}

TEST(starting_twice_is_harmless_and_a_stopped_queue_starts_again_S3_20_S4_20)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, 0);
    EXPECT_EQ(sl_queue_start(rig.queue), SL_QUEUE_OK);
    EXPECT_EQ(sl_queue_start(rig.queue), SL_QUEUE_OK);
    put(&rig, "a");
    put(&rig, "b");
    await(&rig, &rig.entered, 1);
    EXPECT_EQ(sl_queue_drain(rig.queue, 0), 0);
    EXPECT_EQ(rig.entered, 1); /* one sender, not two */
    EXPECT_EQ(sl_queue_start(rig.queue), SL_QUEUE_STOPPING);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), 1);
    EXPECT_EQ(sl_queue_start(rig.queue), SL_QUEUE_OK);
    EXPECT_EQ(put(&rig, "c"), SL_QUEUE_OK);
    await(&rig, &rig.sent.count, 3);
    expect_texts(&rig.sent, "a b c");
    rig_close(&rig);
}

TEST(what_a_drain_could_not_send_is_counted_named_and_kept_S3_36)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .name = "mail" }, 0);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    put(&rig, "b");
    put_key(&rig, "c", "key");
    EXPECT_EQ(sl_queue_drain(rig.queue, 0), 0);
    EXPECT_STR(rig.sentence,
               "queue mail: 3 accepted items were not sent before the drain ended: they are kept, see "
               "sl_queue_left()");
    EXPECT_EQ(sl_queue_get_counts(rig.queue).left, 2);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).sending, 1);
    EXPECT_EQ(sl_queue_left(rig.queue, on_left, &rig), 2);
    expect_texts(&rig.left, "b c");
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    expect_texts(&rig.sent, "a"); /* the sender that had it was not interrupted */
    EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), 2);
    rig_close(&rig);
}

TEST(an_item_that_comes_back_after_the_drain_is_left_too_S3_36)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, 0);
    sl_queue_start(rig.queue);
    put_key(&rig, "R1", "key");
    put_key(&rig, "b", "key");
    await(&rig, &rig.entered, 1);
    EXPECT_EQ(sl_queue_drain(rig.queue, 0), 0);
    let_pass(&rig, -1);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    EXPECT_EQ(sl_queue_left(rig.queue, on_left, &rig), 2);
    expect_texts(&rig.left, "R1 b");
    rig_close(&rig);
}

TEST(a_queue_that_never_started_drains_to_what_is_left_S3_23_S3_36)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, -1);
    put(&rig, "a");
    put(&rig, "b");
    EXPECT_EQ(sl_queue_drain(rig.queue, -1), 0);
    EXPECT_EQ(sl_queue_left(rig.queue, on_left, &rig), 2);
    expect_texts(&rig.left, "a b");
    rig_close(&rig);
}

/* An hour of Retry-After, five seconds because it named no time, an hour between two of a key: none is slept through. */
TEST(pauses_that_end_after_the_drain_are_not_waited_for_S3_37)
{
    const struct {
        int64_t retry_after_ms;
        const char *first;
        uint32_t interval_ms;
    } rows[] = { { 3600000, "R1", 0 }, { 0, "R1", 0 }, { -5, "R1", 0 }, { 0, "a", 3600000 } };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const uint64_t start_ns = now_ns();
        queue_rig rig;

        rig_open(&rig, (sl_queue_options){ .interval_ms = rows[i].interval_ms }, -1);
        rig.retry_after_ms = rows[i].retry_after_ms;
        sl_queue_start(rig.queue);
        put_key(&rig, rows[i].first, "key");
        put_key(&rig, "b", "key");
        put_key(&rig, "other", "other key");
        EXPECT(sl_queue_drain(rig.queue, 4900) <= 2);
        EXPECT(now_ns() - start_ns < UINT64_C(4000000000));
        EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), rig.sent.count == 2 ? 1 : 2);
        EXPECT_EQ(rig.entered, 2);
        rig_close(&rig);
    }
}

TEST(a_drain_wakes_a_sender_out_of_a_long_pause_S3_37)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, -1);
    rig.retry_after_ms = 3600000;
    sl_queue_start(rig.queue);
    put(&rig, "R1");
    await(&rig, &rig.entered, 1);
    while (sl_queue_get_counts(rig.queue).waiting == 0) /* until it is back, and paused */
        sched_yield();
    EXPECT_EQ(sl_queue_drain(rig.queue, 1000), 0);
    EXPECT_EQ(sl_queue_join(rig.queue, PATIENCE_MS), 0);
    EXPECT_EQ(sl_queue_left(rig.queue, on_left, &rig), 1);
    rig_close(&rig);
}

TEST(short_pauses_are_waited_for_in_a_drain_S3_37)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .interval_ms = 5, .retry_ms = 5 }, -1);
    rig.works_after_retry = true;
    put_key(&rig, "R1", "key");
    put_key(&rig, "b", "key");
    sl_queue_start(rig.queue);
    sl_queue_drain(rig.queue, PATIENCE_MS);
    expect_texts(&rig.sent, "R1 b");
    rig_close(&rig);
}

TEST(a_dead_destination_does_not_eat_the_budget_of_a_drain_S3_39)
{
    queue_rig rig;
    char text[TEXT_BYTES];

    rig_open(&rig, (sl_queue_options){ .breaker_failures = 2, .waits_for_breaker = 1 }, 0);
    rig.is_dead = true;
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "m%d", i);
        put(&rig, text);
    }
    sl_queue_start(rig.queue);
    let_pass(&rig, -1);
    await(&rig, &rig.dead.count, 2);
    EXPECT_EQ(sl_queue_drain(rig.queue, PATIENCE_MS), 0);
    EXPECT_EQ(rig.dead.count, 5); /* two opened it, three bypassed it */
    EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), 15);
    rig_close(&rig);
}

static void *drain_patiently(void *arg)
{
    (void)sl_queue_drain(arg, PATIENCE_MS);
    return NULL;
}

/* One drains patiently; another has less patience, and starts the queue again as soon as it may: mostly before the first has noticed
 * the end. */
static void restart_under_a_drain(queue_rig *rig)
{
    pthread_t thread;

    put(rig, "a");
    put(rig, "b");
    put(rig, "c");
    sl_queue_start(rig->queue);
    await(rig, &rig->entered, 1);
    EXPECT_EQ(pthread_create(&thread, NULL, drain_patiently, rig->queue), 0);
    while (!sl_queue_get_counts(rig->queue).is_stopping)
        sched_yield();
    (void)sl_queue_drain(rig->queue, 0);
    let_pass(rig, 1);
    while (sl_queue_start(rig->queue) == SL_QUEUE_STOPPING)
        ;
    pthread_join(thread, NULL);
}

TEST(a_drain_that_another_one_has_ended_leaves_the_queue_alone_that_was_started_again_S4_20)
{
    for (int round = 0; round < 5; round++) {
        queue_rig rig;

        rig_open(&rig, (sl_queue_options){ 0 }, 0);
        restart_under_a_drain(&rig);
        EXPECT_EQ(sl_queue_get_counts(rig.queue).is_stopping, 0);
        EXPECT_EQ(sl_queue_left(rig.queue, NULL, NULL), 0);
        let_pass(&rig, -1);
        sl_queue_drain(rig.queue, PATIENCE_MS);
        expect_texts(&rig.sent, "a b c");
        rig_close(&rig);
    }
}

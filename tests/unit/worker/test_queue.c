/* The queue inside of a program: what comes in, in which order it goes out, and what does not. */
#include "queue_rig.h"

TEST(a_full_queue_drops_the_oldest_and_says_so)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 3 }, -1);
    for (const char *text = "abcde"; *text != '\0'; text++)
        EXPECT_EQ(put(&rig, (const char[]){ *text, '\0' }), SL_QUEUE_OK);
    expect_texts(&rig.dropped, "a b");
    EXPECT_EQ(sl_queue_get_counts(rig.queue).dropped, 2);
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_DROPPED], 2);
    sl_queue_start(rig.queue);
    sl_queue_drain(rig.queue, PATIENCE_MS);
    expect_texts(&rig.sent, "c d e");
    rig_close(&rig);
}

TEST(a_queue_that_refuses_when_full_drops_nothing)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 1, .refuses_when_full = 1 }, -1);
    EXPECT_EQ(put(&rig, "a"), SL_QUEUE_OK);
    EXPECT_EQ(put(&rig, "b"), SL_QUEUE_FULL);
    EXPECT_EQ(rig.dropped.count, 0);
    rig_close(&rig);
}

TEST(high_water_is_warned_of_once_until_it_fell_below_the_low_mark)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .capacity = 10 }, 0);
    for (int i = 0; i < 10; i++)
        put(&rig, "a");
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_HIGH_WATER], 1);
    sl_queue_start(rig.queue);
    let_pass(&rig, 2);
    await(&rig, &rig.entered, 3); /* 7 wait */
    put(&rig, "a");
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_HIGH_WATER], 1);
    let_pass(&rig, 2);
    await(&rig, &rig.entered, 5); /* 6 wait */
    put(&rig, "a");
    put(&rig, "a");
    EXPECT_EQ(rig.warnings[SL_QUEUE_WARN_HIGH_WATER], 2);
    let_pass(&rig, -1);
    rig_close(&rig);
}

TEST(retries_end_after_attempts_max_and_the_item_is_dead_with_its_reason)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, -1);
    rig.retry_after_ms = 1;
    sl_queue_start(rig.queue);
    put(&rig, "R1");
    await(&rig, &rig.dead.count, 1);
    EXPECT_EQ(rig.death[0], SL_QUEUE_DEAD_ATTEMPTS_SPENT);
    EXPECT_EQ(rig.attempts[0], SL_QUEUE_ATTEMPTS_DEFAULT);
    EXPECT_STR(rig.sentence, "503");
    rig_close(&rig);
}

TEST(items_of_a_key_keep_their_order_and_interval)
{
    const uint64_t start_ns = now_ns();
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .threads = 4, .interval_ms = 30 }, -1);
    put_key(&rig, "a1", "a");
    put_key(&rig, "a2", "a");
    put_key(&rig, "a3", "a");
    sl_queue_start(rig.queue);
    sl_queue_drain(rig.queue, PATIENCE_MS);
    expect_texts(&rig.sent, "a1 a2 a3");
    EXPECT(rig.sent.at_ns[2] - start_ns >= UINT64_C(60000000)); /* two intervals */
    rig_close(&rig);
}

/* "a2" has an hour to wait. */
TEST(items_of_other_keys_do_not_wait_for_the_interval_of_one)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .interval_ms = 3600000 }, -1);
    put_key(&rig, "a1", "a");
    put_key(&rig, "a2", "a");
    put_key(&rig, "b1", "b");
    sl_queue_start(rig.queue);
    await(&rig, &rig.sent.count, 2);
    expect_texts(&rig.sent, "a1 b1");
    rig_close(&rig);
}

TEST(one_key_is_sent_by_one_sender_at_a_time)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .threads = 4 }, 0);
    put_key(&rig, "a1", "a");
    put_key(&rig, "a2", "a");
    put(&rig, "x");
    put(&rig, "y");
    sl_queue_start(rig.queue);
    await(&rig, &rig.entered, 3);
    EXPECT_EQ(sl_queue_get_counts(rig.queue).waiting, 1);
    let_pass(&rig, -1);
    EXPECT(sl_queue_drain(rig.queue, PATIENCE_MS) <= 4);
    EXPECT_EQ(rig.sent.count, 4);
    rig_close(&rig);
}

TEST(a_sender_that_does_not_come_back_is_left_behind_with_its_name_S3_24)
{
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ .name = "slow", .join_ms = 1 }, 0);
    rig.counts_in_warn = true; /* which a lock that is held would not let it */
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    sl_queue_free(rig.queue);
    EXPECT_STR(rig.sentence,
               "queue slow: 1 sender at least, the thread slow-1, did not come back from send() within 1ms "
               "and is left behind: give send() a time limit");
    let_pass(&rig, -1); /* it ends, and frees what it needed */
    await(&rig, &rig.sent.count, 1);
    pthread_mutex_lock(&rig.lock); /* send() has let it go */
    pthread_mutex_unlock(&rig.lock);
}

static sl_queue_outcome drain_after_gate(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    queue_rig *const rig = user;
    bool has_failed;

    (void)on_send(user, item, answer);
    has_failed = sl_queue_drain(rig->queue, -1) == 0 && sl_queue_join(rig->queue, -1) == 1;
    pthread_mutex_lock(&rig->lock);
    if (has_failed)
        note(&rig->left, item);
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_QUEUE_SENT;
}

TEST(a_sender_that_was_left_behind_does_not_wait_for_itself_either_S3_23_S3_24)
{
    sl_queue_options options = { .callbacks.send = drain_after_gate, .join_ms = 1 };
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, 0);
    sl_queue_free(rig.queue);
    options.user = &rig;
    EXPECT_EQ(sl_queue_new(&options, &rig.queue), SL_QUEUE_OK);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.entered, 1);
    sl_queue_free(rig.queue);
    let_pass(&rig, -1);
    await(&rig, &rig.left.count, 1);
    pthread_mutex_lock(&rig.lock); /* send() has let it go */
    pthread_mutex_unlock(&rig.lock);
}

static sl_queue_outcome drain_inside(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    queue_rig *const rig = user;

    (void)answer;
    EXPECT_EQ(sl_queue_drain(rig->queue, -1), 0);
    EXPECT_EQ(sl_queue_join(rig->queue, -1), 1);
    pthread_mutex_lock(&rig->lock);
    note(&rig->sent, item);
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_QUEUE_SENT;
}

TEST(a_drain_inside_of_a_sender_fails_instead_of_waiting_for_itself_S3_23)
{
    sl_queue_options options = { .callbacks.send = drain_inside };
    queue_rig rig;

    rig_open(&rig, (sl_queue_options){ 0 }, -1);
    sl_queue_free(rig.queue);
    options.user = &rig;
    EXPECT_EQ(sl_queue_new(&options, &rig.queue), SL_QUEUE_OK);
    sl_queue_start(rig.queue);
    put(&rig, "a");
    await(&rig, &rig.sent.count, 1);
    rig_close(&rig);
}

TEST(wrong_options_and_too_large_items_are_refused)
{
    sl_queue *queue = NULL;
    queue_rig rig;

    EXPECT_EQ(sl_queue_new(&(sl_queue_options){ 0 }, &queue), SL_QUEUE_INVALID);
    EXPECT_EQ(sl_queue_new(&(sl_queue_options){ .callbacks.send = on_send, .threads = 65 }, &queue),
              SL_QUEUE_INVALID);
    rig_open(&rig, (sl_queue_options){ 0 }, -1);
    EXPECT_EQ(sl_queue_put(rig.queue, "x", SL_QUEUE_ITEM_BYTES_MAX + 1, NULL), SL_QUEUE_INVALID);
    EXPECT_EQ(sl_queue_put(rig.queue, NULL, 0, NULL), SL_QUEUE_OK);
    rig_close(&rig);
    sl_queue_free(NULL);
}

/* tests/unit/worker/test_queue_random.c — whatever meets whatever, each accepted item comes out once: sent, dead, dropped or left.
 *
 * Several threads put into a small queue while senders send, want again, fail and open the breaker; then, at a drawn event, it is
 * drained. Each putter has keys of its own, so the order within a key is known. The judge keeps its own record of each item. */
#include "base/cleanup.h"
#include "base/support.h"

#include <sluice.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
    SEEDS = 60,
    PUTTERS = 3,
    PUTS_EACH = 60,
    ITEMS = PUTTERS * PUTS_EACH,
    KEYS_EACH = 2,
    KEYS = PUTTERS * KEYS_EACH,
    SENDERS_MAX = 4,
    PATIENCE_MS = 20000
};

#define MS_NS UINT64_C(1000000)

typedef struct random_item { /* what is put is its address */
    uint32_t number;
    int key;       /* negative: none */
    unsigned luck; /* drawn: decides what its sends give */
    bool is_accepted;
    unsigned ends; /* sent, dead, dropped, left */
} random_item;

typedef struct random_run {
    sl_queue *queue;
    sl_queue_options options;
    bool is_early, has_long_pauses;
    random_item items[ITEMS];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t putting, accepted, sent, dead, dropped, left;
    unsigned sending_of[KEYS];
    uint32_t last_of[KEYS];
    uint64_t start_ns, begins_of[KEYS];
    const char *fault; /* the first one; threads cannot fail a test */
} random_run;

typedef struct putter {
    random_run *run;
    unsigned number;
    pthread_t thread;
} putter;

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS_NS + (uint64_t)now.tv_nsec;
}

/* --- the judge; all with the lock --- */

static void judge(random_run *run, bool is_right, const char *rule)
{
    if (!is_right && run->fault == NULL)
        run->fault = rule;
}

static random_item *item_of(const sl_queue_item *view)
{
    random_item *item;

    memcpy(&item, view->data, sizeof item);
    return item;
}

static void judge_end(random_run *run, random_item *item, size_t *count)
{
    judge(run, ++item->ends == 1, "an item ends once");
    ++*count;
    pthread_cond_broadcast(&run->changed);
}

static void judge_begin(random_run *run, const random_item *item)
{
    const uint64_t now = now_ns();

    judge(run, item->ends == 0, "what has ended is not sent");
    if (item->key < 0)
        return;
    judge(run, run->sending_of[item->key]++ == 0, "one of a key at a time");
    judge(run, item->number >= run->last_of[item->key], "the order of a key");
    judge(run, now >= run->start_ns + run->begins_of[item->key]++ * run->options.interval_ms * MS_NS,
          "the interval of a key");
    run->last_of[item->key] = item->number;
}

/* --- callbacks --- */

static sl_queue_outcome outcome_of(const random_run *run, const random_item *item, uint32_t attempt,
                                   sl_queue_answer *answer)
{
    if (item->luck % 8 == 0)
        return SL_QUEUE_FAILED;
    if (item->luck % 8 > 2 || attempt > 1 + item->luck % 3)
        return SL_QUEUE_SENT;
    answer->retry_after_ms = run->has_long_pauses && item->luck % 5 == 0 ? 3600000 : 1;
    return SL_QUEUE_RETRY;
}

static sl_queue_outcome on_send(void *user, const sl_queue_item *view, sl_queue_answer *answer)
{
    random_run *const run = user;
    random_item *const item = item_of(view);
    const sl_queue_outcome outcome = outcome_of(run, item, view->attempt, answer);

    pthread_mutex_lock(&run->lock);
    judge_begin(run, item);
    pthread_mutex_unlock(&run->lock);
    sched_yield();
    pthread_mutex_lock(&run->lock);
    if (item->key >= 0)
        run->sending_of[item->key]--;
    if (outcome == SL_QUEUE_SENT)
        judge_end(run, item, &run->sent);
    pthread_mutex_unlock(&run->lock);
    return outcome;
}

static void on_dead(void *user, const sl_queue_item *view, sl_queue_death death, const char *reason)
{
    random_run *const run = user;

    (void)death;
    (void)reason;
    sched_yield();
    pthread_mutex_lock(&run->lock);
    judge_end(run, item_of(view), &run->dead);
    pthread_mutex_unlock(&run->lock);
}

static void on_dropped(void *user, const sl_queue_item *view)
{
    random_run *const run = user;
    const random_item *const item = item_of(view);
    const bool has_key = view->key != NULL;

    sched_yield();
    pthread_mutex_lock(&run->lock);
    judge(run, has_key == (item->key >= 0), "a dropped item is shown with its key");
    judge(run, !has_key || view->key[0] == 'a' + item->key, "a dropped item is shown with its own key");
    judge_end(run, item_of(view), &run->dropped);
    pthread_mutex_unlock(&run->lock);
}

static void on_left(void *user, const sl_queue_item *view)
{
    random_run *const run = user;

    pthread_mutex_lock(&run->lock);
    judge_end(run, item_of(view), &run->left);
    pthread_mutex_unlock(&run->lock);
}

static void on_warn(void *user, sl_queue_warning warning, const char *sentence)
{
    random_run *const run = user;

    (void)warning;
    (void)sentence;
    (void)sl_queue_get_counts(run->queue);
}

/* --- one run --- */

static void put_item(random_run *run, random_item *item)
{
    const char key[2] = { (char)('a' + item->key), '\0' };

    item->is_accepted =
        sl_queue_put(run->queue, &item, sizeof item, item->key < 0 ? NULL : key) == SL_QUEUE_OK;
    pthread_mutex_lock(&run->lock);
    run->accepted += item->is_accepted ? 1 : 0;
    pthread_mutex_unlock(&run->lock);
}

static void *put_all(void *ctx)
{
    putter *const one = ctx;

    for (unsigned i = 0; i < PUTS_EACH; i++) {
        put_item(one->run, &one->run->items[one->number * PUTS_EACH + i]);
        if (i % 8 == 0)
            sched_yield();
    }
    pthread_mutex_lock(&one->run->lock);
    one->run->putting--;
    pthread_cond_broadcast(&one->run->changed);
    pthread_mutex_unlock(&one->run->lock);
    return NULL;
}

static void draw(random_run *run, dice *d)
{
    run->is_early = dice_pick(d, 2) == 0;
    run->has_long_pauses = run->is_early && dice_pick(d, 2) == 0;
    run->options = (sl_queue_options){
        .capacity = 1 + dice_pick(d, 8),
        .threads = 1 + (unsigned)dice_pick(d, SENDERS_MAX),
        .interval_ms = (uint32_t)dice_pick(d, 2),
        .attempts_max = 1 + (uint32_t)dice_pick(d, 3),
        .retry_ms = 1,
        .has_no_breaker = dice_pick(d, 2) == 0,
        .breaker_failures = 1 + (uint32_t)dice_pick(d, 3),
        .breaker_rest_ms = 1,
        .waits_for_breaker = dice_pick(d, 2) == 0,
        .refuses_when_full = dice_pick(d, 5) == 0,
        .callbacks = { on_send, on_dead, on_dropped, on_warn },
        .user = run,
    };
    for (uint32_t i = 0; i < ITEMS; i++) {
        const unsigned keys_from = i / PUTS_EACH * KEYS_EACH;

        run->items[i] = (random_item){ .number = i, .luck = (unsigned)dice_pick(d, 1000) };
        run->items[i].key = dice_pick(d, 4) == 0 ? -1 : (int)(keys_from + dice_pick(d, KEYS_EACH));
    }
}

static size_t ended(const random_run *run)
{
    return run->sent + run->dead + run->dropped;
}

/* Early: so many have ended, or nobody puts any more. Late: everything has ended, though no drain woke a sender for it. */
static bool is_event(const random_run *run, size_t early)
{
    if (run->is_early)
        return ended(run) >= early || run->putting == 0;
    return run->putting == 0 && ended(run) == run->accepted;
}

static void await_event(random_run *run, size_t early)
{
    const uint64_t until_ns = now_ns() + PATIENCE_MS * MS_NS;
    const struct timespec until = { .tv_sec = (time_t)(until_ns / (1000 * MS_NS)) };
    int late = 0;

    pthread_mutex_lock(&run->lock);
    while (!is_event(run, early) && late == 0)
        late = pthread_cond_timedwait(&run->changed, &run->lock, &until);
    judge(run, late == 0, "the senders go on by themselves");
    pthread_mutex_unlock(&run->lock);
}

static void init_run(random_run *run, dice *d)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, &monotonic);
    draw(run, d);
    EXPECT_EQ(sl_queue_new(&run->options, &run->queue), SL_QUEUE_OK);
}

static void start_putters(random_run *run, putter *putters)
{
    run->putting = PUTTERS;
    for (unsigned i = 0; i < PUTTERS; i++) {
        putters[i] = (putter){ .run = run, .number = i };
        EXPECT_EQ(pthread_create(&putters[i].thread, NULL, put_all, &putters[i]), 0);
    }
}

static void drain_at_event(random_run *run, dice *d)
{
    const int timeout_ms = (int)dice_pick(d, 8);
    uint64_t start_ns;

    await_event(run, dice_pick(d, ITEMS / 4));
    start_ns = now_ns();
    (void)sl_queue_drain(run->queue, timeout_ms);
    judge(run, now_ns() - start_ns < (PATIENCE_MS / 2) * MS_NS, "a drain ends in its time");
}

static void judge_all(random_run *run)
{
    const sl_queue_counts counts = sl_queue_get_counts(run->queue);

    judge(run, sl_queue_left(run->queue, on_left, run) == counts.left, "left is what is shown");
    judge(run, counts.waiting + counts.sending == 0, "nothing waits after the end");
    judge(run, counts.sent == run->sent && counts.dead == run->dead && counts.dropped == run->dropped,
          "the queue counts what was told");
    judge(run, run->accepted == ended(run) + run->left, "accepted = sent + dead + dropped + left");
    for (size_t i = 0; i < ITEMS; i++)
        judge(run, run->items[i].ends == (run->items[i].is_accepted ? 1 : 0), "each accepted item ends");
}

static void one_run(uint64_t seed)
{
    random_run run = { .start_ns = now_ns() };
    dice d = dice_from(seed);
    putter putters[PUTTERS];

    init_run(&run, &d);
    sl_queue_start(run.queue);
    start_putters(&run, putters);
    drain_at_event(&run, &d);
    for (unsigned i = 0; i < PUTTERS; i++)
        pthread_join(putters[i].thread, NULL);
    EXPECT_EQ(sl_queue_join(run.queue, PATIENCE_MS), 0);
    judge_all(&run);
    if (run.fault != NULL)
        fail_msg("seed %llu: not so: %s", (unsigned long long)seed, run.fault);
    sl_queue_free(run.queue);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.changed);
}

TEST(each_accepted_item_is_sent_dead_dropped_or_left_exactly_once_S3_8_S3_14_S3_16_S3_36)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed += SWEEP_STEP)
        one_run(seed);
}

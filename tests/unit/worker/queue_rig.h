/* tests/unit/worker/queue_rig.h — a queue whose destination does what a test says. No test sleeps: "the sender is now in send()" is an
 * event (S3.34), and limits of time only make a broken test end. Items are short texts; their first letter says what becomes of them:
 * F fails, R wants to be tried again, everything else is sent. */
#ifndef SL_TESTS_QUEUE_RIG_H
#define SL_TESTS_QUEUE_RIG_H

#include "test.h"

#include <sluice.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    ITEMS_MAX = 64,
    TEXT_BYTES = 16,
    PATIENCE_MS = 20000
};

typedef struct texts {
    size_t count;
    char text[ITEMS_MAX][TEXT_BYTES];
    uint64_t at_ns[ITEMS_MAX];
} texts;

typedef struct queue_rig {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sl_queue *queue;
    int passes;     /* so many sends may go on; negative: all */
    size_t entered; /* sends that have begun */
    bool is_dead;   /* the destination: everything fails */
    bool works_after_retry;
    int64_t retry_after_ms;
    texts sent, dead, dropped, left;
    sl_queue_death death[ITEMS_MAX];
    uint32_t attempts[ITEMS_MAX];
    size_t warnings[SL_QUEUE_WARN_STUCK + 1];
    char sentence[256];
    bool counts_in_warn; /* looks at the queue from inside of warn() */
    bool stays_in_dropped;
    void (*in_dropped)(struct queue_rig *rig); /* what dropped() does before it returns; NULL: nothing */
    void (*in_dead)(struct queue_rig *rig);    /* the same of dead() */
} queue_rig;

static inline uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void note(texts *all, const sl_queue_item *item)
{
    if (all->count == ITEMS_MAX)
        return;
    all->at_ns[all->count] = now_ns();
    memcpy(all->text[all->count++], item->data, item->bytes);
}

static inline sl_queue_outcome on_send(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    queue_rig *const rig = user;
    const char first = *(const char *)item->data;
    sl_queue_outcome outcome = SL_QUEUE_SENT;

    pthread_mutex_lock(&rig->lock);
    rig->entered++;
    pthread_cond_broadcast(&rig->changed);
    while (rig->passes == 0)
        pthread_cond_wait(&rig->changed, &rig->lock);
    if (rig->passes > 0)
        rig->passes--;
    answer->retry_after_ms = rig->retry_after_ms;
    if (first == 'R' && !(rig->works_after_retry && item->attempt > 1))
        outcome = SL_QUEUE_RETRY;
    if (first == 'F' || rig->is_dead)
        outcome = SL_QUEUE_FAILED;
    if (outcome == SL_QUEUE_SENT)
        note(&rig->sent, item);
    else
        strcpy(answer->reason, "503");
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return outcome;
}

static inline void on_dead(void *user, const sl_queue_item *item, sl_queue_death death, const char *reason)
{
    queue_rig *const rig = user;

    pthread_mutex_lock(&rig->lock);
    rig->death[rig->dead.count] = death;
    rig->attempts[rig->dead.count] = item->attempt;
    snprintf(rig->sentence, sizeof rig->sentence, "%s", reason);
    note(&rig->dead, item);
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    if (rig->in_dead != NULL)
        rig->in_dead(rig);
}

static inline void on_dropped(void *user, const sl_queue_item *item)
{
    queue_rig *const rig = user;

    pthread_mutex_lock(&rig->lock);
    note(&rig->dropped, item);
    pthread_cond_broadcast(&rig->changed);
    while (rig->stays_in_dropped)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
    if (rig->in_dropped != NULL)
        rig->in_dropped(rig);
}

static inline void on_left(void *user, const sl_queue_item *item)
{
    note(&((queue_rig *)user)->left, item);
}

static inline void on_warn(void *user, sl_queue_warning warning, const char *sentence)
{
    queue_rig *const rig = user;

    if (rig->counts_in_warn)
        (void)sl_queue_get_counts(rig->queue);
    pthread_mutex_lock(&rig->lock);
    rig->warnings[warning]++;
    snprintf(rig->sentence, sizeof rig->sentence, "%s", sentence);
    pthread_mutex_unlock(&rig->lock);
}

static inline void rig_open(queue_rig *rig, sl_queue_options options, int passes)
{
    pthread_condattr_t monotonic;

    *rig = (queue_rig){ .passes = passes };
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, &monotonic);
    options.callbacks = (sl_queue_callbacks){ on_send, on_dead, on_dropped, on_warn };
    options.user = rig;
    EXPECT_EQ(sl_queue_new(&options, &rig->queue), SL_QUEUE_OK);
}

static inline void rig_close(queue_rig *rig)
{
    sl_queue_free(rig->queue);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

static inline sl_queue_status put_key(queue_rig *rig, const char *text, const char *key)
{
    return sl_queue_put(rig->queue, text, strlen(text) + 1, key);
}

static inline sl_queue_status put(queue_rig *rig, const char *text)
{
    return put_key(rig, text, NULL);
}

/* Until *number has reached `wanted`. */
static inline void await(queue_rig *rig, const size_t *number, size_t wanted)
{
    const uint64_t until_ns = now_ns() + PATIENCE_MS * UINT64_C(1000000);
    const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
                                    .tv_nsec = (long)(until_ns % 1000000000) };
    int late = 0;

    pthread_mutex_lock(&rig->lock);
    while (*number < wanted && late == 0)
        late = pthread_cond_timedwait(&rig->changed, &rig->lock, &until);
    pthread_mutex_unlock(&rig->lock);
    EXPECT_EQ(late, 0);
}

static inline void let_pass(queue_rig *rig, int passes)
{
    pthread_mutex_lock(&rig->lock);
    rig->passes = passes;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static inline void expect_texts(const texts *is, const char *wanted)
{
    char all[ITEMS_MAX * TEXT_BYTES] = "";

    for (size_t i = 0; i < is->count; i++) {
        strcat(all, i == 0 ? "" : " ");
        strcat(all, is->text[i]);
    }
    EXPECT_STR(all, wanted);
}

#endif

/* worker/queue_threads.c — the senders of a queue.
 *
 *      next step --> SEND --> outcome --> settle --+
 *          ^   \---> BURY --> dead() --------------+
 *          |   \---> WAIT (for an item, a time, an answer of another sender)
 *          +-----------------------------------------+         \---> END: stopping, and nothing waits or is being sent
 *
 * All waiting happens on one condition variable with the nearest time that matters, so a stop or a drain is noticed at once, also
 * in the middle of an interval or a Retry-After (S3.37). See queue_inside.h. */
#include "worker/queue_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum {
    SENTENCE_BYTES = 256,
    THREAD_NAME_BYTES = 16 /* what Linux allows, with the closing zero */
};

uint64_t queue_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

sl_queue_item queue_view(const queue_item *item)
{
    const bool has_key = item->lane != item->lane->queue->keyless;

    return (sl_queue_item){ .data = item->data,
                            .bytes = item->bytes,
                            .key = has_key ? item->lane->key : NULL,
                            .attempt = item->attempts };
}

void queue_warn(const sl_queue *queue, sl_queue_warning warning, const char *sentence, uint64_t number)
{
    char buffer[SENTENCE_BYTES];
    sl_text text;

    if (queue->options.callbacks.warn == NULL)
        return;
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "queue ");
    sl_text_add(&text, queue->name);
    sl_text_add(&text, ": ");
    sl_text_add_u64(&text, number);
    sl_text_add(&text, sentence);
    queue->options.callbacks.warn(queue->options.user, warning, text.data);
}

/* --- waiting --- */

static bool wait_on(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
                                    .tv_nsec = (long)(until_ns % SECOND_NS) };

    if (until_ns == UINT64_MAX)
        return pthread_cond_wait(condition, lock) == 0;
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}

bool queue_wait_changed(sl_queue *queue, uint64_t until_ns)
{
    return wait_on(&queue->changed, &queue->lock, until_ns);
}

static void wait_for_work(sl_queue *queue, uint64_t until_ns)
{
    queue->senders_idle++;
    (void)wait_on(&queue->work, &queue->lock, until_ns);
    queue->senders_idle--;
}

/* --- what is next --- */

typedef struct sender_step {
    enum {
        STEP_SEND,
        STEP_BURY,
        STEP_WAIT,
        STEP_AGAIN,
        STEP_END
    } kind;
    queue_item *item;  /* SEND, BURY */
    uint64_t ticket;   /* SEND */
    uint64_t until_ns; /* WAIT */
} sender_step;

/* No item may go now. A pause that ends after the drain is not waited for, as soon as nobody's answer can change that. */
static sender_step rest(sl_queue *queue, uint64_t wake_ns)
{
    const uint64_t until_ns = queue->gives_up ? UINT64_MAX : sl_min_u64(wake_ns, queue->deadline_ns);

    if (!queue->is_stopping || queue->sending_count > 0)
        return (sender_step){ .kind = STEP_WAIT, .until_ns = until_ns };
    if (queue->waiting_count == 0)
        return (sender_step){ .kind = STEP_END };
    queue->gives_up = wake_ns >= queue->deadline_ns;
    return (sender_step){ .kind = queue->gives_up ? STEP_AGAIN : STEP_WAIT, .until_ns = wake_ns };
}

/* Outside of a drain an open breaker is the end of what waits, unless they are to wait. While a probe is out it decides for all. */
static sender_step ask_breaker(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    const bool is_open = sl_breaker_state_at(&queue->breaker, now_ns) == SL_BREAKER_OPEN;
    const sl_breaker_verdict verdict = sl_breaker_ask(&queue->breaker, now_ns);
    const bool buries = is_open && !queue->is_stopping && !queue->options.waits_for_breaker;

    if (verdict.kind == SL_BREAKER_SEND || verdict.kind == SL_BREAKER_PROBE)
        return (sender_step){ .kind = STEP_SEND, .item = item, .ticket = verdict.ticket };
    if (verdict.kind == SL_BREAKER_WAIT && buries)
        return (sender_step){ .kind = STEP_BURY, .item = item };
    if (verdict.kind == SL_BREAKER_WAIT)
        return (sender_step){ .kind = STEP_WAIT, .until_ns = verdict.until_ns };
    queue->gives_up = true;
    return (sender_step){ .kind = STEP_AGAIN };
}

static sender_step next_step(sl_queue *queue, uint64_t now_ns)
{
    uint64_t wake_ns = UINT64_MAX;
    queue_item *item;

    if (now_ns >= queue->deadline_ns)
        queue->gives_up = true;
    if (queue->gives_up)
        queue_leave_all(queue);
    item = queue_peek(queue, now_ns, &wake_ns);
    if (item == NULL)
        return rest(queue, wake_ns);
    if (queue->has_breaker)
        return ask_breaker(queue, item, now_ns);
    return (sender_step){ .kind = STEP_SEND, .item = item };
}

/* --- what became of it --- */

/* The key is still held, so the view is good. Whoever has freed the queue is told nothing any more: what `user` points to may be gone. */
static void bury(sl_queue *queue, queue_item *item, sl_queue_death death, const char *reason)
{
    const sl_queue_item view = queue_view(item);

    queue->dead++;
    if (queue->options.callbacks.dead == NULL || queue->is_orphan)
        return;
    pthread_mutex_unlock(&queue->lock);
    queue->options.callbacks.dead(queue->options.user, &view, death, reason);
    pthread_mutex_lock(&queue->lock);
}

static uint64_t pause_of(const sl_queue *queue, const sl_queue_answer *answer)
{
    if (answer->retry_after_ms <= 0)
        return queue->options.retry_ms * MS_NS;
    return sl_min_u64((uint64_t)answer->retry_after_ms, SL_QUEUE_RETRY_MS_MAX) * MS_NS;
}

static void tell_breaker(sl_queue *queue, uint64_t ticket, sl_queue_outcome outcome,
                         const sl_queue_answer *answer)
{
    const sl_breaker_failure failure = {
        .now_ns = queue_now_ns(),
        .retry_after_ns = answer->retry_after_ms > 0 ? pause_of(queue, answer) : 0,
    };

    if (!queue->has_breaker)
        return;
    if (outcome == SL_QUEUE_SENT)
        sl_breaker_succeeded(&queue->breaker, ticket);
    else if (outcome == SL_QUEUE_RETRY)
        sl_breaker_withdrawn(&queue->breaker, ticket);
    else
        sl_breaker_failed(&queue->breaker, ticket, failure);
}

/* Gives whether the item goes on waiting, and what its key waits for then. */
static bool settle(sl_queue *queue, const sender_step *step, sl_queue_outcome outcome,
                   const sl_queue_answer *answer)
{
    queue_item *const item = step->item;
    const bool is_spent = outcome == SL_QUEUE_RETRY && item->attempts >= queue->options.attempts_max;

    tell_breaker(queue, step->ticket, is_spent ? SL_QUEUE_FAILED : outcome, answer);
    if (outcome == SL_QUEUE_SENT)
        queue->sent++;
    else if (is_spent)
        bury(queue, item, SL_QUEUE_DEAD_ATTEMPTS_SPENT, answer->reason);
    else if (outcome != SL_QUEUE_RETRY)
        bury(queue, item, SL_QUEUE_DEAD_FAILED, answer->reason);
    return outcome == SL_QUEUE_RETRY && !is_spent;
}

/* The last word on an item that a sender had; those who wait for the end look again. */
static void let_go(sl_queue *queue, queue_item *item, bool is_kept, uint64_t pause_ns)
{
    queue_lane *const lane = item->lane;
    const uint64_t now_ns = queue_now_ns();

    if (is_kept)
        queue_add(queue, item, now_ns);
    queue_lane_ended(queue, lane, now_ns, is_kept ? pause_ns : 0);
    queue->sending_count--;
    if (!is_kept)
        queue_item_free(item);
    if (!queue->is_stopping)
        return;
    pthread_cond_broadcast(&queue->work);
    pthread_cond_broadcast(&queue->changed);
}

/* --- one step --- */

/* There may be more than this sender can do; whoever is woken wakes the next. */
static void call_another(sl_queue *queue)
{
    if (queue->senders_idle > 0 && sl_pairing_min(&queue->ready) != NULL)
        pthread_cond_signal(&queue->work);
}

static void send_one(sl_queue *queue, const sender_step *step, uint64_t now_ns)
{
    sl_queue_answer answer = { 0 };
    sl_queue_outcome outcome;
    sl_queue_item view;
    bool is_kept;

    step->item->attempts++;
    queue->sending_count++;
    queue_begin(queue, step->item, now_ns);
    call_another(queue);
    view = queue_view(step->item);
    pthread_mutex_unlock(&queue->lock);
    outcome = queue->options.callbacks.send(queue->options.user, &view, &answer);
    answer.reason[sizeof answer.reason - 1] = '\0';
    pthread_mutex_lock(&queue->lock);
    is_kept = settle(queue, step, outcome, &answer);
    let_go(queue, step->item, is_kept, pause_of(queue, &answer));
}

static void bury_one(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    queue->sending_count++;
    queue_hold(queue, item, now_ns);
    bury(queue, item, SL_QUEUE_DEAD_BREAKER_OPEN, "the destination does not answer");
    let_go(queue, item, false, 0);
}

/* False: it is over. */
static bool turn(sl_queue *queue)
{
    const uint64_t now_ns = queue_now_ns();
    const sender_step step = next_step(queue, now_ns);

    if (step.kind == STEP_SEND)
        send_one(queue, &step, now_ns);
    else if (step.kind == STEP_BURY)
        bury_one(queue, step.item, now_ns);
    else if (step.kind == STEP_WAIT)
        wait_for_work(queue, step.until_ns);
    return step.kind != STEP_END;
}

/* --- threads --- */

static void name_thread(const queue_sender *sender)
{
    char name[THREAD_NAME_BYTES];
    sl_text text;

    sl_text_init(&text, name, sizeof name - 3); /* room for the number */
    sl_text_add(&text, sender->queue->name);
    text.capacity = sizeof name;
    text.cut = false;
    sl_text_add_char(&text, '-');
    sl_text_add_u64(&text, sender->number);
    (void)pthread_setname_np(pthread_self(), name);
}

static void *sender_main(void *ctx)
{
    queue_sender *const sender = ctx;
    sl_queue *const queue = sender->queue;
    bool is_last;

    name_thread(sender);
    pthread_mutex_lock(&queue->lock);
    while (turn(queue)) {
    }
    sender->has_ended = true;
    queue->senders_alive--;
    is_last = queue->senders_alive == 0 && queue->is_orphan;
    pthread_cond_broadcast(&queue->work); /* the other senders find their end as well */
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (is_last)
        queue_destroy(queue);
    return NULL;
}

/* Signals are for the threads of the program, not for ours. */
unsigned queue_senders_start(sl_queue *queue)
{
    unsigned made = 0;
    sigset_t all, old;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < queue->options.threads; i++) {
        queue_sender *const sender = &queue->senders[i];

        *sender = (queue_sender){ .queue = queue, .number = i + 1 };
        if (pthread_create(&sender->thread, NULL, sender_main, sender) != 0)
            break;
        sender->is_on = true;
        made++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    queue->senders_alive = made;
    return made;
}

void queue_senders_join(sl_queue *queue, bool others_too)
{
    for (unsigned i = 0; i < queue->options.threads; i++) {
        queue_sender *const sender = &queue->senders[i];

        if (!sender->is_on || (!sender->has_ended && !others_too))
            continue;
        sender->is_on = false;
        if (sender->has_ended)
            (void)pthread_join(sender->thread, NULL);
        else
            (void)pthread_detach(sender->thread);
    }
}

bool queue_is_sender(const sl_queue *queue)
{
    bool is_one = queue->is_orphan; /* nobody else is there */

    for (unsigned i = 0; i < queue->options.threads && !is_one; i++)
        is_one = queue->senders[i].is_on && pthread_equal(queue->senders[i].thread, pthread_self());
    return is_one;
}

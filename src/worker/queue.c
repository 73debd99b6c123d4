/* worker/queue.c — the public functions of a queue inside of a program: see include/sluice.h, and queue_inside.h for its parts. */
#include "worker/queue_inside.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <string.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)

enum {
    CAPACITY_PERCENT = 100
};

/* --- options --- */

static bool is_wrong(const sl_queue_options *options)
{
    const sl_str name = sl_str_from(options->name);

    return options->callbacks.send == NULL || options->capacity > SL_QUEUE_CAPACITY_MAX ||
           options->threads > SL_QUEUE_THREADS_MAX || name.bytes > SL_QUEUE_NAME_BYTES_MAX ||
           !sl_utf8_valid(name) || options->retry_ms > SL_QUEUE_RETRY_MS_MAX;
}

static uint32_t or_default(uint32_t value, uint32_t usual)
{
    return value == 0 ? usual : value;
}

static void fill_in(sl_queue_options *options)
{
    if (options->name == NULL || options->name[0] == '\0')
        options->name = "queue";
    if (options->capacity == 0)
        options->capacity = SL_QUEUE_CAPACITY_DEFAULT;
    options->threads = or_default(options->threads, 1);
    options->attempts_max = or_default(options->attempts_max, SL_QUEUE_ATTEMPTS_DEFAULT);
    options->retry_ms = or_default(options->retry_ms, SL_QUEUE_RETRY_MS_DEFAULT);
    options->breaker_failures = or_default(options->breaker_failures, SL_QUEUE_BREAKER_FAILURES_DEFAULT);
    options->breaker_rest_ms = or_default(options->breaker_rest_ms, SL_QUEUE_BREAKER_REST_MS_DEFAULT);
    options->join_ms = or_default(options->join_ms, SL_QUEUE_JOIN_MS_DEFAULT);
}

/* --- life --- */

static void init_breaker(sl_queue *queue)
{
    sl_breaker_rules rules = sl_breaker_rules_default();

    queue->has_breaker = !queue->options.has_no_breaker;
    rules.failures_max = queue->options.breaker_failures;
    rules.cool_down_ns = queue->options.breaker_rest_ms * MS_NS;
    rules.cool_down_max_ns = sl_max_u64(rules.cool_down_max_ns, rules.cool_down_ns);
    sl_breaker_init(&queue->breaker, &rules);
}

static bool init_conditions(sl_queue *queue)
{
    pthread_condattr_t monotonic;

    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&queue->lock, NULL); /* on Linux these three cannot fail */
    (void)pthread_cond_init(&queue->work, &monotonic);
    (void)pthread_cond_init(&queue->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return true;
}

sl_queue_status sl_queue_new(const sl_queue_options *options, sl_queue **ret_queue)
{
    sl_queue *queue;

    if (is_wrong(options))
        return SL_QUEUE_INVALID;
    queue = sl_alloc_take(&sl_alloc_default, sizeof *queue);
    if (queue == NULL)
        return SL_QUEUE_NOMEM;
    *queue = (sl_queue){ .options = *options, .deadline_ns = UINT64_MAX };
    fill_in(&queue->options);
    memcpy(queue->name, queue->options.name, strlen(queue->options.name)); /* whose length was looked at */
    queue->options.name = queue->name;
    sl_list_init(&queue->waiting);
    sl_list_init(&queue->left);
    init_breaker(queue);
    if (!queue_lanes_init(queue) || !init_conditions(queue)) {
        queue_lanes_done(queue);
        sl_alloc_give(&sl_alloc_default, queue, sizeof *queue);
        return SL_QUEUE_NOMEM;
    }
    *ret_queue = queue;
    return SL_QUEUE_OK;
}

static void free_items(sl_list *head)
{
    while (!sl_list_empty(head)) {
        queue_item *const item = SL_CONTAINER_OF(sl_list_first(head), queue_item, all);

        sl_list_remove(&item->all);
        queue_item_free(item);
    }
}

void queue_destroy(sl_queue *queue)
{
    free_items(&queue->waiting);
    free_items(&queue->left);
    queue_lanes_done(queue);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    sl_alloc_give(&sl_alloc_default, queue, sizeof *queue);
}

sl_queue_status sl_queue_start(sl_queue *queue)
{
    sl_queue_status status = SL_QUEUE_OK;

    pthread_mutex_lock(&queue->lock);
    if (queue->senders_alive > 0) {
        status = queue->is_stopping ? SL_QUEUE_STOPPING : SL_QUEUE_OK;
    } else {
        queue_senders_join(queue, false);
        queue->start_count++;
        queue->is_stopping = queue->gives_up = false;
        queue->deadline_ns = UINT64_MAX;
        sl_breaker_drain_end(&queue->breaker);
        queue_take_back(queue, queue_now_ns());
        status = queue_senders_start(queue) > 0 ? SL_QUEUE_OK : SL_QUEUE_SYSTEM;
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* --- in --- */

static sl_queue_status admit(const sl_queue *queue, uint64_t now_ns)
{
    if (queue->is_stopping)
        return SL_QUEUE_STOPPING;
    if (queue->has_breaker && sl_breaker_state_at(&queue->breaker, now_ns) == SL_BREAKER_OPEN)
        return SL_QUEUE_BREAKER_OPEN;
    if (queue->options.refuses_when_full && queue->waiting_count >= queue->options.capacity)
        return SL_QUEUE_FULL;
    return SL_QUEUE_OK;
}

/* Only here does the number of waiting items rise, so only here must one look whether it had fallen. */
static bool crosses_high_water(sl_queue *queue)
{
    const size_t capacity = queue->options.capacity;

    if ((queue->waiting_count - 1) * CAPACITY_PERCENT < capacity * SL_QUEUE_LOW_WATER_PERCENT)
        queue->is_high = false;
    if (queue->is_high || queue->waiting_count * CAPACITY_PERCENT < capacity * SL_QUEUE_HIGH_WATER_PERCENT)
        return false;
    queue->is_high = true;
    return true;
}

/* Never the new one: that is the youngest. NULL: there is room. */
static queue_item *evict(sl_queue *queue, uint64_t now_ns)
{
    queue_item *oldest;

    if (queue->waiting_count <= queue->options.capacity)
        return NULL;
    oldest = SL_CONTAINER_OF(sl_list_first(&queue->waiting), queue_item, all);
    queue_evict(queue, oldest, now_ns);
    queue->dropped++;
    return oldest;
}

typedef struct putting {
    sl_queue_status status;
    queue_item *evicted;
    bool is_high;
    uint64_t waiting;
} putting;

/* The one place where items come in; the stop is looked at under the same lock (S3.14), after the breaker and everything else that takes
 * time (S3.15). */
static putting put_locked(sl_queue *queue, queue_item *item, const char *key)
{
    const uint64_t now_ns = queue_now_ns();
    putting put = { .status = admit(queue, now_ns) };

    if (put.status == SL_QUEUE_OK)
        item->lane = queue_lane_get(queue, key);
    if (put.status == SL_QUEUE_OK && item->lane == NULL)
        put.status = SL_QUEUE_NOMEM;
    if (put.status != SL_QUEUE_OK) {
        queue->refused++;
        return put;
    }
    queue_add(queue, item, now_ns);
    put.is_high = crosses_high_water(queue);
    put.evicted = evict(queue, now_ns);
    put.waiting = queue->waiting_count;
    if (queue->senders_idle > 0)
        pthread_cond_signal(&queue->work);
    return put;
}

/* Its lane stays until then, so that the key can be shown; the others of the lane are sent meanwhile. */
static void drop(sl_queue *queue, queue_item *item)
{
    const sl_queue_item view = queue_view(item);

    queue_warn(queue, SL_QUEUE_WARN_DROPPED, " item was dropped, the oldest one: the queue is full", 1);
    if (queue->options.callbacks.dropped != NULL)
        queue->options.callbacks.dropped(queue->options.user, &view);
    pthread_mutex_lock(&queue->lock);
    queue_lane_told(queue, item->lane, queue_now_ns());
    pthread_mutex_unlock(&queue->lock);
    queue_item_free(item);
}

sl_queue_status sl_queue_put(sl_queue *queue, const void *data, size_t bytes, const char *key)
{
    queue_item *item;
    putting put;

    if (bytes > SL_QUEUE_ITEM_BYTES_MAX || sl_str_from(key).bytes > SL_QUEUE_KEY_BYTES_MAX)
        return SL_QUEUE_INVALID;
    item = queue_item_new(data, bytes);
    if (item == NULL)
        return SL_QUEUE_NOMEM;
    pthread_mutex_lock(&queue->lock);
    put = put_locked(queue, item, key);
    pthread_mutex_unlock(&queue->lock);
    if (put.status != SL_QUEUE_OK)
        queue_item_free(item);
    if (put.status == SL_QUEUE_STOPPING)
        queue_warn(queue, SL_QUEUE_WARN_REFUSED, " item was refused: the queue is being stopped", 1);
    if (put.is_high)
        queue_warn(queue, SL_QUEUE_WARN_HIGH_WATER,
                   " items wait, which is 80 % of what fits: sending is too slow, or stands", put.waiting);
    if (put.evicted != NULL)
        drop(queue, put.evicted);
    return put.status;
}

/* --- out --- */

static void stop_locked(sl_queue *queue, uint64_t deadline_ns)
{
    queue->is_stopping = true;
    queue->deadline_ns = deadline_ns;
    if (queue->has_breaker)
        sl_breaker_drain(&queue->breaker, deadline_ns);
    pthread_cond_broadcast(&queue->work);
}

void sl_queue_stop(sl_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->is_stopping)
        stop_locked(queue, UINT64_MAX);
    pthread_mutex_unlock(&queue->lock);
}

static uint64_t deadline_of(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : sl_add_sat_u64(queue_now_ns(), (uint64_t)timeout_ms * MS_NS);
}

/* At the end nothing waits any more: it was sent, is dead, or is left. Gives how many were not sent. A queue that ended while somebody
 * else drained it, too, and that he has started again, is not ours any more: what waits then is not touched. */
static uint64_t drain_locked(sl_queue *queue, uint64_t deadline_ns)
{
    const uint64_t start_count = queue->start_count;
    bool is_in_time = true;

    stop_locked(queue, deadline_ns);
    while (queue->start_count == start_count && queue->senders_alive > 0 && is_in_time &&
           queue->waiting_count + queue->sending_count > 0)
        is_in_time = queue_wait_changed(queue, deadline_ns);
    if (queue->start_count != start_count)
        return 0;
    if (queue->waiting_count > 0) {
        queue->gives_up = true;
        queue_leave_all(queue);
        pthread_cond_broadcast(&queue->work);
    }
    return queue->left_count + queue->sending_count;
}

size_t sl_queue_drain(sl_queue *queue, int timeout_ms)
{
    const uint64_t deadline_ns = deadline_of(timeout_ms);
    uint64_t sent_before, sent, unsent;

    pthread_mutex_lock(&queue->lock);
    if (queue_is_sender(queue)) {
        pthread_mutex_unlock(&queue->lock);
        return 0;
    }
    sent_before = queue->sent;
    unsent = drain_locked(queue, deadline_ns);
    sent = queue->sent - sent_before;
    pthread_mutex_unlock(&queue->lock);
    if (unsent > 0)
        queue_warn(queue, SL_QUEUE_WARN_NOT_DRAINED,
                   " accepted items were not sent before the drain ended: they are kept, see sl_queue_left()",
                   unsent);
    return (size_t)sent;
}

int sl_queue_join(sl_queue *queue, int timeout_ms)
{
    const uint64_t deadline_ns = deadline_of(timeout_ms);
    bool is_in_time, is_on;
    uint64_t start_count;

    pthread_mutex_lock(&queue->lock);
    start_count = queue->start_count;
    is_in_time = !queue_is_sender(queue);
    while (queue->start_count == start_count && queue->senders_alive > 0 && is_in_time)
        is_in_time = queue_wait_changed(queue, deadline_ns);
    queue_senders_join(queue, false);
    is_on = queue->start_count == start_count && queue->senders_alive > 0;
    pthread_mutex_unlock(&queue->lock);
    return is_on ? 1 : 0;
}

static void warn_stuck(const sl_queue *queue, const queue_sender *stuck)
{
    char sentence[SL_QUEUE_REASON_BYTES];
    sl_text text;

    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, " sender at least, the thread ");
    sl_text_add(&text, queue->name);
    sl_text_add_char(&text, '-');
    sl_text_add_u64(&text, stuck->number);
    sl_text_add(&text, ", did not come back from send() within ");
    sl_text_add_duration(&text, queue->options.join_ms * MS_NS);
    sl_text_add(&text, " and is left behind: give send() a time limit");
    queue_warn(queue, SL_QUEUE_WARN_STUCK, sentence, 1);
}

/* With the lock. The first that is still there; NULL: none. */
static const queue_sender *find_stuck(const sl_queue *queue)
{
    for (unsigned i = 0; i < queue->options.threads; i++)
        if (queue->senders[i].is_on && !queue->senders[i].has_ended)
            return &queue->senders[i];
    return NULL;
}

/* Whoever is still there is nobody's from now on: the last of them frees the queue. False: nobody is. The warning comes before
 * that, and without the lock, as all callbacks do: afterwards the queue may be gone. */
static bool disown(sl_queue *queue)
{
    const queue_sender *stuck;

    pthread_mutex_lock(&queue->lock);
    stuck = find_stuck(queue);
    pthread_mutex_unlock(&queue->lock);
    if (stuck != NULL)
        warn_stuck(queue, stuck);
    pthread_mutex_lock(&queue->lock);
    stuck = find_stuck(queue); /* it may have come back meanwhile */
    queue->is_orphan = stuck != NULL;
    queue_senders_join(queue, true);
    pthread_mutex_unlock(&queue->lock);
    return stuck != NULL;
}

void sl_queue_free(sl_queue *queue)
{
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->lock);
    stop_locked(queue, queue_now_ns());
    pthread_mutex_unlock(&queue->lock);
    (void)sl_queue_join(queue, (int)sl_min_u64(queue->options.join_ms, INT32_MAX));
    if (!disown(queue))
        queue_destroy(queue);
}

/* --- looking --- */

size_t sl_queue_left(sl_queue *queue, void (*each)(void *user, const sl_queue_item *item), void *user)
{
    size_t count;

    pthread_mutex_lock(&queue->lock);
    count = queue->left_count;
    if (each != NULL)
        SL_LIST_EACH (node, &queue->left) {
            const sl_queue_item view = queue_view(SL_CONTAINER_OF(node, queue_item, all));

            each(user, &view);
        }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

sl_queue_counts sl_queue_get_counts(sl_queue *queue)
{
    sl_queue_counts counts;

    pthread_mutex_lock(&queue->lock);
    counts = (sl_queue_counts){
        .waiting = queue->waiting_count,
        .sending = queue->sending_count,
        .left = queue->left_count,
        .sent = queue->sent,
        .dead = queue->dead,
        .dropped = queue->dropped,
        .refused = queue->refused,
        .is_breaker_open =
            queue->has_breaker && sl_breaker_state_at(&queue->breaker, queue_now_ns()) != SL_BREAKER_CLOSED,
        .is_stopping = queue->is_stopping,
    };
    pthread_mutex_unlock(&queue->lock);
    return counts;
}

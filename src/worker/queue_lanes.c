/* worker/queue_lanes.c — which item is next: the oldest one whose key may be sent to now. See queue_inside.h. */
#include "worker/queue_inside.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#define MS_NS UINT64_C(1000000)

enum {
    LANE_TABLE_LENGTH_FIRST = 64
};

static queue_lane *lane_of(const sl_pairing_node *node)
{
    return SL_CONTAINER_OF(node, queue_lane, node);
}

static queue_item *first_of(const queue_lane *lane)
{
    return SL_CONTAINER_OF(sl_list_first(&lane->items), queue_item, line);
}

static bool is_older(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return first_of(lane_of(a))->sequence < first_of(lane_of(b))->sequence;
}

static bool is_earlier(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return lane_of(a)->next_ns < lane_of(b)->next_ns;
}

/* --- lanes --- */

static queue_lane *lane_new(sl_queue *queue, sl_str key)
{
    const size_t bytes = sizeof(queue_lane) + key.bytes + 1;
    queue_lane *const lane = sl_alloc_take(&sl_alloc_default, bytes);

    if (lane == NULL)
        return NULL;
    *lane = (queue_lane){ .queue = queue, .memory_bytes = bytes, .key_bytes = key.bytes };
    sl_list_init(&lane->items);
    sl_list_init(&lane->idle);
    if (key.bytes > 0)
        memcpy(lane->key, key.data, key.bytes);
    lane->key[key.bytes] = '\0';
    return lane;
}

bool queue_lanes_init(sl_queue *queue)
{
    const size_t bytes = LANE_TABLE_LENGTH_FIRST * sizeof(sl_map_node *);

    sl_pairing_init(&queue->ready, is_older);
    sl_pairing_init(&queue->timed, is_earlier);
    sl_list_init(&queue->idle);
    if (getrandom(&queue->seed, sizeof queue->seed, 0) != (ssize_t)sizeof queue->seed)
        return false;
    queue->lane_table = sl_alloc_take(&sl_alloc_default, bytes);
    if (queue->lane_table == NULL)
        return false;
    queue->lane_table_length = LANE_TABLE_LENGTH_FIRST;
    sl_map_init(&queue->lanes, queue->lane_table, queue->lane_table_length);
    queue->keyless = lane_new(queue, (sl_str){ 0 });
    return queue->keyless != NULL;
}

static void lane_free(sl_queue *queue, queue_lane *lane)
{
    if (!sl_list_empty(&lane->idle)) {
        sl_list_remove(&lane->idle);
        queue->idle_count--;
    }
    sl_map_remove(&queue->lanes, &lane->by_key);
    sl_alloc_give(&sl_alloc_default, lane, lane->memory_bytes);
}

void queue_lanes_done(sl_queue *queue)
{
    for (size_t i = 0; i < queue->lane_table_length; i++)
        while (queue->lane_table[i] != NULL)
            lane_free(queue, SL_CONTAINER_OF(queue->lane_table[i], queue_lane, by_key));
    sl_alloc_give(&sl_alloc_default, queue->lane_table, queue->lane_table_length * sizeof(sl_map_node *));
    if (queue->keyless != NULL)
        sl_alloc_give(&sl_alloc_default, queue->keyless, queue->keyless->memory_bytes);
}

/* Without memory for a larger table the chains get longer, and nothing is wrong. */
static void grow_table(sl_queue *queue)
{
    const size_t length = queue->lane_table_length * 2;
    sl_map_node **table;

    if (queue->lanes.count < queue->lane_table_length)
        return;
    table = sl_alloc_take(&sl_alloc_default, length * sizeof *table);
    if (table == NULL)
        return;
    sl_map_resize(&queue->lanes, table, length);
    sl_alloc_give(&sl_alloc_default, queue->lane_table, queue->lane_table_length * sizeof *table);
    queue->lane_table = table;
    queue->lane_table_length = length;
}

static queue_lane *lane_find(const sl_queue *queue, sl_str key, uint64_t hash)
{
    for (sl_map_node *node = sl_map_find(&queue->lanes, hash); node != NULL; node = sl_map_next(node)) {
        queue_lane *const lane = SL_CONTAINER_OF(node, queue_lane, by_key);

        if (sl_str_equal((sl_str){ lane->key, lane->key_bytes }, key))
            return lane;
    }
    return NULL;
}

queue_lane *queue_lane_get(sl_queue *queue, const char *key)
{
    const sl_str text = sl_str_from(key);
    uint64_t hash;
    queue_lane *lane;

    if (key == NULL)
        return queue->keyless;
    hash = sl_hash(queue->seed, text.data, text.bytes);
    lane = lane_find(queue, text, hash);
    if (lane != NULL)
        return lane;
    lane = lane_new(queue, text);
    if (lane == NULL)
        return NULL;
    grow_table(queue);
    sl_map_insert(&queue->lanes, &lane->by_key, hash);
    return lane;
}

/* Keys whose interval is over need not be remembered, and neither do all of very many. The interval is the same for all, so the
 * one that has been idle for longest is the first whose time is over. */
static void forget_idle(sl_queue *queue, uint64_t now_ns)
{
    while (!sl_list_empty(&queue->idle)) {
        queue_lane *const lane = SL_CONTAINER_OF(sl_list_first(&queue->idle), queue_lane, idle);

        if (lane->next_ns > now_ns && queue->idle_count <= SL_QUEUE_KEYS_IDLE_MAX)
            return;
        lane_free(queue, lane);
    }
}

/* Out of its heap; before anything changes that it is ordered by. */
static void lane_lift(sl_queue *queue, queue_lane *lane)
{
    if (lane->place != LANE_NOWHERE)
        sl_pairing_remove(lane->place == LANE_READY ? &queue->ready : &queue->timed, &lane->node);
    lane->place = LANE_NOWHERE;
    if (!sl_list_empty(&lane->idle)) {
        sl_list_remove(&lane->idle);
        queue->idle_count--;
    }
}

/* To where it belongs now; it may be gone after this, if nothing waits in it. */
static void lane_settle(sl_queue *queue, queue_lane *lane, uint64_t now_ns)
{
    const bool is_keyless = lane == queue->keyless;

    assert(lane->place == LANE_NOWHERE);
    if (lane->busy > 0 && !is_keyless)
        return;
    if (!sl_list_empty(&lane->items)) {
        lane->place = lane->next_ns > now_ns ? LANE_TIMED : LANE_READY;
        sl_pairing_insert(lane->place == LANE_READY ? &queue->ready : &queue->timed, &lane->node);
    } else if (!is_keyless && lane->told == 0) {
        sl_list_push_back(&queue->idle, &lane->idle);
        queue->idle_count++;
        forget_idle(queue, now_ns);
    }
}

/* --- items --- */

queue_item *queue_item_new(const void *data, size_t bytes)
{
    const size_t memory_bytes = sizeof(queue_item) + bytes;
    queue_item *const item = sl_alloc_take(&sl_alloc_default, memory_bytes);

    if (item == NULL)
        return NULL;
    *item = (queue_item){ .memory_bytes = memory_bytes, .bytes = bytes };
    if (bytes > 0)
        memcpy(item->data, data, bytes);
    return item;
}

void queue_item_free(queue_item *item)
{
    sl_alloc_give(&sl_alloc_default, item, item->memory_bytes);
}

/* Where an item goes among others: nearly always it is the youngest. One that comes back from a sender is among the oldest. */
static void insert_all(sl_list *head, queue_item *item)
{
    sl_list *at = head->next;

    if (at == head || SL_CONTAINER_OF(head->prev, queue_item, all)->sequence < item->sequence)
        at = head;
    while (at != head && SL_CONTAINER_OF(at, queue_item, all)->sequence < item->sequence)
        at = at->next;
    sl_list_insert_before(at, &item->all);
}

static void insert_line(sl_list *head, queue_item *item)
{
    sl_list *at = head->next;

    if (at == head || SL_CONTAINER_OF(head->prev, queue_item, line)->sequence < item->sequence)
        at = head;
    while (at != head && SL_CONTAINER_OF(at, queue_item, line)->sequence < item->sequence)
        at = at->next;
    sl_list_insert_before(at, &item->line);
}

void queue_add(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    if (item->sequence == 0)
        item->sequence = ++queue->sequence;
    lane_lift(queue, item->lane);
    insert_all(&queue->waiting, item);
    insert_line(&item->lane->items, item);
    queue->waiting_count++;
    lane_settle(queue, item->lane, now_ns);
}

static void unlink_item(sl_queue *queue, queue_item *item)
{
    lane_lift(queue, item->lane);
    sl_list_remove(&item->all);
    sl_list_remove(&item->line);
    queue->waiting_count--;
}

/* The lanes of left items are held, which is why nothing of them can be next. */
void queue_leave_all(sl_queue *queue)
{
    while (!sl_list_empty(&queue->waiting)) {
        queue_item *const item = SL_CONTAINER_OF(sl_list_first(&queue->waiting), queue_item, all);

        unlink_item(queue, item);
        item->lane->busy++;
        insert_all(&queue->left, item);
        queue->left_count++;
    }
}

void queue_take_back(sl_queue *queue, uint64_t now_ns)
{
    while (!sl_list_empty(&queue->left)) {
        queue_item *const item = SL_CONTAINER_OF(sl_list_first(&queue->left), queue_item, all);

        sl_list_remove(&item->all);
        queue->left_count--;
        item->lane->busy--;
        queue_add(queue, item, now_ns);
    }
}

/* --- next --- */

static void wake_timed(sl_queue *queue, uint64_t now_ns)
{
    for (;;) {
        sl_pairing_node *const node = sl_pairing_min(&queue->timed);

        if (node == NULL || lane_of(node)->next_ns > now_ns)
            return;
        lane_lift(queue, lane_of(node));
        lane_settle(queue, lane_of(node), now_ns);
    }
}

queue_item *queue_peek(sl_queue *queue, uint64_t now_ns, uint64_t *ret_wake_ns)
{
    wake_timed(queue, now_ns);
    if (sl_pairing_min(&queue->ready) != NULL)
        return first_of(lane_of(sl_pairing_min(&queue->ready)));
    *ret_wake_ns =
        sl_pairing_min(&queue->timed) == NULL ? UINT64_MAX : lane_of(sl_pairing_min(&queue->timed))->next_ns;
    return NULL;
}

void queue_hold(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    unlink_item(queue, item);
    item->lane->busy++;
    lane_settle(queue, item->lane, now_ns);
}

void queue_begin(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    queue_lane *const lane = item->lane;

    queue_hold(queue, item, now_ns);
    if (lane != queue->keyless) /* which stands nowhere now */
        lane->next_ns = sl_add_sat_u64(now_ns, queue->options.interval_ms * MS_NS);
}

/* A lane that was busy meanwhile would be one that nobody counts: senders would sleep past its time, and a drain would give it up. One
 * that a drain waited for could not be drained from inside of dropped(). */
void queue_evict(sl_queue *queue, queue_item *item, uint64_t now_ns)
{
    unlink_item(queue, item);
    item->lane->told++;
    lane_settle(queue, item->lane, now_ns);
}

void queue_lane_told(sl_queue *queue, queue_lane *lane, uint64_t now_ns)
{
    lane_lift(queue, lane);
    lane->told--;
    lane_settle(queue, lane, now_ns);
}

void queue_lane_ended(sl_queue *queue, queue_lane *lane, uint64_t now_ns, uint64_t pause_ns)
{
    lane_lift(queue, lane);
    lane->busy--;
    lane->next_ns = sl_max_u64(lane->next_ns, sl_add_sat_u64(now_ns, pause_ns));
    lane_settle(queue, lane, now_ns);
}

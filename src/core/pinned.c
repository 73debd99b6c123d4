/* core/pinned.c — a key stays with one consumer, and drains before it moves (S1.32, B9).
 *
 *      consumer --owns--> buckets (1024 in all) --hold--> keys --hold--> a queue of available messages
 *
 * Each level is ordered by the first message below it: a consumer has a heap of its buckets that have work, a
 * bucket a heap of its keys that have work, a key its queue. So the next message of a consumer is found
 * without looking at any that it cannot have, and moving a bucket moves all of its keys in one step. Because
 * the order of each level is that of the level below, a change goes: detach from the top down, change, attach
 * again.
 *
 * A key that may not be given out now stands in no heap (is not linked) but in its bucket's list of those that wait:
 *   - it has a live lease and its bucket's owner is not the holder: it waits until the holder is done with it;
 *   - with key_order, also while it has any live lease, or while its first message is new and an earlier one was
 *     delivered and is not settled.
 * Every change of what this depends on links the key again. One is lazy: when a bucket gets an owner, keys that were
 * linked stay so, and one that may not be given to that owner is found out when its turn comes (sl_pinned_next).
 * That keeps moving a bucket independent of how many keys it has. */
#include "core/group_private.h"

#include <assert.h>

static sl_message *key_first(const sl_pairing_node *node)
{
    return sl_lineup_first(&SL_CONTAINER_OF(node, const sl_key, in_bucket)->queue);
}

static bool key_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return sl_message_before(key_first(a), key_first(b));
}

static sl_message *bucket_first(const sl_pairing_node *node)
{
    return key_first(sl_pairing_min(&SL_CONTAINER_OF(node, const sl_bucket, ready)->keys));
}

static bool bucket_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return sl_message_before(bucket_first(a), bucket_first(b));
}

void sl_pinned_init(sl_group *group)
{
    sl_list_init(&group->hungry);
    sl_list_init(&group->unowned);
    for (int i = 0; i < BUCKETS; i++) {
        group->buckets[i] = (sl_bucket){ .owner = NULL };
        sl_pairing_init(&group->buckets[i].keys, key_before);
        sl_list_init(&group->buckets[i].unowned);
        sl_list_init(&group->buckets[i].owned);
        sl_list_init(&group->buckets[i].waiting);
    }
}

/* --- linking --- */

static void update_hungry(sl_group *group, sl_consumer *consumer)
{
    const bool wanted =
        consumer->in_strategy && sl_consumer_has_room(consumer) && sl_pairing_min(&consumer->ready) != NULL;

    if (wanted == !sl_list_empty(&consumer->ring))
        return;
    if (wanted)
        sl_list_push_back(&group->hungry, &consumer->ring);
    else
        sl_list_remove(&consumer->ring);
}

static void bucket_detach(sl_group *group, sl_bucket *bucket)
{
    if (!bucket->linked)
        return;
    bucket->linked = false;
    if (bucket->owner == NULL) {
        sl_list_remove(&bucket->unowned);
    } else {
        sl_pairing_remove(&bucket->owner->ready, &bucket->ready);
        update_hungry(group, bucket->owner);
    }
}

static void bucket_attach(sl_group *group, sl_bucket *bucket)
{
    assert(!bucket->linked);
    if (sl_pairing_min(&bucket->keys) == NULL)
        return;
    bucket->linked = true;
    if (bucket->owner == NULL) {
        sl_list_push_back(&group->unowned, &bucket->unowned);
    } else {
        sl_pairing_insert(&bucket->owner->ready, &bucket->ready);
        update_hungry(group, bucket->owner);
    }
}

static bool key_waits(const sl_group *group, const sl_key *key, const sl_message *first)
{
    const sl_consumer *const owner = key->bucket->owner;

    if (key->in_flight > 0 && owner != NULL && owner->id != key->holder)
        return true;
    if (!group->settings.key_order)
        return false;
    return key->in_flight > 0 || (first->counters.deliveries == 0 && key->delivered > 0);
}

static void key_detach(sl_group *group, sl_key *key)
{
    bucket_detach(group, key->bucket);
    if (key->linked)
        sl_pairing_remove(&key->bucket->keys, &key->in_bucket);
    key->linked = false;
    sl_list_remove(&key->waiting);
}

/* Into the heap of its bucket, or among those that wait; a key without messages is in neither. */
static void key_link(const sl_group *group, sl_key *key)
{
    const sl_message *const first = sl_lineup_first(&key->queue);

    if (first == NULL)
        return;
    key->linked = !key_waits(group, key, first);
    if (key->linked)
        sl_pairing_insert(&key->bucket->keys, &key->in_bucket);
    else
        sl_list_push_back(&key->bucket->waiting, &key->waiting);
}

static void key_attach(sl_group *group, sl_key *key)
{
    key_link(group, key);
    bucket_attach(group, key->bucket);
}

/* Whether a key waits depends on who owns its bucket. Those that wait have something in flight or, with key_order,
 * something that was delivered and is not settled. */
static void relink_waiting(const sl_group *group, sl_bucket *bucket)
{
    sl_list all;

    sl_list_init(&all);
    sl_list_splice(&all, &bucket->waiting);
    SL_LIST_EACH_SAFE (node, &all) {
        sl_list_remove(node);
        key_link(group, SL_CONTAINER_OF(node, sl_key, waiting));
    }
}

/* --- keys and messages --- */

static sl_key *key_find(const sl_group *group, uint64_t hash, uint64_t seeded)
{
    sl_map_node *node = sl_map_find(&group->keys.map, seeded);

    while (node != NULL && SL_CONTAINER_OF(node, sl_key, by_hash)->hash != hash)
        node = sl_map_next(node);
    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_key, by_hash);
}

static sl_key *key_new(sl_group *group, uint64_t hash, uint64_t seeded)
{
    sl_list *const node = sl_pool_take(&group->free_keys);
    sl_key *key;

    assert(node != NULL); /* there are as many keys as messages */
    key = SL_CONTAINER_OF(node, sl_key, waiting);
    *key = (sl_key){ .hash = hash, .bucket = &group->buckets[seeded % BUCKETS] };
    sl_list_init(&key->waiting);
    sl_lineup_init(&key->queue);
    sl_pool_map_insert(&group->keys, &key->by_hash, seeded);
    return key;
}

void sl_pinned_message_known(sl_group *group, sl_message *message)
{
    const uint64_t seeded = sl_hash(group->seed, &message->key_hash, sizeof message->key_hash);

    message->key = key_find(group, message->key_hash, seeded);
    if (message->key == NULL)
        message->key = key_new(group, message->key_hash, seeded);
    message->key->messages++;
    message->key->delivered += message->counters.deliveries > 0;
}

void sl_pinned_message_settled(sl_group *group, sl_message *message)
{
    sl_key *const key = message->key;

    key_detach(group, key);
    key->messages--;
    key->delivered -= message->counters.deliveries > 0;
    message->key = NULL;
    key_attach(group, key);
    if (key->messages == 0) {
        assert(key->in_flight == 0 && !key->linked);
        sl_map_remove(&group->keys.map, &key->by_hash);
        sl_pool_give(&group->free_keys, &key->waiting);
    }
}

/* Its lease begins next, and that attaches the key again. */
void sl_pinned_first_delivery(sl_message *message)
{
    message->key->delivered++;
}

void sl_pinned_message_ready(sl_group *group, sl_message *message)
{
    key_detach(group, message->key);
    sl_lineup_insert(&message->key->queue, message);
    key_attach(group, message->key);
}

void sl_pinned_message_unready(sl_group *group, sl_message *message)
{
    key_detach(group, message->key);
    sl_lineup_remove(&message->key->queue, message);
    key_attach(group, message->key);
}

void sl_pinned_lease_begun(sl_group *group, sl_message *message, sl_consumer *holder)
{
    sl_key *const key = message->key;

    key_detach(group, key);
    if (key->in_flight++ == 0)
        key->holder = holder->id;
    else if (key->holder != holder->id)
        key->holder = 0; /* several, after a change of strategy: it waits until all are done */
    key->bucket->in_flight++;
    key_attach(group, key);
    update_hungry(group, holder);
}

void sl_pinned_lease_over(sl_group *group, sl_message *message, sl_consumer *holder)
{
    sl_key *const key = message->key;

    key_detach(group, key);
    if (--key->in_flight == 0)
        key->holder = 0;
    key->bucket->in_flight--;
    key_attach(group, key);
    update_hungry(group, holder);
}

/* Leases came to this consumer from a dead call of its session. A key whose live leases are all with it now is
 * its own; one of which somebody else has a lease as well waits for all of them. */
void sl_pinned_leases_moved(sl_group *group, sl_consumer *to)
{
    SL_LIST_EACH (node, &to->held)
        SL_CONTAINER_OF(node, sl_message, held)->key->counted = 0;
    SL_LIST_EACH (node, &to->held)
        SL_CONTAINER_OF(node, sl_message, held)->key->counted++;
    SL_LIST_EACH (node, &to->held) {
        sl_key *const key = SL_CONTAINER_OF(node, sl_message, held)->key;
        key_detach(group, key);
        key->holder = key->counted == key->in_flight ? to->id : 0;
        key_attach(group, key);
    }
}

/* --- buckets and consumers --- */

/* Fewest buckets first; of equals the first to join; cordoned ones after all others. */
static uint64_t fewest_key(const sl_consumer *consumer)
{
    const uint64_t join_order = consumer->id & ((UINT64_C(1) << ID_EPOCH_SHIFT) - 1);

    return (uint64_t)consumer->cordoned << 63 | (uint64_t)consumer->owned_count << ID_EPOCH_SHIFT |
           join_order;
}

static void set_owner(sl_group *group, sl_bucket *bucket, sl_consumer *owner)
{
    sl_consumer *const before = bucket->owner;

    bucket_detach(group, bucket);
    bucket->owner = owner;
    sl_list_remove(&bucket->owned);
    if (before != NULL) {
        before->owned_count--;
        group->buckets_owned--;
        sl_heap_rekey(&group->fewest, &before->fewest, fewest_key(before));
    }
    if (owner != NULL) {
        sl_list_push_back(&owner->owned, &bucket->owned);
        owner->owned_count++;
        group->buckets_owned++;
        sl_heap_rekey(&group->fewest, &owner->fewest, fewest_key(owner));
    }
    relink_waiting(group, bucket);
    bucket_attach(group, bucket);
}

static sl_bucket *least_in_flight(const sl_consumer *consumer)
{
    sl_bucket *least = NULL;

    SL_LIST_EACH (node, &consumer->owned) {
        sl_bucket *const bucket = SL_CONTAINER_OF(node, sl_bucket, owned);
        if (least == NULL || bucket->in_flight < least->in_flight)
            least = bucket;
    }
    return least;
}

/* The newcomer gets what others have above their fair share. Keys in flight stay where they are until they
 * are done, then they follow their bucket. */
static void rebalance(sl_group *group, sl_consumer *newcomer)
{
    const uint32_t share = (group->buckets_owned + group->fewest.count - 1) / group->fewest.count;

    for (int i = 0; i < BUCKETS; i++) {
        sl_consumer *const owner = group->buckets[i].owner;
        while (owner != NULL && owner != newcomer && owner->owned_count > share)
            set_owner(group, least_in_flight(owner), newcomer);
    }
}

void sl_pinned_consumer_in(sl_group *group, sl_consumer *consumer)
{
    sl_pairing_init(&consumer->ready, bucket_before);
    sl_list_init(&consumer->owned);
    consumer->owned_count = 0;
    sl_heap_insert(&group->fewest, &consumer->fewest, fewest_key(consumer));
    if (!consumer->cordoned)
        rebalance(group, consumer);
}

void sl_pinned_consumer_out(sl_group *group, sl_consumer *consumer)
{
    SL_LIST_EACH_SAFE (node, &consumer->owned)
        set_owner(group, SL_CONTAINER_OF(node, sl_bucket, owned), NULL);
    sl_heap_remove(&group->fewest, &consumer->fewest);
    assert(consumer->owned_count == 0 && sl_list_empty(&consumer->ring));
}

void sl_pinned_cordon(sl_group *group, sl_consumer *consumer)
{
    if (consumer->in_strategy)
        sl_heap_rekey(&group->fewest, &consumer->fewest, fewest_key(consumer));
}

static void assign_unowned(sl_group *group)
{
    sl_list *node;

    while ((node = sl_list_first(&group->unowned)) != NULL && group->fewest.count > 0)
        set_owner(group, SL_CONTAINER_OF(node, sl_bucket, unowned),
                  SL_CONTAINER_OF(sl_heap_min(&group->fewest), sl_consumer, fewest));
}

bool sl_pinned_next(sl_group *group, sl_message **ret_message, sl_consumer **ret_consumer)
{
    sl_list *node;

    assign_unowned(group);
    while ((node = sl_list_first(&group->hungry)) != NULL) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, ring);
        sl_message *const message = bucket_first(sl_pairing_min(&consumer->ready));
        if (!key_waits(group, message->key, message)) {
            *ret_message = message;
            *ret_consumer = consumer;
            return true;
        }
        key_detach(group, message->key); /* linked before its bucket had this owner */
        key_attach(group, message->key);
    }
    return false;
}

void sl_pinned_check(const sl_group *group)
{
    uint32_t owned = 0;

    for (int i = 0; i < BUCKETS; i++) {
        const sl_bucket *const bucket = &group->buckets[i];
        owned += bucket->owner != NULL;
        assert(bucket->owner == NULL || bucket->owner->in_strategy);
        assert(bucket->linked == (sl_pairing_min(&bucket->keys) != NULL));
    }
    assert(owned == group->buckets_owned);
    sl_heap_check(&group->fewest);
}

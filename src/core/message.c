/* core/message.c — one message of a group: its place in the indexes, and how it changes hands.
 *
 * Every change goes the same way: out of its index, change lease and counters, emit the record, into the
 * index where it belongs now. So an index can be stale only inside one function of this file. */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

/* How a live lease ended, for the report of a consumer that is stopping. */
typedef enum lease_end {
    END_SETTLED,
    END_RELEASED,
    END_LOST,
} lease_end;

sl_place sl_message_place(const sl_message *message)
{
    return (sl_place){ .lane = (sl_lane)message->lane, .position = message->position };
}

sl_message *sl_message_new(sl_group *group, const sl_offer *offer)
{
    sl_list *const node = sl_pool_take(&group->free_messages);

    if (node == NULL)
        return NULL;
    sl_message *const message = SL_CONTAINER_OF(node, sl_message, line);
    *message = (sl_message){
        .id = offer->id,
        .position = offer->place.position,
        .lane = (uint8_t)offer->place.lane,
        .key_hash = offer->key,
    };
    sl_list_init(&message->line);
    group->message_count++;
    group->place_count++;
    return message;
}

/* --- who may say something about it ---
 *
 * Claims name an id, so a message is found by id and holder together: ids may repeat (publishers choose them), and so
 * only those that one consumer holds at a time stand in a chain. */

uint64_t sl_claim_hash(const sl_group *group, sl_uuid id, uint64_t holder)
{
    uint8_t bytes[sizeof id.bytes + sizeof holder];

    memcpy(bytes, id.bytes, sizeof id.bytes);
    memcpy(bytes + sizeof id.bytes, &holder, sizeof holder);
    return sl_hash(group->seed, bytes, sizeof bytes);
}

static sl_message *claim_from(sl_map_node *node, sl_uuid id, uint64_t holder, uint64_t token)
{
    for (; node != NULL; node = sl_map_next(node)) {
        sl_message *const message = SL_CONTAINER_OF(node, sl_message, by_claim);
        if (sl_uuid_equal(message->id, id) && sl_lease_is(&message->lease, holder, token))
            return message;
    }
    return NULL;
}

sl_message *sl_claim_find(const sl_group *group, sl_uuid id, uint64_t holder, uint64_t token)
{
    return claim_from(sl_map_find(&group->claims.map, sl_claim_hash(group, id, holder)), id, holder, token);
}

sl_message *sl_claim_next(const sl_message *message, uint64_t holder, uint64_t token)
{
    return claim_from(sl_map_next(&message->by_claim), message->id, holder, token);
}

void sl_message_claimable(sl_group *group, sl_message *message)
{
    sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);

    sl_pool_map_insert(&group->claims, &message->by_claim,
                       sl_claim_hash(group, message->id, message->lease.holder));
    if (holder != NULL)
        holder->current++;
}

/* The holder may be gone: an ended lease does not keep it. */
void sl_message_unclaimable(sl_group *group, sl_message *message)
{
    sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);

    if (message->lease.holder == 0)
        return;
    sl_map_remove(&group->claims.map, &message->by_claim);
    if (holder != NULL)
        holder->current--;
}

/* From now on nobody can name it. */
static void unknow(sl_group *group, sl_message *message)
{
    sl_message_unclaimable(group, message);
    sl_lease_drop(&message->lease);
    group->message_count--;
}

void sl_message_free(sl_group *group, sl_message *message)
{
    assert(message->index == SL_INDEX_NOWHERE);
    if (!message->settled)
        unknow(group, message);
    sl_line_remove(&group->lines[message->lane], message);
    sl_pool_give(&group->free_messages, &message->line);
    group->place_count--;
}

static void hold(sl_group *group, sl_message *message)
{
    sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);

    message->index = SL_INDEX_HELD;
    sl_list_push_back(&holder->held, &message->held);
    sl_heap_insert(&group->dues, &message->due, message->lease.until_ns);
    holder->in_flight++;
    group->in_flight++;
    sl_strategy_lease_begun(group, message, holder);
}

static void unhold(sl_group *group, sl_message *message)
{
    sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);

    message->index = SL_INDEX_NOWHERE;
    sl_list_remove(&message->held);
    sl_heap_remove(&group->dues, &message->due);
    holder->in_flight--;
    group->in_flight--;
    sl_strategy_lease_over(group, message, holder);
}

/* The lease rule, as an index: a noticed end is until 0, so what is still set was live when last looked at. */
void sl_message_put(sl_group *group, sl_message *message)
{
    assert(message->index == SL_INDEX_NOWHERE);
    sl_lease_check(&message->lease);
    if (sl_lease_running(&message->lease)) {
        hold(group, message);
    } else if (!message->read) {
        return;
    } else if (!sl_lease_available(&message->lease, message->not_before_ns, group->now_ns)) {
        message->index = SL_INDEX_PAUSED;
        sl_heap_insert(&group->dues, &message->due, message->not_before_ns);
    } else {
        const bool is_new = message->lane == SL_LANE_MAIN && message->counters.deliveries == 0;
        message->index = is_new ? SL_INDEX_FRESH : SL_INDEX_AGAIN;
        group->available++;
        sl_strategy_message_ready(group, message);
    }
}

void sl_message_remove(sl_group *group, sl_message *message)
{
    switch ((sl_index)message->index) {
    case SL_INDEX_NOWHERE: break;
    case SL_INDEX_HELD: unhold(group, message); break;
    case SL_INDEX_PAUSED: sl_heap_remove(&group->dues, &message->due); break;
    case SL_INDEX_FRESH:
    case SL_INDEX_AGAIN:
        sl_strategy_message_unready(group, message);
        group->available--;
        break;
    }
    message->index = SL_INDEX_NOWHERE;
}

/* Counters stay at their end: a record of one that began anew would contradict the one before. */
static void count(uint32_t *counter)
{
    *counter += *counter < UINT32_MAX;
}

static uint64_t lease_until(const sl_group *group)
{
    return sl_add_sat_u64(group->now_ns, group->settings.lease_ns);
}

static void emit_delivery(sl_group *group, const sl_message *message)
{
    const sl_lease *const lease = &message->lease;

    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_LEASE,
                                       .lease = { .place = sl_message_place(message),
                                                  .id = message->id,
                                                  .key = message->key_hash,
                                                  .consumer = lease->holder,
                                                  .token = lease->token,
                                                  .until_ns = lease->until_ns,
                                                  .deliveries = message->counters.deliveries } });
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_DELIVER,
                                       .deliver = { .place = sl_message_place(message),
                                                    .id = message->id,
                                                    .consumer = lease->holder,
                                                    .token = lease->token,
                                                    .lease_ns = lease->until_ns - group->now_ns,
                                                    .counters = message->counters } });
}

void sl_message_deliver(sl_group *group, sl_message *message, sl_consumer *consumer)
{
    const sl_lease lease = { .token = sl_group_number(group, &group->token_next),
                             .holder = consumer->id,
                             .until_ns = lease_until(group) };

    sl_consumer *const before = sl_consumer_find(group, message->lease.holder);

    assert(consumer->state == SL_CONSUMER_ACTIVE);
    message->owes_park = false; /* one more try, since there is no room to park it */
    sl_message_remove(group, message);
    if (message->counters.deliveries == 0)
        sl_strategy_first_delivery(group, message);
    count(&message->counters.deliveries);
    sl_message_unclaimable(group, message);
    sl_lease_take(&message->lease, lease, group->now_ns);
    sl_message_claimable(group, message);
    message->not_before_ns = 0;
    message->started = message->charged = false;
    sl_message_put(group, message);
    consumer->deliveries++;
    group->deliveries++;
    emit_delivery(group, message);
    sl_consumer_lease_over(group, before); /* if this was the last thing that it was remembered for */
}

/* To be called before the message leaves its holder; a lease that had ended was counted then. */
static void note_end(sl_group *group, const sl_message *message, lease_end how)
{
    sl_consumer *holder;

    if (message->index != SL_INDEX_HELD)
        return;
    holder = sl_consumer_find(group, message->lease.holder);
    if (holder->state != SL_CONSUMER_STOPPING)
        return;
    holder->settled += how == END_SETTLED;
    holder->released += how == END_RELEASED;
    holder->interrupted += how == END_RELEASED && message->started;
    holder->lost += how == END_LOST;
}

/* One that was not read again yet keeps its place in the line, so that it is passed over when its turn comes. */
static void forget(sl_group *group, sl_message *message)
{
    sl_message_remove(group, message);
    sl_strategy_message_settled(group, message);
    if (message->read) {
        sl_message_free(group, message);
    } else {
        unknow(group, message);
        message->settled = true;
    }
}

void sl_message_settle(sl_group *group, sl_message *message, sl_settle_cause cause)
{
    const sl_range range = sl_line_settled_around(&group->lines[message->lane], message);

    note_end(group, message, END_SETTLED);
    group->settled++;
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_SETTLE,
                                       .settle = { .place = sl_message_place(message),
                                                   .id = message->id,
                                                   .from = range.from,
                                                   .to = range.to,
                                                   .cause = cause } });
    forget(group, message);
}

static void park(sl_group *group, sl_message *message, sl_park_cause cause, sl_back_cause last)
{
    const sl_range range = sl_line_settled_around(&group->lines[message->lane], message);

    group->parked++;
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_PARK,
                                       .park = { .place = sl_message_place(message),
                                                 .id = message->id,
                                                 .from = range.from,
                                                 .to = range.to,
                                                 .cause = cause,
                                                 .last = last,
                                                 .counters = message->counters } });
    forget(group, message);
}

void sl_message_park(sl_group *group, sl_message *message, sl_park_cause cause)
{
    note_end(group, message, END_SETTLED);
    park(group, message, cause, SL_BACK_NACKED);
}

/* Attempts are limited by the group, so the policy is only asked how long to wait. The randomness of the
 * jitter is a hash of the token: different for each delivery, and the same when a simulation runs again. */
static uint64_t pause_ns(const sl_group *group, const sl_message *message)
{
    const sl_retry_past past = { .attempts = message->counters.attempts };
    const uint64_t random = sl_hash(group->seed, &message->lease.token, sizeof message->lease.token);
    sl_retry_policy policy = group->settings.backoff;

    policy.attempts_max = 0;
    policy.delay_total_max_ns = 0;
    return sl_retry_next(&policy, &past, random).delay_ns;
}

static uint64_t own_pause_ns(const sl_nack *nack)
{
    return sl_min_u64(nack->delay_ns, SL_PAUSE_NS_MAX);
}

static void charge(sl_group *group, sl_message *message, const sl_nack *nack)
{
    const bool own_delay = nack != NULL && nack->has_delay;

    count(&message->counters.attempts);
    message->charged = true;
    message->not_before_ns =
        sl_add_sat_u64(group->now_ns, own_delay ? own_pause_ns(nack) : pause_ns(group, message));
    group->charged++;
}

static bool kills_are_spent(const sl_group *group, const sl_message *message)
{
    return group->settings.kills_max > 0 && message->counters.kills >= group->settings.kills_max;
}

static bool is_spent(const sl_group *group, const sl_message *message)
{
    return kills_are_spent(group, message) || message->counters.attempts >= group->settings.retries_max;
}

static void park_spent(sl_group *group, sl_message *message, sl_back_cause last)
{
    park(group, message, kills_are_spent(group, message) ? SL_PARK_KILLS : SL_PARK_RETRIES, last);
}

/* Settings may have changed meanwhile: then it has another try. */
static void park_if_owed(sl_group *group, sl_message *message)
{
    if (!message->owes_park || message->settled)
        return;
    message->owes_park = false;
    if (is_spent(group, message))
        park_spent(group, message, SL_BACK_COUNT_);
}

void sl_messages_park_owed(sl_group *group)
{
    group->owes_parks = false;
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        SL_LIST_EACH_SAFE (node, &group->lines[lane].messages)
            park_if_owed(group, SL_CONTAINER_OF(node, sl_message, line));
}

static void come_back(sl_group *group, sl_message *message, sl_back_cause cause, bool charged)
{
    sl_message_remove(group, message);
    if (cause == SL_BACK_EXPIRED) {
        sl_lease_end(&message->lease);
    } else {
        sl_message_unclaimable(group, message);
        sl_lease_drop(&message->lease);
    }
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_BACK,
                                       .back = { .place = sl_message_place(message),
                                                 .cause = cause,
                                                 .charged = charged,
                                                 .counters = message->counters,
                                                 .not_before_ns = message->not_before_ns } });
    sl_message_put(group, message);
}

static lease_end end_of(sl_back_cause cause)
{
    switch (cause) {
    case SL_BACK_RELEASED:
    case SL_BACK_INTERRUPTED: return END_RELEASED;
    case SL_BACK_NACKED: return END_SETTLED;
    case SL_BACK_EXPIRED:
    case SL_BACK_LEFT:
    case SL_BACK_DIED:
    case SL_BACK_COUNT_: break;
    }
    return END_LOST;
}

static void give_back(sl_group *group, sl_message *message, sl_back_cause cause, bool charged,
                      const sl_nack *nack)
{
    note_end(group, message, end_of(cause));
    if (message->vanished) {
        sl_message_remove(group, message); /* its end is counted: as what it was, not as settled */
        sl_message_settle(group, message, SL_SETTLE_VANISHED);
        return;
    }
    if (charged && is_spent(group, message)) {
        if (group->hold == SL_HOLD_NOTHING) {
            park_spent(group, message, cause);
            return;
        }
        message->owes_park = group->owes_parks = true;
    }
    if (charged)
        charge(group, message, nack);
    come_back(group, message, cause, charged);
}

/* A session that never says what it started is taken to have started everything. */
static bool counts_as_started(const sl_group *group, const sl_message *message)
{
    return message->started || !sl_consumer_find(group, message->lease.holder)->sends_started;
}

static bool is_charged(const sl_group *group, const sl_message *message, sl_back_cause cause)
{
    switch (cause) {
    case SL_BACK_RELEASED: return false;
    case SL_BACK_INTERRUPTED:
        return group->settings.interrupts_max > 0 &&
               message->counters.interrupts > group->settings.interrupts_max;
    case SL_BACK_NACKED: return true;
    case SL_BACK_EXPIRED:
    case SL_BACK_LEFT:
    case SL_BACK_DIED:
    case SL_BACK_COUNT_: break;
    }
    return counts_as_started(group, message);
}

void sl_message_back(sl_group *group, sl_message *message, sl_back_cause cause)
{
    assert(message->index == SL_INDEX_HELD);
    if (cause == SL_BACK_INTERRUPTED)
        count(&message->counters.interrupts);
    if (cause == SL_BACK_DIED && message->started)
        count(&message->counters.kills);
    give_back(group, message, cause, is_charged(group, message, cause), NULL);
}

/* The lease may have ended, and its end may have been charged: one delivery is never charged twice. */
void sl_message_nack(sl_group *group, sl_message *message, const sl_nack *nack)
{
    if (message->charged && nack->has_delay)
        message->not_before_ns = sl_add_sat_u64(group->now_ns, own_pause_ns(nack));
    give_back(group, message, SL_BACK_NACKED, !message->charged, nack);
}

/* Handing back what was started is an interruption: an outcome of its own, and not the message's fault (B6). */
void sl_message_release(sl_group *group, sl_message *message)
{
    if (message->index == SL_INDEX_HELD)
        sl_message_back(group, message, message->started ? SL_BACK_INTERRUPTED : SL_BACK_RELEASED);
    else
        give_back(group, message, SL_BACK_RELEASED, false, NULL); /* it came back when the lease ended */
}

void sl_message_start(sl_group *group, sl_message *message)
{
    sl_session_starts(group, sl_consumer_find(group, message->lease.holder));
    if (message->started)
        return;
    message->started = true;
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_STARTED,
                                       .started = { .place = sl_message_place(message),
                                                    .token = message->lease.token } });
}

void sl_message_extend(sl_group *group, sl_message *message, uint64_t until_ns)
{
    assert(message->index == SL_INDEX_HELD);
    sl_lease_extend(&message->lease, until_ns);
    sl_heap_rekey(&group->dues, &message->due, until_ns);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_EXTEND,
                                       .extend = { .place = sl_message_place(message),
                                                   .token = message->lease.token,
                                                   .until_ns = until_ns } });
}

void sl_message_due(sl_group *group, sl_message *message)
{
    sl_consumer *holder;

    if (message->index == SL_INDEX_PAUSED) {
        sl_message_remove(group, message);
        sl_message_put(group, message);
        return;
    }
    holder = sl_consumer_find(group, message->lease.holder);
    sl_message_back(group, message, SL_BACK_EXPIRED);
    sl_consumer_lease_over(group, holder);
}

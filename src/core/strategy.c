/* core/strategy.c — who gets the next message: the two ring strategies, and the way to the pinned ones.
 *
 * RoundRobin and DispatchToSingle keep one queue and a ring of the active consumers that have room. A
 * consumer that is full stands in no ring, so the choice is O(1) however many there are; it comes back at the
 * end. Cordoned consumers have a ring of their own, which is looked at when the first is empty (B11).
 *
 * in_strategy says whether a consumer takes part at all. It is set and cleared at one place each, so that a
 * consumer that is stopped and then leaves is taken out once (S1.10). */
#include "core/group_private.h"

#include <assert.h>

static bool is_pinned(const sl_group *group)
{
    return sl_strategy_is_pinned(group->settings.strategy);
}

void sl_strategy_init(sl_group *group)
{
    sl_lineup_init(&group->queue);
    sl_list_init(&group->ring);
    sl_list_init(&group->ring_cordoned);
    if (group->limits.keyed)
        sl_pinned_init(group);
}

void sl_strategy_message_known(sl_group *group, sl_message *message)
{
    if (is_pinned(group))
        sl_pinned_message_known(group, message);
}

void sl_strategy_message_settled(sl_group *group, sl_message *message)
{
    if (is_pinned(group))
        sl_pinned_message_settled(group, message);
}

void sl_strategy_first_delivery(sl_group *group, sl_message *message)
{
    if (is_pinned(group))
        sl_pinned_first_delivery(message);
}

void sl_strategy_message_ready(sl_group *group, sl_message *message)
{
    if (is_pinned(group))
        sl_pinned_message_ready(group, message);
    else
        sl_lineup_insert(&group->queue, message);
}

void sl_strategy_message_unready(sl_group *group, sl_message *message)
{
    if (is_pinned(group))
        sl_pinned_message_unready(group, message);
    else
        sl_lineup_remove(&group->queue, message);
}

static void ring_leave(sl_consumer *consumer)
{
    sl_list_remove(&consumer->ring);
}

static void ring_join(sl_group *group, sl_consumer *consumer)
{
    if (consumer->in_strategy && sl_list_empty(&consumer->ring) && sl_consumer_has_room(consumer))
        sl_list_push_back(consumer->cordoned ? &group->ring_cordoned : &group->ring, &consumer->ring);
}

void sl_strategy_lease_begun(sl_group *group, sl_message *message, sl_consumer *holder)
{
    switch (group->settings.strategy) {
    case SL_STRATEGY_PINNED:
    case SL_STRATEGY_PINNED_BY_CORRELATION: sl_pinned_lease_begun(group, message, holder); return;
    case SL_STRATEGY_DISPATCH_TO_SINGLE:
        if (sl_consumer_has_room(holder))
            return; /* it stays in front */
        break;
    case SL_STRATEGY_ROUND_ROBIN:
    case SL_STRATEGY_COUNT_: break;
    }
    ring_leave(holder);
    ring_join(group, holder);
}

void sl_strategy_lease_over(sl_group *group, sl_message *message, sl_consumer *holder)
{
    if (is_pinned(group))
        sl_pinned_lease_over(group, message, holder);
    else
        ring_join(group, holder);
}

void sl_strategy_leases_moved(sl_group *group, sl_consumer *to)
{
    if (is_pinned(group))
        sl_pinned_leases_moved(group, to);
}

void sl_strategy_consumer_in(sl_group *group, sl_consumer *consumer)
{
    assert(!consumer->in_strategy);
    consumer->in_strategy = true;
    if (is_pinned(group))
        sl_pinned_consumer_in(group, consumer);
    else
        ring_join(group, consumer);
}

void sl_strategy_consumer_out(sl_group *group, sl_consumer *consumer)
{
    if (!consumer->in_strategy)
        return;
    if (is_pinned(group))
        sl_pinned_consumer_out(group, consumer);
    else
        ring_leave(consumer);
    consumer->in_strategy = false;
}

void sl_strategy_cordon(sl_group *group, sl_consumer *consumer, bool cordoned)
{
    consumer->cordoned = cordoned;
    if (is_pinned(group)) {
        sl_pinned_cordon(group, consumer);
    } else {
        ring_leave(consumer);
        ring_join(group, consumer);
    }
}

bool sl_strategy_next(sl_group *group, sl_message **ret_message, sl_consumer **ret_consumer)
{
    const sl_list *const ring = sl_list_empty(&group->ring) ? &group->ring_cordoned : &group->ring;
    sl_message *message;

    if (is_pinned(group))
        return sl_pinned_next(group, ret_message, ret_consumer);
    message = sl_lineup_first(&group->queue);
    if (message == NULL || sl_list_empty(ring))
        return false;
    *ret_message = message;
    *ret_consumer = SL_CONTAINER_OF(sl_list_first(ring), sl_consumer, ring);
    return true;
}

/* --- a change of the strategy itself --- */

static void each_message(sl_group *group, void (*visit)(sl_group *, sl_message *))
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        SL_LIST_EACH (node, &group->lines[lane].messages) {
            sl_message *const message = SL_CONTAINER_OF(node, sl_message, line);
            if (!message->settled)
                visit(group, message);
        }
}

static bool is_queued(const sl_message *message)
{
    return message->index == SL_INDEX_FRESH || message->index == SL_INDEX_AGAIN;
}

static void take_out(sl_group *group, sl_message *message)
{
    if (is_queued(message))
        sl_strategy_message_unready(group, message);
    if (message->index == SL_INDEX_HELD)
        sl_strategy_lease_over(group, message, sl_consumer_find(group, message->lease.holder));
    sl_strategy_message_settled(group, message);
}

static void put_in(sl_group *group, sl_message *message)
{
    sl_strategy_message_known(group, message);
    if (message->index == SL_INDEX_HELD)
        sl_strategy_lease_begun(group, message, sl_consumer_find(group, message->lease.holder));
    if (is_queued(message))
        sl_strategy_message_ready(group, message);
}

static void rebuild(sl_group *group, const sl_settings *settings)
{
    SL_LIST_EACH (node, &group->consumers)
        sl_strategy_consumer_out(group, SL_CONTAINER_OF(node, sl_consumer, all));
    each_message(group, take_out);
    group->settings = *settings;
    each_message(group, put_in);
    SL_LIST_EACH (node, &group->consumers) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, all);
        if (consumer->state == SL_CONSUMER_ACTIVE)
            sl_strategy_consumer_in(group, consumer);
    }
}

/* Between the two ring strategies only the rule changes, the ring stays. */
void sl_strategy_change(sl_group *group, const sl_settings *settings)
{
    const bool both_rings = !is_pinned(group) && !sl_strategy_is_pinned(settings->strategy);
    const bool same =
        settings->strategy == group->settings.strategy && settings->key_order == group->settings.key_order;

    if (both_rings || same)
        group->settings = *settings;
    else
        rebuild(group, settings);
}

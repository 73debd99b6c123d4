/* core/inspect.c — looking at a group from outside, and checking it from inside. */
#include "core/group_private.h"

#include <assert.h>

static void describe(const sl_consumer *consumer, sl_consumer_info *ret_info)
{
    *ret_info = (sl_consumer_info){ .consumer = consumer->id,
                                    .session = consumer->session,
                                    .state = consumer->state,
                                    .asked_by = consumer->asked_by,
                                    .since_ns = consumer->since_ns,
                                    .window = consumer->window,
                                    .in_flight = consumer->in_flight,
                                    .deliveries = consumer->deliveries,
                                    .settled = consumer->settled,
                                    .released = consumer->released,
                                    .lost = consumer->lost,
                                    .interrupted = consumer->interrupted,
                                    .cordoned = consumer->cordoned,
                                    .sends_started = consumer->sends_started };
}

sl_err sl_group_consumer(const sl_group *group, uint64_t consumer_id, sl_consumer_info *ret_info)
{
    const sl_consumer *const consumer = sl_consumer_find(group, consumer_id);

    if (consumer == NULL)
        return SL_ERR_NO_CONSUMER;
    describe(consumer, ret_info);
    return SL_OK;
}

void sl_group_consumers(const sl_group *group, sl_consumer_fn *fn, void *ctx)
{
    SL_LIST_EACH (node, &group->consumers) {
        sl_consumer_info info;
        describe(SL_CONTAINER_OF(node, const sl_consumer, all), &info);
        fn(ctx, &info);
    }
}

sl_err sl_group_held(const sl_group *group, uint64_t consumer_id, sl_held_fn *fn, void *ctx)
{
    const sl_consumer *const consumer = sl_consumer_find(group, consumer_id);

    if (consumer == NULL)
        return SL_ERR_NO_CONSUMER;
    SL_LIST_EACH (node, &consumer->held) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, held);
        fn(ctx, &(sl_held){ .place = sl_message_place(message),
                            .id = message->id,
                            .token = message->lease.token,
                            .until_ns = message->lease.until_ns,
                            .started = message->started });
    }
    return SL_OK;
}

void sl_group_info_get(const sl_group *group, sl_group_info *ret_info)
{
    *ret_info = (sl_group_info){ .messages = group->message_count,
                                 .in_flight = group->in_flight,
                                 .available = group->available,
                                 .waiting = group->message_count - group->in_flight - group->available,
                                 .epoch = group->epoch,
                                 .deliveries = group->deliveries,
                                 .settled = group->settled,
                                 .parked = group->parked,
                                 .lost = group->lost,
                                 .charged = group->charged,
                                 .rules = group->rule_count };
    for (uint32_t i = 0; i < group->rule_count; i++)
        ret_info->everyone_stopped |= group->rules[i] == SL_TAG_EVERYONE;
    for (int state = 0; state < SL_CONSUMER_STATE_COUNT_; state++)
        ret_info->consumers[state] = group->state_counts[state];
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        ret_info->checkpoint[lane] = sl_line_below(&group->lines[lane]);
}

const sl_settings *sl_group_settings(const sl_group *group)
{
    return &group->settings;
}

/* --- the checker --- */

/* The index is what the lease rule says; between calls nothing is overdue. */
static void check_message(const sl_group *group, const sl_message *message)
{
    const bool queued = message->index == SL_INDEX_FRESH || message->index == SL_INDEX_AGAIN;

    sl_lease_check(&message->lease);
    assert((message->index == SL_INDEX_HELD) == sl_lease_live(&message->lease, group->now_ns));
    assert((message->index == SL_INDEX_HELD || message->index == SL_INDEX_PAUSED) ==
           sl_heap_has(&message->due));
    assert(!queued || sl_lease_available(&message->lease, message->not_before_ns, group->now_ns));
    assert(message->index != SL_INDEX_PAUSED || message->not_before_ns > group->now_ns);
    assert(message->index != SL_INDEX_FRESH || message->counters.deliveries == 0);
    assert(message->read || message->index == SL_INDEX_HELD || message->index == SL_INDEX_NOWHERE);
    assert((message->key != NULL) == sl_strategy_is_pinned(group->settings.strategy));
}

static uint32_t check_line(const sl_group *group, const sl_line *line, uint32_t *places)
{
    const sl_message *before = NULL;
    uint32_t count = 0;
    bool unread = false;

    SL_LIST_EACH (node, &line->messages) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, line);
        unread = unread || node == line->unread;
        assert(before == NULL || before->position < message->position);
        assert(unread == !message->read);
        assert(unread == (message->position >= line->read_from));
        before = message;
        *places += 1;
        if (message->settled) {
            assert(unread && message->index == SL_INDEX_NOWHERE);
            continue;
        }
        check_message(group, message);
        count++;
    }
    sl_ranges_check(&line->settled);
    return count;
}

static void check_consumer(const sl_group *group, const sl_consumer *consumer)
{
    uint32_t held = 0;

    SL_LIST_EACH (node, &consumer->held) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, held);
        assert(message->index == SL_INDEX_HELD && message->lease.holder == consumer->id);
        held++;
    }
    assert(held == consumer->in_flight && held <= consumer->current);
    assert(consumer->in_strategy == (consumer->state == SL_CONSUMER_ACTIVE));
    assert(consumer->in_strategy || sl_list_empty(&consumer->ring));
    assert(consumer->state != SL_CONSUMER_DRAINED || consumer->in_flight == 0);
    assert(consumer->state != SL_CONSUMER_STOPPING || consumer->in_flight > 0);
    assert(sl_consumer_find(group, consumer->id) == consumer);
}

void sl_group_check(const sl_group *group)
{
    uint32_t messages = 0, in_flight = 0, consumers = 0, places = 0;

    assert(group->open && !group->busy);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        messages += check_line(group, &group->lines[lane], &places);
    SL_LIST_EACH (node, &group->consumers) {
        const sl_consumer *const consumer = SL_CONTAINER_OF(node, const sl_consumer, all);
        check_consumer(group, consumer);
        in_flight += consumer->in_flight;
        consumers++;
    }
    assert(messages == group->message_count);
    assert(places == group->place_count && places <= group->limits.messages_max);
    assert(in_flight == group->in_flight);
    assert(consumers == group->consumers_by_id.map.count && consumers == group->sessions.map.count);
    sl_heap_check(&group->dues);
    sl_heap_check(&group->windows);
    if (group->limits.keyed)
        sl_pinned_check(group);
}

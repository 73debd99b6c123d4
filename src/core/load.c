/* core/load.c — a group from its records, and records from a group.
 *
 * Loading applies records to bare facts: which positions are settled (ranges), which messages are known and
 * unsettled, which consumers exist. Nothing is indexed and nothing is due until sl_group_open() puts
 * everything in its place, exactly as if it had just happened. While loading, messages are found by their
 * place, because that is what records name; opening files them by id.
 *
 * Records come from a disk: each that does not fit to those before it is SL_ERR_CORRUPT, never an assertion. */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>

static uint64_t place_hash(const sl_group *group, sl_place place)
{
    const uint64_t words[] = { place.position, (uint64_t)place.lane };

    return sl_hash(group->seed, words, sizeof words);
}

static sl_message *find_at(const sl_group *group, sl_place place)
{
    for (sl_map_node *node = sl_map_find(&group->claims.map, place_hash(group, place)); node != NULL;
         node = sl_map_next(node)) {
        sl_message *const message = SL_CONTAINER_OF(node, sl_message, by_claim);
        if (message->lane == place.lane && message->position == place.position)
            return message;
    }
    return NULL;
}

/* Tokens and consumer ids begin with the epoch that gave them, so none can be of a later one than the last. */
static bool was_given(const sl_group *group, uint64_t id)
{
    return id >> ID_EPOCH_SHIFT <= group->epoch;
}

/* --- consumers and leases --- */

/* While loading, in_flight counts leases that records say are live; opening counts them again as they are
 * put. */
static void let_go(sl_group *group, const sl_message *message)
{
    sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);

    if (sl_lease_running(&message->lease) && holder != NULL)
        holder->in_flight--;
}

static sl_err lease_to(sl_group *group, sl_message *message, sl_lease lease)
{
    sl_consumer *const holder = sl_consumer_find(group, lease.holder);

    if (!was_given(group, lease.token) || (sl_lease_running(&lease) && holder == NULL))
        return SL_ERR_CORRUPT;
    if ((lease.token == 0) != (lease.holder == 0) || (lease.holder == 0 && lease.until_ns != 0))
        return SL_ERR_CORRUPT;
    let_go(group, message);
    message->lease = lease;
    if (sl_lease_running(&lease))
        holder->in_flight++;
    return SL_OK;
}

static sl_err load_epoch(sl_group *group, const sl_effect *record)
{
    if (record->epoch.epoch < group->epoch || record->epoch.epoch >= EPOCH_MAX)
        return SL_ERR_CORRUPT;
    if (record->epoch.messages_max > group->limits.messages_max)
        return SL_ERR_FULL;
    group->epoch = group->epoch_reserved = record->epoch.epoch;
    return SL_OK;
}

static sl_err load_settings(sl_group *group, const sl_effect *record)
{
    const char *field;

    if (sl_settings_validate(&record->settings, &field) != SL_OK)
        return SL_ERR_CORRUPT;
    if (sl_strategy_is_pinned(record->settings.strategy) && !group->limits.keyed)
        return SL_ERR_FULL;
    group->settings = record->settings;
    return SL_OK;
}

static sl_err load_rule(sl_group *group, const sl_effect *record)
{
    uint32_t i = 0;

    while (i < group->rule_count && group->rules[i] != record->rule.tag)
        i++;
    if (record->rule.stop && i == SL_RULES_MAX)
        return SL_ERR_CORRUPT;
    if (!record->rule.stop && i == group->rule_count)
        return SL_ERR_CORRUPT;
    if (!record->rule.stop)
        group->rules[i] = group->rules[--group->rule_count];
    else if (i == group->rule_count)
        group->rules[group->rule_count++] = record->rule.tag;
    return SL_OK;
}

/* JOIN a second time: its session will say what it starts. */
static sl_err load_promise(sl_group *group, const sl_consumer *consumer, const sl_effect *record)
{
    if (!record->join.sends_started || !sl_uuid_equal(consumer->session, record->join.session))
        return SL_ERR_CORRUPT;
    sl_session_starts(group, consumer);
    return SL_OK;
}

static sl_err load_join(sl_group *group, const sl_effect *record)
{
    sl_consumer *consumer;

    if (record->join.consumer == 0 || !was_given(group, record->join.consumer))
        return SL_ERR_CORRUPT;
    consumer = sl_consumer_find(group, record->join.consumer);
    if (consumer != NULL)
        return load_promise(group, consumer, record);
    consumer = sl_consumer_new(group, record->join.consumer, record->join.session);
    if (consumer == NULL)
        return SL_ERR_FULL;
    sl_consumer_set_state(group, consumer, SL_CONSUMER_AWAY);
    if (record->join.sends_started)
        sl_session_starts(group, consumer);
    return SL_OK;
}

static sl_err load_gone(sl_group *group, const sl_effect *record)
{
    sl_consumer *const consumer = sl_consumer_find(group, record->gone.consumer);

    if (consumer == NULL || consumer->in_flight != 0)
        return SL_ERR_CORRUPT;
    sl_consumer_forget(group, consumer);
    return SL_OK;
}

/* --- messages --- */

static sl_err know(sl_group *group, const sl_offer *offer, sl_message **ret_message)
{
    sl_line *line;
    sl_message *message;

    if (!place_is_valid(offer->place))
        return SL_ERR_CORRUPT;
    line = &group->lines[offer->place.lane];
    if (sl_ranges_has(&line->settled, offer->place.position))
        return SL_ERR_CORRUPT; /* what is settled is never given out again */
    message = find_at(group, offer->place);
    if (message == NULL) {
        message = sl_message_new(group, offer);
        if (message == NULL)
            return SL_ERR_FULL;
        sl_list_push_back(&line->messages, &message->line);
        sl_pool_map_insert(&group->claims, &message->by_claim, place_hash(group, offer->place));
    }
    if (!sl_uuid_equal(message->id, offer->id) || message->key_hash != offer->key)
        return SL_ERR_CORRUPT; /* what stands at a place does not change */
    *ret_message = message;
    return SL_OK;
}

static sl_err load_lease(sl_group *group, const sl_effect *record)
{
    const sl_offer offer = { record->lease.place, record->lease.id, record->lease.key };
    const sl_lease lease = { record->lease.token, record->lease.consumer, record->lease.until_ns };
    sl_message *message;
    sl_err err;

    if (lease.token == 0 || lease.until_ns == 0 || record->lease.deliveries == 0)
        return SL_ERR_CORRUPT;
    err = know(group, &offer, &message);
    if (err != SL_OK)
        return err;
    if (sl_lease_running(&message->lease) || lease.token <= message->lease.token)
        return SL_ERR_CORRUPT; /* the one before ended with a record of its own */
    err = lease_to(group, message, lease);
    message->started = message->charged = false;
    message->not_before_ns = 0;
    message->counters.deliveries = record->lease.deliveries;
    return err;
}

static sl_err load_message(sl_group *group, const sl_effect *record)
{
    const sl_offer offer = { record->message.place, record->message.id, record->message.key };
    const sl_lease lease = { record->message.token, record->message.consumer,
                             record->message.ended ? 0 : record->message.until_ns };
    sl_message *message;
    sl_err err = record->message.counters.deliveries == 0 ? SL_ERR_CORRUPT : know(group, &offer, &message);

    if (err != SL_OK)
        return err;
    message->counters = record->message.counters;
    message->not_before_ns = record->message.not_before_ns;
    message->started = record->message.started;
    message->charged = record->message.charged;
    return lease_to(group, message, lease);
}

/* The message that a record about a running lease names, or NULL when there is no such lease. */
static sl_message *leased_at(const sl_group *group, sl_place place, uint64_t token)
{
    sl_message *const message = place_is_valid(place) ? find_at(group, place) : NULL;

    return message == NULL || token == 0 || message->lease.token != token ? NULL : message;
}

static sl_err load_started(sl_group *group, const sl_effect *record)
{
    sl_message *const message = leased_at(group, record->started.place, record->started.token);

    if (message == NULL || !sl_lease_running(&message->lease))
        return SL_ERR_CORRUPT;
    message->started = true;
    sl_session_starts(group, sl_consumer_find(group, message->lease.holder));
    return SL_OK;
}

static sl_err load_extend(sl_group *group, const sl_effect *record)
{
    sl_message *const message = leased_at(group, record->extend.place, record->extend.token);

    if (message == NULL || !sl_lease_running(&message->lease) || record->extend.until_ns == 0)
        return SL_ERR_CORRUPT;
    sl_lease_extend(&message->lease, record->extend.until_ns);
    return SL_OK;
}

static sl_err load_move(sl_group *group, const sl_effect *record)
{
    sl_message *const message = leased_at(group, record->move.place, record->move.token);
    const sl_consumer *const to = sl_consumer_find(group, record->move.consumer);
    const sl_consumer *from;
    sl_lease lease;

    if (message == NULL || to == NULL)
        return SL_ERR_CORRUPT;
    from = sl_consumer_find(group, message->lease.holder);
    if (from == NULL || !sl_uuid_equal(from->session, to->session))
        return SL_ERR_CORRUPT;
    lease = message->lease;
    lease.holder = record->move.consumer;
    return lease_to(group, message, lease);
}

static sl_err load_back(sl_group *group, const sl_effect *record)
{
    sl_message *const message =
        place_is_valid(record->back.place) ? find_at(group, record->back.place) : NULL;

    if (message == NULL || message->lease.token == 0)
        return SL_ERR_CORRUPT;
    let_go(group, message);
    sl_lease_end(&message->lease);
    if (record->back.cause != SL_BACK_EXPIRED)
        sl_lease_drop(&message->lease);
    message->counters = record->back.counters;
    message->not_before_ns = record->back.not_before_ns;
    message->charged = message->charged || record->back.charged;
    return SL_OK;
}

/* --- what is settled --- */

static sl_err load_range(sl_group *group, sl_lane lane, uint64_t from, uint64_t to)
{
    if ((unsigned)lane >= SL_LANE_COUNT_ || from > to)
        return SL_ERR_CORRUPT;
    return sl_ranges_add(&group->lines[lane].settled, from, to);
}

static sl_err load_settled(sl_group *group, sl_place place, sl_range range)
{
    sl_message *message;

    if (!place_is_valid(place) || place.position < range.from || place.position >= range.to)
        return SL_ERR_CORRUPT;
    message = find_at(group, place);
    if (message != NULL) {
        let_go(group, message);
        sl_map_remove(&group->claims.map, &message->by_claim);
        sl_lease_drop(&message->lease);
        sl_message_free(group, message);
    }
    return load_range(group, place.lane, range.from, range.to);
}

sl_err sl_group_replay(sl_group *group, const sl_effect *record)
{
    assert(!group->open);
    switch (record->kind) {
    case SL_EFFECT_EPOCH: return load_epoch(group, record);
    case SL_EFFECT_SETTINGS: return load_settings(group, record);
    case SL_EFFECT_RULE: return load_rule(group, record);
    case SL_EFFECT_JOIN: return load_join(group, record);
    case SL_EFFECT_GONE: return load_gone(group, record);
    case SL_EFFECT_LEASE: return load_lease(group, record);
    case SL_EFFECT_STARTED: return load_started(group, record);
    case SL_EFFECT_EXTEND: return load_extend(group, record);
    case SL_EFFECT_MOVE: return load_move(group, record);
    case SL_EFFECT_BACK: return load_back(group, record);
    case SL_EFFECT_SETTLE:
        return load_settled(group, record->settle.place,
                            (sl_range){ record->settle.from, record->settle.to });
    case SL_EFFECT_PARK:
        return load_settled(group, record->park.place, (sl_range){ record->park.from, record->park.to });
    case SL_EFFECT_CHECKPOINT: return load_range(group, record->checkpoint.lane, 0, record->checkpoint.below);
    case SL_EFFECT_PASSED:
        return load_range(group, record->passed.lane, record->passed.from, record->passed.to);
    case SL_EFFECT_MESSAGE: return load_message(group, record);
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: break;
    }
    return SL_ERR_CORRUPT;
}

/* --- open --- */

/* Files a message by id and puts it where it belongs. A clock that was wrong when the lease was given must
 * not hold the message for ever. */
static void put_in_place(sl_group *group, sl_message *message)
{
    sl_map_remove(&group->claims.map, &message->by_claim);
    if (message->lease.holder != 0)
        sl_message_claimable(group, message);
    message->lease.until_ns =
        sl_min_u64(message->lease.until_ns, sl_add_sat_u64(group->now_ns, SL_LEASE_NS_MAX));
    message->not_before_ns =
        sl_min_u64(message->not_before_ns, sl_add_sat_u64(group->now_ns, SL_PAUSE_NS_MAX));
    sl_strategy_message_known(group, message);
    sl_message_put(group, message);
}

static void open_line(sl_group *group, sl_line *line)
{
    line->read_from = sl_ranges_skip(&line->settled, line->read_from);
    sl_ranges_drop_below(&line->settled, line->read_from);
    sl_line_sort(line);
    SL_LIST_EACH (node, &line->messages)
        put_in_place(group, SL_CONTAINER_OF(node, sl_message, line));
    line->checkpoint = sl_line_below(line);
    line->checkpoint_at_ns = group->now_ns;
}

/* A range may only cover what was settled by name, or what the group never told of. */
static bool is_consistent(const sl_line *line)
{
    SL_LIST_EACH (node, &line->messages) {
        const uint64_t position = SL_CONTAINER_OF(node, const sl_message, line)->position;
        if (position < line->read_from || sl_ranges_has(&line->settled, position))
            return false;
    }
    return true;
}

sl_err sl_group_open(sl_group *group, uint64_t now_ns)
{
    assert(!group->open);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        if (!is_consistent(&group->lines[lane]))
            return SL_ERR_CORRUPT;
    group->now_ns = now_ns;
    group->open = true;
    SL_LIST_EACH (node, &group->consumers) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, all);
        consumer->in_flight = consumer->current = 0;
        consumer->since_ns = now_ns;
    }
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        open_line(group, &group->lines[lane]);
    sl_group_begin_epoch(group);
    SL_LIST_EACH_SAFE (node, &group->consumers)
        sl_consumer_lease_over(group, SL_CONTAINER_OF(node, sl_consumer, all));
    sl_group_enter(group, now_ns);
    sl_group_exit(group);
    return SL_OK;
}

/* --- snapshot --- */

static void write(sl_sink sink, const sl_effect *record)
{
    sink.emit(sink.ctx, record);
}

/* Ranges on their way out, in ascending order; those that touch become one, so that the same set always gives the same
 * records. */
typedef struct range_writer {
    sl_sink sink;
    sl_lane lane;
    sl_range pending;
} range_writer;

static void write_pending(range_writer *writer)
{
    const sl_range range = writer->pending;

    if (range.from < range.to)
        write(writer->sink,
              &(sl_effect){ .kind = SL_EFFECT_PASSED,
                            .passed = { .lane = writer->lane, .from = range.from, .to = range.to } });
}

static void write_range(range_writer *writer, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (writer->pending.to != from) {
        write_pending(writer);
        writer->pending.from = from;
    }
    writer->pending.to = to;
}

/* What records said about positions that were not read again, and what was settled there since. */
static void write_unread(range_writer *writer, const sl_line *line)
{
    const sl_list *node = line->unread;
    uint32_t i = 0;

    while (i < line->settled.count || node != &line->messages) {
        const sl_message *const message =
            node == &line->messages ? NULL : SL_CONTAINER_OF(node, const sl_message, line);
        if (message == NULL || (i < line->settled.count && line->settled.items[i].from < message->position)) {
            write_range(writer, line->settled.items[i].from, line->settled.items[i].to);
            i++;
        } else {
            if (message->settled)
                write_range(writer, message->position, message->position + 1);
            node = node->next;
        }
    }
}

/* Below the first unsettled message, between those that were read, and beyond. */
static void write_settled(sl_sink sink, const sl_line *line, sl_lane lane)
{
    range_writer writer = { .sink = sink, .lane = lane };
    uint64_t from = sl_line_below(line);

    write(sink, &(sl_effect){ .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { .lane = lane, .below = from } });
    for (const sl_list *node = line->messages.next; node != line->unread; node = node->next) {
        const uint64_t position = SL_CONTAINER_OF(node, const sl_message, line)->position;
        write_range(&writer, from, position);
        from = position + 1;
    }
    write_range(&writer, from, line->read_from);
    write_unread(&writer, line);
    write_pending(&writer);
}

static void write_message(sl_sink sink, const sl_message *message)
{
    const sl_lease *const lease = &message->lease;

    write(sink, &(sl_effect){ .kind = SL_EFFECT_MESSAGE,
                              .message = { .place = sl_message_place(message),
                                           .id = message->id,
                                           .key = message->key_hash,
                                           .consumer = lease->holder,
                                           .token = lease->token,
                                           .until_ns = lease->until_ns,
                                           .counters = message->counters,
                                           .not_before_ns = message->not_before_ns,
                                           .started = message->started,
                                           .charged = message->charged,
                                           .ended = lease->holder != 0 && lease->until_ns == 0 } });
}

static void write_consumers(const sl_group *group, sl_sink sink)
{
    SL_LIST_EACH (node, &group->consumers) {
        const sl_consumer *const consumer = SL_CONTAINER_OF(node, const sl_consumer, all);
        write(sink, &(sl_effect){ .kind = SL_EFFECT_JOIN,
                                  .join = { .consumer = consumer->id,
                                            .session = consumer->session,
                                            .sends_started = consumer->sends_started } });
    }
}

/* A message that was never given out needs no record: it is in no range, so it is read again as new. */
static void write_line(sl_sink sink, const sl_line *line, sl_lane lane)
{
    write_settled(sink, line, lane);
    SL_LIST_EACH (node, &line->messages) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, line);
        if (message->counters.deliveries > 0 && !message->settled)
            write_message(sink, message);
    }
}

void sl_group_snapshot(const sl_group *group, sl_sink sink)
{
    assert(group->open && !group->busy);
    write(sink, &(sl_effect){ .kind = SL_EFFECT_EPOCH,
                              .epoch = { .epoch = group->epoch_reserved,
                                         .messages_max = group->limits.messages_max } });
    write(sink, &(sl_effect){ .kind = SL_EFFECT_SETTINGS, .settings = group->settings });
    for (uint32_t i = 0; i < group->rule_count; i++)
        write(sink, &(sl_effect){ .kind = SL_EFFECT_RULE, .rule = { .tag = group->rules[i], .stop = true } });
    write_consumers(group, sink);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        write_line(sink, &group->lines[lane], (sl_lane)lane);
}

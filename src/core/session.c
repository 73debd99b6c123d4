/* core/session.c — consumers: how they come, stop, and go.
 *
 * A consumer is one call. A session is who is behind it, over several calls: leases belong to it, so that a
 * broken connection is not yet a dead worker. The ways a call can end differ in what happens to its leases
 * (docs/DELIVERY.md, Consumers); all of them end in sl_consumer_gone(). */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

/* --- finding, making, forgetting --- */

uint64_t sl_session_hash(const sl_group *group, sl_uuid session)
{
    return sl_hash(group->seed, session.bytes, sizeof session.bytes);
}

/* Ids are given by us, in sequence: they need no seed, and the low bits spread well. */
sl_consumer *sl_consumer_find(const sl_group *group, uint64_t id)
{
    sl_map_node *node = sl_map_find(&group->consumers_by_id, id);

    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_consumer, by_id);
}

/* One that has a call: those that are away cannot say anything. */
static sl_consumer *find_live(const sl_group *group, uint64_t id)
{
    sl_consumer *const consumer = sl_consumer_find(group, id);

    return consumer == NULL || consumer->state == SL_CONSUMER_AWAY ? NULL : consumer;
}

sl_consumer *sl_consumer_new(sl_group *group, uint64_t id, sl_uuid session)
{
    sl_list *const node = sl_list_first(&group->free_consumers);
    sl_consumer *consumer;

    if (node == NULL)
        return NULL;
    sl_list_remove(node);
    consumer = SL_CONTAINER_OF(node, sl_consumer, all);
    *consumer = (sl_consumer){ .id = id, .session = session, .since_ns = group->now_ns };
    sl_list_init(&consumer->held);
    sl_list_init(&consumer->ring);
    sl_list_push_back(&group->consumers, &consumer->all);
    sl_map_insert(&group->consumers_by_id, &consumer->by_id, id);
    sl_map_insert(&group->sessions, &consumer->by_session, sl_session_hash(group, session));
    group->state_counts[consumer->state]++;
    return consumer;
}

void sl_consumer_set_state(sl_group *group, sl_consumer *consumer, sl_consumer_state state)
{
    group->state_counts[consumer->state]--;
    group->state_counts[state]++;
    consumer->state = state;
    consumer->since_ns = group->now_ns;
}

void sl_consumer_forget(sl_group *group, sl_consumer *consumer)
{
    assert(consumer->in_flight == 0 && sl_list_empty(&consumer->held));
    sl_strategy_consumer_out(group, consumer);
    if (sl_heap_has(&consumer->window_end))
        sl_heap_remove(&group->windows, &consumer->window_end);
    group->state_counts[consumer->state]--;
    sl_map_remove(&group->consumers_by_id, &consumer->by_id);
    sl_map_remove(&group->sessions, &consumer->by_session);
    sl_list_remove(&consumer->all);
    sl_list_push_back(&group->free_consumers, &consumer->all);
}

void sl_consumer_gone(sl_group *group, sl_consumer *consumer)
{
    sl_consumer_forget(group, consumer);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_GONE, .gone = { .consumer = consumer->id } });
}

static void drained(sl_group *group, sl_consumer *consumer)
{
    sl_consumer_set_state(group, consumer, SL_CONSUMER_DRAINED);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_DRAINED,
                                       .drained = { .consumer = consumer->id,
                                                    .settled = consumer->settled,
                                                    .released = consumer->released,
                                                    .lost = consumer->lost } });
}

void sl_consumer_lease_over(sl_group *group, sl_consumer *consumer)
{
    if (consumer == NULL || consumer->in_flight > 0)
        return;
    if (consumer->state == SL_CONSUMER_STOPPING)
        drained(group, consumer);
    else if (consumer->state == SL_CONSUMER_AWAY)
        sl_consumer_gone(group, consumer);
}

/* Gives back what a consumer holds: everything, or only what was not marked as started. */
static void hand_back(sl_group *group, sl_consumer *consumer, sl_back_cause cause, bool also_started)
{
    SL_LIST_EACH_SAFE (node, &consumer->held) {
        sl_message *const message = SL_CONTAINER_OF(node, sl_message, held);
        if (also_started || !message->started)
            sl_message_back(group, message, cause);
    }
}

/* --- stop --- */

static bool has_tag(const sl_consumer *consumer, uint64_t tag)
{
    for (uint32_t i = 0; i < consumer->tag_count; i++)
        if (consumer->tags[i] == tag)
            return true;
    return tag == SL_TAG_EVERYONE;
}

static bool is_under_rule(const sl_group *group, const sl_consumer *consumer)
{
    for (uint32_t i = 0; i < group->rule_count; i++)
        if (has_tag(consumer, group->rules[i]))
            return true;
    return false;
}

/* The gate shuts here and nowhere else: out of the strategy, so that no path can find it (S1.11, S1.12). */
static void shut_gate(sl_group *group, sl_consumer *consumer, sl_asker asked_by)
{
    sl_strategy_consumer_out(group, consumer);
    sl_consumer_set_state(group, consumer, SL_CONSUMER_STOPPING);
    consumer->asked_by = asked_by;
    consumer->settled = consumer->released = consumer->lost = 0;
}

static sl_err stop_one(sl_group *group, sl_consumer *consumer, const sl_stop *stop)
{
    const bool already = consumer->state != SL_CONSUMER_ACTIVE;

    if (!already)
        shut_gate(group, consumer, stop->asked_by);
    if (stop->asked_by == SL_ASKER_CONSUMER)
        consumer->stopped_itself = true;
    if (stop->hand_back_unstarted)
        hand_back(group, consumer, SL_BACK_RELEASED, false);
    if (!already && stop->asked_by != SL_ASKER_CONSUMER)
        sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_STOP_REQUESTED,
                                           .stop_requested = { .consumer = consumer->id,
                                                               .asked_by = stop->asked_by,
                                                               .deadline_ns = stop->deadline_ns } });
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_STOPPED,
                                       .stopped = { .consumer = consumer->id,
                                                    .asked_by = consumer->asked_by,
                                                    .already_stopped = already,
                                                    .in_flight = consumer->in_flight } });
    sl_consumer_lease_over(group, consumer);
    return already ? SL_ERR_ALREADY_STOPPED : SL_OK;
}

sl_err sl_group_stop(sl_group *group, uint64_t consumer_id, const sl_stop *stop, uint64_t now_ns)
{
    sl_consumer *consumer;
    sl_err err = SL_ERR_NO_CONSUMER;

    sl_group_enter(group, now_ns);
    consumer = find_live(group, consumer_id);
    if (consumer != NULL)
        err = stop_one(group, consumer, stop);
    sl_group_exit(group);
    return err;
}

static sl_err resume_one(sl_group *group, sl_consumer *consumer)
{
    if (consumer->state == SL_CONSUMER_ACTIVE)
        return SL_OK;
    if (consumer->state == SL_CONSUMER_DRAINED || consumer->stopped_itself)
        return SL_ERR_DRAINED;
    if (is_under_rule(group, consumer))
        return SL_ERR_ALREADY_STOPPED;
    sl_consumer_set_state(group, consumer, SL_CONSUMER_ACTIVE);
    sl_strategy_consumer_in(group, consumer);
    return SL_OK;
}

sl_err sl_group_resume(sl_group *group, uint64_t consumer_id, uint64_t now_ns)
{
    sl_consumer *consumer;
    sl_err err = SL_ERR_NO_CONSUMER;

    sl_group_enter(group, now_ns);
    consumer = find_live(group, consumer_id);
    if (consumer != NULL)
        err = resume_one(group, consumer);
    sl_group_exit(group);
    return err;
}

/* --- stop by tag --- */

static uint32_t rule_index(const sl_group *group, uint64_t tag)
{
    uint32_t i = 0;

    while (i < group->rule_count && group->rules[i] != tag)
        i++;
    return i;
}

static void emit_rule(sl_group *group, uint64_t tag, bool stop)
{
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_RULE, .rule = { .tag = tag, .stop = stop } });
}

static sl_err add_rule(sl_group *group, uint64_t tag)
{
    if (rule_index(group, tag) < group->rule_count)
        return SL_OK;
    if (group->rule_count == SL_RULES_MAX)
        return SL_ERR_FULL;
    group->rules[group->rule_count++] = tag;
    emit_rule(group, tag, true);
    return SL_OK;
}

sl_err sl_group_stop_tag(sl_group *group, uint64_t tag, const sl_stop *stop, uint64_t now_ns)
{
    sl_err err;

    sl_group_enter(group, now_ns);
    err = add_rule(group, tag);
    if (err == SL_OK) {
        SL_LIST_EACH (node, &group->consumers) {
            sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, all);
            if (consumer->state == SL_CONSUMER_ACTIVE && has_tag(consumer, tag))
                stop_one(group, consumer, stop);
        }
    }
    sl_group_exit(group);
    return err;
}

static void resume_tagged(sl_group *group, uint64_t tag)
{
    SL_LIST_EACH (node, &group->consumers) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, all);
        if (consumer->state == SL_CONSUMER_STOPPING && consumer->asked_by == SL_ASKER_OPERATOR &&
            has_tag(consumer, tag))
            resume_one(group, consumer);
    }
}

sl_err sl_group_resume_tag(sl_group *group, uint64_t tag, uint64_t now_ns)
{
    uint32_t index;

    sl_group_enter(group, now_ns);
    index = rule_index(group, tag);
    if (index < group->rule_count) {
        group->rules[index] = group->rules[--group->rule_count];
        emit_rule(group, tag, false);
        resume_tagged(group, tag);
        sl_group_exit(group);
        return SL_OK;
    }
    sl_group_exit(group);
    return SL_ERR_NOT_FOUND;
}

sl_err sl_group_cordon(sl_group *group, uint64_t consumer_id, bool cordoned, uint64_t now_ns)
{
    sl_consumer *consumer;

    sl_group_enter(group, now_ns);
    consumer = find_live(group, consumer_id);
    if (consumer != NULL && consumer->cordoned != cordoned)
        sl_strategy_cordon(group, consumer, cordoned);
    sl_group_exit(group);
    return consumer == NULL ? SL_ERR_NO_CONSUMER : SL_OK;
}

/* --- leave and away --- */

static void leave_one(sl_group *group, sl_consumer *consumer)
{
    hand_back(group, consumer, SL_BACK_LEFT, true);
    sl_consumer_gone(group, consumer);
}

/* A runtime never starts a message while it is disconnected, so what it has not started may go at once. */
static void away_one(sl_group *group, sl_consumer *consumer)
{
    sl_strategy_consumer_out(group, consumer);
    if (consumer->sends_started)
        hand_back(group, consumer, SL_BACK_LEFT, false);
    sl_consumer_set_state(group, consumer, SL_CONSUMER_AWAY);
    sl_heap_insert(&group->windows, &consumer->window_end,
                   sl_add_sat_u64(group->now_ns, consumer->reconnect_ns));
    sl_consumer_lease_over(group, consumer);
}

void sl_consumer_window_over(sl_group *group, sl_consumer *consumer)
{
    hand_back(group, consumer, SL_BACK_DIED, true);
    sl_consumer_gone(group, consumer);
}

static sl_err end_call(sl_group *group, uint64_t consumer_id, uint64_t now_ns, bool may_return)
{
    sl_consumer *consumer;

    sl_group_enter(group, now_ns);
    consumer = find_live(group, consumer_id);
    if (consumer != NULL && may_return && consumer->extensions)
        away_one(group, consumer);
    else if (consumer != NULL)
        leave_one(group, consumer);
    sl_group_exit(group);
    return consumer == NULL ? SL_ERR_NO_CONSUMER : SL_OK;
}

sl_err sl_group_leave(sl_group *group, uint64_t consumer, uint64_t now_ns)
{
    return end_call(group, consumer, now_ns, false);
}

sl_err sl_group_away(sl_group *group, uint64_t consumer, uint64_t now_ns)
{
    return end_call(group, consumer, now_ns, true);
}

/* --- join --- */

/* The next consumer of the session that is away, beginning at a node of the sessions map. */
static sl_consumer *away_from(sl_map_node *node, sl_uuid session)
{
    for (; node != NULL; node = sl_map_next(node)) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, by_session);
        if (consumer->state == SL_CONSUMER_AWAY && sl_uuid_equal(consumer->session, session))
            return consumer;
    }
    return NULL;
}

static sl_consumer *away_first(const sl_group *group, sl_uuid session)
{
    return away_from(sl_map_find(&group->sessions, sl_session_hash(group, session)), session);
}

static sl_consumer *away_next(const sl_consumer *consumer)
{
    return away_from(sl_map_next(&consumer->by_session), consumer->session);
}

static bool session_sends_started(const sl_group *group, sl_uuid session)
{
    bool sends = false;

    for (const sl_consumer *dead = away_first(group, session); dead != NULL; dead = away_next(dead))
        sends = sends || dead->sends_started;
    return sends;
}

/* The same lease for another call of the session: no new token, no new delivery, no new time. */
static void move_lease(sl_group *group, sl_message *message, sl_consumer *from, sl_consumer *to)
{
    message->lease.holder = to->id;
    if (message->index == SL_INDEX_HELD) {
        sl_list_remove(&message->held);
        sl_list_push_back(&to->held, &message->held);
        from->in_flight--;
        to->in_flight++;
    }
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_MOVE,
                                       .move = { .place = sl_message_place(message),
                                                 .token = message->lease.token,
                                                 .consumer = to->id } });
}

/* Moves every lease on this id of a dead call of the session. */
static void take_over(sl_group *group, sl_consumer *consumer, sl_uuid id)
{
    const uint64_t hash = sl_hash(group->seed, id.bytes, sizeof id.bytes);

    for (sl_map_node *node = sl_map_find(&group->ids, hash); node != NULL; node = sl_map_next(node)) {
        sl_message *const message = SL_CONTAINER_OF(node, sl_message, by_id);
        sl_consumer *const holder = sl_consumer_find(group, message->lease.holder);
        if (holder != NULL && holder->state == SL_CONSUMER_AWAY && sl_uuid_equal(message->id, id) &&
            sl_uuid_equal(holder->session, consumer->session))
            move_lease(group, message, holder, consumer);
    }
}

static bool has_lease_on(const sl_group *group, const sl_consumer *consumer, sl_uuid id)
{
    const uint64_t hash = sl_hash(group->seed, id.bytes, sizeof id.bytes);

    for (sl_map_node *node = sl_map_find(&group->ids, hash); node != NULL; node = sl_map_next(node)) {
        const sl_message *const message = SL_CONTAINER_OF(node, const sl_message, by_id);
        if (sl_uuid_equal(message->id, id) && sl_lease_is(&message->lease, consumer->id, 0))
            return true;
    }
    return false;
}

static void come_back(sl_group *group, sl_consumer *consumer, const sl_join *join)
{
    sl_consumer *dead;

    for (uint32_t i = 0; i < join->resume_count; i++)
        take_over(group, consumer, join->resume[i]);
    while ((dead = away_first(group, consumer->session)) != NULL)
        sl_consumer_window_over(group, dead);
    sl_strategy_leases_moved(group, consumer);
    for (uint32_t i = 0; i < join->resume_count; i++) {
        if (!has_lease_on(group, consumer, join->resume[i])) {
            group->lost++;
            sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_LOST,
                                               .lost = { .consumer = consumer->id, .id = join->resume[i] } });
        }
    }
}

static void become_heir(sl_group *group, const sl_consumer *consumer)
{
    for (sl_consumer *dead = away_first(group, consumer->session); dead != NULL; dead = away_next(dead))
        dead->heir = consumer->id;
}

static sl_consumer *welcome(sl_group *group, const sl_join *join)
{
    const bool sends_started = session_sends_started(group, join->session);
    sl_consumer *const consumer = sl_consumer_new(group, group->consumer_next, join->session);

    if (consumer == NULL)
        return NULL;
    group->consumer_next++;
    consumer->window = join->window;
    consumer->extensions = join->extensions;
    consumer->sends_started = sends_started;
    consumer->reconnect_ns = join->reconnect_ns;
    consumer->tag_count = join->tag_count;
    if (join->tag_count > 0)
        memcpy(consumer->tags, join->tags, join->tag_count * sizeof *join->tags);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_JOIN,
                                       .join = { .consumer = consumer->id,
                                                 .session = consumer->session,
                                                 .sends_started = sends_started } });
    return consumer;
}

static sl_err join_one(sl_group *group, const sl_join *join, uint64_t *ret_consumer)
{
    const uint32_t active = group->state_counts[SL_CONSUMER_ACTIVE];
    sl_consumer *consumer;

    if (group->settings.consumers_max > 0 && active >= group->settings.consumers_max)
        return SL_ERR_CONSUMERS_MAX;
    consumer = welcome(group, join);
    if (consumer == NULL)
        return SL_ERR_FULL;
    if (join->extensions)
        come_back(group, consumer, join);
    else
        become_heir(group, consumer);
    if (is_under_rule(group, consumer))
        stop_one(group, consumer, &(sl_stop){ .asked_by = SL_ASKER_OPERATOR });
    else
        sl_strategy_consumer_in(group, consumer);
    *ret_consumer = consumer->id;
    return SL_OK;
}

sl_err sl_group_join(sl_group *group, const sl_join *join, uint64_t now_ns, uint64_t *ret_consumer)
{
    sl_err err;

    if (join->window == 0 || join->tag_count > SL_TAGS_MAX)
        return SL_ERR_INVALID;
    sl_group_enter(group, now_ns);
    err = join_one(group, join, ret_consumer);
    sl_group_exit(group);
    return err;
}

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

static uint64_t session_hash(const sl_group *group, sl_uuid session)
{
    return sl_hash(group->seed, session.bytes, sizeof session.bytes);
}

/* Ids are given by us, in sequence: they need no seed, and the low bits spread well. */
sl_consumer *sl_consumer_find(const sl_group *group, uint64_t id)
{
    sl_map_node *node = sl_map_find(&group->consumers_by_id.map, id);

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
    sl_list *const node = sl_pool_take(&group->free_consumers);
    sl_consumer *consumer;

    if (node == NULL)
        return NULL;
    consumer = SL_CONTAINER_OF(node, sl_consumer, all);
    *consumer = (sl_consumer){ .id = id, .session = session, .since_ns = group->now_ns };
    sl_list_init(&consumer->held);
    sl_list_init(&consumer->ring);
    sl_list_push_back(&group->consumers, &consumer->all);
    sl_pool_map_insert(&group->consumers_by_id, &consumer->by_id, id);
    sl_pool_map_insert(&group->sessions, &consumer->by_session, session_hash(group, session));
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
    sl_map_remove(&group->consumers_by_id.map, &consumer->by_id);
    sl_map_remove(&group->sessions.map, &consumer->by_session);
    sl_list_remove(&consumer->all);
    sl_pool_give(&group->free_consumers, &consumer->all);
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
                                                    .lost = consumer->lost,
                                                    .interrupted = consumer->interrupted } });
}

/* One that is away since its connection broke has a time to come back; one that a restart left has its leases. */
static bool has_window(const sl_consumer *consumer)
{
    return sl_heap_has(&consumer->window_end);
}

/* After a restart an away consumer is kept as long as anything might still be settled by its session. */
void sl_consumer_lease_over(sl_group *group, sl_consumer *consumer)
{
    if (consumer == NULL || consumer->in_flight > 0)
        return;
    if (consumer->state == SL_CONSUMER_STOPPING)
        drained(group, consumer);
    else if (consumer->state == SL_CONSUMER_AWAY && (consumer->current == 0 || has_window(consumer)))
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
    consumer->settled = consumer->released = consumer->lost = consumer->interrupted = 0;
    consumer->stopped_singly = false;
}

/* Only the holder knows what it has begun: a Started may be on its way. So as long as its call lives nobody else gives away what
 * it holds; the wish of others is told to it. Who has no extensions cannot be told, and the server asks for it only where it
 * ends the call. */
static bool may_hand_back(const sl_consumer *consumer, const sl_stop *stop)
{
    const bool ends_call = stop->asked_by == SL_ASKER_SERVER && !consumer->extensions;

    return stop->hand_back_unstarted && (stop->asked_by == SL_ASKER_CONSUMER || ends_call);
}

/* Once more, though the gate is shut, when it is news that a hand-back is wished. */
static void request_stop(sl_group *group, const sl_consumer *consumer, const sl_stop *stop, bool already)
{
    const bool wish = stop->hand_back_unstarted && !may_hand_back(consumer, stop);

    if (already && (!wish || consumer->state == SL_CONSUMER_DRAINED))
        return;
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_STOP_REQUESTED,
                                       .stop_requested = { .consumer = consumer->id,
                                                           .asked_by = stop->asked_by,
                                                           .deadline_ns = stop->deadline_ns,
                                                           .hand_back = wish } });
}

/* A second STOPPED answers a second Stop, so it is only for who has sent one. */
static sl_err stop_one(sl_group *group, sl_consumer *consumer, const sl_stop *stop)
{
    const bool already = consumer->state != SL_CONSUMER_ACTIVE, itself = stop->asked_by == SL_ASKER_CONSUMER;

    if (!already)
        shut_gate(group, consumer, stop->asked_by);
    if (itself)
        consumer->stopped_itself = true;
    if (may_hand_back(consumer, stop))
        hand_back(group, consumer, SL_BACK_RELEASED, false);
    if (!itself)
        request_stop(group, consumer, stop, already);
    if (!already || itself)
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
    if (consumer != NULL) {
        err = stop_one(group, consumer, stop);
        consumer->stopped_singly = consumer->stopped_singly || stop->asked_by != SL_ASKER_CONSUMER;
    }
    sl_group_exit(group);
    return err;
}

static bool is_full(const sl_group *group)
{
    const uint32_t max = group->settings.consumers_max;

    return max > 0 && group->state_counts[SL_CONSUMER_ACTIVE] >= max;
}

/* What stops it now is taken back, except the rules: they are taken back by themselves. */
static sl_err resume_one(sl_group *group, sl_consumer *consumer)
{
    if (consumer->state == SL_CONSUMER_ACTIVE)
        return SL_OK;
    if (consumer->state == SL_CONSUMER_DRAINED || consumer->stopped_itself)
        return SL_ERR_DRAINED;
    if (is_under_rule(group, consumer)) {
        consumer->stopped_singly = false;
        return SL_ERR_ALREADY_STOPPED;
    }
    if (is_full(group))
        return SL_ERR_CONSUMERS_MAX;
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

    assert(stop->asked_by == SL_ASKER_OPERATOR); /* nobody else makes rules */
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
        if (consumer->state == SL_CONSUMER_STOPPING && !consumer->stopped_singly && has_tag(consumer, tag))
            (void)resume_one(group, consumer); /* another rule may stop it, or the maximum is reached */
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

/* The next consumer of the session, beginning at a node of the sessions map; perhaps only of those that are away. */
static sl_consumer *of_session(sl_map_node *node, sl_uuid session, bool only_away)
{
    for (; node != NULL; node = sl_map_next(node)) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, by_session);
        if (sl_uuid_equal(consumer->session, session) && (!only_away || consumer->state == SL_CONSUMER_AWAY))
            return consumer;
    }
    return NULL;
}

static sl_consumer *session_first(const sl_group *group, sl_uuid session, bool only_away)
{
    return of_session(sl_map_find(&group->sessions.map, session_hash(group, session)), session, only_away);
}

static sl_consumer *session_next(const sl_consumer *consumer, bool only_away)
{
    return of_session(sl_map_next(&consumer->by_session), consumer->session, only_away);
}

sl_consumer *sl_consumer_away_first(const sl_group *group, sl_uuid session)
{
    return session_first(group, session, true);
}

sl_consumer *sl_consumer_away_next(const sl_consumer *consumer)
{
    return session_next(consumer, true);
}

static bool session_sends_started(const sl_group *group, sl_uuid session)
{
    const sl_consumer *const any = session_first(group, session, false);

    return any != NULL && any->sends_started;
}

static void emit_join(sl_group *group, const sl_consumer *consumer)
{
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_JOIN,
                                       .join = { .consumer = consumer->id,
                                                 .session = consumer->session,
                                                 .sends_started = consumer->sends_started } });
}

/* All calls of a session speak for it: what one says of starting holds for the others. */
void sl_session_starts(sl_group *group, const sl_consumer *consumer)
{
    if (consumer->sends_started)
        return;
    for (sl_consumer *c = session_first(group, consumer->session, false); c != NULL;
         c = session_next(c, false))
        c->sends_started = true;
}

/* No lease is marked, so no other record would tell a later life of it. */
void sl_session_will_start(sl_group *group, const sl_consumer *consumer)
{
    if (consumer->sends_started)
        return;
    sl_session_starts(group, consumer);
    emit_join(group, consumer);
}

/* --- coming back --- */

/* The same lease for another call of the session: no new token, no new delivery, no new time. */
static void move_lease(sl_group *group, sl_message *message, sl_consumer *from, sl_consumer *to)
{
    sl_message_unclaimable(group, message);
    sl_lease_move(&message->lease, to->id);
    sl_message_claimable(group, message);
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

/* To whom of the away ones a newcomer comes back: to those that hold something of its list. One that has nothing, a
 * process that was started anew, is the successor of one of them: of the one that has been away longest. */
static void choose_predecessors(const sl_group *group, const sl_join *join)
{
    sl_consumer *longest = NULL;
    bool chosen = false;

    for (sl_consumer *dead = sl_consumer_away_first(group, join->session); dead != NULL;
         dead = sl_consumer_away_next(dead)) {
        dead->comes_back = false;
        for (uint32_t i = 0; i < join->resume_count && !dead->comes_back; i++)
            dead->comes_back = sl_claim_find(group, join->resume[i], dead->id, 0) != NULL;
        chosen = chosen || dead->comes_back;
        if (longest == NULL || dead->since_ns < longest->since_ns ||
            (dead->since_ns == longest->since_ns && dead->id < longest->id))
            longest = dead;
    }
    if (!chosen && longest != NULL)
        longest->comes_back = true;
}

static sl_consumer *first_predecessor(const sl_group *group, sl_uuid session)
{
    sl_consumer *dead = sl_consumer_away_first(group, session);

    while (dead != NULL && !dead->comes_back)
        dead = sl_consumer_away_next(dead);
    return dead;
}

static void take_over(sl_group *group, sl_consumer *consumer, sl_uuid id)
{
    for (sl_consumer *dead = sl_consumer_away_first(group, consumer->session); dead != NULL;
         dead = sl_consumer_away_next(dead)) {
        sl_message *message;
        while (dead->comes_back && (message = sl_claim_find(group, id, dead->id, 0)) != NULL)
            move_lease(group, message, dead, consumer);
    }
}

static void come_back(sl_group *group, sl_consumer *consumer, const sl_join *join)
{
    sl_consumer *dead;

    choose_predecessors(group, join);
    for (uint32_t i = 0; i < join->resume_count; i++)
        take_over(group, consumer, join->resume[i]);
    while ((dead = first_predecessor(group, consumer->session)) != NULL)
        sl_consumer_window_over(group, dead);
    sl_strategy_leases_moved(group, consumer);
    for (uint32_t i = 0; i < join->resume_count; i++) {
        if (sl_claim_find(group, join->resume[i], consumer->id, 0) == NULL) {
            group->lost++;
            sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_LOST,
                                               .lost = { .consumer = consumer->id, .id = join->resume[i] } });
        }
    }
}

/* --- join --- */

/* An away consumer that is only remembered for ended leases gives its place to one that is there. */
static void forget_one(sl_group *group)
{
    sl_consumer *longest = NULL;

    SL_LIST_EACH (node, &group->consumers) {
        sl_consumer *const consumer = SL_CONTAINER_OF(node, sl_consumer, all);
        if (consumer->state == SL_CONSUMER_AWAY && consumer->in_flight == 0 &&
            (longest == NULL || consumer->since_ns < longest->since_ns))
            longest = consumer;
    }
    if (longest != NULL)
        sl_consumer_gone(group, longest);
}

static sl_consumer *welcome(sl_group *group, const sl_join *join)
{
    bool sends_started;
    sl_consumer *consumer;

    if (sl_pool_empty(&group->free_consumers))
        forget_one(group);
    if (sl_pool_empty(&group->free_consumers))
        return NULL;
    sends_started = join->sends_started || session_sends_started(group, join->session);
    consumer = sl_consumer_new(group, sl_group_number(group, &group->consumer_next), join->session);
    consumer->window = join->window;
    consumer->extensions = join->extensions;
    if (sends_started)
        sl_session_starts(group, consumer);
    consumer->reconnect_ns = join->reconnect_ns;
    consumer->tag_count = join->tag_count;
    if (join->tag_count > 0)
        memcpy(consumer->tags, join->tags, join->tag_count * sizeof *join->tags);
    emit_join(group, consumer);
    return consumer;
}

static bool names_one_of(const sl_group *group, const sl_join *join)
{
    for (uint32_t i = 0; i < group->rule_count; i++) {
        if (group->rules[i] == SL_TAG_EVERYONE)
            return true;
        for (uint32_t t = 0; t < join->tag_count; t++)
            if (join->tags[t] == group->rules[i])
                return true;
    }
    return false;
}

/* It holds something of what it lists. */
static bool holds_leases(const sl_group *group, const sl_join *join)
{
    if (!join->extensions)
        return false;
    for (const sl_consumer *dead = sl_consumer_away_first(group, join->session); dead != NULL;
         dead = sl_consumer_away_next(dead))
        for (uint32_t i = 0; i < join->resume_count; i++)
            if (sl_claim_find(group, join->resume[i], dead->id, 0) != NULL)
                return true;
    return false;
}

/* Who is stopped from the beginning is never active, so no maximum concerns it. That is how one comes in whose place was taken while
 * it was away: it finishes what it holds, and gets nothing new. */
static sl_err join_one(sl_group *group, const sl_join *join, uint64_t *ret_consumer)
{
    const bool ruled = names_one_of(group, join);
    const bool full = !ruled && is_full(group);
    sl_consumer *consumer;

    if (full && !holds_leases(group, join))
        return SL_ERR_CONSUMERS_MAX;
    consumer = welcome(group, join);
    if (consumer == NULL)
        return SL_ERR_FULL;
    if (join->extensions)
        come_back(group, consumer, join);
    if (ruled || full)
        stop_one(group, consumer, &(sl_stop){ .asked_by = ruled ? SL_ASKER_OPERATOR : SL_ASKER_SERVER });
    else
        sl_strategy_consumer_in(group, consumer);
    *ret_consumer = consumer->id;
    return SL_OK;
}

/* 0 is everyone: nobody may be called that. */
static bool has_tag_zero(const sl_join *join)
{
    for (uint32_t i = 0; i < join->tag_count; i++)
        if (join->tags[i] == SL_TAG_EVERYONE)
            return true;
    return false;
}

sl_err sl_group_join(sl_group *group, const sl_join *join, uint64_t now_ns, uint64_t *ret_consumer)
{
    sl_err err;

    if (join->window == 0 || join->tag_count > SL_TAGS_MAX || has_tag_zero(join))
        return SL_ERR_INVALID;
    sl_group_enter(group, now_ns);
    err = join_one(group, join, ret_consumer);
    sl_group_exit(group);
    return err;
}

/* tests/simserver/judge_event.c — a delivery: may this call have this message now, with this count and this token? */
#include "judge_private.h"

#include "base/cleanup.h"

#include <inttypes.h>

static uint64_t hash_of(sl_str text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.bytes; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* --- charging --- */

/* Of two deliveries, was a the earlier one? False when that is not known. */
static bool came_before(const judge_hold *a, const judge_hold *b)
{
    if (a->token != 0 && b->token != 0)
        return a->token < b->token;
    return a->said.turn < b->said.turn;
}

static bool counts_as_started(const judge *j, const judge_hold *hold)
{
    const uint64_t sure_ns = hold->call->started_sure_ns;

    return hold->started_turn != JUDGE_NEVER || hold->maybe_started || sure_ns == 0 ||
           sure_ns + j->forward_ns >= hold->expire_min_ns;
}

bool judge_may_be_charged(const judge *j, const judge_hold *hold, judge_moment at)
{
    const bool may_have_expired = at.mono_ns + j->forward_ns >= hold->expire_min_ns;

    if (hold->retry_sent || hold->uncertain)
        return true;
    return !hold->released_sure && counts_as_started(j, hold) &&
           (may_have_expired || (hold->call->over && hold->call->over_turn <= at.turn) || hold->gone);
}

static void check_count(judge_call *call, const judge_message *message, const judge_hold *now)
{
    const judge *const j = call->group->judge;
    uint64_t charges_max = judge_unseen_charges(call->group);

    SL_LIST_EACH (node, &message->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_message);

        if (hold == now || came_before(now, hold) || !judge_may_be_charged(j, hold, now->said))
            continue;
        /* A nack may be heard when its lease is over, and then be about the next one, which never left. */
        charges_max += hold->retry_sent ? 2 : 1;
    }
    if (now->retry_count > charges_max)
        JUDGE_FAIL(call, CHARGED,
                   "c%u got m%u with retry count %u, but it was charged %" PRIu64 " times at most",
                   call->number, message->number, now->retry_count, charges_max);
}

void judge_check_counts(judge_group *group)
{
    SL_LIST_EACH (node, &group->messages) {
        const judge_message *const message = SL_CONTAINER_OF(node, judge_message, node);

        SL_LIST_EACH (held, &message->holds) {
            const judge_hold *const hold = SL_CONTAINER_OF(held, judge_hold, of_message);

            check_count(hold->call, message, hold);
        }
    }
}

/* Later deliveries have at least the count of earlier ones. */
static void check_growing(judge_call *call, judge_message *message, const judge_hold *now)
{
    SL_LIST_EACH (node, &message->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_message);

        if (hold != now && !hold->listed && !came_before(hold, now))
            return;
    }
    if (now->retry_count < message->attempts_seen)
        JUDGE_FAIL(call, CHARGED, "c%u got m%u with retry count %u, but it had %u before", call->number,
                   message->number, now->retry_count, message->attempts_seen);
    message->attempts_seen = now->retry_count;
}

/* --- one lease at a time --- */

static void check_pair(judge_call *call, const judge_hold *a, const judge_hold *b)
{
    const judge *const j = call->group->judge;

    if (b->listed || !came_before(a, b))
        return;
    if (judge_surely_holds(j, a, b->said))
        JUDGE_FAIL(call, TWO_LEASES, "m%u was given to c%u while c%u held it", a->message->number,
                   b->call->number, a->call->number);
    if (a->was_extended)
        report_count(j->report, SITUATION_EXTENSION_PROVEN);
}

static void check_leases(judge_call *call, judge_message *message, const judge_hold *now)
{
    SL_LIST_EACH (node, &message->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_message);

        if (hold == now)
            continue;
        check_pair(call, hold, now);
        check_pair(call, now, hold);
    }
}

static void check_token(judge_call *call, const judge_hold *now)
{
    judge_group *const group = call->group;

    if (call->extensions != (now->token != 0))
        JUDGE_FAIL(call, WRONG, "c%u got token %" PRIu64, call->number, now->token);
    if (now->token == 0)
        return;
    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (hold != now && hold->token >= now->token)
            JUDGE_FAIL(call, TWO_LEASES, "c%u got token %" PRIx64 " after %" PRIx64, call->number, now->token,
                       hold->token);
    }
    if (!group->judge->reads_again && group->token_turn < now->said.turn && group->token_max >= now->token)
        JUDGE_FAIL(call, TWO_LEASES, "c%u got token %" PRIx64 " but %" PRIx64 " was given before",
                   call->number, now->token, group->token_max);
    if (now->token > group->token_max && now->said.turn >= group->token_turn) {
        group->token_max = now->token;
        group->token_turn = now->said.turn;
    }
}

/* --- the window --- */

static void check_window(judge_call *call, const judge_hold *now)
{
    const judge *const j = call->group->judge;
    uint32_t count = 0;

    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        count += hold->said.turn <= now->said.turn && judge_surely_holds(j, hold, now->said);
    }
    if (count > call->window)
        JUDGE_FAIL(call, WINDOW, "c%u holds %u with a window of %u", call->number, count, call->window);
}

/* --- keys and order --- */

static void check_key_pair(judge_call *call, const judge_hold *a, const judge_hold *b)
{
    if (b->listed || !came_before(a, b) || a->call == b->call ||
        a->message->first_turn <= call->group->pinned_since ||
        b->message->first_turn <= call->group->pinned_since)
        return; /* a message keeps the key that it was given out with, whatever the strategy is now */
    if (judge_surely_holds(call->group->judge, a, b->said))
        JUDGE_FAIL(call, KEYS, "m%u went to c%u while c%u held m%u of the same key", b->message->number,
                   b->call->number, a->call->number, a->message->number);
}

static void check_key(judge_call *call, const judge_hold *now)
{
    if (call->group->pinned_since > 0 && call->group->unseen)
        return; /* which key a message was given out with is not known */
    SL_LIST_EACH (node, &call->group->messages) {
        const judge_message *const message = SL_CONTAINER_OF(node, judge_message, node);

        if (message == now->message || message->key != now->message->key)
            continue;
        SL_LIST_EACH (held, &message->holds) {
            const judge_hold *const hold = SL_CONTAINER_OF(held, judge_hold, of_message);

            check_key_pair(call, hold, now);
            check_key_pair(call, now, hold);
        }
    }
}

static bool is_first(const judge_message *message)
{
    return message->holds.next->next == &message->holds;
}

/* The first delivery; NULL when there was none that somebody saw. */
static const judge_hold *first_of(const judge_message *message)
{
    const judge_hold *first = NULL;

    SL_LIST_EACH (node, &message->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_message);

        if (!hold->listed && (first == NULL || came_before(hold, first)))
            first = hold;
    }
    return first;
}

static void check_order_of(judge_group *group, const judge_message *a, const judge_message *b)
{
    const judge_hold *const first_a = first_of(a), *const first_b = first_of(b);

    if (first_a == NULL || first_b == NULL || a->replayed || b->replayed || a->place >= b->place)
        return;
    if ((!group->rules.pinned || a->key == b->key) && came_before(first_b, first_a))
        JUDGE_FAIL(first_b->call, KEYS, "m%u was given out before m%u, which stands before it", b->number,
                   a->number);
}

/* What is delivered for the first time comes in the order of the stream; with keys, in the order of its key. That can be said
 * when every delivery was seen. */
void judge_check_order(judge_group *group)
{
    if (group->unseen || judge_unseen_charges(group) > 0 || group->pinned_since > 0)
        return;
    SL_LIST_EACH (node, &group->messages)
        SL_LIST_EACH (other, &group->messages)
            check_order_of(group, SL_CONTAINER_OF(node, judge_message, node),
                           SL_CONTAINER_OF(other, judge_message, node));
}

/* --- all of it --- */

static uint64_t key_of(const judge_group *group, const sl_wire_read_event *event)
{
    if (!group->rules.pinned || !event->has_event)
        return 0;
    if (group->rules.by_correlation && event->event.custom_metadata.bytes > 0)
        return hash_of(event->event.custom_metadata);
    return hash_of(event->event.stream);
}

static judge_message *message_of(judge_group *group, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const recorded = event->has_link ? &event->link : &event->event;
    judge_message *const message = judge_message_get(group, &recorded->id.uuid);

    message->key = key_of(group, event);
    message->place = recorded->commit_position;
    message->replayed = event->has_link;
    if (event->has_link && event->has_event)
        judge_message_get(group, &event->event.id.uuid)->replay = message;
    return message;
}

static void check_gate(judge_call *call, const judge_message *message, judge_moment said)
{
    report *const r = call->group->judge->report;
    const bool taken_back = call->stopped_by_other && call->group->resume_turn <= said.turn;

    if (call->stopped && !taken_back)
        JUDGE_FAIL(call, AFTER_STOPPED, "c%u got m%u after its Stopped", call->number, message->number);
    if (call->stopped && taken_back) {
        report_count(r, SITUATION_RESUMED_DELIVERY);
        call->stopped = false; /* another stop may follow, with everything that belongs to it */
    }
}

void judge_got_event(judge_call *call, const sl_wire_read_event *event, judge_moment said)
{
    judge *const j = call->group->judge;
    judge_message *const message = message_of(call->group, event);
    judge_hold *const hold = judge_hold_add(call, message, said);

    message->first_turn = sl_min_u64(message->first_turn, said.turn);
    hold->token = event->lease_token;
    hold->retry_count = (uint32_t)event->retry_count;
    report_count(j->report, SITUATION_DELIVERED);
    if (!is_first(message))
        report_count(j->report, SITUATION_REDELIVERED);
    if (hold->retry_count > 0)
        report_count(j->report, SITUATION_CHARGED);
    if (message->replayed)
        report_count(j->report, SITUATION_REPLAY_DELIVERED);
    if (message->settled_turn < said.turn)
        JUDGE_FAIL(call, SETTLED_AGAIN, "c%u got m%u, which was settled in turn %" PRIu64, call->number,
                   message->number, message->settled_turn);
    check_gate(call, message, said);
    check_token(call, hold);
    check_leases(call, message, hold);
    check_window(call, hold);
    check_growing(call, message, hold);
    if (call->group->rules.pinned)
        check_key(call, hold);
}

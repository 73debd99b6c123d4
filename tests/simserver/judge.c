/* tests/simserver/judge.c — what clients say, how calls end, and what that means for the leases that they hold. */
#include "judge_private.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNSEEN_AGAIN_MAX =
        5 /* one message to one call, while its connection stalls: that long divided by the shortest lease */
};

void judge_init(judge *j, report *r)
{
    *j = (judge){ .report = r, .was_idle = true };
}

void judge_turn_begins(judge *j, uint64_t turn, uint64_t mono_ns)
{
    if (!j->was_idle) {
        j->busy_ns_total += mono_ns - j->now.mono_ns;
        j->busy_ns_longest = sl_max_u64(j->busy_ns_longest, mono_ns - j->now.since_ns);
    }
    j->now.turn = turn;
    j->now.mono_ns = mono_ns;
    if (j->was_idle)
        j->now.since_ns = mono_ns;
    j->was_idle = false;
}

void judge_turn_ends(judge *j, bool idle)
{
    j->was_idle = idle;
}

static void *made(size_t bytes)
{
    void *const memory = calloc(1, bytes);

    assert(memory != NULL);
    return memory;
}

/* --- groups --- */

void judge_group_init(judge *j, judge_group *group, const char *name, const judge_rules *rules)
{
    *group = (judge_group){ .judge = j, .rules = *rules, .resume_turn = JUDGE_NEVER };
    snprintf(group->name, sizeof group->name, "%s", name);
    sl_list_init(&group->messages);
    sl_list_init(&group->calls);
}

static void messages_free(judge_group *group)
{
    SL_LIST_EACH_SAFE (node, &group->messages)
        free(SL_CONTAINER_OF(node, judge_message, node));
    sl_list_init(&group->messages);
}

static void call_free(judge_call *call)
{
    SL_LIST_EACH_SAFE (node, &call->claims)
        free(SL_CONTAINER_OF(node, judge_claim, node));
    SL_LIST_EACH_SAFE (node, &call->holds)
        free(SL_CONTAINER_OF(node, judge_hold, of_call));
    free(call);
}

void judge_group_done(judge_group *group)
{
    SL_LIST_EACH_SAFE (node, &group->calls)
        call_free(SL_CONTAINER_OF(node, judge_call, node));
    messages_free(group);
}

static void drop_all(judge_group *group)
{
    SL_LIST_EACH (node, &group->calls) {
        judge_call *const call = SL_CONTAINER_OF(node, judge_call, node);

        call->may_be_dropped = true;
        if (call->extensions)
            continue;
        SL_LIST_EACH (held, &call->holds) {
            judge_hold *const hold = SL_CONTAINER_OF(held, judge_hold, of_call);

            if (group->judge->now.turn < hold->free_turn)
                hold->free_turn = group->judge->now.turn;
        }
    }
}

/* Until it is answered, the old rules or the new ones may hold. */
void judge_group_changing(judge_group *group, const judge_rules *rules)
{
    group->changing = true;
    group->old_lease_ns = group->old_lease_ns == 0 ? group->rules.lease_ns
                                                   : sl_min_u64(group->old_lease_ns, group->rules.lease_ns);
    drop_all(group);
    group->rules.pinned = false;
    group->rules.lease_ns = sl_min_u64(rules->lease_ns, group->rules.lease_ns);
    group->rules.retries_max = (uint32_t)sl_min_u64(rules->retries_max, group->rules.retries_max);
}

void judge_group_changed(judge_group *group, const judge_rules *rules)
{
    const uint32_t retries_max = group->rules.retries_max;

    if (group->changing) {
        drop_all(group);
        group->pinned_since = group->changed_turn = group->judge->now.turn;
    }
    group->changing = false;
    group->rules = *rules;
    group->rules.retries_max = (uint32_t)sl_min_u64(retries_max, rules->retries_max);
}

/* Another group under the same name: nothing of the old one counts. The calls of the old one are told so, or have been cut. */
void judge_group_recreated(judge_group *group, const judge_rules *rules)
{
    judge *const j = group->judge;
    char name[sizeof group->name];

    memcpy(name, group->name, sizeof name);
    judge_group_done(group);
    judge_group_init(j, group, name, rules);
}

/* A consumer's own Started comes before its own Stop. */
static void free_unstarted(judge_call *call, uint64_t turn)
{
    if (turn < call->hand_back_turn)
        call->hand_back_turn = turn;
    SL_LIST_EACH (node, &call->holds) {
        judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (hold->started_turn == JUDGE_NEVER && turn < hold->hand_back_turn)
            hold->hand_back_turn = turn;
    }
}

void judge_group_stop_sent(judge_group *group, bool hand_back)
{
    group->hand_back_wished |= hand_back;
}

void judge_group_resume_sent(judge_group *group)
{
    if (group->resume_turn == JUDGE_NEVER)
        group->resume_turn = group->judge->now.turn;
}

/* --- messages and leases --- */

judge_message *judge_message_find(judge_group *group, const sl_uuid *id)
{
    SL_LIST_EACH (node, &group->messages) {
        judge_message *const message = SL_CONTAINER_OF(node, judge_message, node);

        if (sl_uuid_equal(message->id, *id))
            return message;
    }
    return NULL;
}

judge_message *judge_message_get(judge_group *group, const sl_uuid *id)
{
    judge_message *message = judge_message_find(group, id);

    if (message != NULL)
        return message;
    message = made(sizeof *message);
    message->id = *id;
    message->number = ++group->judge->message_count;
    message->settled_turn = JUDGE_NEVER;
    message->first_turn = group->judge->now.turn;
    sl_list_init(&message->holds);
    sl_list_push_back(&group->messages, &message->node);
    return message;
}

static void note_earlier_claim(judge_hold *hold, const judge_claim *claim)
{
    hold->maybe_started |= claim->is_started;
    if (claim->extend_ns > 0)
        hold->expire_min_ns = sl_min_u64(hold->expire_min_ns, claim->sent_ns + claim->extend_ns);
    if (claim->kind == JUDGE_SOFT)
        return;
    hold->claim_turn = hold->said.turn;
    hold->retry_sent |= claim->kind == JUDGE_RETRY;
}

/* What was said of a message before the client had it (of an earlier delivery, say) may be heard when this one has left. */
static void note_earlier_claims(judge_hold *hold)
{
    SL_LIST_EACH (node, &hold->call->claims) {
        const judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->heard_turn >= hold->said.turn && claim->done_turn >= hold->said.turn &&
            sl_uuid_equal(claim->id, hold->message->id))
            note_earlier_claim(hold, claim);
    }
}

/* When the lease may have begun. A message that is given out once more may wait for the disk with its lease running: then nothing is
 * known but that the one before was told earlier. */
static uint64_t began_min_ns(const judge_call *call, const judge_message *message, judge_moment said)
{
    const judge_hold *const last =
        sl_list_empty(&message->holds)
            ? NULL
            : SL_CONTAINER_OF(sl_list_last(&message->holds), const judge_hold, of_message);

    return call->group->judge->reads_again && last != NULL ? sl_min_u64(last->said.since_ns, said.since_ns)
                                                           : said.since_ns;
}

judge_hold *judge_hold_add(judge_call *call, judge_message *message, judge_moment said)
{
    judge_hold *const hold = made(sizeof *hold);
    const uint64_t began_ns = began_min_ns(call, message, said);

    *hold = (judge_hold){ .message = message,
                          .call = call,
                          .said = said,
                          .expire_min_ns = began_ns + call->group->rules.lease_ns,
                          .expire_max_ns = JUDGE_NEVER,
                          .free_turn = JUDGE_NEVER,
                          .hand_back_turn = JUDGE_NEVER,
                          .claim_turn = JUDGE_NEVER,
                          .claim_sent_turn = JUDGE_NEVER,
                          .started_turn = JUDGE_NEVER };
    if (said.turn <= call->group->changed_turn)
        hold->expire_min_ns = sl_min_u64(hold->expire_min_ns, began_ns + call->group->old_lease_ns);
    if ((call->group->changing || said.turn <= call->group->changed_turn) && !call->extensions)
        hold->free_turn = said.turn;
    if (call->hand_back_turn != JUDGE_NEVER)
        hold->hand_back_turn = said.turn;
    sl_list_push_back(&message->holds, &hold->of_message);
    sl_list_push_back(&call->holds, &hold->of_call);
    note_earlier_claims(hold);
    return hold;
}

/* The newest one. */
judge_hold *judge_hold_find(judge_call *call, const sl_uuid *id)
{
    judge_hold *found = NULL;

    SL_LIST_EACH (node, &call->holds) {
        judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (sl_uuid_equal(hold->message->id, *id))
            found = hold;
    }
    return found;
}

/* Unless a hand-back has taken it away. */
bool judge_surely_held(const judge *j, const judge_hold *hold, judge_moment at)
{
    return !hold->uncertain && !hold->gone && hold->free_turn > at.turn && hold->claim_turn > at.turn &&
           at.mono_ns + j->forward_ns < hold->expire_min_ns;
}

bool judge_surely_holds(const judge *j, const judge_hold *hold, judge_moment at)
{
    return hold->hand_back_turn > at.turn && judge_surely_held(j, hold, at);
}

/* Of calls that ended, and of leases that ended while their deliveries waited for the disk. */
uint64_t judge_unseen_charges(const judge_group *group)
{
    const judge *const j = group->judge;
    const uint64_t lease_ns = group->rules.lease_ns;

    return group->unseen_charges + (j->busy_ns_longest + j->forward_ns < lease_ns
                                        ? 0
                                        : 1 + (j->busy_ns_total + j->forward_ns) / lease_ns);
}

/* --- what clients say --- */

/* Everything of dead calls of that name: what is listed may move here, the rest may go back at once. */
static void take_over(judge_call *call, const judge_options *options)
{
    judge_group *const group = call->group;
    const uint64_t turn = group->judge->now.turn;

    SL_LIST_EACH (node, &group->calls) {
        judge_call *const old = SL_CONTAINER_OF(node, judge_call, node);

        if (old == call || strcmp(old->name, call->name) != 0)
            continue;
        if (old->sent_started)
            call->sent_started = true;
        SL_LIST_EACH (held, &old->holds) {
            judge_hold *const hold = SL_CONTAINER_OF(held, judge_hold, of_call);

            if ((old->over || old->may_be_dropped) && call->extensions && hold->free_turn > turn)
                hold->free_turn = turn;
        }
    }
    for (size_t i = 0; i < options->resume_count; i++) {
        judge_hold *const hold =
            judge_hold_add(call, judge_message_get(group, &options->resume[i]), group->judge->now);

        hold->uncertain = hold->listed = true;
        hold->message->was_taken_over = true;
        (void)judge_claimed(call, JUDGE_SOFT, &options->resume[i]);
    }
}

judge_call *judge_call_opened(judge_group *group, const judge_options *options)
{
    judge_call *const call = made(sizeof *call);

    *call = (judge_call){ .group = group,
                          .number = ++group->judge->call_count,
                          .life = group->life,
                          .may_be_dropped = group->changing,
                          .extensions = options->extensions,
                          .window = options->window,
                          .reconnect_ns = options->reconnect_ns,
                          .stop_turn = JUDGE_NEVER,
                          .hand_back_turn = JUDGE_NEVER };
    snprintf(call->name, sizeof call->name, "%s", options->name);
    sl_list_init(&call->claims);
    sl_list_init(&call->holds);
    sl_list_push_back(&group->calls, &call->node);
    if (call->name[0] != 0)
        take_over(call, options);
    return call;
}

static void claim_for_ancestors(judge_call *call, const sl_uuid *id)
{
    const uint64_t turn = call->group->judge->now.turn;

    SL_LIST_EACH (node, &call->group->calls) {
        judge_call *const old = SL_CONTAINER_OF(node, judge_call, node);
        judge_hold *const hold =
            old == call || strcmp(old->name, call->name) != 0 ? NULL : judge_hold_find(old, id);

        if (hold == NULL || hold->free_turn <= turn)
            continue;
        hold->free_turn = turn;
        report_count(call->group->judge->report, SITUATION_ACK_BY_HEIR);
    }
}

static void note_claim(judge_claim *claim, judge_call *call)
{
    const judge *const j = call->group->judge;
    judge_hold *const hold = claim->hold;
    judge_message *const message = judge_message_find(call->group, &claim->id);

    if (message != NULL && (claim->kind == JUDGE_ACK || claim->kind == JUDGE_SKIP))
        message->may_be_settled = true;
    if (message != NULL && claim->kind == JUDGE_PARK)
        message->may_be_parked = true;
    if (hold == NULL)
        return;
    claim->sure = judge_surely_holds(j, hold, j->now);
    if (j->now.turn < hold->claim_turn)
        hold->claim_turn = j->now.turn;
    if (j->now.turn < hold->claim_sent_turn)
        hold->claim_sent_turn = j->now.turn;
    hold->retry_sent |= claim->kind == JUDGE_RETRY;
}

judge_claim *judge_claimed(judge_call *call, judge_claim_kind kind, const sl_uuid *id)
{
    judge_claim *const claim = made(sizeof *claim);

    *claim = (judge_claim){ .kind = kind,
                            .id = *id,
                            .hold = judge_hold_find(call, id),
                            .sent_turn = call->group->judge->now.turn,
                            .sent_ns = call->group->judge->now.mono_ns,
                            .heard_turn = JUDGE_NEVER,
                            .done_turn = JUDGE_NEVER };
    if (kind != JUDGE_SOFT) {
        note_claim(claim, call);
        if (!call->extensions && call->name[0] != 0)
            claim_for_ancestors(call, id);
    }
    sl_list_push_back(&call->claims, &claim->node);
    return claim;
}

void judge_started(judge_call *call, const sl_uuid *id)
{
    judge_hold *const hold = judge_hold_find(call, id);

    judge_claimed(call, JUDGE_SOFT, id)->is_started = true;
    call->sent_started = true;
    if (hold != NULL && hold->started_turn == JUDGE_NEVER)
        hold->started_turn = call->group->judge->now.turn;
}

void judge_extended(judge_call *call, const sl_uuid *id, uint64_t lease_ns)
{
    judge_hold *const hold = judge_hold_find(call, id);
    const judge *const j = call->group->judge;

    judge_claimed(call, JUDGE_SOFT, id)->extend_ns = lease_ns;
    if (hold == NULL)
        return;
    if (j->now.mono_ns + lease_ns < hold->expire_min_ns)
        hold->expire_min_ns = j->now.mono_ns + lease_ns;
    hold->extend_ns = lease_ns;
    hold->extend_sent_ns = j->now.mono_ns;
    hold->extend_sent_turn = j->now.turn;
}

void judge_stop_sent(judge_call *call, bool hand_back)
{
    const uint64_t turn = call->group->judge->now.turn;

    call->stops_sent++;
    if (call->stop_turn == JUDGE_NEVER)
        call->stop_turn = turn;
    if (!hand_back)
        return;
    call->hand_back_asked |= call->stopped_count == 0 && call->stops_sent == 1;
    call->hand_back_again |= call->stopped_count > 0 || call->stops_sent > 1;
    free_unstarted(call, turn);
}

void judge_half_closed(judge_call *call)
{
    call->half_closed = true;
    if (call->stop_turn == JUDGE_NEVER)
        call->stop_turn = call->group->judge->now.turn;
}

static void prove_ack(const judge_claim *claim)
{
    const judge_hold *const hold = claim->hold;
    const judge *const j = hold->call->group->judge;

    if (hold->free_turn > j->now.turn && hold->hand_back_turn > j->now.turn && !hold->gone &&
        j->now.mono_ns + j->forward_ns < hold->expire_min_ns && hold->message->settled_turn == JUDGE_NEVER)
        hold->message->settled_turn = j->now.turn;
}

/* An ack of a client that hears no answers counts when it was the holder. */
static void prove_acks(judge_call *call)
{
    const judge *const j = call->group->judge;

    SL_LIST_EACH (node, &call->claims) {
        judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->sent_turn == j->now.turn || claim->done_turn != JUDGE_NEVER)
            continue;
        if (claim->sure && (claim->kind == JUDGE_ACK || claim->kind == JUDGE_SKIP))
            prove_ack(claim);
        claim->done_turn = j->now.turn;
    }
}

/* A Started or Extend about a lease that is surely held was not in vain, so no answer comes. */
static void forget_accepted(judge_call *call)
{
    const judge *const j = call->group->judge;

    SL_LIST_EACH_SAFE (node, &call->claims) {
        judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->kind != JUDGE_SOFT || claim->heard_turn == JUDGE_NEVER ||
            claim->done_turn != JUDGE_NEVER || claim->hold == NULL ||
            !judge_surely_holds(j, claim->hold, j->now))
            continue;
        sl_list_remove(&claim->node);
        free(claim);
    }
}

void judge_flushed(judge_call *call)
{
    const judge *const j = call->group->judge;

    if (call->may_be_dropped)
        return; /* who says something to a call that is over is heard by nobody */
    if (!call->extensions)
        prove_acks(call);
    SL_LIST_EACH (node, &call->claims) {
        judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->sent_turn < j->now.turn && claim->heard_turn == JUDGE_NEVER)
            claim->heard_turn = j->now.turn;
    }
    forget_accepted(call);
    SL_LIST_EACH (node, &call->holds) {
        judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (!judge_surely_holds(j, hold, j->now))
            continue;
        if (hold->started_turn < j->now.turn) {
            hold->started_sure = true;
            if (call->started_sure_ns == 0)
                call->started_sure_ns = j->now.mono_ns;
        }
        if (hold->extend_ns > 0 && hold->extend_sent_turn < j->now.turn) {
            hold->expire_min_ns = hold->extend_sent_ns + hold->extend_ns;
            hold->extend_ns = 0;
            hold->was_extended = true;
        }
    }
}

/* --- how calls end --- */

/* What one call of a session says of starting holds for the others, also for those that come while it is there. */
static bool session_sent_started(const judge_call *call)
{
    SL_LIST_EACH (node, &call->group->calls) {
        const judge_call *const other = SL_CONTAINER_OF(node, judge_call, node);

        if (other->sent_started &&
            (other == call || (call->name[0] != 0 && strcmp(other->name, call->name) == 0)))
            return true;
    }
    return false;
}

/* Another call of that name is on its way: it may come right after the loss, and gives back what it does not list. */
static bool is_being_replaced(const judge_call *call)
{
    SL_LIST_EACH (node, &call->group->calls) {
        const judge_call *const other = SL_CONTAINER_OF(node, judge_call, node);

        if (other != call && !other->over && !other->confirmed && call->name[0] != 0 &&
            strcmp(other->name, call->name) == 0)
            return true;
    }
    return false;
}

/* What a lost connection means for one lease: started work waits for its consumer, the rest does not. */
static void lose(judge_hold *hold)
{
    const judge *const j = hold->call->group->judge;
    const judge_call *const call = hold->call;
    const bool waits =
        call->extensions && !is_being_replaced(call) && (hold->started_sure || !session_sent_started(call));
    const uint64_t until_ns = j->now.mono_ns + call->reconnect_ns;

    if (!waits && j->now.turn < hold->free_turn)
        hold->free_turn = j->now.turn;
    if (waits && until_ns < hold->expire_min_ns)
        hold->expire_min_ns = until_ns;
}

static void give_up(judge_hold *hold)
{
    if (hold->call->group->judge->now.turn < hold->free_turn)
        hold->free_turn = hold->call->group->judge->now.turn;
}

/* A delivery that its client never saw may have been charged like any other. */
static void note_unseen(judge_call *call)
{
    if (call->stopped)
        return;
    call->group->unseen = true;
    if (call->started_sure_ns == 0)
        call->group->unseen_charges += call->window + UNSEEN_AGAIN_MAX;
}

void judge_call_over(judge_call *call, judge_end how)
{
    if (call->over)
        return;
    call->over = true;
    call->over_turn = call->group->judge->now.turn;
    if (how != JUDGE_CUT || call->group->judge->now.since_ns != call->group->judge->now.mono_ns)
        note_unseen(call);
    SL_LIST_EACH (node, &call->holds) {
        judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (how == JUDGE_CUT || how == JUDGE_CUT_UNSEEN)
            lose(hold);
        else if (how == JUDGE_CANCELLED || how == JUDGE_REFUSED ||
                 (how == JUDGE_DROPPED && !call->extensions))
            give_up(hold);
        else if (judge_surely_holds(call->group->judge, hold, call->group->judge->now))
            report_count(call->group->judge->report, SITUATION_LEASES_KEPT);
    }
}

void judge_power_cut(judge_group *group)
{
    SL_LIST_EACH (node, &group->messages) {
        judge_message *const message = SL_CONTAINER_OF(node, judge_message, node);

        message->attempts_seen = message->attempts_sure;
        SL_LIST_EACH (held, &message->holds)
            SL_CONTAINER_OF(held, judge_hold, of_message)->gone = true;
    }
}

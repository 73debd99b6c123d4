/* tests/simserver/judge_answer.c — answers: what settled, what was lost, Stopped and Drained; and what is owed at the end. */
#include "judge_private.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    KILLS_MAX = 5 /* core/settings.c: a message that so many sessions died with is parked */
};

/* --- Settled --- */

static void excuse(judge_call *call, const sl_uuid *id)
{
    SL_LIST_EACH (node, &call->claims) {
        judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->done_turn == JUDGE_NEVER && sl_uuid_equal(claim->id, *id))
            claim->excused = true;
    }
}

static uint32_t count_pending(const judge_call *call, const sl_uuid *id)
{
    uint32_t count = 0;

    SL_LIST_EACH (node, &call->claims) {
        const judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        count += claim->done_turn == JUDGE_NEVER && sl_uuid_equal(claim->id, *id);
    }
    return count;
}

/* Of started, extend and resume only what is lost is answered, so a lost id may be about one of those or about an ack. */
static judge_claim *claim_find(judge_call *call, const sl_uuid *id, bool lost)
{
    judge_claim *soft = NULL, *hard = NULL;

    SL_LIST_EACH (node, &call->claims) {
        judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->done_turn != JUDGE_NEVER || !sl_uuid_equal(claim->id, *id))
            continue;
        if (claim->kind == JUDGE_SOFT)
            soft = soft == NULL ? claim : soft;
        else
            hard = hard == NULL ? claim : hard;
    }
    if (count_pending(call, id) > 1)
        excuse(call, id);
    return !lost || soft == NULL ? hard : soft;
}

/* Another consumer surely holds it. */
static bool was_taken(const judge_claim *claim, judge_moment said)
{
    const judge_hold *const own = claim->hold;

    SL_LIST_EACH (node, &own->message->holds) {
        const judge_hold *const other = SL_CONTAINER_OF(node, judge_hold, of_message);

        if (other->call != own->call && other->said.turn > own->said.turn &&
            other->said.turn < claim->sent_turn && judge_surely_holds(own->call->group->judge, other, said))
            return true;
    }
    return false;
}

/* Was it about something that was outstanding when the call stopped? An answer that could also be about an earlier delivery of
 * the same message counts as one that may be: all counts here are upper bounds. */
static uint32_t take_outstanding(const judge_claim *claim)
{
    judge_hold *const own = claim->hold;

    if (own->was_outstanding && !own->is_counted) {
        own->is_counted = true;
        return 1;
    }
    SL_LIST_EACH (node, &own->call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (hold->message == own->message && hold->was_outstanding)
            return 1;
    }
    return 0;
}

static void note_settled(judge_call *call, judge_claim *claim, judge_moment said)
{
    judge_message *const message = claim->hold->message;
    judge_hold *const hold = claim->hold;

    switch (claim->kind) {
    case JUDGE_ACK:
    case JUDGE_SKIP:
    case JUDGE_PARK:
        if (message->settled_turn < claim->sent_turn)
            JUDGE_FAIL(call, SETTLED_AGAIN, "m%u settled for c%u, and it was settled before", message->number,
                       call->number);
        if (said.turn < message->settled_turn)
            message->settled_turn = said.turn;
        call->settled_since += take_outstanding(claim);
        break;
    case JUDGE_RETRY:
        if (message->attempts_sure < hold->retry_count + 1)
            message->attempts_sure = hold->retry_count + 1;
        if (message->attempts_seen < message->attempts_sure)
            message->attempts_seen = message->attempts_sure;
        call->settled_since += take_outstanding(claim);
        break;
    case JUDGE_RELEASE:
        hold->released_sure = hold == judge_hold_find(call, &claim->id) &&
                              said.mono_ns + call->group->judge->forward_ns < hold->expire_min_ns;
        call->released_since += take_outstanding(claim);
        break;
    case JUDGE_SOFT: break;
    }
}

static void settled_one(judge_call *call, judge_claim *claim, judge_moment said)
{
    if (claim->hold == NULL) {
        JUDGE_FAIL(call, LOST, "a claim of c%u settled though it never had the message", call->number);
        return;
    }
    if (was_taken(claim, said))
        JUDGE_FAIL(call, LOST, "a claim of c%u on m%u settled though another had it by then", call->number,
                   claim->hold->message->number);
    if (!claim->excused) {
        note_settled(call, claim, said);
        return;
    }
    /* Which of several claims this is about is not known. */
    call->settled_since += take_outstanding(claim);
    call->released_since += take_outstanding(claim);
}

static void lost_one(judge_call *call, const judge_claim *claim, judge_moment said)
{
    judge *const j = call->group->judge;
    const judge_hold *const hold = claim->hold;

    if (claim->kind == JUDGE_SOFT) {
        if (hold != NULL)
            claim->hold->uncertain = true;
        return;
    }
    if (hold == NULL || !claim->sure || claim->excused)
        return;
    if (hold->free_turn > said.turn && hold->hand_back_turn > said.turn && !hold->gone && !hold->uncertain &&
        said.mono_ns + j->forward_ns < hold->expire_min_ns)
        JUDGE_FAIL(call, LOST, "a claim of c%u on m%u was lost though it held it", call->number,
                   hold->message->number);
}

void judge_got_settled(judge_call *call, const sl_wire_ids *ids, bool lost, judge_moment said)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id)) {
        judge_claim *const claim = claim_find(call, &id.uuid, lost);

        report_count(call->group->judge->report, lost ? SITUATION_LOST : SITUATION_SETTLED);
        if (claim == NULL) {
            JUDGE_FAIL(call, ANSWERS, "c%u was answered about something that it did not ask, or twice",
                       call->number);
            return;
        }
        if (lost)
            lost_one(call, claim, said);
        else
            settled_one(call, claim, said);
        claim->done_turn = call->group->judge->now.turn;
    }
}

/* --- Stopped --- */

static uint32_t mark_outstanding(judge_call *call, const sl_wire_ids *ids, judge_moment said)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;
    uint32_t count = 0;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id)) {
        judge_hold *const hold = judge_hold_find(call, &id.uuid);

        count++;
        if (hold == NULL) {
            /* A delivery waits for the disk, and when its lease ends meanwhile it never leaves. */
            if (said.since_ns == said.mono_ns && call->hand_back_turn == JUDGE_NEVER)
                JUDGE_FAIL(call, STOP, "Stopped of c%u lists what it never got", call->number);
            call->outstanding_unseen++;
            continue;
        }
        if (hold->claim_sent_turn < call->stop_turn && call->stop_turn != JUDGE_NEVER &&
            !call->stopped_by_other && !hold->uncertain && said.since_ns == said.mono_ns &&
            call->hand_back_turn == JUDGE_NEVER)
            JUDGE_FAIL(call, STOP, "Stopped of c%u lists m%u, which was claimed before the Stop",
                       call->number, hold->message->number);
        hold->was_outstanding = true;
    }
    return count;
}

static void check_nothing_missing(judge_call *call, judge_moment said)
{
    const judge *const j = call->group->judge;

    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        if (hold->said.turn <= said.turn && judge_surely_holds(j, hold, said) && !hold->was_outstanding)
            JUDGE_FAIL(call, STOP, "Stopped of c%u does not list m%u, which it holds", call->number,
                       hold->message->number);
    }
}

/* What may have been handed back by this stop: held before, unstarted, and not listed. */
static uint32_t count_handed_back(const judge_call *call)
{
    uint32_t count = 0;

    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        count += !hold->was_outstanding && hold->started_turn >= call->hand_back_turn;
    }
    return count;
}

/* And what surely was: the consumer asked for it, and nothing else can have happened to them. */
static uint32_t count_surely_handed_back(const judge_call *call, judge_moment said)
{
    uint32_t count = 0;

    if (!call->hand_back_asked || call->stopped_by_other)
        return 0;
    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        count += !hold->was_outstanding && hold->started_turn >= call->hand_back_turn &&
                 !hold->maybe_started && hold->said.turn <= said.turn &&
                 judge_surely_held(call->group->judge, hold, said);
    }
    return count;
}

static void count_stopped(judge_call *call, int32_t asked_by)
{
    report *const r = call->group->judge->report;

    report_count(r, asked_by == SL_WIRE_ASKED_BY_CONSUMER   ? SITUATION_STOPPED
                    : asked_by == SL_WIRE_ASKED_BY_OPERATOR ? SITUATION_STOPPED_BY_OPERATOR
                                                            : SITUATION_STOPPED_BY_SERVER);
    if (call->outstanding > 0)
        report_count(r, SITUATION_STOPPED_HOLDING);
}

static void first_stopped(judge_call *call, const sl_persistent_response *response, judge_moment said)
{
    call->stopped = true;
    call->drained = false;
    call->settled_since = call->released_since = call->outstanding_unseen = 0;
    call->stopped_by_other = response->stopped.asked_by != SL_WIRE_ASKED_BY_CONSUMER;
    if (!call->stopped_by_other && call->stop_turn == JUDGE_NEVER)
        JUDGE_FAIL(call, STOP, "c%u was stopped and nobody had asked", call->number);
    SL_LIST_EACH (node, &call->holds) {
        judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        hold->was_outstanding = hold->is_counted = false;
    }
    call->outstanding = mark_outstanding(call, &response->stopped.outstanding, said);
    /* What was leased and had not left when the stop came is handed back too. */
    call->handed_back_max = call->hand_back_turn == JUDGE_NEVER ? 0 : count_handed_back(call) + call->window;
    call->handed_back_min = count_surely_handed_back(call, said);
    if (response->stopped.in_flight != call->outstanding)
        JUDGE_FAIL(call, STOP, "Stopped of c%u says %u in flight and lists %u", call->number,
                   response->stopped.in_flight, call->outstanding);
    check_nothing_missing(call, said);
    count_stopped(call, response->stopped.asked_by);
}

void judge_got_stopped(judge_call *call, const sl_persistent_response *response, judge_moment said)
{
    const bool taken_back = call->stopped_by_other && call->group->resume_turn <= said.turn;

    call->stopped_count++;
    if (response->stopped.already_stopped && !call->stopped)
        JUDGE_FAIL(call, STOP, "the first Stopped of c%u says already_stopped", call->number);
    if (response->stopped.already_stopped && call->stops_sent == 0 && !call->half_closed)
        JUDGE_FAIL(call, STOP, "c%u was answered a Stop that it never sent", call->number);
    if (!response->stopped.already_stopped && call->stopped && !taken_back)
        JUDGE_FAIL(call, STOP, "c%u was stopped twice", call->number);
    if (response->stopped.already_stopped)
        report_count(call->group->judge->report, SITUATION_STOPPED_AGAIN);
    else
        first_stopped(call, response, said);
}

/* --- Drained --- */

static uint32_t count_may_have_ended(const judge_call *call, judge_moment said)
{
    const judge *const j = call->group->judge;
    uint32_t count = 0;

    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        count += hold->was_outstanding &&
                 (said.mono_ns + j->forward_ns >= hold->expire_min_ns || hold->uncertain || hold->gone);
    }
    return count;
}

static uint32_t count_unstarted(const judge_call *call)
{
    uint32_t count = 0;

    SL_LIST_EACH (node, &call->holds) {
        const judge_hold *const hold = SL_CONTAINER_OF(node, judge_hold, of_call);

        count += hold->was_outstanding &&
                 (hold->started_turn >= call->hand_back_turn || hold->hand_back_turn != JUDGE_NEVER);
    }
    return count;
}

void judge_got_drained(judge_call *call, const sl_persistent_response *response, judge_moment said)
{
    const uint32_t settled = response->drained.settled, released = response->drained.released,
                   lost = response->drained.lost, all = settled + released + lost;
    const uint32_t lost_max = count_may_have_ended(call, said) + call->outstanding_unseen;
    const uint32_t released_max =
        call->released_since + call->handed_back_max + (call->hand_back_again ? count_unstarted(call) : 0);

    report_count(call->group->judge->report, lost > 0 ? SITUATION_DRAINED_LATE : SITUATION_DRAINED);
    if (!call->stopped || call->drained)
        JUDGE_FAIL(call, STOP, "c%u was drained %s", call->number,
                   call->drained ? "twice" : "before it was stopped");
    call->drained = true;
    if (settled > call->settled_since || released > released_max || lost > lost_max)
        JUDGE_FAIL(call, STOP, "Drained of c%u says %u/%u/%u, at most %u/%u/%u can be", call->number, settled,
                   released, lost, call->settled_since, released_max, lost_max);
    if (all < call->outstanding + call->handed_back_min || all > call->outstanding + call->handed_back_max)
        JUDGE_FAIL(call, STOP, "Drained of c%u counts %u, and %u were outstanding", call->number, all,
                   call->outstanding);
}

/* --- everything that comes --- */

void judge_got(judge_call *call, const sl_persistent_response *response, judge_moment said)
{
    const bool is_answer = response->kind != SL_PERSISTENT_RESPONSE_EVENT &&
                           response->kind != SL_PERSISTENT_RESPONSE_CONFIRMATION;

    if (is_answer && !call->extensions)
        JUDGE_FAIL(call, WRONG, "c%u has no extensions and got message %d", call->number,
                   (int)response->kind);
    if (!call->confirmed && response->kind != SL_PERSISTENT_RESPONSE_CONFIRMATION)
        JUDGE_FAIL(call, WRONG, "c%u got message %d before its confirmation", call->number,
                   (int)response->kind);
    switch (response->kind) {
    case SL_PERSISTENT_RESPONSE_CONFIRMATION: call->confirmed = true; break;
    case SL_PERSISTENT_RESPONSE_EVENT: judge_got_event(call, &response->event, said); break;
    case SL_PERSISTENT_RESPONSE_STOPPED: judge_got_stopped(call, response, said); break;
    case SL_PERSISTENT_RESPONSE_DRAINED: judge_got_drained(call, response, said); break;
    case SL_PERSISTENT_RESPONSE_SETTLED:
        judge_got_settled(call, &response->settled.ids, false, said);
        judge_got_settled(call, &response->settled.lost, true, said);
        break;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED:
        if (response->stop_requested.hand_back_unstarted && !call->group->hand_back_wished)
            JUDGE_FAIL(call, STOP, "c%u was told of a wish that nobody had", call->number);
        break;
    case SL_PERSISTENT_RESPONSE_UNSET:
        JUDGE_FAIL(call, WRONG, "c%u got an empty message", call->number);
        break;
    }
}

/* --- the end --- */

/* Claims without an answer, less the answers that were taken to be about something else. */
static int count_open(const judge_call *call, const sl_uuid *id)
{
    int count = 0;

    SL_LIST_EACH (node, &call->claims) {
        const judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (!sl_uuid_equal(claim->id, *id))
            continue;
        count += claim->kind != JUDGE_SOFT && claim->done_turn == JUDGE_NEVER;
        count -= claim->kind == JUDGE_SOFT && claim->done_turn != JUDGE_NEVER;
    }
    return count;
}

void judge_check_answers(judge_call *call)
{
    if (call->over || !call->extensions || !call->confirmed)
        return;
    SL_LIST_EACH (node, &call->claims) {
        const judge_claim *const claim = SL_CONTAINER_OF(node, judge_claim, node);

        if (claim->kind != JUDGE_SOFT && claim->done_turn == JUDGE_NEVER && count_open(call, &claim->id) > 0)
            JUDGE_FAIL(call, ANSWERS, "c%u was never answered about m%u", call->number,
                       claim->hold == NULL ? 0 : claim->hold->message->number);
    }
    if (call->stop_turn != JUDGE_NEVER && !call->stopped)
        JUDGE_FAIL(call, STOP, "c%u asked to stop and was never told Stopped", call->number);
}

void judge_check_drained(judge_call *call)
{
    const bool taken_back = call->stopped_by_other && call->group->resume_turn != JUDGE_NEVER;

    if (!call->over && call->extensions && call->stopped && !call->drained && !taken_back)
        JUDGE_FAIL(call, STOP, "c%u was never told Drained", call->number);
}

static bool is_settled(const judge_message *message)
{
    return message->settled_turn != JUDGE_NEVER || message->may_be_settled || message->may_be_parked;
}

void judge_check_settled(judge_group *group, const sl_uuid *id, const char *what, bool is_parked)
{
    const judge_message *const message = judge_message_find(group, id);

    if (is_parked)
        return;
    if (message == NULL)
        report_fail(group->judge->report, REPORT_LIVENESS, "%s was delivered to nobody", what);
    else if (message->replay != NULL && !is_settled(message->replay))
        report_fail(group->judge->report, REPORT_LIVENESS, "%s (m%u) was replayed and then nobody settled it",
                    what, message->number);
    else if (message->replay == NULL && !is_settled(message))
        report_fail(group->judge->report, REPORT_LIVENESS, "%s (m%u) is not parked and nobody has settled it",
                    what, message->number);
}

/* Parked because somebody asked, or because its tries are used up. */
void judge_check_parked(judge_group *group, const sl_uuid *id, const char *what)
{
    const judge *const j = group->judge;
    const judge_message *const message = judge_message_find(group, id);
    const uint32_t limit = group->rules.retries_max < KILLS_MAX ? group->rules.retries_max : KILLS_MAX - 1;
    uint64_t charges_max = judge_unseen_charges(group);

    report_count(j->report, SITUATION_PARKED);
    if (message == NULL) {
        if (charges_max <= limit)
            report_fail(j->report, REPORT_CHARGED, "%s was parked and delivered to nobody", what);
        return;
    }
    SL_LIST_EACH (node, &message->holds)
        charges_max += judge_may_be_charged(j, SL_CONTAINER_OF(node, judge_hold, of_message), j->now);
    if (!message->may_be_parked && charges_max <= limit)
        report_fail(j->report, REPORT_CHARGED, "%s (m%u) was parked after %" PRIu64 " charges", what,
                    message->number, charges_max);
}

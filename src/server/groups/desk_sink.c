/* server/groups/desk_sink.c — effects, in the order in which the core has them: records join the log, answers wait for it.
 *
 * Which answers wait for what:
 *
 *      DELIVER, STOP_REQUESTED, STOPPED   the log is written up to here. They may leave before earlier Settled ones: a lease
 *                                         does not wait for a sync, and the order that counts (no event after Stopped) stays
 *      SETTLED, LOST, DRAINED             besides, the last record that promises something is durable
 *
 * A record promises something when it says that a message is settled, or when the answer behind it says so: a release is only a BACK,
 * but its consumer hears that it counts. */
#include "server/groups/desk_private.h"

#include <assert.h>

enum {
    IDS_FIRST = 16,
};

/* --- records --- */

/* Survives the death of the process but perhaps not a power cut. */
static bool may_be_lost(sl_effect_kind kind)
{
    switch (kind) {
    case SL_EFFECT_JOIN:
    case SL_EFFECT_GONE:
    case SL_EFFECT_LEASE:
    case SL_EFFECT_STARTED:
    case SL_EFFECT_EXTEND:
    case SL_EFFECT_MOVE:
    case SL_EFFECT_BACK:
    case SL_EFFECT_CHECKPOINT: /* what it says follows from what was settled, and that is durable */
        return true;
    case SL_EFFECT_EPOCH:
    case SL_EFFECT_SETTINGS:
    case SL_EFFECT_RULE:
    case SL_EFFECT_SETTLE:
    case SL_EFFECT_PARK:
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: break;
    }
    return false;
}

static bool make_place(sl_desk *desk)
{
    const uint32_t capacity = desk->record_capacity == 0 ? 64 : 2 * desk->record_capacity;
    desk_record *records;

    if (desk->record_count < desk->record_capacity)
        return true;
    records = sl_alloc_resize(desk->host->alloc, desk->records, desk->record_capacity * sizeof *records,
                              capacity * sizeof *records);
    if (records == NULL)
        return false;
    desk->records = records;
    desk->record_capacity = capacity;
    return true;
}

sl_err desk_record_add(sl_desk *desk, const desk_record *record)
{
    desk->emitted++;
    if (desk->state == DESK_FAILED || !make_place(desk)) {
        desk_fail(desk, SL_ERR_NOMEM, "record");
        desk_append_free(desk, record->append);
        desk_reason_release(desk, record->reason);
        return SL_ERR_NOMEM;
    }
    desk->records[desk->record_count++] = *record;
    if (!record->is_record || !may_be_lost(record->effect.kind))
        desk->wants_sync = desk->emitted;
    return SL_OK;
}

/* --- answers --- */

static desk_answer *answer_new(sl_seat *seat, const sl_effect *effect)
{
    sl_desk *const desk = seat->desk;
    desk_answer *const answer = desk_room_take(desk, &desk->answer_room, sizeof *answer);

    if (answer == NULL) {
        desk_fail(desk, SL_ERR_NOMEM, "answer");
        return NULL;
    }
    *answer = (desk_answer){ .seat = seat, .effect = *effect, .needs_written = desk->emitted };
    sl_list_init(&answer->queue);
    sl_list_push_back(&seat->answers, &answer->of_seat);
    return answer;
}

static void count_unsent(sl_seat *seat, int64_t ids)
{
    seat->unsent_ids = (uint32_t)(seat->unsent_ids + ids);
    seat->desk->host->unsent_ids = (uint64_t)((int64_t)seat->desk->host->unsent_ids + ids);
}

void desk_answer_free(desk_answer *answer)
{
    sl_desk *const desk = answer->seat->desk;

    sl_list_remove(&answer->queue);
    sl_list_remove(&answer->of_seat);
    if (answer->entry != NULL) {
        if (answer->entry->unsent == answer)
            answer->entry->unsent = NULL;
        desk_entry_release(desk, answer->entry);
    }
    if (answer->effect.kind == SL_EFFECT_SETTLED)
        count_unsent(answer->seat, -(int64_t)(answer->id_count + answer->lost_count));
    desk_give(desk->host->alloc, answer->ids, answer->id_capacity * sizeof *answer->ids);
    desk_room_give(desk, &desk->answer_room, answer, sizeof *answer);
}

static void answer_when_written(sl_desk *desk, uint64_t consumer, const sl_effect *effect)
{
    sl_seat *const seat = desk_seat_find(desk, consumer);
    desk_answer *const answer = seat == NULL ? NULL : answer_new(seat, effect);

    if (answer == NULL)
        return;
    if (effect->kind == SL_EFFECT_STOPPED)
        answer->unfilled = desk->stopped_unfilled = true;
    sl_list_push_back(&desk->written_answers, &answer->queue);
}

/* The last record may be one that need not be synced; now somebody is told that it counts. */
static void promise(sl_desk *desk)
{
    if (desk->record_count > 0 && desk->records[desk->record_count - 1].effect.kind == SL_EFFECT_BACK)
        desk->wants_sync = desk->emitted;
}

/* --- ids that settled or were lost --- */

static bool ids_have_place(sl_desk *desk, desk_answer *answer)
{
    const uint32_t used = answer->id_count + answer->lost_count;
    const uint32_t old = answer->id_capacity, capacity = old == 0 ? IDS_FIRST : 2 * old;
    sl_uuid *ids;

    if (used < old)
        return true;
    ids = sl_alloc_resize(desk->host->alloc, answer->ids, old * sizeof *ids, capacity * sizeof *ids);
    if (ids == NULL)
        return false;
    memmove(ids + capacity - answer->lost_count, ids + old - answer->lost_count,
            answer->lost_count * sizeof *ids);
    answer->ids = ids;
    answer->id_capacity = capacity;
    return true;
}

/* The last one of this desk, if it can take one more: same consumer, and nothing of it was submitted yet, so that no id waits
 * for a later batch because of another. */
static desk_answer *mergeable(sl_desk *desk, const sl_seat *seat)
{
    sl_list *const last = sl_list_last(&desk->durable_answers);
    desk_answer *const answer = last == NULL ? NULL : SL_CONTAINER_OF(last, desk_answer, queue);

    if (answer == NULL || answer->seat != seat || answer->effect.kind != SL_EFFECT_SETTLED)
        return NULL;
    if (answer->id_count + answer->lost_count >= DESK_MERGED_IDS_MAX)
        return NULL;
    return answer->needs_durable > desk->submitted || answer->needs_durable == desk->wants_sync ? answer
                                                                                                : NULL;
}

static void answer_claim(sl_desk *desk, uint64_t consumer, sl_uuid id, bool lost)
{
    sl_seat *const seat = desk_seat_find(desk, consumer);
    desk_answer *answer;

    if (seat == NULL) /* its call has ended: nobody is promised anything */
        return;
    if (!lost)
        promise(desk);
    if (!seat->extensions || desk->passes_over)
        return;
    answer = mergeable(desk, seat);
    if (answer == NULL) {
        answer =
            answer_new(seat, &(sl_effect){ .kind = SL_EFFECT_SETTLED, .settled = { .consumer = consumer } });
        if (answer == NULL)
            return;
        sl_list_push_back(&desk->durable_answers, &answer->queue);
    }
    answer->needs_written = desk->emitted;
    answer->needs_durable = desk->wants_sync;
    if (!ids_have_place(desk, answer)) {
        desk_fail(desk, SL_ERR_NOMEM, "ids");
        return;
    }
    count_unsent(seat, 1);
    if (lost)
        answer->ids[answer->id_capacity - ++answer->lost_count] = id;
    else
        answer->ids[answer->id_count++] = id;
}

static void answer_drained(sl_desk *desk, const sl_effect *effect)
{
    sl_seat *const seat = desk_seat_find(desk, effect->drained.consumer);
    desk_answer *answer;

    promise(desk);
    answer = seat == NULL ? NULL : answer_new(seat, effect);
    if (answer == NULL)
        return;
    answer->needs_durable = desk->wants_sync;
    sl_list_push_back(&desk->durable_answers, &answer->queue);
}

/* --- messages --- */

/* A delivery that has not left is of no use when the lease behind it is over; so what waits for a slow client is never more
 * than its window. */
static void unsend(desk_entry *entry)
{
    if (entry != NULL && entry->unsent != NULL)
        desk_answer_free(entry->unsent);
}

static void on_lease(sl_desk *desk, const sl_effect *effect)
{
    desk_entry *const entry = desk_entry_find(desk, effect->lease.place);

    if (entry != NULL) {
        entry->consumer = effect->lease.consumer;
        entry->leased_ns = desk_now_ns(desk);
    }
    desk->reader_may_go = true;
}

static void on_deliver(sl_desk *desk, const sl_effect *effect)
{
    desk_entry *const entry = desk_entry_find(desk, effect->deliver.place);
    sl_seat *const seat = desk_seat_find(desk, effect->deliver.consumer);
    desk_answer *answer;

    desk_rate_count(&desk->rate, desk_now_ns(desk));
    assert(entry != NULL); /* the core gives out only what was read */
    if (seat == NULL)
        return;
    desk_rate_count(&seat->rate, desk_now_ns(desk));
    answer = answer_new(seat, effect);
    if (answer == NULL)
        return;
    entry->holds++;
    entry->unsent = answer;
    answer->entry = entry;
    sl_list_push_back(&desk->written_answers, &answer->queue);
}

static void on_back(sl_desk *desk, const sl_effect *effect)
{
    unsend(desk_entry_find(desk, effect->back.place));
    desk_failure_back(desk, effect);
}

static void on_settled_message(sl_desk *desk, sl_place place)
{
    desk_entry *const entry = desk_entry_find(desk, place);
    sl_seat *const seat = entry == NULL ? NULL : desk_seat_find(desk, entry->consumer);

    desk->reader_may_go = true;
    if (entry == NULL)
        return;
    if (seat != NULL && seat->latencies_ms != NULL)
        desk_seat_latency(seat, desk_now_ns(desk) - entry->leased_ns);
    desk_entry_forget(desk, entry);
}

/* Before the record joins the log: a PARK needs the event that is forgotten then. */
static void note_message(sl_desk *desk, const sl_effect *effect)
{
    desk->has_begun = desk->has_begun || desk_record_is_of_stream(effect);
    switch (effect->kind) {
    case SL_EFFECT_JOIN: desk_seat_known(desk, effect->join.consumer); break;
    case SL_EFFECT_LEASE: on_lease(desk, effect); break;
    case SL_EFFECT_BACK: on_back(desk, effect); break;
    case SL_EFFECT_SETTLE:
        on_settled_message(desk, effect->settle.place);
        desk_failures_forget(desk, effect->settle.place);
        break;
    case SL_EFFECT_PARK: on_settled_message(desk, effect->park.place); break;
    case SL_EFFECT_CHECKPOINT:
        if (effect->checkpoint.lane == SL_LANE_MAIN) {
            desk->checkpoint = effect->checkpoint.below;
            desk->knows_checkpoint = true;
        }
        break;
    case SL_EFFECT_EPOCH:
    case SL_EFFECT_SETTINGS:
    case SL_EFFECT_RULE:
    case SL_EFFECT_GONE:
    case SL_EFFECT_STARTED:
    case SL_EFFECT_EXTEND:
    case SL_EFFECT_MOVE:
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: break;
    }
}

static void take_record(sl_desk *desk, const sl_effect *effect)
{
    desk_record record = { .is_record = true, .effect = *effect };

    if (effect->kind == SL_EFFECT_PARK)
        desk_park_link(desk, &record, desk_entry_find(desk, effect->park.place));
    note_message(desk, effect);
    (void)desk_record_add(desk, &record); /* or the desk has failed */
    if (effect->kind == SL_EFFECT_EPOCH && desk->state == DESK_LOADING)
        desk->opens_at =
            desk->emitted; /* what is due at once stands behind it, and may have to wait for a reader */
}

static void take_answer(sl_desk *desk, const sl_effect *effect)
{
    switch (effect->kind) {
    case SL_EFFECT_DELIVER: on_deliver(desk, effect); break;
    case SL_EFFECT_STOP_REQUESTED: answer_when_written(desk, effect->stop_requested.consumer, effect); break;
    case SL_EFFECT_STOPPED: answer_when_written(desk, effect->stopped.consumer, effect); break;
    case SL_EFFECT_SETTLED: answer_claim(desk, effect->settled.consumer, effect->settled.id, false); break;
    case SL_EFFECT_LOST: answer_claim(desk, effect->lost.consumer, effect->lost.id, true); break;
    case SL_EFFECT_DRAINED: answer_drained(desk, effect); break;
    case SL_EFFECT_EPOCH:
    case SL_EFFECT_SETTINGS:
    case SL_EFFECT_RULE:
    case SL_EFFECT_JOIN:
    case SL_EFFECT_GONE:
    case SL_EFFECT_LEASE:
    case SL_EFFECT_STARTED:
    case SL_EFFECT_EXTEND:
    case SL_EFFECT_MOVE:
    case SL_EFFECT_BACK:
    case SL_EFFECT_SETTLE:
    case SL_EFFECT_PARK:
    case SL_EFFECT_CHECKPOINT:
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_COUNT_: assert(false);
    }
}

/* Its call ends with this; that nothing is left of what it held is not its doing, and no drain to report. */
static bool is_end_of_call(const sl_desk *desk, const sl_effect *effect)
{
    return effect->kind == SL_EFFECT_DRAINED && effect->drained.consumer == desk->ending;
}

void desk_emit(void *ctx, const sl_effect *effect)
{
    sl_desk *const desk = ctx;

    if (is_end_of_call(desk, effect))
        return;
    if (sl_effect_is_record(effect->kind))
        take_record(desk, effect);
    else if (desk->state != DESK_FAILED)
        take_answer(desk, effect);
    desk_card_note(desk, effect); /* last: a card that is drained waits for what the answer has promised */
}

/* --- what a stopped consumer holds --- */

typedef struct filling {
    sl_desk *desk;
    desk_answer *answer;
} filling;

static void add_held(void *ctx, const sl_held *held)
{
    const filling *const f = ctx;

    if (ids_have_place(f->desk, f->answer))
        f->answer->ids[f->answer->id_count++] = held->id;
    else
        desk_fail(f->desk, SL_ERR_NOMEM, "outstanding");
}

/* The core may not be asked while it emits. Nothing that a stopped consumer holds changes between its STOPPED and the end of
 * the call, so this is what it held then. */
void desk_answers_fill(sl_desk *desk)
{
    desk->stopped_unfilled = false;
    SL_LIST_EACH (node, &desk->written_answers) {
        filling f = { desk, SL_CONTAINER_OF(node, desk_answer, queue) };

        if (!f.answer->unfilled)
            continue;
        f.answer->unfilled = false;
        (void)sl_group_held(desk->group, f.answer->seat->consumer, add_held, &f);
    }
}

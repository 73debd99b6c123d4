/* server/groups/desk_seat.c — consumers at the desk: they join, speak and leave, and what they are to hear leaves in order.
 *
 * A seat is a call that is open. The core knows consumers for longer than that (they may be away), so a seat finds its consumer by
 * the core's number, and what the core says to a consumer without a seat is dropped. */
#include "server/groups/desk_private.h"

#include "server/groups/operators.h"

#include "base/cleanup.h"

#include <assert.h>

enum {
    UNSENT_AT_A_TIME = 128,
    STUCK_RECORDS_MAX = 64 * 1024, /* that wait for room on the disk: beyond, nobody joins */
};

/* --- finding --- */

static uint64_t hash_of(const sl_desk *desk, uint64_t consumer)
{
    return sl_hash(desk->host->seed, &consumer, sizeof consumer);
}

sl_seat *desk_seat_find(const sl_desk *desk, uint64_t consumer)
{
    for (sl_map_node *node = sl_map_find(&desk->by_consumer, hash_of(desk, consumer)); node != NULL;
         node = sl_map_next(node)) {
        sl_seat *const seat = SL_CONTAINER_OF(node, sl_seat, by_consumer);

        if (seat->consumer == consumer)
            return seat;
    }
    return NULL;
}

void desk_seat_known(sl_desk *desk, uint64_t consumer)
{
    sl_seat *const seat = desk->joining;

    if (seat == NULL)
        return;
    desk->joining = NULL;
    desk_card_known(desk, SL_TAKE_PTR(desk->joining_card), consumer);
    seat->consumer = consumer;
    sl_map_insert(&desk->by_consumer, &seat->by_consumer, hash_of(desk, consumer));
}

static void grow(sl_desk *desk)
{
    sl_map_node **const old = desk->by_consumer.table;
    const size_t length = desk->by_consumer_length;
    sl_map_node **table;

    if (desk->by_consumer.count < length)
        return;
    table = sl_alloc_take(desk->host->alloc, 2 * length * sizeof *table);
    if (table == NULL)
        return; /* slower, not wrong */
    sl_map_resize(&desk->by_consumer, table, 2 * length);
    desk->by_consumer_length = 2 * length;
    desk_give(desk->host->alloc, old, length * sizeof *old);
}

/* --- made and gone --- */

static char *copy_text(const sl_desk *desk, sl_str text)
{
    char *const copy = sl_alloc_take(desk->host->alloc, text.bytes + 1);

    if (copy == NULL)
        return NULL;
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = 0;
    return copy;
}

static void give_texts(sl_seat *seat)
{
    const sl_alloc *const alloc = seat->desk->host->alloc;

    desk_give(alloc, seat->user, seat->user_bytes + 1);
    desk_give(alloc, seat->connection_name, seat->connection_name_bytes + 1);
    desk_give(alloc, seat->latencies_ms, DESK_LATENCIES * sizeof *seat->latencies_ms);
}

static sl_seat *seat_new(sl_desk *desk, const sl_seat_setup *setup)
{
    sl_seat *const seat = sl_alloc_take(desk->host->alloc, sizeof *seat);

    if (seat == NULL)
        return NULL;
    *seat = (sl_seat){ .desk = desk,
                       .id_form = setup->id_form,
                       .handler = setup->handler,
                       .ctx = setup->ctx,
                       .extensions = setup->join.extensions,
                       .window = setup->join.window,
                       .user = copy_text(desk, setup->user),
                       .user_bytes = setup->user.bytes,
                       .connection_name = copy_text(desk, setup->connection_name),
                       .connection_name_bytes = setup->connection_name.bytes };
    sl_list_init(&seat->node);
    sl_list_init(&seat->ready);
    sl_list_init(&seat->answers);
    sl_list_init(&seat->out);
    sl_list_init(&seat->later);
    if (desk->definition.settings.extra_statistics)
        seat->latencies_ms = sl_alloc_take(desk->host->alloc, DESK_LATENCIES * sizeof *seat->latencies_ms);
    if (seat->user != NULL && seat->connection_name != NULL)
        return seat;
    give_texts(seat);
    desk_give(desk->host->alloc, seat, sizeof *seat);
    return NULL;
}

/* From now on nothing is made for it. */
static void hide(sl_seat *seat)
{
    if (seat->consumer != 0)
        sl_map_remove(&seat->desk->by_consumer, &seat->by_consumer);
    seat->consumer = 0;
}

/* From inside of its own handler the memory stays until that has returned. */
static void seat_free(sl_seat *seat)
{
    sl_desk *const desk = seat->desk;

    while (!sl_list_empty(&seat->answers))
        desk_answer_free(SL_CONTAINER_OF(sl_list_first(&seat->answers), desk_answer, of_seat));
    desk_nacks_forget(seat);
    sl_list_remove(&seat->ready);
    if (!sl_list_empty(&seat->node)) {
        sl_list_remove(&seat->node);
        desk->seat_count--;
    }
    hide(seat);
    desk->held_count -= seat->was_held;
    seat->was_held = false;
    seat->gone = true;
    if (seat->busy)
        return;
    give_texts(seat);
    desk_give(desk->host->alloc, seat, sizeof *seat);
}

/* --- joining --- */

static sl_err may_join(const sl_desk *desk)
{
    const sl_err err = desk_may_act(desk);

    return err == SL_OK && desk->stuck_at > 0 && desk->record_count >= STUCK_RECORDS_MAX ? SL_ERR_FULL : err;
}

sl_err sl_desk_join(sl_desk *desk, const sl_seat_setup *setup, sl_seat **ret_seat)
{
    sl_err err = may_join(desk);
    sl_seat *const seat = err == SL_OK ? seat_new(desk, setup) : NULL;
    uint64_t consumer;

    if (err != SL_OK)
        return err;
    if (seat == NULL)
        return SL_ERR_NOMEM;
    desk->joining_card = desk_card_new(desk, setup);
    if (desk->joining_card == NULL) {
        seat_free(seat);
        return SL_ERR_NOMEM;
    }
    grow(desk);
    sl_list_push_back(&desk->seats, &seat->node);
    desk->seat_count++;
    desk->joining = seat;
    desk->readers[SL_LANE_MAIN].id_form = desk->readers[SL_LANE_PARKED].id_form = setup->id_form;
    desk_enter(desk);
    if (sl_operators_await(desk->host, setup->join.session))
        sl_group_hold(desk->group,
                      SL_HOLD_ALL); /* until the turn ends; desk_card_joined() stops it before that */
    err = sl_group_join(desk->group, &setup->join, desk_now_ns(desk), &consumer);
    desk_leave(desk);
    desk->joining = NULL;
    if (desk->joining_card != NULL) /* the core did not want it */
        desk_card_free(SL_TAKE_PTR(desk->joining_card));
    if (err == SL_OK && desk->state == DESK_FAILED)
        err = SL_ERR_NOMEM;
    if (err != SL_OK) {
        seat_free(seat);
        return err;
    }
    assert(seat->consumer == consumer);
    desk_card_joined(desk_card_find(desk, consumer));
    *ret_seat = seat;
    return SL_OK;
}

/* --- leaving --- */

typedef sl_err end_fn(sl_group *group, uint64_t consumer, uint64_t now_ns);

/* The deliveries that are still here, and are not to leave any more. */
static uint32_t take_unsent(sl_seat *seat, sl_claim claims[UNSENT_AT_A_TIME])
{
    uint32_t count = 0;

    SL_LIST_EACH_SAFE (node, &seat->answers) {
        desk_answer *const answer = SL_CONTAINER_OF(node, desk_answer, of_seat);

        if (answer->effect.kind != SL_EFFECT_DELIVER)
            continue;
        if (count == UNSENT_AT_A_TIME)
            break;
        claims[count++] = (sl_claim){ answer->effect.deliver.id, answer->effect.deliver.token };
        desk_answer_free(answer);
    }
    return count;
}

/* What never left the server cannot have been started, whatever else its consumer has (B2): it goes back uncharged. Nothing is given out
 * meanwhile, since the one who is leaving is still there to get it. */
static void give_back_unsent(sl_seat *seat, uint64_t consumer)
{
    sl_desk *const desk = seat->desk;
    sl_claim claims[UNSENT_AT_A_TIME];
    uint32_t count;

    desk->ending = consumer;
    sl_group_hold(desk->group, SL_HOLD_ALL);
    while ((count = take_unsent(seat, claims)) > 0)
        (void)sl_group_release(desk->group, consumer, claims, count, desk_now_ns(desk));
    sl_group_hold(desk->group, desk_hold(desk));
    desk->ending = 0;
}

/* The seat goes first, so that nothing is made for it any more, not even an answer to what is given back in its name. */
static void end(sl_seat *seat, end_fn *fn)
{
    sl_desk *const desk = seat->desk;
    const uint64_t consumer = seat->consumer;

    hide(seat);
    if (fn == NULL || desk->state == DESK_FAILED) {
        seat_free(seat);
        return;
    }
    desk_card_ends(desk, consumer, fn == sl_group_away);
    desk_enter(desk);
    give_back_unsent(seat, consumer);
    seat_free(seat);
    (void)fn(desk->group, consumer, desk_now_ns(desk));
    desk_leave(desk);
}

void sl_seat_leave(sl_seat *seat)
{
    end(seat, sl_group_leave);
}

void sl_seat_away(sl_seat *seat)
{
    end(seat, sl_group_away);
}

void sl_seat_close(sl_seat *seat)
{
    end(seat, NULL);
}

void desk_seats_drop(sl_desk *desk)
{
    while (!sl_list_empty(&desk->seats)) {
        sl_seat *const seat = SL_CONTAINER_OF(sl_list_first(&desk->seats), sl_seat, node);
        const sl_seat_handler *const handler = seat->handler;
        void *const ctx = seat->ctx;

        seat_free(seat);
        handler->dropped(ctx);
    }
}

/* Gates first, so that nothing of one is given to another who is about to be dropped too. */
static void shut_gates(sl_desk *desk)
{
    const sl_stop stop = { .asked_by = SL_ASKER_SERVER };

    SL_LIST_EACH (node, &desk->seats) {
        const sl_seat *const seat = SL_CONTAINER_OF(node, const sl_seat, node);

        (void)sl_group_stop(desk->group, seat->consumer, &stop, desk_now_ns(desk));
    }
}

/* The group goes on without its seats. A client without extensions takes the error that it gets for the end of all it held, as with
 * the real server: that is given out again at once, and uncharged, since nobody failed. The others come back under their
 * names and say what they still hold. */
void desk_seats_hand_back(sl_desk *desk)
{
    const sl_stop stop = { .asked_by = SL_ASKER_SERVER, .hand_back_unstarted = true };

    desk_enter(desk);
    SL_LIST_EACH (node, &desk->seats)
        desk_card_dropped(desk, SL_CONTAINER_OF(node, const sl_seat, node)->consumer);
    shut_gates(desk);
    SL_LIST_EACH (node, &desk->seats) {
        const sl_seat *const seat = SL_CONTAINER_OF(node, const sl_seat, node);

        if (seat->extensions)
            continue;
        (void)sl_group_stop(desk->group, seat->consumer, &stop, desk_now_ns(desk));
        (void)sl_group_leave(desk->group, seat->consumer, desk_now_ns(desk));
    }
    desk_leave(desk);
}

/* --- what they are to hear --- */

static bool say_stop_requested(sl_seat *seat, const sl_effect *effect)
{
    const uint64_t deadline_ns = effect->stop_requested.deadline_ns, now_ns = desk_now_ns(seat->desk);
    const uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 : 0;
    const sl_card *const card = desk_card_find(seat->desk, seat->consumer);
    const sl_str reason = card == NULL ? (sl_str){ 0 } : (sl_str){ card->reason, card->reason_bytes };

    return seat->handler->stop_requested(seat->ctx, effect, (uint32_t)sl_min_u64(left_ms, UINT32_MAX),
                                         reason);
}

/* A consumer counts from when it gets the event: what the disk or its own slowness took of the lease is gone. */
static sl_effect as_of_now(const sl_seat *seat, const desk_answer *answer)
{
    const uint64_t gone_ns = desk_now_ns(seat->desk) - answer->entry->leased_ns;
    sl_effect told = answer->effect;

    told.deliver.lease_ns -= sl_min_u64(told.deliver.lease_ns, gone_ns);
    return told;
}

/* Most consumers of a group want their ids in the same form. For one that does not the event is made anew. */
static bool say_event_in_other_form(sl_seat *seat, const desk_answer *answer, const sl_effect *told)
{
    const sl_alloc *const alloc = seat->desk->host->alloc;
    sl_wire_read_event event;
    uint8_t *body;
    size_t bytes;
    bool said;

    if (sl_persistent_body_decode(desk_entry_body(answer->entry), &event) != SL_OK)
        return true; /* cannot be: it was made here */
    event.event.id.form = event.link.id.form = seat->id_form;
    bytes = sl_persistent_body_size(&event);
    body = sl_alloc_take(alloc, bytes);
    if (body == NULL) {
        desk_fail(seat->desk, SL_ERR_NOMEM, "event");
        return true;
    }
    sl_persistent_body_encode(&event, body, bytes);
    said = seat->handler->event(seat->ctx, (sl_str){ (const char *)body, bytes }, told);
    desk_give(alloc, body, bytes);
    return said;
}

static bool say_event(sl_seat *seat, const desk_answer *answer)
{
    const sl_effect told = as_of_now(seat, answer);

    if (answer->entry->id_form != seat->id_form)
        return say_event_in_other_form(seat, answer, &told);
    return seat->handler->event(seat->ctx, desk_entry_body(answer->entry), &told);
}

static bool say_settled(sl_seat *seat, const desk_answer *answer)
{
    const sl_uuid *const lost =
        answer->ids == NULL ? NULL : answer->ids + answer->id_capacity - answer->lost_count;

    return seat->handler->settled(seat->ctx, answer->ids, answer->id_count, lost, answer->lost_count);
}

static bool say(sl_seat *seat, const desk_answer *answer)
{
    const sl_effect *const effect = &answer->effect;

    if (effect->kind == SL_EFFECT_DELIVER)
        return say_event(seat, answer);
    if (effect->kind == SL_EFFECT_SETTLED)
        return say_settled(seat, answer);
    if (effect->kind == SL_EFFECT_STOP_REQUESTED)
        return say_stop_requested(seat, effect);
    if (effect->kind == SL_EFFECT_STOPPED)
        return seat->handler->stopped(seat->ctx, effect, answer->ids, answer->id_count);
    assert(effect->kind == SL_EFFECT_DRAINED);
    return seat->handler->drained(seat->ctx, effect);
}

/* The answer is taken out before it is said: the handler may end the seat, and everything that waits for it. */
static bool say_first(sl_seat *seat)
{
    desk_answer *const answer = SL_CONTAINER_OF(sl_list_first(&seat->out), desk_answer, queue);
    bool said;

    sl_list_remove(&answer->queue);
    sl_list_remove(&answer->of_seat);
    if (answer->entry != NULL && answer->entry->unsent == answer)
        answer->entry->unsent = NULL;
    seat->busy = true;
    said = say(seat, answer);
    seat->busy = false;
    if (said || seat->gone) {
        if (said && answer->entry != NULL && answer->entry->unsent == NULL && seat->desk->lets_go)
            desk_entry_empty(seat->desk, answer->entry);
        desk_answer_free(answer);
        return said;
    }
    if (answer->entry != NULL)
        answer->entry->unsent = answer;
    sl_list_push_front(&seat->out, &answer->queue);
    sl_list_push_front(&seat->answers, &answer->of_seat);
    return false;
}

/* The event is not in its stream any more, so nobody can get it. */
static void pass_over(sl_seat *seat, desk_answer *answer)
{
    sl_desk *const desk = seat->desk;
    const sl_claim claim = { answer->effect.deliver.id, answer->effect.deliver.token };
    const sl_nack skip = { .action = SL_NACK_SKIP };
    const sl_list *const node = &answer->queue;

    desk->passes_over = true;
    desk_enter(desk);
    (void)sl_group_nack(desk->group, seat->consumer, &claim, 1, &skip, desk_now_ns(desk));
    desk_leave(desk);
    desk->passes_over = false;
    if (sl_list_first(&seat->out) == node) /* it was not his any more */
        desk_answer_free(answer);
}

/* False: what is to be said first is an event that is not here, or not yet. */
static bool has_first(sl_seat *seat)
{
    desk_answer *const answer = SL_CONTAINER_OF(sl_list_first(&seat->out), desk_answer, queue);
    sl_err err;

    if (answer->entry == NULL || answer->entry->body != NULL)
        return true;
    err = desk_fetch_event(seat->desk, answer->entry, seat->id_form);
    if (err == SL_ERR_NOT_FOUND)
        pass_over(seat, answer);
    else if (err != SL_OK)
        seat->waits_for_event = true;
    if (err != SL_OK && err != SL_ERR_NOT_FOUND && err != SL_ERR_AGAIN)
        desk_fail(seat->desk, err, "read again"); /* and so its seats are dropped */
    return err == SL_OK;
}

void desk_seat_push(sl_seat *seat)
{
    sl_desk *const desk = seat->desk;

    desk->lets_go = desk_fetch_is_sure(desk);
    while (!seat->gone && !seat->is_full && !seat->waits_for_event && !sl_list_empty(&seat->out))
        if (has_first(seat))
            seat->is_full = !say_first(seat) && !seat->gone;
    desk_fetch_rest(desk);
    if (seat->gone)
        seat_free(seat);
}

void sl_seat_room(sl_seat *seat)
{
    sl_desk *const desk = seat->desk;

    seat->is_full = false;
    if (sl_list_empty(&seat->out) || !sl_list_empty(&seat->ready))
        return;
    sl_list_push_back(&desk->ready_seats, &seat->ready);
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

/* --- how fast they may speak --- */

static bool is_held(const sl_seat *seat)
{
    const sl_desk *const desk = seat->desk;

    return desk->at_door || desk->refused != NULL || desk->stuck_at > 0 ||
           seat->unsent_ids >
               (desk->host->unsent_ids > DESK_UNSENT_IDS_SUM ? DESK_UNSENT_IDS_FEW : DESK_UNSENT_IDS_MAX);
}

bool sl_seat_is_held(const sl_seat *seat)
{
    return seat->was_held;
}

/* One after the other from the front, since each may end any seat. */
void desk_seats_go_on(sl_desk *desk)
{
    for (uint32_t left = desk->held_count; left > 0; left--) {
        sl_seat *found = NULL;

        SL_LIST_EACH (node, &desk->seats) {
            sl_seat *const seat = SL_CONTAINER_OF(node, sl_seat, node);

            if (seat->was_held && !is_held(seat)) {
                found = seat;
                break;
            }
        }
        if (found == NULL)
            return;
        found->was_held = false;
        desk->held_count--;
        found->handler->go_on(found->ctx);
    }
}

static void hold(sl_seat *seat)
{
    if (seat->was_held || !is_held(seat))
        return;
    seat->was_held = true;
    seat->desk->held_count++;
}

/* --- what they say --- */

/* A desk that failed drops its seats at the end of the turn; until then it does not listen. */
static bool begin(sl_seat *seat)
{
    if (seat->desk->state != DESK_OPEN)
        return false;
    desk_enter(seat->desk);
    return true;
}

static void finish(sl_seat *seat)
{
    desk_leave(seat->desk);
    hold(seat);
}

void sl_seat_ack(sl_seat *seat, const sl_claim *claims, uint32_t count)
{
    if (!begin(seat))
        return;
    (void)sl_group_ack(seat->desk->group, seat->consumer, claims, count, desk_now_ns(seat->desk));
    finish(seat);
}

void sl_seat_nack(sl_seat *seat, const sl_claim *claims, uint32_t count, const sl_nack *nack, sl_str reason)
{
    if (!begin(seat))
        return;
    if (desk_nack_later(seat, claims, count, nack, reason)) {
        finish(seat);
        return;
    }
    desk_nack_begin(seat->desk, claims, count, reason);
    (void)sl_group_nack(seat->desk->group, seat->consumer, claims, count, nack, desk_now_ns(seat->desk));
    desk_nack_end(seat->desk);
    finish(seat);
}

void sl_seat_release(sl_seat *seat, const sl_claim *claims, uint32_t count)
{
    if (!begin(seat))
        return;
    (void)sl_group_release(seat->desk->group, seat->consumer, claims, count, desk_now_ns(seat->desk));
    finish(seat);
}

void sl_seat_started(sl_seat *seat, const sl_claim *claims, uint32_t count)
{
    if (!begin(seat))
        return;
    (void)sl_group_started(seat->desk->group, seat->consumer, claims, count, desk_now_ns(seat->desk));
    finish(seat);
}

void sl_seat_extend(sl_seat *seat, const sl_claim *claims, uint32_t count, uint64_t lease_ns)
{
    if (!begin(seat))
        return;
    (void)sl_group_extend(seat->desk->group, seat->consumer, claims, count, lease_ns,
                          desk_now_ns(seat->desk));
    finish(seat);
}

void sl_seat_stop(sl_seat *seat, const sl_stop *stop)
{
    if (!begin(seat))
        return;
    (void)sl_group_stop(seat->desk->group, seat->consumer, stop, desk_now_ns(seat->desk));
    finish(seat);
}

bool sl_seat_is_stopped(const sl_seat *seat)
{
    sl_consumer_info info;

    return sl_group_consumer(seat->desk->group, seat->consumer, &info) == SL_OK &&
           info.state != SL_CONSUMER_ACTIVE;
}

void desk_seat_latency(sl_seat *seat, uint64_t ns)
{
    seat->latencies_ms[seat->latency_count++ % DESK_LATENCIES] =
        (uint32_t)sl_min_u64(ns / 1000000, UINT32_MAX);
}

/* client/consuming_answer.c — what a server sends, and what it means for what is held.
 *
 * A server is believed in what it says of leases, and in nothing else: ids that we do not know are counted and passed over (an
 * answer may come twice, once to `resume` and once to the ack), but what the contract forbids ends the call with a sentence.
 *
 * Answers to one id come in the order in which it was said, so the first that waits is the one that is meant. Events may overtake
 * earlier answers. */
#include "client/consuming.h"

#include "base/cleanup.h"

#include <string.h>

#define MS_NS   UINT64_C(1000000)
#define TICK_NS UINT64_C(100)

static bool broken(sl_consuming *c, const char *problem)
{
    c->problem = problem;
    return false;
}

static bool is_id(const sl_wire_id *id)
{
    return id->form == SL_WIRE_ID_STRUCTURED || id->form == SL_WIRE_ID_TEXT;
}

/* --- confirmation --- */

static bool take_confirmation(sl_consuming *c)
{
    if (c->is_confirmed)
        return broken(c, "the server confirmed the subscription twice");
    c->is_confirmed = true;
    c->nth++;
    if (c->handler.connected != NULL)
        c->handler.connected(c->ctx, &(sl_consumer_connected){ .nth = c->nth,
                                                               .extensions = c->extensions,
                                                               .resumed = c->resumed_count,
                                                               .keeps_delays = c->keeps_delays });
    return true;
}

/* --- events --- */

static sl_consumer_bytes view(sl_str text)
{
    return (sl_consumer_bytes){ text.data, text.bytes };
}

static sl_consumer_id public_id(sl_uuid uuid)
{
    sl_consumer_id id;

    memcpy(id.bytes, uuid.bytes, sizeof id.bytes);
    return id;
}

/* What it is known by: the link if there is one. */
static const sl_wire_recorded *named(const sl_wire_read_event *event)
{
    return event->has_link ? &event->link : &event->event;
}

static void show_event(sl_consuming *c, const sl_wire_read_event *from)
{
    const sl_wire_recorded *const event = &from->event;
    sl_consumer_event shown = { .id = public_id(named(from)->id.uuid),
                                .commit_position = named(from)->commit_position,
                                .prepare_position = named(from)->prepare_position,
                                .retry_count = from->retry_count < 0 ? 0 : (uint32_t)from->retry_count,
                                .lease_token = from->lease_token,
                                .lease_ms = from->lease_ms < 0 ? 0 : (uint32_t)from->lease_ms };

    shown.has_event = from->has_event;
    if (from->has_event) {
        shown.event_id = public_id(event->id.uuid);
        shown.stream = view(event->stream);
        shown.type = view(event->type);
        shown.content_type = view(event->content_type);
        shown.data = view(event->data);
        shown.metadata = view(event->custom_metadata);
        shown.revision = event->revision;
        shown.created_ns =
            event->created_ticks > UINT64_MAX / TICK_NS ? UINT64_MAX : event->created_ticks * TICK_NS;
    }
    shown.has_link = from->has_link;
    if (from->has_link) {
        shown.link_stream = view(from->link.stream);
        shown.link_revision = from->link.revision;
    }
    c->handler.event(c->ctx, &shown);
}

static uint64_t place_of(const sl_consuming *c, const sl_wire_recorded *recorded)
{
    return sl_hash(c->holding.seed, recorded->stream.data, recorded->stream.bytes) ^
           recorded->revision * UINT64_C(0x9e3779b97f4a7c15);
}

static void lease(const sl_wire_read_event *event, sl_holding_entry *held, uint64_t now_ns)
{
    const uint64_t lease_ms = event->lease_ms < 0 ? 0 : (uint64_t)event->lease_ms;

    held->token = event->lease_token;
    held->lease_ms = (uint32_t)lease_ms;
    held->lease_until_ns = sl_add_sat_u64(now_ns, lease_ms * MS_NS);
}

/* Makes room when there is none: for what only we remember, then for what ran out while it was worked on. */
static sl_holding_entry *add(sl_consuming *c, const sl_wire_read_event *event, uint64_t now_ns)
{
    sl_holding *const holding = &c->holding;
    sl_holding_entry *old, *held;

    if (holding->count == holding->capacity) {
        old = sl_holding_find_ghost(holding);
        if (old == NULL)
            old = sl_holding_find_ended(holding, now_ns);
        if (old != NULL)
            consuming_finish(c, old, SL_CONSUMER_LOST);
    }
    held = sl_holding_add(holding, named(event)->id.uuid, place_of(c, named(event)));
    if (held != NULL)
        lease(event, held, now_ns);
    return held;
}

/* Given to nobody: it goes back, or is acked because the work was done before. */
static bool take_for_itself(sl_consuming *c, const sl_wire_read_event *event, sl_holding_verb verb,
                            sl_holding_words *words, uint64_t now_ns)
{
    sl_holding_entry *const held = add(c, event, now_ns);

    if (held == NULL)
        return broken(c, "the server sent more events than the window allows");
    held->is_own = true;
    if (verb != SL_HOLDING_NONE)
        sl_holding_say(&c->holding, held, verb, words);
    return true;
}

static bool is_park(const sl_holding_entry *known)
{
    return known->verb == SL_HOLDING_NACK && known->words != NULL &&
           known->words->action == SL_WIRE_NACK_PARK;
}

/* It was acked or parked, and the answer is on its way or never came. A server whose disk is full lets a park wait for longer than a
 * lease. */
static bool is_done_with(const sl_holding_entry *known)
{
    const bool is_final = known->verb == SL_HOLDING_ACK || is_park(known);

    return (is_final || known->is_recalled) && (known->is_said || known->is_ghost);
}

/* It is still held, or what is to be said of it has not left yet: that will be about the new lease. */
static bool is_still_here(const sl_holding_entry *known)
{
    return !known->is_said && !known->is_ghost;
}

static void renew(sl_consuming *c, const sl_wire_read_event *event, sl_holding_entry *known, uint64_t now_ns)
{
    lease(event, known, now_ns);
    known->is_renewed = known->is_resumed;
    if (known->started)
        sl_holding_start(&c->holding, known); /* a new lease is not marked yet */
    if (known->is_recalled)
        sl_holding_say_again(&c->holding, known); /* a server without extensions hears of it only now */
    c->renewed_count++;
}

static bool give_event(sl_consuming *c, const sl_wire_read_event *event, uint64_t now_ns)
{
    sl_holding_entry *const held = add(c, event, now_ns);

    if (held == NULL)
        return broken(c, "the server sent more events than the window allows");
    show_event(c, event);
    return true;
}

static bool place_new(sl_consuming *c, const sl_wire_read_event *event, uint64_t now_ns)
{
    if (c->stop_wanted && (!c->extensions || c->joined_stopped || c->hand_back_wanted))
        c->dropped_count++;
    if (c->stop_wanted && !c->extensions)
        return true; /* when the call ends it goes to somebody else */
    if (c->stop_wanted && c->joined_stopped)
        return take_for_itself(c, event, SL_HOLDING_RELEASE, NULL, now_ns);
    if (c->stop_wanted && c->hand_back_wanted)
        return take_for_itself(c, event, SL_HOLDING_NONE, NULL, now_ns); /* Stop hands it back */
    return give_event(c, event, now_ns);
}

/* It was to be tried again, and the connection broke before the answer: now it comes again, so the word has counted, or the lost
 * connection in its place. Said once more, it would be a second failure of one try. */
static bool is_retry_that_counted(const sl_holding_entry *known)
{
    return known->verb == SL_HOLDING_NACK && known->was_said && is_still_here(known) && !known->is_recalled &&
           (known->words == NULL || known->words->action == SL_WIRE_NACK_RETRY);
}

static bool give_retry(sl_consuming *c, const sl_wire_read_event *event, sl_holding_entry *known,
                       uint64_t now_ns)
{
    const bool is_resumed = known->is_resumed;

    consuming_finish(c, known, SL_CONSUMER_UNSURE);
    if (!place_new(c, event, now_ns))
        return false;
    known = sl_holding_find_place(&c->holding, named(event)->id.uuid, place_of(c, named(event)));
    if (known != NULL)
        known->is_resumed = known->is_renewed = is_resumed;
    return true;
}

/* What becomes of an event that the contract allows. */
static bool place_event(sl_consuming *c, const sl_wire_read_event *event, uint64_t now_ns)
{
    const sl_uuid id = named(event)->id.uuid;
    const uint64_t place = place_of(c, named(event));
    sl_holding_entry *known = consuming_recalled_find(c, event, id, place);

    if (known == NULL)
        known = sl_holding_find_place(&c->holding, id, place);
    if (known != NULL && is_retry_that_counted(known))
        return give_retry(c, event, known, now_ns);
    if (known != NULL && is_done_with(known)) {
        c->absorbed_count++;
        known->is_renewed = known->is_resumed;
        return take_for_itself(c, event, known->verb, known->words, now_ns);
    }
    if (known != NULL && is_still_here(known)) {
        renew(c, event, known, now_ns);
        return true;
    }
    return place_new(c, event, now_ns);
}

static bool take_event(sl_consuming *c, const sl_wire_read_event *event, uint64_t now_ns)
{
    if (c->is_drained && c->extensions)
        return broken(c, "the server sent an event after it had said that this consumer is drained");
    if (c->is_stopped && c->stopped_by == SL_CONSUMER_BY_ITSELF) /* all other stops can be taken back */
        return broken(c, "the server sent an event after it had said that this consumer is stopped");
    if ((!event->has_event && !event->has_link) || !is_id(&named(event)->id))
        return broken(c, "the server sent an event without an id");
    if (c->is_stopped) {
        c->is_stopped = false;
        if (c->handler.resumed != NULL)
            c->handler.resumed(c->ctx);
    }
    return place_event(c, event, now_ns);
}

/* --- answers --- */

static void take_settled_id(sl_consuming *c, sl_uuid id)
{
    sl_holding_entry *held = sl_holding_find_said(&c->holding, id);

    if (held != NULL) {
        consuming_finish(c, held,
                         held->verb == SL_HOLDING_RELEASE ? SL_CONSUMER_RELEASED : SL_CONSUMER_SETTLED);
        return;
    }
    c->unexpected_count++;
    held = sl_holding_find_held(&c->holding, id);
    if (held != NULL)
        consuming_finish(c, held, SL_CONSUMER_LOST); /* settled, and not by us */
}

/* An ack that was sent on two connections: the first may have counted. It is remembered, since if it did not, the message may be
 * on its way to us again. */
static void lost_said(sl_consuming *c, sl_holding_entry *held)
{
    const bool is_unsure = held->was_said && held->verb != SL_HOLDING_RELEASE;
    const bool is_told = !held->is_own && c->handler.settled != NULL;

    if (!is_unsure || (held->verb != SL_HOLDING_ACK && !held->is_recalled)) {
        consuming_finish(c, held, is_unsure ? SL_CONSUMER_UNSURE : SL_CONSUMER_LOST);
        return;
    }
    c->since_stop.lost += c->stop_wanted && !held->is_own;
    sl_holding_bury(&c->holding, held);
    if (is_told)
        c->handler.settled(c->ctx, public_id(held->id), SL_CONSUMER_UNSURE);
}

/* It was resumed in vain, but it came to us again before we were told so: the answer is about the lease before. */
static bool is_about_former_lease(sl_holding_entry *held)
{
    const bool is_former = held->is_resumed && held->is_renewed;

    held->is_resumed = held->is_renewed = false;
    return is_former;
}

static void take_lost_id(sl_consuming *c, sl_uuid id)
{
    sl_holding_entry *const said = sl_holding_find_said(&c->holding, id);
    sl_holding_entry *const held = said != NULL ? said : sl_holding_find_held(&c->holding, id);

    if (held == NULL)
        c->unexpected_count++;
    else if (is_about_former_lease(held))
        return;
    else if (said != NULL)
        lost_said(c, held);
    else
        consuming_finish(c, held, SL_CONSUMER_LOST);
}

static bool take_settled(sl_consuming *c, const sl_persistent_response *response)
{
    const sl_wire_ids *const lists[] = { &response->settled.ids, &response->settled.lost };

    if (lists[0]->wrong_count + lists[1]->wrong_count > 0)
        return broken(c, "the server answered about something that is not an id");
    for (size_t i = 0; i < SL_COUNT_OF(lists); i++) {
        sl_wire_walk walk = sl_wire_items_walk(&lists[i]->items);
        sl_wire_id id;

        while (lists[i]->count > 0 && sl_wire_ids_next(&walk, &id))
            (i == 0 ? take_settled_id : take_lost_id)(c, id.uuid);
    }
    return true;
}

/* --- stop --- */

/* Held here and not there: handed back, if that was asked for, else run out. Of several with one id a hand-back leaves what was begun. */
static void compare_outstanding(sl_consuming *c, const sl_wire_ids *outstanding)
{
    sl_wire_walk walk = sl_wire_items_walk(&outstanding->items);
    sl_wire_id id;

    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        held->is_mark = held->verb == SL_HOLDING_NONE;
    }
    while (outstanding->count > 0 && sl_wire_ids_next(&walk, &id)) {
        sl_holding_entry *const held = sl_holding_find_marked(&c->holding, id.uuid, c->hand_back_said);
        if (held != NULL)
            held->is_mark = false;
    }
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_mark)
            consuming_finish(c, held,
                             c->hand_back_said && !held->started ? SL_CONSUMER_RELEASED : SL_CONSUMER_LOST);
    }
}

static sl_consumer_asker asker(int32_t asked_by)
{
    if (asked_by == SL_WIRE_ASKED_BY_CONSUMER)
        return SL_CONSUMER_BY_ITSELF;
    return asked_by == SL_WIRE_ASKED_BY_SERVER ? SL_CONSUMER_BY_SERVER : SL_CONSUMER_BY_OPERATOR;
}

static bool take_stopped(sl_consuming *c, const sl_persistent_response *response)
{
    const sl_consumer_stopped stopped = { .asked_by = asker(response->stopped.asked_by),
                                          .already_stopped = response->stopped.already_stopped,
                                          .in_flight = response->stopped.in_flight };
    const bool is_ours = stopped.asked_by == SL_CONSUMER_BY_ITSELF || stopped.already_stopped;

    if (is_ours && !c->stop_said)
        return broken(c, "the server answered a Stop that was never sent");
    if (response->stopped.outstanding.wrong_count > 0)
        return broken(c, "the server listed something outstanding that is not an id");
    c->is_stopped = true;
    c->stopped_by = is_ours ? SL_CONSUMER_BY_ITSELF : stopped.asked_by;
    if (response->stopped.outstanding.count >= stopped.in_flight)
        compare_outstanding(c, &response->stopped.outstanding);
    if (!is_ours || !c->joined_stopped || !c->stop_told)
        consuming_tell_stopped(c, &stopped);
    if (is_ours && c->is_drained && !c->drained_told)
        consuming_tell_drained(
            c, &c->since_stop); /* an operator was faster, and Drained comes once for a call */
    return true;
}

/* What is still held is not ours any more: its lease has run out. */
static void lose_held(sl_consuming *c)
{
    SL_LIST_EACH_SAFE (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->verb == SL_HOLDING_NONE)
            consuming_finish(c, held, SL_CONSUMER_LOST);
    }
}

static bool take_drained(sl_consuming *c, const sl_persistent_response *response)
{
    const sl_consumer_drained drained = { .settled = response->drained.settled,
                                          .released = response->drained.released,
                                          .lost = response->drained.lost };

    if (!c->is_stopped || c->is_drained)
        return broken(c, c->is_drained
                             ? "the server said twice that this consumer is drained"
                             : "the server said that this consumer is drained, but not that it is stopped");
    c->is_drained = true;
    lose_held(c);
    if (!c->drained_told)
        consuming_tell_drained(c, c->joined_stopped ? &c->since_stop : &drained);
    return true;
}

/* What others wish is done as far as this side can know it: who has never marked a start may be working on everything it was
 * given. Our own Stop with a hand-back takes along what it is said for. */
static void release_unstarted(sl_consuming *c)
{
    if (!c->says_started && !c->sends_started)
        return;
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);

        if (held->verb == SL_HOLDING_NONE && !held->started && !held->is_own)
            sl_holding_say(&c->holding, held, SL_HOLDING_RELEASE, NULL);
    }
}

static bool take_stop_requested(sl_consuming *c, const sl_persistent_response *response)
{
    if (response->stop_requested.hand_back_unstarted && !c->hand_back_wanted)
        release_unstarted(c);
    if (c->handler.stop_requested != NULL)
        c->handler.stop_requested(c->ctx, view(response->stop_requested.reason),
                                  response->stop_requested.deadline_ms);
    return true;
}

/* --- all of it --- */

/* What a later server may say besides is passed over. */
static bool take(sl_consuming *c, const sl_persistent_response *response, uint64_t now_ns)
{
    switch (response->kind) {
    case SL_PERSISTENT_RESPONSE_UNSET: return true;
    case SL_PERSISTENT_RESPONSE_EVENT: return take_event(c, &response->event, now_ns);
    case SL_PERSISTENT_RESPONSE_CONFIRMATION: return take_confirmation(c);
    case SL_PERSISTENT_RESPONSE_STOPPED: return take_stopped(c, response);
    case SL_PERSISTENT_RESPONSE_DRAINED: return take_drained(c, response);
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED: return take_stop_requested(c, response);
    case SL_PERSISTENT_RESPONSE_SETTLED: return take_settled(c, response);
    }
    return true;
}

static bool is_extension(sl_persistent_response_kind kind)
{
    return kind != SL_PERSISTENT_RESPONSE_UNSET && kind != SL_PERSISTENT_RESPONSE_EVENT &&
           kind != SL_PERSISTENT_RESPONSE_CONFIRMATION;
}

bool sl_consuming_receive(sl_consuming *c, sl_str message, uint64_t now_ns)
{
    sl_persistent_response response;
    const char *reason = "";

    if (sl_persistent_response_decode(message, &response, &reason) != SL_OK)
        return broken(c, "the server sent a message that cannot be understood");
    if (!c->is_greeted)
        return broken(c, "the server answered before anything was asked");
    if (!c->is_confirmed && response.kind != SL_PERSISTENT_RESPONSE_CONFIRMATION &&
        response.kind != SL_PERSISTENT_RESPONSE_UNSET)
        return broken(c, "the server did not confirm the subscription first");
    if (is_extension(response.kind) && !c->extensions)
        return broken(c, "the server answered with an extension that was not asked for");
    return take(c, &response, now_ns);
}

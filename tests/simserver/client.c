/* tests/simserver/client.c — a consumer: what it says is drawn, what it hears goes to the judge.
 *
 * It is honest: it claims what it has got, lists what it still holds, and starts nothing while it is disconnected. Apart from that it
 * does anything, at any time. */
#include "world.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_PATH "/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read"

static judge_group *judged_group(const client *c)
{
    return &c->world->groups[c->group].judged;
}

void client_init(client *c, world *w, uint32_t number)
{
    sim_rng *const rng = &w->rng;

    *c = (client){ .world = w, .number = number };
    c->peer.world = w;
    network_pipe_init(&c->peer.up);
    network_pipe_init(&c->peer.down);
    c->group = sim_pick(rng, w->group_count);
    c->extensions = sim_chance(rng, 75);
    c->has_name = sim_chance(rng, 70);
    c->sends_started = c->extensions && sim_chance(rng, 60);
    c->is_steady = sim_chance(rng, 30);
    c->window = (uint32_t)sim_between(rng, 1, sim_chance(rng, 50) ? 4 : 20);
    c->reconnect_ms = (uint32_t)sim_between(rng, 50, 1500);
    c->id_form = sim_chance(rng, 50) ? SL_WIRE_ID_STRUCTURED : SL_WIRE_ID_TEXT;
    c->joins_at_turn = sim_pick(rng, 30);
    snprintf(c->name, sizeof c->name, "w%u", number / 2 * 2); /* two of a name, now and then */
    if (sim_chance(rng, 80))
        snprintf(c->name, sizeof c->name, "n%u", number);
    snprintf(c->label, sizeof c->label, "%u", sim_pick(rng, 2));
}

/* --- what it holds --- */

static void hold(client *c, const sl_uuid *id)
{
    if (c->held_count == WORLD_HELD_MAX)
        c->held_count = 0; /* it forgets, and leases run out */
    c->held[c->held_count++] = (client_held){ .id = *id };
}

static void drop_at(client *c, uint32_t index)
{
    memmove(&c->held[index], &c->held[index + 1], (c->held_count - index - 1) * sizeof c->held[0]);
    c->held_count--;
}

static void drop(client *c, const sl_uuid *id)
{
    for (uint32_t i = 0; i < c->held_count; i++)
        if (sl_uuid_equal(c->held[i].id, *id)) {
            drop_at(c, i);
            return;
        }
}

static void drop_ids(client *c, const sl_wire_ids *ids)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    sl_wire_id id;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id))
        drop(c, &id.uuid);
}

/* --- what it hears --- */

static void say_event(client *c, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const recorded = event->has_link ? &event->link : &event->event;
    const judge_message *const message = judge_message_find(judged_group(c), &recorded->id.uuid);

    report_say(&c->world->report, "  c%u <- event m%u %.*s@%ju #%d token %jx (said in turn %ju)",
               c->judged->number, message == NULL ? 0 : message->number, (int)event->event.stream.bytes,
               event->event.stream.data, (uintmax_t)event->event.revision, event->retry_count,
               (uintmax_t)event->lease_token, (uintmax_t)c->peer.said.turn);
}

static void say_ids(client *c, const char *word, const sl_wire_ids *ids)
{
    sl_wire_walk walk = sl_wire_items_walk(&ids->items);
    char words[160] = "";
    sl_wire_id id;

    while (ids->count > 0 && sl_wire_ids_next(&walk, &id) && strlen(words) < 140) {
        const judge_message *const message = judge_message_find(judged_group(c), &id.uuid);

        snprintf(words + strlen(words), sizeof words - strlen(words), " m%u",
                 message == NULL ? 0 : message->number);
    }
    if (ids->count > 0)
        report_say(&c->world->report, "  c%u <- %s%s", c->judged->number, word, words);
}

static void say_response(client *c, const sl_persistent_response *response)
{
    report *const r = &c->world->report;
    const uint32_t number = c->judged->number;

    switch (response->kind) {
    case SL_PERSISTENT_RESPONSE_EVENT: say_event(c, &response->event); break;
    case SL_PERSISTENT_RESPONSE_CONFIRMATION: report_say(r, "  c%u <- confirmed", number); break;
    case SL_PERSISTENT_RESPONSE_STOPPED:
        report_say(r, "  c%u <- stopped, %u in flight%s, by %d", number, response->stopped.in_flight,
                   response->stopped.already_stopped ? ", already" : "", response->stopped.asked_by);
        break;
    case SL_PERSISTENT_RESPONSE_DRAINED:
        report_say(r, "  c%u <- drained %u/%u/%u", number, response->drained.settled,
                   response->drained.released, response->drained.lost);
        break;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED:
        report_say(r, "  c%u <- stop requested%s", number,
                   response->stop_requested.hand_back_unstarted ? ", hand back" : "");
        break;
    case SL_PERSISTENT_RESPONSE_SETTLED:
        say_ids(c, "settled", &response->settled.ids);
        say_ids(c, "lost", &response->settled.lost);
        break;
    case SL_PERSISTENT_RESPONSE_UNSET: break;
    }
}

static void note_response(client *c, const sl_persistent_response *response)
{
    const sl_wire_read_event *const event = &response->event;

    if (response->kind == SL_PERSISTENT_RESPONSE_EVENT)
        hold(c, event->has_link ? &event->link.id.uuid : &event->event.id.uuid);
    if (response->kind == SL_PERSISTENT_RESPONSE_SETTLED) {
        drop_ids(c, &response->settled.ids);
        drop_ids(c, &response->settled.lost);
    }
    c->drained |= response->kind == SL_PERSISTENT_RESPONSE_DRAINED;
}

static void on_message(world_call *call, sl_str message)
{
    client *const c = call->ctx;
    sl_persistent_response response;
    const char *reason = "";

    if (sl_persistent_response_decode(message, &response, &reason) != SL_OK) {
        report_fail(&c->world->report, REPORT_WRONG, "c%u got what is no answer: %s", c->judged->number,
                    reason);
        return;
    }
    judge_got(c->judged, &response, c->peer.said);
    say_response(c, &response);
    note_response(c, &response);
    if (response.kind == SL_PERSISTENT_RESPONSE_STOP_REQUESTED && response.stop_requested.hand_back_unstarted)
        c->wish_heard = true;
}

static judge_end end_of(const client *c, const sl_call_end_info *info)
{
    if (info->kind == SL_CALL_CONNECTION_LOST)
        return c->peer.end;
    if (info->kind == SL_CALL_CANCELLED)
        return JUDGE_CANCELLED;
    if (c->world->host == NULL || c->world->host->stopping)
        return JUDGE_SERVER_GONE;
    return info->kind == SL_CALL_FINISHED &&
                   (info->status == SL_STATUS_CANCELLED || info->status == SL_STATUS_UNAVAILABLE)
               ? JUDGE_DROPPED
               : JUDGE_REFUSED;
}

static void on_end(world_call *call, const sl_call_end_info *info)
{
    client *const c = call->ctx;
    world *const w = c->world;

    report_say(&w->report, "  c%u ended: %s %.*s", c->judged->number, sl_status_name(info->status),
               (int)info->message.bytes, info->message.data);
    if (info->status == SL_STATUS_OK)
        report_fail(&w->report, REPORT_WRONG, "c%u ended with OK", c->judged->number);
    if (info->status == SL_STATUS_INVALID_ARGUMENT || info->status == SL_STATUS_INTERNAL ||
        info->status == SL_STATUS_UNKNOWN)
        report_fail(&w->report, REPORT_WRONG, "c%u ended with %s", c->judged->number,
                    sl_status_name(info->status));
    judge_call_over(c->judged, end_of(c, info));
    c->judged = NULL;
    /* A process that died remembers nothing. */
    c->lists_resume = c->extensions && c->has_name && sim_chance(&w->rng, 70);
    if (!c->lists_resume)
        c->held_count = 0;
    c->joins_at_turn = w->turn + sim_pick(&w->rng, 25);
}

/* --- what it says --- */

static bool send_request(client *c, const sl_persistent_request *request)
{
    uint8_t bytes[16 * 1024];
    const size_t size = sl_persistent_request_size(request);

    assert(size <= sizeof bytes);
    sl_persistent_request_encode(request, bytes, size);
    return world_call_send(&c->call, bytes, size);
}

static bool can_speak(const client *c)
{
    return c->call.call != NULL && !c->half_closed;
}

static size_t list_resume(client *c, sl_uuid *ids)
{
    size_t count = 0;

    for (uint32_t i = 0; c->lists_resume && i < c->held_count; i++) {
        c->held[i].claimed = false; /* what was not answered is said again */
        ids[count++] = c->held[i].id;
        report_count(&c->world->report, SITUATION_RESUMED);
    }
    if (!c->lists_resume)
        c->held_count = 0;
    return count;
}

static void send_options(client *c, const sl_uuid *resume, size_t resume_count)
{
    const world_group *const group = &c->world->groups[c->group];
    const sl_wire_label label = { SL_STR("version"), sl_str_from(c->label) };
    const sl_persistent_request request = {
        .kind = SL_PERSISTENT_REQUEST_OPTIONS,
        .options = { .source = group->of_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
                     .stream = group->of_all ? SL_STR("") : sl_str_from(group->stream),
                     .group = sl_str_from(group->name),
                     .buffer_size = (int32_t)c->window,
                     .has_id_option = true,
                     .id_form = c->id_form,
                     .consumer_name = c->has_name && c->extensions ? sl_str_from(c->name) : SL_STR(""),
                     .labels = { .count = 1, .list = &label },
                     .extensions = c->extensions,
                     .reconnect_ms = (int32_t)c->reconnect_ms,
                     .resume = { .count = resume_count, .list = resume, .form = c->id_form } },
    };

    (void)send_request(c, &request);
}

static void join(client *c)
{
    const sl_metadata name = { SL_STR("connection-name"), sl_str_from(c->name) };
    const size_t name_count = c->has_name && !c->extensions ? 1 : 0;
    sl_uuid resume[WORLD_HELD_MAX];
    size_t resume_count;

    c->half_closed = c->drained = c->asked_to_stop = c->wish_heard = false;
    c->ends_at_turn = 0;
    c->call = (world_call){ .message = on_message, .end = on_end, .ctx = c };
    if (c->peer.client == NULL && !world_connect(&c->peer))
        return;
    if (!world_call_start(&c->call, &c->peer, READ_PATH, &name, name_count)) {
        world_peer_cut(&c->peer, JUDGE_CUT, 0); /* it goes away, so another connection is needed */
        return;
    }
    resume_count = list_resume(c, resume);
    c->judged =
        judge_call_opened(judged_group(c), &(judge_options){ .extensions = c->extensions,
                                                             .name = c->has_name ? c->name : "",
                                                             .window = c->window,
                                                             .reconnect_ns = c->reconnect_ms * WORLD_MS_NS,
                                                             .resume = resume,
                                                             .resume_count = resume_count });
    report_say(&c->world->report, "client %u joins %s as c%u: window %u%s%s%s, resumes %zu", c->number,
               c->world->groups[c->group].name, c->judged->number, c->window,
               c->extensions ? ", extensions" : "", c->has_name ? ", name " : "", c->has_name ? c->name : "",
               resume_count);
    send_options(c, resume, resume_count);
}

/* Up to `most` ids of what fits; all of them get the marks. */
static size_t choose(client *c, size_t most, bool claims, bool starts, sl_uuid *ids)
{
    size_t count = 0;

    for (uint32_t i = 0; i < c->held_count && count < most; i++) {
        client_held *const held = &c->held[i];

        if (held->claimed || (starts && held->started) || (!c->world->calm && sim_chance(&c->world->rng, 30)))
            continue;
        held->claimed |= claims;
        held->started |= starts;
        ids[count++] = held->id;
    }
    return count;
}

/* Who hears no answers forgets at once. */
static void forget_claimed(client *c)
{
    for (uint32_t i = c->held_count; i-- > 0;)
        if (c->held[i].claimed && !c->extensions)
            drop_at(c, i);
}

static const char *word_of(sl_persistent_request_kind kind, int32_t action)
{
    static const char *const actions[] = { "nack unknown", "nack park", "nack retry", "nack skip",
                                           "nack stop" };

    if (kind == SL_PERSISTENT_REQUEST_ACK)
        return "ack";
    return kind == SL_PERSISTENT_REQUEST_RELEASE ? "release" : actions[action];
}

static judge_claim_kind claim_kind_of(sl_persistent_request_kind kind, int32_t action)
{
    if (kind == SL_PERSISTENT_REQUEST_ACK)
        return JUDGE_ACK;
    if (kind == SL_PERSISTENT_REQUEST_RELEASE)
        return JUDGE_RELEASE;
    if (action == SL_WIRE_NACK_PARK)
        return JUDGE_PARK;
    return action == SL_WIRE_NACK_SKIP || action == SL_WIRE_NACK_STOP ? JUDGE_SKIP : JUDGE_RETRY;
}

static uint32_t number_of(const client *c, const sl_uuid *id)
{
    const judge_message *const message = judge_message_find(judged_group(c), id);

    return message == NULL ? 0 : message->number;
}

static void send_claims(client *c, sl_persistent_request_kind kind, int32_t action, const sl_uuid *ids,
                        size_t count)
{
    const sl_persistent_request request = { .kind = kind,
                                            .ids = { .count = count, .list = ids, .form = c->id_form },
                                            .action = action,
                                            .reason = SL_STR("as the seed says") };

    if (count == 0 || !send_request(c, &request))
        return;
    for (size_t i = 0; i < count; i++) {
        report_say(&c->world->report, "  c%u -> %s m%u", c->judged->number, word_of(kind, action),
                   number_of(c, &ids[i]));
        (void)judge_claimed(c->judged, claim_kind_of(kind, action), &ids[i]);
    }
    forget_claimed(c);
}

static void claim_some(client *c, sl_persistent_request_kind kind, int32_t action)
{
    sl_uuid ids[8];

    send_claims(c, kind, action, ids, choose(c, sim_between(&c->world->rng, 1, 8), true, false, ids));
}

void client_ack_all(client *c)
{
    sl_uuid ids[64];

    if (can_speak(c))
        send_claims(c, SL_PERSISTENT_REQUEST_ACK, 0, ids, choose(c, 64, true, false, ids));
}

static void say_started(client *c)
{
    sl_uuid ids[8];
    const size_t count = choose(c, sim_between(&c->world->rng, 1, 8), false, true, ids);
    const sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_STARTED,
                                            .ids = { .count = count, .list = ids, .form = c->id_form } };

    if (count == 0 || !send_request(c, &request))
        return;
    for (size_t i = 0; i < count; i++) {
        report_say(&c->world->report, "  c%u -> started m%u", c->judged->number, number_of(c, &ids[i]));
        judge_started(c->judged, &ids[i]);
    }
}

static void extend_some(client *c)
{
    sl_uuid ids[4];
    const size_t count = choose(c, 4, false, false, ids);
    const uint32_t lease_ms = (uint32_t)sim_between(&c->world->rng, 100, 4000);
    const sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_EXTEND,
                                            .ids = { .count = count, .list = ids, .form = c->id_form },
                                            .lease_ms = (int32_t)lease_ms };

    if (count == 0 || !send_request(c, &request))
        return;
    for (size_t i = 0; i < count; i++) {
        report_say(&c->world->report, "  c%u -> extend m%u by %u ms", c->judged->number,
                   number_of(c, &ids[i]), lease_ms);
        judge_extended(c->judged, &ids[i], lease_ms * WORLD_MS_NS);
        report_count(&c->world->report, SITUATION_EXTENDED);
    }
}

static void stop(client *c)
{
    const bool hand_back = sim_chance(&c->world->rng, 50);
    const sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_STOP,
                                            .hand_back_unstarted = hand_back };

    if (!send_request(c, &request))
        return;
    report_say(&c->world->report, "  c%u -> stop%s", c->judged->number, hand_back ? ", hand back" : "");
    judge_stop_sent(c->judged, hand_back);
    c->asked_to_stop = true;
    if (hand_back)
        report_count(&c->world->report, SITUATION_HANDED_BACK);
}

/* What it holds and has not begun: only it can know. */
static void release_unstarted(client *c)
{
    sl_uuid ids[WORLD_HELD_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < c->held_count; i++) {
        if (c->held[i].claimed || c->held[i].started)
            continue;
        c->held[i].claimed = true;
        ids[count++] = c->held[i].id;
    }
    send_claims(c, SL_PERSISTENT_REQUEST_RELEASE, 0, ids, count);
    report_count(&c->world->report, SITUATION_WISH_GRANTED);
}

static void half_close(client *c)
{
    report_say(&c->world->report, "  c%u -> half-close", c->judged->number);
    sl_call_half_close(c->call.call);
    judge_half_closed(c->judged);
    c->half_closed = true;
    c->ends_at_turn = c->world->turn + sim_between(&c->world->rng, 5, 60);
    report_count(&c->world->report, SITUATION_HALF_CLOSED);
}

static void ack_unknown(client *c)
{
    const sl_uuid id = { { 0xee, (uint8_t)sim_pick(&c->world->rng, 256), 3 } };

    send_claims(c, SL_PERSISTENT_REQUEST_ACK, 0, &id, 1);
    report_count(&c->world->report, SITUATION_ACK_UNKNOWN);
}

static void ack_twice(client *c)
{
    sl_uuid ids[2];

    if (choose(c, 1, true, false, ids) == 0)
        return;
    ids[1] = ids[0];
    send_claims(c, SL_PERSISTENT_REQUEST_ACK, 0, ids, 2);
    report_count(&c->world->report, SITUATION_ACK_TWICE);
}

void client_leave(client *c)
{
    if (c->call.call == NULL)
        return;
    report_say(&c->world->report, "  c%u -> cancel", c->judged->number);
    report_count(&c->world->report, SITUATION_CANCELLED);
    sl_call_cancel(c->call.call);
}

void client_cut(client *c)
{
    world *const w = c->world;
    const bool loses = !network_pipe_empty(&c->peer.down);
    const uint64_t server_turns = sim_chance(&w->rng, 70) ? 0 : sim_between(&w->rng, 1, 40);

    if (c->peer.client == NULL)
        return;
    report_say(&w->report, "connection of client %u is cut%s, the server learns it after %ju turns",
               c->number, loses ? " with bytes on the way" : "", (uintmax_t)server_turns);
    report_count(&w->report, SITUATION_CUT);
    if (loses)
        report_count(&w->report, SITUATION_CUT_LOST_BYTES);
    world_peer_cut(&c->peer, loses || server_turns > 0 ? JUDGE_CUT_UNSEEN : JUDGE_CUT, server_turns);
}

static void stall(client *c)
{
    const uint64_t until_ns = c->world->time.mono_ns + sim_between(&c->world->rng, 1, 600) * WORLD_MS_NS;

    report_count(&c->world->report, SITUATION_STALLED);
    if (sim_chance(&c->world->rng, 60))
        c->peer.down.stalled_until_ns = until_ns;
    if (sim_chance(&c->world->rng, 60))
        c->peer.up.stalled_until_ns = until_ns;
}

void client_lost_server(client *c, judge_end how)
{
    world_peer_cut(&c->peer, how, 0);
}

/* --- what it does next --- */

static void speak(client *c)
{
    sim_rng *const rng = &c->world->rng;
    const uint32_t dice = sim_pick(rng, 100);

    if (dice < 34)
        claim_some(c, SL_PERSISTENT_REQUEST_ACK, 0);
    else if (dice < 44)
        claim_some(c, SL_PERSISTENT_REQUEST_NACK, (int32_t)sim_pick(rng, 5));
    else if (dice < 50)
        claim_some(c, SL_PERSISTENT_REQUEST_RELEASE, 0);
    else if (dice < 65 && c->sends_started)
        say_started(c);
    else if (dice < 69 && c->extensions)
        extend_some(c);
    else if (dice < 71)
        ack_unknown(c);
    else if (dice < 73)
        ack_twice(c);
    else if (dice < 76 && (!c->is_steady || c->asked_to_stop))
        stop(c);
}

/* Some do not understand it, and finish what they have. */
static void hear_wish(client *c)
{
    c->wish_heard = false;
    if (sim_chance(&c->world->rng, 70))
        release_unstarted(c);
}

static void misbehave(client *c)
{
    const uint32_t dice = sim_pick(&c->world->rng, 1000);

    if (dice < 4)
        client_leave(c);
    else if (dice < 6 && c->call.call != NULL && !c->half_closed)
        half_close(c);
    else if (dice < 14 && c->world->cuts)
        client_cut(c);
    else if (dice < 24 && c->world->cuts)
        stall(c);
}

static void look_at_end(client *c)
{
    if (c->drained && c->ends_at_turn == 0)
        c->ends_at_turn = c->world->turn + sim_between(&c->world->rng, 1, 30);
    if (c->asked_to_stop && !c->extensions && c->ends_at_turn == 0)
        c->ends_at_turn = c->world->turn + sim_between(&c->world->rng, 10, 60);
    if (c->ends_at_turn != 0 && c->world->turn >= c->ends_at_turn)
        client_leave(c);
}

void client_act(client *c)
{
    world *const w = c->world;

    if (c->call.call == NULL) {
        if (w->host != NULL && !w->host->stopping && w->turn >= c->joins_at_turn &&
            !w->groups[c->group].closed)
            join(c);
        return;
    }
    if (can_speak(c) && c->wish_heard)
        hear_wish(c);
    if (can_speak(c) && sim_chance(&w->rng, 25))
        speak(c);
    if (c->call.call != NULL && !c->is_steady)
        misbehave(c);
    if (c->call.call != NULL)
        look_at_end(c);
}

void client_settle_down(client *c, uint32_t group)
{
    c->group = group;
    c->extensions = sim_chance(&c->world->rng, 70);
    c->has_name = false;
    c->window = 20;
    join(c);
}

/* server/groups/consumer.c — event_store.client.persistent_subscriptions.PersistentSubscriptions/Read.
 *
 * The desk decides nothing about the wire and this file decides nothing about delivery: it turns requests into words for the desk, and
 * what the desk says into messages. Clients without `extensions` hear of nothing but events. The call never ends with OK,
 * because some clients cannot stand that.
 *
 * How it ends matters to its leases: a client that cancels has left, one whose connection broke is away, and when the server
 * itself ends, leases stay as they are. */
#include "server/groups/consumer.h"

#include "base/cleanup.h"
#include "server/door.h"
#include "server/groups/registry.h"
#include "server/reply.h"
#include "server/services.h"

#include <assert.h>

#define MS_NS UINT64_C(1000000)

static sl_host *host_of(const consumer *c)
{
    return c->request->host;
}

/* --- its end --- */

/* The seat is given up, by one of the ways to do so. */
static void give_up(consumer *c, void (*how)(sl_seat *seat))
{
    sl_seat *const seat = SL_TAKE_PTR(c->seat);

    if (c->ends_when_drained)
        host_of(c)->counters.consumers_draining_now--;
    c->ends_when_drained = false;
    if (seat == NULL)
        return;
    host_of(c)->counters.consumers_now--;
    if (how != NULL)
        how(seat);
}

void consumer_refuse(consumer *c, const char *sentence)
{
    give_up(c, sl_seat_leave);
    sl_reply_invalid(c->request, sentence);
}

static void fail(consumer *c, sl_err err)
{
    give_up(c, sl_seat_leave);
    sl_reply_error(c->request, err);
}

static void end_with_server(consumer *c)
{
    give_up(c, sl_seat_leave);
    sl_reply_stopping(c->request);
}

static void on_end(sl_request *request)
{
    consumer *const c = request->state;
    const bool server_ends = request->host->stopping;

    if (c->asks)
        sl_tail_forget(request->host->tail, &c->reader);
    sl_desk_forget(&c->waiter);
    switch (request->end_kind) {
    case SL_CALL_CONNECTION_LOST:
    case SL_CALL_STALLED: give_up(c, server_ends ? sl_seat_close : sl_seat_away); break;
    case SL_CALL_CANCELLED: give_up(c, server_ends ? sl_seat_close : sl_seat_leave); break;
    case SL_CALL_FINISHED:
    case SL_CALL_PEER_CANCELLED:
    case SL_CALL_DEADLINE:
    case SL_CALL_REFUSED:
    case SL_CALL_END_KIND_COUNT_: give_up(c, sl_seat_leave); break;
    }
}

/* --- what the desk says --- */

/* False: there is no room. Anything else that keeps it from being sent ends the call. */
static bool reserve(consumer *c, size_t bytes, uint8_t **ret_data)
{
    const sl_err err = sl_request_reserve(c->request, bytes, ret_data);

    *ret_data = err == SL_OK ? *ret_data : NULL;
    if (err == SL_ERR_FULL)
        return false;
    if (err == SL_ERR_TOO_LARGE) {
        give_up(c, sl_seat_leave);
        sl_request_finish(c->request, SL_STATUS_RESOURCE_EXHAUSTED,
                          SL_STR("The next event is larger than a message may be."), NULL, 0);
    } else if (err != SL_OK && err != SL_ERR_EMPTY) {
        fail(c, err);
    }
    return true;
}

static bool say(consumer *c, const sl_persistent_response *response)
{
    const size_t bytes = sl_persistent_response_size(response);
    uint8_t *message;

    if (!reserve(c, bytes, &message))
        return false;
    if (message == NULL)
        return true;
    sl_persistent_response_encode(response, message, bytes);
    sl_request_commit(c->request, bytes);
    return true;
}

/* A part of a millisecond counts as a whole one, so that a lease that was just given shows what the settings say. */
static int32_t left_ms(uint64_t lease_ns)
{
    return (int32_t)sl_min_u64(lease_ns / MS_NS + (lease_ns % MS_NS != 0), INT32_MAX);
}

static bool on_event(void *ctx, sl_str body, const sl_effect *deliver)
{
    consumer *const c = ctx;
    const bool extensions = c->setup.join.extensions;
    const sl_persistent_delivery delivery = {
        .retry_count = (int32_t)sl_min_u64(deliver->deliver.counters.attempts, INT32_MAX),
        .lease_token = extensions ? deliver->deliver.token : 0,
        .lease_ms = extensions ? left_ms(deliver->deliver.lease_ns) : 0,
    };
    const size_t bytes = sl_persistent_delivery_size(body, &delivery);
    uint8_t *message;

    if (!reserve(c, bytes, &message))
        return false;
    if (message == NULL)
        return true;
    sl_persistent_delivery_encode(body, &delivery, message, bytes);
    sl_request_commit(c->request, bytes);
    host_of(c)->counters.events_read++;
    host_of(c)->counters.bytes_read += bytes;
    return true;
}

static bool on_stop_requested(void *ctx, const sl_effect *requested, uint32_t deadline_ms, sl_str reason)
{
    consumer *const c = ctx;
    const bool by_server = requested->stop_requested.asked_by == SL_ASKER_SERVER;
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_STOP_REQUESTED };

    if (!c->setup.join.extensions)
        return true;
    if (by_server)
        reason = sl_str_from(host_of(c)->stop_reason);
    else if (reason.bytes == 0)
        reason = SL_STR("An operator has asked this consumer to stop.");
    response.stop_requested.reason = reason;
    response.stop_requested.deadline_ms = deadline_ms;
    response.stop_requested.hand_back_unstarted = requested->stop_requested.hand_back;
    return say(c, &response);
}

static bool on_stopped(void *ctx, const sl_effect *stopped, const sl_uuid *outstanding,
                       uint32_t outstanding_count)
{
    consumer *const c = ctx;
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_STOPPED };

    if (!c->setup.join.extensions)
        return true;
    response.stopped.in_flight = stopped->stopped.in_flight;
    response.stopped.already_stopped = stopped->stopped.already_stopped;
    response.stopped.asked_by = (int32_t)stopped->stopped.asked_by;
    response.stopped.outstanding =
        (sl_wire_ids){ .count = outstanding_count, .list = outstanding, .form = c->setup.id_form };
    return say(c, &response);
}

static bool on_settled(void *ctx, const sl_uuid *ids, uint32_t id_count, const sl_uuid *lost,
                       uint32_t lost_count)
{
    consumer *const c = ctx;
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_SETTLED };

    response.settled.ids = (sl_wire_ids){ .count = id_count, .list = ids, .form = c->setup.id_form };
    response.settled.lost = (sl_wire_ids){ .count = lost_count, .list = lost, .form = c->setup.id_form };
    return say(c, &response);
}

static bool on_drained(void *ctx, const sl_effect *drained)
{
    consumer *const c = ctx;
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_DRAINED };

    response.drained.settled = drained->drained.settled;
    response.drained.released = drained->drained.released;
    response.drained.lost = drained->drained.lost;
    if (c->setup.join.extensions && !say(c, &response))
        return false;
    c->is_drained = true;
    if (c->ends_when_drained)
        end_with_server(c);
    return true;
}

static void on_go_on(void *ctx)
{
    consumer *const c = ctx;
    sl_request *const request = sl_request_hold(c->request);

    c->is_held = false;
    sl_request_resume(request);
    sl_request_release(request);
}

static void on_dropped(void *ctx)
{
    consumer *const c = ctx;

    give_up(c, NULL);
    if (host_of(c)->stopping)
        sl_reply_stopping(c->request);
    else
        sl_reply_group_dropped(c->request, c->stream, c->group);
}

static const sl_seat_handler seat_handler = {
    .event = on_event,
    .stop_requested = on_stop_requested,
    .stopped = on_stopped,
    .settled = on_settled,
    .drained = on_drained,
    .go_on = on_go_on,
    .dropped = on_dropped,
};

/* --- joining --- */

static void confirm(consumer *c)
{
    char buffer[SL_GROUP_KEY_BYTES_MAX + SL_GROUP_NAME_BYTES_MAX];
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_str(&text, c->stream);
    sl_text_add(&text, "::");
    sl_text_add_str(&text, c->group);
    response.subscription_id = sl_text_str(&text);
    (void)say(c, &response); /* the first message of a call always has room */
}

static void joined(consumer *c)
{
    host_of(c)->counters.consumers_now++;
    confirm(c);
}

static void look_again(void *ctx);

/* A group that cannot go on confirms and drops, as clients know it; when it is the store that cannot, they should go elsewhere. */
static void refuse_failed(consumer *c)
{
    if (sl_door_store_failed(host_of(c)->door)) {
        sl_reply_error(c->request, SL_ERR_STORE_FAILED);
        return;
    }
    confirm(c);
    sl_reply_group_dropped(c->request, c->stream, c->group);
}

static void join(consumer *c)
{
    sl_request *const request = c->request;
    sl_desk *const desk = sl_registry_find(host_of(c)->registry, c->stream, c->group);
    const sl_err err = desk == NULL ? SL_ERR_NOT_FOUND : sl_desk_join(desk, &c->setup, &c->seat);

    switch ((int)err) {
    case SL_OK: joined(c); break;
    case SL_ERR_NOT_FOUND: sl_reply_group_not_found(request, c->stream, c->group); break;
    case SL_ERR_CONSUMERS_MAX:
    case SL_ERR_FULL: sl_reply_group_full(request, c->stream, c->group); break;
    case SL_ERR_AGAIN:
        sl_request_pause(request);
        c->waiter = (sl_desk_waiter){ .fn = look_again, .ctx = c };
        sl_list_init(&c->waiter.node);
        sl_desk_wait(desk, &c->waiter);
        return;
    case SL_ERR_STORE_FAILED: refuse_failed(c); break;
    default: sl_reply_error(request, err); break;
    }
}

static bool is_waiting(const consumer *c)
{
    return c->asks || (c->waiter.node.next != NULL && !sl_list_empty(&c->waiter.node));
}

/* May he read the stream? Asked once: what was read is read by the group, whoever takes it. */
static void seek(consumer *c)
{
    sl_access_verdict verdict = SL_ACCESS_ALLOWED;

    if (!c->is_allowed)
        verdict =
            sl_access_check(host_of(c)->access, &c->request->identity, c->stream, SL_ACTION_READ, &c->reader);
    c->asks = verdict == SL_ACCESS_PENDING;
    c->is_allowed = verdict == SL_ACCESS_ALLOWED;
    switch (verdict) {
    case SL_ACCESS_ALLOWED: join(c); break;
    case SL_ACCESS_DENIED:
        host_of(c)->counters.access_denied++;
        sl_reply_access_denied(c->request);
        break;
    case SL_ACCESS_PENDING: sl_request_pause(c->request); break;
    case SL_ACCESS_FAILED: sl_reply_error(c->request, SL_ERR_IO); break;
    }
}

/* From the tail or the desk: what was waited for is there. */
static void look_again(void *ctx)
{
    consumer *const c = ctx;
    sl_request *const request = sl_request_hold(c->request);

    c->asks = false;
    if (sl_request_open(request))
        seek(c);
    if (!is_waiting(c) && sl_request_open(request))
        sl_request_resume(request);
    sl_request_release(request);
}

/* --- what the client sends --- */

static void take_first(consumer *c, const sl_persistent_request *asked)
{
    if (asked->kind != SL_PERSISTENT_REQUEST_OPTIONS) {
        consumer_refuse(c, "The first request must be options: which group of which stream, and how.");
        return;
    }
    c->has_options = true;
    c->setup.handler = &seat_handler;
    c->setup.ctx = c;
    if (!consumer_take_options(c, &asked->options))
        return;
    sl_reader_init(&c->reader, SL_STR(""), look_again, c);
    seek(c);
}

static void on_message(sl_request *request, sl_str message)
{
    consumer *const c = request->state;
    const char *reason = "";
    sl_persistent_request asked;

    if (sl_persistent_request_decode(message, &asked, &reason) != SL_OK)
        consumer_refuse(c, reason);
    else if (!c->has_options)
        take_first(c, &asked);
    else if (c->seat != NULL)
        consumer_take_request(c, &asked);
    if (c->seat == NULL || c->is_held || !sl_seat_is_held(c->seat))
        return;
    c->is_held = true;
    sl_request_pause(request);
}

/* It cannot say anything more, so it can take nothing more: what it holds runs until its end, or until the call is cancelled. */
static void on_half_close(sl_request *request)
{
    consumer *const c = request->state;

    if (!c->has_options)
        consumer_refuse(c, "The first request must be options, and none came.");
    if (c->seat == NULL || c->stopped)
        return;
    c->stopped = true;
    sl_seat_stop(c->seat, &(sl_stop){ .asked_by = SL_ASKER_CONSUMER });
}

static void on_room(sl_request *request)
{
    consumer *const c = request->state;

    if (c->seat != NULL)
        sl_seat_room(c->seat);
}

/* --- the server ends --- */

/* Of the whole grace most is for consumers; the rest is for answers and connections (server/shutdown.c). */
static uint64_t deadline_ns(const consumer *c)
{
    const sl_desk *const desk = sl_registry_find(host_of(c)->registry, c->stream, c->group);

    return desk == NULL ? 0 : sl_add_sat_u64(sl_desk_now_ns(desk), host_of(c)->settings->grace_ns / 5 * 3);
}

static void on_stop(sl_request *request)
{
    consumer *const c = request->state;

    if (c->seat == NULL || c->is_drained) {
        end_with_server(c);
        return;
    }
    c->ends_when_drained = true;
    host_of(c)->counters.consumers_draining_now++;
    if (sl_seat_is_stopped(c->seat))
        return;
    sl_seat_stop(c->seat, &(sl_stop){ .asked_by = SL_ASKER_SERVER, .deadline_ns = deadline_ns(c) });
}

static void on_begin(sl_request *request)
{
    ((consumer *)request->state)->request = request;
}

static const sl_str features[] = { SL_STR_INIT("stream"), SL_STR_INIT("all"), SL_STR_INIT("stop"),
                                   SL_STR_INIT("nack_delay") };

const sl_method sl_method_persistent_read = {
    .service = SL_STR_INIT("event_store.client.persistent_subscriptions.PersistentSubscriptions"),
    .name = SL_STR_INIT("Read"),
    .kind = SL_METHOD_BIDI,
    .who = SL_FOR_READERS,
    .message_bytes_max = CONSUMER_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(consumer),
    .features = features,
    .feature_count = SL_COUNT_OF(features),
    .begin = on_begin,
    .message = on_message,
    .half_close = on_half_close,
    .room = on_room,
    .end = on_end,
    .stop = on_stop,
};

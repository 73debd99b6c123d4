/* server/streams/batch_append.c — BatchAppend: the fast way in. batch_call.h has the picture.
 *
 * An append that comes whole, which is nearly every one, goes straight from the message into the store: its events are rows of
 * views in a scratch array, and only the correlation id and the name of the stream are copied, for the answer.
 *
 * One append may have to wait: the metadata of its stream must be read from disk, or the store has enough to do. Then it is
 * parked and the call paused behind it, so that the order of what is written is the order of what was sent. */
#include "server/access.h"
#include "server/reply.h"
#include "server/services.h"
#include "server/streams/batch_call.h"
#include "server/streams/write.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

enum {
    EVENTS_MAX = SL_BATCH_BYTES_MAX / SL_RECORD_HEAD_BYTES, /* no batch of the store has more */
};

static sl_host *host_of(const sl_batch_call *call)
{
    return call->request->host;
}

static sl_batch_moment moment_now(const sl_batch_call *call)
{
    const sl_clock *const clock = host_of(call)->clock;

    return (sl_batch_moment){ sl_clock_mono_ns(clock), sl_clock_wall_ns(clock) };
}

void sl_batch_due_by(sl_batch_call *call, uint64_t due_ns)
{
    if (!call->alarm.is_set || due_ns < call->alarm.at_ns)
        sl_alarm_set(host_of(call), &call->alarm, due_ns);
}

/* --- going on and ending --- */

/* Once paused it stays so until half of them are answered, instead of taking them one by one. */
static bool too_many(const sl_batch_call *call)
{
    const uint32_t max = call->paused ? SL_BATCH_PENDING_MAX / 2 : SL_BATCH_PENDING_MAX;

    return call->inside_count + call->unsent_count >= max;
}

static void finish(sl_batch_call *call)
{
    switch (call->ending) {
    case SL_BATCH_GOES_ON: return;
    case SL_BATCH_ENDS_WELL: sl_request_finish(call->request, SL_STATUS_OK, SL_STR(""), NULL, 0); return;
    case SL_BATCH_ENDS_STOPPING: sl_reply_stopping(call->request); return;
    case SL_BATCH_ENDS_INVALID: sl_reply_invalid(call->request, call->ending_text); return;
    }
}

void sl_batch_settle(sl_batch_call *call)
{
    const bool ends = call->ending != SL_BATCH_GOES_ON;
    const bool waits =
        ends || call->parked != SL_BATCH_NOT_PARKED || call->unsent_count > 0 || too_many(call);

    if (!sl_request_open(call->request))
        return;
    if (ends && call->inside_count == 0 && call->unsent_count == 0) {
        finish(call);
    } else if (waits && !call->paused) {
        call->paused = true;
        sl_request_pause(call->request);
    } else if (!waits && call->paused) {
        call->paused = false;
        sl_request_resume(call->request); /* brings what was kept, and so may come back here */
    }
}

/* What was parked is not needed any more, or is about to be taken again. */
static void unpark(sl_batch_call *call)
{
    sl_tail_forget(host_of(call)->tail, &call->reader);
    sl_door_forget(&call->waiter);
    call->parked = SL_BATCH_NOT_PARKED;
}

static void drop_message(sl_batch_call *call)
{
    sl_alloc_give(host_of(call)->alloc, call->message, call->message_bytes);
    sl_gather_claim_end(&call->message_claim);
    call->message = NULL;
    call->message_bytes = 0;
}

void sl_batch_end(sl_batch_call *call, sl_batch_ending ending, const char *text)
{
    if (call->ending != SL_BATCH_GOES_ON)
        return;
    call->ending = ending;
    call->ending_text = text;
    unpark(call);
    sl_batch_drop_open(call);
}

/* --- parking --- */

static void park(sl_batch_call *call, sl_batch_parked what, uint64_t due_ns)
{
    call->parked = what;
    call->parked_due_ns = due_ns;
    sl_batch_due_by(call, due_ns);
}

static sl_err keep_message(sl_batch_call *call, sl_str message)
{
    sl_err err;

    if (call->message != NULL && message.data == call->message)
        return SL_OK; /* it was parked before */
    assert(call->message == NULL);
    call->message_claim.host = host_of(call);
    err = sl_gather_claim_add(&call->message_claim, message.bytes);
    if (err != SL_OK)
        return err;
    call->message = sl_alloc_take(host_of(call)->alloc, message.bytes);
    if (call->message == NULL) {
        sl_gather_claim_end(&call->message_claim);
        return SL_ERR_NOMEM;
    }
    memcpy(call->message, message.data, message.bytes);
    call->message_bytes = message.bytes;
    return SL_OK;
}

/* False: there is no memory to keep it; it was refused. */
static bool park_message(sl_batch_call *call, sl_str message, const sl_batch_wish *wish,
                         sl_batch_moment moment)
{
    const sl_err err = keep_message(call, message);

    if (err != SL_OK) {
        sl_batch_refuse(call, &wish->name, &(sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = err });
        return false;
    }
    call->parked_at = moment;
    park(call, SL_BATCH_PARKED_MESSAGE, wish->due_ns);
    return true;
}

void sl_batch_park_open(sl_batch_call *call, sl_batch_open *open)
{
    call->parked_open = open;
    park(call, SL_BATCH_PARKED_OPEN, open->wish.due_ns);
    sl_door_wait(host_of(call)->door, &call->waiter);
}

/* --- one request --- */

/* For the answer. A name that is longer than any stream's is cut: it has to be echoed, and may have to wait for room. */
static sl_batch_name name_of(const sl_batch_append_request *in)
{
    const size_t bytes = sl_min_u64(in->options.stream.bytes, SL_STREAM_NAME_BYTES_MAX + 1);

    return (sl_batch_name){ in->correlation, { in->options.stream.data, bytes } };
}

/* The options; false: the append was answered. */
static bool take_options(sl_batch_call *call, const sl_batch_append_request *in, sl_batch_moment moment,
                         sl_batch_wish *wish)
{
    const sl_batch_options *const options = &in->options;
    const uint64_t left_ns = sl_batch_options_left_ns(options, moment.wall_ns);
    sl_refusal refusal = { .kind = SL_REFUSAL_INVALID };

    wish->name = name_of(in);
    wish->expected = options->expected;
    wish->own_due_ns = sl_add_sat_u64(moment.mono_ns, left_ns);
    wish->due_ns = sl_min_u64(wish->own_due_ns,
                              sl_add_sat_u64(moment.mono_ns, host_of(call)->settings->write_timeout_ns));
    if (options->stream.bytes == 0)
        refusal.text = sl_stream_complaint(options->stream);
    else if (!sl_expected_from_wire(options->expected, &wish->store_expected))
        refusal.text = SL_EXPECTED_COMPLAINT;
    if (refusal.text != NULL)
        sl_batch_refuse(call, &wish->name, &refusal);
    return refusal.text == NULL;
}

/* True: it may be written. Otherwise the append was answered or is parked. */
static bool may_write(sl_batch_call *call, sl_str message, const sl_batch_wish *wish, sl_batch_moment moment)
{
    switch (sl_access_check(host_of(call)->access, &call->request->identity, wish->name.stream,
                            SL_ACTION_WRITE, &call->reader)) {
    case SL_ACCESS_ALLOWED: return true;
    case SL_ACCESS_PENDING:
        if (!park_message(call, message, wish, moment))
            sl_tail_forget(host_of(call)->tail, &call->reader);
        return false;
    case SL_ACCESS_DENIED:
        sl_batch_tell(call, &wish->name, &(sl_batch_outcome){ .kind = SL_BATCH_ACCESS_DENIED });
        return false;
    case SL_ACCESS_FAILED:
        sl_batch_refuse(call, &wish->name, &(sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = SL_ERR_IO });
        return false;
    }
    return false;
}

/* Room for so many rows; false: there is no memory. */
static bool reserve_events(sl_batch_call *call, size_t event_count)
{
    const size_t row_bytes = sizeof *call->events;
    const uint32_t capacity = event_count > 16 ? (uint32_t)event_count : 16;
    sl_event_in *events;

    if (event_count <= call->event_capacity)
        return true;
    events = sl_alloc_resize(host_of(call)->alloc, call->events, call->event_capacity * row_bytes,
                             capacity * row_bytes);
    if (events == NULL)
        return false;
    call->events = events;
    call->event_capacity = capacity;
    return true;
}

static void drop_events(sl_batch_call *call)
{
    sl_alloc_give(host_of(call)->alloc, call->events, call->event_capacity * sizeof *call->events);
    call->events = NULL;
    call->event_capacity = 0;
}

/* All events as rows of views. False: *ret_refusal says why not. */
static bool read_events(sl_batch_call *call, const sl_batch_append_request *in, uint64_t created_ns,
                        sl_refusal *ret_refusal)
{
    const sl_server_settings *const settings = host_of(call)->settings;
    sl_wire_walk walk = sl_wire_items_walk(&in->events);
    const char *reason = NULL;
    sl_wire_proposed proposed;
    uint64_t size = 0;
    sl_err err;

    for (sl_event_in *row = call->events; (err = sl_batch_append_next(&walk, &proposed, &reason)) == SL_OK;
         row++) {
        if (!sl_proposed_take(&proposed, settings, row, ret_refusal))
            return false;
        row->created_ns = created_ns;
        size += sl_event_size(row);
    }
    if (err == SL_ERR_INVALID)
        *ret_refusal = (sl_refusal){ .kind = SL_REFUSAL_INVALID, .text = reason };
    else if (size > settings->append_bytes_max)
        *ret_refusal = (sl_refusal){ .kind = SL_REFUSAL_APPEND_TOO_LARGE };
    else
        return true;
    return false;
}

static void submit_now(sl_batch_call *call, const sl_batch_append_request *in, const sl_batch_wish *wish,
                       sl_str message, sl_batch_moment moment)
{
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = in->options.stream,
                                   .expected = wish->store_expected,
                                   .events = call->events,
                                   .event_count = (uint32_t)in->event_count } };
    const sl_err err = sl_batch_submit(call, wish, &op);

    if (err == SL_ERR_FULL) {
        if (park_message(call, message, wish, moment))
            sl_door_wait(host_of(call)->door, &call->waiter);
    } else if (err != SL_OK) {
        sl_batch_not_taken(call, wish, &op, err);
    }
}

/* An append that comes whole. */
static void take_whole(sl_batch_call *call, const sl_batch_append_request *in, const sl_batch_wish *wish,
                       sl_str message, sl_batch_moment moment)
{
    sl_refusal refusal = { .kind = SL_REFUSAL_APPEND_TOO_LARGE };
    bool is_good = in->event_count <= EVENTS_MAX;

    if (is_good && !reserve_events(call, in->event_count)) {
        refusal = (sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = SL_ERR_NOMEM };
        is_good = false;
    }
    if (is_good && read_events(call, in, moment.wall_ns, &refusal))
        submit_now(call, in, wish, message, moment);
    else
        sl_batch_refuse(call, &wish->name, &refusal);
    if (call->event_capacity > SL_BATCH_SCRATCH_EVENTS)
        drop_events(call);
}

/* A message that was parked has come some time ago. */
static bool is_late(const sl_batch_call *call, sl_str message, const sl_batch_wish *wish,
                    sl_batch_moment moment)
{
    const bool was_parked = call->message != NULL && message.data == call->message;

    return wish->due_ns <= (was_parked ? sl_clock_mono_ns(host_of(call)->clock) : moment.mono_ns);
}

static void take_first(sl_batch_call *call, const sl_batch_append_request *in, sl_uuid id, sl_str message,
                       sl_batch_moment moment)
{
    sl_batch_wish wish;

    if (!take_options(call, in, moment, &wish))
        return;
    if (is_late(call, message, &wish, moment))
        sl_batch_tell(call, &wish.name, &(sl_batch_outcome){ .kind = SL_BATCH_TIMEOUT });
    else if (!may_write(call, message, &wish, moment))
        return;
    else if (in->is_final)
        take_whole(call, in, &wish, message, moment);
    else
        sl_batch_begin(call, in, &wish, id, moment);
}

static void refuse_correlation(sl_batch_call *call, const sl_batch_append_request *in)
{
    const sl_batch_name name = name_of(in);

    if (in->has_options) /* else it is a part of an append that nobody knows */
        sl_batch_refuse(
            call, &name,
            &(sl_refusal){ .kind = SL_REFUSAL_INVALID, .text = "The correlation id is no UUID." });
}

static void take_decoded(sl_batch_call *call, const sl_batch_append_request *in, sl_str message,
                         sl_batch_moment moment)
{
    const char *reason = NULL;
    sl_batch_open *open;
    sl_wire_id id;

    if (sl_wire_id_decode(in->correlation, &id, &reason) != SL_OK) {
        sl_batch_end(call, SL_BATCH_ENDS_INVALID, reason);
        return;
    }
    if (id.form != SL_WIRE_ID_STRUCTURED && id.form != SL_WIRE_ID_TEXT) {
        refuse_correlation(call, in);
        return;
    }
    open = call->open_count > 0 ? sl_batch_find(call, id.uuid) : NULL;
    if (open != NULL)
        sl_batch_add(call, open, in, moment);
    else if (in->has_options)
        take_first(call, in, id.uuid, message, moment);
}

static void take(sl_batch_call *call, sl_str message, sl_batch_moment moment)
{
    const char *reason = NULL;
    sl_batch_append_request in;

    if (sl_batch_append_request_decode(message, &in, &reason) != SL_OK)
        sl_batch_end(call, SL_BATCH_ENDS_INVALID, reason);
    else if (in.correlation.bytes == 0)
        sl_batch_end(
            call, SL_BATCH_ENDS_INVALID,
            "A request has no correlation id: without it, nobody would know what its answer is about.");
    else if (in.correlation.bytes > SL_BATCH_CORRELATION_BYTES_MAX)
        sl_batch_end(call, SL_BATCH_ENDS_INVALID,
                     "A correlation id has more than 64 bytes, which is no UUID.");
    else
        take_decoded(call, &in, message, moment);
}

static_assert(SL_BATCH_CORRELATION_BYTES_MAX == 64, "the sentence names it");

/* --- what was parked goes on --- */

static void take_parked(sl_batch_call *call)
{
    const sl_batch_parked what = call->parked;

    unpark(call);
    if (what == SL_BATCH_PARKED_OPEN)
        sl_batch_submit_open(call, call->parked_open);
    else if (what == SL_BATCH_PARKED_MESSAGE)
        take(call, (sl_str){ call->message, call->message_bytes }, call->parked_at);
    if (call->parked != SL_BATCH_PARKED_MESSAGE && call->message != NULL)
        drop_message(call);
}

static void go_on(void *ctx)
{
    sl_batch_call *const call = ctx;
    sl_request *const request = sl_request_hold(call->request);

    if (call->ending == SL_BATCH_GOES_ON && sl_request_open(request))
        take_parked(call);
    sl_batch_settle(call);
    sl_request_release(request);
}

static void on_alarm(void *ctx)
{
    sl_batch_call *const call = ctx;
    sl_request *const request = sl_request_hold(call->request);
    const uint64_t now_ns = sl_clock_mono_ns(request->host->clock);
    uint64_t next_ns = sl_batch_tell_late(call, now_ns);

    if (!call->over)
        next_ns = sl_min_u64(next_ns, sl_batch_tell_late_open(call, now_ns));
    if (!call->over && call->parked != SL_BATCH_NOT_PARKED && call->parked_due_ns <= now_ns)
        take_parked(call); /* finds that it is late */
    if (!call->over && call->parked != SL_BATCH_NOT_PARKED)
        next_ns = sl_min_u64(next_ns, call->parked_due_ns);
    if (!call->over && next_ns != UINT64_MAX)
        sl_batch_due_by(call, next_ns);
    sl_batch_settle(call);
    sl_request_release(request);
}

/* --- the method --- */

static void on_begin(sl_request *request)
{
    sl_batch_call *const call = request->state;

    *call = (sl_batch_call){ .request = request, .alarm = { .fn = on_alarm, .ctx = call } };
    sl_list_init(&call->inside);
    sl_list_init(&call->unsent);
    sl_list_init(&call->spares);
    sl_list_init(&call->open);
    sl_arena_init(&call->scratch, request->host->alloc, (sl_arena_sizes){ 4096, 1024 * 1024 });
    sl_reader_init(&call->reader, SL_STR(""), go_on, call);
    sl_door_waiter_init(&call->waiter, go_on, call);
}

static void on_message(sl_request *request, sl_str message)
{
    sl_batch_call *const call = request->state;

    if (call->ending == SL_BATCH_GOES_ON)
        take(call, message, moment_now(call));
    sl_batch_settle(call);
}

/* Parts of appends that will never be complete are forgotten without an answer. */
static void on_half_close(sl_request *request)
{
    sl_batch_call *const call = request->state;

    sl_batch_end(call, SL_BATCH_ENDS_WELL, NULL);
    sl_batch_settle(call);
}

static void on_room(sl_request *request)
{
    sl_batch_call *const call = request->state;

    sl_batch_send_on(call);
    sl_batch_settle(call);
}

void sl_batch_clean(sl_batch_call *call)
{
    assert(call->over && call->inside_count == 0);
    sl_batch_free_spares(call);
    sl_arena_done(&call->scratch);
}

static void on_end(sl_request *request)
{
    sl_batch_call *const call = request->state;

    call->over = true;
    sl_alarm_stop(request->host, &call->alarm);
    unpark(call);
    drop_message(call);
    sl_batch_drop_open(call);
    sl_batch_drop_unsent(call);
    drop_events(call);
    if (call->inside_count == 0)
        sl_batch_clean(call);
}

static void on_stop(sl_request *request)
{
    sl_batch_call *const call = request->state;

    sl_batch_end(call, SL_BATCH_ENDS_STOPPING, NULL);
    sl_batch_settle(call);
}

static const sl_str batch_features[] = { SL_STR_INIT("deadline_duration") };

const sl_method sl_method_streams_batch_append = {
    .service = SL_STR_INIT("event_store.client.streams.Streams"),
    .name = SL_STR_INIT("BatchAppend"),
    .kind = SL_METHOD_BIDI,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_STREAMS_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(sl_batch_call),
    .features = batch_features,
    .feature_count = SL_COUNT_OF(batch_features),
    .begin = on_begin,
    .message = on_message,
    .half_close = on_half_close,
    .room = on_room,
    .end = on_end,
    .stop = on_stop,
};

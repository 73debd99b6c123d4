/* server/streams/append.c — Append: options, then events, then the half-close, then one commit.
 *
 *      options --> may he? --> event, event, ... (gathered) --> half-close --> one batch --> the answer
 *
 * A wrong revision is an answer like any other, with status OK; everything else that goes wrong ends the call with a status. What
 * breaks the order of the messages makes the real server throw, which clients see as UNKNOWN with a text that one of them looks
 * for; so that text stands before ours. */
#include "server/reply.h"
#include "server/services.h"
#include "server/streams/gather.h"
#include "server/streams/proposed.h"
#include "server/streams/write.h"
#include "wire/streams_codec.h"

#include <assert.h>

enum {
    ANSWER_BYTES_MAX = 128, /* numbers only: two revisions, each in two forms, and a position */
};

typedef struct append_state {
    sl_permit permit;
    sl_write write;
    sl_gather gather;
    sl_op op;
    sl_wire_revision expected; /* as the client said it */
    bool has_options;
} append_state;

/* --- the answer --- */

static void answer(sl_request *request, const sl_append_response *response)
{
    const size_t bytes = sl_append_response_size(response);
    uint8_t message[ANSWER_BYTES_MAX];

    assert(bytes <= sizeof message);
    sl_append_response_encode(response, message, bytes);
    sl_request_answer(request, (sl_str){ (const char *)message, bytes });
}

static void answer_success(sl_request *request, const sl_op_result *result)
{
    answer(request, &(sl_append_response){ .kind = SL_APPEND_RESPONSE_SUCCESS,
                                           .current = sl_revision_to_wire(result->revision),
                                           .position = { .kind = SL_WIRE_POSITION_GIVEN,
                                                         .commit = result->position,
                                                         .prepare = result->position } });
}

static void answer_wrong(sl_request *request, const sl_op_result *result)
{
    const append_state *const state = request->state;

    answer(request, &(sl_append_response){ .kind = SL_APPEND_RESPONSE_WRONG_REVISION,
                                           .current = sl_revision_to_wire(result->revision),
                                           .expected = state->expected });
}

static void on_done(sl_request *request, const sl_commit *commit)
{
    const append_state *const state = request->state;

    if (commit->err == SL_OK)
        answer_success(request, &commit->results[0]);
    else if (commit->err == SL_ERR_WRONG_REVISION)
        answer_wrong(request, &commit->results[0]);
    else if (commit->err == SL_ERR_STREAM_DELETED)
        sl_reply_stream_deleted(request, state->op.append.stream);
    else
        sl_reply_error(request, commit->err);
}

static void reply_refusal(sl_request *request, const sl_refusal *refusal)
{
    const sl_server_settings *const settings = request->host->settings;

    switch (refusal->kind) {
    case SL_REFUSAL_NONE: return;
    case SL_REFUSAL_INVALID: sl_reply_invalid(request, refusal->text); return;
    case SL_REFUSAL_MISSING_METADATA: sl_reply_missing_metadata(request, sl_str_from(refusal->text)); return;
    case SL_REFUSAL_EVENT_TOO_LARGE:
        sl_reply_event_too_large(request, refusal->event_id, refusal->event_bytes, settings->event_bytes_max);
        return;
    case SL_REFUSAL_APPEND_TOO_LARGE: sl_reply_append_too_large(request, settings->append_bytes_max); return;
    case SL_REFUSAL_ERROR: sl_reply_error(request, refusal->err); return;
    }
}

/* --- the write --- */

static bool prepare(sl_request *request, sl_batch *ret_batch)
{
    append_state *const state = request->state;

    state->op.append.events = state->gather.events;
    state->op.append.event_count = state->gather.event_count;
    *ret_batch = (sl_batch){ .ops = &state->op, .op_count = 1, .durability = SL_DURABLE_SYNC };
    return true;
}

/* The name of the stream is in the arena of the request, not here: the answer may need it. */
static void drop_events(sl_request *request)
{
    append_state *const state = request->state;

    sl_gather_done(&state->gather);
}

static void on_refused(sl_request *request, sl_err err)
{
    const append_state *const state = request->state;
    const sl_refusal refusal = sl_append_refusal(&state->op, err);

    reply_refusal(request, &refusal);
}

static const sl_write_rules append_rules = {
    .prepare = prepare,
    .accepted = drop_events,
    .refused = on_refused,
    .late = sl_write_reply_late,
    .done = on_done,
};

/* --- what comes in --- */

static void ask(sl_request *request)
{
    append_state *const state = request->state;

    switch (sl_permit_check(&state->permit, state->op.append.stream, SL_ACTION_WRITE)) {
    case SL_ACCESS_ALLOWED:
    case SL_ACCESS_PENDING: return;
    case SL_ACCESS_DENIED: sl_reply_access_denied(request); return;
    case SL_ACCESS_FAILED: sl_reply_error(request, SL_ERR_IO); return;
    }
}

static void take_options(sl_request *request, const sl_append_options *options)
{
    append_state *const state = request->state;
    const char *const complaint = sl_stream_complaint(options->stream);
    const char *const name = complaint == NULL ? sl_arena_copy_str(&request->arena, options->stream) : NULL;

    state->has_options = true;
    state->expected = options->expected;
    state->op = (sl_op){ .kind = SL_OP_APPEND, .append.stream = { name, options->stream.bytes } };
    if (complaint != NULL)
        sl_reply_invalid(request, complaint);
    else if (name == NULL)
        sl_reply_error(request, SL_ERR_NOMEM);
    else if (!sl_expected_from_wire(options->expected, &state->op.append.expected))
        sl_reply_invalid(request, SL_EXPECTED_COMPLAINT);
    else
        ask(request);
}

static void take_event(sl_request *request, const sl_wire_proposed *proposed)
{
    append_state *const state = request->state;
    sl_refusal refusal;
    sl_event_in event;
    sl_err err;

    if (!sl_proposed_take(proposed, request->host->settings, &event, &refusal)) {
        reply_refusal(request, &refusal);
        return;
    }
    event.created_ns = sl_clock_wall_ns(request->host->clock);
    err = sl_gather_add(&state->gather, &event);
    if (err == SL_ERR_TOO_LARGE)
        sl_reply_append_too_large(request, request->host->settings->append_bytes_max);
    else if (err != SL_OK)
        sl_reply_error(request, err);
}

static void on_begin(sl_request *request)
{
    append_state *const state = request->state;

    sl_permit_init(&state->permit, request, ask);
    sl_write_init(&state->write, request, &append_rules);
    sl_gather_init(&state->gather, request->host);
    sl_write_gather(&state->write);
}

static void on_message(sl_request *request, sl_str message)
{
    const append_state *const state = request->state;
    const char *reason = NULL;
    sl_append_request in;

    if (sl_append_request_decode(message, &in, &reason) != SL_OK)
        sl_reply_invalid(request, reason);
    else if (!state->has_options && in.kind != SL_APPEND_REQUEST_OPTIONS)
        sl_reply_thrown(request, "The first message of Append has to be its options.");
    else if (state->has_options && in.kind != SL_APPEND_REQUEST_EVENT)
        sl_reply_thrown(request, "After its options, every message of Append has to be an event.");
    else if (in.kind == SL_APPEND_REQUEST_OPTIONS)
        take_options(request, &in.options);
    else
        take_event(request, &in.event);
}

static void on_half_close(sl_request *request)
{
    append_state *const state = request->state;

    if (state->has_options)
        sl_write_submit(&state->write);
    else
        sl_reply_thrown(request, "Append ended without options.");
}

static void on_end(sl_request *request)
{
    append_state *const state = request->state;

    sl_permit_end(&state->permit);
    sl_write_end(&state->write);
    drop_events(request);
}

static void on_stop(sl_request *request)
{
    append_state *const state = request->state;

    sl_write_stop(&state->write);
}

const sl_method sl_method_streams_append = {
    .service = SL_STR_INIT("event_store.client.streams.Streams"),
    .name = SL_STR_INIT("Append"),
    .kind = SL_METHOD_CLIENT_STREAM,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_STREAMS_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(append_state),
    .begin = on_begin,
    .message = on_message,
    .half_close = on_half_close,
    .end = on_end,
    .stop = on_stop,
};

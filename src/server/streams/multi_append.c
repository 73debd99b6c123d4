/* server/streams/multi_append.c — AppendSession: one request for each stream, all of them one commit.
 *
 *      request --> may he? --> its records into the plan --> ... --> half-close --> one batch --> the answer */
#include "server/services.h"
#include "server/streams/multi_plan.h"
#include "server/streams/multi_reply.h"
#include "server/streams/proposed.h"
#include "server/streams/write.h"

typedef struct session_state {
    sl_permit permit;
    sl_write write;
    sl_plan plan;
    sl_multi_append current; /* while it is asked whether it may be written */
} session_state;

/* --- the answer --- */

static void answer(sl_request *request, const sl_commit *commit)
{
    const sl_plan *const plan = &((session_state *)request->state)->plan;
    sl_multi_revision *const revisions =
        sl_arena_alloc(&request->arena, plan->stream_count * sizeof *revisions);
    sl_multi_result result = { revisions, plan->stream_count, sl_plan_position(plan, commit) };
    sl_err err = revisions == NULL ? SL_ERR_NOMEM : SL_OK;
    sl_str message;

    for (uint32_t i = 0; i < plan->stream_count && err == SL_OK; i++)
        revisions[i] =
            (sl_multi_revision){ plan->streams[i]->name, sl_plan_revision(plan, commit, plan->streams[i]) };
    if (err == SL_OK)
        err = sl_multi_append_response_encode(&result, &request->arena, &message);
    if (err == SL_OK)
        sl_request_answer(request, message);
    else
        sl_multi_reply_error(request, err);
}

static void answer_conflict(sl_request *request, const sl_plan_stream *stream, uint64_t revision)
{
    sl_multi_reply_conflict(request, &(sl_v2_conflict){ .stream = stream->name,
                                                        .expected = stream->expected,
                                                        .actual = (int64_t)revision }); /* NONE is -1 */
}

static void on_done(sl_request *request, const sl_commit *commit)
{
    const sl_plan *const plan = &((session_state *)request->state)->plan;
    const sl_plan_stream *stream;

    if (commit->err == SL_OK) {
        answer(request, commit);
        return;
    }
    if (commit->err != SL_ERR_WRONG_REVISION && commit->err != SL_ERR_STREAM_DELETED) {
        sl_multi_reply_error(request, commit->err);
        return;
    }
    stream = plan->streams[plan->op_owners[commit->failed_op]];
    if (commit->err == SL_ERR_WRONG_REVISION)
        answer_conflict(request, stream, commit->results[commit->failed_op].revision);
    else
        sl_multi_reply_stream(request,
                              sl_plan_actual(plan, stream->name) == SL_STATE_DELETED
                                  ? SL_V2_STREAM_DELETED
                                  : SL_V2_STREAM_TOMBSTONED,
                              stream->name);
}

/* --- the write --- */

static bool prepare(sl_request *request, sl_batch *ret_batch)
{
    return sl_plan_batch(&((session_state *)request->state)->plan, ret_batch);
}

static void on_accepted(sl_request *request)
{
    sl_plan_accepted(&((session_state *)request->state)->plan);
}

static const sl_write_rules session_rules = {
    .prepare = prepare,
    .accepted = on_accepted,
    .refused = sl_multi_reply_error,
    .late = sl_multi_reply_late,
    .done = on_done,
};

/* --- what comes in --- */

static bool expected_is_valid(int64_t expected)
{
    return expected >= 0 || expected == SL_STATE_NO_STREAM || expected == SL_STATE_ANY ||
           expected == SL_STATE_EXISTS;
}

static void add_records(sl_request *request)
{
    session_state *const state = request->state;
    const sl_multi_append *const append = &state->current;
    sl_plan_stream *stream;

    if (!sl_plan_add_stream(&state->plan, append->stream, &stream) ||
        !sl_plan_reserve(&state->plan, append->record_count))
        return;
    stream->expected = append->expected;
    for (size_t i = 0; i < append->record_count; i++)
        if (!sl_plan_add_record(&state->plan, stream, &append->records[i]))
            return;
}

static void ask(sl_request *request)
{
    session_state *const state = request->state;

    switch (sl_permit_check(&state->permit, state->current.stream, SL_ACTION_WRITE)) {
    case SL_ACCESS_ALLOWED: add_records(request); return;
    case SL_ACCESS_PENDING: return;
    case SL_ACCESS_DENIED: sl_multi_reply_denied(request); return;
    case SL_ACCESS_FAILED: sl_multi_reply_error(request, SL_ERR_IO); return;
    }
}

static void take(sl_request *request)
{
    session_state *const state = request->state;
    const sl_multi_append *const append = &state->current;
    const char *const complaint = sl_stream_complaint(append->stream);

    if (complaint != NULL)
        sl_multi_reply_invalid(request, "stream", complaint);
    else if (append->record_count == 0)
        sl_multi_reply_invalid(request, "records",
                               "A request of an append session needs at least one record.");
    else if (!expected_is_valid(append->expected))
        sl_multi_reply_invalid(
            request, "expected_revision",
            "The expected revision is neither a number from 0 on nor -1 (no stream), -2 (any) "
            "or -4 (exists).");
    else if (sl_plan_find_folded(&state->plan, append->stream, false) != NULL)
        sl_multi_reply_stream(request, SL_V2_STREAM_ALREADY_IN_SESSION, append->stream);
    else
        ask(request);
}

static void on_begin(sl_request *request)
{
    session_state *const state = request->state;

    sl_permit_init(&state->permit, request, ask);
    sl_write_init(&state->write, request, &session_rules);
    sl_plan_init(&state->plan, request);
    sl_write_gather(&state->write);
}

static void on_message(sl_request *request, sl_str message)
{
    session_state *const state = request->state;
    const char *reason = NULL;
    const sl_err err = sl_multi_append_decode(message, &request->arena, &state->current, &reason);

    if (err == SL_ERR_TOO_LARGE)
        sl_multi_reply_too_large(request, message.bytes);
    else if (err != SL_OK)
        sl_multi_reply_invalid(request, "request", err == SL_ERR_INVALID ? reason : sl_err_text(err));
    else if (sl_plan_claim(&state->plan, 0))
        take(request);
}

static void on_half_close(sl_request *request)
{
    session_state *const state = request->state;

    if (state->plan.event_count == 0)
        sl_multi_reply_no_requests(request);
    else
        sl_write_submit(&state->write);
}

static void on_end(sl_request *request)
{
    session_state *const state = request->state;

    sl_permit_end(&state->permit);
    sl_write_end(&state->write);
    sl_plan_done(&state->plan);
}

static void on_stop(sl_request *request)
{
    session_state *const state = request->state;

    sl_write_stop(&state->write);
}

const sl_method sl_method_streams_v2_append_session = {
    .service = SL_STR_INIT("kurrentdb.protocol.v2.streams.StreamsService"),
    .name = SL_STR_INIT("AppendSession"),
    .kind = SL_METHOD_CLIENT_STREAM,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_MULTI_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(session_state),
    .begin = on_begin,
    .message = on_message,
    .half_close = on_half_close,
    .end = on_end,
    .stop = on_stop,
};

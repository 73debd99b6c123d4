/* server/streams/multi_records.c — AppendRecords: records of many streams in one order, and checks on any stream.
 *
 * A check on a stream that is written to becomes what its append expects, so that the store decides, with its rules for repeated appends.
 * All others are decided here, right before the batch is handed over: from that moment on everything counts for the store, so nobody can
 * come between. Who is refused hears of every check that did not hold. */
#include "server/services.h"
#include "server/streams/multi_plan.h"
#include "server/streams/multi_reply.h"
#include "server/streams/proposed.h"
#include "server/streams/write.h"

typedef struct records_state {
    sl_permit permit;
    sl_write write;
    sl_plan plan;
    uint32_t asked;            /* streams that he may use */
    sl_v2_conflict *conflicts; /* of checks that did not hold at the last attempt; room for all */
    size_t conflict_count;
} records_state;

/* --- checks --- */

/* The store cannot decide about these: nothing is written there, or it has no word for them. */
static bool is_decided_here(const sl_plan_stream *stream)
{
    return stream->event_count == 0 || stream->expected == SL_STATE_DELETED ||
           stream->expected == SL_STATE_TOMBSTONED;
}

/* True when the store shall be asked. */
static bool look_at_checks(records_state *state)
{
    const sl_plan *const plan = &state->plan;
    bool goes_on = true;

    state->conflict_count = 0;
    for (uint32_t i = 0; i < plan->stream_count; i++) {
        const sl_plan_stream *const stream = plan->streams[i];

        if (!stream->has_check || sl_plan_holds(plan, stream->name, stream->expected))
            continue;
        state->conflicts[state->conflict_count++] =
            (sl_v2_conflict){ .check_index = stream->check_index,
                              .stream = stream->name,
                              .expected = stream->expected,
                              .actual = sl_plan_actual(plan, stream->name) };
        goes_on = goes_on && !is_decided_here(stream);
    }
    return goes_on;
}

/* --- the answer --- */

static uint32_t fill_revisions(const sl_plan *plan, const sl_commit *commit, sl_multi_revision *revisions)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->stream_count; i++)
        if (plan->streams[i]->event_count > 0)
            revisions[count++] = (sl_multi_revision){ plan->streams[i]->name,
                                                      sl_plan_revision(plan, commit, plan->streams[i]) };
    return count;
}

static void answer(sl_request *request, const sl_commit *commit)
{
    const sl_plan *const plan = &((records_state *)request->state)->plan;
    sl_multi_revision *const revisions =
        sl_arena_alloc(&request->arena, plan->stream_count * sizeof *revisions);
    sl_err err = revisions == NULL ? SL_ERR_NOMEM : SL_OK;
    sl_str message;

    if (err == SL_OK) {
        const sl_multi_result result = { revisions, fill_revisions(plan, commit, revisions),
                                         sl_plan_position(plan, commit) };
        err = sl_multi_records_response_encode(&result, &request->arena, &message);
    }
    if (err == SL_OK)
        sl_request_answer(request, message);
    else
        sl_multi_reply_error(request, err);
}

static void answer_conflict(sl_request *request, const sl_commit *commit)
{
    const records_state *const state = request->state;
    const sl_plan *const plan = &state->plan;
    const sl_plan_stream *const stream = plan->streams[plan->op_owners[commit->failed_op]];
    const uint64_t revision = commit->results[commit->failed_op].revision;

    if (state->conflict_count > 0)
        sl_multi_reply_violations(request, state->conflicts, state->conflict_count);
    else if (commit->err == SL_ERR_STREAM_DELETED)
        sl_multi_reply_stream(request, SL_V2_STREAM_TOMBSTONED, stream->name);
    else /* ids of which some were there before, and others not */
        sl_multi_reply_conflict(request, &(sl_v2_conflict){ .stream = stream->name,
                                                            .expected = stream->expected,
                                                            .actual = (int64_t)revision });
}

static void on_done(sl_request *request, const sl_commit *commit)
{
    if (commit->err == SL_OK)
        answer(request, commit);
    else if (commit->err == SL_ERR_WRONG_REVISION || commit->err == SL_ERR_STREAM_DELETED)
        answer_conflict(request, commit);
    else
        sl_multi_reply_error(request, commit->err);
}

/* --- the write --- */

static bool prepare(sl_request *request, sl_batch *ret_batch)
{
    records_state *const state = request->state;

    if (look_at_checks(state))
        return sl_plan_batch(&state->plan, ret_batch);
    sl_multi_reply_violations(request, state->conflicts, state->conflict_count);
    return false;
}

static void on_accepted(sl_request *request)
{
    sl_plan_accepted(&((records_state *)request->state)->plan);
}

static const sl_write_rules records_rules = {
    .prepare = prepare,
    .accepted = on_accepted,
    .refused = sl_multi_reply_error,
    .late = sl_multi_reply_late,
    .done = on_done,
};

/* What is written to needs the right to write, what is only looked at the right to read. */
static void ask(sl_request *request)
{
    records_state *const state = request->state;

    while (state->asked < state->plan.stream_count) {
        const sl_plan_stream *const stream = state->plan.streams[state->asked];

        switch (sl_permit_check(&state->permit, stream->name,
                                stream->event_count > 0 ? SL_ACTION_WRITE : SL_ACTION_READ)) {
        case SL_ACCESS_ALLOWED: state->asked++; break;
        case SL_ACCESS_PENDING: return;
        case SL_ACCESS_DENIED: sl_multi_reply_denied(request); return;
        case SL_ACCESS_FAILED: sl_multi_reply_error(request, SL_ERR_IO); return;
        }
    }
    sl_write_submit(&state->write);
}

/* --- what comes in --- */

static bool refuse(sl_request *request, const char *field, const char *sentence)
{
    sl_multi_reply_invalid(request, field, sentence);
    return false;
}

static bool add_record(sl_request *request, const sl_multi_record *record)
{
    sl_plan *const plan = &((records_state *)request->state)->plan;
    const char *const complaint = sl_stream_complaint(record->stream);
    sl_plan_stream *stream;

    if (complaint != NULL)
        return refuse(request, "records.stream", complaint);
    stream = sl_plan_find(plan, record->stream);
    if (stream == NULL && !sl_plan_add_stream(plan, record->stream, &stream))
        return false;
    return sl_plan_add_record(plan, stream, record);
}

static bool state_is_valid(int64_t expected)
{
    return expected >= 0 || expected == SL_STATE_NO_STREAM || expected == SL_STATE_EXISTS ||
           expected == SL_STATE_DELETED || expected == SL_STATE_TOMBSTONED;
}

static bool add_check(sl_request *request, const sl_multi_check *check, size_t index)
{
    sl_plan *const plan = &((records_state *)request->state)->plan;
    const char *const complaint = sl_stream_complaint(check->stream);
    sl_plan_stream *stream;

    if (!check->known)
        return refuse(request, "checks", "A check is of no kind, or of one that this server does not know.");
    if (complaint != NULL)
        return refuse(request, "checks.stream_state.stream", complaint);
    if (!state_is_valid(check->expected))
        return refuse(
            request, "checks.stream_state.expected_state",
            "A check has to expect a revision from 0 on, -1 (no stream), -4 (exists), -5 (deleted) or "
            "-6 (tombstoned).");
    if (sl_plan_find_folded(plan, check->stream, true) != NULL)
        return refuse(request, "checks", "A stream is in the checks twice. One check says all about it.");
    stream = sl_plan_find(plan, check->stream);
    if (stream == NULL && !sl_plan_add_stream(plan, check->stream, &stream))
        return false;
    stream->expected = check->expected;
    stream->has_check = true;
    stream->check_index = (uint32_t)index;
    return true;
}

static bool take_all(sl_request *request, const sl_multi_records *in)
{
    records_state *const state = request->state;

    if (in->record_count == 0)
        return refuse(request, "records", "AppendRecords needs at least one record.");
    if (!sl_plan_reserve(&state->plan, in->record_count))
        return false;
    for (size_t i = 0; i < in->record_count; i++)
        if (!add_record(request, &in->records[i]))
            return false;
    for (size_t i = 0; i < in->check_count; i++)
        if (!add_check(request, &in->checks[i], i))
            return false;
    state->conflicts = sl_arena_alloc(&request->arena, in->check_count * sizeof *state->conflicts);
    if (state->conflicts == NULL)
        sl_multi_reply_error(request, SL_ERR_NOMEM);
    return state->conflicts != NULL;
}

static void on_begin(sl_request *request)
{
    records_state *const state = request->state;

    sl_permit_init(&state->permit, request, ask);
    sl_write_init(&state->write, request, &records_rules);
    sl_plan_init(&state->plan, request);
}

static void on_message(sl_request *request, sl_str message)
{
    records_state *const state = request->state;
    const char *reason = NULL;
    sl_multi_records in;
    const sl_err err = sl_multi_records_decode(message, &request->arena, &in, &reason);

    if (err == SL_ERR_TOO_LARGE)
        sl_multi_reply_too_large(request, message.bytes);
    else if (err != SL_OK)
        sl_multi_reply_invalid(request, "request", err == SL_ERR_INVALID ? reason : sl_err_text(err));
    else if (sl_plan_claim(&state->plan, 0) && take_all(request, &in))
        ask(request);
}

static void on_end(sl_request *request)
{
    records_state *const state = request->state;

    sl_permit_end(&state->permit);
    sl_write_end(&state->write);
    sl_plan_done(&state->plan);
}

const sl_method sl_method_streams_v2_append_records = {
    .service = SL_STR_INIT("kurrentdb.protocol.v2.streams.StreamsService"),
    .name = SL_STR_INIT("AppendRecords"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_MULTI_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(records_state),
    .begin = on_begin,
    .message = on_message,
    .end = on_end,
};

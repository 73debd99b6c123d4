/* server/streams/delete.c — Delete, which hides a stream, and Tombstone, which ends it for ever.
 *
 * Both are one op of the store; they differ in which. A wrong revision ends these calls with a status, not with an answer as Append
 * does, and its text says "Delete" for both. */
#include "server/reply.h"
#include "server/services.h"
#include "server/streams/proposed.h"
#include "server/streams/write.h"
#include "wire/streams_control.h"

typedef struct delete_state {
    sl_permit permit;
    sl_write write;
    sl_op op;
    sl_wire_revision expected; /* as the client said it */
} delete_state;

static void answer(sl_request *request, uint64_t position)
{
    const sl_wire_position given = { SL_WIRE_POSITION_GIVEN, position, position };
    sl_str message;

    if (sl_delete_response_encode(&given, &request->arena, &message) == SL_OK)
        sl_request_answer(request, message);
    else
        sl_reply_error(request, SL_ERR_NOMEM); /* it is deleted; who asks again hears that */
}

static void on_done(sl_request *request, const sl_commit *commit)
{
    const delete_state *const state = request->state;

    if (commit->err == SL_OK)
        answer(request, commit->results[0].position);
    else if (commit->err == SL_ERR_WRONG_REVISION)
        sl_reply_wrong_revision(request, state->op.remove.stream, state->expected,
                                sl_revision_to_wire(commit->results[0].revision));
    else if (commit->err == SL_ERR_STREAM_DELETED)
        sl_reply_stream_deleted(request, state->op.remove.stream);
    else
        sl_reply_error(request, commit->err);
}

static bool prepare(sl_request *request, sl_batch *ret_batch)
{
    delete_state *const state = request->state;

    *ret_batch = (sl_batch){ .ops = &state->op, .op_count = 1, .durability = SL_DURABLE_SYNC };
    return true;
}

/* What the batch points to is in the arena of the request. */
static void keep_all(sl_request *request)
{
    (void)request;
}

static const sl_write_rules delete_rules = {
    .prepare = prepare,
    .accepted = keep_all,
    .refused = sl_reply_error,
    .late = sl_write_reply_late,
    .done = on_done,
};

static void ask(sl_request *request)
{
    delete_state *const state = request->state;

    switch (sl_permit_check(&state->permit, state->op.remove.stream, SL_ACTION_DELETE)) {
    case SL_ACCESS_ALLOWED: sl_write_submit(&state->write); return;
    case SL_ACCESS_PENDING: return;
    case SL_ACCESS_DENIED: sl_reply_access_denied(request); return;
    case SL_ACCESS_FAILED: sl_reply_error(request, SL_ERR_IO); return;
    }
}

static const char *complaint_about(sl_str stream)
{
    if (sl_str_starts_with(stream, SL_STR("$$")))
        return "A metadata stream cannot be deleted: it goes with its stream, and writing {} to it clears "
               "it.";
    return sl_stream_complaint(stream);
}

static void take(sl_request *request, const sl_delete_request *in)
{
    delete_state *const state = request->state;
    const char *const complaint = complaint_about(in->stream);

    state->expected = in->expected;
    state->op.remove.stream = in->stream;
    state->op.remove.created_ns = sl_clock_wall_ns(request->host->clock);
    state->op.remove.id = sl_write_new_id(request->host);
    if (complaint != NULL)
        sl_reply_invalid(request, complaint);
    else if (!sl_expected_from_wire(in->expected, &state->op.remove.expected))
        sl_reply_invalid(request, SL_EXPECTED_COMPLAINT);
    else
        ask(request);
}

static void on_message(sl_request *request, sl_str message)
{
    sl_delete_request in;
    const char *reason = NULL;
    const sl_err err = sl_delete_request_decode(message, &request->arena, &in, &reason);

    if (err == SL_OK)
        take(request, &in);
    else
        sl_reply_undecodable(request, err, reason);
}

static void begin(sl_request *request, sl_op_kind kind)
{
    delete_state *const state = request->state;

    state->op.kind = kind;
    sl_permit_init(&state->permit, request, ask);
    sl_write_init(&state->write, request, &delete_rules);
}

static void begin_delete(sl_request *request)
{
    begin(request, SL_OP_DELETE);
}

static void begin_tombstone(sl_request *request)
{
    begin(request, SL_OP_TOMBSTONE);
}

static void on_end(sl_request *request)
{
    delete_state *const state = request->state;

    sl_permit_end(&state->permit);
    sl_write_end(&state->write);
}

const sl_method sl_method_streams_delete = {
    .service = SL_STR_INIT("event_store.client.streams.Streams"),
    .name = SL_STR_INIT("Delete"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_STREAMS_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(delete_state),
    .begin = begin_delete,
    .message = on_message,
    .end = on_end,
};

const sl_method sl_method_streams_tombstone = {
    .service = SL_STR_INIT("event_store.client.streams.Streams"),
    .name = SL_STR_INIT("Tombstone"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_READERS,
    .message_bytes_max = SL_STREAMS_MESSAGE_BYTES_MAX,
    .state_bytes = sizeof(delete_state),
    .begin = begin_tombstone,
    .message = on_message,
    .end = on_end,
};

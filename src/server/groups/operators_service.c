/* server/groups/operators_service.c — sluice.operators.Operators: Consumers, Stop and Resume, for $ops and $admins.
 *
 * Stop sends how far it is whenever that changes, at most once in a turn; for a client that reads slowly the newest state replaces
 * what it has not got yet. The last message always arrives, and only then the status. */
#include "server/groups/operators.h"
#include "server/reply.h"
#include "server/services.h"

enum {
    REQUEST_BYTES_MAX = 16 * 1024,
};

typedef struct stopping {
    sl_request *request;
    sl_stop_wait wait;
    bool is_unsent; /* there was no room for what is to be told */
} stopping;

static void refuse(sl_request *request, const sl_wire_who *who, sl_err err)
{
    const sl_str sentence = sl_str_from(sl_operators_sentence(err));

    switch ((int)err) {
    case SL_ERR_NOT_FOUND: sl_reply_group_not_found(request, who->stream, who->group); break;
    case SL_ERR_FULL: sl_request_finish(request, SL_STATUS_RESOURCE_EXHAUSTED, sentence, NULL, 0); break;
    case SL_ERR_AGAIN:
    case SL_ERR_STORE_FAILED: sl_request_finish(request, SL_STATUS_UNAVAILABLE, sentence, NULL, 0); break;
    default: sl_reply_error(request, err); break;
    }
}

/* --- Consumers --- */

static void list_consumers(sl_request *request, sl_str message)
{
    sl_wire_consumers_request asked;
    sl_wire_consumers consumers;
    const char *reason = NULL;
    sl_str answer;
    sl_err err = sl_wire_consumers_request_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    reason = sl_who_complaint(&asked.who, true);
    if (reason != NULL) {
        sl_reply_invalid(request, reason);
        return;
    }
    err = sl_operators_list(request->host, &asked.who, asked.with_reports, &request->arena, &consumers);
    if (err == SL_OK)
        err = sl_wire_consumers_encode(&consumers, &request->arena, &answer);
    if (err == SL_OK)
        sl_request_answer(request, answer);
    else if (err == SL_ERR_FULL)
        sl_request_finish(request, SL_STATUS_RESOURCE_EXHAUSTED,
                          SL_STR("There are more than 10,000 consumers: name a stream or a group."), NULL, 0);
    else
        refuse(request, &asked.who, err);
}

/* --- Stop --- */

static bool is_last(const sl_stop_wait *wait)
{
    return wait->state == SL_WAIT_DONE || wait->state == SL_WAIT_OVER;
}

/* The memory of one message, since the call may last for a day. */
static void send_progress(sl_request *request, const sl_wire_stop_progress *progress)
{
    sl_arena arena;
    sl_str message;
    sl_err err;

    sl_arena_init(&arena, request->host->alloc, (sl_arena_sizes){ 256, 4096 });
    err = sl_wire_stop_progress_encode(progress, &arena, &message);
    if (err == SL_OK)
        sl_request_send(request, message);
    else
        sl_reply_error(request, err);
    sl_arena_done(&arena);
}

static void tell(stopping *s)
{
    sl_request *const request = s->request;

    s->is_unsent = sl_request_room(request) == 0;
    if (s->is_unsent)
        return;
    send_progress(request, &s->wait.progress);
    if (is_last(&s->wait))
        sl_request_finish(request, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void on_changed(void *ctx)
{
    stopping *const s = ctx;
    sl_request *const request = sl_request_hold(s->request);

    if (s->wait.state == SL_WAIT_FAILED && s->wait.is_group_gone)
        sl_request_finish(request, SL_STATUS_ABORTED, sl_str_from(SL_GROUP_GONE_SENTENCE), NULL, 0);
    else if (s->wait.state == SL_WAIT_FAILED)
        sl_request_finish(request, SL_STATUS_UNAVAILABLE,
                          SL_STR("Nobody knows how this ends: a group was deleted or failed, or the server "
                                 "ends. List the consumers to see."),
                          NULL, 0);
    else
        tell(s);
    sl_request_release(request);
}

static void stop_consumers(sl_request *request, sl_str message)
{
    stopping *const s = request->state;
    const char *reason = NULL;
    sl_wire_stop_request asked;
    sl_err err = sl_wire_stop_request_decode(message, &request->arena, &asked, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    reason = sl_who_complaint(&asked.who, false);
    if (reason == NULL && asked.reason.bytes > SL_STOP_REASON_BYTES_MAX)
        reason = "The reason is too long: at most 1,024 bytes.";
    if (reason != NULL) {
        sl_reply_invalid(request, reason);
        return;
    }
    s->request = request;
    s->wait = (sl_stop_wait){ .changed = on_changed, .ctx = s, .user = request->identity.name };
    err = sl_operators_stop_consumers(request->host,
                                      &(sl_operators_stop){ .who = asked.who,
                                                            .reason = asked.reason,
                                                            .deadline_ms = asked.deadline_ms,
                                                            .wait_ms = asked.wait_ms,
                                                            .hand_back_unstarted = asked.hand_back_unstarted,
                                                            .once = asked.once },
                                      &s->wait);
    if (err != SL_OK)
        refuse(request, &asked.who, err);
}

static void on_room(sl_request *request)
{
    stopping *const s = request->state;

    if (s->is_unsent)
        tell(s);
}

static void on_end(sl_request *request)
{
    stopping *const s = request->state;

    sl_stop_wait_end(&s->wait);
}

/* --- Resume --- */

static void on_resumed(void *ctx)
{
    stopping *const s = ctx;
    sl_request *const request = sl_request_hold(s->request);
    sl_str answer;

    if (s->wait.state == SL_WAIT_FAILED)
        sl_reply_error(request, SL_ERR_STORE_FAILED);
    else if (sl_wire_resume_answer_encode(&s->wait.resumed, &request->arena, &answer) == SL_OK)
        sl_request_answer(request, answer);
    else
        sl_reply_error(request, SL_ERR_NOMEM);
    sl_stop_wait_end(&s->wait);
    sl_request_release(request);
}

static void resume_consumers(sl_request *request, sl_str message)
{
    stopping *const s = request->state;
    const char *reason = NULL;
    sl_wire_who who;
    sl_err err = sl_wire_resume_request_decode(message, &request->arena, &who, &reason);

    if (err != SL_OK) {
        sl_reply_undecodable(request, err, reason);
        return;
    }
    reason = sl_who_complaint(&who, false);
    if (reason != NULL) {
        sl_reply_invalid(request, reason);
        return;
    }
    s->request = request;
    s->wait = (sl_stop_wait){ .changed = on_resumed, .ctx = s, .user = request->identity.name };
    err = sl_operators_resume(request->host, &who, &s->wait);
    if (err != SL_OK)
        refuse(request, &who, err);
}

/* --- rows --- */

const sl_method sl_method_operators_consumers = {
    .service = SL_STR_INIT(SL_OPERATORS_SERVICE),
    .name = SL_STR_INIT("Consumers"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_OPERATORS,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .message = list_consumers,
};

const sl_method sl_method_operators_stop = {
    .service = SL_STR_INIT(SL_OPERATORS_SERVICE),
    .name = SL_STR_INIT("Stop"),
    .kind = SL_METHOD_SERVER_STREAM,
    .who = SL_FOR_OPERATORS,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .state_bytes = sizeof(stopping),
    .message = stop_consumers,
    .room = on_room,
    .end = on_end,
};

const sl_method sl_method_operators_resume = {
    .service = SL_STR_INIT(SL_OPERATORS_SERVICE),
    .name = SL_STR_INIT("Resume"),
    .kind = SL_METHOD_UNARY,
    .who = SL_FOR_OPERATORS,
    .message_bytes_max = REQUEST_BYTES_MAX,
    .state_bytes = sizeof(stopping),
    .message = resume_consumers,
    .end = on_end,
};

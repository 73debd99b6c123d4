/* worker/handler/append_link.c — the connection of the append handler: when it is made, what goes over it, and its end.
 *
 *      no call --something waits, and the pause is over--> call --> ended: a pause
 *                                                            \-- goodbye --> leaving --> ended
 *
 * A call that ends is one fault, however many appends were on it. What was sent and not answered fails with it, because nobody knows what
 * became of it; what the server has certainly not seen waits for the next call. When nothing else tells of the fault, the job that has
 * waited longest does, or a worker whose server stays away would never hear of it. The first goodbye after an answer is no fault:
 * servers are restarted.
 *
 * The connection is never made from inside of a callback of the client, but always by a timer. */
#include "worker/handler/append_inside.h"

#include "base/cleanup.h"

#include <assert.h>

#define MS_NS UINT64_C(1000000)

enum {
    ANSWER_BYTES_MAX = 256 * 1024,
    SHIFT_MAX = 7 /* of the pause: then it is at its maximum */
};

static sl_str target_of(const appender *a, const sl_job *job)
{
    return a->stream_bytes == 0 ? job->message.stream : (sl_str){ a->stream, a->stream_bytes };
}

/* --- without a call --- */

static uint64_t pause_left_ns(const appender *a)
{
    const uint64_t now_ns = sl_loop_now_ns(a->loop);

    return a->not_before_ns > now_ns ? a->not_before_ns - now_ns : 0;
}

static void note_problem(appender *a, sl_str sentence)
{
    sl_text text;

    sl_text_init(&text, a->problem, sizeof a->problem);
    sl_text_add(&text, "server ");
    sl_text_add(&text, a->address);
    sl_text_add(&text, " took no events: ");
    sl_text_add_str(&text, sentence);
}

/* In a drain there is no time for long pauses. */
static void pause_next_call(appender *a)
{
    const uint32_t shift = a->failures < SHIFT_MAX ? a->failures : SHIFT_MAX;
    const uint64_t pause_ms = sl_min_u64((uint64_t)SL_APPEND_RETRY_MS_MIN << shift, SL_APPEND_RETRY_MS_MAX);

    a->failures++;
    a->not_before_ns = sl_loop_now_ns(a->loop) + (a->is_draining ? SL_APPEND_RETRY_MS_MIN : pause_ms) * MS_NS;
}

static void end_with_problem(appender *a, append_slot *s, sl_result result)
{
    char buffer[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer); /* the problem may change while somebody is told of it */
    sl_text_add(&text, a->problem);
    result.reason = sl_text_str(&text);
    if (result.kind == SL_RESULT_RETRY)
        result.retry_after_ns = pause_left_ns(a);
    append_end_slot(a, s, &result);
}

/* The drain of the worker does not wait for another try: what was not sent with this one is handed back. */
static void give_up_all(appender *a)
{
    sl_list over, *node;

    sl_list_init(&over);
    sl_list_splice(&over, &a->unsent);
    while ((node = sl_list_first(&over)) != NULL)
        append_give_up(a, SL_CONTAINER_OF(node, append_slot, line));
}

static void end_lost(appender *a, sl_result result)
{
    sl_list lost, *node = sl_list_first(&a->unsent);

    sl_list_init(&lost);
    sl_list_splice(&lost, &a->sent);
    if (sl_list_empty(&lost) && node != NULL) { /* it tells of the fault */
        sl_list_remove(node);
        sl_list_push_back(&lost, node);
    }
    while ((node = sl_list_first(&lost)) != NULL) {
        end_with_problem(a, SL_CONTAINER_OF(node, append_slot, line), result);
        result.is_told = result.is_fault;
    }
    if (a->is_draining)
        give_up_all(a);
}

/* --- the end of a call --- */

static sl_result judge_end(const appender *a, const sl_client_result *result)
{
    if (a->is_broken || result->kind == SL_CALL_REFUSED)
        return (sl_result){ .kind = SL_RESULT_FAILED, .is_fault = true };
    if (result->kind == SL_CALL_FINISHED)
        return sl_append_judge(result->status);
    return (sl_result){ .kind = SL_RESULT_RETRY, .is_fault = true };
}

static sl_str sentence_of(const appender *a, const sl_client_result *result)
{
    if (a->is_broken)
        return SL_STR("its answer cannot be understood");
    if (result->message.bytes > 0)
        return result->message;
    if (result->status == SL_STATUS_OK)
        return SL_STR("it ended the call");
    return sl_str_from(sl_status_text(result->status));
}

/* In front of the others, as they came. */
static void unsend(appender *a)
{
    SL_LIST_EACH (node, &a->sent)
        SL_CONTAINER_OF(node, append_slot, line)->is_sent = false;
    sl_list_splice(&a->sent, &a->unsent);
    sl_list_splice(&a->unsent, &a->sent);
}

static void on_call_end(void *ctx, const sl_client_result *result)
{
    appender *const a = ctx;
    const sl_result judged = judge_end(a, result);
    const bool is_farewell = a->is_leaving && a->failures == 0;

    note_problem(a, sentence_of(a, result));
    pause_next_call(a);
    a->is_broken = false;
    if (a->is_silent || a->client == NULL)
        return;
    if (a->is_leaving)
        sl_client_shutdown(a->client);
    if (result->unprocessed)
        unsend(a);
    if (!is_farewell || !sl_list_empty(&a->sent))
        end_lost(a, judged);
    append_go_on(a);
}

static void on_open(void *ctx)
{
    append_go_on(ctx);
}

static void on_client_end(void *ctx, const sl_client_end *end)
{
    appender *const a = ctx;

    (void)end;
    a->is_leaving = false;
    append_go_on(a);
}

/* What is on its way is still answered. */
static void on_goaway(void *ctx)
{
    appender *const a = ctx;

    a->is_leaving = true;
    note_problem(a, SL_STR("it closes the connection"));
    if (a->call.call != NULL)
        sl_client_call_half_close(&a->call);
    else
        sl_client_shutdown(a->client);
}

/* --- answers --- */

static append_slot *find(appender *a, sl_str correlation)
{
    sl_wire_id id = { 0 };
    int64_t use = 0, number = 0;

    if (sl_wire_id_decode(correlation, &id, NULL) != SL_OK)
        return NULL;
    sl_uuid_to_halves(id.uuid, &use, &number);
    if (number < 1 || (uint64_t)number > a->slot_count)
        return NULL;
    append_slot *const s = &a->slots[number - 1];
    return s->job != NULL && s->use == (uint64_t)use ? s : NULL;
}

static void begin_reason(const appender *a, const sl_job *job, sl_text *text)
{
    sl_text_add(text, "server ");
    sl_text_add(text, a->address);
    sl_text_add(text, " did not append the event to stream \"");
    sl_text_add_str(text, target_of(a, job));
    sl_text_add(text, "\": ");
}

static void end_refused(appender *a, append_slot *s, const sl_wire_status *error)
{
    char buffer[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    begin_reason(a, s->job, &text);
    const sl_result result = sl_append_judge_refusal(error, &text);
    append_end_slot(a, s, &result);
}

static void on_message(void *ctx, sl_str message)
{
    static const sl_result done = { .kind = SL_RESULT_DONE };
    appender *const a = ctx;
    sl_batch_append_response response;
    append_slot *s;

    if (sl_batch_append_response_decode(message, &response, NULL) != SL_OK ||
        response.kind == SL_BATCH_APPEND_RESPONSE_UNSET) {
        a->is_broken = true;
        sl_client_call_cancel(&a->call);
        return;
    }
    a->failures = 0;
    if (!a->is_leaving)
        a->problem[0] = '\0';
    s = find(a, response.correlation);
    if (s == NULL)
        return; /* it was killed */
    if (response.kind == SL_BATCH_APPEND_RESPONSE_SUCCESS)
        append_end_slot(a, s, &done);
    else
        end_refused(a, s, &response.error);
}

/* --- sending --- */

static bool is_json(sl_str content_type)
{
    return sl_str_equal(content_type, SL_STR("application/json"));
}

static sl_wire_proposed event_of(const appender *a, const sl_job *job)
{
    const sl_job_message *const message = &job->message;
    const sl_str target = target_of(a, job);

    return (sl_wire_proposed){ .id = { .uuid = sl_uuid_v5(message->event_id, target.data, target.bytes),
                                       .form = SL_WIRE_ID_STRUCTURED },
                               .type = message->type,
                               .content_type = is_json(message->content_type)
                                                   ? SL_STR("application/json")
                                                   : SL_STR("application/octet-stream"),
                               .custom_metadata = message->metadata,
                               .data = message->data };
}

/* SL_OK, SL_ERR_FULL, SL_ERR_TOO_LARGE, SL_ERR_NOMEM. */
static sl_err send(appender *a, const append_slot *s)
{
    const sl_wire_proposed event = event_of(a, s->job);
    const sl_batch_options options = { .stream = target_of(a, s->job),
                                       .expected = { .kind = SL_WIRE_REVISION_ANY } };
    const sl_uuid number = sl_uuid_from_halves((int64_t)s->use, (int64_t)(s - a->slots) + 1);
    const sl_batch_append_draft draft = { .correlation = { .uuid = number, .form = SL_WIRE_ID_STRUCTURED },
                                          .options = &options,
                                          .events = &event,
                                          .event_count = 1,
                                          .is_final = true };
    const size_t bytes = sl_batch_append_request_size(&draft);
    uint8_t *message;
    const sl_err err = sl_client_call_reserve(&a->call, bytes, &message);

    if (err != SL_OK)
        return err;
    sl_batch_append_request_encode(&draft, message, bytes);
    sl_client_call_commit(&a->call, bytes);
    return SL_OK;
}

static void end_unsendable(appender *a, append_slot *s, sl_err err)
{
    const bool is_large = err == SL_ERR_TOO_LARGE;
    const sl_result result = { .kind = is_large ? SL_RESULT_PARK : SL_RESULT_UNBEGUN,
                               .reason = is_large ? SL_STR("the message is too large for a server")
                                                  : SL_STR("there is not enough memory for the event") };

    append_end_slot(a, s, &result);
}

/* As many as there is room for; the rest when on_room comes. */
static void send_unsent(appender *a)
{
    sl_list *node;

    while (a->call.call != NULL && (node = sl_list_first(&a->unsent)) != NULL) {
        append_slot *const s = SL_CONTAINER_OF(node, append_slot, line);
        const sl_err err = send(a, s);

        if (err == SL_ERR_FULL)
            return;
        sl_list_remove(node);
        sl_list_push_back(&a->sent, node);
        s->is_sent = true;
        if (err != SL_OK)
            end_unsendable(a, s, err);
    }
}

static void on_room(void *ctx)
{
    send_unsent(ctx);
}

/* --- the beginning of a call --- */

static sl_err start_call(appender *a)
{
    static const sl_client_call_handler handler = { .on_message = on_message,
                                                    .on_room = on_room,
                                                    .on_end = on_call_end };
    const sl_client_request request = { .path = SL_STR("/event_store.client.streams.Streams/BatchAppend"),
                                        .message_bytes_max = ANSWER_BYTES_MAX,
                                        .handler = &handler,
                                        .ctx = a };
    const sl_err err = sl_client_is_idle(a->client) ? sl_client_connect(a->client) : SL_OK;

    return err == SL_OK ? sl_client_call_start(a->client, &a->call, &request) : err;
}

void append_on_again(void *ctx)
{
    static const sl_result later = { .kind = SL_RESULT_RETRY, .is_fault = true };
    appender *const a = ctx;
    sl_err err;

    if (a->is_leaving || a->call.call != NULL || sl_list_empty(&a->unsent))
        return;
    err = start_call(a);
    if (err != SL_OK) {
        note_problem(a, sl_str_from(sl_err_text(err)));
        pause_next_call(a);
        end_lost(a, later);
    }
    append_go_on(a);
}

void append_go_on(appender *a)
{
    if (a->is_leaving || a->client == NULL || sl_list_empty(&a->unsent))
        return;
    if (a->call.call != NULL && sl_client_is_open(a->client))
        send_unsent(a);
    else if (a->call.call == NULL)
        sl_timer_set(&a->again, a->not_before_ns);
}

sl_err append_make_client(appender *a, const sl_append_handler_options *options, sl_text *problem)
{
    static const sl_client_handler handler = { .on_open = on_open,
                                               .on_goaway = on_goaway,
                                               .on_end = on_client_end };
    const sl_client_options client = { .address = options->address,
                                       .connect_timeout_ns = options->connect_timeout_ns,
                                       .handler = &handler,
                                       .ctx = a };

    return sl_client_new(a->loop, &client, problem, &a->client);
}

/* client/ask.c — see client/ask.h. */
#include "client/ask.h"

#include "base/cleanup.h"

#include <assert.h>

typedef struct asking {
    const sl_client_question *question;
    sl_client_answer *answer;
    sl_client_call call;
    size_t sent_count;
    sl_err send_err;
    bool is_over;
} asking;

void sl_client_turn_until(sl_client *client, const bool *done, const bool *stop)
{
    while ((done == NULL || !*done) && (stop == NULL || !*stop))
        sl_loop_turn(sl_client_loop(client), true);
}

/* --- sending --- */

/* As much as there is room for; the rest when there is more. */
static void send_rest(asking *a)
{
    const sl_client_question *const question = a->question;
    sl_err err = SL_OK;

    while (err == SL_OK && a->sent_count < question->message_count) {
        err = sl_client_call_send(&a->call, &question->messages[a->sent_count], 1);
        a->sent_count += err == SL_OK;
    }
    if (err == SL_OK)
        sl_client_call_half_close(&a->call);
    else if (err != SL_ERR_FULL)
        a->send_err = err; /* the call is cancelled by whoever waits for it: not inside of a callback */
}

static void on_room(void *ctx)
{
    asking *a = ctx;

    if (a->sent_count < a->question->message_count && a->send_err == SL_OK)
        send_rest(a);
}

/* --- receiving --- */

static void on_message(void *ctx, sl_str message)
{
    asking *a = ctx;

    a->answer->message_count++;
    if (a->question->on_message != NULL)
        a->question->on_message(a->question->ctx, message);
}

/* Without memory a trailer is missing: the status and the message still tell what happened. */
static void copy_trailers(sl_metadata_list *to, const sl_metadata_list *from)
{
    for (size_t i = 0; i < sl_metadata_list_count(from); i++) {
        const sl_metadata row = sl_metadata_list_at(from, i);
        (void)sl_metadata_list_add(to, row.key, row.value);
    }
}

static void on_end(void *ctx, const sl_client_result *result)
{
    asking *a = ctx;
    sl_client_answer *const answer = a->answer;
    sl_text text;

    answer->kind = result->kind;
    answer->status = result->status;
    answer->unprocessed = result->unprocessed;
    sl_text_init(&text, answer->message, sizeof answer->message);
    sl_text_add_str(&text, result->message);
    copy_trailers(&answer->trailers, result->trailers);
    a->is_over = true;
}

static const sl_client_call_handler handler = { .on_message = on_message,
                                                .on_room = on_room,
                                                .on_end = on_end };

/* --- both --- */

static void wait_for_end(asking *a, sl_client *client)
{
    while (!a->is_over) {
        const bool is_stopped = a->question->stop != NULL && *a->question->stop;
        if (is_stopped || a->send_err != SL_OK)
            sl_client_call_cancel(&a->call);
        else
            sl_loop_turn(sl_client_loop(client), true);
    }
}

static sl_err ask(asking *a, sl_client *client)
{
    const sl_client_request request = {
        .path = a->question->path, .timeout_ns = a->question->timeout_ns, .handler = &handler, .ctx = a
    };
    sl_err err = sl_client_is_idle(client) ? sl_client_connect(client) : SL_OK;

    if (err == SL_OK)
        err = sl_client_call_start(client, &a->call, &request);
    if (err != SL_OK)
        return err;
    send_rest(a);
    wait_for_end(a, client);
    return a->send_err;
}

sl_err sl_client_ask(sl_client *client, const sl_client_question *question, sl_client_answer *ret_answer)
{
    sl_client_answer answer = { 0 };
    asking a = { .question = question, .answer = &answer };

    sl_metadata_list_init(&answer.trailers, &sl_alloc_default);
    const sl_err err = ask(&a, client);

    if (err == SL_OK)
        *ret_answer = answer;
    else
        sl_client_answer_done(&answer);
    return err;
}

void sl_client_answer_done(sl_client_answer *answer)
{
    sl_metadata_list_done(&answer->trailers);
}

sl_str sl_client_answer_trailer(const sl_client_answer *answer, sl_str key)
{
    sl_str value = { 0 };

    (void)sl_metadata_list_find(&answer->trailers, key, &value);
    return value;
}

/* cli/client_session.c — see cli/client_session.h. What is said about errors is in client_errors.c. */
#include "cli/client_session.h"

#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client_options.h"

enum {
    PROBLEM_BYTES = 640,
    ARENA_CHUNK_BYTES = 4096,
    ARENA_LIMIT_BYTES = 256 * 1024 * 1024 /* a few of the largest messages, written and read */
};

/* --- the loop --- */

static void on_signal(void *ctx, int number, uint32_t nth)
{
    sl_session *session = ctx;

    (void)number;
    session->interrupted = true;
    session->impatient = nth > 1;
    if (nth == 1 && session->on_interrupt != NULL)
        session->on_interrupt(session->ctx);
}

/* A reader behind a pipe wants to see what came as soon as nothing more comes at once. */
static void on_turn_end(void *ctx)
{
    const sl_session *session = ctx;

    (void)fflush(session->invocation->out); /* main() looks at the error of the stream */
}

static const sl_loop_handler loop_handler = { .on_signal = on_signal, .on_turn_end = on_turn_end };

static void on_client_end(void *ctx, const sl_client_end *end)
{
    ((sl_session *)ctx)->last_end = *end;
}

static void on_impatient(void *ctx)
{
    sl_session *session = ctx;
    sl_client_call *const call = session->waiting;

    if (call == NULL || call->call == NULL)
        return;
    if (sl_client_has_answered(session->client) && !session->awaits_answer)
        return;
    session->ran_out = true;
    sl_client_call_cancel(call);
}

void sl_session_wait_for(sl_session *session, sl_client_call *call)
{
    session->waiting = call;
    if (call == NULL || session->timeout_ns == 0)
        sl_timer_stop(&session->patience);
    else
        sl_timer_set(&session->patience, sl_add_sat_u64(sl_loop_now_ns(session->loop), session->timeout_ns));
}

static const sl_client_handler client_handler = { .on_end = on_client_end };

/* --- open and close --- */

static int make_client(sl_session *session, const sl_client_address *address)
{
    const sl_client_options options = { .address = address,
                                        .connect_timeout_ns = session->timeout_ns,
                                        .handler = &client_handler,
                                        .ctx = session };
    char buffer[PROBLEM_BYTES];
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, buffer, sizeof buffer);
    err = sl_loop_new(NULL, &loop_handler, session, &session->loop);
    if (err == SL_OK) {
        sl_timer_init(&session->patience, session->loop, on_impatient, session);
        err = sl_client_new(session->loop, &options, &problem, &session->client);
    }
    if (err == SL_OK)
        return SL_EXIT_OK;
    return sl_cli_fail(session->invocation, problem.bytes > 0 ? buffer : sl_err_text(err));
}

int sl_session_open(sl_session *session, const sl_invocation *invocation)
{
    const sl_arena_sizes sizes = { .chunk_bytes = ARENA_CHUNK_BYTES, .limit_bytes = ARENA_LIMIT_BYTES };
    sl_client_address address;
    int code;

    *session =
        (sl_session){ .invocation = invocation, .timeout_ns = invocation->values[SL_OPT_TIMEOUT].number };
    sl_arena_init(&session->arena, &sl_alloc_default, sizes);
    code = sl_client_options_read(invocation, &address);
    if (code != SL_EXIT_OK)
        return code;
    session->has_user = address.user[0] != '\0';
    code = make_client(session, &address);
    explicit_bzero(&address, sizeof address);
    return code;
}

void sl_session_close(sl_session *session)
{
    if (session->loop != NULL)
        sl_timer_stop(&session->patience);
    sl_client_free(session->client);
    sl_loop_free(session->loop);
    sl_arena_done(&session->arena);
    session->client = NULL;
    session->loop = NULL;
}

/* --- calls --- */

int sl_session_begin(sl_session *session)
{
    sl_err err = SL_OK;

    if (!session->has_begun)
        err = sl_loop_catch_signals(session->loop);
    session->has_begun = err == SL_OK;
    return err == SL_OK ? SL_EXIT_OK : sl_cli_fail(session->invocation, sl_err_text(err));
}

int sl_session_try(sl_session *session, const sl_session_call *call, sl_client_answer *ret_answer)
{
    const sl_client_question question = { .path = sl_str_from(call->path),
                                          .messages = call->messages,
                                          .message_count = call->message_count,
                                          .timeout_ns = call->is_endless ? 0 : session->timeout_ns,
                                          .on_message = call->on_message,
                                          .ctx = call->ctx,
                                          .stop = &session->interrupted };
    const int code = sl_session_begin(session);
    sl_err err;

    if (code != SL_EXIT_OK)
        return code;
    err = sl_client_ask(session->client, &question, ret_answer);
    return err == SL_OK ? SL_EXIT_OK : sl_session_fail_start(session, err);
}

int sl_session_fail_start(const sl_session *session, sl_err err)
{
    if (err == SL_ERR_TOO_LARGE)
        return sl_session_failf(session, "that is more than fits into one message: 17 MiB");
    if (err == SL_ERR_INVALID)
        return sl_session_failf(session, "'%s' cannot be the name of a host",
                                sl_client_get_address(session->client)->host);
    return sl_cli_fail(session->invocation, sl_err_text(err));
}

int sl_session_ask(sl_session *session, const sl_session_call *call)
{
    sl_client_answer answer;
    int code = sl_session_try(session, call, &answer);

    if (code != SL_EXIT_OK)
        return code;
    if (answer.status != SL_STATUS_OK)
        code = sl_session_fail_answer(session, &answer);
    sl_client_answer_done(&answer);
    return code;
}

int sl_session_failf(const sl_session *session, const char *format, ...)
{
    char sentence[SL_SESSION_SENTENCE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return sl_cli_fail(session->invocation, sentence);
}

/* cli/read_command.c — reads and shows, and with --follow goes on until it is told to stop.
 *
 *      plan --> call --> events, shown as they come --> end
 *                 ^                                      |
 *                 +---- wait, connect again (--follow) --+
 *
 * A reader that follows comes back after a lost connection and goes on behind the last event it has shown, so that a restarted
 * server costs it nothing. Only the first connection has to succeed: whoever mistypes an address wants to know. */
#include "cli/read_command.h"

#include <string.h>
#include <unistd.h>

#include "cli/client_session.h"
#include "cli/event_print.h"
#include "cli/print.h"
#include "cli/read_request.h"

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    AGAIN_FIRST_MS = 250, /* between two attempts to connect; doubled each time, */
    AGAIN_LAST_MS = 5000  /* up to this */
};

typedef struct reading {
    sl_session *session;
    sl_read_plan plan;
    sl_event_printer printer;
    sl_client_call call;
    bool is_over, was_cut; /* was_cut: from this side, because it has enough */
    bool is_missing;       /* there is no such stream */
    bool was_alive;        /* something came: the server is there and lets us read */
    uint64_t shown;
    sl_err print_err;
    const char *malformed; /* why an answer could not be understood */

    sl_call_end_kind kind; /* how the last call ended */
    sl_status status;
    char message[SL_CLIENT_ANSWER_TEXT_BYTES];
    char sentence[SL_SESSION_SENTENCE_BYTES];

    sl_timer pause;
    bool pause_is_over;
    uint64_t pause_ms;
} reading;

/* --- what comes --- */

static void end_call(reading *r)
{
    r->was_cut = true;
    if (r->call.call != NULL)
        sl_client_call_cancel(&r->call);
}

/* The place from which a new subscription would go on. A link that was resolved stands where the link is. */
static void remember_place(reading *r, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const place = event->has_link ? &event->link : &event->event;
    const sl_wire_position position = { SL_WIRE_POSITION_GIVEN, place->commit_position,
                                        place->prepare_position };

    if (r->plan.is_follow)
        sl_read_plan_move(&r->plan, place->revision, position);
}

static void show(reading *r, const sl_wire_read_event *event)
{
    r->print_err = sl_event_print(&r->printer, event);
    remember_place(r, event);
    r->shown++;
    if (r->shown == r->plan.count || r->print_err != SL_OK || ferror(r->printer.out))
        end_call(r);
}

static void note_caught_up(const reading *r)
{
    if (isatty(fileno(r->session->invocation->err)))
        fputs("(waiting for events; Ctrl-C ends)\n", r->session->invocation->err);
}

static void on_message(void *ctx, sl_str message)
{
    reading *r = ctx;
    sl_read_response response;

    if (sl_read_response_decode(message, &response, &r->malformed) != SL_OK) {
        end_call(r);
        return;
    }
    r->was_alive = true;
    r->pause_ms = AGAIN_FIRST_MS;
    switch (response.kind) {
    case SL_READ_RESPONSE_EVENT: show(r, &response.event); break;
    case SL_READ_RESPONSE_STREAM_NOT_FOUND: r->is_missing = true; break;
    case SL_READ_RESPONSE_CHECKPOINT: sl_read_plan_move(&r->plan, 0, response.checkpoint.position); break;
    case SL_READ_RESPONSE_CAUGHT_UP: note_caught_up(r); break;
    case SL_READ_RESPONSE_UNSET:
    case SL_READ_RESPONSE_CONFIRMATION:
    case SL_READ_RESPONSE_FIRST_STREAM_POSITION:
    case SL_READ_RESPONSE_LAST_STREAM_POSITION:
    case SL_READ_RESPONSE_LAST_ALL_POSITION:
    case SL_READ_RESPONSE_FELL_BEHIND: break;
    }
}

static void on_end(void *ctx, const sl_client_result *result)
{
    reading *r = ctx;
    const sl_session_failure failure = { .kind = result->kind,
                                         .status = result->status,
                                         .message = result->message,
                                         .trailers = result->trailers };
    sl_text text;

    sl_session_wait_for(r->session, NULL);
    r->is_over = true;
    r->kind = result->kind;
    r->status = result->status;
    sl_text_init(&text, r->message, sizeof r->message);
    sl_text_add_str(&text, result->message);
    sl_text_init(&text, r->sentence, sizeof r->sentence);
    sl_session_explain(r->session, &failure, &text);
}

static const sl_client_call_handler handler = { .on_message = on_message, .on_end = on_end };

static void on_interrupt(void *ctx)
{
    end_call(ctx);
}

/* --- one call --- */

static sl_err send_request(reading *r)
{
    sl_str message;
    sl_err err;

    sl_arena_reset(&r->session->arena);
    err = sl_read_request_encode(&r->plan.request, &r->session->arena, &message);
    if (err == SL_OK)
        err = sl_client_call_send(&r->call, &message, 1);
    if (err == SL_OK)
        sl_client_call_half_close(&r->call);
    return err;
}

/* From the request to its end; the connection is made if there is none. */
static sl_err call_once(reading *r)
{
    sl_session *const session = r->session;
    const sl_client_request request = { .path = SL_STR("/event_store.client.streams.Streams/Read"),
                                        .handler = &handler,
                                        .ctx = r };
    sl_err err = sl_client_is_idle(session->client) ? sl_client_connect(session->client) : SL_OK;

    r->is_over = false;
    if (err == SL_OK)
        err = sl_client_call_start(session->client, &r->call, &request);
    if (err != SL_OK)
        return err;
    err = send_request(r);
    if (!r->was_alive) /* one that was there before is given the time to come back */
        sl_session_wait_for(session, &r->call);
    if (err != SL_OK)
        end_call(r);
    sl_client_turn_until(session->client, &r->is_over, NULL);
    return err;
}

/* --- again and again --- */

static void on_pause_over(void *ctx)
{
    ((reading *)ctx)->pause_is_over = true;
}

static void pause_a_little(reading *r)
{
    sl_session *const session = r->session;

    r->pause_is_over = false;
    sl_timer_set(&r->pause, sl_loop_now_ns(session->loop) + r->pause_ms * MILLISECOND_NS);
    sl_client_turn_until(session->client, &r->pause_is_over, &session->interrupted);
    sl_timer_stop(&r->pause);
    r->pause_ms = r->pause_ms * 2 > AGAIN_LAST_MS ? AGAIN_LAST_MS : r->pause_ms * 2;
}

/* A server that goes away or restarts, and a network that fails. */
static bool is_passing(const reading *r)
{
    return r->kind == SL_CALL_CONNECTION_LOST || r->kind == SL_CALL_PEER_CANCELLED ||
           r->status == SL_STATUS_UNAVAILABLE;
}

static bool may_go_on(const reading *r)
{
    return r->plan.is_follow && r->was_alive && !r->was_cut && is_passing(r);
}

static void say_once_lost(const reading *r)
{
    char sentence[SL_SESSION_SENTENCE_BYTES + 64];

    snprintf(sentence, sizeof sentence, "%s; trying again.", r->message);
    sl_print_complaint(r->session->invocation->err, sentence);
}

static sl_err read_all(reading *r)
{
    sl_err err = call_once(r);
    bool is_told = false;

    while (err == SL_OK && may_go_on(r) && !r->session->interrupted) {
        const uint64_t shown = r->shown;
        if (!is_told)
            say_once_lost(r);
        is_told = true;
        pause_a_little(r);
        if (r->session->interrupted)
            break;
        /* A connection that is ending takes no calls; the pause comes again. */
        err = call_once(r);
        err = err == SL_ERR_DRAINING ? SL_OK : err;
        is_told = is_told && r->shown == shown;
    }
    return err;
}

/* --- the end --- */

static int finish(const reading *r, sl_err err)
{
    const sl_session *const session = r->session;
    const sl_session_failure lost = { .kind = r->kind,
                                      .status = r->status,
                                      .message = sl_str_from(r->message) };

    if (err != SL_OK)
        return sl_session_fail_start(session, err);
    if (r->print_err != SL_OK)
        return sl_cli_fail(session->invocation, sl_err_text(r->print_err));
    if (r->malformed != NULL)
        return sl_session_failf(session, "the server's answer cannot be understood: %s", r->malformed);
    if (session->interrupted)
        return r->plan.is_follow ? SL_EXIT_OK : sl_session_failf(session, "interrupted");
    if (r->was_cut)
        return SL_EXIT_OK;
    if (r->is_missing)
        return sl_session_failf(session, "there is no stream \"%s\"", session->invocation->words[0]);
    if (r->kind == SL_CALL_CONNECTION_LOST)
        return sl_session_fail(session, &lost);
    if (r->status != SL_STATUS_OK)
        return sl_cli_fail(session->invocation, r->sentence);
    return r->plan.is_follow ? sl_session_failf(session, "the server ended the subscription") : SL_EXIT_OK;
}

static int read_events(reading *r)
{
    sl_session *const session = r->session;
    sl_err err;

    sl_event_printer_init(&r->printer, session->invocation->out, session->invocation->json, r->plan.is_all);
    sl_timer_init(&r->pause, session->loop, on_pause_over, r);
    session->on_interrupt = on_interrupt;
    session->ctx = r;
    err = read_all(r);
    session->on_interrupt = NULL;
    sl_event_printer_done(&r->printer);
    return finish(r, err);
}

static int run_read(const sl_invocation *invocation)
{
    static reading r; /* large, and there is one in a process */
    sl_session session = { 0 };
    int code;

    memset(&r, 0, sizeof r);
    r.pause_ms = AGAIN_FIRST_MS;
    r.session = &session;
    code = sl_read_plan_init(&r.plan, invocation);
    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = sl_session_begin(&session);
    if (code == SL_EXIT_OK)
        code = read_events(&r);
    sl_session_close(&session);
    return code;
}

static const char details[] =
    "Shows the events of STREAM, or with --all those of all streams in the order in which they were written, "
    "a line for each: "
    "revision (with --all first the position, then revision@stream), time, type and data. On a terminal a "
    "line that does not "
    "fit is cut. With --json each line is an object with everything: stream, revision, position, id, type, "
    "created, content_type, data and "
    "metadata. Data that is JSON is a value; other data is base64, and data_encoding says which it is.\n\n"
    "--follow goes on with events as they come, until Ctrl-C or --count ends it. When the connection is lost "
    "it comes back and goes "
    "on behind the last event that it has shown.\n\n"
    "--from names the first event to be shown: a revision, or with --all a position. Streams whose names "
    "begin with $ belong to the "
    "server; --all shows them too, to whoever may read them.\n";

const sl_command sl_command_read = {
    .name = "read",
    .bit = SL_COMMAND_READ,
    .words = "[STREAM]",
    .words_min = 0,
    .words_max = 1,
    .run = run_read,
    .summary = "show events, and follow those that come",
    .details = details,
    .examples = "The last event of a stream, what comes from now on, and orders of all kinds as JSON:\n"
                "  sluice read orders --backwards --count 1\n"
                "  sluice read orders --follow --from end\n"
                "  sluice read --all --filter-stream order- --json\n",
    .exits = "0 done; with --follow also after Ctrl-C\n"
             "1 it did not work, or there is no such stream\n" SL_EXITS_USAGE,
};

/* cli/append_lines.c — an event for each line, by the call BatchAppend.
 *
 *      lines --> a batch --> sent, on its way --> confirmed
 *
 * Behind a batch that is refused nothing may be appended, or the stream has a hole. A server judges every batch for itself, and
 * one that is smaller may still fit on a disk that had no room for the one before. So either each batch expects the revision that
 * the one before leaves, which --expect begins, and then many are on their way; or, where any revision will do because others may
 * append to the stream as well, one is on its way at a time: numbers could not tell their events from those of a batch of ours.
 *
 * A batch is what is there when it is sent, so a slow pipe is not kept waiting, up to a limit. pump() is the only function that
 * sends; it runs whenever something that it waited for may have come: a line, an answer, room. The first error ends the intake;
 * what is on its way is still waited for. */
#include "cli/append_draft.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/line_input.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "store/store.h"
#include "wire/error_details.h"

enum {
    BATCH_EVENTS_MAX = 4096, /* of a batch that goes alone: each costs a way there and back, and a sync */
    CHAIN_EVENTS_MAX = 512,  /* of one of many */
    BATCH_BYTES_MAX = 512 * 1024, /* half of what a KurrentDB takes in one append by default */
    IN_FLIGHT_MAX = 64            /* of a chain; enough to keep the disk of a server busy over a network */
};

typedef struct batch {
    uint64_t event_count;
    uint64_t last_line;
    bool is_answered, is_confirmed;
} batch;

typedef struct pouring {
    sl_session *session;
    const sl_append_draft *draft;
    sl_line_input input;
    sl_client_call call;
    bool is_over, is_half_closed;

    sl_wire_proposed events[BATCH_EVENTS_MAX]; /* the batch that is being made */
    size_t event_count, event_bytes;
    uint64_t gathered_line; /* the last line that is in it, or was left out */

    batch batches[IN_FLIGHT_MAX];      /* by number, modulo */
    uint64_t batch_oldest, batch_next; /* those on their way; the oldest has not been answered */
    sl_wire_revision expected;         /* by the next batch */

    uint64_t sent_events, confirmed_events, confirmed_line, empty_lines;
    bool has_gap;                /* a batch was refused: lines behind it do not count as a beginning */
    uint64_t stray_events;       /* confirmed behind a gap: a stranger's events made the numbers fit */
    uint64_t unknown_events;     /* in batches whose answer was that the server does not know it either */
    bool is_none_taken;          /* the call was refused before any batch was looked at */
    uint64_t revision, position; /* of the last event that was confirmed */
    uint64_t began_ns;
    sl_progress progress;
    bool has_failed, was_lost;
    char failure[SL_SESSION_SENTENCE_BYTES];
    bool input_is_done; /* its end was seen */
} pouring;

static void pump(pouring *p);

/* --- failing --- */

/* The first one counts; others follow from it. */
static sl_text begin_failure(pouring *p)
{
    sl_text text;

    p->has_failed = true;
    sl_text_init(&text, p->failure, sizeof p->failure);
    return text;
}

static void fail(pouring *p, const char *reason)
{
    if (p->has_failed)
        return;
    sl_text text = begin_failure(p);
    sl_text_add(&text, reason);
}

static void fail_line(pouring *p, uint64_t line, const char *reason)
{
    if (p->has_failed)
        return;
    sl_text text = begin_failure(p);
    sl_text_add(&text, "line ");
    sl_text_add_u64(&text, line);
    sl_text_add(&text, reason);
}

static void explain_revision(pouring *p, const sl_wire_status *error, sl_text *text)
{
    sl_wire_revision current = { 0 };

    (void)sl_detail_wrong_revision_decode(error->detail_value, &p->session->arena, &current, NULL);
    sl_text_add(text, "the stream is ");
    sl_session_add_revision(text, current);
    sl_text_add(text, ", which is not what --expect says, or somebody else appends to it");
}

/* A refusal of one batch: the status of gRPC, inside of a message. */
static void fail_batch(pouring *p, const sl_wire_status *error)
{
    const bool is_busy = error->code == 0;
    const sl_str detail = error->detail_type;
    sl_session_failure failure = { .kind = SL_CALL_FINISHED,
                                   .status = is_busy ? SL_STATUS_UNAVAILABLE : (sl_status)error->code,
                                   .message = error->message };

    if (p->has_failed)
        return;
    sl_text text = begin_failure(p);
    if (sl_str_ends_with(detail, SL_STR(".BadRequest")))
        (void)sl_detail_bad_request_decode(error->detail_value, &p->session->arena, &failure.message, NULL);
    if (sl_str_ends_with(detail, SL_STR(".WrongExpectedVersion")))
        explain_revision(p, error, &text);
    else if (sl_str_ends_with(detail, SL_STR(".StreamDeleted")))
        sl_text_add(&text, "the stream was deleted for ever: it has a tombstone");
    else if (sl_str_ends_with(detail, SL_STR(".MaximumAppendEventSizeExceeded")))
        sl_text_add(&text, "a line is larger than the server allows for an event");
    else if (sl_str_ends_with(detail, SL_STR(".MaximumAppendSizeExceeded")))
        sl_text_add(&text, "a batch of lines is larger than the server allows for an append");
    else
        sl_session_explain(p->session, &failure, &text);
}

/* --- sending --- */

static bool is_chained(const pouring *p)
{
    return p->expected.kind == SL_WIRE_REVISION_NUMBER || p->expected.kind == SL_WIRE_REVISION_NO_STREAM;
}

static bool may_send(pouring *p)
{
    const uint64_t in_flight_max = is_chained(p) ? IN_FLIGHT_MAX : 1;

    return p->call.call != NULL && !p->has_failed && !p->session->interrupted &&
           p->batch_next - p->batch_oldest < in_flight_max && sl_client_call_room(&p->call) > 0;
}

/* Each batch has to find the stream as the one before left it, where that is asked for. */
static void expect_next(pouring *p, uint64_t event_count)
{
    if (p->expected.kind == SL_WIRE_REVISION_NUMBER)
        p->expected.number += event_count;
    else if (p->expected.kind == SL_WIRE_REVISION_NO_STREAM)
        p->expected = (sl_wire_revision){ SL_WIRE_REVISION_NUMBER, event_count - 1 };
}

static void note_sent(pouring *p)
{
    p->batches[p->batch_next % IN_FLIGHT_MAX] =
        (batch){ .event_count = p->event_count, .last_line = p->gathered_line };
    p->batch_next++;
    p->sent_events += p->event_count;
    expect_next(p, p->event_count);
    p->event_count = p->event_bytes = 0;
    sl_line_input_drop(&p->input);
}

static void send_batch(pouring *p)
{
    const sl_batch_options options = { .stream = p->draft->stream, .expected = p->expected };
    const sl_uuid number = sl_uuid_from_halves(0, (int64_t)p->batch_next + 1);
    const sl_batch_append_draft request = { .correlation = { .uuid = number, .form = SL_WIRE_ID_STRUCTURED },
                                            .options = &options,
                                            .events = p->events,
                                            .event_count = p->event_count,
                                            .is_final = true };
    const size_t bytes = sl_batch_append_request_size(&request);
    uint8_t *message;
    const sl_err err = sl_client_call_reserve(&p->call, bytes, &message);

    if (err != SL_OK) {
        fail(p, err == SL_ERR_TOO_LARGE ? "a line is too long for one message" : sl_err_text(err));
        return;
    }
    sl_batch_append_request_encode(&request, message, bytes);
    sl_client_call_commit(&p->call, bytes);
    if (p->batch_next == 0) {
        p->session->awaits_answer = true;
        sl_session_wait_for(p->session, &p->call);
    }
    note_sent(p);
}

/* --- gathering --- */

static void add_line(pouring *p, sl_str line)
{
    sl_uuid id;

    if (line.bytes == 0) {
        p->empty_lines++;
        p->gathered_line = p->input.line_number;
        return;
    }
    if (sl_append_make_id(&id) != SL_OK)
        fail(p, "the system gives no random numbers");
    else if (!sl_append_make_event(p->draft, id, line, &p->events[p->event_count]))
        fail_line(p, p->input.line_number, " is not JSON, but --content-type says so");
    if (p->has_failed)
        return;
    p->gathered_line = p->input.line_number;
    p->event_count++;
    p->event_bytes += line.bytes + p->draft->metadata.bytes;
}

static bool is_full(const pouring *p)
{
    const size_t events_max = is_chained(p) ? CHAIN_EVENTS_MAX : BATCH_EVENTS_MAX;

    return p->event_count >= events_max || p->event_bytes >= BATCH_BYTES_MAX;
}

/* Lines that are there already. SL_OK: the batch is full, or something failed. */
static sl_err gather(pouring *p)
{
    sl_err err = SL_OK;
    sl_str line;

    while (!is_full(p) && !p->has_failed) {
        err = sl_line_input_next(&p->input, &line);
        if (err == SL_ERR_TOO_LARGE)
            fail_line(p, p->input.line_number + 1, " is too long for an event: 16 MiB is the most");
        if (err != SL_OK)
            break;
        add_line(p, line);
    }
    return err;
}

/* False: nothing more can be had now. */
static bool read_more(pouring *p, bool is_ready)
{
    if (p->input.is_waitable && !is_ready)
        return false;
    sl_line_input_drop(&p->input);
    if (sl_line_input_read(&p->input) != SL_OK)
        fail(p, "there is not enough memory for the input");
    if (p->input.read_errno != 0)
        fail(p, strerror(p->input.read_errno));
    return !p->has_failed;
}

static void finish_if_done(pouring *p)
{
    const bool no_more = p->input_is_done || p->has_failed || p->session->interrupted;

    if (!no_more || p->is_half_closed || p->call.call == NULL)
        return;
    p->is_half_closed = true;
    sl_client_call_half_close(&p->call);
}

/* is_ready: the input can be read without waiting, once. */
static void pump_ready(pouring *p, bool is_ready)
{
    while (may_send(p)) {
        const sl_err err = gather(p);
        if (p->event_count > 0) { /* also those before a line that failed */
            send_batch(p);
            continue;
        }
        p->input_is_done = err == SL_ERR_EMPTY;
        if (err != SL_ERR_AGAIN || !read_more(p, is_ready))
            break;
        is_ready = false;
    }
    if (sl_line_input_want(&p->input, may_send(p) && !p->input_is_done) != SL_OK)
        fail(p, "there is not enough memory to wait for the input");
    finish_if_done(p);
}

static void pump(pouring *p)
{
    pump_ready(p, false);
}

static void on_more(void *ctx)
{
    pump_ready(ctx, true);
}

/* --- answers --- */

static batch *find_batch(pouring *p, sl_str correlation)
{
    sl_wire_id id = { 0 };
    int64_t zero = 0, number = 0;

    if (sl_wire_id_decode(correlation, &id, NULL) != SL_OK)
        return NULL;
    sl_uuid_to_halves(id.uuid, &zero, &number);
    const uint64_t index = (uint64_t)number - 1;
    if (zero != 0 || index < p->batch_oldest || index >= p->batch_next)
        return NULL;
    return &p->batches[index % IN_FLIGHT_MAX];
}

static void note_confirmed(pouring *p, batch *b, const sl_batch_append_response *response)
{
    b->is_confirmed = true;
    p->confirmed_events += b->event_count;
    if (response->current.kind == SL_WIRE_REVISION_NUMBER && response->current.number >= p->revision)
        p->revision = response->current.number;
    if (response->position.kind == SL_WIRE_POSITION_GIVEN && response->position.commit >= p->position)
        p->position = response->position.commit;
}

/* Up to which line all is confirmed; behind a refused batch it does not move any more. */
static void advance(pouring *p)
{
    while (p->batch_oldest < p->batch_next) {
        const batch *const b = &p->batches[p->batch_oldest % IN_FLIGHT_MAX];
        if (!b->is_answered)
            return;
        p->has_gap |= !b->is_confirmed;
        if (!p->has_gap)
            p->confirmed_line = b->last_line;
        else if (b->is_confirmed)
            p->stray_events += b->event_count;
        p->batch_oldest++;
    }
}

static void note_refused(pouring *p, const batch *b, const sl_wire_status *error)
{
    if (sl_str_ends_with(error->detail_type, SL_STR(".Timeout")))
        p->unknown_events += b->event_count;
    fail_batch(p, error);
}

static void show_progress(pouring *p)
{
    char what[64];

    snprintf(what, sizeof what, "%" PRIu64 " events confirmed", p->confirmed_events);
    sl_progress_show(&p->progress, what, 0, 0);
}

static void on_message(void *ctx, sl_str message)
{
    pouring *p = ctx;
    sl_batch_append_response response;
    batch *b = NULL;

    if (sl_batch_append_response_decode(message, &response, NULL) == SL_OK)
        b = find_batch(p, response.correlation);
    if (b == NULL || b->is_answered || response.kind == SL_BATCH_APPEND_RESPONSE_UNSET) {
        fail(p, "the server's answer cannot be understood");
        finish_if_done(p);
        return;
    }
    b->is_answered = true;
    p->session->awaits_answer = false;
    if (response.kind == SL_BATCH_APPEND_RESPONSE_SUCCESS)
        note_confirmed(p, b, &response);
    else
        note_refused(p, b, &response.error);
    advance(p);
    show_progress(p);
    pump(p);
}

static void on_room(void *ctx)
{
    pump(ctx);
}

/* Who may call, and what, is decided before the first message. */
static bool is_turned_away(const sl_client_result *result)
{
    return result->kind == SL_CALL_FINISHED &&
           (result->status == SL_STATUS_UNAUTHENTICATED || result->status == SL_STATUS_UNIMPLEMENTED);
}

static void on_end(void *ctx, const sl_client_result *result)
{
    pouring *p = ctx;
    const sl_session_failure failure = { .kind = result->kind,
                                         .status = result->status,
                                         .message = result->message,
                                         .trailers = result->trailers };

    p->is_over = true;
    p->is_none_taken = result->unprocessed || is_turned_away(result);
    sl_session_wait_for(p->session, NULL);
    if (p->has_failed ||
        (result->status == SL_STATUS_OK && p->batch_oldest == p->batch_next && p->is_half_closed))
        return;
    if (result->status == SL_STATUS_OK) {
        fail(p, "the server ended the call early");
        return;
    }
    sl_text text = begin_failure(p);
    p->was_lost = result->kind == SL_CALL_CONNECTION_LOST;
    if (p->was_lost)
        sl_text_add_str(&text, result->message); /* the rest is said when more is known */
    else
        sl_session_explain(p->session, &failure, &text);
}

static const sl_client_call_handler handler = { .on_message = on_message,
                                                .on_room = on_room,
                                                .on_end = on_end };

static void on_interrupt(void *ctx)
{
    pump(ctx);
}

/* --- the result --- */

static double elapsed_s(const pouring *p)
{
    return (double)(sl_loop_now_ns(p->session->loop) - p->began_ns) / 1e9;
}

/* Events that may be there or not. */
static uint64_t unknown_events(const pouring *p)
{
    uint64_t count = p->unknown_events;

    if (p->is_none_taken)
        return count;
    for (uint64_t i = p->batch_oldest; i < p->batch_next; i++) {
        const batch *const b = &p->batches[i % IN_FLIGHT_MAX];
        count += b->is_answered ? 0 : b->event_count;
    }
    return count;
}

static void print_json(const pouring *p, bool is_complete)
{
    FILE *const out = p->session->invocation->out;
    const double seconds = elapsed_s(p);
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_text(&fields, "stream", p->draft->stream);
    sl_field_number(&fields, "events", p->confirmed_events);
    sl_field_bool(&fields, "complete", is_complete);
    if (p->confirmed_events > 0) {
        sl_field_number(&fields, "revision", p->revision);
        sl_field_number(&fields, "position", p->position);
        sl_field_number(&fields, "last_line", p->confirmed_line);
    }
    if (!is_complete)
        sl_field_number(&fields, "not_known", unknown_events(p));
    sl_field_number(&fields, "empty_lines", p->empty_lines);
    sl_field_name(&fields, "seconds");
    fprintf(out, "%.3f", seconds);
    sl_field_name(&fields, "events_per_second");
    fprintf(out, "%.0f}\n", seconds > 0 ? (double)p->confirmed_events / seconds : 0);
}

static void print_line(const pouring *p)
{
    FILE *const out = p->session->invocation->out;
    const double seconds = elapsed_s(p);

    fprintf(out, "appended %" PRIu64 " event%s to ", p->confirmed_events,
            p->confirmed_events == 1 ? "" : "s");
    sl_print_quoted(out, p->draft->stream);
    if (p->confirmed_events > 0)
        fprintf(out, ": revision %" PRIu64 ", position %" PRIu64 ", %.0f events/s", p->revision, p->position,
                seconds > 0 ? (double)p->confirmed_events / seconds : 0);
    if (p->empty_lines > 0)
        fprintf(out, "; %" PRIu64 " empty line%s left out", p->empty_lines, p->empty_lines == 1 ? "" : "s");
    fputc('\n', out);
}

static void add_events(sl_text *text, uint64_t count)
{
    sl_text_add_u64(text, count);
    sl_text_add(text, count == 1 ? " event" : " events");
}

static void add_counts(const pouring *p, sl_text *text)
{
    const uint64_t unknown = unknown_events(p);

    if (p->confirmed_events == 0) {
        sl_text_add(text, unknown == 0 ? ". Nothing was appended" : ". Confirmed: nothing");
    } else {
        sl_text_add(text, ". Confirmed: ");
        add_events(text, p->confirmed_events - p->stray_events);
        sl_text_add(text, ", up to line ");
        sl_text_add_u64(text, p->confirmed_line);
    }
    if (p->stray_events > 0) {
        sl_text_add(text, "; also ");
        add_events(text, p->stray_events);
        sl_text_add(text, " of later lines, behind lines that are missing");
    }
    if (unknown > 0) {
        sl_text_add(text, "; not known: ");
        add_events(text, unknown);
        sl_text_add(text, unknown == 1 ? " that was on its way" : " that were on their way");
    }
}

/* What was confirmed, what was not, and why it ended. */
static int report_partial(const pouring *p)
{
    const sl_session_failure lost = { .kind = SL_CALL_CONNECTION_LOST, .message = sl_str_from(p->failure) };
    char buffer[2 * SL_SESSION_SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    if (p->was_lost)
        sl_session_explain(p->session, &lost, &text);
    else
        sl_text_add(&text, p->has_failed ? p->failure : "interrupted");
    add_counts(p, &text);
    return sl_cli_fail(p->session->invocation, buffer);
}

static int report(pouring *p)
{
    const bool is_complete = !p->has_failed && p->input_is_done && p->is_over && !p->session->interrupted;

    sl_progress_clear(&p->progress);
    if (p->session->invocation->json)
        print_json(p, is_complete);
    else if (is_complete)
        print_line(p);
    if (!is_complete)
        return report_partial(p);
    return sl_append_check_told(p->session, p->confirmed_events, p->revision);
}

/* --- from the beginning --- */

static sl_err start(pouring *p)
{
    const sl_client_request request = { .path = SL_STR("/event_store.client.streams.Streams/BatchAppend"),
                                        .handler = &handler,
                                        .ctx = p };
    sl_err err = sl_client_connect(p->session->client);

    if (err == SL_OK)
        err = sl_client_call_start(p->session->client, &p->call, &request);
    return err;
}

static int pour(pouring *p)
{
    sl_session *const session = p->session;
    const sl_err err = start(p);

    if (err != SL_OK)
        return sl_session_fail_start(session, err);
    session->on_interrupt = on_interrupt;
    session->ctx = p;
    p->began_ns = sl_loop_now_ns(session->loop);
    sl_progress_init(&p->progress, session->invocation);
    sl_session_wait_for(session, &p->call);
    pump(p);
    sl_client_turn_until(session->client, &p->is_over, &session->impatient);
    session->on_interrupt = NULL;
    return report(p);
}

int sl_append_lines(sl_session *session, const sl_append_draft *draft, const char *path)
{
    pouring *const p = sl_arena_alloc_zero(&session->arena, sizeof *p);
    int code = sl_session_begin(session);

    if (code != SL_EXIT_OK)
        return code;
    if (p == NULL)
        return sl_session_failf(session, "there is not enough memory");
    p->session = session;
    p->draft = draft;
    p->expected = draft->expected;
    if (sl_line_input_open(&p->input, session->loop, path, SL_EVENT_BYTES_MAX) != SL_OK)
        return sl_session_failf(session, "cannot read %s: %s", path, strerror(errno));
    p->input.on_more = on_more;
    p->input.ctx = p;
    code = pour(p);
    sl_line_input_close(&p->input);
    return code;
}

/* cli/append_command.c — one event, by the call Append. The way for many is in append_lines.c. */
#include "cli/append_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/append_draft.h"
#include "cli/client_options.h"
#include "cli/fields.h"
#include "cli/json_value.h"
#include "cli/print.h"
#include "store/store.h"

enum {
    READ_BYTES = 64 * 1024,
    ID_POOL = 256 /* ids made with one question to the system */
};

/* --- events --- */

bool sl_append_make_event(const sl_append_draft *draft, sl_uuid id, sl_str data, sl_wire_proposed *ret_event)
{
    const bool is_json = draft->content != SL_APPEND_CONTENT_BINARY && sl_json_is_value(data);

    if (draft->content == SL_APPEND_CONTENT_JSON && !is_json)
        return false;
    *ret_event = (sl_wire_proposed){ .id = { .uuid = id, .form = SL_WIRE_ID_STRUCTURED },
                                     .type = draft->type,
                                     .content_type = is_json ? SL_STR("application/json")
                                                             : SL_STR("application/octet-stream"),
                                     .custom_metadata = draft->metadata,
                                     .data = data };
    return true;
}

sl_err sl_append_make_id(sl_uuid *ret_id)
{
    static uint8_t pool[ID_POOL][sizeof(sl_uuid)];
    static size_t left;

    if (left == 0) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            return SL_ERR_IO;
        left = ID_POOL;
    }
    *ret_id = sl_uuid_v4(pool[--left]);
    return SL_OK;
}

/* --- where the data comes from --- */

static int fail_read(const sl_session *session, const char *path)
{
    return sl_session_failf(session, "cannot read %s: %s", path, strerror(errno));
}

static int read_all(const sl_session *session, int fd, const char *path, sl_buf *into)
{
    ssize_t count = 1;

    while (count > 0) {
        if (into->bytes > SL_EVENT_BYTES_MAX)
            return sl_session_failf(session, "%s is too large for one event: %d MiB is the most", path,
                                    SL_EVENT_BYTES_MAX / 1024 / 1024);
        if (sl_buf_reserve(into, READ_BYTES) != SL_OK)
            return sl_session_failf(session, "there is not enough memory for %s", path);
        do {
            count = read(fd, sl_buf_tail(into), READ_BYTES);
        } while (count < 0 && errno == EINTR);
        if (count > 0)
            sl_buf_added(into, (size_t)count);
    }
    return count < 0 ? fail_read(session, path) : SL_EXIT_OK;
}

static int read_file(const sl_session *session, const char *path, sl_buf *into)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code;

    if (fd < 0)
        return fail_read(session, path);
    code = read_all(session, fd, path, into);
    close(fd);
    return code;
}

/* --data, --file, or what is piped in. */
static int read_data(const sl_session *session, sl_buf *into)
{
    const sl_option_value *const values = session->invocation->values;
    const char *const text = values[SL_OPT_EVENT_DATA].text, *const file = values[SL_OPT_FILE].text;
    int code;

    sl_buf_init(into, &sl_alloc_default, SL_EVENT_BYTES_MAX + 2 * READ_BYTES);
    if (text != NULL && sl_buf_append(into, text, strlen(text)) != SL_OK)
        return sl_session_failf(session, "there is not enough memory for the data");
    if (text != NULL)
        return SL_EXIT_OK;
    if (file != NULL && strcmp(file, "-") != 0)
        return read_file(session, file, into);
    code = read_all(session, STDIN_FILENO, "the input", into);
    if (code == SL_EXIT_OK && file == NULL && into->bytes == 0) /* more often an accident than meant */
        return sl_cli_complain(
            session->invocation,
            "There is no data: what was piped into the command is empty. Give it with --data, --file or "
            "--lines; for an event without data say --data ''.");
    return code;
}

/* --- the call --- */

typedef struct appending {
    sl_append_response response;
    bool is_malformed;
} appending;

static void on_message(void *ctx, sl_str message)
{
    appending *a = ctx;

    a->is_malformed = sl_append_response_decode(message, &a->response, NULL) != SL_OK;
}

static sl_err encode(sl_arena *arena, const sl_append_request *request, sl_str *ret_message)
{
    const size_t bytes = sl_append_request_size(request);
    uint8_t *const memory = sl_arena_alloc(arena, bytes);

    if (memory == NULL)
        return SL_ERR_NOMEM;
    sl_append_request_encode(request, memory, bytes);
    *ret_message = (sl_str){ (const char *)memory, bytes };
    return SL_OK;
}

/* Without a word from the server an event may be there or not, unless it was never sent. */
static int fail_call(const sl_session *session, const sl_client_answer *answer)
{
    const sl_session_failure failure = { .kind = answer->kind,
                                         .status = answer->status,
                                         .message = sl_str_from(answer->message),
                                         .trailers = &answer->trailers };
    char buffer[2 * SL_SESSION_SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_session_explain(session, &failure, &text);
    if (answer->kind != SL_CALL_FINISHED && !answer->unprocessed)
        sl_text_add(&text, ". Whether the event was appended is not known");
    return sl_cli_fail(session->invocation, buffer);
}

static int ask(sl_session *session, const sl_append_draft *draft, const sl_wire_proposed *event, appending *a)
{
    const sl_append_request options = { .kind = SL_APPEND_REQUEST_OPTIONS,
                                        .options = { .stream = draft->stream, .expected = draft->expected } };
    const sl_append_request proposed = { .kind = SL_APPEND_REQUEST_EVENT, .event = *event };
    sl_str messages[2];
    const sl_session_call call = { .path = "/event_store.client.streams.Streams/Append",
                                   .messages = messages,
                                   .message_count = 2,
                                   .on_message = on_message,
                                   .ctx = a };
    sl_client_answer answer;
    int code;

    if (encode(&session->arena, &options, &messages[0]) != SL_OK ||
        encode(&session->arena, &proposed, &messages[1]) != SL_OK)
        return sl_session_failf(session, "there is not enough memory for the event");
    code = sl_session_try(session, &call, &answer);
    if (code != SL_EXIT_OK)
        return code;
    if (answer.status != SL_STATUS_OK)
        code = fail_call(session, &answer);
    sl_client_answer_done(&answer);
    return code;
}

static int fail_revision(const sl_session *session, sl_str stream, sl_wire_revision current)
{
    char buffer[SL_SESSION_SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "nothing was appended: stream \"");
    sl_text_add_str(&text, stream);
    sl_text_add(&text, "\" is ");
    sl_session_add_revision(&text, current);
    sl_text_add(&text, ", which is not what --expect says");
    return sl_cli_fail(session->invocation, buffer);
}

int sl_append_send(sl_session *session, const sl_append_draft *draft, const sl_wire_proposed *event,
                   sl_append_response *ret_response)
{
    appending a = { 0 };
    const int code = ask(session, draft, event, &a);

    if (code != SL_EXIT_OK)
        return code;
    if (a.is_malformed || a.response.kind == SL_APPEND_RESPONSE_UNSET)
        return sl_session_failf(session,
                                "the server's answer cannot be understood; whether the event was appended is "
                                "not known");
    if (a.response.kind == SL_APPEND_RESPONSE_WRONG_REVISION)
        return fail_revision(session, draft->stream, a.response.current);
    *ret_response = a.response;
    return SL_EXIT_OK;
}

/* Whoever hears only of a failure sends it all again. */
int sl_append_check_told(const sl_session *session, uint64_t event_count, uint64_t revision)
{
    FILE *const out = session->invocation->out;

    if (fflush(out) == 0 && !ferror(out))
        return SL_EXIT_OK;
    const int number = errno;
    clearerr(out);
    __fpurge(out); /* all is said below, also for main() */
    return sl_session_failf(session,
                            "%" PRIu64 " event%s appended, up to revision %" PRIu64
                            ", but that cannot be written to the output: %s",
                            event_count, event_count == 1 ? " was" : "s were", revision, strerror(number));
}

static void print_done(const sl_invocation *invocation, const sl_append_response *response, sl_str stream,
                       sl_uuid id)
{
    sl_fields fields = { .out = invocation->out, .json = true };
    const uint64_t revision = response->current.number, position = response->position.commit;

    if (!invocation->json) {
        fprintf(invocation->out, "appended 1 event to ");
        sl_print_quoted(invocation->out, stream);
        fprintf(invocation->out, ": revision %" PRIu64 ", position %" PRIu64 "\n", revision, position);
        return;
    }
    fputc('{', invocation->out);
    sl_field_text(&fields, "stream", stream);
    sl_field_number(&fields, "events", 1);
    sl_field_number(&fields, "revision", revision);
    sl_field_number(&fields, "position", position);
    sl_field_uuid(&fields, "id", id);
    fputs("}\n", invocation->out);
}

static int append_one(sl_session *session, const sl_append_draft *draft, sl_str data)
{
    sl_append_response response;
    sl_wire_proposed event;
    sl_uuid id = draft->id;
    int code;

    if (!draft->has_id && sl_append_make_id(&id) != SL_OK)
        return sl_session_failf(session, "the system gives no random numbers");
    if (!sl_append_make_event(draft, id, data, &event))
        return sl_session_failf(session, "the data is not JSON, but --content-type says so");
    code = sl_append_send(session, draft, &event, &response);
    if (code != SL_EXIT_OK)
        return code;
    print_done(session->invocation, &response, draft->stream, id);
    return sl_append_check_told(session, 1, response.current.number);
}

/* --- options --- */

static int check_sources(const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const int given = (values[SL_OPT_EVENT_DATA].text != NULL) + (values[SL_OPT_FILE].text != NULL) +
                      (values[SL_OPT_LINES].text != NULL);

    if (given > 1)
        return sl_cli_complain(invocation,
                               "The data comes from one of --data, --file and --lines, not from several.");
    if (given == 0 && isatty(STDIN_FILENO))
        return sl_cli_complain(
            invocation,
            "There is no data: give it with --data, --file or --lines, or pipe it into the command.");
    if (values[SL_OPT_LINES].text != NULL && values[SL_OPT_EVENT_ID].text != NULL)
        return sl_cli_complain(invocation,
                               "--id is for one event: with --lines each event gets an id of its own.");
    if (values[SL_OPT_TYPE].text == NULL)
        return sl_cli_complain(invocation, "An event needs a type: --type TYPE.");
    return SL_EXIT_OK;
}

static int read_draft(const sl_invocation *invocation, sl_append_draft *draft)
{
    const sl_option_value *const values = invocation->values;
    const char *const id = values[SL_OPT_EVENT_ID].text;
    int code = check_sources(invocation);

    *draft = (sl_append_draft){ .stream = sl_str_from(invocation->words[0]),
                                .type = sl_str_from(values[SL_OPT_TYPE].text),
                                .metadata = sl_str_from(values[SL_OPT_METADATA].text),
                                .content = (sl_append_content)values[SL_OPT_CONTENT_TYPE].number,
                                .has_id = id != NULL };
    if (code == SL_EXIT_OK)
        code = sl_client_options_expect(invocation, &draft->expected);
    if (code != SL_EXIT_OK)
        return code;
    if (id != NULL && sl_uuid_parse(id, strlen(id), &draft->id) != SL_OK)
        return sl_cli_complain(invocation,
                               "--id needs a UUID, such as 6f2b8f2c-5a4e-4c57-9f0b-7e2d3a1c9b10.");
    if (draft->metadata.bytes > 0 && !sl_json_is_value(draft->metadata))
        return sl_cli_complain(invocation, "--metadata needs JSON.");
    return SL_EXIT_OK;
}

static int run_append(const sl_invocation *invocation)
{
    const char *const lines = invocation->values[SL_OPT_LINES].text;
    SL_CLEANUP(sl_buf_done) sl_buf data = { 0 };
    sl_append_draft draft;
    sl_session session = { 0 };
    int code = read_draft(invocation, &draft);

    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK && lines != NULL) {
        code = sl_append_lines(&session, &draft, lines);
    } else if (code == SL_EXIT_OK) {
        code = read_data(&session, &data);
        if (code == SL_EXIT_OK)
            code = append_one(&session, &draft, (sl_str){ (const char *)sl_buf_data(&data), data.bytes });
    }
    sl_session_close(&session);
    return code;
}

static const char details[] =
    "Appends to STREAM, which comes into being with its first event. The answer comes when the event is "
    "durable, and tells its "
    "revision (its number in the stream, from 0 on) and its position (its place among the events of all "
    "streams).\n\n"
    "The data is what --data says, the content of --file, or what is piped into the command. With --lines "
    "each line of a file "
    "or a pipe (-) becomes an event: the line without its line end; empty lines are left out. They are sent "
    "in batches, in the order of the lines. Each batch is appended as a whole or "
    "not at all, and nothing behind one that was refused. Batches go one by one, so that others may append "
    "to the stream as well; "
    "with --expect none or a revision, which say that nobody else does, many are on their way at the same "
    "time. "
    "Ctrl-C takes no more lines, waits for what is on its way and says how many were confirmed; a second one "
    "does not wait.\n\n"
    "Data that is JSON is marked as such, other data as binary; --content-type decides otherwise.\n\n"
    "With --expect the event is appended only if the stream is at that revision, which keeps two writers "
    "from overwriting each "
    "other's work; with --lines every batch has to find the stream as the one before left it. An event with "
    "an --id that the stream "
    "has already is not appended twice.\n";

const sl_command sl_command_append = {
    .name = "append",
    .bit = SL_COMMAND_APPEND,
    .words = "STREAM",
    .words_min = 1,
    .words_max = 1,
    .run = run_append,
    .summary = "append events to a stream",
    .details = details,
    .examples = "One event, an event with everything, and a file with a line for each:\n"
                "  sluice append orders --type placed --data '{\"id\": 7}'\n"
                "  sluice append orders --type paid --file paid.json --expect 0\n"
                "  sluice append orders --type imported --lines orders.jsonl\n",
    .exits = "0 everything was appended and is durable\n"
             "1 it was not, or not everything; or that could not be told: see the error\n" SL_EXITS_USAGE,
};

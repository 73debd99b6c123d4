/* cli/stream_command.c — what is known about a stream, from its first and its last event and from its metadata, which are
 * the last event of a stream of their own: $$NAME. */
#include "cli/stream_command.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/append_draft.h"
#include "cli/client_options.h"
#include "cli/client_session.h"
#include "cli/event_print.h"
#include "cli/json_value.h"
#include "cli/metadata_notes.h"
#include "cli/print.h"
#include "store/metadata.h"
#include "store/store.h"
#include "wire/streams_control.h"

/* --- one event of a stream --- */

typedef struct peek {
    sl_session *session;
    sl_status status; /* of the call; OK and neither of these two: it is empty */
    bool is_missing, has_event;
    const char *malformed;
    uint64_t revision, position, created_ticks;
    sl_str type, data; /* in the arena of the session */
} peek;

static sl_str keep(sl_arena *arena, sl_str text)
{
    const char *const copy = sl_arena_copy(arena, text.data, text.bytes);

    return (sl_str){ copy, copy == NULL ? 0 : text.bytes };
}

static void on_message(void *ctx, sl_str message)
{
    peek *p = ctx;
    sl_read_response response;

    if (sl_read_response_decode(message, &response, &p->malformed) != SL_OK)
        return;
    p->is_missing |= response.kind == SL_READ_RESPONSE_STREAM_NOT_FOUND;
    if (response.kind != SL_READ_RESPONSE_EVENT || !response.event.has_event)
        return;
    const sl_wire_recorded *const event = &response.event.event;
    p->has_event = true;
    p->revision = event->revision;
    p->position = event->commit_position;
    p->created_ticks = event->created_ticks;
    p->type = keep(&p->session->arena, event->type);
    p->data = keep(&p->session->arena, event->data);
}

/* The first or the last event. SL_EXIT_OK: there is an answer; p->status tells which, and *ret_answer has to be ended. */
static int look(peek *p, sl_str stream, bool is_last, sl_client_answer *ret_answer)
{
    const sl_read_request request = { .source = SL_WIRE_SOURCE_STREAM,
                                      .stream = stream,
                                      .start = is_last ? SL_WIRE_START_END : SL_WIRE_START_BEGIN,
                                      .backwards = is_last,
                                      .extent = SL_READ_EXTENT_COUNT,
                                      .count = 1,
                                      .filter = { .kind = SL_WIRE_FILTER_NONE },
                                      .has_id_option = true,
                                      .id_form = SL_WIRE_ID_STRUCTURED };
    sl_str message;
    const sl_session_call call = { .path = "/event_store.client.streams.Streams/Read",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_message,
                                   .ctx = p };
    int code;

    if (sl_read_request_encode(&request, &p->session->arena, &message) != SL_OK)
        return sl_session_failf(p->session, "there is not enough memory");
    code = sl_session_try(p->session, &call, ret_answer);
    if (code == SL_EXIT_OK)
        p->status = ret_answer->status;
    if (code == SL_EXIT_OK && p->malformed != NULL) {
        sl_client_answer_done(ret_answer);
        return sl_session_failf(p->session, "the server's answer cannot be understood: %s", p->malformed);
    }
    return code;
}

/* The same where any refusal is an error. */
static int look_or_fail(peek *p, sl_str stream, bool is_last)
{
    sl_client_answer answer;
    int code = look(p, stream, is_last, &answer);

    if (code != SL_EXIT_OK)
        return code;
    if (p->status != SL_STATUS_OK)
        code = sl_session_fail_answer(p->session, &answer);
    sl_client_answer_done(&answer);
    return code;
}

/* The stream with the metadata of this one; empty without memory. */
static sl_str metadata_stream(sl_session *session, sl_str stream)
{
    char *const name = sl_arena_alloc(&session->arena, stream.bytes + 2);

    if (name == NULL)
        return (sl_str){ 0 };
    memcpy(name, "$$", 2);
    memcpy(name + 2, stream.data, stream.bytes);
    return (sl_str){ name, stream.bytes + 2 };
}

/* --- info --- */

typedef struct info {
    peek first, last, metadata;
} info;

static uint64_t event_count(const info *i)
{
    return i->last.revision - i->first.revision + 1;
}

static void print_count(FILE *out, const info *i)
{
    if (event_count(i) == 1)
        fprintf(out, ": 1 event, revision %" PRIu64, i->last.revision);
    else
        fprintf(out, ": %" PRIu64 " events, revisions %" PRIu64 " to %" PRIu64, event_count(i),
                i->first.revision, i->last.revision);
}

static void print_info_json(const sl_invocation *invocation, const info *i, sl_str stream)
{
    sl_event_printer printer;
    sl_fields fields = { .out = invocation->out, .json = true };

    sl_event_printer_init(&printer, invocation->out, true, false);
    fputc('{', invocation->out);
    sl_field_text(&fields, "stream", stream);
    if (i->last.has_event) {
        sl_field_number(&fields, "events", event_count(i));
        sl_field_number(&fields, "first_revision", i->first.revision);
        sl_field_number(&fields, "last_revision", i->last.revision);
        sl_field_number(&fields, "last_position", i->last.position);
        sl_field_time(&fields, "last_created", i->last.created_ticks * SL_WIRE_TICK_NS);
        sl_field_text(&fields, "last_type", i->last.type);
    } else {
        sl_field_number(&fields, "events", 0);
    }
    if (i->metadata.has_event)
        sl_field_number(&fields, "metadata_revision", i->metadata.revision);
    if (i->metadata.status == SL_STATUS_OK)
        (void)sl_event_print_payload(&printer, &fields, "metadata", i->metadata.data);
    fputs("}\n", invocation->out);
    sl_event_printer_done(&printer);
}

static void print_info(const sl_invocation *invocation, const info *i, sl_str stream)
{
    FILE *const out = invocation->out;
    char time_buffer[40];
    sl_text time;

    fputs("stream ", out);
    sl_print_quoted(out, stream);
    if (i->last.has_event) {
        sl_text_init(&time, time_buffer, sizeof time_buffer);
        sl_text_add_time(&time, i->last.created_ticks * SL_WIRE_TICK_NS);
        print_count(out, i);
        fputs("\nlast event: ", out);
        sl_print_safe(out, i->last.type, SIZE_MAX);
        fprintf(out, ", %s, position %" PRIu64 "\n", time_buffer, i->last.position);
    } else {
        fputs(": no events\n", out);
    }
    if (i->metadata.status == SL_STATUS_PERMISSION_DENIED) {
        fputs("metadata: not for this user\n", out);
    } else if (i->metadata.has_event) {
        fputs("metadata: ", out);
        sl_print_safe(out, i->metadata.data, SIZE_MAX);
        fprintf(out, " (revision %" PRIu64 ")\n", i->metadata.revision);
    }
}

/* Metadata may be secret where the events are not. */
static int look_at_metadata(peek *p, sl_str stream)
{
    sl_client_answer answer;
    int code = look(p, metadata_stream(p->session, stream), true, &answer);

    if (code != SL_EXIT_OK)
        return code;
    if (p->status != SL_STATUS_OK && p->status != SL_STATUS_PERMISSION_DENIED)
        code = sl_session_fail_answer(p->session, &answer);
    sl_client_answer_done(&answer);
    return code;
}

static bool is_soft_deleted(const peek *metadata)
{
    return metadata->has_event &&
           sl_metadata_parse(metadata->data).truncate_before == SL_REVISION_MAX; /* beyond every event */
}

/* The first one first: revisions only grow, so whatever is written or truncated between the two, the last one is not below
 * it. */
static int look_at_both(info *i, sl_str stream)
{
    int code = look_or_fail(&i->first, stream, false);

    if (code == SL_EXIT_OK)
        code = look_or_fail(&i->last, stream, true);
    if (!i->first.has_event) /* then what there is now came between */
        i->first.revision = i->last.revision;
    return code;
}

static int show_info(sl_session *session, sl_str stream)
{
    info i = { .first.session = session, .last.session = session, .metadata.session = session };
    int code = look_at_both(&i, stream);

    if (code == SL_EXIT_OK)
        code = look_at_metadata(&i.metadata, stream);
    if (code != SL_EXIT_OK)
        return code;
    if (i.last.is_missing && is_soft_deleted(&i.metadata))
        return sl_session_failf(session, "stream \"%s\" was deleted; a new event would bring it back",
                                session->invocation->words[0]);
    if (i.last.is_missing && !i.metadata.has_event)
        return sl_session_failf(session, "there is no stream \"%s\"", session->invocation->words[0]);
    (session->invocation->json ? print_info_json : print_info)(session->invocation, &i, stream);
    return SL_EXIT_OK;
}

static int run_info(const sl_invocation *invocation)
{
    sl_session session;
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = show_info(&session, sl_str_from(invocation->words[0]));
    sl_session_close(&session);
    return code;
}

/* --- delete --- */

typedef struct deleting {
    sl_session *session;
    sl_wire_position position;
} deleting;

static void on_deleted(void *ctx, sl_str message)
{
    deleting *d = ctx;

    (void)sl_delete_response_decode(message, &d->session->arena, &d->position,
                                    NULL); /* the status says that it is done */
}

static void print_deleted(const deleting *d, bool is_tombstone)
{
    const sl_invocation *const invocation = d->session->invocation;
    const sl_str stream = sl_str_from(invocation->words[0]);
    sl_fields fields = { .out = invocation->out, .json = true };

    if (!invocation->json) {
        fputs("deleted stream ", invocation->out);
        sl_print_quoted(invocation->out, stream);
        fprintf(invocation->out, "%s: position %" PRIu64 "\n", is_tombstone ? " for ever" : "",
                d->position.commit);
        return;
    }
    fputc('{', invocation->out);
    sl_field_text(&fields, "stream", stream);
    sl_field_bool(&fields, "tombstone", is_tombstone);
    sl_field_number(&fields, "position", d->position.commit);
    fputs("}\n", invocation->out);
}

static int delete_stream(sl_session *session, sl_wire_revision expected, bool is_tombstone)
{
    deleting d = { .session = session };
    const sl_delete_request request = { .stream = sl_str_from(session->invocation->words[0]),
                                        .expected = expected };
    sl_str message;
    const sl_session_call call = { .path = is_tombstone ? "/event_store.client.streams.Streams/Tombstone"
                                                        : "/event_store.client.streams.Streams/Delete",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_deleted,
                                   .ctx = &d };
    int code;

    if (sl_delete_request_encode(&request, &session->arena, &message) != SL_OK)
        return sl_session_failf(session, "there is not enough memory");
    code = sl_session_ask(session, &call);
    if (code == SL_EXIT_OK)
        print_deleted(&d, is_tombstone);
    return code;
}

static int run_delete(const sl_invocation *invocation)
{
    const bool is_tombstone = invocation->values[SL_OPT_TOMBSTONE].number != 0;
    sl_session session = { 0 };
    sl_wire_revision expected;
    int code;

    if (is_tombstone && invocation->values[SL_OPT_YES].number == 0)
        return sl_cli_complain(
            invocation, "A tombstone cannot be taken back: no event can ever be appended to a stream of "
                        "that name again. If that is what you want, add --yes.");
    code = sl_client_options_expect(invocation, &expected);
    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = delete_stream(&session, expected, is_tombstone);
    sl_session_close(&session);
    return code;
}

/* --- metadata --- */

static void print_metadata(const sl_invocation *invocation, const peek *p)
{
    FILE *const out = invocation->out;
    const sl_str stream = sl_str_from(invocation->words[0]);
    sl_fields fields = { .out = out, .json = true };
    sl_event_printer printer;

    if (!invocation->json && p->has_event) {
        sl_print_safe(out, p->data, SIZE_MAX);
        fputc('\n', out);
        return;
    }
    if (!invocation->json) {
        fputs("stream ", out);
        sl_print_quoted(out, stream);
        fputs(" has no metadata\n", out);
        return;
    }
    sl_event_printer_init(&printer, out, true, false);
    fputc('{', out);
    sl_field_text(&fields, "stream", stream);
    if (p->has_event)
        sl_field_number(&fields, "metadata_revision", p->revision);
    (void)sl_event_print_payload(&printer, &fields, "metadata", p->data);
    fputs("}\n", out);
    sl_event_printer_done(&printer);
}

static int show_metadata(sl_session *session, sl_str meta)
{
    peek p = { .session = session };
    const int code = look_or_fail(&p, meta, true);

    if (code == SL_EXIT_OK)
        print_metadata(session->invocation, &p);
    return code;
}

static int set_metadata(sl_session *session, sl_str meta, sl_wire_revision expected)
{
    const sl_invocation *const invocation = session->invocation;
    const sl_append_draft draft = { .stream = meta, .type = SL_STR("$metadata"), .expected = expected };
    const sl_str json = sl_str_from(invocation->values[SL_OPT_SET].text);
    sl_append_response response;
    sl_wire_proposed event;
    sl_uuid id;
    int code;

    if (sl_append_make_id(&id) != SL_OK || !sl_append_make_event(&draft, id, json, &event))
        return sl_session_failf(session, "the system gives no random numbers");
    code = sl_append_send(session, &draft, &event, &response);
    if (code != SL_EXIT_OK)
        return code;
    fputs(invocation->json ? "{\"stream\": " : "set the metadata of ", invocation->out);
    (invocation->json ? sl_print_json_str : sl_print_quoted)(invocation->out,
                                                             sl_str_from(invocation->words[0]));
    fprintf(invocation->out,
            invocation->json ? ", \"metadata_revision\": %" PRIu64 ", \"position\": %" PRIu64 "}\n"
                             : ": revision %" PRIu64 ", position %" PRIu64 "\n",
            response.current.number, response.position.commit);
    sl_metadata_notes(json, invocation->err);
    return SL_EXIT_OK;
}

static int run_metadata(const sl_invocation *invocation)
{
    const char *const json = invocation->values[SL_OPT_SET].text;
    sl_session session = { 0 };
    sl_wire_revision expected;
    int code = sl_client_options_expect(invocation, &expected);

    if (code != SL_EXIT_OK)
        return code;
    if (json != NULL && !sl_json_is_object(sl_str_from(json)))
        return sl_cli_complain(invocation, "--set needs a JSON object, such as '{\"$maxCount\": 1000}'.");
    code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK) {
        const sl_str meta = metadata_stream(&session, sl_str_from(invocation->words[0]));
        code = json == NULL ? show_metadata(&session, meta) : set_metadata(&session, meta, expected);
    }
    sl_session_close(&session);
    return code;
}

/* --- rows --- */

const sl_command sl_command_stream_info = {
    .name = "stream info",
    .bit = SL_COMMAND_STREAM_INFO,
    .words = "STREAM",
    .words_min = 1,
    .words_max = 1,
    .run = run_info,
    .summary = "show what is known about a stream",
    .details = "Shows how many events the stream has, its first and last revision, its last event, and its "
               "metadata.\n",
    .examples = "For a script:\n"
                "  sluice stream info orders --json\n",
    .exits = "0 done\n"
             "1 it did not work, or there is no such stream\n" SL_EXITS_USAGE,
};

const sl_command sl_command_stream_delete = {
    .name = "stream delete",
    .bit = SL_COMMAND_STREAM_DELETE,
    .words = "STREAM",
    .words_min = 1,
    .words_max = 1,
    .run = run_delete,
    .summary = "delete a stream",
    .details = "Hides all events of the stream. The next event that is appended brings the stream back, with "
               "the next revision "
               "and without the old events. With --tombstone it is for ever: nothing can be appended to that "
               "name any more, "
               "and reading it is an error.\n\n"
               "With --expect the stream is deleted only if it is at that revision.\n",
    .examples = "Two ways:\n"
                "  sluice stream delete orders\n"
                "  sluice stream delete orders --tombstone --yes\n",
};

const sl_command sl_command_stream_metadata = {
    .name = "stream metadata",
    .bit = SL_COMMAND_STREAM_METADATA,
    .words = "STREAM",
    .words_min = 1,
    .words_max = 1,
    .run = run_metadata,
    .summary = "show or set the metadata of a stream",
    .details = "Metadata is a JSON object. Names that begin with $ have a meaning for the server: $maxCount "
               "(keep so many "
               "events), $maxAge (keep them so many seconds), $tb (events before this revision are gone), "
               "$acl (who may do what). "
               "--set replaces all of it; --expect is then about the revision of the metadata.\n",
    .examples = "Keep the last thousand events:\n"
                "  sluice stream metadata orders --set '{\"$maxCount\": 1000}'\n",
};

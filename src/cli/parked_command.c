/* cli/parked_command.c — looks at parked messages, gives them to consumers again, or drops them.
 *
 * They are the events of a stream, $persistentsubscription-STREAM::GROUP-parked, and read like any other. A stream that is not there can
 * mean that nothing was ever parked or that the group does not exist, so then the group is asked for. */
#include "cli/parked_command.h"

#include <inttypes.h>
#include <string.h>

#include "cli/group_call.h"
#include "cli/parked_print.h"
#include "cli/print.h"
#include "wire/streams_codec.h"
#include "wire/streams_control.h"

/* --- reading --- */

typedef struct reading {
    sl_session *session;
    sl_parked_printer printer;
    bool has_number; /* only this one */
    uint64_t number, shown;
    bool is_missing;
    sl_err err;
    const char *malformed;
} reading;

/* Empty without memory. */
static sl_str parked_stream(sl_session *session, const sl_wire_group_name *name)
{
    static const char format[] =
        "$persistentsubscription-%s::%s-parked"; /* as server/groups/names.h, which is not for commands */
    const char *const *const words = (const char *const *)session->invocation->words;
    const size_t bytes = sizeof format + strlen(words[0]) + name->group.bytes;
    char *const stream = sl_arena_alloc(&session->arena, bytes);

    if (stream == NULL)
        return (sl_str){ 0 };
    snprintf(stream, bytes, format, words[0], words[1]);
    return sl_str_from(stream);
}

static void show(reading *r, const sl_wire_read_event *event)
{
    const sl_wire_recorded *const place = event->has_link ? &event->link : &event->event;

    if ((!event->has_event && !event->has_link) || (r->has_number && place->revision != r->number))
        return;
    r->err = sl_parked_print(&r->printer, event);
    r->shown++;
}

static void on_message(void *ctx, sl_str message)
{
    reading *r = ctx;
    sl_read_response response;

    if (r->err != SL_OK)
        return;
    r->err = sl_read_response_decode(message, &response, &r->malformed);
    if (r->err != SL_OK)
        return;
    r->is_missing |= response.kind == SL_READ_RESPONSE_STREAM_NOT_FOUND;
    if (response.kind == SL_READ_RESPONSE_EVENT)
        show(r, &response.event);
}

static int read_parked(reading *r, sl_str stream)
{
    const sl_option_value *const count = &r->session->invocation->values[SL_OPT_EVENT_COUNT];
    const sl_read_request request = { .source = SL_WIRE_SOURCE_STREAM,
                                      .stream = stream,
                                      .start = r->has_number ? SL_WIRE_START_GIVEN : SL_WIRE_START_BEGIN,
                                      .revision = r->number,
                                      .extent = SL_READ_EXTENT_COUNT,
                                      .count = r->has_number         ? 1
                                               : count->text != NULL ? count->number
                                                                     : INT64_MAX,
                                      .resolve_links = true,
                                      .filter = { .kind = SL_WIRE_FILTER_NONE },
                                      .has_id_option = true,
                                      .id_form = SL_WIRE_ID_STRUCTURED };
    sl_str message;
    const sl_session_call call = { .path = "/event_store.client.streams.Streams/Read",
                                   .messages = &message,
                                   .message_count = 1,
                                   .is_endless = true,
                                   .on_message = on_message,
                                   .ctx = r };
    int code;

    if (stream.bytes == 0 || sl_read_request_encode(&request, &r->session->arena, &message) != SL_OK)
        return sl_group_fail_encode(r->session);
    code = sl_session_ask(r->session, &call);
    return code == SL_EXIT_OK ? sl_group_fail_answer(r->session, r->err, r->malformed) : code;
}

/* Nothing was shown: there may be no such group, which is worth another sentence than an empty list. */
static int explain_nothing(reading *r, const sl_wire_group_name *name)
{
    const sl_invocation *const invocation = r->session->invocation;
    sl_wire_group_info info;
    const int code = sl_group_look(r->session, name, &info);

    if (code != SL_EXIT_OK)
        return code;
    if (r->has_number)
        return sl_session_failf(r->session,
                                "the group has no parked message %" PRIu64
                                "; 'sluice parked list' shows those there are",
                                r->number);
    if (invocation->json)
        return SL_EXIT_OK;
    sl_group_print_name(invocation->out, name);
    fputs(" has no parked messages\n", invocation->out);
    return SL_EXIT_OK;
}

static int read_and_show(reading *r)
{
    const sl_wire_group_name name = sl_group_name_of(r->session->invocation);
    int code = read_parked(r, parked_stream(r->session, &name));

    if (code == SL_EXIT_OK && r->shown == 0)
        code = explain_nothing(r, &name);
    return code;
}

static int run_reading(const sl_invocation *invocation, reading *r, bool in_full)
{
    sl_session session = { 0 };
    int code = sl_session_open(&session, invocation);

    r->session = &session;
    sl_parked_printer_init(&r->printer, invocation->out, invocation->json, in_full);
    if (code == SL_EXIT_OK)
        code = read_and_show(r);
    sl_parked_printer_done(&r->printer);
    sl_session_close(&session);
    return code;
}

static int run_list(const sl_invocation *invocation)
{
    reading r = { 0 };

    return run_reading(invocation, &r, false);
}

static int run_show(const sl_invocation *invocation)
{
    reading r = { .has_number = invocation->word_count == 3 };

    if (r.has_number &&
        (sl_str_parse_u64(sl_str_from(invocation->words[2]), &r.number) != SL_OK || r.number > INT64_MAX))
        return sl_cli_complain(invocation,
                               "The third word is the NUMBER of a parked message, as parked list shows it.");
    return run_reading(invocation, &r, true);
}

/* --- replay and truncate --- */

static int change(sl_session *session, const char *method)
{
    const sl_invocation *const invocation = session->invocation;
    const sl_option_value *const stop_at = &invocation->values[SL_OPT_STOP_AT];
    const sl_parked_request request = { .name = sl_group_name_of(invocation),
                                        .limit = stop_at->text != NULL ? SL_PARKED_LIMIT_STOP_AT
                                                                       : SL_PARKED_LIMIT_NONE,
                                        .stop_at = (int64_t)stop_at->number };
    sl_str message;

    if (sl_parked_request_encode(&request, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    return sl_group_ask(session, method, message);
}

/* below: --stop-at, so how many of them are meant is not known. */
static void print_count(FILE *out, const sl_wire_group_info *info, const sl_option_value *below)
{
    if (below->text != NULL)
        fprintf(out, "parked messages below %" PRIu64, below->number);
    else
        fprintf(out, "%" PRId64 " parked message%s", info->parked_count, info->parked_count == 1 ? "" : "s");
}

/* info: as it was before. */
static void print_changed(const sl_invocation *invocation, const sl_wire_group_info *info, const char *done)
{
    const sl_option_value *const stop_at = &invocation->values[SL_OPT_STOP_AT];
    const sl_wire_group_name name = sl_group_name_of(invocation);
    sl_fields fields = { .out = invocation->out, .json = true };

    if (invocation->json) {
        fputc('{', invocation->out);
        sl_group_field_name(&fields, &name);
        if (stop_at->text != NULL)
            sl_field_number(&fields, "stop_at", stop_at->number);
        else
            sl_field_number(&fields, "count", (uint64_t)(info->parked_count > 0 ? info->parked_count : 0));
        sl_field_bool(&fields, done, true);
        fputs("}\n", invocation->out);
        return;
    }
    if (info->parked_count == 0) {
        sl_group_print_name(invocation->out, &name);
        fputs(" has no parked messages\n", invocation->out);
        return;
    }
    fprintf(invocation->out, "%s ", done);
    print_count(invocation->out, info, stop_at);
    fputs(" of ", invocation->out);
    sl_group_print_name(invocation->out, &name);
    fputc('\n', invocation->out);
}

static int run_change(const sl_invocation *invocation, const char *method, const char *done)
{
    const sl_wire_group_name name = sl_group_name_of(invocation);
    sl_wire_group_info info;
    sl_session session = { 0 };
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = sl_group_look(&session, &name, &info);
    if (code == SL_EXIT_OK)
        code = change(&session, method);
    if (code == SL_EXIT_OK)
        print_changed(invocation, &info, done);
    sl_session_close(&session);
    return code;
}

static int run_replay(const sl_invocation *invocation)
{
    return run_change(invocation, "ReplayParked", "replaying");
}

static int run_truncate(const sl_invocation *invocation)
{
    return run_change(invocation, "TruncateParked", "dropped");
}

/* --- rows --- */

#define EXITS                                                                                                \
    "0 done\n"                                                                                               \
    "1 it did not work, or there is no such group\n" SL_EXITS_USAGE

const sl_command sl_command_parked_list = {
    .name = "parked list",
    .bit = SL_COMMAND_PARKED_LIST,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_list,
    .summary = "list the parked messages of a group",
    .details =
        "A line for each message, the oldest first: its number among the parked ones, when it was "
        "parked, the "
        "event as REVISION@STREAM, its type, and why it was parked. A message is parked when it was "
        "tried too "
        "often, when a consumer asks for it, or when its consumers die of it. With --json also how often "
        "it was tried, and its last failures.\n",
    .examples = "The first ten:\n"
                "  sluice parked list orders billing --count 10\n",
    .exits = EXITS,
};

const sl_command sl_command_parked_show = {
    .name = "parked show",
    .bit = SL_COMMAND_PARKED_SHOW,
    .words = "STREAM GROUP [NUMBER]",
    .words_min = 2,
    .words_max = 3,
    .run = run_show,
    .summary = "show parked messages in full",
    .details =
        "Shows the parked message NUMBER, or all of them, with its last failures, and data and metadata "
        "of the event. With --json link_metadata is "
        "everything that the server wrote down when it parked the message.\n",
    .examples = "One, and all for a program:\n"
                "  sluice parked show orders billing 0\n"
                "  sluice parked show orders billing --json\n",
    .exits = EXITS,
};

const sl_command sl_command_parked_replay = {
    .name = "parked replay",
    .bit = SL_COMMAND_PARKED_REPLAY,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_replay,
    .summary = "give parked messages to the consumers again",
    .details =
        "Returns when the replay has begun. The messages come before new ones and with as many tries as new "
        "ones; those that fail again are parked again.\n",
    .examples = "All but the newest, which has the number 7:\n"
                "  sluice parked replay orders billing --stop-at 7\n",
    .exits = EXITS,
};

const sl_command sl_command_parked_truncate = {
    .name = "parked truncate",
    .bit = SL_COMMAND_PARKED_TRUNCATE,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_truncate,
    .summary = "drop parked messages for good",
    .details = "Drops them from the list; the events themselves stay in their streams. That cannot be taken "
               "back.\n",
    .examples = "Those with numbers from 0 to 6:\n"
                "  sluice parked truncate orders billing --stop-at 7\n",
    .exits = EXITS,
};

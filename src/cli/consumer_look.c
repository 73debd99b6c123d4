/* cli/consumer_look.c — `sluice consumer list`, `show` and `drains`: who consumes, and what became of those that stopped. */
#include "cli/consumer_command.h"

#include <inttypes.h>

#include "cli/client_session.h"
#include "cli/consumer_who.h"
#include "cli/fields.h"
#include "cli/group_call.h"
#include "cli/print.h"
#include "cli/table.h"

#define MILLISECOND_NS UINT64_C(1000000)

/* --- asking --- */

typedef struct asking {
    sl_session *session;
    sl_wire_consumers *answer;
    sl_err err;
    const char *malformed;
} asking;

static void on_consumers(void *ctx, sl_str message)
{
    asking *a = ctx;

    a->err = sl_wire_consumers_decode(message, &a->session->arena, a->answer, &a->malformed);
}

static int ask(sl_session *session, const sl_wire_consumers_request *request, sl_wire_consumers *ret_answer)
{
    asking a = { .session = session, .answer = ret_answer };
    sl_str message;
    const sl_session_call call = { .path = "/" SL_OPERATORS_SERVICE "/Consumers",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_consumers,
                                   .ctx = &a };
    int code;

    *ret_answer = (sl_wire_consumers){ 0 };
    if (sl_wire_consumers_request_encode(request, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_session_ask(session, &call);
    return code == SL_EXIT_OK ? sl_group_fail_answer(session, a.err, a.malformed) : code;
}

typedef int print_fn(sl_session *session, const sl_wire_consumers *answer);

static int ask_and_print(const sl_invocation *invocation, bool with_reports, print_fn *print)
{
    sl_wire_consumers_request request = { .with_reports = with_reports };
    sl_wire_consumers answer;
    sl_session session = { 0 };
    int code = sl_consumer_who(invocation, &request.who);

    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = ask(&session, &request, &answer);
    if (code == SL_EXIT_OK)
        code = print(&session, &answer);
    sl_session_close(&session);
    return code;
}

/* --- one consumer --- */

static void print_labels_json(sl_fields *fields, const sl_wire_consumer *consumer)
{
    sl_field_name(fields, "labels");
    fputc('{', fields->out);
    for (size_t i = 0; i < consumer->label_count; i++) {
        fputs(i == 0 ? "" : ", ", fields->out);
        sl_print_json_str(fields->out, consumer->labels[i].key);
        fputs(": ", fields->out);
        sl_print_json_str(fields->out, consumer->labels[i].value);
    }
    fputc('}', fields->out);
}

static void print_object(FILE *out, const sl_wire_consumer *consumer)
{
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_text(&fields, "stream", consumer->stream);
    sl_field_text(&fields, "group", consumer->group);
    sl_field_number(&fields, "consumer", consumer->consumer);
    sl_field_text(&fields, "name", consumer->name);
    print_labels_json(&fields, consumer);
    sl_field_text(&fields, "state", consumer->state);
    sl_field_text(&fields, "asked_by", consumer->asked_by);
    sl_field_number(&fields, "in_flight", consumer->in_flight);
    sl_field_number(&fields, "started", consumer->started);
    sl_field_number(&fields, "window", consumer->window);
    sl_field_number(&fields, "deliveries", consumer->deliveries);
    sl_field_number(&fields, "in_state_ms", consumer->in_state_ms);
    sl_field_bool(&fields, "safe_to_terminate", consumer->safe_to_terminate);
    sl_field_text(&fields, "address", consumer->address);
    sl_field_text(&fields, "user", consumer->user);
    sl_field_number(&fields, "removal_cost", consumer->removal_cost);
    sl_field_bool(&fields, "cheapest_to_remove", consumer->cheapest_to_remove);
    fputs("}\n", out);
}

/* "version=42 zone=a", in the arena; cut where memory or room ends. */
static sl_str join_labels(sl_session *session, const sl_wire_consumer *consumer)
{
    enum {
        LABELS_BYTES = 4096
    };
    char *const buffer = sl_arena_alloc(&session->arena, LABELS_BYTES);
    sl_text text;

    if (buffer == NULL)
        return SL_STR("");
    sl_text_init(&text, buffer, LABELS_BYTES);
    for (size_t i = 0; i < consumer->label_count; i++) {
        sl_text_add(&text, i == 0 ? "" : " ");
        sl_text_add_str(&text, consumer->labels[i].key);
        sl_text_add_char(&text, '=');
        sl_text_add_str(&text, consumer->labels[i].value);
    }
    return sl_text_str(&text);
}

/* --- list --- */

static void print_table(sl_session *session, const sl_wire_consumers *answer)
{
    sl_table table;

    sl_table_begin(
        &table,
        "STREAM|GROUP|NAME|STATE|FOR|IN FLIGHT|STARTED|WINDOW|DELIVERIES|REMOVAL COST|CHEAPEST|LABELS");
    for (size_t i = 0; i < answer->consumer_count; i++) {
        const sl_wire_consumer *const c = &answer->consumers[i];
        sl_table_text(&table, c->stream);
        sl_table_text(&table, c->group);
        sl_table_text(&table, c->name.bytes > 0 ? c->name : SL_STR("?"));
        sl_table_text(&table, c->state);
        sl_table_duration(&table, c->in_state_ms);
        sl_table_number(&table, c->in_flight);
        sl_table_number(&table, c->started);
        sl_table_number(&table, c->window);
        sl_table_number(&table, (int64_t)c->deliveries);
        sl_table_number(&table, c->removal_cost);
        sl_table_text(&table, c->cheapest_to_remove ? SL_STR("yes") : SL_STR(""));
        sl_table_text(&table, join_labels(session, c));
    }
    sl_table_end(&table, session->invocation->out);
}

static int print_list(sl_session *session, const sl_wire_consumers *answer)
{
    FILE *const out = session->invocation->out;

    for (size_t i = 0; i < answer->consumer_count && session->invocation->json; i++)
        print_object(out, &answer->consumers[i]);
    if (session->invocation->json)
        return SL_EXIT_OK;
    if (answer->consumer_count > 0)
        print_table(session, answer);
    else
        fputs("there are no such consumers\n", out);
    return SL_EXIT_OK;
}

static int run_list(const sl_invocation *invocation)
{
    return ask_and_print(invocation, false, print_list);
}

/* --- show --- */

static void print_duration(FILE *out, uint64_t duration_ms)
{
    char buffer[64];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_duration(&text, duration_ms > UINT64_MAX / MILLISECOND_NS ? UINT64_MAX
                                                                          : duration_ms * MILLISECOND_NS);
    fputs(buffer, out);
}

static void print_safety(FILE *out, const sl_wire_consumer *consumer)
{
    if (consumer->safe_to_terminate)
        fputs("safe to terminate: yes, it holds nothing, and that is durable\n", out);
    else if (sl_str_equal(consumer->state, SL_STR("active")))
        fputs("safe to terminate: no, it gets messages; stop it first\n", out);
    else
        fprintf(out, "safe to terminate: no, it holds %" PRIu32 " message%s\n", consumer->in_flight,
                consumer->in_flight == 1 ? "" : "s");
}

static void print_lines(sl_session *session, const sl_wire_consumer *c)
{
    FILE *const out = session->invocation->out;

    fputs("consumer ", out);
    sl_print_quoted(out, c->name);
    fputs(" of group ", out);
    sl_print_quoted(out, c->group);
    fputs(" on ", out);
    sl_print_quoted(out, c->stream);
    fputs(": ", out);
    sl_print_safe(out, c->state, SIZE_MAX);
    fputs(" for ", out);
    print_duration(out, c->in_state_ms);
    if (c->asked_by.bytes > 0) {
        fputs(", asked by the ", out);
        sl_print_safe(out, c->asked_by, SIZE_MAX);
    }
    fprintf(out,
            "\nmessages: %" PRIu32 " in flight, %" PRIu32 " of them started, window %" PRIu32 ", %" PRIu64
            " delivered\n",
            c->in_flight, c->started, c->window, c->deliveries);
    fputs("connected: ", out);
    sl_print_safe(out, c->address.bytes > 0 ? c->address : SL_STR("no"), SIZE_MAX);
    fputs(c->user.bytes > 0 ? " as " : "", out);
    sl_print_safe(out, c->user, SIZE_MAX);
    fputs(c->label_count > 0 ? "\nlabels: " : "", out);
    sl_print_safe(out, join_labels(session, c), SIZE_MAX);
    fputc('\n', out);
    print_safety(out, c);
    fprintf(out, "removal cost: %" PRIu32 "%s\n", c->removal_cost,
            c->cheapest_to_remove ? ", the cheapest of its group" : "");
}

static int print_shown(sl_session *session, const sl_wire_consumers *answer)
{
    bool is_safe = true;

    if (answer->consumer_count == 0)
        return sl_session_failf(session,
                                "there is no consumer \"%s\", or none in that group; so nothing waits for "
                                "it. 'sluice consumer list' shows those there are",
                                session->invocation->words[0]);
    for (size_t i = 0; i < answer->consumer_count; i++) {
        const sl_wire_consumer *const consumer = &answer->consumers[i];
        is_safe = is_safe && consumer->safe_to_terminate;
        if (session->invocation->json)
            print_object(session->invocation->out, consumer);
        else
            print_lines(session, consumer);
    }
    return is_safe ? SL_EXIT_OK : SL_EXIT_HELD;
}

static int run_show(const sl_invocation *invocation)
{
    return ask_and_print(invocation, false, print_shown);
}

/* --- drains --- */

static void print_report(FILE *out, const sl_wire_drain_report *report)
{
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_text(&fields, "stream", report->stream);
    sl_field_text(&fields, "group", report->group);
    sl_field_number(&fields, "consumer", report->consumer);
    sl_field_text(&fields, "name", report->name);
    sl_field_text(&fields, "asked_by", report->asked_by);
    sl_field_time(&fields, "stopped_at", report->stopped_at_ms * MILLISECOND_NS);
    sl_field_number(&fields, "took_ms", report->took_ms);
    sl_field_number(&fields, "settled", report->settled);
    sl_field_number(&fields, "released", report->released);
    sl_field_number(&fields, "interrupted", report->interrupted);
    sl_field_number(&fields, "lost", report->lost);
    sl_field_text(&fields, "outcome", report->outcome);
    fputs("}\n", out);
}

static void print_report_row(sl_table *table, const sl_wire_drain_report *report)
{
    char buffer[48];
    sl_text time;

    sl_text_init(&time, buffer, sizeof buffer);
    sl_text_add_time(&time, report->stopped_at_ms * MILLISECOND_NS);
    sl_table_text(table, sl_text_str(&time));
    sl_table_text(table, report->stream);
    sl_table_text(table, report->group);
    sl_table_text(table, report->name);
    sl_table_text(table, report->asked_by);
    sl_table_text(table, report->outcome);
    sl_table_duration(table, report->took_ms);
    sl_table_number(table, report->settled);
    sl_table_number(table, report->released);
    sl_table_number(table, report->interrupted);
    sl_table_number(table, report->lost);
}

static int print_drains(sl_session *session, const sl_wire_consumers *answer)
{
    FILE *const out = session->invocation->out;
    sl_table table;

    if (session->invocation->json) {
        for (size_t i = 0; i < answer->report_count; i++)
            print_report(out, &answer->reports[i]);
        return SL_EXIT_OK;
    }
    if (answer->report_count == 0) {
        fputs("no such consumer has stopped since this server was started\n", out);
        return SL_EXIT_OK;
    }
    sl_table_begin(&table,
                   "STOPPED|STREAM|GROUP|NAME|ASKED BY|OUTCOME|TOOK|SETTLED|RELEASED|INTERRUPTED|LOST");
    for (size_t i = 0; i < answer->report_count; i++)
        print_report_row(&table, &answer->reports[i]);
    sl_table_end(&table, out);
    return SL_EXIT_OK;
}

static int run_drains(const sl_invocation *invocation)
{
    return ask_and_print(invocation, true, print_drains);
}

/* --- rows --- */

const sl_command sl_command_consumer_list = {
    .name = "consumer list",
    .bit = SL_COMMAND_CONSUMER_LIST,
    .words = "",
    .run = run_list,
    .summary = "list consumers: what they do and what they hold",
    .details =
        "A line for each consumer of each group, also for those that lost their connection and may come "
        "back. A name that is not known is shown as ?: the consumer gave none, or it is away since before "
        "the "
        "server was started; then a list by its name finds it. "
        "States are active; stopping: it gets no more "
        "messages and finishes those that it holds; drained: it holds nothing; away: it is not connected. "
        "The removal cost is 1000 for each message that the consumer has begun (that it holds, if it never "
        "says what it begins), and 1 for each other one. CHEAPEST marks the active consumer of each group "
        "with the lowest, also when only some of them are listed. "
        "With --json an object on each line.\n",
    .examples = "Those of a version that is to be replaced:\n"
                "  sluice consumer list --label version=42\n"
                "Who is to go first when there are to be fewer:\n"
                "  sluice consumer list --json | jq -r 'select(.cheapest_to_remove).name'\n",
};

const sl_command sl_command_consumer_show = {
    .name = "consumer show",
    .bit = SL_COMMAND_CONSUMER_SHOW,
    .words = "NAME",
    .words_min = 1,
    .words_max = 1,
    .run = run_show,
    .summary = "show a consumer, and whether it is safe to terminate it",
    .details = "A process may be ended when all its consumers are safe to terminate: they are drained, hold "
               "nothing, and that is "
               "durable. The exit code says it too.\n",
    .examples = "In a script:\n"
                "  sluice consumer show billing-7 && kill $PID\n",
    .exits = "0 safe to terminate\n"
             "1 it did not work, or there is no such consumer\n" SL_EXITS_USAGE
             "4 not safe: it gets messages, or holds some\n",
};

const sl_command sl_command_consumer_drains = {
    .name = "consumer drains",
    .bit = SL_COMMAND_CONSUMER_DRAINS,
    .words = "",
    .run = run_drains,
    .summary = "list what became of consumers that were stopped",
    .details = "A line for each of the last 1,000 consumers that stopped since the server was started, the "
               "newest first: who asked it to, how long it took "
               "until its "
               "last message was settled, and how many messages it settled, handed back (released; of these "
               "interrupted after they were begun) or lost since. The "
               "outcome is "
               "drained; left: it went before that; away: it lost its connection and did not come back; or "
               "dropped: its group was changed, was deleted or failed.\n",
    .examples = "Did the last deploy lose anything?\n"
                "  sluice consumer drains --stream orders --json\n",
};

/* cli/consumer_stop.c — `sluice consumer stop` and `resume`.
 *
 *      ask --> progress, as it comes --> done, or the wait is over
 *       ^                                      |
 *       +------ connection lost, time left ----+
 *
 * Stop is what an orchestrator runs before it ends a process, at moments when servers are restarted too. So with --wait a server
 * that is down, starts or stops is not the end, neither at first nor later: the question can be asked twice, and is, with the time
 * that is left.
 *
 * A server that was restarted knows nobody until they connect again. Its "nobody is there" is then no answer to whether those who were
 * not drained are: they are waited for. */
#include "cli/consumer_command.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/client_session.h"
#include "cli/consumer_who.h"
#include "cli/fields.h"
#include "cli/group_call.h"
#include "cli/print.h"

#define MILLISECOND_NS UINT64_C(1000000)

enum {
    AGAIN_MS = 250,          /* between two attempts */
    ANSWER_BYTES = 64 * 1024 /* four numbers need far less */
};

typedef struct stopping {
    sl_session *session;
    sl_wire_stop_request request;
    uint64_t timeout_ns; /* for the server to answer, besides the wait */
    uint64_t until_ns;   /* the end of the wait */
    sl_wire_stop_progress progress;
    bool has_progress; /* an answer came */
    bool has_said;     /* that it tries again */
    uint32_t missing;  /* so many were not drained when the connection was lost */
    sl_arena arena;    /* of one answer */
    sl_err err;
    const char *malformed;
    bool is_terminal, is_shown; /* progress stands on the terminal and is written over */
    bool was_told;              /* of these: */
    sl_wire_stop_progress told;
    sl_timer timer;
    bool is_due;
} stopping;

/* --- progress --- */

static bool is_news(const stopping *s)
{
    const sl_wire_stop_progress *const now = &s->progress, *const before = &s->told;

    return !s->was_told || now->meant != before->meant || now->drained != before->drained ||
           now->in_flight != before->in_flight || now->went_away != before->went_away;
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* The server counts who is gone among the drained, because there is nobody left to wait for. It did not drain, though. */
static void print_figures(FILE *err, const sl_wire_stop_progress *now)
{
    fprintf(err, "%" PRIu32 " of %" PRIu32 " drained", now->drained - now->went_away, now->meant);
    if (now->went_away > 0)
        fprintf(err, ", %" PRIu32 " gone with %" PRIu32 " message%s in flight", now->went_away, now->lost,
                plural(now->lost));
    if (now->went_away == 0 || now->in_flight > 0)
        fprintf(err, ", %" PRIu32 " message%s %s", now->in_flight, plural(now->in_flight),
                now->went_away == 0 ? "in flight" : "still held");
}

static void print_progress(stopping *s)
{
    FILE *const err = s->session->invocation->err;

    if (s->request.wait_ms == 0 || s->progress.meant == 0 || !is_news(s))
        return;
    s->told = s->progress;
    s->was_told = true;
    fputs(s->is_terminal ? "\r\033[K" : "sluice: ", err);
    print_figures(err, &s->progress);
    fputs(s->is_terminal ? "" : "\n", err);
    fflush(err);
    s->is_shown = s->is_terminal;
}

static void clear_progress(stopping *s)
{
    if (s->is_shown)
        fputs("\r\033[K", s->session->invocation->err);
    s->is_shown = false;
}

static void on_progress(void *ctx, sl_str message)
{
    stopping *s = ctx;
    sl_wire_stop_progress progress;

    if (s->err != SL_OK)
        return;
    sl_arena_reset(&s->arena);
    s->err = sl_wire_stop_progress_decode(message, &s->arena, &progress, &s->malformed);
    if (s->err != SL_OK)
        return;
    progress.went_away = progress.went_away > progress.drained ? progress.drained : progress.went_away;
    s->progress = progress;
    s->has_progress = true;
    print_progress(s);
}

/* --- asking --- */

static uint32_t left_ms(const stopping *s)
{
    const uint64_t now_ns = sl_loop_now_ns(s->session->loop);

    return now_ns >= s->until_ns ? 0 : (uint32_t)((s->until_ns - now_ns) / MILLISECOND_NS);
}

/* SL_EXIT_OK: there is an answer, to be ended. */
static int ask_once(stopping *s, sl_client_answer *ret_answer)
{
    sl_str message;
    const sl_session_call call = { .path = "/" SL_OPERATORS_SERVICE "/Stop",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_progress,
                                   .ctx = s };

    sl_arena_reset(&s->session->arena);
    if (sl_wire_stop_request_encode(&s->request, &s->session->arena, &message) != SL_OK)
        return sl_group_fail_encode(s->session);
    s->session->timeout_ns = s->timeout_ns + s->request.wait_ms * MILLISECOND_NS;
    return sl_session_try(s->session, &call, ret_answer);
}

static void on_due(void *ctx)
{
    ((stopping *)ctx)->is_due = true;
}

static void pause_a_little(stopping *s)
{
    s->is_due = false;
    sl_timer_set(&s->timer, sl_loop_now_ns(s->session->loop) + AGAIN_MS * MILLISECOND_NS);
    sl_client_turn_until(s->session->client, &s->is_due, &s->session->interrupted);
    sl_timer_stop(&s->timer);
}

/* A server that stops takes no more calls on a connection that it has not closed yet. */
static void leave_connection(stopping *s)
{
    if (!sl_client_is_idle(s->session->client))
        sl_client_shutdown(s->session->client);
    do
        pause_a_little(s);
    while (!sl_client_is_idle(s->session->client) && !s->session->interrupted && left_ms(s) > AGAIN_MS);
}

/* Somebody else may have guessed passwords from the same address; the server will look at ours again in a moment. */
static bool is_throttled(const sl_client_answer *answer)
{
    return answer->status == SL_STATUS_UNAUTHENTICATED &&
           sl_str_starts_with(sl_str_from(answer->message), SL_STR("Too many "));
}

static bool is_passing(const sl_client_answer *answer)
{
    return answer->kind == SL_CALL_CONNECTION_LOST || answer->kind == SL_CALL_PEER_CANCELLED ||
           answer->status == SL_STATUS_UNAVAILABLE || is_throttled(answer);
}

/* However long somebody waits, there will be no other server. */
static bool is_for_good(const sl_client_end *end)
{
    return end->net == SL_NET_END_CERTIFICATE || end->net == SL_NET_END_CERTIFICATE_NAME ||
           end->wire == SL_END_NOT_HTTP2;
}

static uint32_t undrained(const sl_wire_stop_progress *progress)
{
    return progress->meant > progress->drained ? progress->meant - progress->drained : 0;
}

/* All who were not drained before have come back, and are now. */
static bool is_done(const stopping *s)
{
    return s->progress.done && s->progress.meant >= s->missing;
}

/* There is time, and the answer is none yet. */
static bool may_go_on(const stopping *s, const sl_client_answer *answer)
{
    if (s->err != SL_OK || s->session->interrupted || left_ms(s) <= AGAIN_MS)
        return false;
    if (answer->status == SL_STATUS_OK)
        return s->has_progress && s->progress.done && !is_done(s);
    return is_passing(answer) && !is_for_good(&s->session->last_end);
}

static void note_loss(stopping *s)
{
    if (!s->has_said)
        sl_print_complaint(s->session->invocation->err,
                           s->has_progress
                               ? "lost the connection while waiting; trying again."
                               : "the server cannot be asked yet; trying again until the wait is over.");
    s->has_said = true;
    if (undrained(&s->progress) > s->missing)
        s->missing = undrained(&s->progress);
}

/* The last answer, after as many lost connections as there is time for. */
static int ask_until_over(stopping *s, sl_client_answer *ret_answer)
{
    int code = ask_once(s, ret_answer);

    while (code == SL_EXIT_OK && may_go_on(s, ret_answer)) {
        const bool is_lost = is_passing(ret_answer);

        clear_progress(s);
        sl_client_answer_done(ret_answer);
        if (is_lost) {
            note_loss(s);
            leave_connection(s);
        } else {
            pause_a_little(s);
        }
        s->request.wait_ms = left_ms(s) > 0 ? left_ms(s) : 1;
        code = ask_once(s, ret_answer);
    }
    return code;
}

/* --- the answer --- */

static void print_json(const stopping *s)
{
    FILE *const out = s->session->invocation->out;
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_number(&fields, "meant", s->progress.meant);
    sl_field_number(&fields, "drained", s->progress.drained);
    sl_field_number(&fields, "in_flight", s->progress.in_flight);
    sl_field_number(&fields, "went_away", s->progress.went_away);
    sl_field_number(&fields, "lost", s->progress.lost);
    sl_field_number(&fields, "unlabelled", s->progress.unlabelled);
    sl_field_number(&fields, "rules", s->progress.rules);
    sl_field_bool(&fields, "done", is_done(s));
    fputs("}\n", out);
}

static void print_lines(const stopping *s)
{
    FILE *const out = s->session->invocation->out;
    const sl_wire_stop_progress *const p = &s->progress;

    if (p->meant == 0 && s->missing == 0)
        fputs("no such consumer is there: nothing to wait for\n", out);
    else if (is_done(s) && p->went_away > 0)
        fprintf(out,
                "gone: %" PRIu32 " drained, %" PRIu32 " went away with %" PRIu32 " message%s in flight\n",
                p->drained - p->went_away, p->went_away, p->lost, plural(p->lost));
    else if (is_done(s))
        fprintf(out, "drained: %" PRIu32 " consumer%s, safe to terminate\n", p->drained, plural(p->drained));
    else
        fprintf(out,
                "asked %" PRIu32 " consumer%s to stop: %" PRIu32 " drained, %" PRIu32
                " message%s in flight\n",
                p->meant, plural(p->meant), p->drained, p->in_flight, plural(p->in_flight));
    if (p->unlabelled > 0)
        fprintf(out,
                "%" PRIu32 " of them %s there since before the server was started: whether the label is "
                "theirs is not known\n",
                p->unlabelled, p->unlabelled == 1 ? "is" : "are");
    sl_consumer_print_newcomers(out, &s->request.who, p->rules, s->request.once);
}

/* When the wait has ended before. */
static int complain_held(const stopping *s)
{
    const uint32_t meant = s->progress.meant > s->missing ? s->progress.meant : s->missing;
    const uint32_t rest = is_done(s) || s->progress.meant == 0 ? meant : undrained(&s->progress);
    char wait[64], sentence[SL_SESSION_SENTENCE_BYTES];
    sl_text text;

    sl_text_init(&text, wait, sizeof wait);
    sl_text_add_duration(&text, s->session->invocation->values[SL_OPT_WAIT].number);
    snprintf(sentence, sizeof sentence,
             "after %s %" PRIu32 " of %" PRIu32 " consumers %s not drained. What %s finished before the end "
             "of the process is kept, the rest goes to others later; ask again to wait longer, or take it "
             "back with 'sluice consumer resume'.",
             wait, rest, meant, rest == 1 ? "is" : "are", rest == 1 ? "it has" : "they have");
    sl_print_complaint(s->session->invocation->err, sentence);
    return SL_EXIT_HELD;
}

static int finish(stopping *s)
{
    (s->session->invocation->json ? print_json : print_lines)(s);
    if (s->session->invocation->values[SL_OPT_WAIT].source == SL_OPTION_UNSET)
        return SL_EXIT_OK;
    if (!is_done(s))
        return complain_held(s);
    return s->progress.went_away > 0 ? SL_EXIT_HELD : SL_EXIT_OK;
}

static int judge(stopping *s, const sl_client_answer *answer)
{
    if (s->err != SL_OK)
        return sl_group_fail_answer(s->session, s->err, s->malformed);
    if (s->session->interrupted && s->has_progress)
        return sl_session_failf(s->session,
                                "interrupted. The consumers are asked to stop all the same; 'sluice consumer "
                                "resume' takes it back");
    if (answer->status != SL_STATUS_OK)
        return sl_session_fail_answer(s->session, answer);
    return s->has_progress ? finish(s) : sl_session_failf(s->session, "the server gave no answer");
}

static int stop(stopping *s)
{
    sl_session *const session = s->session;
    sl_client_answer answer;
    int code = sl_session_begin(session);

    if (code != SL_EXIT_OK)
        return code;
    s->is_terminal = isatty(fileno(session->invocation->err)) != 0;
    s->timeout_ns = session->timeout_ns;
    s->until_ns = sl_loop_now_ns(session->loop) + s->request.wait_ms * MILLISECOND_NS;
    sl_timer_init(&s->timer, session->loop, on_due, s);
    code = ask_until_over(s, &answer);
    clear_progress(s);
    if (code != SL_EXIT_OK)
        return code;
    code = judge(s, &answer);
    sl_client_answer_done(&answer);
    return code;
}

static uint32_t milliseconds(const sl_option_value *value)
{
    const uint64_t ms = (value->number + MILLISECOND_NS - 1) / MILLISECOND_NS;

    return value->source == SL_OPTION_UNSET ? 0 : (uint32_t)ms; /* at most a day */
}

/* A name is that of a process, which will end: a rule for it would only be in the way of the next one that has this name, and a group
 * can have few rules. A label or a group means everyone who fits. */
static bool is_once(const sl_invocation *invocation)
{
    const sl_option_value *const newcomers = &invocation->values[SL_OPT_NEWCOMERS];

    return newcomers->source == SL_OPTION_UNSET ? invocation->word_count > 0 : newcomers->number == 0;
}

static int run_stop(const sl_invocation *invocation)
{
    const sl_option_value *const values = invocation->values;
    const sl_arena_sizes sizes = { .chunk_bytes = ANSWER_BYTES, .limit_bytes = ANSWER_BYTES };
    sl_session session = { 0 };
    stopping s = { .session = &session,
                   .request = { .reason = sl_str_from(values[SL_OPT_REASON].text),
                                .deadline_ms = milliseconds(&values[SL_OPT_DEADLINE]),
                                .wait_ms = milliseconds(&values[SL_OPT_WAIT]),
                                .hand_back_unstarted = values[SL_OPT_HAND_BACK].number != 0,
                                .once = is_once(invocation) } };
    int code = sl_consumer_who_named(invocation, &s.request.who);

    sl_arena_init(&s.arena, &sl_alloc_default, sizes);
    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = stop(&s);
    sl_session_close(&session);
    sl_arena_done(&s.arena);
    return code;
}

/* --- resume --- */

typedef struct resuming {
    sl_session *session;
    sl_wire_resume_answer answer;
    sl_err err;
    const char *malformed;
} resuming;

static void on_resumed(void *ctx, sl_str message)
{
    resuming *r = ctx;

    r->err = sl_wire_resume_answer_decode(message, &r->session->arena, &r->answer, &r->malformed);
}

/* A stop by NAME alone makes none, so then nobody misses it. */
static void print_rule_taken_back(FILE *out, const sl_wire_resume_answer *answer, bool is_expected)
{
    if (answer->rules == 1)
        fputs("took back the rule; ", out);
    else if (answer->rules > 1)
        fprintf(out, "took back the rule in %" PRIu32 " groups; ", answer->rules);
    else if (is_expected || (answer->resumed == 0 && answer->too_late == 0))
        fputs("there was no such rule; ", out);
}

static void print_resumed(const sl_invocation *invocation, const sl_wire_resume_answer *answer)
{
    sl_fields fields = { .out = invocation->out, .json = true };

    if (invocation->json) {
        fputc('{', invocation->out);
        sl_field_number(&fields, "resumed", answer->resumed);
        sl_field_number(&fields, "too_late", answer->too_late);
        sl_field_number(&fields, "rules", answer->rules);
        fputs("}\n", invocation->out);
        return;
    }
    print_rule_taken_back(invocation->out, answer, invocation->word_count == 0);
    fprintf(invocation->out, "resumed %" PRIu32 " consumer%s", answer->resumed, plural(answer->resumed));
    if (answer->too_late > 0)
        fprintf(invocation->out, "; %" PRIu32 " %s drained or leaving already: restart %s", answer->too_late,
                answer->too_late == 1 ? "was" : "were", answer->too_late == 1 ? "it" : "them");
    fputc('\n', invocation->out);
}

static int resume(sl_session *session, const sl_wire_who *who)
{
    resuming r = { .session = session };
    sl_str message;
    const sl_session_call call = { .path = "/" SL_OPERATORS_SERVICE "/Resume",
                                   .messages = &message,
                                   .message_count = 1,
                                   .on_message = on_resumed,
                                   .ctx = &r };
    int code;

    if (sl_wire_resume_request_encode(who, &session->arena, &message) != SL_OK)
        return sl_group_fail_encode(session);
    code = sl_session_ask(session, &call);
    if (code == SL_EXIT_OK)
        code = sl_group_fail_answer(session, r.err, r.malformed);
    if (code != SL_EXIT_OK)
        return code;
    print_resumed(session->invocation, &r.answer);
    return r.answer.too_late > 0 && r.answer.rules == 0 ? SL_EXIT_HELD : SL_EXIT_OK;
}

static int run_resume(const sl_invocation *invocation)
{
    sl_session session = { 0 };
    sl_wire_who who;
    int code = sl_consumer_who_named(invocation, &who);

    if (code == SL_EXIT_OK)
        code = sl_session_open(&session, invocation);
    if (code == SL_EXIT_OK)
        code = resume(&session, &who);
    sl_session_close(&session);
    return code;
}

/* --- rows --- */

static const char stop_details[] =
    "Asks everybody who is meant to stop: they get no more messages, finish those that they hold, and are "
    "drained when all of these are "
    "settled and that is durable. Who is meant is said by NAME, --label, --stream and --group; everything "
    "that "
    "is given must fit. A stop by NAME is for processes that are there: the next one under that name joins "
    "and "
    "gets messages. Without a NAME whoever joins later and fits is stopped too, until consumer resume. "
    "--newcomers says it otherwise. The last lines of the output say whether newcomers are stopped, and the "
    "command that takes it back; group info shows it too.\n\n"
    "--hand-back asks consumers to give back what they have not begun, so that others get it at once. It is "
    "a "
    "wish: only a consumer knows what it has begun, and a client that does not know the wish finishes what "
    "it "
    "holds.\n\n"
    "With --wait the command returns when everybody is drained, and shows progress on the error output. That "
    "is the pre-stop command for "
    "an orchestrator: for programs that do not drain by themselves, give it a few seconds less than the "
    "grace period; for sluice work see what its --explain prints. When no such consumer is there it "
    "says so and returns 0: there is nothing to "
    "wait for. When the server is down, or goes while it waits, it tries again until the wait is over.\n\n"
    "Without --wait it asks and returns at once.\n";

const sl_command sl_command_consumer_stop = {
    .name = "consumer stop",
    .bit = SL_COMMAND_CONSUMER_STOP,
    .words = "[NAME]",
    .words_min = 0,
    .words_max = 1,
    .run = run_stop,
    .summary = "stop consumers before a deploy, and wait until they are drained",
    .details = stop_details,
    .examples = "Before a pod is ended, and a whole version:\n"
                "  sluice consumer stop $HOSTNAME --wait 25s\n"
                "  sluice consumer stop --label version=42 --wait 5m --reason deploy\n",
    .exits = "0 everybody is drained, or nobody was there; without --wait: asked\n"
             "1 it did not work\n" SL_EXITS_USAGE "4 asked, but somebody was not drained when the "
             "wait ended, or went away with messages\n",
};

const sl_command sl_command_consumer_resume = {
    .name = "consumer resume",
    .bit = SL_COMMAND_CONSUMER_RESUME,
    .words = "[NAME]",
    .words_min = 0,
    .words_max = 1,
    .run = run_resume,
    .summary = "take back a stop",
    .details =
        "Consumers that were stopped by an operator and are not drained yet get messages again, and those "
        "that "
        "join later are not stopped any more; it says whether there was such a rule. One that is drained, or "
        "leaves by itself as 'sluice work' does, has to be restarted. Say the same as to stop.\n",
    .examples = "The deploy is called off:\n"
                "  sluice consumer resume --label version=42\n",
    .exits = "0 done, also when there was nothing to take back\n"
             "1 it did not work, or there is no such group\n" SL_EXITS_USAGE
             "4 somebody is drained or leaving already, and there was no rule to take back: restart it\n",
};

/* cli/group_watch.c — `sluice group watch`: looks again and again, and says what has changed.
 *
 * What is shown is made as a text first and compared with the one before, so "changed" means that a reader would see a difference. The
 * first look has to succeed; later a server that restarts is waited for. */
#include "cli/group_command.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/group_call.h"
#include "cli/group_print.h"
#include "cli/print.h"

enum {
    TIME_BYTES = 40
};

typedef struct watching {
    sl_session *session;
    sl_wire_group_name name;
    bool is_terminal;
    char *last; /* what was shown; NULL: nothing yet */
    sl_timer timer;
    bool is_due;
    bool is_lost; /* and that was said */
} watching;

/* --- showing --- */

/* To be freed; NULL without memory. */
static char *make_text(const watching *w, const sl_wire_group_info *info)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const into = open_memstream(&text, &bytes);
    sl_fields fields = { .out = into, .json = true };

    if (into == NULL)
        return NULL;
    if (w->session->invocation->json)
        sl_group_print_json(&fields, info);
    else
        sl_group_print_figures(into, info);
    if (fclose(into) == 0)
        return text;
    free(text);
    return NULL;
}

static void format_now(char buffer[static TIME_BYTES])
{
    struct timespec now;
    sl_text text;

    clock_gettime(CLOCK_REALTIME, &now);
    sl_text_init(&text, buffer, TIME_BYTES);
    sl_text_add_time(&text, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

static void print_text(const watching *w, const char *text)
{
    FILE *const out = w->session->invocation->out;
    char now[TIME_BYTES];

    format_now(now);
    if (w->session->invocation->json) {
        fprintf(out, "{\"time\": \"%s\", %s}\n", now, text);
    } else if (w->is_terminal) {
        fprintf(out, "\r\033[K%s  ", now); /* over what stands there */
        sl_print_safe(out, sl_str_from(text), sl_print_columns(out) - strlen(now) - 3);
    } else {
        fprintf(out, "%s  %s\n", now, text);
    }
    fflush(out);
}

static int show(watching *w, const sl_wire_group_info *info)
{
    char *const text = make_text(w, info);

    if (text == NULL)
        return sl_group_fail_encode(w->session);
    if (w->last == NULL || strcmp(w->last, text) != 0)
        print_text(w, text);
    free(w->last);
    w->last = text;
    return SL_EXIT_OK;
}

/* --- looking --- */

static void end_line(const watching *w)
{
    if (w->is_terminal && w->last != NULL && !w->session->invocation->json)
        fputc('\n', w->session->invocation->out);
}

static bool is_passing(const sl_client_answer *answer)
{
    return answer->kind == SL_CALL_CONNECTION_LOST || answer->kind == SL_CALL_DEADLINE ||
           answer->status == SL_STATUS_UNAVAILABLE;
}

static void say_lost(watching *w, const sl_client_answer *answer)
{
    char sentence[SL_CLIENT_ANSWER_TEXT_BYTES + 64];

    if (w->is_lost)
        return;
    end_line(w);
    snprintf(sentence, sizeof sentence, "%s; trying again.",
             answer->kind == SL_CALL_DEADLINE ? "the server does not answer" : answer->message);
    sl_print_complaint(w->session->invocation->err, sentence);
    w->is_lost = true;
}

static int look(watching *w)
{
    sl_wire_group_info info;
    sl_client_answer answer;
    int code;

    sl_arena_reset(&w->session->arena);
    code = sl_group_try_look(w->session, &w->name, &answer, &info);
    if (code != SL_EXIT_OK)
        return code;
    if (answer.status == SL_STATUS_OK) {
        w->is_lost = false;
        code = show(w, &info);
    } else if (w->session->interrupted) {
        code = SL_EXIT_OK;
    } else if (w->last != NULL && is_passing(&answer)) {
        say_lost(w, &answer);
    } else {
        end_line(w);
        code = sl_session_fail_answer(w->session, &answer);
    }
    sl_client_answer_done(&answer);
    return code;
}

static void on_due(void *ctx)
{
    ((watching *)ctx)->is_due = true;
}

static void wait_a_little(watching *w)
{
    sl_session *const session = w->session;

    w->is_due = false;
    sl_timer_set(&w->timer,
                 sl_loop_now_ns(session->loop) + session->invocation->values[SL_OPT_INTERVAL].number);
    sl_client_turn_until(session->client, &w->is_due, &session->interrupted);
    sl_timer_stop(&w->timer);
}

static int watch(watching *w)
{
    int code = sl_session_begin(w->session);

    sl_timer_init(&w->timer, w->session->loop, on_due, w);
    while (code == SL_EXIT_OK && !w->session->interrupted && !ferror(w->session->invocation->out)) {
        code = look(w);
        if (code == SL_EXIT_OK && !w->session->interrupted)
            wait_a_little(w);
    }
    if (code == SL_EXIT_OK)
        end_line(w);
    free(w->last);
    return code;
}

static int run_watch(const sl_invocation *invocation)
{
    sl_session session = { 0 };
    watching w = { .session = &session,
                   .name = sl_group_name_of(invocation),
                   .is_terminal = isatty(fileno(invocation->out)) != 0 };
    int code = sl_session_open(&session, invocation);

    if (code == SL_EXIT_OK)
        code = watch(&w);
    sl_session_close(&session);
    return code;
}

const sl_command sl_command_group_watch = {
    .name = "group watch",
    .bit = SL_COMMAND_GROUP_WATCH,
    .words = "STREAM GROUP",
    .words_min = 2,
    .words_max = 2,
    .run = run_watch,
    .summary = "show the figures of a group whenever they change",
    .details =
        "Looks at the group once each --interval. On a terminal the line is written over; elsewhere "
        "there is a new line whenever "
        "something has changed, with --json an object with everything that group info knows. It goes on "
        "until Ctrl-C, also while the "
        "server restarts, and ends when the group is deleted.\n",
    .examples = "Five times a second, for a program:\n"
                "  sluice group watch orders billing --interval 200ms --json\n",
    .exits = "0 ended by Ctrl-C\n"
             "1 it did not work, or there is no such group any more\n" SL_EXITS_USAGE,
};

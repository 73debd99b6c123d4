/* cli/work_command.c — see work_command.h.
 *
 *      options, file --> members (work_members.c) --explain--> what would happen (work_explain.c)
 *                            |
 *                            +--> files (work_files.c) --> crew (src/worker/crew.h), which makes each worker by work_make.c --> exit code */
#include "cli/work_command.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/log_sink.h"
#include "cli/print.h"
#include "cli/serve_command.h"
#include "cli/work_explain.h"
#include "cli/work_files.h"
#include "cli/work_make.h"
#include "cli/work_members.h"
#include "net/process.h"

enum {
    PROBLEM_BYTES = 2048,
    SENTENCE_BYTES = SL_COMPLAINT_BYTES + SL_WORKER_NAME_BYTES_MAX + 16
};

/* --- what is worth a word --- */

typedef struct warning {
    const sl_invocation *invocation;
    const char *name; /* NULL: there is only one */
} warning;

static void warn(void *ctx, const char *sentence)
{
    const warning *const w = ctx;
    char text[SENTENCE_BYTES];

    snprintf(text, sizeof text, "%s%s%s", w->name == NULL ? "" : w->name, w->name == NULL ? "" : ": ",
             sentence);
    sl_print_complaint(w->invocation->err, text);
}

static void warn_about_passwords(const sl_invocation *invocation)
{
    static const sl_option_id places[] = { SL_OPT_WORK_FROM, SL_OPT_WORK_HTTP, SL_OPT_WORK_APPEND };
    char text[SENTENCE_BYTES];

    for (size_t i = 0; i < SL_COUNT_OF(places); i++) {
        const sl_option_value *const value = &invocation->values[places[i]];
        if (value->source != SL_OPTION_FROM_COMMAND_LINE ||
            strcmp(sl_address_without_password(value->text).text, value->text) == 0)
            continue;
        snprintf(text, sizeof text,
                 "Note: other users of this machine can see the password in --%s; put it into %s or a file "
                 "instead.",
                 sl_options[places[i]].name, sl_options[places[i]].environment);
        sl_print_complaint(invocation->err, text);
    }
}

static void warn_about(const sl_invocation *invocation, const sl_work_members *members)
{
    warn_about_passwords(invocation);
    for (size_t i = 0; i < members->count; i++) {
        warning w = { .invocation = invocation,
                      .name = members->count == 1 ? NULL : members->all[i].plan.name };
        sl_work_plan_warn(members->all[i].values, &members->all[i].plan, warn, &w);
    }
}

/* --- running --- */

typedef struct running {
    const sl_invocation *invocation;
    size_t worker_count;
    sl_crew_cause cause;
    sl_log_sink log;
} running;

static void write_line(void *ctx, const char *line, size_t line_bytes)
{
    sl_log_sink_write(&((running *)ctx)->log, line, line_bytes);
}

/* One line and no more: scripts wait for it. */
static void say_ready(void *ctx, const char *status_address)
{
    const running *const r = ctx;
    FILE *const out = r->invocation->out;
    const bool has_status = status_address[0] != '\0';

    if (!r->invocation->json) {
        fprintf(out, "ready workers=%zu status=%s\n", r->worker_count, has_status ? status_address : "none");
    } else {
        fprintf(out, "{\"ready\":true,\"workers\":%zu,\"status\":", r->worker_count);
        if (has_status)
            sl_print_json_text(out, status_address);
        else
            fputs("null", out);
        fputs("}\n", out);
    }
    (void)fflush(out);
}

static void note_cause(void *ctx, sl_crew_cause cause)
{
    ((running *)ctx)->cause = cause;
}

static int exit_code(sl_crew_end end)
{
    switch (end) {
    case SL_CREW_CLEAN: return SL_EXIT_OK;
    case SL_CREW_BAD_CONFIG: return SL_EXIT_USAGE;
    case SL_CREW_NOT_STARTED: return SL_EXIT_FAILED;
    case SL_CREW_LOST: return SL_EXIT_LOST;
    case SL_CREW_UNCLEAN: return SL_EXIT_UNCLEAN;
    }
    return SL_EXIT_FAILED;
}

/* What can be done about it. A source has said what it knows itself. */
static const char *advice(sl_crew_cause cause, const sl_work_members *members)
{
    bool has_server = false;

    for (size_t i = 0; i < members->count; i++)
        has_server = has_server || members->all[i].plan.source.kind == SL_SOURCE_KIND_CONSUMER;
    switch (cause) {
    case SL_CREW_CAUSE_PORT_TAKEN:
        return " Another process listens there: --status-port N takes another port, 0 any that is free, and "
               "--no-status does without.";
    case SL_CREW_CAUSE_BAD_ADDRESS:
        return " --status-host must be an address of this machine, as 127.0.0.1 and 0.0.0.0 are; ports below "
               "1024 need a right of their own.";
    case SL_CREW_CAUSE_REFUSED:
        return has_server
                   ? " 'sluice group list' shows the groups that there are, 'sluice group create' makes "
                     "one, and --user with --password-file says who asks."
                   : "";
    case SL_CREW_CAUSE_AWAY: return has_server ? " --give-up 0 waits for the server." : "";
    case SL_CREW_CAUSE_OTHER: break;
    }
    return "";
}

/* It may have words of a server or of the user in it. */
static void tell_problem(const sl_invocation *invocation, sl_text *problem, const char *what_to_do)
{
    char quoted[4 * PROBLEM_BYTES];

    (void)sl_print_stopped(problem);
    sl_text_add(problem, what_to_do);
    sl_quote_into(quoted, sizeof quoted, problem->data);
    (void)sl_cli_complain(invocation, quoted);
}

static const char unclean[] =
    " The line \"stopped\" of the log has all counts, and --report FILE keeps them.";

static int run_crew(const sl_invocation *invocation, const sl_work_members *members)
{
    const sl_crew_settings settings =
        sl_work_crew_settings(invocation->values, isatty(fileno(invocation->err)) == 1);
    sl_crew_member crew[SL_CREW_MEMBERS_MAX];
    sl_work_maker makers[SL_CREW_MEMBERS_MAX];
    running r = { .invocation = invocation, .worker_count = members->count };
    const sl_crew_hooks hooks = {
        .log_sink = write_line, .on_ready = say_ready, .on_give_up = note_cause, .ctx = &r
    };
    char sentences[PROBLEM_BYTES];
    sl_text problem;
    sl_crew_end end;

    for (size_t i = 0; i < members->count; i++) {
        makers[i] = (sl_work_maker){ &members->all[i].plan, invocation->environment };
        crew[i] = (sl_crew_member){ members->all[i].plan.settings, sl_work_make, &makers[i] };
    }
    sl_serve_ignore_signals();
    (void)
        sl_process_adopt_orphans(); /* without it, what outlives a handler is not found, and nothing else changes */
    sl_text_init(&problem, sentences, sizeof sentences);
    sl_log_sink_begin(&r.log, invocation->err, settings.log_format);
    end = sl_crew_run(&settings, crew, members->count, &hooks, &problem);
    sl_log_sink_end(&r.log);
    if (end != SL_CREW_CLEAN)
        tell_problem(invocation, &problem, end == SL_CREW_UNCLEAN ? unclean : advice(r.cause, members));
    return exit_code(end);
}

/* Looking at files is left to the run: --explain is also asked on machines that have none of them. */
static int check_and_run(const sl_invocation *invocation, const sl_work_members *members)
{
    char sentence[PROBLEM_BYTES], quoted[4 * PROBLEM_BYTES];
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, sentence, sizeof sentence);
    err = sl_work_files_check(invocation, members, &problem);
    if (err == SL_OK)
        return run_crew(invocation, members);
    sl_quote_into(quoted, sizeof quoted, sl_print_stopped(&problem));
    (void)sl_cli_complain(invocation, quoted);
    return err == SL_ERR_IO ? SL_EXIT_FAILED : SL_EXIT_USAGE;
}

/* What comes before the loop listens waits for it: as process 1 of a container a signal that nobody listens to would be gone. */
static void hold_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static int run_work(const sl_invocation *invocation)
{
    const bool is_run = invocation->values[SL_OPT_EXPLAIN].number == 0;
    sl_work_members members = { .count = 0 };
    sl_complaint complaint;
    sl_err err;
    int code = SL_EXIT_OK;

    if (is_run)
        hold_signals();
    err = sl_work_members_read(invocation, &members, &complaint);
    if (err == SL_ERR_NOMEM)
        return sl_cli_fail(invocation, sl_err_text(err));
    if (err != SL_OK)
        return sl_cli_complain(invocation, complaint.text);
    warn_about(invocation, &members);
    if (is_run)
        code = check_and_run(invocation, &members);
    else
        sl_work_explain(invocation, &members);
    sl_work_members_free(&members);
    return code;
}

static const char work_details[] =
    "Takes messages from a source, gives each to a handler in any language, and tells the source how it "
    "went. "
    "--from is the source; the handler is one of --exec (a process for each message), --lines (one that "
    "stays), "
    "--http and --append.\n\n"
    "When it works, one line is printed: \"ready workers=N status=ADDRESS\", with --json the same as an "
    "object. "
    "Everything else is the log, on the error output.\n\n"
    "SIGTERM and SIGINT begin a drain: nothing new is taken, what was not begun is handed back, what was "
    "begun "
    "may finish, the rest is ended and released uncharged, acknowledgements are confirmed. --grace is the "
    "time "
    "that the orchestrator gives for all this; 'sluice budget' explains its parts, and a budget that does "
    "not "
    "fit is refused. A second signal ends the waiting. --explain shows what will happen, with the numbers "
    "for "
    "Kubernetes, systemd and compose.\n\n"
    "Several workers in one process stand in a file, each in a section of its own:\n"
    "  [work]\n"
    "  grace = 30s\n"
    "  [work billing]\n"
    "  from = sluice://localhost:2113/orders/billing\n"
    "  exec = ./charge\n"
    "  [work mail]\n"
    "  from = sluice://localhost:2113/orders/mail\n"
    "  http = http://localhost:8080/mail\n"
    "[work] and the lines before the first section are for all of them. What is about the process, such as "
    "--grace and --status-port, may stand only there or on the command line.\n\n"
    "The status pages are /livez, /readyz, /metrics and /v1/state; POST /v1/drain, from this machine, begins "
    "a drain.\n";

const sl_command sl_command_work = {
    .name = "work",
    .bit = SL_COMMAND_WORK,
    .words = "",
    .words_min = 0,
    .words_max = 0,
    .run = run_work,
    .member = "worker",
    .summary = "run handlers on messages, and stop without losing or repeating one",
    .details = work_details,
    .examples = "A process for each message of a group, eight at a time:\n"
                "  sluice work --from sluice://localhost/orders/billing --exec ./a --slots 8\n"
                "A request each half hour:\n"
                "  sluice work --from schedule:every=30m --http http://localhost:8080/poll\n"
                "Several workers, and what a deploy will do to them:\n"
                "  sluice work -c workers.ini --explain\n",
    .exits =
        "0 it ended as asked, and nothing was left behind\n"
        "1 it could not start: the status port is taken, or a file cannot be read or written\n" SL_EXITS_USAGE
        "5 it ended as asked, but a drain timed out or left something behind\n"
        "6 a source refused it, or was lost for good\n",
};

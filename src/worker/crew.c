/* worker/crew.c — the life of a crew: see crew.h, and crew_private.h for how the files share the work.
 *
 * The way out is always the same. Whoever wants it (a signal, an operator, a start that failed, a source that is lost too often)
 * calls sl_crew_begin_drain(); each member ends by itself within its budget, or is left behind at its limit; when all have ended the loop
 * stops, and what is left is done in order: pages, report, last line. */
#include "worker/crew_private.h"

#include "base/cleanup.h"
#include "worker/report.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

enum {
    SIGNAL_REPEAT_MS = 250
};

/* --- how it ends --- */

/* The first reason stays (S3.2). All members drain side by side (S2.17, S4.16); one that is not there has nothing to drain. */
void sl_crew_begin_drain(sl_crew *crew, sl_drain_reason reason)
{
    if (crew->is_draining)
        return;
    crew->is_draining = true;
    crew->reason = reason;
    crew->drain_began_ns = sl_loop_now_ns(crew->loop);
    sl_crew_tell_draining(crew);
    for (size_t i = 0; i < crew->member_count; i++) {
        sl_member *const member = &crew->members[i];
        if (member->state == SL_MEMBER_WORKING)
            sl_work_stop(member->work, (sl_drain_call){ .reason = reason });
        else
            member->state = SL_MEMBER_ENDED;
    }
    sl_loop_wake(crew->loop);
}

/* The first problem is the one that counts. */
void sl_crew_give_up(sl_crew *crew, sl_crew_failure failure, const char *sentence)
{
    if (crew->end == SL_CREW_CLEAN) {
        crew->end = failure.end;
        sl_crew_keep_problem(crew->problem, sentence);
        if (crew->hooks.on_give_up != NULL)
            crew->hooks.on_give_up(crew->hooks.ctx, failure.cause);
    }
    sl_crew_begin_drain(crew, failure.reason);
}

/* Who signals a process and its group sends the same one twice in a moment: that is no impatience. */
static bool is_the_same_signal(const sl_crew *crew, int signal_number)
{
    return crew->signal_count > 0 && signal_number == crew->signal_first &&
           sl_loop_now_ns(crew->loop) - crew->signalled_ns < SIGNAL_REPEAT_MS * MS_NS;
}

/* Only the second signal says that somebody has no patience; one after an operator's drain, which a pre-stop hook began, is the
 * first one. */
void sl_crew_signalled(sl_crew *crew, int signal_number)
{
    const sl_drain_reason reason = signal_number == SIGINT ? SL_DRAIN_REASON_SIGINT : SL_DRAIN_REASON_SIGTERM;

    if (signal_number == SIGHUP) {
        sl_log(&crew->log, SL_LOG_INFO, "SIGHUP is ignored: there is nothing to read again");
        return;
    }
    if (is_the_same_signal(crew, signal_number))
        return;
    crew->signal_count++;
    if (crew->signal_count == 1) {
        crew->signal_first = signal_number;
        crew->signalled_ns = sl_loop_now_ns(crew->loop);
        sl_crew_begin_drain(crew, reason);
        return;
    }
    sl_log(&crew->log, SL_LOG_WARN, "a second signal: handlers are aborted",
           SL_LOG_STR("signal", sl_drain_reason_name(reason)));
    crew->is_escalated = true;
    for (size_t i = 0; i < crew->member_count; i++)
        if (crew->members[i].state == SL_MEMBER_WORKING)
            sl_work_stop(crew->members[i].work, (sl_drain_call){ .reason = reason, .escalates = true });
    sl_loop_wake(crew->loop);
}

/* --- a turn --- */

static bool have_all_ended(const sl_crew *crew)
{
    for (size_t i = 0; i < crew->member_count; i++)
        if (crew->members[i].state != SL_MEMBER_ENDED)
            return false;
    return true;
}

static bool were_all_up(const sl_crew *crew)
{
    for (size_t i = 0; i < crew->member_count; i++)
        if (!crew->members[i].was_ever_up)
            return false;
    return true;
}

static void on_turn_end(void *ctx)
{
    sl_crew *const crew = ctx;
    const uint64_t now_ns = sl_loop_now_ns(crew->loop);
    uint64_t next_ns = UINT64_MAX;

    if (crew->is_starting || crew->is_over)
        return;
    for (size_t i = 0; i < crew->member_count; i++)
        if (crew->members[i].state == SL_MEMBER_WORKING)
            sl_work_turn_end(crew->members[i].work);
    for (size_t i = 0; i < crew->member_count; i++)
        next_ns = sl_min_u64(next_ns, sl_crew_look_after(&crew->members[i], now_ns));
    sl_timer_set(&crew->timer, next_ns);
    if (!crew->was_ready && !crew->is_draining && were_all_up(crew)) {
        crew->was_ready = true;
        sl_crew_tell_ready(crew);
    }
    if (!have_all_ended(crew))
        return;
    sl_crew_begin_drain(crew, crew->last_reason); /* if nothing began it: they have ended one by one */
    crew->is_over = true;
    sl_loop_stop(crew->loop);
}

static void on_timer(void *ctx)
{
    (void)ctx; /* the end of this turn looks at everything */
}

static void on_signal(void *ctx, int signal_number, uint32_t nth)
{
    (void)nth; /* counts SIGHUP as well */
    sl_crew_signalled(ctx, signal_number);
}

/* --- the start --- */

static const sl_crew_view *on_look(void *ctx)
{
    return sl_crew_look(ctx);
}

static void on_operator(void *ctx)
{
    sl_crew_begin_drain(ctx, SL_DRAIN_REASON_OPERATOR);
}

static void show_address(sl_crew *crew)
{
    const char *const host = crew->pages_owner.host;
    const bool is_bracketed = strchr(host, ':') != NULL && host[0] != '[';
    sl_text text;

    sl_text_init(&text, crew->status_address, sizeof crew->status_address);
    sl_text_add(&text, is_bracketed ? "[" : "");
    sl_text_add(&text, host);
    sl_text_add(&text, is_bracketed ? "]:" : ":");
    sl_text_add_u64(&text, sl_status_pages_port(crew->pages));
}

static void give_up_pages(sl_crew *crew, sl_err err, const char *sentence)
{
    const sl_crew_cause cause = err == SL_ERR_EXISTS    ? SL_CREW_CAUSE_PORT_TAKEN
                                : err == SL_ERR_INVALID ? SL_CREW_CAUSE_BAD_ADDRESS
                                                        : SL_CREW_CAUSE_OTHER;

    sl_crew_give_up(crew, (sl_crew_failure){ SL_CREW_NOT_STARTED, SL_DRAIN_REASON_START_FAILED, cause },
                    sentence);
}

static void open_pages(sl_crew *crew)
{
    const sl_crew_settings *const settings = crew->settings;
    char sentence[SL_CREW_PROBLEM_BYTES];
    sl_text text;
    sl_err err;

    if (settings->status_port < 0)
        return;
    assert(settings->status_port <= UINT16_MAX);
    crew->pages_owner =
        (sl_status_owner){ .look = on_look,
                           .drain = on_operator,
                           .host = settings->status_host == NULL ? "127.0.0.1" : settings->status_host };
    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, "The status pages cannot be shown: port ");
    sl_text_add_u64(&text, (uint64_t)settings->status_port);
    sl_text_add(&text, " of ");
    err = sl_status_pages_new(crew->loop, &crew->pages_owner, crew, (uint16_t)settings->status_port, &text,
                              &crew->pages);
    if (err == SL_OK)
        show_address(crew);
    else
        give_up_pages(crew, err, sentence);
}

static bool is_named_before(const sl_crew *crew, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(crew->members[i].made_of->settings.name, crew->members[index].made_of->settings.name) == 0)
            return true;
    return false;
}

static const char *complaint_about(const sl_crew *crew)
{
    if (crew->member_count == 0)
        return "There is no worker to run: name at least one.";
    for (size_t i = 0; i < crew->member_count; i++) {
        const char *const name = crew->members[i].made_of->settings.name;
        if (name == NULL || name[0] == '\0' || strlen(name) > SL_WORKER_NAME_BYTES_MAX)
            return "Each worker needs a name of 1 to 64 bytes.";
        if (is_named_before(crew, i))
            return "Two workers have the same name: logs, metrics and reports could not tell them apart.";
    }
    return NULL;
}

static void start(sl_crew *crew)
{
    const char *const complaint = complaint_about(crew);

    crew->is_starting = true;
    sl_crew_notify_open(crew);
    if (complaint != NULL) {
        crew->member_count = 0;
        sl_crew_give_up(
            crew, (sl_crew_failure){ SL_CREW_BAD_CONFIG, SL_DRAIN_REASON_START_FAILED, SL_CREW_CAUSE_OTHER },
            complaint);
    } else {
        open_pages(crew);
        sl_crew_tell_start(crew);
    }
    for (size_t i = 0; i < crew->member_count && !crew->is_draining; i++)
        sl_crew_make(&crew->members[i]);
    crew->is_starting = false;
    sl_loop_wake(crew->loop);
}

/* --- the end --- */

static void write_report(sl_crew *crew, const sl_crew_view *view)
{
    char sentence[2 * SL_CREW_PROBLEM_BYTES];
    sl_text text;

    if (crew->settings->report_file == NULL)
        return;
    sl_text_init(&text, sentence, sizeof sentence);
    if (sl_report_write(view, crew->settings->report_file, &text) != SL_OK)
        sl_log(&crew->log, SL_LOG_ERROR, "no report", SL_LOG_STR("problem", sentence));
}

/* Every step can fail without keeping the next from being done (S3.22). */
static void finish(sl_crew *crew)
{
    const sl_crew_view *view;
    sl_text problem;

    sl_timer_stop(&crew->timer);
    sl_status_pages_free(crew->pages);
    crew->pages = NULL;
    view = sl_crew_look(crew);
    crew->end = view->end;
    if (crew->problem[0] == '\0' && crew->end == SL_CREW_UNCLEAN) {
        sl_text_init(&problem, crew->problem, sizeof crew->problem);
        sl_report_explain(view, &problem);
    }
    write_report(crew, view);
    sl_crew_notify_close(crew);
    sl_report_log(view, &crew->log);
}

/* --- the whole --- */

static void drop_line(void *ctx, const char *line, size_t line_bytes)
{
    (void)ctx;
    (void)line;
    (void)line_bytes;
}

static void fill(sl_crew *crew, const sl_crew_member *members, size_t member_count)
{
    crew->log = (sl_logger){ .level_min = crew->settings->log_level,
                             .format = crew->settings->log_format,
                             .clock = sl_loop_clock(crew->loop),
                             .sink = crew->hooks.log_sink == NULL ? drop_line : crew->hooks.log_sink,
                             .sink_ctx = crew->hooks.ctx };
    crew->started_ns = sl_loop_now_ns(crew->loop);
    crew->started_wall_ns = sl_loop_wall_ns(crew->loop);
    crew->member_count = member_count;
    for (size_t i = 0; i < member_count; i++)
        crew->members[i] = (sl_member){ .made_of = &members[i], .crew = crew, .deadline_ns = UINT64_MAX };
    sl_timer_init(&crew->timer, crew->loop, on_timer, crew);
}

static sl_err open_loop(sl_crew *crew)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end, .on_signal = on_signal };
    sl_err err = sl_loop_new(NULL, &handler, crew, &crew->loop);

    if (err == SL_OK)
        err = sl_loop_catch_signals(crew->loop);
    return err;
}

static sl_crew_end run(sl_crew *crew, const sl_crew_member *members, size_t member_count, sl_text *problem)
{
    const sl_err err = open_loop(crew);

    if (err != SL_OK) {
        sl_loop_free(crew->loop);
        sl_text_add(problem, "The workers cannot be started: ");
        sl_text_add(problem, sl_err_text(err));
        return SL_CREW_NOT_STARTED;
    }
    fill(crew, members, member_count);
    start(crew);
    while (!crew->is_over)
        sl_loop_run(crew->loop);
    finish(crew);
    sl_loop_free(crew->loop);
    sl_text_add(problem, crew->problem);
    return crew->end;
}

sl_crew_end sl_crew_run_by(const sl_crew_rules *rules, const sl_crew_settings *settings,
                           const sl_crew_member *members, size_t member_count, const sl_crew_hooks *hooks,
                           sl_text *problem)
{
    sl_crew *crew;
    sl_crew_end end;

    if (member_count > SL_CREW_MEMBERS_MAX) {
        sl_text_add(problem, "One process runs at most 64 workers: start several processes");
        return SL_CREW_BAD_CONFIG;
    }
    crew = sl_alloc_take(&sl_alloc_default, sizeof *crew);
    if (crew == NULL) {
        sl_text_add(problem, "The workers cannot be started: there is not enough memory");
        return SL_CREW_NOT_STARTED;
    }
    memset(crew, 0, sizeof *crew);
    crew->settings = settings;
    crew->rules = *rules;
    crew->rules.restarts_max = settings->restarts_max;
    crew->hooks = *hooks;
    end = run(crew, members, member_count, problem);
    sl_alloc_give(&sl_alloc_default, crew, sizeof *crew);
    return end;
}

sl_crew_end sl_crew_run(const sl_crew_settings *settings, const sl_crew_member *members, size_t member_count,
                        const sl_crew_hooks *hooks, sl_text *problem)
{
    return sl_crew_run_by(&sl_crew_rules_default, settings, members, member_count, hooks, problem);
}

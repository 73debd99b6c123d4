/* worker/crew_tell.c — what people and systemd are told, and when. */
#include "worker/crew_private.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    WORDS_BYTES = 512
};

#define WATCHDOG_LEAST_NS UINT64_C(20000000) /* half of it is how often the loop wakes up for nothing else */

/* --- the log --- */

/* S3.32. */
static void tell_member(const sl_crew *crew, const sl_work_settings *settings)
{
    const sl_budget *const budget = &settings->budget;

    sl_log(&crew->log, SL_LOG_INFO, "worker", SL_LOG_STR("name", settings->name),
           SL_LOG_U64("slots", settings->slots), SL_LOG_DURATION("grace", budget->grace_ns),
           SL_LOG_DURATION("fence", budget->part_ns[SL_BUDGET_FENCE]),
           SL_LOG_DURATION("settle", budget->part_ns[SL_BUDGET_SETTLE]),
           SL_LOG_DURATION("abort", budget->part_ns[SL_BUDGET_ABORT]),
           SL_LOG_DURATION("flush", budget->part_ns[SL_BUDGET_FLUSH]),
           SL_LOG_DURATION("close", budget->part_ns[SL_BUDGET_CLOSE]),
           SL_LOG_DURATION("reserve", budget->part_ns[SL_BUDGET_RESERVE]),
           SL_LOG_DURATION("unused", sl_budget_unused_ns(budget)));
}

void sl_crew_tell_start(const sl_crew *crew)
{
    const char *const status = crew->status_address[0] == '\0' ? "none" : crew->status_address;

    sl_log(&crew->log, SL_LOG_INFO, "starting", SL_LOG_U64("workers", crew->member_count),
           SL_LOG_U64("process_id", (uint64_t)getpid()), SL_LOG_STR("status", status));
    for (size_t i = 0; i < crew->member_count; i++)
        tell_member(crew, &crew->members[i].made_of->settings);
}

/* A drain that ran out of time is never silent (S4.17). */
void sl_crew_tell_retired(const sl_crew *crew, const sl_member *member, const sl_work_counts *counts)
{
    const sl_drain_report *const report = &member->report;
    const bool timed_out = sl_report_timed_out(report);

    sl_log(&crew->log, timed_out || !report->clean ? SL_LOG_WARN : SL_LOG_INFO,
           timed_out ? "a worker has ended, and its drain ran out of time" : "a worker has ended",
           SL_LOG_STR("name", member->made_of->settings.name),
           SL_LOG_STR("reason", sl_drain_reason_name(report->reason)),
           SL_LOG_STR("end", sl_work_end_name(member->end)), SL_LOG_BOOL("clean", report->clean),
           SL_LOG_U64("drained", report->finished), SL_LOG_U64("handed_back", report->handed_back),
           SL_LOG_U64("interrupted", report->interrupted), SL_LOG_U64("abandoned", report->abandoned),
           SL_LOG_U64("acks_unconfirmed", report->acks_unconfirmed),
           SL_LOG_U64("acks_confirmed_late", counts->acks_confirmed_late),
           SL_LOG_DURATION("used", report->used_ns), SL_LOG_DURATION("grace", report->grace_ns),
           SL_LOG_STR("problem", member->problem));
}

/* S3.24. */
void sl_crew_tell_left_behind(const sl_crew *crew, const sl_member *member)
{
    sl_log(&crew->log, SL_LOG_WARN, "a worker has not ended within its limit and is left to itself",
           SL_LOG_STR("name", member->made_of->settings.name),
           SL_LOG_STR("phase", sl_drain_phase_name(sl_work_phase(member->work))),
           SL_LOG_DURATION("limit", member->deadline_ns - member->drain_began_ns));
}

void sl_crew_tell_unmade(const sl_crew *crew, const sl_member *member, sl_err err)
{
    sl_log(&crew->log, SL_LOG_ERROR, "a worker could not be made",
           SL_LOG_STR("name", member->made_of->settings.name), SL_LOG_STR("problem", member->problem),
           SL_LOG_ERR("error", err));
}

/* --- systemd --- */

static void notify(sl_crew *crew, const char *words, const char *status)
{
    char buffer[WORDS_BYTES];
    sl_text text;

    if (crew->notify == NULL)
        return;
    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, words);
    if (status != NULL) {
        sl_text_add(&text, "STATUS=");
        sl_text_add(&text, status);
        sl_text_add(&text, "\n");
    }
    if (sl_notify_send(crew->notify, sl_text_str(&text)) != SL_OK)
        sl_log(&crew->log, SL_LOG_WARN, "systemd could not be told", SL_LOG_STR("words", buffer));
}

void sl_crew_tell_ready(sl_crew *crew)
{
    char buffer[WORDS_BYTES / 2];
    sl_text status;

    sl_log(&crew->log, SL_LOG_INFO, "ready", SL_LOG_U64("workers", crew->member_count),
           SL_LOG_DURATION("after", sl_loop_now_ns(crew->loop) - crew->started_ns));
    sl_text_init(&status, buffer, sizeof buffer);
    sl_text_add_u64(&status, crew->member_count);
    sl_text_add(&status, crew->member_count == 1 ? " worker is up" : " workers are up");
    notify(crew, "READY=1\n", buffer);
    if (crew->hooks.on_ready != NULL)
        crew->hooks.on_ready(crew->hooks.ctx, crew->status_address);
}

void sl_crew_tell_draining(sl_crew *crew)
{
    char buffer[WORDS_BYTES / 2];
    sl_text status;

    sl_log(&crew->log, SL_LOG_INFO, "shutting down", SL_LOG_STR("reason", sl_drain_reason_name(crew->reason)),
           SL_LOG_STR("problem", crew->problem));
    sl_text_init(&status, buffer, sizeof buffer);
    sl_text_add(&status, "draining: ");
    sl_text_add(&status, sl_drain_reason_name(crew->reason));
    notify(crew, "STOPPING=1\n", buffer);
}

/* --- systemd's watchdog: it hears of us as long as the loop turns, also in a drain --- */

static void on_watchdog(void *ctx)
{
    sl_crew *const crew = ctx;

    if (sl_notify_send(crew->notify, SL_STR("WATCHDOG=1\n")) != SL_OK)
        sl_log(&crew->log, SL_LOG_DEBUG, "systemd's watchdog could not be told");
    sl_timer_set(&crew->watchdog, sl_loop_now_ns(crew->loop) + crew->watchdog_ns / 2);
}

/* Without $WATCHDOG_PID everybody is meant, with it only that process: a child of the service that systemd means inherits both. */
static uint64_t watchdog_wish_ns(void)
{
    const char *const wish = getenv("WATCHDOG_USEC"), *const process = getenv("WATCHDOG_PID");
    uint64_t us = 0, id = 0;

    if (wish == NULL || sl_str_parse_u64(sl_str_from(wish), &us) != SL_OK || us > UINT64_MAX / 1000)
        return 0;
    if (process != NULL && (sl_str_parse_u64(sl_str_from(process), &id) != SL_OK || id != (uint64_t)getpid()))
        return 0;
    return us == 0 ? 0 : sl_max_u64(us * 1000, WATCHDOG_LEAST_NS);
}

/* Not to be heard is no reason not to work. */
void sl_crew_notify_open(sl_crew *crew)
{
    const char *const address = getenv("NOTIFY_SOCKET");
    sl_err err;

    sl_timer_init(&crew->watchdog, crew->loop, on_watchdog, crew);
    if (!crew->settings->notify_systemd || address == NULL || address[0] == '\0')
        return;
    err = sl_notify_new(address, &crew->notify);
    if (err != SL_OK) {
        sl_log(&crew->log, SL_LOG_WARN, "systemd will not be told anything: its socket cannot be used",
               SL_LOG_STR("NOTIFY_SOCKET", address), SL_LOG_ERR("error", err));
        return;
    }
    crew->watchdog_ns = watchdog_wish_ns();
    if (crew->watchdog_ns > 0)
        on_watchdog(crew);
}

void sl_crew_notify_close(sl_crew *crew)
{
    sl_timer_stop(&crew->watchdog);
    sl_notify_free(crew->notify);
    crew->notify = NULL;
}

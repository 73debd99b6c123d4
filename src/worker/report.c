/* worker/report.c — see report.h. */
#include "worker/report.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TIME_BYTES = 40,
    REPORT_MODE = 0644
};

/* --- JSON --- */

static void add_phases(sl_jot *jot, cJSON *to, const sl_drain_report *report)
{
    cJSON *const phases = sl_jot_object(jot, to, "phases");

    for (unsigned i = SL_DRAIN_FENCING; i < SL_DRAIN_STOPPED; i++) {
        cJSON *const phase = sl_jot_object(jot, phases, sl_drain_phase_name((sl_drain_phase)i));
        sl_jot_seconds(jot, phase, "used_seconds", report->phases[i].used_ns);
        sl_jot_text(jot, phase, "end", sl_drain_end_name(report->phases[i].end));
        sl_jot_u64(jot, phase, "failed_steps", report->phases[i].failed_steps);
    }
}

void sl_report_add_drain(sl_jot *jot, cJSON *to, const sl_drain_report *report)
{
    sl_jot_text(jot, to, "reason", sl_drain_reason_name(report->reason));
    sl_jot_flag(jot, to, "escalated", report->escalated);
    sl_jot_flag(jot, to, "clean", report->clean);
    sl_jot_flag(jot, to, "timed_out", sl_report_timed_out(report));
    sl_jot_seconds(jot, to, "grace_seconds", report->grace_ns);
    sl_jot_seconds(jot, to, "used_seconds", report->used_ns);
    sl_jot_u64(jot, to, "finished", report->finished);
    sl_jot_u64(jot, to, "handed_back", report->handed_back);
    sl_jot_u64(jot, to, "interrupted", report->interrupted);
    sl_jot_u64(jot, to, "abandoned", report->abandoned);
    sl_jot_u64(jot, to, "acks_unconfirmed", report->acks_unconfirmed);
    sl_jot_u64(jot, to, "failed_steps", report->failed_steps);
    add_phases(jot, to, report);
}

static void add_time(sl_jot *jot, cJSON *to, const char *name, uint64_t wall_ns)
{
    char buffer[TIME_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_time(&text, wall_ns);
    sl_jot_text(jot, to, name, buffer);
}

/* A member that was never there has an end too: nothing was drained (S3.23). */
static const char *member_end(const sl_member_view *member)
{
    if (member->is_left_behind)
        return "left behind";
    return member->has_report ? sl_work_end_name(member->end) : "never started";
}

static void add_member(sl_jot *jot, cJSON *to, const sl_member_view *member)
{
    sl_jot_text(jot, to, "name", member->name);
    sl_jot_text(jot, to, "end", member_end(member));
    sl_jot_text(jot, to, "problem", member->problem);
    sl_jot_u64(jot, to, "restarts", member->restarts);
    sl_jot_u64(jot, to, "drain_timeouts", member->drain_timeouts);
    sl_jot_u64(jot, to, "unsure", member->counts.unsure);
    sl_jot_u64(jot, to, "acks_replayed", member->counts.acks_replayed);
    sl_jot_u64(jot, to, "acks_confirmed_late", member->counts.acks_confirmed_late);
    if (member->has_report)
        sl_report_add_drain(jot, sl_jot_object(jot, to, "drain"), &member->report);
}

static uint64_t acks_confirmed_late(const sl_crew_view *view)
{
    uint64_t late = 0;

    for (size_t i = 0; i < view->member_count; i++)
        late += view->members[i].counts.acks_confirmed_late;
    return late;
}

static void add_process(sl_jot *jot, cJSON *to, const sl_crew_view *view)
{
    const sl_drain_report sum = sl_view_sum(view);

    sl_jot_text(jot, to, "end", sl_crew_end_name(view->end));
    sl_jot_text(jot, to, "problem", view->problem);
    sl_jot_u64(jot, to, "process_id", (uint64_t)getpid());
    add_time(jot, to, "started", view->started_wall_ns);
    add_time(jot, to, "ended", view->now_wall_ns);
    sl_report_add_drain(jot, to, &sum);
    sl_jot_u64(jot, to, "acks_confirmed_late", acks_confirmed_late(view));
}

char *sl_report_text(const sl_crew_view *view)
{
    sl_jot jot = { 0 };
    cJSON *const top = cJSON_CreateObject();
    cJSON *workers;
    char *text = NULL;

    if (top == NULL)
        return NULL;
    add_process(&jot, top, view);
    workers = sl_jot_array(&jot, top, "workers");
    for (size_t i = 0; i < view->member_count; i++)
        add_member(&jot, sl_jot_item(&jot, workers), &view->members[i]);
    if (!jot.failed)
        text = cJSON_Print(top);
    cJSON_Delete(top);
    return text;
}

/* --- the file --- */

static sl_err complain(sl_text *problem, const char *path, const char *call, int number)
{
    sl_text_add(problem, "The report could not be written to ");
    sl_text_add(problem, path);
    sl_text_add(problem, ": ");
    sl_text_add(problem, call);
    sl_text_add(problem, ": ");
    sl_text_add(problem, strerror(number));
    sl_text_add(
        problem,
        ". Nothing else is lost; name a file in a folder that exists, has room and may be written to");
    return number == ENOSPC || number == EDQUOT ? SL_ERR_NO_SPACE : SL_ERR_IO;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            text += written;
            bytes -= (size_t)written;
        }
    }
    return true;
}

typedef struct failure {
    const char *call; /* NULL: none */
    int number;
} failure;

/* Not synced: who reads it does so while the machine runs, and a slow disk must not use up the end of the grace. */
static failure write_file(const char *path, int flags, const char *text)
{
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | flags, REPORT_MODE);
    failure failed = { 0 };

    if (fd < 0)
        return (failure){ "open", errno };
    if (!write_all(fd, text, strlen(text)) || !write_all(fd, "\n", 1))
        failed = (failure){ "write", errno };
    if (close(fd) != 0 && failed.call == NULL)
        failed = (failure){ "close", errno };
    return failed;
}

static failure write_beside(const char *path, const char *beside, const char *text)
{
    failure failed = write_file(beside, O_CREAT | O_NOFOLLOW, text);

    if (failed.call != NULL && strcmp(failed.call, "open") == 0)
        return failed;
    if (failed.call == NULL && rename(beside, path) != 0)
        failed = (failure){ "rename", errno };
    if (failed.call != NULL)
        unlink(beside);
    return failed;
}

/* A file that is mounted by itself (the termination log of a pod), or that stands in a folder that is not ours, can be written, not replaced. */
static bool cannot_be_replaced(const failure *failed)
{
    return failed->number == EBUSY || failed->number == EACCES || failed->number == EPERM ||
           failed->number == EROFS;
}

/* Devices and links, and /dev/stdout, which is a link: a rename would put a file in their place for the whole machine. */
static bool is_no_plain_file(const char *path)
{
    struct stat seen;

    return lstat(path, &seen) == 0 && !S_ISREG(seen.st_mode) && !S_ISDIR(seen.st_mode);
}

static sl_err write_report(const char *path, const char *beside, const char *text, sl_text *problem)
{
    const failure failed =
        is_no_plain_file(path) ? write_file(path, 0, text) : write_beside(path, beside, text);

    if (failed.call == NULL || (cannot_be_replaced(&failed) && write_file(path, 0, text).call == NULL))
        return SL_OK;
    return complain(problem, path, failed.call, failed.number);
}

sl_err sl_report_write(const sl_crew_view *view, const char *path, sl_text *problem)
{
    char beside[PATH_MAX];
    char *const text = sl_report_text(view);
    sl_text name;
    sl_err err;

    if (text == NULL) {
        sl_text_add(problem, "The report could not be written: there is not enough memory");
        return SL_ERR_NOMEM;
    }
    sl_text_init(&name, beside, sizeof beside);
    sl_text_add(&name, path);
    sl_text_add(&name, ".");
    sl_text_add_u64(&name, (uint64_t)getpid()); /* two processes with one report file must not mix theirs */
    sl_text_add(&name, ".tmp");
    err =
        name.cut ? complain(problem, path, "open", ENAMETOOLONG) : write_report(path, beside, text, problem);
    cJSON_free(text);
    return err;
}

/* --- the log --- */

void sl_report_log(const sl_crew_view *view, const sl_logger *log)
{
    const sl_drain_report sum = sl_view_sum(view);
    const sl_log_level level = view->end == SL_CREW_CLEAN ? SL_LOG_INFO : SL_LOG_WARN;

    sl_log(log, level, "stopped", SL_LOG_STR("reason", sl_drain_reason_name(sum.reason)),
           SL_LOG_STR("end", sl_crew_end_name(view->end)), SL_LOG_U64("drained", sum.finished),
           SL_LOG_U64("handed_back", sum.handed_back), SL_LOG_U64("interrupted", sum.interrupted),
           SL_LOG_U64("abandoned", sum.abandoned), SL_LOG_U64("acks_unconfirmed", sum.acks_unconfirmed),
           SL_LOG_U64("acks_confirmed_late", acks_confirmed_late(view)),
           SL_LOG_BOOL("escalated", sum.escalated), SL_LOG_DURATION("grace", sum.grace_ns),
           SL_LOG_DURATION("used", sum.used_ns),
           SL_LOG_DURATION("fencing", sum.phases[SL_DRAIN_FENCING].used_ns),
           SL_LOG_DURATION("settling", sum.phases[SL_DRAIN_SETTLING].used_ns),
           SL_LOG_DURATION("aborting", sum.phases[SL_DRAIN_ABORTING].used_ns),
           SL_LOG_DURATION("flushing", sum.phases[SL_DRAIN_FLUSHING].used_ns),
           SL_LOG_DURATION("closing", sum.phases[SL_DRAIN_CLOSING].used_ns));
}

/* --- the sentence --- */

static void add_count(sl_text *problem, uint64_t count, const char *what)
{
    if (count == 0)
        return;
    sl_text_add(problem, ", ");
    sl_text_add_u64(problem, count);
    sl_text_add(problem, what);
}

/* Which of them, because how many says nothing. */
static void add_failed_steps(sl_text *problem, const sl_drain_report *report)
{
    const char *before = report->failed_steps == 1 ? " failed step (" : " failed steps (";

    if (report->failed_steps == 0)
        return;
    sl_text_add(problem, ", ");
    sl_text_add_u64(problem, report->failed_steps);
    for (unsigned i = SL_DRAIN_FENCING; i < SL_DRAIN_STOPPED; i++) {
        if (report->phases[i].failed_steps == 0)
            continue;
        sl_text_add(problem, before);
        sl_text_add(problem, sl_drain_phase_name((sl_drain_phase)i));
        before = ", ";
    }
    sl_text_add(problem, ")");
}

static void explain_member(const sl_member_view *member, sl_text *problem)
{
    const sl_drain_report *const report = &member->report;

    sl_text_add(problem, problem->bytes == 0 ? "Worker " : "; worker ");
    sl_text_add(problem, member->name);
    sl_text_add(problem, member->is_left_behind        ? " did not end in time and was left behind"
                         : report->escalated           ? " was cut short by a second signal"
                         : sl_report_timed_out(report) ? " did not drain in time"
                                                       : " left something behind");
    add_count(problem, report->handed_back, " handed back");
    add_count(problem, report->interrupted, " interrupted");
    add_count(problem, report->abandoned, " abandoned (others get them when their leases end)");
    add_count(problem, report->acks_unconfirmed, " finished but not confirmed");
    add_failed_steps(problem, report);
}

void sl_report_explain(const sl_crew_view *view, sl_text *problem)
{
    for (size_t i = 0; i < view->member_count; i++) {
        const sl_member_view *const member = &view->members[i];
        if (member->is_left_behind || (member->has_report && !member->report.clean))
            explain_member(member, problem);
    }
}

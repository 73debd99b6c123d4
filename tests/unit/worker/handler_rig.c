/* tests/unit/worker/handler_rig.c — see handler_rig.h. */
#include "worker/handler_rig.h"

#include "base/cleanup.h"
#include "net/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS_NS    UINT64_C(1000000)
#define GUARD_NS (UINT64_C(20) * 1000 * MS_NS)

/* --- what cannot be killed --- */

static bool signals_are_lost;

/* Instead of the system's: nothing that a test can start hangs in a way that it survives SIGKILL. */
int kill(pid_t pid, int signal_number)
{
    return signals_are_lost ? 0 : (int)syscall(SYS_kill, pid, signal_number);
}

void handler_rig_lose_signals(bool are_lost)
{
    signals_are_lost = are_lost;
}

/* --- looking at this process --- */

int handler_rig_count_fds(void)
{
    DIR *fds = opendir("/proc/self/fd");
    int count = -1; /* the folder itself */

    assert_non_null(fds);
    for (const struct dirent *entry = readdir(fds); entry != NULL; entry = readdir(fds))
        count += entry->d_name[0] != '.';
    closedir(fds);
    return count;
}

static int count_children_of(const char *thread)
{
    char path[300];
    long pid;
    int count = 0;

    (void)snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    FILE *children = fopen(path, "r");
    while (children != NULL && fscanf(children, "%ld", &pid) == 1)
        count++;
    if (children != NULL)
        (void)fclose(children);
    return count;
}

int handler_rig_count_children(void)
{
    DIR *threads = opendir("/proc/self/task");
    int count = 0;

    assert_non_null(threads);
    for (const struct dirent *entry = readdir(threads); entry != NULL; entry = readdir(threads))
        count += entry->d_name[0] == '.' ? 0 : count_children_of(entry->d_name);
    closedir(threads);
    return count;
}

/* --- callbacks --- */

static void take_log(void *ctx, const char *line, size_t line_bytes)
{
    handler_rig *rig = ctx;

    rig->log_lines++;
    if (rig->said_bytes + line_bytes >= sizeof rig->said)
        return;
    memcpy(rig->said + rig->said_bytes, line, line_bytes + 1);
    rig->said_bytes += line_bytes;
}

/* It is about something that never comes, not about how long all of it takes. */
static void set_guard(handler_rig *rig)
{
    sl_timer_set(&rig->guard, sl_loop_now_ns(rig->loop) + GUARD_NS);
}

static void finished(void *ctx, sl_job *job, const sl_result *result)
{
    handler_rig *rig = ctx;
    const size_t number = (size_t)job->source_data - 1;
    handler_rig_result *note = &rig->results[number];

    EXPECT(result->reason.bytes <= SL_RESULT_REASON_BYTES_MAX);
    *note = (handler_rig_result){ note->count + 1,           result->kind,
                                  result->is_fault,          result->retry_after_ns,
                                  sl_loop_now_ns(rig->loop), "" };
    if (result->reason.bytes > 0)
        memcpy(note->reason, result->reason.data, result->reason.bytes);
    rig->result_count++;
    set_guard(rig);
    sl_job_free(job);
    rig->jobs[number] = NULL;
}

static void progress(void *ctx, sl_job *job)
{
    (void)job;
    ((handler_rig *)ctx)->progress_count++;
}

static void closed(void *ctx)
{
    ((handler_rig *)ctx)->is_closed = true;
}

static const sl_handler_owner owner = { finished, progress, closed };

static void guard_rings(void *ctx)
{
    ((handler_rig *)ctx)->is_late = true;
}

/* For what makes no event in the loop: a process that is gone for others, a state in /proc. */
static void tick_rings(void *ctx)
{
    handler_rig *rig = ctx;

    sl_timer_set(&rig->tick, sl_loop_now_ns(rig->loop) + MS_NS);
}

/* --- life --- */

void handler_rig_start(handler_rig *rig)
{
    memset(rig, 0, sizeof *rig);
    EXPECT(sl_process_adopt_orphans());
    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &rig->loop));
    sl_timer_init(&rig->guard, rig->loop, guard_rings, rig);
    sl_timer_init(&rig->tick, rig->loop, tick_rings, rig);
    set_guard(rig);
    rig->log = (sl_logger){
        .level_min = SL_LOG_DEBUG, .clock = sl_loop_clock(rig->loop), .sink = take_log, .sink_ctx = rig
    };
    rig->fds = rig->children = -1;
}

static void adopt(handler_rig *rig)
{
    rig->handler->owner = &owner;
    rig->handler->owner_ctx = rig;
}

static const char *const extra[] = { "RIG_EXTRA=from the rig", NULL };

void handler_rig_exec(handler_rig *rig, const char *command, uint32_t slots)
{
    const sl_exec_options options = {
        .command = command, .slots = slots, .environment = extra, .log = &rig->log
    };
    char problem_data[256];
    sl_text problem;

    handler_rig_start(rig);
    sl_text_init(&problem, problem_data, sizeof problem_data);
    EXPECT_OK(sl_exec_handler_new(rig->loop, &options, &problem, &rig->handler));
    adopt(rig);
}

static void make_lines(handler_rig *rig, sl_lines_options options)
{
    char problem_data[256];
    sl_text problem;

    handler_rig_start(rig);
    options.environment = extra;
    options.log = &rig->log;
    sl_text_init(&problem, problem_data, sizeof problem_data);
    EXPECT_OK(sl_lines_handler_new(rig->loop, &options, &problem, &rig->handler));
    adopt(rig);
}

void handler_rig_lines(handler_rig *rig, const char *command, uint32_t slots)
{
    make_lines(rig, (sl_lines_options){ .command = command, .slots = slots });
}

void handler_rig_lines_with_signal(handler_rig *rig, const char *command)
{
    make_lines(rig, (sl_lines_options){ .command = command, .slots = 1, .abort_signal = true });
}

void handler_rig_lines_with_close(handler_rig *rig, const char *command, uint64_t close_ns)
{
    make_lines(rig, (sl_lines_options){ .command = command, .slots = 1, .close_ns = close_ns });
}

uint64_t handler_rig_later_ns(void)
{
    return sl_clock_mono_ns(sl_loop_stopwatch()) + UINT64_C(10000000000);
}

uint64_t handler_rig_free_hung(handler_rig *rig, uint64_t limit_ns)
{
    const uint64_t begin_ns = sl_clock_mono_ns(sl_loop_stopwatch());
    uint64_t took_ns;
    sl_orphans left;

    signals_are_lost = true;
    rig->handler->class->free(SL_TAKE_PTR(rig->handler), begin_ns + limit_ns);
    signals_are_lost = false;
    took_ns = sl_clock_mono_ns(sl_loop_stopwatch()) - begin_ns;
    sl_orphans_init(&left, rig->loop);
    sl_orphans_done(&left, handler_rig_later_ns());
    handler_rig_drop(rig);
    return took_ns;
}

void handler_rig_drop(handler_rig *rig)
{
    if (rig->handler != NULL)
        rig->handler->class->free(rig->handler, handler_rig_later_ns());
    EXPECT_EQ(handler_rig_count_children(), 0);
    EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0); /* other tests have orphans too */
    for (size_t i = 0; i < rig->job_count; i++)
        sl_job_free(rig->jobs[i]);
    sl_timer_stop(&rig->guard);
    sl_timer_stop(&rig->tick);
    sl_loop_free(rig->loop);
}

void handler_rig_stop(handler_rig *rig)
{
    rig->handler->class->close(rig->handler);
    handler_rig_until_closed(rig);
    for (size_t i = 0; i < rig->job_count; i++)
        EXPECT_EQ(rig->results[i].count, 1);
    handler_rig_drop(rig);
}

/* --- messages --- */

size_t handler_rig_run_message(handler_rig *rig, const sl_job_message *message, uint64_t until_ns)
{
    const size_t number = rig->job_count++;
    sl_job *job = sl_job_new(message);

    EXPECT(number < HANDLER_RIG_JOBS);
    assert_non_null(job);
    job->until_ns = until_ns;
    job->source_data = (void *)(number + 1);
    rig->jobs[number] = job;
    rig->handler->class->run(rig->handler, job);
    return number;
}

size_t handler_rig_run(handler_rig *rig, const char *data)
{
    sl_job_message message = { .token = 7, .attempt = 1, .data = sl_str_from(data) };

    message.id.bytes[0] = 0xab;
    message.id.bytes[15] = (uint8_t)rig->job_count;
    message.stream = SL_STR("orders");
    message.content_type = SL_STR("application/json");
    return handler_rig_run_message(rig, &message, UINT64_MAX);
}

/* --- waiting --- */

void handler_rig_turn(handler_rig *rig)
{
    sl_loop_turn(rig->loop, true);
    if (rig->is_late)
        fail_msg("nothing happened for 20 seconds; the log: %s", rig->said);
}

const handler_rig_result *handler_rig_result_of(handler_rig *rig, size_t number)
{
    while (rig->results[number].count == 0)
        handler_rig_turn(rig);
    EXPECT_EQ(rig->results[number].count, 1);
    return &rig->results[number];
}

bool handler_rig_has_said(const handler_rig *rig, const char *text)
{
    return strstr(rig->said, text) != NULL;
}

void handler_rig_until_said(handler_rig *rig, const char *text)
{
    while (!handler_rig_has_said(rig, text))
        handler_rig_turn(rig);
}

void handler_rig_until_closed(handler_rig *rig)
{
    while (!rig->is_closed)
        handler_rig_turn(rig);
}

void handler_rig_until_gone(handler_rig *rig, long process_id)
{
    tick_rings(rig);
    while (kill((pid_t)process_id, 0) == 0)
        handler_rig_turn(rig);
    EXPECT_EQ(errno, ESRCH);
    sl_timer_stop(&rig->tick);
}

void handler_rig_until_frozen(handler_rig *rig, size_t number)
{
    tick_rings(rig);
    while (rig->handler->class->is_alive(rig->handler, rig->jobs[number]))
        handler_rig_turn(rig);
    sl_timer_stop(&rig->tick);
}

long handler_rig_number_after(const handler_rig *rig, const char *text)
{
    const char *at = strstr(rig->said, text);

    assert_non_null(at);
    return strtol(at + strlen(text), NULL, 10);
}

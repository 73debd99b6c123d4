/* worker/handler/exec.c — see exec_handler.h.
 *
 *      run --next turn--> process --stdin--> data, closed --> ... exit --> judge --> finished
 *
 * A run is what a process needs here; it is kept for the next one when the process is gone. */
#include "worker/exec_handler.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "worker/handler/command.h"
#include "worker/handler/output.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <signal.h>

#define MS_NS UINT64_C(1000000)

typedef struct exec_handler {
    sl_handler base;
    sl_loop *loop;
    sl_command command;
    uint32_t slots, run_count;
    sl_output_gate gate;
    sl_orphans orphans;
    sl_list runs, spares;
    sl_list starting; /* of those, what has no process yet, by start_node */
    sl_timer starter;
    bool is_draining;
    uint64_t drain_until_ns;
} exec_handler;

typedef struct exec_run {
    sl_list node, start_node;
    exec_handler *handler;
    sl_job *job;
    sl_process *process; /* NULL: it is to be started */
    size_t sent_bytes;   /* of the data */
    bool is_aborted, is_killed;
    sl_output output;
} exec_run;

/* --- the result --- */

static void finished(exec_handler *handler, sl_job *job, sl_result_kind kind, bool is_fault,
                     const sl_text *reason)
{
    const sl_result result = { .kind = kind, .is_fault = is_fault, .reason = sl_text_str(reason) };

    handler->base.owner->finished(handler->base.owner_ctx, job, &result);
}

static bool signal_was_ours(const exec_run *run, int signal_number)
{
    return (run->is_aborted && signal_number == SIGTERM) || (run->is_killed && signal_number == SIGKILL);
}

static sl_result_kind kind_of(const exec_run *run, const sl_process_end *end)
{
    if (!end->exited)
        return signal_was_ours(run, end->signal) ? SL_RESULT_STOPPED : SL_RESULT_FAILED;
    switch (end->code) {
    case 0: return SL_RESULT_DONE;
    case SL_EXEC_CODE_RETRY: return SL_RESULT_RETRY;
    case SL_EXEC_CODE_PARK: return SL_RESULT_PARK;
    default: return run->is_aborted || run->is_killed ? SL_RESULT_STOPPED : SL_RESULT_FAILED;
    }
}

static void release(exec_run *run)
{
    run->job->handler_data = NULL;
    run->job = NULL;
    run->process = NULL;
    sl_list_remove(&run->start_node);
    sl_list_remove(&run->node);
    sl_list_push_front(&run->handler->spares, &run->node);
    run->handler->run_count--;
}

static void on_exit(void *ctx, const sl_process_end *end)
{
    exec_run *run = ctx;
    exec_handler *handler = run->handler;
    sl_job *job = run->job;
    const sl_result_kind kind = kind_of(run, end);
    char reason_data[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text reason;

    sl_text_init(&reason, reason_data, sizeof reason_data);
    if (kind != SL_RESULT_DONE)
        sl_output_explain_end(&run->output, end, &reason);
    sl_output_end(&run->output);
    release(run);
    sl_orphans_sweep(&handler->orphans);
    finished(handler, job, kind, kind == SL_RESULT_RETRY || kind == SL_RESULT_FAILED, &reason);
}

/* --- running --- */

static void feed(void *ctx)
{
    exec_run *run = ctx;
    const sl_str data = run->job->message.data;

    run->sent_bytes +=
        sl_process_write(run->process, data.data + run->sent_bytes, data.bytes - run->sent_bytes);
    if (run->sent_bytes == data.bytes)
        sl_process_close_input(run->process);
}

static void on_output(void *ctx, sl_process_output which, const char *data, size_t bytes)
{
    exec_run *run = ctx;

    sl_output_take(&run->output, which, data, bytes);
}

static const sl_process_handler process_handler = { .on_output = on_output,
                                                    .on_room = feed,
                                                    .on_exit = on_exit };

static exec_run *take_run(exec_handler *handler)
{
    sl_list *spare = sl_list_first(&handler->spares);
    exec_run *run;

    if (spare == NULL) {
        run = sl_alloc_take(&sl_alloc_default, sizeof *run);
        if (run == NULL)
            return NULL;
        sl_list_init(&run->node);
        sl_list_init(&run->start_node);
    } else {
        run = SL_CONTAINER_OF(spare, exec_run, node);
        sl_list_remove(&run->node);
    }
    run->handler = handler;
    run->process = NULL;
    run->sent_bytes = 0;
    run->is_aborted = run->is_killed = false;
    sl_list_push_back(&handler->runs, &run->node);
    handler->run_count++;
    return run;
}

static sl_err start(exec_run *run, sl_text *problem)
{
    exec_handler *handler = run->handler;
    const sl_environment_times times = { sl_loop_now_ns(handler->loop), sl_loop_wall_ns(handler->loop) };
    const sl_process_options options = {
        .environment = sl_environment_of(&handler->command.environment, run->job, times),
        .has_notice = true,
    };

    if (options.environment != NULL)
        return sl_command_start(&handler->command, handler->loop, options, &process_handler, run, problem,
                                &run->process);
    sl_text_add(problem, sl_err_text(SL_ERR_NOMEM));
    return SL_ERR_NOMEM;
}

static void tell_drain(const exec_run *run)
{
    const exec_handler *handler = run->handler;
    const uint64_t now_ns = sl_loop_now_ns(handler->loop);
    const uint64_t until_ns = sl_min_u64(handler->drain_until_ns, run->job->until_ns);
    char line_data[32];
    sl_text line;

    sl_text_init(&line, line_data, sizeof line_data);
    sl_text_add_u64(&line, until_ns > now_ns ? (until_ns - now_ns) / MS_NS : 0);
    sl_text_add_char(&line, '\n');
    sl_process_notify(run->process, sl_text_str(&line));
}

/* One that is too large for the system will never be begun; everything else is about this machine, and the message waits for it. */
static sl_result_kind kind_of_failed_start(sl_err err)
{
    return err == SL_ERR_TOO_LARGE ? SL_RESULT_FAILED : SL_RESULT_UNBEGUN;
}

static void launch(exec_run *run)
{
    exec_handler *handler = run->handler;
    sl_job *job = run->job;
    char problem_data[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, problem_data, sizeof problem_data);
    err = start(run, &problem);
    if (err != SL_OK) {
        release(run);
        finished(handler, job, kind_of_failed_start(err), false, &problem);
        return;
    }
    sl_orphans_watch(&handler->orphans);
    sl_output_begin(&run->output, &handler->gate, sl_process_id(run->process));
    run->output.message = job->message.event_id;
    feed(run);
    if (handler->is_draining)
        tell_drain(run);
}

/* After a few starts others have a turn. (A timer for this very moment would ring again in this turn.) */
static void launch_some(void *ctx)
{
    exec_handler *handler = ctx;
    sl_list *first;

    for (int i = 0; i < SL_PROCESS_STARTS_PER_TURN_MAX; i++) {
        first = sl_list_first(&handler->starting);
        if (first == NULL)
            return;
        sl_list_remove(first);
        launch(SL_CONTAINER_OF(first, exec_run, start_node));
    }
    sl_timer_set(&handler->starter, sl_loop_now_ns(handler->loop) + 1);
}

/* Not at once: what the source is told of the beginning leaves at the end of this turn, and must have left before anything happens that
 * cannot be undone. Else a worker that is killed meanwhile leaves a process that nobody knows of, and its message goes to another worker
 * at once. */
static void exec_run_job(sl_handler *base, sl_job *job)
{
    exec_handler *handler = (exec_handler *)base;
    exec_run *run = take_run(handler);
    char problem_data[64];
    sl_text problem;

    if (run == NULL) {
        sl_text_init(&problem, problem_data, sizeof problem_data);
        sl_text_add(&problem, sl_err_text(SL_ERR_NOMEM));
        finished(handler, job, SL_RESULT_UNBEGUN, false, &problem);
        return;
    }
    run->job = job;
    job->handler_data = run;
    sl_list_push_back(&handler->starting, &run->start_node);
    if (!handler->starter.is_set)
        sl_timer_set(&handler->starter, sl_loop_now_ns(handler->loop) + 1);
}

/* True: there was nothing to end yet, and there will be nothing. */
static bool is_called_off(exec_run *run)
{
    exec_handler *handler = run->handler;
    sl_job *job = run->job;
    char nothing[1];
    sl_text reason;

    if (run->process != NULL)
        return false;
    sl_text_init(&reason, nothing, sizeof nothing);
    release(run);
    finished(handler, job, SL_RESULT_UNBEGUN, false, &reason);
    return true;
}

static void exec_abort(sl_handler *base, sl_job *job)
{
    exec_run *run = job->handler_data;

    (void)base;
    if (is_called_off(run))
        return;
    run->is_aborted = true;
    sl_process_kill(run->process, SIGTERM);
}

static void exec_kill(sl_handler *base, sl_job *job)
{
    exec_run *run = job->handler_data;

    (void)base;
    if (is_called_off(run))
        return;
    run->is_killed = true;
    sl_process_kill(run->process, SIGKILL);
}

static bool exec_is_alive(sl_handler *base, sl_job *job)
{
    const exec_run *run = job->handler_data;

    (void)base;
    return run->process == NULL || !sl_process_is_frozen(sl_process_id(run->process));
}

static bool exec_is_unbegun(sl_handler *base, sl_job *job)
{
    const exec_run *run = job->handler_data;

    (void)base;
    return run->process == NULL;
}

static void exec_draining(sl_handler *base, uint64_t until_ns)
{
    exec_handler *handler = (exec_handler *)base;

    handler->is_draining = true;
    handler->drain_until_ns = until_ns;
    SL_LIST_EACH (node, &handler->runs) {
        const exec_run *run = SL_CONTAINER_OF(node, exec_run, node);
        if (run->process != NULL)
            tell_drain(run);
    }
}

static void exec_describe(const sl_handler *base, cJSON *object)
{
    const exec_handler *handler = (const exec_handler *)base;

    cJSON_AddStringToObject(object, "command", handler->command.text);
    cJSON_AddNumberToObject(object, "processes", handler->run_count);
}

/* --- life --- */

static void exec_close(sl_handler *base)
{
    exec_handler *handler = (exec_handler *)base;

    assert(handler->run_count == 0);
    sl_output_gate_flush(&handler->gate);
    sl_orphans_sweep(&handler->orphans);
    base->owner->closed(base->owner_ctx);
}

static void free_runs(sl_list *runs, uint64_t until_ns)
{
    SL_LIST_EACH_SAFE (node, runs) {
        exec_run *run = SL_CONTAINER_OF(node, exec_run, node);
        sl_list_remove(&run->node);
        sl_process_free(run->process, until_ns);
        sl_alloc_give(&sl_alloc_default, run, sizeof *run);
    }
}

static void exec_free(sl_handler *base, uint64_t until_ns)
{
    exec_handler *handler = (exec_handler *)base;

    SL_LIST_EACH (node, &handler->runs) { /* first all of them, so that they are waited for together */
        const exec_run *run = SL_CONTAINER_OF(node, exec_run, node);
        if (run->process != NULL)
            sl_process_kill(run->process, SIGKILL);
    }
    sl_timer_stop(&handler->starter);
    free_runs(&handler->runs, until_ns);
    free_runs(&handler->spares, until_ns);
    sl_orphans_done(&handler->orphans, until_ns);
    sl_command_done(&handler->command);
    sl_alloc_give(&sl_alloc_default, handler, sizeof *handler);
}

static const sl_handler_class exec_class = {
    .name = "exec",
    .run = exec_run_job,
    .abort = exec_abort,
    .kill = exec_kill,
    .is_alive = exec_is_alive,
    .is_unbegun = exec_is_unbegun,
    .draining = exec_draining,
    .close = exec_close,
    .describe = exec_describe,
    .free = exec_free,
};

sl_err sl_exec_handler_new(sl_loop *loop, const sl_exec_options *options, sl_text *problem,
                           sl_handler **ret_handler)
{
    const sl_command_options command = { options->command, options->slots, options->environment };
    exec_handler *handler;
    sl_err err = sl_command_check(&command, problem);

    if (err != SL_OK)
        return err;
    handler = sl_alloc_take(&sl_alloc_default, sizeof *handler);
    if (handler == NULL)
        return SL_ERR_NOMEM;
    *handler = (exec_handler){ .base.class = &exec_class, .loop = loop, .slots = options->slots };
    sl_list_init(&handler->runs);
    sl_list_init(&handler->spares);
    sl_list_init(&handler->starting);
    sl_timer_init(&handler->starter, loop, launch_some, handler);
    sl_output_gate_init(&handler->gate, loop, options->log);
    sl_orphans_init(&handler->orphans, loop);
    err = sl_command_init(&handler->command, &command, problem);
    if (err != SL_OK) {
        exec_free(&handler->base, 0); /* there are no processes yet */
        return err;
    }
    *ret_handler = &handler->base;
    return SL_OK;
}

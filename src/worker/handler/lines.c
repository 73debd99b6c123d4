/* worker/handler/lines.c — see lines_handler.h: which message goes to which process, and the door of handlers. */
#include "worker/lines_handler.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "worker/handler/lines_inside.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <signal.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

/* --- slots --- */

void lines_finish(lines_slot *slot, sl_result_kind kind, bool is_fault, uint64_t retry_after_ns,
                  sl_str reason)
{
    const lines_handler *handler = slot->handler;
    const sl_result result = {
        .kind = kind, .is_fault = is_fault, .retry_after_ns = retry_after_ns, .reason = reason
    };
    sl_job *job = slot->job;

    slot->job = NULL;
    slot->is_given = false;
    job->handler_data = NULL;
    handler->base.owner->finished(handler->base.owner_ctx, job, &result);
}

static void timer_rings(void *ctx)
{
    lines_begin(ctx);
}

static lines_slot *add_slot(lines_handler *handler)
{
    lines_slot *slot = sl_alloc_take(&sl_alloc_default, sizeof *slot);

    if (slot == NULL)
        return NULL;
    memset(slot, 0, sizeof *slot);
    slot->handler = handler;
    sl_list_init(&slot->node);
    sl_list_push_back(&handler->all, &slot->all_node);
    handler->slot_count++;
    sl_timer_init(&slot->timer, handler->loop, timer_rings, slot);
    sl_buf_init(&slot->in, &sl_alloc_default, SL_LINES_LINE_BYTES_MAX);
    sl_buf_init(&slot->out, &sl_alloc_default, SL_LINES_UNSENT_BYTES_MAX);
    return slot;
}

/* When it can have a process; one whose process is still ending comes last. */
static uint64_t ready_ns(const lines_slot *slot)
{
    return slot->process == NULL ? slot->start_ns : UINT64_MAX;
}

static lines_slot *pick_down(const lines_handler *handler)
{
    lines_slot *best = NULL;

    SL_LIST_EACH (node, &handler->down) {
        lines_slot *slot = SL_CONTAINER_OF(node, lines_slot, node);
        if (best == NULL || ready_ns(slot) < ready_ns(best))
            best = slot;
    }
    return best;
}

/* A process that runs is better than one that has to be started, and that is better than one that has to wait. */
static lines_slot *pick_slot(lines_handler *handler)
{
    sl_list *idle = sl_list_first(&handler->idle);
    lines_slot *down, *added = NULL;

    if (idle != NULL)
        return SL_CONTAINER_OF(idle, lines_slot, node);
    down = pick_down(handler);
    if (down != NULL && ready_ns(down) <= sl_loop_now_ns(handler->loop))
        return down;
    if (handler->slot_count < handler->slots_max)
        added = add_slot(handler);
    return added == NULL ? down : added;
}

/* --- the door --- */

static void lines_run(sl_handler *base, sl_job *job)
{
    lines_handler *handler = (lines_handler *)base;
    lines_slot *slot = pick_slot(handler);

    if (slot == NULL) {
        const sl_result unbegun = { .kind = SL_RESULT_UNBEGUN,
                                    .reason = sl_str_from(sl_err_text(SL_ERR_NOMEM)) };
        base->owner->finished(base->owner_ctx, job, &unbegun);
        return;
    }
    assert(slot->job == NULL);
    lines_take(slot, job);
    lines_begin(slot);
}

/* No process has seen anything of it. */
static void call_off(lines_slot *slot)
{
    sl_timer_stop(&slot->timer);
    sl_list_remove(&slot->node);
    sl_list_push_front(lines_has_process(slot) ? &slot->handler->idle : &slot->handler->down, &slot->node);
    lines_finish(slot, SL_RESULT_UNBEGUN, false, 0, SL_STR("no process of the handler was up for it"));
}

static void lines_abort(sl_handler *base, sl_job *job)
{
    const lines_handler *handler = (lines_handler *)base;
    lines_slot *slot = job->handler_data;

    if (!slot->is_given) {
        call_off(slot);
        return;
    }
    slot->is_aborted = true;
    lines_tell_abort(slot);
    if (handler->abort_signal)
        sl_process_kill(slot->process, SIGTERM);
}

static void lines_kill(sl_handler *base, sl_job *job)
{
    lines_slot *slot = job->handler_data;

    (void)base;
    if (!slot->is_given) {
        call_off(slot);
        return;
    }
    slot->is_killed = true;
    sl_process_kill(slot->process, SIGKILL);
}

static bool lines_is_alive(sl_handler *base, sl_job *job)
{
    const lines_slot *slot = job->handler_data;

    (void)base;
    return !slot->is_given || !sl_process_is_frozen(sl_process_id(slot->process));
}

static bool lines_is_unbegun(sl_handler *base, sl_job *job)
{
    const lines_slot *slot = job->handler_data;

    (void)base;
    return !slot->is_given;
}

static void lines_draining(sl_handler *base, uint64_t until_ns)
{
    lines_handler *handler = (lines_handler *)base;

    handler->is_draining = true;
    handler->drain_until_ns = until_ns;
    SL_LIST_EACH (node, &handler->all)
        lines_tell_draining(SL_CONTAINER_OF(node, lines_slot, all_node));
}

static void lines_describe(const sl_handler *base, cJSON *object)
{
    const lines_handler *handler = (const lines_handler *)base;

    cJSON_AddStringToObject(object, "command", handler->command.text);
    cJSON_AddNumberToObject(object, "processes", handler->process_count);
}

/* --- the end --- */

void lines_process_gone(lines_handler *handler)
{
    if (!handler->is_closing || handler->process_count > 0)
        return;
    handler->is_closing = false; /* so that it is told once */
    sl_timer_stop(&handler->close_timer);
    sl_output_gate_flush(&handler->gate);
    sl_orphans_sweep(&handler->orphans);
    handler->base.owner->closed(handler->base.owner_ctx);
}

static void kill_all(lines_handler *handler, int signal_number)
{
    SL_LIST_EACH (node, &handler->all) {
        lines_slot *slot = SL_CONTAINER_OF(node, lines_slot, all_node);
        if (slot->process != NULL)
            sl_process_kill(slot->process, signal_number);
    }
}

static void close_rings(void *ctx)
{
    lines_handler *handler = ctx;

    kill_all(handler, handler->was_asked_to_end ? SIGKILL : SIGTERM);
    if (!handler->was_asked_to_end)
        sl_timer_set(&handler->close_timer, sl_loop_now_ns(handler->loop) + handler->close_ns / 4);
    handler->was_asked_to_end = true;
}

static void lines_close(sl_handler *base)
{
    lines_handler *handler = (lines_handler *)base;

    handler->is_closing = true;
    SL_LIST_EACH (node, &handler->all) {
        lines_slot *slot = SL_CONTAINER_OF(node, lines_slot, all_node);
        assert(slot->job == NULL);
        if (slot->process != NULL)
            sl_process_close_input(slot->process);
    }
    sl_timer_set(&handler->close_timer, sl_loop_now_ns(handler->loop) + handler->close_ns / 2);
    lines_process_gone(handler);
}

static void free_slot(lines_slot *slot, uint64_t until_ns)
{
    sl_timer_stop(&slot->timer);
    sl_process_free(slot->process, until_ns);
    sl_buf_done(&slot->in);
    sl_buf_done(&slot->out);
    sl_alloc_give(&sl_alloc_default, slot, sizeof *slot);
}

static void lines_free(sl_handler *base, uint64_t until_ns)
{
    lines_handler *handler = (lines_handler *)base;

    kill_all(handler, SIGKILL); /* first all of them, so that they are waited for together */
    SL_LIST_EACH_SAFE (node, &handler->all)
        free_slot(SL_CONTAINER_OF(node, lines_slot, all_node), until_ns);
    sl_timer_stop(&handler->starter);
    sl_timer_stop(&handler->close_timer);
    sl_orphans_done(&handler->orphans, until_ns);
    sl_command_done(&handler->command);
    sl_alloc_give(&sl_alloc_default, handler, sizeof *handler);
}

static const sl_handler_class lines_class = {
    .name = "lines",
    .run = lines_run,
    .abort = lines_abort,
    .kill = lines_kill,
    .is_alive = lines_is_alive,
    .is_unbegun = lines_is_unbegun,
    .draining = lines_draining,
    .close = lines_close,
    .describe = lines_describe,
    .free = lines_free,
};

/* --- the beginning --- */

static void set_up(lines_handler *handler, sl_loop *loop, const sl_lines_options *options)
{
    *handler =
        (lines_handler){ .base.class = &lines_class,
                         .loop = loop,
                         .slots_max = options->slots,
                         .abort_signal = options->abort_signal,
                         .close_ns = options->close_ns == 0 ? SL_LINES_CLOSE_MS * MS_NS : options->close_ns };
    sl_list_init(&handler->all);
    sl_list_init(&handler->idle);
    sl_list_init(&handler->begun);
    sl_list_init(&handler->waiting);
    sl_list_init(&handler->down);
    sl_output_gate_init(&handler->gate, loop, options->log);
    sl_orphans_init(&handler->orphans, loop);
    sl_timer_init(&handler->starter, loop, lines_begin_some, handler);
    sl_timer_init(&handler->close_timer, loop, close_rings, handler);
}

sl_err sl_lines_handler_new(sl_loop *loop, const sl_lines_options *options, sl_text *problem,
                            sl_handler **ret_handler)
{
    const sl_command_options command = { options->command, options->slots, options->environment };
    lines_handler *handler;
    sl_err err = sl_command_check(&command, problem);

    if (err != SL_OK)
        return err;
    handler = sl_alloc_take(&sl_alloc_default, sizeof *handler);
    if (handler == NULL)
        return SL_ERR_NOMEM;
    set_up(handler, loop, options);
    err = sl_command_init(&handler->command, &command, problem);
    if (err != SL_OK) {
        lines_free(&handler->base, 0); /* there are no processes yet */
        return err;
    }
    *ret_handler = &handler->base;
    return SL_OK;
}

/* worker/handler/lines_process.c — one long-lived process: starting it, what it is told, what it says, and its end. */
#include "base/cleanup.h"
#include "worker/handler/lines_inside.h"
#include "worker/lines_text.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

static void move(lines_slot *slot, sl_list *ring)
{
    sl_list_remove(&slot->node);
    if (ring != NULL)
        sl_list_push_front(ring, &slot->node);
}

static void empty(sl_buf *buf)
{
    if (buf->capacity > SL_LINES_KEPT_BYTES)
        sl_buf_done(buf); /* keeps allocator and limit */
    sl_buf_clear(buf);
}

/* --- a broken contract --- */

/* The message, if the process holds one, fails when the process is gone: it is killed now, so that is soon. */
static void broken(lines_slot *slot, const char *what, sl_str line)
{
    sl_text problem;

    sl_text_init(&problem, slot->problem, sizeof slot->problem);
    sl_text_add(&problem, "the handler broke the contract: ");
    sl_text_add(&problem, what);
    if (line.bytes > 0) {
        sl_text_add(&problem, ": ");
        sl_output_add_printable(&problem, (sl_str){ line.data, sl_min_u64(line.bytes, 200) });
    }
    slot->is_broken = true;
    if (!slot->is_deaf)
        sl_log(slot->handler->gate.log, SL_LOG_WARN, "a handler broke the contract and is ended",
               SL_LOG_STR("what", slot->problem), SL_LOG_I64("pid", slot->output.process_id));
    sl_process_kill(slot->process, SIGKILL);
    if (slot->job == NULL)
        move(slot, &slot->handler->down);
}

/* --- what it is told --- */

static void flush(void *ctx)
{
    lines_slot *slot = ctx;
    size_t taken;

    if (slot->process == NULL || slot->is_broken || slot->out.bytes == 0)
        return;
    taken = sl_process_write(slot->process, sl_buf_data(&slot->out), slot->out.bytes);
    slot->sent_bytes += taken;
    sl_buf_consume(&slot->out, taken);
    if (slot->out.bytes == 0)
        empty(&slot->out);
    if (!sl_process_input_is_closed(slot->process) || slot->handler->is_closing)
        return;
    slot->is_deaf = true; /* most likely it has ended, and its end will tell more */
    broken(slot, "it closed its standard input", (sl_str){ 0 });
}

void lines_tell_draining(lines_slot *slot)
{
    const uint64_t now_ns = sl_loop_now_ns(slot->handler->loop);
    uint64_t until_ns = slot->handler->drain_until_ns;

    if (slot->process == NULL || slot->is_broken)
        return;
    if (slot->job != NULL)
        until_ns = sl_min_u64(until_ns, slot->job->until_ns);
    /* Without memory it is not told: it need not be. */
    (void)sl_lines_add_draining(&slot->out, until_ns > now_ns ? (until_ns - now_ns) / MS_NS : 0);
    flush(slot);
}

void lines_tell_abort(lines_slot *slot)
{
    (void)sl_lines_add_abort(&slot->out, slot->job->message.event_id);
    flush(slot);
}

static void give(lines_slot *slot)
{
    const uint64_t before_bytes = slot->sent_bytes + slot->out.bytes;
    const sl_err err = sl_lines_add_message(&slot->out, slot->job, sl_loop_now_ns(slot->handler->loop));

    if (err != SL_OK) {
        move(slot, &slot->handler->idle);
        lines_finish(slot, err == SL_ERR_NOMEM ? SL_RESULT_UNBEGUN : SL_RESULT_FAILED, false, 0,
                     sl_str_from(err == SL_ERR_NOMEM
                                     ? sl_err_text(err)
                                     : "the message is larger than a handler can be given (256 MiB)"));
        return;
    }
    move(slot, NULL);
    slot->is_given = true;
    slot->before_bytes = before_bytes;
    slot->output.message = slot->job->message.event_id;
    sl_output_forget_tail(&slot->output);
    flush(slot);
    if (!slot->is_deaf)
        return;
    /* It has ended, and we hear of it later: it cannot have seen anything of the message, which waits for the next one. */
    slot->is_given = false;
    move(slot, &slot->handler->waiting);
}

void lines_take(lines_slot *slot, sl_job *job)
{
    slot->job = job;
    job->handler_data = slot;
    slot->is_aborted = slot->is_given = false;
}

/* --- what it says --- */

bool lines_has_process(const lines_slot *slot)
{
    return slot->process != NULL && !slot->is_broken && !slot->is_killed;
}

static void hand_over(lines_slot *from, lines_slot *to)
{
    lines_take(to, SL_TAKE_PTR(from->job));
    sl_timer_stop(&from->timer);
    move(from, &from->handler->down);
}

/* Another slot's message waits for a process, and this one has nothing to do. */
static void take_waiting(lines_slot *slot)
{
    lines_handler *handler = slot->handler;
    sl_list *first = sl_list_last(&handler->waiting);

    if (first == NULL || slot->job != NULL || !lines_has_process(slot) || handler->is_closing)
        return;
    hand_over(SL_CONTAINER_OF(first, lines_slot, node), slot);
    give(slot);
}

static void answered(lines_slot *slot, const sl_lines_answer *answer, bool has_more)
{
    const bool is_fault = answer->result == SL_RESULT_RETRY || answer->result == SL_RESULT_FAILED;

    slot->pause_ns = 0;
    slot->is_given = false;
    slot->has_answered = true;
    slot->output.message = (sl_uuid){ { 0 } };
    move(slot, lines_has_process(slot) ? &slot->handler->idle : &slot->handler->down);
    if (has_more) {
        sl_job *job = slot->job;
        slot->job = NULL; /* what comes behind an answer is not this message's fault */
        broken(slot, "it said more after its answer", (sl_str){ 0 });
        slot->job = job;
    }
    lines_finish(slot, answer->result, is_fault, answer->retry_after_ms * MS_NS, sl_str_from(answer->reason));
    take_waiting(slot);
}

static void take_line(lines_slot *slot, sl_str line, bool has_more)
{
    char problem_data[128];
    sl_lines_answer answer;
    sl_text problem;

    sl_text_init(&problem, problem_data, sizeof problem_data);
    if (slot->job == NULL || !slot->is_given)
        broken(slot, "it printed a line without having a message", line);
    else if (sl_lines_answer_parse(line, &answer, &problem) != SL_OK)
        broken(slot, problem_data, line);
    else if (!sl_uuid_equal(answer.id, slot->job->message.event_id))
        broken(slot, "it answered for another message than the one it has", line);
    else if (answer.is_progress)
        slot->handler->base.owner->progress(slot->handler->base.owner_ctx, slot->job);
    else if (slot->out.bytes > 0)
        broken(slot, "it answered before it had read the message", line);
    else
        answered(slot, &answer, has_more);
}

/* A line that came whole is read where it is; only parts are kept. */
static void take_stdout(lines_slot *slot, const char *data, size_t bytes)
{
    while (bytes > 0 && slot->process != NULL && !slot->is_broken) {
        const char *end = memchr(data, '\n', bytes);
        const size_t part = end == NULL ? bytes : (size_t)(end - data);
        const bool is_whole = end != NULL && slot->in.bytes == 0;

        if (!is_whole && sl_buf_append(&slot->in, data, part) != SL_OK) {
            broken(slot, "it printed a line of more than 1 MiB", (sl_str){ 0 });
            return;
        }
        if (end == NULL)
            return;
        data += part + 1;
        bytes -= part + 1;
        if (is_whole) {
            take_line(slot, (sl_str){ data - part - 1, part }, bytes > 0);
        } else {
            sl_buf line = sl_buf_take(&slot->in);
            take_line(slot, (sl_str){ (const char *)sl_buf_data(&line), line.bytes }, bytes > 0);
            sl_buf_done(&line);
        }
    }
}

static void on_output(void *ctx, sl_process_output which, const char *data, size_t bytes)
{
    lines_slot *slot = ctx;

    if (which == SL_PROCESS_STDERR)
        sl_output_take(&slot->output, which, data, bytes);
    else
        take_stdout(slot, data, bytes);
}

/* --- its end --- */

static void pause_next_start(lines_slot *slot)
{
    slot->pause_ns = slot->pause_ns == 0
                         ? SL_LINES_PAUSE_MS_MIN * MS_NS
                         : sl_min_u64(slot->pause_ns * 2, (uint64_t)SL_LINES_PAUSE_MS_MAX * MS_NS);
    slot->start_ns = sl_loop_now_ns(slot->handler->loop) + slot->pause_ns;
}

static bool was_ours(const lines_slot *slot, const sl_process_end *end)
{
    if (end->exited)
        return slot->is_aborted || slot->is_killed;
    return (slot->is_killed && end->signal == SIGKILL) ||
           (slot->is_aborted && slot->handler->abort_signal && end->signal == SIGTERM);
}

static bool broke_it(const lines_slot *slot, const sl_process_end *end)
{
    return slot->is_broken && (!slot->is_deaf || (!end->exited && end->signal == SIGKILL));
}

static void fail_message(lines_slot *slot, const sl_process_end *end)
{
    char reason_data[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text reason;

    sl_text_init(&reason, reason_data, sizeof reason_data);
    if (broke_it(slot, end)) {
        sl_text_add(&reason, slot->problem);
        lines_finish(slot, SL_RESULT_FAILED, true, 0, sl_text_str(&reason));
        return;
    }
    sl_text_add(&reason, "the handler's process ended before it answered: ");
    sl_output_explain_end(&slot->output, end, &reason);
    lines_finish(slot, was_ours(slot, end) ? SL_RESULT_STOPPED : SL_RESULT_FAILED, !was_ours(slot, end), 0,
                 sl_text_str(&reason));
}

/* A process that has worked may leave whenever it likes, and what comes too late for it is in its pipe then: nothing of that message was
 * seen, and the next process can have it. One that never answered gets no such credit, else a program that cannot even start would be
 * given the same message for ever. Nor does a message that is to end anyway. */
static bool never_saw_it(const lines_slot *slot, const sl_process_end *end)
{
    return slot->is_given && slot->has_answered && !slot->is_aborted && !slot->is_killed &&
           end->read_bytes <= slot->before_bytes;
}

/* A process that had nothing to do and left in peace may have had its reasons; so may one that we killed. */
static bool ended_well(const lines_slot *slot, const sl_process_end *end)
{
    if (slot->is_broken && !slot->is_deaf)
        return false;
    return slot->is_killed || slot->handler->is_closing || (end->exited && end->code == 0 && !slot->is_given);
}

static void on_exit(void *ctx, const sl_process_end *end)
{
    lines_slot *slot = ctx;
    lines_handler *handler = slot->handler;

    sl_output_end(&slot->output);
    if (never_saw_it(slot, end))
        slot->is_given = false;
    if (!ended_well(slot, end)) {
        pause_next_start(slot);
        sl_log(handler->gate.log, SL_LOG_WARN, "a handler's process has ended",
               SL_LOG_I64("pid", slot->output.process_id),
               SL_LOG_I64(end->exited ? "exit_code" : "signal", end->exited ? end->code : end->signal),
               SL_LOG_DURATION("next_start_after", slot->pause_ns));
    }
    slot->process = NULL;
    handler->process_count--;
    empty(&slot->in);
    empty(&slot->out);
    sl_orphans_sweep(&handler->orphans);
    if (slot->job != NULL && !slot->is_given) {
        lines_begin(slot);
    } else {
        move(slot, &handler->down);
        if (slot->job != NULL)
            fail_message(slot, end);
    }
    lines_process_gone(handler);
}

/* --- its start --- */

static sl_err start(lines_slot *slot, sl_text *problem)
{
    static const sl_process_handler on = { .on_output = on_output, .on_room = flush, .on_exit = on_exit };
    lines_handler *handler = slot->handler;
    const sl_process_options options = { .environment = handler->command.environment.entries };
    const sl_err err =
        sl_command_start(&handler->command, handler->loop, options, &on, slot, problem, &slot->process);

    if (err != SL_OK)
        return err;
    handler->process_count++;
    sl_orphans_watch(&handler->orphans);
    slot->is_broken = slot->is_deaf = slot->is_killed = slot->has_answered = false;
    slot->sent_bytes = 0;
    sl_output_begin(&slot->output, &handler->gate, sl_process_id(slot->process));
    if (handler->is_draining)
        lines_tell_draining(slot);
    return SL_OK;
}

static bool needs_start(const lines_slot *slot)
{
    return slot->process == NULL && slot->start_ns <= sl_loop_now_ns(slot->handler->loop);
}

static void begin_now(lines_slot *slot)
{
    lines_handler *handler = slot->handler;
    char problem_data[SL_RESULT_REASON_BYTES_MAX + 1];
    sl_text problem;

    if (needs_start(slot)) {
        sl_text_init(&problem, problem_data, sizeof problem_data);
        if (start(slot, &problem) != SL_OK) {
            pause_next_start(slot);
            move(slot, &handler->down);
            lines_finish(slot, SL_RESULT_UNBEGUN, false, 0, sl_text_str(&problem));
            return;
        }
    }
    if (lines_has_process(slot)) {
        give(slot);
        return;
    }
    move(slot, &handler->waiting);
    if (slot->process == NULL) /* else its end comes first */
        sl_timer_set(&slot->timer, slot->start_ns);
}

/* A process that became free since the slot was picked is better than one that has to be started or waited for. */
static lines_slot *pick_again(lines_slot *slot)
{
    sl_list *idle = sl_list_first(&slot->handler->idle);

    if (idle == NULL || lines_has_process(slot))
        return slot;
    lines_slot *other = SL_CONTAINER_OF(idle, lines_slot, node);
    hand_over(slot, other);
    return other;
}

/* After a few starts others have a turn. (A timer for this very moment would ring again in this turn.) */
void lines_begin_some(void *ctx)
{
    lines_handler *handler = ctx;
    sl_list round, *node;
    unsigned starts = 0;

    sl_list_init(&round);
    sl_list_splice(&round, &handler->begun);
    while ((node = sl_list_first(&round)) != NULL) {
        lines_slot *slot = pick_again(SL_CONTAINER_OF(node, lines_slot, node));
        sl_list_remove(&slot->node);
        starts += needs_start(slot);
        if (needs_start(slot) && starts > SL_PROCESS_STARTS_PER_TURN_MAX)
            lines_begin(slot);
        else
            begin_now(slot);
    }
}

/* Not at once: what the source is told of the beginning leaves at the end of this turn, and must have left before a process sees anything
 * of the message. Else a worker that is killed meanwhile leaves a process with a message that goes to another worker at once. */
void lines_begin(lines_slot *slot)
{
    lines_handler *handler = slot->handler;

    sl_list_remove(&slot->node);
    sl_list_push_back(&handler->begun, &slot->node);
    if (!handler->starter.is_set)
        sl_timer_set(&handler->starter, sl_loop_now_ns(handler->loop) + 1);
}

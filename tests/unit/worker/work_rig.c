#include "work_rig.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

static void note(work_rig *rig, const char *word, const sl_job *job)
{
    sl_text_add(&rig->text, rig->notes[0] == '\0' ? "" : " ");
    sl_text_add(&rig->text, word);
    if (job != NULL) {
        sl_text_add(&rig->text, " ");
        sl_text_add_u64(&rig->text, job->message.revision);
    }
}

/* --- the source --- */

static work_rig *rig_of(sl_source *source)
{
    return ((struct rig_source *)source)->rig;
}

static void source_start(sl_source *source)
{
    note(rig_of(source), "start", NULL);
}

static bool source_begin(sl_source *source, sl_job *job)
{
    work_rig *const rig = rig_of(source);

    if (rig->loses_in_begin) {
        source->owner->lost(source->owner_ctx, job);
        return false;
    }
    if (rig->begins)
        note(rig, "begin", job);
    return rig->begins;
}

static void note_reason(work_rig *rig, sl_str reason)
{
    if (reason.bytes == 0)
        return;
    sl_text_add(&rig->text, " (");
    sl_text_add_str(&rig->text, reason);
    sl_text_add(&rig->text, ")");
}

static void source_settle(sl_source *source, sl_job *job, const sl_settle *settle)
{
    static const char *const words[] = { "ack", "retry", "park", "release" };
    work_rig *const rig = rig_of(source);

    note(rig, words[settle->kind], job);
    if (settle->delay_ns > 0)
        sl_text_add(&rig->text, " later");
    note_reason(rig, settle->reason);
}

static void source_recall(sl_source *source, sl_job *job, const sl_settle *settle)
{
    work_rig *const rig = rig_of(source);

    note(rig, settle->kind == SL_SETTLE_PARK ? "recall-park" : "recall", job);
    note_reason(rig, settle->reason);
    rig->jobs[job->message.revision] = job;
}

static void source_extend(sl_source *source, sl_job *job)
{
    note(rig_of(source), "extend", job);
    job->lease_until_ns = sl_loop_now_ns(rig_of(source)->loop) + job->lease_ns;
}

static void source_close_gate(sl_source *source, bool hand_back)
{
    work_rig *const rig = rig_of(source);

    note(rig, hand_back ? "gate" : "gate-only", NULL);
    if (rig->fences)
        source->owner->fenced(source->owner_ctx);
}

static void source_close(sl_source *source)
{
    work_rig *const rig = rig_of(source);

    note(rig, "close-source", NULL);
    if (rig->closes)
        source->owner->closed(source->owner_ctx);
}

/* As a network would: the answer comes later than the word. */
static void source_turn_end(sl_source *source)
{
    work_rig *const rig = rig_of(source);

    for (uint32_t i = 0; i < RIG_JOBS_MAX && rig->confirms; i++)
        if (rig->jobs[i] != NULL && rig->jobs[i]->state == SL_JOB_SETTLING && !rig->jobs[i]->is_settled)
            work_rig_confirm(rig, i, rig->jobs[i]->is_lost ? SL_SETTLED_LOST : rig->confirms_how);
}

static void source_free(sl_source *source)
{
    rig_of(source)->source_freed = true;
    free(source);
}

/* --- the handler --- */

static work_rig *rig_of_handler(sl_handler *handler)
{
    return ((struct rig_handler *)handler)->rig;
}

static void finish(work_rig *rig, sl_job *job, sl_result_kind kind)
{
    sl_result result = { .kind = kind };

    if (kind == SL_RESULT_FAILED || kind == SL_RESULT_PARK || kind == SL_RESULT_RETRY)
        result.reason = SL_STR("why not");
    if (kind == rig->answer.kind)
        result = rig->answer;
    rig->handler->handler.owner->finished(rig->handler->handler.owner_ctx, job, &result);
}

static void handler_run(sl_handler *handler, sl_job *job)
{
    work_rig *const rig = rig_of_handler(handler);

    note(rig, "run", job);
    if (rig->answers_at_once)
        finish(rig, job, rig->answer.kind);
}

static void handler_abort(sl_handler *handler, sl_job *job)
{
    note(rig_of_handler(handler), "abort", job);
    if (rig_of_handler(handler)->dies_on_abort)
        finish(rig_of_handler(handler), job, SL_RESULT_STOPPED);
}

static void handler_kill(sl_handler *handler, sl_job *job)
{
    note(rig_of_handler(handler), "kill", job);
    if (rig_of_handler(handler)->dies_on_kill)
        finish(rig_of_handler(handler), job, SL_RESULT_STOPPED);
}

static bool handler_is_alive(sl_handler *handler, sl_job *job)
{
    (void)job;
    return !rig_of_handler(handler)->is_frozen;
}

static bool handler_is_unbegun(sl_handler *handler, sl_job *job)
{
    (void)job;
    return rig_of_handler(handler)->is_unbegun;
}

static void handler_draining(sl_handler *handler, uint64_t until_ns)
{
    rig_of_handler(handler)->told_until_ns = until_ns;
    note(rig_of_handler(handler), "draining", NULL);
}

static void handler_close(sl_handler *handler)
{
    note(rig_of_handler(handler), "close-handler", NULL);
    if (!rig_of_handler(handler)->handler_stays)
        handler->owner->closed(handler->owner_ctx);
}

static void handler_free(sl_handler *handler, uint64_t until_ns)
{
    rig_of_handler(handler)->free_until_ns = until_ns;
    rig_of_handler(handler)->handler_freed = true;
    free(handler);
}

static void handler_turn_end(sl_handler *handler)
{
    work_rig *const rig = rig_of_handler(handler);
    const uint32_t number = rig->collects;

    rig->collects = 0;
    if (number != 0)
        finish(rig, rig->jobs[number], SL_RESULT_DONE);
}

static const sl_handler_class handler_class = {
    .name = "rig",
    .run = handler_run,
    .abort = handler_abort,
    .turn_end = handler_turn_end,
    .kill = handler_kill,
    .is_alive = handler_is_alive,
    .is_unbegun = handler_is_unbegun,
    .draining = handler_draining,
    .close = handler_close,
    .free = handler_free,
};

/* --- life --- */

static void on_log(void *ctx, const char *line, size_t line_bytes)
{
    work_rig *const rig = ctx;

    if (rig->log_bytes + line_bytes < sizeof rig->log_text) {
        memcpy(rig->log_text + rig->log_bytes, line, line_bytes);
        rig->log_bytes += line_bytes;
        rig->log_text[rig->log_bytes] = '\0';
    }
}

static void on_turn_end(void *ctx)
{
    work_rig *const rig = ctx;

    if (rig->work != NULL)
        sl_work_turn_end(rig->work);
}

static void on_up(void *ctx, sl_work *work)
{
    (void)work;
    ((work_rig *)ctx)->ups++;
}

static void on_draining(void *ctx, sl_work *work)
{
    (void)work;
    ((work_rig *)ctx)->drainings++;
}

static void on_over(void *ctx, sl_work *work)
{
    (void)work;
    ((work_rig *)ctx)->overs++;
}

static void fill_settings(work_rig *rig)
{
    const sl_budget_wish wish = { .grace_ns = SL_BUDGET_GRACE_LEAST_MS * MS_NS };

    rig->settings = (sl_work_settings){
        .name = "rig",
        .slots = 2,
        .retry = sl_retry_default(),
        .hold_max_ns = 3600 * 1000 * MS_NS,
        .log = &rig->log,
    };
    EXPECT_OK(sl_budget_make(&wish, &rig->settings.budget));
}

void work_rig_init(work_rig *rig)
{
    static const sl_loop_handler loop_handler = { .on_turn_end = on_turn_end };

    memset(rig, 0, sizeof *rig);
    sl_text_init(&rig->text, rig->notes, sizeof rig->notes);
    rig->begins = rig->fences = rig->confirms = rig->closes = rig->dies_on_kill = true;
    rig->answer.kind = SL_RESULT_DONE;
    EXPECT_OK(sl_loop_new(NULL, &loop_handler, rig, &rig->loop));
    rig->log = (sl_logger){
        .level_min = SL_LOG_DEBUG, .clock = sl_loop_clock(rig->loop), .sink = on_log, .sink_ctx = rig
    };
    rig->source_class = (sl_source_class){
        .name = "rig",
        .recall = source_recall,
        .start = source_start,
        .begin = source_begin,
        .settle = source_settle,
        .extend = source_extend,
        .close_gate = source_close_gate,
        .close = source_close,
        .turn_end = source_turn_end,
        .free = source_free,
    };
    fill_settings(rig);
}

void work_rig_start(work_rig *rig)
{
    static const sl_work_watcher watcher = { .up = on_up, .draining = on_draining, .over = on_over };

    rig->source = calloc(1, sizeof *rig->source);
    rig->handler = calloc(1, sizeof *rig->handler);
    *rig->source =
        (struct rig_source){ .source = { .class = &rig->source_class, .keeps_delays = true }, .rig = rig };
    *rig->handler = (struct rig_handler){ .handler = { .class = &handler_class }, .rig = rig };
    rig->source_freed = rig->handler_freed = false;
    EXPECT_OK(sl_work_new(rig->loop, &rig->settings, &rig->source->source, &rig->handler->handler, rig->acks,
                          &watcher, rig, &rig->work));
    rig->acks = NULL; /* the worker's now */
    sl_work_start(rig->work);
    rig->source->source.owner->up(rig->source->source.owner_ctx);
    work_rig_turns(rig);
    EXPECT(work_rig_notes_have(rig, "start"));
    memcpy(rig->start_notes, rig->notes, sizeof rig->start_notes);
    rig->notes[0] = '\0';
    sl_text_init(&rig->text, rig->notes, sizeof rig->notes);
}

void work_rig_done(work_rig *rig)
{
    sl_work_free(SL_TAKE_PTR(rig->work));
    EXPECT(rig->source_freed && rig->handler_freed);
    sl_loop_free(rig->loop);
}

void work_rig_turns(work_rig *rig)
{
    for (int i = 0; i < 8; i++)
        sl_loop_turn(rig->loop, false);
}

/* How long this thread could have run and was not let, as the system counts it; 0 where it does not. */
static uint64_t kept_waiting_ns(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    uint64_t waited_ns = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %" SCNu64, &waited_ns) != 1)
        waited_ns = 0;
    (void)fclose(file);
    return waited_ns;
}

void work_rig_until(work_rig *rig, bool (*done)(work_rig *rig))
{
    const uint64_t end_ns = sl_loop_now_ns(rig->loop) + 20000 * MS_NS, before_ns = kept_waiting_ns();
    sl_timer timer;

    sl_loop_turn(rig->loop, false); /* what the test has said happens in a turn, as it would in life */
    sl_timer_init(&timer, rig->loop, (sl_timer_fn *)abort, NULL); /* it hangs: the core shows where */
    sl_timer_set(&timer, end_ns);
    while (!done(rig))
        sl_loop_turn(rig->loop, true);
    sl_timer_stop(&timer);
    rig->stalled_ns += kept_waiting_ns() - before_ns;
}

bool work_rig_is_over(work_rig *rig)
{
    return rig->overs > 0;
}

/* --- what a test says --- */

void work_rig_offer_try(work_rig *rig, uint32_t number, uint32_t attempt)
{
    sl_job_message message = { .attempt = attempt,
                               .revision = number,
                               .token = 1000 + number,
                               .stream = SL_STR("s"),
                               .data = SL_STR("{}") };
    sl_job *job;

    message.id.bytes[15] = (uint8_t)number;
    job = sl_job_new(&message);
    EXPECT(job != NULL);
    job->lease_until_ns = rig->lease_ns == 0 ? UINT64_MAX : sl_loop_now_ns(rig->loop) + rig->lease_ns;
    job->lease_ns = rig->lease_ns;
    rig->jobs[number] = job;
    rig->source->source.owner->offer(rig->source->source.owner_ctx, job);
}

void work_rig_offer(work_rig *rig, uint32_t number)
{
    work_rig_offer_try(rig, number, 1);
}

void work_rig_finish(work_rig *rig, uint32_t number, sl_result_kind kind)
{
    finish(rig, rig->jobs[number], kind);
}

void work_rig_confirm(work_rig *rig, uint32_t number, sl_settled_how how)
{
    sl_job *const job = rig->jobs[number];

    rig->jobs[number] = job->is_disowned ? job : NULL;
    rig->source->source.owner->settled(rig->source->source.owner_ctx, job, how);
}

bool work_rig_notes_have(const work_rig *rig, const char *words)
{
    return strstr(rig->notes, words) != NULL;
}

void work_rig_expect_notes(work_rig *rig, const char *words)
{
    EXPECT_STR(rig->notes, words);
    rig->notes[0] = '\0';
    sl_text_init(&rig->text, rig->notes, sizeof rig->notes);
}

void work_rig_stop(work_rig *rig, sl_drain_reason reason, bool escalates)
{
    sl_work_stop(rig->work, (sl_drain_call){ .reason = reason, .escalates = escalates });
}

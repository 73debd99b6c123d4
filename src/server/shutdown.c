/* server/shutdown.c — the machine of core/drain.h with the steps of a server.
 *
 * It fits because a server does the same as a worker, with other things: its messages are the batches that clients have
 * handed in, its acknowledgements are the answers. Two parts have little to do here and get the least there is: the fence is
 * our own door, which shuts at once, and a disk that does not answer cannot be aborted. */
#include "server/shutdown.h"

#include "base/cleanup.h"

#include <assert.h>

#define SECOND_NS          UINT64_C(1000000000)
#define INSISTED_MOMENT_NS (SECOND_NS / 5)
#define QUIET_NS           (SECOND_NS / 10)

/* An answer is on the wire in milliseconds, and clients close within a second of GOAWAY: two seconds each are plenty, a
 * fifth of a short grace will do, and a very short one is shared out by the core. The rest is for the disk. */
static uint64_t share_of(uint64_t grace_ns)
{
    return grace_ns < SECOND_NS ? 0 : sl_min_u64(grace_ns / 5, 2 * SECOND_NS);
}

sl_budget_wish sl_shutdown_wish(uint64_t grace_ns)
{
    return (sl_budget_wish){ .grace_ns = grace_ns,
                             .part_ns = { [SL_BUDGET_FENCE] = sl_budget_least_ns(SL_BUDGET_FENCE),
                                          [SL_BUDGET_ABORT] = sl_budget_least_ns(SL_BUDGET_ABORT),
                                          [SL_BUDGET_FLUSH] = share_of(grace_ns),
                                          [SL_BUDGET_CLOSE] = share_of(grace_ns) } };
}

void sl_shutdown_init(sl_shutdown *shutdown, uint64_t grace_ns, const sl_shutdown_steps *steps, void *ctx,
                      const sl_logger *log)
{
    const sl_budget_wish wish = sl_shutdown_wish(grace_ns);
    sl_budget budget;
    const sl_err err = sl_budget_make(&wish, &budget);

    assert(err == SL_OK);
    (void)err;
    *shutdown = (sl_shutdown){ .steps = *steps, .ctx = ctx, .log = log, .phases_told = SL_DRAIN_FENCING };
    sl_drain_init(&shutdown->drain, &budget, true);
}

bool sl_shutdown_is_on(const sl_shutdown *shutdown)
{
    return shutdown->drain.phase != SL_DRAIN_RUNNING;
}

bool sl_shutdown_is_over(const sl_shutdown *shutdown)
{
    return shutdown->drain.phase == SL_DRAIN_STOPPED;
}

const char *sl_shutdown_reason(const sl_shutdown *shutdown)
{
    return shutdown->reason;
}

uint64_t sl_shutdown_end_ns(const sl_shutdown *shutdown)
{
    const sl_budget *const budget = &shutdown->drain.budget;
    const uint64_t end_ns =
        sl_add_sat_u64(shutdown->drain.began_ns, budget->grace_ns - budget->part_ns[SL_BUDGET_RESERVE] / 2);

    return shutdown->insisted ? sl_min_u64(end_ns, shutdown->insisted_ns + INSISTED_MOMENT_NS) : end_ns;
}

/* --- what the log says --- */

static void tell_begin(const sl_shutdown *shutdown, const sl_drain_held *held)
{
    sl_log(shutdown->log, SL_LOG_INFO, "shutting down", SL_LOG_STR("reason", shutdown->reason),
           SL_LOG_DURATION("grace", shutdown->drain.budget.grace_ns),
           SL_LOG_U64("batches_inside", held->started), SL_LOG_U64("calls", held->unconfirmed),
           SL_LOG_U64("connections", held->open));
}

/* What a phase waited for, of what is held now. */
static uint64_t left_of(const sl_drain *drain, unsigned phase)
{
    switch ((sl_drain_phase)phase) {
    case SL_DRAIN_FENCING: return drain->held.gates;
    case SL_DRAIN_SETTLING:
    case SL_DRAIN_ABORTING: return drain->held.started;
    case SL_DRAIN_FLUSHING: return drain->held.unconfirmed;
    case SL_DRAIN_CLOSING: return drain->held.open;
    case SL_DRAIN_RUNNING:
    case SL_DRAIN_STOPPED:
    case SL_DRAIN_PHASE_COUNT_: break;
    }
    return 0;
}

/* Connections that their clients have not closed are no loss when no call was on them. */
static sl_log_level level_of(const sl_drain *drain, unsigned phase)
{
    const bool late = drain->ends[phase] == SL_DRAIN_END_TIMED_OUT;

    return late && phase != SL_DRAIN_CLOSING ? SL_LOG_WARN : SL_LOG_INFO;
}

static void tell_phase(const sl_shutdown *shutdown, unsigned phase)
{
    const sl_drain *const drain = &shutdown->drain;
    const unsigned part = phase - SL_DRAIN_FENCING;

    if (drain->ends[phase] == SL_DRAIN_END_NONE) /* it was not needed */
        return;
    if (shutdown->was_idle && drain->ends[phase] == SL_DRAIN_END_DONE) /* nothing had begun that could end */
        return;
    sl_log(shutdown->log, level_of(drain, phase), "shutdown phase ended",
           SL_LOG_STR("phase", sl_drain_phase_name((sl_drain_phase)phase)),
           SL_LOG_STR("end", shutdown->insisted && drain->ends[phase] == SL_DRAIN_END_FAILED
                                 ? sl_drain_end_name(SL_DRAIN_END_CUT_SHORT)
                                 : sl_drain_end_name(drain->ends[phase])),
           SL_LOG_DURATION("used", drain->used_ns[phase]),
           SL_LOG_DURATION("limit", drain->budget.part_ns[part]), SL_LOG_U64("left", left_of(drain, phase)));
}

static void tell_phases(sl_shutdown *shutdown)
{
    for (; shutdown->phases_told < shutdown->drain.phase; shutdown->phases_told++)
        tell_phase(shutdown, shutdown->phases_told);
}

/* --- what it does --- */

bool sl_shutdown_begin(sl_shutdown *shutdown, sl_drain_reason reason, const char *text, uint64_t now_ns)
{
    sl_drain_held held;
    sl_text made;

    if (sl_shutdown_is_on(shutdown))
        return false;
    held = shutdown->steps.held(shutdown->ctx);
    sl_text_init(&made, shutdown->reason, sizeof shutdown->reason);
    sl_text_add(&made, text == NULL ? sl_drain_reason_name(reason) : text);

    shutdown->was_idle = reason == SL_DRAIN_REASON_START_FAILED && held.gates == 0 && held.open == 0;
    sl_drain_set_held(&shutdown->drain, &held);
    (void)sl_drain_begin(&shutdown->drain, (sl_drain_call){ .reason = reason }, now_ns);
    tell_begin(shutdown, &held);
    return true;
}

void sl_shutdown_insist(sl_shutdown *shutdown, uint64_t now_ns)
{
    static const sl_drain_phase waits[] = { SL_DRAIN_ABORTING, SL_DRAIN_FLUSHING, SL_DRAIN_CLOSING };

    if (!sl_shutdown_is_on(shutdown) || shutdown->insisted)
        return;
    shutdown->insisted = true;
    shutdown->insisted_ns = now_ns;
    sl_log(shutdown->log, SL_LOG_WARN, "second signal: nothing is waited for any more");
    if (sl_shutdown_is_over(shutdown))
        return; /* the owner may still be waiting for the store */
    (void)sl_drain_begin(&shutdown->drain,
                         (sl_drain_call){ .reason = shutdown->drain.reason, .escalates = true }, now_ns);
    for (size_t i = 0; i < SL_COUNT_OF(waits); i++)
        sl_drain_step_failed(&shutdown->drain,
                             (sl_drain_failure){ .phase = waits[i], .hopeless = UINT64_MAX });
}

static void carry_out(sl_shutdown *shutdown, unsigned actions)
{
    if ((actions & SL_DRAIN_CLOSE_GATE) != 0)
        shutdown->steps.refuse(shutdown->ctx, shutdown->reason);
    if ((actions & SL_DRAIN_CLOSE) == 0)
        return;
    shutdown->steps.cut(shutdown->ctx);
    shutdown->steps.farewell(shutdown->ctx);
}

/* Until when the last answers are left alone with their readers; see the head of shutdown.h. */
static uint64_t quiet_until_ns(const sl_shutdown *shutdown)
{
    const uint64_t half_ns = shutdown->drain.budget.part_ns[SL_BUDGET_FLUSH] / 2;

    return shutdown->answers_ns == 0 ? 0 : shutdown->answers_ns + sl_min_u64(half_ns, QUIET_NS);
}

static uint64_t tick(sl_shutdown *shutdown, uint64_t now_ns)
{
    sl_drain_held held = shutdown->steps.held(shutdown->ctx);
    uint64_t wake_ns;

    if (held.unconfirmed > 0)
        shutdown->answers_ns = now_ns;
    const bool quiet = held.unconfirmed == 0 && now_ns < quiet_until_ns(shutdown);

    held.unconfirmed += quiet;
    sl_drain_set_held(&shutdown->drain, &held);
    wake_ns = sl_drain_tick(&shutdown->drain, now_ns);
    tell_phases(shutdown);
    return quiet ? sl_min_u64(wake_ns, quiet_until_ns(shutdown)) : wake_ns;
}

/* What is due is done before the machine moves on: a second signal may leave a phase whose step was never carried out. */
uint64_t sl_shutdown_turn(sl_shutdown *shutdown, uint64_t now_ns)
{
    unsigned actions = sl_drain_take_actions(&shutdown->drain);
    uint64_t wake_ns;

    if (!sl_shutdown_is_on(shutdown))
        return UINT64_MAX;
    do {
        carry_out(shutdown, actions);
        wake_ns = tick(shutdown, now_ns);
    } while ((actions = sl_drain_take_actions(&shutdown->drain)) != 0);
    return wake_ns;
}

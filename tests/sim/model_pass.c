/* tests/sim/model_pass.c — the section "Checkpoint" of the rules, and the time for which tick must ask.
 *
 * How many filtered events lie below a position is known to the reader only; so the model counts within bounds: a
 * checkpoint must be written when the lower one is enough, and may not when even the upper one is not. */
#include "model.h"

#include "fail.h"

#include <inttypes.h>

typedef struct bounds {
    uint32_t min, max;
} bounds;

/* Takes those advance() calls into the sums that are wholly below. */
static void fold(model_lane *lane, uint64_t below)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < lane->look_count; i++) {
        if (lane->looks[i].position >= below) {
            lane->looks[kept++] = lane->looks[i];
            continue;
        }
        lane->folded_min += lane->looks[i].doubtful ? 0 : lane->looks[i].considered;
        lane->folded_max += lane->looks[i].considered;
    }
    lane->look_count = kept;
}

void model_looked(model *m, sl_lane lane, uint64_t position, uint32_t considered, bool doubtful)
{
    model_lane *l = &m->lanes[lane];
    if (l->look_count == MODEL_LOOKS_MAX) { /* two old ones become one; their numbers are only bounds then */
        l->looks[1].considered += l->looks[0].considered;
        l->looks[1].doubtful = true;
        for (uint32_t i = 1; i < l->look_count; i++)
            l->looks[i - 1] = l->looks[i];
        l->look_count--;
    }
    l->looks[l->look_count++] =
        (struct model_look){ .position = position, .considered = considered, .doubtful = doubtful };
}

/* Messages of a lane in [count_from, below): offered ones, and those of which only an upper bound is known. */
static bounds count_passed(model *m, sl_lane lane, uint64_t below)
{
    model_lane *l = &m->lanes[lane];
    const sim_stream *stream = &m->streams[lane];
    fold(l, below);
    bounds count = { .min = l->folded_min, .max = l->folded_max };
    for (uint32_t i = 0; i < l->look_count; i++)
        count.max += l->looks[i].considered;
    for (uint32_t i = sim_stream_find(stream, l->count_from);
         i < stream->event_count && stream->events[i].position < below; i++) {
        const sim_event *event = &stream->events[i];
        count.min += event->concerns && !event->gone;
        count.max += event->concerns;
    }
    return count;
}

/* Without the question of time. */
static bool is_enough(const model *m, uint32_t count)
{
    const uint32_t least = m->settings.checkpoint_count_min > 0 ? m->settings.checkpoint_count_min : 1;
    return count >= least || (count >= 1 && m->message_count == 0);
}

static bool is_time(const model *m, sl_lane lane)
{
    return m->settings.checkpoint_after_ns > 0 &&
           m->now_ns - m->lanes[lane].checkpoint_ns >= m->settings.checkpoint_after_ns;
}

static bool is_owed(const model *m, sl_lane lane, uint32_t count)
{
    return count >= m->settings.checkpoint_count_max || (is_time(m, lane) && is_enough(m, count));
}

void model_take_checkpoint(model *m, const sl_effect *effect)
{
    const sl_lane lane = effect->checkpoint.lane;
    const uint64_t below = model_below(m, lane);
    model_lane *l = &m->lanes[lane];
    const bounds count = count_passed(m, lane, below);
    if (effect->checkpoint.below != below)
        sim_fail(SIM_RULE_CHECKPOINT, "checkpoint of lane %d at %" PRIu64 " instead of %" PRIu64, (int)lane,
                 effect->checkpoint.below, below);
    if (below <= l->checkpoint || m->passed_now[lane])
        sim_fail(SIM_RULE_CHECKPOINT, "checkpoint of lane %d has not moved from %" PRIu64, (int)lane, below);
    if (!is_owed(m, lane, count.max))
        sim_fail(SIM_RULE_CHECKPOINT, "checkpoint of lane %d too early: at most %" PRIu32 " were passed",
                 (int)lane, count.max);
    model_judge_cover(m, lane, l->checkpoint, below);
    m->passed_now[lane] = true;
    l->checkpoint = l->count_from = below;
    l->checkpoint_ns = m->now_ns;
    l->folded_min = l->folded_max = 0;
    for (uint32_t i = 0; i < l->look_count; i++)
        l->looks[i].doubtful = true;
}

void model_judge_checkpoints(model *m)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        const uint64_t below = model_below(m, (sl_lane)lane);
        const bounds count = count_passed(m, (sl_lane)lane, below);
        if (!m->passed_now[lane] && below > m->lanes[lane].checkpoint &&
            is_owed(m, (sl_lane)lane, count.min) && count.min > 0)
            sim_fail(SIM_RULE_CHECKPOINT,
                     "lane %d: %" PRIu32 " were passed below %" PRIu64 " and no checkpoint was written", lane,
                     count.min, below);
    }
}

/* --- the next wake ---------------------------------------------------------------------------------------- */

typedef struct wakes {
    uint64_t asked_ns; /* the claim of the core */
    uint64_t must_ns;  /* the earliest thing that will happen by itself */
    bool known;        /* something that may happen is at asked_ns */
} wakes;

static void due_at(wakes *w, uint64_t at_ns, bool must)
{
    w->known = w->known || at_ns == w->asked_ns;
    if (must && at_ns < w->must_ns)
        w->must_ns = at_ns;
}

static bool is_wanted(model *m, const model_message *message)
{
    return model_is_pinned(m) ? model_pinned_must_go(m, message) : m->ring_count > 0;
}

static void messages_due(model *m, wakes *w)
{
    for (uint32_t i = 0; i < m->message_count; i++) {
        const model_message *message = &m->messages[i];
        if (message->live)
            due_at(w, message->until_ns, true);
        else if (message->not_before_ns > m->now_ns)
            due_at(w, message->not_before_ns, message->read && is_wanted(m, message));
    }
}

static void checkpoints_due(model *m, wakes *w)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        const uint64_t below = model_below(m, (sl_lane)lane);
        const bounds count = count_passed(m, (sl_lane)lane, below);
        if (below > m->lanes[lane].checkpoint && m->settings.checkpoint_after_ns > 0 &&
            is_enough(m, count.max))
            due_at(w, m->lanes[lane].checkpoint_ns + m->settings.checkpoint_after_ns,
                   count.min > 0 && is_enough(m, count.min));
    }
}

void model_judge_wake(model *m, uint64_t wake_ns)
{
    wakes w = { .asked_ns = wake_ns, .must_ns = SL_NEVER };
    messages_due(m, &w);
    checkpoints_due(m, &w);
    for (uint32_t i = 0; i < m->consumer_count; i++)
        if (m->consumers[i].state == SL_CONSUMER_AWAY)
            due_at(&w, m->consumers[i].window_end_ns, true);
    if (wake_ns <= m->now_ns)
        sim_fail(SIM_RULE_TIME, "tick asks to come back at once: a busy loop");
    if (wake_ns > w.must_ns)
        sim_fail(SIM_RULE_TIME, "tick wants %" PRIu64 ", but something is due at %" PRIu64, wake_ns,
                 w.must_ns);
    if (!w.known && wake_ns != SL_NEVER)
        sim_fail(SIM_RULE_TIME, "tick wants %" PRIu64 ", when nothing is due (next: %" PRIu64 ")", wake_ns,
                 w.must_ns);
}

/* worker/view.c — see view.h. */
#include "worker/view.h"

#include "base/cleanup.h"
#include "core/removal.h"

#include <assert.h>

const char *sl_member_state_name(sl_member_state state)
{
    static const char *const names[] = { "unmade", "working", "ended" };

    static_assert(SL_COUNT_OF(names) == SL_MEMBER_STATE_COUNT_, "one name for each state");
    assert((unsigned)state < SL_COUNT_OF(names));
    return names[state];
}

const char *sl_crew_end_name(sl_crew_end end)
{
    static const char *const names[] = { "clean", "bad configuration", "not started", "lost", "unclean" };

    static_assert(SL_COUNT_OF(names) == SL_CREW_UNCLEAN + 1, "one name for each end");
    assert((unsigned)end < SL_COUNT_OF(names));
    return names[end];
}

const char *sl_work_end_name(sl_work_end end)
{
    static const char *const names[] = { "as asked", "refused", "lost" };

    static_assert(SL_COUNT_OF(names) == SL_WORK_ENDED_LOST + 1, "one name for each end");
    assert((unsigned)end < SL_COUNT_OF(names));
    return names[end];
}

bool sl_member_drains(const sl_member_view *member)
{
    return member->state == SL_MEMBER_WORKING && member->phase != SL_DRAIN_RUNNING;
}

/* One whose source has failed is made again. */
static bool drains_for_good(const sl_member_view *member)
{
    return sl_member_drains(member) && (member->report.reason == SL_DRAIN_REASON_OPERATOR ||
                                        member->report.reason == SL_DRAIN_REASON_FINISHED);
}

const sl_member_view *sl_view_last_to_drain(const sl_crew_view *view)
{
    const sl_member_view *last = NULL;

    for (size_t i = 0; i < view->member_count; i++) {
        const sl_member_view *const member = &view->members[i];
        if (drains_for_good(member))
            last = member;
        else if (member->state != SL_MEMBER_ENDED)
            return NULL;
    }
    return last;
}

uint64_t sl_member_remaining_ns(const sl_member_view *member, uint64_t now_ns)
{
    const uint64_t used_ns = now_ns - sl_min_u64(member->drain_began_ns, now_ns);

    const uint64_t grace_ns = member->report.grace_ns; /* an operator may have given less than the budget */

    return sl_member_drains(member) ? grace_ns - sl_min_u64(used_ns, grace_ns) : 0;
}

/* What is not there any more holds nothing that waiting could save. */
uint64_t sl_member_held(const sl_member_view *member)
{
    const sl_work_counts *const counts = &member->counts;

    if (member->state != SL_MEMBER_WORKING)
        return 0;
    return (uint64_t)counts->waiting + counts->running + counts->delayed + counts->settling;
}

uint64_t sl_view_held(const sl_crew_view *view)
{
    uint64_t held = 0;

    for (size_t i = 0; i < view->member_count; i++)
        held += sl_member_held(&view->members[i]);
    return held;
}

uint32_t sl_view_removal_cost(const sl_crew_view *view)
{
    uint64_t running = 0;

    for (size_t i = 0; i < view->member_count; i++)
        if (view->members[i].state == SL_MEMBER_WORKING)
            running += view->members[i].counts.running;
    return sl_removal_cost(running, sl_view_held(view) - running);
}

bool sl_report_timed_out(const sl_drain_report *report)
{
    for (unsigned i = 0; i < SL_DRAIN_PHASE_COUNT_; i++)
        if (report->phases[i].end == SL_DRAIN_END_TIMED_OUT)
            return true;
    return false;
}

/* --- ready --- */

static const char *unready_words(const sl_member_view *member)
{
    if (member->state == SL_MEMBER_UNMADE)
        return " waits to be started";
    if (member->state == SL_MEMBER_ENDED)
        return " has ended";
    if (member->phase != SL_DRAIN_RUNNING)
        return " drains";
    return member->counts.is_up ? NULL : " is not connected to its source";
}

static void say_unready(const sl_member_view *member, const char *words, sl_text *why)
{
    sl_text_add(why, "Worker ");
    sl_text_add(why, member->name);
    sl_text_add(why, words);
    if (member->problem[0] != '\0') {
        sl_text_add(why, ": ");
        sl_text_add(why, member->problem);
    }
}

bool sl_view_is_ready(const sl_crew_view *view, sl_text *why)
{
    if (view->is_draining) {
        if (why != NULL) {
            sl_text_add(why, "All workers drain: ");
            sl_text_add(why, sl_drain_reason_name(view->reason));
        }
        return false;
    }
    for (size_t i = 0; i < view->member_count; i++) {
        const char *const words = unready_words(&view->members[i]);
        if (words != NULL && why != NULL)
            say_unready(&view->members[i], words, why);
        if (words != NULL)
            return false;
    }
    return true;
}

/* --- all drains as one --- */

static sl_drain_end worse_end(sl_drain_end a, sl_drain_end b)
{
    return a > b ? a : b; /* the list is in that order */
}

static void add_phases(sl_drain_report *sum, const sl_drain_report *report)
{
    for (unsigned i = 0; i < SL_DRAIN_PHASE_COUNT_; i++) {
        sum->phases[i].used_ns = sl_max_u64(sum->phases[i].used_ns, report->phases[i].used_ns);
        sum->phases[i].end = worse_end(sum->phases[i].end, report->phases[i].end);
        sum->phases[i].failed_steps += report->phases[i].failed_steps;
    }
}

static void add_report(sl_drain_report *sum, const sl_drain_report *report)
{
    sum->escalated = sum->escalated || report->escalated;
    sum->clean = sum->clean && report->clean;
    sum->grace_ns = sl_max_u64(sum->grace_ns, report->grace_ns);
    sum->used_ns = sl_max_u64(sum->used_ns, report->used_ns);
    sum->finished += report->finished;
    sum->handed_back += report->handed_back;
    sum->interrupted += report->interrupted;
    sum->abandoned += report->abandoned;
    sum->acks_unconfirmed += report->acks_unconfirmed;
    sum->failed_steps += report->failed_steps;
    add_phases(sum, report);
}

sl_drain_report sl_view_sum(const sl_crew_view *view)
{
    sl_drain_report sum = { .reason = view->reason, .escalated = view->is_escalated, .clean = true };

    for (size_t i = 0; i < view->member_count; i++) {
        const sl_member_view *const member = &view->members[i];
        if (member->has_report)
            add_report(&sum, &member->report);
        sum.clean = sum.clean && !member->is_left_behind;
    }
    return sum;
}

/* worker/crew_look.c — from the fields of a crew to a view of it. */
#include "worker/crew_private.h"

#include "base/cleanup.h"

void sl_crew_add_counts(sl_work_counts *sum, const sl_work_counts *counts)
{
    sum->offered += counts->offered;
    sum->begun += counts->begun;
    sum->finished += counts->finished;
    sum->acked += counts->acked;
    sum->retried += counts->retried;
    sum->parked += counts->parked;
    sum->released += counts->released;
    sum->interrupted += counts->interrupted;
    sum->lost += counts->lost;
    sum->timed_out += counts->timed_out;
    sum->wedged += counts->wedged;
    sum->unsure += counts->unsure;
    sum->acks_replayed += counts->acks_replayed;
    sum->acks_confirmed_late += counts->acks_confirmed_late;
}

/* Only what is there now holds something; totals go on from life to life. */
static void look_at_work(const sl_member *member, sl_member_view *view)
{
    const sl_work *const work = member->work;
    const char *const problem = sl_work_problem(work);

    view->counts = sl_work_get_counts(work);
    sl_crew_add_counts(&view->counts, &member->past);
    view->phase = sl_work_phase(work);
    view->source = sl_work_source(work);
    view->handler = sl_work_handler(work);
    view->destinations = sl_work_destinations(work);
    if (problem[0] != '\0')
        view->problem = problem;
    if (view->phase == SL_DRAIN_RUNNING)
        return;
    view->has_report = true;
    view->report = sl_work_report(work);
    view->end = sl_work_get_end(work);
}

static void look_at_member(const sl_member *member, sl_member_view *view)
{
    *view = (sl_member_view){ .name = member->made_of->settings.name,
                              .state = member->state,
                              .slots = member->made_of->settings.slots,
                              .budget = member->made_of->settings.budget,
                              .counts = member->past,
                              .phase = SL_DRAIN_STOPPED,
                              .has_report = member->has_report,
                              .is_left_behind = member->is_left_behind,
                              .report = member->report,
                              .drain_began_ns = member->drain_began_ns,
                              .end = member->end,
                              .problem = member->problem,
                              .restarts = member->restarts,
                              .drain_timeouts = member->drain_timeouts,
                              .again_ns = member->again_ns };
    if (member->state == SL_MEMBER_WORKING)
        look_at_work(member, view);
}

/* What the process would end with if it ended now: what was decided, or else whether every drain was clean. */
static sl_crew_end end_of(const sl_crew *crew)
{
    if (crew->end != SL_CREW_CLEAN)
        return crew->end;
    return sl_view_sum(&crew->view).clean ? SL_CREW_CLEAN : SL_CREW_UNCLEAN;
}

/* Operators stop workers one by one, and when they have stopped all of them, whoever asks the process sees its end begin. */
static void look_at_drains(sl_crew_view *view)
{
    const sl_member_view *const last = view->is_draining ? NULL : sl_view_last_to_drain(view);

    if (last == NULL)
        return;
    view->is_draining = true;
    view->reason = last->report.reason;
    view->drain_began_ns = last->drain_began_ns;
}

const sl_crew_view *sl_crew_look(sl_crew *crew)
{
    for (size_t i = 0; i < crew->member_count; i++)
        look_at_member(&crew->members[i], &crew->member_views[i]);
    crew->view = (sl_crew_view){ .members = crew->member_views,
                                 .member_count = crew->member_count,
                                 .now_ns = sl_loop_now_ns(crew->loop),
                                 .now_wall_ns = sl_loop_wall_ns(crew->loop),
                                 .started_ns = crew->started_ns,
                                 .started_wall_ns = crew->started_wall_ns,
                                 .is_draining = crew->is_draining,
                                 .is_escalated = crew->is_escalated,
                                 .reason = crew->reason,
                                 .drain_began_ns = crew->drain_began_ns,
                                 .problem = crew->problem };
    crew->view.end = end_of(crew);
    look_at_drains(&crew->view);
    return &crew->view;
}

/* tests/unit/worker/view_rig.h — a view of two workers, one with work and one without, to be changed by tests. */
#ifndef SL_TESTS_VIEW_RIG_H
#define SL_TESTS_VIEW_RIG_H

#include "worker/view.h"

typedef struct view_rig {
    sl_crew_view view;
    sl_member_view members[2];
} view_rig;

static inline sl_member_view view_rig_member(const char *name)
{
    sl_member_view member = { .name = name,
                              .state = SL_MEMBER_WORKING,
                              .slots = 4,
                              .phase = SL_DRAIN_RUNNING,
                              .problem = "",
                              .counts.is_up = true };

    (void)sl_budget_make(&(sl_budget_wish){ .grace_ns = UINT64_C(30000000000) }, &member.budget);
    return member;
}

static inline void view_rig_init(view_rig *rig)
{
    rig->members[0] = view_rig_member("billing");
    rig->members[1] = view_rig_member("mail");
    rig->view = (sl_crew_view){ .members = rig->members,
                                .member_count = 2,
                                .now_ns = UINT64_C(100000000000),
                                .now_wall_ns = UINT64_C(1794838412123000000),
                                .started_ns = UINT64_C(60000000000),
                                .started_wall_ns = UINT64_C(1794838372123000000),
                                .problem = "" };
}

/* Both drain since four seconds because of SIGTERM; the first holds three messages. */
static inline void view_rig_drain(view_rig *rig)
{
    rig->view.is_draining = true;
    rig->view.reason = SL_DRAIN_REASON_SIGTERM;
    for (int i = 0; i < 2; i++) {
        sl_member_view *const member = &rig->members[i];
        member->phase = SL_DRAIN_SETTLING;
        member->has_report = true;
        member->drain_began_ns = rig->view.now_ns - UINT64_C(4000000000);
        member->report = (sl_drain_report){ .reason = SL_DRAIN_REASON_SIGTERM,
                                            .clean = true,
                                            .grace_ns = UINT64_C(30000000000),
                                            .used_ns = UINT64_C(4000000000) };
        member->report.phases[SL_DRAIN_FENCING].used_ns = UINT64_C(1500000000);
        member->report.phases[SL_DRAIN_FENCING].end = SL_DRAIN_END_DONE;
        member->report.finished = 5;
        member->report.handed_back = 2;
    }
    rig->members[0].counts.running = 2;
    rig->members[0].counts.settling = 1;
}

static inline void view_rig_end(view_rig *rig)
{
    for (int i = 0; i < 2; i++) {
        rig->members[i].state = SL_MEMBER_ENDED;
        rig->members[i].phase = SL_DRAIN_STOPPED;
        rig->members[i].counts.running = rig->members[i].counts.settling = 0;
    }
}

#endif

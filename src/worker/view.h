/* worker/view.h — a whole crew at one moment, as plain values: what pages, metrics, the report and the exit code are made of.
 *
 * The crew fills it from its members; everything that shows something only reads it. So each of those can be tested without
 * a worker, a source or time. */
#ifndef SL_WORKER_VIEW_H
#define SL_WORKER_VIEW_H

#include "worker/crew.h"

struct cJSON;

typedef enum sl_member_state {
    SL_MEMBER_UNMADE,  /* not yet, or it could not be made; paused until again_ns */
    SL_MEMBER_WORKING, /* connecting, up or draining */
    SL_MEMBER_ENDED,   /* for good */
    SL_MEMBER_STATE_COUNT_
} sl_member_state;

typedef struct sl_member_view {
    const char *name;
    sl_member_state state;
    uint32_t slots;
    sl_budget budget;
    sl_work_counts counts; /* totals of all its lives; what is held is of this one */
    sl_drain_phase phase;  /* STOPPED also while it is not there */
    bool has_report;       /* a drain of it has begun, now or in an earlier life */
    bool is_left_behind;   /* its drain did not end in time, and nobody waits for it any more */
    sl_drain_report report;
    uint64_t drain_began_ns; /* monotonic; with has_report */
    sl_work_end end;         /* when a life of it is over */
    const char *problem;     /* the last sentence about it; "" */
    uint64_t restarts, drain_timeouts;
    uint64_t again_ns; /* UNMADE: when it will be tried; 0: at once */
    /* NULL unless WORKING. */
    const sl_source *source;
    const sl_handler *handler;
    const sl_destinations *destinations;
} sl_member_view;

typedef struct sl_crew_view {
    const sl_member_view *members;
    size_t member_count;
    uint64_t now_ns, now_wall_ns;
    uint64_t started_ns, started_wall_ns;
    bool is_draining; /* all of it */
    bool is_escalated;
    sl_drain_reason reason; /* the first one */
    uint64_t drain_began_ns;
    sl_crew_end end;     /* with what is known now */
    const char *problem; /* the first one that ends the crew; "" */
} sl_crew_view;

/* Every member is up and none drains. Otherwise `why` (NULL is allowed) gets a sentence about the first that is not. */
bool sl_view_is_ready(const sl_crew_view *view, sl_text *why);

/* Messages that would be lost or repeated if the process were killed now. 0: it is safe to terminate (B17). */
uint64_t sl_view_held(const sl_crew_view *view);
uint64_t sl_member_held(const sl_member_view *member);

/* What it would cost to remove this replica now (core/removal.h); 0 exactly when nothing is held. */
uint32_t sl_view_removal_cost(const sl_crew_view *view);

bool sl_member_drains(const sl_member_view *member);
/* Each member has ended for good, or drains and will have: the process ends with them, so it drains. One that drains; NULL: it is not so. */
const sl_member_view *sl_view_last_to_drain(const sl_crew_view *view);
/* How much of its grace is left; 0 when it does not drain. */
uint64_t sl_member_remaining_ns(const sl_member_view *member, uint64_t now_ns);
/* A phase of the drain took all of its time. */
bool sl_report_timed_out(const sl_drain_report *report);

/* All last drains as one: counts are sums, times are those of the slowest, because they ran side by side. */
sl_drain_report sl_view_sum(const sl_crew_view *view);

/* "unmade", "working", "ended"; "clean", "bad configuration", "not started", "lost", "unclean"; "as asked", "refused", "lost". */
const char *sl_member_state_name(sl_member_state state);
const char *sl_crew_end_name(sl_crew_end end);
const char *sl_work_end_name(sl_work_end end);

#endif

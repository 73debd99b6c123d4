/* worker/crew_private.h — the fields of a crew, for crew*.c and their tests.
 *
 *      crew.c            start, turns, signals, the end
 *      crew_member.c     one member: made, watched, retired, judged
 *      crew_supervise.c  is a member made again, and when: pure
 *      crew_look.c       the view of everything (view.h)
 *      crew_tell.c       the log, and what systemd is told
 *
 * Nothing is freed or begun from inside of a callback of a worker: those only note something. All state is moved at the end of
 * the turn, at one place. */
#ifndef SL_WORKER_CREW_PRIVATE_H
#define SL_WORKER_CREW_PRIVATE_H

#include "net/notify.h"
#include "worker/status.h"
#include "worker/view.h"

enum {
    SL_CREW_PROBLEM_BYTES = 512,
    SL_CREW_ADDRESS_BYTES = 300 /* "[name]:port" */
};

/* --- supervision --- */

typedef struct sl_crew_rules {
    uint64_t pause_first_ns, pause_max_ns; /* doubles from one to the other */
    uint64_t health_ns;                    /* up for so long: earlier failures are forgotten */
    uint32_t restarts_max;
} sl_crew_rules;

extern const sl_crew_rules sl_crew_rules_default; /* restarts_max is the settings' */

typedef enum sl_crew_verdict {
    SL_CREW_STAYS_ENDED,
    SL_CREW_MADE_AGAIN,
    SL_CREW_GIVES_UP
} sl_crew_verdict;

/* How a life of a member was. */
typedef struct sl_crew_life {
    bool was_made;
    sl_work_end end;        /* was_made */
    sl_drain_reason reason; /* was_made: of its drain */
    bool was_of_use;
    uint64_t up_ns; /* was_of_use: how long ago it came up */
} sl_crew_life;

/* *failures: in a row, counted here. *ret_pause_ns: with MADE_AGAIN. */
sl_crew_verdict sl_crew_judge(const sl_crew_rules *rules, const sl_crew_life *life, uint32_t *failures,
                              uint64_t *ret_pause_ns);

/* --- the crew --- */

typedef struct sl_crew sl_crew;

typedef struct sl_member {
    const sl_crew_member *made_of;
    sl_crew *crew;
    sl_member_state state;
    sl_work *work;        /* WORKING */
    uint64_t again_ns;    /* UNMADE */
    uint64_t deadline_ns; /* of its drain, after which nobody waits for it; UINT64_MAX: it does not drain */
    uint64_t drain_began_ns, up_since_ns;
    bool was_up;      /* in this life */
    bool was_ever_up; /* in any */
    bool has_report;  /* `report` is of its last life */
    bool is_left_behind;
    sl_drain_report report;
    sl_work_end end;
    sl_work_counts past; /* sums of its earlier lives */
    uint32_t failures;   /* in a row */
    uint64_t restarts, drain_timeouts;
    char problem[SL_CREW_PROBLEM_BYTES];
} sl_member;

struct sl_crew {
    const sl_crew_settings *settings;
    sl_crew_rules rules;
    sl_crew_hooks hooks;
    sl_logger log;
    sl_loop *loop;
    sl_status_pages *pages;
    sl_status_owner pages_owner;
    char status_address[SL_CREW_ADDRESS_BYTES];

    sl_member members[SL_CREW_MEMBERS_MAX];
    size_t member_count;
    sl_timer timer;   /* the next deadline, or the next member that is made again */
    bool is_starting; /* members are being made for the first time */
    bool was_ready;
    bool is_draining, is_escalated, is_over;
    uint32_t signal_count; /* SIGTERM and SIGINT */
    int signal_first;
    uint64_t signalled_ns;               /* when the first one came */
    sl_drain_reason reason, last_reason; /* of all of it; of the last member that ended by itself */
    uint64_t started_ns, started_wall_ns, drain_began_ns;
    sl_crew_end end; /* CLEAN until something worse is known */
    char problem[SL_CREW_PROBLEM_BYTES];

    sl_notify *notify; /* NULL: nobody wants to hear */
    sl_timer watchdog;
    uint64_t watchdog_ns;

    sl_crew_view view;
    sl_member_view member_views[SL_CREW_MEMBERS_MAX];
};

/* As sl_crew_run(), with other pauses: for tests. */
sl_crew_end sl_crew_run_by(const sl_crew_rules *rules, const sl_crew_settings *settings,
                           const sl_crew_member *members, size_t member_count, const sl_crew_hooks *hooks,
                           sl_text *problem);

/* What the signals do, without signals. */
void sl_crew_signalled(sl_crew *crew, int signal_number);

/* What is given up, and why. */
typedef struct sl_crew_failure {
    sl_crew_end end; /* not CLEAN */
    sl_drain_reason reason;
    sl_crew_cause cause;
} sl_crew_failure;

/* Only the first call counts. */
void sl_crew_begin_drain(sl_crew *crew, sl_drain_reason reason);
void sl_crew_give_up(sl_crew *crew, sl_crew_failure failure, const char *sentence);

/* crew_member.c */
void sl_crew_make(sl_member *member);
uint64_t sl_crew_look_after(sl_member *member, uint64_t now_ns); /* returns when to look again */
void sl_crew_keep_problem(char kept[SL_CREW_PROBLEM_BYTES], const char *sentence);

/* crew_look.c */
const sl_crew_view *sl_crew_look(sl_crew *crew);
void sl_crew_add_counts(sl_work_counts *sum, const sl_work_counts *counts);

/* crew_tell.c */
void sl_crew_tell_start(const sl_crew *crew);
void sl_crew_tell_ready(sl_crew *crew);
void sl_crew_tell_draining(sl_crew *crew);
void sl_crew_tell_retired(const sl_crew *crew, const sl_member *member,
                          const sl_work_counts *counts); /* of the life that is over */
void sl_crew_tell_left_behind(const sl_crew *crew, const sl_member *member);
void sl_crew_tell_unmade(const sl_crew *crew, const sl_member *member, sl_err err);
void sl_crew_notify_open(sl_crew *crew);
void sl_crew_notify_close(sl_crew *crew);

#endif

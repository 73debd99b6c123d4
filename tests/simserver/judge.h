/* tests/simserver/judge.h — an observer who knows what clients sent and got, and nothing of the server.
 *
 * He does not predict what the server does: with bytes on the way and a disk that takes its time, much is open. For every delivery
 * he keeps what may have happened to its lease meanwhile. A lease is *surely held* as long as nothing that could have ended it
 * was said or happened: no claim was sent, no hand-back, the call and the power were not cut, and not so much time is over that it may
 * have run out. Everything that a surely held lease forbids is a broken rule. Where a rule needs the opposite (what must be over),
 * he takes the last moment instead of the first.
 *
 * Time. `said`: when the bytes left the server, which the network knows. A lease was granted then, or, while the disk had work, at
 * most as early as the disk became busy. The server counts a group's time from its own start with the monotonic clock, so a jump of the wall
 * clock counts at the next start; all forward jumps of a run are therefore subtracted from every lease that must still be held. */
#ifndef SIMSERVER_JUDGE_H
#define SIMSERVER_JUDGE_H

#include "report.h"

#include "base/list.h"
#include "base/uuid.h"
#include "wire/persistent_codec.h"

#define JUDGE_NEVER UINT64_MAX

typedef struct judge_moment {
    uint64_t turn, mono_ns;
    uint64_t since_ns; /* no lease that is said now was granted before */
} judge_moment;

typedef enum judge_claim_kind {
    JUDGE_ACK,
    JUDGE_SKIP, /* and nack stop */
    JUDGE_PARK,
    JUDGE_RETRY,
    JUDGE_RELEASE,
    JUDGE_SOFT, /* started, extend, resume: only what is lost is answered */
} judge_claim_kind;

/* What a group is, as its creator said. */
typedef struct judge_rules {
    bool pinned, by_correlation;
    uint64_t lease_ns;
    uint32_t retries_max;
} judge_rules;

typedef struct judge_group {
    struct judge *judge;
    char name[64];
    judge_rules rules;
    uint32_t life;         /* counted by delete and create */
    uint64_t pinned_since; /* turn: holds from before may break what is promised of keys */
    uint64_t token_max, token_turn;
    uint64_t unseen_charges; /* deliveries that no client saw and that may have been charged */
    bool unseen;             /* and that may have been the first of their message */
    uint64_t resume_turn;    /* an operator may have taken a stop back since; JUDGE_NEVER: no */
    bool hand_back_wished;   /* by an operator: consumers may hear of it, and nothing else */
    uint64_t changed_turn;   /* the last update was answered; 0: there was none */
    uint64_t old_lease_ns;   /* the shortest before it */
    bool changing;           /* an update is on its way: it gives back what clients without extensions hold */
    sl_list messages, calls;
} judge_group;

typedef struct judge_message {
    sl_list node;
    sl_uuid id;
    uint32_t number; /* for people */
    uint64_t place, key, first_turn;
    uint64_t settled_turn; /* surely settled since; JUDGE_NEVER: not */
    bool was_taken_over, may_be_settled, may_be_parked, replayed;
    uint32_t attempts_seen, attempts_sure;
    struct judge_message *replay; /* the last one that was parked and came back, which has an id of its own */
    sl_list holds;
} judge_message;

typedef struct judge_call {
    sl_list node;
    judge_group *group;
    uint32_t number, life;
    bool extensions;
    char name[32]; /* "" : none */
    uint32_t window;
    uint64_t reconnect_ns;
    bool confirmed, over;
    uint64_t over_turn;
    bool may_be_dropped; /* by an update, before it knows */
    /* Stop */
    uint64_t stop_turn;      /* the consumer sent it; JUDGE_NEVER: not */
    uint64_t hand_back_turn; /* its own Stop may have handed back since */
    bool half_closed;
    bool stopped, drained, stopped_by_other, hand_back_asked, hand_back_again;
    uint32_t stops_sent, stopped_count;
    uint32_t outstanding, handed_back_min, handed_back_max; /* of the first Stopped */
    uint32_t settled_since, released_since, outstanding_unseen;
    /* Started */
    bool sent_started;
    uint64_t started_sure_ns; /* the server surely knows that it sends Started; 0: not */
    sl_list claims, holds;
} judge_call;

typedef struct judge_hold {
    sl_list of_message, of_call;
    judge_message *message;
    judge_call *call;
    judge_moment said;
    uint64_t token;
    uint32_t retry_count;
    uint64_t expire_min_ns;              /* monotonic: it may have ended from here on */
    uint64_t expire_max_ns;              /* and surely has from here on */
    uint64_t free_turn;                  /* it may have been given up from this turn on; JUDGE_NEVER: not */
    uint64_t hand_back_turn, claim_turn; /* the same by a hand-back, or by a claim of its own call */
    uint64_t claim_sent_turn;            /* by who had seen this very delivery; JUDGE_NEVER: not */
    uint64_t started_turn;               /* sent; JUDGE_NEVER: not */
    bool listed;                         /* no delivery: a call that came back says that it holds it */
    bool maybe_started;                  /* by a Started that was about an earlier delivery */
    bool started_sure, uncertain, was_outstanding, is_counted, released_sure, retry_sent, gone;
    uint64_t extend_ns, extend_sent_ns, extend_sent_turn; /* the last one that was not proven */
    bool was_extended;
} judge_hold;

typedef struct judge_claim {
    sl_list node;
    judge_claim_kind kind;
    sl_uuid id;
    judge_hold *hold; /* NULL: it had none */
    uint64_t sent_turn;
    bool sure; /* the lease was surely held when it was sent, and this is the first claim about it */
    uint64_t sent_ns, extend_ns; /* of an Extend; 0: it is none */
    bool is_started;
    uint64_t heard_turn; /* surely by then; JUDGE_NEVER: not yet */
    uint64_t done_turn;  /* answered, or surely heard by who answers nothing; JUDGE_NEVER: not */
    bool excused; /* it may have been answered already: an answer could have been about this one or another */
} judge_claim;

typedef struct judge {
    report *report;
    judge_moment now;
    uint64_t forward_ns, backward_ns; /* of the wall clock, all jumps together */
    bool was_idle;
    bool
        reads_again; /* an event that is given out once more may have to come from the disk: others overtake it */
    uint64_t busy_ns_longest, busy_ns_total; /* of the disk */
    uint32_t call_count, message_count;
} judge;

void judge_init(judge *j, report *r);

/* A turn begins, and ends; idle: the disk has nothing to do and the server wants no further turn. */
void judge_turn_begins(judge *j, uint64_t turn, uint64_t mono_ns);
void judge_turn_ends(judge *j, bool idle);

/* --- groups --- */

void judge_group_init(judge *j, judge_group *group, const char *name, const judge_rules *rules);
void judge_group_done(judge_group *group);
/* An update is sent; it was answered, and these are the rules now. */
void judge_group_changing(judge_group *group, const judge_rules *rules);
void judge_group_changed(judge_group *group, const judge_rules *rules);
void judge_group_recreated(judge_group *group, const judge_rules *rules);
/* An operator asked; from now on it may have happened. */
void judge_group_stop_sent(judge_group *group, bool hand_back);
void judge_group_resume_sent(judge_group *group);

/* --- what clients say --- */

typedef struct judge_options {
    bool extensions;
    const char *name;
    uint32_t window;
    uint64_t reconnect_ns;
    const sl_uuid *resume;
    size_t resume_count;
} judge_options;

judge_call *judge_call_opened(judge_group *group, const judge_options *options);
judge_claim *judge_claimed(judge_call *call, judge_claim_kind kind, const sl_uuid *id);
void judge_started(judge_call *call, const sl_uuid *id);
void judge_extended(judge_call *call, const sl_uuid *id, uint64_t lease_ns);
void judge_stop_sent(judge_call *call, bool hand_back);
void judge_half_closed(judge_call *call);
/* Everything that the call said has reached the server, and what it wrote because of that is durable. */
void judge_flushed(judge_call *call);

/* --- how a call ends --- */

typedef enum judge_end {
    JUDGE_CANCELLED,   /* by the client */
    JUDGE_CUT,         /* the network */
    JUDGE_CUT_UNSEEN,  /* with bytes that were on the way to the client */
    JUDGE_SERVER_GONE, /* shut down or killed: leases stay */
    JUDGE_DROPPED,     /* by the server, because the group was changed: leases stay */
    JUDGE_REFUSED,     /* by the server, for another reason: leases may have gone back */
} judge_end;

void judge_call_over(judge_call *call, judge_end how);
/* What was written and not synced may be gone. */
void judge_power_cut(judge_group *group);

/* --- what clients get --- */

void judge_got(judge_call *call, const sl_persistent_response *response, judge_moment said);

/* --- the end --- */

/* Nothing is on the way any more and the disk is idle: everything that is owed to this call has come. */
void judge_check_answers(judge_call *call);
/* All leases have run out besides. */
void judge_check_drained(judge_call *call);
/* What was delivered for the first time came in order; and retry counts are what was charged. Both can be said only when everything that
 * was on its way has come. */
void judge_check_order(judge_group *group);
void judge_check_counts(judge_group *group);
/* An event that the group must have seen to. */
void judge_check_settled(judge_group *group, const sl_uuid *id, const char *what, bool is_parked);
/* It is found parked, by its own id or that of its link. */
void judge_check_parked(judge_group *group, const sl_uuid *id, const char *what);

judge_message *judge_message_find(judge_group *group, const sl_uuid *id);
/* How often may a message have been charged by deliveries that no client saw? */
uint64_t judge_unseen_charges(const judge_group *group);
/* Surely held at that moment, as far as is known now. */
bool judge_surely_holds(const judge *j, const judge_hold *hold, judge_moment at);
judge_hold *judge_hold_find(judge_call *call, const sl_uuid *id);

#endif

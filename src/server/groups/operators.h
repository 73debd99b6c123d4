/* server/groups/operators.h — operators and consumers: who is there, stop them, wait until they are drained, go on.
 *
 *      stop --> [ rules and stops in the desks ] --> cards of those that are meant --watchers--> wait --> changed()
 *
 * Who is meant is said by stream, group, name and label; everything that is given must fit. What a stop does:
 *
 *      given                            | what is done
 *      ---------------------------------+-------------------------------------------------------------------------------
 *      stream, or stream and group      | a rule for everyone in these groups
 *      name or label, stream and group  | a rule for the name or label in this group, also when nobody there has it
 *      name or label, stream            | the same in each group of the stream
 *      name alone                       | a rule for the name in each group where a consumer of that name is
 *      label alone                      | a rule for the label in each group that has consumers
 *      name and label                   | no rule: those that are there are stopped one by one, because a rule has one tag
 *      anything, `once`                 | no rule: those that are there are stopped one by one
 *
 * A rule holds for who joins later as well, is durable, and lasts until it is taken back by resuming the same; without it a
 * program that connects again by itself would take the place of the call that was stopped. `once` is for orchestrators that
 * will start another process under the same name. A group has at most SL_RULES_MAX rules; one that is made later has none.
 *
 * Waiting is driven by what happens to the consumers; the only timer is the end of the waiting. A consumer that is away counts as
 * meant until it is gone, and when it comes back with what it held, the new call is meant in its place.
 *
 * One who is away since before the server was started is meant like any other by a stop of its group, of its stream, or of its name: names
 * are not in the records, but who is asked for by name is recognised (operators_names.c). It is waited for until it has come
 * back, or until nothing is leased to it any more. Its labels are not known: a stop of a label waits for all of them as well and says how many they
 * are, a list of a label does not show them, and until somebody asks for its name it is listed without one. When nothing is leased to it
 * any more it is neither listed nor meant: whoever it was, it has nothing to finish. */
#ifndef SL_SERVER_GROUPS_OPERATORS_H
#define SL_SERVER_GROUPS_OPERATORS_H

#include "server/groups/card.h"
#include "server/host.h"
#include "wire/operators_control.h"

enum {
    SL_REPORTS_MAX = 1000,                  /* of drains that are remembered */
    SL_STOP_WAITS_MAX = 1000,               /* who waits for a stop at the same time */
    SL_STOP_WAIT_MS_MAX = 24 * 3600 * 1000, /* a day */
    SL_CONSUMERS_LISTED_MAX = 10 * 1000,
    SL_WHO_TEXT_BYTES_MAX = 1024, /* of each text of a who */
};

typedef struct sl_operators sl_operators;

/* For host.c: made before the registry; waits are ended before that is freed, the rest goes after it. NULL is allowed. */
sl_err sl_operators_new(sl_host *host, sl_operators **ret_operators);
void sl_operators_end_waits(sl_operators *operators);
void sl_operators_free(sl_operators *operators);

/* NULL, or the sentence that says what is wrong with it. */
const char *sl_who_complaint(const sl_wire_who *who, bool may_be_everybody);

/* --- lists --- */

/* Texts live in the arena, or as long as nothing is changed. reports: newest first, those of whom name or group fit.
 *   SL_OK, SL_ERR_NOMEM
 *   SL_ERR_FULL       more than SL_CONSUMERS_LISTED_MAX
 *   SL_ERR_AGAIN      a name was given, and the users are not read yet
 *   SL_ERR_NOT_FOUND  a group was named and there is no such group */
sl_err sl_operators_list(sl_host *host, const sl_wire_who *who, bool with_reports, sl_arena *arena,
                         sl_wire_consumers *ret_consumers);

/* --- stop and resume --- */

typedef struct sl_stop_target sl_stop_target;

typedef enum sl_wait_state {
    SL_WAIT_WRITING, /* what was decided is not durable yet: nothing may be told */
    SL_WAIT_ON,      /* somebody is not drained yet */
    SL_WAIT_DONE,    /* everybody who is meant is drained or gone */
    SL_WAIT_OVER,    /* the time is over before that */
    SL_WAIT_FAILED,  /* the store failed, a group was deleted, memory is out, or the server ends */
} sl_wait_state;

/* Whoever has asked, inside of the call or page that asks. Zero before the first use. */
typedef struct sl_stop_wait {
    sl_host *host; /* NULL: not begun, or ended */
    sl_list node;
    void (*changed)(
        void *
            ctx); /* at the end of a turn in which anything below has changed; may end the wait and free it */
    void *ctx;
    sl_str user; /* who asks, for the log; empty: nobody had to say. Set before as the two above */
    sl_wait_state state;
    sl_wire_stop_progress progress;
    sl_wire_resume_answer resumed; /* of sl_operators_resume() */
    /* inside */
    sl_wire_who who; /* texts are the caller's, and live as long as this */
    sl_wire_stop_progress told;
    bool is_once;
    uint64_t tags[2];
    uint32_t tag_count;
    sl_list targets, marks;
    uint32_t mark_count;
    bool failed, is_over;
    bool is_group_gone; /* failed for this reason */
    sl_alarm end;
} sl_stop_wait;

typedef struct sl_operators_stop {
    sl_wire_who who; /* without a complaint */
    sl_str reason;
    uint32_t deadline_ms, wait_ms;
    bool hand_back_unstarted, once;
} sl_operators_stop;

/* Stops, and begins to wait: wait->changed comes later, never from inside of this. With wait_ms 0 the wait is OVER as soon as it is
 * durable. Ended by sl_stop_wait_end() in any case.
 *   SL_OK
 *   SL_ERR_NOT_FOUND     a group was named and there is no such group, or a stream and there is no group on it
 *   SL_ERR_AGAIN         a group where somebody may be meant is being opened, or a name was given and the users are not read yet
 *   SL_ERR_FULL          SL_RULES_MAX rules in one of the groups, or SL_STOP_WAITS_MAX
 *   SL_ERR_DRAINING      the server ends and stops everybody itself
 *   SL_ERR_STORE_FAILED  the group that was named does not work
 *   SL_ERR_NOMEM
 * After an error some of those that are meant may be stopped: asking again, or resuming, is right then. */
sl_err sl_operators_stop_consumers(sl_host *host, const sl_operators_stop *how, sl_stop_wait *wait);

/* Takes back the rules for who, and the stops of those that fit and are there. The wait is DONE when that is durable;
 * wait->resumed has the numbers. Errors as above. */
sl_err sl_operators_resume(sl_host *host, const sl_wire_who *who, sl_stop_wait *wait);

/* Also right for one that is all zero, and twice. */
void sl_stop_wait_end(sl_stop_wait *wait);

/* For SL_WAIT_FAILED with is_group_gone. */
#define SL_GROUP_GONE_SENTENCE                                                                               \
    "The group was deleted, or it failed, before everybody in it was drained: see the list of drains for "   \
    "what they held."

/* For errors of the three above. */
const char *sl_operators_sentence(sl_err err);

/* --- the end of the server --- */

typedef struct sl_operators_tally {
    uint64_t drained;        /* consumers, since the server began to stop */
    uint64_t left_consumers; /* that still hold something */
    uint64_t left_leased;    /* messages */
} sl_operators_tally;

sl_operators_tally sl_operators_tally_of(const sl_host *host);

/* --- what desks tell: desk_card.c --- */

typedef enum sl_report_outcome {
    SL_REPORT_DRAINED, /* held nothing any more */
    SL_REPORT_LEFT,    /* its call ended before */
    SL_REPORT_AWAY,    /* its connection broke before, and it did not come back in time */
    SL_REPORT_DROPPED, /* its group was changed, deleted or failed before */
    SL_REPORT_OUTCOME_COUNT_
} sl_report_outcome;

void sl_operators_report(sl_host *host, const sl_card *card, sl_report_outcome outcome);
void sl_operators_touch(sl_host *host); /* something changed for somebody who is watched */
/* Somebody waits for one of this session that is not there: who joins under its name is stopped, before it is given anything. */
bool sl_operators_await(const sl_host *host, sl_uuid session);
void sl_operators_joined(
    sl_card *card,
    const sl_consumer_info *info); /* in_flight: only what it came back to, when it is awaited */

/* "drained", "left", "away", "dropped". */
const char *sl_report_outcome_name(sl_report_outcome outcome);

/* "active", "stopping", "drained", "away": in lists, pages and metrics. */
const char *sl_consumer_state_name(sl_consumer_state state);

#endif

/* tests/simserver/judge_private.h — what the files of the judge share. */
#ifndef SIMSERVER_JUDGE_PRIVATE_H
#define SIMSERVER_JUDGE_PRIVATE_H

#include "judge.h"

#define JUDGE_FAIL(call, rule, ...) report_fail((call)->group->judge->report, REPORT_##rule, __VA_ARGS__)

/* A lease that a call has, or may have. */
judge_hold *judge_hold_add(judge_call *call, judge_message *message, judge_moment said);
judge_message *judge_message_get(judge_group *group, const sl_uuid *id);

void judge_got_event(judge_call *call, const sl_wire_read_event *event, judge_moment said);
void judge_got_settled(judge_call *call, const sl_wire_ids *ids, bool lost, judge_moment said);
void judge_got_stopped(judge_call *call, const sl_persistent_response *response, judge_moment said);
void judge_got_drained(judge_call *call, const sl_persistent_response *response, judge_moment said);

/* Surely held, if no hand-back has taken it away. */
bool judge_surely_held(const judge *j, const judge_hold *hold, judge_moment at);

/* May its lease have been charged when it ended, by that moment? */
bool judge_may_be_charged(const judge *j, const judge_hold *hold, judge_moment at);

#endif

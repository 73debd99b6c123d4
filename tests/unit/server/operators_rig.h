/* tests/unit/server/operators_rig.h — short words for tests of operators: stop, resume and lists, as calls of the service. */
#ifndef SL_TESTS_UNIT_SERVER_OPERATORS_RIG_H
#define SL_TESTS_UNIT_SERVER_OPERATORS_RIG_H

#include "groups_rig.h"

#include "server/groups/operators.h"

#define OPERATORS_PATH "/sluice.operators.Operators/"

/* Sent and run; a stop that waits is still open then. */
server_call *operators_stop(groups *g, sl_wire_stop_request how);
server_call *operators_resume(groups *g, sl_wire_who who);

/* "2/1:3" for each message of Stop: meant, drained, in flight; "-1/5": one went away with five; "?1": the labels of one are not known; "!" behind it when it is done; then the status. */
const char *operators_heard(const server_call *call);
/* In how many groups whoever joins later is stopped too, as the last message of Stop has it. */
uint32_t operators_rules(const server_call *call);
/* In how many groups Resume took one back. */
uint32_t operators_rules_back(const server_call *call);
/* "1-0": resumed and too late; or the status. */
const char *operators_resumed(const server_call *call);

/* Of every consumer: "name=state:in_flight", "+" behind it when it is safe to terminate, "^asker" when it was asked to stop. */
const char *operators_list(groups *g, sl_wire_who who);
/* Of every consumer: "name=removal_cost", "*" behind it when it is the cheapest. */
const char *operators_costs(groups *g, sl_wire_who who);
/* Of every report, newest first: "name=outcome:settled/released/lost^asker"; "(2)" behind released: so many of them were interrupted. */
const char *operators_reports(groups *g, sl_wire_who who);

#define WHO(...)  ((sl_wire_who){ __VA_ARGS__ })
#define STOP(...) ((sl_wire_stop_request){ __VA_ARGS__ })

#endif

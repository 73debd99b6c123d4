/* cli/work_explain.h — `sluice work --explain`: what would be done, without doing anything.
 *
 * The numbers for orchestrators are made from --grace here and nowhere else (S3.33): the examples in examples/deploy are held against
 * this by tests/integration/test_work_explain.py. */
#ifndef SL_CLI_WORK_EXPLAIN_H
#define SL_CLI_WORK_EXPLAIN_H

#include "cli/work_members.h"

/* For people, or as one object of JSON when the invocation asks for that. */
void sl_work_explain(const sl_invocation *invocation, const sl_work_members *members);

#endif

/* cli/work_deploy.h — the part of --explain that is for orchestrators: what to write into their files.
 *
 * Everything follows from --grace and the status pages, so there is no second number that is kept by hand (S3.33). */
#ifndef SL_CLI_WORK_DEPLOY_H
#define SL_CLI_WORK_DEPLOY_H

#include "cli/work_members.h"

/* What the orchestrator has to be given: the grace, in whole seconds, never less. */
uint64_t sl_work_orchestrator_seconds(const sl_budget *budget);

/* For people; for programs the member "deployment" of an object, with the comma in front. */
void sl_work_deploy_print(const sl_invocation *invocation, const sl_work_members *members);
void sl_work_deploy_print_json(const sl_invocation *invocation, const sl_work_members *members);

#endif

/* cli/work_steps.h — what SIGTERM does to the workers of one call, step by step, in words. What happens depends on where the messages come
 * from: not every source confirms, has operators, or has messages that somebody keeps. */
#ifndef SL_CLI_WORK_STEPS_H
#define SL_CLI_WORK_STEPS_H

#include "cli/work_members.h"

typedef enum sl_work_origin { /* as far as the address tells: a server is not asked */
    SL_WORK_FROM_SLUICE,
    SL_WORK_FROM_KURRENTDB, /* no confirmations and no operators */
    SL_WORK_FROM_SCHEDULE,
    SL_WORK_FROM_MEMORY
} sl_work_origin;

sl_work_origin sl_work_origin_of(const sl_work_plan *plan);

enum {
    SL_WORK_STEP_BYTES = 640
};

typedef struct sl_work_step {
    uint64_t until_ns; /* since SIGTERM, at the latest */
    char what[SL_WORK_STEP_BYTES];
} sl_work_step;

void sl_work_steps_make(const sl_work_members *members, sl_work_step ret_steps[static SL_BUDGET_PART_COUNT_]);

/* When work may take longer than a drain lets it: a sentence or two, and what to give for everything to finish. Else nothing is added. */
void sl_work_drain_note(const sl_budget_wish *wish, const sl_work_members *members, sl_text *text);

#endif

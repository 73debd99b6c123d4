/* tests/unit/core/test_removal.c — what it costs to remove a replica: work that runs decides, and it fits into Kubernetes' annotation (B17). */
#include "test.h"

#include "base/cleanup.h"
#include "core/removal.h"

TEST(the_cost_of_a_removal_is_work_that_runs_and_then_work_that_waits_B17)
{
    static const struct {
        uint64_t running, waiting;
        uint32_t cost;
    } rows[] = {
        { 0, 0, 0 },
        { 0, 1, 1 },
        { 0, 999, 999 },
        { 0, 1000, 999 }, /* however much waits, one that runs costs more */
        { 0, UINT64_MAX, 999 },
        { 1, 0, 1000 },
        { 2, 5, 2005 },
        { 2147482, 999, 2147482999 },
        { 2147483, 0, INT32_MAX },
        { UINT64_MAX, UINT64_MAX, INT32_MAX },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_EQ(sl_removal_cost(rows[i].running, rows[i].waiting), rows[i].cost);
}

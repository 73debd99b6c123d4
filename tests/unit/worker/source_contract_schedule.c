/* tests/unit/worker/source_contract_schedule.c — the source schedule: as a row of the contract. */
#include "source_contract.h"

#include "worker/schedule_source.h"

static const sl_logger *quiet_log(void)
{
    static sl_clock_manual time;
    static sl_clock clock;
    static sl_logger log;

    clock = sl_clock_manual_clock(&time);
    log = (sl_logger){ .level_min = SL_LOG_LEVEL_COUNT_, .clock = &clock };
    return &log;
}

static void schedule_make_world(source_contract *c)
{
    (void)c;
}

/* The first tick comes at once, and no other during a test. */
static sl_source *schedule_open(source_contract *c)
{
    char problem[512];
    sl_source *source = NULL;
    sl_text text;

    sl_text_init(&text, problem, sizeof problem);
    EXPECT_OK(
        sl_schedule_source_open(c->loop, quiet_log(), SL_STR("every=24h,at-start=yes"), &text, &source));
    return source;
}

static void schedule_put(source_contract *c, uint32_t count)
{
    (void)c;
    (void)count; /* time does that */
}

static void schedule_free_world(source_contract *c)
{
    (void)c;
}

SOURCE_CONTRACT_ROW(schedule, .name = "schedule", .make_world = schedule_make_world, .open = schedule_open,
                    .put = schedule_put, .free_world = schedule_free_world, .is_one_at_a_time = true)

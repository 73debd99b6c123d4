/* tests/unit/worker/test_crew_supervise.c — is a worker made again, and when. */
#include "test.h"

#include "base/cleanup.h"
#include "worker/crew_private.h"

#define SECOND_NS UINT64_C(1000000000)

static const sl_crew_life lost = { .was_made = true,
                                   .end = SL_WORK_ENDED_LOST,
                                   .reason = SL_DRAIN_REASON_FAILED };

TEST(pauses_between_two_lives_double_from_one_second_to_thirty)
{
    static const uint64_t seconds[] = { 1, 2, 4, 8, 16, 30, 30 };
    sl_crew_rules rules = sl_crew_rules_default;
    uint32_t failures = 0;
    uint64_t pause_ns = 0;

    rules.restarts_max = 100;
    for (size_t i = 0; i < SL_COUNT_OF(seconds); i++) {
        EXPECT_EQ(sl_crew_judge(&rules, &lost, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
        EXPECT_EQ(pause_ns, seconds[i] * SECOND_NS);
    }
}

TEST(more_failures_in_a_row_than_restarts_are_allowed_are_the_end)
{
    sl_crew_rules rules = sl_crew_rules_default;
    const sl_crew_life unmade = { 0 };
    uint32_t failures = 0;
    uint64_t pause_ns = 0;

    rules.restarts_max = 2;
    EXPECT_EQ(sl_crew_judge(&rules, &lost, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
    EXPECT_EQ(sl_crew_judge(&rules, &unmade, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
    EXPECT_EQ(sl_crew_judge(&rules, &lost, &failures, &pause_ns), SL_CREW_GIVES_UP);
    rules.restarts_max = 0;
    failures = 0;
    EXPECT_EQ(sl_crew_judge(&rules, &lost, &failures, &pause_ns), SL_CREW_GIVES_UP);
}

TEST(a_minute_of_health_forgets_earlier_failures)
{
    sl_crew_rules rules = sl_crew_rules_default;
    sl_crew_life life = lost;
    uint32_t failures = 7;
    uint64_t pause_ns = 0;

    rules.restarts_max = 10;
    life.was_of_use = true;
    life.up_ns = 60 * SECOND_NS - 1;
    EXPECT_EQ(sl_crew_judge(&rules, &life, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
    EXPECT_EQ(failures, 8);
    life.up_ns = 60 * SECOND_NS;
    EXPECT_EQ(sl_crew_judge(&rules, &life, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(pause_ns, SECOND_NS);
}

TEST(who_was_stopped_by_an_operator_or_is_at_its_end_is_not_made_again)
{
    static const sl_drain_reason reasons[] = { SL_DRAIN_REASON_OPERATOR, SL_DRAIN_REASON_FINISHED };
    uint32_t failures = 3;
    uint64_t pause_ns = 0;

    for (size_t i = 0; i < SL_COUNT_OF(reasons); i++) {
        const sl_crew_life life = { .was_made = true, .end = SL_WORK_ENDED_AS_ASKED, .reason = reasons[i] };
        EXPECT_EQ(sl_crew_judge(&sl_crew_rules_default, &life, &failures, &pause_ns), SL_CREW_STAYS_ENDED);
    }
    EXPECT_EQ(failures, 3);
}

TEST(an_operators_stop_holds_when_the_source_fails_meanwhile_B10)
{
    const sl_crew_life life = { .was_made = true,
                                .end = SL_WORK_ENDED_LOST,
                                .reason = SL_DRAIN_REASON_OPERATOR };
    uint32_t failures = 0;
    uint64_t pause_ns = 0;

    EXPECT_EQ(sl_crew_judge(&sl_crew_rules_default, &life, &failures, &pause_ns), SL_CREW_STAYS_ENDED);
    EXPECT_EQ(failures, 0);
}

/* Otherwise each restart of a server would end all workers that have good manners. */
TEST(who_was_sent_away_by_a_server_that_restarts_comes_back_and_that_is_no_failure)
{
    const sl_crew_life life = { .was_made = true,
                                .end = SL_WORK_ENDED_AS_ASKED,
                                .reason = SL_DRAIN_REASON_SERVER };
    uint32_t failures = 0;
    uint64_t pause_ns = 0;

    EXPECT_EQ(sl_crew_judge(&sl_crew_rules_default, &life, &failures, &pause_ns), SL_CREW_MADE_AGAIN);
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(pause_ns, SECOND_NS);
}

/* tests/unit/worker/test_schedule.c — when the next tick comes: arithmetic without a clock. */
#include "worker/schedule_source.h"

#include "base/support.h"

#define MS_NS     UINT64_C(1000000)
#define MINUTE_NS UINT64_C(60000000000)
#define START_NS  UINT64_C(12345678901234)

static sl_schedule_rules read_rules(const char *text)
{
    char room[400];
    sl_schedule_rules rules = { 0 };
    sl_text problem;

    sl_text_init(&problem, room, sizeof room);
    EXPECT_OK(sl_schedule_parse(sl_str_from(text), &problem, &rules));
    EXPECT_EQ(problem.bytes, 0);
    return rules;
}

TEST(the_words_of_a_schedule_are_read)
{
    sl_schedule_rules rules = read_rules("schedule:every=30m,jitter=10%,cooldown=5m,at-start=no");

    EXPECT_EQ(rules.every_ns, 30 * MINUTE_NS);
    EXPECT_EQ(rules.jitter_ns, 3 * MINUTE_NS);
    EXPECT_EQ(rules.cooldown_ns, 5 * MINUTE_NS);
    EXPECT(!rules.at_start);
    EXPECT_STR(rules.text, "every=30m,jitter=10%,cooldown=5m,at-start=no");
    rules = read_rules("jitter=100%,every=10ms"); /* in any order */
    EXPECT_EQ(rules.jitter_ns, 10 * MS_NS);
    EXPECT(rules.at_start);
    EXPECT_EQ(rules.cooldown_ns, 0);
    rules = read_rules("every=8784h,jitter=99%");
    EXPECT(rules.jitter_ns > rules.every_ns / 100 * 98 && rules.jitter_ns < rules.every_ns);
}

TEST(a_schedule_that_makes_no_sense_is_refused_with_a_sentence)
{
    static const char *const wrong[] = {
        "",
        "every",
        "every=",
        "every=9ms",
        "every=8785h",
        "every=0",
        "jitter=10%",
        "every=1s,,",
        "every=1s,x=1",
        "every=1s,jitter=5",
        "every=1s,jitter=101%",
        "every=1m ",
        "every=-1s",
        "every=1s,jitter=%",
        "every=1s,jitter=1%%",
        "every=1s,at-start=maybe",
        "every=1s,cooldown=fast",
    };
    char room[600], longest[300];
    sl_schedule_rules rules;
    sl_text problem;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sl_text_init(&problem, room, sizeof room);
        EXPECT_ROW(sl_schedule_parse(sl_str_from(wrong[i]), &problem, &rules) == SL_ERR_INVALID, i);
        EXPECT_ROW(problem.bytes > 40 && !problem.cut && room[problem.bytes - 1] == '.', i);
    }
    memset(longest, '1', sizeof longest);
    sl_text_init(&problem, room, sizeof room);
    EXPECT_ERR(sl_schedule_parse((sl_str){ longest, sizeof longest }, &problem, &rules), SL_ERR_INVALID);
}

TEST(the_first_tick_comes_at_once_or_after_an_interval)
{
    const sl_schedule_rules at_once = read_rules("every=1m,jitter=50%"),
                            later = read_rules("every=1m,at-start=no");

    EXPECT_EQ(sl_schedule_first(&at_once, START_NS, UINT64_MAX).due_ns, START_NS);
    EXPECT_EQ(sl_schedule_first(&later, START_NS, UINT64_MAX).due_ns, START_NS + MINUTE_NS);
}

TEST(jitter_makes_ticks_later_by_its_share_of_an_interval_at_most_and_does_not_add_up)
{
    const sl_schedule_rules rules = read_rules("every=100ms,jitter=10%");
    uint64_t earliest_ns = UINT64_MAX, latest_ns = 0, nominal_ns = START_NS;
    dice d = dice_from(1);

    for (unsigned i = 1; i <= 20000; i++) {
        const sl_schedule_tick tick = sl_schedule_next(&rules, nominal_ns, nominal_ns + 1, dice_u64(&d));
        const uint64_t later_ns = tick.due_ns - tick.nominal_ns;

        EXPECT_RUN(tick.nominal_ns == START_NS + i * 100 * MS_NS, 1, i);
        EXPECT_RUN(later_ns <= 10 * MS_NS && tick.missed == 0, 1, i);
        earliest_ns = later_ns < earliest_ns ? later_ns : earliest_ns;
        latest_ns = later_ns > latest_ns ? later_ns : latest_ns;
        nominal_ns = tick.nominal_ns;
    }
    EXPECT(earliest_ns < MS_NS / 10 && latest_ns > 10 * MS_NS - MS_NS / 10); /* all of the room is used */
    EXPECT_EQ(sl_schedule_next(&rules, START_NS, START_NS, 10 * MS_NS).due_ns, START_NS + 110 * MS_NS);
    EXPECT_EQ(sl_schedule_next(&rules, START_NS, START_NS, 10 * MS_NS + 1).due_ns, START_NS + 100 * MS_NS);
}

/* Against the definition: the first nominal time that is allowed, found by walking. */
TEST(after_an_overrun_the_next_tick_is_the_first_nominal_time_after_the_cooldown)
{
    static const char *const texts[] = { "every=10ms", "every=10ms,cooldown=3ms", "every=10ms,cooldown=10ms",
                                         "every=10ms,cooldown=35ms" };

    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        const sl_schedule_rules rules = read_rules(texts[t]);

        for (uint64_t used_ns = 0; used_ns <= 60 * MS_NS; used_ns += MS_NS / 2) {
            const sl_schedule_tick tick = sl_schedule_next(&rules, START_NS, START_NS + used_ns, 0);
            const bool is_overrun = used_ns > 10 * MS_NS;
            uint64_t wanted_ns = START_NS + 10 * MS_NS, missed = 0;

            while (is_overrun && wanted_ns < START_NS + used_ns + rules.cooldown_ns) {
                wanted_ns += 10 * MS_NS;
                missed++;
            }
            EXPECT_RUN(tick.nominal_ns == wanted_ns && tick.due_ns == wanted_ns, t, used_ns);
            EXPECT_RUN(tick.missed == missed, t, used_ns);
        }
    }
}

TEST(a_loop_that_comes_late_makes_one_tick_of_all_that_fell_due)
{
    const sl_schedule_rules rules = read_rules("every=10ms,jitter=50%");
    const sl_schedule_tick planned = { .nominal_ns = START_NS, .due_ns = START_NS + 4 * MS_NS, .missed = 2 };
    sl_schedule_tick tick;

    tick = sl_schedule_due(&rules, planned, planned.due_ns);
    EXPECT(tick.nominal_ns == START_NS && tick.due_ns == planned.due_ns && tick.missed == 2);
    tick = sl_schedule_due(&rules, planned, START_NS + 10 * MS_NS - 1);
    EXPECT(tick.nominal_ns == START_NS && tick.missed == 2);
    tick = sl_schedule_due(&rules, planned, START_NS + 10 * MS_NS);
    EXPECT(tick.nominal_ns == START_NS + 10 * MS_NS && tick.due_ns == tick.nominal_ns && tick.missed == 3);
    tick = sl_schedule_due(&rules, planned, START_NS + 1009 * MS_NS);
    EXPECT(tick.nominal_ns == START_NS + 1000 * MS_NS && tick.missed == 102);
}

TEST(success_is_overdue_after_two_intervals)
{
    const sl_schedule_rules rules = read_rules("every=1m");

    EXPECT_EQ(sl_schedule_overdue_ns(&rules, START_NS), START_NS + 2 * MINUTE_NS);
    EXPECT_EQ(sl_schedule_overdue_ns(&rules, UINT64_MAX), UINT64_MAX);
}

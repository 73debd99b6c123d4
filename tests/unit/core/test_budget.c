/* tests/unit/core/test_budget.c — one grace, split into parts that always fit (B7). */
#include "core/budget.h"
#include "test.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS      UINT64_C(1000000000)

enum {
    TEXT_BYTES = 512
};

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static sl_budget made(const sl_budget_wish *wish)
{
    sl_budget budget = { 0 };

    EXPECT_OK(sl_budget_make(wish, &budget));
    return budget;
}

static uint64_t sum_of(const sl_budget *budget)
{
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        sum_ns += budget->part_ns[i];
    return sum_ns;
}

static void expect_text(const sl_budget_wish *wish, const char *wanted)
{
    char buffer[TEXT_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_budget_explain(wish, &text);
    EXPECT(!text.cut);
    EXPECT_STR(buffer, wanted);
}

TEST(S2_22_budget_defaults_fit_the_usual_grace_of_30_seconds)
{
    const sl_budget budget = made(&(sl_budget_wish){ .grace_ns = 30 * SECOND_NS });
    static const uint64_t seconds[] = { 2, 20, 3, 2, 2, 1 };

    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        EXPECT_EQ(budget.part_ns[i], seconds[i] * SECOND_NS);
    EXPECT_EQ(sum_of(&budget), 30 * SECOND_NS);
}

TEST(S2_13_budget_nesting_is_outer_consumer_workers_handler)
{
    const sl_budget budget = made(&(sl_budget_wish){ .grace_ns = 30 * SECOND_NS });

    EXPECT_EQ(sl_budget_outer_ns(&budget), 30 * SECOND_NS);
    EXPECT_EQ(sl_budget_consumer_ns(&budget), 29 * SECOND_NS);
    EXPECT_EQ(sl_budget_workers_ns(&budget), 23 * SECOND_NS);
    EXPECT_EQ(sl_budget_handler_ns(&budget), 20 * SECOND_NS);
    EXPECT_EQ(sl_budget_until_end_ns(&budget, SL_BUDGET_FENCE), 2 * SECOND_NS);
    EXPECT_EQ(sl_budget_until_end_ns(&budget, SL_BUDGET_RESERVE), 30 * SECOND_NS);
}

/* S2.13: 30 s for the consumer, 25 s for its workers, 5 s of grace for a handler. */
TEST(S2_13_budget_can_express_the_nesting_of_its_source)
{
    const sl_budget_wish wish = {
        .grace_ns = 31 * SECOND_NS,
        .part_ns = { [SL_BUDGET_SETTLE] = 5 * SECOND_NS,
                     [SL_BUDGET_ABORT] = 20 * SECOND_NS,
                     [SL_BUDGET_FENCE] = SECOND_NS,
                     [SL_BUDGET_CLOSE] = 2 * SECOND_NS,
                     [SL_BUDGET_RESERVE] = SECOND_NS },
    };
    const sl_budget budget = made(&wish);

    EXPECT_EQ(sl_budget_consumer_ns(&budget), 30 * SECOND_NS);
    EXPECT_EQ(sl_budget_workers_ns(&budget), 25 * SECOND_NS);
    EXPECT_EQ(sl_budget_handler_ns(&budget), 5 * SECOND_NS);
}

/* S3.29, S3.30: a drain of 30 s and two joins of 5 s are for a grace of 45 s, not of 40 s. */
TEST(S3_30_budget_of_drain_and_joins_fits_45_seconds_but_not_40)
{
    sl_budget_wish wish = {
        .grace_ns = 45 * SECOND_NS,
        .part_ns = { [SL_BUDGET_SETTLE] = 30 * SECOND_NS, [SL_BUDGET_CLOSE] = (5 + 5) * SECOND_NS },
    };
    sl_budget budget = made(&wish);

    EXPECT_EQ(budget.part_ns[SL_BUDGET_SETTLE], 30 * SECOND_NS);
    EXPECT_EQ(budget.part_ns[SL_BUDGET_CLOSE], 10 * SECOND_NS);
    EXPECT(sum_of(&budget) <= 45 * SECOND_NS);

    wish.grace_ns = 40 * SECOND_NS;
    const sl_budget before = budget;
    EXPECT_ERR(sl_budget_make(&wish, &budget), SL_ERR_BUDGET);
    EXPECT_MEM(&budget, &before, sizeof budget);
    expect_text(
        &wish,
        "fence at least 100ms + settle 30s + abort at least 100ms + flush at least 100ms + close 10s + "
        "reserve at least 50ms = 40.35s does not fit into grace 40s: raise grace to at least "
        "40.35s (48s is comfortable), or lower settle to 29.65s or less");
}

TEST(S3_32_budget_that_does_not_fit_says_the_arithmetic_and_the_ways_out)
{
    const sl_budget_wish wish = {
        .grace_ns = 30 * SECOND_NS,
        .part_ns = { SECOND_NS, 30 * SECOND_NS, 4 * SECOND_NS, 2 * SECOND_NS, 3 * SECOND_NS, SECOND_NS },
    };

    expect_text(&wish,
                "fence 1s + settle 30s + abort 4s + flush 2s + close 3s + reserve 1s = 41s does not fit into "
                "grace 30s: raise grace to at least 41s, or lower settle to 19s or less");
}

/* The first of two that could be lowered alike, and down to its very bound. */
TEST(S3_32_budget_advises_to_lower_a_part_to_its_lower_bound_at_most)
{
    const sl_budget_wish wish = {
        .grace_ns = 1500 * MILLISECOND_NS,
        .part_ns = { [SL_BUDGET_FENCE] = 1100 * MILLISECOND_NS, [SL_BUDGET_FLUSH] = 1100 * MILLISECOND_NS },
    };

    expect_text(&wish,
                "fence 1.1s + settle at least 100ms + abort at least 100ms + flush 1.1s + close at least "
                "50ms + reserve at least 50ms = 2.5s does not fit into grace 1.5s: raise grace to at least "
                "2.5s (28.2s is comfortable), or lower fence to 100ms");
}

/* What the sentence advises is true: each way out is just enough. */
TEST(S3_32_budget_advice_works_when_it_is_followed)
{
    sl_budget_wish wish = {
        .grace_ns = 30 * SECOND_NS,
        .part_ns = { SECOND_NS, 30 * SECOND_NS, 4 * SECOND_NS, 2 * SECOND_NS, 3 * SECOND_NS, SECOND_NS },
    };
    sl_budget budget;

    wish.part_ns[SL_BUDGET_SETTLE] = 19 * SECOND_NS;
    EXPECT_OK(sl_budget_make(&wish, &budget));
    wish.part_ns[SL_BUDGET_SETTLE]++;
    EXPECT_ERR(sl_budget_make(&wish, &budget), SL_ERR_BUDGET);
    wish.part_ns[SL_BUDGET_SETTLE] = 30 * SECOND_NS;
    wish.grace_ns = 41 * SECOND_NS;
    EXPECT_OK(sl_budget_make(&wish, &budget));
    wish.grace_ns--;
    EXPECT_ERR(sl_budget_make(&wish, &budget), SL_ERR_BUDGET);
}

TEST(S3_32_budget_without_one_part_to_lower_advises_only_to_raise)
{
    const sl_budget_wish nothing_set = { .grace_ns = 400 * MILLISECOND_NS };
    const sl_budget_wish both_long = {
        .grace_ns = 5 * SECOND_NS,
        .part_ns = { [SL_BUDGET_SETTLE] = 5 * SECOND_NS, [SL_BUDGET_FLUSH] = 6 * SECOND_NS },
    };

    expect_text(&nothing_set,
                "fence at least 100ms + settle at least 100ms + abort at least 100ms + flush at least 100ms "
                "+ close at least 50ms + reserve at least 50ms = 500ms does not fit into grace 400ms: "
                "raise grace to at least 500ms (30s is comfortable)");
    expect_text(&both_long,
                "fence at least 100ms + settle 5s + abort at least 100ms + flush 6s + close at least 50ms + "
                "reserve at least 50ms = 11.3s does not fit into grace 5s: raise grace to at least 11.3s "
                "(19s is comfortable)");
}

TEST(S3_32_budget_that_fits_prints_its_parts)
{
    const sl_budget_wish tight = { .grace_ns = 30 * SECOND_NS };
    const sl_budget_wish wide = { .grace_ns = 60 * SECOND_NS,
                                  .part_ns = { [SL_BUDGET_SETTLE] = 10 * SECOND_NS } };

    expect_text(&tight, "grace 30s = fence 2s + settle 20s + abort 3s + flush 2s + close 2s + reserve 1s; "
                        "outer 30s > consumer 29s > workers 23s > handler 20s");
    expect_text(
        &wide, "grace 1m = fence 2s + settle 10s + abort 3s + flush 2s + close 2s + reserve 1s + unused 40s; "
               "outer 1m > consumer 19s > workers 13s > handler 10s");
}

TEST(S3_29_budget_parts_accept_fractions_and_have_a_lower_bound)
{
    sl_budget budget;

    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        const uint64_t least_ns = sl_budget_least_ns((sl_budget_part)i);
        sl_budget_wish wish = { .grace_ns = 10 * SECOND_NS };

        wish.part_ns[i] = least_ns;
        EXPECT_OK(sl_budget_make(&wish, &budget));
        wish.part_ns[i] = least_ns - 1;
        EXPECT_ERR(sl_budget_make(&wish, &budget), SL_ERR_INVALID);
        wish.part_ns[i] = 1234567891;
        EXPECT_OK(sl_budget_make(&wish, &budget));
        EXPECT_EQ(budget.part_ns[i], 1234567891);
    }
}

TEST(budget_numbers_out_of_bounds_are_refused_with_their_bounds)
{
    const sl_budget_wish too_short = { .grace_ns = SECOND_NS,
                                       .part_ns = { [SL_BUDGET_FLUSH] = MILLISECOND_NS } };
    const sl_budget_wish too_long = { .grace_ns = SECOND_NS,
                                      .part_ns = { [SL_BUDGET_CLOSE] = SL_BUDGET_GRACE_MAX_NS + SECOND_NS } };
    const sl_budget_wish for_ever = { .grace_ns = SL_BUDGET_GRACE_MAX_NS + SECOND_NS };
    const sl_budget_wish longest = { .grace_ns = SL_BUDGET_GRACE_MAX_NS };
    const sl_budget_wish whole = { .grace_ns = SL_BUDGET_GRACE_MAX_NS,
                                   .part_ns = { [SL_BUDGET_FENCE] = SL_BUDGET_GRACE_MAX_NS } };
    const sl_budget_wish first = { .grace_ns = SECOND_NS, .part_ns = { [SL_BUDGET_FENCE] = 1 } };
    sl_budget budget;

    EXPECT_ERR(sl_budget_make(&too_long, &budget), SL_ERR_INVALID);
    EXPECT_ERR(sl_budget_make(&for_ever, &budget), SL_ERR_INVALID);
    EXPECT_ERR(sl_budget_make(&whole, &budget),
               SL_ERR_BUDGET); /* in bounds, but nothing is left for the rest */
    EXPECT_OK(sl_budget_make(&longest, &budget));
    expect_text(&first, "fence 1ns is out of bounds: set it between 100ms and 720h");
    expect_text(&too_short, "flush 1ms is out of bounds: set it between 100ms and 720h");
    expect_text(&too_long, "close 720h1s is out of bounds: set it between 50ms and 720h");
    expect_text(&for_ever, "grace 720h1s is out of bounds: set it to at most 720h");
}

TEST(S4_15_budget_clamps_unlimited_to_what_the_grace_leaves)
{
    const sl_budget settle = made(&(sl_budget_wish){
        .grace_ns = 100 * SECOND_NS, .part_ns = { [SL_BUDGET_SETTLE] = SL_BUDGET_UNLIMITED } });
    const sl_budget flush = made(&(sl_budget_wish){
        .grace_ns = 60 * SECOND_NS,
        .part_ns = { [SL_BUDGET_SETTLE] = 30 * SECOND_NS, [SL_BUDGET_FLUSH] = SL_BUDGET_UNLIMITED } });
    sl_budget_wish all = { .grace_ns = SECOND_NS };

    EXPECT_EQ(settle.part_ns[SL_BUDGET_SETTLE], 90 * SECOND_NS);
    EXPECT_EQ(flush.part_ns[SL_BUDGET_FLUSH], 22 * SECOND_NS);
    EXPECT_EQ(sum_of(&flush), 60 * SECOND_NS);
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        all.part_ns[i] = SL_BUDGET_UNLIMITED;
    const sl_budget budget = made(&all);
    EXPECT(sum_of(&budget) <= SECOND_NS);
}

TEST(S4_15_budget_settle_and_an_unlimited_part_share_the_surplus)
{
    const sl_budget budget = made(&(sl_budget_wish){
        .grace_ns = 50 * SECOND_NS, .part_ns = { [SL_BUDGET_CLOSE] = SL_BUDGET_UNLIMITED } });

    EXPECT_EQ(budget.part_ns[SL_BUDGET_SETTLE], 30 * SECOND_NS);
    EXPECT_EQ(budget.part_ns[SL_BUDGET_CLOSE], 12 * SECOND_NS);
}

TEST(S4_19_budget_derives_a_flush_of_at_most_two_seconds)
{
    for (uint64_t grace_ns = SECOND_NS; grace_ns < 100 * SECOND_NS; grace_ns += 777 * MILLISECOND_NS) {
        const sl_budget budget = made(&(sl_budget_wish){ .grace_ns = grace_ns });

        EXPECT(budget.part_ns[SL_BUDGET_FLUSH] <= 2 * SECOND_NS);
    }
}

TEST(S3_33_budget_tells_the_orchestrator_the_grace_that_the_parts_need)
{
    sl_budget_wish wish = { 0 };

    EXPECT_EQ(sl_budget_comfortable_grace_seconds(&wish), 30);
    wish.part_ns[SL_BUDGET_SETTLE] = 60 * SECOND_NS + 1;
    EXPECT_EQ(sl_budget_comfortable_grace(&wish), 70 * SECOND_NS + 1);
    EXPECT_EQ(sl_budget_comfortable_grace_seconds(&wish), 71);
    wish.part_ns[SL_BUDGET_FLUSH] = SL_BUDGET_UNLIMITED;
    EXPECT_EQ(sl_budget_comfortable_grace(&wish), 70 * SECOND_NS + 1);
    wish.grace_ns = sl_budget_comfortable_grace(&wish);
    const sl_budget budget = made(&wish);
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        EXPECT_EQ(budget.part_ns[i],
                  i == SL_BUDGET_SETTLE ? 60 * SECOND_NS + 1 : sl_budget_usual_ns((sl_budget_part)i));
    wish.part_ns[SL_BUDGET_SETTLE] = UINT64_MAX - 1;
    EXPECT_EQ(sl_budget_comfortable_grace(&wish), UINT64_MAX);
}

/* Between the two graces parts are derived in proportion: the sum has to be the grace, in numbers that people
 * can read. */
TEST(budget_derives_whole_milliseconds_that_add_up_to_the_grace)
{
    for (uint64_t grace_ms = SL_BUDGET_GRACE_LEAST_MS; grace_ms < 31000; grace_ms += 7) {
        const sl_budget derived = made(&(sl_budget_wish){ .grace_ns = grace_ms * MILLISECOND_NS });

        EXPECT_EQ(sum_of(&derived), grace_ms * MILLISECOND_NS);
        for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
            EXPECT_EQ(derived.part_ns[i] % MILLISECOND_NS, 0);
    }
    const sl_budget set = made(
        &(sl_budget_wish){ .grace_ns = 45 * SECOND_NS, .part_ns = { [SL_BUDGET_SETTLE] = 37 * SECOND_NS } });
    EXPECT_EQ(sl_budget_unused_ns(&set), 0);
}

TEST(S3_32_budget_never_advises_a_grace_that_would_be_refused)
{
    sl_budget_wish wish = { .grace_ns = SL_BUDGET_GRACE_MAX_NS,
                            .part_ns = { [SL_BUDGET_SETTLE] = SL_BUDGET_GRACE_MAX_NS } };
    sl_budget budget;

    expect_text(&wish, "fence at least 100ms + settle 720h + abort at least 100ms + flush at least 100ms + "
                       "close at least 50ms + reserve at least 50ms = 720h0.4s does not fit into grace 720h, "
                       "and no grace may be longer than 720h: lower settle to 719h59m59.6s or less");
    wish.part_ns[SL_BUDGET_SETTLE] -= 400 * MILLISECOND_NS;
    EXPECT_OK(sl_budget_make(&wish, &budget));
    wish.grace_ns = 30 * SECOND_NS; /* the least grace is allowed, the comfortable one would not be */
    expect_text(&wish, "fence at least 100ms + settle 719h59m59.6s + abort at least 100ms + flush at least "
                       "100ms + close at least 50ms + reserve at least 50ms = 720h does not fit into grace "
                       "30s: raise grace to at least 720h, or lower settle to 29.6s or less");
}

TEST(budget_parts_have_names)
{
    static const char *const names[] = { "fence", "settle", "abort", "flush", "close", "reserve" };

    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++)
        EXPECT_STR(sl_budget_part_name((sl_budget_part)i), names[i]);
}

static sl_budget_wish random_wish(uint64_t *seed)
{
    sl_budget_wish wish = { .grace_ns = next_random(seed) % (next_random(seed) % 2 ? 2 : 200) * SECOND_NS };

    wish.grace_ns += next_random(seed) % SECOND_NS;
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        const uint64_t what = next_random(seed) % 6;

        if (what == 0)
            wish.part_ns[i] = SL_BUDGET_UNLIMITED;
        else if (what <= 2)
            wish.part_ns[i] = next_random(seed) % (20 * SECOND_NS);
    }
    return wish;
}

/* Written from the header alone: what must hold for any wish, in the plainest words. */
static void judge_made(const sl_budget_wish *wish, const sl_budget *budget)
{
    bool takers = wish->part_ns[SL_BUDGET_SETTLE] == 0;

    EXPECT(sum_of(budget) <= wish->grace_ns);
    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        const uint64_t set_ns = wish->part_ns[i], is_ns = budget->part_ns[i];

        takers |= set_ns == SL_BUDGET_UNLIMITED;
        EXPECT(is_ns >= sl_budget_least_ns((sl_budget_part)i));
        if (set_ns != 0 && set_ns != SL_BUDGET_UNLIMITED)
            EXPECT_EQ(is_ns, set_ns);
        if (set_ns == 0 && i != SL_BUDGET_SETTLE)
            EXPECT(is_ns <= sl_budget_usual_ns((sl_budget_part)i));
    }
    if (takers)
        EXPECT_EQ(sum_of(budget), wish->grace_ns); /* all is given */
    EXPECT_EQ(sum_of(budget) + sl_budget_unused_ns(budget), wish->grace_ns);
    EXPECT(sl_budget_outer_ns(budget) > sl_budget_consumer_ns(budget));
    EXPECT(sl_budget_consumer_ns(budget) > sl_budget_workers_ns(budget));
    EXPECT(sl_budget_workers_ns(budget) > sl_budget_handler_ns(budget));
}

static sl_err judge_refused(const sl_budget_wish *wish)
{
    uint64_t least_ns = 0;

    for (size_t i = 0; i < SL_BUDGET_PART_COUNT_; i++) {
        const uint64_t set_ns = wish->part_ns[i], bound_ns = sl_budget_least_ns((sl_budget_part)i);
        const bool open = set_ns == 0 || set_ns == SL_BUDGET_UNLIMITED;

        if (!open && set_ns < bound_ns)
            return SL_ERR_INVALID;
        least_ns += open ? bound_ns : set_ns;
    }
    return least_ns > wish->grace_ns ? SL_ERR_BUDGET : SL_OK;
}

TEST(budget_random_wishes_are_split_within_the_grace_or_refused_for_a_reason)
{
    uint64_t seed = 11, made_count = 0, refused_count = 0;

    for (unsigned i = 0; i < 50000; i++) {
        const sl_budget_wish wish = random_wish(&seed);
        sl_budget budget;
        const sl_err err = sl_budget_make(&wish, &budget);

        EXPECT_ERR(err, judge_refused(&wish));
        made_count += err == SL_OK;
        refused_count += err != SL_OK;
        if (err == SL_OK)
            judge_made(&wish, &budget);
    }
    EXPECT(made_count > 5000 && refused_count > 5000);
}

TEST(budget_a_longer_grace_never_shortens_a_part)
{
    uint64_t seed = 5;

    for (unsigned i = 0; i < 5000; i++) {
        sl_budget_wish wish = random_wish(&seed);
        sl_budget shorter, longer;

        if (sl_budget_make(&wish, &shorter) != SL_OK)
            continue;
        wish.grace_ns += next_random(&seed) % (5 * SECOND_NS);
        EXPECT_OK(sl_budget_make(&wish, &longer));
        for (size_t k = 0; k < SL_BUDGET_PART_COUNT_; k++)
            EXPECT(longer.part_ns[k] + 2 * MILLISECOND_NS >= shorter.part_ns[k]); /* but for rounding */
    }
}

TEST(S3_33_budget_least_grace_is_accepted_and_nothing_below_it)
{
    uint64_t seed = 3;

    for (unsigned i = 0; i < 5000; i++) {
        sl_budget_wish wish = random_wish(&seed);
        sl_budget budget;

        wish.grace_ns = sl_budget_least_grace(&wish);
        if (judge_refused(&wish) == SL_ERR_INVALID)
            continue;
        EXPECT_OK(sl_budget_make(&wish, &budget));
        EXPECT(sl_budget_comfortable_grace(&wish) <= SL_BUDGET_GRACE_MAX_NS);
        wish.grace_ns--;
        EXPECT_ERR(sl_budget_make(&wish, &budget), SL_ERR_BUDGET);
    }
    EXPECT_EQ(sl_budget_least_grace(&(sl_budget_wish){ 0 }), SL_BUDGET_GRACE_LEAST_MS * MILLISECOND_NS);
}

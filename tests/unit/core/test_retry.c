/* tests/unit/core/test_retry.c — when a failed message is tried again, and when it is given up. */
#include "core/retry.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static sl_retry_verdict after(const sl_retry_policy *policy, uint32_t attempts, uint64_t random)
{
    return sl_retry_next(policy, &(sl_retry_past){ .attempts = attempts }, random);
}

static uint64_t delay_after(const sl_retry_policy *policy, uint32_t attempts)
{
    const sl_retry_verdict verdict = after(policy, attempts, 0);

    EXPECT(verdict.again);
    return verdict.delay_ns;
}

TEST(retry_none_gives_up_after_the_first_attempt)
{
    const sl_retry_policy policy = { .kind = SL_RETRY_NONE };
    const sl_retry_verdict verdict = after(&policy, 1, 0);

    EXPECT_OK(sl_retry_validate(&policy));
    EXPECT(!verdict.again);
    EXPECT_EQ(verdict.reason, SL_RETRY_NEVER);
}

TEST(retry_default_is_one_second_doubling_to_300_with_ten_attempts)
{
    sl_retry_policy policy = sl_retry_default();

    EXPECT_OK(sl_retry_validate(&policy));
    EXPECT_EQ(policy.jitter_permille, 200);
    policy.jitter_permille = 0;
    static const uint64_t seconds[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };
    for (uint32_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        EXPECT_EQ(delay_after(&policy, i + 1), seconds[i] * SECOND_NS);
    EXPECT(!after(&policy, 10, 0).again);
    EXPECT_EQ(after(&policy, 10, 0).reason, SL_RETRY_ATTEMPTS_SPENT);
    policy.attempts_max = 0;
    EXPECT_EQ(delay_after(&policy, 10), 300 * SECOND_NS);
    EXPECT_EQ(delay_after(&policy, UINT32_MAX), 300 * SECOND_NS);
}

TEST(retry_constant_and_linear_follow_their_shape_up_to_the_cap)
{
    const sl_retry_policy constant = { .kind = SL_RETRY_CONSTANT, .delay_first_ns = 7, .delay_max_ns = 9 };
    const sl_retry_policy linear = {
        .kind = SL_RETRY_LINEAR, .delay_first_ns = 10, .delay_step_ns = 5, .delay_max_ns = 23
    };
    static const struct {
        uint32_t attempts;
        uint64_t constant_ns, linear_ns;
    } rows[] = {
        { 0, 7, 10 }, { 1, 7, 10 }, { 2, 7, 15 }, { 3, 7, 20 }, { 4, 7, 23 }, { UINT32_MAX, 7, 23 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_EQ(delay_after(&constant, rows[i].attempts), rows[i].constant_ns);
        EXPECT_EQ(delay_after(&linear, rows[i].attempts), rows[i].linear_ns);
    }
}

TEST(retry_linear_reaches_its_cap_only_when_the_steps_do)
{
    sl_retry_policy linear = {
        .kind = SL_RETRY_LINEAR, .delay_first_ns = 10, .delay_step_ns = 5, .delay_max_ns = 20
    };

    EXPECT_EQ(delay_after(&linear, 3), 20);
    EXPECT_EQ(delay_after(&linear, 4), 20);
    linear.delay_max_ns = 21;
    EXPECT_EQ(delay_after(&linear, 3), 20);
    EXPECT_EQ(delay_after(&linear, 4), 21);
}

TEST(retry_exponential_rounds_up_so_that_it_never_stands_still)
{
    const sl_retry_policy policy = {
        .kind = SL_RETRY_EXPONENTIAL, .factor_permille = 1667, .delay_first_ns = 3, .delay_max_ns = 100
    };

    EXPECT_EQ(delay_after(&policy, 2), 6); /* 5.001 */
}

TEST(retry_exponential_grows_from_one_nanosecond_with_the_least_factor)
{
    const sl_retry_policy slow = { .kind = SL_RETRY_EXPONENTIAL,
                                   .factor_permille = SL_RETRY_FACTOR_PERMILLE_MIN,
                                   .delay_first_ns = 1,
                                   .delay_max_ns = SL_RETRY_DELAY_LIMIT_NS };

    EXPECT_OK(sl_retry_validate(&slow));
    EXPECT_EQ(delay_after(&slow, 2), 2);
    EXPECT_EQ(delay_after(&slow, 500), SL_RETRY_DELAY_LIMIT_NS);
}

TEST(retry_kurrent_is_at_once_and_delivers_one_time_more_than_the_retries)
{
    static const struct {
        uint32_t retries_max, attempts;
        bool again;
    } rows[] = {
        { 0, 1, false },
        { 10, 1, true },
        { 10, 10, true },
        { 10, 11, false },
        { UINT32_MAX, UINT32_MAX - 1, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_retry_policy policy = sl_retry_kurrent(rows[i].retries_max);

        EXPECT_OK(sl_retry_validate(&policy));
        EXPECT_EQ(after(&policy, rows[i].attempts, 99).again, rows[i].again);
        EXPECT_EQ(after(&policy, rows[i].attempts, 99).delay_ns, 0);
    }
}

TEST(retry_gives_up_when_the_next_delay_would_cross_the_total)
{
    const sl_retry_policy policy = {
        .kind = SL_RETRY_CONSTANT, .delay_first_ns = 10, .delay_max_ns = 10, .delay_total_max_ns = 50
    };
    static const struct {
        uint64_t total_ns;
        bool again;
    } rows[] = { { 0, true }, { 40, true }, { 41, false }, { 50, false }, { UINT64_MAX, false } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_retry_past past = { .attempts = 1, .delay_total_ns = rows[i].total_ns };
        const sl_retry_verdict verdict = sl_retry_next(&policy, &past, 0);

        EXPECT_EQ(verdict.again, rows[i].again);
        EXPECT_EQ(verdict.reason, rows[i].again ? SL_RETRY_BY_POLICY : SL_RETRY_DELAY_SPENT);
    }
}

/* S3.37 in part, and architecture section 8: 429 and 503 honour Retry-After. */
TEST(retry_after_of_the_destination_is_a_lower_bound_within_a_maximum)
{
    sl_retry_policy policy = {
        .kind = SL_RETRY_CONSTANT, .delay_first_ns = 10, .delay_max_ns = 10, .retry_after_max_ns = 100
    };
    static const struct {
        uint64_t wish_ns, delay_ns;
        sl_retry_reason reason;
    } rows[] = {
        { 0, 10, SL_RETRY_BY_POLICY },         { 9, 10, SL_RETRY_BY_POLICY },
        { 10, 10, SL_RETRY_BY_POLICY },        { 11, 11, SL_RETRY_BY_DESTINATION },
        { 100, 100, SL_RETRY_BY_DESTINATION }, { UINT64_MAX, 100, SL_RETRY_BY_DESTINATION },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_retry_past past = { .attempts = 1, .retry_after_ns = rows[i].wish_ns };
        const sl_retry_verdict verdict = sl_retry_next(&policy, &past, 0);

        EXPECT(verdict.again);
        EXPECT_EQ(verdict.delay_ns, rows[i].delay_ns);
        EXPECT_EQ(verdict.reason, rows[i].reason);
    }
    policy.delay_total_max_ns = 50; /* the wish counts against the total like any other delay */
    EXPECT(!sl_retry_next(&policy, &(sl_retry_past){ .attempts = 1, .retry_after_ns = 60 }, 0).again);
}

TEST(retry_validate_refuses_numbers_out_of_bounds)
{
    const sl_retry_policy good = sl_retry_default();
    sl_retry_policy bad[10];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        bad[i] = good;
    bad[0].kind = SL_RETRY_KIND_COUNT_;
    bad[1].factor_permille = SL_RETRY_FACTOR_PERMILLE_MIN - 1;
    bad[2].factor_permille = SL_RETRY_FACTOR_PERMILLE_MAX + 1;
    bad[3].jitter_permille = 1001;
    bad[4].delay_first_ns = 0;
    bad[5].delay_first_ns = good.delay_max_ns + 1;
    bad[6].delay_max_ns = SL_RETRY_DELAY_LIMIT_NS + 1;
    bad[7].delay_step_ns = SL_RETRY_DELAY_LIMIT_NS + 1;
    bad[8].retry_after_max_ns = SL_RETRY_DELAY_LIMIT_NS + 1;
    bad[9].kind = (sl_retry_kind)-1;
    EXPECT_OK(sl_retry_validate(&good));
    EXPECT_OK(sl_retry_validate(&(sl_retry_policy){ .kind = SL_RETRY_EXPONENTIAL,
                                                    .factor_permille = SL_RETRY_FACTOR_PERMILLE_MAX,
                                                    .jitter_permille = 1000,
                                                    .delay_first_ns = SL_RETRY_DELAY_LIMIT_NS,
                                                    .delay_step_ns = SL_RETRY_DELAY_LIMIT_NS,
                                                    .delay_max_ns = SL_RETRY_DELAY_LIMIT_NS,
                                                    .retry_after_max_ns = SL_RETRY_DELAY_LIMIT_NS }));
    EXPECT_OK(sl_retry_validate(&(sl_retry_policy){ .kind = SL_RETRY_NONE, .delay_first_ns = UINT64_MAX }));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT_ERR(sl_retry_validate(&bad[i]), SL_ERR_INVALID);
}

TEST(retry_jitter_reaches_both_ends_and_is_not_heaped_at_the_cap)
{
    const sl_retry_policy policy = {
        .kind = SL_RETRY_CONSTANT, .jitter_permille = 200, .delay_first_ns = 100, .delay_max_ns = 110
    };
    unsigned hits[200] = { 0 };

    for (uint64_t random = 0; random < 3100; random++)
        hits[after(&policy, 1, random).delay_ns]++;
    for (unsigned delay_ns = 0; delay_ns < 200; delay_ns++)
        EXPECT_EQ(hits[delay_ns], delay_ns >= 80 && delay_ns <= 110 ? 100 : 0);
}

static sl_retry_policy random_policy(uint64_t *seed)
{
    const uint64_t max_ns = 1 + next_random(seed) % SL_RETRY_DELAY_LIMIT_NS;

    return (sl_retry_policy){
        .kind = (sl_retry_kind)(1 + next_random(seed) % 3),
        .factor_permille = SL_RETRY_FACTOR_PERMILLE_MIN + (uint32_t)(next_random(seed) % 5000),
        .jitter_permille = (uint32_t)(next_random(seed) % 1001),
        .delay_first_ns = 1 + next_random(seed) % max_ns,
        .delay_step_ns = next_random(seed) % SL_RETRY_DELAY_LIMIT_NS,
        .delay_max_ns = max_ns,
    };
}

/* The shape in floating point: an independent judge, exact to a few parts in a billion. */
static long double shape_of(const sl_retry_policy *policy, uint32_t attempts)
{
    long double delay_ns = (long double)policy->delay_first_ns;

    for (uint32_t i = 1; i < attempts; i++) {
        if (policy->kind == SL_RETRY_LINEAR)
            delay_ns += (long double)policy->delay_step_ns;
        if (policy->kind == SL_RETRY_EXPONENTIAL)
            delay_ns *= (long double)policy->factor_permille / 1000;
    }
    return delay_ns < (long double)policy->delay_max_ns ? delay_ns : (long double)policy->delay_max_ns;
}

TEST(retry_delays_of_random_policies_stay_in_the_band_around_their_shape)
{
    uint64_t seed = 2024;

    for (unsigned i = 0; i < 20000; i++) {
        const sl_retry_policy policy = random_policy(&seed);
        const uint32_t attempts = 1 + (uint32_t)(next_random(&seed) % 40);
        const long double shape_ns = shape_of(&policy, attempts);
        const long double jitter = (long double)policy.jitter_permille / 1000,
                          slack_ns = 64 + shape_ns * 1e-9L;
        const sl_retry_verdict verdict = after(&policy, attempts, next_random(&seed));

        EXPECT_OK(sl_retry_validate(&policy));
        EXPECT(verdict.again);
        EXPECT(verdict.delay_ns <= policy.delay_max_ns);
        EXPECT((long double)verdict.delay_ns >= shape_ns * (1 - jitter) - slack_ns);
        EXPECT((long double)verdict.delay_ns <= shape_ns * (1 + jitter) + slack_ns);
    }
}

/* With delays of at most 100 ns, 101 draws in a row see the whole range. */
static void find_ends(const sl_retry_policy *policy, uint32_t attempts, uint64_t ret_ends_ns[2])
{
    ret_ends_ns[0] = UINT64_MAX;
    ret_ends_ns[1] = 0;
    for (uint64_t random = 0; random <= 100; random++) {
        const uint64_t delay_ns = after(policy, attempts, random).delay_ns;

        ret_ends_ns[0] = delay_ns < ret_ends_ns[0] ? delay_ns : ret_ends_ns[0];
        ret_ends_ns[1] = delay_ns > ret_ends_ns[1] ? delay_ns : ret_ends_ns[1];
    }
}

TEST(retry_bounds_never_shrink_while_attempts_grow)
{
    uint64_t seed = 7;

    for (unsigned i = 0; i < 300; i++) {
        sl_retry_policy policy = random_policy(&seed);
        uint64_t before_ns[2] = { 0, 0 }, ends_ns[2];

        policy.delay_max_ns = 1 + next_random(&seed) % 100;
        policy.delay_first_ns = 1 + next_random(&seed) % policy.delay_max_ns;
        policy.delay_step_ns = next_random(&seed) % 10;
        for (uint32_t attempts = 1; attempts < 30; attempts++) {
            find_ends(&policy, attempts, ends_ns);
            EXPECT(ends_ns[0] >= before_ns[0] && ends_ns[1] >= before_ns[1]);
            before_ns[0] = ends_ns[0];
            before_ns[1] = ends_ns[1];
        }
    }
}

TEST(retry_reasons_have_names)
{
    EXPECT_STR(sl_retry_reason_name(SL_RETRY_BY_POLICY), "by-policy");
    EXPECT_STR(sl_retry_reason_name(SL_RETRY_BY_DESTINATION), "by-destination");
    EXPECT_STR(sl_retry_reason_name(SL_RETRY_NEVER), "never");
    EXPECT_STR(sl_retry_reason_name(SL_RETRY_ATTEMPTS_SPENT), "attempts-spent");
    EXPECT_STR(sl_retry_reason_name(SL_RETRY_DELAY_SPENT), "delay-spent");
}

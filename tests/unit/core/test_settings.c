#include "../test.h"
#include "core/settings.h"

TEST(S4_5_the_default_settings_are_valid_and_those_of_official_clients)
{
    const sl_settings settings = sl_settings_default();
    const char *field = "";

    EXPECT_OK(sl_settings_validate(&settings, &field));
    EXPECT_EQ(settings.lease_ns, UINT64_C(30000000000));
    EXPECT_EQ(settings.retries_max, 10);
    EXPECT_EQ(settings.buffer_max, 500);
}

TEST(a_setting_out_of_bounds_is_named)
{
    const sl_settings good = sl_settings_default();
    sl_settings bad;
    const char *field;

#define EXPECT_BAD(change, name)                                                                             \
    do {                                                                                                     \
        bad = good;                                                                                          \
        field = "none";                                                                                      \
        change;                                                                                              \
        EXPECT_ERR(sl_settings_validate(&bad, &field), SL_ERR_INVALID);                                      \
        EXPECT_STR(field, name);                                                                             \
    } while (0)

    EXPECT_BAD(bad.strategy = SL_STRATEGY_COUNT_, "strategy");
    EXPECT_BAD(bad.key_order = true, "key_order");
    EXPECT_BAD(bad.lease_ns = 999999, "lease_ns");
    EXPECT_BAD(bad.lease_ns = UINT64_C(86400000000001), "lease_ns");
    EXPECT_BAD(bad.backoff.kind = SL_RETRY_NONE, "backoff");
    EXPECT_BAD(bad.backoff.kind = SL_RETRY_KIND_COUNT_, "backoff");
    EXPECT_BAD(bad.buffer_max = 0, "buffer_max");
    EXPECT_BAD(bad.checkpoint_count_max = 0, "checkpoint_count_max");
#undef EXPECT_BAD
    bad = good;
    bad.lease_ns = 1000000;
    bad.retries_max = UINT32_MAX;
    EXPECT_OK(sl_settings_validate(&bad, &field));
}

TEST(strategies_have_the_names_that_clients_use)
{
    EXPECT_STR(sl_strategy_name(SL_STRATEGY_ROUND_ROBIN), "RoundRobin");
    EXPECT_STR(sl_strategy_name(SL_STRATEGY_PINNED_BY_CORRELATION), "PinnedByCorrelation");
    EXPECT_STR(sl_strategy_name(SL_STRATEGY_COUNT_), "unknown");
}

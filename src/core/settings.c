/* core/settings.c — defaults, bounds and names of a group's settings. */
#include "core/settings.h"

#include "base/cleanup.h"

#include <assert.h>
#include <stddef.h>

enum {
    LEASE_NS_MIN = 1000000, /* a millisecond: shorter leases end before any client could answer */
};

static const char *const strategy_names[] = {
    [SL_STRATEGY_ROUND_ROBIN] = "RoundRobin",
    [SL_STRATEGY_DISPATCH_TO_SINGLE] = "DispatchToSingle",
    [SL_STRATEGY_PINNED] = "Pinned",
    [SL_STRATEGY_PINNED_BY_CORRELATION] = "PinnedByCorrelation",
};
static_assert(SL_COUNT_OF(strategy_names) == SL_STRATEGY_COUNT_, "one name for each strategy");

sl_settings sl_settings_default(void)
{
    return (sl_settings){
        .strategy = SL_STRATEGY_ROUND_ROBIN,
        .lease_ns = UINT64_C(30) * 1000000000,
        .retries_max = 10,
        .kills_max = 5,
        .interrupts_max = 20,
        .backoff = sl_retry_kurrent(10),
        .buffer_max = 500,
        .checkpoint_after_ns = UINT64_C(2) * 1000000000,
        .checkpoint_count_min = 10,
        .checkpoint_count_max = 1000,
    };
}

static const char *first_invalid(const sl_settings *settings)
{
    if ((unsigned)settings->strategy >= SL_STRATEGY_COUNT_)
        return "strategy";
    if (settings->key_order && !sl_strategy_is_pinned(settings->strategy))
        return "key_order";
    if (settings->lease_ns < LEASE_NS_MIN || settings->lease_ns > SL_LEASE_NS_MAX)
        return "lease_ns";
    if (settings->backoff.kind == SL_RETRY_NONE || sl_retry_validate(&settings->backoff) != SL_OK ||
        settings->backoff.delay_max_ns > SL_PAUSE_NS_MAX)
        return "backoff";
    if (settings->buffer_max == 0)
        return "buffer_max";
    if (settings->checkpoint_count_max == 0)
        return "checkpoint_count_max";
    return NULL;
}

sl_err sl_settings_validate(const sl_settings *settings, const char **ret_field)
{
    const char *const field = first_invalid(settings);

    if (field == NULL)
        return SL_OK;
    *ret_field = field;
    return SL_ERR_INVALID;
}

const char *sl_strategy_name(sl_strategy strategy)
{
    return (unsigned)strategy < SL_STRATEGY_COUNT_ ? strategy_names[strategy] : "unknown";
}

/* base/clock.c — the manual clock: two numbers that only the owner moves. */
#include "base/clock.h"

#include "base/cleanup.h"

static uint64_t show_mono_ns(void *ctx)
{
    return ((const sl_clock_manual *)ctx)->mono_ns;
}

static uint64_t show_wall_ns(void *ctx)
{
    return ((const sl_clock_manual *)ctx)->wall_ns;
}

sl_clock sl_clock_manual_clock(sl_clock_manual *manual)
{
    return (sl_clock){ .mono_ns = show_mono_ns, .wall_ns = show_wall_ns, .ctx = manual };
}

void sl_clock_manual_advance(sl_clock_manual *manual, uint64_t duration_ns)
{
    manual->mono_ns = sl_add_sat_u64(manual->mono_ns, duration_ns);
    manual->wall_ns = sl_add_sat_u64(manual->wall_ns, duration_ns);
}

void sl_clock_manual_set_wall(sl_clock_manual *manual, uint64_t wall_ns)
{
    manual->wall_ns = wall_ns;
}

/* base/clock.h — time as something that is passed in; this folder never reads a clock itself.
 *
 * Two times that must not be mixed: monotonic time has no meaning but never goes back, so everything that
 * waits or expires uses it; wall time is for people and records, and may jump. The loop in src/net reads the
 * system's clocks once in a turn; tests and simulations use sl_clock_manual. */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include <stdint.h>

typedef struct sl_clock {
    uint64_t (*mono_ns)(void *ctx);
    uint64_t (*wall_ns)(void *ctx); /* since 1970 in UTC */
    void *ctx;
} sl_clock;

static inline uint64_t sl_clock_mono_ns(const sl_clock *clock)
{
    return clock->mono_ns(clock->ctx);
}

static inline uint64_t sl_clock_wall_ns(const sl_clock *clock)
{
    return clock->wall_ns(clock->ctx);
}

/* A clock that stands still until it is told to move. Initialise it with the times it shall show. */
typedef struct sl_clock_manual {
    uint64_t mono_ns, wall_ns;
} sl_clock_manual;

/* A clock that shows `manual`, which must live as long as the clock is used. */
sl_clock sl_clock_manual_clock(sl_clock_manual *manual);

/* Time passes: both clocks move. They stop at UINT64_MAX instead of starting over. */
void sl_clock_manual_advance(sl_clock_manual *manual, uint64_t duration_ns);

/* Someone sets the wall clock, back or forth; monotonic time does not notice. */
void sl_clock_manual_set_wall(sl_clock_manual *manual, uint64_t wall_ns);

#endif

/* worker/crew_supervise.c — is a member made again, and when. No time is read and nothing is done here. */
#include "worker/crew_private.h"

#include "base/cleanup.h"

#define SECOND_NS UINT64_C(1000000000)

const sl_crew_rules sl_crew_rules_default = { .pause_first_ns = SECOND_NS,
                                              .pause_max_ns = 30 * SECOND_NS,
                                              .health_ns = 60 * SECOND_NS };

static uint64_t pause_after(const sl_crew_rules *rules, uint32_t failures)
{
    uint64_t pause_ns = rules->pause_first_ns;

    for (uint32_t i = 1; i < failures && pause_ns < rules->pause_max_ns; i++)
        pause_ns *= 2;
    return sl_min_u64(pause_ns, rules->pause_max_ns);
}

/* A server that goes away for good manners (its own restart) has asked this worker to leave, not to stay away: nobody here did
 * anything wrong, so it is no failure, and the worker knocks again. No source of today says this: consumers of a Sluice server keep
 * their worker and connect again by themselves (decision 0020). It is for RabbitMQ, whose broker cancels consumers by name. */
static bool is_sent_away_by_server(const sl_crew_life *life)
{
    return life->was_made && life->end == SL_WORK_ENDED_AS_ASKED && life->reason == SL_DRAIN_REASON_SERVER;
}

sl_crew_verdict sl_crew_judge(const sl_crew_rules *rules, const sl_crew_life *life, uint32_t *failures,
                              uint64_t *ret_pause_ns)
{
    *ret_pause_ns = rules->pause_first_ns;
    if (is_sent_away_by_server(life))
        return SL_CREW_MADE_AGAIN;
    if (life->was_made && (life->end == SL_WORK_ENDED_AS_ASKED || life->reason == SL_DRAIN_REASON_OPERATOR))
        return SL_CREW_STAYS_ENDED; /* an operator's word holds, also when the source failed while it was carried out */
    if (life->was_of_use && life->up_ns >= rules->health_ns)
        *failures = 0;
    if (*failures < UINT32_MAX)
        (*failures)++;
    *ret_pause_ns = pause_after(rules, *failures);
    return *failures > rules->restarts_max ? SL_CREW_GIVES_UP : SL_CREW_MADE_AGAIN;
}

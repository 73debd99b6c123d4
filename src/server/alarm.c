/* server/alarm.c — times at which services want to be called: a heap of nodes that live inside of who waits.
 *
 * An alarm that sets itself again while it is fired waits for the next tick, even for a time that is past. Otherwise one
 * that is always late would keep sl_host_tick() from ever returning. */
#include "server/host.h"

#include <assert.h>

static sl_alarm *alarm_of(sl_pairing_node *node)
{
    return SL_CONTAINER_OF(node, sl_alarm, node);
}

void sl_alarm_stop(sl_host *host, sl_alarm *alarm)
{
    if (!alarm->is_set)
        return;
    sl_pairing_remove(&host->alarms, &alarm->node);
    alarm->is_set = false;
}

void sl_alarm_set(sl_host *host, sl_alarm *alarm, uint64_t at_ns)
{
    assert(alarm->fn != NULL);
    sl_alarm_stop(host, alarm);
    if (at_ns == UINT64_MAX)
        return;
    alarm->at_ns = at_ns < host->alarm_floor_ns ? host->alarm_floor_ns : at_ns;
    alarm->is_set = true;
    sl_pairing_insert(&host->alarms, &alarm->node);
}

uint64_t sl_host_due_ns(const sl_host *host)
{
    sl_pairing_node *const first = sl_pairing_min(&host->alarms);

    return first == NULL ? UINT64_MAX : alarm_of(first)->at_ns;
}

void sl_host_tick(sl_host *host, uint64_t now_ns)
{
    assert(host->alarm_floor_ns == 0); /* an alarm must not tick */
    assert(now_ns < UINT64_MAX);
    host->alarm_floor_ns = now_ns + 1;
    while (sl_host_due_ns(host) <= now_ns) {
        sl_alarm *const alarm = alarm_of(sl_pairing_min(&host->alarms));

        sl_alarm_stop(host, alarm);
        alarm->fn(alarm->ctx);
    }
    host->alarm_floor_ns = 0;
}

/* server/counters.h — what is counted, for /metrics, statistics and the last line of the log. Nothing is counted down
 * except where it says "now". Names on the outside: docs/METRICS.md. */
#ifndef SL_SERVER_COUNTERS_H
#define SL_SERVER_COUNTERS_H

#include "net/reason.h"
#include "wire/connection.h"
#include "wire/status.h"

#include <stdint.h>

typedef struct sl_server_counters {
    sl_wire_counters wire;
    sl_net_counters net;
    uint64_t calls_begun, calls_now;
    uint64_t calls_refused; /* because the server was stopping, before their methods saw them */
    uint64_t calls_ended[SL_STATUS_COUNT_]; /* by status; those cut off count as CANCELLED */
    uint64_t batches_accepted, batches_refused, batches_failed, batches_done;
    uint64_t events_appended, bytes_appended; /* durable; data and metadata */
    uint64_t events_read, bytes_read;         /* handed to clients */
    uint64_t subscriptions_now;
    uint64_t consumers_now;          /* of persistent subscriptions, with an open call */
    uint64_t consumers_draining_now; /* those of them that the stopping server waits for */
    uint64_t consumers_stopped[4];   /* by sl_report_outcome: drained, left, away, dropped */
    uint64_t group_pages_held_now;   /* the same as the next, of groups that have no room */
    uint64_t pages_held_now;         /* by readers that wait for their clients: memory */
    uint64_t fell_behind;
    uint64_t logins_ok, logins_refused, logins_throttled;
    uint64_t access_denied;
} sl_server_counters;

#endif

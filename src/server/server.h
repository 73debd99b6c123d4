/* server/server.h — the whole of `sluice serve`: store, sockets, services, admin pages; and its end.
 *
 *      start --> ready --> (signal, or a failure) --> refuse new --> finish what was accepted --> GOAWAY --> close --> exit
 *
 * A start that fails takes the same way out, from where it got to. */
#ifndef SL_SERVER_SERVER_H
#define SL_SERVER_SERVER_H

#include "base/alloc.h"
#include "server/settings.h"

typedef struct sl_server_hooks {
    sl_log_sink_fn *log_sink; /* each finished line; one thread at a time */
    /* Everything accepts now; called once. Addresses as a client can use them: "127.0.0.1:2113". */
    void (*on_ready)(void *ctx, const char *address, const char *admin_address);
    void *ctx;
} sl_server_hooks;

typedef struct sl_server_report { /* of the end */
    char reason[1152];
    bool forced; /* a second signal, or the budget ran out */
    uint64_t uptime_ns, shutdown_ns;
    /* Of the batches that were inside when the door was shut; finished are written, failed were answered with an error, and of
     * those that are left nobody knows. */
    uint64_t batches_finished, batches_failed, batches_left;
    uint64_t batches_refused, calls_refused; /* since then */
    uint64_t calls_cut;
    uint64_t consumers_drained;             /* of persistent subscriptions, since the stop began */
    uint64_t consumers_left, messages_left; /* who still holds something, and how much: their leases go on */
} sl_server_report;

/* Runs until the end. The settings must have been checked.
 *   SL_OK            ended as asked
 *   anything else    could not start or had to give up; `problem` says what, what it means and what to do */
sl_err sl_server_run(const sl_alloc *alloc, const sl_server_settings *settings, const sl_server_hooks *hooks,
                     sl_text *problem, sl_server_report *ret_report);

#endif

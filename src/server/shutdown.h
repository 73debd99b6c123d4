/* server/shutdown.h — the one way out, for signals, for a failed start and for a store that failed (S3, B14).
 *
 * core/drain.h has the phases and their times; here stands what a server does in each of them and what it waits for:
 *
 *      phase      waits for                                          at its begin
 *      FENCING    a store that is still being opened                 refuse(): not ready, no new connections and calls; each
 *                                                                    open call is told; then, in the same turn, the door is shut
 *      SETTLING   batches inside the door: accepted, not answered    -
 *      ABORTING   the same, a last moment: a disk cannot be killed   -
 *      FLUSHING   open calls: their answers leave                    -
 *      CLOSING    connections that clients close, and the helper     cut(): calls that are left lose their connection; then
 *                 thread of passwords                                farewell(): GOAWAY to every client that is left, and the
 *                                                                    helper thread is told to end
 *
 * GOAWAY waits for the answers, and a tenth of a second more: some clients give a call up when they find GOAWAY behind its status
 * in what they read at one time (curl 7.88 always, grpc-js at times), and would never see why it ended.
 *
 * What is not there is not waited for, so a start that failed goes through all phases at once, from wherever it got to.
 * Every phase has its part of the grace; what took too long is logged with its name and limit, and the next one begins.
 * A second signal ends all waiting. Nothing here waits by itself: the owner calls sl_shutdown_turn() in each turn and at
 * the time that it returns. Afterwards the owner closes the store, within sl_shutdown_end_ns(), and then the admin pages. */
#ifndef SL_SERVER_SHUTDOWN_H
#define SL_SERVER_SHUTDOWN_H

#include "base/log.h"
#include "core/drain.h"

enum {
    SL_SHUTDOWN_REASON_BYTES = 1152 /* whole sentences about a failed start */
};

typedef struct sl_shutdown_steps {
    void (*refuse)(void *ctx, const char *reason);
    void (*cut)(void *ctx);
    void (*farewell)(void *ctx);
    /* gates: whatever could still let something in; started: batches inside the door; unconfirmed: open calls; open:
     * connections and threads. */
    sl_drain_held (*held)(void *ctx);
} sl_shutdown_steps;

typedef struct sl_shutdown {
    sl_drain drain;
    sl_shutdown_steps steps;
    void *ctx;
    const sl_logger *log;
    bool insisted;        /* a second signal came, */
    uint64_t insisted_ns; /* then */
    uint64_t answers_ns;  /* when there was an open call the last time; 0: there was none */
    bool was_idle;        /* a start that failed before there was anything to end */
    uint32_t phases_told; /* phases below this one have their line in the log */
    char reason[SL_SHUTDOWN_REASON_BYTES];
} sl_shutdown;

/* How the grace of a server is split: see shutdown.c. */
sl_budget_wish sl_shutdown_wish(uint64_t grace_ns);

/* grace_ns must hold a shutdown: sl_server_settings_check() has seen to it. log must live as long as this. */
void sl_shutdown_init(sl_shutdown *shutdown, uint64_t grace_ns, const sl_shutdown_steps *steps, void *ctx,
                      const sl_logger *log);

/* True when this call began it; the first reason is kept (S3.2). text: what to call it, cut where it is too long; NULL: the
 * name of the reason. */
bool sl_shutdown_begin(sl_shutdown *shutdown, sl_drain_reason reason, const char *text, uint64_t now_ns);

/* A second signal: from now on nothing is waited for. */
void sl_shutdown_insist(sl_shutdown *shutdown, uint64_t now_ns);

/* Goes on as far as it can. Returns when to call again at the latest, UINT64_MAX when it is not on or is over. */
uint64_t sl_shutdown_turn(sl_shutdown *shutdown, uint64_t now_ns);

bool sl_shutdown_is_on(const sl_shutdown *shutdown);   /* begun, or over */
bool sl_shutdown_is_over(const sl_shutdown *shutdown); /* nothing is waited for any more */

/* "" before it has begun. */
const char *sl_shutdown_reason(const sl_shutdown *shutdown);

/* By when the store must be closed: half of the reserve before the grace ends. After a second signal a moment is left, which
 * is enough unless the disk hangs, and spares the next start some work. */
uint64_t sl_shutdown_end_ns(const sl_shutdown *shutdown);

#endif

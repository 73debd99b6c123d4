/* core/budget.h — one number, the orchestrator's grace, split into the parts of a shutdown; checked, not
 * hoped for.
 *
 *      signal                                                                                     SIGKILL
 *      |<--------------------------------------- grace ------------------------------------------->|
 *      |  fence  |        settle        |  abort  |  flush  |  close  |  reserve  |     unused      |
 *      |         |<------ handler ----->|                                                          |
 *      |         |<----------- workers ---------->|                                                |
 *      |<------------------------ consumer ------------------------->|                             |
 *      |<---------------------------------------- outer ------------------------------------------>|
 *
 *      fence    the source confirms that nothing new will come
 *      settle   work that was started finishes: the grace of a handler
 *      abort    handlers get SIGTERM, then SIGKILL; what is left is released
 *      flush    acknowledgements are confirmed
 *      close    channels, producers, connections, threads
 *      reserve  the report, and the way out of main()
 *
 * A wish holds the grace and any parts that somebody has set. The rest is derived: each part gets at least
 * its lower bound, the time above that is shared in the proportion of the usual lengths, none but settle
 * grows beyond its usual length, and settle takes all that is left. With nothing set, 30 s become 2 + 20 + 3
 * + 2 + 2 + 1. A part that is "unlimited" takes a share of what is left like settle does: a limit always
 * exists (S4.15).
 *
 * What does not fit is refused at start-up, with the arithmetic as a sentence (S3.32). Two graces are worth
 * knowing for a wish: the *least* one that is accepted, where every open part is at its lower bound, and the
 * *comfortable* one, where every open part has its usual length. Whoever wants to set the parts and derive
 * the grace gives the comfortable one to the orchestrator (S3.33).
 *
 * Invariants, held by sl_budget_check():
 *   (1) the sum of the parts is at most the grace.
 *   (2) no part is below its lower bound.
 *   (3) outer > consumer > workers > handler (S2.13). This follows from (1) and (2), and is asserted all the
 * same. */
#ifndef SL_CORE_BUDGET_H
#define SL_CORE_BUDGET_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* Why these lengths. fence: a round trip over a slow network; two seconds are plenty for a broker under load
 * to answer. settle: below a tenth of a second even a handler that is just writing its answer would be torn
 * off. abort: SIGTERM has half of it, a scheduling turn at least, and usually enough to roll a transaction
 * back. flush: the cap of S4.19; an acknowledgement that was not confirmed by then is replayed after the
 * restart. reserve: a report is one line; a second also covers a process that is swapped in to write it. */
#define SL_BUDGET_PART_MAP(XX) /* name, text, lower bound in ms, usual length in ms */                       \
    XX(FENCE, "fence", 100, 2000)                                                                            \
    XX(SETTLE, "settle", 100, 20000)                                                                         \
    XX(ABORT, "abort", 100, 3000)                                                                            \
    XX(FLUSH, "flush", 100, 2000)                                                                            \
    XX(CLOSE, "close", 50, 2000)                                                                             \
    XX(RESERVE, "reserve", 50, 1000)

typedef enum sl_budget_part {
#define XX(name, text, least_ms, usual_ms) SL_BUDGET_##name,
    SL_BUDGET_PART_MAP(XX)
#undef XX
    SL_BUDGET_PART_COUNT_
} sl_budget_part;

/* The lower bounds as constants, for tables: SL_BUDGET_FENCE_LEAST_MS and so on, and the least grace that any
 * wish can have. */
enum {
#define XX(name, text, least_ms, usual_ms) SL_BUDGET_##name##_LEAST_MS = (least_ms),
    SL_BUDGET_PART_MAP(XX)
#undef XX
#define XX(name, text, least_ms, usual_ms) +(least_ms)
    SL_BUDGET_GRACE_LEAST_MS = 0 SL_BUDGET_PART_MAP(XX)
#undef XX
};

/* For a part of a wish: all that the grace leaves. */
#define SL_BUDGET_UNLIMITED UINT64_MAX

/* 30 days, for the grace and for each part. Nobody waits longer for a process to end, and sums of a few such
 * numbers stay far from 64 bits. */
#define SL_BUDGET_GRACE_MAX_NS (UINT64_C(30) * 24 * 3600 * 1000000000)

typedef struct sl_budget_wish {
    uint64_t grace_ns;                       /* what the orchestrator gives between SIGTERM and SIGKILL */
    uint64_t part_ns[SL_BUDGET_PART_COUNT_]; /* 0 derives it, SL_BUDGET_UNLIMITED takes what is left */
} sl_budget_wish;

typedef struct sl_budget {
    uint64_t grace_ns;
    uint64_t part_ns[SL_BUDGET_PART_COUNT_];
} sl_budget;

/* Splits the grace.
 *   SL_OK
 *   SL_ERR_INVALID  a set part is below its lower bound, or it or the grace is above SL_BUDGET_GRACE_MAX_NS
 *   SL_ERR_BUDGET   the parts do not fit into the grace
 * (*ret_budget is untouched unless SL_OK; sl_budget_explain() says which number is wrong) */
sl_err sl_budget_make(const sl_budget_wish *wish, sl_budget *ret_budget);

/* One sentence without a full stop. When the wish is granted, the table of parts and the nesting; when not,
 * what is wrong and what to do about it: "fence 1s + settle 30s + ... = 41s does not fit into grace 30s: ..." */
void sl_budget_explain(const sl_budget_wish *wish, sl_text *text);

/* The shortest grace that sl_budget_make() accepts for these parts: set parts as they are, the others at their
 * lower bound. wish->grace_ns is not read. May be above SL_BUDGET_GRACE_MAX_NS: then no grace is long enough.
 * UINT64_MAX when the sum is beyond 64 bits. */
uint64_t sl_budget_least_grace(const sl_budget_wish *wish);

/* The grace to give to the orchestrator for these parts: set parts as they are, the others at their usual
 * length. Otherwise like the least one. */
uint64_t sl_budget_comfortable_grace(const sl_budget_wish *wish);

/* The same in whole seconds, rounded up: terminationGracePeriodSeconds, stop_grace_period, TimeoutStopSec. */
uint64_t sl_budget_comfortable_grace_seconds(const sl_budget_wish *wish);

/* What no part asked for. 0 unless settle was set: a derived settle takes what is left. */
uint64_t sl_budget_unused_ns(const sl_budget *budget);

/* The nesting as in the picture above. The first is the whole grace. */
uint64_t sl_budget_outer_ns(const sl_budget *budget);
uint64_t sl_budget_consumer_ns(const sl_budget *budget);
uint64_t sl_budget_workers_ns(const sl_budget *budget);
uint64_t sl_budget_handler_ns(const sl_budget *budget);

/* Time from the begin of a drain to the end of this part when every part takes all it has. */
uint64_t sl_budget_until_end_ns(const sl_budget *budget, sl_budget_part part);

/* Lower bound of a part, its length when there is enough time, and its name. */
uint64_t sl_budget_least_ns(sl_budget_part part);
uint64_t sl_budget_usual_ns(sl_budget_part part);
const char *sl_budget_part_name(sl_budget_part part);

void sl_budget_check(const sl_budget *budget);

#endif

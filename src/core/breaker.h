/* core/breaker.h — the circuit breaker of one destination: do not send to what does not answer.
 *
 *                 failures_max failures in a row
 *      CLOSED ------------------------------------> OPEN <-----------------+
 *        ^                                            |                    |
 *        |                                    cool-down is over            |
 *        |                                            v                    |
 *        +-------- the probe succeeds ---------- HALF-OPEN ---- the probe fails
 *                                                one probe at a time
 *
 * None of these words is stored. Open is "failures_max failures in a row", half-open is "open, and the
 * cool-down is over"; both follow from two numbers and the time that is passed in.
 *
 * sl_breaker_ask() before each send gives one of
 *
 *      SEND    go ahead, hand the ticket back with the result
 *      PROBE   the same, and the state of the destination hangs on this one message
 *      WAIT    not now; ask again at until_ns, or when a result has come in
 *      KEEP    not in this drain: leave the message stored for the next process, do not dead-letter it
 *
 * Why a ticket: a result tells something about the destination at the time of its sending. Results of
 * messages that were sent before the last change of state are old news and are ignored. Without this a slow
 * failure from before the recovery would count against it, and any late result would end a probe that it
 * knows nothing of.
 *
 * In a drain (S3.18, S3.39). Work that was accepted before the drain has only this chance, so it passes also
 * while the breaker is open and without waiting for the cool-down: a bypass. But a dead destination must not
 * eat the budget: at most bypasses_max bypasses may be unanswered or failed, those who ask meanwhile WAIT,
 * and after that many failures the rest is KEPT. One success closes the breaker and everything flows.
 *
 * Pure, one thread at a time. The caller asks in a drain only for work that it accepted before the drain
 * began. */
#ifndef SL_CORE_BREAKER_H
#define SL_CORE_BREAKER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_breaker_rules {
    uint32_t failures_max;     /* so many in a row open it */
    uint32_t bypasses_max;     /* so many failures against an open breaker end the tries of a drain */
    uint64_t cool_down_ns;     /* rest after opening and after a failed probe */
    uint64_t cool_down_max_ns; /* so far a Retry-After may lengthen that rest; at least cool_down_ns */
    uint64_t probe_max_ns;     /* a probe that has not reported by then may be followed by another */
} sl_breaker_rules;

typedef enum sl_breaker_state {
    SL_BREAKER_CLOSED,
    SL_BREAKER_OPEN,
    SL_BREAKER_HALF_OPEN,
    SL_BREAKER_STATE_COUNT_
} sl_breaker_state;

typedef enum sl_breaker_verdict_kind {
    SL_BREAKER_SEND,
    SL_BREAKER_PROBE,
    SL_BREAKER_WAIT,
    SL_BREAKER_KEEP,
    SL_BREAKER_VERDICT_COUNT_
} sl_breaker_verdict_kind;

typedef struct sl_breaker_verdict {
    sl_breaker_verdict_kind kind;
    uint64_t ticket;   /* SEND and PROBE: never 0; to be handed back exactly once */
    uint64_t until_ns; /* WAIT: when to ask again at the latest */
} sl_breaker_verdict;

/* Fields are for reading in tests only; everything else goes through the functions. */
typedef struct sl_breaker {
    sl_breaker_rules rules;
    uint64_t ticket;         /* names the present stretch of time; old tickets are old news */
    uint64_t open_until_ns;  /* end of the cool-down; 0 while closed */
    uint64_t probe_until_ns; /* a probe is out and has until then; 0 when none is out */
    uint64_t drain_until_ns; /* a drain is on and work may be sent until then; 0 outside of a drain */
    uint32_t failures;       /* in a row; failures_max or more is what "open" means */
    uint32_t bypasses; /* let through in this drain since the breaker opened, the failed ones included */
    uint32_t bypasses_failed;
} sl_breaker;

/* 5 failures, 60 s cool-down, 60 s for a probe, Retry-After up to 10 min, 3 bypasses. */
sl_breaker_rules sl_breaker_rules_default(void);

/* SL_OK, or SL_ERR_INVALID: a number is 0, or cool_down_max_ns is below cool_down_ns. */
sl_err sl_breaker_rules_validate(const sl_breaker_rules *rules);

/* rules: valid ones; they are copied. */
void sl_breaker_init(sl_breaker *breaker, const sl_breaker_rules *rules);

/* May one message be sent now? */
sl_breaker_verdict sl_breaker_ask(sl_breaker *breaker, uint64_t now_ns);

/* How it went; exactly one of these for each ticket. */
void sl_breaker_succeeded(sl_breaker *breaker, uint64_t ticket);

typedef struct sl_breaker_failure {
    uint64_t now_ns;
    uint64_t retry_after_ns; /* what the destination asked for; 0 when it did not */
} sl_breaker_failure;

void sl_breaker_failed(sl_breaker *breaker, uint64_t ticket, sl_breaker_failure failure);

/* The message was not sent or nobody knows how it went (its lease was lost, its handler aborted): this says
 * nothing about the destination, but it makes room for the next probe or bypass. */
void sl_breaker_withdrawn(sl_breaker *breaker, uint64_t ticket);

/* A drain begins: accepted work may be sent until until_ns, which is not 0. A second call only moves the
 * time. */
void sl_breaker_drain(sl_breaker *breaker, uint64_t until_ns);

/* The drain was taken back, or the same process starts again (S4.20). Harmless outside of a drain. */
void sl_breaker_drain_end(sl_breaker *breaker);

sl_breaker_state sl_breaker_state_at(const sl_breaker *breaker, uint64_t now_ns);

/* "closed", "open", "half-open". */
const char *sl_breaker_state_name(sl_breaker_state state);

/* Asserts what must always hold; the changing functions call it on entry and exit. */
void sl_breaker_check(const sl_breaker *breaker);

#endif

/* worker/schedule_source.h — time as a source: a tick every so often, one at a time.
 *
 *      schedule:every=30m,jitter=10%,cooldown=5m,at-start=yes
 *
 *      start      +30m       +60m        +90m       +120m
 *      |----------|----------|-----------|----------|-----> nominal times, a grid on monotonic time: a wall clock that is set
 *      tick       ..tick     ..tick === overrun === .       does not move them
 *                 jitter                  |<-cooldown->|    +90m falls into the overrun and is left out ("missed")
 *
 * A tick comes at its nominal time or up to `jitter` of an interval later. One that falls due while the last one runs is left out;
 * after such an overrun the next one comes at the first nominal time that is at least `cooldown` after the end.
 *
 * There are no leases, no tokens and no other consumers. What became of a tick means:
 *
 *      ack       it worked
 *      retry     logged; the same tick comes again after the pause, unless the next one comes before that (S3.6: no failure is
 *                swallowed, whoever caused it)
 *      park      it is given up: the source fails with SL_SOURCE_LOST and the reason
 *      release   it comes again, unless the gate is closed
 *
 * When no tick has succeeded for two intervals, an error is logged, at most once in an interval; after an overrun they count from the
 * next tick on. A drain ends the pause at once
 * (S3.4), and the work that runs is cancelled (S3.5): a tick can be made again. */
#ifndef SL_WORKER_SCHEDULE_SOURCE_H
#define SL_WORKER_SCHEDULE_SOURCE_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/source.h"

enum {
    SL_SCHEDULE_TEXT_BYTES_MAX = 200
};

typedef struct sl_schedule_rules {
    uint64_t every_ns;
    uint64_t jitter_ns; /* 0 to every_ns */
    uint64_t cooldown_ns;
    bool at_start;                             /* the first tick comes at once, without jitter */
    char text[SL_SCHEDULE_TEXT_BYTES_MAX + 1]; /* as it was written; for ids and for people */
} sl_schedule_rules;

/* "every=30m,jitter=10%", with or without "schedule:" before it. SL_OK, or SL_ERR_INVALID and a sentence in `problem`. */
sl_err sl_schedule_parse(sl_str text, sl_text *problem, sl_schedule_rules *ret_rules);

/* log and loop must live longer. SL_OK, SL_ERR_NOMEM, SL_ERR_IO (no random numbers). */
sl_err sl_schedule_source_new(sl_loop *loop, const sl_logger *log, const sl_schedule_rules *rules,
                              sl_source **ret_source);

/* Both of the above. */
sl_err sl_schedule_source_open(sl_loop *loop, const sl_logger *log, sl_str text, sl_text *problem,
                               sl_source **ret_source);

/* --- the arithmetic: pure, all times are monotonic --- */

typedef struct sl_schedule_tick {
    uint64_t nominal_ns; /* on the grid */
    uint64_t due_ns;     /* with jitter */
    uint64_t missed;     /* ticks before it that were left out */
} sl_schedule_tick;

sl_schedule_tick sl_schedule_first(const sl_schedule_rules *rules, uint64_t start_ns, uint64_t random);

/* After the tick of last_nominal_ns, whose work ended at ended_ns. */
sl_schedule_tick sl_schedule_next(const sl_schedule_rules *rules, uint64_t last_nominal_ns, uint64_t ended_ns,
                                  uint64_t random);

/* The tick to make now, when `planned` is due: if the loop came so late that others fell due since (a machine that slept), they are
 * one. */
sl_schedule_tick sl_schedule_due(const sl_schedule_rules *rules, sl_schedule_tick planned, uint64_t now_ns);

/* When success is overdue, if the last one, or the start, was at since_ns; or after an overrun the next tick is. */
uint64_t sl_schedule_overdue_ns(const sl_schedule_rules *rules, uint64_t since_ns);

#endif

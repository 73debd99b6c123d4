/* net/loop.h — the one place that waits: a loop for one thread, its clock, timers, signals and descriptors.
 *
 * One turn, always in this order:
 *
 *      wait --> descriptors, signals, wake-ups --> timers --> end of the turn --> sends --> wait
 *
 * Bytes come in before the hook "end of the turn" and go out after it. So what a turn brought can be committed
 * once, in the hook, and an answer that waits for the commit leaves in the same turn, in one write for each
 * connection. Callbacks that run after the hook (an end that a send found out, for example) never get lost: the
 * next turn does not wait, and its hook comes at once.
 *
 * The clocks are read once in a turn, when the first callback asks. Nothing here blocks except waiting; name lookups
 * run on libuv's helper threads. Only sl_loop_wake() may be called from another thread or a signal handler. */
#ifndef SL_NET_LOOP_H
#define SL_NET_LOOP_H

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/pairing.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_loop sl_loop;   /* opaque */
typedef struct sl_watch sl_watch; /* opaque */

typedef struct sl_loop_handler { /* any of them may be NULL */
    /* Once in each turn, after everything that came in and before everything that goes out. */
    void (*on_turn_end)(void *ctx);
    /* After sl_loop_wake(); several of those may come as one. */
    void (*on_wake)(void *ctx);
    /* A signal that sl_loop_catch_signals() asked for. nth counts all of them, from 1: a second one is impatient. */
    void (*on_signal)(void *ctx, int signal_number, uint32_t nth);
} sl_loop_handler;

/* alloc: NULL means the default one; it must live as long as the loop.
 *   SL_OK
 *   SL_ERR_NOMEM
 *   SL_ERR_OPEN_FILES
 *   SL_ERR_IO          the system refused for another reason */
sl_err sl_loop_new(const sl_alloc *alloc, const sl_loop_handler *handler, void *ctx, sl_loop **ret_loop);

/* Listeners, watches and sockets must be gone or closed before; those that still linger are cut. Waits for a name
 * lookup that is under way. NULL is allowed. */
void sl_loop_free(sl_loop *loop);

/* Turns until sl_loop_stop(), which ends the turn it is called in: sends are still done. May be run again. */
void sl_loop_run(sl_loop *loop);
void sl_loop_stop(sl_loop *loop);

/* One turn. wait: until something happens; otherwise only what is there. For tests and for start-up. */
void sl_loop_turn(sl_loop *loop, bool wait);

/* For a program that has a loop of its own and turns this one inside of it: a descriptor that is readable when there is something to
 * do, and for how many milliseconds at most one may wait for that; -1: for ever. Only after a turn that did not wait do they know of
 * everything. */
int sl_loop_fd(const sl_loop *loop);
int sl_loop_wait_ms(sl_loop *loop);

/* From any thread. Coming after the loop was freed is the caller's error. */
void sl_loop_wake(sl_loop *loop);

/* SIGTERM, SIGINT and SIGHUP come as on_signal from now on, until the loop is freed, also when whoever started this process had them
 * ignored or blocked (S3.3). Codes as sl_loop_new(). */
sl_err sl_loop_catch_signals(sl_loop *loop);

/* The time of this turn; outside of sl_loop_run() the time of this moment. */
uint64_t sl_loop_now_ns(sl_loop *loop);
uint64_t sl_loop_wall_ns(sl_loop *loop);

/* The same as an interface for the other folders; good as long as the loop. */
const sl_clock *sl_loop_clock(const sl_loop *loop);

/* One that goes on during a turn: for measuring what a piece of work has used, never for what is due. */
const sl_clock *sl_loop_stopwatch(void);

/* --- timers: inside the things that need them, so that setting one cannot fail --- */

typedef void sl_timer_fn(void *ctx);

typedef struct sl_timer {
    sl_pairing_node node;
    sl_loop *loop;
    sl_timer_fn *fn;
    void *ctx;
    uint64_t at_ns;
    bool is_set;
} sl_timer;

void sl_timer_init(sl_timer *timer, sl_loop *loop, sl_timer_fn *fn, void *ctx);

/* Calls fn once, in the first turn at or after at_ns of monotonic time; replaces an earlier time. UINT64_MAX means
 * never. A time that is past means the next chance, which for a timer that sets itself again is the next turn. */
void sl_timer_set(sl_timer *timer, uint64_t at_ns);

/* Also right for a timer that is not set. Needed before its memory goes. */
void sl_timer_stop(sl_timer *timer);

/* --- a descriptor of somebody else --- */

/* Calls on_readable in each turn in which fd can be read. fd stays the caller's and must stay open until the watch
 * is freed. SL_OK, SL_ERR_NOMEM, SL_ERR_EXISTS (watched already), SL_ERR_INVALID (nothing that can be waited for). */
sl_err sl_watch_new(sl_loop *loop, int fd, void (*on_readable)(void *ctx), void *ctx, sl_watch **ret_watch);

enum { /* may be or-ed */
    SL_WATCH_READ = 1,
    SL_WATCH_WRITE = 2
};

/* The same for both directions, for a library that has sockets of its own: on_events is told which of `events` can be done. An error
 * of the descriptor counts as all of them, once: its owner finds out by trying. With 0 it waits for nothing. */
sl_err sl_watch_new_for(sl_loop *loop, int fd, unsigned events, void (*on_events)(void *ctx, unsigned events),
                        void *ctx, sl_watch **ret_watch);
/* Other events from now on. Free of charge when they are the same. fd must be open. */
void sl_watch_change(sl_watch *watch, unsigned events);

/* No callback comes after this, and fd may be closed at once. NULL is allowed. */
void sl_watch_free(sl_watch *watch);

#endif

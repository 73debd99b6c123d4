/* worker/memory_source.h — a queue inside of the process: for examples, tests and benchmarks.
 *
 *      memory:count=1000,bytes=100,type=tick,window=100,lease=30s,end=yes,fail=0
 *
 *      fresh, returned --offer--> out --settle--> answer (in the next turn) --> acked, parked, delayed, returned
 *                                  |
 *                       lease over +--lost()--> returned, with a new token when it is offered again
 *
 * It behaves as a server would: a window, leases, tokens that grow with each delivery, attempts that count what was begun and not
 * what was released, pauses that are kept here, answers that take a while. And it does on request what servers do at the worst
 * moment: go away, lose a lease, be silent, fail.
 *
 * Messages that it makes by itself are forgotten when they are settled, so that a benchmark can have as many as it likes; those that
 * were put stay, and can be looked at. */
#ifndef SL_WORKER_MEMORY_SOURCE_H
#define SL_WORKER_MEMORY_SOURCE_H

#include "net/loop.h"
#include "worker/source.h"

enum {
    SL_MEMORY_TYPE_BYTES_MAX = 64,
    SL_MEMORY_DATA_BYTES_MAX = 1 << 20,
    SL_MEMORY_WINDOW_MAX = 100000,
    SL_MEMORY_REASON_BYTES_MAX = 200
};

typedef struct sl_memory_settings {
    uint64_t count;    /* messages that it makes by itself */
    size_t data_bytes; /* of each; from SL_MEMORY_JSON_BYTES_MIN on it is JSON */
    char type[SL_MEMORY_TYPE_BYTES_MAX];
    uint32_t window;     /* so many may be out at the same time */
    uint64_t lease_ns;   /* 0: there are no leases */
    bool has_end;        /* when all are settled it fails with SL_SOURCE_FINISHED */
    uint64_t fail_after; /* after so many offers it fails with SL_SOURCE_LOST; 0: it does not */

    /* For tests; all false is how servers are. */
    bool answers_at_once; /* settled() comes from inside of settle() */
    bool forgets_delays;  /* a retry comes at once; keeps_delays is false */
    bool cancels_work;
} sl_memory_settings;

enum {
    SL_MEMORY_JSON_BYTES_MIN = 48
};

/* No messages of its own, a window of 100, leases of 30 s. */
sl_memory_settings sl_memory_settings_default(void);

/* "count=1000,bytes=100", with or without "memory:" before it. SL_OK, or SL_ERR_INVALID and a sentence in `problem`. */
sl_err sl_memory_settings_parse(sl_str text, sl_text *problem, sl_memory_settings *ret_settings);

/* SL_OK or SL_ERR_NOMEM. The loop must live longer. */
sl_err sl_memory_source_new(sl_loop *loop, const sl_memory_settings *settings, sl_source **ret_source);

/* Both of the above. */
sl_err sl_memory_source_open(sl_loop *loop, sl_str text, sl_text *problem, sl_source **ret_source);

/* --- for tests: what is in it --- */

/* One more message. Texts are copied. Without an id it gets one; a token is that of an earlier process' delivery. The number names it
 * from then on. SL_OK or SL_ERR_NOMEM. */
sl_err sl_memory_source_put(sl_source *source, const sl_job_message *message, uint64_t *ret_number);

typedef enum sl_memory_state {
    SL_MEMORY_READY,
    SL_MEMORY_DELAYED,
    SL_MEMORY_OUT,
    SL_MEMORY_ACKED,
    SL_MEMORY_PARKED,
    SL_MEMORY_STATE_COUNT_
} sl_memory_state;

typedef struct sl_memory_look { /* how often, and how the last time was */
    sl_memory_state state;
    uint64_t token;
    uint32_t charged; /* attempts */
    uint32_t offered, begun, retried, released, lost, extended;
    uint64_t delay_ns;                           /* of the last retry */
    char reason[SL_MEMORY_REASON_BYTES_MAX + 1]; /* of the last retry or park */
} sl_memory_look;

/* False: there is no such message (any more). */
bool sl_memory_source_look(const sl_source *source, uint64_t number, sl_memory_look *ret_look);

typedef struct sl_memory_totals { /* of all messages, as confirmed */
    uint64_t offered, acked, retried, parked, released, lost,
        refused;       /* refused: settled, but did not count */
    uint64_t recalled; /* of an earlier process, and counted */
    uint32_t out;      /* now */
} sl_memory_totals;

sl_memory_totals sl_memory_source_totals(const sl_source *source);

/* --- for tests: what goes wrong --- */

/* down() comes at once, up() in the next turn. */
void sl_memory_source_set_down(sl_source *source, bool is_down);
/* As long as it holds them, answers do not come; what was said meanwhile is answered afterwards. */
void sl_memory_source_hold_answers(sl_source *source, bool holds);
void sl_memory_source_hold_fence(sl_source *source, bool holds);
/* failed() comes at once. */
void sl_memory_source_fail(sl_source *source, sl_source_failure failure, sl_str why);
/* The lease is gone at once. False: the message is not out. */
bool sl_memory_source_lose(sl_source *source, uint64_t number);
void sl_memory_source_ask_stop(sl_source *source, sl_drain_reason by, sl_str why, uint64_t deadline_ms);

#endif

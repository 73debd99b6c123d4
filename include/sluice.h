/* sluice.h — the public interface of libsluice.
 *
 * Everything here is prefixed sl_ or SL_. From version 1.0 on it stays compatible within one major version; as
 * long as the major version is 0, anything may still change. Nothing else of Sluice is for programs outside:
 * the library exports exactly the functions that are marked SL_EXPORT below.
 *
 *     cc program.c $(pkg-config --cflags --libs sluice) */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. sl_version() is the version of the library that was linked: a program that must
 * not run with another one compares the two at start. */
#define SL_VERSION_MAJOR 0
#define SL_VERSION_MINOR 1
#define SL_VERSION_PATCH 0

#define SL_VERSION_QUOTE_(number) #number
#define SL_VERSION_JOIN_(major, minor, patch)                                                                \
    SL_VERSION_QUOTE_(major) "." SL_VERSION_QUOTE_(minor) "." SL_VERSION_QUOTE_(patch)
#define SL_VERSION_TEXT SL_VERSION_JOIN_(SL_VERSION_MAJOR, SL_VERSION_MINOR, SL_VERSION_PATCH)

#if defined(__GNUC__)
#define SL_EXPORT __attribute__((visibility("default")))
#else
#define SL_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "major.minor.patch" of the library. Static storage, never NULL. */
SL_EXPORT const char *sl_version(void);

/* --- consumers: the C client of persistent subscriptions, with Stop ---
 *
 *      sl_consumer_open --> connecting --connected--> events in, acks out --stop--> stopped --> drained --leave--> ended
 *                             ^    \                       |
 *                             +-----+----disconnected------+        it comes back by itself, under its name
 *
 * A consumer takes messages of a group from a server: Sluice, with everything below, or KurrentDB and EventStoreDB, with what
 * those can do (see sl_consumer_connected.extensions).
 *
 * Threads. A consumer has no thread of its own. Everything happens inside of sl_consumer_run(), in the thread that calls it, and
 * so do all callbacks. One thread at a time; only sl_consumer_wake() may be called from any thread, and from a signal handler.
 * In a callback every function may be called except sl_consumer_run() and sl_consumer_close(). Programs with a loop of their own wait
 * for sl_consumer_fd() to be readable, at most for sl_consumer_wait_ms(), and then call sl_consumer_run(consumer, 0).
 *
 * What is said goes out together. ack, nack, release, extend, started and stop only note what is to be sent; it leaves at
 * the end of the turn: one message for each kind, in one write. Outside of callbacks that is in the next sl_consumer_run().
 *
 * Nothing is given twice because a connection broke. A consumer connects again under its name and tells the server exactly what
 * this process still holds; what was said and not answered is said again. Only what the server reports as lost is lost.
 *
 * Memory is bounded: about 250 bytes for each message that is held or unanswered (SL_CONSUMER_ limits below), the buffers of one
 * connection, and one message that is being received. Events are given as views that are good during the callback: copy what you keep. */

typedef struct sl_consumer sl_consumer; /* opaque */

enum {
    SL_CONSUMER_WINDOW_DEFAULT = 10,
    SL_CONSUMER_WINDOW_MAX = 4000,     /* so that all that is held fits into one resume (10,000 ids) */
    SL_CONSUMER_UNANSWERED_MAX = 2000, /* acks on their way; more wait here until some were answered */
    SL_CONSUMER_NAME_BYTES_MAX = 256,
    SL_CONSUMER_LABELS_MAX = 8,
    SL_CONSUMER_LABEL_BYTES_MAX = 256, /* of a key, and of a value */
    SL_CONSUMER_STREAM_BYTES_MAX = 1024,
    SL_CONSUMER_GROUP_BYTES_MAX = 512,
    SL_CONSUMER_REASON_BYTES_MAX = 1024, /* of a nack; longer ones are cut */
    SL_CONSUMER_PROBLEM_BYTES = 1024,    /* room for any sentence that is given out, with its closing zero */
    SL_CONSUMER_EVENT_BYTES_MAX = 17 * 1024 * 1024,
    SL_CONSUMER_RECONNECT_MS_DEFAULT = 2000,
    SL_CONSUMER_CONNECT_MS_DEFAULT = 5000,
    SL_CONSUMER_RETRY_MS_MIN = 20, /* the first try comes after about this; each further one doubles it */
    SL_CONSUMER_RETRY_MS_MAX_DEFAULT = 5000,
    SL_CONSUMER_LEAVE_MS_DEFAULT = 5000,
    SL_CONSUMER_FINISHED_MAX = 8192,         /* messages that an earlier process was done with */
    SL_CONSUMER_FINISHED_MS_MAX = 60 * 1000, /* since the first connection: so long they are known again */
    SL_CONSUMER_RESUMED_MAX = 10 * 1000      /* ids that a server takes as still held */
};

typedef enum sl_consumer_status {
    SL_CONSUMER_OK,
    SL_CONSUMER_INVALID, /* an option or the address is wrong */
    SL_CONSUMER_NOMEM,
    SL_CONSUMER_SYSTEM, /* no more descriptors, no randomness */
    SL_CONSUMER_REFUSED, /* the server refuses this consumer and would again: no such group, no right to read it ... */
    SL_CONSUMER_BROKEN, /* the server said what it must not say: an event after Stopped, a message that makes no sense ... */
    SL_CONSUMER_UNREACHABLE, /* no connection for sl_consumer_options.give_up_ms */
    SL_CONSUMER_UNSETTLED    /* left before everything that was said was answered */
} sl_consumer_status;

/* An event is named by this: the id of the link if it was found through one, else its own. */
typedef struct sl_consumer_id {
    unsigned char bytes[16]; /* in the order in which the text shows them */
} sl_consumer_id;

/* A view; without a closing zero. */
typedef struct sl_consumer_bytes {
    const char *data; /* may be NULL when bytes is 0 */
    size_t bytes;
} sl_consumer_bytes;

typedef struct sl_consumer_event {
    sl_consumer_id id;
    int has_event; /* 0: the link points to nothing any more; then only `link_` fields, retry and lease are filled */
    sl_consumer_id event_id; /* its own id; differs from `id` for an event that was found through a link */
    sl_consumer_bytes stream, type, content_type, data, metadata;
    uint64_t revision;
    uint64_t commit_position, prepare_position;
    uint64_t created_ns; /* since 1970 */
    int has_link;
    sl_consumer_bytes link_stream;
    uint64_t link_revision;
    uint32_t retry_count;
    uint64_t lease_token; /* fencing: strictly increasing in a group; 0 without extensions */
    uint32_t lease_ms;    /* time left; 0 without extensions */
} sl_consumer_event;

/* What became of a message that this process held. Comes once for each event that was given out. */
typedef enum sl_consumer_outcome {
    SL_CONSUMER_SETTLED, /* the ack or nack is durable */
    SL_CONSUMER_RELEASED, /* handed back, by sl_consumer_release(), by sl_consumer_stop() or because an operator wished it */
    SL_CONSUMER_LOST, /* no longer ours: what was said of it, if anything, did not count. Do not start it any more */
    SL_CONSUMER_UNSURE, /* a connection broke between the ack and its answer, and the server has no lease any more: most
                              * likely the ack counted, and if not, the message was given to somebody else */
    SL_CONSUMER_SENT /* without extensions: handed to the connection, after a stop also read, and nobody will tell more */
} sl_consumer_outcome;

typedef enum sl_consumer_asker { /* who asked for a stop */
    SL_CONSUMER_BY_ITSELF = 0,
    SL_CONSUMER_BY_OPERATOR = 1,
    SL_CONSUMER_BY_SERVER = 2
} sl_consumer_asker;

typedef struct sl_consumer_connected {
    uint32_t nth; /* 1: the first time */
    int extensions; /* 0: a server without Stop: stopping is done by this side alone, nothing is answered, nothing is resumed */
    uint32_t resumed; /* messages that were listed as still held */
    int keeps_delays; /* 0: the delay of sl_consumer_nack_later() is not sent, and the group's own pause counts */
} sl_consumer_connected;

typedef struct sl_consumer_stopped {
    sl_consumer_asker asked_by;
    int already_stopped;
    uint32_t in_flight; /* leases that are left */
} sl_consumer_stopped;

typedef struct sl_consumer_drained { /* counts since the stop */
    uint32_t settled, released, lost;
} sl_consumer_drained;

typedef struct sl_consumer_handler { /* any of them may be NULL, except `event` */
    void (*event)(void *ctx, const sl_consumer_event *event);
    void (*settled)(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome);
    /* An operator or the server wants this consumer to drain: start nothing more. `stopped` follows and says who. deadline_ms: how
     * long one will wait; 0: not said. If a hand-back is wished too, what was not marked by sl_consumer_started() is being handed back,
     * unless nothing ever was: then all of it may be running. Comes again when that is wished later. */
    void (*stop_requested)(void *ctx, sl_consumer_bytes reason, uint32_t deadline_ms);
    /* No event comes after this, unless `resumed` comes, or, after a stop by the server, a new connection. */
    void (*stopped)(void *ctx, const sl_consumer_stopped *stopped);
    /* A stop by an operator or the server was taken back: events come again. */
    void (*resumed)(void *ctx);
    /* Everything is settled or released, and that is durable. Time to leave, unless the server asked: then it will end the
     * connection, and the consumer waits for the next one. */
    void (*drained)(void *ctx, const sl_consumer_drained *drained);
    void (*connected)(void *ctx, const sl_consumer_connected *connected);
    /* retry_ms: when it tries again. Work that is going on goes on; nothing new must be started until `connected`: what had not
     * been started (see sl_consumer_started()) is reported as lost before this. Also for tries that failed. */
    void (*disconnected)(void *ctx, const char *sentence, uint32_t retry_ms);
    /* The last callback. Nothing works any more but sl_consumer_close(). */
    void (*ended)(void *ctx, sl_consumer_status status, const char *sentence);
} sl_consumer_handler;

typedef struct sl_consumer_label {
    const char *key, *value;
} sl_consumer_label;

/* A message that an earlier process of this name was done with, and of which it did not hear the end. It is listed as still held and
 * said again at the first connection; the outcome comes as for any other. If the message comes again instead, with the same id
 * and revision, it is settled like this and not given out, for SL_CONSUMER_FINISHED_MS_MAX. A server without extensions is told nothing
 * before that happens, and when it does not, the outcome is SL_CONSUMER_UNSURE. */
typedef struct sl_consumer_finished {
    sl_consumer_id id;
    uint64_t revision;    /* of the event, as it was given out */
    uint64_t lease_token; /* for completeness: today's protocol does not carry it */
    int is_park;          /* not 0: park it; 0: ack it */
    const char
        *reason; /* of a park, for the dead letters; longer ones are cut. NULL or "": it is not known */
} sl_consumer_finished;

typedef struct sl_consumer_options {
    /* HOST[:PORT], or sluice:// kurrentdb:// kdb:// kurrent:// esdb:// with [USER:PASSWORD@]HOST[:PORT][?tls=true...]. With
     * the last four TLS is on unless the address says tls=false. */
    const char *address;
    const char *stream, *group; /* stream "$all": all of them */
    /* Leases belong to this name, over broken connections: one for each process, the same as long as the process lives. NULL: a
     * random one. */
    const char *name;
    const sl_consumer_label *labels; /* version=42 and the like: for operators */
    size_t label_count;
    uint32_t window;       /* messages held at once; 0: the default */
    uint32_t reconnect_ms; /* how long the server keeps started work for a lost consumer; 0: the default */
    /* Not 0: each message is marked by sl_consumer_started() before its work begins. The server is told so at the beginning of
     * each call, and charges nothing that was not marked, not even what was on its way when the connection broke. */
    int says_started;
    uint32_t connect_timeout_ms;        /* of one try; 0: the default */
    uint32_t retry_ms_max;              /* between two tries; 0: the default */
    uint32_t give_up_ms;                /* without a connection for so long: ended; 0: never */
    uint32_t leave_ms;                  /* how long sl_consumer_leave() waits for answers; 0: the default */
    const sl_consumer_handler *handler; /* copied, as everything here */
    void *ctx;
    const sl_consumer_finished *finished; /* what an earlier process left; useful only with its name */
    size_t finished_count;
} sl_consumer_options;

/* Begins to connect; nothing happens before sl_consumer_run(). What is wrong is said in `problem` (of problem_bytes, at least
 * 1; a sentence without a full stop): SL_CONSUMER_INVALID, _NOMEM, _SYSTEM, and *ret_consumer is untouched. */
SL_EXPORT sl_consumer_status sl_consumer_open(const sl_consumer_options *options, char *problem,
                                              size_t problem_bytes, sl_consumer **ret_consumer);

/* Frees everything at once, without a callback. What was not answered may be lost, and for the server the connection is lost:
 * started work is kept for the reconnect window. sl_consumer_leave() first is the friendly way. NULL is allowed. */
SL_EXPORT void sl_consumer_close(sl_consumer *consumer);

/* Works until timeout_ms have passed (negative: no limit), somebody wakes it, or the consumer has ended. 0: only what is there.
 * Returns 1 as long as the consumer has not ended, else 0. */
SL_EXPORT int sl_consumer_run(sl_consumer *consumer, int timeout_ms);

/* Makes the current or the next sl_consumer_run() return. From any thread and from signal handlers. */
SL_EXPORT void sl_consumer_wake(sl_consumer *consumer);

/* For loops of others: readable when there is something to do; good as long as the consumer. */
SL_EXPORT int sl_consumer_fd(const sl_consumer *consumer);
/* At most so long may be waited for that, -1: for ever. To be asked after the last call of any other function. */
SL_EXPORT int sl_consumer_wait_ms(sl_consumer *consumer);

/* About messages. Each returns how many of the ids were taken: those that this process holds and has said nothing final of before.
 * Of the others the outcome was reported already, or they are unknown. */

SL_EXPORT size_t sl_consumer_ack(sl_consumer *consumer, const sl_consumer_id *ids, size_t count);

typedef enum sl_consumer_nack_action { /* numbers as on the wire */
    SL_CONSUMER_NACK_PARK = 1,
    SL_CONSUMER_NACK_RETRY = 2,
    SL_CONSUMER_NACK_SKIP = 3
} sl_consumer_nack_action;

/* reason: for people who look at parked messages; may be NULL. 0 also when there is no memory for the reason. */
SL_EXPORT size_t sl_consumer_nack(sl_consumer *consumer, const sl_consumer_id *ids, size_t count,
                                  sl_consumer_nack_action action, const char *reason);

/* A nack for retry that comes back no sooner than after delay_ms; servers cut what is too long. 0: as the group says. A server that
 * cannot keep delays (see sl_consumer_connected.keeps_delays) gets a nack without one. */
SL_EXPORT size_t sl_consumer_nack_later(sl_consumer *consumer, const sl_consumer_id *ids, size_t count,
                                        const char *reason, uint32_t delay_ms);

/* Hand back, uncounted, in order. Without extensions it is a nack for retry. */
SL_EXPORT size_t sl_consumer_release(sl_consumer *consumer, const sl_consumer_id *ids, size_t count);

/* Keep the lease for lease_ms from now on; 0: as long as the group gives at first. Without extensions: 0, nothing happens. */
SL_EXPORT size_t sl_consumer_extend(sl_consumer *consumer, const sl_consumer_id *ids, size_t count,
                                    uint32_t lease_ms);

/* Work has begun. A consumer that says this for each message is charged only for what it had started; one that never says it is
 * taken to have started everything it holds. Not taken (so look at what is returned): what is being handed back, and, while there is no connection, everything:
 * do not begin with it. */
SL_EXPORT size_t sl_consumer_started(sl_consumer *consumer, const sl_consumer_id *ids, size_t count);

/* No new messages: `stopped` follows, then `drained` when nothing is held any more. hand_back_unstarted: everything that was not
 * marked by sl_consumer_started() goes back as well, also if it is being worked on without having been marked. May be called again. */
SL_EXPORT void sl_consumer_stop(sl_consumer *consumer, int hand_back_unstarted);

/* Waits until everything that was said is answered, at most leave_ms, then ends the call: what is still held is given to others at once.
 * `ended` follows. After `drained` nothing is held and nothing waits. */
SL_EXPORT void sl_consumer_leave(sl_consumer *consumer);

/* Messages given out of which nothing final was said, and those said of and not answered. */
SL_EXPORT size_t sl_consumer_held_count(const sl_consumer *consumer);
SL_EXPORT size_t sl_consumer_unanswered_count(const sl_consumer *consumer);

/* "settled", "asked by an operator" and the like: for logs. Never NULL. */
SL_EXPORT const char *sl_consumer_status_text(sl_consumer_status status);
SL_EXPORT const char *sl_consumer_outcome_text(sl_consumer_outcome outcome);

/* --- a queue inside of a program, which a shutdown neither loses nor waits for without end ---
 *
 *      sl_queue_put --> waiting (bounded) --> sender threads: send() --> sent
 *                          |  oldest dropped     |      ^    \--> dead(): failed, tried too often, breaker open
 *                          v  when it is full    +RETRY-+
 *                       dropped()
 *      sl_queue_drain: nothing more comes in, the senders go on until all is sent or time is up; the rest is kept: sl_queue_left()
 *
 * For programs that send something (chat messages, mails, notifications) beside their own work. Each item is copied when it is
 * put, and belongs to the queue. Items of one key are sent one after the other in their order, with the interval between two
 * begins; those of other keys do not wait for them. Items without a key have no order among several senders, and no interval.
 *
 * There is no end marker that could be dropped, or have items behind it: stopping is a flag under the lock under which items come in.
 *
 * Threads. Every function may be called from any thread. Callbacks come without any lock held: `send` and `dead` in a sender's
 * thread, `dropped` in that of the sl_queue_put() that caused it, `warn` in any. They may call everything but sl_queue_free(). What
 * waits for the senders (drain, join) fails at once inside of a callback of a sender instead of waiting for itself. `dropped` holds
 * nothing up, also not the others of its key, and no drain waits for it. */

typedef struct sl_queue sl_queue; /* opaque */

enum {
    SL_QUEUE_CAPACITY_DEFAULT = 1000,
    SL_QUEUE_CAPACITY_MAX = 1000000,
    SL_QUEUE_THREADS_MAX = 64,
    SL_QUEUE_NAME_BYTES_MAX = 64,
    SL_QUEUE_ITEM_BYTES_MAX = 16 * 1024 * 1024,
    SL_QUEUE_KEY_BYTES_MAX = 256,
    SL_QUEUE_KEYS_IDLE_MAX = 10000, /* keys whose interval is remembered though nothing waits for them */
    SL_QUEUE_REASON_BYTES = 256,    /* with the closing zero */
    SL_QUEUE_ATTEMPTS_DEFAULT = 8,
    SL_QUEUE_RETRY_MS_DEFAULT = 5000,
    SL_QUEUE_RETRY_MS_MAX = 24 * 3600 * 1000, /* a longer wish is cut to this */
    SL_QUEUE_BREAKER_FAILURES_DEFAULT = 5,
    SL_QUEUE_BREAKER_REST_MS_DEFAULT = 60000,
    SL_QUEUE_JOIN_MS_DEFAULT = 5000,
    SL_QUEUE_HIGH_WATER_PERCENT = 80, /* of the capacity: warned once */
    SL_QUEUE_LOW_WATER_PERCENT = 70   /* below this the warning is armed again */
};

typedef enum sl_queue_status {
    SL_QUEUE_OK,
    SL_QUEUE_INVALID, /* an option is wrong, an item or a key too large */
    SL_QUEUE_NOMEM,
    SL_QUEUE_SYSTEM,       /* no thread could be made */
    SL_QUEUE_STOPPING,     /* refused: the queue is being stopped or has stopped */
    SL_QUEUE_BREAKER_OPEN, /* refused: the destination does not answer */
    SL_QUEUE_FULL          /* refused, for queues that refuse */
} sl_queue_status;

typedef enum sl_queue_outcome { /* of one send() */
    SL_QUEUE_SENT,
    SL_QUEUE_FAILED, /* counts for the breaker; the item is dead */
    SL_QUEUE_RETRY   /* again after answer->retry_after_ms, with all of its key behind it */
} sl_queue_outcome;

typedef enum sl_queue_death {
    SL_QUEUE_DEAD_FAILED,
    SL_QUEUE_DEAD_ATTEMPTS_SPENT, /* RETRY at the last attempt */
    SL_QUEUE_DEAD_BREAKER_OPEN    /* not even tried */
} sl_queue_death;

typedef enum sl_queue_warning {
    SL_QUEUE_WARN_HIGH_WATER,
    SL_QUEUE_WARN_DROPPED,
    SL_QUEUE_WARN_REFUSED,     /* an item came after the stop */
    SL_QUEUE_WARN_NOT_DRAINED, /* time was up, or the destination is dead: some are left */
    SL_QUEUE_WARN_STUCK        /* a sender did not end within the limit */
} sl_queue_warning;

typedef struct sl_queue_item { /* a view, good during the callback */
    const void *data;
    size_t bytes;
    const char *key;  /* NULL: none */
    uint32_t attempt; /* which try this is, from 1; 0: never tried */
} sl_queue_item;

typedef struct sl_queue_answer { /* empty when send() begins */
    int64_t retry_after_ms;      /* RETRY and FAILED: what the destination asked for; 0 or less: it did not */
    char reason[SL_QUEUE_REASON_BYTES]; /* for dead() */
} sl_queue_answer;

typedef struct sl_queue_callbacks { /* any of them may be NULL, except `send` */
    sl_queue_outcome (*send)(void *user, const sl_queue_item *item, sl_queue_answer *answer);
    void (*dead)(void *user, const sl_queue_item *item, sl_queue_death death, const char *reason);
    void (*dropped)(void *user, const sl_queue_item *item);
    /* A sentence without a full stop, which names no key and shows nothing of an item. */
    void (*warn)(void *user, sl_queue_warning warning, const char *sentence);
} sl_queue_callbacks;

typedef struct sl_queue_options { /* 0 and NULL are the defaults */
    const char *name;             /* of the threads, and in warnings */
    size_t capacity;
    unsigned threads;          /* senders; default 1 */
    int refuses_when_full;     /* 0: the oldest waiting item is dropped */
    uint32_t interval_ms;      /* between the begins of two sends of one key */
    uint32_t attempts_max;     /* of one item, the first included */
    uint32_t retry_ms;         /* for a RETRY that names no time */
    int has_no_breaker;        /* 0: a breaker with the two numbers below */
    uint32_t breaker_failures; /* so many in a row open it */
    uint32_t breaker_rest_ms;  /* then one probe is let through */
    /* 0: while the breaker is open, waiting items are dead. Not 0: they wait for it to close. */
    int waits_for_breaker;
    uint32_t join_ms; /* how long sl_queue_free() waits for a sender that does not come back */
    sl_queue_callbacks callbacks;
    void *user;
} sl_queue_options;

/* SL_QUEUE_OK, _INVALID, _NOMEM. Everything is copied. Items may be put before sl_queue_start(). */
SL_EXPORT sl_queue_status sl_queue_new(const sl_queue_options *options, sl_queue **ret_queue);

/* Stops, keeps nothing, waits join_ms for the senders. One that is stuck in send() is left behind with a warning: what it needs
 * is freed when it comes back. NULL is allowed. */
SL_EXPORT void sl_queue_free(sl_queue *queue);

/* Harmless when it runs already. A queue that was stopped and has ended starts again, with what was left in front.
 * SL_QUEUE_OK, _SYSTEM, or _STOPPING: its senders have not ended yet. */
SL_EXPORT sl_queue_status sl_queue_start(sl_queue *queue);

/* Copies the item. key: NULL, or what it is ordered by. Never waits.
 * SL_QUEUE_OK, _STOPPING, _BREAKER_OPEN, _FULL, _INVALID, _NOMEM. */
SL_EXPORT sl_queue_status sl_queue_put(sl_queue *queue, const void *data, size_t bytes, const char *key);

/* Nothing comes in any more; the senders end when everything that was accepted has been handled. Never waits, and may be called
 * again. From now on an open breaker is no reason to give accepted items up: they are tried, until it is clear that the
 * destination is dead; the rest is kept. */
SL_EXPORT void sl_queue_stop(sl_queue *queue);

/* Stops, and waits until everything is handled, at most timeout_ms (negative: no limit). Returns how many were sent meanwhile; 0
 * also when it could not be done. Pauses that would end after that time are not waited for. What was not sent is kept. */
SL_EXPORT size_t sl_queue_drain(sl_queue *queue, int timeout_ms);

/* Waits until the senders have ended, at most timeout_ms. Returns 1 when one is still alive, else 0. */
SL_EXPORT int sl_queue_join(sl_queue *queue, int timeout_ms);

/* What a stop left unsent: each is shown to `each` (NULL: they are only counted), oldest first. They stay in the queue. An item that
 * a sender still holds is not among them, see sl_queue_counts.sending. Nothing else may be done with the queue inside of `each`. */
SL_EXPORT size_t sl_queue_left(sl_queue *queue, void (*each)(void *user, const sl_queue_item *item),
                               void *user);

typedef struct sl_queue_counts {
    size_t waiting, sending, left;         /* now */
    uint64_t sent, dead, dropped, refused; /* since it was made */
    int is_breaker_open, is_stopping;
} sl_queue_counts;

SL_EXPORT sl_queue_counts sl_queue_get_counts(sl_queue *queue);

/* --- work: what a worker's function gets, and what it says --- */

typedef struct sl_ctx sl_ctx; /* opaque: one delivery of one message */

enum {
    SL_CTX_REASON_BYTES_MAX = 1000 /* longer ones are cut */
};

typedef enum sl_worker_result {
    SL_WORKER_DONE,
    SL_WORKER_RETRY, /* for now it does not work: again after a pause, however often it happened before. Counts for the breaker */
    SL_WORKER_FAILED, /* again as the retry policy says, then to the dead letters. Counts for the breaker */
    SL_WORKER_PARK,   /* it will never work: to the dead letters at once */
    SL_WORKER_STOPPED, /* given up because sl_ctx_is_aborted(): back to the source, uncounted. FAILED if nobody had asked for that */
    SL_WORKER_LATER /* the function returns, the work goes on: sl_ctx_finish() will say how it ended */
} sl_worker_result;

/* One message. In one of the worker's threads, or, when it has none, in the thread of sl_worker_run(); then it must not wait. */
typedef sl_worker_result sl_worker_fn(void *user, sl_ctx *ctx);

/* All of these from any thread, until the function has returned something else than LATER or sl_ctx_finish() was called. Views are as
 * good as long, and are followed by a zero byte. */
SL_EXPORT sl_consumer_id sl_ctx_id(const sl_ctx *ctx); /* the same for each delivery: an idempotency key */
SL_EXPORT uint64_t sl_ctx_token(const sl_ctx *ctx);    /* grows with each delivery; 0: the source has none */
SL_EXPORT uint32_t sl_ctx_attempt(const sl_ctx *ctx);  /* from 1 */
SL_EXPORT uint64_t sl_ctx_revision(const sl_ctx *ctx);
SL_EXPORT uint64_t sl_ctx_created_ns(const sl_ctx *ctx); /* since 1970 */
SL_EXPORT sl_consumer_bytes sl_ctx_stream(const sl_ctx *ctx);
SL_EXPORT sl_consumer_bytes sl_ctx_type(const sl_ctx *ctx);
SL_EXPORT sl_consumer_bytes sl_ctx_content_type(const sl_ctx *ctx);
SL_EXPORT sl_consumer_bytes sl_ctx_data(const sl_ctx *ctx);
SL_EXPORT sl_consumer_bytes sl_ctx_metadata(const sl_ctx *ctx);
SL_EXPORT sl_consumer_bytes sl_ctx_group(const sl_ctx *ctx);

/* How long this work may still take: until its own limit, and in a drain until that of the drain; 0 when it is over or aborted,
 * INT64_MAX when there is no limit. Ask again: it gets shorter when a drain begins. */
SL_EXPORT int64_t sl_ctx_remaining_ms(const sl_ctx *ctx);
/* 1: somebody wants this work to end: its time is over, its lease is lost, or a drain cannot wait any longer. */
SL_EXPORT int sl_ctx_is_aborted(const sl_ctx *ctx);
/* Called once when that happens, from the thread of sl_worker_run(), or at once if it has happened already. It must not wait. The work is
 * not over, and its function's result not taken, before it has returned. fn NULL: not any more. */
SL_EXPORT void sl_ctx_on_abort(sl_ctx *ctx, void (*fn)(void *arg), void *arg);
/* A sign of life, for workers with a heartbeat_ms. Cheap. */
SL_EXPORT void sl_ctx_progress(sl_ctx *ctx);

/* For people, with RETRY, FAILED and PARK; copied. */
SL_EXPORT void sl_ctx_set_reason(sl_ctx *ctx, const char *reason);
/* With RETRY and FAILED: what the destination asked for. */
SL_EXPORT void sl_ctx_set_retry_after_ms(sl_ctx *ctx, uint32_t retry_after_ms);

/* Ends work whose function returned LATER, or will: exactly once, then the context is gone. */
SL_EXPORT void sl_ctx_finish(sl_ctx *ctx, sl_worker_result result);

/* --- workers: messages from a source, a function that works on them, and a drain that loses nothing ---
 *
 *      sl_worker_new --> sl_worker_run ........................ returns --> sl_worker_run again, or sl_worker_free
 *                           |  messages, the function, acks        ^
 *                           +--sl_worker_stop--> drain ------------+
 *
 * The drain: no new message comes, what was not begun goes back to the source, what was begun may finish within the grace, then
 * it is aborted and goes back too, what was finished is confirmed, and everything is closed. It always ends within the grace, and
 * the report says what became of each message.
 *
 * Threads. Everything happens inside of sl_worker_run(), in the thread that calls it, and in the worker's own threads if it has some.
 * sl_worker_stop() and sl_worker_stop_now() may be called from any thread and from signal handlers, the others from any thread. */

typedef struct sl_worker sl_worker; /* opaque */

enum {
    SL_WORKER_SLOTS_DEFAULT = 4,
    SL_WORKER_GRACE_MS_DEFAULT = 30000,
    SL_WORKER_HOLD_MAX_MS_DEFAULT = 600000,
    SL_WORKER_FROM_BYTES_MAX = 4096,
    SL_WORKER_PROBLEM_BYTES = 1024 /* room for any sentence that is given out, with its closing zero */
};

typedef enum sl_worker_status {
    SL_WORKER_OK, /* it ended as it was asked to, or because its source is at its end, and everything was clean */
    SL_WORKER_INVALID, /* an option is wrong */
    SL_WORKER_NOMEM,
    SL_WORKER_SYSTEM,  /* no more descriptors or threads, a file that cannot be opened */
    SL_WORKER_REFUSED, /* by the source, and it would again: no such group, no right to it */
    SL_WORKER_LOST,    /* the source is gone for good */
    SL_WORKER_UNCLEAN, /* as it was asked to, but work was interrupted or a step took too long: the report says which */
    SL_WORKER_RUNNING /* it runs, or still runs */
} sl_worker_status;

typedef struct sl_worker_options { /* 0 and NULL are the defaults; everything is copied */
    /* "sluice://HOST:PORT/STREAM/GROUP" (kurrentdb, kdb, kurrent, esdb as well; with USER:PASSWORD@ and ?tls=true as
     * sl_consumer_options.address has them), "schedule:..." or, for tests and examples, "memory:count=100,end=yes". */
    const char *from;
    sl_worker_fn *work;
    void *user;
    const char *name; /* of the worker, and of the consumer; leases belong to it. NULL: a random one */
    uint32_t slots;   /* messages that are worked on at the same time */
    /* 0: the function is called in the thread of sl_worker_run(), and must not wait. Fewer than slots are for functions that return
     * LATER: a message for which no thread is free within timeout_ms waits again, uncharged. */
    uint32_t threads;
    uint32_t
        window; /* messages that are held, those that wait for a slot included; default: twice the slots */
    uint32_t grace_ms;   /* what the orchestrator gives between its signal and SIGKILL */
    uint32_t timeout_ms; /* of one message: aborted then, and failed; default: none */
    uint32_t
        hold_max_ms; /* a lease is renewed for so long while its message waits, and for so long again while it is worked on: what waits then goes back, what runs then is aborted, and has failed */
    uint32_t
        heartbeat_ms; /* work that gives no sl_ctx_progress() for so long is taken for dead: its lease is not renewed. Without leases: aborted after twice as long */
    int finish_unstarted; /* in a drain, messages that are here and were not begun are finished instead of handed back */
    uint32_t attempts_max;                 /* of FAILED; default 10 */
    uint32_t retry_first_ms, retry_max_ms; /* pauses grow from the first to the second; default 1 s, 5 min */
    uint32_t
        breaker_failures; /* so many in a row, and nothing is begun for breaker_rest_ms; default: no breaker */
    uint32_t breaker_rest_ms; /* default 1 min */
    const char *
        key; /* "stream", "type", "data.NAME", "metadata.NAME": breaker, interval and concurrent_max are for each value */
    uint32_t interval_ms;            /* between two begins */
    uint32_t concurrent_max;         /* 1 keeps the order within a key */
    const sl_consumer_label *labels; /* version=42 and the like: for operators */
    size_t label_count;
    const char *ack_file; /* keeps finished work that is not confirmed over the death of the process */
    void (*log)(void *user,
                const char *line); /* one line with its newline, in the thread of sl_worker_run() */
} sl_worker_options;

/* What is wrong is said in `problem` (of problem_bytes, at least 1; a sentence without a full stop): SL_WORKER_INVALID, _NOMEM, _SYSTEM. */
SL_EXPORT sl_worker_status sl_worker_new(const sl_worker_options *options, char *problem,
                                         size_t problem_bytes, sl_worker **ret_worker);

/* Stops it and waits for the end if it runs in another thread. Not from inside of its own sl_worker_run() or function. NULL is allowed. */
SL_EXPORT void sl_worker_free(sl_worker *worker);

/* Runs until it was stopped, its source is at its end, or something is wrong for good. May be called again then: it connects anew.
 * SL_WORKER_OK, _UNCLEAN, _REFUSED, _LOST, _NOMEM, _SYSTEM, or _RUNNING: another thread runs it. */
SL_EXPORT sl_worker_status sl_worker_run(sl_worker *worker);

/* Begins the drain. Never waits; a second call changes nothing. One that comes while the worker does not run is kept for the next
 * sl_worker_run(), which then ends at once: so a signal is never lost. */
SL_EXPORT void sl_worker_stop(sl_worker *worker);
/* The same, and running work is not waited for: it is aborted. For the second signal. */
SL_EXPORT void sl_worker_stop_now(sl_worker *worker);

enum {
    SL_WORKER_PHASES = 5
};

typedef struct sl_worker_report { /* of the last drain; texts are static */
    const char *reason;           /* "operator", "server", "finished", ...; "none": there was none yet */
    int is_clean, was_cut_short;
    uint64_t grace_ms, used_ms;
    uint64_t finished, handed_back, interrupted; /* messages in the drain */
    uint64_t abandoned;                          /* still held at the end: their leases run out */
    uint64_t acks_unconfirmed;
    uint64_t failed_steps;
    struct {
        const char *name, *end; /* "settling", "timed out" */
        uint64_t used_ms;
    } phases[SL_WORKER_PHASES];
} sl_worker_report;

/* Stops, and waits until the worker does not run any more, at most timeout_ms (negative: as long as it takes, which the grace
 * bounds). The status of the run that ended, and its report (NULL: nobody wants it); or SL_WORKER_RUNNING, also at once when it is
 * called from inside of the worker's own sl_worker_run() or of its function, in whatever thread, and then *ret_report is untouched. */
SL_EXPORT sl_worker_status sl_worker_drain(sl_worker *worker, int timeout_ms, sl_worker_report *ret_report);

/* Waits without stopping it. 1: it still runs; 0: it does not. */
SL_EXPORT int sl_worker_join(sl_worker *worker, int timeout_ms);

/* Of the last run that ended, and the last sentence about what was wrong with it, "" when nothing was; good until the next run. */
SL_EXPORT sl_worker_report sl_worker_last_report(sl_worker *worker);
SL_EXPORT const char *sl_worker_problem(sl_worker *worker);

/* "as it was asked to" and the like: for logs. Never NULL. */
SL_EXPORT const char *sl_worker_status_text(sl_worker_status status);

#ifdef __cplusplus
}
#endif

#endif

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

#ifdef __cplusplus
}
#endif

#endif

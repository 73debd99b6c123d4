/* worker/source.h — the one door of sources: where messages come from, and where the word about them goes.
 *
 *      new --start--> up <--> down                     (it comes back by itself)
 *                      |  offer(), settled(), lost()
 *                  close_gate --> fenced()             nothing is offered after this
 *                      |  settle() still works, settled() still comes
 *                    close --> closed() --> free
 *
 * Rules, held by tests/unit/worker/test_source_contract.c for every source:
 *
 *   (1) A job that was offered ends with exactly one settled(), or with free(). What the source does of its own accord (a lease
 *       that is lost) is told by lost() once, and then settled(SL_SETTLED_LOST) is the answer to the worker's settle(): the worker
 *       always says something final of each job, also of a lost one.
 *   (2) offer() comes only between start() and fenced(). After close_gate() it may still come until fenced() does.
 *   (3) begin() says that work on a job begins, before it does. False: it must not (being handed back, or no connection, where
 *       the source would give it to others); the worker then keeps the job waiting, or hears lost().
 *   (4) settle() never waits. Its word is durable at the source when settled(SL_SETTLED_DONE) comes, and not before.
 *   (5) A source reconnects by itself; failed() is for what it can never put right. After failed() only settled(SL_SETTLED_LOST) for
 *       what is left, close() and free() are to come; finished work that it could not be told of (an ack, a park) may wait for free(), so
 *       that the ack file keeps it.
 *   (6) fenced() comes exactly once for close_gate(), also when the source is down or has failed; closed() exactly once for close().
 *   (7) Callbacks may come from inside of any function here except new and free. The worker may call any function from inside
 *       of a callback except free.
 *
 * Everything in the thread of the loop. */
#ifndef SL_WORKER_SOURCE_H
#define SL_WORKER_SOURCE_H

#include "core/drain.h"
#include "worker/job.h"

struct cJSON;

typedef enum sl_settle_kind {
    SL_SETTLE_ACK,
    SL_SETTLE_RETRY,   /* charged; not before delay_ns have passed */
    SL_SETTLE_PARK,    /* to the dead letters of the source, with the reason */
    SL_SETTLE_RELEASE, /* uncharged, to its old place; of a job that was begun: interrupted */
    SL_SETTLE_KIND_COUNT_
} sl_settle_kind;

typedef struct sl_settle {
    sl_settle_kind kind;
    uint64_t delay_ns; /* RETRY */
    sl_str reason;     /* RETRY, PARK: for people; copied by the source if it needs it later; may be empty */
} sl_settle;

typedef enum sl_settled_how {
    SL_SETTLED_DONE, /* durable */
    SL_SETTLED_LOST, /* it did not count: the message is or was somebody else's */
    SL_SETTLED_UNSURE, /* a source without answers, or one that went away between word and answer: most likely it counted */
    SL_SETTLED_HOW_COUNT_
} sl_settled_how;

typedef enum sl_source_failure {
    SL_SOURCE_REFUSED,  /* no such group, no right to it: the configuration is wrong */
    SL_SOURCE_LOST,     /* unreachable for longer than was allowed, or it broke its contract */
    SL_SOURCE_FINISHED, /* no failure: a source that has an end has come to it */
    SL_SOURCE_FAILURE_COUNT_
} sl_source_failure;

typedef struct sl_source_owner { /* all of them are there */
    void (*offer)(void *ctx, sl_job *job);
    void (*lost)(void *ctx, sl_job *job);
    void (*settled)(void *ctx, sl_job *job,
                    sl_settled_how how); /* the job is freed by the worker: no word about it after this */
    void (*fenced)(void *ctx);
    /* An operator or the server wants this worker to drain. No close_gate() is needed for the gate to be shut, but it comes. */
    void (*stop_asked)(void *ctx, sl_drain_reason by, sl_str why,
                       uint64_t deadline_ms); /* 0: none was given */
    void (*up)(void *ctx);
    void (*down)(void *ctx, sl_str why);                              /* begin() is false from now on */
    void (*failed)(void *ctx, sl_source_failure failure, sl_str why); /* once */
    void (*closed)(void *ctx);
} sl_source_owner;

typedef struct sl_source sl_source;

typedef struct sl_source_class {
    const char *name;  /* "sluice", "kurrentdb", "schedule", "memory" */
    bool cancels_work; /* work is aborted as soon as a drain begins (S3.5): a poll that can be made again */
    bool has_no_dead_letters; /* nobody keeps what is parked: the source fails instead */
    /* Before start(): a job that an earlier process finished and got no answer for; only id, token, revision and the reason of a park are known. It is
     * said at the first connection, and settled() comes for it as for any other. If the message comes again instead, it is settled like
     * this and not offered. NULL: such things cannot be said here. */
    void (*recall)(sl_source *source, sl_job *job, const sl_settle *settle);
    void (*start)(sl_source *source);
    bool (*begin)(sl_source *source, sl_job *job); /* lost() may come from inside */
    void (*settle)(sl_source *source, sl_job *job, const sl_settle *settle);
    /* Asks for lease_ns from now on, and if that could be asked, sets lease_until_ns; lost() follows if it is refused. NULL: there
     * are no leases. */
    void (*extend)(sl_source *source, sl_job *job);
    /* hand_back: what was not begun will be released by the worker (the source may say so in one word). */
    void (*close_gate)(sl_source *source, bool hand_back);
    void (*close)(sl_source *source);
    /* At the end of each turn of the loop: what was said leaves. NULL: nothing to do. */
    void (*turn_end)(sl_source *source);
    /* Adds what people want to know to an object: address, group, connected ... NULL: nothing. */
    void (*describe)(const sl_source *source, struct cJSON *object);
    void (*free)(sl_source *source); /* also in the middle of everything; no callback */
} sl_source_class;

struct sl_source { /* the first field of each kind of source */
    const sl_source_class *class;
    const sl_source_owner *owner; /* set by the worker before start() */
    void *owner_ctx;
    sl_job_shelf *shelf; /* set by the worker before start(): for sl_job_new_from(). NULL: none */
    bool
        keeps_delays; /* RETRY with a delay_ns is kept by the source; else the worker waits before it says so. Known when up() comes */
    bool has_tokens;  /* jobs can be fenced; known when up() comes at the latest */
    /* It answers. One that does not says SL_SETTLED_UNSURE where (4) has SL_SETTLED_DONE, charges a release like a retry, and gives all
     * that is out to others when it goes down: lost() comes for each. Known when up() comes at the latest. */
    bool confirms;
};

#endif

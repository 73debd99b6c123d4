/* server/host.h — what all services share, without a socket and without a thread.
 *
 *      bytes --> link (one connection) --> request (one call) --> method (a service) --> door (what is written)
 *                                                                                 \-> tail (what is committed)
 *
 * The host is driven from outside, so that the same services run behind real sockets (server.c) and in tests and simulations
 * with a made-up network and clock. Its driver, once in each turn:
 *
 *      links: receive, tick  -->  sl_host_poll() when the store's descriptor is readable  -->  sl_host_tick() when due
 *                            -->  sl_host_turn()  -->  links: output
 *
 * After sl_host_turn() the driver must not sleep when it returns true. One thread. */
#ifndef SL_SERVER_HOST_H
#define SL_SERVER_HOST_H

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/pairing.h"
#include "base/uuid.h"
#include "server/counters.h"
#include "server/seldom.h"
#include "server/settings.h"
#include "store/store.h"

typedef struct sl_host sl_host;
typedef struct sl_door sl_door;
typedef struct sl_tail sl_tail;
typedef struct sl_auth sl_auth;
typedef struct sl_access sl_access;

/* Of input that is not complete, all connections together: eight that bring three of the largest messages each. */
#define SL_HOST_INPUT_BYTES_MAX (UINT64_C(512) * 1024 * 1024)

/* How long an acknowledgement waits for a sync that is wanted anyway. Its consumer gets the next messages meanwhile. */
#define SL_HOST_PATIENCE_NS UINT64_C(1000000)

/* Shared by everything in this folder. The counters are everybody's; any other field is changed only by host.c, the driver, or
 * the file that its comment names. */
struct sl_host {
    const sl_alloc *alloc;
    const sl_clock *clock;
    const sl_clock *stopwatch; /* goes on during a turn, as `clock` need not: what a piece of work has used */
    const sl_logger *log;
    const sl_server_settings *settings;
    sl_store *store;
    sl_door *door;     /* server/door.h */
    sl_tail *tail;     /* server/tail.h */
    sl_auth *auth;     /* server/auth.h: who asks */
    sl_access *access; /* server/access.h: may he */
    sl_server_counters counters;
    sl_uuid instance;        /* of this process, for gossip */
    sl_hash_seed seed;       /* secret */
    uint64_t started_ns;     /* monotonic */
    sl_list links;           /* sl_link.node: link.c */
    sl_list requests;        /* sl_request.node, all that are open, oldest first: request.c */
    sl_pairing alarms;       /* alarm.c, as the next one */
    uint64_t alarm_floor_ns; /* while alarms are fired: those set now wait for the next tick */
    uint64_t patience_ns;    /* so long patient batches wait for the sync of another: door.c */
    sl_list spare_requests;  /* memory of calls that are over, for the next ones: request.c */
    uint32_t spare_request_count,
        spare_requests_max;  /* tests set the second to 0: then a sanitizer sees all */
    sl_wire_budget input;    /* of messages that are not complete yet, all connections together: link.c */
    uint64_t gathered_bytes; /* of appends that are not complete yet, all calls together: streams/gather.h */
    uint64_t unsent_ids; /* of settled messages, waiting for consumers of all groups: groups/desk_sink.c */
    uint64_t ids_made;   /* UUIDs that were made here: streams/write.h */
    sl_seldom read_failed, filter_failed;  /* lines of the log: streams/read.c, streams/read_filter.c */
    sl_seldom login_refused, login_failed; /* login.c */
    sl_seldom group_filter_failed;         /* groups/reader.c */
    /* sl_method_find(); tests bring methods of their own */
    const struct sl_method *(*find_method)(sl_str path, const char **ret_why);
    sl_list turn_ends;            /* sl_turn_end.node: who hands in something at the end of this turn */
    struct sl_registry *registry; /* server/groups/registry.h: persistent subscriptions */
    struct sl_operators
        *operators; /* server/groups/operators.h: who stops consumers, and what became of them */
    struct sl_scavenge_run *scavenge; /* the one that a client began: operations.c; NULL: none */
    /* From here on set by the driver, after sl_host_new(). */
    uint16_t
        port; /* where clients are served: settings->port, or the free one that was found. 0: not known */
    /* A client asked for the end (Operations.Shutdown). The driver begins it in its next turn; NULL: it has no such thing. */
    void (*shutdown)(void *ctx, const char *reason);
    void *shutdown_ctx;

    bool stopping; /* no new calls; see server/door.h for writes */
    char stop_reason[128];
    /* The driver: something became runnable outside of its calls (a helper thread is done, for example). Any thread. */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

typedef struct sl_host_setup {
    const sl_alloc *alloc;
    const sl_clock *clock;
    const sl_clock *stopwatch; /* NULL: the clock */
    const sl_logger *log;
    const sl_server_settings *settings; /* must live as long as the host */
    sl_store *store;                    /* stays the caller's: closed after the host is freed */
    sl_hash_seed seed;
    sl_uuid instance;
    uint64_t patience_ns;    /* 0: no batch is patient. A server has SL_HOST_PATIENCE_NS */
    void (*wake)(void *ctx); /* may come from another thread */
    void *wake_ctx;
    sl_text *problem; /* gets a sentence on a group that cannot be loaded; NULL: nobody reads it */
} sl_host_setup;

/* Persistent subscriptions are loaded from the store, which may wait for the disk as opening does.
 * SL_OK, SL_ERR_NOMEM, SL_ERR_IO (also when a helper thread cannot be started), SL_ERR_CORRUPT. */
sl_err sl_host_new(const sl_host_setup *setup, sl_host **ret_host);

/* Links must be gone before. Whoever still waits for a commit is told that nobody knows how it ends (SL_ERR_STORE_FAILED),
 * though the store finishes it when it is closed. NULL is allowed. */
void sl_host_free(sl_host *host);

/* The store's descriptor is readable: commits are answered, and who waits for the disk can go on in the next turn. */
void sl_host_poll(sl_host *host);

/* End of a turn: runs readers that can go on, hands everything submitted to the store and takes what is already durable.
 * True: something can go on at once, the next turn must not wait. */
bool sl_host_turn(sl_host *host);

/* Alarms of services; UINT64_MAX: none. */
uint64_t sl_host_due_ns(const sl_host *host);
void sl_host_tick(sl_host *host, uint64_t now_ns);

/* Users are loaded and the store works: clients can be served. */
bool sl_host_ready(const sl_host *host);

/* fn for each call that is open, oldest first; fn may end it and others. */
struct sl_request;
void sl_host_each_request(sl_host *host, void (*fn)(void *ctx, struct sl_request *request), void *ctx);

/* New calls are refused from now on, UNAVAILABLE with this reason, and each open one is told through its method's `stop`.
 * The first reason is kept; a second call changes nothing. Writes go on until sl_door_shut(). */
void sl_host_stop(sl_host *host, const char *reason);

/* --- the end of a turn: for those who collect while it lasts and then hand in once --- */

typedef struct sl_turn_end {
    sl_list node;
    void (*fn)(void *ctx);
    void *ctx;
} sl_turn_end;

void sl_turn_end_init(sl_turn_end *end, void (*fn)(void *ctx), void *ctx);

/* fn is called once, before the next write to the store, or after it and then the next turn comes at once. Asking twice is asking
 * once. sl_list_remove(&end->node) takes it back. */
void sl_host_at_turn_end(sl_host *host, sl_turn_end *end);

/* --- alarms: inside the things that need them, so that setting one cannot fail --- */

typedef struct sl_alarm {
    sl_pairing_node node;
    void (*fn)(void *ctx);
    void *ctx;
    uint64_t at_ns;
    bool is_set;
} sl_alarm;

/* All zero is an alarm that is not set; fn and ctx are filled by its owner. fn is called once, from sl_host_tick(), at or
 * after at_ns of monotonic time; replaces an earlier time. UINT64_MAX means never. A time that is past means the next tick. */
void sl_alarm_set(sl_host *host, sl_alarm *alarm, uint64_t at_ns);

/* Also right for one that is not set. Needed before its memory goes. */
void sl_alarm_stop(sl_host *host, sl_alarm *alarm);

#endif

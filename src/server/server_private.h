/* server/server_private.h — the server as its own files see it: server.c (turns, signals, the end), start.c (up to
 * ready), notices.c (what the log says while it runs), admin*.c (the pages).
 *
 *      opening the store --> loading users --> serving --> ending (shutdown.h) --> closing the store --> ended
 *               \__________________\_______________________/
 *
 * Every failure goes through sl_server_fail(), which begins the same shutdown as a signal does, from wherever it got to. */
#ifndef SL_SERVER_SERVER_PRIVATE_H
#define SL_SERVER_SERVER_PRIVATE_H

#include "net/listener.h"
#include "server/door.h"
#include "server/groups/operators.h"
#include "server/host.h"
#include "server/peer.h"
#include "server/server.h"
#include "server/shutdown.h"
#include "server/storage.h"

enum {
    SL_ADDRESS_TEXT_BYTES = 288, /* a name of DNS in brackets, a colon and a port */
    SL_SENTENCES_BYTES = 1024
};

typedef enum sl_stage {
    SL_STAGE_OPENING,
    SL_STAGE_LOADING,
    SL_STAGE_SERVING,
    SL_STAGE_CLOSING, /* the shutdown is over: connections and services are gone, the store is being closed */
    SL_STAGE_ENDED,
} sl_stage;

/* What is counted by net and wire and tells of trouble with connections: what was said of it in the log. */
typedef struct sl_notices {
    sl_timer timer;
    uint64_t net_told[SL_NET_END_COUNT_];
    uint64_t wire_told[SL_END_COUNT_];
    bool store_told; /* the log has said that something is wrong with the store */
} sl_notices;

typedef struct sl_server {
    const sl_alloc *alloc;
    const sl_server_settings *settings;
    const sl_server_hooks *hooks;
    sl_logger log;
    sl_loop *loop;
    sl_stage stage;
    sl_err err; /* why it could not start or had to give up */
    sl_text *problem;
    uint64_t started_ns;
    sl_uuid instance;
    sl_hash_seed seed;

    sl_tls *tls;              /* NULL: plain */
    struct sl_pages *admin;   /* NULL: not yet, or gone */
    uint32_t admin_job_count; /* admin_stop.c: questions that wait for their answer, */
    sl_list admin_jobs;       /* and these themselves; all zero: there were none */
    sl_storage *storage;
    sl_watch *store_watch;
    sl_host *host;  /* NULL: not yet, or gone */
    sl_timer alarm; /* of the host */
    sl_timer again; /* set while the host has something to do in the next turn */
    sl_peers peers; /* good while there is a host */
    sl_listener *listener;
    uint32_t connections_max;    /* as in the settings, or what the system's limit leaves */
    sl_net_counters net;         /* lives longer than the host: lingering sockets still count */
    sl_server_counters counters; /* the host's, after it has gone */
    sl_door_tally tally;         /* of the door, after it has gone */
    uint64_t batches_left;       /* inside the door when it was given up */
    uint64_t calls_cut;
    sl_operators_tally consumers; /* of the operators, after they have gone */
    bool is_leaving;              /* the helper thread was told to end */
    char address[SL_ADDRESS_TEXT_BYTES], admin_address[SL_ADDRESS_TEXT_BYTES];

    sl_shutdown shutdown;
    sl_timer shutdown_timer;
    sl_notices notices;
} sl_server;

/* server.c. The first failure is kept: `sentences` say what happened, what it means and what to do. */
void sl_server_fail(sl_server *server, sl_drain_reason reason, sl_err err, const char *sentences);

/* Whoever wants to know the counters: of the host, or what it left behind. */
const sl_server_counters *sl_server_counters_of(const sl_server *server);

/* Can clients be served? Otherwise `why` gets a sentence; may be NULL. */
bool sl_server_is_ready(const sl_server *server, sl_text *why);

/* start.c. */
void sl_start_begin(sl_server *server);
void sl_start_turn(sl_server *server);
void sl_start_reload_tls(sl_server *server);

/* notices.c. */
void sl_notices_start(sl_server *server);
void sl_notices_turn(sl_server *server);
void sl_notices_stop(sl_server *server);

#endif

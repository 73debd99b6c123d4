/* tests/unit/server/rig.h — a whole server without a socket: host, store and clients, memory between them, time by hand.
 *
 *      server_rig rig;
 *
 *      server_rig_init(&rig);                     // may be changed before it starts: rig.settings, rig.store
 *      server_rig_start(&rig);
 *      server_call *call = server_rig_unary(&rig, "/package.Service/Method", request);
 *      EXPECT_CALL_STATUS(call, SL_STATUS_OK);    // call->messages[0] is the answer
 *      server_rig_done(&rig);
 *
 * Everything that a client sees of a call is copied into its server_call, which lives until server_rig_done(). Nothing sleeps: what
 * comes from a helper thread or the disk is waited for on its descriptor, and a test that waits for what never comes fails. */
#ifndef SL_TESTS_UNIT_SERVER_RIG_H
#define SL_TESTS_UNIT_SERVER_RIG_H

#include "test.h"

#include "server/host.h"
#include "server/link.h"
#include "wire/call.h"

typedef struct server_rig {
    /* Filled by server_rig_init(); a test may change them before server_rig_start(). */
    sl_server_settings settings; /* the defaults */
    sl_store *store; /* NULL: one in memory is made, and closed at the end; a given one stays the test's */
    const sl_alloc *alloc; /* of host and links */
    sl_clock_manual time;
    const char *authorization; /* NULL: none; sent with each call that brings none */
    const char *authority;     /* what clients that connect from now on call the server */

    sl_host *host;
    sl_clock clock;
    sl_logger log;
    char *log_lines; /* all of them, with their newlines */
    size_t log_bytes;
    bool store_is_own;
    int wake_fd;
    sl_list connections, calls;
    struct server_peer *first; /* the connection that calls use unless they say otherwise */
} server_rig;

/* A client and its link. */
typedef struct server_peer {
    server_rig *rig;
    sl_list node;
    sl_link *link;         /* NULL: the server has closed it, or it was broken */
    sl_connection *client; /* NULL: the same */
    bool stuck;            /* the client takes no bytes: set it as you like */
    bool touched;          /* by the server, outside of its receive */
    size_t bytes_received; /* by the client */
    unsigned goaways;
} server_peer;

/* What the client has seen of a call. */
typedef struct server_call {
    server_peer *peer;
    sl_list node;
    sl_call *call; /* NULL: it is over */
    bool slow;     /* consumes nothing: set it as you like, server_call_read_on() ends it */
    unsigned headers;
    sl_str *messages; /* copies, each with a zero behind it */
    size_t message_count, message_capacity;
    size_t unconsumed_bytes;
    bool ended;
    sl_call_end_kind kind;
    sl_status status;
    char message[1024];  /* of the status */
    char trailers[4096]; /* "key=value\n" each, "-bin" values in hexadecimal; header metadata before them */
    bool unprocessed;
} server_call;

void server_rig_init(server_rig *rig);
/* Returns when the host is ready; the second form at once, before its first turn. */
void server_rig_start(server_rig *rig);
void server_rig_open(server_rig *rig);
void server_rig_done(server_rig *rig);

server_peer *server_rig_connect(server_rig *rig, const char *peer_address);
/* The connection is lost, without a word. */
void server_rig_break(server_peer *peer);

/* --- time --- */

/* One turn of a driver as server.c has it: bytes to the links, the store's descriptor, alarms, sl_host_turn(), bytes to the clients.
 * False: nothing moved and nothing wants another turn. */
bool server_rig_turn(server_rig *rig);
/* Turns until nothing moves and no batch is inside of the door. What a helper thread does is not waited for. */
void server_rig_run(server_rig *rig);
/* Turns until *flag, waiting for helper threads and the disk. Fails when nothing comes for a long time. */
void server_rig_run_until(server_rig *rig, const bool *flag);
/* Sleeps until a helper thread or the disk has something. */
void server_rig_wait(server_rig *rig);
/* Time passes, then server_rig_run(). */
void server_rig_advance(server_rig *rig, uint64_t duration_ns);

/* --- calls --- */

typedef struct server_call_options {
    server_peer *peer; /* NULL: rig->first, which is made when it is needed */
    const char *path;
    const sl_metadata *metadata;
    size_t metadata_count;
    uint64_t timeout_ns; /* 0: none */
} server_call_options;

server_call *server_rig_call(server_rig *rig, const char *path);
server_call *server_rig_call_with(server_rig *rig, const server_call_options *options);
void server_call_send(server_call *call, sl_str message);
void server_call_half_close(server_call *call);
void server_call_cancel(server_call *call);
/* Consumes everything, now and from now on. */
void server_call_read_on(server_call *call);

/* One message, half-close, and turns until the call has ended. */
server_call *server_rig_unary(server_rig *rig, const char *path, sl_str request);
server_call *server_rig_unary_with(server_rig *rig, const server_call_options *options, sl_str request);
void server_rig_run_until_ended(server_rig *rig, server_call *call);
/* Turns until it has at least so many messages; fails when it ends before. */
void server_rig_run_until_messages(server_rig *rig, server_call *call, size_t message_count);

/* The value of a trailer or header, NULL when there is none; good until the next call of this. */
const char *server_call_trailer(const server_call *call, const char *key);

#define EXPECT_CALL_STATUS(seen, wanted)                                                                     \
    do {                                                                                                     \
        const server_call *const test_seen_ = (seen);                                                        \
        EXPECT(test_seen_->ended);                                                                           \
        if (test_seen_->status != (wanted))                                                                  \
            fail_msg("%s \"%s\", wanted %s", sl_status_name(test_seen_->status), test_seen_->message,        \
                     sl_status_name(wanted));                                                                \
    } while (0)

/* --- the store, past all services --- */

/* Writes one event through the door and waits until it is durable; returns its revision. */
uint64_t server_rig_append(server_rig *rig, const char *stream, const char *type, const char *data);

/* A line of the log has this text in it. */
bool server_rig_logged(const server_rig *rig, const char *text);

#endif

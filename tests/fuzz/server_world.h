/* tests/fuzz/server_world.h — what is around the server in fuzz_host: its driver, its clients, its clock, its memory.
 *
 *      client engine --bytes--> link --> host --> slow_store          one turn as server.c has it, in one thread, without a
 *          judge     <--bytes--                                       descriptor but that of the memory store
 *
 * Two kinds of peers. One has the client side of our own engine: its calls are correct HTTP/2, so that the services behind get
 * whatever the input wants them to get. The other has nothing: the input writes the bytes itself.
 *
 * Everything that is not the server itself does the same each time: one input, one way through. */
#ifndef SL_TESTS_FUZZ_SERVER_WORLD_H
#define SL_TESTS_FUZZ_SERVER_WORLD_H

#include "server_judge.h"
#include "server_memory.h"
#include "server_store.h"

#include "server/host.h"
#include "server/link.h"
#include "server/method.h"
#include "server/passwords.h"
#include "server/shutdown.h"
#include "wire/call.h"

enum {
    WORLD_PEERS_MAX = 4,
    WORLD_CALLS_MAX = 64,        /* in one input; later ones are not made */
    WORLD_TURNS_MAX = 20 * 1000, /* of one rest: who needs more runs for ever */
};

/* Of the only administrator at the beginning: root, root-secret. */
#define WORLD_ROOT_CREDENTIALS SL_STR("Basic cm9vdDpyb290LXNlY3JldA==")

typedef struct world world;

typedef struct world_peer {
    world *world;
    sl_link *link;         /* NULL: there is none */
    sl_connection *client; /* NULL: the input writes the bytes */
    bool touched;
    bool stuck;         /* takes no bytes from the server */
    bool broke_rules;   /* its bytes are not, or not only, those of an engine: nothing is owed to it */
    uint32_t mangle_at; /* one byte of what is sent next is changed; UINT32_MAX: none */
    uint8_t mangle_with;
    uint32_t stream_id; /* the next one, of a peer without an engine */
} world_peer;

typedef struct world_call {
    world_peer *peer;
    sl_call *call;           /* NULL: it is over */
    const sl_method *method; /* NULL: one that the server does not have */
    uint32_t sent_count;
    bool half_closed, ended;
    bool slow; /* consumes nothing */
    size_t unconsumed_bytes;
    judge_call judged;
} world_call;

struct world {
    tight_memory memory; /* of host, store and links */
    sl_clock_manual time;
    sl_clock clock;
    sl_logger log;
    sl_server_settings settings;
    slow_store *store;
    sl_host *host;
    sl_shutdown shutdown;
    uint64_t shutdown_due_ns;
    int64_t ids_made;
    char hash[SL_PASSWORD_HASH_BYTES]; /* of root's password */
    bool woken;
    bool begin_shutdown; /* a client asked for it */
    bool is_leaving;     /* the last phase of a shutdown has begun */

    world_peer peers[WORLD_PEERS_MAX];
    world_call calls[WORLD_CALLS_MAX];
    uint32_t call_count;
    judge judge;
};

typedef struct world_wishes {
    bool insecure, anonymous;
    bool has_users;    /* root, an administrator, and bob */
    bool small_limits; /* of events, appends and calls */
    bool keeps_spares; /* memory of requests is used again; else the sanitizer sees each one */
} world_wishes;

void world_open(world *w, const world_wishes *wishes);

/* Frees everything and looks whether that was all. */
void world_close(world *w);

/* Of an empty place. False: there was no memory. */
bool world_connect(world_peer *peer, bool has_engine);
/* The connection is lost, without a word. */
void world_break(world_peer *peer);
/* Bytes that the input made. */
void world_receive(world_peer *peer, const void *data, size_t bytes);

/* NULL: the connection takes no new calls, or there were enough. deadline_ns: from now; UINT64_MAX: none. */
world_call *world_call_start(world_peer *peer, sl_str path, const sl_metadata *metadata, size_t count,
                             uint64_t deadline_ns);
/* These two while it is open and not half-closed. */
void world_call_send(world_call *call, sl_str message);
void world_call_half_close(world_call *call);
void world_call_read_on(world_call *call);

bool world_turn(world *w);
/* Turns until nothing moves. */
void world_rest(world *w);
void world_advance(world *w, uint64_t duration_ns);

void world_shut_door(world *w);
void world_begin_shutdown(world *w);

/* Nobody is slow any more, nothing fails any more; then turns until nothing moves. */
void world_calm(world *w);

/* After that every call that is owed an answer has it. */
void world_check_owed(const world *w);

#endif

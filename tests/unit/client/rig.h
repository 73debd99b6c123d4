/* tests/unit/client/rig.h — a server in the same loop, made of wire's engine and net's listener, and calls that keep what they
 * got.
 *
 * What the server does with a call is its path:
 *      /t/Echo     sends each message back; OK when the client is done
 *      /t/Who      one message: "authorization|connection-name|extra", the values of these keys
 *      /t/Refuse   PERMISSION_DENIED with the trailer exception
 *      /t/Silent   nothing at all; keeps what comes unconsumed, so that the client's window closes
 *      /t/Flood    messages with rising numbers, as long as there is room; never ends
 *
 * Nothing sleeps: CLIENT_UNTIL() turns the loop until a fact holds, and a timer fails the test when it never does. */
#ifndef SL_TESTS_UNIT_CLIENT_RIG_H
#define SL_TESTS_UNIT_CLIENT_RIG_H

#include "test.h"

#include "client/client.h"
#include "net/listener.h"

#include <stdbool.h>

enum {
    CLIENT_RIG_PEERS_MAX = 8,
    CLIENT_RIG_FLOOD_BYTES = 1024 /* of one message of the flood */
};

typedef struct client_rig_peer {
    sl_socket *socket; /* NULL: gone */
    sl_connection *connection;
    struct client_rig *rig;
} client_rig_peer;

typedef struct client_rig {
    sl_loop *loop;
    sl_listener *listener;
    sl_timer guard;
    bool guard_rang;
    client_rig_peer peers[CLIENT_RIG_PEERS_MAX];
    uint32_t peer_count;
    uint32_t server_calls;  /* that the server has seen begin */
    uint32_t server_ends;   /* and end */
    uint64_t flood_sent;    /* messages */
    size_t swallowed_bytes; /* of messages that were not echoed */
    sl_client *client;
    uint32_t opens, goaways, ends;
    sl_client_end end;
    char problem[512];
} client_rig;

/* A call of the client. */
typedef struct client_rig_call {
    sl_client_call call;
    struct client_rig *rig;
    uint32_t ends, messages, rooms;
    bool cancel_at_first; /* from inside of on_message */
    bool pause_at_first;
    struct client_rig_call *cancel_at_end; /* another call, from inside of on_end */
    bool order_broken;                     /* of a flood */
    sl_call_end_kind kind;
    sl_status status;
    bool unprocessed;
    char last[256], message[512], exception[64]; /* the last message, what the end said */
} client_rig_call;

void client_rig_init(client_rig *r, sl_tls *server_tls);
void client_rig_done(client_rig *r);

/* A client for this address, or for the listener when it is NULL; connects. */
void client_rig_connect(client_rig *r, const char *address);
/* Only makes it. */
sl_err client_rig_make(client_rig *r, const char *address, const sl_alloc *alloc, char *problem,
                       size_t problem_bytes);
/* "sluice://127.0.0.1:PORT", and more behind it; good until the next call. */
const char *client_rig_address(client_rig *r, const char *more);

/* As sl_client_call_start(); the second one has to succeed. */
sl_err client_rig_begin(client_rig *r, client_rig_call *call, const char *path, uint64_t timeout_ns);
void client_rig_start(client_rig *r, client_rig_call *call, const char *path, uint64_t timeout_ns);
void client_rig_send(client_rig_call *call, const char *text);

/* What the server does out of turn. */
void client_rig_server_goaway(client_rig *r, uint32_t peer_index);
void client_rig_server_cut(client_rig *r, uint32_t peer_index);

void client_rig_turn(client_rig *r);

#define CLIENT_UNTIL(r, fact)                                                                                \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((r)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            client_rig_turn(r);                                                                              \
        }                                                                                                    \
    } while (0)

#endif

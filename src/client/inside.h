/* client/inside.h — the fields of a client, for the files of this folder. */
#ifndef SL_CLIENT_INSIDE_H
#define SL_CLIENT_INSIDE_H

#include "client/client.h"

#include "base/buf.h"
#include "net/socket.h"
#include "net/tls.h"
#include "wire/connection.h"

enum {
    SL_CLIENT_PROBLEM_BYTES = 1024,
    SL_CLIENT_AUTHORITY_BYTES = SL_HOST_BYTES_MAX + 16,
};

/* Idle: connection and socket are NULL. Otherwise both are there, from sl_client_connect() on. */
struct sl_client {
    const sl_alloc *alloc;
    sl_loop *loop;
    sl_client_address address;
    sl_client_handler handler;
    void *ctx;
    sl_wire_limits limits;
    uint64_t connect_timeout_ns;
    sl_tls *tls;          /* NULL: plain */
    sl_buf authorization; /* the value of the header; empty: none */
    sl_connection *connection;
    sl_socket *socket;
    sl_timer timer; /* of the engine */
    bool is_open;
    sl_client_end end;
    char problem[SL_CLIENT_PROBLEM_BYTES]; /* empty until something went wrong */
    char authority[SL_CLIENT_AUTHORITY_BYTES];
};

/* Something may have to be sent or waited for. Cheap, and right also from inside of the engine. */
void sl_client_touch(sl_client *client);

/* The sentence about the end of the connection, made when it is asked for first. */
const char *sl_client_problem(sl_client *client);

/* call.c: what the engine tells about calls. */
extern const sl_connection_handler sl_client_engine_handler;

#endif

/* tests/unit/net/rig.h — a loop, a listener and ends of connections that count and check what they get.
 *
 * Nothing sleeps: UNTIL() turns the loop until a fact holds, and a timer fails the test when it never does. */
#ifndef SL_TESTS_UNIT_NET_RIG_H
#define SL_TESTS_UNIT_NET_RIG_H

#include "test.h"

#include "net/listener.h"

#include <stdbool.h>

enum {
    ENDS_MAX = 300
};

/* One side of one connection. What it sends is a pattern by position, and what comes must be the same one. */
typedef struct end {
    sl_socket *socket;
    sl_loop *loop;
    size_t to_send, sent, received;
    size_t fill_max;     /* in one call; 0: all that fits */
    size_t pause_after;  /* pauses when so many came; 0: never */
    bool echo_end;       /* ends its output when the peer has */
    bool pause_at_start; /* server: in on_accept */
    bool is_open, receive_ended, has_ended, pattern_broken;
    sl_net_end reason;
    char problem[512];
    uint32_t fills, receives;
} end;

typedef struct rig {
    sl_loop *loop;
    sl_listener *listener;
    sl_net_counters counters;
    sl_net_limits limits;
    sl_tls *server_tls, *client_tls;
    sl_timer guard;
    bool guard_rang;
    end servers[ENDS_MAX]; /* in the order in which they were accepted */
    uint32_t server_count;
    end accepted_template; /* how a new one of them starts */
    uint32_t turn_ends;
} rig;

extern const sl_socket_handler end_handler;

void net_rig_init(rig *r, const sl_alloc *alloc);
void net_rig_listen(rig *r);
void net_rig_connect(rig *r, end *client);
void net_rig_connect_to(rig *r, end *client, const char *host, uint16_t port, uint64_t timeout_ns);
void net_rig_done(rig *r);

/* One turn, which waits; fails the test when the guard rang. */
void net_rig_turn(rig *r);

#define UNTIL(r, fact)                                                                                       \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((r)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            net_rig_turn(r);                                                                                 \
        }                                                                                                    \
    } while (0)

/* A listening socket of the system that nobody accepts from; tells its port. */
int raw_listen(int backlog, uint16_t *ret_port);
/* A blocking connection to the port of this machine. */
int raw_connect(uint16_t port);

/* False where nothing says what "localhost" is: a folder that is only half a system. */
bool net_rig_knows_localhost(void);

#endif

/* net/inside.h — private to src/net: the structs, and what its files offer each other.
 *
 * How the files share the work:
 *
 *      loop.c      life of the loop, the order of a turn, clocks        loop_events.c  timers, signals, watches
 *      address.c   texts <-> socket addresses                           listener.c     accepting
 *      socket.c    life of a connection: open, close, linger, end       connect.c      making one as a client
 *      receive.c   from the system to the owner                         send.c         from the owner to the system
 *      tls.c       contexts: certificates, trust                        session.c      TLS on one connection
 *
 * Two rules keep memory and callbacks apart:
 *
 * Nothing is freed under a caller. A connection that is over gets state GONE at once, and its memory goes in the
 * closing phase of libuv's iteration, when no function of ours is on the stack. So every function may look at the
 * state after a callback and needs no reference count.
 *
 * Nothing is sent from inside a callback. Who has something to send is put into loop->senders and is asked after
 * the end of the turn. So a connection that is woken ten times in a turn makes one write, and the buffers of the
 * loop, which all connections share, have one user at a time. */
#ifndef SL_NET_INSIDE_H
#define SL_NET_INSIDE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/socket.h"
#include "net/tls.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <uv.h>

enum {
    SL_RECEIVE_BYTES = 64 * 1024,
    SL_RECEIVES_PER_TURN = 4, /* of one connection: the others wait */
    SL_FILLS_PER_TURN = 4,
    SL_TLS_EXTRA_BYTES = 32 * 1024, /* heads and tags of a full write, or the longest flight of a handshake */
    SL_OUT_BYTES = SL_SEND_BYTES_MAX + SL_TLS_EXTRA_BYTES,
    SL_UNSENT_KEPT_BYTES = 16 * 1024, /* an empty buffer that is larger is given back */
    SL_SIGNALS_CAUGHT = 3,
    SL_ADDRESSES_MAX = 8, /* of one name: more are not tried */
    SL_DETAIL_BYTES = 256 /* of what is said about one problem, besides the reason */
};

struct sl_loop {
    uv_loop_t uv;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    uv_idle_t hurry; /* active while the next turn must not wait */
    uv_timer_t alarm;
    uv_async_t wake;
    uv_signal_t signals[SL_SIGNALS_CAUGHT];
    bool signals_caught, running, stopping, now_is_fresh, wall_is_fresh;
    bool timers_firing;
    uint32_t signal_count, things; /* things: listeners, watches and sockets whose memory is not freed */
    const sl_alloc *alloc;
    sl_loop_handler handler;
    void *ctx;
    sl_clock clock;
    uint64_t now_ns, wall_ns, alarm_ns;
    sl_pairing timers;
    sl_list receivers, senders; /* sockets with something to do although no descriptor says so */
    sl_list unanswered;         /* those that received in this turn and have sent nothing since */
    sl_list sockets;            /* all that are not GONE */

    /* Shared by all connections; see the second rule above. */
    uint8_t in[SL_RECEIVE_BYTES];     /* as it came from the system */
    uint8_t plain[SL_SEND_BYTES_MAX]; /* decrypted, or to be encrypted */
    uint8_t out[SL_OUT_BYTES];        /* for the system */
};

typedef enum sl_socket_state {
    SL_SOCKET_RESOLVING,
    SL_SOCKET_CONNECTING,
    SL_SOCKET_HANDSHAKE,
    SL_SOCKET_OPEN,
    SL_SOCKET_LINGERING, /* closed by its owner, who hears nothing more */
    SL_SOCKET_GONE
} sl_socket_state;

/* A lookup outlives the socket that asked for it, because libuv cannot always call it back. */
typedef struct sl_lookup {
    uv_getaddrinfo_t request;
    sl_loop *loop;
    sl_socket *socket; /* NULL: nobody waits any more */
} sl_lookup;

struct sl_socket {
    sl_loop *loop;
    sl_list node;                       /* in loop->sockets */
    sl_list receiver_node, sender_node; /* in loop->receivers and ->senders */
    sl_list unanswered_node;            /* in loop->unanswered */
    uv_poll_t poll;
    uv_idle_t grave; /* never active: its close callback frees the socket, also when there is no poll yet */
    uint32_t handles_open;
    bool poll_made;
    int fd;      /* -1: none */
    int watched; /* what poll waits for now */
    sl_socket_state state;
    sl_socket_handler handler;
    void *ctx;
    sl_net_limits limits;
    sl_net_counters *counters;
    sl_listener *listener;  /* that accepted it and still counts it */
    sl_list handshake_node; /* in listener->handshakes */
    sl_timer timer;         /* whatever the state waits for */
    sl_socket_info info;
    char host[SL_HOST_BYTES_MAX + 1];

    /* Client: where to, and what is still to be tried. */
    sl_lookup *lookup;
    struct sockaddr_storage addresses[SL_ADDRESSES_MAX];
    uint32_t address_count, address_next;
    uint16_t port;
    uint64_t connect_by_ns;
    sl_net_end connect_problem; /* of the last address that did not work */

    sl_tls *tls;           /* what to make ssl from; NULL: plain */
    SSL *ssl;              /* NULL: plain, or the connection does not stand yet */
    const uint8_t *ssl_in; /* what TLS may read now */
    size_t ssl_in_bytes;   /* how much of it is left */
    size_t ssl_out_bytes;  /* how much of loop->out TLS has filled */
    sl_buf held;           /* encrypted bytes that came before the owner paused */
    bool goodbye_said;

    sl_buf unsent;
    size_t linger_bytes;
    bool paused, hangup_seen, peer_ended, send_broken;
    bool quickack_refused;            /* by the system: it is not asked again */
    bool ending_output, output_ended; /* sl_socket_end_output(): wanted, done */
};

struct sl_listener {
    sl_loop *loop;
    uv_poll_t poll;
    sl_timer retry; /* when the system had no descriptor left */
    int fd;
    uint16_t port;
    uint32_t connection_count, handshake_count;
    sl_list handshakes; /* sockets, the oldest first */
    bool paused;
    sl_net_limits limits;
    sl_net_counters *counters;
    sl_tls *tls;
    void (*on_accept)(void *ctx, sl_socket *socket);
    void *ctx;
};

struct sl_tls {
    const sl_alloc *alloc;
    SSL_CTX *context;
    bool is_server, http1_allowed, alpn_required;
    char *certificate_file, *key_file;
};

/* loop.c */
void sl_loop_hurry(sl_loop *loop);
void sl_loop_set_alarm(sl_loop *loop);

/* loop_events.c */
bool sl_timer_before(const sl_pairing_node *a, const sl_pairing_node *b);
void sl_loop_fire_timers(sl_loop *loop);

/* address.c */
bool sl_address_parse(const char *host, uint16_t port, struct sockaddr_storage *ret_address);
void sl_address_set_port(struct sockaddr_storage *address, uint16_t port);
uint16_t sl_address_port(const struct sockaddr_storage *address);
socklen_t sl_address_bytes(const struct sockaddr_storage *address);
void sl_address_text(const struct sockaddr_storage *address, char *into, size_t capacity);

/* listener.c */
void sl_listener_forget(sl_listener *listener, sl_socket *socket); /* before its state is GONE */
void sl_listener_opened(sl_listener *listener, sl_socket *socket);

/* socket.c */
sl_socket *sl_socket_make(sl_loop *loop, const sl_net_limits *limits, sl_net_counters *counters);
sl_err sl_socket_adopt_fd(sl_socket *socket, int fd); /* on failure fd is still the caller's */
void sl_socket_begin(sl_socket *socket);              /* the connection stands: TLS next, or open */
void sl_socket_opened(sl_socket *socket);
void sl_socket_watch(sl_socket *socket); /* waits for what the state needs */
void sl_socket_arm(sl_socket *socket, uint64_t after_ns);
void sl_socket_vanish(sl_socket *socket, sl_net_end end); /* without a callback */
void sl_socket_fail(sl_socket *socket, sl_net_end end, const char *detail);
void sl_socket_abandon(sl_socket *socket); /* at the end of the loop */

/* connect.c */
void sl_connect_answered(sl_socket *socket);
void sl_connect_timer(sl_socket *socket);
void sl_connect_forget_lookup(sl_socket *socket);

/* receive.c */
void sl_receive_ready(sl_socket *socket);
void sl_receive_held(sl_socket *socket);
void sl_receive_give(sl_socket *socket, const uint8_t *data, size_t bytes);
void sl_receive_end(sl_socket *socket);
void sl_receive_acknowledge(sl_socket *socket); /* what came, when the turn has sent no answer */

/* send.c */
void sl_send_pump(sl_socket *socket);
void sl_send_want(sl_socket *socket);
bool sl_send_or_keep(sl_socket *socket, const uint8_t *data, size_t bytes); /* false: the socket is GONE */

/* session.c: TLS on one connection. Where a bool is given, false means that the socket is GONE. */
bool sl_session_start(sl_socket *socket);
bool sl_session_receive(sl_socket *socket, const uint8_t *data, size_t bytes);
size_t sl_session_encrypt(sl_socket *socket, size_t plain_bytes); /* loop->plain to loop->out; 0: GONE */
size_t sl_session_goodbye(sl_socket *socket);                     /* into loop->out */

/* tls.c: the oldest error of OpenSSL's queue as a text; empties the queue. */
void sl_tls_explain(sl_text *text);

#endif

/* net/reason.h — why a connection ended or was refused, and how often each of it happened. */
#ifndef SL_NET_REASON_H
#define SL_NET_REASON_H

#include <stdint.h>

#define SL_NET_END_MAP(XX) /* name, text */                                                                  \
    XX(NONE, "the connection is open")                                                                       \
    XX(CLOSED, "closed from this side")                                                                      \
    XX(PEER_CLOSED, "the peer closed the connection")                                                        \
    XX(RESET, "the peer reset the connection")                                                               \
    XX(PEER_GONE, "the peer does not answer any more")                                                       \
    XX(STALLED, "the peer took no bytes for too long")                                                       \
    XX(CONNECTIONS_FULL, "as many connections are open as the limit allows")                                 \
    XX(HANDSHAKES_FULL, "more TLS handshakes were under way than the limit allows")                          \
    XX(HANDSHAKE_TIMEOUT, "the TLS handshake took too long")                                                 \
    XX(HANDSHAKE_FAILED, "the TLS handshake failed")                                                         \
    XX(CERTIFICATE, "the peer's certificate is not trusted")                                                 \
    XX(CERTIFICATE_NAME, "the peer's certificate is not for this name")                                      \
    XX(TLS_BROKEN, "the peer broke the rules of TLS")                                                        \
    XX(TLS_CUT, "the connection ended without TLS's goodbye")                                                \
    XX(NAME_UNKNOWN, "the host name could not be resolved")                                                  \
    XX(REFUSED, "the connection was refused: nobody listens there")                                          \
    XX(UNREACHABLE, "the host or its network cannot be reached")                                             \
    XX(CONNECT_TIMEOUT, "no connection within the time allowed")                                             \
    XX(OPEN_FILES, "as many files are open as the system allows")                                            \
    XX(NOMEM, "out of memory")                                                                               \
    XX(SYSTEM, "the system failed the connection")

typedef enum sl_net_end {
#define XX(name, text) SL_NET_END_##name,
    SL_NET_END_MAP(XX)
#undef XX
    SL_NET_END_COUNT_
} sl_net_end;

/* "HANDSHAKE_TIMEOUT", for logs and metrics, and a sentence without a full stop. */
const char *sl_net_end_name(sl_net_end end);
const char *sl_net_end_text(sl_net_end end);

/* The reason that a number of errno stands for. */
sl_net_end sl_net_end_from_errno(int number);

/* Owned by the caller and shared by as many listeners and connections as he likes; nothing is counted down. A
 * connection that a listener refused at once is in `ended` only. */
typedef struct sl_net_counters {
    uint64_t accepted, connected; /* open for their owner: with TLS, after the handshake */
    uint64_t ended[SL_NET_END_COUNT_];
    uint64_t bytes_received, bytes_sent; /* as the system saw them: with TLS, encrypted */
    uint64_t receives, sends;            /* system calls that moved bytes */
} sl_net_counters;

#endif

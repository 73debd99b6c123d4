/* net/limits.c — the defaults, each with its reason. */
#include "net/limits.h"

#define KIB       UINT32_C(1024)
#define SECOND_NS UINT64_C(1000000000)

const sl_net_limits sl_net_limits_default = {
    /* An idle connection costs a descriptor and a few KiB; the limit of open files is usually met before. */
    .connections_max = 10000,
    /* A handshake costs a millisecond of processor time and some 50 KiB; that many pass in a second or two. */
    .handshakes_max = 512,
    /* What Linux allows by default (net.core.somaxconn). */
    .backlog = 4096,
    .accepts_per_turn = 64,

    /* Two full writes: one that the system took half of, and what TLS adds on its own. */
    .unsent_bytes_max = 512 * KIB,
    /* More than a polite peer has on its way when it learns that we close. */
    .linger_bytes_max = 1024 * KIB,

    .handshake_timeout_ns = 10 * SECOND_NS,
    /* A peer that lives empties its socket in less, however slowly it works on what it took out. */
    .stall_timeout_ns = 120 * SECOND_NS,
    .linger_timeout_ns = 2 * SECOND_NS,
    /* Rarely met: HTTP/2 asks by itself and sooner. It finds dead peers of connections that do not speak it. */
    .keepalive_ns = 60 * SECOND_NS,
};

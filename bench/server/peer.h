/* bench/server/peer.h — one message system that takes messages and confirms them: ours or somebody else's.
 *
 * All are driven by the same two loops (load.c), so that the difference is the system and not the driver: so many messages
 * unconfirmed at a time, or so many in a second. A message has PAYLOAD_BYTES. One process, one connection, loopback. */
#ifndef BENCH_SERVER_PEER_H
#define BENCH_SERVER_PEER_H

#include "common/bench.h"

#include <sys/types.h>

enum {
    PAYLOAD_BYTES = 256,
    ANSWER_SECONDS_MAX = 60, /* a system that says nothing for so long is broken */
};

typedef struct peer peer;

typedef struct peer_kind {
    const char *name;    /* "redis-always" */
    const char *program; /* looked for in PATH and where Debian puts servers */
    bool flushes;        /* a confirmed message is on the disk */
    /* Starts the server in peer->folder and connects. */
    void (*start)(peer *p);
    /* Queues so many messages; they leave with the next wait(). */
    void (*put)(peer *p, uint32_t count);
    /* Sends what is queued and says how many messages, in their order, are confirmed since the last time. 0 only after
     * the timeout. */
    uint32_t (*wait)(peer *p, uint64_t timeout_ns);
    void (*stop)(peer *p);
    const char *variant; /* what start() needs to know, for kinds that share their functions */
    uint32_t group;      /* messages that travel as one; 0: one by one */
} peer_kind;

struct peer {
    const peer_kind *kind;
    char folder[BENCH_PATH_BYTES_MAX];
    uint16_t port;
    pid_t process;
    void *state; /* of the kind */
};

extern const peer_kind peer_sluice, peer_sluice_calls, peer_sluice_batch;
extern const peer_kind peer_redis_always, peer_redis_everysec, peer_nats, peer_rabbitmq_classic,
    peer_rabbitmq_quorum, peer_beanstalkd, peer_beanstalkd_flush, peer_postgres;

/* NULL-terminated, ours not among them. */
extern const peer_kind *const peer_others[];

/* The bytes of every message. */
const char *peer_payload(void);
void peer_payload_mark(uint64_t number); /* its first 16 bytes, in hexadecimal, from now on */

/* True when the program is installed. */
bool peer_available(const peer_kind *kind);
const char *peer_program(const char *name);

void peer_start(peer *p, const peer_kind *kind);
void peer_stop(peer *p);
void peer_end_all(void); /* on the way out of an error */

/* --- for the kinds: processes --- */

uint16_t peer_free_port(void);
/* Starts words[0] (a path) with the words, in its folder, output into FOLDER/log. */
void peer_spawn(peer *p, const char *const *words, const char *const *environment);
/* Waits for the end of what was spawned; false: it failed. */
bool peer_ended_well(peer *p);
/* A connected, non-blocking socket; waits until the server accepts. Fails the run when it ends or never does. */
int peer_connect(peer *p);
/* Processor seconds of the server so far, its children not counted. */
double peer_cpu_s(const peer *p);

#endif

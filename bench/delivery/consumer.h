/* bench/delivery/consumer.h — one connection that takes messages, has them handled (by counting them) and acknowledges them.
 *
 * All systems are driven by the same loop (run.c): whoever has something to read or to send gets a turn. A message is acknowledged as
 * soon as it is there, together with all others that came with it. */
#ifndef BENCH_DELIVERY_CONSUMER_H
#define BENCH_DELIVERY_CONSUMER_H

#include "server/peer.h"

typedef struct consumer consumer;

typedef struct consumer_kind {
    const peer_kind *peer;    /* how the server is started, and who produces */
    void (*prepare)(peer *p); /* once after the start: groups, tables. NULL: nothing */
    /* Connects and asks for `window` messages at a time. */
    void (*open)(consumer *c);
    /* Receives and sends what can be without waiting, and calls consumer_take() for each message. True: there is more to send
     * than the socket takes now. */
    bool (*turn)(consumer *c);
    void (*close)(consumer *c);
} consumer_kind;

struct consumer {
    const consumer_kind *kind;
    peer *server;
    uint32_t index, window;
    const char *group; /* sluice: which group; others have one */
    int fd;
    bool holds; /* acknowledges nothing */
    uint64_t taken;
    uint64_t acked; /* sent, or confirmed where the system confirms it */
    void *state;    /* of the kind */
};

extern const consumer_kind consumer_sluice, consumer_rabbitmq_classic, consumer_rabbitmq_quorum,
    consumer_postgres;

/* NULL-terminated, ours not among them. */
extern const consumer_kind *const consumer_others[];

/* run.c: one message is there. Its first bytes say when it was due, when somebody wants to know. */
void consumer_take(consumer *c, const char *payload);

#endif

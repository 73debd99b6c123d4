/* bench/server/sluice.h — our side as a client: the engine of wire on a plain socket. */
#ifndef BENCH_SERVER_SLUICE_H
#define BENCH_SERVER_SLUICE_H

#include "peer.h"

#include "wire/call.h"
#include "wire/streams_codec.h"

typedef struct sluice {
    int fd;
    sl_connection *connection;
    sl_call *batch; /* the open BatchAppend call; NULL: one call for each append */
    uint64_t next_id;
    uint32_t queued, confirmed;
    uint64_t events_read;  /* messages of Read calls */
    bool caught_up, ended; /* of the last Read call */
    double *sent_s;        /* when the subscription test sent event n; NULL: nobody looks */
    double *latency_s;
    uint64_t event_count_max;
} sluice;

sluice *sluice_open(peer *p);
void sluice_close(sluice *s);

/* Moves bytes until something happened that `wanted` waits for, or the time is over: false. */
typedef bool sluice_wanted(const sluice *s);
bool sluice_run(sluice *s, sluice_wanted *wanted, uint64_t timeout_ns);

/* Reads everything, or subscribes to what comes. */
void sluice_read_all(sluice *s, bool subscribe_at_end);

#endif

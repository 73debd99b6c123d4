/* bench/worker/endpoint.h — a web service that does nothing, as fast as that can be done: for requests of two clients. */
#ifndef BENCH_WORKER_ENDPOINT_H
#define BENCH_WORKER_ENDPOINT_H

#include <stdint.h>
#include <sys/types.h>

typedef struct endpoint {
    pid_t process;
    uint16_t port;
    char url[64];
} endpoint;

/* A process of its own that answers each whole request with 204, over connections that stay. */
void endpoint_start(endpoint *e);
void endpoint_stop(endpoint *e);

#endif

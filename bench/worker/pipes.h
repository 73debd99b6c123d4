/* bench/worker/pipes.h — a process with a pipe to its input and one from its output: what a handler is without a worker. */
#ifndef BENCH_WORKER_PIPES_H
#define BENCH_WORKER_PIPES_H

#include "parts.h"

typedef struct piped {
    pid_t process;
    int to, from;
} piped;

/* `/bin/sh -c command`. */
piped piped_start(const char *command);
/* Closes its input and waits for its end, which must be a good one. */
void piped_end(piped *p);

#endif

/* bench/worker/work_run.h — a worker whose messages come from inside of the process, from the first to the last. */
#ifndef BENCH_WORKER_WORK_RUN_H
#define BENCH_WORKER_WORK_RUN_H

#include "parts.h"

#include "base/log.h"
#include "net/loop.h"
#include "worker/handler.h"

typedef struct work_setup work_setup;

struct work_setup {
    uint64_t messages;
    uint32_t slots;
    uint32_t data_bytes;
    const char *target; /* an address or a command, for make() */
    sl_handler *(*make)(sl_loop *loop, const sl_logger *log, const work_setup *setup);
    /* NULL, or called at the end of each turn with how many are acked by then. */
    void (*look)(void *ctx, uint64_t acked);
    void *look_ctx;
};

/* Messages in a second. Fails the program when one of them was not acked at its first attempt. */
double work_run(const work_setup *setup);

#endif

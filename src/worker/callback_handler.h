/* worker/callback_handler.h — the handler that calls a C function: in the loop's thread, or in threads of its own. */
#ifndef SL_WORKER_CALLBACK_HANDLER_H
#define SL_WORKER_CALLBACK_HANDLER_H

#include "base/log.h"
#include "net/loop.h"
#include "worker/handler.h"

#include <sluice.h>

enum {
    SL_CALLBACK_THREADS_MAX = 256,
    SL_CALLBACK_STUCK_MAX = 64 /* threads that do not come back are replaced until there are so many */
};

typedef struct sl_callback_settings {
    sl_worker_fn *work;
    void *user;
    uint32_t slots;
    uint32_t threads;     /* 0: in the thread of the loop */
    const char *name;     /* of the threads; copied */
    const sl_logger *log; /* for what free() leaves behind; lives as long as the handler */
} sl_callback_settings;

/* SL_OK, SL_ERR_NOMEM, SL_ERR_INVALID, SL_ERR_IO (no thread could be made). */
sl_err sl_callback_new(sl_loop *loop, const sl_callback_settings *settings, sl_handler **ret_handler);

#endif

/* server/errand.h — one long call in a thread of its own, so that the loop goes on turning: opening and closing a store.
 *
 * While it runs, signals are heard and the admin pages answer. It cannot be cancelled: who does not want to wait any longer
 * leaves it (and the memory that it uses) to itself, and the end of the process ends it. */
#ifndef SL_SERVER_ERRAND_H
#define SL_SERVER_ERRAND_H

#include "base/err.h"
#include "net/loop.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct sl_errand {
    void (*run)(void *ctx);
    void *ctx;
    pthread_t thread;
    bool is_on; /* begun, and neither taken back nor left */
    pthread_mutex_t mutex;
    sl_loop *loop; /* NULL: left */
    bool is_done;
} sl_errand;

/* run(ctx) in another thread; the loop is woken when it is done. The errand and ctx must stay until it was taken back.
 *   SL_OK
 *   SL_ERR_IO  the system gives no thread */
sl_err sl_errand_begin(sl_errand *errand, sl_loop *loop, void (*run)(void *ctx), void *ctx);

/* For run(): there is something to look at. */
void sl_errand_wake(sl_errand *errand);

/* True once, when it is done: what run() wrote may be read now. */
bool sl_errand_take(sl_errand *errand);

/* Nobody waits any more; the loop may be freed. The errand and ctx must stay as they are until the process ends. */
void sl_errand_leave(sl_errand *errand);

#endif

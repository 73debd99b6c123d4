/* server/errand.c — see errand.h. The mutex is about the loop, which may go while the thread still runs. */
#include "server/errand.h"

#include <assert.h>

static void wake(sl_errand *errand, bool is_done)
{
    pthread_mutex_lock(&errand->mutex);
    errand->is_done = is_done;
    if (errand->loop != NULL)
        sl_loop_wake(errand->loop);
    pthread_mutex_unlock(&errand->mutex);
}

void sl_errand_wake(sl_errand *errand)
{
    wake(errand, false);
}

static void *go(void *ctx)
{
    sl_errand *const errand = ctx;

    errand->run(errand->ctx);
    wake(errand, true);
    return NULL;
}

sl_err sl_errand_begin(sl_errand *errand, sl_loop *loop, void (*run)(void *ctx), void *ctx)
{
    assert(!errand->is_on);
    *errand = (sl_errand){ .run = run, .ctx = ctx, .loop = loop };
    if (pthread_mutex_init(&errand->mutex, NULL) != 0)
        return SL_ERR_IO;
    errand->is_on = pthread_create(&errand->thread, NULL, go, errand) == 0;
    if (!errand->is_on)
        pthread_mutex_destroy(&errand->mutex);
    return errand->is_on ? SL_OK : SL_ERR_IO;
}

bool sl_errand_take(sl_errand *errand)
{
    bool is_done;

    if (!errand->is_on)
        return false;
    pthread_mutex_lock(&errand->mutex);
    is_done = errand->is_done;
    pthread_mutex_unlock(&errand->mutex);
    if (!is_done)
        return false;
    (void)pthread_join(errand->thread, NULL);
    pthread_mutex_destroy(&errand->mutex);
    errand->is_on = false;
    return true;
}

void sl_errand_leave(sl_errand *errand)
{
    if (!errand->is_on)
        return;
    pthread_mutex_lock(&errand->mutex);
    errand->loop = NULL;
    pthread_mutex_unlock(&errand->mutex);
    (void)pthread_detach(errand->thread);
    errand->is_on = false;
}

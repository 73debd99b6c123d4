/* net/loop_events.c — what a loop waits for besides sockets: times, signals, and descriptors of other folders. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <signal.h>

bool sl_timer_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return SL_CONTAINER_OF(a, const sl_timer, node)->at_ns < SL_CONTAINER_OF(b, const sl_timer, node)->at_ns;
}

void sl_timer_init(sl_timer *timer, sl_loop *loop, sl_timer_fn *fn, void *ctx)
{
    *timer = (sl_timer){ .loop = loop, .fn = fn, .ctx = ctx };
}

void sl_timer_stop(sl_timer *timer)
{
    if (timer->is_set)
        sl_pairing_remove(&timer->loop->timers, &timer->node);
    timer->is_set = false;
}

void sl_timer_set(sl_timer *timer, uint64_t at_ns)
{
    sl_loop *loop = timer->loop;

    sl_timer_stop(timer);
    if (at_ns == UINT64_MAX)
        return;
    /* Otherwise a timer that sets itself to "now" would keep the turn from ending. */
    timer->at_ns = loop->timers_firing ? sl_max_u64(at_ns, loop->now_ns + 1) : at_ns;
    timer->is_set = true;
    sl_pairing_insert(&loop->timers, &timer->node);
}

void sl_loop_fire_timers(sl_loop *loop)
{
    sl_pairing_node *first = sl_pairing_min(&loop->timers);
    uint64_t now_ns;

    if (first == NULL)
        return; /* and then nobody needs the clock to be read */
    now_ns = sl_loop_now_ns(loop);
    loop->timers_firing = true;
    while (first != NULL && SL_CONTAINER_OF(first, sl_timer, node)->at_ns <= now_ns) {
        sl_timer *timer = SL_CONTAINER_OF(first, sl_timer, node);
        sl_timer_stop(timer);
        timer->fn(timer->ctx);
        first = sl_pairing_min(&loop->timers);
    }
    loop->timers_firing = false;
}

static void signal_came(uv_signal_t *handle, int signal_number)
{
    sl_loop *loop = handle->data;

    loop->signal_count++;
    if (loop->handler.on_signal != NULL)
        loop->handler.on_signal(loop->ctx, signal_number, loop->signal_count);
}

/* Whoever started us may have blocked signals, and a mask is inherited: what is caught but blocked would never come, and the process
 * could only be killed. That it may be ignored as well does not matter: catching replaces that. */
static void let_through(const int *numbers, size_t count)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, numbers[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

sl_err sl_loop_catch_signals(sl_loop *loop)
{
    static const int numbers[SL_SIGNALS_CAUGHT] = { SIGTERM, SIGINT, SIGHUP };

    assert(!loop->signals_caught);
    loop->signals_caught = true;
    for (int i = 0; i < SL_SIGNALS_CAUGHT; i++) {
        loop->signals[i].data = loop;
        int result = uv_signal_init(&loop->uv, &loop->signals[i]);
        if (result == 0)
            result = uv_signal_start(&loop->signals[i], signal_came, numbers[i]);
        if (result != 0)
            return result == UV_EMFILE || result == UV_ENFILE ? SL_ERR_OPEN_FILES : SL_ERR_IO;
    }
    let_through(numbers, SL_SIGNALS_CAUGHT); /* not before: one may be pending */
    return SL_OK;
}

struct sl_watch {
    sl_loop *loop;
    uv_poll_t poll;
    unsigned events;                /* that libuv waits for now */
    void (*on_readable)(void *ctx); /* one of the two */
    void (*on_events)(void *ctx, unsigned events);
    void *ctx;
};

/* An error on the descriptor counts as readable too: its owner finds out by reading. libuv has stopped waiting
 * for it then, so it is told once and not in every turn. */
static void watch_ready(uv_poll_t *poll, int status, int events)
{
    sl_watch *watch = poll->data;
    unsigned ready = (events & UV_READABLE) != 0 ? SL_WATCH_READ : 0;

    if (watch->on_readable != NULL) {
        watch->on_readable(watch->ctx);
        return;
    }
    if ((events & UV_WRITABLE) != 0)
        ready |= SL_WATCH_WRITE;
    if (status < 0) {
        ready = watch->events;
        watch->events = 0;
    }
    watch->on_events(watch->ctx, ready);
}

/* libuv takes the descriptor out of its set and puts it in again, which are two calls to the system: not without need. */
void sl_watch_change(sl_watch *watch, unsigned events)
{
    int wanted = 0;

    if (watch->events == events)
        return;
    watch->events = events;
    wanted |= (events & SL_WATCH_READ) != 0 ? UV_READABLE : 0;
    wanted |= (events & SL_WATCH_WRITE) != 0 ? UV_WRITABLE : 0;
    uv_poll_start(&watch->poll, wanted, watch_ready); /* for 0 it stops */
}

static sl_err watch_new(sl_loop *loop, int fd, unsigned events, const sl_watch *draft, sl_watch **ret_watch)
{
    sl_watch *watch = sl_alloc_take(loop->alloc, sizeof *watch);
    int result;

    if (watch == NULL)
        return SL_ERR_NOMEM;
    *watch = *draft;
    watch->loop = loop;
    watch->poll.data = watch;
    result = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (result != 0) {
        sl_alloc_give(loop->alloc, watch, sizeof *watch);
        return result == UV_EEXIST ? SL_ERR_EXISTS : SL_ERR_INVALID;
    }
    sl_watch_change(watch, events);
    loop->things++;
    *ret_watch = watch;
    return SL_OK;
}

sl_err sl_watch_new(sl_loop *loop, int fd, void (*on_readable)(void *ctx), void *ctx, sl_watch **ret_watch)
{
    const sl_watch draft = { .on_readable = on_readable, .ctx = ctx };

    return watch_new(loop, fd, SL_WATCH_READ, &draft, ret_watch);
}

sl_err sl_watch_new_for(sl_loop *loop, int fd, unsigned events, void (*on_events)(void *ctx, unsigned events),
                        void *ctx, sl_watch **ret_watch)
{
    const sl_watch draft = { .on_events = on_events, .ctx = ctx };

    return watch_new(loop, fd, events, &draft, ret_watch);
}

static void watch_closed(uv_handle_t *handle)
{
    sl_watch *watch = handle->data;

    watch->loop->things--;
    sl_alloc_give(watch->loop->alloc, watch, sizeof *watch);
}

void sl_watch_free(sl_watch *watch)
{
    if (watch != NULL)
        uv_close((uv_handle_t *)&watch->poll, watch_closed);
}

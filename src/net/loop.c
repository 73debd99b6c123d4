/* net/loop.c — the loop on libuv: its life, its clocks and the order of a turn.
 *
 * libuv runs its own timers before it waits and everything else after. A turn that begins with timers and then
 * waits would leave what they started uncommitted and unsent for as long as nothing happens. So our timers are a
 * heap of our own; libuv's only timer (alarm) ends the wait, and all of a turn happens in after_wait, which libuv
 * calls when the descriptors of an iteration are done. */
#include "base/cleanup.h"
#include "net/inside.h"

#include <assert.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)

static uint64_t read_clock(clockid_t which)
{
    struct timespec now;

    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t sl_loop_now_ns(sl_loop *loop)
{
    if (!loop->running || !loop->now_is_fresh) {
        loop->now_ns = read_clock(CLOCK_MONOTONIC);
        loop->now_is_fresh = true;
    }
    return loop->now_ns;
}

uint64_t sl_loop_wall_ns(sl_loop *loop)
{
    if (!loop->running || !loop->wall_is_fresh) {
        loop->wall_ns = read_clock(CLOCK_REALTIME);
        loop->wall_is_fresh = true;
    }
    return loop->wall_ns;
}

static uint64_t clock_mono(void *ctx)
{
    return sl_loop_now_ns(ctx);
}

static uint64_t clock_wall(void *ctx)
{
    return sl_loop_wall_ns(ctx);
}

const sl_clock *sl_loop_clock(const sl_loop *loop)
{
    return &loop->clock;
}

static uint64_t stopwatch_mono(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t stopwatch_wall(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

const sl_clock *sl_loop_stopwatch(void)
{
    static const sl_clock stopwatch = { .mono_ns = stopwatch_mono, .wall_ns = stopwatch_wall };

    return &stopwatch;
}

static void do_nothing(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle is what keeps libuv from waiting */
}

/* A callback ran or may run after the end of the turn: the next turn must come without waiting. */
void sl_loop_hurry(sl_loop *loop)
{
    uv_idle_start(&loop->hurry, do_nothing);
}

static void before_wait(uv_prepare_t *prepare)
{
    sl_loop *loop = prepare->data;

    sl_loop_set_alarm(loop);
    loop->now_is_fresh = loop->wall_is_fresh = false;
}

static void alarm_rings(uv_timer_t *alarm)
{
    sl_loop *loop = alarm->data;

    loop->alarm_ns = UINT64_MAX; /* the wait is over; the timers themselves fire in after_wait */
    sl_loop_hurry(loop);         /* libuv rings before it waits */
}

/* Lets the wait end when the first timer is due. libuv counts in whole milliseconds: ringing early costs a turn,
 * so it is rounded up. */
void sl_loop_set_alarm(sl_loop *loop)
{
    const sl_pairing_node *first = sl_pairing_min(&loop->timers);
    const uint64_t at_ns = first == NULL ? UINT64_MAX : SL_CONTAINER_OF(first, sl_timer, node)->at_ns;
    uint64_t now_ns;

    if (at_ns == loop->alarm_ns)
        return;
    loop->alarm_ns = at_ns;
    if (at_ns == UINT64_MAX) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    now_ns = read_clock(CLOCK_MONOTONIC);
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->alarm, alarm_rings, at_ns <= now_ns ? 0 : (at_ns - now_ns + MS_NS - 1) / MS_NS, 0);
}

/* Those that wake up again during the walk have their turn in the next one. */
static void each_once(sl_loop *loop, sl_list *ring, void (*act)(sl_socket *), size_t node_offset)
{
    sl_list round;

    sl_list_init(&round);
    sl_list_splice(&round, ring);
    for (sl_list *node = sl_list_first(&round); node != NULL; node = sl_list_first(&round)) {
        sl_list_remove(node);
        act((sl_socket *)((uintptr_t)node - node_offset));
    }
    if (!sl_list_empty(&loop->receivers) || !sl_list_empty(&loop->senders))
        sl_loop_hurry(loop);
}

static void after_wait(uv_check_t *check)
{
    sl_loop *loop = check->data;

    uv_idle_stop(&loop->hurry);
    each_once(loop, &loop->receivers, sl_receive_held, offsetof(sl_socket, receiver_node));
    sl_loop_fire_timers(loop);
    if (loop->handler.on_turn_end != NULL)
        loop->handler.on_turn_end(loop->ctx);
    each_once(loop, &loop->senders, sl_send_pump, offsetof(sl_socket, sender_node));
    each_once(loop, &loop->unanswered, sl_receive_acknowledge, offsetof(sl_socket, unanswered_node));
    sl_loop_set_alarm(loop); /* before libuv looks at its timers, or it would ring for what has fired */
    if (loop->stopping)
        uv_stop(&loop->uv);
}

static void woken(uv_async_t *async)
{
    sl_loop *loop = async->data;

    if (loop->handler.on_wake != NULL)
        loop->handler.on_wake(loop->ctx);
}

void sl_loop_wake(sl_loop *loop)
{
    uv_async_send(&loop->wake);
}

static sl_err from_uv(int result)
{
    if (result == 0)
        return SL_OK;
    if (result == UV_ENOMEM)
        return SL_ERR_NOMEM;
    return result == UV_EMFILE || result == UV_ENFILE ? SL_ERR_OPEN_FILES : SL_ERR_IO;
}

/* Only the async handle can fail: it opens a descriptor. */
static int start_handles(sl_loop *loop)
{
    loop->wake.data = loop->before_wait.data = loop->after_wait.data = loop->alarm.data = loop;
    uv_prepare_init(&loop->uv, &loop->before_wait);
    uv_check_init(&loop->uv, &loop->after_wait);
    uv_idle_init(&loop->uv, &loop->hurry);
    uv_timer_init(&loop->uv, &loop->alarm);
    uv_prepare_start(&loop->before_wait, before_wait);
    uv_check_start(&loop->after_wait, after_wait);
    return uv_async_init(&loop->uv, &loop->wake, woken);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* The memory of sockets and listeners goes in the close callbacks that these last iterations bring. */
static void close_all(sl_loop *loop)
{
    loop->handler = (sl_loop_handler){ 0 };
    SL_LIST_EACH_SAFE (node, &loop->sockets)
        sl_socket_abandon(SL_CONTAINER_OF(node, sl_socket, node));
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    assert(loop->things == 0); /* a listener or a watch was not freed */
    assert(sl_pairing_min(&loop->timers) == NULL);
    uv_walk(&loop->uv, close_handle, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void sl_loop_free(sl_loop *loop)
{
    if (loop == NULL)
        return;
    assert(!loop->running);
    close_all(loop);
    const int left = uv_loop_close(&loop->uv);
    assert(left == 0);
    (void)left;
    sl_alloc_give(loop->alloc, loop, sizeof *loop);
}

static void set_up(sl_loop *loop)
{
    loop->alarm_ns = UINT64_MAX;
    loop->clock = (sl_clock){ .mono_ns = clock_mono, .wall_ns = clock_wall, .ctx = loop };
    sl_pairing_init(&loop->timers, sl_timer_before);
    sl_list_init(&loop->receivers);
    sl_list_init(&loop->senders);
    sl_list_init(&loop->unanswered);
    sl_list_init(&loop->sockets);
}

sl_err sl_loop_new(const sl_alloc *alloc, const sl_loop_handler *handler, void *ctx, sl_loop **ret_loop)
{
    const sl_alloc *from = alloc == NULL ? &sl_alloc_default : alloc;
    sl_loop *loop = sl_alloc_take(from, sizeof *loop);
    int result;

    if (loop == NULL)
        return SL_ERR_NOMEM;
    memset(loop, 0, offsetof(sl_loop, in)); /* the buffers behind it are written before they are read */
    loop->alloc = from;
    loop->handler = handler == NULL ? (sl_loop_handler){ 0 } : *handler;
    loop->ctx = ctx;
    set_up(loop);
    result = uv_loop_init(&loop->uv);
    if (result != 0) {
        sl_alloc_give(from, loop, sizeof *loop);
        return from_uv(result);
    }
    result = start_handles(loop);
    if (result != 0) {
        sl_loop_free(loop);
        return from_uv(result);
    }
    *ret_loop = loop;
    return SL_OK;
}

static void run(sl_loop *loop, uv_run_mode mode)
{
    assert(!loop->running);
    loop->running = true;
    loop->stopping = false;
    loop->now_is_fresh = loop->wall_is_fresh = false;
    uv_run(&loop->uv, mode);
    loop->running = false;
}

void sl_loop_run(sl_loop *loop)
{
    run(loop, UV_RUN_DEFAULT);
}

void sl_loop_turn(sl_loop *loop, bool wait)
{
    run(loop, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

int sl_loop_fd(const sl_loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

int sl_loop_wait_ms(sl_loop *loop)
{
    if (uv_is_active((const uv_handle_t *)&loop->hurry))
        return 0;
    sl_loop_set_alarm(loop);
    uv_update_time(&loop->uv);
    return uv_backend_timeout(&loop->uv);
}

void sl_loop_stop(sl_loop *loop)
{
    loop->stopping = true;
    sl_loop_hurry(loop);
}

/* worker/status_wait.c — who waits for a drain, and where the pages are shown.
 *
 * Nobody tells the pages that something was settled: while somebody waits they look again and again. Each wait has a place among
 * a fixed number of them, so beginning one cannot fail for lack of memory. */
#include "worker/status.h"

#include "base/cleanup.h"

enum {
    CONNECTIONS_MAX = 64,
    CONNECTIONS_PER_IP_MAX = 48, /* behind a proxy, or on loopback, all come from one address */
    CONNECTION_BYTES = 16 * 1024,
    BACKLOG = 64
};

#define WAIT_STEP_NS UINT64_C(100000000) /* how soon who waits for a drain hears that it is over */

typedef struct waiter {
    sl_pages_answer *answer; /* NULL: this place is free */
    uint64_t until_ns;
} waiter;

struct sl_status_pages {
    sl_loop *loop;
    const sl_status_owner *owner;
    void *ctx;
    sl_pages *host;
    sl_timer timer; /* of those who wait */
    waiter waiters[SL_STATUS_WAITERS_MAX];
};

uint16_t sl_status_pages_port(const sl_status_pages *pages)
{
    return sl_pages_port(pages->host);
}

/* --- waiting --- */

static waiter *free_place(sl_status_pages *pages)
{
    for (size_t i = 0; i < SL_COUNT_OF(pages->waiters); i++)
        if (pages->waiters[i].answer == NULL)
            return &pages->waiters[i];
    return NULL;
}

static void begin_waiting(sl_status_pages *pages, sl_pages_answer *answer, uint64_t wait_ns)
{
    const uint64_t now_ns = sl_loop_now_ns(pages->loop);
    waiter *const w = free_place(pages);
    uint64_t look_ns = now_ns + WAIT_STEP_NS;

    if (w == NULL) {
        sl_pages_refuse(answer, 503, "Too many wait here already: ask without wait, or again later.");
        return;
    }
    *w = (waiter){ .answer = answer, .until_ns = sl_add_sat_u64(now_ns, wait_ns) };
    answer->job = w;
    if (pages->timer.is_set)
        look_ns = sl_min_u64(look_ns, pages->timer.at_ns);
    sl_timer_set(&pages->timer, sl_min_u64(look_ns, w->until_ns));
}

/* False: he goes on waiting. */
static bool try_answer(waiter *w, const sl_crew_view *view, sl_status_patience patience)
{
    sl_pages_answer *const answer = w->answer;

    if (!sl_status_show_drain(view, patience, answer))
        return false;
    w->answer = NULL;
    answer->job = NULL;
    answer->ready(answer->ready_ctx);
    return true;
}

/* is_end: the pages go, and so does the wait. */
static void look_again(sl_status_pages *pages, bool is_end)
{
    const uint64_t now_ns = sl_loop_now_ns(pages->loop);
    const sl_crew_view *view = NULL;
    uint64_t next_ns = UINT64_MAX;

    for (size_t i = 0; i < SL_COUNT_OF(pages->waiters); i++) {
        waiter *const w = &pages->waiters[i];
        const bool is_over = is_end || now_ns >= w->until_ns;
        if (w->answer == NULL)
            continue;
        if (view == NULL)
            view = pages->owner->look(pages->ctx);
        if (!try_answer(w, view, is_over ? SL_STATUS_IN_VAIN : SL_STATUS_WAITS))
            next_ns = sl_min_u64(next_ns, sl_min_u64(w->until_ns, now_ns + WAIT_STEP_NS));
    }
    sl_timer_set(&pages->timer, next_ns);
}

static void on_timer(void *ctx)
{
    look_again(ctx, false);
}

/* --- where they are shown --- */

static void on_ask(void *ctx, const sl_pages_question *question, sl_pages_answer *answer)
{
    sl_status_pages *const pages = ctx;
    uint64_t wait_ns;

    sl_status_ask(pages->owner, pages->ctx, question, answer, &wait_ns);
    if (wait_ns > 0)
        begin_waiting(pages, answer, wait_ns);
}

static void on_give_up(void *ctx, sl_pages_answer *answer)
{
    (void)ctx;
    ((waiter *)answer->job)->answer = NULL;
}

sl_err sl_status_pages_new(sl_loop *loop, const sl_status_owner *owner, void *ctx, uint16_t port,
                           sl_text *problem, sl_status_pages **ret_pages)
{
    static const sl_pages_owner pages_owner = { .ask = on_ask, .give_up = on_give_up };
    const sl_pages_options options = { .host = owner->host,
                                       .port = port,
                                       .alloc = &sl_alloc_default,
                                       .connections_max = CONNECTIONS_MAX,
                                       .connections_per_ip_max = CONNECTIONS_PER_IP_MAX,
                                       .connection_bytes = CONNECTION_BYTES,
                                       .body_bytes_max = SL_STATUS_BODY_BYTES_MAX,
                                       .backlog = BACKLOG };
    sl_status_pages *const pages = sl_alloc_take(&sl_alloc_default, sizeof *pages);
    sl_err err;

    if (pages == NULL)
        return SL_ERR_NOMEM;
    *pages = (sl_status_pages){ .loop = loop, .owner = owner, .ctx = ctx };
    sl_timer_init(&pages->timer, loop, on_timer, pages);
    err = sl_pages_new(loop, &options, &pages_owner, pages, problem, &pages->host);
    if (err == SL_OK)
        *ret_pages = pages;
    else
        sl_status_pages_free(pages);
    return err;
}

void sl_status_pages_free(sl_status_pages *pages)
{
    if (pages == NULL)
        return;
    look_again(pages, true);
    sl_pages_free(pages->host);
    sl_timer_stop(&pages->timer);
    sl_alloc_give(&sl_alloc_default, pages, sizeof *pages);
}

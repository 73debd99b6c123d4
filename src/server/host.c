/* server/host.c — puts the parts together and gives each its moment in a turn.
 *
 * The order in sl_host_turn() is chosen so that what a turn brought is written once and, when the store syncs in this thread,
 * answered before the turn ends:
 *
 *      answers of the helper thread --> readers --> groups hand in --> write and sync --> answers of the store
 *                                  --> readers that these have woken --> groups hand in --> write --> answers of the store
 *
 * The second write is for leases: an event that became durable in this turn leaves in this turn, and not behind the sync of the next.
 * Whatever else the steps after the sync submit waits for the next turn, which the driver is asked for. */
#include "server/host.h"

#include "server/access.h"
#include "server/auth.h"
#include "server/dispatch.h"
#include "server/door.h"
#include "server/groups/operators.h"
#include "server/groups/registry.h"
#include "server/operations.h"
#include "server/tail.h"

#include <assert.h>

static bool alarm_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return SL_CONTAINER_OF(a, const sl_alarm, node)->at_ns < SL_CONTAINER_OF(b, const sl_alarm, node)->at_ns;
}

static void on_commit(void *ctx, uint64_t end)
{
    sl_host *const host = ctx;

    (void)end;
    sl_tail_committed(host->tail);
}

static void fill(sl_host *host, const sl_host_setup *setup)
{
    *host = (sl_host){ .alloc = setup->alloc,
                       .clock = setup->clock,
                       .stopwatch = setup->stopwatch == NULL ? setup->clock : setup->stopwatch,
                       .log = setup->log,
                       .settings = setup->settings,
                       .store = setup->store,
                       .patience_ns = setup->patience_ns,
                       .instance = setup->instance,
                       .seed = setup->seed,
                       .input.bytes_max = SL_HOST_INPUT_BYTES_MAX,
                       .started_ns = sl_clock_mono_ns(setup->clock),
                       .spare_requests_max = SL_REQUEST_SPARES_MAX,
                       .find_method = sl_method_find,
                       .wake = setup->wake,
                       .wake_ctx = setup->wake_ctx };
    sl_list_init(&host->links);
    sl_list_init(&host->requests);
    sl_list_init(&host->spare_requests);
    sl_list_init(&host->turn_ends);
    sl_pairing_init(&host->alarms, alarm_before);
    sl_store_on_commit(host->store, on_commit, host);
}

sl_err sl_host_new(const sl_host_setup *setup, sl_host **ret_host)
{
    sl_host *const host = sl_alloc_take(setup->alloc, sizeof *host);
    sl_err err;

    if (host == NULL)
        return SL_ERR_NOMEM;
    fill(host, setup);
    err = sl_tail_new(host, &host->tail);
    if (err == SL_OK)
        err = sl_door_new(host, &host->door);
    if (err == SL_OK)
        err = sl_access_new(host, &host->access);
    if (err == SL_OK)
        err = sl_auth_new(host, &host->auth);
    if (err == SL_OK)
        err = sl_operators_new(host, &host->operators);
    if (err == SL_OK)
        err = sl_registry_new(host, setup->problem, &host->registry);
    if (err != SL_OK) {
        sl_host_free(host);
        return err;
    }
    *ret_host = host;
    return SL_OK;
}

void sl_host_free(sl_host *host)
{
    if (host == NULL)
        return;
    assert(sl_list_empty(&host->links) && sl_list_empty(&host->requests));
    sl_operations_forget(host);
    sl_operators_end_waits(host->operators);
    sl_registry_free(host->registry);
    sl_door_abandon(host->door); /* answers go to services, which still need the rest */
    if (host->auth != NULL)
        sl_auth_free(host->auth);
    if (host->access != NULL)
        sl_access_free(host->access);
    sl_door_free(host->door);
    sl_tail_free(host->tail);
    sl_operators_free(host->operators);
    sl_request_free_spares(host);
    assert(sl_pairing_min(&host->alarms) == NULL);
    sl_store_on_commit(host->store, NULL, NULL);
    sl_alloc_give(host->alloc, host, sizeof *host);
}

void sl_host_poll(sl_host *host)
{
    sl_store_poll(host->store);
    sl_tail_polled(host->tail);
}

void sl_turn_end_init(sl_turn_end *end, void (*fn)(void *ctx), void *ctx)
{
    *end = (sl_turn_end){ .fn = fn, .ctx = ctx };
    sl_list_init(&end->node);
}

void sl_host_at_turn_end(sl_host *host, sl_turn_end *end)
{
    if (sl_list_empty(&end->node))
        sl_list_push_back(&host->turn_ends, &end->node);
}

/* Each of those that are there now; who asks again meanwhile waits for the next time. */
static void end_turn(sl_host *host)
{
    sl_list now;

    sl_list_init(&now);
    sl_list_splice(&now, &host->turn_ends);
    while (!sl_list_empty(&now)) {
        sl_turn_end *const end = SL_CONTAINER_OF(sl_list_first(&now), sl_turn_end, node);

        sl_list_remove(&end->node);
        end->fn(end->ctx);
    }
}

bool sl_host_turn(sl_host *host)
{
    uint64_t written;
    bool runnable;

    sl_auth_turn(host->auth);
    runnable = sl_tail_run(host->tail);
    end_turn(host);
    sl_store_turn(host->store);
    written = host->counters.batches_accepted;
    if (sl_door_inside(host->door) > 0) {
        sl_host_poll(host);
        runnable = sl_tail_run_woken(host->tail);
    }
    end_turn(host);
    if (host->counters.batches_accepted != written) {
        sl_store_write(host->store);
        sl_host_poll(host);
        end_turn(host);
    }
    return runnable || host->counters.batches_accepted != written || !sl_list_empty(&host->turn_ends);
}

bool sl_host_ready(const sl_host *host)
{
    return sl_auth_ready(host->auth) && sl_store_problem(host->store)[0] == '\0';
}

/* One at a time, from a ring of its own: each may end others. */
void sl_host_each_request(sl_host *host, void (*fn)(void *ctx, sl_request *request), void *ctx)
{
    sl_list open;

    sl_list_init(&open);
    sl_list_splice(&open, &host->requests);
    while (!sl_list_empty(&open)) {
        sl_list *const node = sl_list_first(&open);

        sl_list_remove(node);
        sl_list_push_back(&host->requests, node);
        fn(ctx, SL_CONTAINER_OF(node, sl_request, node));
    }
}

static void stop_request(void *ctx, sl_request *request)
{
    (void)ctx;
    sl_dispatch_stop(request);
}

void sl_host_stop(sl_host *host, const char *reason)
{
    sl_text text;

    if (host->stopping)
        return;
    host->stopping = true;
    sl_text_init(&text, host->stop_reason, sizeof host->stop_reason);
    sl_text_add(&text, reason);
    sl_operations_stop(host);
    sl_host_each_request(host, stop_request, NULL);
}

/* worker/destination.c — see destination.h.
 *
 * Each destination stands in one place, which says what its first waiting job waits for:
 *
 *      RESTING   nothing waits. In the ring `resting` if nothing runs either: these can be forgotten, the longest unused first
 *      READY     in the ring `ready`: its first job may go as far as anybody knows. Looked at in turn, one job each, which is
 *                what makes it fair
 *      TIMED     in a heap by the time at which it may go
 *      BLOCKED   until a result comes in
 *
 * Taking a job asks, in this order: how many run, the rate, the breaker. The breaker comes last because its answer is counted.
 *
 * The destination `shared` is the only one of workers without a key. With a key it stands in for the keys beyond
 * SL_DESTINATIONS_MAX. A key that has jobs there must not get a destination of its own meanwhile, or its jobs would overtake each
 * other: `shared_keys` counts them by a part of their hash. */
#include "worker/destination.h"

#include "base/cleanup.h"
#include "worker/destination_inside.h"
#include "worker/destination_key.h"

#include <assert.h>
#include <sys/random.h>

enum {
    TABLE_MIN = 16,   /* places of the hash table in the beginning */
    MANY = 1000,      /* so many destinations are many: those with nothing to remember are forgotten then */
    FORGET_STEPS = 2, /* resting ones looked at for each new one: more than come in, so their number falls */
    FORGET_STEPS_FULL = 32 /* the same, when there is no room left */
};

/* A Retry-After above this is not believed, where no breaker has a limit of its own. */
#define PAUSE_MAX_NS UINT64_C(600000000000)

/* --- places --- */

static bool wakes_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return SL_CONTAINER_OF(a, sl_destination, timed)->wake_ns <
           SL_CONTAINER_OF(b, sl_destination, timed)->wake_ns;
}

static void leave_place(sl_destinations *all, sl_destination *at)
{
    if (at->place == PLACE_TIMED)
        sl_pairing_remove(&all->timed, &at->timed);
    else
        sl_list_remove(&at->ring);
    at->waits_for_result = false;
}

static void rest(sl_destinations *all, sl_destination *at)
{
    leave_place(all, at);
    at->place = PLACE_RESTING;
    if (at->running_count == 0 && at != &all->shared)
        sl_list_push_back(&all->resting, &at->ring);
}

/* At the end of the ring: everybody else has a turn before. */
static void make_ready(sl_destinations *all, sl_destination *at)
{
    leave_place(all, at);
    at->place = PLACE_READY;
    sl_list_push_back(&all->ready, &at->ring);
}

static void wait_for_time(sl_destinations *all, sl_destination *at, uint64_t wake_ns)
{
    leave_place(all, at);
    at->place = PLACE_TIMED;
    at->wake_ns = wake_ns;
    sl_pairing_insert(&all->timed, &at->timed);
}

static void wait_for_result(sl_destinations *all, sl_destination *at)
{
    leave_place(all, at);
    at->place = PLACE_BLOCKED;
    at->waits_for_result = true;
}

static void make_all_ready(sl_destinations *all)
{
    SL_LIST_EACH (node, &all->every) {
        sl_destination *const at = SL_CONTAINER_OF(node, sl_destination, every);

        if (at->waiting_count > 0 && at->place != PLACE_READY)
            make_ready(all, at);
    }
}

/* --- making and forgetting --- */

static void enter(sl_destinations *all, sl_destination *at)
{
    sl_list_init(&at->waiting);
    sl_list_init(&at->ring);
    sl_list_push_back(&all->every, &at->every);
    if (!all->rules.has_breaker)
        return;
    sl_breaker_init(&at->breaker, &all->rules.breaker);
    if (all->drain_until_ns != 0)
        sl_breaker_drain(&at->breaker, all->drain_until_ns);
}

static void give_destination(sl_destination *at)
{
    sl_alloc_give(&sl_alloc_default, at, sizeof *at + at->key_bytes);
}

/* Its breaker may be open, or its rate not allow the next one: that must not be forgotten. A few failures of a breaker that is
 * still closed are worth their place only as long as there is room. */
static bool may_forget(const sl_destinations *all, const sl_destination *at, bool is_full)
{
    if (sl_max_u64(at->next_ns, at->pause_ns) > all->now_ns)
        return false;
    return !all->rules.has_breaker || at->breaker.failures == 0 ||
           (is_full && sl_breaker_state_at(&at->breaker, all->now_ns) == SL_BREAKER_CLOSED);
}

static bool is_full(const sl_destinations *all)
{
    return all->by_key.count >= SL_DESTINATIONS_MAX - 1; /* the last one is the shared one */
}

static void forget_some(sl_destinations *all)
{
    const bool full = is_full(all);

    if (all->by_key.count < MANY)
        return;
    for (int i = 0; i < (full ? FORGET_STEPS_FULL : FORGET_STEPS); i++) {
        sl_list *const oldest = sl_list_first(&all->resting);
        sl_destination *at;

        if (oldest == NULL)
            return;
        at = SL_CONTAINER_OF(oldest, sl_destination, ring);
        sl_list_remove(&at->ring);
        if (!may_forget(all, at, full)) {
            sl_list_push_back(&all->resting, &at->ring);
            continue;
        }
        sl_map_remove(&all->by_key, &at->by_key);
        sl_list_remove(&at->every);
        give_destination(at);
    }
}

/* A table that cannot grow is slower, not wrong: the failure is of no interest. */
static void grow_table(sl_destinations *all)
{
    const size_t length = all->by_key.table_mask + 1;
    sl_map_node **const old = all->by_key.table;
    sl_map_node **larger;

    if (all->by_key.count < length)
        return;
    larger = sl_alloc_take(&sl_alloc_default, 2 * length * sizeof *larger);
    if (larger == NULL)
        return;
    sl_map_resize(&all->by_key, larger, 2 * length);
    sl_alloc_give(&sl_alloc_default, old, length * sizeof *old);
}

static sl_destination *make_destination(sl_destinations *all, sl_str key, uint64_t hash)
{
    sl_destination *const at = sl_alloc_take(&sl_alloc_default, sizeof *at + key.bytes);

    if (at == NULL)
        return NULL;
    *at = (sl_destination){ .key = (char *)(at + 1), .key_bytes = key.bytes };
    if (key.bytes > 0)
        memcpy(at->key, key.data, key.bytes);
    enter(all, at);
    grow_table(all);
    sl_map_insert(&all->by_key, &at->by_key, hash);
    return at;
}

static sl_destination *find(const sl_destinations *all, sl_str key, uint64_t hash)
{
    for (sl_map_node *node = sl_map_find(&all->by_key, hash); node != NULL; node = sl_map_next(node)) {
        sl_destination *const at = SL_CONTAINER_OF(node, sl_destination, by_key);

        if (sl_str_equal((sl_str){ at->key, at->key_bytes }, key))
            return at;
    }
    return NULL;
}

static sl_destination *choose(sl_destinations *all, const sl_job *job)
{
    sl_key_room room;
    const sl_str key = sl_destination_key_of(&all->rules, &job->message, &room);
    const uint64_t hash = sl_hash(all->seed, key.data, key.bytes);
    uint32_t *const shared = &all->shared_keys[hash % SHARED_KEYS];
    sl_destination *const known = find(all, key, hash);

    if (known != NULL)
        return known;
    forget_some(all);
    if (*shared == 0 && !is_full(all))
        return make_destination(all, key, hash);
    ++*shared;
    return &all->shared;
}

/* The job has nothing to do with its destination any more. */
static void part(sl_destinations *all, sl_job *job)
{
    if (job->destination == &all->shared && all->rules.key != SL_KEY_NONE) {
        sl_key_room room;
        const sl_str key = sl_destination_key_of(&all->rules, &job->message, &room);

        all->shared_keys[sl_hash(all->seed, key.data, key.bytes) % SHARED_KEYS]--;
    }
    if (job->destination->newest == job)
        job->destination->newest = NULL;
    job->destination = NULL;
    job->ticket = 0;
}

static bool are_valid(const sl_destination_rules *rules)
{
    return (unsigned)rules->key < SL_KEY_KIND_COUNT_ &&
           (!rules->has_breaker || sl_breaker_rules_validate(&rules->breaker) == SL_OK);
}

sl_err sl_destinations_new(const sl_destination_rules *rules, sl_destinations **ret_all)
{
    sl_map_node **const table = sl_alloc_take(&sl_alloc_default, TABLE_MIN * sizeof *table);
    sl_destinations *const all = sl_alloc_take(&sl_alloc_default, sizeof *all);
    sl_err err = !are_valid(rules) ? SL_ERR_INVALID : table == NULL || all == NULL ? SL_ERR_NOMEM : SL_OK;

    if (err == SL_OK) {
        *all = (sl_destinations){ .rules = *rules };
        if (getrandom(&all->seed, sizeof all->seed, 0) != (ssize_t)sizeof all->seed)
            err = SL_ERR_IO;
    }
    if (err != SL_OK) {
        sl_alloc_give(&sl_alloc_default, table, table == NULL ? 0 : TABLE_MIN * sizeof *table);
        sl_alloc_give(&sl_alloc_default, all, all == NULL ? 0 : sizeof *all);
        return err;
    }
    sl_list_init(&all->ready);
    sl_list_init(&all->resting);
    sl_list_init(&all->every);
    sl_pairing_init(&all->timed, wakes_before);
    sl_map_init(&all->by_key, table, TABLE_MIN);
    enter(all, &all->shared);
    *ret_all = all;
    return SL_OK;
}

void sl_destinations_free(sl_destinations *all)
{
    if (all == NULL)
        return;
    SL_LIST_EACH_SAFE (node, &all->every) {
        sl_destination *const at = SL_CONTAINER_OF(node, sl_destination, every);

        if (at != &all->shared)
            give_destination(at);
    }
    sl_alloc_give(&sl_alloc_default, all->by_key.table, (all->by_key.table_mask + 1) * sizeof(sl_map_node *));
    sl_alloc_give(&sl_alloc_default, all, sizeof *all);
}

/* --- in and out --- */

sl_err sl_destinations_add(sl_destinations *all, sl_job *job)
{
    sl_destination *const at = all->rules.key == SL_KEY_NONE ? &all->shared : choose(all, job);

    if (at == NULL)
        return SL_ERR_NOMEM;
    job->destination = at;
    job->ticket = 0;
    sl_list_push_back(&at->waiting, &job->waiting);
    at->waiting_count++;
    if (at->place == PLACE_RESTING)
        make_ready(all, at);
    return SL_OK;
}

static void leave_waiting(sl_destination *at, sl_job *job)
{
    assert(at->waiting_count > 0);
    sl_list_remove(&job->waiting);
    at->waiting_count--;
}

void sl_destinations_remove(sl_destinations *all, sl_job *job)
{
    sl_destination *const at = job->destination;

    if (at == NULL)
        return;
    leave_waiting(at, job);
    part(all, job);
    if (at->waiting_count == 0)
        rest(all, at);
}

/* One job less is running. */
static void end_run(sl_destinations *all, sl_destination *at)
{
    assert(at->running_count > 0);
    at->running_count--;
    if (at->waits_for_result)
        make_ready(all, at);
    else if (at->place == PLACE_RESTING)
        rest(all, at);
}

/* It did not begin, so its turn in the rate is given back too, unless another one began after it. */
void sl_destinations_put_back(sl_destinations *all, sl_job *job)
{
    sl_destination *const at = job->destination;

    if (all->rules.has_breaker)
        sl_breaker_withdrawn(&at->breaker, job->ticket);
    job->ticket = 0;
    if (at->newest == job) {
        at->next_ns -= sl_min_u64(at->next_ns, all->rules.interval_ns);
        at->newest = NULL;
    }
    sl_list_push_front(&at->waiting, &job->waiting);
    at->waiting_count++;
    end_run(all, at);
    if (at->place == PLACE_RESTING || at->place == PLACE_TIMED)
        make_ready(all, at);
}

/* --- who may go --- */

static bool is_draining(const sl_destinations *all)
{
    return all->drain_until_ns != 0;
}

/* In a drain an open breaker is passed by on purpose (S3.18); the rest that the destination asked for then is that breaker's
 * business and holds nobody up. */
static uint64_t turn_ns(const sl_destinations *all, const sl_destination *at)
{
    const bool bypasses = is_draining(all) && all->rules.has_breaker &&
                          sl_breaker_state_at(&at->breaker, all->now_ns) != SL_BREAKER_CLOSED;
    const uint64_t from_ns = bypasses ? at->next_ns : sl_max_u64(at->next_ns, at->pause_ns);

    return sl_max_u64(from_ns, all->now_ns);
}

/* How many waiting jobs have their turn before the drain's time is over. */
static uint64_t turns_left(const sl_destinations *all, const sl_destination *at)
{
    const uint64_t first_ns = turn_ns(all, at);

    if (first_ns >= all->drain_until_ns)
        return 0;
    if (all->rules.interval_ns == 0)
        return UINT64_MAX;
    return (all->drain_until_ns - 1 - first_ns) / all->rules.interval_ns + 1;
}

/* The jobs behind the first `stay` go to keeps, in order. */
static void keep_behind(sl_destinations *all, sl_destination *at, uint64_t stay, sl_list *keeps)
{
    sl_list *node = &at->waiting;

    if (at->waiting_count <= stay)
        return;
    if (keeps == NULL) {
        all->has_unkept = true;
        return;
    }
    for (uint64_t moved = at->waiting_count - stay; moved > 0; moved--)
        node = node->prev;
    while (node != &at->waiting) {
        sl_job *const job = SL_CONTAINER_OF(node, sl_job, waiting);

        node = node->next;
        leave_waiting(at, job);
        part(all, job);
        sl_list_remove(&job->line);
        sl_list_push_back(keeps, &job->line);
    }
}

static void keep_all(sl_destinations *all, sl_destination *at, sl_list *keeps)
{
    keep_behind(all, at, 0, keeps);
    if (at->waiting_count == 0)
        rest(all, at);
    else
        wait_for_result(all, at); /* nobody wants them yet */
}

/* False: it waits for its turn in the rate, or nothing is left to wait. A drain does not sleep: whose turn comes too late goes at
 * once (S3.37). */
static bool rate_allows(sl_destinations *all, sl_destination *at, sl_list *keeps)
{
    if (is_draining(all)) {
        const uint64_t turns = turns_left(all, at);

        if (turns == 0) {
            keep_all(all, at, keeps);
            return false;
        }
        keep_behind(all, at, turns, keeps);
    }
    if (turn_ns(all, at) <= all->now_ns)
        return true;
    wait_for_time(all, at, turn_ns(all, at));
    return false;
}

static bool breaker_allows(sl_destinations *all, sl_destination *at, sl_list *keeps, uint64_t *ret_ticket)
{
    const sl_breaker_verdict verdict = sl_breaker_ask(&at->breaker, all->now_ns);

    switch (verdict.kind) {
    case SL_BREAKER_SEND:
    case SL_BREAKER_PROBE: *ret_ticket = verdict.ticket; return true;
    case SL_BREAKER_WAIT:
        wait_for_time(all, at, verdict.until_ns);
        at->waits_for_result = true;
        break;
    case SL_BREAKER_KEEP: keep_all(all, at, keeps); break;
    case SL_BREAKER_VERDICT_COUNT_: assert(false);
    }
    return false;
}

/* False: the destination is not READY any more. */
static bool may_go(sl_destinations *all, sl_destination *at, sl_list *keeps, uint64_t *ret_ticket)
{
    const uint32_t concurrent_max = all->rules.concurrent_max;

    if (concurrent_max != 0 && at->running_count >= concurrent_max) {
        wait_for_result(all, at);
        return false;
    }
    if ((all->rules.interval_ns != 0 || is_draining(all)) && !rate_allows(all, at, keeps))
        return false;
    return !all->rules.has_breaker || breaker_allows(all, at, keeps, ret_ticket);
}

static sl_job *take_first(sl_destinations *all, sl_destination *at, uint64_t ticket)
{
    sl_job *const job = SL_CONTAINER_OF(at->waiting.next, sl_job, waiting);

    leave_waiting(at, job);
    at->running_count++;
    if (all->rules.interval_ns != 0)
        at->next_ns = sl_add_sat_u64(all->now_ns, all->rules.interval_ns);
    at->newest = job;
    job->ticket = ticket;
    if (at->waiting_count == 0)
        rest(all, at);
    else
        make_ready(all, at);
    return job;
}

static void wake_due(sl_destinations *all)
{
    sl_pairing_node *first;

    while ((first = sl_pairing_min(&all->timed)) != NULL) {
        sl_destination *const at = SL_CONTAINER_OF(first, sl_destination, timed);

        if (at->wake_ns > all->now_ns)
            return;
        make_ready(all, at);
    }
}

static void see_time(sl_destinations *all, uint64_t now_ns)
{
    all->now_ns = sl_max_u64(all->now_ns, now_ns);
}

sl_job *sl_destinations_take(sl_destinations *all, uint64_t now_ns, sl_list *keeps, uint64_t *ret_wake_ns)
{
    sl_list *first;

    see_time(all, now_ns);
    if (all->has_unkept && keeps != NULL) {
        all->has_unkept = false;
        make_all_ready(all);
    }
    wake_due(all);
    while ((first = sl_list_first(&all->ready)) != NULL) {
        sl_destination *const at = SL_CONTAINER_OF(first, sl_destination, ring);
        uint64_t ticket = 0;

        if (may_go(all, at, keeps, &ticket))
            return take_first(all, at, ticket);
    }
    *ret_wake_ns = all->timed.root == NULL ? UINT64_MAX
                                           : SL_CONTAINER_OF(all->timed.root, sl_destination, timed)->wake_ns;
    return NULL;
}

/* --- how it went --- */

static void tell_breaker(sl_destinations *all, sl_destination *at, uint64_t ticket,
                         sl_destination_result result, uint64_t retry_after_ns)
{
    switch (result) {
    case SL_DESTINATION_WORKED: sl_breaker_succeeded(&at->breaker, ticket); break;
    case SL_DESTINATION_FAILED:
        sl_breaker_failed(&at->breaker, ticket,
                          (sl_breaker_failure){ .now_ns = all->now_ns, .retry_after_ns = retry_after_ns });
        break;
    case SL_DESTINATION_UNKNOWN: sl_breaker_withdrawn(&at->breaker, ticket); break;
    }
}

/* Who has a rate heeds a Retry-After for all that waits, also when a breaker is not open yet. */
static void heed_pause(sl_destinations *all, sl_destination *at, uint64_t retry_after_ns)
{
    const uint64_t max_ns = all->rules.has_breaker ? all->rules.breaker.cool_down_max_ns : PAUSE_MAX_NS;
    const uint64_t until_ns = sl_add_sat_u64(all->now_ns, sl_min_u64(retry_after_ns, max_ns));

    if (all->rules.interval_ns != 0)
        at->pause_ns = sl_max_u64(at->pause_ns, until_ns);
}

void sl_destinations_ended(sl_destinations *all, sl_job *job, sl_destination_result result,
                           uint64_t retry_after_ns, uint64_t now_ns)
{
    sl_destination *const at = job->destination;

    if (at == NULL)
        return;
    see_time(all, now_ns);
    if (all->rules.has_breaker)
        tell_breaker(all, at, job->ticket, result, retry_after_ns);
    if (result == SL_DESTINATION_FAILED && retry_after_ns != 0)
        heed_pause(all, at, retry_after_ns);
    part(all, job);
    end_run(all, at);
}

void sl_destinations_drain(sl_destinations *all, uint64_t until_ns)
{
    all->drain_until_ns = sl_max_u64(1, until_ns);
    if (all->rules.has_breaker)
        SL_LIST_EACH (node, &all->every)
            sl_breaker_drain(&SL_CONTAINER_OF(node, sl_destination, every)->breaker, all->drain_until_ns);
    make_all_ready(all);
}

void sl_destinations_drain_end(sl_destinations *all)
{
    all->drain_until_ns = 0;
    all->has_unkept = false;
    if (all->rules.has_breaker)
        SL_LIST_EACH (node, &all->every)
            sl_breaker_drain_end(&SL_CONTAINER_OF(node, sl_destination, every)->breaker);
    make_all_ready(all);
}

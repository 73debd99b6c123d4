/* server/door.c — batches on their way through the store, each with a note of what to do when it is answered.
 *
 *      submit --> [inside] --> done: count, wake the readers of its streams, answer, let the next one in
 *         \
 *          +-> FULL: [waiting], first come first served
 *
 * Every batch is in exactly one of these counters: refused, or accepted; and of the accepted ones done, failed, or still
 * inside. FULL is neither: it will be tried again.
 *
 * Why nobody is overtaken: while somebody waits, everybody else gets FULL, so a large batch is not kept out by small ones
 * for ever. Whose turn it is may hand in one batch past the others; with his next one he is everybody else, or a client with a
 * long backlog would take all room that becomes free. Why nobody waits in vain: who waits is tried after each done(), FULL means that something is inside, and the last
 * one to leave makes room for the largest batch there is (SL_WAITING_BYTES_MAX counts two of them, and one that is being
 * answered still counts).
 *
 * Patient batches (what consumers have settled) go along with the syncs of others, so an append does not find the disk busy with an
 * acknowledgement that nobody waits for. Each waits for host->patience_ns at most beside the sync that was under way when it came:
 * then it gets a sync of its own. The alarm is set again when a patient one is done, since those that are left came after that sync
 * had begun. */
#include "server/door.h"

#include "server/tail.h"

#include <assert.h>

enum {
    ENTRY_OPS_SMALL = 4, /* nearly all batches are one append */
    ENTRY_SPARES_MAX = 1024,
};

typedef struct entry_op {
    uint64_t key; /* of the stream, see tail.h */
    uint32_t bytes;
    uint32_t event_count;
    bool writes_stream;
} entry_op;

/* A batch that is inside. */
typedef struct entry {
    sl_list node; /* door->inside, or door->spares */
    const sl_alloc *alloc;
    sl_door *door; /* NULL: abandoned, and only this memory is left of it */
    sl_done_fn *done;
    void *ctx;
    bool patient;
    uint32_t op_count, op_capacity;
    entry_op ops[];
} entry;

struct sl_door {
    sl_host *host;
    sl_list inside, spares;
    uint64_t inside_count, patient_count;
    sl_alarm patience; /* runs while patient ones are inside */
    uint32_t spare_count;
    sl_list waiters;
    sl_door_waiter *tried; /* its fn is running */
    bool tried_entered;    /* and has handed in something: it has had its turn */
    bool waits_again;      /* and waits again at the front */
    bool shut;             /* to all but what settles, */
    bool closed;           /* and to that too */
    bool store_failed;
    sl_door_tally at_shut; /* the counters of that moment */
    char reason[SL_DOOR_REASON_BYTES];
};

static void on_patience_end(void *ctx)
{
    const sl_door *const door = ctx;

    sl_store_hurry(door->host->store);
}

sl_err sl_door_new(sl_host *host, sl_door **ret_door)
{
    sl_door *const door = sl_alloc_take(host->alloc, sizeof *door);

    if (door == NULL)
        return SL_ERR_NOMEM;
    *door = (sl_door){ .host = host, .patience = { .fn = on_patience_end, .ctx = door } };
    sl_list_init(&door->inside);
    sl_list_init(&door->spares);
    sl_list_init(&door->waiters);
    *ret_door = door;
    return SL_OK;
}

/* --- entries --- */

static size_t entry_bytes(uint32_t op_capacity)
{
    return sizeof(entry) + op_capacity * sizeof(entry_op);
}

static entry *entry_of(sl_list *node)
{
    return SL_CONTAINER_OF(node, entry, node);
}

static void entry_give(entry *e)
{
    sl_alloc_give(e->alloc, e, entry_bytes(e->op_capacity));
}

static entry *entry_take(sl_door *door, uint32_t op_count)
{
    const uint32_t capacity = op_count > ENTRY_OPS_SMALL ? op_count : ENTRY_OPS_SMALL;
    sl_list *const spare = capacity == ENTRY_OPS_SMALL ? sl_list_first(&door->spares) : NULL;
    entry *e;

    if (spare != NULL) {
        sl_list_remove(spare);
        door->spare_count--;
        return entry_of(spare);
    }
    e = sl_alloc_take(door->host->alloc, entry_bytes(capacity));
    if (e != NULL)
        *e = (entry){ .alloc = door->host->alloc, .op_capacity = capacity };
    return e;
}

static void entry_put(sl_door *door, entry *e)
{
    if (e->op_capacity > ENTRY_OPS_SMALL || door->spare_count >= ENTRY_SPARES_MAX) {
        entry_give(e);
        return;
    }
    sl_list_push_front(&door->spares, &e->node);
    door->spare_count++;
}

static entry_op note_append(const sl_door *door, const sl_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->append.event_count; i++)
        bytes += op->append.events[i].data.bytes + op->append.events[i].metadata.bytes;
    return (entry_op){ .key = sl_tail_key(door->host->tail, op->append.stream),
                       .bytes = (uint32_t)bytes, /* SL_BATCH_BYTES_MAX, or the store will not take it */
                       .event_count = op->append.event_count,
                       .writes_stream = true };
}

static entry_op note_op(const sl_door *door, const sl_op *op)
{
    switch (op->kind) {
    case SL_OP_APPEND: return note_append(door, op);
    case SL_OP_DELETE:
    case SL_OP_TOMBSTONE:
        return (entry_op){ .key = sl_tail_key(door->host->tail, op->remove.stream), .writes_stream = true };
    case SL_OP_GROUP_CREATE:
    case SL_OP_GROUP_DELETE:
    case SL_OP_GROUP_RECORD:
    case SL_OP_GROUP_UPDATE: break;
    }
    return (entry_op){ 0 };
}

static entry *entry_new(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    entry *const e = entry_take(door, batch->op_count);

    if (e == NULL)
        return NULL;
    e->door = door;
    e->done = done;
    e->ctx = ctx;
    e->patient = false;
    e->op_count = batch->op_count;
    for (uint32_t i = 0; i < batch->op_count; i++)
        e->ops[i] = note_op(door, &batch->ops[i]);
    sl_list_push_back(&door->inside, &e->node);
    door->inside_count++;
    return e;
}

static void set_patience(sl_door *door)
{
    sl_alarm_set(door->host, &door->patience, sl_clock_mono_ns(door->host->clock) + door->host->patience_ns);
}

static void patient_entered(entry *e)
{
    e->patient = true;
    if (e->door->patient_count++ == 0)
        set_patience(e->door);
}

static void patient_left(sl_door *door)
{
    assert(door->patient_count > 0);
    if (--door->patient_count > 0)
        set_patience(door);
    else
        sl_alarm_stop(door->host, &door->patience);
}

static void entry_leave(entry *e)
{
    assert(e->door->inside_count > 0);
    sl_list_remove(&e->node);
    e->door->inside_count--;
    if (e->patient)
        patient_left(e->door);
}

/* --- waiting --- */

void sl_door_waiter_init(sl_door_waiter *waiter, void (*fn)(void *ctx), void *ctx)
{
    *waiter = (sl_door_waiter){ .fn = fn, .ctx = ctx };
    sl_list_init(&waiter->node);
}

/* Who had his turn and is alone is at the front as well: trying him again at once would be in vain. */
void sl_door_wait(sl_door *door, sl_door_waiter *waiter)
{
    bool is_first;

    assert(door->inside_count > 0); /* or nobody would ever call it */
    if (door->patient_count > 0)
        sl_store_hurry(door->host->store); /* what others wait behind has waited long enough */
    sl_list_remove(&waiter->node);
    is_first = waiter == door->tried && (!door->tried_entered || sl_list_empty(&door->waiters));
    door->waits_again = door->waits_again || is_first;
    if (is_first)
        sl_list_push_front(&door->waiters, &waiter->node);
    else
        sl_list_push_back(&door->waiters, &waiter->node);
}

void sl_door_forget(sl_door_waiter *waiter)
{
    sl_list_remove(&waiter->node);
}

/* Lets them try in their order, until one has to wait again. */
static void try_waiters(sl_door *door)
{
    if (door->tried != NULL)
        return; /* one of them has shut the door; the loop goes on by itself */
    door->waits_again = false;
    while (!door->waits_again && !sl_list_empty(&door->waiters)) {
        sl_door_waiter *const waiter = SL_CONTAINER_OF(sl_list_first(&door->waiters), sl_door_waiter, node);

        sl_list_remove(&waiter->node);
        door->tried = waiter;
        door->tried_entered = false;
        waiter->fn(waiter->ctx);
        door->tried = NULL;
    }
}

/* All of them, whoever has to wait again: something has changed for each. */
static void tell_waiters(sl_door *door)
{
    sl_list now;

    sl_list_init(&now);
    sl_list_splice(&now, &door->waiters);
    while (!sl_list_empty(&now)) {
        sl_door_waiter *const waiter = SL_CONTAINER_OF(sl_list_first(&now), sl_door_waiter, node);

        sl_list_remove(&waiter->node);
        waiter->fn(waiter->ctx);
    }
}

/* --- in and out --- */

static void count_done(sl_server_counters *counters, const entry *e, const sl_commit *commit)
{
    if (commit->err != SL_OK) {
        counters->batches_failed++;
        return;
    }
    counters->batches_done++;
    for (uint32_t i = 0; i < e->op_count; i++) {
        if (commit->results[i].repeated)
            continue;
        counters->events_appended += e->ops[i].event_count;
        counters->bytes_appended += e->ops[i].bytes;
    }
}

static void touch_streams(const sl_door *door, const entry *e)
{
    for (uint32_t i = 0; i < e->op_count; i++)
        if (e->ops[i].writes_stream)
            sl_tail_touch(door->host->tail, e->ops[i].key);
}

/* From the store: from sl_store_poll(), or from sl_store_close() long after the door was freed. */
static void on_done(void *ctx, const sl_commit *commit)
{
    entry *const e = ctx;
    sl_door *const door = e->door;

    if (door == NULL) {
        entry_give(e);
        return;
    }
    door->store_failed = door->store_failed || commit->err == SL_ERR_STORE_FAILED;
    if (commit->err == SL_OK)
        touch_streams(door, e);
    e->done(e->ctx, commit);
    count_done(&door->host->counters, e, commit); /* in one step with leaving, for sl_door_since_shut() */
    entry_leave(e); /* not before: who comes to wait from within done() waits for this one at least */
    entry_put(door, e);
    try_waiters(door);
}

static sl_err enter(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    entry *const e = batch->op_count > SL_BATCH_OPS_MAX ? NULL : entry_new(door, batch, done, ctx);
    sl_batch as_told = *batch;
    sl_err err;

    if (e == NULL)
        return batch->op_count > SL_BATCH_OPS_MAX ? SL_ERR_TOO_LARGE : SL_ERR_NOMEM;
    as_told.patient = batch->patient && door->host->patience_ns > 0;
    err = sl_store_submit(door->host->store, &as_told, on_done, e);
    if (err == SL_OK && as_told.patient)
        patient_entered(e);
    if (err != SL_OK) {
        entry_leave(e);
        entry_put(door, e);
    }
    if (err == SL_ERR_FULL && door->inside_count == 0)
        return SL_ERR_STREAMS_MAX; /* no room although nobody takes any: waiting would not help */
    return err;
}

static void count_submitted(sl_door *door, sl_err err)
{
    door->store_failed = door->store_failed || err == SL_ERR_STORE_FAILED;
    if (err == SL_OK)
        door->host->counters.batches_accepted++;
    else if (err != SL_ERR_FULL)
        door->host->counters.batches_refused++;
}

static bool settles(const sl_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++)
        if (batch->ops[i].kind == SL_OP_GROUP_RECORD)
            return true;
    return false;
}

/* The one place where it is decided whether something is still accepted. */
static bool is_accepted(const sl_door *door, const sl_batch *batch, bool as_settle)
{
    return !door->shut || (!door->closed && as_settle && settles(batch));
}

static sl_err submit(sl_door *door, const sl_batch *batch, bool as_settle, sl_done_fn *done, void *ctx)
{
    const bool has_the_turn = door->tried != NULL && !door->tried_entered;
    const bool is_queue_jumper = !has_the_turn && !sl_list_empty(&door->waiters);
    sl_err err = SL_ERR_DRAINING;

    if (is_accepted(door, batch, as_settle))
        err = is_queue_jumper ? SL_ERR_FULL : enter(door, batch, done, ctx);
    door->tried_entered = door->tried_entered || err == SL_OK;
    count_submitted(door, err);
    return err;
}

sl_err sl_door_submit(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    return submit(door, batch, false, done, ctx);
}

sl_err sl_door_submit_settle(sl_door *door, const sl_batch *batch, sl_done_fn *done, void *ctx)
{
    return submit(door, batch, true, done, ctx);
}

/* --- the end --- */

static sl_door_tally count_now(const sl_door *door)
{
    const sl_server_counters *const counters = &door->host->counters;

    return (sl_door_tally){ .inside = door->inside_count,
                            .finished = counters->batches_done,
                            .failed = counters->batches_failed,
                            .refused = counters->batches_refused };
}

sl_door_tally sl_door_since_shut(const sl_door *door)
{
    const sl_door_tally now = count_now(door), *const then = &door->at_shut;

    if (!door->shut)
        return (sl_door_tally){ 0 };
    return (sl_door_tally){ .inside = then->inside,
                            .finished = now.finished - then->finished,
                            .failed = now.failed - then->failed,
                            .refused = now.refused - then->refused };
}

void sl_door_shut(sl_door *door, const char *reason)
{
    sl_text text;

    if (door->shut)
        return;
    sl_text_init(&text, door->reason, sizeof door->reason);
    sl_text_add(&text, reason);
    door->shut = true;
    door->at_shut = count_now(door);
    tell_waiters(door);
}

void sl_door_close(sl_door *door, const char *reason)
{
    if (door->closed)
        return;
    door->closed = true;
    sl_door_shut(door, reason);
    tell_waiters(door); /* those who settle wait here too while it is only shut */
}

bool sl_door_is_shut(const sl_door *door)
{
    return door->shut;
}

const char *sl_door_reason(const sl_door *door)
{
    return door->reason;
}

uint64_t sl_door_inside(const sl_door *door)
{
    return door->inside_count;
}

bool sl_door_store_failed(const sl_door *door)
{
    return door->store_failed;
}

void sl_door_abandon(sl_door *door)
{
    static const sl_op_result nothing_known[SL_BATCH_OPS_MAX];
    const sl_commit commit = { .err = SL_ERR_STORE_FAILED, .results = nothing_known };

    if (door == NULL)
        return;
    sl_door_close(door, "the server has ended");
    while (!sl_list_empty(&door->inside)) {
        entry *const e = entry_of(sl_list_first(&door->inside));

        entry_leave(e);
        e->door = NULL; /* the store still has the pointer: on_done() frees it */
        door->host->counters.batches_failed++;
        e->done(e->ctx, &commit);
    }
}

void sl_door_free(sl_door *door)
{
    if (door == NULL)
        return;
    assert(door->inside_count == 0 && sl_list_empty(&door->waiters));
    SL_LIST_EACH_SAFE (node, &door->spares) {
        sl_list_remove(node);
        entry_give(entry_of(node));
    }
    sl_alloc_give(door->host->alloc, door, sizeof *door);
}

/* server/streams/batch_pending.c — what is owed: appends inside of the store, and answers that wait for a client to read.
 *
 * An entry is taken for each append and used again for the next one: with a steady number in flight nothing is allocated. Only names that
 * are unusually long get memory of their own.
 *
 * The store answers in the order of submission, and the answers go out in that order too, except those that were refused or too late. */
#include "server/reply.h"
#include "server/streams/batch_call.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

/* --- entries --- */

static sl_batch_entry *entry_of(sl_list *node)
{
    return SL_CONTAINER_OF(node, sl_batch_entry, node);
}

static size_t entry_bytes(uint32_t text_capacity)
{
    return sizeof(sl_batch_entry) + text_capacity;
}

static void entry_give(const sl_batch_call *call, sl_batch_entry *entry)
{
    sl_alloc_give(call->request->host->alloc, entry, entry_bytes(entry->text_capacity));
}

static sl_batch_entry *entry_take(sl_batch_call *call, uint32_t text_bytes)
{
    const bool small = text_bytes <= SL_BATCH_TEXT_BYTES_SMALL;
    const uint32_t capacity = small ? SL_BATCH_TEXT_BYTES_SMALL : text_bytes;
    sl_list *const spare = small ? sl_list_first(&call->spares) : NULL;
    sl_batch_entry *entry;

    if (spare != NULL) {
        sl_list_remove(spare);
        call->spare_count--;
        return entry_of(spare);
    }
    entry = sl_alloc_take(call->request->host->alloc, entry_bytes(capacity));
    if (entry == NULL)
        return NULL;
    *entry = (sl_batch_entry){ .call = call, .text_capacity = capacity };
    sl_list_init(&entry->node);
    return entry;
}

static void entry_put(sl_batch_call *call, sl_batch_entry *entry)
{
    if (entry->text_capacity > SL_BATCH_TEXT_BYTES_SMALL || call->spare_count >= SL_BATCH_SPARES_MAX ||
        call->over) {
        entry_give(call, entry);
        return;
    }
    sl_list_push_front(&call->spares, &entry->node);
    call->spare_count++;
}

static sl_batch_entry *entry_new(sl_batch_call *call, const sl_batch_name *name)
{
    const uint32_t correlation_bytes = (uint32_t)name->correlation.bytes;
    const uint32_t stream_bytes = (uint32_t)name->stream.bytes;
    sl_batch_entry *const entry = entry_take(call, correlation_bytes + stream_bytes);

    assert(name->correlation.bytes > 0 && name->correlation.bytes <= SL_BATCH_CORRELATION_BYTES_MAX);
    if (entry == NULL)
        return NULL;
    entry->told = false;
    entry->correlation_bytes = correlation_bytes;
    entry->stream_bytes = stream_bytes;
    memcpy(entry->text, name->correlation.data, correlation_bytes);
    if (stream_bytes > 0)
        memcpy(entry->text + correlation_bytes, name->stream.data, stream_bytes);
    return entry;
}

static sl_batch_name entry_name(const sl_batch_entry *entry)
{
    return (sl_batch_name){ .correlation = { entry->text, entry->correlation_bytes },
                            .stream = { entry->text + entry->correlation_bytes, entry->stream_bytes } };
}

static void free_entries(const sl_batch_call *call, sl_list *entries)
{
    SL_LIST_EACH_SAFE (node, entries) {
        sl_list_remove(node);
        entry_give(call, entry_of(node));
    }
}

void sl_batch_drop_unsent(sl_batch_call *call)
{
    free_entries(call, &call->unsent);
    call->unsent_count = 0;
}

void sl_batch_free_spares(sl_batch_call *call)
{
    free_entries(call, &call->spares);
    call->spare_count = 0;
}

/* --- answers --- */

static void give_up(sl_batch_call *call)
{
    sl_reply_error(call->request, SL_ERR_NOMEM);
}

/* True: nothing is owed any more. */
static bool send_now(sl_batch_call *call, const sl_batch_name *name, const sl_batch_outcome *outcome)
{
    const sl_err err = sl_batch_answer(call->request, &call->scratch, name, outcome);

    if (err == SL_ERR_FULL)
        return false;
    if (err != SL_OK)
        give_up(call);
    return true;
}

static void keep_unsent(sl_batch_call *call, sl_batch_entry *entry, const sl_batch_outcome *outcome)
{
    entry->outcome = *outcome;
    sl_list_push_back(&call->unsent, &entry->node);
    call->unsent_count++;
}

void sl_batch_tell(sl_batch_call *call, const sl_batch_name *name, const sl_batch_outcome *outcome)
{
    sl_batch_entry *entry;

    if (sl_list_empty(&call->unsent) && send_now(call, name, outcome))
        return;
    entry = sl_request_open(call->request) ? entry_new(call, name) : NULL;
    if (entry != NULL)
        keep_unsent(call, entry, outcome);
    else
        give_up(call);
}

void sl_batch_refuse(sl_batch_call *call, const sl_batch_name *name, const sl_refusal *refusal)
{
    sl_batch_tell(call, name, &(sl_batch_outcome){ .kind = SL_BATCH_REFUSED, .refusal = *refusal });
}

void sl_batch_send_on(sl_batch_call *call)
{
    sl_list *node;

    while ((node = sl_list_first(&call->unsent)) != NULL) {
        sl_batch_entry *const entry = entry_of(node);
        const sl_batch_name name = entry_name(entry);

        if (!send_now(call, &name, &entry->outcome) || call->over)
            return; /* over: the list was dropped */
        sl_list_remove(node);
        call->unsent_count--;
        entry_put(call, entry);
    }
}

/* --- inside of the store --- */

static sl_batch_outcome outcome_of(const sl_commit *commit, sl_wire_revision expected)
{
    const sl_op_result *const result = &commit->results[0];

    if (commit->err == SL_OK)
        return (sl_batch_outcome){ .kind = SL_BATCH_SUCCESS,
                                   .revision = result->revision,
                                   .position = result->position };
    if (commit->err == SL_ERR_WRONG_REVISION)
        return (sl_batch_outcome){ .kind = SL_BATCH_WRONG_REVISION,
                                   .revision = result->revision,
                                   .expected = expected };
    if (commit->err == SL_ERR_STREAM_DELETED)
        return (sl_batch_outcome){ .kind = SL_BATCH_STREAM_DELETED };
    return (sl_batch_outcome){ .kind = SL_BATCH_REFUSED,
                               .refusal = { .kind = SL_REFUSAL_ERROR, .err = commit->err } };
}

/* The entry is used again or freed, or waits for room. */
static void answer_entry(sl_batch_call *call, sl_batch_entry *entry, const sl_commit *commit)
{
    const sl_batch_name name = entry_name(entry);
    sl_batch_outcome outcome;

    if (entry->told || !sl_request_open(call->request)) {
        entry_put(call, entry);
        return;
    }
    outcome = outcome_of(commit, entry->expected);
    if (sl_list_empty(&call->unsent) && send_now(call, &name, &outcome))
        entry_put(call, entry);
    else
        keep_unsent(call, entry, &outcome);
}

static void on_done(void *ctx, const sl_commit *commit)
{
    sl_batch_entry *const entry = ctx;
    sl_batch_call *const call = entry->call;
    sl_request *const request = call->request;
    bool is_last;

    assert(call->inside_count > 0);
    sl_list_remove(&entry->node);
    is_last = --call->inside_count == 0;
    answer_entry(call, entry, commit);
    if (call->over && is_last)
        sl_batch_clean(call);
    else
        sl_batch_settle(call);
    if (is_last)
        sl_request_release(request); /* of the hold that the first one inside took */
}

sl_err sl_batch_submit(sl_batch_call *call, const sl_batch_wish *wish, const sl_op *op)
{
    const sl_batch batch = { .ops = op, .op_count = 1, .durability = SL_DURABLE_SYNC };
    sl_batch_entry *const entry = entry_new(call, &wish->name);
    sl_err err;

    if (entry == NULL)
        return SL_ERR_NOMEM;
    err = sl_door_submit(call->request->host->door, &batch, on_done, entry);
    if (err != SL_OK) {
        entry_put(call, entry);
        return err;
    }
    entry->expected = wish->expected;
    entry->due_ns = wish->due_ns;
    sl_list_push_back(&call->inside, &entry->node);
    if (call->inside_count++ == 0)
        sl_request_hold(call->request);
    sl_batch_due_by(call, wish->due_ns);
    return SL_OK;
}

void sl_batch_not_taken(sl_batch_call *call, const sl_batch_wish *wish, const sl_op *op, sl_err err)
{
    sl_refusal refusal;

    if (err == SL_ERR_DRAINING) {
        sl_batch_end(call, SL_BATCH_ENDS_STOPPING, NULL);
        return;
    }
    refusal = sl_append_refusal(op, err);
    sl_batch_refuse(call, &wish->name, &refusal);
}

uint64_t sl_batch_tell_late(sl_batch_call *call, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;

    SL_LIST_EACH (node, &call->inside) {
        sl_batch_entry *const entry = entry_of(node);
        const sl_batch_name name = entry_name(entry);

        if (!entry->told && entry->due_ns <= now_ns) {
            entry->told = true;
            sl_batch_tell(call, &name, &(sl_batch_outcome){ .kind = SL_BATCH_TIMEOUT });
        } else if (!entry->told) {
            next_ns = sl_min_u64(next_ns, entry->due_ns);
        }
    }
    return next_ns;
}

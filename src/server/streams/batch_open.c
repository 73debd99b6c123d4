/* server/streams/batch_open.c — appends that come in parts: begun by their options, gathered, submitted when the last part is there.
 *
 * They are few, because clients send the parts of one append in a row, so a list is searched. What is wrong with one of them is told
 * at once and it is forgotten; parts that still come are then of an append that nobody knows, which is nothing (so says the
 * contract). One that does not end in time is told that it is late, as the real server does. */
#include "server/streams/batch_call.h"

#include "base/cleanup.h"

static sl_batch_open *open_of(sl_list *node)
{
    return SL_CONTAINER_OF(node, sl_batch_open, node);
}

sl_batch_open *sl_batch_find(const sl_batch_call *call, sl_uuid id)
{
    SL_LIST_EACH (node, &call->open)
        if (sl_uuid_equal(open_of(node)->id, id))
            return open_of(node);
    return NULL;
}

/* Out of the list: telling something may end the call, and then the list is dropped. */
static void detach(sl_batch_call *call, sl_batch_open *open)
{
    sl_list_remove(&open->node);
    call->open_count--;
    if (call->parked_open == open)
        call->parked_open = NULL;
}

static void free_open(sl_batch_call *call, sl_batch_open *open)
{
    sl_gather_done(&open->gather);
    sl_alloc_give(call->request->host->alloc, open, sizeof *open);
}

void sl_batch_drop_open(sl_batch_call *call)
{
    SL_LIST_EACH_SAFE (node, &call->open) {
        sl_batch_open *const open = open_of(node);

        detach(call, open);
        free_open(call, open);
    }
}

/* --- gathering --- */

static uint64_t open_bytes(const sl_batch_call *call)
{
    uint64_t bytes = 0;

    SL_LIST_EACH (node, &call->open)
        bytes += open_of(node)->gather.claim.bytes;
    return bytes;
}

static sl_refusal refusal_of(sl_err err)
{
    return err == SL_ERR_TOO_LARGE ? (sl_refusal){ .kind = SL_REFUSAL_APPEND_TOO_LARGE }
                                   : (sl_refusal){ .kind = SL_REFUSAL_ERROR, .err = err };
}

static bool gather_one(sl_batch_call *call, sl_batch_open *open, const sl_wire_proposed *proposed,
                       uint64_t created_ns, sl_refusal *ret_refusal)
{
    sl_event_in event;
    sl_err err;

    if (!sl_proposed_take(proposed, call->request->host->settings, &event, ret_refusal))
        return false;
    event.created_ns = created_ns;
    err = sl_gather_add(&open->gather, &event);
    *ret_refusal = refusal_of(err);
    return err == SL_OK;
}

static bool gather_all(sl_batch_call *call, sl_batch_open *open, const sl_batch_append_request *in,
                       uint64_t created_ns, sl_refusal *ret_refusal)
{
    sl_wire_walk walk = sl_wire_items_walk(&in->events);
    const char *reason = NULL;
    sl_wire_proposed proposed;
    sl_err err;

    while ((err = sl_batch_append_next(&walk, &proposed, &reason)) == SL_OK)
        if (!gather_one(call, open, &proposed, created_ns, ret_refusal))
            return false;
    if (err == SL_ERR_INVALID)
        *ret_refusal = (sl_refusal){ .kind = SL_REFUSAL_INVALID, .text = reason };
    else if (open_bytes(call) > SL_BATCH_OPEN_BYTES_MAX)
        *ret_refusal = refusal_of(SL_ERR_FULL);
    else
        return true;
    return false;
}

void sl_batch_add(sl_batch_call *call, sl_batch_open *open, const sl_batch_append_request *in,
                  sl_batch_moment moment)
{
    sl_refusal refusal;

    if (!gather_all(call, open, in, moment.wall_ns, &refusal)) {
        detach(call, open);
        sl_batch_refuse(call, &open->wish.name, &refusal);
        free_open(call, open);
    } else if (in->is_final) {
        sl_batch_submit_open(call, open);
    }
}

/* --- the beginning --- */

static sl_err fill(sl_batch_open *open, const sl_batch_wish *wish)
{
    sl_err err;

    open->wish = *wish;
    err = sl_gather_text(&open->gather, wish->name.correlation, &open->wish.name.correlation);
    if (err == SL_OK)
        err = sl_gather_text(&open->gather, wish->name.stream, &open->wish.name.stream);
    return err;
}

static sl_err make(sl_batch_call *call, const sl_batch_wish *wish, sl_uuid id, sl_batch_open **ret_open)
{
    sl_host *const host = call->request->host;
    sl_batch_open *open;
    sl_err err;

    if (call->open_count >= SL_BATCH_OPEN_MAX)
        return SL_ERR_FULL;
    open = sl_alloc_take(host->alloc, sizeof *open);
    if (open == NULL)
        return SL_ERR_NOMEM;
    *open = (sl_batch_open){ .id = id };
    sl_gather_init(&open->gather, host);
    sl_list_push_back(&call->open, &open->node);
    call->open_count++;
    err = fill(open, wish);
    if (err == SL_OK) {
        *ret_open = open;
        return SL_OK;
    }
    detach(call, open);
    free_open(call, open);
    return err;
}

void sl_batch_begin(sl_batch_call *call, const sl_batch_append_request *in, const sl_batch_wish *wish,
                    sl_uuid id, sl_batch_moment moment)
{
    sl_batch_open *open = NULL;
    const sl_err err = make(call, wish, id, &open);

    if (err != SL_OK) {
        const sl_refusal refusal = refusal_of(err);
        sl_batch_refuse(call, &wish->name, &refusal);
        return;
    }
    sl_batch_due_by(call, wish->due_ns);
    sl_batch_add(call, open, in, moment);
}

/* --- the end --- */

/* The write has its whole time, however long gathering took; what the client itself has set still counts from the beginning. */
static void renew_due(const sl_batch_call *call, sl_batch_wish *wish, uint64_t now_ns)
{
    wish->due_ns =
        sl_min_u64(wish->own_due_ns, sl_add_sat_u64(now_ns, call->request->host->settings->write_timeout_ns));
}

void sl_batch_submit_open(sl_batch_call *call, sl_batch_open *open)
{
    const uint64_t now_ns = sl_clock_mono_ns(call->request->host->clock);
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = open->wish.name.stream,
                                   .expected = open->wish.store_expected,
                                   .events = open->gather.events,
                                   .event_count = open->gather.event_count } };
    bool is_late;
    sl_err err;

    if (call->parked_open != open)
        renew_due(call, &open->wish, now_ns);
    is_late = open->wish.due_ns <= now_ns;
    err = is_late ? SL_OK : sl_batch_submit(call, &open->wish, &op);
    if (err == SL_ERR_FULL) {
        sl_batch_park_open(call, open);
        return;
    }
    detach(call, open);
    if (is_late)
        sl_batch_tell(call, &open->wish.name, &(sl_batch_outcome){ .kind = SL_BATCH_TIMEOUT });
    else if (err != SL_OK)
        sl_batch_not_taken(call, &open->wish, &op, err);
    free_open(call, open);
}

/* The one that is due first; not the one that is parked, which is complete: batch_append.c sees to that. */
static sl_batch_open *first_due(const sl_batch_call *call)
{
    sl_batch_open *first = NULL;

    SL_LIST_EACH (node, &call->open) {
        sl_batch_open *const open = open_of(node);

        if (open != call->parked_open && (first == NULL || open->wish.due_ns < first->wish.due_ns))
            first = open;
    }
    return first;
}

uint64_t sl_batch_tell_late_open(sl_batch_call *call, uint64_t now_ns)
{
    sl_batch_open *open;

    while ((open = first_due(call)) != NULL && open->wish.due_ns <= now_ns) {
        detach(call, open);
        sl_batch_tell(call, &open->wish.name, &(sl_batch_outcome){ .kind = SL_BATCH_TIMEOUT });
        free_open(call, open);
    }
    return open == NULL ? UINT64_MAX : open->wish.due_ns;
}

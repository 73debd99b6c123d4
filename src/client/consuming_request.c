/* client/consuming_request.c — what a consumer sends, in as few messages as possible.
 *
 *      options started0 | started* extend* ack* nack* release* | stop
 *
 * Starts go before what ends the same work, and Stop goes last: what was acked before it is not outstanding. Nothing about
 * messages is sent before the server has confirmed the options, so whatever was said was said to a consumer that the server knew.
 * started0 is a Started without ids, when the user has promised to mark what he starts: a connection that breaks before the
 * first mark then charges nothing.
 *
 * At most SL_CONSUMER_UNANSWERED_MAX acks, nacks and releases are on their way; the rest waits in its queue. */
#include "client/consuming.h"

#include "base/cleanup.h"

#include <assert.h>

/* --- one message --- */

static sl_err send(sl_consuming *c, const sl_consuming_output *output, const sl_persistent_request *request)
{
    const size_t bytes = sl_persistent_request_size(request);
    uint8_t *message;
    const sl_err err = output->reserve(output->ctx, bytes, &message);

    if (err != SL_OK)
        return err;
    sl_persistent_request_encode(request, message, bytes);
    output->commit(output->ctx, bytes);
    c->sent_count++;
    return SL_OK;
}

/* --- options --- */

static size_t list_some(const sl_consuming *c, bool recalled, sl_uuid *ids, size_t count)
{
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);
        if (held->is_recalled != recalled)
            continue;
        held->is_resumed = !held->is_ghost && count < SL_CONSUMER_RESUMED_MAX;
        held->is_renewed = false;
        if (held->is_resumed)
            ids[count++] = held->id;
    }
    return count;
}

/* What is being worked on comes first: should the server not take all of them, the rest was done long ago. */
static size_t list_resumed(const sl_consuming *c, sl_uuid *ids)
{
    return list_some(c, true, ids, list_some(c, false, ids, 0));
}

/* One that comes back only to end what it has wants no more than it must. */
static sl_persistent_request make_options(const sl_consuming *c)
{
    const bool is_all = sl_str_equal(c->stream, SL_STR("$all"));
    sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_OPTIONS };

    request.options = (sl_persistent_options){
        .source = is_all ? SL_WIRE_SOURCE_ALL : SL_WIRE_SOURCE_STREAM,
        .stream = is_all ? (sl_str){ 0 } : c->stream,
        .group = c->group,
        .buffer_size = c->joined_stopped ? 1 : (int32_t)c->window,
        .has_id_option = true,
        .id_form = SL_WIRE_ID_STRUCTURED,
    };
    if (!c->extensions)
        return request;
    request.options.consumer_name = c->name;
    request.options.labels = (sl_wire_labels){ .count = c->label_count, .list = c->labels };
    request.options.extensions = true;
    request.options.reconnect_ms = (int32_t)c->reconnect_ms;
    return request;
}

static sl_err greet(sl_consuming *c, const sl_consuming_output *output)
{
    const size_t bytes = (c->holding.count + 1) * sizeof(sl_uuid);
    sl_persistent_request request = make_options(c);
    sl_uuid *const resume = sl_alloc_take(c->alloc, bytes);
    sl_err err;

    if (resume == NULL)
        return SL_ERR_NOMEM;
    if (c->extensions)
        request.options.resume =
            (sl_wire_ids){ .count = list_resumed(c, resume), .list = resume, .form = SL_WIRE_ID_STRUCTURED };
    err = send(c, output, &request);
    c->is_greeted = err == SL_OK;
    c->resumed_count = (uint32_t)request.options.resume.count;
    sl_alloc_give(c->alloc, resume, bytes);
    return err;
}

/* --- lists of ids --- */

/* Which of the queues, and what keeps two of its entries out of one message. */
typedef struct kind {
    sl_persistent_request_kind request;
    size_t node_offset;
    bool (*fits)(const sl_holding_entry *first, const sl_holding_entry *other);
} kind;

static bool always(const sl_holding_entry *first, const sl_holding_entry *other)
{
    (void)first;
    (void)other;
    return true;
}

static bool same_lease(const sl_holding_entry *first, const sl_holding_entry *other)
{
    return first->extend_ms == other->extend_ms;
}

static bool same_words(const sl_holding_entry *first, const sl_holding_entry *other)
{
    return first->words == other->words;
}

static size_t collect(sl_consuming *c, const sl_list *queue, const kind *what, size_t count_max)
{
    size_t count = 0;

    SL_LIST_EACH (node, (sl_list *)(uintptr_t)queue) {
        sl_holding_entry *const held = (sl_holding_entry *)((uintptr_t)node - what->node_offset);
        if (count == count_max || (count > 0 && !what->fits(c->batch[0], held)))
            break;
        c->batch[count] = held;
        c->ids[count++] = held->id;
    }
    return count;
}

static void fill_in(const sl_consuming *c, sl_persistent_request *request)
{
    const sl_holding_entry *const first = c->batch[0];

    if (request->kind == SL_PERSISTENT_REQUEST_EXTEND)
        request->lease_ms = (int32_t)sl_min_u64(first->extend_ms, INT32_MAX);
    if (request->kind != SL_PERSISTENT_REQUEST_NACK)
        return;
    request->action = first->words == NULL ? SL_WIRE_NACK_RETRY : first->words->action;
    if (first->words == NULL)
        return;
    request->reason = (sl_str){ first->words->text, first->words->bytes };
    if (c->keeps_delays)
        request->delay_ms = (int32_t)sl_min_u64(first->words->delay_ms, INT32_MAX);
}

/* The ids in c->ids, of the entries in c->batch. */
static sl_err send_ids(sl_consuming *c, const sl_consuming_output *output, sl_persistent_request_kind which,
                       size_t count)
{
    sl_persistent_request request = { .kind = which };

    request.ids = (sl_wire_ids){ .count = count, .list = c->ids, .form = SL_WIRE_ID_STRUCTURED };
    fill_in(c, &request);
    return send(c, output, &request);
}

/* --- the promise --- */

/* What is being worked on, or was done by an earlier process: the server may have died before it could read that. */
static bool was_begun(const sl_holding_entry *held)
{
    return held->is_resumed && (held->started || held->is_recalled);
}

/* Says that starts will be told (an empty list does, too), and tells those of what is listed as still held. Right behind the options: a process
 * that dies before it can say more would have what it has finished given to others at once, as if nobody had begun it. */
static sl_err promise(sl_consuming *c, const sl_consuming_output *output)
{
    size_t count = 0;
    sl_err err = SL_OK;

    if (c->is_promised || !c->says_started || !c->extensions)
        return SL_OK;
    SL_LIST_EACH (node, &c->holding.all) {
        sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, all);

        if (err != SL_OK || !was_begun(held))
            continue;
        sl_list_remove(&held->start);
        c->ids[count++] = held->id;
        if (count == SL_CONSUMING_IDS_MAX) {
            err = send_ids(c, output, SL_PERSISTENT_REQUEST_STARTED, count);
            count = 0;
        }
    }
    if (err == SL_OK)
        err = send_ids(c, output, SL_PERSISTENT_REQUEST_STARTED, count);
    c->is_promised = err == SL_OK;
    c->sends_started = c->sends_started || c->is_promised;
    return err;
}

/* --- what says nothing final --- */

/* A start that is followed by its ack in the same turn tells nothing, once the server knows that we tell of starts. */
static void set_aside_needless(sl_consuming *c, sl_list *ret_aside)
{
    sl_list_init(ret_aside);
    SL_LIST_EACH_SAFE (node, &c->holding.starts) {
        const sl_holding_entry *const held = SL_CONTAINER_OF(node, sl_holding_entry, start);

        if (!c->sends_started || held->verb != SL_HOLDING_ACK)
            continue;
        sl_list_remove(node);
        sl_list_push_back(ret_aside, node);
    }
}

static sl_err flush_marks(sl_consuming *c, const sl_consuming_output *output, sl_list *queue,
                          const kind *what)
{
    while (!sl_list_empty(queue)) {
        const size_t count = collect(c, queue, what, SL_CONSUMING_IDS_MAX);
        const sl_err err = send_ids(c, output, what->request, count);

        if (err != SL_OK)
            return err;
        for (size_t i = 0; i < count; i++)
            sl_list_remove((sl_list *)((uintptr_t)c->batch[i] + what->node_offset));
        c->sends_started = c->sends_started || what->request == SL_PERSISTENT_REQUEST_STARTED;
    }
    return SL_OK;
}

static void forget(sl_list *queue)
{
    SL_LIST_EACH_SAFE (node, queue)
        sl_list_remove(node);
}

/* --- what ends a lease --- */

/* Without extensions nobody will answer, so sending is the end of it; but one that leaves wants to know that it was read. */
static void mark_said(sl_consuming *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c->extensions || c->stop_wanted)
            sl_holding_said(&c->holding, c->batch[i]);
        else
            consuming_finish_unanswered(c, c->batch[i]);
}

static size_t unanswered_room(const sl_consuming *c)
{
    const uint32_t said = c->holding.said_count;
    const size_t room = said < SL_CONSUMER_UNANSWERED_MAX ? SL_CONSUMER_UNANSWERED_MAX - said : 0;

    return (size_t)sl_min_u64(room, SL_CONSUMING_IDS_MAX);
}

static sl_err flush_verb(sl_consuming *c, const sl_consuming_output *output, sl_holding_verb verb,
                         const kind *what)
{
    sl_list *const queue = &c->holding.queues[verb];

    while (!sl_list_empty(queue) && unanswered_room(c) > 0) {
        const size_t count = collect(c, queue, what, unanswered_room(c));
        const sl_err err = send_ids(c, output, what->request, count);

        if (err != SL_OK)
            return err;
        mark_said(c, count);
    }
    return SL_OK;
}

/* --- stop --- */

static sl_err flush_stop(sl_consuming *c, const sl_consuming_output *output)
{
    const bool is_due =
        c->stop_wanted && c->extensions && (!c->stop_said || (c->hand_back_wanted && !c->hand_back_said));
    sl_persistent_request request = { .kind = SL_PERSISTENT_REQUEST_STOP };
    sl_err err;

    if (!is_due)
        return SL_OK;
    request.hand_back_unstarted = c->hand_back_wanted;
    err = send(c, output, &request);
    if (err == SL_OK) {
        c->stop_said = true;
        c->hand_back_said = c->hand_back_wanted;
    }
    return err;
}

/* --- all of it --- */

static sl_err flush_said(sl_consuming *c, const sl_consuming_output *output)
{
    static const kind starts = { SL_PERSISTENT_REQUEST_STARTED, offsetof(sl_holding_entry, start), always };
    static const kind extends = { SL_PERSISTENT_REQUEST_EXTEND, offsetof(sl_holding_entry, extend),
                                  same_lease };
    static const kind acks = { SL_PERSISTENT_REQUEST_ACK, offsetof(sl_holding_entry, queue), always };
    static const kind nacks = { SL_PERSISTENT_REQUEST_NACK, offsetof(sl_holding_entry, queue), same_words };
    static const kind releases = { SL_PERSISTENT_REQUEST_RELEASE, offsetof(sl_holding_entry, queue), always };
    sl_list aside;
    sl_err err;

    if (!c->extensions) {
        forget(&c->holding.starts);
        forget(&c->holding.extends);
    }
    set_aside_needless(c, &aside);
    err = flush_marks(c, output, &c->holding.starts, &starts);
    if (err == SL_OK)
        err = flush_marks(c, output, &c->holding.extends, &extends);
    if (err == SL_OK)
        err = flush_verb(c, output, SL_HOLDING_ACK, &acks);
    /* Those whose acks wait for room after all: to a server that has heard of neither they are not begun, and a Stop hands them back. */
    sl_list_splice(&c->holding.starts, &aside);
    if (err == SL_OK)
        err = flush_marks(c, output, &c->holding.starts, &starts);
    if (err == SL_OK)
        err = flush_verb(c, output, SL_HOLDING_NACK, &nacks);
    if (err == SL_OK)
        err = flush_verb(c, output, SL_HOLDING_RELEASE, c->extensions ? &releases : &nacks);
    return err == SL_OK ? flush_stop(c, output) : err;
}

sl_err sl_consuming_flush(sl_consuming *c, const sl_consuming_output *output)
{
    sl_err err;

    if (!c->is_open)
        return SL_OK;
    err = c->is_greeted ? SL_OK : greet(c, output);
    if (err == SL_OK)
        err = promise(c, output);
    if (err != SL_OK)
        return err;
    return c->is_confirmed ? flush_said(c, output) : SL_OK;
}

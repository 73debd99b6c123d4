/* server/streams/multi_ops.c — the batch of a plan, and what its answer says about each stream. */
#include "server/streams/multi_plan.h"

#include "server/streams/multi_reply.h"

#include <assert.h>
#include <string.h>

/* --- what a stream is at --- */

int64_t sl_plan_actual(const sl_plan *plan, sl_str name)
{
    sl_stream_info info;

    sl_store_stream(plan->request->host->store, name, &info);
    switch (info.state) {
    case SL_STREAM_MISSING: return SL_STATE_NO_STREAM;
    case SL_STREAM_LIVE: return (int64_t)info.revision;
    case SL_STREAM_SOFT_DELETED: return SL_STATE_DELETED;
    case SL_STREAM_TOMBSTONED: return SL_STATE_TOMBSTONED;
    }
    return SL_STATE_NO_STREAM;
}

/* A stream without events exists when it has metadata: that is how the store decides. */
static bool has_metadata(const sl_plan *plan, sl_str name)
{
    char buffer[SL_STREAM_NAME_BYTES_MAX + 3];
    sl_stream_info info;
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "$$");
    sl_text_add_str(&text, name);
    sl_store_stream(plan->request->host->store, sl_text_str(&text), &info);
    return info.revision != SL_REVISION_NONE;
}

bool sl_plan_holds(const sl_plan *plan, sl_str name, int64_t expected)
{
    sl_stream_info info;

    sl_store_stream(plan->request->host->store, name, &info);
    switch (expected) {
    case SL_STATE_ANY: return true;
    case SL_STATE_NO_STREAM: return info.state == SL_STREAM_MISSING || info.state == SL_STREAM_SOFT_DELETED;
    case SL_STATE_EXISTS:
        return info.state == SL_STREAM_LIVE || (info.state == SL_STREAM_MISSING && has_metadata(plan, name));
    case SL_STATE_DELETED: return info.state == SL_STREAM_SOFT_DELETED;
    case SL_STATE_TOMBSTONED: return info.state == SL_STREAM_TOMBSTONED;
    default:
        return expected >= 0 && info.state != SL_STREAM_TOMBSTONED && info.revision == (uint64_t)expected;
    }
}

/* --- expectations --- */

/* Of the first run. States that only a check can ask for were looked at before. */
static sl_expected first_expected(const sl_plan_stream *stream)
{
    if (stream->expected >= 0)
        return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = (uint64_t)stream->expected };
    switch (stream->expected) {
    case SL_STATE_NO_STREAM: return (sl_expected){ .kind = SL_EXPECT_NO_STREAM };
    case SL_STATE_EXISTS: return (sl_expected){ .kind = SL_EXPECT_STREAM_EXISTS };
    default: return (sl_expected){ .kind = SL_EXPECT_ANY };
    }
}

/* Of a later run: behind what the earlier ones wrote, or had written when this append is a repetition. Where nothing exact is
 * expected, ids tell. */
static sl_expected later_expected(const sl_plan *plan, const sl_plan_stream *stream)
{
    sl_stream_info info;

    if (stream->expected >= 0)
        return (sl_expected){ .kind = SL_EXPECT_EXACT,
                              .revision = (uint64_t)stream->expected + stream->written };
    if (stream->expected != SL_STATE_NO_STREAM)
        return (sl_expected){ .kind = SL_EXPECT_ANY };
    sl_store_stream(plan->request->host->store, stream->name, &info);
    if (info.state == SL_STREAM_SOFT_DELETED) /* it goes on behind what was deleted */
        return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = info.revision + stream->written };
    return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = stream->written - 1 };
}

/* --- ops --- */

static uint32_t run_end(const sl_plan *plan, uint32_t from)
{
    uint32_t end = from + 1;

    while (end < plan->event_count && plan->owners[end] == plan->owners[from])
        end++;
    return end;
}

static uint32_t run_count(const sl_plan *plan)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->event_count; i = run_end(plan, i))
        count++;
    return count;
}

/* All events of a stream behind each other, in their order; streams in the order in which they came. */
static bool sort_by_stream(sl_plan *plan)
{
    const sl_alloc *const alloc = plan->request->host->alloc;
    const size_t rows_bytes = plan->event_capacity * sizeof *plan->events;
    sl_event_in *const sorted = sl_alloc_take(alloc, rows_bytes);
    uint32_t at = 0;

    if (sorted == NULL)
        return false;
    for (uint32_t i = 0; i < plan->stream_count;
         i++) { /* `written` is where the next one of the stream goes */
        plan->streams[i]->written = at;
        at += plan->streams[i]->event_count;
    }
    for (uint32_t i = 0; i < plan->event_count; i++)
        sorted[plan->streams[plan->owners[i]]->written++] = plan->events[i];
    at = 0;
    for (uint32_t i = 0; i < plan->stream_count; i++)
        for (uint32_t n = 0; n < plan->streams[i]->event_count; n++)
            plan->owners[at++] = i;
    sl_alloc_give(alloc, plan->events, rows_bytes);
    plan->events = sorted;
    return true;
}

static bool reserve_ops(sl_plan *plan, uint32_t count)
{
    const sl_alloc *const alloc = plan->request->host->alloc;

    if (count <= plan->op_capacity)
        return true;
    assert(plan->op_capacity == 0); /* records do not change between two attempts */
    plan->ops = sl_alloc_take(alloc, count * sizeof *plan->ops);
    plan->op_owners = sl_alloc_take(alloc, count * sizeof *plan->op_owners);
    if (plan->ops != NULL && plan->op_owners != NULL) {
        plan->op_capacity = count;
        return true;
    }
    if (plan->ops != NULL)
        sl_alloc_give(alloc, plan->ops, count * sizeof *plan->ops);
    if (plan->op_owners != NULL)
        sl_alloc_give(alloc, plan->op_owners, count * sizeof *plan->op_owners);
    plan->ops = NULL;
    plan->op_owners = NULL;
    return false;
}

static void add_op(sl_plan *plan, uint32_t from, uint32_t end)
{
    sl_plan_stream *const stream = plan->streams[plan->owners[from]];

    plan->ops[plan->op_count] = (sl_op){
        .kind = SL_OP_APPEND,
        .append = { .stream = stream->name,
                    .expected = stream->written == 0 ? first_expected(stream) : later_expected(plan, stream),
                    .events = plan->events + from,
                    .event_count = end - from },
    };
    plan->op_owners[plan->op_count] = stream->index;
    stream->last_op = plan->op_count++;
    stream->written += end - from;
}

bool sl_plan_batch(sl_plan *plan, sl_batch *ret_batch)
{
    const bool fits = run_count(plan) <= SL_BATCH_OPS_MAX || sort_by_stream(plan);
    const uint32_t count = run_count(plan);

    if (count > plan->op_capacity &&
        !sl_plan_claim(plan, count * (sizeof *plan->ops + sizeof *plan->op_owners)))
        return false;
    if (!fits || !reserve_ops(plan, count)) {
        sl_multi_reply_error(plan->request, SL_ERR_NOMEM);
        return false;
    }
    plan->op_count = 0;
    for (uint32_t i = 0; i < plan->stream_count; i++)
        plan->streams[i]->written = 0;
    for (uint32_t i = 0, end; i < plan->event_count; i = end) {
        end = run_end(plan, i);
        add_op(plan, i, end);
    }
    *ret_batch = (sl_batch){ .ops = plan->ops, .op_count = plan->op_count, .durability = SL_DURABLE_SYNC };
    return true;
}

/* --- the answer --- */

int64_t sl_plan_revision(const sl_plan *plan, const sl_commit *commit, const sl_plan_stream *stream)
{
    assert(stream->event_count > 0 && stream->last_op < plan->op_count);
    return (int64_t)commit->results[stream->last_op].revision;
}

/* Of the newest event: the last op has it, unless some of them repeat what was written before. */
int64_t sl_plan_position(const sl_plan *plan, const sl_commit *commit)
{
    uint64_t position = 0;

    for (uint32_t i = 0; i < plan->op_count; i++)
        if (commit->results[i].position > position)
            position = commit->results[i].position;
    return (int64_t)position;
}

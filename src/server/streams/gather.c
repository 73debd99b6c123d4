/* server/streams/gather.c — texts go into an arena, so they never move; the rows that point at them are one array. */
#include "server/streams/gather.h"

#include "server/streams/proposed.h"

#include <string.h>

enum {
    CHUNK_BYTES = 8 * 1024,
    ROWS_FIRST = 16,
};

/* --- claims --- */

/* How much all may hold, for one that holds so much of it. */
static uint64_t limit_for(uint64_t bytes)
{
    return bytes > SL_GATHER_SMALL_BYTES ? SL_GATHERED_BYTES_MAX - SL_GATHER_RESERVE_BYTES
                                         : SL_GATHERED_BYTES_MAX;
}

sl_err sl_gather_claim_add(sl_gather_claim *claim, uint64_t bytes)
{
    if (bytes > 0 && claim->host->gathered_bytes + bytes > limit_for(claim->bytes + bytes))
        return SL_ERR_FULL;
    claim->host->gathered_bytes += bytes;
    claim->bytes += bytes;
    return SL_OK;
}

void sl_gather_claim_end(sl_gather_claim *claim)
{
    if (claim->host != NULL)
        claim->host->gathered_bytes -= claim->bytes;
    claim->bytes = 0;
}

/* --- events --- */

void sl_gather_init(sl_gather *gather, sl_host *host)
{
    *gather = (sl_gather){ .claim.host = host };
    sl_arena_init(&gather->texts, host->alloc, (sl_arena_sizes){ CHUNK_BYTES, SIZE_MAX / 2 });
}

void sl_gather_done(sl_gather *gather)
{
    if (gather->events != NULL)
        sl_alloc_give(gather->claim.host->alloc, gather->events,
                      gather->event_capacity * sizeof *gather->events);
    sl_arena_done(&gather->texts);
    sl_gather_claim_end(&gather->claim);
    gather->events = NULL;
    gather->event_count = gather->event_capacity = 0;
    gather->size = gather->stored_bytes = 0;
}

/* Room for one more row. */
static sl_err grow(sl_gather *gather)
{
    const size_t old_bytes = gather->event_capacity * sizeof *gather->events;
    const uint32_t capacity = gather->event_capacity == 0 ? ROWS_FIRST : 2 * gather->event_capacity;
    const size_t new_bytes = capacity * sizeof *gather->events;
    sl_event_in *events;

    if (gather->event_count < gather->event_capacity)
        return SL_OK;
    if (sl_gather_claim_add(&gather->claim, new_bytes - old_bytes) != SL_OK)
        return SL_ERR_FULL;
    events = sl_alloc_resize(gather->claim.host->alloc, gather->events, old_bytes, new_bytes);
    if (events == NULL)
        return SL_ERR_NOMEM;
    gather->events = events;
    gather->event_capacity = capacity;
    return SL_OK;
}

/* The bytes behind `at`, and the text that they now are. */
static char *put_text(char *at, sl_str *text)
{
    if (text->bytes > 0)
        memcpy(at, text->data, text->bytes);
    text->data = at;
    return at + text->bytes;
}

sl_err sl_gather_text(sl_gather *gather, sl_str text, sl_str *ret_copy)
{
    const sl_err err = sl_gather_claim_add(&gather->claim, text.bytes);
    char *const copy = err == SL_OK ? sl_arena_alloc(&gather->texts, text.bytes) : NULL;

    if (copy == NULL)
        return err == SL_OK ? SL_ERR_NOMEM : err;
    put_text(copy, &text);
    *ret_copy = text;
    return SL_OK;
}

/* What the store will count, besides the name of the stream. */
static uint64_t stored_bytes(const sl_event_in *event)
{
    return SL_RECORD_HEAD_BYTES + event->type.bytes + event->data.bytes + event->metadata.bytes;
}

static sl_err check_limits(const sl_gather *gather, const sl_event_in *event)
{
    if (gather->size + sl_event_size(event) > gather->claim.host->settings->append_bytes_max)
        return SL_ERR_TOO_LARGE;
    return gather->stored_bytes + stored_bytes(event) > SL_BATCH_BYTES_MAX ? SL_ERR_TOO_LARGE : SL_OK;
}

sl_err sl_gather_add(sl_gather *gather, const sl_event_in *event)
{
    const size_t bytes = event->type.bytes + event->data.bytes + event->metadata.bytes;
    sl_event_in *row;
    char *at = NULL;
    sl_err err = check_limits(gather, event);

    if (err == SL_OK)
        err = grow(gather);
    if (err == SL_OK)
        err = sl_gather_claim_add(&gather->claim, bytes);
    if (err != SL_OK)
        return err;
    at = sl_arena_alloc(&gather->texts, bytes);
    if (at == NULL)
        return SL_ERR_NOMEM;
    row = &gather->events[gather->event_count++];
    *row = *event;
    at = put_text(at, &row->type);
    at = put_text(at, &row->data);
    (void)put_text(at, &row->metadata);
    gather->size += sl_event_size(event);
    gather->stored_bytes += stored_bytes(event);
    return SL_OK;
}

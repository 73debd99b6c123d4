/* server/streams/resolve.c — parsing links, and the one cursor that fetches their targets. */
#include "server/streams/resolve.h"

#include <assert.h>
#include <string.h>

typedef struct place { /* where a link points to */
    sl_str stream;
    uint64_t revision;
} place;

void sl_resolver_init(sl_resolver *resolver, sl_host *host, const sl_identity *identity,
                      sl_reader_node *reader)
{
    resolver->host = host;
    resolver->identity = identity;
    resolver->reader = reader;
    resolver->cursor = NULL;
    resolver->link = 0;
    resolver->has_target = false;
}

static void drop_cursor(sl_resolver *resolver)
{
    if (resolver->cursor != NULL)
        sl_cursor_close(resolver->cursor);
    resolver->cursor = NULL;
    resolver->has_target = false;
}

void sl_resolver_done(sl_resolver *resolver)
{
    drop_cursor(resolver);
    resolver->link = 0;
}

bool sl_event_is_link(const sl_event *event)
{
    return event->type.bytes == 2 && memcmp(event->type.data, "$>", 2) == 0;
}

/* Without an `@` it is a link all the same, but one to nowhere; so is one whose stream nobody can have written. */
static sl_err parse(sl_str data, place *ret_place)
{
    sl_str number = data, stream = { 0 };
    uint64_t revision;

    (void)sl_str_cut(data, '@', &number, &stream);
    if (sl_str_parse_u64(number, &revision) != SL_OK || revision > SL_REVISION_MAX)
        return SL_ERR_INVALID;
    if (stream.bytes == 0 || stream.bytes > SL_STREAM_NAME_BYTES_MAX || revision == SL_REVISION_MAX)
        return SL_ERR_NOT_FOUND;
    *ret_place = (place){ stream, revision };
    return SL_OK;
}

/* A cursor only goes forwards, and reading over many events to spare an opening would be no gain. */
static bool stands_at(const sl_resolver *resolver, const place *wanted)
{
    const sl_str stream = { resolver->stream, resolver->stream_bytes };

    return resolver->cursor != NULL && resolver->next == wanted->revision &&
           sl_str_equal(stream, wanted->stream);
}

static sl_err go_to(sl_resolver *resolver, const place *wanted, uint64_t now_ns)
{
    const sl_read read = { .stream = wanted->stream, .from = wanted->revision, .now_ns = now_ns };

    drop_cursor(resolver);
    memcpy(resolver->stream, wanted->stream.data, wanted->stream.bytes);
    resolver->stream_bytes = wanted->stream.bytes;
    resolver->next = wanted->revision;
    return sl_store_read(resolver->host->store, &read, &resolver->cursor);
}

/* SL_ERR_EMPTY when the cursor has nothing left. */
static sl_err take_next(sl_resolver *resolver)
{
    uint32_t count = 0;
    const sl_err err = sl_cursor_next(resolver->cursor, &resolver->target, 1, &count);

    resolver->has_target = err == SL_OK;
    if (err == SL_OK)
        resolver->next = resolver->target.revision + 1;
    else if (err != SL_ERR_AGAIN)
        drop_cursor(resolver); /* so that the next link to this stream sees how it is then */
    return err;
}

/* The cursor gives the first event at or after the one that is wanted: another one means that this one is hidden. */
static sl_err fetch(sl_resolver *resolver, const place *wanted, uint64_t now_ns)
{
    sl_err err = stands_at(resolver, wanted) ? SL_OK : go_to(resolver, wanted, now_ns);

    if (err == SL_OK)
        err = take_next(resolver);
    if (err == SL_ERR_EMPTY || err == SL_ERR_STREAM_DELETED)
        return SL_ERR_NOT_FOUND;
    if (err != SL_OK)
        return err;
    return resolver->target.revision == wanted->revision ? SL_OK : SL_ERR_NOT_FOUND;
}

/* SL_OK: he may. Who may not sees what he would see if there were nothing. Asked for each link, also for one that was found
 * before: rights are taken away while a reader waits for room. */
static sl_err ask_access(const sl_resolver *resolver, sl_str stream)
{
    switch (sl_access_check(resolver->host->access, resolver->identity, stream, SL_ACTION_READ,
                            resolver->reader)) {
    case SL_ACCESS_ALLOWED: return SL_OK;
    case SL_ACCESS_DENIED: return SL_ERR_NOT_FOUND;
    case SL_ACCESS_PENDING:
        return SL_ERR_AGAIN; /* the reader was queued for the disk, which is what AGAIN means */
    case SL_ACCESS_FAILED: break;
    }
    return SL_ERR_IO;
}

sl_err sl_resolver_find(sl_resolver *resolver, const sl_event *link, uint64_t now_ns, sl_event *ret_target)
{
    const bool again = resolver->link == link->position; /* the caller could not use it the first time */
    place wanted;
    sl_err err = parse(link->data, &wanted);

    assert(link->position != 0);
    if (err == SL_OK)
        err = ask_access(resolver, wanted.stream);
    if (err != SL_OK)
        return err;
    resolver->link = link->position;
    if (!again || !resolver->has_target || resolver->target.revision != wanted.revision)
        err = fetch(resolver, &wanted, now_ns);
    if (err == SL_OK)
        *ret_target = resolver->target;
    return err;
}

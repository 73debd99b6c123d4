/* server/groups/desk_fetch.c — events that were sent are not kept; one that has to be sent again is read again.
 *
 * Most messages are sent once and settled. What stays in memory while a consumer works is what the core knows, and not the event:
 * thousands of outstanding messages cost the same whether they are large or small. Only what the store surely has is let go: an
 * event of the group's own stream, as long as nothing limits the age or number of events there. If the stream is deleted or truncated
 * meanwhile, the log still has the event at its position. Only after a scavenge it is gone when it is needed: then it is passed
 * over and counts as settled, as after a restart.
 *
 * One is read at a time, for all seats; a seat whose next event is on its way from the disk waits, so the order of what it hears
 * stays. */
#include "server/groups/desk_private.h"

#include <assert.h>

enum {
    TARGET_BYTES = SL_STREAM_NAME_BYTES_MAX + 32
};

/* --- letting go --- */

bool desk_fetch_can(const sl_desk *desk, sl_place place, const sl_wire_read_event *event)
{
    return place.lane == SL_LANE_MAIN && !desk->definition.of_all && event->has_event && !event->has_link &&
           place.position < SL_REVISION_MAX; /* that of a tombstone, which is read only once */
}

bool desk_fetch_is_sure(const sl_desk *desk)
{
    sl_stream_info info;

    if (desk->definition.of_all)
        return false;
    sl_store_stream(desk->host->store, desk->definition.stream, &info);
    return info.state == SL_STREAM_LIVE && info.max_count == 0 && info.max_age_s == 0 &&
           info.truncate_before == 0;
}

/* --- reading again --- */

static void wake_seats(void *ctx)
{
    sl_desk *const desk = ctx;

    desk->fetch.is_waiting = false;
    SL_LIST_EACH (node, &desk->seats) {
        sl_seat *const seat = SL_CONTAINER_OF(node, sl_seat, node);

        if (!seat->waits_for_event)
            continue;
        seat->waits_for_event = false;
        sl_list_remove(&seat->ready);
        sl_list_push_back(&desk->ready_seats, &seat->ready);
    }
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

static bool begin(sl_desk *desk)
{
    desk_fetch *const fetch = &desk->fetch;

    if (fetch->resolver != NULL)
        return true;
    fetch->resolver = sl_alloc_take(desk->host->alloc, sizeof *fetch->resolver);
    if (fetch->resolver == NULL)
        return false;
    fetch->identity = (sl_identity){ .is_trusted = true }; /* it was read before, for this group */
    sl_reader_init(&fetch->node, SL_STR(""), wake_seats, desk);
    sl_resolver_init(fetch->resolver, desk->host, &fetch->identity, &fetch->node);
    return true;
}

static void close_cursor(desk_fetch *fetch)
{
    if (fetch->cursor != NULL)
        sl_cursor_close(fetch->cursor);
    fetch->cursor = NULL;
}

/* What the disk brings is in the cursor, so a place for it is needed while it waits. */
static void wait_for_disk(sl_desk *desk)
{
    sl_tail *const tail = desk->host->tail;
    desk_fetch *const fetch = &desk->fetch;

    fetch->is_waiting = true;
    if (sl_tail_take_place(tail, &fetch->node)) {
        sl_tail_wait_disk(tail, &fetch->node);
        return;
    }
    close_cursor(fetch);
    sl_resolver_done(fetch->resolver);
    sl_tail_wait_place(tail, &fetch->node);
}

/* Whatever its stream shows. */
static sl_err find_in_log(sl_desk *desk, uint64_t position, sl_event *ret_event)
{
    desk_fetch *const fetch = &desk->fetch;
    const sl_read read = { .from = position, .now_ns = sl_clock_wall_ns(desk->host->clock) };
    uint32_t count = 0;
    sl_err err = SL_OK;

    if (fetch->cursor == NULL || fetch->cursor_from != position) {
        close_cursor(fetch);
        fetch->cursor_from = position;
        err = sl_store_read(desk->host->store, &read, &fetch->cursor);
    }
    if (err == SL_OK)
        err = sl_cursor_next(fetch->cursor, ret_event, 1, &count);
    if (err == SL_ERR_EMPTY || (err == SL_OK && ret_event->position != position))
        return SL_ERR_NOT_FOUND;
    return err;
}

static sl_err find_in_stream(sl_desk *desk, uint64_t revision, sl_event *ret_event)
{
    char target[TARGET_BYTES];
    sl_text text;
    sl_event link = { .position = revision + 1, .type = SL_STR("$>") };

    sl_text_init(&text, target, sizeof target);
    sl_text_add_u64(&text, revision);
    sl_text_add_char(&text, '@');
    sl_text_add_str(&text, desk->definition.stream);
    link.data = sl_text_str(&text);
    return sl_resolver_find(desk->fetch.resolver, &link, sl_clock_wall_ns(desk->host->clock), ret_event);
}

sl_err desk_fetch_event(sl_desk *desk, desk_entry *entry, sl_wire_id_form id_form)
{
    sl_wire_read_event out = { .position_kind = SL_WIRE_POSITION_GIVEN, .has_event = true };
    sl_event event;
    sl_err err;

    assert(entry->body == NULL && entry->can_fetch);
    if (desk->fetch.is_waiting)
        return SL_ERR_AGAIN; /* for another, whose cursor it is */
    if (!begin(desk))
        return SL_ERR_NOMEM;
    err = find_in_stream(desk, entry->position, &event);
    if (err == SL_ERR_NOT_FOUND)
        err = find_in_log(desk, entry->log_position, &event);
    if (err == SL_ERR_AGAIN)
        wait_for_disk(desk);
    if (err != SL_OK)
        return err;
    out.commit_position = event.position;
    desk_recorded_fill(&out.event, &event, id_form, event.position);
    return desk_entry_fill(desk, entry, &out);
}

void desk_fetch_rest(sl_desk *desk)
{
    desk_fetch *const fetch = &desk->fetch;

    if (fetch->resolver == NULL || fetch->is_waiting)
        return;
    close_cursor(fetch);
    sl_resolver_done(fetch->resolver);
    sl_tail_leave_place(desk->host->tail, &fetch->node);
}

void desk_fetch_stop(sl_desk *desk)
{
    desk_fetch *const fetch = &desk->fetch;

    if (fetch->resolver == NULL)
        return;
    sl_tail_forget(desk->host->tail, &fetch->node);
    fetch->is_waiting = false;
    desk_fetch_rest(desk);
    desk_give(desk->host->alloc, fetch->resolver, sizeof *fetch->resolver);
    fetch->resolver = NULL;
}

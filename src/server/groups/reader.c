/* server/groups/reader.c — what a group is offered: its stream or $all, and its parked messages while they are replayed.
 *
 *      cursor --> page --> filter --> link resolved --> encoded once --> offer
 *
 * One reader for each lane. Each works in runs, and each run ends with what it waits for: room in the group, a commit, the disk, or only
 * its next turn. The position of a message in the main lane is its revision, or its position for $all; in the lane of
 * parked messages it is the revision of the link. What cannot be read any more is passed over, and the core settles what it knew
 * of it. */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"
#include "server/auth.h"
#include "server/groups/names.h"
#include "server/streams/hidden.h"
#include "store/metadata.h"

#include <assert.h>
#include <cjson/cJSON.h>

enum {
    PAGES_HELD_MAX = 64,           /* of readers that wait for room, all groups together */
    EVENT_HELD_BYTES = 256 * 1024, /* a page with a larger event is not kept */
};

/* What a filter or links make a run take, so that the time is looked at. */
#define RUN_NS (UINT64_C(500) * 1000)

typedef enum step {
    GOES_ON,
    NEEDS_ROOM,
    NEEDS_DISK,
    NEEDS_COMMIT,
    IS_OVER, /* it does not read any more, or the desk has failed */
} step;

static sl_group *group_of(const desk_reader *reader)
{
    return reader->desk->group;
}

static bool reads_all(const desk_reader *reader)
{
    return reader->lane == SL_LANE_MAIN && reader->desk->definition.of_all;
}

static sl_str stream_of(const desk_reader *reader)
{
    if (reader->lane == SL_LANE_PARKED)
        return sl_str_from(reader->desk->parked);
    return reads_all(reader) ? SL_STR("") : reader->desk->definition.stream;
}

static sl_place place_of(const desk_reader *reader, const sl_event *event)
{
    return (sl_place){ reader->lane, reads_all(reader) ? event->position : event->revision };
}

static bool resolves_links(const desk_reader *reader)
{
    return reader->lane == SL_LANE_PARKED || reader->desk->definition.settings.resolve_links;
}

/* --- the store --- */

static void close_cursors(desk_reader *reader)
{
    if (reader->cursor != NULL)
        sl_cursor_close(reader->cursor);
    reader->cursor = NULL;
    if (reader->resolver != NULL)
        sl_resolver_done(reader->resolver);
    reader->page_at = reader->page_count = 0;
}

static void drop_page(desk_reader *reader)
{
    desk_give(reader->desk->host->alloc, reader->page, DESK_PAGE_EVENTS * sizeof *reader->page);
    reader->page = NULL;
    reader->page_at = reader->page_count = 0;
}

static sl_err open_cursor(desk_reader *reader)
{
    const sl_read read = { .stream = stream_of(reader),
                           .from = sl_group_read_from(group_of(reader), reader->lane),
                           .now_ns = sl_clock_wall_ns(reader->desk->host->clock) };

    return sl_store_read(reader->desk->host->store, &read, &reader->cursor);
}

static sl_err fetch_page(desk_reader *reader)
{
    sl_err err = reader->cursor == NULL ? open_cursor(reader) : SL_OK;

    if (err != SL_OK)
        return err == SL_ERR_NOT_FOUND ? SL_ERR_EMPTY : err;
    if (reader->page == NULL)
        reader->page = sl_alloc_take(reader->desk->host->alloc, DESK_PAGE_EVENTS * sizeof *reader->page);
    if (reader->page == NULL)
        return SL_ERR_NOMEM;
    reader->page_at = reader->page_count = 0;
    err = sl_cursor_next(reader->cursor, reader->page, DESK_PAGE_EVENTS, &reader->page_count);
    if (err != SL_OK)
        reader->page_count = 0;
    return err;
}

static step fail(desk_reader *reader, sl_err err)
{
    desk_fail(reader->desk, err, "read");
    return IS_OVER;
}

/* --- the core --- */

static sl_err offer(desk_reader *reader, const sl_offer *offered)
{
    sl_desk *const desk = reader->desk;
    uint32_t taken;
    sl_err err;

    desk_enter(desk);
    err = sl_group_offer(desk->group, offered, 1, desk_now_ns(desk), &taken);
    desk_leave(desk);
    if (err == SL_OK)
        desk->reader_may_go = true; /* the other lane may have waited for this one */
    return err;
}

/* Everything up to here was looked at. */
static void advance(desk_reader *reader, uint64_t position, uint32_t considered)
{
    sl_desk *const desk = reader->desk;
    const sl_place place = { reader->lane, position };

    desk_enter(desk);
    (void)sl_group_advance(desk->group, place, considered, desk_now_ns(desk));
    desk_leave(desk);
    desk->reader_may_go = true;
    if (desk_parks_wait(desk))
        desk_park_read(desk, place, NULL);
}

static void tell_passed(desk_reader *reader)
{
    const uint32_t considered = reader->considered;

    reader->considered = 0;
    if (considered > 0)
        advance(reader, reader->passed, considered);
}

static step pass(desk_reader *reader, sl_place place)
{
    reader->considered++;
    reader->passed = place.position;
    return GOES_ON;
}

/* --- which key --- */

static bool find_correlation(const sl_event *event, uint64_t *ret_key)
{
    cJSON *const top = event->metadata.bytes == 0 ? NULL : sl_metadata_object(event->metadata);
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(top, "$correlationId"));

    if (text != NULL)
        *ret_key = sl_key_of(sl_str_from(text));
    cJSON_Delete(top);
    return text != NULL;
}

/* Of the event itself, or of the link when there is nothing behind it. */
static uint64_t key_of(const desk_reader *reader, const sl_event *event)
{
    const sl_strategy strategy = sl_group_settings(group_of(reader))->strategy;
    sl_str stream = event->stream, number;
    uint64_t key;

    if (!sl_strategy_is_pinned(strategy))
        return 0;
    if (strategy == SL_STRATEGY_PINNED_BY_CORRELATION && find_correlation(event, &key))
        return key;
    if (sl_event_is_link(event))
        (void)sl_str_cut(event->data, '@', &number, &stream);
    return sl_key_of(stream);
}

/* --- what is sent --- */

/* Both the event and the link get the position of what was read: clients expect it so (wire document, 4.1). */
void desk_recorded_fill(sl_wire_recorded *recorded, const sl_event *event, sl_wire_id_form id_form,
                        uint64_t position)
{
    *recorded = (sl_wire_recorded){
        .id = { event->id, id_form },
        .stream = event->stream,
        .revision = event->revision,
        .commit_position = position,
        .prepare_position = position,
        .type = event->type,
        .content_type = event->is_json ? SL_STR("application/json") : SL_STR("application/octet-stream"),
        .created_ticks = event->created_ns / SL_WIRE_TICK_NS,
        .custom_metadata = event->metadata,
        .data = event->data,
    };
}

/* SL_OK, SL_ERR_AGAIN, or what is wrong. *ret_target: what it is about. */
static sl_err fill_out(desk_reader *reader, const sl_event *event, sl_wire_read_event *out,
                       sl_event *ret_target)
{
    const uint64_t now_ns = sl_clock_wall_ns(reader->desk->host->clock);
    const bool is_link = resolves_links(reader) && sl_event_is_link(event);
    const sl_err err =
        is_link ? sl_resolver_find(reader->resolver, event, now_ns, ret_target) : SL_ERR_INVALID;

    out->position_kind = SL_WIRE_POSITION_GIVEN;
    out->commit_position = event->position;
    out->has_event = err == SL_OK || err == SL_ERR_INVALID;
    out->has_link = err == SL_OK || err == SL_ERR_NOT_FOUND;
    if (!out->has_event && !out->has_link)
        return err;
    if (err != SL_OK)
        *ret_target = *event;
    if (out->has_event)
        desk_recorded_fill(&out->event, ret_target, reader->id_form, event->position);
    if (out->has_link)
        desk_recorded_fill(&out->link, event, reader->id_form, event->position);
    return SL_OK;
}

/* --- one event --- */

/* NO: it is for nobody here. */
static sl_filter_verdict judge(const desk_reader *reader, const sl_event *event)
{
    const sl_desk *const desk = reader->desk;

    if (!reads_all(reader))
        return SL_FILTER_YES;
    if (sl_all_hides(event->stream))
        return SL_FILTER_NO;
    return desk->filter == NULL ? SL_FILTER_YES : sl_filter_judge(desk->filter, event->stream, event->type);
}

/* Settled before the restart: only said that it was seen, and linked to if it was parked before it was read again. */
static step pass_settled(desk_reader *reader, sl_place place, const sl_wire_read_event *out)
{
    sl_desk *const desk = reader->desk;
    const sl_offer offered = { .place = place };
    desk_entry *entry;

    if (desk_parks_wait(desk)) {
        entry = desk_entry_new(desk, place, out);
        if (entry == NULL)
            return fail(reader, SL_ERR_NOMEM);
        desk_park_read(desk, place, entry);
        desk_entry_forget(desk, entry);
    }
    return offer(reader, &offered) == SL_ERR_FULL ? NEEDS_ROOM : GOES_ON;
}

static step offer_event(desk_reader *reader, const sl_event *event, const sl_wire_read_event *out,
                        const sl_event *target)
{
    sl_desk *const desk = reader->desk;
    const sl_offer offered = { place_of(reader, event), event->id, key_of(reader, target) };
    desk_entry *entry;
    sl_err err;

    tell_passed(reader);
    if (!sl_group_wants(desk->group, offered.place))
        return pass_settled(reader, offered.place, out);
    entry = desk_entry_new(desk, offered.place, out);
    if (entry == NULL)
        return fail(reader, SL_ERR_NOMEM);
    err = offer(reader, &offered);
    if (err != SL_OK) {
        desk_entry_forget(desk, entry);
        return err == SL_ERR_FULL ? NEEDS_ROOM : fail(reader, err);
    }
    if (desk_parks_wait(desk))
        desk_park_read(desk, offered.place, NULL);
    reader->bytes_left -= sl_min_u64(reader->bytes_left, event->data.bytes + event->metadata.bytes);
    return GOES_ON;
}

/* Anybody who may write chooses such names; one of them must not end the group for everybody. */
static void log_gave_up(sl_desk *desk, const sl_event *event)
{
    sl_host *const host = desk->host;
    uint64_t unsaid;

    if (sl_seldom_may(&host->group_filter_failed, sl_clock_mono_ns(host->clock), &unsaid))
        sl_log(
            host->log, SL_LOG_WARN,
            "the expression of a group's filter needs too many steps for an event: it counts as not matching",
            SL_LOG_STR("group", desk->key), SL_LOG_U64("position", event->position),
            SL_LOG_U64("others_before", unsaid));
}

static step take(desk_reader *reader, const sl_event *event)
{
    const sl_place place = place_of(reader, event);
    const sl_filter_verdict verdict = judge(reader, event);
    sl_wire_read_event out = { 0 };
    sl_event target;
    sl_err err;

    if (place.position >= reader->end)
        return IS_OVER;
    if (verdict == SL_FILTER_GAVE_UP)
        log_gave_up(reader->desk, event);
    if (verdict != SL_FILTER_YES)
        return pass(reader, place);
    err = fill_out(reader, event, &out, &target);
    if (err == SL_ERR_AGAIN)
        return NEEDS_DISK;
    if (err != SL_OK)
        return fail(reader, err);
    if (reader->lane == SL_LANE_PARKED && !(out.has_event && out.has_link))
        return pass(reader, place); /* what was parked is gone, or never was a link */
    return offer_event(reader, event, &out, &target);
}

static void note_last(desk_reader *reader, const sl_event *event)
{
    sl_desk *const desk = reader->desk;

    if (reader->lane != SL_LANE_MAIN)
        return;
    desk->last_known = place_of(reader, event).position;
    desk->knows_last = true;
}

/* --- runs --- */

static bool has_room(const desk_reader *reader)
{
    const sl_desk *const desk = reader->desk;

    return !desk->at_door && desk->refused == NULL && desk->stuck_at == 0 &&
           desk->payload_bytes < SL_DESK_PAYLOAD_BYTES_MAX && sl_group_room(desk->group) > 0;
}

/* Everything there is was read. What records told of and was not met is gone. */
static step at_end(desk_reader *reader)
{
    tell_passed(reader);
    if (reader->known_end > sl_group_read_from(group_of(reader), reader->lane))
        advance(reader, reader->known_end - 1, 0);
    reader->known_end = 0;
    return reader->lane == SL_LANE_PARKED ? IS_OVER : NEEDS_COMMIT;
}

/* A stream that is tombstoned: the last event of it has been given out, if it was seen at all. */
static step at_tombstone(desk_reader *reader)
{
    const sl_desk *const desk = reader->desk;

    if (reader->lane == SL_LANE_PARKED)
        return at_end(reader);
    if (desk->knows_last && desk->last_known == SL_REVISION_MAX)
        return NEEDS_COMMIT;
    return fail(reader, SL_ERR_STREAM_DELETED);
}

static step read_one(desk_reader *reader)
{
    const sl_event *event;
    sl_err err;
    step next;

    if (sl_group_read_from(group_of(reader), reader->lane) >= reader->end)
        return IS_OVER;
    if (!has_room(reader))
        return NEEDS_ROOM;
    err = reader->page_at < reader->page_count ? SL_OK : fetch_page(reader);
    if (err == SL_ERR_EMPTY)
        return at_end(reader);
    if (err == SL_ERR_STREAM_DELETED)
        return at_tombstone(reader);
    if (err != SL_OK)
        return err == SL_ERR_AGAIN ? NEEDS_DISK : fail(reader, err);
    event = &reader->page[reader->page_at];
    next = take(reader, event);
    if (next == GOES_ON) {
        note_last(reader, event);
        reader->page_at++;
    }
    return next;
}

/* What was passed is told first, so that the next cursor begins behind it. */
static void put_down(desk_reader *reader)
{
    tell_passed(reader);
    sl_tail_leave_place(reader->desk->host->tail, &reader->node);
    close_cursors(reader);
    drop_page(reader);
}

static void finish(desk_reader *reader)
{
    reader->is_on = false;
    put_down(reader);
}

static void stop_holding(desk_reader *reader)
{
    if (reader->is_holding)
        reader->desk->host->counters.group_pages_held_now--;
    reader->is_holding = false;
}

/* With nobody to give anything to, the store's memory behind a cursor would be kept for nothing; and with thousands of groups only
 * some can keep it. */
static void wait_for_room(desk_reader *reader)
{
    const sl_desk *const desk = reader->desk;
    uint64_t *const held = &desk->host->counters.group_pages_held_now;
    const bool has_page = reader->page_at < reader->page_count;

    tell_passed(reader);
    sl_tail_leave_place(desk->host->tail, &reader->node);
    reader->waits_for_room = true;
    if (desk->seat_count > 0 && *held < PAGES_HELD_MAX && has_page &&
        reader->page[reader->page_at].data.bytes <= EVENT_HELD_BYTES) {
        reader->is_holding = true;
        ++*held;
        return;
    }
    close_cursors(reader);
    drop_page(reader);
}

/* Who has more to do keeps the cursor as long as nobody else needs the place for his. */
static void go_on_soon(desk_reader *reader)
{
    sl_tail *const tail = reader->desk->host->tail;

    tell_passed(reader);
    if (sl_tail_place_wanted(tail) || !sl_tail_take_place(tail, &reader->node))
        put_down(reader);
    sl_tail_run_soon(tail, &reader->node);
}

/* What the disk brings is in the cursor, so it is kept until something has come of it; then others come first. */
static void wait_for_disk(desk_reader *reader)
{
    sl_tail *const tail = reader->desk->host->tail;
    const bool had_its_part = reader->looked_at >= DESK_RUN_EVENTS && sl_tail_place_wanted(tail);

    tell_passed(reader);
    if (!had_its_part && sl_tail_take_place(tail, &reader->node)) {
        sl_tail_wait_disk(tail, &reader->node);
        return;
    }
    close_cursors(reader);
    drop_page(reader);
    reader->looked_at = 0;
    sl_tail_wait_place(tail, &reader->node);
}

/* The cursor at the end has no buffers. */
static void wait_for_commit(desk_reader *reader)
{
    sl_tail *const tail = reader->desk->host->tail;

    sl_tail_leave_place(tail, &reader->node);
    drop_page(reader);
    sl_tail_wait_commit(tail, &reader->node);
}

static step read_some(desk_reader *reader)
{
    const sl_clock *const stopwatch = reader->desk->host->stopwatch;
    const bool is_timed = reader->desk->filter != NULL || resolves_links(reader);
    const uint64_t end_ns = is_timed ? sl_clock_mono_ns(stopwatch) + RUN_NS : UINT64_MAX;
    uint32_t looks_left = DESK_RUN_EVENTS;
    step next = GOES_ON;

    reader->bytes_left = DESK_RUN_BYTES;
    while (next == GOES_ON && reader->desk->state == DESK_OPEN && looks_left-- > 0 &&
           reader->bytes_left > 0 &&
           (!is_timed || sl_clock_mono_ns(stopwatch) < end_ns || looks_left == DESK_RUN_EVENTS - 1)) {
        next = read_one(reader);
        reader->looked_at++;
    }
    return next;
}

/* Who may what is read from the store while the server starts. */
static bool rights_are_known(const desk_reader *reader)
{
    const sl_auth *const auth = reader->desk->host->auth;

    return reader->lane == SL_LANE_PARKED || !resolves_links(reader) || sl_auth_ready(auth) ||
           sl_auth_trusts_everybody(auth);
}

/* A link gives no rights, and which consumer will get the event is not known yet. So what everybody may read is resolved; and parked
 * messages, which only the group itself writes, are read again whatever they are. */
static void learn_rights(desk_reader *reader)
{
    const bool trusted = reader->lane == SL_LANE_PARKED || sl_auth_trusts_everybody(reader->desk->host->auth);

    reader->identity = (sl_identity){ .is_trusted = trusted };
}

static void run(void *ctx)
{
    desk_reader *const reader = ctx;
    step next;

    stop_holding(reader);
    if (!reader->is_on || reader->desk->state != DESK_OPEN)
        return;
    if (!rights_are_known(reader)) {
        sl_tail_run_soon(reader->desk->host->tail, &reader->node);
        return;
    }
    reader->waits_for_room = false;
    learn_rights(reader);
    next = read_some(reader);
    if (reader->desk->state != DESK_OPEN)
        return;
    switch (next) {
    case GOES_ON: go_on_soon(reader); break;
    case NEEDS_ROOM: wait_for_room(reader); break;
    case NEEDS_DISK: wait_for_disk(reader); break;
    case NEEDS_COMMIT: wait_for_commit(reader); break;
    case IS_OVER: finish(reader); break;
    }
}

/* --- for the desk --- */

sl_err desk_readers_init(sl_desk *desk)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        desk_reader *const reader = &desk->readers[lane];

        *reader = (desk_reader){ .desk = desk, .lane = (sl_lane)lane, .id_form = SL_WIRE_ID_STRUCTURED };
        sl_reader_init(&reader->node, stream_of(reader), run, reader);
        reader->resolver = sl_alloc_take(desk->host->alloc, sizeof *reader->resolver);
        if (reader->resolver == NULL)
            return SL_ERR_NOMEM;
        sl_resolver_init(reader->resolver, desk->host, &reader->identity, &reader->node);
    }
    return SL_OK;
}

void desk_reader_start(desk_reader *reader)
{
    reader->is_on = true;
    sl_reader_init(&reader->node, stream_of(reader), run,
                   reader); /* the text may have moved: sl_desk_update() */
    sl_tail_run_soon(reader->desk->host->tail, &reader->node);
}

/* A replay that was on when the server ended goes on as far as anything of it was given out: the rest is still parked. */
void desk_readers_start(sl_desk *desk)
{
    desk_reader *const parked = &desk->readers[SL_LANE_PARKED];

    desk->readers[SL_LANE_MAIN].end = UINT64_MAX;
    desk_reader_start(&desk->readers[SL_LANE_MAIN]);
    parked->end = parked->known_end;
    if (parked->end > sl_group_read_from(desk->group, SL_LANE_PARKED))
        desk_reader_start(parked);
}

void desk_readers_stop(sl_desk *desk)
{
    desk_fetch_stop(desk);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        desk_reader *const reader = &desk->readers[lane];

        if (reader->desk == NULL)
            continue; /* it was never made */
        sl_tail_forget(desk->host->tail, &reader->node);
        sl_tail_leave_place(desk->host->tail, &reader->node);
        stop_holding(reader);
        close_cursors(reader);
        drop_page(reader);
        reader->is_on = reader->waits_for_room = false;
        reader->known_end = reader->considered = 0;
    }
}

void desk_readers_done(sl_desk *desk)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        desk_give(desk->host->alloc, desk->readers[lane].resolver, sizeof(sl_resolver));
}

void desk_readers_wake(sl_desk *desk)
{
    desk->reader_may_go = false;
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        if (desk->readers[lane].is_on && desk->readers[lane].waits_for_room && has_room(&desk->readers[lane]))
            sl_tail_run_soon(desk->host->tail, &desk->readers[lane].node);
}

/* server/streams/read.c — Streams.Read: the events of a stream, or of all of them, once or for ever.
 *
 *      message --> plan --> allowed? --> opened --> page by page, event by event --> the end       a read
 *                               ^              \-> confirmed --> ... --> caught up --> ...         a subscription
 *                               +--------------------------------------------------+
 *
 * The cursor of the store is the only buffer. An event goes from the page into the output of the call; when that is full, the
 * reading stands still until the client has taken something. So a slow client costs a page and what its call may have
 * waiting, however far it is behind, and nobody else waits for it.
 *
 * A read sees what was there when it began: a reader that meets a busy writer comes to an end. What was submitted but is not
 * durable yet is not there yet. */
#include "server/streams/read_private.h"

#include "base/cleanup.h"
#include "server/access.h"
#include "server/reply.h"
#include "server/services.h"

/* --- the store --- */

static sl_err open_cursor(reading *r)
{
    const sl_host *const host = reading_host(r);
    const sl_read read = { .stream = r->plan.stream,
                           .backwards = r->plan.backwards,
                           .from = r->from,
                           .shows_end = r->plan.is_subscription,
                           .now_ns = sl_clock_wall_ns(host->clock) };

    return sl_store_read(host->store, &read, &r->cursor);
}

static void log_failed(reading *r, sl_err err)
{
    sl_host *const host = reading_host(r);
    uint64_t unsaid;

    if (!sl_seldom_may(&host->read_failed, sl_clock_mono_ns(host->clock), &unsaid))
        return;
    sl_log(host->log, SL_LOG_ERROR, "a read failed and its call was ended", SL_LOG_ERR("error", err),
           SL_LOG_STR("stream", reading_is_all(r) ? SL_STR("$all") : r->plan.stream),
           SL_LOG_STR("problem", sl_store_problem(host->store)), SL_LOG_U64("others_before", unsaid));
}

reading_step reading_fail(reading *r, sl_err err)
{
    if (err == SL_ERR_STREAM_DELETED) {
        sl_reply_stream_deleted(r->request, r->plan.stream);
        return READING_IS_OVER;
    }
    log_failed(r, err);
    sl_reply_error(r->request, err);
    return READING_IS_OVER;
}

static void drop_page(reading *r)
{
    if (r->page != NULL)
        sl_alloc_give(reading_host(r)->alloc, r->page, READING_PAGE_EVENTS * sizeof *r->page);
    r->page = NULL;
    r->page_at = r->page_count = 0;
}

/* Everything that memory of the store is behind. */
static void close_cursors(reading *r)
{
    if (r->cursor != NULL)
        sl_cursor_close(r->cursor);
    r->cursor = NULL;
    if (r->resolver != NULL)
        sl_resolver_done(r->resolver);
    drop_page(r);
}

/* Where a cursor has to begin to give this event, or the one behind it. */
static uint64_t from_event(const reading *r, const sl_event *event, bool behind_it)
{
    if (!reading_is_all(r))
        return r->plan.backwards ? event->revision - behind_it : event->revision + behind_it;
    return r->plan.backwards ? event->position + !behind_it : event->position + behind_it; /* exclusive */
}

/* Notes where the next cursor has to begin: this one may be closed from now on. */
static void note_place(reading *r)
{
    const bool all_passed = r->page_at == r->page_count;
    const sl_event *const event = r->page_count == 0 ? NULL : &r->page[r->page_at - all_passed];

    if (event == NULL)
        return; /* nothing was passed since it was noted last */
    r->is_at_bottom = all_passed && r->plan.backwards && !reading_is_all(r) && event->revision == 0;
    if (!r->is_at_bottom)
        r->from = from_event(r, event, all_passed);
}

static sl_err fetch_page(reading *r)
{
    const sl_alloc *const alloc = reading_host(r)->alloc;
    const bool all_count = !r->plan.is_subscription && !reading_is_all(r); /* nothing is passed over */
    const uint64_t wanted = all_count ? sl_min_u64(r->left, READING_PAGE_EVENTS) : READING_PAGE_EVENTS;
    sl_err err;

    note_place(r);
    if (r->cursor == NULL && r->is_at_bottom)
        return SL_ERR_EMPTY;
    err = r->cursor == NULL ? open_cursor(r) : SL_OK;
    if (err != SL_OK)
        return err;
    if (r->page == NULL)
        r->page = sl_alloc_take(alloc, READING_PAGE_EVENTS * sizeof *r->page);
    if (r->page == NULL)
        return SL_ERR_NOMEM;
    r->page_at = r->page_count = 0;
    err = sl_cursor_next(r->cursor, r->page, (uint32_t)wanted, &r->page_count);
    if (err != SL_OK)
        r->page_count = 0;
    return err;
}

/* A client that has no room is not read for. One that is live may: what comes is little, and if it cannot be sent, that is
 * how falling behind is noticed. */
reading_step reading_peek(reading *r, const sl_event **ret_event)
{
    const bool has_page = r->page_at < r->page_count;
    sl_err err;

    if (!has_page && !r->is_live && sl_request_room(r->request) == 0)
        return READING_HAS_NO_ROOM;
    err = has_page ? SL_OK : fetch_page(r);
    if (err == SL_OK) {
        *ret_event = &r->page[r->page_at];
        return READING_GOES_ON;
    }
    if (err == SL_ERR_EMPTY || err == SL_ERR_NOT_FOUND)
        return READING_AT_END;
    return err == SL_ERR_AGAIN ? READING_NEEDS_DISK : reading_fail(r, err);
}

static bool is_out_of_time(const reading *r)
{
    if (r->run_ends_ns == UINT64_MAX || r->looks_left % READING_LOOKS_TIMED != 0)
        return false;
    return sl_clock_mono_ns(reading_host(r)->stopwatch) >= r->run_ends_ns;
}

bool reading_pass(reading *r)
{
    const uint32_t cost = r->plan.by_expression ? READING_EXPRESSION_COST : 1;

    r->page_at++;
    r->looked_at++;
    r->looks_left = r->looks_left > cost ? r->looks_left - cost : 0;
    return r->looks_left > 0 && r->bytes_left > 0 && !is_out_of_time(r);
}

/* --- reads --- */

static reading_step tell_not_found(reading *r)
{
    const sl_read_response response = { .kind = SL_READ_RESPONSE_STREAM_NOT_FOUND, .stream = r->plan.stream };
    const reading_step step = reading_send(r, &response);

    if (step != READING_GOES_ON)
        return step;
    sl_request_finish(r->request, SL_STATUS_OK, (sl_str){ 0 }, NULL, 0);
    return READING_IS_OVER;
}

static reading_step open_read(reading *r)
{
    const sl_store *const store = reading_host(r)->store;
    const sl_err err = r->plan.is_empty ? SL_OK : open_cursor(r);

    if (err == SL_ERR_NOT_FOUND)
        return tell_not_found(r);
    if (err != SL_OK)
        return reading_fail(r, err);
    if (!reading_is_all(r))
        sl_store_stream(store, r->plan.stream, &r->info);
    r->end = reading_is_all(r) ? sl_store_end(store) : sl_add_sat_u64(r->info.revision, 1);
    r->left = r->plan.count;
    r->told_first = !r->plan.wants_ends || r->plan.backwards;
    r->has_ended = r->plan.is_empty;
    r->is_opened = true;
    return READING_GOES_ON;
}

/* To those who asked: where the stream begins, when the page that KurrentDB would have read first has no event. */
static reading_step tell_first(reading *r, uint64_t revision)
{
    const sl_read_response response = { .kind = SL_READ_RESPONSE_FIRST_STREAM_POSITION,
                                        .stream_position = revision };
    const reading_step step = reading_send(r, &response);

    r->told_first = step == READING_GOES_ON;
    return step;
}

static reading_step before_first(reading *r, const sl_event *event)
{
    const uint64_t page = sl_min_u64(r->plan.count, READING_KURRENT_PAGE);

    if (event->revision >= sl_add_sat_u64(r->plan.from, page))
        return tell_first(r, event->revision);
    r->told_first = true;
    return READING_GOES_ON;
}

/* Nothing was found: what would come next is behind the last event, and behind everything that is hidden. */
static reading_step instead_of_first(reading *r)
{
    const uint64_t next = sl_max_u64(r->info.first, sl_add_sat_u64(r->info.revision, 1));

    if (next != r->plan.from)
        return tell_first(r, next);
    r->told_first = true;
    return READING_GOES_ON;
}

static reading_step end_read(reading *r)
{
    const sl_read_response last = { .kind = SL_READ_RESPONSE_LAST_STREAM_POSITION,
                                    .stream_position = r->info.revision };
    reading_step step = r->told_first ? READING_GOES_ON : instead_of_first(r);

    if (step == READING_GOES_ON && r->plan.wants_ends)
        step = reading_send(r, &last);
    if (step != READING_GOES_ON)
        return step;
    sl_request_finish(r->request, SL_STATUS_OK, (sl_str){ 0 }, NULL, 0);
    return READING_IS_OVER;
}

/* False: it was written after the read began, and so was everything behind it. */
static bool was_there(const reading *r, const sl_event *event)
{
    return r->plan.backwards || (reading_is_all(r) ? event->position : event->revision) < r->end;
}

/* One event; AT_END: there are no more for this read. A tombstone is never the answer to a read: the stream is gone, and what
 * was not read of it is too. */
static reading_step read_one(reading *r)
{
    sl_filter_verdict verdict = SL_FILTER_YES;
    const sl_event *event;
    reading_step step = reading_peek(r, &event);

    if (step != READING_GOES_ON)
        return step;
    if (!reading_is_all(r) && event->revision == SL_REVISION_MAX)
        return reading_fail(r, SL_ERR_STREAM_DELETED);
    if (!was_there(r, event))
        return READING_AT_END;
    if (reading_is_all(r))
        verdict = reading_filter_judge(&r->plan, event);
    if (verdict == SL_FILTER_GAVE_UP)
        return reading_filter_fail(r, event);
    if (verdict == SL_FILTER_NO)
        return READING_GOES_ON;
    if (!r->told_first)
        step = before_first(r, event);
    if (step == READING_GOES_ON)
        step = reading_send_event(r, event);
    if (step == READING_GOES_ON)
        r->left--;
    return step;
}

static reading_step read_on(reading *r)
{
    reading_step step = READING_GOES_ON;
    bool goes_on = true;

    while (step == READING_GOES_ON && goes_on && r->left > 0) {
        step = read_one(r);
        if (step == READING_GOES_ON)
            goes_on = reading_pass(r);
    }
    if (step != READING_AT_END && r->left > 0)
        return step;
    r->has_ended = true;
    close_cursors(r);
    return READING_GOES_ON;
}

static reading_step read_some(reading *r)
{
    reading_step step = r->is_opened ? READING_GOES_ON : open_read(r);

    if (step == READING_GOES_ON && !r->has_ended)
        step = read_on(r);
    return step == READING_GOES_ON && r->has_ended ? end_read(r) : step;
}

/* --- runs --- */

/* In each run: rights are taken away while a read or a subscription goes on, and a run is many events. */
static reading_step ask_access(reading *r)
{
    sl_host *const host = reading_host(r);
    const sl_str stream = reading_is_all(r) ? SL_STR("$all") : r->plan.stream;

    switch (sl_access_check(host->access, &r->request->identity, stream, SL_ACTION_READ, &r->node)) {
    case SL_ACCESS_ALLOWED: break;
    case SL_ACCESS_DENIED: sl_reply_access_denied(r->request); return READING_IS_OVER;
    case SL_ACCESS_PENDING: return READING_IS_QUEUED;
    case SL_ACCESS_FAILED: return reading_fail(r, SL_ERR_IO);
    }
    return READING_GOES_ON;
}

static reading_step do_some(reading *r)
{
    const bool is_timed = r->plan.filter != NULL || r->resolver != NULL;
    const reading_step step = ask_access(r);

    r->looks_left = READING_RUN_EVENTS;
    r->bytes_left = READING_RUN_BYTES;
    r->run_ends_ns = is_timed ? sl_clock_mono_ns(reading_host(r)->stopwatch) + READING_RUN_NS : UINT64_MAX;
    if (step != READING_GOES_ON)
        return step;
    return r->plan.is_subscription ? reading_follow(r) : read_some(r);
}

static void put_down(reading *r)
{
    note_place(r);
    close_cursors(r);
}

/* The client takes nothing, perhaps for hours, and there may be thousands like it: only a few of them keep what they have
 * read. Fast clients come here all the time, and those few are enough for them. */
static void wait_for_room(reading *r)
{
    uint64_t *const held = &reading_host(r)->counters.pages_held_now;
    const bool all_sent = r->page_at == r->page_count;

    sl_tail_leave_place(reading_host(r)->tail, &r->node);
    if (r->page_count == 0)
        return; /* a cursor that has read nothing, or everything, has no buffers */
    if (*held >= READING_PAGES_HELD_MAX ||
        r->page[r->page_at - all_sent].data.bytes > READING_EVENT_HELD_BYTES) {
        put_down(r);
        return;
    }
    r->is_holding = true;
    ++*held;
}

/* Who has more to do keeps the cursor as long as nobody else needs the place for his. */
static void go_on_soon(reading *r)
{
    sl_tail *const tail = reading_host(r)->tail;

    if (sl_tail_place_wanted(tail) || !sl_tail_take_place(tail, &r->node)) {
        sl_tail_leave_place(tail, &r->node);
        put_down(r);
    }
    sl_tail_run_soon(tail, &r->node);
}

/* What the disk brings is in the cursor, so a reader without a place would ask for it for ever. One that has read its part goes
 * to the end of those who wait for a place; before that it keeps the place, or it might never come to anything. */
static void wait_for_disk(reading *r)
{
    sl_tail *const tail = reading_host(r)->tail;
    const bool had_its_part = r->looked_at >= READING_RUN_EVENTS && sl_tail_place_wanted(tail);

    if (!had_its_part && sl_tail_take_place(tail, &r->node)) {
        sl_tail_wait_disk(tail, &r->node);
        return;
    }
    put_down(r);
    r->looked_at = 0;
    sl_tail_wait_place(tail, &r->node);
}

/* Thousands of subscriptions wait for a commit, and few have something to do. The cursor at the end has no buffers. */
static void wait_for_commit(reading *r)
{
    sl_tail_leave_place(reading_host(r)->tail, &r->node);
    drop_page(r);
    sl_tail_wait_commit(reading_host(r)->tail, &r->node);
}

static void stop_holding(reading *r)
{
    if (r->is_holding)
        reading_host(r)->counters.pages_held_now--;
    r->is_holding = false;
}

/* Everything but the request itself. The call may still be sending what it was given. */
static void release(reading *r)
{
    if (!r->is_begun)
        return;
    r->is_begun = false;
    sl_tail_forget(reading_host(r)->tail, &r->node);
    sl_tail_leave_place(reading_host(r)->tail, &r->node);
    stop_holding(r);
    close_cursors(r);
    if (r->plan.filter != NULL)
        sl_filter_free(r->plan.filter);
    r->plan.filter = NULL;
    if (r->plan.is_subscription)
        reading_host(r)->counters.subscriptions_now--;
}

static void run(void *ctx)
{
    reading *const r = ctx;
    reading_step step;

    stop_holding(r);
    step = sl_request_open(r->request) ? do_some(r) : READING_IS_OVER;
    switch (step) {
    case READING_GOES_ON: go_on_soon(r); break;
    case READING_HAS_NO_ROOM: wait_for_room(r); break;
    case READING_IS_QUEUED: break;
    case READING_NEEDS_DISK: wait_for_disk(r); break;
    case READING_NEEDS_COMMIT: wait_for_commit(r); break;
    case READING_AT_END: /* never the end of a run */
    case READING_IS_OVER: release(r); break;
    }
}

/* --- the call --- */

static bool make_resolver(reading *r)
{
    if (!r->plan.resolve_links)
        return true;
    r->resolver = sl_arena_alloc(&r->request->arena, sizeof *r->resolver);
    if (r->resolver != NULL)
        sl_resolver_init(r->resolver, reading_host(r), &r->request->identity, &r->node);
    return r->resolver != NULL;
}

static void begin_reading(reading *r)
{
    sl_host *const host = reading_host(r);

    sl_reader_init(&r->node, r->plan.stream, run, r);
    r->is_begun = true;
    r->from = r->plan.from;
    if (r->plan.is_subscription)
        host->counters.subscriptions_now++;
    if (make_resolver(r)) {
        sl_tail_run_soon(host->tail, &r->node);
        return;
    }
    sl_reply_error(r->request, SL_ERR_NOMEM);
    release(r);
}

static void on_message(sl_request *request, sl_str message)
{
    reading *const r = request->state;
    const char *reason = "";
    sl_read_request asked;
    const sl_err err = sl_read_request_decode(message, &request->arena, &asked, &reason);

    r->request = request;
    if (err != SL_OK)
        sl_reply_undecodable(request, err, reason);
    else if (reading_plan_make(request, &asked, &r->plan))
        begin_reading(r);
}

static void on_room(sl_request *request)
{
    reading *const r = request->state;

    if (r->is_begun)
        sl_tail_run_soon(request->host->tail, &r->node);
}

static void on_end(sl_request *request)
{
    release(request->state);
}

/* What was sent arrives before the status. A read that was not finished has no other end: what it did not send is not lost. */
static void on_stop(sl_request *request)
{
    sl_reply_stopping(request);
    release(request->state);
}

static const sl_str features[] = { SL_STR_INIT("position"), SL_STR_INIT("events") };

const sl_method sl_method_streams_read = {
    .service = SL_STR_INIT("event_store.client.streams.Streams"),
    .name = SL_STR_INIT("Read"),
    .kind = SL_METHOD_SERVER_STREAM,
    .who = SL_FOR_READERS,
    .message_bytes_max = READING_REQUEST_BYTES_MAX,
    .state_bytes = sizeof(reading),
    .features = features,
    .feature_count = SL_COUNT_OF(features),
    .message = on_message,
    .room = on_room,
    .end = on_end,
    .stop = on_stop,
};

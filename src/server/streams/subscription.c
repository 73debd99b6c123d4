/* server/streams/subscription.c — catch-up subscriptions: a read that has no end.
 *
 *      confirmation --> events of the past --> (checkpoint) --> caught up --> events as they are committed --> ...
 *                            ^                                                   |
 *                            +------------ the client does not take them --------+
 *
 * Live and not live differ in nothing but what is said: events always come from the cursor, which has what is durable, in
 * order and without a gap. A live subscription whose client takes too little is behind from then on, and says so when it has
 * caught up again. That it fell behind is counted and logged but not sent: KurrentDB defines a message for it and never
 * sends it, so no client was ever tried with one.
 *
 * A stream need not be there: its subscription waits for the first event of that name. Only a tombstone ends it; the client
 * gets the $streamDeleted event and then the status. It never ends with OK, because clients do not expect that.
 *
 * Rights are looked at before each run, so nothing is sent after they are gone. A change of $$stream is noticed at once, one
 * of $settings with the next event.
 *
 * Checkpoints tell a client with a filter how far it is when nothing matches. Where they stand follows KurrentDB's pages
 * while it catches up, and counts every committed event when it is live. */
#include "server/streams/read_private.h"

#include "base/cleanup.h"

/* --- the beginning --- */

/* Random for everybody who does not know the secret of this process; no two calls have the same. */
static void make_id(const reading *r, char text[SL_UUID_TEXT_BYTES + 1])
{
    const sl_host *const host = reading_host(r);
    const struct {
        const void *request;
        uint64_t calls_begun, started_ns, half;
    } first = { r->request, host->counters.calls_begun, host->started_ns, 0 },
      second = { r->request, host->counters.calls_begun, host->started_ns, 1 };
    /* A seed of its own, so that nothing that leaves this process was made with the one of the tables. */
    const sl_hash_seed seed = { sl_hash(host->seed, "subscription id 0", 17),
                                sl_hash(host->seed, "subscription id 1", 17) };
    const uint64_t halves[2] = { sl_hash(seed, &first, sizeof first), sl_hash(seed, &second, sizeof second) };
    uint8_t random[16];

    memcpy(random, halves, sizeof random);
    sl_uuid_format(sl_uuid_v4(random), text);
}

static reading_step confirm(reading *r)
{
    char text[SL_UUID_TEXT_BYTES + 1];
    reading_step step;

    make_id(r, text);
    step = reading_send(r, &(sl_read_response){ .kind = SL_READ_RESPONSE_CONFIRMATION,
                                                .subscription_id = sl_str_from(text) });
    r->is_opened = step == READING_GOES_ON;
    return step;
}

/* Where it begins is what was reached before: a subscription that is told to go on after 7 has caught up at 7. */
static void begin_at(reading *r, uint64_t from)
{
    r->plan.from_end = false;
    r->from = from;
    r->has_reached = from > (reading_is_all(r) ? SL_POSITION_FIRST : 0);
    r->reached = r->has_reached ? from - 1 : 0;
    r->checkpoints.sent = r->reached;
}

/* Nothing of the stream can be read now. What is hidden stays so; what is not durable yet will be new. */
static void begin_with_nothing(reading *r, const sl_stream_info *info)
{
    begin_at(r, info->state == SL_STREAM_SOFT_DELETED ? info->revision + 1 : info->first);
}

/* Behind the last event that can be read. Its revision is asked for by reading it: the directory of the store also counts
 * events that are not durable, and those would be missed. */
static reading_step find_end_of_stream(reading *r, const sl_stream_info *info)
{
    const sl_host *const host = reading_host(r);
    const sl_read last = { .stream = r->plan.stream,
                           .backwards = true,
                           .from = UINT64_MAX,
                           .now_ns = sl_clock_wall_ns(host->clock) };
    sl_event event;
    uint32_t count;
    sl_err err = r->cursor == NULL ? sl_store_read(host->store, &last, &r->cursor) : SL_OK;

    if (err == SL_OK)
        err = sl_cursor_next(r->cursor, &event, 1, &count);
    if (err == SL_ERR_AGAIN)
        return READING_NEEDS_DISK;
    if (err == SL_OK)
        begin_at(r, event.revision + 1);
    else if (err == SL_ERR_EMPTY || err == SL_ERR_NOT_FOUND)
        begin_with_nothing(r, info);
    else
        return reading_fail(r, err);
    if (r->cursor != NULL)
        sl_cursor_close(r->cursor);
    r->cursor = NULL;
    return READING_GOES_ON;
}

static reading_step begin_in_all(reading *r)
{
    begin_at(r, r->plan.from_end ? sl_store_end(reading_host(r)->store) : r->from);
    return confirm(r);
}

static reading_step begin_in_stream(reading *r)
{
    reading_step step = READING_GOES_ON;
    sl_stream_info info;

    sl_store_stream(reading_host(r)->store, r->plan.stream, &info);
    if (info.state == SL_STREAM_TOMBSTONED)
        return reading_fail(r, SL_ERR_STREAM_DELETED);
    if (r->plan.from_end)
        step = find_end_of_stream(r, &info);
    else
        begin_at(r, r->from);
    return step == READING_GOES_ON ? confirm(r) : step;
}

/* --- checkpoints --- */

static void checkpoint_at(reading *r, uint64_t position)
{
    if (r->plan.interval > 0 && position > r->checkpoints.sent)
        r->checkpoints.due = position;
}

static reading_step send_checkpoint(reading *r)
{
    const uint64_t position = r->checkpoints.due;
    reading_step step;

    if (position == 0)
        return READING_GOES_ON;
    step = reading_send(
        r, &(sl_read_response){
               .kind = SL_READ_RESPONSE_CHECKPOINT,
               .checkpoint = { .position = { SL_WIRE_POSITION_GIVEN, position, position },
                               .time = sl_wire_time_from_ns(sl_clock_wall_ns(reading_host(r)->clock)) } });
    if (step != READING_GOES_ON)
        return step;
    r->checkpoints.sent = position;
    r->checkpoints.due = 0;
    return READING_GOES_ON;
}

/* KurrentDB counts at the end of its pages, and a page ends when so many events were looked at, or enough of them matched. */
static void consider(reading *r, const sl_event *event, bool matched)
{
    reading_checkpoints *const c = &r->checkpoints;

    c->page_considered++;
    c->page_matched += matched;
    if (!r->is_live && c->page_considered < r->plan.window && c->page_matched < READING_KURRENT_PAGE)
        return;
    c->considered += c->page_considered;
    c->page_considered = c->page_matched = 0;
    if (c->considered < r->plan.interval)
        return;
    c->considered %= r->plan.interval;
    checkpoint_at(r, event->position);
}

static void count_anew(reading *r)
{
    r->checkpoints.considered = 0;
    r->checkpoints.page_considered = r->checkpoints.page_matched = 0;
}

/* --- events --- */

static void fall_behind(reading *r)
{
    sl_host *const host = reading_host(r);

    r->is_live = false;
    host->counters.fell_behind++;
    sl_log(host->log, SL_LOG_DEBUG, "a subscription fell behind: its client does not read",
           SL_LOG_STR("stream", reading_is_all(r) ? SL_STR("$all") : r->plan.stream),
           SL_LOG_U64("reached", r->reached), SL_LOG_STR("peer", sl_request_peer(r->request)));
    if (r->has_reached)
        checkpoint_at(r, r->reached);
}

static reading_step follow_one(reading *r)
{
    const bool all = reading_is_all(r);
    const sl_event *event;
    reading_step step = send_checkpoint(r);
    sl_filter_verdict verdict;

    if (step == READING_GOES_ON)
        step = reading_peek(r, &event);
    if (step != READING_GOES_ON)
        return step;
    verdict = all ? reading_filter_judge(&r->plan, event) : SL_FILTER_YES;
    if (verdict == SL_FILTER_GAVE_UP)
        return reading_filter_fail(r, event);
    if (verdict == SL_FILTER_YES)
        step = reading_send_event(r, event);
    if (step == READING_HAS_NO_ROOM && r->is_live)
        fall_behind(r);
    if (step != READING_GOES_ON)
        return step;
    r->reached = all ? event->position : event->revision;
    r->has_reached = true;
    if (r->plan.interval > 0)
        consider(r, event, verdict == SL_FILTER_YES);
    return READING_GOES_ON;
}

/* --- the end of what there is --- */

static reading_step send_caught_up(reading *r)
{
    const bool all = reading_is_all(r);
    sl_read_boundary boundary = {
        .time = sl_wire_time_from_ns(sl_clock_wall_ns(reading_host(r)->clock)),
        .has_revision = !all && r->has_reached,
        .revision = (int64_t)r->reached,
    };

    if (all && r->has_reached)
        boundary.position = (sl_wire_position){ SL_WIRE_POSITION_GIVEN, r->reached, r->reached };
    return reading_send(r, &(sl_read_response){ .kind = SL_READ_RESPONSE_CAUGHT_UP, .boundary = boundary });
}

/* There may be records behind the last event, of groups for example; they were looked at as well. */
static void reach_end_of_all(reading *r)
{
    const uint64_t position = sl_cursor_position(r->cursor);

    if (position > r->reached) {
        r->reached = position;
        r->has_reached = true;
    }
}

static reading_step catch_up(reading *r)
{
    reading_step step;

    if (reading_is_all(r) && r->cursor != NULL)
        reach_end_of_all(r);
    if (r->is_live)
        return READING_NEEDS_COMMIT;
    if (r->has_reached)
        checkpoint_at(r, r->reached);
    step = send_checkpoint(r);
    if (step == READING_GOES_ON)
        step = send_caught_up(r);
    if (step != READING_GOES_ON)
        return step;
    r->is_live = true;
    count_anew(r);
    return READING_NEEDS_COMMIT;
}

reading_step reading_follow(reading *r)
{
    reading_step step = READING_GOES_ON;
    bool goes_on = true;

    if (!r->is_opened)
        step = reading_is_all(r) ? begin_in_all(r) : begin_in_stream(r);
    while (step == READING_GOES_ON && goes_on) {
        step = follow_one(r);
        if (step == READING_GOES_ON)
            goes_on = reading_pass(r);
    }
    return step == READING_AT_END ? catch_up(r) : step;
}

/* server/groups/desk_info.c — a group for people: the fields of GetInfo, with the meaning that KurrentDB gives them where there is one
 * (shared kurrent-semantics, section 13). */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    POSITION_BYTES = 64,
    MEASUREMENTS = 14,
};

static sl_str print(sl_arena *arena, const char *text)
{
    const char *const copy = sl_arena_copy_str(arena, sl_str_from(text));

    return copy == NULL ? (sl_str){ 0 } : sl_str_from(copy);
}

/* "42" of a stream, "C:42/P:42" of $all. */
static sl_str print_position(const sl_desk *desk, sl_arena *arena, int64_t position)
{
    char text[POSITION_BYTES];

    if (desk->definition.of_all)
        (void)snprintf(text, sizeof text, "C:%" PRId64 "/P:%" PRId64, position, position);
    else
        (void)snprintf(text, sizeof text, "%" PRId64, position);
    return print(arena, text);
}

static sl_str print_start(const sl_desk *desk, sl_arena *arena)
{
    switch (desk->definition.start) {
    case SL_WIRE_START_END: return print_position(desk, arena, -1);
    case SL_WIRE_START_GIVEN: return print_position(desk, arena, (int64_t)desk->definition.from);
    case SL_WIRE_START_UNSET:
    case SL_WIRE_START_BEGIN: break;
    }
    return print_position(desk, arena, 0);
}

/* --- statistics --- */

static uint64_t in_last_second(const desk_rate *rate, uint64_t now_ns)
{
    const uint64_t second = now_ns / DESK_SECOND_NS;

    if (second == rate->second)
        return rate->in_last_second + rate->in_second;
    return second == rate->second + 1 ? rate->in_second : 0;
}

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* At `share` of a thousand of the sorted values. */
static int64_t at_share(const uint32_t *sorted, size_t count, size_t share)
{
    const size_t index = count * share / 1000;

    return sorted[index < count ? index : count - 1];
}

static void fill_measurements(const uint32_t *sorted, size_t count, sl_wire_group_measurement *rows)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += sorted[i];
    rows[0] = (sl_wire_group_measurement){ SL_STR("Mean"), (int64_t)(sum / count) };
    rows[1] = (sl_wire_group_measurement){ SL_STR("Median"), at_share(sorted, count, 500) };
    rows[2] = (sl_wire_group_measurement){ SL_STR("Fastest"), sorted[0] };
    rows[3] = (sl_wire_group_measurement){ SL_STR("Quintile 1"), at_share(sorted, count, 200) };
    rows[4] = (sl_wire_group_measurement){ SL_STR("Quintile 2"), at_share(sorted, count, 400) };
    rows[5] = (sl_wire_group_measurement){ SL_STR("Quintile 3"), at_share(sorted, count, 600) };
    rows[6] = (sl_wire_group_measurement){ SL_STR("Quintile 4"), at_share(sorted, count, 800) };
    rows[7] = (sl_wire_group_measurement){ SL_STR("Quintile 5"), at_share(sorted, count, 1000) };
    rows[8] = (sl_wire_group_measurement){ SL_STR("90%"), at_share(sorted, count, 900) };
    rows[9] = (sl_wire_group_measurement){ SL_STR("95%"), at_share(sorted, count, 950) };
    rows[10] = (sl_wire_group_measurement){ SL_STR("99%"), at_share(sorted, count, 990) };
    rows[11] = (sl_wire_group_measurement){ SL_STR("99.5%"), at_share(sorted, count, 995) };
    rows[12] = (sl_wire_group_measurement){ SL_STR("99.9%"), at_share(sorted, count, 999) };
    rows[13] = (sl_wire_group_measurement){ SL_STR("Highest"), sorted[count - 1] };
}

static sl_err measure(const sl_seat *seat, sl_arena *arena, sl_wire_group_connection *row)
{
    const size_t count = (size_t)sl_min_u64(seat->latency_count, DESK_LATENCIES);
    sl_wire_group_measurement *const rows = sl_arena_alloc(arena, MEASUREMENTS * sizeof *rows);
    uint32_t *sorted;

    if (seat->latencies_ms == NULL || count == 0)
        return SL_OK;
    sorted = sl_arena_copy(arena, seat->latencies_ms, count * sizeof *sorted);
    if (rows == NULL || sorted == NULL)
        return SL_ERR_NOMEM;
    qsort(sorted, count, sizeof *sorted, compare_u32);
    fill_measurements(sorted, count, rows);
    row->measurements = rows;
    row->measurement_count = MEASUREMENTS;
    return SL_OK;
}

/* --- connections --- */

static sl_err fill_connection(const sl_seat *seat, sl_arena *arena, sl_wire_group_connection *row)
{
    const uint64_t recent = in_last_second(&seat->rate, desk_now_ns(seat->desk));
    sl_consumer_info info = { 0 };

    (void)sl_group_consumer(seat->desk->group, seat->consumer, &info);
    *row = (sl_wire_group_connection){
        .username = seat->user_bytes > 0 ? print(arena, seat->user) : SL_STR("anonymous"),
        .connection_name =
            seat->connection_name_bytes > 0 ? print(arena, seat->connection_name) : SL_STR("<unknown>"),
        .average_items_per_second = (int32_t)sl_min_u64(recent, INT32_MAX),
        .total_items = (int64_t)seat->rate.total,
        .count_since_last_measurement = (int64_t)recent,
        .available_slots = (int32_t)(info.window > info.in_flight ? info.window - info.in_flight : 0),
        .in_flight_messages = (int32_t)info.in_flight,
    };
    return measure(seat, arena, row);
}

static sl_err fill_connections(const sl_desk *desk, sl_arena *arena, sl_wire_group_info *info)
{
    sl_wire_group_connection *const rows = sl_arena_alloc(arena, desk->seat_count * sizeof *rows);
    sl_err err = rows == NULL ? SL_ERR_NOMEM : SL_OK;

    SL_LIST_EACH (node, &desk->seats) {
        if (err == SL_OK)
            err = fill_connection(SL_CONTAINER_OF(node, const sl_seat, node), arena,
                                  &rows[info->connection_count++]);
    }
    info->connections = rows;
    return err;
}

/* --- the group --- */

static sl_str status_of(const sl_desk *desk)
{
    const desk_reader *const main_lane = &desk->readers[SL_LANE_MAIN];
    const bool behind = main_lane->page_at < main_lane->page_count || main_lane->waits_for_room;

    if (desk->state != DESK_OPEN)
        return SL_STR("NotReady");
    if (desk->readers[SL_LANE_PARKED].is_on)
        return behind ? SL_STR("Behind, ReplayingParkedMessages") : SL_STR("ReplayingParkedMessages, Live");
    return behind ? SL_STR("Behind") : SL_STR("Live");
}

/* A stream that was deleted and is written to again goes on with the next revision: what is below `first` is gone too. */
static int64_t parked_count(const sl_desk *desk, const sl_group_info *group)
{
    sl_stream_info parked;
    uint64_t gone;

    sl_store_stream(desk->host->store, sl_str_from(desk->parked), &parked);
    gone = sl_max_u64(sl_max_u64(group->checkpoint[SL_LANE_PARKED], desk->truncated), parked.first);
    if (parked.state != SL_STREAM_LIVE || parked.revision == SL_REVISION_NONE || parked.revision + 1 <= gone)
        return 0;
    return (int64_t)(parked.revision + 1 - gone);
}

static int32_t time_ms(const sl_wire_group_time *time)
{
    const int64_t ms = time->in_ticks ? time->value / 10000 : time->value;

    return !time->given || ms < 0 ? 0 : (int32_t)sl_min_u64((uint64_t)ms, INT32_MAX);
}

static void fill_settings(const sl_desk *desk, sl_wire_group_info *info)
{
    const sl_wire_group_settings *const given = &desk->definition.settings;
    const sl_settings in_force = sl_group_definition_settings(&desk->definition);

    info->resolve_links = given->resolve_links;
    info->extra_statistics = given->extra_statistics;
    info->message_timeout_ms = time_ms(&given->message_timeout);
    info->max_retry_count = given->max_retry_count;
    info->live_buffer_size = given->live_buffer_size;
    info->buffer_size = given->history_buffer_size;
    info->read_batch_size = given->read_batch_size;
    info->checkpoint_after_ms = time_ms(&given->checkpoint_after);
    info->min_checkpoint_count = given->min_checkpoint_count;
    info->max_checkpoint_count = given->max_checkpoint_count;
    info->strategy = given->strategy;
    info->max_subscriber_count = given->max_subscriber_count;
    info->max_interrupts = (int32_t)in_force.interrupts_max;
    info->max_kills = (int32_t)in_force.kills_max;
}

static void fill_counts(const sl_desk *desk, sl_wire_group_info *info)
{
    const uint64_t recent = in_last_second(&desk->rate, desk_now_ns(desk));
    sl_group_info group;

    sl_group_info_get(desk->group, &group);
    info->average_per_second = (int32_t)sl_min_u64(recent, INT32_MAX);
    info->count_since_last_measurement = (int64_t)recent;
    info->total_items = (int64_t)desk->rate.total;
    info->read_buffer_count = (int32_t)group.available;
    info->retry_buffer_count = (int32_t)group.waiting;
    info->in_flight_count = info->outstanding_count = (int32_t)group.in_flight;
    info->parked_count = parked_count(desk, &group);
    info->stop_rules = group.rules;
    info->everyone_stopped = group.everyone_stopped;
}

uint64_t sl_desk_skipped(const sl_desk *desk)
{
    return desk->skipped;
}

sl_err sl_desk_info(const sl_desk *desk, sl_arena *arena, sl_wire_group_info *ret_info)
{
    *ret_info = (sl_wire_group_info){
        .event_source = desk->definition.stream,
        .group = desk->definition.name,
        .status = status_of(desk),
        .start_from = print_start(desk, arena),
    };
    if (desk->knows_checkpoint && desk->checkpoint > 0)
        ret_info->last_checkpointed_position = print_position(desk, arena, (int64_t)desk->checkpoint - 1);
    if (desk->knows_last)
        ret_info->last_known_position = print_position(desk, arena, (int64_t)desk->last_known);
    fill_settings(desk, ret_info);
    fill_counts(desk, ret_info);
    return fill_connections(desk, arena, ret_info);
}

void sl_desk_counts(const sl_desk *desk, sl_group_info *ret_info)
{
    *ret_info = (sl_group_info){ 0 };
    if (desk->group != NULL && desk->state != DESK_LOADING)
        sl_group_info_get(desk->group, ret_info);
}

uint64_t sl_desk_parked(const sl_desk *desk, const sl_group_info *counts)
{
    return desk->state == DESK_LOADING ? 0 : (uint64_t)parked_count(desk, counts);
}

uint64_t sl_desk_read_up_to(const sl_desk *desk)
{
    return desk->knows_last ? sl_add_sat_u64(desk->last_known, 1) : 0;
}

/* --- for lists of operators --- */

typedef struct walk {
    const sl_desk *desk;
    sl_desk_consumer_fn *fn;
    void *ctx;
} walk;

static void count_started(void *ctx, const sl_held *held)
{
    *(uint32_t *)ctx += held->started;
}

static void show(void *ctx, const sl_consumer_info *info)
{
    const walk *const w = ctx;
    sl_desk_consumer shown = { .info = *info, .card = desk_card_find(w->desk, info->consumer) };

    (void)sl_group_held(w->desk->group, info->consumer, count_started, &shown.started);
    shown.in_state_ns = desk_now_ns(w->desk) > info->since_ns ? desk_now_ns(w->desk) - info->since_ns : 0;
    w->fn(w->ctx, &shown);
}

void sl_desk_consumers(const sl_desk *desk, sl_desk_consumer_fn *fn, void *ctx)
{
    walk w = { desk, fn, ctx };

    if (desk->group != NULL && (desk->state == DESK_OPEN || desk->state == DESK_OPENING))
        sl_group_consumers(desk->group, show, &w);
}

/* server/groups/desk.c — the life of a desk: made, loaded, opened, updated, failed, gone.
 *
 *      LOADING --open--> OPENING --epoch is durable--> OPEN
 *                           |                            |
 *                           +-------> FAILED <-----------+    the stream is tombstoned, memory or the store gave up
 *
 * A desk that failed writes nothing more. What the core had decided since the last record is forgotten with it; nobody was told
 * of it, because answers leave after their records. So loading it again is always right.
 *
 * The end of a turn: the core lets happen what is due, what stood in its effects is handed in, and answers that need nothing
 * more leave. */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"
#include "server/groups/names.h"
#include "server/groups/operators.h"

#include <assert.h>
#include <stdio.h>

enum {
    ARENA_CHUNK_BYTES = 1024,
    ARENA_BYTES_MAX = 256 * 1024,
    TABLE_LENGTH_FIRST = 8,
};

uint64_t desk_now_ns(const sl_desk *desk)
{
    return sl_clock_mono_ns(desk->host->clock) + desk->clock_offset_ns;
}

uint64_t sl_desk_now_ns(const sl_desk *desk)
{
    return desk_now_ns(desk);
}

const sl_group_definition *sl_desk_definition(const sl_desk *desk)
{
    return &desk->definition;
}

uint64_t sl_desk_number(const sl_desk *desk)
{
    return desk->number;
}

const char *sl_desk_key(const sl_desk *desk)
{
    return desk->key;
}

/* --- the definition --- */

static sl_err copy_str(sl_arena *arena, sl_str *text)
{
    const char *const copy = sl_arena_copy_str(arena, *text);

    text->data = copy;
    return copy == NULL ? SL_ERR_NOMEM : SL_OK;
}

static sl_err copy_prefixes(sl_arena *arena, sl_wire_filter *filter)
{
    sl_str *const list = sl_arena_alloc(arena, filter->prefix_count * sizeof *list);
    sl_err err = list == NULL ? SL_ERR_NOMEM : SL_OK;

    for (size_t i = 0; err == SL_OK && i < filter->prefix_count; i++) {
        list[i] = filter->prefixes[i];
        err = copy_str(arena, &list[i]);
    }
    filter->prefixes = list;
    return err;
}

static sl_err copy_definition(sl_desk *desk, const sl_group_definition *definition)
{
    sl_arena *const arena = &desk->arena;
    sl_err err;

    desk->definition = *definition;
    err = copy_str(arena, &desk->definition.stream);
    if (err == SL_OK)
        err = copy_str(arena, &desk->definition.name);
    if (err == SL_OK)
        err = copy_str(arena, &desk->definition.settings.strategy);
    if (err == SL_OK)
        err = copy_str(arena, &desk->definition.filter.regex);
    return err == SL_OK ? copy_prefixes(arena, &desk->definition.filter) : err;
}

static sl_err make_filter(sl_desk *desk)
{
    const sl_wire_filter *const given = &desk->definition.filter;
    const bool by_expression = given->regex.bytes > 0;
    const sl_filter_setup setup = {
        .on = given->on == SL_WIRE_FILTER_ON_STREAM ? SL_FILTER_ON_STREAM : SL_FILTER_ON_TYPE,
        .prefixes = by_expression ? NULL : given->prefixes,
        .prefix_count = by_expression ? 0 : (uint32_t)given->prefix_count,
        .expression = given->regex,
    };

    if (!desk->definition.of_all || given->kind != SL_WIRE_FILTER_GIVEN)
        return SL_OK;
    return sl_filter_new(&setup, NULL, &desk->filter);
}

static void make_names(sl_desk *desk)
{
    sl_text text;

    sl_text_init(&text, desk->key, sizeof desk->key);
    sl_group_definition_key(&desk->definition, &text);
    sl_parked_stream_of(desk->key, desk->parked, sizeof desk->parked);
    (void)snprintf(desk->parked_meta, sizeof desk->parked_meta, "$$%.*s", DESK_NAME_BYTES - 3, desk->parked);
    desk->can_park = !text.cut && strlen(desk->parked) + 2 <= SL_STREAM_NAME_BYTES_MAX;
}

/* --- the core --- */

static uint64_t first_of(const sl_group_definition *definition)
{
    return definition->start == SL_WIRE_START_BEGIN ? 0 : definition->from;
}

/* The number of messages does not depend on the settings: a group that was made with more than there is room for now
 * could not be loaded. */
static sl_err make_group(sl_desk *desk)
{
    const sl_settings settings = sl_group_definition_settings(&desk->definition);
    const sl_group_setup setup = {
        .limits = { .messages_max = SL_DESK_MESSAGES_MAX,
                    .consumers_max = SL_DESK_CONSUMERS_MAX,
                    .keyed = sl_strategy_is_pinned(settings.strategy) },
        .settings = settings,
        .start = first_of(&desk->definition),
        .seed = desk->host->seed,
        .sink = { desk_emit, desk },
    };

    desk->group_bytes = sl_group_bytes(&setup.limits);
    desk->group_memory = sl_alloc_take(desk->host->alloc, desk->group_bytes);
    if (desk->group_memory == NULL)
        return SL_ERR_NOMEM;
    desk->group = sl_group_init(desk->group_memory, &setup);
    return SL_OK;
}

void desk_enter(sl_desk *desk)
{
    assert(!desk->in_core);
    desk->in_core = true;
    desk_full_look(desk);
    sl_group_hold(desk->group, desk_hold(desk));
}

static void leave_core(sl_desk *desk)
{
    desk->in_core = false;
    if (desk->stopped_unfilled)
        desk_answers_fill(desk);
    if (desk->watcher_count > 0)
        sl_operators_touch(desk->host);
}

void desk_leave(sl_desk *desk)
{
    leave_core(desk);
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

sl_err desk_may_act(const sl_desk *desk)
{
    switch (desk->state) {
    case DESK_LOADING:
    case DESK_OPENING: return SL_ERR_AGAIN;
    case DESK_OPEN: return SL_OK;
    case DESK_FAILED: break;
    }
    return SL_ERR_STORE_FAILED;
}

/* --- turns --- */

static void set_tick(sl_desk *desk, uint64_t wake_ns)
{
    const uint64_t at_ns = wake_ns == SL_NEVER               ? UINT64_MAX
                           : wake_ns > desk->clock_offset_ns ? wake_ns - desk->clock_offset_ns
                                                             : 0;

    if (!desk->tick.is_set || desk->tick.at_ns != at_ns)
        sl_alarm_set(desk->host, &desk->tick, at_ns);
}

static void tick(sl_desk *desk)
{
    uint64_t wake_ns;

    desk_enter(desk);
    wake_ns = sl_group_tick(desk->group, desk_now_ns(desk));
    leave_core(desk); /* no further turn is asked for: this one goes on */
    set_tick(desk, wake_ns);
}

static void tell_waiters(sl_desk *desk)
{
    sl_list now;

    sl_list_init(&now);
    sl_list_splice(&now, &desk->waiters);
    while (!sl_list_empty(&now)) {
        sl_desk_waiter *const waiter = SL_CONTAINER_OF(sl_list_first(&now), sl_desk_waiter, node);

        sl_list_remove(&waiter->node);
        waiter->fn(waiter->ctx);
    }
}

static void became_open(sl_desk *desk)
{
    desk->state = DESK_OPEN;
    desk_readers_start(desk);
    tell_waiters(desk);
}

/* The rest of stand_still(). */
static void clear_away(sl_desk *desk)
{
    desk_readers_stop(desk);
    desk_seats_drop(desk);
    desk_cards_end(desk);
    desk_records_give_up(desk); /* who waits for one of them is told */
    tell_waiters(desk);
}

static void on_turn_end(void *ctx)
{
    sl_desk *const desk = ctx;

    if (desk->state == DESK_FAILED) {
        clear_away(desk);
        return;
    }
    desk_full_look(desk);
    desk_nacks_go_on(desk);
    tick(desk);
    desk_move_truncation(desk);
    desk_hand_in(desk);
    if (desk->state == DESK_OPENING && desk->durable >= desk->opens_at)
        became_open(desk);
    if (desk->state == DESK_OPEN && desk->reader_may_go)
        desk_readers_wake(desk);
}

static void on_tick(void *ctx)
{
    sl_desk *const desk = ctx;

    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

/* Whoever finds that the desk cannot go on may stand deep inside of a call: of the core, of a reader with an event of its page in its
 * hands, of a seat that is being told something. So this only says so and ends what would wake it; nothing that is in use is
 * freed before the end of the turn, in clear_away(). */
static void stand_still(sl_desk *desk, sl_err why)
{
    desk->state = DESK_FAILED;
    desk->problem = why;
    sl_alarm_stop(desk->host, &desk->tick);
    sl_alarm_stop(desk->host, &desk->retry);
    sl_alarm_stop(desk->host, &desk->room_look);
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

void sl_desk_close(sl_desk *desk)
{
    if (desk->state != DESK_FAILED)
        stand_still(desk, SL_ERR_NOT_FOUND);
}

void desk_fail(sl_desk *desk, sl_err err, const char *what)
{
    if (desk->state == DESK_FAILED)
        return;
    sl_log(desk->host->log, err == SL_ERR_DRAINING ? SL_LOG_INFO : SL_LOG_ERROR,
           "a persistent subscription cannot go on: its consumers are dropped",
           SL_LOG_STR("group", desk->key), SL_LOG_STR("what", what), SL_LOG_ERR("error", err),
           SL_LOG_STR("problem", sl_store_problem(desk->host->store)));
    stand_still(desk, err);
}

/* --- made and gone --- */

static sl_err make_tables(sl_desk *desk)
{
    const sl_alloc *const alloc = desk->host->alloc;
    sl_map_node **const entries = sl_alloc_take(alloc, TABLE_LENGTH_FIRST * sizeof *entries);
    sl_map_node **const seats = sl_alloc_take(alloc, TABLE_LENGTH_FIRST * sizeof *seats);

    if (entries == NULL || seats == NULL) {
        desk_give(alloc, entries, TABLE_LENGTH_FIRST * sizeof *entries);
        desk_give(alloc, seats, TABLE_LENGTH_FIRST * sizeof *seats);
        return SL_ERR_NOMEM;
    }
    desk->entries_length = desk->by_consumer_length = TABLE_LENGTH_FIRST;
    sl_map_init(&desk->entries, entries, TABLE_LENGTH_FIRST);
    sl_map_init(&desk->by_consumer, seats, TABLE_LENGTH_FIRST);
    return SL_OK;
}

static void init(sl_desk *desk, sl_host *host, uint64_t number)
{
    *desk = (sl_desk){ .host = host,
                       .number = number,
                       .clock_offset_ns = sl_clock_wall_ns(host->clock) - sl_clock_mono_ns(host->clock) };
    sl_arena_init(&desk->arena, host->alloc, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    sl_list_init(&desk->packets);
    sl_list_init(&desk->written_answers);
    sl_list_init(&desk->durable_answers);
    sl_list_init(&desk->waiters);
    sl_list_init(&desk->seats);
    sl_list_init(&desk->ready_seats);
    sl_list_init(&desk->cards);
    sl_list_init(&desk->marks);
    sl_list_init(&desk->failures_by_age);
    sl_turn_end_init(&desk->turn_end, on_turn_end, desk);
    desk->tick = (sl_alarm){ .fn = on_tick, .ctx = desk };
    desk->retry = desk->room_look = (sl_alarm){ .fn = on_tick, .ctx = desk };
    desk_hand_in_init(desk);
}

sl_err sl_desk_new(sl_host *host, uint64_t number, const sl_group_definition *definition, sl_desk **ret_desk)
{
    sl_desk *const desk = sl_alloc_take(host->alloc, sizeof *desk);
    sl_err err;

    if (desk == NULL)
        return SL_ERR_NOMEM;
    init(desk, host, number);
    err = copy_definition(desk, definition);
    if (err == SL_OK)
        err = make_tables(desk);
    if (err == SL_OK)
        err = make_filter(desk);
    if (err == SL_OK)
        make_names(desk);
    if (err == SL_OK)
        err = make_group(desk);
    if (err == SL_OK)
        err = desk_readers_init(desk);
    if (err != SL_OK) {
        sl_desk_free(desk);
        return err;
    }
    *ret_desk = desk;
    return SL_OK;
}

/* Everything that belongs to one life of the core. */
static void end_life(sl_desk *desk)
{
    desk_readers_stop(desk);
    desk_seats_drop(desk);
    if (desk->entries.table != NULL)
        desk_entries_free(desk);
    desk_room_close(desk, &desk->event_room);
    desk_room_close(desk, &desk->answer_room);
}

void sl_desk_free(sl_desk *desk)
{
    const sl_alloc *alloc;

    if (desk == NULL)
        return;
    alloc = desk->host->alloc;
    desk->state = DESK_FAILED;
    end_life(desk);
    desk_cards_free(desk);
    desk_failures_free(desk);
    tell_waiters(desk);
    desk_packets_orphan(desk);
    desk_records_give_up(desk);
    sl_door_forget(&desk->door_waiter);
    sl_list_remove(&desk->turn_end.node);
    sl_alarm_stop(desk->host, &desk->tick);
    sl_alarm_stop(desk->host, &desk->retry);
    sl_alarm_stop(desk->host, &desk->room_look);
    desk_readers_done(desk);
    if (desk->filter != NULL)
        sl_filter_free(desk->filter);
    desk_give(alloc, desk->group_memory, desk->group_bytes);
    desk_give(alloc, desk->entries.table, desk->entries_length * sizeof(sl_map_node *));
    desk_give(alloc, desk->by_consumer.table, desk->by_consumer_length * sizeof(sl_map_node *));
    sl_arena_done(&desk->arena);
    desk_give(alloc, desk, sizeof *desk);
}

/* --- loading and opening --- */

/* What a record tells of must be read again, up to here at least. */
static void note_known(sl_desk *desk, sl_place place)
{
    desk_reader *const reader = &desk->readers[place.lane];

    reader->known_end = sl_max_u64(reader->known_end, place.position + 1);
}

/* Where the group stands in its stream, and not in what is parked. */
bool desk_record_is_of_stream(const sl_effect *record)
{
    if (record->kind == SL_EFFECT_LEASE)
        return record->lease.place.lane == SL_LANE_MAIN;
    if (record->kind == SL_EFFECT_MESSAGE)
        return record->message.place.lane == SL_LANE_MAIN;
    if (record->kind == SL_EFFECT_SETTLE)
        return record->settle.place.lane == SL_LANE_MAIN;
    if (record->kind == SL_EFFECT_PARK)
        return record->park.place.lane == SL_LANE_MAIN;
    if (record->kind == SL_EFFECT_PASSED)
        return record->passed.lane == SL_LANE_MAIN;
    return record->kind == SL_EFFECT_CHECKPOINT && record->checkpoint.lane == SL_LANE_MAIN;
}

/* A snapshot has a checkpoint of every group, also of one that stands where it began. */
static bool tells_of_begun(const sl_desk *desk, const sl_effect *record)
{
    if (!desk_record_is_of_stream(record))
        return false;
    return record->kind != SL_EFFECT_CHECKPOINT || record->checkpoint.below != first_of(&desk->definition);
}

sl_err sl_desk_load(sl_desk *desk, const sl_effect *record)
{
    assert(desk->state == DESK_LOADING);
    if (record->kind == SL_EFFECT_SETTINGS)
        return SL_OK; /* the definition knows better, and a core made for it may have no room for an older strategy */
    if (tells_of_begun(desk, record))
        desk->has_begun = true;
    if (record->kind == SL_EFFECT_LEASE)
        note_known(desk, record->lease.place);
    if (record->kind == SL_EFFECT_MESSAGE)
        note_known(desk, record->message.place);
    if (record->kind == SL_EFFECT_CHECKPOINT && record->checkpoint.lane == SL_LANE_MAIN) {
        desk->checkpoint = record->checkpoint.below;
        desk->knows_checkpoint = desk->checkpoint > 0 && desk->has_begun;
    }
    return sl_group_replay(desk->group, record);
}

static bool same_settings(const sl_settings *a, const sl_settings *b)
{
    return a->strategy == b->strategy && a->key_order == b->key_order && a->lease_ns == b->lease_ns &&
           a->retries_max == b->retries_max && a->kills_max == b->kills_max &&
           a->interrupts_max == b->interrupts_max && a->buffer_max == b->buffer_max &&
           a->consumers_max == b->consumers_max && a->checkpoint_after_ns == b->checkpoint_after_ns &&
           a->checkpoint_count_min == b->checkpoint_count_min &&
           a->checkpoint_count_max == b->checkpoint_count_max;
}

/* Records may tell of older settings than the definition does: the process may have ended between the two. */
static sl_err use_definition(sl_desk *desk)
{
    const sl_settings settings = sl_group_definition_settings(&desk->definition);

    if (same_settings(&settings, sl_group_settings(desk->group)))
        return SL_OK;
    return sl_group_update(desk->group, &settings, desk_now_ns(desk));
}

/* What was settled since the last record of a checkpoint moves it without another one. */
static void learn_checkpoint(sl_desk *desk)
{
    sl_group_info info;

    sl_group_info_get(desk->group, &info);
    if (!desk->has_begun || info.checkpoint[SL_LANE_MAIN] <= first_of(&desk->definition))
        return;
    desk->checkpoint = info.checkpoint[SL_LANE_MAIN];
    desk->knows_checkpoint = true;
}

sl_err sl_desk_open(sl_desk *desk)
{
    sl_stream_info parked;
    sl_err err;

    assert(desk->state == DESK_LOADING);
    if (sl_door_is_shut(desk->host->door))
        return SL_ERR_DRAINING;
    desk_enter(desk);
    desk->skipped = 0;
    err = sl_group_open(desk->group, desk_now_ns(desk));
    if (err == SL_OK)
        learn_checkpoint(desk);
    if (err == SL_OK)
        err = use_definition(desk);
    if (err == SL_OK)
        err = desk_cards_of_earlier_life(desk);
    desk_leave(desk);
    if (err != SL_OK)
        return err;
    sl_store_stream(desk->host->store, sl_str_from(desk->parked), &parked);
    desk->truncated = parked.state == SL_STREAM_LIVE ? parked.truncate_before : 0;
    desk->state = desk->state == DESK_FAILED ? DESK_FAILED : DESK_OPENING;
    return SL_OK;
}

/* --- changed --- */

typedef struct copying {
    sl_desk *desk;
    bool
        begins_anew; /* nothing of the stream was given out: the new start counts, as there is no checkpoint */
    sl_err err;
} copying;

static void copy_record(void *ctx, const sl_effect *record)
{
    copying *const c = ctx;

    if (c->err == SL_OK && !(c->begins_anew && desk_record_is_of_stream(record)))
        c->err = sl_desk_load(c->desk, record);
}

/* As if the server had been started again with other settings: what the old core knew is what its records would tell, and they
 * are before the new epoch in the log. */
static sl_err replace_group(sl_desk *desk)
{
    sl_group *const old = desk->group;
    void *const old_memory = desk->group_memory;
    const size_t old_bytes = desk->group_bytes;
    copying c = { .desk = desk, .begins_anew = !desk->has_begun };

    c.err = make_group(desk);
    if (c.err != SL_OK) {
        desk->group = old;
        desk->group_memory = old_memory;
        desk->group_bytes = old_bytes;
        return c.err;
    }
    sl_group_snapshot(old, (sl_sink){ copy_record, &c });
    desk_give(desk->host->alloc, old_memory, old_bytes);
    return c.err;
}

/* From $all's filter to the names nothing else can change: Update keeps them. */
static sl_err take_definition(sl_desk *desk, const sl_group_definition *definition)
{
    sl_arena arena = desk->arena;
    const sl_group_definition old = desk->definition;
    sl_err err;

    sl_arena_init(&desk->arena, desk->host->alloc, arena.sizes);
    err = copy_definition(desk, definition);
    if (err != SL_OK) {
        sl_arena_done(&desk->arena);
        desk->arena = arena;
        desk->definition = old;
        return err;
    }
    sl_arena_done(&arena);
    return SL_OK;
}

sl_err sl_desk_update(sl_desk *desk, const sl_group_definition *definition)
{
    /* A message that is to be parked before it was read again holds up the log; its reader goes now, and the next one begins when
     * the log has moved. So what is not written yet is given up, as in a crash, and the rest is loaded again. */
    const bool goes_on = (desk->state == DESK_OPEN || desk->state == DESK_OPENING) && desk->links_wanted == 0;
    sl_err err;

    if (desk->state == DESK_OPEN)
        desk_seats_hand_back(desk);
    end_life(desk); /* readers have the name of the stream from the old definition */
    err = take_definition(desk, definition);
    if (err != SL_OK) {
        desk_fail(desk, err, "update");
        return err;
    }
    if (!goes_on)
        return SL_ERR_STORE_FAILED; /* nothing is known for sure: it has to be loaded again */
    desk->state = DESK_LOADING;
    err = replace_group(desk);
    if (err == SL_OK)
        err = sl_desk_open(desk);
    if (err != SL_OK)
        desk_fail(desk, err, "update");
    else
        desk_cards_look(desk);
    return err;
}

/* The state stands in the log behind everything that was submitted, so the core must know nothing that is not there. A batch
 * with appends may still be refused: then its records are written again, behind the state, and would contradict it. */
static bool is_all_in_log(const sl_desk *desk)
{
    return desk->record_count == 0 && !desk->append_inside && desk->refused == NULL;
}

void sl_desk_snapshot(const sl_desk *desk, sl_sink sink)
{
    const bool is_open = desk->state == DESK_OPEN || desk->state == DESK_OPENING;

    if (is_open && is_all_in_log(desk)) /* else: not now */
        sl_group_snapshot(desk->group, sink);
}

bool sl_desk_is_opening(const sl_desk *desk)
{
    return desk->state == DESK_LOADING || desk->state == DESK_OPENING;
}

void sl_desk_wait(sl_desk *desk, sl_desk_waiter *waiter)
{
    sl_list_push_back(&desk->waiters, &waiter->node);
}

void sl_desk_forget(sl_desk_waiter *waiter)
{
    if (waiter->node.next != NULL)
        sl_list_remove(&waiter->node);
}

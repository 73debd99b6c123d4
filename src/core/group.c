/* core/group.c — a group's memory, its messages coming in, its time; what every call begins and ends with. */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

/* --- memory ---
 *
 * One block, carved once. The same function counts and carves, so that the two cannot disagree. Most of it is not touched
 * before it is needed: core/pool.h. */

enum {
    LIMIT_MAX = 1 << 28
}; /* so that no sum of counts comes near 32 bits */

typedef struct carving {
    unsigned char *memory; /* NULL: only count */
    size_t used;
} carving;

static void *carve(carving *block, size_t count, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    void *const at = block->memory == NULL ? NULL : block->memory + block->used;

    block->used += (count * bytes + align - 1) / align * align;
    return at;
}

typedef struct parts {
    sl_group *group;
    sl_message *messages;
    sl_consumer *consumers;
    sl_key *keys;
    sl_bucket *buckets;
    sl_heap_slot *dues, *windows, *fewest;
    sl_map_node **ids, **by_id, **sessions, **by_key;
    sl_range *ranges[SL_LANE_COUNT_];
} parts;

/* While a group reads again after a restart, there is at most one range before each message and each gap
 * between the messages that it knew, and one at the end. */
static uint32_t ranges_max(const sl_group_limits *limits)
{
    return 2 * limits->messages_max + 2;
}

static size_t lay_out(unsigned char *memory, const sl_group_limits *limits, parts *ret_parts)
{
    const size_t keys = limits->keyed ? limits->messages_max : 0;
    carving c = { .memory = memory };

    ret_parts->group = carve(&c, 1, sizeof(sl_group));
    ret_parts->messages = carve(&c, limits->messages_max, sizeof(sl_message));
    ret_parts->consumers = carve(&c, limits->consumers_max, sizeof(sl_consumer));
    ret_parts->keys = carve(&c, keys, sizeof(sl_key));
    ret_parts->buckets = carve(&c, limits->keyed ? BUCKETS : 0, sizeof(sl_bucket));
    ret_parts->dues = carve(&c, limits->messages_max, sizeof(sl_heap_slot));
    ret_parts->windows = carve(&c, limits->consumers_max, sizeof(sl_heap_slot));
    ret_parts->fewest = carve(&c, limits->consumers_max, sizeof(sl_heap_slot));
    ret_parts->ids = carve(&c, sl_pool_map_entries(limits->messages_max), sizeof(sl_map_node *));
    ret_parts->by_id = carve(&c, sl_pool_map_entries(limits->consumers_max), sizeof(sl_map_node *));
    ret_parts->sessions = carve(&c, sl_pool_map_entries(limits->consumers_max), sizeof(sl_map_node *));
    ret_parts->by_key = carve(&c, sl_pool_map_entries(keys), sizeof(sl_map_node *));
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        ret_parts->ranges[lane] = carve(&c, ranges_max(limits), sizeof(sl_range));
    return c.used;
}

size_t sl_group_bytes(const sl_group_limits *limits)
{
    parts unused;

    assert(limits->messages_max < LIMIT_MAX && limits->consumers_max < LIMIT_MAX);
    return lay_out(NULL, limits, &unused);
}

static void init_indexes(sl_group *group, const parts *at)
{
    const sl_group_limits *const limits = &group->limits;

    sl_heap_init(&group->dues, at->dues, limits->messages_max);
    sl_heap_init(&group->windows, at->windows, limits->consumers_max);
    sl_heap_init(&group->fewest, at->fewest, limits->consumers_max);
    sl_pool_map_init(&group->claims, at->ids, limits->messages_max);
    sl_pool_map_init(&group->consumers_by_id, at->by_id, limits->consumers_max);
    sl_pool_map_init(&group->sessions, at->sessions, limits->consumers_max);
    sl_pool_map_init(&group->keys, at->by_key, limits->keyed ? limits->messages_max : 0);
}

static void init_pools(sl_group *group, const parts *at)
{
    const sl_group_limits *const limits = &group->limits;

    sl_list_init(&group->consumers);
    sl_pool_init(&group->free_messages, &at->messages->line, limits->messages_max, sizeof(sl_message));
    sl_pool_init(&group->free_consumers, &at->consumers->all, limits->consumers_max, sizeof(sl_consumer));
    sl_pool_init(&group->free_keys, &at->keys->waiting, limits->keyed ? limits->messages_max : 0,
                 sizeof(sl_key));
}

sl_group *sl_group_init(void *memory, const sl_group_setup *setup)
{
    const char *field;
    parts at;
    sl_group *group;

    assert(sl_settings_validate(&setup->settings, &field) == SL_OK);
    assert(setup->limits.keyed || !sl_strategy_is_pinned(setup->settings.strategy));
    lay_out(memory, &setup->limits, &at);
    group = at.group;
    *group = (sl_group){ .limits = setup->limits,
                         .settings = setup->settings,
                         .seed = setup->seed,
                         .sink = setup->sink,
                         .buckets = at.buckets };
    init_indexes(group, &at);
    init_pools(group, &at);
    sl_strategy_init(group);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        sl_line_init(&group->lines[lane], lane == SL_LANE_MAIN ? setup->start : 0, at.ranges[lane],
                     ranges_max(&setup->limits));
    return group;
}

/* --- what every call begins and ends with --- */

void sl_group_emit(sl_group *group, const sl_effect *effect)
{
    group->sink.emit(group->sink.ctx, effect);
}

/* --- numbers that are never given twice ---
 *
 * A token or consumer id is epoch << 40 | n. A life of the group uses an epoch that the records told of before
 * anybody got a number of it, so that a power cut that takes the last records can not make the next life give the
 * same numbers. A life that is long enough to use up its n goes on with another epoch; that one is told of when
 * half of n is used, which is days before it is needed. */

static void reserve_epoch(sl_group *group)
{
    group->epoch_reserved = group->epoch + 1;
    assert(group->epoch_reserved <= EPOCH_MAX);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_EPOCH,
                                       .epoch = { .epoch = group->epoch_reserved,
                                                  .messages_max = group->limits.messages_max } });
}

static void use_reserved_epoch(sl_group *group)
{
    assert(group->epoch_reserved > group->epoch);
    group->epoch = group->epoch_reserved;
    group->token_next = group->consumer_next = group->epoch << ID_EPOCH_SHIFT | 1;
}

void sl_group_begin_epoch(sl_group *group)
{
    reserve_epoch(group);
    use_reserved_epoch(group);
}

uint64_t sl_group_number(sl_group *group, uint64_t *next)
{
    const uint64_t n_max = (UINT64_C(1) << ID_EPOCH_SHIFT) - 1;

    if ((*next & n_max) == n_max)
        use_reserved_epoch(group);
    else if ((*next & n_max) >= n_max / 2 && group->epoch_reserved == group->epoch)
        reserve_epoch(group);
    return (*next)++;
}

/* In the order of time, so that a late call does what many calls in time would have done. */
static void let_due_happen(sl_group *group)
{
    for (;;) {
        const uint64_t due_ns = sl_heap_min_key(&group->dues);
        const uint64_t window_ns = sl_heap_min_key(&group->windows);

        if (sl_min_u64(due_ns, window_ns) > group->now_ns)
            return;
        if (due_ns <= window_ns)
            sl_message_due(group, SL_CONTAINER_OF(sl_heap_min(&group->dues), sl_message, due));
        else
            sl_consumer_window_over(group,
                                    SL_CONTAINER_OF(sl_heap_min(&group->windows), sl_consumer, window_end));
    }
}

void sl_group_enter(sl_group *group, uint64_t now_ns)
{
    assert(group->open && !group->busy);
    group->busy = true;
    group->now_ns = sl_min_u64(sl_max_u64(group->now_ns, now_ns), SL_NEVER - 1);
    let_due_happen(group);
}

void sl_group_exit(sl_group *group)
{
    sl_message *message;
    sl_consumer *consumer;

    if (group->hold == SL_HOLD_NOTHING && group->owes_parks)
        sl_messages_park_owed(group);
    while (group->hold != SL_HOLD_ALL && sl_strategy_next(group, &message, &consumer))
        sl_message_deliver(group, message, consumer);
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        sl_line_checkpoint(group, (sl_lane)lane);
    group->busy = false;
}

void sl_group_hold(sl_group *group, sl_hold hold)
{
    group->hold = hold;
}

uint64_t sl_group_tick(sl_group *group, uint64_t now_ns)
{
    uint64_t wake_ns;

    sl_group_enter(group, now_ns);
    sl_group_exit(group);
    wake_ns = sl_min_u64(sl_heap_min_key(&group->dues), sl_heap_min_key(&group->windows));
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        wake_ns = sl_min_u64(wake_ns, sl_line_wake(group, (sl_lane)lane));
    return wake_ns;
}

/* --- messages come in --- */

uint64_t sl_group_read_from(const sl_group *group, sl_lane lane)
{
    return group->lines[lane].read_from;
}

bool sl_group_reads_again(const sl_group *group)
{
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++)
        if (group->lines[lane].unread != &group->lines[lane].messages)
            return true;
    return false;
}

uint32_t sl_group_room(const sl_group *group)
{
    const uint32_t waiting = group->message_count - group->in_flight;
    const uint32_t buffer = group->settings.buffer_max > waiting ? group->settings.buffer_max - waiting : 0;
    const uint32_t slots = group->limits.messages_max - group->place_count;

    if (sl_group_reads_again(
            group)) /* what is known but unread fills the buffer, and only reading can empty it */
        return slots > 0 ? slots : 1;
    return buffer < slots ? buffer : slots;
}

bool sl_group_wants(const sl_group *group, sl_place place)
{
    return place_is_valid(place) && sl_line_wants(&group->lines[place.lane], place.position);
}

sl_err sl_group_offer(sl_group *group, const sl_offer *offers, uint32_t offer_count, uint64_t now_ns,
                      uint32_t *ret_taken)
{
    sl_err err = SL_OK;
    uint32_t taken = 0;

    sl_group_enter(group, now_ns);
    while (taken < offer_count && err == SL_OK) {
        err = place_is_valid(offers[taken].place) ? sl_line_offer(group, &offers[taken]) : SL_ERR_INVALID;
        taken += err == SL_OK;
    }
    sl_group_exit(group);
    *ret_taken = taken;
    return err;
}

sl_err sl_group_advance(sl_group *group, sl_place place, uint32_t considered, uint64_t now_ns)
{
    if (!place_is_valid(place))
        return SL_ERR_INVALID;
    sl_group_enter(group, now_ns);
    sl_line_advance(group, place, considered);
    sl_group_exit(group);
    return SL_OK;
}

sl_err sl_group_update(sl_group *group, const sl_settings *settings, uint64_t now_ns)
{
    const char *field;

    if (sl_settings_validate(settings, &field) != SL_OK)
        return SL_ERR_INVALID;
    if (sl_strategy_is_pinned(settings->strategy) && !group->limits.keyed)
        return SL_ERR_INVALID;
    sl_group_enter(group, now_ns);
    sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_SETTINGS, .settings = *settings });
    sl_strategy_change(group, settings);
    sl_group_exit(group);
    return SL_OK;
}

/* store/journal/states.c — snapshots of groups: writing them into the log, and loading groups from it.
 *
 * Each part of a state is a frame of its own, so that a large group needs no large frame. A state that was not finished,
 * because the disk is full or power was lost, does no harm: its group begins where it began before. */
#include "store/journal/journal_private.h"

#include "core/record.h"

#include <assert.h>

enum {
    PART_BYTES_MAX = 1 << 20,
    /* A state is written anew with each segment, unless it is so large that it would be most of what is written. */
    SEGMENTS_WORTH = 4,
};

/* --- collecting --- */

typedef struct collector {
    sl_buf *bytes;
    sl_err err;
} collector;

static void collect(void *ctx, const sl_effect *effect)
{
    collector *const c = ctx;
    uint8_t record[SL_GROUP_STATE_RECORD_BYTES_MAX];
    const size_t bytes = sl_record_encode(effect, record + 1);

    record[0] = (uint8_t)bytes;
    if (c->err == SL_OK)
        c->err = sl_buf_append(c->bytes, record, 1 + bytes);
}

/* How many bytes of whole records the next part takes. */
static size_t part_bytes(const uint8_t *bytes, size_t left, size_t max)
{
    size_t sum = 0;

    while (sum < left && sum + 1 + bytes[sum] <= max)
        sum += 1 + (size_t)bytes[sum];
    return sum;
}

/* --- writing --- */

static sl_err write_part(journal_store *store, const sl_group_state *part, sl_log_place *ret_place)
{
    const size_t bytes = sl_group_state_payload_bytes(part);
    uint8_t *payload;
    sl_err err = journal_begin(store, sl_record_size(bytes), false);

    if (err != SL_OK)
        return err;
    err = journal_record(store, SL_RECORD_GROUP_STATE, bytes, &payload, ret_place);
    if (err != SL_OK) {
        journal_abort(store);
        return err;
    }
    sl_group_state_put(part, payload);
    journal_end(store);
    return SL_OK;
}

static size_t part_bytes_max(const journal_store *store, size_t definition_bytes)
{
    const size_t half = sl_log_frame_max(store->log) / 2;
    const size_t most = half < PART_BYTES_MAX ? half : PART_BYTES_MAX;
    const size_t beside = SL_RECORD_HEADER_BYTES + SL_GROUP_STATE_HEAD_BYTES + definition_bytes + 8;

    return most > beside + SL_GROUP_STATE_RECORD_BYTES_MAX ? most - beside : SL_GROUP_STATE_RECORD_BYTES_MAX;
}

static sl_err write_parts(journal_store *store, journal_group *group)
{
    const size_t max = part_bytes_max(store, group->definition_bytes);
    const uint8_t *at = sl_buf_data(&store->state);
    size_t left = store->state.bytes;
    uint64_t start = 0, segment = 0;
    sl_log_place place = { 0 };

    do {
        const size_t bytes = part_bytes(at, left, max);
        const sl_group_state part = { .group = group->number,
                                      .is_first = start == 0,
                                      .is_last = bytes == left,
                                      .definition = { group->definition,
                                                      start == 0 ? group->definition_bytes : 0 },
                                      .bytes = at,
                                      .byte_count = bytes };
        const sl_err err = write_part(store, &part, &place);

        if (err != SL_OK)
            return err;
        segment = start == 0 ? journal_last_shelf(store)->segment.number : segment;
        start = start == 0 ? place.position : start;
        at += bytes;
        left -= bytes;
    } while (left > 0);
    group->state_bytes = store->state.bytes;
    journal_groups_stated(group, start, place.position + 1, segment);
    return SL_OK;
}

/* Whatever goes wrong here, the records before are still there. */
static void write_state(journal_store *store, journal_group *group)
{
    collector c = { .bytes = &store->state };

    sl_buf_clear(&store->state);
    store->base.on_snapshot(store->base.on_snapshot_ctx, group->number, (sl_sink){ collect, &c });
    if (c.err != SL_OK || store->state.bytes == 0 || write_parts(store, group) != SL_OK)
        group->record_count = 0; /* not with each turn: when as many records have come again */
    store->writer.next_position = sl_log_next(store->log);
}

static void write_due(journal_store *store)
{
    while (!sl_list_empty(&store->groups.due)) {
        journal_group *const group = SL_CONTAINER_OF(store->groups.due.next, journal_group, in_due);

        sl_list_remove(&group->in_due); /* the next record brings it back when nothing comes of this */
        if (store->base.on_snapshot != NULL)
            write_state(store, group);
    }
}

/* --- a new segment --- */

static bool is_worth_it(const journal_store *store, const journal_group *group, uint64_t segment)
{
    const uint64_t segments = segment - group->started_number;

    return segments > 0 && segments * sl_log_frame_max(store->log) >= SEGMENTS_WORTH * group->state_bytes;
}

static void write_all(journal_store *store, uint64_t segment)
{
    SL_LIST_EACH_SAFE (node, &store->groups.all) {
        journal_group *const group = SL_CONTAINER_OF(node, journal_group, in_all);

        if (store->base.on_snapshot != NULL && is_worth_it(store, group, segment))
            write_state(store, group);
    }
}

static sl_err write_groups_from(journal_store *store, uint64_t segment)
{
    sl_log_place place;
    uint8_t *payload;
    sl_err err = journal_begin(store, sl_record_size(sizeof(uint64_t)), true);

    if (err != SL_OK)
        return err;
    err = journal_record(store, SL_RECORD_GROUPS_FROM, sizeof(uint64_t), &payload, &place);
    if (err != SL_OK) {
        journal_abort(store);
        return err;
    }
    store->states_from = journal_groups_from(&store->groups, segment);
    sl_put_u64(payload, store->states_from);
    journal_end(store);
    store->writer.next_position = sl_log_next(store->log);
    return SL_OK;
}

void journal_states_write(journal_store *store)
{
    const uint64_t segment = journal_last_shelf(store)->segment.number;

    if (sl_log_err(store->log) != SL_OK)
        return;
    write_due(store);
    if (segment == store->states_number)
        return;
    write_all(store, segment);
    if (write_groups_from(store, journal_last_shelf(store)->segment.number) == SL_OK)
        store->states_number = journal_last_shelf(store)->segment.number;
}

/* --- loading --- */

typedef struct loading {
    const journal_groups *groups;
    const sl_loader *loader;
} loading;

static sl_err load_record(void *ctx, const sl_record_view *record, sl_record_place place)
{
    const loading *const l = ctx;

    (void)place;
    return journal_is_group_record(record->kind) ? journal_groups_load(l->groups, record, l->loader) : SL_OK;
}

sl_err journal_states_load(sl_store *base, const sl_loader *loader)
{
    journal_store *const store = journal_of(base);
    const uint64_t from = journal_groups_from(&store->groups, journal_last_shelf(store)->segment.number);
    loading l = { &store->groups, loader };
    sl_err err = SL_OK;

    if (sl_list_empty(&store->groups.all))
        return SL_OK;
    sl_log_turn(store->log);
    for (uint32_t i = 0; i < store->shelf_count && err == SL_OK; i++) {
        sl_segment_ref segment;
        uint64_t offset = 0;

        sl_log_segment(store->log, i, &segment);
        if (segment.number < from)
            continue;
        err = sl_segment_each(&segment, load_record, &l, &offset);
        if (err == SL_ERR_CORRUPT)
            journal_complain(store, "Damage", store->shelves[i], false, offset);
    }
    return err;
}

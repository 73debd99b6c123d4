/* server/groups/desk_hand_in.c — the log of a group on its way through the door, and what is released behind it.
 *
 * At the end of a turn everything that was collected goes in as one batch that is synced, up to the last record that wants that, and
 * one behind it that is only written. The second one is answered first: then everything before it is written too, since
 * the store keeps the order, and events leave without waiting for the disk.
 *
 * A batch with an append can be refused when the disk is full, and that is told when it is done. So nothing is submitted behind such a
 * batch until then: else the log would go on without it. Records alone are refused at once, when even the reserve for
 * settling is used up. Both are tried again until there is room; meanwhile nothing is given out (desk_full.c). */
#include "server/groups/desk_private.h"

#include "base/cleanup.h"

#include <assert.h>

enum {
    OPS_MAX = SL_BATCH_OPS_MAX / 2, /* a record may bring an append along */
    APPEND_BYTES_MAX = 4 * 1024 * 1024,
    RECORDS_KEPT_MAX = 2048, /* room for so many is kept for the next turn; more than that is a rare burst */
};

#define TRY_AGAIN_NS DESK_SECOND_NS

/* --- releasing --- */

/* To the seat they are for, as far as the log allows. */
static void release_from(sl_desk *desk, sl_list *queue)
{
    while (!sl_list_empty(queue)) {
        desk_answer *const answer = SL_CONTAINER_OF(sl_list_first(queue), desk_answer, queue);

        if (answer->needs_written > desk->written || answer->needs_durable > desk->durable)
            return;
        sl_list_remove(&answer->queue);
        sl_list_push_back(&answer->seat->out, &answer->queue);
        sl_list_remove(&answer->seat->ready);
        sl_list_push_back(&desk->ready_seats, &answer->seat->ready);
    }
}

/* A handler may leave its seat or make the desk fail, but the desk itself is not freed from there. */
static void release(sl_desk *desk)
{
    release_from(desk, &desk->written_answers);
    release_from(desk, &desk->durable_answers);
    desk_marks_release(desk);
    while (!sl_list_empty(&desk->ready_seats)) {
        sl_seat *const seat = SL_CONTAINER_OF(sl_list_first(&desk->ready_seats), sl_seat, ready);

        sl_list_remove(&seat->ready);
        desk_seat_push(seat);
    }
}

/* --- records --- */

void desk_record_done(sl_desk *desk, desk_record *record, sl_err err)
{
    desk_append_free(desk, record->append);
    record->append = NULL;
    desk_reason_release(desk, SL_TAKE_PTR(record->reason));
    if (record->done != NULL)
        record->done(record->done_ctx, err);
    record->done = NULL;
}

static void packet_free(desk_packet *packet)
{
    sl_list_remove(&packet->node);
    desk_give(packet->alloc, packet->records, packet->record_count * sizeof *packet->records);
    desk_give(packet->alloc, packet, sizeof *packet);
}

static void packet_finish(desk_packet *packet, sl_err err)
{
    for (uint32_t i = 0; packet->records != NULL && i < packet->record_count; i++)
        desk_record_done(packet->desk, &packet->records[i], err);
}

static void records_free(sl_desk *desk)
{
    for (uint32_t i = 0; i < desk->record_count; i++)
        desk_record_done(desk, &desk->records[i], SL_ERR_STORE_FAILED);
    desk_give(desk->host->alloc, desk->records, desk->record_capacity * sizeof *desk->records);
    desk->records = NULL;
    desk->record_count = desk->record_capacity = desk->links_wanted = 0;
}

/* The store still has pointers to them. */
void desk_packets_orphan(sl_desk *desk)
{
    while (!sl_list_empty(&desk->packets)) {
        desk_packet *const packet = SL_CONTAINER_OF(sl_list_first(&desk->packets), desk_packet, node);

        packet_finish(packet, SL_ERR_STORE_FAILED);
        sl_list_remove(&packet->node);
        packet->desk = NULL;
    }
}

void desk_records_give_up(sl_desk *desk)
{
    desk_packet *const refused = SL_TAKE_PTR(desk->refused);

    if (refused != NULL) {
        packet_finish(refused, SL_ERR_STORE_FAILED);
        packet_free(refused);
    }
    records_free(desk);
}

/* --- done --- */

static void count_done(sl_desk *desk, const desk_packet *packet)
{
    desk->written = sl_max_u64(desk->written, packet->last);
    if (packet->sync)
        desk->durable = sl_max_u64(desk->durable, packet->last);
    if (desk->stuck_at > 0 && packet->last >= desk->stuck_at) {
        desk->stuck_at = 0;
        desk->reader_may_go = true;
    }
}

/* `link` is "NUMBER@STREAM": nothing else says any more which message it was. */
static void log_dropped(sl_desk *desk, sl_str link)
{
    char target[DESK_NAME_BYTES];
    sl_text text;

    sl_text_init(&text, target, sizeof target);
    sl_text_add_str(&text, link);
    desk->skipped++;
    sl_log(
        desk->host->log, SL_LOG_ERROR,
        "a message could not be parked, because the stream of parked messages is tombstoned: it is skipped",
        SL_LOG_STR("group", desk->key), SL_LOG_STR("message", target), SL_LOG_STR("stream", desk->parked));
}

/* The stream of parked messages was tombstoned: there is no place for them any more. The records count all the same, or the
 * group would stand still for ever. */
static void drop_appends(desk_packet *packet)
{
    for (uint32_t i = 0; i < packet->record_count; i++) {
        desk_record *const record = &packet->records[i];

        if (record->append != NULL && record->is_record)
            log_dropped(packet->desk, record->append->data);
        desk_append_free(packet->desk, record->append);
        record->append = NULL;
    }
}

static void refuse(sl_desk *desk, desk_packet *packet, sl_err err)
{
    assert(desk->refused == NULL);
    sl_list_remove(&packet->node);
    desk->refused = packet;
    if (err == SL_ERR_NO_SPACE)
        desk->stuck_at = packet->last - packet->record_count + 1;
    else
        drop_appends(packet);
    sl_alarm_set(desk->host, &desk->retry,
                 err == SL_ERR_NO_SPACE ? sl_clock_mono_ns(desk->host->clock) + TRY_AGAIN_NS : 0);
}

static void on_done(void *ctx, const sl_commit *commit)
{
    desk_packet *const packet = ctx;
    sl_desk *const desk = packet->desk;
    const bool again = commit->err == SL_ERR_NO_SPACE || commit->err == SL_ERR_STREAM_DELETED;

    if (desk == NULL) {
        packet_free(packet);
        return;
    }
    if (packet->records != NULL)
        desk->append_inside = false;
    sl_host_at_turn_end(desk->host, &desk->turn_end);
    if (packet->records != NULL && again && desk->state != DESK_FAILED) {
        refuse(desk, packet, commit->err);
        return;
    }
    if (commit->err == SL_OK)
        count_done(desk, packet);
    else
        desk_fail(desk, commit->err, "commit");
    packet_finish(packet, commit->err);
    packet_free(packet);
    if (desk->state != DESK_FAILED)
        release(desk);
}

/* --- submitting --- */

static sl_op op_of_append(const desk_append *append, sl_event_in *event)
{
    *event = (sl_event_in){ .id = append->id,
                            .type = append->type,
                            .data = append->data,
                            .metadata = append->metadata,
                            .is_json = append->is_json,
                            .created_ns = append->created_ns };
    return (sl_op){ .kind = SL_OP_APPEND,
                    .append = { .stream = append->stream, .events = event, .event_count = 1 } };
}

/* One thread, and the store keeps nothing of them. */
typedef struct op_room {
    sl_op ops[SL_BATCH_OPS_MAX];
    sl_event_in events[OPS_MAX];
    sl_effect effects[OPS_MAX];
    uint32_t op_count, effect_count;
    bool may_add; /* the last op takes more records */
} op_room;

/* Records that follow each other are one op, as far as it goes: the store has less to do for each. */
static void add_record(op_room *room, uint64_t group, const sl_effect *effect)
{
    if (!room->may_add)
        room->ops[room->op_count++] =
            (sl_op){ .kind = SL_OP_GROUP_RECORD,
                     .group_record = { group, &room->effects[room->effect_count], 0 } };
    room->effects[room->effect_count++] = *effect;
    room->may_add = ++room->ops[room->op_count - 1].group_record.record_count < SL_OP_RECORDS_MAX;
}

static void add_append(op_room *room, const desk_append *append, uint32_t nth)
{
    room->ops[room->op_count++] = op_of_append(append, &room->events[nth]);
    room->may_add = false;
}

static void fill_ops(op_room *room, uint64_t group, const desk_record *records, uint32_t count)
{
    room->op_count = room->effect_count = 0;
    room->may_add = false;
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].is_record)
            add_record(room, group, &records[i].effect);
        if (records[i].append != NULL)
            add_append(room, records[i].append, i);
    }
}

/* Not while something else of the group waits for its records: an event whose lease stands between two acknowledgements, with nothing
 * behind them that is only written, or the answer to a stop. */
static bool is_patient(const sl_desk *desk, const desk_packet *packet, uint32_t count)
{
    const bool is_last = count == desk->record_count;

    return packet->sync && packet->records == NULL && desk->state == DESK_OPEN &&
           !(is_last && !sl_list_empty(&desk->written_answers));
}

static sl_err submit(sl_desk *desk, desk_packet *packet, const desk_record *records, uint32_t count)
{
    static op_room room;
    sl_batch batch = { .ops = room.ops,
                       .durability = packet->sync ? SL_DURABLE_SYNC : SL_DURABLE_WRITTEN,
                       .patient = is_patient(desk, packet, count) };

    fill_ops(&room, desk->number, records, count);
    batch.op_count = room.op_count;
    if (batch.op_count == 0) { /* appends that were dropped */
        packet_finish(packet, SL_OK);
        return SL_ERR_EMPTY;
    }
    return sl_door_submit_settle(desk->host->door, &batch, on_done, packet);
}

/* What goes into the next batch: at most up to the last one that wants a sync, if there is such a one. */
typedef struct cut {
    uint32_t count;
    bool sync, has_append;
} cut;

static cut next_cut(const sl_desk *desk)
{
    const uint64_t first = desk->emitted - desk->record_count + 1;
    const bool sync = desk->wants_sync >= first;
    const uint64_t most = sync ? desk->wants_sync - first + 1 : desk->record_count;
    cut c = { .sync = sync };
    size_t bytes = 0;

    while (c.count < sl_min_u64(most, OPS_MAX)) {
        const desk_record *const record = &desk->records[c.count];

        bytes += record->append == NULL ? 0 : record->append->bytes;
        if (record->waits_for_link || bytes > APPEND_BYTES_MAX)
            break;
        c.has_append = c.has_append || record->append != NULL;
        c.count++;
    }
    return c;
}

static desk_packet *packet_new(sl_desk *desk, const cut *c)
{
    const sl_alloc *const alloc = desk->host->alloc;
    desk_packet *const packet = sl_alloc_take(alloc, sizeof *packet);

    if (packet == NULL)
        return NULL;
    *packet = (desk_packet){ .desk = desk,
                             .alloc = alloc,
                             .last = desk->emitted - desk->record_count + c->count,
                             .sync = c->sync || c->has_append };
    sl_list_init(&packet->node);
    if (!c->has_append)
        return packet;
    packet->records = sl_alloc_take(alloc, c->count * sizeof *packet->records);
    if (packet->records == NULL) {
        desk_give(alloc, packet, sizeof *packet);
        return NULL;
    }
    packet->record_count = c->count;
    memcpy(packet->records, desk->records, c->count * sizeof *packet->records);
    return packet;
}

static void took(sl_desk *desk, desk_packet *packet, uint32_t count)
{
    sl_list_push_back(&desk->packets, &packet->node);
    desk->append_inside = packet->records != NULL;
    desk->submitted = packet->last;
    desk->record_count -= count;
    memmove(desk->records, desk->records + count, desk->record_count * sizeof *desk->records);
    if (desk->record_count == 0 && desk->record_capacity > RECORDS_KEPT_MAX)
        records_free(desk);
}

static void wait_at_door(sl_desk *desk)
{
    desk->at_door = true;
    sl_door_wait(desk->host->door, &desk->door_waiter);
}

/* Nothing is inside that came after it, so it is enough to begin with it again. */
static void no_space(sl_desk *desk)
{
    const desk_packet *const refused = desk->refused;

    if (desk->stuck_at == 0)
        desk->stuck_at = refused == NULL ? desk->submitted + 1 : refused->last - refused->record_count + 1;
    sl_alarm_set(desk->host, &desk->retry, sl_clock_mono_ns(desk->host->clock) + TRY_AGAIN_NS);
}

/* What the door said of a batch that it did not take. */
static void not_taken(sl_desk *desk, sl_err err)
{
    if (err == SL_ERR_FULL)
        wait_at_door(desk);
    else if (err == SL_ERR_NO_SPACE)
        no_space(desk);
    else
        desk_fail(desk, err, "submit");
}

static bool submit_next(sl_desk *desk)
{
    const cut c = next_cut(desk);
    desk_packet *const packet = c.count == 0 ? NULL : packet_new(desk, &c);
    sl_err err;

    if (c.count == 0)
        return false;
    if (packet == NULL) {
        desk_fail(desk, SL_ERR_NOMEM, "packet");
        return false;
    }
    err = submit(desk, packet, desk->records, c.count);
    if (err == SL_OK) {
        took(desk, packet, c.count);
        return true;
    }
    desk_give(packet->alloc, packet->records, packet->record_count * sizeof *packet->records);
    desk_give(packet->alloc, packet, sizeof *packet);
    not_taken(desk, err);
    return false;
}

/* The one that had no space. False: it still waits. */
static bool submit_refused(sl_desk *desk)
{
    desk_packet *const packet = desk->refused;
    sl_err err;

    if (packet == NULL)
        return true;
    if (desk->retry.is_set)
        return false;
    err = submit(desk, packet, packet->records, packet->record_count);
    if (err != SL_OK && err != SL_ERR_EMPTY) {
        not_taken(desk, err);
        return false;
    }
    desk->refused = NULL;
    desk->reader_may_go = true;
    if (err == SL_ERR_EMPTY) {
        count_done(desk, packet);
        packet_free(packet);
        return true;
    }
    sl_list_push_back(&desk->packets, &packet->node);
    desk->append_inside = true;
    return true;
}

static bool may_submit(const sl_desk *desk)
{
    return desk->state != DESK_FAILED && !desk->at_door && !desk->append_inside && desk->refused == NULL &&
           !desk->retry.is_set;
}

void desk_hand_in(sl_desk *desk)
{
    if (!desk->at_door && !desk->append_inside && desk->state != DESK_FAILED)
        (void)submit_refused(desk);
    while (may_submit(desk) && desk->record_count > 0 && submit_next(desk))
        continue;
    if (desk->state != DESK_FAILED)
        release(desk);
    desk_seats_go_on(desk);
}

static void on_door(void *ctx)
{
    sl_desk *const desk = ctx;

    desk->at_door = false;
    desk->reader_may_go = true;
    desk_hand_in(desk);
    sl_host_at_turn_end(desk->host, &desk->turn_end);
}

void desk_hand_in_init(sl_desk *desk)
{
    sl_door_waiter_init(&desk->door_waiter, on_door, desk);
}

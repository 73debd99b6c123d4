/* tests/faults/draw.c — see draw.h. */
#include "draw.h"

static int64_t draw_expected(draw *from, const model *m, int stream)
{
    const int64_t last = m->streams[stream].last;

    switch (dice_pick(&from->d, 8)) {
    case 0: return MODEL_NO_STREAM;
    case 1: return MODEL_EXISTS;
    case 2:
    case 3: return last == INT64_MAX ? 3 : last;
    case 4: return (int64_t)dice_pick(&from->d, 12);
    default: return MODEL_ANY;
    }
}

/* The memory of recent ids need not survive a crash, so only an expectation that does not need it meets old ids. */
static uint64_t draw_number(draw *from, int64_t expected)
{
    const uint64_t oldest = expected >= -1 ? 1 : from->fresh_number;

    if (from->next_number == oldest || !dice_one_in(&from->d, 6))
        return from->next_number++;
    return oldest + dice_pick(&from->d, from->next_number - oldest);
}

/* As many as the batch has room for; one at least. Often a run of numbers, as in an append that is sent again. */
static void draw_ids(draw *from, model_op *op, uint32_t *bytes)
{
    const int wanted = dice_one_in(&from->d, 3) ? 1 + (int)dice_pick(&from->d, MODEL_IDS_MAX) : 1;

    op->ids[0] = draw_number(from, op->expected);
    *bytes += (uint32_t)text_data_bytes(op->ids[0]);
    for (op->id_count = 1; op->id_count < wanted && *bytes < from->bytes_max; op->id_count++) {
        const uint64_t before = op->ids[op->id_count - 1];
        const uint64_t number = before + 1 < from->next_number ? before + 1 : draw_number(from, op->expected);

        op->ids[op->id_count] = number;
        *bytes += (uint32_t)text_data_bytes(number);
    }
}

/* Whether an id at an exact revision is known depends on whether the event is still there: where that is in doubt, the id
 * is one that was never there. */
static void avoid_doubt(draw *from, const model *m, model_op *op)
{
    for (int i = 0; i < op->id_count && op->expected >= -1; i++)
        if (op->expected + 1 + i < m->streams[op->stream].doomed_below)
            op->ids[i] = from->next_number++;
}

/* A few streams get most of the events, as in life. */
static int draw_stream(draw *from)
{
    return (int)dice_pick(&from->d, dice_one_in(&from->d, 2) ? 3 : MODEL_STREAMS);
}

static model_op draw_event_op(draw *from, const model *m, uint32_t *bytes)
{
    const uint64_t what = dice_pick(&from->d, 200);
    model_op op = { .kind = SL_OP_APPEND, .stream = draw_stream(from) };

    if (what < 12)
        op.kind = what == 0 ? SL_OP_TOMBSTONE : SL_OP_DELETE;
    else if (what < 30)
        op.stream += MODEL_STREAMS;
    op.expected = draw_expected(from, m, op.stream);
    if (op.kind != SL_OP_APPEND) {
        op.ids[0] = from->next_number++;
        return op;
    }
    draw_ids(from, &op, bytes);
    avoid_doubt(from, m, &op);
    if (what < 22)
        op.truncate_before = dice_one_in(&from->d, 4) ? INT64_MAX : (int64_t)dice_pick(&from->d, 20);
    if (what < 26)
        op.max_count = (int64_t)dice_pick(&from->d, 9);
    return op;
}

static model_op draw_group_op(draw *from, const model *m)
{
    model_op op = { .kind = SL_OP_GROUP_RECORD, .stream = (int)dice_pick(&from->d, MODEL_GROUPS) };

    op.ids[0] = from->next_number++;
    if (!m->groups[op.stream].exists && !dice_one_in(&from->d, 10))
        op.kind = SL_OP_GROUP_CREATE;
    else if (dice_one_in(&from->d, 60))
        op.kind = dice_one_in(&from->d, 4) ? SL_OP_GROUP_CREATE : SL_OP_GROUP_DELETE;
    else if (dice_one_in(&from->d, 10))
        op.kind = SL_OP_GROUP_UPDATE;
    op.id_count = 1;
    while (op.kind == SL_OP_GROUP_RECORD && op.id_count < MODEL_IDS_MAX && dice_one_in(&from->d, 2))
        op.ids[op.id_count++] = from->next_number++;
    return op;
}

/* --- the same for the store --- */

static sl_expected expected_of(int64_t expected)
{
    if (expected == MODEL_ANY)
        return (sl_expected){ .kind = SL_EXPECT_ANY };
    if (expected == MODEL_EXISTS)
        return (sl_expected){ .kind = SL_EXPECT_STREAM_EXISTS };
    if (expected == MODEL_NO_STREAM)
        return (sl_expected){ .kind = SL_EXPECT_NO_STREAM };
    return (sl_expected){ .kind = SL_EXPECT_EXACT, .revision = (uint64_t)expected };
}

static sl_op append_for(drawn *b, uint32_t index)
{
    const model_op *const op = &b->ops[index];
    const bool is_metadata = model_is_metadata(op->stream);

    for (int i = 0; i < op->id_count; i++)
        b->events[index][i] =
            is_metadata ? text_metadata(op->ids[i], op->truncate_before, op->max_count, b->texts[index][i])
                        : text_event(op->ids[i], b->texts[index][i]);
    return (sl_op){ .kind = SL_OP_APPEND,
                    .append = { .stream = text_stream(op->stream % MODEL_STREAMS, is_metadata),
                                .expected = expected_of(op->expected),
                                .events = b->events[index],
                                .event_count = (uint32_t)op->id_count } };
}

static sl_op remove_for(const model_op *op)
{
    return (sl_op){ .kind = op->kind,
                    .remove = { .stream = text_stream(op->stream, false),
                                .expected = expected_of(op->expected),
                                .created_ns = text_created_ns(op->ids[0]),
                                .id = text_id(op->ids[0]) } };
}

static sl_op group_for(drawn *b, uint32_t index)
{
    const model_op *const op = &b->ops[index];
    const uint64_t group = (uint64_t)op->stream + 1;
    sl_op store_op = { .kind = op->kind };

    if (op->kind == SL_OP_GROUP_CREATE) {
        store_op.group_create.group = group;
        store_op.group_create.definition = text_definition(op->ids[0], b->definitions[index]);
    } else if (op->kind == SL_OP_GROUP_UPDATE) {
        store_op.group_update.group = group;
        store_op.group_update.definition = text_definition(op->ids[0], b->definitions[index]);
    } else if (op->kind == SL_OP_GROUP_DELETE) {
        store_op.group_delete.group = group;
    } else {
        for (int i = 0; i < op->id_count; i++)
            b->records[index][i] = text_record(op->ids[i]);
        store_op.group_record.group = group;
        store_op.group_record.records = b->records[index];
        store_op.group_record.record_count = (uint32_t)op->id_count;
    }
    return store_op;
}

static sl_op op_for(drawn *b, uint32_t index)
{
    const sl_op_kind kind = b->ops[index].kind;

    if (kind == SL_OP_APPEND)
        return append_for(b, index);
    return kind == SL_OP_DELETE || kind == SL_OP_TOMBSTONE ? remove_for(&b->ops[index]) : group_for(b, index);
}

/* Group 1, and a stream that is not tombstoned. */
static model_op draw_plain(draw *from, const model *m)
{
    model_op op = { .kind = SL_OP_APPEND, .expected = MODEL_ANY, .id_count = 1 };

    op.ids[0] = from->next_number++;
    if (from->what == DRAW_RECORDS)
        op.kind = m->groups[0].exists ? SL_OP_GROUP_RECORD : SL_OP_GROUP_CREATE;
    while (from->what == DRAW_APPENDS && op.stream + 1 < MODEL_STREAMS && model_tombstoned(m, op.stream))
        op.stream++;
    return op;
}

void draw_batch(draw *from, const model *m, drawn *ret_batch)
{
    const uint64_t what = dice_pick(&from->d, 100); /* of groups alone, of events alone, of both */
    uint32_t bytes = 0;

    if (from->what != DRAW_ANYTHING) {
        ret_batch->durability = SL_DURABLE_SYNC;
        ret_batch->op_count = 1;
        ret_batch->ops[0] = draw_plain(from, m);
        ret_batch->store_ops[0] = op_for(ret_batch, 0);
        return;
    }
    ret_batch->durability = what < 40 && !dice_one_in(&from->d, 3) ? SL_DURABLE_WRITTEN : SL_DURABLE_SYNC;
    ret_batch->op_count = dice_one_in(&from->d, 2) ? 1 : 1 + (uint32_t)dice_pick(&from->d, DRAW_OPS_MAX);
    for (uint32_t i = 0; i < ret_batch->op_count; i++) {
        const bool of_group =
            what < 40 || (what >= 90 && dice_one_in(&from->d, 2)) || bytes > from->bytes_max;

        if (of_group && what >= 40 && what < 90) {
            ret_batch->op_count = i; /* it is large enough */
            return;
        }
        ret_batch->ops[i] = of_group ? draw_group_op(from, m) : draw_event_op(from, m, &bytes);
        ret_batch->store_ops[i] = op_for(ret_batch, i);
    }
}

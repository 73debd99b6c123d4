/* wire/codec/common.c — revisions, positions, times, streams and lists. Ids are in id.c, events in event.c. */
#include "wire/codec/common.h"

#include "base/cleanup.h"

enum {
    STREAM_NAME = 3, /* 1 and 2 were used by an older protocol */
    NS_PER_SECOND = 1000000000,
};

/* --- streams, positions, times --- */

void sl_wire_take_stream(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    while (sl_proto_next(&inner, &part))
        if (part.number == STREAM_NAME)
            sl_proto_take_bytes(&inner, &part, into);
    sl_proto_leave(reader, &inner);
}

void sl_wire_put_stream(sl_proto_writer *writer, uint32_t number, sl_str stream)
{
    const size_t before = writer->used;

    sl_proto_put_bytes(writer, STREAM_NAME, stream);
    sl_proto_wrap(writer, number, before);
}

void sl_wire_take_position(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_position *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    if (into->kind != SL_WIRE_POSITION_GIVEN)
        *into = (sl_wire_position){ .kind = SL_WIRE_POSITION_GIVEN };
    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_proto_take_u64(&inner, &part, &into->commit);
        else if (part.number == 2)
            sl_proto_take_u64(&inner, &part, &into->prepare);
    }
    sl_proto_leave(reader, &inner);
}

void sl_wire_put_position(sl_proto_writer *writer, uint32_t number, const sl_wire_position *position)
{
    const size_t before = writer->used;

    sl_proto_put_u64(writer, 2, position->prepare);
    sl_proto_put_u64(writer, 1, position->commit);
    sl_proto_wrap(writer, number, before);
}

void sl_wire_put_place(sl_proto_writer *writer, uint32_t number, const sl_wire_position *position)
{
    switch (position->kind) {
    case SL_WIRE_POSITION_UNSET: break;
    case SL_WIRE_POSITION_NONE: sl_proto_put_empty(writer, number + 1); break;
    case SL_WIRE_POSITION_GIVEN: sl_wire_put_position(writer, number, position); break;
    }
}

void sl_wire_take_no_position(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_position *into)
{
    sl_proto_take_empty(reader, field);
    *into = (sl_wire_position){ .kind = SL_WIRE_POSITION_NONE };
}

void sl_wire_take_time(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_time *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    into->given = true;
    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_proto_take_i64(&inner, &part, &into->seconds);
        else if (part.number == 2)
            sl_proto_take_i32(&inner, &part, &into->nanos);
    }
    sl_proto_leave(reader, &inner);
}

void sl_wire_put_time(sl_proto_writer *writer, uint32_t number, const sl_wire_time *time)
{
    const size_t before = writer->used;

    if (!time->given)
        return;
    sl_proto_put_i64(writer, 2, time->nanos);
    sl_proto_put_i64(writer, 1, time->seconds);
    sl_proto_wrap(writer, number, before);
}

sl_wire_time sl_wire_time_from_ns(uint64_t wall_ns)
{
    return (sl_wire_time){
        .given = true,
        .seconds = (int64_t)(wall_ns / NS_PER_SECOND),
        .nanos = (int32_t)(wall_ns % NS_PER_SECOND),
    };
}

/* --- revisions --- */

static const sl_wire_revision_kind revision_row[] = {
    SL_WIRE_REVISION_NUMBER,
    SL_WIRE_REVISION_NO_STREAM,
    SL_WIRE_REVISION_ANY,
    SL_WIRE_REVISION_STREAM_EXISTS,
};

void sl_wire_take_revision(sl_proto_reader *reader, const sl_proto_field *field, uint32_t first,
                           sl_wire_revision *into)
{
    const uint32_t index = field->number - first;

    assert(index < SL_COUNT_OF(revision_row));
    *into = (sl_wire_revision){ .kind = revision_row[index] };
    if (index == 0)
        sl_proto_take_u64(reader, field, &into->number);
    else
        sl_proto_take_empty(reader, field);
}

void sl_wire_put_revision(sl_proto_writer *writer, uint32_t first, sl_wire_revision revision)
{
    switch (revision.kind) {
    case SL_WIRE_REVISION_UNSET: break;
    case SL_WIRE_REVISION_NUMBER: sl_proto_put_given(writer, first, revision.number); break;
    case SL_WIRE_REVISION_NO_STREAM: sl_proto_put_empty(writer, first + 1); break;
    case SL_WIRE_REVISION_ANY: sl_proto_put_empty(writer, first + 2); break;
    case SL_WIRE_REVISION_STREAM_EXISTS: sl_proto_put_empty(writer, first + 3); break;
    }
}

/* --- lists --- */

sl_wire_walk sl_wire_items_walk(const sl_wire_items *items)
{
    const bool top = items->arm == 0;

    return (sl_wire_walk){
        .outer = sl_proto_reader_from(top ? (sl_str){ 0 } : items->part),
        .inner = sl_proto_reader_from(top ? items->part : (sl_str){ 0 }),
        .arm = items->arm,
        .number = items->number,
    };
}

/* The next part of the embedded message that holds the items; it may come in several. */
static bool next_arm(sl_wire_walk *walk)
{
    sl_proto_field field;

    while (sl_proto_next(&walk->outer, &field))
        if (field.number == walk->arm && field.type == SL_PROTO_BYTES) {
            walk->inner = sl_proto_reader_from(field.bytes);
            return true;
        }
    return false;
}

bool sl_wire_items_next(sl_wire_walk *walk, sl_str *ret_item)
{
    sl_proto_field field;

    do
        while (sl_proto_next(&walk->inner, &field))
            if (field.number == walk->number && field.type == SL_PROTO_BYTES) {
                *ret_item = field.bytes;
                return true;
            }
    while (next_arm(walk));
    return false;
}

bool sl_wire_ids_next(sl_wire_walk *walk, sl_wire_id *ret_id)
{
    sl_str item;

    if (!sl_wire_items_next(walk, &item))
        return false;
    const sl_err err = sl_wire_id_decode(item, ret_id, NULL);
    assert(err == SL_OK); /* the decoder of the message has looked at each of them */
    return true;
}

bool sl_wire_labels_next(sl_wire_walk *walk, sl_wire_label *ret_label)
{
    sl_proto_field field = { .type = SL_PROTO_BYTES };
    sl_proto_reader reader = { 0 };

    if (!sl_wire_items_next(walk, &field.bytes))
        return false;
    sl_wire_take_entry(&reader, &field, ret_label);
    assert(reader.reason == NULL); /* the same */
    return true;
}

void sl_wire_count_id(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_ids *into)
{
    sl_wire_id id = { 0 };

    sl_wire_take_id(reader, field, &id);
    into->count++;
    if (id.form != SL_WIRE_ID_STRUCTURED && id.form != SL_WIRE_ID_TEXT)
        into->wrong_count++;
}

void sl_wire_count_label(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_labels *into)
{
    sl_wire_label label;

    sl_wire_take_entry(reader, field, &label);
    into->count++;
}

void sl_wire_put_ids(sl_proto_writer *writer, uint32_t number, const sl_wire_ids *ids)
{
    for (size_t i = ids->count; i-- > 0;)
        sl_wire_put_id(writer, number, (sl_wire_id){ .uuid = ids->list[i], .form = ids->form });
}

void sl_wire_put_labels(sl_proto_writer *writer, uint32_t number, const sl_wire_labels *labels)
{
    for (size_t i = labels->count; i-- > 0;)
        sl_wire_put_entry(writer, number, labels->list[i].key, labels->list[i].value);
}

void sl_wire_take_entry(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_label *into)
{
    sl_proto_reader inner = sl_proto_enter(reader, field);
    sl_proto_field part;

    *into = (sl_wire_label){ .key = SL_STR(""), .value = SL_STR("") }; /* a side that is missing is empty */
    while (sl_proto_next(&inner, &part)) {
        if (part.number == 1)
            sl_proto_take_text(&inner, &part, &into->key);
        else if (part.number == 2)
            sl_proto_take_text(&inner, &part, &into->value);
    }
    sl_proto_leave(reader, &inner);
}

void sl_wire_put_entry(sl_proto_writer *writer, uint32_t number, sl_str key, sl_str value)
{
    const size_t before = writer->used;

    sl_proto_put_bytes_given(writer, 2, value);
    sl_proto_put_bytes_given(writer, 1, key);
    sl_proto_wrap(writer, number, before);
}

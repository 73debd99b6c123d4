/* wire/codec/common.h — how the values of common_codec.h are read and written inside of messages.
 *
 * take_: reads the field into *into, merging with what is there. put_: writes it as field `number`. */
#ifndef SL_WIRE_CODEC_COMMON_H
#define SL_WIRE_CODEC_COMMON_H

#include "wire/common_codec.h"

void sl_wire_take_id(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_id *into);
void sl_wire_put_id(sl_proto_writer *writer, uint32_t number, sl_wire_id id);

/* StreamIdentifier. */
void sl_wire_take_stream(sl_proto_reader *reader, const sl_proto_field *field, sl_str *into);
void sl_wire_put_stream(sl_proto_writer *writer, uint32_t number, sl_str stream);

/* The two numbers of a position message; sets its kind to GIVEN. */
void sl_wire_take_position(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_position *into);
void sl_wire_put_position(sl_proto_writer *writer, uint32_t number, const sl_wire_position *position);

/* A position, or that there is none, in a oneof of two neighbouring fields, the position first. */
void sl_wire_put_place(sl_proto_writer *writer, uint32_t number, const sl_wire_position *position);
void sl_wire_take_no_position(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_position *into);

/* Timestamp and Duration. */
void sl_wire_take_time(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_time *into);
void sl_wire_put_time(sl_proto_writer *writer, uint32_t number, const sl_wire_time *time);

/* The oneof number, no_stream, any, stream_exists: four fields one after the other, from `first` on. The writer of a
 * shorter row (a current revision has only the first two) must not be given a kind that it has no field for. */
void sl_wire_take_revision(sl_proto_reader *reader, const sl_proto_field *field, uint32_t first,
                           sl_wire_revision *into);
void sl_wire_put_revision(sl_proto_writer *writer, uint32_t first, sl_wire_revision revision);

/* Counts one item of ids or labels, after checking that it can be decoded; the place goes into `items` later. */
void sl_wire_count_id(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_ids *into);
void sl_wire_count_label(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_labels *into);
void sl_wire_put_ids(sl_proto_writer *writer, uint32_t number, const sl_wire_ids *ids);
void sl_wire_put_labels(sl_proto_writer *writer, uint32_t number, const sl_wire_labels *labels);

/* An entry of map<string, string>; both sides are always written, as the reference implementation does. */
void sl_wire_take_entry(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_label *into);
void sl_wire_put_entry(sl_proto_writer *writer, uint32_t number, sl_str key, sl_str value);

void sl_wire_take_proposed(sl_proto_reader *reader, const sl_proto_field *field, sl_wire_proposed *into);
void sl_wire_put_proposed(sl_proto_writer *writer, uint32_t number, const sl_wire_proposed *event);

/* `persistent`: with retry count and lease. */
void sl_wire_take_read_event(sl_proto_reader *reader, const sl_proto_field *field, bool persistent,
                             sl_wire_read_event *into);
void sl_wire_put_read_event(sl_proto_writer *writer, uint32_t number, bool persistent,
                            const sl_wire_read_event *event);

/* The content of one, without a tag of its own. */
void sl_wire_take_read_event_parts(sl_proto_reader *reader, bool persistent, sl_wire_read_event *into);
void sl_wire_put_read_event_parts(sl_proto_writer *writer, bool persistent, const sl_wire_read_event *event);

/* An encoder in two lines: begin with the memory that the size function asked for, end when all of it must be used. */
static inline sl_proto_writer sl_wire_writer(uint8_t *memory, size_t bytes)
{
    assert(memory != NULL);
    return (sl_proto_writer){ .memory = memory, .capacity = bytes };
}

static inline void sl_wire_writer_end(const sl_proto_writer *writer)
{
    assert(writer->used == writer->capacity);
}

#endif

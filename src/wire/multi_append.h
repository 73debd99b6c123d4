/* wire/multi_append.h — version 2 of Streams: several streams in one transaction.
 *
 * Through protobuf-c on the caller's arena; errors and lifetimes as in streams_control.h. Properties are JSON values in the
 * shape of messages; how deep they may be nested is limited (100 messages, three for each JSON object). */
#ifndef SL_WIRE_MULTI_APPEND_H
#define SL_WIRE_MULTI_APPEND_H

#include "base/arena.h"
#include "wire/common_codec.h"

typedef enum sl_wire_value_kind {
    SL_WIRE_VALUE_UNSET, /* a value that says nothing; JSON has no word for it but null */
    SL_WIRE_VALUE_NULL,
    SL_WIRE_VALUE_NUMBER,
    SL_WIRE_VALUE_TEXT,
    SL_WIRE_VALUE_BOOL,
    SL_WIRE_VALUE_OBJECT,
    SL_WIRE_VALUE_LIST,
} sl_wire_value_kind;

/* A name may be there twice, as in any map on the wire; then the last one counts. */
typedef struct sl_wire_value {
    sl_str name; /* of a property or a member of an object */
    sl_wire_value_kind kind;
    double number;                     /* NUMBER: any, also those that JSON cannot say */
    sl_str text;                       /* TEXT */
    bool flag;                         /* BOOL */
    const struct sl_wire_value *items; /* OBJECT, LIST */
    size_t item_count;
} sl_wire_value;

typedef enum sl_schema_format { /* numbers as on the wire */
    SL_SCHEMA_UNSPECIFIED = 0,
    SL_SCHEMA_JSON = 1,
    SL_SCHEMA_PROTOBUF = 2,
    SL_SCHEMA_AVRO = 3,
    SL_SCHEMA_BYTES = 4,
} sl_schema_format;

typedef struct sl_multi_record {
    sl_str id;     /* a UUID as text; empty: the server makes one */
    sl_str stream; /* in AppendRecords */
    bool has_schema;
    int32_t schema_format; /* one of sl_schema_format, or anything */
    sl_str schema_name;    /* the event type */
    sl_str schema_id;
    sl_str data;
    const sl_wire_value *properties;
    size_t property_count;
} sl_multi_record;

/* Expected and actual states of a stream: a revision, or one of these. */
enum {
    SL_STATE_NO_STREAM = -1,
    SL_STATE_ANY = -2,
    SL_STATE_EXISTS = -4,
    SL_STATE_DELETED = -5,
    SL_STATE_TOMBSTONED = -6,
};

/* One message of AppendSession. */
typedef struct sl_multi_append {
    sl_str stream;
    int64_t expected; /* SL_STATE_ANY when it is not there */
    const sl_multi_record *records;
    size_t record_count;
} sl_multi_append;

sl_err sl_multi_append_decode(sl_str message, sl_arena *arena, sl_multi_append *ret_append,
                              const char **ret_reason);

typedef struct sl_multi_check {
    bool known; /* false: of a kind that we do not know, or without one */
    sl_str stream;
    int64_t expected;
} sl_multi_check;

/* The message of AppendRecords. */
typedef struct sl_multi_records {
    const sl_multi_record *records;
    size_t record_count;
    const sl_multi_check *checks;
    size_t check_count;
} sl_multi_records;

sl_err sl_multi_records_decode(sl_str message, sl_arena *arena, sl_multi_records *ret_records,
                               const char **ret_reason);

/* What became of each stream. */
typedef struct sl_multi_revision {
    sl_str stream;
    int64_t revision;
} sl_multi_revision;

typedef struct sl_multi_result {
    const sl_multi_revision *revisions;
    size_t revision_count;
    int64_t position;
} sl_multi_result;

sl_err sl_multi_append_response_encode(const sl_multi_result *result, sl_arena *arena, sl_str *ret_message);
sl_err sl_multi_records_response_encode(const sl_multi_result *result, sl_arena *arena, sl_str *ret_message);

#endif

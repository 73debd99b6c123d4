/* tests/unit/server/multi_made.h — requests and answers of version 2, made and read by protobuf-c and not by our own codec.
 *
 * Record number n has the schema name "tn", JSON, the data {"n":n}, no properties, and n in its id. */
#ifndef SL_TESTS_UNIT_SERVER_MULTI_MADE_H
#define SL_TESTS_UNIT_SERVER_MULTI_MADE_H

#include "writes.h"

#include "wire/codec/streams_v2.pb-c.h"
#include "wire/multi_append.h"

#define MULTI_SESSION_PATH "/kurrentdb.protocol.v2.streams.StreamsService/AppendSession"
#define MULTI_RECORDS_PATH "/kurrentdb.protocol.v2.streams.StreamsService/AppendRecords"

typedef Kurrentdb__Protocol__V2__Streams__AppendRecord multi_record;
typedef Kurrentdb__Protocol__V2__Streams__AppendRequest multi_request;

typedef struct multi_check {
    const char *stream; /* NULL: a check of no kind */
    int64_t expected;
} multi_check;

char *multi_text(writes *w, const char *text);
multi_record *multi_record_of(writes *w, const char *stream, uint64_t number);
void multi_add_property(writes *w, multi_record *record, const char *name, Google__Protobuf__Value *value);
Google__Protobuf__Value *multi_value(writes *w, Google__Protobuf__Value__KindCase kind);

/* One request of a session, with records `first_number` on. */
multi_request *multi_request_of(writes *w, const char *stream, int64_t expected, uint64_t first_number,
                                size_t count);
sl_str multi_packed(writes *w, const void *message);

/* A session of these requests, run to its end. */
server_call *multi_session(writes *w, multi_request *const *requests, size_t request_count);

/* AppendRecords; `streams` names the stream of each record by one letter, its number is `first_number` and so on. */
server_call *multi_records(writes *w, const char *streams, uint64_t first_number, const multi_check *checks,
                           size_t check_count);
sl_str multi_records_packed(writes *w, multi_record **records, size_t record_count, const multi_check *checks,
                            size_t check_count);

/* "a:3 b:0 @17": the revisions of the answer and its position. */
const char *multi_session_answer(writes *w, const server_call *call);
const char *multi_records_answer(writes *w, const server_call *call);

/* What the trailer grpc-status-details-bin says. */
typedef struct multi_status {
    uint64_t code;
    sl_str message, reason, domain;
    sl_str detail_type; /* behind "type.googleapis.com/"; empty: there is no detail */
    sl_str detail;
} multi_status;

/* Good until the next one is asked for. */
multi_status multi_details(const server_call *call);

/* Fails unless the call has ended with this; the detail is the last part of its name, "" for none. */
void multi_expect(const server_call *call, sl_status status, const char *reason, const char *detail);

#endif

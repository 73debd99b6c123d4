/* tests/unit/server/writes.h — short words for tests of everything that writes to streams: requests, answers, what is stored.
 *
 *      writes w;
 *
 *      writes_start(&w);
 *      call = writes_append(&w, "orders", WRITES_ANY, 1, 3);      // events 1, 2 and 3
 *      EXPECT_STR(writes_stored(&w, "orders"), "0:t1 1:t2 2:t3");
 *      writes_done(&w);
 *
 * Event number n has the type "tn", the data {"n":n}, no metadata, and n in its id. */
#ifndef SL_TESTS_UNIT_SERVER_WRITES_H
#define SL_TESTS_UNIT_SERVER_WRITES_H

#include "rig.h"

#include "base/arena.h"
#include "server/request.h"
#include "wire/streams_codec.h"

#define WRITES_APPEND_PATH    "/event_store.client.streams.Streams/Append"
#define WRITES_BATCH_PATH     "/event_store.client.streams.Streams/BatchAppend"
#define WRITES_DELETE_PATH    "/event_store.client.streams.Streams/Delete"
#define WRITES_TOMBSTONE_PATH "/event_store.client.streams.Streams/Tombstone"

#define WRITES_ANY       ((sl_wire_revision){ .kind = SL_WIRE_REVISION_ANY })
#define WRITES_NO_STREAM ((sl_wire_revision){ .kind = SL_WIRE_REVISION_NO_STREAM })
#define WRITES_EXISTS    ((sl_wire_revision){ .kind = SL_WIRE_REVISION_STREAM_EXISTS })
#define WRITES_AT(n)     ((sl_wire_revision){ .kind = SL_WIRE_REVISION_NUMBER, .number = (n) })

#define WRITES_SECOND_NS UINT64_C(1000000000)

typedef struct writes {
    server_rig rig;
    sl_arena memory; /* of requests and of the texts below; until writes_done() */
} writes;

void writes_init(writes *w); /* then change w->rig and server_rig_start() it */
void writes_start(writes *w);
void writes_done(writes *w);

/* What clients have sent goes to the server, and nothing else happens: what is written stays inside of the store. */
void writes_deliver(writes *w);

/* The server's side of the call that was made last. */
sl_request *writes_request(const writes *w);

/* That one is somebody whose rights are looked at. */
void writes_distrust(const writes *w);

/* --- events --- */

sl_wire_proposed writes_event(writes *w, uint64_t number);
sl_wire_proposed *writes_events(writes *w, uint64_t first_number, size_t count);
sl_str writes_text(writes *w, size_t bytes, char c); /* c, so many times */

/* "0:t1 1:t2": revisions and types, "" when there is nothing to be read; and "t1@orders t2@carts" of $all. */
const char *writes_stored(writes *w, const char *stream);
const char *writes_stored_all(writes *w);

/* One op, past all services. */
void writes_commit(writes *w, const sl_op *op);
bool writes_submit(writes *w, const sl_op *op); /* only that; false: the store is full */

/* --- Append --- */

sl_str writes_append_options(writes *w, sl_str stream, sl_wire_revision expected);
sl_str writes_append_event(writes *w, const sl_wire_proposed *event);

/* Everything is sent, nothing is run. */
server_call *writes_append_sent(writes *w, const char *stream, sl_wire_revision expected,
                                uint64_t first_number, size_t count);
server_call *writes_append(writes *w, const char *stream, sl_wire_revision expected, uint64_t first_number,
                           size_t count);
/* The only message of a call that ended well. */
sl_append_response writes_append_answer(const server_call *call);

/* --- BatchAppend --- */

/* A whole append, or one with another deadline or part; correlation ids are made of the number. */
sl_wire_id writes_correlation(uint64_t number);
void writes_batch(writes *w, server_call *call, uint64_t correlation, const char *stream,
                  sl_wire_revision expected, uint64_t first_number, size_t count);
void writes_batch_draft(writes *w, server_call *call, const sl_batch_append_draft *draft);
sl_batch_append_response writes_batch_answer(const server_call *call, size_t index);
/* Whose answer it is. */
uint64_t writes_batch_number(const sl_batch_append_response *answer);

/* Fails unless answer `index` is this error: the full name of the detail behind "type.googleapis.com/". */
void writes_expect_error(const server_call *call, size_t index, int32_t code, const char *message,
                         const char *detail);

#endif

/* tests/unit/server/read_rig.h — short words for tests of Streams.Read: what is in the store, what is asked, what was said.
 *
 * What a client got is compared as text, one word for each message:
 *
 *      orders:3        an event, by stream and revision
 *      a:3<links:0     the same, found through a link;  -<links:0  the link points to nothing
 *      confirmed  caught-up@7  caught-up  checkpoint@12  not-found:orders  first@5  last@9
 *      OK  UNKNOWN     and at the end the status, when the call has ended
 *
 * In a store in memory the first record has position 1, the second 2, and so on. */
#ifndef SL_TESTS_UNIT_SERVER_READ_RIG_H
#define SL_TESTS_UNIT_SERVER_READ_RIG_H

#include "rig.h"

#include "wire/streams_codec.h"
#include "wire/streams_control.h"

#define READ_PATH "/event_store.client.streams.Streams/Read"

/* With the store given, which stays the test's; NULL: one in memory. */
void reads_start(server_rig *rig, sl_store *store);

/* --- writing --- */

/* Each waits until it is durable and every reader has had its turn. Events get the type "t" and their number as data. */
void reads_append(server_rig *rig, const char *stream, unsigned count);
/* In one batch of at most 1,000. */
void reads_append_burst(server_rig *rig, const char *stream, unsigned count, size_t data_bytes);
void reads_append_typed(server_rig *rig, const char *stream, const char *type, const char *data);
void reads_append_bytes(server_rig *rig, const char *stream, size_t data_bytes);
void reads_append_event(server_rig *rig, const char *stream, const sl_event_in *event);
void reads_set_metadata(server_rig *rig, const char *stream, const char *json);
void reads_delete(server_rig *rig, const char *stream);
void reads_tombstone(server_rig *rig, const char *stream);
void reads_commit(server_rig *rig, const sl_op *op);
/* One batch of one event that is only submitted. */
void reads_submit(server_rig *rig, const char *stream);

/* --- asking --- */

#define READ_UNTIL_END UINT64_C(1000000)

sl_read_request reads_of_stream(const char *stream);    /* forwards from the start, all of it */
sl_read_request reads_of_all(void);                     /* the same of $all */
sl_read_request reads_subscription(const char *stream); /* from the start */
sl_read_request reads_subscription_to_all(void);        /* from the start, without a filter */
sl_read_request reads_filtered(const char *prefix, uint32_t window,
                               uint32_t multiplier); /* by the name of the stream */

sl_read_request reads_from(sl_read_request request, uint64_t revision_or_position);
sl_read_request reads_from_end(sl_read_request request);
sl_read_request reads_backwards(sl_read_request request);
sl_read_request reads_count(sl_read_request request, uint64_t count);

/* Only sends it. */
server_call *reads_call(server_rig *rig, const sl_read_request *request);
server_call *reads_call_on(server_rig *rig, server_peer *peer, const sl_read_request *request);
/* And runs until the call has ended, or until nothing moves any more. */
server_call *reads_do(server_rig *rig, sl_read_request request);
server_call *reads_begin(server_rig *rig, sl_read_request request);

/* --- what was said --- */

sl_read_response reads_message(const server_call *call, size_t index);
/* All of it, as above. Good until the next call of this. */
const char *reads_said(const server_call *call);
/* What came after so many messages. */
const char *reads_said_after(const server_call *call, size_t message_count);

#define EXPECT_SAID(call, wanted) EXPECT_STR(reads_said(call), wanted)

/* Bytes of messages that wait in the server for this client. */
size_t reads_waiting_bytes(const server_call *call);

/* Methods as the server has them, but whoever calls is this user, who has no rights but those of everybody. */
void reads_as_user(server_rig *rig, const char *name);

/* --- a journal on a disk that makes every read wait --- */

typedef struct slow_store {
    struct sl_faulty *disk;
    sl_store *store;
} slow_store;

slow_store slow_store_open(void);
void slow_store_close(slow_store *slow);

#endif

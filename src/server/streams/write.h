/* server/streams/write.h — one write of one call, from "may he" to the answer.
 *
 *      permit (may have to wait for metadata) --> ... --> at the door (may have to wait for room) --> inside --> done
 *           |                                                |                                          |
 *         denied                                      refused, late                       late: answered, and written all the same
 *
 * For calls that write once: Append, Delete, Tombstone, AppendSession, AppendRecords. BatchAppend has thousands on their way in one
 * call and does this itself. */
#ifndef SL_SERVER_STREAMS_WRITE_H
#define SL_SERVER_STREAMS_WRITE_H

#include "server/access.h"
#include "server/door.h"
#include "server/request.h"

enum {
    SL_STREAMS_MESSAGE_BYTES_MAX = 16 * 1024 * 1024 - 10000, /* of one request, as KurrentDB has it */
};

/* From its beginning to its half-close: what comes in parts is kept meanwhile, and all calls share the room for that. */
#define SL_WRITE_GATHER_NS (UINT64_C(300) * 1000 * 1000 * 1000)

/* --- may he --- */

typedef struct sl_permit {
    sl_request *request;
    sl_reader_node reader;
    void (*again)(sl_request *request);
    bool waits;
} sl_permit;

void sl_permit_init(sl_permit *permit, sl_request *request, void (*again)(sl_request *request));

/* As sl_access_check(). PENDING: again() is called when it is worth asking again; until the answer is there, a call that takes
 * several messages is paused, so that it gets none of them too early. One question at a time. */
sl_access_verdict sl_permit_check(sl_permit *permit, sl_str stream, sl_action action);

/* From method->end. */
void sl_permit_end(sl_permit *permit);

/* --- the write --- */

typedef struct sl_write_rules {
    /* What shall be written, now: called before each attempt. False: the call was ended instead. */
    bool (*prepare)(sl_request *request, sl_batch *ret_batch);
    /* The store has it: whatever the batch pointed to may go. */
    void (*accepted)(sl_request *request);
    /* The door or the store did not take it: any error of sl_door_submit() but SL_ERR_FULL. */
    void (*refused)(sl_request *request, sl_err err);
    /* settings->write_timeout_ns is over. */
    void (*late)(sl_request *request);
    /* The answer, while the call is open and was not told that it is late. */
    void (*done)(sl_request *request, const sl_commit *commit);
} sl_write_rules;

typedef struct sl_write {
    sl_request *request;
    const sl_write_rules *rules;
    sl_door_waiter waiter;
    sl_alarm alarm;
    bool gathers, at_door, inside;
} sl_write;

/* Once, before anything else; the rules are static memory. */
void sl_write_init(sl_write *write, sl_request *request, const sl_write_rules *rules);

/* What shall be written comes in parts: everything must be there within SL_WRITE_GATHER_NS, or the call ends with
 * DEADLINE_EXCEEDED and nothing is written. */
void sl_write_gather(sl_write *write);

/* Once for a call, when everything is there. */
void sl_write_submit(sl_write *write);

/* From method->end: what is inside stays there, and its answer is dropped. */
void sl_write_end(sl_write *write);

/* From method->stop: what is inside will be answered, everything else is told that the server stops. */
void sl_write_stop(sl_write *write);

/* --- for all who write --- */

/* A UUID that nobody else has. */
sl_uuid sl_write_new_id(sl_host *host);

/* "Operation timed out: ...", with the time. */
void sl_write_add_late(sl_text *text, const sl_server_settings *settings);

/* Append, Delete, Tombstone: ABORTED, "Operation timed out: ...", which is what clients know. */
void sl_write_reply_late(sl_request *request);

#endif

/* server/streams/batch_call.h — one BatchAppend call: thousands of appends on their way, one answer for each, exactly.
 *
 *      request --------------------------> submitted --> inside the store --> answered
 *         |                                   ^                                  |
 *         +-- in parts --> open, gathered ----+                 no room: unsent, until the client reads
 *         |                                   |
 *         +-- must wait (metadata, a full store): parked, and the call is paused behind it
 *
 * Files: batch_append.c takes requests, batch_open.c gathers those that come in parts, batch_pending.c keeps what is owed and
 * answers it, batch_answer.c writes the answers.
 *
 * What a client can make grow, and its bounds: SL_BATCH_PENDING_MAX appends inside or unsent, SL_BATCH_OPEN_MAX open ones with
 * SL_BATCH_OPEN_BYTES_MAX together, and one parked message. At each of them the call is paused or the append refused. */
#ifndef SL_SERVER_STREAMS_BATCH_CALL_H
#define SL_SERVER_STREAMS_BATCH_CALL_H

#include "server/door.h"
#include "server/request.h"
#include "server/streams/gather.h"
#include "server/streams/proposed.h"
#include "server/tail.h"
#include "wire/streams_codec.h"

enum {
    SL_BATCH_PENDING_MAX = 8192, /* eight times what fast clients have in flight */
    SL_BATCH_OPEN_MAX = 64,      /* clients send the parts of an append one after the other */
    SL_BATCH_OPEN_BYTES_MAX = 64 * 1024 * 1024,
    SL_BATCH_SPARES_MAX = 2048,          /* entries that are kept for the next appends */
    SL_BATCH_SCRATCH_EVENTS = 1024,      /* rows that are kept for the events of the next append */
    SL_BATCH_CORRELATION_BYTES_MAX = 64, /* a UUID takes 38; some room for fields that we do not know */
    SL_BATCH_TEXT_BYTES_SMALL = 128,     /* correlation and stream of nearly all appends */
};

/* --- what becomes of an append --- */

typedef enum sl_batch_outcome_kind {
    SL_BATCH_SUCCESS,
    SL_BATCH_WRONG_REVISION,
    SL_BATCH_STREAM_DELETED,
    SL_BATCH_ACCESS_DENIED,
    SL_BATCH_TIMEOUT,
    SL_BATCH_REFUSED,
} sl_batch_outcome_kind;

typedef struct sl_batch_outcome {
    sl_batch_outcome_kind kind;
    uint64_t revision, position; /* SUCCESS; WRONG_REVISION has the first */
    sl_wire_revision expected;   /* WRONG_REVISION */
    sl_refusal refusal;          /* REFUSED */
} sl_batch_outcome;

/* Who is answered. */
typedef struct sl_batch_name {
    sl_str correlation, stream;
} sl_batch_name;

/* Writes the answer. scratch: for details, reset before and after.
 *   SL_OK         also when the call is over
 *   SL_ERR_FULL   no room now
 *   SL_ERR_NOMEM */
sl_err sl_batch_answer(sl_request *request, sl_arena *scratch, const sl_batch_name *name,
                       const sl_batch_outcome *outcome);

/* --- the call --- */

typedef struct sl_batch_call sl_batch_call;

/* An append that is inside of the store, or an answer that found no room. */
typedef struct sl_batch_entry {
    sl_list node; /* of call->inside, unsent or spares */
    sl_batch_call *call;
    uint64_t due_ns; /* inside: then the client is told that it takes too long */
    bool told;       /* inside: that was done, the store's answer is for nobody */
    sl_wire_revision expected;
    sl_batch_outcome outcome; /* unsent */
    uint32_t correlation_bytes, stream_bytes, text_capacity;
    char text[]; /* correlation, then stream */
} sl_batch_entry;

/* What the options of an append say. */
typedef struct sl_batch_wish {
    sl_batch_name name;
    sl_wire_revision expected; /* as the client said it */
    sl_expected store_expected;
    uint64_t due_ns;     /* what the client has asked for, or the write timeout, whatever is earlier */
    uint64_t own_due_ns; /* what the client has asked for */
} sl_batch_wish;

/* An append whose last part has not come. */
typedef struct sl_batch_open {
    sl_list node; /* call->open, oldest first */
    sl_uuid id;
    sl_batch_wish wish; /* its texts are in the gather */
    sl_gather gather;
} sl_batch_open;

typedef struct sl_batch_moment { /* when something came */
    uint64_t mono_ns, wall_ns;
} sl_batch_moment;

/* Why no more requests are taken: the first reason is kept, and told when everything that was accepted is answered. */
typedef enum sl_batch_ending {
    SL_BATCH_GOES_ON,
    SL_BATCH_ENDS_WELL,     /* the client has half-closed */
    SL_BATCH_ENDS_STOPPING, /* the server stops */
    SL_BATCH_ENDS_INVALID,  /* with a sentence */
} sl_batch_ending;

typedef enum sl_batch_parked {
    SL_BATCH_NOT_PARKED,
    SL_BATCH_PARKED_MESSAGE, /* a copy, to be taken again from the beginning */
    SL_BATCH_PARKED_OPEN,    /* an open append that is complete */
} sl_batch_parked;

struct sl_batch_call {
    sl_request *request;
    sl_list inside, unsent, spares; /* sl_batch_entry */
    uint32_t inside_count, unsent_count, spare_count;
    sl_list open; /* sl_batch_open */
    uint32_t open_count;
    sl_event_in *events; /* scratch, for appends that come whole */
    uint32_t event_capacity;
    sl_arena scratch; /* for the details of errors */
    sl_alarm alarm;   /* one for all; may be early, never late */

    sl_batch_parked parked;
    sl_reader_node reader; /* waits for metadata */
    sl_door_waiter waiter; /* waits for room in the store */
    char *message;         /* PARKED_MESSAGE */
    size_t message_bytes;
    sl_gather_claim message_claim;
    sl_batch_open *parked_open;
    sl_batch_moment parked_at; /* when it came */
    uint64_t parked_due_ns;

    sl_batch_ending ending;
    const char *ending_text;
    bool paused, over;
};

/* --- batch_pending.c --- */

/* Submits.
 *   SL_OK  its answer will be given
 *   any error of sl_door_submit(), or SL_ERR_NOMEM */
sl_err sl_batch_submit(sl_batch_call *call, const sl_batch_wish *wish, const sl_op *op);

/* What to do about an error of that; SL_ERR_FULL is not for here. */
void sl_batch_not_taken(sl_batch_call *call, const sl_batch_wish *wish, const sl_op *op, sl_err err);

/* The only answer to an append that is not inside. */
void sl_batch_tell(sl_batch_call *call, const sl_batch_name *name, const sl_batch_outcome *outcome);
void sl_batch_refuse(sl_batch_call *call, const sl_batch_name *name, const sl_refusal *refusal);

/* Sends what waited for room. */
void sl_batch_send_on(sl_batch_call *call);

/* Those that are inside and late are told so. Returns when the next one is due. */
uint64_t sl_batch_tell_late(sl_batch_call *call, uint64_t now_ns);

void sl_batch_drop_unsent(sl_batch_call *call);
void sl_batch_free_spares(sl_batch_call *call);

/* --- batch_open.c --- */

sl_batch_open *sl_batch_find(const sl_batch_call *call, sl_uuid id);

/* The first part of an append: its options are good and it may be written. */
void sl_batch_begin(sl_batch_call *call, const sl_batch_append_request *in, const sl_batch_wish *wish,
                    sl_uuid id, sl_batch_moment moment);

/* Another part, and the end if it is final. */
void sl_batch_add(sl_batch_call *call, sl_batch_open *open, const sl_batch_append_request *in,
                  sl_batch_moment moment);
void sl_batch_submit_open(sl_batch_call *call, sl_batch_open *open);
uint64_t sl_batch_tell_late_open(sl_batch_call *call, uint64_t now_ns);
void sl_batch_drop_open(sl_batch_call *call);

/* --- batch_append.c --- */

/* After anything has changed: pauses or goes on, ends the call when it is time. To be called last: it may bring messages. */
void sl_batch_settle(sl_batch_call *call);

/* No more requests are taken. */
void sl_batch_end(sl_batch_call *call, sl_batch_ending ending, const char *text);

/* The alarm shall not come later than this. */
void sl_batch_due_by(sl_batch_call *call, uint64_t due_ns);

/* A complete open append could not be submitted now. */
void sl_batch_park_open(sl_batch_call *call, sl_batch_open *open);

/* Frees what only the call needed, when it is over and nothing is inside any more. */
void sl_batch_clean(sl_batch_call *call);

#endif

/* server/streams/read_private.h — one call of Streams.Read, as its files share it.
 *
 *      read_request.c   what is asked: may it be asked so, where does it begin
 *      read_filter.c    which events of $all are shown
 *      read.c           the call itself: who waits for what, pages of the store, reads that come to an end
 *      subscription.c   reads that never do: confirmation, caught up, checkpoints
 *      read_send.c      messages
 *      resolve.c        links
 *
 * A call is a `reading`. It works in runs, each bounded, and each ends with a step that says what it waits for: nothing is
 * lost between two runs, because an event is passed only when it was sent, and every message that may find no room is made
 * from state that is still there the next time. */
#ifndef SL_SERVER_STREAMS_READ_PRIVATE_H
#define SL_SERVER_STREAMS_READ_PRIVATE_H

#include "server/request.h"
#include "server/streams/resolve.h"
#include "server/tail.h"
#include "store/filter.h"
#include "wire/streams_codec.h"
#include "wire/streams_control.h"

enum {
    /* Views of one page. Enough that the cost of asking the store disappears; a page is 14 KB. */
    READING_PAGE_EVENTS = 128,
    /* What one run may do before others have their turn: about half a millisecond. */
    READING_RUN_EVENTS = 1024,
    READING_RUN_BYTES = 512 * 1024,
    /* Readers that wait for their clients and keep what they have read meanwhile, up to a megabyte each; others give it
     * back and read it again. An event that is larger than the second number is always given back. */
    READING_PAGES_HELD_MAX = 64,
    READING_EVENT_HELD_BYTES = 64 * 1024,
    /* What an expression costs if time stands still, as it does in tests. */
    READING_EXPRESSION_COST = 8,
    /* How often the stopwatch is looked at: it costs as much as passing over an event. */
    READING_LOOKS_TIMED = 8,
    /* KurrentDB reads so many events at a time, and some of what it says depends on where its pages end. */
    READING_KURRENT_PAGE = 32,
    READING_REQUEST_BYTES_MAX = 128 * 1024, /* of the request: the largest filter, and a name */
};

/* A run that filters or follows links ends after this time as well: an expression may need half a millisecond for one event,
 * and a thousand prefixes or the way to the target of a link some microseconds. */
#define READING_RUN_NS (UINT64_C(500) * 1000)

/* How a run ended, or how a part of it did. */
typedef enum reading_step {
    READING_GOES_ON,
    READING_HAS_NO_ROOM, /* until method->room */
    READING_NEEDS_DISK,  /* and its cursor, which will have what was asked for */
    READING_NEEDS_COMMIT,
    READING_IS_QUEUED, /* somebody else has queued it: server/access.h */
    READING_AT_END,    /* of what there is now; only inside of a run */
    READING_IS_OVER,   /* the call has its status */
} reading_step;

/* The request when everything about it is right. */
typedef struct reading_plan {
    sl_str stream; /* empty: $all */
    uint64_t from; /* as sl_read.from; of a subscription: what it wants first */
    uint64_t count;
    bool backwards, resolve_links;
    bool is_subscription;
    bool from_end;   /* a subscription that wants only what is new; `from` is found when it begins */
    bool is_empty;   /* before the first or after the last event of $all: there can be none */
    bool wants_ends; /* first and last revision: "compatibility" of at least 1 */
    sl_wire_id_form id_form;
    sl_filter *filter; /* NULL: none; the reading's own */
    bool by_expression;
    uint32_t window;   /* of a filtered subscription: how many events KurrentDB would look at in one page */
    uint64_t interval; /* and how many there are between two checkpoints; 0: it sends none */
} reading_plan;

/* Where a filtered subscription is between two checkpoints (shared kurrent-semantics, 23.1). */
typedef struct reading_checkpoints {
    uint64_t considered; /* since the last one */
    uint32_t page_considered, page_matched;
    uint64_t sent; /* the last one, or where the subscription began: others must be above */
    uint64_t due;  /* to be sent before anything else; 0: none is */
} reading_checkpoints;

typedef struct reading {
    sl_request *request;
    sl_reader_node node;
    reading_plan plan;
    bool is_begun;   /* the plan is good and `node` is in use */
    bool is_opened;  /* a read: begun in the store; a subscription: confirmed */
    bool told_first; /* a read has said where the stream begins, or need not */
    bool has_ended;  /* a read has everything; only the end is left to be said */
    bool is_live;    /* a subscription that has said that it caught up */
    bool is_holding; /* its page while it waits for the client: counted in pages_held_now */
    bool
        is_at_bottom; /* backwards in a stream, revision 0 was passed: there is nothing to open a cursor at */
    bool has_reached;
    uint64_t reached;     /* up to this revision or position everything was looked at, once has_reached */
    uint64_t left;        /* events that a read still may send */
    uint64_t end;         /* a forward read shows nothing at or above this revision or position */
    sl_stream_info info;  /* when the read began */
    uint32_t looks_left;  /* of this run */
    size_t bytes_left;    /* of this run */
    uint64_t run_ends_ns; /* by the stopwatch; UINT64_MAX: looks and bytes are enough */
    uint64_t looked_at;   /* events since it has its place: server/tail.h */
    sl_cursor *cursor;
    uint64_t from;  /* where a cursor begins when one is opened: the plan's, or what was not sent yet */
    sl_event *page; /* READING_PAGE_EVENTS of them; NULL while nothing is read */
    uint32_t page_at, page_count;
    sl_resolver *resolver; /* NULL: links are not resolved */
    reading_checkpoints checkpoints;
    sl_wire_read_event out; /* what is being sent: kept, because most of it is the same each time */
} reading;

static inline sl_host *reading_host(const reading *r)
{
    return r->request->host;
}

static inline bool reading_is_all(const reading *r)
{
    return r->plan.stream.bytes == 0;
}

/* --- read_request.c --- */

/* False: the call was ended, with the status that KurrentDB gives and a sentence that helps. */
bool reading_plan_make(sl_request *request, const sl_read_request *asked, reading_plan *ret_plan);

/* --- read_filter.c --- */

/* Makes plan->filter and all that belongs to it. False: the call was ended. */
bool reading_filter_make(sl_request *request, const sl_read_request *asked, reading_plan *plan);

/* Is this event of $all for the client? */
sl_filter_verdict reading_filter_judge(const reading_plan *plan, const sl_event *event);

/* It gave up: the call ends there, and says so. */
reading_step reading_filter_fail(reading *r, const sl_event *event);

/* --- read.c --- */

/* The next event, which stays the next one until reading_pass(). GOES_ON: *ret_event is it. AT_END: there is none now, also
 * when there is no such stream. */
reading_step reading_peek(reading *r, const sl_event **ret_event);

/* Done with it. False: this run has done enough. */
bool reading_pass(reading *r);

/* The call ends with what the store said. */
reading_step reading_fail(reading *r, sl_err err);

/* --- subscription.c --- */

reading_step reading_follow(reading *r);

/* --- read_send.c --- */

/* GOES_ON: sent. HAS_NO_ROOM, NEEDS_DISK (for the target of a link): nothing happened, the same again later. */
reading_step reading_send_event(reading *r, const sl_event *event);
reading_step reading_send(reading *r, const sl_read_response *response);

#endif

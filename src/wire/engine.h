/* wire/engine.h — private to src/wire: the two structs and what its files offer each other.
 *
 * How the files share the work:
 *
 *      connection.c   the life of a connection: entry points, end, due times
 *      session.c      nghttp2: set-up and the table of its callbacks
 *      frames.c       which frames are too many
 *      headers.c      what both sides do with headers; request.c for a server, response.c for a client
 *      incoming.c     DATA -> messages; credit         input.c  how much of it may wait, and for how long
 *      outgoing.c     messages -> DATA; room
 *      call.c         the life of a call; finish.c  status and trailers; half_open.c  a server's call after its status
 *
 * Three rules keep callbacks, errors and memory apart:
 *
 * Doom. An error of the connection is noted (sl_engine_doom()) and carried out when control is back in an entry
 * point: never in the middle of nghttp2 or of a function that the application called.
 *
 * Farewell. A doomed connection does not use nghttp2 any more. The GOAWAY is made by hand, in memory that is
 * there already, so that it also works without memory and whatever state the session is in.
 *
 * Husks. A call that is over for the application (`ended`) may live on for nghttp2, until the stream is closed:
 * to send its status or its reset, or to hear the rest of the peer's request. The application never sees it again. */
#ifndef SL_WIRE_ENGINE_H
#define SL_WIRE_ENGINE_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "wire/call.h"
#include "wire/connection.h"
#include "wire/gunzip.h"
#include "wire/ledger.h"
#include "wire/memory.h"
#include "wire/rate.h"

#include <nghttp2/nghttp2.h>

enum {
    SL_PREFIX_BYTES = 5, /* of a gRPC message: compressed or not, and four bytes of length */
    SL_FRAME_HEAD_BYTES = 9,
    SL_FAREWELL_BYTES_MAX = 512,
    SL_FREE_CALLS_MAX = 64
};

typedef enum sl_encoding {
    SL_ENCODING_IDENTITY,
    SL_ENCODING_GZIP,
    SL_ENCODING_UNKNOWN
} sl_encoding;

/* What is wrong with the headers that come in; judged when they are complete. The first one counts. */
typedef enum sl_fault {
    SL_FAULT_NONE,
    SL_FAULT_METHOD,
    SL_FAULT_CONTENT_TYPE,
    SL_FAULT_TIMEOUT,
    SL_FAULT_BASE64,
    SL_FAULT_HEADERS_TOO_LARGE,
    SL_FAULT_NOMEM
} sl_fault;

struct sl_call {
    sl_connection *connection;
    sl_list node;           /* in connection->calls or ->free_calls */
    sl_list room_node;      /* in connection->room_wanted */
    sl_list half_open_node; /* in connection->half_open */
    sl_heap_node timer;     /* in connection->timers, keyed by the earliest thing that may be due */
    void *user;
    int32_t stream_id; /* 0 when nghttp2 no longer knows the stream */

    /* Headers, as they come. */
    sl_metadata_list metadata, trailers;
    sl_buf path;
    uint64_t timeout_ns;
    sl_encoding encoding;
    sl_fault fault;
    unsigned http_status;
    sl_status status; /* client: of the trailers */
    sl_buf message;   /* client: of the trailers, decoded */
    bool is_post, is_grpc, has_status, headers_done;

    /* Incoming. */
    sl_buf incoming; /* an unfinished message, or whatever came while the call is paused */
    sl_ledger ledger;
    size_t credit;       /* to be given to nghttp2 */
    size_t input_bytes;  /* of `incoming`, as the connection has counted it */
    uint64_t message_ns; /* when something of the unfinished message came last */
    uint32_t message_bytes_max;
    bool message_waits; /* for its rest */
    bool paused, delivering, remote_done, half_close_told;

    /* Outgoing. */
    sl_buf outgoing;       /* messages with their prefixes */
    size_t reserved;       /* between reserve and commit: how much, with the prefix; else 0 */
    uint64_t progress_ns;  /* when the peer last took bytes, or when there were bytes to take again */
    sl_metadata_list sent; /* what the trailers will be, encoded */
    sl_status sent_status;
    bool deferred; /* nghttp2 waits for sl_engine_wake() */
    bool headers_sent, output_ended;

    uint64_t deadline_ns;
    bool known;        /* the application has seen it */
    bool ended;        /* on_end was called, or would have been */
    bool is_half_open; /* a husk: the status is out, and the peer had not ended its side then */
};

struct sl_connection {
    const sl_alloc *alloc;
    sl_wire_limits limits;
    sl_connection_handler handler;
    void *ctx;
    sl_wire_counters *counters;
    sl_wire_counters own_counters; /* when the caller brings none */
    sl_role role;
    sl_buf authority;
    bool tls;

    nghttp2_mem mem;
    sl_sized sized; /* what nghttp2 has taken */
    nghttp2_session *session;
    uint64_t now_ns;
    unsigned depth;   /* entry points on the stack: calls are not freed and doom is not carried out inside */
    sl_end doom, end; /* noted; carried out */

    sl_list calls, free_calls, room_wanted;
    sl_list half_open;                                     /* those that may still wait, the oldest first */
    uint32_t call_count, free_call_count, half_open_count; /* the last is a part of the first */
    sl_heap timers;
    size_t timer_bytes;

    /* Incoming. */
    size_t preface_matched; /* server: bytes of the preface that came */
    sl_bucket pings, settings, resets, empty_frames, priorities, window_updates;
    uint32_t continuation_count;
    size_t header_bytes, header_count; /* of the block that comes in */
    size_t frame_bytes_left;           /* of the DATA frame that comes in, its padding included */
    sl_ledger ledger;
    size_t credit;
    size_t input_bytes;    /* that wait in `incoming` of all calls */
    sl_wire_budget *input; /* NULL: none */
    sl_gunzip *gunzip;     /* made when the first compressed message comes */

    /* Outgoing. */
    size_t output_bytes;
    sl_spares spares;
    uint64_t
        spares_ns; /* when the output of a call went out to its end last; 0: since then they were cleared */
    sl_buf nva;    /* the header rows of one frame, while it is submitted */
    struct {
        uint8_t *data;
        size_t capacity, used;
    } sink;              /* the caller's memory, during output */
    const uint8_t *tail; /* rest of a frame that did not fit into the caller's memory */
    size_t tail_bytes;
    uint8_t farewell[SL_FAREWELL_BYTES_MAX];
    size_t farewell_bytes, farewell_at;

    /* Time. */
    uint64_t started_ns, received_ns, idle_since_ns, headers_since_ns, ping_sent_ns, shutdown_ns,
        linger_until_ns;
    bool handshake_done, headers_open, ping_out;
    bool shutting_down, goaway_sent, goaway_received, protocol_error;
};

/* connection.c */
void sl_engine_doom(sl_connection *connection, sl_end reason);
bool sl_engine_is_over(const sl_connection *connection); /* doomed or ended: nghttp2 is not used any more */
void sl_engine_final_goaway(sl_connection *connection);

/* session.c */
sl_err sl_engine_session_new(sl_connection *connection);
void sl_engine_check(sl_connection *connection, int nghttp2_result); /* a fatal one dooms */
void sl_engine_reset(sl_call *call, uint32_t http2_error);

/* frames.c */
void sl_engine_count_frame(sl_connection *connection, const nghttp2_frame_hd *head);
void sl_engine_count_reset(sl_connection *connection);
void sl_engine_count_empty(sl_connection *connection);

/* headers.c, request.c, response.c */
void sl_engine_headers_begin(sl_call *call, sl_metadata_list *list);
bool sl_engine_headers_fit(sl_call *call, sl_str key, sl_str value);
void sl_engine_note_fault(sl_call *call, sl_fault fault);
sl_encoding sl_engine_encoding(sl_str value);
bool sl_engine_is_grpc(sl_str content_type);
void sl_engine_request_header(sl_call *call, sl_str key, sl_str value);
void sl_engine_request_done(sl_call *call);
void sl_engine_response_header(sl_call *call, sl_str key, sl_str value, bool trailers);
void sl_engine_response_done(sl_call *call, bool end_of_stream);
void sl_engine_response_finished(sl_call *call);

/* incoming.c */
void sl_engine_data(sl_call *call, const uint8_t *data, size_t bytes, bool is_end); /* of the stream */
void sl_engine_half_close(sl_call *call); /* the peer's last frame of the call came */
void sl_engine_drop_incoming(sl_call *call);
void sl_engine_give_credit(sl_call *call);

/* input.c */
bool sl_engine_input_fits(const sl_call *call, size_t bytes); /* may `incoming` grow by so much? */
void sl_engine_input_changed(sl_call *call);                  /* `incoming` has grown or shrunk */
void sl_engine_message_came_on(sl_call *call); /* something of an unfinished message, or its end */
uint64_t sl_engine_message_due_ns(const sl_call *call);
void sl_engine_message_due(sl_call *call);

/* outgoing.c */
ssize_t sl_engine_read(nghttp2_session *session, int32_t stream_id, uint8_t *into, size_t allowed,
                       uint32_t *flags, nghttp2_data_source *source, void *ctx);
int sl_engine_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t bytes,
                        nghttp2_data_source *source, void *ctx);
void sl_engine_wake(sl_call *call);
void sl_engine_drop_outgoing(sl_call *call);
bool sl_engine_offer_room(sl_connection *connection);

/* finish.c */
void sl_engine_rows_begin(sl_connection *connection);
sl_err sl_engine_row(sl_connection *connection, sl_str key, sl_str value);
sl_err sl_engine_rows_add(sl_connection *connection, const sl_metadata_list *list);
int sl_engine_submit_trailers(sl_call *call);
void sl_engine_answer_http(sl_call *call, sl_str http_status);
void sl_engine_refuse(sl_call *call, sl_status status, sl_str message);
void sl_engine_deadline(sl_call *call);

/* half_open.c */
void sl_engine_half_open_begin(sl_call *call);
void sl_engine_half_open_data(sl_call *call, size_t bytes);
void sl_engine_half_open_due(sl_call *call);
void sl_engine_half_open_end(sl_call *call); /* before it is freed */

/* call.c */
sl_call *sl_engine_call_new(sl_connection *connection);
void sl_engine_call_free(sl_call *call);
void sl_engine_free_calls_clear(sl_connection *connection);
void sl_engine_call_end(sl_call *call, sl_call_end_kind kind, sl_status status, sl_str message);
void sl_engine_call_end_info(sl_call *call, const sl_call_end_info *info);
void sl_engine_stream_closed(sl_call *call, uint32_t http2_error);
void sl_engine_set_timer(sl_call *call);
void sl_engine_timer_due(sl_call *call);
void sl_engine_release(sl_call *call); /* frees a husk that nghttp2 does not know any more */

#endif

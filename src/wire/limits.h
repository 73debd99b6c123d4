/* wire/limits.h — everything that a peer could make grow, last or repeat, each with its bound.
 *
 * What is beyond a limit of a call ends the call with a status; what is beyond a limit of the connection ends
 * the connection with an HTTP/2 error, and the reason is counted (connection.h). */
#ifndef SL_WIRE_LIMITS_H
#define SL_WIRE_LIMITS_H

#include <stdint.h>

/* So many at once, and after that so many in a second. Both at least 1. */
typedef struct sl_rate {
    uint32_t burst, per_s;
} sl_rate;

typedef struct sl_wire_limits {
    /* Calls and what they bring. */
    uint32_t calls_max;            /* open at the same time; announced to the peer */
    uint32_t message_bytes_max;    /* received, after decompression; a service may set another for its call */
    uint32_t stream_window_bytes;  /* what a call may send ahead of an application that has not consumed */
    uint32_t window_bytes;         /* the same for all calls of the connection together */
    uint32_t unfinished_bytes_max; /* messages that have begun but not ended, all calls together */
    uint32_t header_bytes_max;     /* of one header list: names, values and 32 for each, as HTTP/2 counts */
    uint32_t header_count_max;
    uint32_t continuations_max; /* frames that continue one header block */

    /* Frames that cost us more than they cost the peer. */
    sl_rate pings; /* generous: clients measure their bandwidth with pings */
    sl_rate settings;
    sl_rate resets;       /* streams opened and thrown away at once (rapid reset) */
    sl_rate empty_frames; /* DATA without a byte and without an end */
    sl_rate priorities;
    sl_rate window_updates;

    /* What waits to be sent. A message is accepted while less than this waits, so one message may go beyond. */
    uint32_t call_output_bytes_max;
    uint32_t output_bytes_max;
    uint32_t sent_message_bytes_max; /* no official client takes more than 17 MiB */
    uint32_t queued_frames_max;      /* frames other than DATA that the peer has not read */

    /* Calls that are half open: our status is out, the peer's side is not ended (half_open.c). */
    uint32_t half_open_calls_max; /* one more, or more than half of calls_max, and the oldest is reset */

    /* Time. 0 means for ever, except for the last three: not at all. */
    uint64_t handshake_timeout_ns;  /* from the start to the peer's first SETTINGS */
    uint64_t headers_timeout_ns;    /* from the first frame of a header block to its last */
    uint64_t keepalive_interval_ns; /* nothing came for so long: send a PING */
    uint64_t keepalive_timeout_ns;  /* and still nothing for so long after it: the peer is gone */
    uint64_t idle_timeout_ns;       /* without any call */
    uint64_t message_timeout_ns;    /* a message was begun and nothing more of it comes */
    uint64_t stall_timeout_ns;      /* a call has bytes to send and the peer takes none of them */
    uint64_t shutdown_notice_ns; /* between the two GOAWAYs of a graceful end, if the peer answers no PING */
    uint64_t linger_timeout_ns;  /* server: after our last word, for the peer to close first */
    uint64_t half_open_timeout_ns; /* server: after the status of a call, for the peer to end its side */
    uint64_t half_open_blocked_timeout_ns; /* the same, from when the window of the call is used up */
} sl_wire_limits;

/* Good for a server on the open network; tests and clients change single fields. */
extern const sl_wire_limits sl_wire_limits_default;

#endif

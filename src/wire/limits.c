/* wire/limits.c — the defaults, each with its reason. */
#include "wire/limits.h"

#define KIB       UINT32_C(1024)
#define MIB       (1024 * KIB)
#define SECOND_NS UINT64_C(1000000000)

const sl_wire_limits sl_wire_limits_default = {
    /* Every subscription is a call that stays open, and most clients put all of theirs on one connection. */
    .calls_max = 4096,
    .message_bytes_max = 17 * MIB,
    /* Large enough that one call fills a fast line, small enough that a slow handler holds little. */
    .stream_window_bytes = 1 * MIB,
    .window_bytes = 16 * MIB,
    /* Three of the largest messages at the same time, and many of usual size. */
    .unfinished_bytes_max = 64 * MIB,
    .header_bytes_max = 64 * KIB,
    .header_count_max = 256,
    /* With frames of 16 KiB that is more than header_bytes_max, compressed. */
    .continuations_max = 8,

    /* gRPC for Go and Java pings once for each round trip while it estimates the bandwidth; on a loopback that
     * is thousands in a second. An answer is 17 bytes, so being generous costs little. */
    .pings = { 20000, 10000 },
    .settings = { 100, 10 },
    .resets = { 1000, 100 },
    .empty_frames = { 1000, 100 },
    .priorities = { 10000, 1000 },
    /* A reader of small messages may send one for each frame that it gets. */
    .window_updates = { 200000, 100000 },

    /* A few writes of the socket ahead; what waits here is late already. */
    .call_output_bytes_max = 256 * KIB,
    .output_bytes_max = 16 * MIB,
    .sent_message_bytes_max = 17 * MIB,
    .queued_frames_max = 20000,

    /* A client that has read the status ends its side at once, so there are few; a husk costs half a kilobyte. */
    .half_open_calls_max = 100,

    .handshake_timeout_ns = 10 * SECOND_NS,
    .headers_timeout_ns = 10 * SECOND_NS,
    /* As KurrentDB does: some clients send no pings, so the server's are what finds a dead one. */
    .keepalive_interval_ns = 10 * SECOND_NS,
    .keepalive_timeout_ns = 10 * SECOND_NS,
    .idle_timeout_ns = 600 * SECOND_NS,
    /* Longer than any hiccup of a network over which the pings above still come back. */
    .message_timeout_ns = 30 * SECOND_NS,
    /* A consumer may think for minutes with its window full; what it holds meanwhile is bounded. */
    .stall_timeout_ns = 1800 * SECOND_NS,
    .shutdown_notice_ns = 1 * SECOND_NS,
    /* After a GOAWAY clients close by themselves, as soon as they have what they wanted. */
    .linger_timeout_ns = 1 * SECOND_NS,
    .half_open_timeout_ns = 5 * SECOND_NS,
    /* Who sends without looking at the answer waits so long; who looks needs a round trip and a moment to read. */
    .half_open_blocked_timeout_ns = 1 * SECOND_NS,
};

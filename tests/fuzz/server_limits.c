/* tests/fuzz/server_limits.c — the limits of wire/limits.h, so low that a short input reaches them.
 *
 * This defines what wire/limits.c defines, so the linker never takes that one: both sides of every connection in fuzz_host have
 * these. With the real ones a client that does not read would have to be sent a megabyte before anybody notices. */
#include "wire/limits.h"

#define KIB       UINT32_C(1024)
#define MIB       (1024 * KIB)
#define SECOND_NS UINT64_C(1000000000)

const sl_wire_limits sl_wire_limits_default = {
    .calls_max = 32,
    .message_bytes_max = 1 * MIB,
    .stream_window_bytes = 32 * KIB,
    .window_bytes = 128 * KIB,
    .unfinished_bytes_max = 256 * KIB,
    .header_bytes_max = 4 * KIB,
    .header_count_max = 16,
    .continuations_max = 2,

    .pings = { 20, 10 },
    .settings = { 10, 10 },
    .resets = { 20, 10 },
    .empty_frames = { 20, 10 },
    .priorities = { 20, 10 },
    .window_updates = { 1000, 100 },

    .call_output_bytes_max = 4 * KIB,
    .output_bytes_max = 48 * KIB,
    .sent_message_bytes_max = 1 * MIB,
    .queued_frames_max = 100,

    .handshake_timeout_ns = 10 * SECOND_NS,
    .headers_timeout_ns = 10 * SECOND_NS,
    .keepalive_interval_ns = 10 * SECOND_NS,
    .keepalive_timeout_ns = 10 * SECOND_NS,
    .idle_timeout_ns = 600 * SECOND_NS,
    .stall_timeout_ns = 1800 * SECOND_NS,
    .shutdown_notice_ns = 1 * SECOND_NS,
    .linger_timeout_ns = 1 * SECOND_NS,
};

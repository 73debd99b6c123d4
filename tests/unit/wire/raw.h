/* tests/unit/wire/raw.h — a server engine and a peer that says whatever it likes, byte by byte. */
#ifndef SL_TESTS_UNIT_WIRE_RAW_H
#define SL_TESTS_UNIT_WIRE_RAW_H

#include "../base/support.h"

#include "base/buf.h"
#include "wire/call.h"
#include "wire/connection.h"

#include <nghttp2/nghttp2.h>

typedef struct raw {
    sl_connection *server;
    sl_wire_counters counters;
    test_alloc memory;
    sl_alloc alloc;
    nghttp2_hd_inflater *inflater;
    uint64_t now_ns;
    sl_buf out; /* what the peer is about to say */

    /* What the application of the server has seen. */
    unsigned calls, messages, half_closes, ends;
    unsigned last_messages; /* that were said to be the last */
    size_t message_bytes;
    char last[256];
    sl_call *call; /* the newest */
    sl_call_end_info info;
    bool finishes; /* answer OK at the half-close */
    uint32_t message_bytes_max;
    sl_wire_budget *input; /* of the server; set before it is opened */

    /* What the server has said. */
    unsigned frames[16]; /* by type */
    uint32_t goaway_error, reset_error, reset_stream_id;
    size_t window_bytes;          /* that the window of the connection was opened by */
    unsigned stream_window_opens; /* how often that of a call was */
    char goaway_text[128];
    char headers[2048]; /* of all blocks: "name: value\n" */
    char text[1024];    /* when it was no HTTP/2 */
    size_t text_bytes;
} raw;

/* Opens a server; with_preface: the peer has said its preface and empty SETTINGS. */
void raw_open(raw *w, const sl_wire_limits *limits, bool with_preface);
void raw_close(raw *w);

/* Adds to what the peer is about to say. */
void raw_bytes(raw *w, const void *data, size_t bytes);
void raw_frame(raw *w, uint8_t type, uint8_t flags, uint32_t stream_id, const void *payload, size_t bytes);
void raw_head(raw *w, uint8_t type, uint8_t flags, uint32_t stream_id, size_t bytes); /* only the head */
void raw_row(sl_buf *block, const char *name, const char *value);

/* The usual headers of a gRPC request, with other rows ("name: value\n...") instead of or besides them. */
void raw_request(raw *w, uint32_t stream_id, uint8_t flags, const char *rows);
void raw_message(raw *w, uint32_t stream_id, uint8_t flags, uint8_t compressed, const void *data,
                 size_t bytes);

/* The server reads it, and what it answers is taken apart. */
void raw_go(raw *w);

/* The same, but the server reads so many bytes at a time. */
void raw_go_in_steps(raw *w, size_t step_bytes);

/* The server waits a second for the peer to close, and then no more. */
bool raw_finishes(raw *w);

#define EXPECT_END(raw, reason, error)                                                                       \
    do {                                                                                                     \
        EXPECT_STR(sl_end_name(sl_connection_end_reason((raw)->server)), sl_end_name(reason));               \
        EXPECT_EQ((raw)->goaway_error, (error));                                                             \
        EXPECT_EQ((raw)->counters.connections_ended[reason], 1);                                             \
        EXPECT(raw_finishes(raw));                                                                           \
    } while (0)

#endif

/* tests/unit/wire/pair.h — two engines, a server and a client, with memory between them instead of a network.
 *
 * The server's application does what the path says: */
#ifndef SL_TESTS_UNIT_WIRE_PAIR_H
#define SL_TESTS_UNIT_WIRE_PAIR_H

#include "../base/support.h"

#include "base/buf.h"
#include "wire/call.h"
#include "wire/connection.h"

#define PATH_ECHO   "/t.Test/Echo"  /* each message comes back; OK at the end */
#define PATH_COUNT  "/t.Test/Count" /* one message at the end: how many came, as text */
#define PATH_MANY   "/t.Test/Many" /* after the first message: pair.many messages of pair.many_bytes, then OK */
#define PATH_FAIL   "/t.Test/Fail"   /* NOT_FOUND at once, with trailers */
#define PATH_SILENT "/t.Test/Silent" /* takes everything, consumes nothing, says nothing */
#define PATH_PAUSED "/t.Test/Paused" /* pauses at once; the test resumes */
#define PATH_HEADER "/t.Test/Header" /* sends back the metadata as headers, and as trailers at the end */

enum {
    PAIR_CALLS_MAX = 64
};

/* What a side has seen of one call. */
typedef struct seen {
    sl_call *call; /* NULL when it has ended */
    unsigned headers, messages, half_closes, ends, rooms;
    size_t bytes;        /* of messages */
    uint64_t hash;       /* of all their bytes, in order */
    size_t window_bytes; /* not consumed */
    sl_call_end_info info;
    char message[256];      /* of info */
    char trailers[1024];    /* "key=value;" each */
    char last[256];         /* the beginning of the last message */
    unsigned to_send;       /* PATH_MANY */
    bool consumes, cancels; /* client: what to do with each message */
} seen;

typedef struct side {
    struct pair *pair;
    sl_connection *connection;
    sl_wire_counters counters;
    test_alloc memory;
    sl_alloc alloc;
    seen calls[PAIR_CALLS_MAX];
    unsigned call_count, goaways;
    size_t moved_bytes; /* written by this side */
} side;

typedef struct pair {
    side server, client;
    uint64_t now_ns;
    unsigned many, many_bytes;
    size_t read_bytes; /* how much a side gets at a time; 0: all there is */
    dice *chop;        /* or a random amount each time */
} pair;

/* NULL limits: the defaults. False only when a side could not be made, because memory was set to fail. */
bool pair_open(pair *r, const sl_wire_limits *server, const sl_wire_limits *client);
void pair_close(pair *r);

/* Moves bytes until both are silent. */
void pair_run(pair *r);

/* Moves what one side has to say to the other; returns how much it was. */
size_t pair_move(pair *r, side *from, side *to);

/* Lets time pass: both get their ticks, and bytes are moved. */
void pair_wait(pair *r, uint64_t ns);

/* The server waits a second for the client to close, and then no more. */
bool pair_server_finishes(pair *r);

/* Starts a call. NULL when that did not work. */
seen *pair_call(pair *r, const char *path);
seen *pair_call_with(pair *r, const sl_call_request *request);
sl_err pair_send(seen *s, const void *data, size_t bytes);
sl_err pair_say(seen *s, const char *text);

/* The client half-closes and everything is moved. */
void pair_end(pair *r, seen *s);

/* Bytes of a pattern, so that a mix-up is seen. */
void pair_fill(uint8_t *data, size_t bytes, unsigned seed);
uint64_t pair_hash(uint64_t hash, const void *data, size_t bytes);

#define EXPECT_STATUS(seen, wanted)                                                                          \
    do {                                                                                                     \
        EXPECT_EQ((seen)->ends, 1);                                                                          \
        EXPECT_STR(sl_status_name((seen)->info.status), sl_status_name(wanted));                             \
    } while (0)

#endif

/* tests/unit/worker/web.h — a small HTTP/1.1 server on the same loop, which answers as the test says.
 *
 * Each request that has come whole is counted and kept, and answered with the bytes of `answer`. Nothing sleeps: WEB_UNTIL() turns the
 * loop until a fact holds, and a timer fails the test when it never does. */
#ifndef SL_TESTS_UNIT_WORKER_WEB_H
#define SL_TESTS_UNIT_WORKER_WEB_H

#include "worker/handled.h"

#include "base/buf.h"
#include "net/listener.h"

enum {
    WEB_PEERS_MAX = 64
};

typedef enum web_after {
    WEB_KEEP, /* the connection stays */
    WEB_CLOSE,
    WEB_RESET,
    WEB_REPEAT /* `repeated` again and again, for ever */
} web_after;

typedef struct web_peer {
    struct web *web;
    sl_socket *socket; /* NULL: gone */
    sl_buf in, out;
    bool is_repeating, is_closing, is_resetting;
} web_peer;

typedef struct web {
    sl_loop *loop;
    sl_listener *listener;
    sl_timer guard;
    bool guard_rang;
    web_peer peers[WEB_PEERS_MAX];
    unsigned accepts, requests, ends;

    const char *answer; /* NULL: none, until web_answer_now() */
    web_after after;
    const char *repeated;

    char head[16 * 1024]; /* of the last request, with a zero */
    size_t body_bytes;
    uint64_t body_sum; /* of its bytes */
    char body[256];    /* the beginning */
} web;

void web_init(web *w);
void web_done(web *w);
/* "http://127.0.0.1:PORT/path"; good until the next call. */
const char *web_url(web *w, const char *path);
/* Answers every connection that waits. */
void web_answer_now(web *w, const char *answer);
/* The value of a header of the last request; "" if there is none. Good until the next call. */
const char *web_header(const web *w, const char *name);

#define WEB_UNTIL(w, fact)                                                                                   \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((w)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            sl_loop_turn((w)->loop, true);                                                                   \
        }                                                                                                    \
    } while (0)

#endif

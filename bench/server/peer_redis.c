/* bench/server/peer_redis.c — Redis streams: XADD, pipelined, with the append-only file flushed always or every second. */
#include "line.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>

static void start(peer *p)
{
    char port[8];
    line *const l = bench_allocate(sizeof *l);

    snprintf(port, sizeof port, "%u", p->port);
    const char *const words[] = { peer_program("redis-server"),
                                  "--port",
                                  port,
                                  "--bind",
                                  "127.0.0.1",
                                  "--save",
                                  "",
                                  "--appendonly",
                                  "yes",
                                  "--appendfsync",
                                  p->kind->variant,
                                  NULL };
    peer_spawn(p, words, NULL);
    line_open(l, peer_connect(p));
    p->state = l;
}

static void put(peer *p, uint32_t count)
{
    static const char head[] = "*5\r\n$4\r\nXADD\r\n$5\r\nbench\r\n$1\r\n*\r\n$1\r\nd\r\n$256\r\n";

    for (uint32_t i = 0; i < count; i++) {
        line_put(p->state, head, sizeof head - 1);
        line_put(p->state, peer_payload(), PAYLOAD_BYTES);
        line_put(p->state, "\r\n", 2);
    }
}

/* An answer is two lines: its length and an id. */
static uint32_t count_answers(line *l)
{
    const char *text;
    size_t bytes;
    uint32_t ids = 0;

    while (line_next(l, &text, &bytes)) {
        if (bytes > 0 && text[0] == '-')
            bench_fail("redis: %.*s", (int)bytes, text);
        ids += bytes > 0 && text[0] != '$';
    }
    return ids;
}

static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    uint32_t count = 0;

    while (count == 0 && line_wait(p->state, timeout_ns))
        count = count_answers(p->state);
    return count;
}

static void stop(peer *p)
{
    line_close(p->state);
    free(p->state);
}

const peer_kind peer_redis_always = { .name = "redis-always",
                                      .program = "redis-server",
                                      .flushes = true,
                                      .start = start,
                                      .put = put,
                                      .wait = await_answers,
                                      .stop = stop,
                                      .variant = "always" };
const peer_kind peer_redis_everysec = { .name = "redis-everysec",
                                        .program = "redis-server",
                                        .start = start,
                                        .put = put,
                                        .wait = await_answers,
                                        .stop = stop,
                                        .variant = "everysec" };

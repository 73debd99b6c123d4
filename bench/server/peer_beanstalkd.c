/* bench/server/peer_beanstalkd.c — beanstalkd with its log: flushed every 50 ms as it comes, or for each job. */
#include "line.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void start(peer *p)
{
    char port[8];
    line *const l = bench_allocate(sizeof *l);

    snprintf(port, sizeof port, "%u", p->port);
    const char *const words[] = { peer_program("beanstalkd"), "-l", "127.0.0.1", "-p", port, "-b", p->folder,
                                  p->kind->variant,           NULL };
    peer_spawn(p, words, NULL);
    line_open(l, peer_connect(p));
    p->state = l;
}

static void put(peer *p, uint32_t count)
{
    static const char head[] = "put 0 0 60 256\r\n";

    for (uint32_t i = 0; i < count; i++) {
        line_put(p->state, head, sizeof head - 1);
        line_put(p->state, peer_payload(), PAYLOAD_BYTES);
        line_put(p->state, "\r\n", 2);
    }
}

static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    const char *text;
    size_t bytes;
    uint32_t count = 0;

    while (count == 0 && line_wait(p->state, timeout_ns))
        for (; line_next(p->state, &text, &bytes); count++)
            if (bytes < 8 || memcmp(text, "INSERTED", 8) != 0)
                bench_fail("beanstalkd: %.*s", (int)bytes, text);
    return count;
}

static void stop(peer *p)
{
    line_close(p->state);
    free(p->state);
}

const peer_kind peer_beanstalkd = { .name = "beanstalkd",
                                    .program = "beanstalkd",
                                    .start = start,
                                    .put = put,
                                    .wait = await_answers,
                                    .stop = stop,
                                    .variant = NULL };
const peer_kind peer_beanstalkd_flush = { .name = "beanstalkd-f0",
                                          .program = "beanstalkd",
                                          .flushes = true,
                                          .start = start,
                                          .put = put,
                                          .wait = await_answers,
                                          .stop = stop,
                                          .variant = "-f0" };

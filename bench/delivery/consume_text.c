/* bench/delivery/consume_text.c — Redis streams with a group, NATS JetStream by pulling, and beanstalkd: protocols of text. */
#include "consumer.h"
#include "server/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESERVES_MAX = 100, /* beanstalkd: asked for at a time; it answers them one by one */
    PULL_SECONDS = 30,
};

static const uint64_t long_ns = (uint64_t)ANSWER_SECONDS_MAX * 1000000000;

static line *open_line(consumer *c)
{
    line *const l = bench_allocate(sizeof *l);

    line_open(l, peer_connect(c->server));
    c->fd = l->fd;
    c->state = l;
    return l;
}

static void close_line(consumer *c)
{
    line_close(c->state);
    free(c->state);
}

/* A piece of the input that is not taken yet; NULL: it is not all there. */
static const char *peek(const line *l, size_t offset, size_t bytes)
{
    return l->in.bytes < offset + bytes ? NULL : (const char *)sl_buf_data(&l->in) + offset;
}

/* Where the line that begins at `offset` ends, its two last bytes not counted; SIZE_MAX: it does not yet. */
static size_t line_end(const line *l, size_t offset)
{
    const char *const text = peek(l, offset, 0);
    const char *const end = text == NULL ? NULL : memchr(text, '\r', l->in.bytes - offset);

    return end == NULL || (size_t)(end - text) + offset + 2 > l->in.bytes ? SIZE_MAX
                                                                          : (size_t)(end - text) + offset;
}

/* --- Redis --- */

typedef struct reply {
    size_t at;  /* of what is looked at */
    bool whole; /* false: the rest is still on its way */
} reply;

/* "$5" or "*2" and its number; -1: nil. */
static long redis_number(line *l, reply *r, char wanted)
{
    const size_t end = line_end(l, r->at);
    const char *const text = peek(l, r->at, 1);

    if (end == SIZE_MAX) {
        r->whole = false;
        return 0;
    }
    if (text[0] != wanted)
        bench_fail("redis: %.*s", (int)(end - r->at), text);
    r->at = end + 2;
    return strtol(text + 1, NULL, 10);
}

static const char *redis_text(line *l, reply *r, size_t *ret_bytes)
{
    const long bytes = redis_number(l, r, '$');
    const char *const text = r->whole ? peek(l, r->at, (size_t)bytes + 2) : NULL;

    r->whole = text != NULL;
    r->at += (size_t)bytes + 2;
    *ret_bytes = (size_t)bytes;
    return text;
}

static void redis_prepare(peer *p)
{
    line l;
    const char *text;
    size_t bytes;

    line_open(&l, peer_connect(p));
    line_print(&l, "XGROUP CREATE bench workers 0 MKSTREAM\r\n");
    if (!line_wait(&l, long_ns) || !line_next(&l, &text, &bytes) || text[0] != '+')
        bench_fail("redis: no group");
    line_close(&l);
}

static void redis_ask(consumer *c)
{
    line_print(c->state, "XREADGROUP GROUP workers c%u COUNT %u BLOCK 0 STREAMS bench >\r\n", c->index,
               c->window);
}

static void redis_open(consumer *c)
{
    open_line(c);
    redis_ask(c);
    (void)line_wait(c->state, 0);
}

/* [[stream, [[id, [field, value]], ...]]]; acknowledged all together. False: not all of it is there. */
static bool redis_take_batch(consumer *c, bool count_only, uint64_t *ret_count)
{
    line *const l = c->state;
    reply r = { .whole = true };
    size_t bytes = 0;

    redis_number(l, &r, '*');
    if (r.whole)
        redis_number(l, &r, '*');
    if (r.whole)
        redis_text(l, &r, &bytes);
    const long count = r.whole ? redis_number(l, &r, '*') : 0;
    if (r.whole && !count_only)
        line_print(l, "*%ld\r\n$4\r\nXACK\r\n$5\r\nbench\r\n$7\r\nworkers\r\n", 3 + count);
    for (long i = 0; i < count && r.whole; i++) {
        redis_number(l, &r, '*');
        const char *const id = r.whole ? redis_text(l, &r, &bytes) : NULL;
        if (r.whole && !count_only)
            line_print(l, "$%zu\r\n%.*s\r\n", bytes, (int)bytes, id);
        if (r.whole)
            redis_number(l, &r, '*');
        if (r.whole)
            redis_text(l, &r, &bytes);
        const char *const payload = r.whole ? redis_text(l, &r, &bytes) : NULL;
        if (r.whole && !count_only)
            consumer_take(c, payload);
    }
    if (r.whole && !count_only)
        line_skip(l, r.at);
    *ret_count = (uint64_t)count;
    return r.whole;
}

/* False: the rest is still on its way. */
static bool redis_take(consumer *c)
{
    line *const l = c->state;
    const char *const first = peek(l, 0, 1);
    const size_t end = line_end(l, 0);
    uint64_t count;

    if (first == NULL || end == SIZE_MAX || (*first == '*' && !redis_take_batch(c, true, &count)))
        return false;
    if (*first == ':') { /* of XACK */
        c->acked += strtoull(first + 1, NULL, 10);
        return line_skip(l, end + 2);
    }
    redis_take_batch(c, false, &count);
    redis_ask(c);
    return true;
}

static bool redis_turn(consumer *c)
{
    line *const l = c->state;

    while (line_wait(l, 0)) /* which sends as well */
        while (redis_take(c))
            continue;
    return l->out.bytes > 0;
}

static const consumer_kind redis_always = { .peer = &peer_redis_always,
                                            .prepare = redis_prepare,
                                            .open = redis_open,
                                            .turn = redis_turn,
                                            .close = close_line };
static const consumer_kind redis_everysec = { .peer = &peer_redis_everysec,
                                              .prepare = redis_prepare,
                                              .open = redis_open,
                                              .turn = redis_turn,
                                              .close = close_line };

/* --- NATS --- */

typedef struct puller {
    line line; /* first: consumer_line_turn() */
    uint32_t inbox, asked;
} puller;

static void nats_prepare(peer *p)
{
    static const char text[] =
        "{\"stream_name\":\"bench\",\"config\":{\"durable_name\":\"workers\",\"ack_policy\":\"explicit\","
        "\"ack_wait\":60000000000,\"max_ack_pending\":100000,\"deliver_policy\":\"all\"}}";
    line l;
    const char *answer;
    size_t bytes;
    bool made = false;

    line_open(&l, peer_connect(p));
    line_print(&l,
               "CONNECT {\"verbose\":false}\r\nSUB made 1\r\nPUB "
               "$JS.API.CONSUMER.DURABLE.CREATE.bench.workers made %zu\r\n%s\r\n",
               sizeof text - 1, text);
    while (!made && line_wait(&l, long_ns))
        while (line_next(&l, &answer, &bytes))
            made |= bytes > 0 && answer[0] == '{' && memmem(answer, bytes, "\"error\"", 7) == NULL &&
                    memmem(answer, bytes, "workers", 7) != NULL;
    if (!made)
        bench_fail("nats: no consumer");
    line_close(&l);
}

static void nats_ask(consumer *c)
{
    puller *const p = c->state;
    char text[64];
    const int bytes = snprintf(text, sizeof text, "{\"batch\":%u,\"expires\":%lld}", c->window - p->asked,
                               (long long)PULL_SECONDS * 1000000000);

    line_print(&p->line, "PUB $JS.API.CONSUMER.MSG.NEXT.bench.workers pulled.%u %d\r\n%s\r\n", p->inbox,
               bytes, text);
    p->asked = c->window;
}

/* An inbox of its own: what an earlier consumer has asked for must not come to this one. */
static void nats_open(consumer *c)
{
    static uint32_t inboxes;
    puller *const p = bench_allocate(sizeof *p);

    *p = (puller){ .inbox = ++inboxes };
    line_open(&p->line, peer_connect(c->server));
    c->fd = p->line.fd;
    c->state = p;
    line_print(&p->line,
               "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":false}\r\nSUB pulled.%u 1\r\n",
               p->inbox);
    nats_ask(c);
    (void)line_wait(&p->line, 0);
}

/* "MSG subject sid reply bytes"; "HMSG ... header-bytes bytes" is the end of a request. */
static bool nats_take(consumer *c)
{
    puller *const p = c->state;
    const size_t end = line_end(&p->line, 0);
    char head[512], reply_to[256];
    unsigned long bytes = 0;

    if (end == SIZE_MAX || end >= sizeof head)
        return false;
    memcpy(head, peek(&p->line, 0, end), end);
    head[end] = '\0';
    if (strncmp(head, "PING", 4) == 0)
        line_print(&p->line, "PONG\r\n");
    if (strncmp(head, "-ERR", 4) == 0)
        bench_fail("nats: %s", head);
    if (strncmp(head, "MSG ", 4) != 0 && strncmp(head, "HMSG ", 5) != 0)
        return line_skip(&p->line, end + 2);
    bytes = strtoul(strrchr(head, ' '), NULL, 10);
    if (peek(&p->line, end + 2, bytes + 2) == NULL)
        return false;
    if (head[0] == 'M' && sscanf(head, "MSG %*s %*s %255s %*u", reply_to) == 1 && bytes == PAYLOAD_BYTES) {
        consumer_take(c, peek(&p->line, end + 2, bytes));
        line_print(&p->line, "PUB %s 4\r\n+ACK\r\n", reply_to);
        c->acked++;
        p->asked--;
    } else {
        p->asked = 0; /* the request is over: too old, or nothing was there */
    }
    return line_skip(&p->line, end + 2 + bytes + 2);
}

static bool nats_turn(consumer *c)
{
    puller *const p = c->state;

    while (line_wait(&p->line, 0)) { /* which sends as well */
        while (nats_take(c))
            continue;
        if (p->asked <= c->window / 2)
            nats_ask(c);
    }
    return p->line.out.bytes > 0;
}

/* What it has asked for waits at the server. If it were only closed, the first messages of the next run could be sent to where nobody
 * listens any more before the server has noticed, and would come again when ack_wait is over: a minute in which nothing happens. */
static void nats_leave(puller *p)
{
    bool is_heard = false;
    const char *text;
    size_t bytes;

    line_print(&p->line, "UNSUB 1\r\nPING\r\n");
    while (!is_heard) {
        if (!line_wait(&p->line, long_ns))
            bench_fail("nats: no answer to a ping");
        while (line_next(&p->line, &text, &bytes))
            is_heard |= bytes == 4 && memcmp(text, "PONG", 4) == 0;
    }
}

static void nats_close(consumer *c)
{
    puller *const p = c->state;

    nats_leave(p);
    line_close(&p->line);
    free(p);
}

static const consumer_kind nats = {
    .peer = &peer_nats, .prepare = nats_prepare, .open = nats_open, .turn = nats_turn, .close = nats_close
};

/* --- beanstalkd --- */

typedef struct reserver {
    line line;
    uint32_t asked; /* not answered yet */
} reserver;

/* The server looks at the commands of a connection one by one, and a reserve that waits holds up the deletes behind it. So only the
 * first of a batch may wait, and the deletes of the batch before it were sent before. */
static void beanstalkd_ask(consumer *c)
{
    reserver *const r = c->state;

    r->asked = c->window < RESERVES_MAX ? c->window : RESERVES_MAX;
    line_print(&r->line, "reserve-with-timeout 1\r\n");
    for (uint32_t i = 1; i < r->asked; i++)
        line_print(&r->line, "reserve-with-timeout 0\r\n");
}

static void beanstalkd_open(consumer *c)
{
    reserver *const r = bench_allocate(sizeof *r);

    *r = (reserver){ 0 };
    line_open(&r->line, peer_connect(c->server));
    c->fd = r->line.fd;
    c->state = r;
    beanstalkd_ask(c);
    (void)line_wait(&r->line, 0);
}

/* "RESERVED id bytes" and a line; "TIMED_OUT"; "DELETED". */
static bool beanstalkd_take(consumer *c)
{
    reserver *const r = c->state;
    line *const l = &r->line;
    const size_t end = line_end(l, 0);
    unsigned long long id;
    size_t bytes;
    char head[64];

    if (end == SIZE_MAX || end >= sizeof head)
        return false;
    memcpy(head, peek(l, 0, end), end);
    head[end] = '\0';
    if (strcmp(head, "DELETED") == 0 || strcmp(head, "TIMED_OUT") == 0) {
        c->acked += head[0] == 'D';
        r->asked -= head[0] == 'T';
        return line_skip(l, end + 2);
    }
    if (sscanf(head, "RESERVED %llu %zu", &id, &bytes) != 2)
        bench_fail("beanstalkd: %s", head);
    if (peek(l, end + 2, bytes + 2) == NULL)
        return false;
    consumer_take(c, peek(l, end + 2, bytes));
    line_print(l, "delete %llu\r\n", id);
    r->asked--;
    return line_skip(l, end + 2 + bytes + 2);
}

static bool beanstalkd_turn(consumer *c)
{
    reserver *const r = c->state;

    while (line_wait(&r->line, 0)) { /* which sends as well */
        while (beanstalkd_take(c))
            continue;
        if (r->asked == 0)
            beanstalkd_ask(c);
    }
    return r->line.out.bytes > 0;
}

static const consumer_kind beanstalkd = {
    .peer = &peer_beanstalkd, .open = beanstalkd_open, .turn = beanstalkd_turn, .close = close_line
};
static const consumer_kind beanstalkd_flush = {
    .peer = &peer_beanstalkd_flush, .open = beanstalkd_open, .turn = beanstalkd_turn, .close = close_line
};

const consumer_kind *const consumer_others[] = { &redis_always,
                                                 &redis_everysec,
                                                 &nats,
                                                 &consumer_rabbitmq_classic,
                                                 &consumer_rabbitmq_quorum,
                                                 &beanstalkd,
                                                 &beanstalkd_flush,
                                                 &consumer_postgres,
                                                 NULL };

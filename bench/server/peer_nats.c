/* bench/server/peer_nats.c — NATS JetStream with a file store: publish, confirmed by a message to our inbox. */
#include "line.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message is a line "MSG subject sid bytes" and its bytes with a line end. False: not all of it is there. */
static bool take_message(line *l, const char *text, size_t bytes, bool *ret_is_error)
{
    const char *const last = memrchr(text, ' ', bytes);
    const size_t payload_bytes = last == NULL ? 0 : strtoul(last + 1, NULL, 10);
    const size_t line_bytes = bytes + 2;

    if (sl_buf_data(&l->in) == NULL || l->in.bytes < payload_bytes + 2) {
        l->in.start -= line_bytes; /* the line was only consumed, its bytes are still in front */
        l->in.bytes += line_bytes;
        return false;
    }
    *ret_is_error = memmem(sl_buf_data(&l->in), payload_bytes, "\"error\"", 7) != NULL;
    return line_skip(l, payload_bytes + 2);
}

static uint32_t count_messages(line *l)
{
    const char *text;
    size_t bytes;
    uint32_t count = 0;
    bool is_error = false;

    while (line_next(l, &text, &bytes)) {
        if (bytes >= 4 && memcmp(text, "PING", 4) == 0)
            line_print(l, "PONG\r\n");
        if (bytes >= 4 && memcmp(text, "-ERR", 4) == 0)
            bench_fail("nats: %.*s", (int)bytes, text);
        if (bytes < 4 || memcmp(text, "MSG ", 4) != 0)
            continue;
        if (!take_message(l, text, bytes, &is_error))
            break;
        if (is_error)
            bench_fail("nats: JetStream refused a message");
        count++;
    }
    return count;
}

static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    uint32_t count = 0;

    while (count == 0 && line_wait(p->state, timeout_ns))
        count = count_messages(p->state);
    return count;
}

static void write_configuration(const peer *p)
{
    char path[BENCH_PATH_BYTES_MAX + 16];

    snprintf(path, sizeof path, "%s/nats.conf", p->folder);
    FILE *const file = fopen(path, "w");
    if (file == NULL)
        bench_fail("cannot write %s", path);
    fprintf(file, "listen: 127.0.0.1:%u\njetstream { store_dir: \"%s/js\" }\n", p->port, p->folder);
    fclose(file);
}

static void make_stream(peer *p)
{
    static const char stream[] = "{\"name\":\"bench\",\"subjects\":[\"bench\"],\"retention\":\"workqueue\","
                                 "\"storage\":\"file\",\"num_replicas\":1}";

    line_print(p->state,
               "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\nSUB inbox.* 1\r\n");
    line_print(p->state, "PUB $JS.API.STREAM.CREATE.bench inbox.c %zu\r\n%s\r\n", sizeof stream - 1, stream);
    if (await_answers(p, (uint64_t)ANSWER_SECONDS_MAX * 1000000000) != 1)
        bench_fail("nats: the stream was not made");
}

static void start(peer *p)
{
    line *const l = bench_allocate(sizeof *l);
    const char *const words[] = { peer_program("nats-server"), "-c", "nats.conf", NULL };

    write_configuration(p);
    peer_spawn(p, words, NULL);
    line_open(l, peer_connect(p));
    p->state = l;
    make_stream(p);
}

static void put(peer *p, uint32_t count)
{
    static const char head[] = "PUB bench inbox.a 256\r\n";

    for (uint32_t i = 0; i < count; i++) {
        line_put(p->state, head, sizeof head - 1);
        line_put(p->state, peer_payload(), PAYLOAD_BYTES);
        line_put(p->state, "\r\n", 2);
    }
}

static void stop(peer *p)
{
    line_close(p->state);
    free(p->state);
}

const peer_kind peer_nats = {
    .name = "nats", .program = "nats-server", .start = start, .put = put, .wait = await_answers, .stop = stop
};

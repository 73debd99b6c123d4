/* tests/unit/worker/web.c — see web.h. */
#include "worker/web.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define GUARD_NS UINT64_C(30000000000)

enum {
    WEB_BYTES_MAX = 16 * 1024 * 1024
};

/* --- answers --- */

static void answer(web_peer *peer, const char *text, web_after after)
{
    EXPECT_OK(sl_buf_append(&peer->out, text, strlen(text)));
    peer->is_repeating = after == WEB_REPEAT;
    peer->is_closing = after == WEB_CLOSE;
    peer->is_resetting = after == WEB_RESET;
    sl_socket_wake(peer->socket);
}

void web_answer_now(web *w, const char *text)
{
    for (unsigned i = 0; i < w->accepts; i++)
        if (w->peers[i].socket != NULL)
            answer(&w->peers[i], text, WEB_KEEP);
}

/* --- requests --- */

static void keep(web *w, const char *head, size_t head_bytes, const uint8_t *body, size_t body_bytes)
{
    EXPECT(head_bytes < sizeof w->head);
    memcpy(w->head, head, head_bytes);
    w->head[head_bytes] = '\0';
    w->body_bytes = body_bytes;
    w->body_sum = 0;
    for (size_t i = 0; i < body_bytes; i++)
        w->body_sum += body[i];
    snprintf(w->body, sizeof w->body, "%.*s", (int)body_bytes, (const char *)body);
    w->requests++;
}

const char *web_header(const web *w, const char *name)
{
    static char value[8 * 1024];
    const size_t bytes = strlen(name);

    value[0] = '\0';
    for (const char *line = strstr(w->head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, bytes) == 0 && line[2 + bytes] == ':')
            snprintf(value, sizeof value, "%.*s", (int)strcspn(line + 4 + bytes, "\r"), line + 4 + bytes);
    }
    return value;
}

/* False: no whole request is there. */
static bool take_request(web_peer *peer)
{
    web *const w = peer->web;
    const char *const data = (const char *)sl_buf_data(&peer->in);
    const char *const end = peer->in.bytes == 0 ? NULL : memmem(data, peer->in.bytes, "\r\n\r\n", 4);
    size_t head_bytes, body_bytes;

    if (end == NULL)
        return false;
    head_bytes = (size_t)(end - data) + 4;
    const char *const length = memmem(data, head_bytes, "Content-Length: ", 16);
    body_bytes = length == NULL ? 0 : (size_t)atoll(length + 16);
    if (peer->in.bytes < head_bytes + body_bytes)
        return false;
    keep(w, data, head_bytes, (const uint8_t *)data + head_bytes, body_bytes);
    sl_buf_consume(&peer->in, head_bytes + body_bytes);
    if (w->answer != NULL)
        answer(peer, w->answer, w->after);
    return true;
}

/* --- sockets --- */

static void on_receive(void *ctx, const uint8_t *data, size_t bytes)
{
    web_peer *const peer = ctx;

    EXPECT_OK(sl_buf_append(&peer->in, data, bytes));
    while (take_request(peer))
        continue;
}

static void finish(web_peer *peer)
{
    sl_socket *const socket = SL_TAKE_PTR(peer->socket);

    (peer->is_resetting ? sl_socket_reset : sl_socket_close)(socket);
    peer->web->ends++;
}

static size_t fill(void *ctx, uint8_t *into, size_t capacity)
{
    web_peer *const peer = ctx;
    const char *const repeated = peer->web->repeated;
    size_t bytes = peer->out.bytes < capacity ? peer->out.bytes : capacity;

    if (bytes > 0)
        memcpy(into, sl_buf_data(&peer->out), bytes);
    sl_buf_consume(&peer->out, bytes);
    while (peer->is_repeating && bytes + strlen(repeated) <= capacity) {
        memcpy(into + bytes, repeated, strlen(repeated));
        bytes += strlen(repeated);
    }
    if (bytes == 0 && (peer->is_closing || peer->is_resetting))
        finish(peer);
    return bytes;
}

static void on_end(void *ctx, sl_net_end end, const char *problem)
{
    web_peer *const peer = ctx;

    (void)end;
    (void)problem;
    peer->socket = NULL;
    peer->web->ends++;
}

static void on_accept(void *ctx, sl_socket *socket)
{
    static const sl_socket_handler handler = { .on_receive = on_receive, .fill = fill, .on_end = on_end };
    web *const w = ctx;
    web_peer *const peer = &w->peers[w->accepts++];

    EXPECT(w->accepts < WEB_PEERS_MAX);
    *peer = (web_peer){ .web = w, .socket = socket };
    sl_buf_init(&peer->in, &sl_alloc_default, WEB_BYTES_MAX);
    sl_buf_init(&peer->out, &sl_alloc_default, WEB_BYTES_MAX);
    sl_socket_set_handler(socket, &handler, peer);
}

/* --- both --- */

static void on_guard(void *ctx)
{
    ((web *)ctx)->guard_rang = true;
}

void web_init(web *w)
{
    const sl_listen_options options = { .host = SL_STR("127.0.0.1"), .on_accept = on_accept, .ctx = w };
    static const char *const proxies[] = { "http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY",
                                           "ALL_PROXY" };

    for (size_t i = 0; i < SL_COUNT_OF(proxies); i++)
        unsetenv(proxies[i]);
    memset(w, 0, sizeof *w);
    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &w->loop));
    sl_timer_init(&w->guard, w->loop, on_guard, w);
    sl_timer_set(&w->guard, sl_loop_now_ns(w->loop) + GUARD_NS);
    EXPECT_OK(sl_listener_new(w->loop, &options, NULL, &w->listener));
}

void web_done(web *w)
{
    for (unsigned i = 0; i < w->accepts; i++) {
        if (w->peers[i].socket != NULL)
            sl_socket_reset(w->peers[i].socket);
        sl_buf_done(&w->peers[i].in);
        sl_buf_done(&w->peers[i].out);
    }
    sl_listener_free(w->listener);
    sl_timer_stop(&w->guard);
    sl_loop_free(w->loop);
}

const char *web_url(web *w, const char *path)
{
    static char text[256];

    snprintf(text, sizeof text, "http://127.0.0.1:%u%s", sl_listener_port(w->listener), path);
    return text;
}

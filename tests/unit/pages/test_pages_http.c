/* tests/unit/pages/test_pages_http.c — the host of pages over real sockets. Its clients are on the same loop, so nothing has to be
 * waited for by the clock; a timer fails the test that would wait for ever. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/support.h"
#include "pages/pages.h"

#define GUARD_NS UINT64_C(30000000000)

enum {
    WAITING_MAX = 4,
    TEXT_BYTES = 4096
};

/* An owner of pages: /now answers, /later when the test says so, /503 and so on with that number. */
typedef struct shown {
    test_alloc memory;
    sl_alloc alloc;
    sl_loop *loop;
    sl_pages *pages;
    sl_pages_options options;
    sl_timer guard;
    bool guard_rang;
    unsigned asks, give_ups;
    sl_pages_answer *waiting[WAITING_MAX];
    unsigned waiting_count;
    char question[TEXT_BYTES]; /* the last one */
} shown;

#define UNTIL(s, fact)                                                                                       \
    do {                                                                                                     \
        while (!(fact)) {                                                                                    \
            if ((s)->guard_rang)                                                                             \
                fail_msg("never came true: %s", #fact);                                                      \
            sl_loop_turn((s)->loop, true);                                                                   \
        }                                                                                                    \
    } while (0)

/* --- the owner --- */

static const char *text_or_none(const char *text)
{
    return text == NULL ? "-" : text;
}

static void say(sl_pages_answer *answer, const char *text)
{
    if (sl_buf_append(&answer->body, text, strlen(text)) != SL_OK)
        sl_pages_out_of_memory(answer);
}

static void on_ask(void *ctx, const sl_pages_question *question, sl_pages_answer *answer)
{
    shown *const s = ctx;
    const unsigned status = (unsigned)strtoul(question->path + 1, NULL, 10);

    s->asks++;
    snprintf(s->question, sizeof s->question, "%s %s %s %s %s %s %s %d", question->method, question->path,
             text_or_none(question->query), text_or_none(question->host), text_or_none(question->origin),
             text_or_none(question->fetch_site), text_or_none(question->authorization), question->is_local);
    sl_pages_begin(answer);
    if (strcmp(question->path, "/later") == 0) {
        EXPECT(s->waiting_count < WAITING_MAX);
        answer->job = s;
        s->waiting[s->waiting_count++] = answer;
        return;
    }
    answer->status = status == 0 ? 200 : status;
    answer->allow = status == 405 ? "GET, HEAD" : NULL;
    answer->challenge = status == 401 ? "Basic realm=\"x\"" : NULL;
    say(answer, "here\n");
}

static void on_give_up(void *ctx, sl_pages_answer *answer)
{
    shown *const s = ctx;

    EXPECT(answer->job == s);
    s->give_ups++;
}

static void answer_first(shown *s)
{
    sl_pages_answer *const answer = s->waiting[0];

    say(answer, "at last\n");
    answer->job = NULL;
    answer->ready(answer->ready_ctx);
}

/* --- its life --- */

static void on_guard(void *ctx)
{
    ((shown *)ctx)->guard_rang = true;
}

static void shown_init(shown *s)
{
    *s = (shown){ 0 };
    s->alloc = test_alloc_use(&s->memory);
    s->options = (sl_pages_options){ .host = "127.0.0.1",
                                     .alloc = &s->alloc,
                                     .connections_max = 8,
                                     .connections_per_ip_max = 4,
                                     .connection_bytes = 4096,
                                     .body_bytes_max = 1024,
                                     .backlog = 8 };
    EXPECT_OK(sl_loop_new(&s->alloc, NULL, NULL, &s->loop));
    sl_timer_init(&s->guard, s->loop, on_guard, s);
    sl_timer_set(&s->guard, sl_loop_now_ns(s->loop) + GUARD_NS);
}

static sl_err shown_open(shown *s, sl_text *problem)
{
    static const sl_pages_owner owner = { .ask = on_ask, .give_up = on_give_up };

    return sl_pages_new(s->loop, &s->options, &owner, s, problem, &s->pages);
}

static void shown_begin(shown *s)
{
    shown_init(s);
    EXPECT_OK(shown_open(s, NULL));
}

static void shown_end(shown *s)
{
    sl_pages_free(s->pages);
    sl_timer_stop(&s->guard);
    sl_loop_free(s->loop);
    EXPECT_EQ(s->memory.block_count, 0);
}

/* --- clients --- */

typedef struct client {
    int fd;
    sl_watch *watch;
    char text[TEXT_BYTES]; /* what came, with a zero */
    size_t bytes;
    bool is_closed; /* by the host */
} client;

static void on_readable(void *ctx)
{
    client *const c = ctx;
    const ssize_t got = recv(c->fd, c->text + c->bytes, sizeof c->text - 1 - c->bytes, MSG_DONTWAIT);

    if (got > 0)
        c->bytes += (size_t)got;
    else if (got == 0 || errno != EAGAIN) {
        c->is_closed = true;
        sl_watch_free(SL_TAKE_PTR(c->watch));
    }
    c->text[c->bytes] = '\0';
}

/* What a client needs is not what the test wants to see fail. */
static void client_open(shown *s, client *c)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(sl_pages_port(s->pages)),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const test_alloc memory = s->memory;

    *c = (client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    EXPECT(c->fd >= 0);
    EXPECT_EQ(connect(c->fd, (const struct sockaddr *)&address, sizeof address), 0);
    s->memory.fail_at = 0;
    EXPECT_OK(sl_watch_new(s->loop, c->fd, on_readable, c, &c->watch));
    s->memory.fail_at = memory.fail_at;
    s->memory.call_count = memory.call_count;
}

static void client_close(client *c)
{
    sl_watch_free(c->watch);
    close(c->fd);
}

static void client_send(client *c, const char *text)
{
    EXPECT_EQ(send(c->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void client_get(client *c, const char *path)
{
    char text[256];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: here\r\n\r\n", path);
    client_send(c, text);
}

static bool has(const client *c, const char *words)
{
    return strstr(c->text, words) != NULL;
}

static unsigned status_of(const client *c)
{
    unsigned status = 0;

    (void)sscanf(c->text, "HTTP/1.1 %u", &status);
    return status;
}

/* After the host has gone: what it had sent. */
static void client_read_rest(client *c)
{
    const struct timeval patience = { .tv_sec = 30 };

    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (!c->is_closed) {
        const ssize_t got = recv(c->fd, c->text + c->bytes, sizeof c->text - 1 - c->bytes, 0);
        c->bytes += got > 0 ? (size_t)got : 0;
        c->is_closed = got <= 0;
    }
    c->text[c->bytes] = '\0';
}

/* --- questions and answers --- */

TEST(a_question_comes_to_the_owner_of_pages_as_it_was_asked)
{
    shown s;
    client c;

    shown_begin(&s);
    client_open(&s, &c);
    client_send(&c,
                "PUT /a%2Fb?c=%20d?e HTTP/1.1\r\nHost: name:1\r\nOrigin: http://o\r\nSec-Fetch-Site: none\r\n"
                "Authorization: Basic eDp5\r\n\r\n");
    UNTIL(&s, has(&c, "here\n"));
    EXPECT_STR(s.question, "PUT /a%2Fb c=%20d?e name:1 http://o none Basic eDp5 1");
    client_send(&c, "HEAD / HTTP/1.1\r\nHost: name:1\r\n\r\n"); /* on the same connection */
    UNTIL(&s, s.asks == 2);
    EXPECT_STR(s.question, "HEAD / - name:1 - - - 1");
    client_close(&c);
    shown_end(&s);
}

static void expect_headers(const char *path, const char *wanted, bool is_wanted)
{
    shown s;
    client c;

    shown_begin(&s);
    client_open(&s, &c);
    client_get(&c, path);
    UNTIL(&s, has(&c, "here\n"));
    if (has(&c, wanted) != is_wanted)
        fail_msg("%s: %s", path, c.text);
    EXPECT(has(&c, "Content-Type: application/json\r\n") && has(&c, "Cache-Control: no-store\r\n") &&
           has(&c, "X-Content-Type-Options: nosniff\r\n"));
    client_close(&c);
    shown_end(&s);
}

TEST(answers_of_pages_have_the_headers_of_their_status)
{
    expect_headers("/now", "HTTP/1.1 200 ", true);
    expect_headers("/now", "Connection: close", false);
    expect_headers("/now", "Allow", false);
    expect_headers("/405", "Allow: GET, HEAD\r\n", true);
    expect_headers("/401", "WWW-Authenticate: Basic realm=\"x\"\r\n", true);
    expect_headers("/503", "Connection: close\r\n", true);
}

TEST(who_sends_a_body_to_pages_is_answered_at_once_and_loses_his_connection)
{
    shown s;
    client c;

    shown_begin(&s);
    client_open(&s, &c);
    client_send(&c, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
    UNTIL(&s, has(&c, "here\n") && c.is_closed);
    EXPECT_EQ(s.asks, 1);
    client_close(&c);
    shown_end(&s);
}

TEST(pages_of_one_address_have_so_many_connections_and_headers_so_many_bytes)
{
    char large[8192];
    client c[5];
    shown s;

    shown_begin(&s);
    for (size_t i = 0; i < SL_COUNT_OF(c); i++)
        client_open(&s, &c[i]);
    UNTIL(&s, c[4].is_closed);
    EXPECT_EQ(c[4].bytes, 0);
    snprintf(large, sizeof large, "GET /now HTTP/1.1\r\nHost: x\r\nX: %08000d\r\n\r\n", 0);
    client_send(&c[0], large);
    UNTIL(&s, c[0].is_closed);
    EXPECT(status_of(&c[0]) >= 400 && s.asks == 0);
    client_get(&c[1], "/now");
    UNTIL(&s, has(&c[1], "here\n"));
    for (size_t i = 0; i < SL_COUNT_OF(c); i++)
        client_close(&c[i]);
    shown_end(&s);
}

/* --- answers that come later --- */

TEST(an_answer_of_a_page_may_come_later_and_the_connection_goes_on)
{
    client c, other;
    shown s;

    shown_begin(&s);
    client_open(&s, &c);
    client_open(&s, &other);
    client_get(&c, "/later");
    UNTIL(&s, s.waiting_count == 1);
    client_get(&other, "/now"); /* nobody is kept waiting by him */
    UNTIL(&s, has(&other, "here\n"));
    EXPECT_EQ(c.bytes, 0);
    answer_first(&s);
    UNTIL(&s, has(&c, "at last\n"));
    client_get(&c, "/now");
    UNTIL(&s, has(&c, "here\n"));
    EXPECT_EQ(s.give_ups, 0);
    client_close(&c);
    client_close(&other);
    shown_end(&s);
}

TEST(a_client_may_go_while_it_waits_for_a_page)
{
    client c;
    shown s;

    shown_begin(&s);
    client_open(&s, &c);
    client_send(&c, "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
    UNTIL(&s, s.waiting_count == 1);
    client_close(&c);
    sl_loop_turn(s.loop, false);
    answer_first(&s); /* the answer is still there to be filled */
    client_open(&s, &c);
    client_get(&c, "/now");
    UNTIL(&s, has(&c, "here\n"));
    client_close(&c);
    EXPECT_EQ(s.give_ups, 0);
    shown_end(&s);
}

/* --- the end --- */

TEST(who_still_waits_when_the_host_of_pages_goes_is_given_up_and_told)
{
    client c, gone;
    shown s;

    shown_begin(&s);
    client_open(&s, &c);
    client_open(&s, &gone);
    client_get(&c, "/later");
    client_get(&gone, "/later");
    UNTIL(&s, s.waiting_count == 2);
    client_close(&gone);
    sl_pages_free(SL_TAKE_PTR(s.pages));
    EXPECT_EQ(s.give_ups, 2);
    client_read_rest(&c);
    EXPECT_EQ(status_of(&c), 503);
    EXPECT(has(&c, "{\"error\":\"This ends here"));
    client_close(&c);
    shown_end(&s);
}

TEST(answers_of_pages_that_became_ready_just_before_the_end_are_sent)
{
    client c;
    shown s;

    shown_begin(&s);
    client_open(&s, &c);
    client_get(&c, "/later");
    UNTIL(&s, s.waiting_count == 1);
    answer_first(&s);
    sl_pages_free(SL_TAKE_PTR(s.pages));
    EXPECT_EQ(s.give_ups, 0);
    client_read_rest(&c);
    EXPECT_EQ(status_of(&c), 200);
    EXPECT(has(&c, "at last\n"));
    client_close(&c);
    shown_end(&s);
}

/* It was on its way when the end began; the library must not be stopped while somebody waits. */
TEST(nobody_begins_to_wait_for_a_page_while_the_host_goes)
{
    client c;
    shown s;

    shown_begin(&s);
    client_open(&s, &c);
    client_get(&c, "/now");
    UNTIL(&s, has(&c, "here\n"));
    c.bytes = 0;
    client_get(&c, "/later");
    sl_pages_free(SL_TAKE_PTR(s.pages));
    EXPECT_EQ(s.waiting_count, 1);
    EXPECT_EQ(s.give_ups, 1);
    client_read_rest(&c);
    EXPECT_EQ(status_of(&c), 503);
    client_close(&c);
    shown_end(&s);
}

/* --- what can fail --- */

TEST(a_host_of_pages_says_when_its_port_is_taken)
{
    char problem[256];
    sl_text text;
    shown s, second;

    shown_begin(&s);
    shown_init(&second);
    second.options.port = sl_pages_port(s.pages);
    sl_text_init(&text, problem, sizeof problem);
    EXPECT_ERR(shown_open(&second, &text), SL_ERR_EXISTS);
    EXPECT(second.pages == NULL && problem[0] != '\0');
    shown_end(&second);
    shown_end(&s);
}

/* One more file can be opened: the socket, and not what the library needs besides. */
TEST(a_host_of_pages_says_where_and_why_it_cannot_be_when_files_are_few)
{
    struct rlimit before, few;
    char problem[256];
    sl_text text;
    shown s;
    sl_err err;
    int next, again;

    shown_init(&s);
    sl_text_init(&text, problem, sizeof problem);
    next = dup(STDERR_FILENO);
    EXPECT(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = (struct rlimit){ (rlim_t)next + 1, before.rlim_max };
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    err = shown_open(&s, &text);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_ERR(err, SL_ERR_NOMEM);
    EXPECT_STR(problem, "127.0.0.1: too little memory, or too few open files are allowed (ulimit -n)");
    again = dup(STDERR_FILENO);
    EXPECT_EQ(again, next); /* nothing was left open */
    EXPECT_EQ(close(again), 0);
    shown_end(&s);
}

/* The pages, or false: they could not be opened. Whatever happens, the client is answered or cut. */
static bool ask_with_scarce_memory(shown *s)
{
    char problem[256];
    sl_text text;
    client c;
    sl_err err;

    sl_text_init(&text, problem, sizeof problem);
    err = shown_open(s, &text);
    if (err != SL_OK) {
        EXPECT_ERR(err, SL_ERR_NOMEM);
        return false;
    }
    client_open(s, &c);
    client_send(&c, "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    UNTIL(s, c.is_closed);
    EXPECT(c.bytes == 0 || status_of(&c) == 500 || (status_of(&c) == 200 && has(&c, "here\n")));
    client_close(&c);
    return c.bytes > 0 && status_of(&c) == 200;
}

TEST(pages_without_memory_cut_or_say_so_and_lose_nothing)
{
    bool was_whole = false;

    for (size_t fail_at = 1; !was_whole; fail_at++) {
        shown s;
        EXPECT(fail_at < 100);
        shown_init(&s);
        s.memory.call_count = 0;
        s.memory.fail_at = fail_at;
        was_whole = ask_with_scarce_memory(&s) && s.memory.call_count < fail_at;
        s.memory.fail_at = 0;
        shown_end(&s);
    }
}

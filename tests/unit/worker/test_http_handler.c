/* The HTTP handler against a small server on the same loop: requests, answers of every kind, and peers that misbehave. */
#include "worker/web.h"

#include "base/support.h"
#include "client/rig.h"
#include "net/certificate.h"
#include "net/rig.h"
#include "worker/http_handler.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void make(handled *h, sl_loop *loop, sl_http_options options)
{
    sl_handler *handler = NULL;
    char problem[256];
    sl_text text;

    sl_text_init(&text, problem, sizeof problem);
    if (options.slots == 0)
        options.slots = 16;
    if (sl_http_handler_new(loop, &options, &text, &handler) != SL_OK)
        fail_msg("no handler: %s", problem);
    handled_use(h, handler);
}

static void start(web *w, handled *h, sl_http_options options)
{
    web_init(w);
    w->answer = OK_ANSWER;
    options.url = web_url(w, "/hook");
    make(h, w->loop, options);
}

static void finish(web *w, handled *h)
{
    h->handler->class->free(h->handler, 0);
    web_done(w);
}

/* One message, until its result is there. */
static void send_one(web *w, handled *h, const char *data)
{
    sl_job *const job = handled_job(0, data);
    const unsigned finished = h->finished;

    handled_run(h, job);
    WEB_UNTIL(w, h->finished == finished + 1);
    EXPECT(h->last_job == job);
    sl_job_free(job);
}

TEST(a_message_becomes_a_request_with_all_that_is_known_of_it_S2_20_B5)
{
    static web w;
    handled h;
    sl_job_message message = handled_message(41, "{\"a\":1}");
    const char *const extra[] = { "Authorization: Bearer x", "X-Tenant: t1" };

    start(&w, &h, (sl_http_options){ .headers = extra, .header_count = 2 });
    message.attempt = 3;
    message.metadata = SL_STR("{\"trace\":\"50% of it\"}");
    sl_job *const job = handled_job_of(&message);
    job->until_ns = sl_loop_now_ns(w.loop) + 90 * SECOND_NS;
    handled_run(&h, job);
    WEB_UNTIL(&w, h.finished == 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(strncmp(w.head, "POST /hook HTTP/1.1\r\n", 21), 0);
    EXPECT_STR(w.body, "{\"a\":1}");
    EXPECT_STR(web_header(&w, "Content-Type"), "application/json");
    EXPECT_STR(web_header(&w, "Idempotency-Key"), "00000000-0000-1234-0000-00000000002a");
    EXPECT_STR(web_header(&w, "Sluice-Id"), "00000000-0000-1234-0000-00000000002a");
    EXPECT_STR(web_header(&w, "Sluice-Token"), "7");
    EXPECT_STR(web_header(&w, "Sluice-Attempt"), "3");
    EXPECT_STR(web_header(&w, "Sluice-Revision"), "41");
    EXPECT_STR(web_header(&w, "Sluice-Stream"), "orders");
    EXPECT_STR(web_header(&w, "Sluice-Group"), "g");
    EXPECT_STR(web_header(&w, "Sluice-Type"), "placed");
    EXPECT_STR(web_header(&w, "Sluice-Metadata"), "{\"trace\":\"50% of it\"}");
    EXPECT_STR(web_header(&w, "Authorization"), "Bearer x");
    EXPECT_STR(web_header(&w, "X-Tenant"), "t1");
    EXPECT_STR(web_header(&w, "Expect"), "");
    const int left_ms = atoi(web_header(&w, "Sluice-Deadline-Ms"));
    EXPECT(left_ms > 80000 && left_ms <= 90000);
    sl_job_free(job);
    finish(&w, &h);
}

TEST(what_is_empty_or_not_known_is_left_out_of_a_request_B5)
{
    static web w;
    handled h;
    const sl_job_message message = { .data = SL_STR(""), .metadata = SL_STR("{\n}") };
    sl_job *const job = handled_job_of(&message);

    start(&w, &h, (sl_http_options){ 0 });
    handled_run(&h, job);
    WEB_UNTIL(&w, h.finished == 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(w.body_bytes, 0);
    EXPECT_STR(web_header(&w, "Content-Type"), "application/octet-stream");
    EXPECT(strstr(w.head, "Sluice-Token") == NULL);
    EXPECT(strstr(w.head, "Sluice-Stream") == NULL);
    EXPECT(strstr(w.head, "Sluice-Metadata") == NULL);
    EXPECT(strstr(w.head, "Sluice-Deadline-Ms") == NULL);
    sl_job_free(job);
    finish(&w, &h);
}

TEST(no_text_of_a_message_can_smuggle_a_header_into_a_request)
{
    static web w;
    static char large[SL_HTTP_METADATA_BYTES_MAX + 1];
    handled h;
    sl_job_message message = handled_message(1, "x");

    start(&w, &h, (sl_http_options){ 0 });
    message.stream = SL_STR("a\r\nEvil: 1\r\n\r\nGET / HTTP/1.1");
    message.type = SL_STR(" t%\xc3\xa9\t ");
    message.group = (sl_str){ "g\0h", 3 };
    message.content_type = SL_STR("text/plain\nEvil: 2");
    message.metadata = SL_STR("{}\rEvil: 3");
    sl_job *job = handled_job_of(&message);
    handled_run(&h, job);
    WEB_UNTIL(&w, h.finished == 1);
    EXPECT_EQ(w.requests, 1);
    EXPECT_STR(web_header(&w, "Evil"), "");
    EXPECT_STR(web_header(&w, "Sluice-Stream"), "a%0D%0AEvil: 1%0D%0A%0D%0AGET / HTTP/1.1");
    EXPECT_STR(web_header(&w, "Sluice-Type"), "%20t%25%C3%A9%09%20");
    EXPECT_STR(web_header(&w, "Sluice-Group"), "g%00h");
    EXPECT_STR(web_header(&w, "Content-Type"), "text/plain%0AEvil: 2");
    EXPECT_STR(web_header(&w, "Sluice-Metadata"), "");
    sl_job_free(job);
    memset(large, 'm', sizeof large);
    message.metadata = (sl_str){ large, sizeof large };
    message.stream = (sl_str){ large, SL_HTTP_VALUE_BYTES_MAX + 1 };
    job = handled_job_of(&message);
    handled_run(&h, job);
    WEB_UNTIL(&w, h.finished == 2);
    EXPECT_STR(web_header(&w, "Sluice-Metadata"), "");
    EXPECT_STR(web_header(&w, "Sluice-Stream"), "");
    sl_job_free(job);
    finish(&w, &h);
}

TEST(answers_are_judged_with_their_headers_and_first_line)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ 0 });
    w.answer = "HTTP/1.1 429 Too Many\r\nretry-AFTER:  3 \r\nContent-Length: 0\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_RETRY);
    EXPECT(h.last.is_fault);
    EXPECT_EQ(h.last.retry_after_ns, 3 * SECOND_NS);
    w.answer = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_RETRY);
    EXPECT_EQ(h.last.retry_after_ns, 0); /* nothing is left of the answer before */
    w.answer = "HTTP/1.1 422 No\r\nContent-Length: 17\r\n\r\nno such order\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(h.reason, "status 422: no such order") != NULL);
    w.answer = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    w.answer = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT_EQ(w.requests, 5); /* it was not followed */
    w.answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    w.answer = "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.retry_after_ns, 9 * SECOND_NS);
    finish(&w, &h);
}

TEST(a_message_of_a_megabyte_arrives_whole)
{
    static web w;
    handled h;
    sl_job_message message = handled_message(1, "");
    const size_t bytes = 1000 * 1000;
    char *const data = malloc(bytes);

    EXPECT(data != NULL);
    memset(data, 3, bytes);
    message.data = (sl_str){ data, bytes };
    start(&w, &h, (sl_http_options){ .method = "PUT" });
    sl_job *const job = handled_job_of(&message);
    handled_run(&h, job);
    WEB_UNTIL(&w, h.finished == 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(w.body_bytes, bytes);
    EXPECT_EQ(w.body_sum, 3 * bytes);
    EXPECT_EQ(strncmp(w.head, "PUT /hook", 9), 0);
    sl_job_free(job);
    free(data);
    finish(&w, &h);
}

TEST(a_hundred_messages_need_one_connection)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ 0 });
    for (unsigned i = 0; i < 100; i++)
        send_one(&w, &h, "x");
    EXPECT_EQ(h.kinds[SL_RESULT_DONE], 100);
    EXPECT_EQ(w.requests, 100);
    EXPECT_EQ(w.accepts, 1);
    finish(&w, &h);
}

TEST(many_requests_run_at_the_same_time_and_their_connections_are_used_again)
{
    static web w;
    handled h;
    sl_job *jobs[16];

    start(&w, &h, (sl_http_options){ 0 });
    w.answer = NULL;
    for (unsigned i = 0; i < 16; i++)
        handled_run(&h, jobs[i] = handled_job(i, "x"));
    WEB_UNTIL(&w, w.requests == 16);
    EXPECT_EQ(h.finished, 0);
    web_answer_now(&w, OK_ANSWER);
    WEB_UNTIL(&w, h.finished == 16);
    w.answer = OK_ANSWER;
    for (unsigned i = 0; i < 16; i++)
        handled_run(&h, jobs[i]);
    WEB_UNTIL(&w, h.finished == 32);
    EXPECT_EQ(h.kinds[SL_RESULT_DONE], 32);
    EXPECT_EQ(w.accepts, 16);
    for (unsigned i = 0; i < 16; i++)
        sl_job_free(jobs[i]);
    finish(&w, &h);
}

TEST(a_kept_connection_that_the_peer_closed_costs_no_message)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ 0 });
    w.after = WEB_CLOSE;
    send_one(&w, &h, "x");
    WEB_UNTIL(&w, w.ends == 1);
    for (int i = 0; i < 5; i++)
        sl_loop_turn(w.loop, false);
    struct pollfd waits = { .fd = sl_loop_fd(w.loop), .events = POLLIN };
    EXPECT_EQ(poll(&waits, 1, 0), 0); /* the end of it does not keep the loop from waiting */
    send_one(&w, &h, "y");
    EXPECT_EQ(h.kinds[SL_RESULT_DONE], 2);
    EXPECT_EQ(w.accepts, 2);
    finish(&w, &h);
}

TEST(an_answer_after_the_abort_still_counts_and_the_request_is_alive_until_then_B8)
{
    static web w;
    handled h;
    sl_job *const job = handled_job(1, "x");

    start(&w, &h, (sl_http_options){ 0 });
    w.answer = NULL;
    handled_run(&h, job);
    WEB_UNTIL(&w, w.requests == 1);
    EXPECT(h.handler->class->is_alive(h.handler, job));
    h.handler->class->abort(h.handler, job);
    sl_loop_turn(w.loop, false);
    EXPECT_EQ(h.finished, 0);
    web_answer_now(&w, OK_ANSWER);
    WEB_UNTIL(&w, h.finished == 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT(!h.handler->class->is_alive(h.handler, job));
    sl_job_free(job);
    finish(&w, &h);
}

static void never(void *ctx)
{
    (void)ctx;
    fail_msg("nothing can be read there");
}

TEST(kill_ends_a_request_that_is_never_answered_and_closes_its_connection_S2_6)
{
    static web w;
    handled h;
    sl_watch *watch = NULL;
    int ends[2];
    sl_job *const job = handled_job(1, "x"), *const unsent = handled_job(2, "y");

    start(&w, &h, (sl_http_options){ 0 });
    w.answer = NULL;
    handled_run(&h, job);
    WEB_UNTIL(&w, w.requests == 1);
    h.handler->class->kill(h.handler, job);
    EXPECT_EQ(h.finished, 1);
    EXPECT_EQ(h.last.kind, SL_RESULT_STOPPED);
    EXPECT_EQ(pipe(ends),
              0); /* gets the number of the connection that was just closed, which is nobody's now */
    EXPECT_OK(sl_watch_new(w.loop, ends[0], never, NULL, &watch));
    sl_watch_free(watch);
    WEB_UNTIL(&w, w.ends == 1);
    close(ends[0]);
    close(ends[1]);
    handled_run(&h, unsent);
    h.handler->class->kill(h.handler, unsent); /* before anything was sent */
    EXPECT_EQ(h.kinds[SL_RESULT_STOPPED], 2);
    w.answer = OK_ANSWER;
    send_one(&w, &h, "x"); /* and the handler goes on */
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    sl_job_free(job);
    sl_job_free(unsent);
    finish(&w, &h);
}

TEST(whoever_hears_of_a_result_may_run_kill_and_close)
{
    static web w;
    handled h;
    sl_job *jobs[3];

    start(&w, &h, (sl_http_options){ .slots = 2 });
    w.answer = NULL;
    for (unsigned i = 0; i < 3; i++)
        jobs[i] = handled_job(i, "x");
    handled_run(&h, jobs[0]);
    handled_run(&h, jobs[1]);
    WEB_UNTIL(&w, w.requests == 2);
    h.victim = jobs[1]; /* whose answer may be there already */
    h.next = jobs[2];
    web_answer_now(&w, OK_ANSWER);
    w.answer = OK_ANSWER;
    WEB_UNTIL(&w, h.last_job == jobs[0] || h.finished >= 2 || h.kinds[SL_RESULT_DONE] >= 1);
    h.close_next = h.finished == 2;
    WEB_UNTIL(&w, h.finished == 3);
    EXPECT_EQ(h.kinds[SL_RESULT_DONE], 2);
    EXPECT_EQ(h.kinds[SL_RESULT_STOPPED], 1);
    EXPECT_EQ(h.closed, 1);
    for (unsigned i = 0; i < 3; i++)
        sl_job_free(jobs[i]);
    finish(&w, &h);
}

TEST(a_reset_before_and_in_the_middle_of_an_answer_is_a_failure_of_the_destination_B18)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ 0 });
    w.after = WEB_RESET;
    w.answer = "";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    w.answer = "HTTP/1.1 200 OK\r\nContent-Le";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(strstr(h.reason, "200") == NULL); /* half of the headers are no answer */
    w.answer = "HTTP/1.1 100 Continue\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(strstr(h.reason, "status") == NULL);
    w.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(strstr(h.reason, "status 200, but the answer broke off") != NULL);
    finish(&w, &h);
}

TEST(an_answer_without_end_is_cut_at_its_limit_and_its_status_counts)
{
    static web w;
    static char repeated[16 * 1024 + 1];
    handled h;

    memset(repeated, 'z', sizeof repeated - 1);
    start(&w, &h, (sl_http_options){ 0 });
    w.answer = "HTTP/1.1 200 OK\r\n\r\n";
    w.after = WEB_REPEAT;
    w.repeated = repeated;
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT(h.progressed > 0);
    WEB_UNTIL(&w, w.ends == 1);
    w.answer = "HTTP/1.1 422 No\r\n\r\nfirst\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_PARK);
    EXPECT(strstr(h.reason, "422: first") != NULL);
    finish(&w, &h);
}

TEST(headers_without_end_are_no_answer)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ 0 });
    w.answer = "HTTP/1.1 200 OK\r\n";
    w.after = WEB_REPEAT;
    w.repeated = "X-Bomb: boom\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    EXPECT(strstr(h.reason, "headers of the answer are larger") != NULL);
    w.answer = "";
    w.repeated = "HTTP/1.1 100 Continue\r\n\r\n";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    w.repeated = "garbage that is no HTTP at all";
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    finish(&w, &h);
}

TEST(a_request_that_takes_longer_than_its_own_limit_fails)
{
    static web w;
    handled h;

    start(&w, &h, (sl_http_options){ .timeout_ns = SECOND_NS / 50 });
    w.answer = NULL;
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    EXPECT(strstr(h.reason, "timed out") != NULL);
    EXPECT(atoi(web_header(&w, "Sluice-Deadline-Ms")) <= 20);
    finish(&w, &h);
}

TEST(a_refused_connection_is_a_failure_in_plain_words_without_secrets_B18)
{
    static web w;
    handled h;
    uint16_t port;
    char url[128];

    start(&w, &h, (sl_http_options){ 0 });
    h.handler->class->free(h.handler, 0);
    close(raw_listen(1, &port)); /* nobody listens there any more */
    snprintf(url, sizeof url, "http://user:secret@127.0.0.1:%u/hook?key=hidden", port);
    make(&h, w.loop, (sl_http_options){ .url = url });
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    snprintf(url, sizeof url, "POST http://127.0.0.1:%u/hook failed: Failed to connect", port);
    EXPECT_EQ(strncmp(h.reason, url, strlen(url)), 0);
    finish(&w, &h);
}

TEST(an_unknown_host_is_a_failure_and_a_slow_name_server_stops_nobody_B18)
{
    static web w;
    handled h;
    sl_job *const job = handled_job(1, "x");

    start(&w, &h, (sl_http_options){ 0 });
    h.handler->class->free(h.handler, 0);
    make(&h, w.loop,
         (sl_http_options){ .url = "http://nothing.invalid/", .connect_timeout_ns = SECOND_NS / 5 });
    send_one(&w, &h, "x");
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    handled_run(&h, job);
    sl_loop_turn(w.loop, true);
    if (h.finished == 1) /* the lookup is under way */
        h.handler->class->kill(h.handler, job);
    EXPECT_EQ(h.finished, 2);
    sl_job_free(job);
    finish(&w, &h);
}

TEST(mistakes_in_the_options_are_told_before_the_first_message)
{
    static const char *const bad_headers[] = { "NoColon",      ": x",
                                               "A b: c",       "X: a\r\nEvil: b",
                                               "X:",           "Content-Length: 3",
                                               "sluice-id: 1", "Transfer-Encoding: chunked" };
    static const char *const bad_urls[] = { "",        "ftp://host/x",    "not a url",
                                            "http://", "http://h:99999/", "file:///x" };
    sl_handler *handler = NULL;
    char problem[256];
    sl_text text;
    web w;

    web_init(&w);
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        sl_text_init(&text, problem, sizeof problem);
        const sl_http_options options = {
            .url = "http://h/", .slots = 1, .headers = &bad_headers[i], .header_count = 1
        };
        EXPECT_ROW(sl_http_handler_new(w.loop, &options, &text, &handler) == SL_ERR_INVALID, i);
        EXPECT_ROW(problem[0] != '\0', i);
    }
    for (size_t i = 0; i < sizeof bad_urls / sizeof bad_urls[0]; i++) {
        sl_text_init(&text, problem, sizeof problem);
        const sl_http_options options = { .url = bad_urls[i], .slots = 1 };
        EXPECT_ROW(sl_http_handler_new(w.loop, &options, &text, &handler) == SL_ERR_INVALID, i);
        EXPECT_ROW(problem[0] != '\0', i);
    }
    sl_text_init(&text, problem, sizeof problem);
    EXPECT_ERR(sl_http_handler_new(w.loop,
                                   &(sl_http_options){ .url = "http://h/", .slots = 1, .method = "HEAD" },
                                   &text, &handler),
               SL_ERR_INVALID);
    EXPECT_ERR(sl_http_handler_new(
                   w.loop, &(sl_http_options){ .url = "https://h/", .slots = 1, .ca_file = "no/such/file" },
                   &text, &handler),
               SL_ERR_INVALID);
    web_done(&w);
}

TEST(close_ends_idle_connections_and_free_ends_all_in_the_middle_of_everything_S3_24)
{
    static web w;
    handled h;
    sl_job *const job = handled_job(1, "x");

    start(&w, &h, (sl_http_options){ 0 });
    send_one(&w, &h, "x");
    h.handler->class->close(h.handler);
    EXPECT_EQ(h.closed, 1);
    WEB_UNTIL(&w, w.ends == 1);
    h.handler->class->free(h.handler, 0);
    make(&h, w.loop, (sl_http_options){ .url = web_url(&w, "/") });
    w.answer = NULL;
    handled_run(&h, job);
    WEB_UNTIL(&w, w.requests == 2);
    h.handler->class->free(h.handler, 0);
    WEB_UNTIL(&w, w.ends == 2); /* the peer sees it: nothing is kept open */
    EXPECT_EQ(h.finished, 0);
    web_done(&w);
    sl_job_free(job);
}

/* --- TLS, and HTTP/2 with it: the engine of wire answers any call that it refuses with status 200 and trailers --- */

static void send_tls(client_rig *r, const char *ca_file, bool insecure, handled *h)
{
    static const char *const extra = "TE: trailers";
    sl_job_message message = handled_message(1, "");
    char url[128];

    snprintf(url, sizeof url, "https://127.0.0.1:%u/t/Refuse", sl_listener_port(r->listener));
    make(h, r->loop,
         (sl_http_options){
             .url = url, .ca_file = ca_file, .insecure = insecure, .headers = &extra, .header_count = 1 });
    message.content_type = SL_STR("application/grpc");
    sl_job *const job = handled_job_of(&message);
    handled_run(h, job);
    CLIENT_UNTIL(r, h->finished == 1);
    h->handler->class->free(h->handler, 0);
    sl_job_free(job);
}

TEST(a_certificate_is_trusted_when_its_authority_is_and_not_otherwise)
{
    static client_rig r;
    sl_tls *tls = NULL;
    handled h;
    papers p;

    papers_init(&p, "IP:127.0.0.1", 3600);
    EXPECT_OK(sl_tls_server_new(
        NULL, &(sl_tls_server_options){ .certificate_file = p.certificate, .key_file = p.key }, NULL, &tls));
    client_rig_init(&r, tls);
    send_tls(&r, NULL, false, &h);
    EXPECT_EQ(h.last.kind, SL_RESULT_FAILED);
    EXPECT(h.last.is_fault);
    EXPECT(strstr(h.reason, "certificate") != NULL);
    EXPECT_EQ(r.server_calls, 0);
    send_tls(&r, p.certificate, false, &h);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    EXPECT_EQ(r.server_calls, 1); /* by HTTP/2: that server speaks nothing else */
    send_tls(&r, NULL, true, &h);
    EXPECT_EQ(h.last.kind, SL_RESULT_DONE);
    client_rig_done(&r);
    sl_tls_free(tls);
    papers_done(&p);
}

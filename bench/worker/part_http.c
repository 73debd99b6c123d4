/* bench/worker/part_http.c — messages as requests: the HTTP handler of the worker against a loop on curl's multi handle.
 *
 * Both send the same bodies with the same number of headers over as many connections to the same service, and wait for each answer. The bare
 * loop has its headers ready, because it is to be the least that curl can be asked for; the worker makes them for each message. */
#include "endpoint.h"
#include "handlers.h"
#include "meter.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 20 * 1000,
    POLL_MS_MAX = 1000,
};

typedef struct bare {
    CURLM *multi;
    struct curl_slist *headers;
    const run_options *options;
    uint64_t total, begun, done;
} bare;

/* --- the bare loop --- */

static struct curl_slist *make_headers(void)
{
    static const char *const lines[] = {
        "Idempotency-Key: 6a1f0c9e-2b77-4d60-9d4c-0b1f8a2f0001",
        "Sluice-Id: 6a1f0c9e-2b77-4d60-9d4c-0b1f8a2f0001",
        "Content-Type: application/json",
        "Sluice-Token: 123456",
        "Sluice-Attempt: 1",
        "Sluice-Revision: 123456",
        "Sluice-Stream: memory",
        "Sluice-Type: message",
    };
    struct curl_slist *list = NULL;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        list = curl_slist_append(list, lines[i]);
    return list;
}

static size_t ignore(char *data, size_t one, size_t bytes, void *ctx)
{
    (void)data;
    (void)ctx;
    return one * bytes;
}

static CURL *make_request(const bare *b, const endpoint *e)
{
    CURL *const easy = curl_easy_init();
    char *const body = bench_allocate(b->options->data_bytes + 1);

    memset(body, 'x', b->options->data_bytes);
    curl_easy_setopt(easy, CURLOPT_URL, e->url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, b->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->options->data_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, body);
    return easy;
}

static void begin_request(bare *b, CURL *easy)
{
    char *body = NULL;
    char number[24];

    if (b->begun == b->total)
        return;
    b->begun++;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &body);
    const int bytes = snprintf(number, sizeof number, "%" PRIu64, b->begun);
    if ((uint32_t)bytes <= b->options->data_bytes)
        memcpy(body, number, (size_t)bytes);
    if (curl_multi_add_handle(b->multi, easy) != CURLM_OK)
        bench_fail("curl does not take a request");
}

static void end_request(bare *b, const CURLMsg *message)
{
    CURL *const easy = message->easy_handle;
    long status = 0;

    if (message->data.result != CURLE_OK)
        bench_fail("a request failed: %s", curl_easy_strerror(message->data.result));
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 204)
        bench_fail("a request was answered with status %ld", status);
    b->done++;
    curl_multi_remove_handle(b->multi, easy);
    begin_request(b, easy);
}

static void run_requests(bare *b, meter *m)
{
    const CURLMsg *message;
    int running, left;

    while (meter_note(m, b->done)) {
        bench_check();
        curl_multi_perform(b->multi, &running);
        const uint64_t before = b->done;
        while ((message = curl_multi_info_read(b->multi, &left)) != NULL)
            end_request(b, message);
        if (b->done == before)
            curl_multi_poll(b->multi, NULL, 0, POLL_MS_MAX, NULL);
    }
}

static double bare_rate(const run_options *o, const endpoint *e)
{
    bare b = { .multi = curl_multi_init(),
               .headers = make_headers(),
               .options = o,
               .total = run_messages(o, MESSAGES) };
    CURL *requests[100];
    meter m = meter_of(b.total);

    for (uint32_t i = 0; i < o->slots; i++)
        begin_request(&b, requests[i] = make_request(&b, e));
    run_requests(&b, &m);
    for (uint32_t i = 0; i < o->slots; i++) {
        char *body = NULL;
        curl_easy_getinfo(requests[i], CURLINFO_PRIVATE, &body);
        curl_easy_cleanup(requests[i]);
        free(body);
    }
    curl_multi_cleanup(b.multi);
    curl_slist_free_all(b.headers);
    return meter_rate(&m);
}

/* --- ours --- */

static double our_rate(const run_options *o, const endpoint *e)
{
    const work_setup setup = { .messages = run_messages(o, MESSAGES),
                               .slots = o->slots,
                               .data_bytes = o->data_bytes,
                               .target = e->url,
                               .make = make_http };

    return work_run(&setup);
}

void part_http(const run_options *o)
{
    static double ours[BENCH_ROUNDS_MAX], theirs[BENCH_ROUNDS_MAX];
    endpoint e;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    endpoint_start(&e);
    for (uint32_t round = 0; round < o->common.rounds; round++) {
        bench_progress("http", round, o->common.rounds);
        theirs[round] = bare_rate(o, &e);
        ours[round] = our_rate(o, &e);
    }
    bench_progress("", 0, 0);
    endpoint_stop(&e);
    bench_report_speed("http", "bare", ours, theirs, o->common.rounds, "messages/s");
}

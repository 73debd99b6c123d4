/* bench/server/peer_sluice.c — our server: appends by one BatchAppend call, as rows of one append, or by a call for each. */
#include "sluice.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GROUP_EVENTS_MAX = 1000
};

/* The program of the same build: build/bench/bench-server is beside build/sluice. */
static const char *own_program(void)
{
    static char path[BENCH_PATH_BYTES_MAX];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 16);

    if (bytes <= 0)
        bench_fail("cannot find the program");
    path[bytes] = '\0';
    dirname(dirname(path));
    return strcat(path, "/sluice");
}

static void start(peer *p)
{
    char port[8];
    static const sl_call_request request = {
        .path = SL_STR_INIT("/event_store.client.streams.Streams/BatchAppend"), .deadline_ns = UINT64_MAX
    };

    snprintf(port, sizeof port, "%u", p->port);
    const char *const words[] = { own_program(), "serve",       "--port", port, "--admin-port", "0", "--data",
                                  "data",        "--log-level", "warn",   NULL };
    peer_spawn(p, words, NULL);
    sluice *const s = sluice_open(p);
    p->state = s;
    if (p->kind->variant == NULL)
        bench_must(sl_call_start(s->connection, &request, &s->batch), "sluice");
}

static sl_wire_proposed make_event(sluice *s)
{
    sl_wire_proposed event = { .id = { .form = SL_WIRE_ID_STRUCTURED },
                               .type = SL_STR("bench"),
                               .content_type = SL_STR("application/octet-stream"),
                               .data = { peer_payload(), PAYLOAD_BYTES } };

    s->next_id++;
    memcpy(&event.id.uuid, &s->next_id, sizeof s->next_id);
    return event;
}

/* --- BatchAppend --- */

static void send_batch(sluice *s, uint32_t count)
{
    static sl_wire_proposed events[GROUP_EVENTS_MAX];
    static const sl_batch_options options = { .stream = SL_STR_INIT("bench"),
                                              .expected = { .kind = SL_WIRE_REVISION_ANY } };

    for (uint32_t i = 0; i < count; i++)
        events[i] = make_event(s);
    const sl_batch_append_draft draft = { .correlation = events[0].id,
                                          .options = &options,
                                          .events = events,
                                          .event_count = count,
                                          .is_final = true };
    const size_t bytes = sl_batch_append_request_size(&draft);
    uint8_t *message;

    bench_must(sl_call_reserve(s->batch, bytes, &message), "sluice");
    sl_batch_append_request_encode(&draft, message, bytes);
    sl_call_commit(s->batch, bytes);
}

static bool some_confirmed(const sluice *s)
{
    return s->confirmed > 0;
}

static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    sluice *const s = p->state;

    for (; s->queued > 0; s->queued--)
        send_batch(s, 1);
    sluice_run(s, some_confirmed, timeout_ns);
    const uint32_t confirmed = s->confirmed;
    s->confirmed = 0;
    return confirmed;
}

/* All that is queued is one append, as PostgreSQL's is one INSERT; one at a time. */
static uint32_t await_group(peer *p, uint64_t timeout_ns)
{
    sluice *const s = p->state;
    const uint32_t count = s->queued;

    if (count == 0)
        return 0;
    send_batch(s, count);
    s->queued = 0;
    if (!sluice_run(s, some_confirmed, timeout_ns))
        bench_fail("sluice: no answer");
    s->confirmed = 0;
    return count;
}

/* --- Append: a call for each --- */

static void send_message(sl_call *call, const sl_append_request *request)
{
    const size_t bytes = sl_append_request_size(request);
    uint8_t *message;

    bench_must(sl_call_reserve(call, bytes, &message), "sluice");
    sl_append_request_encode(request, message, bytes);
    sl_call_commit(call, bytes);
}

static void send_call(sluice *s)
{
    static const sl_call_request start_call = { .path =
                                                    SL_STR_INIT("/event_store.client.streams.Streams/Append"),
                                                .deadline_ns = UINT64_MAX };
    const sl_append_request options = { .kind = SL_APPEND_REQUEST_OPTIONS,
                                        .options = { .stream = SL_STR("bench"),
                                                     .expected = { .kind = SL_WIRE_REVISION_ANY } } };
    const sl_append_request event = { .kind = SL_APPEND_REQUEST_EVENT, .event = make_event(s) };
    sl_call *call;

    bench_must(sl_call_start(s->connection, &start_call, &call), "sluice");
    send_message(call, &options);
    send_message(call, &event);
    sl_call_half_close(call);
}

static uint32_t await_calls(peer *p, uint64_t timeout_ns)
{
    sluice *const s = p->state;

    for (; s->queued > 0; s->queued--)
        send_call(s);
    sluice_run(s, some_confirmed, timeout_ns);
    const uint32_t confirmed = s->confirmed;
    s->confirmed = 0;
    return confirmed;
}

static void put(peer *p, uint32_t count)
{
    ((sluice *)p->state)->queued += count;
}

static void stop(peer *p)
{
    sluice_close(p->state);
}

const peer_kind peer_sluice = {
    .name = "sluice", .flushes = true, .start = start, .put = put, .wait = await_answers, .stop = stop
};
const peer_kind peer_sluice_batch = {
    .name = "sluice-batch", .flushes = true, .start = start, .put = put, .wait = await_group, .stop = stop
};
const peer_kind peer_sluice_calls = { .name = "sluice-calls",
                                      .flushes = true,
                                      .start = start,
                                      .put = put,
                                      .wait = await_calls,
                                      .stop = stop,
                                      .variant = "calls" };

/* tests/unit/wire/test_memory.c — memory that runs out at any moment.
 *
 * The same exchange runs again and again; each time another allocation fails, first of the server and then of the
 * client, once or from there on. Whatever happens to the calls, each ends exactly once, nothing leaks (pair_close()
 * checks both), and nothing hangs. */
#include "pair.h"

enum {
    RUNS_MAX = 20000
};

/* Every part of the engine takes part: metadata, several calls, cut messages, trailers, pause, cancel, shutdown. */
static void exchange(pair *r)
{
    static uint8_t data[300000];
    const sl_metadata rows[] = { { SL_STR_INIT("k-bin"), SL_STR_INIT("\x01\x02") } };
    static const char *const paths[] = {
        PATH_ECHO, PATH_COUNT, PATH_FAIL, PATH_HEADER, PATH_MANY, PATH_PAUSED
    };

    r->many = 5;
    r->many_bytes = 1000;
    r->read_bytes = 7000;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        seen *s = pair_call_with(r, &(sl_call_request){ .path = sl_str_from(paths[i]),
                                                        .metadata = rows,
                                                        .metadata_count = 1,
                                                        .deadline_ns = r->now_ns + 5000000000 });
        if (s == NULL)
            continue;
        pair_say(s, "first");
        pair_send(s, data, i == 0 ? sizeof data : 100);
        pair_run(r);
        if (s->call != NULL)
            sl_call_half_close(s->call);
        pair_run(r);
    }
    sl_connection_shutdown(r->server.connection);
    pair_wait(r, 1000000000);
    pair_wait(r, 5000000000);
}

/* True when nothing failed any more: every allocation was tried. */
static bool run_with_failure(size_t fail_at, bool at_server, bool stays_out)
{
    pair r = { 0 };
    test_alloc *memory = at_server ? &r.server.memory : &r.client.memory;
    bool all_tried;

    memory->fail_at = fail_at;
    memory->stays_out = stays_out;
    if (pair_open(&r, NULL, NULL))
        exchange(&r);
    all_tried = memory->call_count < fail_at;
    pair_close(&r);
    return all_tried;
}

static void run_all(bool at_server, bool stays_out)
{
    size_t fail_at = 1;

    while (!run_with_failure(fail_at, at_server, stays_out)) {
        fail_at++;
        EXPECT(fail_at < RUNS_MAX);
    }
    EXPECT(fail_at > 50); /* else the exchange did not take place */
}

TEST(wire_a_server_survives_a_failed_allocation_anywhere)
{
    run_all(true, false);
}

TEST(wire_a_server_survives_when_memory_stays_out)
{
    run_all(true, true);
}

TEST(wire_a_client_survives_a_failed_allocation_anywhere)
{
    run_all(false, false);
}

TEST(wire_a_client_survives_when_memory_stays_out)
{
    run_all(false, true);
}

TEST(wire_the_exchange_succeeds_when_memory_does_not_fail)
{
    pair r = { 0 };

    EXPECT(pair_open(&r, NULL, NULL));
    exchange(&r);
    EXPECT_EQ(r.client.call_count, 6);
    EXPECT_EQ(r.client.calls[0].info.status, SL_STATUS_OK);
    EXPECT_EQ(r.client.calls[0].bytes, 300005);
    EXPECT_EQ(r.client.calls[4].info.status, SL_STATUS_OK);
    EXPECT_EQ(r.client.calls[5].info.status, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_EQ(sl_connection_end_reason(r.server.connection), SL_END_SHUTDOWN);
    pair_close(&r);
}

/* tests/unit/server/test_monitoring.c — statistics that come by themselves, at a bounded pace, and not to who does not read. */
#include "rig.h"

#include "server/request.h"
#include "wire/proto_bytes.h"

#include <stdio.h>
#include <string.h>

#define STATS_PATH     "/event_store.client.monitoring.Monitoring/Stats"
#define MILLISECOND_NS UINT64_C(1000000)

/* StatsReq: field 4 is the period. */
static sl_str stats_request(uint64_t period_ms, char request[static 16])
{
    size_t bytes = 0;

    request[bytes++] = 0x20;
    for (; period_ms >= 0x80; period_ms >>= 7)
        request[bytes++] = (char)(unsigned char)(period_ms | 0x80);
    request[bytes++] = (char)period_ms;
    return (sl_str){ request, bytes };
}

static server_call *watch(server_rig *rig, uint64_t period_ms)
{
    server_call *const call = server_rig_call(rig, STATS_PATH);
    char request[16];

    server_call_send(call, stats_request(period_ms, request));
    server_call_half_close(call);
    server_rig_run(rig);
    return call;
}

static void start(server_rig *rig)
{
    server_rig_init(rig);
    server_rig_start(rig);
}

/* The value of a key in the last message, or NULL. */
static const char *shown(const server_call *call, const char *key)
{
    static char value[64];
    sl_proto_reader outer = sl_proto_reader_from(call->messages[call->message_count - 1]);
    sl_proto_field entry, part;

    while (sl_proto_next(&outer, &entry)) {
        sl_proto_reader inner = sl_proto_reader_from(entry.bytes);
        bool found = false;
        while (sl_proto_next(&inner, &part)) {
            if (part.number == 1)
                found = sl_str_equal(part.bytes, sl_str_from(key));
            else if (found)
                snprintf(value, sizeof value, "%.*s", (int)part.bytes.bytes, part.bytes.data);
        }
        if (found)
            return value;
    }
    return NULL;
}

/* The only call that is open, as the server has it. */
static sl_call *server_side(const server_rig *rig)
{
    return SL_CONTAINER_OF(sl_list_first(&rig->host->requests), sl_request, node)->call;
}

TEST(statistics_come_at_once_with_the_names_of_the_metrics)
{
    server_call *call;
    server_rig rig;

    start(&rig);
    server_rig_append(&rig, "orders", "placed", "12345");
    call = watch(&rig, 1000);
    EXPECT_EQ(call->message_count, 1);
    EXPECT(!call->ended);
    EXPECT_STR(shown(call, "sluice_ready"), "1");
    EXPECT_STR(shown(call, "sluice_shutting_down"), "0");
    EXPECT_STR(shown(call, "sluice_open_calls"), "1");
    EXPECT_STR(shown(call, "sluice_users"), "0");
    EXPECT_STR(shown(call, "sluice_ended_calls_total{status=\"OK\"}"), "0");
    EXPECT(shown(call, "sluice_appended_events_total") != NULL);
    EXPECT(shown(call, "process_cpu_seconds_total") == NULL); /* a host does not know its process */
    server_rig_done(&rig);
}

TEST(statistics_come_again_in_each_period_until_the_client_has_enough)
{
    server_call *call;
    server_rig rig;

    start(&rig);
    call = watch(&rig, 1000);
    for (unsigned i = 2; i < 6; i++) {
        server_rig_advance(&rig, 999 * MILLISECOND_NS);
        EXPECT_EQ(call->message_count, i - 1);
        server_rig_advance(&rig, 1 * MILLISECOND_NS);
        EXPECT_EQ(call->message_count, i);
    }
    EXPECT_STR(shown(call, "sluice_uptime_seconds"), "4.000000000");
    server_call_cancel(call);
    server_rig_run(&rig);
    EXPECT_EQ(sl_host_due_ns(rig.host), UINT64_MAX); /* nobody is waited for any more */
    server_rig_done(&rig);
}

TEST(statistics_come_no_faster_and_no_slower_than_the_bounds)
{
    static const struct {
        uint64_t asked_ms, period_ms;
    } rows[] = { { 0, 30000 }, { 1, 100 },           { 99, 100 },
                 { 101, 101 }, { 3600000, 3600000 }, { UINT64_MAX, 3600000 } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *call;
        server_rig rig;

        start(&rig);
        call = watch(&rig, rows[i].asked_ms);
        EXPECT_EQ(sl_host_due_ns(rig.host), rig.time.mono_ns + rows[i].period_ms * MILLISECOND_NS);
        EXPECT_EQ(call->message_count, 1);
        server_rig_done(&rig);
    }
}

/* For ten seconds a hundred rounds go into what the connection may hold back, and then nowhere; he gets new ones when he reads
 * again, and is none the worse for it. */
TEST(statistics_are_not_kept_for_a_client_that_does_not_read)
{
    size_t full_bytes = 0, rounds = 0, seen;
    server_call *call;
    server_rig rig;

    start(&rig);
    call = server_rig_call(&rig, STATS_PATH);
    call->slow = true;
    server_call_send(call, SL_STR("\x20\x64"));
    server_call_half_close(call);
    server_rig_run(&rig);
    call->peer->stuck = true;
    while (sl_call_room(server_side(&rig)) > 0 && rounds++ < 10000)
        sl_host_tick(rig.host, rig.time.mono_ns += 100 * MILLISECOND_NS);
    full_bytes = sl_connection_output_bytes(call->peer->link->connection);
    for (unsigned i = 0; i < 100; i++)
        sl_host_tick(rig.host, rig.time.mono_ns += 100 * MILLISECOND_NS);
    EXPECT_EQ(sl_connection_output_bytes(call->peer->link->connection), full_bytes);
    call->peer->stuck = false;
    server_call_read_on(call);
    server_rig_run(&rig);
    EXPECT(!call->ended);
    seen = call->message_count;
    EXPECT(seen > rounds);
    server_rig_advance(&rig, 100 * MILLISECOND_NS);
    EXPECT_EQ(call->message_count, seen + 1);
    server_rig_done(&rig);
}

TEST(statistics_end_with_the_reason_when_the_server_stops)
{
    server_call *call;
    server_rig rig;

    start(&rig);
    call = watch(&rig, 1000);
    sl_host_stop(rig.host, "SIGTERM");
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT(strstr(call->message, "SIGTERM") != NULL);
    server_rig_done(&rig);
}

TEST(statistics_refuse_a_request_that_is_no_protobuf)
{
    server_rig rig;

    start(&rig);
    EXPECT_CALL_STATUS(server_rig_unary(&rig, STATS_PATH, SL_STR("\x0a\x7f")), SL_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(sl_host_due_ns(rig.host), UINT64_MAX);
    server_rig_done(&rig);
}

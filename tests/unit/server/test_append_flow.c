/* tests/unit/server/test_append_flow.c — Append: rights, time, a full store, a client that goes, a server that stops. */
#include "../base/support.h"
#include "writes.h"

#include "server/door.h"
#include "server/streams/gather.h"
#include "server/streams/write.h"
#include "store/faulty/faulty.h"

enum {
    LARGE_BYTES = 16 * 1000 * 1000 /* just below what one message may have; four of them fill the store */
};

static void expect_ended(const server_call *call, sl_status status, const char *part)
{
    EXPECT_CALL_STATUS(call, status);
    if (strstr(call->message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", call->message, part);
}

static server_call *append_one(writes *w, const char *stream, const sl_wire_proposed *event)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_APPEND_PATH);

    server_call_send(call, writes_append_options(w, sl_str_from(stream), WRITES_ANY));
    server_call_send(call, writes_append_event(w, event));
    if (call->call != NULL)
        server_call_half_close(call);
    server_rig_run_until_ended(&w->rig, call);
    return call;
}

/* --- rights --- */

static server_call *append_distrusted(writes *w, const char *stream)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_APPEND_PATH);
    const sl_wire_proposed event = writes_event(w, 1);

    server_rig_run(&w->rig);
    writes_distrust(w);
    server_call_send(call, writes_append_options(w, sl_str_from(stream), WRITES_ANY));
    server_call_send(call, writes_append_event(w, &event));
    server_call_half_close(call);
    return call;
}

TEST(who_may_not_write_to_a_stream_is_denied)
{
    static const char *const rows[] = { "$system", "$$closed", "closed" };
    writes w;
    server_call *call;

    writes_start(&w);
    server_rig_append(&w.rig, "$$closed", "$metadata", "{\"$acl\":{\"$w\":\"anna\",\"$mw\":\"anna\"}}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call = append_distrusted(&w, rows[i]);
        server_rig_run_until_ended(&w.rig, call);
        EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED);
        EXPECT_STR(call->message, "Access Denied");
        EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
    }
    call = append_distrusted(&w, "open");
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    writes_done(&w);
}

/* The metadata comes from the disk, later; events that were sent meanwhile are not lost and not early. */
TEST(an_append_waits_for_the_metadata_that_decides_about_it)
{
    sl_faulty *const disk = sl_faulty_new();
    char sentences[256];
    sl_text report;
    sl_store *store;
    writes w;

    sl_text_init(&report, sentences, sizeof sentences);
    EXPECT_OK(sl_store_open_faulty(&(sl_store_setup){ &sl_alloc_default, { 1, 2 } },
                                   &(sl_journal_options){ .folder = "f" }, disk, &report, &store));
    writes_init(&w);
    w.rig.store = store;
    server_rig_start(&w.rig);
    server_rig_append(&w.rig, "$$mine", "$metadata", "{\"$acl\":{\"$w\":\"somebody\"}}");
    server_rig_append(&w.rig, "$$theirs", "$metadata", "{\"$acl\":{\"$w\":\"anna\"}}");
    sl_faulty_slow_reads(disk, 1);
    {
        server_call *const mine = append_distrusted(&w, "mine");
        server_call *const theirs = append_distrusted(&w, "theirs");

        server_rig_run_until_ended(&w.rig, mine);
        server_rig_run_until_ended(&w.rig, theirs);
        EXPECT_CALL_STATUS(mine, SL_STATUS_OK);
        EXPECT_CALL_STATUS(theirs, SL_STATUS_PERMISSION_DENIED);
    }
    writes_done(&w);
    sl_store_close(store);
    sl_faulty_free(disk);
}

/* --- time --- */

TEST(an_append_that_is_not_durable_in_time_is_told_so_and_written_all_the_same)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = writes_append_sent(&w, "s", WRITES_ANY, 1, 1);
    writes_deliver(&w);
    EXPECT_EQ(sl_door_inside(w.rig.host->door), 1);
    sl_clock_manual_advance(&w.rig.time, w.rig.settings.write_timeout_ns - 1);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    EXPECT(sl_request_open(writes_request(&w)));
    sl_clock_manual_advance(&w.rig.time, 1);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    EXPECT(!sl_request_open(writes_request(&w)));
    server_rig_run_until_ended(&w.rig, call);
    expect_ended(call, SL_STATUS_ABORTED, "Operation timed out: ");
    EXPECT_EQ(call->message_count, 0);
    EXPECT_STR(writes_stored(&w, "s"), "0:t1");
    writes_done(&w);
}

TEST(a_client_that_goes_away_does_not_take_its_append_along)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = writes_append_sent(&w, "s", WRITES_ANY, 1, 1);
    writes_deliver(&w);
    server_call_cancel(call);
    writes_deliver(&w);
    server_rig_run(&w.rig);
    EXPECT_STR(writes_stored(&w, "s"), "0:t1");
    call = writes_append_sent(&w, "s", WRITES_ANY, 2, 1);
    writes_deliver(&w);
    server_rig_break(call->peer);
    server_rig_run(&w.rig);
    EXPECT_STR(writes_stored(&w, "s"), "0:t1 1:t2");
    EXPECT_EQ(w.rig.host->counters.calls_now, 0);
    writes_done(&w);
}

/* --- a store that has enough to do --- */

/* Large appends, delivered and not turned, until the store takes no more. */
static server_call *fill_store(writes *w, uint64_t number)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_APPEND_PATH);
    sl_wire_proposed event = writes_event(w, number);

    event.data = writes_text(w, LARGE_BYTES, 'L');
    server_call_send(call, writes_append_options(w, SL_STR("large"), WRITES_ANY));
    server_call_send(call, writes_append_event(w, &event));
    while (sl_call_output_bytes(call->call) > 0) { /* the window opens only when bytes go both ways */
        static uint8_t piece[64 * 1024];
        size_t bytes;

        writes_deliver(w);
        while ((bytes = sl_connection_output(call->peer->link->connection, w->rig.time.mono_ns, piece,
                                             sizeof piece)) > 0)
            sl_connection_receive(call->peer->client, w->rig.time.mono_ns, piece, bytes);
    }
    server_call_half_close(call);
    writes_deliver(w);
    return call;
}

TEST(an_append_waits_in_line_while_the_store_is_full)
{
    server_call *calls[6];
    writes w;

    writes_start(&w);
    for (uint64_t i = 0; i < 5; i++)
        calls[i] = fill_store(&w, i + 1);
    EXPECT_EQ(sl_door_inside(w.rig.host->door), 4); /* the fifth is at the door */
    calls[5] = writes_append_sent(&w, "large", WRITES_ANY, 6, 1);
    writes_deliver(&w);
    EXPECT_EQ(sl_door_inside(w.rig.host->door), 4); /* small enough, but it may not overtake */
    for (size_t i = 0; i < 6; i++) {
        server_rig_run_until_ended(&w.rig, calls[i]);
        EXPECT_EQ(writes_append_answer(calls[i]).current.number, i);
    }
    EXPECT_STR(writes_stored(&w, "large"), "0:t1 1:t2 2:t3 3:t4 4:t5 5:t6");
    writes_done(&w);
}

TEST(an_append_that_is_late_at_the_door_is_never_written)
{
    server_call *waiting;
    writes w;

    writes_start(&w);
    for (uint64_t i = 0; i < 4; i++)
        fill_store(&w, i + 1);
    waiting = fill_store(&w, 5);
    sl_clock_manual_advance(&w.rig.time, w.rig.settings.write_timeout_ns);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    server_rig_run_until_ended(&w.rig, waiting);
    expect_ended(waiting, SL_STATUS_ABORTED, "Operation timed out: ");
    EXPECT_STR(writes_stored(&w, "large"), "0:t1 1:t2 2:t3 3:t4");
    writes_done(&w);
}

TEST(an_append_at_the_door_ends_with_its_client)
{
    server_call *waiting;
    writes w;

    writes_start(&w);
    for (uint64_t i = 0; i < 4; i++)
        fill_store(&w, i + 1);
    waiting = fill_store(&w, 5);
    server_call_cancel(waiting);
    server_rig_run(&w.rig);
    EXPECT_STR(writes_stored(&w, "large"), "0:t1 1:t2 2:t3 3:t4");
    writes_done(&w);
}

/* What all calls together gather is bounded, and small appends do not suffer from it. */
TEST(too_much_that_is_gathered_by_all_is_refused_and_small_appends_are_not)
{
    writes w;
    sl_wire_proposed large;
    uint64_t before;

    writes_start(&w);
    large = writes_event(&w, 1);
    large.data = writes_text(&w, 2 * SL_GATHER_SMALL_BYTES, 'x');
    w.rig.host->gathered_bytes = before =
        SL_GATHERED_BYTES_MAX - SL_GATHER_RESERVE_BYTES - SL_GATHER_SMALL_BYTES / 2;
    expect_ended(append_one(&w, "s", &large), SL_STATUS_RESOURCE_EXHAUSTED, "Try again");
    EXPECT_EQ(w.rig.host->gathered_bytes, before);
    EXPECT_CALL_STATUS(writes_append(&w, "s", WRITES_ANY, 2, 3), SL_STATUS_OK);
    EXPECT_EQ(w.rig.host->gathered_bytes, before);
    w.rig.host->gathered_bytes = 0;
    EXPECT_CALL_STATUS(append_one(&w, "s", &large), SL_STATUS_OK);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    writes_done(&w);
}

/* Thousands of calls that begin a small append and never end it. */
TEST(small_appends_that_are_not_complete_are_counted_too)
{
    sl_gather_claim claims[3] = { 0 };
    sl_wire_proposed event;
    writes w;
    uint64_t before;

    writes_start(&w);
    w.rig.host->gathered_bytes = before = SL_GATHERED_BYTES_MAX - 2 * SL_GATHER_SMALL_BYTES;
    for (int i = 0; i < 3; i++) {
        claims[i].host = w.rig.host;
        EXPECT_EQ(sl_gather_claim_add(&claims[i], SL_GATHER_SMALL_BYTES), i < 2 ? SL_OK : SL_ERR_FULL);
    }
    event = writes_event(&w, 1);
    expect_ended(append_one(&w, "s", &event), SL_STATUS_RESOURCE_EXHAUSTED, "Try again");
    for (int i = 0; i < 3; i++)
        sl_gather_claim_end(&claims[i]);
    EXPECT_EQ(w.rig.host->gathered_bytes, before);
    EXPECT_CALL_STATUS(writes_append(&w, "s", WRITES_ANY, 2, 3), SL_STATUS_OK);
    writes_done(&w);
}

/* Who sends a little now and then would hold what all calls share for as long as it likes. */
TEST(an_append_that_does_not_end_in_time_is_given_up_and_gives_back_its_room)
{
    sl_wire_proposed event;
    server_call *call;
    writes w;

    writes_start(&w);
    event = writes_event(&w, 1);
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(call, writes_append_options(&w, SL_STR("s"), WRITES_ANY));
    server_call_send(call, writes_append_event(&w, &event));
    server_rig_run(&w.rig);
    server_rig_advance(&w.rig, SL_WRITE_GATHER_NS - 1);
    server_call_send(call, writes_append_event(&w, &event));
    server_rig_run(&w.rig);
    EXPECT(!call->ended && w.rig.host->gathered_bytes > 0);
    server_rig_advance(&w.rig, 1);
    server_rig_run_until_ended(&w.rig, call);
    expect_ended(call, SL_STATUS_DEADLINE_EXCEEDED, "nothing of it was written");
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

/* --- the end of the server --- */

/* S3.13, S3.14: the door decides, at the moment of submission; what is inside is answered, what is not is refused and leaves nothing. */
TEST(an_append_that_got_in_before_the_door_was_shut_is_answered_and_a_later_one_is_refused)
{
    writes w;
    server_call *inside, *late;

    writes_start(&w);
    late = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(late, writes_append_options(&w, SL_STR("late"), WRITES_ANY));
    inside = writes_append_sent(&w, "inside", WRITES_ANY, 1, 1);
    writes_deliver(&w);
    sl_door_shut(w.rig.host->door, "SIGTERM");
    server_call_half_close(late);
    server_rig_run_until_ended(&w.rig, inside);
    server_rig_run_until_ended(&w.rig, late);
    EXPECT_EQ(writes_append_answer(inside).current.number, 0);
    EXPECT_CALL_STATUS(late, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(late->message, "The server is shutting down: SIGTERM");
    EXPECT_STR(writes_stored(&w, "inside"), "0:t1");
    EXPECT_STR(writes_stored(&w, "late"), "");
    EXPECT_EQ(w.rig.host->counters.batches_refused, 1);
    writes_done(&w);
}

/* S3.15: also one that waited at the door is refused when the door is shut, whichever way it comes in. */
TEST(an_append_at_the_door_is_refused_when_the_door_is_shut)
{
    writes w;
    server_call *waiting;

    writes_start(&w);
    for (uint64_t i = 0; i < 4; i++)
        fill_store(&w, i + 1);
    waiting = fill_store(&w, 5);
    sl_door_shut(w.rig.host->door, "SIGTERM");
    server_rig_run_until_ended(&w.rig, waiting);
    expect_ended(waiting, SL_STATUS_UNAVAILABLE, "SIGTERM");
    EXPECT_STR(writes_stored(&w, "large"), "0:t1 1:t2 2:t3 3:t4");
    writes_done(&w);
}

TEST(a_stopping_server_ends_appends_that_are_not_complete_and_finishes_those_that_are)
{
    writes w;
    server_call *complete, *incomplete;

    writes_start(&w);
    incomplete = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(incomplete, writes_append_options(&w, SL_STR("s"), WRITES_ANY));
    complete = writes_append_sent(&w, "s", WRITES_ANY, 1, 1);
    writes_deliver(&w);
    sl_host_stop(w.rig.host, "SIGINT");
    server_rig_run_until_ended(&w.rig, complete);
    server_rig_run_until_ended(&w.rig, incomplete);
    EXPECT_EQ(writes_append_answer(complete).current.number, 0);
    expect_ended(incomplete, SL_STATUS_UNAVAILABLE, "SIGINT");
    writes_done(&w);
}

/* --- memory --- */

/* Whichever allocation fails: the call ends with a status, nothing leaks, and what was answered is there. */
TEST(an_append_without_memory_ends_with_a_status)
{
    for (size_t fail_at = 1; fail_at <= 40; fail_at++) {
        test_alloc counting = { 0 };
        sl_alloc alloc = test_alloc_use(&counting);
        server_call *call;
        writes w;

        writes_init(&w);
        w.rig.alloc = &alloc;
        server_rig_start(&w.rig);
        call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
        server_rig_run(&w.rig);
        counting.fail_at = counting.call_count + fail_at;
        server_call_send(call, writes_append_options(&w, SL_STR("s"), WRITES_ANY));
        for (uint64_t i = 0; i < 20 && call->call != NULL; i++) {
            const sl_wire_proposed event = writes_event(&w, i);
            server_call_send(call, writes_append_event(&w, &event));
        }
        server_call_half_close(call);
        server_rig_run(&w.rig);
        server_rig_advance(&w.rig, 60 * WRITES_SECOND_NS); /* a connection that had to be ended lingers */
        EXPECT_ROW(call->ended, fail_at);
        EXPECT_ROW(call->status != SL_STATUS_OK || strlen(writes_stored(&w, "s")) > 50, fail_at);
        writes_done(&w);
        EXPECT_ROW(counting.block_count == 0, fail_at);
    }
}

/* tests/unit/server/test_batch_append_flow.c — BatchAppend under pressure: deadlines, a full store, clients that do not read or go away,
 * a server that stops. */
#include "../base/support.h"
#include "writes.h"

#include "server/door.h"
#include "server/streams/batch_call.h"
#include "store/faulty/faulty.h"

enum {
    LARGE_BYTES = 16 * 1000 * 1000
};

static server_call *open_call(writes *w)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_BATCH_PATH);

    server_rig_run(&w->rig); /* so that the server knows it */
    return call;
}

static sl_batch_call *server_side(const writes *w)
{
    return writes_request(w)->state;
}

static bool is_success(const server_call *call, size_t index)
{
    return writes_batch_answer(call, index).kind == SL_BATCH_APPEND_RESPONSE_SUCCESS;
}

static void expect_timeout(const server_call *call, size_t index)
{
    writes_expect_error(call, index, 4, "Timeout", "event_store.client.Timeout");
}

/* Everybody was answered once, and nobody else. */
static void expect_each_once(const server_call *call, uint64_t count)
{
    bool *const seen = calloc(count, 1);

    EXPECT_EQ(call->message_count, count);
    for (size_t i = 0; i < call->message_count; i++) {
        const sl_batch_append_response answer = writes_batch_answer(call, i);
        const uint64_t number = writes_batch_number(&answer);

        EXPECT_ROW(number < count && !seen[number], number);
        seen[number] = true;
    }
    free(seen);
}

/* --- time --- */

static void batch_until(writes *w, server_call *call, uint64_t correlation, sl_batch_deadline_kind kind,
                        uint64_t deadline_ns)
{
    const sl_batch_options options = { .stream = SL_STR("s"),
                                       .expected = WRITES_ANY,
                                       .deadline_kind = kind,
                                       .deadline = sl_wire_time_from_ns(deadline_ns) };

    writes_batch_draft(w, call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(correlation),
                                                 .options = &options,
                                                 .events = writes_events(w, 100 + correlation, 1),
                                                 .event_count = 1,
                                                 .is_final = true });
}

TEST(a_deadline_that_is_over_is_answered_at_once_and_nothing_is_written)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    batch_until(&w, call, 0, SL_BATCH_DEADLINE_AT, w.rig.time.wall_ns);
    batch_until(&w, call, 1, SL_BATCH_DEADLINE_AT, w.rig.time.wall_ns - WRITES_SECOND_NS);
    batch_until(&w, call, 2, SL_BATCH_DEADLINE_AFTER, 0);
    batch_until(&w, call, 3, SL_BATCH_DEADLINE_AT, w.rig.time.wall_ns + 1);
    server_rig_run(&w.rig);
    expect_each_once(call, 4);
    for (size_t i = 0; i < 3; i++)
        expect_timeout(call, i);
    EXPECT(is_success(call, 3));
    EXPECT_STR(writes_stored(&w, "s"), "0:t103");
    writes_done(&w);
}

/* The deadline of each is its own, or the server's if that is earlier; what is told late is written all the same, and what the store
 * says about it later is told to nobody. */
TEST(an_append_is_told_that_it_is_late_when_its_time_is_over_and_only_then)
{
    writes w;
    server_call *call;
    sl_batch_append_response first;

    writes_start(&w);
    call = open_call(&w);
    batch_until(&w, call, 0, SL_BATCH_DEADLINE_NONE, 0);
    batch_until(&w, call, 1, SL_BATCH_DEADLINE_AFTER, WRITES_SECOND_NS);
    batch_until(&w, call, 2, SL_BATCH_DEADLINE_AT, w.rig.time.wall_ns + WRITES_SECOND_NS + 1);
    batch_until(&w, call, 3, SL_BATCH_DEADLINE_AFTER, 1000 * WRITES_SECOND_NS); /* two seconds are the most */
    writes_deliver(&w);
    EXPECT_EQ(server_side(&w)->inside_count, 4);
    EXPECT_EQ(sl_host_due_ns(w.rig.host), w.rig.time.mono_ns + WRITES_SECOND_NS);
    sl_clock_manual_advance(&w.rig.time, WRITES_SECOND_NS);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    EXPECT_EQ(sl_host_due_ns(w.rig.host), w.rig.time.mono_ns + 1);
    sl_clock_manual_advance(&w.rig.time, WRITES_SECOND_NS);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    server_rig_run(&w.rig);
    expect_each_once(call, 4);
    for (size_t i = 0; i < 4; i++)
        expect_timeout(call, i);
    first = writes_batch_answer(call, 0);
    EXPECT_EQ(writes_batch_number(&first), 1);
    EXPECT_STR(writes_stored(&w, "s"), "0:t100 1:t101 2:t102 3:t103");
    batch_until(&w, call, 4, SL_BATCH_DEADLINE_NONE, 0);
    server_rig_run(&w.rig);
    expect_each_once(call, 5);
    EXPECT(is_success(call, 4));
    writes_done(&w);
}

TEST(an_append_in_parts_that_does_not_end_in_time_is_told_so)
{
    writes w;
    server_call *call;
    const sl_batch_options options = { .stream = SL_STR("s"), .expected = WRITES_ANY };
    sl_batch_append_draft draft;

    writes_start(&w);
    call = open_call(&w);
    draft = (sl_batch_append_draft){ .correlation = writes_correlation(0),
                                     .options = &options,
                                     .events = writes_events(&w, 1, 1),
                                     .event_count = 1 };
    writes_batch_draft(&w, call, &draft);
    server_rig_run(&w.rig);
    server_rig_advance(&w.rig, w.rig.settings.write_timeout_ns - 1);
    EXPECT_EQ(call->message_count, 0);
    server_rig_advance(&w.rig, 1);
    expect_each_once(call, 1);
    expect_timeout(call, 0);
    draft.options = NULL;
    draft.is_final = true;
    writes_batch_draft(&w, call, &draft);
    server_rig_run(&w.rig);
    expect_each_once(call, 1);
    EXPECT_STR(writes_stored(&w, "s"), "");
    EXPECT_EQ(server_side(&w)->open_count, 0);
    writes_done(&w);
}

/* After the half-close nobody waits for it any more. */
TEST(an_append_that_can_never_be_finished_is_not_told_that_it_is_late)
{
    writes w;
    server_call *call;
    const sl_batch_options options = { .stream = SL_STR("s"), .expected = WRITES_ANY };

    writes_start(&w);
    call = open_call(&w);
    writes_batch(&w, call, 0, "s", WRITES_ANY, 1, 1);
    writes_batch_draft(&w, call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(1), .options = &options });
    server_call_half_close(call);
    writes_deliver(&w);
    sl_clock_manual_advance(&w.rig.time, 3 * WRITES_SECOND_NS);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    expect_each_once(call, 1);
    writes_done(&w);
}

/* --- clients that go away or do not read --- */

TEST(what_got_in_is_written_although_the_client_is_gone)
{
    writes w;
    server_call *call;

    writes_start(&w);
    for (unsigned way = 0; way < 2; way++) {
        call = open_call(&w);
        for (uint64_t i = 0; i < 100; i++)
            writes_batch(&w, call, i, way == 0 ? "a" : "b", WRITES_ANY, i, 1);
        writes_deliver(&w);
        EXPECT_EQ(sl_door_inside(w.rig.host->door), 100);
        if (way == 0)
            server_call_cancel(call);
        else
            server_rig_break(call->peer);
        writes_deliver(&w);
        EXPECT_EQ(w.rig.host->counters.calls_now, 0);
        server_rig_run(&w.rig);
    }
    EXPECT_EQ(w.rig.host->counters.events_appended, 200);
    EXPECT(sl_list_empty(&w.rig.host->requests));
    writes_done(&w);
}

/* Bounded memory: with the client's window shut, the server takes what it may owe and no more, and goes on when there is room. */
TEST(a_client_that_does_not_read_is_not_listened_to_until_it_does)
{
    enum {
        COUNT = 9500
    };
    writes w;
    server_call *call;
    sl_batch_call *side;

    writes_start(&w);
    call = open_call(&w);
    side = server_side(&w);
    call->peer->stuck = true;
    for (uint64_t i = 0; i < COUNT; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 0);
    EXPECT(side->paused && side->unsent_count > 0);
    EXPECT(side->inside_count + side->unsent_count <= SL_BATCH_PENDING_MAX);
    EXPECT(w.rig.host->counters.batches_accepted < COUNT);
    call->peer->stuck = false;
    call->peer->touched = true;
    server_rig_run(&w.rig);
    expect_each_once(call, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        EXPECT_ROW(is_success(call, i), i);
    EXPECT(!side->paused && side->unsent_count == 0 && side->inside_count == 0);
    EXPECT(side->spare_count <= SL_BATCH_SPARES_MAX);
    writes_done(&w);
}

/* So many may be inside of the store, whatever the client sends in one go. */
TEST(a_call_has_so_many_appends_inside_and_not_more)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < SL_BATCH_PENDING_MAX + 500; i++) {
        if (sl_call_room(call->call) == 0)
            writes_deliver(&w);
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    }
    writes_deliver(&w);
    EXPECT_EQ(sl_door_inside(w.rig.host->door), SL_BATCH_PENDING_MAX);
    EXPECT(server_side(&w)->paused);
    server_rig_run(&w.rig);
    expect_each_once(call, SL_BATCH_PENDING_MAX + 500);
    writes_done(&w);
}

/* S3.13: a client that reads slowly still gets every answer before it hears that the server stops. */
TEST(answers_that_wait_for_room_go_out_before_the_status)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    call->peer->stuck = true;
    for (uint64_t i = 0; i < 8000; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_rig_run(&w.rig);
    EXPECT(server_side(&w)->unsent_count > 0 && server_side(&w)->inside_count == 0);
    sl_host_stop(w.rig.host, "SIGTERM");
    call->peer->stuck = false;
    call->peer->touched = true;
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT_EQ(call->message_count, w.rig.host->counters.batches_done);
    writes_done(&w);
}

/* Errors are answers too: who sends only nonsense and does not read is not answered without bound. */
TEST(refusals_wait_for_room_like_any_answer)
{
    enum {
        COUNT = 5000
    };
    writes w;
    server_call *call;
    sl_batch_call *side;

    writes_start(&w);
    call = open_call(&w);
    side = server_side(&w);
    call->peer->stuck = true;
    for (uint64_t i = 0; i < COUNT; i++)
        writes_batch(&w, call, i, "", WRITES_ANY, 1, 0);
    server_rig_run(&w.rig);
    EXPECT(side->paused && side->unsent_count > 0 && side->unsent_count < 10);
    call->peer->stuck = false;
    call->peer->touched = true;
    server_rig_run(&w.rig);
    expect_each_once(call, COUNT);
    writes_done(&w);
}

TEST(a_client_that_goes_with_answers_unread_leaves_nothing_behind)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    call->peer->stuck = true;
    for (uint64_t i = 0; i < 8000; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_rig_run(&w.rig);
    EXPECT(server_side(&w)->unsent_count > 0);
    server_rig_break(call->peer);
    server_rig_run(&w.rig);
    EXPECT(sl_list_empty(&w.rig.host->requests));
    writes_done(&w);
}

/* Long names have memory of their own, and are answered and freed as the others. */
TEST(names_as_long_as_they_may_be_are_answered_whole)
{
    writes w;
    server_call *call;
    const char *name;

    writes_start(&w);
    call = open_call(&w);
    name = sl_arena_copy_str(&w.memory, writes_text(&w, 1022, 'n'));
    for (uint64_t i = 0; i < 50; i++)
        writes_batch(&w, call, i, name, WRITES_ANY, i, 1);
    server_rig_run(&w.rig);
    expect_each_once(call, 50);
    EXPECT(sl_str_equal(writes_batch_answer(call, 49).stream, sl_str_from(name)));
    writes_done(&w);
}

/* --- a full store --- */

/* The store is as full as it can be, with nothing durable: not even an empty append fits. */
static void fill_store(writes *w)
{
    static char data[LARGE_BYTES];
    size_t bytes = sizeof data;

    for (uint64_t number = 1; bytes > 0;) {
        const sl_event_in event = { .id = { { 1, (uint8_t)number } },
                                    .type = SL_STR("t"),
                                    .data = { data, bytes } };
        const sl_op op = { .kind = SL_OP_APPEND,
                           .append = { .stream = SL_STR("large"), .events = &event, .event_count = 1 } };

        if (writes_submit(w, &op))
            number++;
        else
            bytes /= 2;
    }
}

TEST(appends_wait_for_room_in_the_store_and_keep_their_order)
{
    writes w;
    server_call *call, *other;

    writes_start(&w);
    call = open_call(&w);
    other = open_call(&w);
    fill_store(&w);
    for (uint64_t i = 0; i < 500; i++) {
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
        writes_batch(&w, other, i, "t", WRITES_ANY, i, 1);
    }
    writes_deliver(&w);
    EXPECT(server_side(&w)->parked == SL_BATCH_PARKED_MESSAGE && server_side(&w)->paused);
    server_rig_run(&w.rig);
    expect_each_once(call, 500);
    expect_each_once(other, 500);
    for (uint64_t i = 0; i < 500; i++) {
        const sl_batch_append_response answer = writes_batch_answer(call, i);

        EXPECT_EQ(writes_batch_number(&answer), i);
        EXPECT_EQ(answer.current.number, i);
    }
    EXPECT(server_side(&w)->message == NULL);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    writes_done(&w);
}

/* Each time that there is room, everybody gets one append in. */
TEST(a_call_with_a_long_backlog_takes_turns_with_those_who_wait)
{
    writes w;
    server_call *greedy, *modest, *unary;

    writes_start(&w);
    greedy = open_call(&w);
    modest = open_call(&w);
    fill_store(&w);
    for (uint64_t i = 0; i < 50; i++)
        writes_batch(&w, greedy, i, "g", WRITES_ANY, 100 + i, 1);
    writes_batch(&w, modest, 0, "m", WRITES_ANY, 200, 1);
    writes_batch(&w, modest, 1, "m", WRITES_ANY, 201, 1);
    unary = writes_append_sent(&w, "u", WRITES_ANY, 300, 1);
    writes_deliver(&w);
    server_rig_run(&w.rig);
    expect_each_once(greedy, 50);
    expect_each_once(modest, 2);
    EXPECT_CALL_STATUS(unary, SL_STATUS_OK);
    EXPECT(strstr(writes_stored_all(&w), " t100@g t200@m t300@u t101@g t201@m t102@g t103@g ") != NULL);
    writes_done(&w);
}

static void send_parts(writes *w, server_call *call, uint64_t correlation)
{
    const sl_batch_options options = { .stream = SL_STR("s"), .expected = WRITES_ANY };
    sl_batch_append_draft draft = { .correlation = writes_correlation(correlation),
                                    .options = &options,
                                    .events = writes_events(w, 10 * correlation, 2),
                                    .event_count = 2 };

    writes_batch_draft(w, call, &draft);
    draft.options = NULL;
    draft.events = writes_events(w, 10 * correlation + 2, 2);
    draft.is_final = true;
    writes_batch_draft(w, call, &draft);
}

TEST(an_append_in_parts_waits_for_room_in_the_store_too)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    fill_store(&w);
    send_parts(&w, call, 0);
    send_parts(&w, call, 1);
    writes_deliver(&w);
    EXPECT_EQ(server_side(&w)->parked, SL_BATCH_PARKED_OPEN);
    server_rig_run(&w.rig);
    expect_each_once(call, 2);
    EXPECT(is_success(call, 0) && is_success(call, 1));
    EXPECT_STR(writes_stored(&w, "s"), "0:t0 1:t1 2:t2 3:t3 4:t10 5:t11 6:t12 7:t13");
    writes_done(&w);
}

TEST(an_append_that_is_late_before_the_store_takes_it_is_not_written)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    fill_store(&w);
    writes_batch(&w, call, 0, "s", WRITES_ANY, 1, 1);
    send_parts(&w, call, 1);
    writes_deliver(&w);
    for (unsigned i = 0; i < 2; i++) { /* the second one is parked when the first is gone */
        sl_clock_manual_advance(&w.rig.time, w.rig.settings.write_timeout_ns);
        sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    }
    server_rig_run(&w.rig);
    expect_each_once(call, 2);
    expect_timeout(call, 0);
    expect_timeout(call, 1);
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_batch(&w, call, 2, "s", WRITES_ANY, 2, 1);
    server_rig_run(&w.rig);
    expect_each_once(call, 3);
    EXPECT(is_success(call, 2));
    writes_done(&w);
}

TEST(a_client_that_goes_while_its_append_waits_at_the_door_takes_it_along)
{
    writes w;
    server_call *call;

    writes_start(&w);
    for (unsigned parts = 0; parts < 2; parts++) {
        call = open_call(&w);
        fill_store(&w);
        if (parts == 0)
            writes_batch(&w, call, 0, "s", WRITES_ANY, 1, 1);
        else
            send_parts(&w, call, 0);
        writes_deliver(&w);
        server_call_cancel(call);
        writes_deliver(&w);
        server_rig_run(&w.rig);
    }
    EXPECT_STR(writes_stored(&w, "s"), "");
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    writes_done(&w);
}

/* --- rights --- */

TEST(who_may_not_write_is_told_in_the_answer_and_the_call_goes_on)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    writes_distrust(&w);
    writes_batch(&w, call, 0, "$system", WRITES_ANY, 1, 1);
    writes_batch(&w, call, 1, "s", WRITES_ANY, 2, 1);
    server_rig_run(&w.rig);
    expect_each_once(call, 2);
    writes_expect_error(call, 0, 7, "AccessDenied", "event_store.client.AccessDenied");
    EXPECT(is_success(call, 1));
    EXPECT_STR(writes_stored(&w, "$system"), "");
    writes_done(&w);
}

/* The metadata comes from the disk: appends behind the one that waits do not overtake it. */
TEST(appends_wait_for_metadata_without_losing_their_order)
{
    sl_faulty *const disk = sl_faulty_new();
    char sentences[256];
    sl_text report;
    sl_store *store;
    server_call *call;
    writes w;

    sl_text_init(&report, sentences, sizeof sentences);
    EXPECT_OK(sl_store_open_faulty(&(sl_store_setup){ &sl_alloc_default, { 1, 2 } },
                                   &(sl_journal_options){ .folder = "f" }, disk, &report, &store));
    writes_init(&w);
    w.rig.store = store;
    server_rig_start(&w.rig);
    server_rig_append(&w.rig, "$$a", "$metadata", "{\"$acl\":{\"$w\":\"somebody\"}}");
    server_rig_append(&w.rig, "$$b", "$metadata", "{\"$acl\":{\"$w\":\"anna\"}}");
    sl_faulty_slow_reads(disk, 1);
    call = open_call(&w);
    writes_distrust(&w);
    writes_batch(&w, call, 0, "a", WRITES_ANY, 1, 1);
    writes_batch(&w, call, 1, "b", WRITES_ANY, 2, 1);
    writes_batch(&w, call, 2, "c", WRITES_ANY, 3, 1);
    writes_batch(&w, call, 3, "a", WRITES_ANY, 4, 1);
    server_call_half_close(call);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    expect_each_once(call, 4);
    sl_faulty_slow_reads(disk, 0);
    EXPECT_STR(writes_stored_all(&w), "$metadata@$$a $metadata@$$b t1@a t3@c t4@a");
    writes_done(&w);
    sl_store_close(store);
    sl_faulty_free(disk);
}

/* --- the end of the server --- */

/* S3.13, S3.14: what is inside when the server stops is answered; what comes later is not taken, leaves nothing, and hears why. */
TEST(a_stopping_server_answers_what_it_took_and_then_ends_the_call)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < 10; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    writes_deliver(&w);
    sl_host_stop(w.rig.host, "SIGTERM");
    for (uint64_t i = 10; i < 20; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(call->message, "The server is shutting down: SIGTERM");
    expect_each_once(call, 10);
    EXPECT_STR(writes_stored(&w, "s"), "0:t0 1:t1 2:t2 3:t3 4:t4 5:t5 6:t6 7:t7 8:t8 9:t9");
    writes_done(&w);
}

/* S3.15: the door is the one place that decides, also for what came in before it was shut and waits for room. */
TEST(when_the_door_is_shut_in_the_middle_everything_accepted_is_answered_and_the_rest_refused)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < 5; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    writes_deliver(&w);
    fill_store(&w);
    for (uint64_t i = 5; i < 10; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    writes_deliver(&w);
    EXPECT_EQ(server_side(&w)->parked, SL_BATCH_PARKED_MESSAGE);
    sl_door_shut(w.rig.host->door, "SIGTERM");
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    expect_each_once(call, 5);
    EXPECT_STR(writes_stored(&w, "s"), "0:t0 1:t1 2:t2 3:t3 4:t4");
    writes_done(&w);
}

/* --- errors of the store --- */

TEST(a_store_that_fails_is_told_in_each_answer)
{
    sl_faulty *const disk = sl_faulty_new();
    char sentences[256];
    sl_text report;
    sl_store *store;
    server_call *call;
    writes w;

    sl_text_init(&report, sentences, sizeof sentences);
    EXPECT_OK(sl_store_open_faulty(&(sl_store_setup){ &sl_alloc_default, { 1, 2 } },
                                   &(sl_journal_options){ .folder = "f" }, disk, &report, &store));
    writes_init(&w);
    w.rig.store = store;
    server_rig_start(&w.rig);
    sl_faulty_power_cut(disk,
                        1); /* each call of it fails, also those of threads that nobody here waits for */
    call = open_call(&w);
    writes_batch(&w, call, 0, "s", WRITES_ANY, 1, 1);
    server_rig_run_until_messages(&w.rig, call, 1);
    writes_expect_error(
        call, 0, SL_STATUS_UNAVAILABLE,
        "The storage of the server has failed and it accepts nothing more. What was sent may or may "
        "not have been written; the server has to be restarted.",
        "event_store.client.Unknown");
    EXPECT(!call->ended);
    writes_done(&w);
    sl_store_close(store);
    sl_faulty_free(disk);
}

TEST(a_full_disk_is_told_with_its_status_and_sentence)
{
    const sl_batch_name name = { SL_STR("\x0a\x02\x10\x07"), SL_STR("s") };
    const sl_batch_outcome outcome = { .kind = SL_BATCH_REFUSED,
                                       .refusal = { .kind = SL_REFUSAL_ERROR, .err = SL_ERR_NO_SPACE } };
    server_call *call;
    writes w;

    writes_start(&w);
    call = open_call(&w);
    EXPECT_OK(sl_batch_answer(writes_request(&w), &server_side(&w)->scratch, &name, &outcome));
    server_rig_run(&w.rig);
    writes_expect_error(
        call, 0, SL_STATUS_RESOURCE_EXHAUSTED,
        "The disk of the server is full: nothing was written. Reading goes on; free some space and "
        "try again.",
        "event_store.client.Unknown");
    writes_done(&w);
}

/* --- memory --- */

/* Whichever allocation fails: no append is answered twice, and one that is answered well is there. */
TEST(a_batch_append_without_memory_answers_or_ends)
{
    for (size_t fail_at = 1; fail_at <= 60; fail_at++) {
        test_alloc counting = { 0 };
        sl_alloc alloc = test_alloc_use(&counting);
        server_call *call;
        size_t good = 0;
        writes w;

        writes_init(&w);
        w.rig.alloc = &alloc;
        server_rig_start(&w.rig);
        call = open_call(&w);
        counting.fail_at = counting.call_count + fail_at;
        for (uint64_t i = 0; i < 4; i++)
            writes_batch(&w, call, i, "s", WRITES_ANY, 1000 + 20 * i, 20);
        send_parts(&w, call, 4);
        writes_batch(&w, call, 5, "", WRITES_ANY, 1, 0);
        server_call_half_close(call);
        server_rig_run(&w.rig);
        server_rig_advance(&w.rig, 60 * WRITES_SECOND_NS); /* a connection that had to be ended lingers */
        EXPECT_ROW(call->ended && call->message_count <= 6, fail_at);
        for (size_t i = 0; i < call->message_count; i++)
            good += is_success(call, i);
        EXPECT_ROW(call->status != SL_STATUS_OK || call->message_count == 6, fail_at);
        EXPECT_ROW(w.rig.host->counters.batches_done >= good, fail_at);
        writes_done(&w);
        EXPECT_ROW(counting.block_count == 0, fail_at);
    }
}

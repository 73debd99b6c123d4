/* tests/unit/server/test_read_flow.c — how reads share the server: slow clients, slow disks, busy writers, clients that leave,
 * a server that stops, rights. */
#include "read_rig.h"

#include "server/access.h"
#include "store/faulty/faulty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENT_BYTES = 1000,
    /* What a call may have waiting in the server (wire/limits.c), and one event beyond. */
    WAITING_BYTES_MAX = 256 * 1024 + 2 * EVENT_BYTES,
};

static void append_many(server_rig *rig, const char *stream, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        reads_append_bytes(rig, stream, EVENT_BYTES);
}

/* A call whose client takes nothing: it has got what its windows allow, and the server waits. */
static server_call *begin_slowly(server_rig *rig, const sl_read_request *request)
{
    server_call *const call = reads_call(rig, request);

    call->slow = true;
    server_rig_run(rig);
    EXPECT(!call->ended);
    return call;
}

static void expect_revisions(const server_call *call, uint64_t first, uint64_t count)
{
    EXPECT_EQ(call->message_count, count);
    for (size_t i = 0; i < count; i++)
        EXPECT_EQ(reads_message(call, i).event.event.revision, first + i);
}

/* --- what was there when the read began --- */

TEST(a_read_ends_with_what_was_there_when_it_began)
{
    const sl_read_request requests[] = { reads_of_stream("s"), reads_of_all() };

    for (size_t i = 0; i < 2; i++) {
        server_call *call;
        server_rig rig;

        reads_start(&rig, NULL);
        append_many(&rig, "s", 2000); /* more than the windows and the server hold */
        call = begin_slowly(&rig, &requests[i]);
        append_many(&rig, "s", 50);
        server_call_read_on(call);
        server_rig_run_until_ended(&rig, call);
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        expect_revisions(call, 0, 2000);
        server_rig_done(&rig);
    }
}

TEST(a_read_of_a_stream_that_is_tombstoned_meanwhile_says_so)
{
    const sl_read_request request = reads_of_stream("s");
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 2000);
    call = begin_slowly(&rig, &request);
    reads_tombstone(&rig, "s");
    server_call_read_on(call);
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT_STR(server_call_trailer(call, "exception"), "stream-deleted");
    for (size_t i = 0; i < call->message_count; i++) /* and shows no tombstone */
        EXPECT_EQ(reads_message(call, i).event.event.revision, i);
    server_rig_done(&rig);
}

TEST(a_read_of_a_stream_that_is_deleted_meanwhile_ends_with_what_it_had)
{
    const sl_read_request request = reads_of_stream("s");
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 2000);
    call = begin_slowly(&rig, &request);
    reads_delete(&rig, "s");
    server_call_read_on(call);
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT(call->message_count < 2000);
    server_rig_done(&rig);
}

/* Not durable: nobody has been told that it is there. */
TEST(an_event_that_is_not_durable_yet_is_not_read)
{
    const sl_read_request request = reads_of_stream("s");
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 2);
    (void)reads_do(&rig, request); /* the connection is up */
    reads_submit(&rig, "s");
    call = reads_call(&rig, &request);
    server_rig_run_until_ended(&rig, call);
    EXPECT_SAID(call, "s:0 s:1 OK");
    EXPECT_SAID(reads_do(&rig, request), "s:0 s:1 s:2 OK");
    server_rig_done(&rig);
}

/* --- slow clients --- */

TEST(a_slow_client_costs_bounded_memory_and_nobody_else_waits)
{
    const sl_read_request request = reads_of_all();
    server_call *slow;
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 5000);
    slow = begin_slowly(&rig, &request);
    EXPECT(reads_waiting_bytes(slow) > 0);
    EXPECT(reads_waiting_bytes(slow) <= WAITING_BYTES_MAX);
    for (unsigned i = 0; i < 3; i++) { /* on the same connection */
        const server_call *const other = reads_do(&rig, reads_count(reads_of_stream("s"), 100));

        EXPECT_CALL_STATUS(other, SL_STATUS_OK);
        expect_revisions(other, 0, 100);
        EXPECT(reads_waiting_bytes(slow) <= WAITING_BYTES_MAX);
    }
    server_call_read_on(slow);
    server_rig_run_until_ended(&rig, slow);
    expect_revisions(slow, 0, 5000);
    server_rig_done(&rig);
}

TEST(a_connection_that_takes_nothing_costs_bounded_memory)
{
    const sl_read_request request = reads_of_all();
    const server_call *call;
    server_peer *peer;
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 1000);
    peer = server_rig_connect(&rig, "127.0.0.1:40001");
    call = reads_call_on(&rig, peer, &request);
    peer->stuck = true;
    server_rig_run(&rig);
    EXPECT(reads_waiting_bytes(call) > 0);
    EXPECT(reads_waiting_bytes(call) <= WAITING_BYTES_MAX);
    EXPECT_CALL_STATUS(reads_do(&rig, request), SL_STATUS_OK);
    peer->stuck = false;
    peer->touched = true;
    server_rig_run(&rig);
    expect_revisions(call, 0, 1000);
    server_rig_done(&rig);
}

static sl_read_request slow_request(unsigned number)
{
    sl_read_request request;

    switch (number % 5) {
    case 0: return reads_of_stream("s");
    case 1: return reads_of_all();
    case 2: return reads_subscription("s");
    case 3: return reads_backwards(reads_from_end(reads_of_all()));
    default: break;
    }
    request = reads_backwards(reads_from_end(reads_of_stream("s")));
    request.compatibility = 1;
    return request;
}

static void expect_all_of(const server_call *call, bool backwards, uint64_t count)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (response.kind == SL_READ_RESPONSE_EVENT) {
            EXPECT_EQ(response.event.event.revision, backwards ? count - 1 - seen : seen);
            seen++;
        }
    }
    EXPECT_EQ(seen, count);
}

/* Their pages are what costs: only a few keep one, the others read again, and everybody gets everything. */
static void expect_many_slow_clients(sl_store *store)
{
    enum {
        CLIENTS = SWEEP_STEP > 1 ? 80 : 200,
        EVENTS = 1500
    };
    server_call *calls[CLIENTS];
    server_rig rig;

    reads_start(&rig, store);
    reads_append_bytes(&rig, "s", 100 * 1024); /* one that is never kept */
    append_many(&rig, "s", EVENTS - 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        const sl_read_request request = slow_request(i);

        calls[i] = reads_call_on(
            &rig, i % 40 == 0 ? server_rig_connect(&rig, "127.0.0.1:40001") : calls[i - 1]->peer, &request);
        calls[i]->slow = true;
    }
    while (rig.host->counters.pages_held_now < 64)
        if (!server_rig_turn(&rig))
            server_rig_wait(&rig);
    server_rig_run(&rig);
    EXPECT_EQ(rig.host->counters.pages_held_now, 64);
    for (unsigned i = 0; i < CLIENTS; i++)
        server_call_read_on(calls[i]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (i % 5 != 2)
            server_rig_run_until_ended(&rig, calls[i]);
        else
            server_rig_run_until_messages(&rig, calls[i], EVENTS + 2);
        expect_all_of(calls[i], i % 5 >= 3, EVENTS);
    }
    EXPECT_EQ(rig.host->counters.pages_held_now, 0);
    server_rig_done(&rig);
}

TEST(many_slow_clients_hold_few_pages_and_miss_nothing)
{
    slow_store slow = slow_store_open();

    expect_many_slow_clients(NULL);
    expect_many_slow_clients(slow.store);
    slow_store_close(&slow);
}

/* So small that room is not what stops them. */
TEST(a_run_of_one_reader_is_bounded)
{
    const sl_read_request requests[] = { reads_of_stream("s"), reads_subscription("s") };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 6000);
    for (size_t i = 0; i < 2; i++) {
        const server_call *const call = reads_call(&rig, &requests[i]);
        size_t before = 0;

        while (call->message_count < 6000) {
            EXPECT(server_rig_turn(&rig));
            EXPECT(call->message_count <= before + 1024 + 2);
            before = call->message_count;
        }
    }
    server_rig_done(&rig);
}

/* What does not match takes time as well, and an expression takes more. */
TEST(looking_in_vain_is_bounded_too)
{
    static const unsigned turns_min[] = { 6, 46 };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 6000);
    for (size_t i = 0; i < 2; i++) {
        sl_read_request request = reads_filtered("x", 0, 1);
        const server_call *call;
        unsigned turns = 0;

        request.extent = SL_READ_EXTENT_COUNT;
        if (i == 1)
            request.filter.regex = SL_STR("x");
        call = reads_call(&rig, &request);
        for (; !call->ended; turns++)
            EXPECT(server_rig_turn(&rig));
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT(turns >= turns_min[i] && turns < turns_min[i] + 10);
    }
    server_rig_done(&rig);
}

/* --- clients that leave --- */

TEST(a_client_may_leave_in_the_middle)
{
    const sl_read_request request = reads_of_all();
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 2000);
    for (unsigned i = 0; i < 4; i++) {
        server_call *const call = begin_slowly(&rig, &request);

        EXPECT_EQ(rig.host->counters.pages_held_now, 1);
        if (i % 2 == 0)
            server_call_cancel(call);
        else
            server_rig_break(call->peer);
        server_rig_run(&rig);
        EXPECT_EQ(rig.host->counters.calls_now, 0);
        EXPECT_EQ(rig.host->counters.pages_held_now, 0);
    }
    server_rig_done(&rig); /* and nothing of it is left: the store can be closed */
}

TEST(a_client_may_leave_before_its_read_has_begun)
{
    const sl_read_request request = reads_subscription("s");
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 3);
    (void)reads_do(&rig, reads_of_stream("s"));
    call = reads_call(&rig, &request);
    server_call_cancel(call);
    server_rig_run(&rig);
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    server_rig_done(&rig);
}

/* --- slow disks --- */

static void fill_store(server_rig *rig)
{
    for (unsigned i = 0; i < 30; i++) {
        char stream[32];

        snprintf(stream, sizeof stream, "stream-%u", i % 7);
        reads_append(rig, stream, 20);
        reads_append_bytes(rig, stream, 20 * 1024);
    }
    reads_set_metadata(rig, "stream-1", "{\"$tb\":30}");
    reads_delete(rig, "stream-2");
    reads_tombstone(rig, "stream-3");
    reads_append(rig, "stream-2", 3);
}

static const char *stream_name(unsigned number)
{
    static char name[32];

    snprintf(name, sizeof name, "stream-%u", number);
    return name;
}

/* The same reads of two stores must say the same; one of them answers every read with "on its way" first. */
TEST(a_disk_that_lets_everybody_wait_changes_nothing_but_the_time)
{
    slow_store slow = slow_store_open();
    server_rig fast_rig, slow_rig;

    reads_start(&fast_rig, NULL);
    reads_start(&slow_rig, slow.store);
    fill_store(&fast_rig);
    fill_store(&slow_rig);
    for (unsigned i = 0; i < 24; i++) {
        const unsigned stream = i % 8;
        sl_read_request request = stream == 7 ? reads_of_all() : reads_of_stream(stream_name(stream));
        char *wanted;

        request.backwards = i >= 16;
        if (request.backwards)
            request = reads_from_end(request);
        else if (i >= 8)
            request = reads_count(stream == 7 ? request : reads_from(request, 5), 40);
        request.compatibility = 1;
        wanted = strdup(reads_said(reads_do(&fast_rig, request)));
        EXPECT_SAID(reads_do(&slow_rig, request), wanted);
        free(wanted);
    }
    server_rig_done(&fast_rig);
    server_rig_done(&slow_rig);
    slow_store_close(&slow);
}

TEST(a_client_may_leave_while_the_disk_is_asked)
{
    const sl_read_request request = reads_of_all();
    slow_store slow = slow_store_open();
    server_rig rig;

    reads_start(&rig, slow.store);
    fill_store(&rig);
    for (unsigned turns = 0; turns < 12; turns++) {
        server_call *const call = reads_call(&rig, &request);

        for (unsigned i = 0; i < turns; i++)
            (void)server_rig_turn(&rig);
        if (call->call != NULL)
            server_call_cancel(call);
        server_rig_run(&rig);
    }
    server_rig_done(&rig);
    slow_store_close(&slow);
}

/* A flipped bit in the middle of what is on disk. */
TEST(damaged_data_ends_the_call_with_data_loss_and_is_logged)
{
    slow_store slow = slow_store_open();
    const server_call *call;
    server_rig rig;

    reads_start(&rig, slow.store);
    for (unsigned i = 0; i < 30; i++)
        reads_append_bytes(&rig, "s", 20 * 1024); /* several segments */
    EXPECT(sl_faulty_flip(slow.disk, "0000000000000001.seg", 100 * 1024, 3));
    call = reads_do(&rig, reads_of_stream("s"));
    EXPECT_CALL_STATUS(call, SL_STATUS_DATA_LOSS);
    EXPECT(call->message_count > 0 && call->message_count < 30);
    EXPECT(server_rig_logged(&rig, "a read failed"));
    EXPECT(server_rig_logged(&rig, "0000000000000001.seg"));
    server_rig_done(&rig);
    slow_store_close(&slow);
}

/* --- the end of the server --- */

TEST(reads_and_subscriptions_end_when_the_server_stops)
{
    const sl_read_request read = reads_of_all(), follow = reads_subscription("s");
    server_call *slow, *live;
    size_t told;
    server_rig rig;

    reads_start(&rig, NULL);
    append_many(&rig, "s", 2000);
    live = reads_begin(&rig, follow);
    slow = begin_slowly(&rig, &read);
    told = live->message_count;
    EXPECT_EQ(told, 2000 + 2); /* confirmed, caught up */
    sl_host_stop(rig.host, "the server is being updated");
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    server_call_read_on(slow);
    server_rig_run(&rig);
    EXPECT_CALL_STATUS(live, SL_STATUS_UNAVAILABLE);
    EXPECT(strstr(live->message, "being updated") != NULL);
    EXPECT_EQ(live->message_count, told);
    EXPECT_CALL_STATUS(slow, SL_STATUS_UNAVAILABLE);
    EXPECT(slow->message_count > 0 && slow->message_count < 2000);
    for (size_t i = 0; i < slow->message_count; i++) /* what was sent has arrived, whole and in order */
        EXPECT_EQ(reads_message(slow, i).event.event.revision, i);
    server_rig_done(&rig);
}

/* --- rights --- */

TEST(who_may_not_read_a_stream_is_told_so)
{
    server_rig rig;
    const server_call *call;

    reads_start(&rig, NULL);
    reads_append(&rig, "open", 1);
    reads_append(&rig, "closed", 1);
    reads_set_metadata(&rig, "closed", "{\"$acl\":{\"$r\":\"ann\"}}");
    reads_as_user(&rig, "bob");
    EXPECT_SAID(reads_do(&rig, reads_of_stream("open")), "open:0 OK");
    call = reads_do(&rig, reads_of_stream("closed"));
    EXPECT_SAID(call, "PERMISSION_DENIED");
    EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
    EXPECT_SAID(reads_do(&rig, reads_of_all()), "PERMISSION_DENIED");
    EXPECT_SAID(reads_do(&rig, reads_subscription("closed")), "PERMISSION_DENIED");
    EXPECT_SAID(reads_do(&rig, reads_subscription_to_all()), "PERMISSION_DENIED");
    reads_as_user(&rig, "ann");
    EXPECT_SAID(reads_do(&rig, reads_of_stream("closed")), "closed:0 OK");
    server_rig_done(&rig);
}

TEST(rights_that_are_still_on_the_disk_are_waited_for)
{
    slow_store slow = slow_store_open();
    server_rig rig;

    reads_start(&rig, slow.store);
    reads_append(&rig, "closed", 1);
    reads_set_metadata(&rig, "closed", "{\"$acl\":{\"$r\":\"ann\"}}");
    reads_as_user(&rig, "bob");
    EXPECT_SAID(reads_do(&rig, reads_of_stream("closed")), "PERMISSION_DENIED");
    server_rig_done(&rig);

    reads_start(&rig, slow.store);
    reads_as_user(&rig, "ann");
    EXPECT_SAID(reads_do(&rig, reads_of_stream("closed")), "closed:0 OK");
    server_rig_done(&rig);
    slow_store_close(&slow);
}

/* --- memory --- */

typedef struct short_memory {
    uint64_t left;
} short_memory;

static void *take_or_fail(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    short_memory *const budget = ctx;

    if (new_bytes > old_bytes && budget->left != UINT64_MAX && budget->left-- == 0) {
        budget->left = 0;
        return NULL;
    }
    return sl_alloc_default.resize(sl_alloc_default.ctx, memory, old_bytes, new_bytes);
}

/* Each allocation of the host fails once, in turn: whatever it was for, nothing crashes, leaks or hangs. */
TEST(a_read_without_memory_ends_and_the_next_one_works)
{
    short_memory budget = { UINT64_MAX };
    const sl_alloc alloc = { &budget, take_or_fail };
    sl_read_request request = reads_subscription("s");
    server_rig rig;
    unsigned failed = 0;

    server_rig_init(&rig);
    rig.alloc = &alloc;
    server_rig_start(&rig);
    request.resolve_links = true;
    reads_append(&rig, "s", 300);
    for (uint64_t i = 0; i < 40; i++) {
        server_peer *const peer = server_rig_connect(&rig, "127.0.0.1:40001");
        const server_call *const call = reads_call_on(&rig, peer, &request);

        budget.left = i;
        server_rig_run(&rig);
        failed += call->ended;
        budget.left = UINT64_MAX;
        if (peer->link != NULL)
            server_rig_break(peer);
        server_rig_run(&rig);
        EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
        EXPECT_CALL_STATUS(reads_do(&rig, reads_of_stream("s")), SL_STATUS_OK);
    }
    EXPECT(failed > 0 && failed < 40);
    server_rig_done(&rig);
}

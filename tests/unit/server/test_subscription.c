/* tests/unit/server/test_subscription.c — catch-up subscriptions: where they begin, what they say, when they end
 * (shared kurrent-semantics 23). */
#include "read_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* --- where they begin --- */

TEST(a_subscription_begins_after_what_it_is_given)
{
    const sl_read_request s = reads_subscription("s");
    const struct {
        sl_read_request request;
        const char *begun, *after; /* what is said at first, and when s:3 and s:4 were appended */
    } rows[] = {
        { s, "confirmed s:0 s:1 s:2 caught-up@2", "s:3 s:4" },
        { reads_from(s, 0), "confirmed s:1 s:2 caught-up@2", "s:3 s:4" },
        { reads_from(s, 1), "confirmed s:2 caught-up@2", "s:3 s:4" },
        { reads_from(s, 2), "confirmed caught-up@2", "s:3 s:4" },
        { reads_from(s, 3), "confirmed caught-up@3", "s:4" }, /* beyond the last: not sent up to there */
        { reads_from(s, 4), "confirmed caught-up@4", "" },
        { reads_from(s, INT64_MAX), "confirmed caught-up@9223372036854775807", "" },
        { reads_from_end(s), "confirmed caught-up@2", "s:3 s:4" },
        { reads_from(s, UINT64_MAX), "confirmed caught-up@2", "s:3 s:4" },
        { reads_subscription("other"), "confirmed other:0 caught-up@0", "" },
        { reads_subscription("missing"), "confirmed caught-up", "" },
        { reads_from_end(reads_subscription("missing")), "confirmed caught-up", "" },
        { reads_from(reads_subscription("missing"), 5), "confirmed caught-up@5", "" },
    };
    server_call *calls[ROWS(rows)];
    size_t said[ROWS(rows)];
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 3);
    reads_append(&rig, "other", 1);
    for (size_t i = 0; i < ROWS(rows); i++) {
        calls[i] = reads_begin(&rig, rows[i].request);
        EXPECT_SAID(calls[i], rows[i].begun);
        said[i] = calls[i]->message_count;
    }
    EXPECT_EQ(rig.host->counters.subscriptions_now, ROWS(rows));
    reads_append(&rig, "s", 2);
    for (size_t i = 0; i < ROWS(rows); i++)
        EXPECT_STR(reads_said_after(calls[i], said[i]), rows[i].after);
    server_rig_done(&rig);
}

/* Positions: a:0 is 1, b:0 is 2, a:1 is 3; then b:1 is 4, a:2 is 5. */
TEST(a_subscription_to_all_begins_after_the_position_it_is_given)
{
    const sl_read_request all = reads_subscription_to_all();
    const struct {
        sl_read_request request;
        const char *begun, *after;
    } rows[] = {
        { all, "confirmed a:0 b:0 a:1 caught-up@3", "b:1 a:2" },
        { reads_from(all, 0), "confirmed a:0 b:0 a:1 caught-up@3", "b:1 a:2" },
        { reads_from(all, 1), "confirmed b:0 a:1 caught-up@3", "b:1 a:2" },
        { reads_from(all, 3), "confirmed caught-up@3", "b:1 a:2" },
        { reads_from(all, 4), "confirmed caught-up@4", "a:2" },
        { reads_from(all, INT64_MAX), "confirmed caught-up@9223372036854775807", "" },
        { reads_from_end(all), "confirmed caught-up@3", "b:1 a:2" },
        { reads_from(all, UINT64_MAX), "confirmed caught-up@3", "b:1 a:2" },
    };
    server_call *calls[ROWS(rows)];
    size_t said[ROWS(rows)];
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 1);
    reads_append(&rig, "b", 1);
    reads_append(&rig, "a", 1);
    for (size_t i = 0; i < ROWS(rows); i++) {
        calls[i] = reads_begin(&rig, rows[i].request);
        EXPECT_SAID(calls[i], rows[i].begun);
        said[i] = calls[i]->message_count;
    }
    reads_append(&rig, "b", 1);
    reads_append(&rig, "a", 1);
    for (size_t i = 0; i < ROWS(rows); i++)
        EXPECT_STR(reads_said_after(calls[i], said[i]), rows[i].after);
    server_rig_done(&rig);
}

TEST(an_empty_store_can_be_subscribed_to)
{
    const sl_read_request all = reads_subscription_to_all();
    server_call *from_start, *from_end, *unset;
    sl_read_request request = all;
    server_rig rig;

    reads_start(&rig, NULL);
    request.start = SL_WIRE_START_UNSET; /* nothing said is the start */
    from_start = reads_begin(&rig, all);
    from_end = reads_begin(&rig, reads_from_end(all));
    unset = reads_begin(&rig, request);
    reads_append(&rig, "a", 1);
    EXPECT_SAID(from_start, "confirmed caught-up a:0");
    EXPECT_SAID(from_end, "confirmed caught-up a:0");
    EXPECT_SAID(unset, "confirmed caught-up a:0");
    server_rig_done(&rig);
}

/* Submitted before the subscription but not durable when it is confirmed: new, since nobody was told of it before. */
TEST(an_event_that_becomes_durable_after_the_confirmation_is_not_missed)
{
    const sl_read_request requests[] = { reads_from_end(reads_subscription("s")),
                                         reads_from_end(reads_subscription_to_all()),
                                         reads_from_end(reads_subscription("new")) };
    static const char *const said[] = { "confirmed caught-up@1 s:2", "confirmed caught-up@2 s:2",
                                        "confirmed caught-up new:0" };

    for (size_t i = 0; i < ROWS(requests); i++) {
        const server_call *call;
        server_rig rig;

        reads_start(&rig, NULL);
        reads_append(&rig, "s", 2);
        (void)reads_do(&rig, reads_of_stream("s")); /* the connection is up */
        reads_submit(&rig, i == 2 ? "new" : "s");
        call = reads_call(&rig, &requests[i]);
        server_rig_run(&rig);
        EXPECT_SAID(call, said[i]);
        server_rig_done(&rig);
    }
}

TEST(each_subscription_has_an_id_of_its_own)
{
    char first[64] = "", second[64] = "";
    server_rig rig;

    reads_start(&rig, NULL);
    for (unsigned i = 0; i < 2; i++) {
        const sl_read_response response = reads_message(reads_begin(&rig, reads_subscription("s")), 0);
        sl_uuid id;

        EXPECT_EQ(response.kind, SL_READ_RESPONSE_CONFIRMATION);
        EXPECT_OK(sl_uuid_parse(response.subscription_id.data, response.subscription_id.bytes, &id));
        EXPECT_EQ(id.bytes[6] >> 4, 4); /* random */
        snprintf(i == 0 ? first : second, sizeof first, "%.*s", (int)response.subscription_id.bytes,
                 response.subscription_id.data);
    }
    EXPECT(strcmp(first, second) != 0);
    server_rig_done(&rig);
}

TEST(caught_up_says_when_and_where)
{
    sl_read_boundary boundary;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 1);
    boundary = reads_message(reads_begin(&rig, reads_subscription("s")), 2).boundary;
    EXPECT_EQ(boundary.time.seconds, rig.time.wall_ns / 1000000000);
    EXPECT(boundary.has_revision && boundary.position.kind == SL_WIRE_POSITION_UNSET);
    boundary = reads_message(reads_begin(&rig, reads_subscription_to_all()), 2).boundary;
    EXPECT(!boundary.has_revision && boundary.position.kind == SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(boundary.position.commit, 1);
    EXPECT_EQ(boundary.position.prepare, 1);
    server_rig_done(&rig);
}

/* --- streams that come, go and shrink --- */

TEST(a_subscription_waits_for_a_stream_that_does_not_exist)
{
    server_call *call, *from_end;
    server_rig rig;

    reads_start(&rig, NULL);
    call = reads_begin(&rig, reads_subscription("s"));
    from_end = reads_begin(&rig, reads_from_end(reads_subscription("s")));
    reads_append(&rig, "t", 1);
    reads_set_metadata(&rig, "s", "{\"k\":1}"); /* still no event */
    reads_append(&rig, "s", 2);
    EXPECT_SAID(call, "confirmed caught-up s:0 s:1");
    EXPECT_SAID(from_end, "confirmed caught-up s:0 s:1");
    server_rig_done(&rig);
}

TEST(a_tombstone_refuses_new_subscriptions_and_ends_those_that_run)
{
    server_call *call, *behind, *metadata;
    sl_read_request request = reads_subscription("s");
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 2);
    reads_set_metadata(&rig, "s", "{\"k\":1}");
    call = reads_begin(&rig, request);
    behind = reads_begin(&rig, reads_from(request, 40));
    metadata = reads_begin(&rig, reads_subscription("$$s"));
    reads_tombstone(&rig, "s");
    EXPECT_SAID(call, "confirmed s:0 s:1 caught-up@1 s:9223372036854775807 FAILED_PRECONDITION");
    EXPECT_STR(server_call_trailer(call, "exception"), "stream-deleted");
    EXPECT_STR(server_call_trailer(call, "stream-name"), "s");
    EXPECT(sl_str_equal(reads_message(call, 4).event.event.type, SL_STR("$streamDeleted")));
    EXPECT_SAID(behind, "confirmed caught-up@40 s:9223372036854775807 FAILED_PRECONDITION");
    EXPECT_CALL_STATUS(metadata, SL_STATUS_FAILED_PRECONDITION);
    EXPECT_SAID(reads_do(&rig, request), "FAILED_PRECONDITION"); /* before any confirmation */
    EXPECT_SAID(reads_do(&rig, reads_from_end(request)), "FAILED_PRECONDITION");
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    server_rig_done(&rig);
}

TEST(a_tombstone_of_a_stream_that_never_was_ends_who_waits_for_it)
{
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    call = reads_begin(&rig, reads_subscription("s"));
    reads_tombstone(&rig, "s");
    EXPECT_SAID(call, "confirmed caught-up s:9223372036854775807 FAILED_PRECONDITION");
    server_rig_done(&rig);
}

/* Its client takes nothing, so it has given back what it had read, and its cursor: an event of this size is never kept. */
TEST(a_tombstone_is_shown_to_a_subscriber_that_was_behind_and_has_no_cursor)
{
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    call = reads_begin(&rig, reads_subscription("s"));
    call->slow = true;
    for (unsigned i = 0; i < 50; i++)
        reads_append_bytes(&rig, "s", 100 * 1024);
    EXPECT_EQ(rig.host->counters.fell_behind, 1);
    EXPECT_EQ(rig.host->counters.pages_held_now, 0);
    reads_tombstone(&rig, "s");
    EXPECT(!call->ended);
    server_call_read_on(call);
    server_rig_run_until_ended(&rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT(sl_str_equal(reads_message(call, call->message_count - 1).event.event.type,
                        SL_STR("$streamDeleted")));
    server_rig_done(&rig);
}

TEST(a_subscription_lives_through_a_soft_delete)
{
    server_call *call, *later, *from_end;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 2);
    call = reads_begin(&rig, reads_subscription("s"));
    reads_delete(&rig, "s");
    later = reads_begin(&rig, reads_subscription("s"));
    from_end = reads_begin(&rig, reads_from_end(reads_subscription("s")));
    EXPECT_SAID(later, "confirmed caught-up");
    reads_append(&rig, "s", 2);
    EXPECT_SAID(call, "confirmed s:0 s:1 caught-up@1 s:2 s:3");
    EXPECT_SAID(later, "confirmed caught-up s:2 s:3");
    EXPECT_SAID(from_end, "confirmed caught-up@1 s:2 s:3");
    server_rig_done(&rig);
}

TEST(a_subscription_gets_what_a_stream_has_left)
{
    server_call *live, *call, *from_end;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 4);
    live = reads_begin(&rig, reads_subscription("s"));
    reads_set_metadata(&rig, "s", "{\"$tb\":3}");
    call = reads_begin(&rig, reads_subscription("s"));
    EXPECT_SAID(call, "confirmed s:3 caught-up@3");
    reads_set_metadata(&rig, "s", "{\"$tb\":4}"); /* nothing is left */
    EXPECT_SAID(reads_begin(&rig, reads_subscription("s")), "confirmed caught-up");
    from_end = reads_begin(&rig, reads_from_end(reads_subscription("s")));
    reads_append(&rig, "s", 1);
    EXPECT_SAID(call, "confirmed s:3 caught-up@3 s:4");
    EXPECT_SAID(live, "confirmed s:0 s:1 s:2 s:3 caught-up@3 s:4");
    EXPECT_SAID(from_end, "confirmed caught-up@3 s:4");
    server_rig_done(&rig);
}

TEST(a_metadata_stream_can_be_followed)
{
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 1);
    call = reads_begin(&rig, reads_subscription("$$s"));
    reads_set_metadata(&rig, "s", "{\"k\":1}");
    reads_delete(&rig, "s");
    reads_append(&rig, "s", 1);
    EXPECT_SAID(call, "confirmed caught-up $$s:0 $$s:1 $$s:2");
    server_rig_done(&rig);
}

/* --- slow clients --- */

enum {
    EVENT_BYTES = 1000,
    WAITING_BYTES_MAX = 256 * 1024 + 2 * EVENT_BYTES
};

static void append_many(server_rig *rig, const char *stream, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        reads_append_bytes(rig, stream, EVENT_BYTES);
}

static unsigned count_kind(const server_call *call, sl_read_response_kind kind)
{
    unsigned count = 0;

    for (size_t i = 0; i < call->message_count; i++)
        count += reads_message(call, i).kind == kind;
    return count;
}

static void expect_all_events_once(const server_call *call, uint64_t count)
{
    uint64_t next = 0;

    for (size_t i = 0; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (response.kind == SL_READ_RESPONSE_EVENT)
            EXPECT_EQ(response.event.event.revision, next++);
    }
    EXPECT_EQ(next, count);
}

TEST(a_subscriber_that_stops_reading_falls_behind_and_catches_up_again)
{
    server_call *slow, *fast;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 2);
    slow = reads_begin(&rig, reads_subscription("s"));
    fast = reads_begin(&rig, reads_subscription_to_all());
    slow->slow = true;
    append_many(&rig, "s", 3000);
    EXPECT_EQ(rig.host->counters.fell_behind, 1);
    EXPECT(server_rig_logged(&rig, "a subscription fell behind"));
    EXPECT(reads_waiting_bytes(slow) <= WAITING_BYTES_MAX);
    expect_all_events_once(fast, 3002); /* the other one has everything already */
    EXPECT_EQ(count_kind(slow, SL_READ_RESPONSE_CAUGHT_UP), 1);
    EXPECT(slow->message_count < 2500);

    server_call_read_on(slow);
    server_rig_run(&rig);
    expect_all_events_once(slow, 3002);
    EXPECT_EQ(count_kind(slow, SL_READ_RESPONSE_CAUGHT_UP), 2);
    EXPECT_EQ(reads_message(slow, slow->message_count - 1).kind, SL_READ_RESPONSE_CAUGHT_UP);
    EXPECT_EQ(reads_message(slow, slow->message_count - 1).boundary.revision, 3001);
    reads_append(&rig, "s", 1);
    expect_all_events_once(slow, 3003);
    EXPECT_EQ(count_kind(slow, SL_READ_RESPONSE_CAUGHT_UP),
              2); /* live events are not "caught up" each time */
    EXPECT_EQ(rig.host->counters.fell_behind, 1);
    server_rig_done(&rig);
}

/* Many more events than one run may do: catching up is not falling behind. */
TEST(a_long_past_is_caught_up_with_once)
{
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 5000);
    call = reads_begin(&rig, reads_subscription("s"));
    expect_all_events_once(call, 5000);
    EXPECT_EQ(count_kind(call, SL_READ_RESPONSE_CAUGHT_UP), 1);
    reads_append(&rig, "s", 1000); /* one batch, a burst */
    expect_all_events_once(call, 6000);
    EXPECT_EQ(rig.host->counters.fell_behind, 0);
    server_rig_done(&rig);
}

TEST(subscribers_may_leave_at_any_time)
{
    server_call *calls[6];
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 3);
    for (unsigned i = 0; i < 6; i++) {
        calls[i] = reads_begin(&rig, i % 2 == 0 ? reads_subscription("s") : reads_subscription_to_all());
        calls[i]->slow = i < 4;
    }
    append_many(&rig, "s", 2000);
    server_call_cancel(calls[0]);
    server_call_cancel(calls[1]);
    server_call_cancel(calls[4]);
    server_call_cancel(calls[5]);
    server_rig_run(&rig);
    EXPECT_EQ(rig.host->counters.subscriptions_now, 2);
    reads_append(&rig, "s", 1);
    server_rig_break(calls[2]->peer);
    server_rig_run(&rig);
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    reads_append(&rig, "s", 1);
    server_rig_done(&rig);
}

/* --- rights --- */

TEST(a_subscription_ends_when_its_rights_are_taken_away)
{
    server_call *call, *metadata;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 1);
    reads_as_user(&rig, "bob");
    call = reads_begin(&rig, reads_subscription("s"));
    metadata = reads_begin(&rig, reads_subscription("$$s"));
    reads_set_metadata(&rig, "s", "{\"$acl\":{\"$r\":\"bob\",\"$mr\":\"ann\"}}");
    EXPECT_CALL_STATUS(metadata, SL_STATUS_PERMISSION_DENIED);
    reads_append(&rig, "s", 1);
    EXPECT_SAID(call, "confirmed s:0 caught-up@0 s:1");
    reads_set_metadata(&rig, "s", "{\"$acl\":{\"$r\":\"ann\"}}");
    EXPECT_SAID(call, "confirmed s:0 caught-up@0 s:1 PERMISSION_DENIED");
    EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
    server_rig_done(&rig);
}

TEST(nothing_is_sent_after_the_defaults_have_changed)
{
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 1);
    reads_as_user(&rig, "bob");
    call = reads_begin(&rig, reads_subscription("s"));
    reads_append_typed(&rig, "$settings", "$update", "{\"$userStreamAcl\":{\"$r\":\"ann\"}}");
    reads_append(&rig, "s", 1);
    EXPECT_SAID(call, "confirmed s:0 caught-up@0 PERMISSION_DENIED");
    server_rig_done(&rig);
}

/* --- many --- */

typedef struct counted {
    size_t page_count;
} counted;

enum {
    PAGE_BYTES = 128 * sizeof(sl_event)
};

/* A subscription that is run takes a page; nobody else takes one of this size. */
static void *count_pages(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    ((counted *)ctx)->page_count += memory == NULL && new_bytes == PAGE_BYTES;
    return sl_alloc_default.resize(sl_alloc_default.ctx, memory, old_bytes, new_bytes);
}

TEST(ten_thousand_subscriptions_to_other_streams_cost_a_commit_nothing)
{
    enum {
        SUBSCRIPTIONS = 10 * 1000,
        ON_ONE_CONNECTION = 4000,
    };
    counted pages = { 0 };
    const sl_alloc alloc = { &pages, count_pages };
    server_peer *peer = NULL;
    size_t before;
    server_rig rig;

    server_rig_init(&rig);
    rig.alloc = &alloc;
    server_rig_start(&rig);
    reads_append(&rig, "s", 1);
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        char stream[32];
        sl_read_request request;

        if (i % ON_ONE_CONNECTION == 0)
            peer = server_rig_connect(&rig, "127.0.0.1:40001");
        snprintf(stream, sizeof stream, "quiet-%u", i);
        request = reads_subscription(i == 77 ? "s" : stream);
        (void)reads_call_on(&rig, peer, &request);
        if (i % 100 == 99)
            server_rig_run(&rig);
    }
    EXPECT_EQ(rig.host->counters.subscriptions_now, SUBSCRIPTIONS);
    before = pages.page_count;
    reads_append(&rig, "s", 1);
    EXPECT_EQ(pages.page_count, before + 1); /* one of them reads s */
    reads_append(&rig, "t", 1);
    EXPECT_EQ(pages.page_count, before + 1);
    server_rig_done(&rig);
}

/* --- at random --- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

/* Whatever writers and readers do, a subscriber to all has each event once and in order. The stream must keep its numbers. */
static void follow_at_random(uint64_t seed, sl_store *store)
{
    uint64_t state = seed, appended = 0;
    server_call *all, *one;
    server_rig rig;

    reads_start(&rig, store);
    all = reads_begin(&rig, reads_subscription_to_all());
    one = reads_begin(&rig, reads_subscription("s"));
    for (unsigned i = 0; i < 60; i++) {
        const unsigned count = (unsigned)draw(&state, 40) + 1;

        if (draw(&state, 3) == 0)
            reads_append_bytes(&rig, "s", 1 + draw(&state, 200 * 1000));
        else
            reads_append(&rig, "s", count);
        for (unsigned slow = 0; slow < 2; slow++) {
            server_call *const call = slow == 0 ? all : one;

            if (draw(&state, 4) == 0)
                call->slow = true;
            else if (draw(&state, 4) == 0)
                server_call_read_on(call);
        }
        if (draw(&state, 5) == 0)
            (void)server_rig_turn(&rig);
    }
    appended = reads_message(
                   reads_do(&rig, reads_count(reads_backwards(reads_from_end(reads_of_stream("s"))), 1)), 0)
                   .event.event.revision +
               1;
    server_call_read_on(all);
    server_call_read_on(one);
    while (count_kind(all, SL_READ_RESPONSE_EVENT) < appended ||
           count_kind(one, SL_READ_RESPONSE_EVENT) < appended)
        if (!server_rig_turn(&rig))
            server_rig_wait(&rig);
    expect_all_events_once(all, appended);
    expect_all_events_once(one, appended);
    server_rig_done(&rig);
}

TEST(a_subscriber_gets_each_event_once_and_in_order_whatever_happens)
{
    for (uint64_t seed = 1; seed <= 10; seed += SWEEP_STEP) {
        slow_store slow = slow_store_open();

        follow_at_random(seed, NULL);
        follow_at_random(seed, slow.store);
        slow_store_close(&slow);
    }
}

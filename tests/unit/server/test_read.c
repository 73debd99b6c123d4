/* tests/unit/server/test_read.c — Streams.Read with a count: what may be asked, and what comes back
 * (shared kurrent-wire 3.1, 3.2, 13.6; kurrent-semantics 20 to 22). */
#include "read_rig.h"

#include <stdio.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A read and everything that its client is told. */
typedef struct read_row {
    sl_read_request request;
    const char *said;
} read_row;

static void expect_rows(server_rig *rig, const read_row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        const char *const said = reads_said(reads_do(rig, rows[i].request));

        if (strcmp(said, rows[i].said) != 0)
            fail_msg("row %zu: \"%s\", wanted \"%s\"", i, said, rows[i].said);
    }
}

/* --- what may be asked --- */

typedef struct refused_row {
    const char *what;
    sl_read_request request;
    sl_status status;
    const char *text; /* is part of the message */
} refused_row;

static void expect_refused(const refused_row *rows, size_t row_count)
{
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 3);
    for (size_t i = 0; i < row_count; i++) {
        const server_call *const call = reads_do(&rig, rows[i].request);

        if (call->status != rows[i].status || strstr(call->message, rows[i].text) == NULL)
            fail_msg("%s: %s \"%s\"", rows[i].what, sl_status_name(call->status), call->message);
        EXPECT_EQ(call->message_count, 0);
    }
    server_rig_done(&rig);
}

/* The request with one thing changed. */
#define CHANGED(base, field, value)                                                                          \
    (__extension__({                                                                                         \
        sl_read_request changed_ = (base);                                                                   \
        changed_.field = (value);                                                                            \
        changed_;                                                                                            \
    }))

TEST(combinations_that_mean_nothing_are_refused)
{
    const sl_wire_filter filter = reads_filtered("s", 0, 1).filter;
    const sl_read_request stream = reads_of_stream("s"), all = reads_of_all();
    const sl_read_request follow = reads_subscription("s"), follow_all = reads_subscription_to_all();
    const refused_row rows[] = {
        { "no id option", CHANGED(stream, has_id_option, false), SL_STATUS_INVALID_ARGUMENT, "uuid_option" },
        { "no source", CHANGED(stream, source, SL_WIRE_SOURCE_UNSET), SL_STATUS_INVALID_ARGUMENT, "neither" },
        { "no extent", CHANGED(stream, extent, SL_READ_EXTENT_UNSET), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (Stream, None, Forwards, NoFilter) is invalid." },
        { "no filter option", CHANGED(all, filter.kind, SL_WIRE_FILTER_UNSET), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (All, Count, Forwards, None) is invalid." },
        { "a filter of a stream", CHANGED(stream, filter, filter), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (Stream, Count, Forwards, Filter) is invalid." },
        { "a filtered subscription to a stream", CHANGED(follow, filter, filter), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (Stream, Subscription, Forwards, Filter) is invalid." },
        { "backwards for ever", reads_backwards(follow), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (Stream, Subscription, Backwards, NoFilter) is invalid." },
        { "all backwards for ever", reads_backwards(follow_all), SL_STATUS_INVALID_ARGUMENT,
          "The combination of (All, Subscription, Backwards, NoFilter) is invalid." },
        { "no start", CHANGED(stream, start, SL_WIRE_START_UNSET), SL_STATUS_INVALID_ARGUMENT,
          "where to begin" },
        { "no start of all", CHANGED(all, start, SL_WIRE_START_UNSET), SL_STATUS_INVALID_ARGUMENT,
          "where to begin" },
        { "nothing", reads_count(stream, 0), SL_STATUS_INVALID_ARGUMENT, "at least 1" },
        { "nothing of all", reads_count(all, 0), SL_STATUS_INVALID_ARGUMENT, "at least 1" },
    };

    expect_refused(rows, ROWS(rows));
}

/* What KurrentDB stumbles over is UNKNOWN, with the text that one client looks for. */
TEST(numbers_beyond_the_range_are_refused_as_kurrentdb_does)
{
#define STUMBLED "Exception was thrown by handler."
    const uint64_t above = (uint64_t)INT64_MAX + 1;
    const sl_read_request stream = reads_of_stream("s"), all = reads_from(reads_of_all(), 1);
    const sl_read_request follow = reads_subscription("s");
    const sl_read_request follow_all = reads_from(reads_subscription_to_all(), 1);
    const refused_row rows[] = {
        { "a revision", reads_from(stream, above), SL_STATUS_UNKNOWN, STUMBLED },
        { "the largest but one", reads_from(stream, UINT64_MAX - 1), SL_STATUS_UNKNOWN, STUMBLED },
        { "a revision, backwards", reads_backwards(reads_from(stream, above)), SL_STATUS_UNKNOWN, STUMBLED },
        { "a revision to follow", reads_from(follow, above), SL_STATUS_UNKNOWN, STUMBLED },
        { "a position", reads_from(all, above), SL_STATUS_UNKNOWN, STUMBLED },
        { "a position to follow", reads_from(follow_all, above), SL_STATUS_UNKNOWN, STUMBLED },
        { "half of the end", CHANGED(all, position.commit, UINT64_MAX), SL_STATUS_UNKNOWN, STUMBLED },
        { "the other half", CHANGED(all, position.prepare, UINT64_MAX), SL_STATUS_UNKNOWN, STUMBLED },
        { "prepared after it was committed", CHANGED(all, position.prepare, 2), SL_STATUS_UNKNOWN, STUMBLED },
        { "forwards from the end", reads_from_end(stream), SL_STATUS_UNKNOWN, STUMBLED },
        { "the same as a number", reads_from(stream, UINT64_MAX), SL_STATUS_UNKNOWN, STUMBLED },
        { "never a checkpoint", reads_filtered("s", 0, 0), SL_STATUS_UNKNOWN, STUMBLED },
    };

    expect_refused(rows, ROWS(rows));
}

TEST(a_name_that_no_stream_can_have_is_refused)
{
    static char longest[SL_STREAM_NAME_BYTES_MAX]; /* two bytes are for the $$ of its metadata */
    refused_row rows[] = {
        { "none", reads_of_stream(""), SL_STATUS_INVALID_ARGUMENT, "empty" },
        { "none to follow", reads_subscription(""), SL_STATUS_INVALID_ARGUMENT, "empty" },
        { "too long", reads_of_stream(longest), SL_STATUS_INVALID_ARGUMENT, "1022 bytes" },
        { "not UTF-8", reads_of_stream("a\xff"), SL_STATUS_INVALID_ARGUMENT, "UTF-8" },
        { "a zero", reads_of_stream("a"), SL_STATUS_INVALID_ARGUMENT, "zero byte" },
        { "the metadata of nothing", reads_of_stream("$$"), SL_STATUS_INVALID_ARGUMENT, "$$" },
    };

    memset(longest, 'n', sizeof longest - 1);
    rows[2].request = reads_of_stream(longest);
    rows[4].request.stream = SL_STR("a\0b");
    expect_refused(rows, ROWS(rows));
}

TEST(the_longest_name_is_a_good_one)
{
    char longest[SL_STREAM_NAME_BYTES_MAX + 1] = "$$";
    server_rig rig;

    reads_start(&rig, NULL);
    memset(longest + 2, 'n', sizeof longest - 3);
    for (size_t skip = 0; skip <= 2; skip += 2) { /* its metadata, then itself */
        server_call *const call = reads_do(&rig, reads_of_stream(longest + skip));
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT_EQ(reads_message(call, 0).kind, SL_READ_RESPONSE_STREAM_NOT_FOUND);
    }
    server_rig_done(&rig);
}

TEST(a_message_that_is_no_request_is_refused)
{
    static const struct {
        sl_str message;
        const char *why;
    } rows[] = {
        { SL_STR_INIT("\x0a\x05\x08"), "cut off" },
        { SL_STR_INIT("\xff\xff\xff\xff"), "no protobuf" },
        { SL_STR_INIT(""), "nothing in it" },
        { SL_STR_INIT("\x0a\x00"), "empty options" },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const server_call *const call = server_rig_unary(&rig, READ_PATH, rows[i].message);

        EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
        EXPECT(call->message[0] != 0);
    }
    server_rig_done(&rig);
}

/* --- streams --- */

TEST(a_stream_is_read_from_either_end_or_from_a_revision)
{
    const sl_read_request s = reads_of_stream("s");
    const sl_read_request back = reads_backwards(s);
    const read_row rows[] = {
        { s, "s:0 s:1 s:2 s:3 OK" },
        { reads_count(s, 4), "s:0 s:1 s:2 s:3 OK" },
        { reads_count(s, 2), "s:0 s:1 OK" },
        { reads_count(s, UINT64_MAX), "s:0 s:1 s:2 s:3 OK" },
        { reads_from(s, 0), "s:0 s:1 s:2 s:3 OK" },
        { reads_from(s, 2), "s:2 s:3 OK" },
        { reads_from(s, 3), "s:3 OK" },
        { reads_from(s, 4), "OK" },
        { reads_from(s, INT64_MAX), "OK" },
        { reads_from_end(back), "s:3 s:2 s:1 s:0 OK" },
        { reads_from(back, UINT64_MAX), "s:3 s:2 s:1 s:0 OK" },
        { reads_count(reads_from_end(back), 1), "s:3 OK" },
        { reads_from(back, 2), "s:2 s:1 s:0 OK" },
        { reads_from(back, 0), "s:0 OK" },
        { back, "s:0 OK" },
        { reads_from(back, 4), "s:3 s:2 s:1 s:0 OK" },
        { reads_from(back, INT64_MAX), "s:3 s:2 s:1 s:0 OK" },
        { reads_of_stream("$$s"), "not-found:$$s OK" },
        { reads_of_stream("$all"), "not-found:$all OK" }, /* as a name it is no stream */
    };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "other", 2);
    reads_append(&rig, "s", 4);
    expect_rows(&rig, rows, ROWS(rows));
    server_rig_done(&rig);
}

TEST(what_is_hidden_is_not_read_and_a_stream_that_is_gone_is_not_found)
{
    const read_row rows[] = {
        { reads_of_stream("missing"), "not-found:missing OK" },
        { reads_backwards(reads_from_end(reads_of_stream("missing"))), "not-found:missing OK" },
        { reads_of_stream("described"), "not-found:described OK" }, /* it has metadata and no event */
        { reads_of_stream("$$described"), "$$described:0 OK" },
        { reads_of_stream("cut"), "cut:2 cut:3 OK" },
        { reads_backwards(reads_from_end(reads_of_stream("cut"))), "cut:3 cut:2 OK" },
        { reads_from(reads_backwards(reads_of_stream("cut")), 1), "OK" },
        { reads_of_stream("few"), "few:3 OK" },
        { reads_of_stream("$$few"), "$$few:0 OK" },
        { reads_of_stream("empty"), "OK" },
        { reads_backwards(reads_from_end(reads_of_stream("empty"))), "OK" },
        { reads_of_stream("old"), "old:2 OK" },
        { reads_of_stream("deleted"), "not-found:deleted OK" },
        { reads_of_stream("back"), "back:2 back:3 OK" },
        { reads_of_stream("dead"), "FAILED_PRECONDITION" },
        { reads_backwards(reads_from_end(reads_of_stream("dead"))), "FAILED_PRECONDITION" },
        { reads_of_stream("$$dead"), "FAILED_PRECONDITION" },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_set_metadata(&rig, "described", "{\"k\":1}");
    reads_append(&rig, "cut", 4);
    reads_set_metadata(&rig, "cut", "{\"$tb\":2}");
    reads_append(&rig, "few", 4);
    reads_set_metadata(&rig, "few", "{\"$maxCount\":1}");
    reads_append(&rig, "empty", 4);
    reads_set_metadata(&rig, "empty", "{\"$tb\":4}");
    reads_append(&rig, "old", 2);
    reads_set_metadata(&rig, "old", "{\"$maxAge\":60}");
    server_rig_advance(&rig, UINT64_C(100) * 1000 * 1000 * 1000);
    reads_append(&rig, "old", 1);
    reads_append(&rig, "deleted", 2);
    reads_delete(&rig, "deleted");
    reads_append(&rig, "back", 2);
    reads_delete(&rig, "back");
    reads_append(&rig, "back", 2);
    reads_append(&rig, "dead", 2);
    reads_tombstone(&rig, "dead");
    expect_rows(&rig, rows, ROWS(rows));
    server_rig_done(&rig);
}

TEST(a_tombstoned_stream_is_reported_with_its_name)
{
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "dead", 1);
    reads_tombstone(&rig, "dead");
    call = reads_do(&rig, reads_of_stream("dead"));
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT_STR(call->message, "Event stream 'dead' is deleted.");
    EXPECT_STR(server_call_trailer(call, "exception"), "stream-deleted");
    EXPECT_STR(server_call_trailer(call, "stream-name"), "dead");
    server_rig_done(&rig);
}

/* Wire 13.6: the first revision only when the page of 32 that KurrentDB reads first has nothing; the last one always. */
TEST(who_asks_for_compatibility_is_told_where_a_stream_begins_and_ends)
{
    const sl_read_request s = CHANGED(reads_of_stream("s"), compatibility, 1);
    const sl_read_request cut = CHANGED(reads_of_stream("cut"), compatibility, 2);
    const sl_read_request empty = CHANGED(reads_of_stream("empty"), compatibility, 1);
    const sl_read_request missing = CHANGED(reads_of_stream("missing"), compatibility, 1);
    const read_row rows[] = {
        { s, "s:0 s:1 s:2 last@2 OK" },
        { reads_count(s, 1), "s:0 last@2 OK" },
        { reads_from(s, 3), "last@2 OK" }, /* 3 is what comes next: no news */
        { reads_from(s, 4), "first@3 last@2 OK" },
        { reads_backwards(reads_from_end(s)), "s:2 s:1 s:0 last@2 OK" },
        { reads_count(cut, 2), "first@40 cut:40 cut:41 last@49 OK" },
        { reads_count(reads_from(cut, 7), 33),
          "first@40 cut:40 cut:41 cut:42 cut:43 cut:44 cut:45 cut:46 cut:47 "
          "cut:48 cut:49 last@49 OK" },
        { reads_count(reads_from(cut, 9), 33),
          "cut:40 cut:41 cut:42 cut:43 cut:44 cut:45 cut:46 cut:47 cut:48 cut:49 last@49 OK" },
        { reads_count(reads_from(cut, 39), 1), "first@40 cut:40 last@49 OK" },
        { reads_count(reads_from(cut, 39), 2), "cut:40 cut:41 last@49 OK" },
        { reads_count(reads_backwards(reads_from_end(cut)), 1), "cut:49 last@49 OK" },
        { reads_count(reads_backwards(reads_from(cut, 9)), 1), "last@49 OK" },
        { empty, "first@3 last@2 OK" },
        { missing, "not-found:missing OK" },
        { CHANGED(reads_of_all(), compatibility, 1), NULL },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 3);
    reads_append(&rig, "cut", 50);
    reads_set_metadata(&rig, "cut", "{\"$tb\":40}");
    reads_append(&rig, "empty", 3);
    reads_set_metadata(&rig, "empty", "{\"$tb\":3}");
    expect_rows(&rig, rows, ROWS(rows) - 1);
    EXPECT(strstr(reads_said(reads_do(&rig, rows[ROWS(rows) - 1].request)), "@") == NULL);
    server_rig_done(&rig);
}

/* --- everything --- */

/* Positions: a:0 is 1, b:0 is 2, a:1 is 3, the metadata of a is 4, b:1 is 5. */
TEST(all_is_read_forwards_from_a_position_and_backwards_before_one)
{
    const sl_read_request all = reads_of_all();
    const sl_read_request back = reads_backwards(all);
    const read_row rows[] = {
        { all, "a:0 b:0 a:1 $$a:0 b:1 OK" },
        { reads_from(all, 0), "a:0 b:0 a:1 $$a:0 b:1 OK" },
        { reads_from(all, 1), "a:0 b:0 a:1 $$a:0 b:1 OK" },
        { reads_from(all, 2), "b:0 a:1 $$a:0 b:1 OK" },
        { reads_from(all, 5), "b:1 OK" },
        { reads_from(all, 6), "OK" },
        { reads_from(all, INT64_MAX), "OK" },
        { reads_from_end(all), "OK" },
        { reads_from(all, UINT64_MAX), "OK" },
        { reads_count(all, 2), "a:0 b:0 OK" },
        { reads_from_end(back), "b:1 $$a:0 a:1 b:0 a:0 OK" },
        { reads_from(back, UINT64_MAX), "b:1 $$a:0 a:1 b:0 a:0 OK" },
        { reads_from(back, INT64_MAX), "b:1 $$a:0 a:1 b:0 a:0 OK" },
        { reads_from(back, 5), "$$a:0 a:1 b:0 a:0 OK" },
        { reads_from(back, 2), "a:0 OK" },
        { reads_from(back, 1), "OK" },
        { reads_from(back, 0), "OK" },
        { back, "OK" },
        { reads_count(reads_from_end(back), 1), "b:1 OK" },
        { CHANGED(reads_from(all, 3), position.prepare, 1), "a:1 $$a:0 b:1 OK" },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "a", 1);
    reads_append(&rig, "b", 1);
    reads_append(&rig, "a", 1);
    reads_set_metadata(&rig, "a", "{\"$tb\":1}"); /* hides nothing from all */
    reads_append(&rig, "b", 1);
    expect_rows(&rig, rows, ROWS(rows));
    server_rig_done(&rig);
}

TEST(all_of_an_empty_store_is_nothing)
{
    const read_row rows[] = {
        { reads_of_all(), "OK" },
        { reads_backwards(reads_from_end(reads_of_all())), "OK" },
        { reads_from(reads_of_all(), 7), "OK" },
    };
    server_rig rig;

    reads_start(&rig, NULL);
    expect_rows(&rig, rows, ROWS(rows));
    server_rig_done(&rig);
}

/* --- events --- */

TEST(an_event_is_told_with_everything_that_clients_use)
{
    const sl_event_in event = {
        .id = { { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32,
                  0x10 } },
        .type = SL_STR_INIT("ordered"),
        .data = SL_STR_INIT("{\"n\":1}"),
        .metadata = SL_STR_INIT("\x00\xff"),
        .is_json = true,
        .created_ns = UINT64_C(1700000000123456789),
    };
    const sl_wire_recorded *recorded;
    sl_read_response response;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 2);
    reads_append_event(&rig, "s", &event);
    response = reads_message(reads_do(&rig, reads_from(reads_of_stream("s"), 2)), 0);
    recorded = &response.event.event;
    EXPECT(response.event.has_event && !response.event.has_link);
    EXPECT_EQ(response.event.position_kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(response.event.commit_position, 3);
    EXPECT(sl_uuid_equal(recorded->id.uuid, event.id));
    EXPECT(sl_str_equal(recorded->stream, SL_STR("s")));
    EXPECT_EQ(recorded->revision, 2);
    EXPECT_EQ(recorded->commit_position, 3);
    EXPECT_EQ(recorded->prepare_position, 3);
    EXPECT(sl_str_equal(recorded->type, event.type));
    EXPECT(sl_str_equal(recorded->content_type, SL_STR("application/json")));
    EXPECT_EQ(recorded->created_ticks, UINT64_C(17000000001234567));
    EXPECT(sl_str_equal(recorded->data, event.data));
    EXPECT(sl_str_equal(recorded->custom_metadata, event.metadata));
    server_rig_done(&rig);
}

TEST(data_that_is_no_json_is_told_as_octets)
{
    const sl_event_in event = { .id = { { 1 } }, .type = SL_STR_INIT("t"), .data = SL_STR_INIT("\x80") };
    sl_read_response response;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append_event(&rig, "s", &event);
    response = reads_message(reads_do(&rig, reads_of_stream("s")), 0);
    EXPECT(sl_str_equal(response.event.event.content_type, SL_STR("application/octet-stream")));
    EXPECT_EQ(response.event.event.created_ticks, 0);
    EXPECT_EQ(response.event.event.custom_metadata.bytes, 0);
    server_rig_done(&rig);
}

TEST(ids_come_in_the_form_that_was_asked_for)
{
    static const struct {
        sl_wire_id_form asked, told;
    } rows[] = {
        { SL_WIRE_ID_TEXT, SL_WIRE_ID_TEXT },
        { SL_WIRE_ID_STRUCTURED, SL_WIRE_ID_STRUCTURED },
        { SL_WIRE_ID_ABSENT, SL_WIRE_ID_STRUCTURED }, /* the option is there and says nothing */
    };
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "s", 1);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const sl_read_request request = CHANGED(reads_of_stream("s"), id_form, rows[i].asked);
        const sl_read_response response = reads_message(reads_do(&rig, request), 0);

        EXPECT_EQ(response.event.event.id.form, rows[i].told);
    }
    server_rig_done(&rig);
}

TEST(large_events_and_names_in_any_script_are_read_as_they_are)
{
    const char *const name = "заказы-注文-🚚";
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append_bytes(&rig, name, 3 * 1024 * 1024);
    reads_append_bytes(&rig, name, 15 * 1024 * 1024);
    reads_append(&rig, name, 1);
    call = reads_do(&rig, reads_of_stream(name));
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 3);
    EXPECT_EQ(reads_message(call, 0).event.event.data.bytes, 3 * 1024 * 1024);
    EXPECT_EQ(reads_message(call, 1).event.event.data.bytes, 15 * 1024 * 1024);
    EXPECT(sl_str_equal(reads_message(call, 2).event.event.stream, sl_str_from(name)));
    server_rig_done(&rig);
}

TEST(what_is_read_is_counted)
{
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append_bytes(&rig, "s", 100);
    reads_append_bytes(&rig, "s", 50);
    (void)reads_do(&rig, reads_of_stream("s"));
    (void)reads_do(&rig, reads_count(reads_of_all(), 1));
    (void)reads_do(&rig, reads_of_stream("missing"));
    EXPECT_EQ(rig.host->counters.events_read, 3);
    EXPECT_EQ(rig.host->counters.bytes_read, 250);
    EXPECT_EQ(rig.host->counters.subscriptions_now, 0);
    server_rig_done(&rig);
}

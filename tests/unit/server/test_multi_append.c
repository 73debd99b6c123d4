/* tests/unit/server/test_multi_append.c — version 2: several streams in one commit, and the details of what goes wrong. */
#include "../base/support.h"
#include "multi_made.h"

#include "server/door.h"
#include "server/streams/gather.h"
#include "server/streams/multi_reply.h"
#include "server/streams/write.h"

static void tombstone(writes *w, const char *stream)
{
    const sl_op op = { .kind = SL_OP_TOMBSTONE,
                       .remove = { .stream = sl_str_from(stream), .id = { { 9 } }, .created_ns = 1 } };

    writes_commit(w, &op);
}

static void soft_delete(writes *w, const char *stream)
{
    const sl_op op = { .kind = SL_OP_DELETE,
                       .remove = { .stream = sl_str_from(stream), .id = { { 8 } }, .created_ns = 1 } };

    writes_commit(w, &op);
}

/* --- AppendSession --- */

TEST(a_session_writes_to_all_its_streams_in_one_commit)
{
    writes w;
    multi_request *requests[2];

    writes_start(&w);
    requests[0] = multi_request_of(&w, "a", SL_STATE_NO_STREAM, 1, 2);
    requests[1] = multi_request_of(&w, "b", SL_STATE_ANY, 10, 1);
    EXPECT_STR(multi_session_answer(&w, multi_session(&w, requests, 2)), "a:1 b:0 @3");
    EXPECT_STR(writes_stored_all(&w), "t1@a t2@a t10@b");
    EXPECT_STR(multi_session_answer(&w, multi_session(&w, requests, 2)), "a:1 b:0 @3"); /* a repetition */
    EXPECT_STR(writes_stored_all(&w), "t1@a t2@a t10@b");
    EXPECT_EQ(w.rig.host->counters.batches_done, 2);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    writes_done(&w);
}

TEST(a_conflict_on_one_stream_refuses_the_whole_session)
{
    writes w;
    multi_request *requests[2];
    server_call *call;

    writes_start(&w);
    writes_append(&w, "b", WRITES_ANY, 90, 3);
    requests[0] = multi_request_of(&w, "a", SL_STATE_NO_STREAM, 1, 1);
    requests[1] = multi_request_of(&w, "b", 1, 10, 1);
    call = multi_session(&w, requests, 2);
    multi_expect(call, SL_STATUS_FAILED_PRECONDITION, "STREAM_REVISION_CONFLICT",
                 "StreamRevisionConflictErrorDetails");
    EXPECT(sl_str_equal(multi_details(call).detail, SL_STR("\x0a\x01"
                                                           "b\x10\x02\x18\x04"))); /* zig-zag: 1 and 2 */
    EXPECT(sl_str_equal(multi_details(call).domain, SL_STR("streams")));
    EXPECT_STR(writes_stored(&w, "a"), "");
    requests[1] = multi_request_of(&w, "missing", SL_STATE_EXISTS, 10, 1);
    call = multi_session(&w, requests, 2);
    EXPECT(
        sl_str_equal(multi_details(call).detail, SL_STR("\x0a\x07missing\x10\x07\x18\x01"))); /* -4 and -1 */
    writes_done(&w);
}

TEST(deleted_streams_are_told_apart)
{
    writes w;
    multi_request *request;

    writes_start(&w);
    writes_append(&w, "soft", WRITES_ANY, 1, 1);
    writes_append(&w, "hard", WRITES_ANY, 2, 1);
    soft_delete(&w, "soft");
    tombstone(&w, "hard");
    request = multi_request_of(&w, "soft", SL_STATE_EXISTS, 10, 1);
    multi_expect(multi_session(&w, &request, 1), SL_STATUS_FAILED_PRECONDITION, "STREAM_DELETED",
                 "StreamDeletedErrorDetails");
    request = multi_request_of(&w, "hard", SL_STATE_ANY, 11, 1);
    multi_expect(multi_session(&w, &request, 1), SL_STATUS_FAILED_PRECONDITION, "STREAM_TOMBSTONED",
                 "StreamTombstonedErrorDetails");
    request = multi_request_of(&w, "soft", SL_STATE_NO_STREAM, 12, 1);
    EXPECT_STR(multi_session_answer(&w, multi_session(&w, &request, 1)), "soft:1 @5"); /* and its metadata */
    writes_done(&w);
}

TEST(a_stream_is_in_a_session_once_whatever_its_case)
{
    writes w;
    multi_request *requests[2];

    writes_start(&w);
    requests[0] = multi_request_of(&w, "orders-A", SL_STATE_ANY, 1, 1);
    requests[1] = multi_request_of(&w, "Orders-a", SL_STATE_ANY, 2, 1);
    multi_expect(multi_session(&w, requests, 2), SL_STATUS_ABORTED, "STREAM_ALREADY_IN_APPEND_SESSION",
                 "StreamAlreadyInAppendSessionErrorDetails");
    multi_expect(multi_session(&w, requests, 0), SL_STATUS_FAILED_PRECONDITION, "APPEND_SESSION_NO_REQUESTS",
                 "");
    EXPECT_STR(writes_stored_all(&w), "");
    writes_done(&w);
}

TEST(what_is_wrong_with_a_request_is_said_with_its_field)
{
    static const struct {
        const char *what, *field;
    } rows[] = {
        { "no stream", "stream" },           { "system", "stream" },         { "no records", "records" },
        { "expected", "expected_revision" }, { "no schema", "schema.name" }, { "no name", "schema.name" },
        { "format", "schema.format" },       { "id", "record_id" },          { "zero id", "record_id" },
        { "not finite", "properties" },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        multi_request *const request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
        multi_record *const record = request->records[0];
        const server_call *call;
        sl_str field;

        switch (i) {
        case 0: request->stream = NULL; break;
        case 1: request->stream = multi_text(&w, "$all"); break;
        case 2: request->n_records = 0; break;
        case 3:
            request->has_expected_revision = true;
            request->expected_revision = -3;
            break;
        case 4: record->schema = NULL; break;
        case 5: record->schema->name = multi_text(&w, ""); break;
        case 6: record->schema->has_format = false; break;
        case 7: record->record_id = multi_text(&w, "seven"); break;
        case 8: record->record_id = multi_text(&w, "00000000-0000-0000-0000-000000000000"); break;
        default: {
            Google__Protobuf__Value *const value =
                multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE);

            value->number_value = 1e308 * 10;
            multi_add_property(&w, record, "p", value);
        }
        }
        call = multi_session(&w, &request, 1);
        multi_expect(call, SL_STATUS_INVALID_ARGUMENT, "BAD_REQUEST", "google.rpc.BadRequest");
        EXPECT(sl_str_equal(multi_details(call).domain, SL_STR("server")));
        field = multi_details(call).detail;
        EXPECT_ROW(field.bytes > 4 + strlen(rows[i].field) &&
                       memcmp(field.data + field.bytes - multi_details(call).message.bytes - 2 -
                                  strlen(rows[i].field),
                              rows[i].field, strlen(rows[i].field)) == 0,
                   i);
    }
    EXPECT_STR(writes_stored_all(&w), "");
    writes_done(&w);
}

TEST(what_is_no_protobuf_is_a_bad_request)
{
    writes w;

    writes_start(&w);
    multi_expect(server_rig_unary(&w.rig, MULTI_RECORDS_PATH, SL_STR("\x0a\xff")), SL_STATUS_INVALID_ARGUMENT,
                 "BAD_REQUEST", "google.rpc.BadRequest");
    multi_expect(server_rig_unary(&w.rig, MULTI_SESSION_PATH, SL_STR("\x0a\xff")), SL_STATUS_INVALID_ARGUMENT,
                 "BAD_REQUEST", "google.rpc.BadRequest");
    writes_done(&w);
}

TEST(sizes_of_records_and_of_the_whole_have_limits)
{
    writes w;
    multi_request *requests[2];

    writes_init(&w);
    w.rig.settings.event_bytes_max = 100;
    w.rig.settings.append_bytes_max = 200; /* a record has 7 of data, 4 for its type, 45 of metadata */
    server_rig_start(&w.rig);
    requests[0] = multi_request_of(&w, "a", SL_STATE_ANY, 1, 2);
    requests[1] = multi_request_of(&w, "b", SL_STATE_ANY, 3, 1);
    EXPECT_CALL_STATUS(multi_session(&w, requests, 2), SL_STATUS_OK);
    requests[0] = multi_request_of(&w, "a", SL_STATE_ANY, 4, 2);
    requests[1] = multi_request_of(&w, "b", SL_STATE_ANY, 6, 2);
    multi_expect(multi_session(&w, requests, 2), SL_STATUS_ABORTED, "APPEND_TRANSACTION_SIZE_EXCEEDED",
                 "AppendTransactionSizeExceededErrorDetails");
    requests[0]->records[0]->data.len = 60;
    requests[0]->records[0]->data.data = (uint8_t *)(uintptr_t)writes_text(&w, 60, 'x').data;
    multi_expect(multi_session(&w, requests, 1), SL_STATUS_INVALID_ARGUMENT, "APPEND_RECORD_SIZE_EXCEEDED",
                 "AppendRecordSizeExceededErrorDetails");
    EXPECT_STR(writes_stored(&w, "a"), "0:t1 1:t2");
    writes_done(&w);
}

/* What a session holds counts for all calls together, and is given back with it. */
TEST(what_a_session_gathers_is_counted)
{
    writes w;
    multi_request *request;
    server_call *call;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    request->records[0]->data.len = 300 * 1000;
    request->records[0]->data.data = (uint8_t *)(uintptr_t)writes_text(&w, 300 * 1000, 'x').data;
    call = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(call, multi_packed(&w, request));
    server_rig_run(&w.rig);
    EXPECT(w.rig.host->gathered_bytes > 200 * 1000);
    server_call_cancel(call);
    server_rig_run(&w.rig);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    w.rig.host->gathered_bytes = SL_GATHERED_BYTES_MAX;
    multi_expect(multi_session(&w, &request, 1), SL_STATUS_UNAVAILABLE, "SERVER_OVERLOADED",
                 "google.rpc.RetryInfo");
    EXPECT_EQ(w.rig.host->gathered_bytes, SL_GATHERED_BYTES_MAX);
    writes_done(&w);
}

TEST(a_session_that_does_not_end_in_time_is_given_up)
{
    multi_request *request;
    server_call *call;
    writes w;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    call = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(call, multi_packed(&w, request));
    server_rig_run(&w.rig);
    EXPECT(w.rig.host->gathered_bytes > 0);
    server_rig_advance(&w.rig, SL_WRITE_GATHER_NS);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_DEADLINE_EXCEEDED);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

/* Metadata as JSON may be six times as long as it came, and each record has a row: both are the client's doing. */
TEST(what_a_session_makes_of_records_is_counted_too)
{
    enum {
        BYTES = 100 * 1000,
        RECORDS = 2000
    };
    writes w;
    multi_request *request;
    Google__Protobuf__Value *value;
    server_call *call;
    char *text;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    text = sl_arena_copy_str(&w.memory, writes_text(&w, BYTES, '\x01'));
    value = multi_value(&w, GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE);
    value->string_value = text;
    multi_add_property(&w, request->records[0], "p", value);
    call = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(call, multi_packed(&w, request));
    server_rig_run(&w.rig);
    EXPECT(w.rig.host->gathered_bytes > 6 * BYTES);
    server_call_cancel(call);
    server_rig_run(&w.rig);
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    call = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(call, multi_packed(&w, multi_request_of(&w, "s", SL_STATE_ANY, 1, RECORDS)));
    server_rig_run(&w.rig);
    EXPECT(w.rig.host->gathered_bytes >
           writes_request(&w)->arena.given_bytes + RECORDS * sizeof(sl_event_in));
    writes_done(&w);
}

/* What is too much may be tried again later, what is broken stays broken. */
TEST(errors_of_the_server_have_the_statuses_of_version_2)
{
    static const struct {
        sl_err err;
        sl_status status;
        const char *reason, *detail;
    } rows[] = {
        { SL_ERR_NOMEM, SL_STATUS_UNAVAILABLE, "SERVER_OVERLOADED", "google.rpc.RetryInfo" },
        { SL_ERR_FULL, SL_STATUS_UNAVAILABLE, "SERVER_OVERLOADED", "google.rpc.RetryInfo" },
        { SL_ERR_NO_SPACE, SL_STATUS_UNAVAILABLE, "SERVER_OVERLOADED", "google.rpc.RetryInfo" },
        { SL_ERR_STREAMS_MAX, SL_STATUS_UNAVAILABLE, "SERVER_OVERLOADED", "" },
        { SL_ERR_IO, SL_STATUS_INTERNAL, "SERVER_MALFUNCTION", "google.rpc.RetryInfo" },
        { SL_ERR_CORRUPT, SL_STATUS_INTERNAL, "SERVER_MALFUNCTION", "" },
        { SL_ERR_STORE_FAILED, SL_STATUS_INTERNAL, "SERVER_MALFUNCTION", "" },
        { SL_ERR_DRAINING, SL_STATUS_UNAVAILABLE, "SERVER_SHUTTING_DOWN", "google.rpc.RetryInfo" },
        { SL_ERR_INVALID, SL_STATUS_INVALID_ARGUMENT, "BAD_REQUEST", "google.rpc.BadRequest" },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_call(&w.rig, MULTI_SESSION_PATH);

        server_rig_run(&w.rig);
        sl_multi_reply_error(writes_request(&w), rows[i].err);
        server_rig_run_until_ended(&w.rig, call);
        multi_expect(call, rows[i].status, rows[i].reason, rows[i].detail);
    }
    writes_done(&w);
}

/* --- AppendRecords --- */

TEST(records_stand_in_all_in_the_order_in_which_they_were_sent)
{
    writes w;

    writes_start(&w);
    EXPECT_STR(multi_records_answer(&w, multi_records(&w, "abac", 1, NULL, 0)), "a:1 b:0 c:0 @4");
    EXPECT_STR(writes_stored_all(&w), "t1@a t2@b t3@a t4@c");
    EXPECT_STR(multi_records_answer(&w, multi_records(&w, "abac", 1, NULL, 0)), "a:1 b:0 c:0 @4");
    EXPECT_STR(writes_stored_all(&w), "t1@a t2@b t3@a t4@c");
    writes_done(&w);
}

/* A stream with several runs: each expectation, written once and repeated, also behind what was deleted. */
TEST(every_expectation_works_for_a_stream_whose_records_are_not_neighbours)
{
    static const struct {
        int64_t expected;
        uint64_t before;
        bool deleted;
        const char *answer;
    } rows[] = {
        { SL_STATE_NO_STREAM, 0, false, "a:2 b:1 @5" },
        { 1, 2, false, "a:4 b:1 @7" },
        { SL_STATE_EXISTS, 2, false, "a:4 b:1 @7" },
        { SL_STATE_NO_STREAM, 2, true, "a:4 b:1 @9" }, /* metadata twice: deleted, and back again */
        { SL_STATE_DELETED, 2, true, "a:4 b:1 @9" },
        { 1, 2, true, "a:4 b:1 @9" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const multi_check check = { "a", rows[i].expected };
        writes w;

        writes_start(&w);
        if (rows[i].before > 0)
            writes_append(&w, "a", WRITES_ANY, 100, rows[i].before);
        if (rows[i].deleted)
            soft_delete(&w, "a");
        EXPECT_STR(multi_records_answer(&w, multi_records(&w, "ababa", 1, &check, 1)), rows[i].answer);
        if (!rows[i].deleted) { /* a repetition after a deletion is something else, for the real server too */
            EXPECT_STR(multi_records_answer(&w, multi_records(&w, "ababa", 1, &check, 1)), rows[i].answer);
        }
        writes_done(&w);
    }
}

TEST(more_runs_than_a_batch_can_have_are_sorted_by_stream)
{
    enum {
        COUNT = 2 * SL_BATCH_OPS_MAX + 2
    };
    writes w;
    char *const streams = calloc(COUNT + 1, 1);
    sl_cursor *cursor;
    sl_event event;
    uint32_t count;

    writes_start(&w);
    for (size_t i = 0; i < COUNT; i++)
        streams[i] = i % 2 == 0 ? 'a' : 'b';
    EXPECT_STR(multi_records_answer(&w, multi_records(&w, streams, 0, NULL, 0)), "a:4096 b:4096 @8194");
    EXPECT_OK(sl_store_read(w.rig.store, &(sl_read){ .stream = SL_STR("b") }, &cursor));
    for (uint64_t i = 0; i <= SL_BATCH_OPS_MAX; i++) {
        char type[24];

        EXPECT_OK(sl_cursor_next(cursor, &event, 1, &count));
        snprintf(type, sizeof type, "t%llu", (unsigned long long)(2 * i + 1));
        EXPECT(event.revision == i && sl_str_equal(event.type, sl_str_from(type)));
    }
    sl_cursor_close(cursor);
    writes_done(&w);
    free(streams);
}

static const struct check_row {
    const char *stream;
    int64_t expected;
    bool holds;
    int64_t actual;
} check_rows[] = {
    { "none", SL_STATE_NO_STREAM, true, 0 },
    { "none", SL_STATE_EXISTS, false, -1 },
    { "none", 0, false, -1 },
    { "none", SL_STATE_DELETED, false, -1 },
    { "meta", SL_STATE_EXISTS, true, 0 },
    { "live", 1, true, 0 },
    { "live", 2, false, 1 },
    { "live", SL_STATE_EXISTS, true, 0 },
    { "live", SL_STATE_NO_STREAM, false, 1 },
    { "live", SL_STATE_TOMBSTONED, false, 1 },
    { "soft", SL_STATE_DELETED, true, 0 },
    { "soft", SL_STATE_EXISTS, false, -5 },
    { "soft", SL_STATE_NO_STREAM, true, 0 },
    { "soft", SL_STATE_TOMBSTONED, false, -5 },
    { "hard", SL_STATE_TOMBSTONED, true, 0 },
    { "hard", SL_STATE_EXISTS, false, -6 },
    { "hard", SL_STATE_NO_STREAM, false, -6 },
    { "hard", INT64_MAX, false, -6 },
};

TEST(checks_on_streams_that_are_not_written_to_decide_too)
{
    writes w;

    writes_start(&w);
    writes_append(&w, "live", WRITES_ANY, 900, 2);
    writes_append(&w, "soft", WRITES_ANY, 910, 1);
    writes_append(&w, "hard", WRITES_ANY, 920, 1);
    server_rig_append(&w.rig, "$$meta", "$metadata", "{}");
    soft_delete(&w, "soft");
    tombstone(&w, "hard");
    for (size_t i = 0; i < sizeof check_rows / sizeof check_rows[0]; i++) {
        const multi_check check = { check_rows[i].stream, check_rows[i].expected };
        const server_call *const call = multi_records(&w, "w", 1 + i, &check, 1);

        EXPECT_ROW((call->status == SL_STATUS_OK) == check_rows[i].holds, i);
        if (!check_rows[i].holds) {
            const uint8_t actual = (uint8_t)(check_rows[i].actual < 0 ? -2 * check_rows[i].actual - 1
                                                                      : 2 * check_rows[i].actual);
            const sl_str detail =
                (multi_expect(call, SL_STATUS_FAILED_PRECONDITION, "APPEND_CONSISTENCY_VIOLATION",
                              "AppendConsistencyViolationErrorDetails"),
                 multi_details(call).detail);

            EXPECT_ROW((uint8_t)detail.data[detail.bytes - 1] == actual,
                       i); /* the last field is the actual state */
        }
    }
    writes_done(&w);
}

/* Which check was violated is its index; those that hold are not told. */
TEST(every_check_that_does_not_hold_is_told)
{
    const multi_check checks[] = {
        { "a", 5 }, { "x", SL_STATE_NO_STREAM }, { "b", SL_STATE_EXISTS }, { "y", 3 }
    };
    writes w;
    server_call *call;

    writes_start(&w);
    call = multi_records(&w, "ab", 1, checks, 4);
    multi_expect(call, SL_STATUS_FAILED_PRECONDITION, "APPEND_CONSISTENCY_VIOLATION",
                 "AppendConsistencyViolationErrorDetails");
    EXPECT(sl_str_equal(multi_details(call).detail,
                        SL_STR("\x0a\x0b\x08\x00\x12\x07\x0a\x01"
                               "a\x10\x0a\x18\x01" /* check 0: 5, and there is none */
                               "\x0a\x0b\x08\x02\x12\x07\x0a\x01"
                               "b\x10\x07\x18\x01"
                               "\x0a\x0b\x08\x03\x12\x07\x0a\x01"
                               "y\x10\x06\x18\x01")));
    call = multi_records(&w, "ab", 1, checks, 3); /* without y the store decides, and still all are told */
    EXPECT(sl_str_equal(multi_details(call).detail, SL_STR("\x0a\x0b\x08\x00\x12\x07\x0a\x01"
                                                           "a\x10\x0a\x18\x01"
                                                           "\x0a\x0b\x08\x02\x12\x07\x0a\x01"
                                                           "b\x10\x07\x18\x01")));
    EXPECT_STR(writes_stored_all(&w), "");
    writes_done(&w);
}

TEST(checks_that_cannot_be_are_bad_requests)
{
    static const multi_check rows[][2] = {
        { { NULL, 0 }, { "z", 0 } }, { { "", 0 }, { "z", 0 } },  { { "a", SL_STATE_ANY }, { "z", 0 } },
        { { "a", -7 }, { "z", 0 } }, { { "x", 0 }, { "X", 0 } },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        multi_expect(multi_records(&w, "a", 1, rows[i], 2), SL_STATUS_INVALID_ARGUMENT, "BAD_REQUEST",
                     "google.rpc.BadRequest");
    multi_expect(multi_records(&w, "", 1, NULL, 0), SL_STATUS_INVALID_ARGUMENT, "BAD_REQUEST",
                 "google.rpc.BadRequest");
    EXPECT_STR(writes_stored_all(&w), "");
    writes_done(&w);
}

TEST(a_tombstone_under_a_record_without_a_check_is_told_by_name)
{
    writes w;

    writes_start(&w);
    tombstone(&w, "b");
    multi_expect(multi_records(&w, "ab", 1, NULL, 0), SL_STATUS_FAILED_PRECONDITION, "STREAM_TOMBSTONED",
                 "StreamTombstonedErrorDetails");
    EXPECT_STR(writes_stored(&w, "a"), "");
    writes_done(&w);
}

/* --- rights, time, the end --- */

static server_call *records_of_somebody(writes *w, const char *stream, const multi_check *check)
{
    server_call *const call = server_rig_call(&w->rig, MULTI_RECORDS_PATH);
    multi_record *record = multi_record_of(w, stream, 1);

    server_rig_run(&w->rig);
    writes_distrust(w);
    server_call_send(call, multi_records_packed(w, &record, 1, check, check == NULL ? 0 : 1));
    server_call_half_close(call);
    server_rig_run_until_ended(&w->rig, call);
    return call;
}

TEST(every_stream_needs_its_right)
{
    const multi_check check = { "secret", SL_STATE_NO_STREAM };
    writes w;

    writes_start(&w);
    server_rig_append(&w.rig, "$$secret", "$metadata", "{\"$acl\":{\"$r\":\"anna\",\"$w\":\"somebody\"}}");
    multi_expect(records_of_somebody(&w, "$system", NULL), SL_STATUS_PERMISSION_DENIED, "ACCESS_DENIED",
                 "kurrent.rpc.AccessDeniedErrorDetails");
    multi_expect(records_of_somebody(&w, "open", &check), SL_STATUS_PERMISSION_DENIED, "ACCESS_DENIED",
                 "kurrent.rpc.AccessDeniedErrorDetails"); /* looking needs the right to read */
    EXPECT_CALL_STATUS(records_of_somebody(&w, "secret", &check), SL_STATUS_OK);
    EXPECT_CALL_STATUS(records_of_somebody(&w, "open", NULL), SL_STATUS_OK);
    writes_done(&w);
}

TEST(version_2_has_words_of_its_own_for_being_late_and_for_stopping)
{
    writes w;
    multi_request *request;
    server_call *late, *cut;

    writes_start(&w);
    request = multi_request_of(&w, "s", SL_STATE_ANY, 1, 1);
    late = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(late, multi_packed(&w, request));
    server_call_half_close(late);
    cut = server_rig_call(&w.rig, MULTI_SESSION_PATH);
    server_call_send(cut, multi_packed(&w, multi_request_of(&w, "t", SL_STATE_ANY, 2, 1)));
    writes_deliver(&w);
    EXPECT_EQ(sl_door_inside(w.rig.host->door), 1);
    sl_clock_manual_advance(&w.rig.time, w.rig.settings.write_timeout_ns);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    sl_host_stop(w.rig.host, "SIGTERM");
    server_rig_run_until_ended(&w.rig, late);
    server_rig_run_until_ended(&w.rig, cut);
    multi_expect(late, SL_STATUS_DEADLINE_EXCEEDED, "OPERATION_TIMEOUT", "google.rpc.RetryInfo");
    multi_expect(cut, SL_STATUS_UNAVAILABLE, "SERVER_SHUTTING_DOWN", "google.rpc.RetryInfo");
    EXPECT_STR(writes_stored_all(&w), "t1@s");
    writes_done(&w);
}

/* S3.13: after the door was shut nothing gets in, and the client hears why. */
TEST(records_that_come_after_the_door_was_shut_are_refused)
{
    writes w;
    server_call *call;

    writes_start(&w);
    sl_door_shut(w.rig.host->door, "SIGTERM");
    call = multi_records(&w, "ab", 1, NULL, 0);
    multi_expect(call, SL_STATUS_UNAVAILABLE, "SERVER_SHUTTING_DOWN", "google.rpc.RetryInfo");
    EXPECT(strstr(call->message, "SIGTERM") != NULL);
    EXPECT_STR(writes_stored_all(&w), "");
    writes_done(&w);
}

TEST(multi_appends_without_memory_end_with_a_status)
{
    for (size_t fail_at = 1; fail_at <= 40; fail_at++) {
        test_alloc counting = { 0 };
        sl_alloc alloc = test_alloc_use(&counting);
        const multi_check check = { "x", SL_STATE_NO_STREAM };
        multi_record *records[3];
        server_call *call;
        writes w;

        writes_init(&w);
        w.rig.alloc = &alloc;
        server_rig_start(&w.rig);
        call = server_rig_call(&w.rig, MULTI_RECORDS_PATH);
        server_rig_run(&w.rig);
        for (size_t i = 0; i < 3; i++)
            records[i] = multi_record_of(&w, i == 1 ? "b" : "a", i);
        counting.fail_at = counting.call_count + fail_at;
        server_call_send(call, multi_records_packed(&w, records, 3, &check, 1));
        server_call_half_close(call);
        server_rig_run(&w.rig);
        server_rig_advance(&w.rig, 60 * WRITES_SECOND_NS);
        EXPECT_ROW(call->ended, fail_at);
        EXPECT_ROW(call->status != SL_STATUS_OK || strlen(writes_stored_all(&w)) > 10, fail_at);
        writes_done(&w);
        EXPECT_ROW(counting.block_count == 0, fail_at);
    }
}

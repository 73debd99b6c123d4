/* tests/unit/server/test_reply.c — every row of the error table: status, text and trailers, as clients match them. */
#include "../base/support.h"
#include "writes.h"

#include "server/door.h"
#include "server/reply.h"

/* A call that is open, and what ends it. */
static server_call *ended_by(writes *w, void (*reply)(sl_request *request))
{
    server_call *const call = server_rig_call(&w->rig, WRITES_APPEND_PATH);

    server_rig_run(&w->rig);
    reply(writes_request(w));
    reply(writes_request(w)); /* a second one is dropped */
    server_rig_run_until_ended(&w->rig, call);
    return call;
}

static void deleted(sl_request *request)
{
    sl_reply_stream_deleted(request, SL_STR("orders-1"));
}

static void wrong_revision(sl_request *request)
{
    sl_reply_wrong_revision(request, SL_STR("s"), WRITES_AT(5), WRITES_NO_STREAM);
}

static void append_too_large(sl_request *request)
{
    sl_reply_append_too_large(request, 1048576);
}

static void event_too_large(sl_request *request)
{
    const sl_uuid id = sl_uuid_from_halves(0x0102030405060708, 0x090a0b0c0d0e0f10);

    sl_reply_event_too_large(request, id, 300, 200);
}

static void missing_metadata(sl_request *request)
{
    sl_reply_missing_metadata(request, SL_STR("content-type"));
}

static void invalid(sl_request *request)
{
    sl_reply_invalid(request, "That is not valid.");
}

static void index_not_found(sl_request *request)
{
    sl_reply_index_not_found(request, SL_STR("i"));
}

static void user_not_found(sl_request *request)
{
    sl_reply_user_not_found(request, SL_STR("anna"));
}

static void user_conflict(sl_request *request)
{
    sl_reply_user_conflict(request, SL_STR("anna"));
}

static void user_busy(sl_request *request)
{
    sl_reply_user_busy(request, SL_STR("anna"));
}

static void thrown(sl_request *request)
{
    sl_reply_thrown(request, "It stumbled.");
}

static void undecodable(sl_request *request)
{
    sl_reply_undecodable(request, SL_ERR_INVALID, "No message.");
}

static void scavenge_not_found(sl_request *request)
{
    sl_reply_scavenge_not_found(request, SL_STR("7"));
}

static const struct reply_row {
    void (*reply)(sl_request *request);
    sl_status status;
    const char *message, *trailers;
} reply_rows[] = {
    { sl_reply_access_denied, SL_STATUS_PERMISSION_DENIED, "Access Denied", "exception=access-denied\n" },
    { sl_reply_unauthenticated, SL_STATUS_UNAUTHENTICATED, "Unauthenticated", "" },
    { deleted, SL_STATUS_FAILED_PRECONDITION, "Event stream 'orders-1' is deleted.",
      "exception=stream-deleted\nstream-name=orders-1\n" },
    { wrong_revision, SL_STATUS_FAILED_PRECONDITION,
      "Delete failed due to WrongExpectedVersion. Stream: s, Expected version: 5, Actual version: -1",
      "exception=wrong-expected-version\nstream-name=s\nexpected-version=5\nactual-version=-1\n" },
    { append_too_large, SL_STATUS_INVALID_ARGUMENT, "Maximum Append Size of 1048576 Exceeded.",
      "exception=maximum-append-size-exceeded\nmaximum-append-size=1048576\n" },
    { event_too_large, SL_STATUS_INVALID_ARGUMENT,
      "Event with Id: 01020304-0506-0708-090a-0b0c0d0e0f10, Size: 300, exceeds Maximum Append Event Size of "
      "200.",
      "exception=maximum-append-event-size-exceeded\nmaximum-append-event-size=200\n"
      "event-id=01020304-0506-0708-090a-0b0c0d0e0f10\nproposed-append-event-size=300\n" },
    { missing_metadata, SL_STATUS_INVALID_ARGUMENT, "Required Metadata Property 'content-type' is missing",
      "exception=missing-required-metadata-property\nrequired-metadata-properties=type,content-type\n" },
    { invalid, SL_STATUS_INVALID_ARGUMENT, "That is not valid.", "" },
    { index_not_found, SL_STATUS_NOT_FOUND, "Index 'i' is not found.",
      "exception=index-not-found\nindex-name=i\n" },
    { sl_reply_too_often, SL_STATUS_UNAUTHENTICATED, "Too many failed log-ins. Wait a moment and try again.",
      "" },
    { sl_reply_not_ready, SL_STATUS_UNAVAILABLE, "Server not ready", "grpc-retry-pushback-ms=-1\n" },
    { thrown, SL_STATUS_UNKNOWN, "Exception was thrown by handler. It stumbled.", "" },
    { undecodable, SL_STATUS_INVALID_ARGUMENT, "No message.", "" },
    { user_busy, SL_STATUS_DEADLINE_EXCEEDED, "Somebody else is changing this user. Try again.",
      "exception=user-conflict\nlogin-name=anna\n" },
    { user_not_found, SL_STATUS_NOT_FOUND, "User 'anna' is not found.",
      "exception=user-not-found\nlogin-name=anna\n" },
    { user_conflict, SL_STATUS_FAILED_PRECONDITION, "Conflict.",
      "exception=user-conflict\nlogin-name=anna\n" },
    { scavenge_not_found, SL_STATUS_NOT_FOUND, "Scavenge id was invalid.",
      "exception=scavenge-not-found\nscavenge-id=7\n" },
};

TEST(every_error_that_clients_know_has_its_status_text_and_trailers)
{
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof reply_rows / sizeof reply_rows[0]; i++) {
        const server_call *const call = ended_by(&w, reply_rows[i].reply);

        EXPECT_ROW(call->status == reply_rows[i].status, i);
        EXPECT_STR(call->message, reply_rows[i].message);
        EXPECT_STR(call->trailers, reply_rows[i].trailers);
    }
    writes_done(&w);
}

/* Expected and actual revisions in the words of the trailers; "" is what is not known. */
TEST(revisions_in_trailers_are_numbers_with_names_for_what_is_none)
{
    static const struct {
        sl_wire_revision expected, actual;
        const char *expected_text, *actual_text;
    } rows[] = {
        { { SL_WIRE_REVISION_ANY, 0 }, { SL_WIRE_REVISION_NUMBER, 0 }, "-2", "0" },
        { { SL_WIRE_REVISION_STREAM_EXISTS, 0 }, { SL_WIRE_REVISION_NO_STREAM, 0 }, "-4", "-1" },
        { { SL_WIRE_REVISION_NO_STREAM, 0 },
          { SL_WIRE_REVISION_NUMBER, SL_REVISION_MAX },
          "-1",
          "9223372036854775807" },
        { { SL_WIRE_REVISION_NUMBER, UINT64_MAX }, { SL_WIRE_REVISION_UNSET, 0 }, "-1", "" },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_call(&w.rig, WRITES_APPEND_PATH);

        server_rig_run(&w.rig);
        sl_reply_wrong_revision(writes_request(&w), SL_STR("s"), rows[i].expected, rows[i].actual);
        server_rig_run_until_ended(&w.rig, call);
        EXPECT_STR(server_call_trailer(call, "expected-version"), rows[i].expected_text);
        EXPECT_STR(server_call_trailer(call, "actual-version"), rows[i].actual_text);
    }
    writes_done(&w);
}

TEST(errors_of_the_store_have_a_status_and_a_sentence)
{
    static const struct {
        sl_err err;
        sl_status status;
        const char *part;
    } rows[] = {
        { SL_ERR_NO_SPACE, SL_STATUS_RESOURCE_EXHAUSTED, "disk" },
        { SL_ERR_STREAMS_MAX, SL_STATUS_RESOURCE_EXHAUSTED, "as many streams as it can hold" },
        { SL_ERR_STORE_FAILED, SL_STATUS_UNAVAILABLE, "restarted" },
        { SL_ERR_CORRUPT, SL_STATUS_DATA_LOSS, "backup" },
        { SL_ERR_INVALID, SL_STATUS_INVALID_ARGUMENT, "rule" },
        { SL_ERR_TOO_LARGE, SL_STATUS_INVALID_ARGUMENT, "larger" },
        { SL_ERR_NOMEM, SL_STATUS_RESOURCE_EXHAUSTED, "memory" },
        { SL_ERR_FULL, SL_STATUS_RESOURCE_EXHAUSTED, "Try again" },
        { SL_ERR_IO, SL_STATUS_UNAVAILABLE, "storage" },
        { SL_ERR_OPEN_FILES, SL_STATUS_RESOURCE_EXHAUSTED, "files" },
        { SL_ERR_LOCKED, SL_STATUS_UNKNOWN, "another process" },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_call(&w.rig, WRITES_APPEND_PATH);

        server_rig_run(&w.rig);
        sl_reply_error(writes_request(&w), rows[i].err);
        server_rig_run_until_ended(&w.rig, call);
        EXPECT_ROW(call->status == rows[i].status && strstr(call->message, rows[i].part) != NULL, i);
        EXPECT_ROW(sl_reply_status_of(rows[i].err) == rows[i].status, i);
        EXPECT_STR(sl_reply_sentence_of(w.rig.host, rows[i].err), call->message);
    }
    EXPECT_EQ(sl_reply_status_of(SL_OK), SL_STATUS_OK);
    writes_done(&w);
}

/* A decoder that has no memory says nothing about the message, and must not be made to. */
TEST(a_message_that_could_not_be_decoded_for_lack_of_memory_is_not_called_invalid)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_rig_run(&w.rig);
    sl_reply_undecodable(writes_request(&w), SL_ERR_NOMEM, NULL);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_RESOURCE_EXHAUSTED);
    writes_done(&w);
}

/* S3.13: who is refused hears why. */
TEST(a_server_that_stops_says_why)
{
    writes w;
    server_call *call;

    writes_start(&w);
    sl_door_shut(w.rig.host->door, "SIGTERM");
    call = ended_by(&w, sl_reply_stopping);
    EXPECT_CALL_STATUS(call, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(call->message, "The server is shutting down: SIGTERM");
    EXPECT_STR(sl_reply_sentence_of(w.rig.host, SL_ERR_DRAINING), "SIGTERM");
    writes_done(&w);
}

/* Trailers carry ASCII only: the engine writes the rest as %XX, and a client that knows that reads the name back. */
TEST(names_that_are_not_ascii_travel_percent_encoded_in_trailers)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_rig_run(&w.rig);
    sl_reply_stream_deleted(writes_request(&w), SL_STR("\xc3\xbc"));
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_STR(call->message, "Event stream '\xc3\xbc' is deleted.");
    EXPECT_STR(server_call_trailer(call, "stream-name"), "%C3%BC");
    writes_done(&w);
}

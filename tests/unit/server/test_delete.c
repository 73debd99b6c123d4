/* tests/unit/server/test_delete.c — Delete and Tombstone: positions, trailers, and what is left of a stream. */
#include "../base/support.h"
#include "writes.h"

#include "server/door.h"
#include "wire/streams_control.h"

static sl_str delete_message(writes *w, sl_str stream, sl_wire_revision expected)
{
    sl_str message;

    EXPECT_OK(sl_delete_request_encode(&(sl_delete_request){ stream, expected }, &w->memory, &message));
    return message;
}

static server_call *removed(writes *w, const char *path, const char *stream, sl_wire_revision expected)
{
    return server_rig_unary(&w->rig, path, delete_message(w, sl_str_from(stream), expected));
}

static uint64_t answered_position(writes *w, const server_call *call)
{
    sl_wire_position position = { 0 };

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_OK(sl_delete_response_decode(call->messages[0], &w->memory, &position, NULL));
    EXPECT_EQ(position.kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(position.commit, position.prepare);
    return position.commit;
}

static sl_stream_state state_of(const writes *w, const char *stream)
{
    sl_stream_info info;

    sl_store_stream(w->rig.store, sl_str_from(stream), &info);
    return info.state;
}

TEST(a_deleted_stream_is_gone_and_goes_on_with_the_next_revision)
{
    writes w;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 3);
    EXPECT_EQ(answered_position(&w, removed(&w, WRITES_DELETE_PATH, "s", WRITES_AT(2))), 4);
    EXPECT_EQ(state_of(&w, "s"), SL_STREAM_SOFT_DELETED);
    EXPECT_STR(writes_stored(&w, "s"), "");
    EXPECT_EQ(writes_append_answer(writes_append(&w, "s", WRITES_NO_STREAM, 4, 1)).current.number, 3);
    EXPECT_STR(writes_stored(&w, "s"), "3:t4");
    writes_done(&w);
}

TEST(a_tombstone_is_for_ever)
{
    writes w;
    const server_call *call;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 1);
    EXPECT_EQ(answered_position(&w, removed(&w, WRITES_TOMBSTONE_PATH, "s", WRITES_ANY)), 2);
    EXPECT_EQ(state_of(&w, "s"), SL_STREAM_TOMBSTONED);
    for (unsigned i = 0; i < 3; i++) {
        call = i == 0   ? writes_append(&w, "s", WRITES_ANY, 2, 1)
               : i == 1 ? removed(&w, WRITES_DELETE_PATH, "s", WRITES_ANY)
                        : removed(&w, WRITES_TOMBSTONE_PATH, "s", WRITES_ANY);
        EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
        EXPECT_STR(call->message, "Event stream 's' is deleted.");
        EXPECT_STR(server_call_trailer(call, "exception"), "stream-deleted");
        EXPECT_STR(server_call_trailer(call, "stream-name"), "s");
    }
    EXPECT_EQ(answered_position(&w, removed(&w, WRITES_TOMBSTONE_PATH, "never", WRITES_NO_STREAM)), 3);
    writes_done(&w);
}

static const struct wrong_row {
    const char *path, *stream;
    sl_wire_revision expected;
    const char *expected_text, *actual_text;
} wrong_rows[] = {
    { WRITES_DELETE_PATH, "never", { SL_WIRE_REVISION_ANY, 0 }, "-2", "-1" },
    { WRITES_DELETE_PATH, "never", { SL_WIRE_REVISION_NO_STREAM, 0 }, "-1", "-1" },
    { WRITES_DELETE_PATH, "never", { SL_WIRE_REVISION_STREAM_EXISTS, 0 }, "-4", "-1" },
    { WRITES_DELETE_PATH, "never", { SL_WIRE_REVISION_NUMBER, 3 }, "3", "-1" },
    { WRITES_DELETE_PATH, "there", { SL_WIRE_REVISION_NUMBER, 3 }, "3", "1" },
    { WRITES_DELETE_PATH, "there", { SL_WIRE_REVISION_NO_STREAM, 0 }, "-1", "1" },
    { WRITES_TOMBSTONE_PATH, "there", { SL_WIRE_REVISION_NUMBER, 0 }, "0", "1" },
    { WRITES_TOMBSTONE_PATH, "never", { SL_WIRE_REVISION_STREAM_EXISTS, 0 }, "-4", "-1" },
};

TEST(a_wrong_revision_ends_the_call_with_what_was_expected_and_what_is)
{
    writes w;

    writes_start(&w);
    writes_append(&w, "there", WRITES_ANY, 1, 2);
    for (size_t i = 0; i < sizeof wrong_rows / sizeof wrong_rows[0]; i++) {
        const struct wrong_row *const row = &wrong_rows[i];
        const server_call *const call = removed(&w, row->path, row->stream, row->expected);
        char text[256];

        EXPECT_ROW(call->status == SL_STATUS_FAILED_PRECONDITION, i);
        EXPECT_STR(server_call_trailer(call, "exception"), "wrong-expected-version");
        EXPECT_STR(server_call_trailer(call, "stream-name"), row->stream);
        EXPECT_STR(server_call_trailer(call, "expected-version"), row->expected_text);
        EXPECT_STR(server_call_trailer(call, "actual-version"), row->actual_text);
        snprintf(
            text, sizeof text,
            "Delete failed due to WrongExpectedVersion. Stream: %s, Expected version: %s, Actual version: %s",
            row->stream, row->expected_text, row->actual_text);
        EXPECT_STR(call->message, text);
    }
    EXPECT_STR(writes_stored(&w, "there"), "0:t1 1:t2");
    writes_done(&w);
}

TEST(deleting_twice_is_allowed_unless_the_stream_has_to_exist)
{
    writes w;
    const server_call *call;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 1);
    EXPECT_CALL_STATUS(removed(&w, WRITES_DELETE_PATH, "s", WRITES_EXISTS), SL_STATUS_OK);
    EXPECT_CALL_STATUS(removed(&w, WRITES_DELETE_PATH, "s", WRITES_ANY), SL_STATUS_OK);
    EXPECT_CALL_STATUS(removed(&w, WRITES_DELETE_PATH, "s", WRITES_NO_STREAM), SL_STATUS_OK);
    call = removed(&w, WRITES_DELETE_PATH, "s", WRITES_EXISTS);
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT_STR(server_call_trailer(call, "exception"), "stream-deleted");
    writes_done(&w);
}

TEST(names_and_expectations_that_cannot_be_are_refused_with_a_sentence)
{
    static const struct {
        sl_str stream;
        sl_wire_revision expected;
        const char *part;
    } rows[] = {
        { SL_STR_INIT(""), { SL_WIRE_REVISION_ANY, 0 }, "empty" },
        { SL_STR_INIT("$all"), { SL_WIRE_REVISION_ANY, 0 }, "$all" },
        { SL_STR_INIT("$$s"), { SL_WIRE_REVISION_ANY, 0 }, "metadata stream" },
        { SL_STR_INIT("\xff"), { SL_WIRE_REVISION_ANY, 0 }, "UTF-8" },
        { SL_STR_INIT("s"), { SL_WIRE_REVISION_UNSET, 0 }, "expected" },
        { SL_STR_INIT("s"), { SL_WIRE_REVISION_NUMBER, UINT64_MAX - 1 }, "expected" },
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const server_call *const call = server_rig_unary(
            &w.rig, WRITES_DELETE_PATH, delete_message(&w, rows[i].stream, rows[i].expected));

        EXPECT_ROW(call->status == SL_STATUS_INVALID_ARGUMENT && strstr(call->message, rows[i].part) != NULL,
                   i);
    }
    EXPECT_CALL_STATUS(server_rig_unary(&w.rig, WRITES_TOMBSTONE_PATH, SL_STR("\x0a\xff")),
                       SL_STATUS_INVALID_ARGUMENT);
    writes_done(&w);
}

static server_call *removed_by_somebody(writes *w, const char *stream)
{
    server_call *const call = server_rig_call(&w->rig, WRITES_DELETE_PATH);

    server_rig_run(&w->rig);
    writes_distrust(w);
    server_call_send(call, delete_message(w, sl_str_from(stream), WRITES_ANY));
    server_call_half_close(call);
    server_rig_run_until_ended(&w->rig, call);
    return call;
}

TEST(deleting_needs_the_right_to_delete)
{
    writes w;
    const server_call *call;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 1);
    server_rig_append(&w.rig, "$$s", "$metadata", "{\"$acl\":{\"$d\":\"anna\",\"$w\":\"somebody\"}}");
    call = removed_by_somebody(&w, "s");
    EXPECT_CALL_STATUS(call, SL_STATUS_PERMISSION_DENIED);
    EXPECT_STR(server_call_trailer(call, "exception"), "access-denied");
    server_rig_append(&w.rig, "$$s", "$metadata", "{\"$acl\":{\"$d\":\"somebody\"}}");
    EXPECT_CALL_STATUS(removed_by_somebody(&w, "s"), SL_STATUS_OK);
    writes_done(&w);
}

TEST(a_delete_that_is_not_durable_in_time_is_told_so_and_done_all_the_same)
{
    writes w;
    server_call *call;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 1);
    call = server_rig_call(&w.rig, WRITES_DELETE_PATH);
    server_call_send(call, delete_message(&w, SL_STR("s"), WRITES_ANY));
    server_call_half_close(call);
    writes_deliver(&w);
    sl_clock_manual_advance(&w.rig.time, w.rig.settings.write_timeout_ns);
    sl_host_tick(w.rig.host, w.rig.time.mono_ns);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_ABORTED);
    EXPECT(strstr(call->message, "Operation timed out: ") == call->message);
    EXPECT_EQ(state_of(&w, "s"), SL_STREAM_SOFT_DELETED);
    writes_done(&w);
}

/* S3.13, S3.14: one that is inside is finished although the server stops; a later one is refused. */
TEST(a_stopping_server_finishes_the_delete_that_is_inside)
{
    writes w;
    server_call *inside, *late;

    writes_start(&w);
    writes_append(&w, "s", WRITES_ANY, 1, 1);
    inside = server_rig_call(&w.rig, WRITES_DELETE_PATH);
    late = server_rig_call(&w.rig, WRITES_TOMBSTONE_PATH);
    server_call_send(inside, delete_message(&w, SL_STR("s"), WRITES_ANY));
    server_call_half_close(inside);
    writes_deliver(&w);
    sl_host_stop(w.rig.host, "SIGTERM");
    sl_door_shut(w.rig.host->door, "SIGTERM");
    server_call_send(late, delete_message(&w, SL_STR("s"), WRITES_ANY));
    server_call_half_close(late);
    server_rig_run_until_ended(&w.rig, inside);
    server_rig_run_until_ended(&w.rig, late);
    EXPECT_CALL_STATUS(inside, SL_STATUS_OK);
    EXPECT_CALL_STATUS(late, SL_STATUS_UNAVAILABLE);
    EXPECT(strstr(late->message, "SIGTERM") != NULL);
    EXPECT_EQ(state_of(&w, "s"), SL_STREAM_SOFT_DELETED);
    writes_done(&w);
}

/* Ids of events that nobody sent are not the same twice, also not among thousands. */
TEST(every_delete_has_an_id_of_its_own)
{
    writes w;
    sl_cursor *cursor;
    sl_event events[2];
    uint32_t count;
    sl_uuid first;

    writes_start(&w);
    for (unsigned i = 0; i < 2; i++)
        removed(&w, WRITES_TOMBSTONE_PATH, i == 0 ? "a" : "b", WRITES_ANY);
    EXPECT_OK(sl_store_read(w.rig.store, &(sl_read){ .from = 0 }, &cursor));
    EXPECT_OK(sl_cursor_next(cursor, events, 1, &count));
    first = events[0].id;
    EXPECT_OK(sl_cursor_next(cursor, events, 1, &count));
    EXPECT(!sl_uuid_equal(first, events[0].id));
    EXPECT_EQ(first.bytes[6] >> 4, 4); /* version 4 */
    sl_cursor_close(cursor);
    writes_done(&w);
}

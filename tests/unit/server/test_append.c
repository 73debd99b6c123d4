/* tests/unit/server/test_append.c — Append: what is written, and what is refused in which words. */
#include "../base/support.h"
#include "writes.h"

#include <string.h>

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

static sl_event first_event(writes *w, const char *stream, sl_cursor **ret_cursor)
{
    sl_event event;
    uint32_t count;

    EXPECT_OK(sl_store_read(w->rig.store, &(sl_read){ .stream = sl_str_from(stream) }, ret_cursor));
    EXPECT_OK(sl_cursor_next(*ret_cursor, &event, 1, &count));
    return event;
}

/* --- what is written --- */

TEST(an_append_is_answered_with_the_revision_and_position_of_its_last_event)
{
    writes w;
    sl_append_response answer;

    writes_start(&w);
    answer = writes_append_answer(writes_append(&w, "orders", WRITES_NO_STREAM, 1, 3));
    EXPECT_EQ(answer.kind, SL_APPEND_RESPONSE_SUCCESS);
    EXPECT_EQ(answer.current.kind, SL_WIRE_REVISION_NUMBER);
    EXPECT_EQ(answer.current.number, 2);
    EXPECT_EQ(answer.position.kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(answer.position.commit, SL_POSITION_FIRST + 2);
    EXPECT_EQ(answer.position.prepare, answer.position.commit);
    answer = writes_append_answer(writes_append(&w, "orders", WRITES_AT(2), 4, 1));
    EXPECT_EQ(answer.current.number, 3);
    EXPECT_STR(writes_stored(&w, "orders"), "0:t1 1:t2 2:t3 3:t4");
    EXPECT_EQ(w.rig.host->counters.events_appended, 4);
    writes_done(&w);
}

TEST(everything_about_an_event_is_stored)
{
    writes w;
    sl_wire_proposed sent;
    sl_cursor *cursor;
    sl_event seen;

    writes_start(&w);
    sent = writes_event(&w, 1);
    sent.custom_metadata = SL_STR("{\"why\":1}");
    EXPECT_CALL_STATUS(append_one(&w, "json", &sent), SL_STATUS_OK);
    seen = first_event(&w, "json", &cursor);
    EXPECT(sl_uuid_equal(seen.id, sent.id.uuid) && seen.is_json);
    EXPECT(sl_str_equal(seen.data, sent.data) && sl_str_equal(seen.metadata, sent.custom_metadata));
    EXPECT_EQ(seen.created_ns, w.rig.time.wall_ns);
    sl_cursor_close(cursor);
    sent.content_type = SL_STR("");
    sent.data = SL_STR("\0\1\2\xff");
    EXPECT_CALL_STATUS(append_one(&w, "binary", &sent), SL_STATUS_OK);
    seen = first_event(&w, "binary", &cursor);
    EXPECT(!seen.is_json && sl_str_equal(seen.data, sent.data));
    sl_cursor_close(cursor);
    writes_done(&w);
}

TEST(an_id_is_the_same_in_both_forms)
{
    writes w;
    sl_wire_proposed sent;
    sl_cursor *cursor;
    sl_event seen;

    writes_start(&w);
    sent = writes_event(&w, 1);
    sent.id.form = SL_WIRE_ID_TEXT;
    EXPECT_CALL_STATUS(append_one(&w, "s", &sent), SL_STATUS_OK);
    sent.id.form = SL_WIRE_ID_STRUCTURED;
    EXPECT_EQ(writes_append_answer(append_one(&w, "s", &sent)).current.number, 0); /* a repetition */
    seen = first_event(&w, "s", &cursor);
    EXPECT(sl_uuid_equal(seen.id, sent.id.uuid));
    sl_cursor_close(cursor);
    writes_done(&w);
}

TEST(large_events_and_names_in_any_script_are_stored)
{
    writes w;
    sl_wire_proposed sent;
    sl_cursor *cursor;
    sl_event seen;

    writes_start(&w);
    sent = writes_event(&w, 1);
    sent.data = writes_text(&w, 1024 * 1024 + 7, 'x');
    sent.type = SL_STR("Bestellung-\xe2\x82\xac-\xf0\x9f\x9a\xb0");
    EXPECT_CALL_STATUS(append_one(&w, "\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7-1", &sent), SL_STATUS_OK);
    seen = first_event(&w, "\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7-1", &cursor);
    EXPECT(sl_str_equal(seen.data, sent.data) && sl_str_equal(seen.type, sent.type));
    sl_cursor_close(cursor);
    writes_done(&w);
}

TEST(an_append_of_nothing_asks_and_writes_nothing)
{
    writes w;
    sl_append_response answer;

    writes_start(&w);
    answer = writes_append_answer(writes_append(&w, "s", WRITES_ANY, 0, 0));
    EXPECT_EQ(answer.kind, SL_APPEND_RESPONSE_SUCCESS);
    EXPECT_EQ(answer.current.kind, SL_WIRE_REVISION_NO_STREAM);
    EXPECT_EQ(answer.position.kind, SL_WIRE_POSITION_GIVEN);
    writes_append(&w, "s", WRITES_ANY, 1, 2);
    answer = writes_append_answer(writes_append(&w, "s", WRITES_AT(1), 0, 0));
    EXPECT_EQ(answer.current.number, 1);
    EXPECT_EQ(answer.position.commit, 2);
    EXPECT_EQ(writes_append_answer(writes_append(&w, "s", WRITES_AT(7), 0, 0)).kind,
              SL_APPEND_RESPONSE_WRONG_REVISION);
    writes_done(&w);
}

/* The commit is one: all of it after the half-close, nothing before, nothing of a call that never half-closes. */
TEST(nothing_is_written_before_the_half_close)
{
    writes w;
    server_call *call;
    sl_wire_proposed event;

    writes_start(&w);
    event = writes_event(&w, 1);
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(call, writes_append_options(&w, SL_STR("s"), WRITES_ANY));
    server_call_send(call, writes_append_event(&w, &event));
    server_rig_run(&w.rig);
    EXPECT_STR(writes_stored(&w, "s"), "");
    EXPECT_EQ(w.rig.host->counters.batches_accepted, 0);
    server_call_cancel(call);
    server_rig_run(&w.rig);
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

/* --- a wrong revision is an answer --- */

TEST(a_wrong_revision_is_an_answer_with_what_was_expected_and_what_is)
{
    static const struct {
        const char *stream;
        sl_wire_revision expected;
        sl_wire_revision_kind kind;
        uint64_t current;
    } rows[] = {
        { "there", { SL_WIRE_REVISION_NO_STREAM, 0 }, SL_WIRE_REVISION_NUMBER, 1 },
        { "there", { SL_WIRE_REVISION_NUMBER, 0 }, SL_WIRE_REVISION_NUMBER, 1 },
        { "there", { SL_WIRE_REVISION_NUMBER, 9 }, SL_WIRE_REVISION_NUMBER, 1 },
        { "there",
          { SL_WIRE_REVISION_NUMBER, UINT64_MAX },
          SL_WIRE_REVISION_NUMBER,
          1 }, /* the old "no stream" */
        { "missing", { SL_WIRE_REVISION_NUMBER, 0 }, SL_WIRE_REVISION_NO_STREAM, 0 },
        { "missing", { SL_WIRE_REVISION_STREAM_EXISTS, 0 }, SL_WIRE_REVISION_NO_STREAM, 0 },
    };
    writes w;

    writes_start(&w);
    writes_append(&w, "there", WRITES_ANY, 1, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_append_response answer =
            writes_append_answer(writes_append(&w, rows[i].stream, rows[i].expected, 10 + i, 1));

        EXPECT_ROW(answer.kind == SL_APPEND_RESPONSE_WRONG_REVISION, i);
        EXPECT_ROW(answer.current.kind == rows[i].kind && answer.current.number == rows[i].current, i);
        EXPECT_ROW(answer.expected.kind == rows[i].expected.kind &&
                       answer.expected.number == rows[i].expected.number,
                   i);
    }
    EXPECT_STR(writes_stored(&w, "there"), "0:t1 1:t2");
    EXPECT_STR(writes_stored(&w, "missing"), "");
    writes_done(&w);
}

TEST(a_repeated_append_is_answered_as_the_first_was)
{
    writes w;
    sl_append_response first, again;

    writes_start(&w);
    first = writes_append_answer(writes_append(&w, "s", WRITES_NO_STREAM, 1, 2));
    writes_append(&w, "s", WRITES_ANY, 3, 1);
    again = writes_append_answer(writes_append(&w, "s", WRITES_NO_STREAM, 1, 2));
    EXPECT_EQ(again.kind, SL_APPEND_RESPONSE_SUCCESS);
    EXPECT_EQ(again.current.number, first.current.number);
    EXPECT_EQ(again.position.commit, first.position.commit);
    EXPECT_STR(writes_stored(&w, "s"), "0:t1 1:t2 2:t3");
    writes_done(&w);
}

/* --- what is refused --- */

static void expect_ended(const server_call *call, sl_status status, const char *part)
{
    EXPECT_CALL_STATUS(call, status);
    if (strstr(call->message, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", call->message, part);
}

TEST(messages_in_the_wrong_order_end_the_call_as_the_real_server_does)
{
    static const char *const rows[] = { "e", "oo", "u", "oeo", "" }; /* options, event, unset */
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
        const sl_wire_proposed event = writes_event(&w, 1);

        for (const char *kind = rows[i]; *kind != 0; kind++)
            server_call_send(call, *kind == 'o'   ? writes_append_options(&w, SL_STR("s"), WRITES_ANY)
                                   : *kind == 'e' ? writes_append_event(&w, &event)
                                                  : SL_STR(""));
        server_call_half_close(call);
        server_rig_run_until_ended(&w.rig, call);
        expect_ended(call, SL_STATUS_UNKNOWN, "Exception was thrown by handler. ");
    }
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

TEST(what_is_no_protobuf_ends_the_call_with_a_reason)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(call, SL_STR("\x0a\xff"));
    server_rig_run_until_ended(&w.rig, call);
    expect_ended(call, SL_STATUS_INVALID_ARGUMENT, "");
    EXPECT(strlen(call->message) > 10);
    writes_done(&w);
}

TEST(an_event_without_type_content_type_or_id_is_refused)
{
    writes w;

    writes_start(&w);
    for (unsigned row = 0; row < 6; row++) {
        sl_wire_proposed event = writes_event(&w, 1);
        const server_call *call;

        if (row == 0)
            event.type = (sl_str){ NULL, 0 };
        if (row == 1)
            event.type = SL_STR("");
        if (row == 2)
            event.content_type = (sl_str){ NULL, 0 };
        if (row == 3)
            event.id.form = SL_WIRE_ID_ABSENT;
        if (row == 4)
            event.id = (sl_wire_id){ .form = SL_WIRE_ID_STRUCTURED };
        if (row == 5)
            event.id = (sl_wire_id){ .form = SL_WIRE_ID_TEXT };
        call = append_one(&w, "s", &event);
        EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
        if (row < 3) {
            EXPECT_STR(server_call_trailer(call, "exception"), "missing-required-metadata-property");
            EXPECT_STR(server_call_trailer(call, "required-metadata-properties"), "type,content-type");
            EXPECT_STR(call->message, row < 2 ? "Required Metadata Property 'type' is missing"
                                              : "Required Metadata Property 'content-type' is missing");
        } else {
            EXPECT(strstr(call->message, "UUID") != NULL);
        }
    }
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

/* data + metadata + twice the characters of the type, where a character beyond the first 65,536 counts as two. */
TEST(the_size_of_an_event_is_counted_as_the_real_server_does)
{
    static const struct {
        sl_str type;
        size_t data_bytes;
        bool fits;
    } rows[] = {
        { SL_STR_INIT("abc"), 94, true },
        { SL_STR_INIT("abc"), 95, false },
        { SL_STR_INIT("a\xe2\x82\xac"), 96, true }, /* two characters of four bytes */
        { SL_STR_INIT("a\xe2\x82\xac"), 97, false },
        { SL_STR_INIT("\xf0\x9f\x9a\xb0"), 96, true }, /* one that counts as two */
        { SL_STR_INIT("\xf0\x9f\x9a\xb0"), 97, false },
    };
    writes w;

    writes_init(&w);
    w.rig.settings.event_bytes_max = 105;
    server_rig_start(&w.rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_wire_proposed event = writes_event(&w, 1 + i);
        const server_call *call;

        event.type = rows[i].type;
        event.data = writes_text(&w, rows[i].data_bytes, 'd');
        event.custom_metadata = SL_STR("mmmmm");
        call = append_one(&w, "s", &event);
        EXPECT_ROW(call->status == (rows[i].fits ? SL_STATUS_OK : SL_STATUS_INVALID_ARGUMENT), i);
        if (rows[i].fits)
            continue;
        EXPECT_STR(server_call_trailer(call, "exception"), "maximum-append-event-size-exceeded");
        EXPECT_STR(server_call_trailer(call, "maximum-append-event-size"), "105");
        EXPECT_STR(server_call_trailer(call, "proposed-append-event-size"), "106");
        EXPECT(server_call_trailer(call, "event-id") != NULL);
    }
    writes_done(&w);
}

TEST(all_events_of_an_append_together_have_a_limit)
{
    writes w;
    const server_call *call;

    writes_init(&w);
    w.rig.settings.append_bytes_max = 3 * (7 + 4); /* {"n":1} and "t1", three times */
    server_rig_start(&w.rig);
    EXPECT_CALL_STATUS(writes_append(&w, "s", WRITES_ANY, 1, 3), SL_STATUS_OK);
    call = writes_append(&w, "s", WRITES_ANY, 4, 4);
    EXPECT_CALL_STATUS(call, SL_STATUS_INVALID_ARGUMENT);
    EXPECT_STR(call->message, "Maximum Append Size of 33 Exceeded.");
    EXPECT_STR(server_call_trailer(call, "exception"), "maximum-append-size-exceeded");
    EXPECT_STR(server_call_trailer(call, "maximum-append-size"), "33");
    EXPECT_STR(writes_stored(&w, "s"), "0:t1 1:t2 2:t3");
    writes_done(&w);
}

TEST(names_that_no_stream_can_have_are_refused_with_a_sentence)
{
    static const struct {
        sl_str name;
        const char *part;
    } rows[] = {
        { SL_STR_INIT(""), "empty" },         { SL_STR_INIT("$all"), "cannot be written" },
        { SL_STR_INIT("$$"), "metadata" },    { SL_STR_INIT("$$$$x"), "metadata" },
        { SL_STR_INIT("a\0b"), "zero byte" }, { SL_STR_INIT("\xff"), "UTF-8" },
    };
    writes w;
    server_call *call;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
        server_call_send(call, writes_append_options(&w, rows[i].name, WRITES_ANY));
        server_rig_run_until_ended(&w.rig, call);
        expect_ended(call, SL_STATUS_INVALID_ARGUMENT, rows[i].part);
    }
    call = server_rig_call(&w.rig, WRITES_APPEND_PATH);
    server_call_send(call, writes_append_options(&w, writes_text(&w, 1023, 'n'), WRITES_ANY));
    server_rig_run_until_ended(&w.rig, call);
    expect_ended(call, SL_STATUS_INVALID_ARGUMENT, "1022");
    writes_done(&w);
}

TEST(an_expectation_has_to_be_there_and_be_one)
{
    const sl_wire_revision rows[] = { { .kind = SL_WIRE_REVISION_UNSET },
                                      WRITES_AT(UINT64_MAX - 1),
                                      WRITES_AT(UINT64_C(1) << 63) };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_call(&w.rig, WRITES_APPEND_PATH);

        server_call_send(call, writes_append_options(&w, SL_STR("s"), rows[i]));
        server_rig_run_until_ended(&w.rig, call);
        expect_ended(call, SL_STATUS_INVALID_ARGUMENT, "expected");
    }
    writes_done(&w);
}

TEST(an_event_type_that_the_store_does_not_take_is_named)
{
    writes w;
    sl_wire_proposed event;

    writes_start(&w);
    event = writes_event(&w, 1);
    event.type = writes_text(&w, 1025, 't');
    expect_ended(append_one(&w, "s", &event), SL_STATUS_INVALID_ARGUMENT, "longer than 1024");
    event = writes_event(&w, 1);
    event.data = writes_text(&w, SL_METADATA_BYTES_MAX + 1, ' ');
    expect_ended(append_one(&w, "$$s", &event), SL_STATUS_INVALID_ARGUMENT, "metadata of a stream");
    writes_done(&w);
}

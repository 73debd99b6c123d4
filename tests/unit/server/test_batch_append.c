/* tests/unit/server/test_batch_append.c — BatchAppend: one answer for each append, in its words, whatever happens to the others. */
#include "../base/support.h"
#include "writes.h"

#include "server/streams/batch_call.h"

static server_call *open_call(writes *w)
{
    return server_rig_call(&w->rig, WRITES_BATCH_PATH);
}

static void expect_success(const server_call *call, size_t index, uint64_t correlation, uint64_t revision)
{
    const sl_batch_append_response answer = writes_batch_answer(call, index);

    EXPECT_EQ(answer.kind, SL_BATCH_APPEND_RESPONSE_SUCCESS);
    EXPECT_EQ(writes_batch_number(&answer), correlation);
    EXPECT_EQ(answer.current.kind, SL_WIRE_REVISION_NUMBER);
    EXPECT_EQ(answer.current.number, revision);
    EXPECT_EQ(answer.position.kind, SL_WIRE_POSITION_GIVEN);
    EXPECT_EQ(answer.position.commit, answer.position.prepare);
    EXPECT_EQ(answer.expected.kind, SL_WIRE_REVISION_UNSET); /* as the real server */
}

/* --- the usual --- */

TEST(appends_of_one_call_are_written_in_order_and_answered_each_once)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < 100; i++)
        writes_batch(&w, call, i, i % 2 == 0 ? "even" : "odd", WRITES_ANY, 2 * i, 2);
    server_rig_run(&w.rig);
    EXPECT(!call->ended);
    EXPECT_EQ(call->message_count, 100);
    for (uint64_t i = 0; i < 100; i++) {
        const sl_batch_append_response answer = writes_batch_answer(call, i);

        expect_success(call, i, i, i / 2 * 2 + 1);
        EXPECT(sl_str_equal(answer.stream, i % 2 == 0 ? SL_STR("even") : SL_STR("odd")));
        EXPECT_EQ(answer.position.commit, 2 * (i + 1));
    }
    server_call_half_close(call);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 100);
    writes_done(&w);
}

TEST(the_half_close_waits_for_answers_and_then_the_call_ends_well)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < 10; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_call_half_close(call);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 10);
    call = open_call(&w);
    server_call_half_close(call);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 0);
    writes_done(&w);
}

TEST(a_correlation_id_comes_back_byte_for_byte)
{
    static const sl_str ids[] = {
        SL_STR_INIT("\x12\x24"
                    "0A0B0C0D-0000-0000-0000-00000000ABCD"), /* text in capitals: a client compares texts */
        SL_STR_INIT("\x12\x26"
                    "{0a0b0c0d-0000-0000-0000-00000000abcd}"),
        SL_STR_INIT("\x0a\x04\x08\x01\x10\x02"),
        SL_STR_INIT("\x0a\x04\x08\x01\x10\x02\x50\x07"), /* with a field that nobody knows */
    };
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char message[128] = { 0x0a };

        message[1] = (char)ids[i].bytes;
        memcpy(message + 2, ids[i].data, ids[i].bytes);
        memcpy(message + 2 + ids[i].bytes, "\x12\x07\x0a\x03\x1a\x01s\x22\x00\x20\x01",
               11); /* stream s, any, final */
        server_call_send(call, (sl_str){ message, 2 + ids[i].bytes + 11 });
    }
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, sizeof ids / sizeof ids[0]);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        EXPECT(sl_str_equal(writes_batch_answer(call, i).correlation, ids[i]));
    writes_done(&w);
}

/* Whole or in parts, an event is stored as it came, with the time at which it came. */
TEST(everything_about_an_event_of_a_batch_is_stored)
{
    for (unsigned in_parts = 0; in_parts < 2; in_parts++) {
        const sl_batch_options options = { .stream = SL_STR("s"), .expected = WRITES_ANY };
        writes w;
        server_call *call;
        sl_wire_proposed sent;
        sl_cursor *cursor;
        sl_event seen;
        uint32_t count;

        writes_start(&w);
        call = open_call(&w);
        sent = writes_event(&w, 1);
        sent.custom_metadata = SL_STR("\0meta");
        sent.content_type = SL_STR("application/octet-stream");
        writes_batch_draft(&w, call,
                           &(sl_batch_append_draft){ .correlation = writes_correlation(1),
                                                     .options = &options,
                                                     .events = &sent,
                                                     .event_count = 1,
                                                     .is_final = in_parts == 0 });
        if (in_parts > 0)
            writes_batch_draft(
                &w, call, &(sl_batch_append_draft){ .correlation = writes_correlation(1), .is_final = true });
        server_rig_run(&w.rig);
        EXPECT_OK(sl_store_read(w.rig.store, &(sl_read){ .stream = SL_STR("s") }, &cursor));
        EXPECT_OK(sl_cursor_next(cursor, &seen, 1, &count));
        EXPECT(sl_uuid_equal(seen.id, sent.id.uuid) && !seen.is_json);
        EXPECT(sl_str_equal(seen.data, sent.data) && sl_str_equal(seen.metadata, sent.custom_metadata));
        EXPECT_EQ(seen.created_ns, w.rig.time.wall_ns);
        sl_cursor_close(cursor);
        writes_done(&w);
    }
}

TEST(an_append_of_no_events_is_answered)
{
    writes w;
    server_call *call;
    sl_batch_append_response answer;

    writes_start(&w);
    call = open_call(&w);
    writes_batch(&w, call, 1, "s", WRITES_NO_STREAM, 0, 0);
    writes_batch(&w, call, 2, "s", WRITES_AT(4), 0, 0);
    server_rig_run(&w.rig);
    answer = writes_batch_answer(call, 0);
    EXPECT_EQ(answer.kind, SL_BATCH_APPEND_RESPONSE_SUCCESS);
    EXPECT_EQ(answer.current.kind, SL_WIRE_REVISION_NO_STREAM);
    EXPECT_EQ(answer.position.kind, SL_WIRE_POSITION_GIVEN);
    writes_expect_error(call, 1, 6, "WrongExpectedVersion", "event_store.client.WrongExpectedVersion");
    writes_done(&w);
}

TEST(many_small_messages_in_one_turn_are_all_written_and_answered)
{
    enum {
        COUNT = 30 * 1000
    };
    writes w;
    server_call *call;
    sl_stream_info info;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < COUNT; i++)
        writes_batch(&w, call, i, "s", WRITES_ANY, i, 1);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, COUNT);
    for (uint64_t i = 0; i < COUNT; i++)
        expect_success(call, i, i, i);
    sl_store_stream(w.rig.store, SL_STR("s"), &info);
    EXPECT_EQ(info.revision, COUNT - 1);
    writes_done(&w);
}

/* --- in parts --- */

/* One part: letters say what it has: o options, f final. */
static void part(writes *w, server_call *call, uint64_t correlation, const char *what, const char *stream,
                 uint64_t number)
{
    const sl_batch_options options = { .stream = sl_str_from(stream), .expected = WRITES_ANY };

    writes_batch_draft(w, call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(correlation),
                                                 .options = strchr(what, 'o') != NULL ? &options : NULL,
                                                 .events = writes_events(w, number, 1),
                                                 .event_count = number == 0 ? 0 : 1,
                                                 .is_final = strchr(what, 'f') != NULL });
}

TEST(appends_in_parts_may_be_mixed_and_each_is_one_commit)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    part(&w, call, 1, "o", "a", 1);
    part(&w, call, 2, "o", "b", 2);
    part(&w, call, 1, "", "", 3);
    writes_batch(&w, call, 9, "whole", WRITES_ANY, 90, 1);
    part(&w, call, 2, "f", "", 4);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 2);
    EXPECT_STR(writes_stored(&w, "a"), "");
    part(&w, call, 1, "", "", 0);
    part(&w, call, 1, "f", "", 5);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 3);
    expect_success(call, 0, 9, 0);
    expect_success(call, 1, 2, 1);
    expect_success(call, 2, 1, 2);
    EXPECT_STR(writes_stored_all(&w), "t90@whole t2@b t4@b t1@a t3@a t5@a");
    EXPECT_EQ(w.rig.host->gathered_bytes, 0);
    writes_done(&w);
}

TEST(parts_of_an_append_that_nobody_knows_are_nothing)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    part(&w, call, 1, "", "", 1);
    part(&w, call, 1, "f", "", 2);
    server_rig_run(&w.rig);
    EXPECT(!call->ended);
    EXPECT_EQ(call->message_count, 0);
    part(&w, call, 1, "o", "s", 3);
    part(&w, call, 1, "of", "another", 4); /* the first options count */
    part(&w, call, 1, "f", "", 5);         /* and after the end it is unknown again */
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_STR(writes_stored(&w, "s"), "0:t3 1:t4");
    writes_done(&w);
}

TEST(an_append_that_is_never_finished_is_forgotten_with_the_call)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    part(&w, call, 1, "o", "s", 1);
    server_call_half_close(call);
    server_rig_run_until_ended(&w.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 0);
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

TEST(what_is_wrong_in_one_part_is_told_at_once_and_the_rest_is_nothing)
{
    writes w;
    server_call *call;
    sl_wire_proposed broken;

    writes_start(&w);
    call = open_call(&w);
    part(&w, call, 1, "o", "s", 1);
    broken = writes_event(&w, 2);
    broken.content_type = (sl_str){ NULL, 0 };
    writes_batch_draft(&w, call,
                       &(sl_batch_append_draft){
                           .correlation = writes_correlation(1), .events = &broken, .event_count = 1 });
    part(&w, call, 1, "f", "", 3);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 1);
    writes_expect_error(call, 0, 3, "BadRequest", "event_store.client.BadRequest");
    EXPECT(sl_str_equal(writes_batch_answer(call, 0).stream, SL_STR("s")));
    EXPECT_STR(writes_stored(&w, "s"), "");
    writes_done(&w);
}

TEST(so_many_appends_may_be_open_in_one_call_and_not_more)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    for (uint64_t i = 0; i < SL_BATCH_OPEN_MAX + 1; i++)
        part(&w, call, i, "o", "s", i + 1);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 1);
    writes_expect_error(call, 0, 8,
                        "The server has as much to do as it can take: nothing was written. Try again later.",
                        "event_store.client.Unknown");
    for (uint64_t i = 0; i < SL_BATCH_OPEN_MAX + 1; i++)
        part(&w, call, i, "f", "", 0);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 1 + SL_BATCH_OPEN_MAX);
    writes_done(&w);
}

/* --- errors inside of answers --- */

TEST(errors_of_one_append_are_answers_and_the_call_goes_on)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    writes_batch(&w, call, 1, "s", WRITES_AT(7), 1, 1);
    writes_batch(&w, call, 2, "", WRITES_ANY, 2, 1);
    writes_batch(&w, call, 3, "s", (sl_wire_revision){ .kind = SL_WIRE_REVISION_UNSET }, 3, 1);
    writes_batch(&w, call, 4, "$all", WRITES_ANY, 4, 1);
    writes_batch(&w, call, 5, "s", WRITES_ANY, 5, 1);
    server_rig_run(&w.rig);
    EXPECT(!call->ended);
    EXPECT_EQ(call->message_count, 5);
    writes_expect_error(call, 0, 3, "BadRequest", "event_store.client.BadRequest");
    writes_expect_error(call, 1, 3, "BadRequest", "event_store.client.BadRequest");
    writes_expect_error(call, 2, 3, "BadRequest", "event_store.client.BadRequest");
    writes_expect_error(call, 3, 6, "WrongExpectedVersion", "event_store.client.WrongExpectedVersion");
    expect_success(call, 4, 5, 0);
    writes_done(&w);
}

/* What the detail says: current_no_stream and expected 7; then current 0 and expected no_stream. */
TEST(a_wrong_revision_has_what_is_and_what_was_expected_in_its_detail)
{
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    writes_batch(&w, call, 1, "s", WRITES_AT(7), 1, 1);
    writes_batch(&w, call, 2, "s", WRITES_ANY, 2, 1);
    writes_batch(&w, call, 3, "s", WRITES_NO_STREAM, 3, 1);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 3);
    EXPECT(sl_str_equal(writes_batch_answer(call, 0).error.detail_value, SL_STR("\x12\x00\x18\x07")));
    EXPECT(sl_str_equal(writes_batch_answer(call, 2).error.detail_value, SL_STR("\x08\x00\x32\x00")));
    writes_done(&w);
}

TEST(a_tombstoned_stream_is_told_as_deleted_with_its_name)
{
    const sl_op op = { .kind = SL_OP_TOMBSTONE,
                       .remove = { .stream = SL_STR("s"), .id = { { 9 } }, .created_ns = 1 } };
    writes w;
    server_call *call;

    writes_start(&w);
    call = open_call(&w);
    writes_batch(&w, call, 1, "s", WRITES_ANY, 1, 1);
    server_rig_run(&w.rig);
    writes_commit(&w, &op);
    writes_batch(&w, call, 2, "s", WRITES_ANY, 2, 1);
    server_rig_run(&w.rig);
    writes_expect_error(call, 1, 5, "StreamDeleted", "event_store.client.StreamDeleted");
    EXPECT(sl_str_equal(writes_batch_answer(call, 1).error.detail_value, SL_STR("\x0a\x03\x1a\x01s")));
    writes_done(&w);
}

TEST(sizes_and_broken_events_are_told_in_their_words)
{
    writes w;
    server_call *call;
    sl_wire_proposed event;
    sl_batch_options options = { .stream = SL_STR("s"), .expected = WRITES_ANY };
    sl_batch_append_draft draft = {
        .options = &options, .events = &event, .event_count = 1, .is_final = true
    };

    writes_init(&w);
    w.rig.settings.event_bytes_max = 20;
    w.rig.settings.append_bytes_max = 33; /* three events as they are made here */
    server_rig_start(&w.rig);
    call = open_call(&w);
    event = writes_event(&w, 1);
    event.data = writes_text(&w, 17, 'd');
    draft.correlation = writes_correlation(1);
    writes_batch_draft(&w, call, &draft);
    event = writes_event(&w, 1);
    event.id = (sl_wire_id){ .form = SL_WIRE_ID_ABSENT };
    writes_batch_draft(&w, call, &draft);
    event = writes_event(&w, 1);
    event.type = (sl_str){ NULL, 0 };
    writes_batch_draft(&w, call, &draft);
    writes_batch(&w, call, 4, "s", WRITES_ANY, 1, 4);
    writes_batch(&w, call, 5, "s", WRITES_ANY, 1, 3);
    server_rig_run(&w.rig);
    EXPECT_EQ(call->message_count, 5);
    writes_expect_error(call, 0, 3, "MaximumAppendEventSizeExceeded",
                        "event_store.client.MaximumAppendEventSizeExceeded");
    EXPECT(sl_str_equal(writes_batch_answer(call, 0).error.detail_value,
                        SL_STR("\x0a\x24"
                               "77000000-0000-0000-0000-000000000001\x10\x15\x18\x14")));
    writes_expect_error(call, 1, 3, "BadRequest", "event_store.client.BadRequest");
    writes_expect_error(call, 2, 3, "BadRequest", "event_store.client.BadRequest");
    EXPECT(sl_str_equal(writes_batch_answer(call, 2).error.detail_value,
                        SL_STR("\x0a\x2c"
                               "Required Metadata Property 'type' is missing")));
    writes_expect_error(call, 3, 3, "MaximumAppendSizeExceeded",
                        "event_store.client.MaximumAppendSizeExceeded");
    EXPECT(sl_str_equal(writes_batch_answer(call, 3).error.detail_value, SL_STR("\x08\x21")));
    expect_success(call, 4, 5, 2);
    writes_done(&w);
}

/* A correlation id that is none: where an answer is possible it is given, otherwise the call cannot go on, but what was accepted
 * before is answered first. */
TEST(a_correlation_id_that_is_none_is_told_or_ends_the_call)
{
    static const struct {
        sl_str message;
        bool ends;
    } rows[] = {
        { SL_STR_INIT("\x0a\x04\x12\x02xy\x12\x07\x0a\x03\x1a\x01s\x22\x00\x20\x01"), false }, /* no UUID */
        { SL_STR_INIT("\x0a\x04\x12\x02xy\x20\x01"), false }, /* the same without options: nothing */
        { SL_STR_INIT("\x12\x07\x0a\x03\x1a\x01s\x22\x00\x20\x01"), true },
        { SL_STR_INIT("\x0a\x00\x12\x07\x0a\x03\x1a\x01s\x22\x00\x20\x01"), true },
        { SL_STR_INIT("\x0a\xff"), true }, /* no protobuf at all */
    };
    writes w;

    writes_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = open_call(&w);

        writes_batch(&w, call, 1, "s", WRITES_ANY, 10 + i, 1);
        server_call_send(call, rows[i].message);
        writes_batch(&w, call, 2, "s", WRITES_ANY, 20 + i, 1);
        server_rig_run(&w.rig);
        EXPECT_ROW(call->ended == rows[i].ends, i);
        EXPECT_ROW(!rows[i].ends || call->status == SL_STATUS_INVALID_ARGUMENT, i);
        EXPECT_ROW(call->message_count == (rows[i].ends ? 1u : i == 0 ? 3u : 2u), i);
        if (i == 0)
            writes_expect_error(call, 0, 3, "BadRequest", "event_store.client.BadRequest");
    }
    writes_done(&w);
}

/* A client echoes the stream without looking; a name that is beyond all limits is cut, not refused with silence. */
TEST(a_name_that_is_far_too_long_is_refused_and_echoed_in_part)
{
    writes w;
    server_call *call;
    const sl_wire_proposed *events;
    sl_batch_options options = { .expected = { .kind = SL_WIRE_REVISION_ANY } };

    writes_start(&w);
    call = open_call(&w);
    events = writes_events(&w, 1, 1);
    options.stream = writes_text(&w, 1000 * 1000, 'n');
    writes_batch_draft(&w, call,
                       &(sl_batch_append_draft){ .correlation = writes_correlation(1),
                                                 .options = &options,
                                                 .events = events,
                                                 .event_count = 1,
                                                 .is_final = true });
    server_rig_run(&w.rig);
    writes_expect_error(call, 0, 3, "BadRequest", "event_store.client.BadRequest");
    EXPECT_EQ(writes_batch_answer(call, 0).stream.bytes, SL_STREAM_NAME_BYTES_MAX + 1);
    writes_done(&w);
}

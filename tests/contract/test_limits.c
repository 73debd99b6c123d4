/* tests/contract/test_limits.c — what is refused at the door, each border from both sides; and what must still work at full
 * size. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>

static sl_err try(rig *r, const sl_op *ops, uint32_t op_count, sl_durability durability)
{
    static answer a; /* lives until the store is closed */
    const sl_err err = submit(r, ops, op_count, durability, &a);

    sl_store_turn(r->store);
    while (err == SL_OK && a.calls == 0)
        sl_store_poll(r->store);
    return err;
}

static sl_err try_one(rig *r, sl_op op)
{
    return try(r, &op, 1, SL_DURABLE_SYNC);
}

static sl_err try_stream(rig *r, sl_str name)
{
    const sl_event_in e = event(1);
    sl_op op = append_op("", ANY, &e, 1);

    op.append.stream = name;
    return try_one(r, op);
}

/* A text of x, ended with a zero. */
static const char *long_text(size_t bytes)
{
    static char text[SL_EVENT_BYTES_MAX + 8];

    memset(text, 'x', bytes);
    text[bytes] = '\0';
    return text;
}

TEST(stream_names_are_checked)
{
    static const struct {
        sl_str name;
        sl_err err;
    } rows[] = {
        { SL_STR_INIT(""), SL_ERR_INVALID },
        { SL_STR_INIT("$all"), SL_ERR_INVALID },
        { SL_STR_INIT("$$"), SL_ERR_INVALID },
        { SL_STR_INIT("$$$$"), SL_ERR_INVALID },
        { SL_STR_INIT("$$$$x"), SL_ERR_INVALID },
        { SL_STR_INIT("a\0b"), SL_ERR_INVALID },
        { SL_STR_INIT("\xff"), SL_ERR_INVALID },
        { SL_STR_INIT("\xed\xa0\x80"), SL_ERR_INVALID },
        { SL_STR_INIT("$"), SL_OK },
        { SL_STR_INIT("$x"), SL_OK },
        { SL_STR_INIT("$$x"), SL_OK },
        { SL_STR_INIT("$$$x"), SL_OK },
        { SL_STR_INIT("$$$all"), SL_OK },
        { SL_STR_INIT("$all2"), SL_OK },
        { SL_STR_INIT(" "), SL_OK },
        { SL_STR_INIT("übergrößenträger-流れ-🚀"), SL_OK },
    };
    rig r = rig_open();

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++)
        EXPECT_ERR(try_stream(&r, rows[i].name), rows[i].err);
    expect_stream(&r, "übergrößenträger-流れ-🚀", 0, 0);
    rig_restart(&r, SL_RESTART_KILLED);
    expect_stream(&r, "übergrößenträger-流れ-🚀", 0, 0);
    rig_close(&r);
}

TEST(a_name_leaves_room_for_its_metadata_stream)
{
    rig r = rig_open();
    char metadata[SL_STREAM_NAME_BYTES_MAX + 2];
    const char *const longest = long_text(SL_STREAM_NAME_BYTES_MAX - 2);

    EXPECT_OK(try_stream(&r, sl_str_from(longest)));
    EXPECT_OK(try_one(&r, delete_op(longest, ANY)));
    EXPECT_EQ(info_of(&r, longest).state, SL_STREAM_SOFT_DELETED);
    snprintf(metadata, sizeof metadata, "$$%s", longest);
    EXPECT_OK(try_stream(&r, sl_str_from(metadata)));
    snprintf(metadata, sizeof metadata, "$$%s", long_text(SL_STREAM_NAME_BYTES_MAX - 1));
    EXPECT_ERR(try_stream(&r, sl_str_from(metadata)), SL_ERR_TOO_LARGE);
    EXPECT_ERR(try_stream(&r, sl_str_from(long_text(SL_STREAM_NAME_BYTES_MAX - 1))), SL_ERR_TOO_LARGE);
    rig_close(&r);
}

TEST(events_are_checked)
{
    rig r = rig_open();
    const char *const longest = long_text(SL_EVENT_TYPE_BYTES_MAX + 1);
    sl_event_in e = event(1);
    const sl_op op = append_op("s", ANY, &e, 1);

    e.type = SL_STR("");
    EXPECT_ERR(try_one(&r, op), SL_ERR_INVALID);
    e.type = SL_STR("\xc0\x80");
    EXPECT_ERR(try_one(&r, op), SL_ERR_INVALID);
    e.type = SL_STR("a\0");
    EXPECT_ERR(try_one(&r, op), SL_ERR_INVALID);
    e.type = (sl_str){ longest, SL_EVENT_TYPE_BYTES_MAX + 1 };
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e.type = (sl_str){ longest, SL_EVENT_TYPE_BYTES_MAX };
    EXPECT_OK(try_one(&r, op));
    e = event(2);
    e.id = (sl_uuid){ 0 };
    EXPECT_ERR(try_one(&r, op), SL_ERR_INVALID);
    e = event(3);
    e.type = SL_STR("empty");
    e.data = e.metadata = (sl_str){ 0 }; /* nothing is a valid content */
    EXPECT_OK(try_one(&r, op));
    expect_stream(&r, "s", 0, 1);
    rig_close(&r);
}

TEST(other_ops_are_checked)
{
    rig r = rig_open();
    const sl_effect answer_effect = { .kind = SL_EFFECT_SETTLED }, record = { .kind = SL_EFFECT_EPOCH };
    sl_effect many[SL_OP_RECORDS_MAX + 1] = { { .kind = SL_EFFECT_EPOCH } }; /* all zero: each is one */
    sl_op records = record_op(1, many);
    const sl_event_in e = event(1);
    sl_op no_id = delete_op("s", ANY), event_op = append_op("s", ANY, &e, 1), create = create_op(3, "g");
    sl_op large = create_op(4, long_text(SL_GROUP_DEFINITION_BYTES_MAX + 1));

    EXPECT_ERR(try(&r, NULL, 0, SL_DURABLE_SYNC), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, delete_op("$$s", ANY)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, tombstone_op("$$s", ANY)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, delete_op("$all", ANY)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, tombstone_op("", ANY)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, append_op("s", EXACT(SL_REVISION_MAX + 1), &e, 1)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, delete_op("s", EXACT(NONE))), SL_ERR_INVALID);
    no_id.remove.id = (sl_uuid){ 0 };
    EXPECT_ERR(try_one(&r, no_id), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, create_op(0, "g")), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, drop_op(0)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, record_op(0, &record)), SL_ERR_INVALID);
    EXPECT_ERR(try_one(&r, record_op(1, &answer_effect)), SL_ERR_INVALID);
    records.group_record.record_count = SL_OP_RECORDS_MAX + 1;
    EXPECT_ERR(try_one(&r, records), SL_ERR_TOO_LARGE);
    records.group_record.record_count = 0;
    EXPECT_ERR(try_one(&r, records), SL_ERR_INVALID);
    many[SL_OP_RECORDS_MAX - 1].kind = SL_EFFECT_SETTLED;
    records.group_record.record_count = SL_OP_RECORDS_MAX;
    EXPECT_ERR(try_one(&r, records), SL_ERR_INVALID);
    EXPECT_ERR(try(&r, &event_op, 1, SL_DURABLE_WRITTEN), SL_ERR_INVALID);
    EXPECT_OK(try(&r, &create, 1, SL_DURABLE_WRITTEN));
    EXPECT_ERR(try_one(&r, large), SL_ERR_TOO_LARGE);
    large.group_create.definition.bytes--;
    EXPECT_OK(try_one(&r, large));
    EXPECT_EQ(count_all(&r), 0);
    rig_close(&r);
}

/* The same limits for a definition that comes later. */
TEST(updates_of_groups_are_checked)
{
    rig r = rig_open();
    const sl_op create = create_op(3, "g"), update = update_op(3, "h");
    sl_op large = update_op(3, long_text(SL_GROUP_DEFINITION_BYTES_MAX + 1));

    EXPECT_OK(try_one(&r, create));
    EXPECT_ERR(try_one(&r, update_op(0, "h")), SL_ERR_INVALID);
    EXPECT_OK(try(&r, &update, 1, SL_DURABLE_WRITTEN));
    EXPECT_OK(try_one(&r, update));
    EXPECT_ERR(try_one(&r, large), SL_ERR_TOO_LARGE);
    large.group_update.definition.bytes--;
    EXPECT_OK(try_one(&r, large));
    rig_close(&r);
}

/* What definitions bring counts for a batch, as data of events does. */
TEST(definitions_count_for_the_size_of_a_batch)
{
    enum {
        MANY = SL_BATCH_BYTES_MAX / SL_GROUP_DEFINITION_BYTES_MAX
    };
    static sl_op ops[MANY];
    rig r = rig_open_large();
    const char *const text = long_text(SL_GROUP_DEFINITION_BYTES_MAX);

    ops[0] = create_op(1, "g");
    for (int i = 1; i < MANY; i++)
        ops[i] = update_op(1, text);
    EXPECT_ERR(try(&r, ops, MANY, SL_DURABLE_SYNC), SL_ERR_TOO_LARGE);
    EXPECT_OK(try(&r, ops, MANY - 1, SL_DURABLE_SYNC));
    rig_close(&r);
}

TEST(an_event_may_be_as_large_as_the_limit_and_no_larger)
{
    rig r = rig_open_large();
    const char *const data = long_text(SL_EVENT_BYTES_MAX + 1);
    const sl_read how = { .stream = SL_STR("s") };
    sl_event_in e = event(1);
    const sl_op op = append_op("s", ANY, &e, 1);
    sl_cursor *cursor = NULL;
    sl_event read;

    e.metadata = (sl_str){ data, 100 };
    e.data = (sl_str){ data, SL_EVENT_BYTES_MAX - 99 };
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e.data.bytes = SIZE_MAX; /* a sum that wraps */
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e.data.bytes = 100;
    e.metadata.bytes = SIZE_MAX;
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e.metadata.bytes = 100;
    e.data.bytes = SL_EVENT_BYTES_MAX - 100;
    EXPECT_OK(try_one(&r, op));
    rig_restart(&r, SL_RESTART_KILLED);
    EXPECT_OK(sl_store_read(r.store, &how, &cursor));
    EXPECT_OK(next_one(&r, cursor, &read));
    EXPECT(sl_str_equal(read.data, e.data) && sl_str_equal(read.metadata, e.metadata));
    sl_cursor_close(cursor);
    rig_close(&r);
}

TEST(metadata_has_a_limit_of_its_own)
{
    rig r = rig_open();
    sl_event_in e = event(1);
    const sl_op op = append_op("$$s", ANY, &e, 1);

    e.data = (sl_str){ long_text(SL_METADATA_BYTES_MAX + 1), SL_METADATA_BYTES_MAX + 1 };
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e.data.bytes--;
    EXPECT_OK(try_one(&r, op));
    rig_close(&r);
}

TEST(a_batch_may_be_as_large_as_the_limit_and_no_larger)
{
    rig r = rig_open_large();
    const char *const data = long_text(SL_EVENT_BYTES_MAX);
    const size_t heads = 3 * SL_RECORD_HEAD_BYTES + strlen("s") + strlen("type-1") + strlen("type-2");
    sl_event_in e[] = { event(1), event(2) };
    const sl_op op = append_op("s", ANY, e, 2);

    e[0].metadata = e[1].metadata = (sl_str){ 0 };
    e[0].data = (sl_str){ data, SL_EVENT_BYTES_MAX };
    e[1].data = (sl_str){ data, SL_BATCH_BYTES_MAX - SL_EVENT_BYTES_MAX - heads + 1 };
    EXPECT_ERR(try_one(&r, op), SL_ERR_TOO_LARGE);
    e[1].data.bytes--;
    EXPECT_OK(try_one(&r, op));
    EXPECT_EQ(info_of(&r, "s").revision, 1);
    rig_close(&r);
}

TEST(a_batch_has_a_limit_of_ops)
{
    rig r = rig_open_large();
    sl_op *const ops = calloc(SL_BATCH_OPS_MAX + 1, sizeof *ops);
    sl_event_in e = event(1);

    EXPECT(ops != NULL);
    for (uint32_t i = 0; i <= SL_BATCH_OPS_MAX; i++)
        ops[i] = append_op("s", ANY, &e, 1); /* all but the first are repeats */
    EXPECT_ERR(try(&r, ops, SL_BATCH_OPS_MAX + 1, SL_DURABLE_SYNC), SL_ERR_TOO_LARGE);
    EXPECT_OK(try(&r, ops, SL_BATCH_OPS_MAX, SL_DURABLE_SYNC));
    expect_stream(&r, "s", 0, 0);
    free(ops);
    rig_close(&r);
}

/* Reviving writes metadata that nobody sent: it counts too. */
TEST(reviving_many_streams_with_large_metadata_is_refused_as_a_whole)
{
    enum {
        STREAMS = 600
    };
    static char json[SL_METADATA_BYTES_MAX], names[STREAMS][16];
    static sl_op ops[STREAMS];
    rig r = rig_open_large();
    sl_event_in e = event(1);

    snprintf(json, sizeof json, "{\"$tb\":9223372036854775807,\"x\":\"%.*s\"}", SL_METADATA_BYTES_MAX - 100,
             long_text(SL_METADATA_BYTES_MAX - 100));
    for (size_t i = 0; i < STREAMS; i++) {
        snprintf(names[i], sizeof names[i], "s%zu", i);
        ops[i] = append_op(names[i], ANY, &e, 1);
        EXPECT_OK(set_metadata(&r, names[i], json).err);
    }
    EXPECT_ERR(try(&r, ops, STREAMS, SL_DURABLE_SYNC), SL_ERR_TOO_LARGE);
    EXPECT_EQ(info_of(&r, "s0").state, SL_STREAM_SOFT_DELETED);
    EXPECT_OK(try(&r, ops, 10, SL_DURABLE_SYNC));
    expect_stream(&r, "s0", 0, 0);
    rig_close(&r);
}

TEST(ten_thousand_streams_are_all_there_after_a_restart)
{
    enum {
        STREAMS = 10 * 1000,
        BATCH = 1000
    };
    static char names[STREAMS][32];
    static sl_op ops[BATCH];
    rig r = rig_open();
    sl_event_in e = event(1);

    for (size_t i = 0; i < STREAMS; i++) {
        snprintf(names[i], sizeof names[i], "stream-%zu", i);
        ops[i % BATCH] = append_op(names[i], NO_STREAM, &e, 1);
        if (i % BATCH == BATCH - 1)
            EXPECT_OK(try(&r, ops, BATCH, SL_DURABLE_SYNC));
    }
    rig_restart(&r, SL_RESTART_KILLED);
    EXPECT_EQ(count_all(&r), STREAMS);
    for (size_t i = 0; i < STREAMS; i++)
        EXPECT_EQ(info_of(&r, names[i]).revision, 0);
    expect_stream(&r, "stream-9999", 0, 0);
    EXPECT_EQ(info_of(&r, "stream-10000").state, SL_STREAM_MISSING);
    rig_close(&r);
}

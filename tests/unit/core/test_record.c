/* Records as bytes: what is written is read, and nothing else is. */
#include "rig.h"

#include "core/record.h"

#include <string.h>

/* A group that goes through every kind of record, and a snapshot of it. */
static rig *full_life(void)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    sl_uuid resume = rig_id(SL_LANE_MAIN, 2);
    const sl_join again = {
        .session = rig_session(1), .window = 9, .extensions = true, .resume = &resume, .resume_count = 1
    };
    uint64_t c2 = 0;

    r->setup.settings.checkpoint_count_max = 1;
    EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
    rig_offer(r, 6);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_nack(r, c1, 1, SL_NACK_PARK));
    EXPECT_OK(rig_started(r, c1, 2));
    EXPECT_OK(rig_extend(r, c1, 2, SECOND));
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    EXPECT_OK(sl_group_join(r->group, &again, r->now_ns, &c2));
    EXPECT_OK(rig_ack(r, c2, 4));
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    sl_group_snapshot(r->group, r->setup.sink);
    return r;
}

TEST(every_kind_of_record_is_read_as_it_was_written)
{
    rig *r = full_life();
    uint8_t bytes[SL_RECORD_BYTES_MAX], again[SL_RECORD_BYTES_MAX];
    bool seen[SL_EFFECT_COUNT_] = { false };

    for (size_t i = 0; i < r->effect_count; i++) {
        const sl_effect *const e = &r->effects[i];
        sl_effect decoded;
        size_t used = 0;

        if (!sl_effect_is_record(e->kind))
            continue;
        const size_t size = sl_record_encode(e, bytes);
        EXPECT_OK(sl_record_decode(bytes, size, &decoded, &used));
        EXPECT_EQ(used, size);
        EXPECT_EQ(decoded.kind, e->kind);
        EXPECT_EQ(sl_record_encode(&decoded, again), size);
        EXPECT_MEM(again, bytes, size);
        seen[e->kind] = true;
    }
    for (int kind = 0; kind < SL_EFFECT_COUNT_; kind++)
        EXPECT(seen[kind] || !sl_effect_is_record((sl_effect_kind)kind));
    rig_free(r);
}

TEST(a_record_that_is_cut_short_or_has_an_impossible_value_is_corrupt)
{
    rig *r = full_life();
    uint8_t bytes[SL_RECORD_BYTES_MAX];
    sl_effect decoded;
    size_t used;

    for (size_t i = 0; i < r->effect_count; i++) {
        if (!sl_effect_is_record(r->effects[i].kind))
            continue;
        const size_t size = sl_record_encode(&r->effects[i], bytes);
        for (size_t cut = 0; cut < size; cut++)
            EXPECT_ERR(sl_record_decode(bytes, cut, &decoded, &used), SL_ERR_CORRUPT);
        bytes[0] = SL_EFFECT_DELIVER; /* an answer is no record */
        EXPECT_ERR(sl_record_decode(bytes, size, &decoded, &used), SL_ERR_CORRUPT);
        bytes[0] = SL_EFFECT_COUNT_;
        EXPECT_ERR(sl_record_decode(bytes, size, &decoded, &used), SL_ERR_CORRUPT);
    }
    memset(bytes, 0xff, sizeof bytes);
    bytes[0] = SL_EFFECT_RULE; /* its last byte is a boolean */
    EXPECT_ERR(sl_record_decode(bytes, sizeof bytes, &decoded, &used), SL_ERR_CORRUPT);
    bytes[0] = SL_EFFECT_CHECKPOINT; /* its first is a lane */
    EXPECT_ERR(sl_record_decode(bytes, sizeof bytes, &decoded, &used), SL_ERR_CORRUPT);
    rig_free(r);
}

TEST(effects_have_names_and_know_whether_they_are_records)
{
    EXPECT_STR(sl_effect_name(SL_EFFECT_SETTLE), "SETTLE");
    EXPECT_STR(sl_effect_name(SL_EFFECT_COUNT_), "unknown");
    EXPECT(sl_effect_is_record(SL_EFFECT_LEASE));
    EXPECT(!sl_effect_is_record(SL_EFFECT_DRAINED));
    EXPECT(!sl_effect_is_record(SL_EFFECT_COUNT_));
}

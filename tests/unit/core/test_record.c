/* Records as bytes: what is written is read, and nothing else is. */
#include "rig.h"

#include "core/record.h"

#include <assert.h>
#include <stdlib.h>
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

/* --- the format ---
 *
 * Every field of every kind has a value of its own here, and the bytes were made by hand (a script that packs the
 * layout of record.h), not by the code. A field that is forgotten in both directions, two that are swapped, or a
 * kind that changes its number shows here and nowhere else; what was written yesterday must be read tomorrow. */

static const struct golden {
    sl_effect record;
    const char *hex;
} golden[] = {
    { { .kind = SL_EFFECT_EPOCH,
        .epoch = { .epoch = UINT64_C(0x1100010203040501), .messages_max = 0x61626364 } },
      "00010504030201001164636261" },
    { { .kind = SL_EFFECT_SETTINGS,
        .settings = { .strategy = SL_STRATEGY_PINNED_BY_CORRELATION,
                      .key_order = true,
                      .lease_ns = UINT64_C(0x1100020406080a02),
                      .retries_max = 0x21030609,
                      .kills_max = 0x2104080c,
                      .interrupts_max = 0x21050a0f,
                      .backoff = { .kind = SL_RETRY_EXPONENTIAL,
                                   .factor_permille = 0x51000006,
                                   .jitter_permille = 0x51000007,
                                   .attempts_max = 0x51000008,
                                   .delay_first_ns = UINT64_C(0x5200000000000009),
                                   .delay_step_ns = UINT64_C(0x520000000000000a),
                                   .delay_max_ns = UINT64_C(0x520000000000000b),
                                   .delay_total_max_ns = UINT64_C(0x520000000000000c),
                                   .retry_after_max_ns = UINT64_C(0x520000000000000d) },
                      .buffer_max = 0x210e1c2a,
                      .consumers_max = 0x210f1e2d,
                      .checkpoint_after_ns = UINT64_C(0x1100102030405010),
                      .checkpoint_count_min = 0x21112233,
                      .checkpoint_count_max = 0x21122436 } },
      "010301020a080604020011090603210c0804210f0a05210306000051070000510800005109000000000000520a000000"
      "000000520b000000000000520c000000000000520d000000000000522a1c0e212d1e0f21105040302010001133221121"
      "36241221" },
    { { .kind = SL_EFFECT_RULE, .rule = { .tag = UINT64_C(0x11001326394c5f13), .stop = true } },
      "02135f4c392613001101" },
    { { .kind = SL_EFFECT_JOIN,
        .join = { .consumer = UINT64_C(0x110014283c506414),
                  .session = { { 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x5b, 0x5c,
                                 0x5d, 0x5e, 0x5f } },
                  .sends_started = true } },
      "031464503c28140011505152535455565758595a5b5c5d5e5f01" },
    { { .kind = SL_EFFECT_GONE, .gone = { .consumer = UINT64_C(0x1100162c42586e16) } },
      "04166e58422c160011" },
    { { .kind = SL_EFFECT_LEASE,
        .lease = { .place = { SL_LANE_PARKED, UINT64_C(0x3100000000000017) },
                   .id = { { 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c,
                             0x8d, 0x8e, 0x8f } },
                   .key = UINT64_C(0x110019324b647d19),
                   .consumer = UINT64_C(0x11001a344e68821a),
                   .token = UINT64_C(0x11001b36516c871b),
                   .until_ns = UINT64_C(0x11001c3854708c1c),
                   .deliveries = 0x211d3a57 } },
      "05011700000000000031808182838485868788898a8b8c8d8e8f197d644b321900111a82684e341a00111b876c51361b"
      "00111c8c7054381c0011573a1d21" },
    { { .kind = SL_EFFECT_STARTED,
        .started = { .place = { SL_LANE_PARKED, UINT64_C(0x310000000000001e) },
                     .token = UINT64_C(0x11001f3e5d7c9b1f) } },
      "06011e000000000000311f9b7c5d3e1f0011" },
    { { .kind = SL_EFFECT_EXTEND,
        .extend = { .place = { SL_LANE_PARKED, UINT64_C(0x3100000000000020) },
                    .token = UINT64_C(0x110021426384a521),
                    .until_ns = UINT64_C(0x110022446688aa22) } },
      "0701200000000000003121a584634221001122aa886644220011" },
    { { .kind = SL_EFFECT_MOVE,
        .move = { .place = { SL_LANE_PARKED, UINT64_C(0x3100000000000023) },
                  .token = UINT64_C(0x110024486c90b424),
                  .consumer = UINT64_C(0x1100254a6f94b925) } },
      "0801230000000000003124b4906c4824001125b9946f4a250011" },
    { { .kind = SL_EFFECT_BACK,
        .back = { .place = { SL_LANE_PARKED, UINT64_C(0x3100000000000026) },
                  .cause = SL_BACK_DIED,
                  .charged = true,
                  .counters = { .deliveries = 0x41000027,
                                .attempts = 0x41000028,
                                .interrupts = 0x41000029,
                                .kills = 0x4100002a },
                  .not_before_ns = UINT64_C(0x11002b5681acd72b) } },
      "0901260000000000003105012700004128000041290000412a0000412bd7ac81562b0011" },
    { { .kind = SL_EFFECT_SETTLE,
        .settle = { .place = { SL_LANE_PARKED, UINT64_C(0x310000000000002c) },
                    .id = { { 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc,
                              0xdd, 0xde, 0xdf } },
                    .from = UINT64_C(0x11002e5c8ab8e62e),
                    .to = UINT64_C(0x11002f5e8dbceb2f),
                    .cause = SL_SETTLE_VANISHED } },
      "0a012c00000000000031d0d1d2d3d4d5d6d7d8d9dadbdcdddedf2ee6b88a5c2e00112febbc8d5e2f001102" },
    { { .kind = SL_EFFECT_PARK,
        .park = { .place = { SL_LANE_PARKED, UINT64_C(0x3100000000000030) },
                  .id = { { 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c,
                            0x1d, 0x1e, 0x1f } },
                  .from = UINT64_C(0x1100326496c8fa32),
                  .to = UINT64_C(0x1100336699ccff33),
                  .cause = SL_PARK_KILLS,
                  .counters = { .deliveries = 0x41000034,
                                .attempts = 0x41000035,
                                .interrupts = 0x41000036,
                                .kills = 0x41000037 } } },
      "0b013000000000000031101112131415161718191a1b1c1d1e1f32fac8966432001133ffcc9966330011023400004135"
      "0000413600004137000041" },
    { { .kind = SL_EFFECT_CHECKPOINT,
        .checkpoint = { .lane = SL_LANE_PARKED, .below = UINT64_C(0x11003870a8e11838) } },
      "0c013818e1a870380011" },
    { { .kind = SL_EFFECT_PASSED,
        .passed = { .lane = SL_LANE_PARKED,
                    .from = UINT64_C(0x11003972abe51d39),
                    .to = UINT64_C(0x11003a74aee9223a) } },
      "0d01391de5ab723900113a22e9ae743a0011" },
    { { .kind = SL_EFFECT_MESSAGE,
        .message = { .place = { SL_LANE_PARKED, UINT64_C(0x310000000000003b) },
                     .id = { { 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc,
                               0xcd, 0xce, 0xcf } },
                     .key = UINT64_C(0x11003d7ab7f5313d),
                     .consumer = UINT64_C(0x11003e7cbaf9363e),
                     .token = UINT64_C(0x11003f7ebdfd3b3f),
                     .until_ns = UINT64_C(0x11004080c1014040),
                     .counters = { .deliveries = 0x41000041,
                                   .attempts = 0x41000042,
                                   .interrupts = 0x41000043,
                                   .kills = 0x41000044 },
                     .not_before_ns = UINT64_C(0x1100458ad0155945),
                     .started = true,
                     .charged = true,
                     .ended = true } },
      "0e013b00000000000031c0c1c2c3c4c5c6c7c8c9cacbcccdcecf3d31f5b77a3d00113e36f9ba7c3e00113f3bfdbd7e3f"
      "0011404001c18040001141000041420000414300004144000041455915d08a450011010101" },
};

static size_t unhex(const char *hex, uint8_t *bytes)
{
    size_t count = 0;

    for (; hex[0] != 0; hex += 2) {
        const char pair[3] = { hex[0], hex[1], 0 };
        bytes[count++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return count;
}

TEST(the_bytes_of_every_kind_of_record_are_those_of_yesterday)
{
    bool seen[SL_EFFECT_COUNT_] = { false };

    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        uint8_t wanted[SL_RECORD_BYTES_MAX + 1], bytes[SL_RECORD_BYTES_MAX];
        const size_t size = unhex(golden[i].hex, wanted);
        sl_effect decoded;
        size_t used = 0;

        EXPECT_EQ(sl_record_encode(&golden[i].record, bytes), size);
        EXPECT_MEM(bytes, wanted, size);
        EXPECT_OK(sl_record_decode(wanted, size, &decoded, &used));
        EXPECT_EQ(used, size);
        EXPECT_EQ(sl_record_encode(&decoded, bytes), size);
        EXPECT_MEM(bytes, wanted, size);
        seen[golden[i].record.kind] = true;
    }
    for (int kind = 0; kind < SL_EFFECT_COUNT_; kind++)
        EXPECT_EQ(seen[kind], sl_effect_is_record((sl_effect_kind)kind));
}

/* A new field of one of these needs a new kind of record, or it is not stored. */
static_assert(sizeof(sl_counters) == 16, "BACK, PARK and MESSAGE hold four counters");
static_assert(sizeof(sl_retry_policy) == 56, "SETTINGS holds these fields");
static_assert(sizeof(sl_settings) == 112, "SETTINGS holds these fields");

/* From records alone: exactly the unsettled messages, their counters, their leases (S1.6 restart, B4). */
#include "rig.h"

#include "core/group_private.h"

#include <stdlib.h>
#include <string.h>

TEST(B4_acks_above_the_checkpoint_stay_acked_over_a_restart)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 9, false);

    rig_offer(r, 6);
    for (uint64_t p = 1; p < 6; p += 2)
        EXPECT_OK(rig_ack(r, c1, p));
    rig_restart(r);
    rig_join(r, 9);
    rig_said(r);
    rig_read_again(r);
    EXPECT_SAID(r, ""); /* 0, 2 and 4 are leased to who is away */
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_DELIVER), "c1<-0(1), c1<-2(1), c1<-4(1)");
    rig_free(r);
}

TEST(what_was_never_delivered_is_read_again_as_new)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 3);
    EXPECT_OK(rig_ack(r, c1, 0)); /* 1 is delivered, 2 never was */
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_OK(rig_release(r, c1, 2));
    rig_restart(r);
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 2);
    rig_free(r);
}

TEST(counters_and_pauses_survive)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);
    const sl_effect *last;

    rig_offer(r, 1);
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_OK(rig_nack_after(r, c1, 0, 5 * SECOND));
    rig_restart(r);
    rig_join(r, 1);
    rig_read_again(r);
    EXPECT_EQ(rig_tick(r, 0), 5 * SECOND);
    rig_tick(r, 5 * SECOND);
    last = rig_last(r, SL_EFFECT_DELIVER);
    EXPECT_EQ(last->deliver.counters.deliveries, 3);
    EXPECT_EQ(last->deliver.counters.attempts, 1);
    rig_free(r);
}

TEST(tokens_and_ids_grow_over_restarts_even_when_the_last_records_are_lost)
{
    rig *r = rig_new(NULL);
    size_t before;
    uint64_t token, consumer;

    rig_join(r, 1);
    before = r->effect_count;
    rig_offer(r, 1);
    token = rig_token(r, 0);
    consumer = rig_last(r, SL_EFFECT_JOIN)->join.consumer;
    rig_restart_with(r, before); /* a power cut: the lease was sent, its record is gone */
    EXPECT(rig_join(r, 1) > consumer);
    rig_read_again(r);
    EXPECT(rig_token(r, 0) > token);
    rig_free(r);
}

TEST(every_prefix_of_the_records_is_a_valid_history)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3), c2 = rig_join(r, 3);

    rig_offer(r, 9);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_nack(r, c2, 1, SL_NACK_RETRY));
    EXPECT_OK(rig_started(r, c1, 2));
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true));
    EXPECT_OK(rig_ack(r, c1, 2));
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    EXPECT_OK(rig_nack(r, c2, 3, SL_NACK_PARK));
    const size_t all = r->effect_count;
    for (size_t count = all; count > 0; count--) {
        rig_restart_with(r, count);
        sl_group_check(r->group);
        r->effect_count = count; /* what opening said belongs to this life only */
    }
    rig_free(r);
}

TEST(a_message_that_is_not_read_again_has_vanished)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 9, false);

    rig_offer(r, 4);
    EXPECT_OK(rig_nack_after(r, c1, 1, SECOND));
    rig_restart(r);
    rig_said(r);
    r->position = 3; /* the stream was truncated: 0, 1 and 2 are gone */
    rig_offer(r, 1);
    EXPECT_SAID(r, "1 vanished"); /* 0 and 2 have live leases: their holder may still finish them */
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_BACK), "3 back expired!");
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 4);
    rig_join(r, 9);
    EXPECT_SAID(r,
                "c1<-3(1), c1 gone"); /* who held it is forgotten now; also number 1, of the earlier life */
    rig_free(r);
}

TEST(a_filter_that_passes_a_known_message_makes_it_vanish_too)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    rig_restart(r);
    rig_said(r);
    EXPECT_OK(sl_group_advance(r->group, (sl_place){ SL_LANE_MAIN, 10 }, 11, r->now_ns));
    EXPECT_SAID(r, "0 vanished");
    rig_free(r);
}

TEST(an_ack_counts_before_its_message_is_read_again)
{
    rig *r = rig_new(NULL);
    uint64_t heir;

    rig_join_as(r, 1, 9, false);
    rig_offer(r, 3);
    rig_restart(r);
    heir = rig_join_as(r, 1, 9, false);
    rig_said(r);
    EXPECT_OK(rig_ack(r, heir, 1));
    EXPECT_EQ(rig_last(r, SL_EFFECT_SETTLE)->settle.from, 1);
    EXPECT_EQ(rig_last(r, SL_EFFECT_SETTLE)->settle.to, 2);
    rig_said(r);
    rig_restart(r);
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 0);
    rig_read_again(r);
    rig_join(r, 9);
    rig_said(r);
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_DELIVER), "c1<-0(1), c1<-2(1)");
    rig_free(r);
}

TEST(a_pause_of_a_wrong_clock_ends_within_a_day)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    r->now_ns += 100 * SL_PAUSE_NS_MAX;
    EXPECT_OK(rig_nack_after(r, c1, 0, SECOND));
    r->now_ns -= 100 * SL_PAUSE_NS_MAX;
    rig_restart(r);
    rig_read_again(r);
    EXPECT_EQ(rig_tick(r, 0), SL_PAUSE_NS_MAX);
    rig_free(r);
}

TEST(a_lease_of_a_wrong_clock_ends_within_a_day)
{
    rig *r = rig_new(NULL);

    rig_join(r, 1);
    r->now_ns += 1000 * SL_LEASE_NS_MAX;
    rig_offer(r, 1);
    r->now_ns -= 1000 * SL_LEASE_NS_MAX; /* the clock was put right before the restart */
    rig_restart(r);
    EXPECT_EQ(rig_tick(r, 0), SL_LEASE_NS_MAX);
    rig_free(r);
}

/* --- snapshots --- */

static void snapshot_restart(rig *r)
{
    const size_t before = r->effect_count;

    sl_group_snapshot(r->group, r->setup.sink);
    memmove(r->effects, r->effects + before, (r->effect_count - before) * sizeof *r->effects);
    r->effect_count -= before;
    rig_restart(r);
}

TEST(a_snapshot_alone_gives_the_same_group)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 5, false);
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };

    rig_offer(r, 8);
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_OK(rig_ack(r, c1, 3));
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_nack(r, c1, 2, SL_NACK_RETRY));
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    snapshot_restart(r);
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 0);
    EXPECT_EQ(sl_group_stop_tag(r->group, 42, &stop, r->now_ns), SL_OK);
    rig_join(r, 20);
    rig_said(r);
    rig_read_again(r);
    EXPECT_SAID(r, "c1<-7"); /* the others are leased to who is away */
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_DELIVER), "c1<-0(1), c1<-2(1), c1<-4, c1<-5, c1<-6, c1<-7(1)");
    rig_free(r);
}

TEST(a_snapshot_in_the_middle_of_reading_again_loses_nothing)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 9, false);

    rig_offer(r, 8);
    for (uint64_t p = 1; p < 8; p += 2)
        EXPECT_OK(rig_ack(r, c1, p));
    rig_restart(r);
    const uint64_t end = r->position;
    r->position = 3;
    rig_read_again(r); /* 0 to 2 */
    r->position = end;
    snapshot_restart(r);
    rig_join(r, 9);
    rig_read_again(r);
    rig_said(r);
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_DELIVER), "c1<-0(1), c1<-2(1), c1<-4(1), c1<-6(1)");
    rig_free(r);
}

/* --- damage --- */

static void ignore(void *ctx, const sl_effect *effect)
{
    (void)ctx;
    (void)effect;
}

static sl_err replay_one(const sl_effect *first, const sl_effect *second)
{
    const sl_group_setup setup = { .limits = { .messages_max = 2, .consumers_max = 1 },
                                   .settings = sl_settings_default() };
    void *const memory = malloc(sl_group_bytes(&setup.limits));
    sl_group *const group = sl_group_init(memory, &setup);
    const sl_effect join = { .kind = SL_EFFECT_JOIN, .join = { .consumer = 1 } };
    sl_err err = sl_group_replay(group, &join);

    if (err == SL_OK && first != NULL)
        err = sl_group_replay(group, first);
    if (err == SL_OK)
        err = sl_group_replay(group, second);
    free(memory);
    return err;
}

static sl_effect lease_of(uint64_t position, uint64_t consumer)
{
    return (sl_effect){ .kind = SL_EFFECT_LEASE,
                        .lease = { .place = { SL_LANE_MAIN, position },
                                   .consumer = consumer,
                                   .token = 9,
                                   .until_ns = 100,
                                   .deliveries = 1 } };
}

TEST(records_that_do_not_fit_to_each_other_are_corrupt)
{
    const sl_effect lease = lease_of(4, 1);
    const sl_place at = { SL_LANE_MAIN, 4 }, nowhere = { SL_LANE_MAIN, 5 };
    sl_settings bad_settings = sl_settings_default();
    bad_settings.buffer_max = 0;
    const struct {
        const sl_effect *first;
        sl_effect second;
    } rows[] = {
        { NULL, lease_of(4, 2) },                                        /* nobody */
        { NULL, lease_of(UINT64_MAX, 1) },                               /* nowhere */
        { NULL, { .kind = SL_EFFECT_JOIN, .join = { .consumer = 1 } } }, /* twice */
        { NULL,                                                          /* twice, and of another session */
          { .kind = SL_EFFECT_JOIN,
            .join = { .consumer = 1, .session = { { 7 } }, .sends_started = true } } },
        { NULL, { .kind = SL_EFFECT_JOIN, .join = { .consumer = 0 } } },
        { NULL, { .kind = SL_EFFECT_JOIN, .join = { .consumer = UINT64_C(1) << 40 } } }, /* of a later life */
        { NULL,
          { .kind = SL_EFFECT_MESSAGE,
            .message = { .place = at,
                         .consumer = 1,
                         .token = UINT64_C(1) << 40,
                         .counters = { .deliveries = 1 } } } },
        { NULL, { .kind = SL_EFFECT_GONE, .gone = { .consumer = 2 } } },
        { &lease, { .kind = SL_EFFECT_GONE, .gone = { .consumer = 1 } } }, /* holds a lease */
        { &lease, { .kind = SL_EFFECT_STARTED, .started = { at, 8 } } },   /* another token */
        { &lease, { .kind = SL_EFFECT_STARTED, .started = { nowhere, 9 } } },
        { &lease, { .kind = SL_EFFECT_EXTEND, .extend = { at, 9, 0 } } },
        { &lease, { .kind = SL_EFFECT_MOVE, .move = { at, 9, 2 } } }, /* to nobody */
        { &lease, { .kind = SL_EFFECT_BACK, .back = { .place = nowhere } } },
        { &lease, { .kind = SL_EFFECT_SETTLE, .settle = { .place = at, .from = 5, .to = 9 } } },
        { &lease, { .kind = SL_EFFECT_PASSED, .passed = { SL_LANE_MAIN, 5, 3 } } },
        { NULL, { .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { SL_LANE_COUNT_, 3 } } },
        { NULL, { .kind = SL_EFFECT_RULE, .rule = { .tag = 3, .stop = false } } },
        { NULL, { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = (UINT64_C(1) << 24) - 1 } } },
        { NULL, { .kind = SL_EFFECT_SETTINGS, .settings = bad_settings } },
        { NULL,
          { .kind = SL_EFFECT_MESSAGE,
            .message = { .place = at, .consumer = 1, .counters = { .deliveries = 1 } } } }, /* half a lease */
        { NULL,
          { .kind = SL_EFFECT_MESSAGE,
            .message = { .place = at,
                         .consumer = 1,
                         .token = 1,
                         .until_ns = 9 } } }, /* never delivered, but leased */
        { &lease, lease_of(4, 1) },           /* the first one did not end */
        { NULL, { .kind = SL_EFFECT_DRAINED } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ERR(replay_one(rows[i].first, &rows[i].second), SL_ERR_CORRUPT);
}

TEST(more_rules_than_there_can_be_are_corrupt_and_one_told_twice_counts_once)
{
    const sl_group_setup setup = { .limits = { .messages_max = 2, .consumers_max = 1 },
                                   .settings = sl_settings_default() };
    void *const memory = malloc(sl_group_bytes(&setup.limits));
    sl_group *const group = sl_group_init(memory, &setup);

    for (uint64_t tag = 1; tag <= SL_RULES_MAX; tag++) {
        const sl_effect rule = { .kind = SL_EFFECT_RULE, .rule = { .tag = tag, .stop = true } };
        EXPECT_OK(sl_group_replay(group, &rule));
        EXPECT_OK(sl_group_replay(group, &rule));
    }
    const sl_effect rule = { .kind = SL_EFFECT_RULE, .rule = { .tag = 1000, .stop = true } };
    EXPECT_ERR(sl_group_replay(group, &rule), SL_ERR_CORRUPT);
    free(memory);
}

TEST(a_lease_on_what_is_settled_is_corrupt)
{
    const sl_effect settled = { .kind = SL_EFFECT_PASSED, .passed = { SL_LANE_MAIN, 0, 9 } };
    const sl_effect lease = lease_of(4, 1);

    EXPECT_ERR(replay_one(&settled, &lease), SL_ERR_CORRUPT);
}

TEST(a_range_over_an_unsettled_message_is_found_when_the_group_is_opened)
{
    const sl_group_setup setup = { .limits = { .messages_max = 2, .consumers_max = 1 },
                                   .settings = sl_settings_default() };
    void *const memory = malloc(sl_group_bytes(&setup.limits));
    sl_group *const group = sl_group_init(memory, &setup);
    const sl_effect join = { .kind = SL_EFFECT_JOIN, .join = { .consumer = 1 } }, lease = lease_of(4, 1);
    const sl_effect range = { .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { SL_LANE_MAIN, 5 } };

    EXPECT_OK(sl_group_replay(group, &join));
    EXPECT_OK(sl_group_replay(group, &lease));
    EXPECT_OK(sl_group_replay(group, &range));
    EXPECT_ERR(sl_group_open(group, 1), SL_ERR_CORRUPT);
    free(memory);
}

/* Found by a hostile tester: what was never recorded needs places as well, so the records alone can not tell. */
TEST(a_group_with_fewer_places_than_the_one_that_wrote_the_records_refuses_them)
{
    const sl_group_setup small = { .limits = { .messages_max = 63, .consumers_max = 8, .keyed = true },
                                   .settings = sl_settings_default() };
    void *const memory = malloc(sl_group_bytes(&small.limits));
    sl_group *const group = sl_group_init(memory, &small);
    rig *r = rig_new(NULL); /* 64 */

    EXPECT_ERR(sl_group_replay(group, rig_last(r, SL_EFFECT_EPOCH)), SL_ERR_FULL);
    free(memory);
    rig_free(r);
}

/* The same: six ranges filled the set of a group for two messages, and the next settlement had no place. */
TEST(as_many_ranges_as_records_can_tell_of_leave_place_for_what_comes)
{
    const sl_group_setup setup = { .limits = { .messages_max = 2, .consumers_max = 1 },
                                   .settings = sl_settings_default(),
                                   .sink = { ignore, NULL } };
    void *const memory = malloc(sl_group_bytes(&setup.limits));
    sl_group *const group = sl_group_init(memory, &setup);
    const sl_offer offer = { .place = { SL_LANE_MAIN, 7 } };
    const sl_effect message = { .kind = SL_EFFECT_MESSAGE,
                                .message = { .place = { SL_LANE_MAIN, 5 },
                                             .counters = { .deliveries = 1 } } };
    uint32_t taken;

    for (uint64_t from = 10; from < 70; from += 10) {
        const sl_effect range = { .kind = SL_EFFECT_PASSED, .passed = { SL_LANE_MAIN, from, from + 1 } };
        EXPECT_OK(sl_group_replay(group, &range));
    }
    EXPECT_OK(sl_group_replay(group, &message));
    EXPECT_OK(sl_group_open(group, 1));
    EXPECT_OK(sl_group_offer(group, &offer, 1, 1, &taken)); /* 5 has vanished */
    sl_group_check(group);
    free(memory);
}

TEST(records_of_a_larger_group_do_not_fit_and_say_so)
{
    rig *r = rig_new(NULL);
    const sl_group_setup small = { .limits = { .messages_max = 1, .consumers_max = 1 },
                                   .settings = sl_settings_default() };
    void *const memory = malloc(sl_group_bytes(&small.limits));
    sl_group *const group = sl_group_init(memory, &small);
    sl_err err = SL_OK;

    rig_join(r, 5);
    rig_offer(r, 2);
    for (size_t i = 0; i < r->effect_count && err == SL_OK; i++)
        if (sl_effect_is_record(r->effects[i].kind))
            err = sl_group_replay(group, &r->effects[i]);
    EXPECT_ERR(err, SL_ERR_FULL);
    free(memory);
    rig_free(r);
}

/* --- found by the simulator --- */

static void buffer_of_two(sl_settings *settings)
{
    settings->buffer_max = 2;
}

/* What came back before the restart fills the buffer; only reading on makes it deliverable again. */
TEST(after_a_restart_a_full_buffer_does_not_stop_the_reading_that_would_empty_it)
{
    rig *r = rig_new_limits(buffer_of_two, (sl_group_limits){ .messages_max = 5, .consumers_max = 2 });
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 5); /* 0 to 2 are delivered, 3 and 4 wait */
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    EXPECT_EQ(sl_group_room(r->group), 0);
    rig_restart(r);
    EXPECT_EQ(sl_group_room(r->group), 2); /* of five places three are known from records */
    r->position = 3;
    rig_read_again(r);
    EXPECT_EQ(sl_group_room(r->group), 0); /* from here on the buffer counts again */
    rig_said(r);
    rig_join(r, 9);
    EXPECT_SAID(r, "c1<-0(1), c1<-1(1), c1<-2(1)");
    rig_offer(r, 2);
    EXPECT_SAID(r, "c1<-3, c1<-4");
    rig_free(r);
}

TEST(after_a_restart_a_lane_with_nothing_to_read_again_waits_for_the_other)
{
    const sl_offer parked = { .place = { SL_LANE_PARKED, 0 }, .id = rig_id(SL_LANE_PARKED, 0) };
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);
    uint32_t taken = 0;

    rig_offer(r, 1);
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    rig_restart(r);
    EXPECT_ERR(sl_group_offer(r->group, &parked, 1, r->now_ns, &taken), SL_ERR_FULL);
    rig_read_again(r);
    EXPECT_OK(sl_group_offer(r->group, &parked, 1, r->now_ns, &taken));
    rig_free(r);
}

TEST(an_offer_that_does_not_fit_still_tells_that_everything_below_was_read)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 2, .consumers_max = 2 });
    const sl_offer beyond = { .place = { SL_LANE_MAIN, 7 }, .id = rig_id(SL_LANE_MAIN, 7) };
    uint32_t taken = 0;

    rig_join(r, 2);
    rig_offer(r, 2);
    rig_restart(r);
    EXPECT_ERR(sl_group_offer(r->group, &beyond, 1, r->now_ns, &taken), SL_ERR_FULL);
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 7);
    sl_group_check(r->group);
    rig_said(r);
    rig_tick(r, 10 * SECOND); /* 0 and 1 have vanished, and their leases have ended */
    EXPECT_EQ(sl_group_room(r->group), 2);
    rig_free(r);
}

TEST(who_is_away_after_a_restart_is_so_since_the_restart)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);
    sl_consumer_info info;

    rig_offer(r, 1);
    r->now_ns += SECOND;
    rig_restart(r);
    EXPECT_OK(sl_group_consumer(r->group, c1, &info));
    EXPECT_EQ(info.state, SL_CONSUMER_AWAY);
    EXPECT_EQ(info.since_ns, r->now_ns);
    rig_free(r);
}

/* --- numbers --- */

TEST(a_life_that_uses_up_its_numbers_goes_on_with_an_epoch_that_was_told_of_long_before)
{
    const uint64_t half = (UINT64_C(1) << 39) - 1, end = (UINT64_C(1) << 40) - 1;
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 9);
    uint64_t last;

    r->group->token_next = UINT64_C(1) << 40 | half;
    rig_offer(r, 1);
    EXPECT_EQ(rig_last(r, SL_EFFECT_EPOCH)->epoch.epoch, 2); /* told of, not used */
    EXPECT_EQ(rig_token(r, 0), UINT64_C(1) << 40 | half);
    r->group->token_next = UINT64_C(1) << 40 | end;
    rig_offer(r, 2);
    last = rig_token(r, 2);
    EXPECT_EQ(rig_token(r, 1), UINT64_C(2) << 40 | 1);
    EXPECT(rig_join(r, 1) > c1);
    EXPECT_EQ(rig_last(r, SL_EFFECT_JOIN)->join.consumer >> 40, 2);
    rig_restart(r);
    EXPECT_EQ(rig_last(r, SL_EFFECT_EPOCH)->epoch.epoch, 3);
    rig_join(r, 9);
    rig_tick(r, 10 * SECOND);
    rig_read_again(r);
    EXPECT(rig_token(r, 2) > last);
    rig_free(r);
}

/* --- settled before it was read again --- */

TEST(what_is_settled_before_it_is_read_again_keeps_its_place_and_is_passed_over)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 4, .consumers_max = 4 });
    uint64_t heir;

    rig_join_as(r, 1, 4, false);
    rig_offer(r, 4);
    rig_restart(r);
    heir = rig_join_as(r, 1, 1, false);
    EXPECT_OK(rig_ack(r, heir, 2));
    EXPECT_OK(rig_ack(r, heir, 0));
    EXPECT_EQ(sl_group_room(r->group), 1); /* all places are taken, but reading on is wanted */
    sl_group_check(r->group);
    snapshot_restart(r);
    heir = rig_join_as(r, 1, 1, false);
    EXPECT_OK(rig_ack(r, heir, 1));
    rig_said(r);
    rig_read_again(r);
    EXPECT_SAID(r, "");
    EXPECT_EQ(sl_group_room(r->group), 3); /* only 3 is left, with its lease */
    rig_free(r);
}

/* Messages in, order out, time, room, checkpoints. */
#include "rig.h"

#include "../base/support.h"
#include "core/group_private.h"

TEST(round_robin_takes_turns_and_passes_over_the_full)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_join(r, 3);
    rig_join(r, 3);
    rig_offer(r, 6);
    EXPECT_SAID(r, "c1<-0, c2<-1, c3<-2, c2<-3, c3<-4, c2<-5");
    EXPECT_OK(rig_ack(r, c1, 0));
    rig_offer(r, 2);
    EXPECT_SAID(r, "0 acked, c1 settled 0, c3<-6, c1<-7");
    rig_free(r);
}

static void to_single(sl_settings *settings)
{
    settings->strategy = SL_STRATEGY_DISPATCH_TO_SINGLE;
}

TEST(dispatch_to_single_fills_one_before_the_next)
{
    rig *r = rig_new(to_single);
    const uint64_t c1 = rig_join(r, 2);

    rig_join(r, 2);
    rig_offer(r, 3);
    EXPECT_SAID(r, "c1<-0, c1<-1, c2<-2");
    EXPECT_OK(rig_ack(r, c1, 0)); /* free again, but the one that accepted stays in front */
    rig_offer(r, 2);
    EXPECT_SAID(r, "0 acked, c1 settled 0, c2<-3, c1<-4");
    rig_free(r);
}

TEST(retries_go_before_replayed_parked_ones_and_those_before_new_ones)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 4); /* 0 and 1 with c1 */
    rig_offer_parked(r, 7);
    rig_offer_parked(r, 9);
    rig_said(r);
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    rig_join(r, 10);
    EXPECT_SAID(r, "0 back left!, 1 back left!, c1 gone, c2<-0(1), c2<-1(1), c2<-p7, c2<-p9, c2<-2, c2<-3");
    rig_free(r);
}

TEST(a_parked_message_is_settled_in_its_own_lane)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);
    const sl_claim claim = { .id = rig_id(SL_LANE_PARKED, 3) };
    sl_group_info info;

    rig_offer(r, 2);
    rig_offer_parked(r, 3);
    rig_said(r);
    EXPECT_OK(sl_group_ack(r->group, c1, &claim, 1, r->now_ns));
    EXPECT_SAID(r, "p3 acked, c1 settled p3");
    sl_group_info_get(r->group, &info);
    EXPECT_EQ(info.checkpoint[SL_LANE_PARKED], 4);
    EXPECT_EQ(info.checkpoint[SL_LANE_MAIN], 0);
    rig_free(r);
}

TEST(an_offer_below_what_was_read_is_passed_over)
{
    rig *r = rig_new(NULL);

    rig_join(r, 9);
    rig_offer(r, 3);
    rig_said(r);
    r->position = 1;
    rig_offer(r, 3); /* 1 and 2 again, then 3 */
    EXPECT_SAID(r, "c1<-3");
    rig_free(r);
}

TEST(an_offer_of_a_lane_or_position_that_does_not_exist_is_refused)
{
    const sl_offer offers[] = { { .place = { SL_LANE_MAIN, 0 } }, { .place = { SL_LANE_MAIN, UINT64_MAX } } };
    const sl_offer lane = { .place = { SL_LANE_COUNT_, 0 } };
    rig *r = rig_new(NULL);
    uint32_t taken = 0;

    EXPECT_ERR(sl_group_offer(r->group, offers, 2, r->now_ns, &taken), SL_ERR_INVALID);
    EXPECT_EQ(taken, 1);
    EXPECT_ERR(sl_group_offer(r->group, &lane, 1, r->now_ns, &taken), SL_ERR_INVALID);
    EXPECT_ERR(sl_group_advance(r->group, lane.place, 1, r->now_ns), SL_ERR_INVALID);
    rig_free(r);
}

static void small_buffer(sl_settings *settings)
{
    settings->buffer_max = 3;
}

TEST(room_is_what_the_buffer_and_the_limits_leave)
{
    rig *r = rig_new_limits(small_buffer, (sl_group_limits){ .messages_max = 6, .consumers_max = 2 });

    EXPECT_EQ(sl_group_room(r->group), 3);
    rig_offer(r, 3);
    EXPECT_EQ(sl_group_room(r->group), 0);
    rig_join(r, 2); /* two are in flight now, and need no buffer */
    EXPECT_EQ(sl_group_room(r->group), 2);
    rig_offer(r, 2);
    rig_join(r, 2);
    EXPECT_EQ(sl_group_room(r->group), 1); /* of six places five are used */
    rig_free(r);
}

TEST(time_does_not_go_back)
{
    rig *r = rig_new(NULL);

    rig_join(r, 1);
    rig_offer(r, 1);
    rig_tick(r, 9 * SECOND);
    rig_said(r);
    EXPECT_EQ(sl_group_tick(r->group, 5),
              r->now_ns + SECOND); /* a clock that jumped back stands still here */
    EXPECT_SAID(r, "");
    rig_tick(r, SECOND);
    EXPECT_SAID(r, "0 back expired!, c1<-0(1)");
    rig_free(r);
}

TEST(S4_6_after_a_crash_a_message_is_available_when_its_lease_ends_not_later)
{
    rig *r = rig_new(NULL);

    rig_join(r, 1);
    rig_offer(r, 1);
    EXPECT_EQ(rig_tick(r, 0), 10 * SECOND);
    rig_join(r, 1);
    rig_said(r);
    rig_tick(r, 10 * SECOND);
    EXPECT_SAID(r,
                "0 back expired!, c2<-0(1)"); /* c1 lost its turn when it became full, as any that is full */
    rig_free(r);
}

static void checkpoints(sl_settings *settings)
{
    settings->checkpoint_after_ns = 2 * SECOND;
    settings->checkpoint_count_min = 2;
    settings->checkpoint_count_max = 4;
}

TEST(a_checkpoint_comes_at_once_with_the_maximum)
{
    rig *r = rig_new(checkpoints);
    const uint64_t c1 = rig_join(r, 9);

    rig_offer(r, 6);
    rig_said(r);
    for (uint64_t p = 3; p > 0; p--)
        EXPECT_OK(rig_ack(r, c1, p));
    EXPECT_SAID(r,
                "3 acked, c1 settled 3, 2 acked, c1 settled 2, 1 acked, c1 settled 1"); /* 0 is not settled */
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, below 4");
    rig_free(r);
}

TEST(a_checkpoint_comes_in_time_with_the_minimum_or_when_idle)
{
    rig *r = rig_new(checkpoints);
    const uint64_t c1 = rig_join(r, 9);

    rig_offer(r, 4);
    EXPECT_OK(rig_ack(r, c1, 0));
    rig_tick(r, 2 * SECOND);
    rig_said(r);
    EXPECT_OK(rig_ack(r, c1, 1)); /* the second one: its time has come */
    EXPECT_SAID(r, "1 acked, c1 settled 1, below 2");
    EXPECT_OK(rig_ack(r, c1, 2));
    EXPECT_SAID(r, "2 acked, c1 settled 2");
    EXPECT_OK(rig_nack(r, c1, 3, SL_NACK_SKIP)); /* nothing is left: idle, and two are there */
    EXPECT_SAID(r, "3 skipped, c1 settled 3");
    EXPECT_EQ(rig_tick(r, 0), 2 * SECOND);
    rig_tick(r, 2 * SECOND);
    EXPECT_SAID(r, "below 4");
    rig_offer(r, 1);
    EXPECT_OK(rig_ack(r, c1, 4));
    rig_tick(r, 2 * SECOND);
    EXPECT_SAID(
        r, "c1<-4, 4 acked, c1 settled 4, below 5"); /* one is below the minimum, but the group is idle */
    EXPECT_EQ(rig_tick(r, SECOND), SL_NEVER);
    rig_free(r);
}

TEST(a_filtered_group_moves_its_checkpoint_past_what_does_not_concern_it)
{
    rig *r = rig_new(checkpoints);
    const uint64_t c1 = rig_join(r, 9);

    rig_offer(r, 1);
    EXPECT_OK(sl_group_advance(r->group, (sl_place){ SL_LANE_MAIN, 99 }, 99, r->now_ns));
    EXPECT_SAID(r, "c1<-0"); /* never past what is not settled */
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, below 100");
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 100);
    EXPECT_OK(
        sl_group_advance(r->group, (sl_place){ SL_LANE_MAIN, 50 }, 99, r->now_ns)); /* behind us: nothing */
    EXPECT_SAID(r, "");
    rig_free(r);
}

/* Found by the simulator: the reader tells of a page when it has offered what concerns the group. */
TEST(what_a_filter_passed_between_two_offers_counts_for_the_checkpoint)
{
    rig *r = rig_new(checkpoints);
    const uint64_t c1 = rig_join(r, 9);

    rig_offer(r, 1);
    r->position = 3; /* 1 and 2 do not concern the group */
    rig_offer(r, 1);
    EXPECT_OK(sl_group_advance(r->group, (sl_place){ SL_LANE_MAIN, 3 }, 2, r->now_ns));
    EXPECT_OK(rig_ack(r, c1, 0));
    rig_said(r);
    EXPECT_OK(rig_ack(r, c1, 3));
    EXPECT_SAID(r, "3 acked, c1 settled 3, below 4"); /* two settled and two passed: the maximum */
    rig_free(r);
}

TEST(information_adds_up)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);
    sl_group_info info;

    rig_offer(r, 5);
    EXPECT_OK(rig_nack_after(r, c1, 0, SECOND));
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_OK(rig_ack(r, c1, 1)); /* lost */
    EXPECT_OK(rig_nack(r, c1, 2, SL_NACK_PARK));
    sl_group_info_get(r->group, &info);
    EXPECT_EQ(info.messages, 3);
    EXPECT_EQ(info.in_flight, 2);
    EXPECT_EQ(info.waiting, 1);
    EXPECT_EQ(info.available, 0);
    EXPECT_EQ(info.deliveries, 5);
    EXPECT_EQ(info.settled, 1);
    EXPECT_EQ(info.parked, 1);
    EXPECT_EQ(info.lost, 1);
    EXPECT_EQ(info.charged, 1);
    EXPECT_EQ(info.consumers[SL_CONSUMER_ACTIVE], 1);
    EXPECT_EQ(sl_group_settings(r->group)->lease_ns, 10 * SECOND);
    rig_free(r);
}

TEST(the_last_moment_of_time_is_before_never)
{
    rig *r = rig_new(NULL);

    rig_join(r, 1);
    r->now_ns = SL_NEVER;
    rig_offer(r, 1);
    EXPECT_SAID(r, "c1<-0"); /* with a lease that never ends, because time does not */
    sl_group_check(r->group);
    rig_free(r);
}

TEST(a_held_group_gives_nothing_out_and_goes_on_with_the_next_call)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 3);
    EXPECT_SAID(r, "c1<-0, c1<-1");
    sl_group_hold(r->group, SL_HOLD_ALL);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    rig_join(r, 2);
    rig_tick(r, 60 * SECOND);
    EXPECT_SAID(r, "1 back expired!");
    rig_tick(r, 60 * SECOND);
    EXPECT_SAID(r, "");
    sl_group_check(r->group);
    sl_group_hold(r->group, SL_HOLD_NOTHING);
    rig_tick(r, 0);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_BACK), "");
    sl_group_check(r->group);
    EXPECT_EQ(rig_last(r, SL_EFFECT_DELIVER)->deliver.place.position, 2);
    rig_free(r);
}

static void no_retries(sl_settings *settings)
{
    settings->retries_max = 0;
}

TEST(a_held_group_parks_what_has_no_try_left_when_it_goes_on)
{
    rig *r = rig_new(no_retries);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 4);
    rig_said(r);
    sl_group_hold(r->group, SL_HOLD_ALL);
    rig_tick(r, 60 * SECOND);
    EXPECT_SAID(r, "0 back expired!, 2 back expired!, 1 back expired!");
    EXPECT_OK(rig_ack(r, c1, 1)); /* late, but nobody else has it */
    EXPECT_SAID(r, "1 acked, c1 settled 1");
    EXPECT_OK(rig_nack(r, c1, 2, SL_NACK_RETRY));
    EXPECT_SAID(r, "2 back nacked, c1 settled 2");
    sl_group_check(r->group);
    sl_group_hold(r->group, SL_HOLD_NOTHING);
    rig_tick(r, 0);
    EXPECT_SAID(r, "0 parked retries, 2 parked retries, c1<-3");
    sl_group_check(r->group);
    rig_free(r);
}

/* Also what nobody could take, and not what may be tried once more meanwhile. */
TEST(what_a_held_group_owes_depends_on_the_settings_when_it_goes_on)
{
    rig *r = rig_new(no_retries);
    const uint64_t c1 = rig_join(r, 1);
    sl_settings settings = *sl_group_settings(r->group);

    rig_offer(r, 1);
    sl_group_hold(r->group, SL_HOLD_ALL);
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    settings.retries_max = 2;
    EXPECT_OK(sl_group_update(r->group, &settings, r->now_ns));
    rig_said(r);
    sl_group_hold(r->group, SL_HOLD_NOTHING);
    rig_tick(r, 60 * SECOND);
    EXPECT_SAID(r, "");
    rig_join(r, 1);
    EXPECT_SAID(r, "c2<-0(1)");
    rig_free(r);
}

static void call_back(void *ctx, const sl_effect *effect)
{
    rig *const r = ctx;

    if (effect->kind == SL_EFFECT_DELIVER)
        sl_group_tick(r->group, r->now_ns);
}

static void call_from_inside(void)
{
    rig *r = rig_new(NULL);

    rig_join(r, 1);
    r->group->sink = (sl_sink){ call_back, r };
    rig_offer(r, 1);
}

TEST(a_sink_that_calls_the_group_is_stopped)
{
    EXPECT(aborts(call_from_inside));
}

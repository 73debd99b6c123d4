/* Stop: the gate, the fence, the drain (S1.1 to S1.36, B1, B10). */
#include "rig.h"

TEST(S1_2_after_stop_no_new_message_comes)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_SAID(r, "c1<-0");
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_SAID(r, "c1 stopped 1");
    rig_offer(r, 3);
    EXPECT_SAID(r, "");
    rig_free(r);
}

TEST(S1_4_S1_18_in_flight_work_is_acked_after_stop_and_drained_says_when_nothing_is_left)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 2);
    EXPECT_OK(rig_stop(r, c1));
    rig_said(r);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_SAID(r, "1 acked, c1 settled 1, c1 drained 2/0/0");
    rig_free(r);
}

TEST(S1_5_in_flight_work_is_nacked_after_stop_in_every_way)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 3);
    EXPECT_OK(rig_stop(r, c1));
    rig_said(r);
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    EXPECT_SAID(r, "0 back nacked!, c1 settled 0");
    EXPECT_OK(rig_nack(r, c1, 1, SL_NACK_PARK));
    EXPECT_SAID(r, "1 parked asked, c1 settled 1");
    EXPECT_OK(rig_nack(r, c1, 2, SL_NACK_SKIP));
    EXPECT_SAID(r, "2 skipped, c1 settled 2, c1 drained 3/0/0");
    rig_free(r);
}

TEST(S1_6_S1_35_a_stopping_consumer_stays_visible_with_what_it_holds)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);
    sl_consumer_info info;

    rig_offer(r, 2);
    r->now_ns += SECOND;
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, false));
    EXPECT_OK(sl_group_consumer(r->group, c1, &info));
    EXPECT_EQ(info.state, SL_CONSUMER_STOPPING);
    EXPECT_EQ(info.asked_by, SL_ASKER_OPERATOR);
    EXPECT_EQ(info.in_flight, 2);
    EXPECT_EQ(info.since_ns, r->now_ns);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_OK(sl_group_consumer(r->group, c1, &info));
    EXPECT_EQ(info.state, SL_CONSUMER_DRAINED);
    rig_free(r);
}

TEST(S1_7_S1_10_leaving_after_stop_is_normal_and_leaves_the_strategy_once)
{
    for (int strategy = 0; strategy < SL_STRATEGY_COUNT_; strategy++) {
        rig *r = rig_new(NULL);
        uint64_t c1 = 0;

        r->setup.settings.strategy = (sl_strategy)strategy;
        EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
        c1 = rig_join(r, 2);
        EXPECT_OK(rig_stop(r, c1));
        EXPECT_SAID(r, "c1 stopped 0, c1 drained 0/0/0");
        EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
        EXPECT_SAID(r, "c1 gone");
        EXPECT_ERR(sl_group_leave(r->group, c1, r->now_ns), SL_ERR_NO_CONSUMER);
        rig_free(r);
    }
}

TEST(S1_8_a_stopped_consumer_that_leaves_with_work_in_flight_gives_it_to_others)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 2);
    EXPECT_OK(rig_stop(r, c1));
    rig_join(r, 5);
    rig_said(r);
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left!, 1 back left!, c1 gone, c2<-0(1), c2<-1(1)");
    rig_free(r);
}

TEST(S1_9_S1_15_stop_twice_changes_nothing_and_says_so)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_SAID(r, "c1<-0, c1 stopped 1");
    EXPECT_ERR(rig_stop(r, c1), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "c1 stopped-already 1");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, c1 drained 1/0/0");
    EXPECT_ERR(rig_stop(r, c1), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "c1 stopped-already 0");
    EXPECT_ERR(rig_stop(r, c1 + 1), SL_ERR_NO_CONSUMER);
    EXPECT_SAID(r, "");
    rig_free(r);
}

/* Every event that can make the group push something. The stopped consumer has free slots all the time. */
TEST(S1_11_S1_12_no_path_pushes_to_a_stopped_consumer)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 8), c2 = rig_join(r, 1);

    rig_offer(r, 3); /* 0 and 2 to c1, 1 to c2 */
    EXPECT_SAID(r, "c1<-0, c2<-1, c1<-2");
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_SAID(r, "c1 stopped 2");
    EXPECT_OK(rig_ack(r, c1, 0)); /* an ack frees a slot */
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    rig_offer(r, 2);                              /* a live event, a batch from history */
    rig_offer_parked(r, 0);                       /* a replay */
    EXPECT_OK(rig_nack(r, c1, 2, SL_NACK_RETRY)); /* a retry */
    EXPECT_SAID(r, "2 back nacked!, c1 settled 2, c1 drained 2/0/0");
    rig_tick(r, SECOND); /* the clock */
    EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
    EXPECT_SAID(r, "");
    EXPECT_OK(rig_ack(r, c2, 1));
    EXPECT_SAID(r, "1 acked, c2 settled 1, c2<-2(1)");
    rig_tick(r, 10 * SECOND); /* an expiry */
    EXPECT_SAID(r, "2 back expired!, c2<-2(2)");
    rig_free(r);
}

TEST(S1_14_stopping_the_only_consumer_stalls_nothing_and_wakes_nobody)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    EXPECT_OK(rig_stop(r, c1));
    rig_offer(r, 5);
    EXPECT_EQ(sl_group_tick(r->group, r->now_ns), SL_NEVER); /* no busy loop while nobody can take anything */
    rig_said(r);
    rig_join(r, 10);
    EXPECT_SAID(r, "c2<-0, c2<-1, c2<-2, c2<-3, c2<-4");
    rig_free(r);
}

TEST(S1_14_back_pressure_holds_while_nobody_takes)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 4, .consumers_max = 2 });
    const sl_offer more = { .place = { SL_LANE_MAIN, 4 }, .id = rig_id(SL_LANE_MAIN, 4) };
    uint32_t taken = 7;

    EXPECT_EQ(sl_group_room(r->group), 4);
    rig_offer(r, 4);
    EXPECT_EQ(sl_group_room(r->group), 0);
    EXPECT_ERR(sl_group_offer(r->group, &more, 1, r->now_ns, &taken), SL_ERR_FULL);
    EXPECT_EQ(taken, 0);
    EXPECT_EQ(sl_group_read_from(r->group, SL_LANE_MAIN), 4);
    rig_free(r);
}

TEST(S1_16_S1_17_stopped_comes_after_the_last_delivery)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);

    rig_offer(r, 2);
    EXPECT_OK(rig_stop(r, c1));
    rig_offer(r, 2);
    EXPECT_SAID(r, "c1<-0, c1<-1, c1 stopped 2");
    rig_free(r);
}

static void count_held(void *ctx, const sl_held *held)
{
    uint64_t *const positions = ctx;

    positions[held->place.position]++;
}

TEST(S1_18_what_is_outstanding_can_be_listed)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);
    uint64_t positions[4] = { 0 };

    rig_offer(r, 4);
    EXPECT_OK(rig_ack(r, c1, 1)); /* acks sent before Stop are not outstanding */
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_OK(sl_group_held(r->group, c1, count_held, positions));
    EXPECT_EQ(positions[0] + positions[2] + positions[3], 3);
    EXPECT_EQ(positions[1], 0);
    EXPECT_EQ(rig_last(r, SL_EFFECT_STOPPED)->stopped.in_flight, 3);
    EXPECT_ERR(sl_group_held(r->group, 99, count_held, positions), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

TEST(S1_19_S1_26_what_was_pushed_before_the_stop_is_processed_or_handed_back_as_the_client_likes)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 3);
    EXPECT_OK(rig_stop(r, c1));
    rig_join(r, 3);
    rig_said(r);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_release(r, c1, 2));
    EXPECT_SAID(r, "0 acked, c1 settled 0, 2 back released, c1 settled 2, c2<-2");
    EXPECT_OK(rig_release(r, c1, 1));
    EXPECT_SAID(r, "1 back released, c1 settled 1, c1 drained 1/2/0, c2<-1");
    rig_free(r);
}

TEST(S1_23_S1_25_hand_back_with_stop_is_prompt_uncharged_and_spares_what_was_started)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 3);
    EXPECT_OK(rig_started(r, c1, 1));
    rig_join(r, 5);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true));
    EXPECT_SAID(r, "0 back released, 2 back released, c1 stopped 1, c2<-0, c2<-2");
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_SAID(r, "1 acked, c1 settled 1, c1 drained 1/2/0");
    rig_free(r);
}

TEST(B12_what_is_handed_back_after_it_was_started_is_counted_as_interrupted_as_well)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);

    rig_offer(r, 5);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_started(r, c1, 1));
    EXPECT_OK(rig_started(r, c1, 2));
    EXPECT_OK(rig_release(r, c1, 0)); /* before the stop, so of no drain; it comes again */
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_OK(rig_release(r, c1, 1));
    EXPECT_OK(rig_ack(r, c1, 2)); /* started too, and not interrupted */
    EXPECT_OK(rig_release(r, c1, 3));
    EXPECT_OK(rig_release(r, c1, 4));
    rig_said(r);
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_SAID(r, "0 back released, c1 settled 0, c1 drained 1/4/0 interrupted 1");
    rig_free(r);
}

TEST(hand_back_of_everything_drains_at_once)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 2);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true));
    EXPECT_SAID(r, "0 back released, 1 back released, c1 stopped 0, c1 drained 0/2/0");
    rig_free(r);
}

/* The Started of the first is on its way when the operator asks: nobody else gets it, and the consumer releases the other. */
TEST(an_operators_hand_back_is_a_wish_that_takes_no_running_work_away)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 3);
    EXPECT_OK(rig_started(r, c1, 2));
    rig_join(r, 5);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, true));
    EXPECT_SAID(r, "c1 asked operator hand-back, c1 stopped 3");
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_release(r, c1, 1));
    EXPECT_SAID(r, "0 started, 1 back released, c1 settled 1, c2<-1");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_ack(r, c1, 2));
    EXPECT_SAID(r, "0 acked, c1 settled 0, 2 acked, c1 settled 2, c1 drained 2/1/0");
    rig_free(r);
}

TEST(the_wish_of_a_second_stop_is_told_until_the_consumer_is_drained)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop(r, c1));
    rig_said(r);
    EXPECT_ERR(rig_stop_by(r, c1, SL_ASKER_OPERATOR, true), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "c1 asked operator hand-back");
    EXPECT_ERR(rig_stop_by(r, c1, SL_ASKER_SERVER, false), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "");
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_SAID(r, "0 back released, c1 settled 0, c1 drained 0/1/0");
    EXPECT_ERR(rig_stop_by(r, c1, SL_ASKER_OPERATOR, true), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "");
    rig_free(r);
}

TEST(the_server_hands_back_for_whom_it_cannot_ask)
{
    rig *r = rig_new(NULL);
    const uint64_t plain = rig_join_as(r, 1, 1, false), c2 = rig_join(r, 1);

    rig_offer(r, 2);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, plain, SL_ASKER_SERVER, true));
    EXPECT_SAID(r, "0 back released, c1 asked server, c1 stopped 0, c1 drained 0/1/0");
    EXPECT_OK(rig_stop_by(r, c2, SL_ASKER_SERVER, true));
    EXPECT_SAID(r, "c2 asked server hand-back, c2 stopped 1");
    rig_free(r);
}

TEST(a_second_stop_still_hands_back)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 2);
    EXPECT_OK(rig_stop(r, c1));
    rig_said(r);
    EXPECT_ERR(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "0 back released, 1 back released, c1 stopped-already 0, c1 drained 0/2/0");
    rig_free(r);
}

TEST(S1_24_what_is_handed_back_comes_before_later_messages_in_position_order)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 4);

    rig_offer(r, 4); /* all with c1 */
    rig_offer(r, 4); /* wait */
    EXPECT_OK(rig_release(r, c1, 3));
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true));
    rig_said(r);
    rig_join(r, 10);
    EXPECT_SAID(r, "c2<-0, c2<-1, c2<-2, c2<-3, c2<-4, c2<-5, c2<-6, c2<-7");
    rig_free(r);
}

TEST(S1_30_stop_concerns_one_consumer)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_join(r, 5);
    EXPECT_OK(rig_stop(r, c1));
    rig_said(r);
    rig_offer(r, 3);
    EXPECT_SAID(r, "c2<-0, c2<-1, c2<-2");
    rig_free(r);
}

TEST(S1_31_leases_of_a_stopping_consumer_still_end_and_that_drains_it)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop(r, c1));
    rig_join(r, 1);
    rig_said(r);
    EXPECT_EQ(rig_tick(r, 10 * SECOND - 1), 1);
    EXPECT_SAID(r, "");
    rig_tick(r, 1);
    EXPECT_SAID(r, "0 back expired!, c1 drained 0/0/1, c2<-0(1)");
    rig_free(r);
}

static void at_most_one(sl_settings *settings)
{
    settings->consumers_max = 1;
}

TEST(S1_33_a_stopping_consumer_does_not_count_against_the_maximum)
{
    rig *r = rig_new(at_most_one);
    const uint64_t c1 = rig_join(r, 1);
    const sl_join join = { .session = rig_session(2), .window = 1 };
    uint64_t consumer = 0;

    rig_offer(r, 1);
    EXPECT_ERR(sl_group_join(r->group, &join, r->now_ns, &consumer), SL_ERR_CONSUMERS_MAX);
    EXPECT_EQ(consumer, 0);
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &consumer));
    rig_free(r);
}

TEST(S1_36_a_consumers_own_stop_is_final)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop(r, c1));
    EXPECT_ERR(sl_group_resume(r->group, c1, r->now_ns), SL_ERR_DRAINED);
    rig_said(r);
    rig_offer(r, 1);
    EXPECT_SAID(r, "");
    rig_free(r);
}

TEST(S1_36_B10_an_operators_stop_is_undone_until_drained)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, false));
    EXPECT_SAID(r, "c1 asked operator, c1 stopped 1");
    rig_offer(r, 1);
    EXPECT_SAID(r, "");
    EXPECT_OK(sl_group_resume(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "c1<-1");
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_SERVER, false));
    EXPECT_SAID(r, "c1 asked server, c1 stopped 2");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_ERR(sl_group_resume(r->group, c1, r->now_ns), SL_ERR_DRAINED);
    EXPECT_ERR(sl_group_resume(r->group, 99, r->now_ns), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

TEST(an_operators_stop_becomes_final_when_the_consumer_stops_itself_as_well)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, false));
    rig_said(r);
    EXPECT_ERR(rig_stop(r, c1), SL_ERR_ALREADY_STOPPED);
    EXPECT_SAID(r, "c1 stopped-already 1");
    EXPECT_EQ(rig_last(r, SL_EFFECT_STOPPED)->stopped.asked_by, SL_ASKER_OPERATOR);
    EXPECT_ERR(sl_group_resume(r->group, c1, r->now_ns), SL_ERR_DRAINED);
    rig_free(r);
}

static uint64_t join_tagged(rig *r, uint64_t tag)
{
    const sl_join join = {
        .session = rig_session((unsigned)r->effect_count), .window = 3, .tags = &tag, .tag_count = 1
    };
    uint64_t consumer = 0;

    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &consumer));
    return consumer;
}

TEST(B10_a_stop_by_tag_reaches_those_that_join_later_and_survives_a_restart)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    rig *r = rig_new(NULL);

    join_tagged(r, 42);
    join_tagged(r, 43);
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    EXPECT_SAID(r, "c1 asked operator, c1 stopped 0, c1 drained 0/0/0");
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns)); /* again: nothing to do */
    EXPECT_SAID(r, "");
    rig_restart(r);
    rig_said(r);
    join_tagged(r, 42);
    EXPECT_SAID(r, "c1 asked operator, c1 stopped 0, c1 drained 0/0/0");
    join_tagged(r, 43);
    rig_offer(r, 1);
    EXPECT_SAID(r, "c2<-0");
    rig_free(r);
}

TEST(B10_taking_back_a_stop_by_tag_resumes_only_whom_no_other_rule_stops)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    rig *r = rig_new(NULL);

    join_tagged(r, 42);
    rig_offer(r, 1);
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    EXPECT_OK(sl_group_stop_tag(r->group, SL_TAG_EVERYONE, &stop, r->now_ns));
    rig_said(r);
    rig_offer(r, 1);
    EXPECT_OK(sl_group_resume_tag(r->group, 42, r->now_ns));
    EXPECT_SAID(r, ""); /* the other rule is about everyone */
    EXPECT_ERR(sl_group_resume_tag(r->group, 42, r->now_ns), SL_ERR_NOT_FOUND);
    EXPECT_ERR(sl_group_resume(r->group, rig_last(r, SL_EFFECT_JOIN)->join.consumer, r->now_ns),
               SL_ERR_ALREADY_STOPPED);
    EXPECT_OK(sl_group_resume_tag(r->group, SL_TAG_EVERYONE, r->now_ns));
    EXPECT_SAID(r, "c1<-1");
    rig_free(r);
}

TEST(there_is_a_limit_to_the_number_of_rules)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    rig *r = rig_new(NULL);

    for (uint64_t tag = 1; tag <= SL_RULES_MAX; tag++)
        EXPECT_OK(sl_group_stop_tag(r->group, tag, &stop, r->now_ns));
    EXPECT_ERR(sl_group_stop_tag(r->group, 1000, &stop, r->now_ns), SL_ERR_FULL);
    rig_free(r);
}

TEST(B11_a_cordoned_consumer_gets_messages_only_when_no_other_has_room)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 5);

    rig_join(r, 2);
    EXPECT_OK(sl_group_cordon(r->group, c1, true, r->now_ns));
    rig_offer(r, 3);
    EXPECT_SAID(r, "c2<-0, c2<-1, c1<-2");
    EXPECT_OK(sl_group_cordon(r->group, c1, false, r->now_ns));
    rig_offer(r, 1);
    EXPECT_SAID(r, "c1<-3");
    EXPECT_ERR(sl_group_cordon(r->group, 99, true, r->now_ns), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

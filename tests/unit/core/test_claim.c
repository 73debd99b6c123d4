/* What a consumer says of its messages: fencing, charging, parking (S1.25, S4.11, S4.14, S4.23, B2, B5, B6). */
#include "rig.h"

#include "core/group_private.h"

TEST(S4_11_a_claim_of_someone_who_is_not_the_holder_changes_nothing_and_is_lost)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1), c2 = rig_join(r, 1);

    rig_offer(r, 2); /* 0 to c1, 1 to c2 */
    rig_said(r);
    EXPECT_OK(rig_ack(r, c2, 0));
    EXPECT_OK(rig_nack(r, c2, 0, SL_NACK_PARK));
    EXPECT_OK(rig_release(r, c2, 0));
    EXPECT_OK(rig_started(r, c2, 0));
    EXPECT_OK(rig_extend(r, c2, 0, SECOND));
    EXPECT_SAID(r, "c2 lost 0, c2 lost 0, c2 lost 0, c2 lost 0, c2 lost 0");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    EXPECT_ERR(rig_ack(r, 99, 1), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

TEST(B5_an_old_or_wrong_token_is_lost_even_from_the_holder)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);
    uint64_t first = 0;

    rig_offer(r, 1);
    first = rig_token(r, 0);
    EXPECT_OK(rig_release(r, c1, 0)); /* comes back to the only consumer, with a new token */
    rig_said(r);
    EXPECT(rig_token(r, 0) > first);
    EXPECT_OK(rig_ack_token(r, c1, 0, first));
    EXPECT_SAID(r, "c1 lost 0");
    EXPECT_OK(rig_ack_token(r, c1, 0, rig_token(r, 0)));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    rig_free(r);
}

TEST(a_settled_message_is_unknown_afterwards)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_ack(r, c1, 0));
    rig_said(r);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "c1 lost 0");
    rig_free(r);
}

/* The border of the lease: just before its end, at its end, and after somebody took the message. The consumer
 * is stopped, so that it does not get the message back itself; its lease's end drains it. */
TEST(S4_23_a_settle_after_the_lease_ran_out_counts_until_another_takes_the_message)
{
    static const struct {
        uint64_t later_ns;
        bool other_takes;
        const char *said;
    } rows[] = {
        { 10 * SECOND - 1, false, "0 acked, c1 settled 0, c1 drained 1/0/0" },
        { 10 * SECOND, false, "0 back expired!, c1 drained 0/0/1, 0 acked, c1 settled 0" },
        { 10 * SECOND, true, "0 back expired!, c1 drained 0/0/1, c2<-0(1), c1 lost 0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig *r = rig_new(NULL);
        const uint64_t c1 = rig_join(r, 1);

        rig_offer(r, 1);
        EXPECT_OK(rig_stop(r, c1));
        rig_said(r);
        r->now_ns += rows[i].later_ns;
        if (rows[i].other_takes)
            rig_join(r, 1);
        EXPECT_OK(rig_ack(r, c1, 0));
        EXPECT_SAID(r, rows[i].said);
        rig_free(r);
    }
}

TEST(started_and_extend_need_a_live_lease)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop(r, c1));
    rig_tick(r, 10 * SECOND);
    rig_said(r);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_extend(r, c1, 0, SECOND));
    EXPECT_SAID(r, "c1 lost 0, c1 lost 0");
    rig_free(r);
}

TEST(S4_24_extend_keeps_the_lease_and_never_longer_than_a_day)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    rig_said(r);
    r->now_ns += 9 * SECOND;
    EXPECT_OK(rig_extend(r, c1, 0, 5 * SECOND));
    EXPECT_SAID(r, "0 extended");
    EXPECT_EQ(rig_tick(r, 0), 5 * SECOND);
    EXPECT_OK(rig_extend(r, c1, 0, 0)); /* 0: as long as a new lease */
    EXPECT_EQ(rig_tick(r, 0), 10 * SECOND);
    EXPECT_OK(rig_extend(r, c1, 0, UINT64_MAX));
    EXPECT_EQ(rig_tick(r, 0), SL_LEASE_NS_MAX);
    rig_free(r);
}

/* Message 0 teaches the server whether the session says what it starts; message 1 is the one that expires. */
TEST(B2_S1_25_only_started_work_is_charged)
{
    static const struct {
        bool sends_started, started;
        const char *said;
    } rows[] = {
        { false, false, "1 back expired!, c1<-1(1)" }, /* the server cannot know: as KurrentDB */
        { true, true, "1 back expired!, c1<-1(1)" },
        { true, false, "1 back expired, c1<-1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig *r = rig_new(NULL);
        const uint64_t c1 = rig_join(r, 2);

        rig_offer(r, 2);
        if (rows[i].sends_started)
            EXPECT_OK(rig_started(r, c1, 0));
        EXPECT_OK(rig_ack(r, c1, 0));
        if (rows[i].started)
            EXPECT_OK(rig_started(r, c1, 1));
        rig_said(r);
        rig_tick(r, 10 * SECOND);
        EXPECT_SAID(r, rows[i].said);
        rig_free(r);
    }
}

TEST(B2_leaving_charges_what_was_started_and_nothing_else)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 3);

    rig_offer(r, 3);
    EXPECT_OK(rig_started(r, c1, 1));
    rig_said(r);
    EXPECT_OK(sl_group_leave(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left, 1 back left!, 2 back left, c1 gone");
    rig_free(r);
}

TEST(S4_14_deliveries_and_attempts_are_counted_apart)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);
    const sl_effect *last;

    rig_offer(r, 1);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    last = rig_last(r, SL_EFFECT_DELIVER);
    EXPECT_EQ(last->deliver.counters.deliveries, 5);
    EXPECT_EQ(last->deliver.counters.attempts, 1);
    rig_free(r);
}

static void two_retries(sl_settings *settings)
{
    settings->retries_max = 2;
}

TEST(a_message_is_delivered_retries_max_and_one_times_then_parked)
{
    rig *r = rig_new(two_retries);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_SAID(r, "c1<-0");
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    EXPECT_SAID(r, "0 back nacked!, c1 settled 0, c1<-0(1)");
    rig_tick(r, 10 * SECOND);
    EXPECT_SAID(r, "0 back expired!, c1<-0(2)");
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    EXPECT_SAID(r, "0 parked retries, c1 settled 0");
    rig_free(r);
}

TEST(the_retry_limit_also_holds_for_disconnects)
{
    rig *r = rig_new(two_retries);

    rig_offer(r, 1);
    for (int i = 0; i < 3; i++) {
        const uint64_t c = rig_join(r, 1);
        rig_said(r);
        EXPECT_OK(sl_group_leave(r->group, c, r->now_ns));
    }
    EXPECT_SAID(r, "0 parked retries, c3 gone");
    rig_free(r);
}

static void one_free_interruption(sl_settings *settings)
{
    settings->interrupts_max = 1;
    settings->retries_max = 1;
}

TEST(B6_interrupted_is_an_outcome_that_is_charged_only_past_its_limit)
{
    rig *r = rig_new(one_free_interruption);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    rig_said(r);
    static const char *const said[] = {
        "0 started, 0 back interrupted, c1 settled 0, c1<-0",
        "0 started, 0 back interrupted!, c1 settled 0, c1<-0(1)",
        "0 started, 0 parked retries, c1 settled 0",
    };
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(rig_started(r, c1, 0));
        EXPECT_OK(rig_release(r, c1, 0));
        EXPECT_SAID(r, said[i]);
    }
    rig_free(r);
}

static void backoff(sl_settings *settings)
{
    settings->backoff = (sl_retry_policy){ .kind = SL_RETRY_EXPONENTIAL,
                                           .factor_permille = 2000,
                                           .delay_first_ns = SECOND,
                                           .delay_max_ns = 60 * SECOND };
}

TEST(a_charged_message_waits_for_its_pause_and_others_do_not)
{
    rig *r = rig_new(backoff);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 2);
    rig_said(r);
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    EXPECT_SAID(r, "0 back nacked!, c1 settled 0, c1<-1");
    EXPECT_OK(rig_ack(r, c1, 1));
    rig_said(r);
    EXPECT_EQ(rig_tick(r, SECOND - 1), 1);
    EXPECT_SAID(r, "");
    rig_tick(r, 1);
    EXPECT_SAID(r, "c1<-0(1)");
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY)); /* now twice as long */
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.not_before_ns, r->now_ns + 2 * SECOND);
    rig_tick(r, 2 * SECOND);
    EXPECT_OK(rig_nack_after(r, c1, 0, 7 * SECOND)); /* the nack's own wish wins */
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.not_before_ns, r->now_ns + 7 * SECOND);
    EXPECT_OK(rig_nack_after(r, c1, 0, 0)); /* somebody who does not hold it changes nothing */
    rig_said(r);
    rig_free(r);
}

TEST(one_delivery_is_charged_once_even_if_its_expiry_and_a_late_nack_both_ask)
{
    rig *r = rig_new(backoff);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    rig_tick(r, 10 * SECOND);
    EXPECT_SAID(r, "c1<-0, 0 back expired!");
    EXPECT_OK(rig_nack_after(r, c1, 0, 3 * SECOND));
    EXPECT_SAID(r, "0 back nacked, c1 settled 0");
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.not_before_ns, r->now_ns + 3 * SECOND);
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.counters.attempts, 1);
    EXPECT_OK(rig_ack(r, c1, 0)); /* given up by the nack */
    EXPECT_SAID(r, "c1 lost 0");
    rig_free(r);
}

TEST(releasing_what_has_ended_gives_up_the_claim_and_nothing_else)
{
    rig *r = rig_new(backoff);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    rig_tick(r, 10 * SECOND);
    rig_said(r);
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_SAID(r, "0 back released, c1 settled 0");
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.not_before_ns, r->now_ns + SECOND);
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "c1 lost 0");
    rig_free(r);
}

TEST(an_id_that_comes_twice_is_settled_delivery_by_delivery_the_newest_first)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);
    const sl_offer twice[] = { { .place = { SL_LANE_MAIN, 5 }, .id = rig_id(SL_LANE_MAIN, 0) },
                               { .place = { SL_LANE_MAIN, 6 }, .id = rig_id(SL_LANE_MAIN, 0) } };
    uint32_t taken = 0;

    EXPECT_OK(sl_group_offer(r->group, twice, 2, r->now_ns, &taken));
    EXPECT_SAID(r, "c1<-5, c1<-6");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "6 acked, c1 settled 0");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "5 acked, c1 settled 0");
    rig_free(r);
}

/* The same event id in two streams, in a group over everything. */
TEST(of_two_held_messages_with_one_id_started_marks_one_after_the_other)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);
    uint32_t taken = 0;

    for (uint64_t p = 0; p < 2; p++) {
        const sl_offer offer = { .place = { SL_LANE_MAIN, p }, .id = rig_id(SL_LANE_MAIN, 0), .key = p };
        EXPECT_OK(sl_group_offer(r->group, &offer, 1, r->now_ns, &taken));
    }
    rig_said(r);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_SAID(r, "1 started, 0 started");
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_SAID(r, "");
    rig_free(r);
}

/* It ends first, so it is the one that needs it; who extends as often as he holds the id loses neither. */
TEST(of_two_held_messages_with_one_id_the_one_that_ends_first_is_extended)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);
    uint32_t taken = 0;

    for (uint64_t p = 0; p < 2; p++) {
        const sl_offer offer = { .place = { SL_LANE_MAIN, p }, .id = rig_id(SL_LANE_MAIN, 0), .key = p };
        EXPECT_OK(sl_group_offer(r->group, &offer, 1, r->now_ns, &taken));
        r->now_ns += SECOND;
    }
    rig_said(r);
    EXPECT_OK(rig_extend(r, c1, 0, 60 * SECOND));
    EXPECT_OK(rig_extend(r, c1, 0, 60 * SECOND));
    EXPECT_SAID(r, "0 extended, 1 extended");
    rig_free(r);
}

TEST(started_twice_is_one_record)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_started(r, c1, 0));
    rig_said(r);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_SAID(r, "");
    rig_free(r);
}

static void jitter(sl_settings *settings)
{
    backoff(settings);
    settings->backoff.jitter_permille = 500;
    settings->backoff.attempts_max = 1; /* neither of these counts in a group */
    settings->backoff.delay_total_max_ns = 1;
}

TEST(pauses_are_spread_and_only_the_delays_of_the_backoff_count)
{
    rig *r = rig_new(jitter);
    const uint64_t c1 = rig_join(r, 9);
    uint64_t delays[8];
    bool differ = false;

    rig_offer(r, 8);
    for (uint64_t p = 0; p < 8; p++) {
        EXPECT_OK(rig_nack(r, c1, p, SL_NACK_RETRY));
        delays[p] = rig_last(r, SL_EFFECT_BACK)->back.not_before_ns - r->now_ns;
        EXPECT(delays[p] >= SECOND / 2 && delays[p] <= SECOND * 3 / 2);
        differ = differ || delays[p] != delays[0];
    }
    EXPECT(differ);
    rig_free(r);
}

/* --- found by a hostile tester --- */

TEST(no_nack_can_ask_for_a_pause_longer_than_a_day)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_nack_after(r, c1, 0, UINT64_MAX));
    EXPECT_EQ(rig_last(r, SL_EFFECT_BACK)->back.not_before_ns, r->now_ns + SL_PAUSE_NS_MAX);
    rig_free(r);
}

TEST(a_nack_with_an_action_that_does_not_exist_is_refused_and_nothing_happens)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    rig_said(r);
    EXPECT_ERR(rig_nack(r, c1, 0, (sl_nack_action)99), SL_ERR_INVALID);
    EXPECT_SAID(r, "");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    rig_free(r);
}

/* Ids are chosen by publishers: many equal ones must not make each answer look at all of them. Counted in claims, not
 * in time: the newest one is always the first that is looked at, so a chain of any length is no work. */
TEST(answers_to_many_equal_ids_find_the_newest_delivery_first)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 300, .consumers_max = 2 });
    const uint64_t c1 = rig_join(r, 300);

    for (uint64_t p = 0; p < 300; p++) {
        const sl_offer offer = { .place = { SL_LANE_MAIN, p }, .id = rig_id(SL_LANE_MAIN, 0) };
        uint32_t taken;
        EXPECT_OK(sl_group_offer(r->group, &offer, 1, r->now_ns, &taken));
    }
    for (uint64_t p = 300; p > 0; p--) {
        EXPECT_OK(rig_ack(r, c1, 0));
        EXPECT_EQ(rig_last(r, SL_EFFECT_SETTLE)->settle.place.position, p - 1);
    }
    rig_free(r);
}

TEST(counters_stay_at_their_end)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    SL_CONTAINER_OF(sl_list_first(&r->group->lines[SL_LANE_MAIN].messages), sl_message, line)
        ->counters.deliveries = UINT32_MAX;
    EXPECT_OK(rig_release(r, c1, 0));
    EXPECT_EQ(rig_last(r, SL_EFFECT_LEASE)->lease.deliveries, UINT32_MAX);
    rig_free(r);
}

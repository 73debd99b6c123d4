/* Sessions: leave, away, come back, heirs, death (architecture section 5; B4, B6). */
#include "rig.h"

static uint64_t come_back(rig *r, unsigned session, const uint64_t *positions, uint32_t count)
{
    sl_uuid ids[8];
    const sl_join join = { .session = rig_session(session),
                           .window = 3,
                           .extensions = true,
                           .reconnect_ns = 2 * SECOND,
                           .resume = ids,
                           .resume_count = count };
    uint64_t consumer = 0;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = rig_id(SL_LANE_MAIN, positions[i]);
    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &consumer));
    return consumer;
}

TEST(a_lost_connection_gives_back_what_was_not_started_and_keeps_the_rest)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);
    sl_consumer_info info;

    rig_offer(r, 3);
    EXPECT_OK(rig_started(r, c1, 1));
    rig_said(r);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left, 2 back left");
    EXPECT_OK(sl_group_consumer(r->group, c1, &info));
    EXPECT_EQ(info.state, SL_CONSUMER_AWAY);
    EXPECT_EQ(info.in_flight, 1);
    EXPECT_ERR(rig_ack(r, c1, 1), SL_ERR_NO_CONSUMER);
    EXPECT_ERR(rig_stop(r, c1), SL_ERR_NO_CONSUMER);
    EXPECT_ERR(sl_group_away(r->group, c1, r->now_ns), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

/* Started without claims: whoever says it first is not charged for what was on its way when the connection broke. */
TEST(started_without_claims_marks_the_session_and_no_lease)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);
    size_t before;

    rig_offer(r, 2);
    rig_said(r);
    before = r->effect_count;
    EXPECT_OK(sl_group_started(r->group, c1, NULL, 0, r->now_ns));
    EXPECT_EQ(r->effect_count, before + 1);
    EXPECT_EQ(rig_last(r, SL_EFFECT_JOIN)->join.consumer, c1);
    EXPECT(rig_last(r, SL_EFFECT_JOIN)->join.sends_started);
    EXPECT_OK(sl_group_started(r->group, c1, NULL, 0, r->now_ns)); /* it is known */
    EXPECT_EQ(r->effect_count, before + 1);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left, 1 back left, c1 gone");
    EXPECT_ERR(sl_group_started(r->group, c1, NULL, 0, r->now_ns), SL_ERR_NO_CONSUMER);
    rig_free(r);
}

TEST(only_started_says_something_without_claims)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);

    rig_offer(r, 1);
    EXPECT_OK(sl_group_ack(r->group, c1, NULL, 0, r->now_ns));
    EXPECT_OK(sl_group_extend(r->group, c1, NULL, 0, 0, r->now_ns));
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_said(r);
    rig_tick(r, 2 * SECOND);
    EXPECT_SAID(r, "0 back died!, c1 gone"); /* it might have begun with everything */
    rig_free(r);
}

TEST(what_a_session_said_of_starting_survives_a_restart_and_holds_for_its_other_calls)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 1, true);

    rig_join_as(r, 1, 1, true);
    rig_offer(r, 2);
    EXPECT_OK(sl_group_started(r->group, c1, NULL, 0, r->now_ns));
    rig_restart(r);
    rig_read_again(r);
    rig_said(r);
    rig_tick(r, 10 * SECOND);
    EXPECT_STR(rig_said_only(r, SL_EFFECT_BACK), "0 back expired, 1 back expired");
    rig_free(r);
}

TEST(who_comes_back_in_time_goes_on_with_the_same_token)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);
    uint64_t c2, token;

    rig_offer(r, 1);
    token = rig_token(r, 0);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_said(r);
    r->now_ns += SECOND;
    c2 = come_back(r, 1, (uint64_t[]){ 0 }, 1);
    EXPECT_SAID(r, "0 moves c2, c1 gone");
    EXPECT_OK(rig_ack_token(r, c2, 0, token));
    EXPECT_SAID(r, "0 acked, c2 settled 0");
    rig_free(r);
}

TEST(who_comes_back_without_a_message_gives_it_to_others_and_is_told_what_it_lost)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);

    rig_offer(r, 2);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(rig_started(r, c1, 1));
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_join_as(r, 2, 1, true);
    rig_said(r);
    come_back(r, 1, (uint64_t[]){ 1, 1, 7 }, 3); /* a name twice is no harm; 7 was never its */
    EXPECT_SAID(r, "1 moves c3, 0 back died!, c1 gone, c3 lost 7, c2<-0(1)");
    rig_free(r);
}

TEST(who_does_not_come_back_in_time_loses_its_work_and_its_message_is_charged)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);

    rig_offer(r, 1);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_join_as(r, 2, 1, true);
    rig_said(r);
    EXPECT_EQ(rig_tick(r, 0), 2 * SECOND);
    rig_tick(r, 2 * SECOND);
    EXPECT_SAID(r, "0 back died!, c1 gone, c2<-0(1)");
    EXPECT_EQ(rig_last(r, SL_EFFECT_DELIVER)->deliver.counters.kills, 1);
    rig_free(r);
}

TEST(the_reconnect_window_never_outlives_the_lease)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);

    rig_offer(r, 1);
    r->now_ns += 9 * SECOND; /* one second of the lease is left, the window has two */
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_said(r);
    rig_tick(r, SECOND);
    EXPECT_SAID(r, "0 back expired!, c1 gone");
    rig_free(r);
}

static void two_kills(sl_settings *settings)
{
    settings->kills_max = 2;
}

TEST(B6_a_message_that_kills_its_sessions_is_parked_for_that)
{
    rig *r = rig_new(two_kills);

    rig_offer(r, 1);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t c = rig_join_as(r, i, 1, true);
        EXPECT_OK(rig_started(r, c, 0));
        rig_said(r);
        EXPECT_OK(sl_group_away(r->group, c, r->now_ns));
        rig_tick(r, 2 * SECOND);
    }
    EXPECT_SAID(r, "0 parked kills, c2 gone");
    rig_free(r);
}

TEST(without_extensions_a_lost_connection_is_a_leave_as_clients_know_it)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 2, false);

    rig_offer(r, 2);
    rig_said(r);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left!, 1 back left!, c1 gone");
    rig_free(r);
}

TEST(two_live_calls_of_one_name_are_two_consumers)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 1, true), c2 = rig_join_as(r, 1, 1, true);

    rig_offer(r, 2);
    EXPECT_SAID(r, "c1<-0, c2<-1");
    EXPECT_OK(rig_ack(r, c2, 0));
    EXPECT_SAID(r, "c2 lost 0");
    EXPECT_OK(rig_ack(r, c1, 0));
    rig_free(r);
}

TEST(B4_after_a_restart_leases_run_on_and_belong_to_who_returns_under_its_name)
{
    rig *r = rig_new(NULL);
    uint64_t back;

    rig_join_as(r, 1, 2, true);
    rig_offer(r, 2);
    rig_said(r);
    r->now_ns += SECOND;
    rig_restart(r);
    rig_join_as(r, 2, 5, true);
    rig_read_again(r);
    EXPECT_SAID(r, ""); /* nothing for the other one: the leases live */
    back = come_back(r, 1, (uint64_t[]){ 0, 1 }, 2);
    EXPECT_SAID(r, "0 moves c2, 1 moves c2, c1 gone");
    EXPECT_OK(rig_ack(r, back, 0));
    EXPECT_SAID(r, "0 acked, c2 settled 0");
    rig_free(r);
}

TEST(B4_without_extensions_the_next_call_of_the_name_may_ack_what_the_dead_one_held)
{
    rig *r = rig_new(NULL);
    uint64_t heir, other;

    rig_join_as(r, 1, 2, false);
    rig_offer(r, 2);
    rig_restart(r);
    heir = rig_join_as(r, 1, 1, false);
    other = rig_join_as(r, 2, 1, false);
    rig_offer(r, 0);
    rig_read_again(r);
    rig_said(r);
    EXPECT_OK(rig_ack(r, other, 0));
    EXPECT_SAID(r, "c2 lost 0");
    EXPECT_OK(rig_extend(r, heir, 0, SECOND)); /* it may settle, not prolong */
    EXPECT_SAID(r, "c1 lost 0");
    EXPECT_OK(rig_ack(r, heir, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    EXPECT_OK(rig_ack(r, heir, 1));
    EXPECT_SAID(r,
                "1 acked, c1 settled 1, c1 gone"); /* the dead call of the earlier life, also its number 1 */
    rig_free(r);
}

TEST(a_session_that_says_what_it_starts_is_known_as_such_when_it_comes_back)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join_as(r, 1, 3, true);
    uint64_t c2;

    rig_offer(r, 1);
    EXPECT_OK(rig_started(r, c1, 0));
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    c2 = come_back(r, 1, (uint64_t[]){ 0 }, 1);
    rig_offer(r, 1);
    rig_said(r);
    EXPECT_OK(sl_group_leave(r->group, c2, r->now_ns));
    EXPECT_SAID(r, "0 back left!, 1 back left, c2 gone");
    rig_free(r);
}

TEST(bad_joins_are_refused)
{
    const uint64_t tags[SL_TAGS_MAX + 1] = { 1 };
    const sl_join no_window = { .session = rig_session(1) };
    const sl_join many_tags = {
        .session = rig_session(1), .window = 1, .tags = tags, .tag_count = SL_TAGS_MAX + 1
    };
    const sl_join good = { .session = rig_session(1), .window = 1 };
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 4, .consumers_max = 1 });
    uint64_t consumer = 0;

    EXPECT_ERR(sl_group_join(r->group, &no_window, r->now_ns, &consumer), SL_ERR_INVALID);
    EXPECT_ERR(sl_group_join(r->group, &many_tags, r->now_ns, &consumer), SL_ERR_INVALID);
    EXPECT_EQ(consumer, 0);
    EXPECT_OK(sl_group_join(r->group, &good, r->now_ns, &consumer));
    EXPECT_ERR(sl_group_join(r->group, &good, r->now_ns, &consumer), SL_ERR_FULL);
    rig_free(r);
}

static void collect(void *ctx, const sl_consumer_info *info)
{
    uint64_t **const at = ctx;

    *(*at)++ = info->consumer;
}

TEST(consumers_are_listed_in_the_order_in_which_they_joined)
{
    rig *r = rig_new(NULL);
    uint64_t ids[4] = { 0 }, *at = ids;
    const uint64_t c1 = rig_join(r, 1), c2 = rig_join(r, 1), c3 = rig_join(r, 1);

    EXPECT_OK(sl_group_leave(r->group, c2, r->now_ns));
    sl_group_consumers(r->group, collect, &at);
    EXPECT_EQ(ids[0], c1);
    EXPECT_EQ(ids[1], c3);
    EXPECT_EQ(at - ids, 2);
    rig_free(r);
}

/* --- found by a hostile tester --- */

TEST(after_a_restart_every_call_of_a_name_without_extensions_may_ack_what_its_dead_calls_held)
{
    rig *r = rig_new(NULL);
    uint64_t a, b;

    rig_join_as(r, 1, 1, false);
    rig_join_as(r, 1, 1, false);
    rig_offer(r, 2);
    rig_restart(r);
    a = rig_join_as(r, 1, 1, false);
    b = rig_join_as(r, 1, 1, false);
    rig_said(r);
    EXPECT_OK(rig_ack(r, a, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, c1 gone");
    EXPECT_OK(rig_ack(r, b, 1));
    EXPECT_SAID(r, "1 acked, c2 settled 1, c2 gone");
    rig_free(r);
}

TEST(who_comes_back_first_does_not_end_the_running_work_of_another_call_of_its_name)
{
    rig *r = rig_new(NULL);
    const uint64_t a = rig_join_as(r, 1, 1, true), b = rig_join_as(r, 1, 1, true);

    rig_offer(r, 2);
    EXPECT_OK(rig_started(r, a, 0));
    EXPECT_OK(rig_started(r, b, 1));
    EXPECT_OK(sl_group_away(r->group, a, r->now_ns));
    EXPECT_OK(sl_group_away(r->group, b, r->now_ns));
    rig_said(r);
    come_back(r, 1, (uint64_t[]){ 0 }, 1);
    EXPECT_SAID(r, "0 moves c3, c1 gone");
    come_back(r, 1, (uint64_t[]){ 1 }, 1);
    EXPECT_SAID(r, "1 moves c4, c2 gone");
    rig_free(r);
}

TEST(a_process_started_anew_is_the_successor_of_the_call_that_is_away_longest)
{
    rig *r = rig_new(NULL);
    const uint64_t a = rig_join_as(r, 1, 1, true), b = rig_join_as(r, 1, 1, true);

    rig_offer(r, 2);
    EXPECT_OK(sl_group_away(r->group, b, r->now_ns));
    r->now_ns += SECOND;
    EXPECT_OK(sl_group_away(r->group, a, r->now_ns));
    rig_said(r);
    come_back(r, 1, NULL, 0);
    EXPECT_SAID(r, "1 back died!, c2 gone, c3<-1(1)");
    rig_free(r);
}

TEST(what_one_call_says_of_starting_holds_for_all_calls_of_its_session)
{
    rig *r = rig_new(NULL);
    const uint64_t a = rig_join_as(r, 1, 1, true), b = rig_join_as(r, 1, 1, true);

    rig_offer(r, 2);
    EXPECT_OK(rig_started(r, a, 0));
    rig_said(r);
    EXPECT_OK(sl_group_leave(r->group, b, r->now_ns));
    EXPECT_SAID(r, "1 back left, c2 gone");
    rig_free(r);
}

TEST(a_caller_that_knows_the_session_may_say_that_it_tells_what_it_starts)
{
    const sl_join join = {
        .session = rig_session(1), .window = 1, .extensions = true, .sends_started = true
    };
    rig *r = rig_new(NULL);
    uint64_t c1 = 0;

    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &c1));
    rig_offer(r, 1);
    rig_said(r);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "0 back left, c1 gone");
    rig_free(r);
}

/* The server was down for longer than the lease; nobody took the message; its worker comes back with finished work. */
TEST(after_a_restart_a_session_may_still_settle_what_ran_out_while_nobody_was_there)
{
    rig *r = rig_new(NULL);
    uint64_t back;

    rig_join_as(r, 1, 1, true);
    rig_offer(r, 1);
    r->now_ns += 60 * SECOND;
    rig_restart(r);
    EXPECT_SAID(r, "0 back expired!");
    back = come_back(r, 1, (uint64_t[]){ 0 }, 1);
    EXPECT_SAID(r, "0 moves c1, c1 gone");
    EXPECT_OK(rig_ack(r, back, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0");
    rig_free(r);
}

TEST(who_is_only_remembered_gives_its_place_to_one_that_is_there)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 4, .consumers_max = 1 });

    rig_join(r, 1);
    rig_offer(r, 1);
    r->now_ns += 60 * SECOND;
    rig_restart(r);
    rig_said(r);
    rig_join(r, 1);
    EXPECT_SAID(r, "c1 gone");
    rig_free(r);
}

static void at_most_one(sl_settings *settings)
{
    settings->consumers_max = 1;
}

TEST(an_undone_stop_keeps_to_the_maximum)
{
    rig *r = rig_new(at_most_one);
    const uint64_t c1 = rig_join(r, 1);

    rig_offer(r, 1);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, false));
    rig_join(r, 1);
    EXPECT_ERR(sl_group_resume(r->group, c1, r->now_ns), SL_ERR_CONSUMERS_MAX);
    rig_free(r);
}

/* Its place was taken while it was away. It may finish what it holds, and there are no more active ones than the maximum. */
TEST(who_comes_back_to_its_leases_is_let_into_a_full_group_to_finish_them)
{
    const sl_uuid held = rig_id(SL_LANE_MAIN, 0), other = rig_id(SL_LANE_MAIN, 7);
    sl_join back = {
        .session = rig_session(1), .window = 1, .extensions = true, .resume = &other, .resume_count = 1
    };
    rig *r = rig_new(at_most_one);
    const uint64_t c1 = rig_join_as(r, 1, 1, true);
    uint64_t c3 = 0;

    rig_offer(r, 1);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_join_as(r, 2, 5, true);
    rig_said(r);
    EXPECT_ERR(sl_group_join(r->group, &back, r->now_ns, &c3), SL_ERR_CONSUMERS_MAX);
    back.resume = &held;
    back.extensions = false;
    EXPECT_ERR(sl_group_join(r->group, &back, r->now_ns, &c3), SL_ERR_CONSUMERS_MAX);
    back.extensions = true;
    EXPECT_OK(sl_group_join(r->group, &back, r->now_ns, &c3));
    EXPECT_SAID(r, "0 moves c3, c1 gone, c3 asked server, c3 stopped 1");
    rig_offer(r, 1);
    EXPECT_OK(rig_ack(r, c3, 0));
    EXPECT_SAID(r, "c2<-1, 0 acked, c3 settled 0, c3 drained 1/0/0");
    rig_free(r);
}

TEST(taking_back_a_rule_does_not_undo_the_stop_of_one_consumer)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2);

    rig_offer(r, 1);
    EXPECT_OK(sl_group_stop(r->group, c1, &stop, r->now_ns));
    EXPECT_OK(sl_group_stop_tag(r->group, SL_TAG_EVERYONE, &stop, r->now_ns));
    EXPECT_OK(sl_group_resume_tag(r->group, SL_TAG_EVERYONE, r->now_ns));
    rig_said(r);
    rig_offer(r, 1);
    EXPECT_SAID(r, "");
    EXPECT_OK(sl_group_resume(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "c1<-1");
    rig_free(r);
}

TEST(information_tells_whether_newcomers_are_stopped)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    rig *r = rig_new(NULL);
    sl_group_info info;

    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    sl_group_info_get(r->group, &info);
    EXPECT(info.rules == 1 && !info.everyone_stopped);
    EXPECT_OK(sl_group_stop_tag(r->group, SL_TAG_EVERYONE, &stop, r->now_ns));
    sl_group_info_get(r->group, &info);
    EXPECT(info.rules == 2 && info.everyone_stopped);
    EXPECT_OK(sl_group_resume_tag(r->group, SL_TAG_EVERYONE, r->now_ns));
    sl_group_info_get(r->group, &info);
    EXPECT(info.rules == 1 && !info.everyone_stopped);
    rig_free(r);
}

TEST(a_call_that_a_rule_stops_at_once_is_not_refused_by_the_maximum)
{
    const sl_stop stop = { .asked_by = SL_ASKER_OPERATOR };
    const uint64_t tag = 42, zero = 0;
    const sl_join join = { .session = rig_session(9), .window = 1, .tags = &tag, .tag_count = 1 };
    const sl_join nobody = { .session = rig_session(9), .window = 1, .tags = &zero, .tag_count = 1 };
    rig *r = rig_new(at_most_one);
    uint64_t c2 = 0;

    rig_join(r, 1);
    EXPECT_OK(sl_group_stop_tag(r->group, 42, &stop, r->now_ns));
    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &c2));
    EXPECT_SAID(r, "c2 asked operator, c2 stopped 0, c2 drained 0/0/0");
    EXPECT_ERR(sl_group_join(r->group, &nobody, r->now_ns, &c2), SL_ERR_INVALID);
    rig_free(r);
}

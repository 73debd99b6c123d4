/* The consumer's side of the call against a scripted peer: what is sent when, what answers mean, and servers that break the contract. */
#include "client/consuming_rig.h"

#include <stdlib.h>
#include <string.h>

static consuming_rig *joined(uint32_t window)
{
    consuming_rig *const rig = consuming_rig_new("c", window);

    consuming_rig_join(rig);
    return rig;
}

static consuming_rig *joined_with(uint32_t window, uint64_t events)
{
    consuming_rig *const rig = joined(window);

    for (uint64_t i = 0; i < events; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    (void)consuming_rig_heard(rig);
    return rig;
}

static void reconnect(consuming_rig *rig)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };

    response.subscription_id = SL_STR("orders::g");
    sl_consuming_over(&rig->c);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_say(rig, &response));
    EXPECT_OK(consuming_rig_turn(rig));
}

TEST(what_a_consumer_says_in_a_turn_leaves_in_one_message_of_each_kind)
{
    consuming_rig *const rig = joined_with(10, 9);

    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 2);
    EXPECT_EQ(consuming_rig_started(rig, 7, 2), 2);
    EXPECT_EQ(consuming_rig_release(rig, 4, 1), 1);
    EXPECT_EQ(consuming_rig_nack(rig, 5, 1, SL_WIRE_NACK_PARK, "bad"), 1);
    EXPECT_EQ(consuming_rig_nack(rig, 6, 1, SL_WIRE_NACK_RETRY, NULL), 1);
    EXPECT_EQ(consuming_rig_ack(rig, 2, 2), 2);
    EXPECT_EQ(consuming_rig_extend(rig, 7, 2, 500), 2);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig,
                         "started:7,8 extend:7,8=500 ack:0,1,2,3 nack:5=park/bad nack:6=retry/ release:4");
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "");
    consuming_rig_free(rig);
}

TEST(a_message_is_settled_once_and_by_its_holder_only)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 2);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 0);
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 0);
    EXPECT_EQ(consuming_rig_nack(rig, 9, 1, SL_WIRE_NACK_SKIP, ""), 0);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(!sl_consuming_is_quiet(&rig->c));
    EXPECT(consuming_rig_settled(rig, 1, 1));
    EXPECT(consuming_rig_lost(rig, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "settled:1 lost:0");
    EXPECT(sl_consuming_is_quiet(&rig->c));
    EXPECT_EQ(rig->c.holding.count, 0);
    consuming_rig_free(rig);
}

TEST(no_more_acks_are_on_their_way_than_the_limit)
{
    consuming_rig *const rig = joined(3000);

    for (uint64_t i = 0; i < 3000; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 3000), 3000);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(rig->c.holding.said_count, SL_CONSUMER_UNANSWERED_MAX);
    EXPECT(consuming_rig_settled(rig, 0, 2000));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(rig->c.holding.said_count, 1000);
    EXPECT(consuming_rig_settled(rig, 2000, 1000));
    EXPECT_EQ(rig->c.holding.count, 0);
    consuming_rig_free(rig);
}

TEST(what_finds_no_room_is_sent_when_there_is_room)
{
    consuming_rig *const rig = joined_with(10, 3);

    rig->no_room = true;
    EXPECT_EQ(consuming_rig_ack(rig, 0, 3), 3);
    sl_consuming_stop(&rig->c, false);
    EXPECT_ERR(consuming_rig_turn(rig), SL_ERR_FULL);
    rig->no_room = false;
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:0,1,2 stop");
    consuming_rig_free(rig);
}

TEST(nothing_but_options_is_sent_before_the_confirmation)
{
    consuming_rig *const rig = joined_with(10, 2);

    sl_consuming_over(&rig->c);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    sl_consuming_stop(&rig->c, false);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options:1+0,1");
    consuming_rig_free(rig);
}

TEST(after_a_lost_connection_exactly_what_is_held_is_resumed_and_unanswered_acks_are_said_again)
{
    consuming_rig *const rig = joined_with(10, 6);

    EXPECT_EQ(consuming_rig_started(rig, 0, 4), 4);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 2);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT_EQ(consuming_rig_nack(rig, 2, 1, SL_WIRE_NACK_PARK, "bad"), 1); /* never sent */
    (void)consuming_rig_sent(rig);
    (void)consuming_rig_heard(rig);
    reconnect(rig);
    EXPECT_CONSUMER_SENT(rig, "options:10+1,2,3 started:2,3 ack:1 nack:2=park/bad");
    EXPECT_CONSUMER_HEARD(rig,
                          "lost:4 lost:5 connected:2+3"); /* never started: the server has given them away */
    EXPECT(consuming_rig_settled(rig, 1, 2));
    EXPECT_CONSUMER_HEARD(rig, "settled:1 settled:2");
    consuming_rig_free(rig);
}

TEST(one_that_promises_to_mark_its_starts_says_so_behind_the_options_of_each_call)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);

    rig->c.says_started = true;
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options:10 started:");
    sl_consuming_over(&rig->c);
    consuming_rig_join(rig);
    EXPECT(consuming_rig_event(rig, 0, 1));
    (void)consuming_rig_heard(rig);
    (void)consuming_rig_sent(rig);
    reconnect(rig);
    EXPECT_CONSUMER_SENT(rig, "options:10 started:");
    EXPECT_CONSUMER_HEARD(rig, "lost:0 connected:2"); /* the server has given it away */
    sl_consuming_over(&rig->c);
    sl_consuming_begin(&rig->c, false); /* one without extensions does not know what that is */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options-:10");
    consuming_rig_free(rig);
}

TEST(one_that_never_tells_of_starts_keeps_everything_over_a_lost_connection)
{
    consuming_rig *const rig = joined_with(10, 3);

    reconnect(rig);
    EXPECT_CONSUMER_SENT(rig, "options:10+0,1,2");
    EXPECT_CONSUMER_HEARD(rig, "connected:2+3");
    EXPECT(consuming_rig_lost(rig, 1, 1)); /* resumed in vain */
    EXPECT_CONSUMER_HEARD(rig, "lost:1");
    consuming_rig_free(rig);
}

TEST(nothing_is_started_without_a_connection)
{
    consuming_rig *const rig = joined_with(10, 2);

    sl_consuming_over(&rig->c);
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 0);
    sl_consuming_begin(&rig->c, true);
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 0);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1); /* work that was going on may end */
    consuming_rig_free(rig);
}

TEST(an_ack_whose_answer_was_lost_with_the_connection_is_unsure_not_lost)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    reconnect(rig);
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_lost(rig, 0, 1)); /* to resume */
    EXPECT(consuming_rig_lost(rig, 0, 1)); /* to the ack */
    EXPECT_CONSUMER_HEARD(rig, "unsure:0");
    EXPECT(sl_consuming_is_quiet(&rig->c));
    consuming_rig_free(rig);
}

TEST(work_that_was_done_is_not_done_again_when_the_message_comes_back)
{
    consuming_rig *const rig = joined_with(10, 1);

    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    reconnect(rig);
    (void)consuming_rig_sent(rig);
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_lost(rig, 0, 1));
    EXPECT(consuming_rig_event(rig, 0, 9)); /* resumed in vain, and given to us again */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:0");
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "unsure:0");
    EXPECT_EQ(rig->c.absorbed_count, 1);
    consuming_rig_free(rig);
}

TEST(a_message_that_is_held_and_comes_again_has_a_new_lease_and_is_not_given_out_twice)
{
    consuming_rig *const rig = joined_with(10, 1);

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    (void)consuming_rig_sent(rig);
    EXPECT(consuming_rig_event(rig, 0, 9));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:0");
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT_EQ(rig->c.renewed_count, 1);
    consuming_rig_free(rig);
}

TEST(a_message_that_was_resumed_in_vain_and_came_again_is_still_ours)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT_EQ(consuming_rig_ack(rig, 1, 1), 1);
    reconnect(rig);
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_event(rig, 0, 8)); /* events may overtake the answer to the list */
    EXPECT(consuming_rig_event(rig, 1, 9));
    EXPECT(consuming_rig_lost(rig, 0, 2));
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 0, 2));
    EXPECT_CONSUMER_HEARD(rig, "settled:0 settled:1");
    consuming_rig_free(rig);
}

TEST(a_released_message_may_come_again_before_its_release_is_answered)
{
    consuming_rig *const rig = joined_with(10, 1);

    EXPECT_EQ(consuming_rig_release(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_event(rig, 0, 9));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "0 released:0 settled:0");
    consuming_rig_free(rig);
}

/* --- stop --- */

TEST(a_stop_with_hand_back_tells_what_went_back_then_stopped_then_drained)
{
    consuming_rig *const rig = joined_with(10, 4);

    EXPECT_EQ(consuming_rig_started(rig, 1, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:1 ack:0 stop+back");
    EXPECT_EQ(consuming_rig_started(rig, 2, 1), 0); /* it is on its way back */
    EXPECT(consuming_rig_event(rig, 4, 9));         /* overtaken by our Stop: never given out */
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 1, 1));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT_EQ(consuming_rig_ack(rig, 1, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 1, 1));
    EXPECT(consuming_rig_drained(rig));
    EXPECT_CONSUMER_HEARD(rig, "released:2 released:3 stopped:1 settled:0 settled:1 drained:1/0/0");
    EXPECT_EQ(rig->c.holding.count, 0);
    consuming_rig_free(rig);
}

TEST(without_hand_back_what_comes_before_stopped_is_given_out)
{
    consuming_rig *const rig = joined_with(10, 1); /* S1.26 */

    sl_consuming_stop(&rig->c, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_event(rig, 1, 2));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 2));
    EXPECT_CONSUMER_HEARD(rig, "1 stopped:2");
    sl_consuming_stop(&rig->c, true); /* changes its mind */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "stop stop+back");
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, true, 0, 0));
    EXPECT(consuming_rig_drained(rig));
    EXPECT_CONSUMER_HEARD(rig, "released:0 released:1 stopped:0! drained:1/0/0");
    consuming_rig_free(rig);
}

TEST(a_stop_outlives_the_connection_and_what_the_new_call_brings_goes_back)
{
    consuming_rig *const rig = joined_with(10, 2);

    sl_consuming_stop(&rig->c, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 2));
    EXPECT_CONSUMER_HEARD(rig, "stopped:2");
    (void)consuming_rig_sent(rig);
    reconnect(rig);
    EXPECT(consuming_rig_event(rig, 2, 7));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options:1+0,1 stop release:2");
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 2));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 2);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 0, 3));
    EXPECT(consuming_rig_drained(rig));
    EXPECT_CONSUMER_HEARD(rig, "connected:2+2 settled:0 settled:1 drained:2/0/0");
    consuming_rig_free(rig);
}

TEST(one_that_holds_nothing_is_drained_without_a_connection)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    sl_consuming_over(&rig->c);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "lost:1"); /* 0 is still worked on */
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    reconnect(rig);
    EXPECT(consuming_rig_settled(rig, 0, 1));
    (void)consuming_rig_heard(rig);
    sl_consuming_over(&rig->c);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "stopped:0 drained:1/0/0");
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "");
    consuming_rig_free(rig);
}

TEST(an_operator_stops_and_may_take_it_back)
{
    consuming_rig *const rig = joined_with(10, 1);
    sl_persistent_response request = { .kind = SL_PERSISTENT_RESPONSE_STOP_REQUESTED };

    EXPECT(consuming_rig_say(rig, &request));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, false, 0, 1));
    EXPECT(consuming_rig_event(rig, 1, 2));
    EXPECT_CONSUMER_HEARD(rig, "stop-requested stopped:1^operator resumed 1");
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, false, 0, 0));
    EXPECT(consuming_rig_drained(rig));
    EXPECT_CONSUMER_HEARD(rig, "lost:0 lost:1 stopped:0^operator drained:1/0/0");
    sl_consuming_stop(&rig->c, false); /* now the user, too: he must hear that it is over */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, true, 0, 0));
    EXPECT_CONSUMER_HEARD(rig, "stopped:0!^operator drained:0/0/0");
    consuming_rig_free(rig);
}

static bool wish_hand_back(consuming_rig *rig)
{
    sl_persistent_response request = { .kind = SL_PERSISTENT_RESPONSE_STOP_REQUESTED };

    request.stop_requested.hand_back_unstarted = true;
    return consuming_rig_say(rig, &request);
}

/* The start of 1 crosses with the wish: it is finished here. Afterwards it is like any other stop of an operator. */
TEST(what_was_not_begun_is_released_when_an_operator_wishes_it)
{
    consuming_rig *const rig = joined_with(10, 4);

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_started(rig, 1, 1), 1);
    EXPECT(wish_hand_back(rig));
    EXPECT_EQ(consuming_rig_started(rig, 2, 1), 0); /* it is on its way back */
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, false, 0, 4));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:0 started:1 release:2,3");
    EXPECT(consuming_rig_settled(rig, 2, 2));
    EXPECT_CONSUMER_HEARD(rig, "stop-requested stopped:4^operator released:2 released:3");
    EXPECT(consuming_rig_event(rig, 4, 9));
    EXPECT_EQ(consuming_rig_started(rig, 4, 1), 1);
    EXPECT_CONSUMER_HEARD(rig, "resumed 4");
    EXPECT_EQ(sl_consuming_is_quiet(&rig->c), true);
    consuming_rig_free(rig);
}

TEST(who_never_marks_a_start_may_be_working_on_everything_and_finishes_it)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT(wish_hand_back(rig));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, false, 0, 2));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "");
    EXPECT_EQ(consuming_rig_ack(rig, 0, 2), 2);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:0,1");
    consuming_rig_free(rig);
}

/* One that has stopped before hears of the wish as well; what its own Stop hands back is not released besides. */
TEST(a_wish_that_comes_after_a_stop_is_granted_once)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    sl_consuming_stop(&rig->c, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 2));
    EXPECT(wish_hand_back(rig));
    EXPECT(wish_hand_back(rig));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:0 stop release:1");
    sl_consuming_stop(&rig->c, true);
    EXPECT(wish_hand_back(rig));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "stop+back");
    consuming_rig_free(rig);
}

/* --- servers without extensions --- */

static consuming_rig *joined_old(uint64_t events)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };

    response.subscription_id = SL_STR("orders::g");
    sl_consuming_begin(&rig->c, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options-:10");
    EXPECT(consuming_rig_say(rig, &response));
    EXPECT_CONSUMER_HEARD(rig, "connected:1-");
    for (uint64_t i = 0; i < events; i++)
        EXPECT(consuming_rig_event(rig, i, 0));
    (void)consuming_rig_heard(rig);
    return rig;
}

TEST(without_extensions_this_side_alone_stops_starting_and_waits_for_its_acks)
{
    consuming_rig *const rig = joined_old(3); /* S1.20, S1.28 */

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 5), 0);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "released:1 released:2 stopped:1");
    EXPECT(consuming_rig_event(rig, 3, 0)); /* such servers go on pushing */
    EXPECT(!sl_consuming_wants_proof(&rig->c));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:0");
    EXPECT(sl_consuming_wants_proof(&rig->c));
    EXPECT(!sl_consuming_is_quiet(&rig->c)); /* it was sent, but was it read? */
    EXPECT_CONSUMER_HEARD(rig, "");
    sl_consuming_proved(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "sent:0 drained:1/2/0");
    EXPECT(sl_consuming_is_quiet(&rig->c) && !sl_consuming_wants_proof(&rig->c));
    consuming_rig_free(rig);
}

TEST(without_extensions_each_word_of_one_that_leaves_is_proved_while_others_run_S1_21)
{
    consuming_rig *const rig = joined_old(3);

    EXPECT_EQ(consuming_rig_started(rig, 0, 3), 3);
    sl_consuming_stop(&rig->c, true);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_release(rig, 1, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "stopped:3");
    EXPECT(sl_consuming_wants_proof(&rig->c));
    sl_consuming_proved(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "sent:0 released:1"); /* 2 still runs */
    EXPECT(!sl_consuming_wants_proof(&rig->c));
    EXPECT_EQ(consuming_rig_ack(rig, 2, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    sl_consuming_over(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "unsure:2"); /* the connection broke before the proof */
    consuming_rig_free(rig);
}

TEST(without_extensions_a_release_is_a_nack_and_a_lost_connection_loses_everything)
{
    consuming_rig *const rig = joined_old(3);

    EXPECT_EQ(consuming_rig_release(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "nack:0=retry/");
    EXPECT_EQ(consuming_rig_ack(rig, 1, 1), 1);
    sl_consuming_over(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "released:0 lost:1 lost:2");
    consuming_rig_free(rig);
}

/* --- servers that break the contract --- */

static void expect_broken(consuming_rig *rig, bool is_fine, const char *word)
{
    EXPECT(!is_fine);
    if (strstr(rig->c.problem, word) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", rig->c.problem, word);
    consuming_rig_free(rig);
}

static consuming_rig *stopped_by(sl_wire_asked_by asked_by)
{
    consuming_rig *const rig = joined_with(10, 1);

    if (asked_by == SL_WIRE_ASKED_BY_CONSUMER)
        sl_consuming_stop(&rig->c, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_stopped(rig, asked_by, false, 0, 1));
    return rig;
}

/* An operator may resume it as well: it came back to a full group, say, and then somebody left. */
TEST(an_event_after_a_stop_by_the_server_means_that_it_was_taken_back)
{
    consuming_rig *const rig = stopped_by(SL_WIRE_ASKED_BY_SERVER);

    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_event(rig, 5, 5));
    EXPECT_CONSUMER_HEARD(rig, "resumed 5");
    consuming_rig_free(rig);
}

TEST(an_event_after_stopped_ends_the_call_of_who_stopped_itself_or_is_drained)
{
    consuming_rig *rig = stopped_by(SL_WIRE_ASKED_BY_CONSUMER); /* S1.17 */

    expect_broken(rig, consuming_rig_event(rig, 5, 5), "after it had said that this consumer is stopped");
    rig = stopped_by(SL_WIRE_ASKED_BY_SERVER);
    EXPECT(consuming_rig_drained(rig));
    expect_broken(rig, consuming_rig_event(rig, 5, 5), "is drained");
    rig = stopped_by(SL_WIRE_ASKED_BY_OPERATOR);
    EXPECT(consuming_rig_drained(rig));
    expect_broken(rig, consuming_rig_event(rig, 5, 5), "is drained");
}

TEST(answers_that_make_no_sense_end_the_call)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };
    consuming_rig *rig = joined(10);

    expect_broken(rig, consuming_rig_say(rig, &response), "twice");
    rig = joined(10);
    expect_broken(rig, consuming_rig_drained(rig), "not that it is stopped");
    rig = stopped_by(SL_WIRE_ASKED_BY_OPERATOR);
    EXPECT(consuming_rig_drained(rig));
    expect_broken(rig, consuming_rig_drained(rig), "twice");
    rig = joined(10);
    expect_broken(rig, consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 0), "never sent");
    rig = joined_old(0);
    expect_broken(rig, consuming_rig_settled(rig, 0, 1), "extension");
    rig = consuming_rig_new("c", 10);
    sl_consuming_begin(&rig->c, true);
    expect_broken(rig, consuming_rig_say(rig, &response), "before anything was asked");
    rig = consuming_rig_new("c", 10);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    expect_broken(rig, consuming_rig_event(rig, 0, 1), "confirm");
    rig = joined(10);
    response = (sl_persistent_response){ .kind = SL_PERSISTENT_RESPONSE_EVENT };
    expect_broken(rig, consuming_rig_say(rig, &response), "without an id");
}

TEST(ids_that_nobody_knows_are_passed_over_and_counted)
{
    consuming_rig *const rig = joined_with(10, 2);

    EXPECT(consuming_rig_settled(rig, 100, 50));
    EXPECT(consuming_rig_lost(rig, 200, 50));
    EXPECT_EQ(rig->c.unexpected_count, 100);
    EXPECT(consuming_rig_settled(rig, 0, 1)); /* held, and nothing was said of it */
    EXPECT_CONSUMER_HEARD(rig, "lost:0");
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_OPERATOR, false, 300, 5));
    EXPECT_CONSUMER_HEARD(rig, "lost:1 stopped:5^operator");
    consuming_rig_free(rig);
}

TEST(a_server_that_floods_is_stopped_at_the_capacity_unless_leases_have_ended)
{
    consuming_rig *rig = joined(1);
    const uint64_t capacity = rig->c.holding.capacity;

    for (uint64_t i = 0; i < capacity; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    rig->now_ns = UINT64_C(30000000000); /* all leases have ended: the oldest makes room */
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_event(rig, capacity, capacity + 1));
    rig->now_ns = 0;
    for (uint64_t i = 0; i < 4; i++)
        (void)consuming_rig_ack(rig, i, 1);
    EXPECT_EQ(rig->c.holding.count, capacity);
    expect_broken(rig, consuming_rig_event(rig, capacity + 1, 1), "window");
}

TEST(a_lease_that_is_extended_by_what_the_group_gives_has_not_ended)
{
    consuming_rig *const rig = joined(1);
    const uint64_t capacity = rig->c.holding.capacity;

    for (uint64_t i = 0; i < capacity; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    rig->now_ns = UINT64_C(20000000000);
    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 0), 1);
    rig->now_ns = UINT64_C(31000000000); /* all but the first have ended */
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_event(rig, capacity, capacity + 1));
    EXPECT_CONSUMER_HEARD(rig, "lost:1 2002");
    consuming_rig_free(rig);
}

/* Everything a server says, with each byte changed and each end cut: nothing crashes, and what is believed keeps its books. */
static void bend(sl_str message, size_t at, int how)
{
    consuming_rig *const rig = joined_with(10, 3);
    char *const bent = malloc(message.bytes + 1);

    EXPECT(bent != NULL);
    memcpy(bent, message.data, message.bytes);
    bent[at] = (char)(how == 0 ? bent[at] ^ 0x01 : how == 1 ? bent[at] ^ 0x80 : 0xff);
    (void)consuming_rig_ack(rig, 0, 1);
    EXPECT_OK(consuming_rig_turn(rig));
    if (sl_consuming_receive(&rig->c, (sl_str){ bent, message.bytes }, 0))
        (void)sl_consuming_receive(&rig->c, (sl_str){ bent, at }, 0);
    sl_consuming_over(&rig->c);
    sl_consuming_abandon(&rig->c);
    EXPECT_EQ(rig->c.holding.count, 0);
    free(bent);
    consuming_rig_free(rig);
}

TEST(bent_messages_of_a_server_harm_nothing)
{
    sl_uuid ids[] = { consuming_rig_id(0), consuming_rig_id(7) };
    sl_persistent_response responses[] = { { .kind = SL_PERSISTENT_RESPONSE_SETTLED },
                                           { .kind = SL_PERSISTENT_RESPONSE_STOPPED },
                                           { .kind = SL_PERSISTENT_RESPONSE_STOP_REQUESTED } };

    responses[0].settled.ids = (sl_wire_ids){ .count = 2, .list = ids, .form = SL_WIRE_ID_TEXT };
    responses[1].stopped.outstanding =
        (sl_wire_ids){ .count = 2, .list = ids, .form = SL_WIRE_ID_STRUCTURED };
    responses[1].stopped.in_flight = 2;
    responses[1].stopped.asked_by = 1;
    responses[2].stop_requested.reason = SL_STR("because");
    for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++) {
        uint8_t message[512];
        const size_t bytes = sl_persistent_response_size(&responses[i]);

        sl_persistent_response_encode(&responses[i], message, bytes);
        for (size_t at = 0; at < bytes; at++)
            for (int how = 0; how < 3; how++)
                bend((sl_str){ (const char *)message, bytes }, at, how);
    }
}

/* The consumer's side of the call against a scripted peer: two messages with one id. */
#include "client/consuming_rig.h"

/* Holds the first. */
static consuming_rig *joined(void)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);

    consuming_rig_join(rig);
    EXPECT(consuming_rig_event(rig, 0, 1));
    (void)consuming_rig_heard(rig);
    return rig;
}

/* Ids are chosen by publishers: the same one may stand in two streams of a group over everything. */
static bool twin_of_first(consuming_rig *rig)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_EVENT };

    response.event = (sl_wire_read_event){ .has_event = true,
                                           .event = { .id = { consuming_rig_id(0), SL_WIRE_ID_STRUCTURED },
                                                      .stream = SL_STR("other"),
                                                      .type = SL_STR("t") },
                                           .lease_token = 2,
                                           .lease_ms = 20000 };
    return consuming_rig_say(rig, &response);
}

TEST(of_two_held_messages_with_one_id_started_and_extend_reach_one_after_the_other)
{
    consuming_rig *const rig = joined();

    EXPECT(twin_of_first(rig));
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 40000), 1);
    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 40000), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:0,0 extend:0,0=40000");
    consuming_rig_free(rig);
}

/* One is worked on, and its twin came behind a Stop that hands it back: nobody was given that one. */
static consuming_rig *stopping_with_hidden_twin(void)
{
    consuming_rig *const rig = joined();

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "started:0 stop+back");
    EXPECT(twin_of_first(rig));
    EXPECT_CONSUMER_HEARD(rig, "");
    return rig;
}

TEST(what_nobody_was_given_hides_no_message_with_its_id_from_an_ack_or_a_longer_lease)
{
    consuming_rig *const rig = stopping_with_hidden_twin();

    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1); /* once more is harmless */
    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 40000), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 0); /* the other one is not his */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "extend:0=40000 ack:0");
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 1));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT(consuming_rig_drained(rig));
    EXPECT_CONSUMER_HEARD(rig, "stopped:1 settled:0 drained:1/0/0");
    EXPECT_EQ(rig->c.holding.count, 0);
    consuming_rig_free(rig);
}

TEST(a_lease_that_is_lost_is_that_of_a_message_that_was_given_out)
{
    consuming_rig *const rig = stopping_with_hidden_twin();

    EXPECT_EQ(consuming_rig_extend(rig, 0, 1, 40000), 1);
    EXPECT(consuming_rig_lost(rig, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "lost:0");
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 0);
    consuming_rig_free(rig);
}

TEST(of_two_messages_with_one_id_the_one_that_is_worked_on_is_outstanding_after_a_hand_back)
{
    consuming_rig *rig = stopping_with_hidden_twin();

    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "stopped:1"); /* and nothing of a lost lease */
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    consuming_rig_free(rig);

    rig = joined();
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(twin_of_first(rig)); /* this one is given out, too, but not begun */
    (void)consuming_rig_heard(rig);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_stopped(rig, SL_WIRE_ASKED_BY_CONSUMER, false, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "released:0 stopped:1");
    consuming_rig_free(rig);
}

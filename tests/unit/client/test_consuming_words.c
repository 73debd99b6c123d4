/* The consumer's side of the call against a scripted peer: words that meet a full line or a broken connection. */
#include "client/consuming_rig.h"

#include <string.h>

/* Does the rest of what was sent begin with this? Goes behind it. */
static bool has_next(const char **sent, const char *word)
{
    const char *const at = strstr(*sent, word);

    if (at != NULL)
        *sent = at + strlen(word);
    return at != NULL;
}

TEST(a_start_is_told_when_its_ack_has_to_wait_so_that_a_stop_does_not_hand_it_back_S1_22)
{
    consuming_rig *const rig = consuming_rig_new("c", 2002);
    const char *sent;

    consuming_rig_join(rig);
    rig->c.says_started = true;
    EXPECT_OK(consuming_rig_turn(rig));
    for (uint64_t i = 0; i < 2002; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    EXPECT_EQ(consuming_rig_started(rig, 0, 2002), 2002);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 2002), 2002);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    sent = consuming_rig_sent(rig);
    EXPECT(has_next(&sent, "started: ack:0,1,2,")); /* the empty one promises that starts are told */
    EXPECT(has_next(&sent, " started:2000,2001 stop+back"));
    consuming_rig_free(rig);
}

/* Has one message, and has said what becomes of it; the connection broke before the answer, and another one is there: it comes again. */
static consuming_rig *said_and_cut_off(int32_t action, const char *why)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };
    consuming_rig *const rig = consuming_rig_new("c", 10);

    response.subscription_id = SL_STR("orders::g");
    consuming_rig_join(rig);
    EXPECT(consuming_rig_event(rig, 0, 1));
    EXPECT_EQ(consuming_rig_started(rig, 0, 1), 1);
    EXPECT_EQ(consuming_rig_nack(rig, 0, 1, action, why), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    sl_consuming_over(&rig->c);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    (void)consuming_rig_sent(rig);
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_say(rig, &response));
    EXPECT(consuming_rig_event(rig, 0, 7));
    EXPECT_OK(consuming_rig_turn(rig));
    return rig;
}

TEST(a_retry_that_the_server_may_have_heard_is_not_said_of_the_next_delivery_B2)
{
    consuming_rig *const rig = said_and_cut_off(SL_WIRE_NACK_RETRY, "busy");

    EXPECT_CONSUMER_SENT(rig, "");
    EXPECT_CONSUMER_HEARD(rig, "connected:2+1 unsure:0 0");
    EXPECT(consuming_rig_lost(rig, 0,
                              1)); /* the answer to the list of what is still held: about the lease before */
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:0");
    consuming_rig_free(rig);
}

TEST(a_park_that_the_server_may_have_heard_is_said_again_when_its_message_comes)
{
    consuming_rig *const rig = said_and_cut_off(SL_WIRE_NACK_PARK, "bad");

    EXPECT_CONSUMER_SENT(rig, "started:0 nack:0=park/bad");
    consuming_rig_free(rig);
}

/* On the same connection: the server has read it and waits for room on its disk, and the lease has ended meanwhile. */
TEST(a_park_that_waits_at_the_server_is_said_again_when_its_message_comes_and_not_given_out)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);

    consuming_rig_join(rig);
    EXPECT(consuming_rig_event(rig, 0, 1));
    EXPECT_EQ(consuming_rig_nack(rig, 0, 1, SL_WIRE_NACK_PARK, "bad"), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    (void)consuming_rig_sent(rig);
    (void)consuming_rig_heard(rig);
    EXPECT(consuming_rig_event(rig, 0, 7));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "nack:0=park/bad");
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT(consuming_rig_settled(rig, 0, 1));
    EXPECT_CONSUMER_HEARD(rig, "settled:0");
    EXPECT(sl_consuming_is_quiet(&rig->c));
    consuming_rig_free(rig);
}

/* A server that died had not read it, and this process may die before it is asked for more: what it began must not be taken for untouched. */
TEST(what_was_begun_is_told_behind_the_options_of_the_next_call_B3_B4)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);

    rig->c.says_started = true;
    consuming_rig_join(rig);
    for (uint64_t i = 0; i < 4; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    EXPECT_EQ(consuming_rig_started(rig, 0, 3), 3);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    sl_consuming_over(&rig->c);
    EXPECT_EQ(consuming_rig_ack(rig, 1, 1), 1);
    (void)consuming_rig_sent(rig);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options:10+0,1,2 started:0,1,2");
    consuming_rig_free(rig);
}

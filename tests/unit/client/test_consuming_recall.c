/* What an earlier process was done with, and nacks with a delay, against a scripted peer. */
#include "client/consuming_rig.h"

#include <stdlib.h>
#include <string.h>

static sl_consumer_finished finished(consuming_rig *rig, uint64_t revision, bool is_park)
{
    sl_consumer_finished left = { .revision = revision, .lease_token = 9, .is_park = is_park };

    rig->ids[revision] = consuming_rig_id(revision);
    memcpy(left.id.bytes, rig->ids[revision].bytes, sizeof left.id.bytes);
    return left;
}

/* Message 3 was acked and 4 parked by the process before. */
static consuming_rig *recalling(void)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);
    const sl_consumer_finished left[] = { finished(rig, 3, false), finished(rig, 4, true) };

    EXPECT_OK(sl_consuming_recall(&rig->c, left, 2));
    return rig;
}

static void begin(consuming_rig *rig, bool extensions)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };

    response.subscription_id = SL_STR("orders::g");
    sl_consuming_begin(&rig->c, extensions);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_say(rig, &response));
    (void)consuming_rig_heard(rig);
}

#define PARKED_WHY "parked by an earlier process of this consumer, whose reason is not known"

TEST(what_an_earlier_process_was_done_with_is_resumed_and_said_at_the_first_call_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options:10+3,4 ack:3 nack:4=park/" PARKED_WHY);
    EXPECT(!sl_consuming_is_quiet(&rig->c));
    EXPECT(consuming_rig_settled(rig, 3, 2));
    EXPECT_CONSUMER_HEARD(rig, "settled:3 settled:4");
    EXPECT_EQ(rig->c.holding.count, 0);
    EXPECT_EQ(rig->c.holding.recalled_count, 0);
    consuming_rig_free(rig);
}

TEST(a_park_of_an_earlier_process_is_said_with_its_reason_B3_S3_38)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);
    char reason[] = "exit code 65: no such item", longest[SL_CONSUMER_REASON_BYTES_MAX + 100] = "";
    sl_consumer_finished left[] = { finished(rig, 3, true), finished(rig, 4, true), finished(rig, 5, true) };
    const char *sent;

    memset(longest, 'x', sizeof longest - 1);
    left[0].reason = reason;
    left[1].reason = "";
    left[2].reason = longest;
    EXPECT_OK(sl_consuming_recall(&rig->c, left, 3));
    memset(reason, '!', sizeof reason - 1); /* it was copied */
    begin(rig, true);
    EXPECT_OK(consuming_rig_turn(rig));
    sent = strstr(consuming_rig_sent(rig), "nack:3=park/exit code 65: no such item nack:4=park/" PARKED_WHY);
    EXPECT(sent != NULL);
    sent = strstr(sent, "nack:5=park/x");
    EXPECT(sent != NULL && strlen(sent) == strlen("nack:5=park/") + SL_CONSUMER_REASON_BYTES_MAX);
    consuming_rig_free(rig);
}

/* The lease is gone: others may have it. If it comes to us, the work is not done again; also on a later connection. */
TEST(a_finished_message_that_was_lost_and_comes_again_is_settled_and_not_given_out_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_lost(rig, 3, 2));
    EXPECT_CONSUMER_HEARD(rig, "unsure:3 unsure:4");
    EXPECT(sl_consuming_is_quiet(&rig->c));
    EXPECT(consuming_rig_event(rig, 3, 20));
    (void)consuming_rig_sent(rig);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:3");
    EXPECT(consuming_rig_settled(rig, 3, 1));
    sl_consuming_over(&rig->c);
    begin(rig, true);
    EXPECT_CONSUMER_SENT(rig, "options:10"); /* only remembered, not held */
    EXPECT(consuming_rig_event(rig, 4, 21));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "nack:4=park/" PARKED_WHY);
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT_EQ(rig->c.absorbed_count, 2);
    consuming_rig_free(rig);
}

TEST(a_finished_message_that_comes_before_the_ack_left_is_acked_under_its_new_lease_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT(consuming_rig_event(rig, 3, 20));
    EXPECT(consuming_rig_lost(rig, 3, 1)); /* the answer to the list */
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_settled(rig, 3, 1));
    EXPECT_CONSUMER_HEARD(rig, "settled:3");
    consuming_rig_free(rig);
}

TEST(a_finished_message_that_comes_between_ack_and_answer_is_acked_again_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_event(rig, 3, 20));
    (void)consuming_rig_sent(rig);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:3");
    EXPECT(consuming_rig_lost(rig, 3, 1));
    EXPECT(consuming_rig_lost(rig, 3, 1));
    EXPECT(consuming_rig_settled(rig, 3, 1));
    EXPECT_CONSUMER_HEARD(rig, "unsure:3");
    consuming_rig_free(rig);
}

static bool event_of(consuming_rig *rig, const char *stream, uint64_t revision)
{
    sl_persistent_response response = { .kind = SL_PERSISTENT_RESPONSE_EVENT };

    response.event = (sl_wire_read_event){ .has_event = true,
                                           .position_kind = SL_WIRE_POSITION_NONE,
                                           .event = { .id = { consuming_rig_id(3), SL_WIRE_ID_STRUCTURED },
                                                      .stream = sl_str_from(stream),
                                                      .type = SL_STR("t"),
                                                      .revision = revision } };
    return consuming_rig_say(rig, &response);
}

/* The same id at another revision is another message; and at the same revision of another stream, once it has come. */
TEST(another_message_with_the_id_of_a_finished_one_is_given_out)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT(event_of(rig, "s", 7));
    EXPECT_CONSUMER_HEARD(rig, "7");
    EXPECT(event_of(rig, "s", 3));
    EXPECT_CONSUMER_HEARD(rig, "");
    EXPECT(event_of(rig, "other", 3));
    EXPECT_CONSUMER_HEARD(rig, "3");
    consuming_rig_free(rig);
}

TEST(without_extensions_a_finished_message_waits_until_it_comes_again_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, false);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "options-:10");
    sl_consuming_over(&rig->c); /* and over broken connections */
    begin(rig, false);
    (void)consuming_rig_sent(rig);
    EXPECT(consuming_rig_event(rig, 4, 0));
    EXPECT(consuming_rig_event(rig, 5, 0));
    EXPECT(consuming_rig_event(rig, 3, 0));
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "ack:3 nack:4=park/" PARKED_WHY);
    EXPECT_CONSUMER_HEARD(rig, "5 sent:3 sent:4");
    consuming_rig_free(rig);
}

TEST(finished_messages_are_not_waited_for_longer_than_the_limit_B3)
{
    consuming_rig *const rig = recalling();

    begin(rig, false);
    sl_consuming_forget_recalled(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "unsure:3 unsure:4");
    EXPECT(consuming_rig_event(rig, 3, 0));
    EXPECT_CONSUMER_HEARD(rig, "3");
    consuming_rig_free(rig);
}

TEST(a_remembered_loss_is_forgotten_at_the_limit)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT(consuming_rig_lost(rig, 3, 2));
    sl_consuming_forget_recalled(&rig->c);
    EXPECT_EQ(rig->c.holding.count, 0);
    consuming_rig_free(rig);
}

TEST(a_stop_without_extensions_does_not_wait_for_finished_messages)
{
    consuming_rig *const rig = recalling();

    begin(rig, false);
    sl_consuming_stop(&rig->c, true);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_HEARD(rig, "unsure:3 unsure:4 stopped:0");
    EXPECT(sl_consuming_wants_proof(&rig->c));
    consuming_rig_free(rig);
}

TEST(what_was_said_and_never_answered_is_unsure_at_the_end_and_the_rest_is_lost)
{
    consuming_rig *const rig = recalling();

    begin(rig, true);
    for (uint64_t i = 0; i < 3; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    EXPECT_EQ(consuming_rig_started(rig, 0, 3), 3);
    EXPECT_EQ(consuming_rig_ack(rig, 0, 1), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_EQ(consuming_rig_ack(rig, 1, 1), 1);
    (void)consuming_rig_heard(rig);
    sl_consuming_over(&rig->c);
    sl_consuming_abandon(&rig->c);
    EXPECT_CONSUMER_HEARD(rig, "unsure:3 unsure:4 unsure:0 lost:1 lost:2");
    consuming_rig_free(rig);
}

TEST(more_finished_messages_than_the_limit_are_refused)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);
    sl_consumer_finished *const left = calloc(SL_CONSUMER_FINISHED_MAX + 1, sizeof *left);

    EXPECT(left != NULL);
    EXPECT_ERR(sl_consuming_recall(&rig->c, left, SL_CONSUMER_FINISHED_MAX + 1), SL_ERR_TOO_LARGE);
    EXPECT_OK(sl_consuming_recall(&rig->c, left, SL_CONSUMER_FINISHED_MAX));
    EXPECT_ERR(sl_consuming_recall(&rig->c, left, 1), SL_ERR_TOO_LARGE);
    free(left);
    consuming_rig_free(rig);
}

static sl_err reserve_in_rig(void *ctx, size_t bytes, uint8_t **ret_data)
{
    consuming_rig *const rig = ctx;

    EXPECT(bytes <= sizeof rig->message);
    *ret_data = rig->message;
    return SL_OK;
}

static void commit_unseen(void *ctx, size_t bytes)
{
    (void)ctx;
    (void)bytes;
}

/* Work that is going on is more worth than what was done: it is listed first, and no more than the server takes. */
TEST(a_resume_never_lists_more_than_the_server_takes)
{
    consuming_rig *const rig = consuming_rig_new("c", 4000);
    const sl_consuming_output output = { .reserve = reserve_in_rig, .commit = commit_unseen, .ctx = rig };
    sl_persistent_response confirmation = { .kind = SL_PERSISTENT_RESPONSE_CONFIRMATION };
    sl_consumer_finished *const left = calloc(SL_CONSUMER_FINISHED_MAX, sizeof *left);

    EXPECT(left != NULL);
    for (size_t i = 0; i < SL_CONSUMER_FINISHED_MAX; i++)
        memcpy(left[i].id.bytes, &i, sizeof i);
    EXPECT_OK(sl_consuming_recall(&rig->c, left, SL_CONSUMER_FINISHED_MAX));
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(sl_consuming_flush(&rig->c, &output));
    EXPECT(consuming_rig_say(rig, &confirmation));
    for (uint64_t i = 0; i < 4000; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    sl_consuming_over(&rig->c);
    sl_consuming_begin(&rig->c, true);
    EXPECT_OK(sl_consuming_flush(&rig->c, &output));
    EXPECT_EQ(rig->c.resumed_count, SL_CONSUMER_RESUMED_MAX);
    free(left);
    consuming_rig_free(rig);
}

/* --- delays --- */

TEST(the_delay_of_a_nack_is_sent_only_to_a_server_that_keeps_it)
{
    consuming_rig *const rig = consuming_rig_new("c", 10);

    consuming_rig_join(rig);
    for (uint64_t i = 0; i < 4; i++)
        EXPECT(consuming_rig_event(rig, i, i + 1));
    EXPECT_EQ(consuming_rig_nack_later(rig, 0, 1, 500), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "nack:0=retry/busy");
    rig->c.keeps_delays = true;
    EXPECT_EQ(consuming_rig_nack_later(rig, 1, 1, 500), 1);
    EXPECT_EQ(consuming_rig_nack_later(rig, 2, 1, UINT32_MAX), 1);
    EXPECT_EQ(consuming_rig_nack_later(rig, 3, 1, 0), 1);
    EXPECT_OK(consuming_rig_turn(rig));
    EXPECT_CONSUMER_SENT(rig, "nack:1=retry/busy~500 nack:2=retry/busy~2147483647 nack:3=retry/busy");
    consuming_rig_free(rig);
}

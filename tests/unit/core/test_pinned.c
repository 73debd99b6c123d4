/* The pinned strategies: affinity that drains (S1.32, S4.27, B9). */
#include "rig.h"

#include "core/group_private.h"

static void pinned(sl_settings *settings)
{
    settings->strategy = SL_STRATEGY_PINNED;
}

static void pinned_in_order(sl_settings *settings)
{
    settings->strategy = SL_STRATEGY_PINNED_BY_CORRELATION;
    settings->key_order = true;
}

TEST(pinned_a_key_stays_with_one_consumer)
{
    rig *r = rig_new(pinned);

    rig_join(r, 10);
    rig_join(r, 10);
    for (int i = 0; i < 4; i++) {
        rig_offer_key(r, 5);
        rig_offer_key(r, 6);
    }
    EXPECT_SAID(r, "c1<-0, c2<-1, c1<-2, c2<-3, c1<-4, c2<-5, c1<-6, c2<-7");
    rig_free(r);
}

TEST(pinned_one_consumer_gets_everything_in_order)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 2);

    for (uint64_t key = 0; key < 5; key++)
        rig_offer_key(r, key);
    EXPECT_SAID(r, "c1<-0, c1<-1");
    EXPECT_OK(rig_nack(r, c1, 0, SL_NACK_RETRY));
    EXPECT_SAID(r, "0 back nacked!, c1 settled 0, c1<-0(1)");
    EXPECT_OK(rig_ack(r, c1, 1));
    EXPECT_SAID(r, "1 acked, c1 settled 1, c1<-2");
    rig_free(r);
}

TEST(S1_32_B9_a_key_in_flight_waits_for_its_stopping_holder_and_others_move_at_once)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 10);

    rig_offer_key(r, 5);
    rig_offer_key(r, 6);
    EXPECT_OK(rig_ack(r, c1, 1));
    rig_join(r, 10);
    rig_said(r);
    EXPECT_OK(rig_stop(r, c1));
    rig_offer_key(r, 5); /* 2: waits, c1 still works on key 5 */
    rig_offer_key(r, 6); /* 3: moves */
    EXPECT_SAID(r, "c1 stopped 1, c2<-3");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, c1 drained 1/0/0, c2<-2");
    rig_free(r);
}

TEST(B9_a_key_handed_back_keeps_its_order)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 3);

    for (int i = 0; i < 5; i++)
        rig_offer_key(r, 5);
    rig_join(r, 10);
    rig_said(r);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_CONSUMER, true));
    EXPECT_SAID(r, "0 back released, 1 back released, 2 back released, c1 stopped 0, c1 drained 0/3/0, "
                   "c2<-0, c2<-1, c2<-2, c2<-3, c2<-4");
    rig_free(r);
}

TEST(a_full_holder_makes_only_its_own_keys_wait)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 1);

    rig_join(r, 10);
    rig_offer_key(r, 5); /* to c1, which has fewest buckets and came first */
    rig_offer_key(r, 6); /* to c2 */
    rig_offer_key(r, 5); /* waits */
    rig_offer_key(r, 6);
    EXPECT_SAID(r, "c1<-0, c2<-1, c2<-3");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, c1<-2");
    rig_free(r);
}

TEST(S4_27_with_key_order_the_next_of_a_key_waits_for_the_one_before_and_its_retries)
{
    rig *r = rig_new(pinned_in_order);
    const uint64_t c1 = rig_join(r, 10);

    rig_offer_key(r, 5);
    rig_offer_key(r, 5);
    rig_offer_key(r, 6);
    EXPECT_SAID(r, "c1<-0, c1<-2");
    EXPECT_OK(rig_nack_after(r, c1, 0, SECOND));
    EXPECT_SAID(r, "0 back nacked!, c1 settled 0");
    rig_tick(r, SECOND);
    EXPECT_SAID(r, "c1<-0(1)");
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_SAID(r, "0 acked, c1 settled 0, c1<-1");
    rig_free(r);
}

/* 6.2 of the KurrentDB semantics: a newcomer gets what others have above their share. */
TEST(pinned_a_newcomer_gets_its_share_of_the_buckets)
{
    rig *r =
        rig_new_limits(pinned, (sl_group_limits){ .messages_max = 2048, .consumers_max = 8, .keyed = true });
    uint32_t shares[3], n = 0;

    r->setup.settings.buffer_max = 5000;
    EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
    rig_join(r, 5000);
    for (uint64_t key = 0; key < 2000; key++)
        rig_offer_key(r, key);
    rig_join(r, 10);
    rig_join(r, 10);
    SL_LIST_EACH (node, &r->group->consumers)
        shares[n++] = SL_CONTAINER_OF(node, sl_consumer, all)->owned_count;
    EXPECT_EQ(shares[0] + shares[1] + shares[2], r->group->buckets_owned);
    EXPECT(r->group->buckets_owned > 800);
    for (int i = 0; i < 3; i++)
        EXPECT(shares[i] <= (r->group->buckets_owned + 2) / 3 &&
               shares[i] + 3 >= r->group->buckets_owned / 3);
    rig_free(r);
}

TEST(B11_pinned_new_keys_avoid_the_cordoned)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 10);

    rig_join(r, 10);
    EXPECT_OK(sl_group_cordon(r->group, c1, true, r->now_ns));
    for (uint64_t key = 0; key < 4; key++)
        rig_offer_key(r, key);
    EXPECT_SAID(r, "c2<-0, c2<-1, c2<-2, c2<-3");
    rig_free(r);
}

TEST(the_strategy_may_change_with_work_in_flight)
{
    rig *r = rig_new(NULL);
    const uint64_t c1 = rig_join(r, 2), c2 = rig_join(r, 2);

    for (int i = 0; i < 6; i++)
        rig_offer_key(r, 5); /* round robin: two to each, two wait */
    EXPECT_SAID(r, "c1<-0, c2<-1, c1<-2, c2<-3");
    r->setup.settings.strategy = SL_STRATEGY_PINNED;
    EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_OK(rig_ack(r, c1, 2));
    EXPECT_OK(rig_ack(r, c2, 1));
    EXPECT_SAID(r,
                "0 acked, c1 settled 0, 2 acked, c1 settled 2, 1 acked, c2 settled 1"); /* 3 is in flight */
    EXPECT_OK(rig_ack(r, c2, 3));
    EXPECT_SAID(r, "3 acked, c2 settled 3, c1<-4, c1<-5");
    r->setup.settings.strategy = SL_STRATEGY_DISPATCH_TO_SINGLE;
    EXPECT_OK(sl_group_update(r->group, &r->setup.settings, r->now_ns));
    rig_offer(r, 2);
    EXPECT_SAID(r, "c2<-6, c2<-7");
    rig_free(r);
}

TEST(a_group_without_keys_refuses_to_become_pinned)
{
    rig *r = rig_new_limits(NULL, (sl_group_limits){ .messages_max = 4, .consumers_max = 1 });

    r->setup.settings.strategy = SL_STRATEGY_PINNED;
    EXPECT_ERR(sl_group_update(r->group, &r->setup.settings, r->now_ns), SL_ERR_INVALID);
    r->setup.settings.strategy = SL_STRATEGY_COUNT_;
    EXPECT_ERR(sl_group_update(r->group, &r->setup.settings, r->now_ns), SL_ERR_INVALID);
    r->setup.settings.strategy = SL_STRATEGY_ROUND_ROBIN;
    rig_free(r);
}

/* Found by the simulator: the bucket lost its owner while its key was in flight, and nobody looked at it again. */
TEST(pinned_a_holder_that_owns_its_bucket_again_goes_on_with_the_key_at_once)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 10);

    rig_offer_key(r, 5);
    EXPECT_OK(rig_stop_by(r, c1, SL_ASKER_OPERATOR, false));
    rig_offer_key(r, 5);
    rig_said(r);
    EXPECT_OK(sl_group_resume(r->group, c1, r->now_ns));
    EXPECT_SAID(r, "c1<-1");
    rig_free(r);
}

TEST(pinned_a_key_that_waited_for_a_newcomer_comes_back_when_the_newcomer_stops)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 10);
    uint64_t c2;

    for (uint64_t key = 0; key < 8; key++)
        rig_offer_key(r, key); /* all with c1; then half of the buckets go to c2, keys in flight stay */
    c2 = rig_join(r, 10);
    for (uint64_t key = 0; key < 8; key++)
        rig_offer_key(r, key);
    rig_said(r);
    EXPECT_OK(rig_stop(r, c2));
    EXPECT_STR(rig_said_only(r, SL_EFFECT_STOPPED), "c2 stopped 0");
    EXPECT_EQ(r->group->in_flight, 10); /* c1 is full: it took what had waited for c2 */
    EXPECT_OK(rig_ack(r, c1, 0));
    EXPECT_EQ(r->group->in_flight, 10);
    rig_free(r);
}

TEST(pinned_who_comes_back_with_all_of_a_key_goes_on_with_it)
{
    const sl_uuid ids[] = { rig_id(SL_LANE_MAIN, 0), rig_id(SL_LANE_MAIN, 1) };
    const sl_join join = {
        .session = rig_session(1), .window = 9, .extensions = true, .resume = ids, .resume_count = 2
    };
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join_as(r, 1, 9, true);
    uint64_t c2 = 0;

    rig_offer_key(r, 5);
    rig_offer_key(r, 5);
    EXPECT_OK(sl_group_away(r->group, c1, r->now_ns));
    rig_offer_key(r, 5);
    rig_said(r);
    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &c2));
    EXPECT_SAID(r, "0 moves c2, 1 moves c2, c1 gone, c2<-2");
    rig_free(r);
}

/* Which buckets move to a newcomer: those with the least in flight, so that as few keys as possible wait. */
TEST(pinned_a_newcomer_gets_the_buckets_with_the_least_in_flight)
{
    rig *r = rig_new(pinned);
    const uint64_t c1 = rig_join(r, 60);

    for (uint64_t key = 0; key < 20; key++)
        rig_offer_key(r, key);
    for (uint64_t p = 10; p < 20; p++)
        EXPECT_OK(rig_ack(r, c1, p)); /* keys 10 to 19 have nothing in flight; their messages are gone */
    rig_join(r, 60);
    for (int i = 0; i < BUCKETS; i++) {
        const sl_bucket *const bucket = &r->group->buckets[i];
        if (bucket->owner != NULL && bucket->owner->id != c1)
            EXPECT_EQ(bucket->in_flight, 0);
    }
    rig_free(r);
}

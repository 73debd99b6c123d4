/* core/claim.c — what a consumer says of the messages it was given.
 *
 * A claim names an id and, if the consumer knows it, a token. It counts only for the current delivery of the
 * message, and only from its holder or an heir; anything else is LOST and changes nothing (S4.11, B5). */
#include "core/group_private.h"

#include "base/cleanup.h"

#include <assert.h>

/* One verb of a consumer: what it needs, what it does, whether success is answered. */
typedef struct verb {
    void (*apply)(sl_group *group, sl_message *message, const struct verb *how);
    /* Of two with one id, is this one meant rather than that? Only of a verb that does not settle. */
    bool (*is_rather)(const sl_message *message, const sl_message *than);
    bool settles; /* counts on an ended lease, and for an heir; is answered with SETTLED */
    bool begins;  /* says something of the session even without a claim */
    const sl_nack *nack;
    uint64_t lease_ns;
} verb;

/* Two messages with one id may be held at once, and no token tells them apart. A verb that changes a lease without ending it
 * could meet the same one every time, so it says which of two it rather means: who speaks of both reaches both. */
static sl_message *find_held(const sl_group *group, const sl_consumer *consumer, const sl_claim *claim,
                             bool (*is_rather)(const sl_message *message, const sl_message *than))
{
    sl_message *message = sl_claim_find(group, claim->id, consumer->id, claim->token);
    sl_message *meant = NULL;

    for (; message != NULL; message = sl_claim_next(message, consumer->id, claim->token))
        if (message->index == SL_INDEX_HELD && (meant == NULL || is_rather(message, meant)))
            meant = message;
    return meant;
}

/* Its own, or, for one that knows nothing of resuming, what a dead call of its session was given. */
static sl_message *find_to_settle(const sl_group *group, const sl_consumer *consumer, const sl_claim *claim)
{
    sl_message *message = sl_claim_find(group, claim->id, consumer->id, claim->token);
    const sl_consumer *dead;

    if (message != NULL || consumer->extensions)
        return message;
    for (dead = sl_consumer_away_first(group, consumer->session); dead != NULL && message == NULL;
         dead = sl_consumer_away_next(dead))
        message = sl_claim_find(group, claim->id, dead->id, claim->token);
    return message;
}

static void answer(sl_group *group, const sl_consumer *consumer, sl_uuid id, bool lost)
{
    if (lost) {
        group->lost++;
        sl_group_emit(group,
                      &(sl_effect){ .kind = SL_EFFECT_LOST, .lost = { .consumer = consumer->id, .id = id } });
    } else {
        sl_group_emit(group, &(sl_effect){ .kind = SL_EFFECT_SETTLED,
                                           .settled = { .consumer = consumer->id, .id = id } });
    }
}

static void claim_one(sl_group *group, sl_consumer *consumer, const sl_claim *claim, const verb *how)
{
    sl_message *const message = how->settles ? find_to_settle(group, consumer, claim)
                                             : find_held(group, consumer, claim, how->is_rather);
    sl_consumer *holder;

    if (message == NULL) {
        answer(group, consumer, claim->id, true);
        return;
    }
    holder = sl_consumer_find(group, message->lease.holder);
    how->apply(group, message, how);
    if (!how->settles)
        return;
    answer(group, consumer, claim->id, false);
    sl_consumer_lease_over(group, holder);
}

static sl_err claim_all(sl_group *group, uint64_t consumer_id, const sl_claim *claims, uint32_t claim_count,
                        const verb *how, uint64_t now_ns)
{
    sl_consumer *consumer;
    sl_err err = SL_ERR_NO_CONSUMER;

    sl_group_enter(group, now_ns);
    consumer = sl_consumer_find(group, consumer_id);
    if (consumer != NULL && consumer->state != SL_CONSUMER_AWAY) {
        if (how->begins && claim_count == 0)
            sl_session_will_start(group, consumer);
        for (uint32_t i = 0; i < claim_count; i++)
            claim_one(group, consumer, &claims[i], how);
        err = SL_OK;
    }
    sl_group_exit(group);
    return err;
}

static void apply_ack(sl_group *group, sl_message *message, const verb *how)
{
    (void)how;
    sl_message_settle(group, message, SL_SETTLE_ACKED);
}

static void apply_nack(sl_group *group, sl_message *message, const verb *how)
{
    switch (how->nack->action) {
    case SL_NACK_RETRY: sl_message_nack(group, message, how->nack); break;
    case SL_NACK_PARK: sl_message_park(group, message, SL_PARK_ASKED); break;
    case SL_NACK_SKIP: sl_message_settle(group, message, SL_SETTLE_SKIPPED); break;
    case SL_NACK_COUNT_: assert(false); break;
    }
}

static void apply_release(sl_group *group, sl_message *message, const verb *how)
{
    (void)how;
    sl_message_release(group, message);
}

static bool is_rather_started(const sl_message *message, const sl_message *than)
{
    if (message->started != than->started)
        return !message->started;
    return message->lease.token > than->lease.token;
}

static void apply_started(sl_group *group, sl_message *message, const verb *how)
{
    (void)how;
    sl_message_start(group, message);
}

/* What is worked on may be either of them, and the one that has most time left needs it least. */
static bool is_rather_extended(const sl_message *message, const sl_message *than)
{
    if (message->lease.until_ns != than->lease.until_ns)
        return message->lease.until_ns < than->lease.until_ns;
    return message->lease.token > than->lease.token;
}

static void apply_extend(sl_group *group, sl_message *message, const verb *how)
{
    const uint64_t wanted_ns = how->lease_ns == 0 ? group->settings.lease_ns : how->lease_ns;

    sl_message_extend(group, message, sl_add_sat_u64(group->now_ns, sl_min_u64(wanted_ns, SL_LEASE_NS_MAX)));
}

sl_err sl_group_ack(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                    uint64_t now_ns)
{
    const verb how = { .apply = apply_ack, .settles = true };

    return claim_all(group, consumer, claims, claim_count, &how, now_ns);
}

sl_err sl_group_nack(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                     const sl_nack *nack, uint64_t now_ns)
{
    const verb how = { .apply = apply_nack, .settles = true, .nack = nack };

    if ((unsigned)nack->action >= SL_NACK_COUNT_)
        return SL_ERR_INVALID;
    return claim_all(group, consumer, claims, claim_count, &how, now_ns);
}

sl_err sl_group_release(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                        uint64_t now_ns)
{
    const verb how = { .apply = apply_release, .settles = true };

    return claim_all(group, consumer, claims, claim_count, &how, now_ns);
}

sl_err sl_group_started(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                        uint64_t now_ns)
{
    const verb how = { .apply = apply_started, .is_rather = is_rather_started, .begins = true };

    return claim_all(group, consumer, claims, claim_count, &how, now_ns);
}

sl_err sl_group_extend(sl_group *group, uint64_t consumer, const sl_claim *claims, uint32_t claim_count,
                       uint64_t lease_ns, uint64_t now_ns)
{
    const verb how = { .apply = apply_extend, .is_rather = is_rather_extended, .lease_ns = lease_ns };

    return claim_all(group, consumer, claims, claim_count, &how, now_ns);
}

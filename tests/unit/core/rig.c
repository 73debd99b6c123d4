/* tests/unit/core/rig.c — see rig.h. */
#include "rig.h"

#include "base/str.h"
#include "core/record.h"

#include <stdlib.h>
#include <string.h>

static void keep(void *ctx, const sl_effect *effect)
{
    rig *const r = ctx;

    EXPECT(r->effect_count < RIG_EFFECTS_MAX);
    r->effects[r->effect_count++] = *effect;
}

rig *rig_new(void (*tweak)(sl_settings *settings))
{
    return rig_new_limits(tweak, (sl_group_limits){ .messages_max = 64, .consumers_max = 8, .keyed = true });
}

static void make_group(rig *r)
{
    r->memory = malloc(sl_group_bytes(&r->setup.limits));
    r->group = sl_group_init(r->memory, &r->setup);
}

rig *rig_new_limits(void (*tweak)(sl_settings *settings), sl_group_limits limits)
{
    rig *const r = calloc(1, sizeof *r);

    r->effects = malloc(RIG_EFFECTS_MAX * sizeof *r->effects);
    r->text = malloc(RIG_TEXT_BYTES);
    r->setup = (sl_group_setup){
        .limits = limits, .settings = sl_settings_default(), .seed = { 11, 22 }, .sink = { keep, r }
    };
    r->setup.settings.lease_ns = 10 * SECOND;
    r->setup.settings.checkpoint_after_ns = 0;
    if (tweak != NULL)
        tweak(&r->setup.settings);
    r->now_ns = 1000 * SECOND;
    make_group(r);
    EXPECT_OK(sl_group_open(r->group, r->now_ns));
    return r;
}

void rig_free(rig *r)
{
    sl_group_check(r->group);
    free(r->memory);
    free(r->effects);
    free(r->text);
    free(r);
}

sl_uuid rig_id(sl_lane lane, uint64_t position)
{
    return sl_uuid_from_halves((int64_t)position, (int64_t)lane + 1);
}

sl_uuid rig_session(unsigned number)
{
    return sl_uuid_from_halves((int64_t)number, 77);
}

/* --- effects as text --- */

static void say_consumer(sl_text *t, uint64_t consumer)
{
    sl_text_add(t, "c");
    sl_text_add_u64(t, consumer & ((UINT64_C(1) << 40) - 1));
}

static void say_place(sl_text *t, sl_place place)
{
    sl_text_add(t, place.lane == SL_LANE_PARKED ? "p" : "");
    sl_text_add_u64(t, place.position);
}

static void say_id(sl_text *t, sl_uuid id)
{
    int64_t most, least;

    sl_uuid_to_halves(id, &most, &least);
    say_place(t, (sl_place){ least == 1 ? SL_LANE_MAIN : SL_LANE_PARKED, (uint64_t)most });
}

static void say_deliver(sl_text *t, const sl_effect *e)
{
    say_consumer(t, e->deliver.consumer);
    sl_text_add(t, "<-");
    say_place(t, e->deliver.place);
    if (e->deliver.counters.attempts > 0) {
        sl_text_add(t, "(");
        sl_text_add_u64(t, e->deliver.counters.attempts);
        sl_text_add(t, ")");
    }
}

static void say_back(sl_text *t, const sl_effect *e)
{
    static const char *const causes[] = { "released", "interrupted", "nacked", "expired", "left", "died" };

    say_place(t, e->back.place);
    sl_text_add(t, " back ");
    sl_text_add(t, causes[e->back.cause]);
    sl_text_add(t, e->back.charged ? "!" : "");
}

static void say_stopped(sl_text *t, const sl_effect *e)
{
    say_consumer(t, e->stopped.consumer);
    sl_text_add(t, e->stopped.already_stopped ? " stopped-already " : " stopped ");
    sl_text_add_u64(t, e->stopped.in_flight);
}

static void say_drained(sl_text *t, const sl_effect *e)
{
    say_consumer(t, e->drained.consumer);
    sl_text_add(t, " drained ");
    sl_text_add_u64(t, e->drained.settled);
    sl_text_add(t, "/");
    sl_text_add_u64(t, e->drained.released);
    sl_text_add(t, "/");
    sl_text_add_u64(t, e->drained.lost);
    if (e->drained.interrupted > 0) {
        sl_text_add(t, " interrupted ");
        sl_text_add_u64(t, e->drained.interrupted);
    }
}

static void say_place_and(sl_text *t, sl_place place, const char *word)
{
    say_place(t, place);
    sl_text_add(t, word);
}

static void say_consumer_and(sl_text *t, uint64_t consumer, const char *word)
{
    say_consumer(t, consumer);
    sl_text_add(t, word);
}

static void say(sl_text *t, const sl_effect *e)
{
    static const char *const settles[] = { " acked", " skipped", " vanished" };
    static const char *const parks[] = { " parked asked", " parked retries", " parked kills" };
    static const char *const askers[] = { " asked consumer", " asked operator", " asked server" };

    switch (e->kind) {
    case SL_EFFECT_DELIVER: say_deliver(t, e); break;
    case SL_EFFECT_BACK: say_back(t, e); break;
    case SL_EFFECT_STOPPED: say_stopped(t, e); break;
    case SL_EFFECT_DRAINED: say_drained(t, e); break;
    case SL_EFFECT_SETTLE: say_place_and(t, e->settle.place, settles[e->settle.cause]); break;
    case SL_EFFECT_PARK: say_place_and(t, e->park.place, parks[e->park.cause]); break;
    case SL_EFFECT_STARTED: say_place_and(t, e->started.place, " started"); break;
    case SL_EFFECT_EXTEND: say_place_and(t, e->extend.place, " extended"); break;
    case SL_EFFECT_GONE: say_consumer_and(t, e->gone.consumer, " gone"); break;
    case SL_EFFECT_STOP_REQUESTED:
        say_consumer_and(t, e->stop_requested.consumer, askers[e->stop_requested.asked_by]);
        if (e->stop_requested.hand_back)
            sl_text_add(t, " hand-back");
        break;
    case SL_EFFECT_SETTLED:
        say_consumer_and(t, e->settled.consumer, " settled ");
        say_id(t, e->settled.id);
        break;
    case SL_EFFECT_LOST:
        say_consumer_and(t, e->lost.consumer, " lost ");
        say_id(t, e->lost.id);
        break;
    case SL_EFFECT_MOVE:
        say_place_and(t, e->move.place, " moves ");
        say_consumer(t, e->move.consumer);
        break;
    case SL_EFFECT_CHECKPOINT:
        sl_text_add(t, e->checkpoint.lane == SL_LANE_PARKED ? "parked below " : "below ");
        sl_text_add_u64(t, e->checkpoint.below);
        break;
    case SL_EFFECT_EPOCH:
    case SL_EFFECT_SETTINGS:
    case SL_EFFECT_RULE:
    case SL_EFFECT_JOIN:
    case SL_EFFECT_LEASE:
    case SL_EFFECT_PASSED:
    case SL_EFFECT_MESSAGE:
    case SL_EFFECT_COUNT_: break;
    }
}

const char *rig_said(rig *r)
{
    return rig_said_only(r, SL_EFFECT_COUNT_);
}

const char *rig_said_only(rig *r, sl_effect_kind kind)
{
    sl_text t;

    sl_text_init(&t, r->text, RIG_TEXT_BYTES);
    for (; r->seen < r->effect_count; r->seen++) {
        const size_t before = t.bytes;
        if (before > 0)
            sl_text_add(&t, ", ");
        const size_t comma = t.bytes;
        if (kind == SL_EFFECT_COUNT_ || kind == r->effects[r->seen].kind)
            say(&t, &r->effects[r->seen]);
        if (t.bytes == comma) { /* nothing was said: take the comma back */
            t.bytes = before;
            t.data[before] = 0;
        }
    }
    EXPECT(!t.cut);
    return r->text;
}

const sl_effect *rig_last(const rig *r, sl_effect_kind kind)
{
    for (size_t i = r->effect_count; i > 0; i--)
        if (r->effects[i - 1].kind == kind)
            return &r->effects[i - 1];
    fail_msg("no effect %s so far", sl_effect_name(kind));
    return NULL;
}

uint64_t rig_token(const rig *r, uint64_t position)
{
    for (size_t i = r->effect_count; i > 0; i--) {
        const sl_effect *const e = &r->effects[i - 1];
        if (e->kind == SL_EFFECT_LEASE && e->lease.place.lane == SL_LANE_MAIN &&
            e->lease.place.position == position)
            return e->lease.token;
    }
    fail_msg("message %llu was never leased", (unsigned long long)position);
    return 0;
}

/* --- calls --- */

static unsigned next_session = 1000;

uint64_t rig_join(rig *r, uint32_t window)
{
    return rig_join_as(r, next_session++, window, true);
}

uint64_t rig_join_as(rig *r, unsigned session, uint32_t window, bool extensions)
{
    const sl_join join = { .session = rig_session(session),
                           .window = window,
                           .extensions = extensions,
                           .reconnect_ns = 2 * SECOND };
    uint64_t consumer = 0;

    EXPECT_OK(sl_group_join(r->group, &join, r->now_ns, &consumer));
    return consumer;
}

static void offer_one(rig *r, sl_lane lane, uint64_t position, uint64_t key)
{
    const sl_offer offer = { .place = { lane, position }, .id = rig_id(lane, position), .key = key };
    uint32_t taken = 0;

    EXPECT_OK(sl_group_offer(r->group, &offer, 1, r->now_ns, &taken));
    EXPECT_EQ(taken, 1);
}

void rig_offer(rig *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, r->position++)
        offer_one(r, SL_LANE_MAIN, r->position, r->position);
}

void rig_offer_key(rig *r, uint64_t key)
{
    offer_one(r, SL_LANE_MAIN, r->position++, key);
}

void rig_offer_parked(rig *r, uint64_t position)
{
    offer_one(r, SL_LANE_PARKED, position, position);
}

void rig_read_again(rig *r)
{
    for (uint64_t p = sl_group_read_from(r->group, SL_LANE_MAIN); p < r->position; p++)
        offer_one(r, SL_LANE_MAIN, p, p);
}

uint64_t rig_tick(rig *r, uint64_t later_ns)
{
    uint64_t wake_ns;

    r->now_ns += later_ns;
    wake_ns = sl_group_tick(r->group, r->now_ns);
    return wake_ns == SL_NEVER ? SL_NEVER : wake_ns - r->now_ns;
}

static sl_claim claim_of(uint64_t position)
{
    return (sl_claim){ .id = rig_id(SL_LANE_MAIN, position) };
}

sl_err rig_ack(rig *r, uint64_t consumer, uint64_t position)
{
    return rig_ack_token(r, consumer, position, 0);
}

sl_err rig_ack_token(rig *r, uint64_t consumer, uint64_t position, uint64_t token)
{
    const sl_claim claim = { .id = rig_id(SL_LANE_MAIN, position), .token = token };

    return sl_group_ack(r->group, consumer, &claim, 1, r->now_ns);
}

sl_err rig_nack(rig *r, uint64_t consumer, uint64_t position, sl_nack_action action)
{
    const sl_claim claim = claim_of(position);

    return sl_group_nack(r->group, consumer, &claim, 1, &(sl_nack){ .action = action }, r->now_ns);
}

sl_err rig_nack_after(rig *r, uint64_t consumer, uint64_t position, uint64_t delay_ns)
{
    const sl_claim claim = claim_of(position);
    const sl_nack nack = { .action = SL_NACK_RETRY, .has_delay = true, .delay_ns = delay_ns };

    return sl_group_nack(r->group, consumer, &claim, 1, &nack, r->now_ns);
}

sl_err rig_release(rig *r, uint64_t consumer, uint64_t position)
{
    const sl_claim claim = claim_of(position);

    return sl_group_release(r->group, consumer, &claim, 1, r->now_ns);
}

sl_err rig_started(rig *r, uint64_t consumer, uint64_t position)
{
    const sl_claim claim = claim_of(position);

    return sl_group_started(r->group, consumer, &claim, 1, r->now_ns);
}

sl_err rig_extend(rig *r, uint64_t consumer, uint64_t position, uint64_t lease_ns)
{
    const sl_claim claim = claim_of(position);

    return sl_group_extend(r->group, consumer, &claim, 1, lease_ns, r->now_ns);
}

sl_err rig_stop(rig *r, uint64_t consumer)
{
    return rig_stop_by(r, consumer, SL_ASKER_CONSUMER, false);
}

sl_err rig_stop_by(rig *r, uint64_t consumer, sl_asker asker, bool hand_back)
{
    const sl_stop stop = { .asked_by = asker, .hand_back_unstarted = hand_back };

    return sl_group_stop(r->group, consumer, &stop, r->now_ns);
}

/* --- restart --- */

void rig_restart(rig *r)
{
    rig_restart_with(r, r->effect_count);
}

/* Every record goes through bytes, as it would on a disk. */
static void replay(rig *r, const sl_effect *record)
{
    uint8_t bytes[SL_RECORD_BYTES_MAX];
    const size_t size = sl_record_encode(record, bytes);
    sl_effect decoded;
    size_t used = 0;

    EXPECT_OK(sl_record_decode(bytes, size, &decoded, &used));
    EXPECT_EQ(used, size);
    EXPECT_OK(sl_group_replay(r->group, &decoded));
}

void rig_restart_with(rig *r, size_t effect_count)
{
    sl_group_check(r->group);
    free(r->memory);
    make_group(r);
    r->effect_count = effect_count;
    for (size_t i = 0; i < effect_count; i++)
        if (sl_effect_is_record(r->effects[i].kind))
            replay(r, &r->effects[i]);
    r->seen = effect_count;
    EXPECT_OK(sl_group_open(r->group, r->now_ns));
}

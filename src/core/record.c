/* core/record.c — one description of each record's layout, walked in both directions.
 *
 * A cursor either writes or reads; the functions below name the fields once, so that what is read can not
 * differ from what was written. A cursor that failed stays failed and touches nothing more. */
#include "core/record.h"

#include "base/little.h"

#include <assert.h>
#include <string.h>

typedef struct cursor {
    uint8_t *out;      /* writing when set */
    const uint8_t *in; /* reading otherwise */
    size_t at, end;
    bool failed;
} cursor;

static bool step(cursor *c, size_t bytes)
{
    if (c->failed || c->end - c->at < bytes)
        c->failed = true;
    return !c->failed;
}

static void u64(cursor *c, uint64_t *value)
{
    if (!step(c, sizeof *value))
        return;
    if (c->out != NULL)
        sl_put_u64(c->out + c->at, *value);
    else
        *value = sl_get_u64(c->in + c->at);
    c->at += sizeof *value;
}

static void u32(cursor *c, uint32_t *value)
{
    if (!step(c, sizeof *value))
        return;
    if (c->out != NULL)
        sl_put_u32(c->out + c->at, *value);
    else
        *value = sl_get_u32(c->in + c->at);
    c->at += sizeof *value;
}

/* One byte below `count`: what enums and booleans are. Anything else on the way in is damage. */
static unsigned choice(cursor *c, unsigned value, unsigned count)
{
    if (!step(c, 1))
        return 0;
    if (c->out != NULL)
        c->out[c->at] = (uint8_t)value;
    else
        value = c->in[c->at];
    c->failed = value >= count;
    c->at++;
    return c->failed ? 0 : value;
}

static void boolean(cursor *c, bool *value)
{
    *value = choice(c, *value, 2) != 0;
}

static void uuid(cursor *c, sl_uuid *value)
{
    if (!step(c, sizeof value->bytes))
        return;
    if (c->out != NULL)
        memcpy(c->out + c->at, value->bytes, sizeof value->bytes);
    else
        memcpy(value->bytes, c->in + c->at, sizeof value->bytes);
    c->at += sizeof value->bytes;
}

static void lane(cursor *c, sl_lane *value)
{
    *value = (sl_lane)choice(c, (unsigned)*value, SL_LANE_COUNT_);
}

static void place(cursor *c, sl_place *value)
{
    lane(c, &value->lane);
    u64(c, &value->position);
}

static void counters(cursor *c, sl_counters *value)
{
    u32(c, &value->deliveries);
    u32(c, &value->attempts);
    u32(c, &value->interrupts);
    u32(c, &value->kills);
}

static void backoff(cursor *c, sl_retry_policy *value)
{
    value->kind = (sl_retry_kind)choice(c, (unsigned)value->kind, SL_RETRY_KIND_COUNT_);
    u32(c, &value->factor_permille);
    u32(c, &value->jitter_permille);
    u32(c, &value->attempts_max);
    u64(c, &value->delay_first_ns);
    u64(c, &value->delay_step_ns);
    u64(c, &value->delay_max_ns);
    u64(c, &value->delay_total_max_ns);
    u64(c, &value->retry_after_max_ns);
}

static void settings(cursor *c, sl_settings *value)
{
    value->strategy = (sl_strategy)choice(c, (unsigned)value->strategy, SL_STRATEGY_COUNT_);
    boolean(c, &value->key_order);
    u64(c, &value->lease_ns);
    u32(c, &value->retries_max);
    u32(c, &value->kills_max);
    u32(c, &value->interrupts_max);
    backoff(c, &value->backoff);
    u32(c, &value->buffer_max);
    u32(c, &value->consumers_max);
    u64(c, &value->checkpoint_after_ns);
    u32(c, &value->checkpoint_count_min);
    u32(c, &value->checkpoint_count_max);
}

static void walk_consumer_kinds(cursor *c, sl_effect *r)
{
    if (r->kind == SL_EFFECT_JOIN) {
        u64(c, &r->join.consumer);
        uuid(c, &r->join.session);
        boolean(c, &r->join.sends_started);
    } else if (r->kind == SL_EFFECT_GONE) {
        u64(c, &r->gone.consumer);
    } else {
        u64(c, &r->rule.tag);
        boolean(c, &r->rule.stop);
    }
}

static void walk_lease(cursor *c, sl_effect *r)
{
    place(c, &r->lease.place);
    uuid(c, &r->lease.id);
    u64(c, &r->lease.key);
    u64(c, &r->lease.consumer);
    u64(c, &r->lease.token);
    u64(c, &r->lease.until_ns);
    u32(c, &r->lease.deliveries);
}

static void walk_lease_change(cursor *c, sl_effect *r)
{
    if (r->kind == SL_EFFECT_STARTED) {
        place(c, &r->started.place);
        u64(c, &r->started.token);
    } else if (r->kind == SL_EFFECT_EXTEND) {
        place(c, &r->extend.place);
        u64(c, &r->extend.token);
        u64(c, &r->extend.until_ns);
    } else {
        place(c, &r->move.place);
        u64(c, &r->move.token);
        u64(c, &r->move.consumer);
    }
}

static void walk_back(cursor *c, sl_effect *r)
{
    place(c, &r->back.place);
    r->back.cause = (sl_back_cause)choice(c, (unsigned)r->back.cause, SL_BACK_COUNT_);
    boolean(c, &r->back.charged);
    counters(c, &r->back.counters);
    u64(c, &r->back.not_before_ns);
}

static void walk_settle(cursor *c, sl_effect *r)
{
    place(c, &r->settle.place);
    uuid(c, &r->settle.id);
    u64(c, &r->settle.from);
    u64(c, &r->settle.to);
    r->settle.cause = (sl_settle_cause)choice(c, (unsigned)r->settle.cause, SL_SETTLE_COUNT_);
}

static void walk_park(cursor *c, sl_effect *r)
{
    place(c, &r->park.place);
    uuid(c, &r->park.id);
    u64(c, &r->park.from);
    u64(c, &r->park.to);
    r->park.cause = (sl_park_cause)choice(c, (unsigned)r->park.cause, SL_PARK_COUNT_);
    counters(c, &r->park.counters);
}

static void walk_range(cursor *c, sl_effect *r)
{
    if (r->kind == SL_EFFECT_CHECKPOINT) {
        lane(c, &r->checkpoint.lane);
        u64(c, &r->checkpoint.below);
    } else {
        lane(c, &r->passed.lane);
        u64(c, &r->passed.from);
        u64(c, &r->passed.to);
    }
}

static void walk_message(cursor *c, sl_effect *r)
{
    place(c, &r->message.place);
    uuid(c, &r->message.id);
    u64(c, &r->message.key);
    u64(c, &r->message.consumer);
    u64(c, &r->message.token);
    u64(c, &r->message.until_ns);
    counters(c, &r->message.counters);
    u64(c, &r->message.not_before_ns);
    boolean(c, &r->message.started);
    boolean(c, &r->message.charged);
    boolean(c, &r->message.ended);
}

static void walk(cursor *c, sl_effect *r)
{
    switch (r->kind) {
    case SL_EFFECT_EPOCH:
        u64(c, &r->epoch.epoch);
        u32(c, &r->epoch.messages_max);
        return;
    case SL_EFFECT_SETTINGS: settings(c, &r->settings); return;
    case SL_EFFECT_RULE:
    case SL_EFFECT_JOIN:
    case SL_EFFECT_GONE: walk_consumer_kinds(c, r); return;
    case SL_EFFECT_LEASE: walk_lease(c, r); return;
    case SL_EFFECT_STARTED:
    case SL_EFFECT_EXTEND:
    case SL_EFFECT_MOVE: walk_lease_change(c, r); return;
    case SL_EFFECT_BACK: walk_back(c, r); return;
    case SL_EFFECT_SETTLE: walk_settle(c, r); return;
    case SL_EFFECT_PARK: walk_park(c, r); return;
    case SL_EFFECT_CHECKPOINT:
    case SL_EFFECT_PASSED: walk_range(c, r); return;
    case SL_EFFECT_MESSAGE: walk_message(c, r); return;
    case SL_EFFECT_DELIVER:
    case SL_EFFECT_STOP_REQUESTED:
    case SL_EFFECT_STOPPED:
    case SL_EFFECT_SETTLED:
    case SL_EFFECT_LOST:
    case SL_EFFECT_DRAINED:
    case SL_EFFECT_COUNT_: break;
    }
    c->failed = true;
}

size_t sl_record_encode(const sl_effect *record, uint8_t bytes[SL_RECORD_BYTES_MAX])
{
    cursor c = { .out = bytes, .end = SL_RECORD_BYTES_MAX };
    sl_effect copy = *record; /* the walk takes places to read into; writing leaves them alone */

    choice(&c, (unsigned)record->kind, SL_EFFECT_COUNT_);
    walk(&c, &copy);
    assert(!c.failed);
    return c.at;
}

sl_err sl_record_decode(const uint8_t *bytes, size_t byte_count, sl_effect *ret_record, size_t *ret_used)
{
    cursor c = { .in = bytes, .end = byte_count };
    sl_effect record = { 0 };

    record.kind = (sl_effect_kind)choice(&c, 0, SL_EFFECT_COUNT_);
    walk(&c, &record);
    if (c.failed)
        return SL_ERR_CORRUPT;
    *ret_record = record;
    *ret_used = c.at;
    return SL_OK;
}

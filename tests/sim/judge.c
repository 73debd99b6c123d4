/* tests/sim/judge.c — what is shown is what is. */
#include "judge.h"

#include "core/record.h"
#include "fail.h"
#include "trace.h"

#include <inttypes.h>
#include <string.h>

/* Right after a restart a difference means that the records were not enough. */
static sim_rule rule_of_difference = SIM_RULE_STATUS;

static void same(const char *what, uint64_t shown, uint64_t is)
{
    if (shown != is)
        sim_fail(rule_of_difference, "%s: %" PRIu64 " is shown, %" PRIu64 " is right", what, shown, is);
}

/* --- the group -------------------------------------------------------------------------------------------- */

static void judge_messages(const model *m, const sl_group_info *info)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        waiting += !m->messages[i].live && !model_available(m, &m->messages[i]);
    same("messages", info->messages, m->message_count);
    same("messages in flight", info->in_flight, model_live_count(m));
    same("messages waiting", info->waiting, waiting);
    same("messages available", info->available, m->message_count - model_live_count(m) - waiting);
}

static void judge_states(const model *m, const sl_group_info *info)
{
    uint32_t counts[SL_CONSUMER_STATE_COUNT_] = { 0 };
    for (uint32_t i = 0; i < m->consumer_count; i++)
        counts[m->consumers[i].state]++;
    for (int state = 0; state < SL_CONSUMER_STATE_COUNT_; state++)
        same("consumers of a state", info->consumers[state], counts[state]);
}

static void judge_totals(const model *m, const sl_group_info *info)
{
    same("epoch", info->epoch, m->epoch);
    same("deliveries", info->deliveries, m->since_open.deliveries);
    same("settled", info->settled, m->since_open.settled);
    same("parked", info->parked, m->since_open.parked);
    same("lost", info->lost, m->since_open.lost);
    same("charged", info->charged, m->since_open.charged);
}

static void judge_reading(const model *m, const sl_group *group, const sl_group_info *info)
{
    if (sl_group_room(group) != model_room(m))
        sim_fail(SIM_RULE_ROOM, "room for %" PRIu32 " is shown, %" PRIu32 " is right", sl_group_room(group),
                 model_room(m));
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        const uint64_t read_from = sl_group_read_from(group, (sl_lane)lane);
        if (read_from != m->lanes[lane].read_from)
            sim_fail(SIM_RULE_RECORDS, "lane %d is read from %" PRIu64 " instead of %" PRIu64, lane,
                     read_from, m->lanes[lane].read_from);
        same("checkpoint", info->checkpoint[lane], model_below(m, (sl_lane)lane));
    }
}

/* --- consumers -------------------------------------------------------------------------------------------- */

typedef struct walk {
    const model *m;
    uint32_t index;
} walk;

static void judge_stop(const sl_consumer_info *info, const model_consumer *is)
{
    if (is->state == SL_CONSUMER_STOPPING || is->state == SL_CONSUMER_DRAINED)
        same("who asked for the stop", info->asked_by, is->asked_by);
}

static void judge_consumer(void *ctx, const sl_consumer_info *info)
{
    walk *w = ctx;
    if (w->index >= w->m->consumer_count)
        sim_fail(SIM_RULE_STATUS, "%s is shown and does not exist",
                 sim_number_text('c', info->consumer).chars);
    const model_consumer *is = &w->m->consumers[w->index++];
    same("consumer number", info->consumer, is->id);
    same("state of a consumer", info->state, is->state);
    same("since when in this state", info->since_ns, is->since_ns);
    same("in flight of a consumer", info->in_flight, is->in_flight);
    same("deliveries of a consumer", info->deliveries, is->deliveries);
    if (memcmp(info->session.bytes, is->session.bytes, sizeof is->session.bytes) != 0)
        sim_fail(SIM_RULE_STATUS, "wrong session of %s", sim_number_text('c', is->id).chars);
    if (is->window == 0) /* of an earlier life: more is not recorded */
        return;
    same("window", info->window, is->window);
    same("cordoned", info->cordoned, is->cordoned);
    judge_stop(info, is);
}

/* Asked one by one they say the same. */
static void judge_lookup(const model *m, const sl_group *group)
{
    sl_consumer_info info;
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        walk w = { .m = m, .index = i };
        if (sl_group_consumer(group, m->consumers[i].id, &info) != SL_OK)
            sim_fail(SIM_RULE_CODE, "%s is not found", sim_number_text('c', m->consumers[i].id).chars);
        judge_consumer(&w, &info);
    }
    if (sl_group_consumer(group, UINT64_MAX, &info) != SL_ERR_NO_CONSUMER)
        sim_fail(SIM_RULE_CODE, "a consumer is found that never joined");
}

void judge_group(model *m, const sl_group *group, bool opened)
{
    walk w = { .m = m };
    sl_group_info info;
    rule_of_difference = opened ? SIM_RULE_RECORDS : SIM_RULE_STATUS;
    sl_group_info_get(group, &info);
    judge_messages(m, &info);
    judge_states(m, &info);
    judge_totals(m, &info);
    judge_reading(m, group, &info);
    sl_group_consumers(group, judge_consumer, &w);
    same("number of consumers", w.index, m->consumer_count);
    judge_lookup(m, group);
    if (!model_same_settings(sl_group_settings(group), &m->settings))
        sim_fail(SIM_RULE_STATUS, "other settings are shown: %s",
                 sim_settings_text(sl_group_settings(group)).chars);
}

/* --- leases ----------------------------------------------------------------------------------------------- */

typedef struct held_walk {
    model *m;
    uint64_t consumer, token_sum;
    uint32_t count;
} held_walk;

static void judge_held(void *ctx, const sl_held *held)
{
    held_walk *w = ctx;
    const model_message *is = model_find(w->m, held->place);
    if (is == NULL || !is->live || is->holder != w->consumer)
        sim_fail(SIM_RULE_STATUS, "%s is not held by %s", sim_place_text(held->place).chars,
                 sim_number_text('c', w->consumer).chars);
    same("token of a lease", held->token, is->token);
    same("end of a lease", held->until_ns, is->until_ns);
    same("mark of a lease", held->started, is->started);
    w->token_sum += held->token;
    w->count++;
}

static uint64_t token_sum_of(const model *m, uint64_t consumer)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->message_count; i++)
        sum += m->messages[i].live && m->messages[i].holder == consumer ? m->messages[i].token : 0;
    return sum;
}

void judge_leases(model *m, const sl_group *group)
{
    for (uint32_t i = 0; i < m->consumer_count; i++) {
        held_walk w = { .m = m, .consumer = m->consumers[i].id };
        if (sl_group_held(group, w.consumer, judge_held, &w) != SL_OK)
            sim_fail(SIM_RULE_CODE, "the leases of %s are not shown", sim_number_text('c', w.consumer).chars);
        same("leases of a consumer", w.count, m->consumers[i].in_flight);
        same("sum of its tokens", w.token_sum, token_sum_of(m, w.consumer)); /* each of them, and each once */
    }
    if (sl_group_held(group, 1, judge_held, NULL) != SL_ERR_NO_CONSUMER)
        sim_fail(SIM_RULE_CODE, "leases of nobody are shown");
}

/* --- snapshots -------------------------------------------------------------------------------------------- */

static bool is_holder(const sl_effect *records, uint32_t count, uint64_t consumer)
{
    for (uint32_t i = 0; i < count; i++)
        if (records[i].kind == SL_EFFECT_MESSAGE && records[i].message.consumer == consumer)
            return true;
    return false;
}

/* What a lease was that nobody has any more means nothing. */
static sl_effect without_old_lease(const sl_effect *record)
{
    sl_effect copy = *record;
    if (copy.kind != SL_EFFECT_MESSAGE || copy.message.consumer != 0)
        return copy;
    copy.message.token = copy.message.until_ns = 0;
    copy.message.started = copy.message.charged = copy.message.ended = false;
    return copy;
}

/* A restart makes those gone that are holder of nothing. Ranges may be cut into other pieces; they are compared as a set. */
static bool is_forgotten(const sl_effect *records, uint32_t count, uint32_t index)
{
    const sl_effect *record = &records[index];
    return record->kind == SL_EFFECT_EPOCH || record->kind == SL_EFFECT_PASSED ||
           record->kind == SL_EFFECT_CHECKPOINT ||
           (record->kind == SL_EFFECT_JOIN && !is_holder(records, count, record->join.consumer));
}

static uint32_t next_kept(const sl_effect *records, uint32_t count, uint32_t index)
{
    while (index < count && is_forgotten(records, count, index))
        index++;
    return index;
}

static void cover_of(const sl_effect *records, uint32_t count, sl_lane lane, sim_cover *ret_cover)
{
    sim_cover_clear(ret_cover);
    for (uint32_t i = 0; i < count; i++) {
        const sl_effect *e = &records[i];
        if (e->kind == SL_EFFECT_PASSED && e->passed.lane == lane)
            sim_cover_add(ret_cover, e->passed.from, e->passed.to);
        if (e->kind == SL_EFFECT_CHECKPOINT && e->checkpoint.lane == lane)
            sim_cover_add(ret_cover, 0, e->checkpoint.below);
    }
}

static void judge_covers(const sl_effect *first, uint32_t first_count, const sl_effect *second,
                         uint32_t second_count)
{
    static sim_cover left, right; /* large */
    for (int lane = 0; lane < SL_LANE_COUNT_; lane++) {
        cover_of(first, first_count, (sl_lane)lane, &left);
        cover_of(second, second_count, (sl_lane)lane, &right);
        if (left.range_count != right.range_count ||
            memcmp(left.ranges, right.ranges, left.range_count * sizeof left.ranges[0]) != 0)
            sim_fail(SIM_RULE_RECORDS, "snapshot: other positions of lane %d are settled after a restart",
                     lane);
    }
}

/* Byte for byte, as a store would keep them: then no field can be forgotten here. */
static bool same_bytes(const sl_effect *a, const sl_effect *b)
{
    uint8_t left[SL_RECORD_BYTES_MAX], right[SL_RECORD_BYTES_MAX];
    const size_t left_bytes = sl_record_encode(a, left), right_bytes = sl_record_encode(b, right);
    return left_bytes == right_bytes && memcmp(left, right, left_bytes) == 0;
}

void judge_snapshots(const sl_effect *first, uint32_t first_count, const sl_effect *second,
                     uint32_t second_count)
{
    uint32_t a = next_kept(first, first_count, 0), b = next_kept(second, second_count, 0);
    while (a < first_count && b < second_count) {
        const sl_effect left = without_old_lease(&first[a]), right = without_old_lease(&second[b]);
        if (!same_bytes(&left, &right)) {
            const sim_text left_text = sim_effect_text(&left);
            sim_fail(SIM_RULE_RECORDS, "snapshot: %s became %s", left_text.chars,
                     sim_effect_text(&right).chars);
        }
        a = next_kept(first, first_count, a + 1);
        b = next_kept(second, second_count, b + 1);
    }
    if (a < first_count || b < second_count)
        sim_fail(SIM_RULE_RECORDS, "a snapshot of a snapshot is shorter or longer");
    judge_covers(first, first_count, second, second_count);
}

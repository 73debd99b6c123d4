/* tests/contract/test_groups.c — groups, their records, and what a restart gives back of them. */
#include "rig.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum {
    LOADED_MAX = 8192
};

typedef struct loaded { /* what sl_store_load() said, as numbers */
    uint32_t group_count, record_count;
    uint64_t groups[64];
    char definitions[64][32];
    struct {
        uint64_t group, epoch;
    } records[LOADED_MAX];
    sl_err fail_with; /* at the first group */
} loaded;

static loaded got; /* too large for a stack */

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    loaded *const l = ctx;

    EXPECT(l->group_count < SL_COUNT_OF(l->groups) && definition.bytes < sizeof l->definitions[0]);
    l->groups[l->group_count] = group;
    snprintf(l->definitions[l->group_count++], sizeof l->definitions[0], "%.*s", (int)definition.bytes,
             definition.data == NULL ? "" : definition.data);
    return l->fail_with;
}

static bool is_loaded(const loaded *l, uint64_t group)
{
    for (uint32_t i = 0; i < l->group_count; i++)
        if (l->groups[i] == group)
            return true;
    return false;
}

static sl_err load_record(void *ctx, uint64_t group, const sl_effect *record)
{
    loaded *const l = ctx;

    EXPECT(l->record_count < LOADED_MAX && record->kind == SL_EFFECT_EPOCH);
    EXPECT(is_loaded(l, group)); /* its group came before */
    l->records[l->record_count].group = group;
    l->records[l->record_count++].epoch = record->epoch.epoch;
    return SL_OK;
}

/* Loading is for a store that was just opened. */
static void load(rig *r)
{
    const sl_loader loader = { &got, load_group, load_record };

    got = (loaded){ 0 };
    EXPECT_OK(sl_store_load(r->store, &loader));
}

static void reload(rig *r)
{
    rig_restart(r, SL_RESTART_KILLED);
    load(r);
}

static sl_effect epoch(uint64_t number)
{
    return (sl_effect){ .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = number } };
}

static sl_err record(rig *r, uint64_t group, uint64_t number)
{
    const sl_effect effect = epoch(number);
    const sl_op op = record_op(group, &effect);

    return commit(r, &op, 1).err;
}

static sl_err create(rig *r, uint64_t group, const char *definition)
{
    const sl_op op = create_op(group, definition);

    return commit(r, &op, 1).err;
}

static sl_err update(rig *r, uint64_t group, const char *definition)
{
    const sl_op op = update_op(group, definition);

    return commit(r, &op, 1).err;
}

static sl_err drop(rig *r, uint64_t group)
{
    const sl_op op = drop_op(group);

    return commit(r, &op, 1).err;
}

TEST(a_new_store_has_no_groups)
{
    rig r = rig_open();

    load(&r);
    EXPECT_EQ(got.group_count, 0);
    EXPECT_EQ(got.record_count, 0);
    rig_close(&r);
}

TEST(groups_and_their_records_come_back_in_order)
{
    rig r = rig_open();

    EXPECT_OK(create(&r, 7, "seven"));
    EXPECT_OK(create(&r, UINT64_MAX, ""));
    for (uint64_t i = 1; i <= 5; i++) {
        EXPECT_OK(record(&r, 7, i));
        EXPECT_OK(record(&r, UINT64_MAX, 10 * i));
    }
    reload(&r);
    EXPECT_EQ(got.group_count, 2);
    EXPECT_EQ(got.record_count, 10);
    for (uint32_t i = 0; i < got.group_count; i++)
        EXPECT_STR(got.definitions[i], got.groups[i] == 7 ? "seven" : "");
    for (uint64_t i = 0, sevens = 0, others = 0; i < 10; i++)
        EXPECT_EQ(got.records[i].epoch, got.records[i].group == 7 ? ++sevens : 10 * ++others);
    rig_close(&r);
}

TEST(a_group_exists_once_and_its_records_need_it)
{
    rig r = rig_open();

    EXPECT_ERR(record(&r, 1, 1), SL_ERR_NOT_FOUND);
    EXPECT_ERR(drop(&r, 1), SL_ERR_NOT_FOUND);
    EXPECT_OK(create(&r, 1, "first"));
    EXPECT_ERR(create(&r, 1, "again"), SL_ERR_EXISTS);
    EXPECT_OK(record(&r, 1, 1));
    EXPECT_OK(drop(&r, 1));
    EXPECT_ERR(record(&r, 1, 2), SL_ERR_NOT_FOUND);
    EXPECT_ERR(drop(&r, 1), SL_ERR_NOT_FOUND);
    EXPECT_OK(create(&r, 1, "second"));
    EXPECT_OK(record(&r, 1, 3));
    for (int i = 0; i < 2; i++) {
        reload(&r);
        EXPECT_EQ(got.group_count, 1);
        EXPECT_STR(got.definitions[0], "second");
        EXPECT_EQ(got.record_count, 1);
        EXPECT_EQ(got.records[0].epoch, 3);
    }
    rig_close(&r);
}

TEST(groups_and_events_are_written_in_one_batch_or_not_at_all)
{
    rig r = rig_open();
    const sl_event_in e = event(1);
    const sl_effect one = epoch(1);
    const sl_op ops[] = { create_op(1, "g"), record_op(1, &one), append_op("s", ANY, &e, 1), drop_op(2) };
    const answer a = commit(&r, ops, 4);

    EXPECT_ERR(a.err, SL_ERR_NOT_FOUND);
    EXPECT_EQ(a.failed_op, 3);
    reload(&r);
    EXPECT_EQ(got.group_count, 0);
    EXPECT_OK(commit(&r, ops, 3).err);
    reload(&r);
    EXPECT_EQ(got.group_count, 1);
    EXPECT_EQ(got.record_count, 1);
    expect_stream(&r, "s", 0, 0);
    rig_close(&r);
}

TEST(a_refused_batch_brings_back_a_group_that_it_deleted)
{
    rig r = rig_open();
    const sl_effect two = epoch(2);
    const sl_op ops[] = { record_op(1, &two), drop_op(1), create_op(1, "other"), record_op(1, &two),
                          drop_op(9) };

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(record(&r, 1, 1));
    EXPECT_ERR(commit(&r, ops, 5).err, SL_ERR_NOT_FOUND);
    reload(&r);
    EXPECT_EQ(got.group_count, 1);
    EXPECT_STR(got.definitions[0], "g");
    EXPECT_EQ(got.record_count, 1);
    rig_close(&r);
}

/* --- several records in one --- */

TEST(records_of_one_op_are_loaded_in_their_order_and_none_of_a_refused_one)
{
    rig r = rig_open();
    sl_effect effects[SL_OP_RECORDS_MAX];
    sl_op ops[] = { record_op(1, effects), record_op(9, effects) };
    uint64_t written = 0;

    EXPECT_OK(create(&r, 1, "g"));
    for (uint32_t i = 0; i < SL_OP_RECORDS_MAX; i++)
        effects[i] = epoch(i + 1);
    for (uint32_t count = 1; count <= SL_OP_RECORDS_MAX; count += 21) {
        ops[0].group_record.record_count = count;
        EXPECT_OK(commit(&r, ops, 1).err);
        written += count;
        EXPECT_ERR(commit(&r, ops, 2).err, SL_ERR_NOT_FOUND);
    }
    EXPECT_OK(record(&r, 1, 4711));
    reload(&r);
    EXPECT_EQ(got.record_count, written + 1);
    EXPECT_EQ(got.records[0].epoch, 1); /* of one, then of 22, of 43 and of 64 */
    for (uint32_t i = 0; i < 22; i++)
        EXPECT_EQ(got.records[1 + i].epoch, i + 1);
    EXPECT_EQ(got.records[written - 1].epoch, SL_OP_RECORDS_MAX);
    EXPECT_EQ(got.records[written].epoch, 4711);
    rig_close(&r);
}

/* --- other definitions --- */

/* Group 1 is there with this definition and records from 1 to record_count, and no other group is. */
static void expect_group(const char *definition, uint32_t record_count)
{
    EXPECT_EQ(got.group_count, 1);
    EXPECT_EQ(got.groups[0], 1);
    EXPECT_STR(got.definitions[0], definition);
    EXPECT_EQ(got.record_count, record_count);
    for (uint32_t i = 0; i < record_count; i++)
        EXPECT_EQ(got.records[i].epoch, i + 1);
}

TEST(an_update_replaces_the_definition_and_nothing_else)
{
    static const char *const definitions[] = { "longer than before", "", "", "short", "g" };
    rig r = rig_open();
    uint64_t number = 0;

    EXPECT_OK(create(&r, 1, "g"));
    for (uint32_t i = 0; i < SL_COUNT_OF(definitions); i++) {
        EXPECT_OK(record(&r, 1, ++number));
        EXPECT_OK(update(&r, 1, definitions[i]));
        EXPECT_OK(record(&r, 1, ++number));
        for (int twice = 0; twice < 2; twice++) {
            reload(&r);
            expect_group(definitions[i], (uint32_t)number);
        }
    }
    for (int i = 0; i < 20; i++)
        EXPECT_OK(update(&r, 1, i % 2 == 0 ? "even" : "odd"));
    reload(&r);
    expect_group("odd", (uint32_t)number);
    rig_close(&r);
}

TEST(an_update_needs_its_group)
{
    rig r = rig_open();
    const sl_op early[] = { update_op(1, "h"), create_op(1, "g") };
    const sl_op late[] = { drop_op(1), update_op(1, "h") };
    answer a;

    EXPECT_ERR(update(&r, 1, "h"), SL_ERR_NOT_FOUND);
    a = commit(&r, early, 2);
    EXPECT_ERR(a.err, SL_ERR_NOT_FOUND);
    EXPECT_EQ(a.failed_op, 0);
    EXPECT_OK(create(&r, 1, "g"));
    a = commit(&r, late, 2);
    EXPECT_ERR(a.err, SL_ERR_NOT_FOUND);
    EXPECT_EQ(a.failed_op, 1);
    EXPECT_OK(update(&r, 1, "h"));
    EXPECT_OK(drop(&r, 1));
    EXPECT_ERR(update(&r, 1, "i"), SL_ERR_NOT_FOUND);
    reload(&r);
    EXPECT_EQ(got.group_count, 0);
    EXPECT_ERR(update(&r, 1, "i"), SL_ERR_NOT_FOUND);
    EXPECT_OK(create(&r, 1, "new"));
    EXPECT_OK(record(&r, 1, 1));
    reload(&r);
    expect_group("new", 1);
    rig_close(&r);
}

TEST(an_update_concerns_its_own_group_alone)
{
    rig r = rig_open();

    for (uint64_t group = 1; group <= 3; group++)
        EXPECT_OK(create(&r, group, "g"));
    EXPECT_OK(update(&r, 2, "h"));
    reload(&r);
    EXPECT_EQ(got.group_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_STR(got.definitions[i], got.groups[i] == 2 ? "h" : "g");
    rig_close(&r);
}

TEST(ops_of_one_batch_see_each_others_definitions)
{
    rig r = rig_open();
    const sl_effect one = epoch(1), two = epoch(2);
    const sl_op ops[] = { create_op(1, "a"),  update_op(1, "b"), drop_op(1),           create_op(1, "c"),
                          record_op(1, &one), update_op(1, "d"), update_op(1, "last"), record_op(1, &two) };

    EXPECT_OK(commit(&r, ops, SL_COUNT_OF(ops)).err);
    reload(&r);
    expect_group("last", 2);
    rig_close(&r);
}

TEST(a_refused_batch_brings_back_the_definition_before_it)
{
    rig r = rig_open();
    const sl_effect two = epoch(2);
    const sl_op good[] = { update_op(1, "a"), record_op(1, &two), update_op(1, ""),  drop_op(1),
                           create_op(1, "b"), update_op(1, "c"),  create_op(2, "d"), update_op(2, "e") };

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(update(&r, 1, "right"));
    EXPECT_OK(record(&r, 1, 1));
    for (uint32_t count = 1; count <= SL_COUNT_OF(good); count++) {
        sl_op ops[SL_COUNT_OF(good) + 1];

        memcpy(ops, good, count * sizeof *ops);
        ops[count] = update_op(3, "of no group");
        EXPECT_ERR(commit(&r, ops, count + 1).err, SL_ERR_NOT_FOUND);
        reload(&r);
        expect_group("right", 1);
    }
    rig_close(&r);
}

static void tell_one(void *ctx, uint64_t group, sl_sink sink)
{
    const sl_effect state = epoch(1);

    (void)ctx;
    (void)group;
    sink.emit(sink.ctx, &state);
}

/* What was refused is not in a state either, which may be all that is read again of a group. */
TEST(a_state_has_nothing_of_a_refused_update)
{
    rig r = rig_open();
    const sl_op ops[] = { update_op(1, "refused"), update_op(1, ""), update_op(3, "of no group") };

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(update(&r, 1, "right"));
    EXPECT_OK(record(&r, 1, 1));
    EXPECT_ERR(commit(&r, ops, 3).err, SL_ERR_NOT_FOUND);
    sl_store_on_snapshot(r.store, tell_one, NULL);
    fill_segment(&r);
    reload(&r);
    expect_group("right", 1);
    rig_close(&r);
}

/* Only written: a kill leaves the new definition, a power cut the old one. */
TEST(a_crash_leaves_the_old_definition_or_the_new_one)
{
    rig r = rig_open();
    const sl_op ops[] = { update_op(1, "between"), update_op(1, "new") };
    answer a;

    EXPECT_OK(create(&r, 1, "old"));
    EXPECT_OK(record(&r, 1, 1));
    EXPECT_OK(submit(&r, ops, 2, SL_DURABLE_WRITTEN, &a));
    sl_store_turn(r.store);
    wait_for(&r, 3);
    EXPECT_OK(a.err);
    reload(&r);
    expect_group("new", 1);
    EXPECT_OK(update(&r, 1, "synced"));
    EXPECT_OK(submit(&r, ops, 2, SL_DURABLE_WRITTEN, &a));
    sl_store_turn(r.store);
    wait_for(&r, 5);
    EXPECT_OK(a.err);
    if (rig_restart(&r, SL_RESTART_POWER_CUT)) {
        load(&r);
        expect_group("synced", 1);
    }
    rig_close(&r);
}

/* --- leases --- */

TEST(a_lease_survives_the_death_of_the_process)
{
    rig r = rig_open();
    const sl_effect lease = { .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = 42 } };
    const sl_op op = record_op(1, &lease);
    answer a;

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_WRITTEN, &a));
    sl_store_turn(r.store);
    wait_for(&r, 2);
    reload(&r);
    EXPECT_EQ(got.record_count, 1);
    EXPECT_EQ(got.records[0].epoch, 42);
    rig_close(&r);
}

TEST(a_power_cut_takes_back_what_was_not_synced)
{
    rig r = rig_open();
    const sl_effect two = epoch(2);
    const sl_op ops[] = { record_op(1, &two), drop_op(1), create_op(1, "other"), create_op(2, "new") };
    answer a;

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(record(&r, 1, 1));
    EXPECT_OK(submit(&r, ops, 4, SL_DURABLE_WRITTEN, &a));
    sl_store_turn(r.store);
    wait_for(&r, 3);
    EXPECT_OK(a.err);
    if (!rig_restart(&r, SL_RESTART_POWER_CUT)) {
        rig_close(&r);
        skip();
    }
    load(&r);
    EXPECT_EQ(got.group_count, 1);
    EXPECT_STR(got.definitions[0], "g");
    EXPECT_EQ(got.record_count, 1);
    rig_close(&r);
}

TEST(a_sync_covers_the_leases_written_before_it)
{
    rig r = rig_open();
    const sl_effect one = epoch(1);
    const sl_op op = record_op(1, &one);
    answer a;

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_WRITTEN, &a));
    append(&r, "s", ANY, 1, 1);
    rig_restart(&r, SL_RESTART_POWER_CUT);
    load(&r);
    EXPECT_EQ(got.record_count, 1);
    rig_close(&r);
}

TEST(an_error_of_the_loader_ends_the_loading)
{
    rig r = rig_open();
    const sl_loader loader = { &got, load_group, load_record };

    EXPECT_OK(create(&r, 1, "g"));
    EXPECT_OK(create(&r, 2, "h"));
    rig_restart(&r, SL_RESTART_KILLED);
    got = (loaded){ .fail_with = SL_ERR_FULL };
    EXPECT_ERR(sl_store_load(r.store, &loader), SL_ERR_FULL);
    EXPECT_EQ(got.group_count, 1);
    rig_close(&r);
}

/* --- snapshots: a group whose state is its last number --- */

typedef struct counter {
    uint64_t value, asked;
} counter;

static void tell_state(void *ctx, uint64_t group, sl_sink sink)
{
    counter *const c = ctx;
    const sl_effect state = epoch(c->value);

    EXPECT_EQ(group, 1);
    c->asked++;
    sink.emit(sink.ctx, &state);
}

/* Many records in batches of 500. Every batch is synced, or only written. */
static void count_up(rig *r, counter *c, uint32_t batch_count, sl_durability durability)
{
    for (uint32_t i = 0; i < batch_count; i++) {
        static sl_effect effects[500];
        static sl_op ops[500];
        const uint64_t before = r->done_count;
        answer a;

        for (uint32_t at = 0; at < 500; at++) {
            effects[at] = epoch(++c->value);
            ops[at] = record_op(1, &effects[at]);
        }
        EXPECT_OK(submit(r, ops, 500, durability, &a));
        sl_store_turn(r->store);
        wait_for(r, before + 1);
        EXPECT_OK(a.err);
    }
}

/* The records have no gap: older ones may be gone, none in between. Gives the newest number. */
static uint64_t counted(void)
{
    EXPECT_EQ(got.group_count, 1);
    EXPECT(got.record_count > 0);
    for (uint32_t i = 1; i < got.record_count; i++) {
        const uint64_t before = got.records[i - 1].epoch;

        EXPECT(got.records[i].epoch == before || got.records[i].epoch == before + 1);
    }
    return got.records[got.record_count - 1].epoch;
}

TEST(a_snapshot_replaces_older_records)
{
    rig r = rig_open();
    counter c = { 0 };

    EXPECT_OK(create(&r, 1, "g"));
    sl_store_on_snapshot(r.store, tell_state, &c);
    count_up(&r, &c, 200, SL_DURABLE_SYNC);
    EXPECT(c.asked > 0);
    reload(&r);
    EXPECT_EQ(counted(), 100000);
    EXPECT(got.record_count < 5000);
    sl_store_on_snapshot(r.store, tell_state, &c);
    count_up(&r, &c, 20, SL_DURABLE_SYNC);
    reload(&r);
    EXPECT_EQ(counted(), 110000);
    rig_close(&r);
}

/* The snapshot is written while a sync runs that began before it: that sync must not count for it. */
TEST(a_snapshot_that_was_not_synced_costs_nothing_in_a_power_cut)
{
    rig r = rig_open();
    counter c = { 0 };
    const sl_event_in e = event(1);
    const sl_op op = append_op("s", ANY, &e, 1);
    answer a;

    EXPECT_OK(create(&r, 1, "g"));
    count_up(&r, &c, 4, SL_DURABLE_SYNC);
    sl_store_on_snapshot(r.store, tell_state, &c);
    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_SYNC, &a));
    sl_store_turn(r.store);
    count_up(&r, &c, 6, SL_DURABLE_WRITTEN);
    if (rig_restart(&r, SL_RESTART_POWER_CUT)) {
        load(&r);
        EXPECT(counted() >= 2000 && counted() <= c.value);
    }
    rig_close(&r);
}

/* A state is of the definition that held when it was written; what came later counts. */
TEST(a_snapshot_keeps_the_newest_definition)
{
    rig r = rig_open();
    counter c = { 0 };
    char definition[32];

    EXPECT_OK(create(&r, 1, "g"));
    for (int i = 0; i < 8; i++) {
        sl_store_on_snapshot(r.store, tell_state, &c);
        snprintf(definition, sizeof definition, "before %d", i);
        EXPECT_OK(update(&r, 1, definition));
        count_up(&r, &c, 7, SL_DURABLE_SYNC);
        if (i % 2 == 1) {
            snprintf(definition, sizeof definition, "after %d", i);
            EXPECT_OK(update(&r, 1, definition));
        }
        reload(&r);
        EXPECT_STR(got.definitions[0], definition);
        EXPECT_EQ(counted(), c.value);
    }
    EXPECT(c.asked > 0 && got.record_count < 8 * 7 * 500);
    rig_close(&r);
}

/* A state that no power cut has spared takes nothing along: neither records nor definitions. */
TEST(a_snapshot_that_was_not_synced_leaves_the_definition_before_it)
{
    rig r = rig_open();
    counter c = { 0 };
    const sl_op op = update_op(1, "lost");
    answer a;

    EXPECT_OK(create(&r, 1, "g"));
    count_up(&r, &c, 1, SL_DURABLE_SYNC);
    EXPECT_OK(update(&r, 1, "kept"));
    sl_store_on_snapshot(r.store, tell_state, &c);
    EXPECT_OK(submit(&r, &op, 1, SL_DURABLE_WRITTEN, &a));
    count_up(&r, &c, 6, SL_DURABLE_WRITTEN);
    EXPECT(c.asked > 0);
    if (rig_restart(&r, SL_RESTART_POWER_CUT)) {
        load(&r);
        expect_group("kept", 500);
    }
    rig_close(&r);
}

TEST(without_a_snapshot_hook_every_record_stays)
{
    rig r = rig_open();
    counter c = { 0 };

    EXPECT_OK(create(&r, 1, "g"));
    count_up(&r, &c, 12, SL_DURABLE_SYNC);
    reload(&r);
    EXPECT_EQ(got.record_count, 6000);
    rig_close(&r);
}

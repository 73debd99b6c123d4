/* Records of groups in the journal: what belongs together is there together, whenever the power goes. */
#include "../base/support.h"
#include "lab.h"

#include "core/record.h"
#include "store/journal/records.h"

#include <stdio.h>
#include <string.h>

typedef struct loaded {
    uint32_t groups, leases, joins, parks;
    sl_effect newest_lease;
    char definition[32];
} loaded;

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    loaded *const l = ctx;

    (void)group;
    EXPECT(definition.bytes < sizeof l->definition);
    memcpy(l->definition, definition.data, definition.bytes);
    l->groups++;
    return SL_OK;
}

static sl_err load_record(void *ctx, uint64_t group, const sl_effect *record)
{
    loaded *const l = ctx;

    (void)group;
    l->joins += record->kind == SL_EFFECT_JOIN;
    l->parks += record->kind == SL_EFFECT_PARK;
    l->leases += record->kind == SL_EFFECT_LEASE;
    if (record->kind == SL_EFFECT_LEASE)
        l->newest_lease = *record;
    return SL_OK;
}

static loaded load(lab *w)
{
    loaded l = { 0 };

    EXPECT_OK(sl_store_load(w->store, &(sl_loader){ &l, load_group, load_record }));
    return l;
}

static sl_effect lease_of(uint64_t position)
{
    return (sl_effect){ .kind = SL_EFFECT_LEASE,
                        .lease = { .place = { SL_LANE_MAIN, position },
                                   .id = sl_uuid_from_halves(1, (int64_t)position + 1),
                                   .key = 7,
                                   .consumer = 3,
                                   .token = 1000 + position,
                                   .until_ns = UINT64_C(1800000000000000000) + position,
                                   .deliveries = 2 } };
}

static lab open_with_group(void)
{
    lab w = lab_open(0);
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 8, SL_STR("g") } };

    EXPECT_OK(lab_commit(&w, &create));
    return w;
}

/* The power goes at a call of the disk, if there is still one; then the store is opened again. */
static void cut_and_open(lab *w)
{
    sl_faulty_power_cut(w->disk, 77);
    sl_store_close(w->store);
    sl_faulty_settle(w->disk);
    sl_faulty_cut_after(w->disk, UINT64_MAX, 0);
    lab_open_again(w);
    EXPECT_OK(w->err);
}

/* Submits and gives the store some turns; the power may go in any of them. */
static void submit_somehow(lab *w, const sl_op *ops, uint32_t op_count, answer *a)
{
    const sl_batch batch = { .ops = ops, .op_count = op_count, .durability = SL_DURABLE_SYNC };

    if (sl_store_submit(w->store, &batch, lab_note_answer, a) != SL_OK)
        return;
    for (int i = 0; i < 100 && !a->is_there; i++)
        lab_turn_once(w);
}

/* S4.22, B15: a message goes to the parked messages and leaves its group in one step. */
TEST(parking_is_one_step_whenever_the_power_goes)
{
    uint32_t whole = 0, none = 0;

    for (uint64_t calls = 0; calls < 12; calls++) {
        static answer a;
        lab w = open_with_group();
        const sl_event_in event = { .id = sl_uuid_from_halves(4, 4), .type = SL_STR("OrderPlaced") };
        const sl_effect park = { .kind = SL_EFFECT_PARK, .park = { .place = { SL_LANE_MAIN, 5 } } };
        const sl_op ops[] = { { .kind = SL_OP_APPEND,
                                .append = { SL_STR("parked"), { SL_EXPECT_ANY, 0 }, &event, 1 } },
                              { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &park, 1 } } };
        loaded l;

        a = (answer){ 0 };
        sl_faulty_cut_after(w.disk, calls, 3 * calls + 1);
        submit_somehow(&w, ops, 2, &a);
        cut_and_open(&w);
        l = load(&w);
        EXPECT_EQ(l.parks, lab_count_all(&w));
        EXPECT(l.parks == 1 || !a.is_there || a.err != SL_OK);
        whole += l.parks == 1;
        none += l.parks == 0;
        lab_close(&w);
    }
    EXPECT(whole > 0 && none > 0);
}

/* S4.3: fresh messages and one whose lease had ended are claimed together, or none is. */
TEST(a_claim_of_several_messages_is_there_as_a_whole)
{
    for (uint64_t calls = 0; calls < 12; calls++) {
        static answer a;
        lab w = open_with_group();
        const sl_effect leases[] = { lease_of(10), lease_of(11), lease_of(3) };
        sl_op ops[3];
        loaded l;

        for (int i = 0; i < 3; i++)
            ops[i] = (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &leases[i], 1 } };
        a = (answer){ 0 };
        sl_faulty_cut_after(w.disk, calls, 5 * calls + 1);
        submit_somehow(&w, ops, 3, &a);
        cut_and_open(&w);
        l = load(&w);
        EXPECT(l.leases == 3 || (l.leases == 0 && (!a.is_there || a.err != SL_OK)));
        lab_close(&w);
    }
}

/* S1.6, S4.13, B4: holder, token and end of a lease are after a restart what they were, to the nanosecond: the store has no
 * clock of its own, and nobody else's decides. */
TEST(a_lease_is_the_same_after_a_restart)
{
    lab w = open_with_group();
    const sl_effect join = {
        .kind = SL_EFFECT_JOIN,
        .join = { .consumer = 3, .session = sl_uuid_from_halves(2, 2), .sends_started = true }
    };
    const sl_effect lease = lease_of(42);
    const sl_op first = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &join, 1 } };
    const sl_op second = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &lease, 1 } };
    loaded l;

    EXPECT_OK(lab_commit(&w, &first));
    EXPECT_OK(lab_commit(&w, &second));
    cut_and_open(&w);
    l = load(&w);
    EXPECT(l.joins == 1 && l.leases == 1);
    EXPECT_EQ(l.newest_lease.lease.until_ns, lease.lease.until_ns);
    EXPECT_EQ(l.newest_lease.lease.token, lease.lease.token);
    EXPECT_EQ(l.newest_lease.lease.consumer, 3);
    EXPECT_EQ(l.newest_lease.lease.deliveries, 2);
    EXPECT(sl_uuid_equal(l.newest_lease.lease.id, lease.lease.id));
    lab_close(&w);
}

/* S4.12: of a lease that is cut anywhere nothing is taken. */
TEST(half_a_lease_is_no_lease)
{
    const sl_effect lease = lease_of(42);
    uint8_t bytes[SL_RECORD_BYTES_MAX];
    const size_t byte_count = sl_record_encode(&lease, bytes);
    sl_effect read;
    size_t used;

    for (size_t cut = 0; cut < byte_count; cut++)
        EXPECT_ERR(sl_record_decode(bytes, cut, &read, &used), SL_ERR_CORRUPT);
    EXPECT_OK(sl_record_decode(bytes, byte_count, &read, &used));
    EXPECT_EQ(used, byte_count);
}

/* The length in front of a record is that of the record: neither beyond the end of the state nor more than is needed. */
TEST(a_record_of_a_state_is_as_long_as_it_says)
{
    const sl_effect lease = lease_of(42);
    uint8_t bytes[2 * SL_GROUP_STATE_RECORD_BYTES_MAX] = { 0 };
    const size_t byte_count = sl_record_encode(&lease, bytes + 1);
    sl_effect read;
    sl_str rest = { (const char *)bytes, 1 + byte_count + 1 };

    for (size_t says = 0; says <= UINT8_MAX; says++) {
        bytes[0] = (uint8_t)says;
        if (says != byte_count)
            EXPECT_ERR(sl_group_state_next(&rest, &read), SL_ERR_CORRUPT);
        EXPECT_EQ(rest.bytes, 1 + byte_count + 1);
    }
    bytes[0] = (uint8_t)byte_count;
    EXPECT_OK(sl_group_state_next(&rest, &read));
    EXPECT_EQ(read.lease.token, lease.lease.token);
    EXPECT_EQ(rest.bytes, 1);
    EXPECT_ERR(sl_group_state_next(&rest, &read), SL_ERR_CORRUPT); /* a record of no bytes */
}

/* --- definitions --- */

static sl_op update_to(const char *definition)
{
    return (sl_op){ .kind = SL_OP_GROUP_UPDATE, .group_update = { 8, sl_str_from(definition) } };
}

static sl_op record_of(const sl_effect *effect)
{
    return (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { 8, effect, 1 } };
}

/* Whatever is left of an update: a definition is the old one or the new one, and with it the leases that go with it. */
TEST(a_definition_is_the_old_one_or_the_new_one_whenever_the_power_goes)
{
    uint32_t old = 0, new = 0;

    for (uint64_t calls = 0; calls < 12; calls++) {
        static answer a;
        lab w = open_with_group();
        const sl_effect leases[] = { lease_of(1), lease_of(2) };
        const sl_op before = record_of(&leases[0]);
        const sl_op ops[] = { update_to("between"), update_to("new"), record_of(&leases[1]) };
        loaded l;

        EXPECT_OK(lab_commit(&w, &before));
        a = (answer){ 0 };
        sl_faulty_cut_after(w.disk, calls, 7 * calls + 1);
        submit_somehow(&w, ops, 3, &a);
        cut_and_open(&w);
        l = load(&w);
        EXPECT_STR(l.definition, l.leases == 2 ? "new" : "g");
        EXPECT(l.leases == 2 || (l.leases == 1 && (!a.is_there || a.err != SL_OK)));
        new += l.leases == 2;
        old += l.leases == 1;
        lab_close(&w);
    }
    EXPECT(old > 0 && new > 0);
}

/* Whatever allocation fails: the definition is the old one, in memory and on disk. */
TEST(an_update_of_a_journal_without_memory_leaves_the_definition)
{
    const sl_op ops[] = { update_to("between"), update_to("new") };
    const sl_batch batch = { .ops = ops, .op_count = 2, .durability = SL_DURABLE_SYNC };
    lab w = open_with_group();
    sl_err err = SL_ERR_NOMEM;

    sl_store_close(w.store);
    for (size_t fail_at = 1; err == SL_ERR_NOMEM; fail_at++) {
        test_alloc t = { 0 };
        const sl_alloc alloc = test_alloc_use(&t);
        const sl_store_setup setup = { .alloc = &alloc, .seed = lab_setup.seed };
        answer a = { 0 };

        EXPECT_OK(sl_store_open_faulty(&setup, &w.options, w.disk, &w.report, &w.store));
        EXPECT_STR(load(&w).definition, "g");
        t.call_count = 0;
        t.fail_at = fail_at;
        err = sl_store_submit(w.store, &batch, lab_note_answer, &a);
        t.fail_at = 0;
        EXPECT(err == SL_OK || err == SL_ERR_NOMEM);
        EXPECT_STR(load(&w).definition, err == SL_OK ? "new" : "g");
        sl_store_close(w.store);
        EXPECT(a.is_there == (err == SL_OK) && a.err == SL_OK);
        EXPECT_EQ(t.block_count, 0);
    }
    lab_open_again(&w);
    EXPECT_STR(load(&w).definition, "new");
    lab_close(&w);
}

static void tell_lease(void *ctx, uint64_t group, sl_sink sink)
{
    EXPECT_EQ(group, 8);
    sink.emit(sink.ctx, ctx);
}

/* Without a state the update is read again where it stands, behind the start of its group; with one it is not needed. */
TEST(an_update_is_found_however_many_segments_come_after_it)
{
    for (int with_states = 0; with_states < 2; with_states++) {
        lab w = open_with_group();
        sl_effect lease = lease_of(1);
        const sl_op record = record_of(&lease);

        EXPECT_OK(lab_commit(&w, &record));
        for (int i = 0; i < 6; i++) {
            char definition[32];
            sl_op update;
            loaded l;

            if (with_states)
                sl_store_on_snapshot(w.store, tell_lease, &lease);
            snprintf(definition, sizeof definition, "number %d", i);
            update = update_to(definition);
            if (i % 3 == 0) /* the last segment of this life has it, or one that is full */
                lab_append_many(&w, 300);
            EXPECT_OK(lab_commit(&w, &update));
            if (i % 3 == 1)
                lab_append_many(&w, 300);
            lab_reopen(&w);
            l = load(&w);
            EXPECT_STR(l.definition, definition);
            EXPECT(l.groups == 1 && l.leases == 1);
        }
        lab_close(&w);
    }
}

/* Another definition is no settling: what is left of a full disk is not for it. */
TEST(a_full_disk_refuses_an_update_and_keeps_the_definition)
{
    lab w = open_with_group();
    const sl_effect lease = lease_of(1);
    const sl_op record = record_of(&lease), update = update_to("new");
    const sl_op large =
        update_to("longer than all of the smallest event, whose stream and type are one letter each, and "
                  "so nothing that could find a place where no event does any more");
    loaded l;

    sl_faulty_set_full(w.disk, true);
    while (lab_append(&w, "s", 500) == SL_OK) {
    }
    while (lab_append(&w, "s", 1) == SL_OK) { /* there may be a place for a smaller one */
    }
    EXPECT_ERR(lab_commit(&w, &large), SL_ERR_NO_SPACE);
    EXPECT_OK(lab_commit(&w, &record));
    sl_faulty_set_full(w.disk, false);
    cut_and_open(&w);
    l = load(&w);
    EXPECT_STR(l.definition, "g");
    EXPECT_EQ(l.leases, 1);
    EXPECT_OK(lab_commit(&w, &update));
    lab_reopen(&w);
    l = load(&w);
    EXPECT_STR(l.definition, "new");
    EXPECT_EQ(l.leases, 1);
    lab_close(&w);
}

/* A group is loaded from its records in their order: none may be missing before others that are there. So a batch of them is refused
 * before a later one can be handed in. */
TEST(records_that_find_no_room_are_refused_at_once_and_taken_later)
{
    lab w = open_with_group();
    const sl_effect lease = lease_of(1);
    const sl_op record = record_of(&lease);
    const sl_batch batch = { .ops = &record, .op_count = 1, .durability = SL_DURABLE_SYNC };
    answer refused = { 0 };
    sl_err err = SL_OK;

    EXPECT_EQ(sl_store_room(w.store), SL_ROOM_ENOUGH);
    sl_faulty_set_full(w.disk, true);
    while (lab_append(&w, "s", 500) == SL_OK) {
    }
    EXPECT_EQ(sl_store_room(w.store), SL_ROOM_SETTLING);
    EXPECT(strstr(sl_store_problem(w.store), "the disk is full") != NULL);
    while (err == SL_OK) {
        answer a = { 0 };

        err = sl_store_submit(w.store, &batch, lab_note_answer, &a);
        while (err == SL_OK && !a.is_there)
            lab_turn_once(&w);
        EXPECT_OK(a.err);
    }
    EXPECT_ERR(err, SL_ERR_NO_SPACE);
    EXPECT_EQ(sl_store_room(w.store), SL_ROOM_LAST);
    EXPECT_ERR(sl_store_submit(w.store, &batch, lab_note_answer, &refused), SL_ERR_NO_SPACE);
    sl_faulty_set_full(w.disk, false);
    EXPECT_OK(lab_commit(&w, &record));
    EXPECT(!refused.is_there);
    EXPECT_EQ(sl_store_room(w.store), SL_ROOM_ENOUGH);
    lab_reopen(&w);
    EXPECT_STR(load(&w).definition, "g");
    lab_close(&w);
}

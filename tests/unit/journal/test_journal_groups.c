/* Records of groups in the journal: what belongs together is there together, whenever the power goes. */
#include "lab.h"

#include "core/record.h"

#include <stdio.h>

typedef struct loaded {
    uint32_t groups, leases, joins, parks;
    sl_effect newest_lease;
} loaded;

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    (void)group;
    (void)definition;
    ((loaded *)ctx)->groups++;
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
    const sl_batch batch = { ops, op_count, SL_DURABLE_SYNC };

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
                              { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &park } } };
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
            ops[i] = (sl_op){ .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &leases[i] } };
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
    const sl_op first = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &join } };
    const sl_op second = { .kind = SL_OP_GROUP_RECORD, .group_record = { 8, &lease } };
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

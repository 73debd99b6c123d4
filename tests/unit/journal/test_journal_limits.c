/* The embedded store and clients that want too much of it; and scavenges that do not end well. */
#include "lab.h"

#include "store/filter.h"

#include <stdio.h>

/* One call looks at a bounded number of bytes, whatever the filter wants. */
TEST(a_filter_that_matches_nothing_keeps_no_events_in_memory)
{
    lab w = { .disk = sl_faulty_new(), .options = { .segment_bytes = 32 * 1024 * 1024 }, .next_id = 1 };
    const sl_str prefix = SL_STR("nothing");
    const sl_filter_setup wanted = { .on = SL_FILTER_ON_STREAM, .prefixes = &prefix, .prefix_count = 1 };
    sl_filter *filter = NULL;
    uint32_t again;
    sl_err ended;

    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_OK(sl_filter_new(&wanted, NULL, &filter));
    for (int i = 0; i < 20; i++)
        EXPECT_OK(lab_append(&w, "large", 1024 * 1024));
    for (int backwards = 0; backwards < 2; backwards++) {
        const sl_read how = { .from = backwards ? UINT64_MAX : 0, .backwards = backwards, .filter = filter };

        EXPECT_EQ(lab_count(&w, &how, &ended, &again), 0);
        EXPECT_ERR(ended, SL_ERR_EMPTY);
        EXPECT(again >= 10); /* not all of them in one call */
    }
    sl_filter_free(filter);
    lab_close(&w);
}

/* A batch that repeats an old large event a thousand times reads it once; one that makes the store read many is not
 * believed to be a repetition. */
TEST(what_a_batch_makes_the_store_read_is_bounded)
{
    enum {
        LARGE = 20
    };
    static sl_event_in events[LARGE];
    static sl_op ops[2 * LARGE];
    lab w = { .disk = sl_faulty_new(), .options = { .segment_bytes = 32 * 1024 * 1024 }, .next_id = 1 };
    const sl_event_in other = { .id = sl_uuid_from_halves(6, 6), .type = SL_STR("t") };
    uint64_t calls;

    lab_open_again(&w);
    EXPECT_OK(w.err);
    for (int i = 0; i < LARGE; i++) {
        EXPECT_OK(lab_append(&w, "large", 8 * 1024 * 1024 - 1000));
        events[i] = (sl_event_in){ .id = sl_uuid_from_halves(5, i + 1), .type = SL_STR("t") };
    }
    EXPECT_OK(lab_append(&w, "large", 10));
    lab_reopen(&w);                     /* ids are remembered of the last segments only */
    for (int i = 0; i < 2 * LARGE; i++) /* each asks for revision 3 */
        ops[i] = (sl_op){ .kind = SL_OP_APPEND,
                          .append = { SL_STR("large"), { SL_EXPECT_EXACT, 2 }, &events[3], 1 } };
    calls = sl_faulty_calls(w.disk);
    {
        const sl_batch batch = { .ops = ops, .op_count = 2 * LARGE, .durability = SL_DURABLE_SYNC };
        answer a = { 0 };

        EXPECT_OK(sl_store_submit(w.store, &batch, lab_note_answer, &a));
        EXPECT(sl_faulty_calls(w.disk) - calls < 12);
        sl_store_turn(w.store);
        while (!a.is_there)
            lab_wait_once(&w);
        EXPECT_OK(a.err);
    }
    for (int i = 0; i < LARGE; i++) /* each asks for another one */
        ops[i] = (sl_op){ .kind = SL_OP_APPEND,
                          .append = { SL_STR("large"),
                                      { i == 0 ? SL_EXPECT_NO_STREAM : SL_EXPECT_EXACT, (uint64_t)i - 1 },
                                      &events[i],
                                      1 } };
    {
        const sl_batch batch = { .ops = ops, .op_count = LARGE, .durability = SL_DURABLE_SYNC };
        answer a = { 0 };

        calls = sl_faulty_calls(w.disk);
        EXPECT_OK(sl_store_submit(w.store, &batch, lab_note_answer, &a));
        EXPECT(sl_faulty_calls(w.disk) - calls < 4 * 8); /* about eight of the twenty */
        sl_store_turn(w.store);
        while (!a.is_there)
            lab_wait_once(&w);
        EXPECT_ERR(a.err, SL_ERR_WRONG_REVISION); /* a repetition, but not a proven one */
    }
    ops[0] =
        (sl_op){ .kind = SL_OP_APPEND, .append = { SL_STR("large"), { SL_EXPECT_EXACT, LARGE }, &other, 1 } };
    EXPECT_OK(lab_commit(&w, &ops[0])); /* and nothing is broken */
    lab_close(&w);
}

/* A client's retry, when so much else was written that its ids are forgotten. */
TEST(a_repeated_append_of_many_events_is_recognised_long_after)
{
    enum {
        EVENTS = 17 * 1024, /* one index block for each would be more than a batch may read */
    };
    static sl_event_in events[EVENTS];
    lab w = { .disk = sl_faulty_new(), .options = { .segment_bytes = 32 * 1024 * 1024 }, .next_id = 1 };
    const sl_op many = { .kind = SL_OP_APPEND,
                         .append = { SL_STR("many"), { .kind = SL_EXPECT_NO_STREAM }, events, EVENTS } };
    const sl_op one = { .kind = SL_OP_APPEND,
                        .append = { SL_STR("many"), { SL_EXPECT_EXACT, EVENTS - 1 }, events, 1 } };

    for (int i = 0; i < EVENTS; i++)
        events[i] = (sl_event_in){ .id = sl_uuid_from_halves(7, i + 1), .type = SL_STR("t") };
    lab_open_again(&w);
    EXPECT_OK(w.err);
    EXPECT_OK(lab_commit(&w, &many));
    for (int i = 0; i < 16; i++) /* four segments */
        EXPECT_OK(lab_append(&w, "large", 8 * 1024 * 1024 - 1000));
    EXPECT_OK(lab_commit(&w, &one)); /* the stream goes on in a newer segment */
    for (int i = 0; i < 16; i++)
        EXPECT_OK(lab_append(&w, "large", 8 * 1024 * 1024 - 1000));
    lab_reopen(&w); /* ids are remembered of the last segments only */
    EXPECT_OK(lab_commit(&w, &many));
    events[EVENTS - 1].id = sl_uuid_from_halves(8, 8);
    EXPECT_ERR(lab_commit(&w, &many), SL_ERR_WRONG_REVISION);
    lab_close(&w);
}

/* Reviving one stream in a large batch needs a little more room, not a segment. */
TEST(a_batch_that_revives_a_stream_does_not_throw_a_segment_away)
{
    enum {
        MANY = 1000
    };
    static sl_event_in events[MANY];
    static sl_op ops[MANY];
    static char names[MANY][16];
    lab w = { .disk = sl_faulty_new(), .options = { 0 }, .next_id = 1 };
    const sl_op delete = { .kind = SL_OP_DELETE,
                           .remove = { .stream = SL_STR("n7"), .id = sl_uuid_from_halves(8, 8) } };

    lab_open_again(&w);
    EXPECT_OK(w.err);
    for (int round = 0; round < 5; round++) {
        const sl_batch batch = { .ops = ops, .op_count = MANY, .durability = SL_DURABLE_SYNC };
        answer a = { 0 };

        for (int i = 0; i < MANY; i++) {
            snprintf(names[i], sizeof names[i], "n%d", i % 1000);
            events[i] =
                (sl_event_in){ .id = sl_uuid_from_halves(9, round * MANY + i + 1), .type = SL_STR("t") };
            ops[i] = (sl_op){ .kind = SL_OP_APPEND,
                              .append = { sl_str_from(names[i]), { SL_EXPECT_ANY, 0 }, &events[i], 1 } };
        }
        EXPECT_OK(sl_store_submit(w.store, &batch, lab_note_answer, &a));
        sl_store_turn(w.store);
        while (!a.is_there)
            lab_wait_once(&w);
        EXPECT_OK(a.err);
        EXPECT_OK(lab_commit(&w, &delete));
    }
    EXPECT(lab_files_of(&w).segments <= 2); /* one, and one made ahead */
    lab_close(&w);
}

/* Hides what is below revision 5 of a stream and scavenges, until that is over or the disk is dead. */
static void hide_and_scavenge(lab *w, const char *metadata_stream, void (*spoil)(lab *w, uint64_t calls),
                              uint64_t calls)
{
    const sl_event_in metadata = { .id = sl_uuid_from_halves(7, (int64_t)w->next_id++),
                                   .type = SL_STR("$metadata"),
                                   .data = SL_STR("{\"$tb\": 5}"),
                                   .is_json = true };
    const sl_op hide = { .kind = SL_OP_APPEND,
                         .append = { sl_str_from(metadata_stream), { SL_EXPECT_ANY, 0 }, &metadata, 1 } };
    const sl_scavenge how = { 0 };
    static scavenged s; /* closing a dead store still tells of it */

    s = (scavenged){ 0 };
    EXPECT_OK(lab_commit(w, &hide));
    while (sl_store_scavenge(w->store, &how, lab_note_scavenged, &s) == SL_ERR_EXISTS)
        lab_turn_once(w);
    spoil(w, calls);
    while (!s.is_there && !sl_faulty_is_dead(w->disk))
        lab_turn_once(w);
    sl_faulty_fail_after(w->disk, UINT64_MAX, SL_OK);
}

static void fail_a_call(lab *w, uint64_t calls)
{
    sl_faulty_fail_after(w->disk, calls, SL_ERR_IO);
}

static void cut_at_a_call(lab *w, uint64_t calls)
{
    sl_faulty_cut_after(w->disk, calls, 1);
}

/* An index of another rewriting of the same segment must never be believed: one scavenge fails after it has made its index
 * (its calls 17 to 19), the next one ends before (calls 10 to 16). */
TEST(a_scavenge_that_fails_late_and_a_crash_leave_no_wrong_index)
{
    for (uint64_t failing = 14; failing < 23; failing++) {
        for (uint64_t cutting = 7; cutting < 21; cutting += 2) {
            lab w = lab_open(0);
            uint32_t again;
            sl_err ended;

            lab_append_many(&w, 130); /* one segment and a little */
            hide_and_scavenge(&w, "$$s1", fail_a_call, failing);
            if (sl_store_problem(w.store)[0] == '\0')
                hide_and_scavenge(&w, "$$s2", cut_at_a_call, cutting);
            sl_faulty_power_cut(w.disk, cutting);
            sl_store_close(w.store);
            sl_faulty_settle(w.disk);
            sl_faulty_cut_after(w.disk, UINT64_MAX, 0);
            lab_open_again(&w);
            EXPECT_OK(w.err);
            EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("s3") }, &ended, &again), 13);
            EXPECT_ERR(ended, SL_ERR_EMPTY);
            EXPECT_EQ(lab_count(&w, &(sl_read){ .stream = SL_STR("s9") }, &ended, &again), 13);
            lab_close(&w);
        }
    }
}

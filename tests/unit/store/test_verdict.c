/* The rules of expected revisions beyond what the contract suite asks: borders of the numbers, and errors on the way. The
 * table of states and expectations is in tests/contract/test_append.c. */
#include "../base/support.h"

#include "store/verdict.h"

typedef struct world {
    sl_err at_err;
    uint32_t recent_calls, at_calls;
} world;

static sl_uuid id(uint64_t number)
{
    return sl_uuid_from_halves(1, (int64_t)number);
}

/* Event n stands at revision n; the memory of recent ids knows the even ones. */
static bool recent(void *ctx, sl_uuid wanted, sl_seen *ret_seen)
{
    world *const w = ctx;
    int64_t most, number;

    w->recent_calls++;
    sl_uuid_to_halves(wanted, &most, &number);
    if (number % 2 != 0 || number > 4)
        return false;
    *ret_seen = (sl_seen){ wanted, (uint64_t)number, (uint64_t)number + 100 };
    return true;
}

static sl_err at(void *ctx, uint64_t revision, sl_seen *ret_seen)
{
    world *const w = ctx;

    w->at_calls++;
    if (w->at_err != SL_OK)
        return w->at_err;
    *ret_seen = (sl_seen){ id(revision), revision, revision + 100 };
    return SL_OK;
}

static sl_verdict judge(world *w, const sl_known *known, sl_expected expected, uint64_t first_id,
                        uint32_t count)
{
    const sl_lookup lookup = { w, recent, at };
    sl_event_in events[8] = { { .is_json = false } };

    for (uint32_t i = 0; i < count; i++)
        events[i].id = id(first_id + i);
    return sl_verdict_append(known, expected, events, count, &lookup);
}

#define EXACTLY(n) ((sl_expected){ .kind = SL_EXPECT_EXACT, .revision = (n) })

TEST(an_exact_repeat_asks_the_memory_first_and_then_the_stream)
{
    const sl_known known = { .last = 4 };
    world w = { 0 };
    const sl_verdict verdict = judge(&w, &known, EXACTLY(0), 1, 4); /* 1, 2, 3, 4 stand behind revision 0 */

    EXPECT_EQ(verdict.kind, SL_VERDICT_REPEATED);
    EXPECT_EQ(verdict.revision, 4);
    EXPECT_EQ(verdict.position, 104);
    EXPECT_EQ(w.recent_calls, 4);
    EXPECT_EQ(w.at_calls, 2);
}

TEST(nothing_is_asked_beyond_the_end_of_the_stream)
{
    const sl_known known = { .last = 4 };
    world w = { 0 };
    const sl_verdict verdict = judge(&w, &known, EXACTLY(3), 4, 2); /* 4 is there, 5 is not */

    EXPECT_EQ(verdict.kind, SL_VERDICT_REFUSED);
    EXPECT_ERR(verdict.err, SL_ERR_WRONG_REVISION);
    EXPECT_EQ(verdict.revision, 4);
    EXPECT_EQ(w.at_calls, 0);
}

TEST(what_was_scavenged_counts_as_another_event)
{
    const sl_known known = { .last = 4 };
    world w = { .at_err = SL_ERR_NOT_FOUND };

    EXPECT_ERR(judge(&w, &known, EXACTLY(0), 1, 1).err, SL_ERR_WRONG_REVISION);
}

TEST(an_error_while_reading_is_no_verdict_about_the_revision)
{
    const sl_known known = { .last = 4 };
    world w = { .at_err = SL_ERR_CORRUPT };
    const sl_verdict verdict = judge(&w, &known, EXACTLY(0), 1, 1);

    EXPECT_EQ(verdict.kind, SL_VERDICT_REFUSED);
    EXPECT_ERR(verdict.err, SL_ERR_CORRUPT);
}

TEST(at_the_right_revision_nothing_is_asked)
{
    const sl_known known = { .last = 4 };
    world w = { 0 };
    const sl_verdict verdict = judge(&w, &known, EXACTLY(4), 1, 3);

    EXPECT_EQ(verdict.kind, SL_VERDICT_WRITE);
    EXPECT_EQ(verdict.revision, 5);
    EXPECT_EQ(w.recent_calls + w.at_calls, 0);
}

TEST(the_largest_revisions_do_not_wrap)
{
    const sl_known near_the_end = { .last = SL_REVISION_MAX - 2 }, empty = { .last = SL_REVISION_NONE };
    world w = { 0 };

    EXPECT_EQ(judge(&w, &near_the_end, EXACTLY(SL_REVISION_MAX - 2), 9, 1).revision, SL_REVISION_MAX - 1);
    EXPECT_ERR(judge(&w, &near_the_end, EXACTLY(SL_REVISION_MAX), 9, 1).err, SL_ERR_WRONG_REVISION);
    EXPECT_ERR(judge(&w, &empty, EXACTLY(SL_REVISION_MAX), 9, 1).err, SL_ERR_WRONG_REVISION);
}

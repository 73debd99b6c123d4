/* tests/unit/worker/test_source_contract.c — the rules at the top of worker/source.h, for each row. */
#include "source_contract.h"

#include "base/cleanup.h"

#define EACH_ROW(row)                                                                                        \
    for (size_t row_index_ = 0; row_index_ < source_contract_row_count; row_index_++)                        \
        for (const source_contract_row *row = source_contract_rows[row_index_]; row != NULL; row = NULL)

/* --- the rules --- */

/* The most that a source can say of a word that it has got. */
static sl_settled_how best_word(const source_contract *c)
{
    return c->source->confirms ? SL_SETTLED_DONE : SL_SETTLED_UNSURE;
}

#define EACH_ROW_WITH_SEVERAL(row)                                                                           \
    EACH_ROW(row)                                                                                            \
    if (!row->is_one_at_a_time)

TEST(each_word_about_a_job_is_answered_once_by_every_source)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *const c = source_contract_with(row, 5);

        EXPECT(c->ups == 1);
        source_contract_begin_and_settle(c, 0, SL_SETTLE_ACK);
        source_contract_begin_and_settle(c, 1, SL_SETTLE_PARK);
        source_contract_begin_and_settle(c, 2, SL_SETTLE_RETRY);
        source_contract_settle(c, 3, SL_SETTLE_RELEASE);
        source_contract_begin_and_settle(c, 4, SL_SETTLE_RELEASE);
        CONTRACT_UNTIL(c, c->settled_count == 5);
        for (uint32_t i = 0; i < 5; i++)
            EXPECT_EQ(c->jobs[i].how, best_word(c)); /* (4) */
        EXPECT_EQ(c->losts, 0);
        source_contract_end(c);
        source_contract_free(c);
    }
}

/* Who knows no release takes it for a retry. */
TEST(a_retry_comes_again_charged_and_a_release_uncharged_with_newer_tokens_B5)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *const c = source_contract_with(row, 2);

        source_contract_begin_and_settle(c, 0, SL_SETTLE_RETRY);
        source_contract_settle(c, 1, SL_SETTLE_RELEASE);
        CONTRACT_UNTIL(c, source_contract_again(c, 0) != NULL && source_contract_again(c, 1) != NULL);
        EXPECT_EQ(source_contract_again(c, 0)->attempt, c->jobs[0].attempt + 1);
        EXPECT_EQ(source_contract_again(c, 1)->attempt, c->jobs[1].attempt + (c->source->confirms ? 0 : 1));
        if (c->source->has_tokens) {
            EXPECT(source_contract_again(c, 0)->token > c->jobs[0].token);
            EXPECT(source_contract_again(c, 1)->token > c->jobs[1].token);
        }
        source_contract_end(c);
        source_contract_free(c);
    }
}

TEST(nothing_is_offered_behind_the_fence_and_words_still_count_S1_4_S1_5_B1)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *const c = source_contract_with(row, 3);

        EXPECT(source_contract_begin(c, 0));
        EXPECT(source_contract_begin(c, 1));
        source_contract_close_gate(c, false);
        CONTRACT_UNTIL(c, c->fences == 1);
        row->put(c, 3);
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        source_contract_settle(c, 1, SL_SETTLE_RETRY);
        source_contract_settle_rest(c, SL_SETTLE_RELEASE);
        CONTRACT_UNTIL(c, c->settled_count == c->job_count);
        EXPECT_EQ(c->jobs[0].how, best_word(c));
        EXPECT_EQ(c->jobs[1].how, best_word(c));
        source_contract_be_quiet(c);
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_free(c);
    }
}

TEST(what_was_not_begun_is_handed_back_with_the_gate_and_cannot_be_begun_S2_3)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *const c = source_contract_with(row, 3);

        EXPECT(source_contract_begin(c, 0));
        source_contract_close_gate(c, true);
        EXPECT(!source_contract_begin(c, 1)); /* (3) */
        CONTRACT_UNTIL(c, c->fences == 1);
        source_contract_settle(c, 1, SL_SETTLE_RELEASE);
        source_contract_settle(c, 2, SL_SETTLE_RELEASE);
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        CONTRACT_UNTIL(c, c->settled_count == c->job_count);
        for (uint32_t i = 0; i < 3; i++)
            EXPECT_EQ(c->jobs[i].how, best_word(c));
        EXPECT_EQ(c->losts, 0);
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_free(c);
    }
}

TEST(a_source_that_is_down_lets_nothing_begin_and_comes_back_by_itself)
{
    EACH_ROW(row)
    {
        source_contract *c;

        if (row->set_down == NULL)
            continue;
        c = source_contract_with(row, 2);
        EXPECT(source_contract_begin(c, 0));
        source_contract_be_quiet(c); /* the mark has arrived */
        row->set_down(c, true);
        CONTRACT_UNTIL(c, c->downs > 0);
        EXPECT(c->jobs[1].is_lost || !source_contract_begin(c, 1)); /* (3) */
        source_contract_settle(c, 0, SL_SETTLE_ACK); /* counts where it is kept for us while it is away */
        row->set_down(c, false);
        CONTRACT_UNTIL(c, c->ups == 2);
        CONTRACT_UNTIL(c, c->jobs[0].job == NULL);
        EXPECT_EQ(c->jobs[0].how == SL_SETTLED_LOST, !c->source->confirms);
        if (!c->source->confirms) /* what went to others comes again: here there are no others */
            CONTRACT_UNTIL(c, source_contract_again(c, 0) != NULL && source_contract_again(c, 1) != NULL);
        EXPECT_EQ(c->failures, 0); /* (5) */
        source_contract_end(c);
        source_contract_free(c);
    }
}

TEST(the_fence_comes_also_when_a_source_goes_down_behind_the_gate)
{
    EACH_ROW(row)
    {
        source_contract *c;

        if (row->set_down == NULL)
            continue;
        c = source_contract_with(row, 2);
        EXPECT(source_contract_begin(c, 0));
        source_contract_be_quiet(c);
        source_contract_close_gate(c, false);
        row->set_down(c, true);
        CONTRACT_UNTIL(c, c->fences == 1); /* (6) */
        row->set_down(c, false);
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        CONTRACT_UNTIL(c, c->jobs[0].job == NULL);
        source_contract_free(c);
    }
}

TEST(fence_and_close_come_also_when_a_source_is_down_S2_16)
{
    EACH_ROW(row)
    {
        source_contract *c;

        if (row->set_down == NULL)
            continue;
        c = source_contract_with(row, 2);
        EXPECT(source_contract_begin(c, 0));
        source_contract_be_quiet(c);
        row->set_down(c, true);
        CONTRACT_UNTIL(c, c->downs > 0);
        source_contract_close_gate(c, true);
        CONTRACT_UNTIL(c, c->fences == 1); /* (6) */
        source_contract_settle_rest(c, SL_SETTLE_RELEASE);
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_be_quiet(c);
        source_contract_free(c);
    }
}

TEST(a_lease_that_went_to_somebody_else_is_told_once_and_the_answer_is_lost_B5)
{
    EACH_ROW(row)
    {
        source_contract *c;

        if (row->take_away == NULL)
            continue;
        c = source_contract_with(row, 1);
        EXPECT(source_contract_begin(c, 0));
        source_contract_be_quiet(c);
        row->take_away(c, c->jobs[0].job);
        CONTRACT_UNTIL(c, c->losts == 1);
        EXPECT(c->jobs[0].is_lost);
        EXPECT(!source_contract_begin(c, 0));
        if (c->source->class->extend != NULL)
            c->source->class->extend(c->source, c->jobs[0].job);
        source_contract_be_quiet(c);
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        CONTRACT_UNTIL(c, c->jobs[0].job == NULL);
        EXPECT_EQ(c->jobs[0].how, SL_SETTLED_LOST);
        source_contract_end(c);
        source_contract_free(c);
    }
}

TEST(extending_what_has_no_lease_or_a_long_one_changes_nothing)
{
    EACH_ROW(row)
    {
        source_contract *const c = source_contract_with(row, 1);
        const bool has_lease = c->jobs[0].job->lease_until_ns != UINT64_MAX;

        EXPECT(source_contract_begin(c, 0));
        if (c->source->class->extend != NULL)
            c->source->class->extend(c->source, c->jobs[0].job);
        EXPECT_EQ(c->jobs[0].job->lease_until_ns != UINT64_MAX, has_lease);
        source_contract_be_quiet(c);
        EXPECT_EQ(c->losts, 0);
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        CONTRACT_UNTIL(c, c->settled_count == 1);
        EXPECT_EQ(c->jobs[0].how, best_word(c));
        source_contract_end(c);
        source_contract_free(c);
    }
}

#define SHORT_LEASE_NS (UINT64_C(200) * 1000 * 1000)

static bool was_given_again(source_contract *c, uint32_t index)
{
    return c->jobs[index].is_lost || source_contract_again(c, index) != NULL ||
           (c->row->others_have != NULL && c->row->others_have(c, c->jobs[index].id));
}

/* In time, as a worker does it. */
static void extend(source_contract *c, uint32_t index)
{
    const contract_job *const noted = &c->jobs[index];

    if (!noted->is_lost && noted->job->lease_until_ns < sl_loop_now_ns(c->loop) + SHORT_LEASE_NS / 3 * 2)
        c->source->class->extend(c->source, noted->job);
}

static bool are_fresh(source_contract *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (c->jobs[i].is_lost ||
            c->jobs[i].job->lease_until_ns < sl_loop_now_ns(c->loop) + SHORT_LEASE_NS / 3)
            return false;
    return true;
}

/* Until the last one, which nobody extends, has come to somebody. False: the machine stood still for so long that others were not
 * extended in time. They go around as well then, and the last one may be put aside before anybody hears of it. */
static bool extend_all_but_the_last(source_contract *c, uint32_t count)
{
    uint64_t turn_ns = sl_loop_now_ns(c->loop);
    bool is_in_time = are_fresh(c, count);

    while (is_in_time && !was_given_again(c, count - 1)) {
        for (uint32_t i = 0; i < count - 1; i++)
            extend(c, i);
        if (c->guard_rang)
            fail_msg("%s: no lease has ended", c->row->name);
        source_contract_turn(c);
        is_in_time = sl_loop_now_ns(c->loop) - turn_ns <= SHORT_LEASE_NS / 3;
        turn_ns = sl_loop_now_ns(c->loop);
    }
    return is_in_time;
}

static void expect_held(source_contract *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(!was_given_again(c, i));
        source_contract_settle(c, i, SL_SETTLE_ACK);
    }
    for (uint32_t i = 0; i < count; i++) {
        CONTRACT_UNTIL(c, c->jobs[i].job == NULL);
        EXPECT_EQ(c->jobs[i].how, SL_SETTLED_DONE);
    }
}

/* Only one that confirms nothing may have none: then there is no end that could be put off. */
static bool has_leases(const source_contract_row *row)
{
    source_contract *const c = source_contract_with(row, 1);
    const bool has = c->jobs[0].job->lease_until_ns != UINT64_MAX;

    EXPECT(has || !c->source->confirms);
    source_contract_free(c);
    return has;
}

/* Of two, one could come back to the source without anybody hearing of it; of three that end, somebody else gets an extended one. False: the
 * machine stood still for so long that leases were over before they could be extended. */
static bool are_held_while_another_ends(const source_contract_row *row)
{
    source_contract *const c = source_contract_new_with_leases(row, SHORT_LEASE_NS);
    bool is_in_time;

    row->put(c, 3);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->job_count == 3);
    EXPECT(c->source->class->extend != NULL);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT(source_contract_begin(c, i));
    if (row->let_another_come != NULL)
        row->let_another_come(c);
    is_in_time = extend_all_but_the_last(c, 3);
    if (is_in_time) {
        expect_held(c, 2);
        source_contract_end(c);
    }
    source_contract_free(c);
    return is_in_time;
}

TEST(extended_leases_are_still_held_when_another_has_ended_S4_24_B8)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        uint32_t tries = 1;

        while (has_leases(row) && !are_held_while_another_ends(row))
            EXPECT(tries++ < 50);
    }
}

/* What was finished and could not be told may stay until free(), for the ack file. */
TEST(a_source_fails_once_and_then_only_says_that_the_rest_is_lost)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *c;

        if (row->break_for_good == NULL)
            continue;
        c = source_contract_with(row, 3);
        EXPECT(source_contract_begin(c, 0));
        EXPECT(source_contract_begin(c, 1));
        row->break_for_good(c);
        CONTRACT_UNTIL(c, c->failures == 1);
        EXPECT(!source_contract_begin(c, 2));
        source_contract_settle(c, 0, SL_SETTLE_ACK);
        source_contract_settle_rest(c, SL_SETTLE_RELEASE);
        CONTRACT_UNTIL(c, c->settled_count >= c->job_count - 1);
        for (uint32_t i = 1; i < c->job_count; i++)
            EXPECT(c->jobs[i].job == NULL);
        source_contract_close_gate(c, true);
        CONTRACT_UNTIL(c, c->fences == 1); /* (6) */
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_be_quiet(c);
        EXPECT_EQ(c->failures, 1);
        source_contract_free(c);
    }
}

TEST(a_source_that_was_hardly_started_is_fenced_and_closed_S3_25)
{
    EACH_ROW(row)
    {
        source_contract *c = source_contract_new(row);

        source_contract_close_gate(c, true); /* not even started */
        CONTRACT_UNTIL(c, c->fences == 1);
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_free(c);
        c = source_contract_new(row);
        row->put(c, 3);
        source_contract_start(c);
        source_contract_end(c);
        source_contract_free(c);
    }
}

/* (7) */
TEST(a_worker_may_do_everything_from_inside_of_callbacks)
{
    EACH_ROW(row)
    {
        source_contract *const c = source_contract_new(row);

        c->acks_in_offer = c->stops_in_settled = c->closes_in_fenced = true;
        row->put(c, 3);
        source_contract_start(c);
        CONTRACT_UNTIL(c, c->fences == 1);
        CONTRACT_UNTIL(c, c->closes == 1);
        EXPECT(c->settled_count >= 1);
        source_contract_be_quiet(c);
        source_contract_free(c);
    }
}

TEST(a_source_can_be_freed_in_the_middle_of_everything)
{
    EACH_ROW_WITH_SEVERAL(row)
    {
        source_contract *c = source_contract_with(row, 4);

        EXPECT(source_contract_begin(c, 0));
        source_contract_begin_and_settle(c, 1, SL_SETTLE_ACK);
        source_contract_settle(c, 2, SL_SETTLE_RELEASE);
        source_contract_close_gate(c, true);
        source_contract_free(c);
        c = source_contract_new(row);
        source_contract_free(c);
        c = source_contract_new(row);
        source_contract_start(c);
        source_contract_free(c);
    }
}

TEST(an_operators_stop_is_passed_on_S1_19)
{
    EACH_ROW(row)
    {
        source_contract *c;

        if (row->stop == NULL)
            continue;
        c = source_contract_with(row, 1);
        row->stop(c);
        CONTRACT_UNTIL(c, c->stops == 1);
        EXPECT_EQ(c->stopped_by, SL_DRAIN_REASON_OPERATOR);
        source_contract_end(c);
        EXPECT_EQ(c->stops, 1);
        source_contract_free(c);
    }
}

static sl_job *recalled_job(const contract_job *noted)
{
    const sl_job_message message = { .id = noted->id, .token = noted->token, .revision = noted->revision };
    sl_job *const job = sl_job_new(&message);

    EXPECT(job != NULL);
    job->state = SL_JOB_SETTLING;
    return job;
}

/* The process is killed when 0 is finished, and has not said so. */
TEST(what_an_earlier_process_finished_is_said_by_the_next_one_and_not_offered_again_B3)
{
    EACH_ROW(row)
    {
        const sl_settle ack = { .kind = SL_SETTLE_ACK };
        source_contract *c;
        contract_job left;

        if (!row->outlives_process)
            continue;
        c = source_contract_with(row, 2);
        EXPECT(c->source->class->recall != NULL);
        EXPECT(source_contract_begin(c, 0));
        source_contract_be_quiet(c);
        left = c->jobs[0];
        source_contract_free_source(c);
        source_contract_open_source(c);
        source_contract_note(c, recalled_job(&left))->is_said = true;
        c->source->class->recall(c->source, c->jobs[0].job, &ack);
        source_contract_start(c);
        CONTRACT_UNTIL(c, c->jobs[0].job == NULL);
        EXPECT(c->jobs[0].how != SL_SETTLED_LOST);
        CONTRACT_UNTIL(c, c->job_count == 2); /* the other one */
        source_contract_be_quiet(c);
        EXPECT(source_contract_again(c, 0) == NULL);
        source_contract_end(c);
        source_contract_free(c);
    }
}

TEST(one_job_after_the_other_is_retried_released_and_acked)
{
    EACH_ROW(row)
    {
        source_contract *const c = source_contract_with(row, 1);

        source_contract_begin_and_settle(c, 0, SL_SETTLE_RETRY);
        CONTRACT_UNTIL(c, c->job_count == 2);
        source_contract_begin_and_settle(c, 1, SL_SETTLE_RELEASE);
        CONTRACT_UNTIL(c, c->job_count == 3);
        EXPECT(sl_uuid_equal(c->jobs[0].id, c->jobs[1].id));
        EXPECT(sl_uuid_equal(c->jobs[1].id, c->jobs[2].id));
        EXPECT(source_contract_begin(c, 2));
        source_contract_close_gate(c, false);
        CONTRACT_UNTIL(c, c->fences == 1);
        source_contract_settle(c, 2, SL_SETTLE_ACK);
        CONTRACT_UNTIL(c, c->settled_count == 3);
        for (uint32_t i = 0; i < 3; i++)
            EXPECT_EQ(c->jobs[i].how, best_word(c));
        source_contract_close_source(c);
        CONTRACT_UNTIL(c, c->closes == 1);
        source_contract_be_quiet(c);
        EXPECT_EQ(c->job_count, 3);
        source_contract_free(c);
    }
}

TEST(the_contract_of_sources_has_a_row_for_each_kind_under_its_name)
{
    EXPECT_EQ(source_contract_row_count, 4); /* memory, sluice, kurrentdb, schedule */
    EACH_ROW(row)
    {
        source_contract *const c = source_contract_new(row);

        EXPECT_STR(c->source->class->name, row->name);
        source_contract_free(c);
    }
}

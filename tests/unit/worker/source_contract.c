/* tests/unit/worker/source_contract.c — the worker that the suite plays: see source_contract.h. */
#include "source_contract.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_NS (UINT64_C(20) * 1000 * 1000 * 1000)

enum {
    QUIET_TURNS = 200 /* what has not happened after so many turns will not happen */
};

const source_contract_row *source_contract_rows[SOURCE_CONTRACT_ROWS_MAX];
size_t source_contract_row_count;

void source_contract_register(const source_contract_row *row)
{
    assert_true(source_contract_row_count < SOURCE_CONTRACT_ROWS_MAX);
    source_contract_rows[source_contract_row_count++] = row;
}

/* --- the worker: what it hears --- */

static contract_job *known(source_contract *c, const sl_job *job)
{
    for (uint32_t i = 0; i < c->job_count; i++)
        if (c->jobs[i].job == job)
            return &c->jobs[i];
    fail_msg("%s: a word about a job that is not out", c->row->name);
    return NULL;
}

contract_job *source_contract_note(source_contract *c, sl_job *job)
{
    contract_job *const noted = &c->jobs[c->job_count++];

    EXPECT(c->job_count <= SOURCE_CONTRACT_JOBS_MAX);
    *noted = (contract_job){ .job = job,
                             .id = job->message.id,
                             .token = job->message.token,
                             .revision = job->message.revision,
                             .attempt = job->message.attempt };
    return noted;
}

static void say(source_contract *c, contract_job *noted, sl_settle_kind kind)
{
    const sl_settle settle = { .kind = kind, .reason = SL_STR_INIT("because") };

    EXPECT(!noted->is_said);
    noted->is_said = true;
    c->source->class->settle(c->source, noted->job, &settle);
}

static void on_offer(void *ctx, sl_job *job)
{
    source_contract *const c = ctx;
    contract_job *noted;

    EXPECT(c->is_started); /* (2) */
    EXPECT_EQ(c->fences, 0);
    EXPECT_EQ(c->failures, 0); /* (5) */
    EXPECT(job->message.attempt >= 1);
    noted = source_contract_note(c, job);
    if (c->acks_in_offer) {
        EXPECT(c->source->class->begin(c->source, job));
        say(c, noted, SL_SETTLE_ACK);
    }
}

static void on_lost(void *ctx, sl_job *job)
{
    source_contract *const c = ctx;
    contract_job *const noted = known(c, job);

    EXPECT(!noted->is_lost); /* (1) once */
    EXPECT(!noted->is_said);
    noted->is_lost = true;
    c->losts++;
}

static void on_settled(void *ctx, sl_job *job, sl_settled_how how)
{
    source_contract *const c = ctx;
    contract_job *const noted = known(c, job);

    EXPECT(noted->is_said); /* (1) an answer, and to a question */
    EXPECT(!noted->is_lost || how == SL_SETTLED_LOST);
    EXPECT(c->failures == 0 || how == SL_SETTLED_LOST); /* (5) */
    noted->job = NULL;
    noted->how = how;
    c->settled_count++;
    sl_job_free(job);
    if (c->stops_in_settled && !c->gate_is_closed) {
        c->gate_is_closed = true;
        c->source->class->close_gate(c->source, true);
    }
}

static void on_fenced(void *ctx)
{
    source_contract *const c = ctx;

    EXPECT(c->gate_is_closed);
    EXPECT_EQ(c->fences++, 0); /* (6) */
    if (c->closes_in_fenced) {
        c->is_closing = true;
        c->source->class->close(c->source);
    }
}

static void on_stop_asked(void *ctx, sl_drain_reason by, sl_str why, uint64_t deadline_ms)
{
    source_contract *const c = ctx;

    (void)why;
    (void)deadline_ms;
    c->stops++;
    c->stopped_by = by;
}

static void on_up(void *ctx)
{
    ((source_contract *)ctx)->ups++;
}

static void on_down(void *ctx, sl_str why)
{
    EXPECT(why.bytes > 0);
    ((source_contract *)ctx)->downs++;
}

static void on_failed(void *ctx, sl_source_failure failure, sl_str why)
{
    source_contract *const c = ctx;

    EXPECT(why.bytes > 0 || failure == SL_SOURCE_FINISHED);
    EXPECT_EQ(c->failures++, 0);
    c->failure = failure;
}

static void on_closed(void *ctx)
{
    source_contract *const c = ctx;

    EXPECT(c->is_closing);
    EXPECT_EQ(c->closes++, 0); /* (6) */
}

static const sl_source_owner worker = { .offer = on_offer,
                                        .lost = on_lost,
                                        .settled = on_settled,
                                        .fenced = on_fenced,
                                        .stop_asked = on_stop_asked,
                                        .up = on_up,
                                        .down = on_down,
                                        .failed = on_failed,
                                        .closed = on_closed };

/* --- life --- */

static void on_turn_end(void *ctx)
{
    source_contract *const c = ctx;

    if (c->source != NULL && c->source->class->turn_end != NULL)
        c->source->class->turn_end(c->source);
    if (c->row->turn != NULL)
        c->row->turn(c);
}

static void on_guard(void *ctx)
{
    ((source_contract *)ctx)->guard_rang = true;
}

void source_contract_turn(source_contract *c)
{
    sl_loop_turn(c->loop, false);
}

void source_contract_open_source(source_contract *c)
{
    c->source = c->row->open(c);
    EXPECT(c->source != NULL);
    c->source->owner = &worker;
    c->source->owner_ctx = c;
}

source_contract *source_contract_new_with_leases(const source_contract_row *row, uint64_t lease_ns)
{
    static const sl_loop_handler handler = { .on_turn_end = on_turn_end };
    source_contract *const c = calloc(1, sizeof *c);

    EXPECT(c != NULL);
    c->row = row;
    c->lease_ns = lease_ns;
    EXPECT_OK(sl_loop_new(NULL, &handler, c, &c->loop));
    sl_timer_init(&c->guard, c->loop, on_guard, c);
    sl_timer_set(&c->guard, sl_loop_now_ns(c->loop) + GUARD_NS);
    row->make_world(c);
    source_contract_open_source(c);
    return c;
}

source_contract *source_contract_new(const source_contract_row *row)
{
    return source_contract_new_with_leases(row, 0);
}

void source_contract_start(source_contract *c)
{
    c->is_started = true;
    c->source->class->start(c->source);
}

/* Started, and so many were offered. */
source_contract *source_contract_with(const source_contract_row *row, uint32_t count)
{
    source_contract *const c = source_contract_new(row);

    row->put(c, count);
    source_contract_start(c);
    CONTRACT_UNTIL(c, c->job_count == count);
    return c;
}

void source_contract_free_source(source_contract *c)
{
    sl_source *const source = c->source;

    c->source = NULL;
    source->class->free(source);
    for (uint32_t i = 0; i < c->job_count; i++)
        sl_job_free(c->jobs[i].job);
    c->job_count = 0;
}

void source_contract_free(source_contract *c)
{
    if (c->source != NULL)
        source_contract_free_source(c);
    c->row->free_world(c);
    sl_timer_stop(&c->guard);
    sl_loop_free(c->loop);
    free(c);
}

bool source_contract_begin(source_contract *c, uint32_t index)
{
    return c->source->class->begin(c->source, c->jobs[index].job);
}

void source_contract_settle(source_contract *c, uint32_t index, sl_settle_kind kind)
{
    say(c, &c->jobs[index], kind);
}

void source_contract_begin_and_settle(source_contract *c, uint32_t index, sl_settle_kind kind)
{
    EXPECT(source_contract_begin(c, index));
    source_contract_settle(c, index, kind);
}

void source_contract_close_gate(source_contract *c, bool hand_back)
{
    c->gate_is_closed = true;
    c->source->class->close_gate(c->source, hand_back);
}

void source_contract_close_source(source_contract *c)
{
    c->is_closing = true;
    c->source->class->close(c->source);
}

/* The worker says something final of each job, also of a lost one. */
void source_contract_settle_rest(source_contract *c, sl_settle_kind kind)
{
    for (uint32_t i = 0; i < c->job_count; i++)
        if (c->jobs[i].job != NULL && !c->jobs[i].is_said)
            source_contract_settle(c, i, kind);
}

void source_contract_be_quiet(source_contract *c)
{
    for (uint32_t i = 0; i < QUIET_TURNS; i++)
        source_contract_turn(c);
}

void source_contract_end(source_contract *c)
{
    source_contract_close_gate(c, true);
    source_contract_settle_rest(c, SL_SETTLE_RELEASE);
    CONTRACT_UNTIL(c, c->fences == 1);
    source_contract_settle_rest(c, SL_SETTLE_RELEASE);
    CONTRACT_UNTIL(c, c->settled_count == c->job_count);
    source_contract_close_source(c);
    CONTRACT_UNTIL(c, c->closes == 1);
    source_contract_be_quiet(c);
    EXPECT_EQ(c->fences, 1);
    EXPECT_EQ(c->closes, 1);
}

const contract_job *source_contract_again(source_contract *c, uint32_t first)
{
    for (uint32_t i = first + 1; i < c->job_count; i++)
        if (sl_uuid_equal(c->jobs[i].id, c->jobs[first].id))
            return &c->jobs[i];
    return NULL;
}

/* The handler that calls a C function, in the thread of the loop. */
#include "callback_rig.h"

#include "base/cleanup.h"

#define TURN_NS_MAX UINT64_C(5000000) /* so long a turn calls functions */

static sl_worker_result result_by_number(void *user, sl_ctx *ctx)
{
    (void)user;
    if (sl_ctx_revision(ctx) < 8)
        sl_ctx_set_reason(ctx, "because");
    sl_ctx_set_retry_after_ms(ctx, 2000);
    return (sl_worker_result)(sl_ctx_revision(ctx) % 8);
}

TEST(each_result_of_a_function_is_one_of_a_handler)
{
    const struct {
        sl_result_kind kind;
        bool is_fault;
        uint64_t retry_after_ns;
        const char *reason;
    } rows[] = { [SL_WORKER_DONE] = { SL_RESULT_DONE, false, 0, "" },
                 [SL_WORKER_RETRY] = { SL_RESULT_RETRY, true, 2000000000, "because" },
                 [SL_WORKER_FAILED] = { SL_RESULT_FAILED, true, 2000000000, "because" },
                 [SL_WORKER_PARK] = { SL_RESULT_PARK, false, 0, "because" },
                 [SL_WORKER_STOPPED] = { SL_RESULT_FAILED, true, 2000000000, "because" } };
    call_rig rig;

    call_open(&rig, result_by_number, 0);
    for (size_t i = 0; i <= SL_WORKER_STOPPED; i++) {
        call_now(&rig, i);
        EXPECT_EQ(rig.results[i].kind, rows[i].kind);
        EXPECT_EQ(rig.results[i].is_fault, rows[i].is_fault);
        EXPECT_EQ(rig.results[i].retry_after_ns, rows[i].retry_after_ns);
        EXPECT_STR(rig.reasons[i], rows[i].reason);
    }
    call_now(&rig, 8 + SL_WORKER_STOPPED); /* without a reason of its own */
    EXPECT_STR(rig.reasons[12], "the function says that it was stopped, but nobody had asked it to");
    call_now(&rig, 7);
    EXPECT_EQ(rig.results[7].kind, SL_RESULT_FAILED);
    EXPECT_EQ(rig.finished, 7);
    call_done(&rig);
}

static sl_worker_result look(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    snprintf(rig->seen, sizeof rig->seen, "%d %d %d %d %s %s %s %s %s %s %d", sl_ctx_id(ctx).bytes[1],
             (int)sl_ctx_token(ctx), (int)sl_ctx_attempt(ctx), (int)sl_ctx_created_ns(ctx),
             sl_ctx_stream(ctx).data, sl_ctx_type(ctx).data, sl_ctx_content_type(ctx).data,
             sl_ctx_data(ctx).data, sl_ctx_metadata(ctx).data, sl_ctx_group(ctx).data,
             sl_ctx_remaining_ms(ctx) == INT64_MAX);
    return SL_WORKER_DONE;
}

TEST(a_context_shows_the_whole_message)
{
    call_rig rig;

    call_open(&rig, look, 0);
    call_now(&rig, 0);
    EXPECT_STR(rig.seen, "2 77 3 5 orders placed application/json {} m billing 1");
    call_done(&rig);
}

static void *finish_both(void *arg)
{
    call_rig *const rig = arg;

    sl_ctx_set_reason(rig->later[0], "elsewhere");
    sl_ctx_finish(rig->later[0], SL_WORKER_PARK);
    sl_ctx_finish(rig->later[1], SL_WORKER_DONE);
    return NULL;
}

TEST(work_that_goes_on_is_finished_from_any_thread)
{
    call_rig rig;
    pthread_t thread;

    call_open(&rig, later, 0);
    call_now(&rig, 0);
    call_now(&rig, 1);
    EXPECT_EQ(rig.finished, 0);
    EXPECT_EQ(pthread_create(&thread, NULL, finish_both, &rig), 0);
    turn_until(&rig, &rig.finished, 2);
    pthread_join(thread, NULL);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    EXPECT_STR(rig.reasons[0], "elsewhere");
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    call_done(&rig);
}

TEST(a_drain_shortens_the_time_that_is_left_and_an_abort_ends_it_S2_20_B7)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, later, 0);
    job = call_now(&rig, 0);
    EXPECT_EQ(sl_ctx_remaining_ms(rig.later[0]), INT64_MAX);
    rig.handler->class->draining(rig.handler, sl_loop_now_ns(rig.loop) + UINT64_C(60000000000));
    EXPECT(sl_ctx_remaining_ms(rig.later[0]) <= 60000);
    EXPECT(sl_ctx_remaining_ms(rig.later[0]) > 30000);
    call_now(&rig, 1); /* also of what begins in the drain */
    EXPECT(sl_ctx_remaining_ms(rig.later[1]) <= 60000);
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 0);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 1);
    EXPECT_EQ(sl_ctx_remaining_ms(rig.later[0]), 0);
    sl_ctx_finish(rig.later[0], SL_WORKER_STOPPED);
    sl_ctx_finish(rig.later[1], SL_WORKER_DONE);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    call_done(&rig);
}

static void count_abort(void *arg)
{
    atomic_fetch_add(&((call_rig *)arg)->abort_calls, 1);
}

TEST(an_abort_function_is_called_once_and_at_once_when_it_comes_late)
{
    call_rig rig;
    sl_job *first, *second;

    call_open(&rig, later, 0);
    first = call_now(&rig, 0);
    second = call_now(&rig, 1);
    sl_ctx_on_abort(rig.later[0], count_abort, &rig);
    rig.handler->class->abort(rig.handler, first);
    rig.handler->class->abort(rig.handler, first);
    EXPECT_EQ(rig.abort_calls, 1);
    rig.handler->class->abort(rig.handler, second);
    sl_ctx_on_abort(rig.later[1], count_abort, &rig);
    EXPECT_EQ(rig.abort_calls, 2);
    sl_ctx_on_abort(rig.later[1], NULL, NULL);
    sl_ctx_finish(rig.later[0], SL_WORKER_DONE); /* the work may still have come to its end */
    sl_ctx_finish(rig.later[1], SL_WORKER_STOPPED);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_DONE);
    call_done(&rig);
}

static sl_worker_result finish_twice(void *user, sl_ctx *ctx)
{
    (void)user;
    sl_ctx_finish(ctx, SL_WORKER_PARK);
    return SL_WORKER_DONE;
}

TEST(of_two_results_the_first_counts)
{
    call_rig rig;

    call_open(&rig, finish_twice, 0);
    call_now(&rig, 0);
    turn_until(&rig, &rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    call_done(&rig);
}

TEST(killed_work_that_goes_on_elsewhere_is_disowned_and_keeps_its_message)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, later, 0);
    job = call_now(&rig, 0);
    rig.handler->class->kill(rig.handler, job); /* the job is freed by this */
    EXPECT_EQ(rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    EXPECT_STR(sl_ctx_data(rig.later[0]).data, "{}");
    EXPECT_EQ(sl_ctx_is_aborted(rig.later[0]), 1);
    call_free_handler(&rig);
    EXPECT_STR(sl_ctx_stream(rig.later[0]).data, "orders");
    sl_ctx_progress(rig.later[0]);
    sl_ctx_finish(rig.later[0], SL_WORKER_DONE); /* dropped; the last one frees everything */
    EXPECT_EQ(rig.finished, 1);
    call_done(&rig);
}

/* What the source says leaves at the end of the turn. */
TEST(nothing_is_called_in_the_turn_in_which_its_begin_is_told_B2_B6)
{
    for (uint32_t threads = 0; threads <= 2; threads += 2) {
        call_rig rig;
        sl_job *job;

        call_open(&rig, count_and_end, threads);
        job = call_run(&rig, 0);
        rig.handler->class->turn_end(rig.handler);
        EXPECT_EQ(rig.finished, 0);
        rig.handler->class->abort(rig.handler, job);
        EXPECT_EQ(rig.results[0].kind, SL_RESULT_UNBEGUN);
        call_run(&rig, 1);
        turn_until(&rig, &rig.finished, 2);
        EXPECT_EQ(rig.begun, 1);
        call_done(&rig);
    }
}

/* Gives how long the longest turn was. */
static uint64_t begin_one_two_four(void)
{
    const sl_clock *const clock = sl_loop_stopwatch();
    uint64_t longest_ns = 0;
    call_rig rig;

    call_open(&rig, count_and_end, 0);
    for (size_t batch = 1; batch <= 4 && longest_ns < TURN_NS_MAX; batch *= 2) {
        const uint64_t start_ns = sl_clock_mono_ns(clock);

        for (size_t i = 0; i < batch; i++, call_run(&rig, batch + i))
            EXPECT(rig.handler->class->takes(rig.handler));
        EXPECT(!rig.handler->class->takes(rig.handler));
        sl_loop_turn(rig.loop, false);
        longest_ns = sl_max_u64(longest_ns, sl_clock_mono_ns(clock) - start_ns);
        if (longest_ns < TURN_NS_MAX)
            EXPECT_EQ(rig.finished, 2 * batch - 1);
    }
    call_done(&rig);
    return longest_ns;
}

/* A turn in which the machine stood still calls fewer, as it should: then once more. */
TEST(after_a_start_few_begin_together_so_that_a_message_that_kills_its_process_dies_alone_B6)
{
    int tries = 1;

    while (begin_one_two_four() >= TURN_NS_MAX)
        EXPECT(tries++ < 100);
}

static sl_worker_result compute_for_2_ms(void *user, sl_ctx *ctx)
{
    const sl_clock *const clock = sl_loop_stopwatch();
    const uint64_t until_ns = sl_clock_mono_ns(clock) + 2000000;

    (void)ctx;
    while (sl_clock_mono_ns(clock) < until_ns)
        ;
    note_begun(user);
    return SL_WORKER_DONE;
}

TEST(functions_in_the_loops_thread_let_others_have_a_turn_B8)
{
    call_rig rig;

    call_open(&rig, compute_for_2_ms, 0);
    for (size_t i = 0; i < 10; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false);
    EXPECT(rig.begun >= 1 && rig.begun <= 3);
    EXPECT(!rig.handler->class->takes(rig.handler)); /* enough waits for the next turn */
    turn_until(&rig, &rig.finished, 10);
    call_done(&rig);
}

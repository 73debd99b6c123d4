/* The handler that calls a C function in threads: what is handed over, what is stuck, and who frees what. */
#include "callback_rig.h"

TEST(threads_do_all_jobs_and_results_come_in_the_thread_of_the_loop)
{
    call_rig rig;

    call_open(&rig, count_and_end, 4);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        call_run(&rig, i);
    turn_until(&rig, &rig.finished, CALL_JOBS_MAX);
    EXPECT_EQ(rig.begun, CALL_JOBS_MAX);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_done(&rig);
}

TEST(many_results_wake_the_loop_once)
{
    call_rig rig;
    size_t before;

    call_open(&rig, later, 2);
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false); /* hands them over */
    await_number(&rig, &rig.begun, CALL_JOBS_MAX);
    before = rig.wakes;
    for (size_t i = 0; i < CALL_JOBS_MAX; i++)
        sl_ctx_finish(rig.later[i], SL_WORKER_DONE);
    turn_until(&rig, &rig.finished, CALL_JOBS_MAX);
    EXPECT_EQ(rig.wakes, before + 1);
    call_done(&rig);
}

static sl_worker_result wait_for_go(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    note_begun(rig);
    await_go(rig);
    pthread_mutex_lock(&rig->lock); /* there may be two threads here */
    snprintf(rig->seen, sizeof rig->seen, "%s %d", sl_ctx_data(ctx).data, sl_ctx_is_aborted(ctx));
    rig->returned++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_WORKER_DONE;
}

TEST(a_job_that_no_thread_has_taken_ends_at_once_when_it_is_aborted_or_killed)
{
    call_rig rig;
    sl_job *jobs[4];

    call_open(&rig, wait_for_go, 1);
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    EXPECT(!rig.handler->class->is_unbegun(rig.handler, rig.jobs[0]));
    jobs[0] = call_run(&rig, 1);
    EXPECT(rig.handler->class->is_unbegun(rig.handler, jobs[0]));
    jobs[1] = call_run(&rig, 2);
    sl_loop_turn(rig.loop, false); /* queued */
    jobs[2] = call_run(&rig, 3);
    jobs[3] = call_run(&rig, 4); /* pending */
    rig.handler->class->abort(rig.handler, jobs[0]);
    rig.handler->class->kill(rig.handler, jobs[1]);
    rig.handler->class->abort(rig.handler, jobs[2]);
    rig.handler->class->kill(rig.handler, jobs[3]);
    EXPECT_EQ(rig.finished, 4);
    for (int i = 1; i <= 4; i++)
        EXPECT_EQ(rig.results[i].kind, SL_RESULT_UNBEGUN);
    go(&rig);
    turn_until(&rig, &rig.finished, 5);
    EXPECT_EQ(rig.begun, 1);
    call_done(&rig);
}

TEST(a_thread_that_does_not_return_is_disowned_and_replaced_and_its_late_result_is_dropped)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, wait_for_go, 1);
    job = call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(rig.finished, 0);
    rig.handler->class->kill(rig.handler, job);
    EXPECT_EQ(rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    call_run(&rig, 1); /* there is a thread for it */
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 2);
    go(&rig);
    turn_until(&rig, &rig.finished, 2);
    await_number(&rig, &rig.returned, 2);
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_done(&rig);
    EXPECT_EQ(rig.finished, 2);
}

TEST(closing_does_not_wait_for_a_stuck_thread_and_free_waits_not_longer_than_it_says_S3_24)
{
    call_rig rig;

    call_open(&rig, wait_for_go, 2);
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->kill(rig.handler, rig.jobs[0]);
    rig.handler->class->close(rig.handler);
    turn_until(&rig, &rig.closed, 1);
    call_free_within(&rig, 1000000);
    EXPECT(strstr(rig.log_text, "WARN") != NULL);
    EXPECT(strstr(rig.log_text, "thread=billing-") != NULL);
    EXPECT(strstr(rig.log_text, "limit=") != NULL);
    go(&rig); /* it comes back to nobody */
    await_number(&rig, &rig.returned, 1);
    EXPECT_STR(rig.seen, "{} 1");
    EXPECT_EQ(rig.finished, 1);
    sl_loop_free(rig.loop);
}

static sl_worker_result finish_and_stay(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    sl_ctx_finish(ctx, SL_WORKER_PARK);
    note_begun(rig);
    await_go(rig);
    pthread_mutex_lock(&rig->lock);
    rig->returned++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    return SL_WORKER_DONE;
}

/* The context has gone meanwhile: into the pool, and with the handler. */
TEST(a_thread_that_comes_back_from_a_context_that_it_has_finished_touches_it_no_more)
{
    call_rig rig;

    call_open(&rig, finish_and_stay, 1);
    call_run(&rig, 0);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    turn_until(&rig, &rig.finished, 1);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_PARK);
    call_free_within(&rig, 1000000);
    go(&rig);
    await_number(&rig, &rig.returned, 1);
    EXPECT_EQ(rig.finished, 1);
    sl_loop_free(rig.loop);
}

static void wait_a_moment(void *arg)
{
    call_rig *const rig = arg;

    go(rig); /* the work may end now, but must not be over before this function is */
    for (int i = 0; i < 1000; i++)
        sched_yield();
    pthread_mutex_lock(&rig->lock);
    rig->returned = rig->begun; /* the only thread has not gone on to the next message */
    pthread_mutex_unlock(&rig->lock);
    atomic_fetch_add(&rig->abort_calls, 1);
}

static sl_worker_result end_on_abort(void *user, sl_ctx *ctx)
{
    call_rig *const rig = user;

    sl_ctx_on_abort(ctx, wait_a_moment, rig);
    note_begun(rig);
    await_go(rig);
    return sl_ctx_is_aborted(ctx) ? SL_WORKER_STOPPED : SL_WORKER_DONE;
}

TEST(work_is_not_over_while_its_abort_function_runs)
{
    call_rig rig;
    sl_job *job;

    call_open(&rig, end_on_abort, 1);
    job = call_run(&rig, 0);
    call_run(&rig, 1);
    sl_loop_turn(rig.loop, false);
    await_number(&rig, &rig.begun, 1);
    rig.handler->class->abort(rig.handler, job);
    EXPECT_EQ(rig.abort_calls, 1);
    EXPECT_EQ(rig.returned, 1);
    turn_until(&rig, &rig.finished, 2);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_STOPPED);
    EXPECT_EQ(rig.results[1].kind, SL_RESULT_DONE);
    call_done(&rig);
}

static sl_worker_result show_progress(void *user, sl_ctx *ctx)
{
    sl_ctx_progress(ctx);
    sl_ctx_progress(ctx);
    note_begun(user);
    await_go(user);
    return SL_WORKER_DONE;
}

TEST(signs_of_life_reach_the_worker_B8)
{
    call_rig rig;

    call_open(&rig, show_progress, 1);
    call_run(&rig, 0);
    turn_until(&rig, &rig.progress, 1);
    go(&rig);
    turn_until(&rig, &rig.finished, 1);
    EXPECT(rig.progress <= 2); /* two when the loop has looked between the signs */
    call_done(&rig);
}

TEST(a_callback_without_threads_closes_at_once_and_free_works_in_the_middle_of_everything)
{
    call_rig rig;

    call_open(&rig, later, 0);
    rig.handler->class->close(rig.handler);
    EXPECT_EQ(rig.closed, 1);
    call_done(&rig);
    call_open(&rig, count_and_end, 2);
    for (size_t i = 0; i < 50; i++)
        call_run(&rig, i);
    sl_loop_turn(rig.loop, false);
    call_free_handler(&rig);
    call_done(&rig);
}

/* tests/sim/fail.c — jumping out of a run that broke a rule. */
#include "fail.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    RUN_SECONDS_MAX = 60
}; /* a run takes milliseconds; under sanitizers on a busy machine, some seconds */

/* One run at a time, and a signal handler must find it: so it is global. */
static struct {
    sigjmp_buf out;
    sim_failure failure;
    volatile sig_atomic_t running;
} guard;

static const struct {
    const char *requirements, *text;
} rows[] = {
#define XX(name, number, requirements, text) [number] = { requirements, text },
    SIM_RULE_MAP(XX)
#undef XX
};

const char *sim_rule_text(sim_rule rule)
{
    return rows[rule].text;
}

const char *sim_rule_requirements(sim_rule rule)
{
    return rows[rule].requirements;
}

/* Jumping out of the handler of SIGABRT is what the standard allows to survive abort(). */
static void on_signal(int number)
{
    if (!guard.running)
        _exit(3);
    guard.failure.rule = number == SIGALRM ? SIM_RULE_NO_END : SIM_RULE_ASSERTION;
    const char *what = number == SIGALRM ? "the run did not end in time" : "assert() failed, see above";
    strcpy(guard.failure.text, what);
    siglongjmp(guard.out, 1);
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

bool sim_guard(sim_run_fn *run, void *ctx, sim_failure *ret_failure)
{
    catch_signals();
    guard.failure = (sim_failure){ .rule = SIM_RULE_ASSERTION };
    if (sigsetjmp(guard.out, 1) != 0) {
        guard.running = 0;
        alarm(0);
        *ret_failure = guard.failure;
        return false;
    }
    guard.running = 1;
    alarm(RUN_SECONDS_MAX);
    run(ctx);
    alarm(0);
    guard.running = 0;
    return true;
}

void sim_fail_at(uint32_t step)
{
    guard.failure.step = step;
}

void sim_fail(sim_rule rule, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(guard.failure.text, sizeof guard.failure.text, format, arguments);
    va_end(arguments);
    guard.failure.rule = rule;
    assert(guard.running);
    siglongjmp(guard.out, 1);
}

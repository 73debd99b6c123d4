/* tests/unit/worker/test_crew.c — several workers in one process: signals, one shutdown, supervision, the end (B19). */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "crew_rig.h"

static void raise_int(crew_rig *rig, const char *address)
{
    (void)rig;
    (void)address;
    raise(SIGINT);
}

/* --- signals --- */

TEST(sigterm_and_sigint_drain_all_workers_and_the_end_is_clean_S3_1_S3_28)
{
    static void (*const signals[])(crew_rig * rig, const char *address) = { crew_raise_term, raise_int };
    static const char *const names[] = { "reason=SIGTERM", "reason=SIGINT" };

    for (size_t i = 0; i < SL_COUNT_OF(signals); i++) {
        crew_rig rig;
        crew_rig_init(&rig, 2);
        rig.scripts[0].jobs = 3;
        rig.when_ready = signals[i];
        EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
        EXPECT_STR(rig.problem, "");
        EXPECT_EQ(rig.readies, 1);
        EXPECT_EQ(rig.scripts[0].settles, 3);
        EXPECT(strstr(crew_rig_last_line(&rig), names[i]) != NULL);
        crew_rig_done(&rig);
    }
}

static void raise_two(crew_rig *rig, const char *address)
{
    raise_int(rig, address);
    crew_raise_term(rig, address);
}

/* The handler would have kept its message for as long as the budget allows; a second signal aborts it at once. */
TEST(the_first_signal_is_the_reason_and_the_second_cuts_every_drain_short_S3_2)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    for (size_t i = 0; i < 2; i++) {
        const sl_budget_wish wish = { .grace_ns = UINT64_C(600000000000) };
        EXPECT_OK(sl_budget_make(&wish, &rig.members[i].settings.budget));
        rig.scripts[i].jobs = 1;
        rig.scripts[i].holds = true;
    }
    rig.when_ready = raise_two;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_UNCLEAN);
    (void)crew_rig_when(&rig, "a:abort");
    (void)crew_rig_when(&rig, "b:abort");
    EXPECT(strstr(crew_rig_last_line(&rig), "reason=SIGINT") != NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), "escalated=true") != NULL);
    EXPECT(strstr(rig.problem, "second signal") != NULL);
    crew_rig_done(&rig);
}

static void raise_term_twice(crew_rig *rig, const char *address)
{
    crew_raise_term(rig, address);
    crew_raise_term(rig, address);
}

/* A sender that signals a process and then its group is not impatient: what runs may finish. */
TEST(the_same_signal_again_in_a_moment_is_the_first_one_S3_2)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.scripts[0].jobs = 3;
    rig.when_ready = raise_term_twice;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(strstr(crew_rig_last_line(&rig), "escalated=false") != NULL);
    crew_rig_done(&rig);
}

static void raise_hup_and_term(crew_rig *rig, const char *address)
{
    raise(SIGHUP);
    crew_raise_term(rig, address);
}

TEST(sighup_is_ignored_and_does_not_count_as_a_signal_S3_1)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.when_ready = raise_hup_and_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(crew_rig_logged(&rig, "SIGHUP is ignored"));
    EXPECT(strstr(crew_rig_last_line(&rig), "escalated=false") != NULL);
    crew_rig_done(&rig);
}

/* --- one shutdown --- */

static void let_all_go_at_the_last_gate(scripted *script)
{
    for (size_t i = 0; i < script->rig->count; i++)
        crew_let_go(&script->rig->scripts[i]);
}

/* Each holds a message that is let go only when the gate of the last one closes: one after the other would time out. */
TEST(workers_of_a_process_drain_side_by_side_S2_17_S4_16_B19)
{
    crew_rig rig;

    crew_rig_init(&rig, 3);
    for (size_t i = 0; i < 3; i++) {
        rig.scripts[i].jobs = 1;
        rig.scripts[i].holds = true;
    }
    rig.scripts[2].on_gate = let_all_go_at_the_last_gate;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(crew_rig_when(&rig, "c:gate") < crew_rig_when(&rig, "a:close"));
    EXPECT(strstr(crew_rig_last_line(&rig), "drained=3") != NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), " acks_confirmed_late=3 ") != NULL);
    EXPECT(crew_rig_logged(&rig, " acks_unconfirmed=0 acks_confirmed_late=1 used="));
    crew_rig_done(&rig);
}

TEST(a_drain_that_times_out_is_told_and_stops_no_other_S4_16_S4_17_S3_22_S3_23)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.scripts[0].jobs = 1;
    rig.scripts[0].holds = true;
    rig.scripts[0].ignores_abort = true;
    rig.scripts[0].never_fences = true;
    rig.scripts[0].never_closes = true;
    rig.scripts[1].jobs = 1;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_UNCLEAN);
    EXPECT(crew_rig_logged(&rig, "WARN  a worker has ended, and its drain ran out of time name=a"));
    EXPECT(crew_rig_logged(&rig, "INFO  a worker has ended name=b"));
    EXPECT(strncmp(rig.problem, "Worker a did not drain in time", 30) == 0);
    EXPECT(strstr(rig.problem, "worker b") == NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), "WARN  stopped") != NULL);
    crew_rig_done(&rig);
}

static void *ask_for_metrics(void *ctx)
{
    crew_rig *const rig = ctx;

    crew_http_ask(crew_port_of(rig->address), "GET", "/metrics", "", rig->test);
    crew_let_all_go(rig);
    return NULL;
}

static void ask_when_gone(scripted *script)
{
    crew_rig_client(script->rig, ask_for_metrics);
}

/* The second has time, and keeps the pages open until they were asked. */
TEST(a_drain_that_times_out_is_counted_in_the_metrics_S4_17)
{
    const sl_budget_wish wish = { .grace_ns = UINT64_C(600000000000) };
    http_asked *const asked = calloc(1, sizeof *asked);
    crew_rig rig;

    crew_rig_init(&rig, 2);
    EXPECT_OK(sl_budget_make(&wish, &rig.members[1].settings.budget));
    rig.test = asked;
    rig.settings.status_port = 0;
    rig.scripts[0].never_fences = true;
    rig.scripts[0].on_free = ask_when_gone;
    rig.scripts[1].jobs = 1;
    rig.scripts[1].holds = true;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_UNCLEAN);
    EXPECT_EQ(asked->status, 200);
    EXPECT(strstr(asked->body, "\nsluice_worker_drain_timeouts_total{worker=\"a\"} 1\n") != NULL);
    EXPECT(strstr(asked->body, "\nsluice_worker_drain_timeouts_total{worker=\"b\"} 0\n") != NULL);
    free(asked);
    crew_rig_done(&rig);
}

/* The limit of the crew is longer than all that is inside of it: a worker that needs the whole of each of its parts ends by itself. */
TEST(a_worker_that_uses_up_all_of_its_parts_is_not_left_behind_S2_2_S2_13)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.scripts[0].jobs = 1;
    rig.scripts[0].holds = true;
    rig.scripts[0].ignores_abort = true;
    rig.scripts[0].never_fences = true;
    rig.scripts[0].never_closes = true;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_UNCLEAN);
    EXPECT(crew_rig_logged(&rig, "part=closing used="));
    EXPECT(crew_rig_logged(&rig, "a worker has ended, and its drain ran out of time name=a"));
    EXPECT(!crew_rig_logged(&rig, "is left to itself"));
    crew_rig_done(&rig);
}

/* The worker keeps its budget; the crew thinks that it has used it up. */
static void shrink_budget(scripted *script)
{
    script->rig->members[0].settings.budget.grace_ns = 0;
    script->rig->members[0].settings.budget.part_ns[SL_BUDGET_RESERVE] = 0;
}

TEST(a_worker_that_does_not_end_within_its_limit_is_named_and_left_behind_S3_24)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.scripts[0].never_fences = true;
    rig.scripts[0].on_gate = shrink_budget;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_UNCLEAN);
    EXPECT(
        crew_rig_logged(&rig, "WARN  a worker has not ended within its limit and is left to itself name=a"));
    EXPECT(strncmp(rig.problem, "Worker a did not end in time and was left behind", 48) == 0);
    crew_rig_done(&rig);
}

TEST(a_worker_that_can_never_be_made_ends_the_start_and_the_others_are_drained_S3_25)
{
    crew_place place;
    crew_rig rig;
    char *report;

    crew_place_make(&place);
    crew_rig_init(&rig, 3);
    rig.scripts[1].make_errs[0] = SL_ERR_INVALID;
    rig.settings.report_file = place.file;
    rig.settings.status_port = 0;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_BAD_CONFIG);
    EXPECT_STR(rig.problem, "Worker b cannot be started: it cannot be made");
    EXPECT(crew_rig_when(&rig, "a:gate") < crew_rig_when(&rig, "a:close"));
    EXPECT_EQ(rig.scripts[2].makes, 0);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=\"start failed\"") != NULL);
    report = crew_place_read(&place);
    EXPECT(report != NULL && strstr(report, "\"bad configuration\"") != NULL);
    free(report);
    crew_rig_done(&rig);
    crew_place_clear(&place);
}

TEST(settings_that_no_worker_accepts_end_the_start_S3_25)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.members[0].settings.slots = 0;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_BAD_CONFIG);
    crew_rig_done(&rig);
}

TEST(a_report_that_cannot_be_written_is_logged_and_the_last_line_still_comes_S3_22_S3_27)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.settings.report_file = "/nowhere/at/all/report.json";
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(crew_rig_logged(&rig, "ERROR no report problem=\"The report could not be written to /nowhere"));
    EXPECT(strstr(crew_rig_last_line(&rig), "INFO  stopped reason=SIGTERM") != NULL);
    crew_rig_done(&rig);
}

TEST(names_that_cannot_be_told_apart_are_refused_at_start)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.members[1].settings.name = "a";
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_BAD_CONFIG);
    EXPECT_EQ(rig.scripts[0].makes, 0);
    crew_rig_done(&rig);

    crew_rig_init(&rig, 0);
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_BAD_CONFIG);
    crew_rig_done(&rig);
}

TEST(the_budget_is_logged_with_its_parts_at_start_S3_32)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(crew_rig_logged(&rig, "worker name=a slots=4 grace=500ms fence=100ms settle=100ms abort=100ms "
                                 "flush=100ms close=50ms reserve=50ms"));
    crew_rig_done(&rig);
}

/* --- the pages while it drains, and the order of the end --- */

typedef struct asked_in_drain {
    http_asked begun, live, ready, state;
} asked_in_drain;

static void *ask_while_draining(void *ctx)
{
    crew_rig *const rig = ctx;
    asked_in_drain *const asked = rig->test;
    const uint16_t port = crew_port_of(rig->address);

    crew_http_ask(port, "POST", "/v1/drain", "", &asked->begun);
    crew_http_ask(port, "GET", "/livez", "", &asked->live);
    crew_http_ask(port, "GET", "/readyz", "", &asked->ready);
    crew_http_ask(port, "GET", "/v1/state", "", &asked->state);
    crew_let_all_go(rig);
    return NULL;
}

static void start_asking(crew_rig *rig, const char *address)
{
    (void)address;
    crew_rig_client(rig, ask_while_draining);
}

TEST(pages_answer_while_it_drains_and_then_the_report_comes_S3_40_B12_B17)
{
    const sl_budget_wish wish = { .grace_ns = UINT64_C(600000000000) };
    asked_in_drain *const asked = calloc(1, sizeof *asked);
    crew_place place;
    crew_rig rig;
    char *report;

    crew_place_make(&place);
    crew_rig_init(&rig, 1);
    EXPECT_OK(sl_budget_make(&wish, &rig.members[0].settings.budget));
    rig.test = asked;
    rig.settings.status_port = 0;
    rig.settings.report_file = place.file;
    rig.scripts[0].jobs = 1;
    rig.scripts[0].holds = true;
    rig.when_ready = start_asking;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);

    EXPECT_EQ(asked->begun.status, 202);
    EXPECT(strstr(asked->begun.body, "\"reason\":\"operator\"") != NULL);
    EXPECT_EQ(asked->live.status, 200);
    EXPECT(strstr(asked->live.body, "draining") != NULL);
    EXPECT_EQ(asked->ready.status, 503);
    EXPECT(strstr(asked->ready.body, "All workers drain: operator") != NULL);
    EXPECT(strstr(asked->state.body, "\"safe_to_terminate\":false") != NULL);
    report = crew_place_read(&place);
    EXPECT(report != NULL && strstr(report, "\"finished\":\t1") != NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=operator") != NULL);
    free(report);
    free(asked);
    crew_rig_done(&rig);
    crew_place_clear(&place);
}

static void *ask_and_wait_for_the_end(void *ctx)
{
    crew_rig *const rig = ctx;
    asked_in_drain *const asked = rig->test;

    crew_http_ask(crew_port_of(rig->address), "POST", "/v1/drain?wait=60s", "", &asked->begun);
    return NULL;
}

static void start_waiting(crew_rig *rig, const char *address)
{
    (void)address;
    crew_rig_client(rig, ask_and_wait_for_the_end);
}

static void expect_pages_and_no_report(scripted *script)
{
    const crew_rig *const rig = script->rig;

    EXPECT(crew_http_listens(crew_port_of(rig->address)));
    EXPECT(access(rig->settings.report_file, F_OK) != 0);
}

/* The workers end in the same turn in which they are asked to, and whoever waits for that is still answered. */
TEST(pages_answer_until_the_last_worker_has_ended_and_there_is_no_report_before_S3_21_B19)
{
    asked_in_drain *const asked = calloc(1, sizeof *asked);
    crew_place place;
    crew_rig rig;
    char *report;

    crew_place_make(&place);
    crew_rig_init(&rig, 2);
    rig.test = asked;
    rig.settings.status_port = 0;
    rig.settings.report_file = place.file;
    rig.when_ready = start_waiting;
    rig.scripts[0].on_free = rig.scripts[1].on_free = expect_pages_and_no_report;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    (void)crew_rig_when(&rig, "a:free");
    (void)crew_rig_when(&rig, "b:free");
    EXPECT_EQ(asked->begun.status, 200);
    EXPECT(strstr(asked->begun.body, "\"done\":true") != NULL);
    report = crew_place_read(&place);
    EXPECT(report != NULL && strstr(report, "\"operator\"") != NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=operator") != NULL);
    free(report);
    free(asked);
    crew_rig_done(&rig);
    crew_place_clear(&place);
}

/* A report that cannot be written is told in the moment in which it would have been. */
static void look_for_pages_at_the_report(crew_rig *rig, const char *line)
{
    bool *const listens = rig->test;

    if (strstr(line, " no report ") != NULL)
        *listens = *listens || crew_http_listens(crew_port_of(rig->address));
}

TEST(the_pages_have_ended_when_the_report_is_written_S3_21_B19)
{
    bool listens = false;
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.test = &listens;
    rig.settings.status_port = 0;
    rig.settings.report_file = "/nowhere/at/all/report.json";
    rig.when_ready = crew_raise_term;
    rig.when_logged = look_for_pages_at_the_report;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT(crew_rig_logged(&rig, " no report "));
    EXPECT(!listens);
    crew_rig_done(&rig);
}

static void *ask_twice(void *ctx)
{
    crew_rig *const rig = ctx;
    asked_in_drain *const asked = rig->test;
    const uint16_t port = crew_port_of(rig->address);

    crew_http_ask(port, "POST", "/v1/drain", "", &asked->begun);
    raise(
        SIGTERM); /* as an orchestrator does after the hook: it is the first signal, and nobody is impatient */
    crew_http_ask(port, "GET", "/v1/drain", "", &asked->live);
    crew_let_all_go(rig);
    return NULL;
}

static void start_asking_twice(crew_rig *rig, const char *address)
{
    (void)address;
    crew_rig_client(rig, ask_twice);
}

TEST(a_signal_after_a_pre_stop_hook_is_the_first_one_and_cuts_nothing_short_S3_2)
{
    const sl_budget_wish wish = { .grace_ns = UINT64_C(600000000000) };
    asked_in_drain *const asked = calloc(1, sizeof *asked);
    crew_rig rig;

    crew_rig_init(&rig, 1);
    EXPECT_OK(sl_budget_make(&wish, &rig.members[0].settings.budget));
    rig.test = asked;
    rig.settings.status_port = 0;
    rig.scripts[0].jobs = 1;
    rig.scripts[0].holds = true;
    rig.when_ready = start_asking_twice;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(asked->live.status, 202);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=operator") != NULL);
    EXPECT(strstr(crew_rig_last_line(&rig), "escalated=false") != NULL);
    free(asked);
    crew_rig_done(&rig);
}

TEST(status_pages_that_cannot_listen_end_the_start_S3_25)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.settings.status_port = 1;
    rig.settings.status_host = "203.0.113.7"; /* an address that this machine does not have */
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_NOT_STARTED);
    EXPECT(strstr(rig.problem, "The status pages cannot be shown: port 1 of 203.0.113.7: ") == rig.problem);
    EXPECT_EQ(rig.cause, SL_CREW_CAUSE_BAD_ADDRESS);
    EXPECT(crew_rig_logged(&rig, "status=none"));
    EXPECT_EQ(rig.scripts[0].makes, 0);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped") != NULL);
    crew_rig_done(&rig);
}

/* --- supervision --- */

TEST(a_worker_whose_source_fails_is_made_again_and_the_others_go_on_S4_16)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.scripts[0].fails_times = 2;
    rig.scripts[0].failure = SL_SOURCE_REFUSED;
    rig.scripts[1].make_errs[0] = SL_ERR_IO;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(rig.scripts[0].makes, 3);
    EXPECT_EQ(rig.scripts[1].makes, 2);
    EXPECT(crew_rig_logged(&rig, "a worker will be started again name=a"));
    EXPECT(crew_rig_logged(&rig, "a worker could not be made name=b problem=\"it cannot be made\""));
    crew_rig_done(&rig);
}

TEST(a_worker_that_fails_too_often_ends_the_crew_and_the_others_are_drained_S4_16)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.settings.restarts_max = 2;
    rig.scripts[0].fails_times = 100;
    rig.scripts[0].failure = SL_SOURCE_LOST;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_LOST);
    EXPECT_EQ(rig.cause, SL_CREW_CAUSE_AWAY);
    EXPECT_EQ(rig.scripts[0].makes, 3);
    EXPECT_STR(rig.problem, "Worker a failed 3 times in a row, at last: no such group");
    (void)crew_rig_when(&rig, "b:gate");
    crew_rig_done(&rig);
}

TEST(a_source_that_refuses_is_told_from_one_that_is_away_S4_16)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.settings.restarts_max = 0;
    rig.scripts[0].fails_times = 1;
    rig.scripts[0].failure = SL_SOURCE_REFUSED;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_LOST);
    EXPECT_EQ(rig.cause, SL_CREW_CAUSE_REFUSED);
    crew_rig_done(&rig);
}

/* Such as one whose ack file is locked. */
TEST(a_worker_that_cannot_be_made_has_not_lost_its_source_S3_25)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.settings.restarts_max = 1;
    rig.scripts[0].make_errs[0] = rig.scripts[0].make_errs[1] = SL_ERR_LOCKED;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_NOT_STARTED);
    EXPECT_EQ(rig.scripts[0].makes, 2);
    EXPECT_EQ(rig.cause, SL_CREW_CAUSE_OTHER);
    EXPECT_STR(rig.problem, "Worker a failed 2 times in a row, at last: it cannot be made");
    crew_rig_done(&rig);
}

TEST(a_source_at_its_end_ends_its_worker_and_the_last_one_ends_the_crew)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.scripts[0].jobs = 2;
    rig.scripts[1].jobs = 3;
    rig.scripts[0].ends_when_done = rig.scripts[1].ends_when_done = true;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(rig.scripts[0].makes, 1);
    EXPECT_EQ(rig.scripts[1].settles, 3);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=finished") != NULL);
    crew_rig_done(&rig);
}

/* Nothing is held, so nothing is lost; a new life would have nothing to do but to end again. */
TEST(a_source_that_fails_during_the_shutdown_is_not_made_again_S3_22)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.scripts[0].on_gate = crew_source_fails;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(rig.scripts[0].makes, 1);
    EXPECT(strstr(crew_rig_last_line(&rig), "stopped reason=SIGTERM") != NULL);
    crew_rig_done(&rig);
}

static void let_second_go(scripted *script)
{
    crew_let_go(&script->rig->scripts[1]);
}

/* The second worker gets on with its message only when the first one is gone. */
TEST(a_worker_that_an_operator_stopped_stays_so_and_the_others_go_on_S4_16)
{
    crew_rig rig;

    crew_rig_init(&rig, 2);
    rig.scripts[0].asked_to_stop = SL_DRAIN_REASON_OPERATOR;
    rig.scripts[0].asked_times = 1;
    rig.scripts[0].on_free = let_second_go;
    rig.scripts[1].jobs = 1;
    rig.scripts[1].holds = true;
    rig.scripts[1].ends_when_done = true;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(rig.scripts[0].makes, 1);
    EXPECT(crew_rig_when(&rig, "a:free") < crew_rig_when(&rig, "b:ack"));
    EXPECT(crew_rig_when(&rig, "b:ack") < crew_rig_when(&rig, "b:gate"));
    crew_rig_done(&rig);
}

static void end_both(scripted *script)
{
    if (script->makes == 2)
        raise(SIGTERM);
}

TEST(a_worker_that_a_leaving_server_sent_away_comes_back)
{
    crew_rig rig;

    crew_rig_init(&rig, 1);
    rig.settings.restarts_max = 0;
    rig.scripts[0].asked_to_stop = SL_DRAIN_REASON_SERVER;
    rig.scripts[0].asked_times = 2;
    rig.scripts[0].on_gate = end_both;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    EXPECT_EQ(rig.scripts[0].makes, 2);
    crew_rig_done(&rig);
}

/* Tests of worker/exec_handler.h, with real processes. */
#include "test.h"

#include "base/cleanup.h"
#include "base/support.h"
#include "net/process.h"
#include "worker/handler_rig.h"

#include <fcntl.h>
#include <sys/resource.h>

#define MS_NS UINT64_C(1000000)

static handler_rig rig;

/* Runs one message with this command to its end. */
static handler_rig_result ended(const char *command)
{
    handler_rig_result result;

    handler_rig_exec(&rig, command, 1);
    result = *handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"));
    handler_rig_stop(&rig);
    return result;
}

TEST(exec_the_exit_code_is_the_answer_and_the_last_lines_of_stderr_the_reason)
{
    static const struct {
        const char *command;
        sl_result_kind kind;
        bool is_fault;
        const char *reason;
    } rows[] = {
        { "exit 0", SL_RESULT_DONE, false, "" },
        { "echo not now >&2; exit 75", SL_RESULT_RETRY, true, "exit code 75: not now" },
        { "echo never >&2; exit 65", SL_RESULT_PARK, false, "exit code 65: never" },
        { "exit 1", SL_RESULT_FAILED, true, "exit code 1" },
        { "echo a >&2; echo b >&2; echo >&2; echo c >&2; printf 'it broke' >&2; exit 3", SL_RESULT_FAILED,
          true, "exit code 3: b | c | it broke" },
        { "printf '\\033[1mred\\377 \\303\\244\\n' >&2; exit 4", SL_RESULT_FAILED, true,
          "exit code 4:  [1mred? \303\244" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const handler_rig_result result = ended(rows[i].command);
        EXPECT_ROW(result.kind == rows[i].kind, i);
        EXPECT_ROW(result.is_fault == rows[i].is_fault, i);
        if (strcmp(rows[i].reason, "exit code 4:  [1mred? \303\244") == 0)
            EXPECT_ROW(strstr(result.reason, "[1mred? \303\244") != NULL, i);
        else
            EXPECT_STR(result.reason, rows[i].reason);
    }
}

TEST(exec_a_command_that_does_not_exist_fails_with_a_clear_reason)
{
    handler_rig_result result = ended("no-such-command-anywhere");

    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT(strstr(result.reason, "did not find the handler's command: exit code 127: ") != NULL);
    EXPECT(strstr(result.reason, "no-such-command-anywhere") != NULL);
    result = ended("/dev/null");
    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT(strstr(result.reason, "may not run the handler's command: exit code 126") != NULL);
}

TEST(exec_killed_by_a_signal_that_is_not_ours_is_a_failure_S3_6)
{
    handler_rig_result result = ended("kill -9 $$");

    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT(result.is_fault);
    EXPECT_STR(result.reason, "killed by signal 9");
    result = ended("kill -TERM $$");
    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT_STR(result.reason, "killed by signal 15");
}

/* Aborts after the command has said "ready". */
static handler_rig_result aborted(const char *command)
{
    handler_rig_result result;
    size_t number;

    handler_rig_exec(&rig, command, 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    result = *handler_rig_result_of(&rig, number);
    handler_rig_stop(&rig);
    return result;
}

#define WAITS_WITH_TRAP(does) "trap '" does "' TERM; echo ready >&2; while :; do sleep 0.01; done"

TEST(exec_an_aborted_command_that_finishes_nicely_counts_as_what_it_says)
{
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("exit 0")).kind, SL_RESULT_DONE);
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("exit 65")).kind, SL_RESULT_PARK);
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("exit 75")).kind, SL_RESULT_RETRY);
}

TEST(exec_an_aborted_command_that_just_ends_is_stopped_and_not_failed_S3_6)
{
    EXPECT_EQ(aborted("echo ready >&2; exec sleep 1000").kind, SL_RESULT_STOPPED);
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("exit 143")).kind, SL_RESULT_STOPPED);
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("exit 1")).kind, SL_RESULT_STOPPED);
    EXPECT_EQ(aborted(WAITS_WITH_TRAP("kill -9 $$")).kind, SL_RESULT_FAILED);
}

/* What the source is told of the beginning leaves at the end of the turn: until then nothing may happen that cannot be undone. */
TEST(exec_nothing_is_started_before_the_turn_is_over_and_it_can_be_called_off_B2)
{
    handler_rig_exec(&rig, "echo begun >&2", 2);
    for (int is_kill = 0; is_kill < 2; is_kill++) {
        const size_t number = handler_rig_run(&rig, "");

        EXPECT(rig.handler->class->is_alive(rig.handler, rig.jobs[number]));
        EXPECT(rig.handler->class->is_unbegun(rig.handler, rig.jobs[number]));
        rig.handler->class->draining(rig.handler, sl_loop_now_ns(rig.loop));
        (is_kill ? rig.handler->class->kill : rig.handler->class->abort)(rig.handler, rig.jobs[number]);
        EXPECT_EQ(rig.results[number].count, 1);
        EXPECT_EQ(rig.results[number].kind, SL_RESULT_UNBEGUN);
    }
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, ""))->kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(exec_a_command_that_ignores_the_abort_is_killed_for_certain_S2_6)
{
    size_t number;

    handler_rig_exec(&rig, "trap 'echo heard >&2' TERM; echo ready >&2; while :; do sleep 0.01; done", 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    handler_rig_until_said(&rig, "line=heard");
    EXPECT_EQ(rig.results[number].count, 0);
    EXPECT(rig.handler->class->is_alive(rig.handler, rig.jobs[number]));
    EXPECT(!rig.handler->class->is_unbegun(rig.handler, rig.jobs[number]));
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

TEST(exec_a_frozen_command_is_not_alive_and_can_be_killed)
{
    size_t number;

    handler_rig_exec(&rig, "kill -STOP $$", 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_frozen(&rig, number);
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

/* The shell itself lives, and waits for its command. */
TEST(exec_a_command_whose_child_is_frozen_is_not_alive_B8)
{
    size_t number;

    handler_rig_exec(&rig, "sh -c 'kill -STOP $$'; exit 0", 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_frozen(&rig, number);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

TEST(exec_a_grandchild_that_holds_the_pipes_delays_the_answer_only_a_little_and_is_killed)
{
    uint64_t start_ns;

    handler_rig_exec(&rig, "sleep 1000 & echo pid=$! >&2; exit 0", 1);
    start_ns = sl_loop_now_ns(rig.loop);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    EXPECT(rig.results[0].at_ns - start_ns >= SL_PROCESS_LINGER_MS * MS_NS);
    handler_rig_until_gone(&rig, handler_rig_number_after(&rig, "line=\"pid="));
    handler_rig_stop(&rig);
}

TEST(exec_a_grandchild_in_a_session_of_its_own_is_found_and_killed)
{
    handler_rig_exec(&rig, "setsid sleep 1000 </dev/null >/dev/null 2>&1 3<&- & echo pid=$! >&2; exit 0", 1);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    handler_rig_until_gone(&rig, handler_rig_number_after(&rig, "line=\"pid="));
    handler_rig_stop(&rig);
}

/* The first command ends while the second one runs and has something in the background. */
TEST(exec_what_belongs_to_a_command_that_runs_is_left_alone)
{
    const char *command = "if [ $SLUICE_TOKEN = 7 ]; then exit 0; fi; (sleep 1000 & echo pid=$! >&2); echo "
                          "ready >&2; sleep 1000";
    const sl_job_message slow = { .token = 8 };
    size_t number;

    handler_rig_exec(&rig, command, 2);
    number = handler_rig_run_message(&rig, &slow, UINT64_MAX);
    handler_rig_until_said(&rig, "line=ready");
    for (int i = 0; i < 4; i++) /* the later ones would reap what the first one had killed */
        EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    const pid_t pid = (pid_t)handler_rig_number_after(&rig, "line=\"pid=");
    EXPECT_EQ(kill(pid, 0), 0);
    EXPECT_EQ(rig.results[number].count, 0);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_until_gone(&rig, pid);
    handler_rig_stop(&rig);
}

static void prints_forever(const char *command, const char *line)
{
    uint64_t start_ns;
    size_t number;

    handler_rig_exec(&rig, command, 1);
    start_ns = sl_loop_now_ns(rig.loop);
    number = handler_rig_run(&rig, "{}");
    while (rig.log_lines < 100)
        handler_rig_turn(&rig);
    for (int i = 0; i < 20; i++)
        handler_rig_turn(&rig);
    EXPECT(handler_rig_has_said(&rig, line));
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    const uint64_t seconds = 2 + (rig.results[number].at_ns - start_ns) / (1000 * MS_NS);
    EXPECT((uint64_t)rig.log_lines <= seconds * 101);
    handler_rig_stop(&rig);
    EXPECT(handler_rig_has_said(&rig, "lines were left out"));
}

TEST(exec_a_command_that_prints_forever_fills_no_log)
{
    prints_forever("exec yes hello", "handler prints line=hello");
    prints_forever("exec yes trouble >&2", "handler says line=trouble");
}

TEST(exec_a_line_without_end_is_cut)
{
    handler_rig_exec(&rig, "head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2; exit 9", 1);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_FAILED);
    EXPECT(handler_rig_has_said(&rig, "xxx line_cut=true"));
    EXPECT_STR(rig.results[0].reason, "exit code 9: end");
    handler_rig_stop(&rig);
}

TEST(exec_data_goes_to_the_input_and_nobody_has_to_read_it)
{
    const size_t bytes = 5000000;
    char *data = malloc(bytes);
    sl_job_message message = { .data = { data, bytes } };

    assert_non_null(data);
    memset(data, 'd', bytes);
    handler_rig_exec(&rig, "[ $SLUICE_TOKEN = 0 ] && exit 0; [ $(wc -c) = 5000000 ]", 1);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run_message(&rig, &message, UINT64_MAX))->kind,
              SL_RESULT_DONE);
    message.token = 1;
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run_message(&rig, &message, UINT64_MAX))->kind,
              SL_RESULT_DONE);
    handler_rig_stop(&rig);
    free(data);
}

#define WANT(name, value) "[ \"$" name "\" = '" value "' ] || { echo " name "=$" name " >&2; exit 1; }; "

/* What is between systemd and the worker, and passwords, are not for handlers. */
TEST(exec_a_handler_does_not_inherit_what_is_the_workers_own)
{
    static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "SLUICE_PASSWORD", "SLUICE_FROM" };

    for (size_t i = 0; i < SL_COUNT_OF(names); i++)
        EXPECT_EQ(setenv(names[i], "secret", 1), 0);
    EXPECT_EQ(setenv("RIG_INHERITED", "yes", 1), 0);
    handler_rig_exec(&rig, "[ \"$RIG_INHERITED\" = yes ] && ! env | grep -q secret", 1);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
    for (size_t i = 0; i < SL_COUNT_OF(names); i++)
        EXPECT_EQ(unsetenv(names[i]), 0);
    EXPECT_EQ(unsetenv("RIG_INHERITED"), 0);
}

TEST(exec_the_message_is_in_the_environment)
{
    sl_job_message message = { .token = 18446744073709551615u,
                               .attempt = 3,
                               .revision = 12,
                               .created_ns = UINT64_C(1763247212123) * MS_NS,
                               .stream = SL_STR_INIT("orders 'a"),
                               .group = SL_STR_INIT("billing"),
                               .type = SL_STR_INIT("OrderPlaced"),
                               .content_type = SL_STR_INIT("application/json"),
                               .metadata = SL_STR_INIT("{\"a\":1}") };

    message.id.bytes[0] = 0xab;
    handler_rig_exec(
        &rig,
        WANT("SLUICE_ID", "ab000000-0000-0000-0000-000000000000") WANT("SLUICE_TOKEN", "18446744073709551615")
            WANT("SLUICE_ATTEMPT", "3") WANT("SLUICE_REVISION", "12") WANT("SLUICE_GROUP", "billing")
                WANT("SLUICE_TYPE", "OrderPlaced") WANT("SLUICE_CONTENT_TYPE", "application/json")
                    WANT("SLUICE_METADATA", "{\"a\":1}") WANT("SLUICE_CREATED", "2025-11-15T22:53:32.123Z")
                        WANT("SLUICE_DRAIN_FD", "3") WANT("RIG_EXTRA", "from the rig")
                            WANT("SLUICE_STREAM",
                                 "orders '\\''a") "now=$(date +%s%3N); [ $SLUICE_DEADLINE_MS -gt $now ] && "
                                                  "[ $SLUICE_DEADLINE_MS -le $((now + 60000)) ]",
        1);
    EXPECT_STR(handler_rig_result_of(
                   &rig, handler_rig_run_message(&rig, &message, sl_loop_now_ns(rig.loop) + 60000 * MS_NS))
                   ->reason,
               "");
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(exec_values_that_an_environment_cannot_hold_are_left_out)
{
    static char huge[300000];
    const sl_job_message message = { .metadata = { huge, sizeof huge }, .stream = SL_STR_INIT("a\0b") };

    memset(huge, 'm', sizeof huge);
    handler_rig_exec(&rig, "[ -z \"${SLUICE_METADATA+x}${SLUICE_STREAM+x}${SLUICE_DEADLINE_MS+x}\" ]", 1);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run_message(&rig, &message, UINT64_MAX))->kind,
              SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(exec_descriptor_3_tells_of_a_drain_and_how_much_time_is_left_S2_20)
{
    const char *command = "echo ready >&2; read -r ms <&3; [ $ms -gt 1000 ] && [ $ms -le 5000 ]";
    size_t number;

    handler_rig_exec(&rig, command, 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    EXPECT_EQ(rig.results[number].count, 0);
    rig.handler->class->draining(rig.handler, sl_loop_now_ns(rig.loop) + 5000 * MS_NS);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_DONE);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind,
              SL_RESULT_DONE); /* began during it */
    handler_rig_stop(&rig);
}

TEST(exec_a_child_has_default_signals_and_no_descriptor_of_ours)
{
    EXPECT_STR(ended("kill -PIPE $$; exit 0").reason, "killed by signal 13");
    /* 0 to 3, and the folder that is being listed. */
    const int inheritable = fcntl(STDERR_FILENO, F_DUPFD, 20);
    EXPECT_STR(ended("[ $(ls /proc/self/fd | wc -l) -le 5 ] || { ls -l /proc/self/fd >&2; exit 1; }").reason,
               "");
    close(inheritable);
    EXPECT_STR(ended("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ]").reason, "");
}

TEST(exec_two_hundred_commands_leave_no_zombie_and_no_descriptor)
{
    int fds;

    handler_rig_exec(&rig, "exit 0", 4);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    fds = handler_rig_count_fds();
    while (rig.result_count < 201) {
        while (rig.job_count < 201 && rig.job_count - (size_t)rig.result_count < 4)
            (void)handler_rig_run(&rig, "{}");
        handler_rig_turn(&rig);
    }
    sl_loop_turn(rig.loop, false);
    EXPECT_EQ(handler_rig_count_fds(), fds);
    EXPECT_EQ(handler_rig_count_children(), 0);
    for (size_t i = 0; i < rig.job_count; i++)
        EXPECT_EQ(rig.results[i].kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

/* Waiting for room it would hold up everybody behind it, for ever. */
TEST(exec_a_message_that_does_not_fit_into_an_environment_has_failed)
{
    static char large[100 * 1024], metadata[32 * 1024];
    const sl_job_message message = { .metadata = { metadata, sizeof metadata - 1 } };
    struct rlimit before, small;

    memset(large, 'x', sizeof large - 1);
    memset(metadata, 'm', sizeof metadata - 1);
    EXPECT_EQ(setenv("LARGE", large, 1), 0);
    handler_rig_exec(&rig, "exit 0", 1);
    EXPECT_EQ(unsetenv("LARGE"), 0);
    EXPECT_EQ(getrlimit(RLIMIT_STACK, &before), 0);
    small = before;
    small.rlim_cur = 512 * 1024; /* Linux gives a quarter of it to arguments and environment */
    EXPECT_EQ(setrlimit(RLIMIT_STACK, &small), 0);
    (void)handler_rig_result_of(&rig, handler_rig_run_message(&rig, &message, UINT64_MAX));
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    EXPECT_EQ(setrlimit(RLIMIT_STACK, &before), 0);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_FAILED);
    EXPECT(strstr(rig.results[0].reason, "larger than the system takes") != NULL);
    handler_rig_stop(&rig);
}

TEST(exec_without_descriptors_nothing_is_begun_and_the_reason_says_so)
{
    struct rlimit before, none;

    handler_rig_exec(&rig, "exit 0", 1);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)handler_rig_count_fds();
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    (void)handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"));
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(rig.results[0].kind, SL_RESULT_UNBEGUN);
    EXPECT(strstr(rig.results[0].reason, "as many files are open as the system allows: raise the limit") !=
           NULL);
    EXPECT_EQ(handler_rig_result_of(&rig, handler_rig_run(&rig, "{}"))->kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(exec_free_ends_what_runs_at_once)
{
    handler_rig_exec(&rig, "trap '' TERM; echo ready >&2; sleep 1000", 2);
    (void)handler_rig_run(&rig, "{}");
    (void)handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    handler_rig_drop(&rig);
    EXPECT_EQ(rig.result_count, 0);
}

/* Together, and not one after the other: the report of a drain is written after this. */
TEST(exec_commands_that_cannot_be_killed_are_waited_for_together_S3_24)
{
    handler_rig_exec(&rig, "exec sleep 1000", 3);
    for (int i = 0; i < 3; i++)
        (void)handler_rig_run(&rig, "{}");
    while (handler_rig_count_children() < 3)
        handler_rig_turn(&rig);
    const uint64_t limit_ns = 500 * MS_NS, took_ns = handler_rig_free_hung(&rig, limit_ns);
    EXPECT(took_ns >= limit_ns);
    EXPECT(took_ns < 3 * limit_ns);
}

TEST(exec_options_that_make_no_sense_are_refused_with_a_sentence)
{
    const char *const bad[] = { "=x", NULL }, *const taken[] = { "SLUICE_ID=1", NULL };
    const sl_exec_options rows[] = {
        { .command = " ", .slots = 1, .log = &rig.log },
        { .command = "true", .slots = 0, .log = &rig.log },
        { .command = "true", .slots = 1, .environment = bad, .log = &rig.log },
        { .command = "true", .slots = 1, .environment = taken, .log = &rig.log },
    };

    handler_rig_exec(&rig, "exit 0", 1);
    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        sl_handler *handler = NULL;
        char problem_data[256];
        sl_text problem;

        sl_text_init(&problem, problem_data, sizeof problem_data);
        EXPECT_ERR(sl_exec_handler_new(rig.loop, &rows[i], &problem, &handler), SL_ERR_INVALID);
        EXPECT_ROW(problem.bytes > 0 && handler == NULL, i);
    }
    handler_rig_stop(&rig);
}

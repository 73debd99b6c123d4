/* Tests of worker/lines_handler.h, with real processes. */
#include "test.h"

#include "base/cleanup.h"
#include "base/support.h"
#include "net/process.h"
#include "worker/handler_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

/* A handler in sh: for each line $id is the id in it, then what stands in the middle is done. */
#define EACH_LINE(does) "while read -r l; do id=${l#*'\"id\":\"'}; id=${id%%'\"'*}; " does "; done"
#define ANSWER(rest)    "printf '{\"id\":\"%s\"," rest "}\\n' $id"
#define ACK             ANSWER("\"result\":\"ack\"")

static handler_rig rig;

static handler_rig_result run_one(const char *data)
{
    return *handler_rig_result_of(&rig, handler_rig_run(&rig, data));
}

TEST(lines_each_answer_is_a_result)
{
    handler_rig_lines(
        &rig,
        EACH_LINE("case $l in *1}*) " ACK ";; *2}*) " ANSWER(
            "\"result\":\"retry\",\"retry_after_ms\":1500") ";; "
                                                            "*3}*) " ANSWER(
                                                                "\"result\":\"failed\",\"reason\":"
                                                                "\"no\\\\u0020way\"") ";; "
                                                                                      "*) " ANSWER(
                                                                                          "\"reason\":"
                                                                                          "\"bad\","
                                                                                          "\"result\":"
                                                                                          "\"park\"") ";; "
                                                                                                      "esac"),
        1);
    EXPECT_EQ(run_one("{\"n\":1}").kind, SL_RESULT_DONE);
    handler_rig_result result = run_one("{\"n\":2}");
    EXPECT_EQ(result.kind, SL_RESULT_RETRY);
    EXPECT_EQ(result.retry_after_ns, 1500 * MS_NS);
    EXPECT(result.is_fault);
    result = run_one("{\"n\":3}");
    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT_STR(result.reason, "no way");
    result = run_one("{\"n\":4}");
    EXPECT_EQ(result.kind, SL_RESULT_PARK);
    EXPECT_STR(result.reason, "bad");
    EXPECT(!result.is_fault);
    handler_rig_stop(&rig);
    EXPECT(!handler_rig_has_said(&rig, "WARN"));
}

TEST(lines_a_process_lives_on_and_there_are_as_many_as_are_needed)
{
    const char *command = EACH_LINE(
        "case $l in *wait*) read -r go ;; esac; printf '{\"id\":\"%s\",\"result\":\"failed\",\"reason\":"
        "\"%s\"}\\n' $id $$");
    char first[SL_RESULT_REASON_BYTES_MAX + 1];

    handler_rig_lines(&rig, command, 2);
    memcpy(first, run_one("{}").reason, sizeof first);
    EXPECT_STR(run_one("{}").reason, first);
    const size_t slow =
        handler_rig_run(&rig, "\"wait\""); /* in the first process; the abort line lets it go */
    EXPECT(strcmp(run_one("{}").reason, first) != 0);
    rig.handler->class->abort(rig.handler, rig.jobs[slow]);
    EXPECT_STR(handler_rig_result_of(&rig, slow)->reason, first);
    handler_rig_stop(&rig);
}

#define BREAKS(does) EACH_LINE("case $l in *good*) " ACK ";; *) " does " ;; esac")

/* Breaks the contract at the first message, and answers in its second life. */
static handler_rig_result breaks(const char *command)
{
    handler_rig_result result;

    handler_rig_lines(&rig, command, 1);
    result = run_one("\"bad\"");
    EXPECT_EQ(run_one("\"good\"").kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
    EXPECT(handler_rig_has_said(&rig, "a handler broke the contract and is ended"));
    return result;
}

TEST(lines_a_broken_contract_ends_the_process_and_fails_the_message_with_what_was_wrong)
{
    static const struct {
        const char *does, *reason;
    } rows[] = {
        { BREAKS("echo hello"), "a line on its standard output is no JSON object: hello" },
        { BREAKS("echo"), "a line on its standard output is no JSON object" },
        { BREAKS("echo '{\"id\":\"ab000000-0000-0000-0000-0000000000ff\",\"result\":\"ack\"}'"),
          "it answered for another message than the one it has" },
        { BREAKS(ANSWER("\"result\":\"maybe\"")), "its \"result\" is none of" },
        { BREAKS("head -c 1100000 /dev/zero | tr '\\0' x"), "it printed a line of more than 1 MiB" },
    };

    for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
        const handler_rig_result result = breaks(rows[i].does);
        EXPECT_ROW(result.kind == SL_RESULT_FAILED, i);
        EXPECT_ROW(result.is_fault, i);
        EXPECT_ROW(strstr(result.reason, rows[i].reason) != NULL, i);
    }
}

TEST(lines_a_second_answer_ends_the_process_but_charges_nobody)
{
    handler_rig_lines(
        &rig,
        EACH_LINE(
            "r=\"{\\\"id\\\":\\\"$id\\\",\\\"result\\\":\\\"ack\\\"}\"; printf '%s\\n%s\\n' \"$r\" \"$r\""),
        1);
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    EXPECT(handler_rig_has_said(&rig, "it said more after its answer"));
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(lines_output_before_any_message_ends_the_process_and_the_message_waits_for_the_next)
{
    handler_rig_lines(&rig, EACH_LINE(ACK "; echo early; sleep 1000"), 1);
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    handler_rig_until_said(&rig, "a handler broke the contract and is ended");
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(lines_a_process_whose_child_is_frozen_is_not_alive_B8)
{
    size_t number;

    handler_rig_lines(&rig, "read -r l; sh -c 'kill -STOP $$'; exit 0", 1);
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_frozen(&rig, number);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

TEST(lines_a_process_that_dies_costs_only_the_message_it_held_S3_6)
{
    handler_rig_lines(
        &rig,
        EACH_LINE("case $l in *die*) echo out of luck >&2; kill -9 $$ ;; *wait*) read -r go; " ACK ";; esac"),
        2);
    const size_t other = handler_rig_run(&rig, "\"wait\"");
    const handler_rig_result result = run_one("\"die\"");
    EXPECT_EQ(result.kind, SL_RESULT_FAILED);
    EXPECT(result.is_fault);
    EXPECT_STR(result.reason,
               "the handler's process ended before it answered: killed by signal 9: out of luck");
    EXPECT_EQ(rig.results[other].count, 0);
    rig.handler->class->abort(rig.handler, rig.jobs[other]);
    EXPECT_EQ(handler_rig_result_of(&rig, other)->kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

/* Dead, but the loop has not heard of it. */
static void kill_unheard(long process_id)
{
    char path[64], stat[256] = "";

    EXPECT_EQ(kill((pid_t)process_id, SIGKILL), 0);
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", process_id);
    while (strstr(stat, ") Z ") == NULL) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        EXPECT(fgets(stat, sizeof stat, file) != NULL);
        (void)fclose(file);
    }
}

TEST(lines_a_message_that_was_given_to_a_dead_process_goes_to_the_next_one)
{
    const char *command =
        EACH_LINE("printf '{\"id\":\"%s\",\"result\":\"park\",\"reason\":\"%s\"}\\n' $id $$");

    handler_rig_lines(&rig, command, 1);
    const handler_rig_result first = run_one("{}");
    kill_unheard(strtol(first.reason, NULL, 10));
    const handler_rig_result second = run_one("{}");
    EXPECT_EQ(second.kind, SL_RESULT_PARK);
    EXPECT(strcmp(second.reason, first.reason) != 0);
    handler_rig_stop(&rig);
}

/* In the input of a process. */
static int unread_bytes(long process_id)
{
    char path[64];
    int fd, count = -1;

    (void)snprintf(path, sizeof path, "/proc/%ld/fd/0", process_id);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT(fd >= 0);
    EXPECT_EQ(ioctl(fd, FIONREAD, &count), 0);
    close(fd);
    return count;
}

/* Something that a process waits for, which is not its input. */
typedef struct gate {
    char path[64];
    int fd;
} gate;

/* A handler with one process, which finds the gate in $gate. (`read <$gate` would put it in the place of the input, where we look.) */
static void start_with_gate(gate *made, const char *script)
{
    char command[512];

    (void)snprintf(made->path, sizeof made->path, "/tmp/sluice-gate-%ld", (long)getpid());
    EXPECT_EQ(mkfifo(made->path, 0600), 0);
    made->fd = open(made->path, O_RDWR | O_CLOEXEC);
    EXPECT(made->fd >= 0);
    (void)snprintf(command, sizeof command, "gate=%s; %s", made->path, script);
    handler_rig_lines(&rig, command, 1);
}

static void open_gate(const gate *made)
{
    EXPECT_EQ(write(made->fd, "go\n", 3), 3);
}

static void stop_with_gate(const gate *made)
{
    handler_rig_stop(&rig);
    close(made->fd);
    EXPECT_EQ(unlink(made->path), 0);
}

#define AWAIT "head -n 1 $gate >/dev/null"

TEST(lines_what_a_process_says_between_messages_has_no_id)
{
    size_t number;
    gate next;

    start_with_gate(&next, EACH_LINE("echo busy >&2; " AWAIT "; " ACK "; " AWAIT "; echo idle >&2"));
    number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "handler says line=busy line_cut=false id=ab000000-");
    open_gate(&next);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_DONE);
    open_gate(&next);
    handler_rig_until_said(&rig, "handler says line=idle line_cut=false pid=");
    stop_with_gate(&next);
}

#define ANSWER_PID    "printf '{\"id\":\"%s\",\"result\":\"park\",\"reason\":\"%s\"}\\n' $id $$"
#define LEAVES(leave) EACH_LINE(ANSWER_PID "; case $l in *last*) head -n 1 $gate >&2; " leave " ;; esac")

/* A second message, for a process that answers "last", leaves when the gate opens, and reads nothing more. */
static handler_rig_result given_too_late(const char *script, const char *data)
{
    gate to_leave;

    start_with_gate(&to_leave, script);
    const handler_rig_result first = run_one("\"last\"");
    const long process_id = strtol(first.reason, NULL, 10);
    const size_t number = handler_rig_run(&rig, data);
    while (unread_bytes(process_id) == 0)
        handler_rig_turn(&rig);
    EXPECT_EQ(rig.results[number].count, 0);
    open_gate(&to_leave);
    const handler_rig_result second = *handler_rig_result_of(&rig, number);
    EXPECT(strtol(second.reason, NULL, 10) != process_id);
    stop_with_gate(&to_leave);
    return second;
}

TEST(lines_a_message_that_a_process_left_unread_is_not_charged_and_goes_to_the_next_one)
{
    EXPECT_EQ(given_too_late(LEAVES("exit 0"), "{}").kind, SL_RESULT_PARK);
    EXPECT(!handler_rig_has_said(&rig, "WARN"));
    EXPECT_EQ(given_too_late(LEAVES("kill -9 $$"), "{}").kind, SL_RESULT_PARK);
    EXPECT(handler_rig_has_said(&rig, "next_start_after=100ms"));
}

/* A part of it is in the pipe, and the rest had no room. */
TEST(lines_a_large_message_that_a_process_left_unread_is_not_charged)
{
    const size_t bytes = 300000;
    char *data = malloc(bytes + 1);

    assert_non_null(data);
    memset(data, 'd', bytes);
    data[0] = data[bytes - 1] = '"';
    data[bytes] = '\0';
    EXPECT_EQ(given_too_late(LEAVES("exit 0"), data).kind, SL_RESULT_PARK);
    free(data);
}

/* Else a program that cannot even start would be given the same message for ever. */
TEST(lines_a_process_that_never_answered_is_charged_also_for_what_it_did_not_read)
{
    gate to_leave;

    start_with_gate(&to_leave, "echo $$ >&2; head -n 1 $gate >&2; exit 0");
    const size_t number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=");
    EXPECT(unread_bytes(handler_rig_number_after(&rig, "line=")) > 0);
    open_gate(&to_leave);
    const handler_rig_result *result = handler_rig_result_of(&rig, number);
    EXPECT_EQ(result->kind, SL_RESULT_FAILED);
    EXPECT(result->is_fault);
    EXPECT(handler_rig_has_said(&rig, "next_start_after=100ms"));
    stop_with_gate(&to_leave);
}

/* It takes a while until a process is dead, and its answer may be on its way meanwhile. */
TEST(lines_a_process_that_is_being_killed_gets_no_other_message)
{
    handler_rig_lines(&rig,
                      EACH_LINE("case $l in *first*) echo ready >&2; read -r abort ;; esac; " ANSWER_PID
                                "; case $l in *first*) exec sleep 1000 ;; esac"),
                      1);
    const size_t first = handler_rig_run(&rig, "\"first\"");
    handler_rig_until_said(&rig, "line=ready");
    handler_rig_lose_signals(true);
    rig.handler->class->kill(rig.handler, rig.jobs[first]);
    handler_rig_lose_signals(false);
    rig.handler->class->abort(rig.handler, rig.jobs[first]); /* which is what it waits for */
    const long process_id = strtol(handler_rig_result_of(&rig, first)->reason, NULL, 10);
    const size_t second = handler_rig_run(&rig, "{}");
    handler_rig_turn(&rig);
    EXPECT_EQ(unread_bytes(process_id), 0);
    EXPECT_EQ(kill((pid_t)-process_id, SIGKILL), 0);
    EXPECT_EQ(handler_rig_result_of(&rig, second)->kind, SL_RESULT_PARK);
    handler_rig_stop(&rig);
    EXPECT(!handler_rig_has_said(&rig, "WARN"));
}

TEST(lines_a_process_that_dies_again_and_again_is_started_more_and_more_slowly)
{
    uint64_t at_ns[3];

    handler_rig_lines(&rig, "read -r l; exit 3", 1);
    for (int i = 0; i < 3; i++) {
        const handler_rig_result result = run_one("{}");
        EXPECT_EQ(result.kind, SL_RESULT_FAILED);
        EXPECT_STR(result.reason, "the handler's process ended before it answered: exit code 3");
        at_ns[i] = result.at_ns;
    }
    EXPECT(at_ns[1] - at_ns[0] >= SL_LINES_PAUSE_MS_MIN * MS_NS);
    EXPECT(at_ns[2] - at_ns[1] >= 2 * SL_LINES_PAUSE_MS_MIN * MS_NS);
    handler_rig_stop(&rig);
}

TEST(lines_an_answer_makes_the_next_pause_short_again)
{
    handler_rig_lines(&rig, EACH_LINE("case $l in *die*) exit 3 ;; esac; " ACK), 1);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(run_one("\"die\"").kind, SL_RESULT_FAILED);
        EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    }
    EXPECT(handler_rig_has_said(&rig, "next_start_after=100ms"));
    EXPECT(!handler_rig_has_said(&rig, "next_start_after=200ms"));
    handler_rig_stop(&rig);
}

/* What the source is told of the beginning leaves at the end of the turn: until then no process may see anything of the message. */
TEST(lines_nothing_is_given_before_the_turn_is_over_and_it_can_be_called_off_B2)
{
    const char *command = EACH_LINE(
        "echo seen $id >&2; printf '{\"id\":\"%s\",\"result\":\"park\",\"reason\":\"%s\"}\\n' $id $$");
    char first[SL_RESULT_REASON_BYTES_MAX + 1] = "";

    handler_rig_lines(&rig, command, 2);
    for (int round = 0; round < 3; round++) { /* without a process, then with one */
        const int children = handler_rig_count_children();
        const size_t number = handler_rig_run(&rig, "{}");

        EXPECT_EQ(handler_rig_count_children(), children);
        EXPECT(rig.handler->class->is_alive(rig.handler, rig.jobs[number]));
        EXPECT(rig.handler->class->is_unbegun(rig.handler, rig.jobs[number]));
        (round == 1 ? rig.handler->class->kill : rig.handler->class->abort)(rig.handler, rig.jobs[number]);
        EXPECT_EQ(rig.results[number].count, 1);
        EXPECT_EQ(rig.results[number].kind, SL_RESULT_UNBEGUN);
        const handler_rig_result result = run_one("{}");
        EXPECT_EQ(result.kind, SL_RESULT_PARK);
        if (round > 0)
            EXPECT_STR(result.reason, first); /* the process was left in peace */
        memcpy(first, result.reason, sizeof first);
    }
    EXPECT_EQ(handler_rig_count_children(), 1);
    handler_rig_stop(&rig);
    EXPECT(!handler_rig_has_said(&rig, "WARN"));
    EXPECT(!handler_rig_has_said(&rig, "seen ab000000-0000-0000-0000-000000000000"));
    EXPECT(!handler_rig_has_said(&rig, "seen ab000000-0000-0000-0000-000000000002"));
}

TEST(lines_many_processes_are_started_a_few_in_a_turn)
{
    enum {
        SLOTS = 2 * SL_PROCESS_STARTS_PER_TURN_MAX + 1
    };

    handler_rig_lines(&rig, "exec sleep 1000", SLOTS);
    for (int i = 0; i < SLOTS; i++)
        (void)handler_rig_run(&rig, "{}");
    for (int before = 0, now; before < SLOTS; before = now) {
        handler_rig_turn(&rig);
        now = handler_rig_count_children();
        EXPECT(now - before <= SL_PROCESS_STARTS_PER_TURN_MAX);
    }
    handler_rig_drop(&rig);
}

TEST(lines_a_message_that_waits_for_a_process_can_be_aborted_and_was_not_begun)
{
    handler_rig_lines(&rig, "read -r l; exit 3", 1);
    for (int i = 0; i < 4; i++) /* the next pause is one of 800 ms */
        (void)run_one("{}");
    const size_t number = handler_rig_run(&rig, "{}");
    sl_loop_turn(rig.loop, true);
    EXPECT_EQ(rig.results[number].count, 0);
    EXPECT(rig.handler->class->is_alive(rig.handler, rig.jobs[number]));
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    EXPECT_EQ(rig.results[number].kind, SL_RESULT_UNBEGUN);
    handler_rig_stop(&rig);
}

TEST(lines_a_message_that_waits_for_a_process_moves_to_one_that_becomes_free)
{
    handler_rig_lines(&rig,
                      EACH_LINE("case $l in *die*) exit 3 ;; *wait*) echo waits >&2; read -r go ;; esac; "
                                "printf '{\"id\":\"%s\",\"result\":\"failed\",\"reason\":\"%s\"}\\n' $id $$"),
                      2);
    const size_t slow = handler_rig_run(&rig, "\"wait\"");
    handler_rig_until_said(&rig, "line=waits");
    for (int i = 0; i < 2; i++) /* the second slot has a pause of 200 ms then */
        (void)run_one("\"die\"");
    const size_t waiting = handler_rig_run(&rig, "{}");
    const uint64_t begun_ns = sl_loop_now_ns(rig.loop);
    rig.handler->class->abort(rig.handler, rig.jobs[slow]);
    (void)handler_rig_result_of(&rig, slow);
    (void)handler_rig_result_of(&rig, waiting);
    /* On a machine so slow that the pause was over first, there was nothing to move. */
    EXPECT(strcmp(rig.results[waiting].reason, rig.results[slow].reason) == 0 ||
           rig.results[slow].at_ns - begun_ns > 150 * MS_NS);
    handler_rig_stop(&rig);
}

/* Its answer is there before the turn in which the other message would be given to a process of its own. */
TEST(lines_a_process_that_becomes_free_meanwhile_is_better_than_another_one)
{
    char command[512], path[] = "/tmp/sluice-lines-XXXXXX";
    const int fd = mkstemp(path);
    struct stat answered = { 0 };

    EXPECT(fd >= 0);
    (void)snprintf(command, sizeof command, "%s%s; done",
                   "while read -r l; do id=${l#*'\"id\":\"'}; id=${id%%'\"'*}; "
                   "case $l in *wait*) echo waits >&2; read -r go ;; esac; "
                   "printf '{\"id\":\"%s\",\"result\":\"failed\",\"reason\":\"%s\"}\\n' $id $$; echo x > ",
                   path);
    handler_rig_lines(&rig, command, 2);
    const size_t slow = handler_rig_run(&rig, "\"wait\"");
    handler_rig_until_said(&rig, "line=waits");
    const size_t other = handler_rig_run(&rig, "{}");
    rig.handler->class->abort(rig.handler, rig.jobs[slow]);
    while (answered.st_size == 0)
        EXPECT_EQ(fstat(fd, &answered), 0);
    (void)handler_rig_result_of(&rig, slow);
    (void)handler_rig_result_of(&rig, other);
    EXPECT_STR(rig.results[other].reason, rig.results[slow].reason);
    EXPECT_EQ(handler_rig_count_children(), 1);
    handler_rig_stop(&rig);
    close(fd);
    unlink(path);
}

TEST(lines_progress_is_passed_on)
{
    handler_rig_lines(
        &rig, EACH_LINE(ANSWER("\"type\":\"progress\"") "; " ANSWER("\"type\":\"progress\"") "; " ACK), 1);
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    EXPECT_EQ(rig.progress_count, 2);
    handler_rig_stop(&rig);
}

TEST(lines_a_drain_is_told_to_every_process_S2_20)
{
    handler_rig_lines(
        &rig,
        EACH_LINE("case $l in *draining*) echo \"$l\" >&2 ;; *wait*) read -r l2; echo \"$l2\" >&2; " ACK
                  ";; *) " ACK ";; esac"),
        2);
    const size_t slow = handler_rig_run(&rig, "\"wait\"");
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    rig.handler->class->draining(rig.handler, sl_loop_now_ns(rig.loop) + 5000 * MS_NS);
    EXPECT_EQ(handler_rig_result_of(&rig, slow)->kind, SL_RESULT_DONE);
    handler_rig_until_said(&rig, "{\\\"type\\\":\\\"draining\\\",\\\"remaining_ms\\\":");
    const long left_ms = handler_rig_number_after(&rig, "remaining_ms\\\":");
    EXPECT(left_ms > 1000 && left_ms <= 5000);
    handler_rig_stop(&rig);
}

TEST(lines_an_abort_is_a_line_and_the_answer_still_counts_but_a_kill_is_for_certain_S2_6)
{
    handler_rig_lines(&rig,
                      EACH_LINE("case $l in *never*) echo second >&2; sleep 1000 ;; *abort*) " ACK
                                ";; *) echo first >&2 ;; esac"),
                      1);
    size_t number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=first");
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_DONE);
    number = handler_rig_run(&rig, "\"never\"");
    handler_rig_until_said(&rig, "line=second");
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

TEST(lines_an_abort_may_be_a_signal_too_and_its_end_is_stopped_and_not_failed_S3_6)
{
    handler_rig_lines_with_signal(
        &rig, EACH_LINE("case $l in *good*) " ACK ";; *) echo ready >&2; sleep 1000 ;; esac"));
    const size_t number = handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    rig.handler->class->abort(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    EXPECT_EQ(run_one("\"good\"").kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
}

TEST(lines_a_frozen_process_is_not_alive)
{
    handler_rig_lines(&rig, EACH_LINE("kill -STOP $$"), 1);
    const size_t number = handler_rig_run(&rig, "{}");
    handler_rig_until_frozen(&rig, number);
    rig.handler->class->kill(rig.handler, rig.jobs[number]);
    EXPECT_EQ(handler_rig_result_of(&rig, number)->kind, SL_RESULT_STOPPED);
    handler_rig_stop(&rig);
}

TEST(lines_a_message_larger_than_a_pipe_arrives_whole)
{
    const size_t bytes = 3000000;
    char *data = malloc(bytes + 1);

    assert_non_null(data);
    memset(data, 'd', bytes);
    data[0] = data[bytes - 1] = '"';
    data[bytes] = '\0';
    handler_rig_lines(
        &rig,
        "python3 -c \"import sys, json\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    ok = m['data'] == 'd' * 2999998\n"
        "    print(json.dumps({'id': m['id'], 'result': 'ack' if ok else 'park'}), flush=True)\"",
        1);
    EXPECT_EQ(run_one(data).kind, SL_RESULT_DONE);
    EXPECT_EQ(run_one(data).kind, SL_RESULT_DONE);
    handler_rig_stop(&rig);
    free(data);
}

TEST(lines_a_process_that_left_in_peace_between_messages_costs_nothing)
{
    handler_rig_lines(&rig, "read -r l; id=${l#*'\"id\":\"'}; id=${id%%'\"'*}; " ACK, 1);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
        while (handler_rig_count_children() > 0)
            handler_rig_turn(&rig);
    }
    EXPECT(!handler_rig_has_said(&rig, "next_start_after"));
    handler_rig_stop(&rig);
}

/* How long close() takes for a process that does this when its input has ended. */
static uint64_t close_takes_ns(const char *then, uint64_t close_ns)
{
    uint64_t start_ns, took_ns;

    handler_rig_lines_with_close(&rig, then, close_ns);
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    start_ns = sl_loop_now_ns(rig.loop);
    rig.handler->class->close(rig.handler);
    handler_rig_until_closed(&rig);
    took_ns = sl_loop_now_ns(rig.loop) - start_ns;
    handler_rig_drop(&rig);
    return took_ns;
}

#define STAYS "while :; do sleep 0.01; done"

/* SIGTERM after half of the time, SIGKILL after three quarters: a quarter is left for the end. */
TEST(lines_a_process_that_stays_when_its_input_is_closed_is_ended_in_time)
{
    const uint64_t close_ns = 600 * MS_NS, long_ns = 2000 * MS_NS;
    uint64_t took_ns = close_takes_ns(EACH_LINE(ACK) "; trap '' TERM; " STAYS, close_ns);

    EXPECT(took_ns >= close_ns * 3 / 4);
    EXPECT(took_ns < 1500 * MS_NS); /* what is fixed for the usual length of 2 s */
    took_ns = close_takes_ns(EACH_LINE(ACK) "; " STAYS, long_ns);
    EXPECT(took_ns >= long_ns / 2);
    took_ns = close_takes_ns(EACH_LINE(ACK) "; " STAYS, 0);
    EXPECT(took_ns >= SL_LINES_CLOSE_MS * MS_NS / 2);
}

TEST(lines_processes_that_cannot_be_killed_are_waited_for_together_S3_24)
{
    handler_rig_lines(&rig, "exec sleep 1000", 3);
    for (int i = 0; i < 3; i++)
        (void)handler_rig_run(&rig, "{}");
    while (handler_rig_count_children() < 3)
        handler_rig_turn(&rig);
    const uint64_t limit_ns = 500 * MS_NS, took_ns = handler_rig_free_hung(&rig, limit_ns);
    EXPECT(took_ns >= limit_ns);
    EXPECT(took_ns < 3 * limit_ns);
}

/* What it does with them is in tests/unit/net/test_process.c; without this the loop would wait for the guard of the rig. */
TEST(lines_while_a_process_lives_its_dead_are_looked_for)
{
    handler_rig_lines(&rig, EACH_LINE(ACK), 1);
    EXPECT_EQ(run_one("{}").kind, SL_RESULT_DONE);
    sl_loop_turn(rig.loop, false);
    const int wait_ms = sl_loop_wait_ms(rig.loop);
    EXPECT(wait_ms > 0 && wait_ms <= SL_ORPHANS_REAP_PAUSE_MS);
    handler_rig_stop(&rig);
}

TEST(lines_free_ends_what_runs_at_once)
{
    handler_rig_lines(&rig, EACH_LINE("echo ready >&2; sleep 1000"), 2);
    (void)handler_rig_run(&rig, "{}");
    handler_rig_until_said(&rig, "line=ready");
    handler_rig_drop(&rig);
    EXPECT_EQ(rig.result_count, 0);
}

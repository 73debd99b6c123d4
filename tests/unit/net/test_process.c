/* Tests of net/process.h, with real processes. What handlers make of them is in tests/unit/worker. */
#include "test.h"

#include "base/cleanup.h"
#include "base/support.h"
#include "net/process.h"
#include "worker/handler_rig.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

typedef struct stage {
    sl_loop *loop;
    sl_timer guard;
    sl_process *process;
    bool is_late, has_ended, wants_free;
    sl_process_end end;
    int room_count;
    char text[2][4096];
    size_t bytes[2];
    char problem[256];
} stage;

static void on_output(void *ctx, sl_process_output which, const char *data, size_t bytes)
{
    stage *s = ctx;

    EXPECT(!s->has_ended);
    for (size_t i = 0; i < bytes && s->bytes[which] + 1 < sizeof s->text[which]; i++)
        s->text[which][s->bytes[which]++] = data[i];
    if (!s->wants_free)
        return;
    sl_process_free(s->process, handler_rig_later_ns());
    s->process = NULL;
    s->wants_free = false;
}

static void on_room(void *ctx)
{
    ((stage *)ctx)->room_count++;
}

static void on_exit_(void *ctx, const sl_process_end *end)
{
    stage *s = ctx;

    EXPECT(!s->has_ended);
    s->has_ended = true;
    s->end = *end;
    s->process = NULL;
}

static void guard_rings(void *ctx)
{
    ((stage *)ctx)->is_late = true;
}

static void set_stage(stage *s)
{
    memset(s, 0, sizeof *s);
    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &s->loop));
    sl_timer_init(&s->guard, s->loop, guard_rings, s);
    sl_timer_set(&s->guard, sl_loop_now_ns(s->loop) + 20000 * MS_NS);
}

static sl_err start_program(stage *s, const char *program, const char *script)
{
    static const sl_process_handler on = { on_output, on_room, on_exit_ };
    char name[] = "sh", flag[] = "-c", path[] = "PATH=/usr/bin:/bin", only[] = "ONLY=this";
    char *text = strdup(script);
    char *const arguments[] = { name, flag, text, NULL }, *const environment[] = { path, only, NULL };
    const sl_process_options options = { program, arguments, environment, true };
    sl_text problem;
    sl_err err;

    sl_text_init(&problem, s->problem, sizeof s->problem);
    err = sl_process_start(s->loop, &options, &on, s, &problem, &s->process);
    free(text);
    return err;
}

static void turn(stage *s)
{
    sl_loop_turn(s->loop, true);
    EXPECT(!s->is_late);
}

static void clear_stage(stage *s)
{
    sl_timer_stop(&s->guard);
    sl_loop_free(s->loop);
}

static void start_shell(stage *s, const char *script)
{
    set_stage(s);
    EXPECT_OK(start_program(s, "/bin/sh", script));
}

static void play(stage *s, const char *script)
{
    start_shell(s, script);
    while (!s->has_ended)
        turn(s);
    clear_stage(s);
}

TEST(process_all_output_comes_before_the_end)
{
    stage s;

    play(&s, "echo out; echo err >&2; exit 7");
    EXPECT_STR(s.text[SL_PROCESS_STDOUT], "out\n");
    EXPECT_STR(s.text[SL_PROCESS_STDERR], "err\n");
    EXPECT(s.end.exited);
    EXPECT_EQ(s.end.code, 7);
    play(&s, "kill -ABRT $$");
    EXPECT(!s.end.exited);
    EXPECT_EQ(s.end.signal, SIGABRT);
}

TEST(process_the_environment_is_exactly_what_was_given)
{
    stage s;

    play(&s, "exec env");
    EXPECT(strstr(s.text[0], "ONLY=this\n") != NULL);
    EXPECT(strstr(s.text[0], "HOME=") == NULL);
}

TEST(process_a_program_that_does_not_exist_gives_a_sentence_and_leaves_nothing)
{
    stage s;

    set_stage(&s);
    EXPECT_ERR(start_program(&s, "/no/such/program", ""), SL_ERR_NOT_FOUND);
    EXPECT_STR(s.problem,
               "/no/such/program could not be started: there is no such program: check its name and PATH");
    EXPECT_ERR(start_program(&s, "/dev/null", ""), SL_ERR_NOT_FOUND);
    EXPECT(strstr(s.problem, "it may not be run") != NULL);
    clear_stage(&s);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static int watches_left = INT_MAX;

/* Instead of the system's, which refuses when fs.epoll.max_user_watches is reached. */
int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD && watches_left < INT_MAX && watches_left-- <= 0) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event);
}

TEST(process_a_system_that_waits_for_no_more_descriptors_is_a_start_that_failed)
{
    for (int left = 0; left < 3; left++) { /* of the three pipes */
        stage s;

        set_stage(&s);
        const int fds = handler_rig_count_fds();
        watches_left = left;
        EXPECT_ERR(start_program(&s, "/bin/sh", "exit 0"), SL_ERR_OPEN_FILES);
        watches_left = INT_MAX;
        EXPECT(strstr(s.problem, "max_user_watches") != NULL);
        EXPECT_EQ(handler_rig_count_fds(), fds);
        EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        clear_stage(&s);
    }
}

TEST(process_writing_never_waits_and_tells_when_there_is_room)
{
    static char block[100000];
    stage s;
    size_t taken;

    start_shell(&s, "read -r go <&3; head -c 100000 | wc -c");
    taken = sl_process_write(s.process, block, sizeof block);
    EXPECT(taken > 0 && taken < sizeof block);
    EXPECT_EQ(s.room_count, 0);
    sl_process_notify(s.process, SL_STR("go\n"));
    sl_process_notify(s.process, SL_STR("only the first one counts\n"));
    while (taken < sizeof block) {
        turn(&s);
        EXPECT(s.room_count > 0);
        taken += sl_process_write(s.process, block + taken, sizeof block - taken);
    }
    while (!s.has_ended)
        turn(&s);
    EXPECT_STR(s.text[0], "100000\n");
    clear_stage(&s);
}

TEST(process_what_nobody_reads_is_dropped)
{
    static char block[1000000];
    stage s;

    start_shell(&s, "exec <&-; echo closed; read -r go <&3; exit 0");
    while (s.bytes[0] == 0)
        turn(&s);
    EXPECT(!sl_process_input_is_closed(s.process));
    EXPECT_EQ(sl_process_write(s.process, block, sizeof block), sizeof block);
    EXPECT(sl_process_input_is_closed(s.process));
    sl_process_notify(s.process, SL_STR("go\n"));
    while (!s.has_ended)
        turn(&s);
    EXPECT_EQ(s.end.code, 0);
    clear_stage(&s);
}

/* Reads one line, and leaves two bytes for nobody. */
static uint64_t read_bytes_of(const char *script, bool we_close)
{
    stage s;

    start_shell(&s, script);
    EXPECT_EQ(sl_process_write(s.process, "one\n", 4), 4);
    EXPECT_EQ(sl_process_write(s.process, "2\n", 2), 2);
    while (s.bytes[0] == 0)
        turn(&s);
    if (we_close)
        sl_process_close_input(s.process);
    else
        (void)sl_process_write(s.process, "3\n", 2);
    sl_process_notify(s.process, SL_STR("go\n"));
    while (!s.has_ended)
        turn(&s);
    clear_stage(&s);
    return s.end.read_bytes;
}

TEST(process_its_end_tells_how_much_of_its_input_was_read)
{
    EXPECT_EQ(read_bytes_of("read -r l; echo read; read -r go <&3; exit 0", false), 4);
    EXPECT_EQ(read_bytes_of("read -r l; exec <&-; echo closed; read -r go <&3; exit 0", false), 4);
    EXPECT_EQ(read_bytes_of("read -r l; echo read; read -r go <&3; exit 0", true), 6);
}

TEST(process_it_may_be_freed_from_inside_of_its_output)
{
    stage s;

    set_stage(&s);
    s.wants_free = true;
    EXPECT_OK(start_program(&s, "/bin/sh", "echo hello; exec sleep 1000"));
    while (s.process != NULL)
        turn(&s);
    clear_stage(&s);
    EXPECT(!s.has_ended);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

TEST(process_a_signal_goes_to_the_whole_group)
{
    stage s;

    start_shell(&s, "trap 'echo leader' TERM; sh -c 'trap \"echo member; exit\" TERM; echo ready; while :; "
                    "do sleep 0.01; "
                    "done' & wait; wait; exit 5");
    while (s.bytes[0] == 0)
        turn(&s);
    sl_process_kill(s.process, SIGTERM);
    while (!s.has_ended)
        turn(&s);
    EXPECT(strstr(s.text[0], "leader\n") != NULL);
    EXPECT(strstr(s.text[0], "member\n") != NULL);
    EXPECT_EQ(s.end.code, 5);
    clear_stage(&s);
}

/* A child that this test made itself, once in our session and once in one of its own. */
static pid_t fork_waiting(void)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    for (;;)
        pause();
}

/* A thousand handlers that end at the same time must not read the list of all children a thousand times. */
TEST(process_many_sweeps_are_one_look_at_the_end_of_the_turn)
{
    sl_orphans orphans;
    stage s;

    EXPECT(sl_process_adopt_orphans());
    set_stage(&s);
    sl_orphans_init(&orphans, s.loop);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 1000; i++)
            sl_orphans_sweep(&orphans);
        EXPECT_EQ(orphans.looks, (uint64_t)round - 1);
        while (orphans.looks < (uint64_t)round)
            turn(&s);
        EXPECT_EQ(orphans.looks, (uint64_t)round);
    }
    sl_orphans_done(&orphans, handler_rig_later_ns());
    EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0); /* other tests have orphans too */
    clear_stage(&s);
}

TEST(process_children_of_other_code_are_no_orphans)
{
    sl_orphans orphans;
    pid_t pid;
    stage s;

    EXPECT(sl_process_adopt_orphans());
    set_stage(&s);
    sl_orphans_init(&orphans, s.loop);
    pid = fork_waiting();
    sl_orphans_sweep(&orphans);
    sl_orphans_done(&orphans, handler_rig_later_ns());
    EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
    EXPECT(!sl_process_is_frozen(pid));
    EXPECT_EQ(kill(pid, SIGSTOP), 0);
    EXPECT_EQ(waitpid(pid, NULL, WUNTRACED), pid);
    EXPECT(sl_process_is_frozen(pid));
    EXPECT_EQ(kill(pid, SIGKILL), 0);
    EXPECT_EQ(waitpid(pid, NULL, 0), pid);
    EXPECT(!sl_process_is_frozen(pid));
    EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0); /* other tests have orphans too */
    clear_stage(&s);
}

/* Whoever forked it waits for it, if only later. */
TEST(process_dead_children_of_other_code_are_not_reaped)
{
    sl_orphans orphans;
    siginfo_t info;
    pid_t pid;
    stage s;

    EXPECT(sl_process_adopt_orphans());
    set_stage(&s);
    sl_orphans_init(&orphans, s.loop);
    pid = fork();
    if (pid == 0)
        _exit(7);
    EXPECT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    sl_timer_set(&orphans.reaper, sl_loop_now_ns(s.loop));
    while (orphans.reaper.is_set)
        turn(&s);
    sl_orphans_done(&orphans, handler_rig_later_ns());
    EXPECT_EQ(waitpid(pid, NULL, WNOHANG), pid);
    EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0); /* other tests have orphans too */
    clear_stage(&s);
}

/* A program that runs, and what has lost its parent below it: one that is dead, one that lives, and one that lives in a session of its
 * own. All three are our children now. */
typedef struct brood {
    stage s;
    sl_orphans orphans;
    pid_t dead, lives, apart;
} brood;

static pid_t pid_after(stage *s, const char *word)
{
    const char *at;

    while ((at = strstr(s->text[0], word)) == NULL || strchr(at, '\n') == NULL)
        turn(s);
    return (pid_t)strtol(at + strlen(word), NULL, 10);
}

static void start_brood(brood *b)
{
    siginfo_t info;

    EXPECT(sl_process_adopt_orphans());
    start_shell(&b->s, "(sleep 1000 & echo dead $!; sleep 1000 & echo lives $!); "
                       "setsid -f sh -c 'echo apart $$; exec sleep 1000'; echo all; read -r go <&3");
    sl_orphans_init(&b->orphans, b->s.loop);
    b->dead = pid_after(&b->s, "dead ");
    b->lives = pid_after(&b->s, "lives ");
    b->apart = pid_after(&b->s, "apart ");
    (void)pid_after(&b->s, "all"); /* so their parent is gone, and could not reap it */
    EXPECT_EQ(kill(b->dead, SIGKILL), 0);
    EXPECT_EQ(waitid(P_PID, (id_t)b->dead, &info, WEXITED | WNOWAIT), 0);
}

static void end_brood(brood *b)
{
    sl_process_free(b->s.process, handler_rig_later_ns());
    sl_orphans_done(&b->orphans, handler_rig_later_ns());
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0); /* other tests have orphans too */
    clear_stage(&b->s);
}

static bool is_reaped(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static bool is_our_living_child(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

/* A handler that lives for weeks and starts something in the background for each message. */
TEST(process_the_dead_of_a_program_that_runs_are_reaped_and_the_living_left_alone)
{
    brood b;

    start_brood(&b);
    sl_orphans_sweep(&b.orphans);
    while (b.orphans.looks == 0)
        turn(&b.s);
    EXPECT(is_reaped(b.dead));
    EXPECT(is_our_living_child(b.lives));
    EXPECT(!b.s.has_ended);
    end_brood(&b);
}

static void ring_reaper(brood *b)
{
    const uint64_t now_ns = sl_loop_now_ns(b->s.loop);

    sl_timer_set(&b->orphans.reaper, now_ns);
    while (b->orphans.reaper.is_set && b->orphans.reaper.at_ns == now_ns)
        turn(&b->s);
}

TEST(process_while_a_program_runs_its_dead_are_reaped_from_time_to_time_and_nothing_is_killed)
{
    brood b;

    start_brood(&b);
    sl_orphans_watch(&b.orphans);
    EXPECT(b.orphans.reaper.is_set);
    EXPECT(b.orphans.reaper.at_ns > sl_loop_now_ns(b.s.loop));
    ring_reaper(&b);
    EXPECT(is_reaped(b.dead));
    EXPECT(is_our_living_child(b.lives));
    EXPECT(is_our_living_child(b.apart));
    EXPECT(b.orphans.reaper.is_set);
    sl_process_notify(b.s.process, SL_STR("go\n"));
    while (!b.s.has_ended)
        turn(&b.s);
    ring_reaper(&b);
    EXPECT(!b.orphans.reaper.is_set);
    end_brood(&b);
}

/* A chain of processes: the last one is stopped, the one before it says so, and all others wait. */
__attribute__((noreturn)) static void live_in_chain(int length, int says_fd)
{
    const pid_t child = fork();

    if (child == 0 && length > 1)
        live_in_chain(length - 1, says_fd);
    if (child == 0)
        (void)raise(SIGSTOP);
    else if (length == 1 && waitpid(child, NULL, WUNTRACED) == child && write(says_fd, "s", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static pid_t fork_chain(int length, int says_fd)
{
    const pid_t pid = fork();

    EXPECT(pid >= 0);
    if (pid == 0 && setpgid(0, 0) == 0)
        live_in_chain(length, says_fd);
    return pid;
}

/* The shell of a handler lives and waits, but what it waits for does not go on. */
TEST(process_that_waits_for_a_stopped_descendant_is_frozen_B8)
{
    for (int length = 1; length <= 3; length++) {
        int says[2];
        char byte;
        pid_t pid;

        EXPECT_EQ(pipe(says), 0);
        pid = fork_chain(length, says[1]);
        EXPECT_EQ(read(says[0], &byte, 1), 1);
        EXPECT(sl_process_is_frozen(pid));
        EXPECT_EQ(kill(-pid, SIGKILL), 0);
        EXPECT_EQ(waitpid(pid, NULL, 0), pid);
        EXPECT(!sl_process_is_frozen(pid));
        close(says[0]);
        close(says[1]);
    }
}

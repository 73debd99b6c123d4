/* bench/worker/pipes.c — see pipes.h. */
#include "pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t spawn_shell(const char *command, int input, int output)
{
    const char *const words[] = { "sh", "-c", command, NULL };
    posix_spawn_file_actions_t actions;
    pid_t process = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int problem =
        posix_spawn(&process, "/bin/sh", &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0)
        bench_fail("cannot start '%s': %s", command, strerror(problem));
    return process;
}

piped piped_start(const char *command)
{
    int input[2], output[2];

    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0)
        bench_fail("no pipe: %s", strerror(errno));
    const pid_t process = spawn_shell(command, input[0], output[1]);
    close(input[0]);
    close(output[1]);
    return (piped){ .process = process, .to = input[1], .from = output[0] };
}

void piped_end(piped *p)
{
    int status = 0;

    if (p->to >= 0)
        close(p->to);
    close(p->from);
    if (waitpid(p->process, &status, 0) != p->process || status != 0)
        bench_fail("a process did not end well");
}

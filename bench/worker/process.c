/* bench/worker/process.c — processes that a measurement needs beside it, and what they use. */
#include "parts.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUNNING_MAX = 8,
};

static pid_t running[RUNNING_MAX];

/* The program of the same build: build/bench/worker-child is beside build/bench/bench-worker. */
const char *child_command(const char *word)
{
    static char command[BENCH_PATH_BYTES_MAX + 64];
    char path[BENCH_PATH_BYTES_MAX];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);

    if (bytes <= 0)
        bench_fail("cannot find the program");
    path[bytes] = '\0';
    snprintf(command, sizeof command, "exec %s/worker-child %s", dirname(path), word);
    return command;
}

static void remember(pid_t process)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] == 0) {
            running[i] = process;
            return;
        }
    bench_fail("too many processes at once");
}

pid_t child_fork(void (*fn)(void *ctx), void *ctx)
{
    fflush(stdout);
    const pid_t process = fork();

    if (process < 0)
        bench_fail("cannot start a process: %s", strerror(errno));
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        fn(ctx);
        _exit(0);
    }
    remember(process);
    return process;
}

void child_end(pid_t process)
{
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] == process)
            running[i] = 0;
}

void child_end_all(void)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] != 0)
            child_end(running[i]);
}

double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        bench_fail("no memory figures of this process");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* bench/server/process.c — starting and ending the servers that are compared. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    START_SECONDS_MAX = 60, /* RabbitMQ needs ten */
    TRY_NS = 20 * 1000 * 1000,
    RUNNING_MAX = 4,
};

static pid_t running[RUNNING_MAX];

static char payload[PAYLOAD_BYTES + 1];

const char *peer_payload(void)
{
    if (payload[PAYLOAD_BYTES - 1] == '\0')
        for (uint32_t i = 0; i < PAYLOAD_BYTES; i++)
            payload[i] = (char)('a' + i * 7 % 26);
    return payload;
}

void peer_payload_mark(uint64_t number)
{
    char digits[17];

    (void)peer_payload();
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)number);
    memcpy(payload, digits, 16);
}

/* Good until the next call; NULL when it is not there. */
const char *peer_program(const char *name)
{
    static const char *const places[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/lib/rabbitmq/bin",
                                          "/usr/lib/postgresql/15/bin" };
    static char path[BENCH_PATH_BYTES_MAX];

    for (size_t i = sizeof places / sizeof places[0]; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", places[i], name);
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

bool peer_available(const peer_kind *kind)
{
    return kind->program == NULL || peer_program(kind->program) != NULL;
}

/* --- ports --- */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

uint16_t peer_free_port(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) < 0)
        bench_fail("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(address.sin_port);
}

static int try_connect(uint16_t port)
{
    const struct sockaddr_in address = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return fd;
    }
    close(fd);
    return -1;
}

int peer_connect(peer *p)
{
    const double end_s = bench_now_s() + START_SECONDS_MAX;
    const struct timespec step = { .tv_nsec = TRY_NS };

    while (bench_now_s() < end_s) {
        const int fd = try_connect(p->port);

        if (fd >= 0)
            return fd;
        bench_check();
        if (waitpid(p->process, NULL, WNOHANG) == p->process)
            bench_fail("%s ended instead of starting; see %s/log", p->kind->name, p->folder);
        nanosleep(&step, NULL);
    }
    bench_fail("%s does not accept connections", p->kind->name);
}

/* --- processes --- */

static void remember(pid_t process)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] == 0) {
            running[i] = process;
            return;
        }
    bench_fail("too many servers at once");
}

static void forget(pid_t process)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] == process)
            running[i] = 0;
}

/* In the child: its own group, so that what it starts ends with it; its output in a file; then it becomes the server. */
static void become(const peer *p, const char *const *words, const char *const *environment)
{
    char log[BENCH_PATH_BYTES_MAX + 8];

    setpgid(0, 0);
    snprintf(log, sizeof log, "%s/log", p->folder);
    const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (chdir(p->folder) < 0 || fd < 0)
        _exit(126);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    for (; environment != NULL && *environment != NULL; environment += 2)
        setenv(environment[0], environment[1], 1);
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(127);
}

void peer_spawn(peer *p, const char *const *words, const char *const *environment)
{
    const pid_t process = fork();

    if (process < 0)
        bench_fail("cannot start %s: %s", words[0], strerror(errno));
    if (process == 0)
        become(p, words, environment);
    setpgid(process, process);
    p->process = process;
    remember(process);
}

bool peer_ended_well(peer *p)
{
    int status = 0;
    const bool ended = waitpid(p->process, &status, 0) == p->process;

    forget(p->process);
    return ended && status == 0;
}

double peer_cpu_s(const peer *p)
{
    char path[64];
    unsigned long user = 0, system = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)p->process);
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        user = system = 0;
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void end_process(pid_t process)
{
    kill(-process, SIGTERM);
    for (int i = 0; i < 500; i++) {
        const struct timespec step = { .tv_nsec = TRY_NS };

        if (waitpid(process, NULL, WNOHANG) != 0)
            break;
        nanosleep(&step, NULL);
    }
    kill(-process, SIGKILL);
    waitpid(process, NULL, WNOHANG);
    forget(process);
}

void peer_end_all(void)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (running[i] != 0) {
            kill(-running[i], SIGKILL);
            waitpid(running[i], NULL, 0);
        }
}

void peer_start(peer *p, const peer_kind *kind)
{
    *p = (peer){ .kind = kind, .port = peer_free_port() };
    snprintf(p->folder, sizeof p->folder, "%s", bench_path(kind->name));
    bench_folder_remove(p->folder);
    bench_folder_make(p->folder);
    kind->start(p);
}

void peer_stop(peer *p)
{
    p->kind->stop(p);
    if (p->process != 0)
        end_process(p->process);
    bench_folder_remove(p->folder);
}

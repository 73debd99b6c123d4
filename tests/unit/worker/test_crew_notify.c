/* tests/unit/worker/test_crew_notify.c — what systemd hears of a crew: that it is ready, lives, and stops. */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "crew_rig.h"

static int listen_as_systemd(char *name, size_t name_bytes)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int bytes = snprintf(name, name_bytes, "@sluice-crew-%ld", (long)getpid());

    EXPECT(fd >= 0);
    memcpy(address.sun_path + 1, name + 1, (size_t)bytes - 1);
    EXPECT_EQ(bind(fd, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)bytes)),
              0);
    return fd;
}

static void hear_all(int fd, sl_text *heard)
{
    char words[512];
    ssize_t bytes;

    while ((bytes = recv(fd, words, sizeof words, MSG_DONTWAIT)) > 0)
        sl_text_add_str(heard, (sl_str){ words, (size_t)bytes });
}

TEST(systemd_hears_of_readiness_life_and_the_end)
{
    char name[64], buffer[4096];
    crew_rig rig;
    sl_text heard;
    int fd;

    fd = listen_as_systemd(name, sizeof name);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    crew_rig_init(&rig, 1);
    rig.settings.notify_systemd = true;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    sl_text_init(&heard, buffer, sizeof buffer);
    hear_all(fd, &heard);
    EXPECT_STR(buffer, "WATCHDOG=1\nREADY=1\nSTATUS=1 worker is up\nSTOPPING=1\nSTATUS=draining: SIGTERM\n");
    close(fd);
    crew_rig_done(&rig);
}

enum {
    WATCHED_TIMES = 4
};

typedef struct watched {
    int fd;
    uint32_t before_drain, in_drain; /* how often the watchdog was told */
    bool is_ready, is_stopping;
} watched;

/* One datagram. False: there was none for too long. */
static bool hear_one(watched *w)
{
    char words[512];
    const ssize_t bytes = recv(w->fd, words, sizeof words - 1, 0);

    if (bytes <= 0)
        return false;
    words[bytes] = '\0';
    if (strcmp(words, "WATCHDOG=1\n") == 0)
        (*(w->is_stopping ? &w->in_drain : &w->before_drain))++;
    w->is_ready = w->is_ready || strncmp(words, "READY=1\n", 8) == 0;
    w->is_stopping = w->is_stopping || strncmp(words, "STOPPING=1\n", 11) == 0;
    return true;
}

static void *watch_as_systemd(void *ctx)
{
    crew_rig *const rig = ctx;
    watched *const w = rig->test;

    while ((!w->is_ready || w->before_drain < WATCHED_TIMES) && hear_one(w))
        ;
    raise(SIGTERM);
    while ((!w->is_stopping || w->in_drain < WATCHED_TIMES) && hear_one(w))
        ;
    crew_let_all_go(rig);
    return NULL;
}

static void start_watching(crew_rig *rig, const char *address)
{
    (void)address;
    crew_rig_client(rig, watch_as_systemd);
}

/* Work is held until the last of them was heard. */
TEST(the_watchdog_is_told_again_and_again_also_in_a_drain)
{
    const sl_budget_wish wish = { .grace_ns = UINT64_C(600000000000) };
    const struct timeval patience = { .tv_sec = 20 };
    watched w = { 0 };
    crew_rig rig;
    char name[64];

    w.fd = listen_as_systemd(name, sizeof name);
    EXPECT_EQ(setsockopt(w.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "40000", 1);
    crew_rig_init(&rig, 1);
    EXPECT_OK(sl_budget_make(&wish, &rig.members[0].settings.budget));
    rig.test = &w;
    rig.settings.notify_systemd = true;
    rig.scripts[0].jobs = 1;
    rig.scripts[0].holds = true;
    rig.when_ready = start_watching;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    EXPECT(w.is_ready && w.is_stopping);
    EXPECT(w.before_drain >= WATCHED_TIMES);
    EXPECT(w.in_drain >= WATCHED_TIMES);
    close(w.fd);
    crew_rig_done(&rig);
}

TEST(a_systemd_socket_that_cannot_be_used_stops_nothing_S3_22)
{
    crew_rig rig;

    setenv("NOTIFY_SOCKET", "vsock:1:2", 1);
    crew_rig_init(&rig, 1);
    rig.settings.notify_systemd = true;
    rig.when_ready = crew_raise_term;
    EXPECT_EQ(crew_rig_run(&rig), SL_CREW_CLEAN);
    unsetenv("NOTIFY_SOCKET");
    EXPECT(crew_rig_logged(&rig, "systemd will not be told anything"));
    crew_rig_done(&rig);
}

/* tests/unit/net/test_notify.c — words to the program that started this one. */
#include "test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "net/notify.h"

/* A socket as systemd would have it; address as in $NOTIFY_SOCKET. */
static int listen_at(const char *address)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const size_t bytes = strlen(address);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    EXPECT(fd >= 0);
    memcpy(name.sun_path, address, bytes);
    if (address[0] == '@')
        name.sun_path[0] = '\0';
    EXPECT_EQ(bind(fd, (struct sockaddr *)&name,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + (address[0] == '/'))),
              0);
    return fd;
}

static void expect_words(int fd, const char *wanted)
{
    char words[256] = "";
    const ssize_t bytes = recv(fd, words, sizeof words - 1, MSG_DONTWAIT);

    EXPECT_EQ(bytes, strlen(wanted));
    EXPECT_STR(words, wanted);
}

static void expect_delivery(const char *address)
{
    const int fd = listen_at(address);
    sl_notify *notify = NULL;

    EXPECT_OK(sl_notify_new(address, &notify));
    EXPECT_OK(sl_notify_send(notify, SL_STR("READY=1\n")));
    EXPECT_OK(sl_notify_send(notify, SL_STR("STATUS=up\nWATCHDOG=1\n")));
    expect_words(fd, "READY=1\n");
    expect_words(fd, "STATUS=up\nWATCHDOG=1\n");
    close(fd);
    sl_notify_free(notify);
}

TEST(words_reach_a_notify_socket_that_is_a_file)
{
    char folder[] = "/tmp/sluice-notify-XXXXXX", path[64];

    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    expect_delivery(path);
    unlink(path);
    rmdir(folder);
}

TEST(words_reach_a_notify_socket_without_a_file)
{
    char name[64];

    snprintf(name, sizeof name, "@sluice-notify-%ld", (long)getpid());
    expect_delivery(name);
}

TEST(a_notify_address_that_is_none_is_refused)
{
    char too_long[300];
    sl_notify *notify = NULL;

    memset(too_long, 'x', sizeof too_long);
    too_long[0] = '/';
    too_long[sizeof too_long - 1] = '\0';
    EXPECT_ERR(sl_notify_new("", &notify), SL_ERR_INVALID);
    EXPECT_ERR(sl_notify_new("@", &notify), SL_ERR_INVALID);
    EXPECT_ERR(sl_notify_new("relative/path", &notify), SL_ERR_INVALID);
    EXPECT_ERR(sl_notify_new("vsock:2:1234", &notify), SL_ERR_INVALID);
    EXPECT_ERR(sl_notify_new(too_long, &notify), SL_ERR_INVALID);
    EXPECT(notify == NULL);
}

TEST(words_that_nobody_hears_are_an_error_and_no_signal)
{
    sl_notify *notify = NULL;

    EXPECT_OK(sl_notify_new("/nowhere/at/all", &notify));
    EXPECT_ERR(sl_notify_send(notify, SL_STR("READY=1\n")), SL_ERR_IO);
    sl_notify_free(notify);
}

/* What nobody reads must not stop the loop: the word is lost instead. */
TEST(words_that_nobody_reads_do_not_block)
{
    char name[64];
    sl_notify *notify = NULL;
    sl_err err = SL_OK;
    int fd;

    snprintf(name, sizeof name, "@sluice-notify-full-%ld", (long)getpid());
    fd = listen_at(name);
    EXPECT_OK(sl_notify_new(name, &notify));
    for (int i = 0; i < 100000 && err == SL_OK; i++)
        err = sl_notify_send(notify, SL_STR("WATCHDOG=1\n"));
    EXPECT_ERR(err, SL_ERR_IO);
    close(fd);
    sl_notify_free(notify);
}

static bool is_local_four(const char *text)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return sl_peer_is_local((struct sockaddr *)&address);
}

static bool is_local_six(const char *text)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6 };

    EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    return sl_peer_is_local((struct sockaddr *)&address);
}

TEST(only_loopback_peers_are_local)
{
    EXPECT(is_local_four("127.0.0.1"));
    EXPECT(is_local_four("127.8.9.10"));
    EXPECT(!is_local_four("10.0.0.127"));
    EXPECT(!is_local_four("0.0.0.0"));
    EXPECT(is_local_six("::1"));
    EXPECT(is_local_six("::ffff:127.0.0.1"));
    EXPECT(!is_local_six("::ffff:10.0.0.1"));
    EXPECT(!is_local_six("7f00::1"));
    EXPECT(!sl_peer_is_local(NULL));
}

/* tests/tools/jitter.c — delays threads at random, where one of them hands over to another: a library to preload.
 *
 *     LD_PRELOAD=build/tests/tools/libjitter.so JITTER_SEED=7 build/tests/unit/unit 'a_drain_*'
 *
 * What a quiet machine does in one order nearly always, a busy one does in the other now and then: a test that takes the usual order for
 * granted fails once in hundreds of runs. Here it fails within a few. Nothing that is right may depend on these delays, so each
 * failure is a fault of the program or of the test. `tools/test --jitter SEED PART...` runs whole parts with it.
 *
 * One call in ONE_IN waits for up to SHORT_US; one in LONG_IN of these for up to LONG_US. A thread that begins, and whoever made it, is
 * delayed much more often: that is where most wrong orders are. The seed and the thread's number decide; a run cannot be repeated
 * exactly, because the kernel has its say as well. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    ONE_IN = 30,
    LONG_IN = 10,
    BEGIN_ONE_IN = 4,
    SHORT_US = 300,
    LONG_US = 8000
};

static __thread uint64_t state;

static uint64_t seed(void)
{
    const char *const text = getenv("JITTER_SEED");
    const uint64_t given = text == NULL ? 0 : strtoull(text, NULL, 10);

    return (given + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)gettid() * UINT64_C(0xD1B54A32D192ED03);
}

static uint64_t draw(uint64_t below)
{
    while (state == 0)
        state = seed();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* By the system call itself: nanosleep() of the library is a place where a thread may be cancelled. */
static void delay(uint64_t one_in)
{
    const int error = errno;
    struct timespec pause = { 0 };

    if (draw(one_in) != 0)
        return;
    pause.tv_nsec = (long)draw(draw(LONG_IN) == 0 ? LONG_US : SHORT_US) * 1000;
    (void)syscall(SYS_nanosleep, &pause, NULL);
    errno = error;
}

/* The next definition of a function, found once; `version` because of some there are two in the C library. */
static void *next(void **cache, const char *name, const char *version)
{
    void *found = __atomic_load_n(cache, __ATOMIC_RELAXED);

    if (found != NULL)
        return found;
    found = version == NULL ? NULL : dlvsym(RTLD_NEXT, name, version);
    if (found == NULL)
        found = dlsym(RTLD_NEXT, name);
    __atomic_store_n(cache, found, __ATOMIC_RELAXED);
    return found;
}

/* Declares `real`, the function behind ours. ISO C has no conversion between the two kinds of pointers, dlsym() needs one. */
#define REAL(result, name, version, ...)                                                                     \
    static void *cache_;                                                                                     \
    result (*real)(__VA_ARGS__);                                                                             \
    *(void **)&real = next(&cache_, #name, version)

#define DELAYED_BEFORE(result, name, parameters, arguments, ...)                                             \
    result name parameters                                                                                   \
    {                                                                                                        \
        REAL(result, name, NULL, __VA_ARGS__);                                                               \
        delay(ONE_IN);                                                                                       \
        return real arguments;                                                                               \
    }

#define DELAYED_AFTER(result, name, version, parameters, arguments, ...)                                     \
    result name parameters                                                                                   \
    {                                                                                                        \
        result answer_;                                                                                      \
        REAL(result, name, version, __VA_ARGS__);                                                            \
        answer_ = real arguments;                                                                            \
        delay(ONE_IN);                                                                                       \
        return answer_;                                                                                      \
    }

/* --- locks --- */

DELAYED_BEFORE(int, pthread_mutex_lock, (pthread_mutex_t * lock), (lock), pthread_mutex_t *)
DELAYED_AFTER(int, pthread_mutex_unlock, NULL, (pthread_mutex_t * lock), (lock), pthread_mutex_t *)
DELAYED_AFTER(int, pthread_cond_wait, "GLIBC_2.3.2", (pthread_cond_t * changed, pthread_mutex_t *lock),
              (changed, lock), pthread_cond_t *, pthread_mutex_t *)
DELAYED_AFTER(int, pthread_cond_timedwait, "GLIBC_2.3.2",
              (pthread_cond_t * changed, pthread_mutex_t *lock, const struct timespec *until),
              (changed, lock, until), pthread_cond_t *, pthread_mutex_t *, const struct timespec *)

/* --- files and sockets --- */

DELAYED_BEFORE(ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes), int, void *, size_t)
DELAYED_BEFORE(ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes), int, const void *,
               size_t)
DELAYED_BEFORE(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), int,
               const struct iovec *, int)
DELAYED_BEFORE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), int,
               const struct msghdr *, int)
DELAYED_BEFORE(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags),
               (fd, from, bytes, flags), int, struct sockaddr *, socklen_t *, int)
DELAYED_AFTER(int, fdatasync, NULL, (int fd), (fd), int)
DELAYED_AFTER(int, epoll_wait, NULL, (int fd, struct epoll_event *events, int count, int timeout_ms),
              (fd, events, count, timeout_ms), int, struct epoll_event *, int, int)
DELAYED_AFTER(int, epoll_pwait, NULL,
              (int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask),
              (fd, events, count, timeout_ms, mask), int, struct epoll_event *, int, int, const sigset_t *)

/* --- threads --- */

typedef struct beginning {
    void *(*run)(void *arg);
    void *arg;
} beginning;

static void *begin_late(void *made)
{
    const beginning begin = *(beginning *)made;

    free(made);
    delay(BEGIN_ONE_IN);
    return begin.run(begin.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *arg), void *arg)
{
    beginning *const begin = malloc(sizeof *begin);
    int error;
    REAL(int, pthread_create, "GLIBC_2.34", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (begin == NULL)
        return EAGAIN;
    *begin = (beginning){ run, arg };
    error = real(thread, attributes, begin_late, begin);
    if (error != 0)
        free(begin);
    delay(BEGIN_ONE_IN);
    return error;
}

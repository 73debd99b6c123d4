/* tests/faults/system.c — see system.h. */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic uint64_t calls, fail_at = UINT64_MAX, tiresome_calls;
static _Atomic int fail_error;
static _Atomic bool failed, is_tiresome;

void system_fail_after(uint64_t count, int error)
{
    failed = false;
    fail_error = error;
    fail_at = count == UINT64_MAX ? UINT64_MAX : calls + count;
}

bool system_failed(void)
{
    return failed;
}

void system_be_tiresome(bool tiresome)
{
    is_tiresome = tiresome;
}

/* Counts a call. True: it fails, and errno says how. */
static bool fails(void)
{
    if (atomic_fetch_add(&calls, 1) != fail_at)
        return false;
    failed = true;
    errno = fail_error;
    return true;
}

/* How much of a read or write is done; 0: it is interrupted. */
static size_t part_of(size_t bytes)
{
    const uint64_t number = is_tiresome ? atomic_fetch_add(&tiresome_calls, 1) : 0;

    if (!is_tiresome)
        return bytes;
    if (number % 3 == 2) {
        errno = EINTR;
        return 0;
    }
    return bytes < 2 ? bytes : 1 + (size_t)(number * 7919 % (bytes - 1));
}

/* The two names of a call are those for small and large files; which one a program uses is the compiler's choice. */
#define WRITES(name)                                                                                         \
    ssize_t __real_##name(int fd, const void *data, size_t bytes, off_t offset);                             \
    ssize_t __wrap_##name(int fd, const void *data, size_t bytes, off_t offset);                             \
    ssize_t __wrap_##name(int fd, const void *data, size_t bytes, off_t offset)                              \
    {                                                                                                        \
        const size_t part = part_of(bytes);                                                                  \
        if (fails()) {                                                                                       \
            const int error = errno;                                                                         \
            if (error != EINTR && bytes > 1)                                                                 \
                (void)!__real_##name(fd, data, bytes / 2, offset);                                           \
            errno = error;                                                                                   \
            return -1;                                                                                       \
        }                                                                                                    \
        return part == 0 && bytes > 0 ? -1 : __real_##name(fd, data, part, offset);                          \
    }

#define READS(name)                                                                                          \
    ssize_t __real_##name(int fd, void *data, size_t bytes, off_t offset);                                   \
    ssize_t __wrap_##name(int fd, void *data, size_t bytes, off_t offset);                                   \
    ssize_t __wrap_##name(int fd, void *data, size_t bytes, off_t offset)                                    \
    {                                                                                                        \
        const size_t part = part_of(bytes);                                                                  \
        return fails() || (part == 0 && bytes > 0) ? -1 : __real_##name(fd, data, part, offset);             \
    }

#define READS_NOW(name)                                                                                      \
    ssize_t __real_##name(int fd, const struct iovec *parts, int count, off_t offset, int flags);            \
    ssize_t __wrap_##name(int fd, const struct iovec *parts, int count, off_t offset, int flags);            \
    ssize_t __wrap_##name(int fd, const struct iovec *parts, int count, off_t offset, int flags)             \
    {                                                                                                        \
        const struct iovec less = { parts[0].iov_base, part_of(parts[0].iov_len) };                          \
        if (fails() || (less.iov_len == 0 && parts[0].iov_len > 0))                                          \
            return -1;                                                                                       \
        return __real_##name(fd, count == 1 ? &less : parts, count, offset, flags);                          \
    }

#define SYNCS(name)                                                                                          \
    int __real_##name(int fd);                                                                               \
    int __wrap_##name(int fd);                                                                               \
    int __wrap_##name(int fd)                                                                                \
    {                                                                                                        \
        return fails() ? -1 : __real_##name(fd);                                                             \
    }

#define OPENS(name)                                                                                          \
    int __real_##name(int fd, const char *path, int flags, mode_t mode);                                     \
    int __wrap_##name(int fd, const char *path, int flags, ...);                                             \
    int __wrap_##name(int fd, const char *path, int flags, ...)                                              \
    {                                                                                                        \
        va_list arguments;                                                                                   \
        mode_t mode = 0;                                                                                     \
        va_start(arguments, flags);                                                                          \
        if ((flags & O_CREAT) != 0)                                                                          \
            mode = va_arg(arguments, mode_t);                                                                \
        va_end(arguments);                                                                                   \
        return fails() ? -1 : __real_##name(fd, path, flags, mode);                                          \
    }

WRITES(pwrite)
WRITES(pwrite64)
READS(pread)
READS(pread64)
READS_NOW(preadv2)
READS_NOW(preadv64v2)
SYNCS(fsync)
SYNCS(fdatasync)
OPENS(openat)
OPENS(openat64)

int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return fails() ? -1 : __real_renameat(from_fd, from, to_fd, to);
}

int __real_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags)
{
    return fails() ? -1 : __real_unlinkat(fd, path, flags);
}

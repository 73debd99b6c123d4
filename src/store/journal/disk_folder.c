/* store/journal/disk_folder.c — a disk that is a folder of the file system. */
#include "store/journal/disk.h"

#include "base/cleanup.h"

#include "base/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct folder {
    sl_disk base;
    int fd, lock_fd;
    int access; /* O_RDWR or O_RDONLY: how files are opened */
} folder;

typedef struct folder_file {
    sl_file base;
    int fd;
    uint64_t bytes;
} folder_file;

enum {
    ZERO_BLOCK_BYTES = 1 << 20,
    PACED_BLOCK_BYTES = 1 << 18, /* so little that a sync of somebody else hardly notices */
};

static folder *folder_of(sl_disk *disk)
{
    return SL_CONTAINER_OF(disk, folder, base);
}

static folder_file *file_of(sl_file *file)
{
    return SL_CONTAINER_OF(file, folder_file, base);
}

static sl_err error_of(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT: return SL_ERR_NO_SPACE;
    case ENOENT: return SL_ERR_NOT_FOUND;
    case ENOMEM: return SL_ERR_NOMEM;
    case EMFILE:
    case ENFILE: return SL_ERR_OPEN_FILES;
    default: return SL_ERR_IO;
    }
}

/* --- the lock --- */

enum {
    LOCK_TEXT_BYTES = 32 /* more than a number and a line end need */
};

/* What a server writes into the lock file is its number and a line end. One that was killed in between, or lost its power, leaves any part
 * of that, or zeros. False: somebody else has a file of this name. What cannot be read is not taken for his. */
static bool read_holder(int fd, uint64_t *ret_pid)
{
    char text[LOCK_TEXT_BYTES] = { 0 };
    const ssize_t bytes = pread(fd, text, sizeof text - 1, 0);

    *ret_pid = strtoull(text, NULL, 10);
    for (ssize_t i = 0; i < bytes; i++)
        if (text[i] != '\0' && strchr("0123456789\n", text[i]) == NULL)
            return false;
    return bytes < (ssize_t)sizeof text - 1;
}

/* The lock file keeps the number of its holder, so that the message can name it. */
static sl_err folder_lock(sl_disk *disk, uint64_t *ret_pid)
{
    folder *const f = folder_of(disk);
    char text[LOCK_TEXT_BYTES];
    int length;

    f->lock_fd = openat(f->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->lock_fd < 0)
        return error_of(errno);
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        const int number = errno;

        (void)read_holder(f->lock_fd, ret_pid);
        return number == EWOULDBLOCK || number == EINTR ? SL_ERR_LOCKED : SL_ERR_IO;
    }
    if (!read_holder(f->lock_fd, ret_pid))
        return SL_ERR_EXISTS;
    length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(f->lock_fd, 0) < 0)
        return SL_ERR_IO;
    (void)!pwrite(f->lock_fd, text, (size_t)length, 0);
    return SL_OK;
}

bool sl_disk_folder_is_held(const char *path, uint64_t *ret_pid)
{
    const int folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = folder_fd < 0 ? -1 : openat(folder_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_held = false;

    if (fd >= 0) {
        is_held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        (void)read_holder(fd, ret_pid);
        close(fd);
    }
    if (folder_fd >= 0)
        close(folder_fd);
    return is_held;
}

/* --- names and files --- */

static sl_err folder_list(sl_disk *disk, sl_name_fn *fn, void *ctx)
{
    const int fd = openat(folder_of(disk)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    sl_err err;

    if (dir == NULL) {
        err = error_of(errno);
        if (fd >= 0)
            close(fd);
        return err;
    }
    while (errno = 0, (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            fn(ctx, entry->d_name);
    err = errno == 0 ? SL_OK : SL_ERR_IO; /* half a list would be taken for a shorter journal */
    closedir(dir);
    return err;
}

static void file_close(sl_file *file)
{
    folder_file *const f = file_of(file);

    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static sl_err open_with(sl_disk *disk, const char *name, int flags, folder_file **ret_file)
{
    folder_file *const f = malloc(sizeof *f);
    struct stat status;

    if (f == NULL)
        return SL_ERR_NOMEM;
    *f = (folder_file){ .base = { .disk = disk } };
    f->fd = openat(folder_of(disk)->fd, name, flags | folder_of(disk)->access | O_CLOEXEC, 0600);
    if (f->fd < 0 || fstat(f->fd, &status) < 0) {
        const sl_err err = error_of(errno);
        file_close(&f->base);
        return err;
    }
    f->bytes = (uint64_t)status.st_size;
    *ret_file = f;
    return SL_OK;
}

static sl_err file_open(sl_disk *disk, const char *name, sl_file **ret_file)
{
    folder_file *f = NULL;
    const sl_err err = open_with(disk, name, 0, &f);

    if (err == SL_OK)
        *ret_file = &f->base;
    return err;
}

static sl_err file_write(sl_file *file, uint64_t offset, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    while (bytes > 0) {
        const ssize_t n = pwrite(file_of(file)->fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? SL_ERR_IO : error_of(errno);
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    if (offset > file_of(file)->bytes)
        file_of(file)->bytes = offset;
    return SL_OK;
}

static sl_err file_read(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    uint8_t *at = data;

    while (bytes > 0) {
        const ssize_t n = pread(file_of(file)->fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return SL_ERR_IO;
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return SL_OK;
}

/* A page that is not in memory gives EAGAIN or a shorter count; a file system that does not know the flag EOPNOTSUPP. All
 * of that is for whoever may wait. */
static sl_err file_read_now(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    const struct iovec part = { data, bytes };
    const ssize_t n = preadv2(file_of(file)->fd, &part, 1, (off_t)offset, RWF_NOWAIT);

    return n == (ssize_t)bytes ? SL_OK : SL_ERR_AGAIN;
}

static sl_err file_sync(sl_file *file)
{
    return fdatasync(file_of(file)->fd) < 0 ? error_of(errno) : SL_OK;
}

static sl_err sync_folder(sl_disk *disk)
{
    return fsync(folder_of(disk)->fd) < 0 ? SL_ERR_IO : SL_OK;
}

/* Written, not only reserved: the first write to a reserved block costs a transaction of the file system with its
 * sync, a written one does not (shared measurements, section 0). */
static void write_out(sl_file *file, uint64_t offset, uint64_t bytes)
{
    (void)sync_file_range(file_of(file)->fd, (off_t)offset, (off_t)bytes,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

static sl_err fill_with_zeros(sl_file *file, uint64_t bytes, const sl_pace *pace)
{
    const size_t piece = pace == NULL ? ZERO_BLOCK_BYTES : PACED_BLOCK_BYTES;
    uint8_t *const zeros = calloc(1, piece);
    sl_err err = zeros == NULL ? SL_ERR_NOMEM : SL_OK;

    for (uint64_t done = 0; done < bytes && err == SL_OK; done += piece) {
        err = file_write(file, done, zeros, sl_min_u64(bytes - done, piece));
        if (err == SL_OK && pace != NULL) {
            write_out(file, done, piece);
            pace->rest(pace->ctx, done + piece);
        }
    }
    free(zeros);
    return err;
}

/* A full disk says so before anything is written. File systems that cannot tell are asked by writing. */
static sl_err take_room(int fd, uint64_t bytes)
{
    const int number = posix_fallocate(fd, 0, (off_t)bytes);

    return number == ENOSPC || number == EDQUOT || number == EFBIG ? SL_ERR_NO_SPACE : SL_OK;
}

static sl_err file_create(sl_disk *disk, const char *name, uint64_t bytes, const sl_pace *pace,
                          sl_file **ret_file)
{
    folder_file *f = NULL;
    sl_err err = open_with(disk, name, O_CREAT | O_EXCL, &f);

    if (err != SL_OK)
        return err;
    f->bytes = bytes;
    err = bytes > 0 ? take_room(f->fd, bytes) : SL_OK;
    if (err == SL_OK)
        err = fill_with_zeros(&f->base, bytes, pace);
    if (err == SL_OK && fsync(f->fd) < 0)
        err = error_of(errno);
    if (err == SL_OK)
        err = sync_folder(disk);
    if (err != SL_OK) {
        unlinkat(folder_of(disk)->fd, name,
                 0); /* a half-made file helps nobody; what could go wrong went wrong */
        file_close(&f->base);
        return err;
    }
    *ret_file = &f->base;
    return SL_OK;
}

static uint64_t file_size(sl_file *file)
{
    return file_of(file)->bytes;
}

static sl_err folder_rename(sl_disk *disk, const char *from, const char *to)
{
    const int fd = folder_of(disk)->fd;

    return renameat(fd, from, fd, to) < 0 ? error_of(errno) : sync_folder(disk);
}

static sl_err folder_remove(sl_disk *disk, const char *name)
{
    return unlinkat(folder_of(disk)->fd, name, 0) < 0 ? error_of(errno) : sync_folder(disk);
}

static void folder_free(sl_disk *disk)
{
    folder *const f = folder_of(disk);

    if (f->lock_fd >= 0)
        close(f->lock_fd);
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static const sl_disk_ops folder_ops = {
    .lock = folder_lock,
    .list = folder_list,
    .open = file_open,
    .create = file_create,
    .close = file_close,
    .size = file_size,
    .write = file_write,
    .read = file_read,
    .read_now = file_read_now,
    .sync = file_sync,
    .rename = folder_rename,
    .remove = folder_remove,
    .free = folder_free,
};

/* The name of a new folder stands in the one above it. */
static sl_err sync_parent(int fd)
{
    const int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sl_err err;

    if (parent < 0)
        return error_of(errno);
    err = fsync(parent) < 0 ? SL_ERR_IO : SL_OK;
    close(parent);
    return err;
}

/* Each segment has two files, and they stay open: with the usual 1,024 that would be 32 GB. What the system allows is taken. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

sl_err sl_disk_open_folder(const char *path, sl_disk **ret_disk)
{
    folder *const f = malloc(sizeof *f);
    int number;

    if (f == NULL)
        return SL_ERR_NOMEM;
    *f = (folder){ .base = { .ops = &folder_ops }, .lock_fd = -1, .access = O_RDWR };
    number = mkdir(path, 0700) == 0 ? 0 : errno;
    f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Of a folder that could not be made, opening only says that it is not there. */
    if (f->fd < 0 && (number == 0 || number == EEXIST))
        number = errno;
    if (f->fd < 0 || (number == 0 && sync_parent(f->fd) != SL_OK)) {
        folder_free(&f->base);
        errno = number == 0 ? EIO : number;
        return SL_ERR_IO;
    }
    raise_limit();
    *ret_disk = &f->base;
    return SL_OK;
}

/* --- only to read --- */

static sl_err refuse_lock(sl_disk *disk, uint64_t *ret_pid)
{
    (void)disk;
    (void)ret_pid;
    return SL_ERR_IO;
}

static sl_err refuse_create(sl_disk *disk, const char *name, uint64_t bytes, const sl_pace *pace,
                            sl_file **ret_file)
{
    (void)disk;
    (void)name;
    (void)bytes;
    (void)pace;
    (void)ret_file;
    return SL_ERR_IO;
}

static sl_err refuse_write(sl_file *file, uint64_t offset, const void *data, size_t bytes)
{
    (void)file;
    (void)offset;
    (void)data;
    (void)bytes;
    return SL_ERR_IO;
}

static sl_err refuse_rename(sl_disk *disk, const char *from, const char *to)
{
    (void)disk;
    (void)from;
    (void)to;
    return SL_ERR_IO;
}

static sl_err refuse_remove(sl_disk *disk, const char *name)
{
    (void)disk;
    (void)name;
    return SL_ERR_IO;
}

static const sl_disk_ops reading_ops = {
    .lock = refuse_lock,
    .list = folder_list,
    .open = file_open,
    .create = refuse_create,
    .close = file_close,
    .size = file_size,
    .write = refuse_write,
    .read = file_read,
    .read_now = file_read_now,
    .sync = file_sync,
    .rename = refuse_rename,
    .remove = refuse_remove,
    .free = folder_free,
};

sl_err sl_disk_open_folder_to_read(const char *path, sl_disk **ret_disk)
{
    folder *const f = malloc(sizeof *f);

    if (f == NULL)
        return SL_ERR_NOMEM;
    *f = (folder){ .base = { .ops = &reading_ops }, .lock_fd = -1, .access = O_RDONLY };
    f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0) {
        const int number = errno;
        folder_free(&f->base);
        errno = number;
        return error_of(number);
    }
    *ret_disk = &f->base;
    return SL_OK;
}

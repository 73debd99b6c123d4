/* bench/common/folder.c — the folder that everything is written to, and the block device below it.
 *
 * The device counts the sectors that it was given, whoever gave them: what a file system and a database write beside the
 * data is in there, and so is what other programs do at the same time. */
#include "common/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    QUIET_STEPS_MAX = 20,
    QUIET_STEP_NS = 10 * 1000 * 1000,
    SECTOR_BYTES = 512, /* of these counters, whatever the device has */
};

static char folder[BENCH_PATH_BYTES_MAX / 2]; /* "" when there is none */
static char device_path[64];                  /* of its counters; "" when there is none */

/* --- files --- */

const char *bench_path(const char *name)
{
    static char path[BENCH_PATH_BYTES_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void bench_folder_make(const char *path)
{
    if (mkdir(path, 0700) < 0)
        bench_fail("cannot make %s: %s", path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    remove(path);
    return 0;
}

/* Runs also on the way out of an error, so it says nothing about what it cannot remove. */
void bench_folder_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void bench_folder_close(void)
{
    if (folder[0] != '\0')
        bench_folder_remove(folder);
    folder[0] = '\0';
}

static const char *default_parent(void)
{
    static char path[BENCH_PATH_BYTES_MAX / 4];
    const char *const wanted = getenv("TMPDIR");
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);

    if (wanted != NULL && wanted[0] != '\0')
        return wanted;
    if (bytes <= 0)
        return ".";
    path[bytes] = '\0';
    return dirname(path);
}

static void find_device(void)
{
    struct stat status;

    if (stat(folder, &status) < 0)
        bench_fail("cannot look at %s: %s", folder, strerror(errno));
    snprintf(device_path, sizeof device_path, "/sys/dev/block/%u:%u/stat", major(status.st_dev),
             minor(status.st_dev));
    if (access(device_path, R_OK) < 0)
        device_path[0] = '\0';
}

static void warn_of_memory(void)
{
    struct statfs status;

    if (statfs(folder, &status) == 0 && (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC))
        fprintf(stderr,
                "bench-%s: warning: %s is in memory; nothing here says anything about a disk. Use --folder\n",
                bench_name, folder);
}

void bench_folder_open(const char *parent)
{
    const int bytes = snprintf(folder, sizeof folder, "%s/bench-%s.XXXXXX",
                               parent == NULL ? default_parent() : parent, bench_name);

    if (bytes < 0 || (size_t)bytes >= sizeof folder || mkdtemp(folder) == NULL) {
        folder[0] = '\0';
        bench_fail("cannot make a folder in %s: %s", parent == NULL ? default_parent() : parent,
                   strerror(errno));
    }
    find_device();
    warn_of_memory();
}

void bench_need_space(uint64_t bytes)
{
    struct statvfs status;

    if (statvfs(folder, &status) < 0)
        bench_fail("cannot ask for the free space of %s: %s", folder, strerror(errno));
    const uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    if (free_bytes < bytes)
        bench_fail("%s has %" PRIu64 " MB free, this run needs %" PRIu64 "; use --folder, or make it smaller",
                   folder, free_bytes >> 20, bytes >> 20);
}

/* --- the device --- */

typedef struct counters {
    uint64_t sectors_written, in_flight;
} counters;

static bool read_counters(counters *ret_counters)
{
    FILE *const file = device_path[0] == '\0' ? NULL : fopen(device_path, "r");
    int found = 0;

    if (file == NULL)
        return false;
    found = fscanf(file, "%*u %*u %*u %*u %*u %*u %" SCNu64 " %*u %" SCNu64, &ret_counters->sectors_written,
                   &ret_counters->in_flight);
    fclose(file);
    return found == 2;
}

uint64_t bench_device_bytes(void)
{
    counters now;

    return read_counters(&now) ? now.sectors_written * SECTOR_BYTES : UINT64_MAX;
}

static void sync_folder(void)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) < 0)
        bench_fail("cannot sync %s: %s", folder, strerror(errno));
    close(fd);
}

void bench_quiet(void)
{
    const struct timespec step = { .tv_nsec = QUIET_STEP_NS };
    counters before = { 0 }, now;

    sync_folder();
    for (int i = 0; i < QUIET_STEPS_MAX; i++) {
        nanosleep(&step, NULL);
        if (!read_counters(&now) || (now.in_flight == 0 && now.sectors_written == before.sectors_written))
            return;
        before = now;
    }
}

/* bench/store/engine_raw.c — the physical limit: as many bytes as the journal writes, and nothing else.
 *
 * One write and one fdatasync for each batch, into files that were filled with zeros before. The journal fills its next
 * file in a thread beside; here it is done between two measurements, so that it costs nothing at all. */
#include "common/bench.h"
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    FILES_MAX = 16, /* that are ready; a measurement needs two or three */
    CHUNK_BYTES = 1024 * 1024,
    BATCH_BYTES_MAX = 4 * 1024 * 1024,
};

struct bench_engine {
    char folder[BENCH_PATH_BYTES_MAX];
    int fds[FILES_MAX]; /* the first is being filled */
    uint32_t file_count;
    uint64_t offset; /* in the first */
    uint64_t number; /* of the next file */
    uint8_t *bytes;
};

static bench_engine *raw_open(const char *folder)
{
    bench_engine *const engine = bench_allocate(sizeof *engine);
    uint64_t random = 1;

    *engine = (bench_engine){ .bytes = bench_allocate(BATCH_BYTES_MAX) };
    snprintf(engine->folder, sizeof engine->folder, "%s", folder);
    bench_folder_make(folder);
    for (size_t i = 0; i < BATCH_BYTES_MAX; i++)
        engine->bytes[i] = (uint8_t)(bench_random(&random) >> 32);
    return engine;
}

static void write_all(int fd, const uint8_t *bytes, size_t count, uint64_t offset)
{
    while (count > 0) {
        const ssize_t n = pwrite(fd, bytes, count, (off_t)offset);
        if (n <= 0)
            bench_fail("raw: cannot write: %s", strerror(errno));
        bytes += n;
        count -= (size_t)n;
        offset += (uint64_t)n;
    }
}

static int make_file(bench_engine *engine)
{
    static const uint8_t zeros[CHUNK_BYTES];
    char path[BENCH_PATH_BYTES_MAX + 24];

    snprintf(path, sizeof path, "%s/%" PRIu64, engine->folder, engine->number++);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_fail("raw: cannot make %s: %s", path, strerror(errno));
    for (uint64_t offset = 0; offset < SL_SEGMENT_BYTES; offset += CHUNK_BYTES)
        write_all(fd, zeros, CHUNK_BYTES, offset);
    if (fsync(fd) < 0)
        bench_fail("raw: cannot sync %s: %s", path, strerror(errno));
    return fd;
}

/* The end of a file may stay empty, because a batch is never cut in two. */
static void raw_prepare(bench_engine *engine, uint64_t bytes)
{
    const uint64_t usable_bytes = SL_SEGMENT_BYTES - BATCH_BYTES_MAX;
    uint64_t ready_bytes = 0;

    if (engine->file_count > 0 && engine->offset < usable_bytes)
        ready_bytes = usable_bytes - engine->offset;
    if (engine->file_count > 1)
        ready_bytes += (engine->file_count - 1) * usable_bytes;
    while (ready_bytes < bytes) {
        if (engine->file_count == FILES_MAX)
            bench_fail("raw: %" PRIu64 " bytes are too many for one measurement", bytes);
        engine->fds[engine->file_count++] = make_file(engine);
        ready_bytes += usable_bytes;
    }
}

static void next_file(bench_engine *engine)
{
    close(engine->fds[0]);
    engine->file_count--;
    memmove(engine->fds, engine->fds + 1, engine->file_count * sizeof *engine->fds);
    engine->offset = 0;
}

static void raw_append(bench_engine *engine, const bench_batch *batch)
{
    if (engine->offset + batch->journal_bytes > SL_SEGMENT_BYTES)
        next_file(engine);
    if (engine->file_count == 0 || batch->journal_bytes > BATCH_BYTES_MAX)
        bench_fail("raw: a batch that nothing was prepared for");
    write_all(engine->fds[0], engine->bytes, batch->journal_bytes, engine->offset);
    if (fdatasync(engine->fds[0]) < 0)
        bench_fail("raw: cannot sync: %s", strerror(errno));
    engine->offset += batch->journal_bytes;
}

static void raw_close(bench_engine *engine)
{
    while (engine->file_count > 0)
        next_file(engine);
    free(engine->bytes);
    free(engine);
}

const bench_engine_kind bench_raw = {
    .name = "raw",
    .open = raw_open,
    .prepare = raw_prepare,
    .append = raw_append,
    .close = raw_close,
};

/* bench/store/part_open.c — how long a folder of sealed segments takes to open, and how much memory it takes then.
 *
 * The folder is made through the store itself, with durability "os", because its syncs are not what is measured. It is
 * opened by a process of its own (`--inspect`), which does nothing else: what this one has in memory from before would be
 * counted otherwise. It counts the events of all streams and reads some thousand events and streams, and every answer
 * has to be right. */
#include "common/report.h"
#include "parts.h"
#include "store/directory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BATCH_EVENTS = 1000,
    BATCHES = 100, /* made at once */
    OPENS = 3,
    READS = 5000,
    STREAM_EVENTS = 50,
};

static const double open_most_s = 2, beyond_most_mb = 64;

typedef struct memory {
    uint64_t anon_kb, file_kb, peak_kb;
} memory;

typedef struct inspection {
    double open_s;
    uint64_t events;
    memory before, opened, used;
} inspection;

#define INSPECTION_FORMAT(number)                                                                            \
    "inspection %lf %" number " %" number " %" number " %" number " %" number " %" number " %" number "\n"

/* --- the process that opens --- */

static uint64_t status_kb(const char *text, const char *field)
{
    const char *const at = strstr(text, field);

    if (at == NULL)
        bench_fail("no %s for this process", field);
    return strtoull(at + strlen(field), NULL, 10);
}

static memory memory_now(void)
{
    char text[8192];
    FILE *const file = fopen("/proc/self/status", "r");
    const size_t bytes = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);

    text[bytes] = '\0';
    if (file != NULL)
        fclose(file);
    return (memory){ status_kb(text, "RssAnon:"), status_kb(text, "RssFile:"), status_kb(text, "VmHWM:") };
}

/* What the directory says of all streams, summed up. */
static uint64_t count_events(const sl_store *store, uint32_t streams)
{
    char name[BENCH_NAME_BYTES + 1];
    sl_stream_info info;
    uint64_t events = 0;

    for (uint32_t i = 0; i < streams; i++) {
        bench_stream_name(i, name);
        sl_store_stream(store, (sl_str){ name, BENCH_NAME_BYTES }, &info);
        if (info.revision != SL_REVISION_NONE)
            events += info.revision + 1;
    }
    return events;
}

static void read_from(sl_store *store, const sl_read *read, uint64_t max)
{
    sl_cursor *cursor = NULL;
    bench_seen seen = { 0 };

    bench_must(sl_store_read(store, read, &cursor), "sl_store_read");
    bench_cursor_read(store, cursor, max, &seen);
    sl_cursor_close(cursor);
    if (seen.count != max)
        bench_fail("a read gave %" PRIu64 " events instead of %" PRIu64, seen.count, max);
}

static void read_a_stream(sl_store *store, uint32_t stream)
{
    char name[BENCH_NAME_BYTES + 1];
    sl_stream_info info;

    bench_stream_name(stream, name);
    sl_store_stream(store, (sl_str){ name, BENCH_NAME_BYTES }, &info);
    if (info.revision == SL_REVISION_NONE)
        return;
    const uint64_t events = info.revision + 1;
    read_from(store, &(sl_read){ .stream = { name, BENCH_NAME_BYTES } },
              events < STREAM_EVENTS ? events : STREAM_EVENTS);
}

/* Behind the last event there are only the few records of this opening. */
static void read_here_and_there(sl_store *store, uint32_t streams, uint64_t events)
{
    uint64_t random = 1;

    for (int i = 0; i < READS; i++) {
        read_a_stream(store, (uint32_t)(bench_random(&random) % streams));
        read_from(store, &(sl_read){ .from = 1 + bench_random(&random) % events }, 1);
    }
}

void bench_inspect(const char *folder, const bench_options *options)
{
    inspection found = { .before = memory_now() };
    const double begin = bench_now_s();
    sl_store *const store = bench_store_open(&(sl_journal_options){ .folder = folder });

    found.open_s = bench_now_s() - begin;
    found.opened = memory_now();
    found.events = count_events(store, options->streams);
    read_here_and_there(store, options->streams, found.events);
    found.used = memory_now();
    printf(INSPECTION_FORMAT(PRIu64), found.open_s, found.events, found.before.anon_kb, found.before.file_kb,
           found.opened.anon_kb + found.opened.file_kb, found.used.anon_kb, found.used.file_kb,
           found.used.peak_kb);
    sl_store_close(store);
}

/* --- the process that asks it --- */

static _Noreturn void become_inspector(const char *folder, const bench_options *options, int out)
{
    char streams[24];

    snprintf(streams, sizeof streams, "%" PRIu32, options->streams);
    if (dup2(out, STDOUT_FILENO) >= 0)
        execl("/proc/self/exe", "bench-store", "--streams", streams, "--inspect", folder, (char *)NULL);
    _exit(127);
}

static void read_inspection(int in, inspection *ret_found)
{
    FILE *const file = fdopen(in, "r");
    uint64_t opened_kb = 0;

    if (file == NULL ||
        fscanf(file, INSPECTION_FORMAT(SCNu64), &ret_found->open_s, &ret_found->events,
               &ret_found->before.anon_kb, &ret_found->before.file_kb, &opened_kb, &ret_found->used.anon_kb,
               &ret_found->used.file_kb, &ret_found->used.peak_kb) != 8)
        bench_fail("the process that opens the folder gave no answer");
    ret_found->opened.anon_kb = opened_kb;
    fclose(file);
}

static inspection inspect(const char *folder, const bench_options *options)
{
    inspection found = { 0 };
    int ends[2], status = 0;

    fflush(stdout);
    if (pipe(ends) < 0)
        bench_fail("no pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0)
        bench_fail("no process: %s", strerror(errno));
    if (child == 0)
        become_inspector(folder, options, ends[1]);
    close(ends[1]);
    read_inspection(ends[0], &found);
    if (waitpid(child, &status, 0) != child || status != 0)
        bench_fail("the process that opens the folder failed");
    return found;
}

/* --- making the folder --- */

static uint64_t wanted_events(const bench_options *options)
{
    const uint64_t bytes = options->gigabytes << 30;

    return options->events != 0 ? options->events : bytes / bench_event_record_bytes();
}

static void append_some(sl_store *store, bench_source *source)
{
    bench_work work;

    bench_work_make(&work, source, BATCHES, BATCH_EVENTS);
    for (uint32_t i = 0; i < BATCHES; i++) {
        bench_store_append(store, bench_work_batch(&work, i).ops, BATCH_EVENTS);
        bench_check();
    }
    bench_work_free(&work);
}

/* Whole works, so a little more than wanted. */
static uint64_t generate(const char *folder, const bench_options *options)
{
    const uint64_t wanted = wanted_events(options);
    sl_store *const store = bench_store_open(&(sl_journal_options){ .folder = folder, .sync_by_os = true });
    bench_source source;

    bench_source_open(&source, options->streams, options->seed);
    const double begin = bench_now_s();
    while (source.made.count < wanted) {
        bench_progress("generate", source.made.count, wanted);
        append_some(store, &source);
    }
    bench_report_least("generate", (double)source.made.count / (bench_now_s() - begin), "events/s", 0);
    bench_progress("", 0, 0);
    sl_store_close(store);
    bench_source_close(&source);
    return source.made.count;
}

/* --- reporting --- */

/* As store/directory.h says: the stream, its share of the table, its name. */
static double directory_mb(uint32_t streams)
{
    const double bytes = (double)streams * (sizeof(sl_stream) + BENCH_NAME_BYTES) +
                         (double)sl_map_table_length(streams) * sizeof(sl_map_node *);

    return bytes / (1 << 20);
}

static void report_memory(const bench_options *options, const inspection *found)
{
    const double anon_mb = (double)found->used.anon_kb / 1024, file_mb = (double)found->used.file_kb / 1024;
    const double kept_mb = directory_mb(options->streams);

    bench_report_most("memory.before_open", (double)(found->before.anon_kb + found->before.file_kb) / 1024,
                      "MB", 0);
    bench_report_most("memory.after_open", (double)found->opened.anon_kb / 1024, "MB", 0);
    bench_report_most("memory.anon", anon_mb, "MB", 0);
    bench_report_most("memory.file", file_mb, "MB", 0);
    bench_report_most("memory.peak", (double)found->used.peak_kb / 1024, "MB", 0);
    bench_report_most("memory.directory", kept_mb, "MB", 0);
    bench_report_most("memory.per_stream", kept_mb * (1 << 20) / options->streams, "B/stream", 0);
    bench_report_most("memory.beyond", anon_mb + file_mb - kept_mb, "MB", beyond_most_mb);
}

void bench_part_open(const bench_options *options)
{
    char folder[BENCH_PATH_BYTES_MAX];
    double seconds[OPENS];
    inspection found = { 0 };

    snprintf(folder, sizeof folder, "%s", bench_path("open"));
    const uint64_t events = generate(folder, options);
    for (int i = 0; i < OPENS; i++) {
        bench_progress("open", (uint64_t)i, OPENS);
        found = inspect(folder, options);
        seconds[i] = found.open_s;
        if (found.events != events)
            bench_fail("opened: %" PRIu64 " events instead of %" PRIu64, found.events, events);
    }
    bench_progress("", 0, 0);
    bench_report_least("open.size", (double)events * (double)bench_event_record_bytes() / (1 << 30), "GB", 0);
    bench_report_least("open.events", (double)events, "events", 0);
    bench_report_least("open.streams", options->streams, "streams", 0);
    bench_report_most("open", bench_median(seconds, OPENS), "s", open_most_s);
    report_memory(options, &found);
    bench_folder_remove(folder);
}

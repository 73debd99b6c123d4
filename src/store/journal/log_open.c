/* store/journal/log_open.c — finding the end of a log, and what to think of it.
 *
 *      segment 1 ... n-1     full and durable: that was made sure before the next one was written to
 *      segment n             the last one with a frame in it: read from its beginning
 *      segment n+1           perhaps, empty: made ahead
 *
 * log_end.c knows where segment n ends. */
#include "store/journal/log_private.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void sl_segment_name(uint64_t number, const char *suffix, char name[SL_SEGMENT_NAME_BYTES])
{
    snprintf(name, SL_SEGMENT_NAME_BYTES, "%016" PRIx64 "%s", number, suffix);
}

/* --- which segments there are --- */

typedef struct numbers {
    uint64_t *items;
    size_t count, capacity;
    sl_err err;
} numbers;

static void add_name(void *ctx, const char *name)
{
    numbers *const n = ctx;
    char again[SL_SEGMENT_NAME_BYTES];
    const uint64_t number = strtoull(name, NULL, 16);

    sl_segment_name(number, ".seg", again);
    if (strcmp(name, again) != 0) /* another file: indexes, the lock, one that was being made */
        return;
    if (n->count == n->capacity) {
        const size_t capacity = n->capacity == 0 ? 64 : 2 * n->capacity;
        uint64_t *const more = realloc(n->items, capacity * sizeof *more);
        if (more == NULL) {
            n->err = SL_ERR_NOMEM;
            return;
        }
        n->items = more;
        n->capacity = capacity;
    }
    n->items[n->count++] = number;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static sl_err list_segments(sl_disk *disk, numbers *ret_numbers)
{
    const sl_err err = disk->ops->list(disk, add_name, ret_numbers);

    if (err != SL_OK || ret_numbers->err != SL_OK)
        return err != SL_OK ? err : ret_numbers->err;
    if (ret_numbers->count > 0)
        qsort(ret_numbers->items, ret_numbers->count, sizeof *ret_numbers->items, by_number);
    return SL_OK;
}

/* --- reading what is there --- */

typedef struct found_segment { /* what its first bytes say */
    sl_segment_header header;
    bool has_frame;
    uint64_t first; /* position of the first frame */
} found_segment;

static sl_err read_head(sl_log *log, sl_file *file, found_segment *ret_found)
{
    uint8_t block[SL_SEGMENT_HEADER_BYTES + SL_FRAME_HEADER_BYTES];
    sl_frame_header first;
    sl_err err;

    memset(block, 0, sizeof block);
    if (log->disk->ops->size(file) < SL_SEGMENT_HEADER_BYTES)
        return SL_ERR_CORRUPT;
    err = log->disk->ops->read(
        file, 0, block, log->disk->ops->size(file) < sizeof block ? SL_SEGMENT_HEADER_BYTES : sizeof block);
    if (err == SL_OK)
        err = sl_segment_header_get(block, &ret_found->header);
    if (err != SL_OK)
        return err;
    ret_found->has_frame =
        sl_frame_header_get(block + SL_SEGMENT_HEADER_BYTES, SL_FRAME_HEADER_BYTES,
                            sl_segment_seed(ret_found->header.store, ret_found->header.number),
                            &first) == SL_OK;
    ret_found->first = ret_found->has_frame ? first.first_position : 0;
    return SL_OK;
}

static sl_err check_head(sl_log *log, uint64_t number, sl_file *file, const sl_segment_header *header)
{
    if (header->number != number || header->segment_bytes != log->disk->ops->size(file))
        return SL_ERR_CORRUPT;
    if (log->segment_count == 0)
        log->store = header->store;
    return sl_uuid_equal(header->store, log->store) ? SL_OK : SL_ERR_CORRUPT;
}

/* Where a segment begins is said by its first frame, or, when it was rewritten, by its header. */
static void place(segment *s, const found_segment *found)
{
    s->first = s->end = found->first;
    s->rewrites = found->header.rewrites;
    if (s->rewrites == 0)
        return;
    s->first = found->header.first;
    s->end = found->header.end;
    s->used_bytes = s->size_bytes;
}

static sl_err open_one(sl_log *log, uint64_t number, bool *ret_has_frame, sl_text *report)
{
    char name[SL_SEGMENT_NAME_BYTES];
    found_segment found = { 0 };
    sl_file *file = NULL;
    sl_err err;

    sl_segment_name(number, ".seg", name);
    err = log->disk->ops->open(log->disk, name, &file);
    if (err == SL_OK)
        err = read_head(log, file, &found);
    if (err == SL_OK)
        err = check_head(log, number, file, &found.header);
    if (err == SL_OK)
        err = sl_log_add_segment(log, file, &found.header);
    if (err != SL_OK) {
        sl_log_say_head(report, number, err);
        if (file != NULL)
            log->disk->ops->close(file);
        return err;
    }
    place(last_segment(log), &found);
    *ret_has_frame = found.has_frame || found.header.rewrites > 0;
    return SL_OK;
}

/* They are made again: cheap, and one case less. */
static sl_err remove_behind(sl_log *log, uint32_t count)
{
    sl_err err = SL_OK;

    for (uint32_t i = count; i > 0 && err == SL_OK; i--) {
        char name[SL_SEGMENT_NAME_BYTES];
        sl_segment_name(last_segment(log)->number + i, ".seg", name);
        err = log->disk->ops->remove(log->disk, name);
    }
    return err;
}

/* Each segment ends where the next one begins. */
static sl_err join_segments(sl_log *log, sl_text *report)
{
    for (uint32_t i = 0; i + 1 < log->segment_count; i++) {
        segment *const s = &log->segments[i];
        const uint64_t next = s[1].first;

        if (next < s->end || (s->rewrites > 0 && next != s->end)) {
            sl_log_say(report, "Positions that do not follow each other", s[1].number, 0,
                       sl_log_restore_advice);
            return SL_ERR_CORRUPT;
        }
        s->end = next;
        s->used_bytes = s->size_bytes;
    }
    return SL_OK;
}

static sl_err open_all(sl_log *log, const numbers *found, uint32_t *ret_empty, sl_text *report)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < found->count && err == SL_OK; i++) {
        bool has_frame = false;

        if (found->items[i] != (i == 0 ? 1 : found->items[i - 1] + 1)) {
            sl_log_say(report, "A segment is missing before the one", found->items[i], 0,
                       sl_log_restore_advice);
            return SL_ERR_CORRUPT;
        }
        err = open_one(log, found->items[i], &has_frame, report);
        if (err == SL_OK && has_frame && *ret_empty > 0) {
            sl_log_say(report, "Damage", found->items[i - 1], SL_SEGMENT_HEADER_BYTES, sl_log_restore_advice);
            return SL_ERR_CORRUPT;
        }
        *ret_empty += !has_frame;
    }
    return err;
}

static sl_err open_existing(sl_log *log, const numbers *found, sl_text *report)
{
    uint32_t empty = 0; /* those without a frame: at the end only */
    uint32_t aside = 0;
    log_behind most = { 0 };
    sl_err err = open_all(log, found, &empty, report);

    for (; err == SL_OK && aside < empty && log->segment_count > 1; aside++)
        err = sl_log_set_last_aside(log, &most);
    if (err == SL_OK && aside < empty) /* nothing but an empty one: as if it were made now */
        last_segment(log)->first = last_segment(log)->end = log->next;
    if (err == SL_OK)
        err = join_segments(log, report);
    if (err == SL_OK)
        err = sl_log_find_end(log, &most, report);
    if (err == SL_OK)
        err = sl_log_make_sure(log);
    return err == SL_OK ? remove_behind(log, aside) : err;
}

static sl_err make_first(sl_log *log, sl_text *report)
{
    const sl_segment_header header = {
        .version = SL_JOURNAL_VERSION, .number = 1, .segment_bytes = log->segment_bytes, .store = log->store
    };
    sl_file *file = NULL;
    sl_err err = sl_log_make_segment(log->disk, &header, NULL, &file);

    if (err == SL_OK)
        err = sl_log_add_segment(log, file, &header);
    if (err != SL_OK)
        sl_text_add(report, err == SL_ERR_NO_SPACE ? "There is no room on the disk for the first segment"
                                                   : "The first segment could not be made");
    return err;
}

/* --- open and close --- */

/* One frame that says nothing but "from here on it is this epoch", or "this is the end". */
static sl_err mark(sl_log *log, sl_record_kind kind)
{
    sl_log_place place;
    sl_err err = sl_log_begin(log, sl_record_size(0), true);

    if (err != SL_OK)
        return err;
    sl_log_record(log, kind, 0, &place);
    sl_log_end(log);
    sl_log_turn(log);
    return sl_log_flush(log);
}

/* --- is it a folder for us? --- */

typedef struct strangers {
    bool has_segment;
    char first[NAME_MAX + 1]; /* a name that no journal uses; empty: none */
} strangers;

static void look_at_name(void *ctx, const char *name)
{
    static const char *const own_ends[] = { ".seg", ".idx", ".roll", ".tmp" };
    strangers *const s = ctx;
    bool is_own =
        strcmp(name, "lock") == 0 || strcmp(name, "lost+found") == 0; /* the latter: a disk of its own */

    s->has_segment = s->has_segment || sl_str_ends_with(sl_str_from(name), SL_STR(".seg"));
    for (size_t i = 0; i < SL_COUNT_OF(own_ends); i++)
        is_own = is_own || sl_str_ends_with(sl_str_from(name), sl_str_from(own_ends[i]));
    if (!is_own && s->first[0] == '\0')
        snprintf(s->first, sizeof s->first, "%s", name);
}

/* A mistyped path must not make a store among somebody's files. Before the lock, which is a file as well. */
static sl_err check_folder(sl_log *log, sl_text *report)
{
    strangers s = { 0 };
    const sl_err err = log->disk->ops->list(log->disk, look_at_name, &s);

    if (err != SL_OK || s.has_segment || s.first[0] == '\0')
        return err;
    sl_text_add(report, "It has no journal, but other files, such as \"");
    sl_text_add(report, s.first);
    sl_text_add(report, "\". Nothing was changed. Name an empty folder, or one that does not exist yet");
    return SL_ERR_EXISTS;
}

static sl_err open_disk(sl_log *log, sl_text *report)
{
    numbers found = { 0 };
    uint64_t pid = 0;
    sl_err err = check_folder(log, report);

    if (err != SL_OK)
        return err;
    err = log->disk->ops->lock(log->disk, &pid);
    if (err == SL_ERR_EXISTS)
        sl_text_add(report,
                    "It has a file \"lock\" that no server made, and that was left as it is. Name another "
                    "folder, or take the file away");
    if (err == SL_ERR_LOCKED) {
        sl_text_add(report, "Another process uses this folder: number ");
        sl_text_add_u64(report, pid);
        sl_text_add(report, ". Stop it first");
    }
    if (err == SL_OK)
        err = list_segments(log->disk, &found);
    if (err == SL_OK)
        err = found.count == 0 ? make_first(log, report) : open_existing(log, &found, report);
    free(found.items);
    return err;
}

static void free_log(sl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    log->quit = true;
    pthread_cond_broadcast(&log->wake);
    pthread_mutex_unlock(&log->mutex);
    sl_log_sync_stop(log);
    sl_log_spare_stop(log);
    for (uint32_t i = 0; i < log->segment_count; i++)
        log->disk->ops->close(log->segments[i].file);
    if (log->wait_fd >= 0)
        close(log->wait_fd);
    pthread_mutex_destroy(&log->mutex);
    pthread_cond_destroy(&log->wake);
    pthread_cond_destroy(&log->spare.hurry);
    log->disk->ops->free(log->disk);
    free(log->segments);
    free(log->gathered);
    free(log);
}

static void init_locks(sl_log *log)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&log->mutex, NULL);
    pthread_cond_init(&log->wake, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&log->spare.hurry, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static sl_log *new_log(const sl_log_setup *setup)
{
    sl_log *const log = calloc(1, sizeof *log);

    if (log == NULL)
        return NULL;
    *log = (sl_log){ .disk = setup->disk,
                     .segment_bytes = setup->segment_bytes,
                     .store = setup->store,
                     .sync_by_os = setup->sync_by_os,
                     .inline_max = setup->inline_max,
                     .next = 1,
                     .written = 1,
                     .durable = 1 };
    init_locks(log);
    log->wait_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return log;
}

sl_err sl_log_open(const sl_log_setup *setup, sl_text *report, sl_log **ret_log)
{
    sl_log *const log = new_log(setup);
    sl_err err;

    if (log == NULL) {
        setup->disk->ops->free(setup->disk);
        return SL_ERR_NOMEM;
    }
    err = log->wait_fd < 0 ? SL_ERR_IO : open_disk(log, report);
    log->epoch++;
    if (err == SL_OK)
        err = sl_log_sync_start(log);
    if (err == SL_OK)
        err = sl_log_spare_start(log);
    if (err == SL_OK) {
        sl_log_spare_ask(log);
        err = mark(log, SL_RECORD_OPEN);
    }
    if (err != SL_OK) {
        free_log(log);
        return err;
    }
    *ret_log = log;
    return SL_OK;
}

void sl_log_close(sl_log *log)
{
    sl_log_turn(log);
    if (log->err == SL_OK && sl_log_flush(log) == SL_OK)
        (void)mark(log, SL_RECORD_CLOSE); /* without it the next open looks a little longer, that is all */
    free_log(log);
}

/* store/journal/log_open.c — finding the end of a log, and what to think of it.
 *
 *      segment 1 ... n-1     full and durable: that was made sure before the next one was written to
 *      segment n             the last one with a frame in it: read from its beginning
 *      segment n+1           perhaps, empty: made ahead
 *
 * The end is the first place of segment n where no valid frame of the right position stands. If a frame behind it
 * says that something at or after that place was durable, then it is not the end: something was damaged, and going
 * on would lose what somebody was promised. */
#include "store/journal/log_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void sl_segment_name(uint64_t number, char name[SEGMENT_NAME_BYTES])
{
    snprintf(name, SEGMENT_NAME_BYTES, "%016" PRIx64 ".seg", number);
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
    char again[SEGMENT_NAME_BYTES];
    const uint64_t number = strtoull(name, NULL, 16);

    sl_segment_name(number, again);
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

/* --- sentences --- */

static void say(sl_text *report, const char *what, uint64_t number, uint64_t offset, const char *advice)
{
    char name[SEGMENT_NAME_BYTES];

    sl_segment_name(number, name);
    sl_text_add(report, what);
    sl_text_add(report, " in ");
    sl_text_add(report, name);
    sl_text_add(report, " at byte ");
    sl_text_add_u64(report, offset);
    sl_text_add(report, advice);
}

static const char restore_advice[] = ": the disk or somebody changed what was written. Restore the folder "
                                     "from a backup; `sluice journal verify` lists all damage";

/* --- reading what is there --- */

static sl_err open_one(sl_log *log, uint64_t number, sl_text *report)
{
    uint8_t block[SL_SEGMENT_HEADER_BYTES];
    char name[SEGMENT_NAME_BYTES];
    sl_segment_header header;
    sl_file *file = NULL;
    sl_err err;

    sl_segment_name(number, name);
    err = log->disk->ops->open(log->disk, name, &file);
    if (err == SL_OK)
        err = log->disk->ops->read(file, 0, block, sizeof block);
    if (err == SL_OK)
        err = sl_segment_header_get(block, &header);
    if (err == SL_OK && (header.number != number || header.segment_bytes != log->disk->ops->size(file)))
        err = SL_ERR_CORRUPT;
    if (err == SL_OK && log->segment_count == 0)
        log->store = header.store;
    if (err == SL_OK && !sl_uuid_equal(header.store, log->store))
        err = SL_ERR_CORRUPT;
    if (err == SL_OK)
        err = sl_log_add_segment(log, file, number);
    if (err != SL_OK) {
        say(report, err == SL_ERR_VERSION ? "Another version of the format" : "An unreadable segment header",
            number, 0, err == SL_ERR_VERSION ? ": use the program that wrote it" : restore_advice);
        if (file != NULL)
            log->disk->ops->close(file);
    }
    return err;
}

static bool first_frame(const segment *s, sl_frame_header *ret_header)
{
    return sl_frame_header_get(s->bytes + SL_SEGMENT_HEADER_BYTES, s->size_bytes - SL_SEGMENT_HEADER_BYTES,
                               s->seed, ret_header) == SL_OK;
}

/* Looks behind the end for frames that know better. Frames begin at multiples of 8. */
static uint64_t durable_behind(const segment *s, uint64_t offset, uint64_t *epoch)
{
    uint64_t durable = 0;

    for (; offset + SL_FRAME_HEADER_BYTES <= s->size_bytes; offset += 8) {
        sl_frame_header header;
        if (sl_frame_header_get(s->bytes + offset, s->size_bytes - offset, s->seed, &header) != SL_OK)
            continue;
        durable = header.durable_below > durable ? header.durable_below : durable;
        *epoch = header.epoch > *epoch ? header.epoch : *epoch;
    }
    return durable;
}

/* Follows the frames of the last segment to their end. */
static void follow(sl_log *log, segment *s)
{
    sl_frame_header header;

    while (sl_frame_check(s->bytes + s->used_bytes, s->size_bytes - s->used_bytes, s->seed, &header) ==
           SL_OK) {
        if (header.first_position != s->end || header.epoch < log->epoch)
            break; /* left behind by an earlier life */
        s->end += header.record_count;
        s->used_bytes += header.bytes;
        log->epoch = header.epoch;
    }
}

static sl_err find_end(sl_log *log, sl_text *report)
{
    segment *const last = last_segment(log);
    uint64_t seen_epoch = 0;
    uint64_t durable;

    follow(log, last);
    seen_epoch = log->epoch;
    durable = durable_behind(last, last->used_bytes, &seen_epoch);
    if (durable > last->end) {
        say(report, "Damage", last->number, last->used_bytes, restore_advice);
        return SL_ERR_CORRUPT;
    }
    if (seen_epoch != log->epoch ||
        (last->size_bytes > last->used_bytes + 4 && sl_get_u32(last->bytes + last->used_bytes) != 0))
        say(report, "Cut what a crash had left", last->number, last->used_bytes,
            "; nothing of it had been confirmed");
    log->epoch = seen_epoch;
    log->next = log->written = log->durable = last->end;
    log->written_bytes = last->used_bytes;
    return SL_OK;
}

/* Where each segment begins is said by its first frame; one without is empty, and only the last may be. */
static sl_err place_segments(sl_log *log, sl_text *report)
{
    while (log->segment_count > 1) { /* those made ahead are made again: cheap, and one case less */
        sl_frame_header header;
        segment *const last = last_segment(log);
        char name[SEGMENT_NAME_BYTES];
        if (first_frame(last, &header))
            break;
        log->disk->ops->close(last->file);
        sl_segment_name(last->number, name);
        log->segment_count--;
        if (log->disk->ops->remove(log->disk, name) != SL_OK)
            return SL_ERR_IO;
    }
    for (uint32_t i = 0; i < log->segment_count; i++) {
        segment *const s = &log->segments[i];
        sl_frame_header header;
        if (first_frame(s, &header)) {
            s->first = s->end = header.first_position;
        } else if (log->segment_count > 1) {
            say(report, "Damage", s->number, SL_SEGMENT_HEADER_BYTES, restore_advice);
            return SL_ERR_CORRUPT;
        }
        if (i > 0) {
            log->segments[i - 1].end = s->first;
            log->segments[i - 1].used_bytes = log->segments[i - 1].size_bytes;
        }
    }
    return SL_OK;
}

static sl_err open_existing(sl_log *log, const numbers *found, sl_text *report)
{
    sl_err err = SL_OK;

    for (size_t i = 0; i < found->count && err == SL_OK; i++) {
        if (i > 0 && found->items[i] != found->items[i - 1] + 1) {
            say(report, "A segment is missing before the one", found->items[i], 0, restore_advice);
            return SL_ERR_CORRUPT;
        }
        err = open_one(log, found->items[i], report);
    }
    if (err == SL_OK)
        err = place_segments(log, report);
    return err == SL_OK ? find_end(log, report) : err;
}

static sl_err make_first(sl_log *log, sl_text *report)
{
    const sl_segment_header header = {
        .version = SL_JOURNAL_VERSION, .number = 1, .segment_bytes = log->segment_bytes, .store = log->store
    };
    sl_file *file = NULL;
    sl_err err = sl_log_make_segment(log->disk, &header, &file);

    if (err == SL_OK)
        err = sl_log_add_segment(log, file, 1);
    if (err != SL_OK)
        sl_text_add(report, err == SL_ERR_NO_SPACE ? "There is no room on the disk for the first segment"
                                                   : "The first segment could not be made");
    return err;
}

/* --- open and close --- */

/* One frame that says nothing but "from here on it is this epoch", or "this is the end". */
static sl_err mark(sl_log *log, sl_record_kind kind)
{
    uint64_t position;
    sl_err err = sl_log_begin(log, sl_record_size(0), true);

    if (err != SL_OK)
        return err;
    sl_log_record(log, kind, 0, &position);
    sl_log_end(log);
    sl_log_turn(log);
    return sl_log_sync_now(log);
}

static sl_err open_disk(sl_log *log, sl_text *report)
{
    numbers found = { 0 };
    uint64_t pid = 0;
    sl_err err = log->disk->ops->lock(log->disk, &pid);

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
    log->disk->ops->free(log->disk);
    free(log->segments);
    free(log->gathered);
    free(log);
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
    pthread_mutex_init(&log->mutex, NULL);
    pthread_cond_init(&log->wake, NULL);
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
    if (log->err == SL_OK && sl_log_sync_now(log) == SL_OK)
        (void)mark(log, SL_RECORD_CLOSE); /* without it the next open looks a little longer, that is all */
    free_log(log);
}

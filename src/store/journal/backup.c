/* store/journal/backup.c — a consistent copy of a journal that somebody may be writing to.
 *
 *      round 1   segments 1 ... n-1 as they are, n up to its last frame
 *      round 2   n again, whole, and what came behind it meanwhile
 *
 * Sealed segments do not change, but for one thing: a scavenge puts a rewritten one in the place of the old. Each is copied
 * from one descriptor, so a copy is of one version. A rewritten segment leaves out what something newer made superfluous,
 * and the copy is only right with that: so what is newer is always read after it. When a round has copied a rewritten
 * segment and the log went on to a new segment since the round began, another round follows; each is shorter than the one
 * before, and a segment that was sealed a moment ago is rarely rewritten already.
 *
 * Index files and rolls come along as they are: a copy that does not fit its segment is taken away again, and made anew when
 * the copy is opened. */
#include "base/cleanup.h"
#include "store/journal/cache_file.h"
#include "store/journal/index_format.h"
#include "store/journal/inspect_private.h"
#include "store/journal/log.h"
#include "store/journal/roll_file.h"
#include "store/journal/walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    COPY_BYTES = 1 << 20
};

static const char passing_name[] = "copy.tmp";

typedef struct copying {
    sl_disk *source, *target;
    const sl_inspection *how;
    uint8_t *buffer;
    sl_backed_up done;
    uint64_t last;                      /* segment: the newest that was copied */
    bool has_rewritten;                 /* among those that this round has copied */
    uint64_t bytes_before, bytes_total; /* of this round, for progress */
    uint64_t last_end_bytes;            /* of the last segment: up to the end of its last frame */
    uint64_t damages;
    bool target_failed; /* the error is one of the target */
    sl_err err;
} copying;

/* --- bytes --- */

static void show_progress(const copying *c, uint64_t bytes)
{
    if (c->how->progress != NULL)
        c->how->progress(c->how->ctx, "copy", c->bytes_before + bytes, c->bytes_total);
}

static sl_err of_target(copying *c, sl_err err)
{
    c->target_failed = c->target_failed || err != SL_OK;
    return err;
}

static sl_err copy_bytes(copying *c, sl_file *from, sl_file *to, uint64_t bytes)
{
    sl_err err = SL_OK;

    for (uint64_t at = 0; at < bytes && err == SL_OK; at += COPY_BYTES) {
        const size_t step = (size_t)sl_min_u64(bytes - at, COPY_BYTES);

        err = from->disk->ops->read(from, at, c->buffer, step);
        if (err == SL_OK)
            err = of_target(c, to->disk->ops->write(to, at, c->buffer, step));
        if (err == SL_OK)
            show_progress(c, at + step);
    }
    if (err == SL_OK)
        c->done.bytes += bytes;
    return err == SL_OK ? of_target(c, to->disk->ops->sync(to)) : err;
}

/* `file_bytes` above `bytes`: the rest is zero, for a log that goes on in it. */
static sl_err copy_file(copying *c, sl_file *from, const char *name, uint64_t bytes, uint64_t file_bytes)
{
    const sl_disk_ops *const ops = c->target->ops;
    sl_file *to = NULL;
    sl_err err =
        of_target(c, ops->create(c->target, passing_name, file_bytes > bytes ? file_bytes : 0, NULL, &to));

    if (err != SL_OK)
        return err;
    err = copy_bytes(c, from, to, bytes);
    ops->close(to);
    if (err == SL_OK)
        err = of_target(c, ops->rename(c->target, passing_name, name));
    return err;
}

/* --- one segment --- */

static void tell(copying *c, const sl_finding *finding)
{
    c->damages += finding->is_damage;
    if (finding->is_damage && c->how->finding != NULL)
        c->how->finding(c->how->ctx, finding);
}

static void tell_head(void *ctx, const sl_finding *finding)
{
    tell(ctx, finding);
}

/* How much of a segment is copied. open_end: how far the last one was read; 0: it is sealed, and copied whole. So is one
 * that was sealed and rewritten since it was read. */
static uint64_t copied_bytes(const sl_walk_head *head, uint64_t open_end)
{
    return open_end == 0 || head->header.rewrites > 0 ? head->bytes : open_end;
}

static sl_err copy_segment(copying *c, const sl_walk *walk, size_t index, uint64_t open_end)
{
    sl_walk_head *const head = &walk->heads[index];
    char name[SL_SEGMENT_NAME_BYTES];
    sl_file *file = NULL;
    sl_err err;

    sl_segment_name(head->number, ".seg", name);
    err = c->source->ops->open(c->source, name, &file);
    if (err != SL_OK)
        return err;
    sl_walk_head_read(file, head);
    if (!sl_walk_head_judge(walk, head) || c->damages > 0)
        err = SL_ERR_CORRUPT;
    if (err == SL_OK)
        err = copy_file(c, file, name, copied_bytes(head, open_end), head->bytes);
    c->source->ops->close(file);
    c->has_rewritten = c->has_rewritten || head->header.rewrites > 0;
    c->done.segments += head->number > c->last;
    c->last = sl_max_u64(c->last, head->number);
    c->bytes_before += head->bytes;
    return err;
}

/* --- a round --- */

static sl_err note_end(void *ctx, const sl_walked *walked)
{
    copying *const c = ctx;

    c->last_end_bytes = walked->used_bytes;
    return SL_OK;
}

/* The last one that has a frame, or the first when none has. */
static size_t find_last(const sl_walk *walk)
{
    size_t i = walk->head_count - 1;

    while (i > 0 && !walk->heads[i].has_first)
        i--;
    return i;
}

/* Reads the last segment to its end, then copies it up to there: what was read is not written again. */
static sl_err copy_last(copying *c, sl_walk *walk, size_t last)
{
    sl_err err;

    walk->head_count = last + 1; /* what comes behind it is for the next round */
    walk->next = 0;
    err = sl_walk_segment(walk, last);
    if (err == SL_OK && c->damages > 0)
        err = SL_ERR_CORRUPT;
    return err == SL_OK ? copy_segment(c, walk, last, c->last_end_bytes) : err;
}

static void plan(copying *c, const sl_walk *walk, size_t first, size_t last)
{
    c->done.rounds++;
    c->has_rewritten = false;
    c->bytes_before = c->bytes_total = 0;
    for (size_t i = first; i <= last; i++)
        c->bytes_total += walk->heads[i].bytes;
}

/* *ret_more: the log had gone on when this round began, so there may be more again. */
static sl_err copy_round(copying *c, bool *ret_more)
{
    const sl_walk_visitor visitor = { .ctx = c, .end = note_end, .finding = tell_head };
    const uint64_t last_before = c->last;
    sl_walk walk;
    size_t first = 0, last = 0;
    sl_err err = sl_walk_init(&walk, c->source, &visitor);

    *ret_more = false;
    if (err == SL_OK) {
        last = find_last(&walk);
        while (first < last && walk.heads[first].number < last_before)
            first++;
        *ret_more = walk.heads[last].number > last_before;
    }
    if (*ret_more)
        plan(c, &walk, first, last);
    for (size_t i = first; *ret_more && i < last && err == SL_OK; i++)
        err = copy_segment(c, &walk, i, 0);
    if (*ret_more && err == SL_OK)
        err = copy_last(c, &walk, last);
    sl_walk_done(&walk);
    return err;
}

static sl_err copy_segments(copying *c)
{
    bool more = true;
    sl_err err = SL_OK;

    do {
        err = copy_round(c, &more);
    } while (err == SL_OK && more && (c->done.rounds == 1 || c->has_rewritten));
    return err;
}

/* --- what is made from segments --- */

static sl_err copy_cache(copying *c, const char *name)
{
    sl_file *file;
    sl_err err = c->source->ops->open(c->source, name, &file);

    if (err != SL_OK) /* merged into another one meanwhile; or not readable, and then it is made anew */
        return SL_OK;
    err = copy_file(c, file, name, c->source->ops->size(file), 0);
    c->source->ops->close(file);
    c->done.caches += err == SL_OK;
    if (err == SL_ERR_IO && !c->target_failed)
        err = c->target->ops->remove(c->target, passing_name);
    return err;
}

/* Of the last segment there is none that fits: in the copy it is still open. */
static void copy_if_cache(void *ctx, const char *name)
{
    copying *const c = ctx;
    uint64_t number;

    if (c->err != SL_OK ||
        (!sl_cache_number(name, SL_INDEX_SUFFIX, &number) && !sl_cache_number(name, SL_ROLL_SUFFIX, &number)))
        return;
    if (number < c->last)
        c->err = copy_cache(c, name);
}

/* --- the proof --- */

/* A cache that does not fit is no damage of the copy: it goes. */
static void judge_copy(void *ctx, const sl_finding *finding)
{
    copying *const c = ctx;
    const size_t length = strlen(finding->file);
    const bool is_segment = length > 4 && strcmp(finding->file + length - 4, ".seg") == 0;

    if (is_segment) {
        tell(c, finding);
        return;
    }
    if (c->target->ops->remove(c->target, finding->file) == SL_OK)
        c->done.caches--;
}

static void verify_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    const copying *const c = ctx;

    (void)what;
    if (c->how->progress != NULL)
        c->how->progress(c->how->ctx, "verify", done, total);
}

static sl_err verify_copy(copying *c)
{
    const sl_inspection how = { .ctx = c, .finding = judge_copy, .progress = verify_progress };
    sl_verified verified = { 0 };
    sl_err err = sl_verify_disk(c->target, &how, &verified);

    if (err == SL_OK && c->damages > 0)
        err = SL_ERR_CORRUPT;
    c->done.first = verified.first;
    c->done.end = verified.end;
    return err;
}

sl_err sl_backup_disk(sl_disk *source, sl_disk *target, const sl_inspection *how, sl_backed_up *ret_done,
                      bool *ret_target_failed)
{
    copying c = { .source = source, .target = target, .how = how, .buffer = malloc(COPY_BYTES) };
    sl_err err = c.buffer == NULL ? SL_ERR_NOMEM : copy_segments(&c);

    if (err == SL_OK)
        err = source->ops->list(source, copy_if_cache, &c);
    if (err == SL_OK)
        err = c.err;
    if (err == SL_OK)
        err = verify_copy(&c);
    free(c.buffer);
    if (err == SL_OK)
        *ret_done = c.done;
    *ret_target_failed = c.target_failed;
    return err;
}

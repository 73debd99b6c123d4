/* store/journal/walk.c — which segments there are, what their heads say, and the way from one to the next. */
#include "store/journal/walk.h"

#include "store/array.h"
#include "store/journal/cache_file.h"
#include "store/journal/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEARCH_BYTES = 64 * 1024 /* looked through at a time */
};

/* --- findings --- */

static const char restore_advice[] =
    "Restore the folder from a backup. What is not lost can still be read with `sluice journal dump`.";
static const char no_advice[] = "Nothing has to be done.";

static void tell(const sl_walk *walk, uint64_t number, sl_finding finding)
{
    char name[SL_SEGMENT_NAME_BYTES];

    sl_segment_name(number, ".seg", name);
    finding.file = name;
    walk->visitor.finding(walk->visitor.ctx, &finding);
}

void sl_walk_damage(const sl_walk *walk, uint64_t number, uint64_t offset, const char *what,
                    sl_walk_loss loss)
{
    const bool lost = loss.to > loss.from;

    tell(walk, number,
         (sl_finding){ .is_damage = true,
                       .offset = offset,
                       .what = what,
                       .advice = restore_advice,
                       .lost_from = lost ? loss.from : 0,
                       .lost_to = lost ? loss.to : 0,
                       .lost_in_part = lost && loss.in_part });
}

void sl_walk_note(const sl_walk *walk, uint64_t number, uint64_t offset, const char *what)
{
    tell(walk, number, (sl_finding){ .offset = offset, .what = what, .advice = no_advice });
}

/* --- heads --- */

static bool rest_is_zero(const uint8_t *block)
{
    sl_segment_header header;
    uint8_t same[SL_SEGMENT_HEADER_BYTES];

    if (sl_segment_header_get(block, &header) != SL_OK)
        return false;
    sl_segment_header_put(&header, same);
    return memcmp(block, same, sizeof same) == 0;
}

static void read_first(sl_walk_head *head, const uint8_t *at)
{
    const uint32_t seed = sl_segment_seed(head->header.store, head->header.number);
    sl_frame_header first;

    if (head->header.rewrites > 0) {
        head->has_first = true;
        head->first = head->header.first;
    } else if (sl_frame_header_get(at, SL_FRAME_HEADER_BYTES, seed, &first) == SL_OK) {
        head->has_first = true;
        head->first = first.first_position;
    }
}

void sl_walk_head_read(sl_file *file, sl_walk_head *head)
{
    uint8_t block[SL_SEGMENT_HEADER_BYTES + SL_FRAME_HEADER_BYTES] = { 0 };
    const uint64_t bytes = file->disk->ops->size(file);

    *head = (sl_walk_head){ .number = head->number, .bytes = bytes };
    if (bytes < SL_SEGMENT_HEADER_BYTES) {
        head->err = SL_ERR_CORRUPT;
        return;
    }
    head->err =
        file->disk->ops->read(file, 0, block, bytes < sizeof block ? SL_SEGMENT_HEADER_BYTES : sizeof block);
    if (head->err == SL_OK)
        head->err = sl_segment_header_get(block, &head->header);
    if (head->err != SL_OK)
        return;
    head->zeros = rest_is_zero(block);
    read_first(head, block + SL_SEGMENT_HEADER_BYTES);
}

void sl_walk_head_look(sl_disk *disk, sl_walk_head *head)
{
    char name[SL_SEGMENT_NAME_BYTES];
    sl_file *file;
    sl_err err;

    sl_segment_name(head->number, ".seg", name);
    err = disk->ops->open(disk, name, &file);
    if (err != SL_OK) {
        *head = (sl_walk_head){ .number = head->number, .err = err };
        return;
    }
    sl_walk_head_read(file, head);
    disk->ops->close(file);
}

bool sl_walk_head_judge(const sl_walk *walk, const sl_walk_head *head)
{
    const sl_walk_loss all = { .from = walk->next,
                               .to =
                                   walk->next == 0 ? 0 : sl_walk_limit(walk, (size_t)(head - walk->heads)) };
    const sl_walk_loss none = { 0 };
    const char *what = NULL;
    bool readable = true;

    if (head->err == SL_ERR_VERSION) {
        what = "Another version of the program wrote this segment.";
        readable = false;
    } else if (head->err != SL_OK) {
        what = "The header of this segment is damaged.";
        readable = walk->knows_store;
    } else if (head->header.number != head->number || !sl_uuid_equal(head->header.store, walk->store)) {
        what = "This file does not belong here: its header names another segment or another store.";
        readable = false;
    } else if (head->header.segment_bytes != head->bytes) {
        what = "The file does not have the size that its header names.";
    } else if (!head->zeros) {
        what = "The rest of the header block should be zero and is not. Nothing is lost by that.";
    }
    if (what != NULL)
        sl_walk_damage(walk, head->number, 0, what, readable ? none : all);
    return readable;
}

uint64_t sl_walk_limit(const sl_walk *walk, size_t index)
{
    const sl_walk_head *const head = &walk->heads[index];

    if (index + 1 >= walk->head_count || !head[1].has_first || head[1].number != head->number + 1)
        return 0;
    return head[1].first;
}

/* --- which there are --- */

static void add_head(sl_walk *walk, uint64_t number)
{
    sl_walk_head *const larger = sl_array_grow(&sl_alloc_default, walk->heads, &walk->head_capacity,
                                               sizeof *larger, walk->head_count + 1);

    if (larger == NULL) {
        walk->err = SL_ERR_NOMEM;
        return;
    }
    walk->heads = larger;
    larger[walk->head_count++] = (sl_walk_head){ .number = number };
}

static void add_name(void *ctx, const char *name)
{
    sl_walk *const walk = ctx;
    uint64_t number;

    if (walk->err == SL_OK && sl_cache_number(name, "seg", &number))
        add_head(walk, number);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = ((const sl_walk_head *)a)->number, y = ((const sl_walk_head *)b)->number;

    return (x > y) - (x < y);
}

static void sort(sl_walk *walk)
{
    size_t kept = 0;

    if (walk->head_count == 0)
        return;
    qsort(walk->heads, walk->head_count, sizeof *walk->heads, by_number);
    for (size_t i = 1; i < walk->head_count; i++)
        if (walk->heads[i].number != walk->heads[kept].number)
            walk->heads[++kept] = walk->heads[i];
    walk->head_count = kept + 1;
}

/* A name that is given to a new file while a folder is listed may be listed twice or not at all. */
static void fill_gaps(sl_walk *walk)
{
    const size_t listed = walk->head_count;

    for (size_t i = 0; i + 1 < listed && walk->err == SL_OK; i++) {
        sl_walk_head missing = { .number = walk->heads[i].number + 1 };
        while (missing.number != walk->heads[i + 1].number) {
            sl_walk_head_look(walk->disk, &missing);
            if (missing.err == SL_ERR_NOT_FOUND)
                break;
            add_head(walk, missing.number++);
        }
    }
    sort(walk);
}

static void read_heads(sl_walk *walk)
{
    for (size_t i = 0; i < walk->head_count; i++) {
        sl_walk_head *const head = &walk->heads[i];
        sl_walk_head_look(walk->disk, head);
        walk->bytes_total += head->bytes;
        if (head->err == SL_OK && !walk->knows_store) {
            walk->knows_store = true;
            walk->store = head->header.store;
        }
    }
}

sl_err sl_walk_init(sl_walk *walk, sl_disk *disk, const sl_walk_visitor *visitor)
{
    *walk = (sl_walk){ .disk = disk, .visitor = *visitor };
    walk->err = disk->ops->list(disk, add_name, walk);
    sort(walk);
    fill_gaps(walk);
    if (walk->err == SL_OK && walk->head_count == 0)
        walk->err = SL_ERR_NOT_FOUND;
    if (walk->err == SL_OK)
        read_heads(walk);
    return walk->err;
}

void sl_walk_done(sl_walk *walk)
{
    sl_alloc_give(&sl_alloc_default, walk->heads, walk->head_capacity * sizeof *walk->heads);
    walk->heads = NULL;
    walk->head_count = walk->head_capacity = 0;
}

/* --- frame headers anywhere --- */

sl_err sl_walk_find_header(sl_scan *scan, uint64_t *offset, sl_frame_header *ret_header)
{
    while (*offset + SL_FRAME_HEADER_BYTES <= scan->size_bytes) {
        const uint64_t left = scan->size_bytes - *offset;
        const size_t bytes = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;
        const uint8_t *at;
        const sl_err err = sl_scan_bytes(scan, *offset, bytes, &at);

        if (err != SL_OK)
            return err;
        for (size_t i = 0; i + SL_FRAME_HEADER_BYTES <= bytes; i += 8, *offset += 8)
            if (sl_frame_header_get(at + i, SL_FRAME_HEADER_BYTES, scan->seed, ret_header) == SL_OK)
                return SL_OK;
    }
    return SL_ERR_EMPTY;
}

sl_err sl_walk_claims(sl_scan *scan, uint64_t offset, sl_walk_claim *ret_claim)
{
    sl_walk_claim claim = { .offset = offset };
    sl_frame_header header;
    sl_err err;

    while ((err = sl_walk_find_header(scan, &offset, &header)) == SL_OK) {
        claim.any = true;
        if (header.durable_below > claim.durable) {
            claim.durable = header.durable_below;
            claim.offset = offset;
        }
        offset += 8;
    }
    if (err == SL_ERR_EMPTY)
        *ret_claim = claim;
    return err == SL_ERR_EMPTY ? SL_OK : err;
}

/* --- all of them --- */

static void tell_missing(sl_walk *walk, size_t index)
{
    const sl_walk_head *const head = &walk->heads[index];
    const sl_walk_loss loss = { .from = walk->next, .to = head->has_first ? head->first : 0 };
    const uint64_t number = index == 0 ? 1 : head[-1].number + 1;

    sl_walk_damage(walk, number, 0,
                   "This segment is missing, or several are, up to the next one that is there.",
                   walk->next == 0 ? (sl_walk_loss){ 0 } : loss);
    walk->next = head->has_first ? head->first : 0;
}

static bool is_passed_over(const sl_walk *walk, size_t index)
{
    const uint64_t limit = sl_walk_limit(walk, index);

    if (walk->only_segment != 0 && walk->heads[index].number != walk->only_segment)
        return true;
    return limit != 0 && limit <= walk->from;
}

sl_err sl_walk_run(sl_walk *walk)
{
    sl_err err = SL_OK;

    walk->next = SL_POSITION_FIRST;
    for (size_t i = 0; i < walk->head_count && err == SL_OK; i++) {
        if (is_passed_over(walk, i)) {
            walk->next = 0;
            continue;
        }
        if (walk->heads[i].number != (i == 0 ? 1 : walk->heads[i - 1].number + 1))
            tell_missing(walk, i);
        if (walk->ended) /* nothing is in it, but opening the store looks at its header */
            (void)sl_walk_head_judge(walk, &walk->heads[i]);
        else
            err = sl_walk_segment(walk, i);
    }
    return err;
}

/* store/journal/verify.c — everything is read and held against everything else.
 *
 *      segments   checksums, positions in sequence, payloads that add up
 *      indexes    byte by byte against what would be made from their segments
 *      rolls      checksums and what they cover
 *
 * A missing index or roll is no damage: it is made when the store is opened, or a server is making it just now. Neither is
 * one of an earlier version of its segment: that was rewritten, and a crash came before its index was. */
#include "store/array.h"
#include "store/journal/index_format.h"
#include "store/journal/inspect_private.h"
#include "store/journal/log.h"
#include "store/journal/roll_file.h"
#include "store/journal/walk.h"

#include <stdlib.h>

enum {
    LOOKS = 3
};

typedef struct verifying {
    const sl_inspection *how;
    sl_disk *disk;
    sl_verified sums;
    uint64_t segment;                   /* whose frames are looked at */
    bool is_decoded;                    /* all payloads of it add up */
    uint64_t groups_from;               /* the newest GROUPS_FROM record */
    uint64_t sealed_first, sealed_last; /* segments that should have an index; 0: none */
    uint64_t *rolls;
    size_t roll_count, roll_capacity;
    sl_err err;
} verifying;

/* --- findings --- */

static const char remake_advice[] =
    "Delete this file and open the journal again (restart the server): it is made anew from the segments.";
static const char no_advice[] =
    "Nothing has to be done: it is made anew when the journal is opened the next time.";

static void count(void *ctx, const sl_finding *finding)
{
    verifying *const v = ctx;

    v->sums.damages += finding->is_damage;
    v->sums.notes += !finding->is_damage;
    v->sums.positions_lost += finding->lost_from == 0 ? 0 : finding->lost_to - finding->lost_from;
    if (v->how->finding != NULL)
        v->how->finding(v->how->ctx, finding);
}

static void tell(verifying *v, uint64_t number, const char *suffix, sl_finding finding)
{
    char name[SL_SEGMENT_NAME_BYTES];

    sl_segment_name(number, suffix, name);
    finding.file = name;
    count(v, &finding);
}

static void tell_cache(verifying *v, uint64_t number, const char *suffix, uint64_t offset, const char *what)
{
    tell(v, number, suffix,
         (sl_finding){ .is_damage = true, .offset = offset, .what = what, .advice = remake_advice });
}

static void note_cache(verifying *v, uint64_t number, const char *suffix, const char *what)
{
    tell(v, number, suffix, (sl_finding){ .what = what, .advice = no_advice });
}

/* --- records --- */

static sl_err verify_record(void *ctx, const sl_record_view *view, sl_record_place place)
{
    verifying *const v = ctx;
    sl_journal_record record;

    sl_journal_record_read(view, &record);
    v->sums.records++;
    if (view->kind == SL_RECORD_GROUPS_FROM && !record.malformed)
        v->groups_from = record.groups_from;
    if (!record.malformed)
        return SL_OK;
    v->is_decoded = false;
    tell(v, v->segment, ".seg",
         (sl_finding){
             .is_damage = true,
             .offset = place.offset,
             .what =
                 "The checksum of this record is right, but what it says does not add up: it was written so.",
             .advice = "Keep the folder as it is and report this as a mistake of the program.",
             .lost_from = view->position,
             .lost_to = view->position + 1 });
    return SL_OK;
}

static sl_err verify_frame(void *ctx, const sl_segment_ref *segment, const sl_frame_view *frame)
{
    verifying *const v = ctx;

    v->segment = segment->number;
    v->sums.frames++;
    v->sums.bytes += frame->header.bytes;
    return sl_frame_each(frame, verify_record, v);
}

/* --- indexes --- */

/* An index that is right in itself, but of another version of the segment. */
static bool is_outdated(verifying *v, const sl_segment_ref *segment)
{
    uint8_t block[SL_INDEX_BLOCK_BYTES];
    char name[SL_CACHE_NAME_BYTES];
    sl_index_header header;
    sl_file *file;
    sl_err err = SL_ERR_CORRUPT;

    sl_cache_name(segment->number, SL_INDEX_SUFFIX, name);
    if (v->disk->ops->open(v->disk, name, &file) != SL_OK)
        return false;
    if (v->disk->ops->size(file) >= sizeof block)
        err = v->disk->ops->read(file, 0, block, sizeof block);
    if (err == SL_OK)
        err = sl_index_header_get(block, v->disk->ops->size(file), &header);
    v->disk->ops->close(file);
    if (err == SL_ERR_VERSION)
        return true;
    return err == SL_OK && sl_uuid_equal(header.id.store, segment->store) &&
           header.id.about[0] == segment->number && header.id.about[1] != segment->rewrites;
}

/* Looks again before it says that an index is wrong: a server that rewrites the segment puts a new index in the place of
 * the old one, perhaps between the two looks of which this consists. */
static sl_err compare_index(verifying *v, const sl_segment_ref *segment, uint64_t *ret_offset,
                            bool *ret_outdated)
{
    sl_err err = SL_ERR_CORRUPT;

    *ret_outdated = false;
    for (unsigned i = 0; i < LOOKS && err == SL_ERR_CORRUPT && !*ret_outdated; i++) {
        err = sl_index_verify(v->disk, segment, ret_offset);
        *ret_outdated = err == SL_ERR_CORRUPT && is_outdated(v, segment);
    }
    return err;
}

static sl_err verify_index(verifying *v, const sl_segment_ref *segment)
{
    uint64_t offset = 0;
    bool outdated;
    const sl_err err = compare_index(v, segment, &offset, &outdated);

    if (err == SL_OK)
        v->sums.indexes++;
    else if (err == SL_ERR_NOT_FOUND)
        note_cache(v, segment->number, ".idx", "There is no index of this segment, or it is being made.");
    else if (outdated)
        note_cache(v, segment->number, ".idx",
                   "This index is of another version of its segment, which was rewritten just now or before "
                   "a crash.");
    else if (err == SL_ERR_CORRUPT)
        tell_cache(
            v, segment->number, ".idx", offset,
            "This index does not say what its segment says: reading could miss events. No event is lost.");
    else if (err == SL_ERR_IO)
        tell_cache(v, segment->number, ".idx", offset, "The disk did not give what stands in this index.");
    return err == SL_ERR_NOMEM ? err : SL_OK;
}

static sl_err verify_end(void *ctx, const sl_walked *walked)
{
    verifying *const v = ctx;
    const bool decoded = v->is_decoded;

    v->is_decoded = true;
    v->sums.segments++;
    if (v->sums.first == 0)
        v->sums.first = walked->segment.first;
    v->sums.end = walked->segment.end;
    if (walked->is_open)
        return SL_OK;
    v->sealed_first = v->sealed_first == 0 ? walked->segment.number : v->sealed_first;
    v->sealed_last = walked->segment.number;
    return walked->is_whole && decoded ? verify_index(v, &walked->segment) : SL_OK;
}

/* --- rolls --- */

static void add_roll(void *ctx, const char *name)
{
    verifying *const v = ctx;
    uint64_t number, *larger;

    if (v->err != SL_OK || !sl_cache_number(name, SL_ROLL_SUFFIX, &number))
        return;
    larger = sl_array_grow(&sl_alloc_default, v->rolls, &v->roll_capacity, sizeof *larger, v->roll_count + 1);
    if (larger == NULL) {
        v->err = SL_ERR_NOMEM;
        return;
    }
    v->rolls = larger;
    larger[v->roll_count++] = number;
}

static sl_err verify_roll(verifying *v, sl_uuid store, uint64_t number)
{
    sl_roll_reader reader;
    sl_roll_entry entry;
    uint64_t offset = 0;
    sl_err err = sl_roll_reader_open(&reader, v->disk, store, number);

    while (err == SL_OK) {
        offset = reader.offset;
        err = sl_roll_reader_next(&reader, &entry);
    }
    sl_roll_reader_done(&reader);
    if (err == SL_ERR_EMPTY)
        v->sums.rolls++;
    else if (err == SL_ERR_VERSION)
        note_cache(v, number, ".roll", "Another version of the program made this list of streams.");
    else if (err == SL_ERR_CORRUPT)
        tell_cache(v, number, ".roll", offset,
                   "This list of streams is damaged: opening the journal takes longer. No event is lost.");
    else if (err == SL_ERR_IO)
        tell_cache(v, number, ".roll", offset, "The disk did not give what stands in this list of streams.");
    return err == SL_ERR_NOMEM ? err : SL_OK; /* NOT_FOUND: merged into another one since it was listed */
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static sl_err verify_rolls(verifying *v, const sl_walk *walk)
{
    sl_roll_chain chain = { 0 };
    uint64_t missing = 0;
    sl_err err = v->disk->ops->list(v->disk, add_roll, v);

    if (err == SL_OK)
        err = v->err;
    if (v->roll_count > 0)
        qsort(v->rolls, v->roll_count, sizeof *v->rolls, by_number);
    for (size_t i = 0; i < v->roll_count && err == SL_OK && walk->knows_store; i++)
        err = verify_roll(v, walk->store, v->rolls[i]);
    if (err == SL_OK && v->sealed_last != 0 && walk->knows_store &&
        sl_roll_chain_find(v->disk, walk->store, v->sealed_first, v->sealed_last, &chain, &missing) ==
            SL_ERR_NOT_FOUND)
        note_cache(v, missing, ".roll",
                   "There is no list of the streams of this segment, or it is being made.");
    sl_roll_chain_done(&chain);
    sl_alloc_give(&sl_alloc_default, v->rolls, v->roll_capacity * sizeof *v->rolls);
    return err;
}

/* --- all of it --- */

/* Records of groups were left out of a rewritten segment because newer ones replace them: these have to be there. */
static void verify_groups(verifying *v, const sl_walk_head *heads, size_t head_count)
{
    for (size_t i = 0; i < head_count; i++)
        if (heads[i].err == SL_OK && heads[i].header.groups_from > v->groups_from) {
            tell(v, heads[i].number, ".seg",
                 (sl_finding){
                     .is_damage = true,
                     .what =
                         "Records of groups were left out of this segment, and those that replace them are "
                         "not in the journal: the state of groups is lost.",
                     .advice = "Restore the folder from a complete backup." });
            return;
        }
}

/* What heads said before anything was read: what they speak of is older than what is read then. */
static sl_walk_head *keep_heads(const sl_walk *walk)
{
    sl_walk_head *const heads = malloc(walk->head_count * sizeof *heads);

    for (size_t i = 0; heads != NULL && i < walk->head_count; i++)
        heads[i] = walk->heads[i];
    return heads;
}

static sl_err verify_all(verifying *v, sl_walk *walk)
{
    sl_walk_head *const heads = keep_heads(walk);
    sl_err err = heads == NULL ? SL_ERR_NOMEM : sl_walk_run(walk);

    if (err == SL_OK)
        err = verify_rolls(v, walk);
    if (err == SL_OK)
        verify_groups(v, heads, walk->head_count);
    free(heads);
    return err;
}

sl_err sl_verify_disk(sl_disk *disk, const sl_inspection *how, sl_verified *ret_verified)
{
    verifying v = { .how = how, .disk = disk, .is_decoded = true };
    const sl_walk_visitor visitor = { .ctx = &v,
                                      .frame = verify_frame,
                                      .end = verify_end,
                                      .finding = count,
                                      .progress = how->progress,
                                      .progress_ctx = how->ctx };
    sl_walk walk;
    sl_err err = sl_walk_init(&walk, disk, &visitor);

    if (err == SL_OK)
        err = verify_all(&v, &walk);
    sl_walk_done(&walk);
    if (err == SL_OK)
        *ret_verified = v.sums;
    return err;
}

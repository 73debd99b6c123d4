/* store/journal/walk_segment.c — one segment: its frames, its holes, its end. walk.h has the rules. */
#include "store/journal/walk.h"

#include "store/journal/log.h"

enum {
    PROGRESS_BYTES = 1 << 22 /* between two calls of progress */
};

typedef struct part {
    sl_walk *walk;
    size_t index;
    sl_segment_ref segment;
    sl_scan scan;
    bool has_header, is_rewritten;
    bool is_sparse; /* without a header only its frames tell that it was rewritten */
    uint64_t next;  /* position that has to come next; 0: not known */
    uint64_t limit; /* and where it ends; 0: not known */
    uint64_t epoch;
    uint64_t used_bytes, told_bytes;
    uint64_t looked_again_at; /* offset of a hole that was read twice */
    sl_walk_claim claim;
    bool is_whole, ended, is_open;
    sl_err visit_err;
} part;

static const sl_walk_head *head_of(const part *p)
{
    return &p->walk->heads[p->index];
}

static void damage(part *p, uint64_t offset, const char *what, sl_walk_loss loss)
{
    p->is_whole = false;
    sl_walk_damage(p->walk, p->segment.number, offset, what, loss);
}

/* --- frames --- */

static void show_progress(part *p, bool at_end)
{
    sl_walk *const walk = p->walk;
    const uint64_t bytes = at_end ? p->segment.size_bytes : p->scan.offset;

    if (walk->visitor.progress == NULL || (!at_end && bytes < p->told_bytes + PROGRESS_BYTES))
        return;
    p->told_bytes = bytes;
    walk->visitor.progress(walk->visitor.progress_ctx, "journal", walk->bytes_done + bytes,
                           walk->bytes_total);
}

static bool follows(const part *p, const sl_frame_view *frame)
{
    const sl_frame_header *const header = &frame->header;

    if (header->epoch < p->epoch || (p->limit != 0 && frame->end > p->limit))
        return false;
    if (header->sparse)
        return (p->is_rewritten || !p->has_header) && header->first_position >= p->next;
    return p->next == 0 || header->first_position == p->next;
}

static sl_err take_frame(part *p, const sl_frame_view *frame)
{
    const sl_walk_visitor *const visitor = &p->walk->visitor;

    p->next = frame->end;
    p->epoch = frame->header.epoch;
    p->is_sparse = p->is_sparse || frame->header.sparse;
    p->used_bytes = p->scan.offset;
    if (visitor->frame != NULL)
        p->visit_err = visitor->frame(visitor->ctx, &p->segment, frame);
    show_progress(p, false);
    return p->visit_err;
}

/* --- is it the end? --- */

static sl_err claims_of(part *p, size_t index, uint64_t *ret_durable)
{
    sl_walk *const walk = p->walk;
    const sl_walk_head *const head = &walk->heads[index];
    char name[SL_SEGMENT_NAME_BYTES];
    sl_walk_claim claim = { 0 };
    sl_file *file;
    sl_scan scan;
    sl_err err;

    *ret_durable = 0;
    sl_segment_name(head->number, ".seg", name);
    if (walk->disk->ops->open(walk->disk, name, &file) != SL_OK)
        return SL_OK; /* its turn to be looked at comes */
    sl_scan_init(&scan, file, sl_segment_seed(walk->store, head->number), walk->disk->ops->size(file));
    err = sl_walk_claims(&scan, scan.offset, &claim);
    sl_scan_done(&scan);
    walk->disk->ops->close(file);
    *ret_durable = claim.durable;
    return err == SL_ERR_IO ? SL_OK : err;
}

/* Does a later segment say that more has to be here? The next one may have come into use while this one was read. */
static sl_err ask_later(part *p, bool *ret_more)
{
    sl_walk *const walk = p->walk;
    sl_err err = SL_OK;

    for (size_t i = p->index + 1; i < walk->head_count && err == SL_OK && !*ret_more; i++) {
        uint64_t durable = 0;

        sl_walk_head_look(walk->disk, &walk->heads[i]);
        if (!walk->heads[i].has_first)
            err = claims_of(p, i, &durable);
        *ret_more = walk->heads[i].has_first || durable > p->next;
    }
    p->limit = sl_walk_limit(walk, p->index);
    return err;
}

static sl_err ask_own(part *p, bool *ret_more)
{
    sl_err err = SL_OK;

    if (!p->claim.any || p->claim.offset < p->scan.offset)
        err = sl_walk_claims(&p->scan, p->scan.offset, &p->claim);
    *ret_more = p->claim.any && p->claim.durable > p->next;
    return err;
}

static bool has_remains(part *p)
{
    const uint8_t *at;

    if (p->claim.any)
        return true;
    return p->scan.offset + 4 < p->scan.size_bytes &&
           sl_scan_bytes(&p->scan, p->scan.offset, 4, &at) == SL_OK && sl_get_u32(at) != 0;
}

static void end_of_log(part *p)
{
    p->ended = p->is_open = p->walk->ended = true;
    if (has_remains(p))
        sl_walk_note(p->walk, p->segment.number, p->scan.offset,
                     "Behind the end stands what a crash has left, or what a server is writing at this "
                     "moment. Nothing of "
                     "it was confirmed; opening the journal cuts it.");
}

/* --- it is damage --- */

/* Which record of a frame is wrong; the offset of the frame when its header is. */
static const char *describe(part *p, uint64_t *ret_offset)
{
    const uint64_t left = p->scan.size_bytes - p->scan.offset;
    uint32_t at = SL_FRAME_HEADER_BYTES;
    sl_frame_header header;
    const uint8_t *bytes;

    *ret_offset = p->scan.offset;
    if (left < SL_FRAME_HEADER_BYTES ||
        sl_scan_bytes(&p->scan, p->scan.offset, SL_FRAME_HEADER_BYTES, &bytes) != SL_OK ||
        sl_frame_header_get(bytes, SL_FRAME_HEADER_BYTES, p->scan.seed, &header) != SL_OK)
        return "A frame should begin here, and there is none that can be read.";
    if (header.bytes > left || sl_scan_bytes(&p->scan, p->scan.offset, header.bytes, &bytes) != SL_OK)
        return "A frame begins here, and its end is missing.";
    while (at < header.bytes) {
        sl_record_view record;
        if (sl_record_get(bytes + at, header.bytes - at, p->scan.seed, &record) != SL_OK) {
            *ret_offset += at;
            return "A record is damaged. A frame counts as a whole: with this record all others of its frame "
                   "are lost.";
        }
        at += record.bytes;
    }
    return "The frame that stands here does not follow the one before it.";
}

/* The next frame that can be the continuation. SL_ERR_EMPTY: there is none. */
static sl_err search(part *p, sl_frame_view *ret_frame)
{
    uint64_t offset = p->scan.offset;
    sl_frame_header header;
    sl_err err;

    while ((err = sl_walk_find_header(&p->scan, &offset, &header)) == SL_OK) {
        const bool later = header.first_position >= p->next && header.epoch >= p->epoch;

        p->scan.offset = offset;
        if (later && (p->limit == 0 || header.first_position < p->limit)) {
            err = sl_scan_frame(&p->scan, ret_frame);
            if (err != SL_ERR_CORRUPT)
                return err;
        }
        offset += 8;
    }
    return err;
}

/* Nothing more can be read here. Whether something is lost is not known when only a later segment could tell. */
static void give_up(part *p, uint64_t offset, const char *what)
{
    const uint64_t claimed = p->claim.any && p->claim.durable > p->next ? p->claim.durable : 0;
    const uint64_t to = p->limit != 0 ? p->limit : claimed;

    p->ended = true;
    if (to == 0)
        return;
    damage(p, offset, what, (sl_walk_loss){ p->next, to, true });
    p->next = to;
}

static sl_err skip_damage(part *p)
{
    uint64_t offset;
    const char *const what = describe(p, &offset);
    sl_frame_view frame;
    const sl_err err = search(p, &frame);

    if (err == SL_ERR_EMPTY)
        give_up(p, offset, what);
    if (err != SL_OK)
        return err == SL_ERR_EMPTY ? SL_OK : err;
    damage(p, offset, what, (sl_walk_loss){ p->next, frame.header.first_position, true });
    p->scan.offset = frame.offset;
    p->next = frame.header.first_position;
    return SL_OK;
}

/* There is no right frame at the offset. */
static sl_err hole(part *p)
{
    bool more = p->limit != 0 || p->is_rewritten;
    sl_err err = SL_OK;

    if (!more)
        err = ask_own(p, &more);
    if (err == SL_OK && !more)
        err = ask_later(p, &more);
    if (err != SL_OK)
        return err;
    if (!more) {
        end_of_log(p);
        return SL_OK;
    }
    if (!p->is_rewritten && p->limit != 0 && p->next >= p->limit)
        return SL_OK; /* it has been read to its end, and only now is known that this is it */
    if (p->looked_again_at == p->scan.offset)
        return skip_damage(p);
    p->looked_again_at = p->scan.offset; /* it may have been written after it was read */
    p->scan.window_bytes = 0;
    return SL_OK;
}

/* --- from its beginning to its end --- */

static bool at_end(const part *p)
{
    if (p->ended)
        return true;
    if ((p->is_rewritten || !p->has_header) && p->scan.offset >= p->scan.size_bytes)
        return true;
    return !p->is_rewritten && p->limit != 0 && p->next >= p->limit;
}

static void unreadable(part *p)
{
    damage(p, p->scan.offset,
           "The disk did not give what stands here; the rest of this file was not looked at. The system's "
           "log says more.",
           (sl_walk_loss){ .from = p->next, .to = p->limit });
    p->ended = true;
    p->next = p->limit != 0 ? p->limit : p->next;
}

static sl_err walk_frames(part *p)
{
    sl_err err = SL_OK;

    while (err == SL_OK && !at_end(p)) {
        sl_frame_view frame;

        err = sl_scan_frame(&p->scan, &frame);
        if (err == SL_OK && !follows(p, &frame)) {
            p->scan.offset = frame.offset;
            err = SL_ERR_CORRUPT;
        }
        if (err == SL_OK)
            err = take_frame(p, &frame);
        else if (err == SL_ERR_CORRUPT)
            err = hole(p);
        if (err == SL_ERR_IO && p->visit_err == SL_OK) {
            unreadable(p);
            err = SL_OK;
        }
    }
    return err;
}

/* Where it begins: as the one before it ended. Of a rewritten one the header says it. */
static void place(part *p)
{
    const sl_walk_head *const head = head_of(p);
    const uint64_t expected = p->walk->next;

    p->limit = p->is_rewritten ? head->header.end : sl_walk_limit(p->walk, p->index);
    p->next = expected == 0 && head->has_first ? head->first : expected;
    if (p->is_rewritten && head->header.first != p->next) {
        damage(p, 0, "This segment does not begin where the one before it ends.",
               (sl_walk_loss){ .from = expected, .to = head->header.first });
        p->next = head->header.first;
    }
}

static void prepare(part *p, sl_file *file)
{
    sl_walk *const walk = p->walk;
    const sl_walk_head *const head = head_of(p);

    p->has_header = head->err == SL_OK;
    p->is_rewritten = p->has_header && head->header.rewrites > 0;
    p->segment = (sl_segment_ref){ .file = file,
                                   .store = walk->store,
                                   .number = head->number,
                                   .rewrites = p->has_header ? head->header.rewrites : 0,
                                   .size_bytes = head->bytes,
                                   .seed = sl_segment_seed(walk->store, head->number) };
    p->is_whole = p->has_header && head->header.segment_bytes == head->bytes && head->zeros;
    place(p);
    p->segment.first = p->next;
    p->used_bytes = SL_SEGMENT_HEADER_BYTES;
    sl_scan_init(&p->scan, file, p->segment.seed, p->segment.size_bytes);
}

/* Of a rewritten segment what stood behind its last frame was left out and is not lost. Its header says where it ended; when
 * that is damaged, the segment behind it does. */
static uint64_t end_of(const part *p)
{
    if (p->is_rewritten)
        return head_of(p)->header.end;
    return p->is_sparse && p->limit > p->next ? p->limit : p->next;
}

static sl_err visit(part *p)
{
    const sl_walk_visitor *const visitor = &p->walk->visitor;
    sl_err err = visitor->begin == NULL ? SL_OK : visitor->begin(visitor->ctx, &p->segment);

    if (err == SL_OK)
        err = walk_frames(p);
    p->segment.end = end_of(p);
    p->walk->next = p->segment.end;
    if (err == SL_OK && visitor->end != NULL)
        err = visitor->end(visitor->ctx, &(sl_walked){ .segment = p->segment,
                                                       .head = head_of(p),
                                                       .used_bytes = p->used_bytes,
                                                       .is_whole = p->is_whole,
                                                       .is_open = p->is_open });
    show_progress(p, true);
    p->walk->bytes_done += p->segment.size_bytes;
    return err;
}

static void pass_over(sl_walk *walk, size_t index)
{
    walk->next = sl_walk_limit(walk, index);
    walk->bytes_done += walk->heads[index].bytes;
}

sl_err sl_walk_segment(sl_walk *walk, size_t index)
{
    sl_walk_head *const head = &walk->heads[index];
    part p = { .walk = walk, .index = index };
    char name[SL_SEGMENT_NAME_BYTES];
    sl_err err = SL_OK;
    sl_file *file;

    sl_segment_name(head->number, ".seg", name);
    if (walk->disk->ops->open(walk->disk, name, &file) != SL_OK) {
        sl_walk_damage(walk, head->number, 0, "This segment can not be opened.",
                       (sl_walk_loss){ .from = walk->next, .to = sl_walk_limit(walk, index) });
        pass_over(walk, index);
        return SL_OK;
    }
    sl_walk_head_read(file, head); /* again: it may have been rewritten meanwhile */
    if (sl_walk_head_judge(walk, head)) {
        prepare(&p, file);
        err = visit(&p);
        sl_scan_done(&p.scan);
    } else {
        pass_over(walk, index);
    }
    walk->disk->ops->close(file);
    return err;
}
